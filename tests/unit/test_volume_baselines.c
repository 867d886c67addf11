/* The methods that implicit density projection is compared with. The terms in the pressure solve must leave exactly the
 * divergence they ask for; the pushes between particles are compared with a plain sum over all pairs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "step_cases.h"

static void run_phase(step_case *c, const char *phase)
{
    selkie_error error = {0};
    if (case_run(c, phase, &error) != SELKIE_OK)
        fail_msg("%s: %s", phase, error.message);
}

/* --- the density error as a divergence --- */

static double flux(const step_case *c, int d, const int cell[3])
{
    size_t index = case_cell(c, cell);
    double u = c->step->grid.fields[SK_FIELD_VELOCITY_X + d][index];
    return isnan(u) ? 0.0 : c->step->solids.fraction[d][case_solid_cell(c, index)] * u;
}

static int is_kind(const step_case *c, const int cell[3], sk_cell_kind kind)
{
    size_t index = case_cell(c, cell);
    return (c->step->grid.kinds[index] & SK_CELL_KIND_MASK) == kind;
}

static int beside_air(const step_case *c, const int cell[3])
{
    for (int n = 0; n < (c->step->dimension == 3 ? 27 : 9); n++) {
        const int other[3] = {cell[0] + n % 3 - 1, cell[1] + n / 3 % 3 - 1,
                              c->step->dimension == 3 ? cell[2] + n / 9 - 1 : 0};
        if (is_kind(c, other, SK_CELL_AIR))
            return 1;
    }
    return 0;
}

/* A tank half full whose liquid is then pressed down to `share` of its height around an obstacle. */
static void make_pressed(step_case *c, int dimension, selkie_volume volume, double share)
{
    case_begin(c, dimension, 20, 20, 12, 0.05);
    c->scene.volume = volume;
    c->scene.losasso.averaging_time = 0.4;
    c->scene.pressure.tolerance = 1e-6;
    c->scene.particles.arrangement = SELKIE_ARRANGEMENT_LATTICE;
    c->scene.liquid_count = 1;
    case_box(c, &c->liquids[0].shape, 0, 0, 0, 20, 12, 12);
    c->scene.obstacle_count = 1;
    case_ball(c, &c->obstacles[0].shape, 13, 4, 6, 2.6);
    case_create(c, 2, 0.02);
    sk_particles *particles = &c->step->particles;
    for (int64_t p = 0; p < particles->count; p++)
        particles->records[p].position[1] *= (float)share;
}

/* Divergence after the solve against what the density asks for, 1/s; returns the largest one asked for. */
static double check_divergence(const step_case *c, double duration)
{
    const sk_grid *grid = &c->step->grid;
    double largest = 0.0;
    int64_t cells = 0, thin = 0;
    FOR_DOMAIN(c)
    {
        const int cell[3] = {i, j, k};
        size_t index = case_cell(c, cell);
        if (!index || !is_kind(c, cell, SK_CELL_LIQUID) || !(grid->fields[SK_FIELD_DIAGONAL][index] > 0.0f))
            continue;
        double excess =
            (double)grid->fields[SK_FIELD_DENSITY][index] + c->step->solids.blurred[case_solid_cell(c, index)] - 1.0;
        if (excess < 0.0 && beside_air(c, cell))
            excess = 0.0, thin++;
        double divergence = 0.0;
        for (int d = 0; d < c->step->dimension; d++) {
            int next[3] = {i, j, k};
            next[d]++;
            divergence += (flux(c, d, next) - flux(c, d, cell)) / grid->cell_size;
        }
        if (!(fabs(divergence - excess / duration) < 2e-3))
            fail_msg("cell %d %d %d: the divergence is %g, not %g", i, j, k, divergence, excess / duration);
        largest = fmax(largest, excess / duration);
        cells++;
    }
    assert_true(cells > 100 && thin > 0);
    return largest;
}

static void velocity_gets_the_divergence_that_the_density_asks_for(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        step_case c;
        make_pressed(&c, dimension, SELKIE_VOLUME_EQ8, 0.8);
        case_run_through(&c, "pressure");
        double at_once = check_divergence(&c, 0.02);
        assert_true(at_once > 0.2 / 0.02); /* pressed by a quarter */
        case_end(&c);

        make_pressed(&c, dimension, SELKIE_VOLUME_LOSASSO, 0.8);
        case_run_through(&c, "pressure");
        double averaged = check_divergence(&c, 0.4);
        assert_true(fabs(averaged * 0.4 / 0.02 - at_once) < 1e-6 * at_once);
        case_end(&c);
    }
}

/* One step of Eq. 8 gives most of the volume back, the averaged form a part, plain FLIP nothing. */
static void pressed_liquid_expands(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        const selkie_volume methods[3] = {SELKIE_VOLUME_NONE, SELKIE_VOLUME_LOSASSO, SELKIE_VOLUME_EQ8};
        double gain[3];
        for (int m = 0; m < 3; m++) {
            step_case c;
            make_pressed(&c, dimension, methods[m], 0.9);
            case_run_through(&c, "advect");
            double before = c.step->kernel_volume;
            case_run_through(&c, "classify");
            gain[m] = c.step->kernel_volume / before - 1.0;
            case_end(&c);
        }
        assert_true(fabs(gain[0]) < 0.01);
        assert_true(gain[1] > gain[0] + 0.002 && gain[1] < 0.03);
        assert_true(gain[2] > 0.05 && gain[2] < 0.13);
    }
}

/* An averaging time below the step asks for no more than Eq. 8; before pressure.start nothing is asked for. */
static void terms_keep_their_bounds(void **state)
{
    (void)state;
    step_case c;
    make_pressed(&c, 2, SELKIE_VOLUME_LOSASSO, 0.8);
    c.world->relative->losasso.averaging_time = 1e-5;
    case_run_through(&c, "pressure");
    check_divergence(&c, 0.02);
    assert_int_equal(c.step->has_expansion, 0);
    c.world->relative->pressure.start = 1.0;
    case_run_through(&c, "volume_term");
    assert_int_equal(c.step->has_expansion, 0);
    case_end(&c);
}

/* --- particles that push each other --- */

/* An empty tank; its particles are set by the test. The bounds of the liquid only make room for them. */
static void make_tank(step_case *c, int dimension, selkie_volume volume, int per_cell, int threads)
{
    case_begin(c, dimension, 24, 20, 18, 0.1);
    c->scene.volume = volume;
    c->scene.particles.per_cell = per_cell;
    c->scene.ando.stiffness = 20.0;
    c->scene.sato.iterations = 1;
    c->scene.liquid_count = 1;
    case_box(c, &c->liquids[0].shape, 0, 0, 0, 24, 20, 18);
    case_create(c, threads, 0.01);
}

/* At random in a box, corners in cells. */
static void set_cloud(step_case *c, int count, double from, double to)
{
    sk_particles *particles = &c->step->particles;
    assert_true(count <= particles->count);
    particles->count = count;
    for (int p = 0; p < count; p++)
        for (int d = 0; d < 3; d++) {
            double at = from + (to - from) * sk_random_float(5, (uint64_t)p, (uint64_t)d);
            particles->records[p].position[d] = d < c->step->dimension ? (float)(at * c->step->grid.cell_size) : 0.0f;
            particles->records[p].velocity[d] = 0.0f;
        }
}

static double distance_of(const sk_particle *a, const sk_particle *b, double away[3])
{
    double squared = 0.0;
    for (int d = 0; d < 3; d++) {
        away[d] = (double)a->position[d] - b->position[d];
        squared += away[d] * away[d];
    }
    return sqrt(squared);
}

/* What a pair at this distance over the radius counts. */
static double weight_of_pair(double distance)
{
    return fmax(fmin(1.0 + 16.0 * (1.0 - distance), 1.0), 0.0);
}

/* The same laws, pair by pair in double; far from walls. */
static void push_all_pairs(const step_case *c, double radius, double (*moved)[3])
{
    const sk_particles *particles = &c->step->particles;
    int64_t n = particles->count;
    double *pairs = calloc((size_t)n, sizeof *pairs);
    double away[3];
    memset(moved, 0, (size_t)n * sizeof *moved);
    for (int64_t a = 0; a < n; a++)
        for (int64_t b = 0; b < n; b++)
            if (a != b) /* a pair counts less and less over a sixteenth beyond the radius */
                pairs[a] += weight_of_pair(distance_of(&particles->records[a], &particles->records[b], away) / radius);
    for (int64_t a = 0; a < n; a++)
        for (int64_t b = 0; b < n; b++) {
            double r = distance_of(&particles->records[a], &particles->records[b], away);
            if (a == b || r >= radius)
                continue;
            double push = 0.5 * (radius - r) / fmax(fmax(pairs[a], pairs[b]), 1.0);
            if (c->scene.volume == SELKIE_VOLUME_ANDO)
                push = c->scene.ando.stiffness * c->step->dt * radius * (1.0 - r * r / (radius * radius));
            for (int d = 0; d < 3; d++)
                moved[a][d] += push * away[d] / r;
        }
    free(pairs);
}

/* `per_cell` 1 with a radius of two spacings makes the search look two cells far. */
static void check_cloud(int dimension, selkie_volume volume, int per_cell, double radius, int count)
{
    step_case c;
    make_tank(&c, dimension, volume, per_cell, 2);
    c.world->relative->ando.radius = c.world->relative->sato.radius = radius;
    c.world->relative->ando.stiffness = c.scene.ando.stiffness = 4.0; /* below the bound of a cell a step */
    set_cloud(&c, count, 4, 15);
    run_phase(&c, "sort");
    run_phase(&c, "solids");
    sk_particle *before = malloc((size_t)count * sizeof *before);
    double(*moved)[3] = malloc((size_t)count * sizeof *moved), total[3] = {0, 0, 0}, sums[3];
    memcpy(before, c.step->particles.records, (size_t)count * sizeof *before);
    push_all_pairs(&c, radius * c.step->grid.cell_size * pow(per_cell, -1.0 / dimension), moved);
    memcpy(sums, c.step->positions, sizeof sums);
    run_phase(&c, "spacing");
    double farthest = 0.0, mean = 0.0;
    for (int p = 0; p < count; p++) {
        double squared = 0.0, squared_asked = 0.0;
        for (int d = 0; d < 3; d++) {
            double change = (double)c.step->particles.records[p].position[d] - before[p].position[d];
            squared_asked += moved[p][d] * moved[p][d];
            if (fabs(change - moved[p][d]) > 2e-6)
                fail_msg("particle %d in %dD moved by %g along %d, not by %g", p, dimension, change, d, moved[p][d]);
            total[d] += change;
            squared += change * change;
            assert_true(c.step->particles.records[p].velocity[d] == before[p].velocity[d]);
        }
        farthest = fmax(farthest, sqrt(squared_asked));
        mean += sqrt(squared) / count;
    }
    assert_true(farthest < c.step->grid.cell_size && mean > 1e-5);
    for (int d = 0; d < dimension; d++) {
        /* What one loses the other one gets. */
        assert_true(fabs(total[d]) < 1e-3 * mean * count);
        assert_true(fabs(c.step->positions[d] - sums[d] - total[d]) < 1e-9);
    }
    free(before);
    free(moved);
    case_end(&c);
}

static void pushes_are_the_sum_over_pairs(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int volume = SELKIE_VOLUME_ANDO; volume <= SELKIE_VOLUME_SATO; volume++) {
            int count = dimension == 2 ? 900 : 2000;
            check_cloud(dimension, (selkie_volume)volume, dimension == 2 ? 9 : 8, 1.1, count);
            check_cloud(dimension, (selkie_volume)volume, 1, 2.0, dimension == 2 ? 150 : 500);
        }
}

/* One sweep satisfies one constraint; particles in one place part as well, and their centre stays. */
static void pairs_part(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int volume = SELKIE_VOLUME_ANDO; volume <= SELKIE_VOLUME_SATO; volume++)
            for (int together = 0; together < 2; together++) {
                step_case c;
                make_tank(&c, dimension, (selkie_volume)volume, dimension == 2 ? 9 : 8, 1);
                set_cloud(&c, 2, 10, 10);
                sk_particle *pair = c.step->particles.records;
                if (!together)
                    pair[1].position[0] += 0.002f;
                run_phase(&c, "sort");
                run_phase(&c, "solids");
                pair = c.step->particles.records;
                double centre[3], away[3], before = distance_of(&pair[0], &pair[1], away);
                for (int d = 0; d < 3; d++)
                    centre[d] = 0.5 * ((double)pair[0].position[d] + pair[1].position[d]);
                run_phase(&c, "spacing");
                double after = distance_of(&pair[0], &pair[1], away), spacing = 0.1 / (dimension == 2 ? 3 : 2);
                double radius = 1.1 * spacing, expected = 0.8 * spacing;
                if (volume == SELKIE_VOLUME_ANDO)
                    expected = before + 2.0 * 20.0 * 0.01 * radius * (1.0 - before * before / (radius * radius));
                assert_true(fabs(after - expected) < 1e-6);
                for (int d = 0; d < 3; d++)
                    assert_true(fabs(0.5 * ((double)pair[0].position[d] + pair[1].position[d]) - centre[d]) < 2e-7);
                case_end(&c);
            }
}

/* A lattice fills the whole tank: each push has its opposite, and walls push as liquid would. */
static void lattices_stay(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int volume = SELKIE_VOLUME_ANDO; volume <= SELKIE_VOLUME_SATO; volume++) {
            step_case c;
            case_begin(&c, dimension, 18, 12, 10, 0.1);
            c.scene.volume = (selkie_volume)volume;
            c.scene.particles.arrangement = SELKIE_ARRANGEMENT_LATTICE;
            c.scene.liquid_count = 1;
            case_box(&c, &c.liquids[0].shape, 0, 0, 0, 18, 12, 10);
            case_create(&c, 2, 0.02);
            run_phase(&c, "sort");
            run_phase(&c, "solids");
            int64_t count = c.step->particles.count;
            sk_particle *before = malloc((size_t)count * sizeof *before);
            memcpy(before, c.step->particles.records, (size_t)count * sizeof *before);
            run_phase(&c, "spacing");
            for (int64_t p = 0; p < count; p++) {
                double away[3], moved = distance_of(&c.step->particles.records[p], &before[p], away);
                assert_true(volume == SELKIE_VOLUME_SATO ? moved == 0.0 : moved < 1e-6);
            }
            free(before);
            case_end(&c);
        }
}

/* Crowded into a corner between two walls and an obstacle, stiffly: they stay in the tank and out of the obstacle. */
static void solids_hold(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int volume = SELKIE_VOLUME_ANDO; volume <= SELKIE_VOLUME_SATO; volume++) {
            step_case c;
            case_begin(&c, dimension, 24, 20, 18, 0.1);
            c.scene.volume = (selkie_volume)volume;
            c.scene.ando.stiffness = 1e5;
            c.scene.sato.iterations = 5;
            c.scene.obstacle_count = 1;
            case_ball(&c, &c.obstacles[0].shape, 2, 2, 2, 1.4);
            c.scene.domain.walls[0] = SELKIE_WALL_OPEN;
            c.scene.liquid_count = 1;
            case_box(&c, &c.liquids[0].shape, 0, 0, 0, 24, 20, 18);
            case_create(&c, 2, 0.02);
            set_cloud(&c, 600, 0.05, 1.3);
            for (int repeat = 0; repeat < 3; repeat++) {
                run_phase(&c, "sort");
                run_phase(&c, "solids");
                run_phase(&c, "spacing");
            }
            assert_int_equal(c.step->particles.count, 600);
            for (int p = 0; p < 600; p++) {
                const float *x = c.step->particles.records[p].position;
                double point[3] = {x[0], x[1], x[2]}, normal[3];
                int obstacle;
                assert_true(sk_solids_distance(&c.step->solids, point, normal, &obstacle) > -1e-6);
                assert_true(x[0] > 0.0f && x[1] > 0.0f);
            }
            case_end(&c);
        }
}

/* Far more than fits, all in one place: bounded work, and no two stay together for long. */
static void collapsed_liquid_is_no_trap(void **state)
{
    (void)state;
    for (int volume = SELKIE_VOLUME_ANDO; volume <= SELKIE_VOLUME_SATO; volume++) {
        step_case c;
        make_tank(&c, 3, (selkie_volume)volume, 8, 2);
        set_cloud(&c, 30000, 9.5, 9.5);
        for (int repeat = 0; repeat < 4; repeat++) {
            run_phase(&c, "sort");
            run_phase(&c, "solids");
            run_phase(&c, "spacing");
        }
        double spread = 0.0;
        for (int p = 0; p < 30000; p++)
            for (int d = 0; d < 3; d++) {
                float x = c.step->particles.records[p].position[d];
                assert_true(x > 0.0f && x < 2.4f);
                spread += fabs(x - 0.95) / 90000;
            }
        assert_true(spread > 0.005);
        case_end(&c);
    }
}

/* No time, no pressure: no push. */
static void nothing_moves_before_the_start(void **state)
{
    (void)state;
    for (int volume = SELKIE_VOLUME_ANDO; volume <= SELKIE_VOLUME_SATO; volume++) {
        step_case c;
        make_tank(&c, 2, (selkie_volume)volume, 9, 2);
        set_cloud(&c, 400, 8, 10);
        run_phase(&c, "sort");
        run_phase(&c, "solids");
        sk_particle before[400];
        memcpy(before, c.step->particles.records, sizeof before);
        c.world->relative->pressure.start = 1.0;
        run_phase(&c, "spacing");
        assert_memory_equal(before, c.step->particles.records, sizeof before);
        c.world->relative->pressure.start = 0.0;
        c.step->dt = 0.0;
        run_phase(&c, "spacing");
        assert_memory_equal(before, c.step->particles.records, sizeof before);
        case_end(&c);
    }
}

/* --- all of them --- */

static void threads_leave_no_trace(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int volume = SELKIE_VOLUME_EQ8; volume <= SELKIE_VOLUME_SATO; volume++) {
            sk_particle *first = NULL;
            int64_t count = 0;
            for (int threads = 1; threads <= 3; threads += 2) {
                step_case c;
                case_begin(&c, dimension, 20, 20, 12, 0.05);
                c.scene.volume = (selkie_volume)volume;
                c.scene.time.step = 0.01;
                c.scene.obstacle_count = 1;
                case_ball(&c, &c.obstacles[0].shape, 13, 4, 6, 2.6);
                c.scene.liquid_count = 1;
                case_box(&c, &c.liquids[0].shape, 0, 0, 0, 9, 14, 12);
                case_create(&c, threads, 0.0);
                selkie_error error = {0};
                for (int n = 0; n < 6; n++)
                    if (selkie_world_step(c.world, &error) != SELKIE_OK)
                        fail_msg("%s", error.message);
                size_t bytes = (size_t)c.step->particles.count * sizeof *first;
                if (threads == 1) {
                    count = c.step->particles.count;
                    first = malloc(bytes);
                    memcpy(first, c.step->particles.records, bytes);
                }
                assert_int_equal(c.step->particles.count, count);
                assert_memory_equal(first, c.step->particles.records, bytes);
                case_end(&c);
            }
            free(first);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(velocity_gets_the_divergence_that_the_density_asks_for),
        cmocka_unit_test(pressed_liquid_expands),
        cmocka_unit_test(terms_keep_their_bounds),
        cmocka_unit_test(pushes_are_the_sum_over_pairs),
        cmocka_unit_test(pairs_part),
        cmocka_unit_test(lattices_stay),
        cmocka_unit_test(solids_hold),
        cmocka_unit_test(collapsed_liquid_is_no_trap),
        cmocka_unit_test(nothing_moves_before_the_start),
        cmocka_unit_test(threads_leave_no_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
