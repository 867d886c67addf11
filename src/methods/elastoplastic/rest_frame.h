/* What the phases of rest_shape share: sites, tiles of bricks, the law at one point. For files compiled per dimension.
 */
#ifndef SK_METHODS_REST_FRAME_H
#define SK_METHODS_REST_FRAME_H

#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "methods/elastoplastic/elastic_kernels.h"
#include "methods/elastoplastic/rest_kernels.h"
#include "methods/elastoplastic/rest_shape.h"

#define SK_REST_INLINE static inline __attribute__((unused))

enum {
    SK_BRICK_NZ = SELKIE_DIM == 3 ? SK_BRICK_N : 1,
    SK_BRICK_SITES = SK_BRICK_N * SK_BRICK_N * SK_BRICK_NZ,
    SK_BRICK_TILE_N = SK_BRICK_N + 2, /* a halo of one site */
    SK_BRICK_TILE_NZ = SELKIE_DIM == 3 ? SK_BRICK_TILE_N : 1,
    SK_BRICK_TILE = SK_BRICK_TILE_N * SK_BRICK_TILE_N * SK_BRICK_TILE_NZ,
    SK_REST_PUSH = SK_REST_MATRIX + 1 /* components of sk_rest_push */
};

/* Component c of a site's value in an array [sites / lanes][components][lanes]. */
SK_REST_INLINE size_t sk_rest_at(int components, int c, size_t site)
{
    return (site / SK_REST_LANES * (size_t)components + (size_t)c) * SK_REST_LANES + site % SK_REST_LANES;
}

/* Steps from a site of a tile to that of bond n. */
SK_REST_INLINE int sk_rest_tile_step(int n)
{
    return sk_rest_offset(n, 0) + SK_BRICK_TILE_N * sk_rest_offset(n, 1) +
           (SELKIE_DIM == 3 ? SK_BRICK_TILE_N * SK_BRICK_TILE_N * sk_rest_offset(n, 2) : 0);
}

/* A site of the brick in its tile. */
SK_REST_INLINE int sk_rest_tile_site(int x, int y, int z)
{
    return x + 1 + SK_BRICK_TILE_N * (y + 1) + (SELKIE_DIM == 3 ? SK_BRICK_TILE_N * SK_BRICK_TILE_N * (z + 1) : 0);
}

/* The site of bond n of a site; 0 = none. */
SK_REST_INLINE size_t sk_rest_beside(const sk_rest_shape *rest, size_t site, int n)
{
    const int local = (int)(site % SK_BRICK_SITES);
    int at[3] = {0, 0, 0}, beside = 0, place = 1;
    for (int d = 0; d < SELKIE_DIM; d++) {
        at[d] = (local >> (d * SK_BRICK_LOG) & SK_BRICK_MASK) + sk_rest_offset(n, d);
        beside += place * (at[d] < 0 ? 0 : at[d] < SK_BRICK_N ? 1 : 2);
        place *= 3;
    }
    const int32_t brick = rest->around[site / SK_BRICK_SITES][beside];
    size_t result = (size_t)brick * SK_BRICK_SITES;
    for (int d = 0; d < SELKIE_DIM; d++)
        result += (size_t)(at[d] & SK_BRICK_MASK) << (d * SK_BRICK_LOG);
    return brick ? result : 0;
}

/* --- The law at one point --- */

typedef struct sk_rest_sums {
    double energy, work; /* J/m3 times the number of points */
    double volume;       /*      sum of det F */
    float wave_speed;    /* m/s  */
} sk_rest_sums;

/* Plastic flow and stress of the point at a site with deformation F - 1: fills its push and its state. */
SK_REST_INLINE void sk_rest_point(sk_rest_shape *rest, float dt, size_t site, const float deformation[SK_REST_MATRIX],
                                  sk_rest_sums *sums)
{
    const sk_elastic_material *law = &rest->materials[rest->material[site]];
    const sk_rest_material *bonds = &rest->bonds_of[rest->material[site]];
    float f[SK_REST_MATRIX], f_inverse[SK_REST_MATRIX], inverse[SK_REST_MATRIX], elastic[SK_REST_MATRIX];
    sk_elastic_result result;
    sk_rest_push push;
    sk_plastic_state state = {rest->state[sk_rest_at(3, 0, site)], rest->state[sk_rest_at(3, 1, site)]};

    /* The elastic part of the deformation. */
    for (int n = 0; n < SK_REST_MATRIX; n++) {
        f[n] = deformation[n] + (n % (SELKIE_DIM + 1) == 0 ? 1.0f : 0.0f);
        elastic[n] = deformation[n];
        inverse[n] = rest->inverse[sk_rest_at(SK_REST_MATRIX, n, site)];
    }
    const int flows = rest->flow && law->plasticity != SK_PLASTIC_NONE;
    for (int n = 0; flows && n < SK_REST_MATRIX; n++)
        for (int k = 0; k < SELKIE_DIM; k++)
            elastic[n] += f[n - n % SELKIE_DIM + k] *
                          rest->flow[sk_rest_at(SK_REST_MATRIX, SELKIE_DIM * k + n % SELKIE_DIM, site)];

    /* Flow and stress. */
    SK_DIM(sk_elastic_point)(law, dt, elastic, &state, &result);
    sums->energy += result.energy;
    sums->work += result.work;
    sums->wave_speed = fmaxf(sums->wave_speed, result.wave_speed);
    sums->volume += (double)SK_DIM(sk_rest_inverse)(f, f_inverse);
    for (int n = 0; flows && n < SK_REST_MATRIX; n++) {
        float sum = n % (SELKIE_DIM + 1) == 0 ? -1.0f : 0.0f;
        for (int k = 0; k < SELKIE_DIM; k++)
            sum += f_inverse[n - n % SELKIE_DIM + k] *
                   (elastic[SELKIE_DIM * k + n % SELKIE_DIM] + (k == n % SELKIE_DIM ? 1.0f : 0.0f));
        rest->flow[sk_rest_at(SK_REST_MATRIX, n, site)] = sum;
    }
    SK_DIM(sk_rest_push_of)
    (bonds, result.stress, f_inverse, inverse, deformation, sk_rest_softening(bonds, state.strain), &push);

    /* Store. */
    for (int n = 0; n < SK_REST_MATRIX; n++)
        rest->push[sk_rest_at(SK_REST_PUSH, n, site)] = push.matrix[n];
    rest->push[sk_rest_at(SK_REST_PUSH, SK_REST_MATRIX, site)] = push.stiffness;
    rest->state[sk_rest_at(3, 0, site)] = state.strain;
    rest->state[sk_rest_at(3, 1, site)] = state.volume;
    rest->state[sk_rest_at(3, 2, site)] = result.equivalent;
}

/* Before the law: positions (and what flows) from the particles to their sites, sums of bricks. */
selkie_code SK_DIM(sk_rest_begin)(sk_step *step, sk_rest_sums **sums, selkie_error *error);
/* After the law: adds up the bricks in their order. */
void SK_DIM(sk_rest_end)(sk_step *step, const sk_rest_sums *sums);

#endif
