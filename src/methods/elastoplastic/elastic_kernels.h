/* The law of one elastoplastic point: stress and energy over its principal stretches, and plastic flow.
 *
 * The elastic deformation gradient is F = U diag(s) V^T. All laws are isotropic: their energy (J per m3 at rest) is a
 * function of the stretches s, and Kirchhoff's stress is U diag(t) U^T with t_i = s_i dE/ds_i. With Lame's lambda and
 * mu, J the product of the stretches and e one of the strains below:
 *
 *   hencky      E = mu sum e_i^2 + lambda/2 (sum e_i)^2,  e = log s
 *   corotated   E = mu sum e_i^2 + lambda/2 (J - 1)^2,    e = s - 1       (Stomakhin et al. 2012)
 *   linear      E = mu sum e_i^2 + lambda/2 (sum e_i)^2,  e = s - 1       (Gerszewski, Eq. 4.9 is its derivative)
 *   squared     E = mu sum e_i^2 + lambda/2 (sum e_i)^2,  e = (s^2 - 1)/2 (squared stretches, as in his Fig. 4.4)
 *
 * In 2D the third stretch stays 1 (plane strain).
 *
 * Plastic flow acts on the logarithms of the stretches, whatever the elastic law is: their deviatoric part is the
 * shape, their sum the volume. The equivalent stress is q = 2 mu sqrt(3/2) |dev log s|. Flow lasts for a time, not for
 * a step: the excess over the yield stress decays as exp(-time / flow_time), so results do not depend on the step.
 * Sand follows Klar et al. 2016 with the volume correction of Tampubolon et al. 2017.
 *
 * References: J. Irving et al., SCA 2004. A. W. Bargteil et al., A finite element method for animating large
 * viscoplastic flow, SIGGRAPH 2007. A. Stomakhin et al., Energetically consistent invertible elasticity, SCA 2012.
 * G. Klar et al., Drucker-Prager elastoplasticity for sand animation, SIGGRAPH 2016. A. P. Tampubolon et al.,
 * Multi-species simulation of porous sand and water mixtures, SIGGRAPH 2017.
 */
#ifndef SK_METHODS_ELASTIC_KERNELS_H
#define SK_METHODS_ELASTIC_KERNELS_H

#include <math.h>

#include "base/dimension.h"
#include "base/kernel.h"
#include "linalg/small_dense_kernels.h"

enum { SK_ELASTIC_HENCKY, SK_ELASTIC_COROTATED, SK_ELASTIC_LINEAR, SK_ELASTIC_SQUARED };
enum { SK_PLASTIC_NONE, SK_PLASTIC_VON_MISES, SK_PLASTIC_DRUCKER_PRAGER };

typedef struct sk_elastic_material {
    int law, plasticity;
    int keeps_volume;
    float lambda, mu;       /* Pa    Lame's constants */
    float yield, hardening; /* Pa    */
    float flow_time;        /* s     0 = at once */
    float thickening;       /* Pa    0 = none */
    float cone;             /*       drucker_prager: |dev t| is at most cone times -(sum t) */
    float tip;              /*       drucker_prager: sum of the logarithms at which cohesion ends */
    float tear;             /*       logarithm of the stretch at which it tears; 0 = never */
    float inverse_density;  /* m3/kg at rest */
    float wave_speed;       /* m/s   of pressure waves at rest */
    float relative_mass;    /*       mass of a point over that of the first material */
} sk_elastic_material;

/* What a point keeps of its plastic flow. */
typedef struct sk_plastic_state {
    float strain; /* equivalent plastic strain since the start; drucker_prager: likewise */
    float volume; /* drucker_prager: logarithm of the volume that it gained by coming apart; else 1 = torn */
} sk_plastic_state;

/* The least stretch: a point that is squeezed further, or turned inside out, counts as this. */
#define SK_LEAST_STRETCH 0.02f

/* Principal values of Kirchhoff's stress, Pa; returns the energy, J/m3. */
SK_KERNEL float SK_DIM(sk_elastic_stress)(const sk_elastic_material *material, const float stretch[SELKIE_DIM],
                                          float stress[SELKIE_DIM])
{
    float strain[SELKIE_DIM], sum = 0.0f, squares = 0.0f, product = 1.0f;
    const int law = material->law;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float s = stretch[d];
        strain[d] = law == SK_ELASTIC_HENCKY    ? logf(s > SK_LEAST_STRETCH ? s : SK_LEAST_STRETCH)
                    : law == SK_ELASTIC_SQUARED ? 0.5f * (s * s - 1.0f)
                                                : s - 1.0f;
        sum += strain[d];
        squares += strain[d] * strain[d];
        product *= s;
    }
    const float twice_mu = 2.0f * material->mu;
    if (law == SK_ELASTIC_COROTATED) {
        const float pressure = material->lambda * (product - 1.0f) * product;
        for (int d = 0; d < SELKIE_DIM; d++)
            stress[d] = twice_mu * strain[d] * stretch[d] + pressure;
        return material->mu * squares + 0.5f * material->lambda * (product - 1.0f) * (product - 1.0f);
    }
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float s = stretch[d];
        const float slope = law == SK_ELASTIC_HENCKY ? 1.0f : law == SK_ELASTIC_SQUARED ? s * s : s;
        stress[d] = (twice_mu * strain[d] + material->lambda * sum) * slope;
    }
    return material->mu * squares + 0.5f * material->lambda * sum * sum;
}

/* Equivalent stress (von Mises), Pa, from principal stresses. */
SK_KERNEL float SK_DIM(sk_equivalent_stress)(const float stress[SELKIE_DIM])
{
    float mean = 0.0f, squares = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        mean += stress[d] * (1.0f / SELKIE_DIM);
    for (int d = 0; d < SELKIE_DIM; d++)
        squares += (stress[d] - mean) * (stress[d] - mean);
    return sqrtf(1.5f * squares);
}

/* Flow above a yield stress in a time dt (s). `mean` and `shape` are the mean of the logarithms of the stretches and
 * their deviations from it. Returns the work that becomes heat, J/m3. */
SK_KERNEL float SK_DIM(sk_flow_von_mises)(const sk_elastic_material *material, float dt, float *mean,
                                          float shape[SELKIE_DIM], sk_plastic_state *state)
{
    float squares = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        squares += shape[d] * shape[d];
    const float stiffness = 3.0f * material->mu, q = 2.0f * material->mu * sqrtf(1.5f * squares);
    const float excess = q - material->yield - material->hardening * state->strain;
    if (!(excess > 0.0f))
        return 0.0f;
    const float slower = material->thickening > 0.0f ? q / material->thickening : 1.0f;
    const float share = material->flow_time > 0.0f ? -expm1f(-dt / (material->flow_time * slower)) : 1.0f;
    const float flow = share * excess / (stiffness + material->hardening), left = 1.0f - stiffness * flow / q;
    for (int d = 0; d < SELKIE_DIM; d++)
        shape[d] *= left;
    if (!material->keeps_volume)
        *mean *= left;
    state->strain += flow;
    return (q - 0.5f * stiffness * flow) * flow;
}

/* Flow of grains. They slide where shear stress is above friction times pressure, and come apart under tension. A point
 * that came apart closes the gap before it feels pressure again. */
SK_KERNEL float SK_DIM(sk_flow_drucker_prager)(const sk_elastic_material *material, float *mean,
                                               float shape[SELKIE_DIM], sk_plastic_state *state)
{
    const float volume = 2.0f * material->mu + SELKIE_DIM * material->lambda;
    float squares = 0.0f, sum = SELKIE_DIM * *mean + state->volume;
    for (int d = 0; d < SELKIE_DIM; d++)
        squares += shape[d] * shape[d];
    const float length = sqrtf(squares), pressed = sum - material->tip;
    if (pressed >= 0.0f) {
        for (int d = 0; d < SELKIE_DIM; d++)
            shape[d] = 0.0f;
        state->volume = pressed;
        state->strain += 0.81649658f * length;
        *mean = material->tip * (1.0f / SELKIE_DIM);
        return 0.0f;
    }
    state->volume = 0.0f;
    *mean = sum * (1.0f / SELKIE_DIM);
    const float allowed = -material->cone * pressed * volume / (2.0f * material->mu), slip = length - allowed;
    if (!(slip > 0.0f))
        return 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        shape[d] *= allowed / length;
    state->strain += 0.81649658f * slip;
    return 2.0f * material->mu * (allowed + 0.5f * slip) * slip;
}

/* A torn point takes no tension. */
SK_KERNEL void SK_DIM(sk_flow_torn)(const sk_elastic_material *material, float *mean, float shape[SELKIE_DIM],
                                    sk_plastic_state *state)
{
    for (int d = 0; d < SELKIE_DIM; d++)
        if (*mean + shape[d] > material->tear)
            state->volume = 1.0f;
    if (state->volume == 0.0f || *mean < 0.0f)
        return;
    *mean = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        shape[d] = 0.0f;
}

/* Plastic flow of the stretches in a time dt (s). Returns the work that becomes heat, J/m3. */
SK_KERNEL float SK_DIM(sk_plastic_flow)(const sk_elastic_material *material, float dt, float stretch[SELKIE_DIM],
                                        sk_plastic_state *state)
{
    float mean = 0.0f, shape[SELKIE_DIM], work = 0.0f;
    if (material->plasticity == SK_PLASTIC_NONE && !(material->tear > 0.0f))
        return 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++) {
        shape[d] = logf(stretch[d] > SK_LEAST_STRETCH ? stretch[d] : SK_LEAST_STRETCH);
        mean += shape[d] * (1.0f / SELKIE_DIM);
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        shape[d] -= mean;
    if (material->plasticity == SK_PLASTIC_VON_MISES)
        work = SK_DIM(sk_flow_von_mises)(material, dt, &mean, shape, state);
    if (material->plasticity == SK_PLASTIC_DRUCKER_PRAGER)
        work = SK_DIM(sk_flow_drucker_prager)(material, &mean, shape, state);
    else if (material->tear > 0.0f)
        SK_DIM(sk_flow_torn)(material, &mean, shape, state);
    for (int d = 0; d < SELKIE_DIM; d++)
        stretch[d] = expf(mean + shape[d]);
    return work;
}

/* At least the largest of some numbers, and 0: mean + sqrt(1 - 1/d) |deviations|. */
SK_KERNEL float SK_DIM(sk_largest_of)(const float number[SELKIE_DIM])
{
    float mean = 0.0f, squares = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        mean += number[d] * (1.0f / SELKIE_DIM);
    for (int d = 0; d < SELKIE_DIM; d++)
        squares += (number[d] - mean) * (number[d] - mean);
    const float bound = mean + sqrtf((1.0f - 1.0f / SELKIE_DIM) * squares);
    return bound > 0.0f ? bound : 0.0f;
}

/* Speed of pressure waves in a stretched point, m/s, as the grid sees it, which does not stretch: at least that at
 * rest. A wave is a change a n^T F of F. Terms of the law in e = s - 1 answer with 2 mu s^2, that in J with lambda J^2,
 * since J is linear in a; squares answer with more. Hencky's law keeps its speed: the logarithm of a stretch does not
 * know which length counts as 1. */
SK_KERNEL float SK_DIM(sk_elastic_wave)(const sk_elastic_material *material, const float stretch[SELKIE_DIM])
{
    float excess[SELKIE_DIM], volume = 1.0f;
    const int squared = material->law == SK_ELASTIC_SQUARED;
    if (material->law == SK_ELASTIC_HENCKY)
        return material->wave_speed;
    for (int d = 0; d < SELKIE_DIM; d++) {
        excess[d] = squared ? stretch[d] * stretch[d] - 1.0f : stretch[d] - 1.0f;
        volume *= stretch[d];
    }
    const float largest = 1.0f + SK_DIM(sk_largest_of)(excess);
    if (squared)
        return material->wave_speed * sqrtf(largest * (1.5f * largest - 0.5f));
    if (material->law == SK_ELASTIC_LINEAR)
        return material->wave_speed * largest;
    const float volume2 = volume * volume > 1.0f ? volume * volume : 1.0f;
    return sqrtf((2.0f * material->mu * largest * largest + material->lambda * volume2) * material->inverse_density);
}

/* What the law finds for a point. */
typedef struct sk_elastic_result {
    float stress[SELKIE_DIM * SELKIE_DIM]; /* Pa    Kirchhoff's, row-major */
    float equivalent;                      /* Pa    */
    float energy, work;                    /* J/m3  stored; turned into heat in the step */
    float wave_speed;                      /* m/s   */
} sk_elastic_result;

/* One point in a time dt (s): plastic flow changes its deformation (F - 1, row-major), and stress follows. */
SK_KERNEL void SK_DIM(sk_elastic_point)(const sk_elastic_material *material, float dt,
                                        float deformation[SELKIE_DIM * SELKIE_DIM], sk_plastic_state *state,
                                        sk_elastic_result *result)
{
    float f[SELKIE_DIM * SELKIE_DIM], u[SELKIE_DIM * SELKIE_DIM], v[SELKIE_DIM * SELKIE_DIM];
    float stretch[SELKIE_DIM], stress[SELKIE_DIM];
    for (int n = 0; n < SELKIE_DIM * SELKIE_DIM; n++)
        f[n] = deformation[n] + (n % (SELKIE_DIM + 1) == 0 ? 1.0f : 0.0f);
    SK_DIM(sk_svd)(f, u, stretch, v);

    /* Plastic flow changes the stretches. */
    result->work = 0.0f;
    if (material->plasticity != SK_PLASTIC_NONE || material->tear > 0.0f) {
        result->work = SK_DIM(sk_plastic_flow)(material, dt, stretch, state);
        for (int i = 0; i < SELKIE_DIM; i++)
            for (int j = 0; j < SELKIE_DIM; j++) {
                float sum = i == j ? -1.0f : 0.0f;
                for (int k = 0; k < SELKIE_DIM; k++)
                    sum += u[SELKIE_DIM * i + k] * stretch[k] * v[SELKIE_DIM * j + k];
                deformation[SELKIE_DIM * i + j] = sum;
            }
    }

    /* Stress in the axes of the grid. */
    result->energy = SK_DIM(sk_elastic_stress)(material, stretch, stress);
    result->equivalent = SK_DIM(sk_equivalent_stress)(stress);
    result->wave_speed = SK_DIM(sk_elastic_wave)(material, stretch);
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = 0; j < SELKIE_DIM; j++) {
            float sum = 0.0f;
            for (int k = 0; k < SELKIE_DIM; k++)
                sum += u[SELKIE_DIM * i + k] * stress[k] * u[SELKIE_DIM * j + k];
            result->stress[SELKIE_DIM * i + j] = sum;
        }
}

#endif
