/* Vectors of three floats for pictures: points, directions, colours. */
#ifndef SK_RENDER_VECTOR_H
#define SK_RENDER_VECTOR_H

#include <math.h>

typedef struct vec3 {
    float x, y, z;
} vec3;

static inline vec3 v3(float x, float y, float z)
{
    return (vec3){x, y, z};
}

static inline vec3 v3_from(const double a[3])
{
    return v3((float)a[0], (float)a[1], (float)a[2]);
}

static inline vec3 v3_add(vec3 a, vec3 b)
{
    return v3(a.x + b.x, a.y + b.y, a.z + b.z);
}

static inline vec3 v3_sub(vec3 a, vec3 b)
{
    return v3(a.x - b.x, a.y - b.y, a.z - b.z);
}

static inline vec3 v3_mul(vec3 a, vec3 b)
{
    return v3(a.x * b.x, a.y * b.y, a.z * b.z);
}

static inline vec3 v3_scale(vec3 a, float s)
{
    return v3(a.x * s, a.y * s, a.z * s);
}

/* a + s b */
static inline vec3 v3_along(vec3 a, float s, vec3 b)
{
    return v3(a.x + s * b.x, a.y + s * b.y, a.z + s * b.z);
}

static inline vec3 v3_mix(vec3 a, vec3 b, float t)
{
    return v3(a.x + t * (b.x - a.x), a.y + t * (b.y - a.y), a.z + t * (b.z - a.z));
}

static inline float v3_dot(vec3 a, vec3 b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static inline vec3 v3_cross(vec3 a, vec3 b)
{
    return v3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}

static inline float v3_length(vec3 a)
{
    return sqrtf(v3_dot(a, a));
}

static inline vec3 v3_unit(vec3 a)
{
    float length = v3_length(a);
    return length > 0.0f ? v3_scale(a, 1.0f / length) : a;
}

/* d mirrored at the plane with unit normal n */
static inline vec3 v3_reflect(vec3 d, vec3 n)
{
    return v3_along(d, -2.0f * v3_dot(d, n), n);
}

static inline float mixf(float a, float b, float t)
{
    return a + t * (b - a);
}

/* Of numbers, without the rules for others that fmaxf and fminf follow: a single instruction. */
static inline float largerf(float a, float b)
{
    return a > b ? a : b;
}

static inline float smallerf(float a, float b)
{
    return a < b ? a : b;
}

static inline float clampf(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

static inline float smoothstepf(float low, float high, float x)
{
    float t = clampf((x - low) / (high - low), 0.0f, 1.0f);
    return t * t * (3.0f - 2.0f * t);
}

#endif
