/* The Poisson operator of the liquid, shared by the pressure solve and the density correction.
 *
 * Variational at solids (Batty et al. 2007), ghost fluid at the surface (Enright et al. 2003). The row of a liquid cell
 * is a sum over its faces, with w the open fraction of a face:
 *   w (q_i - q_j)     liquid neighbour
 *   w q_i / theta     air: the surface lies the fraction theta of the way to its centre
 *   0                 closed part: its flux belongs to the right side
 *
 * Where liquids differ in density, the pressure solve multiplies w by the lightness: the reference density over the
 * density of the face. A lighter face gains more velocity from the same pressure difference. The density correction
 * moves volume, not mass, and ignores lightness. For files compiled per dimension.
 */
#ifndef SK_METHODS_LIQUID_SYSTEM_H
#define SK_METHODS_LIQUID_SYSTEM_H

#include <math.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/grid_kernels.h"
#include "grid/runs.h"
#include "methods/cells.h"
#include "methods/liquid_kernels.h"
#include "methods/density_errors.h"
#include "methods/step.h"

/* A block with a halo of one cell, as floats for the vectorised rows. */
typedef struct liquid_view {
    _Alignas(64) float liquid[SK_TILE_VALUES(1)]; /* 1 = unknown of the system, 0 = not */
    float depth[SK_TILE_VALUES(1)];               /* unused for voxels */
    const float *fraction[SELKIE_DIM];
    float beside_solids[SELKIE_DIM][SK_TILE_VALUES(1)]; /* storage of the fractions that are not all 1 */
    int has_moving, voxel;
} liquid_view;

static const float all_open[SK_TILE_VALUES(1)] = {[0 ... SK_TILE_VALUES(1) - 1] = 1.0f};

/* Liquid cells and depths in some rows around a block. Other rows stay undefined. Does not load the open fractions. */
static inline void load_liquid_cells(const sk_step *step, int block, const sk_tile_rows *rows, liquid_view *view)
{
    const sk_grid *grid = &step->grid;
    uint8_t kinds[SK_TILE_VALUES(1)];
    sk_tile_load_rows_bytes(grid, grid->kinds, block, rows, kinds);
    for (int n = 0; n < SK_TILE_VALUES(1); n++)
        view->liquid[n] = (kinds[n] & SK_CELL_KIND_MASK) == SK_CELL_LIQUID ? 1.0f : 0.0f;
    view->voxel = step->scene->pressure.surface == SELKIE_SURFACE_VOXEL;
    if (!view->voxel)
        sk_tile_load_rows(grid, grid->fields[SK_FIELD_DEPTH], block, rows, view->depth);
}

/* Open fractions across axis d where only walls of the domain are near. Walls lie on faces. Fractions behind a wall do
 * not matter, since no liquid is there. */
static inline const float *fractions_beside_walls(const sk_step *step, int block, int d, float *tile)
{
    int found = 0;
    for (int side = 0; side < 2; side++) {
        const int wall = wall_place(step, block, d, side) + 1; /* in the tile */
        if (wall < 0 || wall >= N1)
            continue;
        for (int n = 0; !found && n < SK_TILE_VALUES(1); n++)
            tile[n] = 1.0f;
        found = 1;
        const int within = node_step[d], planes = SK_TILE_VALUES(1) / (within * N1);
        for (int k = 0; k < planes; k++)
            memset(tile + within * (wall + N1 * k), 0, (size_t)within * sizeof *tile);
    }
    return found ? tile : all_open;
}

/* Open fractions of the faces of the cells in some rows of a block, the lower and the upper ones; `tiles` is storage
 * for them. Returns whether a moving solid is near. */
static inline int load_fractions(const sk_step *step, int block, const sk_tile_rows *rows,
                                 float tiles[SELKIE_DIM][SK_TILE_VALUES(1)], const float *fraction[SELKIE_DIM])
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    int plain = solids->plain[solids->block_slot[block]];
    int moving = (size_t)solids->block_slot[block] >= solids->static_count;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int slot = solids->block_slot[grid->faces[block][2 * d + 1]];
        plain &= solids->plain[slot];
        moving |= (size_t)slot >= solids->static_count;
    }
    for (int d = 0; d < SELKIE_DIM; d++) {
        fraction[d] = plain ? fractions_beside_walls(step, block, d, tiles[d]) : tiles[d];
        if (!plain)
            sk_tile_load_faces(grid, solids->block_slot, solids->fraction[d], block, rows, d, tiles[d]);
    }
    return moving;
}

/* The same of the faces across each axis in the cells beside those along the other axes too. */
static inline void load_fractions_around(const sk_step *step, int block, const sk_tile_rows *rows,
                                         float tiles[SELKIE_DIM][SK_TILE_VALUES(1)], const float *fraction[SELKIE_DIM])
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    int plain = solids->plain[solids->block_slot[block]];
    for (int side = 0; side < 2 * SELKIE_DIM; side++)
        plain &= solids->plain[solids->block_slot[grid->faces[block][side]]];
    for (int d = 0; d < SELKIE_DIM; d++) {
        fraction[d] = plain ? fractions_beside_walls(step, block, d, tiles[d]) : tiles[d];
        if (!plain)
            sk_tile_load_rows_mapped(grid, solids->block_slot, solids->fraction[d], block, rows, tiles[d]);
    }
}

/* Loads everything that the runs of a mask need. */
static inline void load_liquid_view(const sk_step *step, int block, uint64_t runs, liquid_view *view)
{
    const sk_tile_rows rows = sk_tile_rows_around(runs);
    load_liquid_cells(step, block, &rows, view);
    view->has_moving = load_fractions(step, block, &rows, view->beside_solids, view->fraction);
}

/* sk_surface_depth for eight cells. */
SK_VECTOR f8 liquid_depths(f8 fill)
{
    const i8 inside = fill >= 0.5f;
    const f8 root = f8_sqrt(2.0f * f8_max(f8_select(inside, 1.0f - fill, fill), f8_splat(0.0f)));
    return f8_select(inside, 1.0f - root, root - 1.0f);
}

/* One over the distance from liquid cells to their neighbours' unknowns, in cells. It exceeds 1 towards air, where the
 * surface is nearer than the neighbour's centre. `other` is the offset to the neighbour. */
SK_VECTOR f8 liquid_slopes(const liquid_view *view, int node, int other, f8 liquid, f8 other_liquid)
{
    i8 surface = (liquid > 0.0f) & (other_liquid == 0.0f);
    if (view->voxel || !i8_any(surface))
        return f8_splat(1.0f);
    /* One over sk_surface_theta_of_depths. */
    f8 inside = f8_load(view->depth + node), outside = f8_load(view->depth + node + other);
    const f8 depth = f8_max(inside, f8_splat(SK_LIQUID_LEAST_DEPTH));
    f8 theta = depth / (depth - outside);
    return f8_select(surface & (inside >= 0.0f) & (outside < 0.0f) & (theta < 1.0f), 1.0f / theta, f8_splat(1.0f));
}

/* Minus the gradient of the solution across eight lower faces, per cell; 0 if neither side is liquid. */
SK_VECTOR f8 liquid_descent(const liquid_view *view, const float *solution, int node, int up)
{
    f8 above = f8_load(view->liquid + node), below = f8_load(view->liquid + node - up);
    /* The solution is 0 outside the liquid, so the difference only needs the scale of the surface's distance. */
    f8 difference = f8_load(solution + node - up) - f8_load(solution + node);
    return difference * liquid_slopes(view, node, -up, above, below) * liquid_slopes(view, node - up, up, below, above);
}

/* Lightness of the faces in a block with a halo of one cell. */
typedef struct face_lightness {
    float tile[SELKIE_DIM][SK_TILE_VALUES(1)];
} face_lightness;

static inline __attribute__((unused)) void load_lightness(const sk_step *step, int block, const sk_tile_rows *rows,
                                                          face_lightness *lightness)
{
    for (int d = 0; d < SELKIE_DIM; d++)
        sk_tile_load_rows(&step->grid, step->grid.fields[SK_FIELD_LIGHTNESS_X + d], block, rows, lightness->tile[d]);
}

/* Faces and diagonal of a block's rows. `lightness` is a compile-time NULL for liquids of one density. The diagonal is
 * 0 outside the given runs and for liquid cells whose faces are all closed. Face coefficients beside a zero diagonal
 * are ignored. */
static inline __attribute__((always_inline)) void build_weighted_rows(const sk_step *step, int block, uint64_t runs,
                                                                      const liquid_view *view,
                                                                      const face_lightness *lightness)
{
    const sk_grid *grid = &step->grid;
    size_t base = (size_t)block * SK_BLOCK_CELLS;
    float *diagonal = grid->fields[SK_FIELD_DIAGONAL] + base;
    memset(diagonal, 0, SK_BLOCK_CELLS * sizeof(float));
    for (int d = 0; d < SELKIE_DIM; d++) {
        float *face = grid->fields[SK_FIELD_FACE_X + d] + base;
        const int up = node_step[d];
        if (SELKIE_DIM == 2 && runs != SK_ALL_RUNS) /* a row has two runs, and the solver reads whole rows */
            memset(face, 0, SK_BLOCK_CELLS * sizeof(float));
        SK_EACH_RUN(c, runs)
        {
            int n = node_of(c);
            f8 own = f8_load(view->liquid + n), lower = f8_load(view->liquid + n - up),
               upper = f8_load(view->liquid + n + up);
            f8 open_lower = f8_load(view->fraction[d] + n), open_upper = f8_load(view->fraction[d] + n + up);
            if (lightness) {
                open_lower *= f8_load(lightness->tile[d] + n);
                open_upper *= f8_load(lightness->tile[d] + n + up);
            }
            f8_store(face + c, own * lower * open_lower);
            f8 sum = open_lower * liquid_slopes(view, n, -up, own, lower) +
                     open_upper * liquid_slopes(view, n, up, own, upper);
            f8_store(diagonal + c, f8_load(diagonal + c) + own * sum);
        }
    }
}

static inline void build_liquid_rows(const sk_step *step, int block, uint64_t runs, const liquid_view *view)
{
    build_weighted_rows(step, block, runs, view, NULL);
}

static inline void measure_density_errors(const sk_step *step, int block, const liquid_view *view,
                                          density_errors *errors)
{
    const float *density = step->grid.fields[SK_FIELD_DENSITY] + (size_t)block * SK_BLOCK_CELLS;
    const float *blurred = step->solids.blurred + (size_t)step->solids.block_slot[block] * SK_BLOCK_CELLS;
    d8 absolute = {0}, squares = {0}, sum = {0};
    f8 largest = f8_splat(0.0f), count = f8_splat(0.0f);

    /* Inner cells only: each open face of theirs leads to another liquid cell. */
    SK_EACH_RUN(c, step->grid.runs[SK_RUNS_LIQUID][block])
    {
        int n = node_of(c);
        i8 inner = f8_load(view->liquid + n) > 0.0f;
        for (int d = 0; d < SELKIE_DIM; d++) {
            const int up = node_step[d];
            inner &= (f8_load(view->liquid + n - up) > 0.0f) | (f8_load(view->fraction[d] + n) == 0.0f);
            inner &= (f8_load(view->liquid + n + up) > 0.0f) | (f8_load(view->fraction[d] + n + up) == 0.0f);
        }

        /* Add their errors, lane by lane. */
        f8 error = f8_select(inner, f8_load(density + c) + f8_load(blurred + c) - 1.0f, f8_splat(0.0f));
        absolute += d8_from_f8(f8_abs(error));
        squares += d8_from_f8(error * error);
        sum += d8_from_f8(error);
        largest = f8_max(largest, f8_abs(error));
        count += f8_select(inner, f8_splat(1.0f), f8_splat(0.0f));
    }

    /* Combine the lanes. */
    errors->absolute = d8_sum(absolute);
    errors->squares = d8_sum(squares);
    errors->sum = d8_sum(sum);
    errors->count = (int64_t)d8_sum(d8_from_f8(count));
    errors->largest = 0.0;
    for (int l = 0; l < 8; l++)
        errors->largest = fmax(errors->largest, largest[l]);
}

/* A block without unknowns. */
static inline void clear_liquid_rows(const sk_step *step, int block)
{
    memset(step->grid.fields[SK_FIELD_DIAGONAL] + (size_t)block * SK_BLOCK_CELLS, 0, SK_BLOCK_CELLS * sizeof(float));
}

/* Solves the system in the grid's fields into SK_FIELD_POTENTIAL. Faces have coefficients of at most `largest_face`.
 * Where gravity was balanced before viscosity, the solver has this matrix already, and the solution is near.
 * `modes`: rigid bodies that the solution moves, or NULL. */
static inline selkie_code solve_liquid_system(sk_step *step, double tolerance, selkie_residual_norm norm,
                                              double largest_face, const sk_poisson_modes *modes,
                                              sk_poisson_report *report, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    sk_poisson_system system = {
        .block_count = grid->block_count,
        .coordinates = (const int32_t(*)[4])grid->coordinates,
        .joined = {sk_grid_joined(grid, 0), sk_grid_joined(grid, 1), sk_grid_joined(grid, 2)},
        .faces = (const int32_t(*)[6])grid->faces,
        .face = {grid->fields[SK_FIELD_FACE_X], grid->fields[SK_FIELD_FACE_Y], grid->fields[SK_FIELD_FACE_Z]},
        .diagonal = grid->fields[SK_FIELD_DIAGONAL],
        .right_side = grid->fields[SK_FIELD_RIGHT_SIDE],
        .solution = grid->fields[SK_FIELD_POTENTIAL],
        .modes = modes,
    };
    sk_poisson_options options = {.tolerance = tolerance,
                                  .norm = norm,
                                  .max_iterations = step->scene->pressure.max_iterations,
                                  .warm_start = step->balanced,
                                  .same_matrix = step->balanced,
                                  .threads = step->threads,
                                  .largest_face = largest_face,
                                  .backend = step->backend};
    return SK_DIM(sk_poisson_solve)(step->solver, &system, &options, report, error);
}

#endif
