/* The outline of what is dark in a picture.
 *
 * Marching squares over the centres of the pixels, with a frame of white ones around them: every line is closed. A
 * crossing lies on an edge between two centres; each edge has one number, and the line that arrives there goes on from
 * there, so the loops are chains of numbers.
 */
#include "geom/picture_file.h"

#include <math.h>
#include <string.h>

static const double tolerance = 0.4;  /* pixels that a corner may move */
static const double least_area = 2.0; /* pixels of a loop; smaller ones are specks */

typedef struct tracing {
    const sk_picture_data *picture;
    double threshold;
    int width, height;   /*   of the framed picture */
    int32_t *next;       /*   [2 width height] edge -> next edge, -1 = none */
    double (*points)[2]; /* pixels, of the loop at hand */
    unsigned char *kept;
    int32_t *stack;
    size_t count;
    double (*segments)[2][3];
    size_t segment_count, segment_room;
} tracing;

/* Brightness, 0 to 1; the frame is white. */
static double value_at(const tracing *t, int x, int y)
{
    if (x < 1 || y < 1 || x > t->picture->width || y > t->picture->height)
        return 1.0;
    const uint8_t *p = t->picture->rgb + 3 * ((size_t)(y - 1) * (size_t)t->picture->width + (size_t)(x - 1));
    return (0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2]) / 255.0;
}

static int is_dark(const tracing *t, int x, int y)
{
    return value_at(t, x, y) < t->threshold;
}

/* The edge from (x, y) to the right (across = 0) or downwards (1). */
static int32_t edge_of(const tracing *t, int x, int y, int across)
{
    return (int32_t)(2 * ((size_t)y * (size_t)t->width + (size_t)x)) + across;
}

/* Lines through the square with the upper left corner (x, y). Dark is on the left of a
 * line. */
static void link_square(tracing *t, int x, int y)
{
    const int32_t top = edge_of(t, x, y, 0), left = edge_of(t, x, y, 1), bottom = edge_of(t, x, y + 1, 0),
                  right = edge_of(t, x + 1, y, 1);
    const int corner[4] = {is_dark(t, x, y), is_dark(t, x + 1, y), is_dark(t, x + 1, y + 1), is_dark(t, x, y + 1)};
    const int32_t edge[4] = {top, right, bottom, left};

    /* A line enters where the corners, clockwise, go from light to dark, and leaves where they go back. */
    int32_t enter[2], leave[2];
    int lines = 0;
    for (int c = 0; c < 4; c++)
        if (!corner[c] && corner[(c + 1) % 4]) {
            int d = (c + 1) % 4;
            while (corner[(d + 1) % 4])
                d = (d + 1) % 4;
            enter[lines] = edge[c];
            leave[lines++] = edge[d];
        }
    const double middle =
        0.25 * (value_at(t, x, y) + value_at(t, x + 1, y) + value_at(t, x + 1, y + 1) + value_at(t, x, y + 1));
    const int swap = lines == 2 && middle < t->threshold;
    for (int n = 0; n < lines; n++)
        t->next[enter[n]] = leave[swap ? 1 - n : n];
}

/* Where the line crosses an edge, in pixels of the picture. */
static void crossing(const tracing *t, int32_t edge, double point[2])
{
    const int across = edge & 1, x = (edge >> 1) % t->width, y = (edge >> 1) / t->width;
    const double a = value_at(t, x, y), b = value_at(t, x + !across, y + across);
    const double part = fmin(fmax((t->threshold - a) / (b - a), 0.01), 0.99);
    point[0] = fmin(fmax(x - 0.5 + (across ? 0.0 : part), 0.0), t->picture->width);
    point[1] = fmin(fmax(y - 0.5 + (across ? part : 0.0), 0.0), t->picture->height);
}

/* --- Simplification (Douglas and Peucker) --- */

static double distance_from(const double *p, const double *a, const double *b)
{
    const double dx = b[0] - a[0], dy = b[1] - a[1], square = dx * dx + dy * dy;
    const double s = square > 0.0 ? fmin(fmax(((p[0] - a[0]) * dx + (p[1] - a[1]) * dy) / square, 0.0), 1.0) : 0.0;
    return hypot(p[0] - a[0] - s * dx, p[1] - a[1] - s * dy);
}

/* Keeps the corners between two kept ones that are far from the line between them. */
static void keep_between(tracing *t, int32_t first, int32_t last)
{
    size_t depth = 0;
    t->stack[depth++] = first;
    t->stack[depth++] = last;
    while (depth) {
        const int32_t b = t->stack[--depth], a = t->stack[--depth];
        int32_t farthest = a;
        double most = tolerance;
        for (int32_t n = a + 1; n < b; n++) {
            const double d = distance_from(t->points[n], t->points[a], t->points[(size_t)b % t->count]);
            if (d > most) {
                most = d;
                farthest = n;
            }
        }
        if (farthest == a)
            continue;
        t->kept[farthest] = 1;
        t->stack[depth++] = a;
        t->stack[depth++] = farthest;
        t->stack[depth++] = farthest;
        t->stack[depth++] = b;
    }
}

static void simplify(tracing *t)
{
    size_t opposite = 0;
    double most = -1.0;
    memset(t->kept, 0, t->count);
    for (size_t n = 0; n < t->count; n++) {
        const double d = hypot(t->points[n][0] - t->points[0][0], t->points[n][1] - t->points[0][1]);
        if (d > most) {
            most = d;
            opposite = n;
        }
    }
    t->kept[0] = t->kept[opposite] = 1;
    keep_between(t, 0, (int32_t)opposite);
    keep_between(t, (int32_t)opposite, (int32_t)t->count);
}

/* --- Loops --- */

static double area_of(const tracing *t)
{
    double sum = 0.0;
    for (size_t n = 0; n < t->count; n++) {
        const double *a = t->points[n], *b = t->points[(n + 1) % t->count];
        sum += 0.5 * (a[0] * b[1] - a[1] * b[0]);
    }
    return fabs(sum);
}

static selkie_code add_loop(tracing *t, const double low[2], const double high[2], const char *what,
                            selkie_error *error)
{
    if (area_of(t) < least_area)
        return SELKIE_OK;
    simplify(t);
    SK_TRY(sk_reserve(t->picture->memory, (void **)&t->segments, &t->segment_room, t->segment_count + t->count,
                      sizeof *t->segments, what, error));
    const double scale[2] = {(high[0] - low[0]) / t->picture->width, (high[1] - low[1]) / t->picture->height};
    size_t before = 0;
    for (size_t n = 1; n <= t->count; n++) {
        if (n < t->count && !t->kept[n])
            continue;
        const double *ends[2] = {t->points[before], t->points[n % t->count]};
        for (int e = 0; e < 2; e++) {
            double *to = t->segments[t->segment_count][e];
            to[0] = low[0] + scale[0] * ends[e][0];
            to[1] = high[1] - scale[1] * ends[e][1];
            to[2] = 0.0;
        }
        t->segment_count++;
        before = n;
    }
    return SELKIE_OK;
}

static selkie_code follow_loops(tracing *t, const double low[2], const double high[2], const char *what,
                                selkie_error *error)
{
    const int32_t edges = 2 * t->width * t->height;
    for (int32_t first = 0; first < edges; first++) {
        t->count = 0;
        for (int32_t at = first; t->next[at] >= 0;) {
            const int32_t after = t->next[at];
            crossing(t, at, t->points[t->count++]);
            t->next[at] = -1;
            at = after;
        }
        if (t->count >= 3)
            SK_TRY(add_loop(t, low, high, what, error));
    }
    return SELKIE_OK;
}

selkie_code sk_picture_outline(const sk_picture_data *picture, double threshold, const double low[2],
                               const double high[2], const char *what, size_t *count, double (**segments)[2][3],
                               selkie_error *error)
{
    tracing t = {
        .picture = picture, .threshold = threshold, .width = picture->width + 2, .height = picture->height + 2};
    const size_t edges = 2 * (size_t)t.width * (size_t)t.height;
    t.next = sk_allocate(picture->memory, edges * sizeof *t.next);
    t.points = sk_allocate(picture->memory, edges * sizeof *t.points);
    t.kept = sk_allocate(picture->memory, edges);
    t.stack = sk_allocate(picture->memory, (2 * edges + 8) * sizeof *t.stack);
    selkie_code code = SELKIE_OK;
    if (!t.next || !t.points || !t.kept || !t.stack)
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for the outline of a picture", what);
    if (code == SELKIE_OK) {
        memset(t.next, 0xff, edges * sizeof *t.next);
        for (int y = 0; y + 1 < t.height; y++)
            for (int x = 0; x + 1 < t.width; x++)
                link_square(&t, x, y);
        code = follow_loops(&t, low, high, what, error);
    }
    if (code == SELKIE_OK && t.segment_count == 0)
        code = sk_fail(error, SELKIE_ERROR_INPUT, "%s: nothing in the picture is darker than the threshold, %g", what,
                       threshold);
    sk_release(picture->memory, t.next);
    sk_release(picture->memory, t.points);
    sk_release(picture->memory, t.kept);
    sk_release(picture->memory, t.stack);
    if (code != SELKIE_OK) {
        sk_release(picture->memory, t.segments);
        t.segments = NULL;
    }
    *segments = t.segments;
    *count = t.segment_count;
    return code;
}
