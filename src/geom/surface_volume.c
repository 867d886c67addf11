/* The level set of a cloud of particles and their velocity as blocks of nodes, without triangles. */
#include "geom/surface_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Kernel means of up to three values at all nodes near particles, into arrays with `step` numbers a node. */
static selkie_code fill_means(sk_surface_grid *grid, int count, const sk_surface_value *values, float *const to[3],
                              size_t step, selkie_error *error)
{
    f4(*sums)[sk_node_count] = sk_allocate(NULL, (grid->block_count + 1) * sizeof *sums);
    if (!sums)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory, %.1f MiB for values of the particles",
                       (double)grid->block_count * sizeof *sums / 1048576.0);
    /* Particles deep inside count too. */
    memset(grid->deep, 0, grid->block_count * sizeof *grid->deep);
    const selkie_code code = sk_surface_sum_values(grid, count, values, sums, error);
    if (!code) {
#pragma omp parallel for num_threads(grid->threads) schedule(static)
        for (size_t b = 0; b < grid->block_count; ++b)
            for (size_t i = 0; i < sk_node_count; ++i)
                for (int v = 0; v < count; ++v) {
                    const f4 sum = sums[b][i];
                    const float mean = sum[0] > 1e-4f ? sum[v + 1] / sum[0] : NAN;
                    to[v][(b * sk_node_count + i) * step] = values[v].is_whole ? roundf(mean) : mean;
                }
    }
    sk_release(NULL, sums);
    return code;
}

static selkie_code fill_velocity(sk_surface_grid *grid, const sk_surface_particles *particles, sk_volume *volume,
                                 selkie_error *error)
{
    float *v = volume->velocity = sk_allocate(NULL, (grid->block_count + 1) * 3 * sk_node_count * sizeof(float));
    if (!v)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory, %.1f MiB for velocities",
                       (double)grid->block_count * 3 * sk_node_count * 4 / 1048576.0);
    sk_surface_value values[3];
    for (int a = 0; a < 3; ++a)
        values[a] = (sk_surface_value){"velocity", particles->velocity + a, particles->velocity_stride, 0};
    return fill_means(grid, 3, values, (float *const[3]){v, v + 1, v + 2}, 3, error);
}

static selkie_code fill_values(sk_surface_grid *grid, int count, const sk_surface_value *values, sk_volume *volume,
                               selkie_error *error)
{
    for (int first = 0; first < count && first < SK_MESH_MOST_VALUES; first += 3) {
        const int most = count < SK_MESH_MOST_VALUES ? count : SK_MESH_MOST_VALUES,
                  here = most - first < 3 ? most - first : 3;
        float *to[3] = {NULL, NULL, NULL};
        for (int v = 0; v < here; ++v) {
            sk_mesh_value *value = &volume->values[volume->value_count++];
            snprintf(value->name, sizeof value->name, "%s", values[first + v].name);
            to[v] = value->data = sk_allocate(NULL, (grid->block_count + 1) * sk_node_count * sizeof(float));
            if (!to[v])
                return sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory for %zu blocks", grid->block_count);
        }
        SK_TRY(fill_means(grid, here, values + first, to, 1, error));
    }
    return SELKIE_OK;
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

selkie_code sk_surface_volume(const sk_surface_particles *particles, const sk_surface_options *options, int count,
                              const sk_surface_value *values, sk_volume *volume, selkie_error *error)
{
    sk_surface_grid grid;
    memset(volume, 0, sizeof *volume);
    selkie_code code = sk_surface_prepare(&grid, particles, options, error);
    if (!code) {
        const double metre = cbrt(grid.voxel[0] * grid.voxel[1] * grid.voxel[2]);
        close_at_walls(&grid, (float)metre);
        volume->background = (float)(metre * (double)SK_SURFACE_BAND);
        memcpy(volume->origin, grid.origin, sizeof volume->origin);
        memcpy(volume->voxel, grid.voxel, sizeof volume->voxel);
        if (particles->velocity)
            code = fill_velocity(&grid, particles, volume, error);
        if (!code)
            code = fill_values(&grid, count, values, volume, error);

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
    for (int v = 0; v < volume->value_count; ++v)
        sk_release(NULL, volume->values[v].data);
    memset(volume, 0, sizeof *volume);
}
