/* The phases of elastoplastic points beside liquids: see immersed_parts.h. Launches are not recorded as graphs:
 * addresses of the particles are arguments. */
#include "cuda/immersed_parts.h"

extern "C" {
#include "methods/elastoplastic/mpm.h"

immersed_frame sk_immersed_frame_2d(const sk_step *step);
immersed_frame sk_immersed_frame_3d(const sk_step *step);
}

static int find_attribute(const sk_step *step, const char *name)
{
    for (int a = 0; a < step->particles.attribute_count; a++)
        if (strcmp(step->particles.attributes[a].name, name) == 0)
            return a;
    return -1;
}

/* The values of an attribute on the device; NULL = there is none. */
static uint32_t *values_of(const sk_step *step, const char *name)
{
    const int attribute = find_attribute(step, name);
    return attribute < 0 ? NULL : step->cuda->attributes[attribute][step->cuda->current];
}

/* With the arrays of the device. */
static immersed_frame frame_of(const sk_step *step)
{
    sk_cuda *cuda = step->cuda;
    immersed_frame in = SK_DIM(sk_immersed_frame)(step);
    const sk_mixture *mixture = &sk_immersed_of(step)->mixture;
    in.step = &cuda->device->step;
    in.f = sk_mixture_faces_of(mixture, &cuda->sent->step);
    in.nodes = cuda->shadow.mpm_nodes;
    in.law = cuda->immersed.laws;
    in.grains = cuda->immersed.grains;
    in.solid_density = cuda->sent->step.grid.fields[mixture->solid_density];
    in.material = values_of(step, "material");
    in.temperature = (const float *)(const void *)values_of(step, "temperature");
    in.slots = cuda->shadow.slot_of_place;
    return in;
}

/* --- places --- */

static __global__ void keep_places(sk_particle *records, size_t count, float *kept)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(p, count)
    for (int d = 0; d < 3; d++)
        kept[3 * p + (size_t)d] = records[p].position[d];
}

selkie_code SK_DIM(sk_cuda_immersed_keep)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    if (!cuda->began)
        SK_TRY(sk_cuda_make_room(step, error));
    SK_TRY(sk_cuda_begin(step, error));
    SK_LAUNCH_SIMPLE(cuda, keep_places, SK_CUDA_WIDE, SK_CUDA_THREADS, cuda->records[cuda->current],
                     (size_t)cuda->device_count, (float *)(void *)values_of(step, "kept"));
    cuda->particles_here = 0;
    sk_immersed_of(step)->is_stepping = 1;
    return SELKIE_OK;
}

static __global__ void return_points(const __grid_constant__ immersed_frame in, const float *kept)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(p, in.step->particles.count)
    for (int d = 0; d < 3 && immersed_is_point(&in, p); d++)
        in.step->particles.records[p].position[d] = kept[3 * p + (size_t)d];
}

selkie_code SK_DIM(sk_cuda_immersed_place)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    SK_TRY(sk_cuda_begin(step, error));
    SK_LAUNCH_SIMPLE(cuda, return_points, SK_CUDA_WIDE, SK_CUDA_THREADS, frame_of(step),
                     (const float *)(const void *)values_of(step, "kept"));
    sk_particles_moved(&step->particles);
    cuda->has_keys = cuda->particles_here = 0;
    return SELKIE_OK;
}

/* --- the mixture --- */

/* Blocks with points, and cells with grains. */
static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    mark_points(const __grid_constant__ immersed_frame in, uint8_t *blocks)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &in.step->grid;
    for (int block = (int)blockIdx.x; block < grid->block_count; block += (int)gridDim.x) {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        uint32_t first, last;
        float grains = 0.0f;
        int any = 0;
        sk_plain_particles(grid, cell, &first, &last);
        for (uint32_t p = first; p < last; p++) {
            const immersed_law *law = &in.laws[immersed_material_of(&in, p)];
            any |= law->is_point;
            if (law->is_point && law->grains)
                grains = 1.0f;
        }
        in.grains[sk_plain_index(cell)] = grains;
        any = __syncthreads_or(any);
        if (threadIdx.x == 0)
            blocks[block] = any != 0;
    }
}

/* Are there points in a block or beside it? By all threads of a thread block. */
SK_DEVICE int is_near_points(const sk_grid *grid, const uint8_t *blocks, int block)
{
    const int n = (int)threadIdx.x;
    return __syncthreads_or(n < SK_NEIGHBOURS && blocks[grid->neighbours[block][n]]);
}

/* Volume and lightness of the points in the faces, by the transfer of the liquid (sk_mixture_gather), and the mixture.
 * A thread a cell. */
static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    mix_cells(const sk_cuda_constants *constants, const __grid_constant__ immersed_frame in, const uint8_t *blocks,
              float *solid_density, int is_stepping)
{
    SK_CUDA_WAIT();
    const sk_step *step = in.step;
    const sk_grid *grid = &step->grid;
    const sk_plain_frame frame = frame_of_grid(grid);
    const float per_particle = constants->options.density_per_particle;
    sk_plain_data data = particle_data(step, constants);
    data.affine = nullptr;
    data.mask = constants->solid_mask;
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        const size_t at = sk_plain_index(cell);
        const int near = is_near_points(grid, blocks, block);
        for (int d = 0; !near && d < SELKIE_DIM; d++)
            in.f.share[d][at] = 0.0f;
        if (!near) {
            solid_density[at] = 0.0f;
            continue;
        }
        const sk_gathered sums = sk_plain_gather_cell(&frame, &data, cell);
        for (int d = 0; d < SELKIE_DIM; d++) {
            in.f.solid[d][at] = sk_face_velocity(sums.momentum[d], sums.mass[d]);
            in.f.before[d][at] = sk_face_lightness(sums.weight[d], sums.mass[d]);
            in.f.share[d][at] = sums.weight[d] * per_particle;
        }
        solid_density[at] = sums.centre * per_particle;
        grid->fields[SK_FIELD_DENSITY][at] += solid_density[at];
        if (is_stepping)
            immersed_mix_cell(&in, cell);
    }
}

selkie_code SK_DIM(sk_cuda_immersed_mix)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    SK_TRY(sk_cuda_begin(step, error));
    const immersed_frame in = frame_of(step);
    const int is_stepping = sk_immersed_of(step)->is_stepping;
    uint8_t *blocks = cuda->immersed.blocks;
    SK_LAUNCH(cuda, mark_points, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, in, blocks);
    if (is_stepping)
        SK_DIM(sk_cuda_launch_immersed)(cuda, step, &in);
    SK_LAUNCH(cuda, mix_cells, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, &cuda->device->constants, in, blocks,
              cuda->sent->step.grid.fields[sk_immersed_of(step)->mixture.solid_density], is_stepping);
    cuda->particles_here = 0;
    return SELKIE_OK;
}

static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    remember_cells(const __grid_constant__ immersed_frame in, const uint8_t *blocks)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH_BLOCK(block, in.step)
    {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        if (is_near_points(&in.step->grid, blocks, block))
            immersed_remember_cell(&in, cell);
    }
}

selkie_code SK_DIM(sk_cuda_immersed_remember)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    SK_TRY(sk_cuda_begin(step, error));
    SK_LAUNCH(cuda, remember_cells, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, frame_of(step), cuda->immersed.blocks);
    return SELKIE_OK;
}

/* --- after the pressure --- */

static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    part_cells(const __grid_constant__ immersed_frame in, const uint8_t *blocks, float (*impulse)[3])
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &in.step->grid;
    SK_CUDA_EACH_BLOCK(block, in.step)
    {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        const size_t at = sk_plain_index(cell);
        const int near = is_near_points(grid, blocks, block);
        int unknown = 0;
        for (int d = 0; d < 3; d++)
            impulse[at][d] = 0.0f;
        for (int d = 0; near && d < SELKIE_DIM; d++)
            unknown |= immersed_part_face(&in, cell, d);
        unknown = __syncthreads_or(unknown);
        if (unknown && threadIdx.x == 0)
            grid->block_flags[block] |= SK_BLOCK_UNKNOWN;
    }
}

/* Nodes take their changes and meet the liquid, then faces take the impulses of the nodes: a launch each. */
enum { PUSH_NODES, MEET_NODES, PUSH_FACES };
template <int PASS>
static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    push_cells(const __grid_constant__ immersed_frame in, const uint8_t *blocks, float (*impulse)[3])
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH_BLOCK(block, in.step)
    {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        if (!is_near_points(&in.step->grid, blocks, block))
            continue;
        if (PASS == PUSH_NODES)
            immersed_push_node(&in, cell);
        else if (PASS == MEET_NODES)
            immersed_meet_node(&in, cell, impulse[sk_plain_index(cell)]);
        else
            immersed_push_face(&in, (const float(*)[3])impulse, cell);
    }
}

selkie_code SK_DIM(sk_cuda_immersed_part)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    SK_TRY(sk_cuda_begin(step, error));
    const immersed_frame in = frame_of(step);
    const uint8_t *blocks = cuda->immersed.blocks;
    float(*impulse)[3] = cuda->immersed.impulse;
    for (int d = 0; d < SELKIE_DIM; d++) /* where there is no block */
        SK_CUDA_TRY(cudaMemsetAsync(in.f.before[d], 0, SK_BLOCK_CELLS * sizeof(float), cuda->stream), "the points",
                    error);
    SK_LAUNCH(cuda, part_cells, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, in, blocks, impulse);
    SK_LAUNCH(cuda, push_cells<PUSH_NODES>, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, in, blocks, impulse);
    SK_LAUNCH(cuda, push_cells<MEET_NODES>, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, in, blocks, impulse);
    SK_LAUNCH(cuda, push_cells<PUSH_FACES>, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, in, blocks, impulse);
    SK_DIM(sk_cuda_launch_touch)(cuda, step);
    return SELKIE_OK;
}

/* --- the move --- */

selkie_code SK_DIM(sk_cuda_immersed_to_points)(sk_step *step, selkie_error *error)
{
    SK_TRY(sk_cuda_begin(step, error));
    const immersed_frame in = frame_of(step);
    SK_DIM(sk_cuda_launch_take_immersed)(step->cuda, step, &in);
    step->cuda->particles_here = 0;
    return SELKIE_OK;
}

/* Liquid inside the points goes back to their surface. */
static __global__ void expel_liquid(const __grid_constant__ immersed_frame in)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(p, in.step->particles.count)
    {
        sk_particle *particle = &in.step->particles.records[p];
        if (immersed_is_point(&in, p))
            particle->flags &= ~(uint32_t)SK_PARTICLE_FLYING;
        else if (!(particle->flags & SK_PARTICLE_DEAD))
            immersed_expel(&in, particle);
    }
}

/* The step on the device is that of the move. */
selkie_code SK_DIM(sk_cuda_immersed_expel)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    (void)error;
    SK_LAUNCH_SIMPLE(cuda, expel_liquid, SK_CUDA_WIDE, SK_CUDA_THREADS, frame_of(step));
    sk_particles_moved(&step->particles);
    cuda->has_keys = cuda->particles_here = 0;
    SK_DIM(sk_cuda_take_laws)(step);
    sk_immersed_of(step)->is_stepping = 0;
    return SELKIE_OK;
}
