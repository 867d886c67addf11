/* The two corrections inside the pressure solve as methods. */
#include "methods/volume_terms/volume_terms.h"

static int is_eq8(const selkie_scene *scene)
{
    return scene->discretization == SELKIE_DISCRETIZATION_GRID && scene->volume == SELKIE_VOLUME_EQ8;
}

static int is_losasso(const selkie_scene *scene)
{
    return scene->discretization == SELKIE_DISCRETIZATION_GRID && scene->volume == SELKIE_VOLUME_LOSASSO;
}

const sk_method sk_method_eq8 = {
    .name = "eq8",
    .needs = SK_NEEDS_PARTICLES | SK_NEEDS_GRID,
    .takes_part = is_eq8,
    .phases = {{.name = "volume_term", .slot = SK_SLOT_TARGET, .run = SK_FORMS(sk_volume_eq8, sk_volume_eq8_plain)}},
};

const sk_method sk_method_losasso = {
    .name = "losasso",
    .needs = SK_NEEDS_PARTICLES | SK_NEEDS_GRID,
    .takes_part = is_losasso,
    .phases = {{.name = "volume_term",
                .slot = SK_SLOT_TARGET,
                .run = SK_FORMS(sk_volume_losasso, sk_volume_losasso_plain)}},
};
