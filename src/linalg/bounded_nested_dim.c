/* Problems of coarser levels, for a start: their right sides and bounds from finer ones, their solutions back. */
#include "linalg/bounded_solver.h"

#include <math.h>

SK_INLINE sk_half_row half_row(const float *field, int colour, int j, int k)
{
    return *(const sk_half_row *)(field + colour * SK_HALF + (j + SK_BLOCK_N * k) * SK_ROW);
}

static void place_in_parent(const sk_level *fine, int block, int origin[3])
{
    for (int axis = 0; axis < 3; ++axis)
        origin[axis] = (fine->coordinates[block][axis] & 1) * SK_CHILD;
}

SK_INLINE int is_unknown(const sk_level *level, int block, int index)
{
    return level->slot[block] == SK_SLOT_UNIFORM || sk_slot_array(level, block, SK_COEFFICIENT_INVERSE)[index] > 0;
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
                    if (is_unknown(fine, block, index))
                        highest = fmaxf(highest, from[index]);
                }
                to[sk_split_index(origin[0] + i / 2, origin[1] + j / 2, origin[2] + k / 2)] = highest;
            }
}

void SK_DIM(sk_restrict_problem)(const sk_level *fine, const sk_bound_level *from, const sk_bound_level *to, int block)
{
    const float scale = SELKIE_DIM == 3 ? 0.5f : 1.0f; /* a full face is 1 on both levels */
    const float *f = from->f + (size_t)block * SK_BLOCK_CELLS;
    size_t parent = (size_t)fine->parent[block] * SK_BLOCK_CELLS;
    int origin[3];
    place_in_parent(fine, block, origin);
    for (int k = 0; k < SK_PLANES; k += 2)
        for (int j = 0; j < SK_BLOCK_N; j += 2) {
            sk_half_row sum = {0};
            for (int dk = 0; dk < (SELKIE_DIM == 3 ? 2 : 1); ++dk)
                for (int dj = 0; dj < 2; ++dj)
                    sum += half_row(f, 0, j + dj, k + dk) + half_row(f, 1, j + dj, k + dk);
            sk_split_half_row(to->f + parent, origin[0] != 0, origin[1] + j / 2, origin[2] + k / 2, scale * sum);
        }
    if (from->lower)
        restrict_bounds(fine, from->lower + (size_t)block * SK_BLOCK_CELLS, to->lower + parent, block, origin);
}

/* A quarter of the way from a coarse cell towards each of its neighbours, as far as the face between them is open. */
static void slopes_of(const sk_level *coarse, const float *high, int block, const int cell[3], float slope[6])
{
    int here = sk_split_index(cell[0], cell[1], cell[2]);
    float own = high[(size_t)block * SK_BLOCK_CELLS + (size_t)here];
    for (int side = 0; side < SK_SIDES; ++side) {
        int axis = side / 2, to[3] = {cell[0], cell[1], cell[2]}, other = block;
        to[axis] += side & 1 ? 1 : -1;
        if (to[axis] < 0 || to[axis] >= SK_BLOCK_N) {
            other = coarse->neighbour[block][side];
            to[axis] &= SK_BLOCK_MASK;
        }
        int there = sk_split_index(to[0], to[1], to[2]);
        float face = side & 1 ? sk_slot_array(coarse, other, axis)[there] : sk_slot_array(coarse, block, axis)[here];
        float open = face < 1 ? face : 1;
        slope[side] = 0.25f * open * (high[(size_t)other * SK_BLOCK_CELLS + (size_t)there] - own);
    }
}

void SK_DIM(sk_interpolate_block)(const sk_level *fine, const sk_level *coarse, const sk_bound_level *from,
                                  const sk_bound_level *to, int block)
{
    int origin[3], parent = fine->parent[block];
    place_in_parent(fine, block, origin);
    size_t at = (size_t)block * SK_BLOCK_CELLS;
    for (int k = 0; k < SK_PLANES; k += 2)
        for (int j = 0; j < SK_BLOCK_N; j += 2)
            for (int i = 0; i < SK_BLOCK_N; i += 2) {
                int cell[3] = {origin[0] + i / 2, origin[1] + j / 2, origin[2] + k / 2};
                float slope[6] = {0};
                slopes_of(coarse, from->high, parent, cell, slope);
                float own =
                    from->high[(size_t)parent * SK_BLOCK_CELLS + (size_t)sk_split_index(cell[0], cell[1], cell[2])];
                for (int child = 0; child < SK_CORNERS; ++child) {
                    int side[3] = {child & 1, child >> 1 & 1, child >> 2};
                    int index = sk_split_index(i + side[0], j + side[1], k + side[2]);
                    float value = own + slope[side[0]] + slope[2 + side[1]] + slope[4 + side[2]];
                    float lower = to->lower ? to->lower[at + (size_t)index] : 0;
                    to->high[at + (size_t)index] = is_unknown(fine, block, index) ? (value > lower ? value : lower) : 0;
                }
            }
}
