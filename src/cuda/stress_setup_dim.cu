/* Levels of the stress solver on the GPU: blocks, weights, unknowns, and the matrix of the coarsest level. */
#include "cuda/device.h"

extern "C" {
#include "cuda/phases.h"
}
#include "cuda/stress_parts.h"

/* --- Unknowns --- */

/* Largest value so far, none of them negative: their bits have the same order. */
SK_DEVICE void raise(unsigned *to, float value)
{
    union {
        float value;
        unsigned bits;
    } copy;
    copy.value = value;
    if (copy.bits)
        atomicMax(to, copy.bits);
}

/* The unknowns of a level, rows that their mass holds, and the stiffness of its blocks. */
static __global__ void __launch_bounds__(CELLS)
    find_unknowns(sk_cuda_stress *stress, const __grid_constant__ stress_level level, int depth)
{
    SK_CUDA_WAIT();
    for (int block = 1 + (int)blockIdx.x; block < stress->count[depth]; block += (int)gridDim.x) {
        const cells_around around = around_cell(level, block, (int)threadIdx.x);
        int unknown = 0, held = 0;
        float mass = 0.0f, normal = 0.0f;
        each_axis([&](auto axis) {
            constexpr int A = decltype(axis)::value;
            float coefficient[SK_STRESS_NEIGHBOURS];
            const float diagonal = row_of<A>(level, around, coefficient), own = level.mass[A][around.here];
            unknown |= (diagonal > SK_STRESS_SMALLEST_DIAGONAL && !level.fixed[A][around.here]) << A;
            held |= (diagonal <= SK_STRESS_HELD * own) << A;
            mass = own > mass ? own : mass;
            normal = level.normal[A][around.here] > normal ? level.normal[A][around.here] : normal;
        });
        level.unknown[around.here] = (uint8_t)unknown;
        level.held[around.here] = (uint8_t)held;
        const int count = sk_cuda_sum(__popc((unsigned)unknown));
        const float most_mass = (float)sk_cuda_largest((double)mass);
        const float stress_most = (2.0f * SELKIE_DIM + 2.0f) * (float)sk_cuda_largest((double)normal);
        if (threadIdx.x == 0) {
            level.any[block] = count > 0;
            if (count)
                atomicAdd(&stress->unknowns[depth], count);
            if (stress_most > 0.0f)
                raise(&stress->stiffness[depth], most_mass > 0.0f ? stress_most / most_mass : INFINITY);
            if (depth == 0)
                raise(&stress->largest_mass, most_mass);
        }
    }
}

SK_DEVICE float stiffness_of(const sk_cuda_stress *stress, int depth)
{
    union {
        unsigned bits;
        float value;
    } stiffness;
    stiffness.bits = stress->stiffness[depth];
    return stiffness.value;
}

/* Could sweeps alone solve a level? */
SK_DEVICE bool may_be_soft(const sk_cuda_stress *stress, int depth)
{
    return stiffness_of(stress, depth) <= (depth ? SK_STRESS_SOFT_COARSE : SK_STRESS_SOFT);
}

/* Is half of the stress on a row, or more, from rows with the bit `mark` in `held`? Faces that are no unknowns hold. */
template <int A> SK_DEVICE bool hangs_on(const stress_level &level, const cells_around &around, int mark)
{
    float coefficient[SK_STRESS_NEIGHBOURS], sum = 0.0f;
    const float diagonal = row_of<A>(level, around, coefficient);
    for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
        int offset[3];
        sk_stress_offset(A, m, offset);
        const size_t place = place_at(around, offset);
        const int component = sk_stress_component(A, m);
        if (!is_unknown(level, place, component) || level.held[place] >> (mark + component) & 1)
            sum += fabsf(coefficient[m]);
    }
    return sum >= 0.5f * diagonal;
}

/* Rows that hang on held ones, in two steps: the first marks them, the second counts those that stay loose. See
 * find_held in linalg/stress_levels_dim.c. Bits from 3 on are those of the first step. */
static __global__ void find_held(sk_cuda_stress *stress, const __grid_constant__ stress_level level, int depth,
                                 int second)
{
    SK_CUDA_WAIT();
    if (!may_be_soft(stress, depth))
        return;
    EACH_STRESS_BLOCK(block, stress, level, depth)
    {
        const cells_around around = around_cell(level, block, (int)threadIdx.x);
        const int held = level.held[around.here] >> (second ? 3 : 0);
        int now = held & 7;
        each_axis([&](auto axis) {
            constexpr int A = decltype(axis)::value;
            if (is_unknown(level, around.here, A) && !(held >> A & 1))
                now |= hangs_on<A>(level, around, second ? 3 : 0) << A;
        });
        if (!second)
            level.held[around.here] = (uint8_t)((level.held[around.here] & 7) | now << 3);
        else if (level.unknown[around.here] & ~now)
            stress->loose[depth] = 1;
    }
}

/* --- Blocks of the next level --- */

/* Marks the places of the next level that the weights of a block reach, and the faces beside them: two cells before its
 * liquid, three after it. */
static __global__ void __launch_bounds__(CELLS)
    mark_places(sk_cuda_stress *stress, const __grid_constant__ stress_level fine,
                const __grid_constant__ stress_level coarse, int depth)
{
    SK_CUDA_WAIT();
    __shared__ unsigned rows[3];
    if (stress->unknowns[depth] <= SK_STRESS_FEW_UNKNOWNS || (may_be_soft(stress, depth) && !stress->loose[depth]))
        return;
    for (int block = 1 + (int)blockIdx.x; block < stress->count[depth]; block += (int)gridDim.x) {
        const size_t here = (size_t)block * CELLS + threadIdx.x;
        float weight = fine.bulk[here];
        for (int d = 0; d < 3; d++) {
            weight += d < SELKIE_DIM ? fine.mass[d][here] + fine.normal[d][here] : 0.0f;
            weight += SELKIE_DIM == 3 || d == 2 ? fine.shear[d][here] : 0.0f;
        }
        __syncthreads();
        if (threadIdx.x < 3)
            rows[threadIdx.x] = threadIdx.x < SELKIE_DIM ? 0u : 1u;
        __syncthreads();
        for (int d = 0; d < SELKIE_DIM && weight > 0.0f; d++)
            atomicOr(&rows[d], 1u << sk_plain_along((int)threadIdx.x, d));
        __syncthreads();
        if (threadIdx.x >= SK_CORNERS || !rows[0])
            continue;
        int place = 0, is_inside = 1;
        for (int d = SELKIE_DIM - 1; d >= 0; d--) {
            const int corner = fine.coordinates[block][d] * N;
            int first = 0, last = 31;
            while (!(rows[d] >> first & 1))
                first++;
            while (!(rows[d] >> last & 1))
                last--;
            const int low = (corner + first - 2) >> (SK_BLOCK_LOG + 1),
                      high = (corner + last + 3) >> (SK_BLOCK_LOG + 1);
            const int at = (int)threadIdx.x >> d & 1 ? high : low;
            is_inside &= at >= coarse.low[d] && at < coarse.low[d] + coarse.blocks[d];
            place = place * coarse.blocks[d] + at - coarse.low[d];
        }
        if (is_inside)
            coarse.map[place] = 1;
        else
            stress->overflow = 1;
    }
}

/* Numbers the marked places of a level in their order. One thread block. */
static __global__ void __launch_bounds__(SK_CUDA_ONE)
    number_places(sk_cuda_stress *stress, const __grid_constant__ stress_level level, int depth)
{
    SK_CUDA_WAIT();
    int before = 1;
    for (int first = 0; first < level.places; first += (int)blockDim.x) {
        const int i = first + (int)threadIdx.x, marked = i < level.places && level.map[i];
        int total;
        const int number = before + sk_cuda_scan(marked, &total);
        if (marked && number < level.capacity) {
            level.map[i] = number;
            level.coordinates[number][0] = i % level.blocks[0] + level.low[0];
            level.coordinates[number][1] = i / level.blocks[0] % level.blocks[1] + level.low[1];
            level.coordinates[number][2] = SELKIE_DIM == 3 ? i / level.blocks[0] / level.blocks[1] + level.low[2] : 0;
        } else if (marked) {
            level.map[i] = 0;
            stress->overflow = 1;
        }
        before += total;
    }
    if (threadIdx.x == 0)
        stress->count[depth] = before < level.capacity ? before : level.capacity;
}

/* --- Weights of the next level --- */

/* The mean of a fine field for a coarse cell, the last axis first as in take_means() of linalg/stress_levels_dim.c. */
SK_DEVICE float mean_of(const int32_t *under, const float *field, const int at[3], const sk_stress_mean means[3])
{
    float weight[3][4] = {{1.0f}, {1.0f}, {1.0f}};
    int first[3] = {0, 0, 0}, count[3] = {1, 1, 1};
    for (int d = 0; d < SELKIE_DIM; d++)
        count[d] = sk_stress_mean_weights(means[d], &first[d], weight[d]);
    float sum = 0.0f;
    for (int i = 0; i < count[0]; i++) {
        float plane = 0.0f;
        for (int j = 0; j < count[1]; j++) {
            float column = 0.0f;
            for (int k = 0; k < count[2]; k++) {
                const int fine[3] = {2 * at[0] + first[0] + i, 2 * at[1] + first[1] + j,
                                     SELKIE_DIM == 3 ? 2 * at[2] + first[2] + k : 0};
                column += weight[2][k] * field[fine_place(under, fine)];
            }
            plane += weight[1][j] * column;
        }
        sum += weight[0][i] * plane;
    }
    return sum;
}

/* A coarse face is given if no fine face in it is an unknown and one is given. */
SK_DEVICE int is_given(const stress_level &fine, const int32_t *under, const int at[3], int a)
{
    int given = 0, unknown = 0;
    for (int n = 0; n < 1 << SELKIE_DIM; n++) {
        if (n >> a & 1)
            continue;
        const int place[3] = {2 * at[0] + (n & 1), 2 * at[1] + (n >> 1 & 1),
                              SELKIE_DIM == 3 ? 2 * at[2] + (n >> 2) : 0};
        const size_t face = fine_place(under, place);
        unknown |= is_unknown(fine, face, a);
        given |= fine.fixed[a][face];
    }
    return given && !unknown;
}

/* Weights, neighbours and fine blocks of the blocks of a coarse level. Vectors of both levels begin with 0. */
static __global__ void __launch_bounds__(CELLS)
    coarsen(sk_cuda_stress *stress, const __grid_constant__ stress_level fine,
            const __grid_constant__ stress_level coarse, int depth)
{
    SK_CUDA_WAIT();
    __shared__ int32_t under[UNDER];
    const int t = (int)threadIdx.x;
    int at[3];
    for (int d = 0; d < 3; d++)
        at[d] = d < SELKIE_DIM ? sk_plain_along(t, d) : 0;
    for (int block = 1 + (int)blockIdx.x; block < stress->count[depth + 1]; block += (int)gridDim.x) {
        const int32_t *own = coarse.coordinates[block];
        __syncthreads();
        if (t < UNDER) {
            const int place[3] = {2 * own[0] + t % 4 - 1, 2 * own[1] + t / 4 % 4 - 1, 2 * own[2] + t / 16 - 1};
            coarse.under[block][t] = under[t] = block_at(fine, place);
        } else if (t >= UNDER && t < UNDER + SK_NEIGHBOURS) {
            const int n = t - UNDER;
            const int place[3] = {own[0] + n % 3 - 1, own[1] + n / 3 % 3 - 1, own[2] + n / 9 - 1};
            coarse.neighbours[block][n] = block_at(coarse, place);
        }
        __syncthreads();
        const size_t here = (size_t)block * CELLS + (size_t)t;
        for (int a = 0; a < SELKIE_DIM; a++) {
            sk_stress_mean means[3] = {SK_STRESS_MEAN_ACROSS, SK_STRESS_MEAN_ACROSS, SK_STRESS_MEAN_ACROSS};
            means[a] = SK_STRESS_MEAN_NODE;
            coarse.mass[a][here] = mean_of(under, fine.mass[a], at, means);
            means[a] = SK_STRESS_MEAN_ALONG;
            coarse.normal[a][here] = SK_STRESS_COARSE_STRAIN * mean_of(under, fine.normal[a], at, means);
            coarse.fixed[a][here] = (uint8_t)is_given(fine, under, at, a);
            coarse.x[a][here] = coarse.b[a][here] = coarse.rest[a][here] = 0.0f;
        }
        for (int edge = SELKIE_DIM == 3 ? 0 : 2; edge < 3; edge++) {
            sk_stress_mean means[3] = {SK_STRESS_MEAN_NODE, SK_STRESS_MEAN_NODE, SK_STRESS_MEAN_NODE};
            means[edge] = SK_STRESS_MEAN_ACROSS;
            coarse.shear[edge][here] = SK_STRESS_COARSE_STRAIN * mean_of(under, fine.shear[edge], at, means);
        }
        const sk_stress_mean all[3] = {SK_STRESS_MEAN_ALONG, SK_STRESS_MEAN_ALONG, SK_STRESS_MEAN_ALONG};
        coarse.bulk[here] = SK_STRESS_COARSE_BULK * mean_of(under, fine.bulk, at, all);
    }
    /* Coarse blocks of the fine ones. */
    SK_CUDA_EACH(i, stress->count[depth])
    {
        const int32_t *own = fine.coordinates[i];
        const int place[3] = {own[0] >> 1, own[1] >> 1, own[2] >> 1};
        fine.parent[i] = i ? block_at(coarse, place) : 0;
    }
}

/* --- The coarsest level --- */

/* The levels of the cycle: the rules of sk_stress_make_levels in linalg/stress_levels_dim.c. */
static __global__ void choose_bottom(sk_cuda_stress *stress)
{
    SK_CUDA_WAIT();
    int depth = 0, soft = 0;
    while (depth + 1 < stress->level_count && stress->unknowns[depth] > SK_STRESS_FEW_UNKNOWNS) {
        const int next = stress->unknowns[depth + 1];
        soft = may_be_soft(stress, depth) && !stress->loose[depth];
        if (soft || next == 0 || next >= stress->unknowns[depth])
            break;
        depth++;
    }
    stress->bottom = depth;
    stress->soft = soft && depth == 0 ? sk_stress_lone_sweeps(stiffness_of(stress, 0)) : 0;
    stress->sweeps = !soft ? SK_STRESS_LAST_SWEEPS : depth ? 2 : 1;
    stress->direct = !soft && stress->unknowns[depth] > 0 && stress->unknowns[depth] <= SK_STRESS_DIRECT;
    stress->bottom_unknowns = stress->direct ? stress->unknowns[depth] : 0;
    stress->singular = 0;
}

/* Numbers of the unknowns of the coarsest level. They have no residuals: these keep the numbers. One thread block. */
SK_DEVICE int32_t *numbers_of(const stress_level &level, int a)
{
    return (int32_t *)(void *)level.rest[a];
}

SK_DEVICE void number_unknowns(sk_cuda_stress *stress, const stress_level &level)
{
    const int faces = (stress->count[stress->bottom] - 1) * CELLS * SELKIE_DIM;
    int before = 0;
    for (int first = 0; first < faces; first += (int)blockDim.x) {
        const int i = first + (int)threadIdx.x, a = i % SELKIE_DIM;
        const size_t place = (size_t)(i / SELKIE_DIM) + CELLS;
        const int unknown = i < faces && level.any[place / CELLS] && is_unknown(level, place, a);
        int total;
        const int number = before + sk_cuda_scan(unknown, &total);
        if (unknown) {
            numbers_of(level, a)[place] = number;
            stress->bottom_face[number] = (int32_t)place * SELKIE_DIM + a;
        }
        before += total;
    }
    __syncthreads();
}

/* The matrix, one row a thread. */
SK_DEVICE void fill_matrix(sk_cuda_stress *stress, const stress_level &level, int count)
{
    for (int i = (int)threadIdx.x; i < count * count; i += (int)blockDim.x)
        stress->factor[i] = 0.0;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x) {
        const size_t place = (size_t)(stress->bottom_face[i] / SELKIE_DIM);
        const cells_around around = around_cell(level, (int)(place / CELLS), (int)(place % CELLS));
        with_axis(stress->bottom_face[i] % SELKIE_DIM, [&](auto axis) {
            constexpr int A = decltype(axis)::value;
            float coefficient[SK_STRESS_NEIGHBOURS];
            stress->factor[(size_t)i * count + i] = (double)row_of<A>(level, around, coefficient);
            for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
                int offset[3];
                sk_stress_offset(A, m, offset);
                const size_t other = place_at(around, offset);
                const int component = sk_stress_component(A, m);
                if (is_unknown(level, other, component))
                    stress->factor[(size_t)numbers_of(level, component)[other] * count + i] += (double)coefficient[m];
            }
        });
    }
    __syncthreads();
}

/* Cholesky's factor in place, column by column: entry (i, j) is at j count + i. */
static __global__ void __launch_bounds__(512) factorize(sk_cuda_stress *stress)
{
    SK_CUDA_WAIT();
    __shared__ double pivot;
    const int count = stress->bottom_unknowns;
    if (!count)
        return;
    const stress_level &level = stress->level[stress->bottom];
    double *l = stress->factor;
    number_unknowns(stress, level);
    fill_matrix(stress, level, count);
    for (int j = 0; j < count; j++) {
        for (int i = j + (int)threadIdx.x; i < count; i += (int)blockDim.x) {
            double sum[4] = {l[(size_t)j * count + i], 0.0, 0.0, 0.0};
            const double whole = sum[0];
            int k = 0;
            for (; k + 4 <= j; k += 4)
#pragma unroll
                for (int n = 0; n < 4; n++)
                    sum[n] -= l[(size_t)(k + n) * count + i] * l[(size_t)(k + n) * count + j];
            for (; k < j; k++)
                sum[0] -= l[(size_t)k * count + i] * l[(size_t)k * count + j];
            const double left = (sum[0] + sum[1]) + (sum[2] + sum[3]);
            l[(size_t)j * count + i] = left;
            if (i == j)
                pivot = left > 1e-7 * whole ? sqrt(left) : 0.0;
        }
        __syncthreads();
        const double root = pivot;
        if (!(root > 0.0)) { /* singular to rounding: the smoother must do */
            if (threadIdx.x == 0)
                stress->singular = 1;
            return;
        }
        for (int i = j + (int)threadIdx.x; i < count; i += (int)blockDim.x)
            l[(size_t)j * count + i] = i == j ? root : l[(size_t)j * count + i] / root;
        __syncthreads();
    }
}

/* Columns of the inverse, a warp each. */
static __global__ void __launch_bounds__(32) invert(sk_cuda_stress *stress)
{
    SK_CUDA_WAIT();
    __shared__ double x[SK_STRESS_DIRECT];
    const int count = stress->bottom_unknowns, lane = (int)threadIdx.x;
    const double *l = stress->factor;
    if (stress->singular)
        return;
    if (count && blockIdx.x == 0 && lane == 0)
        stress->sweeps = 0;
    for (int column = (int)blockIdx.x; column < count; column += (int)gridDim.x) {
        for (int i = lane; i < count; i += 32)
            x[i] = i == column ? 1.0 : 0.0;
        __syncwarp();
        for (int k = column; k < count; k++) {
            const double value = x[k] / l[(size_t)k * count + k];
            __syncwarp();
            if (lane == 0)
                x[k] = value;
            for (int i = k + 1 + lane; i < count; i += 32)
                x[i] -= l[(size_t)k * count + i] * value;
            __syncwarp();
        }
        for (int i = count - 1; i >= 0; i--) {
            double sum = 0.0;
            for (int k = i + 1 + lane; k < count; k += 32)
                sum += l[(size_t)i * count + k] * x[k];
            for (int n = 16; n > 0; n /= 2)
                sum += __shfl_xor_sync(~0u, sum, n);
            const double value = (x[i] - sum) / l[(size_t)i * count + i];
            __syncwarp();
            if (lane == 0)
                x[i] = value;
            __syncwarp();
        }
        for (int i = lane; i < count; i += 32)
            stress->inverse[(size_t)column * count + i] = x[i];
        __syncwarp();
    }
}

/* --- Launches --- */

void SK_DIM(sk_cuda_launch_stress_levels)(sk_cuda *cuda)
{
    sk_cuda_stress *stress = cuda->stress;
    const sk_cuda_stress *shadow = cuda->stress_shadow;
    for (int depth = 0; depth < shadow->level_count; depth++) {
        const stress_level level = shadow->level[depth];
        const int wide = width_of_level(cuda, &level, depth);
        SK_LAUNCH(cuda, find_unknowns, wide, CELLS, stress, level, depth);
        for (int second = 0; second < 2; second++)
            SK_LAUNCH_SIMPLE(cuda, find_held, wide, CELLS, stress, level, depth, second);
        if (depth + 1 == shadow->level_count)
            break;
        const stress_level next = shadow->level[depth + 1];
        SK_LAUNCH(cuda, mark_places, wide, CELLS, stress, level, next, depth);
        SK_LAUNCH(cuda, number_places, 1, SK_CUDA_ONE, stress, next, depth + 1);
        SK_LAUNCH(cuda, coarsen, width_of_level(cuda, &next, depth + 1), CELLS, stress, level, next, depth);
    }
    SK_LAUNCH_SIMPLE(cuda, choose_bottom, 1, 1, stress);
    SK_LAUNCH(cuda, factorize, 1, 512, stress);
    SK_LAUNCH(cuda, invert, SK_CUDA_SUMS, 32, stress);
}
