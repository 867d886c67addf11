/* Heat against exact solutions: conduction (erfc, Robin's condition, a cosine), Stefan's problem with one and two
 * phases, and energy. */
#include "physics.h"

#include "world/world_internal.h"

#define H 0.01          /* m   cell */
#define DENSITY 1000.0  /* kg/m3 */
#define CAPACITY 1000.0 /* J/(kg K) */
#define ALPHA 0.01      /* m2/s  diffusivity of the liquid: 100 cells^2 in a second */

typedef struct heat_scene {
    test_scene t;
    selkie_material_def material;
} heat_scene;

/* A strip of `cells` along x, full of a material at rest without gravity. */
static void strip(heat_scene *s, int dimension, int cells, double step)
{
    tank(&s->t, dimension, cells * H, 4 * H, 4 * H, H);
    set3(s->t.scene.gravity, 0, 0, 0);
    s->t.scene.time.step = step;
    s->t.scene.time.fps = 1e-3;
    s->t.scene.time.end = 1e6;
    s->t.scene.time.max_step = 1e3;
    selkie_material_defaults(&s->material);
    s->material.name = "stuff";
    s->material.density = DENSITY;
    s->material.heat_capacity = CAPACITY;
    s->material.conductivity = ALPHA * DENSITY * CAPACITY;
    s->t.scene.materials = &s->material;
    s->t.scene.material_count = 1;
    add_liquid(&s->t, box_shape(0, 0, 0, cells * H, 4 * H, 4 * H));
}

/* --- Stefan's problem --- */

typedef struct stefan_case {
    int dimension;
    double stefan;       /* c (wall - melting point) / latent heat */
    double below;        /* (melting point - start) / (wall - melting point): 0 = one phase */
    double conductivity; /* of the solid over that of the liquid */
    int steps;
    int freezes; /* a cold wall and liquid instead: the roles of the phases change */
} stefan_case;

/* Neumann's lambda: front = 2 lambda sqrt(alpha t), alpha of the phase at the wall. `ratio` is the conductivity of the
 * other phase over that of the phase at the wall; heat capacities are equal. */
static double neumann(double stefan, double below, double ratio)
{
    double low = 1e-6, high = 5.0;
    for (int n = 0; n < 200; n++) {
        const double x = 0.5 * (low + high), far = x / sqrt(ratio);
        const double flux = exp(-x * x) / erf(x) - below * sqrt(ratio) * exp(-far * far) / erfc(far);
        *(flux > x * sqrt(M_PI) / stefan ? &low : &high) = x;
    }
    return 0.5 * (low + high);
}

/* Position of the front in cells, from the mean liquid fraction. */
static double front_of(const selkie_world *world, int cells, int freezes)
{
    const selkie_attribute_view view = attribute_of(world, "liquid_fraction");
    double sum = 0.0;
    const int64_t count = selkie_world_particle_count(world);
    for (int64_t p = 0; p < count; p++)
        sum += (double)*particle_of(&view, p);
    return cells * (freezes ? 1.0 - sum / (double)count : sum / (double)count);
}

/* Enthalpy methods find the front to a fraction of a cell: 2 % after 8 cells and 1 % after 16. */
static void stefan(void **state)
{
    const stefan_case *c = *state;
    enum { CELLS = 200 };
    const double ratio = c->freezes ? 1.0 / c->conductivity : c->conductivity, melting = 300.0, wall = 10.0;
    const double alpha = c->freezes ? ALPHA * c->conductivity : ALPHA, sign = c->freezes ? -1.0 : 1.0;
    const double lambda = neumann(c->stefan, c->below, ratio);
    const double end = pow(16 * H / (2 * lambda), 2) / alpha;
    heat_scene s;
    strip(&s, c->dimension, CELLS, end / c->steps);
    s.material.melting_point = melting;
    s.material.latent_heat = CAPACITY * wall / c->stefan;
    s.material.solid_conductivity = c->conductivity * s.material.conductivity;
    s.t.scene.domain.temperature[0] = melting + sign * wall;
    s.t.liquids[0].temperature = melting - sign * wall * c->below;
    if (c->freezes && c->below == 0.0)
        s.t.liquids[0].temperature = melting + 1e-4;
    selkie_world *world = make_world(&s.t);
    char what[80];
    snprintf(what, sizeof what, "Stefan %s, %dD, Ste %g, %g below, k ratio %g", c->freezes ? "freezing" : "melting",
             c->dimension, c->stefan, c->below, c->conductivity);
    run_until(world, end / 4);
    at_most(what, "error of the front after 8 cells", fabs(front_of(world, CELLS, c->freezes) / 8 - 1), 0.02);
    run_until(world, end);
    at_most(what, "error of the front after 16 cells", fabs(front_of(world, CELLS, c->freezes) / 16 - 1), 0.01);
    selkie_world_destroy(world);
}

static stefan_case stefan_cases[] = {
    {2, 0.1, 0.0, 1.0, 200, 0}, {2, 1.0, 0.0, 1.0, 200, 0}, {2, 3.0, 0.0, 1.0, 200, 0}, {2, 1.0, 0.5, 1.0, 200, 0},
    {2, 0.5, 0.3, 4.0, 200, 0}, {3, 1.0, 0.5, 4.0, 100, 0}, {2, 0.5, 0.5, 4.0, 500, 1},
};

/* --- Conduction --- */

static double temperature_error(const selkie_world *world, double (*exact)(double x, double t), double scale)
{
    const selkie_attribute_view view = attribute_of(world, "temperature"), position = attribute_of(world, "position");
    double worst = 0.0;
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
        const double x = (double)*particle_of(&position, p);
        worst = fmax(worst, fabs((double)*particle_of(&view, p) - exact(x, selkie_world_time(world))) / scale);
    }
    return worst;
}

static double erfc_profile(double x, double t)
{
    return 300.0 + 50.0 * erfc(x / (2 * sqrt(ALPHA * t)));
}

/* A half space whose wall becomes warm: T = T0 + dT erfc(x / (2 sqrt(alpha t))). */
static void half_space(void **state)
{
    (void)state;
    heat_scene s;
    const double end = pow(12 * H, 2) / ALPHA;
    strip(&s, 2, 96, end / 400);
    s.t.scene.domain.temperature[0] = 350.0;
    s.t.liquids[0].temperature = 300.0;
    selkie_world *world = make_world(&s.t);
    const double before = selkie_world_statistics(world)->heat_energy;
    run_until(world, end);
    /* Particles beside the wall take the change of their cell's centre: 2 % of the difference across it. */
    at_most("warm wall", "largest error of the temperature", temperature_error(world, erfc_profile, 50.0), 0.03);
    const double exact = 2 * 50.0 * sqrt(ALPHA * end / M_PI) * DENSITY * CAPACITY * 4 * H;
    at_most("warm wall", "error of the heat", fabs((selkie_world_statistics(world)->heat_energy - before) / exact - 1),
            0.01);
    selkie_world_destroy(world);
}

/* Robin's condition: a half space against a fluid of temperature T1 behind a heat exchange coefficient. */
static const double robin_exchange = 2e5; /* W/(m2 K): conductivity / 5 cells */

static double robin_profile(double x, double t)
{
    const double b = robin_exchange / (ALPHA * DENSITY * CAPACITY), root = sqrt(ALPHA * t), z = x / (2 * root);
    return 300.0 + 50.0 * (erfc(z) - exp(b * x + b * b * ALPHA * t) * erfc(z + b * root));
}

static void robin(void **state)
{
    (void)state;
    heat_scene s;
    const double end = pow(8 * H, 2) / ALPHA;
    strip(&s, 2, 64, end / 200);
    s.t.scene.domain.temperature[0] = 350.0;
    s.t.scene.domain.heat_exchange[0] = robin_exchange;
    s.t.liquids[0].temperature = 300.0;
    selkie_world *world = make_world(&s.t);
    run_until(world, end);
    at_most("heat exchange at a wall", "largest error of the temperature",
            temperature_error(world, robin_profile, 50.0), 0.02);
    selkie_world_destroy(world);
}

/* --- Frozen bodies --- */

/* --- Two materials --- */

/* A second material in a box, at 300 K. The rest of the liquid is at 350 K. */
static void add_second(heat_scene *s, selkie_material_def materials[2], double conductivity, selkie_shape box)
{
    materials[0] = materials[1] = s->material;
    materials[1].name = "other";
    materials[1].conductivity = conductivity;
    s->t.scene.materials = materials;
    s->t.scene.material_count = 2;

    /* The first liquid takes its place from the second. */
    add_liquid(&s->t, s->t.liquids[0].shape);
    s->t.liquids[0].shape = box;
    s->t.liquids[0].material = "other";
    s->t.liquids[0].temperature = 300.0;
    s->t.liquids[1].material = "stuff";
    s->t.liquids[1].temperature = 350.0;
}

/* Largest difference of the temperatures of a material from a profile, over the particles from x = `from` (m) on. */
static double material_error(const selkie_world *world, uint32_t material, double from,
                             double (*exact)(double x, double t))
{
    const selkie_attribute_view temperature = attribute_of(world, "temperature"),
                                position = attribute_of(world, "position"), kind = attribute_of(world, "material");
    double worst = 0.0;
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
        const double x = (double)*particle_of(&position, p);
        uint32_t own;
        memcpy(&own, particle_of(&kind, p), sizeof own);
        if (own == material && x >= from)
            worst = fmax(worst, fabs((double)*particle_of(&temperature, p) - exact(x, selkie_world_time(world))));
    }
    return worst;
}

static double warm(double x, double t)
{
    (void)x, (void)t;
    return 350.0;
}

static double cold(double x, double t)
{
    (void)x, (void)t;
    return 300.0;
}

/* Behind a slab of 8 cells. */
static double behind_slab(double x, double t)
{
    return 300.0 + 50.0 * erfc((x - 8 * H) / (2 * sqrt(1e-4 * ALPHA * t)));
}

/* A slab beside a warm wall, and behind it one that conducts 10^4 times worse: the first stays as warm as the wall to
 * 10^-4 of the difference, the second is a half space with a warm wall. Particles within 1.5 cells of the interface
 * share cells with the other material, and keep a part of the first jump. */
static void two_slabs(void **state)
{
    (void)state;
    heat_scene s;
    selkie_material_def materials[2];
    const double end = pow(12 * H, 2) / (1e-4 * ALPHA);
    strip(&s, 2, 96, end / 400);
    add_second(&s, materials, 1e-4 * s.material.conductivity, box_shape(8 * H, 0, 0, 96 * H, 4 * H, 4 * H));
    s.t.scene.domain.temperature[0] = 350.0;
    selkie_world *world = make_world(&s.t);
    run_until(world, end);
    at_most("slabs of conductivities 1 : 1e-4", "largest error in the worse conductor",
            material_error(world, 1, 9.5 * H, behind_slab) / 50.0, 0.05);
    selkie_world_destroy(world);
}

/* A block that does not conduct keeps its temperature in a bath that becomes as warm as its wall. */
static void insulated_block(void **state)
{
    (void)state;
    heat_scene s;
    selkie_material_def materials[2];
    const double end = pow(200 * H, 2) / ALPHA;
    strip(&s, 2, 32, end / 100);
    s.t.scene.domain.size[1] = 32 * H;
    s.t.liquids[0].shape = box_shape(0, 0, 0, 32 * H, 32 * H, 4 * H);
    add_second(&s, materials, 0.0, box_shape(12 * H, 12 * H, 0, 20 * H, 20 * H, 4 * H));
    s.t.liquids[1].temperature = 320.0;
    s.t.scene.domain.temperature[0] = 350.0;
    selkie_world *world = make_world(&s.t);
    run_until(world, end);
    at_most("block without conduction", "change of its temperature (K)", material_error(world, 1, 0.0, cold), 1e-4);
    at_most("block without conduction", "error of the bath behind it (K)", material_error(world, 0, 22 * H, warm),
            0.01);
    selkie_world_destroy(world);
}

/* Water that may freeze. */
static void ice(heat_scene *s, double cell_size)
{
    tank(&s->t, 2, 1, 1, 0, cell_size);
    selkie_material_defaults(&s->material);
    s->material.name = "water";
    s->material.heat_capacity = 4186.0;
    s->material.melting_point = 273.15;
    s->material.latent_heat = 334e3;
    s->material.solid_density = 900.0;
    s->t.scene.materials = &s->material;
    s->t.scene.material_count = 1;
}

/* Mean of a component over the solid particles, and how many there are. */
static double solid_mean(const selkie_world *world, const char *name, int d, int64_t *count)
{
    const selkie_attribute_view view = attribute_of(world, name), liquid = attribute_of(world, "liquid_fraction");
    double sum = 0.0;
    *count = 0;
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
        if (*particle_of(&liquid, p) < 0.5f) {
            sum += (double)particle_of(&view, p)[d];
            ++*count;
        }
    return sum / (double)*count;
}

/* A slab of ice of ratio 0.8 floats where Archimedes has it: at 0.24 m, where it starts. The mean over time counts,
 * since it bobs for long; the bound is that of rigid bodies. */
static void ice_floats(void **state)
{
    (void)state;
    const double h = 1.0 / 48, exact = 0.34;
    for (int n = 0; n < 2; n++) {
        heat_scene s;
        ice(&s, h);
        s.material.solid_density = 800.0;
        s.t.scene.volume = SELKIE_VOLUME_IDP;
        selkie_scene_set_method(&s.t.scene, n ? SELKIE_METHOD_FLIP : SELKIE_METHOD_APIC);
        s.t.scene.time.cfl = 2.0;
        add_liquid(&s.t, box_shape(0.3, 0.24, 0, 0.7, 0.44, 0))->temperature = 263.0;
        add_liquid(&s.t, box_shape(0, 0, 0, 1, 0.4, 0))->temperature = 293.0;
        selkie_world *world = make_world(&s.t);
        double mean = 0.0, before = 1.0;
        int64_t count, all;
        solid_mean(world, "position", 1, &all);
        run_until(world, before);
        while (selkie_world_time(world) < 3.0) {
            step_world(world);
            mean += solid_mean(world, "position", 1, &count) * (selkie_world_time(world) - before);
            before = selkie_world_time(world);
        }
        mean /= before - 1.0;
        assert_int_equal(count, all);
        note(n ? "ice of ratio 0.8, FLIP idp" : "ice of ratio 0.8, APIC idp", "height above Archimedes' (cells)",
             (mean - exact) / h);
        at_most(n ? "ice of ratio 0.8, FLIP idp" : "ice of ratio 0.8, APIC idp", "error of its height (cells)",
                fabs(mean - exact) / h, 0.2);
        selkie_world_destroy(world);
    }
}

/* Warm beside cold liquid: the cold flows below the warm with half of sqrt(g' H) (Benjamin 1968, a current of half the
 * depth without friction). The bound is for 16 cells of depth. */
static void warm_rises(void **state)
{
    (void)state;
    const double h = 1.0 / 64, depth = 0.25, reduced = 0.02 * GRAVITY;
    double front[2] = {1.0, 1.0};
    heat_scene s;
    memset(&s, 0, sizeof s);
    tank(&s.t, 2, 2.0, 0.3125, 1.0, h);
    s.t.scene.volume = SELKIE_VOLUME_IDP;
    selkie_material_defaults(&s.material);
    s.material.name = "stuff";
    s.material.heat_capacity = CAPACITY;
    s.material.thermal_expansion = 1e-3;
    s.t.scene.materials = &s.material;
    s.t.scene.material_count = 1;
    add_liquid(&s.t, box_shape(0, 0, 0, 1, depth, 1))->temperature = 310.0;
    add_liquid(&s.t, box_shape(1, 0, 0, 2, depth, 1))->temperature = 290.0;
    selkie_world *world = make_world(&s.t);
    for (int n = 0; n < 2; n++) {
        run_until(world, n ? 3.5 : 1.5);
        const selkie_attribute_view position = attribute_of(world, "position");
        const selkie_attribute_view temperature = attribute_of(world, "temperature");
        for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
            if (*particle_of(&temperature, p) < 300.0f && (double)particle_of(&position, p)[1] < 0.25 * depth)
                front[n] = fmin(front[n], (double)particle_of(&position, p)[0]);
    }
    const double speed = (front[0] - front[1]) / 2.0;
    note("warm beside cold liquid", "speed of the cold over sqrt(g' H)", speed / sqrt(reduced * depth));
    at_most("warm beside cold liquid", "speed of the cold, error", fabs(speed / (0.5 * sqrt(reduced * depth)) - 1.0),
            0.15);
    selkie_world_destroy(world);
}

/* Ice that turns in free flight keeps its angular momentum and its shape. */
static void ice_spins(void **state)
{
    (void)state;
    heat_scene s;
    ice(&s, 1.0 / 48);
    set3(s.t.scene.gravity, 0, 0, 0);
    selkie_liquid_def *block = add_liquid(&s.t, box_shape(0.35, 0.4, 0, 0.65, 0.6, 0));
    block->temperature = 263.0;
    block->angular_velocity[2] = 3.0;
    set3(block->center, 0.5, 0.5, 0);
    selkie_world *world = make_world(&s.t);
    step_world(world);
    const double before = selkie_world_statistics(world)->kinetic_energy;
    for (int n = 0; n < 100; n++)
        step_world(world);
    const double after = selkie_world_statistics(world)->kinetic_energy;
    at_most("ice in free flight", "change of energy in 100 steps", fabs(after / before - 1), 1e-3);
    selkie_world_destroy(world);
}

/* m/s, m2/s  Velocity of all particles, mean, and mean angular momentum of a unit mass about the middle. */
static double momenta_of(const selkie_world *world, double velocity[2])
{
    const selkie_attribute_view x = attribute_of(world, "position"), v = attribute_of(world, "velocity");
    const double part = 1.0 / (double)selkie_world_particle_count(world);
    double spin = 0.0;
    velocity[0] = velocity[1] = 0.0;
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
        const float *at = particle_of(&x, p), *u = particle_of(&v, p);
        for (int d = 0; d < 2; d++)
            velocity[d] += part * (double)u[d];
        spin += part * (((double)at[0] - 0.5) * (double)u[1] - ((double)at[1] - 0.5) * (double)u[0]);
    }
    return spin;
}

/* Ice melts away in a drop of warm water that flies and turns: mass and energy stay to rounding. A drop keeps its
 * momentum to a part that its surface makes, with and without ice: the pressure acts on faces with the mass of full
 * cells. The same drop whose ice does not melt changes its mean velocity by 0.0006 m/s, and the bound is 0.001 m/s, 2 %
 * of the speed of its rim. Its angular momentum changes by 1.0 % (FLIP) and 0.5 % (APIC) there: twice that may go. */
static void ice_melts_in_flight(void **state)
{
    (void)state;
    static const selkie_transfer transfers[] = {SELKIE_TRANSFER_FLIP, SELKIE_TRANSFER_APIC};
    for (int n = 0; n < 2; n++) {
        const char *what = n ? "ice melts in a drop in flight, APIC" : "ice melts in a drop in flight, FLIP";
        heat_scene s;
        ice(&s, 1.0 / 48);
        set3(s.t.scene.gravity, 0, 0, 0);
        s.material.conductivity = 1e5; /* so that it takes a second */
        s.t.scene.volume = SELKIE_VOLUME_IDP;
        s.t.scene.transfer = transfers[n];
        s.t.scene.time.step = 0.005;
        add_liquid(&s.t, box_shape(0.43, 0.4, 0, 0.57, 0.6, 0))->temperature = 268.0;
        add_liquid(&s.t, sphere_shape(0.5, 0.5, 0, 0.25))->temperature = 330.0;
        for (int l = 0; l < 2; l++) {
            s.t.liquids[l].velocity[0] = 0.1;
            s.t.liquids[l].angular_velocity[2] = 2.0;
            set3(s.t.liquids[l].center, 0.5, 0.5, 0);
        }
        selkie_world *world = make_world(&s.t);
        double before[2], after[2];
        const double energy = selkie_world_statistics(world)->heat_energy, spin = momenta_of(world, before);
        const int64_t count = selkie_world_particle_count(world);
        int64_t solid;
        solid_mean(world, "position", 0, &solid);
        assert_true(solid > 500);
        run_until(world, 1.0);
        const double turned = momenta_of(world, after) - 0.1 * (before[0] * after[1] - before[1] * after[0]);
        solid_mean(world, "position", 0, &solid);
        assert_int_equal(solid, 0);
        assert_int_equal(selkie_world_particle_count(world), count);
        at_most(what, "change of heat", fabs(selkie_world_statistics(world)->heat_energy / energy - 1), 1e-12);
        at_most(what, "change of its velocity, m/s", hypot(after[0] - before[0], after[1] - before[1]), 1e-3);
        at_most(what, "change of its angular momentum", fabs(turned / spin - 1.0), 0.02);
        selkie_world_destroy(world);
    }
}

/* What is left of ice as its rim melts keeps its shape: the distances of its particles change in a step by the
 * rounding of four coordinates of 4 to 8 cells at most, 2^-22 cells each. A body with a rest shape and a centre would
 * jump as particles leave it. */
static void ice_melts_without_jumps(void **state)
{
    (void)state;
    const double h = 1.0 / 16;
    heat_scene s;
    ice(&s, h);
    set3(s.t.scene.gravity, 0, 0, 0);
    s.material.conductivity = 1e5;
    s.t.scene.volume = SELKIE_VOLUME_IDP;
    s.t.scene.time.step = 0.005;
    add_liquid(&s.t, box_shape(4.5 * h, 4.5 * h, 0, 7.5 * h, 7.5 * h, 0))->temperature = 268.0;
    add_liquid(&s.t, sphere_shape(6 * h, 6 * h, 0, 3.5 * h))->temperature = 330.0;
    for (int l = 0; l < 2; l++) {
        s.t.liquids[l].angular_velocity[2] = 1.0;
        set3(s.t.liquids[l].center, 6 * h, 6 * h, 0);
    }
    selkie_world *world = make_world(&s.t);
    const sk_particles *particles = &world->step.particles;
    enum { MOST = 4096, SOLID = 128 };
    static float before[MOST][2];
    static int was_solid[MOST];
    int64_t left = 0, first = 0;
    double worst = 0.0;
    for (int n = 0; n < 100; n++) {
        step_world(world);
        const selkie_attribute_view liquid = attribute_of(world, "liquid_fraction");
        const sk_particle *solid[SOLID];
        int count = 0;
        for (int64_t p = 0; p < particles->count; p++) {
            assert_true(particles->records[p].id < MOST && count < SOLID);
            if (*particle_of(&liquid, p) < 0.5f)
                solid[count++] = &particles->records[p];
        }
        first = n == 0 ? count : first;
        left = first - count;
        if (2 * left > first)
            break;

        /* Distances of all pairs that were solid before as well. */
        for (int a = 0; n > 0 && a < count; a++)
            for (int b = 0; b < a; b++) {
                const float *x = solid[a]->position, *y = solid[b]->position, *x0 = before[solid[a]->id],
                            *y0 = before[solid[b]->id];
                if (was_solid[solid[a]->id] && was_solid[solid[b]->id])
                    worst = fmax(worst, fabs(hypot((double)(x[0] - y[0]), (double)(x[1] - y[1])) -
                                             hypot((double)(x0[0] - y0[0]), (double)(x0[1] - y0[1]))));
            }
        memset(was_solid, 0, sizeof was_solid);
        for (int a = 0; a < count; a++) {
            memcpy(before[solid[a]->id], solid[a]->position, sizeof before[0]);
            was_solid[solid[a]->id] = 1;
        }
    }
    note("ice melts without jumps", "particles that left it", (double)left);
    assert_true(left > 20);
    at_most("ice melts without jumps", "largest change of a distance in a step, cells", worst / h, 1e-6);
    selkie_world_destroy(world);
}

/* Water freezes onto cold ice until both are at the melting point: the heat that warms the ice by 80 K is the latent
 * heat of what freezes, less that which the water gives by 0.5 K. Particles within 1.5 cells of the jump at the start
 * keep a part of it for ever, since the grid sees the mean of both sides: of a block of six cells a tenth of the solid
 * mass is allowed for that. */
static void ice_grows(void **state)
{
    (void)state;
    heat_scene s;
    ice(&s, 1.0 / 24);
    set3(s.t.scene.gravity, 0, 0, 0);
    s.material.conductivity = 3e5; /* so that it takes seconds */
    s.t.scene.time.step = 0.02;
    add_liquid(&s.t, box_shape(0.375, 0.375, 0, 0.625, 0.625, 0))->temperature = 193.15;
    add_liquid(&s.t, box_shape(0, 0, 0, 1, 1, 0))->temperature = 273.65;
    selkie_world *world = make_world(&s.t);
    int64_t before, after;
    solid_mean(world, "position", 0, &before);
    run_until(world, 4.0);
    solid_mean(world, "position", 0, &after);
    const double all = (double)selkie_world_particle_count(world), block = (double)before,
                 frozen = block + 4186.0 / 334e3 * (80.0 * block - 0.5 * (all - block));
    const selkie_attribute_view liquid = attribute_of(world, "liquid_fraction");
    double solid = 0.0;
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
        solid += 1.0 - (double)*particle_of(&liquid, p);
    between("ice grows", "solid particles over those of the start", (double)after / block, 1.5, frozen / block);
    at_most("ice grows", "solid mass over what the heat balance gives, error", fabs(solid / frozen - 1.0), 0.1);
    selkie_world_destroy(world);
}

/* A block of ice hangs by a neck of three cells from a block that a cold wall holds. Warm air melts the neck first: the
 * body falls apart, and its free part falls to the floor. The air melts 0.09 m of ice from both sides in
 * 334e3 J/kg x 1000 kg/m3 x 0.047 m / (3e5 W/(m2 K) x 100 K) = 0.5 s, if the surface stays at the melting point. */
static void ice_falls_apart(void **state)
{
    (void)state;
    const double h = 1.0 / 32, start = 0.45;
    heat_scene s;
    ice(&s, h);
    s.material.conductivity = 600.0;
    s.t.scene.volume = SELKIE_VOLUME_IDP;
    s.t.scene.time.step = 0.005;
    s.t.scene.domain.temperature[0] = 253.0;
    s.t.scene.heat.air_temperature = 373.0;
    s.t.scene.heat.air_exchange = 3e5;
    add_liquid(&s.t, box_shape(0, 0.5, 0, 0.16, 0.8, 0))->temperature = 253.0;
    add_liquid(&s.t, box_shape(0.16, 0.625, 0, 0.5, 0.72, 0))->temperature = 268.0;
    add_liquid(&s.t, box_shape(0.5, start, 0, 0.85, 0.85, 0))->temperature = 268.0;
    selkie_world *world = make_world(&s.t);
    double lowest = 1.0, apart = 0.0;
    int held = 0;
    while (selkie_world_time(world) < 1.2) {
        step_world(world);
        const selkie_attribute_view x = attribute_of(world, "position"),
                                    liquid = attribute_of(world, "liquid_fraction");
        lowest = 1.0;
        held = 0;
        for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
            const float *at = particle_of(&x, p);
            if (*particle_of(&liquid, p) >= 0.5f)
                continue;
            held += at[0] < 0.16f && at[1] > 0.5f;
            if (at[0] > 0.5f)
                lowest = fmin(lowest, (double)at[1]);
        }
        apart = apart == 0.0 && lowest < start - h ? selkie_world_time(world) : apart;
    }
    note("ice that hangs by a neck", "the neck has melted after, s", apart);
    assert_true(apart > 0.1 && held > 0);
    at_most("ice that hangs by a neck", "lowest ice of the free part at the end, cells above the floor", lowest / h,
            1.0);
    selkie_world_destroy(world);
}

/* Ice melts in warm water and, with cold walls, all of it freezes again: the mass is that of the start, and energy is
 * kept to rounding as long as no heat leaves. */
static void ice_melts_and_freezes(void **state)
{
    (void)state;
    heat_scene s;
    ice(&s, 1.0 / 32);
    s.material.conductivity = 2e4; /* so that it takes seconds */
    add_liquid(&s.t, box_shape(0.3, 0.2, 0, 0.7, 0.4, 0))->temperature = 263.0;
    add_liquid(&s.t, box_shape(0, 0, 0, 1, 0.3, 0))->temperature = 353.0;
    selkie_world *world = make_world(&s.t);
    const int64_t particles = selkie_world_particle_count(world);
    const double energy = selkie_world_statistics(world)->heat_energy;
    int64_t solid;
    solid_mean(world, "position", 0, &solid);
    assert_true(solid > 0);
    run_until(world, 10.0);
    solid_mean(world, "position", 0, &solid);
    assert_int_equal(solid, 0);
    assert_int_equal(selkie_world_particle_count(world), particles);
    at_most("melting ice", "change of energy", fabs(selkie_world_statistics(world)->heat_energy / energy - 1), 1e-12);

    /* Conduction over 10 s reaches sqrt(a t) = 0.2 m, so that the pool still differs from place to place by a part of
     * the 80 K of the start. Without conduction within cells single particles would keep all of it. */
    at_most("melting ice", "range of temperatures (K)",
            selkie_world_statistics(world)->temperature_max - selkie_world_statistics(world)->temperature_min, 45.0);
    selkie_world_destroy(world);

    /* The same water between cold walls. */
    for (int side = 0; side < 4; side++)
        s.t.scene.domain.temperature[side] = 133.0;
    s.t.liquids[0].temperature = s.t.liquids[1].temperature = 283.0;
    world = make_world(&s.t);
    run_until(world, 20.0);
    solid_mean(world, "position", 0, &solid);
    assert_int_equal(solid, particles);
    at_most("frozen to the walls", "speed (m/s)", selkie_world_statistics(world)->max_speed, 1e-6);
    selkie_world_destroy(world);
}

/* A block of ice is thrown into a moving pool: the solve must not stop, and nothing adds energy. The bound is that of
 * the check of energies (tests/checks). */
static void ice_falls(void **state)
{
    (void)state;
    static const double steps[] = {0.001, 0.005, 0.02};
    for (int n = 0; n < 3; n++) {
        heat_scene s;
        ice(&s, 1.0 / 32);
        s.t.scene.time.step = steps[n];
        s.t.scene.time.fps = 10.0;
        s.material.conductivity = 600.0;
        s.material.solid_conductivity = 2200.0;
        selkie_liquid_def *block = add_liquid(&s.t, box_shape(0.3, 0.5, 0, 0.6, 0.8, 0));
        block->temperature = 250.0;
        block->velocity[1] = -2.0;
        selkie_liquid_def *pool = add_liquid(&s.t, box_shape(0, 0, 0, 1, 0.5, 0));
        pool->temperature = 350.0;
        pool->velocity[0] = 0.5;
        selkie_world *world = make_world(&s.t);
        const selkie_statistics *now = selkie_world_statistics(world);
        const double start = now->kinetic_energy + now->potential_energy;
        double most = start;
        while (selkie_world_time(world) < 1.5) {
            step_world(world);
            now = selkie_world_statistics(world);
            most = fmax(most, now->kinetic_energy + now->potential_energy);
        }
        char what[64];
        snprintf(what, sizeof what, "ice thrown into water, %g ms", 1e3 * steps[n]);
        at_most(what, "growth of the energy", most / start - 1.0, 0.001);
        selkie_world_destroy(world);
    }
}

/* Impacts are inelastic. Ice on which a paddle runs leaves with its speed, to rounding, and then slides: contacts with
 * the floor turn it by less than 1 %. It stays before the paddle, which is thinner than its way in a step. */
static void ice_does_not_bounce(void **state)
{
    (void)state;
    const double h = 1.0 / 32, speed = 4.0;
    heat_scene s;
    ice(&s, h);
    s.t.scene.time.step = 0.02; /* 2.6 cells */
    set3(s.t.scene.domain.size, 2, 1, 1);
    add_liquid(&s.t, box_shape(0.3, 0, 0, 0.6, 0.25, 0))->temperature = 250.0;
    selkie_obstacle_def *paddle = add_obstacle(&s.t, box_shape(0.12, -0.1, 0, 0.15, 1.1, 0));
    paddle->velocity[0] = speed;
    selkie_world *world = make_world(&s.t);
    int64_t count;
    run_until(world, 0.2);
    const double fast = solid_mean(world, "velocity", 0, &count);
    at_most("ice before a paddle", "its speed over the paddle's, error", fabs(fast / speed - 1.0), 0.01);
    const selkie_attribute_view position = attribute_of(world, "position");
    double least = INFINITY;
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
        least = fmin(least, (double)particle_of(&position, p)[0]);
    at_most("ice before a paddle", "particles behind its front, m", 0.15 + speed * selkie_world_time(world) - least,
            0.0);
    selkie_world_destroy(world);
}

/* A paddle presses water and ice into less room than they need. Nothing is right there, but the run goes on, and the
 * ice does not blow up: about 4 cells a step at most. (Bodies that the solve lets into pockets which they close
 * themselves reached 400 m/s: the contact stops the ice, and the liquid has taken its motion.) */
static void ice_in_a_press(void **state)
{
    (void)state;
    const double h = 1.0 / 32, step = 0.0025;
    heat_scene s;
    ice(&s, h);
    s.t.scene.time.step = step;
    s.material.conductivity = 600.0;
    s.material.solid_conductivity = 2200.0;
    add_liquid(&s.t, box_shape(0.6, 0, 0, 0.9, 0.3, 0))->temperature = 250.0;
    add_liquid(&s.t, box_shape(0.2, 0, 0, 1, 0.4, 0))->temperature = 300.0;
    selkie_obstacle_def *paddle = add_obstacle(&s.t, box_shape(0.05, -0.1, 0, 0.2, 1.1, 0));
    paddle->velocity[0] = 0.49 / 0.8;
    selkie_world *world = make_world(&s.t);
    double fastest = 0.0;
    while (selkie_world_time(world) < 0.8) {
        step_world(world);
        fastest = fmax(fastest, selkie_world_statistics(world)->max_speed);
    }
    at_most("ice in a press", "largest speed, cells a step", fastest * step / h, 4.0);
    selkie_world_destroy(world);
}

/* A slab lies on more obstacles than a list of those near it holds. */
static void ice_on_pegs(void **state)
{
    (void)state;
    enum { PEGS = 100 };
    const double h = 1.0 / 32, top = 0.36;
    selkie_obstacle_def pegs[PEGS];
    heat_scene s;
    ice(&s, h);
    add_liquid(&s.t, box_shape(0.05, 0.5, 0, 0.95, 0.6, 0))->temperature = 250.0;
    for (int n = 0; n < PEGS; n++) {
        selkie_obstacle_defaults(&pegs[n]);
        pegs[n].shape = box_shape(0.01 * n, 0.3, 0, 0.01 * n + 0.009, top, 0);
    }
    s.t.scene.obstacles = pegs;
    s.t.scene.obstacle_count = PEGS;
    selkie_world *world = make_world(&s.t);
    run_until(world, 0.5);
    const selkie_attribute_view position = attribute_of(world, "position");
    double least = INFINITY;
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
        least = fmin(least, (double)particle_of(&position, p)[1]);
    at_most("ice on a hundred pegs", "lowest particle below their tops, cells", (top - least) / h, 0.0);
    selkie_world_destroy(world);
}

int main(void)
{
    struct CMUnitTest tests[24];
    size_t count = 0;
    memset(tests, 0, sizeof tests);
    for (size_t n = 0; n < sizeof stefan_cases / sizeof *stefan_cases; n++)
        tests[count++] = (struct CMUnitTest){.name = "stefan", .test_func = stefan, .initial_state = &stefan_cases[n]};
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(half_space);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(robin);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(two_slabs);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(insulated_block);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(ice_floats);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(warm_rises);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(ice_spins);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(ice_falls);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(ice_does_not_bounce);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(ice_in_a_press);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(ice_on_pegs);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(ice_melts_in_flight);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(ice_melts_without_jumps);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(ice_falls_apart);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(ice_grows);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(ice_melts_and_freezes);
    return _cmocka_run_group_tests("heat", tests, count, NULL, NULL);
}
