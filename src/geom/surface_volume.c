/* The level set of a cloud of particles and their velocity as blocks of nodes, without triangles. */
#include "geom/surface_internal.h"

#include <math.h>
#include <string.h>

/* Kernel means of the velocities at all nodes near particles. */
static selkie_code fill_velocity(sk_surface_grid *grid, const sk_surface_particles *particles, sk_volume *volume,
                                 selkie_error *error)
{
    const size_t blocks = grid->block_count;
    float(*sorted)[3] = sk_allocate(NULL, (grid->particle_count + 1) * sizeof *sorted);
    uint8_t *marked = sk_allocate(NULL, blocks + 1);
    volume->velocity = sk_allocate(NULL, (blocks + 1) * 3 * sk_node_count * sizeof(float));
    sk_surface_sums sums = {0};
    selkie_code code = SELKIE_OK;
    if (!sorted || !marked || !volume->velocity)
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory, %.1f MiB for velocities",
                       ((double)blocks * 3 * sk_node_count + 3.0 * (double)grid->particle_count) * 4 / 1048576.0);
    if (!code) {
        /* Particles deep inside count too. */
        memset(grid->deep, 0, blocks * sizeof *grid->deep);
        memset(marked, 1, blocks);
        sk_surface_sort_vectors(grid, particles->velocity, particles->velocity_stride, sorted);
        code = sk_surface_sum(grid, marked, (const float(*)[3])sorted, &sums, error);
    }
    if (!code) {
#pragma omp parallel for num_threads(grid->threads) schedule(dynamic, 4)
        for (size_t b = 0; b < blocks; ++b) {
            f4 filtered[sk_node_count];
            sk_surface_filter(grid, &sums, 0, b, filtered);
            float *to = volume->velocity + b * 3 * sk_node_count;
            for (int i = 0; i < sk_node_count; ++i)
                for (int a = 0; a < 3; ++a)
                    to[3 * i + a] = filtered[i][0] > 1e-4f ? filtered[i][a + 1] / filtered[i][0] : NAN;
        }
        sk_surface_sums_free(&sums);
    }
    sk_release(NULL, sorted);
    sk_release(NULL, marked);
    return code;
}

/* The container ends the liquid. Distances become metres. */
static void close_at_walls(const sk_surface_grid *grid, float metre)
{
#pragma omp parallel for num_threads(grid->threads) schedule(static)
    for (size_t b = 0; b < grid->block_count; ++b)
        for (int i = 0; i < sk_node_count; ++i) {
            const int node[3] = {i & 7, i >> 3 & 7, i >> 6};
            float *phi = &grid->phi[b * sk_node_count + (size_t)i];
            for (int a = 0; a < 3; ++a) {
                const float x = (float)(grid->coordinates[b][a] * sk_node_n + node[a]);
                *phi = fmaxf(*phi, fmaxf(grid->wall_low[a] - x, x - grid->wall_high[a]));
            }
            *phi = metre * fminf(fmaxf(*phi, -SK_SURFACE_BAND), SK_SURFACE_BAND);
        }
}

selkie_code sk_surface_volume(const sk_surface_particles *particles, const sk_surface_options *options,
                              sk_volume *volume, selkie_error *error)
{
    sk_surface_grid grid;
    memset(volume, 0, sizeof *volume);
    SK_TRY(sk_surface_grid_init(&grid, options, particles->count, error));
    selkie_code code = sk_surface_bin(&grid, particles, error);
    if (!code)
        code = sk_surface_level_set(&grid, error);
    if (!code) {
        sk_surface_smooth(&grid, options->smoothing);

        const double metre = cbrt(grid.voxel[0] * grid.voxel[1] * grid.voxel[2]);
        close_at_walls(&grid, (float)metre);
        volume->background = (float)(metre * (double)SK_SURFACE_BAND);
        memcpy(volume->origin, grid.origin, sizeof volume->origin);
        memcpy(volume->voxel, grid.voxel, sizeof volume->voxel);
        if (particles->velocity)
            code = fill_velocity(&grid, particles, volume, error);

        /* The volume keeps the blocks. */
        volume->block_count = grid.block_count;
        volume->coordinates = grid.coordinates;
        volume->surface = grid.phi;
        grid.coordinates = NULL;
        grid.phi = NULL;
    }
    sk_surface_grid_free(&grid);
    if (code)
        sk_volume_free(volume);
    return code;
}

void sk_volume_free(sk_volume *volume)
{
    sk_release(NULL, volume->coordinates);
    sk_release(NULL, volume->surface);
    sk_release(NULL, volume->velocity);
    memset(volume, 0, sizeof *volume);
}
