/* Surfaces of particles on the GPU: sums over the particles at the nodes, and the smooth level set, as
 * geom/surface_sums.c, surface_field.c and surface_smooth.c.
 *
 * A warp adds up the particles of a block one after the other, a lane a node of the 27 that a particle reaches, in a
 * tile in shared memory. Nodes then add up the tiles around them in the order in which the CPU's rounds add them. */
#include "cuda/surface_parts.h"

/* --- sums --- */

/* A value of a particle; 0 where it is not a number. */
SK_DEVICE float value_of(const sk_cuda_values *values, int v, uint32_t particle)
{
    const char *from = values->data[v] + particle * values->stride[v];
    const float value =
        values->is_whole[v] ? (float)*(const uint32_t *)(const void *)from : *(const float *)(const void *)from;
    return isfinite(value) ? value : 0.0f;
}

/* Place of a particle in its block, and its values or the place again. */
SK_DEVICE void stage_point(const sk_surface_grid *grid, const sk_cuda_values *values, size_t block, size_t p,
                           float to[6])
{
    const sk_surface_point point = grid->points[p];
    for (int a = 0; a < 3; ++a)
        to[a] = to[a + 3] = point.x[a] - (float)(grid->coordinates[block][a] * sk_node_n);
    for (int v = 0; v < 3 && values->count; ++v)
        to[v + 3] = v < values->count ? value_of(values, v, point.source) : 0.0f;
}

/* Weight of node n of three along an axis, and the first of them. */
SK_DEVICE float axis_weight(float x, int n, int *base)
{
    float w[3];
    *base = (int)(x + 0.5f);
    sk_surface_weights(x - (float)*base, w);
    return n == 0 ? w[0] : n == 1 ? w[1] : w[2];
}

/* Adds a particle to a tile: a lane a node. */
SK_DEVICE void add_point(f4 *tile, const float staged[6], int lane)
{
    int base[3];
    const int n[3] = {lane % 3, lane / 3 % 3, lane / 9};
    if (lane >= 27)
        return;
    const float x = axis_weight(staged[0], n[0], &base[0]), y = axis_weight(staged[1], n[1], &base[1]),
                z = axis_weight(staged[2], n[2], &base[2]);
    const f4 part = sk_f4(1.0f, staged[3], staged[4], staged[5]) * x;
    const int place = base[0] + n[0] + sk_local_n * (base[1] + n[1] + sk_local_n * (base[2] + n[2]));
    f4 sum = tile[place];
    sum += part * (y * z);
    tile[place] = sum;
}

/* Adds the images of the particles behind the walls. */
SK_DEVICE void fold_walls(const sk_surface_grid *grid, size_t block, int are_places, f4 *tile)
{
    for (int a = 0; a < 3; ++a)
        for (int side = 0; side < 2; ++side) {
            const int s = a == 0 ? 1 : a == 1 ? sk_local_n : sk_local_n * sk_local_n;
            const int u = a == 0 ? sk_local_n : a == 1 ? sk_local_n * sk_local_n : 1;
            const int v = a == 0 ? sk_local_n * sk_local_n : a == 1 ? 1 : sk_local_n;
            int wall;
            if (!sk_surface_fold_wall(grid, block, a, side, &wall))
                continue;
            for (int t = (int)threadIdx.x; t < sk_local_n * sk_local_n; t += 32)
                sk_surface_fold(tile + u * (t % sk_local_n) + v * (t / sk_local_n) + s * (wall + 1), side ? -s : s, a,
                                wall, are_places);
            __syncwarp();
        }
}

/* A warp a block. */
static __global__ void __launch_bounds__(32)
    fill_tiles(const __grid_constant__ sk_surface_grid grid, const __grid_constant__ sk_cuda_values values,
               const int32_t *tile_index, f4 *tiles)
{
    __shared__ f4 tile[sk_local_count];
    __shared__ float staged[32][6];
    const int lane = (int)threadIdx.x;
    SK_CUDA_WAIT();
    for (size_t block = blockIdx.x; block < grid.block_count; block += gridDim.x) {
        if (tile_index[block] < 0)
            continue;
        const uint64_t deep = grid.deep[block];
        for (int t = lane; t < sk_local_count; t += 32)
            tile[t] = sk_f4(0.0f, 0.0f, 0.0f, 0.0f);
        const size_t last = grid.first[block + 1];
        for (size_t p = grid.first[block]; p < last; p += 32) {
            /* Particles deep inside are left out. */
            const size_t own = p + (size_t)lane;
            const int counts = own < last && !(deep >> sk_surface_cell(grid.points[own].x) & 1);
            if (counts)
                stage_point(&grid, &values, block, own, staged[lane]);
            __syncwarp();
            for (unsigned left = __ballot_sync(~0u, counts); left; left &= left - 1) {
                add_point(tile, staged[sk_lowest_bit(left)], lane);
                __syncwarp();
            }
        }
        __syncwarp();
        fold_walls(&grid, block, !values.count, tile);
        f4 *to = tiles + (size_t)tile_index[block] * sk_local_count;
        for (int t = lane; t < sk_local_count; t += 32)
            to[t] = tile[t];
        __syncwarp();
    }
}

/* The sums at a node of a block: of up to eight tiles, by the parity of their blocks. */
SK_DEVICE f4 add_tiles(const sk_surface_grid *grid, size_t block, int node, const int32_t *tile_index, const f4 *tiles,
                       int are_places)
{
    const int at[3] = {node & 7, node >> 3 & 7, node >> 6};
    int other[3], odd[3];
    for (int a = 0; a < 3; ++a) {
        other[a] = at[a] <= 1 ? -1 : at[a] == sk_node_n - 1 ? 1 : 0; /* the second block that reaches the node */
        odd[a] = grid->coordinates[block][a] & 1;
    }
    f4 sum = sk_f4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int parity = 0; parity < 8; ++parity) {
        int d[3], exists = 1;
        for (int a = 0; a < 3; ++a) {
            d[a] = (parity >> a & 1) == odd[a] ? 0 : other[a];
            exists &= (parity >> a & 1) == odd[a] || other[a];
        }
        const int32_t from = exists ? grid->neighbours[block][sk_middle + d[0] + 3 * d[1] + 9 * d[2]] : -1;
        if (from < 0 || tile_index[from] < 0)
            continue;
        const int place = at[0] - sk_node_n * d[0] + 1 +
                          sk_local_n * (at[1] - sk_node_n * d[1] + 1 + sk_local_n * (at[2] - sk_node_n * d[2] + 1));
        f4 part = tiles[(size_t)tile_index[from] * sk_local_count + (size_t)place];
        if (are_places)
            part +=
                part[0] * sk_f4(0.0f, (float)(sk_node_n * d[0]), (float)(sk_node_n * d[1]), (float)(sk_node_n * d[2]));
        sum += part;
    }
    return sum;
}

static __global__ void gather_tiles(const __grid_constant__ sk_surface_grid grid, const int32_t *tile_index,
                                    const f4 *tiles, const int32_t *sum_index, int are_places, f4 *sums)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(n, grid.block_count * sk_node_count)
    {
        const size_t block = n / sk_node_count;
        const int node = (int)(n % sk_node_count);
        if (sum_index[block] >= 0)
            sums[(size_t)sum_index[block] * sk_node_count + (size_t)node] =
                add_tiles(&grid, block, node, tile_index, tiles, are_places);
    }
}

sk_cuda_values sk_cuda_velocity(const sk_cuda_cloud *cloud)
{
    sk_cuda_values values;
    values.count = 3;
    for (int a = 0; a < 3; ++a) {
        values.data[a] = cloud->velocity + 4 * a;
        values.stride[a] = cloud->velocity_stride;
        values.is_whole[a] = 0;
    }
    return values;
}

void sk_cuda_surface_sum(sk_cuda_mesher *m, const sk_cuda_values *values)
{
    const int are_places = !values->count;
    SK_LAUNCH(&m->cuda, fill_tiles, (int)m->grid.block_count, 32, m->grid, *values, m->tile_index, m->tiles);
    SK_LAUNCH_SIMPLE(&m->cuda, gather_tiles, SK_SURFACE_WIDE, SK_SURFACE_THREADS, m->grid, m->tile_index, m->tiles,
                     m->sum_index, are_places, m->sums);
}

/* --- the filter on the nodes --- */

/* Sums at a node around a block; places count from the block's first node. */
SK_DEVICE f4 load_sum(const sk_surface_grid *grid, const int32_t *sum_index, const f4 *sums, int are_places,
                      size_t block, const sk_cuda_image *image)
{
    const int n = sk_cuda_neighbour(image->at);
    const int32_t from = grid->neighbours[block][n];
    f4 sum = sk_f4(0.0f, 0.0f, 0.0f, 0.0f);
    if (from >= 0 && sum_index[from] >= 0)
        sum = sums[(size_t)sum_index[from] * sk_node_count + (size_t)sk_cuda_node(image->at)];
    if (are_places)
        sum += sum[0] * sk_f4(0.0f, (float)(sk_node_n * (n % 3 - 1)), (float)(sk_node_n * (n / 3 % 3 - 1)),
                              (float)(sk_node_n * (n / 9 - 1)));
    for (int a = 0; a < 3; ++a)
        for (int side = 0; side < 2; ++side)
            if (image->seen[a][side])
                sum = sk_surface_mirrored(sum, a, (float)image->wall[a][side], are_places);
    return sum;
}

/* Filters lines of a padded block in place, a thread a line. The values of the block move to the line's start. */
template <int HALO, typename T, typename TAP>
SK_DEVICE void filter_lines(T *padded, int lines, int inner, int inner_stride, int outer_stride, int stride, TAP tap)
{
    enum { N = sk_node_n + 2 * HALO };
    __syncthreads();
    for (int line = (int)threadIdx.x; line < lines; line += (int)blockDim.x) {
        T *first = padded + line % inner * inner_stride + line / inner * outer_stride, values[N];
#pragma unroll
        for (int i = 0; i < N; ++i)
            values[i] = first[i * stride];
#pragma unroll
        for (int i = 0; i < sk_node_n; ++i)
            first[i * stride] = tap(values + i);
    }
}

/* Along z, then y, then x. The result of node (i,j,k) lies at i + N (j + N k). */
template <int HALO, typename T, typename TAP> SK_DEVICE void filter_all(T *padded, TAP tap)
{
    enum { N = sk_node_n + 2 * HALO };
    filter_lines<HALO>(padded, N * N, N, 1, N, N * N, tap);
    filter_lines<HALO>(padded, N * sk_node_n, N, 1, N * N, N, tap);
    filter_lines<HALO>(padded, sk_node_n * sk_node_n, sk_node_n, N, N * N, 1, tap);
    __syncthreads();
}

/* Sums of a block after the kernel's filter. */
template <int HALO>
SK_DEVICE void filter_sums(const sk_surface_grid *grid, const int32_t *sum_index, const f4 *sums, int are_places,
                           size_t block, f4 *padded)
{
    enum { N = sk_node_n + 2 * HALO };
    const float *taps = grid->kernel.taps;
    const int sees_wall = sk_cuda_sees_wall(grid, block, HALO);
    for (int t = (int)threadIdx.x; t < N * N * N; t += (int)blockDim.x) {
        const int at[3] = {t % N - HALO, t / N % N - HALO, t / (N * N) - HALO};
        const sk_cuda_image image = sk_cuda_find_image(grid, block, HALO, sees_wall, at);
        padded[t] = load_sum(grid, sum_index, sums, are_places, block, &image);
    }
    filter_all<HALO>(padded, [taps](const f4 *at) { return sk_surface_tap(at, 1, HALO, taps); });
}

template <int HALO>
static __global__ void find_levels(const __grid_constant__ sk_surface_grid grid, const int32_t *sum_index,
                                   const f4 *sums)
{
    enum { N = sk_node_n + 2 * HALO };
    __shared__ f4 padded[N * N * N];
    SK_CUDA_WAIT();
    const size_t block = blockIdx.x;
    float *phi = grid.phi + block * sk_node_count;
    const uint64_t inside = grid.inside[block];
    if (inside == ~(uint64_t)0 || sum_index[block] < 0) {
        for (int i = (int)threadIdx.x; i < sk_node_count; i += (int)blockDim.x)
            phi[i] = inside ? -SK_SURFACE_BAND : SK_SURFACE_BAND;
        if (threadIdx.x == 0)
            grid.side[block] = inside ? SK_BLOCK_INSIDE : SK_BLOCK_OUTSIDE;
        return;
    }
    filter_sums<HALO>(&grid, sum_index, sums, 1, block, padded);
    int any_inside = 0, any_outside = 0;
    for (int i = (int)threadIdx.x; i < sk_node_count; i += (int)blockDim.x) {
        const f4 sum = padded[(i & 7) + N * ((i >> 3 & 7) + N * (i >> 6))];
        phi[i] = inside >> sk_node_cell(i) & 1 ? -SK_SURFACE_BAND : sk_node_level(&grid, block, i, sum);
        any_inside |= phi[i] < 0.0f;
        any_outside |= !(phi[i] < 0.0f);
    }
    any_inside = __syncthreads_or(any_inside);
    any_outside = __syncthreads_or(any_outside);
    if (threadIdx.x == 0)
        grid.side[block] = any_inside && any_outside ? SK_BLOCK_MIXED : any_inside ? SK_BLOCK_INSIDE : SK_BLOCK_OUTSIDE;
}

template <int HALO>
static __global__ void find_means(const __grid_constant__ sk_surface_grid grid, const int32_t *sum_index,
                                  const f4 *sums, const int32_t *block_index, float *means)
{
    enum { N = sk_node_n + 2 * HALO };
    __shared__ f4 padded[N * N * N];
    SK_CUDA_WAIT();
    const size_t block = blockIdx.x;
    if (block_index[block] < 0)
        return;
    filter_sums<HALO>(&grid, sum_index, sums, 0, block, padded);
    float *to = means + (size_t)block_index[block] * 3 * sk_node_count;
    for (int i = (int)threadIdx.x; i < sk_node_count; i += (int)blockDim.x) {
        const f4 sum = padded[(i & 7) + N * ((i >> 3 & 7) + N * (i >> 6))];
        for (int a = 0; a < 3; ++a)
            to[a * sk_node_count + i] = sk_node_mean(sum, a);
    }
}

template <int HALO>
static __global__ void filter_blocks(const __grid_constant__ sk_surface_grid grid, const int32_t *sum_index,
                                     const f4 *sums, f4 *filtered)
{
    enum { N = sk_node_n + 2 * HALO };
    __shared__ f4 padded[N * N * N];
    SK_CUDA_WAIT();
    const size_t block = blockIdx.x;
    filter_sums<HALO>(&grid, sum_index, sums, 0, block, padded);
    for (int i = (int)threadIdx.x; i < sk_node_count; i += (int)blockDim.x)
        filtered[block * sk_node_count + (size_t)i] = padded[(i & 7) + N * ((i >> 3 & 7) + N * (i >> 6))];
}

void sk_cuda_surface_filter(sk_cuda_mesher *m, f4 *filtered)
{
    const int blocks = (int)m->grid.block_count;
#define FILTER(halo)                                                                                                   \
    SK_LAUNCH(&m->cuda, filter_blocks<halo>, blocks, SK_SURFACE_THREADS, m->grid, m->sum_index, m->sums, filtered)
    switch (m->grid.kernel.halo) {
    case 0:
        FILTER(0);
        break;
    case 1:
        FILTER(1);
        break;
    case 2:
        FILTER(2);
        break;
    default:
        FILTER(3);
    }
#undef FILTER
}

void sk_cuda_surface_mean(sk_cuda_mesher *m, float *means)
{
    const int blocks = (int)m->grid.block_count;
#define MEANS(halo)                                                                                                    \
    SK_LAUNCH(&m->cuda, find_means<halo>, blocks, SK_SURFACE_THREADS, m->grid, m->sum_index, m->sums, m->block_index,  \
              means)
    switch (m->grid.kernel.halo) {
    case 0:
        MEANS(0);
        break;
    case 1:
        MEANS(1);
        break;
    case 2:
        MEANS(2);
        break;
    default:
        MEANS(3);
    }
#undef MEANS
}

/* --- distance --- */

/* Blocks near the surface, and those that have sums or particles of their own. */
static __global__ void flag_blocks(const __grid_constant__ sk_surface_grid grid, int with_points, uint32_t *flags)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(block, grid.block_count)
    flags[block] = grid.deep[block] != ~(uint64_t)0 && (!with_points || grid.first[block] != grid.first[block + 1]);
}

static __global__ void mark_near(const __grid_constant__ sk_surface_grid grid)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(block, grid.block_count)
    grid.near[block] = (uint8_t)sk_surface_is_near(&grid, block);
}

/* One pass, from grid.phi into grid.other. */
static __global__ void take_distances(const __grid_constant__ sk_surface_grid grid, int start)
{
    __shared__ float ring[sk_ring_count];
    SK_CUDA_WAIT();
    const size_t block = blockIdx.x;
    const float *phi = grid.phi + block * sk_node_count;
    float *to = grid.other + block * sk_node_count;
    if (!grid.near[block]) {
        const int is_air = start && grid.side[block] == SK_BLOCK_OUTSIDE;
        for (int i = (int)threadIdx.x; i < sk_node_count; i += (int)blockDim.x)
            to[i] = is_air ? SK_SURFACE_BAND : phi[i];
        return;
    }
    sk_cuda_load_field<1>(&grid, grid.phi, block, ring);
    __syncthreads();
    for (int i = (int)threadIdx.x; i < sk_node_count; i += (int)blockDim.x) {
        const sk_star s =
            sk_star_load(ring + 1 + (i & 7) + sk_ring_n * (1 + (i >> 3 & 7) + sk_ring_n * (1 + (i >> 6))));
        to[i] = start ? sk_distance_start(&s, grid.kernel.slope) : sk_distance_next(&s);
    }
}

/* From here on only blocks with a node in the band count as near. */
static __global__ void find_band(const __grid_constant__ sk_surface_grid grid)
{
    SK_CUDA_WAIT();
    const size_t block = blockIdx.x;
    const int before = grid.near[block];
    int near = 0;
    for (int i = (int)threadIdx.x; i < sk_node_count && before; i += (int)blockDim.x)
        near |= fabsf(grid.phi[block * sk_node_count + (size_t)i]) < SK_SURFACE_BAND;
    near = __syncthreads_or(near);
    if (threadIdx.x == 0)
        grid.near[block] = (uint8_t)near;
}

/* --- smoothing --- */

enum { BLUR_N = sk_node_n + 2 * sk_most_halo };

SK_DEVICE void blur_block(const sk_surface_grid *grid, const float *field, const float *taps, size_t block,
                          float *padded)
{
    sk_cuda_load_field<sk_most_halo>(grid, field, block, padded);
    filter_all<sk_most_halo>(padded, [taps](const float *at) {
        float sum = at[0] * taps[0];
#pragma unroll
        for (int t = 1; t <= 2 * sk_most_halo; ++t)
            sum += at[t] * taps[t];
        return sum;
    });
}

SK_DEVICE float blurred(const float *padded, int i)
{
    return padded[(i & 7) + BLUR_N * ((i >> 3 & 7) + BLUR_N * (i >> 6))];
}

enum { BLUR, BLEND, CALM };

/* BLUR: from `field` to `to`. BLEND and CALM: the blurred `field` decides what the level set becomes. */
template <int KIND>
static __global__ void smooth(const __grid_constant__ sk_surface_grid grid,
                              const __grid_constant__ sk_surface_blur with, const float *field, float *to)
{
    __shared__ float padded[sk_most_padded];
    SK_CUDA_WAIT();
    const size_t block = blockIdx.x, first = block * sk_node_count;
    if (!grid.near[block]) {
        for (int i = (int)threadIdx.x; i < sk_node_count && KIND == BLUR; i += (int)blockDim.x)
            to[first + (size_t)i] = field[first + (size_t)i];
        return;
    }
    blur_block(&grid, field, with.taps, block, padded);
    for (int i = (int)threadIdx.x; i < sk_node_count; i += (int)blockDim.x) {
        const size_t n = first + (size_t)i;
        const float value = blurred(padded, i);
        to[n] = KIND == BLUR    ? value
                : KIND == BLEND ? sk_surface_blend(grid.spacing, to[n], field[n], value)
                                : sk_surface_calm(with.bound, to[n], grid.other[n], field[n], value);
    }
}

/* Offset, seal and signs. */
static __global__ void finish(const __grid_constant__ sk_surface_grid grid)
{
    SK_CUDA_WAIT();
    const size_t block = blockIdx.x;
    float *phi = grid.phi + block * sk_node_count;
    int lower[13][3], missing[13];
    for (int n = 0; n < sk_middle; ++n)
        missing[n] = sk_surface_seals(&grid, block, n, lower[n]);
    for (int i = (int)threadIdx.x; i < sk_node_count; i += (int)blockDim.x) {
        const int at[3] = {i & 7, i >> 3 & 7, i >> 6};
        float value = phi[i] - grid.offset;
        for (int n = 0; n < sk_middle; ++n) {
            int sealed = missing[n];
            for (int a = 0; a < 3; ++a)
                sealed &= !lower[n][a] || at[a] == 0;
            value = sealed ? sk_most(value, SK_SURFACE_SEALED) : value;
        }
        phi[i] = value;
    }
    __syncthreads();
    for (int row = (int)threadIdx.x; row < sk_sub_count; row += (int)blockDim.x)
        grid.signs[block][row] = sk_surface_sign_row(&grid, block, row, phi);
}

/* --- the whole --- */

static void launch_levels(sk_cuda_mesher *m)
{
    const int blocks = (int)m->grid.block_count;
    switch (m->grid.kernel.halo) {
    case 0:
        SK_LAUNCH(&m->cuda, find_levels<0>, blocks, SK_SURFACE_THREADS, m->grid, m->sum_index, m->sums);
        break;
    case 1:
        SK_LAUNCH(&m->cuda, find_levels<1>, blocks, SK_SURFACE_THREADS, m->grid, m->sum_index, m->sums);
        break;
    case 2:
        SK_LAUNCH(&m->cuda, find_levels<2>, blocks, SK_SURFACE_THREADS, m->grid, m->sum_index, m->sums);
        break;
    default:
        SK_LAUNCH(&m->cuda, find_levels<3>, blocks, SK_SURFACE_THREADS, m->grid, m->sum_index, m->sums);
    }
    SK_LAUNCH_SIMPLE(&m->cuda, mark_near, SK_SURFACE_WIDE, SK_SURFACE_THREADS, m->grid);
}

static void launch_smoothing(sk_cuda_mesher *m, double smoothing)
{
    sk_surface_grid *grid = &m->grid;
    const int blocks = (int)grid->block_count;
    for (int pass = 0; pass < 5; ++pass) {
        SK_LAUNCH(&m->cuda, take_distances, blocks, SK_SURFACE_THREADS, *grid, pass == 0);
        float *field = grid->phi;
        grid->phi = grid->other;
        grid->other = field;
    }
    SK_LAUNCH(&m->cuda, find_band, blocks, SK_SURFACE_THREADS, *grid);

    const sk_surface_blur with = sk_surface_blur_of(grid, smoothing);
    for (int round = 0; round < with.rounds; ++round) {
        SK_LAUNCH(&m->cuda, smooth<BLUR>, blocks, SK_SURFACE_THREADS, *grid, with, grid->phi, grid->other);
        SK_LAUNCH(&m->cuda, smooth<BLEND>, blocks, SK_SURFACE_THREADS, *grid, with, grid->other, grid->phi);
    }
    for (int round = 0; round < with.rounds; ++round) {
        SK_LAUNCH(&m->cuda, smooth<BLUR>, blocks, SK_SURFACE_THREADS, *grid, with, grid->phi, grid->other);
        SK_LAUNCH(&m->cuda, smooth<BLUR>, blocks, SK_SURFACE_THREADS, *grid, with, grid->other, grid->spare);
        SK_LAUNCH(&m->cuda, smooth<CALM>, blocks, SK_SURFACE_THREADS, *grid, with, grid->spare, grid->phi);
    }
    SK_LAUNCH(&m->cuda, finish, blocks, SK_SURFACE_THREADS, *grid);
}

selkie_code sk_cuda_surface_room(sk_cuda_mesher *m, selkie_error *error)
{
    for (int with_points = 0; with_points < 2; ++with_points) {
        SK_LAUNCH_SIMPLE(&m->cuda, flag_blocks, SK_SURFACE_WIDE, SK_SURFACE_THREADS, m->grid, with_points, m->flags);
        sk_cuda_number(m, m->flags, m->grid.block_count, 1, with_points ? m->tile_index : m->sum_index,
                       with_points ? SK_TOTAL_TILES : SK_TOTAL_SUMS);
    }
    SK_TRY(sk_cuda_read_totals(m, error));
    m->grid.particle_count = (size_t)m->counted[SK_TOTAL_POINTS];
    SK_TRY(sk_cuda_reserve(m, SK_ROOM_TILES, (size_t)m->counted[SK_TOTAL_TILES] * sk_local_count * sizeof(f4),
                           &m->tiles, error));
    SK_TRY(sk_cuda_reserve(m, SK_ROOM_SUMS, (size_t)m->counted[SK_TOTAL_SUMS] * sk_node_count * sizeof(f4), &m->sums,
                           error));
    return SELKIE_OK;
}

selkie_code sk_cuda_surface_level(sk_cuda_mesher *m, double smoothing, selkie_error *error)
{
    sk_cuda_values places;
    memset(&places, 0, sizeof places);
    SK_TRY(sk_cuda_surface_room(m, error));
    sk_cuda_surface_sum(m, &places);
    launch_levels(m);
    launch_smoothing(m, smoothing);
    return SELKIE_OK;
}
