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
 * Where the stress is larger, an iteration has two or three symmetric sweeps, each relaxed: Chebyshev's polynomial of
 * such products. That takes about as long, and a half or a third of the iterations.
 *
 * Vectors are in single precision. The true residual is found in double precision, and the iteration starts again. */
#include <math.h>
#include <omp.h>

#include "base/simd.h"
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

enum { SOFT_SUMS = SK_STRESS_PARTIALS }; /* of an iteration */

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

/* The totals of the chunks' sums, the same in each thread. Writers of the next ones must wait for all readers. */
static void add_partial(const soft_work *work, double total[SOFT_SUMS])
{
    const int32_t chunks = work->strips->chunk[SK_STRESS_LISTS];
    sk_team_wait(work->team);
    for (int n = 0; n < SOFT_SUMS; n++) {
        total[n] = 0.0;
        for (int32_t c = 0; c < chunks; c++)
            total[n] += work->strips->partial[n][c];
    }
}

/* What a loop over the segments of a list reads, copied so that it keeps it in registers. */
typedef struct list_view {
    const sk_stress_segment *segments;
    const sk_stress_segment_rows *own; /* of the segment number 0 of all lists */
    size_t plane;                      /* values of a plane */
    size_t start;                      /* of the plane of the list */
    float shared[SK_STRESS_NEIGHBOURS], diagonal;
    int has_ends;
} list_view;

static inline __attribute__((always_inline)) list_view view_list(const sk_stress_strips *strips, int list)
{
    const int a = list / 8;
    list_view view = {.segments = strips->segments,
                      .own = strips->rows + strips->first_rows[list] - strips->first[list],
                      .plane = strips->plane,
                      .start = (size_t)(2 * a + list / 2 % 2) * strips->plane,
                      .diagonal = strips->level->shared_diagonal[a],
                      .has_ends = strips->has_ends};
    memcpy(view.shared, strips->level->shared[a], sizeof view.shared);
    return view;
}

static inline __attribute__((always_inline)) lanes diagonal_of(const list_view *view, int own, int32_t segment)
{
    return own ? lanes_at(view->own[segment].diagonal) : splat(view->diagonal);
}

static inline __attribute__((always_inline)) lanes inverse_of(const list_view *view, int own, int32_t segment)
{
    return own ? lanes_at(view->own[segment].inverse) : splat(1.0f / view->diagonal);
}

static inline __attribute__((always_inline)) size_t place_of(const list_view *view, int32_t segment)
{
    return view->start + (size_t)view->segments[segment].row[SK_STRESS_MIDDLE];
}

/* Sum of coefficient x value over a set of the neighbours of a segment's faces. */
static inline __attribute__((always_inline)) lanes neighbour_sum(const list_view *view, const float *values,
                                                                 int32_t segment, int a, int half, int own, int set)
{
    const sk_stress_segment *at = &view->segments[segment];
    lanes sum[2] = {{0.0f}, {0.0f}};
#pragma GCC unroll 16
    for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++)
        if (is_in_set(set, m)) {
            const float *plane = values + (size_t)sk_stress_plane_of(a, half, m) * view->plane;
            const lanes value = lanes_at(plane + at->row[sk_stress_beside_of(a, m)] + sk_stress_shift_of(a, half, m));
            sum[m & 1] += (own ? lanes_at(view->own[segment].coefficient[m]) : splat(view->shared[m])) * value;
        }
    return sum[0] + sum[1];
}

/* Copies the face beside a joined side to its other end. */
#define COPY_END(values, view, segment, half)                                                                          \
    if ((view)->has_ends && (view)->segments[segment].wrap)                                                            \
    (values)[place_of(view, segment) + (size_t)(ptrdiff_t)(view)->segments[segment].wrap] =                            \
        (values)[place_of(view, segment) + ((half) ? SK_STRESS_GROUP - 1 : 0)]

/* --- The two triangles --- */

/* What a product with A, between the triangles, is taken of: after a step along w, of the next direction, if it comes
 * from one sweep, or of s, the first of several sweeps; of a further sweep; of the direction that comes from the last
 * of them. */
typedef enum soft_kind { SOFT_STEP, SOFT_FIRST, SOFT_FURTHER, SOFT_TURN } soft_kind;

static inline __attribute__((always_inline)) int is_of_sweep(soft_kind kind)
{
    return kind == SOFT_FIRST || kind == SOFT_FURTHER;
}

/* Upper triangle: w = (D + U)^-1 D y in a list of segments. A step first: x += alpha w, s -= alpha (w + v). Then y = z
 * = s, or y = p = s + beta p. After a product with z: y = s + alpha (z - w - v), which is the next z or, with beta p,
 * the next p. */
static inline __attribute__((always_inline)) void solve_upper(const soft_work *work, float alpha, float beta, int k,
                                                              int half, int own, soft_kind kind)
{
    const sk_stress_strips *strips = work->strips;
    const int list = sk_stress_list(k, half, own);
    const list_view view = view_list(strips, list);
    const share chunks = chunks_of(work, list);
    lanes *s = (lanes *)(void *)strips->s, *p = (lanes *)(void *)strips->p;
    lanes *x = (lanes *)(void *)strips->x, *z = (lanes *)(void *)strips->z;
    float *w = strips->w;
    const float *v = strips->v;
    for (int32_t c = chunks.first; c < chunks.last; c++) {
        const share mine = segments_of(strips, list, c);
        for (int32_t n = mine.first; n < mine.last; n++) {
            const size_t here = place_of(&view, n);
            const lanes sum = neighbour_sum(&view, w, n, k / 2, half, own, SET_ALL & ~set_before(k));
            const lanes before = lanes_at(w + here), product = before + lanes_at(v + here);
            lanes y;
            if (kind == SOFT_STEP || kind == SOFT_FIRST) {
                y = s[n] - alpha * product;
                x[n] += alpha * before;
                s[n] = y;
            } else
                y = s[n] + alpha * (z[n] - product);
            if (is_of_sweep(kind)) {
                z[n] = y;
            } else {
                y += beta * p[n];
                p[n] = y;
            }
            set_lanes(w + here, y - inverse_of(&view, own, n) * sum);
            COPY_END(w, &view, n, half);
        }
    }
}

/* Lower triangle: v = (D + L)^-1 D (y - w) in a list of segments. With q = w + v, sums y D q, the curvature along w, or
 * of a sweep s D y; then s D s, s D q and q D q. */
static inline __attribute__((always_inline)) void solve_lower(const soft_work *work, int k, int half, int own,
                                                              soft_kind kind)
{
    const sk_stress_strips *strips = work->strips;
    const int list = sk_stress_list(k, half, own);
    const list_view view = view_list(strips, list);
    const share chunks = chunks_of(work, list);
    const lanes *s = (const lanes *)(const void *)strips->s;
    const lanes *y = (const lanes *)(const void *)(is_of_sweep(kind) ? strips->z : strips->p);
    const float *w = strips->w;
    float *v = strips->v;
    for (int32_t c = chunks.first; c < chunks.last; c++) {
        const share mine = segments_of(strips, list, c);
        lanes sums[SOFT_SUMS] = {{0.0f}};
        for (int32_t n = mine.first; n < mine.last; n++) {
            const size_t here = place_of(&view, n);
            const lanes from = y[n], upper = lanes_at(w + here);
            const lanes sum = neighbour_sum(&view, v, n, k / 2, half, own, set_before(k));
            const lanes lower = from - upper - inverse_of(&view, own, n) * sum;
            const lanes diagonal = diagonal_of(&view, own, n), q = upper + lower, rest = s[n];
            const lanes weighted = diagonal * q, weighted_rest = diagonal * rest;
            set_lanes(v + here, lower);
            if (is_of_sweep(kind))
                sums[0] += from * weighted_rest;
            else
                sums[0] += from * weighted;
            sums[1] += rest * weighted_rest;
            sums[2] += rest * weighted;
            sums[3] += q * weighted;
            COPY_END(v, &view, n, half);
        }
        for (int n = 0; n < SOFT_SUMS; n++)
            strips->partial[n][c] = add_lanes(sums[n]);
    }
}

/* A colour of a triangle; the compiler resolves the set of each. */
static inline __attribute__((always_inline)) void solve_colour(const soft_work *work, float alpha, float beta, int k,
                                                               int lower, soft_kind kind)
{
    for (int part = 0; part < 4; part++) {
        if (part == 0)
            lower ? solve_lower(work, k, 0, 0, kind) : solve_upper(work, alpha, beta, k, 0, 0, kind);
        else if (part == 1)
            lower ? solve_lower(work, k, 0, 1, kind) : solve_upper(work, alpha, beta, k, 0, 1, kind);
        else if (part == 2)
            lower ? solve_lower(work, k, 1, 0, kind) : solve_upper(work, alpha, beta, k, 1, 0, kind);
        else
            lower ? solve_lower(work, k, 1, 1, kind) : solve_upper(work, alpha, beta, k, 1, 1, kind);
    }
    sk_team_wait(work->team);
}

static inline __attribute__((always_inline)) void solve_lowers(const soft_work *work, soft_kind kind,
                                                               double sums[SOFT_SUMS])
{
    solve_colour(work, 0.0f, 0.0f, 0, 1, kind);
    solve_colour(work, 0.0f, 0.0f, 1, 1, kind);
    solve_colour(work, 0.0f, 0.0f, 2, 1, kind);
    solve_colour(work, 0.0f, 0.0f, 3, 1, kind);
#if SELKIE_DIM == 3
    solve_colour(work, 0.0f, 0.0f, 4, 1, kind);
    solve_colour(work, 0.0f, 0.0f, 5, 1, kind);
#endif
    add_partial(work, sums);
}

/* A product with A between the triangles, w + v, and its sums. */
static inline __attribute__((always_inline)) void multiply_kind(const soft_work *work, float alpha, float beta,
                                                                soft_kind kind, double sums[SOFT_SUMS])
{
#if SELKIE_DIM == 3
    solve_colour(work, alpha, beta, 5, 0, kind);
    solve_colour(work, alpha, beta, 4, 0, kind);
#endif
    solve_colour(work, alpha, beta, 3, 0, kind);
    solve_colour(work, alpha, beta, 2, 0, kind);
    solve_colour(work, alpha, beta, 1, 0, kind);
    solve_colour(work, alpha, beta, 0, 0, kind);
    solve_lowers(work, kind, sums);
}

static void multiply(const soft_work *work, float alpha, float beta, soft_kind kind, double sums[SOFT_SUMS])
{
    if (kind == SOFT_STEP)
        multiply_kind(work, alpha, beta, SOFT_STEP, sums);
    else if (kind == SOFT_FIRST)
        multiply_kind(work, alpha, beta, SOFT_FIRST, sums);
    else if (kind == SOFT_FURTHER)
        multiply_kind(work, alpha, beta, SOFT_FURTHER, sums);
    else
        multiply_kind(work, alpha, beta, SOFT_TURN, sums);
}

/* --- The iteration --- */

/* What a loop over all segments does: p = up D^-1 r, where p holds the residual r, and s = w = x = 0; or, at the end,
 * solution += scale (x + alpha w). */
static inline __attribute__((always_inline)) void work_on_list(const soft_work *work, int list, int own, int ends,
                                                               double factor, float alpha)
{
    const sk_stress_strips *strips = work->strips;
    const list_view view = view_list(strips, list);
    const share chunks = chunks_of(work, list);
    const lanes zero = {0.0f};
    for (int32_t c = chunks.first; c < chunks.last; c++) {
        const share mine = segments_of(strips, list, c);
        for (int32_t n = mine.first; n < mine.last; n++) {
            const size_t here = place_of(&view, n), row = (size_t)n * SK_STRESS_GROUP;
            if (ends) {
                const lanes x = lanes_at(strips->x + row) + alpha * lanes_at(strips->w + here);
                *(double_lanes *)(void *)(strips->solution + here) += factor * __builtin_convertvector(x, double_lanes);
                COPY_END(strips->solution, &view, n, list / 2 % 2);
            } else {
                const lanes r = (float)factor * lanes_at(strips->p + row);
                set_lanes(strips->p + row, inverse_of(&view, own, n) * r);
                set_lanes(strips->s + row, zero);
                set_lanes(strips->w + here, zero);
                set_lanes(strips->x + row, zero);
            }
        }
    }
}

static void begin(const soft_work *work, double up)
{
    for (int list = 0; list < SK_STRESS_LISTS; list += 2) {
        work_on_list(work, list, 0, 0, up, 0.0f);
        work_on_list(work, list + 1, 1, 0, up, 0.0f);
    }
    sk_team_wait(work->team);
}

static void end(const soft_work *work, double scale, float alpha)
{
    for (int list = 0; list < SK_STRESS_LISTS; list++)
        work_on_list(work, list, 0, 1, scale, alpha);
    sk_team_wait(work->team);
}

/* Several sweeps turn s into z, by z = s and then z = s + relaxation (z - A z), with A between the triangles. The last
 * of them is left to SOFT_TURN. Takes a step first. Returns s D z. */
static double sweep_further(const soft_work *work, float step)
{
    const int sweeps = work->strips->sweeps;
    double sums[SOFT_SUMS];
    multiply(work, step, 0.0f, SOFT_FIRST, sums);
    for (int n = 1; n + 1 < sweeps; n++)
        multiply(work, sk_stress_relaxation(sweeps, n), 0.0f, SOFT_FURTHER, sums);
    return sums[1] + (double)sk_stress_relaxation(sweeps, sweeps - 1) * (sums[0] - sums[2]);
}

/* Corrects the solution by what lowers the residual, in p, to about `reduction`. The energy s D s after a step is
 * predicted from sums before it, and found again for the next one (Chen and Carson, SIAM J. Matrix Anal. Appl. 41,
 * 2020): so a loop over all rows fewer does. Returns the number of iterations. */
static int correct(const soft_work *work, double scale, double reduction, int max_iterations)
{
    const int sweeps = work->strips->sweeps;
    double sums[SOFT_SUMS], last = 0.0;
    begin(work, 1.0 / scale);
    solve_lowers(work, SOFT_TURN, sums);
    double energy = sums[3]; /* s = v, which the first step takes off s = 0 */
    const double enough = reduction * reduction * energy;
    float step = -1.0f, beta = 0.0f;
    int iteration = 0;
    while (iteration < max_iterations && energy > enough) {
        double now = 0.0;
        if (sweeps == 1) {
            multiply(work, step, beta, SOFT_STEP, sums);
            now = sums[1];
        } else {
            now = sweep_further(work, step);
            beta = last > 0.0 ? (float)(now / last) : 0.0f;
            multiply(work, sk_stress_relaxation(sweeps, sweeps - 1), beta, SOFT_TURN, sums);
        }
        const double alpha = now / sums[0];
        step = 0.0f;
        if (!(sums[0] > 0.0) || !isfinite(alpha))
            break;
        step = (float)alpha;
        energy = fmax(sums[1] + alpha * (alpha * sums[3] - 2.0 * sums[2]), 0.0);
        beta = (float)(energy / sums[1]);
        last = now;
        iteration++;
    }
    end(work, scale, step);
    return iteration;
}

/* --- Residual --- */

/* A times the solution at a segment's faces. */
static inline __attribute__((always_inline)) double_lanes product_at(const list_view *view, const double *solution,
                                                                     int32_t segment, int a, int half, int own)
{
    const sk_stress_segment *at = &view->segments[segment];
    double_lanes sum[2] = {__builtin_convertvector(diagonal_of(view, own, segment), double_lanes) *
                               *(const double_lanes *)(const void *)(solution + place_of(view, segment)),
                           {0.0}};
#pragma GCC unroll 16
    for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
        const double *plane = solution + (size_t)sk_stress_plane_of(a, half, m) * view->plane;
        const double *value = plane + at->row[sk_stress_beside_of(a, m)] + sk_stress_shift_of(a, half, m);
        const lanes coefficient = own ? lanes_at(view->own[segment].coefficient[m]) : splat(view->shared[m]);
        sum[m & 1] += __builtin_convertvector(coefficient, double_lanes) * *(const double_lanes *)(const void *)value;
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
    const list_view view = view_list(strips, list);
    const share chunks = chunks_of(work, list);
    for (int32_t c = chunks.first; c < chunks.last; c++) {
        const share mine = segments_of(strips, list, c);
        double_lanes norm = {0.0}, size = {0.0};
        for (int32_t n = mine.first; n < mine.last; n++) {
            const size_t here = place_of(&view, n);
            const double_lanes right = *(const double_lanes *)(const void *)(strips->right + here);
            const double_lanes rest = right - product_at(&view, strips->solution, n, a, half, own);
            set_lanes(strips->p + (size_t)n * SK_STRESS_GROUP, __builtin_convertvector(rest, lanes));
            norm += rest * rest;
            size += right * right;
        }
        strips->partial[0][c] = add_doubles(norm);
        strips->partial[1][c] = add_doubles(size);
        strips->partial[2][c] = strips->partial[3][c] = 0.0;
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
    double sums[SOFT_SUMS];
    add_partial(work, sums);
    *size = sqrt(sums[1]);
    return sqrt(sums[0]);
}

/* Corrections in single precision. All threads take the same decisions; one reports. */
static void soften(const soft_work *work, int max_iterations, double tolerance, sk_stress_report *report)
{
    double size, norm = find_residual(work, &size);
    int iterations = 0;
    for (int n = 0, last = 1; norm > tolerance * size && iterations < max_iterations && last > 0; n++) {
        const double reduction = sk_stress_reduction(tolerance * size, norm, n);
        last = correct(work, norm, reduction, max_iterations - iterations);
        iterations += last;
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
        const unsigned long mode = sk_flush_denormals();
        const soft_work work = {strips, {omp_get_thread_num(), omp_get_num_threads(), &barrier}};
        soften(&work, options->max_iterations, tolerance, report);
        sk_restore_denormals(mode);
    }
}

/* --- Faces without mass --- */

static double_lanes own_product(const list_view *view, const double *x, int32_t n, int a, int half)
{
    if (a == 0)
        return half ? product_at(view, x, n, 0, 1, 1) : product_at(view, x, n, 0, 0, 1);
#if SELKIE_DIM == 3
    if (a == 2)
        return half ? product_at(view, x, n, 2, 1, 1) : product_at(view, x, n, 2, 0, 1);
#endif
    return half ? product_at(view, x, n, 1, 1, 1) : product_at(view, x, n, 1, 0, 1);
}

/* Rows of a list without mass, from the rows beside them. */
static void set_massless(const sk_stress_strips *strips, int list)
{
    const int a = list / 8, half = list / 2 % 2;
    const list_view view = view_list(strips, list);
    for (int32_t n = strips->first[list]; n < strips->first[list + 1]; n++) {
        const sk_stress_segment_marks *marks = &strips->marks[strips->first_rows[list] + n - strips->first[list]];
        if (!marks->any_massless)
            continue;
        double *x = strips->solution + place_of(&view, n);
        const double *right = strips->right + place_of(&view, n);
        const double_lanes product = own_product(&view, strips->solution, n, a, half);
        for (int l = 0; l < SK_STRESS_GROUP; l++)
            if (marks->massless[l])
                x[l] += (right[l] - product[l]) / (double)view.own[n].diagonal[l];
        COPY_END(strips->solution, &view, n, half);
    }
}

void SK_DIM(sk_stress_start_massless)(const sk_stress_strips *strips)
{
    for (int list = 0; list < SK_STRESS_LISTS && strips->has_ends; list++) {
        const list_view view = view_list(strips, list);
        for (int32_t n = strips->first[list]; n < strips->first[list + 1]; n++)
            COPY_END(strips->solution, &view, n, list / 2 % 2);
    }
    for (int pass = 0; pass < SK_STRESS_MASSLESS_SWEEPS; pass++)
        for (int k = 0; k < SK_STRESS_COLOURS; k++)
            for (int half = 0; half < 2; half++)
                set_massless(strips, sk_stress_list(pass % 2 ? SK_STRESS_COLOURS - 1 - k : k, half, 1));
}
