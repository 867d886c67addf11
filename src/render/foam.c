/* Whitewater over a finished picture.
 *
 * Drops and bubbles are smaller than a pixel, so each one adds its area to the coverage of the pixels around it; the
 * coverage makes them white. Bubbles below the surface that the pixel shows fade with their depth. Coverage is counted
 * in whole numbers: the picture is the same on any number of threads.
 */
#include "render/stage.h"

#include "base/memory.h"

/* Radius of a drop over the spacing of the liquid's particles. */
static const float drop_radius = 0.16f;
/* Parts of a pixel's area that are told apart. */
static const float area_parts = 4096.0f;

/* Adds a drop to the four pixels around its place. */
static void cover(uint32_t *coverage, int width, int height, float x, float y, float area)
{
    const int i = (int)floorf(x - 0.5f), j = (int)floorf(y - 0.5f);
    const float u = x - 0.5f - (float)i, v = y - 0.5f - (float)j;
    for (int n = 0; n < 4; ++n) {
        const int px = i + (n & 1), py = j + (n >> 1);
        if (px < 0 || py < 0 || px >= width || py >= height)
            continue;
        const float part = (n & 1 ? u : 1.0f - u) * (n >> 1 ? v : 1.0f - v) * area * area_parts;
        __atomic_fetch_add(&coverage[(size_t)py * (size_t)width + (size_t)px], (uint32_t)part, __ATOMIC_RELAXED);
    }
}

typedef struct foam_layer {
    const sk_stage *stage;
    const sk_camera *camera;
    const float *depth;
    int width, height;
    uint32_t *coverage;
} foam_layer;

/* Adds a share of a drop at one place. */
static void add_drop(const foam_layer *f, vec3 point, float share)
{
    const float scale = 0.5f * (float)f->height / f->camera->half_height, spacing = (float)f->stage->spacing;
    const float radius = drop_radius * spacing, fade = 1.0f / (2.5f * spacing);
    float x, y;
    const float forward = sk_camera_project(f->camera, point, &x, &y);
    /* Far outside or not a number: no pixel. */
    if (!(forward > 1e-3f * (float)f->stage->diagonal) || !(x > -8.0f && x < (float)f->width + 8.0f) ||
        !(y > -8.0f && y < (float)f->height + 8.0f))
        return;
    const float size = radius * scale / forward;
    float area = share * fminf(3.1415927f * size * size, 4.0f);
    const int px = (int)clampf(x, 0.0f, (float)f->width - 1.0f);
    const int py = (int)clampf(y, 0.0f, (float)f->height - 1.0f);
    const float behind =
        v3_length(v3_sub(point, f->camera->eye)) - f->depth[(size_t)py * (size_t)f->width + (size_t)px] - spacing;
    area *= behind > 0.0f ? expf(-behind * fade) : 1.0f;
    if (area > 1.0f / area_parts)
        cover(f->coverage, f->width, f->height, x, y, area);
}

selkie_code sk_draw_foam(const sk_stage *stage, const sk_camera *camera, const sk_picture_options *options,
                         const float *depth, int threads, sk_image *image, selkie_error *error)
{
    const sk_picture_foam *foam = options->foam;
    const vec3 normal = v3_from(options->cut);
    const float offset = v3_dot(normal, normal) > 0.5f ? (float)options->cut[3] : INFINITY;
    if (!foam || !foam->count)
        return SELKIE_OK;
    const size_t pixels = (size_t)image->width * (size_t)image->height;
    uint32_t *coverage = sk_allocate_zeroed(NULL, pixels * sizeof *coverage);
    if (!coverage)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "picture: no memory for the foam of %zu pixels", pixels);
    const foam_layer layer = {stage, camera, depth, image->width, image->height, coverage};
    const int places = options->shutter > 0.0 && foam->velocity ? 6 : 1;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (size_t i = 0; i < foam->count; ++i) {
        const float *p = (const float *)((const char *)foam->position + i * foam->position_stride);
        const float *v =
            places > 1 ? (const float *)((const char *)foam->velocity + i * foam->velocity_stride) : (float[3]){0};
        /* A moving drop is a streak. */
        for (int k = 0; k < places; ++k) {
            const float way = (((float)k + 0.5f) / (float)places - 0.5f) * (float)options->shutter;
            const vec3 point = v3(p[0] + way * v[0], p[1] + way * v[1], p[2] + way * v[2]);
            if (v3_dot(point, normal) <= offset)
                add_drop(&layer, point, 1.0f / (float)places);
        }
    }

    const vec3 white = sk_studio_tone(
        v3_scale(v3_add(sk_studio_ambient(stage, stage->up), v3_scale(sk_studio_sunlight(stage), 0.30f)), 0.92f));
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int y = 0; y < image->height; ++y)
        for (int x = 0; x < image->width; ++x) {
            const uint32_t parts = coverage[(size_t)y * (size_t)image->width + (size_t)x];
            if (parts)
                sk_image_blend(image, x, y, white, 0.94f * (1.0f - expf(-(float)parts / area_parts)));
        }
    sk_release(NULL, coverage);
    return SELKIE_OK;
}
