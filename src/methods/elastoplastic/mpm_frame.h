/* What the phases of mpm share: attributes of points, tiles of blocks, sums. For files compiled per dimension. */
#ifndef SK_METHODS_MPM_FRAME_H
#define SK_METHODS_MPM_FRAME_H

#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/plain.h"
#include "methods/elastoplastic/elastic_kernels.h"
#include "methods/elastoplastic/mpm.h"
#include "methods/elastoplastic/mpm_kernels.h"
#include "methods/elastoplastic/point_move.h"

#define SK_MPM_INLINE static inline __attribute__((unused))

enum {
    SK_MPM_MATRIX = SELKIE_DIM * SELKIE_DIM,
    SK_MPM_TILE_N = SK_BLOCK_N + 2, /* a halo of one node around the block */
    SK_MPM_TILE_NZ = SELKIE_DIM == 3 ? SK_MPM_TILE_N : 1,
    SK_MPM_TILE = SK_MPM_TILE_N * SK_MPM_TILE_N * SK_MPM_TILE_NZ
};

/* Attributes of mpm (sk_mpm_own). */
typedef struct sk_mpm_attributes {
    float *deformation; /* [count][SK_MPM_MATRIX] */
    float *affine;      /* [count][SK_MPM_MATRIX] 1/s */
    float *plastic_strain, *plastic_volume, *stress;
} sk_mpm_attributes;

/* Records and attributes of the points. What mpm adds lies in the rows of `order` after a sort of records alone, and
 * goes to the rows of the records in `next`: by `to_grid` the last three, by `to_points` the first two. */
typedef struct sk_mpm_points {
    sk_particle *records;
    const uint32_t *material; /* NULL = all of the first */
    const uint32_t *order;    /* NULL = the order of the records, and `next` is `now` */
    sk_mpm_attributes now, next;
} sk_mpm_points;

/* Row of a point's attributes. */
SK_MPM_INLINE size_t sk_mpm_row(const sk_mpm_points *points, size_t p)
{
    return points->order ? points->order[p] : p;
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

/* First of the 3^dimension nodes of a cell's points, in the tile of its block. */
SK_MPM_INLINE int sk_mpm_first_node(int cell)
{
    return (cell & SK_BLOCK_MASK) + SK_MPM_TILE_N * (cell >> SK_BLOCK_LOG & SK_BLOCK_MASK) +
           (SELKIE_DIM == 3 ? SK_MPM_TILE_N * SK_MPM_TILE_N * (cell >> (2 * SK_BLOCK_LOG)) : 0);
}

/* Node n of the 3^dimension, counted from the first in the tile. */
SK_MPM_INLINE int sk_mpm_node(int n)
{
    return n % 3 + SK_MPM_TILE_N * (n / 3 % 3) + (SELKIE_DIM == 3 ? SK_MPM_TILE_N * SK_MPM_TILE_N * (n / 9) : 0);
}

/* Centre of a cell, in cells from the grid's corner. */
SK_MPM_INLINE void sk_mpm_centre(const sk_grid *grid, int block, int cell, float centre[3])
{
    centre[2] = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        centre[d] =
            (float)(grid->coordinates[block][d] * SK_BLOCK_N + (cell >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK)) + 0.5f;
}

/* Place of a point from the centre of its cell, in cells. Rounding may leave it a little beyond half a cell. */
SK_MPM_INLINE void sk_mpm_offset(const sk_grid *grid, const float centre[3], const float position[3], float offset[3])
{
    const float inverse = (float)(1.0 / grid->cell_size);
    offset[2] = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        offset[d] = (position[d] - (float)grid->corner[d]) * inverse - centre[d];
}

/* --- to_grid --- */

typedef struct sk_mpm_law_sums {
    double energy, work; /* J/m3 times the number of points */
    float wave_speed;    /* m/s  */
} sk_mpm_law_sums;

typedef struct sk_mpm_giving {
    const sk_grid *grid;
    const sk_mpm *mpm;
    sk_mpm_points points;
    float dt, kick; /* s  of plastic flow, and of forces */
    float cell_size;
    sk_mpm_law_sums *sums; /* [blocks] */
} sk_mpm_giving;

SK_MPM_INLINE const sk_elastic_material *sk_mpm_material(const sk_mpm *mpm, const sk_mpm_points *points, uint32_t p)
{
    return &mpm->materials[points->material ? points->material[p] : 0];
}

/* Plastic flow and stress of a point, and what it gives. */
static inline __attribute__((always_inline, unused)) void sk_mpm_make_gift(const sk_mpm_giving *giving, uint32_t p,
                                                                           sk_mpm_law_sums *sums, sk_mpm_gift *gift)
{
    const sk_mpm_points *points = &giving->points;
    const sk_elastic_material *material = sk_mpm_material(giving->mpm, points, p);
    const size_t row = sk_mpm_row(points, p);
    const float *affine = points->now.affine + row * SK_MPM_MATRIX;
    const float factor = giving->kick * material->inverse_density / giving->cell_size;
    sk_plastic_state state = {points->now.plastic_strain[row], points->now.plastic_volume[row]};
    sk_elastic_result result;
    SK_DIM(sk_elastic_point)(material, giving->dt, points->now.deformation + row * SK_MPM_MATRIX, &state, &result);
    points->next.plastic_strain[p] = state.strain;
    points->next.plastic_volume[p] = state.volume;
    points->next.stress[p] = result.equivalent;
    sums->energy += result.energy;
    sums->work += result.work;
    sums->wave_speed = fmaxf(sums->wave_speed, result.wave_speed);
    gift->mass = material->relative_mass;
    for (int d = 0; d < 3; d++)
        gift->velocity[d] = points->records[p].velocity[d];
    for (int n = 0; n < SK_MPM_MATRIX; n++) {
        gift->slope[n] = giving->cell_size * affine[n];
        gift->push[n] = factor * result.stress[n];
    }
}

SK_MPM_INLINE selkie_code sk_mpm_begin_giving(sk_step *step, sk_mpm_giving *giving, selkie_error *error)
{
    sk_mpm *mpm = sk_mpm_of(step);
    const size_t blocks = (size_t)step->grid.particle_blocks + 1;
    SK_TRY(sk_reserve(step->memory, (void **)&mpm->tiles, &mpm->tile_capacity, blocks * SK_MPM_TILE, sizeof *mpm->tiles,
                      "tiles of the nodes", error));
    *giving = (sk_mpm_giving){.grid = &step->grid,
                              .mpm = mpm,
                              .points = sk_mpm_points_of(step),
                              .dt = (float)step->last_dt,
                              .kick = (float)sk_step_kick(step),
                              .cell_size = (float)step->grid.cell_size};
    return sk_step_scratch(step, blocks * sizeof *giving->sums, "to_grid", (void **)&giving->sums, error);
}

/* Adds up the blocks in their order. */
SK_MPM_INLINE void sk_mpm_end_giving(sk_step *step, const sk_mpm_giving *giving)
{
    sk_mpm_saved *saved = &sk_mpm_of(step)->saved;
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
