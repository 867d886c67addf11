/* Rooms of a block's cells and faces, for the tuned forms. For files compiled per dimension. */
#ifndef SK_METHODS_UIC_UIC_SYSTEM_H
#define SK_METHODS_UIC_UIC_SYSTEM_H

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/tile.h"
#include "methods/cells.h"
#include "methods/step.h"
#include "methods/uic/uic_kernels.h"
#include "methods/uic/uic_problem.h"
#include "methods/wall_mirror.h"

/* Room of a block's cells and faces (V_f), with a halo of one cell, folded at the closed walls. */
typedef struct uic_rooms {
    _Alignas(64) float cell[SK_TILE_VALUES(1)];
    float face[SELKIE_DIM][SK_TILE_VALUES(1)];
    mirror_walls walls;
    int has_solid, has_obstacle;
} uic_rooms;

/* Rooms beside flat walls only: every cell is open together with its mirror image. */
static inline __attribute__((unused)) void uic_open_rooms(uic_rooms *rooms)
{
    for (int n = 0; n < SK_TILE_VALUES(1); n++)
        rooms->cell[n] = 1.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        memcpy(rooms->face[d], rooms->cell, sizeof rooms->cell);
    for (int d = 0; rooms->walls.any && d < SELKIE_DIM; d++)
        for (int at = -1; at <= SK_BLOCK_N; at++) {
            const int low = rooms->walls.plane[d][0], high = rooms->walls.plane[d][1];
            /* Up to the mirror image: the first layer behind a wall. */
            const int is_closed = at <= low || (high >= -1 && at >= high),
                      is_beyond = at < low - 1 || (high >= -1 && at > high);
            for (int k = 0; is_closed && k < LAYER_NODES; k++) {
                int n = layer_node(d, at, k);
                rooms->face[d][n] = 0.0f;
                rooms->cell[n] = is_beyond ? 0.0f : rooms->cell[n];
                for (int e = 0; is_beyond && e < SELKIE_DIM; e++)
                    rooms->face[e][n] = 0.0f;
            }
        }
}

static inline __attribute__((unused)) void uic_load_rooms(const sk_step *step, int block, uic_rooms *rooms)
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;

    /* Find out whether solids or obstacles touch the block or its neighbours. */
    rooms->has_solid = rooms->has_obstacle = 0;
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        int slot = solids->block_slot[grid->neighbours[block][n]];
        rooms->has_solid |= slot > 0;
        rooms->has_obstacle |= solids->obstacle_count > 0 && !solids->plain[slot];
    }
    rooms->walls.any = 0;
    if (rooms->has_solid)
        find_mirror_walls(step, block, &rooms->walls);
    if (!rooms->has_obstacle) {
        uic_open_rooms(rooms);
        return;
    }

    /* Rooms are 1 minus the solid fraction. */
    sk_tile_load_mapped(grid, solids->block_slot, solids->blurred, block, 1, rooms->cell);
    for (int n = 0; n < SK_TILE_VALUES(1); n++)
        rooms->cell[n] = 1.0f - rooms->cell[n] > 0.0f ? 1.0f - rooms->cell[n] : 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++) {
        sk_tile_load_mapped(grid, solids->block_slot, solids->blurred_face[d], block, 1, rooms->face[d]);
        for (int n = 0; n < SK_TILE_VALUES(1); n++)
            rooms->face[d][n] = 1.0f - rooms->face[d][n] >= UIC_LEAST_FACE ? 1.0f - rooms->face[d][n] : 0.0f;
    }

    /* Fold the rooms at closed walls and close the faces on them. */
    fold_at_walls(&rooms->walls, -1, rooms->cell);
    for (int d = 0; rooms->walls.any && d < SELKIE_DIM; d++) {
        fold_at_walls(&rooms->walls, d, rooms->face[d]);
        for (int side = 0; side < 2; side++) {
            int plane = rooms->walls.plane[d][side];
            for (int k = 0; plane >= -1 && plane <= SK_BLOCK_N && k < LAYER_NODES; k++)
                rooms->face[d][layer_node(d, plane, k)] = 0.0f;
        }
    }
}

/* The pressure of surface tension around a block (m/s), and which cells are full. */
typedef struct uic_capillary {
    float full[SK_TILE_VALUES(1)], pressure[SK_TILE_VALUES(1)];
} uic_capillary;

/* Returns whether there is any. */
static inline __attribute__((unused)) int uic_load_capillary(const sk_step *step, int block, uic_capillary *capillary)
{
    int any = 0;
    sk_tile_load(&step->grid, step->grid.fields[step->capillary], block, 1, capillary->pressure);
    for (int n = 0; n < SK_TILE_VALUES(1); n++)
        any |= capillary->pressure[n] != 0.0f;
    if (any)
        sk_tile_load(&step->grid, step->grid.fields[step->full_cells], block, 1, capillary->full);
    return any;
}

/* sk_uic_capillary for eight faces. */
SK_VECTOR f8 uic_capillary_push(const uic_capillary *capillary, int n, int up)
{
    f8 low = f8_load(capillary->pressure + n - up), high = f8_load(capillary->pressure + n), none = f8_splat(0.0f);
    i8 full_low = f8_load(capillary->full + n - up) >= 0.0f, full_high = f8_load(capillary->full + n) >= 0.0f;
    f8 known = f8_select(low == 0.0f, high, f8_select(high == 0.0f, low, 0.5f * (low + high)));
    return f8_select(full_high, f8_select(full_low, none, known), f8_select(full_low, -known, none));
}

/* sk_uic_real_mass and sk_uic_solved_mass for eight faces; `at_surface` is sk_uic_surface_mass. */
SK_VECTOR f8 uic_real_mass(f8 room, f8 density)
{
    return f8_max(density, f8_max(UIC_LEAST_FLOWING_DENSITY * room, f8_splat(1e-6f)));
}

SK_VECTOR f8 uic_solved_mass(f8 room, f8 mass, i8 full, f8 at_surface)
{
    f8 even = (UIC_UNEVEN - (room - mass)) * (1.0f / (UIC_UNEVEN - UIC_EVEN));
    even = f8_max(f8_min(even, f8_splat(1.0f)), f8_splat(0.0f));
    f8 light = f8_max(mass, f8_min(UIC_LIGHT * room, 2.0f * mass));
    f8 inside = f8_select(full & (room > 0.0f), mass + even * (room - mass), light);
    return f8_select(at_surface >= 0.0f, at_surface, inside);
}

#endif
