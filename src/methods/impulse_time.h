/* From impulses to forces. */
#ifndef SK_METHODS_IMPULSE_TIME_H
#define SK_METHODS_IMPULSE_TIME_H

#include "methods/step.h"

/* Time over which the impulses of a step act, s: from the middle of the last step to the middle of this one, reflected
 * or not (sk_step_kick). An impulse over it is a force. Over the length of the step it is wrong where steps differ. */
static inline double sk_step_impulse_time(const sk_step *step)
{
    return 0.5 * (step->last_dt + step->dt);
}

#endif
