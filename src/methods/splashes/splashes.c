/* The method: its model, its state and its statistics. */
#include "methods/splashes/splashes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "defs/materials.h"

/* Probability over the mean one below which a cell's outermost particle makes the whole cell count as calm. */
#define CALM 0.03f

/* Longest step in cells, whatever time.cfl says. The flow itself has fewer thin sheets and jets in longer ones: at 4
 * cells a dam break makes 28 % fewer droplets, while the rates of one and the same flow do not depend on the step. */
#define MOST_CELLS 2.5

static int takes_part(const selkie_scene *scene)
{
    return scene->discretization == SELKIE_DISCRETIZATION_GRID && scene->splashes && scene->splashes[0];
}

static int has_windows(const selkie_scene *scene)
{
    return scene->splash.sampling == SELKIE_SPLASH_EXPECTATION;
}

static selkie_code read_model(const selkie_scene *scene, sk_splash_model *model, selkie_error *error)
{
    char path[4096];
    selkie_error why = {0};
    for (int m = 0; m < scene->material_count; m++)
        if (scene->materials[m].kind != SELKIE_MATERIAL_LIQUID || scene->materials[m].melting_point > 0.0)
            return sk_fail(error, SELKIE_ERROR_INPUT,
                           "splashes: materials[%d] is solid or freezes: droplets are for liquids only", m);
    sk_splash_model_find(scene->splashes, scene->folder, scene->domain.dimension, path, sizeof path);
    if (strcmp(scene->splashes, "default") == 0 && access(path, R_OK) != 0)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "splashes: no model for %dD comes with this version; make one with `selkie splash data "
                       "--dimension %d --out D` and `selkie splash train D --out M`, and name M/model.safetensors",
                       scene->domain.dimension, scene->domain.dimension);
    if (sk_splash_model_read(path, model, &why))
        return sk_fail(error, SELKIE_ERROR_INPUT, "splashes: %s", why.message);
    if (model->dimension != scene->domain.dimension) {
        const int dimension = model->dimension;
        sk_splash_model_free(model);
        return sk_fail(error, SELKIE_ERROR_INPUT, "splashes: %s: was trained in %dD, but domain.dimension is %d", path,
                       dimension, scene->domain.dimension);
    }
    return SELKIE_OK;
}

static selkie_code check(const sk_step *step, selkie_error *error)
{
    sk_splash_model model;
    SK_TRY(read_model(step->scene, &model, error));
    sk_splash_model_free(&model);
    return SELKIE_OK;
}

static selkie_code create(sk_step *step, selkie_error *error)
{
    sk_splashes *s = sk_allocate_zeroed(step->memory, sizeof *s);
    if (!s)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "splashes: no memory");
    sk_step_set_state(step, &sk_method_splashes, s);
    SK_TRY(read_model(step->scene, &s->model, error));
    if (!sk_particles_add_attribute(&step->particles, SK_SPLASH_AGE, 1, 0) ||
        (has_windows(step->scene) && !sk_particles_add_attribute(&step->particles, SK_SPLASH_WINDOW, 2, 0)))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "particles: no memory for the attributes of splashes");

    /* Scales of the features. Without surface tension in the scene, that of the training counts. */
    const double *g = step->scene->gravity, h = step->grid.cell_size;
    const double gravity = sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]);
    const double own = sk_scene_surface_tension(step->scene), sigma = own > 0.0 ? own : s->model.tension;
    const double capillary = sigma / (step->density * h), square = gravity * h + capillary;
    s->calm_logit =
        has_windows(step->scene)
            ? -2.0f
            : sk_splash_logit_of(&s->model, CALM * (float)(s->model.prior / fmax(step->scene->splash.rate, 1.0)));
    s->speed = (float)sqrt(square > 0.0 ? square : 9.81 * h);
    s->options = (sk_splash_options){s->model.reach,  s->model.velocity_reach,
                                     step->up_axis,   (float)step->up_sign,
                                     1.0f / s->speed, (float)(square > 0.0 ? gravity * h / square : 1.0)};
    return SELKIE_OK;
}

static void destroy(sk_step *step)
{
    sk_splashes *s = sk_step_state(step, &sk_method_splashes);
    if (!s)
        return;
    sk_splash_model_free(&s->model);
    sk_release(step->memory, s->apart);
    sk_release(step->memory, s->fresh);
    sk_release(step->memory, s->events);
    sk_release(step->memory, s->chosen);
    sk_release(step->memory, s->change);
    sk_release(step->memory, s->recent);
    sk_release(step->memory, s->saved);
    sk_release(step->memory, s);
    sk_step_set_state(step, &sk_method_splashes, NULL);
}

static sk_chunk_view state(const sk_step *step)
{
    sk_splashes *s = sk_step_state(step, &sk_method_splashes);
    const size_t list = s->recent_count * sizeof *s->recent, bytes = sizeof s->counts + list;
    selkie_error ignored = {0}; /* an empty chunk is refused on reading */
    if (sk_reserve(step->memory, (void **)&s->saved, &s->saved_capacity, bytes, 1, "splashes", &ignored))
        return (sk_chunk_view){"splashes", &s->counts, 0};
    memcpy(s->saved, &s->counts, sizeof s->counts);
    if (list)
        memcpy(s->saved + sizeof s->counts, s->recent, list);
    return (sk_chunk_view){"splashes", s->saved, bytes};
}

static selkie_code restore(sk_step *step, const sk_chunk_view *chunk, const char *file, selkie_error *error)
{
    sk_splashes *s = sk_step_state(step, &sk_method_splashes);
    const size_t list = chunk->bytes >= sizeof s->counts ? chunk->bytes - sizeof s->counts : 1;
    if (list % sizeof *s->recent)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: the state of splashes is not that of this version", file);
    s->counted = 0;
    s->recent_count = list / sizeof *s->recent;
    SK_TRY(sk_reserve(step->memory, (void **)&s->recent, &s->recent_capacity, s->recent_count + 1, sizeof *s->recent,
                      "splashes", error));
    memcpy(&s->counts, chunk->data, sizeof s->counts);
    if (list)
        memcpy(s->recent, (const char *)chunk->data + sizeof s->counts, list);
    return SELKIE_OK;
}

static void limit_step(const sk_step *step, sk_step_limits *limits)
{
    limits->length = fmin(limits->length, MOST_CELLS * step->grid.cell_size / selkie_scene_cfl(step->scene));
}

static void statistics(const sk_step *step, selkie_statistics *statistics)
{
    const sk_splashes *s = sk_step_state(step, &sk_method_splashes);
    statistics->splashes = s->flying;
    statistics->splashes_made = s->counts.made;
}

static int warn(const sk_step *step, char *text, size_t size)
{
    const sk_splashes *s = sk_step_state(step, &sk_method_splashes);
    const sk_splash_model *model = &s->model;
    const double h = step->grid.cell_size, low = model->cell_low, high = model->cell_high;
    const double share = s->options.bond, bond = share / fmax(1.0 - share, 1e-9);
    if (h < 0.7 * low || h > 1.4 * high)
        snprintf(
            text, size,
            "splashes: cells of %.3g m are outside those that the model was trained for, %.3g to %.3g m; train one "
            "with selkie splash",
            h, low, high);
    else if (bond < 0.5 * model->bond_low || bond > 2.0 * model->bond_high)
        snprintf(
            text, size,
            "splashes: the Bond number of a cell, density g h^2 / surface tension = %.3g, is outside those that the "
            "model was trained for, %.3g to %.3g",
            bond, model->bond_low, model->bond_high);
    else if (s->beyond)
        snprintf(text, size,
                 "splashes: the flow is outside what the model has seen in training; its rates are a guess");
    else
        return 0;
    return 1;
}

static double bytes_per_particle(const selkie_scene *scene)
{
    const double floats = has_windows(scene) ? 3 : 1; /* attributes, twice for the sort; then choice and change */
    return 2 * floats * sizeof(float) + 3 * sizeof(float) + 1;
}

const sk_method sk_method_splashes = {
    .name = "splashes",
    .needs = SK_NEEDS_PARTICLES | SK_NEEDS_GRID,
    .takes_part = takes_part,
    .check = check,
    .create = create,
    .destroy = destroy,
    .phases =
        {
            {.name = "droplets_apart", .slot = SK_SLOT_EXCHANGE, .run = SK_ONE_FORM_ANY_DIMENSION(sk_splash_part)},
            {.name = "splashes", .slot = SK_SLOT_TO_PARTICLES, .run = SK_ONE_FORM(sk_splash_find)},
            {.name = "droplets", .slot = SK_SLOT_AFTER, .run = SK_ONE_FORM_ANY_DIMENSION(sk_splash_fly)},
        },
    .limit_step = limit_step,
    .warn = warn,
    .state = state,
    .restore = restore,
    .statistics = statistics,
    .bytes_per_particle = bytes_per_particle,
};
