/* Points with a rest shape as a method. */
#include "methods/elastoplastic/rest_shape.h"

#include <math.h>
#include <string.h>

#include "methods/elastoplastic/elastic_materials.h"
#include "methods/elastoplastic/rest_kernels.h"
#include "methods/sorting.h"

/* The last one is there if a material flows. */
static const char *const own[] = {"rest_position", "plastic_strain", "plastic_volume", "stress", "plastic_inverse"};
enum { OWN = sizeof own / sizeof *own };

static int takes_part(const selkie_scene *scene)
{
    return scene->discretization == SELKIE_DISCRETIZATION_REST_SHAPE;
}

/* m  spacing of the points on their lattice. */
static double lattice_spacing(const sk_step *step)
{
    int along = 1;
    while (pow(along, step->dimension) < step->particles_per_cell)
        along++;
    return step->grid.cell_size / along;
}

/* Constants of the bonds of a material. The zero-energy stiffness is a share of Young's modulus: a bond that is off its
 * place by a strain of 1 then has the energy of that share. */
static sk_rest_material make_bonds(const sk_step *step, int m, double spacing)
{
    const selkie_elastoplastic_def *def = &step->scene->materials[m].elastoplastic;
    const sk_elastic_material law = sk_elastic_material_of(step, m);
    const double across = SK_REST_ACROSS_EDGES, moment = step->dimension == 3 ? SK_REST_MOMENT : 2.0 + 4.0 * across;
    const double share = step->scene->points.zero_energy * def->young * law.inverse_density;
    return (sk_rest_material){.push = (float)(law.inverse_density / spacing),
                              .stiffness = (float)(share / (moment * spacing * spacing)),
                              .spacing = (float)spacing,
                              .yield = law.plasticity == SK_PLASTIC_VON_MISES ? law.yield : -1.0f,
                              .hardening = law.hardening,
                              .shear = 3.0f * law.mu};
}

static selkie_code create(sk_step *step, selkie_error *error)
{
    const int count = step->scene->material_count, matrix = step->dimension * step->dimension;
    sk_rest_shape *rest = sk_allocate_zeroed(step->memory, sizeof *rest);
    if (!rest)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "rest_shape: no memory");
    sk_step_set_state(step, &sk_method_rest_shape, rest);
    rest->materials = sk_allocate_zeroed(step->memory, (size_t)count * sizeof *rest->materials);
    rest->bonds_of = sk_allocate_zeroed(step->memory, (size_t)count * sizeof *rest->bonds_of);
    rest->spacing = lattice_spacing(step);
    rest->reach_left = -1.0;
    rest->material_count = count;
    int enough = rest->materials && rest->bonds_of;
    for (int m = 0; m < count && enough; m++) {
        rest->materials[m] = sk_elastic_material_of(step, m);
        rest->bonds_of[m] = make_bonds(step, m, rest->spacing);
        rest->is_plastic |= rest->materials[m].plasticity != SK_PLASTIC_NONE || rest->materials[m].tear > 0.0f;
        rest->saved.wave_speed = fmax(rest->saved.wave_speed, rest->materials[m].wave_speed);
    }
    rest->own = (sk_lagging){.count = rest->is_plastic ? OWN : OWN - 1, .names = own};
    for (int n = 0; n < rest->own.count; n++)
        enough = enough && sk_particles_add_attribute(&step->particles, own[n],
                                                      n == 0        ? 3
                                                      : n < OWN - 1 ? 1
                                                                    : matrix,
                                                      0);
    return enough ? SELKIE_OK
                  : sk_fail(error, SELKIE_ERROR_MEMORY, "rest_shape: no memory for %d materials and attributes", count);
}

void sk_rest_release_sites(sk_step *step, sk_rest_shape *rest)
{
    void **arrays[] = {(void **)&rest->place,       (void **)&rest->around,   (void **)&rest->bonds,
                       (void **)&rest->material,    (void **)&rest->position, (void **)&rest->inverse,
                       (void **)&rest->push,        (void **)&rest->flow,     (void **)&rest->state,
                       (void **)&rest->acceleration};
    for (size_t n = 0; n < sizeof arrays / sizeof *arrays; n++) {
        sk_release(step->memory, *arrays[n]);
        *arrays[n] = NULL;
    }
}

static selkie_code populate(sk_step *step, selkie_error *error)
{
    SK_TRY(sk_elastic_check_count(step, "rest_shape", error));
    return step->dimension == 3 ? sk_rest_lay_3d(step, error) : sk_rest_lay_2d(step, error);
}

static selkie_code measure(sk_step *step, selkie_error *error)
{
    (void)error;
    sk_lagging_settle(step, &sk_rest_shape_of(step)->own);
    sk_elastic_measure(step);
    return SELKIE_OK;
}

static void destroy(sk_step *step)
{
    sk_rest_shape *rest = sk_rest_shape_of(step);
    if (!rest)
        return;
    sk_rest_release_sites(step, rest);
    sk_release(step->memory, rest->materials);
    sk_release(step->memory, rest->bonds_of);
    sk_release(step->memory, rest->row_site);
    sk_release(step->memory, rest->row_first);
    sk_release(step->memory, rest->row_members);
    sk_lagging_release(step, &rest->own);
    sk_release(step->memory, rest);
}

selkie_code sk_rest_sort_2d(sk_step *step, selkie_error *error)
{
    return sk_lagging_sort_2d(step, &sk_rest_shape_of(step)->own, error);
}

selkie_code sk_rest_sort_3d(sk_step *step, selkie_error *error)
{
    return sk_lagging_sort_3d(step, &sk_rest_shape_of(step)->own, error);
}

static void limit_step(const sk_step *step, sk_step_limits *limits)
{
    sk_elastic_limit_step(&sk_rest_shape_of(step)->saved, limits);
}

static void statistics(const sk_step *step, selkie_statistics *s)
{
    sk_elastic_statistics(&sk_rest_shape_of(step)->saved, s);
}

static sk_chunk_view state(const sk_step *step)
{
    return (sk_chunk_view){"rest_shape", &sk_rest_shape_of(step)->saved, sizeof(sk_elastic_saved)};
}

/* The rest positions come with the particles, after this: the next step lays them out. */
static selkie_code restore(sk_step *step, const sk_chunk_view *chunk, const char *file, selkie_error *error)
{
    sk_rest_shape_of(step)->is_laid = 0;
    return sk_elastic_restore(&sk_rest_shape_of(step)->saved, chunk, file, error);
}

/* Attributes, which are there twice, their order, and sites. */
static double bytes_per_particle(const selkie_scene *scene)
{
    const int d = scene->domain.dimension;
    return 2 * 4 * (6 + d * d + 1) + 4 * (3 * d * d + 2 * d + 6);
}

const sk_method sk_method_rest_shape = {
    .name = "rest_shape",
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
             .run = SK_FORMS(sk_rest_sort, sk_sort_particles_plain)},
            {.name = "stress", .slot = SK_SLOT_FORCES, .run = SK_FORMS(sk_rest_stress, sk_rest_stress_plain)},
            {.name = "bonds", .slot = SK_SLOT_FORCES, .run = SK_FORMS(sk_rest_bonds, sk_rest_bonds_plain)},
            {.name = "touch", .slot = SK_SLOT_BODIES, .run = SK_ONE_FORM(sk_rest_touch)},
            {.name = "move", .slot = SK_SLOT_MOVE, .run = SK_FORMS(sk_rest_move, sk_rest_move_plain)},
        },
    .limit_step = limit_step,
    .measure = measure,
    .state = state,
    .restore = restore,
    .statistics = statistics,
    .bytes_per_particle = bytes_per_particle,
};
