#include "world/change_bodies.h"

#include <stdlib.h>
#include <string.h>

#include "defs/soft.h"

int sk_change_is_of_bodies(const selkie_change_def *change)
{
    return change->kind == SELKIE_CHANGE_BODY ||
           (change->kind == SELKIE_CHANGE_REMOVE && change->list == SELKIE_LIST_BODIES);
}

/* The state of a body at its start: that of the only body of a scene. */
static selkie_code first_state(const selkie_world *world, const selkie_body_def *body, sk_rigid_state *state,
                               selkie_error *error)
{
    selkie_scene alone = *world->relative;
    sk_rigid rigid = {0};
    alone.bodies = body;
    alone.body_count = 1;
    alone.joint_count = 0;
    const selkie_code code = sk_rigid_init(&rigid, &alone, &world->step.solids, world->step.memory, error);
    if (code == SELKIE_OK)
        *state = rigid.states[0];
    sk_rigid_free(&rigid);
    return code;
}

selkie_code sk_change_body_states(const selkie_world *world, const selkie_change_def *change, sk_body_chunk *chunk,
                                  selkie_error *error)
{
    const selkie_scene *scene = world->scene;
    const sk_rigid *rigid = world->step.rigid;
    const int is_new = change->kind == SELKIE_CHANGE_BODY, before = rigid ? rigid->body_count : 0;
    const char *name = is_new ? change->body.name : change->name;
    const int body = name && *name ? sk_change_find(scene->bodies, scene->body_count, sizeof *scene->bodies, name) : -1;
    if (body >= 0 && sk_body_material(scene, body) >= 0)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "changes: the body \"%s\" is made of particles, which cannot come or go while a world runs",
                       name);

    /* Those of now. */
    const int at = body >= 0 ? sk_body_number(scene, body) : before;
    chunk->states = calloc((size_t)before + 1, sizeof *chunk->states);
    if (!chunk->states)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "changes: no memory");
    chunk->count = before;
    if (before)
        memcpy(chunk->states, rigid->states, (size_t)before * sizeof *chunk->states);
    if (!is_new) {
        memmove(chunk->states + at, chunk->states + at + 1, (size_t)(--chunk->count - at) * sizeof *chunk->states);
        return SELKIE_OK;
    }

    /* The new one shares the substeps of the others. */
    chunk->count += at == before;
    SK_TRY(first_state(world, &change->body, &chunk->states[at], error));
    chunk->states[at].last_substep = before ? rigid->states[0].last_substep : 0.0;
    return SELKIE_OK;
}
