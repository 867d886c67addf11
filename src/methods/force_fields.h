/* The force fields of a scene (its key "forces") in a window of time, for every method that moves liquid. Grid methods
 * add them to faces and particle methods to particles, both with force_kernels.h.
 *
 * A window is [from, to). Windows that follow each other without a gap contain every explosion exactly once and every
 * acceleration for exactly its duration, whatever the steps are. The window of a step is that of gravity: from the
 * middle of the step before to the middle of this one. Adjacent windows share their end to the bit, because both
 * compute it from the end time and the length of a step. A checkpoint keeps these two, so a resumed run applies the
 * same explosions as an unbroken one.
 */
#ifndef SK_METHODS_FORCE_FIELDS_H
#define SK_METHODS_FORCE_FIELDS_H

#include "methods/force_kernels.h"
#include "methods/step.h"

typedef struct sk_force_window {
    double from, to; /* s */
} sk_force_window;

/* From the middle of the step before to the middle of this one. */
static inline sk_force_window sk_step_force_window(const sk_step *step)
{
    sk_force_window window = {step->time - 0.5 * step->last_dt, step->end_time - 0.5 * step->dt};
    return window;
}

/* The most fields that sk_force_fields_in makes: those of the scene, and one of a turning frame. 0 = never any. */
int sk_force_fields_most(const selkie_scene *scene);
/* The fields that act in the window, multiplied by their time in it. Returns their number. `fields` must have room for
 * sk_force_fields_most. Sponges are not among them: they act on particles (particle_forces.h). */
int sk_force_fields_in(const selkie_scene *scene, sk_force_window window, sk_force_field *fields);

/* Multiplies the effect of some fields. */
void sk_force_fields_scale(sk_force_field *fields, int count, double factor);

/* The largest speed that the explosions of the window add anywhere (m/s). Explosions with overlapping balls add up. */
double sk_force_fields_speed(const selkie_scene *scene, sk_force_window window);
/* The sum of the accelerations of the other fields that act at some time of the window (m/s2). */
double sk_force_fields_acceleration(const selkie_scene *scene, sk_force_window window);

#endif
