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
#include "methods/heat/heat.h"
#include "methods/liquid_plain.h"

enum { MOST_PASSES = 8 };

SK_TILE_LOADER(load_doubles, double)

/* What the phase passes to its loops. */
typedef struct heat_solve {
    sk_step *step;
    sk_heat *heat;
    sk_heat_cells cells;
    double unit; /* K/J  capacity in units of a full face: least resistance / (dt h^(d - 2)) */
    int warm_obstacles;
    int is_alike; /* one material that never melts */
} heat_solve;

static const int tile_step[3] = {1, SK_TILE_N(1), SK_TILE_N(1) * SK_TILE_N(1)};

/* Index of a cell of the block in a tile with a halo of one cell. */
static int tile_index(int cell)
{
    return SK_TILE_ORIGIN(1) + sk_plain_along(cell, 0) + SK_TILE_N(1) * sk_plain_along(cell, 1) +
           (SELKIE_DIM == 3 ? SK_TILE_N(1) * SK_TILE_N(1) * sk_plain_along(cell, 2) : 0);
}

/* --- Coefficients --- */

static void find_filled(const heat_solve *s, int block)
{
    const sk_heat_cells *cells = &s->cells;
    for (size_t n = (size_t)block * SK_BLOCK_CELLS; n < (size_t)(block + 1) * SK_BLOCK_CELLS; n++)
        cells->filled[n] = sk_heat_filled((float)(cells->capacity[n] / s->heat->full_capacity));
}

/* Adds a surface of a given temperature to a cell. */
static void add_surface(const sk_heat_cells *cells, size_t cell, double coefficient, double temperature)
{
    cells->outside[cell] += (float)coefficient;
    /* The same rounded coefficient in both sums. */
    cells->supply[cell] += (double)(float)coefficient * temperature;
}

/* Resistance of a cell towards a surface of a given temperature. In the melting range it is that of the phase beside
 * the surface. */
static double towards(const heat_solve *s, size_t cell, double temperature)
{
    const double resistance = s->cells.resistance[cell];
    const sk_heat_curve *curve = &s->heat->curves[s->cells.material[cell]];
    if (resistance >= 0.0)
        return resistance;
    return temperature > curve->melting ? curve->resistance : curve->solid_resistance;
}

/* Closed sides of the domain with a temperature. */
static void add_walls(const heat_solve *s, sk_plain_cell cell)
{
    const sk_step *step = s->step;
    const selkie_domain_def *domain = &step->scene->domain;
    const size_t here = sk_plain_index(cell);
    int at[3];
    sk_plain_coordinates(&step->grid, cell, at);
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const int d = side / 2, first = step->grid.padding[d];
        if (!(domain->temperature[side] > 0.0) || at[d] != (side % 2 ? first + step->grid.cells[d] - 1 : first))
            continue;
        const double coefficient =
            sk_heat_contact((double)s->cells.filled[here], 0.5, towards(s, here, domain->temperature[side]),
                            domain->heat_exchange[side], step->grid.cell_size, s->heat->least_resistance);
        add_surface(&s->cells, here, coefficient, domain->temperature[side]);
    }
}

/* Obstacles with a temperature. The open fractions of a cell's faces give the area of the surface in it. */
static void add_obstacles(const heat_solve *s, sk_plain_cell cell)
{
    const sk_step *step = s->step;
    const sk_grid *grid = &step->grid;
    const size_t here = sk_plain_index(cell);
    double area2 = 0.0, x[3] = {0.0, 0.0, 0.0}, normal[3];
    int at[3], obstacle;
    sk_plain_coordinates(grid, cell, at);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const sk_plain_cell next = sk_plain_next(grid, cell, d, 1);
        const double low = face_on_wall(step, cell, d) ? 1.0 : (double)open_fraction_at(step, cell, d);
        const double high = face_on_wall(step, next, d) ? 1.0 : (double)open_fraction_at(step, next, d);
        area2 += (high - low) * (high - low);
        x[d] = grid->corner[d] + (at[d] + 0.5) * grid->cell_size;
    }
    if (!(area2 > 1e-4))
        return;
    const double distance = sk_solids_distance(&step->solids, x, normal, &obstacle) / grid->cell_size;
    const selkie_obstacle_def *def = obstacle >= 0 ? step->solids.obstacles[obstacle].def : NULL;
    if (!def || !(def->temperature > 0.0))
        return;
    const double coefficient = sk_heat_contact(sqrt(area2) * (double)s->cells.filled[here], fmax(fabs(distance), 0.1),
                                               towards(s, here, def->temperature), def->heat_exchange, grid->cell_size,
                                               s->heat->least_resistance);
    add_surface(&s->cells, here, coefficient, def->temperature);
}

/* The air over the free surface. Closed faces are none. */
static void add_air(const heat_solve *s, sk_plain_cell cell, const float *filled, int node)
{
    const sk_step *step = s->step;
    const selkie_heat_def *def = &step->scene->heat;
    float beside[2 * SELKIE_DIM];
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const int d = side / 2;
        const int open = open_fraction_at(step, cell_of_side(&step->grid, cell, side), d) > 0.0f;
        beside[side] = filled[open ? node + (side % 2 ? tile_step[d] : -tile_step[d]) : node];
    }
    const double area = (double)sk_heat_free_area(filled[node], beside, SELKIE_DIM);
    if (area > 0.0)
        add_surface(&s->cells, sk_plain_index(cell),
                    area * def->air_exchange * step->grid.cell_size * s->heat->least_resistance, def->air_temperature);
}

/* Coefficients of the lower faces of a block along an axis. */
static void find_faces_along(const heat_solve *s, int block, int d, const float *filled)
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
            const float *above = filled + tile_index(row), *below = above - tile_step[d];
            for (int i = 0; i < SK_BLOCK_N; i++)
                face[row + i] = open[row + i] * (below[i] < above[i] ? below[i] : above[i]) * one;
        }
        return;
    }
    double resistance[SK_TILE_VALUES(1)];
    load_doubles(&step->grid, cells->resistance, block, 1, resistance);
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        const int n = tile_index(c), below = n - tile_step[d];
        face[c] = filled[n] > 0.0f && filled[below] > 0.0f
                      ? sk_heat_face(open[c], filled[below], filled[n], resistance[below], resistance[n], least)
                      : 0.0f;
    }
}

/* Coefficients of the lower faces, and of surfaces and air. */
static void find_faces(const heat_solve *s, int block)
{
    const sk_step *step = s->step;
    const sk_heat_cells *cells = &s->cells;
    float filled[SK_TILE_VALUES(1)];
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    const int near_solid = step->solids.block_slot[block] != 0;
    const int has_air = step->scene->heat.air_temperature > 0.0 && step->scene->heat.air_exchange > 0.0;

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
    if (!near_solid && !has_air)
        return;
    SK_PLAIN_EACH_CELL(cell, block)
    {
        const int n = tile_index(cell.local);
        if (!(filled[n] > 0.0f))
            continue;
        if (near_solid)
            add_walls(s, cell);
        if (near_solid && s->warm_obstacles)
            add_obstacles(s, cell);
        if (has_air)
            add_air(s, cell, filled, n);
    }
}

/* --- A pass --- */

/* Enthalpy that a phase has at a temperature, minus the enthalpy at the start. */
static double phase_offset(const heat_solve *s, size_t cell)
{
    const sk_heat_cells *cells = &s->cells;
    const sk_heat_curve *curve = &s->heat->curves[cells->material[cell]];
    if (cells->phase[cell] == SK_HEAT_MIXED || !curve->melts)
        return 0.0;
    const double above = cells->temperature[cell] - curve->melting;
    const double enthalpy = cells->phase[cell] == SK_HEAT_SOLID ? above / curve->solid_slope : above + curve->latent;
    return enthalpy - cells->enthalpy[cell];
}

/* Sum of the face coefficients of a cell, and of coefficient x difference of temperature. */
static inline __attribute__((always_inline)) double sum_faces(const float *const face[3], const double *temperature,
                                                              int n, double *flux)
{
    double sum = 0.0, heat = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int up = n + tile_step[d], down = n - tile_step[d];
        const double lower = (double)face[d][n], upper = (double)face[d][up];
        sum += lower + upper;
        heat += lower * (temperature[down] - temperature[n]);
        heat += upper * (temperature[up] - temperature[n]);
    }
    *flux = heat;
    return sum;
}

/* build_rows() where all cells are of one material that never melts: without branches, for vectors. */
static double build_alike(const heat_solve *s, size_t base, const float *const face[3], const double *temperature)
{
    const sk_heat_cells *cells = &s->cells;
    double largest[SK_BLOCK_N] = {0.0};
    for (int row = 0; row < SK_BLOCK_CELLS; row += SK_BLOCK_N) {
        const int first = tile_index(row);
        const double *capacities = cells->capacity + base + row, *supply = cells->supply + base + row;
        const float *outsides = cells->outside + base + row;
        float *diagonal = cells->diagonal + base + row, *right = cells->right + base + row;
        float *solution = cells->solution + base + row;
        for (int i = 0; i < SK_BLOCK_N; i++) {
            double flux;
            const double sum = sum_faces(face, temperature, first + i, &flux), outside = (double)outsides[i];
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

/* Rows of a block, and the solution without neighbours. Returns the largest sum of faces over the diagonal. */
static double build_rows(const heat_solve *s, int block)
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
        cells->diagonal[here] = cells->right[here] = cells->solution[here] = 0.0f;
        if (!(cells->capacity[here] > 0.0) || cells->phase[here] == SK_HEAT_MUSHY)
            continue;
        double flux;
        const sk_heat_curve *curve = &s->heat->curves[cells->material[here]];
        const double capacity = cells->capacity[here] * s->unit, outside = (double)cells->outside[here];
        const double sum = sum_faces(face, temperature, tile_index(c), &flux);
        const double slope = sk_heat_slope(curve, cells->phase[here]);
        cells->diagonal[here] = (float)(capacity / slope + sum + outside);
        cells->right[here] = (float)(flux + cells->supply[here] - outside * temperature[tile_index(c)] -
                                     capacity * phase_offset(s, here));
        cells->solution[here] = cells->right[here] / cells->diagonal[here];
        largest = fmax(largest, sum / (double)cells->diagonal[here]);
    }
    return largest;
}

/* A sweep of Jacobi's method over a block, from one array to the other. */
static void sweep_block(const heat_solve *s, int block, const float *from, float *to)
{
    const sk_grid *grid = &s->step->grid;
    const sk_heat_cells *cells = &s->cells;
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    float faces[SELKIE_DIM][SK_TILE_VALUES(1)], solution[SK_TILE_VALUES(1)];
    if (cells->empty[block]) {
        memset(to + base, 0, SK_BLOCK_CELLS * sizeof(float));
        return;
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        sk_tile_load(grid, cells->face[d], block, 1, faces[d]);
    sk_tile_load(grid, from, block, 1, solution);
    for (int row = 0; row < SK_BLOCK_CELLS; row += SK_BLOCK_N) {
        const int first = tile_index(row);
        const float *diagonal = cells->diagonal + base + row, *right = cells->right + base + row;
        float *result = to + base + row;
        for (int i = 0; i < SK_BLOCK_N; i++) {
            const int n = first + i;
            float sum = right[i];
            for (int d = 0; d < SELKIE_DIM; d++)
                sum +=
                    faces[d][n] * solution[n - tile_step[d]] + faces[d][n + tile_step[d]] * solution[n + tile_step[d]];
            result[i] = diagonal[i] > 0.0f ? sum / diagonal[i] : 0.0f;
        }
    }
}

/* Heat spreads little in a short step: `share` is the part of a cell's row that is not its own. Jacobi's method shrinks
 * the error by it in each sweep, and costs less than a cycle of the multigrid solver. */
static const double most_share = 0.2;

static void sweep_rows(heat_solve *s, double share)
{
    const int blocks = s->step->grid.block_count;
    const int sweeps = share > 0.0 ? (int)ceil(log(s->step->scene->heat.tolerance) / log(share)) - 1 : 0;
    for (int n = 0; n < sweeps; n++) {
#pragma omp parallel for num_threads(s->step->threads) schedule(dynamic, 4)
        for (int b = 1; b < blocks; b++)
            sweep_block(s, b, s->cells.solution, s->cells.other);
        float *done = s->cells.other;
        s->cells.other = s->cells.solution;
        s->cells.solution = done;
    }
}

/* find_changes() where all cells are of one material that never melts. */
static void change_alike(const heat_solve *s, size_t base, const float *const face[3], const double *temperature)
{
    const sk_heat_cells *cells = &s->cells;
    for (int row = 0; row < SK_BLOCK_CELLS; row += SK_BLOCK_N) {
        const int first = tile_index(row);
        const double *capacities = cells->capacity + base + row, *supply = cells->supply + base + row;
        const float *outsides = cells->outside + base + row;
        double *change = cells->change + base + row;
        for (int i = 0; i < SK_BLOCK_N; i++) {
            double flux;
            sum_faces(face, temperature, first + i, &flux);
            flux += supply[i] - (double)outsides[i] * temperature[first + i];
            change[i] = capacities[i] > 0.0 ? flux / (capacities[i] * s->unit) : 0.0;
        }
    }
}

/* Changes of enthalpy from the fluxes at the new temperatures, and the phases for the next pass. Returns how many
 * changed. */
static int find_changes(const heat_solve *s, int block)
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
        const int n = tile_index(c);
        double flux;
        cells->change[here] = 0.0;
        if (!(cells->capacity[here] > 0.0))
            continue;
        sum_faces(face, temperature, n, &flux);
        flux += cells->supply[here] - (double)cells->outside[here] * temperature[n];
        cells->change[here] = flux / (cells->capacity[here] * s->unit);
        const sk_heat_curve *curve = &s->heat->curves[cells->material[here]];
        const int next =
            sk_heat_next_phase(curve, cells->phase[here], cells->enthalpy[here] + cells->change[here], temperature[n]);
        /* The highest bits hold the next phase until all cells are done. */
        cells->phase[here] = (uint8_t)(cells->phase[here] | next << 4);
        changed += next != (cells->phase[here] & 15);
    }
    return changed;
}

/* Takes the next phases, with the temperature that the next pass starts from. */
static void take_phases(const heat_solve *s, int block)
{
    const sk_heat_cells *cells = &s->cells;
    for (size_t n = (size_t)block * SK_BLOCK_CELLS; n < (size_t)(block + 1) * SK_BLOCK_CELLS; n++) {
        const uint8_t both = cells->phase[n];
        if (!(cells->capacity[n] > 0.0))
            continue;
        cells->phase[n] = both >> 4;
        if ((both & 15) != both >> 4 && both >> 4 == SK_HEAT_MUSHY)
            cells->temperature[n] = s->heat->curves[cells->material[n]].melting;
    }
}

static selkie_code solve_rows(heat_solve *s, selkie_error *error)
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
    if (!s->heat->report.converged)
        return sk_fail(error, SELKIE_ERROR_DIVERGED,
                       "step %lld at %g s: the heat solve stopped at a residual of %.3g after %d iterations; raise "
                       "pressure.max_iterations (now %d) or heat.tolerance (now %g)",
                       (long long)step->step_count + 1, step->time, s->heat->report.residual,
                       s->heat->report.iterations, options.max_iterations, options.tolerance);
    return SELKIE_OK;
}

/* Passes until no cell changes its phase. */
static selkie_code solve(heat_solve *s, selkie_error *error)
{
    const int blocks = s->step->grid.block_count;
    for (int pass = 0; pass < MOST_PASSES; pass++) {
        int changed = 0;
        double share = 0.0;
#pragma omp parallel for num_threads(s->step->threads) schedule(dynamic, 4) reduction(max : share)
        for (int b = 1; b < blocks; b++)
            share = fmax(share, build_rows(s, b));
        if (share > most_share)
            SK_TRY(solve_rows(s, error));
        else
            sweep_rows(s, share);
#pragma omp parallel for num_threads(s->step->threads) schedule(dynamic, 4) reduction(+ : changed)
        for (int b = 1; b < blocks; b++)
            changed += find_changes(s, b);
        s->heat->passes = pass + 1;
        if (!changed)
            break;
#pragma omp parallel for num_threads(s->step->threads) schedule(static)
        for (int b = 1; b < blocks; b++)
            take_phases(s, b);
    }
    return SELKIE_OK;
}

/* --- Thermal expansion --- */

/* The loss of weight of each cell, expansion x (temperature - mean of all that expands): the liquid as a whole weighs
 * what it weighs. */
static selkie_code find_lightness(const heat_solve *s, selkie_error *error)
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
            const double weight = step->scene->materials[cells->material[n]].thermal_expansion * cells->capacity[n];
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
        lightness[n] =
            cells->capacity[n] > 0.0
                ? (float)(step->scene->materials[cells->material[n]].thermal_expansion * (cells->temperature[n] - mean))
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
                velocity[c] += kick * sk_heat_face_lightness(tile[tile_index(c) - tile_step[d]], tile[tile_index(c)]);
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

/* Cells without room for what their particles have beyond the range: the cells around help, then those around these.
 * In the order of the cells, since two may share a helper. Returns whether there was any. */
static int limit_blocks(const heat_solve *s)
{
    int changed = 0;
    const sk_grid *grid = &s->step->grid;
    const sk_heat_attributes a = sk_heat_find_attributes(s->step);
    enum { WIDEST = SELKIE_DIM == 3 ? 125 : 25 };
    for (int b = 1; b <= grid->particle_blocks; b++) {
        if (!memchr(s->cells.phase + (size_t)b * SK_BLOCK_CELLS, SK_HEAT_BEYOND, SK_BLOCK_CELLS))
            continue;
        changed = 1;
        SK_PLAIN_EACH_CELL(cell, b)
        for (int reach = 1; reach <= 2 && s->cells.phase[sk_plain_index(cell)] == SK_HEAT_BEYOND; reach++) {
            uint32_t ranges[WIDEST + 1][2];
            const int wide = 2 * reach + 1, all = SELKIE_DIM == 3 ? wide * wide * wide : wide * wide;
            int count = 1;
            sk_plain_particles(grid, cell, &ranges[0][0], &ranges[0][1]);
            for (int n = 0; n < all; n++) {
                const int offset[3] = {n % wide - reach, n / wide % wide - reach,
                                       SELKIE_DIM == 3 ? n / wide / wide - reach : 0};
                sk_plain_particles(grid, sk_plain_beside(grid, cell, offset), &ranges[count][0], &ranges[count][1]);
                count += n != all / 2;
            }
            if (sk_heat_limit_cells(s->heat, &a, (const uint32_t(*)[2])ranges, count))
                s->cells.phase[sk_plain_index(cell)] = 0;
        }
    }
    return changed;
}

/* Gives the changes to the particles, then evens out temperatures within cells. */
static void give_changes(const heat_solve *s,
                         void (*scatter)(const sk_step *, const sk_heat *, const sk_heat_cells *, int))
{
    const sk_step *step = s->step;
    const int blocks = step->grid.block_count, mixes = SK_DIM(sk_heat_mix_ticks)(step, s->heat) > 0.0;
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
        SK_DIM(sk_heat_mix)(step, s->heat, &ranges);
}

typedef struct heat_forms {
    selkie_code (*gather)(sk_step *, const sk_heat *, sk_heat_cells *, selkie_error *);
    void (*scatter)(const sk_step *, const sk_heat *, const sk_heat_cells *, int);
} heat_forms;

static selkie_code run(sk_step *step, const heat_forms *forms, selkie_error *error)
{
    sk_heat *heat = sk_step_state(step, &sk_method_heat);
    const int blocks = step->grid.block_count;
    heat_solve s = {.step = step, .heat = heat};
    if (!(step->dt > 0.0)) /* the world only measures */
        return SELKIE_OK;
    s.is_alike = !heat->several && !heat->melts;
    s.unit = heat->least_resistance / (step->dt * pow(step->grid.cell_size, SELKIE_DIM - 2));
    for (int o = 0; o < step->scene->obstacle_count; o++)
        s.warm_obstacles |= step->scene->obstacles[o].temperature > 0.0;
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
