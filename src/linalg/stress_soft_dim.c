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
 * Vectors are in single precision. The true residual is found in double precision, and the iteration starts again. */
#include <math.h>
#include <omp.h>

#include "linalg/stress_strips.h"

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

/* What a thread does in a solve. */
typedef struct soft_work {
    const sk_stress_strips *strips;
    sk_team team;
} soft_work;

/* A thread's chunks of a list, and the segments of a chunk. */
static inline share chunks_of(const soft_work *work, int list)
{
    return share_of(work->strips->chunk[list], work->strips->chunk[list + 1], 1, work->team);
}

static inline share segments_of(const sk_stress_strips *strips, int list, int32_t chunk)
{
    const int32_t first = strips->first[list] + (chunk - strips->chunk[list]) * SK_STRESS_SEGMENT_CHUNK;
    const int32_t last = first + SK_STRESS_SEGMENT_CHUNK, end = strips->first[list + 1];
    return (share){first, last < end ? last : end};
}

static inline __attribute__((always_inline)) lanes lanes_at(const float *values)
{
    return *(const lanes *)(const void *)values;
}

static inline __attribute__((always_inline)) void set_lanes(float *values, lanes to)
{
    *(lanes *)(void *)values = to;
}

static inline __attribute__((always_inline)) lanes splat(float value)
{
    return value - (lanes){0.0f};
}

static inline __attribute__((always_inline)) double add_lanes(lanes values)
{
    double sum = 0.0;
    for (int n = 0; n < SK_STRESS_GROUP; n++)
        sum += (double)values[n];
    return sum;
}

/* The total of the chunks' sums, the same in each thread. */
static double add_partial(const soft_work *work, const double *partial)
{
    const int32_t chunks = work->strips->chunk[SK_STRESS_LISTS];
    double total = 0.0;
    sk_team_wait(work->team);
    for (int32_t c = 0; c < chunks; c++)
        total += partial[c];
    return total;
}

/* The coefficients of a list: of all its rows, or none if each segment has its own. */
typedef struct list_rows {
    const sk_stress_segment_rows *own; /* of the segment number 0 of all lists; NULL = shared */
    const float *shared;
    float diagonal;
} list_rows;

static inline __attribute__((always_inline)) list_rows rows_of_list(const sk_stress_strips *strips, int list)
{
    const int a = list / 8;
    return (list_rows){list & 1 ? strips->rows + strips->first_rows[list] - strips->first[list] : NULL,
                       strips->level->shared[a], strips->level->shared_diagonal[a]};
}

static inline __attribute__((always_inline)) lanes diagonal_of(const list_rows *rows, int own, int32_t segment)
{
    return own ? lanes_at(rows->own[segment].diagonal) : splat(rows->diagonal);
}

static inline __attribute__((always_inline)) lanes inverse_of(const list_rows *rows, int own, int32_t segment)
{
    return own ? lanes_at(rows->own[segment].inverse) : splat(1.0f / rows->diagonal);
}

/* Sum of coefficient x value over a set of the neighbours of a segment's faces. */
static inline __attribute__((always_inline)) lanes neighbour_sum(const sk_stress_strips *strips, const list_rows *rows,
                                                                 const float *values, int32_t segment, int a, int half,
                                                                 int own, int set)
{
    const sk_stress_segment *at = &strips->segments[segment];
    lanes sum[2] = {{0.0f}, {0.0f}};
#pragma GCC unroll 16
    for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++)
        if (is_in_set(set, m)) {
            const float *plane = values + (size_t)sk_stress_plane_of(a, half, m) * strips->plane;
            const lanes value = lanes_at(plane + at->row[sk_stress_beside_of(a, m)] + sk_stress_shift_of(a, half, m));
            sum[m & 1] += (own ? lanes_at(rows->own[segment].coefficient[m]) : splat(rows->shared[m])) * value;
        }
    return sum[0] + sum[1];
}

/* Copies the face beside a joined side to its other end. */
#define COPY_END(plane, segment, half)                                                                                 \
    if ((segment)->wrap)                                                                                               \
    (plane)[(segment)->row[SK_STRESS_MIDDLE] + (segment)->wrap] =                                                      \
        (plane)[(segment)->row[SK_STRESS_MIDDLE] + ((half) ? SK_STRESS_GROUP - 1 : 0)]

/* --- The two triangles --- */

/* p = s + beta p, and w = (D + U)^-1 D p in a list of segments. */
static inline __attribute__((always_inline)) void solve_upper(const soft_work *work, float beta, int k, int half, int own)
{
    const sk_stress_strips *strips = work->strips;
    const int list = sk_stress_list(k, half, own), a = k / 2;
    const size_t plane = (size_t)(2 * a + half) * strips->plane;
    const list_rows rows = rows_of_list(strips, list);
    const share chunks = chunks_of(work, list);
    for (int32_t c = chunks.first; c < chunks.last; c++) {
        const share mine = segments_of(strips, list, c);
        for (int32_t n = mine.first; n < mine.last; n++) {
            const size_t here = plane + (size_t)strips->segments[n].row[SK_STRESS_MIDDLE];
            const lanes p = lanes_at(strips->s + here) + beta * lanes_at(strips->p + here);
            const lanes sum = neighbour_sum(strips, &rows, strips->w, n, a, half, own, SET_ALL & ~set_before(k));
            set_lanes(strips->p + here, p);
            set_lanes(strips->w + here, p - inverse_of(&rows, own, n) * sum);
            COPY_END(strips->w + plane, &strips->segments[n], half);
        }
    }
}

/* v = (D + L)^-1 D (p - w) in a list of segments, and the curvature along w, p D (w + v). */
static inline __attribute__((always_inline)) void solve_lower(const soft_work *work, int k, int half, int own)
{
    const sk_stress_strips *strips = work->strips;
    const int list = sk_stress_list(k, half, own), a = k / 2;
    const size_t plane = (size_t)(2 * a + half) * strips->plane;
    const list_rows rows = rows_of_list(strips, list);
    const share chunks = chunks_of(work, list);
    for (int32_t c = chunks.first; c < chunks.last; c++) {
        const share mine = segments_of(strips, list, c);
        lanes curvature = {0.0f};
        for (int32_t n = mine.first; n < mine.last; n++) {
            const size_t here = plane + (size_t)strips->segments[n].row[SK_STRESS_MIDDLE];
            const lanes p = lanes_at(strips->p + here), w = lanes_at(strips->w + here);
            const lanes sum = neighbour_sum(strips, &rows, strips->v, n, a, half, own, set_before(k));
            const lanes v = p - w - inverse_of(&rows, own, n) * sum;
            set_lanes(strips->v + here, v);
            curvature += diagonal_of(&rows, own, n) * p * (w + v);
            COPY_END(strips->v + plane, &strips->segments[n], half);
        }
        strips->partial[0][c] = add_lanes(curvature);
    }
}

/* A colour of a triangle; the compiler resolves the set of each. */
static inline __attribute__((always_inline)) void solve_colour(const soft_work *work, float beta, int k, int lower)
{
    for (int part = 0; part < 4; part++) {
        if (part == 0)
            lower ? solve_lower(work, k, 0, 0) : solve_upper(work, beta, k, 0, 0);
        else if (part == 1)
            lower ? solve_lower(work, k, 0, 1) : solve_upper(work, beta, k, 0, 1);
        else if (part == 2)
            lower ? solve_lower(work, k, 1, 0) : solve_upper(work, beta, k, 1, 0);
        else
            lower ? solve_lower(work, k, 1, 1) : solve_upper(work, beta, k, 1, 1);
    }
    sk_team_wait(work->team);
}

static void solve_uppers(const soft_work *work, float beta)
{
#if SELKIE_DIM == 3
    solve_colour(work, beta, 5, 0);
    solve_colour(work, beta, 4, 0);
#endif
    solve_colour(work, beta, 3, 0);
    solve_colour(work, beta, 2, 0);
    solve_colour(work, beta, 1, 0);
    solve_colour(work, beta, 0, 0);
}

static void solve_lowers(const soft_work *work)
{
    solve_colour(work, 0.0f, 0, 1);
    solve_colour(work, 0.0f, 1, 1);
    solve_colour(work, 0.0f, 2, 1);
    solve_colour(work, 0.0f, 3, 1);
#if SELKIE_DIM == 3
    solve_colour(work, 0.0f, 4, 1);
    solve_colour(work, 0.0f, 5, 1);
#endif
}

/* --- Vectors --- */

/* p = up D^-1 r, where p holds the residual r; s = w = x = 0. */
static void begin(const soft_work *work, float up)
{
    const sk_stress_strips *strips = work->strips;
    for (int list = 0; list < SK_STRESS_LISTS; list++) {
        const size_t plane = (size_t)(list / 8 * 2 + list / 2 % 2) * strips->plane;
        const list_rows rows = rows_of_list(strips, list);
        const share chunks = chunks_of(work, list);
        for (int32_t c = chunks.first; c < chunks.last; c++) {
            const share mine = segments_of(strips, list, c);
            for (int32_t n = mine.first; n < mine.last; n++) {
                const size_t here = plane + (size_t)strips->segments[n].row[SK_STRESS_MIDDLE];
                const lanes inverse = list & 1 ? inverse_of(&rows, 1, n) : inverse_of(&rows, 0, n);
                set_lanes(strips->p + here, inverse * (up * lanes_at(strips->p + here)));
                set_lanes(strips->s + here, splat(0.0f));
                set_lanes(strips->w + here, splat(0.0f));
                set_lanes(strips->x + here, splat(0.0f));
                COPY_END(strips->w + plane, &strips->segments[n], list / 2 % 2);
            }
        }
    }
    sk_team_wait(work->team);
}

/* x += alpha w, s -= alpha (w + v). Returns s D s. */
static double step_along(const soft_work *work, float alpha)
{
    const sk_stress_strips *strips = work->strips;
    for (int list = 0; list < SK_STRESS_LISTS; list++) {
        const size_t plane = (size_t)(list / 8 * 2 + list / 2 % 2) * strips->plane;
        const list_rows rows = rows_of_list(strips, list);
        const share chunks = chunks_of(work, list);
        for (int32_t c = chunks.first; c < chunks.last; c++) {
            const share mine = segments_of(strips, list, c);
            lanes energy = {0.0f};
            for (int32_t n = mine.first; n < mine.last; n++) {
                const size_t here = plane + (size_t)strips->segments[n].row[SK_STRESS_MIDDLE];
                const lanes w = lanes_at(strips->w + here);
                const lanes s = lanes_at(strips->s + here) - alpha * (w + lanes_at(strips->v + here));
                const lanes diagonal = list & 1 ? diagonal_of(&rows, 1, n) : diagonal_of(&rows, 0, n);
                set_lanes(strips->x + here, lanes_at(strips->x + here) + alpha * w);
                set_lanes(strips->s + here, s);
                energy += diagonal * s * s;
            }
            strips->partial[1][c] = add_lanes(energy);
        }
    }
    return add_partial(work, strips->partial[1]);
}

/* Corrects the solution by what lowers the residual, in p, to about `reduction`. Returns the number of iterations. */
static int correct(const soft_work *work, double scale, double reduction, int max_iterations)
{
    const sk_stress_strips *strips = work->strips;
    begin(work, (float)(1.0 / scale));
    solve_lowers(work);
    double energy = step_along(work, -1.0f); /* s = v */
    const double enough = reduction * reduction * energy;
    float beta = 0.0f;
    int iteration = 0;
    while (iteration < max_iterations && energy > enough) {
        solve_uppers(work, beta);
        solve_lowers(work);
        const double curvature = add_partial(work, strips->partial[0]), before = energy;
        if (!(curvature > 0.0) || !isfinite(curvature))
            break;
        energy = step_along(work, (float)(energy / curvature));
        beta = (float)(energy / before);
        iteration++;
    }
    for (int list = 0; list < SK_STRESS_LISTS; list++) {
        const size_t plane = (size_t)(list / 8 * 2 + list / 2 % 2) * strips->plane;
        const share chunks = chunks_of(work, list);
        for (int32_t c = chunks.first; c < chunks.last; c++) {
            const share mine = segments_of(strips, list, c);
            for (int32_t n = mine.first; n < mine.last; n++) {
                const size_t here = plane + (size_t)strips->segments[n].row[SK_STRESS_MIDDLE];
                *(double_lanes *)(void *)(strips->solution + here) +=
                    scale * __builtin_convertvector(lanes_at(strips->x + here), double_lanes);
                COPY_END(strips->solution + plane, &strips->segments[n], list / 2 % 2);
            }
        }
    }
    sk_team_wait(work->team);
    return iteration;
}

/* --- Residual --- */

/* A times the solution at a segment's faces. */
static inline __attribute__((always_inline)) double_lanes product_at(const sk_stress_strips *strips,
                                                                     const list_rows *rows, int32_t segment, int a,
                                                                     int half, int own)
{
    const sk_stress_segment *at = &strips->segments[segment];
    const double *here = strips->solution + (size_t)(2 * a + half) * strips->plane + at->row[SK_STRESS_MIDDLE];
    double_lanes sum[2] = {__builtin_convertvector(diagonal_of(rows, own, segment), double_lanes) *
                               *(const double_lanes *)(const void *)here,
                           {0.0}};
#pragma GCC unroll 16
    for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
        const double *plane = strips->solution + (size_t)sk_stress_plane_of(a, half, m) * strips->plane;
        const double *value = plane + at->row[sk_stress_beside_of(a, m)] + sk_stress_shift_of(a, half, m);
        const lanes coefficient = own ? lanes_at(rows->own[segment].coefficient[m]) : splat(rows->shared[m]);
        sum[m & 1] +=
            __builtin_convertvector(coefficient, double_lanes) * *(const double_lanes *)(const void *)value;
    }
    return sum[0] + sum[1];
}

static inline __attribute__((always_inline)) double add_doubles(double_lanes values)
{
    double sum = 0.0;
    for (int n = 0; n < SK_STRESS_GROUP; n++)
        sum += values[n];
    return sum;
}

/* The residual of a list into p. */
static inline __attribute__((always_inline)) void find_list(const soft_work *work, int list, int a, int half, int own)
{
    const sk_stress_strips *strips = work->strips;
    const size_t plane = (size_t)(2 * a + half) * strips->plane;
    const list_rows rows = rows_of_list(strips, list);
    const share chunks = chunks_of(work, list);
    for (int32_t c = chunks.first; c < chunks.last; c++) {
        const share mine = segments_of(strips, list, c);
        double_lanes norm = {0.0}, size = {0.0};
        for (int32_t n = mine.first; n < mine.last; n++) {
            const size_t here = plane + (size_t)strips->segments[n].row[SK_STRESS_MIDDLE];
            const double_lanes right = *(const double_lanes *)(const void *)(strips->right + here);
            const double_lanes rest = right - product_at(strips, &rows, n, a, half, own);
            set_lanes(strips->p + here, __builtin_convertvector(rest, lanes));
            norm += rest * rest;
            size += right * right;
        }
        strips->partial[0][c] = add_doubles(norm);
        strips->partial[1][c] = add_doubles(size);
    }
}

/* Both halves of both colours of a component. */
static inline __attribute__((always_inline)) void find_component(const soft_work *work, int a)
{
    for (int k = 2 * a; k < 2 * a + 2; k++) {
        find_list(work, sk_stress_list(k, 0, 0), a, 0, 0);
        find_list(work, sk_stress_list(k, 0, 1), a, 0, 1);
        find_list(work, sk_stress_list(k, 1, 0), a, 1, 0);
        find_list(work, sk_stress_list(k, 1, 1), a, 1, 1);
    }
}

/* The size of the residual, which goes into p, and that of the right side. */
static double find_residual(const soft_work *work, double *size)
{
    find_component(work, 0);
    find_component(work, 1);
#if SELKIE_DIM == 3
    find_component(work, 2);
#endif
    const double norm = sqrt(add_partial(work, work->strips->partial[0]));
    *size = sqrt(add_partial(work, work->strips->partial[1]));
    return norm;
}

/* Corrections in single precision while each brings a decimal. All threads take the same decisions; one reports. */
static void soften(const soft_work *work, int max_iterations, double tolerance, sk_stress_report *report)
{
    double size, norm = find_residual(work, &size), before = INFINITY;
    int iterations = 0;
    while (norm > tolerance * size && norm < 0.1 * before && iterations < max_iterations) {
        before = norm;
        /* Less than what is needed: the iteration does not know the size of the residual itself. */
        const double reduction = fmax(0.7 * tolerance * size / norm, 1e-5);
        iterations += correct(work, norm, reduction, max_iterations - iterations);
        norm = find_residual(work, &size);
    }
    if (work->team.thread)
        return;
    report->residual = size > 0.0 ? norm / size : 0.0;
    report->converged = report->residual <= tolerance;
    report->iterations = iterations > report->iterations ? iterations : report->iterations;
}

void SK_DIM(sk_stress_soften)(const sk_stress_strips *strips, const sk_stress_options *options, double tolerance,
                              sk_stress_report *report)
{
    const int threads = report->unknowns > SK_STRESS_FEW ? options->threads : 1;
    sk_barrier barrier = {0, 0};
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        const soft_work work = {strips, {omp_get_thread_num(), omp_get_num_threads(), &barrier}};
        soften(&work, options->max_iterations, tolerance, report);
    }
}

/* --- Faces without mass --- */

static double_lanes own_product(const sk_stress_strips *strips, const list_rows *rows, int32_t segment, int a, int half)
{
    if (a == 0)
        return half ? product_at(strips, rows, segment, 0, 1, 1) : product_at(strips, rows, segment, 0, 0, 1);
#if SELKIE_DIM == 3
    if (a == 2)
        return half ? product_at(strips, rows, segment, 2, 1, 1) : product_at(strips, rows, segment, 2, 0, 1);
#endif
    return half ? product_at(strips, rows, segment, 1, 1, 1) : product_at(strips, rows, segment, 1, 0, 1);
}

/* Rows of a list without mass, from the rows beside them. */
static void set_massless(const sk_stress_strips *strips, int list)
{
    const int a = list / 8, half = list / 2 % 2;
    const size_t plane = (size_t)(2 * a + half) * strips->plane;
    const list_rows rows = rows_of_list(strips, list);
    for (int32_t n = strips->first[list]; n < strips->first[list + 1]; n++) {
        const sk_stress_segment_rows *own = &rows.own[n];
        if (!own->any_massless)
            continue;
        double *x = strips->solution + plane + strips->segments[n].row[SK_STRESS_MIDDLE];
        const double *right = strips->right + plane + strips->segments[n].row[SK_STRESS_MIDDLE];
        const double_lanes product = own_product(strips, &rows, n, a, half);
        for (int l = 0; l < SK_STRESS_GROUP; l++)
            if (own->massless[l])
                x[l] += (right[l] - product[l]) / (double)own->diagonal[l];
        COPY_END(strips->solution + plane, &strips->segments[n], half);
    }
}

void SK_DIM(sk_stress_start_massless)(const sk_stress_strips *strips)
{
    for (int list = 0; list < SK_STRESS_LISTS; list++)
        for (int32_t n = strips->first[list]; n < strips->first[list + 1]; n++)
            COPY_END(strips->solution + (size_t)(list / 8 * 2 + list / 2 % 2) * strips->plane, &strips->segments[n],
                     list / 2 % 2);
    for (int pass = 0; pass < SK_STRESS_MASSLESS_SWEEPS; pass++)
        for (int k = 0; k < SK_STRESS_COLOURS; k++)
            for (int half = 0; half < 2; half++)
                set_massless(strips, sk_stress_list(pass % 2 ? SK_STRESS_COLOURS - 1 - k : k, half, 1));
}
