/* Contacts of particles with bodies, and the bodies' share in the pressure system (boundary.h). Contacts are few, so
 * the work of an iteration is serial, in the order of the particles. */
#include <math.h>
#include <string.h>

#include "methods/sph/contact_plain.h"

typedef struct finder {
    const sk_step *step;
    int overflow;
} finder;

/* Counts a block's contacts, or writes them if `to` is not NULL. */
static uint32_t contacts_of_block(finder *f, int block, sk_sph_contact *to)
{
    const sk_grid *grid = &f->step->grid;
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    uint32_t total = 0;
    near_walls walls = {0};
    walls.side_count = find_wanted_sides(f->step, block, walls.sides);
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        if (start[c] == start[c + 1])
            continue;
        find_points_near_cell(f->step, block, c, &walls);
        for (uint32_t i = start[c]; (walls.range_count || walls.side_count) && i < start[c + 1]; i++) {
            const sk_particle *particle = &f->step->particles.records[i];
            contact_list list = {.particle = i, .count = 0, .overflow = 0};
            if (!(particle->flags & SK_PARTICLE_BOUNDARY))
                find_contacts_of(f->step->sph, &walls, particle->position, &list);
            if (list.overflow)
                __atomic_store_n(&f->overflow, 1, __ATOMIC_RELAXED);
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
    return find_wanted_sides(f->step, block, sides) || points_near_block(f->step, block);
}

static selkie_code find_contacts(sk_step *step, sk_sph_walls *walls, selkie_error *error)
{
    sk_sph *sph = step->sph;
    const sk_grid *grid = &step->grid;
    finder f = {.step = step, .overflow = 0};
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
        return sk_sph_crowded(step, error);
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
        wanted |= is_wanted_part(&sph->boundary.bodies[b]);
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

selkie_code sk_sph_crowded(const sk_step *step, selkie_error *error)
{
    return sk_fail(error, SELKIE_ERROR_UNSUPPORTED,
                   "bodies: more than %d of them within %g m: they are too small for these particles",
                   SK_SPH_MOST_PARTS, 2 * step->sph->support);
}

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
