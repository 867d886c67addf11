/* Impulses on a body of particles act on its whole motion, not on single particles: the grid does not resolve them, and
 * the result must not depend on the sampling. */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "methods/shape_matching/response.h"
#include "methods/shape_matching/shape_kernels.h"

enum { SPAN = 2048 }; /* points of a partial sum, added in order */

static uint32_t point_of(const sk_soft_region *region, uint32_t n)
{
    return region->members ? region->members[region->first + n] : region->first + n;
}

static double share_of(const sk_soft *soft, uint32_t k)
{
    return (double)soft->shares[k];
}

static uint32_t end_of(const sk_soft_region *region, uint32_t span)
{
    const uint32_t begin = span * SPAN;
    return region->count - begin < SPAN ? region->count : begin + SPAN;
}

static void offset_of(const sk_soft *soft, const sk_soft_region *region, uint32_t k, double y[3])
{
    const double *about = soft->states[region->body].position;
    y[2] = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++)
        y[d] = soft->points[k].position[d] - about[d];
}

static void sum_span(const sk_soft *soft, const sk_soft_region *region, const double *changes, uint32_t span,
                     sk_fit_sums *sums)
{
    memset(sums, 0, sizeof *sums);
    for (uint32_t n = span * SPAN; n < end_of(region, span); n++) {
        const uint32_t k = point_of(region, n);
        double y[3];
        if (soft->record[k] < 0)
            continue;
        offset_of(soft, region, k, y);
        sk_fit_add(share_of(soft, k), y, changes + 3 * (size_t)k, sums);
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

selkie_code SK_DIM(sk_soft_spread)(sk_step *step, int b, const double *changes, selkie_error *error)
{
    sk_soft *soft = step->soft;
    const int linear = soft->bodies[b].soft.mode != SELKIE_SOFT_RIGID;
    for (int r = 0; r < soft->region_count; r++) {
        const sk_soft_region *region = &soft->regions[r];
        const int spans = (int)((region->count + SPAN - 1) / SPAN);
        sk_fit_sums *partial, total = {0};
        sk_fit fit;
        if (region->body != b || region->is_frame)
            continue;
        SK_TRY(sk_step_scratch(step, (size_t)(spans + 1) * sizeof *partial, "bodies", (void **)&partial, error));
#pragma omp parallel for num_threads(step->threads) schedule(static)
        for (int s = 0; s < spans; s++)
            sum_span(soft, region, changes, (uint32_t)s, &partial[s]);
        for (int s = 0; s < spans; s++)
            add_sums(&total, &partial[s]);
        if (!(total.mass > 0.0))
            continue;
        find_fit(&total, linear, &fit);
#pragma omp parallel for num_threads(step->threads) schedule(static)
        for (int s = 0; s < spans; s++)
            for (uint32_t n = (uint32_t)s * SPAN; n < end_of(region, (uint32_t)s); n++) {
                const uint32_t k = point_of(region, n);
                double y[3];
                offset_of(soft, region, k, y);
                sk_fit_move(&fit, share_of(soft, k), y, soft->points[k].velocity);
            }
    }
    return SELKIE_OK;
}
