#include "defs/soft.h"
#include "methods/rigid_liquid/rigid_liquid.h"

static int takes_part(const selkie_scene *scene)
{
    return scene->body_count > sk_scene_particle_bodies(scene) && scene->discretization == SELKIE_DISCRETIZATION_GRID;
}

/* The bodies join the obstacles: sampling, collisions and open fractions include them from here on. */
static selkie_code create(sk_step *step, selkie_error *error)
{
    sk_rigid_liquid *state = sk_allocate_zeroed(step->memory, sizeof *state);
    sk_step_set_state(step, &sk_method_rigid_liquid, state);
    if (!state)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory");
    const size_t count = (size_t)step->rigid->body_count;
    state->response = sk_allocate_zeroed(step->memory, (count + 1) * sizeof *state->response);
    state->velocity = sk_allocate_zeroed(step->memory, (count + 1) * sizeof *state->velocity);
    state->changes = sk_allocate_zeroed(step->memory, (count + 1) * sizeof *state->changes);
    if (!state->response || !state->velocity || !state->changes)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory for %zu of them", count);
    for (int b = 0; b < step->rigid->body_count; b++)
        if (step->rigid->bodies[b].def->liquid_friction > 0.0) /* friction needs the masses of faces */
            SK_TRY(
                sk_grid_declare(&step->grid, step->grid.declared | SK_FIELD_BITS(SK_FIELD_FACE_DENSITY_X, 3), error));
    for (int b = 0; b < step->rigid->body_count; b++)
        sk_solids_add_body(&step->solids, step->rigid->bodies[b].shape, step->rigid->bodies[b].def,
                           &step->rigid->bodies[b].pose);
    return SELKIE_OK;
}

static void destroy(sk_step *step)
{
    sk_rigid_liquid *state = sk_step_state(step, &sk_method_rigid_liquid);
    if (!state)
        return;
    sk_release(step->memory, state->entries);
    sk_release(step->memory, state->response);
    sk_release(step->memory, state->velocity);
    sk_release(step->memory, state->changes);
    sk_release(step->memory, state->contacts);
    sk_release(step->memory, state->counts);
    sk_release(step->memory, state);
    sk_step_set_state(step, &sk_method_rigid_liquid, NULL);
    step->modes = NULL;
}

/* The pressure that balances gravity before viscosity acts contains the bodies too. */
static int couples_early(const sk_step *step)
{
    return step->balance > 0;
}

static int couples_late(const sk_step *step)
{
    return !couples_early(step);
}

const sk_method sk_method_rigid_liquid = {
    .name = "rigid_liquid",
    .needs = SK_NEEDS_PARTICLES | SK_NEEDS_GRID,
    .takes_part = takes_part,
    .create = create,
    .destroy = destroy,
    .phases =
        {
            {.name = "couple",
             .slot = SK_SLOT_FORCES,
             .run = SK_ONE_FORM(sk_rigid_liquid_couple),
             .when = couples_early},
            {.name = "drag", .slot = SK_SLOT_TARGET, .run = SK_ONE_FORM(sk_rigid_liquid_drag), .when = couples_early},
            {.name = "couple",
             .slot = SK_SLOT_TARGET,
             .run = SK_ONE_FORM(sk_rigid_liquid_couple),
             .when = couples_late},
            {.name = "bodies", .slot = SK_SLOT_BODIES, .run = SK_ONE_FORM(sk_rigid_liquid_move)},
            {.name = "body_contacts", .slot = SK_SLOT_AFTER, .run = SK_ONE_FORM(sk_rigid_liquid_contact)},
        },
};
