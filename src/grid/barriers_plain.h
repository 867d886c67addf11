/* Cells beside thin walls, one at a time, for the CPU and the GPU: see barriers.h. For files compiled per dimension.
 *
 * The includer defines how a shape is asked: SK_SWEEP_HIT and SK_SWEEP_WITHIN as in sweep_plain.h, and
 * SK_SOLIDS_SHAPE_DISTANCE as in solids_plain.h. */
#ifndef SK_GRID_BARRIERS_PLAIN_H
#define SK_GRID_BARRIERS_PLAIN_H

#include <math.h>
#include <string.h>

#include "grid/plain.h"
#include "grid/solids_plain.h"
#include "grid/sweep.h"

/* The particles that count in the density of a cell. */
typedef struct counted_particles {
    const sk_particle *records;
    const uint32_t *material; /* of each particle */
    const uint8_t *mask;      /* [materials] those that count; NULL = all */
    float density_per_particle;
} counted_particles;

typedef sk_stand stand;

SK_KERNEL void to_frame_of(const sk_obstacle *obstacle, const double x[3], double local[3])
{
    if (obstacle->placed)
        sk_pose_to_local(obstacle->placed, x, local);
    else
        memcpy(local, x, 3 * sizeof *local);
}

/* Which solids a test counts. */
enum { OF_OBSTACLES = 1, OF_BODIES = 2 };

SK_KERNEL int is_of(const sk_obstacle *obstacle, int kinds)
{
    return kinds & (obstacle->follows ? OF_BODIES : OF_OBSTACLES);
}

/* Does a surface of some solids lie between two points (m), in their present pose? */
SK_KERNEL_CALLED int is_hidden_by(const sk_solids *solids, int kinds, const double from[3], const double to[3])
{
    sk_surface_hit hit;
    for (int o = 0; o < solids->obstacle_count; o++) {
        const sk_obstacle *obstacle = &solids->obstacles[o];
        double a[3], b[3];
        int near = is_of(obstacle, kinds);
        for (int d = 0; d < solids->dimension; d++)
            near &= fmax(from[d], to[d]) >= obstacle->low[d] && fmin(from[d], to[d]) <= obstacle->high[d];
        if (!near)
            continue;
        to_frame_of(obstacle, from, a);
        to_frame_of(obstacle, to, b);
        if (SK_SWEEP_HIT(obstacle, a, b, &hit))
            return 1;
    }
    return 0;
}

SK_KERNEL int is_hidden(const sk_solids *solids, const double from[3], const double to[3])
{
    return is_hidden_by(solids, OF_OBSTACLES | OF_BODIES, from, to);
}

/* Pushes out of obstacles. Two leave the corner between two walls, of one obstacle or of two; more leave sharper ones.
 */
enum { STAND_PUSHES = 6 };

/* Pushes a place out of each solid of some kinds whose surface is nearer than the gap. Returns how often; -1 if the
 * place lies deep inside or is still too near after the last push: there is no place outside. */
SK_KERNEL_CALLED int push_out_of(const sk_solids *solids, int kinds, double x[3])
{
    const double h = solids->cell_size, gap = SK_SWEEP_GAP * h;
    int pushes = 0;
    for (int pass = 0; pass <= STAND_PUSHES; pass++) {
        const int before = pushes;
        for (int o = 0; o < solids->obstacle_count; o++) {
            const sk_obstacle *obstacle = &solids->obstacles[o];
            double local[3], normal[3];
            int near = is_of(obstacle, kinds);
            for (int d = 0; d < SELKIE_DIM; d++)
                near &= x[d] > obstacle->low[d] - gap && x[d] < obstacle->high[d] + gap;
            if (!near)
                continue;
            to_frame_of(obstacle, x, local);
            const double distance = SK_SWEEP_WITHIN(obstacle, local, h, normal);
            if (distance >= (pass ? 0.9 : 1.0) * gap) /* a push leaves the gap but for its rounding */
                continue;

            /* Half of the thinnest wall that kernels resolve: they are two cells wide. In a rigid body half a cell:
             * faces that a stand in a body closes stop particles without an impulse on it. */
            const double deepest = (solids->blur_faces || is_of(obstacle, OF_OBSTACLES) ? 1.0 : 0.5) * h;
            if (distance < -deepest || pass == STAND_PUSHES)
                return -1;

            /* Push along the normal until the gap is kept. */
            if (obstacle->placed)
                sk_pose_rotate(obstacle->placed, normal, normal);
            for (int d = 0; d < SELKIE_DIM; d++)
                x[d] += (gap - distance) * normal[d];
            pushes++;
        }
        if (pushes == before)
            break;
    }
    return pushes;
}

/* The nearest place outside the obstacles. A rigid body moves it along the side of a wall on which it is without the
 * body. */
SK_KERNEL_CALLED stand find_stand(const sk_solids *solids, const double centre[3])
{
    stand place = {{centre[0], centre[1], centre[2]}, 1};
    place.exists = push_out_of(solids, OF_OBSTACLES, place.x) >= 0;
    if (!place.exists || !solids->body_count)
        return place;
    const double alone[3] = {place.x[0], place.x[1], place.x[2]};
    const int pushes = push_out_of(solids, OF_OBSTACLES | OF_BODIES, place.x);
    place.exists = pushes == 0 || (pushes > 0 && !is_hidden_by(solids, OF_OBSTACLES, alone, place.x));
    return place;
}

/* Unit normal of the obstacle nearest to the lower face of a cell across an axis: sk_barriers_normal. */
SK_KERNEL void nearest_normal(const sk_solids *solids, const sk_grid *grid, sk_plain_cell cell, int axis,
                              float normal[3])
{
    double x[3] = {0.0, 0.0, 0.0}, nearest = INFINITY, direction[3];
    int at[3];
    sk_plain_coordinates(grid, cell, at);
    for (int d = 0; d < SELKIE_DIM; d++)
        x[d] = grid->corner[d] + (at[d] + (d == axis ? 0.0 : 0.5)) * grid->cell_size;
    memset(normal, 0, 3 * sizeof *normal);
    int inside = 0;
    for (int o = 0; o < solids->obstacle_count; o++) {
        if (inside && is_of(&solids->obstacles[o], OF_BODIES)) /* bodies come last: the obstacle closes the face */
            break;
        const double distance = distance_of_obstacle(&solids->obstacles[o], x, direction), apart = fabs(distance);
        for (int d = 0; apart < nearest && d < SELKIE_DIM; d++)
            normal[d] = (float)direction[d];
        nearest = fmin(nearest, apart);
        inside |= distance <= 0.0;
    }
}

/* Does a stand see the particles of a cell? 1 all, 0 none, -1 a wall passes through the cell: each is tested. */
SK_KERNEL int sees_cell(const sk_solids *solids, const sk_grid *grid, const double from[3], sk_plain_cell cell)
{
    double centre[3] = {0.0, 0.0, 0.0};
    int at[3];
    if (fabsf(solids->distance[sk_plain_solid_index(solids, cell)]) < 1.0f)
        return -1;
    sk_plain_coordinates(grid, cell, at);
    for (int d = 0; d < SELKIE_DIM; d++)
        centre[d] = grid->corner[d] + (at[d] + 0.5) * grid->cell_size;
    return !is_hidden(solids, from, centre);
}

/* Density of one cell from the particles that its stand sees, or from the hidden ones. */
SK_KERNEL float count_particles(const sk_solids *solids, const sk_grid *grid, sk_plain_cell cell,
                                const counted_particles *counted, int hidden)
{
    double centre[3] = {0.0, 0.0, 0.0};
    int at[3];
    float sum = 0.0f;

    /* The stand of the cell. */
    sk_plain_coordinates(grid, cell, at);
    for (int d = 0; d < SELKIE_DIM; d++)
        centre[d] = grid->corner[d] + (at[d] + 0.5) * grid->cell_size;
    const stand place = find_stand(solids, centre);

    /* Sum the interpolation weights of the particles in the cells around. */
    for (int n = 0; place.exists && n < SK_NEIGHBOURS; n++) {
        const int offset[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
        const sk_plain_cell other = sk_plain_beside(grid, cell, offset);
        uint32_t first, last;
        sk_plain_particles(grid, other, &first, &last);
        const int seen = first < last ? sees_cell(solids, grid, place.x, other) : 0;

        /* Where a wall passes through the cell, test the line of sight to each particle. */
        for (uint32_t p = first; (seen || hidden) && p < last; p++) {
            double x[3] = {0.0, 0.0, 0.0}, weight = 1.0;
            if (counted->mask && !counted->mask[counted->material[p]])
                continue;
            for (int d = 0; d < SELKIE_DIM; d++) {
                x[d] = (double)counted->records[p].position[d];
                weight *= fmax(0.0, 1.0 - fabs(x[d] - centre[d]) / grid->cell_size);
            }
            if (weight > 0.0 && hidden == !(seen < 0 ? !is_hidden(solids, place.x, x) : seen))
                sum += (float)weight;
        }
    }
    return sum * counted->density_per_particle;
}

/* Splits the density of a cell that sees a part of its kernel only: replaces it by what the cell sees, or takes out
 * what it does not. */
SK_KERNEL void split_cell(const sk_solids *solids, const sk_grid *grid, sk_plain_cell cell,
                          const counted_particles *counted, float *field, int hidden)
{
    if (!(solids->barriers[sk_plain_solid_index(solids, cell)] & SK_BARRIER_SPLIT))
        return;
    float *density = &field[sk_plain_index(cell)];
    const float sum = count_particles(solids, grid, cell, counted, hidden);
    *density = !hidden ? sum : *density > sum ? *density - sum : 0.0f;
}

#endif
