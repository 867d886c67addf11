/* The phases that move data between particles and grid, tuned and plain, on the same states.
 *
 * Both forms do the same sums in another order, so bounds come from the arithmetic: n summands of one sign, each with a
 * few roundings, differ by (n + few) eps of their sum at most. A position in cells is rounded at eps times its size,
 * which shifts interpolation weights by as much.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <stdio.h>

#define BACKEND_ALL_STEPS 1 /* faces that a single light particle reaches have no bound of their own */
#include "backend_cases.h"
#include "grid/plain_forms.h"
#include "step_cases.h"

static const double eps = 0.5 * FLT_EPSILON;

/* --- scenes --- */

/* A column of liquid that falls apart in a tank, beside a ball. */
static void dam(step_case *c, int dimension)
{
    case_begin(c, dimension, 24, 20, 12, 0.05);
    c->scene.liquid_count = 1;
    case_box(c, &c->liquids[0].shape, 0, 0, 0, 9, 14, 12);
    c->scene.obstacle_count = 1;
    case_ball(c, &c->obstacles[0].shape, 12, 4, 6, 2.6);
}

static void dam_pic_moving(step_case *c, int dimension)
{
    dam(c, dimension);
    selkie_scene_set_method(&c->scene, SELKIE_METHOD_PIC);
    c->obstacles[0].velocity[0] = -0.8;
    c->obstacles[0].angular_velocity[2] = 3.0;
    memcpy(c->obstacles[0].center, c->obstacles[0].shape.center, sizeof c->obstacles[0].center);
}

static void dam_apic(step_case *c, int dimension)
{
    dam(c, dimension);
    selkie_scene_set_method(&c->scene, SELKIE_METHOD_APIC);
    c->scene.advection.order = 3;
}

static void dam_open(step_case *c, int dimension)
{
    dam(c, dimension);
    c->scene.obstacle_count = 0;
    case_box(c, &c->liquids[0].shape, 12, 3, 0, 23, 14, 12);
    c->scene.domain.walls[1] = SELKIE_WALL_OPEN;
    c->liquids[0].velocity[0] = 2.7;
}

static void dam_idp(step_case *c, int dimension)
{
    dam(c, dimension);
    c->scene.volume = SELKIE_VOLUME_IDP;
}

static void dam_unilateral(step_case *c, int dimension)
{
    dam(c, dimension);
    c->scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
}

/* Water, and on it a liquid with `ratio` of its density. */
static void layers(step_case *c, int dimension, selkie_method method, double ratio)
{
    static selkie_material_def materials[2];
    dam(c, dimension);
    selkie_scene_set_method(&c->scene, method);
    for (int m = 0; m < 2; m++)
        selkie_material_defaults(&materials[m]);
    materials[0].name = c->liquids[0].material = "water";
    materials[1].name = c->liquids[1].material = "oil";
    materials[1].density = ratio * materials[0].density;
    c->scene.materials = materials;
    c->scene.material_count = c->scene.liquid_count = 2;
    case_box(c, &c->liquids[0].shape, 0, 0, 0, 9, 7, 12);
    case_box(c, &c->liquids[1].shape, 0, 7, 0, 9, 14, 12);
}

static void oil_idp(step_case *c, int dimension)
{
    layers(c, dimension, SELKIE_METHOD_FLIP, 0.9);
    c->scene.volume = SELKIE_VOLUME_IDP;
}

static void foam_apic(step_case *c, int dimension)
{
    layers(c, dimension, SELKIE_METHOD_APIC, 0.01);
}

typedef struct scene_case {
    const char *name;
    void (*make)(step_case *c, int dimension);
    int steps[2]; /* before the one in question, in 2D and 3D */
} scene_case;

static const scene_case scenes[] = {
    {"dam", dam, {2, 1}},
    {"splash", dam, {60, 22}},
    {"pic, moving obstacle", dam_pic_moving, {12, 3}},
    {"apic", dam_apic, {12, 3}},
    {"open side", dam_open, {6, 3}},
    {"idp", dam_idp, {8, 2}},
    {"oil, idp", oil_idp, {8, 2}},
    {"foam, apic", foam_apic, {12, 3}},
    {"unilateral", dam_unilateral, {12, 3}},
};
enum { SCENES = sizeof scenes / sizeof *scenes };

/* --- bounds --- */

/* What bounds are made of. */
typedef struct magnitudes {
    double particles; /* in the fullest cell */
    double speed;     /* m/s  largest on the grid and of particles */
    double spin;      /* m/s  largest change of APIC's velocity over a cell */
    double density;
    double cells, length; /* across the grid; m */
} magnitudes;

static double largest(const float *values, size_t count)
{
    double most = 0.0;
    for (size_t i = 0; values && i < count; i++)
        if (isfinite(values[i]))
            most = fmax(most, fabs((double)values[i]));
    return most;
}

static magnitudes measure(const sk_step *step)
{
    const sk_grid *grid = &step->grid;
    magnitudes m = {0};
    const size_t values = (size_t)grid->block_count * (size_t)grid->block_cells;
    for (int c = 0; c < grid->particle_blocks * grid->block_cells; c++)
        m.particles = fmax(m.particles, grid->cell_start[c + 1] - grid->cell_start[c]);
    for (int f = SK_FIELD_VELOCITY_X; f <= SK_FIELD_CHANGE_Z; f++)
        m.speed = fmax(m.speed, largest(grid->fields[f], values));
    for (int64_t p = 0; p < step->particles.count; p++)
        m.speed = fmax(m.speed, largest(step->particles.records[p].velocity, 3));
    const sk_attribute *affine = sk_particles_find_attribute(&step->particles, "affine");
    if (affine)
        m.spin = grid->cell_size * largest((const float *)affine->data, 9 * (size_t)step->particles.count);
    m.density = largest(grid->fields[SK_FIELD_DENSITY], values);
    for (int d = 0; d < step->dimension; d++) {
        m.cells = fmax(m.cells, grid->blocks[d] * grid->extent[d]);
        m.length = fmax(m.length, fmax(fabs(grid->low[d]), fabs(grid->high[d])));
    }
    return m;
}

/* Faces gather from two cells along their axis and three across, centres from three along all: both sums of weights
 * and of momentum have so many summands, of about ten roundings each. */
static backend_bounds to_grid_bounds(const sk_step *step)
{
    const magnitudes m = measure(step);
    const double sum = (m.particles * (step->dimension == 3 ? 27 : 9) + 10) * eps;
    backend_bounds bounds = {.velocity = 2.0 * sum * (m.speed + 3.0 * m.spin)};
    bounds.field[SK_FIELD_DENSITY] = sum * m.density;
    for (int d = 0; d < 3; d++)
        bounds.field[SK_FIELD_FACE_DENSITY_X + d] = 2.0 * sum * m.density;
    if (step->relative_density) /* LIGHTNESS: two sums of one sign */
        bounds.relative = 2.0 * sum;
    return bounds;
}

/* A trilinear mean of 2^dim values, whose weights are off by the rounding of the position along each axis. */
static double sampled_bound(const sk_step *step, const magnitudes *m)
{
    return (2.0 * step->dimension * m->cells + 16.0) * eps * m->speed;
}

static backend_bounds to_particles_bounds(const sk_step *step)
{
    const magnitudes m = measure(step);
    const double sampled = sampled_bound(step, &m);
    return (backend_bounds){
        .velocity = 2.0 * sampled, .attribute = 4.0 * sampled / step->grid.cell_size, .sums = 2.0 * sampled + 1e-6};
}

/* Each sub-step, of a cell at most, adds the error of three stages and rounds the position. */
static backend_bounds advect_bounds(const sk_step *step)
{
    const magnitudes m = measure(step);
    const double sub_steps = 2.0 + 2.0 * m.speed * step->dt / step->grid.cell_size;
    backend_bounds bounds = to_particles_bounds(step);
    bounds.position = 2.0 * (3.0 * sampled_bound(step, &m) * step->dt + 4.0 * sub_steps * eps * m.length);
    /* What touches a solid loses velocity along a normal, which turns with the position over half a cell or more. */
    bounds.velocity += m.speed * bounds.position / (0.5 * step->grid.cell_size);
    return bounds;
}

static backend_bounds same_bounds(const sk_step *step)
{
    (void)step;
    return (backend_bounds){0};
}

static backend_bounds sort_bounds(const sk_step *step)
{
    (void)step;
    return (backend_bounds){.blocks_change = 1};
}

/* Means are the same bits; the part through a solid's surface has a few roundings. */
static backend_bounds extrapolate_bounds(const sk_step *step)
{
    return (backend_bounds){.velocity = 32.0 * eps * measure(step).speed, .scratch = BACKEND_FACES};
}

/* A displacement of a cell at most. */
static backend_bounds shift_bounds(const sk_step *step)
{
    const magnitudes m = measure(step);
    return (backend_bounds){.position = 4.0 * eps * m.length +
                                        (2.0 * step->dimension * m.cells + 16.0) * eps * step->grid.cell_size};
}

/* --- phases --- */

/* The change of velocity beside places without a block is not compared. The tuned form may take the zeros of the
 * shared empty block for known there. Particles are two cells away from such places and read one. */
static void forget_changes_at_edges(backend_pair *pair)
{
    const sk_grid *grid = &pair->worlds[0]->step.grid;
    const int n = grid->extent[0], nz = grid->extent[2];
    for (int b = 1; b < grid->block_count; b++)
        for (int c = 0; c < grid->block_cells; c++) {
            const int at[3] = {c % n, c / n % n, c / n / n}, last[3] = {n - 1, n - 1, nz - 1};
            int edge = 0;
            for (int d = 0; d < grid->dimension; d++)
                edge |= (at[d] == 0 && !grid->faces[b][2 * d]) || (at[d] == last[d] && !grid->faces[b][2 * d + 1]);
            for (int w = 0; edge && w < 2; w++)
                for (int d = 0; d < grid->dimension; d++)
                    pair->worlds[w]->step.grid.fields[SK_FIELD_CHANGE_X + d][b * grid->block_cells + c] = 0.0f;
        }
}

typedef struct phase_case {
    const char *name;
    backend_bounds (*bounds)(const sk_step *step);
    void (*prepare)(backend_pair *pair); /* before the comparison; NULL = nothing to do */
} phase_case;

static const phase_case phases[] = {
    {"sort", sort_bounds, NULL},
    {"sort_again", sort_bounds, NULL},
    {"solids", same_bounds, NULL},
    {"solids_again", same_bounds, NULL},
    {"to_grid", to_grid_bounds, NULL},
    {"extrapolate", extrapolate_bounds, forget_changes_at_edges},
    {"to_particles", to_particles_bounds, NULL},
    {"shift", shift_bounds, NULL},
    {"move", advect_bounds, NULL},
    {"advect", advect_bounds, NULL},
    {"weigh", same_bounds, NULL},
};
enum { PHASES = sizeof phases / sizeof *phases };
static int checked[PHASES]; /* how often */

static int find_phase(const char *name)
{
    int n = 0;
    while (n < PHASES && strcmp(phases[n].name, name) != 0)
        n++;
    return n;
}

static int is_checked(const char *name)
{
    return find_phase(name) < PHASES;
}

static backend_bounds bounds_of(backend_pair *pair, const char *name)
{
    const int n = find_phase(name);
    checked[n]++;
    if (phases[n].prepare)
        phases[n].prepare(pair);
    return phases[n].bounds(&pair->worlds[0]->step);
}

static void check_scene(const scene_case *scene)
{
    for (int dimension = 2; dimension <= 3; dimension++) {
        step_case c;
        backend_pair pair;
        char label[64];
        snprintf(label, sizeof label, "%s %dD", scene->name, dimension);
        scene->make(&c, dimension);
        backend_begin(&pair, &c.scene, scene->steps[dimension - 2]);
        const backend_step_check check = {is_checked, bounds_of, label};
        backend_check_step(&pair, &check);
        backend_end(&pair);
    }
}

static void test_phases(void **state)
{
    (void)state;
    for (int s = 0; s < SCENES; s++)
        check_scene(&scenes[s]);
    for (int n = 0; n < PHASES; n++)
        if (!checked[n])
            fail_msg("no scene has the phase %s", phases[n].name);
}

/* --- functions that phases of other methods call --- */

/* Two worlds of a scene at the phase of a name in a step. */
static void stand_at(backend_pair *pair, const scene_case *scene, int dimension, const char *phase)
{
    step_case c;
    scene->make(&c, dimension);
    backend_begin(pair, &c.scene, scene->steps[dimension - 2]);
    for (int w = 0; w < 2; w++)
        backend_run_up_to(pair->worlds[w], backend_find(pair, phase, 0));
    backend_align(pair);
}

typedef selkie_code (*to_grid_form)(sk_grid *grid, const sk_particles *particles, const sk_transfer_options *options,
                                    selkie_error *error);

/* Each particle gets one of the two materials, whatever is around it. */
static void mix_materials(backend_pair *pair)
{
    for (int w = 0; w < 2; w++) {
        sk_particles *particles = &pair->worlds[w]->step.particles;
        const sk_attribute *material = sk_particles_find_attribute(particles, "material");
        for (int64_t p = 0; p < particles->count; p++)
            material->data[p] = particles->records[p].id * 2654435761u >> 31;
    }
}

static const uint8_t only_water[SK_TRANSFER_MATERIALS] = {1, 0}, only_oil[SK_TRANSFER_MATERIALS] = {0, 1};

/* Both forms with the options of a world, and a mask. With weights by mass or, where `by_mass` is 0, by volume. */
static void check_to_grid(backend_pair *pair, sk_transfer_kind kind, const uint8_t *mask, int by_mass)
{
    static const to_grid_form forms[2][2] = {{sk_transfer_to_grid_2d, sk_transfer_to_grid_3d},
                                             {sk_transfer_to_grid_plain_2d, sk_transfer_to_grid_plain_3d}};
    selkie_error error = {0};
    for (int w = 0; w < 2; w++) {
        sk_step *step = &pair->worlds[w]->step;
        const sk_transfer_options options = {.kind = kind,
                                             .density_per_particle = 1.0f / (float)step->particles_per_cell,
                                             .relative_density = by_mass ? step->relative_density : NULL,
                                             .material_mask = mask,
                                             .threads = 2};
        assert_int_equal(forms[w][step->dimension - 2](&step->grid, &step->particles, &options, &error), SELKIE_OK);
    }
    /* The plain form has no fused multiply-add: a small weight keeps fewer digits, and lightness is a quotient of two.
     */
    backend_bounds bounds = to_grid_bounds(&pair->worlds[0]->step);
    bounds.relative *= 4.0;
    backend_compare(pair, "to_grid of materials", &bounds);
}

/* The density field of the plain world: adds it to `sums`, scaled. */
static void add_density(const backend_pair *pair, double scale, double *sums)
{
    const sk_grid *grid = &pair->worlds[1]->step.grid;
    for (size_t i = 0; i < (size_t)grid->block_count * (size_t)grid->block_cells; i++)
        sums[i] += scale * (double)grid->fields[SK_FIELD_DENSITY][i];
}

/* Layers, and liquids mixed within each cell. The densities of the parts add up to that of the whole. */
static void check_materials(int dimension, selkie_method method, sk_transfer_kind kind, double ratio)
{
    step_case c;
    backend_pair pair;
    layers(&c, dimension, method, ratio);
    backend_begin(&pair, &c.scene, 3);
    for (int w = 0; w < 2; w++)
        backend_run_up_to(pair.worlds[w], backend_find(&pair, "to_grid", 0));
    backend_align(&pair);
    check_to_grid(&pair, kind, NULL, 1);

    const sk_grid *grid = &pair.worlds[1]->step.grid;
    const size_t cells = (size_t)grid->block_cells, values = (size_t)grid->block_count * cells;
    double *difference = calloc(values, sizeof *difference);
    mix_materials(&pair);
    check_to_grid(&pair, kind, NULL, 1);
    add_density(&pair, 1.0, difference);
    check_to_grid(&pair, kind, only_water, 1);
    add_density(&pair, -1.0, difference);
    check_to_grid(&pair, kind, only_oil, 0);
    add_density(&pair, -1.0, difference);
    const double bound = 4.0 * to_grid_bounds(&pair.worlds[1]->step).field[SK_FIELD_DENSITY];
    for (size_t i = cells; i < values; i++)
        assert_true(fabs(difference[i]) <= bound);
    free(difference);
    backend_end(&pair);
}

static void test_materials(void **state)
{
    (void)state;
    static const selkie_method methods[3] = {SELKIE_METHOD_PIC, SELKIE_METHOD_FLIP, SELKIE_METHOD_APIC};
    static const sk_transfer_kind kinds[3] = {SK_TRANSFER_PIC, SK_TRANSFER_FLIP, SK_TRANSFER_APIC};
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int n = 0; n < 3; n++) {
            check_materials(dimension, methods[n], kinds[n], 0.9);
            check_materials(dimension, methods[n], kinds[n], 0.01);
        }
}

/* Particles in cells that are left out do not count, nor do those of a material that the mask leaves out. */
static void check_density(const scene_case *scene, const uint8_t *mask)
{
    for (int dimension = 2; dimension <= 3; dimension++) {
        backend_pair pair;
        selkie_error error = {0};
        stand_at(&pair, scene, dimension, "to_grid");
        if (mask)
            mix_materials(&pair);
        for (int w = 0; w < 2; w++) {
            sk_step *step = &pair.worlds[w]->step;
            uint8_t *left_out = step->solids.closed; /* some cells, whatever is there */
            const size_t cells = step->solids.slot_count * (size_t)step->grid.block_cells;
            for (size_t i = 0; i < cells; i++)
                left_out[i] = i % 3 == 0;
            const sk_transfer_options options = {.density_per_particle = 1.0f / (float)step->particles_per_cell,
                                                 .left_out = left_out,
                                                 .left_out_slot = step->solids.block_slot,
                                                 .material_mask = mask,
                                                 .threads = 2};
            static const to_grid_form forms[2][2] = {{sk_transfer_density_2d, sk_transfer_density_3d},
                                                     {sk_transfer_density_plain_2d, sk_transfer_density_plain_3d}};
            assert_int_equal(forms[w][dimension - 2](&step->grid, &step->particles, &options, &error), SELKIE_OK);
        }
        const backend_bounds bounds = to_grid_bounds(&pair.worlds[0]->step);
        backend_compare(&pair, "density", &bounds);
        backend_end(&pair);
    }
}

static void test_density(void **state)
{
    (void)state;
    const scene_case foam = {"foam", foam_apic, {4, 2}};
    check_density(&scenes[0], NULL);
    check_density(&foam, only_oil);
}

/* Along a field with unknown faces, in some of the runs. */
static void test_displace(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        backend_pair pair;
        stand_at(&pair, &scenes[0], dimension, "move");
        for (int w = 0; w < 2; w++) {
            sk_step *step = &pair.worlds[w]->step;
            sk_grid *grid = &step->grid;
            uint64_t *runs = grid->runs[SK_RUNS_MOVED];
            sk_displacement by = {.first = SK_FIELD_VELOCITY_X, .runs = runs, .threads = 2};
            for (int b = 0; b < grid->block_count; b++)
                runs[b] = UINT64_C(0x123456789abcdef7);
            for (int d = 0; d < dimension; d++)
                for (size_t i = 0; i < (size_t)(grid->block_count * grid->block_cells); i++)
                    grid->fields[SK_FIELD_VELOCITY_X + d][i] *= 0.3f; /* cells, about one at most */
            sk_solids_bounds(&step->solids, grid, by.low, by.high);
            if (w)
                (dimension == 2 ? sk_transfer_displace_plain_2d : sk_transfer_displace_plain_3d)(grid, &step->particles,
                                                                                                 &by);
            else
                (dimension == 2 ? sk_transfer_displace_2d : sk_transfer_displace_3d)(grid, &step->particles, &by);
        }
        const backend_bounds bounds = shift_bounds(&pair.worlds[0]->step);
        backend_compare(&pair, "displace", &bounds);
        backend_end(&pair);
    }
}

/* Particles where they would be: rounding of positions, and of the sums of the weights there. */
static void test_predict(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        backend_pair pair;
        selkie_error error = {0};
        stand_at(&pair, &scenes[SCENES - 1], dimension, "predict");
        for (int w = 0; w < 2; w++) {
            sk_step *step = &pair.worlds[w]->step;
            const sk_predict_options options = {.density_per_particle = 1.0f / (float)step->particles_per_cell,
                                                .dt = (float)step->dt,
                                                .shifted = step->shifted,
                                                .solids = &step->solids,
                                                .threads = 2};
            selkie_code (*const forms[2][2])(sk_grid *, const sk_particles *, const sk_predict_options *,
                                             selkie_error *) = {
                {sk_predict_density_2d, sk_predict_density_3d},
                {sk_predict_density_plain_2d, sk_predict_density_plain_3d}};
            assert_int_equal(forms[w][dimension - 2](&step->grid, &step->particles, &options, &error), SELKIE_OK);
        }
        const sk_step *step = &pair.worlds[0]->step;
        const magnitudes m = measure(step);
        backend_bounds bounds = to_grid_bounds(step);
        const double place = advect_bounds(step).position / step->grid.cell_size + 2.0 * m.cells * eps; /* cells */
        bounds.field[SK_FIELD_PREDICTED] =
            bounds.field[SK_FIELD_DENSITY] + 2.0 * step->dimension * place * fmax(m.density, 1.0);
        backend_compare(&pair, "predict", &bounds);
        backend_end(&pair);
    }
}

/* --- whole steps --- */

static selkie_world *run_steps(const selkie_scene *scene, selkie_backend backend, int threads, int steps)
{
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = threads;
    options.with_backend = 1;
    options.backend = backend;
    selkie_error error = {0};
    selkie_world *world;
    if (selkie_world_create(scene, &options, &world, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    for (int n = 0; n < steps; n++)
        if (selkie_world_step(world, &error) != SELKIE_OK)
            fail_msg("step %d: %s", n, error.message);
    return world;
}

/* Largest differences between two worlds with the same particles, in whichever order. */
static void largest_differences(const sk_particles *a, const sk_particles *b, double *position, double *velocity)
{
    const sk_attribute *of_a = sk_particles_find_attribute(a, "material"),
                       *of_b = sk_particles_find_attribute(b, "material");
    int64_t *place = calloc((size_t)a->count, sizeof *place);
    *position = *velocity = 0.0;
    assert_int_equal(a->count, b->count);
    for (int64_t p = 0; p < a->count; p++) {
        assert_true(a->records[p].id < a->count);
        place[a->records[p].id] = p;
    }
    for (int64_t p = 0; p < b->count; p++) {
        const sk_particle *one = &a->records[place[b->records[p].id]], *other = &b->records[p];
        assert_int_equal(of_a->data[one - a->records], of_b->data[p]);
        for (int d = 0; d < 3; d++) {
            *position = fmax(*position, fabs((double)one->position[d] - (double)other->position[d]));
            *velocity = fmax(*velocity, fabs((double)one->velocity[d] - (double)other->velocity[d]));
        }
    }
    free(place);
}

/* Oil flows from a source beside layers; the density projection works, so that a step has two solves. A solve leaves a
 * relative residual of `tolerance`. It comes out as velocity (or displacement, of a cell at most) over the root of the
 * least eigenvalue, (pi / 48)^2 where liquid is 24 cells deep, and in the light liquid by the root of the ratio larger:
 * a projection keeps the norm that counts mass. Beside it, a face has some six roundings a step, a position four. That
 * is the size of a mean difference; the largest must stay below it, too. */
static void check_run(int dimension, double ratio)
{
    enum { STEPS = 6 };
    const double tolerance = 1e-7, residual_to_velocity = 48.0 / 3.14159;
    step_case c;
    layers(&c, dimension, SELKIE_METHOD_FLIP, ratio);
    c.scene.volume = SELKIE_VOLUME_IDP;
    c.scene.time.step = 0.004;
    c.scene.pressure.tolerance = tolerance;
    selkie_source_def source;
    selkie_source_defaults(&source);
    case_box(&c, &source.shape, 16, 10, 4, 18, 12, 8);
    source.velocity[1] = -1.0;
    source.material = "oil";
    c.scene.sources = &source;
    c.scene.source_count = 1;

    selkie_world *tuned = run_steps(&c.scene, SELKIE_BACKEND_TUNED, 2, STEPS),
                 *plain = run_steps(&c.scene, SELKIE_BACKEND_PLAIN, 2, STEPS),
                 *single = run_steps(&c.scene, SELKIE_BACKEND_PLAIN, 1, STEPS);
    const sk_particles *particles = &plain->step.particles;
    assert_memory_equal(particles->records, single->step.particles.records,
                        (size_t)particles->count * sizeof *particles->records);
    double position, velocity;
    largest_differences(&tuned->step.particles, particles, &position, &velocity);
    const double share = 2.0 * STEPS * (tolerance * residual_to_velocity + 6.0 * eps);
    const double speed = share * tuned->statistics.max_speed / sqrt(ratio), time = STEPS * c.scene.time.step;
    const double length = 4.0 * STEPS * eps * 1.2 + share * 0.05, mass = tuned->step.mass_sums.mass;
    if (!(velocity <= speed) || !(position <= speed * time + length))
        fail_msg("%dD, ratio %g: velocities differ by %g m/s, bound %g, positions by %g m, bound %g", dimension, ratio,
                 velocity, speed, position, speed * time + length);
    assert_true(plain->step.emitted > 0);
    backend_compare_number("run", "kinetic energy", tuned->statistics.kinetic_energy, plain->statistics.kinetic_energy,
                           2.0 * mass * tuned->statistics.max_speed * speed, 0);
    backend_compare_number("run", "potential energy", tuned->statistics.potential_energy,
                           plain->statistics.potential_energy, mass * 9.81 * (speed * time + length), 0);
    selkie_world_destroy(tuned);
    selkie_world_destroy(plain);
    selkie_world_destroy(single);
}

static void test_run(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        check_run(dimension, 0.9);
        check_run(dimension, 0.01);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_phases),   cmocka_unit_test(test_materials), cmocka_unit_test(test_density),
        cmocka_unit_test(test_displace), cmocka_unit_test(test_predict),   cmocka_unit_test(test_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
