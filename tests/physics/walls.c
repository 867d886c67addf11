/* Walls of any thickness and speed hold liquid: not one particle passes, a pool on a thin shelf keeps its level, and
 * the two sides of a thin divider keep their own. Distances in cells; every particle is tested against the surface
 * itself. */
#include <unistd.h>

#include "bodies.h"

#define CELL 0.02 /* m */

typedef struct variant {
    const char *name;
    selkie_method method;
    selkie_volume volume;
    int unilateral;
} variant;

static const variant variants[] = {
    {"FLIP", SELKIE_METHOD_FLIP, SELKIE_VOLUME_NONE, 0},
    {"FLIP idp", SELKIE_METHOD_FLIP, SELKIE_VOLUME_IDP, 0},
    {"APIC idp", SELKIE_METHOD_APIC, SELKIE_VOLUME_IDP, 0},
    {"unilateral", SELKIE_METHOD_FLIP, SELKIE_VOLUME_NONE, 1},
};

enum { VARIANTS = sizeof variants / sizeof *variants };

static void start(test_scene *t, const variant *v, int dimension, double x, double y, double z)
{
    tank(t, dimension, x * CELL, y * CELL, z * CELL, CELL);
    selkie_scene_set_method(&t->scene, v->method);
    t->scene.volume = v->volume;
    t->scene.time.cfl = 3.0;
    t->scene.time.fps = 50.0;
    if (v->unilateral)
        t->scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
}

static selkie_shape cells(double x0, double y0, double z0, double x1, double y1, double z1)
{
    return box_shape(x0 * CELL, y0 * CELL, z0 * CELL, x1 * CELL, y1 * CELL, z1 * CELL);
}

/* --- plates --- */

/* Particles behind the plane through `point` (cells) with the normal at `degrees` from y, and the mean distance before
 * it. */
static int64_t behind(const selkie_world *world, const double point[2], double degrees, double *mean)
{
    const double angle = degrees * 0.017453292519943295, n[2] = {-sin(angle), cos(angle)};
    const selkie_attribute_view position = attribute_of(world, "position");
    const int64_t count = selkie_world_particle_count(world);
    int64_t through = 0;
    *mean = 0.0;
    for (int64_t p = 0; p < count; p++) {
        const float *x = particle_of(&position, p);
        const double distance = (x[0] / CELL - point[0]) * n[0] + (x[1] / CELL - point[1]) * n[1];
        through += !(distance > 0.0);
        *mean += distance / (double)count;
    }
    return through;
}

/* A pool on a plate from wall to wall, level or tilted. Level: the mean height of the pool stays. */
static void plate(const variant *v, int dimension, double thickness, double degrees)
{
    const double middle[2] = {8.0, 10.55};
    const selkie_keyframe turned = {0.0, {0, 0, 0}, {0, 0, degrees}};
    char what[80];
    double before, after;
    test_scene t;
    start(&t, v, dimension, 16, 28, 6);
    add_liquid(&t, cells(0, 0, 0, 16, degrees > 0.0 ? 20 : 16.8, 6))->shape.min[1] =
        (degrees > 0.0 ? 15.5 : middle[1]) * CELL;
    selkie_obstacle_def *obstacle =
        add_obstacle(&t, cells(-14, middle[1] - 0.5 * thickness, -4, 30, middle[1] + 0.5 * thickness, 10));
    set3(obstacle->center, middle[0] * CELL, middle[1] * CELL, 3 * CELL);
    obstacle->keyframes = &turned;
    obstacle->keyframe_count = degrees > 0.0;
    selkie_world *world = make_world(&t);
    behind(world, middle, degrees, &before);
    run_until(world, 1.0);
    snprintf(what, sizeof what, "plate %dD %s, %g cells, %g degrees", dimension, v->name, thickness, degrees);
    at_most(what, "particles through", (double)behind(world, middle, degrees, &after), 0.0);
    if (degrees == 0.0 && !v->unilateral) /* its kernels do not know what a thin wall hides */
        at_most(what, "change of the mean height, cells", fabs(after - before), 0.2);
    selkie_world_destroy(world);
}

static void plates(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        plate(&variants[v], 2, 0.5, 0.0);
        plate(&variants[v], 2, 0.05, 0.0);
        plate(&variants[v], 2, 0.3, 20.0);
        plate(&variants[v], 2, 0.05, 20.0);
    }
    plate(&variants[1], 3, 0.5, 0.0);
    plate(&variants[1], 3, 0.1, 20.0);
}

/* --- a divider --- */

/* 12 cells of water on one side of a thin wall, 4 on the other. */
static void divider(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        const double at = 10.4, thickness = 0.3;
        test_scene t;
        start(&t, &variants[v], 2, 21, 20, 1);
        add_liquid(&t, cells(0, 0, 0, at, 12, 1));
        add_liquid(&t, cells(at, 0, 0, 21, 4, 1));
        add_obstacle(&t, cells(at - 0.5 * thickness, -4, -4, at + 0.5 * thickness, 30, 4));
        selkie_world *world = make_world(&t);
        int64_t count[2] = {0, 0}, crossed = 0;
        double height[2] = {0.0, 0.0};
        for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
            const selkie_attribute_view position = attribute_of(world, "position");
            count[particle_of(&position, p)[0] > at * CELL]++;
        }
        run_until(world, 1.0);
        const selkie_attribute_view position = attribute_of(world, "position");
        for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
            const float *x = particle_of(&position, p);
            const int side = x[0] > at * CELL;
            crossed += side;
            height[side] += x[1] / CELL / (double)count[side];
        }
        char what[80];
        snprintf(what, sizeof what, "divider 2D %s", variants[v].name);
        at_most(what, "particles that changed sides", fabs((double)(crossed - count[1])), 0.0);
        if (variants[v].unilateral) {
            selkie_world_destroy(world);
            continue;
        }
        between(what, "mean height, high side, cells", height[0], 5.8, 6.2);
        between(what, "mean height, low side, cells", height[1], 1.8, 2.2);
        selkie_world_destroy(world);
    }
}

/* --- a paddle --- */

static void paddle(const variant *v, int dimension, double thickness, double speed)
{
    test_scene t;
    start(&t, v, dimension, 48, dimension == 2 ? 24 : 16, 6);
    add_liquid(&t, cells(10, 0, 0, 20, 8, 6));
    add_obstacle(&t, cells(6.3 - thickness, -4, -4, 6.3, 40, 20))->velocity[0] = speed;
    selkie_world *world = make_world(&t);
    run_until(world, 24 * CELL / speed);
    const double front = 6.3 * CELL + speed * selkie_world_time(world);
    const selkie_attribute_view position = attribute_of(world, "position");
    int64_t left = 0;
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
        left += !(particle_of(&position, p)[0] > front);
    char what[80];
    snprintf(what, sizeof what, "paddle %dD %s, %g cells, %g m/s", dimension, v->name, thickness, speed);
    at_most(what, "particles in or behind it", (double)left, 0.0);
    note(what, "volume ratio", selkie_world_statistics(world)->volume_ratio);
    selkie_world_destroy(world);
}

static void paddles(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        paddle(&variants[v], 2, 2.0, 20.0);
        paddle(&variants[v], 2, 0.2, 2.0);
    }
    paddle(&variants[1], 3, 2.0, 20.0);
}

/* --- meshes --- */

static const char *write_mesh(const char *name, void (*write)(FILE *file, double size), double size)
{
    static char path[256];
    snprintf(path, sizeof path, "walls_%d_%s", (int)getpid(), name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    write(file, size);
    assert_int_equal(fclose(file), 0);
    return path;
}

static selkie_shape mesh_shape(const char *path)
{
    selkie_shape shape;
    selkie_shape_defaults(&shape, SELKIE_SHAPE_MESH);
    shape.file = path;
    return shape;
}

/* A sheet of no thickness, wider than the tank. */
static void write_sheet(FILE *file, double height)
{
    for (int corner = 0; corner < 4; corner++)
        fprintf(file, "v %g %g %g\n", (corner & 1 ? 20 : -8) * CELL, height * CELL, (corner & 2 ? 20 : -8) * CELL);
    fprintf(file, "f 1 2 4\nf 1 4 3\n");
}

static void sheet(void **state)
{
    (void)state;
    for (int v = 0; v < 2; v++) {
        const double middle[2] = {5.0, 10.8};
        const char *path = write_mesh("sheet.obj", write_sheet, middle[1]);
        double before, after;
        test_scene t;
        start(&t, &variants[v], 3, 10, 22, 10);
        add_liquid(&t, cells(0, middle[1], 0, 10, 16.8, 10));
        add_obstacle(&t, mesh_shape(path));
        selkie_world *world = make_world(&t);
        behind(world, middle, 0.0, &before);
        run_until(world, 0.5);
        char what[80];
        snprintf(what, sizeof what, "mesh sheet 3D %s", variants[v].name);
        at_most(what, "particles through", (double)behind(world, middle, 0.0, &after), 0.0);
        at_most(what, "change of the mean height, cells", fabs(after - before), 0.2);
        selkie_world_destroy(world);
        remove(path);
    }
}

static double cup_cell = CELL; /* m  of the scene of a cup */

/* A cup with 20 sides about the vertical through (12, 12) cells: radius 7, from 3 to 15, with a wall and a bottom. */
static void write_cup(FILE *file, double wall)
{
    enum { SIDES = 20 };
    const double ring[4][2] = {{7, 3}, {7, 15}, {7 - wall, 15}, {7 - wall, 3 + wall}};
    for (int r = 0; r < 4; r++)
        for (int n = 0; n < SIDES; n++)
            fprintf(file, "v %.9g %.9g %.9g\n", (12 + ring[r][0] * cos(n * 2 * 3.14159265358979 / SIDES)) * cup_cell,
                    ring[r][1] * cup_cell, (12 + ring[r][0] * sin(n * 2 * 3.14159265358979 / SIDES)) * cup_cell);
    fprintf(file, "v %.9g %.9g %.9g\n", 12 * cup_cell, 3 * cup_cell, 12 * cup_cell);
    fprintf(file, "v %.9g %.9g %.9g\n", 12 * cup_cell, (3 + wall) * cup_cell, 12 * cup_cell);
    for (int n = 0; n < SIDES; n++) {
        const int next = (n + 1) % SIDES;
        for (int r = 0; r < 3; r++) {
            const int a = r * SIDES + n + 1, b = r * SIDES + next + 1;
            fprintf(file, "f %d %d %d\nf %d %d %d\n", a, a + SIDES, b, b, a + SIDES, b + SIDES);
        }
        fprintf(file, "f %d %d %d\n", n + 1, next + 1, 4 * SIDES + 1);
        fprintf(file, "f %d %d %d\n", 3 * SIDES + next + 1, 3 * SIDES + n + 1, 4 * SIDES + 2);
    }
}

static void cup(const variant *v, double wall)
{
    const char *path = write_mesh("cup.obj", write_cup, wall);
    test_scene t;
    start(&t, v, 3, 24, 20, 24);
    set3(t.scene.domain.size, 24 * cup_cell, 20 * cup_cell, 24 * cup_cell);
    t.scene.domain.cell_size = cup_cell;
    selkie_shape fill;
    selkie_shape_defaults(&fill, SELKIE_SHAPE_CYLINDER);
    set3(fill.from, 12 * cup_cell, (3 + wall) * cup_cell, 12 * cup_cell);
    set3(fill.to, 12 * cup_cell, 11 * cup_cell, 12 * cup_cell);
    fill.radius = 6.9 * cos(3.14159265358979 / 20) * cup_cell - wall * cup_cell;
    add_liquid(&t, fill);
    add_obstacle(&t, mesh_shape(path));
    selkie_world *world = make_world(&t);
    const double before = sum_particles(world, NULL).position[1];
    run_until(world, 0.6);
    const double after = sum_particles(world, NULL).position[1];
    const selkie_attribute_view position = attribute_of(world, "position");
    int64_t out = 0;
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
        const float *x = particle_of(&position, p);
        out +=
            hypot(x[0] / cup_cell - 12, x[2] / cup_cell - 12) > 7.0 - 0.5 * wall || x[1] < (3 + 0.5 * wall) * cup_cell;
    }
    char what[80];
    snprintf(what, sizeof what, "mesh cup 3D %s, walls of %g cells", v->name, wall);
    at_most(what, "particles through", (double)out, 0.0);
    note(what, "volume ratio", selkie_world_statistics(world)->volume_ratio);
    /* At first there is a gap between the liquid and the 20 sides: a level lower by 0.2 cells. Walls of 0.5 cells have
     * the bottom in the centres of cells. */
    at_most(what, "change of the mean height, cells", fabs(after - before) / cup_cell, 0.2);
    selkie_world_destroy(world);
    remove(path);
}

/* A square cup of five boxes, from (5, 3.1) to (19, 15) cells. In a corner between its bottom and a side, the stands of
 * cells must leave two walls, and a line between two stands may cross the walls through surfaces at an angle. */
static void square_cup(const variant *v, double wall)
{
    const double low = 5, high = 19, bottom = 3.1, top = 15;
    selkie_shape sides[5] = {
        cells(low, bottom, low, high, bottom + wall, high), cells(low, bottom, low, low + wall, top, high),
        cells(high - wall, bottom, low, high, top, high), cells(low, bottom, low, high, top, low + wall),
        cells(low, bottom, high - wall, high, top, high)};
    selkie_shape whole;
    selkie_shape_defaults(&whole, SELKIE_SHAPE_UNION);
    whole.children = sides;
    whole.child_count = 5;
    test_scene t;
    start(&t, v, 3, 24, 20, 24);
    add_liquid(&t, cells(low + wall, bottom + wall, low + wall, high - wall, 11, high - wall));
    add_obstacle(&t, whole);
    selkie_world *world = make_world(&t);
    const double before = sum_particles(world, NULL).position[1];
    run_until(world, 0.3);
    const double after = sum_particles(world, NULL).position[1];
    char what[80];
    snprintf(what, sizeof what, "square cup 3D %s, walls of %g cells", v->name, wall);
    at_most(what, "change of the mean height, cells", fabs(after - before) / CELL, 0.05);
    selkie_world_destroy(world);
}

static void cups(void **state)
{
    (void)state;
    cup(&variants[1], 1.45);
    cup(&variants[1], 0.52);
    cup(&variants[1], 0.5);
    cup(&variants[0], 0.5);
    /* In cells of 1/32 m the bottom lies in the centres of cells to the last bit. Centres in the side walls lie in its
     * plane, and counted as outside: the level fell by 0.35 cells. */
    cup_cell = 1.0 / 32;
    cup(&variants[1], 0.5);
    cup_cell = CELL;
    square_cup(&variants[1], 0.48);
    square_cup(&variants[1], 0.52);
    square_cup(&variants[3], 0.52);
}

/* A 2D cup of thin walls and a box of a cell, a body or an obstacle, that falls beside it from `y`; all lengths in
 * cells. Returns the largest kinetic energy, J, and the fastest particle, m/s. */
static void fall_beside_cup(const variant *v, double left, double x, double y, int scripted, double most[2])
{
    const double wall = 0.48, right = left + 14, bottom = 3.1, top = 15;
    selkie_shape sides[3] = {cells(left, bottom, -99, right, bottom + wall, 99),
                             cells(left, bottom, -99, left + wall, top, 99),
                             cells(right - wall, bottom, -99, right, top, 99)};
    selkie_shape whole;
    selkie_shape_defaults(&whole, SELKIE_SHAPE_UNION);
    whole.children = sides;
    whole.child_count = 3;
    test_scene t;
    start(&t, v, 2, 28, 20, 1);
    t.scene.time.step = 0.001;
    add_liquid(&t, cells(left + wall, bottom + wall, 0, right - wall, 11, 1));
    add_obstacle(&t, whole);
    const selkie_shape box = cells(x, y, -9, x + 1, y + 1, 9);
    if (scripted)
        add_obstacle(&t, box)->velocity[1] = -0.5;
    else
        add_body(&t, box, 500);
    selkie_world *world = make_world(&t);
    most[0] = most[1] = 0.0;
    while (selkie_world_time(world) < 0.12) {
        step_world(world);
        most[0] = fmax(most[0], selkie_world_statistics(world)->kinetic_energy);
        most[1] = fmax(most[1], selkie_world_statistics(world)->max_speed);
    }
    selkie_world_destroy(world);
}

/* A body or a moving obstacle beside a thin wall changes nothing behind it: not what is liquid, nor how wide and how
 * fast faces are, nor which way they look. At 5 and 5.625 cells the wall ends on a face, and beyond centres of cells.
 */
static void bodies_beside_cups(void **state)
{
    (void)state;
    static const double lefts[3] = {5.0, 5.5, 5.625}, gaps[2] = {0.1, 0.5};
    for (int l = 0; l < 3; l++)
        for (int scripted = 0; scripted < 2; scripted++) {
            double far[2], near[2];
            char what[80];
            fall_beside_cup(&variants[1], lefts[l], 26.5, 8, scripted, far);
            for (int g = 0; g < 2; g++) {
                fall_beside_cup(&variants[1], lefts[l], lefts[l] + 14 + gaps[g], 8, scripted, near);
                snprintf(what, sizeof what, "%s %g cells beside a cup at %g", scripted ? "obstacle" : "body", gaps[g],
                         lefts[l]);
                at_most(what, "kinetic energy over that far away", near[0] / far[0], 1.1);
                at_most(what, "fastest particle over that far away", near[1] / far[1], 1.1);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(plates),  cmocka_unit_test(divider),
                                       cmocka_unit_test(paddles), cmocka_unit_test(sheet),
                                       cmocka_unit_test(cups),    cmocka_unit_test(bodies_beside_cups)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
