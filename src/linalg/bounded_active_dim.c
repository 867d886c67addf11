/* An active set over the multigrid of the Poisson solver.
 *
 * One outer step, with x never below its bounds:
 *
 *   r = f - A x, in double
 *   a cell is free if x > lower or r > 0; the others are held
 *   z = one multigrid cycle for r over the free cells, held ones at zero
 *   z is scaled to the best length without bounds, then clipped at the bounds
 *   two visits of two projected red-black sweeps a block of A z = r over all cells; between visits cells are
 *   held and released
 *   x += z
 *
 * That is a projected Newton step with an approximate linear solve, as in truncated
 * nonsmooth Newton multigrid (Graeser and Kornhuber 2009), with the smoother last.
 * Held cells keep their coefficients: the correction is zero there, so they act as
 * a Dirichlet boundary. An inverse diagonal of zero keeps the correction zero.
 * Coarser levels depend on the held cells: blocks that changed since the last step
 * are coarsened again.
 *
 * A cold solve starts from the solutions of coarser problems (nested iteration).
 * Their right sides are sums of finer ones. The same steps solve them from the
 * coarsest level up, and each solution is interpolated. The free set is then nearly
 * right on the finest level, and the number of steps does not grow with the size.
 *
 * x is a pair of floats, high + low, as in the Poisson solver; steps and residuals
 * are computed as differences to it. On a bound x equals it to the bit, which defines the free set.
 */
#include "linalg/bounded_solver.h"

#include <math.h>
#include <omp.h>
#include "base/timer.h"

enum { blocks_per_thread = SELKIE_DIM == 3 ? 96 : 192 };

/* Coarser problems need only a rough solution. */
enum { nested_steps = 1 };
static const double nested_tolerance = 1e-2;

/* Visits of projected sweeps: after interpolation, and in a step. */
enum { start_visits = 4, step_visits = 2 };

/* Levels with more blocks than this measure the step length in every fourth block. */
enum { sampled_from = 64, sampled_every = 4 };

/* Lower limit of relative residuals in single precision, with a margin. */
static const double quick_accuracy = 1e-5;

/* A cycle needs no longer step. A component that is closed on a coarser level may suggest one. */
static const double longest_step = 2;

typedef enum input { good_input, bad_right_side, bad_bounds } input;

/* The shared state of all threads of a solve, and the team of this thread. */
typedef struct work {
    sk_bounded_solver *solver;
    const sk_bounded_system *system;
    const sk_bounded_options *options;
    sk_bounded_report *report;
    sk_team team;
    float scale;       /* scaled right side = the caller's right side times this */
    double norm_start; /* of the natural residual at x = max(lower, 0) */
} work;

/* --- Sums --- */

static double sum_blocks(const sk_level *level, const double *partial)
{
    double sum = 0;
    for (int block = 1; block <= level->block_count; ++block)
        sum += partial[block];
    return sum;
}

static double largest_block(const sk_level *level, const double *partial)
{
    double largest = 0;
    for (int block = 1; block <= level->block_count; ++block)
        largest = partial[block] > largest || partial[block] != partial[block] ? partial[block] : largest;
    return largest;
}

/* --- The problem of one level --- */

/* Makes a level the root: the levels below coarsen its free cells. */
static void set_root(sk_bounded_solver *solver, int depth)
{
    sk_multigrid *part = &solver->part;
    for (int i = depth + 1; i < part->level_count; ++i)
        part->level[i] = solver->coarse[i];
    sk_bound_level *bound = &solver->bound[depth];
    sk_level *root = &part->level[depth];
    *root = solver->poisson->multigrid.level[depth];
    root->x = bound->z;
    root->b = bound->r;
    root->part = bound->part;
    root->part_inverse = bound->part_inverse;
    root->active = bound->active;
}

/* Residual and free cells. Returns the norm, and the residual that rounding x to one float may leave. */
static double judge(const work *w, int depth, sk_team team, selkie_residual_norm norm, int exactly, double *rounding)
{
    sk_bounded_solver *solver = w->solver;
    const sk_level *level = &solver->poisson->multigrid.level[depth];
    const sk_share share = SK_DIM(sk_level_share)(level, team);
    SK_EACH_OWN_BLOCK(block, share)
    solver->partial[0][block] =
        solver->operations->judge(level, &solver->bound[depth], block, norm, exactly, &solver->partial[1][block]);
    sk_team_wait(team);
    /* Rounding errors of about 2^-25 a cell, in a row with a diagonal of 2 x dimension and faces of 1. */
    *rounding = 4e-8 * sqrt((4.0 * SELKIE_DIM * SELKIE_DIM + 2.0 * SELKIE_DIM) * sum_blocks(level, solver->partial[1]));
    return norm == SELKIE_NORM_MAX ? largest_block(level, solver->partial[0])
                                   : sqrt(sum_blocks(level, solver->partial[0]));
}

/* The best step length along z without bounds, from every `every`-th block. */
static double length_of(const work *w, int depth, sk_team team, int every)
{
    const sk_level *root = &w->solver->part.level[depth];
    float product[SK_BLOCK_CELLS] __attribute__((aligned(64)));
    const sk_share share = SK_DIM(sk_level_share)(root, team);
    SK_EACH_OWN_BLOCK(block, share)
    {
        w->solver->partial[1][block] = 0;
        if (root->part[block] == SK_PART_NONE || block % every)
            continue;
        w->solver->part.operations->multiply(root, root->x, block, product);
        w->solver->partial[1][block] =
            w->solver->part.operations->dot(root->x + (size_t)block * SK_BLOCK_CELLS, product, root->active[block]);
    }
    sk_team_wait(team);
    double slope = 0, curvature = 0;
    for (int block = every; block <= root->block_count; block += every) {
        slope += w->solver->partial[2][block];
        curvature += w->solver->partial[1][block];
    }
    return slope > 0 && curvature > 0 ? slope / curvature : 0;
}

/* The best length of a cycle is close to 1. If a sample of the blocks gives another one, all blocks are measured. */
static float best_length(const work *w, int depth, sk_team team)
{
    int every = w->solver->part.level[depth].block_count > sampled_from ? sampled_every : 1;
    double length = length_of(w, depth, team, every);
    if (every > 1 && !(length > 0.8 && length < 1.3)) {
        sk_team_wait(team);
        length = length_of(w, depth, team, 1);
    }
    return (float)(length < longest_step ? length : longest_step);
}

static void correct(const work *w, int depth, sk_team team, float length)
{
    const sk_level *level = &w->solver->poisson->multigrid.level[depth];
    const sk_bound_level *bound = &w->solver->bound[depth];
    const sk_share share = SK_DIM(sk_level_share)(level, team);
    SK_EACH_OWN_BLOCK(block, share)
    w->solver->operations->clip(level, bound, block, length);
    sk_team_wait(team);
    for (int half = 0; half < 2 * step_visits; ++half) {
        for (int block = share.first[half & 1]; block < share.last[half & 1]; ++block)
            w->solver->operations->correct(level, bound, block, half >= 2 * (step_visits - 1));
        sk_team_wait(team);
    }
}

/* Closed components are balanced on the finest level alone. On others they only degrade the start. */
static void step(const work *w, int depth, sk_team team)
{
    sk_bounded_solver *solver = w->solver;
    sk_pockets *pockets = &solver->poisson->pockets;
    sk_bound_level *bound = &solver->bound[depth];
    if (depth == 0) {
        SK_DIM(sk_bounded_pockets_classify)(solver, team);
        SK_DIM(sk_pockets_balance)(pockets, team, bound->r);
    }
    float length = 0;
    for (int careful = 0; careful < 2 && !(length > 0); ++careful) {
        SK_DIM(sk_multigrid_cycle)(&solver->part, depth, team, careful, solver->partial[2]);
        if (depth == 0)
            SK_DIM(sk_pockets_balance)(pockets, team, bound->z);
        length = best_length(w, depth, team);
        /* One thread begins the cycle of a small level alone. All threads must have read the last cycle's result
         * first. */
        if (!(length > 0))
            sk_team_wait(team);
    }
    correct(w, depth, team, length);
    if (depth == 0)
        SK_DIM(sk_bounded_pockets_lower)(solver, team);
}

/* When to stop. Residuals are relative to `unit`, or to the first residual if it is 0. */
typedef struct goal {
    int max_steps;
    selkie_residual_norm norm;
    double tolerance, unit;
    int exactly; /* the last residual must be computed in double */
} goal;

static void write_down(const work *w, sk_bounded_report *report, int count, double residual, double tolerance)
{
    const uint8_t *changed = w->solver->bound[0].changed;
    int all = 0;
    for (int block = 1; block <= w->solver->poisson->multigrid.level[0].block_count; ++block)
        all |= changed[block];
    if (count > 0) {
        report->expansion_steps += (all & SK_CELLS_CAUGHT) != 0;
        report->proportioning_steps += (all & SK_CELLS_RELEASED) != 0;
    }
    report->iterations = report->free_steps = count;
    report->residual = residual;
    report->converged = residual <= tolerance;
    report->history_count = count < SK_POISSON_MAX_HISTORY ? count + 1 : SK_POISSON_MAX_HISTORY;
    report->history[report->history_count - 1] = residual;
}

/* Steps until the goal is met. Returns the residual. */
static double solve_level(const work *w, int depth, sk_team team, goal to, sk_bounded_report *report)
{
    sk_bounded_solver *solver = w->solver;
    sk_bound_level *bound = &solver->bound[depth];
    uint8_t *changed[SK_MAX_LEVELS];
    for (int i = 0; i < solver->part.level_count; ++i)
        changed[i] = solver->bound[i].changed;
    const sk_share share = SK_DIM(sk_level_share)(&solver->poisson->multigrid.level[depth], team);

    /* The levels below coarsen the free cells of this level. */
    if (team.thread == 0)
        set_root(solver, depth);
    sk_team_wait(team);

    /* Step until the goal. Residuals in single precision are enough until they come near it. */
    int exactly = to.exactly && to.tolerance < quick_accuracy;
    for (int count = 0;; ++count) {
        double rounding, residual = judge(w, depth, team, to.norm, exactly, &rounding);
        if (to.unit == 0)
            to.unit = residual > 0 ? residual : 1;
        residual /= to.unit;
        if (to.exactly && !exactly && (residual <= to.tolerance || count >= to.max_steps)) {
            sk_team_wait(team);
            residual = judge(w, depth, team, to.norm, 1, &rounding) / to.unit;
            exactly = 1; /* the goal is below the accuracy of quick residuals */
        }

        /* Report the residual and stop at the goal. */
        if (report && team.thread == 0)
            write_down(w, report, count, residual, to.tolerance);
        if (residual <= to.tolerance || count >= to.max_steps || !isfinite(residual))
            return residual;

        /* Coarsen again where the free cells changed, then step. Near the limit of one float, x becomes a pair. */
        SK_DIM(sk_multigrid_recoarsen)(&solver->part, depth, team, changed, solver->mark);
        SK_EACH_OWN_BLOCK(block, share)
        bound->changed[block] = 0;
        if (team.thread == 0)
            bound->paired |= to.exactly && (exactly || rounding / to.unit > 0.1 * to.tolerance);
        step(w, depth, team);
    }
}

/* --- Start and end --- */

/* Has a block a bound that is NaN or infinity? */
static int is_bad_bound(const float *lower)
{
    int bad = 0;
    for (int i = 0; i < SK_BLOCK_CELLS; ++i)
        bad |= !(lower[i] < INFINITY);
    return bad;
}

/* Reads the right side and the bounds, scaled by a power of two to a largest right side near 1. Returns what is wrong
 * with them. */
static input start_problem(work *w)
{
    sk_bounded_solver *solver = w->solver;
    sk_poisson_solver *poisson = solver->poisson;
    const sk_level *level = &poisson->multigrid.level[0];
    sk_bound_level *bound = &solver->bound[0];
    int overfull = 0;
    const sk_share share = SK_DIM(sk_level_share)(level, w->team);

    /* Read the right side and the largest value of each block. */
    SK_EACH_OWN_BLOCK(block, share)
    solver->partial[0][block] = (double)solver->poisson->operations->read_right_side(
        poisson, &w->system->poisson, block, 1.0f, bound->f + (size_t)block * SK_BLOCK_CELLS);
    sk_team_wait(w->team);

    /* Scale it by a power of two, which rounds nothing. */
    int exponent = 0;
    double largest = largest_block(level, solver->partial[0]);
    if (!isfinite(largest))
        return bad_right_side;
    frexp(largest, &exponent);
    exponent = exponent > 120 ? 120 : exponent < -120 ? -120 : exponent;
    w->scale = ldexpf(1.0f, -exponent);
    if (w->team.thread == 0)
        solver->scale = w->scale;
    SK_EACH_OWN_BLOCK(block, share)
    poisson->operations->scale(bound->f + (size_t)block * SK_BLOCK_CELLS, w->scale);

    /* Read the bounds in the same scale. */
    sk_poisson_system other = w->system->poisson;
    other.right_side = w->system->lower;
    SK_EACH_OWN_BLOCK(block, share)
    {
        float *lower = bound->lower ? bound->lower + (size_t)block * SK_BLOCK_CELLS : NULL;
        if (lower)
            solver->poisson->operations->read_right_side(poisson, &other, block, w->scale, lower);
        solver->partial[1][block] = lower && is_bad_bound(lower);
    }
    sk_team_wait(w->team);
    if (largest_block(level, solver->partial[1]) > 0)
        return bad_bounds;

    /* Subtract the mean from right sides without a solution. */
    SK_DIM(sk_bounded_pockets_start)(solver, w->team, &overfull);
    if (w->team.thread == 0)
        w->report->overfull_components = overfull;
    return good_input;
}

/* x = max(lower, start). The start is the caller's or 0. */
static void start_solution(work *w, int warm)
{
    sk_bounded_solver *solver = w->solver;
    const sk_level *level = &solver->poisson->multigrid.level[0];
    sk_bound_level *bound = &solver->bound[0];
    const sk_share share = SK_DIM(sk_level_share)(level, w->team);
    sk_poisson_system guess = w->system->poisson;
    guess.right_side = w->system->poisson.solution;
    SK_EACH_OWN_BLOCK(block, share)
    {
        size_t at = (size_t)block * SK_BLOCK_CELLS;
        if (warm)
            solver->poisson->operations->read_right_side(solver->poisson, &guess, block, w->scale, bound->high + at);
        solver->operations->start(bound, block);
    }
    sk_team_wait(w->team);
}

/* Norm of the natural residual at x = max(lower, 0). */
static double norm_at_start(work *w)
{
    sk_bounded_solver *solver = w->solver;
    const sk_level *level = &solver->poisson->multigrid.level[0];
    double rounding;
    if (solver->bound[0].lower) {
        start_solution(w, 0);
        return judge(w, 0, w->team, SELKIE_NORM_RELATIVE, 0, &rounding);
    }
    const sk_share share = SK_DIM(sk_level_share)(level, w->team);
    SK_EACH_OWN_BLOCK(block, share)
    solver->partial[2][block] = solver->operations->push(solver->bound[0].f + (size_t)block * SK_BLOCK_CELLS);
    sk_team_wait(w->team);
    return sqrt(sum_blocks(level, solver->partial[2]));
}

/* Interpolates the solution of the level below and smooths it by projected sweeps. */
static void interpolate(const work *w, int depth)
{
    static const float zeros[SK_BLOCK_CELLS] __attribute__((aligned(64)));
    const sk_level *fine = &w->solver->poisson->multigrid.level[depth];
    sk_bound_level *to = &w->solver->bound[depth];
    const sk_share share = SK_DIM(sk_level_share)(fine, w->team);
    SK_EACH_OWN_BLOCK(block, share)
    w->solver->operations->interpolate(fine, fine + 1, to + 1, to, block);
    sk_team_wait(w->team);
    for (int half = 0; half < 2 * start_visits; ++half) {
        for (int block = share.first[half & 1]; block < share.last[half & 1]; ++block) {
            size_t at = (size_t)block * SK_BLOCK_CELLS;
            w->solver->operations->project(fine, to->high, to->f + at, to->lower ? to->lower + at : zeros, block);
        }
        sk_team_wait(w->team);
    }
}

/* Solves the problems of the coarser levels, coarsest first. Each solution is the start of the next finer level. */
static void nested_start(work *w)
{
    sk_bounded_solver *solver = w->solver;
    const sk_level *level = solver->poisson->multigrid.level;
    int bottom = solver->poisson->multigrid.level_count - 1;
    for (int depth = 0; depth < bottom; ++depth) {
        const sk_share share = SK_DIM(sk_level_share)(&level[depth], w->team);
        SK_EACH_OWN_BLOCK(block, share)
        solver->operations->restrict_problem(&level[depth], &solver->bound[depth], &solver->bound[depth + 1], block);
        sk_team_wait(w->team);
    }
    const goal rough = {nested_steps, SELKIE_NORM_RELATIVE, nested_tolerance, 0, 0};
    for (int depth = bottom; depth > 0; --depth) {
        int small = level[depth].block_count < SK_SMALL_LEVEL;
        if (!small || w->team.thread == 0)
            solve_level(w, depth, small ? (sk_team){0, 1, NULL} : w->team, rough, NULL);
        sk_team_wait(w->team);
        interpolate(w, depth - 1);
    }
}

/* Writes the solution in the caller's layout and units. Returns whether all of it is finite, and counts free cells. */
static int write_solution(const work *w, int64_t *free_cells)
{
    sk_bounded_solver *solver = w->solver;
    sk_poisson_solver *poisson = solver->poisson;
    const sk_level *level = &poisson->multigrid.level[0];
    const sk_bound_level *bound = &solver->bound[0];
    int finite = 1;
    const sk_share share = SK_DIM(sk_level_share)(level, w->team);
    *free_cells = 0;
    SK_EACH_OWN_BLOCK(block, share)
    {
        size_t at = (size_t)block * SK_BLOCK_CELLS;
        *free_cells += solver->operations->count_above(bound, block);
        finite &=
            poisson->operations->write(bound->high + at, bound->low + at, 1.0f / w->scale,
                                       w->system->poisson.solution + (size_t)poisson->outside[block] * SK_BLOCK_CELLS);
    }
    int range[2];
    for (int end = 0; end < 2; ++end)
        range[end] = (int)((int64_t)w->system->poisson.block_count * (w->team.thread + end) / w->team.threads);
    for (int block = range[0]; block < range[1]; ++block)
        if (!poisson->inside[block])
            memset(w->system->poisson.solution + (size_t)block * SK_BLOCK_CELLS, 0, SK_BLOCK_CELLS * sizeof(float));
    return finite;
}

static input solve_in_team(work *w, int *finite)
{
    sk_bounded_solver *solver = w->solver;
    const sk_bounded_options *options = w->options;

    /* Clear all levels and read the problem. */
    for (int depth = 0; depth < solver->poisson->multigrid.level_count; ++depth)
        SK_DIM(sk_bounded_clear_level)(solver, depth, w->team);
    sk_team_wait(w->team);
    input found = start_problem(w);
    if (found != good_input)
        return found;

    /* Solve from the caller's solution, or from those of coarser problems. */
    w->norm_start = norm_at_start(w);
    int64_t free_cells = 0;
    if (w->norm_start > 0) {
        if (options->warm_start)
            start_solution(w, 1);
        else
            nested_start(w);
        double unit = options->norm == SELKIE_NORM_MAX ? (double)w->scale : w->norm_start;
        goal asked = {options->max_iterations, options->norm, options->tolerance, unit, 1};
        double residual = solve_level(w, 0, w->team, asked, w->report);
        SK_DIM(sk_bounded_pockets_classify)(solver, w->team); /* the last step may have released the last cell */
        SK_DIM(sk_bounded_pockets_lower)(solver, w->team);
        if (!isfinite(residual)) {
#pragma omp atomic write
            *finite = 0;
        }
    } else if (w->team.thread == 0) {
        w->report->converged = 1;
    }

    /* Each thread writes its own blocks and counts their free cells. */
    if (!write_solution(w, &free_cells)) {
#pragma omp atomic write
        *finite = 0;
    }
#pragma omp atomic
    w->report->free_cells += free_cells;
    return good_input;
}

selkie_code SK_DIM(sk_bounded_solve_active)(sk_bounded_solver *solver, const sk_bounded_system *system,
                                            const sk_bounded_options *options, sk_bounded_report *report,
                                            selkie_error *error)
{
    double start = sk_wall_ms();
    int threads = options->threads > 0 ? options->threads : omp_get_max_threads();
    SK_TRY(SK_DIM(sk_bounded_set_up)(solver, system, threads, error));
    report->unknowns = solver->poisson->multigrid.level[0].unknowns;
    double ready = sk_wall_ms();
    report->setup_ms = ready - start;

    /* A small system is faster on fewer threads. */
    int blocks = solver->poisson->multigrid.level[0].block_count;
    if (threads > 1 + blocks / blocks_per_thread)
        threads = 1 + blocks / blocks_per_thread;

    /* Every thread runs the whole solve on its own blocks. */
    int finite = 1;
    input found = good_input;
    sk_barrier barrier = {0, 0};
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        unsigned long mode = sk_flush_denormals();
        work w = {.solver = solver, .system = system, .options = options, .report = report};
        w.team = (sk_team){omp_get_thread_num(), omp_get_num_threads(), &barrier};
        input mine = solve_in_team(&w, &finite); /* all threads get the same */
        if (w.team.thread == 0)
            found = mine;
        sk_restore_denormals(mode);
    }

    /* Report times, counts and errors. */
    report->active_cells = report->unknowns - report->free_cells;
    report->solve_ms = sk_wall_ms() - ready;
    if (found == bad_right_side)
        return sk_fail(error, SELKIE_ERROR_DIVERGED, SK_BAD_RIGHT_SIDE);
    if (found == bad_bounds)
        return sk_fail(error, SELKIE_ERROR_DIVERGED, SK_BAD_BOUNDS);
    if (!finite)
        return sk_fail(error, SELKIE_ERROR_DIVERGED,
                       "bounded solver: the solution is not finite after %d steps: try a smaller time step",
                       report->iterations);
    return SELKIE_OK;
}
