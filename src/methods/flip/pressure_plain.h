/* The pressure projection of one cell and one face, for the plain form and the GPU: see pressure_dim.c. For files
 * compiled per dimension. */
#ifndef SK_METHODS_FLIP_PRESSURE_PLAIN_H
#define SK_METHODS_FLIP_PRESSURE_PLAIN_H

#include "methods/cell_kernels.h"
#include "methods/flip/reflection.h"
#include "methods/flip/reflection_kernels.h"
#include "methods/flip/sliver_plain.h"
#include "methods/flip/transfer_options.h"
#include "methods/vents_plain.h"

SK_KERNEL float inflow_of(const sk_step *step, sk_plain_cell cell, const sk_liquid_view *view)
{
    float flux[2 * SELKIE_DIM];
    SK_KERNEL_UNROLL
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const int d = side / 2;
        const sk_plain_cell face = cell_of_side(&step->grid, cell, side);
        flux[side] = sk_liquid_flux(step->grid.fields[SK_FIELD_VELOCITY_X + d][sk_plain_index(face)], view->open[side],
                                    solid_velocity_at(step, face, d));
    }
    return sk_liquid_inflow(flux);
}

/* The row of a cell and its right side. Returns whether the cell is inner; `error` is then its density error. */
SK_KERNEL int sk_plain_pressure_row(const sk_step *step, sk_plain_cell cell, float *error)
{
    const sk_grid *grid = &step->grid;
    const size_t here = sk_plain_index(cell);
    sk_liquid_view view;
    float face[SELKIE_DIM];
    gather_liquid_view(step, cell, 1, &view);
    float diagonal = sk_liquid_row(&view, face), right = inflow_of(step, cell, &view);
    add_vents_to_row(step, cell, &diagonal, &right);
    grid->fields[SK_FIELD_DIAGONAL][here] = diagonal;
    for (int d = 0; d < SELKIE_DIM; d++)
        grid->fields[SK_FIELD_FACE_X + d][here] = face[d];

    /* A method may prescribe an expansion. Its flux is stored in the field of the solution. */
    right += step->has_expansion ? grid->fields[SK_FIELD_EXPANSION][here] : 0.0f;
    grid->fields[SK_FIELD_RIGHT_SIDE][here] = diagonal > 0.0f ? right : 0.0f;

    int liquid_beside[2 * SELKIE_DIM];
    SK_KERNEL_UNROLL
    for (int side = 0; side < 2 * SELKIE_DIM; side++)
        liquid_beside[side] = view.beside[side].liquid;
    *error =
        grid->fields[SK_FIELD_DENSITY][here] + step->solids.blurred[sk_plain_solid_index(&step->solids, cell)] - 1.0f;
    return sk_cell_is_inner(view.own.liquid, liquid_beside, view.open);
}

/* The lower face of a cell across axis d after the solve, m/s; the velocity may be unknown. */
typedef struct sk_projected_face {
    float velocity, change; /* the change is that of FLIP */
    float end;              /* at the end of a reflected step */
    float before;           /* what the particles gave, for walls */
} sk_projected_face;

/* What all faces of a step share. The divisions in it are in double precision: once a cell, not once a face. */
typedef struct sk_projected_step {
    float gain[SELKIE_DIM]; /* m/s  of gravity */
    float rho, most;        /* part of a change that is reflected, and the most of it (m/s) */
    int has_end;
} sk_projected_step;

SK_KERNEL sk_projected_step sk_plain_projected_step(const sk_step *step)
{
    sk_projected_step rules;
    rules.has_end = flip_has_end(step);
    rules.rho = rules.has_end ? (float)step->reflection : 0.0f;
    rules.most = flip_most_reflected(step);
    for (int d = 0; d < SELKIE_DIM; d++)
        rules.gain[d] = flip_gravity_gain(step, d);
    return rules;
}

SK_KERNEL sk_projected_face sk_plain_projected(const sk_step *step, const sk_projected_step *rules, sk_plain_cell cell,
                                               int d)
{
    const sk_grid *grid = &step->grid;
    const size_t here = sk_plain_index(cell);
    const float before = grid->fields[SK_FIELD_CHANGE_X + d][here];
    sk_projected_face face;

    /* Velocity of the face after the solve. */
    int beside_liquid = 0;
    float descent = 0.0f;
    if (grid->runs[SK_RUNS_NEAR][cell.slot] >> (cell.local / 8) & 1)
        descent = lightness_at(step, cell, d) * gather_descent(step, cell, d, &beside_liquid);
    const sk_closed_face closed = {face_on_wall(step, cell, d),
                                   step->solids.no_slip[sk_plain_solid_index(&step->solids, cell)],
                                   solid_velocity_at(step, cell, d)};
    face.velocity = sk_liquid_projected(grid->fields[SK_FIELD_VELOCITY_X + d][here], descent, beside_liquid,
                                        open_fraction_at(step, cell, d), &closed, before == before);

    /* Slivers keep the velocity of the particles: grid/slivers.h. */
    if (keeps_velocity(step, cell, d))
        face.velocity = grid->fields[SK_FIELD_VELOCITY_X + d][here];

    float vented;
    if (velocity_of_vent(step, cell, d, grid->fields[SK_FIELD_VELOCITY_X + d][here], &vented))
        face.velocity = velocity_beside_vent(open_fraction_at(step, cell, d), face.velocity, vented);

    /* Change of the velocity, for FLIP, and its reflection. */
    face.before = before;
    face.change = sk_net_change(face.velocity, before, rules->gain[d]);
    face.end = face.velocity;
    if (rules->has_end) {
        /* Closed walls of the domain do not reflect. */
        const float rho = closed.on_wall ? 0.0f : rules->rho;
        const float more = rho * sk_reflected_change(face.change, rules->gain[d], rules->most);
        face.end = face.velocity + more;
        face.change += more;
    }
    if (closed.on_wall && before == before && !(open_fraction_at(step, cell, d) > 0.0f) &&
        wall_is_dry(step, cell, d, closed.on_wall)) {
        const sk_face_after after = sk_wall_face(grid->fields[SK_FIELD_VELOCITY_X + d][here], before,
                                                 (float)closed.on_wall, rules->gain[d], rules->rho, rules->most);
        face.velocity = after.velocity;
        face.change = after.change;
        face.end = after.end;
    }
    return face;
}

/* Projects the lower faces of a cell. Returns how many of them have a known velocity. All loads come before the first
 * store, after which a compiler would have to load again. */
SK_KERNEL int sk_plain_project_faces(const sk_step *step, sk_plain_cell cell)
{
    const sk_grid *grid = &step->grid;
    const size_t here = sk_plain_index(cell);
    const int among_walls = step->before_walls && !step->solids.plain[step->solids.block_slot[cell.slot]];
    const sk_projected_step rules = sk_plain_projected_step(step);
    sk_projected_face faces[SELKIE_DIM];
    int known = 0;
    SK_KERNEL_UNROLL
    for (int d = 0; d < SELKIE_DIM; d++)
        faces[d] = sk_plain_projected(step, &rules, cell, d);
    SK_KERNEL_UNROLL
    for (int d = 0; d < SELKIE_DIM; d++) {
        grid->fields[SK_FIELD_VELOCITY_X + d][here] = faces[d].velocity;
        grid->fields[SK_FIELD_CHANGE_X + d][here] = faces[d].change;
        if (rules.has_end)
            grid->fields[step->end_velocity + d][here] = faces[d].end;
        if (among_walls)
            grid->fields[step->before_walls + d][here] = faces[d].before;
        known += faces[d].velocity == faces[d].velocity;
    }
    return known;
}

#endif
