/* Methods as plug-ins: a method that is in no list of the library, and a world without particles and grid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drag_method.h"
#include "world/world_internal.h"

/* --- The example of the documentation --- */

enum { MOST = 32 };

static sk_method_list with_drag(const sk_method **all)
{
    sk_method_list list = sk_all_methods();
    memcpy(all, list.methods, (size_t)list.count * sizeof *all);
    all[list.count] = &sk_method_drag;
    return (sk_method_list){list.count + 1, all};
}

/* A ball of water in free flight, without gravity and walls near. */
static void flying_ball(selkie_scene *scene, selkie_liquid_def *liquid, int dimension)
{
    selkie_scene_defaults(scene);
    scene->volume = SELKIE_VOLUME_NONE;
    scene->domain.dimension = dimension;
    for (int d = 0; d < dimension; d++)
        scene->domain.size[d] = 2.0;
    scene->domain.cell_size = 0.1;
    memset(scene->gravity, 0, sizeof scene->gravity);
    selkie_liquid_defaults(liquid);
    liquid->shape.kind = SELKIE_SHAPE_SPHERE;
    for (int d = 0; d < dimension; d++)
        liquid->shape.center[d] = 1.0;
    liquid->shape.radius = 0.3;
    liquid->velocity[0] = 0.5;
    scene->liquid_count = 1;
    scene->liquids = liquid;
    scene->time.step = 0.01;
    scene->time.end = 1.0;
}

static selkie_world *make(sk_method_list methods, const selkie_scene *scene, int threads)
{
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = threads;
    selkie_world *world = NULL;
    selkie_error error = {0};
    if (sk_world_create_of(methods, scene, &options, &world, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    return world;
}

static void step(selkie_world *world, int count)
{
    selkie_error error = {0};
    for (int n = 0; n < count; n++)
        if (selkie_world_step(world, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
}

/* Speeds fall as exp(-t / 0.5 s): the phase is exact, and the transfers keep a uniform velocity to rounding. */
static void the_example_slows_liquid_down(void **state)
{
    (void)state;
    const sk_method *all[MOST];
    for (int dimension = 2; dimension <= 3; dimension++) {
        selkie_scene scene;
        selkie_liquid_def liquid;
        flying_ball(&scene, &liquid, dimension);
        selkie_world *world = make(with_drag(all), &scene, 2);
        int found = 0;
        for (int p = 0; p < selkie_world_phase_count(world); p++)
            found |= strcmp(selkie_world_phase_name(world, p), "drag") == 0;
        assert_true(found);

        step(world, 20);
        const double left = 0.5 * exp(-selkie_world_time(world) / 0.5);
        const sk_particles *particles = &world->step.particles;
        const double mass = world->step.particle_mass * (double)particles->count;
        for (int64_t p = 0; p < particles->count; p++)
            assert_true(fabs(particles->records[p].velocity[0] - left) < 1e-4);
        assert_true(fabs(sk_drag_momentum(&world->step) - mass * (0.5 - left)) < 1e-4 * mass);
        selkie_world_destroy(world);
    }
}

/* What the method keeps comes back with a checkpoint: a resumed run ends as an unbroken one. */
static void the_state_of_a_method_is_saved(void **state)
{
    (void)state;
    const sk_method *all[MOST];
    sk_method_list methods = with_drag(all);
    selkie_scene scene;
    selkie_liquid_def liquid;
    flying_ball(&scene, &liquid, 2);
    char path[] = "/tmp/selkie_method_XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    selkie_error error = {0};

    selkie_world *unbroken = make(methods, &scene, 1), *resumed = make(methods, &scene, 2);
    step(unbroken, 10);
    assert_int_equal(selkie_world_save(unbroken, path, &error), SELKIE_OK);
    step(unbroken, 10);
    assert_int_equal(selkie_world_load(resumed, path, &error), SELKIE_OK);
    step(resumed, 10);
    assert_true(sk_drag_momentum(&unbroken->step) == sk_drag_momentum(&resumed->step));
    assert_memory_equal(unbroken->step.particles.records, resumed->step.particles.records,
                        (size_t)unbroken->step.particles.count * sizeof(sk_particle));

    /* A world without the method wrote no state for it. */
    selkie_world *other = make(sk_all_methods(), &scene, 1);
    assert_int_equal(selkie_world_save(other, path, &error), SELKIE_OK);
    assert_int_equal(selkie_world_load(resumed, path, &error), SELKIE_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "drag"));
    selkie_world_destroy(other);
    selkie_world_destroy(unbroken);
    selkie_world_destroy(resumed);
    unlink(path);
}

/* A phase replaces the one of its name and no other: `drag`, in the same slot as `solids`, stays where unilateral
 * incompressibility beside a moving obstacle puts a `solids` of its own. */
static void replacing_a_phase_leaves_the_others(void **state)
{
    (void)state;
    const sk_method *all[MOST];
    sk_method_list list = sk_all_methods();
    all[0] = list.methods[0];
    all[1] = &sk_method_drag;
    memcpy(all + 2, list.methods + 1, (size_t)(list.count - 1) * sizeof *all);
    selkie_scene scene;
    selkie_liquid_def liquid;
    flying_ball(&scene, &liquid, 2);
    selkie_obstacle_def obstacle;
    selkie_obstacle_defaults(&obstacle);
    obstacle.shape.kind = SELKIE_SHAPE_SPHERE;
    obstacle.shape.center[0] = obstacle.shape.center[1] = 0.3;
    obstacle.shape.radius = 0.2;
    obstacle.velocity[0] = 0.1;
    scene.obstacle_count = 1;
    scene.obstacles = &obstacle;
    scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    selkie_world *world = make((sk_method_list){list.count + 1, all}, &scene, 1);
    int drags = 0, solids = 0, pressures = 0;
    for (int p = 0; p < selkie_world_phase_count(world); p++) {
        drags += strcmp(selkie_world_phase_name(world, p), "drag") == 0;
        solids += strcmp(selkie_world_phase_name(world, p), "solids") == 0;
        pressures += strcmp(selkie_world_phase_name(world, p), "pressure") == 0;
    }
    assert_int_equal(drags, 1);
    assert_int_equal(solids, 1);
    assert_int_equal(pressures, 1);
    step(world, 2);
    selkie_world_destroy(world);
}

/* --- A world without particles and grid --- */

/* One undamped oscillator: x'' = -x, exact in each step. */
typedef struct mode {
    double x, v;
} mode;

static const sk_method mode_method;

static int always(const selkie_scene *scene)
{
    (void)scene;
    return 1;
}

static selkie_code create_mode(sk_step *s, selkie_error *error)
{
    mode *m = sk_allocate_zeroed(s->memory, sizeof *m);
    if (!m)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "mode: no memory");
    m->x = 1.0;
    sk_step_set_state(s, &mode_method, m);
    return SELKIE_OK;
}

static void destroy_mode(sk_step *s)
{
    sk_release(s->memory, sk_step_state(s, &mode_method));
}

static selkie_code turn_mode(sk_step *s, selkie_error *error)
{
    (void)error;
    mode *m = sk_step_state(s, &mode_method);
    const double c = cos(s->dt), w = sin(s->dt), x = m->x;
    m->x = c * x + w * m->v;
    m->v = c * m->v - w * x;
    return SELKIE_OK;
}

static sk_chunk_view mode_state(const sk_step *s)
{
    return (sk_chunk_view){"mode", sk_step_state(s, &mode_method), sizeof(mode)};
}

static selkie_code restore_mode(sk_step *s, const sk_chunk_view *chunk, const char *file, selkie_error *error)
{
    if (chunk->bytes != sizeof(mode))
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: no mode", file);
    memcpy(sk_step_state(s, &mode_method), chunk->data, sizeof(mode));
    return SELKIE_OK;
}

static void mode_energy(const sk_step *s, selkie_statistics *statistics)
{
    const mode *m = sk_step_state(s, &mode_method);
    statistics->kinetic_energy = 0.5 * m->v * m->v;
    statistics->potential_energy = 0.5 * m->x * m->x;
}

static const sk_method mode_method = {
    .name = "mode",
    .takes_part = always,
    .create = create_mode,
    .destroy = destroy_mode,
    .phases = {{.name = "turn", .slot = SK_SLOT_FORCES, .run = SK_ONE_FORM_ANY_DIMENSION(turn_mode)}},
    .state = mode_state,
    .restore = restore_mode,
    .statistics = mode_energy,
};

static void a_world_needs_neither_particles_nor_grid(void **state)
{
    (void)state;
    const sk_method *only[] = {&mode_method};
    selkie_scene scene;
    selkie_liquid_def liquid;
    flying_ball(&scene, &liquid, 2); /* a scene must have a liquid; no method here samples it */
    selkie_world *world = make((sk_method_list){1, only}, &scene, 2);
    assert_int_equal(selkie_world_phase_count(world), 1);
    assert_int_equal(selkie_world_particle_count(world), 0);
    assert_true(world->step.grid.table.entries == NULL);

    char path[] = "/tmp/selkie_modes_XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    selkie_error error = {0};
    step(world, 5);
    assert_int_equal(selkie_world_save(world, path, &error), SELKIE_OK);
    while (!selkie_world_finished(world))
        step(world, 1);
    const mode *m = sk_step_state(&world->step, &mode_method);
    assert_true(fabs(m->x - cos(1.0)) < 1e-13 && fabs(m->v + sin(1.0)) < 1e-13);
    const selkie_statistics *s = selkie_world_statistics(world);
    assert_true(fabs(s->kinetic_energy + s->potential_energy - 0.5) < 1e-14);
    assert_int_equal(s->blocks, 0);

    /* Views of what is not there are empty or refused, and a checkpoint goes on to the same bits. */
    selkie_attribute_view view;
    assert_int_equal(selkie_world_find_attribute(world, "position", &view, &error), SELKIE_OK);
    assert_null(view.data);
    selkie_field_view field;
    assert_int_equal(selkie_world_field(world, "density", &field, &error), SELKIE_ERROR_INPUT);
    selkie_world *resumed = make((sk_method_list){1, only}, &scene, 1);
    assert_int_equal(selkie_world_load(resumed, path, &error), SELKIE_OK);
    while (!selkie_world_finished(resumed))
        step(resumed, 1);
    assert_memory_equal(m, sk_step_state(&resumed->step, &mode_method), sizeof *m);
    selkie_world_destroy(world);
    selkie_world_destroy(resumed);
    unlink(path);
}

/* --- The list --- */

/* Names are unique, phases fit, forms exist, and a phase goes back only to one of its own method. */
static void descriptors_make_sense(void **state)
{
    (void)state;
    sk_method_list list = sk_all_methods();
    for (int m = 0; m < list.count; m++) {
        const sk_method *method = list.methods[m];
        for (int n = 0; n < m; n++)
            assert_string_not_equal(method->name, list.methods[n]->name);
        assert_null(method->phases[SK_METHOD_MAX_PHASES - 1].name);
        assert_true(!method->state == !method->restore);
        for (const sk_phase_def *phase = method->phases; phase->name; phase++) {
            assert_true((int)phase->slot >= 0 && phase->slot < SK_SLOT_COUNT);
            assert_true(phase->run[SK_BACKEND_TUNED][0] && phase->run[SK_BACKEND_TUNED][1]);
            int back = !phase->again;
            for (const sk_phase_def *other = method->phases; other < phase && phase->again; other++)
                back |= other->slot == phase->slot && strcmp(other->name, phase->again_from) == 0;
            assert_true(back);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_slows_liquid_down),
        cmocka_unit_test(the_state_of_a_method_is_saved),
        cmocka_unit_test(replacing_a_phase_leaves_the_others),
        cmocka_unit_test(a_world_needs_neither_particles_nor_grid),
        cmocka_unit_test(descriptors_make_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
