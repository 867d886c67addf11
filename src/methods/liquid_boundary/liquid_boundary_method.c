/* Liquid boundaries as a method. */
#include "methods/liquid_boundary/liquid_boundary.h"

static int takes_part(const selkie_scene *scene)
{
    return scene->object_count > 0;
}

static selkie_code populate(sk_step *step, selkie_error *error)
{
    step->objects = sk_allocate_zeroed(step->memory, sizeof *step->objects);
    if (!step->objects)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "objects: no memory");
    return sk_liquid_boundary_init(step->objects, step, error);
}

static void destroy(sk_step *step)
{
    if (!step->objects)
        return;
    sk_liquid_boundary_free(step->objects);
    sk_release(step->memory, step->objects);
    step->objects = NULL;
}

static void statistics(const sk_step *step, selkie_statistics *s)
{
    s->candidates = step->objects->candidates;
    s->boundaries = step->objects->boundaries;
}

const sk_method sk_method_liquid_boundary = {
    .name = "liquid_boundary",
    .needs = SK_NEEDS_PARTICLES | SK_NEEDS_GRID,
    .takes_part = takes_part,
    .check = sk_liquid_boundary_check,
    .populate = populate,
    .destroy = destroy,
    .phases =
        {
            {.name = "roles", .slot = SK_SLOT_EXCHANGE, .run = SK_ONE_FORM_ANY_DIMENSION(sk_liquid_boundary_roles)},
            {.name = "animate", .slot = SK_SLOT_TARGET, .run = SK_ONE_FORM_ANY_DIMENSION(sk_liquid_boundary_animate)},
            {.name = "hold", .slot = SK_SLOT_AFTER, .run = SK_ONE_FORM_ANY_DIMENSION(sk_liquid_boundary_hold)},
        },
    .statistics = statistics,
};
