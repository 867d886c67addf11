/* Solids on the grid against exact values: planes, spheres, walls, what moves and what does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grid/solids.h"

typedef struct stage {
    selkie_scene scene;
    selkie_obstacle_def obstacles[3];
    selkie_keyframe keys[3];
    sk_grid grid;
    sk_particles particles;
    sk_solids solids;
} stage;

static void begin(stage *s, int dimension, const int cells[3], double cell_size, const double low[3], selkie_wall wall)
{
    memset(s, 0, sizeof *s);
    selkie_scene_defaults(&s->scene);
    s->scene.domain.dimension = dimension;
    s->scene.domain.cell_size = cell_size;
    for (int d = 0; d < 3; d++) {
        s->scene.domain.origin[d] = low[d];
        s->scene.domain.size[d] = cells[d] * cell_size;
        s->scene.domain.walls[2 * d] = s->scene.domain.walls[2 * d + 1] = wall;
    }
    s->scene.obstacles = s->obstacles;
    for (int o = 0; o < 3; o++)
        selkie_obstacle_defaults(&s->obstacles[o]);
    assert_int_equal(sk_grid_init(&s->grid, dimension, cells, low, cell_size, NULL, NULL), SELKIE_OK);
}

static void update(stage *s, double time, int threads)
{
    sk_solids_move(&s->solids, time);
    assert_int_equal(s->grid.dimension == 2 ? sk_solids_update_2d(&s->solids, &s->grid, threads, NULL)
                                            : sk_solids_update_3d(&s->solids, &s->grid, threads, NULL),
                     SELKIE_OK);
}

/* Particles in every fourth cell, so that all blocks of the domain exist; then the solids, not yet computed. */
static void fill(stage *s)
{
    const sk_grid *grid = &s->grid;
    sk_particles_init(&s->particles, NULL);
    for (int k = 0; k < grid->cells[2]; k += 4)
        for (int j = 0; j < grid->cells[1]; j += 4)
            for (int i = 0; i < grid->cells[0]; i += 4) {
                assert_int_equal(sk_particles_reserve(&s->particles, s->particles.count + 1, NULL), SELKIE_OK);
                const double cell[3] = {i + 0.5, j + 0.5, k + 0.5}, v[3] = {0, 0, 0};
                double x[3] = {0, 0, 0};
                for (int d = 0; d < grid->dimension; d++)
                    x[d] = grid->low[d] + cell[d] * grid->cell_size;
                sk_particles_append(&s->particles, x, v);
            }
    assert_int_equal(grid->dimension == 2 ? sk_grid_sort_2d(&s->grid, &s->particles, 2, NULL)
                                          : sk_grid_sort_3d(&s->grid, &s->particles, 2, NULL),
                     SELKIE_OK);
    assert_int_equal(sk_solids_init(&s->solids, &s->scene, &s->grid, NULL, NULL), SELKIE_OK);
}

static void ready(stage *s, int threads)
{
    fill(s);
    update(s, 0.0, threads);
}

static void end(stage *s)
{
    sk_solids_free(&s->solids);
    sk_particles_free(&s->particles);
    sk_grid_free(&s->grid);
}

/* Index of a cell of the domain in the fields of the solids. */
static size_t index_of(const stage *s, int i, int j, int k)
{
    const sk_grid *grid = &s->grid;
    const int at[3] = {i + grid->padding[0], j + grid->padding[1], k + grid->padding[2]};
    int slot;
    const size_t local = sk_grid_find_cell(grid, at, &slot);
    assert_true(slot > 0);
    return (size_t)s->solids.block_slot[slot] * (size_t)grid->block_cells + local;
}

static float fraction(const stage *s, int d, int i, int j, int k)
{
    return s->solids.fraction[d][index_of(s, i, j, k)];
}

static void close_to(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        print_error("%.9g is not %.9g (+- %g)\n", value, expected, tolerance);
    assert_true(fabs(value - expected) <= tolerance);
}

static double snapped(double open)
{
    return open < 0.1 ? 0.0 : open > 0.99 ? 1.0 : open;
}

/* Fractions next to the snap may fall to either side of it. */
static void fraction_close_to(double value, double open, double tolerance)
{
    if (fabs(open - 0.1) > tolerance && fabs(open - 0.99) > tolerance)
        close_to(value, snapped(open), tolerance);
    else
        close_to(value, open, 0.011);
}

#define FOR_CELLS(s)                                                                                                   \
    for (int k = 0; k < (s)->grid.cells[2]; k++)                                                                       \
        for (int j = 0; j < (s)->grid.cells[1]; j++)                                                                   \
            for (int i = 0; i < (s)->grid.cells[0]; i++)

static const int shape_2d[3] = {37, 30, 1}, shape_3d[3] = {21, 14, 18};
static const double origin[3] = {-0.37, 1.21, 0.0};

static void without_solids_all_is_open(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        stage s;
        begin(&s, dimension, dimension == 2 ? shape_2d : shape_3d, 0.07, origin, SELKIE_WALL_OPEN);
        ready(&s, 2);
        assert_int_equal(s.solids.slot_count, 1);
        for (int b = 0; b < s.grid.block_count; b++)
            assert_int_equal(s.solids.block_slot[b], 0);
        FOR_CELLS(&s)
        {
            size_t c = index_of(&s, i, j, k);
            for (int d = 0; d < dimension; d++)
                assert_true(s.solids.fraction[d][c] == 1.0f);
            assert_true(s.solids.blurred[c] == 0.0f);
            assert_true(s.solids.distance[c] > 1e6f);
        }
        double normal[3];
        int obstacle;
        const double x[3] = {0, 1.5, 0.3};
        assert_true(isinf(sk_solids_distance(&s.solids, x, normal, &obstacle)));
        assert_int_equal(obstacle, -1);
        end(&s);
    }
}

/* Faces in a closed wall are closed exactly, the ones inside are open exactly, whatever rounding does to the places. */
static void walls_are_closed_exactly(void **state)
{
    (void)state;
    static const double sizes[] = {0.1, 1.0 / 3.0, 0.0123, 7.0, 1e-3};
    static const double origins[][3] = {{0, 0, 0}, {0.1, -0.3, 0.7}, {-123.456, 77.7, 1000.1}};
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int n = 0; n < 5; n++)
            for (int open_side = -1; open_side < 2 * dimension; open_side += 2) {
                stage s;
                const int *cells = dimension == 2 ? shape_2d : shape_3d;
                double low[3] = {origins[n % 3][0], origins[n % 3][1], dimension == 3 ? origins[n % 3][2] : 0.0};
                begin(&s, dimension, cells, sizes[n], low, SELKIE_WALL_FREE_SLIP);
                if (open_side >= 0)
                    s.scene.domain.walls[open_side] = SELKIE_WALL_OPEN;
                ready(&s, 2);
                for (int d = 0; d < dimension; d++)
                    for (int k = 0; k < cells[2] + (d == 2); k++)
                        for (int j = 0; j < cells[1] + (d == 1); j++)
                            for (int i = 0; i < cells[0] + (d == 0); i++) {
                                const int at[3] = {i, j, k};
                                int side = at[d] == 0 ? 2 * d : at[d] == cells[d] ? 2 * d + 1 : -1;
                                float expected = side >= 0 && side != open_side ? 0.0f : 1.0f;
                                assert_true(fraction(&s, d, i, j, k) == expected);
                            }
                /* A wall takes the eighth of the hat that lies behind it. */
                if (open_side < 0) {
                    double middle = s.solids.blurred[index_of(&s, 0, 10, dimension == 3 ? 9 : 0)];
                    close_to(middle, 0.125, 1e-4);
                    close_to(s.solids.blurred[index_of(&s, 5, 10, dimension == 3 ? 9 : 0)], 0.0, 1e-6);
                    close_to(s.solids.distance[index_of(&s, 2, 10, dimension == 3 ? 9 : 0)], 2.5, 1e-3);
                    double corner = 1.0 - pow(0.875, dimension);
                    close_to(s.solids.blurred[index_of(&s, 0, 0, 0)], corner, 1e-4);
                }
                end(&s);
            }
}

/* Part of the unit square where a + b x + c y >= 0, by cutting the polygon. */
static double open_square(double a, double b, double c)
{
    double polygon[8][2] = {{0, 0}, {1, 0}, {1, 1}, {0, 1}}, cut[8][2];
    int count = 4, kept = 0;
    for (int n = 0; n < count; n++) {
        const double *p = polygon[n], *q = polygon[(n + 1) % count];
        double at_p = a + b * p[0] + c * p[1], at_q = a + b * q[0] + c * q[1];
        if (at_p >= 0.0) {
            cut[kept][0] = p[0];
            cut[kept++][1] = p[1];
        }
        if (at_p * at_q < 0.0) {
            double t = at_p / (at_p - at_q);
            cut[kept][0] = p[0] + t * (q[0] - p[0]);
            cut[kept++][1] = p[1] + t * (q[1] - p[1]);
        }
    }
    double area = 0.0;
    for (int n = 0; n < kept; n++)
        area += 0.5 * (cut[n][0] * cut[(n + 1) % kept][1] - cut[(n + 1) % kept][0] * cut[n][1]);
    return area;
}

static double open_segment(double a, double b)
{
    double at_end = a + b;
    if (a <= 0.0 && at_end <= 0.0)
        return 0.0;
    if (a >= 0.0 && at_end >= 0.0)
        return 1.0;
    return a > 0.0 ? a / (a - at_end) : at_end / (at_end - a);
}

/* The hat's share of a half space whose face lies t cells above the centre, across an axis. */
static double hat_below(double t)
{
    if (t <= -1.0)
        return 0.0;
    if (t >= 1.0)
        return 1.0;
    return t < 0.0 ? 0.5 * (1.0 + t) * (1.0 + t) : 1.0 - 0.5 * (1.0 - t) * (1.0 - t);
}

/* The same for any plane: the kernel's share by sums over a fine lattice. */
static double hat_inside(int dimension, const double normal[3], double distance)
{
    const int fine = dimension == 2 ? 64 : 36;
    double inside = 0.0, all = 0.0;
    for (int n = 0; n < (dimension == 3 ? fine * fine * fine : fine * fine); n++) {
        const int at[3] = {n % fine, n / fine % fine, n / fine / fine};
        double weight = 1.0, there = distance;
        for (int d = 0; d < dimension; d++) {
            double x = (at[d] + 0.5) * 2.0 / fine - 1.0;
            weight *= 1.0 - fabs(x);
            there += normal[d] * x;
        }
        all += weight;
        inside += there < 0.0 ? weight : 0.0;
    }
    return inside / all;
}

static void check_plane(int dimension, const double direction[3], double offset)
{
    stage s;
    const double h = 0.07;
    const int *cells = dimension == 2 ? shape_2d : shape_3d;
    begin(&s, dimension, cells, h, origin, SELKIE_WALL_OPEN);
    s.scene.obstacle_count = 1;
    selkie_shape *shape = &s.obstacles[0].shape;
    selkie_shape_defaults(shape, SELKIE_SHAPE_HALF_SPACE);
    double length = 0.0, normal[3] = {0, 0, 0};
    for (int d = 0; d < dimension; d++)
        length += direction[d] * direction[d];
    for (int d = 0; d < 3; d++) {
        normal[d] = d < dimension ? direction[d] / sqrt(length) : 0.0;
        shape->normal[d] = direction[d];
        shape->point[d] = d < dimension ? origin[d] + 0.5 * cells[d] * h + offset * h * normal[d] : 0.0;
    }
    ready(&s, 2);
    int aligned = 0;
    for (int d = 0; d < dimension; d++)
        aligned |= fabs(normal[d]) == 1.0;
    FOR_CELLS(&s)
    {
        size_t c = index_of(&s, i, j, k);
        const int at[3] = {i, j, k};
        double corner = 0.0, centre = 0.0; /* distances in cells */
        for (int d = 0; d < dimension; d++) {
            corner += normal[d] * (origin[d] + at[d] * h - shape->point[d]) / h;
            centre += 0.5 * normal[d];
        }
        centre += corner;
        if (fabs(centre) < 1.0)
            close_to(s.solids.distance[c], centre, 1e-4);
        for (int d = 0; d < dimension; d++) {
            int a = (d + 1) % 3, b = (d + 2) % 3;
            double open =
                dimension == 2 ? open_segment(corner, normal[1 - d]) : open_square(corner, normal[a], normal[b]);
            if (fabs(normal[d]) == 1.0 && fabs(corner) < 1e-6)
                open = 0.0; /* a face in the solid's surface is closed */
            fraction_close_to(s.solids.fraction[d][c], open, 4e-4);
        }
        if (aligned && fabs(centre) < 2.0) {
            double share = hat_below(-centre), twice = 2.0 * centre;
            close_to(s.solids.blurred[c], share, fabs(twice - round(twice)) < 1e-9 ? 1e-4 : 1.0 / 32 + 1e-4);
        } else if (fabs(centre) < 2.0 && (i + 3 * j + 7 * k) % (dimension == 2 ? 5 : 41) == 0) {
            close_to(s.solids.blurred[c], hat_inside(dimension, normal, centre),
                     0.045); /* as far as half cells can know */
        }
    }
    end(&s);
}

static void planes_across_the_axes(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int d = 0; d < dimension; d++)
            for (int sign = -1; sign <= 1; sign += 2)
                for (int n = 0; n < 5; n++) {
                    static const double offsets[] = {0.0, 0.5, 0.25, 0.33, -0.81};
                    double normal[3] = {0, 0, 0};
                    normal[d] = sign;
                    check_plane(dimension, normal, offsets[n]);
                }
}

static void tilted_planes(void **state)
{
    (void)state;
    static const double normals[][3] = {
        {1, 1, 0.5}, {0.3, -1, 0.2}, {-1, 0.05, 0.8}, {-0.6, -0.7, -1}, {1, 0.5, -0.25}};
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int n = 0; n < 5; n++)
            check_plane(dimension, normals[n], 0.13 * n);
}

static void put_ball(selkie_obstacle_def *obstacle, double x, double y, double z, double radius)
{
    selkie_shape_defaults(&obstacle->shape, SELKIE_SHAPE_SPHERE);
    obstacle->shape.center[0] = x;
    obstacle->shape.center[1] = y;
    obstacle->shape.center[2] = z;
    obstacle->shape.radius = radius;
}

/* The blurred shares sum to the volume, and so do the closed parts of the faces of each axis. */
static void spheres_have_their_volume(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int n = 0; n < 4; n++) {
            stage s;
            const double low[3] = {0, 0, 0}, h = 0.1, radius = 0.35 + 0.11 * n;
            const int cells[3] = {24, 25, dimension == 3 ? 26 : 1};
            begin(&s, dimension, cells, h, low, SELKIE_WALL_OPEN);
            s.scene.obstacle_count = 1;
            put_ball(&s.obstacles[0], 1.2 + 0.013 * n, 1.23, dimension == 3 ? 1.29 : 0.0, radius);
            ready(&s, 2);
            double blurred = 0.0, faces[3] = {0, 0, 0},
                   volume = dimension == 2 ? M_PI * pow(radius / h, 2) : 4.0 / 3.0 * M_PI * pow(radius / h, 3);
            FOR_CELLS(&s)
            {
                size_t c = index_of(&s, i, j, k);
                blurred += s.solids.blurred[c];
                for (int d = 0; d < dimension; d++)
                    faces[d] += 1.0 - s.solids.fraction[d][c];
            }
            close_to(blurred, volume, 0.02 * volume);
            for (int d = 0; d < dimension; d++)
                close_to(faces[d], volume, 0.02 * volume);
            end(&s);
        }
}

/* A moving ball makes the same fractions as one that stands there, and gives its faces its velocity; behind it the way
 * is open again. */
static void moving_solids_are_where_they_are(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        stage moving;
        const double low[3] = {0, 0, 0}, h = 0.1;
        const int cells[3] = {40, 24, dimension == 3 ? 20 : 1};
        begin(&moving, dimension, cells, h, low, SELKIE_WALL_FREE_SLIP);
        moving.scene.obstacle_count = 2;
        double z = dimension == 3 ? 1.0 : 0.0;
        put_ball(&moving.obstacles[0], 1.0, 1.2, z, 0.45);
        moving.obstacles[0].velocity[0] = 1.5;
        moving.obstacles[0].velocity[1] = -0.2;
        moving.obstacles[0].surface = SELKIE_WALL_NO_SLIP;
        put_ball(&moving.obstacles[1], 3.2, 1.7, z, 0.3); /* stands */
        ready(&moving, 2);
        for (int n = 0; n < 4; n++) {
            double time = 0.45 * n;
            update(&moving, time, 1 + n);
            stage still;
            begin(&still, dimension, cells, h, low, SELKIE_WALL_FREE_SLIP);
            still.scene.obstacle_count = 2;
            put_ball(&still.obstacles[0], 1.0 + 1.5 * time, 1.2 - 0.2 * time, z, 0.45);
            put_ball(&still.obstacles[1], 3.2, 1.7, z, 0.3);
            ready(&still, 1);
            int touched = 0;
            FOR_CELLS(&moving)
            {
                size_t c = index_of(&moving, i, j, k), there = index_of(&still, i, j, k);
                close_to(moving.solids.blurred[c], still.solids.blurred[there], 1e-5);
                int slot = (int)(c / (size_t)moving.grid.block_cells);
                for (int d = 0; d < dimension; d++) {
                    fraction_close_to(moving.solids.fraction[d][c], still.solids.fraction[d][there], 1e-4);
                    double x[3] = {(i + (d == 0 ? 0.0 : 0.5)) * h, (j + (d == 1 ? 0.0 : 0.5)) * h,
                                   dimension == 3 ? (k + (d == 2 ? 0.0 : 0.5)) * h : 0.0};
                    double normal[3];
                    int owner;
                    sk_solids_distance(&moving.solids, x, normal, &owner);
                    float v = (size_t)slot >= moving.solids.static_count || moving.solids.velocity[d]
                                  ? moving.solids.velocity[d][c]
                                  : 0.0f;
                    if (moving.solids.fraction[d][c] == 1.0f || owner != 0)
                        assert_true(v == 0.0f);
                    else {
                        close_to(v, moving.obstacles[0].velocity[d], 1e-6);
                        touched++;
                    }
                }
                if (moving.solids.distance[c] < -0.5f && (i + 0.5) * h < 2.5 + time &&
                    moving.solids.distance[c] > -4.0f) {
                    double at[3] = {(i + 0.5) * h, (j + 0.5) * h, dimension == 3 ? (k + 0.5) * h : 0.0}, normal[3];
                    int owner;
                    sk_solids_distance(&moving.solids, at, normal, &owner);
                    assert_int_equal(moving.solids.no_slip[c], owner == 0);
                }
            }
            assert_true(touched > 20);
            end(&still);
        }
        end(&moving);
    }
}

/* A turning bar: the velocity at its faces is omega x r, about a centre that moves along. */
static void turning_solids_turn(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        stage s;
        const double low[3] = {0, 0, 0}, h = 0.1, omega = 2.0, time = 0.3;
        const int cells[3] = {30, 30, dimension == 3 ? 12 : 1};
        begin(&s, dimension, cells, h, low, SELKIE_WALL_FREE_SLIP);
        s.scene.obstacle_count = 1;
        selkie_shape_defaults(&s.obstacles[0].shape, SELKIE_SHAPE_BOX);
        static const double from[3] = {0.8, 1.25, 0.3}, to[3] = {2.0, 1.75, 0.9}, centre[3] = {1.4, 1.5, 0.6};
        memcpy(s.obstacles[0].shape.min, from, sizeof from);
        memcpy(s.obstacles[0].shape.max, to, sizeof to);
        memcpy(s.obstacles[0].center, centre, sizeof centre);
        s.obstacles[0].velocity[0] = 0.5;
        s.obstacles[0].angular_velocity[2] = omega;
        ready(&s, 2);
        update(&s, time, 2);
        int touched = 0;
        FOR_CELLS(&s)
        {
            size_t c = index_of(&s, i, j, k);
            for (int d = 0; d < dimension; d++) {
                double x = (i + (d == 0 ? 0.0 : 0.5)) * h - 1.4 - 0.5 * time, y = (j + (d == 1 ? 0.0 : 0.5)) * h - 1.5;
                const double expected[3] = {0.5 - omega * y, omega * x, 0.0};
                int inner = i > 2 && i < 27 && j > 2 && j < 27 && (dimension == 2 || (k > 2 && k < 9));
                if (!inner || s.solids.fraction[d][c] > 0.5f)
                    continue;
                close_to(s.solids.velocity[d][c], expected[d], 1e-5);
                touched++;
            }
            /* Turned by 0.6 rad: a point of the bar's frame is inside. */
            double x = (i + 0.5) * h - 1.4 - 0.5 * time, y = (j + 0.5) * h - 1.5;
            double u = cos(0.6) * x + sin(0.6) * y, v = -sin(0.6) * x + cos(0.6) * y;
            double box = fmax(fabs(u) - 0.6, fabs(v) - 0.25) / h;
            if (dimension == 2 && fabs(box) < 1.0)
                assert_true((s.solids.distance[c] < 0.0f) == (box < 0.0) || fabs(box) < 1e-3);
        }
        assert_true(touched > 50);
        end(&s);
    }
}

/* An obstacle that was put somewhere by a single key stands there. */
static void one_key_places_an_obstacle(void **state)
{
    (void)state;
    for (int keys = 1; keys <= 2; keys++) {
        stage s;
        const double low[3] = {0, 0, 0}, h = 0.1;
        const int cells[3] = {30, 20, 1};
        begin(&s, 2, cells, h, low, SELKIE_WALL_FREE_SLIP);
        s.scene.obstacle_count = 1;
        put_ball(&s.obstacles[0], 0.5, 0.5, 0.0, 0.3);
        for (int n = 0; n < keys; n++) {
            s.keys[n].time = n;
            s.keys[n].translate[0] = 1.5;
            s.keys[n].translate[1] = 0.5;
        }
        s.obstacles[0].keyframes = s.keys;
        s.obstacles[0].keyframe_count = keys; /* the second is the same as the first */
        ready(&s, 2);
        double normal[3];
        int obstacle;
        const double was[3] = {0.5, 0.5, 0.0}, is[3] = {2.0, 1.0, 0.0};
        close_to(sk_solids_distance(&s.solids, is, normal, &obstacle), -0.3, 1e-9);
        assert_int_equal(obstacle, 0);
        close_to(sk_solids_distance(&s.solids, was, normal, &obstacle), 0.5, 1e-9);
        assert_int_equal(obstacle, -1);
        assert_true(fraction(&s, 0, 20, 10, 0) == 0.0f);
        assert_true(fraction(&s, 0, 5, 5, 0) == 1.0f);
        assert_true(s.solids.blurred[index_of(&s, 20, 10, 0)] > 0.99f);
        end(&s);
    }
}

static void keyframes_move_and_stop(void **state)
{
    (void)state;
    stage s;
    const double low[3] = {0, 0, 0}, h = 0.1;
    const int cells[3] = {30, 20, 1};
    begin(&s, 2, cells, h, low, SELKIE_WALL_OPEN);
    s.scene.obstacle_count = 1;
    put_ball(&s.obstacles[0], 0.5, 0.5, 0.0, 0.3);
    s.keys[1].time = 2.0;
    s.keys[1].translate[0] = 1.0;
    s.obstacles[0].keyframes = s.keys;
    s.obstacles[0].keyframe_count = 2;
    ready(&s, 2);
    double velocity[3];
    const double x[3] = {1.0, 0.5, 0.0};
    update(&s, 1.0, 2);
    sk_solids_velocity(&s.solids, 0, x, velocity);
    close_to(velocity[0], 0.5, 1e-12);
    assert_true(fraction(&s, 0, 10, 5, 0) == 0.0f);
    close_to(s.solids.velocity[0][index_of(&s, 10, 5, 0)], 0.5, 1e-6);
    update(&s, 3.0, 2); /* held at the last key */
    sk_solids_velocity(&s.solids, 0, x, velocity);
    close_to(velocity[0], 0.0, 0.0);
    assert_true(fraction(&s, 0, 15, 5, 0) == 0.0f);
    assert_true(fraction(&s, 0, 10, 5, 0) == 1.0f);
    assert_true(s.solids.velocity[0][index_of(&s, 15, 5, 0)] == 0.0f);
    end(&s);
}

static void distance_knows_walls_and_obstacles(void **state)
{
    (void)state;
    stage s;
    const double low[3] = {0, 0, 0}, h = 0.1;
    const int cells[3] = {30, 20, 10};
    begin(&s, 3, cells, h, low, SELKIE_WALL_FREE_SLIP);
    s.scene.domain.walls[3] = SELKIE_WALL_OPEN;
    s.scene.obstacle_count = 1;
    put_ball(&s.obstacles[0], 1.5, 1.0, 0.5, 0.3);
    ready(&s, 2);
    static const struct {
        double x[3], distance, normal[3];
        int obstacle;
    } cases[] = {
        {{0.1, 1.0, 0.5}, 0.1, {1, 0, 0}, -1},    {{2.95, 1.0, 0.5}, 0.05, {-1, 0, 0}, -1},
        {{0.7, 0.02, 0.5}, 0.02, {0, 1, 0}, -1},  {{0.7, 1.99, 0.1}, 0.1, {0, 0, 1}, -1},
        {{0.7, 1.0, 0.97}, 0.03, {0, 0, -1}, -1}, {{1.85, 1.0, 0.5}, 0.05, {1, 0, 0}, 0},
        {{1.5, 1.25, 0.5}, -0.05, {0, 1, 0}, 0},  {{-0.2, 1.0, 0.5}, -0.2, {1, 0, 0}, -1},
    };
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        double normal[3], velocity[3] = {1, 1, 1};
        int obstacle;
        close_to(sk_solids_distance(&s.solids, cases[n].x, normal, &obstacle), cases[n].distance, 1e-12);
        assert_int_equal(obstacle, cases[n].obstacle);
        for (int d = 0; d < 3; d++)
            close_to(normal[d], cases[n].normal[d], 1e-12);
        sk_solids_velocity(&s.solids, obstacle, cases[n].x, velocity);
        assert_true(velocity[0] == 0.0 && velocity[1] == 0.0 && velocity[2] == 0.0);
    }
    end(&s);
}

static void no_slip_is_that_of_the_nearest(void **state)
{
    (void)state;
    stage s;
    const double low[3] = {0, 0, 0}, h = 0.1;
    const int cells[3] = {30, 20, 1};
    begin(&s, 2, cells, h, low, SELKIE_WALL_FREE_SLIP);
    s.scene.domain.walls[2] = SELKIE_WALL_NO_SLIP;
    s.scene.obstacle_count = 1;
    put_ball(&s.obstacles[0], 1.5, 1.2, 0.0, 0.3);
    s.obstacles[0].surface = SELKIE_WALL_NO_SLIP;
    ready(&s, 2);
    assert_int_equal(s.solids.no_slip[index_of(&s, 5, 0, 0)], 1);
    assert_int_equal(s.solids.no_slip[index_of(&s, 0, 8, 0)], 0);
    assert_int_equal(s.solids.no_slip[index_of(&s, 29, 8, 0)], 0);
    assert_int_equal(s.solids.no_slip[index_of(&s, 15, 8, 0)], 1);
    assert_int_equal(s.solids.no_slip[index_of(&s, 15, 19, 0)], 0);
    end(&s);
}

/* Where the memory ends in the middle, the next try finds nothing half-made. */
static void out_of_memory_is_an_error(void **state)
{
    (void)state;
    int failures = 0;
    for (size_t room = 1000;; room = room * 3 / 2) {
        stage s;
        sk_memory memory = {0, 0, 0};
        const double low[3] = {0, 0, 0};
        const int cells[3] = {30, 20, 16};
        begin(&s, 3, cells, 0.1, low, SELKIE_WALL_FREE_SLIP);
        s.scene.obstacle_count = 2;
        put_ball(&s.obstacles[0], 1.5, 1.0, 0.8, 0.3);
        s.obstacles[0].velocity[0] = 0.1;
        put_ball(&s.obstacles[1], 0.5, 1.0, 0.8, 0.3);
        ready(&s, 2);
        sk_solids_free(&s.solids);
        assert_int_equal(sk_solids_init(&s.solids, &s.scene, &s.grid, &memory, NULL), SELKIE_OK);
        memory.limit = memory.used + room;
        selkie_error error = {0};
        selkie_code code = sk_solids_update_3d(&s.solids, &s.grid, 2, &error);
        if (code != SELKIE_OK) {
            failures++;
            assert_int_equal(code, SELKIE_ERROR_MEMORY);
            assert_non_null(strstr(error.message, "solids"));
            memory.limit = 0;
            update(&s, 0.0, 2);
        }
        assert_true(fraction(&s, 0, 0, 10, 8) == 0.0f && fraction(&s, 0, 9, 10, 8) == 1.0f);
        assert_true(fraction(&s, 0, 5, 10, 8) == 0.0f && fraction(&s, 0, 15, 10, 8) == 0.0f);
        end(&s);
        assert_int_equal(memory.used, 0);
        if (code == SELKIE_OK)
            break;
    }
    assert_true(failures > 3);
}

static void the_same_bits_on_any_number_of_threads(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3, 7};
    stage s[4];
    for (int n = 0; n < 4; n++) {
        const double low[3] = {0, 0, 0};
        const int cells[3] = {30, 28, 20};
        begin(&s[n], 3, cells, 0.1, low, SELKIE_WALL_FREE_SLIP);
        s[n].scene.obstacle_count = 2;
        put_ball(&s[n].obstacles[0], 1.0, 1.2, 1.0, 0.45);
        s[n].obstacles[0].velocity[0] = 1.5;
        put_ball(&s[n].obstacles[1], 2.2, 1.7, 1.0, 0.3);
        ready(&s[n], threads[n]);
        update(&s[n], 0.3, threads[n]);
        assert_int_equal(s[n].solids.slot_count, s[0].solids.slot_count);
        /* Slot 0 is made of constants; the rest is computed. */
        size_t values = s[0].solids.slot_count * (size_t)s[0].grid.block_cells;
        assert_memory_equal(s[n].solids.block_slot, s[0].solids.block_slot, (size_t)s[0].grid.block_count * 4);
        assert_memory_equal(s[n].solids.blurred, s[0].solids.blurred, values * 4);
        assert_memory_equal(s[n].solids.distance, s[0].solids.distance, values * 4);
        assert_memory_equal(s[n].solids.no_slip, s[0].solids.no_slip, values);
        for (int d = 0; d < 3; d++) {
            assert_memory_equal(s[n].solids.fraction[d], s[0].solids.fraction[d], values * 4);
            assert_memory_equal(s[n].solids.velocity[d], s[0].solids.velocity[d], values * 4);
        }
    }
    for (int n = 3; n >= 0; n--)
        end(&s[n]);
}

/* --- rigid bodies --- */

enum { MOST_VALUES = 8 };

/* Values of all cells, in the order of the blocks: fractions, velocities, blurred share and distance. */
static float *values_of(const stage *s)
{
    const sk_solids *solids = &s->solids;
    const int dimension = s->grid.dimension;
    const size_t cells = (size_t)s->grid.block_cells, count = (size_t)s->grid.block_count * cells;
    float *values = calloc(MOST_VALUES * count, sizeof *values);
    assert_non_null(values);
    for (size_t n = 0; n < count; n++) {
        const size_t at = (size_t)solids->block_slot[n / cells] * cells + n % cells;
        for (int d = 0; d < dimension; d++) {
            values[MOST_VALUES * n + (size_t)d] = solids->fraction[d][at];
            values[MOST_VALUES * n + 3 + (size_t)d] = solids->velocity[d][at];
        }
        values[MOST_VALUES * n + 6] = solids->blurred[at];
        values[MOST_VALUES * n + 7] = solids->distance[at];
    }
    return values;
}

static void assert_close(const stage *s, const float *a, const float *b, const double tolerance[MOST_VALUES])
{
    const size_t count = (size_t)s->grid.block_count * (size_t)s->grid.block_cells * MOST_VALUES;
    for (size_t n = 0; n < count; n++)
        assert_true(fabs((double)a[n] - (double)b[n]) <= tolerance[n % MOST_VALUES]);
}

/* Three bodies: a sphere cut by a wall, a turned box and a cylinder that moves. */
static void add_bodies(stage *s, sk_shape *shapes[3], sk_pose poses[3])
{
    selkie_shape defs[3];
    selkie_shape_defaults(&defs[0], SELKIE_SHAPE_SPHERE);
    selkie_shape_defaults(&defs[1], SELKIE_SHAPE_BOX);
    selkie_shape_defaults(&defs[2], SELKIE_SHAPE_CYLINDER);
    defs[0].radius = 0.33;
    const double low[3] = {-0.25, -0.2, -0.3}, high[3] = {0.25, 0.2, 0.3}, to[3] = {0.4, 0.1, 0.0};
    memcpy(defs[1].min, low, sizeof low);
    memcpy(defs[1].max, high, sizeof high);
    memcpy(defs[2].to, to, sizeof to);
    defs[2].radius = 0.21;
    const double middle[3][3] = {{0.2, 0.8, 0.8}, {1.3, 1.1, 1.0}, {2.0, 0.5, 1.1}}, turns[3] = {0.0, 30.0, 75.0};
    const sk_shape_options options = {.dimension = s->grid.dimension, .what = "shape"};
    for (int b = 0; b < 3; b++) {
        const double degrees[3] = {0.0, 0.0, turns[b]};
        assert_int_equal(sk_shape_create(&defs[b], &options, &shapes[b], NULL), SELKIE_OK);
        sk_pose_identity(&poses[b]);
        memcpy(poses[b].translation, middle[b], sizeof poses[b].translation);
        poses[b].translation[2] = s->grid.dimension == 3 ? middle[b][2] : 0.0;
        sk_rotation_from_degrees(degrees, poses[b].rotation);
        poses[b].velocity[0] = 0.5 * b;
        poses[b].angular_velocity[2] = b;
        selkie_body_def body;
        selkie_body_defaults(&body);
        sk_solids_add_body(&s->solids, shapes[b], &body, &poses[b]);
        assert_true(s->solids.obstacles[b].is_thick);
    }
}

/* Wide convex bodies are added to the static values of a block: the same as computing the whole block. */
static void bodies_join_static_values(int dimension)
{
    const int cells[3] = {28, 20, dimension == 3 ? 20 : 1};
    const double low[3] = {0, 0, 0};
    /* Where a body meets a wall, half cells that both cut differ. */
    const double tolerance[MOST_VALUES] = {1e-4, 1e-4, 1e-4, 1e-3, 1e-3, 1e-3, 0.06, 1e-4};
    sk_shape *shapes[3];
    sk_pose poses[3];
    stage s;
    begin(&s, dimension, cells, 0.1, low, SELKIE_WALL_FREE_SLIP);
    s.scene.body_count = 3;
    fill(&s);
    add_bodies(&s, shapes, poses);
    update(&s, 0.0, 2);
    float *joined = values_of(&s);

    /* A second update keeps everything. */
    const size_t slots = s.solids.slot_count;
    update(&s, 0.0, 1);
    float *kept = values_of(&s);
    assert_int_equal(s.solids.slot_count, slots);
    assert_memory_equal(joined, kept,
                        (size_t)s.grid.block_count * (size_t)s.grid.block_cells * MOST_VALUES * sizeof *kept);

    /* Whole blocks. */
    for (int b = 0; b < 3; b++)
        s.solids.obstacles[b].is_thick = 0;
    s.solids.settled = 0;
    update(&s, 0.0, 1);
    float *whole = values_of(&s);
    assert_close(&s, joined, whole, tolerance);

    /* A body that moves is computed again. */
    poses[2].translation[0] += 0.05;
    update(&s, 0.0, 1);
    float *moved = values_of(&s);
    assert_memory_not_equal(whole, moved,
                            (size_t)s.grid.block_count * (size_t)s.grid.block_cells * MOST_VALUES * sizeof *moved);
    float *const all[] = {joined, kept, whole, moved};
    for (int n = 0; n < 4; n++)
        free(all[n]);
    end(&s);
    for (int b = 0; b < 3; b++)
        sk_shape_destroy(shapes[b]);
}

static void bodies_are_added_to_blocks(void **state)
{
    (void)state;
    bodies_join_static_values(2);
    bodies_join_static_values(3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_solids_all_is_open),
        cmocka_unit_test(walls_are_closed_exactly),
        cmocka_unit_test(planes_across_the_axes),
        cmocka_unit_test(tilted_planes),
        cmocka_unit_test(spheres_have_their_volume),
        cmocka_unit_test(moving_solids_are_where_they_are),
        cmocka_unit_test(turning_solids_turn),
        cmocka_unit_test(one_key_places_an_obstacle),
        cmocka_unit_test(keyframes_move_and_stop),
        cmocka_unit_test(distance_knows_walls_and_obstacles),
        cmocka_unit_test(no_slip_is_that_of_the_nearest),
        cmocka_unit_test(out_of_memory_is_an_error),
        cmocka_unit_test(the_same_bits_on_any_number_of_threads),
        cmocka_unit_test(bodies_are_added_to_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
