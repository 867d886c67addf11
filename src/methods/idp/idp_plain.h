/* The density projection of one cell and one face, for the plain form and the GPU: idp_dim.c and idp_parts_dim.c
 * explain the parts. For files compiled per dimension. */
#ifndef SK_METHODS_IDP_IDP_PLAIN_H
#define SK_METHODS_IDP_IDP_PLAIN_H

#include "methods/idp/idp_kernels.h"
#include "methods/liquid_plain.h"

/* Density of liquid and solids together. */
SK_KERNEL float total_density(const sk_step *step, sk_plain_cell cell)
{
    return step->grid.fields[SK_FIELD_DENSITY][sk_plain_index(cell)] +
           step->solids.blurred[sk_plain_solid_index(&step->solids, cell)];
}

SK_KERNEL int run_has(const uint64_t *runs, sk_plain_cell cell)
{
    return (int)(runs[cell.slot] >> (cell.local / 8) & 1);
}

/* The push of the solids at the face on a side of a cell, cells. */
SK_KERNEL float push_at(const sk_grid *grid, sk_plain_cell cell, int side)
{
    const int d = side / 2;
    const float *push = grid->fields[SK_FIELD_CHANGE_X + d];
    const sk_plain_cell above = cell_of_side(grid, cell, side), below = sk_plain_next(grid, above, d, -1);
    return sk_idp_pushed_face(push[sk_plain_index(below)], push[sk_plain_index(above)]);
}

/* Adds the known flux through the closed parts of a cell's faces (Eq. 18), as of a moving wall, to a right side. */
SK_KERNEL float add_pushes(const sk_grid *grid, sk_plain_cell cell, const sk_liquid_view *view, float right)
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float in = (1.0f - view->open[2 * d]) * push_at(grid, cell, 2 * d);
        const float out = (1.0f - view->open[2 * d + 1]) * push_at(grid, cell, 2 * d + 1);
        right = right + in - out;
    }
    return right;
}

/* The right side of a cell's row; adds the density beyond the bound to `unseen`. */
SK_KERNEL float right_side_of(const sk_step *step, sk_plain_cell cell, const sk_liquid_view *view, int pushing,
                              int64_t *unseen)
{
    const sk_grid *grid = &step->grid;
    const selkie_idp_def *def = &step->scene->idp;
    const int solids = sk_step_has_moving_solids(step), jumps = view->voxel || solids;
    const sk_idp_limits limits = {(float)def->density_min, (float)def->density_max, (float)def->evenness,
                                  sk_idp_slack(solids)};
    uint32_t first, last;
    float lacking = 1.0f;
    SK_KERNEL_UNROLL
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const float share = sk_idp_lacking_share(view->beside[side].liquid, view->beside[side].depth, jumps);
        lacking = view->open[side] > 0.0f && share < lacking ? share : lacking;
    }
    sk_plain_particles(grid, cell, &first, &last);
    *unseen += sk_idp_unseen(total_density(step, cell), limits.most);
    const float error = sk_idp_density_error(grid->fields[SK_FIELD_DENSITY][sk_plain_index(cell)],
                                             step->solids.blurred[sk_plain_solid_index(&step->solids, cell)],
                                             (float)(last - first) / (float)step->particles_per_cell, lacking, limits);
    return pushing ? add_pushes(grid, cell, view, error) : error;
}

/* Difference of the potential across the lower face of the cell at `offset` from a cell, and whether that face is open
 * with liquid on both sides. */
SK_KERNEL float difference_at(const sk_step *step, sk_plain_cell cell, const int offset[3], int d, int *inside)
{
    const sk_grid *grid = &step->grid;
    const float *potential = grid->fields[SK_FIELD_POTENTIAL];
    int lower[3] = {offset[0], offset[1], offset[2]};
    lower[d] -= 1;
    const sk_plain_cell above = sk_plain_beside(grid, cell, offset), below = sk_plain_beside(grid, cell, lower);
    *inside = liquid_cell_at(grid, above).liquid && liquid_cell_at(grid, below).liquid &&
              open_fraction_at(step, above, d) == 1.0f;
    return potential[sk_plain_index(below)] - potential[sk_plain_index(above)];
}

SK_KERNEL float sharpened_descent(const sk_step *step, sk_plain_cell cell, int d, float descent)
{
    float beside[2 * SELKIE_DIM];
    int offset[3] = {0, 0, 0}, count = 0, inside, both;
    const float own = difference_at(step, cell, offset, d, &inside);
    for (int side = 0; inside && side < 2 * SELKIE_DIM; side++) {
        if (side / 2 == d)
            continue;
        offset[side / 2] = side % 2 ? 1 : -1;
        beside[count] = difference_at(step, cell, offset, d, &both);
        count += both;
        offset[side / 2] = 0;
    }
    return sk_idp_sharpened(descent, own, beside, count);
}

/* Does a cell need another correction? All cells of runs with liquid count. */
SK_KERNEL int is_needy(const sk_step *step, sk_plain_cell cell)
{
    const float bound = (float)step->scene->idp.density_max;
    const float most = SK_IDP_NEEDY_DENSITY < bound ? SK_IDP_NEEDY_DENSITY : bound;
    return run_has(step->grid.runs[SK_RUNS_LIQUID], cell) && total_density(step, cell) > most;
}

/* The row of a cell; only in chosen runs if `local`. Adds the density beyond the bound to `unseen`. */
SK_KERNEL void build_idp_row(const sk_step *step, sk_plain_cell cell, int local, int pushing, int64_t *unseen)
{
    const sk_grid *grid = &step->grid;
    const size_t here = sk_plain_index(cell);
    sk_liquid_view view;
    float face[SELKIE_DIM];
    gather_liquid_view(step, cell, 0, &view);
    float diagonal = sk_liquid_row(&view, face);
    if (local && !run_has(grid->runs[SK_RUNS_CHOSEN], cell))
        diagonal = 0.0f;
    const float right = diagonal > 0.0f ? right_side_of(step, cell, &view, pushing, unseen) : 0.0f;
    grid->fields[SK_FIELD_DIAGONAL][here] = diagonal;
    grid->fields[SK_FIELD_RIGHT_SIDE][here] = right;
    for (int d = 0; d < SELKIE_DIM; d++)
        grid->fields[SK_FIELD_FACE_X + d][here] = face[d];
}

/* The faces of a block that get displacements. */
typedef struct idp_reach {
    uint64_t moved, reached; /* runs */
    float farthest;          /* cells */
} idp_reach;

SK_KERNEL idp_reach reach_of_block(const sk_step *step, int block, int local, int pushing)
{
    const sk_grid *grid = &step->grid;
    idp_reach reach;
    reach.moved = local ? grid->runs[SK_RUNS_MOVED][block] : ~UINT64_C(0);
    /* Solids that push act everywhere. */
    reach.reached = pushing ? ~UINT64_C(0) : grid->runs[SK_RUNS_NEAR][block] & reach.moved;
    /* Beside obstacles the limit is halved: the flux through a partly open face would throw particles far. */
    reach.farthest = step->solids.plain[step->solids.block_slot[block]] ? 1.0f : 0.5f;
    return reach;
}

/* Does the displacement of the lower face of a cell across axis d follow from the potential? It is known otherwise. */
SK_KERNEL int asks_for_descent(const sk_step *step, const idp_reach *reach, sk_plain_cell cell, int d,
                               float *displacement)
{
    *displacement = 0.0f;
    if (reach->reached && face_on_wall(step, cell, d))
        return 0;
    if (reach->reached >> (cell.local / 8) & 1)
        return 1;
    if (reach->moved >> (cell.local / 8) & 1)
        *displacement = __builtin_nanf("");
    return 0;
}

SK_KERNEL float displacement_of(const sk_step *step, const idp_reach *reach, sk_plain_cell cell, int d,
                                int beside_liquid, float descent, int pushing)
{
    return sk_idp_displacement(descent, beside_liquid, open_fraction_at(step, cell, d) == 0.0f,
                               pushing ? push_at(&step->grid, cell, 2 * d) : 0.0f, reach->farthest);
}

/* The displacements of the lower faces of a cell. */
SK_KERNEL void displace_faces(const sk_step *step, sk_plain_cell cell, int local, int pushing)
{
    const sk_grid *grid = &step->grid;
    const idp_reach reach = reach_of_block(step, cell.slot, local, pushing);
    for (int d = 0; d < SELKIE_DIM; d++) {
        float displacement;
        if (asks_for_descent(step, &reach, cell, d, &displacement)) {
            int beside_liquid;
            const float descent = gather_descent(step, cell, d, &beside_liquid);
            displacement = displacement_of(step, &reach, cell, d, beside_liquid,
                                           sharpened_descent(step, cell, d, descent), pushing);
        }
        grid->fields[SK_FIELD_VELOCITY_X + d][sk_plain_index(cell)] = displacement;
    }
}

#endif
