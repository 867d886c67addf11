/* SPH and particle spacing, tuned and plain: each phase on the same state, and whole steps.
 *
 * Where bounds come from: both forms add up the same terms in another order and contract products and sums differently.
 * A sum of n terms then differs by at most (n + c) epsilon times the sum of their magnitudes; c counts the operations
 * that make a term. */
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend_cases.h"
#include "methods/sph/sph.h"
#include "methods/sph/sph_list_kernels.h"
#include "step_cases.h"

enum { TERM = 16 }; /* operations of a term */

/* --- Scenes --- */

typedef struct variant {
    const char *name;
    selkie_sph_kernel kernel;
    selkie_sph_solver solver;
    selkie_sph_tension surface_tension;
    double viscosity, xsph; /* m2/s, 1 */
    int wide;
    double sigma; /* N/m */
} variant;

static const variant variants[] = {
    {"accelerated", SELKIE_SPH_CUBIC, SELKIE_SPH_ACCELERATED, SELKIE_TENSION_NONE, 0.0, 0.0, 0, 0.0},
    {"iisph, becker, xsph", SELKIE_SPH_WENDLAND, SELKIE_SPH_IISPH, SELKIE_TENSION_BECKER, 0.0, 0.1, 0, 0.0},
    {"akinci, viscosity", SELKIE_SPH_CUBIC, SELKIE_SPH_ACCELERATED, SELKIE_TENSION_AKINCI, 0.002, 0.0, 0, 0.0},
    {"wide, implicit viscosity", SELKIE_SPH_WENDLAND, SELKIE_SPH_ACCELERATED, SELKIE_TENSION_NONE, 3.0, 0.0, 1, 0.0},
    {"surface tension", SELKIE_SPH_CUBIC, SELKIE_SPH_ACCELERATED, SELKIE_TENSION_NONE, 0.0, 0.0, 0, 5.0},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

/* A column of liquid that falls apart in a tank, onto a ball that it sticks to. */
static void sph_dam(step_case *c, int dimension, const variant *v)
{
    case_begin(c, dimension, 20, 16, 6, 0.05);
    c->scene.discretization = SELKIE_DISCRETIZATION_SPH;
    c->scene.liquid_count = 1;
    case_box(c, &c->liquids[0].shape, 0, 0, 0, 7, 11, 6);
    c->scene.obstacle_count = 1;
    case_ball(c, &c->obstacles[0].shape, 8.5, 4, 3, 1.6);
    c->obstacles[0].surface = SELKIE_WALL_NO_SLIP;
    c->scene.particles.arrangement = SELKIE_ARRANGEMENT_JITTERED;
    c->scene.sph.kernel = v->kernel;
    c->scene.sph.solver = v->solver;
    c->scene.sph.surface_tension = v->surface_tension;
    c->scene.sph.tension = v->surface_tension == SELKIE_TENSION_NONE ? 0.0 : 0.5;
    c->scene.sph.xsph = v->xsph;
    c->scene.surface_tension = v->sigma;
    c->scene.viscosity = v->viscosity;
}

static void begin(backend_pair *pair, step_case *c, int dimension, const variant *v)
{
    sph_dam(c, dimension, v);
    backend_begin(pair, &c->scene, 3);
    for (int w = 0; w < 2; w++)
        pair->worlds[w]->step.sph->always_wide = v->wide;
    print_message("%dD %s: ", dimension, v->name);
}

static double largest(const float *values, size_t count)
{
    double most = 0.0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, fabs((double)values[i]));
    return most;
}

static uint32_t most_neighbours(const sk_sph *sph, int64_t count)
{
    uint32_t most = 0;
    for (int64_t i = 0; i < count; i++)
        most = sph->number[i] > most ? sph->number[i] : most;
    return most;
}

/* Runs the phases before one in both worlds. Returns its index. */
static int run_up_to(backend_pair *pair, const char *phase, sk_phase_function forms[SK_BACKEND_COUNT])
{
    const int p = backend_find(pair, phase, 0);
    backend_forms(pair->worlds[0], p, forms);
    assert_true(forms[SK_BACKEND_PLAIN] && forms[SK_BACKEND_PLAIN] != forms[SK_BACKEND_TUNED]);
    for (int w = 0; w < 2; w++)
        backend_run_up_to(pair->worlds[w], p);
    backend_align(pair);
    return p;
}

static void run_both(backend_pair *pair, sk_phase_function forms[SK_BACKEND_COUNT], int p)
{
    for (int w = 0; w < 2; w++)
        backend_run_form(pair->worlds[w], p, forms[w]);
}

/* --- Lists --- */

/* What the lists of two worlds say of a particle. */
typedef struct list_difference {
    double gradients, apart; /* sums of |gradient| and of |difference| over the components */
    double squares;          /* sum of |gradient| |difference| */
} list_difference;

/* Entry by entry. Half precision rounds a gradient to one of two neighbours, 2^-10 apart; before that it has the error
 * of slope(q) / q times a difference, where 24 (1/2 - q)^2 - 6 (1 - q)^2 cancels: an error of some epsilons of the
 * largest gradient, which is about 1. */
static list_difference compare_entries(const backend_pair *pair, int64_t i, int wide)
{
    const sk_sph *a = pair->worlds[0]->step.sph, *b = pair->worlds[1]->step.sph;
    const char *lists[2] = {a->lists + (size_t)a->first[i] * SK_SPH_LINE_BYTES,
                            b->lists + (size_t)b->first[i] * SK_SPH_LINE_BYTES};
    const double rounding = wide ? 0.0 : 0x1p-10, least = (wide ? 0.0 : 0x1p-24) + 4 * TERM * FLT_EPSILON;
    list_difference sum = {0, 0, 0};
    assert_int_equal(a->number[i], b->number[i]);
    for (uint32_t k = 0; k < (a->number[i] + SK_SPH_ENTRIES - 1) / SK_SPH_ENTRIES * SK_SPH_ENTRIES; k++) {
        float gradient[2][3];
        const uint32_t index[2] = {sk_sph_read_entry(lists[0], wide, k, gradient[0]),
                                   sk_sph_read_entry(lists[1], wide, k, gradient[1])};
        assert_int_equal(index[0], index[1]);
        for (int d = 0; d < 3; d++) {
            const double size = fabs((double)gradient[0][d]), apart = fabs((double)gradient[0][d] - gradient[1][d]);
            assert_true(apart <= rounding * size + least);
            sum.gradients += size;
            sum.apart += apart;
            sum.squares += size * apart;
        }
    }
    return sum;
}

static void close(const char *what, double a, double b, double bound)
{
    if (!(fabs(a - b) <= bound))
        fail_msg("%s: %.9g tuned, %.9g plain, bound %g", what, a, b, bound);
}

static void neighbours_agree(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int v = 0; v < VARIANTS; v++) {
            step_case c;
            backend_pair pair;
            begin(&pair, &c, dimension, &variants[v]);
            const sk_step *step = &pair.worlds[0]->step;
            /* Particles and grid are left alone; sums are over particles, with a relative error of a density each. */
            const backend_bounds bounds = {.sums = 4 * 64 * FLT_EPSILON};
            backend_check(&pair, "neighbours", &bounds);
            const sk_sph *a = step->sph, *b = pair.worlds[1]->step.sph;
            double worst = 0.0;
            for (int64_t i = 0; i < step->particles.count; i++) {
                const list_difference apart = compare_entries(&pair, i, variants[v].wide);
                const double n = a->number[i] + 4.0 * TERM, density = a->density[i];
                /* Walls count in the density, and have gradients of up to 2. */
                close("density", density, (double)b->density[i], 2.0 * n * FLT_EPSILON * fmax(density, 1.0));
                double across = 0.0, size = apart.gradients + 2.0, diagonal = a->diagonal[i];
                for (int d = 0; d < dimension; d++) {
                    const double bound = apart.apart + n * FLT_EPSILON * size;
                    close("sum of gradients", (double)a->sum_gradient[i][d], (double)b->sum_gradient[i][d], bound);
                    across += 2.0 * (fabs((double)a->sum_gradient[i][d]) + bound) * bound;
                }
                close("diagonal", diagonal, (double)b->diagonal[i],
                      across + 2.0 * apart.squares + n * FLT_EPSILON * diagonal + apart.apart * apart.apart);
                close("wall flux", (double)a->wall_flux[i], (double)b->wall_flux[i],
                      n * FLT_EPSILON * fabs((double)a->wall_flux[i]));
                worst = fmax(worst, apart.apart);
            }
            assert_int_equal(a->report.pairs, b->report.pairs);
            assert_int_equal(a->report.list_bytes, b->report.list_bytes);
            print_message("%lld pairs, lists differ by %.2g at most\n", (long long)a->report.pairs, worst);
            backend_end(&pair);
        }
}

/* --- Forces --- */

/* Terms of viscosity and xsph cancel, but not those of all particles: the largest change is at least a tenth of the
 * largest sum of magnitudes. Those of surface tension do: a pair's cohesion is at most tension x time x density x
 * 32 / (2^d 64 pi), 40 times tension x time, and that of curvature 8 times: normals are shorter than 4. The implicit
 * solve ends at a residual of 1e-5 |v*|, and the inverse of its operator is at most 1. */
static void forces_agree(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int v = 0; v < VARIANTS; v++) {
            step_case c;
            backend_pair pair;
            begin(&pair, &c, dimension, &variants[v]);
            sk_phase_function forms[SK_BACKEND_COUNT];
            const sk_step *a = &pair.worlds[0]->step, *b = &pair.worlds[1]->step;
            double square = 0.0, change = 0.0;
            const int p = run_up_to(&pair, "forces", forms);
            for (int64_t i = 0; i < a->particles.count; i++)
                for (int d = 0; d < 3; d++)
                    square += pow((double)a->particles.records[i].velocity[d], 2);
            run_both(&pair, forms, p);
            const int implicit = sk_sph_viscosity_is_implicit(a);
            assert_int_equal(implicit, variants[v].wide);
            for (int d = 0; d < dimension && !implicit; d++)
                change = fmax(change, largest(a->sph->variable[d], (size_t)a->particles.count));
            const double n = most_neighbours(a->sph, a->particles.count) + (double)TERM;
            const double magnitude = 10.0 * change + n * 48.0 * a->scene->sph.tension * sk_step_kick(a);
            const double bound = implicit ? 2e-5 * sqrt(square) : n * FLT_EPSILON * magnitude;
            /* Beside that, velocities of up to 4 m/s are rounded once more. */
            const backend_bounds bounds = {.velocity = bound + 4 * FLT_EPSILON};
            backend_compare(&pair, "forces", &bounds);
            assert_true(abs(a->sph->report.viscosity_iterations - b->sph->report.viscosity_iterations) <= 1);
            print_message("changes of up to %.3g m/s, bound %.2g, %d iterations\n", change, bounds.velocity,
                          a->sph->report.viscosity_iterations);
            backend_end(&pair);
        }
}

/* --- Correction --- */

/* Corrected gradients are rounded to half precision once more: entries differ as those of the phase `neighbours`, and
 * sums by the differences of their entries. */
static void corrections_agree(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int v = 0; v < VARIANTS; v++) {
            step_case c;
            backend_pair pair;
            begin(&pair, &c, dimension, &variants[v]);
            sk_phase_function forms[SK_BACKEND_COUNT];
            const int p = run_up_to(&pair, "correct", forms);
            run_both(&pair, forms, p);
            const sk_sph *a = pair.worlds[0]->step.sph, *b = pair.worlds[1]->step.sph;
            double worst = 0.0;
            for (int64_t i = 0; i < pair.worlds[0]->step.particles.count; i++) {
                const list_difference apart = compare_entries(&pair, i, variants[v].wide);
                const double n = a->number[i] + 4.0 * TERM, size = apart.gradients + 4.0;
                for (int d = 0; d < dimension; d++)
                    close("corrected sum", (double)a->sum_gradient[i][d], (double)b->sum_gradient[i][d],
                          apart.apart + 2.0 * n * FLT_EPSILON * size);
                close("corrected diagonal", (double)a->diagonal[i], (double)b->diagonal[i],
                      4.0 * size * (apart.apart + n * FLT_EPSILON * size));
                worst = fmax(worst, apart.apart);
            }
            print_message("corrected lists differ by %.2g at most\n", worst);
            backend_end(&pair);
        }
}

/* --- Pressure --- */

/* Rounding of an application of the operator, two sums of n terms, enters each of k iterations. Jacobi's adds it up;
 * with momentum that of iteration i counts i times (Schmidt, Le Roux and Bach 2011). The terms are pressure variables
 * and displacements times gradients, whose magnitudes add up to less than 4 for a particle. */
static void pressures_agree(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int v = 0; v < VARIANTS; v++) {
            step_case c;
            backend_pair pair;
            begin(&pair, &c, dimension, &variants[v]);
            sk_phase_function forms[SK_BACKEND_COUNT];
            const int p = run_up_to(&pair, "pressure", forms);
            run_both(&pair, forms, p);
            const sk_step *a = &pair.worlds[0]->step, *b = &pair.worlds[1]->step;
            const size_t count = (size_t)a->particles.count;
            assert_true(a->sph->report.iterations > 0);
            assert_int_equal(a->sph->report.iterations, b->sph->report.iterations);
            const double n = most_neighbours(a->sph, a->particles.count) + (double)TERM;
            const double k = a->sph->report.iterations + 1.0;
            const double rounding =
                n * FLT_EPSILON * (variants[v].solver == SELKIE_SPH_ACCELERATED ? k * (k + 1.0) : 2.0 * k);
            const double variable = largest(a->sph->variable[0], count), pressure = largest(a->sph->pressure, count);
            const double size = 4.0 * (variable + a->dt * a->sums.max_speed);
            const backend_bounds bounds = {.velocity = rounding * size / a->dt + 4 * FLT_EPSILON,
                                           .attribute = rounding * pressure * size / variable};
            backend_compare(&pair, "pressure", &bounds);
            close("predicted error", a->sph->report.predicted_error, b->sph->report.predicted_error,
                  rounding * size / a->sph->spacing);
            print_message("%d iterations, up to %.3g Pa, bounds %.2g m/s, %.2g Pa\n", a->sph->report.iterations,
                          pressure, bounds.velocity, bounds.attribute);
            backend_end(&pair);
        }
}

/* --- Spacing --- */

/* A particle's springs sum up to at most n times their strength, constraints to half a radius in each sweep. Positions
 * of up to 2 m are rounded once more. There is no obstacle: both forms keep particles out of one by the same code, and
 * rounding decides whether a particle at a surface slides. */
static void spacings_agree(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int sato = 0; sato < 2; sato++) {
            step_case c;
            case_begin(&c, dimension, 24, 20, 8, 0.05);
            c.scene.liquid_count = 1;
            case_box(&c, &c.liquids[0].shape, 0, 0, 0, 9, 14, 8);
            c.scene.particles.arrangement = SELKIE_ARRANGEMENT_JITTERED;
            c.scene.volume = sato ? SELKIE_VOLUME_SATO : SELKIE_VOLUME_ANDO;
            c.scene.sato.iterations = 2;
            backend_pair pair;
            backend_begin(&pair, &c.scene, 2);
            const sk_step *a = &pair.worlds[0]->step;
            const double spacing = a->grid.cell_size * pow(a->particles_per_cell, -1.0 / dimension), n = 64.0;
            const double terms = sato ? 0.5 * 2.0 * c.scene.sato.radius * spacing
                                      : n * c.scene.ando.stiffness * 0.01 * c.scene.ando.radius * spacing;
            const backend_bounds bounds = {.position = (n + TERM) * FLT_EPSILON * terms + 4 * FLT_EPSILON,
                                           .sums = 2.0 * FLT_EPSILON};
            backend_check(&pair, "spacing", &bounds);
            print_message("%dD %s: bound %.2g m\n", dimension, sato ? "sato" : "ando", bounds.position);
            backend_end(&pair);
        }
}

/* --- Whole steps --- */

static selkie_world *run_steps(const selkie_scene *scene, int threads, int plain, int steps)
{
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = threads;
    options.with_backend = 1;
    options.backend = plain ? SELKIE_BACKEND_PLAIN : SELKIE_BACKEND_TUNED;
    selkie_error error = {0};
    selkie_world *world;
    if (selkie_world_create(scene, &options, &world, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    for (int n = 0; n < steps; n++)
        if (selkie_world_step(world, &error) != SELKIE_OK)
            fail_msg("step %d: %s", n, error.message);
    return world;
}

/* A solve leaves an error of density of `divergence_error` or less, which a few iterations more or less would change:
 * velocities are known to that share of the fall's speed, and positions to that times the time. Particles are put into
 * the same order first. */
static void steps_agree(void **state)
{
    (void)state;
    enum { STEPS = 6 };
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int v = 0; v < VARIANTS; v += 2) {
            step_case c;
            sph_dam(&c, dimension, &variants[v]);
            c.scene.time.step = 0.002;
            selkie_world *tuned = run_steps(&c.scene, 2, 0, STEPS), *plain = run_steps(&c.scene, 2, 1, STEPS);
            selkie_world *single = run_steps(&c.scene, 1, 1, STEPS);
            const sk_particles *a = &tuned->step.particles, *b = &plain->step.particles;
            assert_int_equal(a->count, b->count);
            assert_memory_equal(b->records, single->step.particles.records, (size_t)b->count * sizeof *b->records);
            double(*at)[3] = calloc((size_t)a->count, sizeof *at), worst = 0.0;
            for (int64_t i = 0; i < a->count; i++)
                for (int d = 0; d < 3; d++)
                    at[a->records[i].id][d] = a->records[i].position[d];
            for (int64_t i = 0; i < b->count; i++)
                for (int d = 0; d < 3; d++)
                    worst = fmax(worst, fabs(at[b->records[i].id][d] - (double)b->records[i].position[d]));
            free(at);
            const double speed = sqrt(2.0 * 9.81 * 1.0), time = STEPS * c.scene.time.step;
            const double bound = c.scene.sph.divergence_error * speed * time;
            print_message("%dD %s: positions differ by %.2g m at most, bound %.2g m\n", dimension, variants[v].name,
                          worst, bound);
            assert_true(worst <= bound);
            close("kinetic energy", tuned->statistics.kinetic_energy, plain->statistics.kinetic_energy,
                  2.0 * c.scene.sph.divergence_error * tuned->statistics.kinetic_energy);
            selkie_world_destroy(tuned);
            selkie_world_destroy(plain);
            selkie_world_destroy(single);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_agree), cmocka_unit_test(forces_agree),   cmocka_unit_test(corrections_agree),
        cmocka_unit_test(pressures_agree),  cmocka_unit_test(spacings_agree), cmocka_unit_test(steps_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
