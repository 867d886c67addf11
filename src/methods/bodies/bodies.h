/* Rigid bodies as a method: their state, their checkpoint and their say in the length of a step. What the liquid does
 * to them is a phase of the method that moves the liquid. */
#ifndef SK_METHODS_BODIES_BODIES_H
#define SK_METHODS_BODIES_BODIES_H

#include "methods/method.h"

extern const sk_method sk_method_bodies;

#endif
