#include "render/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/atomic_file.h"
#include "selkie_config.h"

#if SELKIE_HAVE_PNG
#include <png.h>
#endif

selkie_code sk_image_create(sk_image *image, int width, int height, selkie_error *error)
{
    memset(image, 0, sizeof *image);
    if (width < 1 || height < 1 || width > SK_IMAGE_MAX_SIDE || height > SK_IMAGE_MAX_SIDE)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "a picture of %d x %d pixels cannot be made, each side must be 1 to %d", width, height,
                       SK_IMAGE_MAX_SIDE);
    image->pixels = sk_allocate_zeroed(NULL, (size_t)width * (size_t)height * 3);
    if (!image->pixels)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "no memory, %.1f MiB for a picture of %d x %d pixels",
                       (double)width * height * 3 / 1048576.0, width, height);
    image->width = width;
    image->height = height;
    return SELKIE_OK;
}

void sk_image_free(sk_image *image)
{
    sk_release(NULL, image->pixels);
    memset(image, 0, sizeof *image);
}

/* --- PNG --- */

#if SELKIE_HAVE_PNG

/* libpng fails by longjmp; this keeps its message for the caller. */
typedef struct png_target {
    sk_atomic_file *file;
    selkie_code code;
    selkie_error *error;
    char message[200];
} png_target;

static void png_stop(png_structp png, png_const_charp message)
{
    png_target *target = png_get_error_ptr(png);
    strncpy(target->message, message, sizeof target->message - 1);
    png_longjmp(png, 1);
}

static void png_ignore(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static void png_put(png_structp png, png_bytep data, png_size_t bytes)
{
    png_target *target = png_get_io_ptr(png);
    target->code = sk_atomic_write(target->file, data, bytes, target->error);
    if (target->code)
        png_error(png, "write failed");
}

static void png_flush_nothing(png_structp png)
{
    (void)png;
}

/* 1 on success. A function of its own, so that no local variable lives across the jump. */
static int png_encode(png_structp png, png_infop info, const sk_image *image, png_target *target)
{
    if (setjmp(png_jmpbuf(png)))
        return 0;
    png_set_write_fn(png, target, png_put, png_flush_nothing);
    png_set_IHDR(png, info, (png_uint_32)image->width, (png_uint_32)image->height, 8, PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    /* One filter and a low compression level: much faster for slightly larger files. */
    png_set_filter(png, 0, PNG_FILTER_SUB);
    png_set_compression_level(png, 4);
    png_write_info(png, info);
    for (int y = 0; y < image->height; ++y)
        png_write_row(png, image->pixels + (size_t)y * (size_t)image->width * 3);
    png_write_end(png, info);
    return 1;
}

selkie_code sk_image_write_png(const sk_image *image, const char *path, selkie_error *error)
{
    png_target target = {.error = error};
    SK_TRY(sk_atomic_open(path, 0, &target.file, error));
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &target, png_stop, png_ignore);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    selkie_code code = SELKIE_OK;
    if (!info)
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "%s: libpng cannot be started", path);
    else if (!png_encode(png, info, image, &target))
        code =
            target.code ? target.code : sk_fail(error, SELKIE_ERROR_FILE, "%s: libpng says: %s", path, target.message);
    png_destroy_write_struct(&png, &info);
    return sk_atomic_finish(&target.file, code, error);
}

#else

selkie_code sk_image_write_png(const sk_image *image, const char *path, selkie_error *error)
{
    (void)image;
    return sk_fail(error, SELKIE_ERROR_UNSUPPORTED,
                   "%s: this build cannot write pictures; install libpng (Debian: libpng-dev) and build again", path);
}

#endif

selkie_code sk_image_png_size(const char *path, int *width, int *height, selkie_error *error)
{
    static const unsigned char signature[16] = {0x89, 'P', 'N', 'G', 13, 10, 26, 10, 0, 0, 0, 13, 'I', 'H', 'D', 'R'};
    unsigned char start[24];
    FILE *file = fopen(path, "rb");
    if (!file)
        return sk_fail(error, SELKIE_ERROR_FILE, "%s: cannot be opened", path);
    size_t bytes = fread(start, 1, sizeof start, file);
    fclose(file);
    if (bytes != sizeof start || memcmp(start, signature, sizeof signature) != 0 || start[16] || start[20])
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: not a PNG picture that can be used", path);
    *width = start[17] << 16 | start[18] << 8 | start[19];
    *height = start[21] << 16 | start[22] << 8 | start[23];
    return SELKIE_OK;
}

/* --- Drawing --- */

static uint8_t to_byte(float x)
{
    return (uint8_t)(clampf(x, 0.0f, 1.0f) * 255.0f + 0.5f);
}

void sk_image_set(sk_image *image, int x, int y, vec3 color)
{
    if (x < 0 || y < 0 || x >= image->width || y >= image->height)
        return;
    uint8_t *p = image->pixels + 3 * ((size_t)y * (size_t)image->width + (size_t)x);
    p[0] = to_byte(color.x);
    p[1] = to_byte(color.y);
    p[2] = to_byte(color.z);
}

void sk_image_blend(sk_image *image, int x, int y, vec3 color, float alpha)
{
    if (x < 0 || y < 0 || x >= image->width || y >= image->height || alpha <= 0.0f)
        return;
    uint8_t *p = image->pixels + 3 * ((size_t)y * (size_t)image->width + (size_t)x);
    alpha = alpha < 1.0f ? alpha : 1.0f;
    p[0] = to_byte(mixf((float)p[0] / 255.0f, color.x, alpha));
    p[1] = to_byte(mixf((float)p[1] / 255.0f, color.y, alpha));
    p[2] = to_byte(mixf((float)p[2] / 255.0f, color.z, alpha));
}

void sk_image_fill(sk_image *image, int x0, int y0, int x1, int y1, vec3 color, float alpha)
{
    for (int y = y0 < 0 ? 0 : y0; y < y1 && y < image->height; ++y)
        for (int x = x0 < 0 ? 0 : x0; x < x1 && x < image->width; ++x)
            sk_image_blend(image, x, y, color, alpha);
}

void sk_image_line(sk_image *image, float x0, float y0, float x1, float y1, const sk_pen *pen)
{
    /* Clips the line to the picture: the loop below visits every pixel along it. */
    float margin = pen->width + 2.0f, t0 = 0.0f, t1 = 1.0f;
    const float start[2] = {x0, y0}, way[2] = {x1 - x0, y1 - y0};
    const float limit[2] = {(float)image->width + margin, (float)image->height + margin};
    for (int a = 0; a < 2; ++a) {
        if (!isfinite(start[a]) || !isfinite(way[a]))
            return;
        if (fabsf(way[a]) < 1e-6f) {
            if (start[a] < -margin || start[a] > limit[a])
                return;
            continue;
        }
        float enter = (-margin - start[a]) / way[a], leave = (limit[a] - start[a]) / way[a];
        t0 = fmaxf(t0, fminf(enter, leave));
        t1 = fminf(t1, fmaxf(enter, leave));
    }
    if (t0 >= t1)
        return;
    float ax = x0 + t0 * way[0], ay = y0 + t0 * way[1], bx = x0 + t1 * way[0], by = y0 + t1 * way[1];
    float dx = bx - ax, dy = by - ay, square = fmaxf(dx * dx + dy * dy, 1e-12f);

    /* Along the longer direction, blends a few pixels to each side. */
    int steep = fabsf(dy) > fabsf(dx);
    int first = (int)floorf(fminf(steep ? ay : ax, steep ? by : bx) - margin);
    int last = (int)ceilf(fmaxf(steep ? ay : ax, steep ? by : bx) + margin);
    int spread = (int)ceilf(pen->width * 0.75f) + 2;
    for (int u = first; u <= last; ++u) {
        float t = steep ? ((float)u - ay) / (dy == 0 ? 1 : dy) : ((float)u - ax) / (dx == 0 ? 1 : dx);
        float centre = steep ? ax + clampf(t, 0, 1) * dx : ay + clampf(t, 0, 1) * dy;
        for (int v = (int)floorf(centre) - spread; v <= (int)floorf(centre) + spread; ++v) {
            float px = (float)(steep ? v : u) + 0.5f, py = (float)(steep ? u : v) + 0.5f;
            float s = clampf(((px - ax) * dx + (py - ay) * dy) / square, 0.0f, 1.0f);
            float distance = hypotf(px - ax - s * dx, py - ay - s * dy);
            sk_image_blend(image, steep ? v : u, steep ? u : v, pen->color,
                           pen->alpha * clampf(0.5f * pen->width + 0.5f - distance, 0.0f, 1.0f));
        }
    }
}
