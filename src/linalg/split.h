/* The layout of a block inside the solver, and its vectors.
 *
 * Red-black sweeps touch every other cell, so a block is stored as its red half
 * ((i + j + k) even) and then its black half. A half holds the rows (j, k) in
 * order, each as the SK_ROW = SK_BLOCK_N / 2 cells of that colour:
 *
 *   index(i, j, k) = colour * SK_HALF + (j + SK_BLOCK_N * k) * SK_ROW + i / 2
 *
 * The six neighbours of a red cell are all black. The neighbours along y and z lie
 * in the same lane of the rows above and below. Along x one neighbour lies in the
 * same lane of the same row, the other one lane aside: to the left if the cell's i
 * is even, to the right if it is odd. A vector of
 * SK_LANES floats holds several rows, so a neighbour is a load or one
 * two-source shuffle, whose second source is the neighbouring block. No halo copies
 * are needed.
 *
 * The two cells 2I and 2I+1 of a row share lane I of the two halves, so sums
 * over pairs along x, as coarsening needs them, are plain vector additions.
 */
#ifndef SK_LINALG_SPLIT_H
#define SK_LINALG_SPLIT_H

#include <stdint.h>
#include <string.h>
#include "base/dimension.h"
#include "base/simd.h"

#define SK_INLINE static inline __attribute__((always_inline, unused))

enum {
    SK_ROW = SK_BLOCK_N / 2,      /* cells of one colour in a row */
    SK_HALF = SK_BLOCK_CELLS / 2, /* cells of one colour in a block */
    SK_PLANES = SK_BLOCK_NZ,      /* 2D: one plane holds everything */
    SK_PLANE_FLOATS = SK_HALF / SK_PLANES,
    SK_SIDES = 2 * SELKIE_DIM, /* -x +x -y +y (-z +z) */
    SK_CHILD = SK_BLOCK_N / 2  /* cells along x of a coarse block that one fine block becomes */
};

/* As wide as the machine's registers, and at least one row. */
#if defined(__AVX512F__)
#define SK_LANES 16
#elif defined(__AVX2__) || defined(__AVX__) || SELKIE_DIM == 2
#define SK_LANES 8
#else
#define SK_LANES 4
#endif
enum { SK_VECTOR_ROWS = SK_LANES / SK_ROW, SK_PLANE_VECTORS = SK_PLANE_FLOATS / SK_LANES };

/* Blocks are aligned to 64 bytes, and so are the vectors in them. */
SK_VECTOR_FAMILY(fs, is, SK_LANES, 4 * SK_LANES, __attribute__((may_alias)))
typedef double sk_double_vec __attribute__((vector_size(SK_LANES * 8)));

#if SK_LANES == 16
#define SK_EACH_LANE(f)                                                                                                \
    f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8), f(9), f(10), f(11), f(12), f(13), f(14), f(15)
#elif SK_LANES == 8
#define SK_EACH_LANE(f) f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)
#else
#define SK_EACH_LANE(f) f(0), f(1), f(2), f(3)
#endif

/* Source of lane n of the left neighbour (i - 1), in a vector whose first row holds even cells (LEFT_0) or odd ones
 * (LEFT_1). It is the same lane if the cell's i is odd, the lane before if i is even. For the first lane of a row that
 * is the last lane of the same row one block to the left (lanes SK_LANES and up). */
#define SK_ROW_OF(n) ((n) / (SK_BLOCK_N / 2))
#define SK_LANE_OF(n) ((n) % (SK_BLOCK_N / 2))
#define SK_LEFT(n, p)                                                                                                  \
    (((SK_ROW_OF(n) + (p)) & 1) ? (n) : SK_LANE_OF(n) == 0 ? SK_LANES + (n) + SK_BLOCK_N / 2 - 1 : (n)-1)
#define SK_LEFT_0(n) SK_LEFT(n, 0)
#define SK_LEFT_1(n) SK_LEFT(n, 1)
#define SK_RIGHT(n, p)                                                                                                 \
    (((SK_ROW_OF(n) + (p)) & 1) == 0       ? (n)                                                                       \
     : SK_LANE_OF(n) == SK_BLOCK_N / 2 - 1 ? SK_LANES + (n) - (SK_BLOCK_N / 2 - 1)                                     \
                                           : (n) + 1)
#define SK_RIGHT_0(n) SK_RIGHT(n, 0)
#define SK_RIGHT_1(n) SK_RIGHT(n, 1)
/* One row down and up, from two consecutive vectors. */
#define SK_DOWN(n) ((n) + SK_LANES - SK_BLOCK_N / 2)
#define SK_UP(n) ((n) + SK_BLOCK_N / 2)

/* `odd`: the first row of the vector holds odd cells of the requested colour. A constant once inlined. */
SK_INLINE fs sk_left(fs here, fs left_block, int odd)
{
    return odd ? __builtin_shufflevector(here, left_block, SK_EACH_LANE(SK_LEFT_1))
               : __builtin_shufflevector(here, left_block, SK_EACH_LANE(SK_LEFT_0));
}

SK_INLINE fs sk_right(fs here, fs right_block, int odd)
{
    return odd ? __builtin_shufflevector(here, right_block, SK_EACH_LANE(SK_RIGHT_1))
               : __builtin_shufflevector(here, right_block, SK_EACH_LANE(SK_RIGHT_0));
}

SK_INLINE fs sk_down(fs before, fs here)
{
    return __builtin_shufflevector(before, here, SK_EACH_LANE(SK_DOWN));
}

SK_INLINE fs sk_up(fs here, fs after)
{
    return __builtin_shufflevector(here, after, SK_EACH_LANE(SK_UP));
}

/* The same field in a block and in the six around it (-x +x -y +y -z +z). */
typedef struct sk_around {
    const float *own;
    const float *side[6];
} sk_around;

/* One vector of cells: `colour`, plane k, vector v of the plane. Its neighbours are read from the other colour. */
typedef struct sk_place {
    int k, v;
    int odd;   /* first row of the vector holds odd cells */
    int here;  /* offset of this vector in the block */
    int there; /* offset of the vector of the other colour at the same rows */
} sk_place;

/* `parity` is that of the first row, (j + k) & 1. */
SK_INLINE sk_place sk_place_at(int colour, int k, int v, int parity)
{
    int offset = k * SK_PLANE_FLOATS + v * SK_LANES;
    return (sk_place){k, v, colour ^ parity, colour * SK_HALF + offset, (1 - colour) * SK_HALF + offset};
}

/* Upper neighbours of a field: x at i + 1, y at j + 1, z at k + 1. */
SK_INLINE fs sk_right_of(const sk_around *field, sk_place at)
{
    return sk_right(fs_load(field->own + at.there), fs_load(field->side[1] + at.there), at.odd);
}

SK_INLINE fs sk_above(const sk_around *field, sk_place at)
{
    const float *after =
        at.v < SK_PLANE_VECTORS - 1 ? field->own + at.there + SK_LANES : field->side[3] + at.there - at.v * SK_LANES;
    return sk_up(fs_load(field->own + at.there), fs_load(after));
}

SK_INLINE fs sk_front_of(const sk_around *field, sk_place at)
{
    const float *from = at.k < SK_PLANES - 1 ? field->own + (at.there + SK_PLANE_FLOATS)
                                             : field->side[5] + (at.there - at.k * SK_PLANE_FLOATS);
    return fs_load(from);
}

SK_INLINE fs sk_left_of(const sk_around *field, sk_place at)
{
    return sk_left(fs_load(field->own + at.there), fs_load(field->side[0] + at.there), at.odd);
}

SK_INLINE fs sk_below(const sk_around *field, sk_place at)
{
    const float *before =
        at.v > 0 ? field->own + at.there - SK_LANES : field->side[2] + at.there + (SK_PLANE_VECTORS - 1) * SK_LANES;
    return sk_down(fs_load(before), fs_load(field->own + at.there));
}

SK_INLINE fs sk_back_of(const sk_around *field, sk_place at)
{
    const float *from = at.k > 0 ? field->own + (at.there - SK_PLANE_FLOATS)
                                 : field->side[4] + (at.there + (SK_PLANES - 1) * SK_PLANE_FLOATS);
    return fs_load(from);
}

/* Vectors of a half that hold unknowns: bit v + SK_PLANE_VECTORS * k, for both colours alike. In a splash most blocks
 * are far from full. Their empty vectors are skipped: they are zero in every field, at all times. */
typedef uint64_t sk_active;
#define SK_ACTIVE_BITS (SK_PLANES * SK_PLANE_VECTORS)
#define SK_ALL_ACTIVE (~(sk_active)0 >> (64 - SK_ACTIVE_BITS))
/* The vectors whose first row has (j + k) even. */
#if SELKIE_DIM == 3
#define SK_EVEN_VECTORS (SK_LANES == 16 ? 0x3333ULL : SK_LANES == 8 ? 0x0f0f0f0fULL : 0xaa55aa55aa55aa55ULL)
#else
#define SK_EVEN_VECTORS (SK_LANES == 16 ? 0xffULL : 0x5555ULL)
#endif

/* Calls f(sk_place, ...) for each active vector of a colour. The parity of the first row is a constant once f is
 * inlined, so that shuffles need no branches. In a full block, v is a constant too. */
#define SK_EACH_VECTOR(active, f, colour, ...)                                                                         \
    do {                                                                                                               \
        if ((active) == SK_ALL_ACTIVE) {                                                                               \
            SK_EACH_VECTOR_OF_ALL(f, colour, __VA_ARGS__);                                                             \
        } else {                                                                                                       \
            for (sk_active bits = (active)&SK_EVEN_VECTORS; bits; bits &= bits - 1)                                    \
                f(sk_place_at(colour, __builtin_ctzll(bits) / SK_PLANE_VECTORS,                                        \
                              __builtin_ctzll(bits) % SK_PLANE_VECTORS, 0),                                            \
                  __VA_ARGS__);                                                                                        \
            for (sk_active bits = (active) & ~SK_EVEN_VECTORS; bits; bits &= bits - 1)                                 \
                f(sk_place_at(colour, __builtin_ctzll(bits) / SK_PLANE_VECTORS,                                        \
                              __builtin_ctzll(bits) % SK_PLANE_VECTORS, 1),                                            \
                  __VA_ARGS__);                                                                                        \
        }                                                                                                              \
    } while (0)
#if SELKIE_DIM == 3
#define SK_EACH_VECTOR_OF_ALL(f, colour, ...)                                                                          \
    do {                                                                                                               \
        for (int plane = 0; plane < SK_PLANES; plane += 2) {                                                           \
            _Pragma("GCC unroll 8") for (int v = 0; v < SK_PLANE_VECTORS; ++v)                                         \
                f(sk_place_at(colour, plane, v, (v * SK_VECTOR_ROWS) & 1), __VA_ARGS__);                               \
            _Pragma("GCC unroll 8") for (int v = 0; v < SK_PLANE_VECTORS; ++v)                                         \
                f(sk_place_at(colour, plane + 1, v, (1 + v * SK_VECTOR_ROWS) & 1), __VA_ARGS__);                       \
        }                                                                                                              \
    } while (0)
#else
#define SK_EACH_VECTOR_OF_ALL(f, colour, ...)                                                                          \
    do {                                                                                                               \
        _Pragma("GCC unroll 16") for (int v = 0; v < SK_PLANE_VECTORS; ++v)                                            \
            f(sk_place_at(colour, 0, v, (v * SK_VECTOR_ROWS) & 1), __VA_ARGS__);                                       \
    } while (0)
#endif

/* Calls f(offset in the block, ...) for each active vector of both colours: for operations without neighbours. */
#define SK_EACH_OFFSET(active, f, ...)                                                                                 \
    do {                                                                                                               \
        if ((active) == SK_ALL_ACTIVE) {                                                                               \
            for (int offset = 0; offset < SK_BLOCK_CELLS; offset += SK_LANES)                                          \
                f(offset, __VA_ARGS__);                                                                                \
        } else {                                                                                                       \
            for (sk_active bits = (active); bits; bits &= bits - 1) {                                                  \
                f(__builtin_ctzll(bits) * SK_LANES, __VA_ARGS__);                                                      \
                f(__builtin_ctzll(bits) * SK_LANES + SK_HALF, __VA_ARGS__);                                            \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

/* Rows in natural order, as in the callers' fields. */
typedef float sk_row __attribute__((vector_size(SK_BLOCK_N * 4), may_alias, aligned(4)));
typedef int32_t sk_int_row __attribute__((vector_size(SK_BLOCK_N * 4), may_alias, aligned(4)));
typedef float sk_half_row __attribute__((vector_size(SK_BLOCK_N * 2), may_alias, aligned(4)));
typedef float sk_quarter_row __attribute__((vector_size(SK_BLOCK_N), may_alias, aligned(4)));

#if SELKIE_DIM == 2
#define SK_EVEN_OF_ROW 0, 2, 4, 6, 8, 10, 12, 14
#define SK_ODD_OF_ROW 1, 3, 5, 7, 9, 11, 13, 15
#define SK_INTERLEAVE 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15
#define SK_EVEN_OF_HALF 0, 2, 4, 6
#define SK_ODD_OF_HALF 1, 3, 5, 7
#define SK_INTERLEAVE_HALF 0, 4, 1, 5, 2, 6, 3, 7
#else
#define SK_EVEN_OF_ROW 0, 2, 4, 6
#define SK_ODD_OF_ROW 1, 3, 5, 7
#define SK_INTERLEAVE 0, 4, 1, 5, 2, 6, 3, 7
#define SK_EVEN_OF_HALF 0, 2
#define SK_ODD_OF_HALF 1, 3
#define SK_INTERLEAVE_HALF 0, 2, 1, 3
#endif

/* Row (j, k) of a block: natural order to split halves and back. */
SK_INLINE void sk_split_row(float *block, int j, int k, sk_row row)
{
    int even = (j + k) & 1, offset = (j + SK_BLOCK_N * k) * SK_ROW; /* the even cells' colour */
    *(sk_half_row *)(block + even * SK_HALF + offset) = __builtin_shufflevector(row, row, SK_EVEN_OF_ROW);
    *(sk_half_row *)(block + (1 - even) * SK_HALF + offset) = __builtin_shufflevector(row, row, SK_ODD_OF_ROW);
}

SK_INLINE sk_row sk_joined_row(const float *block, int j, int k)
{
    int even = (j + k) & 1, offset = (j + SK_BLOCK_N * k) * SK_ROW;
    return __builtin_shufflevector(*(const sk_half_row *)(block + even * SK_HALF + offset),
                                   *(const sk_half_row *)(block + (1 - even) * SK_HALF + offset), SK_INTERLEAVE);
}

/* The half of row (j, k) that starts at i = 0 or at i = SK_BLOCK_N / 2 (`upper`): SK_ROW cells in natural order. A row
 * pair of one fine block becomes such a half row of its parent. */
SK_INLINE void sk_split_half_row(float *block, int upper, int j, int k, sk_half_row row)
{
    int even = (j + k) & 1, offset = (j + SK_BLOCK_N * k) * SK_ROW + upper * SK_ROW / 2;
    *(sk_quarter_row *)(block + even * SK_HALF + offset) = __builtin_shufflevector(row, row, SK_EVEN_OF_HALF);
    *(sk_quarter_row *)(block + (1 - even) * SK_HALF + offset) = __builtin_shufflevector(row, row, SK_ODD_OF_HALF);
}

SK_INLINE sk_half_row sk_joined_half_row(const float *block, int upper, int j, int k)
{
    int even = (j + k) & 1, offset = (j + SK_BLOCK_N * k) * SK_ROW + upper * SK_ROW / 2;
    return __builtin_shufflevector(*(const sk_quarter_row *)(block + even * SK_HALF + offset),
                                   *(const sk_quarter_row *)(block + (1 - even) * SK_HALF + offset),
                                   SK_INTERLEAVE_HALF);
}

SK_INLINE int sk_split_index(int i, int j, int k)
{
    return ((i + j + k) & 1) * SK_HALF + (j + SK_BLOCK_N * k) * SK_ROW + i / 2;
}

#endif
