/* Pictures without rays: balls and triangles into a depth buffer, for builds without embree.
 *
 * Every ball is a disc with the normals of a ball, every obstacle a set of flat triangles; light comes from the sun and
 * the sky without shadows. The number of neighbours of a ball estimates its depth in the liquid and shades crevices and
 * undersides. Threads draw bands of rows, each in the order of the particles, so the picture is the same on any number
 * of threads.
 */
#include "render/stage.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "particles/counting_sort.h"

typedef struct splat {
    float x, y, depth, radius; /* pixels, pixels, m, pixels */
    float metres;              /* radius */
    vec3 color;                /* linear */
    int is_veil;               /* liquid in front of solids of particles, which it lets through */
} splat;

typedef struct canvas {
    const sk_stage *stage;
    const sk_camera *camera;
    int has_points; /* solids of particles beside liquid */
    size_t splat_count;
    splat *splats;
    size_t triangle_count;
    float *points;
    int *owner;
    float *depth;
    float *veil_depth; /* of liquid that lets points through; NULL = none does */
    vec3 *veil;        /* its colours, display values */
    sk_image *image;
    float sample_width; /* of a sample of the background, over its distance */
    sk_tones tones;
    vec3 *sky, *rows;           /* of a preview: sky that water reflects, background of coarse rows */
    vec3 low_light, light_span; /* of a preview: light from below, and what it differs by from above */
    vec3 sunlight;
    vec3 corner, across, down; /* of a preview: way to the first pixel at a depth of 1 m, steps of a pixel */
} canvas;

enum { band_rows = 16 };

static vec3 lit(const sk_stage *stage, vec3 albedo, vec3 normal)
{
    vec3 light = sk_studio_ambient(stage, normal);
    light = v3_along(light, 0.42f * fmaxf(v3_dot(normal, stage->sun), 0.0f), sk_studio_sunlight(stage));
    return v3_mul(albedo, light);
}

static vec3 tone(const canvas *c, vec3 light)
{
    return sk_tone(&c->tones, light);
}

/* What lies behind everything at a point of the picture, and its distance (m) from the eye. */
static vec3 background_at(const canvas *c, vec3 light, float x, float y, float *distance)
{
    const sk_stage *stage = c->stage;
    const vec3 d = sk_camera_ray(c->camera, x, y);
    const float down = v3_dot(d, stage->up);
    *distance = INFINITY;
    if (down < -1e-6f)
        *distance = (stage->floor_height - v3_dot(c->camera->eye, stage->up)) / down;
    if (!(*distance > 0.0f && isfinite(*distance))) {
        *distance = INFINITY;
        return tone(c, sk_studio_sky(stage, d));
    }
    const float seen = sk_studio_haze(stage, *distance);
    const float footprint = c->sample_width * *distance / fmaxf(-down, 0.1f);
    vec3 color = v3_mul(sk_studio_floor_color(stage, v3_along(c->camera->eye, *distance, d), footprint), light);
    /* Near ground is without haze. */
    if (seen < 1.0f)
        color = v3_mix(sk_studio_sky(stage, v3_unit(v3_along(d, -down, stage->up))), color, seen);
    return tone(c, color);
}

static void draw_background(const canvas *c, int first, int last)
{
    const vec3 light = lit(c->stage, v3(1, 1, 1), c->stage->up);
    for (int y = first; y < last; ++y)
        for (int x = 0; x < c->camera->width; ++x) {
            float *distance = &c->depth[(size_t)y * (size_t)c->camera->width + (size_t)x];
            sk_image_set(c->image, x, y, background_at(c, light, (float)x + 0.5f, (float)y + 0.5f, distance));
        }
}

/* The depth buffer holds distances from the eye, which the container's edges need. */
static void draw_ball(const canvas *c, const splat *s, int first, int last)
{
    int width = c->camera->width;
    int x0 = (int)fmaxf(floorf(s->x - s->radius), 0.0f), x1 = (int)fminf(ceilf(s->x + s->radius), (float)width);
    int y0 = (int)fmaxf(floorf(s->y - s->radius), (float)first), y1 = (int)fminf(ceilf(s->y + s->radius), (float)last);
    for (int y = y0; y < y1; ++y)
        for (int x = x0; x < x1; ++x) {
            float u = ((float)x + 0.5f - s->x) / s->radius, v = ((float)y + 0.5f - s->y) / s->radius;
            float square = u * u + v * v;
            if (square > 1.0f && s->radius > 0.75f)
                continue;
            float w = sqrtf(fmaxf(1.0f - square, 0.0f));
            vec3 d = sk_camera_ray(c->camera, (float)x + 0.5f, (float)y + 0.5f);
            float distance = (s->depth - w * s->metres) / fmaxf(v3_dot(d, c->camera->forward), 1e-3f);
            size_t pixel = (size_t)y * (size_t)width + (size_t)x;
            float *depth = s->is_veil ? c->veil_depth : c->depth;
            if (distance >= depth[pixel])
                continue;
            depth[pixel] = distance;
            vec3 normal = v3_add(v3_scale(c->camera->right, u),
                                 v3_add(v3_scale(c->camera->up, -v), v3_scale(c->camera->forward, -w)));
            const vec3 color = tone(c, lit(c->stage, s->color, v3_unit(normal)));
            if (s->is_veil)
                c->veil[pixel] = color;
            else
                sk_image_set(c->image, x, y, color);
        }
}

static void draw_triangle(const canvas *c, size_t t, int first, int last)
{
    const float *p = c->points + 9 * t;
    vec3 corner[3];
    float x[3], y[3], z[3];
    for (int k = 0; k < 3; ++k) {
        corner[k] = v3(p[3 * k], p[3 * k + 1], p[3 * k + 2]);
        z[k] = sk_camera_project(c->camera, corner[k], &x[k], &y[k]);
        if (z[k] <= 1e-4f)
            return; /* crosses the eye's plane: left out, not clipped */
    }

    /* Colour, by the normal that faces the eye. */
    float area = (x[1] - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (y[1] - y[0]);
    if (fabsf(area) < 1e-9f)
        return;
    vec3 normal = v3_unit(v3_cross(v3_sub(corner[1], corner[0]), v3_sub(corner[2], corner[0])));
    if (v3_dot(normal, v3_sub(corner[0], c->camera->eye)) > 0.0f)
        normal = v3_scale(normal, -1.0f);
    vec3 color = tone(c, lit(c->stage, sk_studio_solid_color(c->owner[t]), normal));

    /* Pixels of its bounding box in these rows. */
    int width = c->camera->width;
    int x0 = (int)fmaxf(floorf(fminf(x[0], fminf(x[1], x[2]))), 0.0f);
    int x1 = (int)fminf(ceilf(fmaxf(x[0], fmaxf(x[1], x[2]))), (float)width);
    int y0 = (int)fmaxf(floorf(fminf(y[0], fminf(y[1], y[2]))), (float)first);
    int y1 = (int)fminf(ceilf(fmaxf(y[0], fmaxf(y[1], y[2]))), (float)last);
    for (int j = y0; j < y1; ++j)
        for (int i = x0; i < x1; ++i) {
            float px = (float)i + 0.5f, py = (float)j + 0.5f;
            float b = ((px - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (py - y[0])) / area;
            float d = ((x[1] - x[0]) * (py - y[0]) - (px - x[0]) * (y[1] - y[0])) / area;
            if (b < 0.0f || d < 0.0f || b + d > 1.0f)
                continue;
            float inverse = (1.0f - b - d) / z[0] + b / z[1] + d / z[2];
            vec3 ray = sk_camera_ray(c->camera, px, py);
            float distance = 1.0f / inverse / fmaxf(v3_dot(ray, c->camera->forward), 1e-3f);
            size_t pixel = (size_t)j * (size_t)width + (size_t)i;
            if (distance < c->depth[pixel]) {
                c->depth[pixel] = distance;
                sk_image_set(c->image, i, j, color);
            }
        }
}

/* Liquid in front of what has been drawn. */
static void draw_veil(const canvas *c, int first, int last)
{
    for (int y = first; y < last; ++y)
        for (int x = 0; x < c->camera->width; ++x) {
            const size_t pixel = (size_t)y * (size_t)c->camera->width + (size_t)x;
            if (c->veil_depth[pixel] < c->depth[pixel])
                sk_image_blend(c->image, x, y, c->veil[pixel], 0.45f);
        }
}

/* Obstacles, balls and liquid in front of them. */
static void draw_things(const canvas *c, int first, int last)
{
    for (size_t t = 0; t < c->triangle_count; ++t)
        draw_triangle(c, t, first, last);
    for (int y = first; y < last && c->veil; ++y)
        for (int x = 0; x < c->camera->width; ++x)
            c->veil_depth[(size_t)y * (size_t)c->camera->width + (size_t)x] = INFINITY;
    for (size_t i = 0; i < c->splat_count; ++i)
        if (c->splats[i].y + c->splats[i].radius > (float)first && c->splats[i].y - c->splats[i].radius < (float)last)
            draw_ball(c, &c->splats[i], first, last);
    if (c->veil)
        draw_veil(c, first, last);
}

/* Particles in each cell of a hashed grid of three spacings: near 27 in the bulk, fewer at the surface. */
static unsigned cell_of(const sk_stage *stage, vec3 p, unsigned mask)
{
    float size = 3.0f * (float)stage->spacing;
    int i = (int)floorf(p.x / size), j = (int)floorf(p.y / size), k = (int)floorf(p.z / size);
    return ((unsigned)i * 73856093u ^ (unsigned)j * 19349663u ^ (unsigned)k * 83492791u) & mask;
}

/* Linear colour of a particle. Points beside liquid are solids where the colour shows how things flow. */
static vec3 ball_color(const canvas *c, const sk_picture_particles *particles, const sk_picture_options *options,
                       size_t i, float scale)
{
    vec3 color;
    if (c->has_points && sk_colors_flow(options->color) && sk_is_solid_point(c->stage, particles, i))
        color = sk_stage_points_color(c->stage, sk_particle_solid(c->stage, particles, i));
    else
        color = sk_stage_speed_color(options->color, sk_particle_value(particles, i, 3, options->color), scale);
    return v3(sk_from_srgb(color.x), sk_from_srgb(color.y), sk_from_srgb(color.z));
}

static selkie_code make_splats(canvas *c, const sk_picture_particles *particles, const sk_picture_options *options,
                               selkie_error *error)
{
    enum { table_mask = (1 << 20) - 1 };
    uint16_t *crowd = sk_allocate_zeroed(NULL, ((size_t)table_mask + 1) * sizeof *crowd);
    c->splats = sk_allocate(NULL, (particles->count + 1) * sizeof *c->splats);
    if (!crowd || !c->splats) {
        sk_release(NULL, crowd);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "picture: no memory, %.1f MiB for %zu particles",
                       (double)particles->count * sizeof(splat) / 1048576.0, particles->count);
    }

    /* The first pass counts neighbours, the second makes the splats. */
    float scale = sk_stage_speed_scale(c->stage, particles, options);
    float pixels = 0.5f * (float)c->camera->height / c->camera->half_height;
    for (int pass = 0; pass < 2; ++pass)
        for (size_t i = 0; i < particles->count; ++i) {
            const float *x = sk_particle_position(particles, i);
            /* A cell far outside would not fit into an int. */
            if (!(fabsf(x[0]) < 1e6f && fabsf(x[1]) < 1e6f && fabsf(x[2]) < 1e6f) || sk_picture_cuts(options, x))
                continue;
            if (c->sky && !sk_is_solid_point(c->stage, particles, i))
                continue; /* a preview draws water apart */
            vec3 p = v3(x[0], x[1], x[2]);
            unsigned cell = cell_of(c->stage, p, table_mask);
            if (!pass) {
                crowd[cell] += crowd[cell] < 60000;
                continue;
            }
            splat *s = &c->splats[c->splat_count];
            s->depth = sk_camera_project(c->camera, p, &s->x, &s->y);
            s->metres = 0.6f * (float)c->stage->spacing;
            if (s->depth <= s->metres)
                continue;
            s->radius = fmaxf(s->metres * pixels / s->depth, 0.6f);
            float open = 1.0f - 0.35f * clampf((float)crowd[cell] / 27.0f, 0.0f, 1.0f);
            s->color = v3_scale(ball_color(c, particles, options, i, scale), 1.3f * open);
            s->is_veil = c->has_points && !sk_is_solid_point(c->stage, particles, i);
            ++c->splat_count;
        }
    sk_release(NULL, crowd);
    return SELKIE_OK;
}

selkie_code sk_draw_splats(const sk_stage *stage, const sk_picture_particles *particles,
                           const sk_picture_options *options, int threads, sk_image *image, selkie_error *error)
{
    sk_camera camera;
    sk_camera_frame(stage, options->time, image->width, image->height, &camera);
    canvas c = {
        .stage = stage, .camera = &camera, .image = image, .has_points = sk_stage_has_solid_points(stage, particles)};
    const size_t pixels = (size_t)image->width * (size_t)image->height;
    sk_tones_fill(&c.tones);
    c.depth = sk_allocate(NULL, pixels * sizeof(float));
    if (c.has_points) {
        c.veil_depth = sk_allocate(NULL, pixels * sizeof *c.veil_depth);
        c.veil = sk_allocate(NULL, pixels * sizeof *c.veil);
    }
    selkie_code code = c.depth && (!c.has_points || (c.veil_depth && c.veil))
                           ? SELKIE_OK
                           : sk_fail(error, SELKIE_ERROR_MEMORY, "picture: not enough memory for %d x %d pixels",
                                     image->width, image->height);

    /* Balls, triangles, then rows over threads. */
    if (!code)
        code = make_splats(&c, particles, options, error);
    if (!code)
        code = sk_stage_triangles(stage, options, &c.triangle_count, &c.points, &c.owner, error);
    if (!code) {
        int bands = (image->height + band_rows - 1) / band_rows;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
        for (int band = 0; band < bands; ++band) {
            int first = band * band_rows, last = first + band_rows;
            last = last < image->height ? last : image->height;
            draw_background(&c, first, last);
            draw_things(&c, first, last);
        }
        sk_draw_container(stage, &camera, c.depth, image);
    }

    sk_release(NULL, c.depth);
    sk_release(NULL, c.veil_depth);
    sk_release(NULL, c.veil);
    sk_release(NULL, c.splats);
    sk_release(NULL, c.points);
    sk_release(NULL, c.owner);
    return code;
}

/* --- A quick look at water --- */

/* Water as the eye sees it: for each pixel the depth (m along forward) of its nearest particle; INFINITY = none. */
typedef struct water_view {
    float *depth, *other;
    float (*particle)[4]; /* pixel x and y, depth (m), radius (pixels) */
    size_t count;
} water_view;

static void splat_water(const canvas *c, const water_view *w, float radius, int first, int last)
{
    const int width = c->camera->width;
    for (size_t i = (size_t)first * (size_t)width; i < (size_t)last * (size_t)width; ++i)
        w->depth[i] = INFINITY;
    for (size_t n = 0; n < w->count; ++n) {
        const float *p = w->particle[n], r = p[3], inverse = 1.0f / r;
        if (p[1] + r < (float)first || p[1] - r > (float)last)
            continue;
        /* What lies more than a ball behind the nearest one is hidden. */
        const int middle_x = (int)clampf(p[0], 0.0f, (float)width - 1.0f);
        const int middle_y = (int)clampf(p[1], (float)first, (float)last - 1.0f);
        if (w->depth[(size_t)middle_y * (size_t)width + (size_t)middle_x] < p[2] - 2.0f * radius)
            continue;
        const int x0 = (int)fmaxf(p[0] - r, 0.0f), x1 = (int)fminf(p[0] + r + 1.0f, (float)width);
        const int y0 = (int)fmaxf(p[1] - r, (float)first), y1 = (int)fminf(p[1] + r + 1.0f, (float)last);
        for (int y = y0; y < y1; ++y)
            for (int x = x0; x < x1; ++x) {
                const float u = ((float)x + 0.5f - p[0]) * inverse, v = ((float)y + 0.5f - p[1]) * inverse;
                const float q = u * u + v * v;
                /* A parabola is near enough to a ball. */
                const float z = q < 1.0f ? p[2] - radius * (1.0f - q) : INFINITY;
                float *to = &w->depth[(size_t)y * (size_t)width + (size_t)x];
                *to = z < *to ? z : *to;
            }
    }
}

enum { smooth_reach = 4 };

/* Mean of the near depths of nine places for each pixel of a row; steps to other parts of the water stay. */
static void smooth_row(const float *own, const float *const taps[2 * smooth_reach + 1], float *restrict to, int count,
                       float step)
{
    for (int x = 0; x < count; ++x) {
        float sum = 0.0f, weight = 0.0f;
        for (int k = 0; k <= 2 * smooth_reach; ++k) {
            const float z = taps[k][x];
            const int near = fabsf(z - own[x]) < step;
            sum += near ? z : 0.0f;
            weight += near ? 1.0f : 0.0f;
        }
        to[x] = weight > 0.0f ? sum / weight : INFINITY;
    }
}

static void smooth_across(const float *from, float *to, int width, float step)
{
    const float *taps[2 * smooth_reach + 1];
    memcpy(to, from, (size_t)width * sizeof *to);
    for (int k = 0; k <= 2 * smooth_reach; ++k)
        taps[k] = from + k;
    if (width > 2 * smooth_reach)
        smooth_row(from + smooth_reach, taps, to + smooth_reach, width - 2 * smooth_reach, step);
}

static void smooth_down(const float *from, float *to, int width, int height, int y, float step)
{
    const float *taps[2 * smooth_reach + 1];
    for (int k = 0; k <= 2 * smooth_reach; ++k) {
        int row = y + k - smooth_reach;
        row = row < 0 ? 0 : row >= height ? height - 1 : row;
        taps[k] = from + (size_t)row * (size_t)width;
    }
    smooth_row(from + (size_t)y * (size_t)width, taps, to + (size_t)y * (size_t)width, width, step);
}

/* Rays and light of a preview: both are linear, so most of their terms are found once. */
static void begin_view(canvas *c)
{
    const sk_camera *camera = c->camera;
    const float width = (float)camera->width, height = (float)camera->height;
    const float u = (1.0f / width - 1.0f) * camera->half_width, v = (1.0f - 1.0f / height) * camera->half_height;
    c->corner = v3_along(v3_along(camera->forward, u, camera->right), v, camera->up);
    c->across = v3_scale(camera->right, 2.0f / width * camera->half_width);
    c->down = v3_scale(camera->up, -2.0f / height * camera->half_height);
    c->low_light = sk_studio_ambient(c->stage, v3_scale(c->stage->up, -1.0f));
    c->light_span = v3_sub(sk_studio_ambient(c->stage, c->stage->up), c->low_light);
    c->sunlight = v3_scale(sk_studio_sunlight(c->stage), 0.42f);
}

/* lit() of white. */
static vec3 view_light(const canvas *c, vec3 normal)
{
    const float h = 0.5f + 0.5f * v3_dot(normal, c->stage->up), sun = fmaxf(v3_dot(normal, c->stage->sun), 0.0f);
    return v3_along(v3_along(c->low_light, h, c->light_span), sun, c->sunlight);
}

/* From the eye to a pixel at a depth of 1 m. */
static vec3 view_way(const canvas *c, int x, int y)
{
    return v3_along(v3_along(c->corner, (float)y, c->down), (float)x, c->across);
}

/* The sky that water reflects, by the level components of a direction. */
enum { sky_side = 96 };

static void fill_sky(const sk_stage *stage, int threads, vec3 *sky)
{
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int j = 0; j < sky_side; ++j)
        for (int i = 0; i < sky_side; ++i) {
            const float a = 2.0f * ((float)i + 0.5f) / sky_side - 1.0f, b = 2.0f * ((float)j + 0.5f) / sky_side - 1.0f;
            const float up = sqrtf(fmaxf(1.0f - a * a - b * b, 0.0f));
            const vec3 d = v3_add(v3_scale(stage->up, up), v3_add(v3_scale(stage->side, a), v3_scale(stage->front, b)));
            sky[j * sky_side + i] = sk_studio_sky(stage, v3_unit(d));
        }
}

static vec3 sky_towards(const canvas *c, vec3 d)
{
    const float a = v3_dot(d, c->stage->side), b = v3_dot(d, c->stage->front);
    const int i = (int)((0.5f + 0.4999f * clampf(a, -1.0f, 1.0f)) * sky_side);
    const int j = (int)((0.5f + 0.4999f * clampf(b, -1.0f, 1.0f)) * sky_side);
    return c->sky[j * sky_side + i];
}

static void shade_water(const canvas *c, const water_view *w, int y)
{
    const int width = c->camera->width, height = c->camera->height;
    for (int x = 0; x < width; ++x) {
        const size_t i = (size_t)y * (size_t)width + (size_t)x;
        const float z = w->depth[i];
        if (!(z < INFINITY))
            continue;
        const vec3 unit = view_way(c, x, y), way = v3_scale(unit, z);
        const float distance = v3_length(way);
        const vec3 d = v3_scale(way, 1.0f / distance);
        if (distance > c->depth[i])
            continue;
        /* Differences to the side that is nearer in depth. */
        const int left = x > 0 && w->depth[i - 1] < INFINITY, right = x + 1 < width && w->depth[i + 1] < INFINITY;
        const int above = y > 0 && w->depth[i - (size_t)width] < INFINITY;
        const int below = y + 1 < height && w->depth[i + (size_t)width] < INFINITY;
        const int dx = right && (!left || fabsf(w->depth[i + 1] - z) < fabsf(w->depth[i - 1] - z)) ? 1 : left ? -1 : 0;
        const int dy =
            below && (!above || fabsf(w->depth[i + (size_t)width] - z) < fabsf(w->depth[i - (size_t)width] - z)) ? 1
            : above                                                                                              ? -1
                                                                                                                 : 0;
        vec3 normal = v3_scale(d, -1.0f);
        if (dx && dy) {
            const float side = w->depth[(size_t)((ptrdiff_t)i + dx)];
            const float next = w->depth[(size_t)((ptrdiff_t)i + dy * (ptrdiff_t)width)];
            const vec3 a = v3_along(v3_scale(unit, side - z), side * (float)dx, c->across);
            const vec3 b = v3_along(v3_scale(unit, next - z), next * (float)dy, c->down);
            normal = v3_unit(v3_cross(a, b));
            if (v3_dot(normal, d) > 0.0f)
                normal = v3_scale(normal, -1.0f);
        }
        const float facing = clampf(-v3_dot(d, normal), 0.0f, 1.0f), edge = 1.0f - facing;
        const float mirrored = 0.02f + 0.98f * edge * edge * edge * edge * edge;
        const vec3 body = v3_mul(v3(0.10f, 0.42f, 0.55f), view_light(c, normal));
        vec3 color = v3_mix(body, sky_towards(c, v3_reflect(d, normal)), mirrored);
        c->depth[i] = distance;
        sk_image_blend(c->image, x, y, tone(c, color), c->has_points ? 0.55f : 0.82f);
    }
}

enum { depth_bins = 1024 };

/* Near particles first: most of the others are then seen to be hidden at their first pixel. Particles that are not seen
 * are left out. */
static selkie_code sort_by_depth(water_view *w, int threads, float (*sorted)[4], uint32_t *keys, selkie_error *error)
{
    float near = INFINITY, far = 0.0f;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(min : near) reduction(max : far)
    for (size_t i = 0; i < w->count; ++i) {
        const float z = w->particle[i][2];
        near = z > 0.0f && z < near ? z : near;
        far = z > far ? z : far;
    }
    const float scale = far > near ? (depth_bins - 1) / (far - near) : 0.0f;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (size_t i = 0; i < w->count; ++i)
        keys[i] = w->particle[i][2] > 0.0f ? (uint32_t)((w->particle[i][2] - near) * scale) : SK_NO_KEY;
    const sk_counting_sort sort = {.count = w->count,
                                   .key_count = depth_bins,
                                   .keys = keys,
                                   .record_bytes = sizeof *sorted,
                                   .from = w->particle,
                                   .to = sorted,
                                   .threads = threads};
    SK_TRY(sk_counting_sort_run(&sort, &w->count, error));
    float(*const unsorted)[4] = w->particle;
    w->particle = sorted;
    sk_release(NULL, unsorted);
    return SELKIE_OK;
}

/* Particles as the eye sees them; a depth of 0 = not seen. */
static void place_water(const canvas *c, const sk_picture_particles *particles, const sk_picture_options *options,
                        float radius, int threads, water_view *w)
{
    const float pixels = 0.5f * (float)c->camera->height / c->camera->half_height;
    w->count = particles->count;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (size_t i = 0; i < particles->count; ++i) {
        const float *x = sk_particle_position(particles, i);
        float *p = w->particle[i];
        p[2] = sk_camera_project(c->camera, v3(x[0], x[1], x[2]), &p[0], &p[1]);
        p[3] = clampf(radius * pixels / p[2], 1.0f, 24.0f);
        const int seen = p[2] > radius && p[0] > -p[3] && p[0] < (float)c->camera->width + p[3] && p[1] > -p[3] &&
                         p[1] < (float)c->camera->height + p[3] && !sk_picture_cuts(options, x) &&
                         !(c->has_points && sk_is_solid_point(c->stage, particles, i));
        if (!seen)
            memset(p, 0, 4 * sizeof *p);
    }
}

enum { coarse = 4 };

/* A row of the picture between two lines of samples. */
static void set_coarse_row(const canvas *c, const vec3 *upper, const vec3 *lower, float part, int y)
{
    const int width = c->camera->width;
    uint8_t *to = c->image->pixels + 3 * (size_t)y * (size_t)width;
    vec3 before = v3_mix(upper[0], lower[0], part);
    for (int i = 0, x = 0; x < width; ++i) {
        const vec3 after = v3_mix(upper[i + 1], lower[i + 1], part);
        const vec3 step = v3_scale(v3_sub(after, before), 1.0f / coarse);
        for (int k = 0; k < coarse && x < width; ++k, ++x, to += 3) {
            const vec3 color = v3_along(before, (float)k, step);
            to[0] = sk_image_byte(color.x);
            to[1] = sk_image_byte(color.y);
            to[2] = sk_image_byte(color.z);
        }
        before = after;
    }
}

/* Exact distances (m) of the floor, which hides the water below it. */
static void find_floor(const canvas *c, int y)
{
    const float height = v3_dot(c->camera->eye, c->stage->up) - c->stage->floor_height;
    const int width = c->camera->width;
    float *depth = c->depth + (size_t)y * (size_t)width;
    for (int x = 0; x < width; ++x) {
        const vec3 way = view_way(c, x, y);
        const float down = -v3_dot(way, c->stage->up);
        depth[x] = down > 1e-6f && height > 0.0f ? height / down * v3_length(way) : INFINITY;
    }
}

/* The background of every fourth pixel of every fourth row; those between are interpolated. */
static void draw_coarse_background(const canvas *c, int first, int last, vec3 *rows)
{
    const vec3 light = lit(c->stage, v3(1, 1, 1), c->stage->up);
    const int width = c->camera->width, count = width / coarse + 2;
    vec3 *line[2] = {rows, rows + count};
    float distance;
    for (int y = first / coarse * coarse, filled = -1; y < last; ++y) {
        /* The two lines of samples around this row. */
        const int above = y / coarse;
        for (int k = 0; k < 2; ++k)
            for (int i = 0; i < count && above + k > filled; ++i)
                line[(above + k) & 1][i] = background_at(c, light, (float)(coarse * i) + 0.5f,
                                                         (float)(coarse * (above + k)) + 0.5f, &distance);
        filled = above + 1;
        if (y < first)
            continue;
        set_coarse_row(c, line[above & 1], line[(above + 1) & 1], (float)(y - above * coarse) / coarse, y);
    }
    for (int y = first; y < last; ++y)
        find_floor(c, y);
}

static void draw_preview(const canvas *c, water_view *w, float radius, int threads)
{
    const int width = c->camera->width, height = c->camera->height, bands = 2 * threads;
    const float step = 3.0f * radius;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int band = 0; band < bands; ++band) {
        const int first = height * band / bands, last = height * (band + 1) / bands;
        draw_coarse_background(c, first, last, c->rows + (size_t)band * 2 * (size_t)(width / coarse + 2));
        draw_things(c, first, last);
        splat_water(c, w, radius, first, last);
    }
    for (int round = 0; round < 2; ++round) {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int y = 0; y < height; ++y)
            smooth_across(w->depth + (size_t)y * (size_t)width, w->other + (size_t)y * (size_t)width, width, step);
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int y = 0; y < height; ++y)
            smooth_down(w->other, w->depth, width, height, y, step);
    }
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int y = 0; y < height; ++y)
        shade_water(c, w, y);
}

selkie_code sk_draw_preview(const sk_stage *stage, const sk_picture_particles *particles,
                            const sk_picture_options *options, int threads, sk_image *image, selkie_error *error)
{
    sk_camera camera;
    sk_camera_frame(stage, options->time, image->width, image->height, &camera);
    canvas c = {
        .stage = stage, .camera = &camera, .image = image, .has_points = sk_stage_has_solid_points(stage, particles)};
    sk_tones_fill(&c.tones);
    c.sample_width = coarse * 2.0f * camera.half_height / (float)image->height;
    const size_t pixels = (size_t)image->width * (size_t)image->height;
    const float radius = 1.1f * (float)stage->spacing;
    water_view w = {sk_allocate(NULL, pixels * sizeof(float)), sk_allocate(NULL, pixels * sizeof(float)),
                    sk_allocate(NULL, (particles->count + 1) * sizeof *w.particle), 0};
    float(*sorted)[4] = sk_allocate(NULL, (particles->count + 1) * sizeof *sorted);
    uint32_t *keys = sk_allocate(NULL, (particles->count + 1) * sizeof *keys);
    c.depth = sk_allocate(NULL, pixels * sizeof(float));
    c.sky = sk_allocate(NULL, sky_side * sky_side * sizeof *c.sky);
    c.rows = sk_allocate(NULL, (size_t)(2 * threads) * 2 * (size_t)(image->width / coarse + 2) * sizeof *c.rows);
    selkie_code code = SELKIE_OK;
    if (!c.depth || !c.sky || !c.rows || !w.depth || !w.other || !w.particle || !sorted || !keys)
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "picture: not enough memory for %d x %d pixels", image->width,
                       image->height);
    if (!code)
        code = sk_stage_triangles(stage, options, &c.triangle_count, &c.points, &c.owner, error);
    if (!code && c.has_points)
        code = make_splats(&c, particles, options, error);
    if (!code) {
        fill_sky(stage, threads, c.sky);
        begin_view(&c);
        place_water(&c, particles, options, radius, threads, &w);
        code = sort_by_depth(&w, threads, sorted, keys, error);
    }
    if (!code) {
        draw_preview(&c, &w, radius, threads);
        code = sk_draw_foam(stage, &camera, options, c.depth, threads, image, error);
        sk_draw_container(stage, &camera, c.depth, image);
    }
    sk_release(NULL, c.sky);
    sk_release(NULL, c.rows);
    sk_release(NULL, c.depth);
    sk_release(NULL, c.splats);
    sk_release(NULL, c.points);
    sk_release(NULL, c.owner);
    sk_release(NULL, w.depth);
    sk_release(NULL, w.other);
    if (w.particle != sorted)
        sk_release(NULL, sorted);
    sk_release(NULL, w.particle);
    sk_release(NULL, keys);
    return code;
}
