#include "methods/idp/idp.h"

#include "base/dimension.h"
#include "base/random.h"
#include "grid/deal.h"
#include "grid/extrapolate.h"
#include "methods/cells.h"
#include "methods/liquid_system.h"

selkie_code SK_DIM(sk_idp_density)(sk_step *step, selkie_error *error)
{
    sk_transfer_options options = {.density_per_particle = 1.0f / (float)step->particles_per_cell,
                                   .threads = step->threads};
    /* The solids count as if they were liquid, so particles inside them would count twice; the push-out moves them. */
    options.left_out = step->solids.closed;
    options.left_out_slot = step->solids.block_slot;
    options.only_changes = step->density_passes > 0 && !step->solids.obstacle_count;
    return SK_DIM(sk_transfer_density)(&step->grid, &step->particles, &options, error);
}

/* --- overfull cells (sec. 3.2, degenerate configurations) --- */

enum { MOST_ASKED = 4096 }; /* sub-cells that are asked one by one whether a solid is there */

static int64_t sub_cells(int64_t per_axis)
{
    return SELKIE_DIM == 2 ? per_axis * per_axis : per_axis * per_axis * per_axis;
}

/* Which of a cell's sub-cells have their centre outside the solids. Returns how many. */
static int64_t find_open(const sk_step *step, const double corner[3], int64_t per_axis, uint16_t open[MOST_ASKED])
{
    int64_t found = 0;
    for (int64_t s = 0; s < sub_cells(per_axis); s++) {
        double x[3] = {0, 0, 0}, normal[3];
        const int64_t sub[3] = {s % per_axis, s / per_axis % per_axis, s / per_axis / per_axis};
        int obstacle;
        for (int d = 0; d < SELKIE_DIM; d++)
            x[d] = corner[d] + ((double)sub[d] + 0.5) / (double)per_axis * step->grid.cell_size;
        if (sk_solids_distance(&step->solids, x, normal, &obstacle) > 0.0)
            open[found++] = (uint16_t)s;
    }
    return found;
}

/* The velocity that keeps the momentum of the particles: their mean, by mass where masses differ. */
static void mean_velocity(const sk_step *step, const sk_particle *records, int64_t count, double mean[3])
{
    mean[0] = mean[1] = mean[2] = 0.0;
    if (!step->relative_density) {
        for (int64_t p = 0; p < count; p++)
            for (int d = 0; d < SELKIE_DIM; d++)
                mean[d] += records[p].velocity[d] / (double)count;
        return;
    }
    const sk_attribute *material = sk_particles_find_attribute(&step->particles, "material");
    double total = 0.0;
    for (int64_t p = 0; p < count; p++) {
        const double mass = sk_step_mass(step, material, (records - step->particles.records) + p);
        total += mass;
        for (int d = 0; d < SELKIE_DIM; d++)
            mean[d] += mass * records[p].velocity[d];
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        mean[d] /= total;
}

/* Particles that lie nearly in one point get the same displacement for ever, so those of a cell that holds far too many
 * are laid out anew: one near the centre of each of as many sub-cells. In a cell that a solid cuts only the open
 * sub-cells count, finer ones until there are enough, or several particles in each where there are too many to ask.
 * They take the mean velocity of the cell, which keeps its momentum; the paper samples the grid, which has none yet at
 * this point of the step.
 */
static int64_t spread_cell(const sk_step *step, sk_particle *records, int64_t count, const double corner[3], int cut)
{
    uint16_t open[MOST_ASKED];
    int64_t per_axis = 1;
    while (sub_cells(per_axis) < count && !(cut && sub_cells(per_axis + 1) > MOST_ASKED))
        per_axis++;
    int64_t room = sub_cells(per_axis);
    if (cut) {
        while ((room = find_open(step, corner, per_axis, open)) < count && sub_cells(per_axis + 1) <= MOST_ASKED)
            per_axis++;
        if (room == 0)
            return 0; /* a sliver: the push along the surface is all that can be done */
    }
    double mean[3];
    mean_velocity(step, records, count, mean);
    for (int64_t p = 0; p < count; p++) {
        int64_t place = room >= count ? p * room / count : p % room;
        place = cut ? open[place] : place;
        const int64_t sub[3] = {place % per_axis, place / per_axis % per_axis, place / per_axis / per_axis};
        for (int d = 0; d < SELKIE_DIM; d++) {
            float jitter = 0.5f * (sk_random_float(step->scene->seed + (uint64_t)step->step_count, records[p].id,
                                                   (uint64_t)d + 16) -
                                   0.5f);
            records[p].position[d] =
                (float)(corner[d] + ((double)sub[d] + 0.5 + jitter) / (double)per_axis * step->grid.cell_size);
            records[p].velocity[d] = (float)mean[d];
        }
    }
    return count;
}

static int64_t spread_block(const sk_step *step, sk_particle *records, int block)
{
    const sk_grid *grid = &step->grid;
    const float *density = grid->fields[SK_FIELD_DENSITY] + (size_t)block * SK_BLOCK_CELLS;
    const float *blurred = step->solids.blurred + (size_t)step->solids.block_slot[block] * SK_BLOCK_CELLS;
    const float *distance = step->solids.distance + (size_t)step->solids.block_slot[block] * SK_BLOCK_CELLS;
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    /* Does a solid cut the cell? A wall along a face does not. */
    const double whole = step->solids.plain[step->solids.block_slot[block]] ? 0.45 : 0.5 * sqrt((double)SELKIE_DIM);
    const f8 suspect =
        f8_splat(0.999f * (float)step->scene->idp.density_max); /* below this none can be, whatever rounding does */
    int64_t moved = 0;
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        if (c % 8 == 0 && !i8_any(f8_load(density + c) + f8_load(blurred + c) > suspect)) {
            c += 7;
            continue;
        }
        int64_t count = (int64_t)start[c + 1] - start[c];
        if (!(density[c] + blurred[c] > step->scene->idp.density_max) || count <= step->particles_per_cell ||
            step->solids.closed[(size_t)step->solids.block_slot[block] * SK_BLOCK_CELLS + (size_t)c])
            continue;
        int local[3] = {c & SK_BLOCK_MASK, c >> SK_BLOCK_LOG & SK_BLOCK_MASK, c >> (2 * SK_BLOCK_LOG)};
        double corner[3];
        for (int d = 0; d < 3; d++)
            corner[d] = grid->corner[d] + (grid->coordinates[block][d] * grid->extent[d] + local[d]) * grid->cell_size;
        moved += spread_cell(step, records + start[c], count, corner, distance[c] < (float)whole);
    }
    return moved;
}

/* --- particles inside solids (sec. 3.3) --- */

/* The displacement that each closed cell asks for: that of its deepest particle to the surface, half a cell at most
 * (Eq. 13), in cells, into CHANGE_*. Particles in there rest relative to the solid. Returns how many there are: no
 * unknown of the grid sees them, so without this they would gather there for ever. */
static int64_t find_intruders(const sk_step *step, sk_particle *all, int block)
{
    const sk_grid *grid = &step->grid;
    const uint8_t *kinds = grid->kinds + (size_t)block * SK_BLOCK_CELLS;
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    int64_t found = 0;
    for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS]; p++)
        all[p].flags &= ~(uint32_t)SK_PARTICLE_INSIDE;
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        if ((kinds[c] & SK_CELL_KIND_MASK) != SK_CELL_SOLID || start[c] == start[c + 1])
            continue;
        double deepest = INFINITY, push[3] = {0, 0, 0};
        for (uint32_t p = start[c]; p < start[c + 1]; p++) {
            sk_particle *particle = &all[p];
            double x[3] = {particle->position[0], particle->position[1], particle->position[2]}, normal[3], velocity[3];
            int obstacle;
            double distance = sk_solids_distance(&step->solids, x, normal, &obstacle);
            found++;
            particle->flags |= SK_PARTICLE_INSIDE;
            sk_solids_velocity(&step->solids, obstacle, x, velocity);
            for (int d = 0; d < SELKIE_DIM; d++)
                particle->velocity[d] = (float)velocity[d];
            if (distance < deepest) {
                deepest = distance;
                /* Outside the solid, but in a nook that no face of the grid leads to: it must come out as well. */
                double depth = distance < 0.0 ? fmin(-distance / grid->cell_size, 0.5) : 0.5;
                for (int d = 0; d < SELKIE_DIM; d++)
                    push[d] = depth * normal[d];
            }
        }
        for (int d = 0; d < SELKIE_DIM; d++)
            grid->fields[SK_FIELD_CHANGE_X + d][(size_t)block * SK_BLOCK_CELLS + (size_t)c] = (float)push[d];
    }
    return found;
}

/* What a closed face does: the displacement of the solid cell beside it that asks for more. */
static inline f8 pushed_faces(const float *push, int node, int up)
{
    f8 above = f8_load(push + node), below = f8_load(push + node - up);
    return f8_select(f8_abs(above) > f8_abs(below), above, below);
}

/* The part of the liquid that the bound may hide before the correction is repeated. Measured in the double dams at 20
 * ms: with 1e-3 the volume falls by 1.3 % (2D) for a moment when the fronts meet, with 3e-4 by 0.3 %, in 3D with 3e-4
 * by 1.0 %, with 2e-4 by 0.9 %, and no less with 1e-4. */
static const double hidden_share = SELKIE_DIM == 2 ? 3e-4 : 2e-4;

/* --- the solve --- */

/* Density beyond the bound, in thousandths of a cell: whole numbers, so that threads may add them in any order. */
static inline int64_t beyond(f8 total, float most)
{
    f8 over = f8_max(total - most, f8_splat(0.0f)) * 1e3f;
    int64_t sum = 0;
    for (int l = 0; l < 8; l++)
        sum += over[l] < 1e12f ? (int64_t)over[l] : 0;
    return sum;
}

/* The number of particles in eight cells over that at rest. */
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

/* Returns the density beyond the bound, which the solve will not see. */
static int64_t build_block(const sk_step *step, int block, int local, int pushing)
{
    const sk_grid *grid = &step->grid;
    int64_t unseen = 0;
    const uint64_t runs = grid->runs[SK_RUNS_LIQUID][block] & (local ? grid->runs[SK_RUNS_CHOSEN][block] : SK_ALL_RUNS);
    if (!runs) {
        clear_liquid_rows(step, block);
        return 0;
    }
    size_t base = (size_t)block * SK_BLOCK_CELLS;
    const float *density = grid->fields[SK_FIELD_DENSITY] + base, *diagonal = grid->fields[SK_FIELD_DIAGONAL] + base;
    const float *blurred = step->solids.blurred + (size_t)step->solids.block_slot[block] * SK_BLOCK_CELLS;
    float *right = grid->fields[SK_FIELD_RIGHT_SIDE] + base;
    liquid_view view;
    load_liquid_view(step, block, runs, &view);
    build_liquid_rows(step, block, runs, &view);
    const float least = (float)step->scene->idp.density_min, most = (float)step->scene->idp.density_max;
    const float evenness = (float)step->scene->idp.evenness;
    SK_EACH_RUN(c, runs)
    {
        int n = node_of(c);
        i8 beside_air = i8_splat(0);
        for (int d = 0; d < SELKIE_DIM; d++) {
            const int up = node_step[d];
            beside_air |= (f8_load(view.liquid + n - up) == 0.0f) & (f8_load(view.fraction[d] + n) > 0.0f);
            beside_air |= (f8_load(view.liquid + n + up) == 0.0f) & (f8_load(view.fraction[d] + n + up) > 0.0f);
        }
        /* Solids count as if they were liquid; beside air the kernel lacks particles, so there only too much is an
         * error. */
        f8 total = f8_load(density + c) + f8_load(blurred + c);
        if (i8_any((total > most) & (f8_load(diagonal + c) > 0.0f)))
            unseen += beyond(f8_select(f8_load(diagonal + c) > 0.0f, total, f8_splat(0.0f)), most);
        /* The kernel hardly sees whether two cells side by side hold seven and nine particles; where no solid is near,
         * the numbers may have a say (idp.evenness). */
        if (evenness > 0.0f)
            total += f8_select(f8_load(blurred + c) == 0.0f,
                               evenness * (filled_cells(step, block, c) - f8_load(density + c)), f8_splat(0.0f));
        total = f8_max(f8_min(total, f8_splat(most)), f8_select(beside_air, f8_splat(1.0f), f8_splat(least)));
        f8_store(right + c, total - 1.0f);
    }
    for (int d = 0; pushing && d < SELKIE_DIM; d++) {
        float push[SK_TILE_VALUES(1)];
        const int up = node_step[d];
        sk_tile_load(grid, grid->fields[SK_FIELD_CHANGE_X + d], block, 1, push);
        SK_EACH_RUN(c, runs)
        {
            int n = node_of(c);
            /* Known flux through the closed parts (Eq. 18), as of a wall that moves. */
            f8 in = (1.0f - f8_load(view.fraction[d] + n)) * pushed_faces(push, n, up);
            f8 out = (1.0f - f8_load(view.fraction[d] + n + up)) * pushed_faces(push, n + up, up);
            f8_store(right + c, f8_load(right + c) + in - out);
        }
    }
    SK_EACH_RUN(c, runs)
    f8_store(right + c, f8_select(f8_load(diagonal + c) > 0.0f, f8_load(right + c), f8_splat(0.0f)));
    return unseen;
}

/* How strongly displacements are lifted over those beside them: see sharpened_descent. */
static const float sharpness = SELKIE_DIM == 2 ? 2.0f / 3.0f : 1.5f;

/* Minus the gradient of the potential across eight lower faces, made good for what the particles will smooth away.
 *
 * A particle moves by the displacements of the faces around it, linear across (constant along the normal). So what
 * arrives of a displacement field on evenly spread particles is its mean over neighbouring faces across the normal with
 * weights 1/6, 2/3, 1/6: a factor of 1 - 2/3 s along each axis across, s = sin^2 of half the wave number. Fields that
 * differ from cell to cell arrive with a third of their strength in 2D and a ninth in 3D, and the error of density that
 * asked for them stays. Taking a quarter of `sharpness` times the second differences away first makes it (1 + 2/3 s) (1
 * - 2/3 s) in 2D, between 0.56 and 1, and (1 + 1.5 (s + t)) (1 - 2/3 s) (1 - 2/3 t) in 3D, between 0.44 and 1.19. (1.5
 * in 2D halves the error once more, but particles then lie less evenly within their cells.) Only differences within the
 * liquid count: a wall or the surface mirrors. */
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
    return liquid_descent(view, potential, n, up) - 0.25f * sharpness * across;
}

/* Displacements on the faces, cells, into VELOCITY_*; unknown where no liquid is near and behind solids. */
static void displacements_of_block(const sk_step *step, int block, int local, int pushing)
{
    const sk_grid *grid = &step->grid;
    size_t base = (size_t)block * SK_BLOCK_CELLS;
    const uint64_t moved_runs = local ? grid->runs[SK_RUNS_MOVED][block] : SK_ALL_RUNS;
    /* Solids that push do so wherever they are. */
    const uint64_t runs = pushing ? SK_ALL_RUNS : grid->runs[SK_RUNS_NEAR][block] & moved_runs;
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
    load_liquid_view(step, block, runs, &view);
    sk_tile_load_rows(grid, grid->fields[SK_FIELD_POTENTIAL], block, &rows, potential);
    /* None goes farther than a cell; beside obstacles half of it, since the flux through a part of a face would throw
     * particles far, and a clump in a nook would jump to and fro as a whole. */
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
            /* Nothing goes through a closed face of the liquid, unless the solid behind it pushes. */
            f8 behind = f8_select(near > 0.0f, f8_splat(0.0f), unknown);
            if (pushing) {
                f8 asked = pushed_faces(push, n, up);
                behind = f8_select(asked != 0.0f, asked, behind);
            }
            f8_store(displacement + c, f8_select(closed, behind, moved));
        }
        for (int side = 0; side < 2; side++) {
            const int wall = wall_index(step, block, d, side);
            for (int n = 0; wall >= 0 && n < SK_BLOCK_CELLS / SK_BLOCK_N; n++)
                displacement[cell_of_plane(d, wall, n)] = 0.0f;
        }
    }
}

/* Behind walls and just above the surface particles go with their neighbours; where there is none, nobody asks. */
static void extrapolate_displacements(sk_step *step, int local)
{
    sk_grid *grid = &step->grid;
    int count = 0;
    int32_t *blocks = step->solids.work; /* room for every block */
    for (int b = 1; b < grid->block_count; b++) {
        int near = 0;
        for (int n = 0; n < SK_NEIGHBOURS && !near; n++)
            near = grid->block_flags[grid->neighbours[b][n]] & SK_BLOCK_LIQUID;
        if (near && (!local || grid->runs[SK_RUNS_MOVED][b]))
            blocks[count++] = b;
    }
    SK_DIM(sk_extrapolate)
    (grid, grid->fields + SK_FIELD_VELOCITY_X, grid->fields + SK_FIELD_FACE_X, SELKIE_DIM, blocks, count,
     grid->runs[SK_RUNS_REACHED], 1, step->threads);
}

/* --- once more, where it is needed --- */

/* Density that a second correction in a step is for (what is beyond the bound, in any case), and how many cells around.
 * Measured in the double dams at 20 ms: fewer cells lose volume (3D: above 1.2, the kernel volume falls to 0.9901 to
 * 0.9907 in four runs instead of 0.9914), more save none. */
static const float needy_density = 1.1f;
enum { region_width = SELKIE_DIM == 2 ? 7 : 3 }; /* odd: layers go to and fro between two masks */

/* Runs of a block with such cells. */
static uint64_t needy_runs(const sk_step *step, int block)
{
    const sk_grid *grid = &step->grid;
    const float *density = grid->fields[SK_FIELD_DENSITY] + (size_t)block * SK_BLOCK_CELLS;
    const float *blurred = step->solids.blurred + (size_t)step->solids.block_slot[block] * SK_BLOCK_CELLS;
    const float most = fminf(needy_density, (float)step->scene->idp.density_max);
    uint64_t needy = 0;
    SK_EACH_RUN(c, grid->runs[SK_RUNS_LIQUID][block])
    needy |= (uint64_t)i8_any(f8_load(density + c) + f8_load(blurred + c) > most) << (c / 8);
    return needy;
}

/* Which cells a further correction of this step has to do with: what the first one has left is near the places where
 * the liquid was squeezed, so it takes those and some cells around them (across x as many as region_width, along x
 * whole rows of the block and of the two beside it). Beyond them the potential is zero: some of the excess leaves the
 * region by its border, a little of it everywhere, and the next step's first correction sees to that. Returns whether
 * there is any. */
static int choose_region(const sk_step *step)
{
    const sk_grid *grid = &step->grid;
    uint64_t *const *runs = grid->runs;
    int found = 0;
    runs[SK_RUNS_CHOSEN][0] = runs[SK_RUNS_SCRATCH][0] = 0;
#pragma omp parallel num_threads(step->threads)
    {
#pragma omp for schedule(static) reduction(| : found)
        for (int b = 1; b < grid->block_count; b++) {
            runs[SK_RUNS_SCRATCH][b] = needy_runs(step, b);
            found |= runs[SK_RUNS_SCRATCH][b] != 0;
        }
#pragma omp for schedule(static)
        for (int b = 1; b < grid->block_count; b++)
            runs[SK_RUNS_CHOSEN][b] = sk_runs_around(grid, sk_whole_runs(runs[SK_RUNS_SCRATCH], grid->block_count), b);
        for (int layer = 1; layer < region_width; layer++) {
            const uint64_t *from = runs[layer % 2 ? SK_RUNS_CHOSEN : SK_RUNS_SCRATCH];
            uint64_t *to = runs[layer % 2 ? SK_RUNS_SCRATCH : SK_RUNS_CHOSEN];
#pragma omp for schedule(static)
            for (int b = 1; b < grid->block_count; b++)
                to[b] = sk_runs_across(grid, from, b);
        }
#pragma omp for schedule(static)
        for (int b = 1; b < grid->block_count; b++)
            runs[SK_RUNS_MOVED][b] = sk_runs_around(grid, sk_whole_runs(runs[SK_RUNS_CHOSEN], grid->block_count), b);
    }
    return found;
}

/* Particles stay out of solids; those that were inside before are on their way, half a cell at a time, and are only set
 * onto the surface when they are nearly there. */
static void confine_block(const sk_step *step, sk_particle *all, int block, const float low[3], const float high[3])
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    if (!solids->block_slot[block])
        return;
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS]; p++) {
        float *x = all[p].position;
        if (!sk_solids_near(solids, grid, x))
            continue;
        double deepest = all[p].flags & SK_PARTICLE_INSIDE ? 0.5 * grid->cell_size : INFINITY;
        if (sk_solids_push_out_shallow(solids, low, high, deepest, x))
            all[p].flags &= ~(uint32_t)SK_PARTICLE_INSIDE;
    }
}

selkie_code SK_DIM(sk_idp_correct)(sk_step *step, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    const int again = step->density_passes > 0;
    if (!again) {
        step->redistributed = step->pushed_out = 0;
        memset(&step->density_report, 0, sizeof step->density_report);
    }
    step->correct_again = 0;
    if (!sk_step_has_pressure(step))
        return SELKIE_OK;
    sk_particle *records = step->particles.records;
    int64_t spread = 0, intruders = 0;
    int asked = step->scene->idp.redistribute,
        push = step->scene->idp.solids == SELKIE_IDP_PUSH_OUT && step->solids.obstacle_count;
    for (int d = 0; push && d < SELKIE_DIM; d++)
        memset(grid->fields[SK_FIELD_CHANGE_X + d], 0, (size_t)grid->block_count * SK_BLOCK_CELLS * sizeof(float));
    sk_deal deal;
    sk_deal_particle_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads) reduction(+ : spread, intruders)
    SK_EACH_DEALT(b, &deal)
    {
        if (asked)
            spread += spread_block(step, records, b);
        if (push && step->solids.block_slot[b])
            intruders += find_intruders(step, records, b);
    }
    step->redistributed += spread;
    step->pushed_out = again ? step->pushed_out : intruders;
    int pushing = intruders > 0;
    const int local = again && !pushing;
    if (local && !choose_region(step))
        return SELKIE_OK;

    int64_t unseen = 0;
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads) reduction(+ : unseen)
    SK_EACH_DEALT(b, &deal)
    unseen += build_block(step, b, local, pushing);
    const selkie_idp_def *def = &step->scene->idp;
    /* The bound on the right side keeps a correction safe, but what it hides is volume that is lost until later steps,
     * and pressure that pushes where there should be liquid already: when jets meet at large steps a thousandth of the
     * liquid soon is a tenth. So another correction follows at once (passes). */
    step->density_passes++;
    step->correct_again =
        step->density_passes < def->passes &&
        (double)unseen > hidden_share * 1e3 * (double)step->particles.count / step->particles_per_cell;
    double tolerance = def->tolerance > 0.0 ? def->tolerance : step->scene->pressure.tolerance;
    /* The largest error of density left in any cell, as the paper stops its solves. */
    SK_TRY(solve_liquid_system(step, tolerance, SELKIE_NORM_MAX, 1.0, &step->density_report, error));
    if (!step->density_report.converged)
        return sk_fail(
            error, SELKIE_ERROR_DIVERGED,
            "step %lld at %g s: the density solve stopped at an error of %.3g after %d iterations (asked: %g, "
            "pressure.max_iterations %d); raise one of the two",
            (long long)step->step_count + 1, step->time, step->density_report.residual, step->density_report.iterations,
            tolerance, step->scene->pressure.max_iterations);

    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    displacements_of_block(step, b, local, pushing);
    extrapolate_displacements(step, local);
    float low[3], high[3];
    sk_solids_bounds(&step->solids, grid, low, high);
    /* The sort comes next, unless solids push once more. */
    SK_TRY(sk_grid_reserve_leavers(grid, error));
    SK_DIM(sk_transfer_displace)
    (grid, SK_FIELD_VELOCITY_X, &step->particles, low, high, local ? grid->runs[SK_RUNS_MOVED] : NULL,
     !step->solids.obstacle_count, step->threads);
    if (!step->solids.obstacle_count)
        return SELKIE_OK;
    sk_deal_particle_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    confine_block(step, records, b, low, high);
    return SELKIE_OK;
}
