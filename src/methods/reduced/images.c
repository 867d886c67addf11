#include "methods/reduced/images.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846
static const double smallest = 1e-5; /* part of a row that is left out */

/* Rows for one choice of the axis. `distance` is the least from a row to a point of the box, in both cases relative to
 * two points in the middle: |dy| = offset -+ the sum or difference of their heights. */
static int list_rows(const sk_images *images, sk_image_row *rows)
{
    const int other = !images->along, closed = images->closed[other];
    const double size = images->size[other], period = closed ? 2.0 * size : size;
    int count = 0;
    if (rows)
        rows[count] = (sk_image_row){0, 0, 1, 1.0};
    count++;
    for (int m = 1; exp(-images->wave * (m * period - size)) > smallest; m++)
        for (int direction = -1; direction <= 1; direction += 2, count++)
            if (rows && count < SK_IMAGE_ROWS)
                rows[count] = (sk_image_row){0, direction, 1, exp(-images->wave * m * period)};
    for (int m = 0; closed && exp(-images->wave * m * period) > smallest; m++)
        for (int direction = -1; direction <= 1; direction += 2, count++)
            if (rows && count < SK_IMAGE_ROWS)
                rows[count] = (sk_image_row){1, direction, -1, exp(-images->wave * (m * period + size))};
    return count;
}

selkie_code sk_images_make(sk_images *images, const double size[2], const int closed[2], selkie_error *error)
{
    int count[2];
    memset(images, 0, sizeof *images);
    for (int d = 0; d < 2; d++) {
        images->size[d] = size[d];
        images->closed[d] = closed[d];
    }
    for (int d = 0; d < 2; d++) {
        images->along = d;
        images->wave = closed[d] ? PI / size[d] : 2.0 * PI / size[d];
        count[d] = list_rows(images, NULL);
    }
    images->along = count[1] < count[0];
    images->wave = (closed[images->along] ? 1.0 : 2.0) * PI / size[images->along];
    images->row_count = count[images->along];
    if (images->row_count > SK_IMAGE_ROWS || !(images->wave * size[!images->along] < 300.0))
        return sk_fail(error, SELKIE_ERROR_INPUT, "bodies: the domain of %g x %g m is too slender for their images",
                       size[0], size[1]);
    list_rows(images, images->rows);
    return SELKIE_OK;
}

void sk_images_place(const sk_images *images, int n, const double x[2], sk_image_points *points)
{
    const double along = images->wave * x[images->along];
    const double across = x[!images->along] - 0.5 * images->size[!images->along];
    points->across[n] = across;
    points->cosine[n] = cos(along);
    points->sine[n] = sin(along);
    points->growth[n] = exp(images->wave * across);
    points->decay[n] = 1.0 / points->growth[n];
}

/* What is left of the terms w |dy|: zero where both ends are walls along the row, since a vortex and its mirror image
 * cancel. Otherwise the Green's function of the mean along the row, 0 at walls, without a mean flow. */
static double mean_part(const sk_images *images, double a, double b)
{
    const double size = images->size[!images->along];
    if (images->closed[images->along])
        return 0.0;
    if (!images->closed[!images->along])
        return images->wave * (fabs(a - b) - (a - b) * (a - b) / size);
    a += 0.5 * size;
    b += 0.5 * size;
    return images->wave * (2.0 * a * b / size - 2.0 * fmin(a, b));
}

/* exp(-w |dy|) of the row between points i and j. */
static double nearness(const sk_image_row *row, const sk_image_points *points, int i, int j)
{
    if (row->direction == 0)
        return points->across[i] > points->across[j] ? points->decay[i] * points->growth[j]
                                                     : points->growth[i] * points->decay[j];
    const double own = row->direction > 0 ? points->growth[i] : points->decay[i];
    const double other = (row->direction > 0) == row->mirrored ? points->growth[j] : points->decay[j];
    return row->factor * own * other;
}

double sk_images_regular(const sk_images *images, const sk_image_points *points, int i, int j, const double d[2])
{
    const double cc = points->cosine[i] * points->cosine[j], ss = points->sine[i] * points->sine[j];
    const int mirrored = images->closed[images->along];
    double value[2] = {1.0, 1.0}; /* of positive and negative circulation */
    for (int n = 0; n < images->row_count; n++) {
        const sk_image_row *row = &images->rows[n];
        const double q = nearness(row, points, i, j);
        if (n > 0)
            value[row->sign < 0] *= 1.0 + q * (q - 2.0 * (cc + ss));
        if (mirrored)
            value[row->sign > 0] *= 1.0 + q * (q - 2.0 * (cc - ss));
    }

    /* The vortex itself: (1 - 2 q cos + q^2) over its limit (w r)^2. */
    const double distance = images->wave * images->wave * (d[0] * d[0] + d[1] * d[1]);
    double own = 1.0;
    if (distance > 0.0) {
        const double a = images->wave * fabs(d[!images->along]), s = sin(0.5 * images->wave * d[images->along]),
                     e = -expm1(-a);
        own = (e * e + 4.0 * exp(-a) * s * s) / distance;
    }
    return -(log(own * value[0] / value[1]) + 2.0 * log(images->wave) +
             mean_part(images, points->across[i], points->across[j])) /
           (4.0 * PI);
}

void sk_images_streams(const sk_images *images, const sk_image_points *points, int i, int first, int end,
                       double *product, double *streams)
{
    const int count = end - first, mirrored = images->closed[images->along];
    const double *cosine = points->cosine + first, *sine = points->sine + first;
    const double ci = points->cosine[i], si = points->sine[i];
    double *up = product, *down = product + count;

    /* The row of the vortex itself: above or below differs from point to point. */
    for (int j = 0; j < count; j++) {
        const double q = nearness(&images->rows[0], points, i, first + j), cc = ci * cosine[j], ss = si * sine[j];
        up[j] = 1.0 + q * (q - 2.0 * (cc + ss));
        down[j] = mirrored ? 1.0 + q * (q - 2.0 * (cc - ss)) : 1.0;
    }

    for (int n = 1; n < images->row_count; n++) {
        const sk_image_row *row = &images->rows[n];
        const double own = row->factor * (row->direction > 0 ? points->growth[i] : points->decay[i]);
        const double *other = ((row->direction > 0) == row->mirrored ? points->growth : points->decay) + first;
        double *same = row->sign > 0 ? up : down, *opposite = row->sign > 0 ? down : up;
        if (mirrored)
            for (int j = 0; j < count; j++) {
                const double q = own * other[j], cc = 2.0 * ci * cosine[j], ss = 2.0 * si * sine[j];
                same[j] *= 1.0 + q * (q - (cc + ss));
                opposite[j] *= 1.0 + q * (q - (cc - ss));
            }
        else
            for (int j = 0; j < count; j++) {
                const double q = own * other[j];
                same[j] *= 1.0 + q * (q - 2.0 * (ci * cosine[j] + si * sine[j]));
            }
    }
    for (int j = 0; j < count; j++)
        streams[j] =
            -(log(up[j] / down[j]) + mean_part(images, points->across[i], points->across[first + j])) / (4.0 * PI);
}
