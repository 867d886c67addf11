/* The active set method on one block, one cell at a time: loops over the functions of linalg_kernels.h. The reference
 * for bounded_tuned_dim.c and bounded_nested_tuned_dim.c. */
#include "linalg/bounded_solver.h"

#include <math.h>
#include "linalg/tile.h"

SK_INLINE float lower_at(const sk_bound_level *bound, size_t cell)
{
    return bound->lower ? bound->lower[cell] : 0;
}

SK_INLINE float gap_at(const sk_bound_level *bound, size_t cell)
{
    return sk_bound_gap(bound->high[cell], bound->low[cell], lower_at(bound, cell));
}

/* 1 / d, of held cells too. */
SK_INLINE float full_inverse_at(const sk_level *level, int block, int index)
{
    return level->slot[block] == SK_SLOT_UNIFORM ? level->inverse[block]
                                                 : sk_slot_array(level, block, SK_COEFFICIENT_INVERSE)[index];
}

/* --- Start and end --- */

static void start(const sk_bound_level *bound, int block)
{
    size_t first = (size_t)block * SK_BLOCK_CELLS;
    for (size_t i = first; i < first + SK_BLOCK_CELLS; ++i)
        bound->high[i] = sk_feasible_start(bound->high[i], lower_at(bound, i));
}

static double push(const float *f)
{
    double sum = 0;
    for (int i = 0; i < SK_BLOCK_CELLS; ++i)
        sum += f[i] > 0 ? (double)f[i] * (double)f[i] : 0;
    return sum;
}

static int count_above(const sk_bound_level *bound, int block)
{
    int count = 0;
    for (int i = 0; i < SK_BLOCK_CELLS; ++i)
        count += gap_at(bound, (size_t)block * SK_BLOCK_CELLS + (size_t)i) > 0;
    return count;
}

/* --- Residual and free cells --- */

static void quick_residual(const sk_level *level, const sk_bound_level *bound, int block)
{
    size_t first = (size_t)block * SK_BLOCK_CELLS;
    sk_tile high, low, face[SELKIE_DIM];
    sk_tile_read_field(&high, level, bound->high, block);
    sk_tile_read_field(&low, level, bound->low, block);
    sk_tile_read_faces(face, level, block);
    SK_EACH_CELL(i, j, k)
    {
        int index = sk_split_index(i, j, k);
        bound->r[first + (size_t)index] =
            sk_quick_residual_cell(&high, &low, face, sk_excess_at(level, block, index),
                                   bound->f[first + (size_t)index], sk_tile_index(i, j, k));
    }
}

/* Finds the free cells, and the changes of the block. */
static void classify(const sk_level *level, const sk_bound_level *bound, int block)
{
    size_t first = (size_t)block * SK_BLOCK_CELLS;
    int caught = 0, released = 0, held = 0, any_free = 0;
    for (int i = 0; i < SK_BLOCK_CELLS; ++i) {
        size_t cell = first + (size_t)i;
        float inverse = full_inverse_at(level, block, i);
        int was_free = bound->part_inverse[cell] > 0,
            is_free = sk_is_free(gap_at(bound, cell), bound->r[cell], inverse);
        caught |= was_free && !is_free;
        released |= is_free && !was_free;
        held |= inverse > 0 && !is_free;
        any_free |= is_free;
        bound->part_inverse[cell] = is_free ? inverse : 0;
    }
    if (caught || released) {
        bound->changed[block] |= (uint8_t)((caught ? SK_CELLS_CAUGHT : 0) | (released ? SK_CELLS_RELEASED : 0));
        bound->active[block] = any_free ? SK_ALL_ACTIVE : 0;
        bound->part[block] = !held ? SK_PART_ALL : any_free ? SK_PART_SOME : SK_PART_NONE;
    }
    if (bound->part[block] != SK_PART_ALL) /* z must be 0 in held cells */
        memset(bound->z + first, 0, SK_BLOCK_CELLS * sizeof(float));
}

static double judge(const sk_level *level, const sk_bound_level *bound, int block, selkie_residual_norm norm,
                    int exactly, double *size)
{
    size_t first = (size_t)block * SK_BLOCK_CELLS;
    if (exactly)
        SK_DIM(sk_level_operations_plain)
            .residual(level, bound->high, bound->low, bound->f + first, block, bound->r + first);
    else
        quick_residual(level, bound, block);
    classify(level, bound, block);

    double squares = 0, largest = 0;
    *size = 0;
    for (int i = 0; i < SK_BLOCK_CELLS; ++i) {
        size_t cell = first + (size_t)i;
        double natural =
            fabs((double)sk_natural_residual(gap_at(bound, cell), bound->r[cell], full_inverse_at(level, block, i)));
        squares += natural * natural;
        largest = natural > largest || natural != natural ? natural : largest; /* NaN stays */
        *size += (double)bound->high[cell] * (double)bound->high[cell];
    }
    return norm == SELKIE_NORM_MAX ? largest : squares;
}

/* --- Projected Gauss-Seidel --- */

static void project(const sk_level *level, float *field, const float *rhs, const float *bound, int block)
{
    sk_tile x, face[SELKIE_DIM];
    sk_tile_read_field(&x, level, field, block);
    sk_tile_read_faces(face, level, block);
    for (int half = 0; half < 4; ++half)
        for (int k = 0; k < SK_PLANES; ++k)
            for (int j = 0; j < SK_BLOCK_N; ++j)
                for (int i = ((half & 1) + j + k) & 1; i < SK_BLOCK_N; i += 2) {
                    int at = sk_tile_index(i, j, k), index = sk_split_index(i, j, k);
                    float value = sk_relax_cell(&x, face, rhs[index], full_inverse_at(level, block, index), at);
                    x.cell[at] = sk_larger(value, bound[index]);
                }
    sk_tile_write(&x, field + (size_t)block * SK_BLOCK_CELLS);
}

static void clip(const sk_level *level, const sk_bound_level *bound, int block, float scale)
{
    (void)level; /* z and bounds are 0 in cells that are no unknowns */
    size_t first = (size_t)block * SK_BLOCK_CELLS;
    for (size_t i = first; i < first + SK_BLOCK_CELLS; ++i)
        bound->z[i] = sk_larger(scale * bound->z[i], -gap_at(bound, i));
}

static void correct(const sk_level *level, const sk_bound_level *bound, int block, int advance)
{
    size_t first = (size_t)block * SK_BLOCK_CELLS;
    float room[SK_BLOCK_CELLS];
    for (int i = 0; i < SK_BLOCK_CELLS; ++i)
        room[i] = -gap_at(bound, first + (size_t)i);
    project(level, bound->z, bound->r + first, room, block);
    for (int i = 0; advance && i < SK_BLOCK_CELLS; ++i) {
        size_t cell = first + (size_t)i;
        sk_step_above(&bound->high[cell], &bound->low[cell], lower_at(bound, cell), room[i], bound->z[cell],
                      bound->paired);
    }
}

/* --- Between the problems of two levels --- */

static void restrict_problem(const sk_level *fine, const sk_bound_level *from, const sk_bound_level *to, int block)
{
    size_t first = (size_t)block * SK_BLOCK_CELLS, parent = (size_t)fine->parent[block] * SK_BLOCK_CELLS;
    int origin[3];
    sk_place_in_parent(fine, block, origin);
    sk_tile f;
    sk_tile_read_own(&f, from->f + first);
    SK_EACH_FIRST_CHILD(i, j, k)
    {
        size_t target = parent + (size_t)sk_parent_index(origin, i, j, k);
        to->f[target] = SK_RESTRICTION_SCALE * sk_sum_of_children(&f, sk_tile_index(i, j, k));
        if (!from->lower)
            continue;
        /* The bound of a coarse cell is the highest of its children's. */
        float highest = -INFINITY;
        for (int child = 0; child < SK_CORNERS; ++child) {
            int index = sk_split_index(i + (child & 1), j + (child >> 1 & 1), k + (child >> 2));
            if (sk_is_unknown(fine, block, index))
                highest = sk_larger(from->lower[first + (size_t)index], highest);
        }
        to->lower[target] = highest;
    }
}

static void interpolate(const sk_level *fine, const sk_level *coarse, const sk_bound_level *from,
                        const sk_bound_level *to, int block)
{
    size_t first = (size_t)block * SK_BLOCK_CELLS;
    int origin[3], parent = fine->parent[block];
    sk_place_in_parent(fine, block, origin);
    sk_tile x, face[SELKIE_DIM];
    sk_tile_read_field(&x, coarse, from->high, parent);
    sk_tile_read_faces(face, coarse, parent);
    SK_EACH_CELL(i, j, k)
    {
        int index = sk_split_index(i, j, k), child = (i & 1) | (j & 1) << 1 | (k & 1) << 2;
        int at = sk_tile_index(origin[0] + i / 2, origin[1] + j / 2, origin[2] + k / 2);
        float value = sk_larger(sk_interpolate_child(&x, face, at, child), lower_at(to, first + (size_t)index));
        to->high[first + (size_t)index] = sk_is_unknown(fine, block, index) ? value : 0;
    }
}

const sk_bounded_operations SK_DIM(sk_bounded_operations_plain) = {
    .start = start,
    .push = push,
    .project = project,
    .judge = judge,
    .clip = clip,
    .correct = correct,
    .restrict_problem = restrict_problem,
    .interpolate = interpolate,
    .count_above = count_above,
};
