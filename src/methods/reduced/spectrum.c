#include "methods/reduced/transforms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

enum { MOST_TRIAD_MODES = 256 }; /* beyond, transforms take less time */

/* --- Modes --- */

typedef struct candidate {
    double lambda;
    int32_t wave[2];
} candidate;

static int compare_candidates(const void *left, const void *right)
{
    const candidate *a = left, *b = right;
    if (a->lambda != b->lambda)
        return a->lambda < b->lambda ? -1 : 1;
    return a->wave[0] != b->wave[0] ? a->wave[0] - b->wave[0] : a->wave[1] - b->wave[1];
}

static double eigenvalue(const sk_reduced_spectrum *s, int32_t k1, int32_t k2)
{
    const double a = sk_reduced_wave_number(s, 0, k1), b = sk_reduced_wave_number(s, 1, k2);
    return a * a + b * b;
}

/* The factor that makes the velocity of a mode of unit length. */
static double norm_of(const sk_reduced_spectrum *s, const candidate *mode)
{
    double square = mode->lambda;
    for (int d = 0; d < 2; d++)
        square *= s->size[d] * (sk_reduced_wave_number(s, d, mode->wave[d]) > 0.0 ? 0.5 : 1.0);
    return 1.0 / sqrt(square);
}

/* The modes with the smallest eigenvalues. */
static selkie_code choose_modes(sk_reduced_spectrum *s, selkie_error *error)
{
    /* By Weyl, the count is about Lx Ly lambda / (4 pi). Twice the area of that ellipse holds them. */
    const double reach = sqrt(8.0 * PI * (s->closed + 64) / (s->size[0] * s->size[1]));
    const int most[2] = {(int)(reach * s->size[0] / PI) + 3, (int)(reach * s->size[1] / PI) + 3};
    const int first[2] = {sk_reduced_first(s->family[0]), sk_reduced_first(s->family[1])};
    size_t found = 0, room = (size_t)(most[0] + 1) * (size_t)(most[1] + 1);
    candidate *all = sk_allocate(s->memory, room * sizeof *all);
    if (!all)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "reduced.modes: no memory for %d modes", s->closed);
    for (int32_t k1 = first[0]; k1 <= most[0]; k1++)
        for (int32_t k2 = first[1]; k2 <= most[1]; k2++)
            if (eigenvalue(s, k1, k2) > 0.0)
                all[found++] = (candidate){eigenvalue(s, k1, k2), {k1, k2}};
    qsort(all, found, sizeof *all, compare_candidates);

    s->waves[0] = s->waves[1] = 1;
    for (int k = 0; k < s->closed; k++) {
        s->lambda[k] = all[k].lambda;
        s->norm[k] = norm_of(s, &all[k]);
        for (int d = 0; d < 2; d++) {
            s->wave[k][d] = all[k].wave[d];
            s->number[d][k] = sk_reduced_wave_number(s, d, s->wave[k][d]);
            s->waves[d] = s->wave[k][d] - first[d] + 1 > s->waves[d] ? s->wave[k][d] - first[d] + 1 : s->waves[d];
        }
    }
    for (int k = 0; k < s->closed; k++)
        s->at[k] = (s->wave[k][0] - first[0]) * s->waves[1] + (s->wave[k][1] - first[1]);
    sk_release(s->memory, all);
    return SELKIE_OK;
}

/* --- Triads --- */

/* G_kij for k1 = i1 +- j1 and k2 = i2 +- j2: bit 0 of `signs` stands for a minus along x, bit 1 along y. Returns the
 * wave numbers of k. */
static double interaction(const sk_reduced_spectrum *s, int i, int j, int signs, int32_t k[2])
{
    const int32_t *a = s->wave[i], *b = s->wave[j];
    const double first = (double)a[1] * b[0], second = (double)a[0] * b[1];
    double factor = signs == 0   ? first - second
                    : signs == 2 ? -first - second
                    : signs == 1 ? first + second
                                 : second - first;
    for (int d = 0; d < 2; d++) {
        k[d] = signs >> d & 1 ? a[d] - b[d] : a[d] + b[d];
        factor = k[d] < 0 ? -factor : factor; /* sine is odd */
        k[d] = abs(k[d]);
    }
    return factor * 0.25 * (PI * PI / 4.0) * s->norm[i] * s->norm[j];
}

/* Number of the mode with given wave numbers, -1 if it is not one of them. `number` has a row for each k1. */
static int mode_at(const sk_reduced_spectrum *s, const int32_t *number, const int32_t k[2])
{
    if (k[0] < 1 || k[1] < 1 || k[0] > s->waves[0] || k[1] > s->waves[1])
        return -1;
    return number[(k[0] - 1) * s->waves[1] + k[1] - 1];
}

/* Each triple once: its two lower modes find the third. */
static int64_t list_triads(const sk_reduced_spectrum *s, const int32_t *number, sk_reduced_triad *triads)
{
    int64_t count = 0;
    for (int i = 0; i < s->closed; i++)
        for (int j = i + 1; j < s->closed; j++)
            for (int signs = 0; signs < 4; signs++) {
                int32_t wave[2];
                const double part = interaction(s, i, j, signs, wave);
                const int k = mode_at(s, number, wave);
                if (k <= j || part == 0.0)
                    continue;
                if (triads)
                    triads[count] = (sk_reduced_triad){i, j, k, part * s->norm[k]};
                count++;
            }
    return count;
}

static selkie_code make_triads(sk_reduced_spectrum *s, selkie_error *error)
{
    const size_t places = (size_t)s->waves[0] * (size_t)s->waves[1];
    int32_t *number = sk_allocate(s->memory, places * sizeof *number);
    if (!number)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "reduced.modes: no memory for %d modes", s->closed);
    memset(number, 0xff, places * sizeof *number);
    for (int k = 0; k < s->closed; k++)
        number[(s->wave[k][0] - 1) * s->waves[1] + s->wave[k][1] - 1] = k;
    s->triad_count = list_triads(s, number, NULL);
    s->triads = sk_allocate(s->memory, ((size_t)s->triad_count + 1) * sizeof *s->triads);
    if (s->triads)
        list_triads(s, number, s->triads);
    sk_release(s->memory, number);
    return s->triads ? SELKIE_OK : sk_fail(error, SELKIE_ERROR_MEMORY, "reduced.modes: no memory for the triads");
}

/* The antisymmetry of G gives the three rates from one strength. They cancel in energy and enstrophy. */
void sk_reduced_advect_by_triads(const sk_reduced_spectrum *s, const double *r, double *rate)
{
    memset(rate, 0, (size_t)s->count * sizeof *rate);
    for (int64_t n = 0; n < s->triad_count; n++) {
        const sk_reduced_triad *t = &s->triads[n];
        const double a = s->lambda[t->a], b = s->lambda[t->b], c = s->lambda[t->c];
        /* strength is G_cab, which is G_abc. */
        rate[t->a] -= (c - b) * t->strength * r[t->b] * r[t->c];
        rate[t->b] -= (a - c) * t->strength * r[t->c] * r[t->a];
        rate[t->c] -= (b - a) * t->strength * r[t->a] * r[t->b];
    }
}

/* --- Transforms --- */

static size_t place(const sk_reduced_spectrum *s, int k)
{
    return (size_t)s->at[k];
}

static double wave_number(const sk_reduced_spectrum *s, int k, int d)
{
    return s->number[d][k];
}

/* Coefficients of component d of the velocity, or of the vorticity (d = 2), into the table. */
static void fill_table(sk_reduced_spectrum *s, const double *r, int d)
{
    memset(s->coefficients, 0, (size_t)s->waves[0] * (size_t)s->waves[1] * sizeof(double));
    for (int k = 0; k < s->closed; k++) {
        const double factor = d == 2 ? s->lambda[k] : d == 1 ? -wave_number(s, k, 0) : wave_number(s, k, 1);
        s->coefficients[place(s, k)] = r[k] * s->norm[k] * factor;
    }
}

/* Value or slope along each axis: u has the slope along y, v along x, the vorticity neither. */
static const int kinds[3][2] = {
    {SK_REDUCED_VALUE, SK_REDUCED_SLOPE}, {SK_REDUCED_SLOPE, SK_REDUCED_VALUE}, {SK_REDUCED_VALUE, SK_REDUCED_VALUE}};

static void evaluate(sk_reduced_spectrum *s, const sk_reduced_table table[2], const double *r, int d, double *to,
                     int threads)
{
    fill_table(s, r, d);
    sk_reduced_to_points(s, table, kinds[d], to, threads);
}

void sk_reduced_advect_by_transforms(sk_reduced_spectrum *s, const double *r, double *rate, int threads)
{
    static const int slopes[2] = {SK_REDUCED_SLOPE, SK_REDUCED_SLOPE};
    const int points = s->points[0] * s->points[1];
    const double weight = s->size[0] * s->size[1] / points;
    double *u = s->grid[0], *v = s->grid[1], *p = s->grid[2], *q = s->grid[3];
    evaluate(s, s->table, r, 0, u, threads);
    evaluate(s, s->table, r, 1, v, threads);
    for (int n = 0; n < points; n++) {
        p[n] = u[n] * v[n];
        q[n] = u[n] * u[n] - v[n] * v[n];
    }

    /* The integral of u_i u_j d_j (u_k)_i: (u^2 - v^2) psi_xy + u v (psi_yy - psi_xx). */
    sk_reduced_to_waves(s, s->table, kinds[2], p, threads);
    for (int k = 0; k < s->closed; k++) {
        const double a = wave_number(s, k, 0), b = wave_number(s, k, 1);
        rate[k] = (a * a - b * b) * s->coefficients[place(s, k)];
    }
    sk_reduced_to_waves(s, s->table, slopes, q, threads);
    for (int k = 0; k < s->closed; k++) {
        rate[k] += wave_number(s, k, 0) * wave_number(s, k, 1) * s->coefficients[place(s, k)];
        rate[k] *= weight * s->norm[k];
    }
}

/* --- Points --- */

/* Sum over `values` of two arrays, in parts of fixed length and order. */
static double dot(const double *a, const double *b, int values)
{
    double sum[4] = {0, 0, 0, 0};
    int n = 0;
    for (; n + 4 <= values; n += 4)
        for (int j = 0; j < 4; j++)
            sum[j] += a[n + j] * b[n + j];
    for (; n < values; n++)
        sum[0] += a[n] * b[n];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Adds the further modes to a field. Each point sums in the order of the modes. */
static void add_extra(const sk_reduced_spectrum *s, const double *fields, const double *r, int values, double *to,
                      int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static) if ((double)values * s->extra.count > 1e5)
    for (int begin = 0; begin < values; begin += 1024) {
        const int end = begin + 1024 < values ? begin + 1024 : values;
        for (int e = 0; e < s->extra.count; e++) {
            const double c = r[s->closed + e], *field = fields + (size_t)e * (size_t)values;
            for (int n = begin; n < end; n++)
                to[n] += c * field[n];
        }
    }
}

void sk_reduced_middles(sk_reduced_spectrum *s, const double *r, double *const middles[3], int threads)
{
    const double *const extra[3] = {s->extra.u, s->extra.v, s->extra.omega};
    const int values = s->cells[0] * s->cells[1];
    for (int d = 0; d < 3; d++)
        if (middles[d]) {
            evaluate(s, s->middle, r, d, middles[d], threads);
            add_extra(s, extra[d], r, values, middles[d], threads);
        }
}

void sk_reduced_velocities(sk_reduced_spectrum *s, const double *r, double *const nodes[2], int threads)
{
    const double *const extra[2] = {s->extra.node_u, s->extra.node_v};
    for (int d = 0; d < 2; d++) {
        evaluate(s, s->node, r, d, nodes[d], threads);
        add_extra(s, extra[d], r, (s->cells[0] + 1) * (s->cells[1] + 1), nodes[d], threads);
    }
}

void sk_reduced_project(sk_reduced_spectrum *s, const double *const field[2], double *r, int threads)
{
    const int values = s->cells[0] * s->cells[1];
    const double weight = s->size[0] * s->size[1] / values;
    for (int d = 0; d < 2; d++) {
        sk_reduced_to_waves(s, s->middle, kinds[d], field[d], threads);
        for (int k = 0; k < s->closed; k++)
            r[k] +=
                weight * s->norm[k] * (d ? -wave_number(s, k, 0) : wave_number(s, k, 1)) * s->coefficients[place(s, k)];
    }
#pragma omp parallel for num_threads(threads) schedule(static) if ((double)values * s->extra.count > 1e5)
    for (int e = 0; e < s->extra.count; e++)
        r[s->closed + e] += weight * (dot(s->extra.u + (size_t)e * (size_t)values, field[0], values) +
                                      dot(s->extra.v + (size_t)e * (size_t)values, field[1], values));
}

/* du/dt = u x omega - grad(head): the modes have no part in the gradient. */
void sk_reduced_advect_by_points(sk_reduced_spectrum *s, const double *r, double *rate, int threads)
{
    const int values = s->cells[0] * s->cells[1];
    double *u = s->grid[0], *v = s->grid[1], *omega = s->grid[2];
    sk_reduced_middles(s, r, (double *const[3]){u, v, omega}, threads);
    for (int n = 0; n < values; n++) {
        const double x = omega[n] * v[n], y = -omega[n] * u[n];
        u[n] = x;
        v[n] = y;
    }
    memset(rate, 0, (size_t)s->count * sizeof *rate);
    sk_reduced_project(s, (const double *const[2]){u, v}, rate, threads);
}

static int has_open_side(const sk_reduced_spectrum *s)
{
    int open = 0;
    for (int d = 0; d < 2; d++)
        open |= s->family[d] != SK_REDUCED_CLOSED && s->family[d] != SK_REDUCED_PERIODIC;
    return open;
}

void sk_reduced_advect(sk_reduced_spectrum *s, const double *r, double *rate, int threads)
{
    if (s->extra.count || has_open_side(s))
        sk_reduced_advect_by_points(s, r, rate, threads);
    else if (s->triads)
        sk_reduced_advect_by_triads(s, r, rate);
    else
        sk_reduced_advect_by_transforms(s, r, rate, threads);
}

void sk_reduced_velocity(const sk_reduced_spectrum *s, const double *r, const double x[2], double velocity[2])
{
    velocity[0] = velocity[1] = 0.0;
    for (int k = 0; k < s->closed; k++) {
        double value[2], slope[2];
        for (int d = 0; d < 2; d++)
            sk_reduced_function(s, d, s->wave[k][d], x[d], &value[d], &slope[d]);
        velocity[0] += r[k] * s->norm[k] * wave_number(s, k, 1) * value[0] * slope[1];
        velocity[1] -= r[k] * s->norm[k] * wave_number(s, k, 0) * slope[0] * value[1];
    }
}

/* --- Time --- */

void sk_reduced_moments(const sk_reduced_spectrum *s, const double *r, double *energy, double *enstrophy)
{
    *energy = *enstrophy = 0.0;
    for (int k = 0; k < s->count; k++) {
        *energy += r[k] * r[k];
        *enstrophy += s->lambda[k] * r[k] * r[k];
    }
}

/* r <- (1 + a + b lambda) r, so that both moments are as before: Newton's method for a and b. With a single eigenvalue
 * the moments are proportional, and a alone is enough. Only eigenfunctions of a box that lets nothing through keep
 * their enstrophy. */
static void restore_moments(const sk_reduced_spectrum *s, double *r, double energy, double enstrophy)
{
    const int both = !has_open_side(s) && (!s->extra.count || s->extra.are_eigenfunctions);
    for (int pass = 0; pass < 3; pass++) {
        double m0 = 0.0, m1 = 0.0, m2 = 0.0;
        for (int k = 0; k < s->count; k++) {
            const double square = r[k] * r[k];
            m0 += square;
            m1 += s->lambda[k] * square;
            m2 += s->lambda[k] * s->lambda[k] * square;
        }
        const double determinant = m0 * m2 - m1 * m1;
        double a = m0 > 0.0 ? 0.5 * (energy - m0) / m0 : 0.0, b = 0.0;
        if (both && determinant > 1e-10 * m0 * m2) {
            a = 0.5 * ((energy - m0) * m2 - (enstrophy - m1) * m1) / determinant;
            b = 0.5 * ((enstrophy - m1) * m0 - (energy - m0) * m1) / determinant;
        }
        for (int k = 0; k < s->count; k++)
            r[k] *= 1.0 + a + b * s->lambda[k];
    }
}

static void decay(const sk_reduced_spectrum *s, double *r, double time)
{
    for (int k = 0; time > 0.0 && k < s->count; k++)
        r[k] *= exp(-time * s->lambda[k]);
}

void sk_reduced_step(sk_reduced_spectrum *s, double *r, double dt, double nu, int threads)
{
    static const double before[4] = {0.0, 0.5, 0.5, 1.0}, weight[4] = {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6};
    double energy, enstrophy;
    decay(s, r, 0.5 * nu * dt);
    sk_reduced_moments(s, r, &energy, &enstrophy);
    for (int n = 0; n < 4; n++) {
        for (int k = 0; k < s->count; k++)
            s->stage[k] = r[k] + (n ? before[n] * dt * s->k[n - 1][k] : 0.0);
        sk_reduced_advect(s, s->stage, s->k[n], threads);
    }
    for (int k = 0; k < s->count; k++)
        r[k] +=
            dt * (weight[0] * s->k[0][k] + weight[1] * s->k[1][k] + weight[2] * s->k[2][k] + weight[3] * s->k[3][k]);
    restore_moments(s, r, energy, enstrophy);
    decay(s, r, 0.5 * nu * dt);
}

/* to = A(r) x in the velocity form: A_kj = -sum_i (lambda_j + lambda_k - lambda_i) / 2 G_kij r_i, antisymmetric. */
static void apply_frozen(const sk_reduced_spectrum *s, const double *r, const double *x, double *to)
{
    memset(to, 0, (size_t)s->count * sizeof *to);
    for (int64_t n = 0; n < s->triad_count; n++) {
        const sk_reduced_triad *t = &s->triads[n];
        const int mode[3] = {t->a, t->b, t->c};
        for (int p = 0; p < 3; p++) {
            /* k, i, j in the order of the triad: G is +strength, and -strength with k and j exchanged. */
            const int k = mode[p], i = mode[(p + 1) % 3], j = mode[(p + 2) % 3];
            const double h = 0.5 * (s->lambda[j] + s->lambda[k] - s->lambda[i]) * t->strength * r[i];
            to[k] -= h * x[j];
            to[j] += h * x[k];
        }
    }
}

void sk_reduced_step_exponential(sk_reduced_spectrum *s, double *r, double dt, double nu)
{
    enum { MOST_TERMS = 60 };
    double *term = s->k[0], *next = s->k[1], *sum = s->k[2];
    memcpy(term, r, (size_t)s->count * sizeof *r);
    memcpy(sum, r, (size_t)s->count * sizeof *r);
    for (int order = 1; order <= MOST_TERMS; order++) {
        double size = 0.0, whole = 0.0;
        apply_frozen(s, r, term, next);
        for (int k = 0; k < s->count; k++) {
            term[k] = dt / order * (next[k] - nu * s->lambda[k] * term[k]);
            sum[k] += term[k];
            size += term[k] * term[k];
            whole += sum[k] * sum[k];
        }
        if (size <= 1e-32 * whole)
            break;
    }
    memcpy(r, sum, (size_t)s->count * sizeof *r);
}

/* --- Life --- */

static selkie_code make_tables(sk_reduced_spectrum *s, selkie_error *error)
{
    size_t most = 0;
    for (int d = 0; d < 2; d++) {
        s->points[d] = 3 * s->waves[d] / 2 + 1;
        SK_TRY(sk_reduced_table_make(&s->table[d], s, d, s->points[d], 0, error));
        if (s->cells[d]) {
            SK_TRY(sk_reduced_table_make(&s->middle[d], s, d, s->cells[d], 0, error));
            SK_TRY(sk_reduced_table_make(&s->node[d], s, d, s->cells[d] + 1, 1, error));
        }
    }
    const int ny = s->points[1] > s->cells[1] ? s->points[1] : s->cells[1] + 1;
    const size_t products = (size_t)s->points[0] * (size_t)s->points[1];
    most = (size_t)(s->cells[0] + 1) * (size_t)(s->cells[1] + 1);
    most = most > products ? most : products;

    s->coefficients = sk_allocate(s->memory, (size_t)s->waves[0] * (size_t)s->waves[1] * sizeof(double));
    s->half = sk_allocate(s->memory, (size_t)s->waves[0] * (size_t)(ny + 1) * sizeof(double));
    const size_t nx = (size_t)(s->points[0] > s->cells[0] ? s->points[0] : s->cells[0] + 1);
    s->fold = sk_allocate(s->memory, ((nx + 2) * (size_t)(ny + 1) + (size_t)s->waves[0] * (size_t)(ny + 2) +
                                      (size_t)s->waves[0] * (size_t)(s->waves[1] + 1)) *
                                         sizeof(double));
    int good = s->coefficients && s->half && s->fold;
    for (int n = 0; n < 5; n++)
        good &= (s->grid[n] = sk_allocate(s->memory, most * sizeof(double))) != NULL;
    return good ? SELKIE_OK : sk_fail(error, SELKIE_ERROR_MEMORY, "reduced.modes: no memory for the transforms");
}

static selkie_code make_extra(sk_reduced_spectrum *s, int room, int streams, selkie_error *error)
{
    sk_reduced_extra *extra = &s->extra;
    const size_t middles = (size_t)s->cells[0] * (size_t)s->cells[1],
                 nodes = (size_t)(s->cells[0] + 1) * (size_t)(s->cells[1] + 1);
    double **arrays[6] = {&extra->u, &extra->v, &extra->omega, &extra->node_u, &extra->node_v, &extra->stream};
    extra->room = room;
    for (int n = 0; n < (streams ? 6 : 5) && room; n++)
        if (!(*arrays[n] = sk_allocate(s->memory, (size_t)room * (n < 3 ? middles : nodes) * sizeof(double))))
            return sk_fail(error, SELKIE_ERROR_MEMORY, "reduced: no memory for %d further modes", room);
    return SELKIE_OK;
}

selkie_code sk_reduced_spectrum_make(sk_reduced_spectrum *s, const sk_reduced_box *box, sk_memory *memory,
                                     selkie_error *error)
{
    memset(s, 0, sizeof *s);
    s->memory = memory;
    s->closed = s->count = box->modes;
    memcpy(s->size, box->size, sizeof s->size);
    memcpy(s->family, box->family, sizeof s->family);
    memcpy(s->cells, box->cells, sizeof s->cells);

    const size_t most = (size_t)(box->modes + box->extra);
    s->wave = sk_allocate_zeroed(memory, most * sizeof *s->wave);
    s->at = sk_allocate_zeroed(memory, most * sizeof *s->at);
    double **arrays[9] = {&s->lambda, &s->norm, &s->number[0], &s->number[1], &s->stage,
                          &s->k[0],   &s->k[1], &s->k[2],      &s->k[3]};
    int good = s->wave && s->at;
    for (int n = 0; n < 9; n++)
        good &= (*arrays[n] = sk_allocate_zeroed(memory, most * sizeof(double))) != NULL;
    if (!good)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "reduced.modes: no memory for %d modes", box->modes);

    SK_TRY(choose_modes(s, error));
    SK_TRY(make_tables(s, error));
    SK_TRY(make_extra(s, box->extra, box->streams, error));
    const int walls = s->family[0] == SK_REDUCED_CLOSED && s->family[1] == SK_REDUCED_CLOSED;
    return walls && s->closed <= MOST_TRIAD_MODES ? make_triads(s, error) : SELKIE_OK;
}

/* The stream function at the nodes: the flux between a node and the corner of the box. */
static void integrate_stream(const sk_reduced_spectrum *s, const double *const node[2], double *stream)
{
    const double h[2] = {s->size[0] / s->cells[0], s->size[1] / s->cells[1]};
    const size_t column = (size_t)s->cells[1] + 1;
    stream[0] = 0.0;
    for (size_t i = 0; i <= (size_t)s->cells[0]; i++) {
        const size_t first = i * column;
        if (i > 0)
            stream[first] = stream[first - column] - 0.5 * h[0] * (node[1][first - column] + node[1][first]);
        for (size_t j = 1; j < column; j++)
            stream[first + j] = stream[first + j - 1] + 0.5 * h[1] * (node[0][first + j - 1] + node[0][first + j]);
    }
}

void sk_reduced_spectrum_add(sk_reduced_spectrum *s, double lambda, const double *const middle[3],
                             const double *const node[2])
{
    const size_t middles = (size_t)s->cells[0] * (size_t)s->cells[1],
                 nodes = (size_t)(s->cells[0] + 1) * (size_t)(s->cells[1] + 1);
    const size_t e = (size_t)s->extra.count++;
    double *const to[3] = {s->extra.u, s->extra.v, s->extra.omega}, *const on[2] = {s->extra.node_u, s->extra.node_v};
    for (int n = 0; n < 3; n++)
        memcpy(to[n] + e * middles, middle[n], middles * sizeof(double));
    for (int n = 0; n < 2; n++)
        memcpy(on[n] + e * nodes, node[n], nodes * sizeof(double));
    if (s->extra.stream)
        integrate_stream(s, node, s->extra.stream + e * nodes);
    s->lambda[s->count++] = lambda;
}

void sk_reduced_spectrum_take(sk_reduced_spectrum *s, int extra)
{
    const size_t nodes = (size_t)(s->cells[0] + 1) * (size_t)(s->cells[1] + 1);
    for (size_t e = 0; s->extra.stream && e < (size_t)extra; e++)
        integrate_stream(s, (const double *const[2]){s->extra.node_u + e * nodes, s->extra.node_v + e * nodes},
                         s->extra.stream + e * nodes);
    s->extra.count += extra;
    s->count += extra;
}

void sk_reduced_spectrum_free(sk_reduced_spectrum *s)
{
    void *pieces[] = {s->wave,        s->lambda,       s->norm,         s->triads,       s->coefficients, s->half,
                      s->grid[0],     s->grid[1],      s->grid[2],      s->grid[3],      s->grid[4],      s->k[0],
                      s->k[1],        s->k[2],         s->k[3],         s->stage,        s->extra.u,      s->extra.v,
                      s->extra.omega, s->extra.node_u, s->extra.node_v, s->extra.stream, s->number[0],    s->number[1],
                      s->at,          s->fold};
    for (size_t n = 0; n < sizeof pieces / sizeof *pieces; n++)
        sk_release(s->memory, pieces[n]);
    for (int d = 0; d < 2; d++) {
        sk_reduced_table_free(&s->table[d], s->memory);
        sk_reduced_table_free(&s->middle[d], s->memory);
        sk_reduced_table_free(&s->node[d], s->memory);
    }
    memset(s, 0, sizeof *s);
}
