/* Elastoplastic points beside liquids as a method. */
#include "methods/elastoplastic/immersed.h"

#include <math.h>
#include <string.h>

#include "defs/materials.h"
#include "defs/structs.h"
#include "methods/sorting.h"

static const sk_mixture_names names = {
    .velocity = {"points_x", "points_y", "points_z"},
    .share = {"points_share_x", "points_share_y", "points_share_z"},
    .density = "points_density",
    .velocity_meaning = "velocity of the elastoplastic points; then their lightness",
    .share_meaning = "share of the elastoplastic points in the volume around a face",
    .density_meaning = "of the elastoplastic points over the rest density, by the trilinear kernel",
};

/* The copies of the points have the attributes that mpm reads. */
static int add_copies(sk_step *step, sk_immersed *immersed)
{
    const int matrix = step->dimension * step->dimension;
    sk_particles_init(&immersed->own, step->memory);
    return sk_particles_add_attribute(&immersed->own, "material", 1, 1) &&
           sk_particles_add_attribute(&immersed->own, "deformation", matrix, 0) &&
           sk_particles_add_attribute(&immersed->own, "velocity_gradient", matrix, 0) &&
           sk_particles_add_attribute(&immersed->own, "plastic_strain", 1, 0) &&
           sk_particles_add_attribute(&immersed->own, "plastic_volume", 1, 0) &&
           sk_particles_add_attribute(&immersed->own, "stress", 1, 0);
}

static selkie_code create(sk_step *step, selkie_error *error)
{
    const selkie_scene *scene = step->scene;
    sk_immersed *immersed = sk_allocate_zeroed(step->memory, sizeof *immersed);
    if (!immersed)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "immersed: no memory");
    sk_step_set_state(step, &sk_method_immersed, immersed);
    SK_TRY(sk_mixture_add_fields(&immersed->mixture, step, &names, error));
    if (!add_copies(step, immersed) || !sk_particles_add_attribute(&step->particles, "kept", 3, 0))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "particles: no memory for the attributes of elastoplastic points");

    /* Which particles are points. Eased faces are lighter than any material. */
    for (int m = 0; m < SK_TRANSFER_MATERIALS; m++) {
        const int is_point = m < scene->material_count && scene->materials[m].kind == SELKIE_MATERIAL_ELASTOPLASTIC;
        immersed->point_mask[m] = (uint8_t)is_point;
        immersed->liquid_mask[m] = !is_point;
        if (!is_point)
            continue;
        const float lightness = (float)(step->density / sk_scene_density(scene, m));
        immersed->lightness = immersed->lightness > 0.0f ? immersed->lightness : lightness;
        step->most_lightness = fmax(step->most_lightness, 9.0 * (double)lightness);
    }
    for (int m = 0; m < scene->material_count; m++)
        step->most_lightness = fmax(step->most_lightness, step->density / sk_scene_density(scene, m));
    step->liquid_mask = immersed->liquid_mask;
    return SELKIE_OK;
}

static void destroy(sk_step *step)
{
    sk_immersed *immersed = sk_immersed_of(step);
    if (!immersed)
        return;
    sk_particles_free(&immersed->own);
    sk_release(step->memory, immersed->sources);
    sk_release(step->memory, immersed->cell_start);
    sk_release(step->memory, immersed->grains);
    sk_release(step->memory, immersed);
    step->liquid_mask = NULL;
}

/* The start is settled before the first step. */
static selkie_code populate(sk_step *step, selkie_error *error)
{
    const selkie_code code = step->dimension == 2 ? sk_immersed_keep_2d(step, error) : sk_immersed_keep_3d(step, error);
    sk_immersed_of(step)->is_stepping = 0;
    return code;
}

/* Steps follow the waves in the points, which are shorter than those that a reflection is for. */
static void begin(sk_step *step)
{
    step->reflection = 0.0;
}

static int is_corrected(const sk_step *step)
{
    return selkie_scene_volume(step->scene) != SELKIE_VOLUME_NONE;
}

/* Two copies of the attribute by the sort, and the copies of points. */
static double bytes_per_particle(const selkie_scene *scene)
{
    const int d = scene->domain.dimension;
    return 2 * 4 * 3 + 2 * (32 + 4 * (2 * d * d + 4)) + 4;
}

static double bytes_per_cell(const selkie_scene *scene)
{
    (void)scene;
    return 18 * 4;
}

const sk_method sk_method_immersed = {
    .name = "immersed",
    .needs = SK_NEEDS_PARTICLES | SK_NEEDS_GRID | SK_NEEDS_SPLIT_MOVE,
    .fields = SK_FIELD_BITS(SK_FIELD_FACE_DENSITY_X, 3),
    .takes_part = sk_scene_has_immersed_points,
    .create = create,
    .populate = populate,
    .destroy = destroy,
    .begin = begin,
    .phases =
        {
            {.name = "keep", .slot = SK_SLOT_EXCHANGE, .run = SK_ONE_FORM(sk_immersed_keep)},
            {.name = "place",
             .slot = SK_SLOT_POSITIONS,
             .flags = SK_PHASE_CORRECTS,
             .run = SK_ONE_FORM(sk_immersed_place),
             .when = is_corrected},
            {.name = "sort_points",
             .slot = SK_SLOT_POSITIONS,
             .flags = SK_PHASE_CORRECTS,
             .run = SK_FORMS(sk_sort_particles_again, sk_sort_particles_plain),
             .when = is_corrected},
            {.name = "solids_points",
             .slot = SK_SLOT_POSITIONS,
             .flags = SK_PHASE_CORRECTS,
             .run = SK_ONE_FORM(sk_move_solids),
             .when = is_corrected},
            {.name = "mix", .slot = SK_SLOT_TO_GRID, .run = SK_FORMS(sk_immersed_mix, sk_immersed_mix_plain)},
            {.name = "remember", .slot = SK_SLOT_TARGET, .run = SK_ONE_FORM(sk_immersed_remember)},
            {.name = "part", .slot = SK_SLOT_BODIES, .run = SK_ONE_FORM(sk_immersed_part)},
            {.name = "to_points",
             .slot = SK_SLOT_SHIFT,
             .run = SK_FORMS(sk_immersed_to_points, sk_immersed_to_points_plain)},
            {.name = "expel", .slot = SK_SLOT_MOVE, .run = SK_ONE_FORM(sk_immersed_expel)},
        },
    .bytes_per_particle = bytes_per_particle,
    .bytes_per_cell = bytes_per_cell,
};
