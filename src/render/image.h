/* An RGB image with 8 bits a channel, and its PNG file. */
#ifndef SK_RENDER_IMAGE_H
#define SK_RENDER_IMAGE_H

#include <stddef.h>
#include <stdint.h>
#include "base/status.h"
#include "render/vector.h"

typedef struct sk_image {
    int width, height;
    uint8_t *pixels; /* [height][width][3], top row first, sRGB */
} sk_image;

enum { SK_IMAGE_MAX_SIDE = 16384 };

/* Black. Sides from 1 to SK_IMAGE_MAX_SIDE. */
selkie_code sk_image_create(sk_image *image, int width, int height, selkie_error *error);
void sk_image_free(sk_image *image);

/* Written beside and renamed. */
selkie_code sk_image_write_png(const sk_image *image, const char *path, selkie_error *error);
/* With a level of compression (1 = fastest, 9 = smallest) and a number of threads; the file does not depend on the
 * threads. */
selkie_code sk_image_write_png_at(const sk_image *image, const char *path, int level, int threads, selkie_error *error);
/* Sides of a PNG file. */
selkie_code sk_image_png_size(const char *path, int *width, int *height, selkie_error *error);

/* Colours are sRGB, 0..1, in what follows. */
static inline uint8_t sk_image_byte(float x)
{
    return (uint8_t)(clampf(x, 0.0f, 1.0f) * 255.0f + 0.5f);
}

/* Inlined, because pictures set every pixel. */
static inline void sk_image_set(sk_image *image, int x, int y, vec3 color)
{
    if (x < 0 || y < 0 || x >= image->width || y >= image->height)
        return;
    uint8_t *p = image->pixels + 3 * ((size_t)y * (size_t)image->width + (size_t)x);
    p[0] = sk_image_byte(color.x);
    p[1] = sk_image_byte(color.y);
    p[2] = sk_image_byte(color.z);
}

static inline void sk_image_blend(sk_image *image, int x, int y, vec3 color, float alpha)
{
    if (x < 0 || y < 0 || x >= image->width || y >= image->height || alpha <= 0.0f)
        return;
    uint8_t *p = image->pixels + 3 * ((size_t)y * (size_t)image->width + (size_t)x);
    alpha = alpha < 1.0f ? alpha : 1.0f;
    p[0] = sk_image_byte(mixf((float)p[0] / 255.0f, color.x, alpha));
    p[1] = sk_image_byte(mixf((float)p[1] / 255.0f, color.y, alpha));
    p[2] = sk_image_byte(mixf((float)p[2] / 255.0f, color.z, alpha));
}

/* Pixels of the rectangle from (x0,y0) to (x1,y1), ends not included. */
void sk_image_fill(sk_image *image, int x0, int y0, int x1, int y1, vec3 color, float alpha);
typedef struct sk_pen {
    float width; /* pixels */
    vec3 color;
    float alpha; /* 0..1 */
} sk_pen;

/* An antialiased line. */
void sk_image_line(sk_image *image, float x0, float y0, float x1, float y1, const sk_pen *pen);

typedef struct sk_text_style {
    float size; /* pixels, height of the letters */
    int align;  /* place of (x, y) on the baseline: 0 left, 1 middle, 2 right end of the text */
    vec3 color;
    float alpha; /* 0..1 */
} sk_text_style;

/* A line of text, by cairo if the build has it, else in a built-in font of few letters. */
void sk_image_text(sk_image *image, float x, float y, const char *text, const sk_text_style *style);

/* Linear light to sRGB, 0..1. */
static inline float sk_to_srgb(float x)
{
    x = clampf(x, 0.0f, 1.0f);
    return x <= 0.0031308f ? 12.92f * x : 1.055f * powf(x, 1.0f / 2.4f) - 0.055f;
}

static inline float sk_from_srgb(float x)
{
    return x <= 0.04045f ? x / 12.92f : powf((x + 0.055f) / 1.055f, 2.4f);
}

#endif
