#include "methods/reduced/spectrum.h"

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
    return a->wave[0] - b->wave[0];
}

static double eigenvalue(const double size[2], int32_t k1, int32_t k2)
{
    const double a = k1 * PI / size[0], b = k2 * PI / size[1];
    return a * a + b * b;
}

/* The `count` modes with the smallest eigenvalues. */
static selkie_code choose_modes(sk_reduced_spectrum *s, selkie_error *error)
{
    /* By Weyl, count is about Lx Ly lambda / (4 pi). Twice the area of that ellipse holds them. */
    const double reach = sqrt(8.0 * PI * (s->count + 64) / (s->size[0] * s->size[1]));
    const int most[2] = {(int)(reach * s->size[0] / PI) + 2, (int)(reach * s->size[1] / PI) + 2};
    size_t found = 0, room = (size_t)most[0] * (size_t)most[1];
    candidate *all = sk_allocate(s->memory, room * sizeof *all);
    if (!all)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "reduced.modes: no memory for %d modes", s->count);
    for (int32_t k1 = 1; k1 <= most[0]; k1++)
        for (int32_t k2 = 1; k2 <= most[1]; k2++)
            all[found++] = (candidate){eigenvalue(s->size, k1, k2), {k1, k2}};
    qsort(all, found, sizeof *all, compare_candidates);

    s->waves[0] = s->waves[1] = 1;
    for (int k = 0; k < s->count; k++)
        for (int d = 0; d < 2; d++) {
            s->lambda[k] = all[k].lambda;
            s->norm[k] = 2.0 / sqrt(all[k].lambda * s->size[0] * s->size[1]);
            s->wave[k][d] = all[k].wave[d];
            s->waves[d] = s->wave[k][d] > s->waves[d] ? s->wave[k][d] : s->waves[d];
        }
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
    for (int i = 0; i < s->count; i++)
        for (int j = i + 1; j < s->count; j++)
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
        return sk_fail(error, SELKIE_ERROR_MEMORY, "reduced.modes: no memory for %d modes", s->count);
    memset(number, 0xff, places * sizeof *number);
    for (int k = 0; k < s->count; k++)
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

/* --- Transforms, as products with tables of sines and cosines --- */

static selkie_code make_tables(sk_reduced_spectrum *s, selkie_error *error)
{
    size_t most_points = 0;
    for (int d = 0; d < 2; d++) {
        s->points[d] = 3 * s->waves[d] / 2 + 1;
        const size_t values = (size_t)s->waves[d] * (size_t)s->points[d];
        s->sine[d] = sk_allocate(s->memory, values * sizeof(double));
        s->cosine[d] = sk_allocate(s->memory, values * sizeof(double));
        if (!s->sine[d] || !s->cosine[d])
            return sk_fail(error, SELKIE_ERROR_MEMORY, "reduced.modes: no memory for the transforms");
        for (int k = 0; k < s->waves[d]; k++)
            for (int m = 0; m < s->points[d]; m++) {
                s->sine[d][k * s->points[d] + m] = sin((k + 1) * PI * (m + 0.5) / s->points[d]);
                s->cosine[d][k * s->points[d] + m] = cos((k + 1) * PI * (m + 0.5) / s->points[d]);
            }
    }
    most_points = (size_t)s->points[0] * (size_t)s->points[1];
    s->table = sk_allocate(s->memory, (size_t)s->waves[0] * (size_t)s->waves[1] * sizeof(double));
    s->half = sk_allocate(s->memory, (size_t)s->waves[0] * (size_t)s->points[1] * sizeof(double));
    double **grids[4] = {&s->u, &s->v, &s->p, &s->q};
    int good = s->table && s->half;
    for (int n = 0; n < 4; n++) {
        *grids[n] = sk_allocate(s->memory, most_points * sizeof(double));
        good &= *grids[n] != NULL;
    }
    return good ? SELKIE_OK : sk_fail(error, SELKIE_ERROR_MEMORY, "reduced.modes: no memory for the transforms");
}

/* to[m][n] = sum over k1, k2 of x[k1][m] table[k1][k2] y[k2][n]. Rows are independent: the same bits on any threads. */
static void to_points(const sk_reduced_spectrum *s, const double *x, const double *y, const int points[2], double *half,
                      double *to, int threads)
{
    const int k1s = s->waves[0], k2s = s->waves[1], nx = points[0], ny = points[1];
#pragma omp parallel for num_threads(threads) schedule(static) if (k1s * k2s > 1024)
    for (int k1 = 0; k1 < k1s; k1++) {
        double *row = half + (size_t)k1 * (size_t)ny;
        memset(row, 0, (size_t)ny * sizeof *row);
        for (int k2 = 0; k2 < k2s; k2++) {
            const double c = s->table[k1 * k2s + k2], *values = y + (size_t)k2 * (size_t)ny;
            for (int n = 0; n < ny; n++)
                row[n] += c * values[n];
        }
    }
#pragma omp parallel for num_threads(threads) schedule(static) if (k1s * k2s > 1024)
    for (int m = 0; m < nx; m++) {
        double *row = to + (size_t)m * (size_t)ny;
        memset(row, 0, (size_t)ny * sizeof *row);
        for (int k1 = 0; k1 < k1s; k1++) {
            const double c = x[(size_t)k1 * (size_t)nx + (size_t)m], *values = half + (size_t)k1 * (size_t)ny;
            for (int n = 0; n < ny; n++)
                row[n] += c * values[n];
        }
    }
}

/* table[k1][k2] = 4 / points x sum over m, n of x[k1][m] from[m][n] y[k2][n]: the coefficients of a product. */
static void to_waves(sk_reduced_spectrum *s, const double *x, const double *y, const double *from, int threads)
{
    const int k1s = s->waves[0], k2s = s->waves[1], nx = s->points[0], ny = s->points[1];
    const double scale = 4.0 / ((double)nx * ny);
#pragma omp parallel for num_threads(threads) schedule(static) if (k1s * k2s > 1024)
    for (int k1 = 0; k1 < k1s; k1++) {
        double *row = s->half + (size_t)k1 * (size_t)ny;
        memset(row, 0, (size_t)ny * sizeof *row);
        for (int m = 0; m < nx; m++) {
            const double c = x[(size_t)k1 * (size_t)nx + (size_t)m], *values = from + (size_t)m * (size_t)ny;
            for (int n = 0; n < ny; n++)
                row[n] += c * values[n];
        }
        for (int k2 = 0; k2 < k2s; k2++) {
            double sum = 0.0;
            for (int n = 0; n < ny; n++)
                sum += row[n] * y[(size_t)k2 * (size_t)ny + (size_t)n];
            s->table[k1 * k2s + k2] = scale * sum;
        }
    }
}

/* Coefficients of component d of the velocity into the table. */
static void fill_table(sk_reduced_spectrum *s, const double *r, int d)
{
    memset(s->table, 0, (size_t)s->waves[0] * (size_t)s->waves[1] * sizeof(double));
    for (int k = 0; k < s->count; k++) {
        const double along = s->wave[k][!d] * PI / s->size[!d];
        s->table[(s->wave[k][0] - 1) * s->waves[1] + s->wave[k][1] - 1] = (d ? -1.0 : 1.0) * r[k] * s->norm[k] * along;
    }
}

void sk_reduced_advect_by_transforms(sk_reduced_spectrum *s, const double *r, double *rate, int threads)
{
    /* Velocities on the grid: u is a sine along x and a cosine along y, v the other way round. */
    const int points = s->points[0] * s->points[1];
    fill_table(s, r, 0);
    to_points(s, s->sine[0], s->cosine[1], s->points, s->half, s->u, threads);
    fill_table(s, r, 1);
    to_points(s, s->cosine[0], s->sine[1], s->points, s->half, s->v, threads);
    for (int n = 0; n < points; n++) {
        s->p[n] = s->u[n] * s->v[n];
        s->q[n] = s->v[n] * s->v[n] - s->u[n] * s->u[n];
    }

    /* omega_t over lambda and the norm of the mode. */
    to_waves(s, s->sine[0], s->sine[1], s->p, threads);
    for (int k = 0; k < s->count; k++) {
        const double a = s->wave[k][0] * PI / s->size[0], b = s->wave[k][1] * PI / s->size[1];
        rate[k] = (a * a - b * b) * s->table[(s->wave[k][0] - 1) * s->waves[1] + s->wave[k][1] - 1];
    }
    to_waves(s, s->cosine[0], s->cosine[1], s->q, threads);
    for (int k = 0; k < s->count; k++) {
        const double a = s->wave[k][0] * PI / s->size[0], b = s->wave[k][1] * PI / s->size[1];
        rate[k] -= a * b * s->table[(s->wave[k][0] - 1) * s->waves[1] + s->wave[k][1] - 1];
        rate[k] /= s->lambda[k] * s->norm[k];
    }
}

void sk_reduced_advect(sk_reduced_spectrum *s, const double *r, double *rate, int threads)
{
    if (s->triads)
        sk_reduced_advect_by_triads(s, r, rate);
    else
        sk_reduced_advect_by_transforms(s, r, rate, threads);
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
 * the moments are proportional, and a alone is enough. */
static void restore_moments(const sk_reduced_spectrum *s, double *r, double energy, double enstrophy)
{
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
        if (determinant > 1e-10 * m0 * m2) {
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

/* --- Points --- */

void sk_reduced_velocity(const sk_reduced_spectrum *s, const double *r, const double x[2], double velocity[2])
{
    velocity[0] = velocity[1] = 0.0;
    for (int k = 0; k < s->count; k++) {
        const double a = s->wave[k][0] * PI / s->size[0], b = s->wave[k][1] * PI / s->size[1];
        velocity[0] += r[k] * s->norm[k] * b * sin(a * x[0]) * cos(b * x[1]);
        velocity[1] -= r[k] * s->norm[k] * a * cos(a * x[0]) * sin(b * x[1]);
    }
}

/* --- Life --- */

selkie_code sk_reduced_spectrum_make(sk_reduced_spectrum *s, const double size[2], int count, sk_memory *memory,
                                     selkie_error *error)
{
    memset(s, 0, sizeof *s);
    s->memory = memory;
    s->count = count;
    memcpy(s->size, size, sizeof s->size);
    s->wave = sk_allocate(memory, (size_t)count * sizeof *s->wave);
    double **arrays[7] = {&s->lambda, &s->norm, &s->stage, &s->k[0], &s->k[1], &s->k[2], &s->k[3]};
    int good = s->wave != NULL;
    for (int n = 0; n < 7; n++) {
        *arrays[n] = sk_allocate_zeroed(memory, (size_t)count * sizeof(double));
        good &= *arrays[n] != NULL;
    }
    if (!good)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "reduced.modes: no memory for %d modes", count);
    SK_TRY(choose_modes(s, error));
    SK_TRY(make_tables(s, error));
    return count <= MOST_TRIAD_MODES ? make_triads(s, error) : SELKIE_OK;
}

void sk_reduced_spectrum_free(sk_reduced_spectrum *s)
{
    void *pieces[] = {s->wave,      s->lambda, s->norm, s->triads, s->sine[0], s->sine[1], s->cosine[0],
                      s->cosine[1], s->table,  s->half, s->u,      s->v,       s->p,       s->q,
                      s->k[0],      s->k[1],   s->k[2], s->k[3],   s->stage};
    for (size_t n = 0; n < sizeof pieces / sizeof *pieces; n++)
        sk_release(s->memory, pieces[n]);
    memset(s, 0, sizeof *s);
}
