/* Friction of no-slip walls at one particle, for the CPU and the GPU: friction_dim.c has the equations. For files
 * compiled per dimension. */
#ifndef SK_METHODS_SPH_FRICTION_PLAIN_H
#define SK_METHODS_SPH_FRICTION_PLAIN_H

#include "methods/sph/near_walls.h"
#include "methods/sph/sph_pair_kernels.h"

typedef struct sk_sph_friction_frame {
    sk_sph_friction_constants constants;
    float at_spacing; /* c of a sheet over its kernel's value */
} sk_sph_friction_frame;

/* The contribution of one boundary particle to c; 0 out of reach. */
SK_KERNEL float friction_of_point(const sk_sph_friction_frame *f, const sk_sph_boundary *boundary,
                                  const sk_boundary_particle *wall, const float x[3])
{
    const sk_sph_body *body = &boundary->bodies[wall->body];
    if (!body->no_slip)
        return 0.0f;
    return body->grip * SK_DIM(sk_sph_friction_weight)(&f->constants, x, wall->position, wall->volume);
}

/* The contribution of a sheet to c: in 3D a plane of boundary particles sums up to the kernel at its distance. */
SK_KERNEL float friction_of_side(const sk_sph_friction_frame *f, const sk_sph_side *side, const float x[3])
{
    const float q = sk_sph_side_distance(side, x, f->constants.inverse_support);
    return side->grip * f->at_spacing * sk_sph_kernel(f->constants.wendland, q);
}

/* The no-slip sides near a block. */
SK_KERNEL void find_rough_sides(const sk_step *step, int block, near_walls *near)
{
    const sk_sph *sph = step->sph;
    const int sides = sk_sph_sides_near(sph, &step->grid, block, sph->support, near->sides);
    near->side_count = 0;
    for (int s = 0; s < sides; s++)
        if (sph->boundary.bodies[near->sides[s]->part].no_slip)
            near->sides[near->side_count++] = near->sides[s];
}

/* Returns c of a particle, and c u. */
SK_KERNEL float friction_terms(const sk_sph_friction_frame *f, const sk_sph_boundary *boundary, const near_walls *near,
                               const float position[3], float velocity[3])
{
    float total = 0.0f;
    velocity[0] = velocity[1] = velocity[2] = 0.0f;
    for (int r = 0; r < near->range_count; r++)
        for (uint32_t b = near->ranges[r].from; b < near->ranges[r].to; b++) {
            const sk_boundary_particle *wall = &boundary->particles[b];
            const float weight = friction_of_point(f, boundary, wall, position);
            total += weight;
            for (int d = 0; d < SELKIE_DIM; d++)
                velocity[d] += weight * wall->velocity[d];
        }
    for (int s = 0; s < near->side_count; s++)
        total += friction_of_side(f, near->sides[s], position);
    return total;
}

/* Momentum and torque of particles on a part, in units of particle mass / step. */
typedef struct part_sums {
    double force[3], torque[3];
} part_sums;

/* Reactions to a particle's change: w_b (v' - v_b) on each boundary particle. Their sum is the particle's loss. */
SK_KERNEL void add_point_reaction(const sk_sph_friction_frame *f, const sk_sph_boundary *boundary,
                                  const sk_boundary_particle *wall, const sk_particle *particle, part_sums *sum)
{
    const sk_sph_body *body = &boundary->bodies[wall->body];
    const float weight = body->wants_force ? friction_of_point(f, boundary, wall, particle->position) : 0.0f;
    if (weight == 0.0f)
        return;
    double force[3] = {0, 0, 0}, arm[3];
    for (int d = 0; d < 3; d++) {
        force[d] = d < SELKIE_DIM ? (double)(weight * (particle->velocity[d] - wall->velocity[d])) : 0.0;
        arm[d] = (double)wall->position[d] - body->center[d];
        sum->force[d] += force[d];
    }
    for (int d = 0; d < 3; d++)
        sum->torque[d] += arm[(d + 1) % 3] * force[(d + 2) % 3] - arm[(d + 2) % 3] * force[(d + 1) % 3];
}

SK_KERNEL void add_side_reaction(const sk_sph_friction_frame *f, const sk_sph_side *side, const sk_particle *particle,
                                 part_sums *sum)
{
    const float weight = friction_of_side(f, side, particle->position);
    for (int d = 0; d < SELKIE_DIM; d++)
        sum->force[d] += (double)(weight * particle->velocity[d]);
}

/* Slows a particle down. */
SK_KERNEL void slow_particle(const sk_sph_friction_frame *f, const sk_sph_boundary *boundary, const near_walls *near,
                             sk_particle *particle)
{
    float velocity[3];
    const float total = friction_terms(f, boundary, near, particle->position, velocity);
    for (int d = 0; total > 0.0f && d < SELKIE_DIM; d++)
        particle->velocity[d] = (particle->velocity[d] + velocity[d]) / (1.0f + total);
}

#endif
