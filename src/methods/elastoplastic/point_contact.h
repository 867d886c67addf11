/* Gravity, force fields, walls and obstacles on the velocity of a point. For files compiled per dimension. */
#ifndef SK_METHODS_POINT_CONTACT_H
#define SK_METHODS_POINT_CONTACT_H

#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "methods/elastoplastic/contact_kernels.h"
#include "methods/force_fields.h"
#include "methods/step.h"

#define SK_KICK_INLINE static inline __attribute__((unused))

typedef struct sk_point_kick {
    const sk_step *step;
    float time;    /* s    for which forces act */
    float gain[3]; /* m/s  of gravity */
    float reach;   /* m    points this close to a solid touch it: half a spacing, as they lie at rest */
    int field_count;
    const sk_force_field *fields;
} sk_point_kick;

SK_KICK_INLINE selkie_code sk_begin_kick(sk_step *step, double reach, sk_point_kick *kick, selkie_error *error)
{
    sk_force_field *fields;
    *kick = (sk_point_kick){.step = step, .time = (float)sk_step_kick(step), .reach = (float)(1.001 * reach)};
    SK_TRY(sk_step_scratch(step, (size_t)(sk_force_fields_most(step->scene) + 1) * sizeof *fields, "move",
                           (void **)&fields, error));
    if (sk_force_fields_most(step->scene))
        kick->field_count = sk_force_fields_in(step->scene, sk_step_force_window(step), fields);
    kick->fields = fields;
    for (int d = 0; d < SELKIE_DIM; d++)
        kick->gain[d] = (float)(sk_step_kick(step) * step->scene->gravity[d]);
    return SELKIE_OK;
}

SK_KICK_INLINE void sk_touch_walls(const sk_point_kick *kick, sk_particle *point)
{
    const sk_solids *solids = &kick->step->solids;
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const int d = side / 2, upper = side & 1;
        const float distance = upper ? (float)kick->step->grid.high[d] - point->position[d]
                                     : point->position[d] - (float)kick->step->grid.low[d];
        if (distance > kick->reach || solids->walls[side] == SELKIE_WALL_OPEN)
            continue;
        sk_solid_contact contact = {.friction = (float)solids->side_friction[side],
                                    .sticks = solids->walls[side] == SELKIE_WALL_NO_SLIP};
        contact.normal[d] = upper ? -1.0f : 1.0f;
        sk_solid_touch(&contact, SELKIE_DIM, point->velocity);
    }
}

SK_KICK_INLINE void sk_touch_obstacles(const sk_point_kick *kick, sk_particle *point)
{
    const sk_solids *solids = &kick->step->solids;
    double x[3] = {0, 0, 0}, normal[3], moves[3];
    int o;
    for (int d = 0; d < SELKIE_DIM; d++)
        x[d] = point->position[d];
    if (!(sk_solids_distance(solids, x, normal, &o) < kick->reach) || o < 0)
        return;
    sk_solids_velocity(solids, o, x, moves);
    const sk_obstacle *obstacle = &solids->obstacles[o];
    sk_solid_contact contact = {.friction = obstacle->def ? (float)obstacle->def->liquid_friction : 0.0f,
                                .sticks = obstacle->surface == SELKIE_WALL_NO_SLIP};
    for (int d = 0; d < SELKIE_DIM; d++) {
        contact.normal[d] = (float)normal[d];
        contact.velocity[d] = (float)moves[d];
    }
    sk_solid_touch(&contact, SELKIE_DIM, point->velocity);
}

/* Can points of a block touch a wall? */
SK_KICK_INLINE int sk_is_near_wall(const sk_point_kick *kick, int block)
{
    const sk_grid *grid = &kick->step->grid;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const double low = grid->corner[d] + grid->coordinates[block][d] * SK_BLOCK_N * grid->cell_size;
        const double high = low + SK_BLOCK_N * grid->cell_size, gap = kick->reach + 1e-3 * grid->cell_size;
        if (low < grid->low[d] + gap || high > grid->high[d] - gap)
            return 1;
    }
    return 0;
}

/* Changes the velocity of a point of a block by its acceleration (m/s2) and by forces from outside. `near_wall`: of its
 * block. */
SK_KICK_INLINE void sk_kick_point(const sk_point_kick *kick, int block, int near_wall, const float acceleration[3],
                                  sk_particle *point)
{
    for (int d = 0; d < SELKIE_DIM; d++)
        point->velocity[d] += kick->time * acceleration[d] + kick->gain[d];
    if (kick->field_count) {
        float change[3] = {0, 0, 0};
        sk_force_fields_velocity_change(kick->fields, kick->field_count, point->position, change);
        for (int d = 0; d < SELKIE_DIM; d++)
            point->velocity[d] += change[d];
    }
    if (kick->step->solids.obstacle_count &&
        kick->step->solids.clearance[block] * (float)kick->step->grid.cell_size < kick->reach)
        sk_touch_obstacles(kick, point);
    if (near_wall)
        sk_touch_walls(kick, point);
}

#endif
