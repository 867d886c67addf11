/* The matrix and the levels of the GPU solver: rows from the grid's fields, places and lists of blocks, coarse
 * coefficients, and the inverse of the coarsest matrix. */
#include "cuda/device.h"

extern "C" {
#include "cuda/phases.h"
#include "grid/wrap_kernels.h"
}
#include "cuda/poisson_bottom.h"

SK_DEVICE void coordinates_of(const sk_cuda_level *level, int place, int at[3])
{
    at[0] = place % level->blocks[0];
    at[1] = place / level->blocks[0] % level->blocks[1];
    at[2] = place / level->blocks[0] / level->blocks[1];
}

SK_DEVICE int place_at(const sk_cuda_level *level, const int at[3])
{
    return at[0] + level->blocks[0] * (at[1] + level->blocks[1] * at[2]);
}

/* Puts an entry on the list of its colour. The order is arbitrary; no result depends on it. */
SK_DEVICE void list_block(sk_cuda_solver *solver, int depth, int entry, const int at[3])
{
    sk_cuda_level *level = &solver->level[depth];
    const int colour = (at[0] + at[1] + at[2]) & 1, n = atomicAdd(&solver->count[depth][colour], 1);
    level->list[colour ? level->capacity - 1 - n : n] = entry;
}

/* Lists an active block of the grid, and numbers and lists the coarse blocks above it that are new. By one thread. */
SK_DEVICE void list_with_parents(sk_cuda_solver *solver, const sk_grid *grid, int block, enum block_form form)
{
    int at[3] = {grid->coordinates[block][0], grid->coordinates[block][1], grid->coordinates[block][2]};
    solver->level[0].place[block] = place_at(&solver->level[0], at);
    if (solver->level[0].form)
        solver->level[0].form[block] = (uint8_t)form;
    list_block(solver, 0, block | (int)form << FORM_SHIFT, at);
    for (int depth = 1; depth < solver->level_count; depth++) {
        sk_cuda_level *level = &solver->level[depth];
        for (int d = 0; d < SELKIE_DIM; d++)
            at[d] /= 2;
        const int place = place_at(level, at);
        if (atomicCAS(&level->map[place], 0, -1) != 0)
            return; /* another block has done this and what is above */
        const int number = 1 + atomicAdd(&solver->numbers[depth], 1);
        level->map[place] = number;
        level->place[number] = place;
        list_block(solver, depth, number, at);
    }
}

/* Neighbours of a block, and its parent: what thread t of those that share the block does. */
SK_DEVICE void link_block(const sk_step *step, sk_cuda_solver *solver, int depth, int block, const int coordinates[3],
                          int t)
{
    sk_cuda_level *level = &solver->level[depth];
    int at[3] = {coordinates[0], coordinates[1], coordinates[2]};
    if (t > SIDES)
        return;
    if (t < SIDES && depth == 0) {
        const int other = step->grid.faces[block][t];
        level->neighbour[block][t] = other && solver->active[other] ? other : 0;
    } else if (t < SIDES) {
        at[t / 2] += t & 1 ? 1 : -1;
        if (level->joined[t / 2])
            at[t / 2] = sk_wrap_index(at[t / 2], level->joined[t / 2]);
        const int outside = at[t / 2] < 0 || at[t / 2] >= level->blocks[t / 2];
        level->neighbour[block][t] = outside ? 0 : level->map[place_at(level, at)];
    } else if (depth + 1 < solver->level_count) {
        const int half = N / 2, above[3] = {at[0] / 2, at[1] / 2, SELKIE_DIM == 3 ? at[2] / 2 : 0};
        level->parent[block] =
            level[1].map[place_at(level + 1, above)] * CELLS +
            cell_index((at[0] & 1) * half, (at[1] & 1) * half, SELKIE_DIM == 3 ? (at[2] & 1) * half : 0);
    }
}

/* What read_rows counts in a block, 10 bits each: one addition by each warp. */
enum {
    COUNT_BITS = 10,
    COUNT_OF_UNKNOWNS = 1,
    COUNT_OF_SURFACE = 1 << COUNT_BITS,
    COUNT_OF_PARTLY = 1 << 2 * COUNT_BITS
};
SK_DEVICE int counted(int counts, int of)
{
    return counts / of & ((1 << COUNT_BITS) - 1);
}

/* The rows of level 0 from the grid's fields: sk_read_cell of linalg_kernels.h. A thread a cell. */
static __global__ void __launch_bounds__(CELLS) read_rows(sk_step *step, sk_cuda_solver *solver)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const sk_cuda_level *level = &solver->level[0];
    const float *diagonal = grid->fields[SK_FIELD_DIAGONAL];
    __shared__ int sums[2]; /* of blocks in turn */
    int turn = 1;
    if (threadIdx.x < 2)
        sums[threadIdx.x] = 0;
    __syncthreads();
    SK_CUDA_EACH_BLOCK(block, step)
    {
        turn ^= 1;
        const int c = (int)threadIdx.x, along[3] = {c % N, c / N % N, c / N / N};
        const size_t at = (size_t)block * CELLS + c;
        const float d = diagonal[at];
        const int is_unknown = d > SK_SMALLEST_DIAGONAL;
        float sum = 0.0f, lower_faces[3] = {0.0f, 0.0f, 0.0f};
        int open = is_unknown ? IS_UNKNOWN : 0, partly = 0;
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
            open |= (lower > 0.0f) << (2 * axis) | (upper > 0.0f) << (2 * axis + 1);
            partly |= (lower != 0.0f && lower != 1.0f) || (upper != 0.0f && upper != 1.0f);
        }
        float excess = is_unknown ? d - sum : 0.0f;
        excess = excess > SK_EXCESS_ROUND_OFF * d ? excess : 0.0f;
        for (int axis = 0; axis < SELKIE_DIM; axis++)
            level->face[axis][at] = lower_faces[axis];
        level->excess[at] = excess;
        level->inverse[at] = is_unknown ? 1.0f / (sum + excess) : 0.0f;
        if (level->open)
            level->open[at] = (uint8_t)open;
        const int of_warp = __popc(__ballot_sync(~0u, is_unknown)) * COUNT_OF_UNKNOWNS +
                            __popc(__ballot_sync(~0u, excess > 0.0f)) * COUNT_OF_SURFACE +
                            __popc(__ballot_sync(~0u, partly)) * COUNT_OF_PARTLY;
        if (c % 32 == 0 && of_warp)
            atomicAdd(&sums[turn], of_warp);
        __syncthreads();
        if (c == 0) {
            const int counts = sums[turn];
            sums[turn] = 0; /* the next block but one adds to it, after a barrier */
            const int unknowns = counted(counts, COUNT_OF_UNKNOWNS), surface = counted(counts, COUNT_OF_SURFACE);
            if (surface)
                atomicAdd(&solver->surface_cells, surface);
            solver->active[block] = unknowns;
            solver->partial[0][block] = solver->partial[1][block] = solver->partial[2][block] = 0.0;
            if (unknowns) {
                atomicAdd(&solver->unknowns[0], unknowns);
                list_with_parents(solver, grid, block,
                                  counted(counts, COUNT_OF_PARTLY) ? ANY_ROWS
                                  : surface                        ? OPEN_ROWS_WITH_EXCESS
                                                                   : OPEN_ROWS);
            }
        }
    }
}

/* The block of the fine level at a place; 0 = none. */
SK_DEVICE int fine_block(const sk_cuda_level *fine, const int32_t *map, const int at[3])
{
    for (int d = 0; d < SELKIE_DIM; d++)
        if (at[d] >= fine->blocks[d])
            return 0;
    return map[place_at(fine, at)];
}

/* A coarse block: its coordinates, and the fine blocks from its first child on, three along each axis. */
enum { FINE_BLOCKS = SELKIE_DIM == 3 ? 27 : 9 };
typedef struct coarse_place {
    int at[3], fine[FINE_BLOCKS];
} coarse_place;

/* Finds the fine blocks of a coarse block, a thread a block. Blocks beyond a joined side are the first ones. */
template <bool JOINED>
SK_DEVICE void find_place(const sk_cuda_level *fine, const sk_cuda_level *level, const int32_t *map, int block,
                          coarse_place *place)
{
    const int t = (int)threadIdx.x;
    __syncthreads();
    if (t < FINE_BLOCKS) {
        const int digits[3] = {t % 3, t / 3 % 3, t / 9};
        int above[3], at[3] = {0, 0, 0};
        coordinates_of(level, level->place[block], above);
        for (int d = 0; d < SELKIE_DIM; d++) {
            at[d] = 2 * above[d] + digits[d];
            at[d] = JOINED && fine->joined[d] && at[d] == fine->joined[d] ? 0 : at[d];
        }
        place->fine[t] = fine_block(fine, map, at);
        if (t < 3)
            place->at[t] = t == 0 ? above[0] : t == 1 ? above[1] : above[2];
    }
    __syncthreads();
}

/* The fine lower faces along an axis of the children of a coarse cell, whose first one is at `first` of a block. Block
 * 0 has zeros. */
SK_DEVICE void load_faces(const float *face, int block, int axis, const int first[3], float faces[SK_CORNERS / 2])
{
    const float *from = face + (size_t)block * CELLS + cell_index(first[0], first[1], first[2]);
    for (int n = 0; n < SK_CORNERS / 2; n++) /* along the first axis: by the bits of j and k */
        if (axis == 0)
            SK_CUDA_LOAD(faces[n], from + cell_index(0, n & 1, n >> 1));
    for (int n = 0; n < SK_CORNERS / 4; n++) { /* along the others: pairs */
        float2 both;
        if (axis == 0)
            continue;
        SK_CUDA_LOAD_TWO(both, from + (axis == 1 ? cell_index(0, 0, n) : cell_index(0, n, 0)));
        faces[2 * n] = both.x, faces[2 * n + 1] = both.y;
    }
}

SK_DEVICE float sum_of_faces(const float faces[SK_CORNERS / 2])
{
    float sum = 0.0f;
    for (int n = 0; n < SK_CORNERS / 2; n++)
        sum += faces[n];
    return sum;
}

/* What the children of a coarse cell add up to: faces on its lower and upper sides, and the excess. */
typedef struct child_sums {
    float lower[SELKIE_DIM], upper[SELKIE_DIM], excess;
} child_sums;

SK_DEVICE float excess_of_child(float excess, float softness)
{
    return SK_RESTRICTION_SCALE * excess / (1.0f + softness * excess);
}

/* From numbers. All loads come before the first sum: each takes longer than the sums. `after` is the block with the
 * faces above along each axis, `first` the first child. */
SK_DEVICE child_sums add_any_children(const sk_cuda_level *fine, int own, const int after[SELKIE_DIM],
                                      const int first[3], float softness)
{
    float2 excesses[SK_CORNERS / 2];
    float lowers[SELKIE_DIM][SK_CORNERS / 2], uppers[SELKIE_DIM][SK_CORNERS / 2];
    for (int n = 0; n < SK_CORNERS / 2; n++)
        SK_CUDA_LOAD_TWO(excesses[n], fine->excess + (size_t)own * CELLS +
                                          cell_index(first[0], first[1] + (n & 1), first[2] + (n >> 1)));
    for (int axis = 0; axis < SELKIE_DIM; axis++) {
        int next[3] = {first[0], first[1], first[2]};
        next[axis] = (first[axis] + 2) % N;
        load_faces(fine->face[axis], own, axis, first, lowers[axis]);
        load_faces(fine->face[axis], after[axis], axis, next, uppers[axis]);
    }
    child_sums sums;
    sums.excess = 0.0f;
    for (int n = 0; n < SK_CORNERS / 2; n++) {
        sums.excess += excess_of_child(excesses[n].x, softness);
        sums.excess += excess_of_child(excesses[n].y, softness);
    }
    for (int axis = 0; axis < SELKIE_DIM; axis++) {
        sums.lower[axis] = sum_of_faces(lowers[axis]);
        sums.upper[axis] = sum_of_faces(uppers[axis]);
    }
    return sums;
}

/* The same from the bits of open sides. */
SK_DEVICE child_sums add_open_children(const sk_cuda_level *fine, int own, int form, const int first[3], float softness)
{
    uint32_t bits[SK_CORNERS / 2];
    float2 excesses[SK_CORNERS / 2];
    for (int n = 0; n < SK_CORNERS / 2; n++) {
        const size_t at = (size_t)own * CELLS + cell_index(first[0], first[1] + (n & 1), first[2] + (n >> 1));
        bits[n] = *(const uint16_t *)(const void *)(fine->open + at);
        excesses[n].x = excesses[n].y = 0.0f;
        if (form == OPEN_ROWS_WITH_EXCESS)
            excesses[n] = *(const float2 *)(const void *)(fine->excess + at);
    }
    child_sums sums;
    int lower[SELKIE_DIM] = {0}, upper[SELKIE_DIM] = {0};
    sums.excess = 0.0f;
    for (int child = 0; child < SK_CORNERS; child++) {
        const uint32_t open = bits[child >> 1] >> (8 * (child & 1));
        sums.excess += excess_of_child(child & 1 ? excesses[child >> 1].y : excesses[child >> 1].x, softness);
        for (int axis = 0; axis < SELKIE_DIM; axis++) {
            const int is_upper = child >> axis & 1;
            lower[axis] += is_upper ? 0 : (int)(open >> (2 * axis) & 1);
            upper[axis] += is_upper ? (int)(open >> (2 * axis + 1) & 1) : 0;
        }
    }
    for (int axis = 0; axis < SELKIE_DIM; axis++) {
        sums.lower[axis] = (float)lower[axis];
        sums.upper[axis] = (float)upper[axis];
    }
    return sums;
}

/* Coefficients of cell c of a coarse block. Returns whether it is an unknown. Blocks of level 0 without unknowns have
 * zeros. */
template <bool JOINED>
SK_DEVICE int coarsen_cell(const sk_cuda_level *fine, const sk_cuda_level *level, const coarse_place *place,
                           float softness, int block, int c)
{
    const int half = N / 2, cell[3] = {c % N, c / N % N, c / N / N};
    const size_t at = (size_t)block * CELLS + c;
    int first[3] = {0, 0, 0}, child = 0, outside = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        child += (cell[d] >= half) * (d == 0 ? 1 : d == 1 ? 3 : 9);
        first[d] = 2 * (cell[d] % half);
        /* A block beyond a joined side is a neighbour, but no child. */
        outside |= JOINED && 2 * place->at[d] + (cell[d] >= half) >= fine->blocks[d];
    }

    /* The children are in one fine block, the faces after them in it or the next one. */
    const int own = outside ? 0 : place->fine[child], form = fine->open ? fine->form[own] : ANY_ROWS;
    int after[SELKIE_DIM];
    for (int axis = 0; axis < SELKIE_DIM; axis++)
        after[axis] = outside                      ? 0
                      : (first[axis] + 2) % N != 0 ? own
                                                   : place->fine[child + (axis == 0   ? 1
                                                                          : axis == 1 ? 3
                                                                                      : 9)];
    const child_sums sums = form == ANY_ROWS ? add_any_children(fine, own, after, first, softness)
                                             : add_open_children(fine, own, form, first, softness);

    float sum = sums.excess;
    for (int axis = 0; axis < SELKIE_DIM; axis++) {
        float lower = SK_COARSE_FACE_SHARE * sums.lower[axis], upper = SK_COARSE_FACE_SHARE * sums.upper[axis];
        if (JOINED && fine->joined[axis] && !level->joined[axis]) {
            /* Cut at the sides, and stiffer: sk_coarsen_with_sides. */
            const float stiffer = 0.25f * (float)(fine->joined[axis] * N);
            const int end = 2 * place->at[axis] + (cell[axis] >= half) + (first[axis] + 2 == N);
            lower = place->at[axis] == 0 && cell[axis] == 0 ? 0.0f : stiffer * lower;
            upper = end == fine->joined[axis] ? 0.0f : stiffer * upper;
        }
        level->face[axis][at] = lower;
        sum += lower + upper;
    }
    level->excess[at] = sums.excess;
    level->inverse[at] = sum > 0.0f ? 1.0f / sum : 0.0f;
    level->x[at] = level->b[at] = 0.0f;
    return sum > 0.0f;
}

/* The softness of Dirichlet terms: linalg/multigrid_setup_dim.c. Cycles of solves under bounds are not thorough. */
SK_DEVICE float softness_of(const sk_cuda_solver *solver)
{
    return SELKIE_DIM == 3 && !solver->bounded ? 0.15f : 0.1f;
}

/* Coefficients of a coarse level. By `width` thread blocks from the given one on, a thread a cell. */
template <bool JOINED>
SK_DEVICE void coarsen_level(const sk_step *step, sk_cuda_solver *solver, const sk_cuda_data *data, int depth, int from,
                             int width)
{
    __shared__ coarse_place place;
    const sk_cuda_level *fine = &solver->level[depth - 1], *level = &solver->level[depth];
    const int32_t *map = depth == 1 ? data->slot_of_place : fine->map;
    for (int n = (int)blockIdx.x - from; n < blocks_of(solver, depth); n += width) {
        const int block = block_of_level(solver, depth, n);
        find_place<JOINED>(fine, level, map, block, &place);
        const int is = coarsen_cell<JOINED>(fine, level, &place, softness_of(solver), block, (int)threadIdx.x);
        link_block(step, solver, depth, block, place.at, (int)threadIdx.x);
        const int unknowns = __syncthreads_count(is);
        if (threadIdx.x == 0)
            atomicAdd(&solver->unknowns[depth], unknowns);
    }
}

template <bool JOINED>
static __global__ void __launch_bounds__(CELLS, 2)
    coarsen(const sk_step *step, sk_cuda_solver *solver, const sk_cuda_data *data, int depth)
{
    SK_CUDA_WAIT();
    coarsen_level<JOINED>(step, solver, data, depth, 0, (int)gridDim.x);
}

/* Where a warp has a block, a lane has several groups of four cells. Thread blocks have CELLS threads. */
enum { WARPS = CELLS / 32, FOURS = CELLS / 128 };
/* The block of a warp of level 0, where those of a thread block have the entries from `first` on; 0 = none. */
SK_DEVICE int block_of_warp(const sk_cuda_solver *solver, int first)
{
    const int n = first + (int)threadIdx.x / 32;
    return n < blocks_of(solver, 0) ? block_of_level(solver, 0, n) : 0;
}
SK_DEVICE float4 load_four(const float *from)
{
    return *(const float4 *)(const void *)from;
}
SK_DEVICE void store_four(float *to, float4 values)
{
    *(float4 *)(void *)to = values;
}
SK_DEVICE float part_of_four(float4 values, int c)
{
    return c == 0 ? values.x : c == 1 ? values.y : c == 2 ? values.z : values.w;
}

/* Right sides and the inverses of the diagonals, from a lane's first cell on. */
SK_DEVICE void load_right_sides(const sk_step *step, const sk_cuda_level *level, size_t base, float4 right[FOURS],
                                float4 inverse[FOURS])
{
    for (int part = 0; part < FOURS; part++) {
        right[part] = load_four(step->grid.fields[SK_FIELD_RIGHT_SIDE] + base + 128 * part);
        inverse[part] = load_four(level->inverse + base + 128 * part);
    }
}

/* Links the blocks of level 0, and finds the largest right side and from it the scale. By the first `width` thread
 * blocks, a warp a block. */
SK_DEVICE void find_scale(const sk_step *step, sk_cuda_solver *solver, int width)
{
    const sk_cuda_level *level = &solver->level[0];
    const int blocks = blocks_of(solver, 0), lane = (int)threadIdx.x % 32;
    for (int first = (int)blockIdx.x * WARPS; first < blocks; first += width * WARPS) {
        const int block = block_of_warp(solver, first);
        const size_t base = (size_t)block * CELLS + 4 * lane;
        float4 right[FOURS], inverse[FOURS];
        load_right_sides(step, level, base, right, inverse);
        int coordinates[3];
        coordinates_of(level, level->place[block], coordinates);
        if (block)
            link_block(step, solver, 0, block, coordinates, lane);
        double sums[2] = {0.0, 0.0};
        for (int part = 0; part < FOURS; part++)
            for (int c = 0; c < 4; c++) {
                const double value = part_of_four(inverse[part], c) > 0.0f ? (double)part_of_four(right[part], c) : 0.0;
                sums[0] += value;
                sums[1] = sk_cuda_largest_of(fabs(value), sums[1]);
            }
        sum_two_of_warp(sums, 1);
        if (block && lane == 0) {
            solver->partial[0][block] = sums[1];
            solver->partial[1][block] = sums[0];
        }
    }
    if (!sk_cuda_is_last_of(&solver->ticket, (unsigned)width))
        return;
    const double largest = find_largest(solver->partial[0], solver->block_count);
    const double sum = solver->surface_cells ? 0.0 : add_up(solver->partial[1], solver->block_count);
    if (threadIdx.x == 0) {
        const int fits = solver->bounded && sum <= 0.0; /* some cell is then on its bound */
        int exponent = 0;
        solver->broken = !(largest < INFINITY);
        if (!solver->broken)
            frexp(largest, &exponent);
        exponent = exponent > 120 ? 120 : exponent < -120 ? -120 : exponent;
        solver->scale = ldexpf(1.0f, -exponent);
        solver->mean = solver->unknowns[0] && !fits ? (double)solver->scale * sum / (double)solver->unknowns[0] : 0.0;
        solver->turn.mean_z = 0.0f;
    }
}

/* The scale by the first thread blocks, the first coarse level by the others: neither needs the other. */
template <bool JOINED>
static __global__ void __launch_bounds__(CELLS, 2)
    scale_and_coarsen(const sk_step *step, sk_cuda_solver *solver, const sk_cuda_data *data, int width)
{
    SK_CUDA_WAIT();
    if ((int)blockIdx.x < width)
        find_scale(step, solver, width);
    else
        coarsen_level<JOINED>(step, solver, data, 1, width, (int)gridDim.x - width);
}

/* The same for the smallest levels, from `top` on, up to the one that is solved exactly; solves under bounds ask for
 * all of them. One thread block. */
template <bool JOINED>
SK_DEVICE void coarsen_tail(const sk_step *step, sk_cuda_solver *solver, const sk_cuda_data *data, int top)
{
    for (int depth = top; depth < solver->level_count; depth++) {
        __shared__ coarse_place place;
        if (!solver->bounded && solver->unknowns[depth - 1] <= SK_CUDA_BOTTOM)
            return;
        const sk_cuda_level *fine = &solver->level[depth - 1], *level = &solver->level[depth];
        const int32_t *map = depth == 1 ? data->slot_of_place : fine->map;
        int unknowns = 0;
        for (int n = 0; n < blocks_of(solver, depth); n++) {
            const int block = block_of_level(solver, depth, n);
            find_place<JOINED>(fine, level, map, block, &place);
            unknowns += coarsen_cell<JOINED>(fine, level, &place, softness_of(solver), block, (int)threadIdx.x);
            link_block(step, solver, depth, block, place.at, (int)threadIdx.x);
        }
        unknowns = sk_cuda_sum(unknowns); /* a barrier too */
        if (threadIdx.x == 0)
            solver->unknowns[depth] = unknowns;
        __syncthreads();
    }
}

/* Finds the coarsest level, and the levels that are visited twice. By one thread. */
SK_DEVICE void choose_levels(sk_cuda_solver *solver)
{
    int depth = 0;
    while (depth < solver->level_count - 1 && solver->unknowns[depth] > SK_CUDA_BOTTOM)
        depth++;
    solver->state.bottom = depth;
    solver->state.twice = 0;
    /* Second visits as in is_worth_it of linalg/multigrid_cycle_dim.c. */
    for (int l = 1; l <= 2 && l < depth; l++) {
        const int fine = blocks_of(solver, l - 1), coarse = blocks_of(solver, l);
        const int sparse = SELKIE_DIM == 3 && !solver->bounded && coarse > fine / 4;
        if (!sparse && (l == 1 || coarse >= 24))
            solver->state.twice |= 1 << l;
    }
}

/* The residual and zero vectors, and whether there is anything to do. By all thread blocks but the first, a warp a
 * block. */
SK_DEVICE void start_solve(const sk_step *step, sk_cuda_solver *solver)
{
    const sk_cuda_level *level = &solver->level[0];
    const int blocks = blocks_of(solver, 0), width = (int)gridDim.x - 1, largest = solver->norm == SELKIE_NORM_MAX;
    const int lane = (int)threadIdx.x % 32;
    const float4 zero = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int first = ((int)blockIdx.x - 1) * WARPS; first < blocks; first += width * WARPS) {
        const int block = block_of_warp(solver, first);
        const size_t base = (size_t)block * CELLS + 4 * lane;
        float4 right[FOURS], inverse[FOURS];
        load_right_sides(step, level, base, right, inverse);
        double sums[2] = {0.0, 0.0};
        for (int part = 0; block && part < FOURS; part++) {
            float r[4];
            for (int c = 0; c < 4; c++) {
                const float own = part_of_four(inverse[part], c);
                const size_t at = base + 128 * part + c;
                r[c] = scaled_right_side(solver, own, part_of_four(right[part], c));
                float pushes = solver->bounded && r[c] < 0.0f ? 0.0f : r[c]; /* a bound holds what is pulled down */
                if (solver->lowered) {
                    const float bound = own > 0.0f ? solver->scale * step->grid.fields[SK_FIELD_LOWER][at] : 0.0f;
                    level->lower[at] = bound;
                    pushes = sk_natural_residual(sk_bound_gap(0.0f, 0.0f, bound), r[c], own);
                }
                sums[0] += (double)pushes * (double)pushes;
                sums[1] = largest ? sk_cuda_largest_of(fabs((double)pushes), sums[1]) : 0.0;
            }
            store_four(level->b + base + 128 * part, {r[0], r[1], r[2], r[3]});
            store_four(level->x + base + 128 * part, zero);
            store_four(solver->high + base + 128 * part, zero);
            store_four(solver->low + base + 128 * part, zero);
        }
        sum_two_of_warp(sums, largest);
        if (block && lane == 0) {
            solver->partial[0][block] = sums[0];
            solver->partial[1][block] = sums[1];
        }
    }
    if (!sk_cuda_is_last_of(&solver->ticket, (unsigned)width))
        return;
    double sums[2];
    add_up_two(solver->partial, solver->block_count, largest, sums);
    if (threadIdx.x == 0) {
        const double norm_b = sqrt(sums[0]);
        const double residual = largest ? sums[1] / (double)solver->scale : norm_b / norm_b;
        solver->norm_b = norm_b;
        solver->residual = solver->computed = norm_b > 0.0 ? residual : 0.0;
        solver->converged = norm_b == 0.0 || residual <= solver->tolerance;
        solver->turn.beta = solver->turn.alpha = 0.0f;
        solver->memory.rz = solver->memory.curvature = solver->drifted = 0.0;
        solver->iteration = solver->turn.skip = solver->careful = solver->state.check = 0;
        solver->state.done = solver->converged || solver->broken || solver->idle;
    }
}

/* The coarsest levels by the first thread block, the start of the iterations by the others: neither needs the other. */
template <bool JOINED>
static __global__ void __launch_bounds__(CELLS, 2)
    finish_setup(const sk_step *step, sk_cuda_solver *solver, const sk_cuda_data *data, int top)
{
    SK_CUDA_WAIT();
    if (blockIdx.x > 0) {
        start_solve(step, solver);
        return;
    }
    coarsen_tail<JOINED>(step, solver, data, top);
    if (threadIdx.x == 0)
        choose_levels(solver);
    __syncthreads();
    if (!solver->bounded) /* steps under bounds have levels of their own */
        prepare_bottom(solver);
}

/* --- Solves under bounds --- */

/* Right sides and bounds of the cells of a coarse level's own problem: sums of the children's. By the thread blocks of
 * a launch, a thread a cell. */
SK_DEVICE void restrict_level_problem(sk_cuda_solver *solver, const sk_cuda_data *data, int depth)
{
    const sk_cuda_level *fine = &solver->level[depth - 1], *level = &solver->level[depth];
    const int32_t *map = depth == 1 ? data->slot_of_place : fine->map;
    const int half = N / 2, c = (int)threadIdx.x, cell[3] = {c % N, c / N % N, c / N / N};
    for (int n = (int)blockIdx.x; n < blocks_of(solver, depth); n += (int)gridDim.x) {
        const int block = block_of_level(solver, depth, n);
        int above[3], child_block[3] = {0, 0, 0}, first[3] = {0, 0, 0};
        coordinates_of(level, level->place[block], above);
        for (int d = 0; d < SELKIE_DIM; d++) {
            child_block[d] = 2 * above[d] + (cell[d] >= half);
            first[d] = 2 * (cell[d] % half);
        }
        const int own = fine_block(fine, map, child_block), has = own && (depth > 1 || solver->active[own]);
        float sum = 0.0f, highest = -INFINITY; /* the bound of a coarse cell is the highest of its children's */
        for (int child = 0; has && child < SK_CORNERS; child++) {
            const size_t at = (size_t)own * CELLS +
                              cell_index(first[0] + (child & 1), first[1] + (child >> 1 & 1), first[2] + (child >> 2));
            sum += fine->b[at];
            if (solver->lowered && fine->inverse[at] > 0.0f)
                highest = sk_larger(fine->lower[at], highest);
        }
        level->b[(size_t)block * CELLS + c] = SK_RESTRICTION_SCALE * sum;
        if (solver->lowered)
            level->lower[(size_t)block * CELLS + c] = highest;
    }
}

static __global__ void __launch_bounds__(CELLS, 2)
    restrict_problem(sk_cuda_solver *solver, const sk_cuda_data *data, int depth)
{
    SK_CUDA_WAIT();
    if (!solver->state.done)
        restrict_level_problem(solver, data, depth);
}

/* The smallest levels, from `top` on. One thread block. */
static __global__ void __launch_bounds__(CELLS, 2)
    restrict_problem_tail(sk_cuda_solver *solver, const sk_cuda_data *data, int top)
{
    SK_CUDA_WAIT();
    for (int depth = top; !solver->state.done && depth < solver->level_count; depth++) {
        restrict_level_problem(solver, data, depth);
        __threadfence_block();
        __syncthreads();
    }
}

void SK_DIM(sk_cuda_restrict_problem)(sk_cuda *cuda)
{
    const int tail = tail_of(cuda, 2);
    for (int depth = 1; depth < tail; depth++)
        SK_LAUNCH(cuda, restrict_problem, 2 * launch_width(cuda, depth), CELLS, cuda->solver, cuda->data, depth);
    SK_LAUNCH(cuda, restrict_problem_tail, 1, CELLS, cuda->solver, cuda->data, tail);
}

/* Coefficients of the free cells of the root: sk_face_of_part and sk_excess_of_part. `part` has their inverse diagonals
 * already. Without held cells in a closed component the mean of the residual is left out. A thread a cell. */
static __global__ void __launch_bounds__(CELLS, 2)
    part_rows(const sk_cuda_solver *solver, sk_cuda_bounded *bounded, int root)
{
    SK_CUDA_WAIT();
    if (bounded->part.state.done || root > solver->state.bottom)
        return;
    const sk_cuda_level *level = &solver->level[root], *part = &bounded->part.level[root];
    const int c = (int)threadIdx.x, blocks = root ? blocks_of(solver, root) : solver->block_count - 1;
    for (int n = (int)blockIdx.x; n < blocks; n += (int)gridDim.x) {
        const int block = root ? block_of_level(solver, root, n) : n + 1;
        const size_t at = (size_t)block * CELLS + c;
        if (root == 0 && !solver->active[block]) {
            /* The next level reads all blocks of the grid. */
            part->inverse[at] = part->excess[at] = 0.0f;
            for (int axis = 0; axis < SELKIE_DIM; axis++)
                part->face[axis][at] = 0.0f;
            continue;
        }
        const int is_free = part->inverse[at] > 0.0f;
        float excess = level->excess[at];
        for (int axis = 0; axis < SELKIE_DIM; axis++) {
            const int stride = axis == 0 ? 1 : axis == 1 ? N : N * N, along = c / stride % N;
            const int below = level->neighbour[block][2 * axis], above = level->neighbour[block][2 * axis + 1];
            const size_t before = along > 0 ? at - stride : (size_t)below * CELLS + c + (N - 1) * stride;
            const size_t after = along < N - 1 ? at + stride : (size_t)above * CELLS + c - (N - 1) * stride;
            const float lower = level->face[axis][at], upper = level->face[axis][after];
            const int stays = part->inverse[before] > 0.0f;
            excess += stays ? 0.0f : lower;
            excess += part->inverse[after] > 0.0f ? 0.0f : upper;
            part->face[axis][at] = is_free && stays ? lower : 0.0f;
        }
        part->excess[at] = is_free ? excess : 0.0f;
        if (root == 0 && bounded->balanced && level->inverse[at] > 0.0f)
            part->b[at] -= bounded->mean_r;
    }
}

template <bool JOINED>
SK_DEVICE void coarsen_part_block(const sk_cuda_solver *part, const sk_cuda_level *fine, const sk_cuda_level *level,
                                  const int32_t *map, int block)
{
    __shared__ coarse_place place;
    find_place<JOINED>(fine, level, map, block, &place);
    coarsen_cell<JOINED>(fine, level, &place, softness_of(part), block, (int)threadIdx.x);
}

/* Levels below the root from the free cells. */
template <bool JOINED>
static __global__ void __launch_bounds__(CELLS, 2)
    coarsen_part(sk_cuda_bounded *bounded, const sk_cuda_data *data, int depth)
{
    SK_CUDA_WAIT();
    sk_cuda_solver *part = &bounded->part;
    if (part->state.done || depth > part->state.bottom)
        return;
    const sk_cuda_level *fine = &part->level[depth - 1], *level = &part->level[depth];
    const int32_t *map = depth == 1 ? data->slot_of_place : fine->map;
    for (int n = (int)blockIdx.x; n < blocks_of(part, depth); n += (int)gridDim.x)
        coarsen_part_block<JOINED>(part, fine, level, map, block_of_level(part, depth, n));
}

/* The smallest of them, from `top` on, and the coarsest matrix. One thread block. */
template <bool JOINED>
static __global__ void __launch_bounds__(CELLS, 2)
    coarsen_part_tail(sk_cuda_bounded *bounded, const sk_cuda_data *data, int root, int top)
{
    SK_CUDA_WAIT();
    sk_cuda_solver *part = &bounded->part;
    if (part->state.done || root > part->state.bottom)
        return;
    for (int depth = top; depth <= part->state.bottom; depth++) {
        const sk_cuda_level *fine = &part->level[depth - 1], *level = &part->level[depth];
        const int32_t *map = depth == 1 ? data->slot_of_place : fine->map;
        for (int n = 0; n < blocks_of(part, depth); n++)
            coarsen_part_block<JOINED>(part, fine, level, map, block_of_level(part, depth, n));
        __threadfence_block();
        __syncthreads();
    }
    prepare_bottom(part);
}

template <bool JOINED> static void launch_part(sk_cuda *cuda, int root)
{
    const int tail = tail_of(cuda, 2) > root ? tail_of(cuda, 2) : root + 1;
    SK_LAUNCH(cuda, part_rows, root ? 2 * launch_width(cuda, root) : full_width(cuda), CELLS, cuda->solver,
              cuda->bounded, root);
    for (int depth = root + 1; depth < tail; depth++)
        SK_LAUNCH(cuda, coarsen_part<JOINED>, 2 * launch_width(cuda, depth), CELLS, cuda->bounded, cuda->data, depth);
    /* Cycles read the levels above the tail before they wait. */
    SK_LAUNCH_AFTER(cuda, coarsen_part_tail<JOINED>, 1, CELLS, cuda->bounded, cuda->data, root, tail);
}

void SK_DIM(sk_cuda_coarsen_part)(sk_cuda *cuda, int root)
{
    if (has_joined_sides(cuda))
        launch_part<true>(cuda, root);
    else
        launch_part<false>(cuda, root);
}

/* --- Launches --- */

template <bool JOINED> static void launch_setup(sk_cuda *cuda)
{
    sk_step *step = &cuda->device->step;
    sk_cuda_solver *solver = cuda->solver;
    const int wide = full_width(cuda), tail = tail_of(cuda, 2), coarse = tail > 1 ? 2 * launch_width(cuda, 1) : 0;
    const int of_warps = cuda->expected_blocks / WARPS + 1, narrow = of_warps < wide ? of_warps : wide;
    SK_LAUNCH(cuda, read_rows, wide, CELLS, step, solver);
    SK_LAUNCH(cuda, scale_and_coarsen<JOINED>, narrow + coarse, CELLS, step, solver, cuda->data, narrow);
    for (int depth = 2; depth < tail; depth++)
        SK_LAUNCH(cuda, coarsen<JOINED>, 2 * launch_width(cuda, depth), CELLS, step, solver, cuda->data, depth);
    SK_LAUNCH(cuda, finish_setup<JOINED>, narrow + 1, CELLS, step, solver, cuda->data, tail);
}

/* Launches of the setup of a solve. JOINED: sides of the domain are. */
void SK_DIM(sk_cuda_prepare_solve)(sk_cuda *cuda)
{
    if (has_joined_sides(cuda))
        launch_setup<true>(cuda);
    else
        launch_setup<false>(cuda);
}
