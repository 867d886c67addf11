/* Creation of a world, and its step. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "base/timer.h"
#include "defs/materials.h"
#include "defs/motion_file.h"
#include "defs/relative.h"
#include "defs/structs.h"
#include "cuda/cuda.h"
#include "geom/frame.h"
#include "methods/force_fields.h"
#include "world/mesher.h"
#include "world/world_internal.h"

void selkie_world_options_defaults(selkie_world_options *options)
{
    memset(options, 0, sizeof *options);
}

/* --- Measuring --- */

/* Runs the phases of some slots outside of a step; corrections of positions only if wanted. */
static selkie_code run_slots(selkie_world *world, sk_slot from, sk_slot end, int with_corrections, selkie_error *error)
{
    for (int p = 0; p < world->phase_count; p++) {
        const sk_phase *phase = &world->phases[p];
        if (phase->slot >= (int)from && phase->slot < (int)end &&
            (with_corrections || !(phase->flags & SK_PHASE_CORRECTS)))
            SK_TRY(sk_phase_run(phase, &world->step, error));
    }
    return SELKIE_OK;
}

selkie_code sk_methods_measure(selkie_world *world, selkie_error *error)
{
    for (int m = 0; m < world->methods.count; m++)
        if (world->methods.methods[m]->measure)
            SK_TRY(world->methods.methods[m]->measure(&world->step, error));
    sk_arena_empty(&world->step.arena);
    return SELKIE_OK;
}

selkie_code sk_world_fetch(const selkie_world *world, int with_grid, selkie_error *error)
{
    sk_step *step = (sk_step *)&world->step; /* copies of what is on the device already */
    SK_TRY(sk_cuda_fetch_particles(step, error));
    return with_grid ? sk_cuda_fetch_grid(step, 1, error) : SELKIE_OK;
}

selkie_code sk_world_copy_begin(const selkie_world *world, sk_world_copy **copy, selkie_error *error)
{
    return sk_cuda_copy_begin((sk_step *)&world->step, copy, error); /* the world stays as it is */
}

selkie_code sk_world_copy_take(sk_world_copy *copy, sk_particles *particles, selkie_error *error)
{
    return sk_cuda_copy_take(copy, particles, error);
}

void sk_world_copy_free(sk_world_copy *copy)
{
    sk_cuda_copy_free(copy);
}

selkie_code sk_world_measure(selkie_world *world, selkie_error *error)
{
    sk_step *step = &world->step;
    SK_TRY(run_slots(world, SK_SLOT_SORT, SK_SLOT_FORCES, 0, error));
    SK_TRY(sk_cuda_fetch_particles(step, error));
    double kinetic = 0.0, fastest = 0.0, position[3] = {0, 0, 0};
    for (int64_t p = 0; p < step->particles.count; p++) {
        const sk_particle *particle = &step->particles.records[p];
        double speed2 = 0.0;
        for (int d = 0; d < 3; d++) {
            speed2 += (double)particle->velocity[d] * particle->velocity[d];
            position[d] += particle->position[d];
        }
        kinetic += 0.5 * speed2;
        fastest = speed2 > fastest ? speed2 : fastest;
    }
    step->sums.kinetic = kinetic;
    step->sums.max_speed = sqrt(fastest);
    memcpy(step->positions, position, sizeof position);
    memcpy(step->positions_before, position, sizeof position);
    return sk_methods_measure(world, error);
}

static void begin_step(selkie_world *world)
{
    for (int m = 0; m < world->methods.count; m++)
        if (world->methods.methods[m]->begin)
            world->methods.methods[m]->begin(&world->step);
}

/* Corrections before the first step (idp.settle). Particles that come from a checkpoint have been corrected. */
static selkie_code settle(selkie_world *world, const sk_method *method, int is_new, selkie_error *error)
{
    const int asked = is_new || world->scene->idp.settle > 0;
    const int rounds = method->settle_rounds && asked ? method->settle_rounds(world->scene) : 0;
    for (int n = 0; n < rounds; n++) {
        begin_step(world);
        SK_TRY(run_slots(world, SK_SLOT_SORT, SK_SLOT_TO_GRID, 1, error));
    }
    return SELKIE_OK;
}

/* A step from rest to rest. */
static selkie_code relax_once(selkie_world *world, selkie_error *error)
{
    sk_step *step = &world->step;
    begin_step(world);
    SK_TRY(run_slots(world, SK_SLOT_EXCHANGE, SK_SLOT_COUNT, 1, error));
    SK_TRY(sk_cuda_fetch_particles(step, error));
    for (int64_t p = 0; p < step->particles.count; p++)
        memset(step->particles.records[p].velocity, 0, sizeof step->particles.records[p].velocity);
    sk_cuda_particles_changed(step);
    return SELKIE_OK;
}

/* Takes the velocities of the particles, or gives them back by their numbers. */
static void keep_velocities(sk_particles *particles, float (*kept)[3], int give_back)
{
    for (int64_t p = 0; p < particles->count; p++) {
        sk_particle *particle = &particles->records[p];
        if (!give_back)
            memcpy(kept[particle->id], particle->velocity, sizeof *kept);
        memcpy(particle->velocity, give_back ? kept[particle->id] : (float[3]){0.0f, 0.0f, 0.0f}, sizeof *kept);
    }
}

/* Moves particles apart before the first step, where a method asks for it. Only their places change. */
static selkie_code relax(selkie_world *world, const sk_method *method, selkie_error *error)
{
    sk_step *step = &world->step;
    double dt = 0.0, still = 0.0, *gravity = world->relative->gravity, weight[3];
    const int rounds = method->relax_rounds ? method->relax_rounds(step, &dt, &still) : 0;
    if (!rounds)
        return SELKIE_OK;
    uint32_t last = 0;
    for (int64_t p = 0; p < step->particles.count; p++)
        last = step->particles.records[p].id > last ? step->particles.records[p].id : last;
    float(*velocity)[3] = sk_allocate(step->memory, ((size_t)last + 1) * sizeof *velocity);
    if (!velocity)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "start: no memory for the velocities of the particles");

    keep_velocities(&step->particles, velocity, 0);
    memcpy(weight, gravity, sizeof weight);
    memset(gravity, 0, sizeof weight);
    step->dt = step->last_dt = dt;
    step->end_time = step->time; /* no time in which forces act */
    selkie_code code = SELKIE_OK;
    for (int n = 0; code == SELKIE_OK && n < rounds; n++) {
        code = relax_once(world, error);
        if (step->sums.max_speed * dt < still)
            break;
    }
    memcpy(gravity, weight, sizeof weight);
    step->dt = step->last_dt = 0.0;
    keep_velocities(&step->particles, velocity, 1);
    sk_cuda_particles_changed(step);
    sk_release(step->memory, velocity);
    return code;
}

/* The reference volumes of the statistics, after the corrections before the first step. */
static selkie_code measure_start(selkie_world *world, int is_new, selkie_error *error)
{
    sk_step *step = &world->step;
    int keeps_rest_volume = 0;
    for (int m = 0; m < world->methods.count; m++) {
        SK_TRY(settle(world, world->methods.methods[m], is_new, error));
        if (is_new)
            SK_TRY(relax(world, world->methods.methods[m], error));
        keeps_rest_volume |= world->methods.methods[m]->keeps_rest_volume;
    }

    SK_TRY(sk_world_measure(world, error));
    world->start_kernel_volume = step->kernel_volume;
    world->start_counted_volume = step->counted_volume;
    world->start_occupied_cells = step->occupied_cells;
    world->start_surface_volume = step->surface_volume;
    world->start_particles = step->particles.count;

    /* The reference for a squeezed start, or one inside solids, is the volume of its particles at rest. */
    double rest = (double)step->particles.count / step->particles_per_cell;
    if (step->kernel_volume < 0.9 * rest) {
        world->start_kernel_volume = world->start_counted_volume = world->start_surface_volume = rest;
        world->start_occupied_cells = (int64_t)rest;
    }
    /* The kernel volume cuts off the excess of a cell, so a jittered start measures up to 1 % too little. A density
     * projection removes the jitter in the first step; its reference is the volume at rest. */
    if (keeps_rest_volume)
        world->start_kernel_volume = rest;
    return SELKIE_OK;
}

/* --- Statistics --- */

static double ratio(double volume, double start)
{
    return start > 0.0 ? volume / start : 1.0;
}

static void collect_volumes(const selkie_world *world, selkie_statistics *s)
{
    const sk_step *step = &world->step;
    /* Cells of liquid that sources added and drains removed before the volume was measured. */
    double moved = (double)step->exchanged / step->particles_per_cell;
    s->volume_ratio = ratio(step->kernel_volume, world->start_kernel_volume + moved);
    s->volume_eq19 = ratio(step->counted_volume, world->start_counted_volume + moved);
    s->occupied_ratio = ratio((double)step->occupied_cells, (double)world->start_occupied_cells + moved);
    s->surface_volume_ratio = ratio(step->surface_volume, world->start_surface_volume + moved);
    s->liquid_cells = step->liquid_cells;
    s->blocks = step->cuda                    ? sk_cuda_block_count(step) - 1
                : step->needs & SK_NEEDS_GRID ? step->grid.block_count - 1
                                              : 0;
}

static void collect_energy(const selkie_world *world, selkie_statistics *s)
{
    const sk_step *step = &world->step;
    s->kinetic_energy = step->particle_mass * step->sums.kinetic;
    s->potential_energy = 0.0;
    for (int d = 0; d < step->dimension; d++) {
        if (step->grid.periodic >> d & 1)
            continue; /* no height along a joined axis */
        /* Velocities are those at the middle of the step, and so is this mean of the heights before and after it. */
        double sum = 0.5 * (step->positions_before[d] + step->positions[d]);
        s->potential_energy -=
            step->particle_mass * step->scene->gravity[d] * (sum - (double)step->particles.count * step->grid.low[d]);
    }
    s->max_speed = step->sums.max_speed;
}

void sk_world_collect_statistics(selkie_world *world, double step_ms)
{
    const sk_step *step = &world->step;
    selkie_statistics *s = &world->statistics;
    s->step = step->step_count;
    s->time = step->time;
    s->particles = step->particles.count;
    s->emitted = step->emitted;
    s->drained = step->drained;
    s->step_ms = step_ms;
    if (step->needs & SK_NEEDS_PARTICLES) {
        collect_volumes(world, s);
        collect_energy(world, s);
    }
    for (int m = 0; m < world->methods.count; m++)
        if (world->methods.methods[m]->statistics)
            world->methods.methods[m]->statistics(step, s);
}

/* --- Creation --- */

static void set_constants(selkie_world *world, const selkie_world_options *options, double cell_size)
{
    sk_step *step = &world->step;
    const selkie_scene *scene = step->scene = world->relative;
    step->up_axis = sk_scene_up_axis(scene, &step->up_sign);
    step->threads = options && options->threads > 0 ? options->threads : omp_get_num_procs();
    selkie_backend backend = options && options->with_backend ? options->backend : scene->backend;
    step->backend = backend == SELKIE_BACKEND_PLAIN  ? SK_BACKEND_PLAIN
                    : backend == SELKIE_BACKEND_CUDA ? SK_BACKEND_CUDA
                                                     : SK_BACKEND_TUNED;
    if (backend == SELKIE_BACKEND_AUTO && sk_methods_check_gpu(scene, NULL) == SELKIE_OK)
        step->backend = SK_BACKEND_CUDA;
    step->dimension = scene->domain.dimension;
    step->particles_per_cell = sk_scene_particles_per_cell(scene);
    step->density = sk_scene_density(scene, 0);
    step->particle_mass = step->density * pow(cell_size, step->dimension) / step->particles_per_cell;
}

/* Grid and solids, methods, particles, and the methods' state from the particles. */
static selkie_code build(selkie_world *world, const int cells[3], double cell_size, const sk_filling *filling,
                         selkie_error *error)
{
    sk_step *step = &world->step;
    const selkie_scene *scene = world->relative;
    if (step->needs & (SK_NEEDS_GRID | SK_NEEDS_PARTICLES)) {
        SK_TRY(sk_grid_init(&step->grid, step->dimension, cells, scene->domain.origin, cell_size, step->memory, error));
        sk_grid_join_sides(&step->grid, (int)scene->domain.periodic);
        for (int d = 0; d < step->dimension; d++)
            step->grid.origin[d] = world->scene->domain.origin[d];
        SK_TRY(sk_grid_declare(&step->grid, sk_methods_fields(world->methods), error));
        SK_TRY(sk_solids_init(&step->solids, scene, &step->grid, step->memory, error));
    }
    for (int m = 0; m < world->methods.count; m++)
        if (world->methods.methods[m]->create)
            SK_TRY(world->methods.methods[m]->create(step, error));

    if (step->backend == SK_BACKEND_CUDA) {
        SK_TRY(sk_cuda_check(scene, error));
        SK_TRY(sk_cuda_create(step, error));
    }

    int64_t total, liquid_cells;
    if (step->needs & SK_NEEDS_PARTICLES && filling)
        SK_TRY(filling->fill(step, filling->context, error));
    else if (step->needs & SK_NEEDS_PARTICLES)
        SK_TRY(sk_world_sample(
            &(sk_sampling){scene, &step->grid, &step->solids, step->threads, step->particles_per_cell, NULL},
            &step->particles, &total, &liquid_cells, error));
    for (int m = 0; m < world->methods.count; m++)
        if (world->methods.methods[m]->populate)
            SK_TRY(world->methods.methods[m]->populate(step, error));

    if (step->needs & SK_NEEDS_PARTICLES)
        SK_TRY(sk_probes_init(&world->probes, step, world->methods, error));
    step->watch = sk_probes_watch(&world->probes, step);
    SK_TRY(sk_world_compose(world, error));
    return measure_start(world, !filling, error);
}

selkie_code sk_world_build(selkie_world *world, const sk_filling *filling, selkie_error *error)
{
    sk_step *step = &world->step;
    memset(step, 0, sizeof *step);
    memset(&world->probes, 0, sizeof world->probes);
    step->memory = &world->memory;
    sk_particles_init(&step->particles, &world->memory);
    sk_arena_init(&step->arena, &world->memory);
    SK_TRY(sk_scene_copy(world->scene, &world->relative, error));
    sk_scene_make_relative(world->relative);

    int cells[3];
    double cell_size = selkie_scene_cells(world->scene, cells);
    set_constants(world, &world->options, cell_size);
    world->methods = sk_choose_methods(world->available, world->relative, world->chosen_methods);
    step->needs = sk_methods_need(world->methods, world->relative);
    SK_TRY(build(world, cells, cell_size, filling, error));
    sk_world_collect_statistics(world, 0.0);
    sk_probes_measure(&world->probes, step, 0.0);
    world->frame = 0;
    world->at_frame = 1;
    world->failed = 0;
    world->warning[0] = 0;
    world->set_length = 0.0;
    return SELKIE_OK;
}

/* The scenes of a new world: the given one, and the one that changes. */
static selkie_code take_scene(selkie_world *world, const selkie_scene *scene, selkie_error *error)
{
    SK_TRY(sk_scene_copy(scene, &world->original, error));
    SK_TRY(sk_scene_load_motions(world->original, error));
    selkie_scene without_changes = *world->original;
    sk_changes_leave_out(&without_changes);
    selkie_scene *copy;
    SK_TRY(sk_scene_copy(&without_changes, &copy, error));
    world->scene = calloc(1, sizeof *world->scene);
    if (!world->scene) {
        selkie_scene_free(copy);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "world: no memory");
    }
    *world->scene = *copy;
    return sk_changes_init(world, error);
}

selkie_code sk_world_create_with(sk_method_list methods, const selkie_scene *scene, const selkie_world_options *options,
                                 const sk_filling *filling, selkie_world **out, selkie_error *error)
{
    *out = NULL;
    if (!scene)
        return sk_fail(error, SELKIE_ERROR_INPUT, "a world needs a scene: the pointer is NULL");
    SK_TRY(selkie_scene_check(scene, error));
    selkie_world *world = calloc(1, sizeof *world);
    if (!world)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "world: no memory");
    if (options)
        world->options = *options;
    world->available = methods;
    world->positions_shown = calloc(1, sizeof *world->positions_shown);
    world->memory.limit = options && options->memory_limit ? options->memory_limit : sk_memory_available();
    selkie_code code = world->positions_shown ? take_scene(world, scene, error)
                                              : sk_fail(error, SELKIE_ERROR_MEMORY, "world: no memory");
    if (code == SELKIE_OK)
        code = sk_world_build(world, filling, error);
    if (code != SELKIE_OK) {
        selkie_world_destroy(world);
        return code;
    }
    *out = world;
    return SELKIE_OK;
}

selkie_code sk_world_create_of(sk_method_list methods, const selkie_scene *scene, const selkie_world_options *options,
                               selkie_world **out, selkie_error *error)
{
    return sk_world_create_with(methods, scene, options, NULL, out, error);
}

selkie_code selkie_world_create(const selkie_scene *scene, const selkie_world_options *options, selkie_world **out,
                                selkie_error *error)
{
    int before = sk_threads_begin(options ? options->threads : 0);
    selkie_code code = sk_world_create_of(sk_all_methods(), scene, options, out, error);
    sk_threads_end(before);
    return code;
}

void sk_world_empty(selkie_world *world)
{
    sk_step *step = &world->step;
    sk_probes_free(&world->probes);
    for (int m = world->methods.count - 1; m >= 0; m--)
        if (world->methods.methods[m]->destroy)
            world->methods.methods[m]->destroy(step);
    sk_cuda_destroy(step);
    world->methods.count = 0;
    if (step->memory) {
        sk_particles_free(&step->particles);
        sk_arena_free(&step->arena);
    }
    if (step->solids.memory)
        sk_solids_free(&step->solids);
    if (step->grid.memory)
        sk_grid_free(&step->grid);
    memset(step, 0, sizeof *step);
    selkie_scene_free(world->relative);
    world->relative = NULL;
}

void selkie_world_destroy(selkie_world *world)
{
    if (!world)
        return;
    sk_world_empty(world);
    sk_mesher_destroy(world->mesher);
    sk_changes_free(world);
    if (world->scene)
        sk_pool_destroy(world->scene->owned);
    free(world->scene);
    selkie_scene_free(world->original);
    free(world->positions_shown);
    free(world);
}

/* --- The step --- */

/* Gravity in the moving frame, its mean over the window of the step's forces. All methods read it from their scene. */
static void set_gravity(selkie_world *world)
{
    const selkie_frame_def *frame = &world->scene->frame;
    if (!world->scene->gravity_key_count && !sk_frame_moves(frame))
        return;
    const sk_force_window window = sk_step_force_window(&world->step);
    sk_frame_mean mean;
    sk_frame_mean_of(world->scene, world->scene->gravity, window.from, window.to, &mean);
    memcpy(world->relative->gravity, mean.gravity, sizeof mean.gravity);
}

/* Runs the phases and times them. A phase may send the step back to an earlier one. */
static selkie_code run_phases(selkie_world *world, double begin, selkie_error *error)
{
    double before = begin;
    memset(world->statistics.phase_ms, 0, sizeof world->statistics.phase_ms);
    for (int p = 0; p < world->phase_count; p++) {
        const sk_phase *phase = &world->phases[p];
        SK_TRY(sk_phase_run(phase, &world->step, error));
        double now = sk_wall_ms();
        world->statistics.phase_ms[p] += now - before;
        before = now;
        if (phase->again && phase->again_from >= 0 && phase->again(&world->step))
            p = phase->again_from - 1;
    }
    return SELKIE_OK;
}

selkie_code selkie_world_step(selkie_world *world, selkie_error *error)
{
    sk_step *step = &world->step;
    if (world->failed)
        return sk_fail(error, SELKIE_ERROR_DIVERGED, "the world failed in an earlier step and cannot go on");
    double end_time, begin = sk_wall_ms();
    int on_frame;
    SK_TRY(sk_changes_due(world, error));
    step->dt = sk_world_choose_step(world, &end_time, &on_frame);
    step->start_speed = step->sums.max_speed;
    step->end_time = end_time;
    set_gravity(world);
    int64_t drained = step->drained;
    if (*world->positions_shown) {
        sk_particles_moved(&step->particles);
        sk_cuda_particles_changed(step);
    }
    *world->positions_shown = 0;

    world->failed = 1;
    begin_step(world);
    SK_TRY(run_phases(world, begin, error));
    world->failed = 0;

    /* Remove particles that left through an open side, so that views and files agree with the next step. */
    if (step->drained > drained && !step->cuda) {
        const uint64_t moves = step->particles.moves;
        const int64_t count = step->particles.count;
        sk_particles_drop_dead(&step->particles);
        sk_probes_drop(&world->probes, &step->particles, moves, count);
    }
    double kick = sk_step_kick(step);
    world->pressure_unit = step->density * step->grid.cell_size / kick;
    step->time = end_time;
    sk_solids_move(&step->solids, end_time);
    step->last_dt = step->dt;
    step->step_count++;
    sk_world_count_frames(world, on_frame);
    world->statistics.dt = step->dt;
    SK_TRY(sk_probes_fetch(&world->probes, step, error));
    sk_probes_measure(&world->probes, step, kick);
    sk_world_collect_statistics(world, sk_wall_ms() - begin);
    sk_world_judge_step(world);
    return SELKIE_OK;
}
