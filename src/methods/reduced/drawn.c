/* Drawings live in the coefficients of a fine spectrum, whose first modes are those of the basis. The projection to it
 * makes them free of divergence, and deflation against the basis (Eq. 5.10) leaves out the first coefficients. */
#include "methods/reduced/drawn.h"

#include <math.h>
#include <string.h>

#include "methods/reduced/svd.h"

/* Work in progress on the drawings. */
typedef struct drawing {
    const selkie_reduced_def *def;
    sk_reduced_spectrum fine;
    int columns;    /* fields so far */
    double *fields; /* [columns][fine.count], of unit length */
    double *last;   /* [drawn][fine.count] what each drawing excites */
    double *values, *weighted;
    int threads;
} drawing;

int sk_drawn_most(const selkie_scene *scene)
{
    int most = 0;
    for (int m = 0; m < scene->reduced.drawn_count; m++)
        most += scene->reduced.drawn[m].snapshots;
    return most;
}

int sk_reduced_fine_modes(const sk_reduced_box *box)
{
    const double waves[2] = {2.0 * (box->cells[0] - 3) / 3.0, 2.0 * (box->cells[1] - 3) / 3.0};
    const double reach = fmin(waves[0] / box->size[0], waves[1] / box->size[1]);
    const double modes = 0.25 * 3.14159 * reach * reach * box->size[0] * box->size[1] - 2.0 * fmax(waves[0], waves[1]);
    return modes > 65536.0 ? 65536 : modes > box->modes ? (int)modes : box->modes;
}

/* The velocity of the strokes of a drawing at the midpoints. */
static void paint(const selkie_drawn_def *def, const sk_reduced_spectrum *s, double *const field[2])
{
    for (int i = 0; i < s->cells[0]; i++)
        for (int j = 0; j < s->cells[1]; j++) {
            const size_t n = (size_t)i * (size_t)s->cells[1] + (size_t)j;
            const double x[2] = {s->size[0] * (i + 0.5) / s->cells[0], s->size[1] * (j + 0.5) / s->cells[1]};
            field[0][n] = field[1][n] = 0.0;
            for (int k = 0; k < def->stroke_count; k++) {
                const selkie_stroke_def *stroke = &def->strokes[k];
                const double along[2] = {stroke->to[0] - stroke->from[0], stroke->to[1] - stroke->from[1]};
                const double length = hypot(along[0], along[1]);
                const double to[2] = {x[0] - stroke->from[0], x[1] - stroke->from[1]};
                const double t = fmin(fmax((to[0] * along[0] + to[1] * along[1]) / (length * length), 0.0), 1.0);
                const double q = hypot(to[0] - t * along[0], to[1] - t * along[1]) / stroke->radius;
                const double weight = q < 1.0 ? stroke->speed * (1.0 - q * q) * (1.0 - q * q) / length : 0.0;
                field[0][n] += weight * along[0];
                field[1][n] += weight * along[1];
            }
        }
}

static double fastest(sk_reduced_spectrum *s, const double *r, int threads)
{
    double square = 0.0, *const nodes[2] = {s->grid[0], s->grid[1]};
    sk_reduced_velocities(s, r, nodes, threads);
    for (int n = 0; n < (s->cells[0] + 1) * (s->cells[1] + 1); n++)
        square = fmax(square, nodes[0][n] * nodes[0][n] + nodes[1][n] * nodes[1][n]);
    return sqrt(square);
}

static double length_of(const double *r, int count)
{
    double square = 0.0;
    for (int k = 0; k < count; k++)
        square += r[k] * r[k];
    return sqrt(square);
}

static void take_field(drawing *d, const double *r)
{
    const int count = d->fine.count;
    const double length = length_of(r, count);
    double *to = d->fields + (size_t)d->columns++ * (size_t)count;
    for (int k = 0; k < count; k++)
        to[k] = r[k] / length;
}

/* Draws, moves and takes the fields of one drawing. */
static selkie_code take_drawing(drawing *d, int m, selkie_error *error)
{
    const selkie_drawn_def *def = &d->def->drawn[m];
    sk_reduced_spectrum *s = &d->fine;
    double *r = d->last + (size_t)m * (size_t)s->count;
    paint(def, s, (double *const[2]){s->grid[3], s->grid[4]});
    sk_reduced_project(s, (const double *const[2]){s->grid[3], s->grid[4]}, r, d->threads);
    const double speed = fastest(s, r, d->threads);
    if (!(speed > 0.0))
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "reduced.drawn[%d]: the drawing \"%.64s\" has no part that is free of divergence; its strokes "
                       "must cross cells of the domain",
                       m, def->name);

    /* Without viscosity the speed stays of this size. */
    const int parts = def->snapshots > 1 ? def->snapshots - 1 : 1;
    const double time = def->time / parts, crossed = time * speed * sqrt(s->lambda[s->count - 1]);
    const int steps = crossed > 1.0 ? (int)ceil(fmin(crossed, 1e5)) : 1;
    for (int part = 0; part < parts; part++) {
        if (def->snapshots > 1)
            take_field(d, r);
        for (int n = 0; n < steps && time > 0.0; n++)
            sk_reduced_step(s, r, time / steps, 0.0, d->threads);
    }
    take_field(d, r);
    const double now = fastest(s, r, d->threads);
    for (int k = 0; k < s->count; k++)
        r[k] /= now;
    return SELKIE_OK;
}

/* Keeps the columns with a singular value above `least`, of unit length. Returns their number. */
static int keep_columns(drawing *d, double least)
{
    const int count = d->fine.count;
    int kept = 0;
    while (kept < d->columns && d->values[kept] > least) {
        double *column = d->fields + (size_t)kept * (size_t)count;
        for (int k = 0; k < count; k++)
            column[k] /= d->values[kept];
        kept++;
    }
    return kept;
}

/* Eq. 5.10, and a rotation after which viscosity acts on each mode alone. */
static void reduce(drawing *d, int closed)
{
    const int count = d->fine.count;
    sk_svd_columns(d->fields, count, d->columns, d->values, NULL, 0);
    d->columns = keep_columns(d, d->def->cut * d->values[0]);

    for (int c = 0; c < d->columns; c++)
        memset(d->fields + (size_t)c * (size_t)count, 0, (size_t)closed * sizeof(double));
    sk_svd_columns(d->fields, count, d->columns, d->values, NULL, 0);
    d->columns = keep_columns(d, d->def->cut);

    for (int c = 0; c < d->columns; c++)
        for (int k = 0; k < count; k++)
            d->weighted[(size_t)c * (size_t)count + (size_t)k] =
                sqrt(d->fine.lambda[k]) * d->fields[(size_t)c * (size_t)count + (size_t)k];
    sk_svd_columns(d->weighted, count, d->columns, d->values, d->fields, count);
}

/* The modes, and the coefficients of the drawings in the whole basis. */
static selkie_code add_modes(drawing *d, sk_reduced *reduced, sk_memory *memory, selkie_error *error)
{
    sk_reduced_spectrum *s = &reduced->spectrum, *fine = &d->fine;
    const int before = s->count;
    for (int c = 0; c < d->columns; c++) {
        const double *column = d->fields + (size_t)c * (size_t)fine->count;
        double *const middle[3] = {fine->grid[0], fine->grid[1], fine->grid[2]}, *const node[2] = {fine->grid[3],
                                                                                                   fine->grid[4]};
        sk_reduced_middles(fine, column, middle, d->threads);
        sk_reduced_velocities(fine, column, node, d->threads);
        sk_reduced_spectrum_add(s, d->values[c] * d->values[c],
                                (const double *const[3]){middle[0], middle[1], middle[2]},
                                (const double *const[2]){node[0], node[1]});
        s->extra.are_eigenfunctions = 0;
    }

    const int drawings = d->def->drawn_count;
    reduced->drawn = sk_allocate_zeroed(memory, (size_t)drawings * (size_t)s->count * sizeof(double));
    if (!reduced->drawn)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "reduced.drawn: no memory for %d drawings", drawings);
    for (int m = 0; m < drawings; m++) {
        const double *last = d->last + (size_t)m * (size_t)fine->count;
        double *to = reduced->drawn + (size_t)m * (size_t)s->count;
        memcpy(to, last, (size_t)s->closed * sizeof *to);
        for (int c = 0; c < d->columns; c++)
            for (int k = 0; k < fine->count; k++)
                to[before + c] += last[k] * d->fields[(size_t)c * (size_t)fine->count + (size_t)k];
    }
    return SELKIE_OK;
}

selkie_code sk_drawn_add(sk_reduced *reduced, const sk_step *step, const sk_reduced_box *box, selkie_error *error)
{
    const selkie_reduced_def *def = &step->scene->reduced;
    if (def->drawn_count == 0)
        return SELKIE_OK;
    drawing d = {.def = def, .threads = step->threads};
    sk_reduced_box fine = *box;
    fine.modes = sk_reduced_fine_modes(box);
    fine.extra = 0;
    selkie_code code = sk_reduced_spectrum_make(&d.fine, &fine, step->memory, error);

    const size_t most = (size_t)sk_drawn_most(step->scene), count = (size_t)fine.modes;
    if (code == SELKIE_OK) {
        d.fields = sk_allocate(step->memory, most * count * sizeof(double));
        d.weighted = sk_allocate(step->memory, most * count * sizeof(double));
        d.values = sk_allocate(step->memory, most * sizeof(double));
        d.last = sk_allocate_zeroed(step->memory, (size_t)def->drawn_count * count * sizeof(double));
        if (!d.fields || !d.weighted || !d.values || !d.last)
            code = sk_fail(error, SELKIE_ERROR_MEMORY, "reduced.drawn: no memory for %zu fields", most);
    }
    for (int m = 0; m < def->drawn_count && code == SELKIE_OK; m++)
        code = take_drawing(&d, m, error);
    if (code == SELKIE_OK) {
        reduce(&d, box->modes);
        code = add_modes(&d, reduced, step->memory, error);
    }

    sk_release(step->memory, d.fields);
    sk_release(step->memory, d.weighted);
    sk_release(step->memory, d.values);
    sk_release(step->memory, d.last);
    sk_reduced_spectrum_free(&d.fine);
    return code;
}
