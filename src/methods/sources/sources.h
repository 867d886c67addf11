/* Sources and drains of liquid.
 *
 * A source with a velocity or a flow rate emits a stream (stream.h) and imposes its velocity on the liquid inside: on
 * particles, and on the faces of the grid (sk_inlet), so that neither gravity nor pressure nor viscosity changes it.
 *
 * A source without either keeps its shape filled: where liquid has left, empty sub-cells get particles at rest up to
 * the rest count. The liquid inside moves as all liquid does.
 *
 * A drain removes the particles inside it, all of them or at a rate.
 */
#ifndef SK_METHODS_SOURCES_SOURCES_H
#define SK_METHODS_SOURCES_SOURCES_H

#include "geom/shape.h"
#include "methods/method.h"
#include "methods/sources/stream.h"

extern const sk_method sk_method_sources;

/* A cell of a source that keeps its shape filled; the part of the cell inside the shape. */
typedef struct sk_source_cell {
    float held; /* particles */
    float rest; /* particles at rest, without the part inside obstacles */
    int lacks;
} sk_source_cell;

typedef struct sk_source {
    sk_shape *shape;
    double low[3], high[3]; /* m  bounds within the domain */
    int first[3], size[3];  /*    cells of the domain that the bounds touch */
    uint8_t *sites;         /*    [cells][sub-cells] 1 = inside the shape */
    uint32_t *held;         /*    [cells][sub-cells] particles */
    sk_source_cell *cells;  /*    [cells] */
    int streams;            /*    it has a stream, and nothing above beyond the bounds */
    sk_stream stream;
} sk_source;

typedef struct sk_sources {
    sk_memory *memory;
    int source_count, drain_count;
    int per_axis; /* sub-cells along an axis */
    int sub_cells;
    sk_source *sources;
    sk_source *drains; /* shape and bounds only */
    sk_inlet *inlets;  /* [source_count] for the grid */
} sk_sources;

selkie_code sk_sources_init(sk_sources *sources, const sk_step *step, selkie_error *error);
void sk_sources_free(sk_sources *sources);
/* What sources and drains do with the particles that there are; the GPU has its own form. Particles that begin are
 * appended to the store of the host in every form. */
typedef struct sk_sources_form {
    /* Removes at most `wanted` particles inside a drain. */
    selkie_code (*drain)(sk_step *step, const sk_source *source, int64_t wanted, selkie_error *error);
    /* Number of the particles inside a source. */
    selkie_code (*count_inside)(sk_step *step, const sk_source *source, int64_t *inside, selkie_error *error);
    /* Counts `held` of a source that keeps its shape filled. */
    selkie_code (*survey)(sk_step *step, sk_source *source, selkie_error *error);
    /* Particles inside a stream take its velocity and are flagged; they take it again; the flags are cleared. */
    selkie_code (*drive)(sk_step *step, const sk_source *source, selkie_error *error);
    selkie_code (*keep_driven)(sk_step *step, const sk_source *source, selkie_error *error);
    selkie_code (*end_drive)(sk_step *step, selkie_error *error);
} sk_sources_form;
/* Which streams run in this step: sets the inlets. */
void sk_sources_find_running(sk_step *step);
/* The particles of the host's store inside a running stream take its velocity. */
selkie_code sk_sources_drive(sk_step *step, const sk_source *source, selkie_error *error);
selkie_code sk_sources_run_with(sk_step *step, const sk_sources_form *form, selkie_error *error);
selkie_code sk_sources_emit_with(sk_step *step, const sk_sources_form *form, selkie_error *error);
/* Before the sort: drains, fills, and drives the particles inside streams. */
selkie_code sk_sources_run(sk_step *step, selkie_error *error);
/* After the move: particles that entered during the step. */
selkie_code sk_sources_emit(sk_step *step, selkie_error *error);

#endif
