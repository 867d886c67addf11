/* Clouds of particles, sorted by cells and held against a plain sort. */
#ifndef SELKIE_TESTS_SORT_CASES_H
#define SELKIE_TESTS_SORT_CASES_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "grid/grid.h"
#include "grid/plain_forms.h"

static inline selkie_code sort(sk_grid *grid, sk_particles *particles, int threads, selkie_error *error)
{
    return grid->dimension == 2 ? sk_grid_sort_2d(grid, particles, threads, error)
                                : sk_grid_sort_3d(grid, particles, threads, error);
}

static inline selkie_code sort_again(sk_grid *grid, sk_particles *particles, int threads, selkie_error *error)
{
    return grid->dimension == 2 ? sk_grid_sort_again_2d(grid, particles, threads, error)
                                : sk_grid_sort_again_3d(grid, particles, threads, error);
}

static inline void make_grid(sk_grid *grid, int dimension, const int cells[3], sk_memory *memory)
{
    const double low[3] = {-1.5, 0.25, dimension == 3 ? 2.0 : 0.0};
    assert_int_equal(sk_grid_init(grid, dimension, cells, low, 0.125, memory, NULL), SELKIE_OK);
}

static inline void add(sk_particles *particles, double x, double y, double z)
{
    assert_int_equal(sk_particles_reserve(particles, particles->count + 1, NULL), SELKIE_OK);
    const double at[3] = {x, y, z}, v[3] = {x, -y, 1.0};
    sk_particles_append(particles, at, v);
    sk_attribute *tag = sk_particles_find_attribute(particles, "tag");
    if (tag) {
        tag->data[2 * (particles->count - 1)] = particles->next_id;
        tag->data[2 * (particles->count - 1) + 1] = ~particles->next_id;
    }
}

/* Position of a place given in cells from the domain's corner. */
static inline void add_at_cell(sk_particles *particles, const sk_grid *grid, double i, double j, double k)
{
    const double h = grid->cell_size;
    add(particles, grid->low[0] + i * h, grid->low[1] + j * h, grid->dimension == 3 ? grid->low[2] + k * h : 0.0);
}

static inline void add_cloud(sk_particles *particles, const sk_grid *grid, int count, uint64_t seed)
{
    for (int p = 0; p < count; p++) {
        double x[3] = {0, 0, 0};
        for (int d = 0; d < grid->dimension; d++)
            x[d] = sk_random_float(seed, (uint64_t)p, (uint64_t)d) * grid->cells[d];
        add_at_cell(particles, grid, x[0], x[1], x[2]);
        /* Some are dead, some share a place with the one before. */
        sk_particle *last = &particles->records[particles->count - 1];
        if (p % 11 == 7)
            last->flags |= SK_PARTICLE_DEAD;
        if (p % 13 == 5)
            memcpy(last->position, last[-1].position, sizeof last->position);
    }
}

typedef struct reference_entry {
    uint64_t place; /* of the block in the grid, x fastest */
    uint32_t cell;  /* in the block */
    int64_t index;
    int cells[3];
} reference_entry;

static inline int compare_entries(const void *a, const void *b)
{
    const reference_entry *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    if (x->cell != y->cell)
        return x->cell < y->cell ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static inline reference_entry *reference_sort(const sk_grid *grid, const sk_particles *particles, int64_t *living)
{
    reference_entry *entries = malloc(((size_t)particles->count + 1) * sizeof *entries);
    *living = 0;
    for (int64_t p = 0; p < particles->count; p++) {
        if (particles->records[p].flags & SK_PARTICLE_DEAD)
            continue;
        reference_entry *entry = &entries[(*living)++];
        memset(entry, 0, sizeof *entry);
        entry->index = p;
        uint64_t place_stride = 1;
        uint32_t cell_stride = 1;
        for (int d = 0; d < grid->dimension; d++) {
            float g = (particles->records[p].position[d] - (float)grid->corner[d]) * (float)(1.0 / grid->cell_size);
            int i = entry->cells[d] = (int)floorf(g);
            entry->place += (uint64_t)(i / grid->extent[d]) * place_stride;
            entry->cell += (uint32_t)(i % grid->extent[d]) * cell_stride;
            place_stride *= (uint64_t)grid->blocks[d];
            cell_stride *= (uint32_t)grid->extent[d];
        }
    }
    qsort(entries, (size_t)*living, sizeof *entries, compare_entries);
    return entries;
}

/* Which block places the particles need: all within two cells. */
static inline uint8_t *reference_blocks(const sk_grid *grid, const reference_entry *entries, int64_t living)
{
    size_t places = (size_t)grid->blocks[0] * (size_t)grid->blocks[1] * (size_t)grid->blocks[2];
    uint8_t *needed = calloc(places, 1);
    for (int64_t e = 0; e < living; e++)
        for (int dz = grid->dimension == 3 ? -2 : 0; dz <= (grid->dimension == 3 ? 2 : 0); dz++)
            for (int dy = -2; dy <= 2; dy++)
                for (int dx = -2; dx <= 2; dx++) {
                    int at[3] = {entries[e].cells[0] + dx, entries[e].cells[1] + dy, entries[e].cells[2] + dz},
                        inside = 1;
                    size_t place = 0, stride = 1;
                    for (int d = 0; d < 3; d++) {
                        inside &= at[d] >= 0 && at[d] < grid->blocks[d] * grid->extent[d];
                        place += inside ? (size_t)(at[d] / grid->extent[d]) * stride : 0;
                        stride *= (size_t)grid->blocks[d];
                    }
                    if (inside)
                        needed[place] |= 1;
                }
    for (int64_t e = 0; e < living; e++)
        needed[entries[e].place] |= 2;
    return needed;
}

static inline int32_t slot_at(const sk_grid *grid, const int32_t *from, int dx, int dy, int dz)
{
    int at[3] = {from[0] + dx, from[1] + dy, from[2] + dz};
    for (int d = 0; d < 3; d++)
        if (at[d] < 0 || at[d] >= grid->blocks[d])
            return 0;
    return sk_block_find(&grid->table, sk_block_key(at[0], at[1], at[2]));
}

/* Number of a block in the order of the grid, x fastest. */
static inline size_t place_of(const sk_grid *grid, const int32_t at[3])
{
    return (size_t)at[0] + (size_t)grid->blocks[0] * ((size_t)at[1] + (size_t)grid->blocks[1] * (size_t)at[2]);
}

static inline void check_blocks(const sk_grid *grid, const uint8_t *needed)
{
    size_t places = (size_t)grid->blocks[0] * (size_t)grid->blocks[1] * (size_t)grid->blocks[2];
    int32_t last = 0;
    int particle_blocks = 0, blocks = 1;
    for (size_t place = 0; place < places; place++) {
        const int32_t at[3] = {(int32_t)(place % (size_t)grid->blocks[0]),
                               (int32_t)(place / (size_t)grid->blocks[0] % (size_t)grid->blocks[1]),
                               (int32_t)(place / (size_t)grid->blocks[0] / (size_t)grid->blocks[1])};
        int32_t slot = slot_at(grid, at, 0, 0, 0);
        assert_int_equal(slot != 0, needed[place] != 0);
        if (!slot)
            continue;
        blocks++;
        assert_in_range(slot, 1, grid->block_count - 1);
        assert_int_equal(place_of(grid, grid->coordinates[slot]), place);
        if (needed[place] & 2) { /* in the order of the grid */
            assert_int_equal(slot, last + 1);
            last = slot;
            particle_blocks++;
        } else {
            assert_true(slot > grid->particle_blocks);
        }
    }
    assert_int_equal(particle_blocks, grid->particle_blocks);
    assert_int_equal(blocks, grid->block_count);
    int deep = grid->dimension == 3;
    for (int b = 1; b < grid->block_count; b++) {
        for (int n = 0; n < (deep ? 27 : 9); n++)
            assert_int_equal(grid->neighbours[b][n],
                             slot_at(grid, grid->coordinates[b], n % 3 - 1, n / 3 % 3 - 1, deep ? n / 9 - 1 : 0));
        for (int side = 0; side < 6; side++) {
            int step[3] = {0, 0, 0};
            step[side / 2] = side & 1 ? 1 : -1;
            assert_int_equal(grid->faces[b][side], side / 2 < grid->dimension
                                                       ? slot_at(grid, grid->coordinates[b], step[0], step[1], step[2])
                                                       : 0);
        }
    }
    /* The shared empty block: no neighbours, velocities unknown, the rest zero. */
    for (int n = 0; n < SK_MAX_NEIGHBOURS; n++)
        assert_int_equal(grid->neighbours[0][n], 0);
    for (int c = 0; c < grid->block_cells; c++) {
        assert_true(isnan(grid->fields[SK_FIELD_VELOCITY_X][c]) && isnan(grid->fields[SK_FIELD_VELOCITY_Y][c]));
        assert_true(grid->fields[SK_FIELD_DENSITY][c] == 0.0f && grid->fields[SK_FIELD_POTENTIAL][c] == 0.0f);
    }
}

/* Sorts, and compares everything with the plain sort of the particles as they were. */
static inline void sort_and_check(sk_grid *grid, sk_particles *particles, int threads)
{
    int64_t living, count = particles->count;
    reference_entry *entries = reference_sort(grid, particles, &living);
    sk_particle *before = malloc(((size_t)count + 1) * sizeof *before);
    if (count)
        memcpy(before, particles->records, (size_t)count * sizeof *before);
    selkie_error error = {0};
    assert_int_equal(sort(grid, particles, threads, &error), SELKIE_OK);

    assert_int_equal(particles->count, living);
    const sk_attribute *tag = sk_particles_find_attribute(particles, "tag");
    for (int64_t p = 0; p < living; p++) {
        assert_memory_equal(&particles->records[p], &before[entries[p].index], sizeof *before);
        if (tag) {
            assert_int_equal(tag->data[2 * p], particles->records[p].id + 1);
            assert_int_equal(tag->data[2 * p + 1], ~(particles->records[p].id + 1));
        }
    }
    int64_t next = 0;
    for (int slot = 1; slot <= grid->particle_blocks; slot++)
        for (int c = 0; c < grid->block_cells; c++) {
            assert_int_equal(grid->cell_start[(slot - 1) * grid->block_cells + c], next);
            while (next < living && entries[next].place == place_of(grid, grid->coordinates[slot]) &&
                   entries[next].cell == (uint32_t)c)
                next++;
        }
    assert_int_equal(next, living);
    assert_int_equal(grid->cell_start[(size_t)grid->particle_blocks * (size_t)grid->block_cells], living);
    uint8_t *needed = reference_blocks(grid, entries, living);
    check_blocks(grid, needed);
    free(needed);
    free(before);
    free(entries);
}

static const int small_cells[2][3] = {{45, 70, 1}, {20, 31, 11}};

#endif
