#include "render/flow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "render/color.h"

struct sk_flow {
    sk_flat_view view;
    /* Dye: particles by square bins. */
    float bin; /* m */
    int bins[2];
    uint32_t *first, *order;
    /* Others: velocities on a grid. */
    float step; /* m */
    int nodes[2];
    float *u, *v, *weight;
};

enum { VOTES = 16 };                     /* materials that dye tells apart */
static const float smear_pixels = 14.0f; /* half the length of the convolution */
static const float apart_pixels = 13.0f; /* between streamlines */

/* --- Dye --- */

static int bin_of(const sk_flow *f, int axis, float x)
{
    const int n = (int)((x - (float)f->view.stage->low[axis]) / f->bin);
    return n < 0 ? 0 : n < f->bins[axis] ? n : f->bins[axis] - 1;
}

static void sort_particles(sk_flow *f)
{
    const sk_picture_particles *p = f->view.particles;
    for (size_t i = 0; i < p->count; i++) {
        const float *x = sk_particle_position(p, i);
        f->first[(size_t)bin_of(f, 1, x[1]) * (size_t)f->bins[0] + (size_t)bin_of(f, 0, x[0]) + 2]++;
    }
    for (size_t b = 1; b < (size_t)f->bins[0] * (size_t)f->bins[1] + 2; b++)
        f->first[b] += f->first[b - 1];
    for (size_t i = 0; i < p->count; i++) {
        const float *x = sk_particle_position(p, i);
        f->order[f->first[(size_t)bin_of(f, 1, x[1]) * (size_t)f->bins[0] + (size_t)bin_of(f, 0, x[0]) + 1]++] =
            (uint32_t)i;
    }
}

/* What the particles around a point say. */
typedef struct vote {
    float sum[VOTES];    /* weights by material, */
    float value, weight; /* and of what is shown otherwise */
    float best, nearest; /* squared distance of the nearest one (m2), and its value */
} vote;

static void ask_bin(const sk_flow *f, int i, int j, const float x[2], vote *v)
{
    if (i < 0 || j < 0 || i >= f->bins[0] || j >= f->bins[1])
        return;
    const size_t b = (size_t)j * (size_t)f->bins[0] + (size_t)i;
    const float inverse = 1.0f / (f->bin * f->bin);
    for (uint32_t k = f->first[b]; k < f->first[b + 1]; k++) {
        const float *p = sk_particle_position(f->view.particles, f->order[k]);
        const float dx = p[0] - x[0], dy = p[1] - x[1], square = dx * dx + dy * dy, q = 1.0f - square * inverse;
        const float value = sk_particle_value(f->view.particles, f->order[k], 2, f->view.options->color);
        if (square < v->best) {
            v->best = square;
            v->nearest = value;
        }
        if (q > 0.0f) {
            v->sum[(int)fminf(fmaxf(value, 0.0f), VOTES - 1)] += q * q * q;
            v->value += q * q * q * value;
            v->weight += q * q * q;
        }
    }
}

/* The value at a point: materials by the majority of the weights, others by their mean; far from particles that of the
 * nearest one. Returns 0 where none is near. */
static int value_at(const sk_flow *f, const float x[2], float *value)
{
    enum { MOST_RINGS = 4 };
    const int ci = bin_of(f, 0, x[0]), cj = bin_of(f, 1, x[1]);
    vote v = {.best = INFINITY};
    for (int ring = 0; ring <= MOST_RINGS && (ring < 2 || v.best == INFINITY); ring++)
        for (int j = -ring; j <= ring; j++)
            for (int i = -ring; i <= ring; i += j == -ring || j == ring ? 1 : 2 * ring)
                ask_bin(f, ci + i, cj + j, x, &v);
    *value = v.nearest;
    if (v.weight > 0.0f) {
        int most = 0;
        for (int n = 1; n < VOTES; n++)
            most = v.sum[n] > v.sum[most] ? n : most;
        *value = f->view.options->color == SELKIE_COLOR_MATERIAL ? (float)most : v.value / v.weight;
    }
    return v.best < INFINITY;
}

/* The colour of the dye's own picture at a point. */
static vec3 picture_color(const sk_flow *f, const float at[2])
{
    const sk_image *dye = f->view.options->dye;
    const double *low = f->view.stage->low, *high = f->view.stage->high;
    int x = (int)((at[0] - (float)low[0]) / (float)(high[0] - low[0]) * (float)dye->width);
    int y = (int)(((float)high[1] - at[1]) / (float)(high[1] - low[1]) * (float)dye->height);
    x = x < 0 ? 0 : x < dye->width ? x : dye->width - 1;
    y = y < 0 ? 0 : y < dye->height ? y : dye->height - 1;
    const uint8_t *p = dye->pixels + 3 * ((size_t)y * (size_t)dye->width + (size_t)x);
    return v3((float)p[0] / 255.0f, (float)p[1] / 255.0f, (float)p[2] / 255.0f);
}

static void dye_row(const sk_flow *f, int y)
{
    const sk_flat_view *v = &f->view;
    const int samples = v->options->dye ? 3 : 2; /* along each side of a pixel */
    const float *low = (const float[2]){(float)v->stage->low[0], (float)v->stage->low[1]},
                *high = (const float[2]){(float)v->stage->high[0], (float)v->stage->high[1]};
    for (int x = 0; x < v->image->width; x++) {
        vec3 sum = {0.0f, 0.0f, 0.0f};
        float cover = 0.0f;
        for (int s = 0; s < samples * samples; s++) {
            const float at[2] = {
                low[0] + ((float)x + ((float)(s % samples) + 0.5f) / (float)samples - v->left) / v->scale,
                high[1] - ((float)y + ((float)(s / samples) + 0.5f) / (float)samples - v->top) / v->scale};
            if (at[0] < low[0] || at[0] > high[0] || at[1] < low[1] || at[1] > high[1])
                continue;
            float value = 0.0f;
            if (!v->options->dye && !value_at(f, at, &value))
                continue;
            const vec3 color =
                v->options->dye ? picture_color(f, at) : sk_stage_speed_color(v->options->color, value, v->speed_scale);
            sum = v3(sum.x + color.x, sum.y + color.y, sum.z + color.z);
            cover += 1.0f;
        }
        if (cover > 0.0f)
            sk_image_blend(v->image, x, y, v3(sum.x / cover, sum.y / cover, sum.z / cover),
                           cover / (float)(samples * samples));
    }
}

/* --- Velocities on a grid --- */

/* Bilinear shares of each particle, in their order. */
static void gather(sk_flow *f)
{
    const sk_picture_particles *p = f->view.particles;
    for (size_t n = 0; n < p->count && p->velocity; n++) {
        const float *x = sk_particle_position(p, n);
        const float *velocity = (const float *)(const void *)((const char *)p->velocity + n * p->velocity_stride);
        const float gx = (x[0] - (float)f->view.stage->low[0]) / f->step,
                    gy = (x[1] - (float)f->view.stage->low[1]) / f->step;
        const int i = (int)floorf(gx), j = (int)floorf(gy);
        if (i < 0 || j < 0 || i + 1 >= f->nodes[0] || j + 1 >= f->nodes[1])
            continue;
        for (int c = 0; c < 4; c++) {
            const size_t at = (size_t)(j + (c >> 1)) * (size_t)f->nodes[0] + (size_t)(i + (c & 1));
            const float w =
                (c & 1 ? gx - (float)i : 1.0f - gx + (float)i) * (c >> 1 ? gy - (float)j : 1.0f - gy + (float)j);
            f->u[at] += w * velocity[0];
            f->v[at] += w * velocity[1];
            f->weight[at] += w;
        }
    }
    for (size_t n = 0; n < (size_t)f->nodes[0] * (size_t)f->nodes[1]; n++)
        if (f->weight[n] > 1e-3f) {
            f->u[n] /= f->weight[n];
            f->v[n] /= f->weight[n];
            f->weight[n] = 1.0f;
        } else {
            f->u[n] = f->v[n] = f->weight[n] = 0.0f;
        }
}

/* Nodes without particles take the mean of their neighbours: gaps of a few nodes close. Far from particles the flow
 * stays unknown. */
static void close_gaps(sk_flow *f)
{
    enum { ROUNDS = 4 };
    const int nx = f->nodes[0];
    const ptrdiff_t next[4] = {-1, 1, -nx, nx};
    for (int round = 1; round <= ROUNDS; round++)
        for (int j = 1; j + 1 < f->nodes[1]; j++)
            for (int i = 1; i + 1 < nx; i++) {
                const ptrdiff_t n = (ptrdiff_t)j * nx + i;
                float sum[3] = {0.0f, 0.0f, 0.0f};
                if (f->weight[n] != 0.0f)
                    continue;
                for (int k = 0; k < 4; k++)
                    if (f->weight[n + next[k]] > 0.0f && f->weight[n + next[k]] <= (float)round) {
                        sum[0] += f->u[n + next[k]];
                        sum[1] += f->v[n + next[k]];
                        sum[2] += 1.0f;
                    }
                if (sum[2] == 0.0f)
                    continue;
                f->u[n] = sum[0] / sum[2];
                f->v[n] = sum[1] / sum[2];
                f->weight[n] = (float)(round + 1);
            }
}

/* Velocity at a point (m from the lower corner). Returns 0 where it is not known. */
static int velocity_at(const sk_flow *f, const float x[2], float velocity[2])
{
    const float gx = x[0] / f->step, gy = x[1] / f->step;
    const int i = (int)gx, j = (int)gy;
    float known = 0.0f;
    velocity[0] = velocity[1] = 0.0f;
    if (gx < 0.0f || gy < 0.0f || i + 1 >= f->nodes[0] || j + 1 >= f->nodes[1])
        return 0;
    for (int c = 0; c < 4; c++) {
        const size_t at = (size_t)(j + (c >> 1)) * (size_t)f->nodes[0] + (size_t)(i + (c & 1));
        const float w =
            (c & 1 ? gx - (float)i : 1.0f - gx + (float)i) * (c >> 1 ? gy - (float)j : 1.0f - gy + (float)j);
        velocity[0] += w * f->u[at];
        velocity[1] += w * f->v[at];
        known += f->weight[at] > 0.0f ? w : 0.0f;
    }
    return known > 0.5f;
}

/* One step of `pixels` along the flow, by the midpoint rule. Returns 0 where the flow ends. */
static int follow(const sk_flow *f, float x[2], float pixels)
{
    float u[2], speed, middle[2];
    const float way = pixels / f->view.scale;
    for (int stage = 0; stage < 2; stage++) {
        const float *at = stage ? middle : x;
        if (!velocity_at(f, at, u) || !((speed = hypotf(u[0], u[1])) > 1e-6f * f->view.speed_scale))
            return 0;
        for (int d = 0; d < 2; d++)
            middle[d] = x[d] + (stage ? 1.0f : 0.5f) * way * u[d] / speed;
    }
    x[0] = middle[0];
    x[1] = middle[1];
    return 1;
}

/* --- Line integral convolution --- */

/* Noise of a pixel, 0 to 1. */
static float noise_at(int x, int y)
{
    uint32_t h = (uint32_t)x * 0x9e3779b1u ^ (uint32_t)y * 0x85ebca77u;
    h = (h ^ h >> 15) * 0x2c1b3c6du;
    h = (h ^ h >> 12) * 0x297a2d39u;
    return (float)((h ^ h >> 15) >> 8) / 16777216.0f;
}

static void lic_row(const sk_flow *f, int y)
{
    const sk_flat_view *v = &f->view;
    const float height = (float)(v->stage->high[1] - v->stage->low[1]);
    for (int x = 0; x < v->image->width; x++) {
        const float start[2] = {((float)x + 0.5f - v->left) / v->scale, height - ((float)y + 0.5f - v->top) / v->scale};
        float u[2];
        if (!velocity_at(f, start, u))
            continue;
        float sum = noise_at(x, y), weight = 1.0f;
        for (int way = -1; way <= 1; way += 2) {
            float at[2] = {start[0], start[1]};
            for (int n = 1; (float)n <= smear_pixels && follow(f, at, (float)way); n++) {
                sum += noise_at((int)floorf(v->left + at[0] * v->scale),
                                (int)floorf(v->top + (height - at[1]) * v->scale));
                weight += 1.0f;
            }
        }

        /* The mean of `weight` values of noise has the deviation 0.29 / sqrt(weight): stretched to the same contrast
         * everywhere. */
        const float light = clampf(0.5f + 0.75f * (sum / weight - 0.5f) * sqrtf(weight), 0.0f, 1.0f);
        const vec3 tint = v->options->color == SELKIE_COLOR_WATER
                              ? v3(0.62f, 0.66f, 0.70f)
                              : sk_stage_speed_color(SELKIE_COLOR_SPEED, hypotf(u[0], u[1]), v->speed_scale);
        const vec3 dark = v3(0.25f * tint.x, 0.25f * tint.y, 0.25f * tint.z),
                   pale = v3(0.35f + 0.65f * tint.x, 0.35f + 0.65f * tint.y, 0.35f + 0.65f * tint.z);
        sk_image_set(v->image, x, y,
                     light < 0.5f ? v3_mix(dark, tint, 2.0f * light) : v3_mix(tint, pale, 2.0f * light - 1.0f));
    }
}

/* --- Streamlines --- */

enum { MOST_POINTS = 1200 };
static const float line_step = 2.0f;      /* pixels */
static const float shortest_line = 50.0f; /* pixels */

/* Cells of half the distance between lines, and the line at hand. */
typedef struct line_space {
    int width, height;
    float cell;       /* pixels */
    int32_t *owner;   /* line that passes a cell, 0 = none, */
    int32_t *visited; /* and at which of its points */
    int count;
    float point[2 * MOST_POINTS][3]; /* pixels, and the speed (m/s) */
} line_space;

static ptrdiff_t place_of(const line_space *s, float x, float y)
{
    const int i = (int)(x / s->cell), j = (int)(y / s->cell);
    return x < 0.0f || y < 0.0f || i >= s->width || j >= s->height ? -1 : (ptrdiff_t)j * s->width + i;
}

/* Is another line within a cell, or this one, some turns ago? */
static int is_near(const line_space *s, float x, float y, int32_t line, int32_t now)
{
    for (int j = -1; j <= 1; j++)
        for (int i = -1; i <= 1; i++) {
            const ptrdiff_t n = place_of(s, x + (float)i * s->cell, y + (float)j * s->cell);
            if (n >= 0 && s->owner[n] &&
                (s->owner[n] != line || (float)abs(now - s->visited[n]) * line_step > 4.0f * apart_pixels))
                return 1;
        }
    return 0;
}

/* Follows the flow from a seed (m), forwards or backwards, until it meets a line. Points are numbered from the seed. */
static void trace(const sk_flow *f, line_space *s, const float seed[2], int32_t line, int way)
{
    const sk_flat_view *v = &f->view;
    const float height = (float)(v->stage->high[1] - v->stage->low[1]);
    float at[2] = {seed[0], seed[1]}, u[2];
    for (int n = 0; n < MOST_POINTS - 1; n++) {
        if (!velocity_at(f, at, u))
            break;
        float *to = s->point[s->count];
        to[0] = v->left + at[0] * v->scale;
        to[1] = v->top + (height - at[1]) * v->scale;
        to[2] = hypotf(u[0], u[1]);
        const ptrdiff_t place = place_of(s, to[0], to[1]);
        if (place < 0 || (n > 0 && is_near(s, to[0], to[1], line, way * n)))
            break;
        if (s->owner[place] != line) {
            s->owner[place] = line;
            s->visited[place] = way * n;
        }
        s->count++;
        if (!follow(f, at, (float)way * line_step))
            break;
    }
}

static void arrow(const sk_flow *f, const float *tip, const float *before, const sk_pen *pen)
{
    const float way[2] = {tip[0] - before[0], tip[1] - before[1]}, length = hypotf(way[0], way[1]), size = 5.0f;
    if (!(length > 0.0f))
        return;
    const float dx = way[0] / length * size, dy = way[1] / length * size;
    sk_image_line(f->view.image, tip[0], tip[1], tip[0] - dx - 0.5f * dy, tip[1] - dy + 0.5f * dx, pen);
    sk_image_line(f->view.image, tip[0], tip[1], tip[0] - dx + 0.5f * dy, tip[1] - dy - 0.5f * dx, pen);
}

/* Draws the points from first to last; the flow goes that way, or the other one. */
static void draw_points(const sk_flow *f, const line_space *s, int first, int last, int way)
{
    const sk_flat_view *v = &f->view;
    for (int n = first + 1; n < last; n++) {
        const float *a = s->point[n - 1], *b = s->point[n];
        const vec3 color = v->options->color == SELKIE_COLOR_WATER
                               ? v3(0.10f, 0.25f, 0.42f)
                               : sk_stage_speed_color(SELKIE_COLOR_SPEED, b[2], v->speed_scale);
        const sk_pen pen = {
            .width = 1.4f, .color = v3(0.85f * color.x, 0.85f * color.y, 0.85f * color.z), .alpha = 1.0f};
        sk_image_line(v->image, a[0], a[1], b[0], b[1], &pen);
        if (way > 0 && (n - first) % 70 == 14)
            arrow(f, b, a, &pen);
    }
}

/* A line through a seed, both ways. Short ones are taken back. Returns whether it was drawn. */
static int draw_line(const sk_flow *f, line_space *s, const float seed[2], int32_t line)
{
    s->count = 0;
    trace(f, s, seed, line, 1);
    const int middle = s->count;
    trace(f, s, seed, line, -1);
    if ((float)s->count * line_step < shortest_line) {
        for (int n = 0; n < s->count; n++)
            s->owner[place_of(s, s->point[n][0], s->point[n][1])] = 0;
        return 0;
    }
    draw_points(f, s, 0, middle, 1);
    draw_points(f, s, middle, s->count, -1);
    return 1;
}

static void draw_lines(const sk_flow *f)
{
    const sk_flat_view *v = &f->view;
    line_space *s = sk_allocate_zeroed(NULL, sizeof *s);
    if (!s)
        return;
    s->cell = 0.5f * apart_pixels;
    s->width = (int)((float)v->image->width / s->cell) + 1;
    s->height = (int)((float)v->image->height / s->cell) + 1;
    s->owner = sk_allocate_zeroed(NULL, (size_t)s->width * (size_t)s->height * sizeof *s->owner);
    s->visited = sk_allocate_zeroed(NULL, (size_t)s->width * (size_t)s->height * sizeof *s->visited);
    const float height = (float)(v->stage->high[1] - v->stage->low[1]);
    int32_t line = 1;

    /* Seeds: every third cell first, then those between, so that long lines come first. */
    for (int pass = 3; pass >= 1 && s->owner && s->visited; pass--)
        for (int j = 0; j < s->height; j += pass)
            for (int i = 0; i < s->width; i += pass) {
                const float px = ((float)i + 0.5f) * s->cell, py = ((float)j + 0.5f) * s->cell;
                const float seed[2] = {(px - v->left) / v->scale, height - (py - v->top) / v->scale};
                float u[2];
                if (velocity_at(f, seed, u) && !is_near(s, px, py, 0, 0))
                    line += draw_line(f, s, seed, line);
            }
    sk_release(NULL, s->owner);
    sk_release(NULL, s->visited);
    sk_release(NULL, s);
}

/* --- Life --- */

selkie_code sk_flow_create(const sk_flat_view *view, sk_flow **flow, selkie_error *error)
{
    sk_flow *f = sk_allocate_zeroed(NULL, sizeof *f);
    *flow = f;
    if (!f)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "picture: no memory");
    f->view = *view;
    int good = 1;
    if (view->options->style == SELKIE_STYLE_DYE) {
        f->bin = 1.5f * (float)view->stage->spacing;
        for (int d = 0; d < 2; d++)
            f->bins[d] = (int)((float)(view->stage->high[d] - view->stage->low[d]) / f->bin) + 1;
        f->first = sk_allocate_zeroed(NULL, ((size_t)f->bins[0] * (size_t)f->bins[1] + 3) * sizeof *f->first);
        f->order = sk_allocate(NULL, (view->particles->count + 1) * sizeof *f->order);
        good = f->first && f->order;
        if (good)
            sort_particles(f);
    } else {
        f->step = 1.25f * (float)view->stage->spacing;
        for (int d = 0; d < 2; d++)
            f->nodes[d] = (int)((float)(view->stage->high[d] - view->stage->low[d]) / f->step) + 2;
        const size_t nodes = (size_t)f->nodes[0] * (size_t)f->nodes[1];
        f->u = sk_allocate_zeroed(NULL, nodes * sizeof *f->u);
        f->v = sk_allocate_zeroed(NULL, nodes * sizeof *f->v);
        f->weight = sk_allocate_zeroed(NULL, nodes * sizeof *f->weight);
        good = f->u && f->v && f->weight;
        if (good) {
            gather(f);
            close_gaps(f);
        }
    }
    return good ? SELKIE_OK : sk_fail(error, SELKIE_ERROR_MEMORY, "picture: no memory for the flow");
}

void sk_flow_destroy(sk_flow *flow)
{
    if (!flow)
        return;
    sk_release(NULL, flow->first);
    sk_release(NULL, flow->order);
    sk_release(NULL, flow->u);
    sk_release(NULL, flow->v);
    sk_release(NULL, flow->weight);
    sk_release(NULL, flow);
}

void sk_flow_row(const sk_flow *flow, int y)
{
    if (flow->view.options->style == SELKIE_STYLE_DYE)
        dye_row(flow, y);
    else if (flow->view.options->style == SELKIE_STYLE_LIC)
        lic_row(flow, y);
}

void sk_flow_lines(const sk_flow *flow)
{
    if (flow->view.options->style == SELKIE_STYLE_STREAMLINES)
        draw_lines(flow);
}
