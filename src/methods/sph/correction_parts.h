/* Parts shared by both forms of the phase `correct`. For files compiled per dimension.
 *
 * In a region of constant pressure p, the pair forces p (G_ij + G_ij) carry the stress -p M_i, with the moment
 * M_i = sum_j G_ij x (x_j - x_i). M is 1 in a full isotropic neighbourhood. Sheared and compressed layers of particles
 * have other moments: they resist as an elastic solid, by 2 to 5 % of the pressure, and hold bodies back. The same
 * moments make the divergence of a linear velocity field wrong, which damps waves and shifts their frequency.
 *
 * So the pressure system uses  (L_i + L_j) / 2 G_ij  in place of G_ij, with L_i = M_i^-1 (Bonet and Lok 1999; in pairs,
 * Oger et al. 2007). The mean keeps the gradients antisymmetric: the system stays symmetric and linear momentum is
 * conserved. A pressure of complete isotropy would leave particles without any order; SK_SPH_ISOTROPY of the correction
 * is applied, and more at high pressure while bodies move (SK_SPH_ORDER_DEPTH). Particles near air keep L = 1. Boundary
 * particles are corrected by L_i, and so are the forces on bodies. The sheets of the domain's sides are not: particles
 * next to them would not come to rest.
 *
 * Viscosity and cohesion need gradients along the pair, so the phase runs after them.
 *
 * Surface tension in N/m needs the corrected gradients, so it acts here. A constant pressure p moves particle i by the
 * acceleration -(S_i + F_i) p / rho (sph.h), with S_i over liquid and walls and F_i over liquid. Both vanish inside.
 * Particles of the surface would be pushed out. Surface tension adds (S_i + F_i) sigma kappa_i / rho: a pressure of
 * sigma kappa in the liquid balances it exactly, whatever the order of the particles.
 */
#ifndef SK_METHODS_SPH_CORRECTION_PARTS_H
#define SK_METHODS_SPH_CORRECTION_PARTS_H

#include "methods/sph/list_frame.h"

/* Sums over the list of a particle: gradients before and after the correction, squares after it. */
typedef struct corrected_sums {
    float before[3], after[3], squares;
} corrected_sums;

/* `liquid`: the sum F over the liquid around the particle. */
SK_KERNEL void push_by_tension(const list_frame *frame, uint32_t i, const float liquid[3])
{
    const sk_step *step = frame->step;
    sk_particle *record = &step->particles.records[i];
    const float push = frame->points.inverse_spacing * (float)sk_step_kick(step) * step->surface_pressure[i];
    if (!(record->flags & SK_PARTICLE_BOUNDARY))
        for (int d = 0; d < SELKIE_DIM; d++)
            record->velocity[d] += push * (frame->sph->sum_gradient[i][d] + liquid[d]);
}

SK_KERNEL void finish_correction(const list_frame *frame, const near_walls *walls, uint32_t i,
                                 const corrected_sums *sums)
{
    const sk_sph *sph = frame->sph;
    const float *const own[3] = {sph->correction[0][i], sph->correction[1][i], sph->correction[2][i]};
    const float *position = frame->step->particles.records[i].position;

    /* Boundary particles: L is symmetric, so (L g) . v = g . (L v). */
    sk_sph_sums points = {0.0f, {0, 0, 0}, {0, 0, 0, 0, 0, 0}, 0.0f};
    for (int r = 0; r < walls->range_count; r++)
        for (uint32_t b = walls->ranges[r].from; b < walls->ranges[r].to; b++) {
            const sk_boundary_particle *wall = &sph->boundary.particles[b];
            float velocity[3];
            SK_DIM(sk_sph_correct_gradient)(own, own, wall->velocity, velocity);
            SK_DIM(sk_sph_add_point)(&frame->points, position, wall->position, velocity, wall->volume, &points);
        }
    float corrected[3], diagonal = sums->squares;
    SK_DIM(sk_sph_correct_gradient)(own, own, points.gradient, corrected);

    /* The rest of the old sum is that of the sheets. */
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float sheets = sph->sum_gradient[i][d] - sums->before[d] - points.gradient[d];
        const float total = sums->after[d] + sheets + corrected[d];
        sph->sum_gradient[i][d] = total;
        diagonal += total * total;
    }
    sph->diagonal[i] = diagonal;
    sph->wall_flux[i] = points.wall_flux;
    if (frame->step->surface_pressure)
        push_by_tension(frame, i, sums->after);
}

#endif
