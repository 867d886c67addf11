#include "geom/picture_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "selkie_config.h"

#if SELKIE_HAVE_PNG
#include <png.h>
#endif

selkie_code sk_picture_path(const char *file, const char *folder, const char *what, char *path, size_t size,
                            selkie_error *error)
{
    const int within = folder && folder[0] && file[0] != '/';
    const int length = snprintf(path, size, "%s%s%s", within ? folder : "", within ? "/" : "", file);
    if (length < 0 || (size_t)length >= size)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: %.200s...: the path is longer than %zu bytes", what, file,
                       size - 1);
    return SELKIE_OK;
}

void sk_picture_free(sk_picture_data *picture)
{
    sk_release(picture->memory, picture->rgb);
    memset(picture, 0, sizeof *picture);
}

static selkie_code take_memory(sk_picture_data *picture, long width, long height, const char *what, const char *path,
                               selkie_error *error)
{
    if (width < 1 || height < 1 || width > SK_PICTURE_MAX_SIDE || height > SK_PICTURE_MAX_SIDE)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: %.300s has %ld x %ld pixels; each side must have 1 to %d", what,
                       path, width, height, (int)SK_PICTURE_MAX_SIDE);
    picture->width = (int)width;
    picture->height = (int)height;
    picture->rgb = sk_allocate(picture->memory, 3 * (size_t)width * (size_t)height);
    return picture->rgb ? SELKIE_OK : sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for the picture", what);
}

/* --- PGM and PPM --- */

/* A number of the header, after blanks and comments; -1 if there is none. */
static long read_number(FILE *file)
{
    int c = fgetc(file);
    while (c == '#' || c == ' ' || c == '\n' || c == '\r' || c == '\t') {
        while (c == '#' && c != EOF && c != '\n')
            if ((c = fgetc(file)) == '\n' || c == EOF)
                break;
            else
                c = '#';
        c = fgetc(file);
    }
    long value = -1;
    for (; c >= '0' && c <= '9' && value < 100000000; c = fgetc(file))
        value = (value < 0 ? 0 : value) * 10 + (c - '0');
    return value;
}

static selkie_code read_map(FILE *file, int channels, const char *path, const char *what, sk_picture_data *picture,
                            selkie_error *error)
{
    const long width = read_number(file), height = read_number(file), most = read_number(file);
    if (width < 0 || height < 0 || most < 0)
        return sk_fail(error, SELKIE_ERROR_FORMAT,
                       "%s: %.300s has a damaged header: width, height and largest value must follow P%d", what, path,
                       channels == 1 ? 5 : 6);
    if (most != 255)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: %.300s has a largest value of %ld; it must be 255 (8 bits)",
                       what, path, most);
    SK_TRY(take_memory(picture, width, height, what, path, error));
    const size_t pixels = (size_t)width * (size_t)height;
    if (fread(picture->rgb, (size_t)channels, pixels, file) != pixels)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: %.300s is cut off", what, path);
    for (size_t n = pixels; channels == 1 && n-- > 0;)
        memset(picture->rgb + 3 * n, picture->rgb[n], 3);
    return SELKIE_OK;
}

/* --- PNG --- */

static selkie_code read_png(const char *path, const char *what, sk_picture_data *picture, selkie_error *error)
{
#if SELKIE_HAVE_PNG
    png_image image = {.version = PNG_IMAGE_VERSION};
    const png_color white = {255, 255, 255};
    if (!png_image_begin_read_from_file(&image, path))
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: %.300s: %s", what, path, image.message);
    selkie_code code = take_memory(picture, (long)image.width, (long)image.height, what, path, error);
    image.format = PNG_FORMAT_RGB;
    if (code == SELKIE_OK && !png_image_finish_read(&image, &white, picture->rgb, 0, NULL))
        code = sk_fail(error, SELKIE_ERROR_FORMAT, "%s: %.300s: %s", what, path, image.message);
    png_image_free(&image);
    return code;
#else
    (void)picture;
    return sk_fail(error, SELKIE_ERROR_INPUT, "%s: %.300s: this build has no libpng; use PGM or PPM (P5, P6)", what,
                   path);
#endif
}

selkie_code sk_picture_read(const char *path, const char *what, sk_memory *memory, sk_picture_data *picture,
                            selkie_error *error)
{
    memset(picture, 0, sizeof *picture);
    picture->memory = memory;
    FILE *file = fopen(path, "rb");
    if (!file)
        return sk_fail(error, SELKIE_ERROR_FILE, "%s: cannot open %.300s: %s", what, path, strerror(errno));
    const int first = fgetc(file), second = fgetc(file);
    selkie_code code;
    if (first == 'P' && (second == '5' || second == '6')) {
        code = read_map(file, second == '5' ? 1 : 3, path, what, picture, error);
    } else if (first == 0x89 && second == 'P') {
        code = read_png(path, what, picture, error);
    } else {
        code = sk_fail(error, SELKIE_ERROR_FORMAT, "%s: %.300s is no PNG, PGM or PPM file (P5, P6)", what, path);
    }
    fclose(file);
    if (code != SELKIE_OK)
        sk_picture_free(picture);
    return code;
}
