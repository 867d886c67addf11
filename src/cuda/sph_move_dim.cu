/* The move of SPH on the GPU, its memory, constants and walls. */
#include "cuda/roles_parts.h"
#include "cuda/sph_parts.h"

extern "C" {
#include "defs/materials.h"
#include "methods/liquid_boundary/liquid_boundary.h"
}

/* --- Move --- */

/* Sums over all particles, by the last thread block. */
SK_DEVICE void report_moved(sk_cuda_data *data, const sk_sph_moved_sums *sums, double pressure)
{
    double total[7] = {sums->kinetic,     sums->position[0],  sums->position[1], sums->position[2],
                       (double)sums->bad, (double)sums->gone, pressure};
    double largest = sums->fastest2;
    if (sum_over_launch(data, total, &largest) && threadIdx.x == 0) {
        data->results.kinetic = total[0];
        for (int d = 0; d < 3; d++)
            data->results.positions[d] = total[1 + d];
        data->results.bad = (int64_t)total[4];
        data->results.gone = (int64_t)total[5];
        data->results.fastest2 = largest;
        data->results.sph.pressure = total[6];
    }
}

template <bool AMONG_OBSTACLES>
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    integrate(const sk_step *step, const sk_cuda_constants *scene, const sk_cuda_sph_constants *constants,
              sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const sorted_grid sorted = grid_to_sort(grid);
    const float dt = (float)step->dt;
    const sk_sph *sph = step->sph;
    const double unit = sk_sph_pressure_unit(step->density, sph->spacing, sph->correction_time);
    sk_sph_moved_sums sums = {{0.0, 0.0, 0.0}, 0.0, 0.0, 0, 0};
    double pressure = 0.0; /* the time step needs its mean */
    SK_CUDA_EACH(i, step->particles.count)
    {
        sk_particle particle = load_particle(&step->particles.records[i]);
        const float from[3] = {particle.position[0], particle.position[1], particle.position[2]};
        sk_sph_advance(grid, &constants->bounds, dt, &particle);
        if (AMONG_OBSTACLES && !(particle.flags & (SK_PARTICLE_DEAD | SK_PARTICLE_BOUNDARY)))
            sweep_moved(step, scene, data, constants->bounds.low, constants->bounds.high, from, &particle);
        wrap_position(grid, particle.position);
        sk_sph_add_moved(&particle, &sums);
        pressure += particle.flags & SK_PARTICLE_DEAD ? 0.0 : sk_sph_whole_pressure(sph->pressure[i], unit);
        store_particle(&step->particles.records[i], particle);
        mark_place(&sorted, data, (uint32_t)i, particle.position, (particle.flags & SK_PARTICLE_DEAD) != 0);
    }
    report_moved(data, &sums, pressure);
}

static void launch_integrate(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_constants *scene = &cuda->device->constants;
    const sk_cuda_sph_constants *constants = &cuda->device->sph_constants;
    if (host->solids.obstacle_count)
        SK_LAUNCH(cuda, integrate<true>, SK_CUDA_SUMS, SK_CUDA_THREADS, step, scene, constants, cuda->data);
    else
        SK_LAUNCH(cuda, integrate<false>, SK_CUDA_SUMS, SK_CUDA_THREADS, step, scene, constants, cuda->data);
}

/* The report of the step. */
static selkie_code take_report(sk_step *step, selkie_error *error)
{
    const sk_cuda_results *results = step->cuda->results;
    sk_sph *sph = step->sph;
    sk_sph_report *report = &sph->report;
    const int solved = step->dt > 0.0 && sk_step_has_pressure(step) && results->count > 0;
    report->pairs = (int64_t)results->sph.pairs;
    report->list_bytes = (int64_t)results->sph.rows * GROUP * (SELKIE_DIM == 3 ? 10 : 8);
    report->boundaries = (int64_t)results->sph.boundaries;
    report->compression = results->sph.compression / fmax((double)(results->count - report->boundaries), 1.0);
    report->compression_max = results->sph.compression_max;
    sph->pressure_sum = results->sph.pressure;
    if (sk_sph_viscosity_is_implicit(step)) {
        report->viscosity_iterations = results->sph.viscosity_iterations;
        if (results->sph.viscosity_failed)
            return sk_sph_viscosity_failed(step, report->viscosity_iterations, error);
    }
    if (!solved)
        return SELKIE_OK;
    report->iterations = step->pressure.iterations = results->sph.iterations;
    report->predicted_error = step->pressure.residual = results->sph.error;
    if (results->sph.crowded)
        return sk_sph_crowded(step, error);
    report->largest_eigenvalue = results->sph.largest;
    return results->sph.diverged ? sk_sph_diverged(step, results->sph.iterations, error) : SELKIE_OK;
}

/* Forces of the step on parts of the walls that probes measure. */
static selkie_code take_forces(sk_step *step, selkie_error *error)
{
    const sk_cuda *cuda = step->cuda;
    const double over_step = step->dt > 0.0 ? 1.0 / step->dt : 0.0;
    const double unit[SK_CUDA_PART_FORCES] = {step->particle_mass * over_step,
                                              step->particle_mass * over_step * over_step, 1.0};
    for (int b = 0; cuda->part_forces && b < step->sph->boundary.body_count; b++) {
        sk_sph_body *body = &step->sph->boundary.bodies[b];
        double forces[SK_CUDA_PART_FORCES][6];
        if (!body->wants_force)
            continue;
        SK_CUDA_TRY(cudaMemcpyAsync(forces, cuda->part_forces[b], sizeof forces, cudaMemcpyDeviceToHost, cuda->stream),
                    "the forces on walls", error);
        SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "the forces on walls", error);
        for (int n = 0; n < SK_CUDA_PART_FORCES; n++)
            for (int d = 0; d < 3; d++) {
                body->force[d] += unit[n] * forces[n][d];
                body->torque[d] += unit[n] * forces[n][3 + d];
            }
    }
    return SELKIE_OK;
}

/* The end of the step: its results are here afterwards. */
static selkie_code finish(sk_step *step, selkie_error *error)
{
    SK_TRY(sk_cuda_finish_step(step, error));
    SK_TRY(take_forces(step, error));
    return take_report(step, error);
}

selkie_code SK_DIM(sk_cuda_sph_integrate)(sk_step *step, selkie_error *error)
{
    SK_TRY(sk_cuda_run(step, "sph_integrate", launch_integrate, error));
    sk_particles_moved(&step->particles);
    step->cuda->particles_here = 0;
    step->cuda->has_keys = 1;
    return step->objects ? SELKIE_OK : finish(step, error); /* the hold comes first */
}

/* --- Hold --- */

/* Moves particles back that a too long step has moved into a solid cell, and adds up again. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    hold(const sk_step *step, const sk_cuda_roles *there, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_roles all = roles_in_step(step, there);
    const int64_t count = there->counts.boundaries && step->dt > 0.0 ? step->particles.count : 0;
    sk_sph_moved_sums sums = {{0.0, 0.0, 0.0}, 0.0, 0.0, 0, 0};
    double stopped = 0.0;
    SK_CUDA_EACH(i, count)
    {
        sk_particle particle = load_particle(&step->particles.records[i]);
        const int times = hold_particle(&all, &particle);
        if (times)
            store_particle(&step->particles.records[i], particle);
        stopped += (double)times;
        sk_sph_add_moved(&particle, &sums);
    }
    double total[5] = {sums.kinetic, sums.position[0], sums.position[1], sums.position[2], stopped},
           largest = sums.fastest2;
    if (!sum_over_launch(data, total, &largest) || threadIdx.x != 0)
        return;
    data->results.roles = there->counts;
    data->results.roles.stopped = (unsigned long long)total[4];
    if (!(total[4] > 0.0))
        return;
    data->results.kinetic = total[0];
    for (int d = 0; d < 3; d++)
        data->results.positions[d] = total[1 + d];
    data->results.fastest2 = largest;
}

static void launch_hold(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_LAUNCH(cuda, hold, SK_CUDA_SUMS, SK_CUDA_THREADS, &cuda->device->step, cuda->roles, cuda->data);
}

selkie_code SK_DIM(sk_cuda_hold)(sk_step *step, selkie_error *error)
{
    sk_liquid_boundary *boundary = step->objects;
    const sk_cuda_role_counts *counts = &step->cuda->results->roles;
    SK_TRY(sk_cuda_run(step, "hold", launch_hold, error));
    SK_TRY(finish(step, error));
    boundary->candidates = (int64_t)counts->candidates;
    boundary->boundaries = (int64_t)counts->boundaries;
    boundary->arrived = (int64_t)counts->arrived;
    boundary->released = (int64_t)counts->released;
    boundary->assigned = (int64_t)counts->assigned;
    boundary->exchanged = (int64_t)counts->exchanged;
    boundary->stopped = (int64_t)counts->stopped;
    if (!boundary->stopped)
        return SELKIE_OK;
    step->cuda->has_keys = 0; /* they are those before the hold */
    sk_particles_moved(&step->particles);
    return SELKIE_OK;
}

/* --- Memory, constants and walls --- */

/* The arrays of the particles, and the bytes of a particle in each; nothing in them is kept from step to step. */
enum { SPH_ARRAYS = 11 + SK_SPH_VARIABLES };
typedef struct sph_array {
    void *address; /* of the pointer */
    size_t size;
} sph_array;

static int list_arrays(const sk_step *step, sph_array arrays[SPH_ARRAYS])
{
    sk_sph *of = &step->cuda->sph_shadow;
    int count = 10;
    const sph_array own[10] = {{&of->number, sizeof *of->number},
                               {&of->sum_gradient, sizeof *of->sum_gradient},
                               {&of->shift, sizeof *of->shift},
                               {&of->correction[0], sizeof *of->correction[0]},
                               {&of->correction[1], sizeof *of->correction[1]},
                               {&of->correction[2], sizeof *of->correction[2]},
                               {&of->density, sizeof(float)},
                               {&of->diagonal, sizeof(float)},
                               {&of->wall_flux, sizeof(float)},
                               {&of->source, sizeof(float)}};
    memcpy(arrays, own, sizeof own);
    for (int n = 0; n < SK_SPH_VARIABLES; n++, count++) {
        arrays[count].address = &of->variable[n];
        arrays[count].size = sizeof(float);
    }
    if (sk_scene_surface_tension(step->scene) > 0.0) {
        arrays[count].address = &step->cuda->surface_pressure;
        arrays[count++].size = sizeof(float);
    }
    return count;
}

static size_t groups_of(size_t particles)
{
    return particles / GROUP + 2;
}

static size_t bytes_of_forces(const sk_step *step)
{
    return (size_t)step->sph->boundary.body_count * SK_CUDA_PART_FORCES * 6 * sizeof(double);
}

selkie_code SK_DIM(sk_cuda_take_sph)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sph_array arrays[SPH_ARRAYS];
    memset(&cuda->sph_shadow, 0, sizeof cuda->sph_shadow);
    cuda->surface_pressure = NULL;
    const int count = list_arrays(step, arrays);
    SK_TRY(sk_cuda_take(cuda, &cuda->shadow.sph.row, groups_of(cuda->particle_capacity) * sizeof(uint32_t), 1, error));
    for (int n = 0; n < count; n++)
        SK_TRY(sk_cuda_take(cuda, arrays[n].address, cuda->particle_capacity * arrays[n].size, 1, error));
    cuda->walls_sent = 0;
    memset(cuda->wall_bytes, 0, sizeof cuda->wall_bytes);
    int measured = 0;
    for (int p = 0; p < step->scene->probe_count; p++)
        measured |=
            step->scene->probes[p].kind == SELKIE_PROBE_FORCE || step->scene->probes[p].kind == SELKIE_PROBE_TORQUE;
    cuda->part_forces = NULL;
    return measured ? sk_cuda_take(cuda, &cuda->part_forces, bytes_of_forces(step), 1, error) : SELKIE_OK;
}

selkie_code SK_DIM(sk_cuda_grow_sph)(sk_step *step, size_t before, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sph_array arrays[SPH_ARRAYS];
    const int count = list_arrays(step, arrays);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "the particles", error);
    for (int n = 0; n < count; n++) {
        sk_cuda_give(cuda, *(void **)arrays[n].address, before * arrays[n].size);
        SK_TRY(sk_cuda_take(cuda, arrays[n].address, cuda->particle_capacity * arrays[n].size, 1, error));
    }
    uint32_t **row = &cuda->shadow.sph.row;
    sk_cuda_give(cuda, *row, groups_of(before) * sizeof(uint32_t));
    SK_TRY(sk_cuda_take(cuda, row, groups_of(cuda->particle_capacity) * sizeof(uint32_t), 1, error));
    SK_CUDA_TRY(cudaMemcpyAsync(&cuda->data->sph.row, row, sizeof *row, cudaMemcpyHostToDevice, cuda->stream),
                "the particles", error);
    return SELKIE_OK;
}

void SK_DIM(sk_cuda_fill_sph)(sk_step *step, sk_cuda_sent *sent)
{
    const sk_cuda *cuda = step->cuda;
    const sk_sph *arrays = &cuda->sph_shadow;
    sk_cuda_sph_constants *constants = &sent->sph_constants;

    /* Constants of the host, arrays of the device. */
    sk_sph *to = &sent->sph;
    *to = *step->sph;
    to->boundary = arrays->boundary;
    to->particle_capacity = cuda->particle_capacity;
    to->number = arrays->number;
    to->sum_gradient = arrays->sum_gradient, to->shift = arrays->shift;
    memcpy(to->correction, arrays->correction, sizeof to->correction);
    to->density = arrays->density, to->diagonal = arrays->diagonal;
    to->wall_flux = arrays->wall_flux, to->source = arrays->source;
    memcpy(to->variable, arrays->variable, sizeof to->variable);
    to->body_term = NULL, to->pressure = NULL; /* the first kernel of the phase finds it */
    sent->step.sph = &cuda->device->sph;
    sent->step.surface_pressure = cuda->surface_pressure;

    const list_frame frame = make_list_frame(step);
    memset(constants, 0, sizeof *constants);
    constants->lists = frame.constants;
    constants->points = frame.points;
    constants->bounds = sk_sph_bounds_of(&step->grid, step->scene);
    for (int d = 0; d < SELKIE_DIM; d++)
        constants->gain[d] = (float)(sk_step_kick(step) * step->scene->gravity[d]);
    for (int a = 0; a < step->particles.attribute_count; a++)
        if (strcmp(step->particles.attributes[a].name, "pressure") == 0)
            constants->pressure = a;
    SK_DIM(sk_sph_friction_frame_of)(step, &constants->friction);
    constants->viscosity = sk_sph_viscous_shape_of(
        step->sph->viscous, sk_scene_viscosity(step->scene) * sk_step_kick(step), step->sph->support);
    constants->pair_forces = SK_DIM(sk_sph_pair_forces)(step, &constants->forces);
    constants->progress = sk_sph_begin_solve(step);
    if (sk_sph_system_begin(step, &constants->system))
        constants->ending = sk_sph_ending_of(step);
}

/* Sends an array of the walls, larger than before if it must be. */
typedef struct sent_array {
    void *address; /* of the pointer */
    const void *from;
    size_t bytes, *capacity;
} sent_array;

static selkie_code send(sk_cuda *cuda, sent_array of, selkie_error *error)
{
    void **at = (void **)of.address;
    if (of.bytes > *of.capacity) {
        sk_cuda_give(cuda, *at, *of.capacity);
        *of.capacity = 0;
        SK_TRY(sk_cuda_take(cuda, at, of.bytes + of.bytes / 4, 0, error));
        *of.capacity = of.bytes + of.bytes / 4;
    }
    if (of.bytes)
        SK_CUDA_TRY(cudaMemcpyAsync(*at, of.from, of.bytes, cudaMemcpyHostToDevice, cuda->stream), "the walls", error);
    return SELKIE_OK;
}

/* The host places the boundary particles: it has every kind of shape and motion. */
selkie_code SK_DIM(sk_cuda_sph_boundary)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    SK_TRY(sk_sph_boundary_run(step, error));
    if (cuda->part_forces)
        SK_CUDA_TRY(cudaMemsetAsync(cuda->part_forces, 0, bytes_of_forces(step), cuda->stream), "the walls", error);
    if (cuda->walls_sent && !sk_sph_boundary_moves(step->sph))
        return SELKIE_OK;
    const sk_sph_boundary *from = &step->sph->boundary;
    const sk_cell_index *index = &from->index;
    sk_sph_boundary *to = &cuda->sph_shadow.boundary;
    const sk_sph_boundary old = *to;
    const size_t cells = (size_t)index->block_count * SK_BLOCK_CELLS + 1,
                 entries = from->count ? (size_t)1 << index->table.log : 0;
    SK_TRY(sk_cuda_begin(step, error));
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "the walls", error); /* the last copy is over */
    *to = *from;
    to->particles = old.particles, to->index.cell_start = old.index.cell_start;
    to->index.table.entries = old.index.table.entries;
    to->bodies = old.bodies, to->index.coordinates = NULL, to->index.neighbours = NULL;
    const sent_array points = {&to->particles, from->particles, from->count * sizeof *from->particles,
                               &cuda->wall_bytes[0]};
    const sent_array starts = {&to->index.cell_start, index->cell_start,
                               from->count ? cells * sizeof *index->cell_start : 0, &cuda->wall_bytes[1]};
    const sent_array table = {&to->index.table.entries, index->table.entries, entries * sizeof *index->table.entries,
                              &cuda->wall_bytes[2]};
    const sent_array bodies = {&to->bodies, from->bodies, (size_t)from->body_count * sizeof *from->bodies,
                               &cuda->wall_bytes[3]};
    SK_TRY(send(cuda, points, error));
    SK_TRY(send(cuda, bodies, error));
    SK_TRY(send(cuda, starts, error));
    SK_TRY(send(cuda, table, error));
    SK_CUDA_TRY(cudaMemcpyAsync(&cuda->device->sph.boundary, to, sizeof *to, cudaMemcpyHostToDevice, cuda->stream),
                "the walls", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "the walls", error);
    cuda->walls_sent = 1;
    return SELKIE_OK;
}
