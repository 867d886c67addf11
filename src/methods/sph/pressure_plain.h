/* The pressure system of SPH at one particle, for the plain form and the GPU: right side, operator, steps of the
 * solvers. solve.c has the equations. For files compiled per dimension.
 *
 * The file that includes this one has defined the type `plain_list`, the list of one particle, with the number of its
 * neighbours in `count`, and neighbour_at: neighbour k with its gradient.
 */
#ifndef SK_METHODS_SPH_PRESSURE_PLAIN_H
#define SK_METHODS_SPH_PRESSURE_PLAIN_H

#include <string.h>

#include "methods/sph/solve.h"
#include "methods/sph/sph_pair_kernels.h"

/* A vector of four floats; it is aligned, and one load where the compiler has one. */
SK_KERNEL void load_four(const float from[4], float to[4])
{
#ifdef __CUDACC__
    const float4 all = *(const float4 *)(const void *)from;
    to[0] = all.x, to[1] = all.y, to[2] = all.z, to[3] = all.w;
#else
    memcpy(to, from, 4 * sizeof *to);
#endif
}

/* shift_i = S_i u_i + sum_j u_j G_ij; 0 for a particle without pressure. */
SK_KERNEL void shift_particle(const sk_sph *sph, const plain_list *list, const float *u, uint32_t i)
{
    float sum[3] = {0, 0, 0};
    SK_DIM(sk_sph_add_scaled)(u[i], sph->sum_gradient[i], sum);
    for (uint32_t k = 0; k < list->count; k++) {
        float gradient[3];
        const uint32_t j = neighbour_at(list, k, gradient);
        SK_DIM(sk_sph_add_scaled)(u[j], gradient, sum);
    }
    for (int d = 0; d < 4; d++)
        sph->shift[i][d] = d < SELKIE_DIM && sph->diagonal[i] > 0.0f ? sum[d] : 0.0f;
}

/* S_i . v_i - sum_j G_ij . v_j for velocities (m/s). */
SK_KERNEL float velocity_divergence(const sk_step *step, const plain_list *list, uint32_t i)
{
    const sk_particle *records = step->particles.records;
    float result = SK_DIM(sk_sph_dot)(step->sph->sum_gradient[i], records[i].velocity);
    for (uint32_t k = 0; k < list->count; k++) {
        float gradient[3];
        const uint32_t j = neighbour_at(list, k, gradient);
        result -= SK_DIM(sk_sph_dot)(gradient, records[j].velocity);
    }
    return result;
}

/* The same for the shifts: A u. */
SK_KERNEL float shift_divergence(const sk_sph *sph, const plain_list *list, uint32_t i)
{
    float result = SK_DIM(sk_sph_dot)(sph->sum_gradient[i], sph->shift[i]);
    for (uint32_t k = 0; k < list->count; k++) {
        float gradient[3], shift[4];
        const uint32_t j = neighbour_at(list, k, gradient);
        load_four(sph->shift[j], shift);
        result -= SK_DIM(sk_sph_dot)(gradient, shift);
    }
    return result;
}

/* The diagonal without neighbours that have no pressure. */
SK_KERNEL float diagonal_with_roles(const sk_step *step, const plain_list *list, uint32_t i)
{
    const sk_sph *sph = step->sph;
    const sk_particle *records = step->particles.records;
    if (records[i].flags & SK_PARTICLE_BOUNDARY)
        return 0.0f;
    float result = SK_DIM(sk_sph_dot)(sph->sum_gradient[i], sph->sum_gradient[i]);
    for (uint32_t k = 0; k < list->count; k++) {
        float gradient[3];
        const uint32_t j = neighbour_at(list, k, gradient);
        if (!(records[j].flags & SK_PARTICLE_BOUNDARY))
            result += SK_DIM(sk_sph_dot)(gradient, gradient);
    }
    return result;
}

/* Right side, inverse diagonal and start of particle i. */
SK_KERNEL void prepare_particle(const sk_step *step, const sk_sph_system *system, const plain_list *list, uint32_t i)
{
    const sk_sph *sph = step->sph;
    const float flux = velocity_divergence(step, list, i) - sph->wall_flux[i] * system->spacing;
    sph->source[i] = sk_sph_source(system, sph->density[i], flux);
    const float diagonal = system->roles ? diagonal_with_roles(step, list, i) : sph->diagonal[i];
    sph->diagonal[i] = sk_sph_inverse_diagonal(system, diagonal);
    sph->variable[SK_SPH_Y][i] = sph->variable[SK_SPH_X][i] =
        sk_sph_start(system, sph->diagonal[i], sph->pressure[i], sph->density[i]);
}

/* The solver's step at particle i; `applied` is A y. */
SK_KERNEL void iterate_particle(const sk_sph *sph, const sk_sph_iteration *iteration, float applied, uint32_t i,
                                sk_sph_solve_sums *sums)
{
    const float inverse = sph->diagonal[i], y = sph->variable[SK_SPH_Y][i];
    const float body = sph->body_term ? sph->body_term[i] : 0.0f;
    const float residual = inverse > 0.0f ? sph->source[i] - applied - body : 0.0f;
    const float next = sk_sph_relaxed(y, residual, inverse, iteration->omega);
    sums->error += sk_sph_counted(residual, y);
    sph->variable[SK_SPH_NEXT][i] = next;
    if (!iteration->accelerated)
        return;
    if (inverse > 0.0f) {
        const float diagonal = 1.0f / inverse, moved = y - sph->variable[SK_SPH_BEFORE][i];
        sums->uphill += (y - next) * (next - sph->variable[SK_SPH_X][i]) * diagonal;
        if (!iteration->first) {
            sums->curvature += moved * (sph->variable[SK_SPH_RESIDUAL][i] - residual);
            sums->length += moved * moved * diagonal;
        }
    }
    sph->variable[SK_SPH_RESIDUAL][i] = residual;
}

#endif
