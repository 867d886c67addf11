/* A correction of positions, and the parts of it that both forms share: see idp_parts.h. */
#include "methods/idp/idp_parts.h"

#include "grid/deal.h"
#include "grid/sweep.h"
#include "methods/cells.h"
#include "methods/idp/idp.h"
#include "methods/idp/idp_kernels.h"
#include "methods/sorting.h"

#define SK_IDP_DISTANCE sk_solids_distance
#define SK_IDP_VELOCITY sk_solids_velocity
#define SK_IDP_SWEEP(solids, low, high, from, to) sk_sweep_displacement(solids, low, high, from, to, 0.0)
#include "methods/idp/idp_solids_plain.h"
#include "methods/liquid_system.h"

int64_t SK_DIM(sk_idp_spread_cell)(const sk_step *step, sk_particle *records, int64_t count, const double corner[3],
                                   int cut)
{
    const sk_attribute *material =
        step->relative_density ? sk_particles_find_attribute(&step->particles, "material") : NULL;
    return idp_spread_cell(step, records, material ? material->data + (records - step->particles.records) : NULL, count,
                           corner, cut);
}

/* --- particles inside solids (sec. 3.3) --- */

/* Clears the flags of the last correction. */
static void clear_flags(const sk_grid *grid, sk_particle *all, int block)
{
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS]; p++)
        if (all[p].flags & SK_PARTICLE_INSIDE)
            all[p].flags &= ~(uint32_t)SK_PARTICLE_INSIDE;
}

/* The displacement of each closed cell, in cells, into CHANGE_*: that of its deepest particle to the surface, at most
 * 0.5 (Eq. 13). Particles inside rest relative to the solid. Returns their number. No unknown of the grid covers them,
 * so without this push they would accumulate. */
static int64_t find_intruders(const sk_step *step, sk_particle *all, int block)
{
    const sk_grid *grid = &step->grid;
    const uint8_t *kinds = grid->kinds + (size_t)block * SK_BLOCK_CELLS;
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    int64_t found = 0;
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        if ((kinds[c] & SK_CELL_KIND_MASK) != SK_CELL_SOLID || start[c] == start[c + 1])
            continue;
        found +=
            idp_push_cell(step, all + start[c], start[c + 1] - start[c], (size_t)block * SK_BLOCK_CELLS + (size_t)c);
    }
    return found;
}

/* Does a closed cell of a block have particles? */
static int has_intruders(const sk_step *step, int block)
{
    const uint8_t *kinds = step->grid.kinds + (size_t)block * SK_BLOCK_CELLS;
    const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    int found = 0;
    for (int c = 0; c < SK_BLOCK_CELLS; c++)
        found |= ((kinds[c] & SK_CELL_KIND_MASK) == SK_CELL_SOLID) & (start[c] != start[c + 1]);
    return found;
}

/* Finds the particles in closed cells and their displacements. Most steps have none, and leave CHANGE_* as it is.
 * Returns their number. */
static int64_t push_out(const sk_step *step, sk_particle *records)
{
    const sk_grid *grid = &step->grid;
    int64_t intruders = 0;
    int any = 0;
#pragma omp parallel for num_threads(step->threads) schedule(static) reduction(| : any)
    for (int b = 1; b <= grid->particle_blocks; b++)
        any |= step->solids.block_slot[b] && has_intruders(step, b);
    if (!any)
        return 0;
#pragma omp parallel num_threads(step->threads) reduction(+ : intruders)
    {
#pragma omp for schedule(static)
        for (int b = 0; b < grid->block_count; b++)
            for (int d = 0; d < SELKIE_DIM; d++)
                memset(grid->fields[SK_FIELD_CHANGE_X + d] + (size_t)b * SK_BLOCK_CELLS, 0,
                       SK_BLOCK_CELLS * sizeof(float));
#pragma omp for schedule(dynamic, 8)
        for (int b = 1; b <= grid->particle_blocks; b++)
            if (step->solids.block_slot[b])
                intruders += find_intruders(step, records, b);
    }
    return intruders;
}

/* --- repeated corrections --- */

/* Chooses the cells of a further correction in this step. The first correction leaves errors near squeezed liquid, so
 * the region is those cells and their surroundings: SK_IDP_REGION_WIDTH cells across x, and along x whole rows of the
 * block and its two neighbours. Beyond the region the potential is 0. A little of the excess leaves through its border,
 * and the first correction of the next step removes it. Returns whether there is any. */
static int choose_region(const sk_step *step, const sk_idp_form *form)
{
    const sk_grid *grid = &step->grid;
    uint64_t *const *runs = grid->runs;
    int found = 0;
    runs[SK_RUNS_CHOSEN][0] = runs[SK_RUNS_SCRATCH][0] = 0;

    /* Find the cells that need a correction, then widen the region. */
#pragma omp parallel num_threads(step->threads)
    {
#pragma omp for schedule(static) reduction(| : found)
        for (int b = 1; b < grid->block_count; b++) {
            runs[SK_RUNS_SCRATCH][b] = form->needy_runs(step, b);
            found |= runs[SK_RUNS_SCRATCH][b] != 0;
        }

        /* One cell along all axes; along x, whole rows. */
#pragma omp for schedule(static)
        for (int b = 1; b < grid->block_count; b++)
            runs[SK_RUNS_CHOSEN][b] = sk_runs_around(grid, sk_whole_runs(runs[SK_RUNS_SCRATCH], grid->block_count), b);

        /* One cell across x per layer. */
        for (int layer = 1; layer < SK_IDP_REGION_WIDTH; layer++) {
            const uint64_t *from = runs[layer % 2 ? SK_RUNS_CHOSEN : SK_RUNS_SCRATCH];
            uint64_t *to = runs[layer % 2 ? SK_RUNS_SCRATCH : SK_RUNS_CHOSEN];
#pragma omp for schedule(static)
            for (int b = 1; b < grid->block_count; b++)
                to[b] = sk_runs_across(grid, from, b);
        }

        /* Particles move in the region and in the cells next to it. */
#pragma omp for schedule(static)
        for (int b = 1; b < grid->block_count; b++)
            runs[SK_RUNS_MOVED][b] = sk_runs_around(grid, sk_whole_runs(runs[SK_RUNS_CHOSEN], grid->block_count), b);
    }
    return found;
}

/* --- the correction --- */

/* Cells: at most 1 along each axis. */
static const float farthest_displacement = 1.8f;

/* Extrapolates displacements behind walls and just above the surface, so that particles there move with their
 * neighbours. Blocks without particles nearby are skipped. */
static void extrapolate_displacements(sk_step *step, const sk_idp_form *form, int local)
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
    const sk_extrapolation displacements = {.fields = grid->fields + SK_FIELD_VELOCITY_X,
                                            .scratch = grid->fields + SK_FIELD_FACE_X,
                                            .field_count = SELKIE_DIM,
                                            .blocks = blocks,
                                            .block_count = count,
                                            .wanted = grid->runs[SK_RUNS_REACHED],
                                            .layers = 1,
                                            .threads = step->threads};
    form->extrapolate(grid, &displacements);
}

/* Moves the particles by the displacements; those of bodies stay. None crosses an obstacle. Particles that were
 * inside one move out half a cell at a time. */
static selkie_code displace_particles(sk_step *step, const sk_idp_form *form, int local, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    const int apart = step->solids.obstacle_count && !form->sweeps; /* obstacles are a pass of their own */
    const sk_attribute *frozen = sk_particles_find_attribute(&step->particles, "frozen_at");
    const sk_attribute *body = step->soft ? sk_particles_find_attribute(&step->particles, "body") : NULL;
    sk_displacement by = {.first = SK_FIELD_VELOCITY_X,
                          .runs = local ? grid->runs[SK_RUNS_MOVED] : NULL,
                          .wraps = grid->periodic && !apart,
                          .lists_leavers = !apart,
                          .solids = step->solids.obstacle_count ? &step->solids : NULL,
                          .places = frozen ? frozen->data : NULL,
                          .held = body ? body->data : NULL,
                          .threads = step->threads};
    sk_solids_bounds(&step->solids, grid, by.low, by.high);
    SK_TRY(sk_grid_reserve_leavers(grid, error));
    if (apart)
        sk_sweep_keep_places(&step->solids, grid, &step->particles, farthest_displacement, step->threads);
    form->displace(grid, &step->particles, &by);
    if (apart)
        sk_sweep_places(&step->solids, grid, &step->particles, farthest_displacement, step->threads);
    if (grid->periodic && !by.wraps)
        sk_grid_wrap_particles(grid, &step->particles, step->threads);
    return SELKIE_OK;
}

/* Does a method sort before anything needs the order? */
static int is_sorted_later(const sk_step *step)
{
    return step->sorts_later && !step->correct_again;
}

selkie_code SK_DIM(sk_idp_sort)(sk_step *step, selkie_error *error)
{
    return is_sorted_later(step) ? SELKIE_OK : SK_DIM(sk_sort_particles_again)(step, error);
}

selkie_code SK_DIM(sk_idp_sort_plain)(sk_step *step, selkie_error *error)
{
    return is_sorted_later(step) ? SELKIE_OK : SK_DIM(sk_sort_particles_plain)(step, error);
}

selkie_code SK_DIM(sk_idp_correct_with)(sk_step *step, const sk_idp_form *form, selkie_error *error)
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
    sk_deal deal;
    sk_deal_particle_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads) reduction(+ : spread)
    SK_EACH_DEALT(b, &deal)
    {
        if (asked)
            spread += form->spread(step, records, b);
        if (push && !step->none_inside)
            clear_flags(grid, records, b);
    }
    if (push)
        intruders = push_out(step, records);
    step->redistributed += spread;
    step->none_inside = push && !intruders; /* most steps: they need not look at every particle */
    step->pushed_out = again ? step->pushed_out : intruders;
    int pushing = intruders > 0;
    const int local = again && !pushing;
    if (local && !choose_region(step, form))
        return SELKIE_OK;

    int64_t unseen = 0;
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads) reduction(+ : unseen)
    SK_EACH_DEALT(b, &deal)
    unseen += form->build(step, b, local, pushing);
    const selkie_idp_def *def = &step->scene->idp;
    /* The bound on the right side keeps a correction stable. The density that it hides is lost volume until later
     * steps, and misplaced pressure. When jets meet at large steps, a hidden 0.1 % of the liquid soon grows to 10 %. So
     * another correction follows at once. */
    step->density_passes++;
    step->correct_again =
        step->density_passes < def->passes &&
        (double)unseen > SK_IDP_HIDDEN_SHARE * 1e3 * (double)step->particles.count / step->particles_per_cell;
    double tolerance = def->tolerance > 0.0 ? def->tolerance : step->scene->pressure.tolerance;
    /* The tolerance is the largest density error left in any cell, as in the paper. */
    SK_TRY(solve_liquid_system(step, tolerance, SELKIE_NORM_MAX, 1.0, NULL, &step->density_report, error));
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
    form->displacements(step, b, local, pushing);
    extrapolate_displacements(step, form, local);

    return displace_particles(step, form, local, error);
}
