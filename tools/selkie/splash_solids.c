#include "splash_solids.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "geom/shape.h"

struct splash_solids {
    const selkie_obstacle_def *defs; /* of the scene */
    int count, moving;
    double origin[3];  /* m */
    sk_shape **shapes; /* [count] */
    sk_pose *poses;
};

static int moves(const selkie_obstacle_def *def)
{
    int any = def->keyframe_count > 0 || def->oscillation_count > 0;
    for (int d = 0; d < 3; d++)
        any |= def->velocity[d] != 0.0 || def->angular_velocity[d] != 0.0;
    return any;
}

splash_solids *splash_solids_open(const selkie_scene *scene, selkie_error *error)
{
    splash_solids *solids = calloc(1, sizeof *solids);
    const size_t count = (size_t)scene->obstacle_count;
    double up[3];
    selkie_scene_up(scene, up);
    const sk_shape_options options = {
        .dimension = scene->domain.dimension, .up = up, .folder = scene->folder, .what = "obstacle"};
    if (solids) {
        solids->defs = scene->obstacles;
        memcpy(solids->origin, scene->domain.origin, (size_t)scene->domain.dimension * sizeof *solids->origin);
        solids->shapes = calloc(count + 1, sizeof *solids->shapes);
        solids->poses = calloc(count + 1, sizeof *solids->poses);
    }
    if (!solids || !solids->shapes || !solids->poses) {
        splash_solids_close(solids);
        sk_fail(error, SELKIE_ERROR_MEMORY, "out of memory");
        return NULL;
    }
    for (size_t n = 0; n < count; n++) {
        if (sk_shape_create(&scene->obstacles[n].shape, &options, &solids->shapes[n], error)) {
            splash_solids_close(solids);
            return NULL;
        }
        solids->count++;
        solids->moving |= moves(&scene->obstacles[n]);
        sk_pose_at(&scene->obstacles[n], 0.0, &solids->poses[n]);
    }
    return solids;
}

void splash_solids_close(splash_solids *solids)
{
    if (!solids)
        return;
    for (int n = 0; n < solids->count; n++)
        sk_shape_destroy(solids->shapes[n]);
    free(solids->shapes);
    free(solids->poses);
    free(solids);
}

int splash_solids_move(splash_solids *solids, double time)
{
    for (int n = 0; n < solids->count && solids->moving; n++)
        sk_pose_at(&solids->defs[n], time, &solids->poses[n]);
    return solids->moving;
}

double splash_solids_distance(const splash_solids *solids, const float position[3])
{
    double x[3], nearest = INFINITY;
    for (int d = 0; d < 3; d++)
        x[d] = position[d] + solids->origin[d];
    for (int n = 0; n < solids->count; n++)
        nearest = fmin(nearest, sk_obstacle_distance(solids->shapes[n], &solids->poses[n], x, NULL));
    return nearest;
}
