/* Conduction within a cell, which the grid does not see.
 *
 * Particles take the change of their cells and keep what they differ by. Stirred liquid would so keep warm and cold
 * particles beside each other for ever. But heat evens out differences over half a cell at a rate of at least
 * pi^2 a / h^2, with the diffusivity a. At this rate a particle gives what its temperature is beyond the range of the
 * means of its cell and the cells around it to the others of its cell. A temperature that varies from cell to cell is
 * left as it is, and nothing is conducted between cells here. Particles at the melting point take heat without a change
 * of temperature.
 *
 * The rate is small for most liquids (water, cells of 1 cm: 1 in 70 s). So mixing waits until a quarter of the shortest
 * time constant is over. That follows from the time alone, so that a resumed run does the same. */
#include <math.h>

#include "grid/plain.h"
#include "grid/tile.h"
#include "methods/heat/heat.h"

SK_TILE_LOADER(load_doubles, double)

enum { TICKS = 4 }; /* a time constant */

/* What mixing reads. */
typedef struct mixing {
    const sk_step *step;
    const sk_heat *heat;
    const sk_heat_attributes *attributes;
    const sk_heat_ranges *ranges;
    double most;  /* m2/s  largest diffusivity of all materials */
    double ticks; /*       of this step */
} mixing;

/* m2/s: diffusivity of a material by its resistance; 0 = no conduction. */
static double diffusivity_of(const sk_step *step, const sk_heat_curve *curve, double resistance)
{
    const double volume = pow(step->grid.cell_size, SELKIE_DIM) / step->particles_per_cell;
    return resistance != 0.0 ? volume / (fabs(resistance) * curve->capacity) : 0.0;
}

static double temperature_of(const mixing *m, uint32_t p)
{
    return sk_heat_temperature(sk_heat_curve_of(m->heat, m->attributes, p), sk_heat_get(m->attributes, p));
}

/* Mean and range of the temperatures of a block's cells. Temperature grows with enthalpy. */
static void measure_alike(const sk_heat *heat, const sk_heat_attributes *a, const uint32_t *start, size_t base,
                          const sk_heat_ranges *ranges)
{
    const sk_heat_curve curve = heat->curves[0];
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        double sum = 0.0, least = INFINITY, most = -INFINITY;
        for (uint32_t p = start[c]; p < start[c + 1]; p++) {
            const double enthalpy = sk_heat_get(a, p);
            sum += sk_heat_temperature(&curve, enthalpy);
            least = enthalpy < least ? enthalpy : least;
            most = enthalpy > most ? enthalpy : most;
        }
        ranges->mean[base + (size_t)c] = sum / (double)(start[c + 1] - start[c]); /* no particle: NaN */
        ranges->coldest[base + (size_t)c] = sk_heat_temperature(&curve, least);
        ranges->warmest[base + (size_t)c] = sk_heat_temperature(&curve, most);
    }
}

void SK_DIM(sk_heat_measure_block)(const sk_step *step, const sk_heat *heat, const sk_heat_ranges *ranges, int block)
{
    const sk_heat_attributes a = sk_heat_find_attributes(step);
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    if (!heat->several && block <= step->grid.particle_blocks) {
        measure_alike(heat, &a, step->grid.cell_start + base - SK_BLOCK_CELLS, base, ranges);
        return;
    }
    SK_PLAIN_EACH_CELL(cell, block)
    {
        uint32_t first, last;
        double weights = 0.0, sum = 0.0, coldest = INFINITY, warmest = -INFINITY;
        sk_plain_particles(&step->grid, cell, &first, &last);
        for (uint32_t p = first; p < last; p++) {
            const sk_heat_curve *curve = sk_heat_curve_of(heat, &a, p);
            const double temperature = sk_heat_temperature(curve, sk_heat_get(&a, p));
            weights += curve->capacity;
            sum += curve->capacity * temperature;
            coldest = fmin(coldest, temperature);
            warmest = fmax(warmest, temperature);
        }
        ranges->mean[base + (size_t)cell.local] = sum / weights; /* no particle: NaN */
        ranges->coldest[base + (size_t)cell.local] = coldest;
        ranges->warmest[base + (size_t)cell.local] = warmest;
    }
}

/* K: how far temperatures may lie from the mean of a cell without being mixed: the differences to the cells around it,
 * added over the axes. `means` is the place of the cell in a tile. */
static double spread_of(const double *means)
{
    static const int tile_step[3] = {1, SK_TILE_N(1), SK_TILE_N(1) * SK_TILE_N(1)};
    double spread = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const double below = fabs(means[-tile_step[d]] - means[0]), above = fabs(means[tile_step[d]] - means[0]);
        double largest = below > 0.0 ? below : 0.0; /* leaves NaN out */
        largest = above > largest ? above : largest;
        spread += largest;
    }
    return spread;
}

/* K: what a temperature is beyond mean - spread and mean + spread. */
static double excess_of(double temperature, double mean, double spread)
{
    const double away = temperature - mean;
    return away > spread ? away - spread : away < -spread ? away + spread : 0.0;
}

/* The part of their excess that the particles of a cell give away in this step: by the worst conductor among them, and
 * so that none goes past the mean where temperature is steep over enthalpy. */
static double part_of_cell(const mixing *m, uint32_t first, uint32_t last)
{
    double least = m->most, steepest = 1.0;
    for (uint32_t p = first; p < last; p++) {
        const sk_heat_curve *curve = sk_heat_curve_of(m->heat, m->attributes, p);
        least = fmin(least, diffusivity_of(m->step, curve, sk_heat_resistance(curve, sk_heat_get(m->attributes, p))));
        steepest = fmax(steepest, curve->solid_slope);
    }
    return -expm1(-m->ticks / TICKS * least / m->most) / steepest;
}

/* The particles [first, last) of a cell. */
static void mix_cell(const mixing *m, uint32_t first, uint32_t last, double mean, double spread)
{
    double weights = 0.0, sum = 0.0;
    int any = 0;
    for (uint32_t p = first; p < last; p++) {
        const double weight = sk_heat_curve_of(m->heat, m->attributes, p)->capacity;
        const double excess = excess_of(temperature_of(m, p), mean, spread);
        weights += weight;
        sum += weight * excess;
        any |= excess != 0.0;
    }
    if (!any)
        return;
    const double part = part_of_cell(m, first, last), balance = sum / weights;
    for (uint32_t p = first; p < last; p++) {
        const sk_heat_curve *curve = sk_heat_curve_of(m->heat, m->attributes, p);
        const double change = balance - excess_of(temperature_of(m, p), mean, spread);
        sk_heat_set(m->attributes, curve, p, sk_heat_get(m->attributes, p) + part * change);
    }
}

/* Cells without a particle beyond the range of the means have nothing to mix. */
static void mix_block(const mixing *m, int block)
{
    const sk_grid *grid = &m->step->grid;
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    const uint32_t *start = grid->cell_start + base - SK_BLOCK_CELLS;
    double means[SK_TILE_VALUES(1)];
    load_doubles(grid, m->ranges->mean, block, 1, means);
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        const double mean = m->ranges->mean[base + (size_t)c];
        const double farthest =
            fmax(m->ranges->warmest[base + (size_t)c] - mean, mean - m->ranges->coldest[base + (size_t)c]);
        if (start[c + 1] - start[c] < 2)
            continue;
        const double spread =
            spread_of(means + SK_TILE_ORIGIN(1) + sk_plain_along(c, 0) + SK_TILE_N(1) * sk_plain_along(c, 1) +
                      (SELKIE_DIM == 3 ? SK_TILE_N(1) * SK_TILE_N(1) * sk_plain_along(c, 2) : 0));
        if (farthest > spread)
            mix_cell(m, start[c], start[c + 1], mean, spread);
    }
}

/* m2/s: the largest diffusivity of all materials. */
static double most_diffusivity(const sk_step *step, const sk_heat *heat)
{
    double most = 0.0;
    for (int n = 0; n < SK_TRANSFER_MATERIALS; n++) {
        const sk_heat_curve *curve = &heat->curves[n];
        most = fmax(most, fmax(diffusivity_of(step, curve, curve->resistance),
                               diffusivity_of(step, curve, curve->solid_resistance)));
    }
    return most;
}

double SK_DIM(sk_heat_mix_ticks)(const sk_step *step, const sk_heat *heat)
{
    const double size = step->grid.cell_size;
    const double rate = TICKS * M_PI * M_PI * most_diffusivity(step, heat) / (size * size); /* 1/s */
    return floor((step->time + step->dt) * rate) - floor(step->time * rate);
}

void SK_DIM(sk_heat_mix)(const sk_step *step, const sk_heat *heat, const sk_heat_ranges *ranges)
{
    const sk_heat_attributes attributes = sk_heat_find_attributes(step);
    const mixing m = {.step = step,
                      .heat = heat,
                      .attributes = &attributes,
                      .ranges = ranges,
                      .most = most_diffusivity(step, heat),
                      .ticks = SK_DIM(sk_heat_mix_ticks)(step, heat)};
    for (int c = 0; c < SK_BLOCK_CELLS; c++) /* cells without a block */
        ranges->mean[c] = NAN;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b <= step->grid.particle_blocks; b++)
        mix_block(&m, b);
}
