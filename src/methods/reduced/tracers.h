/* Many tracers in the velocities of the nodes. */
#ifndef SK_METHODS_REDUCED_TRACERS_H
#define SK_METHODS_REDUCED_TRACERS_H

#include "methods/reduced/reduced_kernels.h"
#include "particles/store.h"

/* Moves tracers as sk_reduced_move_tracer does, up to rounding, between walls: for views without periodic and open
 * sides. */
void sk_reduced_move_tracers(const sk_reduced_view *view, float dt, sk_particle *tracers, int64_t count);
/* Has a view walls on all sides? */
int sk_reduced_has_walls(const sk_reduced_view *view);

#endif
