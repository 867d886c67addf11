/* Rigid bodies as a method: their state, their checkpoint and their limit of the time step. The method that moves the
 * liquid has the phase that moves them. */
#ifndef SK_METHODS_BODIES_BODIES_H
#define SK_METHODS_BODIES_BODIES_H

#include "methods/method.h"

extern const sk_method sk_method_bodies;

#endif
