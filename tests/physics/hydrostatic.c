/* Water at rest in a tank must stay at rest, with p = density g (H - y).
 *
 * On a lattice nothing may move at all. Jittered particles make a surface that is rough by a hundredth of a cell; its
 * ripples swing at sqrt(g pi / h) and nothing but FLIP's small share of PIC damps them, which is what the larger bound
 * on the speed is for. */
#include "physics.h"

typedef struct column_case {
    int dimension;
    selkie_method method;
    selkie_surface_condition surface;
    selkie_arrangement arrangement;
} column_case;

static void column(const column_case *c)
{
    enum { CELLS = 24 }; /* of depth */
    const double h = 1.0 / 32, depth = CELLS * h;
    test_scene t;
    if (c->dimension == 2)
        tank(&t, 2, 1.0, 1.0, 0.0, h);
    else
        tank(&t, 3, 0.25, 1.0, 0.25, h);
    add_liquid(&t, box_shape(0, 0, 0, 1, depth, 1));
    selkie_scene_set_method(&t.scene, c->method);
    t.scene.pressure.surface = c->surface;
    t.scene.particles.arrangement = c->arrangement;
    /* A lattice fills the kernels at walls and at the surface exactly if the sub-cells of a cell are even in number. */
    t.scene.particles.per_cell = c->dimension == 2 && c->arrangement == SELKIE_ARRANGEMENT_LATTICE ? 4 : 0;
    add_probe(&t, "height", SELKIE_PROBE_HEIGHT, 0.125, 0, 0.125);
    selkie_world *world = make_world(&t);
    char what[64];
    snprintf(what, sizeof what, "rest %dD %s %s %s", c->dimension, method_name(c->method),
             c->surface == SELKIE_SURFACE_VOXEL ? "voxel" : "ghost",
             c->arrangement == SELKIE_ARRANGEMENT_LATTICE ? "lattice" : "jittered");
    const double wave_speed = sqrt(GRAVITY * depth);
    particle_sums start = sum_particles(world, NULL);
    double height_start = selkie_world_probe_value(world, 0), fastest = 0.0;
    /* The noise of a jittered start decays while waves cross some tens of cells. */
    run_until(world, 3.0);
    while (selkie_world_time(world) < 5.0 - 1e-9) {
        step_world(world);
        fastest = fmax(fastest, selkie_world_statistics(world)->max_speed);
    }

    /* The pressure, cell by cell, and the part of its error that is a constant: an offset of the surface. */
    selkie_field_view pressure = field_of(world, "pressure"), fill = field_of(world, "fill");
    double sum2 = 0.0, floor_pressure = 0.0;
    int count = 0, floor_count = 0, values = pressure.extent[0] * pressure.extent[1] * pressure.extent[2];
    for (int b = 0; b < pressure.block_count; b++)
        for (int n = 0; n < values; n++) {
            int cell[3];
            cell_of(&pressure, b, n, cell);
            size_t i = (size_t)b * (size_t)values + (size_t)n;
            if (fill.data[i] < 0.5f || cell[1] >= CELLS)
                continue;
            double p = pressure.data[i] * pressure.scale / (1000.0 * GRAVITY * depth),
                   exact = 1.0 - (cell[1] + 0.5) / CELLS;
            sum2 += (p - exact) * (p - exact);
            count++;
            if (cell[1] == 0) {
                floor_pressure += p - exact;
                floor_count++;
            }
        }
    int lattice = c->arrangement == SELKIE_ARRANGEMENT_LATTICE, ghost = c->surface == SELKIE_SURFACE_GHOST_FLUID;
    at_most(what, "pressure RMS error / (density g H)", sqrt(sum2 / count), ghost ? 1e-3 : 0.6 / CELLS);
    at_most(what, "floor pressure offset, cells of head", fabs(floor_pressure / floor_count) * CELLS,
            ghost ? 0.02 : 0.6);
    at_most(what, "largest speed / sqrt(g H), 3..5 s", fastest / wave_speed, lattice ? 1e-5 : 1e-2);
    particle_sums end = sum_particles(world, NULL);
    at_most(what, "drift of the mean height in 3 s, cells", fabs(end.position[1] - start.position[1]) / h,
            lattice ? 1e-4 : 0.02);
    at_most(what, "surface height at the start - H, cells", fabs(height_start - depth) / h, 0.1);
    at_most(what, "surface height after 3 s - H, cells", fabs(selkie_world_probe_value(world, 0) - depth) / h, 0.1);
    at_most(what, "volume drift", fabs(selkie_world_statistics(world)->volume_ratio - 1.0), 1e-3);
    selkie_world_destroy(world);
}

static void rests(void **state)
{
    column(*state);
}

#define CASE(name, ...)                                                                                                \
    {                                                                                                                  \
        name, rests, NULL, NULL, &(column_case)                                                                        \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE("FLIP, ghost fluid, lattice", 2, SELKIE_METHOD_FLIP, SELKIE_SURFACE_GHOST_FLUID,
             SELKIE_ARRANGEMENT_LATTICE),
        CASE("FLIP, ghost fluid, jittered", 2, SELKIE_METHOD_FLIP, SELKIE_SURFACE_GHOST_FLUID,
             SELKIE_ARRANGEMENT_JITTERED),
        CASE("FLIP, voxel, lattice", 2, SELKIE_METHOD_FLIP, SELKIE_SURFACE_VOXEL, SELKIE_ARRANGEMENT_LATTICE),
        CASE("FLIP, voxel, jittered", 2, SELKIE_METHOD_FLIP, SELKIE_SURFACE_VOXEL, SELKIE_ARRANGEMENT_JITTERED),
        CASE("APIC, ghost fluid, lattice", 2, SELKIE_METHOD_APIC, SELKIE_SURFACE_GHOST_FLUID,
             SELKIE_ARRANGEMENT_LATTICE),
        CASE("APIC, ghost fluid, jittered", 2, SELKIE_METHOD_APIC, SELKIE_SURFACE_GHOST_FLUID,
             SELKIE_ARRANGEMENT_JITTERED),
        CASE("FLIP in 3D, lattice", 3, SELKIE_METHOD_FLIP, SELKIE_SURFACE_GHOST_FLUID, SELKIE_ARRANGEMENT_LATTICE),
        CASE("FLIP in 3D, jittered", 3, SELKIE_METHOD_FLIP, SELKIE_SURFACE_GHOST_FLUID, SELKIE_ARRANGEMENT_JITTERED),
        CASE("APIC in 3D, jittered", 3, SELKIE_METHOD_APIC, SELKIE_SURFACE_GHOST_FLUID, SELKIE_ARRANGEMENT_JITTERED),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
