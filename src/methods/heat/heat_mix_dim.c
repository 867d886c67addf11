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
#include "grid/tile.h"
#include "methods/heat/heat_plain.h"

SK_TILE_LOADER(load_doubles, double)

/* heat_measure_cell() for a block of one material. Temperature grows with enthalpy. */
static void measure_alike(const sk_heat *heat, const sk_heat_attributes *a, const uint32_t *start, size_t base,
                          const sk_heat_ranges *ranges)
{
    const sk_heat_curve curve = heat->curves[0];
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        double sum = 0.0, least = INFINITY, most = -INFINITY;
        for (uint32_t p = start[c]; p < start[c + 1]; p++) {
            /* sk_heat_temperature() without branches: beside ice they are hard to predict. */
            const double enthalpy = sk_heat_get(a, p), beyond = enthalpy - curve.latent;
            const double solid = enthalpy < 0.0 ? enthalpy * curve.solid_slope : 0.0;
            sum += curve.melting + (beyond > 0.0 ? beyond : solid);
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
    heat_measure_cell(step, heat, &a, ranges, cell);
}

/* Cells without a particle beyond the range of the means have nothing to mix. */
static void mix_block(const sk_step *step, const sk_heat *heat, const sk_heat_ranges *ranges,
                      const sk_heat_mixing *mixing, int block)
{
    const sk_grid *grid = &step->grid;
    const sk_heat_attributes a = sk_heat_find_attributes(step);
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    const uint32_t *start = grid->cell_start + base - SK_BLOCK_CELLS;
    double means[SK_TILE_VALUES(1)];
    load_doubles(grid, ranges->mean, block, 1, means);
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        if (start[c + 1] - start[c] < 2)
            continue;
        const double mean = ranges->mean[base + (size_t)c];
        const double warmer = ranges->warmest[base + (size_t)c] - mean;
        const double colder = mean - ranges->coldest[base + (size_t)c];
        const double farthest = warmer > colder ? warmer : colder;
        if (!(farthest > 0.0))
            continue;
        const double spread = heat_spread_of(means + heat_tile_index(c));
        if (farthest > spread)
            heat_mix_cell(heat, &a, mixing, start[c], start[c + 1], mean, spread);
    }
}

void SK_DIM(sk_heat_mix)(const sk_step *step, const sk_heat *heat, const sk_heat_ranges *ranges,
                         const sk_heat_mixing *mixing)
{
    for (int c = 0; c < SK_BLOCK_CELLS; c++) /* cells without a block */
        ranges->mean[c] = NAN;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b <= step->grid.particle_blocks; b++)
        mix_block(step, heat, ranges, mixing, b);
}
