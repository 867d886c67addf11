/* Stream function of point vortices in a box: the mirror images of all walls, and the copies of periodic sides.
 *
 * Images form a lattice. A row of vortices along one axis has a closed form, with wave w = 2 pi / period:
 *
 *   psi = -1/(4 pi) ln(cosh(w dy) - cos(w dx)).
 *
 * The rows along the other axis converge like exp(-w distance); those above 1e-5 are summed. Two rows at the same
 * distance s above and below multiply to
 *
 *   (cosh(s - a) - c) (cosh(s + a) - c) = c^2 + cosh(a)^2 + sinh(s)^2 - 2 cosh(s) cosh(a) c,
 *
 * so all rows are a product of such terms and one logarithm. Between walls far rows are a short series instead: over
 * cosh(s)^2 the term is 1 + q with q = (c^2 + cosh(a)^2 - 1) / cosh(s)^2 - 2 cosh(a) c / cosh(s), and a vortex and its
 * mirror image along the row, with the cosines cc +- ss, leave
 *
 *   ln(1 + q+) - ln(1 + q-) = ss (-4 cosh(a) / cosh(s) + 4 cc (1 - 2 cosh(a)^2) / cosh(s)^2) + O(q^3).
 *
 * Without mirror images along the row its mean is a field across it, in closed form too.
 */
#ifndef SK_METHODS_REDUCED_IMAGES_H
#define SK_METHODS_REDUCED_IMAGES_H

#include "base/memory.h"
#include "base/status.h"

enum { SK_IMAGE_PAIRS = 16, SK_IMAGE_BLOCK = 16 };

/* Two rows at the distances +-s, over cosh(s)^2: square (c^2 + cosh(a)^2) + constant - product cosh(a) c. */
typedef struct sk_image_pair {
    int mirrored; /* across the row: a is w times the sum of both heights instead of their difference */
    double square, constant, product;
} sk_image_pair;

typedef struct sk_images {
    int along;      /*     axis of the rows */
    int closed[2];  /*     walls at both ends; otherwise periodic */
    double size[2]; /* m */
    double wave;    /* 1/m */
    int pair_count; /*     beside the row of the vortex itself, as products */
    sk_image_pair pairs[SK_IMAGE_PAIRS];
    double far[2][2]; /*   sums of 4 / cosh(s) and 4 / cosh(s)^2 over the other pairs, and over the mirrored ones */
} sk_images;

/* What a point contributes to all pairs: cosine and sine along the row, exp(w y) and its inverse across it, with y from
 * the middle of the box. Arrays of `count` points, and SK_IMAGE_BLOCK more places of any finite value. */
typedef struct sk_image_points {
    int count;
    double *across; /* m */
    double *cosine, *sine, *growth, *decay;
} sk_image_points;

selkie_code sk_images_make(sk_images *images, const double size[2], const int closed[2], selkie_error *error);
void sk_images_place(const sk_images *images, int n, const double x[2], sk_image_points *points);

/* Stream function (m2/s) at point i of unit vortices at points j = first .. end - 1, to 1e-8 for points that are more
 * than 1 % of the box apart. Includes the vortex itself: infinite at i = j. */
void sk_images_streams(const sk_images *images, const sk_image_points *points, int i, int first, int end,
                       double *streams);
/* The same of all images, without the vortex itself at the distance d (m) from the point. */
double sk_images_regular(const sk_images *images, const sk_image_points *points, int i, int j, const double d[2]);

#endif
