/* Lists of migrating particles (leavers), written while particles move. A sort after small moves starts from them. For
 * files compiled per dimension. */
#ifndef SK_PARTICLES_LEAVERS_H
#define SK_PARTICLES_LEAVERS_H

#include <string.h>
#include "base/dimension.h"
#include "base/simd.h"
#include "grid/grid.h"

/* Flags of a cell key: the new cell lies in another block; the new cell may differ from the old one. The other bits
 * are the cell. */
enum { SK_LEAVES = 0x8000, SK_STRAYS = 0x4000, SK_KEY_CELL = 0x3fff };

/* A leaver's new block relative to the old one: each coordinate plus SK_LEAVER_REACH, in SK_LEAVER_BITS bits. */
enum { SK_LEAVER_BITS = 10, SK_LEAVER_REACH = 1 << (SK_LEAVER_BITS - 1) };

/* Key of a listed particle that leaves the store: it is dead. */
#define SK_LEAVER_NOWHERE UINT32_MAX

static inline __attribute__((unused)) int sk_leaver_offset(uint32_t key, int d)
{
    return (int)(key >> (d * SK_LEAVER_BITS) & (2 * SK_LEAVER_REACH - 1)) - SK_LEAVER_REACH;
}

typedef struct sk_leavers {
    int block;      /* its slot */
    uint32_t first; /* its first particle; both lists begin there */
    int64_t count;  /* so far */
    iw wrong;       /* some particle is dead, outside the grid or beyond the reach of a key: a full sort handles it */
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

static inline __attribute__((unused)) sk_leavers sk_leavers_of(const sk_grid *grid, int block)
{
    return (sk_leavers){block, grid->cell_start[(size_t)(block - 1) * SK_BLOCK_CELLS], 0, iw_splat(0)};
}

/* Stores the cell keys of `lanes` particles of a block from particle p on, and lists those that left it. Particles are
 * listed in order. grid->order gets their numbers, grid->keys their new blocks relative to the old one
 * (sk_leaver_offset). `home` is the cell at the
 * last sort, -1 if unknown; all particles of a block or none may be -1. */
static inline __attribute__((always_inline, unused)) void
sk_leavers_add(sk_grid *grid, sk_leavers *leavers, uint32_t p, int lanes, const fw *position, iw home, iw flags)
{
    const uint32_t first = leavers->first;
    const float inverse = (float)(1.0 / grid->cell_size);
    const iw sign = iw_splat(INT32_MIN);
    fw g[3];
    iw cell = iw_splat(0), elsewhere = iw_splat(0);

    /* Fast path: most particles stay in their block. Then every index is within the block, and no coordinate is
     * negative. */
    for (int d = 0; d < SELKIE_DIM; d++) {
        g[d] = (position[d] - (float)grid->corner[d]) * inverse;
        iw i = iw_minus(iw_from_fw(g[d]), grid->coordinates[leavers->block][d] * SK_BLOCK_N);
        elsewhere |= (i & ~SK_BLOCK_MASK) | ((iw)g[d] & sign);
        cell |= (i & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
    }

    /* Store the cell keys. Marks: the particle left its block, or its cell at the last sort. */
    const iw leaves = elsewhere != 0;
    leavers->wrong |= (flags & SK_PARTICLE_DEAD) != 0;
    sk_store_cell_keys(grid->cell_keys + p, cell | (leaves & SK_LEAVES) | ((leaves | (cell != home)) & SK_STRAYS),
                       lanes);
    const unsigned left = iw_bits(leaves & iw_first(lanes));
    if (!left)
        return;

    /* New blocks relative to the old one. Beyond the domain or the reach, the list is not valid. */
    iw relative = iw_splat(0), wrong = iw_splat(0);
    for (int d = 0; d < SELKIE_DIM; d++) {
        iw here = (g[d] >= 0.0f) & (g[d] < (float)(grid->blocks[d] * grid->extent[d]));
        iw block = iw_from_fw(fw_select(here, g[d], fw_splat(0.0f))) >> SK_BLOCK_LOG;
        iw offset = iw_minus(block, grid->coordinates[leavers->block][d] - SK_LEAVER_REACH);
        wrong |= ~here | ((offset & ~(2 * SK_LEAVER_REACH - 1)) != 0);
        relative |= offset << (d * SK_LEAVER_BITS);
    }
    leavers->wrong |= wrong & leaves & iw_first(lanes);

    /* Append the migrating particles. */
    const iw numbers = (iw){SK_WIDE_LANES} + (int32_t)p;
    iw_store_chosen(grid->keys + first + leavers->count, relative, left);
    leavers->count += iw_store_chosen(grid->order + first + leavers->count, numbers, left);
}

static inline __attribute__((unused)) int32_t sk_leavers_found(const sk_leavers *leavers)
{
    return iw_any(leavers->wrong) ? -1 : (int32_t)leavers->count;
}

#endif
