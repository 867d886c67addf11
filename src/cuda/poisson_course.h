/* The course of an iteration of the GPU solver: what decides whether it was the last one, how its launches are made,
 * and which of them have nothing to do. Private to src/cuda; for files compiled per dimension. */
#ifndef SK_CUDA_POISSON_COURSE_H
#define SK_CUDA_POISSON_COURSE_H

#include "cuda/poisson_parts.h"

/* After a cycle of a solve with bodies: the mean of its result, in a closed component. */
SK_DEVICE void decide_mean(sk_cuda_solver *solver)
{
    const double sum = add_up(solver->partial[2], solver->block_count);
    if (threadIdx.x == 0)
        solver->turn.mean_z = solver->unknowns[0] ? (float)(sum / (double)solver->unknowns[0]) : 0.0f;
}

/* What decides whether an iteration was the last one. */
typedef struct end_rules {
    double tolerance, unit; /* of the residual */
    double computed, drifted;
    int norm, count, iteration, max_iterations;
} end_rules;

/* The rules that stay the same during a solve. Loads follow each other where a thread block decides for all, so they
 * come early. */
SK_DEVICE end_rules fixed_rules(const sk_cuda_solver *solver)
{
    const int norm = solver->norm;
    return {solver->tolerance,
            norm == SELKIE_NORM_MAX ? (double)solver->scale : solver->norm_b,
            0.0,
            0.0,
            norm,
            solver->block_count,
            0,
            solver->max_iterations};
}

/* After a step: the rules of `iterate` in linalg/poisson_dim.c. */
SK_DEVICE void decide_end(sk_cuda_solver *solver, const end_rules *rules)
{
    const int largest = rules->norm == SELKIE_NORM_MAX;
    double sums[2];
    add_up_two(solver->partial, rules->count, largest, sums);
    if (threadIdx.x != 0)
        return;
    const double residual = (largest ? sums[1] : sqrt(sums[1])) / rules->unit;
    const double unit = 4e-8 * sqrt(4.0 * SELKIE_DIM * SELKIE_DIM + 2.0 * SELKIE_DIM);
    const double drift = unit * sqrt(sums[0]) / rules->unit, drifted = rules->drifted + drift;
    const int iteration = rules->iteration + 1;
    solver->drifted = drifted;
    solver->residual = residual;
    solver->iteration = iteration;
    if (residual + drifted <= rules->tolerance) {
        solver->converged = solver->state.done = 1;
        return;
    }
    const int stale = residual < 0.01 * rules->computed && drift > 0.1 * rules->tolerance;
    solver->state.check =
        residual <= rules->tolerance || stale || iteration >= rules->max_iterations || !(residual < INFINITY);
}

/* The next step from the sums of r z and z A z. By the last thread block. */
SK_DEVICE void end_application(sk_cuda_solver *solver, sk_cuda_solve_memory last, double *const partial[3], int count,
                               int closed)
{
    double sums[2], mean = 0.0;
    add_up_two(partial, count, 0, sums);
    if (closed)
        mean = solver->unknowns[0] ? add_up(partial[2], count) / (double)solver->unknowns[0] : 0.0;
    if (threadIdx.x == 0)
        choose_step(solver, last, sums[1], sums[0], mean);
}

/* How an iteration is launched: bits of the levels whose second visit it has, of the second visits that a launch is
 * part of, and whether it has no launches that compute the residual afresh. */
enum { VISITS_HERE = 1, VISITS_OF_LAUNCH = 1 << 8, WITHOUT_CHECK = 1 << 16, ALL_VISITS = 255 };

/* Has the iteration nothing to do? An iteration without what the solve asks for leaves it to the loop at the end. */
SK_DEVICE int is_over(sk_cuda_solve_state state, int how)
{
    return (state.done | (how & WITHOUT_CHECK ? state.check : 0) | (state.twice & ~(how & ALL_VISITS))) != 0;
}

/* The same for a launch of the cycle, which may be part of second visits. */
SK_DEVICE int is_skipped(sk_cuda_solve_state state, int how)
{
    return is_over(state, how) | ((how / VISITS_OF_LAUNCH & ALL_VISITS & ~state.twice) != 0);
}

/* Has a thread block no block of cells? It returns before the wait and leaves its place to the next kernel. The first
 * one stays. */
SK_DEVICE int is_idle(int count)
{
    return (int)blockIdx.x >= count && blockIdx.x > 0;
}

/* Is this the last thread block to come here of those that are not idle? */
SK_DEVICE bool is_last_busy(sk_cuda_solver *solver, int count)
{
    const unsigned busy = count < 1 ? 1u : (unsigned)count;
    return sk_cuda_is_last_of(&solver->ticket, busy < gridDim.x ? busy : gridDim.x);
}

#endif
