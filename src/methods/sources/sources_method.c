/* Sources and drains as a method. */
#include <math.h>

#include "methods/sources/sources.h"

static int takes_part(const selkie_scene *scene)
{
    return scene->source_count || scene->drain_count;
}

static selkie_code populate(sk_step *step, selkie_error *error)
{
    step->sources = sk_allocate_zeroed(step->memory, sizeof *step->sources);
    if (!step->sources)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "sources: no memory");
    return sk_sources_init(step->sources, step, error);
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
    for (int s = 0; s < step->scene->source_count; s++) {
        const double *v = step->scene->sources[s].velocity;
        limits->speed = fmax(limits->speed, sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]));
    }
}

const sk_method sk_method_sources = {
    .name = "sources",
    .needs = SK_NEEDS_PARTICLES,
    .takes_part = takes_part,
    .populate = populate,
    .destroy = destroy,
    .phases = {{.name = "sources", .slot = SK_SLOT_EXCHANGE, .run = SK_ONE_FORM_ANY_DIMENSION(sk_sources_run)}},
    .limit_step = limit_step,
};
