/* Inlets: regions of liquid with an imposed velocity. See sk_inlet.
 *
 * A face inside a running inlet is closed and moves with the inlet. The pressure then sees the inlet's flux at its
 * border and no unknown inside, and viscosity sees its velocity as that of a no-slip wall. Density and distance stay
 * those of the real solids: an inlet is full of liquid.
 *
 * Faces near an obstacle that moves towards the inlet yield: liquid between two rigid things that close on each other
 * would leave through the last gap at any speed (53 m/s before a plate of 2.4 m/s).
 */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/grid_kernels.h"
#include "grid/solid_bodies.h"

/* Signed distances (cells) at the corners of the block's cells. */
enum { CORNERS_ALONG = SK_BLOCK_N + 1, CORNERS_Z = SELKIE_DIM == 3 ? CORNERS_ALONG : 1 };
typedef struct corner_distances {
    float at[CORNERS_Z][CORNERS_ALONG][CORNERS_ALONG];
} corner_distances;

static void block_corner(const sk_grid *grid, int block, double corner[3])
{
    for (int d = 0; d < 3; d++)
        corner[d] =
            d < SELKIE_DIM ? grid->corner[d] + (double)grid->coordinates[block][d] * SK_BLOCK_N * grid->cell_size : 0.0;
}

static int reaches(const sk_inlet *inlet, const sk_grid *grid, const double corner[3])
{
    int near = inlet->running;
    for (int d = 0; d < SELKIE_DIM; d++)
        near &= inlet->low[d] <= corner[d] + SK_BLOCK_N * grid->cell_size && inlet->high[d] >= corner[d];
    return near;
}

static void measure(const sk_inlet *inlet, const sk_grid *grid, const double corner[3], corner_distances *distances)
{
    const double h = grid->cell_size;
    for (int k = 0; k < CORNERS_Z; k++)
        for (int j = 0; j < CORNERS_ALONG; j++)
            for (int i = 0; i < CORNERS_ALONG; i++) {
                const double x[3] = {corner[0] + i * h, corner[1] + j * h, SELKIE_DIM == 3 ? corner[2] + k * h : 0.0};
                float distance = (float)(sk_shape_distance(inlet->shape, x) / h);
                /* Rounding must not open a face on the border of the shape. */
                distances->at[k][j][i] = fabsf(distance) < 1e-4f ? 0.0f : distance;
            }
}

/* Part of the lower face of a cell, across axis d, that lies outside the inlet. */
static float open_part(const corner_distances *distances, const int cell[3], int d)
{
    const int a = d == 0 ? 1 : 0, b = d == 2 ? 1 : 2; /* the axes of the face */
    float corner[4];
    for (int n = 0; n < 4; n++) {
        int at[3] = {cell[0], cell[1], cell[2]};
        at[a] += n == 1 || n == 2;
        if (SELKIE_DIM == 3)
            at[b] += n >= 2;
        corner[n] = distances->at[at[2]][at[1]][at[0]];
    }
    const float open = SELKIE_DIM == 3 ? sk_open_square(corner[0], corner[1], corner[2], corner[3])
                                       : sk_open_segment(corner[0], corner[1]);
    /* Slivers would make the system stiff, as beside solids. */
    return open < 0.1f ? 0.0f : open > 0.99f ? 1.0f : open;
}

/* Obstacles that move near an inlet. */
enum { MOST_MOVING = 64 };
static const double yields_within = 2.0; /* cells */
typedef struct moving_near {
    int32_t obstacles[MOST_MOVING];
    int count;
    double corner[3], h; /* m  of the block */
} moving_near;

static void find_moving(const sk_solids *solids, const sk_inlet *inlet, double h, moving_near *near)
{
    near->count = 0;
    near->h = h;
    for (int o = 0; solids->moving_count && o < solids->obstacle_count && near->count < MOST_MOVING; o++) {
        const sk_obstacle *obstacle = &solids->obstacles[o];
        int meets = obstacle->moves;
        for (int d = 0; d < SELKIE_DIM; d++)
            meets &= obstacle->low[d] <= inlet->high[d] + yields_within * h &&
                     obstacle->high[d] >= inlet->low[d] - yields_within * h;
        if (meets)
            near->obstacles[near->count++] = o;
    }
}

/* Does the lower face of a cell across axis d yield to a moving obstacle? */
static int yields(const sk_solids *solids, const moving_near *near, const int cell[3], int d)
{
    double x[3] = {0.0, 0.0, 0.0}, normal[3];
    int obstacle;
    if (!near->count)
        return 0;
    for (int e = 0; e < SELKIE_DIM; e++)
        x[e] = near->corner[e] + ((double)cell[e] + (e == d ? 0.0 : 0.5)) * near->h;
    return sk_solids_distance_among(solids, near->obstacles, near->count, x, normal, &obstacle) <
           yields_within * near->h;
}

/* Joins an inlet to the faces of a slot. */
static void impose(sk_solids *solids, const sk_inlet *inlet, const corner_distances *distances, const moving_near *near,
                   size_t slot)
{
    const size_t base = slot * SK_BLOCK_CELLS;
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        const int cell[3] = {c & SK_BLOCK_MASK, c >> SK_BLOCK_LOG & SK_BLOCK_MASK, c >> (2 * SK_BLOCK_LOG)};
        const size_t at = base + (size_t)c;
        int closed = 1;
        for (int d = 0; d < SELKIE_DIM; d++) {
            int upper[3] = {cell[0], cell[1], cell[2]};
            upper[d]++;
            const float open = open_part(distances, cell, d);
            const int yielding = open < 1.0f && yields(solids, near, cell, d);
            closed &=
                open == 0.0f && open_part(distances, upper, d) == 0.0f && !yielding && !yields(solids, near, upper, d);
            float *fraction = &solids->fraction[d][at], *velocity = &solids->velocity[d][at];
            if (open == 1.0f || *fraction == 0.0f || yielding)
                continue;
            /* Flux of the closed part: that of the solid and that of the inlet. */
            const float left = *fraction * open, flux = (1.0f - *fraction) * *velocity;
            *velocity = (flux + (*fraction - left) * (float)inlet->velocity[d]) / (1.0f - left);
            *fraction = left;
            solids->no_slip[at] = 1;
            if (solids->friction)
                solids->friction[at] = 0.0f;
        }
        solids->closed[at] |= (uint8_t)closed;
    }
    solids->plain[slot] = 0;
}

void SK_DIM(sk_solids_copy_slot)(sk_solids *solids, size_t from, size_t to)
{
    const size_t floats = SK_BLOCK_CELLS * sizeof(float), source = from * SK_BLOCK_CELLS, target = to * SK_BLOCK_CELLS;
    for (int d = 0; d < SELKIE_DIM; d++) {
        memcpy(solids->fraction[d] + target, solids->fraction[d] + source, floats);
        memcpy(solids->velocity[d] + target, solids->velocity[d] + source, floats);
        if (solids->blur_faces)
            memcpy(solids->blurred_face[d] + target, solids->blurred_face[d] + source, floats);
    }
    memcpy(solids->blurred + target, solids->blurred + source, floats);
    memcpy(solids->distance + target, solids->distance + source, floats);
    memcpy(solids->no_slip + target, solids->no_slip + source, SK_BLOCK_CELLS);
    if (solids->grip)
        memcpy(solids->grip + target, solids->grip + source, floats);
    if (solids->friction)
        memcpy(solids->friction + target, solids->friction + source, floats);
    memcpy(solids->closed + target, solids->closed + source, SK_BLOCK_CELLS);
    if (solids->covered)
        memcpy(solids->covered + target, solids->covered + source, SK_BLOCK_CELLS);
    memcpy(solids->barriers + target, solids->barriers + source, SK_BLOCK_CELLS);
    solids->plain[to] = solids->plain[from];
    solids->split[to] = solids->split[from];
    solids->exact[to] = solids->exact[from];
}

selkie_code SK_DIM(sk_solids_own_slot)(sk_solids *solids, int block, selkie_error *error)
{
    const size_t slot = solids->slot_count;
    SK_TRY(SK_DIM(sk_solids_reserve)(solids, slot + 1, error));
    SK_DIM(sk_solids_copy_slot)(solids, (size_t)solids->block_slot[block], slot);
    solids->block_slot[block] = (int32_t)slot;
    solids->slot_count++;
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_solids_impose)(sk_solids *solids, const sk_grid *grid, selkie_error *error)
{
    for (int b = 1; solids->inlet_count && b < grid->block_count; b++) {
        double corner[3];
        corner_distances distances;
        moving_near near;
        int own = 0;
        block_corner(grid, b, corner);
        for (int i = 0; i < solids->inlet_count; i++) {
            if (!reaches(&solids->inlets[i], grid, corner))
                continue;
            if (!own)
                SK_TRY(SK_DIM(sk_solids_own_slot)(solids, b, error));
            own = 1;
            measure(&solids->inlets[i], grid, corner, &distances);
            find_moving(solids, &solids->inlets[i], grid->cell_size, &near);
            memcpy(near.corner, corner, sizeof near.corner);
            impose(solids, &solids->inlets[i], &distances, &near, (size_t)solids->block_slot[b]);
        }
    }
    return SELKIE_OK;
}
