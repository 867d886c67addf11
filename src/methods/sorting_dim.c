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

/* Solids take their pose at the end of the step, because the liquid must not enter that volume. */
selkie_code SK_DIM(sk_move_solids)(sk_step *step, selkie_error *error)
{
    sk_solids_move(&step->solids, step->time + step->dt);
    return SK_DIM(sk_solids_update)(&step->solids, &step->grid, step->threads, error);
}
