/* Stream function of point vortices in a box: the mirror images of all walls, and the copies of periodic sides.
 *
 * Images form a lattice. A row of vortices along one axis has a closed form, with wave w = 2 pi / period:
 *
 *   psi = -1/(4 pi) ln(cosh(w dy) - cos(w dx)).
 *
 * The rows along the other axis converge like exp(-w distance); those above 1e-5 are summed. With q = exp(-w |dy|) a
 * term is |dy| w + ln(1 - 2 q cos(w dx) + q^2), so rows are a product of polynomials and one logarithm. What is left
 * of the terms |dy| w is the field of a mean along the row, in closed form too.
 */
#ifndef SK_METHODS_REDUCED_IMAGES_H
#define SK_METHODS_REDUCED_IMAGES_H

#include "base/memory.h"
#include "base/status.h"

enum { SK_IMAGE_ROWS = 32 };

typedef struct sk_image_row {
    int mirrored;  /* of the other axis: + y of the source instead of - y */
    int direction; /* 1: the row lies above the box, -1: below; 0: the row of the vortex itself */
    int sign;      /* of its circulation */
    double factor; /* exp(-w distance), for both points in the middle of the box */
} sk_image_row;

typedef struct sk_images {
    int along;      /*     axis of the rows */
    int closed[2];  /*     walls at both ends; otherwise periodic */
    double size[2]; /* m */
    double wave;    /* 1/m */
    int row_count;  /*     the first one is the row of the vortex itself */
    sk_image_row rows[SK_IMAGE_ROWS];
} sk_images;

/* What a point contributes to all pairs: cosine and sine along the row, exp(w y) and its inverse across it. Arrays of
 * `count` points. */
typedef struct sk_image_points {
    int count;
    double *across; /* m */
    double *cosine, *sine, *growth, *decay;
} sk_image_points;

selkie_code sk_images_make(sk_images *images, const double size[2], const int closed[2], selkie_error *error);
void sk_images_place(const sk_images *images, int n, const double x[2], sk_image_points *points);

/* Stream function (m2/s) at point i of unit vortices at points j = first .. end - 1. `product` is scratch for
 * 2 (end - first). Includes the vortex itself: infinite at i = j. */
void sk_images_streams(const sk_images *images, const sk_image_points *points, int i, int first, int end,
                       double *product, double *streams);
/* The same of all images, without the vortex itself at distance (dx, dy) from the point. */
double sk_images_regular(const sk_images *images, const sk_image_points *points, int i, int j, const double d[2]);

#endif
