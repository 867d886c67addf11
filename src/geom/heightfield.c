/* Reading ESRI ASCII grids, and the distance to the ground that they describe.
 *
 * The file: lines "ncols N", "nrows N", "xllcorner X" or "xllcenter X", "yllcorner Y" or "yllcenter Y", "cellsize S",
 * "NODATA_value V" in any order and case, then nrows lines of heights, the northernmost first. Values stand for the
 * centres of their squares. East, north and up make a right-handed frame: with y up in the scene, east is x and north
 * is -z; with z up, x and y. In 2D the profile at north = 0 is taken.
 */
#define _GNU_SOURCE
#include "geom/heightfield.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { points_limit = 1 << 28, side_limit = 1 << 20 };
static const double file_limit = 8e9; /* bytes */

struct sk_heightfield {
    sk_memory *memory;
    sk_ground ground;
};

/* --- Reading --- */

typedef struct grid_text {
    const char *name;
    char *text, *at;
    int line;
    locale_t plain; /* the decimal point is a point in every locale */
} grid_text;

static selkie_code load_text(grid_text *input, const char *path, sk_memory *memory, selkie_error *error)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: cannot be opened: %s", input->name, strerror(errno));
    struct stat status;
    selkie_code code = SELKIE_OK;
    if (fstat(fileno(file), &status) || !S_ISREG(status.st_mode))
        code = sk_fail(error, SELKIE_ERROR_INPUT, "%s: is no file", input->name);
    else if ((double)status.st_size > file_limit)
        code = sk_fail(error, SELKIE_ERROR_INPUT, "%s: %.1f GB are too much for a height field; at most %.0f GB",
                       input->name, (double)status.st_size * 1e-9, file_limit * 1e-9);
    size_t bytes = code ? 0 : (size_t)status.st_size;
    if (!code && !(input->text = sk_allocate(memory, bytes + 1)))
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for %zu bytes", input->name, bytes);
    if (!code && fread(input->text, 1, bytes, file) != bytes)
        code = sk_fail(error, SELKIE_ERROR_INPUT, "%s: cannot be read: %s", input->name,
                       ferror(file) ? strerror(errno) : "it became shorter");
    fclose(file);
    if (code)
        return code;
    input->text[bytes] = 0;
    input->at = input->text;
    input->line = 1;
    return SELKIE_OK;
}

static void skip_space(grid_text *input)
{
    for (; *input->at && isspace((unsigned char)*input->at); input->at++)
        input->line += *input->at == '\n';
}

/* The next number; `what` says which, for the message. */
static selkie_code read_number(grid_text *input, const char *what, double *value, selkie_error *error)
{
    skip_space(input);
    char *end = input->at;
    *value = strtod_l(input->at, &end, input->plain);
    if (end != input->at && isfinite(*value) && (!*end || isspace((unsigned char)*end))) {
        input->at = end;
        return SELKIE_OK;
    }
    char word[32];
    size_t length = strcspn(input->at, " \t\r\n");
    snprintf(word, sizeof word, "%.*s", (int)(length < 24 ? length : 24), input->at);
    for (char *c = word; *c; c++)
        *c = isprint((unsigned char)*c) ? *c : '?';
    if (!*word)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: ends at line %d where %s should be", input->name, input->line,
                       what);
    return sk_fail(error, SELKIE_ERROR_INPUT, "%s, line %d: \"%s\" should be %s, a finite number", input->name,
                   input->line, word, what);
}

typedef struct grid_header {
    double columns, rows, cell;
    double corner[2]; /* of the first point's centre once the header is complete */
    double missing;   /* NODATA_value */
    int has_missing;
} grid_header;

static selkie_code read_header(grid_text *input, grid_header *header, selkie_error *error)
{
    enum { columns, rows, x_corner, y_corner, x_center, y_center, cell, missing, key_count };
    static const char *const keys[key_count] = {"ncols",     "nrows",     "xllcorner", "yllcorner",
                                                "xllcenter", "yllcenter", "cellsize",  "nodata_value"};
    double values[key_count] = {0};
    int given[key_count] = {0};

    /* Keys and values in any order, up to the first number. */
    for (;;) {
        skip_space(input);
        if (!isalpha((unsigned char)*input->at))
            break;
        size_t length = strcspn(input->at, " \t\r\n");
        int key = 0;
        while (key < key_count && (strlen(keys[key]) != length || strncasecmp(keys[key], input->at, length)))
            key++;
        if (key == key_count)
            return sk_fail(error, SELKIE_ERROR_INPUT,
                           "%s, line %d: \"%.*s\" is no key of an ESRI ASCII grid: ncols, nrows, xllcorner, yllcorner, "
                           "cellsize, NODATA_value",
                           input->name, input->line, (int)(length < 24 ? length : 24), input->at);
        input->at += length;
        SK_TRY(read_number(input, keys[key], &values[key], error));
        given[key] = 1;
    }

    /* Required keys and ranges. */
    static const int needed[] = {columns, rows, cell};
    for (int i = 0; i < 3; i++)
        if (!given[needed[i]])
            return sk_fail(error, SELKIE_ERROR_INPUT,
                           "%s: has no %s; an ESRI ASCII grid begins with ncols, nrows, "
                           "xllcorner, yllcorner and cellsize",
                           input->name, keys[needed[i]]);
    for (int i = 0; i < 2; i++)
        if (!(values[i] >= 1 && values[i] <= side_limit) || values[i] != floor(values[i]))
            return sk_fail(error, SELKIE_ERROR_INPUT, "%s: %s %g must be a whole number from 1 to %d", input->name,
                           keys[i], values[i], side_limit);
    if (values[columns] * values[rows] > points_limit)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: %g x %g heights; at most %d", input->name, values[columns],
                       values[rows], points_limit);
    if (!(values[cell] > 0))
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: cellsize %g must be above 0", input->name, values[cell]);

    header->columns = values[columns];
    header->rows = values[rows];
    header->cell = values[cell];
    for (int i = 0; i < 2; i++)
        header->corner[i] = given[x_center + i] ? values[x_center + i] : values[x_corner + i] + 0.5 * values[cell];
    header->missing = values[missing];
    header->has_missing = given[missing];
    return SELKIE_OK;
}

/* Heights of the file; a missing one becomes the lowest of the others. */
static selkie_code read_heights(grid_text *input, const grid_header *header, sk_ground *field, selkie_error *error)
{
    int columns = (int)header->columns, rows = (int)header->rows;
    double lowest = INFINITY;
    for (int row = rows - 1; row >= 0; row--)
        for (int column = 0; column < columns; column++) {
            double value;
            char what[64];
            snprintf(what, sizeof what, "the height in row %d, column %d", rows - row, column + 1);
            SK_TRY(read_number(input, what, &value, error));
            int none = header->has_missing && value == header->missing;
            if (!none && !(fabs(value) < 1e9))
                return sk_fail(error, SELKIE_ERROR_INPUT, "%s, line %d: a height of %g; at most 1e9", input->name,
                               input->line, value);
            lowest = none ? lowest : fmin(lowest, value);
            field->heights[(size_t)row * (size_t)columns + (size_t)column] = none ? NAN : (float)value;
        }
    skip_space(input);
    if (*input->at)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s, line %d: goes on after %d rows of %d heights", input->name,
                       input->line, rows, columns);
    if (!isfinite(lowest))
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: all heights are NODATA_value, %g", input->name, header->missing);
    for (size_t i = 0; i < (size_t)rows * (size_t)columns; i++)
        field->heights[i] = isnan(field->heights[i]) ? (float)lowest : field->heights[i];
    return SELKIE_OK;
}

/* --- Making --- */

/* Which of the scene's axes are east, north and up. */
static void choose_axes(const sk_heightfield_def *def, sk_heightfield_frame *frame)
{
    int up = 0;
    for (int d = 1; d < def->dimension; d++)
        if (fabs(def->up[d]) > fabs(def->up[up]))
            up = d;
    int east = up == 0 ? 1 : 0, north = 3 - up - east;
    frame->axis[0] = east;
    frame->axis[1] = north;
    frame->axis[2] = up;
    frame->sign[0] = 1.0;
    frame->sign[2] = def->up[up] < 0.0 ? -1.0 : 1.0;
    /* east x north = up */
    frame->sign[1] = (north == (east + 1) % 3 ? 1.0 : -1.0) * frame->sign[2];
}

/* From the file's numbers to metres in the scene; in 2D only the profile at north = 0 stays. */
static void place_heights(const sk_heightfield_def *def, const grid_header *header, sk_ground *field)
{
    sk_heightfield_frame *frame = &field->frame;
    choose_axes(def, frame);

    /* Spacing, origin and size of the table in the scene. */
    for (int a = 0; a < 2; a++) {
        int d = frame->axis[a];
        frame->spacing[a] = def->scale[d] * header->cell;
        frame->origin[a] = frame->sign[a] * def->scale[d] * header->corner[a] + def->translate[d];
    }
    frame->count[0] = (int)header->columns;
    frame->count[1] = (int)header->rows;

    /* Heights in metres. */
    int up = frame->axis[2];
    size_t points = (size_t)frame->count[0] * (size_t)frame->count[1];
    for (size_t i = 0; i < points; i++)
        field->heights[i] = (float)(def->scale[up] * field->heights[i] + frame->sign[2] * def->translate[up]);

    /* 2D: interpolate the profile between two rows. */
    if (field->dimension == 2) {
        double v = -frame->sign[1] * frame->origin[1] / frame->spacing[1];
        v = fmin(fmax(v, 0.0), frame->count[1] - 1.0);
        int j = (int)v;
        double share = v - j;
        for (int i = 0; i < frame->count[0]; i++)
            field->heights[i] =
                (float)((1.0 - share) * sk_ground_node(field, i, j) + share * sk_ground_node(field, i, j + 1));
        frame->count[1] = 1;
        frame->origin[1] = 0.0;
    }

    /* Lowest and highest point. */
    field->highest = -INFINITY;
    field->lowest = INFINITY;
    points = (size_t)frame->count[0] * (size_t)frame->count[1];
    for (size_t i = 0; i < points; i++) {
        field->highest = fmax(field->highest, field->heights[i]);
        field->lowest = fmin(field->lowest, field->heights[i]);
    }
}

static void square_range(const sk_ground *field, int i, int j, float range[2])
{
    float h[4] = {sk_ground_node(field, i, j), sk_ground_node(field, i + 1, j), sk_ground_node(field, i, j + 1),
                  sk_ground_node(field, i + 1, j + 1)};
    range[0] = fminf(fminf(h[0], h[1]), fminf(h[2], h[3]));
    range[1] = fmaxf(fmaxf(h[0], h[1]), fmaxf(h[2], h[3]));
}

/* The range of the four squares of the finer level. */
static void joined_range(const sk_ground *field, int level, int i, int j, float range[2])
{
    const int *fine = field->size[level - 1];
    range[0] = INFINITY;
    range[1] = -INFINITY;
    for (int c = 0; c < 4; c++) {
        int fi = 2 * i + (c & 1), fj = 2 * j + (c >> 1);
        if (fi >= fine[0] || fj >= fine[1])
            continue;
        const float *below = field->range[level - 1][(size_t)fj * (size_t)fine[0] + (size_t)fi];
        range[0] = fminf(range[0], below[0]);
        range[1] = fmaxf(range[1], below[1]);
    }
}

static selkie_code make_pyramid(sk_ground *field, sk_memory *memory, const char *name, selkie_error *error)
{
    for (int level = 0; level < SK_GROUND_LEVELS; level++) {
        int *size = field->size[level];
        for (int a = 0; a < 2; a++) {
            int squares = field->frame.count[a] > 1 ? field->frame.count[a] - 1 : 1;
            size[a] = level ? (field->size[level - 1][a] + 1) / 2 : squares;
        }
        size_t squares = (size_t)size[0] * (size_t)size[1];
        field->range[level] = sk_allocate(memory, squares * sizeof *field->range[level]);
        if (!field->range[level])
            return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for the ranges of %zu squares", name, squares);
        field->levels = level + 1;
        for (int j = 0; j < size[1]; j++)
            for (int i = 0; i < size[0]; i++) {
                float *range = field->range[level][(size_t)j * (size_t)size[0] + (size_t)i];
                if (level)
                    joined_range(field, level, i, j, range);
                else
                    square_range(field, i, j, range);
            }
        if (size[0] == 1 && size[1] == 1)
            break;
    }
    return SELKIE_OK;
}

static selkie_code read_field(const sk_heightfield_def *def, grid_text *input, sk_heightfield *field,
                              selkie_error *error)
{
    grid_header header = {0};
    sk_ground *ground = &field->ground;
    SK_TRY(load_text(input, def->path, field->memory, error));
    SK_TRY(read_header(input, &header, error));
    size_t points = (size_t)header.columns * (size_t)header.rows;
    /* A height takes at least two bytes: this finds a wrong size in the header before memory is allocated. */
    if (points > strlen(input->at) / 2 + 1)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: ends before its %g rows of %g heights are complete", input->name,
                       header.rows, header.columns);
    ground->heights = sk_allocate(field->memory, points * sizeof *ground->heights);
    if (!ground->heights)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for %zu heights", input->name, points);
    SK_TRY(read_heights(input, &header, ground, error));
    place_heights(def, &header, ground);
    ground->reach = def->reach > 0.0 ? def->reach : 2.0 * fmax(ground->frame.spacing[0], ground->frame.spacing[1]);
    return make_pyramid(ground, field->memory, input->name, error);
}

selkie_code sk_heightfield_create(const sk_heightfield_def *def, sk_memory *memory, sk_heightfield **out,
                                  selkie_error *error)
{
    *out = NULL;
    for (int d = 0; d < 3; d++)
        if (!(def->scale[d] > 0.0) || !isfinite(def->scale[d]) || !isfinite(def->translate[d]))
            return sk_fail(error, SELKIE_ERROR_INPUT,
                           "%s: scale %g and translate %g along %c: a height field needs finite "
                           "ones, and a scale above 0",
                           def->name, def->scale[d], def->translate[d], "xyz"[d]);

    /* Read with the C locale, whose decimal separator is a point. */
    sk_heightfield *field = sk_allocate_zeroed(memory, sizeof *field);
    grid_text input = {.name = def->name, .plain = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
    selkie_code code = SELKIE_OK;
    if (!field || !input.plain) {
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for a height field", def->name);
    } else {
        field->memory = memory;
        field->ground.dimension = def->dimension;
        code = read_field(def, &input, field, error);
    }

    /* Release what only the reading needed. */
    sk_release(memory, input.text);
    if (input.plain)
        freelocale(input.plain);
    if (code) {
        sk_heightfield_destroy(field);
        return code;
    }
    *out = field;
    return SELKIE_OK;
}

void sk_heightfield_destroy(sk_heightfield *field)
{
    if (!field)
        return;
    for (int level = 0; level < field->ground.levels; level++)
        sk_release(field->memory, field->ground.range[level]);
    sk_release(field->memory, field->ground.heights);
    sk_release(field->memory, field);
}

/* --- Asking --- */

double sk_heightfield_height(const sk_heightfield *field, double east, double north)
{
    return sk_ground_height(&field->ground, east, north);
}

int sk_heightfield_inside(const sk_heightfield *field, const double x[3])
{
    return sk_ground_inside(&field->ground, x);
}

double sk_heightfield_distance(const sk_heightfield *field, const double x[3], double normal[3])
{
    return sk_ground_distance(&field->ground, x, normal);
}

const sk_ground *sk_heightfield_ground(const sk_heightfield *field)
{
    return &field->ground;
}

void sk_heightfield_bounds(const sk_heightfield *field, double low[3], double high[3])
{
    for (int d = 0; d < 3; d++) {
        low[d] = d < field->ground.dimension ? -INFINITY : 0.0;
        high[d] = d < field->ground.dimension ? INFINITY : 0.0;
    }
    int up = field->ground.frame.axis[2];
    if (field->ground.frame.sign[2] > 0.0)
        high[up] = field->ground.highest;
    else
        low[up] = -field->ground.highest;
}

const sk_heightfield_frame *sk_heightfield_look(const sk_heightfield *field)
{
    return &field->ground.frame;
}
