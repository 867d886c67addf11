/* The cell sort as a counting sort, one particle at a time: the plain form of sort_dim.c and sort_again_dim.c.
 *
 * (1) Each particle computes its block and its cell. (2) Blocks with particles get slots. (3) Particles
 * are counted by cell, and prefix sums give the first particle of each cell. (4) In their old order, particles take
 * the next place of their cell. The sort is stable, so that the result has the bits of the tuned sorts.
 */
#include "base/dimension.h"
#include "grid/plain_forms.h"
#include "particles/sort_kernels.h"
#include "particles/sort_parts.h"

enum {
    BEYOND = SK_PARTICLES_BEYOND /* the tuned sort after small moves reads and writes whole batches of cell keys */
};
static const uint32_t no_place = UINT32_MAX; /* of dead particles and particles outside the grid */

/* Pass 1: keys get the numbers of the blocks in the grid's first list. */
static selkie_code find_places(sk_grid *grid, const sk_particles *particles, int64_t *lost, selkie_error *error)
{
    SK_TRY(SK_DIM(sk_sort_clear_lists)(grid, 1, error));
    sk_block_list *list = &grid->lists[0];
    const float inverse = (float)(1.0 / grid->cell_size);
    const float corner[3] = {(float)grid->corner[0], (float)grid->corner[1], (float)grid->corner[2]};
    *lost = 0;
    for (int64_t p = 0; p < particles->count; p++) {
        const sk_particle *particle = &particles->records[p];
        unsigned cell;
        int block[3];
        const int inside = sk_place_of_position(particle->position, corner, inverse, grid->blocks, block, &cell);
        const int dead = (particle->flags & SK_PARTICLE_DEAD) != 0;
        *lost += !inside && !dead;
        grid->keys[p] = no_place;
        grid->cell_keys[p] = (uint16_t)cell;
        if (!inside || dead)
            continue;
        const uint64_t key = sk_block_key(block[0], block[1], block[2]);
        if (!sk_block_find(&list->table, key))
            SK_TRY(sk_block_list_add(list, grid->memory, key, error));
        grid->keys[p] = (uint32_t)sk_block_find(&list->table, key);
    }
    return SELKIE_OK;
}

/* Number of a particle's cell, counted over the blocks with particles. */
static size_t cell_of(const sk_grid *grid, int64_t p)
{
    return (size_t)(grid->lists[0].slots[grid->keys[p] - 1] - 1) * SK_BLOCK_CELLS + grid->cell_keys[p];
}

/* Passes 3 and 4: cell_start, and in `order` the source of each place. Returns the number of live particles. */
static uint32_t order_particles(sk_grid *grid, int64_t count)
{
    const size_t cells = (size_t)grid->particle_blocks * SK_BLOCK_CELLS;
    uint32_t *next = grid->next_start, total = 0;
    memset(next, 0, cells * sizeof *next);
    for (int64_t p = 0; p < count; p++)
        if (grid->keys[p] != no_place)
            next[cell_of(grid, p)]++;
    for (size_t c = 0; c < cells; c++) {
        const uint32_t here = next[c];
        grid->cell_start[c] = next[c] = total;
        total += here;
    }
    grid->cell_start[cells] = total;
    for (int64_t p = 0; p < count; p++)
        if (grid->keys[p] != no_place)
            grid->order[next[cell_of(grid, p)]++] = (uint32_t)p;
    return total;
}

static void move_particles(const sk_grid *grid, sk_particles *particles, uint32_t living, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static)
    for (uint32_t p = 0; p < living; p++)
        move_record(particles, grid->order[p], p);
    particles->count = living;
    sk_particles_swap(particles);
    particles->in_order = 1;
}

/* Runs of a block with particles, and the neighbours that these reach, one bit each. */
static uint32_t find_reach(sk_grid *grid, int block)
{
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    uint32_t reach = 0;
    grid->occupied[block] = grid->occupied_first[block] = grid->occupied_last[block] = 0;
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        if (start[c] == start[c + 1])
            continue;
        const uint64_t run = UINT64_C(1) << (c / 8);
        const int along = c & SK_BLOCK_MASK;
        grid->occupied[block] |= run;
        grid->occupied_first[block] |= along == 0 ? run : 0;
        grid->occupied_last[block] |= along == SK_BLOCK_N - 1 ? run : 0;
        for (int n = 0; n < SK_NEIGHBOURS; n++)
            reach |= (uint32_t)sk_cell_reaches(c, n) << n;
    }
    return reach;
}

static selkie_code reserve(sk_grid *grid, size_t count, selkie_error *error)
{
    sk_memory *memory = grid->memory;
    const char *what = "cell sort";
    SK_TRY(sk_reserve(memory, (void **)&grid->keys, &grid->key_capacity, count, sizeof *grid->keys, what, error));
    SK_TRY(sk_reserve(memory, (void **)&grid->cell_keys, &grid->cell_key_capacity, count + BEYOND,
                      sizeof *grid->cell_keys, what, error));
    return sk_reserve(memory, (void **)&grid->order, &grid->order_capacity, count, sizeof *grid->order, what, error);
}

/* Pass 2, and memory for the next passes. */
static selkie_code find_blocks(sk_grid *grid, selkie_error *error)
{
    const char *what = "cell sort";
    const sk_block_list *list = &grid->lists[0];
    size_t listed;
    SK_TRY(SK_DIM(sk_sort_join_lists)(grid, 1, &listed, error));
    SK_TRY(SK_DIM(sk_sort_assign_blocks)(grid, listed, error));
    for (size_t i = 0; i < listed; i++)
        list->slots[i] = sk_block_find(&grid->table, list->keys[i]);

    const size_t blocks = (size_t)grid->particle_blocks, starts = blocks * SK_BLOCK_CELLS + 1;
    SK_TRY(sk_reserve(grid->memory, (void **)&grid->cell_start, &grid->cell_start_capacity, starts,
                      sizeof *grid->cell_start, what, error));
    SK_TRY(sk_reserve(grid->memory, (void **)&grid->next_start, &grid->next_start_capacity, starts,
                      sizeof *grid->next_start, what, error));
    SK_TRY(sk_reserve(grid->memory, (void **)&grid->histogram, &grid->histogram_capacity, blocks + 1,
                      sizeof *grid->histogram, what, error));
    return reserve_occupied(grid, blocks, error);
}

static selkie_code sort_particles(sk_grid *grid, sk_particles *particles, int threads, selkie_error *error)
{
    const int64_t count = particles->count;
    SK_TRY(reserve(grid, (size_t)count, error));
    int64_t lost;
    SK_TRY(find_places(grid, particles, &lost, error));
    SK_TRY(find_blocks(grid, error));
    if (lost)
        return sk_fail(error, SELKIE_ERROR_DIVERGED,
                       "%lld particles are nowhere (position not a number, or far outside the domain): the simulation "
                       "blew up; try a smaller time.step or time.cfl",
                       (long long)lost);

    move_particles(grid, particles, order_particles(grid, count), threads);

    /* Blocks around those with particles, and the table of neighbours. */
    uint32_t *reach = grid->histogram; /* [particle_blocks + 1] */
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int b = 1; b <= grid->particle_blocks; b++)
        reach[b] = find_reach(grid, b);
    SK_TRY(SK_DIM(sk_sort_assign_surroundings)(grid, reach, threads, error));
    sk_sort_all_changed(grid);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_grid_sort_plain)(sk_grid *grid, sk_particles *particles, int threads, selkie_error *error)
{
    sk_grid_wrap_particles(grid, particles, threads);
    return SK_DIM(sk_sort_settle)(grid, particles, sort_particles(grid, particles, threads, error));
}
