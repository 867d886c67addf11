/* The cell sort after small moves. Only migrating particles are moved between blocks, and each block sorts its own
 * particles. Listed particles may be dead (sk_grid_drop_listed), and a few new ones may follow the last of the old
 * order. The result has the bits of the full sort. */
#include <string.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/deal.h"
#include "grid/grid.h"
#include "grid/grid_kernels.h"
#include "particles/leavers.h"
#include "particles/sort_parts.h"

/* Cell keys of a block's particles and the list of its migrating particles. Returns their number, or -1: see
 * leavers.h. */
static int32_t find_leavers(sk_grid *grid, const sk_particles *particles, int slot)
{
    const uint32_t *start = grid->cell_start + (size_t)(slot - 1) * SK_BLOCK_CELLS;
    sk_leavers leavers = sk_leavers_of(grid, slot);
    for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS]; p += SK_WIDE) {
        int lanes = start[SK_BLOCK_CELLS] - p < SK_WIDE ? (int)(start[SK_BLOCK_CELLS] - p) : SK_WIDE;
        fw r[8];
        fw_load_columns(sk_particle_floats(particles->records + p), lanes, r);
        fw_load_columns(sk_particle_floats(particles->records + p) + 4, lanes, r + 4);
        sk_leavers_add(grid, &leavers, p, lanes, r, iw_splat(-1), (iw)r[7]);
    }
    return sk_leavers_found(&leavers);
}

void SK_DIM(sk_grid_list_again)(sk_grid *grid, const sk_particles *particles, int block)
{
    grid->leavers[block] = find_leavers(grid, particles, block);
}

/* The blocks before and after a sort after small moves. */
typedef struct regrouping {
    int old_count;     /* blocks before */
    int regrouped;     /* has the set of blocks changed? */
    int fresh;         /* blocks that leavers reach and that did not hold particles: the grid's first list */
    int added;         /* new particles behind those of the old order: the list of block old_count + 1 */
    int32_t *old_slot; /* [new blocks + 2] old slot of the block, 0 = new block */
    uint32_t *arrived; /* [new blocks + 2] end of block b's list of arrivals; it begins where that of b - 1 ends */
    uint32_t *start;   /* [new blocks + 2] first particle of each block */
    uint32_t *reach;   /* [new blocks + 1] */
} regrouping;

static selkie_code reserve_regrouping(sk_grid *grid, regrouping *to, size_t blocks, selkie_error *error)
{
    const size_t width = blocks + 2;
    SK_TRY(sk_reserve(grid->memory, (void **)&grid->histogram, &grid->histogram_capacity, 4 * width,
                      sizeof *grid->histogram, "cell sort", error));
    to->arrived = grid->histogram;
    to->start = to->arrived + width;
    to->reach = to->start + width;
    to->old_slot = (int32_t *)(to->reach + width);
    return SELKIE_OK;
}

/* Particles that stay in their block. */
static inline uint32_t staying(const sk_grid *grid, int b)
{
    const uint32_t *start = grid->cell_start + (size_t)(b - 1) * SK_BLOCK_CELLS;
    return start[SK_BLOCK_CELLS] - start[0] - (uint32_t)grid->leavers[b];
}

/* List of migrating particles of a block, or of the new particles: its first entry in `keys` and `order`. */
static inline int32_t list_of(const sk_grid *grid, const regrouping *to, int b, uint32_t *first)
{
    *first = grid->cell_start[(size_t)(b - 1) * SK_BLOCK_CELLS];
    return b <= to->old_count ? grid->leavers[b] : to->added;
}

/* The target for a block: its slot (0 = none yet), or old_count + its number in the list of fresh blocks. */
static selkie_code target_of(sk_grid *grid, regrouping *to, uint64_t key, int32_t slot, uint32_t *target,
                             selkie_error *error)
{
    *target = (uint32_t)slot;
    if (slot > 0 && slot <= to->old_count)
        return SELKIE_OK;
    int32_t number = sk_block_find(&grid->lists[0].table, key);
    if (!number) {
        SK_TRY(sk_block_list_add(&grid->lists[0], grid->memory, key, error));
        number = ++to->fresh;
    }
    *target = (uint32_t)(to->old_count + number);
    return SELKIE_OK;
}

/* The block that a leaver of block b goes to; 0 for a dead one. */
static selkie_code find_target(sk_grid *grid, regrouping *to, int b, uint32_t relative, uint32_t *target,
                               selkie_error *error)
{
    int offset[3] = {0, 0, 0}, near = 1, n = 0, stride = 1;
    *target = 0;
    if (relative == SK_LEAVER_NOWHERE)
        return SELKIE_OK;
    for (int d = 0; d < SELKIE_DIM; d++) {
        offset[d] = sk_leaver_offset(relative, d);
        near &= offset[d] >= -1 && offset[d] <= 1;
        n += (offset[d] + 1) * stride;
        stride *= 3;
    }
    const int32_t *from = grid->coordinates[b];
    const uint64_t key = sk_block_key(from[0] + offset[0], from[1] + offset[1], from[2] + offset[2]);
    const int32_t slot = near ? grid->neighbours[b][n] : sk_block_find(&grid->table, key);
    return target_of(grid, to, key, slot, target, error);
}

/* Lists the new particles, with the arithmetic of the full sort. All lie in the grid: see new_ones_are_inside. */
static selkie_code list_new_ones(sk_grid *grid, const sk_particles *particles, regrouping *to, selkie_error *error)
{
    const uint32_t first = grid->cell_start[(size_t)to->old_count * SK_BLOCK_CELLS];
    const float inverse = (float)(1.0 / grid->cell_size);
    for (uint32_t p = first; p < first + (uint32_t)to->added; p++) {
        int block[3] = {0, 0, 0}, cell = 0;
        for (int d = 0; d < SELKIE_DIM; d++) {
            const int i = (int)((particles->records[p].position[d] - (float)grid->corner[d]) * inverse);
            block[d] = i >> SK_BLOCK_LOG;
            cell |= (i & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
        }
        const uint64_t key = sk_block_key(block[0], block[1], block[2]);
        SK_TRY(target_of(grid, to, key, sk_block_find(&grid->table, key), &grid->keys[p], error));
        grid->cell_keys[p] = (uint16_t)(cell | SK_LEAVES | SK_STRAYS);
        grid->order[p] = p;
    }
    return SELKIE_OK;
}

/* Replaces the keys of the leavers by the blocks that they go to (see find_target). */
static selkie_code find_targets(sk_grid *grid, const sk_particles *particles, regrouping *to, selkie_error *error)
{
    SK_TRY(SK_DIM(sk_sort_clear_lists)(grid, 1, error));
    for (int b = 1; b <= to->old_count; b++) {
        uint32_t *keys = grid->keys + grid->cell_start[(size_t)(b - 1) * SK_BLOCK_CELLS];
        uint32_t last = UINT32_MAX, target = 0; /* many leavers of a block go to the same one */
        for (int32_t i = 0; i < grid->leavers[b]; i++) {
            if (keys[i] != last) {
                last = keys[i];
                SK_TRY(find_target(grid, to, b, last, &target, error));
            }
            keys[i] = target;
        }
    }
    return list_new_ones(grid, particles, to, error);
}

/* arrived[b + 1] = number of arrivals of block b, for the blocks up to `blocks`. */
static void count_arrivals(const sk_grid *grid, const regrouping *to, int blocks)
{
    memset(to->arrived, 0, ((size_t)blocks + 2) * sizeof *to->arrived);
    for (int b = 1; b <= to->old_count + 1; b++) {
        uint32_t first;
        const int32_t count = list_of(grid, to, b, &first);
        for (int32_t i = 0; i < count; i++) {
            const uint32_t target = grid->keys[first + (uint32_t)i];
            if (target && target <= (uint32_t)blocks)
                to->arrived[target + 1]++;
        }
    }
}

static uint64_t key_of_block(const sk_grid *grid, int b)
{
    const int32_t *at = grid->coordinates[b];
    return sk_block_key(at[0], at[1], at[2]);
}

/* The set of blocks stays. Surrounding blocks leave the table; blocks with particles keep their slots. */
static selkie_code keep_blocks(sk_grid *grid, int count, selkie_error *error)
{
    sk_block_table_clear(&grid->table);
    for (int b = 1; b <= count; b++)
        SK_TRY(sk_block_table_set(&grid->table, grid->memory, key_of_block(grid, b), b, error));
    grid->block_count = count + 1;
    return SELKIE_OK;
}

/* New slots for the blocks that keep or receive particles. */
static selkie_code renumber_blocks(sk_grid *grid, regrouping *to, selkie_error *error)
{
    /* The list gets the old blocks behind the fresh ones, SK_NO_BLOCK for blocks that become empty. */
    const size_t fresh = (size_t)to->fresh, all = fresh + (size_t)to->old_count;
    sk_block_list *list = &grid->lists[0];
    SK_TRY(sk_reserve(grid->memory, (void **)&list->keys, &list->capacity, all + 1, sizeof *list->keys, "cell sort",
                      error));
    SK_TRY(sk_reserve(grid->memory, (void **)&list->slots, &list->slot_capacity, all + 1, sizeof *list->slots,
                      "cell sort", error));
    SK_TRY(sk_reserve(grid->memory, (void **)&grid->sorted_blocks, &grid->sorted_capacity, all + 1,
                      sizeof *grid->sorted_blocks, "cell sort", error));
    for (int b = 1; b <= to->old_count; b++)
        list->keys[fresh + (size_t)b - 1] =
            staying(grid, b) + to->arrived[b + 1] > 0 ? key_of_block(grid, b) : SK_NO_BLOCK;
    memcpy(grid->sorted_blocks, list->keys, all * sizeof *list->keys);
    SK_TRY(SK_DIM(sk_sort_assign_blocks)(grid, all, error));
    for (size_t i = 0; i < all; i++)
        list->slots[i] = list->keys[i] == SK_NO_BLOCK ? 0 : sk_block_find(&grid->table, list->keys[i]);

    /* Leavers go to the new slots. */
    SK_TRY(reserve_regrouping(grid, to, (size_t)grid->particle_blocks, error));
    memset(to->old_slot, 0, ((size_t)grid->particle_blocks + 2) * sizeof *to->old_slot);
    for (int b = 1; b <= to->old_count; b++)
        to->old_slot[list->slots[fresh + (size_t)b - 1]] = b; /* blocks that became empty all go to 0 */
    to->old_slot[0] = 0;
    for (int b = 1; b <= to->old_count + 1; b++) {
        uint32_t first;
        const int32_t count = list_of(grid, to, b, &first);
        for (uint32_t i = first; i < first + (uint32_t)count; i++) {
            const uint32_t t = grid->keys[i] - 1, old = (uint32_t)to->old_count;
            if (grid->keys[i])
                grid->keys[i] = (uint32_t)list->slots[t < old ? fresh + t : t - old];
        }
    }
    return SELKIE_OK;
}

/* Finds the new set of blocks and the number of arrivals of each. */
static selkie_code regroup_blocks(sk_grid *grid, const sk_particles *particles, regrouping *to, selkie_error *error)
{
    SK_TRY(reserve_regrouping(grid, to, (size_t)to->old_count, error));
    SK_TRY(find_targets(grid, particles, to, error));
    count_arrivals(grid, to, to->old_count);
    int emptied = 0;
    for (int b = 1; b <= to->old_count; b++) {
        to->old_slot[b] = b;
        emptied |= staying(grid, b) + to->arrived[b + 1] == 0;
    }
    if (!to->fresh && !emptied)
        return keep_blocks(grid, to->old_count, error);
    to->regrouped = 1;
    SK_TRY(renumber_blocks(grid, to, error));
    count_arrivals(grid, to, grid->particle_blocks);
    return SELKIE_OK;
}

/* Lists the arrivals of each block, in the order of the blocks they come from. */
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
    for (int b = 1; b <= to->old_count + 1; b++) {
        uint32_t first;
        const int32_t count = list_of(grid, to, b, &first);
        for (uint32_t i = first; i < first + (uint32_t)count; i++)
            if (grid->keys[i])
                arrivals[to->arrived[grid->keys[i]]++] = grid->order[i];
    }
}

/* The arrivals of a block, in the order of their numbers. */
typedef struct arriving {
    const uint32_t *numbers;
    uint32_t count;
    uint32_t early; /* arrivals from blocks before this one */
} arriving;

static void count_arriving(const sk_grid *grid, const arriving *in, cell_counters *counters)
{
    for (uint32_t i = 0; i < in->count; i++)
        counters->next[i >= in->early][grid->cell_keys[in->numbers[i]] & SK_KEY_CELL]++;
}

static void place_arriving(const sk_grid *grid, sk_particles *particles, const arriving *in, uint32_t begin,
                           uint32_t end, uint32_t next[SK_BLOCK_CELLS])
{
    for (uint32_t i = begin; i < end; i++)
        move_record(particles, in->numbers[i], next[grid->cell_keys[in->numbers[i]] & SK_KEY_CELL]++);
}

/* Particles of a block that changed cells, at most MOST_STRAYS. Beyond that a list does not pay. */
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
        key_lanes keys; /* there is room for a whole batch beyond the last */
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

/* Fast path for few changes. Particles that keep their cell keep their order, so they move in contiguous pieces.
 * Pieces end where a particle leaves a cell or enters it. Particles from an earlier cell go before those that stay,
 * particles from a later cell go behind them. */
static void sort_strays(sk_grid *grid, sk_particles *particles, const uint32_t *old, uint32_t begin, const arriving *in,
                        const strays *gone, uint32_t *start)
{
    cell_counters counters;
    memset(&counters, 0, sizeof counters);
    for (int i = 0; i < gone->count; i++) {
        const uint32_t number = gone->numbers[i];
        const uint16_t key = grid->cell_keys[number];
        if (!(key & SK_LEAVES))
            counters.next[number >= old[key & SK_KEY_CELL]][key & SK_KEY_CELL]++;
    }
    count_arriving(grid, in, &counters);

    uint32_t piece = old[0],
             shift = begin - old[0]; /* first particle of the current piece, and its displacement modulo 2^32 */
    int next = 0;
    for (int run = 0; run < SK_BLOCK_CELLS; run += 8) {
        if (is_empty_run(&counters, run) && (next == gone->count || gone->numbers[next] >= old[run + 8])) {
            i8 starts;
            memcpy(&starts, old + run, sizeof starts);
            starts += (int32_t)shift;
            memcpy(start + run, &starts, sizeof starts);
            continue;
        }
        for (int c = run; c < run + 8; c++) {
            const uint32_t before = counters.next[0][c], after = counters.next[1][c];
            start[c] = old[c] + shift;
            if (before) {
                move_records(particles, piece, old[c] - piece, piece + shift);
                piece = old[c];
                counters.next[0][c] = piece + shift;
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
                counters.next[1][c] = piece + shift;
                shift += after;
            }
        }
    }
    move_records(particles, piece, old[SK_BLOCK_CELLS] - piece, piece + shift);

    /* The particles that changed cells, in the order of the full sort. */
    place_arriving(grid, particles, in, 0, in->early, counters.next[0]);
    for (int i = 0; i < gone->count; i++) {
        const uint32_t number = gone->numbers[i];
        const uint16_t key = grid->cell_keys[number];
        if (!(key & SK_LEAVES))
            move_record(particles, number, counters.next[number >= old[key & SK_KEY_CELL]][key & SK_KEY_CELL]++);
    }
    place_arriving(grid, particles, in, in->early, in->count, counters.next[1]);
}

/* Attributes of one value each, up to MOST_SINGLE of them; otherwise MOST_SINGLE + 1. */
enum { MOST_SINGLE = 3 };
static int single_values(const sk_particles *particles)
{
    int count = particles->attribute_count;
    for (int a = 0; a < particles->attribute_count; a++)
        count = particles->attributes[a].components == 1 ? count : MOST_SINGLE + 1;
    return count < MOST_SINGLE + 1 ? count : MOST_SINGLE + 1;
}

/* Copies the values of some particles, one attribute after the other: a loop for each length is faster than a look at
 * the lengths of all attributes for each particle. */
static void move_values(sk_particles *particles, const uint32_t *from, const uint32_t *to, int count)
{
    for (int a = 0; a < particles->attribute_count; a++) {
        const size_t n = (size_t)particles->attributes[a].components;
        const uint32_t *data = particles->attributes[a].data;
        uint32_t *spare = particles->attributes[a].spare;
        if (n == 1)
            for (int i = 0; i < count; i++)
                spare[to[i]] = data[from[i]];
        else if (n == 2)
            for (int i = 0; i < count; i++)
                memcpy(spare + 2 * (size_t)to[i], data + 2 * (size_t)from[i], 2 * sizeof *data);
        else if (n == 3)
            for (int i = 0; i < count; i++)
                memcpy(spare + 3 * (size_t)to[i], data + 3 * (size_t)from[i], 3 * sizeof *data);
        else
            for (int i = 0; i < count; i++)
                copy_values(spare + n * to[i], data + n * from[i], n);
    }
}

/* Moves the particles of a block that stay in it, and their values a part of the block at a time. */
static void move_with_values(sk_particles *particles, const uint16_t *keys, uint32_t begin, uint32_t count,
                             cell_counters *counters)
{
    enum { PART = 256 };
    const uint32_t half = count / 2, all = half + (count & 1);
    uint32_t from[2 * PART], to[2 * PART];
    for (uint32_t first = 0; first < all; first += PART) {
        int n = 0;
        for (uint32_t i = first; i < first + PART && i < all; i++)
            for (int stream = i == half; stream < 2; stream++) {
                const uint32_t number = stream ? half + i : i;
                const uint16_t key = keys[number];
                if (key & SK_LEAVES)
                    continue;
                from[n] = begin + number;
                to[n] = counters->next[stream][key & SK_KEY_CELL]++;
                particles->spare[to[n]] = particles->records[from[n]];
                n++;
            }
        move_values(particles, from, to, n);
    }
}

/* Moves the particles of a block that stay in it. `values`, a constant at each call, is that of single_values().
 * Pointers in local variables: the compiler would load those of `particles` again after each store. */
static inline __attribute__((always_inline)) void move_staying(sk_particles *particles, const int values,
                                                               const uint16_t *keys, uint32_t begin, uint32_t count,
                                                               cell_counters *counters)
{
    const uint32_t half = count / 2;
    const sk_particle *from = particles->records + begin;
    sk_particle *to = particles->spare;
    const uint32_t *value_from[MOST_SINGLE];
    uint32_t *value_to[MOST_SINGLE];
    for (int a = 0; a < values; a++) {
        value_from[a] = particles->attributes[a].data + begin;
        value_to[a] = particles->attributes[a].spare;
    }
    for (uint32_t i = 0; i < half + (count & 1); i++)
        for (int stream = i == half; stream < 2; stream++) {
            const uint32_t number = stream ? half + i : i;
            const uint16_t key = keys[number];
            if (key & SK_LEAVES)
                continue;
            const uint32_t target = counters->next[stream][key & SK_KEY_CELL]++;
            to[target] = from[number];
            for (int a = 0; a < values; a++)
                value_to[a][target] = value_from[a][number];
        }
}

/* Arrivals from earlier blocks, particles that stay, arrivals from later blocks: the order of the full sort. `old`
 * holds the previous starts of the block's cells, NULL if the block is new. */
static void sort_block_again(sk_grid *grid, sk_particles *particles, const uint32_t *old, uint32_t begin,
                             const arriving *in, uint32_t *start)
{
    strays gone;
    if (old && find_strays(grid, old[0], old[SK_BLOCK_CELLS], &gone)) {
        sort_strays(grid, particles, old, begin, in, &gone, start);
        return;
    }

    /* The first half of the staying particles belongs to the first stream: see cell_counters. */
    const uint32_t old_begin = old ? old[0] : 0;
    const uint32_t count = old ? old[SK_BLOCK_CELLS] - old_begin : 0, half = count / 2;
    const uint16_t *keys = grid->cell_keys + old_begin;
    cell_counters counters;
    memset(&counters, 0, sizeof counters);
    count_arriving(grid, in, &counters);
    for (uint32_t i = 0; i < half; i++) {
        uint16_t first = keys[i], second = keys[half + i];
        /* Prefetches the records and their targets while it counts. */
        __builtin_prefetch(particles->spare + begin + 2 * i, 1, 2);
        __builtin_prefetch(i & 1 ? particles->records + old_begin + i : particles->records + old_begin + half + i, 0,
                           2);
        if (!(first & SK_LEAVES))
            counters.next[0][first & SK_KEY_CELL]++;
        if (!(second & SK_LEAVES))
            counters.next[1][second & SK_KEY_CELL]++;
    }
    if (count & 1 && !(keys[count - 1] & SK_LEAVES))
        counters.next[1][keys[count - 1] & SK_KEY_CELL]++;
    place_cells(&counters, begin, start);
    place_arriving(grid, particles, in, 0, in->early, counters.next[0]);
    switch (single_values(particles)) {
    case 0:
        move_staying(particles, 0, keys, old_begin, count, &counters);
        break;
    case 1:
        move_staying(particles, 1, keys, old_begin, count, &counters);
        break;
    case 2:
        move_staying(particles, 2, keys, old_begin, count, &counters);
        break;
    case 3:
        move_staying(particles, 3, keys, old_begin, count, &counters);
        break;
    default:
        move_with_values(particles, keys, old_begin, count, &counters);
    }
    place_arriving(grid, particles, in, in->early, in->count, counters.next[1]);
}

/* Surrounding blocks get new slots, so they always count as changed. */
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

/* Number of migrating particles, from the list of the last move or counted here; -1 if some are dead or outside. */
static int64_t count_leavers(sk_grid *grid, const sk_particles *particles, int threads)
{
    int64_t left = 0;
    if (!sk_grid_leavers_known(grid, particles)) {
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

#ifdef SK_CHECKED
/* Builds with sanitizers check the lists of migrating particles. */
static int lists_hold(sk_grid *grid, const sk_particles *particles)
{
    int hold = 1;
    for (int b = 1; b <= grid->particle_blocks; b++) {
        const uint32_t *start = grid->cell_start + (size_t)(b - 1) * SK_BLOCK_CELLS;
        int dead = 0; /* its list was changed by sk_grid_drop_listed */
        for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS]; p++)
            dead |= (particles->records[p].flags & SK_PARTICLE_DEAD) != 0;
        if (dead)
            continue;
        const int64_t listed = grid->leavers[b], found = find_leavers(grid, particles, b);
        hold &= listed == found;
    }
    return hold;
}
#endif

/* The fast path, for `left` migrating particles and `added` new ones. */
static selkie_code sort_leavers(sk_grid *grid, sk_particles *particles, int64_t left, int added, int threads,
                                selkie_error *error)
{
    regrouping to = {.old_count = grid->particle_blocks, .added = added};
    const size_t room = grid->block_capacity;
    left += added;

    /* Find the new set of blocks, and list the arrivals of each. */
    if ((size_t)left >= grid->arrival_capacity)
        SK_TRY(sk_reserve(grid->memory, (void **)&grid->arrivals, &grid->arrival_capacity,
                          (size_t)left + (size_t)left / 2 + 1, sizeof *grid->arrivals, "cell sort", error));
    SK_TRY(regroup_blocks(grid, particles, &to, error));
    const int blocks = grid->particle_blocks;
    const size_t starts = (size_t)blocks * SK_BLOCK_CELLS + 1;
    uint32_t *arrivals = grid->arrivals;
    deal_leavers(grid, &to, arrivals);

    /* Other threads still read the old starts, so the new ones go to a second array. */
    SK_TRY(sk_reserve(grid->memory, (void **)&grid->next_start, &grid->next_start_capacity, starts,
                      sizeof *grid->next_start, "cell sort", error));
    SK_TRY(reserve_occupied(grid, (size_t)blocks, error));

    /* Merge the arrivals of each block with the particles that stay. */
    sk_deal deal;
    sk_deal_begin(&deal, threads);
    sk_deal_add(&deal, 1, blocks + 1, to.start + 1, 1);
#pragma omp parallel num_threads(threads)
    SK_EACH_DEALT(b, &deal)
    {
        const uint32_t *old = to.old_slot[b] ? grid->cell_start + (size_t)(to.old_slot[b] - 1) * SK_BLOCK_CELLS : NULL;
        const uint32_t first = b > 1 ? to.arrived[b - 1] : 0;
        uint32_t *start = grid->next_start + (size_t)(b - 1) * SK_BLOCK_CELLS;
        arriving in = {arrivals + first, to.arrived[b] - first, 0};
        while (old && in.early < in.count && in.numbers[in.early] < old[0])
            in.early++;
        sort_block_again(grid, particles, old, to.start[b], &in, start);
        to.reach[b] = reach_of(grid, b, start, to.start[b + 1]);
    }

    /* The new starts and records replace the old ones. Dead particles are gone. */
    particles->count = to.start[blocks + 1];
    grid->next_start[starts - 1] = (uint32_t)particles->count;
    uint32_t *start = grid->cell_start;
    size_t capacity = grid->cell_start_capacity;
    grid->cell_start = grid->next_start;
    grid->cell_start_capacity = grid->next_start_capacity;
    grid->next_start = start;
    grid->next_start_capacity = capacity;
    sk_particles_swap(particles);
    particles->in_order = 1;

    /* Touched flags are indexed by old blocks. `arrived` carries them to the new blocks. */
    for (int b = blocks; b > 0; b--) {
        const uint32_t came = to.arrived[b] - (b > 1 ? to.arrived[b - 1] : 0);
        to.arrived[b] = came || to.regrouped || grid->leavers[b] || !grid->moved || grid->moved[b];
    }

    /* Assign the blocks around the particles, and note which blocks changed. */
    SK_TRY(SK_DIM(sk_sort_assign_surroundings)(grid, to.reach, threads, error));
    if (grid->block_capacity == room)
        note_changes(grid, to.arrived, threads);
    else /* the arrays were reallocated, and the content of the blocks is lost */
        sk_sort_all_changed(grid);
    return SELKIE_OK;
}

/* Whether the particles from `first` on, new since the last sort, are few and inside the domain. Otherwise the full
 * sort must handle them. */
static int new_ones_are_inside(const sk_grid *grid, const sk_particles *particles, int64_t first)
{
    enum { MANY = 4096 }; /* one thread lists them; the full sort lists more in threads */
    const float inverse = (float)(1.0 / grid->cell_size);
    if (particles->count - first > MANY)
        return 0;
    for (int64_t p = first; p < particles->count; p++)
        for (int d = 0; d < SELKIE_DIM; d++) {
            const float at = (particles->records[p].position[d] - (float)grid->corner[d]) * inverse;
            if (!(at >= 0.0f && at < (float)(grid->blocks[d] * grid->extent[d])) ||
                particles->records[p].flags & SK_PARTICLE_DEAD)
                return 0;
        }
    return 1;
}

static selkie_code reserve_keys(sk_grid *grid, size_t count, selkie_error *error)
{
    SK_TRY(sk_reserve(grid->memory, (void **)&grid->keys, &grid->key_capacity, count, sizeof *grid->keys, "cell sort",
                      error));
    SK_TRY(sk_reserve(grid->memory, (void **)&grid->cell_keys, &grid->cell_key_capacity, count + SK_WIDE,
                      sizeof *grid->cell_keys, "cell sort", error));
    return sk_reserve(grid->memory, (void **)&grid->order, &grid->order_capacity, count, sizeof *grid->order,
                      "cell sort", error);
}

void SK_DIM(sk_grid_drop_listed)(sk_grid *grid, int block, uint32_t p)
{
    const uint32_t first = grid->cell_start[(size_t)(block - 1) * SK_BLOCK_CELLS];
    uint32_t *keys = grid->keys + first, *order = grid->order + first;
    int32_t place = 0, count = grid->leavers[block];
    while (place < count && order[place] < p)
        place++;
    if (place == count || order[place] != p) { /* lists are in the order of particles */
        memmove(keys + place + 1, keys + place, (size_t)(count - place) * sizeof *keys);
        memmove(order + place + 1, order + place, (size_t)(count - place) * sizeof *order);
        grid->leavers[block]++;
    }
    order[place] = p;
    keys[place] = SK_LEAVER_NOWHERE;
    grid->cell_keys[p] |= SK_LEAVES | SK_STRAYS;
}

selkie_code SK_DIM(sk_grid_sort_again)(sk_grid *grid, sk_particles *particles, int threads, selkie_error *error)
{
    const int blocks = grid->particle_blocks;
    const int64_t old = blocks ? grid->cell_start[(size_t)blocks * SK_BLOCK_CELLS] : 0;
    if (!particles->in_order || blocks == 0 || old > particles->count || !new_ones_are_inside(grid, particles, old))
        return SK_DIM(sk_grid_sort)(grid, particles, threads, error);
    SK_TRY(reserve_keys(grid, (size_t)particles->count, error));
    SK_TRY(sk_grid_reserve_leavers(grid, error));
    int64_t left = count_leavers(grid, particles, threads);
#ifdef SK_CHECKED
    if (left >= 0 && sk_grid_leavers_known(grid, particles) && !lists_hold(grid, particles))
        return sk_fail(error, SELKIE_ERROR_INTERNAL, "a phase changed positions and did not call sk_particles_moved()");
#endif
    /* One thread distributes the arrivals. The full sort is faster if many particles migrate. */
    if (left < 0 || left > particles->count / 3)
        return SK_DIM(sk_grid_sort)(grid, particles, threads, error);
    return SK_DIM(sk_sort_settle)(grid, particles,
                                  sort_leavers(grid, particles, left, (int)(particles->count - old), threads, error));
}
