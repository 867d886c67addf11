/* Extrapolation and advection: velocities around the liquid; orders of convergence; vector lanes against the plain
 * kernels; no stage across a cell; nobody inside a solid or outside a closed tank. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "grid/sampler_kernels.h"
#include "step_cases.h"

static void close_to(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        print_error("%.9g is not %.9g (+- %g)\n", value, expected, tolerance);
    assert_true(fabs(value - expected) <= tolerance);
}

/* A field in cells and cells per second, at a place in cells of the domain. NaN is unknown. */
typedef void (*field_function)(int dimension, const double x[3], double u[3]);

static void set_field(step_case *c, field_function field)
{
    sk_grid *grid = &c->step->grid;
    for (int b = 1; b < grid->block_count; b++)
        for (int n = 0; n < grid->block_cells; n++) {
            const int local[3] = {n % grid->extent[0], n / grid->extent[0] % grid->extent[1],
                                  n / grid->extent[0] / grid->extent[1]};
            for (int d = 0; d < grid->dimension; d++) {
                double x[3] = {0, 0, 0}, u[3] = {0, 0, 0};
                for (int e = 0; e < grid->dimension; e++)
                    x[e] =
                        grid->coordinates[b][e] * grid->extent[e] + local[e] - grid->padding[e] + (e == d ? 0.0 : 0.5);
                field(grid->dimension, x, u);
                grid->fields[SK_FIELD_VELOCITY_X + d][(size_t)b * (size_t)grid->block_cells + (size_t)n] =
                    (float)(u[d] * grid->cell_size);
            }
        }
}

static const double cell_size = 0.125; /* a power of two: places in cells are places in metres, shifted */

static void begin_tank(step_case *c, int dimension, double x0, double y0, double z0, double x1, double y1, double z1)
{
    case_begin(c, dimension, 40, 36, 28, cell_size);
    c->scene.time.reflection = 0.0; /* paths along the field */
    c->scene.liquid_count = 1;
    case_box(c, &c->liquids[0].shape, x0, y0, z0, x1, y1, z1);
}

static void particle_cells(const step_case *c, const sk_particle *particle, double x[3])
{
    for (int d = 0; d < 3; d++)
        x[d] = d < c->step->dimension ? particle->position[d] / cell_size : 0.0;
}

static void advect(step_case *c)
{
    selkie_error error = {0};
    if (case_run(c, "advect", &error) != SELKIE_OK)
        fail_msg("%s", error.message);
}

/* --- Extrapolation --- */

static void a_constant_goes_on_around_the_liquid(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        step_case c;
        begin_tank(&c, dimension, 12, 12, 10, 26, 22, 19);
        c.scene.gravity[1] = 0.0;
        for (int d = 0; d < dimension; d++)
            c.liquids[0].velocity[d] = 1.0 + d;
        case_create(&c, 2, 0.01);
        case_run_through(&c, "pressure");
        const sk_grid *grid = &c.step->grid;
        size_t cells = (size_t)grid->block_count * (size_t)grid->block_cells;
        uint8_t *known = malloc(cells * 3);
        for (int d = 0; d < dimension; d++)
            for (size_t n = 0; n < cells; n++)
                known[n + cells * (size_t)d] =
                    grid->fields[SK_FIELD_VELOCITY_X + d][n] == grid->fields[SK_FIELD_VELOCITY_X + d][n];
        selkie_error error = {0};
        assert_int_equal(case_run(&c, "extrapolate", &error), SELKIE_OK);
        int more = 0;
        FOR_DOMAIN(&c)
        {
            const int cell[3] = {i, j, k};
            size_t index = case_cell(&c, cell);
            for (int d = 0; index && d < dimension; d++) {
                float u = grid->fields[SK_FIELD_VELOCITY_X + d][index];
                if (!isnan(u))
                    close_to(u, 1.0 + d, 2e-6);
                /* Whatever is a step or two beside a known face is known now. */
                for (int e = 0; e < dimension; e++)
                    for (int far = -2; far <= 2; far++) {
                        int other[3] = {i, j, k};
                        other[e] += far;
                        size_t there = case_cell(&c, other);
                        if (there && known[there + cells * (size_t)d])
                            assert_false(isnan(u));
                    }
                more += !isnan(u) && !known[index + cells * (size_t)d];
            }
        }
        assert_true(more > 100);
        /* The empty block stays unknown. */
        for (int d = 0; d < dimension; d++)
            for (int n = 0; n < grid->block_cells; n++)
                assert_true(isnan(grid->fields[SK_FIELD_VELOCITY_X + d][n]));
        free(known);
        case_end(&c);
    }
}

/* Behind a free-slip plane nothing goes through the surface; a no-slip one holds everything. */
static void solids_let_nothing_through(void **state)
{
    (void)state;
    for (int slip = 0; slip < 2; slip++) {
        step_case c;
        begin_tank(&c, 2, 0, 0, 0, 40, 20, 1);
        c.scene.gravity[1] = 0.0;
        c.scene.obstacle_count = 1;
        selkie_shape_defaults(&c.obstacles[0].shape, SELKIE_SHAPE_HALF_SPACE);
        c.obstacles[0].shape.point[1] = 8.3 * cell_size;
        c.obstacles[0].shape.normal[1] = 1.0;
        c.obstacles[0].shape.normal[0] = 0.0;
        c.obstacles[0].surface = slip ? SELKIE_WALL_FREE_SLIP : SELKIE_WALL_NO_SLIP;
        c.liquids[0].velocity[0] = 1.0;
        case_create(&c, 2, 0.001);
        case_run_through(&c, "extrapolate");
        const sk_grid *grid = &c.step->grid;
        for (int i = 6; i < 34; i++) {
            const int below[3] = {i, 7, 0}, above[3] = {i, 10, 0};
            float along = grid->fields[SK_FIELD_VELOCITY_X][case_cell(&c, below)],
                  across = grid->fields[SK_FIELD_VELOCITY_Y][case_cell(&c, below)];
            close_to(across, 0.0, 0.02);
            float free_stream = grid->fields[SK_FIELD_VELOCITY_X][case_cell(&c, above)];
            if (slip && i > 12 && i < 28)
                close_to(along, free_stream, 0.05);
            if (!slip)
                assert_true(along == 0.0f);
        }
        case_end(&c);
    }
}

/* --- Orders of convergence --- */

static void rotation(int dimension, const double x[3], double u[3])
{
    (void)dimension;
    u[0] = -(x[1] - 17.0);
    u[1] = x[0] - 20.0;
    u[2] = 0.0;
}

/* Largest error, in cells, of one step that turns everything by `angle`. */
static double rotation_error(int dimension, int order, double angle)
{
    step_case c;
    begin_tank(&c, dimension, 18.2, 15.2, 12, 21.8, 18.8, 15);
    c.scene.advection.order = order;
    case_create(&c, 2, angle);
    case_run_through(&c, "sort");
    selkie_error error = {0};
    assert_int_equal(case_run(&c, "solids", &error), SELKIE_OK);
    set_field(&c, rotation);
    size_t count = (size_t)c.step->particles.count;
    sk_particle *before = malloc(count * sizeof *before);
    memcpy(before, c.step->particles.records, count * sizeof *before);
    advect(&c);
    double worst = 0.0;
    for (size_t p = 0; p < count; p++) {
        double from[3], to[3];
        particle_cells(&c, &before[p], from);
        particle_cells(&c, &c.step->particles.records[p], to);
        double x = from[0] - 20.0, y = from[1] - 17.0;
        worst = fmax(worst, fabs(to[0] - (20.0 + cos(angle) * x - sin(angle) * y)));
        worst = fmax(worst, fabs(to[1] - (17.0 + sin(angle) * x + cos(angle) * y)));
        close_to(to[2], from[2], 1e-5);
        /* Advection moves; it does not change velocities where there is no solid. */
        assert_memory_equal(c.step->particles.records[p].velocity, before[p].velocity, 12);
    }
    free(before);
    case_end(&c);
    return worst;
}

static void runge_kutta_has_its_order(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int order = 2; order <= 3; order++) {
            /* Slow enough that no particle takes sub-steps: two cells from the centre at most. */
            double coarse = rotation_error(dimension, order, 0.36), fine = rotation_error(dimension, order, 0.18);
            double slope = log2(coarse / fine);
            close_to(slope, order + 1, 0.25); /* of a single step: one more than the scheme's */
            assert_true(fine < (order == 2 ? 3e-3 : 2e-4));
        }
}

static void wide_rotation(int dimension, const double x[3], double u[3])
{
    (void)dimension;
    u[0] = -(x[1] - 18.0);
    u[1] = x[0] - 20.0;
    u[2] = 0.0;
}

/* A step many cells long is cut into as many as it needs: a third of a turn, twelve cells out, comes out right. */
static void long_steps_are_cut(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int order = 2; order <= 3; order++) {
            step_case c;
            begin_tank(&c, dimension, 10, 8, 10, 30, 28, 12);
            c.scene.advection.order = order;
            const double angle = 2.0;
            case_create(&c, 2, angle);
            case_run_through(&c, "sort");
            selkie_error error = {0};
            assert_int_equal(case_run(&c, "solids", &error), SELKIE_OK);
            set_field(&c, wide_rotation);
            size_t count = (size_t)c.step->particles.count;
            sk_particle *before = malloc(count * sizeof *before);
            memcpy(before, c.step->particles.records, count * sizeof *before);
            advect(&c);
            for (size_t p = 0; p < count; p++) {
                double from[3], to[3];
                particle_cells(&c, &before[p], from);
                particle_cells(&c, &c.step->particles.records[p], to);
                double x = from[0] - 20.0, y = from[1] - 18.0;
                /* Far out the way leads out of the blocks around the liquid, where there is no field to follow; near
                 * the centre a cell is a large angle. */
                if (hypot(x, y) > 9.5 || hypot(x, y) < 3.0)
                    continue;
                close_to(to[0], 20.0 + cos(angle) * x - sin(angle) * y, order == 2 ? 0.35 : 0.05);
                close_to(to[1], 18.0 + sin(angle) * x + cos(angle) * y, order == 2 ? 0.35 : 0.05);
            }
            free(before);
            case_end(&c);
        }
}

/* --- The plain algorithm --- */

typedef struct dense_field {
    float *values[3];
    sk_velocity_piece piece; /* over the whole table */
} dense_field;

static dense_field copy_field(const step_case *c)
{
    const sk_grid *grid = &c->step->grid;
    dense_field dense;
    int n = 0;
    for (int d = 0; d < grid->dimension; d++)
        n = grid->blocks[d] * grid->extent[d] > n ? grid->blocks[d] * grid->extent[d] : n;
    size_t values = (size_t)n * (size_t)n * (grid->dimension == 3 ? (size_t)n : 1);
    for (int d = 0; d < 3; d++) {
        dense.values[d] = malloc(values * sizeof(float));
        for (size_t v = 0; v < values; v++)
            dense.values[d][v] = NAN;
        dense.piece.component[d] = dense.values[d];
    }
    dense.piece.pitch = n;
    dense.piece.dimension = grid->dimension;
    for (int b = 1; b < grid->block_count; b++)
        for (int m = 0; m < grid->block_cells; m++) {
            size_t at[3] = {(size_t)(m % grid->extent[0]), (size_t)(m / grid->extent[0] % grid->extent[1]),
                            (size_t)(m / grid->extent[0] / grid->extent[1])};
            for (int d = 0; d < 3; d++)
                at[d] += (size_t)(grid->coordinates[b][d] * grid->extent[d]);
            for (int d = 0; d < grid->dimension; d++)
                dense.values[d][at[0] + (size_t)n * (at[1] + (size_t)n * at[2])] =
                    grid->fields[SK_FIELD_VELOCITY_X + d][(size_t)b * (size_t)grid->block_cells + (size_t)m];
        }
    return dense;
}

static void free_field(dense_field *dense)
{
    for (int d = 0; d < 3; d++)
        free(dense->values[d]);
}

static void plain_velocity(const step_case *c, const dense_field *dense, const float x[3], const float own[3],
                           float u[3])
{
    const sk_grid *grid = &c->step->grid;
    float place[3] = {0, 0, 0};
    for (int d = 0; d < grid->dimension; d++)
        place[d] = (x[d] - (float)grid->corner[d]) * (float)(1.0 / grid->cell_size);
    sk_sample_velocity(&dense->piece, place, grid->dimension, own, u);
}

/* One particle, as advect_dim.c says it goes, without obstacles. */
static void plain_advect(const step_case *c, const dense_field *dense, sk_particle *particle)
{
    int dimension = c->step->dimension, order = c->step->scene->advection.order;
    const sk_grid *grid = &c->step->grid;
    float *x = particle->position, remaining = (float)c->step->dt;
    for (int sub_step = 0; sub_step < 1000 && remaining > 0.0f; sub_step++) {
        float k1[3], k2[3], k3[3], stage[3] = {0, 0, 0}, fastest = 0.0f;
        plain_velocity(c, dense, x, particle->velocity, k1);
        for (int d = 0; d < dimension; d++)
            fastest = fmaxf(fastest, fabsf(k1[d]));
        float cells = fastest * (float)(1.0 / grid->cell_size) * remaining;
        float h = cells <= 1.0f ? remaining : remaining / ceilf(cells);
        for (int d = 0; d < dimension; d++)
            stage[d] = x[d] + 0.5f * h * k1[d];
        plain_velocity(c, dense, stage, particle->velocity, k2);
        /* The second stage crosses a cell at most as well. */
        fastest = 0.0f;
        for (int d = 0; d < dimension; d++)
            fastest = fmaxf(fastest, fabsf(k2[d]));
        float crossed = fastest * (float)(1.0 / grid->cell_size) * h;
        h = crossed > 1.0f ? h / crossed : h;
        if (order == 3) {
            for (int d = 0; d < dimension; d++)
                stage[d] = x[d] + 0.75f * h * k2[d];
            plain_velocity(c, dense, stage, particle->velocity, k3);
        }
        for (int d = 0; d < dimension; d++) {
            x[d] += order == 2 ? h * k2[d] : h * (2.0f * k1[d] + 3.0f * k2[d] + 4.0f * k3[d]) / 9.0f;
            float gap = (float)(1e-3 * grid->cell_size);
            x[d] = fminf(fmaxf(x[d], (float)grid->low[d] + gap), (float)grid->high[d] - gap);
        }
        remaining = remaining - h < 1e-6f * (float)c->step->dt ? 0.0f : remaining - h;
    }
}

static void wild_field(int dimension, const double x[3], double u[3])
{
    for (int d = 0; d < dimension; d++)
        u[d] = 3.0 * sin(0.4 * x[0] + 1.3 * d) * cos(0.5 * x[1] - d) + 2.0 * sin(0.6 * x[2] + 0.3 * x[0] + d);
    /* Patches without a velocity, wide enough to get lost in. */
    if (sin(0.9 * x[0]) + sin(0.7 * x[1] + 1.0) + (dimension == 3 ? sin(0.8 * x[2]) : 0.0) >
        (dimension == 3 ? 1.9 : 1.5))
        for (int d = 0; d < 3; d++)
            u[d] = NAN;
}

static void lanes_go_where_the_plain_kernels_go(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int order = 2; order <= 3; order++)
            for (int fast = 0; fast < 2; fast++) {
                step_case c;
                begin_tank(&c, dimension, 5, 4, 4, 30.6, 21.2, 14.4);
                c.scene.advection.order = order;
                c.scene.particles.per_cell = dimension == 2 ? 9 : 1;
                case_create(&c, 2, fast ? 2.0 : 0.15);
                for (int64_t p = 0; p < c.step->particles.count; p++)
                    for (int d = 0; d < dimension; d++)
                        c.step->particles.records[p].velocity[d] =
                            (float)cell_size * (4.0f * sk_random_float(8, (uint64_t)p, (uint64_t)d) - 2.0f);
                case_run_through(&c, "sort");
                selkie_error error = {0};
                assert_int_equal(case_run(&c, "solids", &error), SELKIE_OK);
                set_field(&c, wild_field);
                dense_field dense = copy_field(&c);
                size_t count = (size_t)c.step->particles.count, differ = 0;
                sk_particle *expected = malloc(count * sizeof *expected);
                memcpy(expected, c.step->particles.records, count * sizeof *expected);
                for (size_t p = 0; p < count; p++)
                    plain_advect(&c, &dense, &expected[p]);
                advect(&c);
                for (size_t p = 0; p < count; p++) {
                    const sk_particle *particle = &c.step->particles.records[p];
                    assert_int_equal(particle->id, expected[p].id);
                    double away = 0.0;
                    for (int d = 0; d < dimension; d++)
                        away = fmax(away, fabs((double)particle->position[d] - expected[p].position[d]) / cell_size);
                    /* Whether a node is known, and how many sub-steps it takes, may hang on the last bit of a place:
                     * few. */
                    differ += away > (fast ? 1e-3 : 3e-5);
                }
                if (differ * 200 > count)
                    print_error("%dD order %d fast %d: %zu of %zu differ\n", dimension, order, fast, differ, count);
                assert_true(differ * 200 <= count);
                free(expected);
                free_field(&dense);
                case_end(&c);
            }
}

/* --- Sub-steps --- */

static void rain_on_a_pool(int dimension, const double x[3], double u[3])
{
    (void)dimension;
    u[0] = u[2] = 0.0;
    u[1] = x[1] > 12.0 ? -20.0 : 0.0;
}

/* A drop six cells above a still pool, in a step of ten: the midpoint of the whole way is at rest, and a scheme that
 * asks there leaves the drop in the air. */
static void drops_do_not_hover(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int order = 2; order <= 3; order++) {
            step_case c;
            begin_tank(&c, dimension, 8, 2, 4, 30, 20, 20);
            c.scene.advection.order = order;
            case_create(&c, 2, 0.5);
            case_run_through(&c, "sort");
            selkie_error error = {0};
            assert_int_equal(case_run(&c, "solids", &error), SELKIE_OK);
            set_field(&c, rain_on_a_pool);
            size_t count = (size_t)c.step->particles.count;
            sk_particle *before = malloc(count * sizeof *before);
            memcpy(before, c.step->particles.records, count * sizeof *before);
            advect(&c);
            for (size_t p = 0; p < count; p++) {
                double from[3], to[3];
                particle_cells(&c, &before[p], from);
                particle_cells(&c, &c.step->particles.records[p], to);
                if (from[1] < 11.9)
                    close_to(to[1], from[1], 1e-4); /* the pool stays */
                if (from[1] > 13.1) {
                    assert_true(to[1] < 13.0); /* every drop arrives */
                    assert_true(to[1] > 10.0); /* and goes no deeper than a cell or so */
                }
            }
            free(before);
            case_end(&c);
        }
}

static void storm(int dimension, const double x[3], double u[3])
{
    for (int d = 0; d < dimension; d++)
        u[d] =
            40.0 *
            (sk_random_float(77, (uint64_t)(int64_t)(floor(x[0]) * 7919 + floor(x[1]) * 104729 + floor(x[2]) * 1299709),
                             (uint64_t)d) -
             0.5);
}

static void check_confined(const step_case *c)
{
    for (int64_t p = 0; p < c->step->particles.count; p++) {
        const sk_particle *particle = &c->step->particles.records[p];
        double x[3] = {particle->position[0], particle->position[1], particle->position[2]}, normal[3];
        int obstacle;
        assert_int_equal(particle->flags & SK_PARTICLE_DEAD, 0);
        for (int d = 0; d < c->step->dimension; d++)
            assert_true(x[d] > c->step->grid.low[d] && x[d] < c->step->grid.high[d]);
        double distance = sk_solids_distance(&c->step->solids, x, normal, &obstacle);
        if (!(distance >= 0.0))
            print_error("particle %u at %g %g %g cells: %g cells in obstacle %d\n", particle->id, x[0] / cell_size,
                        x[1] / cell_size, x[2] / cell_size, distance / cell_size, obstacle);
        assert_true(distance >= 0.0);
    }
}

/* In a storm of twenty cells a step, nobody leaves a closed tank or ends inside an obstacle, moving or not. */
static void nobody_leaves_and_nobody_is_inside(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int moving = 0; moving < 2; moving++) {
            step_case c;
            begin_tank(&c, dimension, 0, 0, 0, 40, 25, 28);
            c.scene.particles.per_cell = dimension == 2 ? 4 : 1;
            c.scene.obstacle_count = 3;
            case_ball(&c, &c.obstacles[0].shape, 11, 11, 12, 4.4);
            case_box(&c, &c.obstacles[1].shape, 22, -3, -3, 24.3, 13.2,
                     40);                                             /* stands on the floor, from wall to wall */
            case_ball(&c, &c.obstacles[2].shape, 39.0, 9.0, 14, 3.5); /* half in a wall */
            if (moving) {
                c.obstacles[0].velocity[0] = 0.5;
                c.obstacles[0].velocity[1] = -0.25;
            }
            case_create(&c, 2, 0.5);
            for (int round = 0; round < 3; round++) {
                case_run_through(&c, "sort");
                selkie_error error = {0};
                assert_int_equal(case_run(&c, "solids", &error), SELKIE_OK);
                set_field(&c, storm);
                advect(&c);
                sk_solids_move(&c.step->solids, c.step->time + c.step->dt);
                check_confined(&c);
                c.step->time += c.step->dt;
            }
            case_end(&c);
        }
}

static void wind(int dimension, const double x[3], double u[3])
{
    (void)dimension;
    (void)x;
    u[0] = 6.0;
    u[1] = u[2] = 0.0;
}

/* What leaves through an open side is gone after the next sort, and counted once. */
static void open_sides_let_go(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        step_case c;
        begin_tank(&c, dimension, 30, 5, 5, 40, 15, 15);
        c.scene.domain.walls[1] = SELKIE_WALL_OPEN;
        case_create(&c, 2, 0.5);
        case_run_through(&c, "sort");
        selkie_error error = {0};
        assert_int_equal(case_run(&c, "solids", &error), SELKIE_OK);
        set_field(&c, wind);
        int64_t count = c.step->particles.count, leaving = 0;
        for (int64_t p = 0; p < count; p++)
            leaving += c.step->particles.records[p].position[0] > 37.0f * (float)cell_size;
        assert_true(leaving > count / 5 && leaving < count / 2);
        advect(&c);
        assert_int_equal(c.step->drained, leaving);
        case_run_through(&c, "sort");
        assert_int_equal(c.step->particles.count, count - leaving);
        for (int64_t p = 0; p < c.step->particles.count; p++)
            assert_true(c.step->particles.records[p].position[0] <= (float)c.step->grid.high[0]);
        case_end(&c);
    }
}

/* The last batch reads past the velocities that the transfer left; whatever is there must not matter. */
static void idle_lanes_may_read_anything(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        step_case c;
        case_begin(&c, dimension, 16, 16, 16, 1.0 / 16);
        c.scene.liquid_count = 1;
        case_box(&c, &c.liquids[0].shape, 3, 3, 3, 7, 7, 7);
        case_create(&c, 1, 0.01);
        case_run_through(&c, "to_particles");
        sk_particles *particles = &c.step->particles;
        size_t used = 3 * (size_t)particles->count,
               all = (size_t)particles->count * sizeof(sk_particle) / sizeof(float);
        for (size_t n = used; n < all; n++)
            sk_particles_scratch(particles)[n] = n % 3 ? NAN : 1e30f;
        selkie_error error = {0};
        assert_int_equal(case_run(&c, "advect", &error), SELKIE_OK);
        for (int64_t p = 0; p < particles->count; p++)
            for (int d = 0; d < dimension; d++)
                assert_true(particles->records[p].position[d] > 2.0f / 16 &&
                            particles->records[p].position[d] < 8.0f / 16);
        case_end(&c);
    }
}

/* The phase that does both at once leaves the same velocities as one after the other, and the same positions up to
 * rounding: it adds up the nodes around a particle in another order. A float near 1 m is rounded by 6e-8, and the order
 * of some ten terms moves 1e-7 of a way of at most a cell; in a long step, of a dozen cells, where the way bends at the
 * surface it grows some ten times. */
static void velocities_and_advection_in_one(void **state)
{
    (void)state;
    static const selkie_method methods[] = {SELKIE_METHOD_FLIP, SELKIE_METHOD_PIC, SELKIE_METHOD_APIC};
    static const struct {
        double dt, tolerance; /* s, m */
    } steps[] = {{0.02, 3e-7}, {0.25, 1e-5}};
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int m = 0; m < 6; m++) {
            step_case c[2];
            for (int one = 0; one < 2; one++) {
                case_begin(&c[one], dimension, 16, 16, 16, 1.0 / 16);
                selkie_scene_set_method(&c[one].scene, methods[m % 3]);
                c[one].scene.liquid_count = 1;
                case_box(&c[one], &c[one].liquids[0].shape, 0, 0, 0, 7, 12, 7);
                case_create(&c[one], 2, steps[m / 3].dt);
                sk_particles *particles = &c[one].step->particles;
                /* More in one cell than go at a time. */
                assert_int_equal(SELKIE_OK,
                                 sk_particles_reserve(particles, particles->count + 3000, &(selkie_error){0}));
                for (int n = 0; n < 3000; n++)
                    sk_particles_append(particles,
                                        (double[3]){2.5 / 16 + n * 1e-6, 2.5 / 16, dimension == 3 ? 2.5 / 16 : 0.0},
                                        (double[3]){0.5, 0.1, 0.0});
                case_run_through(&c[one], "extrapolate");
                selkie_error error = {0};
                if (one)
                    assert_int_equal(SELKIE_OK,
                                     (dimension == 2 ? sk_flip_move_2d : sk_flip_move_3d)(c[one].step, &error));
                else {
                    assert_int_equal(SELKIE_OK, case_run(&c[one], "to_particles", &error));
                    assert_int_equal(SELKIE_OK, case_run(&c[one], "advect", &error));
                }
            }
            assert_int_equal(c[0].step->particles.count, c[1].step->particles.count);
            for (int64_t p = 0; p < c[0].step->particles.count; p++) {
                const sk_particle *apart = &c[0].step->particles.records[p],
                                  *together = &c[1].step->particles.records[p];
                for (int d = 0; d < 3; d++)
                    assert_true(fabs(apart->position[d] - together->position[d]) <= steps[m / 3].tolerance);
                assert_memory_equal(apart->velocity, together->velocity, sizeof apart->velocity);
                assert_true(apart->id == together->id && apart->flags == together->flags);
            }
            assert_true(c[0].step->sums.kinetic == c[1].step->sums.kinetic);
            case_end(&c[0]);
            case_end(&c[1]);
        }
}

static void the_same_bits_on_any_number_of_threads(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3, 7};
    for (int dimension = 2; dimension <= 3; dimension++) {
        step_case c[4];
        for (int n = 0; n < 4; n++) {
            begin_tank(&c[n], dimension, 0, 0, 0, 30, 25, 20);
            c[n].scene.particles.per_cell = dimension == 2 ? 4 : 1;
            c[n].scene.obstacle_count = 1;
            case_ball(&c[n], &c[n].obstacles[0].shape, 11, 11, 12, 4.4);
            case_create(&c[n], threads[n], 0.5);
            case_run_through(&c[n], "sort");
            assert_int_equal(case_run(&c[n], "solids", NULL), SELKIE_OK);
            set_field(&c[n], wild_field);
            advect(&c[n]);
            assert_memory_equal(c[n].step->particles.records, c[0].step->particles.records,
                                (size_t)c[0].step->particles.count * sizeof(sk_particle));
        }
        for (int n = 3; n >= 0; n--)
            case_end(&c[n]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_constant_goes_on_around_the_liquid),
        cmocka_unit_test(solids_let_nothing_through),
        cmocka_unit_test(runge_kutta_has_its_order),
        cmocka_unit_test(long_steps_are_cut),
        cmocka_unit_test(lanes_go_where_the_plain_kernels_go),
        cmocka_unit_test(drops_do_not_hover),
        cmocka_unit_test(nobody_leaves_and_nobody_is_inside),
        cmocka_unit_test(open_sides_let_go),
        cmocka_unit_test(idle_lanes_may_read_anything),
        cmocka_unit_test(velocities_and_advection_in_one),
        cmocka_unit_test(the_same_bits_on_any_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
