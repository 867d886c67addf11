/* Heat of one cell or particle: transfers, rows of the solve, surfaces, mixing within cells. The GPU runs these
 * functions; on the CPU loops over rows of cells take the place of some where all cells are alike. For files compiled
 * per dimension.
 *
 * SK_HEAT_DISTANCE(solids, x, normal, obstacle) is sk_solids_distance, or the includer's form of it. */
#ifndef SK_METHODS_HEAT_HEAT_PLAIN_H
#define SK_METHODS_HEAT_HEAT_PLAIN_H

#include <math.h>

#include "grid/grid_kernels.h"
#include "grid/plain.h"
#include "methods/heat/heat.h"
#include "methods/liquid_plain.h"

#ifndef SK_HEAT_DISTANCE
#define SK_HEAT_DISTANCE sk_solids_distance
#endif

/* A tile: the cells of a block and one around it, as SK_TILE_N(1) of grid/tile.h. */
enum {
    HEAT_SIDE = SK_BLOCK_N + 2,
    HEAT_TILE = SELKIE_DIM == 3 ? HEAT_SIDE * HEAT_SIDE * HEAT_SIDE : HEAT_SIDE * HEAT_SIDE
};

SK_KERNEL int heat_tile_step(int d)
{
    return d == 0 ? 1 : d == 1 ? HEAT_SIDE : HEAT_SIDE * HEAT_SIDE;
}

/* Index of a cell of the block in a tile. */
SK_KERNEL int heat_tile_index(int cell)
{
    int n = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        n += (sk_plain_along(cell, d) + 1) * heat_tile_step(d);
    return n;
}

/* --- Particles beyond the range --- */

/* Heat (J) of a particle beyond the bound of the range, or below 0 its distance to it. */
SK_KERNEL double heat_beyond_bound(const sk_heat *heat, const sk_heat_attributes *a, int64_t p, int upper,
                                   double *bound)
{
    const sk_heat_curve *curve = sk_heat_curve_of(heat, a, p);
    *bound = upper ? sk_heat_most(curve, heat->warmest) : sk_heat_least(curve, heat->coldest);
    return curve->capacity * (sk_heat_get(a, p) - *bound) * (upper ? 1.0 : -1.0);
}

/* Moves what the particles of some ranges (the first is the cell itself) have beyond a bound to those that are within.
 * Returns whether there was room. */
SK_KERNEL int heat_limit_side(const sk_heat *heat, const sk_heat_attributes *a, const uint32_t (*ranges)[2], int count,
                              int upper)
{
    double beyond = 0.0, room = 0.0, bound; /* J, J, K */
    for (int n = 0; n < count; n++)
        for (uint32_t p = ranges[n][0]; p < ranges[n][1]; p++) {
            const double excess = heat_beyond_bound(heat, a, p, upper, &bound);
            if (excess < 0.0)
                room -= excess;
            else if (n == 0)
                beyond += excess;
        }
    if (!(beyond > 0.0))
        return 1;
    if (!(room > beyond))
        return 0;
    for (int n = 0; n < count; n++)
        for (uint32_t p = ranges[n][0]; p < ranges[n][1]; p++) {
            const double excess = heat_beyond_bound(heat, a, p, upper, &bound), own = sk_heat_get(a, p);
            if (n == 0 || excess < 0.0)
                sk_heat_set(a, sk_heat_curve_of(heat, a, p), p,
                            excess < 0.0 ? own + (bound - own) * (beyond / room) : bound);
        }
    return 1;
}

/* Brings the particles of a cell back into the range of temperatures of the step. What one has too much (or too little)
 * goes to the others, in proportion to their distance from the bound: energy is kept. The first range of particles is
 * the cell, others are cells that may help. Returns 0 if there is not enough room. */
SK_KERNEL_CALLED int heat_limit_cells(const sk_heat *heat, const sk_heat_attributes *a, const uint32_t (*ranges)[2],
                                      int count)
{
    const int below = heat_limit_side(heat, a, ranges, count, 0);
    return heat_limit_side(heat, a, ranges, count, 1) && below;
}

/* A cell without room for what its particles have beyond the range: the cells around help, then those around these.
 * One cell after the other, since two may share a helper. */
SK_KERNEL_CALLED void heat_limit_with_help(const sk_heat_solve *s, const sk_heat_attributes *a, sk_plain_cell cell)
{
    enum { WIDEST = SELKIE_DIM == 3 ? 125 : 25 };
    const sk_grid *grid = &s->step->grid;
    uint8_t *phase = &s->cells.phase[sk_plain_index(cell)];
    for (int reach = 1; reach <= 2 && *phase == SK_HEAT_BEYOND; reach++) {
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
        if (heat_limit_cells(s->heat, a, (const uint32_t(*)[2])ranges, count))
            *phase = 0;
    }
}

/* --- Transfers --- */

/* The state of a cell from its sums. */
SK_KERNEL void heat_finish_cell(const sk_heat *heat, const sk_heat_cells *cells, size_t cell, const double *sums)
{
    const double capacity = sums[SK_HEAT_CAPACITY];
    cells->capacity[cell] = capacity;
    cells->enthalpy[cell] = cells->temperature[cell] = cells->resistance[cell] = 0.0;
    cells->material[cell] = 0;
    cells->phase[cell] = SK_HEAT_LIQUID;

    /* Cells that a particle hardly reaches have no heat of their own. */
    if (!(capacity > 1e-6 * heat->full_capacity)) {
        cells->capacity[cell] = 0.0;
        return;
    }
    const double enthalpy = sums[SK_HEAT_ENTHALPY] / capacity;
    const sk_heat_curve *curve = heat->curves;
    cells->enthalpy[cell] = enthalpy;

    /* Materials differ if their numbers have a variance. */
    if (heat->several) {
        const double mean = sums[SK_HEAT_MATERIAL] / capacity;
        if (sums[SK_HEAT_MATERIAL_2] / capacity - mean * mean > 1e-6) {
            cells->phase[cell] = SK_HEAT_MIXED;
            cells->temperature[cell] = sums[SK_HEAT_TEMPERATURE] / capacity;
            cells->resistance[cell] = sk_heat_layers(sums[SK_HEAT_RESISTANCE] / capacity, heat->least_resistance);
            return;
        }
        cells->material[cell] = (uint8_t)(mean + 0.5);
        curve = &heat->curves[cells->material[cell]];
    }
    cells->phase[cell] = (uint8_t)sk_heat_phase(curve, enthalpy);
    cells->temperature[cell] = sk_heat_temperature(curve, enthalpy);
    cells->resistance[cell] = sk_heat_resistance(curve, enthalpy);
}

SK_KERNEL int heat_is_closed(const sk_step *step, sk_plain_cell cell)
{
    return step->solids.closed[sk_plain_solid_index(&step->solids, cell)];
}

/* The lowest cell that a particle of a cell has a weight on, relative to its own (0 or -1), and the weights of the
 * cells above along each axis. */
SK_KERNEL void heat_place(const sk_step *step, const int at[3], const float position[3], int low[3], float above[3])
{
    const sk_grid *grid = &step->grid;
    for (int d = 0; d < SELKIE_DIM; d++)
        low[d] = sk_heat_place(sk_cell_coordinate(position[d], (float)grid->corner[d], (float)(1.0 / grid->cell_size)),
                               &above[d]) -
                 at[d];
}

/* Weight of a corner of the cells that a particle reaches. */
SK_KERNEL float heat_corner_weight(const float above[3], int corner)
{
    float weight = 1.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        weight *= corner >> d & 1 ? above[d] : 1.0f - above[d];
    return weight;
}

/* Adds what the particles of the cell `offset` away give to a cell. The weight of a closed cell goes to the particle's
 * own cell. */
SK_KERNEL void heat_add_from(const sk_heat *heat, const sk_step *step, const sk_heat_attributes *a, sk_plain_cell cell,
                             const int offset[3], double sums[SK_HEAT_SUMS])
{
    const sk_plain_cell from = sk_plain_beside(&step->grid, cell, offset);
    const int is_own = offset[0] == 0 && offset[1] == 0 && offset[2] == 0;
    const int count = heat->several ? SK_HEAT_SUMS : SK_HEAT_TEMPERATURE;
    uint32_t first, last;
    int at[3];
    sk_plain_particles(&step->grid, from, &first, &last);
    if (first == last || (!is_own && heat_is_closed(step, cell)))
        return;
    sk_plain_coordinates(&step->grid, from, at);
    for (uint32_t p = first; p < last; p++) {
        double values[SK_HEAT_SUMS];
        float above[3];
        int low[3], own = 0, reached = 1;
        heat_place(step, at, step->particles.records[p].position, low, above);
        for (int d = 0; d < SELKIE_DIM; d++) {
            const int along = -offset[d] - low[d];
            reached &= along == 0 || along == 1;
            own |= (along & 1) << d;
        }
        if (!reached)
            continue;
        sk_heat_values(heat, a, p, heat->several, values);
        for (int c = 0; c < SK_CORNERS; c++) {
            if (c != own && !is_own)
                continue;
            const int to[3] = {low[0] + (c & 1), low[1] + (c >> 1 & 1), SELKIE_DIM == 3 ? low[2] + (c >> 2) : 0};
            if (c != own && !heat_is_closed(step, sk_plain_beside(&step->grid, cell, to)))
                continue;
            const double weight = (double)heat_corner_weight(above, c);
            for (int v = 0; v < count; v++)
                sums[v] += weight * values[v];
        }
    }
}

/* The state of a cell from the particles around it. */
SK_KERNEL void heat_gather_cell(const sk_step *step, const sk_heat *heat, const sk_heat_attributes *a,
                                const sk_heat_cells *cells, sk_plain_cell cell)
{
    double sums[SK_HEAT_SUMS];
    for (int v = 0; v < SK_HEAT_SUMS; v++)
        sums[v] = 0.0;
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        const int offset[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
        heat_add_from(heat, step, a, cell, offset, sums);
    }
    heat_finish_cell(heat, cells, sk_plain_index(cell), sums);
}

/* Gives the changes to the particles of a cell. Marks it if they are beyond the range and it has no room. */
SK_KERNEL void heat_scatter_cell(const sk_step *step, const sk_heat *heat, const sk_heat_attributes *a,
                                 const sk_heat_cells *cells, sk_plain_cell cell)
{
    uint32_t range[1][2];
    int beyond = 0, at[3];
    sk_plain_particles(&step->grid, cell, &range[0][0], &range[0][1]);
    sk_plain_coordinates(&step->grid, cell, at);
    for (uint32_t p = range[0][0]; p < range[0][1]; p++) {
        double enthalpy = sk_heat_get(a, p);
        float above[3];
        int low[3];
        heat_place(step, at, step->particles.records[p].position, low, above);
        for (int c = 0; c < SK_CORNERS; c++) {
            const int to[3] = {low[0] + (c & 1), low[1] + (c >> 1 & 1), SELKIE_DIM == 3 ? low[2] + (c >> 2) : 0};
            sk_plain_cell other = sk_plain_beside(&step->grid, cell, to);
            other = heat_is_closed(step, other) ? cell : other;
            enthalpy += (double)heat_corner_weight(above, c) * cells->change[sk_plain_index(other)];
        }
        const double temperature = sk_heat_set(a, sk_heat_curve_of(heat, a, p), p, enthalpy);
        beyond |= temperature > heat->warmest || temperature < heat->coldest;
    }
    cells->phase[sk_plain_index(cell)] =
        beyond && !heat_limit_cells(heat, a, (const uint32_t(*)[2])range, 1) ? SK_HEAT_BEYOND : 0;
}

/* --- Coefficients --- */

/* Adds a surface of a given temperature to a cell. */
SK_KERNEL void heat_add_surface(const sk_heat_cells *cells, size_t cell, double coefficient, double temperature)
{
    cells->outside[cell] += (float)coefficient;
    /* The same rounded coefficient in both sums. */
    cells->supply[cell] += (double)(float)coefficient * temperature;
}

/* Resistance of a cell towards a surface of a given temperature. In the melting range it is that of the phase beside
 * the surface. */
SK_KERNEL double heat_towards(const sk_heat_solve *s, size_t cell, double temperature)
{
    const double resistance = s->cells.resistance[cell];
    const sk_heat_curve *curve = &s->heat->curves[s->cells.material[cell]];
    if (resistance >= 0.0)
        return resistance;
    return temperature > curve->melting ? curve->resistance : curve->solid_resistance;
}

/* Closed sides of the domain with a temperature. */
SK_KERNEL void heat_add_walls(const sk_heat_solve *s, sk_plain_cell cell)
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
            sk_heat_contact((double)s->cells.filled[here], 0.5, heat_towards(s, here, domain->temperature[side]),
                            domain->heat_exchange[side], step->grid.cell_size, s->heat->least_resistance);
        heat_add_surface(&s->cells, here, coefficient, domain->temperature[side]);
    }
}

/* Obstacles with a temperature. The open fractions of a cell's faces give the area of the surface in it. */
SK_KERNEL void heat_add_obstacles(const sk_heat_solve *s, sk_plain_cell cell)
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
    const double distance = SK_HEAT_DISTANCE(&step->solids, x, normal, &obstacle) / grid->cell_size;
    if (obstacle < 0 || !(s->obstacles[obstacle][0] > 0.0))
        return;
    const double temperature = s->obstacles[obstacle][0];
    const double coefficient = sk_heat_contact(sqrt(area2) * (double)s->cells.filled[here], fmax(fabs(distance), 0.1),
                                               heat_towards(s, here, temperature), s->obstacles[obstacle][1],
                                               grid->cell_size, s->heat->least_resistance);
    heat_add_surface(&s->cells, here, coefficient, temperature);
}

/* The air over the free surface. Closed faces are none. `filled` is a tile, `node` the place of the cell in it. */
SK_KERNEL void heat_add_air(const sk_heat_solve *s, sk_plain_cell cell, const float *filled, int node)
{
    const sk_step *step = s->step;
    const selkie_heat_def *def = &step->scene->heat;
    float beside[2 * SELKIE_DIM];
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const int d = side / 2;
        const int open = open_fraction_at(step, cell_of_side(&step->grid, cell, side), d) > 0.0f;
        beside[side] = filled[open ? node + (side % 2 ? heat_tile_step(d) : -heat_tile_step(d)) : node];
    }
    const double area = (double)sk_heat_free_area(filled[node], beside, SELKIE_DIM);
    if (area > 0.0)
        heat_add_surface(&s->cells, sk_plain_index(cell),
                         area * def->air_exchange * step->grid.cell_size * s->heat->least_resistance,
                         def->air_temperature);
}

SK_KERNEL int heat_has_air(const sk_step *step)
{
    return step->scene->heat.air_temperature > 0.0 && step->scene->heat.air_exchange > 0.0;
}

/* Surfaces and air of a cell with heat. `warm`: some obstacle has a temperature. */
SK_KERNEL void heat_add_outside(const sk_heat_solve *s, int warm, sk_plain_cell cell, const float *filled, int node)
{
    const int near_solid = s->step->solids.block_slot[cell.slot] != 0;
    if (!(filled[node] > 0.0f))
        return;
    if (near_solid)
        heat_add_walls(s, cell);
    if (near_solid && warm)
        heat_add_obstacles(s, cell);
    if (heat_has_air(s->step))
        heat_add_air(s, cell, filled, node);
}

/* --- A pass --- */

/* Enthalpy that a phase has at a temperature, minus the enthalpy at the start. */
SK_KERNEL double heat_phase_offset(const sk_heat_solve *s, size_t cell)
{
    const sk_heat_cells *cells = &s->cells;
    const sk_heat_curve *curve = &s->heat->curves[cells->material[cell]];
    if (cells->phase[cell] == SK_HEAT_MIXED || !curve->melts)
        return 0.0;
    const double above = cells->temperature[cell] - curve->melting;
    const double enthalpy = cells->phase[cell] == SK_HEAT_SOLID ? above / curve->solid_slope : above + curve->latent;
    return enthalpy - cells->enthalpy[cell];
}

/* Sum of the face coefficients of a cell, and of coefficient x difference of temperature. All arguments are tiles. */
SK_KERNEL double heat_sum_faces(const float *const face[3], const double *temperature, int n, double *flux)
{
    double sum = 0.0, heat = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int up = n + heat_tile_step(d), down = n - heat_tile_step(d);
        const double lower = (double)face[d][n], upper = (double)face[d][up];
        sum += lower + upper;
        heat += lower * (temperature[down] - temperature[n]);
        heat += upper * (temperature[up] - temperature[n]);
    }
    *flux = heat;
    return sum;
}

/* The row of a cell, and its solution without neighbours. Returns the sum of its faces over the diagonal. */
SK_KERNEL double heat_build_row(const sk_heat_solve *s, size_t here, const float *const face[3],
                                const double *temperature, int n)
{
    const sk_heat_cells *cells = &s->cells;
    cells->diagonal[here] = cells->right[here] = cells->solution[here] = 0.0f;
    if (!(cells->capacity[here] > 0.0) || cells->phase[here] == SK_HEAT_MUSHY)
        return 0.0;
    double flux;
    const sk_heat_curve *curve = &s->heat->curves[cells->material[here]];
    const double capacity = cells->capacity[here] * s->unit, outside = (double)cells->outside[here];
    const double sum = heat_sum_faces(face, temperature, n, &flux);
    const double slope = sk_heat_slope(curve, cells->phase[here]);
    cells->diagonal[here] = (float)(capacity / slope + sum + outside);
    cells->right[here] =
        (float)(flux + cells->supply[here] - outside * temperature[n] - capacity * heat_phase_offset(s, here));
    cells->solution[here] = cells->right[here] / cells->diagonal[here];
    return sum / (double)cells->diagonal[here];
}

/* A sweep for a cell, from a tile of the values after the last one: Jacobi's method, and beyond it by `step` times the
 * way from `before`, the value of the cell one sweep earlier. */
SK_KERNEL float heat_sweep_cell(const float *const face[3], const float *solution, int n, float diagonal, float right,
                                float before, float step)
{
    float sum = right;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int along = heat_tile_step(d);
        sum += face[d][n] * solution[n - along] + face[d][n + along] * solution[n + along];
    }
    const float next = diagonal > 0.0f ? sum / diagonal : 0.0f;
    return step == 1.0f ? next : before + step * (next - before);
}

/* Heat spreads little in a short step: `share` is the part of a cell's row that is not its own. It bounds the
 * eigenvalues of Jacobi's method, which Chebyshev's steps accelerate (Golub and Varga 1961): k sweeps leave 2 s^k of
 * the error, s = share / (1 + sqrt(1 - share^2)). The number of sweeps from the solution without neighbours, whose
 * error is `share` of it at most. */
SK_KERNEL int heat_sweeps(double share, double tolerance)
{
    const double rate = share / (1.0 + sqrt(1.0 - share * share));
    const double left = tolerance / (2.0 * share);
    return share > 0.0 && left < 1.0 ? (int)ceil(log(left) / log(rate)) : 0;
}

/* The step of the sweep after sweep `number` (from 0 on), whose own was `step`; that of the first is 1. */
SK_KERNEL double heat_next_step(double share, int number, double step)
{
    return 1.0 / (1.0 - (number == 0 ? 0.5 : 0.25) * share * share * step);
}

/* The change of a cell's enthalpy from the fluxes at the new temperatures. */
SK_KERNEL double heat_change(const sk_heat_solve *s, size_t here, const float *const face[3], const double *temperature,
                             int n)
{
    const sk_heat_cells *cells = &s->cells;
    double flux;
    if (!(cells->capacity[here] > 0.0))
        return 0.0;
    heat_sum_faces(face, temperature, n, &flux);
    flux += cells->supply[here] - (double)cells->outside[here] * temperature[n];
    return flux / (cells->capacity[here] * s->unit);
}

/* The phase of a cell for the next pass, from its new enthalpy and temperature. The highest bits of `phase` hold it
 * until all cells are done. Returns whether it changes. */
SK_KERNEL int heat_note_phase(const sk_heat_solve *s, size_t here, double temperature)
{
    const sk_heat_cells *cells = &s->cells;
    if (!(cells->capacity[here] > 0.0))
        return 0;
    const int phase = cells->phase[here];
    const int next = sk_heat_next_phase(&s->heat->curves[cells->material[here]], phase,
                                        cells->enthalpy[here] + cells->change[here], temperature);
    cells->phase[here] = (uint8_t)(phase | next << 4);
    return next != phase;
}

/* Takes the next phase, with the temperature that the next pass starts from. */
SK_KERNEL void heat_take_phase(const sk_heat_solve *s, size_t here)
{
    const sk_heat_cells *cells = &s->cells;
    const int phase = cells->phase[here] & 15, next = cells->phase[here] >> 4;
    if (!(cells->capacity[here] > 0.0))
        return;
    cells->phase[here] = (uint8_t)next;
    if (phase != next && next == SK_HEAT_MUSHY)
        cells->temperature[here] = s->heat->curves[cells->material[here]].melting;
}

/* The most passes of a step, and what one does with a block: it takes the block as it is, finds its changes beside
 * blocks with a new solution, or solves it. */
enum { HEAT_MOST_PASSES = 8, HEAT_KEPT = 0, HEAT_BESIDE_SOLVED, HEAT_SOLVED };

/* --- Mixing within a cell --- */

/* Mean and range of the temperatures of a cell's particles; the mean of none is NaN. */
SK_KERNEL void heat_measure_cell(const sk_step *step, const sk_heat *heat, const sk_heat_attributes *a,
                                 const sk_heat_ranges *ranges, sk_plain_cell cell)
{
    const size_t here = sk_plain_index(cell);
    uint32_t first, last;
    double weights = 0.0, sum = 0.0, coldest = INFINITY, warmest = -INFINITY;
    sk_plain_particles(&step->grid, cell, &first, &last);
    for (uint32_t p = first; p < last; p++) {
        const sk_heat_curve *curve = sk_heat_curve_of(heat, a, p);
        const double temperature = sk_heat_temperature(curve, sk_heat_get(a, p));
        const double weight = heat->several ? curve->capacity : 1.0;
        weights += weight;
        sum += weight * temperature;
        coldest = fmin(coldest, temperature);
        warmest = fmax(warmest, temperature);
    }
    ranges->mean[here] = sum / weights;
    ranges->coldest[here] = coldest;
    ranges->warmest[here] = warmest;
}

/* K: how far temperatures may lie from the mean of a cell without being mixed: the differences to the cells around it,
 * added over the axes. `means` is the place of the cell in a tile. */
SK_KERNEL double heat_spread_of(const double *means)
{
    double spread = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const double below = fabs(means[-heat_tile_step(d)] - means[0]);
        const double above = fabs(means[heat_tile_step(d)] - means[0]);
        double largest = below > 0.0 ? below : 0.0; /* leaves NaN out */
        largest = above > largest ? above : largest;
        spread += largest;
    }
    return spread;
}

/* K: what a temperature is beyond mean - spread and mean + spread. */
SK_KERNEL double heat_excess_of(double temperature, double mean, double spread)
{
    const double away = temperature - mean;
    return away > spread ? away - spread : away < -spread ? away + spread : 0.0;
}

/* The part of their excess that the particles of a cell give away in this step: by the worst conductor among them, and
 * so that none goes past the mean where temperature is steep over enthalpy. */
SK_KERNEL double heat_part_of_cell(const sk_heat *heat, const sk_heat_attributes *a, const sk_heat_mixing *mixing,
                                   uint32_t first, uint32_t last)
{
    double least = mixing->most, steepest = 1.0;
    for (uint32_t p = first; p < last; p++) {
        const sk_heat_curve *curve = sk_heat_curve_of(heat, a, p);
        least = fmin(least, sk_heat_diffusivity(curve, sk_heat_resistance(curve, sk_heat_get(a, p)), mixing->volume));
        steepest = fmax(steepest, curve->solid_slope);
    }
    return -expm1(-mixing->ticks / SK_HEAT_TICKS * least / mixing->most) / steepest;
}

/* The particles [first, last) of a cell. */
SK_KERNEL void heat_mix_cell(const sk_heat *heat, const sk_heat_attributes *a, const sk_heat_mixing *mixing,
                             uint32_t first, uint32_t last, double mean, double spread)
{
    double weights = 0.0, sum = 0.0;
    int any = 0;
    for (uint32_t p = first; p < last; p++) {
        const sk_heat_curve *curve = sk_heat_curve_of(heat, a, p);
        const double excess = heat_excess_of(sk_heat_temperature(curve, sk_heat_get(a, p)), mean, spread);
        weights += curve->capacity;
        sum += curve->capacity * excess;
        any |= excess != 0.0;
    }
    if (!any)
        return;
    const double part = heat_part_of_cell(heat, a, mixing, first, last), balance = sum / weights;
    for (uint32_t p = first; p < last; p++) {
        const sk_heat_curve *curve = sk_heat_curve_of(heat, a, p);
        const double own = sk_heat_get(a, p);
        const double change = balance - heat_excess_of(sk_heat_temperature(curve, own), mean, spread);
        sk_heat_set(a, curve, p, own + part * change);
    }
}

#endif
