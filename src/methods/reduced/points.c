#include "methods/reduced/points.h"

#include <math.h>
#include <string.h>

selkie_code sk_mode_points_make(sk_mode_points *points, const sk_reduced_spectrum *s, int count, selkie_error *error)
{
    memset(points, 0, sizeof *points);
    points->memory = s->memory;
    points->count = count;
    points->x = sk_allocate_zeroed(s->memory, ((size_t)count + 1) * sizeof *points->x);
    int good = points->x != NULL;
    for (int d = 0; d < 2; d++) {
        points->waves[d] = s->waves[d];
        points->table[d] = sk_allocate_zeroed(s->memory, ((size_t)count + 1) * (size_t)s->waves[d] * sizeof(double));
        good &= points->table[d] != NULL;
    }
    return good ? SELKIE_OK : sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory for modes at %d points", count);
}

void sk_mode_points_free(sk_mode_points *points)
{
    sk_release(points->memory, points->x);
    sk_release(points->memory, points->table[0]);
    sk_release(points->memory, points->table[1]);
    memset(points, 0, sizeof *points);
}

/* Multiples of an angle by rotation: a sine and a cosine for each axis instead of one for each wave. */
void sk_mode_points_place(sk_mode_points *points, const sk_reduced_spectrum *s, int n, const double x[2])
{
    for (int d = 0; d < 2; d++) {
        const int family = s->family[d], waves = points->waves[d], periodic = family == SK_REDUCED_PERIODIC;
        const int half = family == SK_REDUCED_OPEN_LOW || family == SK_REDUCED_OPEN_HIGH;
        const int is_cosine = family == SK_REDUCED_OPEN || family == SK_REDUCED_OPEN_LOW;
        const double base = sk_reduced_wave_number(s, d, 1) * x[d], step = half ? 2.0 * base : base;
        const double c = cos(step), sine = sin(step);
        double *to = points->table[d] + (size_t)n * (size_t)waves;
        double re = half ? cos(base) : sk_reduced_first(family) ? c : 1.0;
        double im = half ? sin(base) : sk_reduced_first(family) ? sine : 0.0;
        points->x[n][d] = x[d];
        for (int w = 0; w < waves; w++) {
            /* Periodic functions: 1, then sine and cosine of each multiple. */
            to[w] = periodic ? (w & 1 ? im : re) : is_cosine ? re : im;
            if (periodic && w & 1)
                continue;
            const double next = c * re - sine * im;
            im = c * im + sine * re;
            re = next;
        }
    }
}

/* Weights of the four nodes around a point, and the first of them. */
static size_t around(const sk_reduced_spectrum *s, const double x[2], double weight[4])
{
    int at[2];
    double part[2];
    for (int d = 0; d < 2; d++) {
        const double g = fmin(fmax(x[d] * s->cells[d] / s->size[d], 0.0), s->cells[d]);
        at[d] = g < s->cells[d] ? (int)g : s->cells[d] - 1;
        part[d] = g - at[d];
    }
    weight[0] = (1.0 - part[0]) * (1.0 - part[1]);
    weight[1] = (1.0 - part[0]) * part[1];
    weight[2] = part[0] * (1.0 - part[1]);
    weight[3] = part[0] * part[1];
    return (size_t)at[0] * (size_t)(s->cells[1] + 1) + (size_t)at[1];
}

/* Stream function of the further modes at a point, m2/s. */
static double stream_of_extra(const sk_reduced_spectrum *s, const double x[2], const double *r)
{
    const size_t column = (size_t)s->cells[1] + 1, nodes = (size_t)(s->cells[0] + 1) * column;
    double w[4], sum = 0.0;
    const size_t first = around(s, x, w);
    for (int e = 0; e < s->extra.count; e++) {
        const double *at = s->extra.stream + (size_t)e * nodes + first;
        sum += r[s->closed + e] * (w[0] * at[0] + w[1] * at[1] + w[2] * at[column] + w[3] * at[column + 1]);
    }
    return sum;
}

static void add_extra(const sk_reduced_spectrum *s, const double x[2], double circulation, double *r)
{
    const size_t column = (size_t)s->cells[1] + 1, nodes = (size_t)(s->cells[0] + 1) * column;
    double w[4];
    const size_t first = around(s, x, w);
    for (int e = 0; e < s->extra.count; e++) {
        const double *at = s->extra.stream + (size_t)e * nodes + first;
        if (s->lambda[s->closed + e] == 0.0)
            continue; /* a mean flow: the sheets and their images have none */
        r[s->closed + e] += circulation * (w[0] * at[0] + w[1] * at[1] + w[2] * at[column] + w[3] * at[column + 1]);
    }
}

enum { GROUP = 4 }; /* points that share the loads of a row of coefficients */

/* The functions of a group of points along an axis; the last point stands for missing ones. */
static void functions_of(const sk_mode_points *points, int d, int first, int end, const double *at[GROUP])
{
    for (int g = 0; g < GROUP; g++)
        at[g] = points->table[d] + (size_t)(first + g < end ? first + g : end - 1) * (size_t)points->waves[d];
}

void sk_mode_points_stream(const sk_mode_points *points, sk_reduced_spectrum *s, const double *r, int first, int end,
                           double *stream)
{
    const size_t k1 = (size_t)s->waves[0], k2 = (size_t)s->waves[1];
    memset(s->coefficients, 0, k1 * k2 * sizeof(double));
    for (int k = 0; k < s->closed; k++)
        s->coefficients[s->at[k]] = r[k] * s->norm[k];
    for (int n = first; n < end; n += GROUP) {
        const double *x[GROUP], *y[GROUP];
        double sum[GROUP] = {0.0};
        functions_of(points, 0, n, end, x);
        functions_of(points, 1, n, end, y);
        for (size_t b = 0; b < k2; b++) {
            double row[GROUP] = {0.0};
            for (size_t a = 0; a < k1; a++)
                for (int g = 0; g < GROUP; g++)
                    row[g] += x[g][a] * s->coefficients[a * k2 + b];
            for (int g = 0; g < GROUP; g++)
                sum[g] += row[g] * y[g][b];
        }
        for (int g = 0; g < GROUP && n + g < end; g++)
            stream[n + g - first] = sum[g] + (s->extra.count ? stream_of_extra(s, points->x[n + g], r) : 0.0);
    }
}

void sk_mode_points_add(const sk_mode_points *points, sk_reduced_spectrum *s, const double *circulation, double *r)
{
    const size_t k1 = (size_t)s->waves[0], k2 = (size_t)s->waves[1];
    memset(s->coefficients, 0, k1 * k2 * sizeof(double));
    for (int n = 0; n < points->count; n += GROUP) {
        const double *x[GROUP], *y[GROUP];
        double part[GROUP];
        functions_of(points, 0, n, points->count, x);
        functions_of(points, 1, n, points->count, y);
        for (int g = 0; g < GROUP; g++)
            part[g] = n + g < points->count ? circulation[n + g] : 0.0;
        for (size_t a = 0; a < k1; a++) {
            const double v0 = part[0] * x[0][a], v1 = part[1] * x[1][a], v2 = part[2] * x[2][a], v3 = part[3] * x[3][a];
            double *coefficients = s->coefficients + a * k2;
            for (size_t b = 0; b < k2; b++)
                coefficients[b] += (v0 * y[0][b] + v1 * y[1][b]) + (v2 * y[2][b] + v3 * y[3][b]);
        }
        for (int g = 0; g < GROUP && n + g < points->count && s->extra.count; g++)
            add_extra(s, points->x[n + g], circulation[n + g], r);
    }
    for (int k = 0; k < s->closed; k++)
        r[k] += s->norm[k] * s->coefficients[s->at[k]];
}
