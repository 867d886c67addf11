/* The tuned particle-to-grid transfer. transfer.h describes the scheme. transfer_plain_dim.c has the plain forms, and
 * tests/unit/test_backend_grid.c compares both.
 *
 * The lanes of a vector are neighbouring cells. Step n adds the n-th particle of each cell. A cell's particles touch
 * 2x3x3 nodes of a face component, at the same offsets from the cell. So each lane has one sum for each of these
 * nodes. Sums of different lanes meet only when they are added to the tile. gather_dim.c has the transfer to the
 * particles.
 */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/deal.h"
#include "grid/grid_kernels.h"
#include "grid/runs.h"
#include "grid/tile.h"
#include "grid/transfer.h"

enum {
    RIM = SK_TILE_N(1),            /* nodes of an accumulation tile along y, z */
    PITCH = (RIM + 2 + 3) / 4 * 4, /* and along x, so that twelve can be added from each run's first node on */
    RIM_Z = SELKIE_DIM == 3 ? RIM : 1,
    TILE = PITCH * RIM * RIM_Z,
    TILE_FIELDS = 2 * SELKIE_DIM + 1, /* momentum and weight of each component, density */
    MASS_FIELD = TILE_FIELDS,         /* mass of the first component, if particles differ in mass */
    MASS_TILE_FIELDS = TILE_FIELDS + SELKIE_DIM
};

enum {
    DEPTH = SK_PARTICLES_BEYOND,         /* particles of each cell that are staged at a time */
    AHEAD = 64,                          /* prefetch distance, particles before the first one of the next cells */
    NZ_CENTRE = SELKIE_DIM == 3 ? 3 : 1, /* rows across z of a centred quantity */
    NZ_FACE = SELKIE_DIM == 3 ? 2 : 1,
    ROWS_X = 3 * NZ_CENTRE, /* rows of nodes around a cell, for faces along x and for centres */
    ROWS_Y = 2 * NZ_CENTRE,
    ROWS_Z = SELKIE_DIM == 3 ? 3 * NZ_FACE : 0,
/* Rows whose sums stay in registers in the loop over particles: at most three sums each. */
#if SK_WIDE == 16
    ROWS_AT_ONCE = 9
#else
    ROWS_AT_ONCE = 3
#endif
};

/* One particle of each of SK_WIDE cells, staged: weights of the nodes along x, weights of the rows, and carried
 * values. Lanes of cells without further particles have row weights of zero. */
typedef struct staged {
    fw face[2], centre[3]; /* along x */
    fw across_x[ROWS_X], across_y[ROWS_Y],
        across_z[ROWS_Z + 1]; /* [row j + ny k] of the components; across_x also serves the centres */
    fw velocity[3];           /* m/s; APIC: at the cell's lower corner; times the mass if masses differ */
    fw slope[3][3];           /* m/s a cell; APIC alone; times the mass if masses differ */
    fw mass;                  /* relative to a particle of the reference density; if masses differ */
} staged;

/* Properties of the materials that a transfer uses. */
typedef struct material_table {
    const uint32_t *of_particle;           /* [particles] */
    float mass[SK_TRANSFER_MATERIALS];     /* relative to a particle of the reference density */
    int32_t counts[SK_TRANSFER_MATERIALS]; /* -1 = its particles count, 0 = they do not */
    int differ;                            /* do materials that count differ in mass? */
    float one_mass;                        /* of all that count if they do not differ */
} material_table;

/* What all cells of a transfer share. */
typedef struct transfer_source {
    const sk_particle *records;
    const float *affine;                 /* APIC alone */
    const material_table *materials;     /* NULL, a constant once inlined, if all particles have one mass and count */
    int masses;                          /* do particles differ in mass? A constant once inlined */
    float corner[3], inverse, cell_size; /* m, 1/m, m */
    float density;                       /* of a particle in a cell, over the rest density */
} transfer_source;

/* The current cells. */
typedef struct cell_batch {
    int c;           /* the first of them in the block */
    iw begin, count; /* their particles */
    int most;        /* particles in the fullest cell */
    uint32_t next;   /* about the first particle of the next cells */
    uint32_t some;   /* a valid particle number */
    fw first[3];     /* cell of the grid */
} cell_batch;

/* Weights of the nodes around a particle along one axis, from its position in the cell. */
static inline __attribute__((always_inline)) void weights_along(fw fraction, fw face[2], fw centre[3])
{
    const fw offset = fraction - 0.5f;
    face[0] = 1.0f - fraction;
    face[1] = fraction;
    centre[0] = fw_max(-offset, fw_splat(0.0f));
    centre[2] = fw_max(offset, fw_splat(0.0f));
    centre[1] = 1.0f - (centre[0] + centre[2]);
}

/* The particles of each cell that are staged together. */
typedef struct staged_part {
    uint32_t first[SK_WIDE]; /* the first of them */
    int begin;               /* its number in the cell */
} staged_part;

/* Stages the n-th particle of a part. */
static inline __attribute__((always_inline)) void stage(const int velocity_on, const int affine_on,
                                                        const transfer_source *from, const cell_batch *cells,
                                                        const staged_part *part, int n, staged *s)
{
    const material_table *materials = from->materials;
    const sk_particle *records = from->records;
    const uint32_t *first = part->first;

    /* Sixteen read streams are too many for the hardware prefetcher. */
    for (int l = 0; l < SK_WIDE; l += 2)
        __builtin_prefetch(records + cells->next + (part->begin + n) * SK_WIDE + l);
    iw present = part->begin + n < cells->count;
    if (materials) {
        fw mass;
        iw counts;
        for (int l = 0; l < SK_WIDE; l++) {
            const uint32_t m = materials->of_particle[(size_t)first[l] + (size_t)n] % SK_TRANSFER_MATERIALS;
            mass[l] = from->masses ? materials->mass[m] : 1.0f;
            counts[l] = materials->counts[m];
        }
        s->mass = mass;
        present &= counts;
    }

    /* Weights of the nodes along each axis. */
    fw front[4], back[4], fraction[3], face[3][2], centre[3][3];
    fw_load_rows(sk_particle_floats(records + n), first, front);
    if (velocity_on)
        fw_load_rows(sk_particle_floats(records + n) + 4, first, back);
#pragma GCC unroll 3
    for (int d = 0; d < SELKIE_DIM; d++) {
        /* Lanes without a particle read beyond their cell: the value is masked. */
        fraction[d] = (fw)((iw)((front[d] - from->corner[d]) * from->inverse - cells->first[d]) & present);
        weights_along(fraction[d], face[d], centre[d]);
    }
    /* The weights along the last axis mask lanes without a particle. */
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) {
        centre[SELKIE_DIM - 1][i] = (fw)((iw)centre[SELKIE_DIM - 1][i] & present);
        if (i < 2)
            face[SELKIE_DIM - 1][i] = (fw)((iw)face[SELKIE_DIM - 1][i] & present);
    }

    /* Weights along x and of the rows across it. */
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++)
        s->centre[i] = centre[0][i];
#pragma GCC unroll 3
    for (int k = 0; k < NZ_CENTRE; k++)
#pragma GCC unroll 3
        for (int j = 0; j < 3; j++) {
            s->across_x[j + 3 * k] = SELKIE_DIM == 3 ? centre[1][j] * centre[SELKIE_DIM - 1][k] : centre[1][j];
            if (velocity_on && j < 2)
                s->across_y[j + 2 * k] = SELKIE_DIM == 3 ? face[1][j] * centre[SELKIE_DIM - 1][k] : face[1][j];
            if (velocity_on && SELKIE_DIM == 3 && k < 2)
                s->across_z[j + 3 * k] = centre[1][j] * face[SELKIE_DIM - 1][k];
        }

    /* Velocities; with APIC at the cell's lower corner, and their slopes. */
    if (!velocity_on)
        return;
    s->face[0] = face[0][0];
    s->face[1] = face[0][1];
    s->velocity[0] = (fw)((iw)front[3] & present);
    s->velocity[1] = (fw)((iw)back[0] & present);
    s->velocity[2] = (fw)((iw)back[1] & present);
    if (from->masses && !affine_on)
        for (int d = 0; d < SELKIE_DIM; d++)
            s->velocity[d] *= s->mass;
    if (!affine_on)
        return;
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int e = 0; e < SELKIE_DIM; e++) {
            fw c;
            for (int l = 0; l < SK_WIDE; l++)
                c[l] = from->affine[9 * ((size_t)first[l] + (size_t)n) + (size_t)(3 * d + e)];
            s->slope[d][e] = (fw)((iw)(c * from->cell_size) & present);
            s->velocity[d] -= s->slope[d][e] * fraction[e];
        }
    if (!from->masses)
        return;
    for (int d = 0; d < SELKIE_DIM; d++) {
        s->velocity[d] *= s->mass;
        for (int e = 0; e < SELKIE_DIM; e++)
            s->slope[d][e] *= s->mass;
    }
}

/* First nodes of a component in a tile, around each run of the cells. */
typedef struct runs_at {
    int node[SK_WIDE / 8];
} runs_at;

static inline runs_at first_nodes(const int d, int c)
{
    runs_at at;
    for (int r = 0; r < SK_WIDE / 8; r++) {
        const int cell = c + 8 * r;
        const int x = (cell & SK_BLOCK_MASK) + (d == 0), y = (cell >> SK_BLOCK_LOG & SK_BLOCK_MASK) + (d == 1);
        at.node[r] = x + PITCH * (y + RIM * (SELKIE_DIM == 3 ? (cell >> (2 * SK_BLOCK_LOG)) + (d == 2) : 0));
    }
    return at;
}

enum what { WEIGHT, MASS, MOMENTUM, AFFINE_MOMENTUM };

/* The sums of run r for the nodes n further along x, shifted to those nodes. Rows are combined in registers: a load at
 * another offset than the last store would stall. */
static inline __attribute__((always_inline)) f16 moved(fw a, const int r, const int n)
{
    const fw zero = fw_splat(0.0f);
    enum { Z = SK_WIDE };
    if (n == 0)
        return r ? __builtin_shufflevector(a, zero, Z - 8, Z - 7, Z - 6, Z - 5, Z - 4, Z - 3, Z - 2, Z - 1, Z, Z, Z, Z,
                                           Z, Z, Z, Z)
                 : __builtin_shufflevector(a, zero, 0, 1, 2, 3, 4, 5, 6, 7, Z, Z, Z, Z, Z, Z, Z, Z);
    if (n == 1)
        return r ? __builtin_shufflevector(a, zero, Z, Z - 8, Z - 7, Z - 6, Z - 5, Z - 4, Z - 3, Z - 2, Z - 1, Z, Z, Z,
                                           Z, Z, Z, Z)
                 : __builtin_shufflevector(a, zero, Z, 0, 1, 2, 3, 4, 5, 6, 7, Z, Z, Z, Z, Z, Z, Z);
    return r ? __builtin_shufflevector(a, zero, Z, Z, Z - 8, Z - 7, Z - 6, Z - 5, Z - 4, Z - 3, Z - 2, Z - 1, Z, Z, Z,
                                       Z, Z, Z)
             : __builtin_shufflevector(a, zero, Z, Z, 0, 1, 2, 3, 4, 5, 6, 7, Z, Z, Z, Z, Z, Z);
}

/* Sums one quantity of component d (3: the centres) over the cells' particles, and adds the sums to the tile. */
static inline __attribute__((always_inline)) void add_sums(const int d, const enum what what, const staged *s,
                                                           int depth, float scale, const runs_at *at, float *tile)
{
    const int along = d == 0 ? 2 : 3, ny = d == 1 ? 2 : 3, rows = d == 1 ? ROWS_Y : d == 2 ? ROWS_Z : ROWS_X;
    fw sums[9][3];

    /* Sum a few rows at a time, so that the sums stay in registers. */
#pragma GCC unroll 3
    for (int first = 0; first < rows; first += ROWS_AT_ONCE) {
        const int end = first + ROWS_AT_ONCE < rows ? first + ROWS_AT_ONCE : rows;
        fw part[ROWS_AT_ONCE][3];
#pragma GCC unroll 9
        for (int row = first; row < end; row++)
#pragma GCC unroll 3
            for (int i = 0; i < along; i++)
                part[row - first][i] = fw_splat(0.0f);

#pragma GCC unroll 1
        for (int n = 0; n < depth; n++) {
            const staged *p = s + n;
            fw x[3], carried[3];

            /* The quantity times the weight along x. */
#pragma GCC unroll 3
            for (int i = 0; i < along; i++) {
                x[i] = d == 0 ? p->face[i] : p->centre[i];
                carried[i] = x[i];
                if (what == MASS)
                    carried[i] = x[i] * p->mass;
                if (what == MOMENTUM)
                    carried[i] = x[i] * p->velocity[d];
                if (what == AFFINE_MOMENTUM)
                    carried[i] = x[i] * (p->velocity[d] + p->slope[d][0] * ((d == 0 ? 0.0f : -0.5f) + (float)i));
            }

            /* Times the weight across x of each row. */
#pragma GCC unroll 9
            for (int row = first; row < end; row++) {
                const fw across = d == 1 ? p->across_y[row] : d == 2 ? p->across_z[row] : p->across_x[row];
                fw tilt = fw_splat(0.0f);
                if (what == AFFINE_MOMENTUM) {
                    tilt = p->slope[d][1] * ((d == 1 ? 0.0f : -0.5f) + (float)(row % ny));
                    if (SELKIE_DIM == 3)
                        tilt += p->slope[d][2] * ((d == 2 ? 0.0f : -0.5f) + (float)(row / ny));
                }
#pragma GCC unroll 3
                for (int i = 0; i < along; i++)
                    part[row - first][i] += across * (what == AFFINE_MOMENTUM ? carried[i] + x[i] * tilt : carried[i]);
            }
        }
#pragma GCC unroll 9
        for (int row = first; row < end; row++)
#pragma GCC unroll 3
            for (int i = 0; i < along; i++)
                sums[row][i] = part[row - first][i];
    }

    /* Add the sums to the tile, eight cells along x at a time. */
    float *base[SK_WIDE / 8];
    for (int r = 0; r < SK_WIDE / 8; r++) {
        base[r] = tile + at->node[r];
        __asm__("" : "+r"(base[r])); /* otherwise the compiler keeps and spills dozens of addresses */
    }
#pragma GCC unroll 9
    for (int row = 0; row < rows; row++)
#pragma GCC unroll 2
        for (int r = 0; r < SK_WIDE / 8; r++) {
            float *to = base[r] + PITCH * (row % ny + RIM * (row / ny));
            const f16 sum = along == 2
                                ? moved(sums[row][0], r, 0) + moved(sums[row][1], r, 1)
                                : moved(sums[row][0], r, 0) + moved(sums[row][1], r, 1) + moved(sums[row][2], r, 2);
            f8 lower = __builtin_shufflevector(sum, sum, 0, 1, 2, 3, 4, 5, 6, 7);
            f4 upper = __builtin_shufflevector(sum, sum, 8, 9, 10, 11);
            f8_store(to, f8_load(to) + (d == 3 ? lower * scale : lower));
            f4_store(to + 8, f4_load(to + 8) + (d == 3 ? upper * scale : upper));
        }
}

/* Adds the particles of some cells to the tiles of their block. */
static inline __attribute__((always_inline)) void add_cells(const int velocity_on, const int affine_on,
                                                            const transfer_source *from, const cell_batch *cells,
                                                            float *tiles)
{
    const enum what what = affine_on ? AFFINE_MOMENTUM : MOMENTUM;
    const int c = cells->c;
    staged s[DEPTH];
    for (int begin = 0; begin < cells->most; begin += DEPTH) {
        const int depth = cells->most - begin < DEPTH ? cells->most - begin : DEPTH;
        /* Stages the offsets of the records in memory once per batch. Extracting them from a register, or reading them
         * just after the store, would stall. Cells without particles read some valid particle. */
        const iw number = cells->begin + begin, here = begin < cells->count;
        const iw chosen = (here & number) | (~here & (int32_t)cells->some);
        staged_part part = {.begin = begin};
        memcpy(part.first, &chosen, sizeof part.first);
        __asm__ __volatile__("" : "+m"(part.first));
        for (int n = 0; n < depth; n++)
            stage(velocity_on, affine_on, from, cells, &part, n, s + n);

        /* Momentum and weight of each component, then the masses if they differ, then the density. */
        runs_at at;
        if (velocity_on) {
            at = first_nodes(0, c);
            add_sums(0, what, s, depth, 1.0f, &at, tiles);
            add_sums(0, WEIGHT, s, depth, 1.0f, &at, tiles + TILE);
            at = first_nodes(1, c);
            add_sums(1, what, s, depth, 1.0f, &at, tiles + 2 * TILE);
            add_sums(1, WEIGHT, s, depth, 1.0f, &at, tiles + 3 * TILE);
#if SELKIE_DIM == 3
            at = first_nodes(2, c);
            add_sums(2, what, s, depth, 1.0f, &at, tiles + 4 * TILE);
            add_sums(2, WEIGHT, s, depth, 1.0f, &at, tiles + 5 * TILE);
#endif
        }
        if (velocity_on && from->masses) {
            at = first_nodes(0, c);
            add_sums(0, MASS, s, depth, 1.0f, &at, tiles + MASS_FIELD * TILE);
            at = first_nodes(1, c);
            add_sums(1, MASS, s, depth, 1.0f, &at, tiles + (MASS_FIELD + 1) * TILE);
#if SELKIE_DIM == 3
            at = first_nodes(2, c);
            add_sums(2, MASS, s, depth, 1.0f, &at, tiles + (MASS_FIELD + 2) * TILE);
#endif
        }
        at = first_nodes(3, c);
        add_sums(3, WEIGHT, s, depth, from->density, &at, tiles + 2 * SELKIE_DIM * TILE);
    }
}

/* The source with other materials: constants remove their code. */
static inline __attribute__((always_inline)) transfer_source
source_of(const transfer_source *shared, const material_table *materials, const int masses)
{
    transfer_source from = *shared;
    from.materials = materials;
    from.masses = masses;
    return from;
}

/* Clears some rows of a block's tiles. Other rows are not read. */
static void clear_rows(const sk_tile_rows *rows, int fields, float *tiles)
{
    const f4 zero = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int f = 0; f < fields; f++)
        SK_EACH_TILE_ROW(j, k, rows)
        {
            float *row = tiles + (size_t)f * TILE + PITCH * (j + RIM * k);
#pragma GCC unroll 5
            for (int i = 0; i < PITCH; i += 4)
                f4_store(row + i, zero);
        }
}

/* Runs of a block with particles that count. `whole`: do all of its particles count? */
static uint64_t find_counted(const sk_grid *grid, const material_table *materials, int block, int *whole)
{
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS, *of = materials->of_particle;
    uint64_t runs = 0;
    uint32_t other = 0;
    *whole = 0;
    if (start[0] == start[SK_BLOCK_CELLS])
        return 0;

    /* Most blocks hold one material. */
    for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS]; p++)
        other |= of[p] ^ of[start[0]];
    if (!other) {
        *whole = materials->counts[of[start[0]] % SK_TRANSFER_MATERIALS] != 0;
        return *whole ? grid->occupied[block] : 0;
    }
    SK_EACH_RUN(c, grid->occupied[block])
    {
        int32_t counts = 0;
        for (uint32_t p = start[c]; p < start[c + 8] && !counts; p++)
            counts = materials->counts[of[p] % SK_TRANSFER_MATERIALS];
        runs |= counts ? UINT64_C(1) << c / 8 : 0;
    }
    return runs;
}

/* Fills the tiles of a block from the particles of the runs `occupied`. The cells marked in `left_out` (NULL: none) do
 * not count. */
static inline __attribute__((always_inline)) void add_block(const int velocity_on, const int affine_on,
                                                            const material_table *materials, const int masses,
                                                            const sk_grid *grid, const transfer_source *shared,
                                                            int block, uint64_t occupied, const uint8_t *left_out)
{
    enum { BATCH_RUNS = SK_WIDE > 8 ? SK_WIDE / 8 : 1 };
    const transfer_source from = source_of(shared, materials, masses);
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    const size_t fields = velocity_on && masses ? MASS_TILE_FIELDS : TILE_FIELDS;
    float *tiles = grid->tiles + (size_t)(block - 1) * fields * TILE;

    /* Clear the rows that the particles reach; without velocity, only those of the density. */
    const sk_tile_rows rows = sk_tile_rows_around(occupied);
    clear_rows(&rows, velocity_on ? (int)fields : 1, velocity_on ? tiles : tiles + 2 * SELKIE_DIM * TILE);

    /* Process batches of cells, one cell per lane. */
    for (int c = 0; c < SK_BLOCK_CELLS; c += SK_WIDE) {
        if (start[c] == start[c + SK_WIDE] || !(occupied >> c / 8 & ((1u << BATCH_RUNS) - 1)))
            continue;
        cell_batch cells = {.c = c, .some = start[c]};
        iw end;
        memcpy(&cells.begin, start + c, sizeof cells.begin);
        memcpy(&end, start + c + 1, sizeof end);
        cells.count = end - cells.begin;
        if (left_out)
            cells.count &= iw_from_bytes(left_out + c) == 0;
        cells.most = iw_largest(cells.count);

        /* Coordinates of the cells, then their sums. */
        const iw cell = (iw){SK_WIDE_LANES} + c;
        const iw local[3] = {cell & SK_BLOCK_MASK, cell >> SK_BLOCK_LOG & SK_BLOCK_MASK, cell >> (2 * SK_BLOCK_LOG)};
        for (int d = 0; d < SELKIE_DIM; d++)
            cells.first[d] = fw_from_iw(local[d] + grid->coordinates[block][d] * grid->extent[d]);
        cells.next = start[c + SK_WIDE] + AHEAD;
        add_cells(velocity_on, affine_on, &from, &cells, tiles);
    }
}

enum { SIDES_Z = SELKIE_DIM == 3 ? 3 : 1, ROW_RUNS = SK_BLOCK_N / 8 };

/* The tiles of a block: those of its first field, and the rows that hold sums. */
typedef struct tile_view {
    const float *tiles;
    sk_tile_rows rows;
} tile_view;

/* The blocks around a block that have particles, NULL where there are none. */
typedef struct tiles_around {
    tile_view views[SIDES_Z][3][3]; /* [z][y][x] */
    int any[SIDES_Z][3];            /* does one of three along x exist? */
} tiles_around;

static const float no_tile[TILE]; /* zeros, where there are no sums */

/* A block has `fields` tiles, of the particles in the runs `occupied` (of all blocks). */
static void find_tiles_around(const sk_grid *grid, int block, int fields, const uint64_t *occupied,
                              tiles_around *around)
{
    for (int z = 0; z < SIDES_Z; z++)
        for (int y = 0; y < 3; y++) {
            around->any[z][y] = 0;
            for (int x = 0; x < 3; x++) {
                tile_view *view = &around->views[z][y][x];
                const int other = grid->neighbours[block][x + 3 * (y + 3 * z)];
                const int exists = other > 0 && other <= grid->particle_blocks && occupied[other];
                view->tiles = exists ? grid->tiles + (size_t)(other - 1) * (size_t)fields * TILE : no_tile;
                view->rows = sk_tile_rows_around(exists ? occupied[other] : 0);
                around->any[z][y] |= exists;
            }
        }
}

/* Row j of plane k of a tile, for the first of some fields, and the distance to that of the next field. Zeros if the
 * tile holds no sums there. */
typedef struct tile_row {
    const float *values;
    size_t next;
} tile_row;

static inline __attribute__((always_inline)) tile_row row_of(const tile_view *view, int field, int j, int k)
{
    const int summed = view->rows.needed[k] >> j & 1;
    return (tile_row){summed ? view->tiles + field * TILE + PITCH * (j + RIM * k) : no_tile, summed ? TILE : 0};
}

enum { MOST_ROWS = SELKIE_DIM == 3 ? 4 : 2 }; /* of three tiles along x, which meet in a row of cells */

/* Sums `count` fields from field `first` on of the row of cells that begins with cell c: its own tile, and the halos of
 * its neighbours' if the row lies at an edge of the block, in a fixed order. The rows are found once for all fields. */
static inline __attribute__((always_inline)) void sum_row(const tiles_around *around, const int first, const int count,
                                                          int c, float sums[][SK_BLOCK_N])
{
    const int j = c >> SK_BLOCK_LOG & SK_BLOCK_MASK, k = c >> 2 * SK_BLOCK_LOG;
    const i8 lowest = {-1, 0, 0, 0, 0, 0, 0, 0}, highest = {0, 0, 0, 0, 0, 0, 0, -1};
    tile_row rows[MOST_ROWS][3];
    int found = 0;
    for (int z = 0; z < SIDES_Z; z++) {
        /* A side counts if the row lies at the block's edge. 1 is the middle in 3D, and the only plane in 2D. */
        if (SELKIE_DIM == 3 && ((z == 0 && k > 0) || (z == 2 && k < SK_BLOCK_N - 1)))
            continue;
        const int plane = SELKIE_DIM == 2 ? 0 : z == 0 ? SK_BLOCK_N + 1 : z == 2 ? 0 : k + 1;
        for (int y = j == 0 ? 0 : 1; y < (j == SK_BLOCK_N - 1 ? 3 : 2); y++) {
            if (!around->any[z][y])
                continue;
            for (int x = 0; x < 3; x++)
                rows[found][x] = row_of(&around->views[z][y][x], first,
                                        y == 0   ? SK_BLOCK_N + 1
                                        : y == 2 ? 0
                                                 : j + 1,
                                        plane);
            found++;
        }
    }
    for (int f = 0; f < count; f++) {
        f8 total[ROW_RUNS];
        for (int v = 0; v < ROW_RUNS; v++)
            total[v] = f8_splat(0.0f);
        /* All of the middle tile, the last node of the left one, the first of the right one. */
        for (int n = 0; n < found; n++) {
            const float *middle = rows[n][1].values + (size_t)f * rows[n][1].next;
            const float left = rows[n][0].values[(size_t)f * rows[n][0].next + SK_BLOCK_N + 1],
                        right = rows[n][2].values[(size_t)f * rows[n][2].next];
            for (int v = 0; v < ROW_RUNS; v++)
                total[v] += f8_load(middle + 1 + 8 * v);
            total[0] += (f8)((i8)f8_splat(left) & lowest);
            total[ROW_RUNS - 1] += (f8)((i8)f8_splat(right) & highest);
        }
        for (int v = 0; v < ROW_RUNS; v++)
            f8_store(sums[f] + 8 * v, total[v]);
    }
}

/* Runs that stand for the rows of cells with a run of a mask. */
static inline uint64_t rows_of_runs(uint64_t runs)
{
    return ROW_RUNS == 2 ? (runs | runs >> 1) & 0x55555555u : runs;
}

/* Sums one field of a block. Rows that no particle reaches are zero. */
static void collect(const tiles_around *around, const int field, uint64_t reached, float *sums)
{
    if (reached != SK_ALL_RUNS)
        memset(sums, 0, SK_BLOCK_CELLS * sizeof *sums);
    SK_EACH_RUN(c, rows_of_runs(reached))
    sum_row(around, field, 1, c, (float(*)[SK_BLOCK_N])(sums + c));
}

/* Runs of a block that kernels of particles reach. */
static uint64_t find_reached(const sk_grid *grid, int block)
{
    const sk_run_masks occupied = {grid->occupied, grid->occupied_first, grid->occupied_last,
                                   grid->particle_blocks + 1};
    return grid->runs[SK_RUNS_REACHED][block] = sk_runs_around(grid, occupied, block);
}

/* The runs of blocks with particles that count lie behind the tiles. */
static uint64_t *counted_runs(const sk_grid *grid, int fields)
{
    return (uint64_t *)(void *)(grid->tiles + (size_t)grid->particle_blocks * (size_t)fields * TILE);
}

static selkie_code reserve_tiles(sk_grid *grid, int fields, selkie_error *error)
{
    size_t values = (size_t)grid->particle_blocks * ((size_t)fields * TILE + 2) + 2;
    if (values <= grid->tile_capacity)
        return SELKIE_OK;
    sk_release(grid->memory, grid->tiles);
    grid->tile_capacity = 0;
    grid->tiles = NULL;
    return sk_reserve(grid->memory, (void **)&grid->tiles, &grid->tile_capacity, values + values / 8, sizeof(float),
                      "particles to grid", error);
}

/* The table of materials, if the options have one and particles have a material. */
static const material_table *look_up_materials(const sk_particles *particles, const sk_transfer_options *options,
                                               material_table *table)
{
    const sk_attribute *attribute = sk_particles_find_attribute(particles, "material");
    if (!attribute || (!options->relative_density && !options->material_mask))
        return NULL;
    table->of_particle = attribute->data;
    for (int m = 0; m < SK_TRANSFER_MATERIALS; m++) {
        table->mass[m] = options->relative_density ? options->relative_density[m] : 1.0f;
        table->counts[m] = !options->material_mask || options->material_mask[m] ? -1 : 0;
    }
    int counted = 0;
    table->differ = 0;
    table->one_mass = 1.0f;
    for (int m = 0; m < SK_TRANSFER_MATERIALS; m++)
        if (table->counts[m]) {
            table->differ |= counted++ && table->mass[m] != table->one_mass;
            table->one_mass = table->mass[m];
        }
    return table;
}

/* What all blocks share, without materials. */
static transfer_source shared_source(const sk_grid *grid, const sk_particles *particles, const float *affine,
                                     float density)
{
    return (transfer_source){.records = particles->records,
                             .affine = affine,
                             .corner = {(float)grid->corner[0], (float)grid->corner[1], (float)grid->corner[2]},
                             .inverse = (float)(1.0 / grid->cell_size),
                             .cell_size = (float)grid->cell_size,
                             .density = density};
}

selkie_code SK_DIM(sk_transfer_density)(sk_grid *grid, const sk_particles *particles,
                                        const sk_transfer_options *options, selkie_error *error)
{
    SK_TRY(reserve_tiles(grid, TILE_FIELDS, error));
    material_table table;
    const material_table *materials = options->material_mask ? look_up_materials(particles, options, &table) : NULL;
    const transfer_source from = shared_source(grid, particles, NULL, options->density_per_particle);
    sk_deal deal;
    sk_deal_particle_blocks(&deal, grid, options->threads);
#pragma omp parallel num_threads(options->threads)
    SK_EACH_DEALT(b, &deal)
    {
        if (options->only_changes && !(grid->changes[b] & SK_BLOCK_TOUCHED))
            continue;
        const uint8_t *left_out =
            options->left_out ? options->left_out + (size_t)options->left_out_slot[b] * SK_BLOCK_CELLS : NULL;
        if (materials)
            add_block(0, 0, &table, 0, grid, &from, b, grid->occupied[b], left_out);
        else
            add_block(0, 0, NULL, 0, grid, &from, b, grid->occupied[b], left_out);
    }
    sk_deal_blocks(&deal, grid, options->threads);
#pragma omp parallel num_threads(options->threads)
    SK_EACH_DEALT(b, &deal)
    if (!options->only_changes || grid->changes[b] & SK_BLOCK_NEAR) {
        tiles_around around;
        find_tiles_around(grid, b, TILE_FIELDS, grid->occupied, &around);
        collect(&around, 2 * SELKIE_DIM, find_reached(grid, b),
                grid->fields[SK_FIELD_DENSITY] + (size_t)b * SK_BLOCK_CELLS);
    }
    return SELKIE_OK;
}

/* Where the sums of a block go. */
typedef struct face_fields {
    float *velocity[SELKIE_DIM], *change[SELKIE_DIM], *volume;
    float *lightness[SELKIE_DIM], *density[SELKIE_DIM]; /* NULL without them */
    float density_per_particle, mass;                   /* mass: of all particles, if they do not differ */
} face_fields;

static face_fields fields_of(const sk_grid *grid, int b, float density_per_particle, float mass)
{
    const size_t base = (size_t)b * SK_BLOCK_CELLS;
    face_fields to = {
        .volume = grid->fields[SK_FIELD_DENSITY] + base, .density_per_particle = density_per_particle, .mass = mass};
    for (int d = 0; d < SELKIE_DIM; d++) {
        to.velocity[d] = grid->fields[SK_FIELD_VELOCITY_X + d] + base;
        to.change[d] = grid->fields[SK_FIELD_CHANGE_X + d] + base;
        to.lightness[d] = grid->fields[SK_FIELD_LIGHTNESS_X] ? grid->fields[SK_FIELD_LIGHTNESS_X + d] + base : NULL;
        to.density[d] = grid->fields[SK_FIELD_FACE_DENSITY_X] ? grid->fields[SK_FIELD_FACE_DENSITY_X + d] + base : NULL;
    }
    return to;
}

/* The faces of a row of cells: means over the particles by weight. */
static inline __attribute__((always_inline)) void faces_by_weight(const face_fields *to, int c,
                                                                  float sums[][SK_BLOCK_N])
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float *momentum = sums[2 * d], *weight = sums[2 * d + 1];
        float *velocity = to->velocity[d] + c, *change = to->change[d] + c;
        for (int i = 0; i < SK_BLOCK_N; i++)
            velocity[i] = change[i] = weight[i] > 0.0f ? momentum[i] / weight[i] : __builtin_nanf("");
        for (int i = 0; to->lightness[d] && i < SK_BLOCK_N; i++)
            to->lightness[d][c + i] = weight[i] > 0.0f ? 1.0f / to->mass : 1.0f;
        for (int i = 0; to->density[d] && i < SK_BLOCK_N; i++)
            to->density[d][c + i] = weight[i] * to->density_per_particle;
    }
}

/* Means by mass, and the lightness of the face's liquid: volume over mass, that is 1 / density. */
static inline __attribute__((always_inline)) void faces_by_mass(const face_fields *to, int c, float sums[][SK_BLOCK_N])
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float *momentum = sums[2 * d], *volume = sums[2 * d + 1], *mass = sums[MASS_FIELD + d];
        float *velocity = to->velocity[d] + c, *change = to->change[d] + c;
        for (int i = 0; i < SK_BLOCK_N; i++)
            velocity[i] = change[i] = mass[i] > 0.0f ? momentum[i] / mass[i] : __builtin_nanf("");
        for (int i = 0; to->lightness[d] && i < SK_BLOCK_N; i++)
            to->lightness[d][c + i] = mass[i] > 0.0f ? volume[i] / mass[i] : 1.0f;
        for (int i = 0; to->density[d] && i < SK_BLOCK_N; i++)
            to->density[d][c + i] = volume[i] * to->density_per_particle;
    }
}

/* Combines the tiles around a block into its fields. `differ`, a constant at each call: the particles differ in mass.
 * Rows that no particle reaches have their values already. */
static inline __attribute__((always_inline)) void combine_rows(const tiles_around *around, const int differ,
                                                               uint64_t reached, const face_fields *to)
{
    float sums[MASS_TILE_FIELDS][SK_BLOCK_N];
    SK_EACH_RUN(c, rows_of_runs(reached))
    {
        sum_row(around, 0, differ ? MASS_TILE_FIELDS : TILE_FIELDS, c, sums);
        if (differ)
            faces_by_mass(to, c, sums);
        else
            faces_by_weight(to, c, sums);
        memcpy(to->volume + c, sums[2 * SELKIE_DIM], sizeof sums[0]);
    }
}

/* Faces of a block that no particle reaches. */
static void faces_of_none(const sk_grid *grid, int b)
{
    const size_t base = (size_t)b * SK_BLOCK_CELLS;
    for (int d = 0; d < SELKIE_DIM; d++) {
        float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d] + base,
              *change = grid->fields[SK_FIELD_CHANGE_X + d] + base;
        for (int c = 0; c < SK_BLOCK_CELLS; c++)
            velocity[c] = change[c] = __builtin_nanf("");
        float *lightness = grid->fields[SK_FIELD_LIGHTNESS_X] ? grid->fields[SK_FIELD_LIGHTNESS_X + d] + base : NULL;
        for (int c = 0; lightness && c < SK_BLOCK_CELLS; c++)
            lightness[c] = 1.0f;
        if (grid->fields[SK_FIELD_FACE_DENSITY_X])
            memset(grid->fields[SK_FIELD_FACE_DENSITY_X + d] + base, 0, SK_BLOCK_CELLS * sizeof(float));
    }
}

/* Sums the particles of a block into its tiles. `whole`: all of them count. */
static void add_velocities(const sk_grid *grid, const transfer_source *from, const material_table *materials, int whole,
                           int b, uint64_t occupied)
{
    const int affine = from->affine != NULL;
    if (materials && materials->differ) {
        if (affine)
            add_block(1, 1, materials, 1, grid, from, b, occupied, NULL);
        else
            add_block(1, 0, materials, 1, grid, from, b, occupied, NULL);
    } else if (materials && !whole) {
        if (affine)
            add_block(1, 1, materials, 0, grid, from, b, occupied, NULL);
        else
            add_block(1, 0, materials, 0, grid, from, b, occupied, NULL);
    } else if (affine)
        add_block(1, 1, NULL, 0, grid, from, b, occupied, NULL);
    else
        add_block(1, 0, NULL, 0, grid, from, b, occupied, NULL);
}

selkie_code SK_DIM(sk_transfer_to_grid)(sk_grid *grid, const sk_particles *particles,
                                        const sk_transfer_options *options, selkie_error *error)
{
    const sk_attribute *affine =
        options->kind == SK_TRANSFER_APIC ? sk_particles_find_attribute(particles, "affine") : NULL;
    const float density = options->density_per_particle;
    const transfer_source from = shared_source(grid, particles, affine ? (const float *)affine->data : NULL, density);
    material_table table;
    const material_table *materials = look_up_materials(particles, options, &table);
    const int differ = materials && materials->differ, fields = differ ? MASS_TILE_FIELDS : TILE_FIELDS;
    SK_TRY(reserve_tiles(grid, fields, error));

    /* A mask often leaves out whole blocks: bodies in much liquid, or much liquid beside bodies. */
    const int masked = materials && options->material_mask;
    uint64_t *counted = counted_runs(grid, fields);
    const uint64_t *occupied = masked ? counted : grid->occupied;
    counted[0] = 0;

    /* Sum the particles of each block into its tiles. */
    sk_deal deal;
    sk_deal_particle_blocks(&deal, grid, options->threads);
#pragma omp parallel num_threads(options->threads)
    SK_EACH_DEALT(b, &deal)
    {
        int whole = 1;
        if (masked)
            counted[b] = find_counted(grid, &table, b, &whole);
        if (occupied[b])
            add_velocities(grid, &from, materials, whole, b, occupied[b]);
    }

    /* Combine the tiles and their halos into the fields. */
    sk_deal_blocks(&deal, grid, options->threads);
#pragma omp parallel num_threads(options->threads)
    SK_EACH_DEALT(b, &deal)
    {
        const uint64_t all = find_reached(grid, b);
        const uint64_t reached =
            masked ? sk_runs_around(grid, sk_whole_runs(counted, grid->particle_blocks + 1), b) : all;
        float *volume = grid->fields[SK_FIELD_DENSITY] + (size_t)b * SK_BLOCK_CELLS;
        tiles_around around;
        if (options->reached_blocks)
            options->reached_blocks[b] = reached != 0;
        if (!reached && options->reached_blocks)
            continue;
        if (reached != SK_ALL_RUNS) {
            faces_of_none(grid, b);
            memset(volume, 0, SK_BLOCK_CELLS * sizeof *volume);
        }
        if (!reached)
            continue;
        find_tiles_around(grid, b, fields, occupied, &around);
        const face_fields to = fields_of(grid, b, density, materials ? materials->one_mass : 1.0f);
        if (differ)
            combine_rows(&around, 1, reached, &to);
        else
            combine_rows(&around, 0, reached, &to);
    }
    return SELKIE_OK;
}
