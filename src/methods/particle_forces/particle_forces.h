/* Forces that depend on the velocity, applied to the particles themselves before any other force: the Coriolis force of
 * a turning frame and the damping of sponges. Every method that carries liquid on particles has them alike. Gravity is
 * not damped, so that liquid at rest in a sponge stays in balance. */
#ifndef SK_METHODS_PARTICLE_FORCES_PARTICLE_FORCES_H
#define SK_METHODS_PARTICLE_FORCES_PARTICLE_FORCES_H

#include "methods/method.h"

extern const sk_method sk_method_particle_forces;

#endif
