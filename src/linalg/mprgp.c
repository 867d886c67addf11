/* Modified proportioning with reduced gradient projections (Dostal and Schoeberl 2005; Dostal, Optimal Quadratic
 * Programming Algorithms, 2009, chapters 5 and 8), preconditioned in the face by a modified incomplete Cholesky
 * factorisation (MIC(0), Bridson), as Gerszewski solves for unilateral incompressibility (dissertation, section 3.1).
 *
 * With the gradient g = A x - f, the free gradient phi (g where x > l), the
 * chopped one beta (min(g, 0) where x = l) and the reduced free gradient
 * phi~ = min(phi, (x - l) / alpha):
 *
 *   |beta|^2 <= Gamma^2 phi~.phi: a conjugate gradient step on the free cells; if it would leave the bounds,
 *       as much of it as is allowed and then a projected gradient step of length alpha (expansion)
 *   otherwise: a step along beta, which frees cells (proportioning)
 *
 * alpha is in (0, 2 / |A|]; the largest eigenvalue comes from power iterations that
 * start from the vector of the last solve.
 *
 * The factor covers the free cells alone and is recomputed when they change.
 * Everything runs on one thread, since the triangular solves are sequential.
 */
#include "linalg/mprgp.h"

#include <math.h>
#include <string.h>

static const double gamma_squared = 1.0;   /* Dostal's default */
static const double mic_tuning = 0.97;     /* part of the dropped fill that goes to the diagonal */
static const double mic_safety = 0.25;     /* a pivot below this part of the diagonal is replaced by the diagonal */
static const double power_accuracy = 1e-3; /* stop at this change of the eigenvalue between two power iterations */
enum { max_power_iterations = 100, vectors = 5 };

typedef struct state {
    const sk_flat_system *s;
    size_t n;
    double *g, *p, *q, *z, *pivot; /* gradient, direction, A p, preconditioned gradient, scratch of the factor */
    uint8_t *is_free;
    double alpha;
    double norm_start;
    selkie_residual_norm norm;
} state;

size_t sk_mprgp_scratch_bytes(int32_t count)
{
    return ((size_t)count + 1) * (vectors * sizeof(double) + 1);
}

static void multiply(const sk_flat_system *s, const double *x, double *y)
{
    for (int32_t i = 0; i < s->count; ++i) {
        double sum = s->diagonal[i] * x[i];
        for (int axis = 0; axis < s->axes; ++axis) {
            int32_t up = s->upper[axis][i];
            sum -= s->face[axis][i] * x[s->lower[axis][i]] + s->face[axis][up] * x[up];
        }
        y[i] = sum;
    }
    y[s->count] = 0;
}

static double dot(size_t n, const double *a, const double *b)
{
    double sum = 0;
    for (size_t i = 0; i < n; ++i)
        sum += a[i] * b[i];
    return sum;
}

/* Power iterations. v keeps the vector. */
static double largest_eigenvalue(const sk_flat_system *s, double *image)
{
    size_t n = (size_t)s->count;
    double *v = s->eigenvector, value = 0, norm = sqrt(dot(n, v, v));
    if (!(norm > 0))
        return 0;
    for (int iteration = 0; iteration < max_power_iterations; ++iteration) {
        for (size_t i = 0; i < n; ++i)
            v[i] /= norm;
        multiply(s, v, image);
        double before = value;
        value = dot(n, v, image);
        norm = sqrt(dot(n, image, image));
        if (!(norm > 0))
            return 0;
        if (iteration > 0 && fabs(value - before) <= power_accuracy * value)
            break;
        memcpy(v, image, n * sizeof(double));
    }
    return norm; /* |A v| is closer than v.A v, and also a lower bound */
}

static double residual_of(const state *t, const double *gradient)
{
    const sk_flat_system *s = t->s;
    double sum = 0, largest = 0;
    for (int32_t i = 0; i < s->count; ++i) {
        double m = fmin(s->diagonal[i] * (s->x[i] - s->bound[i]), gradient[i]);
        sum += m * m;
        largest = fmax(largest, fabs(m));
    }
    return t->norm == SELKIE_NORM_MAX ? largest : t->norm_start > 0 ? sqrt(sum) / t->norm_start : 0;
}

/* The natural residual of x = max(l, 0). */
static double natural_residual_at_start(const sk_flat_system *s, double *x, double *image)
{
    double sum = 0;
    for (int32_t i = 0; i < s->count; ++i)
        x[i] = fmax(s->bound[i], 0);
    x[s->count] = 0;
    multiply(s, x, image);
    for (int32_t i = 0; i < s->count; ++i) {
        double m = fmin(s->diagonal[i] * (x[i] - s->bound[i]), image[i] - s->right_side[i]);
        sum += m * m;
    }
    return sqrt(sum);
}

/* Pivots of the factor of the free cells. */
static void factor(state *t)
{
    const sk_flat_system *s = t->s;
    double *pivot = t->pivot;
    pivot[s->count] = 0;
    for (int32_t i = 0; i < s->count; ++i) {
        pivot[i] = 0;
        if (!t->is_free[i])
            continue;
        double e = s->diagonal[i];
        for (int axis = 0; axis < s->axes; ++axis) {
            int32_t down = s->lower[axis][i];
            if (!t->is_free[down])
                continue;
            double face = s->face[axis][i], others = 0;
            for (int other = 0; other < s->axes; ++other) {
                int32_t up = s->upper[other][down];
                others += other != axis && t->is_free[up] ? s->face[other][up] : 0;
            }
            e -= face * pivot[down] * pivot[down] * (face + mic_tuning * others);
        }
        if (e < mic_safety * s->diagonal[i])
            e = s->diagonal[i];
        pivot[i] = e > 0 ? 1 / sqrt(e) : 0;
    }
}

/* z = (L L^T)^-1 times the free gradient; 0 in active cells, whose pivots are 0. */
static void precondition(state *t)
{
    const sk_flat_system *s = t->s;
    const double *pivot = t->pivot;
    double *z = t->z;
    z[s->count] = 0;
    for (int32_t i = 0; i < s->count; ++i) {
        double sum = t->is_free[i] ? t->g[i] : 0;
        for (int axis = 0; axis < s->axes; ++axis) {
            int32_t down = s->lower[axis][i];
            sum += s->face[axis][i] * pivot[down] * z[down];
        }
        z[i] = pivot[i] * sum;
    }
    for (int32_t i = s->count - 1; i >= 0; --i) {
        double sum = z[i];
        for (int axis = 0; axis < s->axes; ++axis) {
            int32_t up = s->upper[axis][i];
            sum += s->face[axis][up] * pivot[i] * z[up];
        }
        z[i] = pivot[i] * sum;
    }
}

static void restart(state *t)
{
    const sk_flat_system *s = t->s;
    for (int32_t i = 0; i < s->count; ++i)
        t->is_free[i] = s->x[i] > s->bound[i];
    t->is_free[s->count] = 0;
    factor(t);
    precondition(t);
    memcpy(t->p, t->z, (t->n + 1) * sizeof(double));
}

static void gradient(const sk_flat_system *s, double *g)
{
    multiply(s, s->x, g);
    for (int32_t i = 0; i < s->count; ++i)
        g[i] -= s->right_side[i];
}

/* Compares the squared chopped gradient with the product of the reduced free and the free gradient. */
static int is_proportional(const state *t)
{
    const sk_flat_system *s = t->s;
    double chopped = 0, reduced = 0;
    for (int32_t i = 0; i < s->count; ++i) {
        double g = t->g[i];
        if (t->is_free[i])
            reduced += fmin((s->x[i] - s->bound[i]) / t->alpha, g) * g;
        else
            chopped += fmin(g, 0) * fmin(g, 0);
    }
    return chopped <= gamma_squared * reduced;
}

/* The longest step along -p within the bounds. */
static double feasible_step(const state *t)
{
    const sk_flat_system *s = t->s;
    double longest = INFINITY;
    for (int32_t i = 0; i < s->count; ++i)
        if (t->p[i] > 0)
            longest = fmin(longest, (s->x[i] - s->bound[i]) / t->p[i]);
    return longest;
}

/* Returns 0 if no step is possible. */
static int free_or_expansion_step(state *t, sk_bounded_report *report)
{
    const sk_flat_system *s = t->s;
    multiply(s, t->p, t->q);
    double curvature = dot(t->n, t->p, t->q), slope = dot(t->n, t->g, t->z);
    double longest = feasible_step(t), step = curvature > 0 ? slope / curvature : INFINITY;
    if (!(slope > 0) || (isinf(step) && isinf(longest)))
        return 0;

    /* Step to the minimum along p, but not beyond the first bound. */
    double taken = fmin(step, longest);
    for (int32_t i = 0; i < s->count; ++i) {
        s->x[i] = fmax(s->bound[i], s->x[i] - taken * t->p[i]);
        t->g[i] -= taken * t->q[i];
    }

    /* Within the bounds: turn to the next conjugate direction. */
    if (step <= longest) {
        precondition(t);
        double turn = dot(t->n, t->z, t->q) / curvature;
        for (int32_t i = 0; i < s->count; ++i)
            t->p[i] = t->z[i] - turn * t->p[i];
        report->free_steps++;
        return 1;
    }

    /* The free gradient of the cells that are free before the step and after its first half. */
    for (int32_t i = 0; i < s->count; ++i)
        if (s->x[i] > s->bound[i])
            s->x[i] = fmax(s->bound[i], s->x[i] - t->alpha * t->g[i]);
    gradient(s, t->g);
    restart(t);
    report->expansion_steps++;
    return 1;
}

static int proportioning_step(state *t, sk_bounded_report *report)
{
    const sk_flat_system *s = t->s;
    for (int32_t i = 0; i < s->count; ++i)
        t->p[i] = t->is_free[i] ? 0 : fmin(t->g[i], 0);
    t->p[s->count] = 0;
    multiply(s, t->p, t->q);
    double curvature = dot(t->n, t->p, t->q);
    if (!(curvature > 0))
        return 0;
    double taken = dot(t->n, t->g, t->p) / curvature;
    for (int32_t i = 0; i < s->count; ++i) {
        s->x[i] -= taken * t->p[i];
        t->g[i] -= taken * t->q[i];
    }
    restart(t);
    report->proportioning_steps++;
    return 1;
}

void sk_mprgp_solve(sk_flat_system *system, const sk_bounded_options *options, void *scratch, sk_bounded_report *report)
{
    size_t n = (size_t)system->count;
    double *vector = scratch;
    state t = {.s = system, .n = n, .norm = options->norm};
    double **field[] = {&t.g, &t.p, &t.q, &t.z, &t.pivot};
    for (size_t i = 0; i < sizeof(field) / sizeof(field[0]); ++i)
        *field[i] = vector + i * (n + 1);
    t.is_free = (uint8_t *)(vector + vectors * (n + 1));

    /* The largest eigenvalue gives the step length of expansions. */
    t.norm_start = natural_residual_at_start(system, t.p, t.q);
    report->eigenvalue = largest_eigenvalue(system, t.q);
    /* The estimate is a lower bound and depends a little on the start of the power iterations. Rounding it up to a
     * multiple of 1/8 of a power of two removes nearly all of that dependence. */
    double bound = exp2(ceil(8 * log2(1.01 * report->eigenvalue)) / 8);
    t.alpha = report->eigenvalue > 0 ? 1.9 / bound : 1;

    /* Conjugate gradients while the free cells dominate the residual. Otherwise release active cells. */
    gradient(system, t.g);
    restart(&t);
    int iteration = 0, going = 1;
    double residual = residual_of(&t, t.g);
    while (going && residual > options->tolerance && iteration < options->max_iterations) {
        if (iteration < SK_POISSON_MAX_HISTORY) {
            report->history[iteration] = residual;
            report->history_count = iteration + 1;
        }
        going = is_proportional(&t) ? free_or_expansion_step(&t, report) : proportioning_step(&t, report);
        ++iteration;
        residual = residual_of(&t, t.g);
        if (residual <= options->tolerance) { /* recompute it: the recurrence drifts */
            gradient(system, t.g);
            residual = residual_of(&t, t.g);
        }
    }

    /* Report the true residual. */
    gradient(system, t.g);
    report->iterations = iteration;
    report->residual = residual_of(&t, t.g);
    report->converged = report->residual <= options->tolerance;
}
