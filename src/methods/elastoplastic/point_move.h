/* Moves points with their velocities, around obstacles and inside walls, and adds up what the world reports. For files
 * compiled per dimension. */
#ifndef SK_METHODS_POINT_MOVE_H
#define SK_METHODS_POINT_MOVE_H

#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/sweep.h"
#include "methods/elastoplastic/point_move_plain.h"
#include "methods/step.h"
#include "particles/leavers.h"

#define SK_MOVE_INLINE static inline __attribute__((unused))

typedef struct sk_point_moving {
    const sk_step *step;
    float dt;                 /* s */
    float low[3], high[3];    /* m  bounds inside closed walls */
    int lists;                /*    note the cells of moved points for the next sort */
    sk_point_move_sums *sums; /* [blocks] */
} sk_point_moving;

SK_MOVE_INLINE selkie_code sk_begin_moving(sk_step *step, sk_point_moving *moving, selkie_error *error)
{
    *moving = (sk_point_moving){.step = step, .dt = (float)step->dt};
    sk_solids_bounds(&step->solids, &step->grid, moving->low, moving->high);
    return sk_step_scratch(step, ((size_t)step->grid.particle_blocks + 1) * sizeof *moving->sums, "move of points",
                           (void **)&moving->sums, error);
}

/* Lists points that leave their block, for the next sort: if few will, and if the last sort made room. */
SK_MOVE_INLINE selkie_code sk_begin_lists(sk_step *step, sk_point_moving *moving, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    const size_t count = (size_t)step->particles.count;
    moving->lists = sk_step_is_calm(step, step->dt) && grid->cell_key_capacity >= count + SK_WIDE &&
                    grid->key_capacity >= count && grid->order_capacity >= count;
    return moving->lists ? sk_grid_reserve_leavers(&step->grid, error) : SELKIE_OK;
}

/* Notes the cell of point p of a block, which was in the cell `home`. */
SK_MOVE_INLINE void sk_note_cell(const sk_point_moving *moving, int block, size_t p, int home, const float position[3])
{
    const sk_grid *grid = &moving->step->grid;
    const float inverse = (float)(1.0 / grid->cell_size);
    int cell = 0, leaves = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float g = (position[d] - (float)grid->corner[d]) * inverse;
        const int i = g >= 0.0f ? (int)g - grid->coordinates[block][d] * SK_BLOCK_N : -1;
        leaves |= i < 0 || i >= SK_BLOCK_N;
        cell |= (i & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
    }
    grid->cell_keys[p] = (uint16_t)(cell | (leaves ? SK_LEAVES : 0) | (leaves || cell != home ? SK_STRAYS : 0));
}

/* The new block of a point relative to its old one (leavers.h); UINT32_MAX: beyond the grid or the reach. */
SK_MOVE_INLINE uint32_t sk_new_block(const sk_grid *grid, int block, const float position[3])
{
    const float inverse = (float)(1.0 / grid->cell_size);
    uint32_t relative = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float g = (position[d] - (float)grid->corner[d]) * inverse;
        if (!(g >= 0.0f && g < (float)(grid->blocks[d] * grid->extent[d])))
            return UINT32_MAX;
        const int offset = ((int)g >> SK_BLOCK_LOG) - grid->coordinates[block][d] + SK_LEAVER_REACH;
        if (offset < 0 || offset >= 2 * SK_LEAVER_REACH)
            return UINT32_MAX;
        relative |= (uint32_t)offset << (d * SK_LEAVER_BITS);
    }
    return relative;
}

/* Lists the points of a block whose cells say that they left it, in their order. */
SK_MOVE_INLINE void sk_list_leavers(sk_step *step, const sk_point_moving *moving, int block)
{
    sk_grid *grid = &step->grid;
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    typedef uint16_t key_lanes __attribute__((vector_size(2 * SK_WIDE)));
    int32_t count = 0, wrong = moving->sums[block].gone != 0;
    for (uint32_t batch = start[0]; batch < start[SK_BLOCK_CELLS]; batch += SK_WIDE) {
        key_lanes keys; /* there is room for a whole batch beyond the last */
        memcpy(&keys, grid->cell_keys + batch, sizeof keys);
        if (!iw_any((__builtin_convertvector(keys, iw) & SK_LEAVES) != 0))
            continue;
        for (uint32_t p = batch; p < batch + SK_WIDE && p < start[SK_BLOCK_CELLS]; p++) {
            if (!(grid->cell_keys[p] & SK_LEAVES))
                continue;
            const uint32_t relative = sk_new_block(grid, block, step->particles.records[p].position);
            wrong |= relative == UINT32_MAX;
            grid->keys[start[0] + (uint32_t)count] = relative;
            grid->order[start[0] + (uint32_t)count++] = p;
        }
    }
    grid->leavers[block] = wrong ? -1 : count;
}

/* Keeps the path of a point out of obstacles. */
SK_MOVE_INLINE void sk_sweep_point(const sk_point_moving *moving, const float from[3], float clearance,
                                   sk_particle *point)
{
    const sk_solids *solids = &moving->step->solids;
    sk_swept_path path = {.end = 1.0, .deepest = INFINITY};
    sk_touch touch;
    float travelled = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++) {
        travelled += fabsf(point->position[d] - from[d]);
        path.from[d] = from[d];
        path.to[d] = point->position[d];
        path.low[d] = moving->low[d];
        path.high[d] = moving->high[d];
    }
    if (travelled < clearance * (float)solids->cell_size || !sk_sweep(solids, &path, &touch))
        return;
    memcpy(point->position, path.to, SELKIE_DIM * sizeof(float));
    sk_sweep_stop(solids, &touch, point->position, point->velocity);
}

/* Moves a point with its velocity and adds it to the sums of its block. */
SK_MOVE_INLINE void sk_move_point(const sk_point_moving *moving, float clearance, sk_particle *point,
                                  sk_point_move_sums *sums)
{
    const float from[3] = {point->position[0], point->position[1], point->position[2]};
    sk_advance_point(&moving->step->grid, moving->low, moving->high, moving->dt, point);
    if (moving->step->solids.obstacle_count && !(point->flags & SK_PARTICLE_DEAD))
        sk_sweep_point(moving, from, clearance, point);
    sk_add_moved_point(point, sums);
}

/* Adds up the blocks in their order. */
SK_MOVE_INLINE selkie_code sk_end_moving(sk_step *step, const sk_point_moving *moving, selkie_error *error)
{
    double fastest2 = 0.0, kinetic = 0.0;
    int64_t bad = 0;
    sk_particles_moved(&step->particles);
    step->grid.leavers_at = moving->lists ? step->particles.moves : 0;
    memcpy(step->positions_before, step->positions, sizeof step->positions);
    memset(step->positions, 0, sizeof step->positions);
    for (int block = 1; block <= step->grid.particle_blocks; block++) {
        const sk_point_move_sums *sums = &moving->sums[block];
        step->drained += sums->gone;
        bad += sums->bad;
        kinetic += sums->kinetic;
        fastest2 = fmax(fastest2, sums->fastest2);
        for (int d = 0; d < SELKIE_DIM; d++)
            step->positions[d] += sums->position[d];
    }
    step->sums.kinetic = kinetic;
    step->sums.max_speed = sqrt(fastest2);
    step->sums.bad = bad;
    if (bad)
        return sk_fail(error, SELKIE_ERROR_DIVERGED,
                       "step %lld at %g s: the velocity of %lld points is not a number; the simulation blew up; try a "
                       "smaller time.cfl",
                       (long long)step->step_count + 1, step->time, (long long)bad);
    return SELKIE_OK;
}

#endif
