/* The force fields of a scene (its key "forces") in a window of time, for every method that moves liquid: grids add
 * them to faces, particle methods to particles, both with force_kernels.h.
 *
 * A window is [from, to): windows that follow each other without a gap give every explosion exactly once and the
 * accelerations exactly as long as they last, whatever the steps are. The windows of a step are those of gravity, from
 * the middle of the step before to the middle of this one, and their ends are the same bits on both sides: both are
 * computed from the time of the step's end and its length, which a checkpoint keeps. So a resumed run explodes like an
 * unbroken one.
 */
#ifndef SK_METHODS_FORCE_FIELDS_H
#define SK_METHODS_FORCE_FIELDS_H

#include "methods/force_kernels.h"
#include "methods/step.h"

typedef struct sk_force_window {
    double from, to; /* s */
} sk_force_window;

/* From the middle of the step before to the middle of this one (sk_step_kick is its length). */
static inline sk_force_window sk_step_force_window(const sk_step *step)
{
    sk_force_window window = {step->time - 0.5 * step->last_dt, step->end_time - 0.5 * step->dt};
    return window;
}

/* The fields that do something in the window, at most `scene->force_count`, multiplied by their time in it. Returns how
 * many. `fields` must have room for scene->force_count. */
int sk_force_fields_in(const selkie_scene *scene, sk_force_window window, sk_force_field *fields);

/* The largest speed that the explosions of the window add anywhere (m/s): those whose balls overlap add up. */
double sk_force_fields_speed(const selkie_scene *scene, sk_force_window window);
/* The largest acceleration of the other fields that are there at some time of the window (m/s2), added up. */
double sk_force_fields_acceleration(const selkie_scene *scene, sk_force_window window);

#endif
