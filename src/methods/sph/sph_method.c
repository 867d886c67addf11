/* SPH as a method. */
#include <math.h>
#include <stdio.h>

#include "defs/materials.h"
#include "methods/sph/boundary.h"

static int takes_part(const selkie_scene *scene)
{
    return scene->discretization == SELKIE_DISCRETIZATION_SPH;
}

static selkie_code create(sk_step *step, selkie_error *error)
{
    SK_TRY(sk_sph_create(step, error));
    return sk_sph_boundary_init(step, error);
}

/* Remove particles that the sampling put into bodies. */
static selkie_code populate(sk_step *step, selkie_error *error)
{
    (void)error;
    if (step->rigid)
        sk_sph_boundary_clear_bodies(step);
    return SELKIE_OK;
}

/* Does a moving obstacle stay where it is in the first moment? Its corners move by less than `still`. */
static int starts_at_rest(const sk_obstacle *obstacle, double time, double dt, double still)
{
    sk_pose now, then;
    double moved = 0.0;
    sk_pose_at(obstacle->def, time, &now);
    sk_pose_at(obstacle->def, time + dt, &then);
    for (int corner = 0; corner < 8; corner++) {
        double local[3], x[3], end[3];
        for (int d = 0; d < 3; d++)
            local[d] = corner >> d & 1 ? obstacle->local_high[d] : obstacle->local_low[d];
        sk_pose_to_world(&now, local, x);
        sk_pose_to_world(&then, local, end);
        for (int d = 0; d < 3; d++)
            moved += fabs(end[d] - x[d]);
    }
    return moved < still; /* corners at infinity: not a number */
}

/* The lattice of the start knows nothing of obstacles. Particles that it puts closer to one than half a spacing are
 * compressed, and the first step would shoot them away at the natural speed of the scene. So they move apart before it.
 * Things that push or move by themselves are left alone, but not obstacles whose motion begins from rest. */
static int relax_rounds(const sk_step *step, double *dt, double *still)
{
    const selkie_scene *scene = step->scene;
    int pushed = scene->source_count > 0 || scene->drain_count > 0 || scene->body_count > 0 ||
                 sk_scene_surface_tension(scene) > 0.0 || scene->sph.tension > 0.0;
    for (int l = 0; l < scene->liquid_count; l++)
        pushed |= scene->liquids[l].fill_obstacles;
    for (int o = 0; o < scene->object_count; o++)
        pushed |= !scene->objects[o].start_solid || scene->objects[o].timeline_count > 0 ||
                  scene->objects[o].keyframe_count > 0;
    *dt = step->sph->correction_time;
    *still = 1e-3 * step->sph->spacing;
    for (int o = 0; o < step->solids.obstacle_count; o++) {
        const sk_obstacle *obstacle = &step->solids.obstacles[o];
        pushed |= obstacle->moves && !starts_at_rest(obstacle, step->time, *dt, *still);
    }
    return *dt > 0.0 && step->solids.obstacle_count + scene->object_count > 0 && !pushed ? 10 : 0;
}

static int has_viscosity(const sk_step *step)
{
    return sk_scene_viscosity(step->scene) > 0.0;
}

static int has_bodies(const sk_step *step)
{
    return step->rigid != NULL;
}

static int has_friction(const sk_step *step)
{
    int rubs = step->solids.has_friction;
    for (int b = 0; b < step->scene->body_count; b++)
        rubs |= step->scene->bodies[b].liquid_friction > 0.0;
    return rubs;
}

static void statistics(const sk_step *step, selkie_statistics *s)
{
    s->pressure_iterations = step->pressure.iterations;
    s->pressure_residual = step->pressure.residual;
    s->density_error_mean = step->sph->report.compression;
    s->density_error_max = step->sph->report.compression_max;
}

static void limit_step(const sk_step *step, sk_step_limits *limits)
{
    limits->length = step->sph->spacing;
    limits->waves = fmax(limits->waves, fmax(sk_sph_pressure_speed(step), sk_sph_tension_speed(step)));
}

/* A solve predicts the density at the end of the step along straight paths. If the step is too long for the pressure,
 * particles end elsewhere although the solve reports no error. The density at the next step shows it. The limit is
 * several times the error of steps that time.cfl chooses. */
static int step_too_long(sk_step *step, const selkie_statistics *s, char *reason, size_t size)
{
    enum { STEPS = 5 };
    const double factor = 3.0, usual = 0.001, asked = step->scene->sph.density_error;
    sk_sph *sph = step->sph;
    sph->compressed_steps = s->density_error_mean > factor * fmax(asked, usual) ? sph->compressed_steps + 1 : 0;
    if (sph->compressed_steps < STEPS)
        return 0;
    snprintf(reason, size,
             "for %d steps the liquid has been compressed by more than %g times what sph.density_error allows, now by "
             "%.2g %% of its density in the mean and not %.2g %%",
             STEPS, factor, 100.0 * s->density_error_mean, 100.0 * asked);
    return 1;
}

static double bytes_per_particle(const selkie_scene *scene)
{
    return sk_sph_bytes_per_particle(scene->domain.dimension);
}

const sk_method sk_method_sph = {
    .name = "sph",
    .needs = SK_NEEDS_PARTICLES | SK_NEEDS_GRID,
    .takes_part = takes_part,
    .create = create,
    .populate = populate,
    .destroy = sk_sph_destroy,
    .relax_rounds = relax_rounds,
    .phases =
        {
            {.name = "boundary", .slot = SK_SLOT_TO_GRID, .run = SK_ONE_FORM_ANY_DIMENSION(sk_sph_boundary_run)},
            {.name = "neighbours",
             .slot = SK_SLOT_TO_GRID,
             .run = SK_FORMS(sk_sph_neighbours, sk_sph_neighbours_plain)},
            {.name = "forces", .slot = SK_SLOT_FORCES, .run = SK_FORMS(sk_sph_forces, sk_sph_forces_plain)},
            {.name = "friction", .slot = SK_SLOT_VISCOSITY, .run = SK_ONE_FORM(sk_sph_friction), .when = has_viscosity},
            {.name = "correct", .slot = SK_SLOT_PRESSURE, .run = SK_FORMS(sk_sph_correct, sk_sph_correct_plain)},
            {.name = "pressure", .slot = SK_SLOT_PRESSURE, .run = SK_FORMS(sk_sph_pressure, sk_sph_pressure_plain)},
            {.name = "wall_friction",
             .slot = SK_SLOT_PRESSURE,
             .run = SK_ONE_FORM(sk_sph_wall_friction),
             .when = has_friction},
            {.name = "bodies",
             .slot = SK_SLOT_BODIES,
             .run = SK_ONE_FORM_ANY_DIMENSION(sk_sph_bodies_run),
             .when = has_bodies},
            {.name = "integrate", .slot = SK_SLOT_MOVE, .run = SK_ONE_FORM(sk_sph_integrate)},
        },
    .limit_step = limit_step,
    .step_too_long = step_too_long,
    .statistics = statistics,
    .value_at = sk_sph_at,
    .force_on = sk_sph_boundary_force,
    .bytes_per_particle = bytes_per_particle,
    .step_length = selkie_scene_spacing,
};
