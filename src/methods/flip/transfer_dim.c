/* Sorting, solids and transfers as phases, and what kind of cell each one is. */
#include <math.h>

#include "base/dimension.h"
#include "grid/grid_kernels.h"
#include "grid/tile.h"
#include "methods/flip/flip.h"

static sk_transfer_options transfer_options(const sk_step *step)
{
    sk_transfer_options options = {SK_TRANSFER_FLIP, (float)step->scene->flip_ratio, 1.0f / (float)step->particles_per_cell, step->threads};
    if (step->scene->method == SELKIE_METHOD_PIC)
        options.kind = SK_TRANSFER_PIC;
    if (step->scene->method == SELKIE_METHOD_APIC)
        options.kind = SK_TRANSFER_APIC;
    return options;
}

selkie_code SK_DIM(sk_flip_sort)(sk_step *step, selkie_error *error)
{
    return SK_DIM(sk_grid_sort)(&step->grid, &step->particles, step->threads, error);
}

/* Solids stand where they will be at the end of the step: that is where the liquid must not go. */
selkie_code SK_DIM(sk_flip_solids)(sk_step *step, selkie_error *error)
{
    sk_solids_move(&step->solids, step->time + step->dt);
    return SK_DIM(sk_solids_update)(&step->solids, &step->grid, step->threads, error);
}

selkie_code SK_DIM(sk_flip_to_grid)(sk_step *step, selkie_error *error)
{
    sk_transfer_options options = transfer_options(step);
    return SK_DIM(sk_transfer_to_grid)(&step->grid, &step->particles, &options, error);
}

selkie_code SK_DIM(sk_flip_to_particles)(sk_step *step, selkie_error *error)
{
    sk_transfer_options options = transfer_options(step);
    SK_TRY(SK_DIM(sk_transfer_to_particles)(&step->grid, &step->particles, &options, &step->sums, error));
    if (step->sums.bad)
        return sk_fail(error, SELKIE_ERROR_DIVERGED,
                       "step %lld at %g s: the velocity of %lld particles is not a number; the simulation blew up; try a "
                       "smaller time.step or time.cfl", (long long)step->step_count + 1, step->time, (long long)step->sums.bad);
    return SELKIE_OK;
}

typedef struct block_volumes {
    double kernel, counted, surface;
    int64_t occupied, liquid;
} block_volumes;

/* Fill, occupation and what is solid, cell by cell. Which cells are liquid needs the neighbours and comes after. */
static void measure_block(const sk_step *step, int block, block_volumes *volumes)
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    size_t base = (size_t)block * SK_BLOCK_CELLS, solid = (size_t)solids->block_slot[block] * SK_BLOCK_CELLS;
    const float *density = grid->fields[SK_FIELD_DENSITY] + base, *blurred = solids->blurred + solid;
    float *fill = grid->fields[SK_FIELD_FILL] + base;
    const uint32_t *start = block <= grid->particle_blocks ? grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS : NULL;
    const uint8_t *closed = solids->closed + solid;
    double kernel = 0.0, counted = 0.0, surface = 0.0;
    int64_t occupied = 0;
    const float full = 1.0f / (float)step->particles_per_cell;
    for (int row = 0; row < SK_BLOCK_CELLS; row += SK_BLOCK_N) {
        /* A row in single precision, rows in double: the sums stay exact enough and the rows stay vectors. */
        float kernel_row = 0.0f, surface_row = 0.0f;
        for (int c = row; c < row + SK_BLOCK_N; c++) {
            float room = 1.0f - blurred[c];
            kernel_row += density[c] < room ? density[c] : room;
            fill[c] = closed[c] ? -1.0f : density[c] / (room > 0.05f ? room : 0.05f);
            /* The part of the cell below the surface, as the depth of its centre says. */
            float part = 0.5f + sk_surface_depth(density[c] / (room > 0.05f ? room : 0.05f));
            surface_row += closed[c] || part < 0.0f ? 0.0f : part > 1.0f ? 1.0f : part;
        }
        kernel += kernel_row;
        surface += surface_row;
    }
    uint8_t *kinds = grid->kinds + base;
    for (int c = 0; c < SK_BLOCK_CELLS; c++)
        kinds[c] = closed[c] ? SK_CELL_SOLID : SK_CELL_AIR;
    for (int c = 0; start && c < SK_BLOCK_CELLS; c++) {
        uint32_t count = start[c + 1] - start[c];
        counted += (float)count * full < 1.0f ? (float)count * full : 1.0f;
        occupied += count > 0;
        kinds[c] |= count ? SK_CELL_OCCUPIED : 0;
    }
    volumes->kernel = kernel;
    volumes->counted = counted;
    volumes->surface = surface;
    volumes->occupied = occupied;
}

/* With the ghost-fluid surface a cell is liquid if its centre lies below the surface (half full by the kernel), or if it
 * is a hole in the liquid: thinner, but without an empty neighbour. Voxels: every open cell that holds a particle. */
static int64_t classify_block(const sk_step *step, int block, uint8_t *kinds_out)
{
    enum { N1 = SK_TILE_N(1), N1_Z = N1 * N1 };
    const sk_grid *grid = &step->grid;
    const float *fill = grid->fields[SK_FIELD_FILL] + (size_t)block * SK_BLOCK_CELLS;
    int voxel = step->scene->pressure.surface == SELKIE_SURFACE_VOXEL;
    uint8_t tile[SK_TILE_VALUES(1)];
    if (!voxel)
        sk_tile_load_bytes(grid, grid->kinds, block, 1, tile);
    int64_t liquid = 0;
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        uint8_t kind = grid->kinds[(size_t)block * SK_BLOCK_CELLS + (size_t)c];
        int is_liquid = 0;
        if ((kind & SK_CELL_KIND_MASK) != SK_CELL_SOLID) {
            if (voxel) {
                is_liquid = (kind & SK_CELL_OCCUPIED) != 0;
            } else if (fill[c] >= 0.5f) {
                is_liquid = 1;
            } else if (fill[c] > 0.0f) {
                int node = SK_TILE_ORIGIN(1) + (c & SK_BLOCK_MASK) + N1 * ((c >> SK_BLOCK_LOG & SK_BLOCK_MASK) + N1 * (c >> (2 * SK_BLOCK_LOG)));
                const int around[6] = {-1, 1, -N1, N1, -N1_Z, N1_Z};
                is_liquid = 1;
                for (int n = 0; n < 2 * SELKIE_DIM; n++) {
                    uint8_t other = tile[node + around[n]];
                    is_liquid &= (other & SK_CELL_OCCUPIED) != 0 || (other & SK_CELL_KIND_MASK) == SK_CELL_SOLID;
                }
            }
        }
        liquid += is_liquid;
        kinds_out[c] = is_liquid ? (uint8_t)((kind & ~SK_CELL_KIND_MASK) | SK_CELL_LIQUID) : kind;
    }
    return liquid;
}

selkie_code SK_DIM(sk_flip_classify)(sk_step *step, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    size_t blocks = (size_t)grid->block_count;
    block_volumes *volumes = sk_allocate_zeroed(step->memory, blocks * sizeof *volumes);
    uint8_t *kinds = sk_allocate(step->memory, blocks * SK_BLOCK_CELLS);
    if (!volumes || !kinds) {
        sk_release(step->memory, volumes);
        sk_release(step->memory, kinds);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "classify: no memory for %zu blocks", blocks);
    }
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 8)
    for (int b = 1; b < grid->block_count; b++)
        measure_block(step, b, &volumes[b]);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 8)
    for (int b = 1; b < grid->block_count; b++) {
        volumes[b].liquid = classify_block(step, b, kinds + (size_t)b * SK_BLOCK_CELLS);
        grid->block_flags[b] = volumes[b].liquid ? SK_BLOCK_LIQUID : 0;
    }
    /* Both arrays stay: only the content is exchanged, and block 0 is air. */
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int b = 1; b < grid->block_count; b++)
        memcpy(grid->kinds + (size_t)b * SK_BLOCK_CELLS, kinds + (size_t)b * SK_BLOCK_CELLS, SK_BLOCK_CELLS);
    step->kernel_volume = step->counted_volume = step->surface_volume = 0.0;
    step->occupied_cells = step->liquid_cells = 0;
    for (int b = 1; b < grid->block_count; b++) {
        step->kernel_volume += volumes[b].kernel;
        step->counted_volume += volumes[b].counted;
        step->surface_volume += volumes[b].surface;
        step->occupied_cells += volumes[b].occupied;
        step->liquid_cells += volumes[b].liquid;
    }
    sk_release(step->memory, volumes);
    sk_release(step->memory, kinds);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_flip_forces)(sk_step *step, selkie_error *error)
{
    (void)error;
    sk_grid *grid = &step->grid;
    double kick = sk_step_kick(step);
    for (int d = 0; d < SELKIE_DIM; d++) {
        float gain = (float)(step->scene->gravity[d] * kick), *velocity = grid->fields[SK_FIELD_VELOCITY_X + d];
        if (gain == 0.0f)
            continue;
        int64_t end = (int64_t)grid->block_count * SK_BLOCK_CELLS;
#pragma omp parallel for num_threads(step->threads) schedule(static)
        for (int64_t c = SK_BLOCK_CELLS; c < end; c++)
            velocity[c] += gain; /* unknown stays unknown */
    }
    return SELKIE_OK;
}
