/* Curvature of the surface in the cells beside it. */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/deal.h"
#include "grid/tile.h"
#include "methods/cells.h"
#include "methods/surface_tension/surface_tension.h"
#include "methods/surface_tension/surface_tension_kernels.h"

enum {
    HALO = SK_TENSION_HALO,
    WIDTH = SK_TILE_N(HALO),
    VALUES = SK_TILE_VALUES(HALO),
    WINDOW = SELKIE_DIM == 3 ? 27 : 9,
    OPEN = 0,
    CLOSED = 1
};
static const int tile_step[3] = {1, WIDTH, WIDTH *WIDTH};

/* A block and HALO cells around it. */
typedef struct surface_tile {
    float fill[VALUES]; /* blurred */
    float room[VALUES], other[VALUES];
    float depth[VALUES]; /* cells  below the surface, where it is near */
    uint8_t closed[VALUES];
    int any_closed;
} surface_tile;

static int tile_index(int c)
{
    int n = SK_TILE_ORIGIN(HALO);
    for (int d = 0; d < SELKIE_DIM; d++)
        n += (c >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK) * tile_step[d];
    return n;
}

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
    for (int n = 0; n < VALUES; n++)
        tile->depth[n] = sk_tension_depth(tile->fill[n] / (tile->room[n] > 1e-3f ? tile->room[n] : 1e-3f));
}

/* Offset number n of a window of 3^d cells. */
static int window_step(int n, int offset[3])
{
    offset[0] = n % 3 - 1;
    offset[1] = n / 3 % 3 - 1;
    offset[2] = SELKIE_DIM == 3 ? n / 9 - 1 : 0;
    return offset[0] + WIDTH * (offset[1] + WIDTH * offset[2]);
}

/* The contact angle, and the gradient of the depth at the cell of a fit as if it were 90 degrees. */
typedef struct contact_line {
    float cosine, sine, gradient[3];
} contact_line;

/* How the depth grows along the unit normal into a solid. At the contact line it is the cosine of the angle, and the
 * slope along the solid is its sine. A film has no contact line: its surface follows the solid. */
static float growth_into_solid(const contact_line *contact, const float normal[3])
{
    float across = 0.0f, square = 0.0f;
    for (int d = 0; d < 3; d++) {
        across += contact->gradient[d] * normal[d];
        square += contact->gradient[d] * contact->gradient[d];
    }
    const float slope = sqrtf(fmaxf(square - across * across, 0.0f));
    return contact->cosine * (slope < contact->sine ? slope / contact->sine : 1.0f);
}

/* Depth in a solid cell such that the surface meets the solid at the contact angle. The open cells around count by how
 * far they lie along the normal. */
static float depth_in_solid(const surface_tile *tile, int place, const contact_line *contact, float otherwise)
{
    float normal[3] = {0.0f, 0.0f, 0.0f}, sum = 0.0f, weights = 0.0f;
    int offset[3];
    for (int n = 0; n < WINDOW; n++) {
        const float closed = (float)tile->closed[place + window_step(n, offset)];
        for (int d = 0; d < 3; d++)
            normal[d] += closed * (float)offset[d];
    }
    const float length = sqrtf(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2]);
    if (!(length > 0.0f))
        return otherwise;
    for (int d = 0; d < 3; d++)
        normal[d] /= length;
    const float growth = growth_into_solid(contact, normal);
    for (int n = 0; n < WINDOW; n++) {
        const int other = place + window_step(n, offset);
        float way = 0.0f, square = 0.0f;
        for (int d = 0; d < 3; d++) {
            way -= normal[d] * (float)offset[d];
            square += (float)(offset[d] * offset[d]);
        }
        if (tile->closed[other] == CLOSED || way <= 0.0f)
            continue;
        const float weight = way * way * way * way / (square * square);
        sum += weight * (tile->depth[other] + growth * way);
        weights += weight;
    }
    return weights > 0.0f ? sum / weights : otherwise;
}

/* Fits the depth around a cell. Returns whether a solid is near. */
static int fit_at(const surface_tile *tile, int place, const contact_line *contact, sk_tension_fit *fit)
{
    float values[WINDOW];
    int solid = 0;
    for (int n = 0; n < WINDOW; n++) {
        int offset[3];
        const int other = place + window_step(n, offset), closed = tile->closed[other] == CLOSED;
        values[n] = closed ? depth_in_solid(tile, other, contact, tile->depth[place]) : tile->depth[other];
        solid |= closed;
    }
    sk_tension_fit_quadratic(values, fit);
    return solid;
}

static float curvature_at(const surface_tile *tile, int place, float cosine)
{
    contact_line contact = {0.0f, 1.0f, {0.0f, 0.0f, 0.0f}};
    sk_tension_fit fit;
    if (fit_at(tile, place, &contact, &fit) && cosine != 0.0f) {
        contact.cosine = cosine;
        contact.sine = fmaxf(sqrtf(fmaxf(1.0f - cosine * cosine, 0.0f)), 0.1f);
        memcpy(contact.gradient, fit.gradient, sizeof contact.gradient);
        fit_at(tile, place, &contact, &fit);
    }
    return sk_tension_curvature(&fit, tile->depth[place]);
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
        curvature[c] = curvature_at(tile, tile_index(c), cosine);
    }
}

/* Undoes the effect of the blur on the curvatures of a block. Beside solids the mean is one-sided, which is right where
 * the surface goes on as a mirror image, at a contact angle of 90 degrees. */
static void sharpen_block(const sk_step *step, const float *blurred, int block, int mirrored, float *curvature)
{
    const sk_grid *grid = &step->grid;
    const float *solid = step->solids.blurred + (size_t)step->solids.block_slot[block] * SK_BLOCK_CELLS;
    enum { REACH = 2, SIDE = 2 * REACH + 1, W2 = SK_TILE_N(REACH) };
    float tile[SK_TILE_VALUES(REACH)];
    int loaded = 0;
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        const float own = blurred[(size_t)block * SK_BLOCK_CELLS + (size_t)c];
        curvature[c] = own;
        if (own == 0.0f || (solid[c] > 0.0f && !mirrored))
            continue;
        if (!loaded)
            sk_tile_load(grid, blurred, block, REACH, tile);
        loaded = 1;

        /* The mean over the cells beside the surface, which have a curvature. */
        int place = SK_TILE_ORIGIN(REACH) + (c & SK_BLOCK_MASK) + W2 * (c >> SK_BLOCK_LOG & SK_BLOCK_MASK);
        place += SELKIE_DIM == 3 ? W2 * W2 * (c >> (2 * SK_BLOCK_LOG)) : 0;
        float sum = 0.0f, weights = 0.0f, squares = 0.0f;
        for (int n = 0; n < SIDE * SIDE * (SELKIE_DIM == 3 ? SIDE : 1); n++) {
            const int x = n % SIDE - REACH, y = n / SIDE % SIDE - REACH,
                      z = SELKIE_DIM == 3 ? n / (SIDE * SIDE) - REACH : 0;
            const float there = tile[place + x + W2 * (y + W2 * z)], square = (float)(x * x + y * y + z * z);
            const float weight = there == 0.0f ? 0.0f : sk_tension_weight(square);
            sum += weight * there;
            weights += weight;
            squares += weight * square;
        }
        curvature[c] = sk_tension_unblurred(own, sum / weights, squares / weights);
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
    sharpen_block(step, blurred, b, fabsf(cosine) < 0.01f, curvature + (size_t)b * SK_BLOCK_CELLS);
}
