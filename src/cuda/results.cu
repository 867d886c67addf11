/* Results of a step from the device: sums and reports, particles and grid. */
#include "cuda/device.h"

extern "C" {
#include "base/block_table.h"
#include "cuda/phases.h"
#include "grid/solids.h"
#include "methods/flip/flip.h"
}

static void take_results(sk_step *step)
{
    const sk_cuda_results *results = step->cuda->results;
    step->cuda->device_count = results->count;
    step->particles.count = results->count;
    step->kernel_volume = results->kernel_volume;
    step->counted_volume = results->counted_volume;
    step->surface_volume = results->surface_volume;
    step->occupied_cells = results->occupied;
    step->liquid_cells = results->liquid;
}

selkie_code sk_cuda_ask_results(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    SK_CUDA_TRY(cudaMemcpyAsync(cuda->results, &cuda->data->results, sizeof *cuda->results, cudaMemcpyDeviceToHost,
                                cuda->stream),
                "a step", error);
    SK_CUDA_TRY(cudaEventRecord(cuda->results_here, cuda->stream), "a step", error);
    return SELKIE_OK;
}

static selkie_code copy_results(sk_step *step, selkie_error *error)
{
    SK_TRY(sk_cuda_ask_results(step, error));
    SK_CUDA_TRY(cudaEventSynchronize(step->cuda->results_here), "a step", error);
    take_results(step);
    return SELKIE_OK;
}

static selkie_code check_places(const sk_step *step, selkie_error *error)
{
    if (step->cuda->results->lost)
        return sk_fail(error, SELKIE_ERROR_DIVERGED,
                       "%lld particles are nowhere (position not a number, or far outside the domain): the simulation "
                       "blew up; try a smaller time.step or time.cfl",
                       (long long)step->cuda->results->lost);
    return SELKIE_OK;
}

selkie_code sk_cuda_await_results(sk_step *step, selkie_error *error)
{
    SK_CUDA_TRY(cudaEventSynchronize(step->cuda->results_here), "a step", error);
    take_results(step);
    return check_places(step, error);
}

selkie_code sk_cuda_read_results(sk_step *step, selkie_error *error)
{
    SK_TRY(copy_results(step, error));
    return check_places(step, error);
}

void sk_cuda_remember_solve(sk_cuda *cuda, int kind, int iterations, int twice)
{
    for (int n = SK_CUDA_REMEMBERED - 1; n > 0; n--) {
        cuda->last[kind].iterations[n] = cuda->last[kind].iterations[n - 1];
        cuda->last[kind].twice[n] = cuda->last[kind].twice[n - 1];
    }
    cuda->last[kind].iterations[0] = iterations;
    cuda->last[kind].twice[0] = twice;
}

static void report_errors(sk_step *step)
{
    const sk_cuda_results *results = step->cuda->results;
    const double n = results->error_count ? (double)results->error_count : 1.0, mean = results->error_sum / n;
    step->density_error_mean = results->error_absolute / n;
    step->density_error_max = results->error_largest;
    step->density_error_std = sqrt(fmax(results->error_squares / n - mean * mean, 0.0));
}

static selkie_code report_pressure(sk_step *step, selkie_error *error)
{
    const sk_cuda_results *results = step->cuda->results;
    memset(&step->pressure, 0, sizeof step->pressure);
    if (!sk_step_has_pressure(step) || step->scene->discretization != SELKIE_DISCRETIZATION_GRID)
        return SELKIE_OK;
    if (step->scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL) {
        step->pressure.iterations = step->unilateral.iterations;
        step->pressure.residual = step->unilateral.residual;
        return SELKIE_OK;
    }
    report_errors(step);
    sk_cuda_remember_solve(step->cuda, SK_CUDA_PRESSURE, results->pressure.iterations, results->pressure.twice);
    step->pressure.iterations = results->pressure.iterations;
    step->pressure.converged = results->pressure.converged && !results->pressure.broken;
    step->pressure.residual = results->pressure.residual;
    step->pressure.unknowns = results->pressure.unknowns;
    return sk_flip_judge_pressure(step, error);
}

selkie_code sk_cuda_finish_step(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const sk_cuda_results *results = cuda->results;
    if (cuda->heat) /* what is left to do of it, so that the host waits once */
        SK_TRY(step->dimension == 2 ? sk_cuda_sum_heat_2d(step, error) : sk_cuda_sum_heat_3d(step, error));
    SK_TRY(copy_results(step, error));
    sk_cuda_take_graph_times(cuda);
    if (cuda->stress)
        SK_TRY(step->dimension == 2 ? sk_cuda_report_viscosity_2d(step, error)
                                    : sk_cuda_report_viscosity_3d(step, error));
    if (cuda->heat)
        SK_TRY(step->dimension == 2 ? sk_cuda_report_heat_2d(step, error) : sk_cuda_report_heat_3d(step, error));
    SK_TRY(report_pressure(step, error));
    step->sums.kinetic = results->kinetic;
    step->sums.max_speed = sqrt(results->fastest2);
    step->sums.bad = results->bad;
    if (results->bad)
        return sk_fail(
            error, SELKIE_ERROR_DIVERGED,
            "step %lld at %g s: the velocity of %lld particles is not a number; the simulation blew up; try a "
            "smaller time.step or time.cfl",
            (long long)step->step_count + 1, step->time, (long long)results->bad);
    SK_TRY(check_places(step, error));

    /* Drains came before the move, and before the volume was measured. */
    for (int d = 0; d < step->dimension; d++)
        step->positions[d] -= results->drained.positions[d];
    step->drained += results->drained.count;
    step->exchanged = step->emitted - step->drained;
    if (results->drained.count)
        SK_CUDA_TRY(cudaMemsetAsync(&cuda->data->results.drained, 0, sizeof results->drained, cuda->stream), "a step",
                    error);
    memcpy(step->positions_before, step->positions, sizeof step->positions);
    memcpy(step->positions, results->positions, sizeof step->positions);
    step->drained += results->gone;
    step->particles.count = results->count - results->gone;
    cuda->began = 0;
    return SELKIE_OK;
}

size_t sk_cuda_bytes(const sk_step *step)
{
    const sk_cuda *cuda = step->cuda;
    return cuda ? cuda->bytes + cuda->role_bytes + cuda->sum_bytes + sk_cuda_splash_bytes(cuda) : 0;
}

int sk_cuda_block_count(const sk_step *step)
{
    return step->cuda->results->block_count;
}

selkie_code sk_cuda_fetch_particles(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    if (!cuda || !cuda->allocation_count || cuda->particles_here || cuda->host_changed)
        return SELKIE_OK;
    if (cuda->began) /* phases outside of a step */
        SK_TRY(sk_cuda_read_results(step, error));
    cuda->began = 0;
    sk_particles *particles = &step->particles;
    const int64_t shown = particles->count;
    particles->count = 0; /* those here are old, and fewer where a source has run: nothing to keep */
    const selkie_code code = sk_particles_reserve(particles, cuda->device_count, error);
    particles->count = shown;
    SK_TRY(code);
    const size_t count = (size_t)cuda->device_count;
    SK_CUDA_TRY(cudaMemcpyAsync(particles->records, cuda->records[cuda->current], count * sizeof(sk_particle),
                                cudaMemcpyDeviceToHost, cuda->stream),
                "a copy of the particles", error);
    for (int a = 0; a < particles->attribute_count; a++)
        SK_CUDA_TRY(cudaMemcpyAsync(particles->attributes[a].data, cuda->attributes[a][cuda->current],
                                    count * (size_t)particles->attributes[a].components * sizeof(uint32_t),
                                    cudaMemcpyDeviceToHost, cuda->stream),
                    "a copy of the particles", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "a copy of the particles", error);

    /* The next sort on the device drops particles that have left; here they go now. */
    particles->count = cuda->device_count;
    if (shown != cuda->device_count)
        sk_particles_drop_dead(particles);
    cuda->particles_here = 1;
    return SELKIE_OK;
}

static selkie_code copy_back(const sk_cuda *cuda, void *to, const void *from, size_t bytes, selkie_error *error)
{
    SK_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, cuda->stream), "a copy of the grid", error);
    return SELKIE_OK;
}

/* The blocks, and the solids beside them. */
static selkie_code fetch_blocks(sk_step *step, selkie_error *error)
{
    const sk_cuda *cuda = step->cuda;
    sk_grid *grid = &step->grid;
    const sk_grid *from = &cuda->sent->step.grid;
    const int blocks = cuda->results->block_count;
    SK_TRY(sk_grid_reserve_blocks(grid, (size_t)blocks, error));
    grid->block_count = blocks;
    grid->particle_blocks = cuda->results->particle_blocks;
    SK_TRY(copy_back(cuda, grid->coordinates, from->coordinates, (size_t)blocks * sizeof *grid->coordinates, error));
    SK_TRY(copy_back(cuda, grid->neighbours, from->neighbours, (size_t)blocks * sizeof *grid->neighbours, error));
    SK_TRY(copy_back(cuda, grid->faces, from->faces, (size_t)blocks * sizeof *grid->faces, error));
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "a copy of the grid", error);

    /* The host finds blocks by a hash table, and solids by the blocks. */
    sk_block_table_clear(&grid->table);
    SK_TRY(sk_block_table_reserve(&grid->table, grid->memory, (size_t)blocks, error));
    for (int b = 1; b < blocks; b++)
        SK_TRY(sk_block_table_set(
            &grid->table, grid->memory,
            sk_block_key(grid->coordinates[b][0], grid->coordinates[b][1], grid->coordinates[b][2]), b, error));
    return step->dimension == 2 ? sk_solids_update_2d(&step->solids, grid, step->threads, error)
                                : sk_solids_update_3d(&step->solids, grid, step->threads, error);
}

static selkie_code fetch_fields(sk_step *step, selkie_error *error)
{
    const sk_cuda *cuda = step->cuda;
    sk_grid *grid = &step->grid;
    const sk_grid *from = &cuda->sent->step.grid;
    const size_t blocks = (size_t)grid->block_count, cells = blocks * (size_t)grid->block_cells,
                 starts = (size_t)grid->particle_blocks * (size_t)grid->block_cells + 1;
    SK_TRY(sk_reserve(grid->memory, (void **)&grid->cell_start, &grid->cell_start_capacity, starts, sizeof(uint32_t),
                      "grid", error));
    SK_TRY(copy_back(cuda, grid->kinds, from->kinds, cells, error));
    SK_TRY(copy_back(cuda, grid->block_flags, from->block_flags, blocks, error));
    SK_TRY(copy_back(cuda, grid->cell_start, from->cell_start, starts * sizeof(uint32_t), error));
    for (int r = 0; r <= SK_RUNS_SCRATCH; r++)
        SK_TRY(copy_back(cuda, grid->runs[r], from->runs[r], blocks * sizeof(uint64_t), error));
    for (int f = 0; f < SK_FIELD_LIMIT; f++)
        if (grid->fields[f])
            SK_TRY(copy_back(cuda, grid->fields[f], from->fields[f], cells * sizeof(float), error));
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "a copy of the grid", error);
    return SELKIE_OK;
}

selkie_code sk_cuda_fetch_grid(sk_step *step, int with_fields, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    if (!cuda || !cuda->allocation_count || cuda->grid_here > with_fields)
        return SELKIE_OK;
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "a step", error);
    if (cuda->results->block_count < 1)
        return SELKIE_OK;
    if (!cuda->grid_here)
        SK_TRY(fetch_blocks(step, error));
    cuda->grid_here = 1;
    if (with_fields)
        SK_TRY(fetch_fields(step, error));
    cuda->grid_here = 1 + with_fields;
    return SELKIE_OK;
}
