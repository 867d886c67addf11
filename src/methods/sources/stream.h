/* The stream of a source with a velocity or a flow rate.
 *
 * The shape is filled at the start. Then particles enter at its back and move through it with the velocity of the
 * source. They come in layers across the velocity, a lattice with the spacing of particles at rest. The distance of the
 * layers follows from the section, so that the liquid has its rest density whatever the shape. The k-th particle enters
 * at k / rate after the start: the volume follows from the time alone, whatever happens to the liquid.
 */
#ifndef SK_METHODS_SOURCES_STREAM_H
#define SK_METHODS_SOURCES_STREAM_H

#include "geom/shape.h"
#include "methods/method.h"

typedef struct sk_stream {
    double direction[3]; /*      unit */
    double velocity[3];  /* m/s  */
    double speed;        /* m/s  */
    double rate;         /* 1/s  particles */
    double layer;        /* m    distance of two layers */
    double spacing;      /* m    of the points of a layer */
    int64_t point_count;
    int64_t stride;      /*      points of a layer enter in steps of this, so that a part of a layer covers all of it */
    double (*points)[3]; /* m    [point_count] where the lines of the lattice enter the shape */
    double *lengths;     /* m    [point_count] of the lines in the shape */
} sk_stream;

/* Input of a stream. */
typedef struct sk_stream_source {
    const sk_shape *shape;
    const selkie_shape *def;
    double velocity[3]; /* m/s         */
    double flow_rate;   /* m3/s, m2/s  0 = from the velocity */
    double spacing;     /* m           of particles */
    const char *what;   /*             for messages */
} sk_stream_source;

selkie_code sk_stream_init(sk_stream *stream, const sk_stream_source *source, const sk_step *step, selkie_error *error);
void sk_stream_free(sk_stream *stream, sk_memory *memory);
/* Number of particles that enter within `duration` (s) of the start. */
int64_t sk_stream_count(const sk_stream *stream, double duration);
/* Where particle k is at `duration` after the start, without jitter. */
void sk_stream_place(const sk_stream *stream, int64_t k, double duration, double x[3]);

/* The particles that fill the shape at the start, line by line: begin with {0}. Returns 0 at the end. */
typedef struct sk_stream_filling {
    int64_t point;
    int64_t place; /* in the line */
    double before; /* particles of the lines before */
} sk_stream_filling;
int sk_stream_fill(const sk_stream *stream, sk_stream_filling *filling, double duration, double x[3]);

#endif
