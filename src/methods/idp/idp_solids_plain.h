/* Overfull cells and particles inside solids, one cell at a time, for the CPU and the GPU: see idp_parts_dim.c. For
 * files compiled per dimension.
 *
 * The includer defines SK_IDP_DISTANCE(solids, x, normal, obstacle) as sk_solids_distance, SK_IDP_VELOCITY(solids,
 * obstacle, x, velocity) as sk_solids_velocity and SK_IDP_SWEEP(solids, low, high, from, to) as a displacement of
 * sk_sweep_displacement at the start of the step. */
#ifndef SK_METHODS_IDP_IDP_SOLIDS_PLAIN_H
#define SK_METHODS_IDP_IDP_SOLIDS_PLAIN_H

#include "methods/idp/idp_kernels.h"
#include "methods/step.h"

enum { SK_IDP_MOST_ASKED = 4096 }; /* sub-cells that are tested for solids one by one */

SK_KERNEL int64_t idp_sub_cells(int64_t per_axis)
{
    return SELKIE_DIM == 2 ? per_axis * per_axis : per_axis * per_axis * per_axis;
}

/* The lower corner of a cell, m, and sub-cells along each axis. */
typedef struct idp_sub_grid {
    double corner[3];
    int64_t per_axis;
} idp_sub_grid;

/* Is the centre of a sub-cell outside the solids? */
SK_KERNEL int idp_is_open(const sk_step *step, const idp_sub_grid *grid, int64_t s)
{
    const int64_t n = grid->per_axis, sub[3] = {s % n, s / n % n, s / n / n};
    double x[3] = {0.0, 0.0, 0.0}, normal[3];
    int obstacle;
    for (int d = 0; d < SELKIE_DIM; d++)
        x[d] = grid->corner[d] + ((double)sub[d] + 0.5) / (double)n * step->grid.cell_size;
    return SK_IDP_DISTANCE(&step->solids, x, normal, &obstacle) > 0.0;
}

SK_KERNEL int64_t idp_count_open(const sk_step *step, const idp_sub_grid *grid)
{
    int64_t found = 0;
    for (int64_t s = 0; s < idp_sub_cells(grid->per_axis); s++)
        found += idp_is_open(step, grid, s);
    return found;
}

/* The place of an open sub-cell by its number. `cursor` is the place and number found last: numbers mostly rise. */
SK_KERNEL int64_t idp_open_place(const sk_step *step, const idp_sub_grid *grid, int64_t number, int64_t cursor[2])
{
    if (number < cursor[1])
        cursor[0] = cursor[1] = -1;
    while (cursor[1] < number)
        cursor[1] += idp_is_open(step, grid, ++cursor[0]);
    return cursor[0];
}

/* The velocity that conserves the momentum of the particles: their mean, weighted by mass if masses differ. `material`
 * is that of the first particle. */
SK_KERNEL void idp_mean_velocity(const sk_step *step, const sk_particle *records, const uint32_t *material,
                                 int64_t count, double mean[3])
{
    double total = 0.0;
    mean[0] = mean[1] = mean[2] = 0.0;
    for (int64_t p = 0; p < count; p++) {
        const double mass =
            step->relative_density && material
                ? step->particle_mass * (double)step->relative_density[material[p] % SK_TRANSFER_MATERIALS]
                : step->particle_mass;
        total += mass;
        for (int d = 0; d < SELKIE_DIM; d++)
            mean[d] += step->relative_density ? mass * (double)records[p].velocity[d]
                                              : (double)records[p].velocity[d] / (double)count;
    }
    for (int d = 0; step->relative_density && d < SELKIE_DIM; d++)
        mean[d] /= total;
}

/* Sub-cells along an axis: enough for each particle, unless there are too many to test in a cut cell. */
SK_KERNEL int64_t idp_refine(int64_t count, int cut)
{
    int64_t per_axis = 1;
    while (idp_sub_cells(per_axis) < count && !(cut && idp_sub_cells(per_axis + 1) > SK_IDP_MOST_ASKED))
        per_axis++;
    return per_axis;
}

/* Gives a particle a velocity and its place (m), near the centre of a sub-cell, with jitter. `to` may be the position
 * of the particle itself. */
SK_KERNEL void idp_spread_particle(const sk_step *step, const double corner[3], int64_t per_axis, int64_t place,
                                   const double velocity[3], float to[3], sk_particle *particle)
{
    const uint64_t seed = step->scene->seed + (uint64_t)step->step_count;
    for (int d = 0; d < SELKIE_DIM; d++) {
        to[d] = sk_idp_spread_to(seed, particle->id, d, corner[d], step->grid.cell_size, place, per_axis);
        particle->velocity[d] = (float)velocity[d];
    }
}

/* Particles at nearly the same place receive the same displacement and never separate. So the particles of a far
 * overfull cell are redistributed, one near the centre of each of as many sub-cells. In a cut cell only open sub-cells
 * count. They are refined until there are enough; beyond a limit several particles share one. All take the mean
 * velocity of the cell, which conserves its momentum. The paper samples the grid, which has no velocity yet at this
 * point of the step. Returns the number of particles. */
SK_KERNEL int64_t idp_spread_cell(const sk_step *step, sk_particle *records, const uint32_t *material, int64_t count,
                                  const double corner[3], int cut)
{
    idp_sub_grid sub = {{corner[0], corner[1], corner[2]}, idp_refine(count, cut)};
    int64_t room = idp_sub_cells(sub.per_axis), cursor[2] = {-1, -1};
    while (cut && (room = idp_count_open(step, &sub)) < count && idp_sub_cells(sub.per_axis + 1) <= SK_IDP_MOST_ASKED)
        sub.per_axis++;
    if (room == 0)
        return 0; /* a sliver: only the push along the surface can help */

    /* Mean velocity of the cell, and bounds of the domain. */
    double mean[3];
    float low[3], high[3];
    idp_mean_velocity(step, records, material, count, mean);
    sk_solids_bounds(&step->solids, &step->grid, low, high);

    /* Distribute the particles evenly over the sub-cells. */
    for (int64_t p = 0; p < count; p++) {
        int64_t place = sk_idp_sub_cell(p, count, room);
        float to[3] = {0.0f, 0.0f, 0.0f};
        place = cut ? idp_open_place(step, &sub, place, cursor) : place;
        idp_spread_particle(step, corner, sub.per_axis, place, mean, to, &records[p]);

        /* A wall may divide the cell. */
        if (cut)
            SK_IDP_SWEEP(&step->solids, low, high, records[p].position, to);
        for (int d = 0; d < SELKIE_DIM; d++)
            records[p].position[d] = to[d];
    }
    return count;
}

/* Particles of a closed cell take the velocity of the solid, and are flagged. The displacement of the cell, in cells,
 * into CHANGE_*: that of its deepest particle to the surface, at most 0.5 (Eq. 13). `cell` is the cell's place in the
 * fields. The cells of a running source are closed too, but full of liquid: its particles move as the source says.
 * Returns the number of particles that are pushed. */
SK_KERNEL int64_t idp_push_cell(const sk_step *step, sk_particle *records, int64_t count, size_t cell)
{
    const sk_grid *grid = &step->grid;
    double deepest = INFINITY, push[3] = {0.0, 0.0, 0.0};
    int64_t pushed = 0;
    for (int64_t p = 0; p < count; p++) {
        sk_particle *particle = &records[p];
        double x[3] = {particle->position[0], particle->position[1], particle->position[2]}, normal[3], velocity[3];
        int obstacle;
        const double distance = SK_IDP_DISTANCE(&step->solids, x, normal, &obstacle);
        if (particle->flags & SK_PARTICLE_DRIVEN && distance >= 0.0)
            continue;
        pushed++;
        particle->flags |= SK_PARTICLE_INSIDE;
        SK_IDP_VELOCITY(&step->solids, obstacle, x, velocity);
        for (int d = 0; d < SELKIE_DIM; d++)
            particle->velocity[d] = (float)velocity[d];

        /* The deepest particle determines the displacement of the cell. */
        if (distance < deepest) {
            deepest = distance;
            /* Outside the solid, but in a nook without an open face: push it out as well. */
            const double depth = distance < 0.0 ? fmin(-distance / grid->cell_size, 0.5) : 0.5;
            for (int d = 0; d < SELKIE_DIM; d++)
                push[d] = depth * normal[d];
        }
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        grid->fields[SK_FIELD_CHANGE_X + d][cell] = (float)push[d];
    return pushed;
}

#endif
