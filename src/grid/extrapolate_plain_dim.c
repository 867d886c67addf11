/* The plain form of the extrapolation: see extrapolate.h. */
#include "base/dimension.h"
#include "grid/extrapolate_kernels.h"
#include "grid/plain.h"
#include "grid/plain_forms.h"

static int is_wanted(const uint64_t *wanted, sk_plain_cell cell)
{
    return !wanted || (wanted[cell.slot] >> (cell.local / 8) & 1);
}

/* The new value of an unknown face: the mean of the known values before and after it along each axis. */
static float filled_value(const sk_grid *grid, const float *field, sk_plain_cell cell)
{
    const float own = field[sk_plain_index(cell)];
    float around[2 * SELKIE_DIM];
    for (int n = 0; n < 2 * SELKIE_DIM; n++) {
        const sk_plain_cell other = sk_plain_next(grid, cell, n / 2, n % 2 ? 1 : -1);
        around[n] = other.slot ? field[sk_plain_index(other)] : __builtin_nanf(""); /* no block: unknown */
    }
    return own == own ? own : sk_mean_of_known(around, 2 * SELKIE_DIM);
}

void SK_DIM(sk_extrapolate_plain)(const sk_grid *grid, const sk_extrapolation *what)
{
    const int32_t *blocks = what->blocks;
    for (int layer = 0; layer < what->layers; layer++)
        for (int f = 0; f < what->field_count * (what->groups > 1 ? what->groups : 1); f++) {
            float *field = what->fields[f], *scratch = what->scratch[f % what->field_count];
            /* Writes into the scratch, then copies back: a layer must not read its own values. */
#pragma omp parallel for num_threads(what->threads) schedule(static)
            for (int w = 0; w < what->block_count; w++)
                SK_PLAIN_EACH_CELL(cell, blocks[w])
            scratch[sk_plain_index(cell)] = filled_value(grid, field, cell);
#pragma omp parallel for num_threads(what->threads) schedule(static)
            for (int w = 0; w < what->block_count; w++)
                SK_PLAIN_EACH_CELL(cell, blocks[w])
            if (is_wanted(what->wanted, cell))
                field[sk_plain_index(cell)] = scratch[sk_plain_index(cell)];
        }
}
