/* One face of a no-slip body in the viscous solve, for the CPU and the GPU: viscosity_bodies_dim.c explains the parts.
 * For files compiled per dimension. */
#ifndef SK_METHODS_VISCOSITY_VISCOSITY_BODIES_PLAIN_H
#define SK_METHODS_VISCOSITY_VISCOSITY_BODIES_PLAIN_H

#include "linalg/stress_kernels.h"
#include "methods/liquid_plain.h"
#include "methods/viscosity/viscosity_bodies.h"

/* Stiffness of bodies over that of the liquid, and its bounds (viscosity x time / cell size^2). With 100 a body shears
 * by a hundredth of what the liquid beside it does. With 1,000 the solve of a light box half out of honey takes more
 * than 100 iterations in 3D. */
#define SK_VISCOUS_BODY_STIFFNESS 1e2f
#define SK_VISCOUS_LEAST_BODY_STIFFNESS 1e1f
#define SK_VISCOUS_MOST_BODY_STIFFNESS 1e5f

SK_KERNEL sk_plain_cell cell_of_body_face(const sk_viscous_body_face *face)
{
    const sk_plain_cell cell = {(int)(face->place / SK_BLOCK_CELLS), (int)(face->place % SK_BLOCK_CELLS)};
    return cell;
}

/* The liquid's share of a face, as of the faces outside: what moves with the body. */
SK_KERNEL float liquid_of_body_face(const sk_step *step, const sk_viscous_fields *f, sk_plain_cell cell, int d)
{
    const size_t here = sk_plain_index(cell), before = sk_plain_index(sk_plain_next(&step->grid, cell, d, -1));
    float sum = 0.0f;
    for (int n = 0; n < SK_CORNERS; n++)
        sum += f->share[n][n >> d & 1 ? before : here];
    return sum / SK_CORNERS / (step->relative_density ? lightness_at(step, cell, d) : 1.0f);
}

/* Takes a face that has been closed from the liquid. Pressure does not act on liquid there: if gravity is `balanced`,
 * it is held up with the body. */
SK_KERNEL void take_body_face(const sk_step *step, const sk_viscous_fields *f, int balanced, sk_viscous_body_face *face)
{
    const sk_plain_cell cell = cell_of_body_face(face);
    float *velocity = &step->grid.fields[SK_FIELD_VELOCITY_X + face->axis][face->place];
    if (balanced && !(open_fraction_at(step, cell, face->axis) > 0.0f)) {
        *velocity += face->held;
        step->grid.fields[step->balance + face->axis][face->place] = face->held;
    }
    face->before = *velocity;
    face->liquid = face->before == face->before ? liquid_of_body_face(step, f, cell, face->axis) : 0.0f;
}

/* Are the faces around a cell (axes 0), or around its lower edge across two axes, all of one body? */
SK_KERNEL int is_inside_body(const sk_grid *grid, int32_t *const owner[SELKIE_DIM], sk_plain_cell cell, int a, int b)
{
    const int32_t body = owner[a][sk_plain_index(cell)];
    if (a != b)
        return body && owner[b][sk_plain_index(cell)] == body &&
               owner[a][sk_plain_index(sk_plain_next(grid, cell, b, -1))] == body &&
               owner[b][sk_plain_index(sk_plain_next(grid, cell, a, -1))] == body;
    for (int d = 0; d < SELKIE_DIM; d++)
        if (!body || owner[d][sk_plain_index(cell)] != body ||
            owner[d][sk_plain_index(sk_plain_next(grid, cell, d, 1))] != body)
            return 0;
    return 1;
}

/* Makes a face an unknown of the solve. `strength` is the largest viscosity x time / cell size^2. */
SK_KERNEL void join_body_face(const sk_step *step, const sk_viscous_fields *f, int32_t *const owner[SELKIE_DIM],
                              float strength, const sk_viscous_body_face *face)
{
    const sk_grid *grid = &step->grid;
    const int a = face->axis;
    const float mass = face->mass + face->liquid,
                velocity = face->liquid > 0.0f ? (face->mass * face->velocity + face->liquid * face->before) / mass
                                               : face->velocity;
    f->fixed[a][face->place] = 0;
    f->mass[a][face->place] = mass;
    f->velocity[a][face->place] = velocity;
    grid->fields[SK_FIELD_VELOCITY_X + a][face->place] = velocity; /* the solve's target */

    const float stiffness = fminf(fmaxf(SK_VISCOUS_BODY_STIFFNESS * strength, SK_VISCOUS_LEAST_BODY_STIFFNESS),
                                  SK_VISCOUS_MOST_BODY_STIFFNESS);
    const sk_plain_cell cell = cell_of_body_face(face);
    if (is_inside_body(grid, owner, cell, 0, 0)) {
        f->normal[face->place] = stiffness;
        f->bulk[face->place] = 0.0f;
    }
    for (int b = 0; b < SELKIE_DIM; b++)
        if (b != a && is_inside_body(grid, owner, cell, a, b))
            f->shear[sk_stress_edge(a < b ? a : b, a < b ? b : a)][face->place] = stiffness;
}

/* Gives the grid its velocity back. Returns what the body gains there, m/s. */
SK_KERNEL double leave_body_face(const sk_step *step, const sk_viscous_fields *f, const sk_viscous_body_face *face)
{
    const int d = face->axis;
    const float found = f->velocity[d][face->place];
    step->grid.fields[SK_FIELD_VELOCITY_X + d][face->place] = face->liquid > 0.0f ? found : face->before;
    return f->solved[d][face->place] ? (double)found - (double)face->velocity : 0.0;
}

#endif
