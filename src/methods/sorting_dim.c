#include "base/dimension.h"
#include "methods/sorting.h"

/* Both sorts give the same bits; the second is faster if few particles change their block. */
selkie_code SK_DIM(sk_sort_particles)(sk_step *step, selkie_error *error)
{
    if (sk_grid_leavers_known(&step->grid, &step->particles) || sk_step_is_calm(step, step->last_dt))
        return SK_DIM(sk_grid_sort_again)(&step->grid, &step->particles, step->threads, error);
    return SK_DIM(sk_grid_sort)(&step->grid, &step->particles, step->threads, error);
}

/* After corrections of positions. */
selkie_code SK_DIM(sk_sort_particles_again)(sk_step *step, selkie_error *error)
{
    return SK_DIM(sk_grid_sort_again)(&step->grid, &step->particles, step->threads, error);
}

/* Solids take their pose at the start of the step, and particles follow them from there (grid/sweep.h). The room that
 * unilateral pressure and SPH may fill is that at the end of the step. */
selkie_code SK_DIM(sk_move_solids)(sk_step *step, selkie_error *error)
{
    const selkie_scene *scene = step->scene;
    const int at_end = scene->discretization != SELKIE_DISCRETIZATION_GRID ||
                       scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    const double end = step->time + step->dt;
    sk_solids_move(&step->solids, at_end ? end : step->time);
    sk_solids_step(&step->solids, step->time, end);
    return SK_DIM(sk_solids_update)(&step->solids, &step->grid, step->threads, error);
}
