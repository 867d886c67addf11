/* Forces between a particle and its neighbours, for the plain form and the GPU. force_parts.h lists the forces. For
 * files compiled per dimension.
 *
 * The file that includes this one has defined `plain_list` and neighbour_at as for pressure_plain.h.
 */
#ifndef SK_METHODS_SPH_FORCES_PLAIN_H
#define SK_METHODS_SPH_FORCES_PLAIN_H

#include "methods/sph/sph.h"
#include "methods/sph/sph_pair_kernels.h"

/* The normal: H sum_j V_j grad W_ij. It is large near the surface and vanishes inside. */
SK_KERNEL void normal_of_particle(const sk_sph *sph, const sk_sph_force_constants *constants, const plain_list *list,
                                  uint32_t i)
{
    const float scale = 1.0f / (constants->spacing * constants->inverse_support);
    float sum[3] = {0, 0, 0}, gradient[3];
    for (uint32_t k = 0; k < list->count; k++) {
        const uint32_t j = neighbour_at(list, k, gradient);
        SK_DIM(sk_sph_add_scaled)(1.0f / sph->density[j], gradient, sum);
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        sph->shift[i][d] = scale * sum[d];
}

/* How much slower than the mean of its neighbours a particle is, for the filter, into sph->shift. */
SK_KERNEL void lag_of_particle(const sk_step *step, const sk_sph_force_constants *constants, const sk_cell_index *index,
                               const plain_list *list, uint32_t i)
{
    const sk_sph *sph = step->sph;
    const sk_particle *records = step->particles.records;
    float lag[3] = {0, 0, 0}, gradient[3], difference[3];
    for (uint32_t k = 0; k < list->count; k++) {
        const uint32_t j = neighbour_at(list, k, gradient);
        float r2 = 0.0f, speed2 = 0.0f;
        SK_DIM(sk_image_difference)(index, records[i].position, records[j].position, difference);
        for (int d = 0; d < SELKIE_DIM; d++) {
            const float faster = records[j].velocity[d] - records[i].velocity[d];
            r2 += difference[d] * difference[d];
            speed2 += faster * faster;
        }
        const float value = sk_sph_kernel(constants->wendland, sqrtf(r2) * constants->inverse_support);
        const float weight = sk_sph_filter_weight(constants, speed2) * value * constants->weight * 2.0f /
                             (sph->density[i] + sph->density[j]);
        for (int d = 0; d < SELKIE_DIM; d++)
            lag[d] += weight * (records[j].velocity[d] - records[i].velocity[d]);
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        sph->shift[i][d] = lag[d];
}

/* Before the forces: what sk_sph_pair::normal is made of, the lag or the normal. */
SK_KERNEL void prepare_forces_on_particle(const sk_step *step, const sk_sph_force_constants *constants,
                                          const sk_cell_index *index, const plain_list *list, uint32_t i)
{
    if (constants->filter > 0.0f)
        lag_of_particle(step, constants, index, list, i);
    else if (constants->curvature > 0.0f)
        normal_of_particle(step->sph, constants, list, i);
}

SK_KERNEL void forces_on_particle(const sk_step *step, const sk_sph_force_constants *constants,
                                  const sk_cell_index *index, const plain_list *list, uint32_t i)
{
    const sk_sph *sph = step->sph;
    const sk_particle *records = step->particles.records;
    float change[3] = {0, 0, 0};
    for (uint32_t k = 0; k < list->count; k++) {
        sk_sph_pair pair;
        const uint32_t j = neighbour_at(list, k, pair.gradient);
        SK_DIM(sk_image_difference)(index, records[i].position, records[j].position, pair.position);
        for (int d = 0; d < SELKIE_DIM; d++) {
            pair.velocity[d] = records[i].velocity[d] - records[j].velocity[d];
            pair.normal[d] = sk_sph_needs_normals(constants) ? sph->shift[i][d] - sph->shift[j][d] : 0.0f;
        }
        pair.density = sph->density[i] + sph->density[j];
        pair.calm = fminf(sk_sph_calm(constants, sph->pressure[i]), sk_sph_calm(constants, sph->pressure[j]));
        SK_DIM(sk_sph_add_forces)(constants, &pair, change);
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        sph->variable[d][i] = change[d];
}

#endif
