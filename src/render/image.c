#include "render/image.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/atomic_file.h"
#include "selkie_config.h"

#include <zlib.h>

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

/* Rows are filtered (each byte less the one of the pixel before) and compressed in parts of their own, in threads. The
 * parts do not depend on the threads, so neither do the bytes of the file. */
enum { most_parts = 16, least_rows = 32 };

typedef struct png_part {
    int first, last; /* rows */
    unsigned char *data;
    size_t bytes;      /* of the compressed data; 0 = failed */
    uint32_t checksum; /* of the filtered rows (Adler-32) */
    size_t length;     /* of the filtered rows */
} png_part;

static void filter_row(const sk_image *image, int y, unsigned char *to)
{
    const size_t bytes = (size_t)image->width * 3;
    const uint8_t *row = image->pixels + (size_t)y * bytes;
    to[0] = 1;
    memcpy(to + 1, row, 3);
    for (size_t i = 3; i < bytes; ++i)
        to[1 + i] = (unsigned char)(row[i] - row[i - 3]);
}

static void compress_part(const sk_image *image, int level, int is_last, png_part *part)
{
    const size_t row = (size_t)image->width * 3 + 1, length = row * (size_t)(part->last - part->first);
    unsigned char *filtered = sk_allocate(NULL, length);
    z_stream stream = {0};
    part->bytes = 0;
    part->length = length;
    if (!filtered || deflateInit2(&stream, level, Z_DEFLATED, -15, 8, level > 1 ? Z_DEFAULT_STRATEGY : Z_RLE) != Z_OK) {
        sk_release(NULL, filtered);
        return;
    }
    for (int y = part->first; y < part->last; ++y)
        filter_row(image, y, filtered + row * (size_t)(y - part->first));
    part->checksum = (uint32_t)adler32(1, filtered, (uInt)length);
    const size_t room = deflateBound(&stream, (uLong)length) + 64;
    part->data = sk_allocate(NULL, room);
    if (part->data) {
        stream.next_in = filtered;
        stream.avail_in = (uInt)length;
        stream.next_out = part->data;
        stream.avail_out = (uInt)room;
        /* All but the last part end at a byte, so that they can follow each other. */
        const int result = deflate(&stream, is_last ? Z_FINISH : Z_SYNC_FLUSH);
        part->bytes = result == (is_last ? Z_STREAM_END : Z_OK) && !stream.avail_in ? room - stream.avail_out : 0;
    }
    deflateEnd(&stream);
    sk_release(NULL, filtered);
}

static void put_big(unsigned char *to, uint32_t value)
{
    for (int k = 0; k < 4; ++k)
        to[k] = (unsigned char)(value >> (24 - 8 * k));
}

static selkie_code write_chunk(sk_atomic_file *file, const char *kind, const unsigned char *data, size_t bytes,
                               selkie_error *error)
{
    unsigned char head[8], tail[4];
    put_big(head, (uint32_t)bytes);
    memcpy(head + 4, kind, 4);
    uLong sum = crc32(0, head + 4, 4);
    if (bytes)
        sum = crc32(sum, data, (uInt)bytes);
    put_big(tail, (uint32_t)sum);
    SK_TRY(sk_atomic_write(file, head, sizeof head, error));
    if (bytes)
        SK_TRY(sk_atomic_write(file, data, bytes, error));
    return sk_atomic_write(file, tail, sizeof tail, error);
}

/* Header, compressed rows as a zlib stream, end. */
static selkie_code write_chunks(sk_atomic_file *file, const sk_image *image, const png_part *parts, int count,
                                selkie_error *error)
{
    static const unsigned char signature[8] = {0x89, 'P', 'N', 'G', 13, 10, 26, 10};
    unsigned char header[13] = {[8] = 8, [9] = 2 /* RGB */};
    size_t bytes = 6, at = 2;
    uLong checksum = parts[0].checksum;
    for (int p = 0; p < count; ++p)
        bytes += parts[p].bytes;
    unsigned char *data = sk_allocate(NULL, bytes);
    if (!data)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "no memory, %.1f MiB for a picture", (double)bytes / 1048576.0);
    data[0] = 0x78, data[1] = 0x01;
    for (int p = 0; p < count; at += parts[p++].bytes) {
        memcpy(data + at, parts[p].data, parts[p].bytes);
        if (p)
            checksum = adler32_combine(checksum, parts[p].checksum, (z_off_t)parts[p].length);
    }
    put_big(data + at, (uint32_t)checksum);
    put_big(header, (uint32_t)image->width);
    put_big(header + 4, (uint32_t)image->height);
    selkie_code code = sk_atomic_write(file, signature, sizeof signature, error);
    if (!code)
        code = write_chunk(file, "IHDR", header, sizeof header, error);
    if (!code)
        code = write_chunk(file, "IDAT", data, bytes, error);
    if (!code)
        code = write_chunk(file, "IEND", NULL, 0, error);
    sk_release(NULL, data);
    return code;
}

selkie_code sk_image_write_png_at(const sk_image *image, const char *path, int level, int threads, selkie_error *error)
{
    png_part parts[most_parts] = {{0}};
    int count = image->height / least_rows, good = 1;
    count = count < 1 ? 1 : count > most_parts ? most_parts : count;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int p = 0; p < count; ++p) {
        parts[p].first = image->height * p / count;
        parts[p].last = image->height * (p + 1) / count;
        compress_part(image, level, p == count - 1, &parts[p]);
    }
    for (int p = 0; p < count; ++p)
        good = good && parts[p].bytes;
    sk_atomic_file *file = NULL;
    selkie_code code =
        good ? SELKIE_OK : sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory to compress the picture", path);
    if (!code)
        code = sk_atomic_open(path, 0, &file, error);
    if (!code)
        code = sk_atomic_finish(&file, write_chunks(file, image, parts, count, error), error);
    for (int p = 0; p < count; ++p)
        sk_release(NULL, parts[p].data);
    return code;
}

#else

selkie_code sk_image_write_png_at(const sk_image *image, const char *path, int level, int threads, selkie_error *error)
{
    (void)image;
    (void)level;
    (void)threads;
    return sk_fail(error, SELKIE_ERROR_UNSUPPORTED,
                   "%s: this build cannot write pictures; install libpng (Debian: libpng-dev) and build again", path);
}

#endif

selkie_code sk_image_write_png(const sk_image *image, const char *path, selkie_error *error)
{
    /* A low level: much faster for slightly larger files. */
    return sk_image_write_png_at(image, path, 4, omp_get_max_threads(), error);
}

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
