/* Sources and drains as a method. */
#include <math.h>

#include "methods/sources/sources.h"

static int takes_part(const selkie_scene *scene)
{
    return scene->source_count || scene->drain_count || scene->change_count;
}

static selkie_code populate(sk_step *step, selkie_error *error)
{
    step->sources = sk_allocate_zeroed(step->memory, sizeof *step->sources);
    if (!step->sources)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "sources: no memory");
    SK_TRY(sk_sources_init(step->sources, step, error));

    /* The bounded solve of unilateral incompressibility takes no closed faces inside liquid, and SPH has no faces:
     * there the particles alone are driven. */
    int streams = 0;
    for (int s = 0; s < step->sources->source_count; s++)
        streams |= step->sources->sources[s].streams;
    if (streams && step->scene->discretization == SELKIE_DISCRETIZATION_GRID &&
        step->scene->incompressibility == SELKIE_INCOMPRESSIBILITY_BILATERAL) {
        step->solids.inlets = step->sources->inlets;
        step->solids.inlet_count = step->sources->source_count;
    }
    return SELKIE_OK;
}

static int has_streams(const sk_step *step)
{
    return step->scene->source_count > 0 || step->scene->change_count > 0;
}

static void destroy(sk_step *step)
{
    if (!step->sources)
        return;
    sk_sources_free(step->sources);
    sk_release(step->memory, step->sources);
    step->sources = NULL;
}

static void limit_step(const sk_step *step, sk_step_limits *limits)
{
    for (int s = 0; s < step->sources->source_count; s++) {
        const double end = step->scene->sources[s].end;
        if (end < 0.0 || step->time < end)
            limits->speed = fmax(limits->speed, step->sources->sources[s].stream.speed);
    }
}

const sk_method sk_method_sources = {
    .name = "sources",
    .needs = SK_NEEDS_PARTICLES,
    .takes_part = takes_part,
    .populate = populate,
    .destroy = destroy,
    .phases = {{.name = "sources", .slot = SK_SLOT_EXCHANGE, .run = SK_ONE_FORM_ANY_DIMENSION(sk_sources_run)},
               {.name = "emit",
                .slot = SK_SLOT_AFTER,
                .run = SK_ONE_FORM_ANY_DIMENSION(sk_sources_emit),
                .when = has_streams}},
    .limit_step = limit_step,
};
