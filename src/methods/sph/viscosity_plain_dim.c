/* The implicit viscosity of SPH, one pair at a time. */
#include <math.h>
#include <omp.h>

#include "methods/sph/plain_lists.h"
#include "methods/sph/sph_pair_kernels.h"
#include "methods/sph/viscosity_parts.h"

/* (1 + c - dt nu L) applied to the direction at particle i. */
static void apply_one(const viscous_system *s, const plain_block *block, uint32_t i, float result[3])
{
    const sk_sph *sph = s->step->sph;
    const sk_particle *records = s->step->particles.records;
    float sum[3] = {0, 0, 0};
    const plain_list list = plain_list_of(block, i);
    for (uint32_t k = 0; k < list.count; k++) {
        float gradient[3], difference[3], velocity[3] = {0, 0, 0};
        const uint32_t j = neighbour_at(&list, k, gradient);
        const float r2 =
            SK_DIM(sk_image_difference)(&block->index, records[i].position, records[j].position, difference);
        for (int d = 0; d < SELKIE_DIM; d++)
            velocity[d] = s->direction[d][i] - s->direction[d][j];
        const float share = sk_sph_viscous_share(&s->shape, sph->density[i] + sph->density[j],
                                                 SK_DIM(sk_sph_dot)(difference, velocity), r2);
        SK_DIM(sk_sph_add_scaled)(share, gradient, sum);
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        result[d] = (1.0f + s->drag[i]) * s->direction[d][i] - sum[d];
}

static void apply_plain(const viscous_system *s)
{
    sk_step *step = s->step;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int b = 1; b <= step->grid.particle_blocks; b++) {
        const plain_block block = open_block(step, s->scratch, omp_get_thread_num(), b);
        double sum = 0.0;
        for (uint32_t i = block.from; i < block.to; i++) {
            float result[3];
            apply_one(s, &block, i, result);
            for (int d = 0; d < SELKIE_DIM; d++) {
                s->product[d][i] = step->particles.records[i].flags & SK_PARTICLE_BOUNDARY ? 0.0f : result[d];
                sum += (double)s->product[d][i] * s->direction[d][i];
            }
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
