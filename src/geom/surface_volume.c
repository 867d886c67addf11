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
                for (int v = 0; v < count; ++v)
                    to[v][(b * sk_node_count + i) * step] = sk_volume_mean(sums[b][i], v, values[v].is_whole);
    }
    sk_release(NULL, sums);
    return code;
}

static selkie_code fill_velocity(sk_surface_grid *grid, const sk_surface_particles *particles, sk_volume *volume,
                                 selkie_error *error)
{
    float *v = volume->velocity;
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
            to[v] = sk_volume_add_value(volume, values[first + v].name, error);
            if (!to[v])
                return SELKIE_ERROR_MEMORY;
        }
        SK_TRY(fill_means(grid, here, values + first, to, 1, error));
    }
    return SELKIE_OK;
}

float *sk_volume_add_value(sk_volume *volume, const char *name, selkie_error *error)
{
    float *data = sk_allocate(NULL, (volume->block_count + 1) * sk_node_count * sizeof(float));
    if (!data || volume->value_count == SK_MESH_MOST_VALUES) {
        sk_release(NULL, data);
        (void)sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no room for the value %s in %zu blocks", name,
                      volume->block_count);
        return NULL;
    }
    sk_mesh_value *value = &volume->values[volume->value_count++];
    snprintf(value->name, sizeof value->name, "%s", name);
    value->data = data;
    return data;
}

selkie_code sk_volume_allocate(sk_volume *volume, const sk_surface_grid *grid, int with_velocity, float *metre,
                               selkie_error *error)
{
    const double length = cbrt(grid->voxel[0] * grid->voxel[1] * grid->voxel[2]);
    const size_t nodes = (grid->block_count + 1) * sk_node_count;
    *metre = (float)length;
    volume->background = (float)(length * (double)SK_SURFACE_BAND);
    memcpy(volume->origin, grid->origin, sizeof volume->origin);
    memcpy(volume->voxel, grid->voxel, sizeof volume->voxel);
    volume->block_count = grid->block_count;
    volume->coordinates = sk_allocate(NULL, (grid->block_count + 1) * sizeof *volume->coordinates);
    volume->surface = sk_allocate(NULL, nodes * sizeof(float));
    volume->velocity = with_velocity ? sk_allocate(NULL, 3 * nodes * sizeof(float)) : NULL;
    if (!volume->coordinates || !volume->surface || (with_velocity && !volume->velocity))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory, %.1f MiB for a level set",
                       (double)nodes * (with_velocity ? 16 : 4) / 1048576.0);
    return SELKIE_OK;
}

selkie_code sk_surface_volume(const sk_surface_particles *particles, const sk_surface_options *options, int count,
                              const sk_surface_value *values, sk_volume *volume, selkie_error *error)
{
    sk_surface_grid grid;
    float metre;
    memset(volume, 0, sizeof *volume);
    selkie_code code = sk_surface_prepare(&grid, particles, options, error);
    if (!code)
        code = sk_volume_allocate(volume, &grid, particles->velocity != NULL, &metre, error);
    if (!code) {
        memcpy(volume->coordinates, grid.coordinates, grid.block_count * sizeof *grid.coordinates);
#pragma omp parallel for num_threads(grid.threads) schedule(static)
        for (size_t b = 0; b < grid.block_count; ++b)
            for (int i = 0; i < sk_node_count; ++i) {
                const size_t n = b * sk_node_count + (size_t)i;
                volume->surface[n] = sk_closed_level(&grid, b, i, grid.phi[n], metre);
            }
        if (particles->velocity)
            code = fill_velocity(&grid, particles, volume, error);
        if (!code)
            code = fill_values(&grid, count, values, volume, error);
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
