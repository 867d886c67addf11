/* Viscosity and walls that hold: a shear flow between two no-slip walls that dies, one that a moving wall starts, and
 * the cavity with a moving lid against Ghia, Ghia and Shin 1982. */
#include "table.h"

/* A channel along x, open at both ends, so that no pressure builds up; what happens in its middle third does not know
 * of the ends. Height 1, speeds so small that the liquid stays about where it is. */
static void channel(test_scene *t, int dimension, int cells, double viscosity, double room_above)
{
    const double h = 1.0 / cells;
    tank(t, dimension, 4, 1 + room_above, 4 * h, h);
    t->scene.gravity[1] = 0.0;
    t->scene.viscosity = viscosity;
    selkie_scene_set_method(&t->scene, SELKIE_METHOD_APIC);
    t->scene.domain.walls[0] = t->scene.domain.walls[1] = SELKIE_WALL_OPEN;
    t->scene.domain.walls[2] = t->scene.domain.walls[3] = SELKIE_WALL_NO_SLIP;
    add_liquid(t, box_shape(0, 0, 0, 4, 1, 1));
}

/* Velocity along x of the grid, mean over the middle third, row by row. Returns the number of rows. */
static int profile(const selkie_world *world, int cells, double *u)
{
    selkie_field_view field = field_of(world, "velocity_x");
    int values = field.extent[0] * field.extent[1] * field.extent[2], *counts = calloc((size_t)cells, sizeof *counts);
    memset(u, 0, (size_t)cells * sizeof *u);
    for (int b = 0; b < field.block_count; b++)
        for (int n = 0; n < values; n++) {
            int cell[3];
            cell_of(&field, b, n, cell);
            float value = field.data[(size_t)b * (size_t)values + (size_t)n];
            if (cell[1] < 0 || cell[1] >= cells || 3 * cell[0] < 4 * cells || 3 * cell[0] > 8 * cells || value != value)
                continue;
            u[cell[1]] += value;
            counts[cell[1]]++;
        }
    for (int j = 0; j < cells; j++)
        u[j] /= counts[j];
    free(counts);
    return cells;
}

/* u = U sin(pi y) exp(-nu pi^2 t) */
static void shear_decays(int dimension, selkie_method method, int cells)
{
    const double nu = 1.0, speed = 0.05, time = 0.1, h = 1.0 / cells;
    test_scene t;
    channel(&t, dimension, cells, nu, 0.0);
    selkie_scene_set_method(&t.scene, method);
    t.scene.time.step = 0.0005; /* the implicit step is of first order */
    selkie_world *world = make_world(&t);
    selkie_attribute_view position = attribute_of(world, "position"), velocity = attribute_of(world, "velocity");
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
        particle_of(&velocity, p)[0] = (float)(speed * sin(M_PI * particle_of(&position, p)[1]));
    run_until(world, time);
    double u[256], mode = 0.0, worst = 0.0, exact = exp(-nu * M_PI * M_PI * time);
    profile(world, cells, u);
    for (int j = 0; j < cells; j++) {
        double shape = sin(M_PI * (j + 0.5) * h);
        mode += 2.0 * h * u[j] * shape / speed;
        worst = fmax(worst, fabs(u[j] / speed - exact * shape));
    }
    selkie_world_destroy(world);
    char what[64];
    snprintf(what, sizeof what, "shear between walls %dD %s, %d cells", dimension, method_name(method), cells);
    at_most(what, "rate of decay, relative error", fabs(log(mode) / log(exact) - 1.0),
            method == SELKIE_METHOD_FLIP ? 0.1 : 0.05); /* FLIP's share of PIC adds a little in each of 200 steps */
    at_most(what, "profile, largest error / U", worst, method == SELKIE_METHOD_FLIP ? 0.04 : 0.02);
}

static void shears(void **state)
{
    (void)state;
    shear_decays(2, SELKIE_METHOD_APIC, 16);
    shear_decays(2, SELKIE_METHOD_FLIP, 16);
    shear_decays(3, SELKIE_METHOD_FLIP, 16);
    shear_decays(3, SELKIE_METHOD_APIC, 16);
}

/* The upper wall is an obstacle that slides along itself from t = 0. Exact: Couette's line and a sine series. */
static void couette(void **state)
{
    (void)state;
    enum { CELLS = 16 };
    const double nu = 1.0, speed = 0.05, h = 1.0 / CELLS;
    test_scene t;
    channel(&t, 2, CELLS, nu, 4 * h);
    t.scene.time.step = 0.0005;
    selkie_obstacle_def *lid = add_obstacle(&t, box_shape(-10, 1, -10, 10, 3, 10));
    lid->velocity[0] = speed;
    lid->surface = SELKIE_WALL_NO_SLIP;
    selkie_world *world = make_world(&t);
    for (int stage = 0; stage < 2; stage++) {
        double time = stage ? 0.5 : 0.05, u[CELLS], worst = 0.0;
        run_until(world, time);
        profile(world, CELLS, u);
        for (int j = 0; j < CELLS; j++) {
            double y = (j + 0.5) * h, exact = y;
            for (int n = 1; n < 60; n++)
                exact +=
                    2.0 / M_PI * (n % 2 ? -1.0 : 1.0) / n * sin(n * M_PI * y) * exp(-n * n * M_PI * M_PI * nu * time);
            worst = fmax(worst, fabs(u[j] / speed - exact));
        }
        at_most("Couette start-up 2D APIC, 16 cells",
                stage ? "profile at t nu = 0.5, largest error / U" : "profile at t nu = 0.05, largest error / U", worst,
                0.02);
    }
    selkie_world_destroy(world);
}

/* A thick layer under a thin one, dragged by a lid: the stress is the same in both, so each has its own slope. The
 * viscosity changes over about two cells, each counts for a jump of a cell at the interface: U times cells / CELLS, and
 * twice that beside a layer that does not move. */
static void drag_layers(const char *what, double thick, double thin, double end, double bound)
{
    enum { CELLS = 32 };
    const double ratio = thin / thick, speed = 0.05, h = 1.0 / CELLS;
    test_scene t;
    channel(&t, 2, CELLS, 0.0, 4 * h);
    selkie_material_def materials[2];
    for (int m = 0; m < 2; m++) {
        selkie_material_defaults(&materials[m]);
        materials[m].name = m ? "thin" : "thick";
        materials[m].viscosity = m ? thin : thick;
    }
    t.scene.materials = materials;
    t.scene.material_count = 2;
    t.scene.liquid_count = 0;
    add_liquid(&t, box_shape(0, 0, 0, 4, 0.5, 1))->material = "thick";
    add_liquid(&t, box_shape(0, 0.5, 0, 4, 1, 1))->material = "thin";
    t.scene.time.step = 0.01 * end; /* steady in the end: the thin layer takes about 1 s */
    selkie_obstacle_def *lid = add_obstacle(&t, box_shape(-10, 1, -10, 10, 3, 10));
    lid->velocity[0] = speed;
    lid->surface = SELKIE_WALL_NO_SLIP;
    selkie_world *world = make_world(&t);
    double u[CELLS], worst = 0.0, between_layers = ratio / (1.0 + ratio);
    run_until(world, end);
    profile(world, CELLS, u);
    for (int j = 0; j < CELLS; j++) {
        const double y = (j + 0.5) * h;
        const double exact =
            y < 0.5 ? 2.0 * y * between_layers : between_layers + (2.0 * y - 1.0) * (1.0 - between_layers);
        worst = fmax(worst, fabs(u[j] / speed - exact));
    }
    at_most(what, "profile, largest error / U", worst, bound);
    selkie_world_destroy(world);
}

static void two_layers(void **state)
{
    (void)state;
    drag_layers("two layers 2D APIC, viscosities 1 : 0.1", 1.0, 0.1, 4.0, 2.0 / 32);
    drag_layers("two layers 2D APIC, viscosities 1000 : 0.1", 1000.0, 0.1, 2.0, 4.0 / 32);
}

/* A liquid that is ten times thinner at the warm lid than at the cold floor. The temperature is linear between them and
 * the logarithm of the viscosity as well: u = U (10^y - 1) / 9. The bound is as of two layers. */
static void warm_lid(void **state)
{
    (void)state;
    enum { CELLS = 16 };
    const double speed = 0.05, h = 1.0 / CELLS;
    static const selkie_viscosity_point table[2] = {{300.0, 1.0}, {400.0, 0.1}};
    test_scene t;
    channel(&t, 2, CELLS, 0.0, 4 * h);
    selkie_material_def material;
    selkie_material_defaults(&material);
    material.name = "syrup";
    material.heat_capacity = 1000.0;
    material.conductivity = 5e6; /* a diffusivity of 5 m2/s */
    material.viscosity_table = table;
    material.viscosity_point_count = 2;
    t.scene.materials = &material;
    t.scene.material_count = 1;
    t.liquids[0].temperature = 300.0;
    t.scene.time.step = 0.01;
    t.scene.domain.temperature[2] = 300.0;
    selkie_obstacle_def *lid = add_obstacle(&t, box_shape(-10, 1, -10, 10, 3, 10));
    lid->velocity[0] = speed;
    lid->surface = SELKIE_WALL_NO_SLIP;
    lid->temperature = 400.0;
    add_probe(&t, "middle", SELKIE_PROBE_TEMPERATURE, 2, 0.5, 0);
    selkie_world *world = make_world(&t);
    double u[CELLS], worst = 0.0;
    run_until(world, 2.0);
    profile(world, CELLS, u);
    for (int j = 0; j < CELLS; j++)
        worst = fmax(worst, fabs(u[j] / speed - (pow(10.0, (j + 0.5) * h) - 1.0) / 9.0));
    at_most("warm lid 2D APIC, viscosities 1 : 0.1, 16 cells", "temperature in the middle, error (K)",
            fabs(selkie_world_probe_value(world, 0) - 350.0), 1.0);
    at_most("warm lid 2D APIC, viscosities 1 : 0.1, 16 cells", "profile, largest error / U", worst, 1.0 / CELLS);
    selkie_world_destroy(world);
}

static void cavity(void **state)
{
    (void)state;
    enum { CELLS = 64 };
    const double h = 1.0 / CELLS;
    test_scene t;
    tank(&t, 2, 1, 1 + 4 * h, 0, h);
    set_walls(&t, SELKIE_WALL_NO_SLIP);
    t.scene.gravity[1] = 0.0;
    selkie_scene_set_method(&t.scene, SELKIE_METHOD_APIC);
    t.scene.viscosity = 0.01;
    t.scene.time.cfl = 1.0;
    t.scene.time.fps = 1.0;
    add_liquid(&t, box_shape(0, 0, 0, 1, 1, 0));
    selkie_obstacle_def *lid = add_obstacle(&t, box_shape(-40, 1, -1, 3, 3, 1));
    lid->velocity[0] = 1.0;
    lid->surface = SELKIE_WALL_NO_SLIP;
    data_table u = read_table("ghia_u.csv", 2), v = read_table("ghia_v.csv", 2);
    assert_int_equal(u.rows, 17);
    assert_int_equal(v.rows, 17);
    static const char *const names[] = {"p0",  "p1",  "p2",  "p3",  "p4",  "p5",  "p6",  "p7",  "p8",  "p9",
                                        "p10", "p11", "p12", "p13", "p14", "p15", "p16", "p17", "p18", "p19",
                                        "p20", "p21", "p22", "p23", "p24", "p25", "p26", "p27", "p28", "p29"};
    int probes = 0;
    for (int n = 1; n < 16; n++)
        add_probe(&t, names[probes++], SELKIE_PROBE_VELOCITY, 0.5, u.value[n][0], 0);
    for (int n = 1; n < 16; n++)
        add_probe(&t, names[probes++], SELKIE_PROBE_VELOCITY, v.value[n][0], 0.5, 0);
    selkie_world *world = make_world(&t);
    run_until(world, 8.0);
    /* The mean over a while takes the particles' noise out. */
    double mean[60] = {0}, weight = 0.0;
    while (selkie_world_time(world) < 10.0 - 1e-9) {
        step_world(world);
        for (int c = 0; c < 60; c++)
            mean[c] += selkie_world_probe_value(world, c);
        weight += 1.0;
    }
    double sum_u = 0.0, sum_v = 0.0, worst = 0.0;
    for (int n = 0; n < 15; n++) {
        double du = mean[2 * n] / weight - u.value[n + 1][1], dv = mean[30 + 2 * n + 1] / weight - v.value[n + 1][1];
        sum_u += du * du;
        sum_v += dv * dv;
        worst = fmax(worst, fmax(fabs(du), fabs(dv)));
    }
    const char *what = "lid cavity 2D APIC, Re 100, 64 x 64";
    at_most(what, "u on the vertical centre line, RMS error", sqrt(sum_u / 15), 0.01);
    at_most(what, "v on the horizontal centre line, RMS error", sqrt(sum_v / 15), 0.01);
    note(what, "largest error", worst);
    note(what, "volume ratio", selkie_world_statistics(world)->volume_ratio);
    selkie_world_destroy(world);
}

/* Rate at which a standing wave in a tank with slip walls decays, 1/s, by the swing of the centre of mass. The wave
 * length is twice the tank's, `cells` long. `offset` moves the level between two faces (cells). */
static double wave_rate(double viscosity, int cells, double offset)
{
    const double length = 1.0, h = 2.0 * length / cells, depth = 0.5 + offset * h, amplitude = 0.02, k = M_PI / length;
    const double period = 2.0 * M_PI / sqrt(GRAVITY * k * tanh(k * depth));
    test_scene t;
    tank(&t, 2, length, 0.75, 4 * h, h);
    selkie_scene_set_method(&t.scene, SELKIE_METHOD_APIC);
    t.scene.viscosity = viscosity;
    t.scene.time.step = period / 200.0;
    selkie_shape wave;
    selkie_shape_defaults(&wave, SELKIE_SHAPE_WAVE);
    wave.level = depth;
    wave.amplitude = amplitude;
    wave.wave_number[0] = k;
    add_liquid(&t, wave);
    selkie_world *world = make_world(&t);

    /* Extremes between crossings of zero. */
    double before = sum_particles(world, NULL).position[0] - 0.5 * length, extreme = 0.0, extremes[8];
    int count = 0;
    while (count < 6 && selkie_world_time(world) < 4.0 * period) {
        step_world(world);
        const double now = sum_particles(world, NULL).position[0] - 0.5 * length;
        if ((now > 0) != (before > 0)) {
            extremes[count++] = extreme;
            extreme = 0.0;
        }
        extreme = fmax(extreme, fabs(now));
        before = now;
    }
    selkie_world_destroy(world);
    assert_int_equal(count, 6);
    return -log(extremes[5] / extremes[1]) / (2.0 * period);
}

/* Lamb 1932, sec. 349: the growth n of a wave of frequency omega obeys (n + 2 e)^2 + 1 = 4 e^(3/2) sqrt(n + e), in
 * units of omega, with e = nu k^2 / omega. To the next order after Lamb's 2 e the rate of decay is 2 e (1 - sqrt(e /
 * 2)). 10 % at 64 cells a wavelength, 20 % at 32: an extreme is
 * read to a hundredth, and the surface is known to a few hundredths of a cell. */
static void waves_decay(void **state)
{
    (void)state;
    const double k = M_PI, omega = sqrt(GRAVITY * k * tanh(0.5 * k)), e = 0.02;
    const double viscosity = e * omega / (k * k), exact = 2.0 * e * omega * (1.0 - sqrt(0.5 * e));
    for (int place = 0; place < 6; place++) {
        const int cells = place < 3 ? 64 : 32;
        const double offset = 0.3 * (place % 3), bound = cells == 64 ? 0.1 : 0.2;
        char what[64];
        snprintf(what, sizeof what, "viscous wave 2D APIC, %d cells, level + %.1f h", cells, offset);
        const double none = wave_rate(0.0, cells, offset), all = wave_rate(viscosity, cells, offset);
        note(what, "rate without viscosity / exact", none / exact);
        between(what, "rate of decay / exact", all / exact, 1.0 - bound, 1.0 + bound);
    }
}

/* Amplitude of the transverse velocity cos(k x) of the particles. */
static double bending(const selkie_world *world, double k)
{
    selkie_attribute_view position = attribute_of(world, "position"), velocity = attribute_of(world, "velocity");
    double sum = 0.0, norm = 0.0;
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
        const double shape = cos(k * (double)particle_of(&position, p)[0]);
        sum += shape * (double)particle_of(&velocity, p)[1];
        norm += shape * shape;
    }
    return sum / norm;
}

/* A free sheet in zero gravity between two slip walls, half a wavelength apart, that moves by v = V cos(k x). Its
 * bending resists at the rate nu H^2 k^4 / 3 (thin sheets), 0.92 of it at a wavelength of 16 H (Stokes). The sheet must
 * have 94 % of that stiffness: pressure and viscosity are solved one after the other, and two passes leave 5 %. */
static void sheet_bends(void **state)
{
    (void)state;
    enum { CELLS = 64 };
    const double h = 1.0 / CELLS, thickness = 8 * h, k = M_PI, nu = 1.0, time = 0.5;
    const double exact = 0.92 * nu * thickness * thickness * pow(k, 4) / 3.0;
    test_scene t;
    tank(&t, 2, 1, 0.5, 4 * h, h);
    t.scene.gravity[1] = 0.0;
    t.scene.viscosity = nu;
    t.scene.time.step = 0.01;
    selkie_scene_set_method(&t.scene, SELKIE_METHOD_APIC);
    add_liquid(&t, box_shape(0, 12 * h, 0, 1, 12 * h + thickness, 1));
    selkie_world *world = make_world(&t);
    selkie_attribute_view position = attribute_of(world, "position"), velocity = attribute_of(world, "velocity");
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
        particle_of(&velocity, p)[1] = (float)(0.01 * cos(k * (double)particle_of(&position, p)[0]));
    run_until(world, 0.05); /* the flow through the thickness adjusts */
    const double start = bending(world, k), begin = selkie_world_time(world);
    run_until(world, begin + time);
    between("free sheet 2D APIC, 8 cells thick", "rate of bending / exact",
            -log(bending(world, k) / start) / time / exact, 0.94, 1.06);
    selkie_world_destroy(world);
}

/* Strips and a ball of thick liquid over a thin one, beside walls and a ball with friction: solves whose residual falls
 * late. Each must converge, or the run ends. Volume: the bound of the double dam with idp, 1 %. */
static void thick_over_thin(void **state)
{
    (void)state;
    test_scene t;
    selkie_material_def materials[2];
    tank(&t, 2, 1, 1, 1, 1.0 / 64);
    set_walls(&t, SELKIE_WALL_NO_SLIP);
    for (int m = 0; m < 2; m++) {
        selkie_material_defaults(&materials[m]);
        materials[m].name = m ? "thin" : "thick";
        materials[m].viscosity = m ? 1e-6 : 300.0;
        materials[m].density = m ? 1000.0 : 1400.0;
    }
    t.scene.materials = materials;
    t.scene.material_count = 2;
    t.scene.volume = SELKIE_VOLUME_IDP;
    t.scene.transfer = SELKIE_TRANSFER_APIC;
    add_liquid(&t, box_shape(0.05, 0.25, 0, 0.1, 0.85, 1))->material = "thick";
    add_liquid(&t, box_shape(0.3, 0.45, 0, 0.9, 0.5, 1))->material = "thick";
    add_liquid(&t, sphere_shape(0.72, 0.75, 0, 0.12))->material = "thick";
    add_liquid(&t, box_shape(0, 0, 0, 1, 0.12, 1))->material = "thin";
    add_obstacle(&t, sphere_shape(0.5, 0.3, 0, 0.08))->surface = SELKIE_WALL_NO_SLIP;
    selkie_world *world = make_world(&t);
    run_until(world, 0.3);
    at_most("thick over thin", "change of volume, part", fabs(selkie_world_statistics(world)->volume_ratio - 1.0),
            0.01);
    selkie_world_destroy(world);
}

/* Liquid at rest between walls that hold it stays at rest, at any step. A hundredth of the speed of waves does not show
 * in pictures; gravity's kick in a step of 10 ms is seven hundredths of it. Viscosity that saw the kick before pressure
 * balances it would keep 0.3 to 0.9 of it for ever. */
static void pools_lie_still(void **state)
{
    (void)state;
    static const struct {
        int dimension;
        double step, viscosity; /* s, 0 = by the CFL number; m2/s */
    } cases[] = {{2, 0.0, 1e-4},  {2, 0.0, 0.02},  {2, 0.001, 0.02}, {2, 0.01, 1e-3}, {2, 0.01, 0.02},
                 {2, 0.02, 0.02}, {2, 0.02, 10.0}, {3, 0.0, 0.02},   {3, 0.01, 1e-3}, {3, 0.02, 0.5}};
    const double h = 0.02, depth = 10 * h;
    for (size_t n = 0; n < 2 * sizeof cases / sizeof *cases; n++) {
        const int flip = n % 2, dimension = cases[n / 2].dimension;
        test_scene t;
        tank(&t, dimension, 16 * h, 14 * h, 8 * h, h);
        for (int side = 0; side < 2 * dimension; side++)
            t.scene.domain.walls[side] = SELKIE_WALL_NO_SLIP;
        t.scene.transfer = flip ? SELKIE_TRANSFER_FLIP : SELKIE_TRANSFER_APIC;
        t.scene.viscosity = cases[n / 2].viscosity;
        t.scene.time.step = cases[n / 2].step;
        t.scene.time.fps = 1.0; /* frames do not shorten steps */
        add_liquid(&t, box_shape(0, 0, 0, 16 * h, depth, 8 * h));
        selkie_world *world = make_world(&t);
        run_until(world, 10.0);
        char what[80];
        snprintf(what, sizeof what, "pool %dD %s, %g m2/s, step %g s", dimension, flip ? "FLIP" : "APIC",
                 cases[n / 2].viscosity, cases[n / 2].step);
        at_most(what, "largest speed / sqrt(g H)", selkie_world_statistics(world)->max_speed / sqrt(GRAVITY * depth),
                0.01);
        selkie_world_destroy(world);
    }
}

/* The same with unilateral pressure, whose balance has the bounds of its pressure: without it these pools kept 0.04 to
 * 0.6 of sqrt(g H), with that of the bilateral pressure the thick one 0.05. */
static void unilateral_pools_lie_still(void **state)
{
    (void)state;
    static const struct {
        int dimension;
        selkie_transfer transfer;
        double step, viscosity, level; /* s, 0 = by the CFL number; m2/s; cells above a face */
        int slips;
    } cases[] = {{2, SELKIE_TRANSFER_FLIP, 0.0, 1e-3, 0.0, 0},   {2, SELKIE_TRANSFER_APIC, 0.01, 0.02, 0.0, 0},
                 {2, SELKIE_TRANSFER_APIC, 0.0, 1e-6, 0.0, 0},   {2, SELKIE_TRANSFER_FLIP, 0.02, 1e-3, 0.25, 0},
                 {2, SELKIE_TRANSFER_APIC, 0.02, 10.0, 0.5, 0},  {3, SELKIE_TRANSFER_FLIP, 0.01, 1e-3, 0.0, 0},
                 {3, SELKIE_TRANSFER_APIC, 0.02, 0.5, 0.375, 0}, {2, SELKIE_TRANSFER_APIC, 0.01, 0.1, 0.0, 1},
                 {2, SELKIE_TRANSFER_FLIP, 0.01, 1.0, 0.25, 1}};
    const double h = 0.02;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        const int dimension = cases[n].dimension;
        const double depth = (10 + cases[n].level) * h;
        test_scene t;
        tank(&t, dimension, 16 * h, 14 * h, 8 * h, h);
        for (int side = 0; side < 2 * dimension; side++)
            t.scene.domain.walls[side] = cases[n].slips ? SELKIE_WALL_FREE_SLIP : SELKIE_WALL_NO_SLIP;
        t.scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
        t.scene.transfer = cases[n].transfer;
        t.scene.viscosity = cases[n].viscosity;
        t.scene.time.step = cases[n].step;
        t.scene.time.fps = 1.0; /* frames do not shorten steps */
        add_liquid(&t, box_shape(0, 0, 0, 16 * h, depth, 8 * h));
        selkie_world *world = make_world(&t);
        run_until(world, 10.0);
        char what[80];
        snprintf(what, sizeof what, "unilateral %dD %s%s, %g m2/s, %g s", dimension,
                 cases[n].transfer == SELKIE_TRANSFER_FLIP ? "FLIP" : "APIC", cases[n].slips ? ", slip" : "",
                 cases[n].viscosity, cases[n].step);
        at_most(what, "largest speed / sqrt(g H)", selkie_world_statistics(world)->max_speed / sqrt(GRAVITY * depth),
                0.01);
        selkie_world_destroy(world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(waves_decay),     cmocka_unit_test(sheet_bends),
                                       cmocka_unit_test(shears),          cmocka_unit_test(couette),
                                       cmocka_unit_test(two_layers),      cmocka_unit_test(warm_lid),
                                       cmocka_unit_test(cavity),          cmocka_unit_test(thick_over_thin),
                                       cmocka_unit_test(pools_lie_still), cmocka_unit_test(unilateral_pools_lie_still)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
