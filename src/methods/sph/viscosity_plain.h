/* The viscosity solve of SPH at one particle, for the plain form and the GPU: viscosity_parts.h has the equations. For
 * files compiled per dimension.
 *
 * The file that includes this one has defined `plain_list` and neighbour_at as for pressure_plain.h.
 */
#ifndef SK_METHODS_SPH_VISCOSITY_PLAIN_H
#define SK_METHODS_SPH_VISCOSITY_PLAIN_H

#include "methods/sph/viscous_arrays.h"

/* (1 + c - dt nu L) applied to the direction at particle i. Particles with prescribed velocities have no row: 0. */
SK_KERNEL double apply_viscosity(const sk_step *step, const viscous_arrays *s, const sk_cell_index *index,
                                 const plain_list *list, uint32_t i)
{
    const sk_sph *sph = step->sph;
    const sk_particle *records = step->particles.records;
    const int fixed = (records[i].flags & SK_PARTICLE_BOUNDARY) != 0;
    float sum[3] = {0, 0, 0};
    double dot = 0.0;
    for (uint32_t k = 0; k < list->count; k++) {
        float gradient[3], difference[3], velocity[3] = {0, 0, 0};
        const uint32_t j = neighbour_at(list, k, gradient);
        const float r2 = SK_DIM(sk_image_difference)(index, records[i].position, records[j].position, difference);
        for (int d = 0; d < SELKIE_DIM; d++)
            velocity[d] = s->direction[d][i] - s->direction[d][j];
        const float share = sk_sph_viscous_share(&s->shape, sph->density[i] + sph->density[j],
                                                 SK_DIM(sk_sph_dot)(difference, velocity), r2);
        SK_DIM(sk_sph_add_scaled)(share, gradient, sum);
    }
    for (int d = 0; d < SELKIE_DIM; d++) {
        s->product[d][i] = fixed ? 0.0f : (1.0f + s->drag[i]) * s->direction[d][i] - sum[d];
        dot += (double)s->product[d][i] * (double)s->direction[d][i];
    }
    return dot;
}

#endif
