#include "world/scene_changes.h"

#include <math.h>

#include "base/status.h"
#include "geom/shape.h"
#include "world/world_internal.h"

int64_t sk_step_at(const sk_step_times *times, double time)
{
    double nearest = fabs(time);
    int64_t step = 0;
    if (!times || !times->step || !times->time)
        return -1;
    for (int64_t row = 0; row < times->count; row++)
        if (fabs(times->time[row] - time) < nearest) {
            nearest = fabs(times->time[row] - time);
            step = (int64_t)times->step[row];
        }
    return step;
}

/* s  when a step ended; NaN if it is not in the table */
static double time_of(const sk_step_times *times, int64_t step)
{
    if (step == 0)
        return 0.0;
    for (int64_t row = 0; times && times->step && times->time && row < times->count; row++)
        if ((int64_t)times->step[row] == step)
            return times->time[row];
    return (double)NAN;
}

static int moves_already(const selkie_scene *scene, const char *name)
{
    const int at = sk_change_find(scene->obstacles, scene->obstacle_count, sizeof *scene->obstacles, name);
    return at >= 0 && sk_obstacle_moves(&scene->obstacles[at]);
}

selkie_code sk_scene_change_solids(selkie_scene *scene, int64_t step, const sk_step_times *times, int *changed,
                                   selkie_error *error)
{
    *changed = 0;
    while (scene->change_count && scene->changes->step < step) {
        const selkie_change_def *change = scene->changes;
        const double time = time_of(times, change->step);
        const int removes = change->kind == SELKIE_CHANGE_REMOVE &&
                            (change->list == SELKIE_LIST_BODIES || change->list == SELKIE_LIST_OBSTACLES);
        if (removes || change->kind == SELKIE_CHANGE_BODY || change->kind == SELKIE_CHANGE_OBSTACLE) {
            SK_TRY(sk_scene_edit(scene, change, time, error)); /* their time does not matter */
            *changed = 1;
        } else if (change->kind == SELKIE_CHANGE_MOVE && isfinite(time)) {
            *changed |= !moves_already(scene, change->name); /* plates that move are drawn larger */
            SK_TRY(sk_scene_edit(scene, change, time, error));
        }
        scene->changes++;
        scene->change_count--;
    }
    return SELKIE_OK;
}
