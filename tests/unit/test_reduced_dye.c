/* Dye of reduced fluids: edges that stay where the exact flow carries them, sources, bodies, bits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "reduced_scene.h"
#include "sanitized.h"

#include "methods/reduced/dye.h"
#include "world/world_internal.h"

#define PI 3.14159265358979323846

typedef struct dyed_scene {
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_dye_def dye[2];
    selkie_body_def body;
} dyed_scene;

static void set_box(selkie_shape *shape, double x0, double y0, double x1, double y1)
{
    shape->kind = SELKIE_SHAPE_BOX;
    shape->min[0] = x0;
    shape->min[1] = y0;
    shape->max[0] = x1;
    shape->max[1] = y1;
}

/* A box of 1 m2 with dye in it and no tracers to speak of. */
static void dyed_defaults(dyed_scene *d, int modes, int resolution)
{
    reduced_defaults(&d->scene, modes, resolution);
    selkie_liquid_defaults(&d->liquid);
    set_box(&d->liquid.shape, 0.0, 0.0, 1.0, 1.0);
    d->liquid.count = 16;
    d->scene.liquids = &d->liquid;
    d->scene.liquid_count = 1;
    for (int n = 0; n < 2; n++) {
        selkie_dye_defaults(&d->dye[n]);
        d->dye[n].color[n] = 1.0;
        d->dye[n].color[1 - n] = d->dye[n].color[2] = 0.0;
    }
    d->scene.reduced.dye = d->dye;
    d->scene.reduced.dye_count = 1;
    d->scene.gravity[1] = 0.0;
}

static selkie_picture paint(const selkie_world *world)
{
    selkie_picture picture;
    selkie_error error;
    if (selkie_world_dye(world, &picture, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    return picture;
}

static const uint8_t *pixel_of(const selkie_picture *p, int x, int y)
{
    return p->pixels + 3 * ((size_t)y * (size_t)p->width + (size_t)x);
}

/* Part of the picture that has the colour of dye n. */
static double share_of(const selkie_picture *p, int n)
{
    int count = 0;
    for (int y = 0; y < p->height; y++)
        for (int x = 0; x < p->width; x++) {
            const uint8_t *pixel = pixel_of(p, x, y);
            count += pixel[n] == 255 && pixel[1 - n] == 0;
        }
    return (double)count / (p->width * p->height);
}

/* --- A steady vortex --- */

/* Where the point of a steady flow, psi = strength sin(pi x) sin(pi y), was some time ago. */
static void go_back(double strength, double time, double x[2])
{
    const int steps = 150;
    const double h = -time / steps, c = strength * PI;
    for (int n = 0; n < steps; n++) {
        double k[4][2];
        for (int s = 0; s < 4; s++) {
            const double ahead = s == 0 ? 0.0 : s == 3 ? h : 0.5 * h;
            const double a = PI * (x[0] + (s ? ahead * k[s - 1][0] : 0.0)),
                         b = PI * (x[1] + (s ? ahead * k[s - 1][1] : 0.0));
            k[s][0] = c * sin(a) * cos(b);
            k[s][1] = -c * cos(a) * sin(b);
        }
        for (int e = 0; e < 2; e++)
            x[e] += h / 6.0 * (k[0][e] + 2.0 * k[1][e] + 2.0 * k[2][e] + k[3][e]);
    }
}

/* Dye in the left half after several turns: it is where it must be, but for pixels next to an edge. */
static void edges_stay_sharp(void **state)
{
    (void)state;
    const int turns = SANITIZED ? 2 : 6;
    dyed_scene d;
    dyed_defaults(&d, 4, 48); /* the lowest alone is in the start */
    d.scene.reduced.dye_pixels = 4;
    set_box(&d.dye[0].shape, 0.0, 0.0, 0.5, 1.0);
    d.liquid.angular_velocity[2] = 1.0;
    d.liquid.center[0] = d.liquid.center[1] = 0.5;
    d.scene.time.step = 1.0 / 30.0;
    selkie_world *world = create_world(&d.scene, 1);

    /* Near its middle the vortex turns by pi^2 strength a second. */
    run_world(world, 1);
    const double speed = sqrt(2.0 * selkie_world_statistics(world)->kinetic_energy / 1000.0);
    const double strength = speed * 2.0 / (PI * sqrt(2.0)), period = 2.0 / (PI * strength);
    assert_true(period < 20.0);
    run_world(world, (int)(turns * period / d.scene.time.step));
    selkie_picture p = paint(world);

    /* The exact picture. */
    const int n = p.width;
    unsigned char *exact = malloc((size_t)n * (size_t)n);
    for (int i = 0; i < n * n; i++) {
        double x[2] = {(i % n + 0.5) / n, 1.0 - (i / n + 0.5) / n};
        go_back(strength, selkie_world_time(world), x);
        exact[i] = x[0] < 0.5;
    }

    /* Pixels away from an exact edge by more than `reach` must be right. */
    int wrong = 0, far_wrong = 0, reach = 1;
    for (int y = reach; y < n - reach; y++)
        for (int x = reach; x < n - reach; x++) {
            const int is = pixel_of(&p, x, y)[0] == 255 && pixel_of(&p, x, y)[1] == 0;
            int alone = 1;
            for (int k = 0; k < (2 * reach + 1) * (2 * reach + 1); k++)
                alone &=
                    exact[(y + k / (2 * reach + 1) - reach) * n + x + k % (2 * reach + 1) - reach] == exact[y * n + x];
            wrong += is != exact[y * n + x];
            far_wrong += alone && is != exact[y * n + x];
        }
    const double area = share_of(&p, 0);
    print_message("after %d turns: %.4f of the pixels differ, %d of them not at an edge; area %.5f\n", turns,
                  (double)wrong / (n * n), far_wrong, area);
    assert_int_equal(far_wrong, 0);
    assert_true(wrong < 0.02 * n * n);
    assert_true(fabs(area - 0.5) < 1e-3);
    free(exact);
    selkie_picture_free(&p);
    selkie_world_destroy(world);
}

/* --- Sources --- */

/* A disc in a uniform stream dyes a band. More than 32 maps pass: the picture remembers. */
static void source_dyes_a_band(void **state)
{
    (void)state;
    const double radius = 0.1, speed = 0.4, time = SANITIZED ? 0.5 : 1.5;
    dyed_scene d;
    dyed_defaults(&d, 16, SANITIZED ? 40 : 200); /* maps last until three cells are crossed */
    d.scene.reduced.periodic = SELKIE_PERIODIC_X;
    d.scene.reduced.mean_flow[0] = speed;
    d.scene.reduced.dye_pixels = SANITIZED ? 8 : 3;
    d.scene.time.fps = SANITIZED ? 60.0 : 25.0;
    d.scene.time.step = SANITIZED ? 1.0 / 60.0 : 0.04; /* more than three cells: a map each */
    d.dye[0].shape.kind = SELKIE_SHAPE_SPHERE;
    d.dye[0].shape.center[0] = 0.3;
    d.dye[0].shape.center[1] = 0.5;
    d.dye[0].shape.radius = radius;
    d.dye[0].start = 0.25;
    d.dye[0].end = 0.25 + time;
    selkie_world *world = create_world(&d.scene, 1);
    run_world(world, (int)((d.dye[0].end + 0.2) / d.scene.time.step));
    selkie_picture p = paint(world);
    const double area = share_of(&p, 0), exact = PI * radius * radius + 2.0 * radius * speed * time;
    print_message("the band has %.4f m2, %.4f exactly\n", area, exact);
    assert_true(fabs(area / exact - 1.0) < 0.01);
    const sk_dye *dye = sk_step_state(&world->step, &sk_method_dye);
    assert_true(SANITIZED || dye->header->has_picture);
    selkie_picture_free(&p);
    selkie_world_destroy(world);
}

/* A change brings dye to a scene without any; another of its name ends it. */
static void changes_bring_dye(void **state)
{
    (void)state;
    dyed_scene d;
    selkie_change_def change;
    selkie_error error;
    selkie_picture p;
    dyed_defaults(&d, 9, 24);
    d.scene.reduced.dye_count = 0;
    d.scene.time.step = 0.05;
    selkie_world *world = create_world(&d.scene, 1);
    assert_int_equal(selkie_world_dye(world, &p, &error), SELKIE_ERROR_INPUT);
    for (int n = 0; n < 2; n++) {
        selkie_change_defaults(&change, SELKIE_CHANGE_DYE);
        change.dye = d.dye[n];
        change.dye.name = "brush";
        change.dye.end = 100.0;
        set_box(&change.dye.shape, 0.5 * n, 0.0, 0.5 * n + 0.5, 1.0);
        if (selkie_world_change(world, &change, NULL, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
        run_world(world, 2);
    }
    p = paint(world);
    assert_true(fabs(share_of(&p, 0) - 0.5) < 1e-9 && fabs(share_of(&p, 1) - 0.5) < 1e-9);
    selkie_picture_free(&p);
    selkie_world_destroy(world);
}

/* Dye that colours nothing is refused, wherever the domain begins. Along a periodic axis it comes back in. */
static void dye_outside_is_refused(void **state)
{
    (void)state;
    dyed_scene d;
    dyed_defaults(&d, 9, 24);
    for (int n = 0; n < 2; n++) {
        const double at = 100.0 * n;
        d.scene.domain.origin[0] = at;
        set_box(&d.liquid.shape, at, 0.0, at + 1.0, 1.0);
        set_box(&d.dye[0].shape, at + 1.2, 0.0, at + 1.5, 1.0);
        expect_refusal(&d.scene, "reduced.dye[0].shape: lies outside the domain");
    }
    d.scene.reduced.periodic = SELKIE_PERIODIC_X;
    selkie_world_destroy(create_world(&d.scene, 1));
}

/* --- Bodies, bits --- */

static void add_disc(dyed_scene *d)
{
    selkie_body_defaults(&d->body);
    d->body.shape.kind = SELKIE_SHAPE_SPHERE;
    d->body.shape.center[0] = 0.5;
    d->body.shape.center[1] = 0.8;
    d->body.shape.radius = 0.08;
    d->body.density = 3000.0;
    d->body.name = "disc";
    d->scene.bodies = &d->body;
    d->scene.body_count = 1;
    d->scene.gravity[1] = -1.0;
    d->scene.time.step = 1.0 / 60.0;
    set_box(&d->dye[0].shape, 0.0, 0.0, 1.0, 0.5);
}

/* A disc sinks from clear liquid into dye: the dye keeps its area, and the disc hides none of what it displaced. */
static void bodies_displace_dye(void **state)
{
    (void)state;
    dyed_scene d;
    dyed_defaults(&d, 64, 48);
    add_disc(&d);
    selkie_world *world = create_world(&d.scene, 2);
    const double disc = PI * 0.08 * 0.08;
    run_world(world, SANITIZED ? 10 : 55);
    selkie_picture p = paint(world);
    print_message("the disc is at %.3f m; dye %.4f of 0.5 m2\n", body_of(world, 0).position[1], share_of(&p, 0));
    assert_true(fabs(share_of(&p, 0) - 0.5) < 0.25 * disc);
    selkie_picture_free(&p);
    selkie_world_destroy(world);
}

static void same_bits(void **state)
{
    (void)state;
    char path[64];
    selkie_error error;
    snprintf(path, sizeof path, "/tmp/test_reduced_dye_%d.selkie", (int)getpid());
    dyed_scene d;
    dyed_defaults(&d, 64, 32);
    add_disc(&d);
    d.scene.reduced.dye_count = 2;
    set_box(&d.dye[1].shape, 0.4, 0.4, 0.6, 0.6);
    d.dye[1].start = 0.1;
    d.dye[1].end = 2.0;
    d.liquid.angular_velocity[2] = 4.0;
    d.liquid.center[0] = d.liquid.center[1] = 0.5;
    selkie_world *one = create_world(&d.scene, 1), *many = create_world(&d.scene, 3),
                 *resumed = create_world(&d.scene, 2);
    run_world(one, 20);
    if (selkie_world_save(one, path, &error) != SELKIE_OK || selkie_world_load(resumed, path, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    run_world(one, 40);
    run_world(resumed, 40);
    run_world(many, 60);
    selkie_picture a = paint(one), b = paint(many), c = paint(resumed);
    assert_memory_equal(a.pixels, b.pixels, 3 * (size_t)a.width * (size_t)a.height);
    assert_memory_equal(a.pixels, c.pixels, 3 * (size_t)a.width * (size_t)a.height);
    assert_same_worlds(one, resumed);
    assert_true(share_of(&a, 1) > 0.04);
    selkie_picture_free(&a);
    selkie_picture_free(&b);
    selkie_picture_free(&c);
    selkie_world_destroy(one);
    selkie_world_destroy(many);
    selkie_world_destroy(resumed);
    remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_stay_sharp),    cmocka_unit_test(source_dyes_a_band),
        cmocka_unit_test(changes_bring_dye),   cmocka_unit_test(dye_outside_is_refused),
        cmocka_unit_test(bodies_displace_dye), cmocka_unit_test(same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
