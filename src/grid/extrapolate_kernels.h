/* Extrapolation into unknown values, and velocities behind solid surfaces, one face at a time. Compiled by the C
 * compiler and by nvcc. */
#ifndef SK_GRID_EXTRAPOLATE_KERNELS_H
#define SK_GRID_EXTRAPOLATE_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"

/* Mean of the known values among `count`, in their order; NaN if there are none. */
SK_KERNEL float sk_mean_of_known(const float *values, int count)
{
    float sum = 0.0f, known = 0.0f;
    for (int n = 0; n < count; n++)
        if (values[n] == values[n]) {
            sum += values[n];
            known += 1.0f;
        }
    return known > 0.0f ? sum / known : __builtin_nanf("");
}

/* The slope of a distance along an axis, from the differences to both sides (van Leer). Along smooth surfaces it is
 * their mean. Beside an edge one of them is that of the other side of the edge: their mean would tilt the normal, and
 * liquid that passes a plate's end along it would be turned into the plate. */
SK_KERNEL float sk_distance_slope(float before, float after)
{
    return before * after > 0.0f ? before * (2.0f * after / (before + after)) : 0.0f;
}

/* Outward normal of the nearest solid at the lower face of a cell across axis d. It comes from the distances (cells)
 * at the cell's own centre and at the centre below it along d. `own` and `below` hold the distance at the centre and
 * at the centres before and after it along each axis. The normal is zero if the distances have no gradient. */
SK_KERNEL void sk_normal_at_face(int d, const float own[1 + 2 * SELKIE_DIM], const float below[1 + 2 * SELKIE_DIM],
                                 float normal[3])
{
    float length2 = 0.0f;
    normal[2] = 0.0f;
    for (int e = 0; e < SELKIE_DIM; e++) {
        const int before = 1 + 2 * e, after = 2 + 2 * e;
        normal[e] = e == d ? own[0] - below[0]
                           : sk_distance_slope(0.5f * ((own[0] - own[before]) + (below[0] - below[before])),
                                               0.5f * ((own[after] - own[0]) + (below[after] - below[0])));
        length2 += normal[e] * normal[e];
    }
    const float scale = length2 > 1e-12f && length2 < 1e12f ? 1.0f / __builtin_sqrtf(length2) : 0.0f;
    for (int e = 0; e < SELKIE_DIM; e++)
        normal[e] *= scale;
}

/* Component d of a velocity without its part along the surface normal. The velocity is `relative` to the surface. */
SK_KERNEL float sk_slip_velocity(int d, float velocity, const float relative[3], const float normal[3])
{
    float through = 0.0f;
    for (int e = 0; e < SELKIE_DIM; e++)
        through += normal[e] * relative[e];
    return velocity - through * normal[d];
}

/* FLIP's change (m/s) at a face behind a solid whose velocity was extrapolated and then constrained to the surface.
 * Along the surface the change is that of the liquid, which was extrapolated too. Across it the particles take the
 * difference from their own velocity, `before`. The change of the liquid would drive them again and again, since the
 * velocity that they carry at the wall does not enter it: in a jet that meets a plate it grew to eight times that of
 * the jet. `normal` is the component of the outward normal along the axis of the face, -1 to 1.
 *
 * Particles that leave the surface take no more of the difference than the liquid changes. Beside an edge they are
 * those that pass it along the other side: film that ran off the end of a plate was braked by that end in each step,
 * the more the shorter the steps were, and particles behind the end fell onto it faster and faster. */
SK_KERNEL float sk_constrained_change(float change, float extrapolated, float constrained, float before, float normal)
{
    const float along = change + (constrained - extrapolated), across = normal * normal;
    float to_wall = constrained - before;
    if (before != before || across == 0.0f)
        return along;
    if (along != along)
        return to_wall;
    if (to_wall * normal < 0.0f) {
        const float liquid = change * to_wall > 0.0f ? change : 0.0f;
        to_wall = liquid * liquid < to_wall * to_wall ? liquid : to_wall;
    }
    return along + across * (to_wall - along);
}

/* Velocity behind a surface with a slip length, from that of free slip and the solid's. Liquid that slips has a linear
 * profile with the wall's velocity at the slip length b behind the surface: half a cell behind, (b - h/2) / (b + h/2) =
 * 1 - 2 grip of the velocity half a cell before. Liquid that sticks has the solid's there. */
SK_KERNEL float sk_held_velocity(float slipping, float solid, float grip)
{
    const float hold = grip < 0.5f ? 2.0f * grip : 1.0f;
    return slipping + hold * (solid - slipping);
}

#endif
