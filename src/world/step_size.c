/* How long a step is, and whether one of a fixed length was too long. */
#include <math.h>
#include <stdio.h>

#include "methods/force_fields.h"
#include "methods/sph/sph.h"
#include "world/world_internal.h"

/* Within a domain's size of the domain: a body there may reach into it. */
static int is_near(const sk_step *step, const double x[3])
{
    int near = 1;
    for (int d = 0; d < step->dimension; d++) {
        double size = step->grid.high[d] - step->grid.low[d];
        near &= x[d] > step->grid.low[d] - size && x[d] < step->grid.high[d] + size;
    }
    return near;
}

/* The fastest thing that the step must resolve, m/s; `acceleration` is that of gravity and the forces. */
static double fastest(const selkie_world *world, double acceleration, sk_force_window window)
{
    const sk_step *step = &world->step;
    const selkie_scene *scene = world->scene;
    double speed = step->sums.max_speed;
    for (int s = 0; s < scene->source_count; s++) {
        const double *v = scene->sources[s].velocity;
        speed = fmax(speed, sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]));
    }
    for (int b = 0; step->rigid && b < step->rigid->body_count; b++)
        if (is_near(step,
                    step->rigid->states[b].position)) /* one that has fallen out of an open side is nobody's business */
            speed = fmax(speed, sk_rigid_speed(step->rigid, b));
    for (int o = 0; o < step->solids.obstacle_count; o++) {
        const sk_obstacle *obstacle = &step->solids.obstacles[o];
        const double *centre = obstacle->pose.velocity;
        if (obstacle->moves)
            speed = fmax(speed, sqrt(centre[0] * centre[0] + centre[1] * centre[1] + centre[2] * centre[2]));
        for (int corner = 0; obstacle->moves && corner < 8; corner++) {
            double x[3], v[3];
            int finite = 1;
            for (int d = 0; d < 3; d++) {
                x[d] = corner >> d & 1 ? obstacle->high[d] : obstacle->low[d];
                finite &= isfinite(x[d]) != 0;
            }
            if (finite) {
                sk_pose_velocity(&obstacle->pose, x, v);
                speed = fmax(speed, sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]));
            }
        }
    }
    return speed + sk_force_fields_speed(scene, window) + sqrt(acceleration * step->grid.cell_size);
}

/* The step that the CFL number asks for. It counts what an explosion adds before it does: one that could still fall
 * into this step, as long as steps may be, is reckoned with. */
static double step_by_cfl(const selkie_world *world, double longest)
{
    const sk_step *step = &world->step;
    const sk_force_window window = {step->time - 0.5 * step->last_dt, step->time + 0.5 * longest};
    const double *g = world->scene->gravity;
    double acceleration =
        sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]) + sk_force_fields_acceleration(world->scene, window);
    double speed = fastest(world, acceleration, window);
    double length = step->sph ? step->sph->spacing : step->grid.cell_size;
    if (step->sph)
        speed += sk_sph_pressure_speed(step);
    double dt = speed > 0.0 ? selkie_scene_cfl(world->scene) * length / speed : longest;
    /* Waves of the length of a cell must not travel farther than it in a step, or water at rest begins to shake. */
    if (acceleration > 0.0)
        dt = fmin(dt, 1.1 * sqrt(step->grid.cell_size / acceleration));
    return fmin(fmax(dt, world->scene->time.min_step), longest);
}

double sk_world_choose_step(const selkie_world *world, double *end_time, int *on_frame)
{
    const selkie_time_def *def = &world->scene->time;
    const sk_step *step = &world->step;
    double frame_time = (double)(world->frame + 1) / def->fps;
    double target = frame_time <= def->end * (1 + 1e-12) || step->time >= def->end ? frame_time : def->end;
    double remaining = target - step->time, longest = def->max_step > 0.0 ? def->max_step : 1.0 / def->fps;
    double dt = def->step;
    if (!(dt > 0.0))
        dt = step_by_cfl(world, longest);
    double pieces = ceil(remaining / dt - 1e-6);
    if (pieces <= 1.0) {
        *end_time = target;
        *on_frame = target == frame_time;
        return remaining;
    }
    if (!(def->step > 0.0))
        dt = remaining / pieces;
    *end_time = step->time + dt;
    *on_frame = 0;
    return dt;
}

/* A solve predicts the density at the end of the step along straight ways. Where a step is too long for the pressure,
 * particles end elsewhere, and the solve reports no error: what they really make of the density tells. Shorter steps,
 * as time.cfl chooses them, leave 0.05 to 0.2 % in breaking dams, whatever is asked for. */
void sk_world_judge_step(selkie_world *world)
{
    enum { STEPS = 5 };
    const double factor = 3.0, usual = 0.001;
    const selkie_scene *scene = world->scene;
    if (!world->step.sph || !(scene->time.step > 0.0) || world->warning[0])
        return;
    const double mean = world->statistics.density_error_mean;
    world->compressed_steps = mean > factor * fmax(scene->sph.density_error, usual) ? world->compressed_steps + 1 : 0;
    if (world->compressed_steps < STEPS)
        return;
    snprintf(world->warning, sizeof world->warning,
             "time.step: %g s is too long for the pressure: for %d steps the liquid has been compressed by more than "
             "%g times what "
             "sph.density_error allows, now by %.2g %% of its density in the mean and not %.2g %%; choose a shorter "
             "one, or leave "
             "time.step out, so that time.cfl chooses (now %.2g s)",
             scene->time.step, STEPS, factor, 100.0 * mean, 100.0 * scene->sph.density_error,
             step_by_cfl(world, scene->time.step));
}
