/* Faces that liquid and bodies of particles share, for the CPU and the GPU. For files compiled per dimension. */
#ifndef SK_METHODS_SHAPE_MIX_PLAIN_H
#define SK_METHODS_SHAPE_MIX_PLAIN_H

#include <math.h>

#include "grid/transfer_plain.h"
#include "methods/mixture.h"
#include "methods/part_kernels.h"

/* The mixture at the lower face d of a cell, in a block where bodies have a share of a face. All faces of a body have
 * the lightness of its material; between bodies the mean by mass counts, which the transfer gives. `whole`: faces hold
 * the density of both. */
SK_KERNEL void soft_mix_face(const sk_mixture_faces *f, int d, size_t i, int whole)
{
    const float share = sk_solid_share(f->share[d][i], f->liquid_density[d][i]), own = f->before[d][i];
    f->liquid_density[d][i] += whole ? f->share[d][i] : 0.0f;
    f->share[d][i] = share;
    f->liquid[d][i] = f->velocity[d][i];
    f->velocity[d][i] = f->change[d][i] = sk_mixed_velocity(share, f->solid[d][i], f->velocity[d][i]);
    f->solid[d][i] = own; /* its lightness from here on */
    if (share > 0.0f)
        f->lightness[d][i] = sk_mixed_lightness(share, own, f->lightness[d][i]);
}

/* The velocity before the pressure solve, and the change by forces. */
SK_KERNEL void soft_remember_face(const sk_mixture_faces *f, int d, size_t i)
{
    f->before[d][i] = f->velocity[d][i];
    f->forced[d][i] = f->velocity[d][i] - f->change[d][i];
}

/* How the change of a step is parted. */
typedef struct soft_parting {
    float gain[3];    /* m/s  of gravity */
    float most;       /* m/s  the largest change that is reflected, as of the liquid */
    float reflection; /*      rho of the step */
} soft_parting;

SK_KERNEL soft_parting soft_parting_of(const sk_step *step)
{
    soft_parting parting;
    for (int d = 0; d < 3; d++)
        parting.gain[d] = (float)(step->scene->gravity[d] * sk_step_kick(step));
    parting.most = (float)(step->grid.cell_size / step->dt);
    parting.reflection = (float)step->reflection;
    return parting;
}

/* A change with its reflection, without the gain of gravity. */
SK_KERNEL float soft_reflected(const soft_parting *parting, float change, float gain)
{
    const float beyond = change - gain, most = parting->most;
    return beyond + parting->reflection * (beyond > most ? most : beyond < -most ? -most : beyond);
}

/* Parts the change of a face: that of the liquid stays in the fields of the liquid, that of the bodies beyond gravity
 * goes to `solid`. The pressure solve left `change` as the total change with its reflection. `has_solids`: the block
 * may have walls. Returns whether the face of the liquid is unknown now. */
SK_KERNEL int soft_part_face(const sk_mixture_faces *f, const soft_parting *parting, int has_solids, int d, size_t i)
{
    const float share = f->share[d][i], own = f->solid[d][i], mixed = f->lightness[d][i], gain = parting->gain[d];
    const float u = f->velocity[d][i], b = f->before[d][i];
    if (!(share > 0.0f)) {
        f->solid[d][i] = __builtin_nanf("");
        return 0;
    }
    const float pressure = u == u && b == b ? u - b : 0.0f, forces = f->forced[d][i];
    f->solid[d][i] = soft_reflected(parting, sk_parted_change(forces, pressure, own, mixed), gain);
    if (u != u || !(!has_solids || u != 0.0f))
        return 0;

    /* The liquid. */
    const float liquid = f->liquid[d][i];
    if (liquid != liquid) {
        f->velocity[d][i] = f->change[d][i] = f->end[d][i] = liquid;
        return 1;
    }
    const float light = (mixed - share * own) / (1.0f - share);
    const float change = sk_parted_change(forces, pressure, light, mixed), net = soft_reflected(parting, change, gain);
    f->velocity[d][i] = liquid + change;
    f->change[d][i] = net + (1.0f + parting->reflection) * gain;
    if (f->end[d] != f->velocity[d])
        f->end[d][i] = liquid + f->change[d][i];
    return 0;
}

/* Do liquid and bodies share the face? */
SK_KERNEL int soft_is_mixed(const sk_mixture_faces *f, int d, size_t i)
{
    return f->share[d][i] > 0.0f && f->share[d][i] < 0.999f;
}

/* The faces of component d around a position (m), linear between them, in the block whose first cell is `first` and a
 * cell around it: cells of the lowest one in the block, and the share of the next one along each axis. */
SK_KERNEL void soft_faces_around(const sk_plain_frame *frame, int d, const int first[3], const float x[3], int low[3],
                                 float above[3])
{
    low[2] = 0;
    above[2] = 0.0f;
    for (int e = 0; e < SELKIE_DIM; e++) {
        const float at = sk_cell_fraction(x[e], frame->corner[e], frame->inverse, first[e]) - (e == d ? 0.0f : 0.5f);
        low[e] = (int)floorf(at);
        low[e] = low[e] < -1 ? -1 : low[e] > SK_BLOCK_N - 1 ? SK_BLOCK_N - 1 : low[e];
        above[e] = at - (float)low[e];
    }
}

/* Weight of corner c of these faces. */
SK_KERNEL float soft_corner_weight(const float above[3], int c)
{
    float weight = 1.0f;
    for (int e = 0; e < SELKIE_DIM; e++)
        weight *= c >> e & 1 ? above[e] : 1.0f - above[e];
    return weight;
}

#endif
