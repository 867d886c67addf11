#include "methods/viscosity/viscosity.h"

#include <math.h>
#include <stdio.h>

#include "defs/heat.h"
#include "defs/materials.h"

static int takes_part(const selkie_scene *scene)
{
    return scene->discretization == SELKIE_DISCRETIZATION_GRID && sk_scene_viscosity(scene) > 0.0;
}

/* Has a surface friction? */
static int rubs(const sk_step *step)
{
    int found = step->solids.has_friction;
    for (int b = 0; b < step->scene->body_count; b++)
        found |= step->scene->bodies[b].liquid_friction > 0.0;
    return found;
}

/* Friction needs the force of the liquid on the walls. The viscous solve takes up a part of it. */
static selkie_code create(sk_step *step, selkie_error *error)
{
    static const sk_field_def defs[3] = {
        {"viscous_push_x", "m/s", -1, SK_LIFETIME_STEP, 0.0f, "normal impulse of the viscous stress along x"},
        {"viscous_push_y", "m/s", -1, SK_LIFETIME_STEP, 0.0f, "normal impulse of the viscous stress along y"},
        {"viscous_push_z", "m/s", -1, SK_LIFETIME_STEP, 0.0f, "normal impulse of the viscous stress along z"}};
    for (int d = 0; d < step->dimension && rubs(step); d++) {
        const int field = sk_grid_add_field(&step->grid, &defs[d], error);
        if (field < 0)
            return SELKIE_ERROR_MEMORY;
        step->viscous_push = d ? step->viscous_push : field;
    }
    return SELKIE_OK;
}

/* A thread of very thick liquid hangs on few faces: rounding may stop its solve just above the tolerance. */
static int warn(const sk_step *step, char *text, size_t size)
{
    if (!(step->viscous_residual > 0.0))
        return 0;
    snprintf(
        text, size,
        "viscosity: the solve of step %lld stopped at a residual of %.2g in place of %g; raise "
        "pressure.max_iterations (now %d), or lower time.cfl (now %g) for shorter steps, which are easier to solve",
        (long long)step->step_count, step->viscous_residual, SK_VISCOUS_TOLERANCE, step->scene->pressure.max_iterations,
        selkie_scene_cfl(step->scene));
    return 1;
}

selkie_code sk_viscosity_report(sk_step *step, const sk_stress_report *report, selkie_error *error)
{
    step->viscous_iterations = report->iterations;
    if (report->converged)
        return SELKIE_OK;
    if (report->residual <= SK_VISCOUS_STALL) {
        step->viscous_residual = fmax(step->viscous_residual, report->residual);
        return SELKIE_OK;
    }
    return sk_fail(error, SELKIE_ERROR_DIVERGED,
                   "step %lld at %g s: the viscosity solve stopped at a residual of %.3g after %d iterations; raise "
                   "pressure.max_iterations (now %d) or lower time.cfl",
                   (long long)step->step_count + 1, step->time, report->residual, report->iterations,
                   step->scene->pressure.max_iterations);
}

/* Above this strength a liquid is rigid in a step, and the solver needs many iterations for more. */
static const double most_strength = 1e5;

void sk_viscosity_laws(const selkie_scene *scene, double scale, float (*laws)[SK_VISCOUS_LAW_POINTS + 1], float *lowest,
                       float *inverse)
{
    double low, high;
    sk_scene_temperatures(scene, &low, &high);
    high = fmax(high, low + 1e-3);
    *lowest = (float)low;
    *inverse = (float)(SK_VISCOUS_LAW_POINTS / (high - low));
    for (int m = 0; laws && m < scene->material_count; m++)
        for (int n = 0; n <= SK_VISCOUS_LAW_POINTS; n++) {
            const double viscosity = sk_viscosity_at(scene, m, low + n * (high - low) / SK_VISCOUS_LAW_POINTS);
            laws[m][n] = (float)log(fmin(fmax(viscosity * scale, 1e-12), most_strength));
        }
}

float sk_viscosity_log(double viscosity, double largest, double scale)
{
    return (float)log(fmax(viscosity, 1e-6 * largest) * scale);
}

const sk_method sk_method_viscosity = {
    .name = "viscosity",
    .needs = SK_NEEDS_PARTICLES | SK_NEEDS_GRID,
    .takes_part = takes_part,
    .create = create,
    .warn = warn,
    .phases = {{.name = "viscosity", .slot = SK_SLOT_VISCOSITY, .run = SK_ONE_FORM(sk_viscosity)}},
};
