/* Forces between particles, one pair at a time. force_parts.h lists the forces. */
#include <omp.h>

#include "methods/sph/force_parts.h"
#include "methods/sph/plain_lists.h"

/* The normal: H sum_j V_j grad W_ij. It is large near the surface and vanishes inside. */
static void normal_of_particle(sk_sph *sph, const sk_sph_force_constants *constants, const plain_block *block,
                               uint32_t i)
{
    const float scale = 1.0f / (constants->spacing * constants->inverse_support);
    float sum[3] = {0, 0, 0}, gradient[3];
    for (uint32_t k = 0; k < sph->number[i]; k++) {
        const uint32_t j = neighbour_at(block, i, k, gradient);
        SK_DIM(sk_sph_add_scaled)(1.0f / sph->density[j], gradient, sum);
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        sph->shift[i][d] = scale * sum[d];
}

static void forces_on_particle(const sk_step *step, const sk_sph_force_constants *constants, const plain_block *block,
                               uint32_t i)
{
    const sk_sph *sph = step->sph;
    const sk_particle *records = step->particles.records;
    float change[3] = {0, 0, 0};
    for (uint32_t k = 0; k < sph->number[i]; k++) {
        sk_sph_pair pair = {.density = 0.0f};
        const uint32_t j = neighbour_at(block, i, k, pair.gradient);
        SK_DIM(sk_image_difference)(&block->index, records[i].position, records[j].position, pair.position);
        for (int d = 0; d < SELKIE_DIM; d++) {
            pair.velocity[d] = records[i].velocity[d] - records[j].velocity[d];
            pair.normal[d] = constants->curvature > 0.0f ? sph->shift[i][d] - sph->shift[j][d] : 0.0f;
        }
        pair.density = sph->density[i] + sph->density[j];
        SK_DIM(sk_sph_add_forces)(constants, &pair, change);
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        sph->variable[d][i] = change[d];
}

static selkie_code add_pair_forces(sk_step *step, selkie_error *error)
{
    const sk_sph_force_constants constants = make_force_constants(step);
    const int blocks = step->grid.particle_blocks;
    void *scratch;
    SK_TRY(reserve_plain(step, &scratch, error));
    if (constants.curvature > 0.0f) {
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
        for (int b = 1; b <= blocks; b++) {
            const plain_block block = open_block(step, scratch, omp_get_thread_num(), b);
            for (uint32_t i = block.from; i < block.to; i++)
                normal_of_particle(step->sph, &constants, &block, i);
        }
    }
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int b = 1; b <= blocks; b++) {
        const plain_block block = open_block(step, scratch, omp_get_thread_num(), b);
        for (uint32_t i = block.from; i < block.to; i++)
            forces_on_particle(step, &constants, &block, i);
    }
    take_up_changes(step);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_sph_forces_plain)(sk_step *step, selkie_error *error)
{
    if (!step->particles.count)
        return SELKIE_OK;
    if (any_pair_force(step))
        SK_TRY(add_pair_forces(step, error));
    SK_TRY(add_outer_forces(step, error));
    return sk_sph_viscosity_is_implicit(step) ? SK_DIM(sk_sph_viscosity_plain)(step, error) : SELKIE_OK;
}
