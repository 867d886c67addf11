/* The sums of a particle over its neighbours and walls, for the plain form and the GPU. For files compiled per
 * dimension. */
#ifndef SK_METHODS_SPH_LISTS_PLAIN_H
#define SK_METHODS_SPH_LISTS_PLAIN_H

#include <math.h>
#include <string.h>

#include "methods/sph/list_frame.h"

/* Sums of a particle while its list grows. */
typedef struct listed_sums {
    sk_sph_sums sums;
    float squares; /* of the gradients */
} listed_sums;

SK_KERNEL void begin_sums(listed_sums *own)
{
    memset(own, 0, sizeof *own);
    own->sums.density = 1.0f;
}

/* Adds a neighbour, a `difference` (m) away; `gradient` gets its gradient, which the list rounds. */
SK_KERNEL void add_neighbour(const sk_sph_list_constants *constants, const float difference[3], float r2,
                             float gradient[3], listed_sums *own)
{
    own->sums.density += SK_DIM(sk_sph_pair_gradient)(constants, difference, r2, gradient);
    SK_DIM(sk_sph_add_moment)(-constants->inverse_spacing, gradient, difference, own->sums.moment);
}

/* Adds its rounded gradient. */
SK_KERNEL void add_rounded(const float gradient[3], listed_sums *own)
{
    own->squares += SK_DIM(sk_sph_dot)(gradient, gradient);
    SK_DIM(sk_sph_add_scaled)(1.0f, gradient, own->sums.gradient);
}

/* The walls' share: boundary particles, then the flat sides of the domain. */
SK_KERNEL void add_walls(const list_frame *frame, const near_walls *walls, const float position[3], sk_sph_sums *sums)
{
    const sk_sph *sph = frame->sph;
    for (int r = 0; r < walls->range_count; r++)
        for (uint32_t b = walls->ranges[r].from; b < walls->ranges[r].to; b++) {
            const sk_boundary_particle *wall = &sph->boundary.particles[b];
            SK_DIM(sk_sph_add_point)(&frame->points, position, wall->position, wall->velocity, wall->volume, sums);
        }
    if (!walls->side_count)
        return;
    float gradient[6];
    sums->density += sk_sph_add_sides(sph, walls->side_count, walls->sides, position, gradient);
    for (int s = 0; s < walls->side_count; s++) {
        const sk_sph_side *side = walls->sides[s];
        sums->gradient[side->axis] += gradient[s];
        /* The sheet lies half a spacing behind the wall. */
        const float beyond = side->sheet + 0.5f * side->inward * (float)sph->spacing - position[side->axis];
        sums->moment[SK_SPH_XX + side->axis] += gradient[s] * beyond * frame->points.inverse_spacing;
    }
}

/* Adds the walls' share to the neighbour sums of particle i and stores its values. `squares`: sum of the squared
 * gradients. */
SK_KERNEL void finish_particle(const list_frame *frame, const near_walls *walls, uint32_t i, sk_sph_sums *sums,
                               float squares, sk_sph_list_sums *block)
{
    const sk_sph *sph = frame->sph;
    const sk_particle *own = &frame->step->particles.records[i];
    add_walls(frame, walls, own->position, sums);

    /* The gradient correction, and the diagonal of the pressure system. */
    float diagonal = squares, column[3][3];
    const float density = sums->density;
    const float isotropy = sk_sph_isotropy(frame->constants.order, sph->pressure[i]);
    SK_DIM(sk_sph_make_correction)(sums->moment, density, isotropy, column);
    for (int c = 0; c < 3; c++)
        memcpy(sph->correction[c][i], column[c], sizeof column[c]); /* the fourth stays 0 */
    for (int d = 0; d < SELKIE_DIM; d++) {
        sph->sum_gradient[i][d] = sums->gradient[d];
        diagonal += sums->gradient[d] * sums->gradient[d];
    }
    sph->density[i] = density;
    sph->diagonal[i] = diagonal;
    sph->wall_flux[i] = sums->wall_flux;

    /* A boundary particle of a liquid boundary has no density equation. */
    if (own->flags & SK_PARTICLE_BOUNDARY) {
        block->boundaries += 1.0;
    } else {
        block->compression += density > 1.0f ? (double)density - 1.0 : 0.0;
        block->compression_max = fmax(block->compression_max, (double)density - 1.0);
    }
    block->volume += density < 1.0f ? 1.0 : 1.0 / density;
}

#endif
