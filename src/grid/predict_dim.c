/* See predict.h. As in the transfers, each block sums its particles in a tile. The halo of the tile is as wide as
 * particles may move. Each block then adds its neighbours' halos in a fixed order. */
#include "grid/predict.h"

#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/deal.h"
#include "grid/sweep.h"
#include "grid/tile.h"

enum {
    REACH = 4, /* cells of the halo; a whole number of vectors, so that rows of tiles and blocks align alike */
    WIDTH = SK_TILE_N(REACH),
    TILE = SK_TILE_VALUES(REACH),
    CORNERS = 1 << SELKIE_DIM
};

typedef struct frame {
    const sk_grid *grid;
    const sk_predict_options *options;
    float corner[3], inverse, cell_size;
    float low[3], high[3]; /* m  range of positions within closed walls */
    int32_t *needed;       /* [block_count] see find_needed */
} frame;

static void frame_of(const sk_grid *grid, const sk_predict_options *options, frame *f)
{
    f->grid = grid;
    f->options = options;
    f->inverse = (float)(1.0 / grid->cell_size);
    f->cell_size = (float)grid->cell_size;
    for (int d = 0; d < 3; d++) {
        const selkie_wall *walls = options->solids->walls + 2 * d;
        double gap = 1e-3 * grid->cell_size; /* as in the advection */
        f->corner[d] = (float)grid->corner[d];
        f->low[d] = walls[0] == SELKIE_WALL_OPEN ? -INFINITY : (float)(grid->low[d] + gap);
        f->high[d] = walls[1] == SELKIE_WALL_OPEN ? INFINITY : (float)(grid->high[d] - gap);
    }
}

/* Motion of a block's particles in metres, as three numbers a face and axis. `at` is the motion at the centre of the
 * lower face. `slope` is added in proportion towards the upper face: velocity is linear. `jump` is added from the
 * middle of the cell on: a shift is constant around its face, as in sk_transfer_displace(). */
typedef struct motion {
    float at[SELKIE_DIM][SK_TILE_VALUES(1)], slope[SELKIE_DIM][SK_TILE_VALUES(1)], jump[SELKIE_DIM][SK_TILE_VALUES(1)];
} motion;

static void load_known(const sk_grid *grid, sk_grid_field field, int block, float scale, float *values)
{
    sk_tile_load(grid, grid->fields[field], block, 1, values);
    for (int i = 0; i < SK_TILE_VALUES(1); i++)
        values[i] = values[i] == values[i] ? scale * values[i] : 0.0f;
}

static void load_motion(const frame *f, int block, motion *m)
{
    static const int up[3] = {1, SK_TILE_N(1), SK_TILE_N(1) * SK_TILE_N(1)};
    float shift[SK_TILE_VALUES(1)];
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int end = SK_TILE_VALUES(1) - up[d];
        if (f->options->dt > 0.0f) {
            load_known(f->grid, (sk_grid_field)((int)SK_FIELD_VELOCITY_X + d), block, f->options->dt, m->at[d]);
            for (int i = 0; i < end; i++)
                m->slope[d][i] = m->at[d][i + up[d]] - m->at[d][i];
        } else {
            memset(m->at[d], 0, sizeof m->at[d]);
            memset(m->jump[d], 0, sizeof m->jump[d]);
        }
        if (!f->options->shifted)
            continue;
        load_known(f->grid, (sk_grid_field)((int)SK_FIELD_SHIFT_X + d), block, f->cell_size, shift);
        for (int i = 0; i < end; i++) {
            m->jump[d][i] = shift[i + up[d]] - shift[i];
            m->at[d][i] += shift[i];
        }
    }
}

/* Weights of the nodes around a cell for a batch of its particles. */
typedef struct cell_weights {
    fw along[3]; /* distance from the lower face, cells */
    fw centre[3][3];
} cell_weights;

static inline __attribute__((always_inline)) void weights_in_cell(const fw *position, const float corner[3],
                                                                  float inverse, const float cell[3], cell_weights *w)
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        w->along[d] = (position[d] - fw_splat(corner[d])) * fw_splat(inverse) - fw_splat(cell[d]);
        fw offset = w->along[d] - 0.5f;
        w->centre[d][0] = fw_max(-offset, fw_splat(0.0f));
        w->centre[d][2] = fw_max(offset, fw_splat(0.0f));
        w->centre[d][1] = 1.0f - (w->centre[d][0] + w->centre[d][2]);
    }
}

/* First node of component d around a cell: one lower along every axis but its own. */
static inline int first_of(const int d, int node)
{
    enum { N1 = SK_TILE_N(1), NODE_Z = SELKIE_DIM == 3 ? N1 * N1 : 0 };
    return node - 1 - N1 - NODE_Z + (d == 0 ? 1 : d == 1 ? N1 : N1 * N1);
}

/* Motion along axis d of the particles of a batch, linear across the axis. */
static inline __attribute__((always_inline)) fw move_along(const int d, const motion *m, int node,
                                                           const cell_weights *w, const int follows, const int shifted)
{
    enum { N1 = SK_TILE_N(1) };
    const int e = d == 0 ? 1 : 0, g = d == 2 ? 1 : 2; /* the other axes */
    static const int step[3] = {1, N1, N1 * N1};
    const float *at = m->at[d] + first_of(d, node), *slope = m->slope[d] + first_of(d, node),
                *jump = m->jump[d] + first_of(d, node);
    fw way = fw_splat(0.0f), slopes = fw_splat(0.0f), jumps = fw_splat(0.0f);
#pragma GCC unroll 3
    for (int k = 0; k < (SELKIE_DIM == 3 ? 3 : 1); k++)
#pragma GCC unroll 3
        for (int j = 0; j < 3; j++) {
            const int n = j * step[e] + (SELKIE_DIM == 3 ? k * step[g] : 0);
            fw weight = SELKIE_DIM == 3 ? w->centre[e][j] * w->centre[g][k] : w->centre[e][j];
            way += weight * at[n];
            if (follows)
                slopes += weight * slope[n];
            if (shifted)
                jumps += weight * jump[n];
        }
    if (follows)
        way += w->along[d] * slopes;
    return shifted ? way + fw_select(w->along[d] < 0.5f, fw_splat(0.0f), jumps) : way;
}

/* Keeps particles within closed walls and out of obstacles. */
static inline __attribute__((always_inline)) void confine_lanes(const frame *f, int clip, int lanes, const fw from[3],
                                                                fw moved[3])
{
    for (int d = 0; d < SELKIE_DIM; d++)
        moved[d] = fw_min(fw_splat(f->high[d]), fw_max(fw_splat(f->low[d]), moved[d]));
    for (int l = 0; clip && l < lanes; l++) {
        float at[3] = {0, 0, 0}, start[3] = {0, 0, 0};
        for (int d = 0; d < SELKIE_DIM; d++)
            at[d] = moved[d][l], start[d] = from[d][l];
        if (sk_sweep_displacement(f->options->solids, f->low, f->high, start, at, f->options->dt > 0.0f ? 1.0 : 0.0))
            for (int d = 0; d < SELKIE_DIM; d++)
                moved[d][l] = at[d];
    }
}

/* Weights of a batch, stored so that they are added particle by particle. */
typedef struct staged {
    float along_x[SK_WIDE][8]; /* [particle][node], the last of four is 0; four more are not used */
    float across[9][SK_WIDE];  /* [row j + 3 k][particle] */
} staged;

/* Fast case: all particles of a cell stay on three nodes along each axis, counted from `first`. The sums stay in
 * registers. */
static inline __attribute__((always_inline)) void weigh_together(const fw place[3], const float first[3], int lanes,
                                                                 staged *s, float *tile)
{
    enum { ROWS = SELKIE_DIM == 3 ? 9 : 3 };
    fw part[3][3];
    int node = 0, stride = 1;

    /* Interpolation weights of the three nodes along each axis. */
    for (int d = 0; d < SELKIE_DIM; d++) {
        fw x = place[d] - fw_splat(first[d]);
        part[d][0] = fw_max(1.0f - x, fw_splat(0.0f));
        part[d][2] = fw_max(x - 1.0f, fw_splat(0.0f));
        part[d][1] = 1.0f - (part[d][0] + part[d][2]);
        node += (int)first[d] * stride;
        stride *= WIDTH;
    }

    /* Stage the weights: along x by particle, across x by row. */
    fw_store_columns(s->along_x[0], SK_WIDE, (const fw[4]){part[0][0], part[0][1], part[0][2], fw_splat(0.0f)});
#pragma GCC unroll 9
    for (int row = 0; row < ROWS; row++)
        fw_store(s->across[row], SELKIE_DIM == 3 ? part[1][row % 3] * part[SELKIE_DIM - 1][row / 3] : part[1][row]);

    /* Broadcasts from memory are cheaper than the shuffles that the compiler would generate. */
    __asm__ __volatile__("" : "+m"(*s));

    /* Sum over the particles, then add the rows to the tile. */
    f4 rows[ROWS];
    for (int row = 0; row < ROWS; row++)
        rows[row] = (f4){0, 0, 0, 0};
#pragma GCC unroll 1
    for (int p = 0; p < lanes; p++) {
        f4 x = *(const f4_unaligned *)s->along_x[p];
#pragma GCC unroll 9
        for (int row = 0; row < ROWS; row++)
            rows[row] += x * s->across[row][p];
    }
#pragma GCC unroll 9
    for (int row = 0; row < ROWS; row++)
        *(f4_unaligned *)(tile + node + WIDTH * (row % 3) + WIDTH * WIDTH * (row / 3)) += rows[row];
}

/* General case: particle by particle, a row of four nodes at a time. The last two nodes get zero. */
static __attribute__((noinline)) void weigh_apart(const fw place[3], int lanes, float *tile)
{
    enum { ROWS = CORNERS / 2 };
    for (int l = 0; l < lanes; l++) {
        float part[3][2];
        int node = 0, stride = 1;
        for (int d = 0; d < SELKIE_DIM; d++) {
            int i = (int)place[d][l];
            part[d][1] = place[d][l] - (float)i;
            part[d][0] = 1.0f - part[d][1];
            node += i * stride;
            stride *= WIDTH;
        }
        f4 pair = {part[0][0], part[0][1], 0.0f, 0.0f};
        for (int r = 0; r < ROWS; r++)
            *(f4_unaligned *)(tile + node + WIDTH * (r & 1) + WIDTH * WIDTH * (r >> 1)) +=
                pair * (SELKIE_DIM == 3 ? part[1][r & 1] * part[SELKIE_DIM - 1][r >> 1] : part[1][r & 1]);
    }
}

/* Adds the weights of the particles at `x` to the tile. */
static inline __attribute__((always_inline)) void weigh_lanes(const frame *f, const fw x[3], const float origin[3],
                                                              int lanes, staged *s, float *tile)
{
    fw place[3];
    float first[3];
    iw far = iw_splat(0);
    for (int d = 0; d < SELKIE_DIM; d++) {
        place[d] = (x[d] - f->corner[d]) * f->inverse - origin[d];
        place[d] = fw_max(fw_min(place[d], fw_splat((float)WIDTH - 1.001f)), fw_splat(0.0f));
        first[d] = (float)(int)fw_smallest(place[d]);
        far |= place[d] >= first[d] + 2.0f;
    }
    if (iw_any(far))
        weigh_apart(place, lanes, tile);
    else
        weigh_together(place, first, lanes, s, tile);
}

/* Can a particle of the block meet an obstacle? The blocks around it cover at least three cells. Particles that move
 * farther count nowhere. */
static int obstacle_near(const frame *f, int block)
{
    const sk_solids *solids = f->options->solids;
    int near = 0;
    for (int n = 0; solids->obstacle_count && n < SK_NEIGHBOURS; n++)
        near |= !solids->plain[solids->block_slot[f->grid->neighbours[block][n]]];
    return near;
}

/* Cells of a block whose particles may count in wanted blocks or one cell around them, at most two cells away. One bit
 * for each combination of {lower two, inner, upper two} layers along the axes. */
static int find_needed(const frame *f, int block)
{
    const sk_predict_options *options = f->options;
    int needed = 0;
    if (!options->wanted)
        return -1;
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        int other = f->grid->neighbours[block][n];
        if (!other || !options->wanted[(size_t)other * options->wanted_stride])
            continue;
        for (int m = 0; m < SK_NEIGHBOURS; m++) {
            int covers = 1;
            for (int d = 0, power = 1; d < SELKIE_DIM; d++, power *= 3)
                covers &= n / power % 3 == 1 || n / power % 3 == m / power % 3;
            needed |= covers << m;
        }
    }
    return needed;
}

static int layer_of(int at)
{
    return at < 2 ? 0 : at < SK_BLOCK_N - 2 ? 1 : 2;
}

static void predict_block(const frame *f, const sk_particles *particles, int block, float *result)
{
    enum { N1 = SK_TILE_N(1) };
    const sk_grid *grid = f->grid;
    motion way;
    staged s;
    float origin[3];

    /* Load the motion of the block, and clear the tile. */
    load_motion(f, block, &way);
    for (int d = 0; d < 3; d++)
        origin[d] = (float)(grid->coordinates[block][d] * grid->extent[d] - REACH) + 0.5f; /* of the first centre */
    const int clip = obstacle_near(f, block);
    float tile[TILE + WIDTH * WIDTH * 2 + WIDTH * 2 + 4]; /* rows may extend beyond it, with zeros there */
    memset(tile, 0, sizeof tile);

    /* Skip cells without particles and layers that are not needed. */
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        int local[3] = {c & SK_BLOCK_MASK, c >> SK_BLOCK_LOG & SK_BLOCK_MASK, c >> (2 * SK_BLOCK_LOG)};
        if (start[c] == start[c + 1] || !(f->needed[block] >> (layer_of(local[0]) + 3 * layer_of(local[1]) +
                                                               (SELKIE_DIM == 3 ? 9 * layer_of(local[2]) : 0)) &
                                          1))
            continue;
        int node = SK_TILE_ORIGIN(1) + local[0] + N1 * (local[1] + N1 * local[2]);
        float cell[3];
        for (int d = 0; d < 3; d++)
            cell[d] = (float)(grid->coordinates[block][d] * grid->extent[d] + local[d]);

        /* Move the particles and add their interpolation weights to the tile. */
        for (uint32_t p = start[c]; p < start[c + 1]; p += SK_WIDE) {
            int lanes = start[c + 1] - p < SK_WIDE ? (int)(start[c + 1] - p) : SK_WIDE;
            fw r[4], moved[3];
            cell_weights w;
            fw_load_columns(sk_particle_floats(particles->records + p), lanes, r);
            weights_in_cell(r, f->corner, f->inverse, cell, &w);
            for (int d = 0; d < SELKIE_DIM; d++)
                moved[d] = r[d] + (!(f->options->dt > 0.0f) ? move_along(d, &way, node, &w, 0, 1)
                                   : f->options->shifted    ? move_along(d, &way, node, &w, 1, 1)
                                                            : move_along(d, &way, node, &w, 1, 0));
            confine_lanes(f, clip, lanes, r, moved);
            weigh_lanes(f, moved, origin, lanes, &s, tile);
        }
    }
    memcpy(result, tile, TILE * sizeof *tile);
}

/* One axis: cells [from, from + count) of the tile of the neighbour on `side` lie over cells [to, ...) of the block. */
static sk_tile_span rim_over(int side)
{
    sk_tile_span span = {REACH, 0, SK_BLOCK_N};
    if (side < 0)
        span.from = REACH + SK_BLOCK_N, span.count = REACH;
    if (side > 0)
        span.from = 0, span.to = SK_BLOCK_N - REACH, span.count = REACH;
    return span;
}

static void collect_block(const frame *f, const float *tiles, float scale, int block)
{
    const sk_grid *grid = f->grid;
    float *sums = grid->fields[SK_FIELD_PREDICTED] + (size_t)block * SK_BLOCK_CELLS;
    memset(sums, 0, SK_BLOCK_CELLS * sizeof *sums);
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        int other = grid->neighbours[block][n];
        if (other == 0 || other > grid->particle_blocks || !f->needed[other])
            continue;
        const float *tile = tiles + (size_t)(other - 1) * TILE;
        const sk_tile_span x = rim_over(n % 3 - 1), y = rim_over(n / 3 % 3 - 1);
        const sk_tile_span z = SELKIE_DIM == 3 ? rim_over(n / 9 - 1) : (sk_tile_span){0, 0, 1};
        for (int k = 0; k < z.count; k++)
            for (int j = 0; j < y.count; j++) {
                const float *source = tile + x.from + WIDTH * (y.from + j + WIDTH * (z.from + k));
                float *target = sums + x.to + SK_BLOCK_N * (y.to + j + SK_BLOCK_N * (z.to + k));
                for (int i = 0; i < x.count; i += 4)
                    *(f4_unaligned *)(target + i) += *(const f4_unaligned *)(source + i);
            }
    }
    for (int c = 0; c < SK_BLOCK_CELLS; c++)
        sums[c] *= scale;
}

selkie_code SK_DIM(sk_predict_density)(sk_grid *grid, const sk_particles *particles, const sk_predict_options *options,
                                       selkie_error *error)
{
    /* The tiles of the transfers are free now and large enough. Only a world without transfers allocates more. */
    const size_t tile_values = (size_t)grid->particle_blocks * TILE;
    SK_TRY(sk_reserve(grid->memory, (void **)&grid->tiles, &grid->tile_capacity,
                      tile_values + (size_t)grid->block_count, sizeof(float), "prediction", error));
    frame f;
    frame_of(grid, options, &f);
    f.needed = (int32_t *)(void *)(grid->tiles + tile_values);
    sk_deal held, all;
    sk_deal_particle_blocks(&held, grid, options->threads);
    sk_deal_blocks(&all, grid, options->threads);
#pragma omp parallel num_threads(options->threads)
    {
#pragma omp for schedule(static)
        for (int b = 1; b < grid->block_count; b++)
            f.needed[b] = find_needed(&f, b);
        SK_EACH_DEALT(b, &held)
        if (f.needed[b])
            predict_block(&f, particles, b, grid->tiles + (size_t)(b - 1) * TILE);
#pragma omp barrier
        SK_EACH_DEALT(b, &all)
        if (f.needed[b])
            collect_block(&f, grid->tiles, options->density_per_particle, b);
    }
    return SELKIE_OK;
}
