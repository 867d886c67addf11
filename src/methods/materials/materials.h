/* Materials as methods: the attribute `material` where a scene has more than one, and masses where they differ in
 * density. */
#ifndef SK_METHODS_MATERIALS_MATERIALS_H
#define SK_METHODS_MATERIALS_MATERIALS_H

#include "methods/method.h"

/* A material id on each particle. */
extern const sk_method sk_method_materials;
/* Liquids of different densities: face densities on the grid, energies by each particle's own mass. */
extern const sk_method sk_method_densities;

/* Sums of mass, moment and energy over the particles: a phase. */
selkie_code sk_densities_weigh(sk_step *step, selkie_error *error);

#endif
