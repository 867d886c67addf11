/* printed and additive as a method. */
#include "methods/elastoplastic/fitted.h"

#include <math.h>
#include <string.h>

#include "methods/elastoplastic/elastic_materials.h"
#include "methods/elastoplastic/fitted_kernels.h"

static int takes_part(const selkie_scene *scene)
{
    return scene->discretization == SELKIE_DISCRETIZATION_PRINTED ||
           scene->discretization == SELKIE_DISCRETIZATION_ADDITIVE;
}

/* Sum of the weights of a point inside a lattice of a spacing of 1. */
static double full_weight(int dimension, double support)
{
    const int reach = (int)ceil(support);
    double sum = 0.0;
    for (int z = dimension == 3 ? -reach : 0; z <= (dimension == 3 ? reach : 0); z++)
        for (int y = -reach; y <= reach; y++)
            for (int x = -reach; x <= reach; x++)
                if (x || y || z)
                    sum += sk_fitted_weight((float)(x * x + y * y + z * z), (float)support);
    return sum;
}

static selkie_code create(sk_step *step, selkie_error *error)
{
    static const char *const numbers[] = {"plastic_strain", "plastic_volume", "stress"};
    const int count = step->scene->material_count, matrix = step->dimension * step->dimension;
    sk_fitted *fitted = sk_allocate_zeroed(step->memory, sizeof *fitted);
    if (!fitted)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "points: no memory");
    sk_step_set_state(step, &sk_method_fitted, fitted);
    fitted->lists.memory = step->memory;
    fitted->is_additive = step->scene->discretization == SELKIE_DISCRETIZATION_ADDITIVE;
    fitted->material_count = count;
    fitted->materials = sk_allocate_zeroed(step->memory, (size_t)count * sizeof *fitted->materials);
    int enough = fitted->materials && sk_particles_add_attribute(&step->particles, "deformation", matrix, 0);
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
        enough = enough && sk_particles_add_attribute(&step->particles, numbers[n], 1, 0);
    if (!enough)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "points: no memory for %d materials and attributes", count);
    for (int m = 0; m < count; m++) {
        fitted->materials[m] = sk_elastic_material_of(step, m);
        fitted->saved.wave_speed = fmax(fitted->saved.wave_speed, fitted->materials[m].wave_speed);
    }
    fitted->spacing = step->grid.cell_size / pow(step->particles_per_cell, 1.0 / step->dimension);
    fitted->support = step->scene->points.support * fitted->spacing;
    fitted->full = full_weight(step->dimension, step->scene->points.support);
    return SELKIE_OK;
}

static selkie_code populate(sk_step *step, selkie_error *error)
{
    return sk_elastic_check_count(step, sk_fitted_of(step)->is_additive ? "additive" : "printed", error);
}

static selkie_code measure(sk_step *step, selkie_error *error)
{
    (void)error;
    sk_elastic_measure(step);
    return SELKIE_OK;
}

static void destroy(sk_step *step)
{
    sk_fitted *fitted = sk_fitted_of(step);
    if (!fitted)
        return;
    sk_neighbour_lists_free(&fitted->lists);
    void *arrays[] = {fitted->materials, fitted->cut, fitted->push, fitted->back, fitted->extra, fitted->change};
    for (size_t n = 0; n < sizeof arrays / sizeof *arrays; n++)
        sk_release(step->memory, arrays[n]);
    sk_release(step->memory, fitted);
}

static void limit_step(const sk_step *step, sk_step_limits *limits)
{
    sk_elastic_limit_step(&sk_fitted_of(step)->saved, limits);
}

static void statistics(const sk_step *step, selkie_statistics *s)
{
    sk_elastic_statistics(&sk_fitted_of(step)->saved, s);
}

static sk_chunk_view state(const sk_step *step)
{
    return (sk_chunk_view){"points", &sk_fitted_of(step)->saved, sizeof(sk_elastic_saved)};
}

static selkie_code restore(sk_step *step, const sk_chunk_view *chunk, const char *file, selkie_error *error)
{
    return sk_elastic_restore(&sk_fitted_of(step)->saved, chunk, file, error);
}

/* Attributes, which the sort keeps twice, and what a step keeps for each point and its neighbours. */
static double bytes_per_particle(const selkie_scene *scene)
{
    const int d = scene->domain.dimension;
    return 2 * 4 * (d * d + 3) + 4 * (2 * d * d + 5) + 8 + 4 * (d == 3 ? 32 : 12);
}

const sk_method sk_method_fitted = {
    .name = "points",
    .needs = SK_NEEDS_PARTICLES | SK_NEEDS_GRID,
    .takes_part = takes_part,
    .create = create,
    .populate = populate,
    .destroy = destroy,
    .phases =
        {
            {.name = "neighbours", .slot = SK_SLOT_TO_GRID, .run = SK_ONE_FORM(sk_fitted_neighbours)},
            {.name = "stress", .slot = SK_SLOT_FORCES, .run = SK_ONE_FORM(sk_fitted_stress)},
            {.name = "forces", .slot = SK_SLOT_FORCES, .run = SK_ONE_FORM(sk_fitted_forces)},
            {.name = "deform", .slot = SK_SLOT_MOVE, .run = SK_ONE_FORM(sk_fitted_deform)},
            {.name = "move", .slot = SK_SLOT_MOVE, .run = SK_ONE_FORM(sk_fitted_move)},
        },
    .limit_step = limit_step,
    .measure = measure,
    .state = state,
    .restore = restore,
    .statistics = statistics,
    .bytes_per_particle = bytes_per_particle,
};
