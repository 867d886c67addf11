/* Conjugate gradients of the stress solver, and its input and output: see stress.h. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "base/simd.h"
#include "base/timer.h"
#include "linalg/stress_strips.h"

/* --- Conjugate gradients --- */

static double dot(const solve_work *w, const double *a, const double *b, double *partial)
{
    for (int32_t c = w->chunks.first; c < w->chunks.last; c++) {
        const share rows = rows_of_chunk(w, c);
        chains sums = {0.0};
        int32_t i = rows.first;
        for (; i + CHAINS <= rows.last; i += CHAINS)
            sums += chains_at(a, i) * chains_at(b, i);
        double sum = add_chains(sums);
        for (; i < rows.last; i++)
            sum += a[i] * b[i];
        partial[c] = sum;
    }
    return add_chunks(w, partial);
}

static inline __attribute__((always_inline)) double double_sum(const float *coefficient, const int32_t *column,
                                                               const double *x)
{
    double even = 0.0, odd = 0.0;
#pragma GCC unroll 8
    for (int m = 0; m < SK_STRESS_NEIGHBOURS; m += 2) {
        even += (double)coefficient[m] * x[column[m]];
        odd += (double)coefficient[m + 1] * x[column[m + 1]];
    }
    return even + odd;
}

static inline __attribute__((always_inline)) double_lanes double_group_sum(const float *shared, const int32_t *column,
                                                                           const double *x, int across_x, int odd)
{
    double_lanes sum[2] = {{0.0}, {0.0}};
    int beyond = SK_STRESS_NEIGHBOURS;
#pragma GCC unroll 16
    for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
        double_lanes value = *(const double_lanes *)(const void *)(x + column[m]);
        if (sk_stress_is_beyond(across_x, odd, m))
            value[odd ? SK_STRESS_GROUP - 1 : 0] = x[column[beyond++]];
        sum[m & 1] += (double)shared[m] * value;
    }
    return sum[0] + sum[1];
}

/* result = A x in the groups [begin, end) of a colour. */
static inline __attribute__((always_inline)) void multiply_groups(const sk_stress_level *level, const colour_rows *rows,
                                                                  int32_t begin, int32_t end, int across_x, int odd,
                                                                  const double *x, double *result)
{
    float shared[SK_STRESS_NEIGHBOURS];
    memcpy(shared, rows->shared, sizeof shared);
    for (int32_t i = begin; i < end; i += SK_STRESS_GROUP) {
        const int32_t *column = group_columns(level, &rows->colour, i);
        *(double_lanes *)(void *)(result + i) = (double)rows->diagonal * *(const double_lanes *)(const void *)(x + i) +
                                                double_group_sum(shared, column, x, across_x, odd);
    }
}

static void multiply_colour(const sk_stress_level *level, const colour_rows *rows, const double *x, double *result,
                            sk_team team)
{
    const sk_stress_colour *colour = &rows->colour;
    const colour_share mine = share_colour(level, colour, team);
    const share even = mine.groups[0], odd = mine.groups[1];
    if (rows->across_x) {
        multiply_groups(level, rows, even.first, even.last, 1, 0, x, result);
        multiply_groups(level, rows, odd.first, odd.last, 1, 1, x, result);
    } else {
        multiply_groups(level, rows, even.first, even.last, 0, 0, x, result);
        multiply_groups(level, rows, odd.first, odd.last, 0, 1, x, result);
    }
    for (int32_t i = mine.singles.first; i < mine.singles.last; i++)
        result[i] = (double)rows->diagonal * x[i] + double_sum(rows->shared, single_columns(level, colour, i), x);
    for (int kind = 0; kind < 3; kind++)
        for (int32_t n = mine.own[kind].first; n < mine.own[kind].last; n++) {
            const size_t entry = (size_t)n * SK_STRESS_NEIGHBOURS;
            const int32_t i = level->own_row[n];
            result[i] = (double)level->diagonal[i] * x[i] +
                        double_sum(level->coefficient + entry, level->own_column + entry, x);
        }
}

static void multiply(const solve_work *w, const double *x, double *result)
{
    const sk_stress_level *level = &w->hierarchy->levels[0];
    for (int k = 0; k < SK_STRESS_COLOURS; k++) {
        const colour_rows rows = rows_of_colour(level, k);
        multiply_colour(level, &rows, x, result, w->team);
    }
    sk_team_wait(w->team);
}

/* One cycle for r, which the level holds over `scale`: in single precision neither large nor small values are lost.
 * Returns the product of r and the result, which is the level's x times `scale`; in `old` that of q and the result. */
static double precondition(const solve_work *w, double scale, double *old)
{
    const sk_stress_level *level = &w->hierarchy->levels[0];
    SK_DIM(sk_stress_cycle)(w->hierarchy, 0, w->team);
    for (int32_t c = w->chunks.first; c < w->chunks.last; c++) {
        const share rows = rows_of_chunk(w, c);
        chains sums = {0.0}, old_sums = {0.0};
        int32_t i = rows.first;
        for (; i + CHAINS <= rows.last; i += CHAINS) {
            typedef float floats __attribute__((vector_size(4 * CHAINS), aligned(4), may_alias));
            const chains x = __builtin_convertvector(*(const floats *)(const void *)(level->x + i), chains);
            sums += chains_at(w->v->r, i) * x;
            old_sums += chains_at(w->v->q, i) * x;
        }
        double sum = add_chains(sums), old_sum = add_chains(old_sums);
        for (; i < rows.last; i++) {
            sum += w->v->r[i] * (double)level->x[i];
            old_sum += w->v->q[i] * (double)level->x[i];
        }
        w->v->partial[0][c] = sum;
        w->v->partial[3][c] = old_sum;
    }
    const double product = add_chunks(w, w->v->partial[0]);
    *old = 0.0;
    for (int32_t c = 0; c < (level->count + CHUNK - 1) / CHUNK; c++)
        *old += w->v->partial[3][c];
    *old *= scale;
    return scale * product;
}

/* x += alpha p, r -= alpha q. Hands r over `scale` to the level. Returns the size of r. */
static double advance(const solve_work *w, double alpha, const double *p, double *x, double scale)
{
    const sk_stress_level *level = &w->hierarchy->levels[0];
    double *r = w->v->r;
    const double *q = w->v->q, up = scale > 0.0 ? 1.0 / scale : 0.0;
    for (int32_t c = w->chunks.first; c < w->chunks.last; c++) {
        const share rows = rows_of_chunk(w, c);
        for (int32_t i = rows.first; i < rows.last && p; i++)
            x[i] += alpha * p[i];
        chains sums = {0.0};
        int32_t i = rows.first;
        for (; i + CHAINS <= rows.last; i += CHAINS) {
            const chains rest = chains_at(r, i) - alpha * chains_at(q, i);
            *(chains *)(void *)(r + i) = rest;
            sums += rest * rest;
        }
        double sum = add_chains(sums);
        for (; i < rows.last; i++) {
            r[i] -= alpha * q[i];
            sum += r[i] * r[i];
        }
        for (i = rows.first; i < rows.last; i++)
            level->b[i] = (float)(r[i] * up);
        memset(level->x + rows.first, 0, (size_t)(rows.last - rows.first) * sizeof *level->x);
        w->v->partial[1][c] = sum;
    }
    return sqrt(add_chunks(w, w->v->partial[1]));
}

/* Solves for x to a tolerance. Unless it is the first pass, r holds the residual of x. All threads take the same
 * decisions; one of them reports. */
static void iterate(const solve_work *w, int max_iterations, double tolerance, int first, sk_stress_report *report)
{
    const vectors *v = w->v;
    const float *z = w->hierarchy->levels[0].x;
    const double size = sqrt(dot(w, v->right, v->right, v->partial[2]));
    if (first)
        multiply(w, v->x, v->q);
    double scale = size, norm = advance(w, first ? 1.0 : 0.0, NULL, v->x, scale), energy = 0.0, alpha = 0.0;
    int iteration = 0;
    for (;; iteration++) {
        const double residual = size > 0.0 ? norm / size : 0.0;
        const int converged = residual <= tolerance;
        if (w->team.thread == 0) {
            report->residual = residual;
            report->converged = converged;
            report->iterations = iteration > report->iterations ? iteration : report->iterations;
        }
        if (converged || iteration >= max_iterations || !isfinite(norm))
            return;

        /* The cycle is not the same linear function each time: rounding in single precision matters for stiff liquid.
         * This beta, of Polak and Ribiere, makes up for it: r fell by alpha q. */
        double old;
        const double now = precondition(w, scale, &old), beta = energy > 0.0 ? -alpha * old / energy : 0.0;
        const share mine = share_of(0, w->hierarchy->levels[0].count, CHUNK, w->team);
        for (int32_t i = mine.first; i < mine.last; i++)
            v->p[i] = scale * (double)z[i] + beta * v->p[i];
        sk_team_wait(w->team);
        multiply(w, v->p, v->q);
        alpha = now / dot(w, v->p, v->q, v->partial[2]);
        scale = norm;
        norm = advance(w, alpha, v->p, v->x, scale);
        energy = now;
    }
}

static void solve(const sk_stress_hierarchy *hierarchy, const vectors *v, const sk_stress_options *options,
                  double tolerance, int first, sk_stress_report *report)
{
    const int32_t count = hierarchy->levels[0].count;
    const int threads = count > SK_STRESS_FEW ? hierarchy->threads : 1;
    sk_barrier barrier = {0, 0};
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        solve_work w = {hierarchy, v, {omp_get_thread_num(), omp_get_num_threads(), &barrier}, {0, 0}};
        w.chunks = share_of(0, (count + CHUNK - 1) / CHUNK, 1, w.team);
        iterate(&w, options->max_iterations, tolerance, first, report);
    }
}

/* --- In and out --- */

/* Sum of coefficient x given velocity of the neighbours of a face. */
static double given_beside(const sk_stress_system *system, const sk_stress_level *level, int block, const int at[3],
                           int a, int32_t row)
{
    size_t places[SK_STRESS_NEIGHBOURS];
    const float *coefficient = sk_stress_coefficients(level, sk_stress_colour_of(level, row), row);
    double sum = 0.0;
    sk_stress_places(level->neighbours, block, at, a, places);
    for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
        const int component = sk_stress_component(a, m);
        if (system->fixed[component][places[m]])
            sum += (double)coefficient[m] * (double)system->velocity[component][places[m]];
    }
    return sum;
}

/* The right side of the rows beside faces with a given velocity. Where all of them are at rest there is nothing to do.
 */
static void load_given(const sk_stress_system *system, const sk_stress_level *level, int block, const vectors *v)
{
    for (int r = 0; r < SK_STRESS_ROWS; r++) {
        const uint32_t around = sk_stress_given_around(level, block, r);
        int at[3];
        sk_stress_cell(r * SK_BLOCK_N, at);
        for (int a = 0; a < SELKIE_DIM; a++)
            for (uint32_t left = level->bits[block][a][r].unknown & around; left; left &= left - 1) {
                at[0] = sk_stress_lowest(left);
                const size_t here = (size_t)block * SK_BLOCK_CELLS + (size_t)(r * SK_BLOCK_N + at[0]);
                const int32_t number = level->index[a][here];
                v->right[number] -= given_beside(system, level, block, at, a, number);
                v->r[number] = v->right[number];
            }
    }
}

/* The right side of a face into `right` and r, the start into x. Faces without mass have no velocity yet: see
 * start_massless(). */
static inline __attribute__((always_inline)) void load_face(const vectors *v, int32_t number, float mass, float target,
                                                            float start)
{
    const double right = mass > 0.0f ? (double)mass * (double)target : 0.0;
    v->right[number] = v->r[number] = right;
    v->x[number] = mass > 0.0f && start == start ? (double)start : 0.0;
}

/* A half row whose faces are all unknowns: their numbers are consecutive. */
static void load_half(const vectors *v, int32_t number, const float *mass, const float *target, const float *start)
{
    double *restrict right = v->right + number, *restrict r = v->r + number, *restrict x = v->x + number;
    for (int n = 0; n < SK_STRESS_GROUP; n++) {
        const float one = mass[2 * n], first = start[2 * n];
        right[n] = one > 0.0f ? (double)one * (double)target[2 * n] : 0.0;
        r[n] = right[n];
        x[n] = one > 0.0f && first == first ? (double)first : 0.0;
    }
}

static void load_block(const sk_stress_system *system, const sk_stress_level *level, int block, const vectors *v)
{
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int r = 0; r < SK_STRESS_ROWS; r++) {
            const size_t here = (size_t)block * SK_BLOCK_CELLS + (size_t)(r * SK_BLOCK_N);
            const float *mass = system->mass[a] + here, *target = system->target[a] + here;
            const float *start = system->velocity[a] + here;
            const int32_t *index = level->index[a] + here;
            for (int half = 0; half < 2; half++) {
                const uint32_t mask = SK_STRESS_HALF << half;
                uint32_t left = level->bits[block][a][r].unknown & mask;
                if (left == mask) {
                    load_half(v, index[half], mass + half, target + half, start + half);
                    continue;
                }
                for (; left; left &= left - 1) {
                    const int n = sk_stress_lowest(left);
                    load_face(v, index[n], mass[n], target[n], start[n]);
                }
            }
        }
    if (level->near_moving[block])
        load_given(system, level, block, v);
}

/* Faces without mass follow the stress of the faces beside them, in a few sweeps over their rows. They do not start
 * from their last velocity: a droplet of few particles has rows with nearly nothing but each other, whose common motion
 * leaves no residual to speak of. It would go from step to step and grow. */
static void start_massless(const sk_stress_level *level, const vectors *v)
{
    const int32_t rows = level->colour[SK_STRESS_COLOURS - 1].own_last;
    for (int pass = 0; pass < SK_STRESS_MASSLESS_SWEEPS; pass++)
        for (int32_t m = 0; m < rows; m++) {
            const int32_t n = pass % 2 ? rows - 1 - m : m, i = level->own_row[n];
            const size_t entry = (size_t)n * SK_STRESS_NEIGHBOURS;
            if (level->own_mass[n] > 0.0f)
                continue;
            const double sum = double_sum(level->coefficient + entry, level->own_column + entry, v->x);
            v->x[i] = (v->right[i] - sum) / (double)level->diagonal[i];
        }
}

/* Takes what the sources of the cells beside them gained off the right side and the residual of a block's rows. */
static void add_source(const sk_stress_level *level, const float *gain, int block, const vectors *v)
{
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int r = 0; r < SK_STRESS_ROWS; r++) {
            const size_t here = (size_t)block * SK_BLOCK_CELLS + (size_t)(r * SK_BLOCK_N);
            const uint32_t unknown = level->bits[block][a][r].unknown;
            const int32_t *index = level->index[a] + here;
            float change[SK_BLOCK_N];
            if (!unknown)
                continue;
            sk_stress_gain_change(level, gain, block, r, a, change);
            for (int half = 0; half < 2; half++) {
                const uint32_t mask = SK_STRESS_HALF << half;
                uint32_t left = unknown & mask;
                if (left == mask) {
                    double *restrict right = v->right + index[half], *restrict rest = v->r + index[half];
                    for (int n = 0; n < SK_STRESS_GROUP; n++) {
                        right[n] -= (double)change[2 * n + half];
                        rest[n] -= (double)change[2 * n + half];
                    }
                    continue;
                }
                for (; left; left &= left - 1) {
                    const int n = sk_stress_lowest(left);
                    v->right[index[n]] -= (double)change[n];
                    v->r[index[n]] -= (double)change[n];
                }
            }
        }
}

static void store_block(const sk_stress_system *system, const sk_stress_level *level, int block, const double *x)
{
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int r = 0; r < SK_STRESS_ROWS; r++) {
            const size_t here = (size_t)block * SK_BLOCK_CELLS + (size_t)(r * SK_BLOCK_N);
            const uint32_t unknown = level->bits[block][a][r].unknown;
            const int32_t *index = level->index[a] + here;
            float *restrict velocity = system->velocity[a] + here;
            for (int half = 0; half < 2 && unknown; half++) {
                const uint32_t mask = SK_STRESS_HALF << half;
                uint32_t left = unknown & mask;
                const double *restrict from = x + index[half];
                for (int n = 0; n < SK_STRESS_GROUP && left == mask; n++)
                    velocity[2 * n + half] = (float)from[n];
                for (left = left == mask ? 0 : left; left; left &= left - 1)
                    velocity[sk_stress_lowest(left)] = (float)x[index[sk_stress_lowest(left)]];
            }
            for (int n = 0; system->solved[a] && n < SK_BLOCK_N; n += 8) {
                const i8 bit = {1, 2, 4, 8, 16, 32, 64, 128};
                i8_to_bytes(system->solved[a] + here + (size_t)n, (((int32_t)(unknown >> n) & bit) != 0) & 1);
            }
        }
}

/* The undivided difference of the velocities of a cell's faces across axis d. Unknown ones count as 0. */
static float difference_at(const sk_stress_system *system, const sk_stress_level *level, int block, int c, int d)
{
    int at[3] = {0, 0, 0};
    for (int e = 0; e < SELKIE_DIM; e++)
        at[e] = (c >> (e * SK_BLOCK_LOG) & SK_BLOCK_MASK) + (e == d);
    const float difference = system->velocity[d][sk_stress_place(level->neighbours, block, at)] -
                             system->velocity[d][(size_t)block * SK_BLOCK_CELLS + (size_t)c];
    return difference == difference ? difference : 0.0f;
}

/* Minus the normal stress, q - b div u - 2 n D_d u_d, in the cells of a block. */
static void find_push(const sk_stress_system *system, const sk_stress_level *level, int block, const float *source)
{
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        const size_t here = (size_t)block * SK_BLOCK_CELLS + (size_t)c;
        const int stressed = system->normal[here] > 0.0f;
        float difference[3] = {0.0f, 0.0f, 0.0f}, divergence = 0.0f;
        for (int d = 0; d < SELKIE_DIM && stressed; d++) {
            difference[d] = difference_at(system, level, block, c, d);
            divergence += difference[d];
        }
        const float even =
            (source ? source[here] : 0.0f) - (system->bulk && stressed ? system->bulk[here] * divergence : 0.0f);
        for (int d = 0; d < SELKIE_DIM; d++)
            system->push[d][here] = even - 2.0f * system->normal[here] * difference[d];
    }
}

/* Lowers q by b div u in the cells of a block. The gain is minus that. */
static void lower_source(const sk_stress_system *system, const sk_stress_level *level, int block, float *source,
                         float *gain)
{
    for (int r = 0; r < SK_STRESS_ROWS; r++) {
        const size_t here = (size_t)block * SK_BLOCK_CELLS + (size_t)(r * SK_BLOCK_N);
        const float *bulk = system->bulk + here;
        float divergence[SK_BLOCK_N] = {0.0f}, most = 0.0f;
        for (int n = 0; n < SK_BLOCK_N; n++)
            most += bulk[n];
        if (!(most > 0.0f))
            continue;
        for (int d = 0; d < SELKIE_DIM; d++) {
            const float *velocity = system->velocity[d] + here;
            int at[3];
            sk_stress_cell(r * SK_BLOCK_N, at);
            at[d] += d == 0 ? SK_BLOCK_N : 1;
            const float *after = system->velocity[d] + sk_stress_place(level->neighbours, block, at);
            for (int n = 0; n < SK_BLOCK_N; n++)
                divergence[n] += (d == 0 ? n + 1 < SK_BLOCK_N ? velocity[n + 1] : *after : after[n]) - velocity[n];
        }
        for (int n = 0; n < SK_BLOCK_N; n++) {
            const int counts = (bulk[n] > 0.0f) & (divergence[n] == divergence[n]);
            const float more = counts ? -bulk[n] * divergence[n] : 0.0f;
            gain[here + (size_t)n] = more;
            source[here + (size_t)n] += more;
        }
    }
}

/* The source of each cell, and what it gained in the last pass; NULL if there is but one. */
typedef struct sources {
    float *source, *gain;
} sources;

static selkie_code take_sources(const sk_stress_system *system, const sk_stress_options *options, sources *of,
                                selkie_error *error)
{
    const size_t values = (size_t)system->block_count * SK_BLOCK_CELLS;
    of->source = of->gain = NULL;
    if (options->passes <= 1 || !system->bulk)
        return SELKIE_OK;
    SK_TRY(sk_arena_take(options->arena, values * sizeof(float), "viscosity", (void **)&of->source, error));
    SK_TRY(sk_arena_take(options->arena, values * sizeof(float), "viscosity", (void **)&of->gain, error));
    memset(of->source, 0, values * sizeof(float));
    memset(of->gain, 0, values * sizeof(float));
    return SELKIE_OK;
}

static void lower_sources(const sk_stress_system *system, const sk_stress_options *options,
                          const sk_stress_level *level, const sources *of)
{
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
    for (int b = 1; b < system->block_count; b++)
        lower_source(system, level, b, of->source, of->gain);
}

static void find_pushes(const sk_stress_system *system, const sk_stress_options *options, const sk_stress_level *level,
                        const sources *of)
{
    if (!system->push[0])
        return;
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
    for (int b = 1; b < system->block_count; b++)
        find_push(system, level, b, of->source);
}

/* A pass that ends before it has converged, or without a number: nothing can follow, unless it is the last. */
static int is_lost(const sk_stress_report *report, int is_last)
{
    return !isfinite(report->residual) || (!report->converged && !is_last);
}

static selkie_code solve_strips(const sk_stress_system *system, const sk_stress_options *options,
                                const sk_stress_strips *strips, sk_stress_report *report, selkie_error *error)
{
    sources of;
    SK_TRY(take_sources(system, options, &of, error));
    const int passes = of.source ? options->passes : 1;
    SK_DIM(sk_stress_load_strips)(system, options, strips);
    for (int pass = 0; pass < passes; pass++) {
        const int is_last = pass + 1 == passes;
        if (pass > 0) {
            lower_sources(system, options, strips->level, &of);
            SK_DIM(sk_stress_add_to_strips)(options, strips, of.gain);
        }
        SK_DIM(sk_stress_soften)(strips, options, sk_stress_tolerance(options->tolerance, is_last), report);
        if (is_lost(report, is_last))
            break;
        if (is_last)
            SK_TRY(SK_DIM(sk_stress_keep_momenta)(system, options, strips->level, strips, strips->solution, error));
        SK_DIM(sk_stress_store_strips)(system, options, strips);
    }
    find_pushes(system, options, strips->level, &of);
    return SELKIE_OK;
}

static selkie_code take_vectors(const sk_stress_options *options, const sk_stress_level *level, vectors *v,
                                selkie_error *error)
{
    double **pieces[5] = {&v->x, &v->r, &v->p, &v->q, &v->right};
    for (int n = 0; n < 5; n++) {
        SK_STRESS_TAKE(options->arena, *pieces[n], (size_t)level->count + 2);
        *(*pieces[n])++ = 0.0;
        (*pieces[n])[level->count] = 0.0;
    }
    memset(v->p, 0, (size_t)level->count * sizeof *v->p);
    for (int n = 0; n < 4; n++)
        SK_STRESS_TAKE(options->arena, v->partial[n], (size_t)level->count / CHUNK + 1);
    return SELKIE_OK;
}

static selkie_code solve_levels(const sk_stress_system *system, const sk_stress_options *options,
                                const sk_stress_hierarchy *hierarchy, sk_stress_report *report, selkie_error *error)
{
    const sk_stress_level *level = &hierarchy->levels[0];
    vectors v;
    sources of;
    SK_TRY(take_vectors(options, level, &v, error));
    SK_TRY(take_sources(system, options, &of, error));
    const int passes = of.source ? options->passes : 1;
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
    for (int b = 1; b < system->block_count; b++)
        load_block(system, level, b, &v);
    start_massless(level, &v);
    for (int pass = 0; pass < passes; pass++) {
        const int is_last = pass + 1 == passes;
        if (pass > 0) {
            lower_sources(system, options, level, &of);
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
            for (int b = 1; b < system->block_count; b++)
                add_source(level, of.gain, b, &v);
        }
        solve(hierarchy, &v, options, sk_stress_tolerance(options->tolerance, is_last), pass == 0, report);
        if (is_lost(report, is_last))
            break;
        if (is_last)
            SK_TRY(SK_DIM(sk_stress_keep_momenta)(system, options, level, NULL, v.x, error));
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
        for (int b = 1; b < system->block_count; b++)
            store_block(system, level, b, v.x);
    }
    find_pushes(system, options, level, &of);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_stress_solve)(const sk_stress_system *system, const sk_stress_options *wanted,
                                    sk_stress_report *report, selkie_error *error)
{
    /* A loop over few blocks takes less time than a team of threads takes to begin it. */
    sk_stress_options few = *wanted;
    const sk_stress_options *options = &few;
    if ((size_t)system->block_count * SK_BLOCK_CELLS <= SK_STRESS_FEW)
        few.threads = 1;

    sk_stress_hierarchy hierarchy;
    sk_stress_strips strips;
    double begin = sk_wall_ms();
    memset(report, 0, sizeof *report);
    SK_TRY(SK_DIM(sk_stress_begin)(system, options, &hierarchy, &report->unknowns, &report->sweeps, error));
    if (report->sweeps)
        SK_TRY(SK_DIM(sk_stress_make_strips)(&hierarchy.levels[0], options, &strips, &report->sweeps, error));
    if (!report->sweeps)
        SK_TRY(SK_DIM(sk_stress_make_levels)(system, options, &hierarchy, error));
    report->levels = report->sweeps ? 1 : hierarchy.count;
    report->setup_ms = sk_wall_ms() - begin;
    begin = sk_wall_ms();
    if (report->sweeps)
        SK_TRY(solve_strips(system, options, &strips, report, error));
    else
        SK_TRY(solve_levels(system, options, &hierarchy, report, error));
    report->solve_ms = sk_wall_ms() - begin;
    return SELKIE_OK;
}
