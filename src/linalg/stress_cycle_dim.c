/* The multigrid cycle of the stress solver: see stress.h. */
#include <string.h>

#include "linalg/stress_sweeps.h"

/* Sum of coefficient x neighbour, in two chains: one would wait for each sum. */
static inline __attribute__((always_inline)) float neighbour_sum(const float *coefficient, const int32_t *column,
                                                                 const float *x)
{
    float even = 0.0f, odd = 0.0f;
#pragma GCC unroll 8
    for (int m = 0; m < SK_STRESS_NEIGHBOURS; m += 2) {
        even += coefficient[m] * x[column[m]];
        odd += coefficient[m + 1] * x[column[m + 1]];
    }
    return even + odd;
}

/* The same sum for the faces of a group. across_x: the faces lie across x; odd: their first x is odd. */
static inline __attribute__((always_inline)) lanes group_sum(const float *shared, const int32_t *column, const float *x,
                                                             int across_x, int odd)
{
    lanes sum[2] = {{0.0f}, {0.0f}};
    int beyond = SK_STRESS_NEIGHBOURS;
#pragma GCC unroll 16
    for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
        lanes value = *(const lanes *)(const void *)(x + column[m]);
        if (sk_stress_is_beyond(across_x, odd, m))
            value[odd ? SK_STRESS_GROUP - 1 : 0] = x[column[beyond++]];
        sum[m & 1] += shared[m] * value;
    }
    return sum[0] + sum[1];
}

/* What a loop does with the rows of a colour. */
typedef enum row_work { WORK_SMOOTH, WORK_RESIDUAL } row_work;

static inline __attribute__((always_inline)) void finish_row(const sk_stress_level *level, int32_t row, float diagonal,
                                                             float inverse, float sum, row_work work)
{
    if (work == WORK_SMOOTH)
        level->x[row] = inverse * (level->b[row] - sum);
    else
        level->residual[row] = level->b[row] - sum - diagonal * level->x[row];
}

static inline __attribute__((always_inline)) void work_on_groups(const sk_stress_level *level, const colour_rows *rows,
                                                                 int32_t begin, int32_t end, int across_x, int odd,
                                                                 row_work work)
{
    const float diagonal = rows->diagonal, inverse = 1.0f / diagonal, *b = level->b;
    float *x = level->x, shared[SK_STRESS_NEIGHBOURS];
    memcpy(shared, rows->shared, sizeof shared);
    for (int32_t i = begin; i < end; i += SK_STRESS_GROUP) {
        const int32_t *column = group_columns(level, &rows->colour, i);
        const lanes rest = *(const lanes *)(const void *)(b + i) - group_sum(shared, column, x, across_x, odd);
        if (work == WORK_SMOOTH)
            *(lanes *)(void *)(x + i) = inverse * rest;
        else
            *(lanes *)(void *)(level->residual + i) = rest - diagonal * *(const lanes *)(const void *)(x + i);
    }
}

/* The rows of groups [begin, end) of one kind: for each the compiler resolves which neighbours lie beyond the row. */
static inline __attribute__((always_inline)) void work_on_kind(const sk_stress_level *level, const colour_rows *rows,
                                                               int32_t begin, int32_t end, int odd, row_work work)
{
    if (rows->across_x && odd)
        work_on_groups(level, rows, begin, end, 1, 1, work);
    else if (rows->across_x)
        work_on_groups(level, rows, begin, end, 1, 0, work);
    else if (odd)
        work_on_groups(level, rows, begin, end, 0, 1, work);
    else
        work_on_groups(level, rows, begin, end, 0, 0, work);
}

/* A thread's share of a colour. Uneven rows in groups are done once more. */
static inline __attribute__((always_inline)) void work_on_colour(const sk_stress_level *level, const colour_rows *rows,
                                                                 row_work work, sk_team team)
{
    const sk_stress_colour *colour = &rows->colour;
    const colour_share mine = share_colour(level, colour, team);
    const float *x = level->x, inverse = 1.0f / rows->diagonal;
    for (int odd = 0; odd < 2; odd++)
        work_on_kind(level, rows, mine.groups[odd].first, mine.groups[odd].last, odd, work);
    for (int32_t i = mine.singles.first; i < mine.singles.last; i++) {
        const float sum = neighbour_sum(rows->shared, single_columns(level, colour, i), x);
        finish_row(level, i, rows->diagonal, inverse, sum, work);
    }
    for (int kind = 0; kind < 3; kind++)
        for (int32_t n = mine.own[kind].first; n < mine.own[kind].last; n++) {
            const size_t entry = (size_t)n * SK_STRESS_NEIGHBOURS;
            const int32_t i = level->own_row[n];
            finish_row(level, i, level->diagonal[i], level->inverse[i],
                       neighbour_sum(level->coefficient + entry, level->own_column + entry, x), work);
        }
}

/* The order of a Gauss-Seidel sweep over the colours. The first sweep of a cycle starts from x = 0. */
typedef enum sweep { SWEEP_FROM_ZERO, SWEEP_FORWARD, SWEEP_BACKWARD } sweep;

/* Rows of a colour are no neighbours, so their order is free. `from` is 1 if the sweep before it ended with the first
 * colour of this one: nothing would change there. */
static void smooth(const sk_stress_level *level, sk_team team, sweep kind, int from)
{
    for (int n = from; n < SK_STRESS_COLOURS; n++) {
        const colour_rows rows = rows_of_colour(level, kind == SWEEP_BACKWARD ? SK_STRESS_COLOURS - 1 - n : n);
        if (n > 0 || kind != SWEEP_FROM_ZERO) {
            work_on_colour(level, &rows, WORK_SMOOTH, team);
        } else { /* all neighbours are 0 */
            const share mine = share_of(rows.colour.first, rows.colour.last, 1, team);
            for (int32_t i = mine.first; i < mine.last; i++)
                level->x[i] = level->inverse[i] * level->b[i];
        }
        sk_team_wait(team);
    }
}

/* The residual after a forward sweep. It is 0 in the last colour, whose rows the sweep has just solved. */
static void find_residual(const sk_stress_level *level, sk_team team)
{
    for (int k = 0; k + 1 < SK_STRESS_COLOURS; k++) {
        const colour_rows rows = rows_of_colour(level, k);
        work_on_colour(level, &rows, WORK_RESIDUAL, team);
    }
    const share last = share_of(level->colour[SK_STRESS_COLOURS - 1].first, level->count, 1, team);
    memset(level->residual + last.first, 0, (size_t)(last.last - last.first) * sizeof *level->residual);
    sk_team_wait(team);
}

/* Weights of the transposed interpolation to a coarse face across an axis, over the number of fine faces of a coarse
 * one, in the order of the children. */
static void child_weights(int axis, float weight[SK_STRESS_CHILDREN])
{
    static const float along[3] = {0.25f, 0.5f, 0.25f}, across[4] = {0.125f, 0.375f, 0.375f, 0.125f};
    const float *x = axis == 0 ? along : across, *y = axis == 1 ? along : across, *z = axis == 2 ? along : across;
    const int nx = axis == 0 ? 3 : 4, ny = axis == 1 ? 3 : 4, nz = SELKIE_DIM == 2 ? 1 : axis == 2 ? 3 : 4;
    for (int c = 0, n = 0; c < nz; c++)
        for (int b = 0; b < ny; b++)
            for (int a = 0; a < nx; a++, n++)
                weight[n] = (SELKIE_DIM == 2 ? 1.0f : z[c]) * y[b] * x[a];
}

static void restrict_residual(const sk_stress_level *fine, const sk_stress_level *coarse, sk_team team)
{
    float weights[SELKIE_DIM][SK_STRESS_CHILDREN];
    for (int a = 0; a < SELKIE_DIM; a++)
        child_weights(a, weights[a]);
    const share mine = share_of(0, coarse->count, 1, team);
    for (int32_t i = mine.first; i < mine.last; i++) {
        /* Four chains of sums: one would wait for each sum. */
        const int32_t *child = fine->child + (size_t)i * SK_STRESS_CHILDREN;
        const float *weight = weights[fine->coarse_axis[i]];
        float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        for (int n = 0; n < SK_STRESS_CHILDREN; n += 4)
            for (int m = 0; m < 4; m++)
                sum[m] += weight[n + m] * fine->residual[child[n + m]];
        coarse->b[i] = sum[0] + sum[1] + (sum[2] + sum[3]);
        coarse->x[i] = 0.0f;
    }
    sk_team_wait(team);
}

static void add_correction(const sk_stress_level *fine, const sk_stress_level *coarse, sk_team team)
{
    float weights[3 * 8][SK_STRESS_PARENTS];
    for (int kind = 0; kind < 8 * SELKIE_DIM; kind++)
        for (int p = 0; p < SK_STRESS_PARENTS; p++)
            weights[kind][p] = sk_stress_parent_weight(kind / 8, kind % 8, p);
    const share mine = share_of(0, fine->count, 1, team);
    for (int32_t i = mine.first; i < mine.last; i++) {
        const int32_t *parent = fine->parent + (size_t)i * SK_STRESS_PARENTS;
        const float *weight = weights[fine->kind[i]];
        float sum = 0.0f;
        for (int p = 0; p < SK_STRESS_PARENTS; p++)
            sum += weight[p] * coarse->x[parent[p]];
        fine->x[i] += sum;
    }
    sk_team_wait(team);
}

/* x = (L L^T)^-1 b. */
static void solve_directly(const sk_stress_level *level, const double *factor)
{
    const int count = level->count;
    double y[SK_STRESS_DIRECT];
    for (int i = 0; i < count; i++) {
        double sum = (double)level->b[i];
        for (int k = 0; k < i; k++)
            sum -= factor[(size_t)i * (size_t)count + (size_t)k] * y[k];
        y[i] = sum / factor[(size_t)i * (size_t)count + (size_t)i];
    }
    for (int i = count - 1; i >= 0; i--) {
        double sum = y[i];
        for (int k = i + 1; k < count; k++)
            sum -= factor[(size_t)k * (size_t)count + (size_t)i] * y[k];
        y[i] = sum / factor[(size_t)i * (size_t)count + (size_t)i];
        level->x[i] = (float)y[i];
    }
}

/* The sweeps after the correction run backwards. Small levels are left to one thread. */
void SK_DIM(sk_stress_cycle)(const sk_stress_hierarchy *hierarchy, int at, sk_team team)
{
    const sk_stress_level *level = &hierarchy->levels[at];
    if (team.threads > 1 && level->count <= SK_STRESS_FEW) {
        if (team.thread == 0)
            SK_DIM(sk_stress_cycle)(hierarchy, at, (sk_team){0, 1, NULL});
        sk_team_wait(team);
        return;
    }
    if (at + 1 == hierarchy->count && hierarchy->factor) {
        if (team.thread == 0)
            solve_directly(level, hierarchy->factor);
        sk_team_wait(team);
        return;
    }
    if (at + 1 == hierarchy->count) {
        for (int n = 0; n < hierarchy->last_sweeps; n++) {
            smooth(level, team, n ? SWEEP_FORWARD : SWEEP_FROM_ZERO, n > 0);
            smooth(level, team, SWEEP_BACKWARD, 1);
        }
        return;
    }
    const int sweeps = at ? SK_STRESS_SMOOTHINGS + SK_STRESS_MORE : SK_STRESS_SMOOTHINGS;
    for (int n = 0; n < sweeps; n++)
        smooth(level, team, n ? SWEEP_FORWARD : SWEEP_FROM_ZERO, 0);
    find_residual(level, team);
    restrict_residual(level, level + 1, team);
    SK_DIM(sk_stress_cycle)(hierarchy, at + 1, team);
    add_correction(level, level + 1, team);
    for (int n = 0; n < sweeps; n++)
        smooth(level, team, SWEEP_BACKWARD, 0);
}
