/* Memory of the GPU backend, and the transport of the step to it. The way back is in results.cu. */
#include "cuda/bodies_parts.h"

extern "C" {
#include "cuda/phases.h"
#include "defs/structs.h"
#include "grid/solids.h"
#include "methods/viscosity/viscosity.h"
}

selkie_code sk_cuda_failed(int code, const char *what, selkie_error *error)
{
    const char *text = cudaGetErrorString((cudaError_t)code);
    cudaGetLastError(); /* the error is reported here and must not return in another world */
    if (code == (int)cudaErrorMemoryAllocation)
        return sk_fail(error, SELKIE_ERROR_MEMORY,
                       "the GPU has no memory for %s (%s); use fewer particles or backend \"tuned\"", what, text);
    return sk_fail(error, SELKIE_ERROR_INTERNAL, "the GPU failed in %s: %s; the last checkpoint is whole", what, text);
}

/* --- the device --- */

int sk_cuda_is_built(void)
{
    return 1;
}

selkie_code sk_cuda_find(sk_cuda_info *info, selkie_error *error)
{
    memset(info, 0, sizeof *info);
#ifdef SK_CUDA_EMULATED
    (void)error;
    snprintf(info->name, sizeof info->name, "emulated");
    return SELKIE_OK;
#else
    int count = 0, driver = 0, runtime = 0;
    cudaDeviceProp properties;
    size_t free_bytes = 0, all = 0;
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess || count == 0) {
        cudaGetLastError(); /* the error is reported here and must not return later */
        return sk_fail(error, SELKIE_ERROR_INPUT, "backend: \"cuda\" finds no GPU (%s); use \"tuned\"",
                       code != cudaSuccess ? cudaGetErrorString(code) : "no device");
    }
    SK_CUDA_TRY(cudaGetDeviceProperties(&properties, 0), "the search for a device", error);
    SK_CUDA_TRY(cudaMemGetInfo(&free_bytes, &all), "the search for a device", error);
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    snprintf(info->name, sizeof info->name, "%.*s", (int)sizeof info->name - 1, properties.name);
    info->memory = (double)all;
    info->free = (double)free_bytes;
    info->driver[0] = driver / 1000, info->driver[1] = driver % 1000 / 10;
    info->runtime[0] = runtime / 1000, info->runtime[1] = runtime % 1000 / 10;
    info->capability[0] = properties.major, info->capability[1] = properties.minor;
    return SELKIE_OK;
#endif
}

/* --- memory --- */

/* Has the step points of mpm, alone or beside liquids? */
static int has_points(const sk_step *step)
{
    return step->scene->discretization == SELKIE_DISCRETIZATION_MPM || sk_scene_has_immersed_points(step->scene);
}

selkie_code sk_cuda_take(sk_cuda *cuda, void *address, size_t bytes, int zeroed, selkie_error *error)
{
    void **at = (void **)address;
    if (cuda->allocation_count == cuda->allocation_room) {
        const int room = 2 * cuda->allocation_room + 256;
        void **more = (void **)realloc(cuda->allocations, (size_t)room * sizeof *more);
        if (!more)
            return sk_fail(error, SELKIE_ERROR_MEMORY, "GPU: no memory");
        cuda->allocations = more;
        cuda->allocation_room = room;
    }
    SK_CUDA_TRY(cudaMalloc(at, bytes ? bytes : 1), "the fields of the grid", error);
    cuda->allocations[cuda->allocation_count++] = *at;
    cuda->bytes += bytes;
    if (zeroed)
        SK_CUDA_TRY(cudaMemsetAsync(*at, 0, bytes, cuda->stream), "the fields of the grid", error);
    return SELKIE_OK;
}

void sk_cuda_give(sk_cuda *cuda, void *memory, size_t bytes)
{
    for (int n = 0; memory && n < cuda->allocation_count; n++)
        if (cuda->allocations[n] == memory) {
            cudaFree(memory);
            cuda->allocations[n] = cuda->allocations[--cuda->allocation_count];
            cuda->bytes -= bytes;
        }
}

/* Arrays of the grid's blocks. */
static selkie_code take_blocks(sk_cuda *cuda, const sk_step *step, size_t capacity, selkie_error *error)
{
    sk_grid *grid = &cuda->sent->step.grid;
    const size_t cells = (size_t)step->grid.block_cells * capacity;
    cuda->shadow.capacity = (int)capacity;
    SK_TRY(sk_cuda_take(cuda, &grid->coordinates, capacity * sizeof *grid->coordinates, 1, error));
    SK_TRY(sk_cuda_take(cuda, &grid->neighbours, capacity * sizeof *grid->neighbours, 1, error));
    SK_TRY(sk_cuda_take(cuda, &grid->faces, capacity * sizeof *grid->faces, 1, error));
    SK_TRY(sk_cuda_take(cuda, &grid->kinds, cells, 1, error));
    SK_TRY(sk_cuda_take(cuda, &grid->block_flags, capacity, 1, error));
    SK_TRY(sk_cuda_take(cuda, &grid->cell_start, (cells + 1) * sizeof(uint32_t), 1, error));
    for (int r = 0; r <= SK_RUNS_SCRATCH; r++)
        SK_TRY(sk_cuda_take(cuda, &grid->runs[r], capacity * sizeof(uint64_t), 1, error));
    for (int f = 0; f < SK_FIELD_LIMIT; f++) {
        grid->fields[f] = NULL;
        if (!step->grid.fields[f])
            continue;
        SK_TRY(sk_cuda_take(cuda, &grid->fields[f], cells * sizeof(float), 1, error));
        /* Slot 0 stands for absent blocks. */
        SK_CUDA_TRY(cudaMemcpyAsync(grid->fields[f], step->grid.fields[f],
                                    (size_t)step->grid.block_cells * sizeof(float), cudaMemcpyHostToDevice,
                                    cuda->stream),
                    "a copy", error);
    }
    SK_TRY(sk_cuda_take(cuda, &cuda->sent->step.solids.block_slot, capacity * sizeof(int32_t), 1, error));
    SK_TRY(sk_cuda_take(cuda, &cuda->shadow.kinds, cells, 1, error));
    if (step->dimension == 3 && step->scene->discretization != SELKIE_DISCRETIZATION_SPH)
        SK_TRY(sk_cuda_take(cuda, &cuda->shadow.tiles, capacity * SK_CUDA_TILE * sizeof(float), 0, error));
    SK_TRY(sk_cuda_take(cuda, &cuda->shadow.reach, (capacity + 1) * sizeof(uint32_t), 1, error));
    SK_TRY(sk_cuda_take(cuda, &cuda->shadow.cell_counts, cells * sizeof(uint32_t), 1, error));
    SK_TRY(sk_cuda_take(cuda, &cuda->shadow.wins, (capacity + 1) * sizeof(uint32_t), 1, error));
    SK_TRY(sk_cuda_take(cuda, &cuda->shadow.slots_won, (capacity + 1) * sizeof(int32_t), 1, error));
    return sk_cuda_take(cuda, &cuda->shadow.block_first, (capacity + 1) * sizeof(uint32_t), 1, error);
}

/* A level of the solver: its places and arrays. */
static selkie_code take_level(sk_cuda *cuda, const sk_step *step, int depth, selkie_error *error)
{
    sk_cuda_level *level = &cuda->solver_shadow.level[depth];
    const size_t most = (size_t)cuda->shadow.capacity, places = (size_t)level->places + 1;
    const size_t capacity = depth && places < most ? places : most; /* a coarse level has no more blocks than level 0 */
    const size_t cells = (size_t)step->grid.block_cells * capacity * sizeof(float);
    level->capacity = (int)capacity;
    SK_TRY(sk_cuda_take(cuda, &level->place, capacity * sizeof(int32_t), 1, error));
    SK_TRY(sk_cuda_take(cuda, &level->list, capacity * sizeof(int32_t), 1, error));
    SK_TRY(sk_cuda_take(cuda, &level->neighbour, capacity * sizeof *level->neighbour, 1, error));
    SK_TRY(sk_cuda_take(cuda, &level->parent, capacity * sizeof(int32_t), 1, error));
    if (depth)
        SK_TRY(sk_cuda_take(cuda, &level->map, (size_t)level->places * sizeof(int32_t), 1, error));
    for (int d = 0; d < step->dimension; d++)
        SK_TRY(sk_cuda_take(cuda, &level->face[d], cells, 1, error));
    SK_TRY(sk_cuda_take(cuda, &level->excess, cells, 1, error));
    SK_TRY(sk_cuda_take(cuda, &level->inverse, cells, 1, error));
    /* Faces of other scenes are hardly ever open as a whole, in the units of their coefficients. */
    if (depth == 0 && !step->relative_density && step->scene->incompressibility == SELKIE_INCOMPRESSIBILITY_BILATERAL) {
        SK_TRY(sk_cuda_take(cuda, &level->open, cells / sizeof(float), 1, error));
        SK_TRY(sk_cuda_take(cuda, &level->form, capacity, 1, error));
    }
    SK_TRY(sk_cuda_take(cuda, &level->x, cells, 1, error));
    return sk_cuda_take(cuda, &level->b, cells, 1, error);
}

static selkie_code take_solver(sk_cuda *cuda, const sk_step *step, selkie_error *error)
{
    sk_cuda_solver *solver = &cuda->solver_shadow;
    const sk_grid *grid = &step->grid;
    int cells[3], depth = 0;
    for (int d = 0; d < 3; d++) {
        solver->level[0].blocks[d] = grid->blocks[d];
        solver->level[0].joined[d] = sk_grid_joined(grid, d);
        cells[d] = d < step->dimension ? grid->cells[d] + 2 * SK_GRID_PADDING : 1;
    }
    for (;; depth++) {
        sk_cuda_level *level = &solver->level[depth];
        level->places = level->blocks[0] * level->blocks[1] * level->blocks[2];
        SK_TRY(take_level(cuda, step, depth, error));
        /* The coarsest level has so few cells that its matrix can be inverted. */
        if (cells[0] * cells[1] * cells[2] <= SK_CUDA_BOTTOM || depth == SK_CUDA_LEVELS - 1)
            break;
        for (int d = 0; d < 3; d++) {
            level[1].blocks[d] = d < step->dimension ? (level->blocks[d] + 1) / 2 : 1;
            /* As in linalg/multigrid_setup_dim.c: while blocks pair up, and blocks that touch differ in colour. */
            const int half = level->joined[d] % 2 ? 0 : level->joined[d] / 2;
            level[1].joined[d] = half == 1 || half % 2 == 0 ? half : 0;
            cells[d] = d < step->dimension ? (cells[d] + 1) / 2 : 1;
        }
    }
    solver->level_count = depth + 1;
    const size_t capacity = (size_t)cuda->shadow.capacity, bytes = capacity * (size_t)grid->block_cells * sizeof(float);
    SK_TRY(sk_cuda_take(cuda, &solver->high, bytes, 1, error));
    SK_TRY(sk_cuda_take(cuda, &solver->low, bytes, 1, error));
    SK_TRY(sk_cuda_take(cuda, &solver->p, bytes, 1, error));
    SK_TRY(sk_cuda_take(cuda, &solver->product, bytes, 1, error));
    SK_TRY(sk_cuda_take(cuda, &solver->image, bytes, 1, error));
    for (int n = 0; n < 3; n++)
        SK_TRY(sk_cuda_take(cuda, &solver->partial[n], capacity * sizeof(double), 1, error));
    SK_TRY(sk_cuda_take(cuda, &solver->active, capacity * sizeof(int32_t), 1, error));

    /* The extrapolation follows the solves and uses their vectors. */
    float *const spare[SK_CUDA_SCRATCH] = {solver->high,
                                           solver->low,
                                           solver->p,
                                           solver->product,
                                           solver->image,
                                           solver->level[0].b,
                                           solver->level[0].excess,
                                           solver->level[0].inverse,
                                           solver->level[0].face[0]};
    memcpy(cuda->shadow.scratch, spare, sizeof spare);
    return SELKIE_OK;
}

static selkie_code take_particles(sk_cuda *cuda, const sk_step *step, selkie_error *error)
{
    const size_t capacity = (size_t)step->particles.count + 32;
    cuda->particle_capacity = capacity;
    for (int copy = 0; copy < 2; copy++) {
        SK_TRY(sk_cuda_take(cuda, &cuda->records[copy], capacity * sizeof(sk_particle), 0, error));
        for (int a = 0; a < step->particles.attribute_count; a++)
            SK_TRY(sk_cuda_take(cuda, &cuda->attributes[a][copy],
                                capacity * (size_t)step->particles.attributes[a].components * sizeof(uint32_t), 0,
                                error));
    }
    SK_TRY(sk_cuda_take(cuda, &cuda->shadow.keys, capacity * sizeof(uint32_t), 0, error));
    SK_TRY(sk_cuda_take(cuda, &cuda->shadow.ranks, capacity * sizeof(uint32_t), 0, error));
    return sk_cuda_take(cuda, &cuda->shadow.order, capacity * sizeof(uint32_t), 0, error);
}

/* A larger array of `count` values of a size, with the first `kept` of them. */
typedef struct larger_array {
    size_t before, kept, count, size;
} larger_array;

static selkie_code retake(sk_cuda *cuda, void *address, larger_array of, selkie_error *error)
{
    void **at = (void **)address, *old = *at;
    SK_TRY(sk_cuda_take(cuda, at, of.count * of.size, 0, error));
    if (of.kept)
        SK_CUDA_TRY(cudaMemcpyAsync(*at, old, of.kept * of.size, cudaMemcpyDeviceToDevice, cuda->stream),
                    "the particles", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "the particles", error);
    sk_cuda_give(cuda, old, of.before * of.size);
    return SELKIE_OK;
}

selkie_code sk_cuda_reserve_particles(sk_step *step, size_t count, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const size_t before = cuda->particle_capacity, capacity = count + count / 4 + 1024;
    if (count + 16 <= before)
        return SELKIE_OK;
    for (int copy = 0; copy < 2; copy++) {
        const size_t kept = copy == cuda->current ? (size_t)cuda->device_count : 0;
        const larger_array records = {before, kept, capacity, sizeof(sk_particle)};
        SK_TRY(retake(cuda, &cuda->records[copy], records, error));
        for (int a = 0; a < step->particles.attribute_count; a++) {
            const size_t size = (size_t)step->particles.attributes[a].components * sizeof(uint32_t);
            const larger_array values = {before, kept, capacity, size};
            SK_TRY(retake(cuda, &cuda->attributes[a][copy], values, error));
        }
    }
    uint32_t **const lists[3] = {&cuda->shadow.keys, &cuda->shadow.ranks, &cuda->shadow.order};
    uint32_t **const there[3] = {&cuda->data->keys, &cuda->data->ranks, &cuda->data->order};
    for (int n = 0; n < 3; n++) {
        const larger_array list = {before, 0, capacity, sizeof(uint32_t)};
        SK_TRY(retake(cuda, lists[n], list, error));
        SK_CUDA_TRY(cudaMemcpyAsync(there[n], lists[n], sizeof *lists[n], cudaMemcpyHostToDevice, cuda->stream),
                    "the particles", error);
    }
    cuda->particle_capacity = capacity;
    if (has_points(step))
        return step->dimension == 2 ? sk_cuda_grow_mpm_2d(step, before, error)
                                    : sk_cuda_grow_mpm_3d(step, before, error);
    if (step->scene->discretization == SELKIE_DISCRETIZATION_SPH)
        return step->dimension == 2 ? sk_cuda_grow_sph_2d(step, before, error)
                                    : sk_cuda_grow_sph_3d(step, before, error);
    return SELKIE_OK;
}

/* Blocks that hold particles or lie beside one that does, counted on the host; at most all. */
static size_t blocks_needed(const sk_step *step, int places)
{
    const sk_grid *grid = &step->grid;
    uint8_t *near = (uint8_t *)calloc((size_t)places, 1);
    size_t count = 0;
    if (!near)
        return (size_t)places;
    for (int64_t p = 0; p < step->particles.count; p++) {
        int at[3] = {0, 0, 0}, inside = 1;
        for (int d = 0; d < step->dimension; d++) {
            const double cell = ((double)step->particles.records[p].position[d] - grid->corner[d]) / grid->cell_size;
            inside &= cell >= 0.0 && cell < (double)(grid->blocks[d] << grid->block_log);
            at[d] = inside ? (int)cell >> grid->block_log : 0;
        }
        const int own = at[0] + grid->blocks[0] * (at[1] + grid->blocks[1] * at[2]);
        if (!inside || near[own] & 2)
            continue;
        near[own] |= 2;
        for (int n = 0; n < 27; n++) {
            const int x = at[0] + n % 3 - 1, y = at[1] + n / 3 % 3 - 1, z = at[2] + n / 9 - 1;
            if (x >= 0 && y >= 0 && z >= 0 && x < grid->blocks[0] && y < grid->blocks[1] && z < grid->blocks[2])
                near[x + grid->blocks[0] * (y + grid->blocks[1] * z)] |= 1;
        }
    }
    for (int i = 0; i < places; i++)
        count += near[i] != 0;
    free(near);
    return count;
}

/* Memory for the particles that the host has, and for as many blocks. */
static selkie_code allocate(sk_step *step, size_t blocks, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const sk_grid *grid = &step->grid;
    const int64_t places = (int64_t)grid->blocks[0] * grid->blocks[1] * grid->blocks[2];
    if (places * grid->block_cells >= (int64_t)UINT32_MAX)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "backend: \"cuda\" cannot number the %lld blocks of this domain; use a smaller one or \"tuned\"",
                       (long long)places);
    cuda->shadow.places = (int)places;
    cuda->expected_blocks = (int)blocks;
    if (!blocks) {
        blocks = blocks_needed(step, (int)places);
        cuda->expected_blocks = (int)blocks;
        blocks += blocks / 2 + 64;

        /* A small domain gets all its blocks at once: growing takes longer than many steps. */
        size_t free_bytes = 0, all = 0;
        const size_t arrays = 40; /* of floats in a block */
        SK_CUDA_TRY(cudaMemGetInfo(&free_bytes, &all), "the fields of the grid", error);
        if ((size_t)places * (size_t)grid->block_cells * sizeof(float) * arrays < free_bytes / 64)
            blocks = (size_t)places + 1;
    }
    if (blocks > (size_t)places + 1)
        blocks = (size_t)places + 1;
    if (cuda->expected_blocks < 64)
        cuda->expected_blocks = 64; /* a source may fill an empty domain */
    SK_TRY(sk_cuda_take(cuda, &cuda->device, sizeof *cuda->device, 1, error));
    SK_TRY(sk_cuda_take(cuda, &cuda->data, sizeof *cuda->data, 1, error));
    SK_TRY(sk_cuda_take(cuda, &cuda->solver, sizeof *cuda->solver, 1, error));
    const size_t room = ((size_t)places + 7) / 8 * 8; /* number_places has eight at a time */
    SK_TRY(sk_cuda_take(cuda, &cuda->shadow.slot_of_place, room * sizeof(int32_t), 1, error));
    SK_TRY(sk_cuda_take(cuda, &cuda->shadow.marked, room, 1, error));
    SK_TRY(sk_cuda_take(cuda, &cuda->shadow.first_reach, room * sizeof(uint32_t), 1, error));
    SK_TRY(sk_cuda_take(cuda, &cuda->shadow.partial, 8 * 4096 * sizeof(double), 1, error));
    SK_TRY(sk_cuda_take_solids(step, error));
    SK_TRY(take_blocks(cuda, step, blocks, error));
    if (step->scene->discretization != SELKIE_DISCRETIZATION_SPH)
        SK_TRY(take_solver(cuda, step, error));
    SK_TRY(take_particles(cuda, step, error));
    if (step->scene->discretization == SELKIE_DISCRETIZATION_SPH)
        SK_TRY(step->dimension == 2 ? sk_cuda_take_sph_2d(step, error) : sk_cuda_take_sph_3d(step, error));
    if (step->scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL)
        SK_TRY(step->dimension == 2 ? sk_cuda_take_bounded_2d(step, error) : sk_cuda_take_bounded_3d(step, error));
    if (has_points(step))
        SK_TRY(step->dimension == 2 ? sk_cuda_take_mpm_2d(step, error) : sk_cuda_take_mpm_3d(step, error));
    if (sk_method_viscosity.takes_part(step->scene))
        SK_TRY(step->dimension == 2 ? sk_cuda_take_viscosity_2d(step, error) : sk_cuda_take_viscosity_3d(step, error));
    if (sk_method_heat.takes_part(step->scene))
        SK_TRY(step->dimension == 2 ? sk_cuda_take_heat_2d(step, error) : sk_cuda_take_heat_3d(step, error));
    SK_CUDA_TRY(cudaMemcpyAsync(cuda->data, &cuda->shadow, sizeof cuda->shadow, cudaMemcpyHostToDevice, cuda->stream),
                "a copy", error);
    SK_CUDA_TRY(cudaMemcpyAsync(cuda->solver, &cuda->solver_shadow, sizeof cuda->solver_shadow, cudaMemcpyHostToDevice,
                                cuda->stream),
                "a copy", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "a copy", error);
    cuda->host_changed = 1;
    cuda->has_keys = 0;
    cuda->results->block_count = cuda->results->particle_blocks = 0;
    return SELKIE_OK;
}

static void forget_graphs(sk_cuda *cuda)
{
#ifndef SK_CUDA_EMULATED
    for (int n = 0; n < cuda->graph_count; n++)
        cudaGraphExecDestroy(cuda->graphs[n].graph);
#endif
    cuda->graph_count = 0;
}

static void release(sk_cuda *cuda)
{
    cudaStreamSynchronize(cuda->copy_stream); /* of a frame */
    cuda->stage = NULL;
    cuda->stage_bytes = 0;
    for (int n = 0; n < cuda->allocation_count; n++)
        cudaFree(cuda->allocations[n]);
    cuda->allocation_count = 0;
    cuda->bytes = 0;
    free(cuda->stress_shadow);
    cuda->stress_shadow = cuda->stress = NULL;
    cuda->heat = NULL;
    memset(&cuda->shadow, 0, sizeof cuda->shadow);
    memset(&cuda->solver_shadow, 0, sizeof cuda->solver_shadow);
    forget_graphs(cuda);
    sk_cuda_release_solids(cuda);
}

selkie_code sk_cuda_create(sk_step *step, selkie_error *error)
{
    sk_cuda_info info;
    SK_TRY(sk_cuda_find(&info, error));
    sk_cuda *cuda = (sk_cuda *)calloc(1, sizeof *cuda);
    if (!cuda)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "GPU: no memory");
    step->cuda = cuda;
#ifndef SK_CUDA_EMULATED
    SK_CUDA_TRY(cudaSetDevice(0), "the choice of the device", error);
    SK_CUDA_TRY(cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking), "a stream", error);
    SK_CUDA_TRY(cudaStreamCreateWithFlags(&cuda->body_stream, cudaStreamNonBlocking), "a stream", error);
    SK_CUDA_TRY(cudaStreamCreateWithFlags(&cuda->copy_stream, cudaStreamNonBlocking), "a stream", error);
    SK_CUDA_TRY(cudaEventCreateWithFlags(&cuda->results_here, cudaEventDisableTiming), "an event", error);
    SK_CUDA_TRY(cudaEventCreateWithFlags(&cuda->staged, cudaEventDisableTiming), "an event", error);
    SK_CUDA_TRY(cudaEventCreateWithFlags(&cuda->stage_free, cudaEventDisableTiming), "an event", error);
#endif
    SK_CUDA_TRY(cudaMallocHost((void **)&cuda->sent, sizeof *cuda->sent), "the step", error);
    SK_CUDA_TRY(cudaMallocHost((void **)&cuda->results, sizeof *cuda->results), "the results", error);
    memset(cuda->sent, 0, sizeof *cuda->sent);
    memset(cuda->results, 0, sizeof *cuda->results);
    cuda->host_changed = 1;
    return SELKIE_OK;
}

void sk_cuda_destroy(sk_step *step)
{
    sk_cuda *cuda = step->cuda;
    if (!cuda)
        return;
    cudaStreamSynchronize(cuda->stream);
    release(cuda);
    sk_cuda_release_roles(cuda);
    sk_cuda_release_frames(cuda);
    sk_cuda_release_sums(cuda);
    sk_cuda_release_bodies(cuda);
    sk_cuda_release_soft(cuda);
    sk_cuda_release_splashes(cuda);
    sk_cuda_release_frozen(cuda);
    sk_cuda_end_profile(cuda);
    if (cuda->sent)
        cudaFreeHost(cuda->sent);
    if (cuda->results)
        cudaFreeHost(cuda->results);
#ifndef SK_CUDA_EMULATED
    cudaStreamDestroy(cuda->stream);
    cudaStreamDestroy(cuda->body_stream);
    cudaStreamDestroy(cuda->copy_stream);
    const cudaEvent_t events[3] = {cuda->results_here, cuda->staged, cuda->stage_free};
    for (int n = 0; n < 3; n++)
        if (events[n])
            cudaEventDestroy(events[n]);
#endif
    free(cuda->allocations);
    free(cuda);
    step->cuda = NULL;
}

/* --- the step to the device --- */

void sk_cuda_particles_changed(sk_step *step)
{
    if (step->cuda) {
        step->cuda->host_changed = 1;
        sk_cuda_soft_changed(step->cuda);
    }
    if (step->sph)
        step->sph->pressure_sum = -1.0;
}

static selkie_code send_particles(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const sk_particles *particles = &step->particles;
    const size_t count = (size_t)particles->count;
    SK_CUDA_TRY(cudaMemcpyAsync(cuda->records[cuda->current], particles->records, count * sizeof(sk_particle),
                                cudaMemcpyHostToDevice, cuda->stream),
                "a copy of the particles", error);
    for (int a = 0; a < particles->attribute_count; a++)
        SK_CUDA_TRY(cudaMemcpyAsync(cuda->attributes[a][cuda->current], particles->attributes[a].data,
                                    count * (size_t)particles->attributes[a].components * sizeof(uint32_t),
                                    cudaMemcpyHostToDevice, cuda->stream),
                    "a copy of the particles", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "a copy of the particles", error);
    cuda->device_count = particles->count;
    cuda->host_changed = cuda->has_keys = 0;
    return SELKIE_OK;
}

/* The step with addresses of the device. */
static void fill_step(sk_step *step)
{
    sk_cuda *cuda = step->cuda;
    sk_cuda_sent *sent = cuda->sent;
    const sk_grid grid = sent->step.grid; /* addresses */
    const sk_solids solids = sent->step.solids;
    const int other = cuda->current ^ 1;
    sent->step = *step;
    sent->scene = *step->scene;
    sent->step.scene = &cuda->device->scene;
    if (step->relative_density) {
        memcpy(sent->constants.relative_density, step->relative_density, sizeof sent->constants.relative_density);
        sent->step.relative_density = cuda->device->constants.relative_density;
    }
    for (int m = 0; step->liquid_mask && m < SK_TRANSFER_MATERIALS; m++) {
        sent->constants.liquid_mask[m] = step->liquid_mask[m];
        sent->constants.solid_mask[m] = !step->liquid_mask[m];
    }
    sent->step.liquid_mask = step->liquid_mask ? cuda->device->constants.liquid_mask : NULL;
    sk_cuda_point_soft(cuda);

    /* The grid: constants of the host, arrays of the device. */
    sk_grid *to = &sent->step.grid;
    to->coordinates = grid.coordinates, to->neighbours = grid.neighbours, to->faces = grid.faces;
    to->kinds = grid.kinds, to->block_flags = grid.block_flags, to->cell_start = grid.cell_start;
    memcpy(to->fields, grid.fields, sizeof grid.fields);
    memcpy(to->runs, grid.runs, sizeof grid.runs);
    to->block_count = cuda->results->block_count > 1 ? cuda->results->block_count : 1; /* of the last sort */
    to->particle_blocks = cuda->results->particle_blocks;

    sk_cuda_point_solids(step, &solids);
    if (cuda->drag)
        sent->step.solids.piece_first = cuda->drag->piece_first;

    sk_particles *particles = &sent->step.particles;
    particles->count = cuda->device_count;
    particles->records = cuda->records[cuda->current];
    particles->spare = cuda->records[other];
    for (int a = 0; a < particles->attribute_count; a++) {
        particles->attributes[a].data = cuda->attributes[a][cuda->current];
        particles->attributes[a].spare = cuda->attributes[a][other];
    }
    if (step->dimension == 2)
        sk_cuda_fill_constants_2d(step, sent);
    else
        sk_cuda_fill_constants_3d(step, sent);
    if (cuda->stress && step->dimension == 2)
        sk_cuda_fill_viscosity_2d(step, &sent->constants);
    else if (cuda->stress)
        sk_cuda_fill_viscosity_3d(step, &sent->constants);
    if (cuda->heat && step->dimension == 2)
        sk_cuda_fill_heat_2d(step, &sent->constants);
    else if (cuda->heat)
        sk_cuda_fill_heat_3d(step, &sent->constants);
    if (has_points(step) && step->dimension == 2)
        sk_cuda_fill_mpm_2d(step, &sent->constants);
    else if (has_points(step))
        sk_cuda_fill_mpm_3d(step, &sent->constants);
    if (step->scene->discretization == SELKIE_DISCRETIZATION_SPH && step->dimension == 2)
        sk_cuda_fill_sph_2d(step, sent);
    else if (step->scene->discretization == SELKIE_DISCRETIZATION_SPH)
        sk_cuda_fill_sph_3d(step, sent);
}

selkie_code sk_cuda_make_room(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const size_t wanted = (size_t)cuda->results->block_count;
    const int crowded = cuda->allocation_count && wanted > (size_t)cuda->shadow.capacity / 5 * 4 &&
                        cuda->shadow.capacity <= cuda->shadow.places;
    const int grown =
        cuda->allocation_count && cuda->host_changed && (size_t)step->particles.count + 16 > cuda->particle_capacity;
    if (cuda->allocation_count && !crowded && !grown) {
        /* Launches are as wide as the blocks were when they were recorded. */
        if (2 * wanted > 3 * (size_t)cuda->expected_blocks) {
            cuda->expected_blocks = (int)(wanted + wanted / 4);
            forget_graphs(cuda);
        }
        return SELKIE_OK;
    }
    if (crowded && !cuda->host_changed)
        SK_TRY(sk_cuda_fetch_particles(step, error));
    release(cuda);
    return allocate(step, crowded ? wanted + wanted / 2 + 64 : (size_t)cuda->first_blocks, error);
}

selkie_code sk_cuda_begin(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    if (cuda->began)
        return SELKIE_OK;
    if (!cuda->allocation_count)
        SK_TRY(allocate(step, (size_t)cuda->first_blocks, error));
    if (cuda->host_changed)
        SK_TRY(send_particles(step, error));
    SK_TRY(sk_cuda_move_solids(step, error));
    SK_TRY(sk_cuda_take_soft(step, error));
    fill_step(step);
    SK_CUDA_TRY(cudaMemcpyAsync(cuda->device, cuda->sent, sizeof *cuda->sent, cudaMemcpyHostToDevice, cuda->stream),
                "a copy of the step", error);
    cuda->began = 1;
    return SELKIE_OK;
}

selkie_code sk_cuda_grow(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const size_t wanted = (size_t)cuda->results->overflow;
    cuda->began = cuda->particles_here = 0;
    SK_TRY(sk_cuda_fetch_particles(step, error));
    SK_CUDA_TRY(cudaMemcpyAsync(&cuda->results->drained, &cuda->data->results.drained, sizeof cuda->results->drained,
                                cudaMemcpyDeviceToHost, cuda->stream),
                "a step", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "a step", error);
    release(cuda);
    SK_TRY(allocate(step, wanted + wanted / 2 + 64, error));
    SK_CUDA_TRY(cudaMemcpyAsync(&cuda->data->results.drained, &cuda->results->drained, sizeof cuda->results->drained,
                                cudaMemcpyHostToDevice, cuda->stream),
                "a step", error);
    cuda->results->overflow = 0;
    return sk_cuda_begin(step, error);
}

selkie_code sk_cuda_reserve_blocks(sk_step *step, int blocks, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    if (!cuda)
        return SELKIE_OK;
    SK_TRY(sk_cuda_fetch_particles(step, error));
    release(cuda);
    cuda->first_blocks = blocks;
    return SELKIE_OK;
}
