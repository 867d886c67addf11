/* A frame of the ray tracer: geometry for embree, light on the floor, pixels.
 *
 * The first pass traces one ray a pixel; pixels that differ from their neighbours get more. Only the first pass decides
 * which, and each pixel is computed by itself, so the picture is the same on any number of threads.
 */
#include "render/trace.h"

#include "render/stage.h"

#if SELKIE_HAVE_EMBREE

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* --- Geometry --- */

static selkie_code embree_failed(const sk_tracer *t, selkie_error *error)
{
    enum RTCError code = t->embree.rtcGetDeviceError(t->device);
    if (code == RTC_ERROR_NONE)
        return SELKIE_OK;
    return sk_fail(error, code == RTC_ERROR_OUT_OF_MEMORY ? SELKIE_ERROR_MEMORY : SELKIE_ERROR_INTERNAL,
                   "picture: embree failed with code %d", (int)code);
}

static RTCScene finish_scene(const sk_tracer *t, RTCGeometry geometry)
{
    RTCScene scene = t->embree.rtcNewScene(t->device);
    t->embree.rtcSetSceneBuildQuality(scene, RTC_BUILD_QUALITY_MEDIUM);
    t->embree.rtcCommitGeometry(geometry);
    t->embree.rtcAttachGeometry(scene, geometry);
    t->embree.rtcReleaseGeometry(geometry);
    t->embree.rtcCommitScene(scene);
    return scene;
}

static void grow_box(size_t count, const float *points, float box[2][3])
{
    for (size_t i = 0; i < count; ++i)
        for (int a = 0; a < 3; ++a) {
            box[0][a] = fminf(box[0][a], points[3 * i + (size_t)a]);
            box[1][a] = fmaxf(box[1][a], points[3 * i + (size_t)a]);
        }
}

static void find_box(size_t count, const float *points, float box[2][3])
{
    for (int a = 0; a < 3; ++a) {
        box[0][a] = INFINITY;
        box[1][a] = -INFINITY;
    }
    grow_box(count, points, box);
}

/* Places at the ends of the exposure: embree moves the vertices along straight lines between them. */
static selkie_code move_water(sk_tracer *t, double shutter, selkie_error *error)
{
    const size_t count = 3 * t->mesh.vertex_count;
    for (int end = 0; end < 2; ++end) {
        t->moved[end] = sk_allocate(NULL, (count + 1) * sizeof(float));
        if (!t->moved[end])
            return sk_fail(error, SELKIE_ERROR_MEMORY, "picture: no memory, %.1f MiB for moving vertices",
                           (double)count * 4 / 1048576.0);
        const float way = (end ? 0.5f : -0.5f) * (float)shutter;
        for (size_t i = 0; i < count; ++i) {
            const float speed = t->mesh.velocities[i];
            t->moved[end][i] = t->mesh.positions[i] + (isfinite(speed) ? way * speed : 0.0f);
        }
    }
    return SELKIE_OK;
}

/* Vertices at one time or at the ends of the exposure. */
static void set_vertices(const sk_tracer *t, RTCGeometry geometry, float *const moved[2], float *points, size_t count)
{
    if (moved[0] && moved[1]) {
        t->embree.rtcSetGeometryTimeStepCount(geometry, 2);
        for (unsigned end = 0; end < 2; ++end)
            t->embree.rtcSetSharedGeometryBuffer(geometry, RTC_BUFFER_TYPE_VERTEX, end, RTC_FORMAT_FLOAT3, moved[end],
                                                 0, 12, count);
        return;
    }
    t->embree.rtcSetSharedGeometryBuffer(geometry, RTC_BUFFER_TYPE_VERTEX, 0, RTC_FORMAT_FLOAT3, points, 0, 12, count);
}

static selkie_code add_water(sk_tracer *t, selkie_error *error)
{
    t->water_normals = sk_allocate(NULL, (t->mesh.triangle_count + 1) * sizeof *t->water_normals);
    if (!t->water_normals)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "picture: no memory, %.1f MiB for normals",
                       (double)t->mesh.triangle_count * sizeof *t->water_normals / 1048576.0);
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (size_t i = 0; i < t->mesh.triangle_count; ++i)
        for (size_t c = 0; c < 3; ++c)
            memcpy(t->water_normals[i] + 3 * c, t->mesh.normals + 3 * (size_t)t->mesh.triangles[3 * i + c], 12);
    RTCGeometry geometry = t->embree.rtcNewGeometry(t->device, RTC_GEOMETRY_TYPE_TRIANGLE);
    set_vertices(t, geometry, t->moved, t->mesh.positions, t->mesh.vertex_count);
    t->embree.rtcSetSharedGeometryBuffer(geometry, RTC_BUFFER_TYPE_INDEX, 0, RTC_FORMAT_UINT3, t->mesh.triangles, 0, 12,
                                         t->mesh.triangle_count);
    t->water = finish_scene(t, geometry);
    find_box(t->mesh.vertex_count, t->mesh.positions, t->water_box);
    for (int end = 0; end < 2 && t->moved[end]; ++end)
        grow_box(t->mesh.vertex_count, t->moved[end], t->water_box);
    return SELKIE_OK;
}

typedef struct corner {
    float point[3];
    uint32_t index; /* 3 triangle + corner */
} corner;

static int compare_corners(const void *a, const void *b)
{
    const corner *left = a, *right = b;
    for (int i = 0; i < 3; ++i)
        if (left->point[i] != right->point[i])
            return left->point[i] < right->point[i] ? -1 : 1;
    return left->index < right->index ? -1 : left->index > right->index;
}

static vec3 face_normal(const sk_tracer *t, size_t triangle)
{
    const float *p = t->solid_points + 9 * triangle;
    vec3 a = v3(p[0], p[1], p[2]), b = v3(p[3], p[4], p[5]), c = v3(p[6], p[7], p[8]);
    return v3_cross(v3_sub(b, a), v3_sub(c, a)); /* twice the area: large faces count for more */
}

/* Triangles have no shared corners: sorting finds those at the same place. */
static selkie_code smooth_solids(sk_tracer *t, selkie_error *error)
{
    size_t count = 3 * t->solid_triangles;
    corner *corners = sk_allocate(NULL, count * sizeof *corners);
    t->solid_normals = sk_allocate(NULL, count * 3 * sizeof(float));
    if (!corners || !t->solid_normals) {
        sk_release(NULL, corners);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "picture: no memory, %.1f MiB for the normals of obstacles",
                       (double)count * (sizeof *corners + 12) / 1048576.0);
    }

    for (size_t i = 0; i < count; ++i) {
        memcpy(corners[i].point, t->solid_points + 3 * i, 12);
        corners[i].index = (uint32_t)i;
    }
    qsort(corners, count, sizeof *corners, compare_corners);

    /* Corners at the same place share a normal if their faces are nearly parallel. */
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && memcmp(corners[i].point, corners[end].point, 12) == 0;)
            ++end;
        /* Bounds the quadratic cost at points with very many faces. */
        size_t last = end - i > 256 ? i + 256 : end;
        for (size_t a = i; a < end; ++a) {
            vec3 own = face_normal(t, corners[a].index / 3), unit = v3_unit(own), sum = own;
            for (size_t b = i; b < last; ++b) {
                vec3 other = face_normal(t, corners[b].index / 3);
                if (b != a && v3_dot(unit, v3_unit(other)) > 0.82f)
                    sum = v3_add(sum, other);
            }
            sum = v3_unit(sum);
            float *normal = t->solid_normals + 3 * (size_t)corners[a].index;
            normal[0] = sum.x;
            normal[1] = sum.y;
            normal[2] = sum.z;
        }
    }

    sk_release(NULL, corners);
    return SELKIE_OK;
}

/* Obstacles at the ends of the exposure. */
static selkie_code move_solids(sk_tracer *t, const sk_picture_options *options, selkie_error *error)
{
    for (int end = 0; end < 2; ++end) {
        sk_picture_options then = *options;
        size_t count;
        int *owner;
        then.time += (end ? 0.5 : -0.5) * options->shutter;
        SK_TRY(sk_stage_triangles(t->stage, &then, &count, &t->solid_moved[end], &owner, error));
        sk_release(NULL, owner);
    }
    return SELKIE_OK;
}

/* Obstacles, bodies, and in style surface solids of particles. */
static selkie_code add_solids(sk_tracer *t, const sk_picture_particles *particles, const sk_picture_options *options,
                              selkie_error *error)
{
    SK_TRY(sk_stage_triangles(t->stage, options, &t->solid_triangles, &t->solid_points, &t->solid_owner, error));
    if (options->shutter > 0.0 && isfinite(options->time))
        SK_TRY(move_solids(t, options, error));
    if (options->style != SELKIE_STYLE_PARTICLES)
        SK_TRY(sk_trace_add_points(t, particles, options->shutter, error));
    if (!t->solid_triangles)
        return SELKIE_OK;
    SK_TRY(smooth_solids(t, error));
    RTCGeometry geometry = t->embree.rtcNewGeometry(t->device, RTC_GEOMETRY_TYPE_TRIANGLE);
    set_vertices(t, geometry, t->solid_moved, t->solid_points, 3 * t->solid_triangles);
    find_box(3 * t->solid_triangles, t->solid_points, t->solid_box);
    for (int end = 0; end < 2 && t->solid_moved[end]; ++end)
        grow_box(3 * t->solid_triangles, t->solid_moved[end], t->solid_box);
    unsigned *index =
        t->embree.rtcSetNewGeometryBuffer(geometry, RTC_BUFFER_TYPE_INDEX, 0, RTC_FORMAT_UINT3, 12, t->solid_triangles);
    for (size_t i = 0; index && i < 3 * t->solid_triangles; ++i)
        index[i] = (unsigned)i;
    t->solids = finish_scene(t, geometry);
    return embree_failed(t, error);
}

/* Balls are left out or drawn whole: cut ones would need lids. */
static selkie_code add_balls(sk_tracer *t, const sk_picture_particles *particles, const sk_picture_options *options,
                             selkie_error *error)
{
    t->ball = sk_allocate(NULL, (particles->count + 1) * sizeof *t->ball);
    t->ball_speed = sk_allocate(NULL, (particles->count + 1) * sizeof *t->ball_speed);
    if (!t->ball || !t->ball_speed)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "picture: no memory, %.1f MiB for %zu particles",
                       (double)particles->count * 20 / 1048576.0, particles->count);
    size_t count = 0;
    const int solids = sk_stage_has_solid_points(t->stage, particles) && sk_colors_flow(t->color);
    for (size_t i = 0; i < particles->count; ++i) {
        const float *x = sk_particle_position(particles, i);
        float speed = sk_particle_value(particles, i, 3, t->color);
        if (solids && sk_is_solid_point(t->stage, particles, i))
            speed = -1.0f - (float)sk_particle_solid(t->stage, particles, i);
        if (!isfinite(x[0]) || !isfinite(x[1]) || !isfinite(x[2]) || sk_picture_cuts(options, x))
            continue;
        memcpy(t->ball[count], x, 12);
        t->ball[count][3] = 0.55f * (float)t->stage->spacing;
        t->ball_speed[count++] = isfinite(speed) ? speed : 0.0f;
    }
    if (!count)
        return SELKIE_OK;
    RTCGeometry geometry = t->embree.rtcNewGeometry(t->device, RTC_GEOMETRY_TYPE_SPHERE_POINT);
    t->embree.rtcSetSharedGeometryBuffer(geometry, RTC_BUFFER_TYPE_VERTEX, 0, RTC_FORMAT_FLOAT4, t->ball, 0, 16, count);
    t->balls = finish_scene(t, geometry);
    return embree_failed(t, error);
}

static selkie_code make_mesh(sk_tracer *t, const sk_picture_particles *particles, double shutter, selkie_error *error)
{
    const int moves = shutter > 0.0 && particles->velocity;
    sk_trace_cloud cloud;
    SK_TRY(sk_trace_select(t, particles, -1, &cloud, error));
    const selkie_code code = sk_trace_surface(t, &cloud, &t->mesh, error);
    sk_trace_cloud_free(&cloud);
    SK_TRY(code);
    if (moves && t->mesh.triangle_count)
        SK_TRY(move_water(t, shutter, error));
    if (t->mesh.triangle_count)
        SK_TRY(add_water(t, error));
    return embree_failed(t, error);
}

static void tracer_free(sk_tracer *t)
{
    if (t->water)
        t->embree.rtcReleaseScene(t->water);
    if (t->solids)
        t->embree.rtcReleaseScene(t->solids);
    if (t->balls)
        t->embree.rtcReleaseScene(t->balls);
    if (t->device)
        t->embree.rtcReleaseDevice(t->device);
    sk_mesh_free(&t->mesh);
    sk_release(NULL, t->water_normals);
    sk_release(NULL, t->solid_points);
    sk_release(NULL, t->solid_owner);
    for (int end = 0; end < 2; ++end) {
        sk_release(NULL, t->moved[end]);
        sk_release(NULL, t->solid_moved[end]);
    }
    sk_release(NULL, t->solid_normals);
    sk_release(NULL, t->ball);
    sk_release(NULL, t->ball_speed);
    sk_release(NULL, t->sunlight);
    sk_release(NULL, t->openness);
}

/* --- Pixels --- */

/* Pixels of a square of the picture that are traced together. */
typedef struct pixel_group {
    int count;
    int x[sk_ray_group], y[sk_ray_group];
} pixel_group;

/* The k-th samples of the pixels. A rank-1 lattice spreads the samples over a pixel and the exposure; the first is the
 * centre of both. */
static void sample_pixels(const sk_tracer *tracer, const pixel_group *group, int k, float time, vec3 *colors,
                          float *depth)
{
    sk_tracer t = *tracer;
    t.time = time;
    const float u = 0.5f + (float)k * 0.7548777f, v = 0.5f + (float)k * 0.5698403f;
    vec3 directions[sk_ray_group];
    sk_hit water[sk_ray_group];
    for (int i = 0; i < group->count; ++i)
        directions[i] =
            sk_camera_ray(&t.camera, (float)group->x[i] + u - floorf(u), (float)group->y[i] + v - floorf(v));
    sk_trace_first_water(&t, t.camera.eye, group->count, directions, water);
    for (int i = 0; i < group->count; ++i)
        colors[i] = sk_tone(t.tones, sk_trace_light(&t, t.camera.eye, directions[i], &water[i], &depth[i]));
}

/* Squares of 4 x 4 pixels, in the order of tiles of 16 x 16: neighbouring rays stay together. */
static int count_squares(const sk_camera *camera)
{
    return 16 * ((camera->width + 15) / 16) * ((camera->height + 15) / 16);
}

static pixel_group square_pixels(const sk_camera *camera, int square)
{
    const int tile = square / 16, part = square % 16, across = (camera->width + 15) / 16;
    const int left = tile % across * 16 + part % 4 * 4, top = tile / across * 16 + part / 4 * 4;
    pixel_group group = {.count = 0};
    for (int i = 0; i < sk_ray_group; ++i) {
        const int x = left + i % 4, y = top + i / 4;
        if (x >= camera->width || y >= camera->height)
            continue;
        group.x[group.count] = x;
        group.y[group.count++] = y;
    }
    return group;
}

static size_t pixel_place(const sk_tracer *t, const pixel_group *group, int i)
{
    return (size_t)group->y[i] * (size_t)t->camera.width + (size_t)group->x[i];
}

static void first_pass(const sk_tracer *t, vec3 *colors, float *depth)
{
    const int squares = count_squares(&t->camera);
#pragma omp parallel for num_threads(t->threads) schedule(dynamic, 32)
    for (int square = 0; square < squares; ++square) {
        const pixel_group group = square_pixels(&t->camera, square);
        vec3 color[sk_ray_group];
        float distance[sk_ray_group];
        sample_pixels(t, &group, 0, t->time, color, distance);
        for (int i = 0; i < group.count; ++i) {
            colors[pixel_place(t, &group, i)] = color[i];
            depth[pixel_place(t, &group, i)] = distance[i];
        }
    }
}

static float difference(vec3 a, vec3 b)
{
    return largerf(fabsf(a.x - b.x), largerf(fabsf(a.y - b.y), fabsf(a.z - b.z)));
}

static int needs_more(const vec3 *colors, int width, int height, int x, int y)
{
    vec3 own = colors[(size_t)y * (size_t)width + (size_t)x];
    for (int j = y > 0 ? y - 1 : 0; j <= y + 1 && j < height; ++j)
        for (int i = x > 0 ? x - 1 : 0; i <= x + 1 && i < width; ++i)
            if (difference(own, colors[(size_t)j * (size_t)width + (size_t)i]) > 0.045f)
                return 1;
    return 0;
}

/* Which pixels change during the exposure? Drops that cross one are seen at its start or its end. */
static void find_moving(const sk_tracer *t, const pixel_group *group, const vec3 *middle, uint8_t *moves)
{
    vec3 color[sk_ray_group];
    float distance[sk_ray_group];
    for (int end = 0; end < 2; ++end) {
        sample_pixels(t, group, 0, end ? 0.95f : 0.05f, color, distance);
        for (int i = 0; i < group->count; ++i)
            moves[i] |= difference(middle[i], color[i]) > 0.03f;
    }
}

/* A pixel whose samples are being added up. */
typedef struct pixel_sum {
    vec3 first, sum;
    int count, wanted, moves;
} pixel_sum;

/* More samples for the pixels of a group that want some. */
static void refine(const sk_tracer *t, const pixel_group *group, pixel_sum *sums)
{
    pixel_group left = *group;
    int which[sk_ray_group];
    for (int k = 1; left.count > 0; ++k) {
        left.count = 0;
        for (int i = 0; i < group->count; ++i)
            if (sums[i].count == k && k < sums[i].wanted) {
                which[left.count] = i;
                left.x[left.count] = group->x[i];
                left.y[left.count++] = group->y[i];
            }
        vec3 color[sk_ray_group];
        float distance[sk_ray_group];
        const float time = 0.5f + (float)k * 0.6180340f;
        if (left.count)
            sample_pixels(t, &left, k, time - floorf(time), color, distance);
        for (int i = 0; i < left.count; ++i) {
            pixel_sum *pixel = &sums[which[i]];
            pixel->sum = v3_add(pixel->sum, color[i]);
            ++pixel->count;
            /* Two samples that agree: the neighbour is the one on an edge. */
            if (k == 1 && !pixel->moves && difference(pixel->first, color[i]) < 0.02f)
                pixel->wanted = 0;
        }
    }
}

/* Means of tone-mapped samples: one bright sample must not dominate the pixel. */
static void second_pass(const sk_tracer *t, const vec3 *colors, int samples, sk_image *image)
{
    const int width = t->camera.width, height = t->camera.height, squares = count_squares(&t->camera);
    const int blurred = t->moved[0] || t->solid_moved[0];
#pragma omp parallel for num_threads(t->threads) schedule(dynamic, 32)
    for (int square = 0; square < squares; ++square) {
        const pixel_group group = square_pixels(&t->camera, square);
        vec3 middle[sk_ray_group];
        uint8_t moves[sk_ray_group] = {0};
        pixel_sum sums[sk_ray_group];
        for (int i = 0; i < group.count; ++i)
            middle[i] = colors[pixel_place(t, &group, i)];
        if (blurred)
            find_moving(t, &group, middle, moves);
        for (int i = 0; i < group.count; ++i) {
            const int more = moves[i] || needs_more(colors, width, height, group.x[i], group.y[i]);
            sums[i] = (pixel_sum){.first = middle[i], .sum = middle[i], .count = 1, .moves = moves[i]};
            sums[i].wanted = samples > 1 && more ? (moves[i] ? 3 * samples : samples) : 1;
        }
        refine(t, &group, sums);
        for (int i = 0; i < group.count; ++i)
            sk_image_set(image, group.x[i], group.y[i], v3_scale(sums[i].sum, 1.0f / (float)sums[i].count));
    }
}

static selkie_code draw_pixels(const sk_tracer *t, const sk_picture_options *options, sk_image *image,
                               selkie_error *error)
{
    size_t pixels = (size_t)image->width * (size_t)image->height;
    vec3 *colors = sk_allocate(NULL, pixels * sizeof *colors);
    float *depth = sk_allocate(NULL, pixels * sizeof *depth);
    selkie_code code = SELKIE_OK;
    if (colors && depth) {
        first_pass(t, colors, depth);
        second_pass(t, colors, options->samples > 0 ? options->samples : 4, image);
        code = sk_draw_foam(t->stage, &t->camera, options, depth, t->threads, image, error);
        sk_draw_container(t->stage, &t->camera, depth, image);
    } else {
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "picture: no memory, %.1f MiB for %d x %d pixels",
                       (double)pixels * 16 / 1048576.0, image->width, image->height);
    }
    sk_release(NULL, colors);
    sk_release(NULL, depth);
    return code;
}

/* Optics of the liquid: absorption a metre, light that comes back from the depth, index of refraction. */
static void set_liquid(sk_tracer *t, selkie_liquid_look look)
{
    static const struct {
        vec3 absorption, scatter;
        float index, cloudy;
    } looks[] = {
        /* Real water is clear over metres. The tint assumes a domain some metres deep, so that water in a small tank is
         * visible too: these are absorptions over the domain's diagonal. */
        [SELKIE_LIQUID_LOOK_TINTED] = {{5.2f, 1.55f, 0.85f}, {0.008f, 0.105f, 0.185f}, 1.333f, 0.0f},
        /* Pope and Fry 1997 at 650, 550 and 450 nm. */
        [SELKIE_LIQUID_LOOK_WATER] = {{0.340f, 0.0565f, 0.0092f}, {0.004f, 0.030f, 0.055f}, 1.333f, 0.0f},
        [SELKIE_LIQUID_LOOK_MILK] = {{900.0f, 950.0f, 1100.0f}, {0.90f, 0.88f, 0.82f}, 1.35f, 1.0f},
        [SELKIE_LIQUID_LOOK_HONEY] = {{3.0f, 14.0f, 90.0f}, {0.45f, 0.20f, 0.02f}, 1.49f, 0.25f},
        [SELKIE_LIQUID_LOOK_OIL] = {{0.8f, 2.0f, 18.0f}, {0.35f, 0.28f, 0.05f}, 1.47f, 0.05f},
    };
    t->absorption = looks[look].absorption;
    t->scatter = looks[look].scatter;
    t->liquid_index = looks[look].index;
    t->cloudy = looks[look].cloudy;
    if (look == SELKIE_LIQUID_LOOK_TINTED)
        t->absorption = v3_scale(t->absorption, 1.0f / (float)t->stage->diagonal);
}

selkie_code sk_draw_traced(const sk_stage *stage, const sk_picture_particles *particles,
                           const sk_picture_options *options, int threads, sk_image *image, selkie_error *error)
{
    sk_tracer t = {.stage = stage, .threads = threads, .color = options->color, .time = 0.5f};
    t.cut_normal = v3_from(options->cut);
    t.cut_offset = (float)options->cut[3];
    t.has_cut = v3_dot(t.cut_normal, t.cut_normal) > 0.5f;
    SK_TRY(sk_embree_load(&t.embree, error));
    char config[64];
    snprintf(config, sizeof config, "threads=%d", threads);
    t.device = t.embree.rtcNewDevice(config);
    if (!t.device)
        return sk_fail(error, SELKIE_ERROR_INTERNAL, "picture: embree cannot be started (code %d)",
                       (int)t.embree.rtcGetDeviceError(NULL));
    sk_camera_frame(stage, options->time, image->width, image->height, &t.camera);
    sk_tones tones;
    sk_tones_fill(&tones);
    t.tones = &tones;
    t.speed_scale = sk_stage_speed_scale(stage, particles, options);
    t.near = 3e-5f * (float)stage->diagonal;
    t.contact = 1.2f * (float)stage->spacing;
    set_liquid(&t, stage->scene->render.liquid);
    selkie_code code = add_solids(&t, particles, options, error);
    if (!code)
        code = options->style == SELKIE_STYLE_PARTICLES ? add_balls(&t, particles, options, error)
                                                        : make_mesh(&t, particles, options->shutter, error);
    if (!code)
        code = sk_trace_light_floor(&t, error);
    if (!code)
        code = draw_pixels(&t, options, image, error);
    tracer_free(&t);
    return code;
}

#else

/* sk_picture_draw does not call this in builds without embree. */
selkie_code sk_draw_traced(const sk_stage *stage, const sk_picture_particles *particles,
                           const sk_picture_options *options, int threads, sk_image *image, selkie_error *error)
{
    return sk_draw_splats(stage, particles, options, threads, image, error);
}

#endif
