#include "methods/surface_tension/surface_tension.h"

#include <math.h>
#include <stdio.h>

#include "defs/materials.h"

static int takes_part(const selkie_scene *scene)
{
    return (scene->discretization == SELKIE_DISCRETIZATION_GRID ||
            scene->discretization == SELKIE_DISCRETIZATION_SPH) &&
           sk_scene_surface_tension(scene) > 0.0;
}

static int on_particles(const sk_step *step)
{
    return step->scene->discretization == SELKIE_DISCRETIZATION_SPH;
}

static int unilateral(const sk_step *step)
{
    return !on_particles(step) && step->scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL;
}

static int on_faces(const sk_step *step)
{
    return !on_particles(step) && !unilateral(step);
}

static selkie_code create(sk_step *step, selkie_error *error)
{
    static const sk_field_def curvature = {"curvature", "1/cell",
                                           -1,          SK_LIFETIME_STEP,
                                           0.0f,        "of the surface, in the cells beside it; positive for a drop"};
    static const sk_field_def push[3] = {
        {"tension_push_x", "m/s", 0, SK_LIFETIME_STEP, 0.0f, "impulse of surface tension"},
        {"tension_push_y", "m/s", 1, SK_LIFETIME_STEP, 0.0f, "impulse of surface tension"},
        {"tension_push_z", "m/s", 2, SK_LIFETIME_STEP, 0.0f, "impulse of surface tension"}};
    static const sk_field_def capillary = {"capillary",      "m/s", -1,
                                           SK_LIFETIME_STEP, 0.0f,  "unilateral: pressure of the curved surface"};
    sk_tension *tension = sk_allocate(step->memory, sizeof *tension);
    if (!tension)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "surface_tension: no memory");
    sk_step_set_state(step, &sk_method_surface_tension, tension);

    /* Constants. */
    const selkie_scene *scene = step->scene;
    tension->has_materials = 0;
    tension->pressure = NULL;
    tension->pressure_capacity = 0;
    for (int m = 0; m < SK_TRANSFER_MATERIALS; m++) {
        tension->sigma[m] = (float)sk_scene_surface_tension_of(scene, m < scene->material_count ? m : 0);
        tension->has_materials |= tension->sigma[m] != tension->sigma[0];
    }

    /* Fields. */
    tension->curvature = sk_grid_add_field(&step->grid, &curvature, error);
    if (tension->curvature < 0)
        return SELKIE_ERROR_MEMORY;
    for (int d = 0; on_faces(step) && d < step->dimension; d++) {
        const int field = sk_grid_add_field(&step->grid, &push[d], error);
        if (field < 0)
            return SELKIE_ERROR_MEMORY;
        step->tension_push = d ? step->tension_push : field;
    }
    if (unilateral(step)) {
        step->capillary = sk_grid_add_field(&step->grid, &capillary, error);
        if (step->capillary < 0)
            return SELKIE_ERROR_MEMORY;
    }
    return SELKIE_OK;
}

static void destroy(sk_step *step)
{
    sk_tension *tension = sk_step_state(step, &sk_method_surface_tension);
    if (tension)
        sk_release(step->memory, tension->pressure);
    step->surface_pressure = NULL;
    sk_release(step->memory, tension);
    sk_step_set_state(step, &sk_method_surface_tension, NULL);
}

/* s: twice the step of Brackbill et al. 1992 for a liquid beside air without mass. The blur of the curvature slows the
 * shortest waves, so that steps up to about four times that long are stable. */
static double longest_step(const sk_step *step)
{
    const selkie_scene *scene = step->scene;
    const double h = step->grid.cell_size;
    double longest = INFINITY;
    for (int m = 0; m < (scene->material_count ? scene->material_count : 1); m++) {
        const double sigma = sk_scene_surface_tension_of(scene, m);
        if (sigma > 0.0)
            longest = fmin(longest, sqrt(sk_scene_density(scene, m) * h * h * h / (M_PI * sigma)));
    }
    return longest;
}

static void limit_step(const sk_step *step, sk_step_limits *limits)
{
    limits->waves = fmax(limits->waves, selkie_scene_cfl(step->scene) * limits->length / longest_step(step));
}

static int step_too_long(sk_step *step, const selkie_statistics *statistics, char *reason, size_t size)
{
    (void)statistics;
    if (!(step->dt > 2.0 * longest_step(step)))
        return 0;
    snprintf(reason, size, "surface tension is stable up to %.2g s", 2.0 * longest_step(step));
    return 1;
}

static double bytes_per_cell(const selkie_scene *scene)
{
    return (double)(1 + scene->domain.dimension) * sizeof(float);
}

const sk_method sk_method_surface_tension = {
    .name = "surface_tension",
    .needs = SK_NEEDS_PARTICLES | SK_NEEDS_GRID,
    .fields = SK_FIELD_BIT(SK_FIELD_FILL) | SK_FIELD_BIT(SK_FIELD_RIGHT_SIDE),
    .takes_part = takes_part,
    .create = create,
    .destroy = destroy,
    .phases = {{.name = "surface_tension", .slot = SK_SLOT_TARGET, .run = SK_ONE_FORM(sk_tension), .when = on_faces},
               {.name = "surface_tension",
                .slot = SK_SLOT_TARGET,
                .run = SK_ONE_FORM(sk_tension_of_cells),
                .when = unilateral},
               {.name = "curvature",
                .slot = SK_SLOT_CLASSIFY,
                .run = SK_ONE_FORM(sk_tension_of_particles),
                .when = on_particles}},
    .limit_step = limit_step,
    .step_too_long = step_too_long,
    .bytes_per_cell = bytes_per_cell,
};
