/* The pressure of SPH, one pair at a time: right side, operator, steps of the solvers. What is solved and how:
 * solve.c. */
#include <math.h>
#include <omp.h>

#include "methods/sph/boundary.h"
#include "methods/sph/plain_lists.h"
#include "methods/sph/solve.h"
#include "methods/sph/sph_pair_kernels.h"

/* shift_i = S_i u_i + sum_j u_j G_ij; zero for a particle that pressure does not move. */
static void shift_particle(sk_sph *sph, const plain_block *block, const float *u, uint32_t i)
{
    float sum[3] = {0, 0, 0};
    SK_DIM(sk_sph_add_scaled)(u[i], sph->sum_gradient[i], sum);
    for (uint32_t k = 0; k < sph->number[i]; k++) {
        float gradient[3];
        const uint32_t j = neighbour_at(block, i, k, gradient);
        SK_DIM(sk_sph_add_scaled)(u[j], gradient, sum);
    }
    for (int d = 0; d < 4; d++)
        sph->shift[i][d] = d < SELKIE_DIM && sph->diagonal[i] > 0.0f ? sum[d] : 0.0f;
}

/* S_i . v_i - sum_j G_ij . v_j of velocities (m/s). */
static float velocity_divergence(const sk_step *step, const plain_block *block, uint32_t i)
{
    const sk_particle *records = step->particles.records;
    float result = SK_DIM(sk_sph_dot)(step->sph->sum_gradient[i], records[i].velocity);
    for (uint32_t k = 0; k < step->sph->number[i]; k++) {
        float gradient[3];
        const uint32_t j = neighbour_at(block, i, k, gradient);
        result -= SK_DIM(sk_sph_dot)(gradient, records[j].velocity);
    }
    return result;
}

/* The same of the shifts: A u. */
static float shift_divergence(const sk_sph *sph, const plain_block *block, uint32_t i)
{
    float result = SK_DIM(sk_sph_dot)(sph->sum_gradient[i], sph->shift[i]);
    for (uint32_t k = 0; k < sph->number[i]; k++) {
        float gradient[3];
        const uint32_t j = neighbour_at(block, i, k, gradient);
        result -= SK_DIM(sk_sph_dot)(gradient, sph->shift[j]);
    }
    return result;
}

/* The diagonal without the neighbours that pressure does not move. */
static float diagonal_with_roles(const sk_step *step, const plain_block *block, uint32_t i)
{
    const sk_sph *sph = step->sph;
    const sk_particle *records = step->particles.records;
    if (records[i].flags & SK_PARTICLE_BOUNDARY)
        return 0.0f;
    float result = SK_DIM(sk_sph_dot)(sph->sum_gradient[i], sph->sum_gradient[i]);
    for (uint32_t k = 0; k < sph->number[i]; k++) {
        float gradient[3];
        const uint32_t j = neighbour_at(block, i, k, gradient);
        if (!(records[j].flags & SK_PARTICLE_BOUNDARY))
            result += SK_DIM(sk_sph_dot)(gradient, gradient);
    }
    return result;
}

/* Right side, inverse diagonal and start of particle i. */
static void prepare_particle(sk_step *step, const sk_sph_system *system, const plain_block *block, uint32_t i)
{
    sk_sph *sph = step->sph;
    const float flux = velocity_divergence(step, block, i) - sph->wall_flux[i] * system->spacing;
    sph->source[i] = sk_sph_source(system, sph->density[i], flux);
    const float diagonal = system->roles ? diagonal_with_roles(step, block, i) : sph->diagonal[i];
    sph->diagonal[i] = sk_sph_inverse_diagonal(system, diagonal);
    sph->variable[SK_SPH_Y][i] = sph->variable[SK_SPH_X][i] =
        sk_sph_start(system, sph->diagonal[i], sph->pressure[i], sph->density[i]);
}

/* The step of the solver at particle i, of which A y is known. */
static void iterate_particle(sk_sph *sph, const sk_sph_iteration *iteration, float applied, uint32_t i,
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

static sk_sph_solve_sums iterate(sk_step *step, const sk_sph_iteration *iteration, void *scratch)
{
    sk_sph *sph = step->sph;
    const int blocks = step->grid.particle_blocks;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int b = 1; b <= blocks; b++) {
        const plain_block block = open_block(step, scratch, omp_get_thread_num(), b);
        for (uint32_t i = block.from; i < block.to; i++)
            shift_particle(sph, &block, sph->variable[SK_SPH_Y], i);
    }
    if (sph->body_term)
        sk_sph_coupling_apply(step, sph->variable[SK_SPH_Y]);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int b = 1; b <= blocks; b++) {
        const plain_block block = open_block(step, scratch, omp_get_thread_num(), b);
        sk_sph_solve_sums sums = {0, 0, 0, 0};
        for (uint32_t i = block.from; i < block.to; i++)
            iterate_particle(sph, iteration, shift_divergence(sph, &block, i), i, &sums);
        sph->block_sums[b].solve = sums;
    }
    return sk_sph_add_solve_sums(step);
}

selkie_code SK_DIM(sk_sph_pressure_plain)(sk_step *step, selkie_error *error)
{
    sk_sph_system system;
    void *scratch;
    if (!sk_sph_system_begin(step, &system))
        return SELKIE_OK;
    SK_TRY(SK_DIM(sk_sph_coupling_begin)(step, error));
    SK_TRY(reserve_plain(step, &scratch, error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int b = 1; b <= step->grid.particle_blocks; b++) {
        const plain_block block = open_block(step, scratch, omp_get_thread_num(), b);
        for (uint32_t i = block.from; i < block.to; i++)
            prepare_particle(step, &system, &block, i);
    }
    SK_TRY(sk_sph_solve(step, iterate, scratch, error));
    sk_sph_system_end(step);
    return SELKIE_OK;
}
