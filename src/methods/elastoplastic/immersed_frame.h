/* What the plain functions of immersed points need of a step. For files compiled per dimension. */
#ifndef SK_METHODS_IMMERSED_FRAME_H
#define SK_METHODS_IMMERSED_FRAME_H

#include "methods/elastoplastic/immersed_plain.h"

/* With the arrays of the step. Those of particles change with a sort. */
immersed_frame SK_DIM(sk_immersed_frame)(const sk_step *step);

#endif
