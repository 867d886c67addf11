#include "methods/uic/uic_system.h"
#include "grid/deal.h"
#include "methods/uic/uic.h"

#include <math.h>

/* Coefficients of the faces of a block and of its upper halo. */
typedef struct uic_faces {
    float coefficient[SELKIE_DIM][SK_TILE_VALUES(1)];
} uic_faces;

/* Cells with almost no room in an obstacle but with some room at their faces. They take part if liquid is beside them.
 * As air they would absorb any pressure through those faces; as unknowns they take only the mass that fits. */
static void mark_in_obstacles(const uic_rooms *rooms, const uic_faces *faces, const float *mass, float threshold,
                              float *diagonal)
{
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        int node = node_of(c), near = 0;
        if (rooms->cell[node] >= UIC_LEAST_ROOM)
            continue;
        float open = 0.0f;
        for (int d = 0; d < SELKIE_DIM; d++)
            open += faces->coefficient[d][node] + faces->coefficient[d][node + node_step[d]];
        for (int n = 0; open > 0.0f && !near && n < SK_NEIGHBOURS; n++) {
            int other = node + (n % 3 - 1) + (n / 3 % 3 - 1) * N1 + (SELKIE_DIM == 3 ? (n / 9 - 1) * N1 * N1 : 0);
            near = rooms->cell[other] >= UIC_LEAST_ROOM && mass[other] >= threshold * rooms->cell[other];
        }
        diagonal[c] = near ? open : 0.0f;
    }
}

static void leave_out(const sk_step *step, int block, const uic_problem *problem)
{
    problem->blocks[block].excess = 0.0f;
    memset(step->grid.fields[SK_FIELD_DIAGONAL] + (size_t)block * SK_BLOCK_CELLS, 0, SK_BLOCK_CELLS * sizeof(float));
}

static int has_any(const float *values)
{
    f8 most = f8_splat(0.0f);
    for (int c = 0; c < SK_BLOCK_CELLS; c += 8)
        most = f8_max(most, f8_load(values + c));
    return i8_any(most > 0.0f);
}

/* Coefficients of the faces; `spare` covers the block with a halo of one cell. */
static void weigh_faces(const sk_step *step, int block, const uic_rooms *rooms, const float *spare, uic_faces *faces)
{
    const sk_grid *grid = &step->grid;
    float density[SK_TILE_VALUES(1)], lightness[SK_TILE_VALUES(1)], at_surface[SK_TILE_VALUES(1)];
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int up = node_step[d], last = SK_TILE_VALUES(1) - 8;
        sk_tile_load(grid, grid->fields[SK_FIELD_FACE_DENSITY_X + d], block, 1, density);
        sk_tile_load(grid, sk_uic_surface_mass_of(step, d), block, 1, at_surface);
        if (step->relative_density)
            sk_tile_load(grid, grid->fields[SK_FIELD_LIGHTNESS_X + d], block, 1, lightness);
        fold_at_walls(&rooms->walls, d, density);
        for (int begin = up; begin < SK_TILE_VALUES(1); begin += 8) {
            const int n = begin < last ? begin : last;
            f8 room = f8_load(rooms->face[d] + n), mass = uic_real_mass(room, f8_load(density + n));
            i8 full = (f8_load(spare + n) >= 0.0f) & (f8_load(spare + n - up) >= 0.0f);
            f8 flow = room * room / uic_solved_mass(room, mass, full, f8_load(at_surface + n));
            f8_store(faces->coefficient[d] + n, step->relative_density ? flow * f8_load(lightness + n) : flow);
        }
    }
}

/* sk_uic_slope for eight cells: velocity along one axis (`up`), slope along another (`across`). */
SK_VECTOR f8 slope(const float *velocity, int n, int up, int across)
{
    f8 sum = f8_splat(0.0f), count = f8_splat(0.0f);
    for (int face = 0; face < 2; face++) {
        const int at = n + face * up;
        f8 own = f8_load(velocity + at), below = own - f8_load(velocity + at - across),
           above = f8_load(velocity + at + across) - own;
        sum += f8_select(below == below, below, f8_splat(0.0f)) + f8_select(above == above, above, f8_splat(0.0f));
        count += f8_select(below == below, f8_splat(1.0f), f8_splat(0.0f)) +
                 f8_select(above == above, f8_splat(1.0f), f8_splat(0.0f));
    }
    return sum / f8_max(count, f8_splat(1.0f));
}

/* sk_uic_inflow for eight cells, along one axis. `solid` is NULL if no solid moves. */
SK_VECTOR f8 inflow(const float *velocity, const float *rooms, const float *solid, int n, int up)
{
    f8 low = f8_load(velocity + n), high = f8_load(velocity + n + up), none = f8_splat(0.0f);
    low = f8_select(low == low, low, f8_select(high == high, high, none));
    high = f8_select(high == high, high, low);
    f8 low_room = f8_load(rooms + n), high_room = f8_load(rooms + n + up), sum = low_room * low - high_room * high;
    if (solid)
        sum += (1.0f - low_room) * f8_load(solid + n) - (1.0f - high_room) * f8_load(solid + n + up);
    return sum;
}

/* The largest speed of the faces of eight cells. */
SK_VECTOR f8 speed_of_cells(const float velocity[SELKIE_DIM][SK_TILE_VALUES(1)], int n)
{
    f8 speed = f8_splat(0.0f);
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int side = 0; side < 2; side++) {
            f8 face = f8_load(velocity[d] + n + side * node_step[d]), fast = f8_max(face, -face);
            speed = f8_select(fast > speed, fast, speed); /* an unknown velocity (NaN) does not count */
        }
    return speed;
}

/* The right side of full cells: the volume that flows in. Other cells must be too dense by more than the noise. */
static void bound_flow(const sk_step *step, int block, const uic_rooms *rooms, const float *spare, float *right)
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    const float scale = (float)(step->dt / grid->cell_size);
    const float calm = sk_uic_calm_speed(step->scene->gravity, grid->cell_size);
    const int moving = rooms->has_obstacle && solids->moving_count;
    float velocity[SELKIE_DIM][SK_TILE_VALUES(1)], solid[SELKIE_DIM][SK_TILE_VALUES(1)];
    for (int d = 0; d < SELKIE_DIM; d++) {
        sk_tile_load(grid, grid->fields[SK_FIELD_VELOCITY_X + d], block, 1, velocity[d]);
        if (moving)
            sk_tile_load_mapped(grid, solids->block_slot, solids->velocity[d], block, 1, solid[d]);
    }

    for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
        const int n = node_of(c);
        f8 room_left = f8_load(spare + n), dense = f8_load(right + c);
        f8 gained = f8_splat(0.0f), turning = f8_splat(0.0f), widest = f8_splat(0.0f);
        for (int d = 0; d < SELKIE_DIM; d++) {
            widest = f8_max(widest, f8_max(f8_load(rooms->face[d] + n), f8_load(rooms->face[d] + n + node_step[d])));
            gained += inflow(velocity[d], rooms->face[d], moving ? solid[d] : NULL, n, node_step[d]);
            for (int e = 0; e < d; e++) {
                f8 turn = slope(velocity[d], n, node_step[d], node_step[e]) -
                          slope(velocity[e], n, node_step[e], node_step[d]);
                turning += f8_max(turn, -turn);
            }
        }
        f8 allowance = f8_splat(1.0f);
        if (calm > 0.0f) /* sk_uic_allowance */
            allowance = f8_max(
                f8_min(speed_of_cells((const float(*)[SK_TILE_VALUES(1)])velocity, n) / calm - 1.0f, f8_splat(1.0f)),
                f8_splat(0.0f));
        f8 allowed = UIC_CENTRE_OFFSET * widest * turning * allowance;
        f8 settled = UIC_SETTLED * f8_max(f8_load(rooms->cell + n), f8_splat(UIC_LEAST_ROOM)); /* sk_uic_flow_slack */
        f8 share = f8_max(f8_min(dense / settled, f8_splat(1.0f)), f8_splat(0.0f));
        f8 slack = UIC_FLOW_SLACK * (1.0f - (1.0f - UIC_SETTLED_SLACK) * share * (1.0f - allowance));
        f8 flow = scale * (gained - allowed) - room_left - slack;
        f8_store(right + c, f8_select(room_left >= 0.0f, flow, dense - UIC_ARRIVING_SLACK));
    }
}

/* Surface tension: the pressure outside the full cells drives a flow through the faces at their border. */
static void add_capillary(const sk_step *step, int block, const uic_faces *faces, float *right)
{
    const float scale = (float)(step->dt / step->grid.cell_size);
    uic_capillary capillary;
    if (!uic_load_capillary(step, block, &capillary))
        return;
    for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
        const int n = node_of(c);
        f8 sum = f8_load(right + c);
        for (int d = 0; d < SELKIE_DIM; d++) {
            const int up = node_step[d];
            sum += scale * f8_load(faces->coefficient[d] + n) * uic_capillary_push(&capillary, n, up);
            sum -= scale * f8_load(faces->coefficient[d] + n + up) * uic_capillary_push(&capillary, n + up, up);
        }
        f8_store(right + c, sum);
    }
}

/* The faces' coefficients: their rooms, unless rows of full cells bound the flow. Loads the tile `spare`. */
static void find_faces(const sk_step *step, int block, const uic_problem *problem, const uic_rooms *rooms,
                       uic_faces *faces, float *spare)
{
    if (!problem->spare) {
        memcpy(faces->coefficient, rooms->face, sizeof rooms->face);
        return;
    }
    sk_tile_load(&step->grid, problem->spare, block, 1, spare);
    weigh_faces(step, block, rooms, spare, faces);
}

/* sk_uic_removed_excess for the cells of a block. Cells in obstacles count as filled. */
static void keep_excess(const sk_step *step, int block, const uic_rooms *rooms, const float *target, float *right)
{
    const float calm = sk_uic_calm_speed(step->scene->gravity, step->grid.cell_size);
    float fill[SK_TILE_VALUES(1)], velocity[SELKIE_DIM][SK_TILE_VALUES(1)];
    const int has_solids = step->solids.obstacle_count + step->scene->body_count > 0;
    const float at_surface = has_solids ? UIC_KEPT_INSIDE : UIC_KEPT_EXCESS,
                inside = has_solids ? UIC_KEPT_INSIDE : 0.0f;
    if (!(calm > 0.0f))
        return;
    for (int d = 0; d < SELKIE_DIM; d++)
        sk_tile_load(&step->grid, step->grid.fields[SK_FIELD_VELOCITY_X + d], block, 1, velocity[d]);
    for (int n = 0; n < SK_TILE_VALUES(1); n++)
        fill[n] = rooms->cell[n] >= UIC_LEAST_ROOM ? target[n] / rooms->cell[n] : 1.0f;
    for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
        f8 emptiest = f8_splat(1.0f), excess = f8_load(right + c);
        f8 speed = speed_of_cells((const float(*)[SK_TILE_VALUES(1)])velocity, node_of(c));
#pragma GCC unroll 27
        for (int n = 0; n < SK_NEIGHBOURS; n++)
            emptiest = f8_min(emptiest, f8_load(fill + node_of(c) + (n % 3 - 1) + (n / 3 % 3 - 1) * N1 +
                                                (SELKIE_DIM == 3 ? (n / 9 - 1) * N1 * N1 : 0)));
        f8 most = f8_select(emptiest < UIC_SURFACE_FILL, f8_splat(at_surface), f8_splat(inside));
        f8 beyond = 2.0f * (excess - most * f8_max(1.0f - speed / calm, f8_splat(0.0f)));
        f8_store(right + c, f8_select(excess > 0.0f, f8_min(beyond, excess), excess));
    }
}

/* The right side: the density above the room, or the flow. Returns the largest. */
static float find_excess(const sk_step *step, int block, const uic_problem *problem, const uic_rooms *rooms,
                         const uic_faces *faces, const float *target, const float *spare)
{
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    const float *diagonal = step->grid.fields[SK_FIELD_DIAGONAL] + base;
    float *right = step->grid.fields[SK_FIELD_RIGHT_SIDE] + base, excess = 0.0f;
    for (int c = 0; c < SK_BLOCK_CELLS; c += 8)
        f8_store(right + c, f8_load(target + node_of(c)) - f8_load(rooms->cell + node_of(c)) - UIC_SLACK);
    if (problem->keeps_excess)
        keep_excess(step, block, rooms, target, right);
    if (spare)
        bound_flow(step, block, rooms, spare, right);
    if (problem->has_tension)
        add_capillary(step, block, faces, right);
    f8 largest = f8_splat(0.0f);
    for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
        f8 kept = f8_select(f8_load(diagonal + c) > 0.0f, f8_load(right + c), f8_splat(0.0f));
        f8_store(right + c, kept);
        largest = f8_max(largest, kept);
    }
    for (int l = 0; l < 8; l++)
        excess = largest[l] > excess ? largest[l] : excess;
    return excess;
}

/* A block's rows. Faces are those of the rooms: the solver ignores faces between an unknown and other cells. */
void SK_DIM(sk_uic_build)(const sk_step *step, int block, const uic_problem *problem)
{
    const sk_grid *grid = &step->grid;
    size_t base = (size_t)block * SK_BLOCK_CELLS;
    float *diagonal = grid->fields[SK_FIELD_DIAGONAL] + base;
    /* A cell without any mass is air, even where the threshold is 0. */
    const float threshold = fmaxf((float)step->scene->unilateral.air_threshold, 1e-6f);

    uic_rooms rooms;
    uic_faces faces;
    float target[SK_TILE_VALUES(1)], mass[SK_TILE_VALUES(1)], spare[SK_TILE_VALUES(1)];
    uic_load_rooms(step, block, &rooms);
    if (!rooms.has_obstacle && !rooms.walls.any && !has_any(problem->target + base) &&
        !(problem->presence && has_any(problem->presence + base))) {
        leave_out(step, block, problem);
        return;
    }

    /* Density and mass, folded at the walls. */
    sk_tile_load(grid, problem->target, block, 1, target);
    if (problem->presence) {
        sk_tile_load(grid, problem->presence, block, 1, mass);
        for (int n = 0; n < SK_TILE_VALUES(1); n++)
            mass[n] = mass[n] > target[n] ? mass[n] : target[n];
    } else {
        memcpy(mass, target, sizeof mass);
    }
    fold_at_walls(&rooms.walls, -1, target);
    fold_at_walls(&rooms.walls, -1, mass);

    /* Faces and diagonal. */
    find_faces(step, block, problem, &rooms, &faces, spare);
    for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
        int n = node_of(c);
        f8 room = f8_load(rooms.cell + n), open = f8_splat(0.0f);
        for (int d = 0; d < SELKIE_DIM; d++) {
            f8 face = f8_load(faces.coefficient[d] + n);
            f8_store(grid->fields[SK_FIELD_FACE_X + d] + base + c, face);
            open += face + f8_load(faces.coefficient[d] + n + node_step[d]);
        }
        i8 part = (room >= UIC_LEAST_ROOM) & (f8_load(mass + n) >= threshold * room);
        f8_store(diagonal + c, f8_select(part, open, f8_splat(0.0f)));
    }
    if (rooms.has_obstacle)
        mark_in_obstacles(&rooms, &faces, mass, threshold, diagonal);
    /* Cells behind the domain's walls count in the cells before them. */
    for (int c = 0; rooms.walls.any && c < SK_BLOCK_CELLS; c++)
        diagonal[c] = behind_walls(&rooms.walls, c) ? 0.0f : diagonal[c];

    problem->blocks[block].excess =
        find_excess(step, block, problem, &rooms, &faces, target, problem->spare ? spare : NULL);
}

static selkie_code solve(sk_step *step, const uic_problem *problem, sk_bounded_report *report, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    const selkie_unilateral_def *def = &step->scene->unilateral;
    sk_bounded_system system = {
        .poisson =
            {
                .block_count = grid->block_count,
                .coordinates = (const int32_t(*)[4])grid->coordinates,
                .joined = {sk_grid_joined(grid, 0), sk_grid_joined(grid, 1), sk_grid_joined(grid, 2)},
                .faces = (const int32_t(*)[6])grid->faces,
                .face = {grid->fields[SK_FIELD_FACE_X], grid->fields[SK_FIELD_FACE_Y], grid->fields[SK_FIELD_FACE_Z]},
                .diagonal = grid->fields[SK_FIELD_DIAGONAL],
                .right_side = grid->fields[SK_FIELD_RIGHT_SIDE],
                .solution = grid->fields[SK_FIELD_POTENTIAL],
                .modes = problem->modes,
            },
        .lower = problem->lower,
    };
    sk_bounded_options options = {
        .method = def->solver == SELKIE_UNILATERAL_MPRGP ? SK_BOUNDED_MPRGP : SK_BOUNDED_ACTIVE_SET,
        .tolerance = problem->tolerance,
        .norm = SELKIE_NORM_RELATIVE,
        .max_iterations = def->max_iterations,
        .threads = step->threads,
        .forget = problem->is_first,
        .backend = step->backend,
    };

    /* Solve; a problem that did not converge ends the run. */
    SK_TRY(SK_DIM(sk_bounded_solve)(step->bounded, &system, &options, report, error));
    if (!report->converged)
        return sk_fail(
            error, SELKIE_ERROR_DIVERGED,
            "step %lld at %g s: the complementarity problem of the %s stopped at an error of %.3g after %d iterations "
            "(asked: unilateral.tolerance %g, unilateral.max_iterations %d); raise one of the two",
            (long long)step->step_count + 1, step->time, problem->name, report->residual, report->iterations,
            def->tolerance, def->max_iterations);
    return SELKIE_OK;
}

/* Bodies take room from cells as they move. Rows of full cells contain that in their flow; the others bound a density
 * with the room that the bodies leave before they move. */
static void move_bodies(const sk_step *step, const uic_problem *problem)
{
    const sk_poisson_modes *modes = problem->modes;
    const double scale = step->dt / step->grid.cell_size;
    for (size_t e = 0; modes && modes->velocity && e < modes->entry_count; e++) {
        const sk_poisson_mode_entry *entry = &modes->entries[e];
        const size_t cell = (size_t)entry->cell;
        float *right = &step->grid.fields[SK_FIELD_RIGHT_SIDE][cell];
        double out = 0.0;
        if (!(step->grid.fields[SK_FIELD_DIAGONAL][cell] > 0.0f) || (problem->spare && problem->spare[cell] >= 0.0f))
            continue;
        for (int k = 0; k < modes->rank; k++)
            out += (double)entry->flux[k] * modes->velocity[entry->body][k];
        *right -= (float)(scale * out);
        uic_block *block = &problem->blocks[cell / SK_BLOCK_CELLS];
        block->excess = *right > block->excess ? *right : block->excess;
    }
}

selkie_code SK_DIM(sk_uic_solve)(sk_step *step, const uic_problem *problem, sk_bounded_report *report, double *excess,
                                 selkie_error *error)
{
    sk_grid *grid = &step->grid;
    uic_block *blocks = problem->blocks;
    sk_deal deal;
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    if (!problem->partly || blocks[b].wanted)
        problem->build(step, b, problem);
    else
        leave_out(step, b, problem);
    move_bodies(step, problem);
    float largest = 0.0f;
    for (int b = 1; b < grid->block_count; b++)
        largest = blocks[b].excess > largest ? blocks[b].excess : largest;
    *excess = largest;
    memset(report, 0, sizeof *report);
    report->converged = 1;
    /* A negative bound may be active even without any excess. */
    if (!((double)largest > problem->least_excess) && !problem->lower) {
        memset(grid->fields[SK_FIELD_POTENTIAL], 0, (size_t)grid->block_count * SK_BLOCK_CELLS * sizeof(float));
        return SELKIE_OK;
    }
    return solve(step, problem, report, error);
}
