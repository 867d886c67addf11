#include "base/dimension.h"
#include "grid/plain_forms.h"
#include "methods/sorting.h"

selkie_code SK_DIM(sk_sort_particles_plain)(sk_step *step, selkie_error *error)
{
    return SK_DIM(sk_grid_sort_plain)(&step->grid, &step->particles, step->threads, error);
}
