/* Particles sorted into blocks of 8x8x8 nodes and into cells of 2x2x2 voxels within them.
 *
 * Blocks are kept in the order of their coordinates, particles within a cell in the caller's order: the result does not
 * depend on the number of threads.
 */
#include "geom/surface_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Blocks along an axis must fit into 21 bits of a key. */
enum { axis_bits = 21 };

/* --- A set of block keys --- */

typedef struct block_set {
    uint64_t *keys;   /* key + 1; 0 is a free slot */
    int32_t *indices; /* of the key: order of arrival, later order of the blocks */
    size_t capacity;  /* a power of two */
    size_t count;
} block_set;

static uint64_t make_key(const int c[3])
{
    return (uint64_t)c[2] << (2 * axis_bits) | (uint64_t)c[1] << axis_bits | (uint64_t)c[0];
}

static void key_coordinates(uint64_t key, int32_t c[3])
{
    const uint64_t mask = ((uint64_t)1 << axis_bits) - 1;
    for (int a = 0; a < 3; ++a)
        c[a] = (int32_t)(key >> (a * axis_bits) & mask);
}

static size_t slot_of(const block_set *set, uint64_t key)
{
    uint64_t hash = key * 0x9e3779b97f4a7c15ULL;
    size_t slot = (size_t)(hash ^ hash >> 29) & (set->capacity - 1);
    while (set->keys[slot] && set->keys[slot] != key + 1)
        slot = (slot + 1) & (set->capacity - 1);
    return slot;
}

static int32_t find_key(const block_set *set, uint64_t key)
{
    size_t slot = slot_of(set, key);
    return set->keys[slot] ? set->indices[slot] : -1;
}

static void set_free(block_set *set)
{
    sk_release(NULL, set->keys);
    sk_release(NULL, set->indices);
}

static selkie_code set_resize(block_set *set, size_t capacity, selkie_error *error)
{
    block_set grown = {sk_allocate_zeroed(NULL, capacity * sizeof *grown.keys),
                       sk_allocate(NULL, capacity * sizeof *grown.indices), capacity, set->count};
    if (!grown.keys || !grown.indices) {
        set_free(&grown);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory for the table of blocks (%.1f MiB)",
                       (double)capacity * 12 / 1048576.0);
    }
    for (size_t i = 0; i < set->capacity; ++i)
        if (set->keys[i]) {
            size_t slot = slot_of(&grown, set->keys[i] - 1);
            grown.keys[slot] = set->keys[i];
            grown.indices[slot] = set->indices[i];
        }
    set_free(set);
    *set = grown;
    return SELKIE_OK;
}

static selkie_code set_insert(block_set *set, uint64_t key, selkie_error *error)
{
    if (2 * set->count + 2 > set->capacity)
        SK_TRY(set_resize(set, set->capacity ? 2 * set->capacity : 4096, error));
    size_t slot = slot_of(set, key);
    if (!set->keys[slot]) {
        set->keys[slot] = key + 1;
        set->indices[slot] = (int32_t)set->count++;
    }
    return SELKIE_OK;
}

static int compare_keys(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* --- Particles in grid coordinates --- */

static const uint64_t unusable = UINT64_MAX;

/* What the steps below share. */
typedef struct binning {
    sk_surface_grid *grid;
    const sk_surface_particles *particles;
    uint64_t *keys;           /* [particles] of the block, then its index; `unusable` = left out */
    sk_surface_point *points; /* [particles] */
    block_set set;
    uint64_t *occupied; /* [blocks] bits of the cells with particles */
} binning;

static void place_particles(binning *b)
{
    const sk_surface_grid *grid = b->grid;
    const sk_surface_particles *particles = b->particles;
    const sk_surface_frame frame = sk_surface_frame_of(grid);
#pragma omp parallel for num_threads(grid->threads) schedule(static)
    for (size_t i = 0; i < particles->count; ++i) {
        const float *p = (const float *)((const char *)particles->position + i * particles->position_stride);
        sk_surface_point *point = &b->points[i];
        int c[3], counts = 1;
        point->source = (uint32_t)i;
        for (int a = 0; a < 3; ++a) {
            counts &= sk_surface_place(&frame, a, p[a], &point->x[a]);
            c[a] = (int)point->x[a] >> sk_node_log;
        }
        b->keys[i] = counts ? make_key(c) : unusable;
    }
}

/* The blocks that hold particles, numbered as they come; keys become these numbers. */
static selkie_code find_home_blocks(binning *b, selkie_error *error)
{
    uint64_t previous = unusable;
    int32_t index = -1;
    for (size_t i = 0; i < b->particles->count; ++i) {
        uint64_t key = b->keys[i];
        if (key != previous && key != unusable) {
            SK_TRY(set_insert(&b->set, key, error));
            index = find_key(&b->set, key);
            previous = key;
        }
        if (key != unusable)
            b->keys[i] = (uint64_t)index;
    }
    b->occupied = sk_allocate_zeroed(NULL, (b->set.count + 1) * sizeof *b->occupied);
    if (!b->occupied)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory for %zu blocks", b->set.count);

        /* Bits of the cells. Setting a bit twice does no harm, so threads need no order. */
#pragma omp parallel for num_threads(b->grid->threads) schedule(static)
    for (size_t i = 0; i < b->particles->count; ++i) {
        if (b->keys[i] == unusable)
            continue;
        uint64_t bit = (uint64_t)1 << sk_surface_cell(b->points[i].x), *to = &b->occupied[b->keys[i]];
        if (!(__atomic_load_n(to, __ATOMIC_RELAXED) & bit))
            __atomic_fetch_or(to, bit, __ATOMIC_RELAXED);
    }
    return SELKIE_OK;
}

/* --- Blocks --- */

/* Adds the blocks in which a particle can make liquid or affect the smoothing. */
static selkie_code wake_neighbours(binning *b, selkie_error *error)
{
    const sk_surface_grid *grid = b->grid;
    const sk_surface_reach reach = sk_surface_reach_of(grid);
    size_t home = b->set.count;
    uint64_t *keys = sk_allocate(NULL, (home + 1) * sizeof *keys);
    if (!keys)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory for %zu blocks", home);
    for (size_t i = 0; i < b->set.capacity; ++i)
        if (b->set.keys[i])
            keys[b->set.indices[i]] = b->set.keys[i] - 1;
    selkie_code code = SELKIE_OK;
    for (size_t i = 0; i < home && !code; ++i)
        for (int n = 0; n < 27 && !code; ++n) {
            int32_t c[3];
            int d[3] = {n % 3, n / 3 % 3, n / 9}, exists = 1;
            key_coordinates(keys[i], c);
            for (int a = 0; a < 3; ++a) {
                c[a] += d[a] - 1;
                exists &= c[a] >= 0 && c[a] <= grid->last[a] >> sk_node_log;
            }
            if (exists && sk_surface_reaches(&reach, b->occupied[i], n))
                code = set_insert(&b->set, make_key(c), error);
        }
    sk_release(NULL, keys);
    return code;
}

static selkie_code allocate_blocks(sk_surface_grid *grid, size_t count, selkie_error *error)
{
    grid->coordinates = sk_allocate(NULL, (count + 1) * sizeof *grid->coordinates);
    grid->neighbours = sk_allocate(NULL, (count + 1) * sizeof *grid->neighbours);
    grid->first = sk_allocate_zeroed(NULL, (count + 2) * sizeof *grid->first);
    grid->sub_first = sk_allocate(NULL, (count + 1) * sizeof *grid->sub_first);
    grid->inside = sk_allocate_zeroed(NULL, (count + 1) * sizeof *grid->inside);
    grid->deep = sk_allocate_zeroed(NULL, (count + 1) * sizeof *grid->deep);
    grid->side = sk_allocate_zeroed(NULL, count + 1);
    grid->near = sk_allocate_zeroed(NULL, count + 1);
    grid->phi = sk_allocate(NULL, (count + 1) * sk_node_count * sizeof(float));
    grid->other = sk_allocate(NULL, (count + 1) * sk_node_count * sizeof(float));
    grid->spare = sk_allocate(NULL, (count + 1) * sk_node_count * sizeof(float));
    grid->signs = sk_allocate(NULL, (count + 1) * sizeof *grid->signs);
    if (!grid->coordinates || !grid->neighbours || !grid->first || !grid->sub_first || !grid->inside || !grid->deep ||
        !grid->side || !grid->near || !grid->phi || !grid->other || !grid->spare || !grid->signs)
        return sk_fail(error, SELKIE_ERROR_MEMORY,
                       "surface: no memory, %.1f MiB for %zu blocks; a larger voxel_size than %g m needs less",
                       (double)count * 3 * sk_node_count * sizeof(float) / 1048576.0, count, grid->voxel[0]);
    grid->block_count = count;
    return SELKIE_OK;
}

/* Gives the blocks their final order; `keys` of the particles and `occupied` follow. */
static selkie_code order_blocks(binning *b, size_t home, selkie_error *error)
{
    sk_surface_grid *grid = b->grid;
    block_set *set = &b->set;
    SK_TRY(allocate_blocks(grid, set->count, error));
    uint64_t *keys = sk_allocate(NULL, (set->count + 1) * sizeof *keys);
    int32_t *renumbered = sk_allocate(NULL, (home + 1) * sizeof *renumbered);
    uint64_t *occupied = sk_allocate_zeroed(NULL, (set->count + 1) * sizeof *occupied);
    if (!keys || !renumbered || !occupied) {
        sk_release(NULL, keys);
        sk_release(NULL, renumbered);
        sk_release(NULL, occupied);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory for %zu blocks", set->count);
    }

    /* Keys in ascending order are the blocks. */
    size_t n = 0;
    for (size_t i = 0; i < set->capacity; ++i)
        if (set->keys[i])
            keys[n++] = set->keys[i] - 1;
    qsort(keys, n, sizeof *keys, compare_keys);
    for (size_t i = 0; i < n; ++i) {
        size_t slot = slot_of(set, keys[i]);
        if ((size_t)set->indices[slot] < home) {
            renumbered[set->indices[slot]] = (int32_t)i;
            occupied[i] = b->occupied[set->indices[slot]];
        }
        set->indices[slot] = (int32_t)i;
        key_coordinates(keys[i], grid->coordinates[i]);
    }
    sk_release(NULL, keys);
    sk_release(NULL, b->occupied);
    b->occupied = occupied;

    /* Neighbours of the blocks, blocks of the particles. */
#pragma omp parallel for num_threads(grid->threads) schedule(static)
    for (size_t i = 0; i < n; ++i)
        for (int k = 0; k < 27; ++k) {
            int c[3] = {grid->coordinates[i][0] + k % 3 - 1, grid->coordinates[i][1] + k / 3 % 3 - 1,
                        grid->coordinates[i][2] + k / 9 - 1};
            int exists = c[0] >= 0 && c[1] >= 0 && c[2] >= 0;
            grid->neighbours[i][k] = exists ? find_key(set, make_key(c)) : -1;
        }
#pragma omp parallel for num_threads(grid->threads) schedule(static)
    for (size_t i = 0; i < b->particles->count; ++i)
        if (b->keys[i] != unusable)
            b->keys[i] = (uint64_t)renumbered[b->keys[i]];
    sk_release(NULL, renumbered);
    return SELKIE_OK;
}

/* --- The sort --- */

/* Stable counting sort by block: threads count and write parts of the particles. */
static selkie_code sort_by_block(binning *b, sk_surface_point *sorted, selkie_error *error)
{
    sk_surface_grid *grid = b->grid;
    const size_t blocks = grid->block_count, count = b->particles->count, parts = (size_t)grid->threads;
    uint32_t *counts = sk_allocate_zeroed(NULL, (parts * blocks + 1) * sizeof *counts);
    if (!counts)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory to sort %zu particles", count);
#pragma omp parallel for num_threads(grid->threads) schedule(static)
    for (size_t part = 0; part < parts; ++part)
        for (size_t i = count * part / parts; i < count * (part + 1) / parts; ++i)
            if (b->keys[i] != unusable)
                ++counts[part * blocks + b->keys[i]];

    /* First place of each block and part. */
    size_t sum = 0;
    for (size_t block = 0; block < blocks; ++block) {
        grid->first[block] = sum;
        for (size_t part = 0; part < parts; ++part) {
            uint32_t here = counts[part * blocks + block];
            counts[part * blocks + block] = (uint32_t)sum;
            sum += here;
        }
    }
    grid->first[blocks] = sum;
    grid->particle_count = sum;

#pragma omp parallel for num_threads(grid->threads) schedule(static)
    for (size_t part = 0; part < parts; ++part)
        for (size_t i = count * part / parts; i < count * (part + 1) / parts; ++i)
            if (b->keys[i] != unusable)
                sorted[counts[part * blocks + b->keys[i]]++] = b->points[i];
    sk_release(NULL, counts);
    return SELKIE_OK;
}

/* Within a block by cell. */
static void sort_by_cell(const sk_surface_grid *grid, const sk_surface_point *from, sk_surface_point *to)
{
#pragma omp parallel for num_threads(grid->threads) schedule(dynamic, 16)
    for (size_t block = 0; block < grid->block_count; ++block) {
        const size_t first = grid->first[block], last = grid->first[block + 1];
        uint32_t *start = grid->sub_first[block], next[sk_sub_count + 1] = {0};
        for (size_t p = first; p < last; ++p)
            ++next[sk_surface_cell(from[p].x) + 1];
        for (int cell = 0; cell < sk_sub_count; ++cell)
            next[cell + 1] += next[cell];
        memcpy(start, next, sizeof next);
        for (size_t p = first; p < last; ++p)
            to[first + next[sk_surface_cell(from[p].x)]++] = from[p];
    }
}

/* Without an order in the blocks. */
static void skip_cells(const sk_surface_grid *grid)
{
    for (size_t block = 0; block < grid->block_count; ++block) {
        const uint32_t count = (uint32_t)(grid->first[block + 1] - grid->first[block]);
        for (int cell = 0; cell <= sk_sub_count; ++cell)
            grid->sub_first[block][cell] = cell ? count : 0;
    }
}

/* --- Cells inside --- */

static void erode_along(const sk_surface_grid *grid, int axis, const uint64_t *from, uint64_t *to)
{
#pragma omp parallel for num_threads(grid->threads) schedule(static)
    for (size_t b = 0; b < grid->block_count; ++b)
        to[b] = sk_surface_erode(grid, axis, from, b);
}

/* Marks the cells that are surely inside, then those whose particles matter to no other cell's nodes. */
static selkie_code mark_inside(binning *b, selkie_error *error)
{
    sk_surface_grid *grid = b->grid;
    uint64_t *bits[2] = {b->occupied, sk_allocate(NULL, (grid->block_count + 1) * sizeof **bits)};
    if (!bits[1])
        return sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory for %zu blocks", grid->block_count);
    for (size_t i = 0; i < grid->block_count; ++i)
        bits[0][i] |= sk_cells_beyond(grid, i);
    const int beyond = sk_surface_erosions(grid);
    for (int round = 0; round < 1 + beyond; ++round) {
        for (int a = 0; a < 3; ++a)
            erode_along(grid, a, bits[(round + a) & 1], bits[(round + a + 1) & 1]);
        memcpy(round ? grid->deep : grid->inside, bits[(round + 1) & 1], grid->block_count * sizeof **bits);
    }
    sk_release(NULL, bits[1]);
    return SELKIE_OK;
}

/* --- The whole --- */

static selkie_code bin_particles(binning *b, selkie_error *error)
{
    const size_t count = b->particles->count;
    SK_TRY(set_resize(&b->set, 4096, error));
    b->keys = sk_allocate(NULL, (count + 1) * sizeof *b->keys);
    b->points = sk_allocate(NULL, (count + 1) * sizeof *b->points);
    b->grid->points = sk_allocate(NULL, (count + 1) * sizeof *b->grid->points);
    if (!b->keys || !b->points || !b->grid->points)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory, %.1f MiB to sort %zu particles",
                       (double)count * 40 / 1048576.0, count);
    place_particles(b);
    SK_TRY(find_home_blocks(b, error));
    size_t home = b->set.count;
    SK_TRY(wake_neighbours(b, error));
    SK_TRY(order_blocks(b, home, error));
    SK_TRY(sort_by_block(b, b->grid->points, error));
    if (b->grid->only_blocks) {
        skip_cells(b->grid);
        return SELKIE_OK;
    }
    sk_surface_point *by_block = b->grid->points;
    b->grid->points = b->points;
    b->points = by_block;
    sort_by_cell(b->grid, by_block, b->grid->points);
    return mark_inside(b, error);
}

selkie_code sk_surface_bin(sk_surface_grid *grid, const sk_surface_particles *particles, selkie_error *error)
{
    binning b = {.grid = grid, .particles = particles};
    selkie_code code = bin_particles(&b, error);
    sk_release(NULL, b.keys);
    sk_release(NULL, b.points);
    sk_release(NULL, b.occupied);
    set_free(&b.set);
    return code;
}
