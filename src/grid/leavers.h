/* Which particles left their block, told as they move: what a sort after small moves begins with. For files compiled per
 * dimension. */
#ifndef SK_GRID_LEAVERS_H
#define SK_GRID_LEAVERS_H

#include <string.h>
#include "base/dimension.h"
#include "base/simd.h"
#include "grid/grid.h"

enum { SK_LEAVES = 0x8000 }; /* of a cell key: it lies in another block */

typedef struct sk_leavers {
    int64_t count;  /* so far */
    iw wrong;       /* one is nowhere or dead: a full sort sees to that */
} sk_leavers;

static inline __attribute__((always_inline, unused)) void sk_store_cell_keys(uint16_t *keys, iw cell, int lanes)
{
    typedef uint16_t key_lanes __attribute__((vector_size(2 * SK_WIDE)));
    key_lanes short_keys = __builtin_convertvector(cell, key_lanes);
    if (lanes == SK_WIDE)
        memcpy(keys, &short_keys, sizeof short_keys);
    else
        memcpy(keys, &short_keys, (size_t)lanes * sizeof *keys);
}

/* Takes down the cells of particles p and following of block `slot`, which are at `position` (m); those that left go to the
 * list in grid->order at the block's own place, which begins at particle `first`. In the order of the particles. */
static inline __attribute__((always_inline, unused)) void sk_leavers_add(sk_grid *grid, int slot, uint32_t first, uint32_t p, int lanes,
                                                                         const fw *position, iw flags, sk_leavers *leavers)
{
    const float inverse = (float)(1.0 / grid->cell_size);
    iw cell = iw_splat(0), stays = iw_splat(-1), place = iw_splat(0);
    int32_t stride = 1;
    for (int d = 0; d < SELKIE_DIM; d++) {
        fw g = (position[d] - (float)grid->corner[d]) * inverse;
        iw here = (g >= 0.0f) & (g < (float)(grid->blocks[d] * grid->extent[d]));
        iw i = iw_from_fw(fw_select(here, g, fw_splat(0.0f)));
        leavers->wrong |= ~here;
        stays &= (i >> SK_BLOCK_LOG) == grid->coordinates[slot][d];
        place += (i >> SK_BLOCK_LOG) * stride;
        cell += (i & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
        stride *= grid->blocks[d];
    }
    leavers->wrong |= (flags & SK_PARTICLE_DEAD) != 0;
    cell |= ~stays & SK_LEAVES;
    sk_store_cell_keys(grid->cell_keys + p, cell, lanes);
    if (iw_any(~stays))
        for (int l = 0; l < lanes; l++)
            if (!stays[l]) {
                grid->order[first + leavers->count++] = p + (uint32_t)l;
                grid->keys[p + (uint32_t)l] = (uint32_t)place[l];
            }
}

static inline __attribute__((unused)) int32_t sk_leavers_found(const sk_leavers *leavers)
{
    return iw_any(leavers->wrong) ? -1 : (int32_t)leavers->count;
}

#endif
