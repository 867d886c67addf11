/* The liquid's surface over a point of the floor, and its mean over an area, for probes of type height and level.
 *
 * Both fill columns of cells along the up direction with the current particles, by the trilinear kernel. They follow
 * the fill from below up to the first crossing of 0.5.
 */
#ifndef SK_WORLD_COLUMNS_H
#define SK_WORLD_COLUMNS_H

#include "methods/step.h"

typedef struct sk_columns {
    sk_memory *memory;
    int height_count, level_count; /* probes of these types */
    int axis[2]; /* across up: the longer axis of the domain, along which slabs follow each other, and the other one; -1
                    in 2D */
    int parts;   /* threads that add particles, each to sums of its own; 0 = no probe of these types */
    size_t length; /* nodes of a column: cell centres, one more before and one behind the domain */
    float *walks;  /* [threads][length] */

    uint8_t *near; /* 0, then [cells along axis[0] + 1][cells along axis[1] + 1] between nodes: the height probe within
                      a cell, counted from 1; 255 = several, 0 = none */
    float (*middles)[4]; /* [probes] place of a height probe in nodes, and 1; else 0 */
    int *spans;          /* [parts][2] nodes along up, first and last, between which the particles of a part are */
    size_t height_room;  /* sums of a part */
    uint32_t *heights;   /* [parts][probes][length] parts of particles around each height probe */

    int thickness;   /* planes of a slab along axis[0] */
    size_t room;     /* sums of a slab */
    uint32_t *rooms; /* [parts][room][4] parts of particles between a node and the next ones along both axes, of the
                        columns of this node and of those */
    double *sums;    /* [probes][planes][2] heights (m) times covered shares, and the sum of these shares */
    double *levels;  /* [probes] m */
} sk_columns;

/* Allocates memory if the scene has a probe of these types. */
selkie_code sk_columns_init(sk_columns *columns, const sk_step *step, selkie_error *error);
void sk_columns_free(sk_columns *columns);
/* Adds the current particles to the columns of all probes, in one pass, and measures the levels: the mean height (m) of
 * the liquid's surface over the floor of the domain, in each probe's area; NaN if obstacles cover all of it. */
void sk_columns_fill(const sk_columns *columns, const sk_step *step);
/* The height (m) of the liquid above a probe, from its filled column. */
double sk_column_height(const sk_columns *columns, const sk_step *step, int probe);

#endif
