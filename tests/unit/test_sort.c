/* The cell sort against a plain one: order, ties, dead particles, starts of cells, slots of blocks and who is whose
 * neighbour, in 2D and 3D, on any number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "grid/grid.h"
#include "grid/plain_forms.h"
#include "sanitized.h"
#include "step_cases.h"

static selkie_code sort(sk_grid *grid, sk_particles *particles, int threads, selkie_error *error)
{
    return grid->dimension == 2 ? sk_grid_sort_2d(grid, particles, threads, error)
                                : sk_grid_sort_3d(grid, particles, threads, error);
}

static selkie_code sort_again(sk_grid *grid, sk_particles *particles, int threads, selkie_error *error)
{
    return grid->dimension == 2 ? sk_grid_sort_again_2d(grid, particles, threads, error)
                                : sk_grid_sort_again_3d(grid, particles, threads, error);
}

static void make_grid(sk_grid *grid, int dimension, const int cells[3], sk_memory *memory)
{
    const double low[3] = {-1.5, 0.25, dimension == 3 ? 2.0 : 0.0};
    assert_int_equal(sk_grid_init(grid, dimension, cells, low, 0.125, memory, NULL), SELKIE_OK);
}

static void add(sk_particles *particles, double x, double y, double z)
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
static void add_at_cell(sk_particles *particles, const sk_grid *grid, double i, double j, double k)
{
    const double h = grid->cell_size;
    add(particles, grid->low[0] + i * h, grid->low[1] + j * h, grid->dimension == 3 ? grid->low[2] + k * h : 0.0);
}

static void add_cloud(sk_particles *particles, const sk_grid *grid, int count, uint64_t seed)
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

static int compare_entries(const void *a, const void *b)
{
    const reference_entry *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    if (x->cell != y->cell)
        return x->cell < y->cell ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static reference_entry *reference_sort(const sk_grid *grid, const sk_particles *particles, int64_t *living)
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
static uint8_t *reference_blocks(const sk_grid *grid, const reference_entry *entries, int64_t living)
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

static int32_t slot_at(const sk_grid *grid, const int32_t *from, int dx, int dy, int dz)
{
    int at[3] = {from[0] + dx, from[1] + dy, from[2] + dz};
    for (int d = 0; d < 3; d++)
        if (at[d] < 0 || at[d] >= grid->blocks[d])
            return 0;
    return sk_block_find(&grid->table, sk_block_key(at[0], at[1], at[2]));
}

/* Number of a block in the order of the grid, x fastest. */
static size_t place_of(const sk_grid *grid, const int32_t at[3])
{
    return (size_t)at[0] + (size_t)grid->blocks[0] * ((size_t)at[1] + (size_t)grid->blocks[1] * (size_t)at[2]);
}

static void check_blocks(const sk_grid *grid, const uint8_t *needed)
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
static void sort_and_check(sk_grid *grid, sk_particles *particles, int threads)
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

static void an_empty_world(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        sk_memory memory = {0, 0, 0};
        sk_grid grid;
        sk_particles particles;
        sk_particles_init(&particles, &memory);
        make_grid(&grid, dimension, small_cells[dimension - 2], &memory);
        sort_and_check(&grid, &particles, 2);
        assert_int_equal(grid.block_count, 1);
        assert_int_equal(grid.cell_start[0], 0);
        /* Nothing but dead ones is as empty. */
        add_at_cell(&particles, &grid, 3.5, 3.5, 3.5);
        particles.records[0].flags = SK_PARTICLE_DEAD;
        sort_and_check(&grid, &particles, 2);
        assert_int_equal(grid.block_count, 1);
        sk_particles_free(&particles);
        sk_grid_free(&grid);
        assert_int_equal(memory.used, 0);
    }
}

static void one_particle_anywhere(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        sk_grid grid;
        sk_particles particles;
        sk_particles_init(&particles, NULL);
        make_grid(&grid, dimension, small_cells[dimension - 2], NULL);
        add(&particles, 0, 0, 0);
        /* Along the domain in steps of a half cell: every border of a block is met exactly. The last is the upper
         * corner. */
        for (int n = 0; n <= 2 * grid.cells[0]; n++) {
            for (int d = 0; d < dimension; d++) {
                double place = fmin(0.5 * n, grid.cells[d]);
                particles.records[0].position[d] = (float)(grid.low[d] + place * grid.cell_size);
            }
            sort_and_check(&grid, &particles, 1 + n % 3);
        }
        sk_particles_free(&particles);
        sk_grid_free(&grid);
    }
}

static void corners_of_blocks_and_of_the_domain(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        sk_grid grid;
        sk_particles particles;
        sk_particles_init(&particles, NULL);
        sk_particles_add_attribute(&particles, "tag", 2, 1);
        make_grid(&grid, dimension, small_cells[dimension - 2], NULL);
        for (int corner = 0; corner < 1 << dimension; corner++)
            for (int inwards = 0; inwards < 2; inwards++) {
                double x[3] = {0, 0, 0};
                for (int d = 0; d < dimension; d++)
                    x[d] = corner >> d & 1 ? grid.cells[d] - 1e-3 * inwards : 1e-3 * inwards;
                add_at_cell(&particles, &grid, x[0], x[1], x[2]);
            }
        int n = grid.extent[0], p = SK_GRID_PADDING;
        for (int k = n - p; k < (dimension == 3 ? grid.cells[2] : n - p + 1); k += n)
            for (int j = n - p; j < grid.cells[1]; j += n)
                for (int i = n - p; i < grid.cells[0]; i += n)
                    for (int corner = 0; corner < 8; corner++)
                        add_at_cell(&particles, &grid, i - 0.01 * (corner & 1), j - 0.01 * (corner >> 1 & 1),
                                    k - 0.01 * (corner >> 2));
        sort_and_check(&grid, &particles, 2);
        sort_and_check(&grid, &particles, 2); /* sorted already: nothing moves */
        sk_particles_free(&particles);
        sk_grid_free(&grid);
    }
}

static void random_clouds(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        sk_memory memory = {0, 0, 0};
        sk_grid grid;
        sk_particles particles;
        sk_particles_init(&particles, &memory);
        sk_particles_add_attribute(&particles, "tag", 2, 1);
        make_grid(&grid, dimension, small_cells[dimension - 2], &memory);
        static const int more[] = {1, 7, 60, 500, 3000, 4000};
        for (int n = 0; n < 6; n++) {
            add_cloud(&particles, &grid, more[n], (uint64_t)n);
            sort_and_check(&grid, &particles, 1 + n % 4);
            /* Things move, and the table of the last time must not show. */
            for (int64_t p = 0; p < particles.count; p++)
                particles.records[p].position[0] =
                    (float)(grid.high[0] + grid.low[0]) - particles.records[p].position[0];
            sort_and_check(&grid, &particles, 2);
        }
        sk_particles_free(&particles);
        sk_grid_free(&grid);
        assert_int_equal(memory.used, 0);
    }
}

/* Lone particles in the corners of blocks have four or eight times as many blocks around them as hold particles, more
 * than there was room for at first. */
static void many_lone_particles(void **state)
{
    (void)state;
    static const int cells[2][3] = {{800, 640, 1}, {160, 120, 90}};
    for (int dimension = 2; dimension <= 3; dimension++) {
        sk_grid grid;
        sk_particles particles;
        sk_particles_init(&particles, NULL);
        make_grid(&grid, dimension, cells[dimension - 2], NULL);
        int n = grid.extent[0], p = SK_GRID_PADDING;
        for (int k = n - p; k < (dimension == 3 ? grid.cells[2] : n - p + 1); k += 3 * n)
            for (int j = n - p; j < grid.cells[1]; j += 3 * n)
                for (int i = n - p; i < grid.cells[0]; i += 3 * n)
                    add_at_cell(&particles, &grid, i + 0.5, j + 0.5, k + 0.5);
        assert_true(particles.count > 64);
        sort_and_check(&grid, &particles, 2);
        assert_int_equal(grid.block_count - 1, particles.count * (dimension == 3 ? 8 : 4));
        sk_particles_free(&particles);
        sk_grid_free(&grid);
    }
}

static void the_same_bits_on_any_number_of_threads(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3, 7};
    for (int dimension = 2; dimension <= 3; dimension++) {
        sk_grid grid[4];
        sk_particles particles[4];
        for (int n = 0; n < 4; n++) {
            sk_particles_init(&particles[n], NULL);
            sk_particles_add_attribute(&particles[n], "tag", 2, 1);
            make_grid(&grid[n], dimension, small_cells[dimension - 2], NULL);
            add_cloud(&particles[n], &grid[n], 20000, 5);
            assert_int_equal(sort(&grid[n], &particles[n], threads[n], NULL), SELKIE_OK);
            if (n == 0)
                continue;
            assert_int_equal(particles[n].count, particles[0].count);
            assert_int_equal(grid[n].block_count, grid[0].block_count);
            assert_int_equal(grid[n].particle_blocks, grid[0].particle_blocks);
            size_t count = (size_t)particles[0].count, blocks = (size_t)grid[0].block_count;
            assert_memory_equal(particles[n].records, particles[0].records, count * sizeof(sk_particle));
            assert_memory_equal(particles[n].attributes[0].data, particles[0].attributes[0].data, count * 8);
            assert_memory_equal(grid[n].cell_start, grid[0].cell_start,
                                ((size_t)grid[0].particle_blocks * (size_t)grid[0].block_cells + 1) * 4);
            assert_memory_equal(grid[n].coordinates, grid[0].coordinates, blocks * sizeof *grid[0].coordinates);
            assert_memory_equal(grid[n].faces, grid[0].faces, blocks * sizeof *grid[0].faces);
            for (size_t b = 0; b < blocks; b++)
                assert_memory_equal(grid[n].neighbours[b], grid[0].neighbours[b], dimension == 3 ? 27 * 4 : 9 * 4);
        }
        for (int n = 0; n < 4; n++) {
            sk_particles_free(&particles[n]);
            sk_grid_free(&grid[n]);
        }
    }
}

/* A particle that is nowhere ends the sort with a message, not with a write outside the table; mended, it sorts again.
 */
static void lost_particles_are_an_error(void **state)
{
    (void)state;
    static const float nowhere[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 1e9f, -100.0f};
    for (int dimension = 2; dimension <= 3; dimension++)
        for (size_t n = 0; n < sizeof nowhere / sizeof *nowhere; n++)
            for (int d = 0; d < dimension; d++) {
                sk_grid grid;
                sk_particles particles;
                sk_particles_init(&particles, NULL);
                make_grid(&grid, dimension, small_cells[dimension - 2], NULL);
                add_cloud(&particles, &grid, 100, n);
                for (int p = 0; p < 30; p += 10) {
                    particles.records[p].flags = 0;
                    particles.records[p].position[d] = nowhere[n];
                }
                selkie_error error = {0};
                assert_int_equal(sort(&grid, &particles, 2, &error), SELKIE_ERROR_DIVERGED);
                assert_non_null(strstr(error.message, "3 particles are nowhere"));
                assert_int_equal(particles.count, 100);
                for (int p = 0; p < 30; p += 10)
                    particles.records[p].position[d] = (float)grid.low[d] + 0.3f;
                sort_and_check(&grid, &particles, 2);
                /* A dead one may be anywhere. */
                particles.records[0].position[d] = nowhere[n];
                particles.records[0].flags = SK_PARTICLE_DEAD;
                sort_and_check(&grid, &particles, 2);
                sk_particles_free(&particles);
                sk_grid_free(&grid);
            }
}

/* Wherever the memory ends, the sort ends with a message, and goes through once there is enough. */
static void out_of_memory_is_an_error(void **state)
{
    (void)state;
    static const int cells[2][3] = {{400, 320, 1}, {120, 80, 60}};
    for (int dimension = 2; dimension <= 3; dimension++) {
        int failures = 0;
        for (size_t room = 0; room < (16u << 20); room += room < 200000 ? 20000 : 500000) {
            sk_memory memory = {0, 0, 0};
            sk_grid grid;
            sk_particles particles;
            sk_particles_init(&particles, NULL);
            make_grid(&grid, dimension, cells[dimension - 2], &memory);
            add_at_cell(&particles, &grid, 10.5, 10.5, 10.5);
            sort_and_check(&grid, &particles, 2);
            int n = grid.extent[0], p = SK_GRID_PADDING;
            for (int k = n - p; k < (dimension == 3 ? grid.cells[2] : n - p + 1); k += 3 * n)
                for (int j = n - p; j < grid.cells[1]; j += 3 * n)
                    for (int i = n - p; i < grid.cells[0]; i += 3 * n)
                        add_at_cell(&particles, &grid, i + 0.5, j + 0.5, k + 0.5);
            memory.limit = memory.used + room;
            selkie_error error = {0};
            selkie_code code = sort(&grid, &particles, 2, &error);
            if (code != SELKIE_OK) {
                failures++;
                assert_int_equal(code, SELKIE_ERROR_MEMORY);
                assert_int_equal(error.code, SELKIE_ERROR_MEMORY);
                memory.limit = 0;
                sort_and_check(&grid, &particles, 2);
            }
            sk_particles_free(&particles);
            sk_grid_free(&grid);
            assert_int_equal(memory.used, 0);
            if (code == SELKIE_OK)
                break;
        }
        assert_true(failures > 3);
    }
}

/* Memory follows the particles: a grid of 10^15 cells with a few of them is small. */
static void a_vast_grid_is_small(void **state)
{
    (void)state;
    static const int corners[][3] = {{0, 0, 0}, {99999, 99999, 99999}, {50000, 7, 99990}, {50001, 7, 99990}};
    for (int plain = 0; plain < 2; plain++) {
        sk_grid grid;
        sk_particles particles;
        sk_memory memory = {0, 0, 16 << 20};
        selkie_error error = {0};
        const double low[3] = {0, 0, 0};
        const int vast[3] = {100000, 100000, 100000};
        assert_int_equal(sk_grid_init(&grid, 3, vast, low, 0.5, &memory, &error), SELKIE_OK);
        assert_int_equal(sk_grid_declare(&grid, 0, &error), SELKIE_OK);
        sk_particles_init(&particles, &memory);
        for (int p = 3; p >= 0; p--)
            add_at_cell(&particles, &grid, corners[p][0] + 0.5, corners[p][1] + 0.5, corners[p][2] + 0.5);
        for (int again = 0; again < 2; again++) {
            sk_particles_moved(&particles);
            assert_int_equal(plain   ? sk_grid_sort_plain_3d(&grid, &particles, 2, &error)
                             : again ? sk_grid_sort_again_3d(&grid, &particles, 2, &error)
                                     : sk_grid_sort_3d(&grid, &particles, 2, &error),
                             SELKIE_OK);
            assert_int_equal(grid.particle_blocks, 3);
            assert_int_equal(particles.records[0].id, 3); /* the first corner was added last */
            assert_int_equal(particles.records[3].id, 2);
        }
        /* A particle that flies farther than a leaver's key reaches. */
        particles.records[0].position[0] = 49000.25f;
        sk_particles_moved(&particles);
        assert_int_equal(sk_grid_sort_again_3d(&grid, &particles, 2, &error), SELKIE_OK);
        assert_int_equal(grid.particle_blocks, 3);
        assert_int_equal(slot_at(&grid, (const int32_t[3]){(98000 + SK_GRID_PADDING) / 8, 0, 0}, 0, 0, 0), 1);
        sk_particles_free(&particles);
        sk_grid_free(&grid);
        assert_int_equal(memory.used, 0);
    }
}

static void expect_same(const sk_grid *a, const sk_particles *p, const sk_grid *b, const sk_particles *q)
{
    assert_int_equal(p->count, q->count);
    assert_memory_equal(p->records, q->records, (size_t)p->count * sizeof *p->records);
    assert_memory_equal(p->attributes[0].data, q->attributes[0].data, (size_t)p->count * 8);
    assert_int_equal(a->particle_blocks, b->particle_blocks);
    assert_int_equal(a->block_count, b->block_count);
    size_t starts = (size_t)a->particle_blocks * (size_t)a->block_cells + 1;
    assert_memory_equal(a->cell_start, b->cell_start, starts * sizeof *a->cell_start);
    assert_memory_equal(a->coordinates[1], b->coordinates[1], (size_t)(a->block_count - 1) * sizeof *a->coordinates);
    for (int slot = 1; slot < a->block_count; slot++)
        assert_memory_equal(a->neighbours[slot], b->neighbours[slot], (a->dimension == 3 ? 27 : 9) * sizeof(int32_t));
    assert_memory_equal(a->faces[1], b->faces[1], (size_t)(a->block_count - 1) * sizeof *a->faces);
}

/* Sorted, moved by up to `cells` cells, and sorted again: the short way and the full one agree to the bit. Small moves
 * take the short way, large ones and dead particles do not; a particle added in between must not be lost. With a drift
 * (cells along x in each round) the particles are a drop that leaves blocks empty and comes to others. */
static void sort_again_after(int dimension, double cells, double drift, int threads, int kill, int append)
{
    const int size[3] = {70, 50, dimension == 3 ? 40 : 1};
    sk_memory memory = {0};
    sk_grid grids[2];
    sk_particles particles[2];
    for (int way = 0; way < 2; way++) {
        memset(&grids[way], 0, sizeof grids[way]);
        make_grid(&grids[way], dimension, size, &memory);
        sk_particles_init(&particles[way], &memory);
        assert_non_null(sk_particles_add_attribute(&particles[way], "tag", 2, 1));
        add_cloud(&particles[way], &grids[way], 20000, 5);
        for (int64_t p = 0; drift > 0.0 && p < particles[way].count; p++)
            for (int d = 0; d < dimension; d++) {
                float *x = &particles[way].records[p].position[d];
                *x = (float)(grids[way].low[d] + 0.3 * (*x - grids[way].low[d]));
            }
        assert_int_equal(sort(&grids[way], &particles[way], threads, NULL), SELKIE_OK);
        const int blocks_before = grids[way].particle_blocks;
        int others = 0;
        for (int round = 0; round < (drift > 0.0 ? 12 : 3); round++) {
            for (int64_t p = 0; p < particles[way].count; p++)
                for (int d = 0; d < dimension; d++) {
                    sk_particle *particle = &particles[way].records[p];
                    double move = (2.0 * sk_random_float(77, particle->id, (uint64_t)(3 * round + d)) - 1.0) * cells *
                                  grids[way].cell_size;
                    double x = particle->position[d] + move + (d == 0 ? drift * grids[way].cell_size : 0.0);
                    particle->position[d] = (float)fmin(fmax(x, grids[way].low[d]), grids[way].high[d] - 1e-3);
                }
            if (kill)
                particles[way].records[17].flags |= SK_PARTICLE_DEAD;
            if (append)
                add_at_cell(&particles[way], &grids[way], 3.5, 3.5, 3.5);
            if (way)
                assert_int_equal(sort(&grids[way], &particles[way], 1, NULL), SELKIE_OK);
            else
                assert_int_equal(sort_again(&grids[way], &particles[way], threads, NULL), SELKIE_OK);
            others |= grids[way].particle_blocks != blocks_before;
        }
        assert_true(drift == 0.0 || others);
    }
    expect_same(&grids[0], &particles[0], &grids[1], &particles[1]);
    for (int way = 0; way < 2; way++) {
        sk_particles_free(&particles[way]);
        sk_grid_free(&grids[way]);
    }
    assert_int_equal(memory.used, 0);
}

static void sorting_again_is_the_same_as_sorting(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int threads = 1; threads <= 3; threads++) {
            sort_again_after(dimension, 0.0, 0.0, threads, 0, 0);
            sort_again_after(dimension, 0.3, 0.0, threads, 0, 0);
            sort_again_after(dimension, 9.0, 0.0, threads, 0, 0);
            sort_again_after(dimension, 0.3, 0.0, threads, 1, 0);
            sort_again_after(dimension, 0.3, 0.0, threads, 0, 1);
            sort_again_after(dimension, 0.2, 1.2, threads, 0, 0);
        }
}

/* Lone particles in the middle of their blocks, all but the last of which move to a corner within: their blocks are
 * touched, and those around are new; the last one's is as it was, unless there was no room for all the new ones. Then
 * whatever the blocks held is gone with the old arrays, and every block has to count as changed. */
static void changes_are_told(int dimension, int spare)
{
    const int size[3] = {512, 512, dimension == 3 ? 32 : 1};
    static uint64_t moved[512];
    sk_memory memory = {0};
    sk_grid grid;
    sk_particles particles;
    make_grid(&grid, dimension, size, &memory);
    sk_particles_init(&particles, &memory);
    const int n = grid.extent[0], p = SK_GRID_PADDING, far = n * (size[0] / n - 3);
    for (int j = 3 * n; j <= far; j += 3 * n)
        for (int i = 3 * n; i <= far; i += 3 * n)
            add_at_cell(&particles, &grid, i + n / 2 - p + 0.5, j + n / 2 - p + 0.5, n / 2 - p + 0.5);
    if (spare)
        assert_int_equal(sk_grid_reserve_blocks(&grid, 4096, NULL), SELKIE_OK);
    assert_int_equal(sort(&grid, &particles, 2, NULL), SELKIE_OK);
    const int blocks = grid.particle_blocks;
    assert_int_equal(blocks, particles.count);
    assert_in_range(blocks, 30, 511);
    for (int b = 1; b < blocks; b++)
        for (int d = 0; d < 2; d++)
            particles.records[b - 1].position[d] -= (float)((n / 2) * grid.cell_size);
    for (int b = 1; b <= blocks; b++)
        moved[b] = b < blocks;
    grid.moved = moved;
    const size_t room = grid.block_capacity;
    assert_int_equal(sort_again(&grid, &particles, 2, NULL), SELKIE_OK);
    assert_int_equal(grid.particle_blocks, blocks);
    assert_true(grid.block_count - 1 >= 4 * (blocks - 1));
    assert_int_equal(grid.block_capacity > room, !spare);
    assert_null(grid.moved);
    for (int b = 1; b < grid.block_count; b++)
        assert_int_equal(grid.changes[b], b < blocks || !spare ? SK_BLOCK_TOUCHED | SK_BLOCK_NEAR
                                          : b == blocks        ? 0
                                                               : SK_BLOCK_NEAR);
    sk_particles_free(&particles);
    sk_grid_free(&grid);
    assert_int_equal(memory.used, 0);
}

static void sorting_again_tells_what_changed(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int spare = 0; spare < 2; spare++)
            changes_are_told(dimension, spare);
}

/* A pool in which one place, beside where blocks meet, is squeezed to twice the density, at its first correction and at
 * the one after it, which is for the blocks around that place alone. The sorts after them are told who left, or look
 * for themselves. */
static void correct_twice(step_case *c, int dimension, int told)
{
    case_begin(c, dimension, 64, 24, 16, 1.0 / 16);
    c->scene.volume = SELKIE_VOLUME_IDP;
    c->scene.liquid_count = 1;
    case_box(c, &c->liquids[0].shape, 0, 0, 0, 64, 10, 16);
    case_create(c, 1 + told, 0.01);
    for (int64_t p = 0; p < c->step->particles.count; p++) {
        float *x = c->step->particles.records[p].position;
        if (fabsf(x[0] - 0.7f) < 0.4f)
            x[0] = 0.7f + 0.5f * (x[0] - 0.7f);
    }
    case_run_through(c, "density_correct");
    sk_grid *grid = &c->step->grid;
    for (int pass = 0; pass < 2; pass++) {
        int64_t left = 0;
        int moved = 0, blocks = grid->particle_blocks;
        assert_true(sk_grid_leavers_known(grid, &c->step->particles));
        for (int b = 1; b <= blocks; b++) {
            assert_true(grid->leavers[b] >= 0);
            left += grid->leavers[b];
            moved += pass && grid->runs[SK_RUNS_MOVED][b] != 0;
        }
        assert_true(left > 0);
        assert_true(pass ? moved > 0 && moved < blocks : moved == 0);
        if (!told)
            sk_particles_moved(&c->step->particles);
        const char *const next[] = {"sort_again", "solids_again", "density", "density_classify", "density_correct"};
        for (int n = 0; n < (pass ? 2 : 5); n++) {
            selkie_error error = {0};
            assert_int_equal(case_run(c, next[n], &error), SELKIE_OK);
        }
    }
}

static void sorting_as_told_is_the_same_as_looking(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        step_case c[2];
        for (int told = 0; told < 2; told++)
            correct_twice(&c[told], dimension, told);
        const sk_grid *a = &c[0].step->grid, *b = &c[1].step->grid;
        assert_int_equal(c[0].step->particles.count, c[1].step->particles.count);
        assert_int_equal(a->particle_blocks, b->particle_blocks);
        assert_memory_equal(c[0].step->particles.records, c[1].step->particles.records,
                            (size_t)c[0].step->particles.count * sizeof(sk_particle));
        assert_memory_equal(a->cell_start, b->cell_start,
                            ((size_t)a->particle_blocks * (size_t)a->block_cells + 1) * sizeof *a->cell_start);
        assert_memory_equal(a->occupied, b->occupied, ((size_t)a->particle_blocks + 1) * sizeof *a->occupied);
        case_end(&c[0]);
        case_end(&c[1]);
    }
}

/* --- whole steps --- */

static selkie_code sort_fully(sk_step *step, selkie_error *error)
{
    return sort(&step->grid, &step->particles, step->threads, error);
}

typedef struct told_case {
    const char *name;
    selkie_method method;
    selkie_volume volume;
    int unilateral, obstacle, flow, pool;
    int steps[2]; /* in 2D, in 3D */
} told_case;

/* Two columns that meet; with a `flow` of 1 there are a source and a drain, with 2 an open side, too. Every sort of the
 * full way is a full one, and so every block counts as changed after it. */
static void make_told(step_case *c, const told_case *told, int dimension, int full)
{
    static selkie_source_def source;
    static selkie_drain_def drain;
    case_begin(c, dimension, told->pool ? 160 : 48, 40, dimension == 3 ? 8 : 1, 1.0 / 16);
    selkie_scene_set_method(&c->scene, told->method);
    c->scene.volume = told->volume;
    if (told->unilateral)
        c->scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    c->scene.liquid_count = 2;
    case_box(c, &c->liquids[0].shape, 0, 0, 0, 10, 24, 8);
    case_box(c, &c->liquids[1].shape, 38, 0, 0, 48, 24, 8);
    if (told->pool) {
        c->scene.liquid_count = 1;
        case_box(c, &c->liquids[0].shape, 0, 0, 0, 160, 20, 8);
    }
    if (told->obstacle) {
        c->scene.obstacle_count = 1;
        case_ball(c, &c->obstacles[0].shape, 16, 4, 4, 3.3);
        c->obstacles[0].velocity[0] = 0.5;
    }
    if (told->flow) {
        selkie_source_defaults(&source);
        case_box(c, &source.shape, 20, 30, 2, 26, 33, 8);
        source.velocity[1] = -2.0;
        selkie_drain_defaults(&drain);
        case_box(c, &drain.shape, 0, 0, 0, 4, 3, 8);
        source.end = 0.1; /* what it adds has all sorts be full ones, and what leaves by an open side, too */
        drain.start = 0.2;
        c->scene.source_count = c->scene.drain_count = 1;
        c->scene.sources = &source;
        c->scene.drains = &drain;
        if (told->flow > 1)
            c->scene.domain.walls[1] = SELKIE_WALL_OPEN;
    }
    c->scene.time.step = told->method == SELKIE_METHOD_SPH ? 0.004 : 0.02;
    c->scene.time.fps = 10.0;
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = 2;
    selkie_error error = {0};
    if (selkie_world_create(&c->scene, &options, &c->world, &error) != SELKIE_OK)
        fail_msg("%s: %s", told->name, error.message);
    c->step = &c->world->step;
    for (int p = 0; full && p < c->world->phase_count; p++)
        if (strncmp(c->world->phases[p].name, "sort", 4) == 0)
            c->world->phases[p].run = sort_fully;
}

/* Some particles are put elsewhere by the caller, as it may between steps; in a pool they are squeezed, so that a few
 * blocks need further corrections and most do not. */
static void put_elsewhere(step_case *c, int pool)
{
    selkie_attribute_view view;
    assert_int_equal(selkie_world_find_attribute(c->world, "position", &view, NULL), SELKIE_OK);
    const int64_t count = selkie_world_particle_count(c->world);
    for (int64_t p = 0; pool && p < count; p++) {
        float *x = (float *)((char *)view.data + (size_t)p * view.stride);
        if (fabsf(x[0] - 1.4f) < 0.4f)
            x[0] = 1.4f + 0.5f * (x[0] - 1.4f);
    }
    for (int64_t p = count / 5; !pool && p < count / 5 + 40; p++) {
        float *x = (float *)((char *)view.data + (size_t)p * view.stride);
        x[0] = 1.2f + 0.01f * (float)(p % 40);
        x[1] = 2.0f;
    }
}

static void steps_as_told_are_the_same_as_with_full_sorts(void **state)
{
    (void)state;
    static const told_case cases[] = {
        {"flip", SELKIE_METHOD_FLIP, SELKIE_VOLUME_NONE, 0, 0, 1, 0, {20, 10}},
        {"apic and idp", SELKIE_METHOD_APIC, SELKIE_VOLUME_IDP, 0, 0, 0, 0, {30, 16}},
        {"a squeezed pool", SELKIE_METHOD_FLIP, SELKIE_VOLUME_IDP, 0, 0, 0, 1, {4, 3}},
        {"idp with flow", SELKIE_METHOD_FLIP, SELKIE_VOLUME_IDP, 0, 0, 2, 0, {20, 0}},
        {"idp with an obstacle", SELKIE_METHOD_FLIP, SELKIE_VOLUME_IDP, 0, 1, 0, 0, {20, 0}},
        {"spacing", SELKIE_METHOD_FLIP, SELKIE_VOLUME_SATO, 0, 0, 0, 0, {10, 0}},
        {"unilateral", SELKIE_METHOD_FLIP, SELKIE_VOLUME_NONE, 1, 1, 2, 0, {16, 0}},
        {"sph", SELKIE_METHOD_SPH, SELKIE_VOLUME_NONE, 0, 0, 0, 0, {20, 0}},
    };
    for (int dimension = 2; dimension <= 3; dimension++)
        for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
            step_case c[2];
            const int asked = cases[n].steps[dimension - 2], steps = SANITIZED && asked > 9 ? 9 : asked;
            int most = 0;
            if (steps == 0)
                continue;
            for (int full = 0; full < 2; full++)
                make_told(&c[full], &cases[n], dimension, full);
            for (int step = 0; step < steps; step++)
                for (int full = 0; full < 2; full++) {
                    selkie_error error = {0};
                    if (step == (cases[n].pool ? 1 : 7))
                        put_elsewhere(&c[full], cases[n].pool);
                    if (selkie_world_step(c[full].world, &error) != SELKIE_OK)
                        fail_msg("%s, %dD: %s", cases[n].name, dimension, error.message);
                    if (c[full].step->density_passes > most)
                        most = c[full].step->density_passes;
                    const sk_particles *a = &c[0].step->particles, *b = &c[1].step->particles;
                    if (full && (a->count != b->count ||
                                 memcmp(a->records, b->records, (size_t)a->count * sizeof *a->records) != 0))
                        fail_msg("%s, %dD: other particles after step %d", cases[n].name, dimension, step + 1);
                }
            assert_true(most > 1 || !cases[n].pool); /* some corrections were local */
            case_end(&c[0]);
            case_end(&c[1]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_world),
        cmocka_unit_test(one_particle_anywhere),
        cmocka_unit_test(corners_of_blocks_and_of_the_domain),
        cmocka_unit_test(random_clouds),
        cmocka_unit_test(many_lone_particles),
        cmocka_unit_test(the_same_bits_on_any_number_of_threads),
        cmocka_unit_test(sorting_again_is_the_same_as_sorting),
        cmocka_unit_test(sorting_again_tells_what_changed),
        cmocka_unit_test(sorting_as_told_is_the_same_as_looking),
        cmocka_unit_test(steps_as_told_are_the_same_as_with_full_sorts),
        cmocka_unit_test(lost_particles_are_an_error),
        cmocka_unit_test(out_of_memory_is_an_error),
        cmocka_unit_test(a_vast_grid_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
