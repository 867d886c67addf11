/* Conjugate gradients preconditioned by one multigrid cycle.
 *
 * All vectors are in single precision, which halves the memory traffic. The reported residual is still the true one:
 *
 * - The solution is the sum of two floats, high + low. Iterations add to low
 *   alone. When the residual has fallen by 100 since it was last computed, low is
 *   folded into high without loss and the residual is computed afresh in double
 *   from the caller's right side, after which low can resolve steps 100 times
 *   smaller. Without this the true residual stalls near 1e-4 while the recurrence
 *   goes on to fall. This is skipped if the error from rounding the solution is below 10 % of the tolerance.
 * - Conjugate gradients keep their direction across such a replacement (van der Vorst and Ye 2000): it costs no
 * iteration.
 * - A solve ends only when a residual computed in this way meets the tolerance.
 *
 * The right side is scaled by a power of two to have a largest value near 1, so that huge and tiny values stay in the
 * range of floats.
 *
 * One parallel region holds the whole solve. Sums run over a block, then over the blocks in order. Every thread
 * computes the second sum itself: the same bits on any number of threads, and no broadcast.
 */
#include "linalg/solver.h"

#include <math.h>
#include <omp.h>
#include "base/timer.h"

enum { blocks_per_thread = SELKIE_DIM == 3 ? 96 : 192, MOST_DEFLATED = 40 };

sk_poisson_solver *SK_DIM(sk_poisson_create)(sk_memory *memory)
{
    sk_poisson_solver *solver = sk_allocate_zeroed(memory, sizeof(*solver));
    if (solver) {
        solver->memory = solver->multigrid.memory = memory;
        solver->multigrid.thorough = SELKIE_DIM == 3; /* saves no iteration in 2D */
        solver->multigrid.largest_face = 1.0f;
    }
    return solver;
}

void SK_DIM(sk_poisson_destroy)(sk_poisson_solver *solver)
{
    if (!solver)
        return;
    sk_memory *memory = solver->memory;
    SK_DIM(sk_multigrid_release)(&solver->multigrid);
    SK_DIM(sk_pockets_release)(&solver->pockets, memory);
    SK_DIM(sk_modes_release)(&solver->modes, memory);
    sk_scratch *scratch[4] = {&solver->map_memory, &solver->link_memory, &solver->partial_memory, &solver->sort_memory};
    for (int i = 0; i < 4; ++i)
        sk_release(memory, scratch[i]->data);
    sk_release(memory, solver);
}

/* --- Pieces of an iteration --- */

/* The shared state of all threads of a solve, and the blocks of this thread. */
typedef struct work {
    sk_poisson_solver *solver;
    const sk_poisson_system *system;
    const sk_poisson_options *options;
    sk_team team;
    sk_share share; /* this thread's blocks */
    float scale;    /* scaled right side = the caller's right side times this */
    double norm_b;  /* of the scaled right side */
} work;

static double sum_blocks(const work *w, const double *partial)
{
    double sum = 0;
    for (int block = 1; block <= w->solver->multigrid.level[0].block_count; ++block)
        sum += partial[block];
    return sum;
}

static double largest_block(const work *w, const double *partial)
{
    double largest = 0;
    for (int block = 1; block <= w->solver->multigrid.level[0].block_count; ++block)
        largest = partial[block] > largest || partial[block] != partial[block] ? partial[block] : largest;
    return largest;
}

/* The residual in the requested norm and the caller's units. */
static double residual_of(const work *w, const double *partial)
{
    if (w->options->norm == SELKIE_NORM_MAX)
        return largest_block(w, partial) / (double)w->scale;
    return sqrt(sum_blocks(w, partial)) / w->norm_b;
}

/* r = b - A (high + low) in double. The first partial sums are those of the norm. */
static double true_residual(const work *w)
{
    sk_poisson_solver *solver = w->solver;
    const sk_level *level = &solver->multigrid.level[0];
    float b[SK_BLOCK_CELLS] __attribute__((aligned(64)));
    SK_EACH_OWN_BLOCK(block, w->share)
    {
        solver->operations->read_right_side(solver, w->system, block, w->scale, b);
        solver->multigrid.operations->residual(level, solver->high, solver->low, b, block,
                                               solver->r + (size_t)block * SK_BLOCK_CELLS);
    }
    sk_team_wait(w->team);
    if (solver->modes.body_count) {
        SK_DIM(sk_modes_apply)(&solver->modes, w->team, solver->high, solver->r, -1.0);
        SK_DIM(sk_modes_apply)(&solver->modes, w->team, solver->low, solver->r, -1.0);
    }
    SK_DIM(sk_pockets_balance)(&solver->pockets, w->team, solver->r);
    SK_EACH_OWN_BLOCK(block, w->share)
    solver->partial[1][block] = solver->operations->norm(solver->r + (size_t)block * SK_BLOCK_CELLS, w->options->norm);
    sk_team_wait(w->team);
    return residual_of(w, solver->partial[1]);
}

/* high + low stays the same, and low becomes the rounding error of high. */
static void fold(const work *w)
{
    sk_poisson_solver *solver = w->solver;
    SK_EACH_OWN_BLOCK(block, w->share)
    {
        size_t at = (size_t)block * SK_BLOCK_CELLS;
        solver->operations->fold(solver->high + at, solver->low + at);
    }
    sk_team_wait(w->team);
}

/* p = z + beta p */
static void turn(const work *w, float beta)
{
    sk_poisson_solver *solver = w->solver;
    SK_EACH_OWN_BLOCK(block, w->share)
    {
        size_t at = (size_t)block * SK_BLOCK_CELLS;
        solver->operations->turn(solver->p + at, solver->z + at, beta, solver->multigrid.level[0].active[block]);
    }
    sk_team_wait(w->team);
}

/* z = A p; returns p.A p */
static double apply(const work *w)
{
    sk_poisson_solver *solver = w->solver;
    const sk_level *level = &solver->multigrid.level[0];
    SK_EACH_OWN_BLOCK(block, w->share)
    {
        size_t at = (size_t)block * SK_BLOCK_CELLS;
        solver->multigrid.operations->multiply(level, solver->p, block, solver->z + at);
        solver->partial[1][block] =
            solver->multigrid.operations->dot(solver->p + at, solver->z + at, level->active[block]);
    }
    sk_team_wait(w->team);
    double sum = sum_blocks(w, solver->partial[1]);
    if (!solver->modes.body_count)
        return sum;
    return sum + SK_DIM(sk_modes_apply)(&solver->modes, w->team, solver->p, solver->z, 1.0);
}

/* z = M r, deflated unless the space of the bodies has failed; returns r.z */
static double precondition(const work *w, int careful, int deflated)
{
    sk_poisson_solver *solver = w->solver;
    SK_DIM(sk_multigrid_cycle)(&solver->multigrid, 0, w->team, careful, solver->partial[0]);
    SK_DIM(sk_pockets_balance)(&solver->pockets, w->team, solver->z);
    double rz = sum_blocks(w, solver->partial[0]);
    if (!deflated)
        return rz;
    return rz + SK_DIM(sk_modes_deflate)(&solver->modes, w->team, solver->r, solver->z);
}

/* low += alpha p, r -= alpha A p. Returns the residual, and its possible error from rounding low to floats. */
static double advance(const work *w, float alpha, double *drift)
{
    sk_poisson_solver *solver = w->solver;
    SK_EACH_OWN_BLOCK(block, w->share)
    solver->partial[2][block] =
        solver->operations->advance(solver, block, alpha, w->options->norm, &solver->partial[0][block]);
    sk_team_wait(w->team);
    /* Rounding errors of about 2^-25 a cell, in a row of A with a diagonal of 2 x dimension and faces of 1 (times the
     * largest). Large diagonals come with small values. */
    double low_norm = sqrt(sum_blocks(w, solver->partial[0]));
    double unit =
        4e-8 * sqrt(4.0 * SELKIE_DIM * SELKIE_DIM + 2.0 * SELKIE_DIM) * (double)solver->multigrid.largest_face;
    *drift = unit * low_norm / (w->options->norm == SELKIE_NORM_MAX ? (double)w->scale : w->norm_b);
    /* Round-off must not accumulate in the null space of A. */
    SK_DIM(sk_pockets_balance)(&solver->pockets, w->team, solver->r);
    return residual_of(w, solver->partial[2]);
}

/* --- Start and end --- */

/* Reads the right side into r, with its scale and norm. Returns 0 if it is not finite. */
static int start_right_side(work *w)
{
    sk_poisson_solver *solver = w->solver;
    SK_EACH_OWN_BLOCK(block, w->share)
    solver->partial[0][block] =
        solver->operations->read_right_side(solver, w->system, block, 1.0f, solver->r + (size_t)block * SK_BLOCK_CELLS);
    sk_team_wait(w->team);
    double largest = largest_block(w, solver->partial[0]);
    if (!isfinite(largest))
        return 0;
    int exponent = 0;
    frexp(largest, &exponent);
    exponent = exponent > 120 ? 120 : exponent < -120 ? -120 : exponent;
    w->scale = ldexpf(1.0f, -exponent);
    SK_EACH_OWN_BLOCK(block, w->share)
    solver->operations->scale(solver->r + (size_t)block * SK_BLOCK_CELLS, w->scale);
    sk_team_wait(w->team);
    SK_DIM(sk_pockets_balance)(&solver->pockets, w->team, solver->r);
    SK_EACH_OWN_BLOCK(block, w->share)
    solver->partial[1][block] =
        solver->operations->norm(solver->r + (size_t)block * SK_BLOCK_CELLS, SELKIE_NORM_RELATIVE);
    sk_team_wait(w->team);
    w->norm_b = sqrt(sum_blocks(w, solver->partial[1]));
    return 1;
}

/* Sets the start values. Returns the residual. */
static double start_solution(const work *w)
{
    sk_poisson_solver *solver = w->solver;
    double residual = -1; /* not computed yet */
    float *const start[4] = {solver->low, solver->high, solver->p, solver->z};
    for (int i = 0; i < 4; ++i)
        SK_EACH_OWN_BLOCK(block, w->share)
    memset(start[i] + (size_t)block * SK_BLOCK_CELLS, 0, SK_BLOCK_CELLS * sizeof(float));
    if (w->team.thread == 0) {
        float *empty[5] = {solver->high, solver->low, solver->r, solver->p, solver->z};
        for (int i = 0; i < 5; ++i)
            memset(empty[i], 0, SK_BLOCK_CELLS * sizeof(float));
    }
    if (w->options->warm_start && w->norm_b > 0) {
        sk_poisson_system guess = *w->system;
        guess.right_side = w->system->solution;
        SK_EACH_OWN_BLOCK(block, w->share)
        solver->operations->read_right_side(solver, &guess, block, w->scale,
                                            solver->high + (size_t)block * SK_BLOCK_CELLS);
        sk_team_wait(w->team);
        residual = true_residual(w);
    }
    if (solver->modes.body_count && w->norm_b > 0) {
        sk_team_wait(w->team);
        SK_DIM(sk_modes_start)(&solver->modes, w->team, solver->r, solver->high);
        SK_DIM(sk_pockets_balance)(&solver->pockets, w->team, solver->r);
        residual = -1;
    }
    if (residual >= 0)
        return residual;
    SK_EACH_OWN_BLOCK(block, w->share)
    solver->partial[2][block] = solver->operations->norm(solver->r + (size_t)block * SK_BLOCK_CELLS, w->options->norm);
    sk_team_wait(w->team);
    return w->norm_b > 0 ? residual_of(w, solver->partial[2]) : 0;
}

/* Starts again from 0, without the space of the bodies. Returns the residual. Where many small bodies lie close
 * together, their modes nearly depend on each other, and E in single precision is no longer definite. The cycle alone
 * is slower (some 20 iterations for 35 discs in 400 unknowns) but does not fail. */
static double start_without_space(const work *w)
{
    sk_poisson_solver *solver = w->solver;
    float *const start[3] = {solver->low, solver->high, solver->p};
    sk_team_wait(w->team);
    for (int i = 0; i < 3; ++i)
        SK_EACH_OWN_BLOCK(block, w->share)
    memset(start[i] + (size_t)block * SK_BLOCK_CELLS, 0, SK_BLOCK_CELLS * sizeof(float));
    sk_team_wait(w->team);
    return true_residual(w);
}

/* Rounding error of a residual that the start in the space of the bodies has changed: some units of single precision.
 */
static double start_error(const work *w)
{
    return 1e-6 / (w->options->norm == SELKIE_NORM_MAX ? (double)w->scale : 1.0);
}

/* Writes the solution in the caller's layout and units. Returns whether all of it is finite. */
static int write_solution(const work *w)
{
    sk_poisson_solver *solver = w->solver;
    SK_DIM(sk_pockets_balance)(&solver->pockets, w->team, solver->high);
    int finite = 1;
    SK_EACH_OWN_BLOCK(block, w->share)
    {
        size_t at = (size_t)block * SK_BLOCK_CELLS;
        finite &= solver->operations->write(solver->high + at, solver->low + at, 1.0f / w->scale,
                                            w->system->solution + (size_t)solver->outside[block] * SK_BLOCK_CELLS);
    }
    int share[2];
    for (int end = 0; end < 2; ++end)
        share[end] = (int)((int64_t)w->system->block_count * (w->team.thread + end) / w->team.threads);
    for (int block = share[0]; block < share[1]; ++block)
        if (!solver->inside[block])
            memset(w->system->solution + (size_t)block * SK_BLOCK_CELLS, 0, SK_BLOCK_CELLS * sizeof(float));
    return finite;
}

/* --- The solve --- */

/* Every thread runs this with the same numbers. Thread 0 stores them. */
static void iterate(work *w, sk_poisson_report *report, int *finite)
{
    const sk_poisson_options *options = w->options;
    double residual = start_solution(w), computed = residual, rz = 0;
    double drifted = w->solver->modes.body_count ? start_error(w) : 0;
    int converged = w->norm_b == 0 || residual + drifted <= options->tolerance, iteration = 0, fresh = 1, careful = 0;
    int deflated = w->solver->modes.body_count > 0, failed = !isfinite(residual);

    /* Preconditioned conjugate gradients. */
    while (!converged && iteration < options->max_iterations) {
        if (deflated && (failed || iteration == MOST_DEFLATED)) {
            deflated = failed = careful = 0;
            residual = computed = start_without_space(w);
            drifted = rz = 0;
            fresh = 1;
            converged = residual <= options->tolerance;
            if (converged || !isfinite(residual))
                break;
        }
        double rz_before = rz;
        rz = precondition(w, careful, deflated);
        if (!(rz > 0)) {
            if (deflated && (careful || !isfinite(rz))) {
                failed = 1;
                sk_team_wait(w->team);
                continue;
            }
            if (careful || !isfinite(rz))
                break;
            /* The cycle is not positive definite here: continue from the current x in a new direction. */
            careful = 1;
            rz = 0;
            sk_team_wait(w->team);
            continue;
        }

        /* Step along the new direction. */
        turn(w, rz_before == 0 ? 0 : (float)(rz / rz_before));
        double curvature = apply(w);
        if (!(curvature > 0) && deflated) {
            failed = 1;
            continue;
        }
        if (!(curvature > 0))
            break;
        double drift = 0;
        residual = advance(w, (float)(rz / curvature), &drift);
        drifted += drift;
        if (w->team.thread == 0 && iteration < SK_POISSON_MAX_HISTORY) {
            report->history[iteration] = residual;
            report->history_count = iteration + 1;
        }
        ++iteration;
        fresh = 0;

        /* Near the goal, or after much round-off, compute the true residual instead of its recurrence. */
        if (residual + drifted <= options->tolerance) {
            /* The residual meets the tolerance, including its rounding error. */
            converged = fresh = 1;
            break;
        }
        int stale = residual < 0.01 * computed && drift > 0.1 * options->tolerance;
        if (residual <= options->tolerance || stale || iteration == options->max_iterations) {
            fold(w);
            residual = computed = true_residual(w);
            drifted = 0;
            fresh = 1;
            converged = residual <= options->tolerance;
        }
        failed = !isfinite(residual);
        if (failed && !deflated)
            break;
    }

    /* Report the true residual and write the solution. */
    if (!fresh) {
        fold(w);
        residual = true_residual(w);
        converged = residual <= options->tolerance;
    }
    int all_finite = write_solution(w) && isfinite(residual);
    if (w->team.thread == 0) {
        report->iterations = iteration;
        report->converged = converged;
        report->residual = residual;
    }
    if (!all_finite) {
#pragma omp atomic write
        *finite = 0;
    }
}

void SK_DIM(sk_poisson_choose)(sk_poisson_solver *solver, sk_backend backend)
{
    int plain = backend == SK_BACKEND_PLAIN;
    solver->multigrid.operations = plain ? &SK_DIM(sk_level_operations_plain) : &SK_DIM(sk_level_operations_tuned);
    solver->operations = plain ? &SK_DIM(sk_poisson_operations_plain) : &SK_DIM(sk_poisson_operations_tuned);
    solver->pockets.operations = solver->operations;
}

/* Memory of the vectors. */
static selkie_code reserve_vectors(sk_poisson_solver *solver, selkie_error *error)
{
    sk_level *level = &solver->multigrid.level[0];
    size_t blocks = (size_t)level->block_count + 2, cells = ((size_t)level->block_count + 1) * SK_BLOCK_CELLS;
    SK_TRY(SK_DIM(sk_scratch_reserve)(solver->memory, &level->vector_memory, 5 * cells * sizeof(float), error));
    SK_TRY(SK_DIM(sk_scratch_reserve)(solver->memory, &solver->partial_memory, 3 * blocks * sizeof(double), error));
    float *field = level->vector_memory.data;
    solver->high = field;
    solver->low = field + cells;
    solver->p = field + 2 * cells;
    solver->r = level->b = field + 3 * cells;
    solver->z = level->x = field + 4 * cells;
    for (int i = 0; i < 3; ++i)
        solver->partial[i] = (double *)solver->partial_memory.data + (size_t)i * blocks;
    return SELKIE_OK;
}

static selkie_code set_up(sk_poisson_solver *solver, const sk_poisson_system *system, int threads, selkie_error *error)
{
    SK_TRY(SK_DIM(sk_poisson_read)(solver, system, threads, error));
    SK_TRY(SK_DIM(sk_pockets_find)(solver, error));
    SK_TRY(SK_DIM(sk_multigrid_coarsen)(&solver->multigrid, threads, error));
    SK_TRY(reserve_vectors(solver, error));
    solver->modes.all_unknowns = solver->multigrid.level[0].unknowns;
    SK_TRY(SK_DIM(sk_modes_read)(solver, system, threads, error));
    return SK_DIM(sk_modes_prepare)(solver, threads, error);
}

selkie_code SK_DIM(sk_poisson_read_bodies)(sk_poisson_solver *solver, const sk_poisson_system *system, int64_t unknowns,
                                           int threads, selkie_error *error)
{
    SK_DIM(sk_poisson_choose)(solver, SK_BACKEND_PLAIN);
    SK_TRY(SK_DIM(sk_poisson_read)(solver, system, threads, error));
    SK_TRY(reserve_vectors(solver, error));
    solver->modes.all_unknowns = unknowns;
    return SK_DIM(sk_modes_read)(solver, system, threads, error);
}

selkie_code SK_DIM(sk_poisson_solve)(sk_poisson_solver *solver, const sk_poisson_system *system,
                                     const sk_poisson_options *options, sk_poisson_report *report, selkie_error *error)
{
    double start = sk_wall_ms();
    memset(report, 0, sizeof(*report));
    int threads = options->threads > 0 ? options->threads : omp_get_max_threads();
    SK_DIM(sk_poisson_choose)(solver, options->backend);
    solver->multigrid.largest_face = options->largest_face > 0.0 ? (float)options->largest_face : 1.0f;
    if (!options->same_matrix)
        SK_TRY(set_up(solver, system, threads, error));
    report->unknowns = solver->multigrid.level[0].unknowns;
    report->closed_components = solver->pockets.component_count;
    double ready = sk_wall_ms();
    report->setup_ms = ready - start;

    /* A thread needs some blocks of each colour to pay for its barriers. */
    int blocks = solver->multigrid.level[0].block_count;
    if (threads > 1 + blocks / blocks_per_thread)
        threads = 1 + blocks / blocks_per_thread;
    int right_side_finite = 1, finite = 1;
    sk_barrier barrier = {0, 0};
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        unsigned long mode = sk_flush_denormals();
        work w = {.solver = solver, .system = system, .options = options};
        w.team = (sk_team){omp_get_thread_num(), omp_get_num_threads(), &barrier};
        w.share = SK_DIM(sk_level_share)(&solver->multigrid.level[0], w.team);
        if (start_right_side(&w)) {
            iterate(&w, report, &finite);
        } else {
#pragma omp atomic write
            right_side_finite = 0;
        }
        sk_restore_denormals(mode);
    }
    report->solve_ms = sk_wall_ms() - ready;
    if (!right_side_finite)
        return sk_fail(error, SELKIE_ERROR_DIVERGED, "pressure solver: the right side is not finite in some cell");
    if (!finite)
        return sk_fail(error, SELKIE_ERROR_DIVERGED,
                       "pressure solver: the solution is not finite after %d iterations: try a smaller time step",
                       report->iterations);
    return SELKIE_OK;
}
