/* A block's field with a few cells of its neighbours around it, copied into one small dense array, so that a kernel
 * works without asking which block a cell is in. For files compiled per dimension. */
#ifndef SK_GRID_TILE_H
#define SK_GRID_TILE_H

#include <stdint.h>
#include <string.h>
#include "base/dimension.h"
#include "grid/grid.h"

/* Cells along an axis and values in all, of a tile with `halo` cells around the block. */
#define SK_TILE_N(halo) (SK_BLOCK_N + 2 * (halo))
#define SK_TILE_NZ(halo) (SELKIE_DIM == 3 ? SK_BLOCK_N + 2 * (halo) : 1)
#define SK_TILE_VALUES(halo) (SK_TILE_N(halo) * SK_TILE_N(halo) * SK_TILE_NZ(halo))
/* Index of the block's cell (0,0,0) in such a tile. */
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

#define SK_TILE_LOADER(name, type)                                                                                      \
    static inline __attribute__((unused)) void name(const sk_grid *grid, const type *field, int block, int halo,        \
                                                    type *tile)                                                        \
    {                                                                                                                   \
        const int width = SK_TILE_N(halo);                                                                              \
        for (int n = 0; n < SK_NEIGHBOURS; n++) {                                                                       \
            const type *source = field + (size_t)grid->neighbours[block][n] * SK_BLOCK_CELLS;                           \
            sk_tile_span x = sk_tile_axis(n % 3 - 1, halo), y = sk_tile_axis(n / 3 % 3 - 1, halo);                      \
            sk_tile_span z = {0, 0, 1};                                                                                 \
            if (SELKIE_DIM == 3)                                                                                        \
                z = sk_tile_axis(n / 9 - 1, halo);                                                                      \
            for (int k = 0; k < z.count; k++)                                                                           \
                for (int j = 0; j < y.count; j++) {                                                                     \
                    const type *from = source + x.from + SK_BLOCK_N * (y.from + j + SK_BLOCK_N * (z.from + k));         \
                    type *to = tile + x.to + width * (y.to + j + width * (z.to + k));                                   \
                    if (x.count == SK_BLOCK_N)                                                                          \
                        memcpy(to, from, SK_BLOCK_N * sizeof(type));                                                    \
                    else                                                                                                \
                        for (int i = 0; i < x.count; i++)                                                               \
                            to[i] = from[i];                                                                            \
                }                                                                                                       \
        }                                                                                                               \
    }

SK_TILE_LOADER(sk_tile_load, float)
SK_TILE_LOADER(sk_tile_load_bytes, uint8_t)

/* Likewise through an indirection: a field of the solids, whose slots differ from the grid's. */
#define SK_TILE_MAPPED_LOADER(name, type)                                                                               \
    static inline __attribute__((unused)) void name(const sk_grid *grid, const int32_t *slot_of_block,                  \
                                                    const type *field, int block, int halo, type *tile)                 \
    {                                                                                                                   \
        const int width = SK_TILE_N(halo);                                                                              \
        for (int n = 0; n < SK_NEIGHBOURS; n++) {                                                                       \
            const type *source = field + (size_t)slot_of_block[grid->neighbours[block][n]] * SK_BLOCK_CELLS;            \
            sk_tile_span x = sk_tile_axis(n % 3 - 1, halo), y = sk_tile_axis(n / 3 % 3 - 1, halo), z = {0, 0, 1};       \
            if (SELKIE_DIM == 3)                                                                                        \
                z = sk_tile_axis(n / 9 - 1, halo);                                                                      \
            for (int k = 0; k < z.count; k++)                                                                           \
                for (int j = 0; j < y.count; j++)                                                                       \
                    memcpy(tile + x.to + width * (y.to + j + width * (z.to + k)),                                       \
                           source + x.from + SK_BLOCK_N * (y.from + j + SK_BLOCK_N * (z.from + k)),                     \
                           (size_t)x.count * sizeof(type));                                                             \
        }                                                                                                               \
    }

SK_TILE_MAPPED_LOADER(sk_tile_load_mapped, float)
SK_TILE_MAPPED_LOADER(sk_tile_load_mapped_bytes, uint8_t)

#endif
