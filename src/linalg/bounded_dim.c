/* Linear complementarity over sparse blocks: parts that both methods share. */
#include "linalg/bounded_solver.h"

sk_bounded_solver *SK_DIM(sk_bounded_create)(sk_memory *memory)
{
    sk_bounded_solver *solver = sk_allocate_zeroed(memory, sizeof(*solver));
    if (!solver)
        return NULL;
    solver->memory = memory;
    solver->poisson = SK_DIM(sk_poisson_create)(memory);
    if (!solver->poisson) {
        sk_release(memory, solver);
        return NULL;
    }
    solver->poisson->multigrid.thorough = 0; /* saves no step here: each step has projected sweeps of its own */
    return solver;
}

void SK_DIM(sk_bounded_destroy)(sk_bounded_solver *solver)
{
    if (!solver)
        return;
    SK_DIM(sk_poisson_destroy)(solver->poisson);
    SK_DIM(sk_poisson_destroy)(solver->free_cells);
    sk_release(solver->memory, solver->newton_memory.data);
    sk_release(solver->memory, solver->flat_memory.data);
    sk_release(solver->memory, solver->last_memory.data);
    sk_release(solver->memory, solver->partial_memory.data);
    for (int depth = 0; depth < SK_MAX_LEVELS; ++depth)
        sk_release(solver->memory, solver->bound[depth].memory.data);
    sk_release(solver->memory, solver);
}

selkie_code SK_DIM(sk_bounded_solve)(sk_bounded_solver *solver, const sk_bounded_system *system,
                                     const sk_bounded_options *options, sk_bounded_report *report, selkie_error *error)
{
    memset(report, 0, sizeof(*report));
    SK_DIM(sk_poisson_choose)(solver->poisson, options->backend);
    solver->part.operations = solver->poisson->multigrid.operations;
    solver->operations = options->backend == SK_BACKEND_PLAIN ? &SK_DIM(sk_bounded_operations_plain)
                                                              : &SK_DIM(sk_bounded_operations_tuned);
    const sk_poisson_modes *modes = system->poisson.modes;
    if (modes && modes->body_count > 0 && modes->entry_count > 0)
        return SK_DIM(sk_bounded_solve_modes)(solver, system, options, report, error);
    if (options->method == SK_BOUNDED_ACTIVE_SET)
        return SK_DIM(sk_bounded_solve_active)(solver, system, options, report, error);
    return SK_DIM(sk_bounded_solve_flat)(solver, system, options, report, error);
}
