#include "methods/heat/frozen.h"

#include "defs/heat.h"

static selkie_code create(sk_step *step, selkie_error *error)
{
    sk_frozen *frozen = sk_allocate_zeroed(step->memory, sizeof *frozen);
    sk_step_set_state(step, &sk_method_frozen, frozen);
    if (!frozen)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "frozen bodies: no memory");
    frozen->response = sk_allocate_zeroed(step->memory, SK_FROZEN_MOST_BODIES * sizeof *frozen->response);
    if (!frozen->response || !sk_particles_add_attribute(&step->particles, "frozen_at", 3, 1))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "frozen bodies: no memory");
    if (!step->solids.inlet_count) { /* one that never runs */
        step->solids.inlets = (sk_inlet *)(void *)&frozen->none;
        step->solids.inlet_count = 1;
    }
    return SELKIE_OK;
}

static void destroy(sk_step *step)
{
    sk_frozen *frozen = sk_step_state(step, &sk_method_frozen);
    if (!frozen)
        return;
    for (int d = 0; d < 3; d++) {
        sk_release(step->memory, frozen->share[d]);
        sk_release(step->memory, frozen->owner[d]);
    }
    sk_release(step->memory, frozen->labels);
    sk_release(step->memory, frozen->marked);
    sk_release(step->memory, frozen->shared);
    sk_release(step->memory, frozen->queue);
    sk_release(step->memory, frozen->body_of);
    sk_release(step->memory, frozen->before);
    sk_release(step->memory, frozen->content);
    sk_release(step->memory, frozen->members);
    sk_release(step->memory, frozen->touching);
    sk_release(step->memory, frozen->spans);
    sk_release(step->memory, frozen->entries);
    sk_release(step->memory, frozen->response);
    sk_release(step->memory, frozen);
}

static int corrects_positions(const sk_step *step)
{
    return selkie_scene_volume(step->scene) != SELKIE_VOLUME_NONE;
}

/* Particles of bodies, and the potential energy with the weight of the solid. */
static void statistics(const sk_step *step, selkie_statistics *statistics)
{
    const sk_frozen *frozen = sk_step_state(step, &sk_method_frozen);
    /* Bodies of particles have counted theirs. */
    statistics->solid_particles = (step->soft ? statistics->solid_particles : 0) + frozen->solid_count;
    for (int d = 0; d < step->dimension; d++)
        statistics->potential_energy -= step->scene->gravity[d] * frozen->lifted[d];
}

/* Two copies of frozen_at; the body and the position of a particle; its place among the members of its body. */
static double bytes_per_particle(const selkie_scene *scene)
{
    (void)scene;
    return 2 * 12 + 14 + 5;
}

static double bytes_per_cell(const selkie_scene *scene)
{
    return 10 + scene->domain.dimension * 6;
}

const sk_method sk_method_frozen = {
    .name = "frozen",
    .needs = SK_NEEDS_PARTICLES | SK_NEEDS_GRID,
    .takes_part = sk_scene_melts,
    .create = create,
    .destroy = destroy,
    .phases =
        {
            {.name = "frozen_hold",
             .slot = SK_SLOT_POSITIONS,
             .flags = SK_PHASE_CORRECTS,
             .run = SK_ONE_FORM(sk_frozen_hold),
             .when = corrects_positions},
            {.name = "frozen_find", .slot = SK_SLOT_CONSTRAIN, .run = SK_ONE_FORM(sk_frozen_find)},
            {.name = "frozen_couple", .slot = SK_SLOT_TARGET, .run = SK_ONE_FORM(sk_frozen_couple)},
            {.name = "frozen_push", .slot = SK_SLOT_BODIES, .run = SK_ONE_FORM(sk_frozen_push)},
            {.name = "frozen_move", .slot = SK_SLOT_AFTER, .run = SK_ONE_FORM(sk_frozen_move)},
        },
    .statistics = statistics,
    .bytes_per_particle = bytes_per_particle,
    .bytes_per_cell = bytes_per_cell,
};
