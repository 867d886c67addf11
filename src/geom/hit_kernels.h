/* First hit of a segment on a primitive, for one segment. Used for the paths of particles.
 *
 * The segment runs from `a` to `a + way`, both relative to the middle of the primitive. A hit enters the primitive: a
 * segment that starts inside may leave freely. `at` is 0 at the start and 1 at the end; the normal points outwards.
 */
#ifndef SK_GEOM_HIT_KERNELS_H
#define SK_GEOM_HIT_KERNELS_H

#include "base/kernel.h"

typedef struct sk_surface_hit {
    double at;        /* share of the segment before the hit */
    double normal[3]; /* unit, towards the side that the segment comes from */
} sk_surface_hit;

SK_KERNEL double sk_hit_dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* The plane through the middle, with the solid behind it. */
SK_KERNEL int sk_hit_plane(const double normal[3], const double a[3], const double way[3], sk_surface_hit *hit)
{
    const double before = sk_hit_dot(a, normal), along = sk_hit_dot(way, normal);
    if (before < 0.0 || before + along >= 0.0)
        return 0;
    hit->at = before / -along;
    for (int i = 0; i < 3; i++)
        hit->normal[i] = normal[i];
    return 1;
}

SK_KERNEL int sk_hit_sphere(double radius, const double a[3], const double way[3], sk_surface_hit *hit)
{
    const double outside = sk_hit_dot(a, a) - radius * radius, along = sk_hit_dot(a, way);
    const double length2 = sk_hit_dot(way, way), under_root = along * along - length2 * outside;
    if (outside < 0.0 || along >= 0.0 || under_root < 0.0)
        return 0;
    hit->at = outside / (-along + __builtin_sqrt(under_root)); /* the smaller root, without cancellation */
    if (hit->at > 1.0)
        return 0;
    for (int i = 0; i < 3; i++)
        hit->normal[i] = (a[i] + hit->at * way[i]) / radius;
    return 1;
}

/* The part of a segment between two parallel planes, as a range of `at`. The first plane that it meets gives the
 * normal. Returns 0 if no part lies between them. */
typedef struct sk_hit_range {
    double enter, leave;
    double normal[3];
} sk_hit_range;

SK_KERNEL int sk_hit_slab(const double axis[3], double half, const double a[3], const double way[3],
                          sk_hit_range *range)
{
    const double x = sk_hit_dot(a, axis), along = sk_hit_dot(way, axis);
    if (along == 0.0)
        return __builtin_fabs(x) <= half;
    const double sign = along > 0.0 ? 1.0 : -1.0;
    const double enter = (-half - sign * x) / __builtin_fabs(along), leave = (half - sign * x) / __builtin_fabs(along);
    if (enter > range->enter) {
        range->enter = enter;
        for (int i = 0; i < 3; i++)
            range->normal[i] = -sign * axis[i];
    }
    range->leave = leave < range->leave ? leave : range->leave;
    return range->enter <= range->leave;
}

SK_KERNEL sk_hit_range sk_hit_whole(void)
{
    sk_hit_range range;
    range.enter = -1e300;
    range.leave = 1e300;
    for (int i = 0; i < 3; i++)
        range.normal[i] = 0.0;
    return range;
}

/* A range that begins on the segment is a hit; one that begins before it means a start inside. */
SK_KERNEL int sk_hit_of_range(const sk_hit_range *range, sk_surface_hit *hit)
{
    if (!(range->enter >= 0.0 && range->enter <= 1.0))
        return 0;
    hit->at = range->enter;
    for (int i = 0; i < 3; i++)
        hit->normal[i] = range->normal[i];
    return 1;
}

SK_KERNEL int sk_hit_box(const double half[3], int dimension, const double a[3], const double way[3],
                         sk_surface_hit *hit)
{
    sk_hit_range range = sk_hit_whole();
    for (int d = 0; d < dimension; d++) {
        double axis[3] = {0.0, 0.0, 0.0};
        axis[d] = 1.0;
        if (!sk_hit_slab(axis, half[d], a, way, &range))
            return 0;
    }
    return sk_hit_of_range(&range, hit);
}

/* The shell of a cylinder without end, cut by the slab between its ends. */
SK_KERNEL int sk_hit_cylinder(const double axis[3], double radius, double half_length, const double a[3],
                              const double way[3], sk_surface_hit *hit)
{
    sk_hit_range range = sk_hit_whole();
    const double a_along = sk_hit_dot(a, axis), way_along = sk_hit_dot(way, axis);
    double across[3], across_way[3];
    for (int i = 0; i < 3; i++) {
        across[i] = a[i] - a_along * axis[i];
        across_way[i] = way[i] - way_along * axis[i];
    }
    const double outside = sk_hit_dot(across, across) - radius * radius, along = sk_hit_dot(across, across_way);
    const double length2 = sk_hit_dot(across_way, across_way), under_root = along * along - length2 * outside;
    if (length2 > 0.0) {
        if (under_root < 0.0)
            return 0;
        const double root = __builtin_sqrt(under_root);
        range.enter = outside >= 0.0 && along < 0.0 ? outside / (-along + root) : (-along - root) / length2;
        range.leave = (-along + root) / length2;
        for (int i = 0; i < 3; i++)
            range.normal[i] = (across[i] + range.enter * across_way[i]) / radius;
    } else if (outside > 0.0) {
        return 0;
    }
    if (!sk_hit_slab(axis, half_length, a, way, &range))
        return 0;
    return sk_hit_of_range(&range, hit);
}

#endif
