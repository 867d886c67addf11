/* Reading a system and the vectors of the conjugate gradients, one cell at a time: loops over the functions of
 * linalg_kernels.h. The reference for poisson_tuned_dim.c. */
#include "linalg/solver.h"

#include <math.h>
#include "linalg/tile.h"

/* --- The caller's coefficients --- */

static void read_source(const sk_poisson_solver *solver, const sk_poisson_system *system, int block, sk_tile *diagonal,
                        sk_tile face[SELKIE_DIM])
{
    sk_source from;
    SK_DIM(sk_look_up_source)(solver, system, block, &from);
    sk_tile_read_natural(diagonal, from.diagonal);
    for (int side = 0; side < SK_SIDES; ++side)
        sk_tile_read_halo(diagonal, side, from.diagonal_side[side], 1);
    for (int axis = 0; axis < SELKIE_DIM; ++axis) {
        sk_tile_read_natural(&face[axis], from.face[axis]);
        sk_tile_read_halo(&face[axis], 2 * axis + 1, from.face_upper[axis], 1);
    }
}

static int is_uniform(sk_poisson_solver *solver, const sk_poisson_system *system, int block, int *flaws)
{
    sk_level *level = &solver->multigrid.level[0];
    sk_tile diagonal, face[SELKIE_DIM];
    read_source(solver, system, block, &diagonal, face);
    const sk_input_cell first = sk_read_cell(&diagonal, face, sk_tile_index(0, 0, 0));
    level->excess[block] = first.excess;
    level->inverse[block] = first.inverse;
    *flaws = 0;
    SK_EACH_CELL(i, j, k)
    {
        const sk_input_cell cell = sk_read_cell(&diagonal, face, sk_tile_index(i, j, k));
        if (!cell.is_full || cell.excess != first.excess) {
            *flaws = 0;
            return 0;
        }
        *flaws |= cell.flaws;
    }
    return 1;
}

static int has_unknowns(const sk_tile *diagonal, int j, int k)
{
    int found = 0;
    for (int i = 0; i < SK_BLOCK_N; ++i)
        found |= diagonal->cell[sk_tile_index(i, j, k)] > SK_SMALLEST_DIAGONAL;
    return found;
}

SK_INLINE void set_bit(sk_cell_bits *bits, int at, int value)
{
    bits->word[at / 64] |= (uint64_t)(value != 0) << (at % 64);
}

static int read_general(sk_poisson_solver *solver, const sk_poisson_system *system, int block, int *unknowns)
{
    sk_level *level = &solver->multigrid.level[0];
    sk_tile diagonal, face[SELKIE_DIM];
    read_source(solver, system, block, &diagonal, face);

    /* The block's slot of coefficients, without links yet. */
    float *array = level->coefficients + (size_t)level->slot[block] * SK_COEFFICIENT_ARRAYS * SK_BLOCK_CELLS;
    sk_links *links = &solver->links[level->slot[block]];
    memset(links, 0, sizeof(*links));

    /* Coefficients and links, cell by cell. */
    int flaws = 0;
    *unknowns = 0;
    SK_EACH_CELL(i, j, k)
    {
        const sk_input_cell cell = sk_read_cell(&diagonal, face, sk_tile_index(i, j, k));
        int index = sk_split_index(i, j, k), at = sk_natural_index(i, j, k);
        for (int axis = 0; axis < SELKIE_DIM; ++axis) {
            array[axis * SK_BLOCK_CELLS + index] = cell.face[axis];
            set_bit(&links->face[axis], at, cell.face[axis] > 0);
        }
        array[SK_COEFFICIENT_EXCESS * SK_BLOCK_CELLS + index] = cell.excess;
        array[SK_COEFFICIENT_INVERSE * SK_BLOCK_CELLS + index] = cell.inverse;
        set_bit(&links->unknown, at, cell.is_unknown);
        set_bit(&solver->open[block], at, cell.excess > 0);
        *unknowns += cell.is_unknown;
        /* Rows without unknowns may hold anything. */
        flaws |= has_unknowns(&diagonal, j, k) ? cell.flaws : 0;
    }

    /* A general block has no uniform coefficients. */
    level->excess[block] = level->inverse[block] = 0;
    level->active[block] = SK_ALL_ACTIVE;
    return flaws;
}

static float read_right_side(const sk_poisson_solver *solver, const sk_poisson_system *system, int block, float scale,
                             float *b)
{
    const float *field = system->right_side + (size_t)solver->outside[block] * SK_BLOCK_CELLS;
    float largest = 0;
    SK_EACH_CELL(i, j, k)
    {
        int index = sk_split_index(i, j, k), is_unknown = sk_is_unknown(&solver->multigrid.level[0], block, index);
        float value = is_unknown ? scale * field[sk_natural_index(i, j, k)] : 0; /* other cells may hold anything */
        b[index] = value;
        largest = fabsf(value) > largest || value != value ? fabsf(value) : largest; /* NaN stays */
    }
    return largest;
}

/* --- Conjugate gradients --- */

static void scale_by(float *field, float by)
{
    for (int i = 0; i < SK_BLOCK_CELLS; ++i)
        field[i] *= by;
}

static double sum_of(const float *field)
{
    double sum = 0;
    for (int i = 0; i < SK_BLOCK_CELLS; ++i)
        sum += (double)field[i];
    return sum;
}

static void subtract(float *field, float value)
{
    for (int i = 0; i < SK_BLOCK_CELLS; ++i)
        field[i] -= value;
}

static double norm_of(const float *r, selkie_residual_norm norm)
{
    double squares = 0, largest = 0;
    for (int i = 0; i < SK_BLOCK_CELLS; ++i) {
        double value = fabs((double)r[i]);
        squares += value * value;
        largest = value > largest || value != value ? value : largest; /* NaN stays */
    }
    return norm == SELKIE_NORM_MAX ? largest : squares;
}

static void fold(float *high, float *low)
{
    for (int i = 0; i < SK_BLOCK_CELLS; ++i)
        sk_fold(&high[i], &low[i]);
}

static void turn(float *p, const float *z, float beta, sk_active active)
{
    (void)active; /* zeros elsewhere */
    for (int i = 0; i < SK_BLOCK_CELLS; ++i)
        p[i] = sk_add_scaled(z[i], beta, p[i]);
}

static double advance(const sk_poisson_solver *solver, int block, float alpha, selkie_residual_norm norm,
                      double *low_squares)
{
    size_t first = (size_t)block * SK_BLOCK_CELLS;
    for (size_t i = first; i < first + SK_BLOCK_CELLS; ++i) {
        solver->low[i] = sk_add_scaled(solver->low[i], alpha, solver->p[i]);
        solver->r[i] = sk_add_scaled(solver->r[i], -alpha, solver->z[i]);
    }
    *low_squares = norm_of(solver->low + first, SELKIE_NORM_RELATIVE);
    return norm_of(solver->r + first, norm);
}

static int write_back(const float *high, const float *low, float unscale, float *target)
{
    int finite = 1;
    SK_EACH_CELL(i, j, k)
    {
        int index = sk_split_index(i, j, k);
        float value = (high[index] + low[index]) * unscale;
        target[sk_natural_index(i, j, k)] = value;
        finite &= sk_is_finite(value);
    }
    return finite;
}

const sk_poisson_operations SK_DIM(sk_poisson_operations_plain) = {
    .is_uniform = is_uniform,
    .read_general = read_general,
    .read_right_side = read_right_side,
    .scale = scale_by,
    .sum = sum_of,
    .subtract = subtract,
    .norm = norm_of,
    .fold = fold,
    .turn = turn,
    .advance = advance,
    .write = write_back,
};
