/* The transfers of mpm for one point and one node, for the plain form and the GPU. For files compiled per dimension. */
#ifndef SK_METHODS_MPM_PLAIN_H
#define SK_METHODS_MPM_PLAIN_H

#include <math.h>

#include "base/dimension.h"
#include "grid/plain.h"
#include "methods/elastoplastic/elastic_kernels.h"
#include "methods/elastoplastic/mpm_kernels.h"
#include "methods/force_kernels.h"
#include "particles/store.h"

struct sk_mpm;

enum {
    SK_MPM_MATRIX = SELKIE_DIM * SELKIE_DIM,
    SK_MPM_TILE_N = SK_BLOCK_N + 2, /* a halo of one node around the block */
    SK_MPM_TILE_NZ = SELKIE_DIM == 3 ? SK_MPM_TILE_N : 1,
    SK_MPM_TILE = SK_MPM_TILE_N * SK_MPM_TILE_N * SK_MPM_TILE_NZ
};

/* Attributes of mpm (sk_mpm_own). */
typedef struct sk_mpm_attributes {
    float *deformation; /* [count][SK_MPM_MATRIX] */
    float *affine;      /* [count][SK_MPM_MATRIX] 1/s */
    float *plastic_strain, *plastic_volume, *stress;
} sk_mpm_attributes;

/* Records and attributes of the points. What mpm adds lies in the rows of `order` after a sort of records alone, and
 * goes to the rows of the records in `next`: by `to_grid` the last three, by `to_points` the first two. */
typedef struct sk_mpm_points {
    sk_particle *records;
    const uint32_t *material; /* NULL = all of the first */
    const uint32_t *order;    /* NULL = the order of the records, and `next` is `now` */
    sk_mpm_attributes now, next;
} sk_mpm_points;

/* Row of a point's attributes. */
SK_KERNEL size_t sk_mpm_row(const sk_mpm_points *points, size_t p)
{
    return points->order ? points->order[p] : p;
}

/* First of the 3^dimension nodes of a cell's points, in the tile of its block. */
SK_KERNEL int sk_mpm_first_node(int cell)
{
    return (cell & SK_BLOCK_MASK) + SK_MPM_TILE_N * (cell >> SK_BLOCK_LOG & SK_BLOCK_MASK) +
           (SELKIE_DIM == 3 ? SK_MPM_TILE_N * SK_MPM_TILE_N * (cell >> (2 * SK_BLOCK_LOG)) : 0);
}

/* Node n of the 3^dimension, counted from the first in the tile. */
SK_KERNEL int sk_mpm_node(int n)
{
    return n % 3 + SK_MPM_TILE_N * (n / 3 % 3) + (SELKIE_DIM == 3 ? SK_MPM_TILE_N * SK_MPM_TILE_N * (n / 9) : 0);
}

/* Centre of a cell, in cells from the grid's corner. */
SK_KERNEL void sk_mpm_centre(const sk_grid *grid, int block, int cell, float centre[3])
{
    centre[2] = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        centre[d] =
            (float)(grid->coordinates[block][d] * SK_BLOCK_N + (cell >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK)) + 0.5f;
}

/* Place of a point from the centre of its cell, in cells. Rounding may leave it a little beyond half a cell. */
SK_KERNEL void sk_mpm_offset(const sk_grid *grid, const float centre[3], const float position[3], float offset[3])
{
    const float inverse = (float)(1.0 / grid->cell_size);
    offset[2] = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        offset[d] = (position[d] - (float)grid->corner[d]) * inverse - centre[d];
}

/* --- to_grid --- */

typedef struct sk_mpm_law_sums {
    double energy, work; /* J/m3 times the number of points */
    float wave_speed;    /* m/s  */
} sk_mpm_law_sums;

typedef struct sk_mpm_giving {
    const sk_grid *grid;
    const struct sk_mpm *mpm;
    const sk_elastic_material *materials;
    sk_mpm_points points;
    float dt, kick; /* s  of plastic flow, and of forces */
    float cell_size;
    sk_mpm_law_sums *sums; /* [blocks] */
} sk_mpm_giving;

/* Plastic flow and stress of a point, and what it gives. */
SK_KERNEL void sk_mpm_make_gift(const sk_mpm_giving *giving, uint32_t p, sk_mpm_law_sums *sums, sk_mpm_gift *gift)
{
    const sk_mpm_points *points = &giving->points;
    const sk_elastic_material *material = &giving->materials[points->material ? points->material[p] : 0];
    const size_t row = sk_mpm_row(points, p);
    const float *affine = points->now.affine + row * SK_MPM_MATRIX;
    const float factor = giving->kick * material->inverse_density / giving->cell_size;
    sk_plastic_state state = {points->now.plastic_strain[row], points->now.plastic_volume[row]};
    sk_elastic_result result;
    SK_DIM(sk_elastic_point)(material, giving->dt, points->now.deformation + row * SK_MPM_MATRIX, &state, &result);
    points->next.plastic_strain[p] = state.strain;
    points->next.plastic_volume[p] = state.volume;
    points->next.stress[p] = result.equivalent;
    sums->energy += result.energy;
    sums->work += result.work;
    sums->wave_speed = fmaxf(sums->wave_speed, result.wave_speed);
    gift->mass = material->relative_mass;
    for (int d = 0; d < 3; d++)
        gift->velocity[d] = points->records[p].velocity[d];
    for (int n = 0; n < SK_MPM_MATRIX; n++) {
        gift->slope[n] = giving->cell_size * affine[n];
        gift->push[n] = factor * result.stress[n];
    }
}

/* Adds what a point gives to the node at 0, 1 or 2 along each axis of the 3^dimension of its cell. `centre` is that of
 * the cell. */
SK_KERNEL void sk_mpm_give_node(const sk_grid *grid, const sk_mpm_gift *gift, const float centre[3],
                                const float position[3], const int at[3], float node[4])
{
    sk_mpm_sight sight;
    float offset[3], weight[3] = {0.0f, 0.0f, 0.0f}, rise[3] = {0.0f, 0.0f, 0.0f};
    sk_mpm_offset(grid, centre, position, offset);
    for (int d = 0; d < SELKIE_DIM; d++) {
        float weights[3], rises[3];
        sk_mpm_weights(offset[d], weights, rises);
        weight[d] = at[d] == 0 ? weights[0] : at[d] == 1 ? weights[1] : weights[2];
        rise[d] = at[d] == 0 ? rises[0] : at[d] == 1 ? rises[1] : rises[2];
    }
    SK_DIM(sk_mpm_see_at)(at, weight, rise, offset, &sight);
    SK_DIM(sk_mpm_give)(gift, &sight, node);
}

/* --- nodes --- */

/* Velocity of a node with mass, from its momentum; gravity adds a gain (m/s), force fields their change. */
SK_KERNEL void sk_mpm_node_velocity(const sk_grid *grid, const float gain[3], const sk_force_field *fields,
                                    int field_count, const int cell[3], float node[4])
{
    const float inverse = 1.0f / node[3];
    for (int d = 0; d < SELKIE_DIM; d++)
        node[d] = node[d] * inverse + gain[d];
    if (field_count) {
        float x[3] = {0.0f, 0.0f, 0.0f}, change[3] = {0.0f, 0.0f, 0.0f};
        for (int d = 0; d < SELKIE_DIM; d++)
            x[d] = (float)(grid->corner[d] + (cell[d] + 0.5) * grid->cell_size);
        sk_force_fields_velocity_change(fields, field_count, x, change);
        for (int d = 0; d < SELKIE_DIM; d++)
            node[d] += change[d];
    }
}

/* Sides of the domain lie halfway between nodes. A node in front of one is changed together with that behind it. Nodes
 * two cells behind cannot have mass. */
SK_KERNEL void sk_mpm_touch_side(const sk_grid *grid, const sk_solids *solids, int side, sk_plain_cell cell,
                                 float (*nodes)[4])
{
    const int d = side / 2, upper = side & 1;
    const int last = grid->padding[d] + (upper ? grid->cells[d] - 1 : 0); /* cell in front of the side */
    if (grid->coordinates[cell.slot][d] * SK_BLOCK_N + sk_plain_along(cell.local, d) != last)
        return;
    sk_solid_contact contact = {{0.0f, 0.0f, 0.0f},
                                {0.0f, 0.0f, 0.0f},
                                (float)solids->side_friction[side],
                                solids->walls[side] == SELKIE_WALL_NO_SLIP};
    contact.normal[d] = upper ? -1.0f : 1.0f;
    const sk_plain_cell behind = sk_plain_next(grid, cell, d, upper ? 1 : -1);
    if (behind.slot > 0 && nodes[sk_plain_index(behind)][3] > 0.0f)
        sk_mpm_touch_pair(&contact, SELKIE_DIM, nodes[sk_plain_index(behind)], nodes[sk_plain_index(cell)]);
}

/* --- to_points --- */

/* Velocity, affine part and deformation of point p of a cell after a step of dt (s). `per_cell` is 1 over the cell size
 * (1/m). */
SK_KERNEL void sk_mpm_take_point(const sk_grid *grid, const float (*nodes)[4], const sk_mpm_points *points, uint32_t p,
                                 sk_plain_cell cell, float dt, float per_cell)
{
    sk_particle *record = &points->records[p];
    sk_mpm_sight sight;
    float centre[3], offset[3], weight[3][3], rise[3][3], velocity[3] = {0.0f, 0.0f, 0.0f};
    float slope[SK_MPM_MATRIX], gradient[SK_MPM_MATRIX];
    for (int n = 0; n < SK_MPM_MATRIX; n++)
        slope[n] = gradient[n] = 0.0f;
    sk_mpm_centre(grid, cell.slot, cell.local, centre);
    sk_mpm_offset(grid, centre, record->position, offset);
    for (int d = 0; d < SELKIE_DIM; d++)
        sk_mpm_weights(offset[d], weight[d], rise[d]);

    /* Velocity, its slope and its gradient. */
    for (int n = 0; n < SK_MPM_NODES; n++) {
        const int at[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
        const sk_plain_cell node = sk_plain_beside(grid, cell, at);
        SK_DIM(sk_mpm_see)(n, (const float(*)[3])weight, (const float(*)[3])rise, offset, &sight);
        SK_DIM(sk_mpm_take)(nodes[sk_plain_index(node)], &sight, velocity, slope, gradient);
    }

    /* Deformation. */
    for (int n = 0; n < SK_MPM_MATRIX; n++)
        points->next.affine[(size_t)p * SK_MPM_MATRIX + (size_t)n] = per_cell * 4.0f * slope[n];
    for (int d = 0; d < SELKIE_DIM; d++)
        record->velocity[d] = velocity[d];
    SK_DIM(sk_mpm_deform)(dt * per_cell, gradient, points->now.deformation + (size_t)p * SK_MPM_MATRIX);
}

#endif
