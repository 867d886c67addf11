#include "methods/idp/idp.h"

#include "base/dimension.h"
#include "grid/barriers.h"
#include "grid/deal.h"
#include "grid/extrapolate.h"
#include "methods/cells.h"
#include "methods/idp/idp_kernels.h"
#include "methods/idp/idp_parts.h"
#include "methods/liquid_system.h"

selkie_code SK_DIM(sk_idp_density)(sk_step *step, selkie_error *error)
{
    sk_transfer_options options = {.density_per_particle = 1.0f / (float)step->particles_per_cell,
                                   .threads = step->threads};
    /* Solids count as liquid, so particles inside them would count twice; the push-out moves them. */
    options.left_out = step->solids.closed;
    options.left_out_slot = step->solids.block_slot;
    options.only_changes = step->density_passes > 0 && !step->solids.obstacle_count;
    SK_TRY(SK_DIM(sk_transfer_density)(&step->grid, &step->particles, &options, error));
    if (step->solids.obstacle_count)
        SK_DIM(sk_barriers_recount)(&step->solids, &step->grid, &step->particles, &options);
    return SELKIE_OK;
}

/* --- overfull cells (sec. 3.2, degenerate configurations) --- */

static int64_t spread_block(const sk_step *step, sk_particle *records, int block)
{
    const sk_grid *grid = &step->grid;
    const float *density = grid->fields[SK_FIELD_DENSITY] + (size_t)block * SK_BLOCK_CELLS;
    const float *blurred = step->solids.blurred + (size_t)step->solids.block_slot[block] * SK_BLOCK_CELLS;
    const float *distance = step->solids.distance + (size_t)step->solids.block_slot[block] * SK_BLOCK_CELLS;
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;

    /* Does a solid cut the cell? A wall along a face does not. */
    const double whole = step->solids.plain[step->solids.block_slot[block]] ? 0.45 : 0.5 * sqrt((double)SELKIE_DIM);
    const f8 suspect = f8_splat(
        0.999f * (float)step->scene->idp.density_max); /* below this no cell can be overfull, despite rounding */
    int64_t moved = 0;

    /* Skip runs of eight cells without an overfull one, then cells that need no spread. */
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        if (c % 8 == 0 && !i8_any(f8_load(density + c) + f8_load(blurred + c) > suspect)) {
            c += 7;
            continue;
        }
        int64_t count = (int64_t)start[c + 1] - start[c];
        if (!(density[c] + blurred[c] > step->scene->idp.density_max) || count <= step->particles_per_cell ||
            step->solids.closed[(size_t)step->solids.block_slot[block] * SK_BLOCK_CELLS + (size_t)c])
            continue;

        /* Redistribute the particles of the cell. */
        int local[3] = {c & SK_BLOCK_MASK, c >> SK_BLOCK_LOG & SK_BLOCK_MASK, c >> (2 * SK_BLOCK_LOG)};
        double corner[3];
        for (int d = 0; d < 3; d++)
            corner[d] = grid->corner[d] + (grid->coordinates[block][d] * grid->extent[d] + local[d]) * grid->cell_size;
        moved += SK_DIM(sk_idp_spread_cell)(step, records + start[c], count, corner, distance[c] < (float)whole);
    }
    return moved;
}

/* Push through a closed face: the larger displacement of the solid cells beside it. */
static inline f8 pushed_faces(const float *push, int node, int up)
{
    f8 above = f8_load(push + node), below = f8_load(push + node - up);
    return f8_select(f8_abs(above) > f8_abs(below), above, below);
}

/* --- the solve --- */

/* Density beyond the bound, in 0.001 cells: integers, so that threads may add them in any order. */
static inline int64_t beyond(f8 total, float most)
{
    f8 over = f8_max(total - most, f8_splat(0.0f)) * 1e3f;
    int64_t sum = 0;
    for (int l = 0; l < 8; l++)
        sum += over[l] < 1e12f ? (int64_t)over[l] : 0;
    return sum;
}

/* The number of particles in eight cells over the number at rest. */
static inline f8 filled_cells(const sk_step *step, int block, int c)
{
    if (block > step->grid.particle_blocks)
        return f8_splat(0.0f);
    const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS + c;
    i8 first, next;
    memcpy(&first, start, sizeof first);
    memcpy(&next, start + 1, sizeof next);
    return f8_from_i8(next - first) / (float)step->particles_per_cell;
}

/* sk_idp_lacking_share of eight neighbours behind faces that are open by these fractions; 1 behind closed ones. */
static inline f8 lacking_shares(const liquid_view *view, int node, f8 open, int jumps)
{
    const i8 liquid = f8_load(view->liquid + node) > 0.0f;
    f8 share = f8_select(liquid, f8_splat(1.0f), f8_splat(0.0f));
    if (!jumps) {
        const f8 depth = f8_load(view->depth + node);
        const i8 between = liquid & (depth >= 0.0f) & (depth <= SK_IDP_INSIDE);
        share = f8_select(between, depth * (1.0f / SK_IDP_INSIDE), share);
    }
    return f8_select(open > 0.0f, share, f8_splat(1.0f));
}

/* Returns the density beyond the bound, which is missing from the right side. */
static int64_t build_block(const sk_step *step, int block, int local, int pushing)
{
    const sk_grid *grid = &step->grid;
    int64_t unseen = 0;
    const uint64_t runs = grid->runs[SK_RUNS_LIQUID][block] & (local ? grid->runs[SK_RUNS_CHOSEN][block] : SK_ALL_RUNS);
    if (!runs) {
        clear_liquid_rows(step, block);
        return 0;
    }

    /* The matrix. */
    size_t base = (size_t)block * SK_BLOCK_CELLS;
    const float *density = grid->fields[SK_FIELD_DENSITY] + base, *diagonal = grid->fields[SK_FIELD_DIAGONAL] + base;
    const float *blurred = step->solids.blurred + (size_t)step->solids.block_slot[block] * SK_BLOCK_CELLS;
    float *right = grid->fields[SK_FIELD_RIGHT_SIDE] + base;
    liquid_view view;
    load_liquid_view(step, block, runs, &view);
    build_liquid_rows(step, block, runs, &view);

    /* The right side: the bounded density error. */
    const float least = (float)step->scene->idp.density_min, most = (float)step->scene->idp.density_max;
    const float evenness = (float)step->scene->idp.evenness;
    const int solids = sk_step_has_moving_solids(step), jumps = view.voxel || solids;
    const float slack = sk_idp_slack(solids);
    SK_EACH_RUN(c, runs)
    {
        int n = node_of(c);
        f8 lacking = f8_splat(1.0f);
        for (int d = 0; d < SELKIE_DIM; d++) {
            const int up = node_step[d];
            lacking = f8_min(lacking, lacking_shares(&view, n - up, f8_load(view.fraction[d] + n), jumps));
            lacking = f8_min(lacking, lacking_shares(&view, n + up, f8_load(view.fraction[d] + n + up), jumps));
        }
        /* Solids count as liquid. */
        f8 total = f8_load(density + c) + f8_load(blurred + c);
        if (i8_any((total > most) & (f8_load(diagonal + c) > 0.0f)))
            unseen += beyond(f8_select(f8_load(diagonal + c) > 0.0f, total, f8_splat(0.0f)), most);
        /* The kernel hardly resolves an alternation of 7 and 9 particles between neighbouring cells. Away from solids
         * the particle counts may therefore contribute (idp.evenness). */
        if (evenness > 0.0f)
            total += f8_select(f8_load(blurred + c) == 0.0f,
                               evenness * (filled_cells(step, block, c) - f8_load(density + c)), f8_splat(0.0f));
        const f8 error = f8_max(f8_min(total, f8_splat(most)), f8_splat(least)) - 1.0f;
        const f8 excess = f8_max(2.0f * (error - slack * (1.0f - lacking)), f8_splat(0.0f));
        f8_store(right + c, f8_select(error < 0.0f, lacking * error, f8_min(excess, error)));
    }

    /* The push of the solids. */
    for (int d = 0; pushing && d < SELKIE_DIM; d++) {
        float push[SK_TILE_VALUES(1)];
        const int up = node_step[d];
        sk_tile_load(grid, grid->fields[SK_FIELD_CHANGE_X + d], block, 1, push);
        SK_EACH_RUN(c, runs)
        {
            int n = node_of(c);
            /* Known flux through the closed parts (Eq. 18), as of a moving wall. */
            f8 in = (1.0f - f8_load(view.fraction[d] + n)) * pushed_faces(push, n, up);
            f8 out = (1.0f - f8_load(view.fraction[d] + n + up)) * pushed_faces(push, n + up, up);
            f8_store(right + c, f8_load(right + c) + in - out);
        }
    }

    /* The right side is 0 in cells that are no unknowns. */
    SK_EACH_RUN(c, runs)
    f8_store(right + c, f8_select(f8_load(diagonal + c) > 0.0f, f8_load(right + c), f8_splat(0.0f)));
    return unseen;
}

/* Minus the gradient of the potential across eight lower faces, sharpened to compensate the interpolation to particles.
 *
 * A particle moves by the displacements of the faces around it, interpolated linearly across the normal and constant
 * along it. Evenly spread particles receive the mean over neighbouring faces across the normal with weights 1/6, 2/3,
 * 1/6. Along each axis across, that is a factor of 1 - 2/3 s with s = sin^2 of half the wave number. Fields that
 * alternate from cell to cell keep 33 % of their strength in 2D and 11 % in 3D, and their density error remains.
 *
 * Subtracting SK_IDP_SHARPNESS / 4 times the second differences first gives (1 + 2/3 s) (1 - 2/3 s) in 2D, between 0.56
 * and 1, and (1 + 1.5 (s + t)) (1 - 2/3 s) (1 - 2/3 t) in 3D, between 0.44 and 1.19. In 2D a value of 1.5 halves the
 * error once more, but particles then lie less evenly within their cells. Only differences within the liquid count:
 * walls and the surface mirror.
 */
static inline f8 sharpened_descent(const liquid_view *view, const float *potential, int d, int n)
{
    const int up = node_step[d];
    const float *liquid = view->liquid, *open = view->fraction[d];
    f8 own = f8_load(potential + n - up) - f8_load(potential + n), across = f8_splat(0.0f);
    i8 inside = f8_load(liquid + n) * f8_load(liquid + n - up) * f8_load(open + n) == 1.0f;
    for (int e = 0; e < SELKIE_DIM; e++)
        for (int side = -1; side <= 1 && e != d; side += 2) {
            int m = n + side * node_step[e];
            i8 both = f8_load(liquid + m) * f8_load(liquid + m - up) * f8_load(open + m) == 1.0f;
            f8 other = f8_load(potential + m - up) - f8_load(potential + m);
            across += f8_select(both & inside, other - own, f8_splat(0.0f));
        }
    return liquid_descent(view, potential, n, up) - 0.25f * SK_IDP_SHARPNESS * across;
}

/* Displacements on the faces, cells, into VELOCITY_*; unknown away from liquid and behind solids. */
static void displacements_of_block(const sk_step *step, int block, int local, int pushing)
{
    const sk_grid *grid = &step->grid;
    size_t base = (size_t)block * SK_BLOCK_CELLS;
    const uint64_t moved_runs = local ? grid->runs[SK_RUNS_MOVED][block] : SK_ALL_RUNS;
    /* Solids that push act everywhere. */
    const uint64_t runs = pushing ? SK_ALL_RUNS : grid->runs[SK_RUNS_NEAR][block] & moved_runs;

    /* Runs without displacements are unknown, or at rest in a local correction. */
    for (int d = 0; d < SELKIE_DIM && runs != SK_ALL_RUNS; d++) {
        float *displacement = grid->fields[SK_FIELD_VELOCITY_X + d] + base;
        if (local)
            memset(displacement, 0, SK_BLOCK_CELLS * sizeof(float));
        const f8 unknown = f8_splat(__builtin_nanf(""));
        SK_EACH_RUN(c, moved_runs & ~runs)
        f8_store(displacement + c, unknown);
    }
    if (!runs)
        return;

    liquid_view view;
    float potential[SK_TILE_VALUES(1)], push[SK_TILE_VALUES(1)];
    const sk_tile_rows rows = sk_tile_rows_around(runs);
    load_liquid_cells(step, block, &rows, &view);
    load_fractions_around(step, block, &rows, view.beside_solids, view.fraction);
    sk_tile_load_rows(grid, grid->fields[SK_FIELD_POTENTIAL], block, &rows, potential);

    /* The largest displacement is 1 cell, and 0.5 cells beside obstacles. There the flux through a partly open face
     * would throw particles far, and a clump in a nook would oscillate. */
    const float farthest = step->solids.plain[step->solids.block_slot[block]] ? 1.0f : 0.5f;
    for (int d = 0; d < SELKIE_DIM; d++) {
        float *displacement = grid->fields[SK_FIELD_VELOCITY_X + d] + base;
        const int up = node_step[d];
        if (pushing)
            sk_tile_load(grid, grid->fields[SK_FIELD_CHANGE_X + d], block, 1, push);
        SK_EACH_RUN(c, runs)
        {
            int n = node_of(c);
            f8 near = f8_load(view.liquid + n) + f8_load(view.liquid + n - up), unknown = f8_splat(__builtin_nanf(""));
            f8 descent =
                f8_max(f8_min(sharpened_descent(&view, potential, d, n), f8_splat(farthest)), f8_splat(-farthest));
            f8 moved = f8_select(near > 0.0f, descent, unknown);
            i8 closed = f8_load(view.fraction[d] + n) == 0.0f;
            /* Closed faces of the liquid have displacement 0, unless the solid behind them pushes. */
            f8 behind = f8_select(near > 0.0f, f8_splat(0.0f), unknown);
            if (pushing) {
                f8 asked = pushed_faces(push, n, up);
                behind = f8_select(asked != 0.0f, asked, behind);
            }
            f8_store(displacement + c, f8_select(closed, behind, moved));
        }

        /* Nothing passes a closed wall. */
        for (int side = 0; side < 2; side++) {
            const int wall = wall_index(step, block, d, side);
            for (int n = 0; wall >= 0 && n < SK_BLOCK_CELLS / SK_BLOCK_N; n++)
                displacement[cell_of_plane(d, wall, n)] = 0.0f;
        }
    }
}

/* Runs of a block with cells that need a second correction in a step. */
static uint64_t needy_runs(const sk_step *step, int block)
{
    const sk_grid *grid = &step->grid;
    const float *density = grid->fields[SK_FIELD_DENSITY] + (size_t)block * SK_BLOCK_CELLS;
    const float *blurred = step->solids.blurred + (size_t)step->solids.block_slot[block] * SK_BLOCK_CELLS;
    const float most = fminf(SK_IDP_NEEDY_DENSITY, (float)step->scene->idp.density_max);
    uint64_t needy = 0;
    SK_EACH_RUN(c, grid->runs[SK_RUNS_LIQUID][block])
    needy |= (uint64_t)i8_any(f8_load(density + c) + f8_load(blurred + c) > most) << (c / 8);
    return needy;
}

selkie_code SK_DIM(sk_idp_correct)(sk_step *step, selkie_error *error)
{
    static const sk_idp_form tuned = {.spread = spread_block,
                                      .needy_runs = needy_runs,
                                      .build = build_block,
                                      .displacements = displacements_of_block,
                                      .extrapolate = SK_DIM(sk_extrapolate),
                                      .displace = SK_DIM(sk_transfer_displace),
                                      .sweeps = 1};
    return SK_DIM(sk_idp_correct_with)(step, &tuned, error);
}
