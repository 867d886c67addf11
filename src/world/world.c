/* Making a world, and its step. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/timer.h"
#include "defs/structs.h"
#include "defs/materials.h"
#include "methods/flip/flip.h"
#include "methods/idp/idp.h"
#include "methods/liquid_boundary/liquid_boundary.h"
#include "methods/particle_spacing/particle_spacing.h"
#include "methods/sph/boundary.h"
#include "methods/uic/uic.h"
#include "methods/volume_terms/volume_terms.h"
#include "world/world_internal.h"

void selkie_world_options_defaults(selkie_world_options *options)
{
    memset(options, 0, sizeof *options);
}

/* --- composition --- */

static void add_phase(selkie_world *world, const char *name, sk_phase_function run_2d, sk_phase_function run_3d)
{
    sk_phase *phase = &world->phases[world->phase_count++];
    phase->name = name;
    phase->run = world->step.dimension == 2 ? run_2d : run_3d;
    phase->again_from = -1;
}

/* Particles that were moved: cells, blocks and the solids in them follow. */
static void add_sort_again(selkie_world *world)
{
    add_phase(world, "sort_again", sk_flip_sort_again_2d, sk_flip_sort_again_3d);
    add_phase(world, "solids_again", sk_flip_solids_2d, sk_flip_solids_3d);
}

/* The step of SPH: neighbours are particles, and there is no grid but for finding them. */
static void compose_sph(selkie_world *world)
{
    if (world->step.sources)
        add_phase(world, "sources", sk_sources_run, sk_sources_run);
    if (world->step.objects)
        add_phase(world, "roles", sk_liquid_boundary_roles, sk_liquid_boundary_roles);
    add_phase(world, "sort", sk_flip_sort_2d, sk_flip_sort_3d);
    add_phase(world, "solids", sk_flip_solids_2d, sk_flip_solids_3d);
    add_phase(world, "boundary", sk_sph_boundary_run, sk_sph_boundary_run);
    add_phase(world, "neighbours", sk_sph_neighbours_2d, sk_sph_neighbours_3d);
    add_phase(world, "forces", sk_sph_forces_2d, sk_sph_forces_3d);
    if (sk_scene_viscosity(world->scene) > 0.0)
        add_phase(world, "friction", sk_sph_friction_2d, sk_sph_friction_3d);
    if (world->step.objects)
        add_phase(world, "animate", sk_liquid_boundary_animate, sk_liquid_boundary_animate);
    add_phase(world, "pressure", sk_sph_pressure_2d, sk_sph_pressure_3d);
    if (world->step.rigid)
        add_phase(world, "bodies", sk_sph_bodies_run, sk_sph_bodies_run);
    add_phase(world, "integrate", sk_sph_integrate_2d, sk_sph_integrate_3d);
    if (world->step.objects)
        add_phase(world, "hold", sk_liquid_boundary_hold, sk_liquid_boundary_hold);
}

/* The step, read from top to bottom. A method adds its phases here. */
static void compose(selkie_world *world)
{
    if (world->scene->discretization == SELKIE_DISCRETIZATION_SPH) {
        compose_sph(world);
        return;
    }
    const selkie_volume volume = world->scene->volume;
    const int unilateral = world->scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    const int correct = unilateral && world->scene->unilateral.density_correction;
    /* What is too dense now is judged by where solids are now, what would be by where they will be. */
    const int both = correct && world->step.solids.moving_count;
    if (world->step.sources)
        add_phase(world, "sources", sk_sources_run, sk_sources_run);
    add_phase(world, "sort", sk_flip_sort_2d, sk_flip_sort_3d);
    if (both)
        add_phase(world, "solids", sk_uic_solids_now_2d, sk_uic_solids_now_3d);
    else
        add_phase(world, "solids", sk_flip_solids_2d, sk_flip_solids_3d);
    if (volume == SELKIE_VOLUME_IDP) {
        int first = world->phase_count;
        add_phase(world, "density", sk_idp_density_2d, sk_idp_density_3d);
        add_phase(world, "density_classify", sk_flip_classify_cells_2d, sk_flip_classify_cells_3d);
        add_phase(world, "density_correct", sk_idp_correct_2d, sk_idp_correct_3d);
        add_sort_again(world);
        world->phases[world->phase_count - 1].again_from = first;
    }
    if (volume == SELKIE_VOLUME_ANDO || volume == SELKIE_VOLUME_SATO) {
        if (volume == SELKIE_VOLUME_ANDO)
            add_phase(world, "spacing", sk_spacing_ando_2d, sk_spacing_ando_3d);
        else
            add_phase(world, "spacing", sk_spacing_sato_2d, sk_spacing_sato_3d);
        add_sort_again(world);
    }
    add_phase(world, "to_grid", sk_flip_to_grid_2d, sk_flip_to_grid_3d);
    add_phase(world, "classify", sk_flip_classify_2d, sk_flip_classify_3d);
    if (correct)
        add_phase(world, "density_correct", sk_uic_correct_2d, sk_uic_correct_3d);
    if (both)
        add_phase(world, "solids_again", sk_flip_solids_2d, sk_flip_solids_3d);
    add_phase(world, "forces", sk_flip_forces_2d, sk_flip_forces_3d);
    if (sk_scene_viscosity(world->scene) > 0.0)
        add_phase(world, "viscosity", sk_flip_viscosity_2d, sk_flip_viscosity_3d);
    if (volume == SELKIE_VOLUME_EQ8)
        add_phase(world, "volume_term", sk_volume_eq8_2d, sk_volume_eq8_3d);
    if (volume == SELKIE_VOLUME_LOSASSO)
        add_phase(world, "volume_term", sk_volume_losasso_2d, sk_volume_losasso_3d);
    if (unilateral) {
        add_phase(world, "predict", sk_uic_predict_2d, sk_uic_predict_3d);
        add_phase(world, "pressure", sk_uic_pressure_2d, sk_uic_pressure_3d);
        add_phase(world, "extrapolate", sk_uic_extrapolate_2d, sk_uic_extrapolate_3d);
    } else {
        add_phase(world, "pressure", sk_flip_pressure_2d, sk_flip_pressure_3d);
        add_phase(world, "extrapolate", sk_flip_extrapolate_2d, sk_flip_extrapolate_3d);
    }
    if (!correct) {
        add_phase(world, "move", sk_flip_move_2d, sk_flip_move_3d);
        return;
    }
    add_phase(world, "to_particles", sk_flip_to_particles_2d, sk_flip_to_particles_3d);
    add_phase(world, "shift", sk_uic_shift_2d, sk_uic_shift_3d);
    add_phase(world, "advect", sk_flip_advect_2d, sk_flip_advect_3d);
}

/* The phases before `end`, corrections of the positions only where they are wanted. */
static selkie_code run_until(selkie_world *world, const char *end, int correct, selkie_error *error)
{
    for (int p = 0; p < world->phase_count && strcmp(world->phases[p].name, end) != 0; p++) {
        const char *name = world->phases[p].name;
        if (strcmp(name, "sources") != 0 && strcmp(name, "roles") != 0 &&
            (correct || strncmp(name, "density_", 8) != 0))
            SK_TRY(world->phases[p].run(&world->step, error));
    }
    return SELKIE_OK;
}

selkie_code sk_world_measure(selkie_world *world, selkie_error *error)
{
    sk_step *step = &world->step;
    SK_TRY(run_until(world, "forces", 0, error));
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
    SK_TRY(sk_world_sum_masses(world, error));
    memcpy(step->mass_sums.moment_before, step->mass_sums.moment, sizeof step->mass_sums.moment);
    return SELKIE_OK;
}

/* What volumes are compared with later, after the corrections that come before the first step (idp.settle). */
static selkie_code measure_start(selkie_world *world, selkie_error *error)
{
    sk_step *step = &world->step;
    if (world->scene->volume == SELKIE_VOLUME_IDP)
        for (int n = 0; n < world->scene->idp.settle; n++) {
            step->density_passes = 0; /* each is the first of its kind, for all of the liquid */
            SK_TRY(run_until(world, "to_grid", 1, error));
        }
    SK_TRY(sk_world_measure(world, error));
    world->start_kernel_volume = step->kernel_volume;
    world->start_counted_volume = step->counted_volume;
    world->start_occupied_cells = step->occupied_cells;
    world->start_surface_volume = step->surface_volume;
    world->start_particles = step->particles.count;
    /* A start that is squeezed or inside solids is measured against what its particles take at rest. */
    double rest = (double)step->particles.count / step->particles_per_cell;
    if (step->kernel_volume < 0.9 * rest) {
        world->start_kernel_volume = world->start_counted_volume = world->start_surface_volume = rest;
        world->start_occupied_cells = (int64_t)rest;
    }
    /* The kernel volume cuts off what is too much in a cell, so a jittered start measures up to 1 % less than it is.
     * The projection evens that out in the first step; what it has to keep is the volume at rest. */
    if (world->scene->volume == SELKIE_VOLUME_IDP)
        world->start_kernel_volume = rest;
    return SELKIE_OK;
}

void sk_world_collect_statistics(selkie_world *world, double step_ms)
{
    const sk_step *step = &world->step;
    selkie_statistics *s = &world->statistics;
    s->step = step->step_count;
    s->time = step->time;
    s->particles = step->particles.count;
    /* What sources added and drains took before the volume was measured, in cells of liquid. */
    double moved = (double)step->exchanged / step->particles_per_cell;
    double kernel = world->start_kernel_volume + moved, counted = world->start_counted_volume + moved;
    double occupied = (double)world->start_occupied_cells + moved;
    s->volume_ratio = kernel > 0.0 ? step->kernel_volume / kernel : 1.0;
    s->volume_eq19 = counted > 0.0 ? step->counted_volume / counted : 1.0;
    s->occupied_ratio = occupied > 0.0 ? (double)step->occupied_cells / occupied : 1.0;
    double surface = world->start_surface_volume + moved;
    s->surface_volume_ratio = surface > 0.0 ? step->surface_volume / surface : 1.0;
    s->density_iterations = step->density_report.iterations;
    s->density_residual = step->density_report.residual;
    if (step->bounded) {
        const sk_bounded_report *pressure = &step->unilateral, *correction = &step->correction;
        s->free_cells = pressure->free_cells;
        s->active_cells = pressure->active_cells;
        s->free_steps = pressure->free_steps;
        s->expansion_steps = pressure->expansion_steps;
        s->proportioning_steps = pressure->proportioning_steps;
        s->density_iterations = correction->iterations;
        s->density_residual = correction->residual;
        s->density_free_cells = correction->free_cells;
        s->density_active_cells = correction->active_cells;
        s->density_free_steps = correction->free_steps;
        s->density_expansion_steps = correction->expansion_steps;
        s->density_proportioning_steps = correction->proportioning_steps;
        s->overfull = step->overfull;
    }
    s->density_error_mean = step->density_error_mean;
    s->density_error_max = step->density_error_max;
    s->density_error_std = step->density_error_std;
    s->density_passes = step->density_passes;
    s->redistributed = step->redistributed;
    s->pushed_out = step->pushed_out;
    s->candidates = step->objects ? step->objects->candidates : 0;
    s->boundaries = step->objects ? step->objects->boundaries : 0;
    if (step->sph) {
        s->density_error_mean = step->sph->report.compression;
        s->density_error_max = step->sph->report.compression_max;
    }
    s->kinetic_energy = step->particle_mass * step->sums.kinetic;
    s->potential_energy = 0.0;
    for (int d = 0; d < step->dimension; d++) {
        /* Velocities live in the middle of the step; so does this mean of the heights before and after it. */
        double sum = 0.5 * (step->positions_before[d] + step->positions[d]);
        s->potential_energy -=
            step->particle_mass * step->scene->gravity[d] * (sum - (double)step->particles.count * step->grid.low[d]);
    }
    sk_world_weigh_energies(world);
    s->max_speed = step->sums.max_speed;
    s->pressure_iterations = step->pressure.iterations;
    s->pressure_residual = step->pressure.residual;
    s->liquid_cells = step->liquid_cells;
    s->blocks = step->grid.block_count - 1;
    s->emitted = step->emitted;
    s->drained = step->drained;
    s->step_ms = step_ms;
}

selkie_code selkie_world_create(const selkie_scene *scene, const selkie_world_options *options, selkie_world **out,
                                selkie_error *error)
{
    *out = NULL;
    SK_TRY(selkie_scene_check(scene, error));
    selkie_world *world = calloc(1, sizeof *world);
    if (!world)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "world: no memory");
    sk_step *step = &world->step;
    step->threads = options && options->threads > 0 ? options->threads : omp_get_num_procs();
    world->memory.limit = options && options->memory_limit ? options->memory_limit : sk_memory_available();
    step->memory = &world->memory;
    sk_particles_init(&step->particles, &world->memory);

    int cells[3];
    double cell_size = selkie_scene_cells(scene, cells);
    selkie_code code = sk_scene_copy(scene, &world->scene, error);
    if (code != SELKIE_OK) {
        free(world);
        return code;
    }
    scene = step->scene = world->scene;
    step->dimension = scene->domain.dimension;
    step->particles_per_cell = sk_scene_particles_per_cell(scene);
    code = sk_grid_init(&step->grid, step->dimension, cells, scene->domain.origin, cell_size, &world->memory, error);
    if (code == SELKIE_OK)
        code = sk_solids_init(&step->solids, scene, &step->grid, &world->memory, error);
    const int unilateral = scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    step->solids.blur_faces = unilateral;
    if (code == SELKIE_OK && unilateral)
        code = sk_grid_add_unilateral(&step->grid, error);
    if (code == SELKIE_OK)
        code = sk_world_add_materials(world, cell_size, error);
    int64_t total, liquid_cells;
    if (code == SELKIE_OK && scene->discretization == SELKIE_DISCRETIZATION_GRID &&
        scene->transfer == SELKIE_TRANSFER_APIC && !sk_particles_add_attribute(&step->particles, "affine", 9, 0))
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "particles: no memory for the attribute \"affine\"");
    if (code == SELKIE_OK && scene->body_count) {
        step->rigid = &world->rigid;
        code = sk_rigid_init(step->rigid, scene, &step->solids, &world->memory, error);
    }
    if (code == SELKIE_OK && scene->discretization == SELKIE_DISCRETIZATION_SPH)
        code = sk_sph_create(step, error);
    if (code == SELKIE_OK && step->sph)
        code = sk_sph_boundary_init(step, error);
    if (code == SELKIE_OK)
        code = sk_world_sample(scene, &step->grid, &step->solids, step->threads, step->particles_per_cell,
                               &step->particles, &total, &liquid_cells, error);
    if (code == SELKIE_OK && step->rigid)
        sk_sph_boundary_clear_bodies(step);
    if (code == SELKIE_OK && scene->object_count) {
        step->objects = &world->objects;
        code = sk_liquid_boundary_init(&world->objects, step, error);
    }
    if (code == SELKIE_OK && (scene->source_count || scene->drain_count)) {
        code = sk_sources_init(&world->sources, step, error);
        step->sources = &world->sources;
    }
    if (code == SELKIE_OK && !step->sph) {
        step->solver =
            step->dimension == 2 ? sk_poisson_create_2d(&world->memory) : sk_poisson_create_3d(&world->memory);
        if (!step->solver)
            code = sk_fail(error, SELKIE_ERROR_MEMORY, "pressure: no memory for the solver");
    }
    if (code == SELKIE_OK && unilateral) {
        step->bounded =
            step->dimension == 2 ? sk_bounded_create_2d(&world->memory) : sk_bounded_create_3d(&world->memory);
        if (!step->bounded)
            code = sk_fail(error, SELKIE_ERROR_MEMORY, "unilateral: no memory for the solver");
    }
    if (code == SELKIE_OK)
        code = sk_probes_init(&world->probes, step, error);
    if (code == SELKIE_OK) {
        compose(world);
        code = measure_start(world, error);
    }
    if (code != SELKIE_OK) {
        selkie_world_destroy(world);
        return code;
    }
    sk_world_collect_statistics(world, 0.0);
    sk_probes_measure(&world->probes, step, 0.0);
    world->at_frame = 1;
    *out = world;
    return SELKIE_OK;
}

void selkie_world_destroy(selkie_world *world)
{
    if (!world)
        return;
    sk_step *step = &world->step;
    sk_probes_free(&world->probes);
    if (step->sources)
        sk_sources_free(&world->sources);
    if (step->objects)
        sk_liquid_boundary_free(&world->objects);
    sk_sph_destroy(step);
    if (step->rigid)
        sk_rigid_free(step->rigid);
    if (step->solver && step->dimension == 2)
        sk_poisson_destroy_2d(step->solver);
    if (step->solver && step->dimension == 3)
        sk_poisson_destroy_3d(step->solver);
    if (step->bounded && step->dimension == 2)
        sk_bounded_destroy_2d(step->bounded);
    if (step->bounded && step->dimension == 3)
        sk_bounded_destroy_3d(step->bounded);
    sk_particles_free(&step->particles);
    sk_release(&world->memory, step->scratch);
    if (step->solids.memory)
        sk_solids_free(&step->solids);
    if (step->grid.memory)
        sk_grid_free(&step->grid);
    selkie_scene_free(world->scene);
    free(world);
}

/* --- the step --- */

selkie_code selkie_world_step(selkie_world *world, selkie_error *error)
{
    sk_step *step = &world->step;
    if (world->failed)
        return sk_fail(error, SELKIE_ERROR_DIVERGED, "the world failed in an earlier step and cannot go on");
    double end_time, begin = sk_wall_ms(), before = begin;
    int on_frame;
    step->dt = sk_world_choose_step(world, &end_time, &on_frame);
    step->end_time = end_time;
    world->failed = 1;
    int64_t drained = step->drained;
    memset(world->statistics.phase_ms, 0, sizeof world->statistics.phase_ms);
    step->density_passes = step->correct_again = 0;
    for (int p = 0; p < world->phase_count; p++) {
        SK_TRY(world->phases[p].run(step, error));
        double now = sk_wall_ms();
        world->statistics.phase_ms[p] += now - before;
        before = now;
        if (world->phases[p].again_from >= 0 && step->correct_again)
            p = world->phases[p].again_from - 1;
    }
    world->failed = 0;
    /* What left through an open side is nobody's business any more, in views and files as in the next step. */
    if (step->drained > drained)
        sk_particles_drop_dead(&step->particles);
    memcpy(step->mass_sums.moment_before, step->mass_sums.moment, sizeof step->mass_sums.moment);
    SK_TRY(sk_world_sum_masses(world, error));
    double kick = sk_step_kick(step);
    world->pressure_unit = step->density * step->grid.cell_size / kick;
    step->time = end_time;
    step->last_dt = step->dt;
    step->step_count++;
    world->at_frame = on_frame;
    world->frame += on_frame;
    world->statistics.dt = step->dt;
    sk_world_collect_statistics(world, sk_wall_ms() - begin);
    sk_probes_measure(&world->probes, step, kick);
    sk_world_judge_step(world);
    return SELKIE_OK;
}

/* --- what a caller may see --- */

double selkie_world_time(const selkie_world *world)
{
    return world->step.time;
}
int64_t selkie_world_step_count(const selkie_world *world)
{
    return world->step.step_count;
}
int64_t selkie_world_frame(const selkie_world *world)
{
    return world->frame;
}
int selkie_world_at_frame(const selkie_world *world)
{
    return world->at_frame;
}
const selkie_scene *selkie_world_scene(const selkie_world *world)
{
    return world->scene;
}
int64_t selkie_world_particle_count(const selkie_world *world)
{
    return world->step.particles.count;
}
int selkie_world_attribute_count(const selkie_world *world)
{
    return 3 + world->step.particles.attribute_count;
}
double selkie_world_particle_mass(const selkie_world *world)
{
    return world->step.particle_mass;
}
const selkie_statistics *selkie_world_statistics(const selkie_world *world)
{
    return &world->statistics;
}
int selkie_world_phase_count(const selkie_world *world)
{
    return world->phase_count;
}
size_t selkie_world_memory(const selkie_world *world)
{
    return world->memory.used;
}
size_t selkie_world_memory_peak(const selkie_world *world)
{
    return world->memory.peak;
}
const char *selkie_world_warning(const selkie_world *world)
{
    return world->warning[0] ? world->warning : NULL;
}
int selkie_world_probe_column_count(const selkie_world *world)
{
    return world->probes.column_count;
}

int selkie_world_body_count(const selkie_world *world)
{
    return world->step.rigid ? world->step.rigid->body_count : 0;
}

selkie_code selkie_world_body(const selkie_world *world, int index, selkie_body_state *state)
{
    memset(state, 0, sizeof *state);
    if (index < 0 || index >= selkie_world_body_count(world))
        return SELKIE_ERROR_INPUT;
    const sk_rigid_state *from = &world->step.rigid->states[index];
    memcpy(state->position, from->position, sizeof state->position);
    memcpy(state->quaternion, from->quaternion, sizeof state->quaternion);
    memcpy(state->velocity, from->velocity, sizeof state->velocity);
    memcpy(state->angular_velocity, from->angular_velocity, sizeof state->angular_velocity);
    memcpy(state->force, from->force, sizeof state->force);
    memcpy(state->torque, from->torque, sizeof state->torque);
    state->mass = world->step.rigid->bodies[index].mass;
    state->name = world->scene->bodies[index].name ? world->scene->bodies[index].name : "";
    return SELKIE_OK;
}

int selkie_world_finished(const selkie_world *world)
{
    return world->step.time >= world->scene->time.end * (1 - 1e-12);
}

const char *selkie_world_phase_name(const selkie_world *world, int phase)
{
    return phase >= 0 && phase < world->phase_count ? world->phases[phase].name : NULL;
}

const char *selkie_world_probe_column_name(const selkie_world *world, int column)
{
    return column >= 0 && column < world->probes.column_count ? world->probes.names[column] : NULL;
}

double selkie_world_probe_value(const selkie_world *world, int column)
{
    return column >= 0 && column < world->probes.column_count ? world->probes.values[column] : NAN;
}

selkie_code selkie_world_attribute(const selkie_world *world, int index, selkie_attribute_view *view)
{
    const sk_particles *particles = &world->step.particles;
    memset(view, 0, sizeof *view);
    if (index < 0 || index >= selkie_world_attribute_count(world))
        return SELKIE_ERROR_INPUT;
    static const char *const names[] = {"position", "velocity", "id"};
    static const size_t offsets[] = {offsetof(sk_particle, position), offsetof(sk_particle, velocity),
                                     offsetof(sk_particle, id)};
    if (index < 3) {
        view->name = names[index];
        view->type = index == 2 ? SELKIE_UINT32 : SELKIE_FLOAT32;
        view->components = index == 2 ? 1 : 3;
        view->stride = sizeof(sk_particle);
        view->data = particles->records ? (char *)particles->records + offsets[index] : NULL;
        ((selkie_world *)world)->step.grid.leavers_known =
            0; /* who may write positions may move particles to other cells */
        return SELKIE_OK;
    }
    const sk_attribute *attribute = &particles->attributes[index - 3];
    view->name = attribute->name;
    view->type = attribute->is_integer ? SELKIE_UINT32 : SELKIE_FLOAT32;
    view->components = attribute->components;
    view->stride = (size_t)attribute->components * 4;
    view->data = attribute->data;
    return SELKIE_OK;
}

selkie_code selkie_world_find_attribute(const selkie_world *world, const char *name, selkie_attribute_view *view,
                                        selkie_error *error)
{
    for (int a = 0; a < selkie_world_attribute_count(world); a++)
        if (selkie_world_attribute(world, a, view) == SELKIE_OK && strcmp(view->name, name) == 0)
            return SELKIE_OK;
    memset(view, 0, sizeof *view);
    return sk_fail(error, SELKIE_ERROR_INPUT, "there is no particle attribute \"%s\" in this world", name);
}

selkie_code selkie_world_field(const selkie_world *world, const char *name, selkie_field_view *view,
                               selkie_error *error)
{
    static const struct {
        const char *name;
        sk_grid_field field;
    } known[] = {{"velocity_x", SK_FIELD_VELOCITY_X}, {"velocity_y", SK_FIELD_VELOCITY_Y},
                 {"velocity_z", SK_FIELD_VELOCITY_Z}, {"pressure", SK_FIELD_POTENTIAL},
                 {"density", SK_FIELD_DENSITY},       {"fill", SK_FIELD_FILL}};
    const sk_grid *grid = &world->step.grid;
    memset(view, 0, sizeof *view);
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (strcmp(known[k].name, name) == 0 && grid->fields[known[k].field]) {
            view->name = known[k].name;
            /* Slot 0 is the shared empty block and nobody else's business. */
            view->block_count = grid->block_count - 1;
            memcpy(view->extent, grid->extent, sizeof view->extent);
            memcpy(view->padding, grid->padding, sizeof view->padding);
            view->block_coordinates = (const int32_t(*)[4])(grid->coordinates + 1);
            view->data = grid->fields[known[k].field] + grid->block_cells;
            view->scale = known[k].field == SK_FIELD_POTENTIAL ? world->pressure_unit : 1.0;
            return SELKIE_OK;
        }
    return sk_fail(error, SELKIE_ERROR_INPUT,
                   "there is no grid field \"%s\"; the fields are velocity_x, velocity_y, velocity_z (3D), pressure, "
                   "density, fill",
                   name);
}
