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

/* Mean of the sub-cells around the lower face (axes has one bit) or edge (two bits) of a cell, or in the cell (none).
 * Below a face lies the upper half of the cell before it. */
SK_KERNEL float mean_share(const sk_grid *grid, const sk_viscous_fields *f, sk_plain_cell cell, int axes)
{
    float sum = 0.0f;
    for (int n = 0; n < SK_CORNERS; n++) {
        int offset[3] = {0, 0, 0};
        for (int d = 0; d < SELKIE_DIM; d++)
            offset[d] = axes >> d & 1 && n >> d & 1 ? -1 : 0;
        sum += f->share[n][sk_plain_index(sk_plain_beside(grid, cell, offset))] * (1.0f / SK_CORNERS);
    }
    return sum;
}

/* Does an obstacle reach a block, and no body? Bodies close the faces that they own for the most part. */
SK_KERNEL int is_cut(const sk_step *step, int block)
{
    const sk_solids *solids = &step->solids;
    return solids->obstacle_count > solids->body_count && solids->block_slot[block] &&
           (!solids->body_count || solids->piece_first[block] == solids->piece_first[block + 1]);
}

/* Distance of the centre of a face from the solids, in cells, and the grip of the solid beside or around it. */
SK_KERNEL float face_outside(const sk_step *step, sk_plain_cell cell, int d, float *grip)
{
    const sk_solids *solids = &step->solids;
    const size_t here = sk_plain_solid_index(solids, cell),
                 before = sk_plain_solid_index(solids, sk_plain_next(&step->grid, cell, d, -1));
    *grip = sk_solids_grip(solids, solids->distance[here] < solids->distance[before] ? here : before);
    return 0.5f * (solids->distance[here] + solids->distance[before]);
}

/* The liquid's part of the open space beside a closed face in a block that an obstacle cuts. The cube around a face
 * that lies deep in the obstacle is not open; the cells beside the face may be. 1 where nothing is open. */
SK_KERNEL float part_beside(const sk_step *step, const sk_viscous_fields *f, sk_plain_cell cell, int d, float share)
{
    float grip, part = 0.0f;
    const float outside = face_outside(step, cell, d, &grip);
    if (outside >= -SK_VISCOUS_DEEP)
        return sk_viscous_part_of_open(share, outside);
    int open = 0;
    for (int side = 0; side < 2; side++) {
        const sk_plain_cell beside = side ? cell : sk_plain_next(&step->grid, cell, d, -1);
        const float distance = step->solids.distance[sk_plain_solid_index(&step->solids, beside)];
        if (distance < -SK_VISCOUS_DEEP)
            continue;
        part = fmaxf(part, sk_viscous_part_of_open(mean_share(&step->grid, f, beside, 0), distance));
        open = 1;
    }
    return open ? part : 1.0f;
}

/* Is the velocity of a closed face given? Not on a wall that the liquid beside it does not touch yet: its cell would be
 * a strut between wall and liquid, on which a thread lay for seconds. Faces inside solids have the walls' velocity.
 * Bodies move: faces beside them are always given. */
SK_KERNEL int wall_holds(const sk_step *step, const sk_viscous_fields *f, sk_plain_cell cell, int d, float share)
{
    const sk_grid *grid = &step->grid;
    if (step->solids.body_count || share >= SK_VISCOUS_TOUCH ||
        (is_solid(grid, cell) && is_solid(grid, sk_plain_next(grid, cell, d, -1))))
        return 1;
    return is_cut(step, cell.slot) && part_beside(step, f, cell, d, share) >= 2.0f * SK_VISCOUS_TOUCH;
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

/* Weight of the difference between the lower faces across axis d of two cells, one cell apart, beside an obstacle that
 * holds liquid. It follows from their distances to its surface: a cell that it covers for the most part has no liquid
 * around the edge inside the obstacle. `share` is the liquid's share between the faces. Raises most[1] if one of them
 * is closed, else most[0]; neither if no surface is near that holds liquid, or the distances do not show it. */
SK_KERNEL void raise_weights(const sk_step *step, const sk_viscous_fields *f, const sk_plain_cell faces[2], int d,
                             float share, float most[2])
{
    int closed[2];
    float outside[2], grip[2];
    for (int n = 0; n < 2; n++) {
        closed[n] = f->closed[sk_plain_index(faces[n])] >> d & 1;
        outside[n] = face_outside(step, faces[n], d, &grip[n]);
    }
    const int at = outside[1] > outside[0], is_closed = closed[!at];
    const float outer = outside[at], inner = outside[!at], held = grip[!at];
    if (closed[at] || outer - inner < SK_VISCOUS_SLOPE)
        return;
    if (!(held > 0.0f)) {
        most[1] = is_closed ? fmaxf(most[1], 0.0f) : most[1];
        return;
    }
    const float slip = 0.5f * (1.0f / held - 1.0f);
    if (!is_closed && (inner >= SK_VISCOUS_NEAREST || outer + slip <= 2.0f * SK_VISCOUS_NEAREST))
        return;

    /* An edge inside the obstacle has no liquid: the open face beside it has. */
    float part = sk_viscous_part_of_open(share, 0.5f * (inner + outer));
    if (is_closed && inner + outer < -2.0f * SK_VISCOUS_DEEP)
        part = fmaxf(part, sk_viscous_part_of_open(mean_share(&step->grid, f, faces[at], 1 << d), outer));
    most[is_closed] = fmaxf(most[is_closed], sk_viscous_cut_weight(part, outer, inner, is_closed, slip));
}

/* Is a cell in a cut block so near to a surface that it can cut the faces around the cell? */
SK_KERNEL int is_near(const sk_step *step, sk_plain_cell cell)
{
    const float distance = step->solids.distance[sk_plain_solid_index(&step->solids, cell)];
    return distance < SK_VISCOUS_NEAR && distance > -SK_VISCOUS_NEAR;
}

/* Weight of the shear at the lower edge of a cell across axes a and b, over viscosity and density, in a block that an
 * obstacle cuts. `share` is the liquid's share around the edge. */
SK_KERNEL float cut_shear(const sk_step *step, const sk_viscous_fields *f, sk_plain_cell cell, int a, int b,
                          float share)
{
    const sk_plain_cell before_a = sk_plain_next(&step->grid, cell, a, -1),
                        before_b = sk_plain_next(&step->grid, cell, b, -1);
    const sk_plain_cell across_a[2] = {before_b, cell}, across_b[2] = {before_a, cell};
    float most[2] = {-1.0f, -1.0f};
    raise_weights(step, f, across_a, a, share, most);
    raise_weights(step, f, across_b, b, share, most);
    if (most[1] >= 0.0f || most[0] >= 0.0f)
        return most[1] >= 0.0f ? most[1] : most[0];
    const int closed = f->closed[sk_plain_index(cell)];
    const int wall =
        ((closed ^ f->closed[sk_plain_index(before_b)]) >> a | (closed ^ f->closed[sk_plain_index(before_a)]) >> b) & 1;
    return wall ? wall_weight(step, cell, a, b, share) : share;
}

/* Weight of the normal strain of a cell in such a block, and of its divergence, over the bulk viscosity. A surface at
 * 45 degrees to the axes acts by the normal strain alone. Closed faces beside open ones are the steps of an oblique
 * surface: where it does not hold liquid they must not, since the liquid moves along it. Such a surface acts by
 * pressure alone. */
SK_KERNEL float cut_normal(const sk_step *step, const sk_viscous_fields *f, sk_plain_cell cell, float share,
                           float *bulk)
{
    float most[2] = {-1.0f, -1.0f}, steepest = 0.0f, held = 0.0f;
    *bulk = share;
    if (!(share > 0.0f))
        return 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const sk_plain_cell faces[2] = {cell, sk_plain_next(&step->grid, cell, d, 1)};
        float grip[2];
        raise_weights(step, f, faces, d, share, most);
        const float slope = face_outside(step, faces[1], d, &grip[1]) - face_outside(step, faces[0], d, &grip[0]);
        steepest = fmaxf(steepest, fabsf(slope));
        held = fmaxf(held, grip[slope < 0.0f]);
    }
    if (most[1] < 0.0f)
        return most[0] < 0.0f ? share : most[0];
    const int moves = (size_t)step->solids.block_slot[cell.slot] >= step->solids.static_count;
    if (steepest > SK_VISCOUS_ALIGNED || (moves && held < 0.5f))
        return fmaxf(share, most[1]);
    *bulk = fminf(share, most[1]) * held * held;
    return most[1];
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
    const float strength = density * (f->log ? strength_at(f, grid, cell, 0) : 1.0f);
    f->normal[here] *= strength;
    f->bulk[here] *= strength;
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
