/* Contacts of particles with bodies, and the bodies' share in the pressure system (boundary.h). Contacts are few, so
 * the work of an iteration is serial, in the order of the particles. */
#include <math.h>
#include <string.h>

#include "methods/sph/near_walls.h"
#include "methods/sph/sph_pair_kernels.h"

enum { MOST_PARTS = 16 }; /* parts in contact with one particle */

typedef struct finder {
    const sk_step *step;
    const sk_sph_boundary *boundary;
    int overflow;
} finder;

typedef struct contact_list { /* of one particle */
    uint32_t particle;
    int count;
    sk_sph_contact found[MOST_PARTS];
} contact_list;

/* A sample of a part's surface beside a particle. */
typedef struct touched_sample {
    uint32_t part;
    const float *gradient, *point; /* [3] */
    const float *velocity;         /* [3] m/s; NULL = at rest */
    float friction;
} touched_sample;

/* Adds the gradient of a sample of a part's surface. */
static void add_contact(finder *f, contact_list *list, const touched_sample *sample)
{
    const uint32_t part = sample->part;
    const float *g = sample->gradient, *point = sample->point;
    const sk_sph_body *body = &f->boundary->bodies[part];
    int k = 0;
    while (k < list->count && list->found[k].part != part)
        k++;
    if (k == MOST_PARTS) {
        __atomic_store_n(&f->overflow, 1, __ATOMIC_RELAXED);
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
static int is_wanted(const sk_sph_body *body)
{
    return body->wants_force || body->rubs;
}

/* Finds the parts with forces within reach of a particle, and their gradients. */
static void find_contacts_of(finder *f, const near_walls *walls, const float x[3], contact_list *list)
{
    const sk_sph *sph = f->step->sph;
    const float inverse_reach = (float)(1.0 / sph->point.reach), reach2 = (float)(sph->point.reach * sph->point.reach);
    const float steepness = (float)(sph->point.weight / sph->volume * sph->spacing / sph->point.reach);
    const float *const own[3] = {sph->correction[0][list->particle], sph->correction[1][list->particle],
                                 sph->correction[2][list->particle]};

    /* Contacts with boundary particles. */
    for (int r = 0; r < walls->range_count; r++)
        for (uint32_t b = walls->ranges[r].from; b < walls->ranges[r].to; b++) {
            const sk_boundary_particle *wall = &f->boundary->particles[b];
            float difference[3] = {0, 0, 0}, r2 = 0.0f;
            const sk_sph_body *body = &f->boundary->bodies[wall->body];
            if (!is_wanted(body))
                continue;
            for (int d = 0; d < SELKIE_DIM; d++) {
                difference[d] = x[d] - wall->position[d];
                r2 += difference[d] * difference[d];
            }
            if (r2 >= reach2)
                continue;

            /* The corrected gradient of a particle within reach. */
            float distance = sqrtf(r2), q = distance * inverse_reach;
            float slope = sk_sph_point_slope(q) * steepness * wall->volume / (q > 1e-6f ? distance : 1e-6f);
            const float gradient[3] = {slope * difference[0], slope * difference[1], slope * difference[2]};
            float g[3];
            SK_DIM(sk_sph_correct_gradient)(own, own, gradient, g);
            add_contact(f, list, &(touched_sample){wall->body, g, wall->position, wall->velocity, body->friction});
        }

    /* Contacts with the flat sides of the domain, at the nearest point of each sheet. */
    float along[6];
    if (walls->side_count)
        sk_sph_add_sides(sph, walls->side_count, walls->sides, x, along);
    for (int s = 0; s < walls->side_count; s++) {
        const sk_sph_side *side = walls->sides[s];
        float g[3] = {0, 0, 0}, point[3] = {x[0], x[1], SELKIE_DIM == 3 ? x[2] : 0.0f};
        if (along[s] == 0.0f || !is_wanted(&f->boundary->bodies[side->part]))
            continue;
        g[side->axis] = along[s];
        point[side->axis] = side->sheet;
        add_contact(f, list, &(touched_sample){side->part, g, point, NULL, side->friction});
    }
}

/* Sides near a block, if any of them has forces. */
static int wanted_sides(const finder *f, int block, const sk_sph_side *sides[6])
{
    int near = sk_sph_sides_near(f->step->sph, &f->step->grid, block, f->step->sph->sheet.reach, sides), wanted = 0;
    for (int s = 0; s < near; s++)
        wanted |= is_wanted(&f->boundary->bodies[sides[s]->part]);
    return wanted ? near : 0; /* all of them, since they share edges */
}

/* Counts a block's contacts, or writes them if `to` is not NULL. */
static uint32_t contacts_of_block(finder *f, int block, sk_sph_contact *to)
{
    const sk_grid *grid = &f->step->grid;
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    uint32_t total = 0;
    near_walls walls = {0};
    walls.side_count = wanted_sides(f, block, walls.sides);
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        if (start[c] == start[c + 1])
            continue;
        find_points_near_cell(f->step, block, c, &walls);
        for (uint32_t i = start[c]; (walls.range_count || walls.side_count) && i < start[c + 1]; i++) {
            const sk_particle *particle = &f->step->particles.records[i];
            contact_list list = {.particle = i, .count = 0};
            if (!(particle->flags & SK_PARTICLE_BOUNDARY))
                find_contacts_of(f, &walls, particle->position, &list);
            if (to)
                memcpy(to + total, list.found, (size_t)list.count * sizeof *list.found);
            total += (uint32_t)list.count;
        }
    }
    return total;
}

/* Is the block at a side, or are boundary particles in it or in a neighbour? */
static int near_boundary(const finder *f, int block)
{
    const sk_sph_side *sides[6];
    return wanted_sides(f, block, sides) || points_near_block(f->step, block);
}

static selkie_code find_contacts(sk_step *step, sk_sph_walls *walls, selkie_error *error)
{
    sk_sph *sph = step->sph;
    const sk_grid *grid = &step->grid;
    finder f = {.step = step, .boundary = &sph->boundary};
    SK_TRY(sk_reserve(sph->memory, (void **)&walls->block_contacts, &walls->block_capacity,
                      (size_t)grid->particle_blocks + 2, sizeof *walls->block_contacts, "contacts with bodies", error));

    /* Count the contacts of each block in the first pass, and write them in the second. */
    uint32_t *first = walls->block_contacts;
    first[0] = first[1] = 0;
    for (int pass = 0; pass < 2; pass++) {
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
        for (int block = 1; block <= grid->particle_blocks; block++) {
            if (pass == 0)
                first[block + 1] = near_boundary(&f, block) ? contacts_of_block(&f, block, NULL) : 0;
            else if (first[block + 1] > first[block])
                contacts_of_block(&f, block, walls->contacts + first[block]);
        }
        if (pass == 1)
            break;

        /* Turn the counts into offsets. */
        for (int block = 1; block <= grid->particle_blocks; block++)
            first[block + 1] += first[block];
        sph->contact_count = first[grid->particle_blocks + 1];
        SK_TRY(sk_reserve(sph->memory, (void **)&walls->contacts, &walls->contact_capacity, sph->contact_count + 1,
                          sizeof *walls->contacts, "contacts with bodies", error));
        sph->contacts = walls->contacts;
    }

    if (f.overflow)
        return sk_fail(error, SELKIE_ERROR_UNSUPPORTED,
                       "bodies: more than %d of them within %g m: they are too small for these particles", MOST_PARTS,
                       2 * sph->support);
    return SELKIE_OK;
}

/* m M^-1 B */
static void respond(const sk_sph_body *body, const double b[6], double moved[6])
{
    for (int i = 0; i < 6; i++) {
        moved[i] = 0.0;
        for (int j = 0; j < 6; j++)
            moved[i] += body->response[6 * i + j] * b[j];
    }
}

/* Adds the diagonal of the bodies' share. A light body with many particles around it can dominate the system. The
 * diagonal is then enlarged further, so that Jacobi steps stay stable: the largest eigenvalue of the scaled share is at
 * most its trace. */
static void add_diagonal(sk_step *step)
{
    sk_sph *sph = step->sph;
    sk_sph_body *bodies = sph->boundary.bodies;
    for (int pass = 0; pass < 2; pass++)
        for (size_t c = 0; c < sph->contact_count; c++) {
            const sk_sph_contact *contact = &sph->contacts[c];
            sk_sph_body *body = &bodies[contact->part];
            float *diagonal = &sph->diagonal[contact->particle];
            double b[6], moved[6], share = 0.0;
            if (!body->responds)
                continue;
            for (int i = 0; i < 6; i++)
                b[i] = contact->gradient[i];
            respond(body, b, moved);
            for (int i = 0; i < 6; i++)
                share += b[i] * moved[i];
            if (pass == 0)
                body->trace += *diagonal > 0.0f ? share / *diagonal : 0.0;
            else
                *diagonal = (float)((*diagonal + share) * fmax(1.0, 0.5 * (1.0 + body->trace)));
        }
}

selkie_code SK_DIM(sk_sph_coupling_begin)(sk_step *step, selkie_error *error)
{
    sk_sph *sph = step->sph;
    sk_sph_walls *walls = sph->walls;
    int wanted = 0, responds = 0;
    sph->contact_count = 0;
    sph->body_term = NULL;
    for (int b = 0; walls && b < sph->boundary.body_count; b++) {
        wanted |= is_wanted(&sph->boundary.bodies[b]);
        responds |= sph->boundary.bodies[b].responds;
        sph->boundary.bodies[b].trace = 0.0;
    }
    if (!wanted || (!sph->boundary.count && !sph->boundary.side_count))
        return SELKIE_OK;
    SK_TRY(find_contacts(step, walls, error));
    if (!responds)
        return SELKIE_OK;
    SK_TRY(sk_reserve(sph->memory, (void **)&walls->body_term, &walls->term_capacity, (size_t)step->particles.count + 8,
                      sizeof *walls->body_term, "contacts with bodies", error));
    memset(walls->body_term, 0, (size_t)step->particles.count * sizeof *walls->body_term);
    sph->body_term = walls->body_term;
    add_diagonal(step);
    return SELKIE_OK;
}

#if SELKIE_DIM == 3 /* the rest is the same in 2D and 3D */

static void sum_contacts(const sk_sph *sph, const float *q)
{
    for (int b = 0; b < sph->boundary.body_count; b++)
        memset(sph->boundary.bodies[b].sum, 0, sizeof sph->boundary.bodies[b].sum);
    for (size_t c = 0; c < sph->contact_count; c++) {
        const sk_sph_contact *contact = &sph->contacts[c];
        double *sum = sph->boundary.bodies[contact->part].sum, value = q[contact->particle];
        for (int i = 0; i < 6; i++)
            sum[i] += value * contact->gradient[i];
    }
}

void sk_sph_coupling_apply(sk_step *step, const float *q)
{
    sk_sph *sph = step->sph;
    sum_contacts(sph, q);
    for (int b = 0; b < sph->boundary.body_count; b++)
        respond(&sph->boundary.bodies[b], sph->boundary.bodies[b].sum, sph->boundary.bodies[b].moved);
    for (size_t c = 0; c < sph->contact_count; c++)
        sph->body_term[sph->contacts[c].particle] = 0.0f;
    for (size_t c = 0; c < sph->contact_count; c++) {
        const sk_sph_contact *contact = &sph->contacts[c];
        const double *moved = sph->boundary.bodies[contact->part].moved;
        double term = 0.0;
        for (int i = 0; i < 6; i++)
            term += moved[i] * contact->gradient[i];
        if (sph->boundary.bodies[contact->part].responds)
            sph->body_term[contact->particle] += (float)term;
    }
}

void sk_sph_coupling_end(sk_step *step, const float *q)
{
    sk_sph *sph = step->sph;
    /* A particle moves by -q G in the step. The body gains the momentum m q G / dt; the force is that over dt. */
    const double unit = step->particle_mass / (step->dt * step->dt);
    sum_contacts(sph, q);
    for (int b = 0; b < sph->boundary.body_count; b++)
        for (int d = 0; d < 3; d++) {
            sph->boundary.bodies[b].force[d] += unit * sph->boundary.bodies[b].sum[d];
            sph->boundary.bodies[b].torque[d] += unit * sph->boundary.bodies[b].sum[3 + d];
        }
}

#endif
