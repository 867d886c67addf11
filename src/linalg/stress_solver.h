/* The levels of the stress solver. Private to linalg/. For files compiled per dimension. */
#ifndef SK_LINALG_STRESS_SOLVER_H
#define SK_LINALG_STRESS_SOLVER_H

#include <string.h>

#include "base/dimension.h"
#include "grid/wrap_kernels.h"
#include "linalg/stress.h"
#include "linalg/stress_kernels.h"

/* A half row is the faces of one colour in a row of a block along x. It is a group if all of them are unknowns and so
 * are all their neighbours, but for a face beyond the end of the row. Numbers in a half row of unknowns are
 * consecutive, so a sweep over groups loads vectors in place of single values. */
enum {
    SK_STRESS_GROUP = SK_BLOCK_N / 2,
    SK_STRESS_BEYOND = 1 + 2 * SK_STRESS_ACROSS, /* neighbours beyond the end of the row, at most */
    SK_STRESS_GROUP_COLUMNS = SK_STRESS_NEIGHBOURS + SK_STRESS_BEYOND
};

/* The faces of one component in a row of a block along x: bit n is that of cell n. */
enum { SK_STRESS_ROWS = SK_BLOCK_CELLS / SK_BLOCK_N };
typedef struct sk_stress_bits {
    uint32_t unknown;
    uint32_t own;   /* unknowns with coefficients of their own */
    uint32_t group; /* unknowns in groups */
    uint32_t given; /* faces whose velocity is given */
} sk_stress_bits;

/* The bits of the faces with even x; shifted by one, of those with odd x. */
#define SK_STRESS_HALF (0x55555555u & ((1u << SK_BLOCK_N) - 1u))

/* The lowest bit of a set, which is not empty. */
static inline __attribute__((unused)) int sk_stress_lowest(uint32_t bits)
{
    return __builtin_ctz(bits);
}

/* Unknowns of one colour, in the order of their numbers: groups whose first face has an even x, groups whose first face
 * has an odd x, other even rows, uneven rows. A group may hold uneven rows: a sweep computes them as even ones, and
 * then once more from coefficients of their own. */
typedef struct sk_stress_colour {
    int32_t first, odd_groups, singles, uneven, last;
    int32_t groups;              /* first group in group_column */
    int32_t columns;             /* row of `column` of the first single */
    int32_t own_first, own_last; /* uneven rows in `own_row`, in ascending order */
} sk_stress_colour;

typedef struct sk_stress_level {
    /* Blocks, as in sk_stress_system. */
    int block_count;
    const int32_t (*coordinates)[4];
    const int32_t (*neighbours)[27];
    int32_t joined[3]; /* blocks along a periodic axis of this level; 0 = its first and last blocks are no neighbours */

    /* Cells along a periodic axis that ends inside a block; 0 = none. Cells beyond its end, and before 0, are copies of
     * the cells a period away: their own places are in `home`, those of other cells too. */
    int32_t period[3];
    uint32_t *home;                                     /* [block_count][cells]; NULL = there are no copies */
    const float *mass[3], *normal[3], *bulk, *shear[3]; /* normal strain has a weight for each direction */
    const uint8_t *fixed[3];
    uint8_t *near_given;  /* [block_count] 1 = a face in the block or in one beside it is given; of the finest level */
    uint8_t *near_moving; /* likewise, given and not at rest */

    /* Unknowns, one colour after the other. Number `count` is a face without an unknown: its value is 0. Even rows are
     * those whose weights are the usual ones inside liquid of one viscosity. They share their coefficients, which a
     * loop then keeps in registers. */
    int32_t *index[3];                                  /* [block_count][cells] number of the unknown, or `count` */
    sk_stress_bits (*bits)[SELKIE_DIM][SK_STRESS_ROWS]; /* [block_count] */
    int32_t count;
    sk_stress_colour colour[SK_STRESS_COLOURS];
    sk_stress_weights even[3]; /* weights of even rows of each component */
    float shared[3][SK_STRESS_NEIGHBOURS], shared_diagonal[3];
    int32_t *group_column;     /* [groups][SK_STRESS_GROUP_COLUMNS] of the first face; then faces beyond the row */
    int32_t *column;           /* [singles][SK_STRESS_NEIGHBOURS] */
    int32_t *own_row;          /* [uneven rows] their numbers */
    int32_t *own_column;       /* [uneven rows][SK_STRESS_NEIGHBOURS] */
    float *coefficient;        /* [uneven rows][SK_STRESS_NEIGHBOURS] */
    float *own_mass;           /* [uneven rows] */
    float *inverse, *diagonal; /* [count] */
    float *x, *b, *residual;   /* [count + 1]; x has a value before the first, too */

    /* Transfers to and from the next level. */
    int32_t *parent;      /* [count][SK_STRESS_PARENTS] unknowns of the next level */
    uint8_t *kind;        /* [count] axis of the face times 8, plus the parity of its indices */
    int32_t *child;       /* [count of the next level][SK_STRESS_CHILDREN] */
    uint8_t *coarse_axis; /* [count of the next level] */
} sk_stress_level;

typedef struct sk_stress_hierarchy {
    int count;
    int threads;
    int last_sweeps; /* symmetric sweeps on the coarsest level if it is not solved directly */
    sk_stress_level levels[SK_STRESS_LEVELS];
    double
        *factor; /* Cholesky factor of the coarsest level, lower triangle [count][count]; NULL = it has too many rows */
} sk_stress_hierarchy;

/* Place of the cell at `at` from a block's lower corner, at most one block outside. */
static inline __attribute__((unused)) size_t sk_stress_place(const int32_t (*neighbours)[27], int block,
                                                             const int at[3])
{
    int neighbour = 0, stride = 1, local = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        neighbour += ((at[d] >> SK_BLOCK_LOG) + 1) * stride;
        stride *= 3;
        local |= (at[d] & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
    }
    return (size_t)neighbours[block][neighbour] * SK_BLOCK_CELLS + (size_t)local;
}

/* Places of the neighbours of a face across axis a, in the order of the coefficients. */
static inline __attribute__((unused)) void sk_stress_places(const int32_t (*neighbours)[27], int block, const int at[3],
                                                            int a, size_t places[SK_STRESS_NEIGHBOURS])
{
    for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
        int other[3];
        sk_stress_offset(a, m, other);
        for (int d = 0; d < 3; d++)
            other[d] += at[d];
        places[m] = sk_stress_place(neighbours, block, other);
    }
}

/* Does neighbour m of the first or last face of a group lie beyond the row? With an even first x the first face's
 * neighbours before it do, with an odd one the last face's neighbours after it. */
static inline __attribute__((always_inline, unused)) int sk_stress_is_beyond(int across_x, int odd, int m)
{
    if (across_x)
        return odd ? m == 1 : m == 0 || (m >= 2 && ((m - 2) % SK_STRESS_OTHER == 3 || (m - 2) % SK_STRESS_OTHER == 5));
    return odd ? m == 3 || m == 6 || m == 7 : m == 2;
}

/* The colour of a row. */
static inline __attribute__((unused)) int sk_stress_colour_of(const sk_stress_level *level, int32_t row)
{
    int k = 0;
    while (row >= level->colour[k].last)
        k++;
    return k;
}

/* The place of a row of colour k in `own_row`; -1 if it is even. */
static inline __attribute__((unused)) int32_t sk_stress_own(const sk_stress_level *level, int k, int32_t row)
{
    int32_t low = level->colour[k].own_first, high = level->colour[k].own_last;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (level->own_row[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low < level->colour[k].own_last && level->own_row[low] == row ? low : -1;
}

/* The coefficients of a row of colour k. */
static inline __attribute__((unused)) const float *sk_stress_coefficients(const sk_stress_level *level, int k,
                                                                          int32_t row)
{
    const int32_t own = sk_stress_own(level, k, row);
    return own < 0 ? level->shared[k / 2] : level->coefficient + (size_t)own * SK_STRESS_NEIGHBOURS;
}

/* The columns of a row of colour k, wherever they are stored. */
static inline __attribute__((unused)) void sk_stress_columns(const sk_stress_level *level, int k, int32_t row,
                                                             int32_t columns[SK_STRESS_NEIGHBOURS])
{
    const sk_stress_colour *colour = &level->colour[k];
    if (row >= colour->singles) {
        const int32_t *from =
            row < colour->uneven
                ? level->column + (size_t)(row - colour->singles + colour->columns) * SK_STRESS_NEIGHBOURS
                : level->own_column + (size_t)sk_stress_own(level, k, row) * SK_STRESS_NEIGHBOURS;
        memcpy(columns, from, SK_STRESS_NEIGHBOURS * sizeof *columns);
        return;
    }
    const int lane = (row - colour->first) % SK_STRESS_GROUP, odd = row >= colour->odd_groups;
    const int32_t *first = level->group_column +
                           (size_t)(colour->groups + (row - colour->first) / SK_STRESS_GROUP) * SK_STRESS_GROUP_COLUMNS;
    for (int m = 0, beyond = SK_STRESS_NEIGHBOURS; m < SK_STRESS_NEIGHBOURS; m++) {
        columns[m] = first[m] + lane;
        if (sk_stress_is_beyond(k / 2 == 0, odd, m)) {
            columns[m] = lane == (odd ? SK_STRESS_GROUP - 1 : 0) ? first[beyond] : columns[m];
            beyond++;
        }
    }
}

/* Local coordinates of cell c of a block. */
static inline __attribute__((unused)) void sk_stress_cell(int c, int at[3])
{
    for (int d = 0; d < 3; d++)
        at[d] = d < SELKIE_DIM ? c >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK : 0;
}

/* The bits of the cells of a block's row along x that have a given face, or that lie beside a cell with one. */
static inline __attribute__((unused)) uint32_t sk_stress_given_around(const sk_stress_level *level, int block, int r)
{
    uint32_t around = 0;
    int at[3];
    sk_stress_cell(r * SK_BLOCK_N, at);
    for (int k = SELKIE_DIM == 3 ? -1 : 0; k <= (SELKIE_DIM == 3 ? 1 : 0); k++)
        for (int j = -1; j <= 1; j++)
            for (int side = -1; side <= 1; side++) {
                const size_t place =
                    sk_stress_place(level->neighbours, block, (const int[3]){side * SK_BLOCK_N, at[1] + j, at[2] + k});
                uint32_t given = 0;
                for (int a = 0; a < SELKIE_DIM; a++)
                    given |= level->bits[place / SK_BLOCK_CELLS][a][place % SK_BLOCK_CELLS / SK_BLOCK_N].given;
                around |= side < 0   ? given >> (SK_BLOCK_N - 1)
                          : side > 0 ? given << (SK_BLOCK_N - 1)
                                     : given | given << 1 | given >> 1;
            }
    return around;
}

/* Is a cell a copy of one a period away? */
static inline __attribute__((unused)) int sk_stress_is_copy(const sk_stress_level *level, size_t place)
{
    return level->home && level->home[place] != place;
}

/* What the right sides of the faces across axis a in a block's row along x lose by a gain of the sources. */
static inline __attribute__((unused)) void sk_stress_gain_change(const sk_stress_level *level, const float *gain,
                                                                 int block, int r, int a, float change[SK_BLOCK_N])
{
    const size_t here = (size_t)block * SK_BLOCK_CELLS + (size_t)(r * SK_BLOCK_N);
    int at[3];
    sk_stress_cell(r * SK_BLOCK_N, at);
    at[a]--;
    const float *before = gain + sk_stress_place(level->neighbours, block, at);
    for (int n = 0; n < SK_BLOCK_N; n++)
        change[n] = gain[here + (size_t)n] - (a == 0 ? n ? gain[here + (size_t)n - 1] : *before : before[n]);
}

#define SK_STRESS_TAKE(arena, pointer, count)                                                                          \
    SK_TRY(sk_arena_take(arena, (size_t)(count) * sizeof *(pointer), "viscosity", (void **)&(pointer), error))

/* Finds the unknowns of a level and the weights that even rows share. */
selkie_code SK_DIM(sk_stress_find_unknowns)(sk_stress_level *level, const sk_stress_options *options,
                                            selkie_error *error);

/* Numbers the unknowns of a level and makes its rows. */
selkie_code SK_DIM(sk_stress_make_rows)(sk_stress_level *level, const sk_stress_options *options, selkie_error *error);

/* The finest level: its fields and the bits of its faces. *sweeps: its rows have so little stress that so many sweeps
 * an iteration may solve it, and it has enough of them; 0 = it needs coarse levels. */
selkie_code SK_DIM(sk_stress_begin)(const sk_stress_system *system, const sk_stress_options *options,
                                    sk_stress_hierarchy *hierarchy, int64_t *unknowns, int *sweeps,
                                    selkie_error *error);

/* Its rows, and the levels below it. */
selkie_code SK_DIM(sk_stress_make_levels)(const sk_stress_system *system, const sk_stress_options *options,
                                          sk_stress_hierarchy *hierarchy, selkie_error *error);

#endif
