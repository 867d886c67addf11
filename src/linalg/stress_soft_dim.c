/* Conjugate gradients for a soft system of stresses: one whose rows have not much more stress than mass.
 *
 * Such a system needs no coarse levels. With A = D + L + U, the preconditioner is a symmetric Gauss-Seidel sweep over
 * the colours, (D + L) D^-1 (D + U). Eisenstat's form (SIAM J. Sci. Stat. Comput. 2, 1981) keeps s = (D + L)^-1 r in
 * place of the residual r. For a direction p, with w = (D + U)^-1 D p,
 *
 *   (D + L)^-1 A w = w + v,   v = (D + L)^-1 D (p - w),
 *
 * so an iteration takes two triangular solves, as much work as one sweep, and no product with A.
 *
 * Vectors are in single precision. The caller finds the true residual in double precision, and starts again. */
#include <math.h>

#include "base/simd.h"
#include "linalg/stress_sweeps.h"

/* Neighbours of a row: bit 0 = of its own component, bit 1 + n = of the other component number n. */
enum { SET_OWN = 1, SET_ALL = (2 << SK_STRESS_ACROSS) - 1 };

static inline __attribute__((always_inline)) int is_in_set(int set, int m)
{
    const int own = m < 2 || (m - 2) % SK_STRESS_OTHER < 2;
    return own ? set & SET_OWN : set >> (1 + (m - 2) / SK_STRESS_OTHER) & 1;
}

/* The neighbours of colour k that come before it in the order of the colours: of other components those of lower axes.
 */
static inline __attribute__((always_inline)) int set_before(int k)
{
    return (k & 1 ? SET_OWN : 0) | (k / 2 > 0 ? 2 : 0) | (k / 2 > 1 ? 4 : 0);
}

/* Solves rows of a triangle: out = in - less - inverse x sum of the set's neighbours in `out`. The lower triangle has
 * something to take off. */
typedef struct triangle {
    const sk_stress_level *level;
    const sk_stress_packs *packs;
    const float *in, *less;
    float *out;
    int lower;
} triangle;

static inline __attribute__((always_inline)) lanes lanes_at(const float *values, int32_t i)
{
    return *(const lanes *)(const void *)(values + i);
}

static inline __attribute__((always_inline)) void solve_groups(const triangle *t, const colour_rows *rows, share mine,
                                                               int across_x, int odd, int set, int lower)
{
    const float inverse = 1.0f / rows->diagonal, *in = t->in, *less = t->less;
    float *out = t->out, shared[SK_STRESS_NEIGHBOURS];
    for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++)
        shared[m] = inverse * rows->shared[m];
    for (int32_t i = mine.first; i < mine.last; i += SK_STRESS_GROUP) {
        const int32_t *column = group_columns(t->level, &rows->colour, i);
        lanes sum = {0.0f};
        int beyond = SK_STRESS_NEIGHBOURS;
#pragma GCC unroll 16
        for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
            const int is_beyond = sk_stress_is_beyond(across_x, odd, m);
            if (is_in_set(set, m)) {
                lanes value = lanes_at(out, column[m]);
                if (is_beyond)
                    value[odd ? SK_STRESS_GROUP - 1 : 0] = out[column[beyond]];
                sum += shared[m] * value;
            }
            beyond += is_beyond;
        }
        lanes start = lanes_at(in, i);
        if (lower)
            start -= lanes_at(less, i);
        *(lanes *)(void *)(out + i) = start - sum;
    }
}

static inline __attribute__((always_inline)) void solve_row(const triangle *t, int32_t i, const float *coefficient,
                                                            const int32_t *column, float inverse, int set, int lower)
{
    float even = 0.0f, odd = 0.0f;
#pragma GCC unroll 16
    for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++)
        if (is_in_set(set, m)) {
            if (m & 1)
                odd += coefficient[m] * t->out[column[m]];
            else
                even += coefficient[m] * t->out[column[m]];
        }
    t->out[i] = t->in[i] - (lower ? t->less[i] : 0.0f) - inverse * (even + odd);
}

/* values[column] in each lane, by single loads: where processors guard against leaks of data, an instruction that
 * gathers eight values takes three times as long as eight loads. */
static inline __attribute__((always_inline)) f8 values_at(const float *values, const int32_t column[SK_STRESS_PACK])
{
    _Static_assert((int)SK_STRESS_PACK == 8, "a pack is a vector");
    return (f8){values[column[0]], values[column[1]], values[column[2]], values[column[3]],
                values[column[4]], values[column[5]], values[column[6]], values[column[7]]};
}

/* A thread's rows of colour k outside groups. */
static inline __attribute__((always_inline)) void solve_packs(const triangle *t, int k, sk_team team, int set,
                                                              int lower)
{
    const int32_t singles = t->level->colour[k].singles, last = t->level->colour[k].last;
    const share mine = share_of(t->packs->first[k], t->packs->first[k + 1], 1, team);
    const float *in = t->in, *less = t->less;
    float *out = t->out;
    for (int32_t pack = mine.first; pack < mine.last; pack++) {
        const int32_t i = singles + (pack - t->packs->first[k]) * SK_STRESS_PACK;
        f8 sum[2] = {f8_splat(0.0f), f8_splat(0.0f)};
#pragma GCC unroll 16
        for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++)
            if (is_in_set(set, m))
                sum[m & 1] += f8_load(t->packs->ratio[pack][m]) * values_at(out, t->packs->column[pack][m]);
        f8 start = f8_load(in + i);
        if (lower)
            start -= f8_load(less + i);
        start -= sum[0] + sum[1];
        memcpy(out + i, &start, (size_t)(i + SK_STRESS_PACK <= last ? SK_STRESS_PACK : last - i) * sizeof *out);
    }
}

/* A thread's rows of colour k. Uneven rows in groups are done once more. */
static inline __attribute__((always_inline)) void
solve_set(const triangle *t, const colour_rows *rows, const colour_share *mine, int k, sk_team team, int set, int lower)
{
    const sk_stress_level *level = t->level;
    solve_groups(t, rows, mine->groups[0], k / 2 == 0, 0, set, lower);
    solve_groups(t, rows, mine->groups[1], k / 2 == 0, 1, set, lower);
    for (int kind = 0; kind < 2; kind++) {
        const share all = {rows->colour.own_first, t->packs->grouped[k]};
        const share own = team.threads > 1 ? mine->own[kind] : kind ? (share){0, 0} : all;
        for (int32_t n = own.first; n < own.last; n++) {
            const size_t entry = (size_t)n * SK_STRESS_NEIGHBOURS;
            const int32_t i = level->own_row[n];
            solve_row(t, i, level->coefficient + entry, level->own_column + entry, level->inverse[i], set, lower);
        }
    }
    solve_packs(t, k, team, set, lower);
}

/* Rows without neighbours in the triangle. */
static void copy_rows(const triangle *t, share mine)
{
    float *restrict out = t->out;
    if (t->lower)
        for (int32_t i = mine.first; i < mine.last; i++)
            out[i] = t->in[i] - t->less[i];
    else
        memcpy(out + mine.first, t->in + mine.first, (size_t)(mine.last - mine.first) * sizeof *out);
}

/* A thread's rows of colour k, a constant. */
static inline __attribute__((always_inline)) void solve_colour(const triangle *t, const colour_rows *rows,
                                                               const colour_share *mine, int k, sk_team team)
{
    if (t->lower)
        solve_set(t, rows, mine, k, team, set_before(k), 1);
    else
        solve_set(t, rows, mine, k, team, SET_ALL & ~set_before(k), 0);
}

static void solve_triangle(const triangle *t, sk_team team)
{
    for (int n = 0; n < SK_STRESS_COLOURS; n++) {
        const int k = t->lower ? n : SK_STRESS_COLOURS - 1 - n;
        const colour_rows rows = rows_of_colour(t->level, k);
        const colour_share mine = share_colour(t->level, &rows.colour, team);

        /* The compiler resolves the set of each colour. */
        if (n == 0)
            copy_rows(t, share_of(rows.colour.first, rows.colour.last, 1, team));
        else if (k == 0)
            solve_set(t, &rows, &mine, 0, team, SET_ALL, 0);
        else if (k == 1)
            solve_colour(t, &rows, &mine, 1, team);
        else if (k == SK_STRESS_COLOURS - 1)
            solve_set(t, &rows, &mine, SK_STRESS_COLOURS - 1, team, SET_ALL, 1);
        else if (k == 2)
            solve_colour(t, &rows, &mine, 2, team);
#if SELKIE_DIM == 3
        else if (k == 3)
            solve_colour(t, &rows, &mine, 3, team);
        else if (k == 4)
            solve_colour(t, &rows, &mine, 4, team);
#endif
        sk_team_wait(team);
    }
}

/* One row of a pack. Rows beyond the colour's last have no neighbours. */
static void pack_row(const sk_stress_level *level, int k, int32_t row, int lane,
                     int32_t column[SK_STRESS_NEIGHBOURS][SK_STRESS_PACK],
                     float ratio[SK_STRESS_NEIGHBOURS][SK_STRESS_PACK])
{
    const sk_stress_colour *colour = &level->colour[k];
    const int32_t *from = NULL;
    const float *coefficient = level->shared[k / 2];
    if (row < colour->uneven) {
        from = single_columns(level, colour, row);
    } else if (row < colour->last) {
        /* The last of the colour's own rows. */
        const size_t entry = (size_t)(colour->own_last - (colour->last - row)) * SK_STRESS_NEIGHBOURS;
        from = level->own_column + entry;
        coefficient = level->coefficient + entry;
    }
    for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
        column[m][lane] = from ? from[m] : level->count;
        ratio[m][lane] = from ? coefficient[m] * level->inverse[row] : 0.0f;
    }
}

selkie_code SK_DIM(sk_stress_pack)(const sk_stress_level *level, const sk_stress_options *options,
                                   sk_stress_packs *packs, selkie_error *error)
{
    int32_t count = 0;
    for (int k = 0; k < SK_STRESS_COLOURS; k++) {
        const sk_stress_colour *colour = &level->colour[k];
        packs->first[k] = count;
        packs->grouped[k] = colour->own_last - (colour->last - colour->uneven);
        count += (colour->last - colour->singles + SK_STRESS_PACK - 1) / SK_STRESS_PACK;
    }
    packs->first[SK_STRESS_COLOURS] = count;
    SK_STRESS_TAKE(options->arena, packs->column, count);
    SK_STRESS_TAKE(options->arena, packs->ratio, count);
    for (int k = 0; k < SK_STRESS_COLOURS; k++) {
        const int32_t first = packs->first[k], singles = level->colour[k].singles;
#pragma omp parallel for num_threads(options->threads) schedule(static)
        for (int32_t pack = first; pack < packs->first[k + 1]; pack++)
            for (int n = 0; n < SK_STRESS_PACK; n++)
                pack_row(level, k, singles + (pack - first) * SK_STRESS_PACK + n, n, packs->column[pack],
                         packs->ratio[pack]);
    }
    return SELKIE_OK;
}

/* Vectors of the iteration: see above. x is the solution. */
typedef struct soft_vectors {
    float *s, *p, *w, *v, *x;
    const float *diagonal;
} soft_vectors;

/* Sums over a chunk run in single precision over a few values, then in double precision. A sum of 16 chains waits less
 * than one of 8. */
enum { WIDE = 2 * CHAINS, RUN = 16 * WIDE };
typedef float floats __attribute__((vector_size(4 * WIDE), aligned(4), may_alias));
typedef float half_floats __attribute__((vector_size(4 * CHAINS)));

static inline __attribute__((always_inline)) chains double_of(floats sum)
{
    const half_floats low = __builtin_shufflevector(sum, sum, 0, 1, 2, 3, 4, 5, 6, 7);
    const half_floats high = __builtin_shufflevector(sum, sum, 8, 9, 10, 11, 12, 13, 14, 15);
    return __builtin_convertvector(low + high, chains);
}

static inline __attribute__((always_inline)) floats floats_at(const float *values, int32_t i)
{
    return *(const floats *)(const void *)(values + i);
}

/* The curvature along w: p D (w + v). */
static double find_curvature(const solve_work *work, const soft_vectors *v)
{
    for (int32_t c = work->chunks.first; c < work->chunks.last; c++) {
        const share rows = rows_of_chunk(work, c);
        chains sums = {0.0};
        int32_t i = rows.first;
        while (i + WIDE <= rows.last) {
            floats sum = {0.0f};
            for (const int32_t end = i + RUN; i < end && i + WIDE <= rows.last; i += WIDE)
                sum += floats_at(v->diagonal, i) * floats_at(v->p, i) * (floats_at(v->w, i) + floats_at(v->v, i));
            sums += double_of(sum);
        }
        double sum = add_chains(sums);
        for (; i < rows.last; i++)
            sum += (double)(v->diagonal[i] * v->p[i] * (v->w[i] + v->v[i]));
        work->v->partial[0][c] = sum;
    }
    return add_chunks(work, work->v->partial[0]);
}

/* x += alpha w, s -= alpha (w + v). Returns s D s. */
static double step_along(const solve_work *work, const soft_vectors *v, float alpha)
{
    for (int32_t c = work->chunks.first; c < work->chunks.last; c++) {
        const share rows = rows_of_chunk(work, c);
        chains sums = {0.0};
        int32_t i = rows.first;
        while (i + WIDE <= rows.last) {
            floats sum = {0.0f};
            for (const int32_t end = i + RUN; i < end && i + WIDE <= rows.last; i += WIDE) {
                const floats w = floats_at(v->w, i), s = floats_at(v->s, i) - alpha * (w + floats_at(v->v, i));
                *(floats *)(void *)(v->x + i) += alpha * w;
                *(floats *)(void *)(v->s + i) = s;
                sum += floats_at(v->diagonal, i) * s * s;
            }
            sums += double_of(sum);
        }
        double sum = add_chains(sums);
        for (; i < rows.last; i++) {
            v->x[i] += alpha * v->w[i];
            v->s[i] -= alpha * (v->w[i] + v->v[i]);
            sum += (double)(v->diagonal[i] * v->s[i] * v->s[i]);
        }
        work->v->partial[1][c] = sum;
    }
    return add_chunks(work, work->v->partial[1]);
}

/* p = s + beta p. */
static void turn(const solve_work *work, const soft_vectors *v, float beta)
{
    for (int32_t c = work->chunks.first; c < work->chunks.last; c++) {
        const share rows = rows_of_chunk(work, c);
        float *restrict p = v->p;
        const float *s = v->s;
        for (int32_t i = rows.first; i < rows.last; i++)
            p[i] = s[i] + beta * p[i];
    }
    sk_team_wait(work->team);
}

int SK_DIM(sk_stress_soften)(const solve_work *work, double scale, double reduction, int max_iterations)
{
    const sk_stress_level *level = &work->hierarchy->levels[0];
    float *const *soft = work->v->soft;
    const soft_vectors v = {soft[0], soft[1], level->x, soft[2], soft[3], level->diagonal};
    const sk_stress_packs *packs = &work->v->packs;
    const triangle upper = {level, packs, v.p, NULL, v.w, 0}, lower = {level, packs, v.p, v.w, v.v, 1};

    /* s = (D + L)^-1 r, from p = D^-1 r and w = 0. */
    for (int32_t c = work->chunks.first; c < work->chunks.last; c++) {
        const share rows = rows_of_chunk(work, c);
        for (int32_t i = rows.first; i < rows.last; i++) {
            v.p[i] = level->inverse[i] * level->b[i];
            v.w[i] = v.x[i] = 0.0f;
        }
    }
    sk_team_wait(work->team);
    solve_triangle(&lower, work->team);
    for (int32_t c = work->chunks.first; c < work->chunks.last; c++) {
        const share rows = rows_of_chunk(work, c);
        memcpy(v.s + rows.first, v.v + rows.first, (size_t)(rows.last - rows.first) * sizeof *v.s);
    }
    double energy = step_along(work, &v, 0.0f);
    const double enough = reduction * reduction * energy;
    turn(work, &v, 0.0f);

    int iteration = 0;
    while (iteration < max_iterations && energy > enough) {
        solve_triangle(&upper, work->team);
        solve_triangle(&lower, work->team);
        const double curvature = find_curvature(work, &v), before = energy;
        if (!(curvature > 0.0) || !isfinite(curvature))
            break;
        energy = step_along(work, &v, (float)(energy / curvature));
        turn(work, &v, (float)(energy / before));
        iteration++;
    }
    for (int32_t c = work->chunks.first; c < work->chunks.last; c++) {
        const share rows = rows_of_chunk(work, c);
        for (int32_t i = rows.first; i < rows.last; i++)
            work->v->p[i] = scale * (double)v.x[i];
    }
    sk_team_wait(work->team);
    return iteration;
}
