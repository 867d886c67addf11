/* Elastoplastic points beside liquids: functions of one face, node or particle, which the GPU runs as well. For files
 * compiled per dimension.
 *
 * SK_IMMERSED_FIND(in, at) is the cell with some coordinates. */
#ifndef SK_METHODS_IMMERSED_PLAIN_H
#define SK_METHODS_IMMERSED_PLAIN_H

#include <math.h>
#include <string.h>

#include "methods/elastoplastic/immersed.h"
#include "methods/elastoplastic/immersed_kernels.h"
#include "methods/elastoplastic/mpm_plain.h"
#include "methods/part_kernels.h"

/* What this needs of a material. */
typedef struct immersed_law {
    float friction;       /* Coulomb's, against the liquid */
    float from, range;    /* K  where it softens; range 0 = nowhere */
    int is_point, grains; /* grains: it is sand */
} immersed_law;

typedef struct immersed_frame {
    const sk_step *step;
    sk_mixture_faces f;
    float (*nodes)[4];          /* velocities and masses of the points: sk_mpm */
    float *grains;              /* [cells] 1 = holds points of sand */
    const float *solid_density; /* [cells] */
    const uint32_t *material;   /* [particles] NULL = all of the first */
    const float *temperature;   /* [particles] K; NULL = no heat */
    uint32_t *law;              /* [particles] of points, where the GPU notes them */
    const int32_t *slots;       /* [places] slots of blocks, for SK_IMMERSED_FIND of the GPU */
    float lightness;            /* of the first material of points */
    int first_material;         /* of points */
    int levels;                 /* of temperature in mpm's table of laws */
    immersed_law laws[SK_TRANSFER_MATERIALS];
} immersed_frame;

SK_KERNEL int immersed_material_of(const immersed_frame *in, size_t p)
{
    return in->material ? (int)(in->material[p] % SK_TRANSFER_MATERIALS) : 0;
}

SK_KERNEL int immersed_is_point(const immersed_frame *in, size_t p)
{
    return in->laws[immersed_material_of(in, p)].is_point;
}

/* Law of a point in mpm's table: its material, and the level of its temperature. */
SK_KERNEL uint32_t immersed_law_of(const immersed_frame *in, size_t p)
{
    const int material = immersed_material_of(in, p);
    const immersed_law *law = &in->laws[material];
    if (in->levels == 1 || !in->temperature || !(law->range > 0.0f))
        return (uint32_t)(material * in->levels);
    const float at = (in->temperature[p] - law->from) / law->range;
    const float level = fminf(fmaxf(at, 0.0f), 1.0f) * (float)(in->levels - 1);
    return (uint32_t)(material * in->levels) + (uint32_t)lrintf(level);
}

/* --- The mixture --- */

SK_KERNEL float immersed_gain(const sk_step *step, int d)
{
    return (float)(step->scene->gravity[d] * sk_step_kick(step));
}

/* The mixture at the lower faces of a cell. Gravity acts on it later, and on the nodes it has acted. */
SK_KERNEL void immersed_mix_cell(const immersed_frame *in, sk_plain_cell cell)
{
    const float(*nodes)[4] = (const float(*)[4])in->nodes;
    const size_t i = sk_plain_index(cell);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float *below = nodes[sk_plain_index(sk_plain_next(&in->step->grid, cell, d, -1))], *above = nodes[i];
        const float own = in->f.share[d][i] > 0.0f ? in->f.before[d][i] : in->lightness;
        float mass;
        const float solid =
            sk_immersed_face(below[d], below[3], above[d], above[3], &mass) - immersed_gain(in->step, d);
        const float volume = mass * own / (float)in->step->particles_per_cell;
        const float share = sk_solid_share(volume, in->f.liquid_density[d][i]);
        in->f.share[d][i] = share;
        in->f.liquid[d][i] = in->f.velocity[d][i];
        in->f.velocity[d][i] = in->f.change[d][i] = sk_mixed_velocity(share, solid, in->f.velocity[d][i]);
        in->f.solid[d][i] = own;
        if (share > 0.0f)
            in->f.lightness[d][i] =
                sk_mixed_lightness(share, own, in->f.liquid_density[d][i] > 0.0f ? in->f.lightness[d][i] : own);
    }
}

/* Lightness that an eased face has beyond its own. */
SK_KERNEL float immersed_ease_of(const immersed_frame *in, sk_plain_cell cell, int d)
{
    const size_t i = sk_plain_index(cell), below = sk_plain_index(sk_plain_next(&in->step->grid, cell, d, -1));
    if (!(in->f.share[d][i] > 0.9f))
        return 0.0f;
    const float grains = fminf(in->grains[i], in->grains[below]);
    return sk_immersed_ease(in->f.share[d][i], grains, 8.0f * in->f.solid[d][i]);
}

/* The velocity before the pressure solve, and the change by forces, at the lower faces of a cell. */
SK_KERNEL void immersed_remember_cell(const immersed_frame *in, sk_plain_cell cell)
{
    const size_t i = sk_plain_index(cell);
    for (int d = 0; d < SELKIE_DIM; d++) {
        in->f.before[d][i] = in->f.velocity[d][i];
        in->f.forced[d][i] = in->f.velocity[d][i] - in->f.change[d][i];
        in->f.lightness[d][i] += immersed_ease_of(in, cell, d);
    }
}

/* Lightness of the liquid at the lower face of a cell. */
SK_KERNEL float immersed_liquid_lightness(const immersed_frame *in, sk_plain_cell cell, int d)
{
    const size_t i = sk_plain_index(cell);
    const float share = in->f.share[d][i], own = in->f.solid[d][i],
                mixed = in->f.lightness[d][i] - immersed_ease_of(in, cell, d);
    return share < 0.999f ? (mixed - (share > 0.0f ? share * own : 0.0f)) / (1.0f - (share > 0.0f ? share : 0.0f))
                          : own;
}

/* Parts the change of the lower face of a cell: that of the liquid goes to its fields, that of the points beyond the
 * forces at the nodes to `before`. Returns whether the velocity of the liquid is unknown now. */
SK_KERNEL int immersed_part_face(const immersed_frame *in, sk_plain_cell cell, int d)
{
    const size_t i = sk_plain_index(cell);
    const float share = in->f.share[d][i], own = in->f.solid[d][i], mixed = in->f.lightness[d][i];
    const float u = in->f.velocity[d][i], b = in->f.before[d][i], forces = in->f.forced[d][i];
    if (!(share > 0.0f)) {
        in->f.before[d][i] = 0.0f;
        return 0;
    }
    const float pressure = u == u && b == b ? u - b : 0.0f;
    const float acted = forces == forces ? forces - immersed_gain(in->step, d) : 0.0f;
    in->f.before[d][i] = sk_parted_change(acted, pressure, own, mixed);
    if (u != u || !(in->step->solids.block_slot[cell.slot] == 0 || u != 0.0f))
        return u != u;

    /* The liquid. */
    const float liquid = share < 0.999f ? in->f.liquid[d][i] : __builtin_nanf("");
    if (liquid != liquid) {
        in->f.velocity[d][i] = in->f.change[d][i] = in->f.end[d][i] = liquid;
        return 1;
    }
    const float change = sk_parted_change(forces, pressure, immersed_liquid_lightness(in, cell, d), mixed);
    in->f.velocity[d][i] = in->f.end[d][i] = liquid + change;
    in->f.change[d][i] = change;
    return 0;
}

/* Nodes take the mean of the changes of their faces. */
SK_KERNEL void immersed_push_node(const immersed_frame *in, sk_plain_cell cell)
{
    const size_t i = sk_plain_index(cell);
    float *node = in->nodes[i];
    if (!(node[3] > 0.0f))
        return;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const sk_plain_cell next = sk_plain_next(&in->step->grid, cell, d, 1);
        node[d] += 0.5f * (in->f.before[d][i] + (next.slot ? in->f.before[d][sk_plain_index(next)] : 0.0f));
    }
}

/* Coulomb's coefficient of the points in a cell, or of the first material. */
SK_KERNEL float immersed_friction_of(const immersed_frame *in, sk_plain_cell cell)
{
    uint32_t first, last;
    sk_plain_particles(&in->step->grid, cell, &first, &last);
    for (uint32_t p = first; p < last; p++)
        if (immersed_is_point(in, p))
            return in->laws[immersed_material_of(in, p)].friction;
    return in->laws[in->first_material].friction;
}

/* Liquid and points at a node of a cell meet. Writes the impulse on the liquid over the volume of a full cell. */
SK_KERNEL int immersed_meet_node(const immersed_frame *in, sk_plain_cell cell, float impulse[3])
{
    const sk_grid *grid = &in->step->grid;
    float(*nodes)[4] = in->nodes;
    const size_t i = sk_plain_index(cell);
    const float full = (float)in->step->particles_per_cell;
    const float volume = grid->fields[SK_FIELD_DENSITY][i] - in->solid_density[i];
    float normal[3] = {0.0f, 0.0f, 0.0f}, liquid[3] = {0.0f, 0.0f, 0.0f}, was[3], steep2 = 0.0f, light = 0.0f;
    memset(impulse, 0, 3 * sizeof *impulse);
    if (!(nodes[i][3] > 0.01f * full) || !(volume > 0.01f))
        return 0;

    /* Normal, velocity and lightness of the liquid. */
    for (int d = 0; d < SELKIE_DIM; d++) {
        const size_t below = sk_plain_index(sk_plain_next(grid, cell, d, -1)),
                     above = sk_plain_index(sk_plain_next(grid, cell, d, 1));
        const float a = in->f.velocity[d][i], b = in->f.velocity[d][above];
        normal[d] = nodes[above][3] - nodes[below][3];
        steep2 += normal[d] * normal[d];
        liquid[d] = a == a ? (b == b ? 0.5f * (a + b) : a) : b == b ? b : nodes[i][d];
        was[d] = liquid[d];
        light += immersed_liquid_lightness(in, cell, d) / SELKIE_DIM;
    }
    if (!(steep2 > 1e-6f * full * full))
        return 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        normal[d] /= sqrtf(steep2);

    const float mass[2] = {volume / light, nodes[i][3] / full};
    if (!sk_immersed_meet(SELKIE_DIM, normal, immersed_friction_of(in, cell), mass, liquid, nodes[i]))
        return 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        impulse[d] = mass[0] * (liquid[d] - was[d]);
    return 1;
}

/* The liquid at a face takes half of the impulses of the nodes beside it. */
SK_KERNEL void immersed_push_face(const immersed_frame *in, const float (*impulse)[3], sk_plain_cell cell)
{
    const size_t i = sk_plain_index(cell);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const size_t below = sk_plain_index(sk_plain_next(&in->step->grid, cell, d, -1));
        const float sum = 0.5f * (impulse[below][d] + impulse[i][d]);
        if (sum == 0.0f || in->f.velocity[d][i] != in->f.velocity[d][i])
            continue;
        const float change = sum * immersed_liquid_lightness(in, cell, d) / fmaxf(in->f.liquid_density[d][i], 0.1f);
        in->f.velocity[d][i] += change;
        in->f.change[d][i] += change;
        if (in->f.end[d] != in->f.velocity[d])
            in->f.end[d][i] += change;
    }
}

/* --- Liquid inside the points --- */

/* Volume of the points around a place (m) over that of a full cell, its gradient (per cell), and their velocity. */
SK_KERNEL float immersed_volume_at(const immersed_frame *in, const float x[3], float slope[3], float velocity[3])
{
    const sk_grid *grid = &in->step->grid;
    const float *density = in->solid_density;
    float offset[3] = {0.0f, 0.0f, 0.0f}, weight[3][3], rise[3][3], volume = 0.0f, mass = 0.0f;
    int at[3] = {0, 0, 0};
    memset(slope, 0, 3 * sizeof *slope);
    memset(velocity, 0, 3 * sizeof *velocity);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const double place = ((double)x[d] - grid->corner[d]) / grid->cell_size;
        at[d] = (int)floor(place);
        offset[d] = (float)(place - at[d]) - 0.5f;
        sk_mpm_weights(offset[d], weight[d], rise[d]);
    }
    const sk_plain_cell cell = SK_IMMERSED_FIND(in, at);
    if (!cell.slot)
        return 0.0f;
    for (int n = 0; n < SK_MPM_NODES; n++) {
        const int beside[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
        sk_mpm_sight sight;
        const size_t other = sk_plain_index(sk_plain_beside(grid, cell, beside));
        const float *node = in->nodes[other];
        if (!(node[3] > 0.0f))
            continue;
        SK_DIM(sk_mpm_see)(n, (const float(*)[3])weight, (const float(*)[3])rise, offset, &sight);
        volume += sight.weight * density[other];
        mass += sight.weight * node[3];
        for (int d = 0; d < SELKIE_DIM; d++) {
            slope[d] += sight.rise[d] * density[other];
            velocity[d] += sight.weight * node[3] * node[d];
        }
    }
    for (int d = 0; d < SELKIE_DIM && mass > 0.0f; d++)
        velocity[d] /= mass;
    return volume;
}

/* Moves a liquid particle that lies inside the points towards their surface, where the volume is a half. */
SK_KERNEL int immersed_expel(const immersed_frame *in, sk_particle *particle)
{
    const float h = (float)in->step->grid.cell_size;
    float slope[3], velocity[3], x[3] = {0.0f, 0.0f, 0.0f}, steep2 = 0.0f;
    if (!(immersed_volume_at(in, particle->position, slope, velocity) > 0.0f))
        return 0;
    for (int d = 0; d < SELKIE_DIM; d++) /* where the nodes were before the move */
        x[d] = particle->position[d] - (float)in->step->dt * velocity[d];
    const float inside = immersed_volume_at(in, x, slope, velocity) - 0.5f;
    for (int d = 0; d < SELKIE_DIM; d++)
        steep2 += slope[d] * slope[d];
    if (!(inside > 0.0f) || !(steep2 > 1e-4f))
        return 0;
    const float way = fminf(inside / sqrtf(steep2), 0.3f) * h / sqrtf(steep2), gap = 1e-3f * h;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float to = particle->position[d] - way * slope[d];
        particle->position[d] =
            fminf(fmaxf(to, (float)in->step->grid.low[d] + gap), (float)in->step->grid.high[d] - gap);
    }
    return 1;
}

#endif
