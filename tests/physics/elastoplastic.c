/* Elastoplastic points against beams, balances and experiments.
 *
 * Elastica: large deflection of a clamped beam with a dead load at its end, exact (Bisshop and Drucker 1945), by
 * alpha = P L^2 / (E I). In 2D (plane strain) E is E / (1 - nu^2). */
#include "physics.h"

/* --- Scenes --- */

typedef struct solid_scene {
    test_scene t;
    selkie_material_def materials[3];
} solid_scene;

static void solid_tank(solid_scene *s, int dimension, double x, double y, double z, double cell_size)
{
    tank(&s->t, dimension, x, y, z, cell_size);
    s->t.scene.discretization = SELKIE_DISCRETIZATION_MPM;
    s->t.scene.time.cfl = 0.0;
    s->t.scene.materials = s->materials;
    s->t.scene.material_count = 1;
    for (int m = 0; m < 3; m++) {
        selkie_material_defaults(&s->materials[m]);
        s->materials[m].name = m == 0 ? "first" : m == 1 ? "second" : "third";
        s->materials[m].kind = SELKIE_MATERIAL_ELASTOPLASTIC;
    }
}

/* --- Cantilever --- */

/* A beam along x, clamped at a wall. Cells; two points a cell. */
typedef struct beam_case {
    selkie_discretization form;
    int across, length;
    double cell_size;
} beam_case;

typedef struct beam {
    const beam_case *c;
    selkie_world *world;
    uint8_t *is_end; /* by id: the last column of points, which carries the load and whose height is measured */
    int end_count;
    double load_at;   /* m  from the clamp. Walls hold points within half a spacing: bonds begin there */
    double stiffness; /* N m2  E I of plane strain, for a depth of 1 m */
    double period;    /* s  of the first mode, slender beam */
    double start;     /* m  height of the end */
} beam;

static const double beam_young = 1e6, beam_poisson = 0.3, beam_density = 1000.0;

/* Adds the load and damping for one step. Returns the height of the end. */
static double load_beam(const beam *b, double force, double damping)
{
    const double dt = selkie_world_statistics(b->world)->dt, h = b->c->cell_size, mass = beam_density * h * h / 4.0;
    selkie_attribute_view position = attribute_of(b->world, "position"), velocity = attribute_of(b->world, "velocity");
    selkie_attribute_view id = attribute_of(b->world, "id");
    double height = 0.0;
    for (int64_t p = 0; p < selkie_world_particle_count(b->world); p++) {
        float *v = particle_of(&velocity, p);
        for (int d = 0; d < 2; d++)
            v[d] *= (float)(1.0 - damping * dt);
        if (b->is_end[*(const uint32_t *)(const void *)particle_of(&id, p)]) {
            v[1] -= (float)(force * dt / (mass * b->end_count));
            height += particle_of(&position, p)[1] / b->end_count;
        }
    }
    return height;
}

static void make_beam(beam *b, const beam_case *c)
{
    const double h = c->cell_size, height = c->across * h;
    solid_scene s;
    solid_tank(&s, 2, (c->length + 5) * h, (c->length + 10 + 2 * c->across) * h, 1, h);
    s.t.scene.discretization = c->form;
    set_walls(&s.t, SELKIE_WALL_NO_SLIP);
    set3(s.t.scene.gravity, 0, 0, 0);
    s.materials[0].elastoplastic.young = beam_young;
    s.materials[0].elastoplastic.poisson = beam_poisson;
    const double low = (c->length + 2) * h;
    add_liquid(&s.t, box_shape(0, low, 0, c->length * h, low + height, 0));
    *b = (beam){.c = c, .world = make_world_threads(&s.t.scene, 1)};

    /* The last column of points. */
    const int64_t count = selkie_world_particle_count(b->world);
    selkie_attribute_view position = attribute_of(b->world, "position"), id = attribute_of(b->world, "id");
    b->is_end = calloc((size_t)count, 1);
    for (int64_t p = 0; p < count; p++)
        if (particle_of(&position, p)[0] > (c->length - 0.5) * h)
            b->end_count += b->is_end[*(const uint32_t *)(const void *)particle_of(&id, p)] = 1;
    assert_int_equal(b->end_count, 2 * c->across);

    const double clamp = c->form == SELKIE_DISCRETIZATION_MPM ? 0.0 : 0.25 * h;
    b->load_at = (c->length - 0.25) * h - clamp;
    b->stiffness = beam_young / (1 - beam_poisson * beam_poisson) * height * height * height / 12.0;
    b->period = 2.0 * M_PI / 3.516 * sqrt(beam_density * height * pow(c->length * h - clamp, 4) / b->stiffness);
    b->start = load_beam(b, 0, 0);
}

static void free_beam(beam *b)
{
    free(b->is_end);
    selkie_world_destroy(b->world);
}

/* Loads it slowly until a time in periods, and damps the first mode. Returns the deflection of the end over the
 * length. */
static double deflect(beam *b, double alpha, double periods)
{
    const double force = alpha * b->stiffness / (b->load_at * b->load_at);
    double end = b->start;
    while (selkie_world_time(b->world) < periods * b->period) {
        const double ramp = fmin(1.0, selkie_world_time(b->world) / b->period);
        step_world(b->world);
        end = load_beam(b, force * ramp, 12.0 / b->period);
    }
    return (b->start - end) / b->load_at;
}

/* Ten points across. mpm is softer by the width of its splines; bonds are of first order at surfaces. */
static void cantilever(void **state)
{
    (void)state;
    static const double cases[][2] = {{0.3, 0.09899}, {1.0, 0.30172}, {3.0, 0.60325}};
    static const beam_case forms[] = {{SELKIE_DISCRETIZATION_MPM, 5, 40, 0.02},
                                      {SELKIE_DISCRETIZATION_REST_SHAPE, 5, 40, 0.02}};
    for (int f = 0; f < 2; f++)
        for (int n = 0; n < 3; n++) {
            char what[64];
            const int is_mpm = forms[f].form == SELKIE_DISCRETIZATION_MPM;
            beam b;
            make_beam(&b, &forms[f]);
            snprintf(what, sizeof what, "cantilever, %s, alpha %g", is_mpm ? "mpm" : "rest_shape", cases[n][0]);
            const double deflection = deflect(&b, cases[n][0], 2.0), within = is_mpm ? 0.08 : 0.03;
            note(what, "steps", (double)selkie_world_statistics(b.world)->step);
            between(what, "deflection of the end over the exact one", deflection / cases[n][1], 1 - within, 1 + within);
            free_beam(&b);
        }
}

/* A small load that acts at once: the end is lowest after half a period of the first mode. Shear lengthens the period
 * of the slender beam; Dunkerley's rule adds the squares of the periods of bending and of shear. */
static void first_swing(void **state)
{
    (void)state;
    static const beam_case forms[] = {{SELKIE_DISCRETIZATION_MPM, 5, 30, 0.02},
                                      {SELKIE_DISCRETIZATION_REST_SHAPE, 5, 30, 0.02}};
    for (int f = 0; f < 2; f++) {
        beam b;
        make_beam(&b, &forms[f]);
        const double force = 0.02 * b.stiffness / (b.load_at * b.load_at), shear = beam_young / 2 / (1 + beam_poisson);
        const double shear_period = 4.0 * b.load_at / sqrt(5.0 / 6.0 * shear / beam_density);
        const double expected = 0.5 * sqrt(b.period * b.period + shear_period * shear_period);
        double lowest = b.start, when = 0.0;
        while (selkie_world_time(b.world) < 1.3 * expected) {
            step_world(b.world);
            const double end = load_beam(&b, force, 0.0);
            if (end < lowest) {
                lowest = end;
                when = selkie_world_time(b.world);
            }
        }
        between(f ? "first swing, rest_shape" : "first swing, mpm", "half a period over that of beam theory with shear",
                when / expected, 0.95, 1.05);
        free_beam(&b);
    }
}

/* Under a constant load the end stays where it is. */
static void creep(void **state)
{
    (void)state;
    static const beam_case forms[] = {{SELKIE_DISCRETIZATION_MPM, 3, 16, 0.02},
                                      {SELKIE_DISCRETIZATION_REST_SHAPE, 3, 16, 0.02}};
    for (int f = 0; f < 2; f++) {
        beam b;
        make_beam(&b, &forms[f]);
        const double early = deflect(&b, 1.0, 8.0), late = deflect(&b, 1.0, 16.0);
        at_most(f ? "creep, rest_shape" : "creep, mpm", "growth of the deflection from 8 to 16 periods",
                fabs(late / early - 1.0), 0.01);
        free_beam(&b);
    }
}

/* --- Balances --- */

typedef struct momenta {
    double linear[3], angular[3]; /* means over points: m/s, m2/s about the middle of the domain */
} momenta;

/* mpm: the affine part of a point turns too: its moment of inertia is that of the spline, h^2/4 an axis. */
static momenta momenta_of(const selkie_world *world)
{
    const selkie_scene *scene = selkie_world_scene(world);
    const int dimension = scene->domain.dimension;
    int cells[3];
    const double h = selkie_scene_cells(scene, cells);
    double center[3] = {0, 0, 0};
    for (int d = 0; d < dimension; d++)
        center[d] = 0.5 * scene->domain.size[d];
    const particle_sums sums = sum_particles(world, center);
    momenta result = {{sums.momentum[0], sums.momentum[1], sums.momentum[2]},
                      {sums.angular[0], sums.angular[1], sums.angular[2]}};
    if (scene->discretization != SELKIE_DISCRETIZATION_MPM)
        return result;
    selkie_attribute_view affine = attribute_of(world, "velocity_gradient");
    for (int64_t p = 0; p < sums.count; p++) {
        const float *c = particle_of(&affine, p);
        for (int d = dimension == 3 ? 0 : 2; d < 3; d++) {
            const int i = (d + 1) % 3, j = (d + 2) % 3;
            result.angular[d] +=
                0.25 * h * h * ((double)c[dimension * j + i] - c[dimension * i + j]) / (double)sums.count;
        }
    }
    return result;
}

/* Two turning blocks meet off-centre, far from walls. Sums of single precision: some 1e-7 of the largest term a step,
 * which partly cancel. Bonds take strains from positions, which are rounded over the size of the domain. */
static void keeps_momenta(selkie_discretization form, const char *name, int dimension)
{
    char what[64];
    solid_scene s;
    solid_tank(&s, dimension, 2.0, 2.0, 2.0, dimension == 3 ? 0.1 : 0.05);
    s.t.scene.discretization = form;
    set3(s.t.scene.gravity, 0, 0, 0);
    for (int n = 0; n < 2; n++) {
        const double x = n ? 1.15 : 0.55, y = n ? 0.9 : 0.75;
        selkie_liquid_def *block = add_liquid(&s.t, box_shape(x, y, 0.8, x + 0.3, y + 0.3, 1.2));
        set3(block->velocity, n ? -1.0 : 1.0, 0.1, dimension == 3 ? 0.1 : 0.0);
        set3(block->angular_velocity, 0, 0, 3.0);
        set3(block->center, x + 0.15, y + 0.15, 1.0);
    }
    selkie_world *world = make_world(&s.t);
    step_world(world);
    const momenta before = momenta_of(world);
    run_until(world, 0.4);
    const momenta after = momenta_of(world);
    double linear = 0.0, angular = 0.0;
    for (int d = 0; d < 3; d++) {
        linear = fmax(linear, fabs(after.linear[d] - before.linear[d]));
        angular = fmax(angular, fabs(after.angular[d] - before.angular[d]));
    }
    snprintf(what, sizeof what, "two blocks meet, %s, %dD, %lld steps", name, dimension,
             (long long)selkie_world_statistics(world)->step);
    note(what, "angular momentum, m2/s a point", before.angular[2]);
    const double allowed = form == SELKIE_DISCRETIZATION_REST_SHAPE ? 5e-6 : 2e-6;
    at_most(what, "change of momentum over 1 m/s", linear, allowed);
    at_most(what, "change of angular momentum, m2/s", angular, allowed);
    selkie_world_destroy(world);
}

static void momentum(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        keeps_momenta(SELKIE_DISCRETIZATION_MPM, "mpm", dimension);
        keeps_momenta(SELKIE_DISCRETIZATION_REST_SHAPE, "rest_shape", dimension);
    }
    keeps_momenta(SELKIE_DISCRETIZATION_PRINTED, "printed", 2);
    keeps_momenta(SELKIE_DISCRETIZATION_ADDITIVE, "additive", 2);
}

/* A rubber ball falls on a floor without friction. Impact makes it vibrate, and transfers damp that; energy must not
 * grow beyond 1 % (kinetic and elastic energy are half a step apart). The centre then rises by the energy of its
 * motion, v^2/2g. 3 %: the last contact is over when the centre is fastest to within a step. */
static void bounce_of(selkie_discretization form, const char *what)
{
    solid_scene s;
    const double h = 0.04, radius = 0.2, drop = 0.5;
    solid_tank(&s, 2, 1.0, 1.2, 1, h);
    s.t.scene.discretization = form;
    s.materials[0].elastoplastic.young = 2e5;
    add_liquid(&s.t, sphere_shape(0.5, radius + drop, 0, radius));
    selkie_world *world = make_world(&s.t);
    const double start = sum_particles(world, NULL).position[1];
    double first = 0.0, most = 0.0, rising = 0.0, from = 0.0, top = 0.0;
    while (selkie_world_time(world) < 0.75) {
        step_world(world);
        const selkie_statistics *statistics = selkie_world_statistics(world);
        const particle_sums sums = sum_particles(world, NULL);
        const double energy = statistics->kinetic_energy + statistics->potential_energy + statistics->elastic_energy;
        first = first > 0.0 ? first : energy;
        most = fmax(most, energy);
        if (sums.momentum[1] > rising) {
            rising = sums.momentum[1];
            from = top = sums.position[1];
        }
        top = fmax(top, sums.position[1]);
    }
    note(what, "height of the bounce over the drop", (top - start + drop) / drop);
    between(what, "rise over that of its energy", (top - from) / (rising * rising / (2.0 * GRAVITY)), 0.97, 1.03);
    at_most(what, "largest energy over the first", most / first, 1.01);
    selkie_world_destroy(world);
}

static void bounce(void **state)
{
    (void)state;
    bounce_of(SELKIE_DISCRETIZATION_MPM, "rubber ball, mpm");
    bounce_of(SELKIE_DISCRETIZATION_REST_SHAPE, "rubber ball, rest_shape");
}

/* A jelly ball hits the floor so fast that points are pressed to a fifth and stretched threefold: laws in lanes must
 * stay exact there, and steps short enough. Energy must not grow beyond 1 %, as above. */
static void splat(void **state)
{
    (void)state;
    solid_scene s;
    solid_tank(&s, 3, 0.6, 0.6, 0.6, 0.03);
    s.t.scene.discretization = SELKIE_DISCRETIZATION_MPM;
    s.materials[0].elastoplastic.young = 2e4;
    s.materials[0].elastoplastic.poisson = 0.4;
    add_liquid(&s.t, sphere_shape(0.3, 0.3, 0.3, 0.15));
    s.t.liquids[0].velocity[1] = -5.0;
    selkie_world *world = make_world(&s.t);
    double first = 0.0, most = 0.0;
    while (selkie_world_time(world) < 0.15) {
        step_world(world);
        const selkie_statistics *statistics = selkie_world_statistics(world);
        const double energy = statistics->kinetic_energy + statistics->potential_energy + statistics->elastic_energy;
        first = first > 0.0 ? first : energy;
        most = fmax(most, energy);
    }
    at_most("jelly ball at 5 m/s, mpm", "largest energy over the first", most / first, 1.01);
    selkie_world_destroy(world);
}

/* --- Flow --- */

/* m: the end of the pile along x, up to the first cell without points: single grains roll on, and the front of an
 * experiment is that of the pile. */
static double pile_end(const selkie_world *world)
{
    int cells[3], filled[4096] = {0}, last = 0;
    const double h = selkie_scene_cells(selkie_world_scene(world), cells);
    selkie_attribute_view position = attribute_of(world, "position");
    double end = 0.0;
    assert_true(cells[0] < 4096);
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
        filled[(int)(particle_of(&position, p)[0] / h)] = 1;
    while (filled[last])
        last++;
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
        if (particle_of(&position, p)[0] < last * h)
            end = fmax(end, particle_of(&position, p)[0]);
    return end;
}

/* m: where a deposit along x becomes thinner than a thickness (m), by its volume over columns of a width (m). */
static double deposit_end(const selkie_world *world, double width, double volume, double thickness)
{
    double height[1024] = {0.0};
    int column = 0;
    selkie_attribute_view position = attribute_of(world, "position");
    const int64_t count = selkie_world_particle_count(world);
    for (int64_t p = 0; p < count; p++)
        height[(int)(particle_of(&position, p)[0] / width)] += volume / (double)count / width;
    while (height[column] >= thickness)
        column++;
    assert_true(column > 0);
    const double before = height[column - 1], behind = height[column];
    return (column - 0.5 + (before - thickness) / (before - behind)) * width;
}

typedef struct column_case {
    double aspect;
    int across;  /* cells */
    int is_long; /* run by `long` alone */
} column_case;

static int runs_long;

/* Run-out of a column over 1.2 a or 1.9 a^(2/3). */
static double run_out(const column_case *c)
{
    const double width = 0.1, slope = tan(31.0 * M_PI / 180.0), a = c->aspect;
    const double expected = a > 2.3 ? 1.9 * pow(a, 2.0 / 3.0) : 1.2 * a;
    double sum = 0.0;
    solid_scene s;
    solid_tank(&s, 2, width * (2.0 + 1.5 * expected), width * (a + 0.5), 1, width / c->across);
    s.t.scene.domain.liquid_friction[SELKIE_SIDE_Y_MIN] = slope;
    s.materials[0].density = 1600.0;
    s.materials[0].elastoplastic.young = 4e5;
    s.materials[0].elastoplastic.plasticity = SELKIE_PLASTICITY_DRUCKER_PRAGER;
    s.materials[0].elastoplastic.friction_angle = asin(slope) * 180.0 / M_PI;
    add_liquid(&s.t, box_shape(0, 0, 0, width, a * width, 0));
    selkie_world *world = make_world(&s.t);
    run_until(world, 5.0 * sqrt(a * width / GRAVITY));
    for (int n = 4; n <= 6; n++)
        sum += deposit_end(world, width / 8.0, a * width * width, 0.01 * n * width) / 3.0;
    selkie_world_destroy(world);
    return (sum - width) / width / expected;
}

/* A column of height a L and width L beside a smooth wall collapses on a rough floor by (L' - L)/L = 1.2 a for a up to
 * 2.3, and by 1.9 a^(2/3) if it is taller (Lube et al. 2005; Lajeunesse et al. 2005 find the same), whatever the grains
 * are. Lube's sand has an angle of repose of 31 degrees. Where the law flows in plane strain, shear stress is
 * sin(angle) times the pressure: the friction angle whose sine is tan(31 degrees), 36.9 degrees, slides as it does, and
 * so does the floor.
 *
 * The front of such a law is a parabola that touches the floor (Ritter's solution with friction): its end has no
 * thickness. Experiments end at grains. The front here is the mean of where 4, 5 and 6 % of L are left, two or three
 * grains of the experiments. Low columns need cells: with 32 over its height a column of a = 0.8 ends 12 % short. */
static void sand_column(void **state)
{
    (void)state;
    static const column_case cases[] = {{1.5, 20, 0}, {3.0, 20, 0}, {0.8, 60, 1},
                                        {0.8, 80, 1}, {1.5, 40, 1}, {3.0, 40, 1}};
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        char what[64];
        if (cases[n].is_long && !runs_long)
            continue;
        snprintf(what, sizeof what, "sand column, a = %g, %d cells", cases[n].aspect, cases[n].across);
        between(what, "run-out over 1.2 a or 1.9 a^(2/3)", run_out(&cases[n]), 0.9, 1.1);
    }
}

/* A box of dough sinks into itself; how far does not depend on the step. */
static void slump(void **state)
{
    (void)state;
    double first = 0.0;
    for (int n = 0; n < 4; n++) {
        solid_scene s;
        solid_tank(&s, 2, 1.6, 0.7, 1, 0.04);
        s.t.scene.domain.walls[SELKIE_SIDE_Y_MIN] = SELKIE_WALL_NO_SLIP;
        s.t.scene.time.cfl = 0.4 / (1 << n);
        s.materials[0].elastoplastic.young = 5e4;
        s.materials[0].elastoplastic.poisson = 0.4;
        s.materials[0].elastoplastic.plasticity = SELKIE_PLASTICITY_VON_MISES;
        s.materials[0].elastoplastic.yield = 300.0;
        s.materials[0].elastoplastic.flow_time = 0.02;
        add_liquid(&s.t, box_shape(0, 0, 0, 0.4, 0.56, 0));
        selkie_world *world = make_world(&s.t);
        run_until(world, 1.0);
        const double spread = pile_end(world) - 0.4;
        first = n == 0 ? spread : first;
        note("slump of dough", "spread, m", spread);
        between("slump of dough, steps of 1, 1/2, 1/4, 1/8", "spread over the first", spread / first, 0.95, 1.05);
        selkie_world_destroy(world);
    }
}

/* --- Three models --- */

typedef struct bar_result {
    double departure; /* root mean square distance from the rest shape, moved and turned to fit best, over the size */
    double stretched; /* the most, while it was pressed */
    int stable;
} bar_result;

/* Departure from the places that points had at the start, by id. 2D: the best rotation has a closed form. */
static double bar_departure(const selkie_world *world, const double (*start)[2])
{
    selkie_attribute_view position = attribute_of(world, "position"), id = attribute_of(world, "id");
    const int64_t count = selkie_world_particle_count(world);
    double mean[2] = {0, 0}, rest[2] = {0, 0}, along = 0, across = 0, size = 0, squares = 0;
    for (int64_t p = 0; p < count; p++)
        for (int d = 0; d < 2; d++) {
            mean[d] += particle_of(&position, p)[d] / (double)count;
            rest[d] += start[p][d] / (double)count;
        }
    for (int64_t p = 0; p < count; p++) {
        const double *from = start[*(const uint32_t *)(const void *)particle_of(&id, p)];
        const double x = particle_of(&position, p)[0] - mean[0], y = particle_of(&position, p)[1] - mean[1];
        const double a = from[0] - rest[0], b = from[1] - rest[1];
        along += a * x + b * y;
        across += a * y - b * x;
        size += a * a + b * b;
        squares += x * x + y * y;
    }
    return sqrt(fmax(0.0, squares + size - 2.0 * sqrt(along * along + across * across)) / size);
}

static void damp(selkie_world *world, double rate)
{
    selkie_attribute_view velocity = attribute_of(world, "velocity");
    const double kept = 1.0 - rate * selkie_world_statistics(world)->dt;
    for (int64_t p = 0; rate > 0.0 && p < selkie_world_particle_count(world); p++)
        for (int d = 0; d < 2; d++)
            particle_of(&velocity, p)[d] *= (float)kept;
}

/* A bar is pressed towards its middle and turned for a while, then it is free (Gerszewski, Fig. 4.8). */
static bar_result press_bar(selkie_discretization form, double yield)
{
    solid_scene s;
    selkie_force_def force;
    solid_tank(&s, 2, 2.0, 2.0, 1, 0.08);
    set3(s.t.scene.gravity, 0, 0, 0);
    s.t.scene.discretization = form;
    s.materials[0].elastoplastic.young = 5e4;
    if (yield > 0.0) {
        s.materials[0].elastoplastic.plasticity = SELKIE_PLASTICITY_VON_MISES;
        s.materials[0].elastoplastic.yield = yield;
    }
    selkie_force_defaults(&force, SELKIE_FORCE_VORTEX);
    set3(force.point, 1.0, 1.0, 0);
    force.radius = 1.0;
    force.falloff = SELKIE_FALLOFF_CONSTANT;
    force.pull = 60.0;
    force.spin = 30.0;
    force.end = 0.15;
    s.t.scene.forces = &force;
    s.t.scene.force_count = 1;
    add_liquid(&s.t, box_shape(0.6, 0.8, 0, 1.4, 1.2, 0));
    selkie_world *world = make_world_threads(&s.t.scene, 1);

    /* Places at the start. */
    const int64_t count = selkie_world_particle_count(world);
    selkie_attribute_view position = attribute_of(world, "position"), id = attribute_of(world, "id");
    double(*start)[2] = calloc((size_t)count, sizeof *start);
    for (int64_t p = 0; p < count; p++)
        for (int d = 0; d < 2; d++)
            start[*(const uint32_t *)(const void *)particle_of(&id, p)][d] = particle_of(&position, p)[d];

    bar_result result = {.stable = 1};
    selkie_error error = {0};
    while (result.stable && selkie_world_time(world) < 1.5) {
        result.stable = selkie_world_step(world, &error) == SELKIE_OK;
        result.departure = bar_departure(world, (const double(*)[2])start);
        damp(world, selkie_world_time(world) > 0.15 ? 5.0 : 0.0);
        result.stretched = fmax(result.stretched, result.departure);
    }
    free(start);
    selkie_world_destroy(world);
    return result;
}

/* As the source tells it: the elastic body returns with a composed deformation and with a rest shape, not with added
 * strains, which are blind to rotation; the plastic one flows in all forms. The source's rest shape became unstable
 * then, ours does not. "Returns": less than 5 % of what was pressed is left; what does not return leaves twice that. */
static void three_models(void **state)
{
    (void)state;
    static const struct {
        selkie_discretization form;
        const char *name;
    } forms[] = {{SELKIE_DISCRETIZATION_MPM, "mpm"},
                 {SELKIE_DISCRETIZATION_REST_SHAPE, "rest_shape"},
                 {SELKIE_DISCRETIZATION_PRINTED, "printed"},
                 {SELKIE_DISCRETIZATION_ADDITIVE, "additive"}};
    for (int f = 0; f < 4; f++) {
        char what[64];
        snprintf(what, sizeof what, "pressed bar, %s", forms[f].name);
        const bar_result elastic = press_bar(forms[f].form, 0.0), plastic = press_bar(forms[f].form, 1500.0);
        assert_true(elastic.stable && plastic.stable);
        const double left = elastic.departure / elastic.stretched;
        if (forms[f].form == SELKIE_DISCRETIZATION_ADDITIVE)
            between(what, "elastic: what is left of the departure", left, 0.1, 1.0);
        else
            at_most(what, "elastic: what is left of the departure", left, 0.05);
        between(what, "plastic: what is left of the departure", plastic.departure / plastic.stretched, 0.7, 1.0);
    }
}

/* With the argument `long`: all columns of sand and nothing else. */
int main(int argc, char **argv)
{
    const struct CMUnitTest columns[] = {cmocka_unit_test(sand_column)};
    runs_long = argc > 1 && strcmp(argv[1], "long") == 0;
    if (runs_long)
        return cmocka_run_group_tests(columns, NULL, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(momentum),    cmocka_unit_test(bounce),       cmocka_unit_test(cantilever),
        cmocka_unit_test(first_swing), cmocka_unit_test(creep),        cmocka_unit_test(sand_column),
        cmocka_unit_test(slump),       cmocka_unit_test(three_models), cmocka_unit_test(splat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
