/* The coarsest level: the inverse of its few unknowns. */
#include "linalg/multigrid.h"

typedef double bottom_matrix[SK_BOTTOM_UNKNOWNS][SK_BOTTOM_UNKNOWNS];

/* The unknown across a side of cell (i, j, k) and its coefficient, or -1. */
static int across(const sk_multigrid *multigrid, const sk_level *level, int block, const int cell[3], int side,
                  float *coefficient)
{
    int axis = side / 2, to[3] = {cell[0], cell[1], cell[2]}, other = block;
    to[axis] += side & 1 ? 1 : -1;
    if (to[axis] < 0 || to[axis] >= SK_BLOCK_N) {
        other = level->neighbour[block][side];
        to[axis] &= SK_BLOCK_MASK;
    }
    int here = sk_split_index(cell[0], cell[1], cell[2]), there = sk_split_index(to[0], to[1], to[2]);
    *coefficient = side & 1 ? sk_slot_array(level, other, axis)[there] : sk_slot_array(level, block, axis)[here];
    if (*coefficient == 0)
        return -1;
    for (int i = 0; i < multigrid->bottom_unknowns; ++i)
        if (multigrid->bottom_cell[i] == other * SK_BLOCK_CELLS + there)
            return i;
    return -1;
}

/* Gauss-Jordan by whole rows, without pivoting: a symmetric positive definite matrix needs none. */
static void invert_matrix(int count, bottom_matrix a, float inverse[SK_BOTTOM_UNKNOWNS][SK_BOTTOM_UNKNOWNS])
{
    double diagonal[SK_BOTTOM_UNKNOWNS];
    for (int i = 0; i < count; ++i)
        diagonal[i] = a[i][i];
    for (int k = 0; k < count; ++k) {
        double pivot = a[k][k] > 1e-14 * diagonal[k] ? 1 / a[k][k] : 0;
        a[k][k] = 1;
        for (int j = 0; j < SK_BOTTOM_UNKNOWNS; ++j)
            a[k][j] *= pivot;
        for (int i = 0; i < count; ++i) {
            if (i == k)
                continue;
            double factor = a[i][k];
            a[i][k] = 0;
            for (int j = 0; j < SK_BOTTOM_UNKNOWNS; ++j)
                a[i][j] -= factor * a[k][j];
        }
    }
    for (int i = 0; i < SK_BOTTOM_UNKNOWNS; ++i)
        for (int j = 0; j < SK_BOTTOM_UNKNOWNS; ++j)
            inverse[i][j] = i < count && j < count ? (float)(0.5 * (a[i][j] + a[j][i])) : 0;
}

/* Makes components without any excess regular by a small stiffness of their constants (ones times ones). Right sides
 * that sum to zero keep their solution, and round-off in the sum does not grow. */
static void stiffen_closed_regions(int count, bottom_matrix matrix, const double *excess)
{
    /* Number each component by its first cell. */
    int region[SK_BOTTOM_UNKNOWNS];
    for (int i = 0; i < count; ++i)
        region[i] = i;
    for (int changed = 1; changed;) {
        changed = 0;
        for (int i = 0; i < count; ++i)
            for (int j = 0; j < count; ++j)
                if (matrix[i][j] < 0 && region[j] > region[i]) {
                    region[j] = region[i];
                    changed = 1;
                }
    }

    /* Add the stiffness to components without excess. */
    for (int first = 0; first < count; ++first) {
        double sum = 0, stiffness = 0;
        int cells = 0;
        for (int i = 0; i < count; ++i)
            if (region[i] == first) {
                sum += excess[i];
                stiffness += matrix[i][i];
                ++cells;
            }
        if (cells == 0 || sum > 0)
            continue;
        for (int i = 0; i < count; ++i)
            for (int j = 0; j < count; ++j)
                if (region[i] == first && region[j] == first)
                    matrix[i][j] += stiffness / ((double)cells * cells);
    }
}

void SK_DIM(sk_multigrid_prepare_bottom)(sk_multigrid *multigrid)
{
    const sk_level *level = &multigrid->level[multigrid->level_count - 1];

    /* List the unknowns of the coarsest level. */
    int32_t cells[SK_BOTTOM_UNKNOWNS][4];
    int count = 0;
    for (int block = 1; block <= level->block_count; ++block)
        for (int k = 0; k < SK_PLANES; ++k)
            for (int j = 0; j < SK_BLOCK_N; ++j)
                for (int i = 0; i < SK_BLOCK_N; ++i) {
                    int index = sk_split_index(i, j, k);
                    if (sk_inverse_at(level, block, index) <= 0 || count == SK_BOTTOM_UNKNOWNS)
                        continue;
                    memcpy(cells[count], (int32_t[4]){i, j, k, block}, sizeof(cells[0]));
                    multigrid->bottom_cell[count++] = block * SK_BLOCK_CELLS + index;
                }
    multigrid->bottom_unknowns = count;

    /* Rows of their matrix. */
    bottom_matrix matrix;
    double excess[SK_BOTTOM_UNKNOWNS];
    memset(matrix, 0, sizeof(matrix));
    for (int n = 0; n < count; ++n) {
        int block = cells[n][3], index = sk_split_index(cells[n][0], cells[n][1], cells[n][2]);
        excess[n] = sk_excess_at(level, block, index);
        matrix[n][n] = excess[n];
        for (int side = 0; side < SK_SIDES; ++side) {
            float coefficient;
            int other = across(multigrid, level, block, cells[n], side, &coefficient);
            matrix[n][n] += coefficient;
            if (other >= 0)
                matrix[n][other] -= coefficient;
            else
                excess[n] += (double)coefficient; /* towards a held cell */
        }
    }

    /* Invert the matrix once, so that each cycle only multiplies. */
    stiffen_closed_regions(count, matrix, excess);
    invert_matrix(count, matrix, multigrid->bottom_inverse);
}
