/* The cell sort: finds the blocks and puts the particles into the order of their cells.
 *
 * Four passes. (1) Each particle computes the place of its block and its cell there. (2) Marked places get slots, and
 * particles are counted by chunk and block. (3) Particle indices are distributed to the blocks. (4) Each block sorts
 * its few thousand indices by cell, within the L1 cache, and moves the records once. Every pass is stable, so that the
 * result depends neither on chunks nor on threads.
 */
#include <stdlib.h>
#include <string.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/deal.h"
#include "grid/grid.h"
#include "grid/grid_kernels.h"
#include "grid/leavers.h"
#include "grid/sort_parts.h"

enum { DEAD_KEY = -1 };

typedef struct chunk_range {
    int64_t begin, end;
} chunk_range;

static chunk_range chunk_of(int64_t count, int chunks, int chunk)
{
    chunk_range range = {count * chunk / chunks, count * (chunk + 1) / chunks};
    return range;
}

/* Pass 1. Returns the number of particles outside the grid (NaN or far away). */
static int64_t compute_keys(sk_grid *grid, const sk_particles *particles, int chunks, int threads)
{
    const float inverse = (float)(1.0 / grid->cell_size);
    const float corner[3] = {(float)grid->corner[0], (float)grid->corner[1], (float)grid->corner[2]};
    float limit[3];
    for (int d = 0; d < 3; d++)
        limit[d] = (float)(grid->blocks[d] * grid->extent[d]);
    const uint32_t stride_y = (uint32_t)grid->blocks[0], stride_z = (uint32_t)(grid->blocks[0] * grid->blocks[1]);
    int64_t lost = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : lost)
    for (int chunk = 0; chunk < chunks; chunk++) {
        chunk_range range = chunk_of(particles->count, chunks, chunk);
        int32_t last = DEAD_KEY;
        for (int64_t p = range.begin; p < range.end; p += SK_WIDE) {
            int lanes = range.end - p < SK_WIDE ? (int)(range.end - p) : SK_WIDE;
            fw r[8];
            fw_load_columns(sk_particle_floats(particles->records + p), lanes, r);
            fw_load_columns(sk_particle_floats(particles->records + p) + 4, lanes, r + 4);
            iw key = iw_splat(0), cell = iw_splat(0), inside = iw_splat(-1);
            const int32_t stride[3] = {1, (int32_t)stride_y, (int32_t)stride_z};
            for (int d = 0; d < SELKIE_DIM; d++) {
                fw g = (r[d] - corner[d]) * inverse;
                iw here = (g >= 0.0f) & (g < limit[d]);
                iw i = iw_from_fw(fw_select(here, g, fw_splat(0.0f)));
                inside &= here;
                key += (i >> SK_BLOCK_LOG) * stride[d];
                cell += (i & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
            }
            iw dead = ((iw)r[7] & SK_PARTICLE_DEAD) != 0;
            key |= dead | ~inside; /* all ones: DEAD_KEY */
            sk_store_cell_keys(grid->cell_keys + p, cell, lanes);
            if (lanes == SK_WIDE)
                memcpy(grid->keys + p, &key, sizeof key);
            else
                memcpy(grid->keys + p, &key, (size_t)lanes * sizeof *grid->keys);
            /* Most batches lie in the block of the previous one, which is marked already. */
            if (!iw_any(key != last) && last != DEAD_KEY)
                continue;
            for (int l = 0; l < lanes; l++) {
                lost += !inside[l] && !dead[l];
                last = key[l];
                /* Several threads may write the same 1. Every order gives the same result. */
                if (last != DEAD_KEY && !__atomic_load_n(&grid->marks[(uint32_t)last], __ATOMIC_RELAXED))
                    __atomic_store_n(&grid->marks[(uint32_t)last], 1, __ATOMIC_RELAXED);
            }
        }
    }
    return lost;
}

static void set_coordinates(sk_grid *grid, int slot, uint32_t place)
{
    uint32_t bx = (uint32_t)grid->blocks[0], by = (uint32_t)grid->blocks[1];
    grid->coordinates[slot][0] = (int32_t)(place % bx);
    grid->coordinates[slot][1] = (int32_t)(place / bx % by);
    grid->coordinates[slot][2] = (int32_t)(place / bx / by);
    grid->coordinates[slot][3] = (int32_t)place;
}

/* Slots 1.. for the marked places, in the order of the table. */
selkie_code SK_DIM(sk_sort_assign_blocks)(sk_grid *grid, selkie_error *error)
{
    size_t places = (size_t)grid->blocks[0] * (size_t)grid->blocks[1] * (size_t)grid->blocks[2];
    /* Clears the places of the last step one by one: the table may be far larger than the liquid. */
    for (int b = 1; b < grid->block_count; b++)
        grid->table[grid->coordinates[b][3]] = 0;
    size_t found = 0;
    for (size_t place = 0; place < places; place += 8) {
        uint64_t eight = 0;
        size_t n = places - place < 8 ? places - place : 8;
        memcpy(&eight, grid->marks + place, n);
        if (eight)
            for (size_t i = 0; i < n; i++)
                found += grid->marks[place + i];
    }
    SK_TRY(sk_grid_reserve_blocks(grid, found * 2 + 64, error));
    int slot = 1;
    for (size_t place = 0; place < places; place += 8) {
        uint64_t eight = 0;
        size_t n = places - place < 8 ? places - place : 8;
        memcpy(&eight, grid->marks + place, n);
        if (!eight)
            continue;
        for (size_t i = 0; i < n; i++)
            if (grid->marks[place + i]) {
                grid->marks[place + i] = 0;
                grid->table[place + i] = slot;
                set_coordinates(grid, slot++, (uint32_t)(place + i));
            }
    }
    grid->particle_blocks = slot - 1;
    grid->block_count = slot;
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
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int chunk = 0; chunk < chunks; chunk++) {
        uint32_t *counts = grid->histogram + (size_t)chunk * width;
        memset(counts, 0, width * sizeof *counts);
        chunk_range range = chunk_of(particle_count, chunks, chunk);
        for (int64_t first = range.begin, next; first < range.end; first = next) {
            next = first + SK_WIDE < range.end ? first + SK_WIDE : range.end;
            if (next - first == SK_WIDE && all_in_one(grid->keys + first)) {
                const iw slots = iw_splat(grid->table[grid->keys[first]]);
                memcpy(grid->keys + first, &slots, sizeof slots);
                counts[slots[0]] += SK_WIDE;
                continue;
            }
            for (int64_t p = first; p < next; p++)
                if (grid->keys[p] != (uint32_t)DEAD_KEY) {
                    uint32_t slot = (uint32_t)grid->table[grid->keys[p]];
                    grid->keys[p] = slot;
                    counts[slot]++;
                }
        }
    }
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

/* Slots for the places that kernels reach, and the table of neighbours. */
selkie_code SK_DIM(sk_sort_assign_surroundings)(sk_grid *grid, const uint32_t *reach, int threads, selkie_error *error)
{
    size_t needed = (size_t)grid->block_count;
    int slot = grid->block_count;
    for (int pass = 0; pass < 2; pass++) {
        for (int b = 1; b <= grid->particle_blocks; b++) {
            for (int n = 0; n < SK_NEIGHBOURS; n++) {
                if (!(reach[b] >> n & 1))
                    continue;
                int x = grid->coordinates[b][0] + n % 3 - 1, y = grid->coordinates[b][1] + n / 3 % 3 - 1;
                int z = SELKIE_DIM == 3 ? grid->coordinates[b][2] + n / 9 - 1 : 0;
                if (x < 0 || y < 0 || z < 0 || x >= grid->blocks[0] || y >= grid->blocks[1] || z >= grid->blocks[2])
                    continue;
                uint32_t place =
                    (uint32_t)x + (uint32_t)grid->blocks[0] * ((uint32_t)y + (uint32_t)grid->blocks[1] * (uint32_t)z);
                if (grid->table[place])
                    continue;
                if (pass == 0) {
                    if (!grid->marks[place])
                        needed++;
                    grid->marks[place] = 1;
                } else {
                    grid->marks[place] = 0;
                    grid->table[place] = slot;
                    set_coordinates(grid, slot++, place);
                }
            }
        }
        if (pass == 0 && needed > grid->block_capacity) {
            /* Reserving clears the coordinates, so they are rebuilt from the table. */
            int count = grid->particle_blocks;
            size_t places = (size_t)grid->blocks[0] * (size_t)grid->blocks[1] * (size_t)grid->blocks[2];
            SK_TRY(sk_grid_reserve_blocks(grid, needed, error));
            grid->particle_blocks = count;
            for (size_t place = 0; place < places; place++)
                if (grid->table[place])
                    set_coordinates(grid, grid->table[place], (uint32_t)place);
        }
    }
    grid->block_count = slot;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int b = 1; b < slot; b++) {
        memset(grid->faces[b], 0, sizeof grid->faces[b]);
        for (int n = 0; n < SK_NEIGHBOURS; n++) {
            int dx = n % 3 - 1, dy = n / 3 % 3 - 1, dz = SELKIE_DIM == 3 ? n / 9 - 1 : 0;
            int x = grid->coordinates[b][0] + dx, y = grid->coordinates[b][1] + dy, z = grid->coordinates[b][2] + dz;
            int inside =
                x >= 0 && y >= 0 && z >= 0 && x < grid->blocks[0] && y < grid->blocks[1] && z < grid->blocks[2];
            int32_t other = inside ? grid->table[(size_t)x + (size_t)grid->blocks[0] *
                                                                 ((size_t)y + (size_t)grid->blocks[1] * (size_t)z)]
                                   : 0;
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
    int64_t lost = compute_keys(grid, particles, chunks, threads);
    SK_TRY(SK_DIM(sk_sort_assign_blocks)(grid, error));
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
    size_t places = (size_t)grid->blocks[0] * (size_t)grid->blocks[1] * (size_t)grid->blocks[2];
    memset(grid->table, 0, places * sizeof *grid->table);
    memset(grid->marks, 0, places);
    grid->block_count = 1;
    grid->particle_blocks = 0;
    particles->in_order = 0;
    return code;
}

selkie_code SK_DIM(sk_grid_sort)(sk_grid *grid, sk_particles *particles, int threads, selkie_error *error)
{
    return SK_DIM(sk_sort_settle)(grid, particles, sort_particles(grid, particles, threads, error));
}
