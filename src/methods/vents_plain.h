/* Vents: sides of cells where air has come between the liquid and a static obstacle. For files compiled per dimension.
 *
 * A jet that passes an edge leaves the wall behind it by less than a cell at first. A liquid cell beside a closed face
 * cannot show that: bilateral pressure holds the liquid to the wall by suction, and a slot in a plate of one cell or
 * more passes 10 to 30 % too much. So a closed side of a liquid cell becomes a vent, at the edge of a plate, where the
 * pressure is below that of the air and air can follow along the wall. The condition of a vent is that of an obstacle
 * which liquid may leave (Batty et al. 2007, sec. 4: either the pressure is that of the air or the velocity is that of
 * the wall). It is found from the pressure of the step before, so that a step has one linear solve.
 *
 * A vent has the pressure of the air at the wall, half a cell from the centre. It ends when the liquid returns. Liquid
 * that sticks to a no-slip surface does not part from it. */
#ifndef SK_METHODS_VENTS_PLAIN_H
#define SK_METHODS_VENTS_PLAIN_H

#include "methods/liquid_plain.h"

/* Cells of head: a weaker suction opens no vent. Liquid at rest and slow waves stay above it. */
#define SK_VENT_HEAD 1.0f
/* A cell with less fill is dry: its vents end. */
#define SK_VENT_DRY 0.05f
/* Faces that are open by more have too little wall for a vent. */
#define SK_VENT_OPEN 0.9f
/* The longest edge of a plate that a jet springs clear of, in cells. A longer one is a pipe, which stays full. */
#define SK_VENT_EDGE 5
/* One over the distance from a cell's centre to the air in a vent, in cells. */
#define SK_VENT_SLOPE 2.0f

/* Can the cells of a block have vents? Static obstacles alone have some: their slots outlive the step. */
SK_KERNEL int can_vent(const sk_step *step, int block)
{
    const sk_solids *solids = &step->solids;
    if (solids->obstacle_count == solids->moving_count)
        return 0;
    const size_t slot = (size_t)solids->block_slot[block];
    return slot && slot < solids->static_count && !solids->plain[slot];
}

/* The vents of a cell, a bit for each side. */
SK_KERNEL int vents_of(const sk_step *step, sk_plain_cell cell)
{
    const sk_solids *solids = &step->solids;
    return can_vent(step, cell.slot) ? solids->vents[sk_plain_solid_index(solids, cell)] : 0;
}

/* The way that liquid leaves the wall at the lower face of a cell across axis d: 1 or -1 along the axis; 0 if the face
 * is no vent. */
SK_KERNEL int way_of_vent(const sk_step *step, sk_plain_cell cell, int d)
{
    if (vents_of(step, cell) >> (2 * d) & 1)
        return 1;
    return vents_of(step, sk_plain_next(&step->grid, cell, d, -1)) >> (2 * d + 1) & 1 ? -1 : 0;
}

/* Adds the vents of a cell to its row: the air's pressure in the closed part of the side, and the flux there. */
SK_KERNEL void add_vents_to_row(const sk_step *step, sk_plain_cell cell, float *diagonal, float *right)
{
    const sk_grid *grid = &step->grid;
    const int vents = vents_of(step, cell);
    for (int side = 0; vents && liquid_cell_at(grid, cell).liquid && side < 2 * SELKIE_DIM; side++) {
        if (!(vents >> side & 1))
            continue;
        const int d = side / 2;
        const sk_plain_cell face = cell_of_side(grid, cell, side);
        const float closed = 1.0f - open_fraction_at(step, face, d);
        const float velocity = grid->fields[SK_FIELD_VELOCITY_X + d][sk_plain_index(face)];
        const float flux = closed * (velocity == velocity ? velocity : 0.0f);
        *diagonal += closed * SK_VENT_SLOPE * lightness_at(step, face, d);
        *right += side % 2 ? -flux : flux;
    }
}

/* Is the lower face of a cell across axis d a vent of liquid? Then `vented` is the velocity (m/s) after the solve in
 * its closed part, not into the wall, from the one before the solve. */
SK_KERNEL int velocity_of_vent(const sk_step *step, sk_plain_cell cell, int d, float velocity, float *vented)
{
    const sk_grid *grid = &step->grid;
    const int way = way_of_vent(step, cell, d);
    const sk_plain_cell inner = way > 0 ? cell : sk_plain_next(grid, cell, d, -1);
    if (!way || !liquid_cell_at(grid, inner).liquid)
        return 0;
    const float push =
        SK_VENT_SLOPE * lightness_at(step, cell, d) * grid->fields[SK_FIELD_POTENTIAL][sk_plain_index(inner)];
    const float after = (velocity == velocity ? velocity : 0.0f) - (float)way * push;
    *vented = after * (float)way > 0.0f ? after : 0.0f;
    return 1;
}

/* The velocity of a face of which a part is a vent. */
SK_KERNEL float velocity_beside_vent(float open, float velocity, float vented)
{
    return open > 0.0f ? open * velocity + (1.0f - open) * vented : vented;
}

SK_KERNEL int is_air_at(const sk_step *step, sk_plain_cell cell)
{
    return !cell.slot || (step->grid.kinds[sk_plain_index(cell)] & SK_CELL_KIND_MASK) == SK_CELL_AIR;
}

/* Can air follow along the wall to a side of a cell? It does from a cell beside it along the wall that is air, that has
 * a vent on the same side, or whose surface is on that side. */
SK_KERNEL int air_reaches(const sk_step *step, sk_plain_cell cell, int side)
{
    const sk_grid *grid = &step->grid;
    const int d = side / 2;
    int reached = 0;
    for (int s = 0; s < 2 * SELKIE_DIM; s++) {
        if (s / 2 == d || !(open_fraction_at(step, cell_of_side(grid, cell, s), s / 2) > 0.0f))
            continue;
        const sk_plain_cell beside = sk_plain_next(grid, cell, s / 2, s % 2 ? 1 : -1);
        reached |= is_air_at(step, beside) || (vents_of(step, beside) >> side & 1) ||
                   (open_fraction_at(step, cell_of_side(grid, beside, side), d) > 0.0f &&
                    is_air_at(step, sk_plain_next(grid, beside, d, side % 2 ? 1 : -1)));
    }
    return reached;
}

/* Is the wall at a side of a cell the edge of a plate: does it end on both sides of the cell along an axis? */
SK_KERNEL int is_at_edge(const sk_step *step, sk_plain_cell cell, int side)
{
    const sk_grid *grid = &step->grid;
    int at_edge = 0;
    for (int axis = 0; axis < SELKIE_DIM; axis++) {
        int length = 1, ends = 0;
        for (int way = 0; axis != side / 2 && way < 2; way++) {
            const int s = 2 * axis + way;
            sk_plain_cell at = cell;
            for (int n = 0; n < SK_VENT_EDGE && open_fraction_at(step, cell_of_side(grid, at, s), axis) > 0.0f; n++) {
                at = sk_plain_next(grid, at, axis, way ? 1 : -1);
                if (!at.slot || open_fraction_at(step, cell_of_side(grid, at, side), side / 2) > SK_VENT_OPEN) {
                    ends += at.slot > 0;
                    break;
                }
                length++;
            }
        }
        at_edge |= ends == 2 && length <= SK_VENT_EDGE;
    }
    return at_edge;
}

/* The suction (m/s, as the solution of the pressure solve) that opens a vent; 0 without gravity, where none opens. */
SK_KERNEL float suction_of_vent(const sk_step *step)
{
    float square = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        square += (float)(step->scene->gravity[d] * step->scene->gravity[d]);
    return SK_VENT_HEAD * __builtin_sqrtf(square) * (float)sk_step_kick(step);
}

/* Can a cell have vents after this step? Most cannot, and are not looked at closer. */
SK_KERNEL int may_have_vents(float solution, int vents, float suction)
{
    return vents || (solution < -suction && suction > 0.0f);
}

/* The vents of a cell after a step with pressure. */
SK_KERNEL int vents_after(const sk_step *step, sk_plain_cell cell, float suction)
{
    const sk_grid *grid = &step->grid;
    const size_t here = sk_plain_index(cell);
    const int before = vents_of(step, cell), kind = grid->kinds[here] & SK_CELL_KIND_MASK;
    int after = 0;

    /* Liquid has left the cell: the vents stay until it is dry, or it would count as a hole in the liquid. */
    if (kind != SK_CELL_LIQUID)
        return kind == SK_CELL_AIR && grid->fields[SK_FIELD_FILL][here] > SK_VENT_DRY ? before : 0;

    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const int d = side / 2;
        const sk_plain_cell face = cell_of_side(grid, cell, side);
        if (open_fraction_at(step, face, d) > SK_VENT_OPEN || face_on_wall(step, face, d) ||
            step->solids.no_slip[sk_plain_solid_index(&step->solids, face)])
            continue;
        const float velocity = grid->fields[SK_FIELD_VELOCITY_X + d][sk_plain_index(face)];
        const int leaves = side % 2 ? velocity < 0.0f : velocity > 0.0f;
        const int opens = may_have_vents(grid->fields[SK_FIELD_POTENTIAL][here], 0, suction);
        if (before >> side & 1 ? leaves : opens && air_reaches(step, cell, side) && is_at_edge(step, cell, side))
            after |= 1 << side;
    }
    return after;
}

#endif
