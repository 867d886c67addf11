/* The plain form of the extrapolation: see extrapolate.h. */
#include "base/dimension.h"
#include "grid/extrapolate_kernels.h"
#include "grid/plain.h"
#include "grid/plain_forms.h"

static int is_wanted(const uint64_t *wanted, sk_plain_cell cell)
{
    return !wanted || (wanted[cell.slot] >> (cell.local / 8) & 1);
}

/* What an unknown value becomes: the mean of the known ones before and after it along each axis. */
static float filled_value(const sk_grid *grid, const float *field, sk_plain_cell cell)
{
    const float own = field[sk_plain_index(cell)];
    float around[2 * SELKIE_DIM];
    for (int n = 0; n < 2 * SELKIE_DIM; n++) {
        const sk_plain_cell other = sk_plain_next(grid, cell, n / 2, n % 2 ? 1 : -1);
        around[n] = other.slot ? field[sk_plain_index(other)] : __builtin_nanf(""); /* without a block: unknown */
    }
    return own == own ? own : sk_mean_of_known(around, 2 * SELKIE_DIM);
}

void SK_DIM(sk_extrapolate_plain)(const sk_grid *grid, float *const *fields, float *const *scratch, int field_count,
                                  const int32_t *blocks, int count, const uint64_t *wanted, int layers, int threads)
{
    for (int layer = 0; layer < layers; layer++)
        for (int f = 0; f < field_count; f++) {
            /* From the field as it is into the scratch, then back: a layer must not see itself. */
#pragma omp parallel for num_threads(threads) schedule(static)
            for (int w = 0; w < count; w++)
                SK_PLAIN_EACH_CELL(cell, blocks[w])
            scratch[f][sk_plain_index(cell)] = filled_value(grid, fields[f], cell);
#pragma omp parallel for num_threads(threads) schedule(static)
            for (int w = 0; w < count; w++)
                SK_PLAIN_EACH_CELL(cell, blocks[w])
            if (is_wanted(wanted, cell))
                fields[f][sk_plain_index(cell)] = scratch[f][sk_plain_index(cell)];
        }
}
