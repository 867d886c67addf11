#include "methods/reduced/drawn.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "geom/picture_file.h"
#include "methods/reduced/enrich.h"

/* Work in progress on the drawings. */
typedef struct drawing {
    const selkie_reduced_def *def;
    const char *folder;
    sk_enrichment enrich;
    double *last; /* [drawn][fine.count] what each drawing excites */
} drawing;

int sk_drawn_most(const selkie_scene *scene)
{
    int most = 0;
    for (int m = 0; m < scene->reduced.drawn_count; m++)
        most += scene->reduced.drawn[m].snapshots;
    return most;
}

/* --- Painting --- */

/* Adds the velocity of a stroke at a point. */
static void add_stroke(const selkie_stroke_def *stroke, const double x[2], double velocity[2])
{
    const double along[2] = {stroke->to[0] - stroke->from[0], stroke->to[1] - stroke->from[1]};
    const double length = hypot(along[0], along[1]), to[2] = {x[0] - stroke->from[0], x[1] - stroke->from[1]};
    const double t = fmin(fmax((to[0] * along[0] + to[1] * along[1]) / (length * length), 0.0), 1.0);
    const double q = hypot(to[0] - t * along[0], to[1] - t * along[1]) / stroke->radius;
    const double weight = q < 1.0 ? stroke->speed * (1.0 - q * q) * (1.0 - q * q) / length : 0.0;
    velocity[0] += weight * along[0];
    velocity[1] += weight * along[1];
}

/* Adds the velocity of a picture: red along x, green along y. 127 and 128 are rest, so that grey paper is still. */
static void add_picture(const sk_picture_data *picture, const double part[2], double speed, double velocity[2])
{
    const double at[2] = {part[0] * picture->width - 0.5, (1.0 - part[1]) * picture->height - 0.5};
    const int low[2] = {(int)floor(at[0]), (int)floor(at[1])};
    for (int corner = 0; corner < 4; corner++) {
        const int x = low[0] + (corner & 1), y = low[1] + (corner >> 1);
        const double weight = (1.0 - fabs(at[0] - x)) * (1.0 - fabs(at[1] - y));
        const int column = x < 0 ? 0 : x < picture->width ? x : picture->width - 1;
        const int row = y < 0 ? 0 : y < picture->height ? y : picture->height - 1;
        const uint8_t *pixel = picture->rgb + 3 * ((size_t)row * (size_t)picture->width + (size_t)column);
        for (int d = 0; d < 2; d++) {
            const double value = pixel[d] / 127.5 - 1.0;
            velocity[d] += fabs(value) < 0.0079 ? 0.0 : weight * speed * value;
        }
    }
}

/* The velocity of a drawing at the midpoints. */
static selkie_code paint(const drawing *d, int m, const sk_reduced_spectrum *s, double *const field[2],
                         selkie_error *error)
{
    const selkie_drawn_def *def = &d->def->drawn[m];
    sk_picture_data picture = {0};
    char path[4096], what[64];
    if (def->picture && *def->picture) {
        snprintf(what, sizeof what, "reduced.drawn[%d].picture", m);
        SK_TRY(sk_picture_path(def->picture, d->folder, what, path, sizeof path, error));
        SK_TRY(sk_picture_read(path, what, s->memory, &picture, error));
    }
    for (int i = 0; i < s->cells[0]; i++)
        for (int j = 0; j < s->cells[1]; j++) {
            const size_t n = (size_t)i * (size_t)s->cells[1] + (size_t)j;
            const double part[2] = {(i + 0.5) / s->cells[0], (j + 0.5) / s->cells[1]};
            const double x[2] = {s->size[0] * part[0], s->size[1] * part[1]};
            double velocity[2] = {0.0, 0.0};
            for (int k = 0; k < def->stroke_count; k++)
                add_stroke(&def->strokes[k], x, velocity);
            if (picture.rgb)
                add_picture(&picture, part, def->picture_speed, velocity);
            field[0][n] = velocity[0];
            field[1][n] = velocity[1];
        }
    sk_picture_free(&picture);
    return SELKIE_OK;
}

/* --- Modes --- */

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

/* Draws, moves and takes the fields of one drawing. */
static selkie_code take_drawing(drawing *d, int m, selkie_error *error)
{
    const selkie_drawn_def *def = &d->def->drawn[m];
    sk_enrichment *e = &d->enrich;
    sk_reduced_spectrum *s = &e->fine;
    double *r = d->last + (size_t)m * (size_t)s->count;
    SK_TRY(paint(d, m, s, (double *const[2]){s->grid[3], s->grid[4]}, error));
    sk_reduced_project(s, (const double *const[2]){s->grid[3], s->grid[4]}, r, e->threads);
    const double speed = fastest(s, r, e->threads);
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
            sk_enrich_take(e, r, 1.0 / length_of(r, s->count));
        for (int n = 0; n < steps && time > 0.0; n++)
            sk_reduced_step(s, r, time / steps, 0.0, e->threads);
    }
    sk_enrich_take(e, r, 1.0 / length_of(r, s->count));
    const double now = fastest(s, r, e->threads);
    for (int k = 0; k < s->count; k++)
        r[k] /= now;
    return SELKIE_OK;
}

/* The modes, and the coefficients of the drawings in the whole basis. */
static selkie_code add_modes(drawing *d, sk_reduced *reduced, sk_memory *memory, selkie_error *error)
{
    sk_reduced_spectrum *s = &reduced->spectrum;
    sk_enrich_add(&d->enrich, s);
    SK_TRY(sk_reduced_name_flows(reduced, d->def->drawn_count, memory, error));
    for (int m = 0; m < d->def->drawn_count; m++) {
        snprintf(reduced->names[m], sizeof reduced->names[m], "%s", d->def->drawn[m].name);
        sk_enrich_express(&d->enrich, s, d->last + (size_t)m * (size_t)d->enrich.fine.count,
                          reduced->drawn + (size_t)m * (size_t)s->count);
    }
    return SELKIE_OK;
}

selkie_code sk_drawn_add(sk_reduced *reduced, const sk_step *step, const sk_reduced_box *box, selkie_error *error)
{
    const selkie_reduced_def *def = &step->scene->reduced;
    if (def->drawn_count == 0)
        return SELKIE_OK;
    drawing d = {.def = def, .folder = step->scene->folder};
    const int most = sk_drawn_most(step->scene);
    selkie_code code = sk_enrich_begin(&d.enrich, box, most, step->threads, step->memory, error);
    if (code == SELKIE_OK) {
        d.last =
            sk_allocate_zeroed(step->memory, (size_t)def->drawn_count * (size_t)d.enrich.fine.count * sizeof(double));
        code = d.last
                   ? SELKIE_OK
                   : sk_fail(error, SELKIE_ERROR_MEMORY, "reduced.drawn: no memory for %d drawings", def->drawn_count);
    }
    for (int m = 0; m < def->drawn_count && code == SELKIE_OK; m++)
        code = take_drawing(&d, m, error);
    if (code == SELKIE_OK) {
        sk_enrich_reduce(&d.enrich, &reduced->spectrum, def->cut, most);
        code = add_modes(&d, reduced, step->memory, error);
    }
    sk_release(step->memory, d.last);
    sk_enrich_end(&d.enrich);
    return code;
}
