#include "linalg/poisson_modes_view.h"

#include <string.h>

void sk_poisson_free_view(sk_memory *memory, sk_modes_view *view)
{
    sk_release(memory, view->flux.cell);
    sk_release(memory, view->space.cell);
    sk_release(memory, view->inverse);
    sk_release(memory, view->coupling);
    memset(view, 0, sizeof *view);
}
