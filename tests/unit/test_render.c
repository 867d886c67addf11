/* Pictures and films: there, of the right size, showing what they should, the same on any number of threads. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/random.h"
#include "io/atomic_file.h"
#include "io/folder.h"
#include "io/made_with.h"
#include "io/particles_file.h"
#include "render/color.h"
#include "render/film.h"
#include "render/picture.h"
#include "render/render_run.h"
#include "render/stage.h"
#include "selkie_config.h"

/* A tank with waves, some drops above it, an obstacle in the middle. */
typedef struct stand {
    selkie_scene scene;
    selkie_obstacle_def obstacle;
    selkie_liquid_def liquid;
    size_t count;
    float *position, *velocity;
    uint32_t *material; /* NULL = all of the first */
    float *fraction;    /* liquid part of the particles; NULL = 1 */
} stand;

static void stand_fill(stand *s, int dimension)
{
    int n = dimension == 2 ? 96 : 48;
    double step = 1.0 / n, half = 0.5 / n;
    int layers = dimension == 2 ? 1 : n / 2;
    s->position = malloc(sizeof(float) * 3 * (size_t)(n * n * layers + 16));
    s->velocity = malloc(sizeof(float) * 3 * (size_t)(n * n * layers + 16));
    for (int k = 0; k < layers; ++k)
        for (int j = 0; j < n; ++j)
            for (int i = 0; i < n; ++i) {
                uint64_t id = (uint64_t)(i + n * (j + n * k));
                double x = (i + (double)sk_random_float(1, id, 0)) * step,
                       y = (j + (double)sk_random_float(1, id, 1)) * step;
                double z = dimension == 2 ? 0 : (k + (double)sk_random_float(1, id, 2)) * step;
                int in_obstacle = hypot(x - 0.6, y - 0.15) < 0.15 && (dimension == 2 || fabs(z - 0.25) < 0.15);
                if (y > 0.3 + 0.08 * cos(6 * x) + half || in_obstacle)
                    continue;
                float *p = s->position + 3 * s->count, *v = s->velocity + 3 * s->count;
                p[0] = (float)x;
                p[1] = (float)y;
                p[2] = (float)z;
                v[0] = (float)(2 * x);
                v[1] = (float)y;
                v[2] = 0;
                ++s->count;
            }
    for (int i = 0; i < 12; ++i) {
        float *p = s->position + 3 * s->count, *v = s->velocity + 3 * s->count;
        p[0] = 0.1f + 0.07f * (float)i;
        p[1] = 0.7f + 0.02f * (float)(i % 3);
        p[2] = dimension == 2 ? 0.0f : 0.25f;
        v[0] = v[2] = 0;
        v[1] = -3;
        ++s->count;
    }
}

static stand *stand_create(int dimension)
{
    stand *s = calloc(1, sizeof *s);
    selkie_scene_defaults(&s->scene);
    s->scene.domain.dimension = dimension;
    s->scene.domain.size[0] = s->scene.domain.size[1] = 1;
    s->scene.domain.size[2] = 0.5;
    s->scene.domain.cell_size = dimension == 2 ? 1.0 / 32 : 1.0 / 24;
    s->scene.gravity[0] = s->scene.gravity[2] = 0;
    s->scene.gravity[1] = -9.81;
    selkie_obstacle_defaults(&s->obstacle);
    selkie_shape_defaults(&s->obstacle.shape, SELKIE_SHAPE_SPHERE);
    s->obstacle.name = "ball";
    s->obstacle.shape.center[0] = 0.6;
    s->obstacle.shape.center[1] = dimension == 2 ? 0.15 : 0.4;
    s->obstacle.shape.center[2] = dimension == 2 ? 0 : 0.25;
    s->obstacle.shape.radius = 0.15;
    s->scene.obstacles = &s->obstacle;
    s->scene.obstacle_count = 1;
    selkie_liquid_defaults(&s->liquid);
    selkie_shape_defaults(&s->liquid.shape, SELKIE_SHAPE_BOX);
    s->liquid.shape.max[0] = s->liquid.shape.max[1] = s->liquid.shape.max[2] = 0.4;
    s->scene.liquids = &s->liquid;
    s->scene.liquid_count = 1;
    stand_fill(s, dimension);
    return s;
}

static void stand_free(stand *s)
{
    free(s->position);
    free(s->velocity);
    free(s->material);
    free(s->fraction);
    free(s);
}

static void must(selkie_code code, const selkie_error *error)
{
    if (code)
        fail_msg("%s", error->message);
}

static sk_picture_options small_options(const stand *s)
{
    sk_picture_options o;
    sk_picture_options_defaults(&s->scene, &o);
    o.width = 192;
    o.height = 108;
    o.time = 0.5;
    o.threads = 2;
    return o;
}

static sk_image draw(const stand *s, const sk_picture_options *options)
{
    selkie_error error = {0};
    sk_stage *stage;
    sk_image image;
    must(sk_stage_create(&s->scene, &stage, &error), &error);
    sk_picture_particles particles = {.count = s->count,
                                      .position = s->position,
                                      .position_stride = 12,
                                      .velocity = s->velocity,
                                      .velocity_stride = 12,
                                      .material = s->material,
                                      .material_stride = 4,
                                      .liquid_fraction = s->fraction};
    must(sk_picture_draw(stage, &particles, options, &image, &error), &error);
    sk_stage_destroy(stage);
    assert_non_null(image.pixels);
    return image;
}

static size_t different_pixels(const sk_image *a, const sk_image *b)
{
    assert_int_equal(a->width, b->width);
    assert_int_equal(a->height, b->height);
    size_t count = 0;
    for (size_t i = 0; i < (size_t)a->width * (size_t)a->height; ++i)
        count += memcmp(a->pixels + 3 * i, b->pixels + 3 * i, 3) != 0;
    return count;
}

/* Pixels much redder than blue: the obstacle's colour in 3D. */
static size_t red_pixels(const sk_image *image)
{
    size_t count = 0;
    for (size_t i = 0; i < (size_t)image->width * (size_t)image->height; ++i)
        count += image->pixels[3 * i] > image->pixels[3 * i + 2] + 40;
    return count;
}

/* --- Pictures --- */

static void check_picture(stand *s, sk_picture_options options)
{
    sk_image one, many;
    options.threads = 1;
    one = draw(s, &options);
    assert_int_equal(one.width, 192);
    assert_int_equal(one.height, 108);
    for (int threads = 2; threads <= 3; ++threads) {
        options.threads = threads;
        many = draw(s, &options);
        assert_int_equal(different_pixels(&one, &many), 0);
        sk_image_free(&many);
    }
    /* The liquid is seen: without it much is different. So is the obstacle. */
    size_t count = s->count;
    s->count = 0;
    sk_image empty = draw(s, &options);
    assert_true(different_pixels(&one, &empty) > 192 * 108 / 20);
    s->count = count;
    s->scene.obstacle_count = 0;
    sk_image bare = draw(s, &options);
    assert_true(different_pixels(&one, &bare) > 192 * 108 / 100);
    s->scene.obstacle_count = 1;
    if (s->scene.domain.dimension == 3)
        assert_true(red_pixels(&one) > red_pixels(&bare) + 30);
    sk_image_free(&one);
    sk_image_free(&empty);
    sk_image_free(&bare);
}

static void test_surface_picture(void **state)
{
    (void)state;
    stand *s = stand_create(3);
    check_picture(s, small_options(s));
    stand_free(s);
}

/* A stand whose left half is a second material. */
static stand *stand_with_clay(selkie_material_def materials[2])
{
    stand *s = stand_create(3);
    for (int m = 0; m < 2; ++m) {
        selkie_material_defaults(&materials[m]);
        materials[m].name = m ? "clay" : "water";
    }
    materials[1].elastoplastic.plasticity = SELKIE_PLASTICITY_VON_MISES;
    s->liquid.material = "water";
    s->scene.materials = materials;
    s->scene.material_count = 2;
    s->scene.obstacle_count = 0;
    s->material = calloc(s->count, sizeof *s->material);
    for (size_t i = 0; i < s->count; ++i)
        s->material[i] = s->position[3 * i] < 0.5f;
    return s;
}

/* Elastoplastic points beside liquid are not water: a half of the tank has a colour of its own, with a shutter, where
 * they move, in style particles and in a preview. */
static void test_points_beside_liquid(void **state)
{
    (void)state;
    selkie_material_def materials[2];
    stand *s = stand_with_clay(materials);
    for (int n = 0; n < 4; ++n) {
        size_t red[2];
        for (int elastic = 0; elastic < 2; ++elastic) {
            sk_picture_options options = small_options(s);
            materials[1].kind = elastic ? SELKIE_MATERIAL_ELASTOPLASTIC : SELKIE_MATERIAL_LIQUID;
            options.shutter = n == 1 ? 0.02 : 0.0;
            options.style = n == 2 || !SELKIE_HAVE_EMBREE ? SELKIE_STYLE_PARTICLES : SELKIE_STYLE_SURFACE;
            options.preview = n == 3;
            sk_image image = draw(s, &options);
            red[elastic] = red_pixels(&image);
            sk_image_free(&image);
        }
        assert_true(red[1] > red[0] + 192 * 108 / 20);
    }
    stand_free(s);
}

/* So are bodies of particles, in their colour, and frozen liquid. */
static void test_solids_beside_liquid(void **state)
{
    (void)state;
    selkie_material_def materials[2];
    stand *s = stand_with_clay(materials);
    float *frozen = calloc(s->count, sizeof *frozen);
    for (size_t i = 0; i < s->count; ++i)
        frozen[i] = s->material[i] ? 0.1f : 1.0f;
    materials[0].melting_point = materials[1].melting_point = 330.0;
    for (int n = 0; n < 9; ++n) {
        sk_image images[2];
        for (int solid = 0; solid < 2; ++solid) {
            sk_picture_options options = small_options(s);
            materials[1].kind = SELKIE_MATERIAL_LIQUID;
            if (solid && n < 6)
                materials[1].kind = n < 3 ? SELKIE_MATERIAL_SOFT : SELKIE_MATERIAL_RIGID;
            s->fraction = solid && n >= 6 ? frozen : NULL;
            options.style = n % 3 == 1 || !SELKIE_HAVE_EMBREE ? SELKIE_STYLE_PARTICLES : SELKIE_STYLE_SURFACE;
            options.preview = n % 3 == 2;
            images[solid] = draw(s, &options);
        }
        assert_true(different_pixels(&images[0], &images[1]) > 192 * 108 / 20);
        assert_true(n >= 6 || red_pixels(&images[1]) > red_pixels(&images[0]) + 192 * 108 / 20);
        for (int solid = 0; solid < 2; ++solid)
            sk_image_free(&images[solid]);
    }
    s->fraction = frozen;
    stand_free(s);
}

static void test_particles_picture(void **state)
{
    (void)state;
    stand *s = stand_create(3);
    sk_picture_options options = small_options(s);
    options.style = SELKIE_STYLE_PARTICLES;
    options.color = SELKIE_COLOR_SPEED;
    check_picture(s, options);
    stand_free(s);
}

/* A cut-away view leaves out liquid in every style. */
static void test_cut(void **state)
{
    (void)state;
    stand *s = stand_create(3);
    for (int n = 0; n < 3; ++n) {
        sk_picture_options options = small_options(s);
        options.style = n == 1 ? SELKIE_STYLE_PARTICLES : SELKIE_STYLE_SURFACE;
        options.preview = n == 2;
        options.label = 0;
        sk_image whole = draw(s, &options);
        sk_picture_cut("x>-1", (const double[3]){0, 0, 0}, &options);
        s->scene.obstacle_count = 0;
        sk_image cut = draw(s, &options);
        const size_t count = s->count;
        s->count = 0;
        sk_image empty = draw(s, &options);
        s->count = count;
        s->scene.obstacle_count = 1;
        assert_int_equal(different_pixels(&cut, &empty), 0);
        assert_true(different_pixels(&cut, &whole) > 192 * 108 / 20);
        sk_image_free(&whole);
        sk_image_free(&cut);
        sk_image_free(&empty);
    }
    stand_free(s);
}

/* An obstacle across a periodic side is drawn at both sides: at x = 0 as at x = 1. */
static void test_periodic_picture(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; ++dimension) {
        sk_image images[2];
        for (int n = 0; n < 2; ++n) {
            stand *s = stand_create(dimension);
            sk_picture_options options = small_options(s);
            options.preview = 1;
            s->count = 0;
            s->scene.domain.cell_size = 1.0 / 32;
            s->scene.domain.periodic = SELKIE_AXES_X;
            s->obstacle.shape.center[0] = n;
            images[n] = draw(s, &options);
            stand_free(s);
        }
        assert_true(different_pixels(&images[0], &images[1]) < 20); /* rounding */
        sk_image_free(&images[0]);
        sk_image_free(&images[1]);
    }
}

/* What a build without embree draws. */
static void test_splats(void **state)
{
    (void)state;
    selkie_material_def materials[2];
    for (int clay = 0; clay < 2; ++clay) {
        stand *s = clay ? stand_with_clay(materials) : stand_create(3);
        materials[1].kind = SELKIE_MATERIAL_ELASTOPLASTIC;
        sk_picture_options options = small_options(s);
        const sk_picture_particles particles = {.count = s->count,
                                                .position = s->position,
                                                .position_stride = 12,
                                                .velocity = s->velocity,
                                                .velocity_stride = 12,
                                                .material = s->material,
                                                .material_stride = 4};
        selkie_error error = {0};
        sk_stage *stage;
        sk_image images[2];
        must(sk_stage_create(&s->scene, &stage, &error), &error);
        for (int i = 0; i < 2; ++i) {
            must(sk_image_create(&images[i], 192, 108, &error), &error);
            must(sk_draw_splats(stage, &particles, &options, 1 + 2 * i, &images[i], &error), &error);
        }
        assert_int_equal(different_pixels(&images[0], &images[1]), 0);
        assert_true(red_pixels(&images[0]) > (clay ? 192 * 108 / 20 : 30)); /* clay, or the obstacle */
        sk_image_free(&images[0]);
        sk_image_free(&images[1]);
        sk_stage_destroy(stage);
        stand_free(s);
    }
}

static void test_flat_pictures(void **state)
{
    (void)state;
    stand *s = stand_create(2);
    for (int style = 0; style < 2; ++style)
        for (int color = 0; color < 3; ++color) {
            sk_picture_options options = small_options(s);
            options.style = style ? SELKIE_STYLE_PARTICLES : SELKIE_STYLE_SURFACE;
            options.color = (selkie_picture_color)color;
            check_picture(s, options);
        }
    /* Without a height the picture follows the domain. */
    sk_picture_options options = small_options(s);
    options.height = 0;
    sk_image image = draw(s, &options);
    assert_int_equal(image.width, 192);
    assert_int_equal(image.height, 192);
    sk_image_free(&image);
    stand_free(s);
}

/* Particles that are not numbers, or far away, must not trip anything. */
static void test_strange_particles(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; ++dimension)
        for (int style = 0; style < 2; ++style) {
            stand *s = stand_create(dimension);
            s->position[3] = NAN;
            s->position[7] = INFINITY;
            s->position[9] = -1e30f;
            s->velocity[12] = NAN;
            s->position[15] = 1e9f;
            sk_picture_options options = small_options(s);
            options.style = style ? SELKIE_STYLE_PARTICLES : SELKIE_STYLE_SURFACE;
            options.width = 64;
            options.height = 36;
            options.samples = 1;
            options.time = NAN;
            sk_image image = draw(s, &options);
            sk_image_free(&image);
            stand_free(s);
        }
}

/* However gravity points and whatever the shape, the whole domain is in view, upright. */
static void test_camera(void **state)
{
    (void)state;
    for (int direction = 0; direction < 7; ++direction) {
        stand *s = stand_create(3);
        memset(s->scene.gravity, 0, sizeof s->scene.gravity);
        if (direction < 6)
            s->scene.gravity[direction / 2] = direction % 2 ? 9.81 : -9.81;
        s->scene.domain.size[direction % 3] = 2.5;
        selkie_error error = {0};
        sk_stage *stage;
        sk_camera camera;
        must(sk_stage_create(&s->scene, &stage, &error), &error);
        sk_camera_frame(stage, 0.0, 160, direction % 2 ? 90 : 240, &camera);
        float low_x = 1e9f, high_x = -1e9f, low_y = 1e9f, high_y = -1e9f, x, y;
        for (int c = 0; c < 8; ++c) {
            vec3 corner =
                v3((float)(c & 1 ? stage->high[0] : stage->low[0]), (float)(c & 2 ? stage->high[1] : stage->low[1]),
                   (float)(c & 4 ? stage->high[2] : stage->low[2]));
            assert_true(sk_camera_project(&camera, corner, &x, &y) > 0);
            low_x = fminf(low_x, x);
            high_x = fmaxf(high_x, x);
            low_y = fminf(low_y, y);
            high_y = fmaxf(high_y, y);
        }
        assert_true(low_x >= 0 && low_y >= 0 && high_x <= 160 && high_y <= (float)camera.height);
        assert_true(high_x - low_x > 100 || high_y - low_y > 0.6f * (float)camera.height);
        assert_true(v3_dot(camera.up, stage->up) > 0.5f);
        /* A ray through a pixel meets what projects onto it. */
        vec3 ray = sk_camera_ray(&camera, 31.5f, 20.25f);
        sk_camera_project(&camera, v3_along(camera.eye, 3.0f, ray), &x, &y);
        assert_float_equal(x, 31.5f, 0.01f);
        assert_float_equal(y, 20.25f, 0.01f);
        sk_stage_destroy(stage);
        stand_free(s);
    }
}

static void test_colors(void **state)
{
    (void)state;
    /* Lightness rises along the maps for speed. */
    for (int map = SK_MAP_WATER; map <= SK_MAP_SPEED; ++map) {
        float before = -1;
        for (int i = 0; i <= 20; ++i) {
            vec3 c = sk_color((sk_color_map)map, (float)i / 20.0f);
            float light = 0.2126f * sk_from_srgb(c.x) + 0.7152f * sk_from_srgb(c.y) + 0.0722f * sk_from_srgb(c.z);
            assert_true(light > before);
            before = light;
        }
    }
    vec3 end = sk_color(SK_MAP_SPEED, 5.0f), same = sk_color(SK_MAP_SPEED, 1.0f), none = sk_color(SK_MAP_SPEED, NAN);
    assert_true(end.x == same.x && end.y == same.y);
    assert_true(none.x >= 0);
}

/* --- Files --- */

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/selkie_render_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void file_in(char path[256], const char *name)
{
    snprintf(path, 256, "%s/%s", folder, name);
}

static void test_png(void **state)
{
    (void)state;
    selkie_error error = {0};
    sk_image image;
    char path[256];
    int width = 0, height = 0;
    must(sk_image_create(&image, 37, 21, &error), &error);
    sk_image_fill(&image, 3, 3, 20, 12, v3(1, 0.5f, 0), 1);
    const sk_pen pen = {.width = 2, .color = v3(0, 0, 1), .alpha = 1};
    const sk_text_style style = {.size = 8, .color = v3(1, 1, 1), .alpha = 1};
    sk_image_line(&image, -1e9f, 5, 1e9f, 9, &pen);
    sk_image_line(&image, NAN, 5, 10, 9, &pen);
    sk_image_text(&image, 1, 18, "t = 1.25 s", &style);
    file_in(path, "a picture.png");
#if SELKIE_HAVE_PNG
    must(sk_image_write_png(&image, path, &error), &error);
    must(sk_image_png_size(path, &width, &height, &error), &error);
    assert_int_equal(width, 37);
    assert_int_equal(height, 21);
    file_in(path, "missing/picture.png");
    assert_int_equal(sk_image_write_png(&image, path, &error), SELKIE_ERROR_FILE);
    assert_non_null(strstr(error.message, "missing"));
#else
    assert_int_equal(sk_image_write_png(&image, path, &error), SELKIE_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "libpng"));
#endif
    sk_image_free(&image);
    file_in(path, "nothing.png");
    assert_int_equal(sk_image_png_size(path, &width, &height, &error), SELKIE_ERROR_FILE);
    assert_int_equal(sk_image_create(&image, 0, 5, &error), SELKIE_ERROR_INPUT);
    assert_int_equal(sk_image_create(&image, 1 << 20, 5, &error), SELKIE_ERROR_INPUT);
}

/* Where the index of the film stands before its data, a browser can start to play at once. */
static void check_film(const char *path)
{
    selkie_error error = {0};
    char *data;
    size_t bytes;
    must(sk_file_read(path, &data, &bytes, &error), &error);
    assert_true(bytes > 500);
    assert_memory_equal(data + 4, "ftyp", 4);
    const char *index = memmem(data, bytes, "moov", 4), *media = memmem(data, bytes, "mdat", 4);
    assert_true(index && media && index < media);
    sk_release(NULL, data);
}

static void test_film(void **state)
{
    (void)state;
    selkie_error error = {0};
    sk_film *film;
    sk_image image;
    char path[256];
    file_in(path, "-y it's $(film);\"1\".mp4");
    assert_int_equal(sk_film_begin(path, 0, 1, &film, &error), SELKIE_ERROR_INPUT);
    if (!sk_film_possible()) {
        assert_int_equal(sk_film_begin(path, 25, 1, &film, &error), SELKIE_ERROR_UNSUPPORTED);
        skip();
    }
    /* Odd sides are padded. */
    must(sk_image_create(&image, 61, 45, &error), &error);
    must(sk_film_begin(path, 25, 2, &film, &error), &error);
    for (int i = 0; i < 5; ++i) {
        sk_image_fill(&image, 0, 0, 12 * i, 45, v3(1, 0.2f, 0.1f), 1);
        must(sk_film_add_image(film, &image, &error), &error);
    }
    must(sk_film_finish(film, &error), &error);
    check_film(path);

    /* A frame of another size, an empty film, a folder that is not there. */
    sk_image other;
    must(sk_image_create(&other, 10, 10, &error), &error);
    must(sk_film_begin(path, 25, 1, &film, &error), &error);
    must(sk_film_add_image(film, &image, &error), &error);
    assert_int_equal(sk_film_add_image(film, &other, &error), SELKIE_ERROR_INPUT);
    sk_film_abandon(film);
    check_film(path);
    must(sk_film_begin(path, 25, 1, &film, &error), &error);
    assert_int_equal(sk_film_finish(film, &error), SELKIE_ERROR_INPUT);
    file_in(path, "no such folder/film.mp4");
    must(sk_film_begin(path, 25, 1, &film, &error), &error);
    selkie_code code = sk_film_add_image(film, &image, &error);
    if (code) {
        sk_film_abandon(film);
    } else {
        code = sk_film_finish(film, &error);
    }
    assert_int_equal(code, SELKIE_ERROR_FILE);
    assert_non_null(strstr(error.message, "no such folder"));
    sk_image_free(&image);
    sk_image_free(&other);

    /* Without the program: a message that says how to get it. */
    char *kept = strdup(getenv("PATH"));
    setenv("PATH", folder, 1);
    assert_int_equal(sk_film_begin(path, 25, 1, &film, &error), SELKIE_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "apt-get install ffmpeg"));
    setenv("PATH", kept, 1);
    free(kept);
}

/* --- A run's folder --- */

#if SELKIE_HAVE_JSON && SELKIE_HAVE_PNG

typedef struct counts {
    int drawn, skipped, filmed, stop_after;
} counts;

static int count_progress(void *context, const sk_render_run_progress *progress)
{
    counts *c = context;
    if (progress->filming)
        ++c->filmed;
    else if (progress->skipped)
        ++c->skipped;
    else
        ++c->drawn;
    return c->stop_after && c->drawn >= c->stop_after;
}

static counts render(const sk_render_run_options *options, selkie_code expected)
{
    selkie_error error = {0};
    counts c = {0};
    selkie_code code = sk_render_run(folder, options, count_progress, &c, &error);
    if (code != expected)
        fail_msg("%s: %s", selkie_code_name(code), error.message);
    return c;
}

static void test_run_folder(void **state)
{
    (void)state;
    selkie_error error = {0};
    char path[256];
    sk_render_run_options options;
    sk_render_run_defaults(&options);
    options.width = 64;
    options.height = 36;
    options.samples = 1;
    options.threads = 2;
    options.film = sk_film_possible();
    render(&options, SELKIE_ERROR_FILE); /* no scene.json */

    stand *s = stand_create(3);
    s->scene.output.up = SELKIE_UP_Z;
    file_in(path, "scene.json");
    must(selkie_scene_save(&s->scene, path, &error), &error);
    render(&options, SELKIE_ERROR_FILE); /* no frames */
    file_in(path, "frames");
    must(sk_folder_make(path, &error), &error);
    sk_frame frame = {.dimension = 3,
                      .count = (int64_t)s->count,
                      .position = s->position,
                      .position_stride = 12,
                      .velocity = s->velocity,
                      .velocity_stride = 12,
                      .up = SELKIE_UP_Z,
                      .scene_up = {0, 1, 0}};
    for (int i = 0; i < 4; ++i) {
        char name[64];
        snprintf(name, sizeof name, "frames/particles_%04d.ply", i);
        file_in(path, name);
        frame.time = 0.1 * i;
        must(sk_particles_write_ply(&frame, path, &error), &error);
        for (size_t p = 0; p < s->count; ++p)
            s->position[3 * p] *= 0.97f;
    }

    counts c = render(&options, SELKIE_OK);
    assert_int_equal(c.drawn, 4);
    if (options.film) {
        file_in(path, "film.mp4");
        check_film(path);
    }
    c = render(&options, SELKIE_OK);
    assert_int_equal(c.drawn, 0);
    assert_int_equal(c.skipped, 4);
    options.force = 1;
    options.first = 2;
    c = render(&options, SELKIE_OK);
    assert_int_equal(c.drawn, 2);
    options.force = 0;
    options.first = 0;
    options.width = 80; /* another size, another style: drawn again */
    assert_int_equal(render(&options, SELKIE_OK).drawn, 4);
    options.style = SELKIE_STYLE_PARTICLES;
    assert_int_equal(render(&options, SELKIE_OK).drawn, 4);
    assert_int_equal(render(&options, SELKIE_OK).skipped, 4);

    /* Stopped half way: what is done stays, what was drawn otherwise does not pass for new. */
    options.style = SELKIE_STYLE_SURFACE;
    counts stopped = {.stop_after = 2};
    assert_int_equal(sk_render_run(folder, &options, count_progress, &stopped, &error), SELKIE_ERROR_INTERRUPTED);
    for (int i = 0; i < 4; ++i) { /* and stays until it is replaced */
        char name[64];
        snprintf(name, sizeof name, "pictures/frame_%04d.png", i);
        file_in(path, name);
        assert_true(sk_file_exists(path));
        assert_int_equal(sk_made_with_stale(path), i >= 2);
    }
    c = render(&options, SELKIE_OK);
    assert_int_equal(c.drawn, 2);
    assert_int_equal(c.skipped, 2);

    /* Other contents of the surroundings, under the same name. */
    char sky[256];
    file_in(sky, "sky.ppm");
    options.environment = sky;
    options.film = 0;
    for (int light = 0; light < 2; ++light) {
        const char pixels[] = "P6\n2 2\n255\nAAAAAAAAAAAA";
        char text[sizeof pixels];
        memcpy(text, pixels, sizeof pixels);
        text[12] = (char)('A' + light);
        must(sk_file_write(sky, text, sizeof text - 1, &error), &error);
        assert_int_equal(render(&options, SELKIE_OK).drawn, 4);
        assert_int_equal(render(&options, SELKIE_OK).drawn, 0);
    }

    options.first = 90;
    render(&options, SELKIE_ERROR_FILE);
    stand_free(s);
}

#endif

/* Surroundings from a picture: a PPM with a green upper half, and the same light as HDR, stored plainly, in runs and in
 * runs of the old kind. */
static void test_environment(void **state)
{
    (void)state;
    char path[4][600];
    const char *const names[4] = {"sky.ppm", "plain.hdr", "runs.hdr", "old_runs.hdr"};
    enum { width = 16, height = 8 };
    for (int f = 0; f < 4; ++f) {
        snprintf(path[f], sizeof path[f], "%s/%s", folder, names[f]);
        FILE *file = fopen(path[f], "wb");
        assert_non_null(file);
        if (f)
            fprintf(file, "#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y %d +X %d\n", height, width);
        else
            fprintf(file, "P6\n%d %d\n255\n", width, height);
        for (int y = 0; y < height; ++y) {
            const int green = y < height / 2;
            if (f == 2) {
                fprintf(file, "%c%c%c%c", 2, 2, 0, width);
                const unsigned char values[4] = {0, (unsigned char)(green ? 128 : 0), 0, 129};
                for (int c = 0; c < 4; ++c)
                    fprintf(file, "%c%c", 128 + width, values[c]);
                continue;
            }
            if (f == 3) { /* the first pixel, then fifteen like it */
                fprintf(file, "%c%c%c%c%c%c%c%c", 0, green ? 128 : 0, 0, 129, 1, 1, 1, width - 1);
                continue;
            }
            for (int x = 0; x < width; ++x)
                f ? fprintf(file, "%c%c%c%c", 0, green ? 128 : 0, 0, 129)
                  : fprintf(file, "%c%c%c", 0, green ? 255 : 0, 0);
        }
        fclose(file);
        sk_environment e;
        selkie_error error = {0};
        must(sk_environment_read(names[f], folder, "render.environment", &e, &error), &error);
        assert_int_equal(e.width, width);
        assert_true(fabsf(e.above.y - 1.0f) < 1e-4f && e.below.y < 1e-4f && e.above.x < 1e-4f);
        assert_true(sk_environment_light(&e, 0.9f, 0.3f, 0.3f).y > 0.99f);
        assert_true(sk_environment_light(&e, -0.9f, 0.3f, 0.3f).y < 0.01f);
        sk_environment_free(&e);
        assert_int_equal(truncate(path[f], 60), 0);
        assert_int_equal(sk_environment_read(names[f], folder, "render.environment", &e, &error), SELKIE_ERROR_FORMAT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_surface_picture),
        cmocka_unit_test(test_points_beside_liquid),
        cmocka_unit_test(test_solids_beside_liquid),
        cmocka_unit_test(test_particles_picture),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_periodic_picture),
        cmocka_unit_test(test_splats),
        cmocka_unit_test(test_flat_pictures),
        cmocka_unit_test(test_strange_particles),
        cmocka_unit_test(test_camera),
        cmocka_unit_test(test_colors),
        cmocka_unit_test_setup_teardown(test_environment, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_png, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_film, make_folder, remove_folder),
#if SELKIE_HAVE_JSON && SELKIE_HAVE_PNG
        cmocka_unit_test_setup_teardown(test_run_folder, make_folder, remove_folder),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
