/* The pressure of SPH, one pair at a time: right side, operator, steps of the solvers. solve.c has the equations and
 * the solvers. */
#include <math.h>
#include <omp.h>

#include "methods/sph/boundary.h"
#include "methods/sph/plain_lists.h"
#include "methods/sph/pressure_plain.h"

static sk_sph_solve_sums iterate(sk_step *step, const sk_sph_iteration *iteration, void *scratch)
{
    sk_sph *sph = step->sph;
    const int blocks = step->grid.particle_blocks;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int b = 1; b <= blocks; b++) {
        const plain_block block = open_block(step, scratch, omp_get_thread_num(), b);
        for (uint32_t i = block.from; i < block.to; i++) {
            const plain_list list = plain_list_of(&block, i);
            shift_particle(sph, &list, sph->variable[SK_SPH_Y], i);
        }
    }
    if (sph->body_term)
        sk_sph_coupling_apply(step, sph->variable[SK_SPH_Y]);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int b = 1; b <= blocks; b++) {
        const plain_block block = open_block(step, scratch, omp_get_thread_num(), b);
        sk_sph_solve_sums sums = {0, 0, 0, 0};
        for (uint32_t i = block.from; i < block.to; i++) {
            const plain_list list = plain_list_of(&block, i);
            iterate_particle(sph, iteration, shift_divergence(sph, &list, i), i, &sums);
        }
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
        for (uint32_t i = block.from; i < block.to; i++) {
            const plain_list list = plain_list_of(&block, i);
            prepare_particle(step, &system, &list, i);
        }
    }
    SK_TRY(sk_sph_solve(step, iterate, scratch, error));
    sk_sph_system_end(step);
    return SELKIE_OK;
}
