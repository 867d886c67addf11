#include "grid/sweep.h"

#include <math.h>
#include <string.h>

#define SK_SWEEP_HIT(obstacle, a, b, hit) sk_shape_first_hit((obstacle)->shape, a, b, hit)
#define SK_SWEEP_WITHIN(obstacle, x, radius, normal) sk_shape_distance_within((obstacle)->shape, x, radius, normal)
#define SK_SWEEP_PATH sk_sweep
#include "grid/sweep_plain.h"

int sk_sweep(const sk_solids *solids, sk_swept_path *path, sk_touch *touch)
{
    return sk_sweep_path(solids, path, touch);
}

void sk_sweep_stop(const sk_solids *solids, const sk_touch *touch, const float x[3], float velocity[3])
{
    sk_sweep_stop_velocity(solids, touch, x, velocity);
}

/* --- Displacements at the start of the step --- */

int sk_sweep_displacement(const sk_solids *solids, const float low[3], const float high[3], const float from[3],
                          float to[3], double end)
{
    return sk_sweep_displaced(solids, low, high, from, to, end);
}

void sk_sweep_displaced_particle(const sk_solids *solids, sk_swept_path *path, const float before[3],
                                 sk_particle *particle)
{
    sk_sweep_moved(solids, path, before, particle);
}

void sk_sweep_keep_places(const sk_solids *solids, const sk_grid *grid, sk_particles *particles, float reach,
                          int threads)
{
    const size_t cells = (size_t)grid->block_cells;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 4)
    for (int b = 1; b <= grid->particle_blocks; b++) {
        const uint32_t *start = grid->cell_start + (size_t)(b - 1) * cells;
        if (sk_sweep_is_clear(solids, b, reach))
            continue;
        for (uint32_t p = start[0]; p < start[cells]; p++)
            memcpy(particles->spare[p].position, particles->records[p].position, sizeof particles->spare[p].position);
    }
}

void sk_sweep_places(const sk_solids *solids, const sk_grid *grid, sk_particles *particles, float reach, int threads)
{
    const size_t cells = (size_t)grid->block_cells;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 4)
    for (int b = 1; b <= grid->particle_blocks; b++) {
        const uint32_t *start = grid->cell_start + (size_t)(b - 1) * cells;
        sk_swept_path path = {.begin = 0.0};
        if (sk_sweep_is_clear(solids, b, reach))
            continue;
        sk_solids_bounds(solids, grid, path.low, path.high);
        for (size_t c = 0; c < cells; c++) {
            if (start[c] == start[c + 1] || sk_sweep_is_place_clear(solids, b, (int)c, 0.87f, reach))
                continue;
            for (uint32_t p = start[c]; p < start[c + 1]; p++)
                if (!sk_sweep_is_path_clear(solids, grid, b, (int)c, particles->spare[p].position,
                                            particles->records[p].position))
                    sk_sweep_moved(solids, &path, particles->spare[p].position, &particles->records[p]);
        }
    }
}
