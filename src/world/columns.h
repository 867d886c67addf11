/* The liquid's surface over a point of the floor, and its mean over an area, for probes of type height and level.
 *
 * Both fill columns of cells along the up direction with the current particles, by the trilinear kernel. They follow
 * the fill from below up to the first crossing of 0.5.
 */
#ifndef SK_WORLD_COLUMNS_H
#define SK_WORLD_COLUMNS_H

#include "methods/step.h"

/* Fills the columns of all height probes: [probes][cells along up + 2]. Columns of other probes are not changed. Nodes
 * are cell centres, with one more before and one behind the domain. */
void sk_columns_fill(const sk_step *step, float *columns);
/* The height (m) of the liquid above a point, from its filled column. Changes the column. */
double sk_column_height(const sk_step *step, const double at[3], float *column);

/* Data shared by the probes of type level. */
typedef struct sk_levels {
    sk_memory *memory;
    int axis[2]; /* across up: the longer axis of the domain, along which slabs follow each other, and the other one; -1
                    in 2D */
    int thickness; /* columns of a slab along axis[0] */
    size_t room;   /* floats of a slab */
    float *rooms;  /* [threads][room] */
    double *sums;  /* [columns along axis[0]][2] heights (m) times covered shares, and the sum of these shares */
} sk_levels;

/* Allocates memory if the scene has a probe of this type. */
selkie_code sk_levels_init(sk_levels *levels, const sk_step *step, selkie_error *error);
void sk_levels_free(sk_levels *levels);
/* The mean height (m) of the liquid's surface over the floor of the domain, in the probe's area; NaN if obstacles cover
 * all of it. */
double sk_level_measure(const sk_levels *levels, const sk_step *step, const selkie_probe_def *def);

#endif
