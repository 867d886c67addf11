/* Unilateral incompressibility for one cell of the grid, for the plain form and the GPU. uic_system_dim.c,
 * uic_correct_dim.c and uic_pressure_dim.c explain the parts. For files compiled per dimension. */
#ifndef SK_METHODS_UIC_UIC_PLAIN_H
#define SK_METHODS_UIC_UIC_PLAIN_H

#include <math.h>

#include "base/dimension.h"
#include "methods/liquid_plain.h"
#include "methods/uic/uic_kernels.h"
#include "methods/wall_plain.h"

/* Walls and obstacles around a block. */
typedef struct surroundings {
    const sk_step *step;
    const float *spare; /* the field SPARE; NULL where it is not used */
    sk_flat_walls walls;
    int has_obstacle; /* within a block of this one */
} surroundings;

SK_KERNEL surroundings surroundings_of(const sk_step *step, int block, const float *spare)
{
    const sk_solids *solids = &step->solids;
    surroundings around = {step, spare, flat_walls_of(step), 0};
    for (int n = 0; solids->obstacle_count && n < SK_NEIGHBOURS; n++)
        around.has_obstacle |= !solids->plain[solids->block_slot[step->grid.neighbours[block][n]]];
    return around;
}

/* What the rows of a problem bound: uic_problem.h. */
typedef struct uic_rows {
    const float *target, *presence;
    int bounds_flow; /* rows of full cells bound the flow */
    int has_tension; /* surface tension is a part of the pressure */
    int keeps_excess;
} uic_rows;

/* --- rooms --- */

/* Room of the cell at `offset` from a cell, including its images at the walls. */
SK_KERNEL float cell_room(const surroundings *around, sk_plain_cell cell, const int offset[3])
{
    const sk_step *step = around->step;
    int at[3];
    coordinates_beside(&step->grid, cell, offset, at);
    if (!around->has_obstacle)
        return sk_uic_open_cell_room(&around->walls, at);
    sk_plain_cell images[1 << SELKIE_DIM];
    float rooms[1 << SELKIE_DIM];
    const int found = find_wall_images(&step->grid, &around->walls, cell, offset, -1, images);
    for (int n = 0; n < 1 << SELKIE_DIM; n++)
        rooms[n] = (n & ~found) == 0
                       ? sk_uic_cell_room(step->solids.blurred[sk_plain_solid_index(&step->solids, images[n])])
                       : 0.0f;
    return sk_wall_fold(rooms, found);
}

/* Room of the lower face across axis d of the cell at `offset` from a cell. Walls are closed.
 *
 * The tuned form has a tile with a halo of one cell. If an upper wall lies one cell farther, the tuned form cannot fold
 * the last layer of the tile. Near obstacles it then treats the faces there as half closed, so it sharpens shifts in
 * the last layer of such a block less than this form.
 */
SK_KERNEL float face_room(const surroundings *around, sk_plain_cell cell, const int offset[3], int d)
{
    const sk_step *step = around->step;
    int at[3];
    coordinates_beside(&step->grid, cell, offset, at);
    if (!around->has_obstacle)
        return sk_uic_open_face_room(&around->walls, d, at);
    if (at[d] == around->walls.low[d] || at[d] == around->walls.high[d])
        return 0.0f;
    sk_plain_cell images[1 << SELKIE_DIM];
    float rooms[1 << SELKIE_DIM];
    const int found = find_wall_images(&step->grid, &around->walls, cell, offset, d, images);
    for (int n = 0; n < 1 << SELKIE_DIM; n++)
        rooms[n] = (n & ~found) == 0
                       ? sk_uic_face_room(step->solids.blurred_face[d][sk_plain_solid_index(&step->solids, images[n])])
                       : 0.0f;
    return sk_wall_fold(rooms, found);
}

SK_KERNEL void face_rooms(const surroundings *around, sk_plain_cell cell, float rooms[2 * SELKIE_DIM])
{
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        int offset[3] = {0, 0, 0};
        offset[side / 2] = side % 2;
        rooms[side] = face_room(around, cell, offset, side / 2);
    }
}

/* --- rows --- */

/* Mass of the cell at `offset` from a cell; decides whether the cell takes part. */
SK_KERNEL float mass_at(const surroundings *around, const uic_rows *rows, sk_plain_cell cell, const int offset[3])
{
    sk_plain_cell images[1 << SELKIE_DIM];
    float masses[1 << SELKIE_DIM];
    const int found = find_wall_images(&around->step->grid, &around->walls, cell, offset, -1, images);
    for (int n = 0; n < 1 << SELKIE_DIM; n++) {
        masses[n] = 0.0f;
        if (n & ~found)
            continue;
        const size_t index = sk_plain_index(images[n]);
        masses[n] = rows->target[index];
        if (rows->presence && rows->presence[index] > masses[n])
            masses[n] = rows->presence[index];
    }
    return sk_wall_fold(masses, found);
}

/* Is liquid beside a cell that an obstacle leaves almost no room? */
SK_KERNEL int near_liquid(const surroundings *around, const uic_rows *rows, sk_plain_cell cell, float threshold)
{
    int near = 0;
    for (int n = 0; n < SK_NEIGHBOURS && !near; n++) {
        const int offset[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
        near = sk_uic_takes_part(cell_room(around, cell, offset), mass_at(around, rows, cell, offset), threshold);
    }
    return near;
}

SK_KERNEL int takes_part(const surroundings *around, const uic_rows *rows, sk_plain_cell cell, float room, float open)
{
    const int here[3] = {0, 0, 0};
    /* A cell without any mass is air, even where the threshold is 0. */
    const float threshold = fmaxf((float)around->step->scene->unilateral.air_threshold, 1e-6f);
    int at[3];
    sk_plain_coordinates(&around->step->grid, cell, at);
    if (sk_wall_is_behind(&around->walls, at)) /* its density counts in the cell before the wall */
        return 0;
    if (around->has_obstacle && room < UIC_LEAST_ROOM)
        return open > 0.0f && near_liquid(around, rows, cell, threshold);
    return sk_uic_takes_part(room, mass_at(around, rows, cell, here), threshold);
}

/* --- full cells --- */

/* Density over room of the cell at `offset` from a cell; 0 where an obstacle leaves almost no room. */
SK_KERNEL float fill_at(const surroundings *around, sk_plain_cell cell, const int offset[3])
{
    const sk_grid *grid = &around->step->grid;
    const float room = cell_room(around, cell, offset);
    return room >= UIC_LEAST_ROOM
               ? folded_value(grid, &around->walls, grid->fields[SK_FIELD_DENSITY], cell, offset, -1) / room
               : 0.0f;
}

/* Is a cell full, by the level in it, in any direction? -1 where no level says so. */
SK_KERNEL int filled_by_level(const surroundings *around, sk_plain_cell cell)
{
    const sk_grid *grid = &around->step->grid;
    int filled = -1;
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const int d = side / 2, up = side % 2;
        float rooms[2], masses[2];
        for (int n = 0; n < 2; n++) {
            int at[3] = {0, 0, 0};
            at[d] = n == 0 ? up : 1 - up;
            rooms[n] = face_room(around, cell, at, d);
            masses[n] = folded_value(grid, &around->walls, grid->fields[SK_FIELD_FACE_DENSITY_X + d], cell, at, d);
        }
        int beside[3] = {0, 0, 0};
        beside[d] = up ? 1 : -1;
        const int fills = sk_uic_level_fills(rooms, masses, fill_at(around, cell, beside));
        filled = fills > filled ? fills : filled;
    }
    return filled;
}

/* The spare room of a cell; -1 if it is not full. */
SK_KERNEL float spare_of_cell(const surroundings *around, sk_plain_cell cell)
{
    const int here[3] = {0, 0, 0};
    const float room = cell_room(around, cell, here), own = fill_at(around, cell, here);
    const float full = sk_uic_full(sk_uic_has_gravity(around->step->scene->gravity));
    float densest = 0.0f, emptiest = 1.0f; /* emptiest: of the open cells */
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        const int offset[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
        const float fill = fill_at(around, cell, offset);
        densest = fmaxf(densest, fill);
        emptiest = cell_room(around, cell, offset) < 0.99f ? emptiest : fminf(emptiest, fill);
    }
    if (room < UIC_LEAST_ROOM)
        return sk_uic_spare_in_obstacle(densest, full);
    const sk_step *step = around->step;
    const int by_levels = sk_uic_fills_by_levels(step->scene->gravity, step->soft != NULL, step->capillary > 0);
    const int filled = by_levels && sk_uic_may_hold_level(own, room) ? filled_by_level(around, cell) : -1;
    if (filled >= 0)
        return filled ? sk_uic_spare(own, densest, room, 0.0f) : -1.0f;
    return sk_uic_is_gap(own, room, densest, emptiest) ? sk_uic_spare_of_gap(own, room)
                                                       : sk_uic_spare(own, densest, room, full);
}

/* Masses of the lower face across axis d of the cell at `offset` from a cell: the real one and that of the solve. */
SK_KERNEL void face_masses(const surroundings *around, sk_plain_cell cell, const int offset[3], int d, float room,
                           float *mass, float *solved)
{
    const sk_grid *grid = &around->step->grid;
    const float *spare = around->spare, *density = grid->fields[SK_FIELD_FACE_DENSITY_X + d];
    const sk_plain_cell above = sk_plain_beside(grid, cell, offset), below = sk_plain_next(grid, above, d, -1);
    const int full_low = spare[sk_plain_index(below)] >= 0.0f, full_high = spare[sk_plain_index(above)] >= 0.0f;
    float rooms[3], masses[3];
    for (int n = 0; n < 3; n++) {
        int at[3] = {offset[0], offset[1], offset[2]};
        at[d] += n - 1;
        rooms[n] = n == 1 ? room : face_room(around, cell, at, d);
        masses[n] = folded_value(grid, &around->walls, density, cell, at, d);
    }
    *mass = sk_uic_real_mass(room, masses[1]);
    const float at_surface = sk_uic_has_levels(around->step->scene->gravity, around->step->soft != NULL)
                                 ? sk_uic_surface_mass(rooms, masses, full_low, full_high)
                                 : -1.0f;
    *solved = at_surface >= 0.0f ? at_surface : sk_uic_solved_mass(room, *mass, full_low && full_high);
}

/* Coefficients of a cell's faces. */
SK_KERNEL void coefficients(const surroundings *around, const uic_rows *rows, sk_plain_cell cell,
                            const float rooms[2 * SELKIE_DIM], float faces[2 * SELKIE_DIM])
{
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        int offset[3] = {0, 0, 0};
        float mass, solved;
        offset[side / 2] = side % 2;
        faces[side] = rooms[side];
        if (!rows->bounds_flow)
            continue;
        face_masses(around, cell, offset, side / 2, rooms[side], &mass, &solved);
        faces[side] = sk_uic_coefficient(rooms[side], solved) *
                      lightness_at(around->step, sk_plain_beside(&around->step->grid, cell, offset), side / 2);
    }
}

/* Pressure of surface tension (m/s) on the lower face across axis d of the cell at `offset` from a cell. */
SK_KERNEL float capillary_at(const sk_step *step, sk_plain_cell cell, const int offset[3], int d)
{
    const sk_plain_cell beside = sk_plain_beside(&step->grid, cell, offset);
    const size_t above = sk_plain_index(beside), below = sk_plain_index(sk_plain_next(&step->grid, beside, d, -1));
    const float *full = step->grid.fields[step->full_cells], *pressure = step->grid.fields[step->capillary];
    return sk_uic_capillary(full[below] >= 0.0f, full[above] >= 0.0f, pressure[below], pressure[above]);
}

/* What surface tension adds to the right side of a cell's row. */
SK_KERNEL float capillary_excess(const sk_step *step, sk_plain_cell cell, const float faces[2 * SELKIE_DIM])
{
    float sum = 0.0f;
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        int offset[3] = {0, 0, 0};
        offset[side / 2] = side % 2;
        const float push = faces[side] * capillary_at(step, cell, offset, side / 2);
        sum += side % 2 ? -push : push;
    }
    return (float)(step->dt / step->grid.cell_size) * sum;
}

SK_KERNEL float velocity_at(const sk_grid *grid, sk_plain_cell cell, const int offset[3], int d)
{
    return grid->fields[SK_FIELD_VELOCITY_X + d][sk_plain_index(sk_plain_beside(grid, cell, offset))];
}

/* Slope of the velocity along axis d at a cell, across axis e. */
SK_KERNEL float slope(const sk_grid *grid, sk_plain_cell cell, int d, int e)
{
    float own[2], beside[4];
    for (int n = 0; n < 4; n++) {
        int offset[3] = {0, 0, 0};
        offset[d] = n / 2;
        own[n / 2] = velocity_at(grid, cell, offset, d);
        offset[e] = n % 2 ? 1 : -1;
        beside[n] = velocity_at(grid, cell, offset, d);
    }
    return sk_uic_slope(own, beside);
}

/* The fastest of a cell's faces (m/s). */
SK_KERNEL float speed_of_cell(const sk_grid *grid, sk_plain_cell cell)
{
    float speed = 0.0f;
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        int offset[3] = {0, 0, 0};
        offset[side / 2] = side % 2;
        const float fast = fabsf(velocity_at(grid, cell, offset, side / 2));
        speed = fast > speed ? fast : speed;
    }
    return speed;
}

/* Volume that a full cell gains. */
SK_KERNEL float flow_excess(const surroundings *around, sk_plain_cell cell, const float rooms[2 * SELKIE_DIM],
                            float spare, float excess, float room)
{
    const int here[3] = {0, 0, 0};
    const sk_step *step = around->step;
    const sk_grid *grid = &step->grid;
    float gained = 0.0f, turning = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++) {
        int above[3] = {0, 0, 0};
        above[d] = 1;
        const float velocity[2] = {velocity_at(grid, cell, here, d), velocity_at(grid, cell, above, d)};
        const float solid[2] = {around->has_obstacle ? solid_velocity_at(step, cell, d) : 0.0f,
                                around->has_obstacle ? solid_velocity_at(step, sk_plain_next(grid, cell, d, 1), d)
                                                     : 0.0f};
        gained += sk_uic_inflow(velocity, rooms + 2 * d, solid);
        for (int e = 0; e < d; e++)
            turning += fabsf(slope(grid, cell, d, e) - slope(grid, cell, e, d));
    }
    const float calm = sk_uic_calm_speed(step->scene->gravity, grid->cell_size);
    const float allowance = sk_uic_allowance(speed_of_cell(grid, cell), calm);
    turning *= allowance;
    return sk_uic_flow_excess(gained, sk_uic_widest(rooms) * turning, spare, (float)(step->dt / grid->cell_size),
                              sk_uic_flow_slack(excess, room, allowance));
}

/* The least share of its room that a cell in or around a cell has filled; cells in obstacles count as filled. */
SK_KERNEL float emptiest_around(const surroundings *around, const uic_rows *rows, sk_plain_cell cell)
{
    float emptiest = 1.0f;
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        const int offset[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
        const float room = cell_room(around, cell, offset);
        const float target = folded_value(&around->step->grid, &around->walls, rows->target, cell, offset, -1);
        emptiest = fminf(emptiest, room >= UIC_LEAST_ROOM ? target / room : 1.0f);
    }
    return emptiest;
}

/* The right side of a cell's row. */
SK_KERNEL float row_excess(const surroundings *around, const uic_rows *rows, sk_plain_cell cell, float room,
                           const float rooms[2 * SELKIE_DIM])
{
    const int here[3] = {0, 0, 0};
    const float target = folded_value(&around->step->grid, &around->walls, rows->target, cell, here, -1);
    if (!rows->bounds_flow) {
        const sk_step *step = around->step;
        const float excess = sk_uic_excess(target, room);
        const float calm = sk_uic_calm_speed(step->scene->gravity, step->grid.cell_size);
        return rows->keeps_excess && calm > 0.0f && excess > 0.0f
                   ? sk_uic_removed_excess(excess, emptiest_around(around, rows, cell),
                                           speed_of_cell(&step->grid, cell), calm,
                                           step->solids.obstacle_count + step->scene->body_count > 0)
                   : excess;
    }
    const float spare = around->spare[sk_plain_index(cell)], dense = sk_uic_excess(target, room);
    return spare >= 0.0f ? flow_excess(around, cell, rooms, spare, dense, room) : dense - UIC_ARRIVING_SLACK;
}

/* Writes the row of a cell. Returns its excess, 0 if it takes no part. */
SK_KERNEL float build_uic_row(const surroundings *around, const uic_rows *rows, sk_plain_cell cell)
{
    const sk_grid *grid = &around->step->grid;
    const int here[3] = {0, 0, 0};
    const size_t index = sk_plain_index(cell);
    const float room = cell_room(around, cell, here);
    float rooms[2 * SELKIE_DIM], faces[2 * SELKIE_DIM];
    face_rooms(around, cell, rooms);
    coefficients(around, rows, cell, rooms, faces);
    const float open = sk_uic_diagonal(faces);
    const float diagonal = takes_part(around, rows, cell, room, open) ? open : 0.0f;
    float excess = row_excess(around, rows, cell, room, rooms);
    excess += rows->has_tension ? capillary_excess(around->step, cell, faces) : 0.0f;
    grid->fields[SK_FIELD_DIAGONAL][index] = diagonal;
    grid->fields[SK_FIELD_RIGHT_SIDE][index] = diagonal > 0.0f ? excess : 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        grid->fields[SK_FIELD_FACE_X + d][index] = faces[2 * d];
    return diagonal > 0.0f && excess > 0.0f ? excess : 0.0f;
}

/* --- shifts --- */

/* The potential of the cell at `offset` from a cell; behind walls that of the mirror image. */
SK_KERNEL float potential_at(const surroundings *around, sk_plain_cell cell, const int offset[3])
{
    const sk_grid *grid = &around->step->grid;
    int at[3], other[3] = {offset[0], offset[1], offset[2]};
    coordinates_beside(grid, cell, offset, at);
    for (int d = 0; d < SELKIE_DIM; d++)
        other[d] += sk_wall_way_back(&around->walls, d, at[d]);
    return grid->fields[SK_FIELD_POTENTIAL][sk_plain_index(sk_plain_beside(grid, cell, other))];
}

/* Difference of the potential across the lower face of the cell at `offset` from a cell. */
SK_KERNEL float difference_at(const surroundings *around, sk_plain_cell cell, const int offset[3], int d)
{
    int lower[3] = {offset[0], offset[1], offset[2]};
    lower[d] -= 1;
    return potential_at(around, cell, lower) - potential_at(around, cell, offset);
}

SK_KERNEL float sharpened_flux(const surroundings *around, sk_plain_cell cell, int d, float room, float flux)
{
    float beside[2 * SELKIE_DIM];
    int count = 0;
    for (int side = 0; room == 1.0f && side < 2 * SELKIE_DIM; side++) {
        int offset[3] = {0, 0, 0};
        offset[side / 2] = side % 2 ? 1 : -1;
        if (side / 2 != d && face_room(around, cell, offset, d) == 1.0f)
            beside[count++] = difference_at(around, cell, offset, d);
    }
    return sk_uic_sharpened_flux(flux, beside, count);
}

/* Shifts of the lower faces of a cell, added to those of earlier passes if `again`. If `corrected`, also the density
 * that results. */
SK_KERNEL void shift_uic_faces(const surroundings *around, sk_plain_cell cell, int again, int corrected)
{
    const sk_grid *grid = &around->step->grid;
    const int here[3] = {0, 0, 0};
    const size_t index = sk_plain_index(cell);
    float rooms[2 * SELKIE_DIM], predicted = grid->fields[SK_FIELD_DENSITY][index];
    face_rooms(around, cell, rooms);
    for (int d = 0; d < SELKIE_DIM; d++) {
        int above[3] = {0, 0, 0};
        above[d] = 1;
        const float flux = rooms[2 * d] * difference_at(around, cell, here, d),
                    out = rooms[2 * d + 1] * difference_at(around, cell, above, d);
        const float density =
            folded_value(grid, &around->walls, grid->fields[SK_FIELD_FACE_DENSITY_X + d], cell, here, d);
        float *shift = &grid->fields[SK_FIELD_SHIFT_X + d][index];
        *shift =
            sk_uic_shift_of_face(sharpened_flux(around, cell, d, rooms[2 * d], flux), density, again ? *shift : 0.0f);
        predicted = predicted + flux - out;
    }
    if (corrected)
        grid->fields[SK_FIELD_PREDICTED][index] = predicted;
}

/* --- prediction --- */

/* The velocity of a face on a wall of the domain, or that a thin wall closes. `scale` times POTENTIAL before the wall
 * of the domain is the pressure there. */
SK_KERNEL float stopped(const surroundings *around, sk_plain_cell cell, int d, float velocity, float scale)
{
    const int here[3] = {0, 0, 0};
    int at[3], below[3] = {0, 0, 0};
    below[d] = -1;
    sk_plain_coordinates(&around->step->grid, cell, at);
    if (at[d] == around->walls.low[d])
        velocity = sk_uic_stopped_at_wall(velocity, 0, scale * potential_at(around, cell, here));
    if (at[d] == around->walls.high[d])
        velocity = sk_uic_stopped_at_wall(velocity, 1, scale * potential_at(around, cell, below));
    const sk_solids *solids = &around->step->solids;
    const int thin = solids->barriers[sk_plain_solid_index(solids, cell)] & SK_BARRIER_THIN << d;
    return thin && velocity == velocity ? solid_velocity_at(around->step, cell, d) : velocity;
}

/* --- suction --- */

/* The mark of a cell with that of the cells beside it. */
SK_KERNEL float grown_mark(const sk_grid *grid, const float *marks, sk_plain_cell cell)
{
    float marked = marks[sk_plain_index(cell)];
    for (int side = 0; side < 2 * SELKIE_DIM; side++)
        marked = fmaxf(marked, marks[sk_plain_index(sk_plain_next(grid, cell, side / 2, side % 2 ? 1 : -1))]);
    return marked;
}

/* --- pressure --- */

/* The velocity of a lower face, accelerated by the pressure; `scale` converts POTENTIAL to m/s. */
SK_KERNEL float accelerated_velocity(const surroundings *around, sk_plain_cell cell, int d, float scale,
                                     int has_tension)
{
    const int here[3] = {0, 0, 0};
    const sk_step *step = around->step;
    const sk_grid *grid = &step->grid;
    int below[3] = {0, 0, 0};
    below[d] = -1;
    float velocity = grid->fields[SK_FIELD_VELOCITY_X + d][sk_plain_index(cell)];
    const float room = face_room(around, cell, here, d), light = scale * lightness_at(step, cell, d),
                high = light * potential_at(around, cell, here);
    float low = light * potential_at(around, cell, below);
    low += has_tension ? lightness_at(step, cell, d) * capillary_at(step, cell, here, d) : 0.0f;
    if (around->spare) {
        float mass, solved;
        face_masses(around, cell, here, d, room, &mass, &solved);
        velocity += sk_uic_flow_change(room * (low - high), mass, solved,
                                       sk_uic_gain(step->scene->gravity, sk_step_kick(step)));
    } else {
        velocity = sk_uic_pushed(
            velocity, room,
            folded_value(grid, &around->walls, grid->fields[SK_FIELD_FACE_DENSITY_X + d], cell, here, d), low, high);
    }
    return velocity;
}

/* The change of a lower face by the pressure alone, m/s; 0 where its velocity is unknown. */
SK_KERNEL float uic_balance_at(const surroundings *around, sk_plain_cell cell, int d, float scale)
{
    const float before = around->step->grid.fields[SK_FIELD_VELOCITY_X + d][sk_plain_index(cell)];
    const float change = accelerated_velocity(around, cell, d, scale, 0) - before;
    return change == change ? change : 0.0f;
}

/* The velocity of a lower face after the solve. Faces inside a no-slip solid take its velocity. */
SK_KERNEL float pushed_velocity(const surroundings *around, sk_plain_cell cell, int d, float scale)
{
    const sk_step *step = around->step;
    float velocity = accelerated_velocity(around, cell, d, scale, step->capillary > 0);
    velocity = stopped(around, cell, d, velocity, scale);
    const int sticks = step->solids.no_slip[sk_plain_solid_index(&step->solids, cell)] &&
                       open_fraction_at(step, cell, d) == 0.0f && !face_on_wall(step, cell, d);
    return sticks && velocity == velocity ? solid_velocity_at(step, cell, d) : velocity;
}

/* Has one of the cells around a cell any pressure? */
SK_KERNEL int is_pushed(const surroundings *around, sk_plain_cell cell)
{
    int pushed = 0;
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        const int offset[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
        pushed |= potential_at(around, cell, offset) != 0.0f;
    }
    return pushed;
}

/* Velocities, changes and flight of a cell after the solve. Returns how many of its velocities are known. */
SK_KERNEL int finish_uic_cell(const surroundings *around, sk_plain_cell cell, float scale, int marks_flight)
{
    const sk_grid *grid = &around->step->grid;
    const size_t index = sk_plain_index(cell);
    int known = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        float *velocity = &grid->fields[SK_FIELD_VELOCITY_X + d][index],
              *change = &grid->fields[SK_FIELD_CHANGE_X + d][index];
        *velocity = pushed_velocity(around, cell, d, scale);
        *change = *velocity - *change;
        known += *velocity == *velocity;
    }
    /* Particles away from any pressure fly. */
    if (marks_flight)
        grid->fields[SK_FIELD_PREDICTED][index] = is_pushed(around, cell) ? 0.0f : 1.0f;
    return known;
}

#endif
