/* The plain form of classify_dim.c: one cell at a time. */
#include "base/dimension.h"
#include "grid/runs.h"
#include "methods/classify.h"
#include "methods/classify_plain.h"

static void measure_block(const sk_step *step, const sk_flat_walls *walls, int block, sk_cell_volumes *volumes)
{
    memset(volumes, 0, sizeof *volumes);
    SK_PLAIN_EACH_CELL(cell, block)
    sk_plain_measure_cell(step, walls, cell, volumes);
}

/* Writes the kinds of a block's cells into a separate array. Returns the number of liquid cells. */
static int64_t classify_block(const sk_step *step, int block, uint8_t *kinds)
{
    const sk_grid *grid = &step->grid;
    uint64_t runs = 0;
    int64_t count = 0;
    SK_PLAIN_EACH_CELL(cell, block)
    {
        const int kind = sk_plain_kind(step, cell), liquid = (kind & SK_CELL_KIND_MASK) == SK_CELL_LIQUID;
        kinds[cell.local] = (uint8_t)kind;
        runs |= (uint64_t)liquid << (cell.local / 8);
        count += liquid;
    }
    grid->runs[SK_RUNS_LIQUID][block] = runs;
    grid->block_flags[block] = count ? SK_BLOCK_LIQUID : 0;
    return count;
}

static void add_volumes(sk_step *step, const sk_cell_volumes *volumes)
{
    step->exchanged = step->emitted - step->drained;
    step->kernel_volume = step->counted_volume = step->surface_volume = 0.0;
    step->occupied_cells = step->liquid_cells = 0;
    for (int b = 1; b < step->grid.block_count; b++) {
        step->kernel_volume += volumes[b].kernel;
        step->counted_volume += volumes[b].counted;
        step->surface_volume += volumes[b].surface;
        step->occupied_cells += volumes[b].occupied;
        step->liquid_cells += volumes[b].liquid;
    }
}

static selkie_code classify(sk_step *step, int with_volumes, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    const sk_flat_walls walls = flat_walls_of(step);
    const size_t blocks = (size_t)grid->block_count;
    void *scratch;
    SK_TRY(sk_step_scratch(step, blocks * (sizeof(sk_cell_volumes) + SK_BLOCK_CELLS), "classify", &scratch, error));
    sk_cell_volumes *volumes = scratch;
    uint8_t *kinds = (uint8_t *)(volumes + blocks);

#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int b = 1; b < grid->block_count; b++)
        measure_block(step, &walls, b, &volumes[b]);
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int b = 1; b < grid->block_count; b++)
        volumes[b].liquid = classify_block(step, b, kinds + (size_t)b * SK_BLOCK_CELLS);
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int b = 1; b < grid->block_count; b++) {
        memcpy(grid->kinds + (size_t)b * SK_BLOCK_CELLS, kinds + (size_t)b * SK_BLOCK_CELLS, SK_BLOCK_CELLS);
        grid->runs[SK_RUNS_NEAR][b] =
            sk_runs_around(grid, sk_whole_runs(grid->runs[SK_RUNS_LIQUID], grid->block_count), b);
    }
    if (with_volumes)
        add_volumes(step, volumes);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_classify_plain)(sk_step *step, selkie_error *error)
{
    return classify(step, 1, error);
}

selkie_code SK_DIM(sk_classify_cells_plain)(sk_step *step, selkie_error *error)
{
    return classify(step, 0, error);
}
