#include "geom/frame.h"

#include <math.h>
#include <string.h>

#include "geom/shape.h"

enum { PANELS = 4 }; /* of the midpoint rule over a window */

typedef struct frame_motion {
    double velocity[3], acceleration[3]; /* m/s, m/s2 */
    double angles[3], rates[3];          /* rad, rad/s */
} frame_motion;

static const double radians_per_degree = 0.017453292519943295769;

int sk_frame_moves(const selkie_frame_def *frame)
{
    return frame->keyframe_count > 1 || frame->oscillation_count > 0 || sk_frame_turns(frame);
}

int sk_frame_turns(const selkie_frame_def *frame)
{
    for (int k = 0; k < frame->keyframe_count; k++)
        for (int i = 0; i < 3; i++)
            if (frame->keyframes[k].rotate[i] != 0.0)
                return 1;
    for (int o = 0; o < frame->oscillation_count; o++)
        for (int i = 0; i < 3; i++)
            if (frame->oscillations[o].rotate[i] != 0.0)
                return 1;
    return 0;
}

/* Component c of a keyframe: translation, then rotation. */
static double key_value(const selkie_keyframe *key, int c)
{
    return c < 3 ? key->translate[c] : key->rotate[c - 3] * radians_per_degree;
}

/* Slope of the curve at key k: of the parabola through it and its neighbours, and 0 at both ends. */
static double key_slope(const selkie_frame_def *frame, int k, int c)
{
    if (k == 0 || k == frame->keyframe_count - 1)
        return 0.0;
    const selkie_keyframe *key = &frame->keyframes[k];
    const double before = key->time - key[-1].time, after = key[1].time - key->time;
    const double left = (key_value(key, c) - key_value(key - 1, c)) / before;
    const double right = (key_value(key + 1, c) - key_value(key, c)) / after;
    return (left * after + right * before) / (before + after);
}

/* Value and derivatives of component c of the keyframes: cubic between two keys, held outside. */
static void keyframes_at(const selkie_frame_def *frame, double time, int c, double value[3])
{
    const selkie_keyframe *keys = frame->keyframes;
    const int last = frame->keyframe_count - 1;
    value[0] = value[1] = value[2] = 0.0;
    if (last < 0)
        return;
    if (time <= keys[0].time || time >= keys[last].time) {
        value[0] = key_value(&keys[time <= keys[0].time ? 0 : last], c);
        return;
    }
    int low = 0, high = last;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (keys[middle].time <= time)
            low = middle;
        else
            high = middle;
    }
    const double span = keys[high].time - keys[low].time, s = (time - keys[low].time) / span;
    const double a = key_value(&keys[low], c), b = key_value(&keys[high], c);
    const double p = span * key_slope(frame, low, c), q = span * key_slope(frame, high, c);
    const double k2 = 3.0 * (b - a) - 2.0 * p - q, k3 = 2.0 * (a - b) + p + q;
    value[0] = a + s * (p + s * (k2 + s * k3));
    value[1] = (p + s * (2.0 * k2 + 3.0 * s * k3)) / span;
    value[2] = (2.0 * k2 + 6.0 * s * k3) / (span * span);
}

static void motion_at(const selkie_frame_def *frame, double time, frame_motion *motion)
{
    memset(motion, 0, sizeof *motion);
    for (int i = 0; i < 3; i++) {
        double value[3];
        keyframes_at(frame, time, i, value);
        motion->velocity[i] = value[1];
        motion->acceleration[i] = value[2];
        keyframes_at(frame, time, i + 3, value);
        motion->angles[i] = value[0];
        motion->rates[i] = value[1];
    }
    for (int o = 0; o < frame->oscillation_count; o++) {
        double value[3];
        sk_oscillation_at(&frame->oscillations[o], time, value);
        for (int i = 0; i < 3; i++) {
            const double angle = frame->oscillations[o].rotate[i] * radians_per_degree;
            motion->velocity[i] += value[1] * frame->oscillations[o].translate[i];
            motion->acceleration[i] += value[2] * frame->oscillations[o].translate[i];
            motion->angles[i] += value[0] * angle;
            motion->rates[i] += value[1] * angle;
        }
    }
}

static void gravity_at(const selkie_scene *scene, const double gravity[3], double time, double result[3])
{
    const selkie_gravity_key *keys = scene->gravity_keys;
    const int last = scene->gravity_key_count - 1;
    int before = 0;
    memcpy(result, last < 0 ? gravity : keys[0].gravity, 3 * sizeof *result);
    if (last < 0 || time <= keys[0].time)
        return;
    while (before < last && keys[before + 1].time <= time)
        before++;
    const selkie_gravity_key *a = &keys[before], *b = &keys[before < last ? before + 1 : last];
    const double share = b > a ? (time - a->time) / (b->time - a->time) : 0.0;
    for (int i = 0; i < 3; i++)
        result[i] = a->gravity[i] + share * (b->gravity[i] - a->gravity[i]);
}

/* Multiplies by the transposed matrix: from the fixed frame into the moving one. */
static void to_frame(const double rotation[9], const double fixed[3], double moving[3])
{
    for (int i = 0; i < 3; i++)
        moving[i] = rotation[i] * fixed[0] + rotation[3 + i] * fixed[1] + rotation[6 + i] * fixed[2];
}

/* Angular velocity in the frame (rad/s). */
static void omega_at(const selkie_frame_def *frame, double time, double omega[3])
{
    frame_motion motion;
    double rotation[9], fixed[3];
    motion_at(frame, time, &motion);
    sk_rotation_from_angles(motion.angles, motion.rates, rotation, fixed);
    to_frame(rotation, fixed, omega);
}

/* Adds the accelerations at a moment, times a weight; without the Euler force. */
static void add_moment(const selkie_scene *scene, const double gravity[3], double time, double weight,
                       sk_frame_mean *mean)
{
    frame_motion motion;
    double rotation[9], fixed[3], w[3], g[3];
    motion_at(&scene->frame, time, &motion);
    sk_rotation_from_angles(motion.angles, motion.rates, rotation, fixed);
    to_frame(rotation, fixed, w);
    gravity_at(scene, gravity, time, g);
    for (int i = 0; i < 3; i++)
        g[i] -= motion.acceleration[i];
    to_frame(rotation, g, fixed);
    const double square = w[0] * w[0] + w[1] * w[1] + w[2] * w[2];
    for (int i = 0; i < 3; i++) {
        mean->gravity[i] += weight * fixed[i];
        mean->omega[i] += weight * w[i];
        /* -w x (w x r) = w^2 r - w (w . r) */
        for (int j = 0; j < 3; j++)
            mean->slope[3 * i + j] += weight * ((i == j ? square : 0.0) - w[i] * w[j]);
    }
}

void sk_frame_mean_of(const selkie_scene *scene, const double gravity[3], double from, double to, sk_frame_mean *mean)
{
    memset(mean, 0, sizeof *mean);
    if (!sk_frame_moves(&scene->frame) && !scene->gravity_key_count) {
        memcpy(mean->gravity, gravity, sizeof mean->gravity);
        return;
    }
    for (int p = 0; p < PANELS; p++)
        add_moment(scene, gravity, from + (p + 0.5) / PANELS * (to - from), 1.0 / PANELS, mean);

    /* The Euler force, -w' x r, from the change of the angular velocity over the window: its mean is exact. */
    if (!sk_frame_turns(&scene->frame))
        return;
    const double short_time = 1e-6, begin = to > from ? from : from - short_time,
                 end = to > from ? to : to + short_time;
    double first[3], last[3], a[3];
    omega_at(&scene->frame, begin, first);
    omega_at(&scene->frame, end, last);
    for (int i = 0; i < 3; i++)
        a[i] = (last[i] - first[i]) / (end - begin);
    const double euler[9] = {0.0, a[2], -a[1], -a[2], 0.0, a[0], a[1], -a[0], 0.0};
    for (int i = 0; i < 9; i++)
        mean->slope[i] += euler[i];
}
