/* Drawn modes (Gerszewski, ch. 5.2): strokes and pictures, made free of divergence, moved, deflated. */
#ifndef SK_METHODS_REDUCED_DRAWN_H
#define SK_METHODS_REDUCED_DRAWN_H

#include "methods/reduced/reduced.h"

/* The largest number of modes that the drawings of a scene can give. */
int sk_drawn_most(const selkie_scene *scene);
/* Adds the drawn modes to the basis, and the coefficients of each drawing. */
selkie_code sk_drawn_add(sk_reduced *reduced, const sk_step *step, const sk_reduced_box *box, selkie_error *error);

#endif
