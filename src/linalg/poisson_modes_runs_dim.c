/* Values of the modes in the order of the blocks, for the products of an iteration: see poisson_modes_dim.c.
 *
 * The cells of a mover in a block are a run. Its values lie mode by mode, eight cells a vector, with zeros up to a
 * whole vector. A sum over a mover goes through its runs. Where a field takes values, each thread adds those of its own
 * blocks, mover by mover: no two threads meet in a cell, and the bits do not depend on their number.
 */
#include "linalg/solver.h"

#include <omp.h>
#include "base/simd.h"

/* Vectors of a sum in single precision. Longer sums are double. */
enum { RANK = SK_MODES_RANK, LANES = SK_MODE_RUN_LANES, SHORT = 8 };

static uint32_t whole_vectors(uint32_t count)
{
    return (count + LANES - 1) / LANES * LANES;
}

/* --- Setting up --- */

/* Lists the runs of all movers, and the run of each entry. `number` has room for the blocks. */
static selkie_code list_runs(sk_memory *memory, const sk_mode_list *list, int movers, uint32_t *number, size_t blocks,
                             sk_mode_runs *runs, selkie_error *error)
{
    runs->count = 0;
    runs->room = 0;
    runs->first[0] = 0;
    memset(number, 0, blocks * sizeof *number);
    for (int m = 0; m < movers; ++m) {
        const size_t begin = runs->count, entries = list->first[m + 1] - list->first[m];
        SK_TRY(sk_reserve(memory, (void **)&runs->runs, &runs->capacity, begin + (entries < blocks ? entries : blocks),
                          sizeof *runs->runs, "bodies", error));
        for (size_t e = list->first[m]; e < list->first[m + 1]; ++e) {
            const uint32_t block = list->at[e] / SK_BLOCK_CELLS;
            if (number[block] <= begin) { /* of no run, or of one of another mover */
                runs->runs[runs->count++] = (sk_mode_run){.mover = m, .block = block};
                number[block] = (uint32_t)runs->count;
            }
            const uint32_t run = number[block] - 1;
            runs->runs[run].count++;
            runs->run_of[e] = run;
        }
        for (size_t n = begin; n < runs->count; ++n) {
            runs->runs[n].start = (uint32_t)runs->room;
            runs->room += whole_vectors(runs->runs[n].count);
        }
        runs->first[m + 1] = runs->count;
    }
    return SELKIE_OK;
}

/* Orders the runs by block; those of a block keep their order. `first` has room for the blocks and one more. */
static void order_runs(sk_mode_runs *runs, uint32_t *first, size_t blocks)
{
    memset(first, 0, (blocks + 1) * sizeof *first);
    for (size_t n = 0; n < runs->count; ++n)
        first[runs->runs[n].block + 1]++;
    for (size_t b = 0; b < blocks; ++b)
        first[b + 1] += first[b];
    for (size_t n = 0; n < runs->count; ++n)
        runs->by_block[first[runs->runs[n].block]++] = runs->runs[n];
}

/* Cells and values of a mover, and zeros in the empty block behind each run. */
static void fill_mover(const sk_mode_list *list, const float (*image)[SK_MODES_WIDE], int mover, sk_mode_runs *runs)
{
    sk_mode_run *own = runs->runs;
    for (size_t n = runs->first[mover]; n < runs->first[mover + 1]; ++n)
        own[n].count = 0;
    for (size_t e = list->first[mover]; e < list->first[mover + 1]; ++e) {
        sk_mode_run *run = &own[runs->run_of[e]];
        const uint32_t to = run->start + run->count++;
        runs->at[to] = list->at[e];
        for (int k = 0; k < RANK; ++k)
            runs->value[k][to] = list->values[e][k];
        for (int k = 0; image && k < RANK; ++k)
            runs->image[k][to] = image[e][k];
    }
    for (size_t n = runs->first[mover]; n < runs->first[mover + 1]; ++n)
        for (uint32_t i = own[n].count; i < whole_vectors(own[n].count); ++i) {
            const uint32_t to = own[n].start + i;
            runs->at[to] = 0;
            for (int k = 0; k < RANK; ++k)
                runs->value[k][to] = 0.0f;
            for (int k = 0; image && k < RANK; ++k)
                runs->image[k][to] = 0.0f;
        }
}

/* Memory of the cells and values, and of the runs by block. */
static selkie_code reserve_values(sk_memory *memory, sk_mode_runs *runs, int has_image, selkie_error *error)
{
    const size_t room = (runs->room + 15) / 16 * 16, fields = (has_image ? 2 : 1) * RANK;
    SK_TRY(SK_DIM(sk_scratch_reserve)(memory, &runs->value_memory,
                                      room * (sizeof(uint32_t) + fields * sizeof(float)) + 64, error));
    runs->at = runs->value_memory.data;
    float *values = (float *)(void *)(runs->at + room);
    for (int k = 0; k < RANK; ++k) {
        runs->value[k] = values + (size_t)k * room;
        runs->image[k] = has_image ? values + (size_t)(RANK + k) * room : NULL;
    }
    return sk_reserve(memory, (void **)&runs->by_block, &runs->ordered_capacity, runs->count + 1,
                      sizeof *runs->by_block, "bodies", error);
}

selkie_code SK_DIM(sk_modes_make_runs)(sk_poisson_solver *solver, const sk_mode_list *list,
                                       const float (*image)[SK_MODES_WIDE], sk_mode_runs *runs, int threads,
                                       selkie_error *error)
{
    const int movers = solver->modes.body_count;
    const size_t blocks = (size_t)solver->multigrid.level[0].block_count + 1;
    sk_memory *memory = solver->memory;
    SK_TRY(SK_DIM(sk_scratch_reserve)(memory, &runs->block_memory, (blocks + 1) * sizeof(uint32_t), error));
    SK_TRY(sk_reserve(memory, (void **)&runs->first, &runs->first_capacity, (size_t)movers + 1, sizeof *runs->first,
                      "bodies", error));
    SK_TRY(sk_reserve(memory, (void **)&runs->run_of, &runs->run_of_capacity, list->count + 1, sizeof *runs->run_of,
                      "bodies", error));
    SK_TRY(list_runs(memory, list, movers, runs->block_memory.data, blocks, runs, error));
    SK_TRY(reserve_values(memory, runs, image != NULL, error));
#pragma omp parallel for num_threads(threads) schedule(dynamic, 4) if (threads > 1)
    for (int m = 0; m < movers; ++m)
        fill_mover(list, image, m, runs);
    order_runs(runs, runs->block_memory.data, blocks);
    return SELKIE_OK;
}

void SK_DIM(sk_modes_release_runs)(sk_mode_runs *runs, sk_memory *memory)
{
    sk_release(memory, runs->runs);
    sk_release(memory, runs->by_block);
    sk_release(memory, runs->first);
    sk_release(memory, runs->run_of);
    sk_release(memory, runs->value_memory.data);
    sk_release(memory, runs->block_memory.data);
}

/* --- Products --- */

/* Values of a field in eight cells. Loads one by one: a gather of lanes is slower on many processors. */
static inline f8 load_cells(const float *x, const uint32_t at[LANES])
{
    return (f8){x[at[0]], x[at[1]], x[at[2]], x[at[3]], x[at[4]], x[at[5]], x[at[6]], x[at[7]]};
}

/* sums += the values from `start` up to `end` times x, in single precision. */
static inline void add_short(float *const values[RANK], uint32_t start, uint32_t end, const uint32_t *at,
                             const float *x, double sums[RANK])
{
    f8 part[RANK] = {f8_splat(0.0f), f8_splat(0.0f), f8_splat(0.0f)};
    for (uint32_t n = start; n < end; n += LANES) {
        const f8 here = load_cells(x, at + n);
        for (int k = 0; k < RANK; ++k)
            part[k] += here * f8_load(values[k] + n);
    }
    for (int k = 0; k < RANK; ++k)
        sums[k] += d8_sum(d8_from_f8(part[k]));
}

void SK_DIM(sk_modes_gather)(const sk_mode_runs *runs, int mover, const float *x, double sums[RANK])
{
    for (int k = 0; k < RANK; ++k)
        sums[k] = 0.0;
    for (size_t n = runs->first[mover]; n < runs->first[mover + 1]; ++n) {
        const uint32_t start = runs->runs[n].start, end = start + whole_vectors(runs->runs[n].count);
        for (uint32_t from = start; from < end; from += SHORT * LANES)
            add_short(runs->value, from, from + SHORT * LANES < end ? from + SHORT * LANES : end, runs->at, x, sums);
    }
}

void SK_DIM(sk_modes_gather_both)(const sk_mode_runs *runs, int mover, const float *x, const float *y,
                                  double sums[RANK], double image[RANK])
{
    for (int k = 0; k < RANK; ++k)
        sums[k] = image[k] = 0.0;
    for (size_t n = runs->first[mover]; n < runs->first[mover + 1]; ++n) {
        const uint32_t start = runs->runs[n].start, end = start + whole_vectors(runs->runs[n].count);
        for (uint32_t from = start; from < end; from += SHORT * LANES) {
            const uint32_t to = from + SHORT * LANES < end ? from + SHORT * LANES : end;
            add_short(runs->value, from, to, runs->at, x, sums);
            add_short(runs->image, from, to, runs->at, y, image);
        }
    }
}

/* The first of the runs by block that a thread takes: the begin of a block, for about the same number of entries. */
static size_t first_run_of(const sk_mode_runs *runs, int thread, int threads)
{
    const size_t goal = runs->room * (size_t)thread / (size_t)threads;
    size_t before = 0, n = 0;
    if (thread == threads)
        return runs->count;
    while (n < runs->count && (before < goal || (n > 0 && runs->by_block[n].block == runs->by_block[n - 1].block)))
        before += whole_vectors(runs->by_block[n++].count);
    return n;
}

void SK_DIM(sk_modes_spread)(const sk_mode_runs *runs, int is_image, const float (*velocity)[SK_MODES_WIDE],
                             sk_team team, float factor, float *x)
{
    float *const *values = is_image ? runs->image : runs->value;
    const size_t last = first_run_of(runs, team.thread + 1, team.threads);
    for (size_t n = team.thread ? first_run_of(runs, team.thread, team.threads) : 0; n < last; ++n) {
        const sk_mode_run *run = &runs->by_block[n];
        const float *v = velocity[run->mover];
        const f8 a = f8_splat(factor * v[0]), b = f8_splat(factor * v[1]), c = f8_splat(factor * v[2]);
        for (uint32_t i = 0; i < run->count; i += LANES) {
            const uint32_t from = run->start + i, *at = runs->at + from;
            const f8 change =
                a * f8_load(values[0] + from) + b * f8_load(values[1] + from) + c * f8_load(values[2] + from);
            const uint32_t count = run->count - i;
            if (count >= LANES) {
#pragma GCC unroll 8
                for (int l = 0; l < LANES; ++l)
                    x[at[l]] += change[l];
                continue;
            }
            for (uint32_t l = 0; l < count; ++l)
                x[at[l]] += change[l];
        }
    }
}
