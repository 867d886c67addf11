/* The implicit viscosity of SPH, one pair at a time. */
#include <math.h>
#include <omp.h>

#include "methods/sph/plain_lists.h"
#include "methods/sph/viscosity_parts.h"
#include "methods/sph/viscosity_plain.h"

static void apply_plain(const viscous_system *s)
{
    sk_step *step = s->step;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int b = 1; b <= step->grid.particle_blocks; b++) {
        const plain_block block = open_block(step, s->scratch, omp_get_thread_num(), b);
        double sum = 0.0;
        for (uint32_t i = block.from; i < block.to; i++) {
            const plain_list list = plain_list_of(&block, i);
            sum += apply_viscosity(step, &s->arrays, &block.index, &list, i);
        }
        step->sph->block_sums[b].product = sum;
    }
}

selkie_code SK_DIM(sk_sph_viscosity_plain)(sk_step *step, selkie_error *error)
{
    viscous_system system = make_viscous_system(step);
    system.apply = apply_plain;
    SK_TRY(reserve_plain(step, &system.scratch, error));
    return solve_viscous_system(&system, error);
}
