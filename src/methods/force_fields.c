#include "methods/force_fields.h"

#include <math.h>
#include <string.h>

#include "geom/frame.h"

_Static_assert((int)SELKIE_FORCE_EXPLOSION == SK_FORCE_EXPLOSION && (int)SELKIE_FORCE_VORTEX == SK_FORCE_VORTEX &&
                   (int)SELKIE_FORCE_JET == SK_FORCE_JET && (int)SELKIE_FORCE_UNIFORM == SK_FORCE_UNIFORM &&
                   (int)SELKIE_FORCE_SPONGE == SK_FORCE_SPONGE,
               "kernels and scenes number the kinds alike");
_Static_assert((int)SELKIE_FALLOFF_CONSTANT == SK_FALLOFF_CONSTANT && (int)SELKIE_FALLOFF_LINEAR == SK_FALLOFF_LINEAR &&
                   (int)SELKIE_FALLOFF_SMOOTH == SK_FALLOFF_SMOOTH,
               "kernels and scenes number the falloffs alike");

static int explodes_in(const selkie_force_def *force, sk_force_window window)
{
    return force->kind == SELKIE_FORCE_EXPLOSION && force->time >= window.from && force->time < window.to;
}

/* Time (s) for which the field acts within the window; for the kinds with a duration. */
static double time_within(const selkie_force_def *force, sk_force_window window)
{
    double from = fmax(force->start, window.from), to = force->end < 0.0 ? window.to : fmin(force->end, window.to);
    return to > from ? to - from : 0.0;
}

static double length_of(const double v[3], int dimension)
{
    return sqrt(v[0] * v[0] + v[1] * v[1] + (dimension == 3 ? v[2] * v[2] : 0.0));
}

/* Origin, direction and length of the axis. */
static void set_axis(sk_force_field *field, const selkie_force_def *force, int dimension)
{
    if (force->kind == SELKIE_FORCE_VORTEX && dimension == 2) { /* in 2D every vortex turns about z */
        field->axis[2] = 1.0f;
        for (int d = 0; d < 2; d++)
            field->point[d] = (float)force->point[d];
        return;
    }
    double axis[3];
    for (int d = 0; d < 3; d++)
        axis[d] = force->kind == SELKIE_FORCE_JET ? force->to[d] - force->from[d] : force->axis[d];
    double length = length_of(axis, dimension);
    for (int d = 0; d < dimension; d++) {
        field->axis[d] = (float)(axis[d] / length);
        field->point[d] = (float)(force->kind == SELKIE_FORCE_JET ? force->from[d] : force->point[d]);
    }
    field->length = (float)length;
}

/* The bounding box of the field. A vortex has no end along its axis. */
static void set_bounds(sk_force_field *field)
{
    for (int d = 0; d < 3; d++) {
        field->low[d] = -INFINITY;
        field->high[d] = INFINITY;
        float end = field->point[d] + field->length * field->axis[d];
        float slant = sqrtf(fmaxf(0.0f, 1.0f - field->axis[d] * field->axis[d])) * field->radius;
        if (field->kind == SK_FORCE_EXPLOSION || (field->kind == SK_FORCE_VORTEX && field->axis[d] == 0.0f)) {
            field->low[d] = field->point[d] - field->radius;
            field->high[d] = field->point[d] + field->radius;
        } else if (field->kind == SK_FORCE_JET) {
            field->low[d] = fminf(field->point[d], end) - slant;
            field->high[d] = fmaxf(field->point[d], end) + slant;
        }
    }
}

int sk_force_fields_most(const selkie_scene *scene)
{
    return scene->force_count + sk_frame_turns(&scene->frame);
}

/* Euler and centrifugal forces. */
static void set_frame(sk_force_field *field, const selkie_scene *scene, sk_force_window window)
{
    sk_frame_mean mean;
    sk_frame_mean_of(scene, scene->gravity, window.from, window.to, &mean);
    memset(field, 0, sizeof *field);
    field->kind = SK_FORCE_FRAME;
    for (int d = 0; d < 3; d++) {
        field->point[d] = (float)scene->frame.center[d];
        field->low[d] = -INFINITY;
        field->high[d] = INFINITY;
    }
    for (int i = 0; i < 9; i++)
        field->slope[i] = (float)(mean.slope[i] * (window.to - window.from));
}

int sk_force_fields_in(const selkie_scene *scene, sk_force_window window, sk_force_field *fields)
{
    const int dimension = scene->domain.dimension;
    int count = 0;
    for (int f = 0; f < scene->force_count; f++) {
        const selkie_force_def *force = &scene->forces[f];
        double time = force->kind == SELKIE_FORCE_EXPLOSION ? explodes_in(force, window) : time_within(force, window);
        if (!(time > 0.0) || force->kind == SELKIE_FORCE_SPONGE)
            continue;

        sk_force_field *field = &fields[count++];
        memset(field, 0, sizeof *field);
        field->kind = (int)force->kind;
        field->falloff = (int)force->falloff;
        field->radius = (float)force->radius;
        field->inverse_radius = (float)(1.0 / force->radius);

        switch (force->kind) {
        case SELKIE_FORCE_EXPLOSION:
            field->radial = (float)force->speed;
            for (int d = 0; d < dimension; d++)
                field->point[d] = (float)force->center[d];
            break;
        case SELKIE_FORCE_VORTEX:
            set_axis(field, force, dimension);
            field->angular = (float)(force->spin * time);
            field->inward = (float)(force->pull * time);
            field->along = dimension == 3 ? (float)(force->lift * time) : 0.0f;
            break;
        case SELKIE_FORCE_JET:
            set_axis(field, force, dimension);
            field->along = (float)(force->strength * time);
            break;
        case SELKIE_FORCE_UNIFORM:
            for (int d = 0; d < dimension; d++)
                field->uniform[d] = (float)(force->acceleration[d] * time);
            break;
        case SELKIE_FORCE_SPONGE:
            break;
        }
        set_bounds(field);
    }
    if (sk_frame_turns(&scene->frame))
        set_frame(&fields[count++], scene, window);
    return count;
}

void sk_force_fields_scale(sk_force_field *fields, int count, double factor)
{
    const float scale = (float)factor;
    for (int f = 0; f < count; f++) {
        fields[f].radial *= scale;
        fields[f].angular *= scale;
        fields[f].inward *= scale;
        fields[f].along *= scale;
        for (int d = 0; d < 3; d++)
            fields[f].uniform[d] *= scale;
        for (int i = 0; i < 9; i++)
            fields[f].slope[i] *= scale;
    }
}

double sk_force_fields_speed(const selkie_scene *scene, sk_force_window window)
{
    const int countable =
        256; /* explosions at once; above this the sum of all replaces the test of pairs and is a safe bound */
    double largest = 0.0, total = 0.0;
    int count = 0;

    /* Sum the speeds of all explosions. */
    for (int f = 0; f < scene->force_count; f++)
        if (explodes_in(&scene->forces[f], window)) {
            total += fabs(scene->forces[f].speed);
            count++;
        }
    if (count < 2 || count > countable)
        return total;

    /* Otherwise only explosions that overlap add up: find the largest such sum. */
    for (int f = 0; f < scene->force_count; f++) {
        const selkie_force_def *one = &scene->forces[f];
        if (!explodes_in(one, window))
            continue;
        double sum = 0.0;
        for (int g = 0; g < scene->force_count; g++) {
            const selkie_force_def *other = &scene->forces[g];
            double apart[3];
            for (int d = 0; d < 3; d++)
                apart[d] = one->center[d] - other->center[d];
            if (explodes_in(other, window) && length_of(apart, scene->domain.dimension) < one->radius + other->radius)
                sum += fabs(other->speed);
        }
        largest = fmax(largest, sum);
    }
    return largest;
}

/* The maximum of q w(q). The tangential and the inward speed of a vortex are proportional to q w(q). */
static double largest_slope(selkie_falloff falloff)
{
    return falloff == SELKIE_FALLOFF_CONSTANT ? 1.0 : falloff == SELKIE_FALLOFF_LINEAR ? 0.25 : 16.0 / 25.0 / sqrt(5.0);
}

/* A bound of the Euler and centrifugal accelerations in the domain (m/s2). */
static double frame_acceleration(const selkie_scene *scene, sk_force_window window)
{
    double square = 0.0, reach2 = 0.0;
    sk_frame_mean mean;
    if (!sk_frame_turns(&scene->frame))
        return 0.0;
    sk_frame_mean_of(scene, scene->gravity, window.from, window.to, &mean);
    for (int i = 0; i < 9; i++)
        square += mean.slope[i] * mean.slope[i];
    for (int d = 0; d < scene->domain.dimension; d++) {
        const double low = scene->domain.origin[d] - scene->frame.center[d], high = low + scene->domain.size[d];
        reach2 += fmax(low * low, high * high);
    }
    return sqrt(square * reach2);
}

double sk_force_fields_acceleration(const selkie_scene *scene, sk_force_window window)
{
    double sum = 0.0;
    for (int f = 0; f < scene->force_count; f++) {
        const selkie_force_def *force = &scene->forces[f];
        if (force->kind == SELKIE_FORCE_EXPLOSION || force->kind == SELKIE_FORCE_SPONGE ||
            !(time_within(force, window) > 0.0))
            continue;
        if (force->kind == SELKIE_FORCE_UNIFORM)
            sum += length_of(force->acceleration, scene->domain.dimension);
        else if (force->kind == SELKIE_FORCE_JET)
            sum += fabs(force->strength);
        else
            sum += (fabs(force->spin) * force->radius + fabs(force->pull)) * largest_slope(force->falloff) +
                   (scene->domain.dimension == 3 ? fabs(force->lift) : 0.0);
    }
    return sum + frame_acceleration(scene, window);
}
