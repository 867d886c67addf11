/* Pictures of 2D scenes: liquid as discs or as a filled shape, coloured by speed or density, with obstacles, the
 * domain's frame and a scale of colours.
 *
 * Both styles work on weights at the nodes of a grid half a spacing wide. A point is liquid if the weighted mean of the
 * particles is nearer than a particle's radius (Zhu and Bridson 2005, in the plane). Discs are drawn in the order of
 * the particles. Each row belongs to one thread, so every pixel is written by one.
 */
#include "render/stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "render/color.h"
#include "render/flow.h"

typedef struct node {
    float weight, x, y; /* sums of w, w x, w y (m) */
    float value;        /* sum of w speed */
} node;

enum { table_colors = 1024 };

typedef struct flat_picture {
    const sk_stage *stage;
    const sk_picture_particles *particles;
    const sk_picture_options *options;
    sk_image *image;
    float left, top; /* pixels of the domain's upper left corner */
    float scale;     /* pixels a metre */
    float speed_scale;
    int nodes[2];
    float step;  /* m between nodes */
    float reach; /* m of the kernel */
    node *node;
    uint32_t *order; /* particles by row of nodes */
    size_t *first;   /* [nodes[1] + 1] */
    sk_pose *poses;  /* of the obstacles */
    float *solid;    /* pixels to the nearest obstacle, a pixel each */
    int table_used;  /* colours of values come from the table */
    vec3 table[table_colors];
    sk_flow *flow; /* of the styles that show it; NULL for others */
} flat_picture;

static const vec3 paper = {0.965f, 0.970f, 0.975f}, ink = {0.13f, 0.17f, 0.21f}, stone = {0.45f, 0.44f, 0.43f};

/* --- Layout --- */

static int wants_scale(const flat_picture *f)
{
    return f->options->label && !f->options->dye && f->image->width >= 240 && f->options->color != SELKIE_COLOR_ROLE &&
           f->options->color != SELKIE_COLOR_MATERIAL && f->options->color != SELKIE_COLOR_TEMPERATURE;
}

static void lay_out(flat_picture *f)
{
    const sk_stage *s = f->stage;
    float text = fmaxf(9.0f, (float)f->image->height / 45.0f);
    float margin = fmaxf(2.0f, 0.02f * (float)f->image->width);
    float right = margin + (wants_scale(f) ? 7.0f * text : 0.0f),
          bottom = margin + (f->options->label ? 2.2f * text : 0);
    float width = (float)f->image->width - margin - right, height = (float)f->image->height - margin - bottom;
    float metres[2] = {(float)(s->high[0] - s->low[0]), (float)(s->high[1] - s->low[1])};
    f->scale = fminf(width / metres[0], height / metres[1]);
    f->left = margin + 0.5f * (width - f->scale * metres[0]);
    f->top = margin + 0.5f * (height - f->scale * metres[1]);
}

static float to_x(const flat_picture *f, float metres)
{
    return f->left + (metres - (float)f->stage->low[0]) * f->scale;
}

static float to_y(const flat_picture *f, float metres)
{
    return f->top + ((float)f->stage->high[1] - metres) * f->scale;
}

/* --- Sums at nodes --- */

static int row_of(const flat_picture *f, float y)
{
    float row = (y - (float)f->stage->low[1]) / f->step;
    return row < 0.0f ? 0 : row >= (float)(f->nodes[1] - 1) ? f->nodes[1] - 1 : (int)row;
}

static int usable(const flat_picture *f, const float *x)
{
    float margin = f->reach;
    return x[0] > (float)f->stage->low[0] - margin && x[0] < (float)f->stage->high[0] + margin &&
           x[1] > (float)f->stage->low[1] - margin && x[1] < (float)f->stage->high[1] + margin;
}

/* Particles by row, so that a row of nodes finds those that reach it. */
static void sort_rows(flat_picture *f)
{
    for (size_t i = 0; i < f->particles->count; ++i) {
        const float *x = sk_particle_position(f->particles, i);
        if (usable(f, x))
            ++f->first[row_of(f, x[1]) + 2];
    }
    for (int row = 1; row < f->nodes[1] + 2; ++row)
        f->first[row] += f->first[row - 1];
    for (size_t i = 0; i < f->particles->count; ++i) {
        const float *x = sk_particle_position(f->particles, i);
        if (usable(f, x))
            f->order[f->first[row_of(f, x[1]) + 1]++] = (uint32_t)i;
    }
}

/* One particle, or its image behind a wall, onto a row of nodes. */
static void add_to_row(const flat_picture *f, node *nodes, float x, float dy, float speed)
{
    const float inverse = 1.0f / (f->reach * f->reach), across = (x - (float)f->stage->low[0]) / f->step;
    if (dy * dy >= f->reach * f->reach)
        return;
    int first = (int)ceilf(across - f->reach / f->step), last = (int)floorf(across + f->reach / f->step);
    for (int i = first < 0 ? 0 : first; i <= last && i < f->nodes[0]; ++i) {
        float dx = (across - (float)i) * f->step, q = 1.0f - (dx * dx + dy * dy) * inverse;
        if (q <= 0.0f)
            continue;
        float w = q * q * q;
        nodes[i].weight += w;
        nodes[i].x += w * dx;
        nodes[i].y += w * dy;
        nodes[i].value += w * speed;
    }
}

/* A coordinate and its images behind near walls. Returns their number. */
static int mirror(float x, float low, float high, float reach, float places[3])
{
    int count = 1;
    places[0] = x;
    if (2 * low - x > low - reach)
        places[count++] = 2 * low - x;
    if (2 * high - x < high + reach)
        places[count++] = 2 * high - x;
    return count;
}

/* Images behind the walls keep the liquid's edge at a right angle to them. */
static void gather_row(flat_picture *f, int row)
{
    const int reach_rows = (int)(f->reach / f->step) + 2;
    const float *low = (const float[2]){(float)f->stage->low[0], (float)f->stage->low[1]};
    const float *high = (const float[2]){(float)f->stage->high[0], (float)f->stage->high[1]};
    const float y = low[1] + (float)row * f->step;
    node *nodes = f->node + (size_t)row * (size_t)f->nodes[0];
    int first = row - reach_rows < 0 ? 0 : row - reach_rows;
    int last = row + reach_rows > f->nodes[1] - 1 ? f->nodes[1] - 1 : row + reach_rows;
    for (size_t k = f->first[first]; k < f->first[last + 1]; ++k) {
        const float *p = sk_particle_position(f->particles, f->order[k]);
        float speed = sk_particle_value(f->particles, f->order[k], 2, f->options->color);
        speed = isfinite(speed) ? speed : 0.0f;
        float xs[3] = {p[0]}, ys[3] = {p[1]};
        const int across = mirror(p[0], low[0], high[0], f->reach, xs),
                  up = mirror(p[1], low[1], high[1], f->reach, ys);
        for (int b = 0; b < up; ++b)
            for (int a = 0; a < across; ++a)
                add_to_row(f, nodes, xs[a], ys[b] - y, speed);
    }
}

/* --- Liquid --- */

/* Weight of the kernel in the bulk at rest: its integral over the area of a particle. */
static float rest_weight(const flat_picture *f)
{
    float spacing = (float)f->stage->spacing;
    return 0.7853982f * f->reach * f->reach / (spacing * spacing);
}

static vec3 value_color(const flat_picture *f, float speed, float density)
{
    if (f->table_used) {
        const float t = f->options->color == SELKIE_COLOR_DENSITY ? 0.5f * density : speed / f->speed_scale;
        return f->table[(int)(clampf(isnan(t) ? 0.0f : t, 0.0f, 1.0f) * (float)(table_colors - 1) + 0.5f)];
    }
    if (f->options->color == SELKIE_COLOR_DENSITY)
        return sk_color(SK_MAP_RATIO, 0.5f * density);
    return sk_stage_speed_color(f->options->color, speed, f->speed_scale);
}

/* Colours that follow a value without steps. */
static void fill_table(flat_picture *f)
{
    const selkie_picture_color color = f->options->color;
    if ((color != SELKIE_COLOR_DENSITY && color != SELKIE_COLOR_WATER && color != SELKIE_COLOR_SPEED) ||
        !(f->speed_scale > 0.0f))
        return;
    for (int i = 0; i < table_colors; ++i) {
        const float t = (float)i / (float)(table_colors - 1);
        f->table[i] = value_color(f, t * f->speed_scale, 2.0f * t);
    }
    f->table_used = 1;
}

/* `solid` holds distances of the row's pixels to the obstacles, in pixels. Liquid near an obstacle is drawn up to it.
 */
static void fill_row(const flat_picture *f, int y, const float *solid)
{
    const float radius = 0.5642f * (float)f->stage->spacing;
    float down = (float)(f->stage->high[1] - f->stage->low[1]) - ((float)y + 0.5f - f->top) / f->scale;
    if (down < 0.0f || down > (float)(f->stage->high[1] - f->stage->low[1]))
        return;

    /* Visit the pixels between the left and the right edge of the domain. */
    int first = (int)floorf(f->left), last = (int)ceilf(to_x(f, (float)f->stage->high[0]));
    for (int x = first < 0 ? 0 : first; x < last && x < f->image->width; ++x) {
        float u = ((float)x + 0.5f - f->left) / f->scale / f->step, v = down / f->step;
        int i = (int)u, j = (int)v;
        if (u < 0.0f || i >= f->nodes[0] - 1 || j >= f->nodes[1] - 1)
            continue;

        /* Interpolate distance, value and weight from the four nodes around the pixel. */
        float phi = 0.0f, value = 0.0f, weight = 0.0f;
        for (int c = 0; c < 4; ++c) {
            const node *n = &f->node[(size_t)(i + (c & 1)) + (size_t)(j + (c >> 1)) * (size_t)f->nodes[0]];
            float share = (c & 1 ? u - (float)i : 1.0f - u + (float)i) * (c >> 1 ? v - (float)j : 1.0f - v + (float)j);
            float distance = n->weight > 1e-6f ? sqrtf(n->x * n->x + n->y * n->y) / n->weight - radius : f->reach;
            phi += share * distance;
            value += share * n->value;
            weight += share * n->weight;
        }

        /* Extend the liquid to obstacles and smooth its edge. */
        phi -= 1.3f * radius * (1.0f - smoothstepf(0.0f, 3.0f * radius * f->scale, solid[x]));
        float cover = clampf(0.5f - phi * f->scale * 1.4f, 0.0f, 1.0f);
        if (cover <= 0.0f || weight <= 0.0f)
            continue;
        vec3 color = value_color(f, value / weight, weight / rest_weight(f));
        sk_image_blend(f->image, x, y, color, cover);
    }
}

static float density_at(const flat_picture *f, const float *x)
{
    int i = (int)((x[0] - (float)f->stage->low[0]) / f->step + 0.5f), j = row_of(f, x[1] + 0.5f * f->step);
    i = i < 0 ? 0 : i >= f->nodes[0] ? f->nodes[0] - 1 : i;
    return f->node[(size_t)i + (size_t)j * (size_t)f->nodes[0]].weight / rest_weight(f);
}

/* Discs of the particles that touch a band of pixel rows. */
static void disc_band(const flat_picture *f, int top, int bottom)
{
    const float radius = fmaxf(0.5f * (float)f->stage->spacing * f->scale, 0.7f);
    for (size_t i = 0; i < f->particles->count; ++i) {
        const float *p = sk_particle_position(f->particles, i);
        if (!usable(f, p))
            continue;
        float cx = to_x(f, p[0]), cy = to_y(f, p[1]);
        if (cy + radius + 1 < (float)top || cy - radius - 1 > (float)bottom)
            continue;
        float density = f->options->color == SELKIE_COLOR_DENSITY ? density_at(f, p) : 1.0f;
        vec3 color = value_color(f, sk_particle_value(f->particles, i, 2, f->options->color), density);
        for (int y = (int)floorf(cy - radius); y <= (int)ceilf(cy + radius); ++y)
            for (int x = (int)floorf(cx - radius); x <= (int)ceilf(cx + radius) && y >= top && y < bottom; ++x) {
                float distance = hypotf((float)x + 0.5f - cx, (float)y + 0.5f - cy);
                sk_image_blend(f->image, x, y, color, clampf(radius + 0.5f - distance, 0.0f, 1.0f));
            }
    }
}

/* --- Around it --- */

/* Distances of a row's pixels to the nearest obstacle, in pixels. */
static void measure_row(const flat_picture *f, const sk_pose *poses, int y, float *solid)
{
    const double room = 1.0 / (double)f->scale;
    for (int x = 0; x < f->image->width; ++x) {
        double world[3] = {f->stage->low[0] + (double)(((float)x + 0.5f - f->left) / f->scale),
                           f->stage->high[1] - (double)(((float)y + 0.5f - f->top) / f->scale), 0};
        solid[x] = 1e9f;
        if (world[0] < f->stage->low[0] - room || world[0] > f->stage->high[0] + room ||
            world[1] < f->stage->low[1] - room || world[1] > f->stage->high[1] + room)
            continue;
        for (int i = 0; i < f->stage->solid_count; ++i) {
            double local[3];
            if (f->stage->solids[i].is_particles)
                continue;
            sk_pose_to_local(&poses[i], world, local);
            solid[x] = fminf(solid[x], (float)sk_shape_distance(f->stage->solids[i].shape, local) * f->scale);
        }
    }
}

static void obstacle_row(const flat_picture *f, const float *solid, int y)
{
    for (int x = 0; x < f->image->width; ++x) {
        float rim = 1.0f - smoothstepf(0.5f, 2.0f, -solid[x]);
        sk_image_blend(f->image, x, y, v3_mix(stone, ink, 0.6f * rim), clampf(0.5f - solid[x], 0.0f, 1.0f));
    }
}

static void draw_frame(const flat_picture *f)
{
    const sk_stage *s = f->stage;
    float x[2] = {to_x(f, (float)s->low[0]), to_x(f, (float)s->high[0])};
    float y[2] = {to_y(f, (float)s->low[1]), to_y(f, (float)s->high[1])};
    float width = fmaxf(1.0f, (float)f->image->height / 400.0f);
    const float ends[4][4] = {
        {x[0], y[0], x[0], y[1]}, {x[1], y[0], x[1], y[1]}, {x[0], y[0], x[1], y[0]}, {x[0], y[1], x[1], y[1]}};
    for (int w = 0; w < 4; ++w) {
        /* Open walls are faint. */
        float alpha = s->scene->domain.walls[w] == SELKIE_WALL_OPEN ? 0.2f : 0.9f;
        const sk_pen pen = {.width = width, .color = ink, .alpha = alpha};
        sk_image_line(f->image, ends[w][0], ends[w][1], ends[w][2], ends[w][3], &pen);
    }
}

static void draw_scale(const flat_picture *f)
{
    if (!wants_scale(f))
        return;
    float text = fmaxf(9.0f, (float)f->image->height / 45.0f);
    const selkie_picture_color shown = f->options->color;
    const int density = shown == SELKIE_COLOR_DENSITY;
    const char *unit = density                                ? "density"
                       : shown == SELKIE_COLOR_STRESS         ? "stress, Pa"
                       : shown == SELKIE_COLOR_PLASTIC_STRAIN ? "plastic strain"
                                                              : "m/s";
    float most = density ? 2.0f : f->speed_scale;
    int x0 = f->image->width - (int)(6.2f * text), x1 = x0 + (int)(1.1f * text);
    int y0 = (int)(2.6f * text), y1 = y0 + (int)fminf(0.5f * (float)f->image->height, 16.0f * text);

    /* The bar. */
    for (int y = y0; y < y1; ++y) {
        float value = most * (1.0f - ((float)(y - y0) + 0.5f) / (float)(y1 - y0));
        sk_image_fill(f->image, x0, y, x1, y + 1, value_color(f, value, value), 1.0f);
    }

    /* Its numbers and its unit. */
    const sk_pen pen = {.width = 1.0f, .color = ink, .alpha = 0.8f};
    const sk_text_style style = {.size = 0.85f * text, .color = ink, .alpha = 0.9f};
    for (int k = 0; k <= 4; ++k) {
        char number[32];
        float y = (float)y1 - (float)(k * (y1 - y0)) / 4.0f;
        snprintf(number, sizeof number, "%.3g", (double)(most * (float)k / 4.0f));
        sk_image_line(f->image, (float)x1, y, (float)x1 + 0.3f * text, y, &pen);
        sk_image_text(f->image, (float)x1 + 0.6f * text, y + 0.4f * text, number, &style);
    }
    sk_image_text(f->image, (float)x0, (float)y0 - 0.8f * text, unit, &style);
}

/* --- The whole --- */

static void draw_all(flat_picture *f, int threads)
{
    enum { band = 16 };
    const int bands = (f->image->height + band - 1) / band;
    sk_image_fill(f->image, 0, 0, f->image->width, f->image->height, paper, 1.0f);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 8)
    for (int row = 0; row < (f->flow ? 0 : f->nodes[1]); ++row)
        gather_row(f, row);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int b = 0; b < bands; ++b) {
        int top = b * band, bottom = top + band < f->image->height ? top + band : f->image->height;
        if (f->options->style == SELKIE_STYLE_PARTICLES)
            disc_band(f, top, bottom);
        for (int y = top; y < bottom; ++y) {
            float *solid = f->solid + (size_t)y * (size_t)f->image->width;
            measure_row(f, f->poses, y, solid);
            if (f->flow)
                sk_flow_row(f->flow, y);
            else if (f->options->style != SELKIE_STYLE_PARTICLES)
                fill_row(f, y, solid);
        }
    }
    if (f->flow)
        sk_flow_lines(f->flow);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 16)
    for (int y = 0; y < f->image->height; ++y)
        obstacle_row(f, f->solid + (size_t)y * (size_t)f->image->width, y);
    draw_frame(f);
    draw_scale(f);
}

selkie_code sk_draw_flat(const sk_stage *stage, const sk_picture_particles *particles,
                         const sk_picture_options *options, int threads, sk_image *image, selkie_error *error)
{
    flat_picture f = {.stage = stage, .particles = particles, .options = options, .image = image};
    lay_out(&f);
    f.speed_scale = sk_stage_speed_scale(stage, particles, options);
    fill_table(&f);

    /* Nodes at least two pixels apart bound the cost of a large domain in a small picture. */
    f.step = fmaxf(0.5f * (float)stage->spacing, 1.0f / f.scale);
    f.reach = fmaxf(2.3f * (float)stage->spacing, 2.0f * f.step);
    for (int a = 0; a < 2; ++a)
        f.nodes[a] = (int)ceilf((float)(stage->high[a] - stage->low[a]) / f.step) + 2;

    /* Allocate the nodes, the order of the particles and the distances to obstacles. */
    size_t nodes = (size_t)f.nodes[0] * (size_t)f.nodes[1];
    f.node = sk_allocate_zeroed(NULL, nodes * sizeof *f.node);
    f.order = sk_allocate(NULL, (particles->count + 1) * sizeof *f.order);
    f.first = sk_allocate_zeroed(NULL, ((size_t)f.nodes[1] + 3) * sizeof *f.first);
    f.poses = sk_allocate(NULL, ((size_t)stage->solid_count + 1) * sizeof *f.poses);
    f.solid = sk_allocate(NULL, (size_t)image->width * (size_t)image->height * sizeof *f.solid);

    /* Sort the particles into rows and draw. */
    selkie_code code = SELKIE_OK;
    if (options->style != SELKIE_STYLE_SURFACE && options->style != SELKIE_STYLE_PARTICLES) {
        const sk_flat_view view = {stage, particles, options, image, f.left, f.top, f.scale, f.speed_scale};
        code = sk_flow_create(&view, &f.flow, error);
    }
    if (code != SELKIE_OK) {
        /* said already */
    } else if (f.node && f.order && f.first && f.poses && f.solid) {
        for (int i = 0; i < stage->solid_count; ++i)
            sk_stage_pose(stage, i, options, &f.poses[i]);
        sort_rows(&f);
        draw_all(&f, threads);
    } else {
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "picture: no memory, %.1f MiB for a grid of %d x %d",
                       (double)nodes * sizeof *f.node / 1048576.0, f.nodes[0], f.nodes[1]);
    }

    sk_flow_destroy(f.flow);
    sk_release(NULL, f.node);
    sk_release(NULL, f.order);
    sk_release(NULL, f.first);
    sk_release(NULL, f.poses);
    sk_release(NULL, f.solid);
    return code;
}
