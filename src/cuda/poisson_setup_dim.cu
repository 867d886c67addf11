/* The matrix and the levels of the GPU solver: rows from the grid's fields, places and lists of blocks, coarse
 * coefficients, and the inverse of the coarsest matrix. */
#include "cuda/device.h"

extern "C" {
#include "cuda/phases.h"
}
#include "cuda/poisson_parts.h"

/* The rows of level 0 from the grid's fields: sk_read_cell of linalg_kernels.h. A thread a cell. */
static __global__ void __launch_bounds__(CELLS) read_rows(sk_step *step, sk_cuda_solver *solver)
{
    const sk_grid *grid = &step->grid;
    const sk_cuda_level *level = &solver->level[0];
    const float *diagonal = grid->fields[SK_FIELD_DIAGONAL];
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const int c = (int)threadIdx.x, along[3] = {c % N, c / N % N, c / N / N};
        const size_t at = (size_t)block * CELLS + c;
        const float d = diagonal[at];
        const int is_unknown = d > SK_SMALLEST_DIAGONAL;
        float sum = 0.0f, lower_faces[3] = {0.0f, 0.0f, 0.0f};
        for (int axis = 0; is_unknown && axis < SELKIE_DIM; axis++) {
            const int stride = axis == 0 ? 1 : axis == 1 ? N : N * N;
            const float *face = grid->fields[SK_FIELD_FACE_X + axis];
            const size_t before =
                along[axis] > 0 ? at - stride : (size_t)grid->faces[block][2 * axis] * CELLS + c + (N - 1) * stride;
            const size_t after = along[axis] < N - 1
                                     ? at + stride
                                     : (size_t)grid->faces[block][2 * axis + 1] * CELLS + c - (N - 1) * stride;
            const float lower = before >= CELLS && diagonal[before] > SK_SMALLEST_DIAGONAL ? face[at] : 0.0f;
            const float upper = after >= CELLS && diagonal[after] > SK_SMALLEST_DIAGONAL ? face[after] : 0.0f;
            lower_faces[axis] = lower;
            sum += lower + upper;
        }
        float excess = is_unknown ? d - sum : 0.0f;
        excess = excess > SK_EXCESS_ROUND_OFF * d ? excess : 0.0f;
        for (int axis = 0; axis < SELKIE_DIM; axis++)
            level->face[axis][at] = lower_faces[axis];
        level->excess[at] = excess;
        level->inverse[at] = is_unknown ? 1.0f / (sum + excess) : 0.0f;
        const int unknowns = sk_cuda_sum(is_unknown);
        if (c == 0)
            solver->active[block] = unknowns;
    }
}

/* Lists the blocks of a level by colour. `count` blocks are numbered from 1; a block is left out if `active` says so.
 */
SK_DEVICE void list_blocks(sk_cuda_solver *solver, int depth, int count, const int32_t *active)
{
    sk_cuda_level *level = &solver->level[depth];
    const int share = (count + (int)blockDim.x - 1) / (int)blockDim.x;
    const int first = 1 + (int)threadIdx.x * share, last = first + share <= count + 1 ? first + share : count + 1;
    int found[2] = {0, 0}, total[2], next[2];
    for (int pass = 0; pass < 2; pass++) {
        for (int b = first; b < last; b++) {
            const int place = level->place[b];
            const int colour = (place % level->blocks[0] + place / level->blocks[0] % level->blocks[1] +
                                place / level->blocks[0] / level->blocks[1]) &
                               1;
            if (active && !active[b])
                continue;
            if (pass)
                level->list[next[colour]++] = b;
            else
                found[colour]++;
        }
        if (pass == 0) {
            next[0] = sk_cuda_scan(found[0], &total[0]);
            next[1] = sk_cuda_scan(found[1], &total[1]) + total[0];
        }
    }
    if (threadIdx.x == 0) {
        solver->count[depth][0] = total[0];
        solver->count[depth][1] = total[1];
    }
    __threadfence();
    __syncthreads();
}

/* The place of the parent of a place. */
SK_DEVICE int parent_place(const sk_cuda_level *fine, const sk_cuda_level *coarse, int place)
{
    const int x = place % fine->blocks[0], y = place / fine->blocks[0] % fine->blocks[1],
              z = place / fine->blocks[0] / fine->blocks[1];
    return x / 2 + coarse->blocks[0] * (y / 2 + coarse->blocks[1] * (z / 2));
}

SK_DEVICE int neighbour_at(const sk_cuda_level *level, int place, int side)
{
    int at[3] = {place % level->blocks[0], place / level->blocks[0] % level->blocks[1],
                 place / level->blocks[0] / level->blocks[1]};
    at[side / 2] += side & 1 ? 1 : -1;
    if (at[side / 2] < 0 || at[side / 2] >= level->blocks[side / 2])
        return 0;
    return level->map[at[0] + level->blocks[0] * (at[1] + level->blocks[1] * at[2])];
}

/* Lists and neighbours of level 0. One thread block. */
SK_DEVICE void lay_out_first(const sk_step *step, sk_cuda_solver *solver)
{
    const sk_grid *grid = &step->grid;
    sk_cuda_level *level = &solver->level[0];
    for (int b = 1 + (int)threadIdx.x; b < grid->block_count; b += (int)blockDim.x) {
        const int32_t *at = grid->coordinates[b];
        level->place[b] = at[0] + level->blocks[0] * (at[1] + level->blocks[1] * at[2]);
        for (int side = 0; side < SIDES; side++) {
            const int other = grid->faces[b][side];
            level->neighbour[b][side] = other && solver->active[other] ? other : 0;
        }
    }
    __threadfence();
    __syncthreads();
    list_blocks(solver, 0, grid->block_count - 1, solver->active);
}

/* Blocks, lists and neighbours of a coarse level. One thread block. */
SK_DEVICE void lay_out(sk_cuda_solver *solver, int depth)
{
    sk_cuda_level *fine = &solver->level[depth - 1], *level = &solver->level[depth];
    const int fine_count = blocks_of(solver, depth - 1);
    for (int i = (int)threadIdx.x; i < level->places; i += (int)blockDim.x)
        level->map[i] = 0;
    __threadfence();
    __syncthreads();
    for (int n = (int)threadIdx.x; n < fine_count; n += (int)blockDim.x)
        level->map[parent_place(fine, level, fine->place[fine->list[n]])] = 1;
    __threadfence();
    __syncthreads();

    /* Numbers in the order of the places. */
    const int share = (level->places + (int)blockDim.x - 1) / (int)blockDim.x;
    const int first = (int)threadIdx.x * share, last = first + share < level->places ? first + share : level->places;
    int found = 0, total;
    for (int i = first; i < last; i++)
        found += level->map[i];
    int number = 1 + sk_cuda_scan(found, &total);
    for (int i = first; i < last; i++)
        if (level->map[i]) {
            level->place[number] = i;
            level->map[i] = number++;
        }
    __threadfence();
    __syncthreads();
    for (int n = (int)threadIdx.x; n < fine_count; n += (int)blockDim.x) {
        const int block = fine->list[n];
        fine->parent[block] = level->map[parent_place(fine, level, fine->place[block])];
    }
    for (int b = 1 + (int)threadIdx.x; b <= total; b += (int)blockDim.x)
        for (int side = 0; side < SIDES; side++)
            level->neighbour[b][side] = neighbour_at(level, level->place[b], side);
    list_blocks(solver, depth, total, nullptr);
}

/* The structure of all levels. One thread block. */
static __global__ void lay_out_levels(const sk_step *step, sk_cuda_solver *solver)
{
    lay_out_first(step, solver);
    for (int depth = 1; depth < solver->level_count; depth++)
        lay_out(solver, depth);
    int unknowns = 0;
    for (int b = 1 + (int)threadIdx.x; b < step->grid.block_count; b += (int)blockDim.x)
        unknowns += solver->active[b];
    unknowns = sk_cuda_sum(unknowns);
    if (threadIdx.x == 0) {
        solver->unknowns[0] = unknowns;
        for (int depth = 1; depth < solver->level_count; depth++)
            solver->unknowns[depth] = 0;
    }
}

/* A coefficient of the level above, at cell (i, j, k) of its cells counted over the whole domain; 0 without a block. */
SK_DEVICE float fine_value(const sk_cuda_level *fine, const int32_t *map, const float *field, const int cell[3])
{
    const int x = cell[0] >> SK_BLOCK_LOG, y = cell[1] >> SK_BLOCK_LOG,
              z = SELKIE_DIM == 3 ? cell[2] >> SK_BLOCK_LOG : 0;
    if (x >= fine->blocks[0] || y >= fine->blocks[1] || z >= fine->blocks[2])
        return 0.0f;
    const int block = map[x + fine->blocks[0] * (y + fine->blocks[1] * z)];
    if (!block)
        return 0.0f;
    return field[(size_t)block * CELLS +
                 cell_index(cell[0] & (N - 1), cell[1] & (N - 1), SELKIE_DIM == 3 ? cell[2] & (N - 1) : 0)];
}

SK_DEVICE float coarse_face(const sk_cuda_level *fine, const int32_t *map, int axis, const int first[3])
{
    float sum = 0.0f;
    for (int child = 0; child < SK_CORNERS; child++) {
        const int cell[3] = {first[0] + (child & 1), first[1] + (child >> 1 & 1), first[2] + (child >> 2)};
        if (!(child >> axis & 1))
            sum += fine_value(fine, map, fine->face[axis], cell);
    }
    return SK_COARSE_FACE_SHARE * sum;
}

/* Coefficients of a coarse level. A thread a cell. Blocks of level 0 without unknowns have zeros. */
static __global__ void __launch_bounds__(CELLS) coarsen(sk_cuda_solver *solver, const sk_cuda_data *data, int depth)
{
    const sk_cuda_level *fine = &solver->level[depth - 1], *level = &solver->level[depth];
    const int32_t *map = depth == 1 ? data->slot_of_place : fine->map;
    const float softness = SELKIE_DIM == 3 ? 0.15f : 0.1f; /* as in linalg/multigrid_setup_dim.c */
    for (int n = (int)blockIdx.x; n < blocks_of(solver, depth); n += (int)gridDim.x) {
        const int block = level->list[n], place = level->place[block], c = (int)threadIdx.x;
        const size_t at = (size_t)block * CELLS + c;
        const int origin[3] = {place % level->blocks[0] * N, place / level->blocks[0] % level->blocks[1] * N,
                               SELKIE_DIM == 3 ? place / level->blocks[0] / level->blocks[1] * N : 0};
        const int first[3] = {2 * (origin[0] + c % N), 2 * (origin[1] + c / N % N),
                              SELKIE_DIM == 3 ? 2 * (origin[2] + c / N / N) : 0};
        float sum = 0.0f, excess = 0.0f;
        for (int child = 0; child < SK_CORNERS; child++) {
            const int cell[3] = {first[0] + (child & 1), first[1] + (child >> 1 & 1), first[2] + (child >> 2)};
            const float e = fine_value(fine, map, fine->excess, cell);
            excess += SK_RESTRICTION_SCALE * e / (1.0f + softness * e);
        }
        sum = excess;
        for (int axis = 0; axis < SELKIE_DIM; axis++) {
            int next[3] = {first[0], first[1], first[2]};
            next[axis] += 2;
            const float lower = coarse_face(fine, map, axis, first), upper = coarse_face(fine, map, axis, next);
            level->face[axis][at] = lower;
            sum += lower + upper;
        }
        level->excess[at] = excess;
        level->inverse[at] = sum > 0.0f ? 1.0f / sum : 0.0f;
        level->x[at] = level->b[at] = 0.0f;
        const int unknowns = sk_cuda_sum((int)(sum > 0.0f));
        if (c == 0)
            atomicAdd(&solver->unknowns[depth], unknowns);
    }
}

/* The coarsest level: its unknowns, and the inverse of their matrix by Gauss-Jordan. One thread block. */
static __global__ void prepare_bottom(sk_cuda_solver *solver)
{
    __shared__ double a[SK_CUDA_BOTTOM][SK_CUDA_BOTTOM];
    __shared__ double diagonal[SK_CUDA_BOTTOM], row_k[SK_CUDA_BOTTOM], column_k[SK_CUDA_BOTTOM];
    __shared__ int depth, count;
    const int t = (int)threadIdx.x;
    if (t == 0) {
        depth = 0;
        while (depth < solver->level_count - 1 && solver->unknowns[depth] > SK_CUDA_BOTTOM)
            depth++;
        count = 0;
        solver->bottom = depth;
        solver->twice = 0;
        /* Second visits as in is_worth_it of linalg/multigrid_cycle_dim.c. */
        for (int l = 1; l <= 2 && l < depth; l++) {
            const int fine = blocks_of(solver, l - 1), coarse = blocks_of(solver, l);
            if (!(SELKIE_DIM == 3 && coarse > fine / 4) && (l == 1 || coarse >= 24))
                solver->twice |= 1 << l;
        }
    }
    __syncthreads();

    /* The unknowns in the order of the list and of the cells. */
    const sk_cuda_level *level = &solver->level[depth];
    for (int n = 0; n < blocks_of(solver, depth); n++)
        for (int c = 0; c < CELLS; c += (int)blockDim.x) {
            const int at = level->list[n] * CELLS + c + t;
            int total;
            const int is = c + t < CELLS && level->inverse[at] > 0.0f, before = count + sk_cuda_scan(is, &total);
            if (is && before < SK_CUDA_BOTTOM)
                solver->bottom_cell[before] = at;
            __syncthreads();
            if (t == 0)
                count += total;
            __syncthreads();
        }
    const int unknowns = count < SK_CUDA_BOTTOM ? count : SK_CUDA_BOTTOM;
    __threadfence();
    __syncthreads();

    /* The matrix. */
    for (int e = t; e < SK_CUDA_BOTTOM * SK_CUDA_BOTTOM; e += (int)blockDim.x)
        a[e / SK_CUDA_BOTTOM][e % SK_CUDA_BOTTOM] = 0.0;
    __syncthreads();
    if (t < unknowns) {
        const int block = solver->bottom_cell[t] / CELLS, c = solver->bottom_cell[t] % CELLS;
        double sum = level->excess[solver->bottom_cell[t]];
        for (int side = 0; side < SIDES; side++) {
            const int axis = side / 2, stride = axis == 0 ? 1 : axis == 1 ? N : N * N, upper = side & 1;
            const int along = c / stride % N, leaves = along == (upper ? N - 1 : 0);
            const int other = leaves ? level->neighbour[block][side] : block;
            const int there = other * CELLS + c + (leaves ? (upper ? -1 : 1) * (N - 1) : (upper ? 1 : -1)) * stride;
            const double face = level->face[axis][upper ? there : solver->bottom_cell[t]];
            sum += face;
            for (int j = 0; face > 0.0 && j < unknowns; j++)
                if (solver->bottom_cell[j] == there)
                    a[t][j] -= face;
        }
        a[t][t] = sum;
        diagonal[t] = sum;
    }
    __syncthreads();

    /* Without an excess the matrix is singular; a small pivot then counts as infinite. */
    for (int k = 0; k < unknowns; k++) {
        const double pivot = a[k][k] > 1e-10 * diagonal[k] ? 1.0 / a[k][k] : 0.0;
        __syncthreads();
        if (t < SK_CUDA_BOTTOM) {
            row_k[t] = (t == k ? 1.0 : a[k][t]) * pivot;
            column_k[t] = t == k ? 0.0 : a[t][k];
        }
        __syncthreads();
        for (int e = t; e < SK_CUDA_BOTTOM * SK_CUDA_BOTTOM; e += (int)blockDim.x) {
            const int i = e / SK_CUDA_BOTTOM, j = e % SK_CUDA_BOTTOM;
            a[i][j] = i == k ? row_k[j] : (j == k ? 0.0 : a[i][j]) - column_k[i] * row_k[j];
        }
        __syncthreads();
    }
    for (int e = t; e < SK_CUDA_BOTTOM * SK_CUDA_BOTTOM; e += (int)blockDim.x) {
        const int i = e / SK_CUDA_BOTTOM, j = e % SK_CUDA_BOTTOM;
        solver->bottom_inverse[i][j] = i < unknowns && j < unknowns ? (float)(0.5 * (a[i][j] + a[j][i])) : 0.0f;
    }
    if (t == 0)
        solver->bottom_unknowns = unknowns;
}

/* Launches of the setup of a solve. */
void SK_DIM(sk_cuda_prepare_solve)(sk_cuda *cuda)
{
    sk_step *step = &cuda->device->step;
    sk_cuda_solver *solver = cuda->solver;
    SK_LAUNCH(read_rows, LAUNCH_BLOCKS, CELLS, cuda->stream, step, solver);
    SK_LAUNCH(lay_out_levels, 1, SK_CUDA_ONE, cuda->stream, step, solver);
    for (int depth = 1; depth < cuda->solver_shadow.level_count; depth++)
        SK_LAUNCH(coarsen, launch_width(cuda, depth), CELLS, cuda->stream, solver, cuda->data, depth);
    SK_LAUNCH(prepare_bottom, 1, CELLS / 2, cuda->stream, solver);
}
