/* The length of a step, and the test whether a fixed length was too long. */
#include <math.h>
#include <stdio.h>

#include "defs/structs.h"
#include "geom/frame.h"
#include "methods/force_fields.h"
#include "world/world_internal.h"

/* The fastest obstacle, m/s: its centre and the corners of its bounds. */
static double obstacle_speed(const sk_step *step)
{
    double speed = 0.0;
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
    return speed;
}

/* A box that is full has no surface: gravity moves nothing in it. */
double sk_world_gravity(const selkie_scene *scene)
{
    const double *g = scene->gravity;
    return scene->discretization == SELKIE_DISCRETIZATION_REDUCED ? 0.0 : sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]);
}

/* The shortest gravity wave that the grid resolves has a length of two cells and a frequency of sqrt(pi a / h). A step
 * that is longer than its inverse does not follow the waves at the surface: they lose energy and grow teeth. Unilateral
 * incompressibility and sph keep shorter steps by their CFL numbers; the bound is there for water at rest. */
double sk_world_wave_step(const selkie_scene *scene, double cell_size, double acceleration)
{
    const int bilateral = scene->discretization == SELKIE_DISCRETIZATION_GRID &&
                          scene->incompressibility != SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    if (!(acceleration > 0.0) || !(cell_size > 0.0) || scene->discretization == SELKIE_DISCRETIZATION_REDUCED)
        return INFINITY;
    return bilateral ? sqrt(cell_size / (M_PI * acceleration)) : 1.1 * sqrt(cell_size / acceleration);
}

/* The step from the CFL number. It includes the speed of explosions in advance: every explosion that may fall into the
 * longest possible step counts. */
static double step_by_cfl(const selkie_world *world, double longest)
{
    const sk_step *step = &world->step;
    const sk_force_window window = {step->time - 0.5 * step->last_dt, step->time + 0.5 * longest};
    sk_frame_mean mean;
    sk_frame_mean_of(world->scene, world->scene->gravity, window.from, window.to, &mean);
    const double *g = mean.gravity;
    const int feels = world->scene->discretization != SELKIE_DISCRETIZATION_REDUCED;
    double acceleration = (feels ? sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]) : 0.0) +
                          sk_force_fields_acceleration(world->scene, window);

    sk_step_limits limits = {.length = step->grid.cell_size, .speed = fmax(step->sums.max_speed, obstacle_speed(step))};
    for (int m = 0; m < world->methods.count; m++)
        if (world->methods.methods[m]->limit_step)
            world->methods.methods[m]->limit_step(step, &limits);
    double speed = limits.speed + sk_force_fields_speed(world->scene, window) +
                   sqrt(acceleration * step->grid.cell_size) + limits.extra;
    speed = fmax(speed, limits.waves);
    double dt = speed > 0.0 ? selkie_scene_cfl(world->scene) * limits.length / speed : longest;
    dt = limits.step > 0.0 ? fmin(dt, fmax(limits.step, 0.25 * longest)) : dt;
    dt = fmin(dt, sk_world_wave_step(world->scene, step->grid.cell_size, acceleration));

    /* A bound from below would make points that push each other explicitly unstable. */
    const int explicit_points = sk_scene_has_points(world->scene) || sk_scene_has_immersed_points(world->scene);
    return fmin(explicit_points ? dt : fmax(dt, world->scene->time.min_step), longest);
}

/* A step that the scene sets. Particles of sph and elastic points push each other explicitly, so steps beyond the CFL
 * number are unstable: such a step is split into equal parts. Grids follow long steps. */
static double set_step(const selkie_world *world)
{
    const double step = world->scene->time.step;
    if (world->scene->discretization != SELKIE_DISCRETIZATION_SPH && !sk_scene_has_points(world->scene) &&
        !sk_scene_has_immersed_points(world->scene))
        return step;
    return step / ceil(step / step_by_cfl(world, step) - 1e-6);
}

double sk_world_choose_step(const selkie_world *world, double *end_time, int *on_frame)
{
    const selkie_time_def *def = &world->scene->time;
    const sk_step *step = &world->step;
    if (world->set_length > 0.0) {
        *end_time = step->time + world->set_length;
        *on_frame = 0;
        return world->set_length;
    }
    double frame_time = (double)(world->frame + 1) / def->fps;
    double target = frame_time <= def->end * (1 + 1e-12) || step->time >= def->end ? frame_time : def->end;
    double remaining = target - step->time, longest = def->max_step > 0.0 ? def->max_step : 1.0 / def->fps;
    double dt = def->step > 0.0 ? set_step(world) : step_by_cfl(world, longest);
    /* A step may be a hundredth longer than set. A tiny one before a frame would divide overlaps by its length. */
    double pieces = ceil(remaining / dt - (def->step > 0.0 ? 0.01 : 1e-6));
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

/* A step of a length that a caller chose passes any number of frames, and may end on one but for rounding. */
void sk_world_count_frames(selkie_world *world, int on_frame)
{
    world->at_frame = on_frame;
    world->frame += on_frame;
    if (!(world->set_length > 0.0))
        return;
    const double frames = world->step.time * world->scene->time.fps, nearest = nearbyint(frames);
    const int64_t before = world->frame;
    const int ends_on_frame = fabs(frames - nearest) < 1e-9 * (1.0 + frames);
    world->frame = (int64_t)(ends_on_frame ? nearest : floor(frames));
    world->at_frame = ends_on_frame && world->frame > before;
    world->set_length = 0.0;
}

/* Takes the first warning of a method, or warns once about a fixed step that one finds too long, and that was not
 * split. */
void sk_world_judge_step(selkie_world *world)
{
    const selkie_time_def *time = &world->scene->time;
    char reason[320];
    for (int m = 0; m < world->methods.count && !world->warning[0]; m++)
        if (world->methods.methods[m]->warn)
            world->methods.methods[m]->warn(&world->step, world->warning, sizeof world->warning);
    if (!(time->step > 0.0) || world->warning[0] || world->step.dt < 0.99 * time->step)
        return;
    for (int m = 0; m < world->methods.count; m++) {
        const sk_method *method = world->methods.methods[m];
        if (method->step_too_long && method->step_too_long(&world->step, &world->statistics, reason, sizeof reason)) {
            snprintf(
                world->warning, sizeof world->warning,
                "time.step: %g s is too long for the pressure: %s; choose a shorter one, or leave time.step out, so "
                "that time.cfl chooses (now %.2g s)",
                time->step, reason, step_by_cfl(world, time->step));
            return;
        }
    }
}
