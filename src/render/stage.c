/* A scene prepared for drawing: obstacles as triangles, directions, light, camera. */
#include "render/stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "defs/soft.h"
#include "geom/mass.h"
#include "render/color.h"

/* --- Making and releasing --- */

/* The axis nearest to up is vertical; the longer of the other two is across the picture. */
static void choose_directions(sk_stage *stage)
{
    double up[3];
    selkie_scene_up(stage->scene, up);
    stage->up = v3_unit(v3_from(up));

    /* Vertical axis and the one across the picture. */
    int vertical = 0;
    for (int a = 1; a < 3; ++a)
        if (fabs(up[a]) > fabs(up[vertical]) + 1e-9)
            vertical = a;
    int first = (vertical + 1) % 3, second = (vertical + 2) % 3;
    double extent[3];
    for (int a = 0; a < 3; ++a)
        extent[a] = stage->high[a] - stage->low[a];
    int across = extent[first] > extent[second] * 1.0001   ? first
                 : extent[second] > extent[first] * 1.0001 ? second
                                                           : -1;
    /* A domain as deep as wide has x to the right, as in most figures. */
    if (across < 0)
        across = vertical == 0 ? 2 : 0;

    /* Directions and floor. */
    double axis[3] = {0, 0, 0};
    axis[across] = 1;
    vec3 side = v3_from(axis);
    stage->side = v3_unit(v3_along(side, -v3_dot(side, stage->up), stage->up));
    stage->front = v3_cross(stage->side, stage->up);
    stage->floor_height = 1e30f;
    for (int c = 0; c < 8; ++c) {
        vec3 corner =
            v3((float)(c & 1 ? stage->high[0] : stage->low[0]), (float)(c & 2 ? stage->high[1] : stage->low[1]),
               (float)(c & 4 ? stage->high[2] : stage->low[2]));
        stage->floor_height = fminf(stage->floor_height, v3_dot(corner, stage->up));
    }

    /* High, from the left and a little from behind the liquid: crests and drops reflect towards the viewer. */
    const float height = stage->scene->render.sky == SELKIE_SKY_EVENING ? 0.22f : 0.80f;
    stage->sun = v3_unit(
        v3_add(v3_scale(stage->up, height), v3_add(v3_scale(stage->side, -0.55f), v3_scale(stage->front, -0.22f))));
}

/* The speed of a fall through most of the domain: a colour has the same speed in every frame. */
static float natural_speed(const sk_stage *stage)
{
    double g = 0, height = 0, up[3];
    selkie_scene_up(stage->scene, up);
    for (int a = 0; a < stage->dimension; ++a) {
        g += stage->scene->gravity[a] * stage->scene->gravity[a];
        height += fabs(up[a]) * (stage->high[a] - stage->low[a]);
    }
    return (float)(0.7 * sqrt(2 * sqrt(g) * height));
}

/* Obstacle or body `index`, or the obstacle's image that lies `image` from it. */
static selkie_code make_solid(sk_stage *stage, int index, const double image[3], sk_stage_solid *solid,
                              selkie_error *error)
{
    const selkie_scene *scene = stage->scene;
    char what[64];
    double up[3], low[3], high[3];
    int body = index - scene->obstacle_count;
    solid->def = body < 0 ? &scene->obstacles[index] : NULL;
    solid->owner = index;
    memcpy(solid->image, image, sizeof solid->image);
    selkie_scene_up(scene, up);
    snprintf(what, sizeof what, "%s[%d].shape", body < 0 ? "obstacles" : "bodies", body < 0 ? index : body);
    const selkie_shape *def = body < 0 ? &solid->def->shape : &scene->bodies[body].shape;
    const sk_shape_options options = {.dimension = stage->dimension, .up = up, .folder = scene->folder, .what = what};
    SK_TRY(sk_shape_create(def, &options, &solid->shape, error));
    solid->is_particles = body >= 0 && sk_body_material(scene, body) >= 0;
    if (solid->is_particles)
        return SELKIE_OK;
    if (body >= 0) {
        sk_mass_properties mass;
        SK_TRY(sk_shape_mass(solid->shape, what, &mass, error));
        memcpy(solid->center, mass.center, sizeof solid->center);
    }
    /* Clips a little outside the domain: an obstacle that ends at a wall must not lie in the wall's plane. Moving
     * solids are clipped in their initial pose and need a larger box. */
    double room = body >= 0 || sk_obstacle_moves(solid->def) ? stage->diagonal : 1e-3 * stage->diagonal;
    for (int a = 0; a < 3; ++a) {
        low[a] = stage->low[a] - image[a] - room;
        high[a] = stage->high[a] - image[a] + room;
    }
    return sk_shape_triangles(solid->shape, low, high, &solid->triangle_count, &solid->points, error);
}

/* Images of the obstacles beyond periodic sides, as in the grid: an obstacle that spans an axis has none along it. */
static selkie_code make_images(sk_stage *stage, selkie_error *error)
{
    const selkie_scene *scene = stage->scene;
    for (int o = 0; o < scene->obstacle_count && scene->domain.periodic; o++)
        for (int n = 0; n < 27; n++) {
            const int moves = sk_obstacle_moves(&scene->obstacles[o]);
            const int side[3] = {n % 3 - 1, n / 3 % 3 - 1, n / 9 - 1};
            double image[3], low[3], high[3];
            int wanted = n != 13;
            sk_shape_bounds(stage->solids[o].shape, low, high);
            for (int a = 0; a < 3; a++) {
                const int spans = low[a] <= stage->low[a] && high[a] >= stage->high[a];
                image[a] = side[a] * (stage->high[a] - stage->low[a]);
                wanted &= !side[a] || (a < stage->dimension && scene->domain.periodic >> a & 1 && !spans);
                wanted &= moves || (low[a] + image[a] <= stage->high[a] && high[a] + image[a] >= stage->low[a]);
            }
            if (!wanted)
                continue;
            SK_TRY(make_solid(stage, o, image, &stage->solids[stage->solid_count++], error));
        }
    return SELKIE_OK;
}

selkie_code sk_stage_create(const selkie_scene *scene, sk_stage **result, selkie_error *error)
{
    *result = NULL;
    SK_TRY(selkie_scene_check(scene, error));
    sk_stage *stage = sk_allocate_zeroed(NULL, sizeof *stage);
    const int solid_count = scene->obstacle_count + scene->body_count;
    const int most = solid_count + (scene->domain.periodic ? 26 * scene->obstacle_count : 0);
    sk_stage_solid *solids = stage ? sk_allocate_zeroed(NULL, ((size_t)most + 1) * sizeof *solids) : NULL;
    if (!solids) {
        sk_release(NULL, stage);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "picture: not enough memory for %d obstacles", solid_count);
    }

    /* Box and lengths. */
    int cells[3];
    stage->scene = scene;
    stage->solids = solids;
    stage->dimension = scene->domain.dimension;
    stage->cell_size = selkie_scene_cells(scene, cells);
    double square = 0;
    for (int a = 0; a < 3; ++a) {
        int flat = stage->dimension == 2 && a == 2;
        stage->low[a] = flat ? 0 : scene->domain.origin[a];
        stage->high[a] = flat ? 0 : scene->domain.origin[a] + cells[a] * stage->cell_size;
        square += (stage->high[a] - stage->low[a]) * (stage->high[a] - stage->low[a]);
    }
    stage->diagonal = sqrt(square);
    int per_cell = selkie_scene_particles_per_cell(scene);
    stage->spacing = stage->cell_size / pow(per_cell, 1.0 / stage->dimension);
    choose_directions(stage);
    stage->speed_scale = natural_speed(stage);

    /* Surroundings and solids. */
    selkie_code code = SELKIE_OK;
    static const double here[3] = {0, 0, 0};
    if (stage->dimension == 3 && scene->render.environment && scene->render.environment[0])
        code = sk_environment_read(scene->render.environment, scene->folder, "render.environment", &stage->environment,
                                   error);
    for (int i = 0; i < solid_count && !code; ++i) {
        code = make_solid(stage, i, here, &stage->solids[i], error);
        stage->solid_count = i + 1;
    }
    if (!code)
        code = make_images(stage, error);
    if (code) {
        sk_stage_destroy(stage);
        return code;
    }
    *result = stage;
    return SELKIE_OK;
}

void sk_stage_destroy(sk_stage *stage)
{
    if (!stage)
        return;
    for (int i = 0; i < stage->solid_count; ++i) {
        sk_shape_destroy(stage->solids[i].shape);
        free(stage->solids[i].points);
    }
    sk_environment_free(&stage->environment);
    sk_release(NULL, stage->solids);
    sk_release(NULL, stage);
}

void sk_stage_pose(const sk_stage *stage, int solid, const sk_picture_options *options, sk_pose *pose)
{
    const sk_stage_solid *s = &stage->solids[solid];
    int body = solid - stage->scene->obstacle_count;
    if (s->def) {
        sk_pose_at(s->def, isfinite(options->time) ? options->time : 0, pose);
        for (int a = 0; a < 3; ++a)
            pose->translation[a] += s->image[a];
        return;
    }
    sk_pose_identity(pose);
    if (body >= options->body_count)
        return;
    memcpy(pose->center, s->center, sizeof pose->center);
    sk_rotation_from_quaternion(options->bodies[body].quaternion, pose->rotation);
    for (int a = 0; a < 3; ++a)
        pose->translation[a] = options->bodies[body].position[a] - s->center[a];
}

selkie_code sk_stage_triangles(const sk_stage *stage, const sk_picture_options *options, size_t *count, float **points,
                               int **solid, selkie_error *error)
{
    /* Count and allocate the triangles of all solids. */
    size_t total = 0;
    for (int i = 0; i < stage->solid_count; ++i)
        total += stage->solids[i].triangle_count;
    *count = total;
    *points = sk_allocate(NULL, (total + 1) * 9 * sizeof(float));
    *solid = sk_allocate(NULL, (total + 1) * sizeof(int));
    if (!*points || !*solid) {
        sk_release(NULL, *points);
        sk_release(NULL, *solid);
        *points = NULL;
        *solid = NULL;
        return sk_fail(error, SELKIE_ERROR_MEMORY, "picture: no memory, %.1f MiB for the triangles of obstacles",
                       (double)total * 40 / 1048576.0);
    }

    /* Move the points to their place in the scene and note the solid of each triangle. */
    float *to = *points;
    int *owner = *solid;
    for (int i = 0; i < stage->solid_count; ++i) {
        sk_pose pose;
        sk_stage_pose(stage, i, options, &pose);
        const float *from = stage->solids[i].points;
        for (size_t p = 0; p < 3 * stage->solids[i].triangle_count; ++p, from += 3, to += 3) {
            double local[3] = {(double)from[0], (double)from[1], (double)from[2]}, world[3];
            sk_pose_to_world(&pose, local, world);
            for (int a = 0; a < 3; ++a)
                to[a] = (float)world[a];
        }
        for (size_t t = 0; t < stage->solids[i].triangle_count; ++t)
            *owner++ = stage->solids[i].owner;
    }
    return SELKIE_OK;
}

/* --- Camera --- */

static vec3 domain_corner(const sk_stage *stage, int c)
{
    return v3((float)(c & 1 ? stage->high[0] : stage->low[0]), (float)(c & 2 ? stage->high[1] : stage->low[1]),
              (float)(c & 4 ? stage->high[2] : stage->low[2]));
}

static void look(sk_camera *camera, vec3 eye, vec3 target, vec3 up)
{
    camera->eye = eye;
    camera->forward = v3_unit(v3_sub(target, eye));
    vec3 right = v3_cross(camera->forward, up);
    /* Straight down or up: any direction across is valid. */
    if (v3_length(right) < 1e-4f)
        right = v3_cross(camera->forward, fabsf(up.x) < 0.9f ? v3(1, 0, 0) : v3(0, 0, 1));
    camera->right = v3_unit(right);
    camera->up = v3_cross(camera->right, camera->forward);
}

/* Moves the eye back along its direction and sideways until the domain fits, centred. */
static void fit_domain(const sk_stage *stage, sk_camera *camera, vec3 forward)
{
    vec3 middle = v3_scale(v3_add(domain_corner(stage, 0), domain_corner(stage, 7)), 0.5f);
    float distance = (float)stage->diagonal;
    const float margin = 0.93f;
    for (int round = 0; round < 24; ++round) {
        look(camera, v3_along(middle, -distance, forward), middle, stage->up);
        float low[2] = {1e30f, 1e30f}, high[2] = {-1e30f, -1e30f}, back = -1e30f;
        for (int c = 0; c < 8; ++c) {
            vec3 d = v3_sub(domain_corner(stage, c), camera->eye);
            float depth = fmaxf(v3_dot(d, camera->forward), 1e-3f * distance);
            float u = v3_dot(d, camera->right) / depth, v = v3_dot(d, camera->up) / depth;
            low[0] = fminf(low[0], u);
            high[0] = fmaxf(high[0], u);
            low[1] = fminf(low[1], v);
            high[1] = fmaxf(high[1], v);
            float need = fmaxf(fabsf(v3_dot(d, camera->right)) / (margin * camera->half_width),
                               fabsf(v3_dot(d, camera->up)) / (margin * camera->half_height));
            back = fmaxf(back, need - depth);
        }
        middle = v3_along(middle, 0.5f * (low[0] + high[0]) * distance, camera->right);
        middle = v3_along(middle, 0.5f * (low[1] + high[1]) * distance, camera->up);
        distance = fmaxf(distance + back, 0.2f * (float)stage->diagonal);
    }
    look(camera, v3_along(middle, -distance, forward), middle, stage->up);
}

/* A cubic through four values at four times, between the middle ones (Catmull and Rom 1974, uneven times). */
static double spline_at(const double t[4], const double x[4], double time)
{
    const double span = t[2] - t[1], part = (time - t[1]) / span;
    double slope[2];
    for (int k = 0; k < 2; ++k)
        slope[k] = t[k + 2] > t[k] ? (x[k + 2] - x[k]) / (t[k + 2] - t[k]) * span : 0.0;
    const double p2 = part * part, p3 = p2 * part;
    return (2 * p3 - 3 * p2 + 1) * x[1] + (p3 - 2 * p2 + part) * slope[0] + (3 * p2 - 2 * p3) * x[2] +
           (p3 - p2) * slope[1];
}

/* The camera of the scene's keys at a time; before the first and after the last one it rests. */
static selkie_camera_key camera_at(const selkie_render_def *render, double time)
{
    const selkie_camera_key *keys = render->camera;
    const int last = render->camera_count - 1;
    if (!(time > keys[0].time))
        return keys[0];
    int after = 1;
    while (after <= last && keys[after].time < time)
        ++after;
    if (after > last)
        return keys[last];
    const int index[4] = {after > 1 ? after - 2 : 0, after - 1, after, after < last ? after + 1 : last};
    double t[4], x[4];
    selkie_camera_key at = keys[after];
    for (int value = 0; value < 7; ++value) {
        for (int k = 0; k < 4; ++k) {
            const selkie_camera_key *key = &keys[index[k]];
            t[k] = key->time;
            x[k] = value < 3 ? key->eye[value] : value < 6 ? key->target[value - 3] : key->field_of_view;
        }
        double *to = value < 3 ? &at.eye[value] : value < 6 ? &at.target[value - 3] : &at.field_of_view;
        *to = spline_at(t, x, time);
    }
    return at;
}

void sk_camera_frame(const sk_stage *stage, double time, int width, int height, sk_camera *camera)
{
    const selkie_render_def *render = &stage->scene->render;
    selkie_camera_key key = {.field_of_view = render->field_of_view};
    memcpy(key.eye, render->eye, sizeof key.eye);
    memcpy(key.target, render->target, sizeof key.target);
    if (render->camera_count > 0)
        key = camera_at(render, time);
    double angle = key.field_of_view > 0 && key.field_of_view < 170 ? key.field_of_view : 30;
    camera->width = width;
    camera->height = height;
    camera->half_height = (float)tan(angle * 3.14159265358979 / 360);
    camera->half_width = camera->half_height * (float)width / (float)height;
    double apart = 0;
    for (int a = 0; a < 3; ++a)
        apart += fabs(key.eye[a] - key.target[a]);
    if (apart > 0) {
        look(camera, v3_from(key.eye), v3_from(key.target), stage->up);
        return;
    }
    /* Three quarters: from the front, a little from the right and from above. */
    const float azimuth = 0.50f, elevation = 0.34f;
    vec3 level = v3_add(v3_scale(stage->front, cosf(azimuth)), v3_scale(stage->side, sinf(azimuth)));
    vec3 from = v3_add(v3_scale(level, cosf(elevation)), v3_scale(stage->up, sinf(elevation)));
    fit_domain(stage, camera, v3_scale(from, -1.0f));
}

vec3 sk_camera_ray(const sk_camera *camera, float x, float y)
{
    float u = (2.0f * x / (float)camera->width - 1.0f) * camera->half_width;
    float v = (1.0f - 2.0f * y / (float)camera->height) * camera->half_height;
    return v3_unit(v3_along(v3_along(camera->forward, u, camera->right), v, camera->up));
}

float sk_camera_project(const sk_camera *camera, vec3 point, float *x, float *y)
{
    vec3 d = v3_sub(point, camera->eye);
    float depth = v3_dot(d, camera->forward);
    if (depth <= 0.0f)
        return depth;
    *x = (v3_dot(d, camera->right) / (depth * camera->half_width) + 1.0f) * 0.5f * (float)camera->width;
    *y = (1.0f - v3_dot(d, camera->up) / (depth * camera->half_height)) * 0.5f * (float)camera->height;
    return depth;
}

/* --- Colours of particles --- */

vec3 sk_stage_speed_color(selkie_picture_color color, float speed, float scale)
{
    /* As in the figures of Cornelis et al. 2015. */
    static const float roles[3][3] = {{0.13f, 0.38f, 0.78f}, {0.96f, 0.80f, 0.16f}, {0.20f, 0.66f, 0.30f}};
    if (color == SELKIE_COLOR_ROLE) {
        const float *role = roles[speed < 0.5f ? 0 : speed < 1.5f ? 1 : 2];
        return v3(role[0], role[1], role[2]);
    }
    static const float materials[8][3] = {{0.13f, 0.38f, 0.78f}, {0.95f, 0.66f, 0.13f}, {0.20f, 0.66f, 0.30f},
                                          {0.80f, 0.22f, 0.20f}, {0.55f, 0.34f, 0.72f}, {0.15f, 0.68f, 0.70f},
                                          {0.55f, 0.40f, 0.28f}, {0.55f, 0.58f, 0.62f}};
    if (color == SELKIE_COLOR_MATERIAL) {
        const float *material = materials[(unsigned)(speed + 0.5f) % 8];
        return v3(material[0], material[1], material[2]);
    }
    if (color == SELKIE_COLOR_TEMPERATURE) { /* solids are paler */
        const int solid = speed > 1.5f;
        return v3_mix(sk_color(SK_MAP_RATIO, solid ? speed - 2.0f : speed), v3(0.93f, 0.96f, 0.99f),
                      solid ? 0.6f : 0.0f);
    }
    return sk_color(color == SELKIE_COLOR_WATER ? SK_MAP_WATER : SK_MAP_SPEED, scale > 0 ? speed / scale : 0.0f);
}

static int is_elastoplastic(const sk_stage *stage, uint32_t material)
{
    return material < (uint32_t)stage->scene->material_count &&
           stage->scene->materials[material].kind == SELKIE_MATERIAL_ELASTOPLASTIC;
}

int sk_stage_is_solid_material(const sk_stage *stage, uint32_t material)
{
    return material < (uint32_t)stage->scene->material_count &&
           stage->scene->materials[material].kind != SELKIE_MATERIAL_LIQUID;
}

int sk_stage_solid_numbers(const sk_stage *stage)
{
    const int materials = stage->scene->material_count;
    return 2 * (materials > 0 ? materials : 1);
}

int sk_stage_has_solid_points(const sk_stage *stage, const sk_picture_particles *particles)
{
    int points = 0;
    for (int m = 0; m < stage->scene->material_count; m++)
        points += sk_stage_is_solid_material(stage, (uint32_t)m);
    return particles->liquid_fraction || (points > 0 && points < stage->scene->material_count);
}

/* Frozen liquid is ice, wax (lipids, metals like gallium) or rock by its melting point. */
static vec3 color_of_frozen(double melting_point)
{
    if (melting_point < 290.0)
        return v3(0.80f, 0.88f, 0.93f);
    return melting_point < 700.0 ? v3(0.93f, 0.86f, 0.70f) : v3(0.33f, 0.30f, 0.29f);
}

vec3 sk_stage_points_color(const sk_stage *stage, int solid)
{
    static const float earths[3][3] = {{0.56f, 0.36f, 0.24f}, {0.90f, 0.80f, 0.62f}, {0.42f, 0.44f, 0.40f}};
    const selkie_material_def *materials = stage->scene->materials;
    const int count = stage->scene->material_count;
    if (solid >= count) {
        const int material = solid - sk_stage_solid_numbers(stage) / 2;
        return color_of_frozen(material < count ? materials[material].melting_point : 0.0);
    }
    const selkie_plasticity own = materials[solid].elastoplastic.plasticity;
    if (!is_elastoplastic(stage, (uint32_t)solid))
        return sk_stage_speed_color(SELKIE_COLOR_MATERIAL, (float)solid, 1.0f);
    if (own == SELKIE_PLASTICITY_DRUCKER_PRAGER)
        return v3(0.88f, 0.72f, 0.40f);
    if (own != SELKIE_PLASTICITY_VON_MISES)
        return sk_stage_speed_color(SELKIE_COLOR_MATERIAL, (float)solid, 1.0f);
    unsigned before = 0;
    for (uint32_t m = 0; m < (uint32_t)solid; m++)
        before += is_elastoplastic(stage, m) && materials[m].elastoplastic.plasticity == own;
    const float *earth = earths[before % 3];
    return v3(earth[0], earth[1], earth[2]);
}

static int compare_floats(const void *a, const void *b)
{
    float left = *(const float *)a, right = *(const float *)b;
    return left < right ? -1 : left > right;
}

/* Rounds up to 1, 2 or 5 times a power of ten, so that the scale's numbers are short. */
static float round_up(float x)
{
    if (!(x > 0) || !isfinite(x))
        return 1.0f;
    float power = powf(10.0f, floorf(log10f(x))), part = x / power;
    return power * (part <= 1.0f ? 1.0f : part <= 2.0f ? 2.0f : part <= 5.0f ? 5.0f : 10.0f);
}

/* The stress of the brightest colour, Pa: the largest yield stress of a material, a tenth of its modulus where it has
 * none. */
static float stress_scale(const selkie_scene *scene)
{
    double most = 0.0;
    for (int m = 0; m < scene->material_count; m++) {
        const selkie_elastoplastic_def *def = &scene->materials[m].elastoplastic;
        const double flows = def->plasticity == SELKIE_PLASTICITY_VON_MISES && def->yield > 0.0;
        most = fmax(most, flows ? 1.5 * def->yield : 0.1 * def->young);
    }
    return round_up((float)most);
}

float sk_stage_speed_scale(const sk_stage *stage, const sk_picture_particles *particles,
                           const sk_picture_options *options)
{
    if (options->color == SELKIE_COLOR_STRESS)
        return stress_scale(stage->scene);
    if (options->color == SELKIE_COLOR_PLASTIC_STRAIN)
        return 1.0f;
    if (options->speed_scale > 0)
        return (float)options->speed_scale;
    if (stage->speed_scale > 0)
        return round_up(stage->speed_scale);
    /* No gravity: the speed of the fastest of up to 4096 particles. */
    float speeds[4096];
    size_t step = particles->count / 4096 + 1, count = 0;
    for (size_t i = 0; i < particles->count && count < 4096; i += step) {
        float speed = sk_particle_speed(particles, i, stage->dimension);
        if (isfinite(speed))
            speeds[count++] = speed;
    }
    if (!count)
        return 1.0f;
    qsort(speeds, count, sizeof *speeds, compare_floats);
    return round_up(speeds[(size_t)(0.99 * (double)(count - 1))]);
}
