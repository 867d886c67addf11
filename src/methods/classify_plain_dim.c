/* The plain form of classify_dim.c: one cell at a time. */
#include "base/dimension.h"
#include "grid/plain.h"
#include "grid/runs.h"
#include "methods/cell_kernels.h"
#include "methods/classify.h"
#include "methods/covered_cells.h"
#include "methods/wall_plain.h"

typedef struct block_volumes {
    double kernel, counted, surface; /* cells */
    int64_t occupied, liquid;
} block_volumes;

/* The kernel volume of a cell for mirror walls: density behind a wall counts in the cell before it. */
static float mirrored_volume(const sk_step *step, const sk_flat_walls *walls, sk_plain_cell cell)
{
    const sk_grid *grid = &step->grid;
    const int here[3] = {0, 0, 0};
    int at[3];
    sk_plain_coordinates(grid, cell, at);
    if (sk_wall_is_behind(walls, at))
        return 0.0f;
    sk_plain_cell images[1 << SELKIE_DIM];
    float room[1 << SELKIE_DIM];
    const int found = find_wall_images(grid, walls, cell, here, -1, images);
    for (int n = 0; n < 1 << SELKIE_DIM; n++)
        room[n] =
            (n & ~found) == 0 ? 1.0f - step->solids.blurred[sk_plain_solid_index(&step->solids, images[n])] : 0.0f;
    return sk_cell_volume(folded_value(grid, walls, grid->fields[SK_FIELD_DENSITY], cell, here, -1),
                          sk_wall_fold(room, found));
}

/* Fill, depth, occupation and solid flags. Liquid flags need the neighbours and follow in classify_block. */
static void measure_block(const sk_step *step, const sk_flat_walls *walls, int block, block_volumes *volumes)
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    const int mirrored =
        solids->block_slot[block] && step->scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    memset(volumes, 0, sizeof *volumes);
    SK_PLAIN_EACH_CELL(cell, block)
    {
        const size_t here = sk_plain_index(cell), solid = sk_plain_solid_index(solids, cell);
        const float density = grid->fields[SK_FIELD_DENSITY][here], blurred = solids->blurred[solid];
        const float own = sk_cell_fill(density, blurred);
        const float fill = covered_near(step, block) && is_covered(step, cell) ? covered_fill(step, cell) : own;
        const float depth = sk_surface_depth(fill);
        const int open = !solids->closed[solid];
        uint32_t first, last;
        sk_plain_particles(grid, cell, &first, &last);

        grid->fields[SK_FIELD_FILL][here] = open ? fill : -1.0f;
        grid->fields[SK_FIELD_DEPTH][here] = open ? depth : -1.0f;
        grid->kinds[here] = (uint8_t)((open ? SK_CELL_AIR : SK_CELL_SOLID) | (last > first ? SK_CELL_OCCUPIED : 0));

        volumes->kernel +=
            (double)(mirrored ? mirrored_volume(step, walls, cell) : sk_cell_volume(density, 1.0f - blurred));
        volumes->surface += open ? (double)sk_cell_part_below(depth) : 0.0;
        volumes->counted += (double)sk_cell_counted((int)(last - first), 1.0f / (float)step->particles_per_cell);
        volumes->occupied += last > first;
    }
}

static int is_hole(const sk_step *step, sk_plain_cell cell)
{
    const sk_grid *grid = &step->grid;
    int occupied[2 * SELKIE_DIM];
    float open[2 * SELKIE_DIM];
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const sk_plain_cell other = sk_plain_next(grid, cell, side / 2, side % 2 ? 1 : -1);
        occupied[side] = grid->kinds[sk_plain_index(other)] & SK_CELL_OCCUPIED;
        open[side] = step->solids.fraction[side / 2][sk_plain_solid_index(&step->solids, side % 2 ? other : cell)];
    }
    return sk_cell_is_hole(grid->fields[SK_FIELD_FILL][sk_plain_index(cell)], occupied, open);
}

/* Writes the kinds of a block's cells into a separate array, because neighbours are still read. Returns the number of
 * liquid cells. */
static int64_t classify_block(const sk_step *step, int block, uint8_t *kinds)
{
    const sk_grid *grid = &step->grid;
    const int voxel = step->scene->pressure.surface == SELKIE_SURFACE_VOXEL;
    const int obstacles = !step->solids.plain[step->solids.block_slot[block]];
    uint64_t runs = 0;
    int64_t count = 0;
    SK_PLAIN_EACH_CELL(cell, block)
    {
        const size_t here = sk_plain_index(cell);
        const int kind = grid->kinds[here], occupied = kind & SK_CELL_OCCUPIED;
        int liquid = (kind & SK_CELL_KIND_MASK) != SK_CELL_SOLID;
        const int cut = obstacles && step->solids.blurred[sk_plain_solid_index(&step->solids, cell)] > 0.0f;
        liquid = liquid && (sk_cell_is_liquid(voxel, occupied, cut, grid->fields[SK_FIELD_FILL][here]) ||
                            (!voxel && is_hole(step, cell)));
        kinds[cell.local] = (uint8_t)(liquid ? SK_CELL_LIQUID | occupied : kind);
        runs |= (uint64_t)liquid << (cell.local / 8);
        count += liquid;
    }
    grid->runs[SK_RUNS_LIQUID][block] = runs;
    grid->block_flags[block] = count ? SK_BLOCK_LIQUID : 0;
    return count;
}

static void add_volumes(sk_step *step, const block_volumes *volumes)
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
    SK_TRY(sk_step_scratch(step, blocks * (sizeof(block_volumes) + SK_BLOCK_CELLS), "classify", &scratch, error));
    block_volumes *volumes = scratch;
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
