/* What the phases of mpm share: attributes of points, tiles of blocks, sums. For files compiled per dimension. */
#ifndef SK_METHODS_MPM_FRAME_H
#define SK_METHODS_MPM_FRAME_H

#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/plain.h"
#include "methods/elastoplastic/elastic_kernels.h"
#include "methods/elastoplastic/mpm.h"
#include "methods/elastoplastic/mpm_plain.h"
#include "methods/elastoplastic/point_move.h"

#define SK_MPM_INLINE static inline __attribute__((unused))

SK_MPM_INLINE float *sk_mpm_attribute(const sk_step *step, const char *name)
{
    const sk_attribute *attribute = sk_particles_find_attribute(&step->particles, name);
    return attribute ? (float *)(void *)attribute->data : NULL;
}

SK_MPM_INLINE sk_mpm_attributes sk_mpm_attributes_of(const sk_step *step, int next)
{
    float *data[SK_MPM_OWN];
    for (int n = 0; n < SK_MPM_OWN; n++) {
        const sk_attribute *attribute = sk_particles_find_attribute(&step->particles, sk_mpm_own[n]);
        data[n] = (float *)(void *)(next ? attribute->spare : attribute->data);
    }
    return (sk_mpm_attributes){data[0], data[1], data[2], data[3], data[4]};
}

SK_MPM_INLINE sk_mpm_points sk_mpm_points_of(const sk_step *step)
{
    const sk_attribute *material = sk_particles_find_attribute(&step->particles, "material");
    const sk_mpm *mpm = sk_mpm_of(step);
    return (sk_mpm_points){.records = step->particles.records,
                           .material = material ? material->data : NULL,
                           .order = mpm->own.lags ? mpm->own.order : NULL,
                           .now = sk_mpm_attributes_of(step, 0),
                           .next = sk_mpm_attributes_of(step, mpm->own.lags)};
}

/* --- to_grid --- */

SK_MPM_INLINE const sk_elastic_material *sk_mpm_material(const sk_mpm *mpm, const sk_mpm_points *points, uint32_t p)
{
    return &mpm->materials[points->material ? points->material[p] : 0];
}

SK_MPM_INLINE selkie_code sk_mpm_begin_giving(sk_step *step, sk_mpm_giving *giving, selkie_error *error)
{
    sk_mpm *mpm = sk_mpm_of(step);
    const size_t blocks = (size_t)step->grid.particle_blocks + 1;
    SK_TRY(sk_reserve(step->memory, (void **)&mpm->tiles, &mpm->tile_capacity, blocks * SK_MPM_TILE, sizeof *mpm->tiles,
                      "tiles of the nodes", error));
    *giving = (sk_mpm_giving){.grid = &step->grid,
                              .mpm = mpm,
                              .materials = mpm->materials,
                              .points = sk_mpm_points_of(step),
                              .dt = (float)step->last_dt,
                              .kick = (float)sk_step_kick(step),
                              .cell_size = (float)step->grid.cell_size};
    return sk_step_scratch(step, blocks * sizeof *giving->sums, "to_grid", (void **)&giving->sums, error);
}

/* Adds up the blocks in their order. */
SK_MPM_INLINE void sk_mpm_end_giving(sk_step *step, const sk_mpm_giving *giving)
{
    sk_elastic_saved *saved = &sk_mpm_of(step)->saved;
    const double volume = pow(step->grid.cell_size, SELKIE_DIM) / step->particles_per_cell;
    saved->elastic_energy = saved->wave_speed = 0.0;
    for (int block = 1; block <= step->grid.particle_blocks; block++) {
        const sk_mpm_law_sums *sums = &giving->sums[block];
        saved->elastic_energy += volume * sums->energy;
        saved->plastic_work += volume * sums->work;
        saved->wave_speed = fmax(saved->wave_speed, sums->wave_speed);
    }
}

/* --- to_points --- */

typedef struct sk_mpm_taking {
    const sk_grid *grid;
    const sk_mpm *mpm;
    sk_mpm_points points;
    float per_cell; /* 1/m  1 over the cell size */
    sk_point_moving moving;
} sk_mpm_taking;

SK_MPM_INLINE selkie_code sk_mpm_begin_taking(sk_step *step, sk_mpm_taking *taking, selkie_error *error)
{
    *taking = (sk_mpm_taking){.grid = &step->grid,
                              .mpm = sk_mpm_of(step),
                              .points = sk_mpm_points_of(step),
                              .per_cell = (float)(1.0 / step->grid.cell_size)};
    return sk_begin_moving(step, &taking->moving, error);
}

#endif
