/* Contacts of one particle with parts of the walls, and Coulomb's friction of them, for the CPU and the GPU:
 * wall_friction_dim.c has the equations. For files compiled per dimension. */
#ifndef SK_METHODS_SPH_CONTACT_PLAIN_H
#define SK_METHODS_SPH_CONTACT_PLAIN_H

#include <math.h>
#include <string.h>

#include "methods/rub_kernels.h"
#include "methods/sph/near_walls.h"
#include "methods/sph/solve.h"
#include "methods/sph/sph_pair_kernels.h"

enum { SK_SPH_MOST_PARTS = 16 }; /* parts in contact with one particle */

typedef struct contact_list { /* of one particle */
    uint32_t particle;
    int count;
    int overflow;
    sk_sph_contact found[SK_SPH_MOST_PARTS];
} contact_list;

/* A sample of a part's surface beside a particle. */
typedef struct touched_sample {
    uint32_t part;
    const float *gradient, *point; /* [3] */
    const float *velocity;         /* [3] m/s; NULL = at rest */
    float friction;
} touched_sample;

/* Adds the gradient of a sample of a part's surface. */
SK_KERNEL void add_contact(const sk_sph_boundary *boundary, contact_list *list, const touched_sample *sample)
{
    const uint32_t part = sample->part;
    const float *g = sample->gradient, *point = sample->point;
    const sk_sph_body *body = &boundary->bodies[part];
    int k = 0;
    while (k < list->count && list->found[k].part != part)
        k++;
    if (k == SK_SPH_MOST_PARTS) {
        list->overflow = 1;
        return;
    }
    sk_sph_contact *contact = &list->found[k];
    if (k == list->count) {
        memset(contact, 0, sizeof *contact);
        contact->particle = list->particle;
        contact->part = part;
        list->count++;
    }
    float arm[3];
    for (int d = 0; d < 3; d++) {
        arm[d] = (float)(point[d] - body->center[d]);
        contact->gradient[d] += g[d];
    }
    contact->gradient[3] += arm[1] * g[2] - arm[2] * g[1];
    contact->gradient[4] += arm[2] * g[0] - arm[0] * g[2];
    contact->gradient[5] += arm[0] * g[1] - arm[1] * g[0];

    /* For friction. */
    const float length = sqrtf(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]);
    contact->length += length;
    contact->friction += length * sample->friction;
    for (int d = 0; sample->velocity && d < 3; d++)
        contact->velocity[d] += length * sample->velocity[d];
}

/* Are the contacts of a part needed? */
SK_KERNEL int is_wanted_part(const sk_sph_body *body)
{
    return body->wants_force || body->rubs;
}

/* Sides near a block, if any of them is wanted. */
SK_KERNEL int find_wanted_sides(const sk_step *step, int block, const sk_sph_side *sides[6])
{
    const sk_sph *sph = step->sph;
    const int near = sk_sph_sides_near(sph, &step->grid, block, sph->sheet.reach, sides);
    int wanted = 0;
    for (int s = 0; s < near; s++)
        wanted |= is_wanted_part(&sph->boundary.bodies[sides[s]->part]);
    return wanted ? near : 0; /* all of them, since they share edges */
}

/* A boundary particle within reach: its corrected gradient. */
SK_KERNEL void touch_point(const sk_sph *sph, const sk_boundary_particle *wall, const float x[3], contact_list *list)
{
    const float inverse_reach = (float)(1.0 / sph->point.reach), reach2 = (float)(sph->point.reach * sph->point.reach);
    const float steepness = (float)(sph->point.weight / sph->volume * sph->spacing / sph->point.reach);
    const float *const own[3] = {sph->correction[0][list->particle], sph->correction[1][list->particle],
                                 sph->correction[2][list->particle]};
    const sk_sph_body *body = &sph->boundary.bodies[wall->body];
    float difference[3] = {0.0f, 0.0f, 0.0f}, r2 = 0.0f;
    if (!is_wanted_part(body))
        return;
    for (int d = 0; d < SELKIE_DIM; d++) {
        difference[d] = x[d] - wall->position[d];
        r2 += difference[d] * difference[d];
    }
    if (r2 >= reach2)
        return;
    const float distance = sqrtf(r2), q = distance * inverse_reach;
    const float slope = sk_sph_point_slope(q) * steepness * wall->volume / (q > 1e-6f ? distance : 1e-6f);
    const float gradient[3] = {slope * difference[0], slope * difference[1], slope * difference[2]};
    float g[3];
    SK_DIM(sk_sph_correct_gradient)(own, own, gradient, g);
    const touched_sample sample = {wall->body, g, wall->position, wall->velocity, body->friction};
    add_contact(&sph->boundary, list, &sample);
}

/* Finds the wanted parts within reach of a particle, and their gradients. */
SK_KERNEL void find_contacts_of(const sk_sph *sph, const near_walls *walls, const float x[3], contact_list *list)
{
    for (int r = 0; r < walls->range_count; r++)
        for (uint32_t b = walls->ranges[r].from; b < walls->ranges[r].to; b++)
            touch_point(sph, &sph->boundary.particles[b], x, list);

    /* Flat sides of the domain, at the nearest point of each sheet. */
    float along[6];
    if (walls->side_count)
        sk_sph_add_sides(sph, walls->side_count, walls->sides, x, along);
    for (int s = 0; s < walls->side_count; s++) {
        const sk_sph_side *side = walls->sides[s];
        float g[3] = {0.0f, 0.0f, 0.0f}, point[3] = {x[0], x[1], SELKIE_DIM == 3 ? x[2] : 0.0f};
        if (along[s] == 0.0f || !is_wanted_part(&sph->boundary.bodies[side->part]))
            continue;
        g[side->axis] = along[s];
        point[side->axis] = side->sheet;
        const touched_sample sample = {(uint32_t)side->part, g, point, NULL, side->friction};
        add_contact(&sph->boundary, list, &sample);
    }
}

/* The velocity of a particle after the friction of a contact. Returns whether there is any. */
SK_KERNEL int rub_contact(const sk_step *step, const sk_sph_contact *contact, const float velocity[3], float after[3])
{
    const float q = step->sph->variable[SK_SPH_Y][contact->particle];
    const float most = q * contact->friction / (float)step->dt;
    if (!(most > 0.0f))
        return 0;
    float relative[3] = {0.0f, 0.0f, 0.0f};
    for (int d = 0; d < SELKIE_DIM; d++)
        relative[d] = velocity[d] - contact->velocity[d] / contact->length;
    for (int d = 0; d < SELKIE_DIM; d++)
        after[d] = sk_rubbed_velocity(d, velocity[d], relative, contact->gradient, most);
    return 1;
}

/* Adds the reaction (N, N m) to the friction of a contact, before the particle takes its new velocity. */
SK_KERNEL void add_rubbing(const sk_step *step, const sk_sph_body *body, const sk_particle *particle,
                           const float after[3], double total_force[3], double total_torque[3])
{
    double force[3] = {0, 0, 0}, arm[3] = {0, 0, 0};
    for (int d = 0; d < SELKIE_DIM; d++) {
        force[d] = step->particle_mass / step->dt * ((double)particle->velocity[d] - (double)after[d]);
        arm[d] = (double)particle->position[d] - body->center[d];
    }
    for (int d = 0; d < 3; d++) {
        total_force[d] += force[d];
        total_torque[d] += arm[(d + 1) % 3] * force[(d + 2) % 3] - arm[(d + 2) % 3] * force[(d + 1) % 3];
    }
}

#endif
