#include "methods/reduced/images.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define PI 3.14159265358979323846
static const double smallest = 1e-5; /* part of a row that is left out */

/* Pairs of rows for one choice of the axis. Returns their number. */
static int list_pairs(const sk_images *images, sk_image_pair *pairs)
{
    const int other = !images->along, closed = images->closed[other];
    const double size = images->size[other], period = closed ? 2.0 * size : size;
    int count = 0;
    for (int mirrored = 0; mirrored <= closed; mirrored++)
        for (int m = !mirrored;; m++, count++) {
            const double distance = mirrored ? m * period + size : m * period;
            if (exp(-images->wave * (distance - size)) <= smallest)
                break;
            const double c = cosh(images->wave * distance);
            if (pairs && count < SK_IMAGE_PAIRS)
                pairs[count] = (sk_image_pair){mirrored, 1.0 / (c * c), 1.0 - 1.0 / (c * c), 2.0 / c};
        }
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
        count[d] = list_pairs(images, NULL);
    }
    images->along = count[1] < count[0];
    images->wave = (closed[images->along] ? 1.0 : 2.0) * PI / size[images->along];
    images->pair_count = count[images->along];
    if (images->pair_count > SK_IMAGE_PAIRS || !(images->wave * size[!images->along] < 100.0))
        return sk_fail(error, SELKIE_ERROR_INPUT, "bodies: the domain of %g x %g m is too slender for their images",
                       size[0], size[1]);
    list_pairs(images, images->pairs);
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

/* Without mirror images along the row, ln(cosh(a) - c) grows like a. This makes it the Green's function of the mean
 * along the row: 0 at walls, or periodic, without a mean flow. */
static double mean_part(const sk_images *images, double a, double b)
{
    const double size = images->size[!images->along];
    if (images->closed[images->along])
        return 0.0;
    if (!images->closed[!images->along])
        return -images->wave * (a - b) * (a - b) / size + log(2.0);
    a += 0.5 * size;
    b += 0.5 * size;
    return images->wave * (2.0 * a * b / size - a - b) + log(2.0);
}

double sk_images_regular(const sk_images *images, const sk_image_points *points, int i, int j, const double d[2])
{
    const double cc = points->cosine[i] * points->cosine[j], ss = points->sine[i] * points->sine[j];
    const double growth = points->growth[i], decay = points->decay[i];
    const double across[2] = {0.5 * (growth * points->decay[j] + decay * points->growth[j]),
                              0.5 * (growth * points->growth[j] + decay * points->decay[j])};
    const int mirrored = images->closed[images->along];
    double value[2] = {1.0, mirrored ? across[0] - (cc - ss) : 1.0}; /* of positive and negative circulation */
    for (int n = 0; n < images->pair_count; n++) {
        const sk_image_pair *p = &images->pairs[n];
        const double a = across[p->mirrored];
        for (int image = 0; image <= mirrored; image++) {
            const double c = image ? cc - ss : cc + ss;
            value[image != p->mirrored] *= p->square * (c * c + a * a) + p->constant - p->product * a * c;
        }
    }

    /* The vortex itself: cosh - cos over half of the squared distance. */
    const double distance = images->wave * images->wave * (d[0] * d[0] + d[1] * d[1]);
    double own = 1.0;
    if (distance > 0.0) {
        const double a = sinh(0.5 * images->wave * d[!images->along]), b = sin(0.5 * images->wave * d[images->along]);
        own = 4.0 * (a * a + b * b) / distance;
    }
    return -(log(own * value[0] / value[1]) + log(0.5 * images->wave * images->wave) +
             mean_part(images, points->across[i], points->across[j])) /
           (4.0 * PI);
}

/* --- Many pairs at once --- */

enum { LANES = 4 };
typedef double lanes __attribute__((vector_size(LANES * sizeof(double)), aligned(sizeof(double))));
typedef int64_t integers __attribute__((vector_size(LANES * sizeof(double)), aligned(sizeof(double))));

/* The logarithm of a / b, both positive and normal, to 1e-9. With the mantissas m and n around 1, ln(m / n) is
 * 2 atanh((m - n) / (m + n)). */
static inline lanes logarithm_of_ratio(lanes a, lanes b)
{
    const integers low = {0x3fe6a09e667f3bcd, 0x3fe6a09e667f3bcd, 0x3fe6a09e667f3bcd, 0x3fe6a09e667f3bcd};
    const integers first = ((integers)a - low) >> 52, second = ((integers)b - low) >> 52;
    const lanes m = (lanes)((integers)a - (first << 52)), n = (lanes)((integers)b - (second << 52));
    const lanes t = (m - n) / (m + n), x = t * t, x2 = x * x, x4 = x2 * x2;
    const lanes series = (1.0 + x * (1.0 / 3) + x2 * (1.0 / 5 + x * (1.0 / 7))) +
                         x4 * (1.0 / 9 + x * (1.0 / 11) + x2 * (1.0 / 13 + x * (1.0 / 15)));
    return __builtin_convertvector(first - second, lanes) * 0.69314718055994530942 + 2.0 * t * series;
}

static inline lanes load(const double *from)
{
    return *(const lanes *)(const void *)from;
}

/* The products of all rows of the same and of opposite circulation, between point i and four points. */
static inline void multiply_rows(const sk_images *images, const sk_image_points *points, int i, int j, lanes product[2])
{
    const lanes cc = points->cosine[i] * load(points->cosine + j), ss = points->sine[i] * load(points->sine + j);
    const lanes growth = load(points->growth + j), decay = load(points->decay + j);
    const double up = 0.5 * points->growth[i], down = 0.5 * points->decay[i];
    const lanes difference = up * decay + down * growth, sum = up * growth + down * decay;
    const lanes c[2] = {cc + ss, cc - ss}, square[2] = {c[0] * c[0], c[1] * c[1]};
    if (!images->closed[images->along]) {
        lanes same = difference - c[0], opposite = 0.0 * cc + 1.0;
        for (int n = 0; n < images->pair_count; n++) {
            const sk_image_pair *p = &images->pairs[n];
            const lanes a = p->mirrored ? sum : difference;
            const lanes value = p->square * (square[0] + a * a) + (p->constant - p->product * a * c[0]);
            same *= p->mirrored ? 0.0 * cc + 1.0 : value;
            opposite *= p->mirrored ? value : 0.0 * cc + 1.0;
        }
        product[0] = same;
        product[1] = opposite;
        return;
    }

    /* Between walls: vortex, its mirror image along the row; pairs; mirrored pairs have the opposite sign. */
    lanes same = difference - c[0], opposite = difference - c[1];
    int n = 0;
    for (lanes a = difference; n < images->pair_count && !images->pairs[n].mirrored; n++) {
        const sk_image_pair *p = &images->pairs[n];
        const lanes a2 = a * a, twice = p->product * a;
        same *= p->square * (square[0] + a2) + (p->constant - twice * c[0]);
        opposite *= p->square * (square[1] + a2) + (p->constant - twice * c[1]);
    }
    for (lanes a = sum; n < images->pair_count; n++) {
        const sk_image_pair *p = &images->pairs[n];
        const lanes a2 = a * a, twice = p->product * a;
        same *= p->square * (square[1] + a2) + (p->constant - twice * c[1]);
        opposite *= p->square * (square[0] + a2) + (p->constant - twice * c[0]);
    }
    product[0] = same;
    product[1] = opposite;
}

/* Two loops over a short block: chains of dependent operations of several pairs then overlap. */
void sk_images_streams(const sk_images *images, const sk_image_points *points, int i, int first, int end,
                       double *streams)
{
    enum { BLOCK = 8 };
    lanes product[BLOCK][2];
    for (int begin = first; begin < end; begin += BLOCK * LANES) {
        const int stop = end - begin < BLOCK * LANES ? end : begin + BLOCK * LANES;
        for (int j = begin, n = 0; j < stop; j += LANES, n++)
            multiply_rows(images, points, i, j, product[n]);
        for (int j = begin, n = 0; j < stop; j += LANES, n++) {
            const lanes value = logarithm_of_ratio(product[n][0], product[n][1]) * (-1.0 / (4.0 * PI));
            if (stop - j >= LANES)
                *(lanes *)(void *)(streams + j - first) = value;
            for (int k = 0; stop - j < LANES && k < stop - j; k++)
                streams[j - first + k] = value[k];
        }
    }
    if (!images->closed[images->along])
        for (int j = first; j < end; j++)
            streams[j - first] -= mean_part(images, points->across[i], points->across[j]) / (4.0 * PI);
}
