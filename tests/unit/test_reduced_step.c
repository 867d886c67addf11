/* Steps of reduced fluids: no allocation, tracers, flows that are too fast, the source's quadtree. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reduced_scene.h"

#include "geom/outline.h"
#include "methods/reduced/points.h"
#include "methods/reduced/quadtree.h"
#include "methods/reduced/tracers.h"
#include "rigid/rigid.h"

#define PI 3.14159265358979323846

/* --- Allocations --- */

/* glibc's own names let a program count its calls. Sanitizers have their own allocator. */
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#define COUNTS_CALLS 1
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#undef COUNTS_CALLS
#define COUNTS_CALLS 0
#endif
#endif
#else
#define COUNTS_CALLS 0
#endif

static long calls; /* for memory, from any thread */
static int is_counting;

#if COUNTS_CALLS
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

/* The runtime of OpenMP keeps records of its teams; those are not ours. */
static void count_call(void *caller)
{
    Dl_info place;
    if (is_counting && !(dladdr(caller, &place) && place.dli_fname && strstr(place.dli_fname, "omp.so")))
        __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
}

void *malloc(size_t bytes)
{
    count_call(__builtin_return_address(0));
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    count_call(__builtin_return_address(0));
    return __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
    count_call(__builtin_return_address(0));
    return __libc_realloc(block, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    count_call(__builtin_return_address(0));
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    count_call(__builtin_return_address(0));
    *block = __libc_memalign(alignment, bytes);
    return *block ? 0 : ENOMEM;
}
#endif

typedef struct fixture {
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_force_def force;
    selkie_body_def bodies[3];
    selkie_dye_def dye;
} fixture;

/* A stirred box full of tracers. */
static void make(fixture *f, int modes)
{
    selkie_scene *scene = &f->scene;
    reduced_defaults(scene, modes, 64);
    scene->time.fps = 60;
    scene->time.step = 1.0 / 60.0;
    scene->time.end = 10.0;
    scene->gravity[1] = -0.5;
    selkie_liquid_defaults(&f->liquid);
    selkie_shape_defaults(&f->liquid.shape, SELKIE_SHAPE_BOX);
    f->liquid.shape.max[0] = f->liquid.shape.max[1] = 1.0;
    selkie_force_defaults(&f->force, SELKIE_FORCE_VORTEX);
    f->force.point[0] = f->force.point[1] = 0.6;
    f->force.radius = 0.3;
    f->force.spin = 3.0;
    scene->liquids = &f->liquid;
    scene->forces = &f->force;
    scene->liquid_count = scene->force_count = 1;
    scene->bodies = f->bodies;
}

static selkie_body_def *add_bar(fixture *f, double x, double y, double length, double thickness)
{
    selkie_body_def *body = &f->bodies[f->scene.body_count++];
    selkie_body_defaults(body);
    selkie_shape_defaults(&body->shape, SELKIE_SHAPE_BOX);
    body->shape.min[0] = x - 0.5 * length;
    body->shape.max[0] = x + 0.5 * length;
    body->shape.min[1] = y - 0.5 * thickness;
    body->shape.max[1] = y + 0.5 * thickness;
    body->density = 900.0;
    return body;
}

/* A source of dye in the middle. */
static void add_dye(fixture *f)
{
    selkie_dye_defaults(&f->dye);
    selkie_shape_defaults(&f->dye.shape, SELKIE_SHAPE_SPHERE);
    f->dye.shape.center[0] = f->dye.shape.center[1] = 0.5;
    f->dye.shape.radius = 0.1;
    f->dye.end = 10.0;
    f->scene.reduced.dye = &f->dye;
    f->scene.reduced.dye_count = 1;
}

/* After a few steps no step asks for memory: triads, transforms, bodies with dye. */
static void steps_allocate_nothing(void **state)
{
    (void)state;
    if (!COUNTS_CALLS)
        skip();
    for (int n = 0; n < 3; n++) {
        fixture f;
        if (n == 2 && !sk_rigid_available())
            continue;
        make(&f, n == 1 ? 900 : 73);
        if (n == 2) {
            add_bar(&f, 0.3, 0.5, 0.1, 0.1);
            add_bar(&f, 0.6, 0.6, 0.2, 0.05);
            add_dye(&f);
        }
        selkie_world *world = create_world(&f.scene, 1);
        run_world(world, 20);
        calls = 0;
        is_counting = 1;
        run_world(world, 30);
        is_counting = 0;
        print_message("%s: %ld calls for memory in 30 steps\n", n == 2 ? "bodies" : n ? "transforms" : "triads", calls);
        assert_int_equal(calls, 0);
        selkie_world_destroy(world);
    }
}

/* --- Tracers --- */

static void tuned_tracers_equal_kernel(void **state)
{
    (void)state;
    enum { CELLS = 40, COUNT = 1003 };
    static float values[(CELLS + 1) * (CELLS + 1) * 2];
    static sk_particle tuned[COUNT], plain[COUNT];
    for (int n = 0; n < (CELLS + 1) * (CELLS + 1); n++) {
        values[2 * n] = sinf(0.31f * (float)n);
        values[2 * n + 1] = cosf(0.17f * (float)n);
    }
    for (int p = 0; p < COUNT; p++)
        for (int d = 0; d < 2; d++)
            tuned[p].position[d] = plain[p].position[d] = (float)fmod((d ? 0.57 : 0.75) * p + 0.001 * p, 1.0);
    const sk_reduced_view view = {
        .values = values, .cells = {CELLS, CELLS}, .inverse = {CELLS, CELLS}, .size = {1.0f, 1.0f}};
    sk_reduced_move_tracers(&view, 0.02f, tuned, COUNT);
    for (int p = 0; p < COUNT; p++) {
        assert_true(sk_reduced_move_tracer(&view, 0.02f, plain[p].position, plain[p].velocity));
        for (int d = 0; d < 2; d++) {
            assert_true(fabsf(tuned[p].position[d] - plain[p].position[d]) < 1e-6f);
            assert_true(fabsf(tuned[p].velocity[d] - plain[p].velocity[d]) < 1e-5f);
        }
    }
}

/* Flow is free of divergence: tracers stay evenly spread beside a plate thinner than a cell that sweeps through them.
 * Counts the squares of two cells, of those that the plate has not covered for a while, without or with twice the
 * tracers. Random tracers of 9 a cell have 36 +- 6 in a square. */
static void tracers_pass_a_thin_plate(void **state)
{
    (void)state;
    if (!sk_rigid_available())
        skip();
    enum { SQUARES = 32 };
    fixture f;
    make(&f, 73);
    f.scene.force_count = 0;
    f.scene.gravity[1] = 0.0;
    f.scene.particles.per_cell = 9;
    f.scene.reduced.feedback = 0.0;
    selkie_body_def *plate = add_bar(&f, 0.3, 0.5, 0.012, 0.2);
    plate->density = 1e9;
    plate->velocity[0] = 0.3;
    selkie_world *world = create_world(&f.scene, 2);
    run_world(world, 60);

    int count[SQUARES][SQUARES] = {{0}}, empty = 0, full = 0;
    selkie_attribute_view x;
    assert_int_equal(selkie_world_find_attribute(world, "position", &x, NULL), SELKIE_OK);
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
        const float *at = (const float *)(const void *)((const char *)x.data + (size_t)p * x.stride);
        const int i = (int)fminf(at[0] * SQUARES, SQUARES - 1), j = (int)fminf(at[1] * SQUARES, SQUARES - 1);
        count[i][j]++;
    }
    for (int i = 0; i < SQUARES; i++)
        for (int j = 0; j < SQUARES; j++) {
            if (fabs((i + 0.5) / SQUARES - body_of(world, 0).position[0]) < 0.03)
                continue; /* partly covered */
            empty += count[i][j] < 12;
            full += count[i][j] > 72;
        }
    print_message("of 1024 squares %d have less than a third of the tracers, %d more than twice\n", empty, full);
    assert_true(empty <= 2 && full <= 2);
    selkie_world_destroy(world);
}

/* A long step is said once, a wild one stops the run. */
static void flows_that_are_too_fast(void **state)
{
    (void)state;
    fixture f;
    selkie_error error;
    make(&f, 73);
    f.force.spin = 2000.0;
    selkie_world *world = create_world(&f.scene, 1);
    for (int n = 0; n < 30 && !selkie_world_warning(world); n++)
        if (selkie_world_step(world, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
    assert_non_null(selkie_world_warning(world));
    assert_non_null(strstr(selkie_world_warning(world), "the flow is too fast for the step"));
    selkie_world_destroy(world);

    f.force.spin = 1e9;
    world = create_world(&f.scene, 1);
    selkie_code code = SELKIE_OK;
    for (int n = 0; n < 5 && code == SELKIE_OK; n++)
        code = selkie_world_step(world, &error);
    assert_int_equal(code, SELKIE_ERROR_DIVERGED);
    assert_non_null(strstr(error.message, "the flow is too fast"));
    selkie_world_destroy(world);
}

/* --- The quadtree --- */

/* Two discs in a box that move, with their sheets solved. */
static void make_coupling(sk_coupling *c)
{
    const double size[2] = {1.0, 1.0}, center[2] = {0.0, 0.0};
    const int closed[2] = {1, 1};
    selkie_error error;
    sk_panels *panels = sk_allocate_zeroed(NULL, 2 * sizeof *panels);
    for (int b = 0; b < 2; b++) {
        sk_outline outline;
        assert_int_equal(sk_outline_circle(center, 0.06, 12, NULL, &outline, &error), SELKIE_OK);
        assert_int_equal(sk_panels_make(&panels[b], outline.count, (const double(*)[2])outline.corners, center, "disc",
                                        NULL, &error),
                         SELKIE_OK);
        sk_outline_free(&outline);
    }
    assert_int_equal(sk_coupling_make(c, 2, panels, size, closed, NULL, &error), SELKIE_OK);
    for (int b = 0; b < 2; b++)
        sk_coupling_place(c, b, (const double[2]){0.3 + 0.35 * b, 0.45 + 0.15 * b}, 0.2 * b);
    sk_coupling_assemble(c, 1);
    for (int n = 0; n < c->count; n++)
        c->wanted[n] = 0.7 * (c->middle[n][1] - 0.5) - 0.4 * (c->middle[n][0] - 0.5);
    sk_coupling_solve(c, 1e-7);
}

/* The error of the quadtree stays below its threshold, its table falls with distance, and what it gives to the modes is
 * that of the integrals over the panels. */
static void quadtree_is_the_reference(void **state)
{
    (void)state;
    enum { CELLS = 64, MODES = 73 };
    const int cells[2] = {CELLS, CELLS};
    const double size[2] = {1.0, 1.0}, weight[2] = {1.0, 1.0};
    static double field[3][2][CELLS * CELLS];
    sk_coupling c;
    sk_quadtree tree;
    sk_reduced_spectrum s;
    sk_mode_points points;
    selkie_error error;
    make_coupling(&c);
    sk_quadtree_make(&tree, cells, size, c.panels[0].length[0]);
    for (int level = 0; level < tree.levels; level++)
        assert_true(tree.error[level][40] < tree.error[level][20]);
    assert_true(tree.error[tree.levels - 1][10] < tree.error[1][10]);

    /* Against every panel at every cell. */
    const double thresholds[2] = {0.02, 0.005};
    double strengths = 0.0;
    for (int n = 0; n < c.count; n++)
        strengths += fabs(c.strength[n]);
    const long naive = sk_quadtree_add(&tree, &c, weight, -1.0, (double *const[2]){field[0][0], field[0][1]});
    for (int t = 0; t < 2; t++) {
        memset(field[1], 0, sizeof field[1]);
        const long some =
            sk_quadtree_add(&tree, &c, weight, thresholds[t], (double *const[2]){field[1][0], field[1][1]});
        double worst = 0.0;
        for (int n = 0; n < CELLS * CELLS; n++)
            worst = fmax(worst, hypot(field[0][0][n] - field[1][0][n], field[0][1][n] - field[1][1][n]));
        print_message("threshold %g: %ld of %ld evaluations, error %.3g m/s\n", thresholds[t], some, naive, worst);
        assert_true(some < naive / (t ? 2 : 6));
        assert_true(worst < 9.0 * thresholds[t] * strengths); /* nine images */
    }

    /* The modes receive the same, but for what the walls reflect of bodies far from them. */
    const sk_reduced_box box = {.size = {1.0, 1.0}, .cells = {CELLS, CELLS}, .modes = MODES};
    double exact[MODES] = {0}, by_tree[MODES] = {0}, circulation[256], difference = 0.0, square = 0.0;
    assert_int_equal(sk_reduced_spectrum_make(&s, &box, NULL, &error), SELKIE_OK);
    assert_int_equal(sk_mode_points_make(&points, &s, c.count, &error), SELKIE_OK);
    for (int n = 0; n < c.count; n++) {
        sk_mode_points_place(&points, &s, n, c.middle[n]);
        circulation[n] = c.circulation[n];
    }
    sk_mode_points_add(&points, &s, circulation, exact);
    sk_reduced_project(&s, (const double *const[2]){field[1][0], field[1][1]}, by_tree, 1);
    for (int k = 0; k < MODES; k++) {
        difference += (exact[k] - by_tree[k]) * (exact[k] - by_tree[k]);
        square += exact[k] * exact[k];
    }
    print_message("modes differ by %.3g %%\n", 100.0 * sqrt(difference / square));
    assert_true(difference < 0.05 * 0.05 * square);
    sk_mode_points_free(&points);
    sk_reduced_spectrum_free(&s);
    sk_coupling_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_allocate_nothing),    cmocka_unit_test(tuned_tracers_equal_kernel),
        cmocka_unit_test(tracers_pass_a_thin_plate), cmocka_unit_test(flows_that_are_too_fast),
        cmocka_unit_test(quadtree_is_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
