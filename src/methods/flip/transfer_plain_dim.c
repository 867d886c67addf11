/* The plain forms of the transfers as phases. */
#include "base/dimension.h"
#include "grid/barriers.h"
#include "grid/plain_forms.h"
#include "methods/flip/flip.h"
#include "methods/flip/transfer_options.h"

selkie_code SK_DIM(sk_flip_to_grid_plain)(sk_step *step, selkie_error *error)
{
    const sk_transfer_options options = flip_transfer_options(step);
    SK_TRY(SK_DIM(sk_transfer_to_grid_plain)(&step->grid, &step->particles, &options, error));
    if (step->solids.obstacle_count)
        SK_DIM(sk_barriers_recount)(&step->solids, &step->grid, &step->particles, &options);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_flip_to_particles_plain)(sk_step *step, selkie_error *error)
{
    const sk_transfer_options options = flip_transfer_options(step);
    SK_TRY(SK_DIM(sk_transfer_to_particles_plain)(&step->grid, &step->particles, &options, &step->sums, error));
    return flip_check_velocities(step, error);
}
