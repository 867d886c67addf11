/* Sources and drains of liquid.
 *
 * A source keeps the sub-cells inside its shape filled. An empty sub-cell gets a particle, unless its cell already has
 * its rest count: a source fills to rest density and never beyond. Particles inside a running source move with its
 * velocity, and so do its sub-cells. A particle therefore stays in its sub-cell, and only the sub-cells that enter at
 * the back are empty. Fixed sub-cells would find gaps between passing particles in each step and overfill the stream. A
 * drain removes the particles inside it.
 */
#ifndef SK_METHODS_SOURCES_SOURCES_H
#define SK_METHODS_SOURCES_SOURCES_H

#include "geom/shape.h"
#include "methods/method.h"

extern const sk_method sk_method_sources;

typedef struct sk_source {
    sk_shape *shape;
    double low[3], high[3]; /* m  bounds within the domain */
    int first[3], size[3];  /*    cells of the domain that the bounds touch */
    uint8_t *sites;         /*    [cells][sub-cells] always, sometimes or never inside the shape */
    uint8_t *taken;         /*    [cells][sub-cells] 1 = holds a particle */
    uint32_t *counts;       /*    [cells] particles in the moving cells */
    uint32_t *standing;     /*    [cells] particles in the grid's own cells: full cells are not filled */
} sk_source;

typedef struct sk_sources {
    sk_memory *memory;
    int source_count, drain_count;
    int per_axis; /* sub-cells along an axis */
    int sub_cells;
    sk_source *sources;
    sk_source *drains; /* shape and bounds only */
} sk_sources;

selkie_code sk_sources_init(sk_sources *sources, const sk_step *step, selkie_error *error);
void sk_sources_free(sk_sources *sources);
/* The phase: drains, then fills (step->sources), before the sort. */
selkie_code sk_sources_run(sk_step *step, selkie_error *error);

#endif
