/* Momentum and angular momentum of liquid that touches no wall.
 *
 * Viscous forces are internal, so both stay what the target says. The conjugate gradients stop at a tolerance and leave
 * an error. A rigid motion removes it: it has no strain, so the stress does not change. Each connected part of the
 * liquid gets its own (Batty and Bridson 2008, sec. 4, keep it by tight tolerances). */
#include <math.h>
#include <string.h>

#include "linalg/stress_solver.h"

enum { MODES = SELKIE_DIM == 3 ? 6 : 3, TRIANGLE = MODES * (MODES + 1) / 2 };

/* Sums over the faces of a part. */
typedef struct part {
    double matrix[TRIANGLE]; /* of masses: lower triangle */
    double missing[MODES];   /* momentum and angular momentum; then the rigid motion */
    int held;                /* a wall acts on it */
} part;

static int32_t find_root(int32_t *root, int32_t i)
{
    while (root[i] != i) {
        root[i] = root[root[i]];
        i = root[i];
    }
    return i;
}

/* The smallest number of a part is its root, so the result does not depend on the order. */
static inline void join(int32_t *root, int32_t i, int32_t other)
{
    if (root[other] == root[i])
        return;
    const int32_t a = find_root(root, i), b = find_root(root, other);
    root[a > b ? a : b] = a > b ? b : a;
}

/* Joins a group of even rows, which are joined to each other, to neighbours in a half row that begins at `other`. Most
 * of these are one group too. */
static inline void join_half_rows(int32_t *root, int32_t first, int32_t other, int lanes)
{
    int32_t different = 0;
    for (int n = 1; n < SK_STRESS_GROUP; n++)
        different |= n < lanes ? root[other] ^ root[other + n] : 0;
    for (int n = 0; n < (different ? lanes : 1); n++)
        join(root, first, other + n);
}

/* Joins a group of even rows to its neighbours with smaller numbers. */
static void join_group(const sk_stress_level *level, int k, int32_t first, int32_t *root)
{
    const sk_stress_colour *colour = &level->colour[k];
    const int odd = first >= colour->odd_groups;
    const int32_t *column = level->group_column + (size_t)(colour->groups + (first - colour->first) / SK_STRESS_GROUP) *
                                                      SK_STRESS_GROUP_COLUMNS;
    for (int m = 0, beyond = SK_STRESS_NEIGHBOURS; m < SK_STRESS_NEIGHBOURS; m++) {
        const int is_beyond = sk_stress_is_beyond(k / 2 == 0, odd, m);
        const int32_t edge = first + (odd ? SK_STRESS_GROUP - 1 : 0);
        if (is_beyond && column[beyond] < edge)
            join(root, edge, column[beyond]);
        beyond += is_beyond;

        /* The other faces of the group, whose neighbours are consecutive. */
        const int skipped = is_beyond && !odd;
        if (column[m] + skipped < first)
            join_half_rows(root, first, column[m] + skipped, SK_STRESS_GROUP - is_beyond);
    }
}

/* Even rows are joined to all their neighbours, uneven ones to those between which stress acts. Of each pair, the row
 * with the larger number joins the two. */
static void join_rows(const sk_stress_level *level, int32_t *root)
{
    for (int32_t i = 0; i < level->count; i++)
        root[i] = i;
    for (int k = 0; k < SK_STRESS_COLOURS; k++) {
        int32_t own = level->colour[k].own_first;
        for (int32_t i = level->colour[k].first; i < level->colour[k].last; i++) {
            const int32_t next = own < level->colour[k].own_last ? level->own_row[own] : level->count;
            const int is_first = i < level->colour[k].singles && (i - level->colour[k].first) % SK_STRESS_GROUP == 0;
            if (is_first && next >= i + SK_STRESS_GROUP) {
                /* Faces between two of the group join them: the group is one part. */
                for (int n = 0; n < SK_STRESS_GROUP; n++)
                    root[i + n] = i;
                join_group(level, k, i, root);
                i += SK_STRESS_GROUP - 1;
                continue;
            }
            int32_t even[SK_STRESS_NEIGHBOURS];
            const int32_t *columns = even;
            const float *coefficient = level->shared[k / 2];
            if (next == i) {
                columns = level->own_column + (size_t)own * SK_STRESS_NEIGHBOURS;
                coefficient = level->coefficient + (size_t)own++ * SK_STRESS_NEIGHBOURS;
            } else {
                sk_stress_columns(level, k, i, even);
            }
            for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++)
                if (columns[m] < i && coefficient[m] != 0.0f)
                    join(root, i, columns[m]);
        }
    }
}

/* Velocity of the rigid motions at a face across axis a: translations, then rotations. Where sides are joined there
 * are none: liquid that crosses them turns about no centre. */
static void rigid_modes(const sk_stress_level *level, const double x[3], int a, double mode[MODES])
{
    memset(mode, 0, MODES * sizeof *mode);
    mode[a] = 1.0;
    if (level->joined[0] || level->joined[1] || level->joined[2])
        return;
#if SELKIE_DIM == 2
    mode[2] = a == 0 ? -x[1] : x[0];
#else
    mode[3 + (a + 1) % 3] = x[(a + 2) % 3];
    mode[3 + (a + 2) % 3] = -x[(a + 1) % 3];
#endif
}

static void face_centre(const sk_stress_level *level, int block, int c, int a, double x[3])
{
    x[2] = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++)
        x[d] = level->coordinates[block][d] * SK_BLOCK_N + (c >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK) +
               (d == a ? 0.0 : 0.5);
}

/* Is a neighbour of the face with a stress between the two given? */
static int is_held(const sk_stress_system *system, const sk_stress_level *level, int block, int c, int a,
                   int32_t number)
{
    int at[3], held = 0;
    size_t places[SK_STRESS_NEIGHBOURS];
    const float *coefficient = NULL;
    sk_stress_cell(c, at);
    sk_stress_places(level->neighbours, block, at, a, places);
    for (int m = 0; m < SK_STRESS_NEIGHBOURS && !held; m++) {
        if (!system->fixed[sk_stress_component(a, m)][places[m]])
            continue;
        if (!coefficient)
            coefficient = sk_stress_coefficients(level, sk_stress_colour_of(level, number), number);
        held = coefficient[m] != 0.0f;
    }
    return held;
}

/* The rigid motion that carries the missing momenta, by Cholesky. Modes without mass stay out. */
static void solve_part(part *p)
{
    double l[MODES][MODES] = {{0}}, *x = p->missing;
    for (int i = 0; i < MODES; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = p->matrix[i * (i + 1) / 2 + j];
            const double whole = sum;
            for (int k = 0; k < j; k++)
                sum -= l[i][k] * l[j][k];
            if (i == j)
                l[i][i] = sum > 1e-9 * whole ? sqrt(sum) : 0.0;
            else
                l[i][j] = l[j][j] > 0.0 ? sum / l[j][j] : 0.0;
        }
        for (int k = 0; k < i; k++)
            x[i] -= l[i][k] * x[k];
        x[i] = l[i][i] > 0.0 ? x[i] / l[i][i] : 0.0;
    }
    for (int i = MODES - 1; i >= 0; i--) {
        for (int k = i + 1; k < MODES; k++)
            x[i] -= l[k][i] * x[k];
        x[i] = l[i][i] > 0.0 ? x[i] / l[i][i] : 0.0;
    }
}

/* Marks the parts that a wall holds, from the faces of a block. */
static void find_held_parts(const sk_stress_system *system, const sk_stress_level *level, int block,
                            const int32_t *number_of_part, part *parts)
{
    for (int r = 0; r < SK_STRESS_ROWS && level->near_given[block]; r++) {
        const uint32_t around = sk_stress_given_around(level, block, r);
        for (int a = 0; a < SELKIE_DIM; a++)
            for (uint32_t left = level->bits[block][a][r].unknown & around; left; left &= left - 1) {
                const int c = r * SK_BLOCK_N + sk_stress_lowest(left);
                const int32_t number = level->index[a][(size_t)block * SK_BLOCK_CELLS + (size_t)c];
                part *p = &parts[number_of_part[number]];
                p->held = p->held || is_held(system, level, block, c, a, number);
            }
    }
}

/* Adds the faces of a block to the sums of their parts. */
static void sum_block(const sk_stress_system *system, const sk_stress_level *level, int block, const double *x,
                      const int32_t *number_of_part, part *parts)
{
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            const size_t here = (size_t)block * SK_BLOCK_CELLS + (size_t)c;
            const int32_t number = level->index[a][here];
            const double mass = (double)system->mass[a][here];
            if (number == level->count)
                continue;
            part *p = &parts[number_of_part[number]];
            if (p->held || !(mass > 0.0))
                continue;
            double centre[3], mode[MODES];
            face_centre(level, block, c, a, centre);
            rigid_modes(level, centre, a, mode);
            const double change = (double)system->target[a][here] - x[number];
            for (int i = 0; i < MODES; i++) {
                p->missing[i] += mass * mode[i] * change;
                for (int j = 0; j <= i; j++)
                    p->matrix[i * (i + 1) / 2 + j] += mass * mode[i] * mode[j];
            }
        }
}

/* Adds the rigid motion of its part to each face. */
static void move_block(const sk_stress_level *level, int block, double *x, const int32_t *number_of_part,
                       const part *parts)
{
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            const int32_t number = level->index[a][(size_t)block * SK_BLOCK_CELLS + (size_t)c];
            if (number == level->count || parts[number_of_part[number]].held)
                continue;
            double centre[3], mode[MODES];
            face_centre(level, block, c, a, centre);
            rigid_modes(level, centre, a, mode);
            for (int i = 0; i < MODES; i++)
                x[number] += parts[number_of_part[number]].missing[i] * mode[i];
        }
}

selkie_code SK_DIM(sk_stress_keep_momenta)(const sk_stress_system *system, const sk_stress_options *options,
                                           const sk_stress_level *level, double *x, selkie_error *error)
{
    int32_t *root, *number, count = 0;
    part *parts;
    const size_t bytes = ((size_t)level->count + 1) * sizeof *root;
    SK_TRY(sk_arena_take(options->arena, bytes, "viscosity", (void **)&root, error));
    SK_TRY(sk_arena_take(options->arena, bytes, "viscosity", (void **)&number, error));
    join_rows(level, root);

    /* Parts in the order of their roots. A root is the smallest of its part, so it is numbered before the others. */
    for (int32_t i = 0; i < level->count; i++)
        number[i] = root[i] == i ? count++ : number[find_root(root, i)];
    SK_TRY(sk_arena_take(options->arena, ((size_t)count + 1) * sizeof *parts, "viscosity", (void **)&parts, error));
    memset(parts, 0, (size_t)count * sizeof *parts);

    int32_t held = 0;
    for (int b = 1; b < system->block_count; b++)
        find_held_parts(system, level, b, number, parts);
    for (int32_t n = 0; n < count; n++)
        held += parts[n].held;
    if (held == count)
        return SELKIE_OK;

    /* One thread and one order: the same bits. */
    for (int b = 1; b < system->block_count; b++)
        sum_block(system, level, b, x, number, parts);
    for (int32_t n = 0; n < count; n++)
        solve_part(&parts[n]);
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
    for (int b = 1; b < system->block_count; b++)
        move_block(level, b, x, number, parts);
    return SELKIE_OK;
}
