/* State that outlives a step, and what the world asks of it: the same for all forms of elastoplastic points. */
#ifndef SK_METHODS_ELASTIC_SAVED_H
#define SK_METHODS_ELASTIC_SAVED_H

#include "methods/method.h"

typedef struct sk_elastic_saved {
    double plastic_work;   /* J    since the start */
    double elastic_energy; /* J    at the start of the last step */
    double wave_speed;     /* m/s  fastest pressure wave of the last step */
} sk_elastic_saved;

/* Pressure waves cross a part of a cell in a step. */
static inline void sk_elastic_limit_step(const sk_elastic_saved *saved, sk_step_limits *limits)
{
    limits->extra += saved->wave_speed;
}

static inline void sk_elastic_statistics(const sk_elastic_saved *saved, selkie_statistics *statistics)
{
    statistics->elastic_energy = saved->elastic_energy;
    statistics->plastic_work = saved->plastic_work;
}

/* The volume of the points at rest, before the first step. */
static inline void sk_elastic_measure(sk_step *step)
{
    step->kernel_volume = (double)step->particles.count / step->particles_per_cell;
    step->counted_volume = step->surface_volume = step->kernel_volume;
}

/* Reads the state from a checkpoint. */
selkie_code sk_elastic_restore(sk_elastic_saved *saved, const sk_chunk_view *chunk, const char *file,
                               selkie_error *error);

#endif
