#include "studio_sketch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "geom/shape.h"

enum { width = 120, height = 80, header_bytes = 16, most_shapes = 200 }; /* pixels, bytes */

typedef struct sketch_shape {
    sk_shape *shape;
    sk_pose pose;
    unsigned char tone[3];
} sketch_shape;

typedef struct sketch {
    const selkie_scene *scene;
    sketch_shape shapes[most_shapes];
    int count;
    double low[3], high[3], up[3];          /* m, m; the domain */
    double right[3], upward[3], forward[3]; /* axes of the picture; in 2D x and y */
    double middle[3], pixel;                /* m; m of a pixel */
} sketch;

/* Liquids have the colours of their materials on the page. */
static const unsigned char palette[8][3] = {{41, 120, 204},  {242, 168, 56}, {77, 176, 107},  {214, 82, 77},
                                            {140, 107, 194}, {92, 189, 199}, {222, 135, 173}, {153, 153, 148}};
static const unsigned char source[3] = {96, 190, 235}, stone[3] = {128, 136, 142}, wood[3] = {219, 140, 64},
                           soft[3] = {96, 168, 96};

static void add_shape(sketch *s, const selkie_shape *def, const unsigned char tone[3])
{
    const sk_shape_options options = {
        .dimension = s->scene->domain.dimension, .up = s->up, .folder = s->scene->folder, .what = "shape", .sheets = 1};
    sketch_shape *item = &s->shapes[s->count];
    if (s->count == most_shapes || sk_shape_create(def, &options, &item->shape, NULL) != SELKIE_OK)
        return;
    sk_pose_identity(&item->pose);
    memcpy(item->tone, tone, sizeof item->tone);
    s->count++;
}

static const unsigned char *tone_of(const selkie_scene *scene, const selkie_liquid_def *liquid)
{
    int material = 0;
    for (int m = 0; m < scene->material_count && liquid->material; m++)
        if (strcmp(scene->materials[m].name, liquid->material) == 0)
            material = m;
    return palette[material % 8];
}

/* What stands in front of what in 2D: later shapes. */
static void add_shapes(sketch *s)
{
    const selkie_scene *scene = s->scene;
    for (int i = 0; i < scene->liquid_count; i++)
        add_shape(s, &scene->liquids[i].shape, tone_of(scene, &scene->liquids[i]));
    for (int i = 0; i < scene->source_count; i++)
        add_shape(s, &scene->sources[i].shape, source);
    for (int i = 0; i < scene->object_count; i++)
        add_shape(s, &scene->objects[i].shape, soft);
    for (int i = 0; i < scene->obstacle_count; i++) {
        const int before = s->count;
        add_shape(s, &scene->obstacles[i].shape, stone);
        if (s->count > before)
            sk_pose_at(&scene->obstacles[i], 0.0, &s->shapes[before].pose);
    }
    for (int i = 0; i < scene->body_count; i++)
        add_shape(s, &scene->bodies[i].shape, wood);
}

static void cross(const double a[3], const double b[3], double out[3])
{
    for (int d = 0; d < 3; d++)
        out[d] = a[(d + 1) % 3] * b[(d + 2) % 3] - a[(d + 2) % 3] * b[(d + 1) % 3];
}

static void unit(double a[3])
{
    const double length = sqrt(sk_hit_dot(a, a));
    for (int d = 0; d < 3; d++)
        a[d] /= length > 0 ? length : 1;
}

/* In 3D a view from the front, the right and above, without perspective. */
static void place_camera(sketch *s)
{
    const int is_flat = s->scene->domain.dimension == 2;
    double across[3] = {0, 0, 0}, half[2] = {0, 0};
    int vertical = 0;
    for (int d = 1; d < 3; d++)
        vertical = fabs(s->up[d]) > fabs(s->up[vertical]) ? d : vertical;
    const int side = vertical == 0 ? 1 : 0;
    across[side] = 1;
    cross(across, s->up, s->forward); /* towards the viewer */
    for (int d = 0; d < 3 && !is_flat; d++)
        s->forward[d] = -(s->forward[d] + 0.45 * across[d] + 0.5 * s->up[d]);
    unit(s->forward);
    if (is_flat) {
        memcpy(s->right, (double[3]){1, 0, 0}, sizeof s->right);
        memcpy(s->upward, (double[3]){0, 1, 0}, sizeof s->upward);
    } else {
        cross(s->forward, s->up, s->right);
        unit(s->right);
        cross(s->right, s->forward, s->upward);
    }

    /* The whole domain fits. */
    for (int d = 0; d < 3; d++) {
        s->middle[d] = 0.5 * (s->low[d] + s->high[d]);
        half[0] += 0.5 * (s->high[d] - s->low[d]) * fabs(s->right[d]);
        half[1] += 0.5 * (s->high[d] - s->low[d]) * fabs(s->upward[d]);
    }
    s->pixel = 1.06 * fmax(2 * half[0] / width, 2 * half[1] / height);
}

/* The part of a line within the domain; 0: none. Also the axis of the face that it enters by. */
static int clip(const sketch *s, const double from[3], const double along[3], double range[2], int *axis)
{
    range[0] = -INFINITY;
    range[1] = INFINITY;
    *axis = 0;
    for (int d = 0; d < 3; d++) {
        double near = (s->low[d] - from[d]) / along[d], far = (s->high[d] - from[d]) / along[d];
        if (fabs(along[d]) < 1e-12) {
            if (from[d] < s->low[d] || from[d] > s->high[d])
                return 0;
            continue;
        }
        if (near > far) {
            const double swapped = near;
            near = far;
            far = swapped;
        }
        if (near > range[0]) {
            range[0] = near;
            *axis = d;
        }
        range[1] = fmin(range[1], far);
    }
    return range[0] < range[1];
}

static void put(unsigned char rgba[4], const unsigned char tone[3], double light)
{
    for (int c = 0; c < 3; c++)
        rgba[c] = (unsigned char)fmin(255, fmax(0, tone[c] * light));
    rgba[3] = 255;
}

static void shade_flat(const sketch *s, const double at[3], unsigned char rgba[4])
{
    for (int d = 0; d < 2; d++)
        if (at[d] < s->low[d] || at[d] > s->high[d])
            return;
    const int is_full = s->scene->discretization == SELKIE_DISCRETIZATION_REDUCED;
    put(rgba, is_full ? source : (const unsigned char[3]){160, 176, 190}, 1);
    rgba[3] = is_full ? 160 : 56;
    for (int i = 0; i < s->count; i++) {
        double local[3];
        sk_pose_to_local(&s->shapes[i].pose, at, local);
        if (sk_shape_inside(s->shapes[i].shape, local))
            put(rgba, s->shapes[i].tone, 1);
    }
}

/* The first shape along the line, lit from above. */
static void shade_deep(const sketch *s, const double from[3], unsigned char rgba[4])
{
    double range[2], nearest = 2;
    int axis;
    if (!clip(s, from, s->forward, range, &axis))
        return;
    put(rgba, (const unsigned char[3]){160, 176, 190}, 1);
    rgba[3] = 48;
    for (int i = 0; i < s->count; i++) {
        double ends[2][3], local[2][3];
        sk_surface_hit hit = {2, {0, 0, 0}};
        for (int e = 0; e < 2; e++) {
            for (int d = 0; d < 3; d++)
                ends[e][d] = from[d] + (range[e] + (e ? -1e-9 : 1e-9)) * s->forward[d];
            sk_pose_to_local(&s->shapes[i].pose, ends[e], local[e]);
        }
        if (sk_shape_inside(s->shapes[i].shape, local[0])) { /* a wall of the domain cuts it */
            hit.at = 0;
            hit.normal[axis] = s->forward[axis] < 0 ? 1 : -1;
        } else if (!sk_shape_first_hit(s->shapes[i].shape, local[0], local[1], &hit)) {
            continue;
        }
        if (hit.at < nearest) {
            double normal[3];
            sk_pose_rotate(&s->shapes[i].pose, hit.normal, normal);
            put(rgba, s->shapes[i].tone, 0.7 + 0.35 * sk_hit_dot(normal, s->up) - 0.25 * sk_hit_dot(normal, s->right));
            nearest = hit.at;
        }
    }
}

studio_blob *studio_sketch_blob(const selkie_scene *scene, const char *name)
{
    /* Magic, width, height and length of the name; the name, to a whole number of words; RGBA, the top row first. */
    const size_t length = strlen(name), padded = (length + 3) & ~(size_t)3;
    studio_blob *blob = studio_blob_create(header_bytes + padded + 4 * width * height, 1);
    sketch *s = calloc(1, sizeof *s);
    if (!blob || !s) {
        studio_blob_release(blob);
        free(s);
        return NULL;
    }
    const uint32_t numbers[3] = {width, height, (uint32_t)length};
    memset(blob->bytes, 0, blob->length);
    memcpy(blob->bytes, "SKP1", 4);
    memcpy(blob->bytes + 4, numbers, sizeof numbers);
    memcpy(blob->bytes + header_bytes, name, length);

    /* The shapes and the view. */
    int cells[3];
    const double cell = selkie_scene_cells(scene, cells);
    s->scene = scene;
    selkie_scene_up(scene, s->up);
    for (int d = 0; d < scene->domain.dimension; d++) {
        s->low[d] = scene->domain.origin[d];
        s->high[d] = scene->domain.origin[d] + cells[d] * cell;
    }
    add_shapes(s);
    place_camera(s);

    unsigned char *rgba = blob->bytes + header_bytes + padded;
    for (int p = 0; p < width * height; p++, rgba += 4) {
        const double x = (p % width + 0.5 - 0.5 * width) * s->pixel, y = (0.5 * height - p / width - 0.5) * s->pixel;
        double at[3];
        for (int d = 0; d < 3; d++)
            at[d] = s->middle[d] + x * s->right[d] + y * s->upward[d];
        if (scene->domain.dimension == 2)
            shade_flat(s, at, rgba);
        else
            shade_deep(s, at, rgba);
    }
    for (int i = 0; i < s->count; i++)
        sk_shape_destroy(s->shapes[i].shape);
    free(s);
    return blob;
}
