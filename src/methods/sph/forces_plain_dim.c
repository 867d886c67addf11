/* Forces between particles, one pair at a time. force_parts.h lists the forces. */
#include <omp.h>

#include "methods/sph/force_parts.h"
#include "methods/sph/plain_lists.h"
#include "methods/sph/forces_plain.h"

static selkie_code add_pair_forces(sk_step *step, selkie_error *error)
{
    const sk_sph_force_constants constants = make_force_constants(step);
    const int blocks = step->grid.particle_blocks;
    void *scratch;
    SK_TRY(reserve_plain(step, &scratch, error));
    if (sk_sph_needs_normals(&constants)) {
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
        for (int b = 1; b <= blocks; b++) {
            const plain_block block = open_block(step, scratch, omp_get_thread_num(), b);
            for (uint32_t i = block.from; i < block.to; i++) {
                const plain_list list = plain_list_of(&block, i);
                prepare_forces_on_particle(step, &constants, &block.index, &list, i);
            }
        }
    }
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int b = 1; b <= blocks; b++) {
        const plain_block block = open_block(step, scratch, omp_get_thread_num(), b);
        for (uint32_t i = block.from; i < block.to; i++) {
            const plain_list list = plain_list_of(&block, i);
            forces_on_particle(step, &constants, &block.index, &list, i);
        }
    }
    take_up_changes(step);
    return SELKIE_OK;
}

int SK_DIM(sk_sph_pair_forces)(const sk_step *step, sk_sph_force_constants *constants)
{
    *constants = make_force_constants(step);
    return any_pair_force(step);
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
