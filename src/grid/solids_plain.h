/* Distance and velocity of the nearest solid at a point, for the CPU and the GPU: see solids.h.
 *
 * The includer defines SK_SOLIDS_SHAPE_DISTANCE(obstacle, x, normal): sk_shape_distance_normal in the obstacle's frame.
 */
#ifndef SK_GRID_SOLIDS_PLAIN_H
#define SK_GRID_SOLIDS_PLAIN_H

#include <math.h>
#include <string.h>

#include "grid/solids.h"

/* Signed distance (m) of a world point to an obstacle in its present pose: sk_obstacle_distance. */
SK_KERNEL double distance_of_obstacle(const sk_obstacle *obstacle, const double x[3], double normal[3])
{
    double local[3];
    if (!obstacle->placed)
        return SK_SOLIDS_SHAPE_DISTANCE(obstacle, x, normal);
    sk_pose_to_local(obstacle->placed, x, local);
    const double distance = SK_SOLIDS_SHAPE_DISTANCE(obstacle, local, normal);
    sk_pose_rotate(obstacle->placed, normal, normal);
    return distance;
}

/* Of the walls and `count` obstacles: those that `among` lists in ascending order; NULL = the first ones. */
SK_KERNEL double distance_of_some(const sk_solids *solids, const int32_t *among, int count, const double x[3],
                                  double normal[3], int *obstacle)
{
    double nearest = INFINITY;
    *obstacle = -1;
    memset(normal, 0, 3 * sizeof *normal);

    /* Walls of the domain. */
    for (int side = 0; side < 2 * solids->dimension; side++) {
        if (solids->walls[side] == SELKIE_WALL_OPEN)
            continue;
        const int d = side / 2;
        const double distance = side & 1 ? solids->high[d] - x[d] : x[d] - solids->low[d];
        if (distance < nearest) {
            nearest = distance;
            memset(normal, 0, 3 * sizeof *normal);
            normal[d] = side & 1 ? -1.0 : 1.0;
        }
    }

    /* Obstacles whose bounds are within two cells. */
    for (int n = 0; n < count; n++) {
        const int o = among ? among[n] : n;
        const sk_obstacle *candidate = &solids->obstacles[o];
        double direction[3];
        int near = 1;
        for (int d = 0; d < solids->dimension; d++)
            near &=
                x[d] > candidate->low[d] - 2 * solids->cell_size && x[d] < candidate->high[d] + 2 * solids->cell_size;
        if (!near)
            continue;
        const double distance = distance_of_obstacle(candidate, x, direction);
        if (distance < nearest) {
            nearest = distance;
            memcpy(normal, direction, sizeof direction);
            *obstacle = o;
        }
    }
    return nearest;
}

SK_KERNEL double distance_of_solids(const sk_solids *solids, const double x[3], double normal[3], int *obstacle)
{
    return distance_of_some(solids, NULL, solids->obstacle_count, x, normal, obstacle);
}

SK_KERNEL void velocity_of_solids(const sk_solids *solids, int obstacle, const double x[3], double velocity[3])
{
    if (obstacle >= 0 && solids->obstacles[obstacle].moves)
        sk_pose_velocity(&solids->obstacles[obstacle].pose, x, velocity);
    else
        memset(velocity, 0, 3 * sizeof *velocity);
}

#endif
