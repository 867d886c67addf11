#include "methods/reduced/coupling.h"

#include <math.h>
#include <string.h>

#include "linalg/dense.h"
#include "methods/reduced/panel_kernels.h"

enum { MOST_SWEEPS = 60 };
static const double near_lengths = 5.0; /* panels nearer than so many lengths are not points */
static const double least_gap = 0.2;    /* of a panel's length: panels do not resolve narrower gaps */

/* --- Life --- */

static selkie_code take_memory(sk_coupling *c, selkie_error *error)
{
    const size_t n = (size_t)c->count, whole = n + (size_t)c->body_count;
    double **arrays[] = {&c->points.across, &c->points.cosine, &c->points.sine, &c->points.growth, &c->points.decay,
                         &c->wanted,        &c->others,        &c->strength,    &c->circulation};
    int good = 1;
    for (size_t a = 0; a < sizeof arrays / sizeof *arrays; a++)
        good &= (*arrays[a] = sk_allocate_zeroed(c->memory, (n + SK_IMAGE_BLOCK) * sizeof(double))) != NULL;
    c->points.count = c->count;
    c->middle = sk_allocate_zeroed(c->memory, n * sizeof *c->middle);
    c->corner = sk_allocate_zeroed(c->memory, n * sizeof *c->corner);
    c->matrix = sk_allocate_zeroed(c->memory, n * n * sizeof *c->matrix);
    c->work = sk_allocate(c->memory, 4 * whole * sizeof *c->work);
    c->dense = sk_allocate(c->memory, whole * whole * sizeof *c->dense);
    c->rows = sk_allocate(c->memory, whole * sizeof *c->rows);
    good &= c->middle && c->corner && c->matrix && c->work && c->dense && c->rows;
    return good ? SELKIE_OK
                : sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory for %d panels; use longer ones", c->count);
}

/* -1/(2 pi) ln(distance) between the middles of the panels of a body. */
static selkie_code list_distances(sk_coupling *c, selkie_error *error)
{
    size_t total = 0;
    for (int b = 0; b < c->body_count; b++) {
        c->own_first[b] = total;
        total += (size_t)c->panels[b].count * (size_t)c->panels[b].count;
    }
    c->own = sk_allocate_zeroed(c->memory, total * sizeof *c->own);
    if (!c->own)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory for %d panels", c->count);
    for (int b = 0; b < c->body_count; b++) {
        const sk_panels *p = &c->panels[b];
        double *to = c->own + c->own_first[b];
        for (int i = 0; i < p->count; i++)
            for (int j = 0; j < p->count; j++, to++)
                *to = i == j ? 0.0
                             : -SK_INVERSE_TWO_PI *
                                   log(hypot(p->middle[i][0] - p->middle[j][0], p->middle[i][1] - p->middle[j][1]));
    }
    return SELKIE_OK;
}

selkie_code sk_coupling_make(sk_coupling *c, int body_count, sk_panels *panels, const double size[2],
                             const int closed[2], sk_memory *memory, selkie_error *error)
{
    memset(c, 0, sizeof *c);
    c->memory = memory;
    c->body_count = body_count;
    c->panels = panels;
    c->first = sk_allocate_zeroed(memory, (size_t)(body_count + 1) * sizeof *c->first);
    c->own_first = sk_allocate_zeroed(memory, (size_t)(body_count + 1) * sizeof *c->own_first);
    c->place = sk_allocate_zeroed(memory, (size_t)(body_count + 1) * sizeof *c->place);
    if (!c->first || !c->place || !c->own_first)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory for %d of them", body_count);
    for (int b = 0; b < body_count; b++)
        c->first[b + 1] = c->first[b] + panels[b].count;
    c->count = c->first[body_count];
    SK_TRY(take_memory(c, error));
    SK_TRY(list_distances(c, error));
    return sk_images_make(&c->images, size, closed, error);
}

void sk_coupling_free(sk_coupling *c)
{
    void *pieces[] = {c->first,       c->own_first,     c->place,        c->points.across, c->points.cosine,
                      c->points.sine, c->points.growth, c->points.decay, c->middle,        c->corner,
                      c->own,         c->matrix,        c->wanted,       c->others,        c->strength,
                      c->circulation, c->work,          c->dense,        c->rows};
    for (int b = 0; c->panels && b < c->body_count; b++)
        sk_panels_free(&c->panels[b]);
    sk_release(c->memory, c->panels);
    for (size_t n = 0; n < sizeof pieces / sizeof *pieces; n++)
        sk_release(c->memory, pieces[n]);
    memset(c, 0, sizeof *c);
}

/* --- Places --- */

static void turn(const double place[3], double cosine, double sine, const double local[2], double world[2])
{
    world[0] = place[0] + cosine * local[0] - sine * local[1];
    world[1] = place[1] + sine * local[0] + cosine * local[1];
}

/* A panel on a wall and its mirror image would cancel, and the strengths would have no bound. */
static void place_images(sk_coupling *c, int n, double gap)
{
    double x[2];
    for (int d = 0; d < 2; d++)
        x[d] = c->images.closed[d] ? fmin(fmax(c->middle[n][d], gap), c->images.size[d] - gap) : c->middle[n][d];
    sk_images_place(&c->images, n, x, &c->points);
}

void sk_coupling_place(sk_coupling *c, int body, const double center[2], double angle)
{
    const sk_panels *p = &c->panels[body];
    const double place[3] = {center[0], center[1], angle}, cosine = cos(angle), sine = sin(angle);
    memcpy(c->place[body], place, sizeof place);
    for (int i = 0; i < p->count; i++) {
        const int n = c->first[body] + i;
        turn(place, cosine, sine, p->middle[i], c->middle[n]);
        turn(place, cosine, sine, p->corner[i], c->corner[n]);
        place_images(c, n, least_gap * p->length[i]);
    }
}

/* A point of the box in the frame of a body. */
static void to_body(const double place[3], const double x[2], double local[2])
{
    const double cosine = cos(place[2]), sine = sin(place[2]), dx = x[0] - place[0], dy = x[1] - place[1];
    local[0] = cosine * dx + sine * dy;
    local[1] = cosine * dy - sine * dx;
}

/* --- The matrix --- */

/* Entries among the panels of one body: images only. */
static void assemble_own(sk_coupling *c, int b)
{
    const size_t n = (size_t)c->count;
    const int first = c->first[b], end = c->first[b + 1];
    const double *free_stream = c->own + c->own_first[b];
    for (int i = first; i < end; i++)
        for (int j = first; j < end; j++, free_stream++) {
            double *entry = &c->matrix[(size_t)i * n + (size_t)j];
            if (i != j)
                *entry -= *free_stream;
            else
                *entry = sk_images_regular(&c->images, &c->points, i, i, (const double[2]){0.0, 0.0});
        }
}

/* Entries between two bodies whose panels are near: panels in place of points. Panels that touch would have equal rows
 * in the matrix; a least gap keeps them apart. */
static void assemble_near(sk_coupling *c, int a, int b)
{
    const sk_panels *p = &c->panels[b];
    const double *place = c->place[b], reach = c->panels[a].reach + p->reach;
    if (hypot(c->place[a][0] - place[0], c->place[a][1] - place[1]) > reach + near_lengths * p->longest)
        return;
    for (int i = c->first[a]; i < c->first[a + 1]; i++) {
        double x[2];
        to_body(place, c->middle[i], x);
        for (int j = 0; j < p->count; j++) {
            const double dx = x[0] - p->middle[j][0], dy = x[1] - p->middle[j][1], square = dx * dx + dy * dy;
            if (square > near_lengths * near_lengths * p->length[j] * p->length[j])
                continue;
            double *entry = &c->matrix[(size_t)i * (size_t)c->count + (size_t)(c->first[b] + j)];
            *entry = sk_panels_stream_beside(p, j, x, least_gap * p->length[j]) / p->length[j] +
                     sk_images_regular(&c->images, &c->points, i, c->first[b] + j,
                                       (const double[2]){c->middle[i][0] - c->middle[c->first[b] + j][0],
                                                         c->middle[i][1] - c->middle[c->first[b] + j][1]});
        }
    }
}

void sk_coupling_assemble(sk_coupling *c, int threads)
{
    const int n = c->count;
    /* The kernel is symmetric: half of it is computed, in rows of falling length. */
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (n > 64 && threads > 1)
    for (int i = 0; i < n; i++)
        sk_images_streams(&c->images, &c->points, i, i + 1, n, c->matrix + (size_t)i * (size_t)n + (size_t)i + 1);
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (n > 64 && threads > 1)
    for (int b = 0; b < c->body_count; b++) {
        for (int i = c->first[b]; i < c->first[b + 1]; i++)
            for (int j = 0; j < i; j++)
                c->matrix[(size_t)i * (size_t)n + (size_t)j] = c->matrix[(size_t)j * (size_t)n + (size_t)i];
        assemble_own(c, b);
    }
    for (int a = 0; a < c->body_count; a++)
        for (int b = 0; b < c->body_count; b++)
            if (a != b)
                assemble_near(c, a, b);
}

/* --- Solves --- */

typedef double lanes __attribute__((vector_size(2 * sizeof(double)), aligned(sizeof(double))));

/* What the sheets of the first `columns` panels, but its own, add at the middles of a body. */
static void add_others(sk_coupling *c, int b, int columns)
{
    for (int i = c->first[b]; i < c->first[b + 1]; i++) {
        const double *row = c->matrix + (size_t)i * (size_t)c->count;
        lanes sum[4] = {{0.0}};
        int j = 0;
        for (; j + 8 <= columns; j += 8)
            for (int k = 0; k < 4; k++)
                sum[k] += *(const lanes *)(const void *)(row + j + 2 * k) *
                          *(const lanes *)(const void *)(c->circulation + j + 2 * k);
        const lanes all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        c->others[i] = all[0] + all[1];
        for (; j < columns; j++)
            c->others[i] += row[j] * c->circulation[j];
    }
}

/* New strengths of a body; returns the largest change. In the first sweep the bodies behind it have none yet. */
static double renew(sk_coupling *c, int b)
{
    const sk_panels *p = &c->panels[b];
    double *right = c->work, *strength = c->work + c->count, change = 0.0;
    add_others(c, b, c->sweeps == 1 ? c->first[b] : c->count);
    for (int i = 0; i < p->count; i++)
        right[i] = c->wanted[c->first[b] + i] - c->others[c->first[b] + i];
    sk_panels_strengths(p, right, strength);
    for (int i = 0; i < p->count; i++) {
        const int n = c->first[b] + i;
        change = fmax(change, fabs(strength[i] - c->strength[n]));
        c->strength[n] = strength[i];
        c->circulation[n] = strength[i] * p->length[i];
    }
    return change;
}

void sk_coupling_solve(sk_coupling *c, double tolerance)
{
    memset(c->strength, 0, (size_t)c->count * sizeof *c->strength);
    memset(c->circulation, 0, (size_t)c->count * sizeof *c->circulation);
    for (c->sweeps = 1; c->sweeps <= MOST_SWEEPS; c->sweeps++) {
        double largest = 0.0;
        c->change = 0.0;
        for (int b = 0; b < c->body_count; b++)
            c->change = fmax(c->change, renew(c, b));
        for (int n = 0; n < c->count; n++)
            largest = fmax(largest, fabs(c->strength[n]));
        if (!(c->change > tolerance * largest))
            break;
    }
    /* Sweeps that ended left what others add, to the tolerance; one that is the only one has seen half of them. */
    if (c->sweeps > 1 && c->sweeps <= MOST_SWEEPS)
        return;
    if (c->sweeps > MOST_SWEEPS)
        sk_coupling_solve_whole(c);
    for (int b = 0; b < c->body_count; b++)
        add_others(c, b, c->count);
}

int sk_coupling_solve_whole(sk_coupling *c)
{
    const int n = c->count, whole = n + c->body_count;
    const size_t width = (size_t)whole;
    double *x = c->work;
    memset(c->dense, 0, width * width * sizeof *c->dense);
    for (int b = 0; b < c->body_count; b++) {
        const sk_panels *p = &c->panels[b];
        for (int i = 0; i < p->count; i++) {
            const int row = c->first[b] + i;
            double *to = c->dense + (size_t)row * width;
            for (int j = 0; j < n; j++)
                to[j] = c->matrix[(size_t)row * (size_t)n + (size_t)j];
            for (int a = 0; a < c->body_count; a++)
                for (int j = 0; j < c->panels[a].count; j++)
                    to[c->first[a] + j] *= c->panels[a].length[j];
            for (int j = 0; j < p->count; j++)
                to[c->first[b] + j] += i == j ? sk_panel_stream(0.5 * p->length[j], 0.0, p->length[j])
                                              : sk_panels_stream(p, j, p->middle[i]);
            to[n + b] = -p->perimeter;
            c->dense[(size_t)(n + b) * width + (size_t)row] = p->length[i];
        }
    }
    memset(x, 0, width * sizeof *x);
    memcpy(x, c->wanted, (size_t)n * sizeof *x);
    if (!sk_lu_factor(whole, c->dense, c->rows))
        return 0;
    sk_lu_solve(whole, c->dense, c->rows, x, x + whole);
    for (int b = 0; b < c->body_count; b++)
        for (int i = c->first[b]; i < c->first[b + 1]; i++) {
            c->strength[i] = x[i];
            c->circulation[i] = x[i] * c->panels[b].length[i - c->first[b]];
        }
    return 1;
}

/* --- Velocities --- */

/* The image of a point in cell n of an axis, and whether it is mirrored. */
static double image_of(double x, double size, int closed, int n, int *mirrored)
{
    *mirrored = closed && n & 1;
    return closed ? (n & 1 ? (n + 1) * size - x : n * size + x) : n * size + x;
}

void sk_coupling_velocity(const sk_coupling *c, const double x[2], int copies, double velocity[2])
{
    velocity[0] = velocity[1] = 0.0;
    for (int b = 0; b < c->body_count; b++)
        for (int m = -copies; m <= copies; m++)
            for (int n = -copies; n <= copies; n++) {
                /* The point seen from the image is the image of the point, mirrored back. */
                int flip[2];
                double local[2];
                const double at[2] = {image_of(x[0], c->images.size[0], c->images.closed[0], m, &flip[0]),
                                      image_of(x[1], c->images.size[1], c->images.closed[1], n, &flip[1])};
                const double *place = c->place[b], cosine = cos(place[2]), sine = sin(place[2]);
                to_body(place, at, local);
                for (int j = 0; j < c->panels[b].count; j++) {
                    double u[2];
                    const double strength = c->strength[c->first[b] + j];
                    sk_panels_velocity(&c->panels[b], j, local, u);
                    velocity[0] += (flip[0] ? -1.0 : 1.0) * strength * (cosine * u[0] - sine * u[1]);
                    velocity[1] += (flip[1] ? -1.0 : 1.0) * strength * (sine * u[0] + cosine * u[1]);
                }
            }
}
