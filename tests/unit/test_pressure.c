/* The pressure projection: what is left of the divergence in liquids of any shape, and the pressure of water at rest,
 * which the ghost-fluid surface must get right at any height. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "grid/grid_kernels.h"
#include "step_cases.h"

static void close_to(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        print_error("%.9g is not %.9g (+- %g)\n", value, expected, tolerance);
    assert_true(fabs(value - expected) <= tolerance);
}

/* Flux through the lower face of a cell, m/s: the liquid's through the open part, the solid's through the rest. */
static double flux(const step_case *c, int d, const int cell[3])
{
    size_t index = case_cell(c, cell);
    const sk_solids *solids = &c->step->solids;
    size_t solid = case_solid_cell(c, index);
    double w = index ? solids->fraction[d][solid] : 1.0, u = c->step->grid.fields[SK_FIELD_VELOCITY_X + d][index];
    double sum = isnan(u) ? 0.0 : w * u;
    if (solids->moving_count && solid / (size_t)c->step->grid.block_cells >= solids->static_count)
        sum += (1.0 - w) * solids->velocity[d][solid];
    return sum;
}

typedef struct divergence {
    double norm, largest; /* m/s */
    int64_t cells;
} divergence;

static divergence measure(const step_case *c)
{
    divergence result = {0, 0, 0};
    FOR_DOMAIN(c)
    {
        const int cell[3] = {i, j, k};
        size_t index = case_cell(c, cell);
        if (!index || (c->step->grid.kinds[index] & SK_CELL_KIND_MASK) != SK_CELL_LIQUID)
            continue;
        double sum = 0.0;
        for (int d = 0; d < c->step->dimension; d++) {
            int next[3] = {i, j, k};
            next[d]++;
            sum += flux(c, d, next) - flux(c, d, cell);
        }
        result.norm += sum * sum;
        result.largest = fmax(result.largest, fabs(sum));
        result.cells++;
    }
    result.norm = sqrt(result.norm);
    return result;
}

static void shake(step_case *c, double speed)
{
    sk_particles *particles = &c->step->particles;
    for (int64_t p = 0; p < particles->count; p++)
        for (int d = 0; d < c->step->dimension; d++)
            particles->records[p].velocity[d] =
                (float)(speed * (sk_random_float(3, particles->records[p].id / 5, (uint64_t)d) - 0.5));
}

enum { OPEN_SURFACE, WITH_OBSTACLES, MOVING_SOLID, FULL_TANK, FULL_TANK_WITH_OBSTACLE, OPEN_SIDES, CASES };

static void make_case(step_case *c, int dimension, int which)
{
    case_begin(c, dimension, 26, 22, 18, 0.05);
    c->scene.liquid_count = 1;
    case_box(c, &c->liquids[0].shape, 0, 0, 0, 17.3, 14.6, 18);
    if (which == OPEN_SURFACE) {
        c->scene.liquid_count = 2;
        case_ball(c, &c->liquids[1].shape, 21, 16, 9, 3.7);
    }
    if (which == WITH_OBSTACLES || which == MOVING_SOLID) {
        c->scene.obstacle_count = 2;
        case_ball(c, &c->obstacles[0].shape, 8.2, 7.1, 9.4, 3.3);
        case_box(c, &c->obstacles[1].shape, 14.3, -1, -1, 16.6, 5.4, 30);
    }
    if (which == MOVING_SOLID) {
        c->obstacles[0].velocity[0] = 0.7;
        c->obstacles[0].velocity[1] = 0.4;
        c->obstacles[0].angular_velocity[2] = 3.0;
        for (int d = 0; d < 3; d++)
            c->obstacles[0].center[d] = c->obstacles[0].shape.center[d];
    }
    if (which == FULL_TANK || which == FULL_TANK_WITH_OBSTACLE)
        case_box(c, &c->liquids[0].shape, 0, 0, 0, 26, 22, 18);
    if (which == FULL_TANK_WITH_OBSTACLE) {
        c->scene.obstacle_count = 1;
        case_ball(c, &c->obstacles[0].shape, 8.2, 7.1, 9.4, 3.3);
    }
    if (which == OPEN_SIDES)
        for (int side = 0; side < 6; side++)
            c->scene.domain.walls[side] = side == 2 ? SELKIE_WALL_FREE_SLIP : SELKIE_WALL_OPEN;
}

static void no_divergence_is_left(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int which = 0; which < CASES; which++)
            for (int surface = SELKIE_SURFACE_GHOST_FLUID; surface <= SELKIE_SURFACE_VOXEL; surface++) {
                step_case c;
                make_case(&c, dimension, which);
                c.scene.pressure.surface = (selkie_surface_condition)surface;
                c.scene.pressure.tolerance = 1e-5;
                case_create(&c, 2, 0.004);
                shake(&c, 2.0);
                case_run_through(&c, "forces");
                divergence before = measure(&c);
                assert_true(before.cells > 100 && before.norm > 0.1);
                selkie_error error = {0};
                if (case_run(&c, "pressure", &error) != SELKIE_OK)
                    fail_msg("case %d in %dD: %s", which, dimension, error.message);
                divergence after = measure(&c);
                assert_int_equal(after.cells, before.cells);
                /* The velocities are floats: their rounding is all that may come on top of the tolerance. */
                double rounding = 3e-7 * sqrt((double)after.cells) * 3.0;
                if (!(after.norm <= 1e-5 * before.norm + rounding))
                    print_error("case %d in %dD, surface %d: %g of %g left\n", which, dimension, surface, after.norm,
                                before.norm);
                assert_true(after.norm <= 1e-5 * before.norm + rounding);
                assert_true(c.step->pressure.converged && c.step->pressure.residual <= 1e-5);
                if (which == FULL_TANK)
                    assert_int_equal(c.step->pressure.closed_components, 1);
                case_end(&c);
            }
}

/* The largest norm is asked as the volume that a cell may gain or lose in the step. */
static void the_largest_norm_is_a_change_of_volume(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        step_case c;
        make_case(&c, dimension, WITH_OBSTACLES);
        c.scene.pressure.norm = SELKIE_NORM_MAX;
        c.scene.pressure.tolerance = 1e-4;
        case_create(&c, 2, 0.004);
        shake(&c, 2.0);
        case_run_through(&c, "forces");
        double unit = 0.004 / 0.05; /* of a cell's volume, for 1 m/s */
        assert_true(measure(&c).largest * unit > 1e-2);
        assert_int_equal(case_run(&c, "pressure", NULL), SELKIE_OK);
        assert_true(measure(&c).largest * unit <= 1e-4 * 1.01 + 1e-6 * unit);
        assert_true(c.step->pressure.residual <= 1e-4);
        case_end(&c);
    }
}

/* Faces in closed walls are at rest; a wall that the liquid only slides along takes nothing from it. */
static void walls_stop_what_runs_into_them(void **state)
{
    (void)state;
    step_case c;
    make_case(&c, 2, OPEN_SURFACE);
    case_create(&c, 2, 0.004);
    shake(&c, 2.0);
    case_run_through(&c, "pressure");
    const sk_grid *grid = &c.step->grid;
    for (int j = 0; j < 12; j++) {
        const int cell[3] = {0, j, 0};
        assert_true(grid->fields[SK_FIELD_VELOCITY_X][case_cell(&c, cell)] == 0.0f);
    }
    for (int i = 0; i < 16; i++) {
        const int cell[3] = {i, 0, 0};
        assert_true(grid->fields[SK_FIELD_VELOCITY_Y][case_cell(&c, cell)] == 0.0f);
    }
    case_end(&c);
}

/* Of a liquid cell and the air beside it, by their fills. */
static const float least_depth = 0.02f;

static float theta_of_fills(float liquid, float air)
{
    return sk_surface_theta_of_depths(sk_surface_depth(liquid), sk_surface_depth(air), least_depth);
}

/* The surface's depth comes back from the fill of a flat surface at any height, and theta with it. */
static void the_surface_is_found_at_any_height(void **state)
{
    (void)state;
    for (int n = -1000; n <= 1000; n++) {
        double d = n / 1000.0; /* of the surface above the centre, cells */
        double fill = d >= 0.0 ? 1.0 - 0.5 * (1.0 - d) * (1.0 - d) : 0.5 * (1.0 + d) * (1.0 + d);
        /* A fill that is a rounding error away from 0 or 1 is a root of it away from the surface. */
        close_to(sk_surface_depth((float)fill), d, 1e-6 / fmax(1.0 - fabs(d), 1e-3) + 1e-6);
        if (d <= 0.0)
            continue;
        double above = d - 1.0, fill_above = 0.5 * (1.0 + above) * (1.0 + above);
        /* Below the least depth of the centre: that depth over its distance from the dry centre. */
        const double least = (double)least_depth;
        close_to(theta_of_fills((float)fill, (float)fill_above), d < least ? least / (least + 1.0 - d) : d, 1e-3);
        if (d > 0.1 && d < 0.9)
            close_to(theta_of_fills((float)fill, (float)fill_above), d, 4e-6);
    }
    /* Out of the range of a flat surface it stays between its bounds. */
    for (int a = -2; a <= 12; a++)
        for (int b = -12; b <= 12; b++) {
            float theta = theta_of_fills(0.1f * (float)a, 0.1f * (float)b);
            assert_true(theta >= 0.019f && theta <= 1.0f);
        }
}

/* Water at rest on a lattice: the pressure is that of its depth below the surface, which lies where the particles end,
 * and nothing starts to move. */
static void water_at_rest_has_its_pressure(void **state)
{
    (void)state;
    static const double heights[] = {9.0, 9.25, 9.75, 8.0, 7.25};
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int n = 0; n < (dimension == 2 ? 5 : 2); n++)
            for (int surface = SELKIE_SURFACE_GHOST_FLUID; surface <= SELKIE_SURFACE_VOXEL; surface++) {
                step_case c;
                const double h = 0.04, height = heights[n + (dimension == 3)];
                case_begin(&c, dimension, dimension == 2 ? 21 : 10, 14, 9, h);
                c.scene.liquid_count = 1;
                case_box(&c, &c.liquids[0].shape, 0, 0, 0, 21, height, 9);
                c.liquids[0].density = 850.0;
                c.scene.particles.per_cell = dimension == 2 ? 16 : 64;
                c.scene.particles.arrangement = SELKIE_ARRANGEMENT_LATTICE;
                c.scene.pressure.surface = (selkie_surface_condition)surface;
                c.scene.pressure.tolerance = 1e-6;
                const double dt = 0.01;
                case_create(&c, 2, dt);
                case_run_through(&c, "pressure");
                const sk_grid *grid = &c.step->grid;
                /* Voxels: the surface is where the air's first centre is. */
                double level = surface == SELKIE_SURFACE_GHOST_FLUID ? height : ceil(height) + 0.5;
                double deepest = 850.0 * 9.81 * height * h, unit = 850.0 * h / dt;
                FOR_DOMAIN(&c)
                {
                    const int cell[3] = {i, j, k};
                    size_t index = case_cell(&c, cell);
                    double depth = (level - (j + 0.5)) * h;
                    int liquid = index && (grid->kinds[index] & SK_CELL_KIND_MASK) == SK_CELL_LIQUID;
                    assert_int_equal(liquid, surface == SELKIE_SURFACE_GHOST_FLUID ? depth > 0.0 : j < ceil(height));
                    if (!liquid)
                        continue;
                    close_to(grid->fields[SK_FIELD_POTENTIAL][index] * unit, 850.0 * 9.81 * depth, 2e-5 * deepest);
                    for (int d = 0; d < dimension; d++) {
                        float u = grid->fields[SK_FIELD_VELOCITY_X + d][index];
                        close_to(u, 0.0, 2e-5 * 9.81 * dt * height);
                    }
                }
                case_end(&c);
            }
}

static void a_solve_that_fails_says_so(void **state)
{
    (void)state;
    step_case c;
    make_case(&c, 2, WITH_OBSTACLES);
    c.scene.pressure.tolerance = 1e-6;
    c.scene.pressure.max_iterations = 1;
    case_create(&c, 2, 0.004);
    shake(&c, 2.0);
    case_run_through(&c, "forces");
    selkie_error error = {0};
    assert_int_equal(case_run(&c, "pressure", &error), SELKIE_ERROR_DIVERGED);
    assert_non_null(strstr(error.message, "pressure.tolerance"));
    assert_non_null(strstr(error.message, "pressure.max_iterations"));
    case_end(&c);
}

static void the_same_bits_on_any_number_of_threads(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3, 7};
    for (int dimension = 2; dimension <= 3; dimension++) {
        step_case c[4];
        for (int n = 0; n < 4; n++) {
            make_case(&c[n], dimension, MOVING_SOLID);
            c[n].scene.viscosity = 1e-3;
            case_create(&c[n], threads[n], 0.004);
            shake(&c[n], 2.0);
            case_run_through(&c[n], "extrapolate");
            size_t cells = (size_t)c[0].step->grid.block_cells,
                   values = ((size_t)c[0].step->grid.block_count - 1) * cells;
            for (int d = 0; d < dimension; d++) {
                assert_memory_equal(c[n].step->grid.fields[SK_FIELD_VELOCITY_X + d] + cells,
                                    c[0].step->grid.fields[SK_FIELD_VELOCITY_X + d] + cells, values * 4);
                assert_memory_equal(c[n].step->grid.fields[SK_FIELD_CHANGE_X + d] + cells,
                                    c[0].step->grid.fields[SK_FIELD_CHANGE_X + d] + cells, values * 4);
            }
            assert_memory_equal(c[n].step->grid.fields[SK_FIELD_POTENTIAL] + cells,
                                c[0].step->grid.fields[SK_FIELD_POTENTIAL] + cells, values * 4);
            assert_true(c[n].step->kernel_volume == c[0].step->kernel_volume);
        }
        for (int n = 3; n >= 0; n--)
            case_end(&c[n]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_divergence_is_left),
        cmocka_unit_test(the_largest_norm_is_a_change_of_volume),
        cmocka_unit_test(walls_stop_what_runs_into_them),
        cmocka_unit_test(the_surface_is_found_at_any_height),
        cmocka_unit_test(water_at_rest_has_its_pressure),
        cmocka_unit_test(a_solve_that_fails_says_so),
        cmocka_unit_test(the_same_bits_on_any_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
