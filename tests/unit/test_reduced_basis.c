/* Bases of reduced fluids: files, snapshots, pictures of velocities, singular values. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reduced_scene.h"

#include "base/crc.h"
#include "base/timer.h"
#include "methods/reduced/basis_file.h"
#include "methods/reduced/data.h"
#include "methods/reduced/domain.h"
#include "methods/reduced/svd.h"
#include "world/world_internal.h"

#include "scratch_folder.h"

typedef struct fixture {
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_drawn_def drawn;
    selkie_stroke_def stroke;
    selkie_excite_def excite;
} fixture;

/* A drawn jet that is driven, beside a vortex of the start. */
static void make(fixture *f, int modes)
{
    selkie_scene *scene = &f->scene;
    reduced_defaults(scene, modes, 64);
    selkie_liquid_defaults(&f->liquid);
    selkie_shape_defaults(&f->liquid.shape, SELKIE_SHAPE_SPHERE);
    f->liquid.shape.center[0] = f->liquid.shape.center[1] = 0.4;
    f->liquid.shape.radius = 0.3;
    f->liquid.angular_velocity[2] = 2.0;
    selkie_stroke_defaults(&f->stroke);
    f->stroke.from[0] = 0.25;
    f->stroke.to[0] = 0.75;
    f->stroke.from[1] = f->stroke.to[1] = 0.5;
    selkie_drawn_defaults(&f->drawn);
    f->drawn.name = "jet";
    f->drawn.stroke_count = 1;
    f->drawn.strokes = &f->stroke;
    selkie_excite_defaults(&f->excite);
    f->excite.mode = "jet";
    scene->liquids = &f->liquid;
    scene->reduced.drawn = &f->drawn;
    scene->reduced.excite = &f->excite;
    scene->liquid_count = scene->reduced.drawn_count = scene->reduced.excite_count = 1;
}

static sk_reduced *reduced_of(selkie_world *world)
{
    return sk_step_state(&world->step, &sk_method_reduced);
}

/* Writes the basis of the scene as `selkie basis` does. */
static void write_basis(const fixture *f, const char *path)
{
    selkie_error error;
    selkie_world *world = create_world(&f->scene, 1);
    if (sk_basis_write(path, reduced_of(world), sk_reduced_obstacles(&world->step), &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    selkie_world_destroy(world);
}

/* --- Files --- */

/* The check value of CRC-32, and a block of odd length against single bytes. */
static void checksums(void **state)
{
    (void)state;
    assert_int_equal(sk_crc32("123456789", 9), 0xcbf43926);
    unsigned char block[1003];
    for (int n = 0; n < 1003; n++)
        block[n] = (unsigned char)(n * n >> 3);
    uint32_t crc = 0xffffffffu;
    for (int n = 0; n < 1003; n++) {
        crc ^= block[n];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    assert_int_equal(sk_crc32(block, sizeof block), ~crc);
}

/* A world with the file has the bits of one that made its basis. */
static void file_equals_basis(void **state)
{
    (void)state;
    fixture f;
    const char *path = in_root("jet.basis");
    make(&f, 63);
    selkie_world *made = create_world(&f.scene, 1);
    write_basis(&f, path);
    f.scene.reduced.drawn_count = 0;
    f.scene.reduced.modes = 7; /* the file decides */
    f.scene.reduced.basis = path;
    selkie_world *loaded = create_world(&f.scene, 2);
    run_world(made, 6);
    run_world(loaded, 6);
    assert_same_worlds(made, loaded);
    selkie_world_destroy(made);
    selkie_world_destroy(loaded);

    f.excite.mode = "stream";
    expect_refusal(&f.scene, "\"stream\" is not known");
}

static void change_byte(const char *path, long at)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, at, SEEK_SET);
    const int byte = fgetc(file);
    fseek(file, at, SEEK_SET);
    fputc(byte ^ 1, file);
    fclose(file);
}

/* Each kind of damage, and each misfit, has one message. */
static void bad_files(void **state)
{
    (void)state;
    fixture f;
    const char *path = in_root("bad.basis");
    make(&f, 20);
    write_basis(&f, path);
    f.scene.reduced.basis = path;
    expect_refusal(&f.scene, "reduced.drawn: stands beside basis");
    f.scene.reduced.drawn_count = 0;
    f.scene.domain.resolution = 60;
    expect_refusal(&f.scene, "60 x 60");
    f.scene.domain.resolution = 64;
    f.scene.reduced.periodic = SELKIE_PERIODIC_X;
    expect_refusal(&f.scene, "other sides");
    f.scene.reduced.periodic = SELKIE_PERIODIC_NONE;

    change_byte(path, 5000);
    expect_refusal(&f.scene, "is damaged: its checksum is wrong");
    change_byte(path, 5000);
    change_byte(path, 3);
    expect_refusal(&f.scene, "is no basis");
    change_byte(path, 3);
    FILE *file = fopen(path, "ab");
    fputc(0, file);
    fclose(file);
    expect_refusal(&f.scene, "is cut off");
    remove(path);
    expect_refusal(&f.scene, "cannot open");
}

/* A pillar at (at, at) m, and no drawn modes. */
static void put_pillar(fixture *f, selkie_obstacle_def *obstacle, double at)
{
    selkie_obstacle_defaults(obstacle);
    selkie_shape_defaults(&obstacle->shape, SELKIE_SHAPE_SPHERE);
    obstacle->shape.center[0] = obstacle->shape.center[1] = at;
    obstacle->shape.radius = 0.15;
    f->scene.obstacles = obstacle;
    f->scene.obstacle_count = 1;
    f->scene.reduced.drawn_count = f->scene.reduced.excite_count = 0;
}

/* Eigenvectors beside an obstacle: found once, then loaded. Other obstacles are refused. */
static void obstacles_from_a_file(void **state)
{
    (void)state;
    if (!sk_domain_available())
        skip();
    fixture f;
    selkie_obstacle_def obstacle;
    const char *path = in_root("room.basis");
    make(&f, 40);
    put_pillar(&f, &obstacle, 0.7);
    selkie_world *made = create_world(&f.scene, 1);
    write_basis(&f, path);
    f.scene.reduced.basis = path;
    const double begin = sk_wall_ms();
    selkie_world *loaded = create_world(&f.scene, 1);
    print_message("a world of 40 eigenvectors from a file: %.1f ms\n", sk_wall_ms() - begin);
    run_world(made, 4);
    run_world(loaded, 4);
    assert_same_worlds(made, loaded);
    selkie_world_destroy(made);
    selkie_world_destroy(loaded);
    obstacle.shape.radius = 0.2;
    expect_refusal(&f.scene, "other obstacles");
}

/* --- Snapshots --- */

/* A narrow jet whose place changes: 63 eigenfunctions miss half of it, three modes from its snapshots hold it. */
static void snapshots_become_modes(void **state)
{
    (void)state;
    enum { CELLS = 64, COUNT = 30 };
    fixture f;
    selkie_error error;
    sk_snapshot_report report;
    make(&f, 63);
    f.scene.reduced.drawn_count = f.scene.reduced.excite_count = 0;
    selkie_world *world = create_world(&f.scene, 1);
    double *fields = calloc((size_t)COUNT * 2 * CELLS * CELLS, sizeof *fields);
    for (int n = 0; n < COUNT; n++)
        for (int i = 0; i < CELLS; i++)
            for (int j = 0; j < CELLS; j++) {
                const double x = (i + 0.5) / CELLS, q = ((j + 0.5) / CELLS - 0.5) / 0.03, t = 0.2 * n;
                const double shape = exp(-q * q - pow((x - 0.5) / 0.25, 4));
                fields[(size_t)(2 * n) * CELLS * CELLS + (size_t)(i * CELLS + j)] =
                    shape * (cos(t) + 0.5 * sin(t) * q + 0.2 * sin(2.0 * t) * q * q);
            }
    const sk_snapshots snapshots = {.count = COUNT, .fields = fields, .most = 3, .cut = 1e-3};
    sk_reduced *reduced = reduced_of(world);
    const int before = reduced->spectrum.count;
    if (sk_reduced_add_snapshots(reduced, &world->step, &snapshots, &report, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    print_message("%d modes from %d snapshots: %.4f of the energy, %.4f without\n", report.modes, (int)COUNT,
                  report.kept, report.plain);
    assert_int_equal(report.modes, 3);
    assert_true(report.plain < 0.75 && report.kept > 0.999);

    /* The basis is orthonormal. */
    const sk_reduced_spectrum *s = &reduced->spectrum;
    const size_t middles = CELLS * CELLS;
    double *r = calloc((size_t)s->count, sizeof *r);
    for (int e = 0; e < report.modes; e++) {
        memset(r, 0, (size_t)s->count * sizeof *r);
        sk_reduced_project(&reduced->spectrum,
                           (const double *const[2]){s->extra.u + (size_t)e * middles, s->extra.v + (size_t)e * middles},
                           r, 1);
        for (int k = 0; k < s->count; k++)
            assert_true(fabs(r[k] - (k == before + e)) < 1e-9);
    }
    assert_string_equal(reduced->names[1], "data_2");
    free(r);

    /* Nothing moves: no mode. */
    memset(fields, 0, (size_t)COUNT * 2 * CELLS * CELLS * sizeof *fields);
    assert_int_equal(sk_reduced_add_snapshots(reduced, &world->step, &snapshots, &report, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "at rest"));
    free(fields);
    selkie_world_destroy(world);
}

/* Jets that go around a pillar: their part without divergence enters no cell of it, the modes hold them, and energy
 * stays in a run with these modes. */
static void snapshots_beside_obstacles(void **state)
{
    (void)state;
    enum { CELLS = 64, COUNT = 8 };
    if (!sk_domain_available())
        skip();
    fixture f;
    selkie_obstacle_def obstacle;
    selkie_error error;
    sk_snapshot_report report;
    const char *path = in_root("data.basis");
    make(&f, 24);
    put_pillar(&f, &obstacle, 0.5);
    f.scene.time.step = 0.01;
    selkie_world *world = create_world(&f.scene, 1);
    double *fields = calloc((size_t)COUNT * 2 * CELLS * CELLS, sizeof *fields);
    for (int n = 0; n < COUNT; n++)
        for (int i = 0; i < CELLS * CELLS; i++) {
            const double y = (i % CELLS + 0.5) / CELLS, q = (y - 0.25 - 0.06 * n) / 0.04;
            fields[(size_t)(2 * n) * CELLS * CELLS + (size_t)i] = exp(-q * q);
        }
    const sk_snapshots snapshots = {.count = COUNT, .fields = fields, .most = COUNT, .cut = 1e-4};
    sk_reduced *reduced = reduced_of(world);
    const int before = reduced->spectrum.count;
    if (sk_reduced_add_snapshots(reduced, &world->step, &snapshots, &report, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    print_message("%d modes from %d snapshots: %.6f of the energy, %.4f without\n", report.modes, (int)COUNT,
                  report.kept, report.plain);
    assert_true(report.modes == COUNT && report.plain < 0.9 && fabs(report.kept - 1.0) < 1e-9);

    /* The cell in the middle of the pillar. */
    const sk_reduced_extra *extra = &reduced->spectrum.extra;
    for (int e = before; e < reduced->spectrum.count; e++) {
        const size_t at = (size_t)e * CELLS * CELLS + CELLS / 2 * CELLS + CELLS / 2;
        assert_true(fabs(extra->u[at]) + fabs(extra->v[at]) + fabs(extra->omega[at]) < 1e-12);
    }
    assert_int_equal(sk_basis_write(path, reduced, sk_reduced_obstacles(&world->step), &error), SELKIE_OK);
    selkie_world_destroy(world);
    free(fields);

    /* A run that starts with one of them. */
    f.scene.reduced.basis = path;
    f.scene.reduced.excite_count = 1;
    f.excite.mode = "data_1";
    f.excite.end = 0.05;
    f.scene.viscosity = 0.0;
    world = create_world(&f.scene, 1);
    run_world(world, 6);
    const double energy = selkie_world_statistics(world)->kinetic_energy;
    run_world(world, 20);
    assert_true(energy > 0.0 && fabs(selkie_world_statistics(world)->kinetic_energy / energy - 1.0) < 1e-12);
    selkie_world_destroy(world);
}

/* Few columns by rotations and many by LAPACK: the same values, and the second matrix turns along. */
static void singular_values(void **state)
{
    (void)state;
    enum { ROWS = 200, MANY = 40, FEW = 20 };
    static double a[ROWS * MANY], b[ROWS * MANY], turned[ROWS * MANY], values[MANY], few[MANY];
    for (int columns = FEW; columns <= MANY; columns += MANY - FEW) {
        double whole = 0.0, sum = 0.0;
        for (int n = 0; n < ROWS * columns; n++) {
            a[n] = b[n] = turned[n] = sin(0.7 * n + 0.001 * n * n) * exp(-0.1 * (n / ROWS));
            whole += a[n] * a[n];
        }
        sk_svd_columns(a, ROWS, columns, values, turned, ROWS);
        for (int p = 0; p < columns; p++) {
            sum += values[p] * values[p];
            assert_true(p == 0 || values[p] <= values[p - 1] * (1.0 + 1e-12));
            for (int n = 0; n < ROWS; n++)
                assert_true(fabs(a[p * ROWS + n] - turned[p * ROWS + n]) < 1e-10);
        }
        assert_true(fabs(sum / whole - 1.0) < 1e-12);
        if (columns == FEW)
            memcpy(few, values, sizeof few);
    }
    assert_true(values[0] >= few[0]); /* more columns of the same matrix */
}

/* --- Pictures --- */

/* A picture of a jet, red to the right, is worth its strokes. */
static void picture_of_velocities(void **state)
{
    (void)state;
    enum { SIDE = 128 };
    fixture f;
    const char *path = in_root("jet.ppm");
    FILE *file = fopen(path, "wb");
    fprintf(file, "P6\n# a jet\n%d %d\n255\n", SIDE, SIDE);
    for (int row = 0; row < SIDE; row++)
        for (int column = 0; column < SIDE; column++) {
            const double x = (column + 0.5) / SIDE, y = 1.0 - (row + 0.5) / SIDE;
            const double to = fmin(fmax(x, 0.25), 0.75), q = hypot(x - to, y - 0.5) / 0.05;
            const double weight = q < 1.0 ? (1.0 - q * q) * (1.0 - q * q) : 0.0;
            fputc((int)lround(127.5 + 127.5 * weight), file);
            fputc(127, file);
            fputc(0, file);
        }
    fclose(file);
    double energy[2];
    for (int n = 0; n < 2; n++) {
        make(&f, 63);
        f.liquid.angular_velocity[2] = 0.0;
        f.scene.time.step = 0.001;
        if (n) {
            f.drawn.stroke_count = 0;
            f.drawn.picture = path;
        }
        selkie_world *world = create_world(&f.scene, 1);
        run_world(world, 1);
        energy[n] = selkie_world_statistics(world)->kinetic_energy;
        selkie_world_destroy(world);
    }
    print_message("energy of the picture %.4f of the strokes\n", energy[1] / energy[0]);
    assert_true(fabs(energy[1] / energy[0] - 1.0) < 0.02); /* 8 bits a channel */

    f.drawn.picture = "no_such_file.png";
    expect_refusal(&f.scene, "reduced.drawn[0].picture: cannot open");
    f.drawn.picture = "";
    expect_refusal(&f.scene, "needs at least one stroke, or a picture");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums),
        cmocka_unit_test(file_equals_basis),
        cmocka_unit_test(bad_files),
        cmocka_unit_test(obstacles_from_a_file),
        cmocka_unit_test(snapshots_become_modes),
        cmocka_unit_test(snapshots_beside_obstacles),
        cmocka_unit_test(singular_values),
        cmocka_unit_test(picture_of_velocities),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
