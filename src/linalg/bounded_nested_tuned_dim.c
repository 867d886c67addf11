/* Problems of coarser levels for a nested start: restricts right sides and bounds, interpolates solutions. */
#include "linalg/bounded_solver.h"

#include <math.h>

SK_INLINE sk_half_row half_row(const float *field, int colour, int j, int k)
{
    return *(const sk_half_row *)(field + colour * SK_HALF + (j + SK_BLOCK_N * k) * SK_ROW);
}

/* The bound of a coarse cell is the highest of its children's. */
static void restrict_bounds(const sk_level *fine, const float *from, float *to, int block, const int origin[3])
{
    for (int k = 0; k < SK_PLANES; k += 2)
        for (int j = 0; j < SK_BLOCK_N; j += 2)
            for (int i = 0; i < SK_BLOCK_N; i += 2) {
                float highest = -INFINITY;
                for (int child = 0; child < SK_CORNERS; ++child) {
                    int index = sk_split_index(i + (child & 1), j + (child >> 1 & 1), k + (child >> 2));
                    if (sk_is_unknown(fine, block, index))
                        highest = fmaxf(highest, from[index]);
                }
                to[sk_split_index(origin[0] + i / 2, origin[1] + j / 2, origin[2] + k / 2)] = highest;
            }
}

void SK_DIM(sk_restrict_problem)(const sk_level *fine, const sk_bound_level *from, const sk_bound_level *to, int block)
{
    const float *f = from->f + (size_t)block * SK_BLOCK_CELLS;
    size_t parent = (size_t)fine->parent[block] * SK_BLOCK_CELLS;
    int origin[3];
    sk_place_in_parent(fine, block, origin);
    for (int k = 0; k < SK_PLANES; k += 2)
        for (int j = 0; j < SK_BLOCK_N; j += 2) {
            sk_half_row sum = {0};
            for (int dk = 0; dk < (SELKIE_DIM == 3 ? 2 : 1); ++dk)
                for (int dj = 0; dj < 2; ++dj)
                    sum += half_row(f, 0, j + dj, k + dk) + half_row(f, 1, j + dj, k + dk);
            sk_split_half_row(to->f + parent, origin[0] != 0, origin[1] + j / 2, origin[2] + k / 2,
                              SK_RESTRICTION_SCALE * sum);
        }
    if (from->lower)
        restrict_bounds(fine, from->lower + (size_t)block * SK_BLOCK_CELLS, to->lower + parent, block, origin);
}

/* Rows of one child's part of a coarse block, and their neighbours. */
typedef struct coarse_rows {
    const sk_level *level;
    const float *field;
    int block, upper; /* half of a row */
} coarse_rows;

/* A block's part of the field, or of an array of coefficients. */
SK_INLINE const float *part_of(const coarse_rows *rows, int block, int axis)
{
    return axis < 0 ? rows->field + (size_t)block * SK_BLOCK_CELLS : sk_slot_array(rows->level, block, axis);
}

/* The half row at (j, k), at most one step beyond the block. axis: faces across it, -1 = the field. */
SK_INLINE sk_half_row half_row_at(const coarse_rows *rows, int axis, int j, int k)
{
    int block = rows->block;
    if (j < 0 || j >= SK_BLOCK_N)
        block = rows->level->neighbour[block][j < 0 ? 2 : 3];
    if (k < 0 || k >= SK_PLANES)
        block = rows->level->neighbour[block][k < 0 ? 4 : 5];
    return sk_joined_half_row(part_of(rows, block, axis), rows->upper, j & SK_BLOCK_MASK, k & (SK_PLANES - 1));
}

/* The cell beside the half row, before it or after it. */
SK_INLINE float cell_beside(const coarse_rows *rows, int axis, int after, int j, int k)
{
    int i = rows->upper * SK_CHILD + (after ? SK_CHILD : -1), block = rows->block;
    if (i < 0 || i >= SK_BLOCK_N)
        block = rows->level->neighbour[block][after];
    return part_of(rows, block, axis)[sk_split_index(i & SK_BLOCK_MASK, j, k)];
}

#if SELKIE_DIM == 2
#define SK_SHIFT_RIGHT 8, 0, 1, 2, 3, 4, 5, 6
#define SK_SHIFT_LEFT 1, 2, 3, 4, 5, 6, 7, 8
#else
#define SK_SHIFT_RIGHT 4, 0, 1, 2
#define SK_SHIFT_LEFT 1, 2, 3, 4
#endif

/* 0.25 of the difference to a neighbour, times the open fraction of the face between. */
SK_INLINE sk_half_row slope(sk_half_row own, sk_half_row other, sk_half_row face)
{
    const sk_half_row one = 1.0f - (sk_half_row){0};
    typedef int32_t mask_type __attribute__((vector_size(SK_BLOCK_N * 2)));
    mask_type less = (mask_type)(face < one);
    sk_half_row open = (sk_half_row)(((mask_type)face & less) | ((mask_type)one & ~less));
    return 0.25f * open * (other - own);
}

/* Slopes from a coarse half row towards -x +x -y +y -z +z. */
static void slopes_of(const coarse_rows *rows, int j, int k, sk_half_row own, sk_half_row towards[6])
{
    sk_half_row before = cell_beside(rows, -1, 0, j, k) - (sk_half_row){0};
    sk_half_row after = cell_beside(rows, -1, 1, j, k) - (sk_half_row){0};
    sk_half_row face = half_row_at(rows, 0, j, k), face_after = cell_beside(rows, 0, 1, j, k) - (sk_half_row){0};
    towards[0] = slope(own, __builtin_shufflevector(own, before, SK_SHIFT_RIGHT), face);
    towards[1] = slope(own, __builtin_shufflevector(own, after, SK_SHIFT_LEFT),
                       __builtin_shufflevector(face, face_after, SK_SHIFT_LEFT));
    towards[2] = slope(own, half_row_at(rows, -1, j - 1, k), half_row_at(rows, 1, j, k));
    towards[3] = slope(own, half_row_at(rows, -1, j + 1, k), half_row_at(rows, 1, j + 1, k));
#if SELKIE_DIM == 3
    towards[4] = slope(own, half_row_at(rows, -1, j, k - 1), half_row_at(rows, 2, j, k));
    towards[5] = slope(own, half_row_at(rows, -1, j, k + 1), half_row_at(rows, 2, j, k + 1));
#else
    towards[4] = towards[5] = (sk_half_row){0};
#endif
}

void SK_DIM(sk_interpolate_block)(const sk_level *fine, const sk_level *coarse, const sk_bound_level *from,
                                  const sk_bound_level *to, int block)
{
    int origin[3];
    sk_place_in_parent(fine, block, origin);
    coarse_rows rows = {coarse, from->high, fine->parent[block], origin[0] != 0};
    float *x = to->high + (size_t)block * SK_BLOCK_CELLS;

    /* A half row of coarse cells and its slopes give two rows of fine cells (3D: four). */
    for (int k = 0; k < SK_PLANES; k += 2)
        for (int j = 0; j < SK_BLOCK_N; j += 2) {
            sk_half_row towards[6], own = half_row_at(&rows, -1, origin[1] + j / 2, origin[2] + k / 2);
            slopes_of(&rows, origin[1] + j / 2, origin[2] + k / 2, own, towards);
            for (int dk = 0; dk < (SELKIE_DIM == 3 ? 2 : 1); ++dk)
                for (int dj = 0; dj < 2; ++dj) {
                    sk_half_row base = own + towards[2 + dj] + towards[4 + dk];
                    int even = (j + dj + k + dk) & 1, offset = (j + dj + SK_BLOCK_N * (k + dk)) * SK_ROW;
                    *(sk_half_row *)(x + even * SK_HALF + offset) = base + towards[0];
                    *(sk_half_row *)(x + (1 - even) * SK_HALF + offset) = base + towards[1];
                }
        }

    /* Not below the bounds, and 0 in cells that are no unknowns. */
    const float *lower = to->lower ? to->lower + (size_t)block * SK_BLOCK_CELLS : NULL;
    const float *inverse =
        fine->slot[block] == SK_SLOT_UNIFORM ? NULL : sk_slot_array(fine, block, SK_COEFFICIENT_INVERSE);
    for (int i = 0; i < SK_BLOCK_CELLS; i += SK_LANES) {
        fs value = fs_load(x + i), least = lower ? fs_load(lower + i) : (fs){0};
        value = fs_select(value > least, value, least);
        if (inverse)
            value = (fs)((is)value & (is)(fs_load(inverse + i) > (fs){0}));
        fs_store(x + i, value);
    }
}
