#include "render/environment.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "geom/picture_file.h"
#include "render/image.h"

static selkie_code take_memory(sk_environment *e, int width, int height, const char *path, const char *key,
                               selkie_error *error)
{
    if (width < 2 || height < 2 || width > SK_PICTURE_MAX_SIDE || height > SK_PICTURE_MAX_SIDE)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: %.300s has %d x %d pixels; each side must have 2 to %d", key,
                       path, width, height, (int)SK_PICTURE_MAX_SIDE);
    e->light = sk_allocate(NULL, (size_t)width * (size_t)height * 3 * sizeof *e->light);
    if (!e->light)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for %d x %d pixels", key, width, height);
    e->width = width;
    e->height = height;
    return SELKIE_OK;
}

/* --- Radiance HDR --- */

/* Bytes of a row: four channels one after the other, runs and literals (Ward 1991, new run lengths). */
static int read_channels(FILE *file, int width, unsigned char *row)
{
    for (int channel = 0; channel < 4; channel++)
        for (int x = 0; x < width;) {
            const int code = fgetc(file), count = code > 128 ? code - 128 : code;
            if (code == EOF || !count || x + count > width)
                return 0;
            const int value = code > 128 ? fgetc(file) : 0;
            for (int n = 0; n < count; n++)
                row[4 * x++ + channel] = (unsigned char)(code > 128 ? value : fgetc(file));
        }
    return !feof(file);
}

/* Pixels of a row, the first of which is there. A pixel of 1, 1, 1 and a number repeats the last one, `number` times;
 * several in a row are digits of the number, the lowest first (Ward 1991, old run lengths). */
static int read_pixels(FILE *file, int width, unsigned char *row)
{
    int shift = 0;
    for (int x = 0; x < width;) {
        unsigned char *pixel = row + 4 * x;
        if (x && fread(pixel, 1, 4, file) != 4)
            return 0;
        if (!(x && pixel[0] == 1 && pixel[1] == 1 && pixel[2] == 1)) {
            shift = 0;
            x++;
            continue;
        }
        const long count = shift < 24 ? (long)pixel[3] << shift : LONG_MAX;
        if (count > width - x)
            return 0;
        for (long n = 0; n < count; n++)
            memcpy(pixel + 4 * n, pixel - 4, 4);
        x += (int)count;
        shift += 8;
    }
    return 1;
}

static int read_row(FILE *file, int width, unsigned char *row)
{
    if (fread(row, 1, 4, file) != 4)
        return 0;
    if (row[0] == 2 && row[1] == 2 && row[2] < 128)
        return (row[2] << 8 | row[3]) == width && read_channels(file, width, row);
    return read_pixels(file, width, row);
}

static selkie_code read_radiance(FILE *file, const char *path, const char *key, sk_environment *e, selkie_error *error)
{
    char line[256] = "";
    int width = 0, height = 0;
    while (fgets(line, sizeof line, file) && line[0] != '\n')
        if (strncmp(line, "FORMAT=", 7) == 0 && strncmp(line, "FORMAT=32-bit_rle_rgbe", 22) != 0)
            return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: %.300s must have FORMAT=32-bit_rle_rgbe", key, path);
    if (!fgets(line, sizeof line, file) || sscanf(line, "-Y %d +X %d", &height, &width) != 2)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: %.300s has no size \"-Y height +X width\"", key, path);
    SK_TRY(take_memory(e, width, height, path, key, error));

    unsigned char *row = sk_allocate(NULL, 4 * (size_t)width);
    int good = row != NULL;
    for (int y = 0; y < height && good; y++) {
        good = read_row(file, width, row);
        for (int x = 0; x < width && good; x++) {
            const float scale = row[4 * x + 3] ? ldexpf(1.0f, row[4 * x + 3] - 136) : 0.0f;
            for (int c = 0; c < 3; c++)
                e->light[3 * ((size_t)y * (size_t)width + (size_t)x) + (size_t)c] = (float)row[4 * x + c] * scale;
        }
    }
    sk_release(NULL, row);
    return good ? SELKIE_OK : sk_fail(error, SELKIE_ERROR_FORMAT, "%s: %.300s is cut off or damaged", key, path);
}

/* --- All formats --- */

/* Whether the first bytes are those of a picture that sk_picture_read() takes. */
static int is_picture(const char start[2])
{
    return (start[0] == 'P' && (start[1] == '5' || start[1] == '6')) ||
           ((unsigned char)start[0] == 0x89 && start[1] == 'P');
}

static selkie_code read_picture(const char *path, const char *key, sk_environment *e, selkie_error *error)
{
    sk_picture_data picture;
    SK_TRY(sk_picture_read(path, key, NULL, &picture, error));
    const selkie_code code = take_memory(e, picture.width, picture.height, path, key, error);
    for (size_t i = 0; i < 3 * (size_t)picture.width * (size_t)picture.height && !code; i++)
        e->light[i] = sk_from_srgb((float)picture.rgb[i] / 255.0f);
    sk_picture_free(&picture);
    return code;
}

/* Mean light of both halves; rows weigh as their part of the sphere. */
static void find_means(sk_environment *e)
{
    double sums[2][4] = {{0}};
    for (int y = 0; y < e->height; y++) {
        const double weight = sin(3.14159265358979 * (y + 0.5) / e->height);
        double *sum = sums[2 * y >= e->height];
        for (int x = 0; x < e->width; x++)
            for (int c = 0; c < 3; c++)
                sum[c] += weight * (double)e->light[3 * ((size_t)y * (size_t)e->width + (size_t)x) + (size_t)c];
        sum[3] += weight * e->width;
    }
    for (int half = 0; half < 2; half++) {
        const double all = fmax(sums[half][3], 1e-9);
        const vec3 mean = v3((float)(sums[half][0] / all), (float)(sums[half][1] / all), (float)(sums[half][2] / all));
        *(half ? &e->below : &e->above) = mean;
    }
}

selkie_code sk_environment_read(const char *file, const char *folder, const char *key, sk_environment *e,
                                selkie_error *error)
{
    char path[4096], start[3] = "";
    memset(e, 0, sizeof *e);
    SK_TRY(sk_picture_path(file, folder, key, path, sizeof path, error));
    FILE *stream = fopen(path, "rb");
    if (!stream)
        return sk_fail(error, SELKIE_ERROR_FILE, "%s: cannot open %.300s", key, path);
    const int radiance = fread(start, 1, 2, stream) == 2 && start[0] == '#' && start[1] == '?';
    selkie_code code = radiance            ? read_radiance(stream, path, key, e, error)
                       : is_picture(start) ? read_picture(path, key, e, error)
                                           : sk_fail(error, SELKIE_ERROR_FORMAT,
                                                     "%s: %.300s is no picture: PNG, PGM and PPM (P5, P6) and Radiance "
                                                     "HDR are read",
                                                     key, path);
    fclose(stream);
    if (code)
        sk_environment_free(e);
    else
        find_means(e);
    return code;
}

void sk_environment_free(sk_environment *e)
{
    sk_release(NULL, e->light);
    memset(e, 0, sizeof *e);
}

static vec3 pixel(const sk_environment *e, int x, int y)
{
    x = (x % e->width + e->width) % e->width;
    y = y < 0 ? 0 : y >= e->height ? e->height - 1 : y;
    const float *p = e->light + 3 * ((size_t)y * (size_t)e->width + (size_t)x);
    return v3(p[0], p[1], p[2]);
}

vec3 sk_environment_light(const sk_environment *e, float up, float right, float ahead)
{
    const float turn = 0.5f + atan2f(right, ahead) / 6.2831853f, down = acosf(clampf(up, -1.0f, 1.0f)) / 3.14159265f;
    const float u = turn * (float)e->width - 0.5f, v = down * (float)e->height - 0.5f;
    const int x = (int)floorf(u), y = (int)floorf(v);
    const vec3 upper = v3_mix(pixel(e, x, y), pixel(e, x + 1, y), u - (float)x);
    return v3_mix(upper, v3_mix(pixel(e, x, y + 1), pixel(e, x + 1, y + 1), u - (float)x), v - (float)y);
}
