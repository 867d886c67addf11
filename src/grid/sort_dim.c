/* The cell sort: which blocks exist, and the particles in the order of their cells.
 *
 * Four passes. (1) Each particle computes the place of its block and its cell there. (2) The marked places get slots;
 * particles are counted by chunk and block. (3) Their indices are dealt out to the blocks. (4) Each block sorts its few
 * thousand indices by cell, which fits into the first cache, and moves the records once. Every pass keeps the order of
 * equal particles, so neither chunks nor threads show in the result.
 */
#include <stdlib.h>
#include <string.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/deal.h"
#include "grid/grid.h"
#include "grid/grid_kernels.h"
#include "grid/leavers.h"

enum { DEAD_KEY = -1, AHEAD = 128 /* particles */ };

typedef struct chunk_range {
    int64_t begin, end;
} chunk_range;

static chunk_range chunk_of(int64_t count, int chunks, int chunk)
{
    chunk_range range = {count * chunk / chunks, count * (chunk + 1) / chunks};
    return range;
}

/* Pass 1. Returns the number of particles that are nowhere (NaN or far outside). */
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
            /* Most batches lie in the block of the one before, which is marked. */
            if (!iw_any(key != last) && last != DEAD_KEY)
                continue;
            for (int l = 0; l < lanes; l++) {
                lost += !inside[l] && !dead[l];
                last = key[l];
                /* Many threads may write the same 1: that is all they agree on, and enough. */
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
static selkie_code assign_particle_blocks(sk_grid *grid, selkie_error *error)
{
    size_t places = (size_t)grid->blocks[0] * (size_t)grid->blocks[1] * (size_t)grid->blocks[2];
    /* The places of the last step are cleared one by one: the table may be far larger than the liquid. */
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

/* Are the keys of SK_WIDE particles the same, and is that a block's? Most batches lie in one block. */
static inline int all_in_one(const uint32_t *keys)
{
    iw batch;
    memcpy(&batch, keys, sizeof batch);
    return !iw_any(batch != (int32_t)keys[0]) && keys[0] != (uint32_t)DEAD_KEY;
}

/* Pass 2: histogram[chunk][slot], then turned into the first destination of each (slot, chunk). */
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

/* Where the records of a block go. Two streams, the first and the second half of its particles, each with counters of its
 * own: neighbours in memory fall into the same cell, and one counter after the other would make each wait for the last. */
typedef struct cell_counters {
    uint32_t next[2][SK_BLOCK_CELLS];
} cell_counters;

/* Are there no particles in eight cells from c on? Most runs of the blocks at the surface are like that. */
static inline int is_empty_run(const cell_counters *counters, int c)
{
    i8 first, second;
    memcpy(&first, counters->next[0] + c, sizeof first);
    memcpy(&second, counters->next[1] + c, sizeof second);
    return !i8_any((first | second) != 0);
}

/* Counts become first places, from `total` on; start[] gets those of the cells. */
static void place_cells(cell_counters *counters, uint32_t total, uint32_t *start)
{
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        uint32_t first = counters->next[0][c], second = counters->next[1][c];
        if (c % 8 == 0 && is_empty_run(counters, c)) {
            const i8 here = i8_splat((int32_t)total);
            memcpy(start + c, &here, sizeof here);
            c += 7;
            continue;
        }
        start[c] = counters->next[0][c] = total;
        counters->next[1][c] = total + first;
        total += first + second;
    }
}

/* Which neighbours the kernels of a block's particles reach, a bit for each of the 3^dim, from the starts of its cells, the last of
 * which ends at `end`; `occupied` gets the runs that hold any. */
static uint32_t reach_of(const uint32_t *start, uint32_t end, uint64_t *occupied)
{
    /* Bits of the neighbours along an axis, a cell's place along it deciding; the product of three such numbers, spread by
     * 1, 3 and 9 bits, has the bits of all combinations. Two cells: one for the kernel, one for the band of extrapolated
     * velocities around it. */
    uint32_t bits[3][SK_BLOCK_N];
    for (int i = 0; i < SK_BLOCK_N; i++) {
        const int lower = i < 2, upper = i >= SK_BLOCK_N - 2;
        for (int d = 0, spread = 1; d < 3; d++, spread *= 3)
            bits[d][i] = (uint32_t)((lower ? 1u : 0u) | 1u << spread | (upper ? 1u << 2 * spread : 0u));
    }
    uint32_t reach = 0;
    *occupied = 0;
    for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
        const uint32_t until = c + 8 < SK_BLOCK_CELLS ? start[c + 8] : end;
        if (start[c] == until)
            continue;
        i8 here, next;
        memcpy(&here, start + c, sizeof here);
        memcpy(&next, start + c + 1, 7 * sizeof *start);
        next[7] = (int32_t)until;
        const unsigned held = i8_bits(here != next);
        const int i = c & SK_BLOCK_MASK;
        uint32_t along = bits[0][2]; /* the cells within */
        along |= i == 0 && held & 3 ? bits[0][0] : 0;
        along |= i == SK_BLOCK_N - 8 && held & 0xc0 ? bits[0][SK_BLOCK_N - 1] : 0;
        uint32_t all = along * bits[1][c >> SK_BLOCK_LOG & SK_BLOCK_MASK];
        if (SELKIE_DIM == 3)
            all *= bits[2][c >> 2 * SK_BLOCK_LOG];
        reach |= all;
        *occupied |= UINT64_C(1) << (c / 8);
    }
    return reach;
}

static inline void move_record(sk_particles *particles, uint32_t source, uint32_t target)
{
    particles->spare[target] = particles->records[source];
    for (int a = 0; a < particles->attribute_count; a++) {
        const sk_attribute *attribute = &particles->attributes[a];
        size_t n = (size_t)attribute->components;
        memcpy(attribute->spare + target * n, attribute->data + source * n, n * sizeof(uint32_t));
    }
}

static inline void move_records(sk_particles *particles, uint32_t source, uint32_t count, uint32_t target)
{
    /* What is far ahead is asked for: pieces are too short for the machine to foresee them. */
    const sk_particle *from = particles->records + source, *end = from + count;
    for (sk_particle *to = particles->spare + target; from < end; from++, to++) {
        __builtin_prefetch(from + AHEAD, 0);
        __builtin_prefetch(to + AHEAD, 1);
        f8_store(sk_particle_floats(to), f8_load(sk_particle_floats(from)));
    }
    for (int a = 0; a < particles->attribute_count; a++) {
        const sk_attribute *attribute = &particles->attributes[a];
        size_t n = (size_t)attribute->components;
        memcpy(attribute->spare + target * n, attribute->data + source * n, count * n * sizeof(uint32_t));
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
    const uint32_t reach = reach_of(start, end, &grid->occupied[slot]);
    for (uint32_t i = 0; i < half; i++)
        for (int stream = 0; stream < 2; stream++)
            move_record(particles, order[stream][i], counters.next[stream][cells[stream][i]]++);
    if ((end - begin) & 1)
        move_record(particles, order[1][half], counters.next[1][cells[1][half]]++);
    return reach;
}

/* Slots for the places that the kernels reach, and who is whose neighbour. */
static selkie_code assign_surroundings(sk_grid *grid, const uint32_t *reach, int threads, selkie_error *error)
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
                uint32_t place = (uint32_t)x + (uint32_t)grid->blocks[0] * ((uint32_t)y + (uint32_t)grid->blocks[1] * (uint32_t)z);
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
            /* Reserving clears the coordinates, so they are made again from the table. */
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
            int inside = x >= 0 && y >= 0 && z >= 0 && x < grid->blocks[0] && y < grid->blocks[1] && z < grid->blocks[2];
            int32_t other = inside ? grid->table[(size_t)x + (size_t)grid->blocks[0] * ((size_t)y + (size_t)grid->blocks[1] * (size_t)z)] : 0;
            grid->neighbours[b][n] = other;
            if (abs(dx) + abs(dy) + abs(dz) == 1)
                grid->faces[b][dx ? (dx + 1) / 2 : dy ? 2 + (dy + 1) / 2 : 4 + (dz + 1) / 2] = other;
        }
    }
    return SELKIE_OK;
}

static void all_changed(sk_grid *grid)
{
    memset(grid->changes + 1, SK_BLOCK_TOUCHED | SK_BLOCK_NEAR, (size_t)grid->block_count - 1);
}

static selkie_code sort_particles(sk_grid *grid, sk_particles *particles, int threads, selkie_error *error)
{
    size_t count = (size_t)particles->count;
    sk_memory *memory = grid->memory;
    SK_TRY(sk_reserve(memory, (void **)&grid->keys, &grid->key_capacity, count, sizeof *grid->keys, "cell sort", error));
    SK_TRY(sk_reserve(memory, (void **)&grid->cell_keys, &grid->cell_key_capacity, count + SK_WIDE, sizeof *grid->cell_keys,
                      "cell sort", error));
    SK_TRY(sk_reserve(memory, (void **)&grid->order, &grid->order_capacity, count, sizeof *grid->order, "cell sort", error));
    SK_TRY(sk_reserve(memory, (void **)&grid->order_cells, &grid->order_cell_capacity, count, sizeof *grid->order_cells, "cell sort", error));
    int chunks = threads * 4;
    int64_t lost = compute_keys(grid, particles, chunks, threads);
    SK_TRY(assign_particle_blocks(grid, error));
    if (lost)
        return sk_fail(error, SELKIE_ERROR_DIVERGED,
                       "%lld particles are nowhere (position not a number, or far outside the domain): the simulation "
                       "blew up; try a smaller time.step or time.cfl", (long long)lost);

    size_t width = (size_t)grid->particle_blocks + 1;
    SK_TRY(sk_reserve(memory, (void **)&grid->histogram, &grid->histogram_capacity, width * (size_t)(chunks + 2) + 2,
                      sizeof *grid->histogram, "cell sort", error));
    uint32_t *block_start = grid->histogram + width * (size_t)chunks; /* [particle_blocks + 2] */
    uint32_t *reach = block_start + width + 1;                       /* [particle_blocks + 1] */
    int64_t living = count_blocks(grid, particles->count, chunks, threads, block_start);
    deal_indices(grid, particles->count, chunks, threads);

    size_t starts = (size_t)grid->particle_blocks * SK_BLOCK_CELLS + 1;
    SK_TRY(sk_reserve(memory, (void **)&grid->cell_start, &grid->cell_start_capacity, starts, sizeof *grid->cell_start,
                      "cell sort", error));
    SK_TRY(sk_reserve(memory, (void **)&grid->occupied, &grid->occupied_capacity, (size_t)grid->particle_blocks + 1,
                      sizeof *grid->occupied, "cell sort", error));
    grid->occupied[0] = 0;
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
    SK_TRY(assign_surroundings(grid, reach, threads, error));
    all_changed(grid);
    return SELKIE_OK;
}

/* --- again, after small moves ------------------------------------------------------------------------------------------ */

/* The cell of each particle of a block, and the list of those that left it. Returns their number, or -1: see leavers.h. */
static int32_t find_leavers(sk_grid *grid, const sk_particles *particles, int slot)
{
    const uint32_t *start = grid->cell_start + (size_t)(slot - 1) * SK_BLOCK_CELLS;
    sk_leavers leavers = {0, iw_splat(0)};
    for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS]; p += SK_WIDE) {
        int lanes = start[SK_BLOCK_CELLS] - p < SK_WIDE ? (int)(start[SK_BLOCK_CELLS] - p) : SK_WIDE;
        fw r[8];
        fw_load_columns(sk_particle_floats(particles->records + p), lanes, r);
        fw_load_columns(sk_particle_floats(particles->records + p) + 4, lanes, r + 4);
        sk_leavers_add(grid, slot, start[0], p, lanes, r, iw_splat(-1), (iw)r[7], &leavers);
    }
    return sk_leavers_found(&leavers);
}

/* What becomes of the blocks in a sort after small moves. */
typedef struct regrouping {
    int old_count;      /* blocks before */
    int regrouped;      /* are they others now? */
    int32_t *old_place; /* [old blocks + 1] in the table */
    int32_t *old_slot;  /* [new blocks + 2] which block it was, 0 if none */
    uint32_t *arrived;  /* [new blocks + 2] where the list of block b ends in the arrivals; b begins where b - 1 ends */
    uint32_t *start;    /* [new blocks + 2] first particle of each block */
    uint32_t *reach;    /* [new blocks + 1] */
} regrouping;

static selkie_code reserve_regrouping(sk_grid *grid, regrouping *to, size_t blocks, selkie_error *error)
{
    const size_t width = blocks + 2;
    SK_TRY(sk_reserve(grid->memory, (void **)&grid->histogram, &grid->histogram_capacity, (size_t)to->old_count + 1 + 4 * width,
                      sizeof *grid->histogram, "cell sort", error));
    to->arrived = grid->histogram;
    to->start = to->arrived + width;
    to->reach = to->start + width;
    to->old_slot = (int32_t *)(to->reach + width);
    to->old_place = to->old_slot + width;
    return SELKIE_OK;
}

/* Particles of a block that stay in it. */
static inline uint32_t staying(const sk_grid *grid, int b)
{
    const uint32_t *start = grid->cell_start + (size_t)(b - 1) * SK_BLOCK_CELLS;
    return start[SK_BLOCK_CELLS] - start[0] - (uint32_t)grid->leavers[b];
}

/* arrived[b + 1] = who comes to block b. Places that have no particles yet are marked; returns their number. */
static size_t count_arrivals(sk_grid *grid, const regrouping *to)
{
    size_t fresh = 0;
    memset(to->arrived, 0, ((size_t)grid->particle_blocks + 2) * sizeof *to->arrived);
    for (int b = 1; b <= to->old_count; b++) {
        const uint32_t *place = grid->keys + grid->cell_start[(size_t)(b - 1) * SK_BLOCK_CELLS];
        for (int32_t i = 0; i < grid->leavers[b]; i++) {
            const int32_t slot = grid->table[place[i]];
            if (slot > 0 && slot <= grid->particle_blocks) {
                to->arrived[slot + 1]++;
            } else {
                fresh += !grid->marks[place[i]];
                grid->marks[place[i]] = 1;
            }
        }
    }
    return fresh;
}

/* Which blocks there will be, and how many arrive in each. */
static selkie_code regroup_blocks(sk_grid *grid, regrouping *to, selkie_error *error)
{
    SK_TRY(reserve_regrouping(grid, to, (size_t)to->old_count, error));
    const size_t fresh = count_arrivals(grid, to);
    int emptied = 0;
    for (int b = 1; b <= to->old_count; b++) {
        to->old_slot[b] = b;
        emptied |= staying(grid, b) + to->arrived[b + 1] == 0;
    }
    if (!fresh && !emptied) {
        /* The blocks around follow; those with particles stay as they are. */
        for (int b = to->old_count + 1; b < grid->block_count; b++)
            grid->table[grid->coordinates[b][3]] = 0;
        grid->block_count = to->old_count + 1;
        return SELKIE_OK;
    }
    to->regrouped = 1;
    for (int b = 1; b <= to->old_count; b++)
        grid->marks[grid->coordinates[b][3]] = staying(grid, b) + to->arrived[b + 1] > 0;
    SK_TRY(reserve_regrouping(grid, to, (size_t)to->old_count + fresh, error));
    for (int b = 1; b <= to->old_count; b++)
        to->old_place[b] = grid->coordinates[b][3];
    SK_TRY(assign_particle_blocks(grid, error));
    memset(to->old_slot, 0, ((size_t)grid->particle_blocks + 2) * sizeof *to->old_slot);
    for (int b = 1; b <= to->old_count; b++)
        to->old_slot[grid->table[to->old_place[b]]] = b; /* those that are empty now: all of them into 0 */
    to->old_slot[0] = 0;
    count_arrivals(grid, to);
    return SELKIE_OK;
}

/* Who comes to which block, in the order of the blocks they come from. */
static void deal_leavers(const sk_grid *grid, const regrouping *to, uint32_t *arrivals)
{
    const int blocks = grid->particle_blocks;
    uint32_t particles = 0, before = 0;
    for (int b = 1; b <= blocks; b++) {
        uint32_t here = to->arrived[b + 1];
        to->start[b] = particles;
        particles += here + (to->old_slot[b] ? staying(grid, to->old_slot[b]) : 0);
        to->arrived[b] = before;
        before += here;
    }
    to->start[blocks + 1] = particles;
    for (int b = 1; b <= to->old_count; b++) {
        const uint32_t first = grid->cell_start[(size_t)(b - 1) * SK_BLOCK_CELLS];
        for (int32_t i = 0; i < grid->leavers[b]; i++)
            arrivals[to->arrived[grid->table[grid->keys[first + (uint32_t)i]]]++] = grid->order[first + (uint32_t)i];
    }
}

/* Those that come into a block from elsewhere, in the order of their numbers. */
typedef struct arriving {
    const uint32_t *numbers;
    uint32_t count;
    uint32_t early; /* so many come from blocks before this one */
} arriving;

static void count_arriving(const sk_grid *grid, const arriving *in, cell_counters *counters)
{
    for (uint32_t i = 0; i < in->count; i++)
        counters->next[i >= in->early][grid->cell_keys[in->numbers[i]] & SK_KEY_CELL]++;
}

static void place_arriving(const sk_grid *grid, sk_particles *particles, const arriving *in, uint32_t begin, uint32_t end,
                           uint32_t next[SK_BLOCK_CELLS])
{
    for (uint32_t i = begin; i < end; i++)
        move_record(particles, in->numbers[i], next[grid->cell_keys[in->numbers[i]] & SK_KEY_CELL]++);
}

/* Those that are not in their old cell any more, MOST_STRAYS of a block at most: where there are more, they are not worth a list. */
enum { MOST_STRAYS = 512 };

typedef struct strays {
    int count;
    uint32_t numbers[MOST_STRAYS + SK_WIDE];
} strays;

/* Returns 0 if there are too many. */
static int find_strays(const sk_grid *grid, uint32_t begin, uint32_t end, strays *found)
{
    const uint32_t tenth = (end - begin) / 10;
    const int most = tenth < MOST_STRAYS ? (int)tenth : MOST_STRAYS;
    typedef uint16_t key_lanes __attribute__((vector_size(2 * SK_WIDE)));
    found->count = 0;
    for (uint32_t p = begin; p < end; p += SK_WIDE) {
        key_lanes keys; /* there is room for a whole batch behind the last */
        memcpy(&keys, grid->cell_keys + p, sizeof keys);
        unsigned gone = iw_bits((__builtin_convertvector(keys, iw) & SK_STRAYS) != 0);
        if (end - p < SK_WIDE)
            gone &= (1u << (end - p)) - 1u;
        if (!gone)
            continue;
        found->count += iw_store_chosen(found->numbers + found->count, (iw){SK_WIDE_LANES} + (int32_t)p, gone);
        if (found->count > most)
            return 0;
    }
    return 1;
}

/* Where few change cells, the others keep their order, and go to their new places as they stand, in pieces between those that
 * leave their cells or come in. Who comes in from a cell before goes before those that stay, from a cell after behind them. */
static void sort_strays(sk_grid *grid, sk_particles *particles, const uint32_t *old, uint32_t begin, const arriving *in,
                        const strays *gone, cell_counters *counters, uint32_t *start)
{
    for (int i = 0; i < gone->count; i++) {
        const uint32_t number = gone->numbers[i];
        const uint16_t key = grid->cell_keys[number];
        if (!(key & SK_LEAVES))
            counters->next[number >= old[key & SK_KEY_CELL]][key & SK_KEY_CELL]++;
    }
    count_arriving(grid, in, counters);
    uint32_t piece = old[0], shift = begin - old[0]; /* first of the piece at hand, and how much farther it goes, modulo 2^32 */
    int next = 0;
    for (int run = 0; run < SK_BLOCK_CELLS; run += 8) {
        if (is_empty_run(counters, run) && (next == gone->count || gone->numbers[next] >= old[run + 8])) {
            i8 starts;
            memcpy(&starts, old + run, sizeof starts);
            starts += (int32_t)shift;
            memcpy(start + run, &starts, sizeof starts);
            continue;
        }
        for (int c = run; c < run + 8; c++) {
            const uint32_t before = counters->next[0][c], after = counters->next[1][c];
            start[c] = old[c] + shift;
            if (before) {
                move_records(particles, piece, old[c] - piece, piece + shift);
                piece = old[c];
                counters->next[0][c] = piece + shift;
                shift += before;
            }
            for (; next < gone->count && gone->numbers[next] < old[c + 1]; next++) {
                const uint32_t number = gone->numbers[next];
                move_records(particles, piece, number - piece, piece + shift);
                piece = number + 1;
                shift--;
            }
            if (after) {
                move_records(particles, piece, old[c + 1] - piece, piece + shift);
                piece = old[c + 1];
                counters->next[1][c] = piece + shift;
                shift += after;
            }
        }
    }
    move_records(particles, piece, old[SK_BLOCK_CELLS] - piece, piece + shift);
    place_arriving(grid, particles, in, 0, in->early, counters->next[0]);
    for (int i = 0; i < gone->count; i++) {
        const uint32_t number = gone->numbers[i];
        const uint16_t key = grid->cell_keys[number];
        if (!(key & SK_LEAVES))
            move_record(particles, number, counters->next[number >= old[key & SK_KEY_CELL]][key & SK_KEY_CELL]++);
    }
    place_arriving(grid, particles, in, in->early, in->count, counters->next[1]);
}

/* Those that come from blocks before this one, those that stay, and those that come from blocks after it: the order that the
 * full sort gives them. `old` are the starts of the block's cells before, NULL if it is new. */
static void sort_block_again(sk_grid *grid, sk_particles *particles, const uint32_t *old, uint32_t begin, const arriving *in,
                             uint32_t *start)
{
    cell_counters counters;
    strays gone;
    memset(&counters, 0, sizeof counters);
    if (old && find_strays(grid, old[0], old[SK_BLOCK_CELLS], &gone)) {
        sort_strays(grid, particles, old, begin, in, &gone, &counters, start);
        return;
    }
    /* The first half of those that stay goes with the first stream, see cell_counters. */
    const uint32_t old_begin = old ? old[0] : 0, old_end = old ? old[SK_BLOCK_CELLS] : 0;
    const uint32_t count = old_end - old_begin, half = count / 2;
    const uint16_t *keys = grid->cell_keys + old_begin;
    count_arriving(grid, in, &counters);
    for (uint32_t i = 0; i < half; i++) {
        uint16_t first = keys[i], second = keys[half + i];
        /* While they are counted, records and the places for them come nearer. */
        __builtin_prefetch(particles->spare + begin + 2 * i, 1, 2);
        __builtin_prefetch(i & 1 ? particles->records + old_begin + i : particles->records + old_begin + half + i, 0, 2);
        if (!(first & SK_LEAVES))
            counters.next[0][first & SK_KEY_CELL]++;
        if (!(second & SK_LEAVES))
            counters.next[1][second & SK_KEY_CELL]++;
    }
    if (count & 1 && !(keys[count - 1] & SK_LEAVES))
        counters.next[1][keys[count - 1] & SK_KEY_CELL]++;
    place_cells(&counters, begin, start);
    place_arriving(grid, particles, in, 0, in->early, counters.next[0]);
    for (uint32_t i = 0; i < half; i++) {
        uint16_t first = keys[i], second = keys[half + i];
        if (!(first & SK_LEAVES))
            move_record(particles, old_begin + i, counters.next[0][first & SK_KEY_CELL]++);
        if (!(second & SK_LEAVES))
            move_record(particles, old_begin + half + i, counters.next[1][second & SK_KEY_CELL]++);
    }
    if (count & 1 && !(keys[count - 1] & SK_LEAVES))
        move_record(particles, old_end - 1, counters.next[1][keys[count - 1] & SK_KEY_CELL]++);
    place_arriving(grid, particles, in, in->early, in->count, counters.next[1]);
}

/* Blocks around those with particles get their slots anew, so they always count as changed. */
static void note_changes(sk_grid *grid, const uint32_t *touched, int threads)
{
    for (int b = 1; b < grid->block_count; b++)
        grid->changes[b] = b <= grid->particle_blocks && touched[b] ? SK_BLOCK_TOUCHED : 0;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int b = 1; b < grid->block_count; b++) {
        int near = b > grid->particle_blocks;
        for (int n = 0; n < SK_NEIGHBOURS && !near; n++) {
            const int other = grid->neighbours[b][n];
            near = other > 0 && other <= grid->particle_blocks && touched[other];
        }
        grid->changes[b] |= near ? SK_BLOCK_NEAR : 0;
    }
}

/* How many left their blocks, told by whoever moved them or found out here; -1 if some are dead or nowhere. */
static int64_t count_leavers(sk_grid *grid, const sk_particles *particles, int threads)
{
    int64_t left = 0;
    if (!grid->leavers_known) {
        sk_deal deal;
        sk_deal_particle_blocks(&deal, grid, threads);
#pragma omp parallel num_threads(threads)
        SK_EACH_DEALT(b, &deal)
            grid->leavers[b] = find_leavers(grid, particles, b);
    }
    for (int b = 1; b <= grid->particle_blocks; b++) {
        if (grid->leavers[b] < 0)
            return -1;
        left += grid->leavers[b];
    }
    return left;
}

/* The short way, for `left` that left their blocks. */
static selkie_code sort_leavers(sk_grid *grid, sk_particles *particles, int64_t left, int threads, selkie_error *error)
{
    regrouping to = {.old_count = grid->particle_blocks};
    const size_t room = grid->block_capacity;
    if ((size_t)left >= grid->arrival_capacity)
        SK_TRY(sk_reserve(grid->memory, (void **)&grid->arrivals, &grid->arrival_capacity, (size_t)left + (size_t)left / 2 + 1,
                          sizeof *grid->arrivals, "cell sort", error));
    SK_TRY(regroup_blocks(grid, &to, error));
    const int blocks = grid->particle_blocks;
    const size_t starts = (size_t)blocks * SK_BLOCK_CELLS + 1;
    uint32_t *arrivals = grid->arrivals;
    deal_leavers(grid, &to, arrivals);
    /* Starts of the old order are still being read by other blocks' threads, so the new ones go beside them. */
    SK_TRY(sk_reserve(grid->memory, (void **)&grid->next_start, &grid->next_start_capacity, starts, sizeof *grid->next_start,
                      "cell sort", error));
    SK_TRY(sk_reserve(grid->memory, (void **)&grid->occupied, &grid->occupied_capacity, (size_t)blocks + 1,
                      sizeof *grid->occupied, "cell sort", error));
    grid->occupied[0] = 0;
    sk_deal deal;
    sk_deal_begin(&deal, threads);
    sk_deal_add(&deal, 1, blocks + 1, to.start + 1, 1);
#pragma omp parallel num_threads(threads)
    SK_EACH_DEALT(b, &deal) {
        const uint32_t *old = to.old_slot[b] ? grid->cell_start + (size_t)(to.old_slot[b] - 1) * SK_BLOCK_CELLS : NULL;
        const uint32_t first = b > 1 ? to.arrived[b - 1] : 0;
        uint32_t *start = grid->next_start + (size_t)(b - 1) * SK_BLOCK_CELLS;
        arriving in = {arrivals + first, to.arrived[b] - first, 0};
        while (old && in.early < in.count && in.numbers[in.early] < old[0])
            in.early++;
        sort_block_again(grid, particles, old, to.start[b], &in, start);
        to.reach[b] = reach_of(start, to.start[b + 1], &grid->occupied[b]);
    }
    grid->next_start[starts - 1] = (uint32_t)particles->count;
    uint32_t *start = grid->cell_start;
    size_t capacity = grid->cell_start_capacity;
    grid->cell_start = grid->next_start;
    grid->cell_start_capacity = grid->next_start_capacity;
    grid->next_start = start;
    grid->next_start_capacity = capacity;
    sk_particles_swap(particles);
    particles->in_order = 1;
    /* Whether a block was touched, in the words of the old blocks; the new ones remember it in `arrived`. */
    for (int b = blocks; b > 0; b--) {
        const uint32_t came = to.arrived[b] - (b > 1 ? to.arrived[b - 1] : 0);
        to.arrived[b] = came || to.regrouped || grid->leavers[b] || !grid->moved || grid->moved[b];
    }
    SK_TRY(assign_surroundings(grid, to.reach, threads, error));
    if (grid->block_capacity == room)
        note_changes(grid, to.arrived, threads);
    else /* more room has been made, and nothing is left of what the blocks held */
        all_changed(grid);
    return SELKIE_OK;
}

/* Half a list of blocks is worse than none: whoever looks or sorts again after a failure finds an empty grid. */
static selkie_code settle(sk_grid *grid, sk_particles *particles, selkie_code code)
{
    grid->leavers_known = 0;
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

selkie_code SK_DIM(sk_grid_sort_again)(sk_grid *grid, sk_particles *particles, int threads, selkie_error *error)
{
    const int blocks = grid->particle_blocks;
    if (!particles->in_order || blocks == 0 || grid->cell_start[(size_t)blocks * SK_BLOCK_CELLS] != (uint32_t)particles->count)
        return SK_DIM(sk_grid_sort)(grid, particles, threads, error);
    SK_TRY(sk_grid_reserve_leavers(grid, error));
    int64_t left = count_leavers(grid, particles, threads);
    /* Dealing out is for one thread; where many leave, the full sort is faster. */
    if (left < 0 || left > particles->count / 3)
        return SK_DIM(sk_grid_sort)(grid, particles, threads, error);
    return settle(grid, particles, sort_leavers(grid, particles, left, threads, error));
}

selkie_code SK_DIM(sk_grid_sort)(sk_grid *grid, sk_particles *particles, int threads, selkie_error *error)
{
    return settle(grid, particles, sort_particles(grid, particles, threads, error));
}
