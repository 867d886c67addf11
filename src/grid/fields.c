/* The grid's fields: what each holds, where it lives, and for how long. */
#include "grid/grid.h"

static const sk_field_def fields[SK_FIELD_COUNT] = {
    [SK_FIELD_VELOCITY_X] = {"velocity_x", "m/s", 0, SK_LIFETIME_STEP, __builtin_nanf(""),
                             "from the particles; after the pressure solve divergence-free; NaN where unknown"},
    [SK_FIELD_VELOCITY_Y] = {"velocity_y", "m/s", 1, SK_LIFETIME_STEP, __builtin_nanf(""),
                             "from the particles; after the pressure solve divergence-free; NaN where unknown"},
    [SK_FIELD_VELOCITY_Z] = {"velocity_z", "m/s", 2, SK_LIFETIME_STEP, __builtin_nanf(""),
                             "from the particles; after the pressure solve divergence-free; NaN where unknown"},
    [SK_FIELD_CHANGE_X] = {"change_x", "m/s", 0, SK_LIFETIME_STEP, 0.0f,
                           "velocity now minus velocity as it came from the particles: FLIP's increment"},
    [SK_FIELD_CHANGE_Y] = {"change_y", "m/s", 1, SK_LIFETIME_STEP, 0.0f,
                           "velocity now minus velocity as it came from the particles: FLIP's increment"},
    [SK_FIELD_CHANGE_Z] = {"change_z", "m/s", 2, SK_LIFETIME_STEP, 0.0f,
                           "velocity now minus velocity as it came from the particles: FLIP's increment"},
    [SK_FIELD_FACE_X] = {"face_x", "", 0, SK_LIFETIME_PHASE, 0.0f, "coefficient of the linear system; scratch"},
    [SK_FIELD_FACE_Y] = {"face_y", "", 1, SK_LIFETIME_PHASE, 0.0f, "coefficient of the linear system; scratch"},
    [SK_FIELD_FACE_Z] = {"face_z", "", 2, SK_LIFETIME_PHASE, 0.0f, "coefficient of the linear system; scratch"},
    [SK_FIELD_DENSITY] = {"density", "1", -1, SK_LIFETIME_STEP, 0.0f,
                          "of the liquid over its rest density, by the trilinear kernel"},
    [SK_FIELD_FILL] = {"fill", "1", -1, SK_LIFETIME_STEP, 0.0f,
                       "density over what the open part of the kernel can hold; -1 in solid cells"},
    [SK_FIELD_DEPTH] = {"depth", "cells", -1, SK_LIFETIME_STEP, -1.0f,
                        "of the centre below the surface, by sk_surface_depth"},
    [SK_FIELD_DIAGONAL] = {"diagonal", "", -1, SK_LIFETIME_PHASE, 0.0f, "of the linear system"},
    [SK_FIELD_RIGHT_SIDE] = {"right_side", "", -1, SK_LIFETIME_PHASE, 0.0f, "of the linear system"},
    [SK_FIELD_POTENTIAL] = {"potential", "m/s", -1, SK_LIFETIME_STEP, 0.0f,
                            "solution: pressure x dt / (density x cell size)"},
    [SK_FIELD_FACE_DENSITY_X] =
        {"face_density_x", "1", 0, SK_LIFETIME_STEP, 0.0f,
         "density over rest density, by the trilinear kernel around faces; beside bodies of particles that of liquid"},
    [SK_FIELD_FACE_DENSITY_Y] =
        {"face_density_y", "1", 1, SK_LIFETIME_STEP, 0.0f,
         "density over rest density, by the trilinear kernel around faces; beside bodies of particles that of liquid"},
    [SK_FIELD_FACE_DENSITY_Z] =
        {"face_density_z", "1", 2, SK_LIFETIME_STEP, 0.0f,
         "density over rest density, by the trilinear kernel around faces; beside bodies of particles that of liquid"},
    [SK_FIELD_SHIFT_X] = {"shift_x", "cells", 0, SK_LIFETIME_STEP, 0.0f,
                          "unilateral: displacement of particles before they move"},
    [SK_FIELD_SHIFT_Y] = {"shift_y", "cells", 1, SK_LIFETIME_STEP, 0.0f,
                          "unilateral: displacement of particles before they move"},
    [SK_FIELD_SHIFT_Z] = {"shift_z", "cells", 2, SK_LIFETIME_STEP, 0.0f,
                          "unilateral: displacement of particles before they move"},
    [SK_FIELD_PREDICTED] =
        {"predicted", "1", -1, SK_LIFETIME_STEP, 0.0f,
         "unilateral: density over rest density at the end of the step without pressure; then 1 where particles fly"},
    [SK_FIELD_LOWER] = {"lower", "", -1, SK_LIFETIME_PHASE, 0.0f,
                        "unilateral: least pressure, in the unit of the complementarity problem"},
    [SK_FIELD_LIGHTNESS_X] =
        {"lightness_x", "1", 0, SK_LIFETIME_STEP, 1.0f,
         "reference density over the density of the liquid around the face; 1 where no particle is near"},
    [SK_FIELD_LIGHTNESS_Y] =
        {"lightness_y", "1", 1, SK_LIFETIME_STEP, 1.0f,
         "reference density over the density of the liquid around the face; 1 where no particle is near"},
    [SK_FIELD_LIGHTNESS_Z] =
        {"lightness_z", "1", 2, SK_LIFETIME_STEP, 1.0f,
         "reference density over the density of the liquid around the face; 1 where no particle is near"},
};

const sk_field_def *sk_field_info(int field)
{
    return field >= 0 && field < SK_FIELD_COUNT ? &fields[field] : NULL;
}
