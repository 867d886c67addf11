/* Moves one particle through a staggered velocity field; compiled by the C compiler and by nvcc. */
#ifndef SK_METHODS_FLIP_ADVECT_KERNELS_H
#define SK_METHODS_FLIP_ADVECT_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"
#include "grid/grid_kernels.h"
#include "grid/transfer_kernels.h"
#include "grid/velocity_kernels.h"
#include "methods/flip/reflection_kernels.h"

typedef struct sk_advection {
    sk_velocity_blocks velocity;
    float corner[3], inverse;               /* m, 1/m  of the grid */
    float dt;                               /* s */
    int order, trapezoidal;                 /*     of the Runge-Kutta step; the rule of order 2 */
    float low[3], high[3];                  /* m   bounds inside closed walls; open sides are infinite */
    float leaves_below[3], leaves_above[3]; /* m   open sides of the domain; closed ones are infinite */
    sk_velocity_blocks end;                 /*     velocity at the end of a reflected step */
    int straight;                           /*     paths end at a straight drift with it: see sk_straighten */
    float reach;                            /* m   its largest distance from the path along the field */
} sk_advection;

/* A particle during its move. */
typedef struct sk_traveller {
    float x[3];        /* m */
    float own[3];      /* m/s  its velocity, used where the grid's is unknown */
    int flies;         /*      keeps its own velocity everywhere */
    int *missed;       /*      gets 1 where its tiles do not suffice; NULL = the blocks are searched there */
    sk_tile_side side; /* of the tile of the velocity, if there is one */
} sk_traveller;

/* Velocity (m/s) of a field at a position (m), the particle's own where it is unknown. */
SK_KERNEL void sk_field_velocity(const sk_advection *a, const sk_velocity_blocks *field, sk_tile_side side,
                                 const sk_traveller *particle, const float x[3], float velocity[3])
{
    float coordinate[3] = {0.0f, 0.0f, 0.0f};
    for (int d = 0; d < SELKIE_DIM; d++) {
        coordinate[d] = sk_cell_coordinate(x[d], a->corner[d], a->inverse);
        velocity[d] = particle->own[d];
    }
    if (particle->missed && !particle->flies)
        *particle->missed |= !sk_velocity_in_tile(field, side, coordinate, velocity);
    else if (!particle->flies)
        sk_velocity_at(field, side, coordinate, particle->own, velocity);
}

/* Velocity (m/s) that moves a particle at a position (m). */
SK_KERNEL void sk_travel_velocity(const sk_advection *a, const sk_traveller *particle, const float x[3],
                                  float velocity[3])
{
    sk_field_velocity(a, &a->velocity, particle->side, particle, x, velocity);
}

/* Number of cells that the fastest component crosses in a time h (s). */
SK_KERNEL float sk_cells_crossed(const sk_advection *a, const float velocity[3], float h)
{
    float most = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        most = __builtin_fmaxf(most, __builtin_fabsf(velocity[d]));
    return most * a->inverse * h;
}

/* Length (s) of the next sub-step: equal parts of the remaining time, each crossing at most one cell. */
SK_KERNEL float sk_sub_step(const sk_advection *a, const float k1[3], float remaining)
{
    const float far = sk_cells_crossed(a, k1, remaining);
    if (!(far > 1.0f))
        return remaining;
    float whole = (float)(int)(far < 1e6f ? far : 1e6f);
    whole += whole < far ? 1.0f : 0.0f; /* round up */
    return remaining / whole;
}

/* One Runge-Kutta step of at most h (s). The step is shortened if the second stage is so much faster than the first
 * that it would cross more than a cell. Returns the length taken. */
SK_KERNEL float sk_runge_kutta(const sk_advection *a, sk_traveller *particle, const float k1[3], float h)
{
    float stage[3] = {0.0f, 0.0f, 0.0f}, k2[3] = {0.0f, 0.0f, 0.0f}, k3[3] = {0.0f, 0.0f, 0.0f};
    const float way = a->trapezoidal ? 1.0f : 0.5f;
    for (int d = 0; d < SELKIE_DIM; d++)
        stage[d] = particle->x[d] + way * h * k1[d];
    sk_travel_velocity(a, particle, stage, k2);
    for (int d = 0; a->trapezoidal && d < SELKIE_DIM; d++)
        k2[d] = 0.5f * (k1[d] + k2[d]);
    const float cells = sk_cells_crossed(a, k2, h);
    h = cells > 1.0f ? h / cells : h;
    if (a->order == 3) {
        /* Ralston's third order scheme. */
        for (int d = 0; d < SELKIE_DIM; d++)
            stage[d] = particle->x[d] + 0.75f * h * k2[d];
        sk_travel_velocity(a, particle, stage, k3);
        for (int d = 0; d < SELKIE_DIM; d++)
            particle->x[d] += h * ((2.0f / 9.0f) * k1[d] + (3.0f / 9.0f) * k2[d] + (4.0f / 9.0f) * k3[d]);
    } else {
        for (int d = 0; d < SELKIE_DIM; d++)
            particle->x[d] += h * k2[d];
    }
    return h;
}

/* Keeps a position within closed walls. Returns whether it left through an open side. */
SK_KERNEL int sk_confine_to_walls(const sk_advection *a, float x[3])
{
    int gone = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        gone |= x[d] < a->leaves_below[d] || x[d] > a->leaves_above[d];
        x[d] = sk_clamp(x[d], a->low[d], a->high[d]);
    }
    return gone;
}

/* Moves a particle from a place to another during a part of the step (0 to 1) without crossing an obstacle. Returns
 * whether it touched one. */
typedef int (*sk_path_sweep)(void *obstacles, const float from[3], float to[3], double begin, double end);

/* Moves a particle through the step. `sweep` is NULL without obstacles. Returns whether it left the domain. */
SK_KERNEL int sk_travel(const sk_advection *a, sk_traveller *particle, sk_path_sweep sweep, void *obstacles)
{
    float remaining = a->dt, start[3], drift[3] = {0.0f, 0.0f, 0.0f}, from[3];
    int gone = 0, touched = 0;
    for (int d = 0; d < 3; d++)
        start[d] = particle->x[d];
    sk_field_velocity(a, &a->end, SK_NEAR_TILE, particle, start, drift);

    /* The path along the field. A reflected step begins with the velocity at its end. */
    /* More sub-steps mean a step far beyond any sensible length. */
    for (int sub_step = 0; sub_step < 1000 && remaining > 0.0f && !gone; sub_step++) {
        float k1[3] = {drift[0], drift[1], drift[2]};
        const float before = remaining;
        for (int d = 0; d < 3; d++)
            from[d] = particle->x[d];
        if (sub_step > 0)
            sk_travel_velocity(a, particle, from, k1);
        remaining -= sk_runge_kutta(a, particle, k1, sk_sub_step(a, k1, remaining));
        if (particle->missed && *particle->missed)
            return 0;
        remaining = remaining < 1e-6f * a->dt ? 0.0f : remaining; /* a remainder from rounding counts as 0 */
        gone = sk_confine_to_walls(a, particle->x);
        if (sweep && !gone)
            touched |= sweep(obstacles, from, particle->x, 1.0 - before / a->dt, 1.0 - remaining / a->dt);
    }

    /* The straight drift, at the end of the step. */
    if (a->straight && !gone && !touched) {
        for (int d = 0; d < 3; d++)
            from[d] = particle->x[d];
        sk_straighten(start, drift, a->dt, a->reach, particle->x);
        gone = sk_confine_to_walls(a, particle->x);
        if (sweep && !gone)
            sweep(obstacles, from, particle->x, 1.0 - 1e-6, 1.0);
    }
    return gone;
}

#endif
