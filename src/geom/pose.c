/* Poses of moving obstacles.
 *
 * Both kinds of motion keep the angular velocity constant over an interval, so one formula serves both: the rotation is
 * the exponential map of a rotation vector (Rodrigues' formula), applied on the left of the rotation at the start of
 * the interval. For keyframes the vector is the logarithm of the quaternion from one key to the next; scaling it is
 * spherical interpolation (Shoemake 1985), and its derivative, the angular velocity, is exact.
 */
#include "geom/shape.h"

#include <math.h>
#include <string.h>

static const double radians_per_degree = 0.017453292519943295769;

static sk_quaternion multiply(sk_quaternion a, sk_quaternion b)
{
    sk_quaternion c = {
        a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z,
        a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
        a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
        a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w,
    };
    return c;
}

/* The rotation vector of the short way round. */
static void to_rotation_vector(sk_quaternion q, double vector[3])
{
    double sign = q.w < 0.0 ? -1.0 : 1.0;
    double sine = sqrt(q.x * q.x + q.y * q.y + q.z * q.z);
    double factor = sine > 1e-9 ? 2.0 * atan2(sine, sign * q.w) / sine : 2.0;
    vector[0] = sign * factor * q.x;
    vector[1] = sign * factor * q.y;
    vector[2] = sign * factor * q.z;
}

/* About x, then y, then z: the last factor is on the left. */
static sk_quaternion from_degrees(const double degrees[3])
{
    double about_x[3] = {degrees[0] * radians_per_degree, 0.0, 0.0};
    double about_y[3] = {0.0, degrees[1] * radians_per_degree, 0.0};
    double about_z[3] = {0.0, 0.0, degrees[2] * radians_per_degree};
    return multiply(sk_quaternion_of_turn(about_z),
                    multiply(sk_quaternion_of_turn(about_y), sk_quaternion_of_turn(about_x)));
}

void sk_rotation_from_degrees(const double degrees[3], double rotation[9])
{
    /* Quarter turns are exact: scenes use them for meshes with another up axis, and a flat mesh must stay flat. */
    sk_matrix_of_quaternion(from_degrees(degrees), rotation);
    for (int i = 0; i < 9; i++) {
        double nearest = nearbyint(rotation[i]);
        if (fabs(rotation[i] - nearest) < 4e-16)
            rotation[i] = nearest;
    }
}

void sk_rotation_from_quaternion(const double wxyz[4], double rotation[9])
{
    sk_matrix_of_quaternion((sk_quaternion){wxyz[0], wxyz[1], wxyz[2], wxyz[3]}, rotation);
}

void sk_pose_identity(sk_pose *pose)
{
    memset(pose, 0, sizeof *pose);
    pose->rotation[0] = pose->rotation[4] = pose->rotation[8] = 1.0;
}

static void pose_at_keyframes(const selkie_obstacle_def *obstacle, double time, sk_pose *pose)
{
    const selkie_keyframe *keys = obstacle->keyframes;
    int last = obstacle->keyframe_count - 1;
    int before = -1; /* the last key at or before the time */
    for (int i = 0; i <= last && keys[i].time <= time; i++)
        before = i;

    /* Held outside the keys. */
    if (before < 0 || before == last) {
        const selkie_keyframe *held = before < 0 ? &keys[0] : &keys[last];
        memcpy(pose->translation, held->translate, sizeof pose->translation);
        sk_matrix_of_quaternion(from_degrees(held->rotate), pose->rotation);
        return;
    }

    const selkie_keyframe *a = &keys[before], *b = &keys[before + 1];
    double span = b->time - a->time; /* > 0: a is at or before the time, b after it */
    double share = (time - a->time) / span;
    sk_quaternion start = from_degrees(a->rotate);
    sk_quaternion back = {start.w, -start.x, -start.y, -start.z};
    double turn[3], part[3];
    to_rotation_vector(multiply(from_degrees(b->rotate), back), turn);
    for (int i = 0; i < 3; i++) {
        pose->translation[i] = a->translate[i] + share * (b->translate[i] - a->translate[i]);
        pose->velocity[i] = (b->translate[i] - a->translate[i]) / span;
        pose->angular_velocity[i] = turn[i] / span;
        part[i] = share * turn[i];
    }
    sk_matrix_of_quaternion(multiply(sk_quaternion_of_turn(part), start), pose->rotation);
}

/* The sine and its smooth start, s^3 (10 - 15 s + 6 s^2), whose second derivative is continuous. */
void sk_oscillation_at(const selkie_oscillation *oscillation, double time, double value[3])
{
    const double w = 2.0 * 3.14159265358979323846 / oscillation->period;
    const double angle = w * time + oscillation->phase * radians_per_degree;
    const double sine = sin(angle), slope = w * cos(angle), bend = -w * w * sine;
    double r = 1.0, r1 = 0.0, r2 = 0.0;
    if (time < oscillation->ramp && oscillation->ramp > 0.0) { /* time may be below 0: forces begin half a step early */
        const double s = time > 0.0 ? time / oscillation->ramp : 0.0, rest = 1.0 - s;
        r = s * s * s * (10.0 - 15.0 * s + 6.0 * s * s);
        r1 = 30.0 * s * s * rest * rest / oscillation->ramp;
        r2 = 60.0 * s * rest * (1.0 - 2.0 * s) / (oscillation->ramp * oscillation->ramp);
    }
    value[0] = r * sine;
    value[1] = r1 * sine + r * slope;
    value[2] = r2 * sine + 2.0 * r1 * slope + r * bend;
}

static void multiply_matrices(const double a[9], const double b[9], double product[9])
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            product[3 * i + j] = a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j];
}

void sk_rotation_from_angles(const double angles[3], const double rates[3], double rotation[9], double omega[3])
{
    const double about_z[3] = {0.0, 0.0, angles[2]}, about_y[3] = {0.0, angles[1], 0.0};
    const sk_quaternion z = sk_quaternion_of_turn(about_z), zy = multiply(z, sk_quaternion_of_turn(about_y));
    double rz[9], rzy[9];
    sk_matrix_of_quaternion(z, rz);
    sk_matrix_of_quaternion(zy, rzy);
    sk_matrix_of_quaternion(multiply(zy, sk_quaternion_of_turn((double[3]){angles[0], 0.0, 0.0})), rotation);

    /* Each rate turns about its axis after the later rotations. */
    for (int i = 0; i < 3; i++)
        omega[i] = (i == 2 ? rates[2] : 0.0) + rates[1] * rz[3 * i + 1] + rates[0] * rzy[3 * i];
}

void sk_pose_oscillate(const selkie_oscillation *oscillations, int count, double time, sk_pose *pose)
{
    double angles[3] = {0, 0, 0}, rates[3] = {0, 0, 0}, matrix[9], omega[3], turned[9];
    int turns = 0;
    for (int o = 0; o < count; o++) {
        double value[3];
        sk_oscillation_at(&oscillations[o], time, value);
        for (int i = 0; i < 3; i++) {
            pose->translation[i] += value[0] * oscillations[o].translate[i];
            pose->velocity[i] += value[1] * oscillations[o].translate[i];
            angles[i] += value[0] * oscillations[o].rotate[i] * radians_per_degree;
            rates[i] += value[1] * oscillations[o].rotate[i] * radians_per_degree;
            turns |= oscillations[o].rotate[i] != 0.0;
        }
    }
    if (!turns)
        return;
    sk_rotation_from_angles(angles, rates, matrix, omega);
    const double *w = pose->angular_velocity;
    for (int i = 0; i < 3; i++)
        omega[i] += matrix[3 * i] * w[0] + matrix[3 * i + 1] * w[1] + matrix[3 * i + 2] * w[2];
    multiply_matrices(matrix, pose->rotation, turned);
    memcpy(pose->rotation, turned, sizeof turned);
    memcpy(pose->angular_velocity, omega, sizeof omega);
}

static void pose_at_constant_motion(const selkie_obstacle_def *obstacle, double time, sk_pose *pose)
{
    double turn[3];
    for (int i = 0; i < 3; i++) {
        pose->velocity[i] = obstacle->velocity[i];
        pose->angular_velocity[i] = obstacle->angular_velocity[i];
        pose->translation[i] = obstacle->velocity[i] * time;
        turn[i] = obstacle->angular_velocity[i] * time;
    }
    sk_matrix_of_quaternion(sk_quaternion_of_turn(turn), pose->rotation);
}

void sk_pose_at(const selkie_obstacle_def *obstacle, double time, sk_pose *pose)
{
    sk_pose_identity(pose);
    memcpy(pose->center, obstacle->center, sizeof pose->center);
    if (obstacle->keyframe_count > 0 && obstacle->keyframes)
        pose_at_keyframes(obstacle, time, pose);
    else
        pose_at_constant_motion(obstacle, time, pose);
    if (obstacle->oscillation_count > 0)
        sk_pose_oscillate(obstacle->oscillations, obstacle->oscillation_count, time, pose);
}

int sk_obstacle_moves(const selkie_obstacle_def *obstacle)
{
    for (int o = 0; o < obstacle->oscillation_count; o++)
        for (int i = 0; i < 3; i++)
            if (obstacle->oscillations[o].translate[i] != 0.0 || obstacle->oscillations[o].rotate[i] != 0.0)
                return 1;
    if (obstacle->keyframe_count > 0 && obstacle->keyframes) {
        const selkie_keyframe *keys = obstacle->keyframes;
        for (int k = 1; k < obstacle->keyframe_count; k++)
            for (int i = 0; i < 3; i++)
                if (keys[k].translate[i] != keys[0].translate[i] || keys[k].rotate[i] != keys[0].rotate[i])
                    return 1;
        return 0;
    }
    for (int i = 0; i < 3; i++)
        if (obstacle->velocity[i] != 0.0 || obstacle->angular_velocity[i] != 0.0)
            return 1;
    return 0;
}

void sk_pose_turn(const sk_pose *from, const sk_pose *to, double turn[3])
{
    /* The matrix to * from^T; its quaternion from the largest of the four squares. */
    double m[9];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            m[3 * i + j] = 0.0;
            for (int k = 0; k < 3; k++)
                m[3 * i + j] += to->rotation[3 * i + k] * from->rotation[3 * j + k];
        }
    const double squares[4] = {1.0 + m[0] + m[4] + m[8], 1.0 + m[0] - m[4] - m[8], 1.0 - m[0] + m[4] - m[8],
                               1.0 - m[0] - m[4] + m[8]};
    sk_quaternion q = {squares[0], m[7] - m[5], m[2] - m[6], m[3] - m[1]};
    if (squares[1] > squares[0] && squares[1] >= squares[2] && squares[1] >= squares[3])
        q = (sk_quaternion){m[7] - m[5], squares[1], m[1] + m[3], m[2] + m[6]};
    else if (squares[2] > squares[0] && squares[2] >= squares[3])
        q = (sk_quaternion){m[2] - m[6], m[1] + m[3], squares[2], m[5] + m[7]};
    else if (squares[3] > squares[0])
        q = (sk_quaternion){m[3] - m[1], m[2] + m[6], m[5] + m[7], squares[3]};
    to_rotation_vector(q, turn);
}

void sk_quaternion_from_rotation(const double r[9], double wxyz[4])
{
    /* The largest component first: its square is not lost by cancellation. */
    const double squares[4] = {1.0 + r[0] + r[4] + r[8], 1.0 + r[0] - r[4] - r[8], 1.0 - r[0] + r[4] - r[8],
                               1.0 - r[0] - r[4] + r[8]};
    int best = 0;
    for (int i = 1; i < 4; i++)
        best = squares[i] > squares[best] ? i : best;
    const double rows[4][4] = {{squares[0], r[7] - r[5], r[2] - r[6], r[3] - r[1]},
                               {r[7] - r[5], squares[1], r[3] + r[1], r[2] + r[6]},
                               {r[2] - r[6], r[3] + r[1], squares[2], r[7] + r[5]},
                               {r[3] - r[1], r[2] + r[6], r[7] + r[5], squares[3]}};
    const double scale = (rows[best][0] < 0.0 ? -0.5 : 0.5) / sqrt(squares[best]);
    for (int i = 0; i < 4; i++)
        wxyz[i] = scale * rows[best][i];
}
