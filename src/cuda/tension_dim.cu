/* Surface tension on the GPU: the curvature of the surface, a thread block a block of cells beside it, and the impulse
 * on faces, or the pressure at the particles of SPH. */
#include "cuda/device.h"

#include "methods/surface_tension/surface_tension_plain.h"
#include "methods/surface_tension/tension_of_particles_plain.h"

extern "C" {
#include "cuda/phases.h"
}
#include "cuda/grid_parts.h"

enum {
    HALO = SK_TENSION_HALO,
    WIDTH = SK_BLOCK_N + 2 * HALO,
    LINES = SELKIE_DIM == 3 ? WIDTH * WIDTH : WIDTH, /* along an axis */
    VALUES = LINES * WIDTH,
    DEPTHS = (SK_TENSION_VALUES + SK_BLOCK_CELLS - 1) / SK_BLOCK_CELLS /* of a thread */
};

/* The fill of a block and HALO cells around it, and the room for it. The depths take the memory of the room, since
 * a thread block has 48 KiB. */
typedef struct surface_memory {
    float fill[VALUES];
    union {
        float room[VALUES];
        sk_tension_tile near;
    } of;
} surface_memory;

/* --- curvature --- */

/* Beside unilateral incompressibility full cells are the liquid. */
SK_DEVICE int kind_at(const sk_step *step, sk_plain_cell cell)
{
    const size_t at = sk_plain_index(cell);
    const int kind = step->grid.kinds[at] & SK_CELL_KIND_MASK;
    if (!step->full_cells || kind == SK_CELL_SOLID)
        return kind;
    return step->grid.fields[step->full_cells][at] >= 0.0f ? SK_CELL_LIQUID : SK_CELL_AIR;
}

/* Is a cell liquid with air behind one of its sides, or air with liquid? */
SK_DEVICE int is_beside_surface(const sk_step *step, sk_plain_cell cell)
{
    const int own = kind_at(step, cell);
    int beside = 0;
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const int other = kind_at(step, sk_plain_next(&step->grid, cell, side / 2, side % 2 ? 1 : -1));
        beside |= other != SK_CELL_SOLID && other != own;
    }
    return own != SK_CELL_SOLID && beside;
}

/* Coordinates in the block of value n of a tile of a width, whose first value lies `rim` cells before it. */
SK_DEVICE void place_in_tile(int n, int width, int rim, int at[3])
{
    at[2] = 0;
    for (int d = 0; d < SELKIE_DIM; d++, n /= width)
        at[d] = n % width - rim;
}

/* The fill of a cell around a block; -1 = a solid, or behind a closed wall of the domain, where no block need be. */
SK_DEVICE float fill_around(const sk_step *step, int block, const int32_t *slots, const int at[3])
{
    const sk_grid *grid = &step->grid;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int cell = grid->coordinates[block][d] * SK_BLOCK_N + at[d] - grid->padding[d];
        if ((cell < 0 && step->scene->domain.walls[2 * d] != SELKIE_WALL_OPEN) ||
            (cell >= grid->cells[d] && step->scene->domain.walls[2 * d + 1] != SELKIE_WALL_OPEN))
            return -1.0f;
    }
    const float fill = grid->fields[SK_FIELD_FILL][index_around(slots, at)];
    return fill < 0.0f ? -1.0f : fill < 1.0f ? fill : 1.0f;
}

/* One pass of the binomial kernel along an axis, a thread a line. Values at the rim of the tile become wrong, by one
 * cell a pass. */
SK_DEVICE void blur_lines(float *values, int d)
{
    __syncthreads();
    for (int line = (int)threadIdx.x; line < LINES; line += (int)blockDim.x) {
        const int stride = d == 0 ? 1 : d == 1 ? WIDTH : WIDTH * WIDTH, low = line % stride;
        float *first = values + (line - low) * WIDTH + low, before = first[0], own = first[stride];
        for (int i = 1; i + 1 < WIDTH; i++) {
            const float after = first[(i + 1) * stride];
            first[i * stride] = 0.25f * (before + after) + 0.5f * own;
            before = own;
            own = after;
        }
    }
    __syncthreads();
}

/* The depths near a block, from the blurred fill: a mean over the open cells. By all threads of a thread block. */
SK_DEVICE void find_depths(const sk_step *step, int block, const int32_t *slots, surface_memory *memory)
{
    int closed = 0, at[3];
    for (int n = (int)threadIdx.x; n < VALUES; n += (int)blockDim.x) {
        place_in_tile(n, WIDTH, HALO, at);
        const float fill = fill_around(step, block, slots, at);
        closed |= fill < 0.0f;
        memory->of.room[n] = fill < 0.0f ? 0.0f : 1.0f;
        memory->fill[n] = fill < 0.0f ? 0.0f : fill;
    }
    closed = __syncthreads_or(closed);
    for (int pass = 0; pass < SK_TENSION_PASSES * SELKIE_DIM; pass++) {
        blur_lines(memory->fill, pass % SELKIE_DIM);
        if (closed)
            blur_lines(memory->of.room, pass % SELKIE_DIM);
    }
    float depths[DEPTHS];
    for (int i = 0; i < DEPTHS; i++) {
        const int n = (int)threadIdx.x + i * (int)blockDim.x;
        if (n >= SK_TENSION_VALUES)
            break;
        place_in_tile(n, SK_TENSION_WIDTH, SK_TENSION_REACH, at);
        int from = 0, stride = 1;
        for (int d = 0; d < SELKIE_DIM; d++, stride *= WIDTH)
            from += (at[d] + HALO) * stride;
        depths[i] = sk_tension_depth(memory->fill[from] / fmaxf(memory->of.room[from], 1e-3f));
    }
    __syncthreads(); /* the room has been read */
    for (int i = 0; i < DEPTHS; i++) {
        const int n = (int)threadIdx.x + i * (int)blockDim.x;
        if (n >= SK_TENSION_VALUES)
            break;
        place_in_tile(n, SK_TENSION_WIDTH, SK_TENSION_REACH, at);
        memory->of.near.depth[n] = depths[i];
        memory->of.near.closed[n] = fill_around(step, block, slots, at) < 0.0f;
    }
    __syncthreads();
}

/* The curvature of the cells beside the surface, 0 elsewhere, into RIGHT_SIDE. */
static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    find_curvatures(const sk_step *step, const sk_cuda_constants *constants)
{
    SK_CUDA_WAIT();
    __shared__ surface_memory memory;
    __shared__ int32_t slots[SK_NEIGHBOURS];
    float *blurred = step->grid.fields[SK_FIELD_RIGHT_SIDE];
    if (blockIdx.x == 0)
        blurred[threadIdx.x] = 0.0f;
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        const int beside = is_beside_surface(step, cell);
        float curvature = 0.0f;
        if (__syncthreads_or(beside)) {
            load_slots_around(&step->grid, block, slots);
            find_depths(step, block, slots, &memory);
            if (beside)
                curvature = tension_curvature_at(&memory.of.near, tension_place(cell.local), constants->contact_cosine);
        }
        blurred[sk_plain_index(cell)] = curvature;
    }
}

/* Undoes the effect of the blur. */
static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    sharpen_curvatures(const sk_step *step, const sk_cuda_constants *constants)
{
    SK_CUDA_WAIT();
    __shared__ float around[SK_TENSION_VALUES];
    __shared__ int32_t slots[SK_NEIGHBOURS];
    const float *blurred = step->grid.fields[SK_FIELD_RIGHT_SIDE];
    float *curvature = step->grid.fields[constants->tension.curvature];
    if (blockIdx.x == 0)
        curvature[threadIdx.x] = 0.0f;
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        float own = blurred[sk_plain_index(cell)];
        const int wanted = tension_is_sharpened(step, cell, own, constants->contact_cosine);
        if (__syncthreads_or(wanted)) {
            load_slots_around(&step->grid, block, slots);
            for (int n = (int)threadIdx.x; n < SK_TENSION_VALUES; n += (int)blockDim.x) {
                int at[3];
                place_in_tile(n, SK_TENSION_WIDTH, SK_TENSION_REACH, at);
                around[n] = blurred[index_around(slots, at)];
            }
            __syncthreads();
            if (wanted)
                own = tension_sharpened(around, tension_place(cell.local));
        }
        curvature[sk_plain_index(cell)] = own;
    }
}

static void launch_curvatures(sk_cuda *cuda)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_constants *constants = &cuda->device->constants;
    SK_LAUNCH(cuda, find_curvatures, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, step, constants);
    SK_LAUNCH(cuda, sharpen_curvatures, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, step, constants);
}

/* The material of each particle; NULL = one surface tension. */
SK_DEVICE const uint32_t *materials_of(const sk_step *step, const sk_cuda_constants *constants)
{
    return constants->tension.has_materials ? step->particles.attributes[constants->material].data : nullptr;
}

/* --- faces --- */

/* Impulses on faces between liquid and air, and their velocities. An unknown velocity counts as rest. */
static __global__ void push_faces(const sk_step *step, const sk_cuda_constants *constants)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const uint32_t *material = materials_of(step, constants);
    SK_CUDA_EACH(i, (size_t)grid->block_count * SK_BLOCK_CELLS)
    {
        const sk_plain_cell cell = {(int)(i / SK_BLOCK_CELLS), (int)(i % SK_BLOCK_CELLS)};
        for (int d = 0; d < SELKIE_DIM; d++) {
            float push = 0.0f, *velocity = &grid->fields[SK_FIELD_VELOCITY_X + d][i];
            const sk_plain_cell below = sk_plain_next(grid, cell, d, -1);
            const int kinds =
                (grid->kinds[i] & SK_CELL_KIND_MASK) + (grid->kinds[sk_plain_index(below)] & SK_CELL_KIND_MASK);
            if (cell.slot && kinds == SK_CELL_AIR + SK_CELL_LIQUID && open_fraction_at(step, cell, d) > 0.0f) {
                push = tension_on_face(step, &constants->tension, material, cell, d);
                *velocity = (*velocity == *velocity ? *velocity : 0.0f) + push;
            }
            grid->fields[step->tension_push + d][i] = push;
        }
    }
}

/* The pressure at the border of the full cells: unilateral incompressibility takes it into its problem. */
static __global__ void press_cells(const sk_step *step, const sk_cuda_constants *constants)
{
    SK_CUDA_WAIT();
    float *capillary = step->grid.fields[step->capillary];
    const uint32_t *material = materials_of(step, constants);
    SK_CUDA_EACH(i, (size_t)step->grid.block_count * SK_BLOCK_CELLS)
    {
        const sk_plain_cell cell = {(int)(i / SK_BLOCK_CELLS), (int)(i % SK_BLOCK_CELLS)};
        capillary[i] = cell.slot ? tension_at_border(step, &constants->tension, material, cell) : 0.0f;
    }
}

static void launch_tension(sk_cuda *cuda, const sk_step *host)
{
    launch_curvatures(cuda);
    if (host->capillary)
        SK_LAUNCH_SIMPLE(cuda, press_cells, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step,
                         &cuda->device->constants);
    else
        SK_LAUNCH_SIMPLE(cuda, push_faces, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step,
                         &cuda->device->constants);
}

selkie_code SK_DIM(sk_cuda_tension)(sk_step *step, selkie_error *error)
{
    return sk_cuda_run(step, "surface_tension", launch_tension, error);
}

/* --- SPH --- */

/* Fill and kinds of the cells, as the curvature wants them. */
static __global__ void fill_cells(const sk_step *step)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(i, (size_t)step->grid.block_count * SK_BLOCK_CELLS)
    {
        const sk_plain_cell cell = {(int)(i / SK_BLOCK_CELLS), (int)(i % SK_BLOCK_CELLS)};
        if (cell.slot) {
            tension_fill_cell(step, cell);
            continue;
        }
        step->grid.fields[SK_FIELD_FILL][i] = 0.0f;
        step->grid.kinds[i] = SK_CELL_AIR;
    }
}

/* The pressure of the curved surface at each particle. */
static __global__ void press_particles(const sk_step *step, const sk_cuda_constants *constants)
{
    SK_CUDA_WAIT();
    const uint32_t *material = materials_of(step, constants);
    SK_CUDA_EACH_CELL(cell, step)
    tension_press_cell(step, &constants->tension, material, cell, (float *)step->surface_pressure);
}

static void launch_tension_of_particles(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_LAUNCH_SIMPLE(cuda, fill_cells, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step);
    launch_curvatures(cuda);
    SK_LAUNCH_SIMPLE(cuda, press_particles, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step,
                     &cuda->device->constants);
}

selkie_code SK_DIM(sk_cuda_tension_of_particles)(sk_step *step, selkie_error *error)
{
    return sk_cuda_run(step, "curvature", launch_tension_of_particles, error);
}
