#include "grid/grid.h"

#include <math.h>
#include <string.h>

#include "grid/grid_kernels.h"

static void grid_shape(int dimension, const int cells[3], int padding[3], int extent[3], int blocks[3])
{
    for (int d = 0; d < 3; d++) {
        int flat = d >= dimension;
        extent[d] = flat ? 1 : dimension == 2 ? 16 : 8;
        padding[d] = flat ? 0 : SK_GRID_PADDING;
        /* At least two cells beyond the upper corner as well. */
        blocks[d] = flat ? 1 : (cells[d] + SK_GRID_PADDING + 2 + extent[d] - 1) / extent[d];
    }
}

selkie_code sk_grid_init(sk_grid *grid, int dimension, const int cells[3], const double low[3], double cell_size,
                         sk_memory *memory, selkie_error *error)
{
    memset(grid, 0, sizeof *grid);
    grid->memory = memory;
    grid->dimension = dimension;
    grid->block_log = dimension == 2 ? 4 : 3;
    grid->cell_size = cell_size;
    grid_shape(dimension, cells, grid->padding, grid->extent, grid->blocks);
    grid->block_cells = grid->extent[0] * grid->extent[1] * grid->extent[2];
    for (int d = 0; d < 3; d++) {
        grid->cells[d] = cells[d];
        grid->low[d] = low[d];
        grid->high[d] = low[d] + cells[d] * cell_size;
        grid->corner[d] = low[d] - grid->padding[d] * cell_size;
    }
    grid->declared = SK_FIELDS_LIQUID;
    SK_TRY(sk_block_table_reserve(&grid->table, memory, 128, error));
    return sk_grid_reserve_blocks(grid, 64, error);
}

void sk_grid_join_sides(sk_grid *grid, int axes)
{
    const float inverse = (float)(1.0 / grid->cell_size);
    for (int d = 0; d < grid->dimension; d++) {
        if (!(axes >> d & 1))
            continue;
        const float corner = (float)grid->low[d];
        grid->periodic |= 1 << d;
        grid->padding[d] = 0;
        grid->corner[d] = grid->low[d];
        grid->blocks[d] = grid->cells[d] / grid->extent[d];
        grid->period[d] = (float)(grid->high[d] - grid->low[d]);

        /* As the sort finds the cell of a particle. */
        grid->last[d] = (float)grid->high[d];
        while (!(sk_cell_coordinate(grid->last[d], corner, inverse) < (float)grid->cells[d]))
            grid->last[d] = nextafterf(grid->last[d], corner);
    }
}

void sk_grid_wrap_particles(const sk_grid *grid, sk_particles *particles, int threads)
{
    (void)threads; /* in builds without OpenMP */
    if (!grid->periodic)
        return;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t p = 0; p < particles->count; p++)
        sk_grid_wrap(grid, particles->records[p].position);
}

static void free_blocks(sk_grid *grid)
{
    sk_release(grid->memory, grid->coordinates);
    sk_release(grid->memory, grid->neighbours);
    sk_release(grid->memory, grid->faces);
    sk_release(grid->memory, grid->kinds);
    sk_release(grid->memory, grid->block_flags);
    sk_release(grid->memory, grid->changes);
    for (int r = 0; r < SK_RUNS_COUNT; r++) {
        sk_release(grid->memory, grid->runs[r]);
        grid->runs[r] = NULL;
    }
    grid->coordinates = NULL, grid->neighbours = NULL, grid->faces = NULL, grid->kinds = NULL;
    grid->block_flags = NULL, grid->changes = NULL;
    grid->moved = NULL; /* it may point into the runs */
    sk_release(grid->memory, grid->field_room);
    grid->field_room = NULL;
    memset(grid->fields, 0, sizeof grid->fields);
    grid->block_capacity = 0;
}

void sk_grid_free(sk_grid *grid)
{
    free_blocks(grid);
    sk_block_table_free(&grid->table, grid->memory);
    for (int l = 0; l < grid->list_count; l++)
        sk_block_list_free(&grid->lists[l], grid->memory);
    sk_release(grid->memory, grid->lists);
    sk_release(grid->memory, grid->sorted_blocks);
    sk_release(grid->memory, grid->cell_start);
    sk_release(grid->memory, grid->keys);
    sk_release(grid->memory, grid->cell_keys);
    sk_release(grid->memory, grid->order);
    sk_release(grid->memory, grid->order_cells);
    sk_release(grid->memory, grid->histogram);
    sk_release(grid->memory, grid->arrivals);
    sk_release(grid->memory, grid->next_start);
    sk_release(grid->memory, grid->tiles);
    sk_release(grid->memory, grid->occupied);
    sk_release(grid->memory, grid->leavers);
    memset(grid, 0, sizeof *grid);
}

/* 2D has no third component. */
static int field_exists(const sk_grid *grid, int field)
{
    if (!(grid->declared >> field & 1))
        return 0;
    const sk_field_def *def = field < SK_FIELD_COUNT ? sk_field_info(field) : &grid->added[field - SK_FIELD_COUNT];
    return def->axis < grid->dimension;
}

selkie_code sk_grid_declare(sk_grid *grid, uint64_t fields, selkie_error *error)
{
    free_blocks(grid);
    grid->declared = fields;
    return sk_grid_reserve_blocks(grid, 64, error);
}

int sk_grid_add_field(sk_grid *grid, const sk_field_def *def, selkie_error *error)
{
    if (grid->added_count == SK_FIELD_LIMIT - SK_FIELD_COUNT) {
        sk_fail(error, SELKIE_ERROR_INTERNAL, "the grid has no room for a field \"%s\"", def->name);
        return -1;
    }
    int field = SK_FIELD_COUNT + grid->added_count;
    grid->added[grid->added_count++] = *def;
    return sk_grid_declare(grid, grid->declared | SK_FIELD_BIT(field), error) == SELKIE_OK ? field : -1;
}

selkie_code sk_grid_reserve_leavers(sk_grid *grid, selkie_error *error)
{
    return sk_reserve(grid->memory, (void **)&grid->leavers, &grid->leaver_capacity, (size_t)grid->particle_blocks + 1,
                      sizeof *grid->leavers, "cell sort", error);
}

/* One piece of memory for all fields: together they are large enough for huge pages. Without these, the blocks around a
 * block in some ten fields miss the TLB. The distance between fields is no multiple of a page, because the same cell of
 * all fields would then compete for the same lines of the cache. */
static int allocate_fields(sk_grid *grid, size_t capacity)
{
    enum { apart = 5 * 64 / sizeof(float) };
    const size_t values = capacity * (size_t)grid->block_cells + apart;
    size_t count = 0;
    for (int f = 0; f < SK_FIELD_LIMIT; f++)
        count += (size_t)field_exists(grid, f);
    grid->field_room = sk_allocate(grid->memory, count * values * sizeof(float));
    float *next = grid->field_room;
    for (int f = 0; next && f < SK_FIELD_LIMIT; f++)
        if (field_exists(grid, f)) {
            grid->fields[f] = next;
            next += values;
        }
    return next != NULL;
}

selkie_code sk_grid_reserve_blocks(sk_grid *grid, size_t count, selkie_error *error)
{
    if (count <= grid->block_capacity)
        return SELKIE_OK;
    size_t capacity = count + count / 4;
    sk_memory *memory = grid->memory;

    /* The old arrays are freed first: each step writes their content anew. */
    free_blocks(grid);

    /* Allocate the arrays of the blocks, and the fields that the grid has. */
    size_t cells = (size_t)grid->block_cells;
    grid->coordinates = sk_allocate(memory, capacity * sizeof *grid->coordinates);
    grid->neighbours = sk_allocate(memory, capacity * sizeof *grid->neighbours);
    grid->faces = sk_allocate(memory, capacity * sizeof *grid->faces);
    grid->kinds = sk_allocate(memory, capacity * cells);
    grid->block_flags = sk_allocate(memory, capacity);
    grid->changes = sk_allocate(memory, capacity);
    int ok = grid->coordinates && grid->neighbours && grid->faces && grid->kinds && grid->block_flags && grid->changes;
    for (int r = 0; ok && r < SK_RUNS_COUNT; r++)
        ok = (grid->runs[r] = sk_allocate(memory, capacity * sizeof(uint64_t))) != NULL;
    if (!ok || !allocate_fields(grid, capacity))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%zu blocks of %zu cells need %.1f MiB, which are not available",
                       count, cells, (double)capacity * (double)cells * SK_FIELD_COUNT * 4 / 1048576.0);

    /* Slot 0 is the shared empty block. */
    grid->block_capacity = capacity;
    memset(grid->coordinates, 0, sizeof *grid->coordinates);
    memset(grid->neighbours, 0, sizeof *grid->neighbours);
    memset(grid->faces, 0, sizeof *grid->faces);
    memset(grid->kinds, 0, cells);
    grid->block_flags[0] = grid->changes[0] = 0;
    for (int r = 0; r < SK_RUNS_COUNT; r++)
        grid->runs[r][0] = 0;
    for (int f = 0; f < SK_FIELD_LIMIT; f++) {
        if (!grid->fields[f])
            continue;
        const float empty = f < SK_FIELD_COUNT ? sk_field_info(f)->empty : grid->added[f - SK_FIELD_COUNT].empty;
        for (size_t c = 0; c < cells; c++)
            grid->fields[f][c] = empty;
    }
    grid->block_count = 1;
    grid->particle_blocks = 0;
    return SELKIE_OK;
}
