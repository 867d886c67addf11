/* Runs of eight cells along x, one bit each in a mask of a block. A mask selects the runs that a phase works on.
 *
 * Blocks are rarely full. At the surface, at walls and in splashes most cells of a block are air, and phases skip
 * them. For files compiled per dimension.
 */
#ifndef SK_GRID_RUNS_H
#define SK_GRID_RUNS_H

#include <stdint.h>
#include <string.h>
#include "base/dimension.h"
#include "base/simd.h"
#include "grid/run_masks.h"
#include "grid/tile.h"

/* Loops over the first cells of the runs in a mask. */
#define SK_EACH_RUN(c, runs)                                                                                           \
    for (uint64_t left_##c = (runs), go_##c = 1; left_##c; left_##c &= left_##c - 1, go_##c = 1)                       \
        for (int c = 8 * __builtin_ctzll(left_##c); go_##c; go_##c = 0)

/* Rows of a tile with a halo of one cell that the runs of a mask and their neighbours touch. One bit a row along y,
 * one word a plane along z. */
typedef struct sk_tile_rows {
    uint32_t needed[SK_TILE_NZ(1)];
} sk_tile_rows;

static inline __attribute__((unused)) sk_tile_rows sk_tile_rows_around(uint64_t runs)
{
    sk_tile_rows rows;
    memset(&rows, 0, sizeof rows);
#if SELKIE_DIM == 2
    for (int j = 0; j < SK_BLOCK_N; j++)
        rows.needed[0] |= (runs >> 2 * j & 3 ? 7u : 0u) << j;
#else
    for (int k = 0; k < SK_BLOCK_N; k++) {
        uint32_t own = (uint32_t)(runs >> 8 * k & 0xff), wide = own | own << 1 | own << 2;
        for (int z = 0; z < 3; z++)
            rows.needed[k + z] |= wide;
    }
#endif
    return rows;
}

/* Loads only those rows of a tile, `pitch` apart. Other rows keep their content. The rows below, inside and above the
 * block along y each run through the same three blocks. */
#define SK_TILE_SOME_ROWS(type, slot_of, pitch, copy)                                                                  \
    for (int k = 0; k < SK_TILE_NZ(1); k++) {                                                                          \
        const int nz = SELKIE_DIM == 2 || k == 0 ? 0 : k <= SK_BLOCK_N ? 1 : 2;                                        \
        const int plane = SELKIE_DIM == 3 ? SK_BLOCK_N * SK_BLOCK_N * ((k - 1) & SK_BLOCK_MASK) : 0;                   \
        const uint32_t parts[3] = {1u, ((1u << SK_BLOCK_N) - 1u) << 1, 2u << SK_BLOCK_N};                              \
        for (int ny = 0; ny < 3; ny++) {                                                                               \
            uint32_t left = rows->needed[k] & parts[ny];                                                               \
            if (!left)                                                                                                 \
                continue;                                                                                              \
            const int32_t *around = grid->neighbours[block] + 3 * ny + 9 * nz;                                         \
            const type *before = field + (size_t)slot_of(around[0]) * SK_BLOCK_CELLS + plane + SK_BLOCK_N - 1;         \
            const type *middle = field + (size_t)slot_of(around[1]) * SK_BLOCK_CELLS + plane;                          \
            const type *after = field + (size_t)slot_of(around[2]) * SK_BLOCK_CELLS + plane;                           \
            for (; left; left &= left - 1) {                                                                           \
                const int j = __builtin_ctz(left), row = SK_BLOCK_N * ((j - 1) & SK_BLOCK_MASK);                       \
                type *to = tile + (pitch) * (j + SK_TILE_N(1) * k);                                                    \
                copy(to, before[row], middle + row, after[row]);                                                       \
            }                                                                                                          \
        }                                                                                                              \
    }

#define SK_ROW_AS_IT_IS(to, before, middle, after)                                                                     \
    ((to)[0] = (before), memcpy((to) + 1, (middle), SK_BLOCK_N * sizeof *(to)), (to)[1 + SK_BLOCK_N] = (after))

/* Unknown values (NaN) become zero. */
static inline __attribute__((unused)) void sk_copy_known(float *to, float before, const float *middle, float after)
{
    to[0] = before == before ? before : 0.0f;
    for (int i = 0; i < SK_BLOCK_N; i += 8) {
        const f8 value = f8_load(middle + i);
        f8_store(to + 1 + i, f8_select(value == value, value, f8_splat(0.0f)));
    }
    to[1 + SK_BLOCK_N] = after == after ? after : 0.0f;
}

static inline __attribute__((unused)) void sk_tile_load_rows(const sk_grid *grid, const float *field, int block,
                                                             const sk_tile_rows *rows, float *tile)
{
    SK_TILE_SOME_ROWS(float, SK_TILE_OWN, SK_TILE_N(1), SK_ROW_AS_IT_IS)
}

/* Loads a row tile. Values outside the ten cells of a row keep their content. */
static inline __attribute__((unused)) void sk_row_tile_load(const sk_grid *grid, const float *field, int block,
                                                            const sk_tile_rows *rows, float *row_tile)
{
    float *tile = row_tile + SK_ROW_LEAD - 1;
    SK_TILE_SOME_ROWS(float, SK_TILE_OWN, SK_ROW_PITCH, SK_ROW_AS_IT_IS)
}

static inline __attribute__((unused)) void sk_row_tile_load_known(const sk_grid *grid, const float *field, int block,
                                                                  const sk_tile_rows *rows, float *row_tile)
{
    float *tile = row_tile + SK_ROW_LEAD - 1;
    SK_TILE_SOME_ROWS(float, SK_TILE_OWN, SK_ROW_PITCH, sk_copy_known)
}

/* Row j of plane k, for each of those rows. */
#define SK_EACH_TILE_ROW(j, k, rows)                                                                                   \
    for (int k = 0; k < SK_TILE_NZ(1); k++)                                                                            \
        for (uint32_t left_##j = (rows)->needed[k], go_##j = 1; left_##j; left_##j &= left_##j - 1, go_##j = 1)        \
            for (int j = __builtin_ctz(left_##j); go_##j; go_##j = 0)

static inline __attribute__((unused)) void sk_tile_load_rows_bytes(const sk_grid *grid, const uint8_t *field, int block,
                                                                   const sk_tile_rows *rows, uint8_t *tile)
{
    SK_TILE_SOME_ROWS(uint8_t, SK_TILE_OWN, SK_TILE_N(1), SK_ROW_AS_IT_IS)
}

static inline __attribute__((unused)) void sk_tile_load_rows_mapped(const sk_grid *grid, const int32_t *slot_of_block,
                                                                    const float *field, int block,
                                                                    const sk_tile_rows *rows, float *tile)
{
    SK_TILE_SOME_ROWS(float, SK_TILE_MAPPED, SK_TILE_N(1), SK_ROW_AS_IT_IS)
}

/* Loads the faces across axis d of the cells in some rows, the lower ones and the upper ones, and nothing else: most of
 * the time of a whole tile goes into single values of the blocks around. `slot_of_block` NULL: a slot a block. */
static inline __attribute__((unused)) void sk_tile_load_faces(const sk_grid *grid, const int32_t *slot_of_block,
                                                              const float *field, int block, const sk_tile_rows *rows,
                                                              int d, float *tile)
{
    const int next = grid->faces[block][2 * d + 1], width = SK_TILE_N(1);
    const float *own = field + (size_t)(slot_of_block ? slot_of_block[block] : block) * SK_BLOCK_CELLS,
                *upper = field + (size_t)(slot_of_block ? slot_of_block[next] : next) * SK_BLOCK_CELLS;
    const uint32_t inner = ((1u << SK_BLOCK_N) - 1u) << 1;
    float *corner = tile + SK_TILE_ORIGIN(1);
    for (int k = 0; k < SK_BLOCK_NZ; k++) {
        const uint32_t needed = rows->needed[SELKIE_DIM == 3 ? k + 1 : 0];
        for (uint32_t left = needed & inner; left; left &= left - 1) {
            const int j = __builtin_ctz(left) - 1, row = SK_BLOCK_N * (j + SK_BLOCK_N * k);
            float *to = corner + width * (j + width * k);
            memcpy(to, own + row, SK_BLOCK_N * sizeof *to);
            if (d == 0)
                to[SK_BLOCK_N] = upper[row];
        }
        if (d == 1 && needed >> (SK_BLOCK_N + 1))
            memcpy(corner + width * (SK_BLOCK_N + width * k), upper + SK_BLOCK_N * SK_BLOCK_N * k,
                   SK_BLOCK_N * sizeof *tile);
    }
    for (uint32_t left = d == 2 ? rows->needed[SK_TILE_NZ(1) - 1] & inner : 0; left; left &= left - 1) {
        const int j = __builtin_ctz(left) - 1;
        memcpy(corner + width * (j + width * SK_BLOCK_N), upper + SK_BLOCK_N * j, SK_BLOCK_N * sizeof *tile);
    }
}

#endif
