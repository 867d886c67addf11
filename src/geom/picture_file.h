/* Pictures as input: PNG where libpng is there, PGM and PPM (binary, 8 bits) always. */
#ifndef SK_GEOM_PICTURE_FILE_H
#define SK_GEOM_PICTURE_FILE_H

#include <stddef.h>
#include <stdint.h>
#include "base/memory.h"
#include "base/status.h"

enum { SK_PICTURE_MAX_SIDE = 8192 };

typedef struct sk_picture_data {
    sk_memory *memory;
    int width, height; /* pixels */
    uint8_t *rgb;      /* [height][width][3], top row first; transparent parts over white */
} sk_picture_data;

/* `what` begins messages ("bodies[0].shape.file"). */
selkie_code sk_picture_read(const char *path, const char *what, sk_memory *memory, sk_picture_data *picture,
                            selkie_error *error);
void sk_picture_free(sk_picture_data *picture);

/* A file name of a scene as it is opened. */
selkie_code sk_picture_path(const char *file, const char *folder, const char *what, char *path, size_t size,
                            selkie_error *error);

/* What is darker than `threshold` (0 to 1), as directed segments with the inside on their left: marching squares, then
 * corners that lie within 0.4 pixels of the line between others are left out. The picture fills the rectangle from
 * `low` to `high` (m). Released with sk_release(memory, ...). */
selkie_code sk_picture_outline(const sk_picture_data *picture, double threshold, const double low[2],
                               const double high[2], const char *what, size_t *count, double (**segments)[2][3],
                               selkie_error *error);

#endif
