/* A step with a reflected projection, for one face and one particle.
 *
 * Velocities are half a step behind positions. v is the velocity of the faces from the particles. Forces and pressure
 * act for a shorter time and give u = P(v + kick / (1 + rho) f), close to the middle of the change. The change u - v is
 * then applied 1 + rho times: the velocity at the end is
 *   w = v + (1 + rho) (u - v) = u + rho (u - v).
 * Projection at the end (rho = 0) removes the divergence that the motion built up and its energy with it. With rho = 1
 * the change is symmetric about the middle of the step, and the loss falls by (1 - rho) / (1 + rho) (advection-
 * reflection: Zehnder et al. 2018; here the middle is that of the leapfrog, which needs no second solve).
 */
#ifndef SK_METHODS_FLIP_REFLECTION_KERNELS_H
#define SK_METHODS_FLIP_REFLECTION_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"

/* The change of a face's velocity (m/s). The gain of gravity is taken out of the difference and added again: in free
 * fall the difference is then exactly 0 and the change exactly the gain. */
SK_KERNEL float sk_net_change(float velocity, float before, float gain)
{
    return (velocity - (before + gain)) + gain;
}

/* The part of a change (m/s) that is reflected. At an impact the change is large, and its reflection would bounce:
 * `most`, a cell a step, bounds what it has beyond the gain of gravity. 0 where the velocity before is unknown (NaN).
 */
SK_KERNEL float sk_reflected_change(float change, float gain, float most)
{
    const float beyond = change - gain;
    if (change != change)
        return 0.0f;
    return (beyond > most ? most : beyond < -most ? -most : beyond) + gain;
}

/* A face after the pressure: its velocity (m/s), the change for FLIP, and the velocity at the end of a reflected step.
 */
typedef struct sk_face_after {
    float velocity, change, end;
} sk_face_after;

/* A face on a closed wall of the domain, with no liquid near it: particles there leave the wall freely, or they would
 * stick to a ceiling. `before` and `velocity` are those of free flight, before and after the forces; `away` is 1 or -1,
 * the way away from the wall. What points into the wall at the end of the step is stopped. */
SK_KERNEL sk_face_after sk_wall_face(float velocity, float before, float away, float gain, float rho, float most)
{
    const float change = sk_net_change(velocity, before, gain), more = rho * sk_reflected_change(change, gain, most);
    const float end = velocity + more;
    if (!(end * away > 0.0f)) {
        const sk_face_after stopped = {0.0f, sk_net_change(0.0f, before, gain), 0.0f};
        return stopped;
    }
    const sk_face_after leaving = {velocity * away > 0.0f ? velocity : 0.0f, change + more, end};
    return leaving;
}

/* The end of a particle's path (m), from its end along the field, and from a straight drift with the velocity at the
 * start (m/s). Particles that follow a frozen field through several cells meet other phases of the waves that travel
 * with them, and the surface grows teeth. The drift does not, but it may miss an impact. So the path ends at the
 * drift's end, but at most `reach` (m) from the field's. */
SK_KERNEL void sk_straighten(const float start[3], const float velocity[3], float dt, float reach, float x[3])
{
    float way[3] = {0.0f, 0.0f, 0.0f}, length2 = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++) {
        way[d] = (start[d] + dt * velocity[d]) - x[d];
        length2 += way[d] * way[d];
    }
    const float part = length2 > reach * reach ? reach / __builtin_sqrtf(length2) : 1.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        x[d] += part * way[d];
}

#endif
