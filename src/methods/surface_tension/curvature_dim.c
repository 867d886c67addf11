/* Curvature of the surface in the cells beside it. */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/deal.h"
#include "grid/tile.h"
#include "methods/cells.h"
#include "methods/surface_tension/surface_tension_plain.h"

enum { HALO = SK_TENSION_HALO, WIDTH = SK_TILE_N(HALO), VALUES = SK_TILE_VALUES(HALO), OPEN = 0, CLOSED = 1 };
static const int tile_step[3] = {1, WIDTH, WIDTH *WIDTH};

/* A block and HALO cells around it, and what is known of the cells near it. */
typedef struct surface_tile {
    float fill[VALUES]; /* blurred */
    float room[VALUES], other[VALUES];
    uint8_t closed[VALUES];
    int any_closed;
    sk_tension_tile near;
} surface_tile;

/* Is cell c of a block beside the surface: liquid with air behind one of its sides, or air with liquid? */
static int beside_surface(const uint8_t *kinds, int c)
{
    const int n = node_of(c), own = kinds[n] & SK_CELL_KIND_MASK;
    if (own == SK_CELL_SOLID)
        return 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int side = -1; side <= 1; side += 2) {
            const int other = kinds[n + side * node_step[d]] & SK_CELL_KIND_MASK;
            if (other != SK_CELL_SOLID && other != own)
                return 1;
        }
    return 0;
}

/* The kinds of the cells of a block and one around it. Beside unilateral incompressibility full cells are the liquid.
 */
static void load_kinds(const sk_step *step, int block, uint8_t *kinds)
{
    float full[SK_TILE_VALUES(1)];
    sk_tile_load_bytes(&step->grid, step->grid.kinds, block, 1, kinds);
    if (!step->full_cells)
        return;
    sk_tile_load(&step->grid, step->grid.fields[step->full_cells], block, 1, full);
    for (int n = 0; n < SK_TILE_VALUES(1); n++)
        if ((kinds[n] & SK_CELL_KIND_MASK) != SK_CELL_SOLID)
            kinds[n] = full[n] >= 0.0f ? SK_CELL_LIQUID : SK_CELL_AIR;
}

/* Marks the cells behind closed walls of the domain: their blocks need not exist. */
static void close_walls(const sk_step *step, int block, surface_tile *tile)
{
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int side = 0; side < 2; side++) {
            const int place = wall_place(step, block, d, side);
            if (place == INT_MIN || (side ? place + HALO >= WIDTH : place + HALO <= 0))
                continue;
            for (int n = 0; n < VALUES; n++) {
                const int at = n / tile_step[d] % WIDTH - HALO;
                if (side ? at >= place : at < place)
                    tile->closed[n] = CLOSED;
            }
        }
}

/* One pass of the binomial kernel along each axis. Values at the rim of the tile become wrong, by one cell a pass. */
static void blur(float *values, float *other)
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int step = tile_step[d];
        memcpy(other, values, VALUES * sizeof *values);
        for (int n = step; n < VALUES - step; n++)
            values[n] = 0.25f * (other[n - step] + other[n + step]) + 0.5f * other[n];
    }
}

/* Depths of the cells that fits reach, which the blur has not spoilt. */
static void find_depths(surface_tile *tile)
{
    const int rim = HALO - SK_TENSION_REACH;
    for (int n = 0; n < SK_TENSION_VALUES; n++) {
        int from = 0;
        for (int d = 0, rest = n; d < SELKIE_DIM; d++, rest /= SK_TENSION_WIDTH)
            from += (rest % SK_TENSION_WIDTH + rim) * tile_step[d];
        tile->near.depth[n] =
            sk_tension_depth(tile->fill[from] / (tile->room[from] > 1e-3f ? tile->room[from] : 1e-3f));
        tile->near.closed[n] = tile->closed[from];
    }
}

/* The blurred fill of a block and two cells around it. Solid cells do not count: the blur is a mean over open cells. */
static void load_surface(const sk_step *step, int block, surface_tile *tile)
{
    sk_tile_load(&step->grid, step->grid.fields[SK_FIELD_FILL], block, HALO, tile->fill);
    for (int n = 0; n < VALUES; n++)
        tile->closed[n] = tile->fill[n] < 0.0f ? CLOSED : OPEN;
    close_walls(step, block, tile);
    tile->any_closed = memchr(tile->closed, CLOSED, VALUES) != NULL;
    for (int n = 0; n < VALUES; n++) {
        tile->room[n] = tile->closed[n] == OPEN ? 1.0f : 0.0f;
        tile->fill[n] = tile->closed[n] == OPEN ? (tile->fill[n] < 1.0f ? tile->fill[n] : 1.0f) : 0.0f;
    }
    for (int pass = 0; pass < SK_TENSION_PASSES; pass++) {
        blur(tile->fill, tile->other);
        if (tile->any_closed)
            blur(tile->room, tile->other);
    }
    find_depths(tile);
}

static void measure_block(const sk_step *step, int block, float cosine, surface_tile *tile, float *curvature)
{
    uint8_t kinds[SK_TILE_VALUES(1)];
    int loaded = 0;
    memset(curvature, 0, SK_BLOCK_CELLS * sizeof *curvature);
    load_kinds(step, block, kinds);
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        if (!beside_surface(kinds, c))
            continue;
        if (!loaded)
            load_surface(step, block, tile);
        loaded = 1;
        curvature[c] = tension_curvature_at(&tile->near, tension_place(c), cosine);
    }
}

/* Undoes the effect of the blur on the curvatures of a block. */
static void sharpen_block(const sk_step *step, const float *blurred, int block, float cosine, float *curvature)
{
    float tile[SK_TENSION_VALUES];
    int loaded = 0;
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        const sk_plain_cell cell = {block, c};
        curvature[c] = blurred[sk_plain_index(cell)];
        if (!tension_is_sharpened(step, cell, curvature[c], cosine))
            continue;
        if (!loaded)
            sk_tile_load(&step->grid, blurred, block, SK_TENSION_REACH, tile);
        loaded = 1;
        curvature[c] = tension_sharpened(tile, tension_place(c));
    }
}

void SK_DIM(sk_tension_curvatures)(sk_step *step, int field)
{
    const sk_grid *grid = &step->grid;
    const float cosine = (float)cos(step->scene->contact_angle * (M_PI / 180.0));
    float *blurred = grid->fields[SK_FIELD_RIGHT_SIDE], *curvature = grid->fields[field]; /* the first is scratch */
    memset(curvature, 0, SK_BLOCK_CELLS * sizeof(float));
    memset(blurred, 0, SK_BLOCK_CELLS * sizeof(float));
    sk_deal deal;
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    {
        surface_tile tile;
        SK_EACH_DEALT(b, &deal)
        measure_block(step, b, cosine, &tile, blurred + (size_t)b * SK_BLOCK_CELLS);
    }
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    sharpen_block(step, blurred, b, cosine, curvature + (size_t)b * SK_BLOCK_CELLS);
}
