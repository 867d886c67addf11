/* Taylor-Green vortices in a closed box with slippery walls, which they fit exactly: u = U (sin kx cos ky, -cos kx sin
 * ky). A steady flow without viscosity, whose energy must stay; with viscosity it decays as exp(-4 nu k^2 t).
 *
 * Moving particles first and projecting then is of first order in the step: each projection takes away the part
 * dt grad p that the motion has built up, (dt k U)^2 / 2 of the energy, which at a cell a step, the default in a full
 * box, and 64 cells is 30 per cent in a turnover. The reflection of the whole change, the default there, leaves nothing
 * of it. FLIP's share of PIC costs 1.2 per cent. */
#include "physics.h"

/* Writes the flow into the particles, the same at any z, with its gradient for APIC. */
static void write_flow(selkie_world *world, selkie_method method, double k, double speed)
{
    selkie_attribute_view position = attribute_of(world, "position"), velocity = attribute_of(world, "velocity");
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
        const float *x = particle_of(&position, p);
        float *v = particle_of(&velocity, p);
        v[0] = (float)(speed * sin(k * x[0]) * cos(k * x[1]));
        v[1] = (float)(-speed * cos(k * x[0]) * sin(k * x[1]));
        v[2] = 0.0f;
        if (method == SELKIE_METHOD_APIC) {
            selkie_attribute_view affine = attribute_of(world, "affine");
            float *c = particle_of(&affine, p);
            c[0] = (float)(speed * k * cos(k * x[0]) * cos(k * x[1]));
            c[1] = (float)(-speed * k * sin(k * x[0]) * sin(k * x[1]));
            c[3] = -c[1];
            c[4] = -c[0];
        }
    }
}

typedef struct vortex_case {
    int dimension;
    selkie_method method;
    selkie_volume volume;
    int resolution;
    double viscosity; /* m2/s */
    double step;      /* cells; 0 = the default */
} vortex_case;

/* Energy left after `time`, in units of one turnover 2 pi / (k U). */
static double vortices(const vortex_case *c, double turnovers, double *mode_left)
{
    const double k = 2.0 * M_PI, speed = 1.0, h = 1.0 / c->resolution;
    test_scene t;
    tank(&t, c->dimension, 1, 1, 4 * h, h);
    t.scene.gravity[1] = 0.0;
    selkie_scene_set_method(&t.scene, c->method);
    t.scene.volume = c->volume;
    t.scene.viscosity = c->viscosity;
    t.scene.time.step = c->step * h / speed;
    t.scene.time.cfl = 0.0;
    t.scene.time.fps = 4.0;
    selkie_liquid_def *liquid = add_liquid(&t, box_shape(0, 0, 0, 1, 1, 1));
    liquid->flow.kind = SELKIE_FLOW_TAYLOR_GREEN; /* the first step's length follows from its speed */
    liquid->flow.speed = speed;
    liquid->flow.wavelength = 1.0;
    selkie_world *world = make_world(&t);
    write_flow(world, c->method, k, speed);
    double before = sum_particles(world, NULL).kinetic;
    run_until(world, turnovers * 2.0 * M_PI / (k * speed));
    const selkie_attribute_view position = attribute_of(world, "position"), velocity = attribute_of(world, "velocity");
    double overlap = 0.0;
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
        const float *x = particle_of(&position, p), *v = particle_of(&velocity, p);
        overlap += v[0] * sin(k * x[0]) * cos(k * x[1]) - v[1] * cos(k * x[0]) * sin(k * x[1]);
    }
    *mode_left = overlap / (double)selkie_world_particle_count(world) / (0.5 * speed);
    double left = sum_particles(world, NULL).kinetic / before;
    assert_true(fabs(selkie_world_statistics(world)->volume_ratio - 1.0) < 0.2);
    selkie_world_destroy(world);
    return left;
}

static void inviscid(void **state)
{
    (void)state;
    static const double most[] = {1.0, 0.02, 0.02}; /* what a turnover may cost: PIC, FLIP 0.97, APIC */
    static const selkie_volume volumes[] = {SELKIE_VOLUME_NONE, SELKIE_VOLUME_IDP};
    static const double steps[] = {0.0, 0.25}; /* cells; the first is the default */
    double loss[3], mode;
    for (int method = SELKIE_METHOD_PIC; method <= SELKIE_METHOD_APIC; method++)
        for (int i = 0; i < 3; i++) {
            const vortex_case c = {2, (selkie_method)method, volumes[i == 1], 64, 0.0, steps[i == 2]};
            char what[96];
            snprintf(what, sizeof what, "Taylor-Green 2D %s%s, 64 x 64, %s", method_name(c.method),
                     volume_name(c.volume), c.step > 0.0 ? "a quarter of a cell a step" : "the default step");
            const double lost = 1.0 - vortices(&c, 1.0, &mode);
            at_most(what, "energy lost in a turnover", fabs(lost), most[method]);
            note(what, "amplitude of the mode after it", mode);
            loss[method] = i == 0 ? lost : loss[method];
        }
    at_most("Taylor-Green 2D", "loss of APIC / loss of PIC", loss[SELKIE_METHOD_APIC] / loss[SELKIE_METHOD_PIC], 0.3);
    const vortex_case solid = {3, SELKIE_METHOD_FLIP, SELKIE_VOLUME_NONE, 32, 0.0, 0.0};
    at_most("Taylor-Green 3D FLIP, 32 x 32 x 4", "energy lost in a turnover", fabs(1.0 - vortices(&solid, 1.0, &mode)),
            0.25);
}

static void viscous(void **state)
{
    (void)state;
    const double nu = 0.01, k = 2.0 * M_PI, exact = exp(-4.0 * nu * k * k * 0.5);
    const vortex_case cases[] = {{2, SELKIE_METHOD_FLIP, SELKIE_VOLUME_NONE, 64, nu, 0.25},
                                 {2, SELKIE_METHOD_APIC, SELKIE_VOLUME_NONE, 64, nu, 0.25},
                                 {3, SELKIE_METHOD_FLIP, SELKIE_VOLUME_NONE, 32, nu, 0.25}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char what[64];
        snprintf(what, sizeof what, "Taylor-Green %dD %s, Re 100, 1/2 turnover", cases[c].dimension,
                 method_name(cases[c].method));
        double mode, left = vortices(&cases[c], 0.5, &mode);
        note(what, "energy left, exact", exact);
        note(what, "energy left", left);
        at_most(what, "rate of decay, relative error", fabs(log(left) / log(exact) - 1.0), 5.0 / cases[c].resolution);
        at_most(what, "rate of decay of the mode, relative error", fabs(2.0 * log(mode) / log(exact) - 1.0),
                5.0 / cases[c].resolution);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(inviscid), cmocka_unit_test(viscous)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
