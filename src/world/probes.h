/* Probes: values measured after each step, for probes.csv. */
#ifndef SK_WORLD_PROBES_H
#define SK_WORLD_PROBES_H

#include "methods/method.h"
#include "world/columns.h"
#include "world/surface_force.h"

typedef struct sk_probes {
    sk_memory *memory; /* NULL = no probes at all */
    sk_method_list methods;
    int column_count;
    char (*names)[64];
    double *values;
    int parts;            /* threads that count particles for the front probes */
    size_t bins;          /* of a part's histogram */
    uint32_t *histogram;  /* [parts][bins] scratch of the front probes */
    sk_columns columns;   /* of probes of heights and levels */
    sk_surface *surfaces; /* [probe_count] of the force and torque probes, where no method measures them */
    int surface_count;
} sk_probes;

selkie_code sk_probes_init(sk_probes *probes, const sk_step *step, sk_method_list methods, selkie_error *error);
void sk_probes_free(sk_probes *probes);
/* Uses the current particles; pressure and velocity are those of the last solve. */
void sk_probes_measure(sk_probes *probes, const sk_step *step, double kick);

#endif
