/* Bounds and rigid bodies together: the least 1/2 x.A' x - f.x above the bounds, A' = A + sum of W R W^T.
 *
 * The projected sweeps of the active set method cannot contain a body: every cell beside it is coupled to every other.
 * This is a primal-dual active set method (Hintermueller, Ito and Kunisch 2003) over the Poisson solver instead:
 *
 *   start from the solution with bodies that keep their motion, by the active set method
 *   w = A' x - f; a cell is held where w > d (x - lower), d the diagonal, and takes x = lower; the others are free
 *   solve A' dx = -w over the free cells: conjugate gradients with multigrid and deflation (poisson_modes_dim.c)
 *   x += dx, which may be below the bounds until the next step
 *
 * A' is no M-matrix, so that the sets may go round in a circle. After some steps without progress the rest are those of
 * a projected Newton method (Bertsekas 1982), which lowers the energy in every step: a cell is free if x > lower or
 * w < 0, and x = max(lower, x + s dx) with the largest s of 1, 1/2, 1/4 ... that does.
 *
 * A held cell has dx = 0, as a Dirichlet boundary: it is no unknown, and the diagonals beside it stay.
 *
 * Fields are in the layout of the caller. Sums run over a block, then over the blocks; sums of a body run over its
 * cells in order: the same bits on any number of threads.
 */
#include "linalg/bounded_solver.h"

#include <math.h>
#include <omp.h>
#include "base/timer.h"

/* The start needs only the free cells. */
static const double start_tolerance = 1e-2;

/* A Newton step leaves at most this part of the residual, and this part of the goal where that is near. */
static const double least_progress = 0.1, near_goal = 0.2;

/* Steps are halved this often at most. Steps without a better residual before the method becomes the careful one. */
enum { MOST_HALVES = 12, PATIENCE = 6 };

/* Components without a Dirichlet face: this part of the diagonal makes them regular. The bounds stop the long step that
 * follows. */
static const float regular_part = 1e-4f;

/* One solve. Fields of [block_count * SK_BLOCK_CELLS]. */
typedef struct newton {
    const sk_poisson_system *system;
    const float *lower; /* NULL = 0 */
    float *x;           /* the caller's solution */
    float *f, *w;       /* right side, A' x - f */
    float *tried, *tried_w, *change, *right, *diagonal;
    double (*motion)[SK_POISSON_MODES]; /* [bodies] R W^T x */
    double *partial[2];                 /* [block_count] */
    uint8_t *is_empty;                  /* [block_count] has no unknowns */
    int is_careful;                     /* x stays above the bounds */
    int threads;
    selkie_residual_norm norm;
} newton;

/* --- A' --- */

/* (A x) of a cell; `c` is its place in the block. */
static double row_of(const sk_poisson_system *system, const float *x, int block, int c)
{
    static const int stride[3] = {1, SK_BLOCK_N, SK_BLOCK_N * SK_BLOCK_N};
    const size_t base = (size_t)block * SK_BLOCK_CELLS, here = base + (size_t)c;
    double sum = (double)system->diagonal[here] * (double)x[here];
    for (int d = 0; d < SELKIE_DIM; ++d) {
        const int at = c >> d * SK_BLOCK_LOG & SK_BLOCK_MASK, round = SK_BLOCK_MASK * stride[d];
        const size_t below = at > 0 ? here - (size_t)stride[d]
                                    : (size_t)system->faces[block][2 * d] * SK_BLOCK_CELLS + (size_t)(c + round);
        const size_t above = at < SK_BLOCK_MASK
                                 ? here + (size_t)stride[d]
                                 : (size_t)system->faces[block][2 * d + 1] * SK_BLOCK_CELLS + (size_t)(c - round);
        sum -= (double)system->face[d][here] * (double)x[below] + (double)system->face[d][above] * (double)x[above];
    }
    return sum;
}

/* The motion of the bodies under x. */
static void move_bodies(const newton *n, const float *x)
{
    const sk_poisson_modes *modes = n->system->modes;
    memset(n->motion, 0, (size_t)modes->body_count * sizeof *n->motion);
    for (size_t e = 0; e < modes->entry_count; ++e) {
        const sk_poisson_mode_entry *entry = &modes->entries[e];
        for (int k = 0; k < modes->rank; ++k)
            n->motion[entry->body][k] += (double)entry->flux[k] * (double)x[entry->cell];
    }
    for (int b = 0; b < modes->body_count; ++b) {
        double sums[SK_POISSON_MODES];
        memcpy(sums, n->motion[b], sizeof sums);
        for (int i = 0; i < modes->rank; ++i) {
            n->motion[b][i] = 0.0;
            for (int j = 0; j < modes->rank; ++j)
                n->motion[b][i] += modes->response[b][i][j] * sums[j];
        }
    }
}

/* w = A' x - f in the unknowns, 0 elsewhere. */
static void find_slack(const newton *n, const float *x, float *w)
{
    const sk_poisson_system *system = n->system;
    const sk_poisson_modes *modes = system->modes;
    move_bodies(n, x);
#pragma omp parallel for num_threads(n->threads) schedule(static)
    for (int block = 1; block < system->block_count; ++block)
        for (int c = 0; c < SK_BLOCK_CELLS && !n->is_empty[block]; ++c) {
            const size_t at = (size_t)block * SK_BLOCK_CELLS + (size_t)c;
            w[at] = system->diagonal[at] > 0.0f ? (float)(row_of(system, x, block, c) - (double)n->f[at]) : 0.0f;
        }
    for (size_t e = 0; e < modes->entry_count; ++e) {
        const sk_poisson_mode_entry *entry = &modes->entries[e];
        double flux = 0.0;
        for (int k = 0; k < modes->rank; ++k)
            flux += (double)entry->flux[k] * n->motion[entry->body][k];
        if (system->diagonal[entry->cell] > 0.0f)
            w[entry->cell] += (float)flux;
    }
}

static float bound_of(const newton *n, size_t at)
{
    return n->lower ? n->lower[at] : 0.0f;
}

/* Norm of the natural residual, and the energy 1/2 x.(w - f). */
static double judge(const newton *n, const float *x, const float *w, double *energy)
{
    const sk_poisson_system *system = n->system;
#pragma omp parallel for num_threads(n->threads) schedule(static)
    for (int block = 1; block < system->block_count; ++block) {
        double sum = 0.0, most = 0.0, work = 0.0;
        for (int c = 0; c < SK_BLOCK_CELLS && !n->is_empty[block]; ++c) {
            const size_t at = (size_t)block * SK_BLOCK_CELLS + (size_t)c;
            if (!(system->diagonal[at] > 0.0f))
                continue;
            const double m =
                fmin((double)system->diagonal[at] * ((double)x[at] - (double)bound_of(n, at)), (double)w[at]);
            sum += m * m;
            most = fabs(m) > most || m != m ? fabs(m) : most;
            work += 0.5 * (double)x[at] * ((double)w[at] - (double)n->f[at]);
        }
        n->partial[0][block] = n->norm == SELKIE_NORM_MAX ? most : sum;
        n->partial[1][block] = work;
    }
    double total = 0.0;
    *energy = 0.0;
    for (int block = 1; block < system->block_count; ++block) {
        const double own = n->partial[0][block];
        total = n->norm != SELKIE_NORM_MAX ? total + own : own > total || own != own ? own : total;
        *energy += n->partial[1][block];
    }
    return n->norm == SELKIE_NORM_MAX ? total : sqrt(total);
}

/* --- A step --- */

/* Finds the free cells, by their diagonals; the others are held. */
static void find_free(const newton *n)
{
    const sk_poisson_system *system = n->system;
#pragma omp parallel for num_threads(n->threads) schedule(static)
    for (size_t at = SK_BLOCK_CELLS; at < (size_t)system->block_count * SK_BLOCK_CELLS; ++at) {
        const float diagonal = system->diagonal[at], above = n->x[at] - bound_of(n, at), w = n->w[at];
        n->diagonal[at] = (n->is_careful ? above > 0.0f || w < 0.0f : w <= diagonal * above) ? diagonal : 0.0f;
    }
}

/* Held cells take their bounds. The careful method holds no others. */
static void hold(const newton *n)
{
    const sk_poisson_system *system = n->system;
    int moved = 0;
#pragma omp parallel for num_threads(n->threads) schedule(static) reduction(| : moved)
    for (size_t at = SK_BLOCK_CELLS; at < (size_t)system->block_count * SK_BLOCK_CELLS; ++at)
        if (system->diagonal[at] > 0.0f && !(n->diagonal[at] > 0.0f) && n->x[at] != bound_of(n, at)) {
            n->x[at] = bound_of(n, at);
            moved = 1;
        }
    if (moved)
        find_slack(n, n->x, n->w);
}

/* The right side over the free cells; `more` is added to their diagonals, as a part. */
static void set_right_side(const newton *n, float more)
{
#pragma omp parallel for num_threads(n->threads) schedule(static)
    for (size_t at = SK_BLOCK_CELLS; at < (size_t)n->system->block_count * SK_BLOCK_CELLS; ++at) {
        n->right[at] = n->diagonal[at] > 0.0f ? -n->w[at] : 0.0f;
        n->diagonal[at] *= 1.0f + more;
    }
}

static selkie_code find_change(sk_bounded_solver *solver, const newton *n, double tolerance, sk_backend backend,
                               selkie_error *error)
{
    sk_poisson_system system = *n->system;
    sk_poisson_report report;
    const sk_poisson_options options = {.tolerance = tolerance,
                                        .norm = SELKIE_NORM_RELATIVE,
                                        .max_iterations = 200,
                                        .threads = n->threads,
                                        .backend = backend};
    system.diagonal = n->diagonal;
    system.right_side = n->right;
    system.solution = n->change;
    find_free(n);
    hold(n);
    set_right_side(n, 0.0f);
    SK_TRY(SK_DIM(sk_poisson_solve)(solver->free_cells, &system, &options, &report, error));
    if (!report.closed_components)
        return SELKIE_OK;
    set_right_side(n, regular_part);
    return SK_DIM(sk_poisson_solve)(solver->free_cells, &system, &options, &report, error);
}

/* tried = x + length change, above the bounds if the method is careful */
static void try_length(const newton *n, float length)
{
    const sk_poisson_system *system = n->system;
#pragma omp parallel for num_threads(n->threads) schedule(static)
    for (size_t at = SK_BLOCK_CELLS; at < (size_t)system->block_count * SK_BLOCK_CELLS; ++at) {
        const float least = bound_of(n, at), moved = n->x[at] + length * n->change[at];
        n->tried[at] = !(system->diagonal[at] > 0.0f) ? 0.0f : moved > least || !n->is_careful ? moved : least;
    }
}

/* x = max(lower, x) */
static void stay_above(const newton *n)
{
    for (size_t at = SK_BLOCK_CELLS; at < (size_t)n->system->block_count * SK_BLOCK_CELLS; ++at)
        if (n->system->diagonal[at] > 0.0f && n->x[at] < bound_of(n, at))
            n->x[at] = bound_of(n, at);
    find_slack(n, n->x, n->w);
}

/* Moves x along the change. Returns the new residual. */
static double advance(newton *n, double *energy)
{
    double residual = 0.0, found = 0.0;
    for (int half = 0; half <= MOST_HALVES; ++half) {
        try_length(n, ldexpf(1.0f, -half));
        find_slack(n, n->tried, n->tried_w);
        residual = judge(n, n->tried, n->tried_w, &found);
        if (!n->is_careful || found <= *energy || !isfinite(residual))
            break;
    }
    const size_t bytes = (size_t)n->system->block_count * SK_BLOCK_CELLS * sizeof(float);
    memcpy(n->x, n->tried, bytes);
    memcpy(n->w, n->tried_w, bytes);
    *energy = found;
    return residual;
}

/* --- The solve --- */

static selkie_code set_up(sk_bounded_solver *solver, const sk_bounded_system *system, newton *n, selkie_error *error)
{
    const sk_poisson_system *poisson = &system->poisson;
    const size_t blocks = (size_t)poisson->block_count, cells = blocks * SK_BLOCK_CELLS;
    const size_t bodies = (size_t)poisson->modes->body_count;
    float **fields[7] = {&n->f, &n->w, &n->tried, &n->tried_w, &n->change, &n->right, &n->diagonal};
    if (!solver->free_cells)
        solver->free_cells = SK_DIM(sk_poisson_create)(solver->memory);
    if (!solver->free_cells)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "bounded solver: no memory");
    SK_TRY(SK_DIM(sk_scratch_reserve)(
        solver->memory, &solver->newton_memory,
        7 * cells * sizeof(float) + 2 * blocks * sizeof(double) + bodies * sizeof *n->motion + blocks, error));
    char *at = solver->newton_memory.data;
    for (int i = 0; i < 2; ++i, at += blocks * sizeof(double))
        n->partial[i] = (double *)(void *)at;
    n->motion = (double(*)[SK_POISSON_MODES])(void *)at;
    at += bodies * sizeof *n->motion;
    for (int i = 0; i < 7; ++i, at += cells * sizeof(float)) {
        *fields[i] = (float *)(void *)at;
        memset(at, 0, cells * sizeof(float));
    }
    n->is_empty = (uint8_t *)at;
    for (size_t block = 0; block < blocks; ++block) {
        n->is_empty[block] = 1;
        for (size_t c = block * SK_BLOCK_CELLS; c < (block + 1) * SK_BLOCK_CELLS && n->is_empty[block]; ++c)
            n->is_empty[block] = !(poisson->diagonal[c] > 0.0f);
    }
    return SELKIE_OK;
}

/* The right side as the start left it: without the mean of components that are too full. */
static void read_right_side(const sk_bounded_solver *solver, const newton *n)
{
    const sk_poisson_solver *poisson = solver->poisson;
    static const float zeros[SK_BLOCK_CELLS] __attribute__((aligned(64)));
    for (int block = 1; block <= poisson->multigrid.level[0].block_count; ++block)
        poisson->operations->write(solver->bound[0].f + (size_t)block * SK_BLOCK_CELLS, zeros, 1.0f / solver->scale,
                                   n->f + (size_t)poisson->outside[block] * SK_BLOCK_CELLS);
}

/* Bodies keep their motion. Returns the norm of the natural residual at max(lower, 0). */
static selkie_code start(sk_bounded_solver *solver, const sk_bounded_system *system, const sk_bounded_options *options,
                         newton *n, double *unit, selkie_error *error)
{
    sk_bounded_system fixed = *system;
    sk_bounded_options rough = *options;
    sk_bounded_report report = {0};
    double energy;
    fixed.poisson.modes = NULL;
    rough.norm = SELKIE_NORM_RELATIVE;
    rough.tolerance = fmax(options->tolerance, start_tolerance);
    SK_TRY(SK_DIM(sk_bounded_solve_active)(solver, &fixed, &rough, &report, error));
    n->x = system->poisson.solution;
    read_right_side(solver, n);
    memset(n->change, 0, (size_t)system->poisson.block_count * SK_BLOCK_CELLS * sizeof(float));
    for (size_t at = SK_BLOCK_CELLS; at < (size_t)system->poisson.block_count * SK_BLOCK_CELLS; ++at)
        n->tried[at] = system->poisson.diagonal[at] > 0.0f && bound_of(n, at) > 0.0f ? bound_of(n, at) : 0.0f;
    find_slack(n, n->tried, n->tried_w);
    *unit = options->norm == SELKIE_NORM_MAX ? 1.0 : judge(n, n->tried, n->tried_w, &energy);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_bounded_solve_modes)(sk_bounded_solver *solver, const sk_bounded_system *system,
                                           const sk_bounded_options *options, sk_bounded_report *report,
                                           selkie_error *error)
{
    const double begin = sk_wall_ms();
    newton n = {.system = &system->poisson,
                .lower = system->lower,
                .threads = options->threads > 0 ? options->threads : omp_get_max_threads(),
                .norm = options->norm};
    double unit = 0.0, energy = 0.0;
    SK_TRY(set_up(solver, system, &n, error));
    SK_TRY(start(solver, system, options, &n, &unit, error));
    unit = unit > 0.0 ? unit : 1.0;
    find_slack(&n, n.x, n.w);
    double residual = judge(&n, n.x, n.w, &energy) / unit;

    /* Newton steps. */
    int count = 0, since = 0;
    double best = residual;
    for (; residual > options->tolerance && count < options->max_iterations; ++count) {
        since = residual < 0.9 * best ? 0 : since + 1;
        best = residual < best ? residual : best;
        if (since > 2 * PATIENCE)
            break; /* no progress: single precision comes no nearer */
        if (!n.is_careful && since > PATIENCE) {
            n.is_careful = 1;
            stay_above(&n);
            judge(&n, n.x, n.w, &energy);
        }
        const double wanted = near_goal * options->tolerance / residual;
        SK_TRY(find_change(solver, &n, wanted < least_progress ? wanted : least_progress, options->backend, error));
        residual = advance(&n, &energy) / unit;
        if (!isfinite(residual))
            return sk_fail(error, SELKIE_ERROR_DIVERGED,
                           "bounded solver: the solution is not finite after %d steps: try a smaller time step",
                           count + 1);
    }

    /* Report. */
    stay_above(&n);
    for (size_t at = SK_BLOCK_CELLS; at < (size_t)system->poisson.block_count * SK_BLOCK_CELLS; ++at) {
        report->unknowns += system->poisson.diagonal[at] > 0.0f;
        report->free_cells += system->poisson.diagonal[at] > 0.0f && n.x[at] > bound_of(&n, at);
    }
    report->active_cells = report->unknowns - report->free_cells;
    report->iterations = report->free_steps = count;
    report->residual = residual;
    report->converged = residual <= options->tolerance;
    report->solve_ms = sk_wall_ms() - begin;
    return SELKIE_OK;
}
