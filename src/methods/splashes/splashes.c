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

/* Share of cells with features beyond those of training above which their droplets count. Single such cells occur in
 * every run: 0.001 to 0.002 % in the dam and the wave tank, which are like the training runs. With 0.3 to 0.7 % of the
 * cells (stairs; columns that meet at 24 m/s) they make a tenth of the droplets, with 3 % (at 50 m/s) two fifths. Too
 * few looks say nothing about a share. */
#define MOST_BEYOND 0.01
#define LEAST_LOOKS 1000.0

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

void sk_splash_begin_looks(const sk_step *step, sk_splashes *s)
{
    enum { MOST_STEPS = 4 }; /* from one look at a cell to the next */
    const selkie_splash_def *def = &step->scene->splash;

    /* A cell is looked at once in the model's duration, as in training: after the nearest whole number of steps. */
    s->every = (int)fmin(fmax(round(s->model.duration / step->dt), 1.0), MOST_STEPS);
    s->looks = (sk_splash_looks){.seed = step->scene->seed,
                                 .step = (uint64_t)step->step_count,
                                 .part = (float)(s->every * step->dt / s->model.duration),
                                 .rate = (float)def->rate,
                                 .threshold = (float)def->threshold,
                                 .calibration = {s->model.calibration[0], s->model.calibration[1]},
                                 .mean_velocity = def->mean_velocity};
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
    sk_release(step->memory, s->marked);
    sk_release(step->memory, s->pairs);
    sk_release(step->memory, s->change);
    sk_release(step->memory, s->recent);
    sk_release(step->memory, s->saved);
    sk_release(step->memory, s);
    sk_step_set_state(step, &sk_method_splashes, NULL);
}

static sk_chunk_view state(const sk_step *step)
{
    sk_splashes *s = sk_step_state(step, &sk_method_splashes);
    const size_t cells = s->recent_count * sizeof *s->recent, pairs = s->pair_count * sizeof *s->pairs;
    const size_t bytes = sizeof s->counts + cells + pairs;
    selkie_error ignored = {0}; /* an empty chunk is refused on reading */
    if (sk_reserve(step->memory, (void **)&s->saved, &s->saved_capacity, bytes, 1, "splashes", &ignored))
        return (sk_chunk_view){"splashes", &s->counts, 0};
    s->counts.recent = (int64_t)s->recent_count;
    s->counts.pairs = (int64_t)s->pair_count;
    memcpy(s->saved, &s->counts, sizeof s->counts);
    if (cells)
        memcpy(s->saved + sizeof s->counts, s->recent, cells);
    if (pairs)
        memcpy(s->saved + sizeof s->counts + cells, s->pairs, pairs);
    return (sk_chunk_view){"splashes", s->saved, bytes};
}

static selkie_code restore(sk_step *step, const sk_chunk_view *chunk, const char *file, selkie_error *error)
{
    sk_splashes *s = sk_step_state(step, &sk_method_splashes);
    struct sk_splash_counts counts = {.recent = -1};
    if (chunk->bytes >= sizeof counts)
        memcpy(&counts, chunk->data, sizeof counts);
    const int64_t most = (int64_t)chunk->bytes; /* more cells or pairs than bytes are no numbers */
    if (counts.recent < 0 || counts.recent > most || counts.pairs < 0 || counts.pairs > most ||
        chunk->bytes !=
            sizeof counts + (size_t)counts.recent * sizeof *s->recent + (size_t)counts.pairs * sizeof *s->pairs)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: the state of splashes is not that of this version", file);
    s->counts = counts;
    s->counted = 0;
    s->recent_count = (size_t)counts.recent;
    s->pair_count = (size_t)counts.pairs;
    SK_TRY(sk_reserve(step->memory, (void **)&s->recent, &s->recent_capacity, s->recent_count + 1, sizeof *s->recent,
                      "splashes", error));
    SK_TRY(sk_reserve(step->memory, (void **)&s->pairs, &s->pair_capacity, s->pair_count + 1, sizeof *s->pairs,
                      "splashes", error));
    const char *cells = (const char *)chunk->data + sizeof counts;
    memcpy(s->recent, cells, s->recent_count * sizeof *s->recent);
    memcpy(s->pairs, cells + s->recent_count * sizeof *s->recent, s->pair_count * sizeof *s->pairs);
    return SELKIE_OK;
}

static double step_length(const selkie_scene *scene)
{
    int cells[3];
    return selkie_scene_cells(scene, cells) * fmin(1.0, SK_SPLASH_MOST_CELLS / selkie_scene_cfl(scene));
}

static void limit_step(const sk_step *step, sk_step_limits *limits)
{
    limits->length = fmin(limits->length, step_length(step->scene));
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
    else if ((double)s->counts.beyond > MOST_BEYOND * fmax((double)s->counts.looks, LEAST_LOOKS))
        snprintf(text, size,
                 "splashes: %.2g %% of the looked-at cells are in flows outside what the model has seen in training; "
                 "its rates there are a guess",
                 100.0 * (double)s->counts.beyond / (double)s->counts.looks);
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
    .step_length = step_length,
};
