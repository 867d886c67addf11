/* The tuned transfers. See transfer.h for the scheme; the plain forms are in grid_kernels.h and the tests compare.
 *
 * To the grid, the lanes of a vector are grid nodes along x: a cell's particles touch 2x3x3 nodes of a face component, so
 * each particle is one multiply-add for each of the 9 or 6 rows, with momentum, weight and density side by side in the
 * lanes, and the sums of a cell never leave the registers. The way back is in gather_dim.c.
 */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/grid_kernels.h"
#include "grid/runs.h"
#include "grid/tile.h"
#include "grid/transfer.h"

enum {
    RIM = SK_TILE_N(1),                          /* nodes of an accumulation tile along y, z */
    PITCH = (RIM + 2 + 3) / 4 * 4,               /* and along x, so that four can be added at any of them */
    RIM_Z = SELKIE_DIM == 3 ? RIM : 1,
    TILE = PITCH * RIM * RIM_Z,
    TILE_FIELDS = 2 * SELKIE_DIM + 1             /* momentum and weight of each component, density */
};

enum {
    BATCH = 16,                          /* particles of a cell that are added up at a time */
    NZ_CENTRE = SELKIE_DIM == 3 ? 3 : 1, /* rows across z of a centred quantity */
    NZ_FACE = SELKIE_DIM == 3 ? 2 : 1
};

/* A batch of particles of one cell made ready: weights along x as vectors of nodes, products of the weights along y and z
 * as numbers to broadcast. */
typedef struct staged {
    float along_x[BATCH][8];       /* [particle]: lower and upper face, the same again, then nodes -1 0 +1 of centres, 0 */
    float across[3][9][BATCH];     /* [face along x, y, z][row j + 3 k][particle] */
    float offset[3][BATCH];        /* fraction of the cell; for affine velocities alone */
} staged;

/* Eight particles, or fewer, as numbers `at` and following of the batch. Eight lanes on any machine: most cells hold no more,
 * and twice as wide vectors would keep the additions that follow from one of their ports. */
static inline __attribute__((always_inline)) void stage(const int velocity_on, const int affine_on, const sk_particle *records,
                                                        int count, const float corner[3], float inverse, const float cell[3],
                                                        int at, staged *s)
{
    f8 r[4], centre[3][3], face[3][2];
    f8_load_columns(sk_particle_floats(records), count, r);
    for (int d = 0; d < SELKIE_DIM; d++) {
        f8 fraction = (r[d] - corner[d]) * inverse - cell[d];
        f8 offset = fraction - 0.5f;
        if (affine_on)
            f8_store(s->offset[d] + at, fraction);
        centre[d][0] = f8_max(-offset, f8_splat(0.0f));
        centre[d][2] = f8_max(offset, f8_splat(0.0f));
        centre[d][1] = 1.0f - (centre[d][0] + centre[d][2]);
        face[d][0] = 1.0f - fraction;
        face[d][1] = fraction;
    }
    if (velocity_on)
        f8_store_columns(s->along_x[at], 8, (const f8[4]){face[0][0], face[0][1], face[0][0], face[0][1]});
    f8_store_columns(s->along_x[at] + 4, 8, (const f8[4]){centre[0][0], centre[0][1], centre[0][2], f8_splat(0.0f)});
#pragma GCC unroll 3
    for (int k = 0; k < NZ_CENTRE; k++)
#pragma GCC unroll 3
        for (int j = 0; j < 3; j++) {
            f8_store(s->across[0][j + 3 * k] + at, SELKIE_DIM == 3 ? centre[1][j] * centre[SELKIE_DIM - 1][k] : centre[1][j]);
            if (velocity_on && j < 2)
                f8_store(s->across[1][j + 3 * k] + at, SELKIE_DIM == 3 ? face[1][j] * centre[SELKIE_DIM - 1][k] : face[1][j]);
            if (velocity_on && SELKIE_DIM == 3 && k < 2)
                f8_store(s->across[2][j + 3 * k] + at, centre[1][j] * face[SELKIE_DIM - 1][k]);
        }
}

/* Tile index of the first row of a component around local cell (i, j, k). */
static inline int first_node(const int d, int i, int j, int k)
{
    int x = i + (d == 0), y = j + (d == 1), z = SELKIE_DIM == 3 ? k + (d == 2) : 0;
    return x + PITCH * (y + RIM * z);
}

/* Adds one row of sums to the tiles: for the faces along x two nodes of momentum, two of weight and three of density, for
 * the others three of momentum and three of weight. */
static inline __attribute__((always_inline)) void add_row(const int d, f8 row, float density, int node, int centre_node, float *tiles)
{
    const f4 zero = {0, 0, 0, 0};
    f4 lower = __builtin_shufflevector(row, row, 0, 1, 2, 3), upper = __builtin_shufflevector(row, row, 4, 5, 6, 7);
    f4_unaligned *momentum = (f4_unaligned *)(tiles + (2 * d) * TILE + node);
    f4_unaligned *weight = (f4_unaligned *)(tiles + (2 * d + 1) * TILE + node);
    *momentum += d == 0 ? __builtin_shufflevector(lower, zero, 0, 1, 4, 5) : lower;
    *weight += d == 0 ? __builtin_shufflevector(lower, zero, 2, 3, 4, 5) : upper;
    if (d == 0)
        *(f4_unaligned *)(tiles + 2 * SELKIE_DIM * TILE + centre_node) += upper * density;
}

enum {
    ROWS_X = 3 * NZ_CENTRE,                     /* rows that the faces along x (and the centres) have around a cell */
    ROWS_Y = 2 * NZ_CENTRE,
    ROWS_Z = SELKIE_DIM == 3 ? 3 * NZ_FACE : 0,
    ROWS = ROWS_X + ROWS_Y + ROWS_Z,
/* All sums of a cell fit into 32 registers; fewer registers take the components one after the other. */
#if defined(__AVX512VL__)
    GROUPS = 1
#else
    GROUPS = SELKIE_DIM
#endif
};

/* Momentum and weight of every component and the density from the staged particles. The sums of a cell never leave the
 * registers while the particles go by. */
static inline __attribute__((always_inline)) void add_velocities(const staged *s, const sk_particle *records, int count,
                                                                 float density, const int local[3], float *tiles)
{
    const int centre_node = first_node(3, local[0], local[1], local[2]);
#pragma GCC unroll 3
    for (int group = 0; group < GROUPS; group++) {
        f8 rows[ROWS];
#pragma GCC unroll 21
        for (int row = 0; row < ROWS; row++)
            rows[row] = f8_splat(0.0f);
#pragma GCC unroll 1
        for (int p = 0; p < count; p++) {
            const float *v = records[p].velocity;
            f4 centres = *(const f4_unaligned *)(s->along_x[p] + 4);
            f8 x = f8_load(s->along_x[p]) * f8_select((i8){-1, -1, 0, 0, 0, 0, 0, 0}, f8_splat(v[0]), f8_splat(1.0f));
            f8 y = __builtin_shufflevector(centres * v[1], centres, 0, 1, 2, 3, 4, 5, 6, 7);
            f8 z = __builtin_shufflevector(centres * v[2], centres, 0, 1, 2, 3, 4, 5, 6, 7);
#pragma GCC unroll 9
            for (int row = 0; row < ROWS_X; row++)
                if (GROUPS == 1 || group == 0)
                    rows[row] += x * s->across[0][row][p];
#pragma GCC unroll 6
            for (int row = 0; row < ROWS_Y; row++)
                if (GROUPS == 1 || group == 1)
                    rows[ROWS_X + row] += y * s->across[1][row % 2 + 3 * (row / 2)][p];
#pragma GCC unroll 6
            for (int row = 0; row < ROWS_Z; row++)
                if (GROUPS == 1 || group == 2)
                    rows[ROWS_X + ROWS_Y + row] += z * s->across[2][row][p];
        }
        int node[3];
        for (int d = 0; d < 3; d++)
            node[d] = first_node(d, local[0], local[1], local[2]);
#pragma GCC unroll 9
        for (int row = 0; row < ROWS_X; row++)
            if (GROUPS == 1 || group == 0) {
                int step = PITCH * (row % 3 + RIM * (row / 3));
                add_row(0, rows[row], density, node[0] + step, centre_node + step, tiles);
            }
#pragma GCC unroll 6
        for (int row = 0; row < ROWS_Y; row++)
            if (GROUPS == 1 || group == 1)
                add_row(1, rows[ROWS_X + row], density, node[1] + PITCH * (row % 2 + RIM * (row / 2)), 0, tiles);
#pragma GCC unroll 6
        for (int row = 0; row < ROWS_Z; row++)
            if (GROUPS == 1 || group == 2)
                add_row(2, rows[ROWS_X + ROWS_Y + row], density, node[2] + PITCH * (row % 3 + RIM * (row / 3)), 0, tiles);
    }
}

/* Component d with the affine part of APIC: each node has a momentum of its own, v + C (x_node - x_particle) (Jiang et al.
 * 2015). */
static inline __attribute__((always_inline)) void add_affine_component(const int d, const staged *s, const sk_particle *records,
                                                                       const float *affine, float cell_size, int count,
                                                                       int node, float *tiles)
{
    const int ny = d == 1 ? 2 : 3, nz = d == 2 ? NZ_FACE : NZ_CENTRE;
    f8 rows[9];
    for (int row = 0; row < 9; row++)
        rows[row] = f8_splat(0.0f);
#pragma GCC unroll 1
    for (int p = 0; p < count; p++) {
        f4 x = *(const f4_unaligned *)(s->along_x[p] + (d == 0 ? 0 : 4));
        if (d == 0)
            x *= (f4){1, 1, 0, 0};
        const float *c = affine + 9 * (size_t)p + 3 * d;
        /* The part along x differs from lane to lane. */
        float first = (d == 0 ? 0.0f : -0.5f) - s->offset[0][p];
        f4 distance = {first, first + 1.0f, first + 2.0f, first + 3.0f};
        f4 momentum = x * records[p].velocity[d] + x * (distance * (c[0] * cell_size));
        f8 both = __builtin_shufflevector(momentum, x, 0, 1, 2, 3, 4, 5, 6, 7);
#pragma GCC unroll 3
        for (int k = 0; k < nz; k++)
#pragma GCC unroll 3
            for (int j = 0; j < ny; j++) {
                float slope = c[1] * ((d == 1 ? 0.0f : -0.5f) - s->offset[1][p] + (float)j);
                if (SELKIE_DIM == 3)
                    slope += c[2] * ((d == 2 ? 0.0f : -0.5f) - s->offset[2][p] + (float)k);
                f4 extra = x * (slope * cell_size);
                f8 row = both + __builtin_shufflevector(extra, (f4){0, 0, 0, 0}, 0, 1, 2, 3, 4, 5, 6, 7);
                rows[j + 3 * k] += row * s->across[d][j + 3 * k][p];
            }
    }
    float *momentum = tiles + (2 * d) * TILE + node, *weight = tiles + (2 * d + 1) * TILE + node;
#pragma GCC unroll 3
    for (int k = 0; k < nz; k++)
#pragma GCC unroll 3
        for (int j = 0; j < ny; j++) {
            f8 row = rows[j + 3 * k];
            *(f4_unaligned *)(momentum + PITCH * (j + RIM * k)) += __builtin_shufflevector(row, row, 0, 1, 2, 3);
            *(f4_unaligned *)(weight + PITCH * (j + RIM * k)) += __builtin_shufflevector(row, row, 4, 5, 6, 7);
        }
}

static inline __attribute__((always_inline)) void add_density(const staged *s, int count, float density, int node, float *tiles)
{
    f4 rows[9];
    for (int row = 0; row < 9; row++)
        rows[row] = (f4){0, 0, 0, 0};
#pragma GCC unroll 1
    for (int p = 0; p < count; p++) {
        f4 x = *(const f4_unaligned *)(s->along_x[p] + 4);
#pragma GCC unroll 9
        for (int row = 0; row < 3 * NZ_CENTRE; row++)
            rows[row] += x * s->across[0][row][p];
    }
    float *target = tiles + 2 * SELKIE_DIM * TILE + node;
#pragma GCC unroll 9
    for (int row = 0; row < 3 * NZ_CENTRE; row++)
        *(f4_unaligned *)(target + PITCH * (row % 3 + RIM * (row / 3))) += rows[row] * density;
}

static inline __attribute__((always_inline)) void add_cell(const int velocity_on, const int affine_on, const sk_particle *records,
                                                           const float *affine, int count, const float corner[3],
                                                           float inverse, float cell_size, const float cell[3],
                                                           const int local[3], float density, float *tiles)
{
    staged s;
    for (int begin = 0; begin < count; begin += BATCH) {
        int n = count - begin < BATCH ? count - begin : BATCH;
        const sk_particle *batch = records + begin;
        const float *c = affine_on ? affine + 9 * (size_t)begin : NULL;
        stage(velocity_on, affine_on, batch, n < 8 ? n : 8, corner, inverse, cell, 0, &s);
        if (n > 8)
            stage(velocity_on, affine_on, batch + 8, n - 8, corner, inverse, cell, 8, &s);
        /* The compiler would rather keep all of it in registers and shuffle; broadcasts from memory are cheaper. */
        __asm__ __volatile__("" : "+m"(s));
        if (velocity_on && !affine_on) {
            add_velocities(&s, batch, n, density, local, tiles);
            continue;
        }
        if (affine_on) {
            add_affine_component(0, &s, batch, c, cell_size, n, first_node(0, local[0], local[1], local[2]), tiles);
            add_affine_component(1, &s, batch, c, cell_size, n, first_node(1, local[0], local[1], local[2]), tiles);
#if SELKIE_DIM == 3
            add_affine_component(2, &s, batch, c, cell_size, n, first_node(2, local[0], local[1], local[2]), tiles);
#endif
        }
        add_density(&s, n, density, first_node(3, local[0], local[1], local[2]), tiles);
    }
}

static inline __attribute__((always_inline)) void add_block(const int velocity_on, const int affine_on, const sk_grid *grid,
                                                            const sk_particles *particles, const float *affine, int block,
                                                            float density, const uint8_t *left_out)
{
    const float inverse = (float)(1.0 / grid->cell_size), cell_size = (float)grid->cell_size;
    const float corner[3] = {(float)grid->corner[0], (float)grid->corner[1], (float)grid->corner[2]};
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    float *tiles = grid->tiles + (size_t)(block - 1) * TILE_FIELDS * TILE;
    if (velocity_on)
        memset(tiles, 0, TILE_FIELDS * TILE * sizeof *tiles);
    else
        memset(tiles + 2 * SELKIE_DIM * TILE, 0, TILE * sizeof *tiles);
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        uint32_t begin = start[c], end = start[c + 1];
        if (begin == end || (left_out && left_out[c]))
            continue;
        int local[3] = {c & SK_BLOCK_MASK, c >> SK_BLOCK_LOG & SK_BLOCK_MASK, c >> (2 * SK_BLOCK_LOG)};
        float cell[3];
        for (int d = 0; d < 3; d++)
            cell[d] = (float)(grid->coordinates[block][d] * grid->extent[d] + local[d]);
        add_cell(velocity_on, affine_on, particles->records + begin, affine_on ? affine + 9 * (size_t)begin : NULL, (int)(end - begin),
                 corner, inverse, cell_size, cell, local, density, tiles);
    }
}

/* Tiles of the three blocks along x whose rows run through a block's rows, on one side of it along y and z. */
typedef struct tile_row {
    const float *left, *middle, *right;
    int any; /* is there one of them at all? */
} tile_row;

static const float no_tile[TILE]; /* zeros, where there is no block */

static const float *tile_of(const sk_grid *grid, int block, int n, int field)
{
    int other = grid->neighbours[block][n];
    if (other == 0 || other > grid->particle_blocks)
        return no_tile;
    return grid->tiles + ((size_t)(other - 1) * TILE_FIELDS + (size_t)field) * TILE;
}

/* One row of a block from tiles along x: all of the middle one, the last node of the left and the first of the right. */
static inline __attribute__((always_inline)) void add_tile_row(const tile_row *tiles, int at, f8 sums[SK_BLOCK_N / 8])
{
    const i8 first = {-1, 0, 0, 0, 0, 0, 0, 0}, last = {0, 0, 0, 0, 0, 0, 0, -1};
    for (int v = 0; v < SK_BLOCK_N / 8; v++)
        sums[v] += f8_load(tiles->middle + at + 1 + 8 * v);
    sums[0] += (f8)((i8)f8_splat(tiles->left[at + SK_BLOCK_N + 1]) & first);
    sums[SK_BLOCK_N / 8 - 1] += (f8)((i8)f8_splat(tiles->right[at]) & last);
}

/* Sums one field of a block: its own tile and the rims of its neighbours', row by row, in an order that depends on nothing
 * else. Zero but in the rows that particles reach. */
static void collect(const sk_grid *grid, int block, int field, uint64_t reached, float *sums)
{
    enum { SIDES_Z = SELKIE_DIM == 3 ? 3 : 1, ROW_RUNS = SK_BLOCK_N / 8 };
    tile_row rows[SIDES_Z][3];
    for (int z = 0; z < SIDES_Z; z++)
        for (int y = 0; y < 3; y++) {
            int n = 3 * (y + 3 * z);
            tile_row row = {tile_of(grid, block, n, field), tile_of(grid, block, n + 1, field), tile_of(grid, block, n + 2, field), 0};
            row.any = row.left != no_tile || row.middle != no_tile || row.right != no_tile;
            rows[z][y] = row;
        }
    if (reached != SK_ALL_RUNS)
        memset(sums, 0, SK_BLOCK_CELLS * sizeof *sums);
    if (ROW_RUNS == 2) /* both halves of a row go together */
        reached = (reached | reached >> 1) & 0x55555555u;
    SK_EACH_RUN(c, reached) {
        const int j = c >> SK_BLOCK_LOG & SK_BLOCK_MASK, k = c >> 2 * SK_BLOCK_LOG;
        f8 total[ROW_RUNS];
        for (int v = 0; v < ROW_RUNS; v++)
            total[v] = f8_splat(0.0f);
        for (int z = 0; z < SIDES_Z; z++) {
            /* A side counts where the row lies at the block's edge; 1 is the middle in 3D, and all there is in 2D. */
            if (SELKIE_DIM == 3 && ((z == 0 && k > 0) || (z == 2 && k < SK_BLOCK_N - 1)))
                continue;
            int plane = SELKIE_DIM == 2 ? 0 : z == 0 ? SK_BLOCK_N + 1 : z == 2 ? 0 : k + 1;
            if (j == 0 && rows[z][0].any)
                add_tile_row(&rows[z][0], PITCH * (SK_BLOCK_N + 1 + RIM * plane), total);
            if (rows[z][1].any)
                add_tile_row(&rows[z][1], PITCH * (j + 1 + RIM * plane), total);
            if (j == SK_BLOCK_N - 1 && rows[z][2].any)
                add_tile_row(&rows[z][2], PITCH * RIM * plane, total);
        }
        for (int v = 0; v < ROW_RUNS; v++)
            f8_store(sums + c + 8 * v, total[v]);
    }
}

/* Runs of a block that kernels of particles reach. */
static uint64_t find_reached(const sk_grid *grid, int block)
{
    return grid->runs[SK_RUNS_REACHED][block] = sk_runs_around(grid, grid->occupied, grid->particle_blocks + 1, block);
}

static selkie_code reserve_tiles(sk_grid *grid, selkie_error *error)
{
    size_t values = (size_t)grid->particle_blocks * TILE_FIELDS * TILE;
    if (values <= grid->tile_capacity)
        return SELKIE_OK;
    sk_release(grid->memory, grid->tiles);
    grid->tile_capacity = 0;
    grid->tiles = NULL;
    return sk_reserve(grid->memory, (void **)&grid->tiles, &grid->tile_capacity, values + values / 8, sizeof(float),
                      "particles to grid", error);
}

selkie_code SK_DIM(sk_transfer_density)(sk_grid *grid, const sk_particles *particles, const sk_transfer_options *options,
                                        selkie_error *error)
{
    SK_TRY(reserve_tiles(grid, error));
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 2)
    for (int b = 1; b <= grid->particle_blocks; b++) {
        if (options->only_changes && !(grid->changes[b] & SK_BLOCK_TOUCHED))
            continue;
        const uint8_t *left_out = options->left_out ? options->left_out + (size_t)options->left_out_slot[b] * SK_BLOCK_CELLS : NULL;
        add_block(0, 0, grid, particles, NULL, b, options->density_per_particle, left_out);
    }
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 8)
    for (int b = 1; b < grid->block_count; b++)
        if (!options->only_changes || grid->changes[b] & SK_BLOCK_NEAR)
            collect(grid, b, 2 * SELKIE_DIM, find_reached(grid, b), grid->fields[SK_FIELD_DENSITY] + (size_t)b * SK_BLOCK_CELLS);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_transfer_to_grid)(sk_grid *grid, const sk_particles *particles, const sk_transfer_options *options,
                                        selkie_error *error)
{
    const sk_attribute *affine = options->kind == SK_TRANSFER_APIC ? sk_particles_find_attribute(particles, "affine") : NULL;
    SK_TRY(reserve_tiles(grid, error));
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 2)
    for (int b = 1; b <= grid->particle_blocks; b++) {
        if (affine)
            add_block(1, 1, grid, particles, (const float *)affine->data, b, options->density_per_particle, NULL);
        else
            add_block(1, 0, grid, particles, NULL, b, options->density_per_particle, NULL);
    }
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
    for (int b = 1; b < grid->block_count; b++) {
        size_t base = (size_t)b * SK_BLOCK_CELLS;
        float momentum[SK_BLOCK_CELLS], weight[SK_BLOCK_CELLS];
        const uint64_t reached = find_reached(grid, b);
        for (int d = 0; d < SELKIE_DIM; d++) {
            float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d] + base, *change = grid->fields[SK_FIELD_CHANGE_X + d] + base;
            collect(grid, b, 2 * d, reached, momentum);
            collect(grid, b, 2 * d + 1, reached, weight);
            for (int c = 0; c < SK_BLOCK_CELLS; c++)
                velocity[c] = change[c] = weight[c] > 0.0f ? momentum[c] / weight[c] : __builtin_nanf("");
            float *face_density = grid->unilateral ? grid->fields[SK_FIELD_FACE_DENSITY_X + d] + base : NULL;
            for (int c = 0; face_density && c < SK_BLOCK_CELLS; c++)
                face_density[c] = weight[c] * options->density_per_particle;
        }
        collect(grid, b, 2 * SELKIE_DIM, reached, grid->fields[SK_FIELD_DENSITY] + base);
    }
    return SELKIE_OK;
}
