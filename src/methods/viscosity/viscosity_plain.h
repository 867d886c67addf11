/* The viscosity phase, one cell or face at a time: weights of the stress, and faces that follow it. The GPU runs these
 * functions; on the CPU loops over rows of cells take their place where most cells are alike. For files compiled per
 * dimension. */
#ifndef SK_METHODS_VISCOSITY_VISCOSITY_PLAIN_H
#define SK_METHODS_VISCOSITY_VISCOSITY_PLAIN_H

#include <math.h>

#include "grid/grid_kernels.h"
#include "grid/plain.h"
#include "linalg/stress_kernels.h"
#include "methods/liquid_plain.h"
#include "methods/viscosity/viscosity.h"
#include "methods/viscosity/viscosity_fields.h"
#include "methods/viscosity/viscosity_kernels.h"

SK_KERNEL int is_solid(const sk_grid *grid, sk_plain_cell cell)
{
    return (grid->kinds[sk_plain_index(cell)] & SK_CELL_KIND_MASK) == SK_CELL_SOLID;
}

/* The depth of a cell below the surface, as the stress sees it; NaN in solids. A hole, liquid though its centre lies
 * above the surface, bears what lies on it: without stress, a thread would slide on such cells. */
SK_KERNEL float stressed_depth(const sk_grid *grid, size_t cell)
{
    const int kind = grid->kinds[cell] & SK_CELL_KIND_MASK;
    const float depth = grid->fields[SK_FIELD_DEPTH][cell];
    const int hole = kind == SK_CELL_LIQUID && depth < 0.0f;
    return kind == SK_CELL_SOLID ? __builtin_nanf("") : hole ? 0.5f : depth;
}

/* The sub-cells of a cell that hold a particle, one bit each. */
SK_KERNEL unsigned occupied_sub_cells(const sk_step *step, sk_plain_cell cell)
{
    const float inverse = (float)(1.0 / step->grid.cell_size);
    uint32_t first, last;
    unsigned occupied = 0;
    sk_plain_particles(&step->grid, cell, &first, &last);
    for (uint32_t p = first; p < last; p++) {
        int n = 0;
        for (int d = 0; d < SELKIE_DIM; d++) {
            const float coordinate =
                sk_cell_coordinate(step->particles.records[p].position[d], (float)step->grid.corner[d], inverse);
            n |= (coordinate - floorf(coordinate) >= 0.5f) << d;
        }
        occupied |= 1u << n;
    }
    return occupied;
}

/* Density at a face over the reference density. */
SK_KERNEL float density_at(const sk_step *step, sk_plain_cell cell, int d)
{
    return step->relative_density ? 1.0f / lightness_at(step, cell, d) : 1.0f;
}

/* Is the velocity of a closed face given? Not on a wall that the liquid beside it does not touch yet: its cell would be
 * a strut between wall and liquid, on which a thread lay for seconds. Faces inside solids have the walls' velocity.
 * Cells that an obstacle covers in part have little liquid although it touches, and nothing else holds it there: with
 * obstacles every closed face is given. */
SK_KERNEL int wall_holds(const sk_step *step, sk_plain_cell cell, int d, float share)
{
    const sk_grid *grid = &step->grid;
    return step->solids.obstacle_count || share >= SK_VISCOUS_TOUCH ||
           (is_solid(grid, cell) && is_solid(grid, sk_plain_next(grid, cell, d, -1)));
}

/* Weight of the shear between axes a and b at the lower edge of a cell on a wall, over viscosity and density. */
SK_KERNEL float wall_weight(const sk_step *step, sk_plain_cell cell, int a, int b, float share)
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;

    /* Cells inside the solid know its surface. In a corner, the liquid's cell may be nearest to the other wall. */
    const sk_plain_cell around[3] = {cell, sk_plain_next(grid, cell, a, -1), sk_plain_next(grid, cell, b, -1)};
    float inside = -1.0f, beside = 0.0f;
    for (int n = 0; n < 3; n++) {
        const float grip = sk_solids_grip(solids, sk_plain_solid_index(solids, around[n]));
        if (around[n].slot && is_solid(grid, around[n]))
            inside = fmaxf(inside, grip);
        beside = fmaxf(beside, grip);
    }
    return sk_viscous_wall_weight(share, inside >= 0.0f ? inside : beside);
}

/* Logarithms of viscosity x time / cell size^2: of each material, and over temperature where it depends on it. */
typedef struct viscosity_logs {
    float of[SK_TRANSFER_MATERIALS];
    float (*law)[SK_VISCOUS_LAW_POINTS + 1]; /* [materials] at even temperatures; NULL = constant */
    float lowest, inverse;                   /* K, 1/K  temperature of the first, and one over their distance */
    const uint32_t *material;                /* of each particle; NULL = one */
    const float *temperature;                /* K  likewise */
} viscosity_logs;

SK_KERNEL float log_of_particle(const viscosity_logs *logs, uint32_t p)
{
    const uint32_t m = logs->material ? logs->material[p] % SK_TRANSFER_MATERIALS : 0;
    if (!logs->law)
        return logs->of[m];
    return sk_viscous_law(logs->law[m], SK_VISCOUS_LAW_POINTS, (logs->temperature[p] - logs->lowest) * logs->inverse);
}

/* The mean of the particles' logarithms in a cell; NaN without particles. */
SK_KERNEL float own_log_of(const sk_step *step, sk_plain_cell cell, const viscosity_logs *logs)
{
    uint32_t first, last;
    double sum = 0.0;
    sk_plain_particles(&step->grid, cell, &first, &last);
    for (uint32_t p = first; p < last; p++)
        sum += (double)log_of_particle(logs, p);
    return last > first ? (float)(sum / (double)(last - first)) : __builtin_nanf("");
}

/* The mean of the cells around, weights 1 2 1 along each axis: the solver needs many iterations for a jump between two
 * cells. NaN if no cell around has particles. */
SK_KERNEL float smooth_log(const sk_grid *grid, const float *own_log, sk_plain_cell cell)
{
    float sum = 0.0f, weights = 0.0f;
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        const int offset[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
        const sk_plain_cell other = sk_plain_beside(grid, cell, offset);
        const float value = own_log[sk_plain_index(other)];
        if (!other.slot || value != value)
            continue;
        float weight = 1.0f;
        for (int d = 0; d < SELKIE_DIM; d++)
            weight *= offset[d] ? 1.0f : 2.0f;
        sum += weight * value;
        weights += weight;
    }
    return weights > 0.0f ? sum / weights : __builtin_nanf("");
}

/* Several viscosities: viscosity x time / cell size^2 at a cell (axes 0) or at the lower edge across two axes. */
SK_KERNEL float strength_at(const sk_viscous_fields *f, const sk_grid *grid, sk_plain_cell cell, int axes)
{
    float sum = 0.0f;
    int count = 0;
    for (int n = 0; n < SK_CORNERS; n++) {
        int offset[3] = {0, 0, 0};
        if (n & ~axes)
            continue;
        for (int d = 0; d < SELKIE_DIM; d++)
            offset[d] = n >> d & 1 ? -1 : 0;
        const float value = f->log[sk_plain_index(sk_plain_beside(grid, cell, offset))];
        sum += value == value ? value : 0.0f;
        count += value == value;
    }
    return count ? expf(sum / (float)count) : 0.0f;
}

/* Several densities or viscosities: the weights of a cell for the liquid there. */
SK_KERNEL void weigh_liquids(const sk_step *step, const sk_viscous_fields *f, sk_plain_cell cell)
{
    const sk_grid *grid = &step->grid;
    const size_t here = sk_plain_index(cell);
    float density = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++) {
        density +=
            (density_at(step, cell, d) + density_at(step, sk_plain_next(grid, cell, d, 1), d)) / (2 * SELKIE_DIM);
        f->mass[d][here] *= density_at(step, cell, d);
    }
    f->normal[here] *= density * (f->log ? strength_at(f, grid, cell, 0) : 1.0f);
    f->bulk[here] = SK_VISCOUS_BULK_SHARE * f->normal[here];
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int b = a + 1; b < SELKIE_DIM; b++) {
            const float mean = 0.5f * (density_at(step, cell, a) + density_at(step, cell, b));
            f->shear[sk_stress_edge(a, b)][here] *=
                mean * (f->log ? strength_at(f, grid, cell, 1 << a | 1 << b) : 1.0f);
        }
}

/* The mean change by viscosity of the faces beside a face that stress acted on, or that followed such faces. Faces of a
 * speck do not change (stress_rigid_dim.c): a face beside one of them moves with the speck, not with the liquid on its
 * other side. */
SK_KERNEL float change_beside(const sk_step *step, const sk_viscous_fields *f, sk_plain_cell cell, int d, int layer)
{
    const sk_grid *grid = &step->grid;
    const float *before = grid->fields[SK_FIELD_VELOCITY_X + d];
    float sum = 0.0f;
    int count = 0;
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const size_t other = sk_plain_index(sk_plain_next(grid, cell, side / 2, side % 2 ? 1 : -1));
        const float change = f->velocity[d][other] - before[other];
        const int moved = f->solved[d][other] || (layer && f->carried[d][other]);
        if (!moved || f->fixed[d][other] || change != change)
            continue;
        if (change == 0.0f)
            return 0.0f;
        sum += change;
        count++;
    }
    return count ? sum / (float)count : __builtin_nanf("");
}

/* Particles at the rim of the liquid reach faces beyond its stress. Such faces change like the faces beside them: they
 * would fall freely, and take the particles off the liquid. Two layers, as far as a particle reaches. A layer reads
 * nothing that it writes. */
SK_KERNEL void carry_face(const sk_step *step, const sk_viscous_fields *f, sk_plain_cell cell, int d, int layer)
{
    const size_t here = sk_plain_index(cell);
    const float change = change_beside(step, f, cell, d, layer);
    if (change != change)
        return;
    f->velocity[d][here] = step->grid.fields[SK_FIELD_VELOCITY_X + d][here] + change;
    if (layer == 0)
        f->carried[d][here] = 1;
}

#endif
