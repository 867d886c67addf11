/* Surfaces of particles on the GPU: blocks of nodes and particles sorted into them, as geom/surface_bins.c.
 *
 * Places of blocks are numbered over the whole container, in the order that the blocks have. Counters give the
 * particles of a cell an arbitrary order; then each counts those of its cell that come before it. */
#include "cuda/surface_parts.h"

static const uint32_t NOWHERE = ~0u;

typedef struct bin_places {
    int count[3]; /* along each axis */
    size_t all;
    unsigned long long *occupied; /* [all] bits of the cells with particles */
    uint32_t *flags;              /* [all] is there a block? */
    int32_t *blocks;              /* [all] number of the block, -1 = none */
} bin_places;

SK_DEVICE size_t place_of(const bin_places *places, const int c[3])
{
    return (size_t)c[0] + (size_t)places->count[0] * ((size_t)c[1] + (size_t)places->count[1] * (size_t)c[2]);
}

SK_DEVICE void place_coordinates(const bin_places *places, size_t place, int c[3])
{
    c[0] = (int)(place % (size_t)places->count[0]);
    c[1] = (int)(place / (size_t)places->count[0] % (size_t)places->count[1]);
    c[2] = (int)(place / (size_t)places->count[0] / (size_t)places->count[1]);
}

/* --- blocks --- */

static __global__ void place_points(const __grid_constant__ sk_cuda_cloud cloud,
                                    const __grid_constant__ sk_surface_frame frame,
                                    const __grid_constant__ bin_places places, sk_surface_point *placed, uint32_t *keys)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(i, cloud.count)
    {
        const float *p = (const float *)(const void *)(cloud.position + i * cloud.position_stride);
        sk_surface_point point;
        int c[3], counts = 1;
        point.source = (uint32_t)i;
        for (int a = 0; a < 3; ++a) {
            counts &= sk_surface_place(&frame, a, p[a], &point.x[a]);
            c[a] = (int)point.x[a] >> sk_node_log;
        }
        if (cloud.flags)
            counts &= !(*(const uint32_t *)(const void *)(cloud.flags + i * cloud.position_stride) & SK_PARTICLE_DEAD);
        placed[i] = point;
        const size_t place = place_of(&places, c);
        keys[i] = counts ? (uint32_t)place : NOWHERE;
        const unsigned long long bit = 1ull << sk_surface_cell(point.x);
        if (counts && !(places.occupied[place] & bit))
            atomicOr(&places.occupied[place], bit);
    }
}

/* Blocks exist where a particle can make liquid or affect the smoothing. */
static __global__ void find_blocks(const __grid_constant__ bin_places places,
                                   const __grid_constant__ sk_surface_reach reach)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(place, places.all)
    {
        int c[3], wanted = 0;
        place_coordinates(&places, place, c);
        for (int n = 0; n < 27 && !wanted; ++n) {
            const int home[3] = {c[0] - n % 3 + 1, c[1] - n / 3 % 3 + 1, c[2] - n / 9 + 1};
            int exists = 1;
            for (int a = 0; a < 3; ++a)
                exists &= home[a] >= 0 && home[a] < places.count[a];
            if (exists)
                wanted = sk_surface_reaches(&reach, places.occupied[place_of(&places, home)], n);
        }
        places.flags[place] = (uint32_t)wanted;
    }
}

static __global__ void start_blocks(const __grid_constant__ sk_surface_grid grid,
                                    const __grid_constant__ bin_places places, uint64_t *bits)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(place, places.all)
    {
        const int32_t block = places.blocks[place];
        int c[3];
        if (block < 0)
            continue;
        place_coordinates(&places, place, c);
        for (int a = 0; a < 3; ++a)
            grid.coordinates[block][a] = c[a];
        bits[block] = places.occupied[place] | sk_cells_beyond(&grid, (size_t)block);
    }
}

static __global__ void find_neighbours(const __grid_constant__ sk_surface_grid grid,
                                       const __grid_constant__ bin_places places)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(n, grid.block_count * 27)
    {
        const size_t block = n / 27;
        const int k = (int)(n % 27), d[3] = {k % 3 - 1, k / 3 % 3 - 1, k / 9 - 1};
        int c[3], exists = 1;
        for (int a = 0; a < 3; ++a) {
            c[a] = grid.coordinates[block][a] + d[a];
            exists &= c[a] >= 0 && c[a] < places.count[a];
        }
        grid.neighbours[block][k] = exists ? places.blocks[place_of(&places, c)] : -1;
    }
}

static __global__ void erode(const __grid_constant__ sk_surface_grid grid, int axis, const uint64_t *from, uint64_t *to,
                             uint64_t *copy)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(block, grid.block_count)
    {
        to[block] = sk_surface_erode(&grid, axis, from, block);
        if (copy)
            copy[block] = to[block];
    }
}

/* --- the sort --- */

SK_DEVICE size_t cell_of(const bin_places *places, uint32_t key, const float x[3])
{
    return (size_t)places->blocks[key] * sk_sub_count + (size_t)sk_surface_cell(x);
}

static __global__ void count_cells(const __grid_constant__ bin_places places, size_t count,
                                   const sk_surface_point *placed, const uint32_t *keys, uint32_t *counts,
                                   uint32_t *ranks)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(i, count)
    if (keys[i] != NOWHERE)
        ranks[i] = atomicAdd(&counts[cell_of(&places, keys[i], placed[i].x)], 1u);
}

static __global__ void order_points(const __grid_constant__ bin_places places, size_t count,
                                    const sk_surface_point *placed, const uint32_t *keys, const int32_t *first,
                                    const uint32_t *ranks, uint32_t *order)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(i, count)
    if (keys[i] != NOWHERE)
        order[(size_t)first[cell_of(&places, keys[i], placed[i].x)] + ranks[i]] = (uint32_t)i;
}

static __global__ void sort_points(const __grid_constant__ bin_places places, size_t count,
                                   const sk_surface_point *placed, const uint32_t *keys, const int32_t *first,
                                   const uint32_t *order, sk_surface_point *points)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(i, count)
    {
        if (keys[i] == NOWHERE)
            continue;
        const size_t cell = cell_of(&places, keys[i], placed[i].x);
        int32_t place = first[cell];
        for (int32_t n = first[cell]; n < first[cell + 1]; ++n)
            place += order[n] < (uint32_t)i;
        points[place] = placed[i];
    }
}

static __global__ void write_firsts(const __grid_constant__ sk_surface_grid grid, const int32_t *first)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(n, grid.block_count * (sk_sub_count + 1))
    {
        const size_t block = n / (sk_sub_count + 1), cell = n % (sk_sub_count + 1);
        const int32_t own = first[block * sk_sub_count];
        grid.sub_first[block][cell] = (uint32_t)(first[block * sk_sub_count + cell] - own);
        if (cell == 0)
            grid.first[block] = (size_t)own;
        if (block + 1 == grid.block_count && cell == sk_sub_count)
            grid.first[block + 1] = (size_t)first[block * sk_sub_count + cell];
    }
}

/* --- the whole --- */

/* Arrays of the blocks in one piece of memory. */
static selkie_code take_blocks(sk_cuda_mesher *m, uint64_t *bits[2], selkie_error *error)
{
    sk_surface_grid *grid = &m->grid;
    const size_t count = grid->block_count, room = (count + 2 + 63) / 64 * 64;
    char *memory;
    /* Arrays with the largest numbers come first, so that all are aligned. */
    const size_t sizes[] = {sizeof *grid->first,      sizeof **bits,           sizeof **bits,
                            sizeof *grid->inside,     sizeof *grid->deep,      sizeof *grid->coordinates,
                            sizeof *grid->neighbours, sizeof *grid->sub_first, sizeof *m->flags,
                            sizeof *m->tile_index,    sizeof *m->sum_index,    sizeof *m->block_index,
                            sizeof *grid->signs,      sizeof *grid->side,      sizeof *grid->near};
    void *const to[] = {&grid->first,       &bits[0],          &bits[1],         &grid->inside, &grid->deep,
                        &grid->coordinates, &grid->neighbours, &grid->sub_first, &m->flags,     &m->tile_index,
                        &m->sum_index,      &m->block_index,   &grid->signs,     &grid->side,   &grid->near};
    size_t bytes = 0;
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; ++n)
        bytes += room * sizes[n];
    SK_TRY(sk_cuda_reserve(m, SK_ROOM_BLOCKS, bytes, &memory, error));
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; ++n) {
        memcpy(to[n], &memory, sizeof memory);
        memory += room * sizes[n];
    }
    float *nodes;
    SK_TRY(sk_cuda_reserve(m, SK_ROOM_NODES, 3 * (count + 1) * sk_node_count * sizeof(float), &nodes, error));
    grid->phi = nodes;
    grid->other = nodes + (count + 1) * sk_node_count;
    grid->spare = nodes + 2 * (count + 1) * sk_node_count;
    return SELKIE_OK;
}

static selkie_code take_places(sk_cuda_mesher *m, bin_places *places, selkie_error *error)
{
    size_t all = 1;
    char *memory;
    for (int a = 0; a < 3; ++a) {
        places->count[a] = (m->grid.last[a] >> sk_node_log) + 1;
        all *= (size_t)places->count[a];
    }
    if (all >= NOWHERE / 2)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "backend: \"cuda\" cannot number the %zu blocks of voxels of this domain; use a smaller one, a "
                       "smaller mesh.resolution or \"tuned\"",
                       all);
    places->all = all;
    SK_TRY(sk_cuda_reserve(m, SK_ROOM_PLACES, all * 16, &memory, error));
    places->occupied = (unsigned long long *)(void *)memory;
    places->flags = (uint32_t *)(void *)(memory + 8 * all);
    places->blocks = (int32_t *)(void *)(memory + 12 * all);
    SK_CUDA_TRY(cudaMemsetAsync(memory, 0, 8 * all, m->cuda.stream), "a surface", error);
    return SELKIE_OK;
}

static selkie_code sort(sk_cuda_mesher *m, const bin_places *places, const sk_surface_point *placed,
                        const uint32_t *keys, selkie_error *error)
{
    const size_t cells = m->grid.block_count * sk_sub_count, count = m->cloud.count;
    uint32_t *counts, *ranks, *order;
    SK_TRY(sk_cuda_reserve(m, SK_ROOM_CELLS, 2 * (cells + 1) * sizeof *counts, &counts, error));
    SK_TRY(sk_cuda_reserve(m, SK_ROOM_RANKS, (count + 1) * sizeof *ranks, &ranks, error));
    SK_TRY(sk_cuda_reserve(m, SK_ROOM_ORDER, (count + 1) * sizeof *order, &order, error));
    SK_TRY(sk_cuda_reserve(m, SK_ROOM_POINTS, (count + 1) * sizeof *m->grid.points, &m->grid.points, error));
    int32_t *first = (int32_t *)(void *)(counts + cells + 1);
    SK_CUDA_TRY(cudaMemsetAsync(counts, 0, (cells + 1) * sizeof *counts, m->cuda.stream), "a surface", error);
    SK_LAUNCH_SIMPLE(&m->cuda, count_cells, SK_SURFACE_WIDE, SK_SURFACE_THREADS, *places, count, placed, keys, counts,
                     ranks);
    sk_cuda_number(m, counts, cells + 1, 0, first, SK_TOTAL_POINTS);
    SK_LAUNCH_SIMPLE(&m->cuda, order_points, SK_SURFACE_WIDE, SK_SURFACE_THREADS, *places, count, placed, keys, first,
                     ranks, order);
    SK_LAUNCH_SIMPLE(&m->cuda, sort_points, SK_SURFACE_WIDE, SK_SURFACE_THREADS, *places, count, placed, keys, first,
                     order, m->grid.points);
    SK_LAUNCH_SIMPLE(&m->cuda, write_firsts, SK_SURFACE_WIDE, SK_SURFACE_THREADS, m->grid, first);
    return SELKIE_OK;
}

/* Marks the cells that are surely inside, then those whose particles matter to no other cell's nodes. */
static void mark_inside(sk_cuda_mesher *m, uint64_t *bits[2])
{
    const int rounds = 1 + sk_surface_erosions(&m->grid);
    for (int n = 0; n < 3 * rounds; ++n) {
        uint64_t *copy = n == 2 ? m->grid.inside : n == 3 * rounds - 1 ? m->grid.deep : NULL;
        SK_LAUNCH_SIMPLE(&m->cuda, erode, SK_SURFACE_WIDE, SK_SURFACE_THREADS, m->grid, n % 3, bits[n & 1],
                         bits[(n + 1) & 1], copy);
    }
}

selkie_code sk_cuda_surface_bin(sk_cuda_mesher *m, selkie_error *error)
{
    const size_t count = m->cloud.count;
    const sk_surface_frame frame = sk_surface_frame_of(&m->grid);
    const sk_surface_reach reach = sk_surface_reach_of(&m->grid);
    sk_surface_point *placed;
    uint32_t *keys;
    uint64_t *bits[2];
    bin_places places;

    /* Blocks near particles. */
    SK_TRY(take_places(m, &places, error));
    SK_TRY(sk_cuda_reserve(m, SK_ROOM_PLACED, (count + 1) * sizeof *placed, &placed, error));
    SK_TRY(sk_cuda_reserve(m, SK_ROOM_KEYS, (count + 1) * sizeof *keys, &keys, error));
    SK_LAUNCH_SIMPLE(&m->cuda, place_points, SK_SURFACE_WIDE, SK_SURFACE_THREADS, m->cloud, frame, places, placed,
                     keys);
    SK_LAUNCH_SIMPLE(&m->cuda, find_blocks, SK_SURFACE_WIDE, SK_SURFACE_THREADS, places, reach);
    sk_cuda_number(m, places.flags, places.all, 1, places.blocks, SK_TOTAL_BLOCKS);
    SK_TRY(sk_cuda_read_totals(m, error));

    /* What the blocks have. */
    m->grid.block_count = (size_t)m->counted[SK_TOTAL_BLOCKS];
    SK_TRY(take_blocks(m, bits, error));
    SK_LAUNCH_SIMPLE(&m->cuda, start_blocks, SK_SURFACE_WIDE, SK_SURFACE_THREADS, m->grid, places, bits[0]);
    SK_LAUNCH_SIMPLE(&m->cuda, find_neighbours, SK_SURFACE_WIDE, SK_SURFACE_THREADS, m->grid, places);
    if (!m->grid.block_count)
        return SELKIE_OK;
    SK_TRY(sort(m, &places, placed, keys, error));
    mark_inside(m, bits);
    return SELKIE_OK;
}
