/* The effect of a scene's force fields on the velocity at one point.
 *
 * force_fields.h makes the fields for a window of time and multiplies them by their time in it. A field therefore adds
 * a change of velocity (m/s), and the kernels are independent of the step. An explosion is a field that exists in one
 * window only.
 *
 * With r the distance from a centre (explosion) or from an axis (vortex, jet), R the radius and w(r/R) the falloff:
 *   explosion   radial w            away from the centre
 *   vortex      (angular r w) around the axis, (inward r/R w) towards it, (along w) along it
 *   jet         along w             along the axis, between its ends
 *   uniform     the same everywhere
 *   frame       slope (x - point): Euler and centrifugal forces of a turning frame
 */
#ifndef SK_METHODS_FORCE_KERNELS_H
#define SK_METHODS_FORCE_KERNELS_H

#include "base/kernel.h"

enum { SK_FORCE_EXPLOSION, SK_FORCE_VORTEX, SK_FORCE_JET, SK_FORCE_UNIFORM, SK_FORCE_SPONGE, SK_FORCE_FRAME };
enum { SK_FALLOFF_CONSTANT, SK_FALLOFF_LINEAR, SK_FALLOFF_SMOOTH };

typedef struct sk_force_field {
    int kind, falloff;
    float point[3];        /* m    centre, a point of the axis, or the end where a jet begins */
    float axis[3];         /*      unit vector */
    float length;          /* m    jet */
    float radius;          /* m    */
    float inverse_radius;  /* 1/m  */
    float radial;          /* m/s  explosion */
    float angular;         /* rad/s vortex */
    float inward;          /* m/s  vortex */
    float along;           /* m/s  vortex, jet */
    float uniform[3];      /* m/s  */
    float slope[9];        /* 1/s  frame, row-major */
    float low[3], high[3]; /* m    nothing happens outside */
} sk_force_field;

/* Fraction of the full strength at `q` radii from the middle: 0 from the radius on. */
SK_KERNEL float sk_force_falloff(int falloff, float q)
{
    if (q >= 1.0f)
        return 0.0f;
    if (falloff == SK_FALLOFF_CONSTANT)
        return 1.0f;
    if (falloff == SK_FALLOFF_LINEAR)
        return 1.0f - q;
    return (1.0f - q * q) * (1.0f - q * q);
}

/* Adds the change of velocity at x (m/s) to `change`. All three components are written; in 2D the third stays 0. */
SK_KERNEL void sk_force_field_add(const sk_force_field *field, const float x[3], float change[3])
{
    if (field->kind == SK_FORCE_UNIFORM) {
        for (int d = 0; d < 3; d++)
            change[d] += field->uniform[d];
        return;
    }

    if (field->kind == SK_FORCE_FRAME) {
        for (int d = 0; d < 3; d++)
            for (int e = 0; e < 3; e++)
                change[d] += field->slope[3 * d + e] * (x[e] - field->point[e]);
        return;
    }

    /* Offset from the centre of an explosion, otherwise from the axis. */
    float offset[3], along = 0.0f, r2 = 0.0f;
    for (int d = 0; d < 3; d++)
        offset[d] = x[d] - field->point[d];
    if (field->kind != SK_FORCE_EXPLOSION) { /* the rest of the offset points away from the axis */
        along = offset[0] * field->axis[0] + offset[1] * field->axis[1] + offset[2] * field->axis[2];
        if (field->kind == SK_FORCE_JET && (along < 0.0f || along > field->length))
            return;
        for (int d = 0; d < 3; d++)
            offset[d] -= along * field->axis[d];
    }

    /* Weight at this distance; 0 beyond the radius. */
    r2 = offset[0] * offset[0] + offset[1] * offset[1] + offset[2] * offset[2];
    float r = __builtin_sqrtf(r2), weight = sk_force_falloff(field->falloff, r * field->inverse_radius);
    if (weight == 0.0f)
        return;

    /* Explosion: away from the centre. */
    if (field->kind == SK_FORCE_EXPLOSION) {
        float scale = r > 0.0f ? field->radial * weight / r : 0.0f; /* the centre itself has no direction */
        for (int d = 0; d < 3; d++)
            change[d] += scale * offset[d];
        return;
    }

    /* Vortex and jet: around the axis, towards it and along it. */
    float turn = field->angular * weight, pull = field->inward * field->inverse_radius * weight,
          push = field->along * weight;
    change[0] +=
        turn * (field->axis[1] * offset[2] - field->axis[2] * offset[1]) - pull * offset[0] + push * field->axis[0];
    change[1] +=
        turn * (field->axis[2] * offset[0] - field->axis[0] * offset[2]) - pull * offset[1] + push * field->axis[1];
    change[2] +=
        turn * (field->axis[0] * offset[1] - field->axis[1] * offset[0]) - pull * offset[2] + push * field->axis[2];
}

/* All fields together: the change of velocity (m/s) at x. */
SK_KERNEL void sk_force_fields_velocity_change(const sk_force_field *fields, int count, const float x[3],
                                               float change[3])
{
    change[0] = change[1] = change[2] = 0.0f;
    for (int f = 0; f < count; f++)
        sk_force_field_add(&fields[f], x, change);
}

#endif
