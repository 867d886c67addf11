/* Materials as methods: the attribute `material` for scenes with more than one material, and masses for different
 * densities. */
#ifndef SK_METHODS_MATERIALS_MATERIALS_H
#define SK_METHODS_MATERIALS_MATERIALS_H

#include "methods/method.h"

/* A material id on each particle. */
extern const sk_method sk_method_materials;
/* Liquids of different densities: face densities on the grid, energies from each particle's own mass. */
extern const sk_method sk_method_densities;

/* Sums of mass, moment and energy over the particles: a phase. */
selkie_code sk_densities_weigh(sk_step *step, selkie_error *error);

#endif
