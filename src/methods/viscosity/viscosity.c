#include "methods/viscosity/viscosity.h"

#include "defs/materials.h"

static int takes_part(const selkie_scene *scene)
{
    return scene->discretization == SELKIE_DISCRETIZATION_GRID && sk_scene_viscosity(scene) > 0.0;
}

const sk_method sk_method_viscosity = {
    .name = "viscosity",
    .needs = SK_NEEDS_PARTICLES | SK_NEEDS_GRID,
    .takes_part = takes_part,
    .phases = {{.name = "viscosity", .slot = SK_SLOT_VISCOSITY, .run = SK_ONE_FORM(sk_viscosity)}},
};
