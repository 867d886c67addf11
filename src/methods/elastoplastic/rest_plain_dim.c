/* Stress and bonds of rest_shape in plain form: one point and one bond at a time. */
#include "methods/elastoplastic/rest_frame.h"

/* Displacement of bond n against the rest shape, m. */
static void displacement(const sk_rest_shape *rest, size_t site, size_t other, int n, float e[3])
{
    const float spacing = (float)rest->spacing;
    for (int d = 0; d < SELKIE_DIM; d++)
        e[d] = rest->position[sk_rest_at(SELKIE_DIM, d, other)] - rest->position[sk_rest_at(SELKIE_DIM, d, site)] -
               spacing * (float)sk_rest_offset(n, d);
}

static int has_bond(const sk_rest_shape *rest, size_t site, int n)
{
    return n != SK_REST_CENTRE && rest->bonds[site] >> n & 1;
}

static void stress_of_site(sk_rest_shape *rest, float dt, size_t site, sk_rest_sums *sums)
{
    float moment[SK_REST_MATRIX] = {0}, inverse[SK_REST_MATRIX], deformation[SK_REST_MATRIX], e[3];
    for (int n = 0; n < SK_NEIGHBOURS; n++)
        if (has_bond(rest, site, n)) {
            displacement(rest, site, sk_rest_beside(rest, site, n), n, e);
            SK_DIM(sk_rest_fit)(n, e, moment);
        }
    for (int n = 0; n < SK_REST_MATRIX; n++)
        inverse[n] = rest->inverse[sk_rest_at(SK_REST_MATRIX, n, site)];
    SK_DIM(sk_rest_deformation)(moment, inverse, (float)(1.0 / rest->spacing), deformation);
    sk_rest_point(rest, dt, site, deformation, sums);
}

selkie_code SK_DIM(sk_rest_stress_plain)(sk_step *step, selkie_error *error)
{
    sk_rest_shape *rest = sk_rest_shape_of(step);
    sk_rest_sums *sums;
    SK_TRY(SK_DIM(sk_rest_begin)(step, &sums, error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int brick = 1; brick < rest->brick_count; brick++) {
        sums[brick] = (sk_rest_sums){0};
        for (size_t site = (size_t)brick * SK_BRICK_SITES; site < (size_t)(brick + 1) * SK_BRICK_SITES; site++)
            if (rest->bonds[site])
                stress_of_site(rest, (float)step->last_dt, site, &sums[brick]);
    }
    SK_DIM(sk_rest_end)(step, sums);
    return SELKIE_OK;
}

static void load_push(const sk_rest_shape *rest, size_t site, sk_rest_push *push)
{
    for (int n = 0; n < SK_REST_MATRIX; n++)
        push->matrix[n] = rest->push[sk_rest_at(SK_REST_PUSH, n, site)];
    push->stiffness = rest->push[sk_rest_at(SK_REST_PUSH, SK_REST_MATRIX, site)];
}

static void pull_site(sk_rest_shape *rest, size_t site)
{
    sk_rest_push own, other;
    float acceleration[3] = {0, 0, 0}, e[3];
    load_push(rest, site, &own);
    for (int n = 0; n < SK_NEIGHBOURS; n++)
        if (has_bond(rest, site, n)) {
            const size_t beside = sk_rest_beside(rest, site, n);
            load_push(rest, beside, &other);
            displacement(rest, site, beside, n, e);
            SK_DIM(sk_rest_pull)(n, &own, &other, e, acceleration);
        }
    for (int d = 0; d < SELKIE_DIM; d++)
        rest->acceleration[sk_rest_at(SELKIE_DIM, d, site)] = acceleration[d];
}

selkie_code SK_DIM(sk_rest_bonds_plain)(sk_step *step, selkie_error *error)
{
    sk_rest_shape *rest = sk_rest_shape_of(step);
    (void)error;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int brick = 1; brick < rest->brick_count; brick++)
        for (size_t site = (size_t)brick * SK_BRICK_SITES; site < (size_t)(brick + 1) * SK_BRICK_SITES; site++)
            if (rest->bonds[site])
                pull_site(rest, site);
    return SELKIE_OK;
}
