/* Checks that keyframes keep an object inside the domain. */
#include <math.h>

#include "methods/liquid_boundary/liquid_boundary.h"

/* Is a point at least `margin` (m) inside every closed side of the domain? If not, `axis` receives the axis of a
 * violated side. */
static int is_inside(const sk_step *step, const double x[3], double margin, int *axis)
{
    for (int d = 0; d < step->dimension; d++) {
        const int low_is_closed = step->solids.walls[2 * d] != SELKIE_WALL_OPEN;
        const int high_is_closed = step->solids.walls[2 * d + 1] != SELKIE_WALL_OPEN;
        *axis = d;
        if ((low_is_closed && x[d] < step->grid.low[d] + margin) ||
            (high_is_closed && x[d] > step->grid.high[d] - margin))
            return 0;
    }
    return 1;
}

static double side_beyond(const sk_step *step, const double x[3], int axis)
{
    return x[axis] > step->grid.high[axis] ? step->grid.high[axis] : step->grid.low[axis];
}

/* Keyframes must not move an object behind a closed side of the domain: its particles would be flattened there. */
static selkie_code check_keys(const sk_step *step, const sk_object *object, int index, selkie_error *error)
{
    for (int k = 0; k < object->def->keyframe_count; k++) {
        sk_pose pose;
        sk_pose_at(&object->motion, object->def->keyframes[k].time, &pose);
        for (uint32_t n = 0; n < object->voxels.count; n++) {
            double x[3];
            int axis;
            sk_object_sample(object, &pose, n, x);
            if (!is_inside(step, x, 0.0, &axis))
                return sk_fail(error, SELKIE_ERROR_INPUT,
                               "objects[%d].keyframes[%d]: takes the object to %g m along %c, behind the closed side "
                               "of the domain "
                               "at %g m: move it less, or open that side (domain.walls)",
                               index, k, x[axis], "xyz"[axis], side_beyond(step, x, axis));
        }
    }
    return SELKIE_OK;
}

/* --- Between two keys ---
 *
 * A sample moves along a straight line and turns about an axis at once, uniformly: x(s) = straight line + circle of
 * radius at most r, with s from 0 to 1 and the angle a s. Its second derivative is at most r a^2, so its distance from
 * the chord is at most r a^2 / 8. Half of the path has 25 % of that. Paths are halved until they are certainly inside,
 * or until the uncertainty is below the tolerance.
 */

typedef struct way_search {
    const sk_step *step;
    const sk_object *object;
    double angle;   /* rad  between the keys */
    int pieces;     /*      a power of two */
    sk_pose *poses; /*      [pieces + 1] */
    int found;      /*      the pose that moves a sample outside, */
    int axis;       /*      along this axis, */
    double x[3];    /* m    to here */
} way_search;

/* Does the sample leave between two poses at which it is inside? `radius`: its distance (m) from the object's center.
 */
static int leaves_between(way_search *search, uint32_t sample, double radius, int from, int to, const double x[3],
                          const double y[3])
{
    const double angle = search->angle * (to - from) / search->pieces, margin = radius * angle * angle / 8.0;
    int axis;
    if (to - from < 2 || (is_inside(search->step, x, margin, &axis) && is_inside(search->step, y, margin, &axis)))
        return 0;
    const int middle = (from + to) / 2;
    double z[3];
    sk_object_sample(search->object, &search->poses[middle], sample, z);
    if (!is_inside(search->step, z, 0.0, &search->axis)) {
        search->found = middle;
        for (int d = 0; d < 3; d++)
            search->x[d] = z[d];
        return 1;
    }
    return leaves_between(search, sample, radius, from, middle, x, z) ||
           leaves_between(search, sample, radius, middle, to, z, y);
}

/* Distance (m) of a sample from the point that the object turns about. */
static double radius_of(const sk_object *object, uint32_t n)
{
    double square = 0.0;
    for (int d = 0; d < 3; d++) {
        double r = object->voxels.centers[n][d] - object->def->center[d];
        square += r * r;
    }
    return sqrt(square);
}

/* Checks the path to a keyframe from the one before. A straight path is inside if its ends are. */
static selkie_code check_way(const sk_step *step, const sk_object *object, int index, int key, selkie_error *error)
{
    enum { MOST_PIECES = 1 << 14 };
    const double tolerance = 0.01 * object->voxels.cell; /* m  penetration of a wall that is accepted */
    const double start = object->def->keyframes[key - 1].time, span = object->def->keyframes[key].time - start;

    /* The number of pieces, from the largest distance between a path and its chord. */
    sk_pose first;
    sk_pose_at(&object->motion, start, &first);
    const double *turn = first.angular_velocity;
    way_search search = {.step = step, .object = object, .pieces = 1};
    search.angle = span * sqrt(turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2]);
    double farthest = 0.0;
    for (uint32_t n = 0; n < object->voxels.count; n++)
        farthest = fmax(farthest, radius_of(object, n));
    const double deviation = farthest * search.angle * search.angle / 8.0;
    while (search.pieces < MOST_PIECES && deviation > tolerance * search.pieces * search.pieces)
        search.pieces *= 2;
    if (search.pieces == 1)
        return SELKIE_OK;

    /* Search the path of each sample. */
    search.poses = sk_allocate(step->memory, ((size_t)search.pieces + 1) * sizeof *search.poses);
    if (!search.poses)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "objects: no memory");
    for (int i = 0; i <= search.pieces; i++)
        sk_pose_at(&object->motion, start + span * i / search.pieces, &search.poses[i]);
    int leaves = 0;
    for (uint32_t n = 0; n < object->voxels.count && !leaves; n++) {
        double x[3], y[3];
        sk_object_sample(object, &search.poses[0], n, x);
        sk_object_sample(object, &search.poses[search.pieces], n, y);
        leaves = leaves_between(&search, n, radius_of(object, n), 0, search.pieces, x, y);
    }
    sk_release(step->memory, search.poses);

    if (!leaves)
        return SELKIE_OK;
    return sk_fail(error, SELKIE_ERROR_INPUT,
                   "objects[%d].keyframes[%d]: turns the object out of the domain on the way from the keyframe before: "
                   "at %g s it reaches "
                   "%g m along %c, behind the closed side at %g m; turn or move it less, put keyframes between that "
                   "keep it away from "
                   "that side, or open it (domain.walls)",
                   index, key, start + span * search.found / search.pieces, search.x[search.axis], "xyz"[search.axis],
                   side_beyond(step, search.x, search.axis));
}

/* An object that exists from the start must begin inside the domain. */
static selkie_code check_start(const sk_step *step, const sk_object *object, int index, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    sk_pose pose;
    sk_pose_at(&object->motion, step->time, &pose);
    for (uint32_t n = 0; object->def->start_solid && n < object->voxels.count; n++) {
        double x[3];
        sk_object_sample(object, &pose, n, x);
        for (int d = 0; d < step->dimension; d++)
            if (!(x[d] > grid->low[d] && x[d] < grid->high[d]))
                return sk_fail(error, SELKIE_ERROR_INPUT,
                               "objects[%d].shape: reaches %g m along %c at the start, outside the domain (%g..%g m)",
                               index, x[d] + grid->origin[d], "xyz"[d], grid -> low[d] + grid -> origin[d],
                               grid -> high[d] + grid -> origin[d]);
    }
    return SELKIE_OK;
}

selkie_code sk_object_check_motion(const sk_step *step, const sk_object *object, int index, selkie_error *error)
{
    SK_TRY(check_keys(step, object, index, error));
    for (int k = 1; k < object->def->keyframe_count; k++)
        SK_TRY(check_way(step, object, index, k, error));
    return check_start(step, object, index, error);
}
