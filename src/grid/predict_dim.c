/* See predict.h. As in the transfers, a block adds up its particles in a tile of its own, here with a rim as wide as they may
 * move, and each block then collects what its neighbours' rims hold for it, in a fixed order. */
#include "grid/predict.h"

#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/lanes.h"
#include "grid/tile.h"

enum {
    REACH = 4, /* cells of the rim; a whole number of vectors, so that rows of the tile are aligned with those of blocks */
    WIDTH = SK_TILE_N(REACH),
    TILE = SK_TILE_VALUES(REACH),
    CORNERS = 1 << SELKIE_DIM
};

typedef struct frame {
    const sk_grid *grid;
    const sk_predict_options *options;
    float corner[3], inverse, cell_size;
    float low[3], high[3]; /* m  where closed walls let particles be */
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

/* Where the particles of a batch go; they are of one cell. */
static inline __attribute__((always_inline)) void move_lanes(const frame *f, const fw *position, const float cell[3], int node,
                                                             const float *const velocity[3], const float *const shift[3], int clip,
                                                             int lanes, fw moved[3])
{
    lane_weights w;
    lanes_of(position, f->corner, f->inverse, cell, 0, &w);
    const float dt = f->options->dt;
    moved[0] = position[0] + dt * sample_component(0, velocity[0] + first_of(0, node), &w);
    moved[1] = position[1] + dt * sample_component(1, velocity[1] + first_of(1, node), &w);
#if SELKIE_DIM == 3
    moved[2] = position[2] + dt * sample_component(2, velocity[2] + first_of(2, node), &w);
#endif
    if (f->options->shifted) {
        /* As sk_transfer_displace() will move them: constant along the normal of the nearest face. */
        for (int d = 0; d < SELKIE_DIM; d++) {
            w.face[d][1] = fw_select(w.face[d][1] < 0.5f, fw_splat(0.0f), fw_splat(1.0f));
            w.face[d][0] = 1.0f - w.face[d][1];
        }
        moved[0] += f->cell_size * sample_component(0, shift[0] + first_of(0, node), &w);
        moved[1] += f->cell_size * sample_component(1, shift[1] + first_of(1, node), &w);
#if SELKIE_DIM == 3
        moved[2] += f->cell_size * sample_component(2, shift[2] + first_of(2, node), &w);
#endif
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        moved[d] = fw_min(fw_splat(f->high[d]), fw_max(fw_splat(f->low[d]), moved[d]));
    if (!clip)
        return;
    for (int l = 0; l < lanes; l++) {
        float at[3] = {0, 0, 0};
        for (int d = 0; d < SELKIE_DIM; d++)
            at[d] = moved[d][l];
        if (sk_solids_near(f->options->solids, f->grid, at) && sk_solids_push_out(f->options->solids, f->low, f->high, at))
            for (int d = 0; d < SELKIE_DIM; d++)
                moved[d][l] = at[d];
    }
}

/* Adds the weights of the particles at `x` to the tile: a row of four nodes at a time, of which the last two get nothing. */
static inline __attribute__((always_inline)) void weigh_lanes(const frame *f, const fw x[3], const float origin[3], int lanes,
                                                              float *tile)
{
    enum { ROWS = CORNERS / 2 };
    fw part[3][2], rows[ROWS];
    iw base = iw_splat(0);
    int stride = 1;
    for (int d = 0; d < SELKIE_DIM; d++) {
        fw place = (x[d] - f->corner[d]) * f->inverse - origin[d];
        place = fw_max(fw_min(place, fw_splat((float)WIDTH - 1.001f)), fw_splat(0.0f));
        iw i = iw_from_fw(place);
        part[d][1] = place - fw_from_iw(i);
        part[d][0] = 1.0f - part[d][1];
        base += i * stride;
        stride *= WIDTH;
    }
    for (int r = 0; r < ROWS; r++)
        rows[r] = SELKIE_DIM == 3 ? part[1][r & 1] * part[SELKIE_DIM - 1][r >> 1] : part[1][r & 1];
    float lower[SK_WIDE], upper[SK_WIDE], across[ROWS][SK_WIDE];
    int32_t first[SK_WIDE];
    memcpy(lower, &part[0][0], sizeof lower);
    memcpy(upper, &part[0][1], sizeof upper);
    memcpy(across, rows, sizeof across);
    memcpy(first, &base, sizeof first);
    for (int l = 0; l < lanes; l++) {
        f4 pair = {lower[l], upper[l], 0.0f, 0.0f};
        for (int r = 0; r < ROWS; r++)
            *(f4_unaligned *)(tile + first[l] + WIDTH * (r & 1) + WIDTH * WIDTH * (r >> 1)) += pair * across[r][l];
    }
}

static void load_known(const sk_grid *grid, sk_grid_field first, int block, float values[SELKIE_DIM][SK_TILE_VALUES(1)])
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        sk_tile_load(grid, grid->fields[(int)first + d], block, 1, values[d]);
        for (int i = 0; i < SK_TILE_VALUES(1); i++)
            values[d][i] = values[d][i] == values[d][i] ? values[d][i] : 0.0f;
    }
}

/* May a particle of the block meet an obstacle? The blocks around it cover three cells and more; what would go where there is
 * no block counts nowhere. */
static int obstacle_near(const frame *f, int block)
{
    const sk_solids *solids = f->options->solids;
    int near = 0;
    for (int n = 0; solids->obstacle_count && n < SK_NEIGHBOURS; n++)
        near |= !solids->plain[solids->block_slot[f->grid->neighbours[block][n]]];
    return near;
}

/* Which of a block's cells hold particles that may count in wanted blocks or one cell around them, which is two cells away at
 * most. A bit for each combination of {in the lower two, within, in the upper two} layers along the axes. */
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
    float velocity[SELKIE_DIM][SK_TILE_VALUES(1)], shift[SELKIE_DIM][SK_TILE_VALUES(1)], origin[3];
    const float *const velocities[3] = {velocity[0], velocity[1], velocity[SELKIE_DIM - 1]};
    const float *const shifts[3] = {shift[0], shift[1], shift[SELKIE_DIM - 1]};
    load_known(grid, SK_FIELD_VELOCITY_X, block, velocity);
    if (f->options->shifted)
        load_known(grid, SK_FIELD_SHIFT_X, block, shift);
    for (int d = 0; d < 3; d++)
        origin[d] = (float)(grid->coordinates[block][d] * grid->extent[d] - REACH) + 0.5f; /* of the first centre */
    const int clip = obstacle_near(f, block);
    float tile[TILE + 4]; /* rows of four may reach beyond it */
    memset(tile, 0, sizeof tile);
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        int local[3] = {c & SK_BLOCK_MASK, c >> SK_BLOCK_LOG & SK_BLOCK_MASK, c >> (2 * SK_BLOCK_LOG)};
        if (start[c] == start[c + 1] ||
            !(f->needed[block] >> (layer_of(local[0]) + 3 * layer_of(local[1]) + (SELKIE_DIM == 3 ? 9 * layer_of(local[2]) : 0)) & 1))
            continue;
        int node = SK_TILE_ORIGIN(1) + local[0] + N1 * (local[1] + N1 * local[2]);
        float cell[3];
        for (int d = 0; d < 3; d++)
            cell[d] = (float)(grid->coordinates[block][d] * grid->extent[d] + local[d]);
        for (uint32_t p = start[c]; p < start[c + 1]; p += SK_WIDE) {
            int lanes = start[c + 1] - p < SK_WIDE ? (int)(start[c + 1] - p) : SK_WIDE;
            fw r[4], moved[3];
            fw_load_columns(particles->records[p].position, lanes, r);
            move_lanes(f, r, cell, node, velocities, shifts, clip, lanes, moved);
            weigh_lanes(f, moved, origin, lanes, tile);
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
    /* The transfers' tiles are not in use now and have room enough; only a world that never transferred asks for more. */
    const size_t tile_values = (size_t)grid->particle_blocks * TILE;
    SK_TRY(sk_reserve(grid->memory, (void **)&grid->tiles, &grid->tile_capacity, tile_values + (size_t)grid->block_count, sizeof(float),
                      "prediction", error));
    frame f;
    frame_of(grid, options, &f);
    f.needed = (int32_t *)(void *)(grid->tiles + tile_values);
#pragma omp parallel num_threads(options->threads)
    {
#pragma omp for schedule(static)
        for (int b = 1; b < grid->block_count; b++)
            f.needed[b] = find_needed(&f, b);
#pragma omp for schedule(dynamic, 2)
        for (int b = 1; b <= grid->particle_blocks; b++)
            if (f.needed[b])
                predict_block(&f, particles, b, grid->tiles + (size_t)(b - 1) * TILE);
#pragma omp for schedule(dynamic, 8)
        for (int b = 1; b < grid->block_count; b++)
            if (f.needed[b])
                collect_block(&f, grid->tiles, options->density_per_particle, b);
    }
    return SELKIE_OK;
}
