/* The distance to a wave, y = level + amplitude cos(k t + phase), one query at a time. Compiled by the C compiler and
 * by nvcc. */
#ifndef SK_GEOM_WAVE_KERNELS_H
#define SK_GEOM_WAVE_KERNELS_H

#include <math.h>

#include "geom/distance_kernels.h"

typedef struct sk_wave {
    double axis[3], side[3];   /*     units: up, and along the wave number */
    double level, amplitude;   /* m */
    double wave_number, phase; /* 1/m, rad; a wave number of 0: flat */
} sk_wave;

/* The nearest point of y = level + amplitude cos(k t + phase). The curve is symmetric about its crests and troughs, so
 * mirroring shows that the nearest point lies on the same monotone stretch (crest to trough) as the point itself, and
 * on the side of it where the curve comes closer to the point's height. That bracket is sampled, since it may hold two
 * minima, and the best sample is polished by Newton's method kept inside its neighbours by bisection. */
SK_KERNEL_CALLED double sk_wave_nearest(const sk_wave *wave, double along, double height)
{
    const double k = wave->wave_number, pi = 3.14159265358979323846;
    if (!(k > 0.0))
        return along;
    double theta = k * along + wave->phase;
    double stretch = floor(theta / pi);
    double here = wave->level + wave->amplitude * cos(theta);
    /* On stretch n, amplitude cos(theta) falls with theta if n is even and the amplitude positive. */
    int rises = (fmod(fabs(stretch), 2.0) != 0.0) != (wave->amplitude < 0.0);
    int forward = (height > here) == rises;
    double end = ((forward ? stretch + 1.0 : stretch) * pi - wave->phase) / k;
    /* No farther than straight up or down. */
    double reach = fmin(fabs(end - along), fabs(height - here));
    double direction = forward ? 1.0 : -1.0;

    enum { samples = 16 };
    double best = INFINITY, step = reach / samples, at = 0.0;
    for (int i = 0; i <= samples; i++) {
        double rise = wave->level + wave->amplitude * cos(k * (along + direction * step * i) + wave->phase) - height;
        double squared = step * i * step * i + rise * rise;
        if (squared < best) {
            best = squared;
            at = step * i;
        }
    }
    double low = fmax(at - step, 0.0), high = fmin(at + step, reach);
    for (int i = 0; i < 60 && high - low > 1e-15 * (fabs(along) + reach); i++) {
        double angle = k * (along + direction * at) + wave->phase;
        double rise = wave->level + wave->amplitude * cos(angle) - height;
        double slope = -direction * k * wave->amplitude * sin(angle);
        double bend = -k * k * wave->amplitude * cos(angle);
        double first = at + rise * slope; /* half the first and second derivatives of the squared distance */
        double second = 1.0 + slope * slope + rise * bend;
        if (first == 0.0)
            break;
        if (first > 0.0)
            high = at;
        else
            low = at;
        double next = second > 0.0 ? at - first / second : low;
        if (!(next > low && next < high))
            next = 0.5 * (low + high);
        if (fabs(next - at) <= 1e-15 * (fabs(along) + reach))
            break;
        at = next;
    }
    return along + direction * at;
}

SK_KERNEL_CALLED double sk_wave_distance(const sk_wave *wave, const double x[3], double normal[3])
{
    double along = sk_hit_dot(x, wave->side), height = sk_hit_dot(x, wave->axis);
    double nearest = sk_wave_nearest(wave, along, height);
    double angle = wave->wave_number * nearest + wave->phase;
    double rise = height - (wave->level + wave->amplitude * cos(angle));
    double above = height - (wave->level + wave->amplitude * cos(wave->wave_number * along + wave->phase));
    if (normal) {
        /* At the nearest point of a smooth curve the gradient of the distance is the curve's normal. */
        double slope = -wave->wave_number * wave->amplitude * sin(angle);
        for (int i = 0; i < 3; i++)
            normal[i] = wave->axis[i] - slope * wave->side[i];
        sk_normalise(normal);
    }
    return copysign(hypot(along - nearest, rise), above);
}

#endif
