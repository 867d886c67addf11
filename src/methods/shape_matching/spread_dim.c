/* Impulses on a body of particles act on its whole motion, not on single particles: the grid does not resolve them, and
 * the result must not depend on the sampling. */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "methods/impulse_time.h"
#include "methods/shape_matching/response.h"
#include "methods/shape_matching/shape_kernels.h"

enum { SPAN = SK_SOFT_SPAN };

static uint32_t point_of(const sk_soft_region *region, uint32_t n)
{
    return region->members ? region->members[region->first + n] : region->first + n;
}

static uint32_t end_of(const sk_soft_region *region, uint32_t span)
{
    const uint32_t begin = span * SPAN;
    return region->count - begin < SPAN ? region->count : begin + SPAN;
}

static void offset_of(const sk_soft *soft, int body, uint32_t k, double y[3])
{
    const double *about = soft->states[body].position;
    y[2] = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++)
        y[d] = soft->points[k].position[d] - about[d];
}

/* Sums of a span of a region. `shares`: of the masses of points; NULL = all. */
static void sum_span(const sk_soft *soft, const sk_soft_region *region, const float *shares, const double *changes,
                     uint32_t span, sk_fit_sums *sums)
{
    memset(sums, 0, sizeof *sums);
    for (uint32_t n = span * SPAN; n < end_of(region, span); n++) {
        const uint32_t k = point_of(region, n);
        double y[3];
        if (soft->record[k] < 0)
            continue;
        offset_of(soft, region->body, k, y);
        sk_fit_add(shares ? (double)shares[k] : 1.0, y, changes + 3 * (size_t)k, sums);
    }
}

static void add_sums(sk_fit_sums *to, const sk_fit_sums *from)
{
    double *a = (double *)(void *)to;
    const double *b = (const double *)(const void *)from;
    for (size_t i = 0; i < sizeof *to / sizeof *a; i++)
        a[i] += b[i];
}

static void find_fit(const sk_fit_sums *sums, int linear, sk_fit *fit)
{
    const double m = sums->mass;
    double second[6], moments[9] = {0.0};
    soft_response response = {.is_linear = linear, .mass = m};
    memset(fit, 0, sizeof *fit);
    for (int d = 0; d < SELKIE_DIM; d++) {
        fit->centre[d] = sums->first[d] / m;
        fit->velocity[d] = sums->total[d] / m;
    }
    static const int rows[6] = {0, 0, 0, 1, 1, 2}, columns[6] = {0, 1, 2, 1, 2, 2};
    for (int i = 0; i < 6; i++)
        second[i] = sums->second[i] - m * fit->centre[rows[i]] * fit->centre[columns[i]];
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int e = 0; e < SELKIE_DIM; e++)
            moments[3 * d + e] = sums->moments[3 * d + e] - sums->total[d] * fit->centre[e];
    soft_set_moments(&response, second);
    soft_gradient(&response, moments, fit->gradient);
}

/* The force of the liquid, from the sums of the changes of all points with the mass 1 each. */
static void find_force(const sk_step *step, const sk_fit_sums *sums, int b)
{
    sk_soft_state *state = &step->soft->states[b];
    const double unit = step->soft->bodies[b].mass / sk_step_impulse_time(step);
    for (int d = 0; d < 3; d++) {
        const int e = (d + 1) % 3, f = (d + 2) % 3;
        state->force[d] = unit * sums->total[d];
        state->torque[d] = unit * (sums->moments[3 * f + e] - sums->moments[3 * e + f]);
    }
}

/* The sums of the bodies that liquid touches. */
static selkie_code sum_bodies(sk_step *step, const double *changes, sk_fit_sums **sums, selkie_error *error)
{
    sk_soft *soft = step->soft;
    sk_fit_sums *partial;
    SK_TRY(sk_step_scratch(step, ((size_t)soft->body_count + 1) * sizeof **sums, "bodies", (void **)sums, error));
    SK_TRY(sk_step_scratch(step, ((size_t)soft->span_count + 1) * sizeof *partial, "bodies", (void **)&partial, error));
    memset(*sums, 0, (size_t)soft->body_count * sizeof **sums);
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int s = 0; s < soft->span_count; s++) {
        const sk_soft_span *span = &soft->spans[s];
        const sk_soft_region whole = {.body = span->body, .first = span->begin, .count = span->end - span->begin};
        if (soft->bodies[span->body].is_wet)
            sum_span(soft, &whole, NULL, changes, 0, &partial[s]);
    }
    for (int s = 0; s < soft->span_count; s++)
        if (soft->bodies[soft->spans[s].body].is_wet)
            add_sums(&(*sums)[soft->spans[s].body], &partial[s]);
    return SELKIE_OK;
}

/* The motion of a cluster, from its own sums. */
static selkie_code spread_cluster(sk_step *step, const sk_soft_region *region, const double *changes,
                                  selkie_error *error)
{
    sk_soft *soft = step->soft;
    const int spans = (int)((region->count + SPAN - 1) / SPAN);
    sk_fit_sums *partial, total = {0};
    sk_fit fit;
    SK_TRY(sk_step_scratch(step, (size_t)(spans + 1) * sizeof *partial, "bodies", (void **)&partial, error));
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int s = 0; s < spans; s++)
        sum_span(soft, region, soft->shares, changes, (uint32_t)s, &partial[s]);
    for (int s = 0; s < spans; s++)
        add_sums(&total, &partial[s]);
    if (!(total.mass > 0.0))
        return SELKIE_OK;
    find_fit(&total, soft->bodies[region->body].soft.mode != SELKIE_SOFT_RIGID, &fit);
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int s = 0; s < spans; s++)
        for (uint32_t n = (uint32_t)s * SPAN; n < end_of(region, (uint32_t)s); n++) {
            const uint32_t k = point_of(region, n);
            double y[3];
            offset_of(soft, region->body, k, y);
            sk_fit_move(&fit, (double)soft->shares[k], y, soft->points[k].velocity);
        }
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_soft_spread)(sk_step *step, const double *changes, selkie_error *error)
{
    sk_soft *soft = step->soft;
    const double kick = sk_step_kick(step) * (1.0 + step->reflection);
    sk_fit_sums *sums;
    sk_fit *fits;
    SK_TRY(sum_bodies(step, changes, &sums, error));
    SK_TRY(sk_step_scratch(step, ((size_t)soft->body_count + 1) * sizeof *fits, "bodies", (void **)&fits, error));

    /* A body without clusters moves as one. */
    for (int b = 0; b < soft->body_count; b++) {
        find_force(step, &sums[b], b);
        memset(&fits[b], 0, sizeof fits[b]);
        if (sums[b].mass > 0.0 && soft->bodies[b].soft.clusters <= 1)
            find_fit(&sums[b], soft->bodies[b].soft.mode != SELKIE_SOFT_RIGID, &fits[b]);
        for (int d = 0; d < SELKIE_DIM; d++)
            fits[b].velocity[d] += kick * step->scene->gravity[d];
    }
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int s = 0; s < soft->span_count; s++)
        for (uint32_t k = soft->spans[s].begin; k < soft->spans[s].end; k++) {
            double y[3];
            if (soft->record[k] < 0)
                continue;
            offset_of(soft, soft->spans[s].body, k, y);
            sk_fit_move(&fits[soft->spans[s].body], 1.0, y, soft->points[k].velocity);
        }
    for (int r = 0; r < soft->region_count; r++)
        if (soft->regions[r].members && soft->bodies[soft->regions[r].body].is_wet)
            SK_TRY(spread_cluster(step, &soft->regions[r], changes, error));
    return SELKIE_OK;
}

/* --- Moments and bounds --- */

typedef struct span_moments {
    sk_soft_moments sums;
    double low[3], high[3];
    int moved; /* was a record elsewhere? */
} span_moments;

static void measure_span(sk_step *step, const sk_soft_span *span, span_moments *m)
{
    const sk_soft *soft = step->soft;
    memset(m, 0, sizeof *m);
    for (int d = 0; d < 3; d++) {
        m->low[d] = INFINITY;
        m->high[d] = -INFINITY;
    }
    for (uint32_t k = span->begin; k < span->end; k++) {
        const double *x = soft->points[k].position;
        double y[3];
        if (soft->record[k] < 0)
            continue;
        offset_of(soft, span->body, k, y);
        m->sums.count += 1.0;
        for (int d = 0; d < SELKIE_DIM && !soft->is_placed; d++) {
            float *place = &step->particles.records[soft->record[k]].position[d];
            m->moved |= *place != (float)x[d];
            *place = (float)x[d];
        }
        for (int d = 0; d < SELKIE_DIM; d++) {
            m->sums.first[d] += y[d];
            m->low[d] = x[d] < m->low[d] ? x[d] : m->low[d];
            m->high[d] = x[d] > m->high[d] ? x[d] : m->high[d];
        }
        for (int i = 0, d = 0; d < 3; d++)
            for (int e = d; e < 3; e++)
                m->sums.second[i++] += y[d] * y[e];
    }
}

selkie_code SK_DIM(sk_soft_measure)(sk_step *step, int *moved, selkie_error *error)
{
    sk_soft *soft = step->soft;
    span_moments *partial;
    SK_TRY(sk_step_scratch(step, ((size_t)soft->span_count + 1) * sizeof *partial, "bodies", (void **)&partial, error));
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int s = 0; s < soft->span_count; s++)
        measure_span(step, &soft->spans[s], &partial[s]);
    for (int b = 0; b < soft->body_count; b++) {
        memset(&soft->bodies[b].moments, 0, sizeof soft->bodies[b].moments);
        for (int d = 0; d < 3; d++) {
            soft->bodies[b].low[d] = INFINITY;
            soft->bodies[b].high[d] = -INFINITY;
        }
    }
    for (int s = 0; s < soft->span_count; s++) {
        sk_soft_body *body = &soft->bodies[soft->spans[s].body];
        const span_moments *m = &partial[s];
        if (moved)
            *moved |= m->moved;
        body->moments.count += m->sums.count;
        for (int i = 0; i < 6; i++)
            body->moments.second[i] += m->sums.second[i];
        for (int d = 0; d < 3; d++) {
            body->moments.first[d] += m->sums.first[d];
            body->low[d] = fmin(body->low[d], m->low[d]);
            body->high[d] = fmax(body->high[d], m->high[d]);
        }
    }
    return SELKIE_OK;
}
