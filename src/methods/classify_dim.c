/* Classification of cells as liquid, air and solid, and the volumes that follow from it. */
#include <math.h>

#include "base/dimension.h"
#include "grid/deal.h"
#include "grid/grid_kernels.h"
#include "grid/runs.h"
#include "grid/tile.h"
#include "methods/classify.h"
#include "methods/covered_cells.h"
#include "methods/liquid_system.h"
#include "methods/vents.h"
#include "methods/wall_mirror.h"

typedef struct block_volumes {
    double kernel, counted, surface;
    int64_t occupied, liquid;
} block_volumes;

/* The kernel volume for mirror walls (unilateral incompressibility): density behind a wall counts in the cell before
 * it. */
static double mirrored_volume(const sk_step *step, int block)
{
    float mass[SK_TILE_VALUES(1)], room[SK_TILE_VALUES(1)];
    mirror_walls walls;
    find_mirror_walls(step, block, &walls);
    sk_tile_load(&step->grid, step->grid.fields[SK_FIELD_DENSITY], block, 1, mass);
    sk_tile_load_mapped(&step->grid, step->solids.block_slot, step->solids.blurred, block, 1, room);
    for (int n = 0; n < SK_TILE_VALUES(1); n++)
        room[n] = 1.0f - room[n];
    fold_at_walls(&walls, -1, mass);
    fold_at_walls(&walls, -1, room);
    double sum = 0.0;
    for (int c = 0; c < SK_BLOCK_CELLS; c++)
        if (!behind_walls(&walls, c))
            sum += fmin(mass[node_of(c)], room[node_of(c)]);
    return sum;
}

/* Fill, occupation and solid flags of each cell. Liquid flags need the neighbours and follow in classify_block. */
static void measure_block(const sk_step *step, int block, const int with_volumes, block_volumes *volumes)
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    size_t base = (size_t)block * SK_BLOCK_CELLS, solid = (size_t)solids->block_slot[block] * SK_BLOCK_CELLS;
    const float *density = grid->fields[SK_FIELD_DENSITY] + base, *blurred = solids->blurred + solid;
    float *fill = grid->fields[SK_FIELD_FILL] + base, *depth = grid->fields[SK_FIELD_DEPTH] + base;
    const uint32_t *start =
        block <= grid->particle_blocks ? grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS : NULL;
    const uint8_t *closed = solids->closed + solid, *covered = solids->covered ? solids->covered + solid : NULL;
    const float full = 1.0f / (float)step->particles_per_cell;
    d8 kernel_sum = {0}, surface_sum = {0}, counted_sum = {0}, occupied_sum = {0};
    uint8_t *kinds = grid->kinds + base;

    /* Runs that no particle reaches are air or solid and need no measurement. */
    const uint64_t reached = grid->runs[SK_RUNS_REACHED][block];
    for (int c = 0; reached != SK_ALL_RUNS && c < SK_BLOCK_CELLS; c++) {
        fill[c] = closed[c] ? -1.0f : 0.0f;
        depth[c] = -1.0f;
        kinds[c] = closed[c] ? SK_CELL_SOLID : SK_CELL_AIR;
    }

    /* Fill, depth and occupation of the other runs. */
    SK_EACH_RUN(c, reached)
    {
        f8 mass = f8_load(density + c), room = 1.0f - f8_load(blurred + c);
        f8 filled = mass / f8_max(room, f8_splat(0.05f));
        i8 open = i8_from_bytes(closed + c) == 0, kind = ~open & SK_CELL_SOLID;
        f8 below = liquid_depths(filled);
        f8_store(fill + c, f8_select(open, filled, f8_splat(-1.0f)));
        f8_store(depth + c, f8_select(open, below, f8_splat(-1.0f)));
        if (with_volumes) {
            kernel_sum += d8_from_f8(f8_min(mass, room));
            /* The part of the cell below the surface, from the depth of its centre. */
            f8 part = f8_min(f8_max(0.5f + below, f8_splat(0.0f)), f8_splat(1.0f));
            surface_sum += d8_from_f8(f8_select(open, part, f8_splat(0.0f)));
        }
        if (start) {
            i8 first, next;
            memcpy(&first, start + c, sizeof first);
            memcpy(&next, start + c + 1, sizeof next);
            i8 occupied = next != first;
            kind |= occupied & SK_CELL_OCCUPIED;
            if (with_volumes) {
                counted_sum += d8_from_f8(f8_min(f8_from_i8(next - first) * full, f8_splat(1.0f)));
                occupied_sum += d8_from_f8(f8_from_i8(-occupied));
            }
        }
        i8_to_bytes(kinds + c, kind);
    }

    /* is_covered(): few runs have such cells. */
    SK_EACH_RUN(c, covered_near(step, block) ? reached : 0)
    for (unsigned left = i8_bits((i8_from_bytes(covered + c) != 0) & (i8_from_bytes(closed + c) == 0)); left;
         left &= left - 1) {
        const int own = c + __builtin_ctz(left);
        fill[own] = covered_fill(step, (sk_plain_cell){block, own});
        depth[own] = sk_surface_depth(fill[own]);
    }

    const int mirrored = with_volumes && solid && step->scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    volumes->kernel = mirrored ? mirrored_volume(step, block) : d8_sum(kernel_sum);
    volumes->counted = d8_sum(counted_sum);
    volumes->surface = d8_sum(surface_sum);
    volumes->occupied = (int64_t)d8_sum(occupied_sum);
}

/* Ghost-fluid surface: a cell is liquid if its centre lies below the surface (half full by the kernel) or if it is a
 * hole. A hole is less than half full but has no empty neighbour across an open face. Voxels: every open cell that
 * holds a particle is liquid, and so is every half full cell whose kernel an obstacle cuts: it may hold none. */
static int64_t classify_block(const sk_step *step, int block, uint8_t *kinds_out)
{
    const sk_grid *grid = &step->grid;
    const uint64_t reached = grid->runs[SK_RUNS_REACHED][block];
    uint64_t liquid_runs = 0, thin_runs = 0;
    const float *fill = grid->fields[SK_FIELD_FILL] + (size_t)block * SK_BLOCK_CELLS;
    const uint8_t *kinds = grid->kinds + (size_t)block * SK_BLOCK_CELLS;
    const int voxel = step->scene->pressure.surface == SELKIE_SURFACE_VOXEL;
    const int slot = step->solids.block_slot[block], obstacles = !step->solids.plain[slot];
    const float *blurred = step->solids.blurred + (size_t)slot * SK_BLOCK_CELLS;
    int liquid = 0;

    /* Liquid cells, and runs with thin cells. */
    if (reached != SK_ALL_RUNS)
        memcpy(kinds_out, kinds, SK_BLOCK_CELLS);
    SK_EACH_RUN(c, reached)
    {
        i8 kind = i8_from_bytes(kinds + c), open = (kind & SK_CELL_KIND_MASK) != SK_CELL_SOLID;
        f8 filled = f8_load(fill + c);
        i8 is_liquid = open & (voxel ? (kind & SK_CELL_OCCUPIED) != 0 : filled >= 0.5f);
        if (voxel && obstacles)
            is_liquid |= open & (f8_load(blurred + c) > 0.0f) & (filled >= 0.5f);
        const unsigned bits = i8_bits(is_liquid);
        liquid += __builtin_popcount(bits);
        liquid_runs |= (uint64_t)(bits != 0) << (c / 8);
        thin_runs |= (uint64_t)i8_any(open & ~is_liquid & (filled > 0.0f)) << (c / 8);
        i8_to_bytes(kinds_out + c, (is_liquid & ((kind & ~SK_CELL_KIND_MASK) | SK_CELL_LIQUID)) | (~is_liquid & kind));
    }
    grid->runs[SK_RUNS_LIQUID][block] = liquid_runs;
    if (voxel || !thin_runs)
        return liquid;

    /* Holes among the thin cells. */
    const int vents = block_has_vents(step, block);
    uint8_t tile[SK_TILE_VALUES(1)];
    const sk_tile_rows rows = sk_tile_rows_around(thin_runs);
    sk_tile_load_rows_bytes(grid, grid->kinds, block, &rows, tile);
    float beside_solids[SELKIE_DIM][SK_TILE_VALUES(1)];
    const float *fraction[SELKIE_DIM];
    load_fractions(step, block, &rows, beside_solids, fraction);
    SK_EACH_RUN(c, thin_runs)
    {
        i8 kind = i8_from_bytes(kinds_out + c);
        i8 hole = (f8_load(fill + c) > 0.0f) & ((kind & SK_CELL_KIND_MASK) == SK_CELL_AIR);
        int node = node_of(c);
        /* Test y first: most cells that are no holes fail there. */
        for (int e = 1; e <= SELKIE_DIM && i8_any(hole); e++)
            for (int side = -1; side <= 1; side += 2) {
                const int d = e % SELKIE_DIM;
                i8 other = i8_from_bytes(tile + node + side * node_step[d]);
                i8 closed = f8_load(fraction[d] + node + (side > 0 ? node_step[d] : 0)) == 0.0f;
                hole &= ((other & SK_CELL_OCCUPIED) != 0) | closed;
            }
        if (vents) /* air has come there, and is no hole */
            hole &= i8_from_bytes(step->solids.vents + (size_t)slot * SK_BLOCK_CELLS + c) == 0;
        const unsigned bits = i8_bits(hole);
        if (!bits)
            continue;
        i8_to_bytes(kinds_out + c, (hole & ((kind & ~SK_CELL_KIND_MASK) | SK_CELL_LIQUID)) | (~hole & kind));
        liquid += __builtin_popcount(bits);
        liquid_runs |= UINT64_C(1) << (c / 8);
    }
    grid->runs[SK_RUNS_LIQUID][block] = liquid_runs;
    return liquid;
}

static selkie_code classify(sk_step *step, const int with_volumes, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    size_t blocks = (size_t)grid->block_count;
    void *scratch;
    SK_TRY(sk_step_scratch(step, blocks * (sizeof(block_volumes) + SK_BLOCK_CELLS), "classify", &scratch, error));
    block_volumes *volumes = scratch;
    uint8_t *kinds = (uint8_t *)(volumes + blocks);

    /* In a repeated correction most blocks have not changed. */
    const int only_changes = !with_volumes && step->density_passes > 0 && !step->solids.obstacle_count;

    /* Measure, then classify: a cell needs its neighbours' occupation. */
    sk_deal deal;
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    if (!only_changes || grid->changes[b] & SK_BLOCK_NEAR)
        measure_block(step, b, with_volumes, &volumes[b]);
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    {
        if (only_changes && !(grid->changes[b] & SK_BLOCK_NEAR))
            continue;
        volumes[b].liquid = classify_block(step, b, kinds + (size_t)b * SK_BLOCK_CELLS);
        grid->block_flags[b] = volumes[b].liquid ? SK_BLOCK_LIQUID : 0;
    }
    const sk_run_masks liquid = sk_whole_runs(grid->runs[SK_RUNS_LIQUID], grid->block_count);

    /* Copy the content: both arrays must keep their addresses. Block 0 is air. */
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int b = 1; b < grid->block_count; b++) {
        if (!only_changes || grid->changes[b] & SK_BLOCK_NEAR)
            memcpy(grid->kinds + (size_t)b * SK_BLOCK_CELLS, kinds + (size_t)b * SK_BLOCK_CELLS, SK_BLOCK_CELLS);
        grid->runs[SK_RUNS_NEAR][b] = sk_runs_around(grid, liquid, b);
    }

    /* Sums in block order. */
    if (!with_volumes)
        return SELKIE_OK;
    step->exchanged = step->emitted - step->drained;
    step->kernel_volume = step->counted_volume = step->surface_volume = 0.0;
    step->occupied_cells = step->liquid_cells = 0;
    for (int b = 1; b < grid->block_count; b++) {
        step->kernel_volume += volumes[b].kernel;
        step->counted_volume += volumes[b].counted;
        step->surface_volume += volumes[b].surface;
        step->occupied_cells += volumes[b].occupied;
        step->liquid_cells += volumes[b].liquid;
    }
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_classify)(sk_step *step, selkie_error *error)
{
    return classify(step, 1, error);
}

/* Finds the liquid before positions are corrected. The volumes are measured after the correction. */
selkie_code SK_DIM(sk_classify_cells)(sk_step *step, selkie_error *error)
{
    return classify(step, 0, error);
}
