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

/* The part of a vector across a surface. */
SK_KERNEL float sk_across(const float vector[3], const float normal[3])
{
    float across = 0.0f;
    for (int e = 0; e < SELKIE_DIM; e++)
        across += normal[e] * vector[e];
    return across;
}

/* What crosses the surface at a closed face, m/s, away from the solid and relative to it. */
typedef struct sk_slip {
    float normal;  /* component of the outward normal along the axis of the face, -1 to 1; 0 = nothing slips there */
    float through; /* of the extrapolated velocity, which slip takes away */
    float before;  /* of the particles' own velocity */
    float change;  /* of the extrapolated change */
} sk_slip;

/* FLIP's change (m/s) at a face behind a solid whose velocity was extrapolated and then constrained to the surface.
 * Along the surface the change is that of the liquid, which was extrapolated too. Across it the particles lose their
 * own velocity, `before`. The change of the liquid would drive them again and again, since the velocity that they carry
 * at the wall does not enter it: in a jet that meets a plate it grew to eight times that of the jet.
 *
 * Particles that leave the surface lose no more than the liquid does. Beside an edge they are those that pass it along
 * the other side: film that ran off the end of a plate was braked by that end in each step, the more the shorter the
 * steps were, and particles behind the end fell onto it faster and faster. Whether they leave is told by the velocity
 * across the surface, not by one component: on an oblique surface a component alone would change its sign with the
 * velocity along the surface, and drive it. */
SK_KERNEL float sk_constrained_change(float change, float extrapolated, float constrained, float before,
                                      const sk_slip *slip)
{
    const float along = change + (constrained - extrapolated);
    if (before != before || slip->normal == 0.0f)
        return along;
    if (along != along)
        return constrained - before;
    float across = -slip->before;
    if (slip->before > 0.0f) {
        const float liquid = slip->change < 0.0f ? slip->change : 0.0f;
        across = liquid > across ? liquid : across;
    }
    return along + slip->normal * (across - (slip->change - slip->through));
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
