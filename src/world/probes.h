/* Probes: values measured after each step, for probes.csv. */
#ifndef SK_WORLD_PROBES_H
#define SK_WORLD_PROBES_H

#include <omp.h>

#include "methods/method.h"
#include "world/columns.h"
#include "world/fronts.h"
#include "world/surface_force.h"

typedef struct sk_probes {
    sk_watch watch;                         /* of the advection */
    int64_t seen[sk_most_column_parts][8];  /* first value: particles that a part has seen since the advection began */
    omp_lock_t locks[sk_most_column_parts]; /* of the parts, if there are more threads than parts */
    sk_memory *memory;                      /* NULL = no probes at all */
    sk_method_list methods;
    int column_count;
    char (*names)[64];
    double *values;
    int parts;            /* threads that count particles for the front probes */
    size_t bins;          /* of a part's histogram */
    uint32_t *histogram;  /* [parts][bins] scratch of the front probes */
    int front_count;      /* probes of fronts */
    sk_front *fronts;     /* [probe_count][parts] of the front probes while particles move */
    sk_columns columns;   /* of probes of heights and levels */
    sk_surface *surfaces; /* [probe_count] of the force and torque probes, where no method measures them */
    int surface_count;
    const uint32_t *added_bins[3]; /* counts of the device along each axis; NULL = count here */
} sk_probes;

selkie_code sk_probes_init(sk_probes *probes, const sk_step *step, sk_method_list methods, selkie_error *error);
void sk_probes_free(sk_probes *probes);
/* What the advection shows its particles to; NULL if no probe needs them all. `probes` must stay where it is. */
sk_watch *sk_probes_watch(sk_probes *probes, const sk_step *step);
/* Dead particles have been removed, which were not counted; before, there were `count` and `moves`. */
void sk_probes_drop(sk_probes *probes, const sk_particles *particles, uint64_t moves, int64_t count);
/* Copies what the probes need from the device where the world runs on one; sums of heights, levels and fronts alone are
 * made there. */
selkie_code sk_probes_fetch(sk_probes *probes, sk_step *step, selkie_error *error);
/* Uses the current particles; pressure and velocity are those of the last solve. */
void sk_probes_measure(sk_probes *probes, const sk_step *step, double kick);

#endif
