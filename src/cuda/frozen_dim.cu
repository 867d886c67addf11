/* The phases of frozen bodies: see frozen_parts.h. Launches are not recorded as graphs: the host waits between them. */
#include "cuda/frozen_parts.h"
#include "cuda/grid_parts.h"
#include "methods/heat/frozen_plain.h"

static sk_frozen *frozen_of(const sk_step *step)
{
    return (sk_frozen *)sk_step_state(step, &sk_method_frozen);
}

static selkie_code fetch(sk_cuda *cuda, void *to, const void *from, size_t bytes, selkie_error *error)
{
    SK_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, cuda->stream), "a copy of the frozen bodies",
                error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "a copy of the frozen bodies", error);
    return SELKIE_OK;
}

static selkie_code send(sk_cuda *cuda, void *to, const void *from, size_t bytes, selkie_error *error)
{
    SK_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, cuda->stream), "a copy of the frozen bodies",
                error);
    return SELKIE_OK;
}

/* --- corrections of positions --- */

/* Frozen particles go back to where their body has them: sk_frozen_hold. */
static __global__ void hold_particles(const sk_step *step, int liquid_fraction, int frozen_at, int *moved)
{
    SK_CUDA_WAIT();
    const float *liquid = (const float *)(const void *)step->particles.attributes[liquid_fraction].data;
    const uint32_t *places = step->particles.attributes[frozen_at].data;
    SK_CUDA_EACH(p, step->particles.count)
    {
        float *position = step->particles.records[p].position, place[3];
        if (!frozen_has_place(places + 3 * p) || !sk_frozen_is_solid(liquid, (int64_t)p))
            continue;
        memcpy(place, places + 3 * p, sizeof place);
        if (frozen_changes_cell(&step->grid, position, place))
            *moved = 1;
        for (int d = 0; d < 3; d++)
            position[d] = place[d];
    }
}

selkie_code SK_DIM(sk_cuda_frozen_hold)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    SK_TRY(sk_cuda_begin(step, error));
    SK_TRY(sk_cuda_take_frozen(step, error));
    sk_cuda_frozen *own = cuda->frozen;
    SK_TRY(sk_cuda_stage(&own->marks, sizeof(int), error));
    int *moved = (int *)(void *)own->marks.there, *result = (int *)(void *)own->marks.here;
    SK_CUDA_TRY(cudaMemsetAsync(moved, 0, sizeof *moved, cuda->stream), "the frozen bodies", error);
    SK_LAUNCH_SIMPLE(cuda, hold_particles, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, own->liquid_fraction,
                     own->frozen_at, moved);
    SK_TRY(fetch(cuda, result, moved, sizeof *moved, error));
    cuda->particles_here = 0;
    if (!*result)
        return SELKIE_OK;
    cuda->has_keys = 0;
    sk_particles_moved(&step->particles);
    return SK_DIM(sk_cuda_sort)(step, error);
}

/* --- blocks near solid particles --- */

static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    mark_solid(const sk_step *step, int liquid_fraction, sk_cuda_frozen_mark *marks)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const float *liquid = (const float *)(const void *)step->particles.attributes[liquid_fraction].data;
    for (int block = (int)blockIdx.x; block < grid->block_count; block += (int)gridDim.x) {
        const int filled = block > 0 && block <= grid->particle_blocks, *at = grid->coordinates[block];
        const uint32_t *start = grid->cell_start + (size_t)(filled ? block - 1 : 0) * SK_BLOCK_CELLS;
        sk_cuda_frozen_mark mark;
        int any = 0;
        mark.place = at[0] + grid->blocks[0] * (at[1] + grid->blocks[1] * at[2]);
        mark.first = filled ? start[0] : 0;
        mark.last = filled ? start[SK_BLOCK_CELLS] : 0;
        for (uint32_t p = mark.first + threadIdx.x; p < mark.last; p += blockDim.x)
            any |= sk_frozen_is_solid(liquid, (int64_t)p);
        mark.is_solid = __syncthreads_or(any) != 0;
        if (threadIdx.x == 0)
            marks[block] = mark;
    }
}

/* Lists the places near solid particles in the order of the device's blocks, then those near moving solids. Returns
 * their number; `near_count` is that of the first. */
static int list_places(sk_step *step, const sk_cuda_frozen_mark *marks, int blocks)
{
    const sk_cuda *cuda = step->cuda;
    const sk_grid *grid = &step->grid;
    sk_cuda_frozen *own = cuda->frozen;
    int count = 0;
    for (int b = 1; b < blocks; b++)
        for (int n = 0; marks[b].is_solid && n < SK_NEIGHBOURS; n++) {
            const int place = marks[b].place, row = place / grid->blocks[0];
            const int x = place % grid->blocks[0] + n % 3 - 1, y = row % grid->blocks[1] + n / 3 % 3 - 1,
                      z = SELKIE_DIM == 3 ? row / grid->blocks[1] + n / 9 - 1 : 0;
            if (x >= 0 && y >= 0 && z >= 0 && x < grid->blocks[0] && y < grid->blocks[1] && z < grid->blocks[2])
                own->near[x + grid->blocks[0] * (y + grid->blocks[1] * z)] = 1;
        }
    for (int b = 1; b < blocks; b++)
        if (own->near[marks[b].place])
            own->places[count++] = marks[b].place;
    own->near_count = count;
    for (int i = 0; count && i < cuda->solids.list_count; i++) {
        const int place = cuda->solids.list[i];
        own->places[count] = place;
        count += own->near[place] == 0;
    }
    return count;
}

/* The slots around each block, and its particles; these places have no mark then. Returns the number of particles. */
static size_t link_blocks(sk_step *step, const sk_cuda_frozen_mark *marks, int blocks, sk_cuda_frozen_block *list)
{
    sk_cuda *cuda = step->cuda;
    sk_cuda_frozen *own = cuda->frozen;
    sk_grid *grid = &own->grid;
    int32_t *number = cuda->solids.near_number;
    for (int b = 1; b < grid->block_count; b++)
        number[own->places[b - 1]] = b;
    for (int b = 1; b < grid->block_count; b++)
        for (int n = 0; n < SK_NEIGHBOURS; n++) {
            const int32_t *at = grid->coordinates[b];
            const int x = at[0] + n % 3 - 1, y = at[1] + n / 3 % 3 - 1, z = SELKIE_DIM == 3 ? at[2] + n / 9 - 1 : 0;
            const int inside =
                x >= 0 && y >= 0 && z >= 0 && x < grid->blocks[0] && y < grid->blocks[1] && z < grid->blocks[2];
            grid->neighbours[b][n] = inside ? number[x + grid->blocks[0] * (y + grid->blocks[1] * z)] : 0;
        }

    /* Blocks with particles come first, there and here. */
    uint32_t count = 0;
    grid->particle_blocks = 0;
    for (int b = 1; b < blocks; b++) {
        const int near = own->near[marks[b].place] ? number[marks[b].place] : 0;
        if (!near)
            continue;
        list[near].slot = b;
        list[near].first = count;
        count += marks[b].last - marks[b].first;
        grid->particle_blocks = b <= cuda->results->particle_blocks ? near : grid->particle_blocks;
    }
    for (int b = 1; b < grid->block_count; b++)
        number[own->places[b - 1]] = 0;
    memset(own->near, 0, (size_t)cuda->shadow.places);
    return count;
}

/* --- particles of these blocks --- */

/* Arrays of the particles there. */
typedef struct packed_arrays {
    const sk_particle *records;
    const uint32_t *liquid_fraction, *material;
} packed_arrays;

/* Copies particles, cells and kinds of cells of the blocks. A thread block a block. */
static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    pack_blocks(const sk_step *step, const __grid_constant__ packed_arrays from,
                const __grid_constant__ sk_cuda_frozen_places at, char *to, int count)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const sk_cuda_frozen_block *blocks = (const sk_cuda_frozen_block *)(const void *)(to + at.blocks);
    uint32_t *starts = (uint32_t *)(void *)(to + at.starts), *liquid = (uint32_t *)(void *)(to + at.liquid_fraction),
             *material = (uint32_t *)(void *)(to + at.material);
    for (int n = 1 + (int)blockIdx.x; n <= count; n += (int)gridDim.x) {
        const sk_plain_cell cell = {blocks[n].slot, (int)threadIdx.x};
        to[at.kinds + (size_t)n * SK_BLOCK_CELLS + threadIdx.x] = (char)grid->kinds[sk_plain_index(cell)];
        if (cell.slot > grid->particle_blocks)
            continue;
        const uint32_t *start = grid->cell_start + (size_t)(cell.slot - 1) * SK_BLOCK_CELLS;
        const uint32_t first = start[0], last = start[SK_BLOCK_CELLS], here = blocks[n].first;
        starts[(size_t)(n - 1) * SK_BLOCK_CELLS + threadIdx.x] = start[threadIdx.x] - first + here;
        for (uint32_t p = first + threadIdx.x; p < last; p += blockDim.x) {
            const size_t own = here + (p - first);
            store_particle((sk_particle *)(void *)(to + at.records) + own, load_particle(from.records + p));
            liquid[own] = from.liquid_fraction[p];
            if (from.material)
                material[own] = from.material[p];
        }
    }
}

static size_t add_part(size_t *total, size_t bytes)
{
    const size_t at = *total;
    *total += (bytes + 15) / 16 * 16;
    return at;
}

/* Places of the arrays for some particles and blocks. Returns the bytes of all. */
static size_t place_arrays(sk_cuda_frozen *own, size_t particles, int blocks)
{
    sk_cuda_frozen_places *at = &own->at;
    const size_t cells = (size_t)blocks * SK_BLOCK_CELLS, words = (particles + 1) * sizeof(uint32_t);
    size_t total = 0;
    at->records = add_part(&total, (particles + 1) * sizeof(sk_particle));
    at->liquid_fraction = add_part(&total, words);
    at->material = add_part(&total, own->material >= 0 ? words : 0);
    at->starts = add_part(&total, cells * sizeof(uint32_t));
    at->kinds = add_part(&total, cells);
    at->down = total;
    at->affine = add_part(&total, own->affine >= 0 ? 9 * words : 0);
    at->frozen_at = add_part(&total, 3 * words);
    at->blocks = add_part(&total, (size_t)blocks * sizeof(sk_cuda_frozen_block));
    return total;
}

static void add_attribute(sk_particles *particles, const char *name, int components, char *data)
{
    sk_attribute *attribute = &particles->attributes[particles->attribute_count++];
    memset(attribute, 0, sizeof *attribute);
    snprintf(attribute->name, sizeof attribute->name, "%s", name);
    attribute->components = components;
    attribute->data = (uint32_t *)(void *)data;
}

/* The store of the particles, whose arrays lie in staged memory. */
static void open_store(sk_cuda_frozen *own, size_t count)
{
    sk_particles *particles = &own->particles;
    char *here = own->packed.here;
    memset(particles, 0, sizeof *particles);
    particles->count = (int64_t)count;
    particles->records = (sk_particle *)(void *)(here + own->at.records);
    add_attribute(particles, "liquid_fraction", 1, here + own->at.liquid_fraction);
    add_attribute(particles, "frozen_at", 3, here + own->at.frozen_at);
    if (own->material >= 0)
        add_attribute(particles, "material", 1, here + own->at.material);
    if (own->affine >= 0)
        add_attribute(particles, "affine", 9, here + own->at.affine);
}

/* The grid of the blocks and its particles, from the device. */
static selkie_code fetch_blocks(sk_step *step, const sk_cuda_frozen_mark *marks, int blocks, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_cuda_frozen *own = cuda->frozen;
    const sk_grid *near = &cuda->solids.near;
    const int count = near->block_count;
    size_t most = 0;
    for (int b = 1; b < blocks; b++)
        most += own->near[marks[b].place] ? marks[b].last - marks[b].first : 0;
    SK_TRY(sk_cuda_reserve_frozen(step, count, most, error));
    SK_TRY(sk_cuda_stage(&own->packed, place_arrays(own, most, own->near_count + 1), error));
    char *here = own->packed.here, *there = own->packed.there;
    sk_cuda_frozen_block *list = (sk_cuda_frozen_block *)(void *)(here + own->at.blocks);
    memset(list, 0, ((size_t)own->near_count + 1) * sizeof *list);

    /* The grid: arrays of its own, and the coordinates of the places. */
    int32_t(*neighbours)[SK_MAX_NEIGHBOURS] = own->grid.neighbours;
    uint8_t *kinds = own->grid.kinds;
    uint32_t *starts = own->grid.cell_start;
    own->grid = *near;
    own->grid.neighbours = neighbours;
    own->grid.kinds = kinds;
    own->grid.cell_start = starts;
    const size_t particles = link_blocks(step, marks, blocks, list);

    SK_TRY(send(cuda, there + own->at.blocks, list, ((size_t)own->near_count + 1) * sizeof *list, error));
    packed_arrays from;
    from.records = cuda->records[cuda->current];
    from.liquid_fraction = cuda->attributes[own->liquid_fraction][cuda->current];
    from.material = own->material >= 0 ? cuda->attributes[own->material][cuda->current] : nullptr;
    SK_LAUNCH_SIMPLE(cuda, pack_blocks, SK_CUDA_WIDE, SK_BLOCK_CELLS, &cuda->device->step, from, own->at, there,
                     own->near_count);
    SK_TRY(fetch(cuda, here, there, own->at.down, error));
    open_store(own, particles);
    const size_t cells = (size_t)own->grid.particle_blocks * SK_BLOCK_CELLS;
    memcpy(starts, here + own->at.starts, cells * sizeof *starts);
    starts[cells] = (uint32_t)particles;
    memset(kinds, 0, (size_t)count * SK_BLOCK_CELLS);
    memcpy(kinds + SK_BLOCK_CELLS, here + own->at.kinds + SK_BLOCK_CELLS, (size_t)own->near_count * SK_BLOCK_CELLS);
    for (int b = 1; b <= own->grid.particle_blocks; b++) {
        const uint32_t first = marks[list[b].slot].first, last = marks[list[b].slot].last;
        for (uint32_t p = first; p < last; p++)
            own->origin[list[b].first + (p - first)] = p;
    }
    return SELKIE_OK;
}

/* --- the host's functions --- */

/* What the step has instead while a function of the CPU works on the blocks near solid particles. */
typedef struct world_store {
    sk_particles particles;
    sk_grid grid;
} world_store;

static world_store use_near(sk_step *step)
{
    const world_store world = {step->particles, step->grid};
    step->particles = step->cuda->frozen->particles;
    step->grid = step->cuda->frozen->grid;
    return world;
}

static void use_world(sk_step *step, const world_store *world)
{
    step->particles = world->particles;
    step->grid = world->grid;
}

/* Blocks look up the solids of their places. */
static __global__ void find_solids(const sk_step *step, const sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    SK_CUDA_EACH(i, grid->block_count - 1)
    {
        const int block = (int)i + 1, *at = grid->coordinates[block];
        step->solids.block_slot[block] = data->solid_slots[at[0] + grid->blocks[0] * (at[1] + grid->blocks[1] * at[2])];
    }
}

/* The numbers of the bodies' particles on the device. */
static selkie_code send_members(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_cuda_frozen *own = cuda->frozen;
    const sk_frozen *frozen = frozen_of(step);
    const size_t count = frozen->first_member[frozen->body_count];
    size_t bytes = 0;
    add_part(&bytes, count * sizeof(uint32_t));
    add_part(&bytes, count * sizeof(sk_particle));
    add_part(&bytes, own->affine >= 0 ? count * 9 * sizeof(float) : 0);
    SK_TRY(sk_cuda_stage(&own->members, bytes, error));
    uint32_t *numbers = (uint32_t *)(void *)own->members.here;
    for (size_t n = 0; n < count; n++)
        numbers[n] = own->origin[frozen->members[n]];
    return send(cuda, own->members.there, numbers, count * sizeof *numbers, error);
}

selkie_code SK_DIM(sk_cuda_frozen_find)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_frozen *frozen = frozen_of(step);
    SK_TRY(sk_cuda_begin(step, error));
    SK_TRY(sk_cuda_take_frozen(step, error));
    SK_TRY(sk_cuda_read_results(step, error)); /* the number of blocks */
    sk_cuda_frozen *own = cuda->frozen;
    const int blocks = cuda->results->block_count;
    frozen->body_count = frozen->coupled = 0;
    own->sorted = cuda->results->count;
    SK_TRY(sk_cuda_stage(&own->marks, ((size_t)blocks + 1) * sizeof(sk_cuda_frozen_mark), error));
    sk_cuda_frozen_mark *marks = (sk_cuda_frozen_mark *)(void *)own->marks.here,
                        *there = (sk_cuda_frozen_mark *)(void *)own->marks.there;
    SK_LAUNCH(cuda, mark_solid, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, &cuda->device->step, own->liquid_fraction, there);
    SK_TRY(fetch(cuda, marks, there, (size_t)blocks * sizeof *marks, error));
    const int count = list_places(step, marks, blocks);
    if (!count)
        return SELKIE_OK;
    SK_TRY(sk_cuda_near_solids(step, own->places, count, error));
    SK_TRY(fetch_blocks(step, marks, blocks, error));

    const world_store world = use_near(step);
    const selkie_code code = SK_DIM(sk_frozen_find)(step, error);
    use_world(step, &world);
    SK_TRY(code);
    SK_TRY(sk_cuda_send_near_solids(step, error));
    SK_LAUNCH_SIMPLE(cuda, find_solids, SK_CUDA_WIDE / 8, SK_CUDA_THREADS, &cuda->device->step, cuda->data);
    return frozen->body_count ? send_members(step, error) : SELKIE_OK;
}

/* --- the pressure solve --- */

selkie_code SK_DIM(sk_cuda_frozen_couple)(sk_step *step, selkie_error *error)
{
    if (!frozen_of(step)->coupled)
        return SELKIE_OK;
    SK_TRY(sk_cuda_begin(step, error));
    SK_TRY(sk_cuda_take_bodies(step, error));
    const world_store world = use_near(step);
    const selkie_code code = SK_DIM(sk_frozen_couple)(step, error);
    use_world(step, &world);
    SK_TRY(code);
    return sk_cuda_send_velocities(step, error);
}

/* Faces that a body covers have its velocity. A thread block a block near solid particles; `owners` has -1 where no
 * body has a share. */
static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    set_faces(const sk_step *step, const sk_frozen_body *bodies, const int16_t *owners,
              const sk_cuda_frozen_block *blocks, int count)
{
    SK_CUDA_WAIT();
    for (int n = 1 + (int)blockIdx.x; n <= count; n += (int)gridDim.x) {
        const sk_plain_cell cell = {blocks[n].slot, (int)threadIdx.x};
        for (int d = 0; d < SELKIE_DIM; d++) {
            const int owner = owners[((size_t)n * SELKIE_DIM + (size_t)d) * SK_BLOCK_CELLS + threadIdx.x];
            frozen_planes planes;
            if (owner < 0 || !frozen_is_covered(step, cell, d))
                continue;
            frozen_find_planes(&step->grid, bodies + owner, cell.slot, d, &planes);
            frozen_set_face(step, &planes, cell, d);
        }
    }
}

static selkie_code send_faces(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_cuda_frozen *own = cuda->frozen;
    const sk_frozen *frozen = frozen_of(step);
    const size_t blocks = (size_t)own->near_count + 1;
    size_t bytes = 0;
    const size_t bodies = add_part(&bytes, (size_t)frozen->body_count * sizeof(sk_frozen_body)),
                 owners = add_part(&bytes, blocks * SELKIE_DIM * SK_BLOCK_CELLS * sizeof(int16_t));
    SK_TRY(sk_cuda_stage(&own->faces, bytes, error));
    char *here = own->faces.here, *there = own->faces.there;
    int16_t *owner = (int16_t *)(void *)(here + owners);
    memcpy(here + bodies, frozen->bodies, (size_t)frozen->body_count * sizeof(sk_frozen_body));
    for (size_t b = 0; b < blocks; b++)
        for (int d = 0; d < SELKIE_DIM; d++)
            for (size_t c = 0; c < SK_BLOCK_CELLS; c++) {
                const size_t at = b * SK_BLOCK_CELLS + c;
                const int has = b && frozen->shared[b] && frozen->share[d][at] > 0.0f;
                owner[(b * SELKIE_DIM + (size_t)d) * SK_BLOCK_CELLS + c] = (int16_t)(has ? frozen->owner[d][at] : -1);
            }
    SK_TRY(send(cuda, there, here, bytes, error));
    SK_LAUNCH_SIMPLE(cuda, set_faces, SK_CUDA_WIDE, SK_BLOCK_CELLS, &cuda->device->step,
                     (const sk_frozen_body *)(const void *)(there + bodies),
                     (const int16_t *)(const void *)(there + owners),
                     (const sk_cuda_frozen_block *)(const void *)(own->packed.there + own->at.blocks), own->near_count);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_cuda_frozen_push)(sk_step *step, selkie_error *error)
{
    static const double none[SK_FROZEN_MOST_BODIES][SK_POISSON_MODES] = {{0.0}};
    const double(*sums)[SK_POISSON_MODES] = none;
    if (!frozen_of(step)->coupled)
        return SELKIE_OK;
    SK_TRY(sk_cuda_begin(step, error));
    if (sk_step_has_pressure(step) && step->modes)
        SK_TRY(SK_DIM(sk_cuda_sum_modes)(step, &sums, error));
    step->modes = NULL;
    const world_store world = use_near(step);
    SK_DIM(sk_frozen_answer)(step, sums);
    use_world(step, &world);
    SK_TRY(sk_cuda_send_velocities(step, error));
    return send_faces(step, error);
}

/* --- the particles --- */

/* Copies the particles of bodies. */
static __global__ void gather_members(const sk_particle *records, const uint32_t *numbers, size_t count,
                                      sk_particle *to)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(n, count)
    store_particle(to + n, load_particle(records + numbers[n]));
}

/* Those that have moved go back, and remember where they are. */
static __global__ void return_members(sk_particle *records, float *affine, uint32_t *places, const uint32_t *numbers,
                                      size_t count, const sk_particle *from, const float *from_affine)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(n, count)
    {
        const sk_particle particle = load_particle(from + n);
        const size_t p = numbers[n];
        if (particle.flags & SK_PARTICLE_DEAD)
            continue;
        store_particle(records + p, particle);
        memcpy(places + 3 * p, particle.position, 3 * sizeof *places);
        for (int k = 0; affine && k < 9; k++)
            affine[9 * p + (size_t)k] = from_affine[9 * n + (size_t)k];
    }
}

/* Speeds of all particles, as after the move; those behind the ones of this step's sort do not limit the next step. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    sum_speeds(const sk_particle *records, size_t count, size_t sorted, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    double sums[1] = {0.0}, fastest = 0.0;
    SK_CUDA_EACH(p, count)
    {
        const sk_particle particle = load_particle(records + p);
        double square = 0.0;
        for (int d = 0; d < SELKIE_DIM && !(particle.flags & SK_PARTICLE_DEAD); d++)
            square += (double)particle.velocity[d] * (double)particle.velocity[d];
        sums[0] += 0.5 * square;
        fastest = p < sorted ? fmax(fastest, square) : fastest;
    }
    if (sum_over_launch(data, sums, &fastest) && threadIdx.x == 0) {
        data->results.kinetic = sums[0];
        data->results.fastest2 = fastest;
    }
}

static selkie_code take_speeds(sk_step *step, int64_t sorted, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    double sums[2];
    SK_LAUNCH(cuda, sum_speeds, SK_CUDA_SUMS, SK_CUDA_THREADS, cuda->records[cuda->current], (size_t)cuda->device_count,
              (size_t)sorted, cuda->data);
    SK_CUDA_TRY(
        cudaMemcpyAsync(&sums[0], &cuda->data->results.kinetic, sizeof(double), cudaMemcpyDeviceToHost, cuda->stream),
        "the speeds", error);
    SK_TRY(fetch(cuda, &sums[1], &cuda->data->results.fastest2, sizeof(double), error));
    step->sums.kinetic = sums[0];
    step->sums.max_speed = sqrt(sums[1]);
    return SELKIE_OK;
}

/* The host moves the particles of the bodies. */
static selkie_code move_members(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_cuda_frozen *own = cuda->frozen;
    const sk_frozen *frozen = frozen_of(step);
    const size_t count = frozen->first_member[frozen->body_count];
    size_t total = 0;
    add_part(&total, count * sizeof(uint32_t));
    const size_t records = add_part(&total, count * sizeof(sk_particle)),
                 affine = add_part(&total, own->affine >= 0 ? count * 9 * sizeof(float) : 0);
    char *here = own->members.here, *there = own->members.there;
    const uint32_t *numbers = (const uint32_t *)(const void *)there;
    sk_particle *list = (sk_particle *)(void *)(here + records);
    float *gradients = (float *)(void *)(here + affine);
    SK_LAUNCH_SIMPLE(cuda, gather_members, SK_CUDA_WIDE / 4, SK_CUDA_THREADS, cuda->records[cuda->current], numbers,
                     count, (sk_particle *)(void *)(there + records));
    SK_TRY(fetch(cuda, list, there + records, count * sizeof *list, error));
    for (size_t n = 0; n < count; n++)
        own->particles.records[frozen->members[n]] = list[n];

    const world_store world = use_near(step);
    const selkie_code code = SK_DIM(sk_frozen_move_bodies)(step, error);
    use_world(step, &world);
    SK_TRY(code);
    const sk_attribute *gradient = sk_particles_find_attribute(&own->particles, "affine");
    for (size_t n = 0; n < count; n++) {
        list[n] = own->particles.records[frozen->members[n]];
        if (gradient)
            memcpy(gradients + 9 * n, gradient->data + 9 * (size_t)frozen->members[n], 9 * sizeof *gradients);
    }
    SK_TRY(send(cuda, there + records, here + records, total - records, error));
    SK_LAUNCH_SIMPLE(cuda, return_members, SK_CUDA_WIDE / 4, SK_CUDA_THREADS, cuda->records[cuda->current],
                     gradient ? (float *)(void *)cuda->attributes[own->affine][cuda->current] : nullptr,
                     cuda->attributes[own->frozen_at][cuda->current], numbers, count,
                     (const sk_particle *)(const void *)(there + records),
                     (const float *)(const void *)(there + affine));
    return SELKIE_OK;
}

/* The step is over: what a source has added may have moved the arrays, whose addresses are arguments. */
selkie_code SK_DIM(sk_cuda_frozen_move)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_frozen *frozen = frozen_of(step);
    SK_TRY(sk_cuda_take_frozen(step, error));
    cuda->particles_here = 0;
    SK_CUDA_TRY(cudaMemsetAsync(cuda->attributes[cuda->frozen->frozen_at][cuda->current], 0,
                                (size_t)cuda->device_count * 3 * sizeof(uint32_t), cuda->stream),
                "the frozen bodies", error);
    frozen->solid_count = 0;
    memset(frozen->lifted, 0, sizeof frozen->lifted);
    if (!frozen->body_count)
        return SELKIE_OK;
    SK_TRY(move_members(step, error));
    frozen->body_count = 0;
    sk_particles_moved(&step->particles);
    cuda->has_keys = 0;
    return take_speeds(step, cuda->frozen->sorted, error);
}
