/* The pressure projection.
 *
 * The unknown is q = p dt / (density h), in m/s, so that a face's velocity changes by the plain difference of q. The
 * operator is in liquid_system.h. The right side is minus the sum of the outward fluxes w u + (1 - w) u_solid.
 *
 * Where liquids differ in density, q has the reference density (step->density, that of the first material), and a
 * face's velocity changes by the difference of q times its lightness.
 */
#include <math.h>

#include "base/dimension.h"
#include "grid/deal.h"
#include "grid/slivers_lanes.h"
#include "methods/cells.h"
#include "methods/flip/flip.h"
#include "methods/flip/pressure.h"
#include "methods/flip/reflection.h"
#include "methods/flip/reflection_kernels.h"
#include "methods/flip/sliver_plain.h"
#include "methods/flip/transfer_options.h"
#include "methods/liquid_plain.h"
#include "methods/liquid_system.h"
#include "methods/vents.h"

/* Velocities across the faces of a block along one axis, m/s. */
typedef struct face_velocities {
    float liquid[SK_TILE_VALUES(1)];
    float solid[SK_TILE_VALUES(1)]; /* of the closed parts, where solids move */
} face_velocities;

static void load_face_velocities(const sk_step *step, int block, const liquid_view *view, const sk_tile_rows *rows,
                                 int d, face_velocities *faces)
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    sk_tile_load_faces(grid, NULL, grid->fields[SK_FIELD_VELOCITY_X + d], block, rows, d, faces->liquid);
    if (view->has_moving)
        sk_tile_load_faces(grid, solids->block_slot, solids->velocity[d], block, rows, d, faces->solid);
}

/* Fluxes through eight faces across axis d, m/s. */
static inline f8 face_fluxes(const liquid_view *view, const face_velocities *faces, int d, int node)
{
    const f8 open = f8_load(view->fraction[d] + node), u = f8_load(faces->liquid + node),
             flux = open * f8_select(u == u, u, f8_splat(0.0f)); /* unknown velocity counts as rest */
    return view->has_moving ? flux + (1.0f - open) * f8_load(faces->solid + node) : flux;
}

/* Adds the vents of a block to its rows. */
static void add_vents(const sk_step *step, int block, float *diagonal, float *right)
{
    if (!block_has_vents(step, block))
        return;
    SK_PLAIN_EACH_CELL(cell, block)
    {
        float again = 0.0f; /* a solver that has the matrix has its vents too */
        add_vents_to_row(step, cell, step->balanced ? &again : &diagonal[cell.local], &right[cell.local]);
    }
}

static void build_block(const sk_step *step, int block, density_errors *errors)
{
    const sk_grid *grid = &step->grid;
    size_t base = (size_t)block * SK_BLOCK_CELLS;
    float *diagonal = grid->fields[SK_FIELD_DIAGONAL] + base, *right = grid->fields[SK_FIELD_RIGHT_SIDE] + base;
    if (!(grid->block_flags[block] & SK_BLOCK_LIQUID)) {
        clear_liquid_rows(step, block);
        memset(errors, 0, sizeof *errors);
        return;
    }

    /* The matrix, unless the solver has it. */
    liquid_view view;
    face_velocities faces;
    const uint64_t runs = grid->runs[SK_RUNS_LIQUID][block];
    const sk_tile_rows rows = sk_tile_rows_around(runs);
    load_liquid_view(step, block, runs, &view);
    if (step->balanced) {
        memset(errors, 0, sizeof *errors);
    } else if (step->relative_density) {
        face_lightness lightness;
        load_lightness(step, block, &rows, &lightness);
        build_weighted_rows(step, block, runs, &view, &lightness);
    } else {
        build_liquid_rows(step, block, runs, &view);
    }
    if (!step->balanced)
        measure_density_errors(step, block, &view, errors);

    /* The right side: minus the divergence. */
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int up = node_step[d];
        load_face_velocities(step, block, &view, &rows, d, &faces);
        SK_EACH_RUN(c, runs)
        {
            int n = node_of(c);
            const f8 before = d ? f8_load(right + c) : f8_splat(0.0f);
            f8_store(right + c, before + face_fluxes(&view, &faces, d, n) - face_fluxes(&view, &faces, d, n + up));
        }
    }

    add_vents(step, block, diagonal, right);

    /* A method may prescribe an expansion (step->has_expansion). Its flux is stored in the field of the solution. */
    const float *expansion = grid->fields[SK_FIELD_EXPANSION] + base;
    for (int c = 0; step->has_expansion && c < SK_BLOCK_CELLS; c++)
        right[c] += expansion[c];

    /* The right side is 0 in cells that are no unknowns. */
    SK_EACH_RUN(c, runs)
    f8_store(right + c, f8_select(f8_load(diagonal + c) > 0.0f, f8_load(right + c), f8_splat(0.0f)));
}

static void set_flags(const sk_grid *grid, int block, int flags)
{
    __atomic_store_n(&grid->block_flags[block], (uint8_t)flags, __ATOMIC_RELAXED);
}

/* Faces on both closed walls of the domain in a block that particles may leave freely; a velocity that is not a number
 * stands for every other face. */
typedef struct wall_faces {
    sk_face_after faces[2][SK_BLOCK_CELLS / SK_BLOCK_N];
} wall_faces;

/* The faces across axis d of a block on closed walls without liquid near them. Beside a pool particles at the wall
 * would part from it and slide over its surface. */
static void leave_walls(const sk_step *step, int block, int d, wall_faces *walls)
{
    const sk_solids *solids = &step->solids;
    const size_t base = (size_t)block * SK_BLOCK_CELLS, slot = (size_t)solids->block_slot[block];
    const float *velocity = step->grid.fields[SK_FIELD_VELOCITY_X + d] + base;
    const float *before = step->grid.fields[SK_FIELD_CHANGE_X + d] + base;
    const float *fraction = solids->fraction[d] + slot * SK_BLOCK_CELLS;
    const float gain = flip_gravity_gain(step, d), rho = flip_reflects(step) ? (float)step->reflection : 0.0f,
                most = flip_most_reflected(step);
    for (int side = 0; side < 2; side++) {
        const int wall = wall_index(step, block, d, side);
        for (int n = 0; wall >= 0 && n < SK_BLOCK_CELLS / SK_BLOCK_N; n++) {
            const int c = cell_of_plane(d, wall, n);
            sk_face_after *face = &walls->faces[side][n];
            face->velocity = __builtin_nanf("");
            if (before[c] == before[c] && !(fraction[c] > 0.0f) &&
                wall_is_dry(step, (sk_plain_cell){block, c}, d, side ? -1 : 1))
                *face = sk_wall_face(velocity[c], before[c], side ? -1.0f : 1.0f, gain, rho, most);
        }
    }
}

/* Closed faces across axis d of a block, other than slivers (grid/slivers.h). They are unknown, but with particles near
 * (CHANGE_* still has their velocity) those on a closed wall of the domain are at rest, or as in `walls`, and those of
 * a no-slip surface move with it. FLIP's change is then the difference from the particles' own velocity. Its
 * extrapolation from the liquid would drive particles beside a moving wall again and again. */
static void close_faces(const sk_step *step, int block, int d, const wall_faces *walls)
{
    const sk_solids *solids = &step->solids;
    const size_t base = (size_t)block * SK_BLOCK_CELLS, slot = (size_t)solids->block_slot[block];
    if (!slot)
        return;
    float *velocity = step->grid.fields[SK_FIELD_VELOCITY_X + d] + base;
    const float *before = step->grid.fields[SK_FIELD_CHANGE_X + d] + base;
    const float *fraction = solids->fraction[d] + slot * SK_BLOCK_CELLS;
    const float *moving = slot >= solids->static_count ? solids->velocity[d] + slot * SK_BLOCK_CELLS : NULL;
    const uint8_t *no_slip = solids->no_slip + slot * SK_BLOCK_CELLS;
    for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
        const f8 part = f8_load(fraction + c);
        const i8 open = (part > 0.0f) | sk_are_slivers(part);
        if (!i8_any(~open))
            continue;
        const f8 own = f8_load(before + c), solid = moving ? f8_load(moving + c) : f8_splat(0.0f);
        const i8 sticks = (i8_from_bytes(no_slip + c) != 0) & (own == own);
        const f8 closed = f8_select(sticks, solid, f8_splat(__builtin_nanf("")));
        f8_store(velocity + c, f8_select(open, f8_load(velocity + c), closed));
    }
    for (int side = 0; side < 2; side++) {
        const int wall = wall_index(step, block, d, side);
        for (int n = 0; wall >= 0 && n < SK_BLOCK_CELLS / SK_BLOCK_N; n++) {
            const int c = cell_of_plane(d, wall, n);
            const float leaving = walls->faces[side][n].velocity;
            if (before[c] == before[c] && (velocity[c] != velocity[c] || fraction[c] == 0.0f))
                velocity[c] = leaving == leaving ? leaving : 0.0f;
        }
    }
}

/* The faces across axis d of a block that are vents: their velocities in the closed part, NaN elsewhere. Returns
 * whether there are any. */
static int find_vents(const sk_step *step, int block, int d, float vented[SK_BLOCK_CELLS])
{
    const float *velocity = step->grid.fields[SK_FIELD_VELOCITY_X + d] + (size_t)block * SK_BLOCK_CELLS;
    int found = 0;
    if (!block_has_vented_faces(step, block))
        return 0;
    SK_PLAIN_EACH_CELL(cell, block)
    {
        const int c = cell.local;
        vented[c] = __builtin_nanf("");
        found |= velocity_of_vent(step, cell, d, velocity[c], &vented[c]);
    }
    return found;
}

/* Gives the vents among the faces across axis d of a block their velocity, where the open parts have theirs. */
static void open_vents(const sk_step *step, int block, int d, const float *vented)
{
    float *velocity = step->grid.fields[SK_FIELD_VELOCITY_X + d] + (size_t)block * SK_BLOCK_CELLS;
    SK_PLAIN_EACH_CELL(cell, block)
    {
        const int c = cell.local;
        if (vented[c] == vented[c])
            velocity[c] = velocity_beside_vent(open_fraction_at(step, cell, d), velocity[c], vented[c]);
    }
}

/* The changes of a block's faces across axis d, and the velocity at the end of a reflected step. Returns the number of
 * known faces. */
static int finish_faces(const sk_step *step, int block, int d, const wall_faces *walls)
{
    const sk_grid *grid = &step->grid;
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    const float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d] + base;
    float *change = grid->fields[SK_FIELD_CHANGE_X + d] + base, *end = grid->fields[step->end_velocity + d] + base;
    const float gain = flip_gravity_gain(step, d), rho = (float)step->reflection, most = flip_most_reflected(step);
    const int reflects = flip_reflects(step);
    int known = 0;
    if (step->before_walls && !step->solids.plain[step->solids.block_slot[block]])
        memcpy(grid->fields[step->before_walls + d] + base, change, SK_BLOCK_CELLS * sizeof *change);
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        change[c] = sk_net_change(velocity[c], change[c], gain);
        known += velocity[c] == velocity[c];
    }

    /* Closed walls of the domain do not reflect: they would push the liquid off. */
    float at_walls[2][SK_BLOCK_CELLS / SK_BLOCK_N];
    for (int side = 0; side < 2; side++) {
        const int wall = wall_index(step, block, d, side);
        for (int n = 0; wall >= 0 && n < SK_BLOCK_CELLS / SK_BLOCK_N; n++)
            at_walls[side][n] = change[cell_of_plane(d, wall, n)];
    }
    for (int c = 0; reflects && c < SK_BLOCK_CELLS; c++) {
        const float more = rho * sk_reflected_change(change[c], gain, most);
        end[c] = velocity[c] + more;
        change[c] += more;
    }
    for (int side = 0; side < 2; side++) {
        const int wall = wall_index(step, block, d, side);
        for (int n = 0; wall >= 0 && n < SK_BLOCK_CELLS / SK_BLOCK_N; n++) {
            const int c = cell_of_plane(d, wall, n);
            const sk_face_after *face = &walls->faces[side][n];
            const int leaves = face->velocity == face->velocity;
            change[c] = leaves ? face->change : at_walls[side][n];
            if (reflects)
                end[c] = leaves ? face->end : velocity[c];
        }
    }
    return known;
}

/* A block without liquid: particles fly, faces behind solids are unknown. */
static void pass_block(const sk_step *step, int block)
{
    const sk_grid *grid = &step->grid;
    int known = 0;
    wall_faces walls;
    for (int d = 0; d < SELKIE_DIM; d++) {
        leave_walls(step, block, d, &walls);
        close_faces(step, block, d, &walls);
        known += finish_faces(step, block, d, &walls);
    }
    set_flags(grid, block, (known ? SK_BLOCK_KNOWN : 0) | (known < SELKIE_DIM * SK_BLOCK_CELLS ? SK_BLOCK_UNKNOWN : 0));
}

/* Velocities after the solve, the change for FLIP, and the unknown faces: those without particles or behind solids. The
 * extrapolation fills them. */
static void project_block(const sk_step *step, int block, liquid_view *view, float *potential)
{
    const sk_grid *grid = &step->grid;
    size_t base = (size_t)block * SK_BLOCK_CELLS;

    /* Other threads write block flags at the same time, but never this bit. */
    int liquid_near = grid->block_flags[block] & SK_BLOCK_LIQUID;
    for (int d = 0; d < SELKIE_DIM; d++)
        liquid_near |=
            __atomic_load_n(&grid->block_flags[grid->faces[block][2 * d]], __ATOMIC_RELAXED) & SK_BLOCK_LIQUID;
    if (!liquid_near) {
        pass_block(step, block);
        return;
    }

    const uint64_t runs = grid->runs[SK_RUNS_NEAR][block];
    const sk_tile_rows rows = sk_tile_rows_around(runs);
    load_liquid_cells(step, block, &rows, view);
    sk_tile_load_rows(grid, grid->fields[SK_FIELD_POTENTIAL], block, &rows, potential);

    const int keeps = all_slivers_keep(step);
    int known = 0, unknown = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d] + base;
        const int up = node_step[d];
        const float *fraction = step->solids.fraction[d] + (size_t)step->solids.block_slot[block] * SK_BLOCK_CELLS;
        const float *lightness = step->relative_density ? grid->fields[SK_FIELD_LIGHTNESS_X + d] + base : NULL;

        float vented[SK_BLOCK_CELLS];
        const int vents = find_vents(step, block, d, vented);

        /* Subtract the gradient beside liquid. Slivers take theirs with the shore (shore_dim.c). */
        SK_EACH_RUN(c, runs)
        {
            int n = node_of(c);
            f8 above = f8_load(view->liquid + n), below = f8_load(view->liquid + n - up), u = f8_load(velocity + c);
            f8 descent = liquid_descent(view, potential, n, up);
            if (lightness)
                descent *= f8_load(lightness + c);
            f8 projected = f8_select(u == u, u, f8_splat(0.0f)) + descent;
            const i8 beside = above + below > 0.0f, sliver = sk_are_slivers(f8_load(fraction + c));
            if (i8_any(sliver)) /* unknown, unless it keeps its velocity */
                projected = f8_select(sliver, keeps ? u : f8_splat(__builtin_nanf("")), projected);
            f8_store(velocity + c, f8_select(beside, projected, u));
        }

        wall_faces walls;
        leave_walls(step, block, d, &walls);
        close_faces(step, block, d, &walls);
        if (vents)
            open_vents(step, block, d, vented);

        const int known_faces = finish_faces(step, block, d, &walls);
        known += known_faces;
        unknown += SK_BLOCK_CELLS - known_faces;
    }

    set_flags(grid, block,
              (grid->block_flags[block] & SK_BLOCK_LIQUID) | (known ? SK_BLOCK_KNOWN : 0) |
                  (unknown ? SK_BLOCK_UNKNOWN : 0));
}

/* The largest coefficient of a face. */
static double largest_face(const sk_step *step)
{
    double largest = fmax(1.0, step->most_lightness);
    for (int m = 0; step->relative_density && m < SK_TRANSFER_MATERIALS; m++)
        largest = fmax(largest, 1.0 / step->relative_density[m]);
    return largest;
}

selkie_code SK_DIM(sk_flip_solve_pressure)(sk_step *step, selkie_error *error)
{
    const selkie_pressure_def *def = &step->scene->pressure;
    /* The maximum norm is given as a volume change per step; the right side is a flux in m/s. */
    double unit = def->norm == SELKIE_NORM_MAX ? step->grid.cell_size / step->dt : 1.0;
    SK_TRY(solve_liquid_system(step, def->tolerance * unit, def->norm, largest_face(step), step->modes, &step->pressure,
                               error));
    step->pressure.residual /= unit;
    return sk_flip_judge_pressure(step, error);
}

/* The matrix, the right side, and the density errors at the start of the step. */
selkie_code SK_DIM(sk_flip_build_pressure)(sk_step *step, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    density_errors *errors;
    SK_TRY(sk_step_scratch(step, (size_t)grid->block_count * sizeof *errors, "pressure", (void **)&errors, error));
    sk_deal deal;
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    build_block(step, b, &errors[b]);
    if (!step->balanced)
        report_density_errors(step, errors);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_flip_pressure)(sk_step *step, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    if (sk_step_has_pressure(step)) {
        step->balanced &= sk_flip_keeps_system(step);
        SK_TRY(SK_DIM(sk_flip_build_pressure)(step, error));
        step->has_expansion = 0;
        SK_TRY(SK_DIM(sk_flip_solve_pressure)(step, error));
        step->balanced = 0;
    } else {
        memset(grid->fields[SK_FIELD_POTENTIAL], 0, (size_t)grid->block_count * SK_BLOCK_CELLS * sizeof(float));
        memset(&step->pressure, 0, sizeof step->pressure);
    }
    sk_deal deal;
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    {
        liquid_view view;
        float potential[SK_TILE_VALUES(1)];
        SK_EACH_DEALT(b, &deal)
        project_block(step, b, &view, potential);
    }
    return sk_step_has_pressure(step) ? SK_DIM(sk_flip_vent)(step, error) : SELKIE_OK;
}
