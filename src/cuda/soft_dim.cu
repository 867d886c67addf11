/* The phases of bodies of particles: see soft_parts.h. Launches are not recorded as graphs: addresses of the memory of
 * bodies are arguments, and the host waits between them. */
#include "cuda/grid_parts.h"
#include "cuda/soft_parts.h"

#include "methods/shape_matching/mix_plain.h"

extern "C" {
#include "methods/shape_matching/response.h"
#include "methods/sorting.h"
}

static selkie_code send(sk_cuda *cuda, void *to, const void *from, size_t bytes, selkie_error *error)
{
    SK_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, cuda->stream), "a copy of the bodies", error);
    return SELKIE_OK;
}

static selkie_code fetch(sk_cuda *cuda, void *to, const void *from, size_t bytes, selkie_error *error)
{
    SK_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, cuda->stream), "a copy of the bodies", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "a copy of the bodies", error);
    return SELKIE_OK;
}

/* --- the records of bodies on the host --- */

/* What the step has instead while a function of the CPU works on the records of bodies. */
typedef struct world_store {
    sk_particles particles;
    sk_grid grid;
} world_store;

static world_store use_bodies(sk_step *step)
{
    const world_store world = {step->particles, step->grid};
    step->particles = step->cuda->soft->particles;
    step->grid = step->cuda->soft->grid;
    return world;
}

static void use_world(sk_step *step, const world_store *world)
{
    step->cuda->soft->particles = step->particles;
    step->cuda->soft->grid = step->grid;
    step->particles = world->particles;
    step->grid = world->grid;
}

/* The store anew: the points that are left, in their order. */
static selkie_code fill_store(sk_step *step, selkie_error *error)
{
    sk_soft *soft = step->soft;
    sk_cuda_soft *own = step->cuda->soft;
    sk_particles *particles = &own->particles;
    SK_TRY(fetch(step->cuda, soft->record, own->shadow.record, soft->point_count * sizeof *soft->record, error));
    particles->count = 0;
    for (int b = 0; b < soft->body_count; b++)
        for (uint32_t k = soft->bodies[b].first; k < soft->bodies[b].first + soft->bodies[b].count; k++) {
            sk_particle *record = &particles->records[particles->count];
            if (soft->record[k] < 0)
                continue;
            memset(record, 0, sizeof *record);
            record->id = soft->first_id + k;
            for (int d = 0; d < SELKIE_DIM; d++)
                record->position[d] = (float)soft->points[k].position[d];
            particles->attributes[0].data[particles->count++] = (uint32_t)soft->bodies[b].number + 1;
        }
    particles->in_order = 0;
    sk_particles_moved(particles);
    const world_store world = use_bodies(step);
    SK_DIM(sk_soft_find_records)(step);
    use_world(step, &world);
    own->is_stale = 0;
    return SELKIE_OK;
}

/* --- records and points --- */

static __global__ void forget_records(const sk_soft *soft, sk_cuda_soft_counts *counts)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(k, soft->point_count)
    soft->record[k] = -1;
    if (blockIdx.x == 0 && threadIdx.x == 0)
        counts->left = counts->found = 0;
}

/* The record of each point since the last sort, and their number. */
static __global__ void find_records(const sk_step *step, sk_soft *soft, int body, sk_cuda_soft_counts *counts)
{
    SK_CUDA_WAIT();
    const uint32_t *owner = step->particles.attributes[body].data;
    if (blockIdx.x == 0 && threadIdx.x == 0)
        soft->owner = owner;
    SK_CUDA_EACH(p, step->particles.count)
    {
        if (!owner[p])
            continue;
        const uint32_t k = step->particles.records[p].id - soft->first_id;
        if (k >= soft->point_count || step->particles.records[p].flags & SK_PARTICLE_DEAD)
            continue;
        soft->record[k] = (int64_t)p;
        atomicAdd(&counts->left, 1ull);
    }
}

static selkie_code reserve_found(sk_step *step, size_t room, selkie_error *error)
{
    sk_cuda_soft *own = step->cuda->soft;
    if (room <= own->found_room)
        return SELKIE_OK;
    SK_CUDA_TRY(cudaStreamSynchronize(step->cuda->stream), "the bodies", error);
    SK_TRY(sk_cuda_stage(&own->found, sizeof(sk_cuda_soft_counts) + room * sizeof(sk_cuda_soft_found), error));
    own->found_room = room;
    return SELKIE_OK;
}

static sk_cuda_soft_counts *counts_at(char *memory)
{
    return (sk_cuda_soft_counts *)(void *)memory;
}

static sk_cuda_soft_found *list_at(char *memory)
{
    return (sk_cuda_soft_found *)(void *)(memory + sizeof(sk_cuda_soft_counts));
}

static void launch_find_records(const sk_step *step)
{
    sk_cuda *cuda = step->cuda;
    const sk_cuda_soft *own = cuda->soft;
    sk_cuda_soft_counts *counts = counts_at(own->found.there);
    SK_LAUNCH_SIMPLE(cuda, forget_records, SK_CUDA_WIDE / 4, SK_CUDA_THREADS, own->there, counts);
    SK_LAUNCH_SIMPLE(cuda, find_records, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, own->there, own->body,
                     counts);
}

/* Records take the positions of their points. */
static __global__ void place_records(const sk_step *step, const sk_soft *soft)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(k, soft->point_count)
    {
        if (soft->record[k] < 0)
            continue;
        sk_particle *record = &step->particles.records[soft->record[k]];
        for (int d = 0; d < SELKIE_DIM; d++)
            record->position[d] = (float)soft->points[k].position[d];
    }
}

/* Points take positions or velocities. */
static __global__ void set_points(const sk_soft *soft, int of_velocity, const double (*values)[3])
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(k, soft->point_count)
    for (int d = 0; d < 3; d++)
        (of_velocity ? soft->points[k].velocity : soft->points[k].position)[d] = values[k][d];
}

static selkie_code send_points(sk_step *step, int of_velocity, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const sk_cuda_soft *own = cuda->soft;
    double(*here)[3] = (double(*)[3])(void *)own->values.here, (*there)[3] = (double(*)[3])(void *)own->values.there;
    sk_soft_give_points(step, of_velocity, here);
    SK_TRY(send(cuda, there, here, step->soft->point_count * sizeof *here, error));
    SK_LAUNCH_SIMPLE(cuda, set_points, SK_CUDA_WIDE / 4, SK_CUDA_THREADS, own->there, of_velocity,
                     (const double(*)[3])there);
    return SELKIE_OK;
}

/* --- cells near points --- */

/* Marks the cells with points, and their blocks. */
static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    mark_crowded(const sk_step *step, int body, const __grid_constant__ sk_cuda_soft_marks marks)
{
    SK_CUDA_WAIT();
    const uint32_t *owner = step->particles.attributes[body].data;
    for (int block = (int)blockIdx.x; block < step->grid.block_count; block += (int)gridDim.x) {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        uint32_t begin, end, owners = 0;
        sk_plain_particles(&step->grid, cell, &begin, &end);
        for (uint32_t p = begin; p < end; p++)
            owners |= owner[p];
        marks.crowded[sk_plain_index(cell)] = owners != 0;
        const int any = __syncthreads_or(owners != 0);
        if (threadIdx.x == 0)
            marks.crowded_blocks[block] = any != 0;
    }
}

/* Has a block around this one, itself included, a mark? By all threads of a thread block. */
SK_DEVICE int is_marked_near(const sk_grid *grid, const uint8_t *blocks, int block)
{
    const int n = (int)threadIdx.x;
    return __syncthreads_or(n < SK_NEIGHBOURS && blocks[grid->neighbours[block][n]]);
}

/* Has a cell around this one, itself included, a mark? */
SK_DEVICE int is_beside(const sk_grid *grid, const uint8_t *cells, sk_plain_cell cell)
{
    int any = 0;
    for (int n = 0; n < SK_AROUND && !any; n++) {
        int offset[3];
        sk_plain_offset(n, offset);
        any = cells[sk_plain_index(sk_plain_beside(grid, cell, offset))];
    }
    return any;
}

/* Marks the cells with points in them or beside them, and their blocks. */
static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    mark_near(const sk_step *step, const __grid_constant__ sk_cuda_soft_marks marks)
{
    SK_CUDA_WAIT();
    for (int block = (int)blockIdx.x; block < step->grid.block_count; block += (int)gridDim.x) {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        const int any = block && is_marked_near(&step->grid, marks.crowded_blocks, block);
        marks.near[sk_plain_index(cell)] = any && is_beside(&step->grid, marks.crowded, cell);
        if (threadIdx.x == 0)
            marks.near_blocks[block] = any != 0;
    }
}

static void launch_marks(const sk_step *step)
{
    sk_cuda *cuda = step->cuda;
    SK_LAUNCH(cuda, mark_crowded, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, &cuda->device->step, cuda->soft->body,
              cuda->soft->marks);
    SK_LAUNCH(cuda, mark_near, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, &cuda->device->step, cuda->soft->marks);
}

/* --- liquid inside bodies --- */

/* What the test of a place needs. */
typedef struct place_test {
    const sk_step *step;
    const sk_cuda_data *data;
    const uint8_t *near;
} place_test;

/* The cell with these coordinates: sk_plain_find. */
SK_DEVICE sk_plain_cell find_cell(const sk_grid *grid, const sk_cuda_data *data, const int at[3])
{
    sk_plain_cell cell = {0, 0};
    int place = 0, stride = 1;
    for (int d = 0; d < SELKIE_DIM; d++) {
        if (at[d] < 0 || at[d] >= grid->blocks[d] * SK_BLOCK_N) {
            cell.local = 0;
            return cell;
        }
        place += (at[d] >> SK_BLOCK_LOG) * stride;
        stride *= grid->blocks[d];
        cell.local |= (at[d] & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
    }
    cell.slot = data->slot_of_place[place];
    return cell;
}

SK_DEVICE int is_inside(const void *of, uint32_t p, const float x[3], sk_soft_inside *found)
{
    const place_test *test = (const place_test *)of;
    const sk_grid *grid = &test->step->grid;
    int at[3] = {0, 0, 0};
    for (int d = 0; d < SELKIE_DIM; d++)
        at[d] = (int)floor(((double)x[d] - grid->corner[d]) / grid->cell_size);
    const sk_plain_cell cell = find_cell(grid, test->data, at);
    return test->near[sk_plain_index(cell)] && soft_find_inside(test->step, cell, p, x, found);
}

/* Is a particle of a block near points, by its position? Farther than a cell from the block it may be: is_near of
 * methods/shape_matching/liquid_dim.c. */
SK_DEVICE int may_be_near(const place_test *test, int block, const float x[3])
{
    const sk_grid *grid = &test->step->grid;
    const float inverse = (float)(1.0 / grid->cell_size);
    int at[3] = {0, 0, 0}, beyond = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        at[d] = (int)floorf((x[d] - (float)grid->corner[d]) * inverse);
        const int i = at[d] - grid->coordinates[block][d] * SK_BLOCK_N;
        beyond |= i < -1 || i > SK_BLOCK_N;
    }
    return beyond || test->near[sk_plain_index(find_cell(grid, test->data, at))];
}

/* Lists the liquid particles inside bodies, in any order, as long as there is room. A thread a cell. The density
 * projection moves particles by a cell before they are sorted. */
static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    list_inside(const sk_step *step, const sk_cuda_constants *constants, const sk_cuda_data *data,
                const __grid_constant__ sk_cuda_soft_marks marks, sk_cuda_soft_counts *counts, sk_cuda_soft_found *list,
                size_t room)
{
    SK_CUDA_WAIT();
    const place_test test = {step, data, marks.near};
    const uint32_t *owner = step->soft->owner, *material = step->particles.attributes[constants->material].data;
    for (int block = 1 + (int)blockIdx.x; block <= step->grid.particle_blocks; block += (int)gridDim.x) {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        uint32_t begin, end;
        sk_plain_particles(&step->grid, cell, &begin, &end);
        const int any = is_marked_near(&step->grid, marks.near_blocks, block);
        if (!any || begin == end || !is_beside(&step->grid, marks.near, cell))
            continue;
        for (uint32_t p = begin; p < end; p++) {
            const sk_particle particle = load_particle(&step->particles.records[p]);
            sk_cuda_soft_found found;
            if (owner[p] || !may_be_near(&test, block, particle.position) ||
                !is_inside(&test, p, particle.position, &found.inside))
                continue;
            found.record = particle;
            found.material = material[p];
            found.particle = p;
            const unsigned long long at = atomicAdd(&counts->found, 1ull);
            if (at < room)
                list[at] = found;
        }
    }
}

/* Liquid that met a body takes its new place and velocity. */
static __global__ void return_liquid(const sk_step *step, const sk_cuda_soft_found *list, size_t count)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(n, count)
    store_particle(&step->particles.records[list[n].particle], list[n].record);
}

static void launch_list(const sk_step *step)
{
    sk_cuda *cuda = step->cuda;
    const sk_cuda_soft *own = cuda->soft;
    SK_LAUNCH(cuda, list_inside, SK_CUDA_WIDE, SK_BLOCK_CELLS, &cuda->device->step, &cuda->device->constants,
              cuda->data, own->marks, counts_at(own->found.there), list_at(own->found.there), own->found_room);
}

static int by_particle(const void *a, const void *b)
{
    const uint32_t p = ((const sk_cuda_soft_found *)a)->particle, q = ((const sk_cuda_soft_found *)b)->particle;
    return p < q ? -1 : p > q;
}

/* Liquid inside bodies goes back, in the order of the particles: as sk_soft_push_out. `count` have been listed. */
static selkie_code push_out(sk_step *step, size_t count, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_cuda_soft *own = cuda->soft;
    if (count > own->found_room) { /* once more, with room */
        SK_TRY(reserve_found(step, count + count / 2, error));
        launch_find_records(step);
        launch_list(step);
    }
    sk_cuda_soft_found *list = list_at(own->found.here);
    sk_soft_inside *inside;
    SK_TRY(sk_step_scratch(step, (count + 1) * sizeof *inside, "bodies", (void **)&inside, error));
    SK_TRY(sk_particles_reserve(&own->liquid, (int64_t)count, error));
    SK_TRY(fetch(cuda, list, list_at(own->found.there), count * sizeof *list, error));
    qsort(list, count, sizeof *list, by_particle);
    for (size_t n = 0; n < count; n++) {
        inside[n] = list[n].inside;
        inside[n].particle = (uint32_t)n;
        own->liquid.records[n] = list[n].record;
        own->liquid.attributes[0].data[n] = list[n].material;
    }
    own->liquid.count = (int64_t)count;
    const sk_particles world = step->particles;
    step->particles = own->liquid;
    SK_DIM(sk_soft_return)(step, inside, count);
    step->particles = world;
    for (size_t n = 0; n < count; n++)
        list[n].record = own->liquid.records[n];
    SK_TRY(send(cuda, list_at(own->found.there), list, count * sizeof *list, error));
    SK_LAUNCH_SIMPLE(cuda, return_liquid, SK_CUDA_WIDE / 4, SK_CUDA_THREADS, &cuda->device->step,
                     list_at(own->found.there), count);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_cuda_soft_place)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    SK_TRY(sk_cuda_begin(step, error));
    SK_TRY(sk_cuda_reserve_soft(step, error));
    SK_TRY(reserve_found(step, 4096, error));
    sk_soft *soft = step->soft;
    sk_cuda_soft *own = cuda->soft;
    if (!own->points_there || own->is_stale)
        SK_TRY(send_points(step, 0, error));
    own->points_there = 1;
    SK_TRY(send(cuda, own->shadow.states, soft->states, (size_t)soft->body_count * sizeof *soft->states, error));
    launch_find_records(step);
    if (soft->is_stepping && !(soft->is_placed && sk_soft_keeps_records(step))) {
        launch_marks(step);
        launch_list(step);
    }
    SK_CUDA_TRY(cudaMemcpyAsync(own->found.here, own->found.there, sizeof(sk_cuda_soft_counts), cudaMemcpyDeviceToHost,
                                cuda->stream),
                "a copy of the bodies", error);
    SK_TRY(sk_cuda_read_results(step, error));
    const sk_cuda_soft_counts counts = *counts_at(own->found.here);
    if (own->is_stale || (int64_t)counts.left != soft->left)
        SK_TRY(fill_store(step, error));
    soft->is_placed &= sk_soft_keeps_records(step);
    const world_store world = use_bodies(step);
    const selkie_code code = SK_DIM(sk_soft_measure)(step, NULL, error);
    use_world(step, &world);
    SK_TRY(code);
    if (soft->is_placed)
        return SELKIE_OK;
    if (counts.found && soft->is_stepping)
        SK_TRY(push_out(step, (size_t)counts.found, error));
    SK_LAUNCH_SIMPLE(cuda, place_records, SK_CUDA_WIDE / 4, SK_CUDA_THREADS, &cuda->device->step, own->there);
    sk_particles_moved(&step->particles);
    cuda->has_keys = cuda->particles_here = 0;
    return SELKIE_OK;
}

/* The sort after `place`, of the records of bodies too: contacts between bodies look for their cells. */
selkie_code SK_DIM(sk_cuda_soft_sort)(sk_step *step, selkie_error *error)
{
    if (!step->soft->is_placed)
        SK_TRY(SK_DIM(sk_cuda_sort)(step, error));
    if (step->soft->body_count < 2)
        return SELKIE_OK;
    const world_store world = use_bodies(step);
    sk_particles_moved(&step->particles);
    const selkie_code code = SK_DIM(sk_grid_sort_again)(&step->grid, &step->particles, step->threads, error);
    if (code == SELKIE_OK)
        SK_DIM(sk_soft_find_records)(step);
    use_world(step, &world);
    return code;
}

/* --- the mixture --- */

static __global__ void set_velocities(const sk_step *step, const sk_soft *soft, const float (*velocities)[3])
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(k, soft->point_count)
    for (int d = 0; d < SELKIE_DIM && soft->record[k] >= 0; d++)
        step->particles.records[soft->record[k]].velocity[d] = velocities[k][d];
}

/* What bodies have in the faces, by the transfer of the liquid (sk_mixture_gather), and the mixture. A thread a cell.
 */
static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    mix_faces(const sk_step *step, const sk_cuda_constants *constants, const __grid_constant__ sk_mixture_faces faces,
              float *solid_density, const __grid_constant__ sk_cuda_soft_marks marks)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const sk_plain_frame frame = frame_of_grid(grid);
    const float per_particle = constants->options.density_per_particle;
    sk_plain_data data = particle_data(step, constants);
    data.affine = nullptr;
    data.mask = constants->solid_mask;
    SK_CUDA_EACH_BLOCK(block, step)
    {
        int has_share = 0;
        if (is_marked_near(grid, marks.crowded_blocks, block)) {
            const sk_plain_cell cell = {block, (int)threadIdx.x};
            const size_t at = sk_plain_index(cell);
            const sk_gathered sums = sk_plain_gather_cell(&frame, &data, cell);
            for (int d = 0; d < SELKIE_DIM; d++) {
                faces.solid[d][at] = sk_face_velocity(sums.momentum[d], sums.mass[d]);
                faces.before[d][at] = sk_face_lightness(sums.weight[d], sums.mass[d]);
                faces.share[d][at] = sums.weight[d] * per_particle;
                has_share |= faces.share[d][at] > 0.0f;
            }
            solid_density[at] = sums.centre * per_particle;
            grid->fields[SK_FIELD_DENSITY][at] += solid_density[at];
        }
        has_share = __syncthreads_or(has_share);
        if (threadIdx.x == 0)
            marks.shared[block] = has_share != 0;
        for (int d = 0; has_share && d < SELKIE_DIM; d++)
            soft_mix_face(&faces, d, (size_t)block * SK_BLOCK_CELLS + threadIdx.x, 0);
    }
}

/* Without liquid the cells of the bodies count for statistics alone. */
static __global__ void weigh_bodies(const sk_step *step, const sk_cuda_constants *constants)
{
    SK_CUDA_WAIT();
    const sk_plain_frame frame = frame_of_grid(&step->grid);
    sk_plain_data data = particle_data(step, constants);
    sk_transfer_options options = constants->options;
    options.left_out = nullptr;
    data.mask = constants->solid_mask;
    SK_CUDA_EACH_CELL(cell, step)
    step->grid.fields[SK_FIELD_DENSITY][sk_plain_index(cell)] =
        sk_plain_weigh_cell(&frame, &data, &options, cell) * options.density_per_particle;
}

/* The velocities of the records, which the grid gathers. */
static selkie_code send_velocities(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const sk_cuda_soft *own = cuda->soft;
    const sk_soft *soft = step->soft;
    float(*values)[3] = (float(*)[3])(void *)own->values.here;
    const world_store world = use_bodies(step);
    sk_soft_give_velocities(step, values);
    use_world(step, &world);
    SK_TRY(send(cuda, own->values.there, values, soft->point_count * sizeof *values, error));
    SK_LAUNCH_SIMPLE(cuda, set_velocities, SK_CUDA_WIDE / 4, SK_CUDA_THREADS, &cuda->device->step, own->there,
                     (const float(*)[3])(void *)own->values.there);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_cuda_soft_mix)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_cuda_soft *own = cuda->soft;
    SK_TRY(sk_cuda_begin(step, error));
    SK_TRY(sk_cuda_reserve_soft(step, error)); /* the sort may have taken more */
    launch_find_records(step);
    step->is_dry = sk_soft_is_dry(step);
    if (cuda->sent->step.is_dry != step->is_dry) {
        cuda->sent->step.is_dry = step->is_dry;
        SK_TRY(send(cuda, &cuda->device->step.is_dry, &cuda->sent->step.is_dry, sizeof step->is_dry, error));
    }
    const world_store world = use_bodies(step);
    const selkie_code code = SK_DIM(sk_soft_foresee)(step, error);
    use_world(step, &world);
    SK_TRY(code);
    cuda->particles_here = 0;
    if (step->is_dry) {
        SK_CUDA_TRY(cudaMemsetAsync(own->marks.shared, 0, own->mark_blocks, cuda->stream), "the bodies", error);
        SK_LAUNCH_SIMPLE(cuda, weigh_bodies, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step,
                         &cuda->device->constants);
        return SELKIE_OK;
    }
    SK_TRY(send_velocities(step, error));
    launch_marks(step);
    const sk_mixture_faces faces = sk_mixture_faces_of(&step->soft->mixture, &cuda->sent->step);
    SK_LAUNCH(cuda, mix_faces, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, &cuda->device->step, &cuda->device->constants, faces,
              cuda->sent->step.grid.fields[step->soft->mixture.solid_density], own->marks);
    return SELKIE_OK;
}

static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    remember_faces(const sk_step *step, const __grid_constant__ sk_mixture_faces faces, const uint8_t *shared)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH_BLOCK(block, step)
    for (int d = 0; shared[block] && d < SELKIE_DIM; d++)
        soft_remember_face(&faces, d, (size_t)block * SK_BLOCK_CELLS + threadIdx.x);
}

selkie_code SK_DIM(sk_cuda_soft_remember)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    SK_TRY(sk_cuda_begin(step, error));
    const sk_mixture_faces faces = sk_mixture_faces_of(&step->soft->mixture, &cuda->sent->step);
    SK_LAUNCH(cuda, remember_faces, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, &cuda->device->step, faces,
              cuda->soft->marks.shared);
    return SELKIE_OK;
}

/* --- after the pressure --- */

static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    part_faces(const sk_step *step, const __grid_constant__ sk_mixture_faces faces,
               const __grid_constant__ soft_parting parting, const __grid_constant__ sk_cuda_soft_marks marks)
{
    SK_CUDA_WAIT();
    for (int block = (int)blockIdx.x; block < step->grid.block_count; block += (int)gridDim.x) {
        const size_t at = (size_t)block * SK_BLOCK_CELLS + threadIdx.x;
        const int has_solids = step->solids.block_slot[block] != 0;
        int mixed = 0, unknown = 0;
        for (int d = 0; block && marks.shared[block] && d < SELKIE_DIM; d++) {
            mixed |= soft_is_mixed(&faces, d, at);
            unknown |= soft_part_face(&faces, &parting, has_solids, d, at);
        }
        marks.mixed[at] = (uint8_t)mixed;
        mixed = __syncthreads_or(mixed);
        unknown = __syncthreads_or(unknown);
        if (threadIdx.x == 0) {
            marks.mixed_blocks[block] = mixed != 0;
            if (unknown)
                step->grid.block_flags[block] |= SK_BLOCK_UNKNOWN;
        }
    }
}

/* Marks the bodies of the points with liquid at a face around their cells. A thread a cell. */
static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    find_wet(const sk_step *step, const __grid_constant__ sk_cuda_soft_marks marks, uint8_t *wet)
{
    SK_CUDA_WAIT();
    const uint32_t *owner = step->soft->owner;
    for (int block = 1 + (int)blockIdx.x; block <= step->grid.particle_blocks; block += (int)gridDim.x) {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        uint32_t begin, end;
        const int any = is_marked_near(&step->grid, marks.mixed_blocks, block) && marks.crowded[sk_plain_index(cell)];
        if (!any || !is_beside(&step->grid, marks.mixed, cell))
            continue;
        sk_plain_particles(&step->grid, cell, &begin, &end);
        for (uint32_t p = begin; p < end; p++)
            if (owner[p])
                wet[owner[p]] = 1;
    }
}

/* The change that the grid gives to the points. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    sample_changes(const sk_step *step, const __grid_constant__ sk_mixture_faces faces, const uint8_t *crowded_blocks,
                   float (*changes)[3])
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const sk_soft *soft = step->soft;
    const sk_plain_frame frame = frame_of_grid(grid);
    for (int block = 1 + (int)blockIdx.x; block <= grid->particle_blocks; block += (int)gridDim.x) {
        const sk_plain_cell corner = {block, 0};
        const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
        int first[3];
        if (!crowded_blocks[block])
            continue;
        sk_plain_coordinates(grid, corner, first);
        for (uint32_t p = start[0] + threadIdx.x; p < start[SK_BLOCK_CELLS]; p += blockDim.x) {
            if (!soft->owner[p])
                continue;
            const sk_particle record = load_particle(&step->particles.records[p]);
            const uint32_t k = record.id - soft->first_id;
            if (k >= soft->point_count)
                continue;
            for (int d = 0; d < SELKIE_DIM; d++) {
                int low[3];
                float above[3], sum = 0.0f;
                soft_faces_around(&frame, d, first, record.position, low, above);
                for (int c = 0; c < SK_CORNERS; c++) {
                    const int at[3] = {low[0] + (c & 1), low[1] + (c >> 1 & 1), low[2] + (c >> 2)};
                    const size_t from = index_around(grid->neighbours[block], at);
                    sum += soft_corner_weight(above, c) * sk_known_or_zero(faces.solid[d][from]);
                }
                changes[k][d] = sum;
            }
        }
    }
}

selkie_code SK_DIM(sk_cuda_soft_part)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_cuda_soft *own = cuda->soft;
    sk_soft *soft = step->soft;
    const size_t bytes = soft->point_count * 3 * sizeof(float), wet_bytes = (size_t)soft->wet_count;
    double *changes;
    SK_TRY(sk_cuda_begin(step, error));
    SK_TRY(sk_step_scratch(step, ((size_t)soft->point_count + 1) * 3 * sizeof *changes, "bodies", (void **)&changes,
                           error));
    memset(soft->wet, 0, wet_bytes);
    if (!step->is_dry) {
        const sk_mixture_faces faces = sk_mixture_faces_of(&soft->mixture, &cuda->sent->step);
        const soft_parting parting = soft_parting_of(step);
        float(*sampled)[3] = (float(*)[3])(void *)own->changes.there;
        uint8_t *wet = (uint8_t *)own->changes.there + bytes;
        SK_CUDA_TRY(cudaMemsetAsync(wet, 0, wet_bytes, cuda->stream), "the bodies", error);
        SK_LAUNCH(cuda, part_faces, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, &cuda->device->step, faces, parting, own->marks);
        SK_LAUNCH(cuda, find_wet, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, &cuda->device->step, own->marks, wet);
        SK_LAUNCH_SIMPLE(cuda, sample_changes, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, faces,
                         own->marks.crowded_blocks, sampled);
        SK_TRY(fetch(cuda, own->changes.here, own->changes.there, bytes + wet_bytes, error));
        memcpy(soft->wet, own->changes.here + bytes, wet_bytes);
        sk_soft_take_changes(step, (const float(*)[3])(const void *)own->changes.here, changes);
    }
    for (int b = 0; b < soft->body_count; b++)
        soft->bodies[b].is_wet = soft->wet[soft->bodies[b].number + 1];
    return SK_DIM(sk_soft_spread)(step, changes, error);
}

selkie_code SK_DIM(sk_cuda_soft_meet)(sk_step *step, selkie_error *error)
{
    const world_store world = use_bodies(step);
    const selkie_code code = SK_DIM(sk_soft_meet)(step, error);
    use_world(step, &world);
    return code;
}

/* --- the move --- */

/* Where the paths of the liquid begin, which bodies stop. */
static __global__ void keep_places(const sk_step *step, const sk_soft *soft)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(p, step->particles.count)
    for (int d = 0; d < 3; d++)
        soft->from[p][d] = step->particles.records[p].position[d];
}

/* Records move with the velocity of their points. */
static __global__ void lead_records(const sk_step *step, const sk_soft *soft)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(k, soft->point_count)
    {
        if (soft->record[k] < 0)
            continue;
        sk_particle *record = &step->particles.records[soft->record[k]];
        record->flags |= SK_PARTICLE_FLYING;
        for (int d = 0; d < SELKIE_DIM; d++)
            record->velocity[d] = (float)soft->points[k].velocity[d];
    }
}

selkie_code SK_DIM(sk_cuda_soft_lead)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    SK_TRY(sk_cuda_begin(step, error));
    if (!step->is_dry)
        SK_LAUNCH_SIMPLE(cuda, keep_places, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, cuda->soft->there);
    SK_TRY(send_points(step, 1, error));
    SK_LAUNCH_SIMPLE(cuda, lead_records, SK_CUDA_WIDE / 4, SK_CUDA_THREADS, &cuda->device->step, cuda->soft->there);
    cuda->particles_here = 0;
    return SELKIE_OK;
}

/* Fast liquid does not pass thin bodies: sk_soft_stop. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    stop_liquid(const sk_step *step, const sk_cuda_data *data, const __grid_constant__ sk_cuda_soft_marks marks)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const sk_soft *soft = step->soft;
    const place_test test = {step, data, marks.near};
    for (int block = 1 + (int)blockIdx.x; block <= grid->particle_blocks; block += (int)gridDim.x) {
        const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
        if (!is_marked_near(grid, marks.crowded_blocks, block))
            continue;
        for (uint32_t p = start[0] + threadIdx.x; p < start[SK_BLOCK_CELLS]; p += blockDim.x)
            if (!soft->owner[p] && !(step->particles.records[p].flags & SK_PARTICLE_DEAD))
                soft_stop_particle(step, p, soft->from[p], is_inside, &test);
    }
}

static __global__ void fetch_places(const sk_step *step, const sk_soft *soft, float (*places)[3])
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(k, soft->point_count)
    for (int d = 0; d < 3 && soft->record[k] >= 0; d++)
        places[k][d] = step->particles.records[soft->record[k]].position[d];
}

/* The step on the device is that of the move. */
selkie_code SK_DIM(sk_cuda_soft_follow)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_cuda_soft *own = cuda->soft;
    sk_soft *soft = step->soft;
    float(*there)[3] = (float(*)[3])(void *)own->values.there, (*here)[3] = (float(*)[3])(void *)own->values.here;
    int strays = 0;
    if (!step->is_dry)
        SK_LAUNCH_AFTER(cuda, stop_liquid, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, cuda->data, own->marks);
    SK_LAUNCH_SIMPLE(cuda, fetch_places, SK_CUDA_WIDE / 4, SK_CUDA_THREADS, &cuda->device->step, own->there, there);
    SK_TRY(fetch(cuda, here, there, soft->point_count * sizeof *here, error));
    const world_store world = use_bodies(step);
    sk_soft_take_places(step, here);
    const selkie_code code = SK_DIM(sk_soft_move_points)(step, &strays, error);
    use_world(step, &world);
    SK_TRY(code);
    SK_TRY(send_points(step, 0, error));
    SK_LAUNCH_SIMPLE(cuda, place_records, SK_CUDA_WIDE / 4, SK_CUDA_THREADS, &cuda->device->step, own->there);
    sk_particles_moved(&step->particles);
    cuda->has_keys = cuda->particles_here = 0;
    soft->is_placed = sk_soft_keeps_records(step);
    soft->is_stepping = 0;
    return SELKIE_OK;
}
