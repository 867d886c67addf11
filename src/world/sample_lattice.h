/* Where a lattice of particles begins.
 *
 * The lattice of SPH has a particle in the middle of each sub-cell, so the first row stands half a spacing from the
 * sides of the domain, where it is at rest. A tank that is an obstacle may lie anywhere: its water stood up to half a
 * spacing too far from the floor or too near to it, and began to fall or flew up. So the lattice moves by a part of a
 * spacing, along each axis, to where the boxes of liquid end at obstacles. There is one lattice for all liquids, or
 * those that touch would overlap: where they ask for different places it stays. */
#ifndef SK_WORLD_SAMPLE_LATTICE_H
#define SK_WORLD_SAMPLE_LATTICE_H

#include "world/world_internal.h"

/* shift: m, at most half a spacing along each axis. `shapes` are those of all liquids, `spacing` (m) is that of the
 * lattice. */
void sk_sample_lattice_shift(const sk_sampling *sampling, sk_shape *const *shapes, double spacing, double shift[3]);

#endif
