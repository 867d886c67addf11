/* Cells surely inside the liquid: all cells within three of them are at least half full, or behind a wall of the
 * domain.
 *
 * The flow keeps the volume, so liquid around such a cell stays around it for a step, wherever both go. Only 3D has
 * any.
 */
#ifndef SK_WORLD_DEEP_CELLS_H
#define SK_WORLD_DEEP_CELLS_H

#include "methods/step.h"

typedef struct sk_block_words {
    uint64_t words[8]; /* a bit for each cell: a word is a plane of the block, a byte eight cells along x */
} sk_block_words;

typedef struct sk_deep_cells {
    sk_block_words *bits, *room; /* [particle_blocks + 1] */
    size_t capacity, room_capacity;
} sk_deep_cells;

/* From the particles' cells of the last sort. */
selkie_code sk_deep_cells_find(sk_deep_cells *deep, const sk_step *step, selkie_error *error);
void sk_deep_cells_free(sk_deep_cells *deep, sk_memory *memory);
/* A bit for each eight cells along x of a block that are all deep. */
uint64_t sk_deep_rows(const sk_deep_cells *deep, int slot);

#endif
