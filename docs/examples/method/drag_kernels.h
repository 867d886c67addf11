/* What drag does to one particle: compiled by the C compiler and by nvcc. */
#ifndef DRAG_KERNELS_H
#define DRAG_KERNELS_H

#include "base/kernel.h"

/* Share of the velocity that is left after dt (s). */
SK_KERNEL float sk_drag_keep(float dt, float time)
{
    return __builtin_expf(-dt / time);
}

SK_KERNEL float sk_drag_velocity(float velocity, float keep)
{
    return keep * velocity;
}

#endif
