/* Drawn modes (Gerszewski, ch. 5.2): strokes, made free of divergence, moved, deflated against the eigenfunctions. */
#ifndef SK_METHODS_REDUCED_DRAWN_H
#define SK_METHODS_REDUCED_DRAWN_H

#include "methods/reduced/reduced.h"

/* Modes of a fine spectrum: as many as the cells carry. */
int sk_reduced_fine_modes(const sk_reduced_box *box);
/* The largest number of modes that the drawings of a scene can give. */
int sk_drawn_most(const selkie_scene *scene);
/* Adds the drawn modes to the basis, and the coefficients of each drawing. */
selkie_code sk_drawn_add(sk_reduced *reduced, const sk_step *step, const sk_reduced_box *box, selkie_error *error);

#endif
