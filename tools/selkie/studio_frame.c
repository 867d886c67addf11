#include "studio_frame.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "geom/mass.h"
#include "geom/shape.h"
#include "world/world_internal.h"

/* --- Solids --- */

void studio_solids_free(studio_solids *solids)
{
    free(solids->items);
    memset(solids, 0, sizeof *solids);
}

/* The outline of one solid. */
typedef struct outline {
    size_t floats;
    float *points;
} outline;

static const selkie_shape *shape_of(const selkie_scene *scene, int index)
{
    return index < scene->obstacle_count ? &scene->obstacles[index].shape
                                         : &scene->bodies[index - scene->obstacle_count].shape;
}

static selkie_code make_outline(const selkie_scene *scene, int index, studio_solid *solid, outline *out,
                                selkie_error *error)
{
    char what[64];
    double up[3], low[3] = {0}, high[3] = {0}, diagonal = 0;
    int cells[3];
    const double cell_size = selkie_scene_cells(scene, cells);
    selkie_scene_up(scene, up);
    solid->is_body = index >= scene->obstacle_count;
    snprintf(what, sizeof what, "%s[%d].shape", solid->is_body ? "bodies" : "obstacles",
             solid->is_body ? index - scene->obstacle_count : index);
    const sk_shape_options options = {
        .dimension = scene->domain.dimension, .up = up, .folder = scene->folder, .what = what};
    sk_shape *shape;
    SK_TRY(sk_shape_create(shape_of(scene, index), &options, &shape, error));
    selkie_code code = SELKIE_OK;
    if (solid->is_body) {
        sk_mass_properties mass;
        code = sk_shape_mass(shape, what, &mass, error);
        if (code == SELKIE_OK)
            memcpy(solid->center, mass.center, sizeof solid->center);
    }

    /* Infinite shapes end a little outside the domain, moving ones farther out. */
    for (int d = 0; d < scene->domain.dimension; d++)
        diagonal += cells[d] * cell_size * cells[d] * cell_size;
    const int moves = solid->is_body || sk_obstacle_moves(&scene->obstacles[index]);
    const double room = (moves ? 1.0 : 1e-3) * sqrt(diagonal);
    for (int d = 0; d < scene->domain.dimension; d++) {
        low[d] = scene->domain.origin[d] - room;
        high[d] = scene->domain.origin[d] + cells[d] * cell_size + room;
    }
    size_t pieces = 0;
    const size_t floats = scene->domain.dimension == 2 ? 6 : 9;
    if (code == SELKIE_OK)
        code = sk_shape_triangles(shape, low, high, &pieces, &out->points, error);
    sk_shape_destroy(shape);
    out->floats = code == SELKIE_OK ? pieces * floats : 0;
    for (size_t i = 0; i < out->floats; i++)
        out->points[i] -= (float)(i % 3 == 2 && scene->domain.dimension == 2 ? 0.0 : scene->domain.origin[i % 3]);
    return code;
}

static void put_u32(unsigned char *at, uint32_t value)
{
    memcpy(at, &value, sizeof value);
}

studio_blob *studio_solids_blob(const selkie_scene *scene, uint32_t number, studio_solids *solids, selkie_error *error)
{
    int count = scene->obstacle_count + scene->body_count;
    count = count > STUDIO_MAX_SOLIDS ? STUDIO_MAX_SOLIDS : count;
    studio_solids_free(solids);
    outline *outlines = calloc((size_t)count + 1, sizeof *outlines);
    solids->items = calloc((size_t)count + 1, sizeof *solids->items);
    size_t length = 16;
    if (!outlines || !solids->items) {
        free(outlines);
        return NULL;
    }
    solids->count = count;
    for (int i = 0; i < count; i++) {
        make_outline(scene, i, &solids->items[i], &outlines[i], error);
        length += 8 + 4 * outlines[i].floats;
    }

    /* Magic, number, count, dimension; then for each solid its kind, the number of floats and the floats. */
    studio_blob *blob = studio_blob_create(length, 1);
    unsigned char *at = blob ? blob->bytes : NULL;
    if (blob) {
        blob->number = number;
        memcpy(at, "SKG1", 4);
        put_u32(at + 4, number);
        put_u32(at + 8, (uint32_t)count);
        put_u32(at + 12, (uint32_t)scene->domain.dimension);
        at += 16;
    }
    for (int i = 0; i < count; i++) {
        if (blob) {
            put_u32(at, (uint32_t)solids->items[i].is_body);
            put_u32(at + 4, (uint32_t)outlines[i].floats);
            if (outlines[i].floats)
                memcpy(at + 8, outlines[i].points, 4 * outlines[i].floats);
            at += 8 + 4 * outlines[i].floats;
        }
        free(outlines[i].points);
    }
    free(outlines);
    return blob;
}

/* --- Frames --- */

/* Rows of the matrix from the drawn place to the current one: x' = R (x - center) + place. */
static void put_pose(unsigned char *at, const double rotation[9], const double center[3], const double place[3],
                     const double origin[3])
{
    float rows[STUDIO_POSE];
    for (int r = 0; r < 3; r++) {
        double shift = place[r] - origin[r];
        for (int c = 0; c < 3; c++) {
            rows[4 * r + c] = (float)rotation[3 * r + c];
            shift += rotation[3 * r + c] * (origin[c] - center[c]);
        }
        rows[4 * r + 3] = (float)shift;
    }
    memcpy(at, rows, sizeof rows);
}

static void put_obstacle(unsigned char *at, const selkie_scene *scene, int obstacle, double time)
{
    sk_pose pose;
    double place[3];
    sk_pose_identity(&pose);
    if (obstacle < scene->obstacle_count)
        sk_pose_at(&scene->obstacles[obstacle], time, &pose);
    for (int d = 0; d < 3; d++)
        place[d] = pose.center[d] + pose.translation[d];
    put_pose(at, pose.rotation, pose.center, place, scene->domain.origin);
}

static void put_poses(unsigned char *at, const studio_view *view, const studio_solids *solids)
{
    int body = 0, obstacle = 0;
    for (int i = 0; i < solids->count; i++, at += STUDIO_POSE * 4) {
        double rotation[9];
        if (!solids->items[i].is_body) {
            put_obstacle(at, view->scene, obstacle++, view->time);
            continue;
        }
        studio_body_pose pose = {.quaternion = {1, 0, 0, 0}};
        memcpy(pose.position, solids->items[i].center, sizeof pose.position);
        view->body(view->context, body++, &pose);
        sk_rotation_from_quaternion(pose.quaternion, rotation);
        put_pose(at, rotation, solids->items[i].center, pose.position, view->scene->domain.origin);
    }
}

/* Numbers to their integers. Comparisons rather than fminf() let the compiler vectorise; what is no number becomes an
 * end of the range. */
static inline uint16_t to_short(float value)
{
    value = value > 0.0f ? value : 0.0f;
    return (uint16_t)(int)((value < 65535.0f ? value : 65535.0f) + 0.5f);
}

static inline unsigned char to_byte(float value)
{
    value += 0.5f;
    return (unsigned char)(int)(value < 255.0f ? value : 255.0f);
}

/* Particles begin .. end - 1: positions as 16 bits an axis of the domain, speeds as a byte. `dimension` is a constant
 * at each call. */
static inline __attribute__((always_inline)) void put_range(uint16_t *out, unsigned char *speeds,
                                                            const studio_view *view, const int dimension,
                                                            const float unit[4], int64_t begin, int64_t end)
{
    for (int64_t p = begin; p < end; p++) {
        const size_t at = (size_t)p * view->stride;
        const float *position = (const float *)(const void *)((const char *)view->position + at);
        const float *velocity = (const float *)(const void *)((const char *)view->velocity + at);
        float square = 0;
        for (int d = 0; d < dimension; d++) {
            out[p * dimension + d] = to_short(position[d] * unit[d]);
            square += velocity[d] * velocity[d];
        }
        speeds[p] = to_byte(sqrtf(square) * unit[3]);
    }
}

/* Positions, then speeds as a byte of `scale`. */
static void put_particles(unsigned char *positions, unsigned char *speeds, const studio_view *view, const float size[3],
                          float scale)
{
    enum { piece = 16384 };
    uint16_t *out = (uint16_t *)(void *)positions;
    const int dimension = view->scene->domain.dimension, is_still = !view->velocity;
    float unit[4] = {0, 0, 0, scale > 0 && !is_still ? 255.0f / scale : 0.0f};
    for (int d = 0; d < 3; d++)
        unit[d] = size[d] > 0 ? 65535.0f / size[d] : 0.0f;
    studio_view known = *view;
    known.velocity = is_still ? view->position : view->velocity; /* times 0 */
#pragma omp parallel for schedule(static)
    for (int64_t begin = 0; begin < view->count; begin += piece) {
        const int64_t end = begin + piece < view->count ? begin + piece : view->count;
        if (dimension == 2)
            put_range(out, speeds, &known, 2, unit, begin, end);
        else
            put_range(out, speeds, &known, 3, unit, begin, end);
    }
}

/* Velocities as a signed byte an axis, 127 = `scale`. */
static void put_velocities(signed char *out, const studio_view *view, float scale)
{
    const int dimension = view->scene->domain.dimension;
    const float unit = 127.0f / scale;
#pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < view->count; p++) {
        const float *velocity = (const float *)(const void *)((const char *)view->velocity + (size_t)p * view->stride);
        for (int d = 0; d < dimension; d++) {
            float value = velocity[d] * unit;
            value = value > -127.0f ? value : -127.0f;
            out[p * dimension + d] = (signed char)(int)(value < 127.0f ? value : 127.0f);
        }
    }
}

studio_blob *studio_view_blob(const studio_view *view, const studio_solids *solids, studio_frame_numbers numbers)
{
    const selkie_scene *scene = view->scene;
    const int dimension = scene->domain.dimension;
    const size_t count = (size_t)view->count, poses = (size_t)solids->count * STUDIO_POSE * 4;
    const size_t positions = STUDIO_FRAME_HEADER + poses, speeds = positions + count * (size_t)dimension * 2;
    const size_t velocities = speeds + (view->material ? 2 : 1) * count;
    const int moves = view->moves && view->velocity;
    studio_blob *blob = studio_blob_create(velocities + (moves ? (size_t)dimension * count : 0), 1);
    if (!blob)
        return NULL;
    blob->number = numbers.frame;

    /* Header. */
    int cells[3];
    const double cell_size = selkie_scene_cells(scene, cells);
    const float size[3] = {(float)(cells[0] * cell_size), (float)(cells[1] * cell_size),
                           dimension == 2 ? 0.0f : (float)(cells[2] * cell_size)};
    const float scale = (float)fmax(view->max_speed, 1e-6);
    unsigned char *bytes = blob->bytes;
    memset(bytes, 0, STUDIO_FRAME_HEADER);
    memcpy(bytes, "SKF1", 4);
    put_u32(bytes + 4, (uint32_t)count);
    put_u32(bytes + 8, (uint32_t)dimension);
    put_u32(bytes + 12, (uint32_t)solids->count);
    put_u32(bytes + 16, numbers.frame);
    put_u32(bytes + 20, numbers.solids);
    memcpy(bytes + 24, &view->time, sizeof view->time);
    memcpy(bytes + 32, &view->step, sizeof view->step);
    memcpy(bytes + 40, size, sizeof size);
    memcpy(bytes + 52, &scale, sizeof scale);
    put_u32(bytes + 56, numbers.scene);
    put_u32(bytes + 60, (view->material ? STUDIO_FRAME_MATERIALS : 0u) | (moves ? STUDIO_FRAME_VELOCITIES : 0u));

    put_poses(bytes + STUDIO_FRAME_HEADER, view, solids);
    put_particles(bytes + positions, bytes + speeds, view, size, scale);
    for (size_t p = 0; view->material && p < count; p++)
        bytes[speeds + count + p] = (unsigned char)(view->material[p] & 255u);
    if (moves)
        put_velocities((signed char *)bytes + velocities, view, scale);
    return blob;
}

static void body_of_world(void *context, int body, studio_body_pose *pose)
{
    selkie_body_state state;
    if (selkie_world_body(context, body, &state) != SELKIE_OK)
        return;
    memcpy(pose->position, state.position, sizeof pose->position);
    memcpy(pose->quaternion, state.quaternion, sizeof pose->quaternion);
}

studio_blob *studio_frame_blob(const selkie_world *world, const studio_solids *solids, studio_frame_numbers numbers,
                               int moves)
{
    /* selkie_world_attribute() would mark the positions as written by the caller, and the next step sort them anew. */
    const sk_particles *particles = &world->step.particles;
    const sk_attribute *material = sk_particles_find_attribute(particles, "material");
    const studio_view view = {.scene = selkie_world_scene(world),
                              .time = selkie_world_time(world),
                              .step = (double)selkie_world_step_count(world),
                              .count = particles->count,
                              .position = particles->records ? particles->records[0].position : NULL,
                              .velocity = particles->records ? particles->records[0].velocity : NULL,
                              .stride = sizeof *particles->records,
                              .material = material ? material->data : NULL,
                              .max_speed = world->step.sums.max_speed,
                              .moves = moves,
                              .body = body_of_world,
                              .context = (void *)(uintptr_t)world};
    return studio_view_blob(&view, solids, numbers);
}

uint32_t studio_particles_checksum(const selkie_world *world)
{
    const sk_particles *particles = &world->step.particles;
    uint32_t sum = 0;
    for (int64_t p = 0; p < particles->count; p++) {
        uint32_t parts[3] = {sum};
        parts[1] = sk_crc32(particles->records[p].position, sizeof particles->records[p].position);
        parts[2] = sk_crc32(particles->records[p].velocity, sizeof particles->records[p].velocity);
        sum = sk_crc32(parts, sizeof parts);
    }
    return sum;
}
