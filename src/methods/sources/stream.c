#include "methods/sources/stream.h"

#include <math.h>
#include <string.h>

/* The plane across the direction, and the range of the shape in it and along the direction. */
typedef struct section {
    double axes[2][3];      /*   unit vectors in the plane; in 2D the first alone */
    double low[2], high[2]; /* m range in the plane */
    double back, front;     /* m range along the direction */
    const sk_stream_source *of;
    const sk_grid *grid;
    const double *direction;
} section;

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Axes along those of the grid where the direction allows it: the lattice of a layer then fits the cells. */
static void choose_axes(const double n[3], int dimension, double axes[2][3])
{
    memset(axes, 0, 6 * sizeof(double));
    if (dimension == 2) {
        axes[0][0] = fabs(n[1]);
        axes[0][1] = n[1] > 0.0 ? -n[0] : n[0];
        if (n[1] == 0.0)
            axes[0][1] = 1.0;
        return;
    }
    int least = 0;
    for (int d = 1; d < 3; d++)
        least = fabs(n[d]) < fabs(n[least]) ? d : least;
    double length = sqrt(1.0 - n[least] * n[least]);
    for (int d = 0; d < 3; d++)
        axes[0][d] = ((d == least) - n[least] * n[d]) / length;
    for (int d = 0; d < 3; d++) {
        const int e = (d + 1) % 3, f = (d + 2) % 3;
        axes[1][d] = n[e] * axes[0][f] - n[f] * axes[0][e];
    }
}

/* The range of the shape's bounds within the domain. */
static void find_section(section *s)
{
    double low[3], high[3];
    const int dimension = s->grid->dimension;
    choose_axes(s->direction, dimension, s->axes);
    sk_shape_bounds(s->of->shape, low, high);
    s->back = INFINITY, s->front = -INFINITY;
    for (int a = 0; a < 2; a++)
        s->low[a] = INFINITY, s->high[a] = -INFINITY;
    for (int corner = 0; corner < 8; corner++) {
        double x[3] = {0, 0, 0};
        for (int d = 0; d < dimension; d++)
            x[d] = corner >> d & 1 ? fmin(high[d], s->grid->high[d]) : fmax(low[d], s->grid->low[d]);
        s->back = fmin(s->back, dot(x, s->direction));
        s->front = fmax(s->front, dot(x, s->direction));
        for (int a = 0; a < dimension - 1; a++) {
            s->low[a] = fmin(s->low[a], dot(x, s->axes[a]));
            s->high[a] = fmax(s->high[a], dot(x, s->axes[a]));
        }
    }
}

static void point_at(const section *s, const double in_plane[2], double along, double x[3])
{
    for (int d = 0; d < 3; d++)
        x[d] = in_plane[0] * s->axes[0][d] + in_plane[1] * s->axes[1][d] + along * s->direction[d];
}

/* A border of the shape on a line between two positions, of which the second is inside if `inward`. */
static double find_border(const section *s, const double in_plane[2], double before, double behind, int inward)
{
    for (int n = 0; n < 40; n++) {
        const double middle = 0.5 * (before + behind);
        double x[3];
        point_at(s, in_plane, middle, x);
        if ((sk_shape_distance(s->of->shape, x) < 0.0) == inward)
            behind = middle;
        else
            before = middle;
    }
    return behind;
}

/* Where a line along the direction enters the shape within the domain, and its length there; 0 if it misses it. */
static int find_entry(const section *s, const double in_plane[2], double entry[3], double *length)
{
    const double least = s->of->spacing / 32.0;
    double from = s->back, to = s->front, x[3], entered = NAN, before = NAN;

    /* The part of the line in the domain. */
    point_at(s, in_plane, 0.0, x);
    for (int d = 0; d < s->grid->dimension; d++) {
        const double n = s->direction[d];
        if (fabs(n) < 1e-12) {
            if (x[d] < s->grid->low[d] || x[d] > s->grid->high[d])
                return 0;
            continue;
        }
        const double a = (s->grid->low[d] - x[d]) / n, b = (s->grid->high[d] - x[d]) / n;
        from = fmax(from, fmin(a, b));
        to = fmin(to, fmax(a, b));
    }

    /* Steps of the distance to the shape, then bisection. */
    for (double t = from; t <= to;) {
        point_at(s, in_plane, t, x);
        const double distance = sk_shape_distance(s->of->shape, x);
        if (distance < 0.0 && isnan(entered))
            entered = isnan(before) ? t : find_border(s, in_plane, before, t, 1);
        if (distance >= 0.0 && !isnan(entered)) {
            to = find_border(s, in_plane, before, t, 0);
            break;
        }
        before = t;
        t += fmax(fabs(distance), least);
    }
    if (isnan(entered))
        return 0;
    point_at(s, in_plane, entered, entry);
    *length = to - entered;
    return 1;
}

/* The lines of a lattice that meet the shape: their number, and their points if `stream` is not NULL. */
static int64_t count_lines(const section *s, double spacing, sk_stream *stream)
{
    const int flat = s->grid->dimension == 2;
    const int64_t first[2] = {(int64_t)floor(s->low[0] / spacing), flat ? 0 : (int64_t)floor(s->low[1] / spacing)};
    const int64_t last[2] = {(int64_t)ceil(s->high[0] / spacing), flat ? 0 : (int64_t)ceil(s->high[1] / spacing)};
    int64_t found = 0;
    for (int64_t j = first[1]; j <= last[1]; j++)
        for (int64_t i = first[0]; i <= last[0]; i++) {
            const double in_plane[2] = {((double)i + 0.5) * spacing, flat ? 0.0 : ((double)j + 0.5) * spacing};
            double entry[3], length;
            if (!find_entry(s, in_plane, entry, &length))
                continue;
            if (stream) {
                memcpy(stream->points[found], entry, sizeof entry);
                stream->lengths[found] = length;
            }
            found++;
        }
    return found;
}

/* The section across the direction, m2 (2D: m), where a formula gives it; -1 otherwise. */
static double exact_area(const section *s)
{
    const selkie_shape *def = s->of->def;
    const double *n = s->direction;
    const int dimension = s->grid->dimension;
    double low[3], high[3];
    sk_shape_bounds(s->of->shape, low, high);
    for (int d = 0; d < dimension; d++)
        if (low[d] < s->grid->low[d] - 1e-9 * s->of->spacing || high[d] > s->grid->high[d] + 1e-9 * s->of->spacing)
            return -1.0; /* the domain cuts it */
    const double w[3] = {high[0] - low[0], high[1] - low[1], dimension == 3 ? high[2] - low[2] : 1.0};
    if (def->kind == SELKIE_SHAPE_BOX)
        return fabs(n[0]) * w[1] * w[2] + fabs(n[1]) * w[0] * w[2] + (dimension == 3 ? fabs(n[2]) * w[0] * w[1] : 0.0);
    if (def->kind == SELKIE_SHAPE_SPHERE)
        return dimension == 2 ? 2.0 * def->radius : 3.14159265358979323846 * def->radius * def->radius;
    if (def->kind == SELKIE_SHAPE_CYLINDER && dimension == 3) {
        double axis[3], length = 0.0;
        for (int d = 0; d < 3; d++) {
            axis[d] = def->to[d] - def->from[d];
            length += axis[d] * axis[d];
        }
        length = sqrt(length);
        const double along = fabs(dot(axis, n)) / length, across = sqrt(fmax(1.0 - along * along, 0.0));
        return 3.14159265358979323846 * def->radius * def->radius * along + 2.0 * def->radius * length * across;
    }
    return -1.0;
}

static double measure_area(const section *s)
{
    enum { most_lines = 512 }; /* along an axis */
    double area = exact_area(s);
    if (area >= 0.0)
        return area;
    const double width = fmax(s->high[0] - s->low[0], s->grid->dimension == 3 ? s->high[1] - s->low[1] : 0.0);
    const double fine = fmax(s->of->spacing / 8.0, width / most_lines);
    return (double)count_lines(s, fine, NULL) * (s->grid->dimension == 3 ? fine * fine : fine);
}

/* The direction of the velocity; without one, that of gravity. */
static int find_direction(const sk_stream_source *source, const sk_step *step, double direction[3])
{
    const double *from = dot(source->velocity, source->velocity) > 0.0 ? source->velocity : step->scene->gravity;
    const double length = sqrt(dot(from, from));
    for (int d = 0; d < 3; d++)
        direction[d] = length > 0.0 ? from[d] / length : 0.0;
    return length > 0.0;
}

/* Drops the points inside obstacles. */
static void drop_blocked(sk_stream *stream, const sk_step *step)
{
    int64_t kept = 0;
    for (int64_t p = 0; p < stream->point_count; p++) {
        double x[3], normal[3];
        int obstacle;
        for (int d = 0; d < 3; d++)
            x[d] = stream->points[p][d] + 1e-3 * stream->spacing * stream->direction[d];
        if (sk_solids_distance(&step->solids, x, normal, &obstacle) > 0.0 || obstacle < 0) {
            memmove(stream->points[kept], stream->points[p], sizeof *stream->points);
            stream->lengths[kept++] = stream->lengths[p];
        }
    }
    stream->point_count = kept;
}

static int64_t divisor(int64_t a, int64_t b)
{
    return b ? divisor(b, a % b) : a;
}

selkie_code sk_stream_init(sk_stream *stream, const sk_stream_source *source, const sk_step *step, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    memset(stream, 0, sizeof *stream);
    stream->spacing = source->spacing;
    if (!find_direction(source, step, stream->direction))
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: a flow_rate needs a direction: a velocity or gravity",
                       source->what);

    /* The points of a layer. */
    section s = {.of = source, .grid = grid, .direction = stream->direction};
    find_section(&s);
    const double area = measure_area(&s);
    const int64_t lines = count_lines(&s, source->spacing, NULL);
    stream->points = sk_allocate(step->memory, (size_t)(lines + 1) * sizeof *stream->points);
    stream->lengths = sk_allocate(step->memory, (size_t)(lines + 1) * sizeof *stream->lengths);
    if (!stream->points || !stream->lengths)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for its %lld points", source->what, (long long)lines);
    stream->point_count = count_lines(&s, source->spacing, stream);
    drop_blocked(stream, step);
    if (!stream->point_count)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "%s: has no room for a particle (spacing %g m): it is too thin or inside an obstacle",
                       source->what, source->spacing);

    /* Speed and rate. Obstacles may block a part of the section. */
    const double open = area * (double)stream->point_count / (double)lines;
    const double particle = pow(grid->cell_size, grid->dimension) / step->particles_per_cell;
    stream->speed = source->flow_rate > 0.0 ? source->flow_rate / open : sqrt(dot(source->velocity, source->velocity));
    for (int d = 0; d < 3; d++)
        stream->velocity[d] = stream->speed * stream->direction[d];
    stream->rate = stream->speed * open / particle;
    stream->layer = (double)stream->point_count * particle / open;
    stream->stride = (int64_t)(0.618 * (double)stream->point_count) + 1;
    while (divisor(stream->stride, stream->point_count) != 1)
        stream->stride++;
    return SELKIE_OK;
}

void sk_stream_free(sk_stream *stream, sk_memory *memory)
{
    sk_release(memory, stream->points);
    sk_release(memory, stream->lengths);
    stream->points = NULL;
    stream->lengths = NULL;
}

int64_t sk_stream_count(const sk_stream *stream, double duration)
{
    return duration > 0.0 ? (int64_t)floor(stream->rate * duration + 1e-6) : 0;
}

void sk_stream_place(const sk_stream *stream, int64_t k, double duration, double x[3])
{
    const int64_t layer = k / stream->point_count, turn = k % stream->point_count;
    const double *entry = stream->points[turn * stream->stride % stream->point_count];
    const double way = stream->speed * duration - (double)layer * stream->layer;
    for (int d = 0; d < 3; d++)
        x[d] = entry[d] + way * stream->direction[d];
}

int sk_stream_fill(const sk_stream *stream, sk_stream_filling *filling, double duration, double x[3])
{
    for (; filling->point < stream->point_count; filling->point++, filling->place = 0) {
        /* Sums over the lines are rounded, not the lines: the volume is that of the shape. */
        const double here = stream->lengths[filling->point] / stream->layer;
        const int64_t count = (int64_t)floor(filling->before + here + 0.5) - (int64_t)floor(filling->before + 0.5);
        if (filling->place < count) {
            const double way = stream->speed * duration + (double)++filling->place * stream->layer;
            for (int d = 0; d < 3; d++)
                x[d] = stream->points[filling->point][d] + way * stream->direction[d];
            return 1;
        }
        filling->before += here;
    }
    return 0;
}
