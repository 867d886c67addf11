/* Surface of a cloud of particles: the options and the order of the steps.
 *
 *   1. blocks of 8x8x8 nodes where a particle is near, particles sorted into them (surface_bins.c)
 *   2. level set from sums over the particles (surface_sums.c, surface_field.c), made a distance and smoothed
 *      (surface_smooth.c)
 *   3. triangles (surface_mesh.c)
 *
 * Every node and every vertex is computed in a fixed order of sums: the result does not depend on the number of
 * threads.
 */
#include "geom/surface_internal.h"

#include <math.h>
#include <omp.h>
#include <string.h>

/* Blocks along an axis must fit into 21 bits of a key. */
enum { blocks_per_axis_limit = 1 << 20 };

/* Voxels over the particle spacing: coarser ones lose drops, finer ones see single particles. */
static const double finest = 2.5, coarsest = 0.4;

void sk_surface_options_init(sk_surface_options *options, const selkie_scene *scene)
{
    int cells[3];
    const double cell_size = selkie_scene_cells(scene, cells);
    const double spacing = cell_size / cbrt(selkie_scene_particles_per_cell(scene));
    const double voxel = cell_size / scene->mesh.resolution;
    *options = (sk_surface_options){.particle_spacing = spacing,
                                    .voxel_size = fmin(fmax(voxel, spacing / finest), spacing / coarsest),
                                    .smoothing = scene->mesh.smoothing,
                                    .particle_radius = scene->mesh.particle_radius};
    for (int a = 0; a < 3; ++a) {
        options->low[a] = scene->domain.origin[a];
        options->high[a] = scene->domain.origin[a] + cells[a] * cell_size;
    }
}

static selkie_code check_options(size_t particle_count, const sk_surface_options *o, selkie_error *error)
{
    if (!(o->voxel_size > 0) || !isfinite(o->voxel_size))
        return sk_fail(error, SELKIE_ERROR_INPUT, "surface: voxel_size is %g m, must be above 0", o->voxel_size);
    if (!(o->particle_spacing > 0) || !isfinite(o->particle_spacing))
        return sk_fail(error, SELKIE_ERROR_INPUT, "surface: particle_spacing is %g m, must be above 0",
                       o->particle_spacing);
    double ratio = o->particle_spacing / o->voxel_size;
    if (ratio > finest * (1 + 1e-9) || ratio < coarsest * (1 - 1e-9))
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "surface: voxel_size is %g m, must be between %g and %g m for particles %g m apart",
                       o->voxel_size, o->particle_spacing / finest, o->particle_spacing / coarsest,
                       o->particle_spacing);
    for (int a = 0; a < 3; ++a) {
        double voxels = (o->high[a] - o->low[a]) / o->voxel_size;
        if (!(voxels > 0) || !(voxels < 8.0 * (blocks_per_axis_limit - 8)) || !isfinite(o->low[a]))
            return sk_fail(error, SELKIE_ERROR_INPUT,
                           "surface: the container reaches from %g to %g m along axis %d, must be more than 0 and less "
                           "than 8 million voxels",
                           o->low[a], o->high[a], a);
    }
    if (!(o->smoothing >= 0 && o->smoothing <= 2))
        return sk_fail(error, SELKIE_ERROR_INPUT, "surface: smoothing is %g, must be from 0 to 2", o->smoothing);
    if (!(o->particle_radius >= 0 && o->particle_radius <= 2))
        return sk_fail(error, SELKIE_ERROR_INPUT, "surface: particle_radius is %g spacings, must be from 0 to 2",
                       o->particle_radius);
    if (particle_count > (size_t)UINT32_MAX)
        return sk_fail(error, SELKIE_ERROR_INPUT, "surface: %zu particles are more than a surface can be made of",
                       particle_count);
    return SELKIE_OK;
}

void sk_surface_grid_free(sk_surface_grid *grid)
{
    void *const arrays[] = {grid->coordinates, grid->neighbours, grid->points, grid->first, grid->sub_first,
                            grid->inside,      grid->deep,       grid->side,   grid->near,  grid->phi,
                            grid->other,       grid->spare,      grid->signs};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i)
        sk_release(NULL, arrays[i]);
}

selkie_code sk_surface_grid_init(sk_surface_grid *grid, const sk_surface_options *options, size_t particle_count,
                                 selkie_error *error)
{
    memset(grid, 0, sizeof *grid);
    SK_TRY(check_options(particle_count, options, error));

    /* Lengths in voxels. */
    grid->threads = options->threads > 0 ? options->threads : omp_get_max_threads();
    grid->spacing = (float)(options->particle_spacing / options->voxel_size);
    /* Seen from the flat surface of a half space of particles, their weighted mean lies `depth` below: with this
     * radius the level set is 0 there. A lone drop has the volume of its particle, but holds a node in any case. */
    sk_surface_kernel_init(&grid->kernel, grid->spacing);
    grid->radius = grid->kernel.depth;
    grid->cutoff = 1.35f * grid->spacing;
    grid->offset = 0.015f * grid->spacing;
    const float own_volume = 0.620f;
    grid->drop_radius = options->particle_radius > 0 ? (float)options->particle_radius : own_volume;
    grid->drop_radius = fmaxf(grid->drop_radius * grid->spacing, 0.88f);

    /* Place of the nodes between the walls. */
    for (int a = 0; a < 3; ++a) {
        double extent = options->high[a] - options->low[a], gap = (double)SK_SURFACE_WALL_GAP;
        double steps = fmax(floor(extent / options->voxel_size - 2 * gap + 0.5), 1);
        grid->voxel[a] = extent / (steps + 2 * gap);
        grid->origin[a] = options->low[a] - (1 - gap) * grid->voxel[a];
        grid->last[a] = 1 + (int)steps;
        grid->wall_low[a] = 1 - SK_SURFACE_WALL_GAP;
        grid->wall_high[a] = (float)(1 + steps + gap);
    }
    return SELKIE_OK;
}

selkie_code sk_surface_prepare(sk_surface_grid *grid, const sk_surface_particles *particles,
                               const sk_surface_options *options, selkie_error *error)
{
    SK_TRY(sk_surface_grid_init(grid, options, particles->count, error));
    SK_TRY(sk_surface_bin(grid, particles, error));
    SK_TRY(sk_surface_level_set(grid, error));
    sk_surface_smooth(grid, options->smoothing);
    return SELKIE_OK;
}

selkie_code sk_surface_extract(const sk_surface_particles *particles, const sk_surface_options *options, sk_mesh *mesh,
                               selkie_error *error)
{
    sk_surface_grid grid;
    memset(mesh, 0, sizeof *mesh);
    selkie_code code = sk_surface_prepare(&grid, particles, options, error);
    if (!code)
        code = sk_surface_triangulate(&grid, particles->velocity, particles->velocity_stride, options, mesh, error);
    sk_surface_grid_free(&grid);
    if (code)
        sk_mesh_free(mesh);
    return code;
}
