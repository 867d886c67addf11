/* Contact of a velocity with a solid: Coulomb friction, or stick. For nodes of a grid and for points. */
#ifndef SK_METHODS_CONTACT_KERNELS_H
#define SK_METHODS_CONTACT_KERNELS_H

#include <math.h>

#include "base/kernel.h"

/* Contact with a solid. */
typedef struct sk_solid_contact {
    float normal[3];   /*      outward */
    float velocity[3]; /* m/s  of the solid */
    float friction;    /*      Coulomb's */
    int sticks;        /*      holds on, also against tension */
} sk_solid_contact;

/* Velocity of a node or point that touches a solid, m/s. */
SK_KERNEL void sk_solid_touch(const sk_solid_contact *contact, int dimension, float velocity[3])
{
    float relative[3] = {0.0f, 0.0f, 0.0f}, into = 0.0f, speed2 = 0.0f;
    for (int d = 0; d < dimension; d++) {
        relative[d] = velocity[d] - contact->velocity[d];
        into -= relative[d] * contact->normal[d];
    }
    if (!contact->sticks && !(into > 0.0f))
        return;
    for (int d = 0; d < dimension; d++) {
        relative[d] += into * contact->normal[d];
        speed2 += relative[d] * relative[d];
    }
    const float speed = sqrtf(speed2), lost = contact->friction * into;
    const float kept = contact->sticks || !(speed > lost) ? 0.0f : 1.0f - lost / speed;
    for (int d = 0; d < dimension; d++)
        velocity[d] = contact->velocity[d] + kept * relative[d];
}

#endif
