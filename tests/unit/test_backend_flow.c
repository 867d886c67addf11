/* The phases that work on cells and faces, tuned and plain, on the same states.
 *
 * Both forms do the same operations on the same values, but a compiler may fuse a product and a sum in one and not in
 * the other. So a coefficient or a right side differs by a few roundings of its terms, and sums over cells by their
 * order. Behind a solve both are within its tolerance of the solution, and since a projection does not lengthen any
 * field of velocities, differences of the right side stay as small as they were. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>

#include "backend_cases.h"
#include "step_cases.h"

typedef enum flow_solids { NO_SOLIDS, STATIC_SOLIDS, MOVING_SOLIDS } flow_solids;

/* A column of liquid that falls apart in a tank, among solids. */
static void dam(step_case *c, int dimension, flow_solids solids)
{
    case_begin(c, dimension, 24, 20, 12, 0.05);
    c->scene.liquid_count = 1;
    case_box(c, &c->liquids[0].shape, 0, 0, 0, 11, 14, 12);
    if (solids == NO_SOLIDS)
        return;
    c->scene.obstacle_count = 2;
    case_ball(c, &c->obstacles[0].shape, 13.2, 4.1, 6.3, 2.6);
    case_box(c, &c->obstacles[1].shape, 4.3, -1, -1, 6.6, 3.4, 30);
    c->obstacles[1].surface = SELKIE_WALL_NO_SLIP;
    if (solids == STATIC_SOLIDS)
        return;
    c->obstacles[0].velocity[0] = -0.9;
    c->obstacles[0].velocity[1] = 0.3;
    c->obstacles[0].angular_velocity[2] = 3.0;
    for (int d = 0; d < dimension; d++)
        c->obstacles[0].center[d] = c->obstacles[0].shape.center[d];
}

/* A tank without air. */
static void cavity(step_case *c, int dimension)
{
    case_begin(c, dimension, 12, 10, 9, 0.05);
    c->scene.liquid_count = 1;
    case_box(c, &c->liquids[0].shape, 0, 0, 0, 12, 10, 9);
}

/* Runs a check on dams with all kinds of solids, both surfaces, in 2D and 3D. */
static void each_dam(const char *phase, const backend_bounds *bounds)
{
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int solids = NO_SOLIDS; solids <= MOVING_SOLIDS; solids++)
            for (int voxel = 0; voxel < 2; voxel++) {
                step_case c;
                dam(&c, dimension, (flow_solids)solids);
                c.scene.pressure.surface = voxel ? SELKIE_SURFACE_VOXEL : SELKIE_SURFACE_GHOST_FLUID;
                backend_check_scene(&c.scene, 6, phase, bounds);
            }
}

/* Sums of at most 1e5 cells in double precision, in another order. */
static const double other_order = 1e5 * DBL_EPSILON;

static void test_classify(void **state)
{
    (void)state;
    const backend_bounds bounds = {.sums = other_order};
    each_dam("classify", &bounds);
    for (int dimension = 2; dimension <= 3; dimension++) {
        step_case c;
        cavity(&c, dimension);
        backend_check_scene(&c.scene, 3, "classify", &bounds);
    }
}

static void with_forces(step_case *c)
{
    static selkie_force_def forces[1];
    selkie_force_defaults(&forces[0], SELKIE_FORCE_VORTEX);
    forces[0].radius = 0.4;
    forces[0].spin = 30.0;
    for (int d = 0; d < c->scene.domain.dimension; d++)
        forces[0].point[d] = 0.3;
    forces[0].axis[2] = 1.0;
    c->scene.forces = forces;
    c->scene.force_count = 1;
}

static void test_forces(void **state)
{
    (void)state;
    const backend_bounds same = {0};
    for (int dimension = 2; dimension <= 3; dimension++) {
        step_case c;
        dam(&c, dimension, MOVING_SOLIDS);
        with_forces(&c);
        backend_check_scene(&c.scene, 4, "forces", &same);
    }
}

/* Rows and right sides of the unknowns: sums of at most six terms. Cells that are no unknowns count for nothing. */
static void compare_systems(const backend_pair *pair, double right_side_bound)
{
    const sk_grid *a = &pair->worlds[0]->step.grid, *b = &pair->worlds[1]->step.grid;
    const float *diagonal = a->fields[SK_FIELD_DIAGONAL];
    const size_t cells = (size_t)a->block_cells, end = (size_t)a->block_count * cells;
    for (size_t c = cells; c < end; c++) {
        if (!(diagonal[c] > 0.0f)) {
            assert_true(b->fields[SK_FIELD_DIAGONAL][c] == diagonal[c]);
            continue;
        }
        for (int f = SK_FIELD_FACE_X; f <= SK_FIELD_RIGHT_SIDE; f++) {
            if (!a->fields[f] || f == SK_FIELD_DENSITY || f == SK_FIELD_FILL || f == SK_FIELD_DEPTH)
                continue;
            const double bound = f == SK_FIELD_RIGHT_SIDE ? right_side_bound : 6 * FLT_EPSILON * (double)diagonal[c];
            const double one = (double)a->fields[f][c], other = (double)b->fields[f][c];
            if (!(fabs(one - other) <= bound))
                fail_msg("field %d of cell %zu of block %zu: %.9g tuned, %.9g plain", f, c % cells, c / cells, one,
                         other);
        }
    }
}

static void check_solve(const selkie_scene *scene, int steps, const char *phase, const backend_bounds *bounds,
                        double right_side_bound)
{
    backend_pair pair;
    backend_begin(&pair, scene, steps);
    backend_check(&pair, phase, bounds);
    compare_systems(&pair, right_side_bound);
    backend_end(&pair);
}

/* What a phase with a solve leaves undefined: coefficients and right sides of cells that are no unknowns. */
#define SYSTEM_FIELDS (BACKEND_FACES | BACKEND_FIELD(SK_FIELD_DIAGONAL) | BACKEND_FIELD(SK_FIELD_RIGHT_SIDE))

/* Speeds in the dams stay below this, m/s: a fall of 14 cells. */
static const double speed = 4.0;

/* What is asked of the solves, relative. */
static const double tolerance = 1e-8;

/* A projection does not lengthen a field of velocities, so that its largest difference is at most the length of the
 * whole field of differences: six roundings on each of at most 3e4 faces. A residual comes out as velocity over the
 * root of the least eigenvalue, (pi / 48)^2 where liquid is 24 cells deep. */
static const double most_faces = 3e4, residual_to_velocity = 15.3;

static double projected_bound(void)
{
    return (6 * FLT_EPSILON + 2 * tolerance * residual_to_velocity) * speed * sqrt(most_faces);
}

static void test_pressure(void **state)
{
    (void)state;
    backend_bounds bounds = {.velocity = projected_bound(), .sums = 1e-5, .iterations = 1, .scratch = SYSTEM_FIELDS};
    /* The potential is a sum of differences over at most 24 cells. */
    bounds.field[SK_FIELD_POTENTIAL] = 24 * projected_bound();
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int solids = NO_SOLIDS; solids <= MOVING_SOLIDS; solids++)
            for (int voxel = 0; voxel < 2; voxel++) {
                step_case c;
                dam(&c, dimension, (flow_solids)solids);
                c.scene.pressure.surface = voxel ? SELKIE_SURFACE_VOXEL : SELKIE_SURFACE_GHOST_FLUID;
                c.scene.pressure.tolerance = tolerance;
                check_solve(&c.scene, 6, "pressure", &bounds, 6 * FLT_EPSILON * speed);
            }
    for (int dimension = 2; dimension <= 3; dimension++) {
        step_case c;
        cavity(&c, dimension);
        c.scene.pressure.tolerance = tolerance;
        check_solve(&c.scene, 3, "pressure", &bounds, 6 * FLT_EPSILON * speed);
    }
}

/* A tank over a slot: the jet leaves the walls of the slot behind its upper edges. */
static void slot(step_case *c, int dimension)
{
    case_begin(c, dimension, 24, 20, 12, 0.05);
    c->scene.liquid_count = 1;
    case_box(c, &c->liquids[0].shape, 0, 8, 0, 24, 19, 12);
    c->scene.obstacle_count = 2;
    case_box(c, &c->obstacles[0].shape, -1, 6, -1, 9, 8, 30);
    case_box(c, &c->obstacles[1].shape, 15.3, 6, -1, 30, 8, 30);
}

static void test_vents(void **state)
{
    (void)state;
    backend_bounds bounds = {.velocity = projected_bound(), .sums = 1e-5, .iterations = 1, .scratch = SYSTEM_FIELDS};
    const backend_bounds classified = {.sums = other_order};
    bounds.field[SK_FIELD_POTENTIAL] = 24 * projected_bound();
    for (int dimension = 2; dimension <= 3; dimension++) {
        step_case c;
        backend_pair pair;
        slot(&c, dimension);
        c.scene.pressure.tolerance = tolerance;
        backend_begin(&pair, &c.scene, 8);
        size_t count = 0;
        selkie_error error = {0};
        assert_int_equal(sk_solids_list_vents(&pair.worlds[0]->step.solids, &count, &error), SELKIE_OK);
        assert_true(count > 0 || SANITIZED); /* two steps are too few */
        backend_end(&pair);
        check_solve(&c.scene, 8, "pressure", &bounds, 6 * FLT_EPSILON * speed);
        backend_check_scene(&c.scene, 8, "classify", &classified);
    }
}

static void test_pressure_starts_later(void **state)
{
    (void)state;
    /* What is left is the reflection: a product and a sum of velocities, which the tuned form may fuse. */
    const backend_bounds rounded = {.velocity = FLT_EPSILON * speed, .scratch = SYSTEM_FIELDS};
    step_case c;
    dam(&c, 2, MOVING_SOLIDS);
    c.scene.pressure.start = 10.0;
    backend_check_scene(&c.scene, 3, "pressure", &rounded);
}

static void test_viscosity(void **state)
{
    (void)state;
    /* The solution is a mean of the right side's velocities; it is solved to 1e-5, relative. */
    backend_bounds bounds = {.velocity = projected_bound() + 2 * 1e-5 * speed,
                             .iterations = 1,
                             .scratch = SYSTEM_FIELDS | BACKEND_FIELD(SK_FIELD_POTENTIAL)};
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int solids = NO_SOLIDS; solids <= MOVING_SOLIDS; solids++) {
            step_case c;
            dam(&c, dimension, (flow_solids)solids);
            c.scene.viscosity = 0.5;
            backend_check_scene(&c.scene, 4, "viscosity", &bounds);
            if (solids != NO_SOLIDS) /* one of them is no-slip */
                backend_check_scene(&c.scene, 4, "balance", &bounds);
        }
}

/* Oil falls into water. */
static void test_two_densities(void **state)
{
    (void)state;
    static selkie_material_def materials[2];
    backend_bounds bounds = {
        .velocity = 2 * projected_bound(), .sums = 1e-5, .iterations = 1, .scratch = SYSTEM_FIELDS};
    bounds.field[SK_FIELD_POTENTIAL] = 24 * projected_bound();
    for (int dimension = 2; dimension <= 3; dimension++) {
        step_case c;
        dam(&c, dimension, STATIC_SOLIDS);
        for (int m = 0; m < 2; m++)
            selkie_material_defaults(&materials[m]);
        materials[0].name = c.liquids[0].material = "water";
        materials[1].name = c.liquids[1].material = "oil";
        materials[1].density = 500.0;
        c.scene.materials = materials;
        c.scene.material_count = c.scene.liquid_count = 2;
        case_box(&c, &c.liquids[1].shape, 8, 2, 0, 19, 16, 12);
        c.scene.pressure.tolerance = tolerance;
        check_solve(&c.scene, 5, "pressure", &bounds, 6 * FLT_EPSILON * speed);
        materials[0].viscosity = materials[1].viscosity = 0.5;
        backend_bounds slow = {.velocity = projected_bound() + 2 * 1e-5 * speed,
                               .iterations = 1,
                               .scratch = SYSTEM_FIELDS | BACKEND_FIELD(SK_FIELD_POTENTIAL)};
        backend_check_scene(&c.scene, 3, "viscosity", &slow);
    }
}

static void test_volume_terms(void **state)
{
    (void)state;
    /* density + solids - 1, times h / T. */
    backend_bounds bounds = {.relative = 4 * FLT_EPSILON};
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int losasso = 0; losasso < 2; losasso++) {
            step_case c;
            dam(&c, dimension, STATIC_SOLIDS);
            c.scene.volume = losasso ? SELKIE_VOLUME_LOSASSO : SELKIE_VOLUME_EQ8;
            backend_check_scene(&c.scene, 5, "volume_term", &bounds);
            /* The pressure takes the expansion. */
            backend_bounds solved = {
                .velocity = projected_bound(), .sums = 1e-5, .iterations = 1, .scratch = SYSTEM_FIELDS};
            solved.field[SK_FIELD_POTENTIAL] = 24 * projected_bound();
            c.scene.pressure.tolerance = tolerance;
            check_solve(&c.scene, 5, "pressure", &solved, 8 * FLT_EPSILON * speed);
        }
}

/* --- implicit density projection --- */

/* Displacements are at most a cell. Lifting one over its neighbours adds a quarter of 1.5 times up to eight of them.
 * What is left of the solve's error is at most its tolerance in each of the cells. */
static const double density_tolerance = 1e-8;

static double displacement_bound(void)
{
    return 4 * (6 * FLT_EPSILON + 2 * density_tolerance * residual_to_velocity) * sqrt(most_faces);
}

static backend_bounds correction_bounds(const step_case *c)
{
    backend_bounds bounds = {.position = displacement_bound() * c->scene.domain.cell_size,
                             .velocity = displacement_bound(),
                             .sums = 1e-5,
                             .iterations = 1,
                             .scratch = SYSTEM_FIELDS};
    bounds.field[SK_FIELD_POTENTIAL] = 24 * displacement_bound();
    return bounds;
}

/* A column with one place in which particles are far too close (squeeze), or that a ball runs into. */
static void squeezed(step_case *c, int dimension, flow_solids solids)
{
    dam(c, dimension, solids);
    c->scene.volume = SELKIE_VOLUME_IDP;
    c->scene.idp.settle = 0;
    c->scene.idp.tolerance = density_tolerance;
    if (solids == MOVING_SOLIDS) {
        case_ball(c, &c->obstacles[0].shape, 14, 5, 6, 3.4);
        c->obstacles[0].velocity[0] = -9.0;
        c->scene.time.step = 0.02;
        c->scene.idp.solids = SELKIE_IDP_PUSH_OUT;
    }
}

static void squeeze(sk_step *step)
{
    const float centre[3] = {0.38f, 0.33f, 0.31f};
    for (int64_t p = 0; p < step->particles.count; p++) {
        float *x = step->particles.records[p].position;
        int near = 1;
        for (int d = 0; d < step->dimension; d++)
            near &= fabsf(x[d] - centre[d]) < 0.19f;
        for (int d = 0; near && d < step->dimension; d++)
            x[d] = centre[d] + 0.45f * (x[d] - centre[d]);
    }
    sk_particles_moved(&step->particles);
}

static void run_phase(selkie_world *world, int p)
{
    selkie_error error = {0};
    if (sk_phase_run(&world->phases[p], &world->step, &error) != SELKIE_OK)
        fail_msg("%s: %s", world->phases[p].name, error.message);
}

/* A phase of the correction in pass number `pass` (from 0) of the step after `steps` others; of the first step if it is
 * to start squeezed. Returns what it found in the tuned world. */
static sk_step check_pass(const selkie_scene *scene, int steps, const char *phase, int pass,
                          const backend_bounds *bounds)
{
    backend_pair pair;
    backend_begin(&pair, scene, steps);
    const int first = backend_find(&pair, "density", 0), last = backend_find(&pair, "solids_again", 0),
              p = backend_find(&pair, phase, 0);
    for (int w = 0; w < 2; w++) {
        if (!steps)
            squeeze(&pair.worlds[w]->step);
        backend_run_up_to(pair.worlds[w], first);
        for (int n = 0; n < pass; n++) {
            for (int q = first; q <= last; q++)
                run_phase(pair.worlds[w], q);
            assert_true(pair.worlds[w]->step.correct_again);
        }
        for (int q = first; q < p; q++)
            run_phase(pair.worlds[w], q);
    }
    backend_run_forms(&pair, p);
    backend_compare(&pair, phase, bounds);
    sk_step found = pair.worlds[0]->step;
    backend_end(&pair);
    return found;
}

static void test_density_projection(void **state)
{
    (void)state;
    int64_t pushed_out = 0;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int solids = NO_SOLIDS; solids <= MOVING_SOLIDS; solids++) {
            step_case c;
            squeezed(&c, dimension, (flow_solids)solids);
            const backend_bounds bounds = correction_bounds(&c);
            assert_true(check_pass(&c.scene, 0, "density_correct", 0, &bounds).redistributed > 0);
            pushed_out += check_pass(&c.scene, 2, "density_correct", 0, &bounds).pushed_out;
            c.scene.idp.evenness = 0.3;
            c.scene.pressure.surface = SELKIE_SURFACE_VOXEL;
            check_pass(&c.scene, 4, "density_correct", 0, &bounds);
        }
    assert_true(pushed_out > 0);
}

static void test_further_passes(void **state)
{
    (void)state;
    const backend_bounds classified = {.sums = other_order};
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int solids = NO_SOLIDS; solids <= STATIC_SOLIDS; solids++) {
            step_case c;
            squeezed(&c, dimension, (flow_solids)solids);
            const backend_bounds bounds = correction_bounds(&c);
            for (int pass = 1; pass <= 2; pass++)
                check_pass(&c.scene, 0, "density_correct", pass, &bounds);
            check_pass(&c.scene, 0, "density_classify", 0, &classified);
            check_pass(&c.scene, 0, "density_classify", 1, &classified);
        }
}

/* --- unilateral incompressibility --- */

/* No block of these dams ends one cell before an upper wall: there the shifts of the two forms differ near obstacles
 * (face_room in uic_plain_dim.c). */
static void unilateral(step_case *c, int dimension, flow_solids solids)
{
    dam(c, dimension, solids);
    c->scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    c->scene.unilateral.density_correction = 1;
    c->scene.unilateral.tolerance = density_tolerance;
}

/* The predicted density of a cell: weights of up to 100 particles, each at most 1 / particles per cell, added in
 * another order; and their places, rounded in m, which a weight follows in cells. */
static double predicted_bound(const step_case *c)
{
    const double domain = 24 * c->scene.domain.cell_size, most = 4.0, particles = 100.0;
    return particles * FLT_EPSILON * (most + 2.0 * domain / c->scene.domain.cell_size / 8.0);
}

/* The projection onto a cone does not lengthen differences either. */
static backend_bounds unilateral_bounds(const step_case *c, const char *phase)
{
    backend_bounds bounds = correction_bounds(c);
    const int particles = c->scene.unilateral.prediction == SELKIE_PREDICTION_PARTICLES;
    bounds.velocity = projected_bound();
    bounds.field[SK_FIELD_PREDICTED] = particles ? predicted_bound(c) : 6 * FLT_EPSILON * 4.0;
    /* Further passes of the correction predict in the blocks that they want alone. */
    if (particles && strcmp(phase, "density_correct") == 0)
        bounds.scratch |= BACKEND_FIELD(SK_FIELD_PREDICTED);
    for (int d = 0; d < 3; d++) {
        bounds.field[SK_FIELD_SHIFT_X + d] = displacement_bound();
        bounds.field[SK_FIELD_FACE_DENSITY_X + d] = 6 * FLT_EPSILON * 4.0;
    }
    return bounds;
}

/* Says how many passes the correction took at most. */
static int each_unilateral(const char *phase, int steps, void (*set)(step_case *c))
{
    int passes = 0;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int solids = NO_SOLIDS; solids <= MOVING_SOLIDS; solids++) {
            step_case c;
            unilateral(&c, dimension, (flow_solids)solids);
            if (set)
                set(&c);
            if (strcmp(phase, "density_correct") == 0 && !c.scene.unilateral.density_correction)
                continue;
            const backend_bounds bounds = unilateral_bounds(&c, phase);
            backend_pair pair;
            backend_begin(&pair, &c.scene, steps);
            backend_check(&pair, phase, &bounds);
            if (strcmp(phase, "pressure") == 0)
                compare_systems(&pair, 6 * FLT_EPSILON * 4.0);
            passes = pair.worlds[0]->step.density_passes > passes ? pair.worlds[0]->step.density_passes : passes;
            backend_end(&pair);
        }
    return passes;
}

/* In 3D the scene refuses it beside a density correction. */
static void by_flux(step_case *c)
{
    c->scene.unilateral.prediction = SELKIE_PREDICTION_FLUX;
    c->scene.unilateral.density_correction = c->scene.domain.dimension == 2;
}

static void with_suction(step_case *c)
{
    c->scene.unilateral.suction = 1;
    c->scene.unilateral.suction_pressure = 2000.0;
    c->scene.unilateral.flight = SELKIE_FLIGHT_OWN;
}

static void with_tension(step_case *c)
{
    c->scene.surface_tension = 50.0; /* beside gravity at these cells like water's at a millimetre */
    c->scene.contact_angle = 60.0;
}

static void with_viscosity(step_case *c)
{
    c->scene.viscosity = 0.5;
    c->scene.domain.walls[0] = c->scene.domain.walls[2] = SELKIE_WALL_NO_SLIP;
}

static void with_viscosity_and_tension(step_case *c)
{
    with_viscosity(c);
    with_tension(c);
}

static void with_tension_by_flux(step_case *c)
{
    with_tension(c);
    by_flux(c);
}

static void test_unilateral_correction(void **state)
{
    (void)state;
    /* Passes repeat once liquid has hit the floor, which takes more steps than the sanitized build runs. */
    assert_true(each_unilateral("density_correct", 6, NULL) > 1 || SANITIZED);
    each_unilateral("density_correct", 6, by_flux);
    each_unilateral("shift", 6, NULL);
    step_case c;
    unilateral(&c, 3, MOVING_SOLIDS);
    const backend_bounds same = {0};
    backend_check_scene(&c.scene, 3, "solids", &same);
}

static void test_unilateral_pressure(void **state)
{
    (void)state;
    each_unilateral("classify", 6, NULL);
    /* Not after six steps: a particle is then in the middle of its cell to the last bit, where the shift jumps by 0.02
     * cells. */
    each_unilateral("predict", 7, NULL);
    each_unilateral("predict", 7, by_flux);
    each_unilateral("pressure", 6, NULL);
    each_unilateral("pressure", 6, with_suction);
    each_unilateral("pressure", 4, with_tension);
    each_unilateral("pressure", 2, with_tension_by_flux);
    each_unilateral("balance", 4, with_viscosity);
    each_unilateral("balance", 4, with_viscosity_and_tension);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classify),
        cmocka_unit_test(test_forces),
        cmocka_unit_test(test_pressure),
        cmocka_unit_test(test_vents),
        cmocka_unit_test(test_pressure_starts_later),
        cmocka_unit_test(test_viscosity),
        cmocka_unit_test(test_two_densities),
        cmocka_unit_test(test_volume_terms),
        cmocka_unit_test(test_density_projection),
        cmocka_unit_test(test_further_passes),
        cmocka_unit_test(test_unilateral_correction),
        cmocka_unit_test(test_unilateral_pressure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
