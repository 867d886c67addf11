/* Blocks with vents, for the tuned forms: see vents_plain.h. For files compiled per dimension. */
#ifndef SK_METHODS_VENTS_H
#define SK_METHODS_VENTS_H

#include <string.h>

#include "methods/vents_plain.h"

/* Has a cell of the block a vent? */
static inline __attribute__((unused)) int block_has_vents(const sk_step *step, int block)
{
    static const uint8_t none[SK_BLOCK_CELLS];
    const size_t slot = (size_t)step->solids.block_slot[block];
    return can_vent(step, block) && memcmp(step->solids.vents + slot * SK_BLOCK_CELLS, none, sizeof none) != 0;
}

/* Is a lower face of the block's cells a vent? */
static inline __attribute__((unused)) int block_has_vented_faces(const sk_step *step, int block)
{
    int has = block_has_vents(step, block);
    for (int d = 0; !has && d < SELKIE_DIM; d++)
        has = block_has_vents(step, step->grid.faces[block][2 * d]);
    return has;
}

#endif
