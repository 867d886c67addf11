/* sk_is_sliver for eight faces. */
#ifndef SK_GRID_SLIVERS_LANES_H
#define SK_GRID_SLIVERS_LANES_H

#include "base/simd.h"
#include "grid/slivers.h"

SK_VECTOR i8 sk_are_slivers(f8 fraction)
{
    return (i8)fraction < 0; /* no fraction is below 0, so that the sign tells */
}

#endif
