/* Forces that depend on the velocity, applied to the particles themselves before any other force: the Coriolis force of
 * a turning frame and the damping of sponges. Every method that carries liquid on particles has them alike. Gravity is
 * not damped, so that liquid at rest in a sponge stays in balance. */
#ifndef SK_METHODS_PARTICLE_FORCES_PARTICLE_FORCES_H
#define SK_METHODS_PARTICLE_FORCES_PARTICLE_FORCES_H

#include "methods/method.h"
#include "methods/particle_forces/particle_force_kernels.h"

extern const sk_method sk_method_particle_forces;

enum { SK_MOST_SPONGES = 64 };

/* The forces of a step. */
typedef struct sk_particle_forces {
    int sponge_count;
    sk_sponge sponges[SK_MOST_SPONGES];
    float turn[9]; /* of the Coriolis force */
} sk_particle_forces;

/* Returns whether there are any. */
int sk_particle_forces_of(const sk_step *step, sk_particle_forces *forces);

/* `affine` is the gradient of the velocity, a row for each component: its columns are turned. NULL = none. */
SK_KERNEL void sk_particle_forces_apply(const sk_particle_forces *forces, sk_particle *particle, float *affine)
{
    float keep = 1.0f;
    for (int s = 0; s < forces->sponge_count; s++)
        keep *= sk_sponge_keep(&forces->sponges[s], particle->position);
    sk_turn_and_scale(forces->turn, keep, particle->velocity);
    for (int e = 0; affine && e < 3; e++) {
        float column[3] = {affine[e], affine[3 + e], affine[6 + e]};
        sk_turn_and_scale(forces->turn, keep, column);
        for (int d = 0; d < 3; d++)
            affine[3 * d + e] = column[d];
    }
}

#endif
