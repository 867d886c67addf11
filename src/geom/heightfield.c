/* Reading ESRI ASCII grids, and the distance to the ground that they describe.
 *
 * The file: lines "ncols N", "nrows N", "xllcorner X" or "xllcenter X", "yllcorner Y" or "yllcenter Y", "cellsize S",
 * "NODATA_value V" in any order and case, then nrows lines of heights, the northernmost first. Values stand for the
 * centres of their squares. East, north and up make a right-handed frame: with y up in the scene, east is x and north
 * is -z; with z up, x and y. In 2D the profile at north = 0 is taken.
 *
 * Distance. If all of the surface within t of a point, seen from above, lies at least t below or above it, the surface
 * is at least t away; so the largest min(t, gap) over several t is a lower bound. The lowest and highest points come
 * from a pyramid of minima and maxima, and t doubles from level to level. If it is below `reach`, the search visits the
 * triangles within twice the reach, except those in squares whose heights are too far off.
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

enum { points_limit = 1 << 28, side_limit = 1 << 20, level_limit = 21 };
static const double file_limit = 8e9; /* bytes */

struct sk_heightfield {
    sk_memory *memory;
    sk_heightfield_frame frame;
    int dimension;
    double reach;           /* m */
    double highest, lowest; /* m along up */
    float *heights;         /* [count[1]][count[0]] m along up, the southernmost row first */
    int levels;             /*    of the pyramid */
    int size[level_limit][2];
    float (*range[level_limit])[2]; /* [size[1]][size[0]] lowest and highest point of the squares below */
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
static selkie_code read_heights(grid_text *input, const grid_header *header, sk_heightfield *field, selkie_error *error)
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

static float node(const sk_heightfield *field, int i, int j)
{
    const int *count = field->frame.count;
    i = i < 0 ? 0 : i >= count[0] ? count[0] - 1 : i;
    j = j < 0 ? 0 : j >= count[1] ? count[1] - 1 : j;
    return field->heights[(size_t)j * (size_t)count[0] + (size_t)i];
}

/* From the file's numbers to metres in the scene; in 2D only the profile at north = 0 stays. */
static void place_heights(const sk_heightfield_def *def, const grid_header *header, sk_heightfield *field)
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
            field->heights[i] = (float)((1.0 - share) * node(field, i, j) + share * node(field, i, j + 1));
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

static void square_range(const sk_heightfield *field, int i, int j, float range[2])
{
    float h[4] = {node(field, i, j), node(field, i + 1, j), node(field, i, j + 1), node(field, i + 1, j + 1)};
    range[0] = fminf(fminf(h[0], h[1]), fminf(h[2], h[3]));
    range[1] = fmaxf(fmaxf(h[0], h[1]), fmaxf(h[2], h[3]));
}

/* The range of the four squares of the finer level. */
static void joined_range(const sk_heightfield *field, int level, int i, int j, float range[2])
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

static selkie_code make_pyramid(sk_heightfield *field, const char *name, selkie_error *error)
{
    for (int level = 0; level < level_limit; level++) {
        int *size = field->size[level];
        for (int a = 0; a < 2; a++) {
            int squares = field->frame.count[a] > 1 ? field->frame.count[a] - 1 : 1;
            size[a] = level ? (field->size[level - 1][a] + 1) / 2 : squares;
        }
        size_t squares = (size_t)size[0] * (size_t)size[1];
        field->range[level] = sk_allocate(field->memory, squares * sizeof *field->range[level]);
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
    SK_TRY(load_text(input, def->path, field->memory, error));
    SK_TRY(read_header(input, &header, error));
    size_t points = (size_t)header.columns * (size_t)header.rows;
    /* A height takes at least two bytes: this finds a wrong size in the header before memory is allocated. */
    if (points > strlen(input->at) / 2 + 1)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: ends before its %g rows of %g heights are complete", input->name,
                       header.rows, header.columns);
    field->heights = sk_allocate(field->memory, points * sizeof *field->heights);
    if (!field->heights)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for %zu heights", input->name, points);
    SK_TRY(read_heights(input, &header, field, error));
    place_heights(def, &header, field);
    field->reach = def->reach > 0.0 ? def->reach : 2.0 * fmax(field->frame.spacing[0], field->frame.spacing[1]);
    return make_pyramid(field, input->name, error);
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
        field->dimension = def->dimension;
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
    for (int level = 0; level < field->levels; level++)
        sk_release(field->memory, field->range[level]);
    sk_release(field->memory, field->heights);
    sk_release(field->memory, field);
}

/* --- Asking --- */

/* fmin and fmax of the C library are calls; these are single instructions. No NaNs occur here. */
static inline double smaller(double a, double b)
{
    return a < b ? a : b;
}

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Squares are counted in ints. Far beyond the table the ground is level, so the count may saturate. */
static int square_index(double place)
{
    return (int)floor(smaller(larger(place, -1e8), 1e8));
}

double sk_heightfield_height(const sk_heightfield *field, double east, double north)
{
    const double *spacing = field->frame.spacing;
    double u = smaller(larger(east / spacing[0], -1.0), field->frame.count[0]);
    double v = smaller(larger(north / spacing[1], -1.0), field->frame.count[1]);
    int i = square_index(u), j = square_index(v);
    double fu = u - i, fv = v - j, h00 = node(field, i, j), h11 = node(field, i + 1, j + 1);
    if (fu > fv) {
        double h10 = node(field, i + 1, j);
        return h00 + fu * (h10 - h00) + fv * (h11 - h10);
    }
    double h01 = node(field, i, j + 1);
    return h00 + fv * (h01 - h00) + fu * (h11 - h01);
}

/* Lowest and highest point of the surface within a distance, seen from above. Covers whole squares of the level, which
 * should be about as wide as the distance. */
static void range_around(const sk_heightfield *field, const double place[2], double radius, int level, float range[2])
{
    const int *size = field->size[level];
    int first[2], last[2];
    for (int a = 0; a < 2; a++) {
        double width = field->frame.spacing[a] * (double)(1 << level);
        first[a] = square_index((place[a] - radius) / width);
        last[a] = square_index((place[a] + radius) / width);
        /* Beyond the table the height is that of its edge. */
        first[a] = first[a] < 0 ? 0 : first[a] >= size[a] ? size[a] - 1 : first[a];
        last[a] = last[a] < 0 ? 0 : last[a] >= size[a] ? size[a] - 1 : last[a];
    }
    range[0] = INFINITY;
    range[1] = -INFINITY;
    for (int j = first[1]; j <= last[1]; j++)
        for (int i = first[0]; i <= last[0]; i++) {
            const float *square = field->range[level][(size_t)j * (size_t)size[0] + (size_t)i];
            range[0] = square[0] < range[0] ? square[0] : range[0];
            range[1] = square[1] > range[1] ? square[1] : range[1];
        }
}

/* A lower bound of the distance to the surface, m; exact over level ground. */
static double safe_distance(const sk_heightfield *field, const double place[2], double height, double above)
{
    double vertical = fabs(above), best = 0.0;
    double width = smaller(field->frame.spacing[0], field->frame.spacing[1]);
    for (int level = 0; level < field->levels; level++) {
        double radius = smaller(width * (double)(1 << level), vertical);
        float range[2];
        range_around(field, place, radius, level, range);
        double gap = above < 0.0 ? range[0] - height : height - range[1];
        best = larger(best, smaller(radius, gap));
        if (gap <= best || radius >= vertical)
            break; /* a larger t finds no larger gap */
    }
    /* The height above the highest, or below the lowest, point of all is a bound too. */
    return larger(best, above < 0.0 ? field->lowest - height : height - field->highest);
}

static double dot3(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Nearest point of the segment a + t (b - a) to the origin. */
static double nearest_on_segment(const double a[3], const double b[3], double nearest[3])
{
    double way[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]}, length2 = dot3(way, way);
    double t = length2 > 0.0 ? smaller(larger(-dot3(a, way) / length2, 0.0), 1.0) : 0.0;
    for (int d = 0; d < 3; d++)
        nearest[d] = a[d] + t * way[d];
    return dot3(nearest, nearest);
}

/* Nearest point of a triangle to the origin: the foot on its plane if that is inside, else on an edge. Triangles of a
 * height field have an area when seen from above, so that the plane is never undefined. */
static double nearest_on_triangle(const double corners[3][3], double nearest[3])
{
    const double *a = corners[0], *b = corners[1], *c = corners[2];
    double ab[3], ac[3], normal[3];
    for (int d = 0; d < 3; d++) {
        ab[d] = b[d] - a[d];
        ac[d] = c[d] - a[d];
    }

    /* Foot of the origin on the plane. */
    normal[0] = ab[1] * ac[2] - ab[2] * ac[1];
    normal[1] = ab[2] * ac[0] - ab[0] * ac[2];
    normal[2] = ab[0] * ac[1] - ab[1] * ac[0];
    double height = dot3(a, normal) / dot3(normal, normal);
    for (int d = 0; d < 3; d++)
        nearest[d] = height * normal[d];

    /* Inside the triangle? */
    int inside = 1;
    for (int e = 0; e < 3 && inside; e++) {
        const double *p = corners[e], *q = corners[(e + 1) % 3];
        double edge[3], from[3], turn[3];
        for (int d = 0; d < 3; d++) {
            edge[d] = q[d] - p[d];
            from[d] = nearest[d] - p[d];
        }
        turn[0] = edge[1] * from[2] - edge[2] * from[1];
        turn[1] = edge[2] * from[0] - edge[0] * from[2];
        turn[2] = edge[0] * from[1] - edge[1] * from[0];
        inside = dot3(turn, normal) >= 0.0;
    }
    if (inside)
        return dot3(nearest, nearest);

    /* Else the nearest point is on an edge. */
    double best = INFINITY;
    for (int e = 0; e < 3; e++) {
        double candidate[3], distance2 = nearest_on_segment(corners[e], corners[(e + 1) % 3], candidate);
        if (distance2 < best) {
            best = distance2;
            memcpy(nearest, candidate, sizeof candidate);
        }
    }
    return best;
}

typedef struct ground_query {
    const sk_heightfield *field;
    double place[2], height; /* m of the point: east, north, up */
    double best2;            /* m2 */
    double nearest[3];       /* m from the point to the surface: east, north, up */
} ground_query;

static void ask_square(ground_query *query, int i, int j)
{
    const sk_heightfield *field = query->field;
    const double *s = field->frame.spacing;
    double low[2] = {i * s[0] - query->place[0], j * s[1] - query->place[1]};
    double high[2] = {low[0] + s[0], low[1] + s[1]};
    double h[4] = {node(field, i, j), node(field, i + 1, j), node(field, i + 1, j + 1), node(field, i, j + 1)};
    double least = smaller(smaller(h[0], h[1]), smaller(h[2], h[3])) - query->height;
    double most = larger(larger(h[0], h[1]), larger(h[2], h[3])) - query->height;
    double away[3] = {larger(larger(low[0], -high[0]), 0.0), larger(larger(low[1], -high[1]), 0.0),
                      larger(larger(least, -most), 0.0)};
    if (dot3(away, away) >= query->best2)
        return;
    const double points[4][3] = {{low[0], low[1], h[0] - query->height},
                                 {high[0], low[1], h[1] - query->height},
                                 {high[0], high[1], h[2] - query->height},
                                 {low[0], high[1], h[3] - query->height}};
    for (int t = 0; t < 2; t++) {
        double triangle[3][3], nearest[3];
        memcpy(triangle[0], points[0], sizeof triangle[0]);
        memcpy(triangle[1], points[1 + t], 2 * sizeof triangle[0]);
        double distance2 = nearest_on_triangle((const double(*)[3])triangle, nearest);
        if (distance2 < query->best2) {
            query->best2 = distance2;
            memcpy(query->nearest, nearest, sizeof nearest);
        }
    }
}

/* The squares below a square of the pyramid that may hold a nearer point. */
static void ask_squares(ground_query *query, int level, int i, int j)
{
    const sk_heightfield *field = query->field;
    const int *size = field->size[level];
    if (i < 0 || j < 0 || i >= size[0] || j >= size[1])
        return;
    if (level == 0) {
        ask_square(query, i, j);
        return;
    }
    const float *range = field->range[level][(size_t)j * (size_t)size[0] + (size_t)i];
    double away[3], least = range[0] - query->height, most = range[1] - query->height;
    const int index[2] = {i, j};
    for (int a = 0; a < 2; a++) {
        double width = field->frame.spacing[a] * (double)(1 << level), low = index[a] * width - query->place[a];
        away[a] = larger(larger(low, -low - width), 0.0);
    }
    away[2] = larger(larger(least, -most), 0.0);
    if (dot3(away, away) >= query->best2)
        return;
    for (int c = 0; c < 4; c++)
        ask_squares(query, level - 1, 2 * i + (c & 1), 2 * j + (c >> 1));
}

/* All squares that may hold a nearer point than the one found so far. */
static void search_squares(ground_query *query)
{
    const sk_heightfield *field = query->field;
    const sk_heightfield_frame *frame = &field->frame;
    double rest = sqrt(query->best2), least = smaller(frame->spacing[0], frame->spacing[1]);
    int first[2], last[2], own[2], within = 1, level = 0;

    /* Range of squares within the distance found so far. */
    for (int a = 0; a < 2; a++) {
        first[a] = square_index((query->place[a] - rest) / frame->spacing[a]);
        last[a] = square_index((query->place[a] + rest) / frame->spacing[a]);
        within &= first[a] >= 0 && last[a] < field->size[0][a];
        /* Beyond the table the squares repeat those of its edge. The nearest point is either straight across or at the
         * edge, so one square at the edge and the point's own square are enough. */
        own[a] = square_index(query->place[a] / frame->spacing[a]);
        first[a] = first[a] < -1 ? -1 : first[a] > field->size[0][a] ? field->size[0][a] : first[a];
        last[a] = last[a] > field->size[0][a] ? field->size[0][a] : last[a] < -1 ? -1 : last[a];
        own[a] = own[a] < first[a] || own[a] > last[a] ? own[a] : INT_MIN;
    }

    /* Within the table, start at the level of the pyramid whose squares are as large as the distance. */
    while (within && level < field->levels - 1 && least * (double)(1 << level) < rest)
        level++;
    if (within) {
        for (int j = first[1] >> level; j <= last[1] >> level; j++)
            for (int i = first[0] >> level; i <= last[0] >> level; i++)
                ask_squares(query, level, i, j);
        return;
    }

    /* Beyond the table there is no pyramid: visit the squares one by one. */
    for (int j = first[1]; j <= last[1] + 1; j++)
        for (int i = first[0]; i <= last[0] + 1; i++) {
            int x = i <= last[0] ? i : own[0], y = j <= last[1] ? j : own[1];
            if (x != INT_MIN && y != INT_MIN)
                ask_square(query, x, y);
        }
}

/* Upward normal of the triangle over a place, in the frame of the field. */
static void normal_over(const sk_heightfield *field, const double place[2], double normal[3])
{
    const double *s = field->frame.spacing;
    double step = 1e-3;
    double east = sk_heightfield_height(field, place[0] + step * s[0], place[1]) -
                  sk_heightfield_height(field, place[0] - step * s[0], place[1]);
    double north = sk_heightfield_height(field, place[0], place[1] + step * s[1]) -
                   sk_heightfield_height(field, place[0], place[1] - step * s[1]);
    normal[0] = -east / (2.0 * step * s[0]);
    normal[1] = -north / (2.0 * step * s[1]);
    normal[2] = 1.0;
}

static void set_normal(const sk_heightfield *field, const double local[3], double normal[3])
{
    const sk_heightfield_frame *frame = &field->frame;
    double v[3] = {local[0], field->dimension == 2 ? 0.0 : local[1], local[2]}, length = sqrt(dot3(v, v));
    if (!(length > 0.0)) {
        v[2] = length = 1.0;
        v[0] = v[1] = 0.0;
    }
    for (int a = 0; a < 3; a++)
        normal[frame->axis[a]] = frame->sign[a] * v[a] / length;
}

/* The point in the frame of the table; returns how far it is above the ground (m). */
static double find_place(const sk_heightfield *field, const double x[3], double place[2], double *height)
{
    const sk_heightfield_frame *frame = &field->frame;
    for (int a = 0; a < 2; a++)
        place[a] = frame->sign[a] * (x[frame->axis[a]] - frame->origin[a]);
    if (field->dimension == 2)
        place[1] = 0.0;
    *height = frame->sign[2] * x[frame->axis[2]];
    return *height - sk_heightfield_height(field, place[0], place[1]);
}

int sk_heightfield_inside(const sk_heightfield *field, const double x[3])
{
    double place[2], height;
    return find_place(field, x, place, &height) < 0.0;
}

double sk_heightfield_distance(const sk_heightfield *field, const double x[3], double normal[3])
{
    const sk_heightfield_frame *frame = &field->frame;
    ground_query query = {.field = field};

    /* Bounds that need no search. */
    double above = find_place(field, x, query.place, &query.height);
    double vertical = fabs(above), sign = above < 0.0 ? -1.0 : 1.0;
    double bound = safe_distance(field, query.place, query.height, above), found = bound;
    double local[3];
    normal_over(field, query.place, local);

    /* Search only near the ground. */
    if (bound < field->reach && bound < vertical) {
        /* The point straight below also bounds the distance. The search stops at twice the reach. */
        double radius = smaller(vertical, 2.0 * field->reach);
        query.best2 = radius * radius;
        query.nearest[2] = -above;
        /* The square below usually holds the nearest point and so bounds the search of the others. */
        ask_square(&query, square_index(query.place[0] / frame->spacing[0]),
                   square_index(query.place[1] / frame->spacing[1]));
        search_squares(&query);
        found = larger(sqrt(query.best2), bound);
        /* Away from the surface the gradient of the distance points along the shortest way; on it, the gradient is the
         * triangle's normal.
         */
        if (query.best2 < radius * radius && query.best2 > 1e-12 * frame->spacing[0] * frame->spacing[0])
            for (int a = 0; a < 3; a++)
                local[a] = -sign * query.nearest[a];
    }

    if (normal)
        set_normal(field, local, normal);
    return sign * found;
}

void sk_heightfield_bounds(const sk_heightfield *field, double low[3], double high[3])
{
    for (int d = 0; d < 3; d++) {
        low[d] = d < field->dimension ? -INFINITY : 0.0;
        high[d] = d < field->dimension ? INFINITY : 0.0;
    }
    int up = field->frame.axis[2];
    if (field->frame.sign[2] > 0.0)
        high[up] = field->highest;
    else
        low[up] = -field->highest;
}

const sk_heightfield_frame *sk_heightfield_look(const sk_heightfield *field)
{
    return &field->frame;
}
