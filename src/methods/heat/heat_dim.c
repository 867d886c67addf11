/* The heat equation on the grid: coefficients, passes of the solve, and the change of enthalpy.
 *
 * Unknowns are the changes of temperature u of cells that are not in the melting range:
 *
 *   (C / slope + sum of faces + surfaces) u - sum of faces x u beside = sum of faces x (T beside - T) + surfaces - C o
 *
 * with the heat capacity C in units of the conductance of a full face during the step, T at the start (the melting
 * point in the melting range, where u = 0), and o the difference between the enthalpy that the phase of this pass has
 * at T and that at the start.
 */
#include <math.h>

#include "grid/tile.h"
#include "methods/heat/heat_plain.h"

SK_TILE_LOADER(load_doubles, double)

/* --- Coefficients --- */

static void find_filled(const sk_heat_solve *s, int block)
{
    const sk_heat_cells *cells = &s->cells;
    for (size_t n = (size_t)block * SK_BLOCK_CELLS; n < (size_t)(block + 1) * SK_BLOCK_CELLS; n++)
        cells->filled[n] = sk_heat_filled((float)(cells->capacity[n] / s->heat->full_capacity));
}

/* Coefficients of the lower faces of a block along an axis. */
static void find_faces_along(const sk_heat_solve *s, int block, int d, const float *filled)
{
    const sk_step *step = s->step;
    const sk_heat_cells *cells = &s->cells;
    const double least = s->heat->least_resistance;
    float *face = cells->face[d] + (size_t)block * SK_BLOCK_CELLS;
    float open[SK_BLOCK_CELLS];
    for (int c = 0; c < SK_BLOCK_CELLS; c++)
        open[c] = 1.0f;
    if (step->solids.block_slot[block])
        SK_PLAIN_EACH_CELL(cell, block)
    open[cell.local] = open_fraction_at(step, cell, d);

    if (s->is_alike) {
        const float one =
            sk_heat_face(1.0f, 1.0f, 1.0f, s->heat->curves->resistance, s->heat->curves->resistance, least);
        for (int row = 0; row < SK_BLOCK_CELLS; row += SK_BLOCK_N) {
            const float *above = filled + heat_tile_index(row), *below = above - heat_tile_step(d);
            for (int i = 0; i < SK_BLOCK_N; i++)
                face[row + i] = open[row + i] * (below[i] < above[i] ? below[i] : above[i]) * one;
        }
        return;
    }
    double resistance[SK_TILE_VALUES(1)];
    load_doubles(&step->grid, cells->resistance, block, 1, resistance);
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        const int n = heat_tile_index(c), below = n - heat_tile_step(d);
        face[c] = filled[n] > 0.0f && filled[below] > 0.0f
                      ? sk_heat_face(open[c], filled[below], filled[n], resistance[below], resistance[n], least)
                      : 0.0f;
    }
}

/* Coefficients of the lower faces, and of surfaces and air. */
static void find_faces(const sk_heat_solve *s, int block)
{
    const sk_step *step = s->step;
    const sk_heat_cells *cells = &s->cells;
    float filled[SK_TILE_VALUES(1)];
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    const int near_solid = step->solids.block_slot[block] != 0;

    if (cells->empty[block]) {
        for (int d = 0; d < SELKIE_DIM; d++)
            memset(cells->face[d] + base, 0, SK_BLOCK_CELLS * sizeof(float));
        memset(cells->outside + base, 0, SK_BLOCK_CELLS * sizeof(float));
        memset(cells->supply + base, 0, SK_BLOCK_CELLS * sizeof(double));
        return;
    }
    sk_tile_load(&step->grid, cells->filled, block, 1, filled);
    memset(cells->outside + base, 0, SK_BLOCK_CELLS * sizeof(float));
    memset(cells->supply + base, 0, SK_BLOCK_CELLS * sizeof(double));
    for (int d = 0; d < SELKIE_DIM; d++)
        find_faces_along(s, block, d, filled);
    if (!near_solid && !heat_has_air(step))
        return;
    SK_PLAIN_EACH_CELL(cell, block)
    heat_add_outside(s, s->obstacles != NULL, cell, filled, heat_tile_index(cell.local));
}

/* --- A pass --- */

/* build_rows() where all cells are of one material that never melts: without branches, for vectors. */
static double build_alike(const sk_heat_solve *s, size_t base, const float *const face[3], const double *temperature)
{
    const sk_heat_cells *cells = &s->cells;
    double largest[SK_BLOCK_N] = {0.0};
    for (int row = 0; row < SK_BLOCK_CELLS; row += SK_BLOCK_N) {
        const int first = heat_tile_index(row);
        const double *capacities = cells->capacity + base + row, *supply = cells->supply + base + row;
        const float *outsides = cells->outside + base + row;
        float *diagonal = cells->diagonal + base + row, *right = cells->right + base + row;
        float *solution = cells->solution + base + row;
        for (int i = 0; i < SK_BLOCK_N; i++) {
            double flux;
            const double sum = heat_sum_faces(face, temperature, first + i, &flux), outside = (double)outsides[i];
            const int is_none = !(capacities[i] > 0.0);
            const float own = (float)(capacities[i] * s->unit + sum + outside);
            const float heat = (float)(flux + supply[i] - outside * temperature[first + i]);
            const double share = sum / (double)own;
            diagonal[i] = is_none ? 0.0f : own;
            right[i] = is_none ? 0.0f : heat;
            solution[i] = is_none ? 0.0f : heat / own;
            largest[i] = !is_none && share > largest[i] ? share : largest[i];
        }
    }
    double most = 0.0;
    for (int i = 0; i < SK_BLOCK_N; i++)
        most = fmax(most, largest[i]);
    return most;
}

/* The passes of a step. */
typedef struct heat_passes {
    int is_again;     /* a further pass: the solution of the last one is a start */
    uint8_t *reached; /* [blocks] HEAT_KEPT and so on */
    int *changed;     /* [blocks] cells that changed their phase in the last pass */
    uint8_t *marks;   /* [blocks] scratch */
} heat_passes;

/* Rows of a block, and the solution without neighbours, or that of the last pass. Returns the largest sum of faces over
 * the diagonal. */
static double build_rows(const sk_heat_solve *s, int is_again, int block)
{
    const sk_grid *grid = &s->step->grid;
    const sk_heat_cells *cells = &s->cells;
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    float faces[SELKIE_DIM][SK_TILE_VALUES(1)];
    const float *face[3] = {faces[0], faces[1], faces[SELKIE_DIM - 1]};
    double temperature[SK_TILE_VALUES(1)];
    if (cells->empty[block]) {
        memset(cells->diagonal + base, 0, SK_BLOCK_CELLS * sizeof(float));
        memset(cells->right + base, 0, SK_BLOCK_CELLS * sizeof(float));
        memset(cells->solution + base, 0, SK_BLOCK_CELLS * sizeof(float));
        return 0.0;
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        sk_tile_load(grid, cells->face[d], block, 1, faces[d]);
    load_doubles(grid, cells->temperature, block, 1, temperature);

    if (s->is_alike)
        return build_alike(s, base, face, temperature);
    double largest = 0.0;
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        const size_t here = base + (size_t)c;
        const float last = is_again ? cells->solution[here] : 0.0f;
        const double share = heat_build_row(s, here, face, temperature, heat_tile_index(c));
        if (last != 0.0f && cells->diagonal[here] > 0.0f)
            cells->solution[here] = last;
        largest = share > largest ? share : largest;
    }
    return largest;
}

/* A sweep over a block, from one array to the other, which holds the values of the sweep before. */
static void sweep_block(const sk_heat_solve *s, int block, float step, const float *from, float *to)
{
    const sk_grid *grid = &s->step->grid;
    const sk_heat_cells *cells = &s->cells;
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    float faces[SELKIE_DIM][SK_TILE_VALUES(1)], solution[SK_TILE_VALUES(1)];
    const float *face[3] = {faces[0], faces[1], faces[SELKIE_DIM - 1]};
    if (cells->empty[block]) {
        memset(to + base, 0, SK_BLOCK_CELLS * sizeof(float));
        return;
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        sk_tile_load(grid, cells->face[d], block, 1, faces[d]);
    sk_tile_load(grid, from, block, 1, solution);
    for (int row = 0; row < SK_BLOCK_CELLS; row += SK_BLOCK_N) {
        const int first = heat_tile_index(row);
        const float *diagonal = cells->diagonal + base + row, *right = cells->right + base + row;
        float *result = to + base + row;
        for (int i = 0; i < SK_BLOCK_N; i++)
            result[i] = heat_sweep_cell(face, solution, first + i, diagonal[i], right[i], result[i], step);
    }
}

/* Sweeps cost less than a cycle of the multigrid solver where heat spreads little. */
static void sweep_rows(sk_heat_solve *s, const heat_passes *passes, double share)
{
    const int blocks = s->step->grid.block_count;
    int sweeps = heat_sweeps(share, s->step->scene->heat.tolerance);
    double step = 1.0;

    /* Blocks that are kept have a place in one array: the other takes it too, and an even number of sweeps ends there.
     */
    if (passes->is_again) {
        sweeps += sweeps % 2;
        for (int b = 1; b < blocks; b++)
            if (passes->reached[b] == HEAT_BESIDE_SOLVED)
                memcpy(s->cells.other + (size_t)b * SK_BLOCK_CELLS, s->cells.solution + (size_t)b * SK_BLOCK_CELLS,
                       SK_BLOCK_CELLS * sizeof(float));
    }
    for (int n = 0; n < sweeps; n++) {
#pragma omp parallel for num_threads(s->step->threads) schedule(dynamic, 4)
        for (int b = 1; b < blocks; b++)
            if (passes->reached[b] == HEAT_SOLVED)
                sweep_block(s, b, (float)step, s->cells.solution, s->cells.other);
        float *done = s->cells.other;
        s->cells.other = s->cells.solution;
        s->cells.solution = done;
        step = heat_next_step(share, n, step);
    }
}

/* find_changes() where all cells are of one material that never melts. */
static void change_alike(const sk_heat_solve *s, size_t base, const float *const face[3], const double *temperature)
{
    const sk_heat_cells *cells = &s->cells;
    for (int row = 0; row < SK_BLOCK_CELLS; row += SK_BLOCK_N) {
        const int first = heat_tile_index(row);
        const double *capacities = cells->capacity + base + row, *supply = cells->supply + base + row;
        const float *outsides = cells->outside + base + row;
        double *change = cells->change + base + row;
        for (int i = 0; i < SK_BLOCK_N; i++) {
            double flux;
            heat_sum_faces(face, temperature, first + i, &flux);
            flux += supply[i] - (double)outsides[i] * temperature[first + i];
            change[i] = capacities[i] > 0.0 ? flux / (capacities[i] * s->unit) : 0.0;
        }
    }
}

/* Changes of enthalpy from the fluxes at the new temperatures, and the phases for the next pass. Returns how many
 * changed. */
static int find_changes(const sk_heat_solve *s, int block)
{
    const sk_grid *grid = &s->step->grid;
    const sk_heat_cells *cells = &s->cells;
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    float faces[SELKIE_DIM][SK_TILE_VALUES(1)], solution[SK_TILE_VALUES(1)];
    const float *face[3] = {faces[0], faces[1], faces[SELKIE_DIM - 1]};
    double temperature[SK_TILE_VALUES(1)];
    int changed = 0;
    if (cells->empty[block]) {
        memset(cells->change + base, 0, SK_BLOCK_CELLS * sizeof(double));
        return 0;
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        sk_tile_load(grid, cells->face[d], block, 1, faces[d]);
    load_doubles(grid, cells->temperature, block, 1, temperature);
    sk_tile_load(grid, cells->solution, block, 1, solution);
    for (int n = 0; n < SK_TILE_VALUES(1); n++)
        temperature[n] += (double)solution[n];
    if (s->is_alike) {
        change_alike(s, base, face, temperature);
        return 0;
    }
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        const size_t here = base + (size_t)c;
        const int n = heat_tile_index(c);
        cells->change[here] = heat_change(s, here, face, temperature, n);
        changed += heat_note_phase(s, here, temperature[n]);
    }
    return changed;
}

static void take_phases(const sk_heat_solve *s, int block)
{
    for (size_t n = (size_t)block * SK_BLOCK_CELLS; n < (size_t)(block + 1) * SK_BLOCK_CELLS; n++)
        heat_take_phase(s, n);
}

static selkie_code solve_rows(sk_heat_solve *s, selkie_error *error)
{
    sk_step *step = s->step;
    const sk_poisson_system system = {.block_count = step->grid.block_count,
                                      .coordinates = (const int32_t(*)[4])step->grid.coordinates,
                                      .faces = (const int32_t(*)[6])step->grid.faces,
                                      .face = {s->cells.face[0], s->cells.face[1], s->cells.face[2]},
                                      .diagonal = s->cells.diagonal,
                                      .right_side = s->cells.right,
                                      .solution = s->cells.solution};
    const sk_poisson_options options = {.tolerance = step->scene->heat.tolerance,
                                        .norm = SELKIE_NORM_RELATIVE,
                                        .max_iterations = step->scene->pressure.max_iterations,
                                        .warm_start = 1,
                                        .threads = step->threads,
                                        .backend = step->backend};
    SK_TRY(SK_DIM(sk_poisson_solve)(step->solver, &system, &options, &s->heat->report, error));
    return sk_heat_judge(step, &s->heat->report, error);
}

/* Is a block, or one beside it, marked? */
static int is_beside(const sk_grid *grid, const uint8_t *marks, int block)
{
    int any = 0;
    for (int n = 0; n < SK_NEIGHBOURS; n++)
        any |= marks[grid->neighbours[block][n]];
    return any;
}

/* Where the sweeps of the last pass sufficed, cells that changed their phase matter in their block and those beside it:
 * beyond, SK_HEAT_MOST_SHARE to the power of a block's cells is left of a change. */
static void choose_blocks(const sk_heat_solve *s, const heat_passes *passes)
{
    const sk_grid *grid = &s->step->grid;
    const int blocks = grid->block_count;
    uint8_t *marks = passes->marks, *reached = passes->reached;
    marks[0] = reached[0] = 0;
    for (int b = 1; b < blocks; b++)
        marks[b] = passes->changed[b] > 0;
    for (int b = 1; b < blocks; b++)
        reached[b] = is_beside(grid, marks, b) ? HEAT_SOLVED : HEAT_KEPT;
    for (int b = 1; b < blocks; b++)
        marks[b] = reached[b] == HEAT_SOLVED;
    for (int b = 1; b < blocks; b++)
        if (!marks[b] && is_beside(grid, marks, b))
            reached[b] = HEAT_BESIDE_SOLVED;
}

/* The first pass solves all blocks. */
static selkie_code begin_passes(const sk_heat_solve *s, heat_passes *passes, selkie_error *error)
{
    const size_t blocks = (size_t)s->step->grid.block_count;
    SK_TRY(sk_step_scratch(s->step, blocks, "heat", (void **)&passes->marks, error));
    SK_TRY(sk_step_scratch(s->step, blocks, "heat", (void **)&passes->reached, error));
    SK_TRY(sk_step_scratch(s->step, blocks * sizeof *passes->changed, "heat", (void **)&passes->changed, error));
    memset(passes->reached, HEAT_SOLVED, blocks);
    return SELKIE_OK;
}

/* Passes until no cell changes its phase. */
static selkie_code solve(sk_heat_solve *s, selkie_error *error)
{
    const int blocks = s->step->grid.block_count;
    double share = 0.0;
    heat_passes passes;
    SK_TRY(begin_passes(s, &passes, error));
    for (int pass = 0; pass < HEAT_MOST_PASSES; pass++) {
        int changed = 0;
        passes.is_again = pass > 0;
        if (passes.is_again && share <= SK_HEAT_MOST_SHARE)
            choose_blocks(s, &passes);
#pragma omp parallel for num_threads(s->step->threads) schedule(dynamic, 4) reduction(max : share)
        for (int b = 1; b < blocks; b++)
            if (passes.reached[b] == HEAT_SOLVED)
                share = fmax(share, build_rows(s, passes.is_again, b));
        if (share > SK_HEAT_MOST_SHARE) {
            memset(passes.reached, HEAT_SOLVED, (size_t)blocks);
            SK_TRY(solve_rows(s, error));
        } else
            sweep_rows(s, &passes, share);
#pragma omp parallel for num_threads(s->step->threads) schedule(dynamic, 4) reduction(+ : changed)
        for (int b = 1; b < blocks; b++) {
            passes.changed[b] = passes.reached[b] != HEAT_KEPT ? find_changes(s, b) : 0;
            changed += passes.changed[b];
        }
        s->heat->passes = pass + 1;
        if (!changed)
            break;
#pragma omp parallel for num_threads(s->step->threads) schedule(static)
        for (int b = 1; b < blocks; b++)
            if (passes.reached[b] != HEAT_KEPT)
                take_phases(s, b);
    }
    return SELKIE_OK;
}

/* --- Thermal expansion --- */

/* The loss of weight of each cell, expansion x (temperature - mean of all that expands): the liquid as a whole weighs
 * what it weighs. */
static selkie_code find_lightness(const sk_heat_solve *s, selkie_error *error)
{
    sk_step *step = s->step;
    const sk_heat_cells *cells = &s->cells;
    const int blocks = step->grid.block_count;
    float *lightness = step->grid.fields[s->heat->lightness];
    double(*sums)[2], total[2] = {0.0, 0.0};
    SK_TRY(sk_step_scratch(step, (size_t)blocks * sizeof *sums, "heat", (void **)&sums, error));
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int b = 1; b < blocks; b++) {
        sums[b][0] = sums[b][1] = 0.0;
        for (size_t n = (size_t)b * SK_BLOCK_CELLS; n < (size_t)(b + 1) * SK_BLOCK_CELLS; n++) {
            const double weight = s->heat->curves[cells->material[n]].expansion * cells->capacity[n];
            sums[b][0] += weight;
            sums[b][1] += weight * cells->temperature[n];
        }
    }
    for (int b = 1; b < blocks; b++)
        for (int i = 0; i < 2; i++)
            total[i] += sums[b][i];
    const double mean = total[0] != 0.0 ? total[1] / total[0] : 0.0;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (size_t n = SK_BLOCK_CELLS; n < (size_t)blocks * SK_BLOCK_CELLS; n++)
        lightness[n] = cells->capacity[n] > 0.0
                           ? (float)(s->heat->curves[cells->material[n]].expansion * (cells->temperature[n] - mean))
                           : __builtin_nanf("");
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_heat_expand)(sk_step *step, selkie_error *error)
{
    const sk_heat *heat = sk_step_state(step, &sk_method_heat);
    const sk_grid *grid = &step->grid;
    const float *lightness = grid->fields[heat->lightness];
    (void)error;
    if (!(step->dt > 0.0)) /* the world only measures */
        return SELKIE_OK;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b < grid->block_count; b++) {
        float tile[SK_TILE_VALUES(1)];
        sk_tile_load(grid, lightness, b, 1, tile);
        for (int d = 0; d < SELKIE_DIM; d++) {
            const float kick = (float)(-step->scene->gravity[d] * sk_step_kick(step));
            float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d] + (size_t)b * SK_BLOCK_CELLS;
            for (int c = 0; kick != 0.0f && c < SK_BLOCK_CELLS; c++)
                velocity[c] += kick * sk_heat_face_lightness(tile[heat_tile_index(c) - heat_tile_step(d)],
                                                             tile[heat_tile_index(c)]);
        }
    }
    return SELKIE_OK;
}

/* --- The phase --- */

/* Scratch for all cells; the empty block 0 is 0. */
static selkie_code take_cells(sk_step *step, sk_heat_cells *cells, selkie_error *error)
{
    double **doubles[] = {&cells->capacity,    &cells->enthalpy,   &cells->change,
                          &cells->temperature, &cells->resistance, &cells->supply};
    float **floats[] = {&cells->outside,  &cells->filled, &cells->face[0],  &cells->face[1], &cells->face[2],
                        &cells->diagonal, &cells->right,  &cells->solution, &cells->other};
    uint8_t **bytes[] = {&cells->material, &cells->phase};
    const size_t count = (size_t)step->grid.block_count * SK_BLOCK_CELLS;
    for (size_t n = 0; n < sizeof doubles / sizeof *doubles; n++) {
        SK_TRY(sk_step_scratch(step, count * sizeof(double), "heat", (void **)doubles[n], error));
        memset(*doubles[n], 0, SK_BLOCK_CELLS * sizeof(double));
    }
    for (size_t n = 0; n < sizeof floats / sizeof *floats; n++) {
        SK_TRY(sk_step_scratch(step, count * sizeof(float), "heat", (void **)floats[n], error));
        memset(*floats[n], 0, SK_BLOCK_CELLS * sizeof(float));
    }
    for (size_t n = 0; n < sizeof bytes / sizeof *bytes; n++) {
        SK_TRY(sk_step_scratch(step, count, "heat", (void **)bytes[n], error));
        memset(*bytes[n], 0, SK_BLOCK_CELLS);
    }
    SK_TRY(sk_step_scratch(step, (size_t)step->grid.block_count, "heat", (void **)&cells->empty, error));
    cells->empty[0] = 1;
    return SELKIE_OK;
}

/* New particles have a temperature and no enthalpy yet. They widen the range of temperatures. */
static void begin_particles(const sk_step *step, sk_heat *heat)
{
    const sk_heat_attributes a = sk_heat_find_attributes(step);
    double coldest = heat->coldest, warmest = heat->warmest;
    enum { SPAN = 1024 };
#pragma omp parallel for num_threads(step->threads) schedule(static) reduction(min : coldest) reduction(max : warmest)
    for (int64_t first = 0; first < step->particles.count; first += SPAN) {
        const int64_t end = first + SPAN < step->particles.count ? first + SPAN : step->particles.count;
        for (int64_t p = sk_heat_any_new(&a, first, end) ? first : end; p < end; p++)
            if (sk_heat_begin(heat, &a, p)) {
                coldest = fmin(coldest, (double)a.temperature[p]);
                warmest = fmax(warmest, (double)a.temperature[p]);
            }
    }
    heat->coldest = coldest;
    heat->warmest = warmest;
}

/* Cells without room for what their particles have beyond the range, in their order. Returns whether there was any. */
static int limit_blocks(const sk_heat_solve *s)
{
    int changed = 0;
    const sk_grid *grid = &s->step->grid;
    const sk_heat_attributes a = sk_heat_find_attributes(s->step);
    for (int b = 1; b <= grid->particle_blocks; b++) {
        if (!memchr(s->cells.phase + (size_t)b * SK_BLOCK_CELLS, SK_HEAT_BEYOND, SK_BLOCK_CELLS))
            continue;
        changed = 1;
        SK_PLAIN_EACH_CELL(cell, b)
        heat_limit_with_help(s, &a, cell);
    }
    return changed;
}

/* Gives the changes to the particles, then evens out temperatures within cells. */
static void give_changes(const sk_heat_solve *s,
                         void (*scatter)(const sk_step *, const sk_heat *, const sk_heat_cells *, int))
{
    const sk_step *step = s->step;
    const sk_heat_mixing mixing = sk_heat_find_mixing(step, s->heat);
    const int blocks = step->grid.block_count, mixes = mixing.ticks > 0.0;
    /* The solve needs these arrays no more. */
    const sk_heat_ranges ranges = {s->cells.supply, s->cells.enthalpy, s->cells.temperature};
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 1; b < blocks; b++) {
        if (b <= step->grid.particle_blocks)
            scatter(step, s->heat, &s->cells, b);
        if (mixes)
            SK_DIM(sk_heat_measure_block)(step, s->heat, &ranges, b);
    }
    if (limit_blocks(s) && mixes) {
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
        for (int b = 1; b < blocks; b++)
            SK_DIM(sk_heat_measure_block)(step, s->heat, &ranges, b);
    }
    if (mixes)
        SK_DIM(sk_heat_mix)(step, s->heat, &ranges, &mixing);
}

/* Temperatures and heat exchange of the obstacles; NULL = none has a temperature. */
static selkie_code take_obstacles(sk_step *step, const double (**obstacles)[2], selkie_error *error)
{
    double(*own)[2];
    if (!sk_heat_warm_obstacles(step, NULL))
        return SELKIE_OK;
    SK_TRY(sk_step_scratch(step, (size_t)step->solids.obstacle_count * sizeof *own, "heat", (void **)&own, error));
    sk_heat_warm_obstacles(step, own);
    *obstacles = (const double(*)[2])own;
    return SELKIE_OK;
}

typedef struct heat_forms {
    selkie_code (*gather)(sk_step *, const sk_heat *, sk_heat_cells *, selkie_error *);
    void (*scatter)(const sk_step *, const sk_heat *, const sk_heat_cells *, int);
} heat_forms;

static selkie_code run(sk_step *step, const heat_forms *forms, selkie_error *error)
{
    sk_heat *heat = sk_step_state(step, &sk_method_heat);
    const int blocks = step->grid.block_count;
    sk_heat_solve s = {.step = step, .heat = heat};
    if (!(step->dt > 0.0)) /* the world only measures */
        return SELKIE_OK;
    s.is_alike = !heat->several && !heat->melts;
    s.unit = heat->least_resistance / (step->dt * pow(step->grid.cell_size, SELKIE_DIM - 2));
    SK_TRY(take_obstacles(step, &s.obstacles, error));
    SK_TRY(take_cells(step, &s.cells, error));

    /* Particles to cells, and the coefficients. */
    begin_particles(step, heat);
    SK_TRY(forms->gather(step, heat, &s.cells, error));
    if (heat->lightness >= 0)
        SK_TRY(find_lightness(&s, error));
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int b = 1; b < blocks; b++)
        find_filled(&s, b);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b < blocks; b++)
        find_faces(&s, b);

    /* The solve, and the changes back to the particles. */
    SK_TRY(solve(&s, error));
    give_changes(&s, forms->scatter);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_heat_step)(sk_step *step, selkie_error *error)
{
    static const heat_forms tuned = {SK_DIM(sk_heat_gather), SK_DIM(sk_heat_scatter_block)};
    return run(step, &tuned, error);
}

selkie_code SK_DIM(sk_heat_step_plain)(sk_step *step, selkie_error *error)
{
    static const heat_forms plain = {SK_DIM(sk_heat_gather_plain), SK_DIM(sk_heat_scatter_plain)};
    return run(step, &plain, error);
}
