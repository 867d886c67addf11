/* Parts shared by the full cell sort (sort_dim.c) and the sort after small moves (sort_again_dim.c). For files
 * compiled per dimension. */
#ifndef SK_PARTICLES_SORT_PARTS_H
#define SK_PARTICLES_SORT_PARTS_H

#include <string.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/grid.h"

/* Counters for the targets of a block's records. The first and the second half of the particles are two streams with
 * counters of their own. Consecutive particles often share a cell, and a single counter would be a chain of dependent
 * updates. */
typedef struct cell_counters {
    uint32_t next[2][SK_BLOCK_CELLS];
} cell_counters;

/* Are the eight cells from c on empty? Most runs of surface blocks are. */
static inline __attribute__((unused)) int is_empty_run(const cell_counters *counters, int c)
{
    i8 first, second;
    memcpy(&first, counters->next[0] + c, sizeof first);
    memcpy(&second, counters->next[1] + c, sizeof second);
    return !i8_any((first | second) != 0);
}

/* Prefix sums: counts become first targets, from `total` on. start[] gets those of the cells. */
static inline __attribute__((unused)) void place_cells(cell_counters *counters, uint32_t total, uint32_t *start)
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

/* Neighbours that the kernels of a block's particles reach, one bit for each of the 3^dim, from the starts of its
 * cells. The last cell ends at `end`. Sets the runs with particles in the grid's `occupied`. */
static inline __attribute__((unused)) uint32_t reach_of(sk_grid *grid, int block, const uint32_t *start, uint32_t end)
{
    /* Bits of the neighbours along an axis, by the cell's position along it. The product of three such numbers, spread
     * by 1, 3 and 9 bits, has the bits of all combinations. The reach is two cells: one for the kernel, one for the
     * band of extrapolated velocities. */
    uint32_t bits[3][SK_BLOCK_N];
    for (int i = 0; i < SK_BLOCK_N; i++) {
        const int lower = i < 2, upper = i >= SK_BLOCK_N - 2;
        for (int d = 0, spread = 1; d < 3; d++, spread *= 3)
            bits[d][i] = (uint32_t)((lower ? 1u : 0u) | 1u << spread | (upper ? 1u << 2 * spread : 0u));
    }

    /* Combine the bits of all cells with particles, eight cells along x at a time. */
    uint32_t reach = 0;
    uint64_t occupied = 0, first = 0, last = 0;
    for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
        const uint32_t until = c + 8 < SK_BLOCK_CELLS ? start[c + 8] : end;
        if (start[c] == until)
            continue;
        i8 here, next;
        memcpy(&here, start + c, sizeof here);
        memcpy(&next, start + c + 1, 7 * sizeof *start);
        next[7] = (int32_t)until;
        const unsigned held = i8_bits(here != next);

        /* Only cells at the ends of a row reach the neighbours along x. */
        const int i = c & SK_BLOCK_MASK;
        uint32_t along = bits[0][2]; /* the cells within */
        along |= i == 0 && held & 3 ? bits[0][0] : 0;
        along |= i == SK_BLOCK_N - 8 && held & 0xc0 ? bits[0][SK_BLOCK_N - 1] : 0;
        uint32_t all = along * bits[1][c >> SK_BLOCK_LOG & SK_BLOCK_MASK];
        if (SELKIE_DIM == 3)
            all *= bits[2][c >> 2 * SK_BLOCK_LOG];

        /* Note the run, and whether its cells at the ends of the row have particles. */
        reach |= all;
        occupied |= UINT64_C(1) << (c / 8);
        first |= (uint64_t)(i == 0 && held & 1) << (c / 8);
        last |= (uint64_t)(i == SK_BLOCK_N - 8 && held & 0x80) << (c / 8);
    }
    grid->occupied[block] = occupied;
    grid->occupied_first[block] = first;
    grid->occupied_last[block] = last;
    return reach;
}

/* Copies the n values of a particle's attribute. Calls of memcpy would take longer than the copies. */
static inline void copy_values(uint32_t *to, const uint32_t *from, size_t n)
{
    switch (n) {
    case 1:
        *to = *from;
        break;
    case 2:
        memcpy(to, from, 2 * sizeof *to);
        break;
    case 3:
        memcpy(to, from, 3 * sizeof *to);
        break;
    case 4:
        memcpy(to, from, 4 * sizeof *to);
        break;
    case 9:
        memcpy(to, from, 9 * sizeof *to);
        break;
    default:
        memcpy(to, from, n * sizeof *to);
    }
}

/* Copies values of several particles. Pieces are short: calls of memcpy would take longer than most copies. */
static inline void copy_many(uint32_t *to, const uint32_t *from, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        memcpy(to + i, from + i, 8 * sizeof *to);
    for (size_t part = 4; part > 0; part /= 2)
        if (n & part) {
            memcpy(to + i, from + i, part * sizeof *to);
            i += part;
        }
}

static inline __attribute__((unused)) void move_record(sk_particles *particles, uint32_t source, uint32_t target)
{
    particles->spare[target] = particles->records[source];
    for (int a = 0; a < particles->attribute_count; a++) {
        const sk_attribute *attribute = &particles->attributes[a];
        size_t n = (size_t)attribute->components;
        copy_values(attribute->spare + target * n, attribute->data + source * n, n);
    }
}

static inline __attribute__((unused)) void move_records(sk_particles *particles, uint32_t source, uint32_t count,
                                                        uint32_t target)
{
    enum { ahead = 128 }; /* particles */
    /* Prefetches far ahead: the pieces are too short for the hardware prefetcher. */
    const sk_particle *from = particles->records + source, *end = from + count;
    for (sk_particle *to = particles->spare + target; from < end; from++, to++) {
        __builtin_prefetch(from + ahead, 0);
        __builtin_prefetch(to + ahead, 1);
        f8_store(sk_particle_floats(to), f8_load(sk_particle_floats(from)));
    }
    for (int a = 0; a < particles->attribute_count; a++) {
        const sk_attribute *attribute = &particles->attributes[a];
        size_t n = (size_t)attribute->components;
        copy_many(attribute->spare + target * n, attribute->data + source * n, count * n);
    }
}

/* Reserves the masks that reach_of fills. */
static inline __attribute__((unused)) selkie_code reserve_occupied(sk_grid *grid, size_t blocks, selkie_error *error)
{
    SK_TRY(sk_reserve(grid->memory, (void **)&grid->occupied, &grid->occupied_capacity, 3 * (blocks + 1),
                      sizeof *grid->occupied, "cell sort", error));
    grid->occupied_first = grid->occupied + blocks + 1;
    grid->occupied_last = grid->occupied_first + blocks + 1;
    grid->occupied[0] = grid->occupied_first[0] = grid->occupied_last[0] = 0;
    return SELKIE_OK;
}

/* Marks every block as changed. Results that depend on particles alone are then recomputed. */
static inline __attribute__((unused)) void sk_sort_all_changed(sk_grid *grid)
{
    memset(grid->changes + 1, SK_BLOCK_TOUCHED | SK_BLOCK_NEAR, (size_t)grid->block_count - 1);
}

/* --- sort_dim.c --- */

/* Makes `count` empty lists of blocks. */
selkie_code SK_DIM(sk_sort_clear_lists)(sk_grid *grid, int count, selkie_error *error);
/* Puts the blocks of the first `count` lists into the grid's sorted_blocks. Returns their number in `total`. */
selkie_code SK_DIM(sk_sort_join_lists)(sk_grid *grid, int count, size_t *total, selkie_error *error);
/* Slots 1.. for the first `count` keys of sorted_blocks, in ascending order. Keys may be there twice, or SK_NO_BLOCK.
 */
selkie_code SK_DIM(sk_sort_assign_blocks)(sk_grid *grid, size_t count, selkie_error *error);
/* Slots for the blocks that kernels reach, and the table of neighbours. */
selkie_code SK_DIM(sk_sort_assign_surroundings)(sk_grid *grid, const uint32_t *reach, int threads, selkie_error *error);
/* Ends a sort. On failure the grid becomes empty. */
selkie_code SK_DIM(sk_sort_settle)(sk_grid *grid, sk_particles *particles, selkie_code code);

#endif
