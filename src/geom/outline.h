/* Outlines of 2D shapes: one closed polygon, counter-clockwise.
 *
 * Circles become regular polygons of the same area. Sides are cut into pieces of about equal length, so that a method
 * can put an unknown on each.
 */
#ifndef SK_GEOM_OUTLINE_H
#define SK_GEOM_OUTLINE_H

#include "geom/shape.h"

typedef struct sk_outline {
    sk_memory *memory;
    int count;
    double (*corners)[2]; /* m [count] piece i goes from corner i to the next one; the inside is on its left */
} sk_outline;

/* Pieces of about `length` (m), shorter towards corners, where flows are singular; at least three a side for polygons
 * of few sides. Outlines of many sides that are shorter than that are sampled at even distances. Unions and outlines of
 * several loops are an error; the message begins with `what`. */
selkie_code sk_outline_create(const sk_shape *shape, double length, const char *what, sk_memory *memory,
                              sk_outline *outline, selkie_error *error);
/* A regular polygon with the area of the circle. */
selkie_code sk_outline_circle(const double center[2], double radius, int count, sk_memory *memory, sk_outline *outline,
                              selkie_error *error);
/* The pieces of a polygon of `count` corners (m), counter-clockwise. */
selkie_code sk_outline_polygon(int count, const double (*corners)[2], double length, sk_memory *memory,
                               sk_outline *outline, selkie_error *error);
void sk_outline_free(sk_outline *outline);

#endif
