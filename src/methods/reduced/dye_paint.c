/* The colours of the dye: the way back from a point, and pictures of it. */
#include <math.h>
#include <string.h>

#include "methods/reduced/dye.h"
#include "methods/reduced/dye_kernels.h"
#include "methods/reduced/reduced.h"
#include "rigid/rigid.h"

static const uint8_t paper[3] = {246, 247, 249}, stone[3] = {115, 112, 110};

/* --- The way back --- */

static int is_in_bounds(const sk_dye *dye, int n, const double a[2], const double b[2])
{
    for (int d = 0; d < 2; d++)
        if (fmax(a[d], b[d]) < dye->bounds[n][0][d] || fmin(a[d], b[d]) > dye->bounds[n][1][d])
            return 0;
    return 1;
}

/* A straight part of the way back. */
typedef struct way {
    double from[2], to[2]; /* m  later and earlier end */
    double late, early;    /* s */
} way;

/* The first source on the way, from its later end on. */
static int crossed_source(const sk_dye *dye, const selkie_dye_def *dyes, const way *w)
{
    int label = 0;
    double nearest = 2.0;
    for (int n = dye->count - 1; n >= 0; n--) {
        const double last = fmin(fmax(dyes[n].end, dyes[n].start), w->late), first = fmax(dyes[n].start, w->early);
        if (first > last || !is_in_bounds(dye, n, w->from, w->to))
            continue;
        const double length = w->late > w->early ? w->late - w->early : 1.0;
        const double s[2] = {(w->late - last) / length, (w->late - first) / length};
        double ends[2][3] = {{0.0}};
        for (int k = 0; k < 2; k++)
            for (int d = 0; d < 2; d++)
                ends[k][d] = w->from[d] + s[k] * (w->to[d] - w->from[d]);
        sk_surface_hit hit;
        double at = 2.0;
        if (sk_shape_inside(dye->shapes[n], ends[0]))
            at = s[0];
        else if (s[1] > s[0] && sk_shape_first_hit(dye->shapes[n], ends[0], ends[1], &hit))
            at = s[0] + hit.at * (s[1] - s[0]);
        if (at < nearest) {
            nearest = at;
            label = n + 1;
        }
    }
    return label;
}

/* Beyond an open side. */
static int is_outside(const sk_reduced_view *view, const double x[2])
{
    for (int d = 0; d < 2; d++)
        if (!view->periodic[d] && (x[d] < 0.0 || x[d] > view->size[d]))
            return 1;
    return 0;
}

/* What most of the four pixels around a point are, by their bilinear weights: an edge between them stays an edge. */
static int picture_at(const sk_dye *dye, const sk_reduced_view *view, const double x[2])
{
    int first[2], best = 0;
    double part[2], most = -1.0;
    for (int d = 0; d < 2; d++) {
        const double g = x[d] / view->size[d] * dye->pixels[d] - 0.5;
        first[d] = (int)floor(g);
        part[d] = g - first[d];
    }
    int labels[4];
    double weights[4];
    for (int c = 0; c < 4; c++) {
        int at[2] = {first[0] + (c & 1), first[1] + (c >> 1)};
        for (int d = 0; d < 2; d++) {
            const int last = dye->pixels[d] - 1;
            if (view->periodic[d])
                at[d] = (at[d] % dye->pixels[d] + dye->pixels[d]) % dye->pixels[d];
            at[d] = at[d] < 0 ? 0 : at[d] > last ? last : at[d];
        }
        labels[c] = dye->picture[(size_t)at[0] * (size_t)dye->pixels[1] + (size_t)at[1]];
        weights[c] = (c & 1 ? part[0] : 1.0 - part[0]) * (c >> 1 ? part[1] : 1.0 - part[1]);
    }
    for (int c = 0; c < 4; c++) {
        double sum = 0.0;
        for (int k = 0; k < 4; k++)
            sum += labels[k] == labels[c] ? weights[k] : 0.0;
        if (sum > most) {
            most = sum;
            best = labels[c];
        }
    }
    return best;
}

static int start_at(const sk_dye *dye, const selkie_dye_def *dyes, const double x[2])
{
    const double at[3] = {x[0], x[1], 0.0};
    for (int n = dye->count - 1; n >= 0; n--)
        if (dyes[n].start <= dye->header->begin[0] && is_in_bounds(dye, n, x, x) && sk_shape_inside(dye->shapes[n], at))
            return n + 1;
    return 0;
}

int sk_dye_at(const sk_dye *dye, const sk_step *step, const sk_reduced_view *view, double now, const double x[2])
{
    const selkie_dye_def *dyes = step->scene->reduced.dye;
    const sk_dye_header *h = dye->header;
    sk_reduced_view map = *view;
    double at[2] = {x[0], x[1]}, late = now;
    for (int m = h->map_count; m >= 0; m--) {
        const float place[2] = {(float)at[0], (float)at[1]};
        float back[2];
        map.values = m == h->map_count ? dye->current : dye->older + (size_t)m * dye->nodes * 2;
        sk_dye_sample(&map, place, back);
        way w = {{at[0], at[1]}, {at[0] + back[0], at[1] + back[1]}, late, h->begin[m]};
        const int label = late > h->begin[m] ? crossed_source(dye, dyes, &w) : 0;
        if (label)
            return label;
        if (is_outside(view, w.to)) {
            /* Rounding may lead a little through a wall. */
            for (int d = 0; d < 2; d++) {
                if ((w.to[d] < 0.0 && view->open[2 * d]) || (w.to[d] > view->size[d] && view->open[2 * d + 1]))
                    return 0;
                w.to[d] = view->periodic[d] ? w.to[d] : fmin(fmax(w.to[d], 0.0), view->size[d]);
            }
        }
        for (int d = 0; d < 2; d++)
            at[d] = view->periodic[d] ? w.to[d] - view->size[d] * floor(w.to[d] / view->size[d]) : w.to[d];
        late = h->begin[m];
    }
    return h->has_picture ? picture_at(dye, view, at) : start_at(dye, dyes, at);
}

void sk_dye_remember(sk_dye *dye, const sk_step *step, const sk_reduced_view *view, double now)
{
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 8)
    for (int i = 0; i < dye->pixels[0]; i++)
        for (int j = 0; j < dye->pixels[1]; j++) {
            const double x[2] = {view->size[0] * (i + 0.5) / dye->pixels[0],
                                 view->size[1] * (j + 0.5) / dye->pixels[1]};
            dye->other_picture[(size_t)i * (size_t)dye->pixels[1] + (size_t)j] =
                (uint8_t)sk_dye_at(dye, step, view, now, x);
        }
    memcpy(dye->picture, dye->other_picture, (size_t)dye->pixels[0] * (size_t)dye->pixels[1]);
    dye->header->has_picture = 1;
    dye->header->map_count = 0;
}

/* --- Pictures --- */

static int is_solid(const sk_step *step, const double x[2])
{
    const double at[3] = {x[0], x[1], 0.0};
    for (int b = 0; step->rigid && b < step->rigid->body_count; b++)
        if (sk_obstacle_distance(step->rigid->bodies[b].shape, &step->rigid->bodies[b].pose, at, NULL) < 0.0)
            return 1;
    for (int o = 0; o < step->solids.obstacle_count; o++)
        if (sk_shape_inside(step->solids.obstacles[o].shape, at))
            return 1;
    return 0;
}

void sk_dye_paint(const sk_step *step, int size[2], uint8_t *pixels)
{
    const sk_dye *dye = sk_step_state(step, &sk_method_dye);
    const sk_reduced *reduced = sk_step_state(step, &sk_method_reduced);
    const int shown = dye && dye->block;
    size[0] = shown ? dye->pixels[0] : 0;
    size[1] = shown ? dye->pixels[1] : 0;
    if (!shown || !pixels)
        return;
    const sk_reduced_view view = sk_reduced_view_of(reduced, step, dye->current);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 8)
    for (int row = 0; row < size[1]; row++)
        for (int column = 0; column < size[0]; column++) {
            const double x[2] = {view.size[0] * (column + 0.5) / size[0],
                                 view.size[1] * (size[1] - row - 0.5) / size[1]};
            uint8_t *to = pixels + 3 * ((size_t)row * (size_t)size[0] + (size_t)column);
            const int solid = is_solid(step, x), label = solid ? 0 : sk_dye_at(dye, step, &view, step->time, x);
            for (int c = 0; c < 3; c++)
                to[c] = solid   ? stone[c]
                        : label ? (uint8_t)(255.0 * step->scene->reduced.dye[label - 1].color[c] + 0.5)
                                : paper[c];
        }
}
