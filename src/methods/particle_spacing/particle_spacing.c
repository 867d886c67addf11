/* The two corrections by particle spacing as methods. */
#include "methods/particle_spacing/particle_spacing.h"
#include "methods/sorting.h"

static int is_ando(const selkie_scene *scene)
{
    return scene->discretization == SELKIE_DISCRETIZATION_GRID && scene->volume == SELKIE_VOLUME_ANDO;
}

static int is_sato(const selkie_scene *scene)
{
    return scene->discretization == SELKIE_DISCRETIZATION_GRID && scene->volume == SELKIE_VOLUME_SATO;
}

/* Positions change, so cells, blocks and the solids in them follow. The world measures a start after one correction:
 * none of these phases is marked as SK_PHASE_CORRECTS. */
const sk_method sk_method_ando = {
    .name = "ando",
    .needs = SK_NEEDS_PARTICLES | SK_NEEDS_GRID,
    .takes_part = is_ando,
    .phases =
        {
            {.name = "spacing", .slot = SK_SLOT_POSITIONS, .run = SK_FORMS(sk_spacing_ando, sk_spacing_ando_plain)},
            {.name = "sort_again",
             .slot = SK_SLOT_POSITIONS,
             .run = SK_FORMS(sk_sort_particles_again, sk_sort_particles_plain)},
            {.name = "solids_again", .slot = SK_SLOT_POSITIONS, .run = SK_ONE_FORM(sk_move_solids)},
        },
};

const sk_method sk_method_sato = {
    .name = "sato",
    .needs = SK_NEEDS_PARTICLES | SK_NEEDS_GRID,
    .takes_part = is_sato,
    .phases =
        {
            {.name = "spacing", .slot = SK_SLOT_POSITIONS, .run = SK_FORMS(sk_spacing_sato, sk_spacing_sato_plain)},
            {.name = "sort_again",
             .slot = SK_SLOT_POSITIONS,
             .run = SK_FORMS(sk_sort_particles_again, sk_sort_particles_plain)},
            {.name = "solids_again", .slot = SK_SLOT_POSITIONS, .run = SK_ONE_FORM(sk_move_solids)},
        },
};
