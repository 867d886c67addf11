#include "methods/uic/uic_system.h"
#include "grid/deal.h"

#include <math.h>

/* Cells with almost no room in an obstacle but with some room at their faces. They take part if liquid is beside them.
 * As air they would absorb any pressure through those faces; as unknowns they take only the mass that fits. */
static void mark_in_obstacles(const uic_rooms *rooms, const float *mass, float threshold, float *diagonal)
{
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        int node = node_of(c), near = 0;
        if (rooms->cell[node] >= UIC_LEAST_ROOM)
            continue;
        float open = 0.0f;
        for (int d = 0; d < SELKIE_DIM; d++)
            open += rooms->face[d][node] + rooms->face[d][node + node_step[d]];
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

/* A block's rows. Faces are those of the rooms: the solver ignores faces between an unknown and other cells. */
void SK_DIM(sk_uic_build)(const sk_step *step, int block, const uic_problem *problem)
{
    const sk_grid *grid = &step->grid;
    size_t base = (size_t)block * SK_BLOCK_CELLS;
    float *diagonal = grid->fields[SK_FIELD_DIAGONAL] + base, *right = grid->fields[SK_FIELD_RIGHT_SIDE] + base;
    /* A cell without any mass is air, even where the threshold is 0. */
    const float threshold = fmaxf((float)step->scene->unilateral.air_threshold, 1e-6f);

    uic_rooms rooms;
    float target[SK_TILE_VALUES(1)], mass[SK_TILE_VALUES(1)];
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
    for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
        int n = node_of(c);
        f8 room = f8_load(rooms.cell + n), open = f8_splat(0.0f);
        for (int d = 0; d < SELKIE_DIM; d++) {
            f8 face = f8_load(rooms.face[d] + n);
            f8_store(grid->fields[SK_FIELD_FACE_X + d] + base + c, face);
            open += face + f8_load(rooms.face[d] + n + node_step[d]);
        }
        i8 part = (room >= UIC_LEAST_ROOM) & (f8_load(mass + n) >= threshold * room);
        f8_store(diagonal + c, f8_select(part, open, f8_splat(0.0f)));
    }
    if (rooms.has_obstacle)
        mark_in_obstacles(&rooms, mass, threshold, diagonal);
    /* Cells behind the domain's walls count in the cells before them. */
    for (int c = 0; rooms.walls.any && c < SK_BLOCK_CELLS; c++)
        diagonal[c] = behind_walls(&rooms.walls, c) ? 0.0f : diagonal[c];

    /* The right side: the density above the room. */
    f8 largest = f8_splat(0.0f);
    for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
        int n = node_of(c);
        f8 kept = f8_load(target + n) - f8_load(rooms.cell + n) - UIC_SLACK;
        kept = f8_select(f8_load(diagonal + c) > 0.0f, kept, f8_splat(0.0f));
        f8_store(right + c, kept);
        largest = f8_max(largest, kept);
    }

    float excess = 0.0f;
    for (int l = 0; l < 8; l++)
        excess = largest[l] > excess ? largest[l] : excess;
    problem->blocks[block].excess = excess;
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
                .faces = (const int32_t(*)[6])grid->faces,
                .face = {grid->fields[SK_FIELD_FACE_X], grid->fields[SK_FIELD_FACE_Y], grid->fields[SK_FIELD_FACE_Z]},
                .diagonal = grid->fields[SK_FIELD_DIAGONAL],
                .right_side = grid->fields[SK_FIELD_RIGHT_SIDE],
                .solution = grid->fields[SK_FIELD_POTENTIAL],
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
