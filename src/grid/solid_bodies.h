/* Rigid bodies on one block: see solid_bodies_dim.c. */
#ifndef SK_GRID_SOLID_BODIES_H
#define SK_GRID_SOLID_BODIES_H

#include "base/dimension.h"
#include "grid/solids.h"

/* The cells of a piece's block in which its body has a share of a lower face. */
void SK_DIM(sk_solids_range_of_body)(const sk_solids *solids, const sk_grid *grid, sk_body_piece *piece);
/* Fills the slot of a block from the static slot of its place and the pieces of bodies in it. */
void SK_DIM(sk_solids_add_bodies)(sk_solids *solids, const sk_grid *grid, int block, size_t static_slot);
/* Copies the values of one slot into another. */
void SK_DIM(sk_solids_copy_slot)(sk_solids *solids, size_t from, size_t to);

#endif
