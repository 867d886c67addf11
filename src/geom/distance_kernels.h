/* Signed distance (m, negative inside) of a point to a primitive, with the outward unit normal unless it is NULL.
 * Compiled by the C compiler and by nvcc. In 2D the third coordinate of the point is 0. */
#ifndef SK_GEOM_DISTANCE_KERNELS_H
#define SK_GEOM_DISTANCE_KERNELS_H

#include <math.h>
#include "base/kernel.h"
#include "geom/hit_kernels.h"

/* Scales to unit length, also if squares would over- or underflow. Returns the length, 0 if there is no direction. */
SK_KERNEL double sk_normalise(double v[3])
{
    const double largest = fmax(fabs(v[0]), fmax(fabs(v[1]), fabs(v[2])));
    if (!(largest > 0.0) || !(largest < 1.7e308))
        return 0.0;
    for (int i = 0; i < 3; i++)
        v[i] /= largest;
    const double length = sqrt(sk_hit_dot(v, v));
    for (int i = 0; i < 3; i++)
        v[i] /= length;
    return length * largest;
}

/* `offset` is the point from the middle, for this and the others. */
SK_KERNEL double sk_box_distance(const double half[3], int dimension, const double offset[3], double normal[3])
{
    double beyond[3] = {0.0, 0.0, 0.0}, sign[3] = {1.0, 1.0, 1.0}, deepest = -1.7e308;
    int axis = 0;
    for (int i = 0; i < dimension; i++) {
        const double depth = fabs(offset[i]) - half[i];
        sign[i] = offset[i] < 0.0 ? -1.0 : 1.0;
        beyond[i] = fmax(depth, 0.0);
        if (depth > deepest) {
            deepest = depth;
            axis = i;
        }
    }
    const double outside = sqrt(sk_hit_dot(beyond, beyond));
    if (normal) {
        normal[0] = normal[1] = normal[2] = 0.0;
        if (outside > 0.0)
            for (int i = 0; i < dimension; i++)
                normal[i] = sign[i] * beyond[i] / outside;
        else
            normal[axis] = sign[axis];
    }
    return deepest > 0.0 ? outside : deepest;
}

SK_KERNEL double sk_sphere_distance(double radius, const double offset[3], double normal[3])
{
    if (normal) {
        for (int i = 0; i < 3; i++)
            normal[i] = offset[i];
        if (!(sk_normalise(normal) > 0.0)) {
            normal[0] = normal[2] = 0.0;
            normal[1] = 1.0;
        }
    }
    return sqrt(sk_hit_dot(offset, offset)) - radius;
}

/* A rectangle in the half plane of (distance from the axis, distance along it from the middle). `side` is a unit vector
 * across the axis. */
SK_KERNEL double sk_cylinder_distance(const double axis[3], const double side[3], double radius, double half_length,
                                      const double offset[3], double normal[3])
{
    const double along = sk_hit_dot(offset, axis);
    double radial[3];
    for (int i = 0; i < 3; i++)
        radial[i] = offset[i] - along * axis[i];
    const double past_side = sqrt(sk_hit_dot(radial, radial)) - radius, past_end = fabs(along) - half_length;
    const double outside = hypot(fmax(past_side, 0.0), fmax(past_end, 0.0));
    if (normal) {
        if (!(sk_normalise(radial) > 0.0))
            for (int i = 0; i < 3; i++)
                radial[i] = side[i];
        const double end_sign = along < 0.0 ? -1.0 : 1.0;
        double side_part = past_side >= past_end ? 1.0 : 0.0, end_part = 1.0 - side_part;
        if (outside > 0.0) {
            side_part = fmax(past_side, 0.0) / outside;
            end_part = fmax(past_end, 0.0) / outside;
        }
        for (int i = 0; i < 3; i++)
            normal[i] = side_part * radial[i] + end_part * end_sign * axis[i];
        sk_normalise(normal); /* removes rounding: the radial part is normal to the axis to about 1e-16 / its length */
    }
    const double inside = fmax(past_side, past_end);
    return inside > 0.0 ? outside : inside;
}

SK_KERNEL double sk_half_space_distance(const double axis[3], const double offset[3], double normal[3])
{
    for (int i = 0; normal && i < 3; i++)
        normal[i] = axis[i];
    return sk_hit_dot(offset, axis);
}

#endif
