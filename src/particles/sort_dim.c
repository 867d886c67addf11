/* The cell sort: finds the blocks and puts the particles into the order of their cells.
 *
 * Four passes. (1) Each particle computes its block and its cell there; each chunk of particles lists its blocks. (2)
 * Listed blocks get slots, and particles are counted by chunk and block. (3) Particle indices are distributed to the
 * blocks. (4) Each block sorts its few thousand indices by cell, within the L1 cache, and moves the records once. Every
 * pass is stable, so that the result depends neither on chunks nor on threads.
 */
#include <stdlib.h>
#include <string.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/deal.h"
#include "grid/grid.h"
#include "grid/grid_kernels.h"
#include "particles/leavers.h"
#include "particles/sort_parts.h"

enum { DEAD_KEY = -1 };

typedef struct chunk_range {
    int64_t begin, end;
} chunk_range;

static chunk_range chunk_of(int64_t count, int chunks, int chunk)
{
    chunk_range range = {count * chunk / chunks, count * (chunk + 1) / chunks};
    return range;
}

/* The number of a block in a chunk's list; adds the block if it is new. Returns 0 if there is no memory. */
static int32_t number_of(sk_block_list *list, sk_memory *memory, uint64_t key)
{
    int32_t number = sk_block_find(&list->table, key);
    if (number)
        return number;
        /* Threads share the count of bytes. A chunk gets there once for each of its blocks. */
#pragma omp critical
    number = sk_block_list_add(list, memory, key, NULL) == SELKIE_OK ? list->table.count : 0;
    return number;
}

/* What pass 1 found in a chunk. */
typedef struct chunk_result {
    int64_t lost; /* particles outside the grid (NaN or far away) */
    int failed;   /* no memory */
} chunk_result;

/* Pass 1 for the particles of a chunk: keys get the numbers of their blocks in the chunk's list. */
static chunk_result compute_chunk_keys(sk_grid *grid, const sk_particles *particles, chunk_range range,
                                       sk_block_list *list)
{
    const float inverse = (float)(1.0 / grid->cell_size);
    const float corner[3] = {(float)grid->corner[0], (float)grid->corner[1], (float)grid->corner[2]};
    float limit[3];
    for (int d = 0; d < 3; d++)
        limit[d] = (float)(grid->blocks[d] * grid->extent[d]);
    int last[3] = {-1, -1, -1}; /* block of the previous particle, and its number */
    int32_t last_number = 0;
    chunk_result result = {0, 0};
    for (int64_t p = range.begin; p < range.end; p += SK_WIDE) {
        int lanes = range.end - p < SK_WIDE ? (int)(range.end - p) : SK_WIDE;
        fw r[8];
        fw_load_columns(sk_particle_floats(particles->records + p), lanes, r);
        fw_load_columns(sk_particle_floats(particles->records + p) + 4, lanes, r + 4);
        iw block[3] = {iw_splat(0), iw_splat(0), iw_splat(0)}, cell = iw_splat(0), inside = iw_splat(-1);
        iw other = iw_splat(0);
        for (int d = 0; d < SELKIE_DIM; d++) {
            fw g = (r[d] - corner[d]) * inverse;
            iw here = (g >= 0.0f) & (g < limit[d]);
            iw i = iw_from_fw(fw_select(here, g, fw_splat(0.0f)));
            inside &= here;
            block[d] = i >> SK_BLOCK_LOG;
            other |= block[d] != last[d];
            cell += (i & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
        }
        const iw dead = ((iw)r[7] & SK_PARTICLE_DEAD) != 0;
        sk_store_cell_keys(grid->cell_keys + p, cell, lanes);

        /* Fast path: most batches lie in the block of the previous one. */
        if (lanes == SK_WIDE && !iw_any(other | dead | ~inside)) {
            const iw numbers = iw_splat(last_number);
            memcpy(grid->keys + p, &numbers, sizeof numbers);
            continue;
        }
        for (int l = 0; l < lanes; l++) {
            if (dead[l] || !inside[l]) {
                result.lost += !dead[l];
                grid->keys[p + l] = (uint32_t)DEAD_KEY;
                continue;
            }
            if (block[0][l] != last[0] || block[1][l] != last[1] || block[2][l] != last[2]) {
                for (int d = 0; d < 3; d++)
                    last[d] = block[d][l];
                last_number = number_of(list, grid->memory, sk_block_key(last[0], last[1], last[2]));
                result.failed |= !last_number;
            }
            grid->keys[p + l] = (uint32_t)last_number;
        }
    }
    return result;
}

/* Pass 1. Returns the number of particles outside the grid. */
static selkie_code compute_keys(sk_grid *grid, const sk_particles *particles, int chunks, int threads, int64_t *lost,
                                selkie_error *error)
{
    SK_TRY(SK_DIM(sk_sort_clear_lists)(grid, chunks, error));
    int64_t outside = 0;
    int failed = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : outside, failed)
    for (int chunk = 0; chunk < chunks; chunk++) {
        const chunk_result result =
            compute_chunk_keys(grid, particles, chunk_of(particles->count, chunks, chunk), &grid->lists[chunk]);
        outside += result.lost;
        failed += result.failed;
    }
    *lost = outside;
    return failed ? sk_fail(error, SELKIE_ERROR_MEMORY, "cell sort: no memory for the list of blocks") : SELKIE_OK;
}

selkie_code SK_DIM(sk_sort_clear_lists)(sk_grid *grid, int count, selkie_error *error)
{
    if (count > grid->list_count) {
        size_t capacity = (size_t)grid->list_count;
        SK_TRY(sk_reserve(grid->memory, (void **)&grid->lists, &capacity, (size_t)count, sizeof *grid->lists,
                          "cell sort", error));
        memset(grid->lists + grid->list_count, 0, (capacity - (size_t)grid->list_count) * sizeof *grid->lists);
        grid->list_count = (int)capacity;
    }
    for (int l = 0; l < count; l++) {
        sk_block_table_clear(&grid->lists[l].table);
        SK_TRY(sk_block_table_reserve(&grid->lists[l].table, grid->memory, 1, error));
    }
    return SELKIE_OK;
}

static selkie_code reserve_sorted(sk_grid *grid, size_t count, selkie_error *error)
{
    return sk_reserve(grid->memory, (void **)&grid->sorted_blocks, &grid->sorted_capacity, count,
                      sizeof *grid->sorted_blocks, "cell sort", error);
}

selkie_code SK_DIM(sk_sort_join_lists)(sk_grid *grid, int count, size_t *total, selkie_error *error)
{
    *total = 0;
    for (int l = 0; l < count; l++) {
        const size_t here = (size_t)grid->lists[l].table.count;
        SK_TRY(reserve_sorted(grid, *total + here, error));
        if (here)
            memcpy(grid->sorted_blocks + *total, grid->lists[l].keys, here * sizeof *grid->sorted_blocks);
        *total += here;
    }
    return SELKIE_OK;
}

static void set_coordinates(sk_grid *grid, int slot, uint64_t key)
{
    for (int d = 0; d < 3; d++)
        grid->coordinates[slot][d] = sk_block_coordinate(key, d);
    grid->coordinates[slot][3] = 0;
}

selkie_code SK_DIM(sk_sort_assign_blocks)(sk_grid *grid, size_t count, selkie_error *error)
{
    /* Ascending order, each block once. SK_NO_BLOCK comes last. */
    uint64_t *keys = grid->sorted_blocks;
    size_t found = 0;
    sk_block_sort_keys(keys, count);
    for (size_t i = 0; i < count && keys[i] != SK_NO_BLOCK; i++)
        if (found == 0 || keys[found - 1] != keys[i])
            keys[found++] = keys[i];

    sk_block_table_clear(&grid->table);
    SK_TRY(sk_grid_reserve_blocks(grid, found + 1, error)); /* the blocks around them follow in assign_reached */
    SK_TRY(sk_block_table_reserve(&grid->table, grid->memory, found * 2 + 64, error));
    for (size_t i = 0; i < found; i++) {
        SK_TRY(sk_block_table_set(&grid->table, grid->memory, keys[i], (int32_t)i + 1, error));
        set_coordinates(grid, (int)i + 1, keys[i]);
    }
    grid->particle_blocks = (int)found;
    grid->block_count = (int)found + 1;
    return SELKIE_OK;
}

/* Have SK_WIDE particles the same key, and is it a block's? Most batches lie in one block. */
static inline int all_in_one(const uint32_t *keys)
{
    iw batch;
    memcpy(&batch, keys, sizeof batch);
    return !iw_any(batch != (int32_t)keys[0]) && keys[0] != (uint32_t)DEAD_KEY;
}

/* Pass 2: histogram[chunk][slot], then prefix sums to the first target of each (slot, chunk). */
static int64_t count_blocks(sk_grid *grid, int64_t particle_count, int chunks, int threads, uint32_t *block_start)
{
    size_t width = (size_t)grid->particle_blocks + 1;

    /* Histogram of each chunk. The keys become slots. */
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int chunk = 0; chunk < chunks; chunk++) {
        uint32_t *counts = grid->histogram + (size_t)chunk * width;
        const sk_block_list *list = &grid->lists[chunk];
        memset(counts, 0, width * sizeof *counts);
        for (int32_t i = 0; i < list->table.count; i++)
            list->slots[i] = sk_block_find(&grid->table, list->keys[i]);
        chunk_range range = chunk_of(particle_count, chunks, chunk);

        /* A batch of particles of one block needs a single addition. */
        for (int64_t first = range.begin, next; first < range.end; first = next) {
            next = first + SK_WIDE < range.end ? first + SK_WIDE : range.end;
            if (next - first == SK_WIDE && all_in_one(grid->keys + first)) {
                const iw slots = iw_splat(list->slots[grid->keys[first] - 1]);
                memcpy(grid->keys + first, &slots, sizeof slots);
                counts[slots[0]] += SK_WIDE;
                continue;
            }
            for (int64_t p = first; p < next; p++)
                if (grid->keys[p] != (uint32_t)DEAD_KEY) {
                    uint32_t slot = (uint32_t)list->slots[grid->keys[p] - 1];
                    grid->keys[p] = slot;
                    counts[slot]++;
                }
        }
    }

    /* Prefix sums: by slot, and by chunk within a slot. */
    uint32_t total = 0;
    for (size_t slot = 1; slot < width; slot++) {
        block_start[slot] = total;
        for (int chunk = 0; chunk < chunks; chunk++) {
            uint32_t *entry = grid->histogram + (size_t)chunk * width + slot;
            uint32_t count = *entry;
            *entry = total;
            total += count;
        }
    }
    block_start[width] = total;
    return total;
}

/* Pass 3. */
static void deal_indices(sk_grid *grid, int64_t particle_count, int chunks, int threads)
{
    size_t width = (size_t)grid->particle_blocks + 1;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int chunk = 0; chunk < chunks; chunk++) {
        uint32_t *next = grid->histogram + (size_t)chunk * width;
        chunk_range range = chunk_of(particle_count, chunks, chunk);
        for (int64_t first = range.begin, last; first < range.end; first = last) {
            last = first + SK_WIDE < range.end ? first + SK_WIDE : range.end;
            if (last - first == SK_WIDE && all_in_one(grid->keys + first)) {
                const uint32_t place = next[grid->keys[first]];
                const iw indices = (iw){SK_WIDE_LANES} + (int32_t)(uint32_t)first;
                next[grid->keys[first]] += SK_WIDE;
                memcpy(grid->order + place, &indices, sizeof indices);
                memcpy(grid->order_cells + place, grid->cell_keys + first, SK_WIDE * sizeof *grid->order_cells);
                continue;
            }
            for (int64_t p = first; p < last; p++)
                if (grid->keys[p] != (uint32_t)DEAD_KEY) {
                    uint32_t place = next[grid->keys[p]]++;
                    grid->order[place] = (uint32_t)p;
                    grid->order_cells[place] = grid->cell_keys[p];
                }
        }
    }
}

/* Pass 4. */
static uint32_t sort_block(sk_grid *grid, sk_particles *particles, int slot, uint32_t begin, uint32_t end)
{
    cell_counters counters;
    memset(&counters, 0, sizeof counters);
    const uint32_t half = (end - begin) / 2;
    const uint32_t *order[2] = {grid->order + begin, grid->order + begin + half};
    const uint16_t *cells[2] = {grid->order_cells + begin, grid->order_cells + begin + half};
    for (uint32_t i = 0; i < half; i++)
        for (int stream = 0; stream < 2; stream++)
            counters.next[stream][cells[stream][i]]++;
    if ((end - begin) & 1)
        counters.next[1][cells[1][half]]++;
    uint32_t *start = grid->cell_start + (size_t)(slot - 1) * SK_BLOCK_CELLS;
    place_cells(&counters, begin, start);
    const uint32_t reach = reach_of(grid, slot, start, end);
    for (uint32_t i = 0; i < half; i++)
        for (int stream = 0; stream < 2; stream++)
            move_record(particles, order[stream][i], counters.next[stream][cells[stream][i]]++);
    if ((end - begin) & 1)
        move_record(particles, order[1][half], counters.next[1][cells[1][half]]++);
    return reach;
}

/* The slot of the block at an offset from a block; 0 if it is absent. */
static inline int32_t slot_beside(const sk_grid *grid, const int32_t from[4], int n, uint64_t *key)
{
    int at[3] = {from[0] + n % 3 - 1, from[1] + n / 3 % 3 - 1, SELKIE_DIM == 3 ? from[2] + n / 9 - 1 : 0};
    *key = SK_NO_BLOCK;
    for (int d = 0; d < SELKIE_DIM; d++) {
        if (at[d] >= 0 && at[d] < grid->blocks[d])
            continue;
        if (!(grid->periodic >> d & 1))
            return 0;
        at[d] = sk_wrap_index(at[d], grid->blocks[d]);
    }
    *key = sk_block_key(at[0], at[1], at[2]);
    return sk_block_find(&grid->table, *key);
}

/* Slots for the blocks that kernels reach, in the order in which they are found. */
static selkie_code assign_reached(sk_grid *grid, const uint32_t *reach, selkie_error *error)
{
    int slot = grid->block_count;
    for (int b = 1; b <= grid->particle_blocks; b++)
        for (int n = 0; n < SK_NEIGHBOURS; n++) {
            uint64_t key;
            if (!(reach[b] >> n & 1) || slot_beside(grid, grid->coordinates[b], n, &key) || key == SK_NO_BLOCK)
                continue;
            SK_TRY(sk_block_table_set(&grid->table, grid->memory, key, slot, error));
            if ((size_t)slot < grid->block_capacity)
                set_coordinates(grid, slot, key);
            slot++;
        }
    if ((size_t)slot > grid->block_capacity) {
        /* Reserving clears the coordinates, so they are rebuilt from the table. */
        const int count = grid->particle_blocks;
        SK_TRY(sk_grid_reserve_blocks(grid, (size_t)slot, error));
        grid->particle_blocks = count;
        for (size_t i = 0; i < (size_t)1 << grid->table.log; i++)
            if (grid->table.entries[i].number)
                set_coordinates(grid, grid->table.entries[i].number, grid->table.entries[i].key);
    }
    grid->block_count = slot;
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_sort_assign_surroundings)(sk_grid *grid, const uint32_t *reach, int threads, selkie_error *error)
{
    SK_TRY(assign_reached(grid, reach, error));
    const int blocks = grid->block_count;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int b = 1; b < blocks; b++) {
        memset(grid->faces[b], 0, sizeof grid->faces[b]);
        for (int n = 0; n < SK_NEIGHBOURS; n++) {
            const int dx = n % 3 - 1, dy = n / 3 % 3 - 1, dz = SELKIE_DIM == 3 ? n / 9 - 1 : 0;
            uint64_t key;
            const int32_t other = slot_beside(grid, grid->coordinates[b], n, &key);
            grid->neighbours[b][n] = other;
            if (abs(dx) + abs(dy) + abs(dz) == 1)
                grid->faces[b][dx ? (dx + 1) / 2 : dy ? 2 + (dy + 1) / 2 : 4 + (dz + 1) / 2] = other;
        }
    }
    return SELKIE_OK;
}

static selkie_code sort_particles(sk_grid *grid, sk_particles *particles, int threads, selkie_error *error)
{
    size_t count = (size_t)particles->count;
    sk_memory *memory = grid->memory;
    SK_TRY(
        sk_reserve(memory, (void **)&grid->keys, &grid->key_capacity, count, sizeof *grid->keys, "cell sort", error));
    SK_TRY(sk_reserve(memory, (void **)&grid->cell_keys, &grid->cell_key_capacity, count + SK_WIDE,
                      sizeof *grid->cell_keys, "cell sort", error));
    SK_TRY(sk_reserve(memory, (void **)&grid->order, &grid->order_capacity, count, sizeof *grid->order, "cell sort",
                      error));
    SK_TRY(sk_reserve(memory, (void **)&grid->order_cells, &grid->order_cell_capacity, count, sizeof *grid->order_cells,
                      "cell sort", error));
    int chunks = threads * 4;
    int64_t lost;
    size_t listed;
    SK_TRY(compute_keys(grid, particles, chunks, threads, &lost, error));
    SK_TRY(SK_DIM(sk_sort_join_lists)(grid, chunks, &listed, error));
    SK_TRY(SK_DIM(sk_sort_assign_blocks)(grid, listed, error));
    if (lost)
        return sk_fail(error, SELKIE_ERROR_DIVERGED,
                       "%lld particles are nowhere (position not a number, or far outside the domain): the simulation "
                       "blew up; try a smaller time.step or time.cfl",
                       (long long)lost);

    size_t width = (size_t)grid->particle_blocks + 1;
    SK_TRY(sk_reserve(memory, (void **)&grid->histogram, &grid->histogram_capacity, width * (size_t)(chunks + 2) + 2,
                      sizeof *grid->histogram, "cell sort", error));
    uint32_t *block_start = grid->histogram + width * (size_t)chunks; /* [particle_blocks + 2] */
    uint32_t *reach = block_start + width + 1;                        /* [particle_blocks + 1] */
    int64_t living = count_blocks(grid, particles->count, chunks, threads, block_start);
    deal_indices(grid, particles->count, chunks, threads);

    size_t starts = (size_t)grid->particle_blocks * SK_BLOCK_CELLS + 1;
    SK_TRY(sk_reserve(memory, (void **)&grid->cell_start, &grid->cell_start_capacity, starts, sizeof *grid->cell_start,
                      "cell sort", error));
    SK_TRY(reserve_occupied(grid, (size_t)grid->particle_blocks, error));
    sk_deal deal;
    sk_deal_begin(&deal, threads);
    sk_deal_add(&deal, 1, grid->particle_blocks + 1, block_start + 1, 1);
#pragma omp parallel num_threads(threads)
    SK_EACH_DEALT(slot, &deal)
    reach[slot] = sort_block(grid, particles, slot, block_start[slot], block_start[slot + 1]);
    grid->cell_start[starts - 1] = (uint32_t)living;
    particles->count = living;
    sk_particles_swap(particles);
    particles->in_order = 1;
    SK_TRY(SK_DIM(sk_sort_assign_surroundings)(grid, reach, threads, error));
    sk_sort_all_changed(grid);
    return SELKIE_OK;
}

/* A failed sort leaves an empty grid, never a partial list of blocks. */
selkie_code SK_DIM(sk_sort_settle)(sk_grid *grid, sk_particles *particles, selkie_code code)
{
    grid->leavers_at = 0;
    grid->moved = NULL;
    if (code == SELKIE_OK)
        return code;
    sk_block_table_clear(&grid->table);
    grid->block_count = 1;
    grid->particle_blocks = 0;
    particles->in_order = 0;
    return code;
}

selkie_code SK_DIM(sk_grid_sort)(sk_grid *grid, sk_particles *particles, int threads, selkie_error *error)
{
    sk_grid_wrap_particles(grid, particles, threads);
    return SK_DIM(sk_sort_settle)(grid, particles, sort_particles(grid, particles, threads, error));
}
