/* Tiles: a block's field and a halo of its neighbours' cells, copied into one dense array. Kernels on a tile need no
 * block lookup. For files compiled per dimension. */
#ifndef SK_GRID_TILE_H
#define SK_GRID_TILE_H

#include <stdint.h>
#include <string.h>
#include "base/dimension.h"
#include "grid/grid.h"

/* Cells along an axis, and all values, of a tile with a halo of `halo` cells. */
#define SK_TILE_N(halo) (SK_BLOCK_N + 2 * (halo))
#define SK_TILE_NZ(halo) (SELKIE_DIM == 3 ? SK_BLOCK_N + 2 * (halo) : 1)
#define SK_TILE_VALUES(halo) (SK_TILE_N(halo) * SK_TILE_N(halo) * SK_TILE_NZ(halo))
/* A row tile has a halo of one cell and rows for fw_look_up, with the block's own cells in the middle. A row is a
 * cache line (3D). Planes are SK_ROW_PLANE apart. 32 values may be read from the start of a row. */
#define SK_ROW_LEAD 4
#define SK_ROW_PITCH SK_TILE_N(SK_ROW_LEAD)
#define SK_ROW_PLANE (SK_ROW_PITCH * SK_TILE_N(1))
#define SK_ROW_TILE_VALUES (SK_ROW_PLANE * SK_TILE_NZ(1) + SK_ROW_BEYOND)
#define SK_ROW_BEYOND 16
/* Index of the block's cell (0,0,0) in a tile. */
#define SK_TILE_ORIGIN(halo) ((halo) * (1 + SK_TILE_N(halo) * (1 + (SELKIE_DIM == 3 ? SK_TILE_N(halo) : 0))))

/* One axis: cells [from, from + count) of the neighbour on `side` (-1, 0, 1) go to tile cells [to, ...). */
typedef struct sk_tile_span {
    int from, to, count;
} sk_tile_span;

static inline sk_tile_span sk_tile_axis(int side, int halo)
{
    sk_tile_span span = {0, halo, SK_BLOCK_N};
    if (side < 0)
        span.from = SK_BLOCK_N - halo, span.to = 0, span.count = halo;
    if (side > 0)
        span.from = 0, span.to = halo + SK_BLOCK_N, span.count = halo;
    return span;
}

/* Copies row by row from the three blocks that a row crosses. `halo` is a constant once inlined, so that the copies
 * become a few moves of fixed size. Most phases load tiles for every block. */
#define SK_TILE_ROWS(type, slot_of)                                                                                    \
    const int width = SK_TILE_N(halo);                                                                                 \
    for (int nz = SELKIE_DIM == 3 ? 0 : 1; nz < (SELKIE_DIM == 3 ? 3 : 2); nz++) {                                     \
        const sk_tile_span z = SELKIE_DIM == 3 ? sk_tile_axis(nz - 1, halo) : (sk_tile_span){0, 0, 1};                 \
        for (int ny = 0; ny < 3; ny++) {                                                                               \
            const sk_tile_span y = sk_tile_axis(ny - 1, halo);                                                         \
            const int32_t *around = grid->neighbours[block] + 3 * ny + (SELKIE_DIM == 3 ? 9 * nz : 0);                 \
            const type *left = field + (size_t)slot_of(around[0]) * SK_BLOCK_CELLS + (SK_BLOCK_N - halo);              \
            const type *middle = field + (size_t)slot_of(around[1]) * SK_BLOCK_CELLS;                                  \
            const type *right = field + (size_t)slot_of(around[2]) * SK_BLOCK_CELLS;                                   \
            for (int k = 0; k < z.count; k++)                                                                          \
                for (int j = 0; j < y.count; j++) {                                                                    \
                    const int row = SK_BLOCK_N * (y.from + j + SK_BLOCK_N * (z.from + k));                             \
                    type *to = tile + width * (y.to + j + width * (z.to + k));                                         \
                    memcpy(to, left + row, (size_t)halo * sizeof(type));                                               \
                    memcpy(to + halo, middle + row, SK_BLOCK_N * sizeof(type));                                        \
                    memcpy(to + halo + SK_BLOCK_N, right + row, (size_t)halo * sizeof(type));                          \
                }                                                                                                      \
        }                                                                                                              \
    }

#define SK_TILE_OWN(slot) (slot)
#define SK_TILE_MAPPED(slot) (slot_of_block[slot])

#define SK_TILE_LOADER(name, type)                                                                                     \
    static inline __attribute__((unused, always_inline)) void name(const sk_grid *grid, const type *field, int block,  \
                                                                   const int halo, type *tile)                         \
    {                                                                                                                  \
        SK_TILE_ROWS(type, SK_TILE_OWN)                                                                                \
    }

SK_TILE_LOADER(sk_tile_load, float)
SK_TILE_LOADER(sk_tile_load_bytes, uint8_t)

/* The same through an indirection: fields of the solids have slots of their own. */
#define SK_TILE_MAPPED_LOADER(name, type)                                                                              \
    static inline __attribute__((unused, always_inline)) void name(                                                    \
        const sk_grid *grid, const int32_t *slot_of_block, const type *field, int block, const int halo, type *tile)   \
    {                                                                                                                  \
        SK_TILE_ROWS(type, SK_TILE_MAPPED)                                                                             \
    }

SK_TILE_MAPPED_LOADER(sk_tile_load_mapped, float)
SK_TILE_MAPPED_LOADER(sk_tile_load_mapped_bytes, uint8_t)

#endif
