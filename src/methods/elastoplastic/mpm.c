/* The material point method as a method. */
#include "methods/elastoplastic/mpm.h"

#include <math.h>
#include <string.h>

#include "defs/heat.h"
#include "defs/structs.h"
#include "methods/elastoplastic/elastic_materials.h"
#include "methods/sorting.h"

const char *const sk_mpm_own[SK_MPM_OWN] = {"deformation", "velocity_gradient", "plastic_strain", "plastic_volume",
                                            "stress"};

static int takes_part(const selkie_scene *scene)
{
    return scene->discretization == SELKIE_DISCRETIZATION_MPM || sk_scene_has_immersed_points(scene);
}

/* Without liquids: else the phases of immersed.h call those of mpm. */
static int is_alone(const sk_step *step)
{
    return step->scene->discretization == SELKIE_DISCRETIZATION_MPM;
}

/* Laws of a material at the temperatures of its levels. */
static void fill_levels(const sk_step *step, sk_mpm *mpm, int m)
{
    const selkie_elastoplastic_def *def = &step->scene->materials[m].elastoplastic;
    const sk_elastic_material cold = sk_elastic_material_of(step, m);
    for (int level = 0; level < mpm->levels; level++) {
        sk_elastic_material *law = &mpm->materials[m * mpm->levels + level];
        *law = cold;
        if (level > 0 && def->softens_from > 0.0)
            sk_elastic_soften(law, step->dimension, (float)pow(def->softened, (double)level / (mpm->levels - 1)));
        mpm->saved.wave_speed = fmax(mpm->saved.wave_speed, law->wave_speed);
    }
}

static selkie_code create(sk_step *step, selkie_error *error)
{
    const int count = step->scene->material_count;
    sk_mpm *mpm = sk_allocate_zeroed(step->memory, sizeof *mpm);
    if (!mpm)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "mpm: no memory");
    sk_step_set_state(step, &sk_method_mpm, mpm);
    mpm->levels = sk_scene_has_heat(step->scene) ? SK_MPM_LEVELS : 1;
    mpm->materials = sk_allocate_zeroed(step->memory, (size_t)(count * mpm->levels) * sizeof *mpm->materials);
    int enough = mpm->materials != NULL;
    for (int n = 0; n < SK_MPM_OWN; n++)
        enough &= sk_particles_add_attribute(&step->particles, sk_mpm_own[n],
                                             n < 2 ? step->dimension * step->dimension : 1, 0) != NULL;
    if (!enough)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "mpm: no memory for %d materials and attributes", count);
    mpm->own = (sk_lagging){.count = SK_MPM_OWN, .names = sk_mpm_own};
    mpm->material_count = count;
    for (int m = 0; m < count; m++)
        if (step->scene->materials[m].kind == SELKIE_MATERIAL_ELASTOPLASTIC)
            fill_levels(step, mpm, m);
    return SELKIE_OK;
}

/* Gradient of the velocity that a liquid starts with, row-major, 1/s. Returns whether it has one. */
static int start_gradient(const selkie_liquid_def *liquid, double gradient[9])
{
    const double *w = liquid->angular_velocity;
    const double turn[9] = {0, -w[2], w[1], w[2], 0, -w[0], -w[1], w[0], 0};
    int any = 0;
    for (int n = 0; n < 9; n++) {
        gradient[n] = liquid->velocity_gradient[n] + turn[n];
        any |= gradient[n] != 0.0;
    }
    return any;
}

/* Points of a liquid that turns or stretches at the start have its gradient of velocity, or the first step would lose
 * their spin. They are those that move as the liquid says. */
static void set_gradients(const sk_step *step)
{
    const int dimension = step->dimension;
    const sk_attribute *affine = sk_particles_find_attribute(&step->particles, "velocity_gradient");
    for (int l = 0; l < step->scene->liquid_count; l++) {
        const selkie_liquid_def *liquid = &step->scene->liquids[l];
        double gradient[9];
        if (!start_gradient(liquid, gradient))
            continue;
        for (int64_t p = 0; p < step->particles.count; p++) {
            const sk_particle *point = &step->particles.records[p];
            float *to = (float *)(void *)affine->data + (size_t)p * (size_t)(dimension * dimension);
            int same = 1;
            for (int i = 0; i < dimension; i++) {
                double v = liquid->velocity[i];
                for (int j = 0; j < dimension; j++)
                    v += gradient[3 * i + j] * (point->position[j] - liquid->center[j]);
                same &= fabs(v - point->velocity[i]) <= 1e-5 * (1.0 + fabs(v));
            }
            for (int n = 0; same && n < dimension * dimension; n++)
                to[n] = (float)gradient[3 * (n / dimension) + n % dimension];
        }
    }
}

static selkie_code populate(sk_step *step, selkie_error *error)
{
    set_gradients(step);
    return is_alone(step) ? sk_elastic_check_count(step, "mpm", error) : SELKIE_OK;
}

/* Volume before the first step: that of the points at rest. */
static selkie_code measure(sk_step *step, selkie_error *error)
{
    (void)error;
    if (!is_alone(step))
        return SELKIE_OK;
    sk_lagging_settle(step, &sk_mpm_of(step)->own);
    sk_elastic_measure(step);
    return SELKIE_OK;
}

static void destroy(sk_step *step)
{
    sk_mpm *mpm = sk_mpm_of(step);
    if (!mpm)
        return;
    sk_release(step->memory, mpm->materials);
    sk_release(step->memory, mpm->tiles);
    sk_release(step->memory, mpm->nodes);
    sk_lagging_release(step, &mpm->own);
    sk_release(step->memory, mpm);
}

selkie_code sk_mpm_sort_2d(sk_step *step, selkie_error *error)
{
    return sk_lagging_sort_2d(step, &sk_mpm_of(step)->own, error);
}

selkie_code sk_mpm_sort_3d(sk_step *step, selkie_error *error)
{
    return sk_lagging_sort_3d(step, &sk_mpm_of(step)->own, error);
}

static void limit_step(const sk_step *step, sk_step_limits *limits)
{
    sk_elastic_limit_step(&sk_mpm_of(step)->saved, limits);
}

static void statistics(const sk_step *step, selkie_statistics *s)
{
    sk_elastic_statistics(&sk_mpm_of(step)->saved, s);
}

static sk_chunk_view state(const sk_step *step)
{
    return (sk_chunk_view){"mpm", &sk_mpm_of(step)->saved, sizeof(sk_elastic_saved)};
}

static selkie_code restore(sk_step *step, const sk_chunk_view *chunk, const char *file, selkie_error *error)
{
    return sk_elastic_restore(&sk_mpm_of(step)->saved, chunk, file, error);
}

/* Attributes, which are there twice, and their order. */
static double bytes_per_particle(const selkie_scene *scene)
{
    const int d = scene->domain.dimension;
    return 2 * 4 * (2 * d * d + 3 + 1);
}

/* Nodes and tiles. */
static double bytes_per_cell(const selkie_scene *scene)
{
    (void)scene;
    return 16 + 32;
}

const sk_method sk_method_mpm = {
    .name = "mpm",
    .needs = SK_NEEDS_PARTICLES | SK_NEEDS_GRID,
    .takes_part = takes_part,
    .create = create,
    .populate = populate,
    .destroy = destroy,
    .phases =
        {
            {.name = "sort",
             .slot = SK_SLOT_SORT,
             .flags = SK_PHASE_REPLACES,
             .run = SK_FORMS(sk_mpm_sort, sk_sort_particles_plain),
             .when = is_alone},
            {.name = "to_grid",
             .slot = SK_SLOT_FORCES,
             .run = SK_FORMS(sk_mpm_to_grid, sk_mpm_to_grid_plain),
             .when = is_alone},
            {.name = "nodes", .slot = SK_SLOT_FORCES, .run = SK_ONE_FORM(sk_mpm_nodes), .when = is_alone},
            {.name = "to_points",
             .slot = SK_SLOT_MOVE,
             .run = SK_FORMS(sk_mpm_to_points, sk_mpm_to_points_plain),
             .when = is_alone},
        },
    .limit_step = limit_step,
    .measure = measure,
    .state = state,
    .restore = restore,
    .statistics = statistics,
    .bytes_per_particle = bytes_per_particle,
    .bytes_per_cell = bytes_per_cell,
};
