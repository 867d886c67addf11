/* Rigid poses: points and velocities of a moving obstacle. Compiled by the C compiler and by nvcc. */
#ifndef SK_GEOM_POSE_KERNELS_H
#define SK_GEOM_POSE_KERNELS_H

#include <math.h>
#include "base/kernel.h"

/* x_world = rotation (x_local - center) + center + translation. */
typedef struct sk_pose {
    double rotation[9];         /* row-major */
    double translation[3];      /* m */
    double center[3];           /* m, in the local frame */
    double velocity[3];         /* m/s of the center */
    double angular_velocity[3]; /* rad/s, world frame */
} sk_pose;

typedef struct sk_quaternion {
    double w, x, y, z;
} sk_quaternion;

/* The rotation by a vector (rad). */
SK_KERNEL sk_quaternion sk_quaternion_of_turn(const double vector[3])
{
    const double angle = sqrt(vector[0] * vector[0] + vector[1] * vector[1] + vector[2] * vector[2]);
    /* sin(a/2)/a, with its series where the quotient loses digits. */
    const double factor = angle > 1e-6 ? sin(0.5 * angle) / angle : 0.5 - angle * angle / 48.0;
    sk_quaternion q;
    q.w = cos(0.5 * angle);
    q.x = factor * vector[0];
    q.y = factor * vector[1];
    q.z = factor * vector[2];
    return q;
}

SK_KERNEL void sk_matrix_of_quaternion(sk_quaternion q, double matrix[9])
{
    /* The scale removes rounding errors of the length, so that the matrix is orthonormal to the last digits. */
    const double s = 2.0 / (q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z);
    matrix[0] = 1.0 - s * (q.y * q.y + q.z * q.z);
    matrix[1] = s * (q.x * q.y - q.w * q.z);
    matrix[2] = s * (q.x * q.z + q.w * q.y);
    matrix[3] = s * (q.x * q.y + q.w * q.z);
    matrix[4] = 1.0 - s * (q.x * q.x + q.z * q.z);
    matrix[5] = s * (q.y * q.z - q.w * q.x);
    matrix[6] = s * (q.x * q.z - q.w * q.y);
    matrix[7] = s * (q.y * q.z + q.w * q.x);
    matrix[8] = 1.0 - s * (q.x * q.x + q.y * q.y);
}

/* The pose at a share of the way, 0 to 1, with the vector of sk_pose_turn. Both ends are exact. */
SK_KERNEL void sk_pose_between(const sk_pose *from, const sk_pose *to, const double turn[3], double share,
                               sk_pose *pose)
{
    *pose = share < 1.0 ? *from : *to;
    if (share <= 0.0 || share >= 1.0)
        return;
    for (int i = 0; i < 3; i++)
        pose->translation[i] = from->translation[i] + share * (to->translation[i] - from->translation[i]);
    if (turn[0] == 0.0 && turn[1] == 0.0 && turn[2] == 0.0)
        return;
    const double part[3] = {share * turn[0], share * turn[1], share * turn[2]};
    double matrix[9];
    sk_matrix_of_quaternion(sk_quaternion_of_turn(part), matrix);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            pose->rotation[3 * i + j] = matrix[3 * i] * from->rotation[j] + matrix[3 * i + 1] * from->rotation[3 + j] +
                                        matrix[3 * i + 2] * from->rotation[6 + j];
}

SK_KERNEL void sk_pose_to_local(const sk_pose *pose, const double world[3], double local[3])
{
    double y[3];
    for (int i = 0; i < 3; i++)
        y[i] = world[i] - pose->center[i] - pose->translation[i];
    const double *r = pose->rotation;
    for (int i = 0; i < 3; i++)
        local[i] = r[i] * y[0] + r[3 + i] * y[1] + r[6 + i] * y[2] + pose->center[i];
}

SK_KERNEL void sk_pose_rotate(const sk_pose *pose, const double local[3], double world[3])
{
    const double x = local[0], y = local[1], z = local[2]; /* the two may be the same array */
    const double *r = pose->rotation;
    for (int i = 0; i < 3; i++)
        world[i] = r[3 * i] * x + r[3 * i + 1] * y + r[3 * i + 2] * z;
}

SK_KERNEL void sk_pose_to_world(const sk_pose *pose, const double local[3], double world[3])
{
    double y[3];
    for (int i = 0; i < 3; i++)
        y[i] = local[i] - pose->center[i];
    sk_pose_rotate(pose, y, world);
    for (int i = 0; i < 3; i++)
        world[i] += pose->center[i] + pose->translation[i];
}

/* Velocity of the solid at a world point, m/s. */
SK_KERNEL void sk_pose_velocity(const sk_pose *pose, const double world[3], double velocity[3])
{
    double arm[3];
    for (int i = 0; i < 3; i++)
        arm[i] = world[i] - pose->center[i] - pose->translation[i];
    const double *w = pose->angular_velocity;
    velocity[0] = pose->velocity[0] + w[1] * arm[2] - w[2] * arm[1];
    velocity[1] = pose->velocity[1] + w[2] * arm[0] - w[0] * arm[2];
    velocity[2] = pose->velocity[2] + w[0] * arm[1] - w[1] * arm[0];
}

#endif
