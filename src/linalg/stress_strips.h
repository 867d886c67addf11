/* The rows of a soft stress system, half rows of blocks side by side in memory. Private to linalg/. For files compiled
 * per dimension.
 *
 * Blocks in a row along x form a strip. A plane holds the faces of one component and of one parity of x, row by row of
 * a strip, with a gap of a half row after each: so the neighbours of a half row are at constant offsets from the half
 * rows around it, also across blocks. Faces that are no unknowns are 0, and so is all of the gaps, but for joined
 * sides: there the gap has a copy of the face at the other end. */
#ifndef SK_LINALG_STRESS_STRIPS_H
#define SK_LINALG_STRESS_STRIPS_H

#include "base/simd.h"
#include "linalg/stress_sweeps.h"

enum {
    SK_STRESS_PLANES = 2 * SELKIE_DIM,
    SK_STRESS_BESIDE = SELKIE_DIM == 3 ? 9 : 3, /* half rows around one along y and z, itself in the middle */
    SK_STRESS_LISTS = 4 * SK_STRESS_COLOURS,    /* of each colour: even and odd x; with shared and own coefficients */
    SK_STRESS_SEGMENT_CHUNK = 64,               /* segments of a partial sum */
    SK_STRESS_PARTIALS = 4                      /* partial sums of a chunk */
};

/* A half row with an unknown. */
typedef struct sk_stress_segment {
    int32_t row[SK_STRESS_BESIDE]; /* places of the half rows around it in a plane */
    int32_t wrap; /* place of the copy of its first (even x) or last (odd x) face from its own; 0 = none */
} sk_stress_segment;

/* Its coefficients; those of faces that are no unknowns are 0. */
typedef struct sk_stress_segment_rows {
    float coefficient[SK_STRESS_NEIGHBOURS][SK_STRESS_GROUP];
    float diagonal[SK_STRESS_GROUP], inverse[SK_STRESS_GROUP];
} sk_stress_segment_rows;

/* All bits set: an unknown without mass; one that its mass does not hold. Then those of all its faces together. */
typedef struct sk_stress_segment_marks {
    int32_t massless[SK_STRESS_GROUP], loose[SK_STRESS_GROUP];
    int32_t any_massless, any_loose;
} sk_stress_segment_marks;

typedef struct sk_stress_strips {
    const sk_stress_level *level; /* its blocks, the bits of its unknowns and the weights that even rows share */
    size_t plane;                 /* values of a plane */
    int32_t *start, *stride;      /* [block_count] place of a block's first row, and from row to row */
    int32_t *begin, count;        /* [count] first blocks of the strips */
    sk_stress_segment *segments; /* of all lists, one after the other: see sk_stress_list(); row by row of the strips */
    int32_t *place[SELKIE_DIM][2]; /* [block_count x SK_STRESS_ROWS] segment of a half row, where it has an unknown */
    sk_stress_segment_rows *rows;  /* of those with coefficients of their own, in the same order */
    sk_stress_segment_marks *marks;
    int has_ends; /* sides are joined along x */
    int32_t first[SK_STRESS_LISTS + 1], first_rows[SK_STRESS_LISTS], chunk[SK_STRESS_LISTS + 1];
    int sweeps;                          /* symmetric sweeps of an iteration */
    float *s, *p, *x, *z;                /* [segments][faces] of the iteration; z only of several sweeps */
    float *w, *v;                        /* [planes][plane] likewise */
    double *solution, *right;            /* [planes][plane] */
    double *partial[SK_STRESS_PARTIALS]; /* [chunks] */
} sk_stress_strips;

/* The list of segments of colour k with an even (0) or odd (1) first x, and with coefficients of their own (1) or not.
 */
static inline __attribute__((always_inline, unused)) int sk_stress_list(int k, int half, int own)
{
    return 4 * k + 2 * half + own;
}

/* The plane of neighbour m of a face across axis a whose x has the parity `half`. */
static inline __attribute__((always_inline, unused)) int sk_stress_plane_of(int a, int half, int m)
{
    int offset[3];
    sk_stress_offset(a, m, offset);
    return 2 * sk_stress_component(a, m) + ((half + offset[0]) & 1);
}

/* The half row around it, and the place of that neighbour there. */
static inline __attribute__((always_inline, unused)) int sk_stress_beside_of(int a, int m)
{
    int offset[3];
    sk_stress_offset(a, m, offset);
    return offset[1] + 1 + (SELKIE_DIM == 3 ? 3 * (offset[2] + 1) : 0);
}

static inline __attribute__((always_inline, unused)) int sk_stress_shift_of(int a, int half, int m)
{
    int offset[3];
    sk_stress_offset(a, m, offset);
    return offset[0] < 0 && !half ? -1 : offset[0] > 0 && half ? 1 : 0;
}

/* The values of a half row in double precision. */
typedef double double_lanes __attribute__((vector_size(8 * SK_STRESS_GROUP), aligned(8), may_alias));

enum { SK_STRESS_MIDDLE = SK_STRESS_BESIDE / 2 };

/* Place of a row of a block in a plane. */
static inline __attribute__((unused)) size_t sk_stress_row_place(const sk_stress_strips *strips, int block, int r)
{
    return (size_t)strips->start[block] + (size_t)r * (size_t)strips->stride[block];
}

/* Place of a face among the vectors. */
static inline __attribute__((unused)) size_t sk_stress_strip_place(const sk_stress_strips *strips, int block, int r,
                                                                   int a, int x)
{
    return (size_t)(2 * a + (x & 1)) * strips->plane + sk_stress_row_place(strips, block, r) + (size_t)(x >> 1);
}

/* The values of a row of a block along x whose x is even (half 0) or odd (1). */
static inline __attribute__((always_inline, unused)) lanes sk_stress_half_of(const float *row, int half)
{
#if SELKIE_DIM == 2
    const f8 low = f8_load(row), high = f8_load(row + 8);
    return (lanes)(half ? __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15)
                        : __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14));
#else
    const f8 all = f8_load(row);
    return (lanes)(half ? __builtin_shufflevector(all, all, 1, 3, 5, 7)
                        : __builtin_shufflevector(all, all, 0, 2, 4, 6));
#endif
}

/* The other way: a row of both halves. */
static inline __attribute__((always_inline, unused)) void sk_stress_join_halves(lanes even, lanes odd, float *row)
{
#if SELKIE_DIM == 2
    const f8 one = (f8)even, other = (f8)odd;
    f8_store(row, __builtin_shufflevector(one, other, 0, 8, 1, 9, 2, 10, 3, 11));
    f8_store(row + 8, __builtin_shufflevector(one, other, 4, 12, 5, 13, 6, 14, 7, 15));
#else
    f8_store(row, __builtin_shufflevector((f4)even, (f4)odd, 0, 4, 1, 5, 2, 6, 3, 7));
#endif
}

/* All bits set in the lanes of a half row whose faces are in a set of bits of the row. */
typedef int32_t int_lanes __attribute__((vector_size(4 * SK_STRESS_GROUP)));
static inline __attribute__((always_inline, unused)) int_lanes sk_stress_lanes_in(uint32_t bits, int half)
{
#if SELKIE_DIM == 2
    const int_lanes bit = {1, 4, 16, 64, 256, 1024, 4096, 16384};
#else
    const int_lanes bit = {1, 4, 16, 64};
#endif
    return ((int32_t)(bits >> half) & bit) != 0;
}

static inline __attribute__((always_inline, unused)) lanes sk_stress_lanes_where(int_lanes mask, lanes values)
{
    return (lanes)(mask & (int_lanes)values);
}

/* Makes the strips of a level whose unknowns are found. *sweeps = 0 if a row is not held: see find_held(). */
selkie_code SK_DIM(sk_stress_make_strips)(const sk_stress_level *level, const sk_stress_options *options,
                                          sk_stress_strips *strips, int *sweeps, selkie_error *error);

/* Right side and start of the strips, from the fields; faces without mass follow those beside them. */
void SK_DIM(sk_stress_load_strips)(const sk_stress_system *system, const sk_stress_options *options,
                                   const sk_stress_strips *strips);
/* The solution, into the fields. */
void SK_DIM(sk_stress_store_strips)(const sk_stress_system *system, const sk_stress_options *options,
                                    const sk_stress_strips *strips);
/* Takes what the sources of the cells gained off the right side. */
void SK_DIM(sk_stress_add_to_strips)(const sk_stress_options *options, const sk_stress_strips *strips,
                                     const float *gain);

/* Solves a pass: from the solution and the right side of the strips, the solution to a tolerance. */
void SK_DIM(sk_stress_soften)(const sk_stress_strips *strips, const sk_stress_options *options, double tolerance,
                              sk_stress_report *report);

/* Sets the faces without mass by two sweeps over their rows. */
void SK_DIM(sk_stress_start_massless)(const sk_stress_strips *strips);

/* Restores momentum and angular momentum of liquid that touches no wall: adds rigid motions to x, the solution of the
 * strips or, if they are NULL, of the level's numbered rows. */
selkie_code SK_DIM(sk_stress_keep_momenta)(const sk_stress_system *system, const sk_stress_options *options,
                                           const sk_stress_level *level, const sk_stress_strips *strips, double *x,
                                           selkie_error *error);

#endif
