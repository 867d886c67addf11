/* SPH against what is known: water at rest in a tub of liquid boundary particles, free fall, a drop that surface tension
 * makes round, and the promise of the solver. What needs walls of boundary particles is in other files. */
#include "physics.h"
#include "methods/sph/sph.h"
#include "world/world_internal.h"

/* A tub: all particles within `layers` spacings of the sides and the floor become liquid boundaries, which stay where
 * they are; of the others those above `level` go. */
static void make_tub(selkie_world *world, double layers, double level)
{
    sk_step *step = &world->step;
    const double s = step->sph->spacing;
    for (int64_t i = 0; i < step->particles.count; i++) {
        sk_particle *p = &step->particles.records[i];
        int wall = p->position[1] < step->grid.low[1] + layers * s;
        for (int d = 0; d < step->dimension; d++)
            if (d != 1)
                wall |= p->position[d] < step->grid.low[d] + layers * s || p->position[d] > step->grid.high[d] - layers * s;
        if (wall)
            p->flags |= SK_PARTICLE_BOUNDARY;
        else if (p->position[1] > level)
            p->flags |= SK_PARTICLE_DEAD;
    }
    sk_particles_drop_dead(&step->particles);
}

typedef struct profile {
    double worst;    /* of |p - rho g depth| in any layer, over the pressure at the floor */
    double floor;    /* pressure at the floor over rho g depth, by a line through the layers */
    double speed;    /* m/s, the fastest */
} profile;

/* Pressure by layers of a particle spacing against hydrostatics, mean over `samples` steps. */
static profile measure_profile(selkie_world *world, double layers, int samples)
{
    sk_step *step = &world->step;
    const double s = step->sph->spacing, bottom = step->grid.low[1] + layers * s;
    enum { MOST = 256 };
    static double sum[MOST], height[MOST];
    static int64_t count[MOST];
    memset(sum, 0, sizeof sum);
    memset(height, 0, sizeof height);
    memset(count, 0, sizeof count);
    profile result = {0, 0, 0};
    double mass = 0.0, width = 1.0;
    for (int d = 0; d < step->dimension; d++)
        if (d != 1)
            width *= step->grid.high[d] - step->grid.low[d] - 2 * layers * s;
    for (int n = 0; n < samples; n++) {
        step_world(world);
        const float *pressure = (const float *)(const void *)sk_particles_find_attribute(&step->particles, "pressure")->data;
        mass = 0.0;
        for (int64_t i = 0; i < step->particles.count; i++) {
            const sk_particle *p = &step->particles.records[i];
            if (p->flags & SK_PARTICLE_BOUNDARY)
                continue;
            mass += step->particle_mass;
            int layer = (int)((p->position[1] - bottom) / s);
            if (layer < 0 || layer >= MOST)
                continue;
            sum[layer] += pressure[i];
            height[layer] += p->position[1] - bottom;
            count[layer]++;
            double v2 = 0.0;
            for (int d = 0; d < 3; d++)
                v2 += (double)p->velocity[d] * p->velocity[d];
            result.speed = fmax(result.speed, sqrt(v2));
        }
    }
    double depth = mass / (step->density * width), full = step->density * GRAVITY * depth;
    double a = 0, b = 0, aa = 0, ab = 0, n = 0;
    for (int k = 0; k < MOST; k++) {
        if (!count[k])
            continue;
        double y = height[k] / (double)count[k], p = sum[k] / (double)count[k], exact = fmax(full * (1.0 - y / depth), 0.0);
        if (getenv("SELKIE_VERBOSE"))
            print_message("   %8.4f m  %10.2f Pa  %10.2f Pa\n", y, p, exact);
        if (y > depth - 2 * s)
            continue;
        result.worst = fmax(result.worst, fabs(p - exact) / full);
        a += y, b += p, aa += y * y, ab += y * p, n += 1;
    }
    double slope = (n * ab - a * b) / (n * aa - a * a);
    result.floor = (b / n - slope * a / n) / full;
    return result;
}

static void column(int dimension, selkie_sph_solver solver, double density_error, double seconds)
{
    test_scene t;
    const double h = dimension == 2 ? 0.04 : 0.0625;
    tank(&t, dimension, dimension == 2 ? 0.6 : 0.625, dimension == 2 ? 1.2 : 0.8, dimension == 2 ? 0 : 0.625, h);
    t.scene.method = SELKIE_METHOD_SPH;
    t.scene.time.cfl = 0.0;
    t.scene.sph.solver = solver;
    t.scene.sph.density_error = density_error;
    add_liquid(&t, box_shape(0, 0, 0, 2, 2, 2));
    selkie_world *world = make_world(&t);
    make_tub(world, 3, dimension == 2 ? 1.0 : 0.6);
    double iterations = 0, steps = 0, worst = 0, compression = 0;
    while (selkie_world_time(world) < seconds) {
        step_world(world);
        const sk_sph_report *r = &world->step.sph->report;
        iterations += r->iterations;
        worst = fmax(worst, r->predicted_error);
        compression = fmax(compression, r->compression);
        steps++;
    }
    profile p = measure_profile(world, 3, 50);
    char what[64];
    snprintf(what, sizeof what, "column %dD %s %g", dimension, solver == SELKIE_SPH_IISPH ? "iisph" : "accelerated", density_error);
    note(what, "iterations a step", iterations / steps);
    note(what, "steps", steps);
    note(what, "largest compression", compression);
    at_most(what, "largest error that a solve left / allowed", worst / density_error, 1.0);
    note(what, "fastest particle, m/s", p.speed);
    note(what, "pressure of a layer, error / floor", p.worst);
    note(what, "pressure at the floor", p.floor);
    selkie_world_destroy(world);
}

static void columns_are_hydrostatic(void **state)
{
    (void)state;
    column(2, SELKIE_SPH_ACCELERATED, 0.003, 1.5);
    column(2, SELKIE_SPH_ACCELERATED, 0.001, 1.5);
    column(2, SELKIE_SPH_IISPH, 0.001, 1.5);
    column(3, SELKIE_SPH_ACCELERATED, 0.001, 1.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(columns_are_hydrostatic)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
