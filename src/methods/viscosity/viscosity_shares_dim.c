/* The liquid's share of the sub-cells, from the depth below the surface and the distance from obstacles. */
#include <math.h>
#include <string.h>

#include "base/simd.h"
#include "methods/viscosity/viscosity_plain.h"

enum { TILE_N = SK_VISCOUS_TILE, TILE_VALUES = SK_VISCOUS_TILE_VALUES };

/* Around a block: depths below the surface, NaN in solid cells, and distances from obstacles; in cells. */
typedef struct surface_tiles {
    float depth[TILE_VALUES], outside[TILE_VALUES];
    int cut; /* `outside` is set: obstacles are near */
} surface_tiles;

/* Least and largest value of the cells around each cell, at the place in the tiles of the first of them. */
typedef struct value_ranges {
    float least[TILE_VALUES], most[TILE_VALUES];
} value_ranges;

/* `count` cells in a row from `cell` on. */
static inline void load_cells(const sk_step *step, sk_plain_cell cell, int count, surface_tiles *tiles, int place)
{
    for (int i = 0; i < count; i++)
        tiles->depth[place + i] = stressed_depth(&step->grid, sk_plain_index(cell) + (size_t)i);
    if (tiles->cut)
        memcpy(tiles->outside + place, step->solids.distance + sk_plain_solid_index(&step->solids, cell),
               (size_t)count * sizeof(float));
}

static void load_tiles(const sk_step *step, int block, surface_tiles *tiles)
{
    int place = 0;
    for (int k = SELKIE_DIM == 3 ? -1 : 0; k <= (SELKIE_DIM == 3 ? SK_BLOCK_N : 0); k++)
        for (int j = -1; j <= SK_BLOCK_N; j++, place += TILE_N) {
            sk_plain_cell cell = sk_plain_beside(&step->grid, (sk_plain_cell){block, 0}, (const int[3]){0, j, k});
            load_cells(step, cell, SK_BLOCK_N, tiles, place + 1);
            cell = sk_plain_beside(&step->grid, (sk_plain_cell){block, 0}, (const int[3]){-1, j, k});
            load_cells(step, cell, 1, tiles, place);
            cell = sk_plain_beside(&step->grid, (sk_plain_cell){block, 0}, (const int[3]){SK_BLOCK_N, j, k});
            load_cells(step, cell, 1, tiles, place + SK_BLOCK_N + 1);
        }
}

static inline float lesser(float a, float b)
{
    return a < b ? a : b;
}

static inline float greater(float a, float b)
{
    return a > b ? a : b;
}

/* Ranges over the 3^dim cells around each cell, an axis at a time, in place. Solid cells have no depth; among the least
 * are also distances from obstacles. */
static void find_ranges(const surface_tiles *tiles, value_ranges *range)
{
    float *least = range->least, *most = range->most;
    for (int n = 0; n < TILE_VALUES; n++) {
        const float depth = tiles->depth[n];
        least[n] = depth == depth ? depth : 1.0f;
        most[n] = depth == depth ? depth : -1.0f;
    }
    for (int n = 0; n < TILE_VALUES && tiles->cut; n++)
        least[n] = lesser(least[n], tiles->outside[n]);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int stride = sk_viscous_tile_step[d];
        for (int n = 0; n + 2 * stride < TILE_VALUES; n++)
            least[n] = lesser(least[n], lesser(least[n + stride], least[n + 2 * stride]));
        for (int n = 0; n + 2 * stride < TILE_VALUES; n++)
            most[n] = greater(most[n], greater(most[n + stride], most[n + 2 * stride]));
    }
}

/* The values of the 3^dim cells around a place of the tiles. */
static inline void take_around(const float *tile, int place, float around[SK_NEIGHBOURS])
{
    for (int n = 0; n < SK_NEIGHBOURS; n++)
        around[n] = tile[place + (n % 3 - 1) + (n / 3 % 3 - 1) * sk_viscous_tile_step[1] +
                         (SELKIE_DIM == 3 ? (n / 9 - 1) * sk_viscous_tile_step[2] : 0)];
}

/* Shares of the sub-cells of a cell. */
static void measure_cell(const sk_step *step, const sk_viscous_fields *f, sk_plain_cell cell,
                         const surface_tiles *tiles)
{
    const int place = sk_viscous_tile_place(cell.local);
    float depth[SK_NEIGHBOURS], outside[SK_NEIGHBOURS], share[SK_CORNERS];
    take_around(tiles->depth, place, depth);
    if (tiles->cut)
        take_around(tiles->outside, place, outside);
    const float least = sk_viscous_liquid_shares(depth, share);
    const unsigned occupied = least < SK_VISCOUS_LEAST_SHARE ? occupied_sub_cells(step, cell) : 0;
    sk_viscous_open_shares(tiles->cut ? outside : NULL, occupied, share);
    for (int n = 0; n < SK_CORNERS; n++)
        f->share[n][sk_plain_index(cell)] = share[n];
}

/* Faces are closed by fraction 0. */
static void find_closed(const sk_step *step, const sk_viscous_fields *f, int block)
{
    const size_t solid = (size_t)step->solids.block_slot[block] * SK_BLOCK_CELLS;
    int32_t closed[SK_BLOCK_CELLS] = {0};
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float *fraction = step->solids.fraction[d] + solid;
        for (int c = 0; c < SK_BLOCK_CELLS; c++)
            closed[c] |= (fraction[c] == 0.0f) << d;
    }
    uint8_t *restrict to = f->closed + (size_t)block * SK_BLOCK_CELLS;
    for (int c = 0; c < SK_BLOCK_CELLS; c++)
        to[c] = (uint8_t)closed[c];
}

/* Shares of the cells of a row that are full or empty. Interpolated values lie between those of the cells around: most
 * cells are full or empty by their range. Returns a bit for each of the others. */
static uint32_t fill_row(const sk_step *step, const sk_viscous_fields *f, sk_plain_cell first,
                         const value_ranges *range)
{
    const size_t here = sk_plain_index(first);
    const int place = sk_viscous_tile_place(first.local) - 1 - TILE_N - (SELKIE_DIM == 3 ? sk_viscous_tile_step[2] : 0);
    const float *least = range->least + place, *most = range->most + place;
    const uint8_t *kind = step->grid.kinds + here, *closed = f->closed + here;
    uint8_t *filled = f->filled + here;
    const uint32_t *start = first.slot <= step->grid.particle_blocks
                                ? step->grid.cell_start + (size_t)(first.slot - 1) * SK_BLOCK_CELLS + first.local
                                : NULL;
    uint32_t unclear = 0;
    for (int i = 0; i < SK_BLOCK_N; i += 8) {
        const i8 solid = (i8_from_bytes(kind + i) & SK_CELL_KIND_MASK) == SK_CELL_SOLID;
        i8 vacant = f8_load(most + i) < -SK_VISCOUS_FAR;
        if (start) {
            i8 from, to;
            memcpy(&from, start + i, sizeof from);
            memcpy(&to, start + i + 1, sizeof to);
            vacant &= from == to;
        }
        const i8 empty = solid | vacant, is_full = ~empty & (f8_load(least + i) > SK_VISCOUS_FAR);
        const f8 full = f8_select(is_full, f8_splat(1.0f), f8_splat(0.0f));
        i8_to_bytes(filled + i, (empty & 2) | (is_full & (i8_from_bytes(closed + i) == 0) & 1));
        unclear |= i8_bits(~(empty | is_full)) << i;
        for (int n = 0; n < SK_CORNERS; n++)
            f8_store(f->share[n] + here + i, full);
    }
    return unclear;
}

void SK_DIM(sk_viscous_measure)(const sk_step *step, const sk_viscous_fields *f, int block)
{
    surface_tiles tiles;
    value_ranges range;
    find_closed(step, f, block);
    if (!block)
        return;
    tiles.cut = step->solids.obstacle_count > 0 && step->solids.block_slot[block];
    load_tiles(step, block, &tiles);
    find_ranges(&tiles, &range);
    for (int c = 0; c < SK_BLOCK_CELLS; c += SK_BLOCK_N) {
        uint32_t unclear = fill_row(step, f, (sk_plain_cell){block, c}, &range);
        for (; unclear; unclear &= unclear - 1)
            measure_cell(step, f, (sk_plain_cell){block, c + __builtin_ctz(unclear)}, &tiles);
    }
}
