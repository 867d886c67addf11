#include "methods/reduced/images.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define PI 3.14159265358979323846
static const double smallest = 1e-5; /* part of a row that is left out */
static const double small = 3e-3;    /* part of a row that is a series */

/* Pairs of rows for one choice of the axis. Returns the number of products. */
static int list_pairs(sk_images *images, sk_image_pair *pairs)
{
    const int other = !images->along, closed = images->closed[other];
    const double size = images->size[other], period = closed ? 2.0 * size : size;
    int count = 0;
    memset(images->far, 0, sizeof images->far);
    for (int mirrored = 0; mirrored <= closed; mirrored++)
        for (int m = !mirrored;; m++) {
            const double distance = mirrored ? m * period + size : m * period, c = cosh(images->wave * distance);
            const double part = exp(-images->wave * (distance - size));
            if (part <= smallest)
                break;
            if (part <= small && images->closed[images->along]) {
                images->far[mirrored][0] += 4.0 / c;
                images->far[mirrored][1] += 4.0 / (c * c);
                continue;
            }
            if (pairs && count < SK_IMAGE_PAIRS)
                pairs[count] = (sk_image_pair){mirrored, 1.0 / (c * c), 1.0 - 1.0 / (c * c), 2.0 / c};
            count++;
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

    /* The far rows. */
    double rest = 0.0;
    for (int m = 0; m < 2; m++)
        rest += (m ? -1.0 : 1.0) *
                (images->far[m][1] * cc * (1.0 - 2.0 * across[m] * across[m]) - images->far[m][0] * across[m]);

    /* The vortex itself: cosh - cos over half of the squared distance. */
    const double distance = images->wave * images->wave * (d[0] * d[0] + d[1] * d[1]);
    double own = 1.0;
    if (distance > 0.0) {
        const double a = sinh(0.5 * images->wave * d[!images->along]), b = sin(0.5 * images->wave * d[images->along]);
        own = 4.0 * (a * a + b * b) / distance;
    }
    return -(log(own * value[0] / value[1] * (0.5 * images->wave * images->wave)) + ss * rest +
             mean_part(images, points->across[i], points->across[j])) /
           (4.0 * PI);
}

/* --- Many pairs at once --- */

/* Distances in doubles: near points have cosh - cos next to 0. What is left in floats. */
enum { LANES = 4 };
typedef double lanes __attribute__((vector_size(LANES * sizeof(double)), aligned(sizeof(double))));
typedef float floats __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float))));
typedef int32_t integers __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float))));

/* The logarithm of a / b, both positive and normal, to 3e-8. With the mantissas m and n around 1, ln(m / n) is
 * 2 atanh((m - n) / (m + n)). */
static inline lanes logarithm_of_ratio(floats a, floats b)
{
    const integers low = {0x3f3504f3, 0x3f3504f3, 0x3f3504f3, 0x3f3504f3};
    const integers first = ((integers)a - low) >> 23, second = ((integers)b - low) >> 23;
    const floats m = (floats)((integers)a - (first << 23)), n = (floats)((integers)b - (second << 23));
    const floats t = (m - n) / (m + n), x = t * t, x2 = x * x, x4 = x2 * x2;
    const floats series = (1.0f + x * (1.0f / 3)) + x2 * (1.0f / 5 + x * (1.0f / 7)) +
                          x4 * (1.0f / 9 + x * (1.0f / 11) + x2 * (1.0f / 13));
    return __builtin_convertvector(first - second, lanes) * 0.69314718055994530942 +
           __builtin_convertvector(2.0f * t * series, lanes);
}

static inline lanes load(const double *from)
{
    return *(const lanes *)(const void *)from;
}

/* A block of points: chains of dependent operations of several of them overlap. */
enum { GROUPS = SK_IMAGE_BLOCK / LANES };

typedef struct block {
    floats c[2];            /* cosines of the vortex and of its mirror image along the row, */
    floats difference, sum; /* cosh across the rows, of both kinds of pairs, */
    floats same, opposite;  /* and products of near rows by their circulation */
} block;

/* Between point i and the points of a block: their own row. */
static inline void begin_rows(const sk_images *images, const sk_image_points *points, int i, int j, block *b)
{
    const int closed = images->closed[images->along];
    const double up = 0.5 * points->growth[i], down = 0.5 * points->decay[i];
    for (int g = 0; g < GROUPS; g++, j += LANES) {
        const lanes cc = points->cosine[i] * load(points->cosine + j), ss = points->sine[i] * load(points->sine + j);
        const lanes growth = load(points->growth + j), decay = load(points->decay + j);
        const lanes near = up * decay + down * growth, far = up * growth + down * decay;
        b[g].c[0] = __builtin_convertvector(cc + ss, floats);
        b[g].c[1] = __builtin_convertvector(cc - ss, floats);
        b[g].difference = __builtin_convertvector(near, floats);
        b[g].sum = __builtin_convertvector(far, floats);
        b[g].same = __builtin_convertvector(near - (cc + ss), floats);
        b[g].opposite = closed ? b[g].difference - b[g].c[1] : 0.0f * b[g].sum + 1.0f;
    }
}

/* A pair of near rows. Without walls along the rows, mirrored ones alone have the opposite circulation. */
static inline void multiply_pair(const sk_image_pair *p, int closed, block *b)
{
    const float square = (float)p->square, constant = (float)p->constant, product = (float)p->product;
    for (int g = 0; g < GROUPS; g++) {
        const floats a = p->mirrored ? b[g].sum : b[g].difference, *c = b[g].c, a2 = a * a;
        const floats value = square * (c[0] * c[0] + a2) + (constant - product * a * c[0]);
        const floats image = square * (c[1] * c[1] + a2) + (constant - product * a * c[1]);
        if (p->mirrored)
            b[g].opposite *= value;
        else
            b[g].same *= value;
        if (p->mirrored && closed)
            b[g].same *= image;
        else if (closed)
            b[g].opposite *= image;
    }
}

/* The logarithm of all rows: that of the products, and the series of far rows. */
static inline void end_rows(const sk_images *images, const block *b, lanes *streams)
{
    const float far[4] = {(float)images->far[0][0], (float)images->far[1][0], (float)images->far[0][1],
                          (float)images->far[1][1]};
    for (int g = 0; g < GROUPS; g++) {
        const floats cosines = 0.5f * (b[g].c[0] + b[g].c[1]), sines = 0.5f * (b[g].c[0] - b[g].c[1]);
        const floats d = b[g].difference, s = b[g].sum;
        const floats rest = sines * (far[1] * s - far[0] * d +
                                     cosines * ((far[2] - far[3]) + 2.0f * (far[3] * (s * s) - far[2] * (d * d))));
        streams[g] =
            (logarithm_of_ratio(b[g].same, b[g].opposite) + __builtin_convertvector(rest, lanes)) * (-1.0 / (4.0 * PI));
    }
}

void sk_images_streams(const sk_images *images, const sk_image_points *points, int i, int first, int end,
                       double *streams)
{
    const int closed = images->closed[images->along];
    for (int begin = first; begin < end; begin += SK_IMAGE_BLOCK) {
        block b[GROUPS];
        lanes value[GROUPS];
        const int many = end - begin < SK_IMAGE_BLOCK ? end - begin : SK_IMAGE_BLOCK;
        begin_rows(images, points, i, begin, b);
        for (int n = 0; n < images->pair_count; n++)
            multiply_pair(&images->pairs[n], closed, b);
        end_rows(images, b, value);
        memcpy(streams + begin - first, value, (size_t)many * sizeof *streams);
    }
    if (!images->closed[images->along])
        for (int j = first; j < end; j++)
            streams[j - first] -= mean_part(images, points->across[i], points->across[j]) / (4.0 * PI);
}
