/* Pictures of flows: dye with sharp edges, noise smeared along the velocity, lines along it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <selkie/selkie.h>
#include "render/picture.h"

enum { SIDE = 64, WIDTH = 200 };

typedef struct fixture {
    selkie_scene scene;
    selkie_liquid_def liquid;
    float position[SIDE * SIDE][3], velocity[SIDE * SIDE][3];
    uint32_t material[SIDE * SIDE];
} fixture;

/* Particles on a lattice that flow along (1, 0.5); two materials, left and right. */
static void draw(fixture *f, selkie_picture_style style, selkie_picture_color color, sk_image *image)
{
    selkie_error error;
    sk_stage *stage;
    sk_picture_options options;
    selkie_scene_defaults(&f->scene);
    f->scene.domain.dimension = 2;
    f->scene.domain.size[0] = f->scene.domain.size[1] = 1.0;
    f->scene.domain.resolution = SIDE / 2;
    f->scene.particles.per_cell = 4;
    selkie_liquid_defaults(&f->liquid);
    f->scene.liquids = &f->liquid;
    f->scene.liquid_count = 1;
    for (int n = 0; n < SIDE * SIDE; n++) {
        const float x[2] = {((float)(n / SIDE) + 0.5f) / SIDE, ((float)(n % SIDE) + 0.5f) / SIDE};
        for (int d = 0; d < 3; d++) {
            f->position[n][d] = d < 2 ? x[d] : 0.0f;
            f->velocity[n][d] = d == 0 ? 1.0f : d == 1 ? 0.5f : 0.0f;
        }
        f->material[n] = x[0] > 0.5f;
    }
    const sk_picture_particles particles = {.count = SIDE * SIDE,
                                            .position = f->position[0],
                                            .position_stride = sizeof f->position[0],
                                            .velocity = f->velocity[0],
                                            .velocity_stride = sizeof f->velocity[0],
                                            .material = f->material,
                                            .material_stride = sizeof f->material[0]};
    if (sk_stage_create(&f->scene, &stage, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    sk_picture_options_defaults(&f->scene, &options);
    options.style = style;
    options.color = color;
    options.width = options.height = WIDTH;
    options.label = 0;
    if (sk_picture_draw(stage, &particles, &options, image, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    sk_stage_destroy(stage);
}

static double brightness(const sk_image *image, int x, int y)
{
    const uint8_t *p = image->pixels + 3 * ((size_t)y * (size_t)image->width + (size_t)x);
    return p[0] + p[1] + p[2];
}

/* Two colours, and at most two pixels between them. */
static void dye_is_sharp(void **state)
{
    (void)state;
    fixture *f = malloc(sizeof *f);
    sk_image image;
    draw(f, SELKIE_STYLE_DYE, SELKIE_COLOR_MATERIAL, &image);
    for (int y = 20; y < WIDTH - 20; y += 20) {
        const double left = brightness(&image, 20, y), right = brightness(&image, WIDTH - 20, y);
        int between = 0;
        assert_true(fabs(left - right) > 20.0);
        for (int x = 20; x < WIDTH - 20; x++) {
            const double value = brightness(&image, x, y);
            between += fabs(value - left) > 1.0 && fabs(value - right) > 1.0;
        }
        assert_true(between <= 2);
    }
    sk_image_free(&image);
    free(f);
}

/* Mean product of the deviations of pixels some way apart, over their variance. */
static double correlation(const sk_image *image, int dx, int dy)
{
    double sum = 0.0, square = 0.0, mean = 0.0;
    int count = 0;
    for (int y = 40; y < WIDTH - 40; y++)
        for (int x = 40; x < WIDTH - 40; x++, count++)
            mean += brightness(image, x, y);
    mean /= count;
    for (int y = 40; y < WIDTH - 40; y++)
        for (int x = 40; x < WIDTH - 40; x++) {
            const double a = brightness(image, x, y) - mean;
            sum += a * (brightness(image, x + dx, y + dy) - mean);
            square += a * a;
        }
    return sum / square;
}

/* Grey values resemble each other along the flow, and not across it. In pictures y points down. */
static void noise_follows_the_flow(void **state)
{
    (void)state;
    fixture *f = malloc(sizeof *f);
    sk_image image;
    draw(f, SELKIE_STYLE_LIC, SELKIE_COLOR_WATER, &image);
    const double along = correlation(&image, 8, -4), across = correlation(&image, 4, 8);
    print_message("correlation along the flow %.3f, across it %.3f\n", along, across);
    assert_true(along > 0.4 && fabs(across) < 0.15);
    sk_image_free(&image);

    /* Streamlines: dark lines on light paper, of a moderate share, and constant along the flow. */
    draw(f, SELKIE_STYLE_STREAMLINES, SELKIE_COLOR_WATER, &image);
    int dark = 0;
    for (int y = 40; y < WIDTH - 40; y++)
        for (int x = 40; x < WIDTH - 40; x++)
            dark += brightness(&image, x, y) < 500.0;
    const double share = (double)dark / ((WIDTH - 80) * (WIDTH - 80));
    print_message("streamlines cover %.3f; correlation along %.3f, across %.3f\n", share, correlation(&image, 8, -4),
                  correlation(&image, 3, 6));
    assert_true(share > 0.05 && share < 0.4);
    assert_true(correlation(&image, 8, -4) > correlation(&image, 3, 6) + 0.3);
    sk_image_free(&image);
    free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dye_is_sharp),
        cmocka_unit_test(noise_follows_the_flow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
