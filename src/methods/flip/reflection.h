/* The reflection of a step: see reflection_kernels.h. */
#ifndef SK_METHODS_FLIP_REFLECTION_H
#define SK_METHODS_FLIP_REFLECTION_H

#include <math.h>

#include "methods/step.h"

/* Does the scene reflect? Unilateral incompressibility has a projection of its own, and the older volume methods keep
 * the scheme that they were published with: a divergence that they prescribe would be reflected as velocity. */
static inline int flip_reflects(const sk_step *step)
{
    const selkie_volume volume = selkie_scene_volume(step->scene);
    return step->scene->time.reflection != 0.0 && (volume == SELKIE_VOLUME_NONE || volume == SELKIE_VOLUME_IDP) &&
           step->scene->incompressibility != SELKIE_INCOMPRESSIBILITY_UNILATERAL;
}

/* The same for a world that has its fields, without the scene. */
SK_KERNEL int flip_has_end(const sk_step *step)
{
    return step->end_velocity != SK_FIELD_VELOCITY_X;
}

/* The largest change of velocity (m/s) that is reflected. */
SK_KERNEL float flip_most_reflected(const sk_step *step)
{
    return (float)(step->grid.cell_size / step->dt);
}

/* The largest distance (m) of a straight drift from the path: a quarter of a cell, and the way that gravity adds in
 * free fall, which is exact. Beyond two cells a step a drift would cost volume: it leaves more of the motion along the
 * field out, so the quarter falls with the square of the cells that the fastest particle at the start of the step
 * crosses. */
static inline float flip_drift_reach(const sk_step *step)
{
    const double *g = step->scene->gravity, h = step->grid.cell_size;
    const double gravity = sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]);
    const double over = step->start_speed * step->dt / (2.0 * h);
    return (float)(0.25 * h / (over > 1.0 ? over * over : 1.0) +
                   step->reflection * step->dt * gravity * sk_step_kick(step));
}

#endif
