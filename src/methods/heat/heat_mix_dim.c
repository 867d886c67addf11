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
#include "methods/heat/heat.h"

enum { TICKS = 4 }; /* a time constant */

/* What mixing reads. */
typedef struct mixing {
    const sk_step *step;
    const sk_heat *heat;
    const sk_heat_attributes *attributes;
    double *means; /* K     of the particles of each cell; NaN = none */
    double most;   /* m2/s  largest diffusivity of all materials */
    double ticks;  /*       of this step */
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

static void find_mean(const mixing *m, sk_plain_cell cell)
{
    uint32_t first, last;
    double weights = 0.0, sum = 0.0;
    sk_plain_particles(&m->step->grid, cell, &first, &last);
    for (uint32_t p = first; p < last; p++) {
        const double weight = sk_heat_curve_of(m->heat, m->attributes, p)->capacity;
        weights += weight;
        sum += weight * temperature_of(m, p);
    }
    m->means[sk_plain_index(cell)] = sum / weights; /* no particle: NaN */
}

/* K: how far temperatures may lie from the mean of a cell without being mixed: the differences to the cells around it,
 * added over the axes. */
static double spread_of(const mixing *m, sk_plain_cell cell)
{
    const double own = m->means[sk_plain_index(cell)];
    double spread = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        double largest = 0.0;
        for (int side = -1; side <= 1; side += 2) {
            const sk_plain_cell beside = sk_plain_next(&m->step->grid, cell, d, side);
            if (beside.slot)
                largest = fmax(largest, fabs(m->means[sk_plain_index(beside)] - own)); /* leaves NaN out */
        }
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

static void mix_cell(const mixing *m, sk_plain_cell cell)
{
    uint32_t first, last;
    double weights = 0.0, sum = 0.0;
    sk_plain_particles(&m->step->grid, cell, &first, &last);
    if (last - first < 2)
        return;
    const double mean = m->means[sk_plain_index(cell)], spread = spread_of(m, cell);
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

void SK_DIM(sk_heat_mix)(const sk_step *step, const sk_heat *heat, double *means)
{
    const sk_grid *grid = &step->grid;
    const sk_heat_attributes attributes = sk_heat_find_attributes(step);
    mixing m = {.step = step, .heat = heat, .attributes = &attributes, .means = means};
    for (int n = 0; n < SK_TRANSFER_MATERIALS; n++) {
        const sk_heat_curve *curve = &heat->curves[n];
        m.most = fmax(m.most, fmax(diffusivity_of(step, curve, curve->resistance),
                                   diffusivity_of(step, curve, curve->solid_resistance)));
    }
    const double rate = TICKS * M_PI * M_PI * m.most / (grid->cell_size * grid->cell_size); /* 1/s */
    m.ticks = floor((step->time + step->dt) * rate) - floor(step->time * rate);
    if (!(m.ticks > 0.0))
        return;
#pragma omp parallel num_threads(step->threads)
    {
#pragma omp for schedule(static)
        for (int b = 1; b < grid->block_count; b++)
            SK_PLAIN_EACH_CELL(cell, b)
        find_mean(&m, cell);
#pragma omp for schedule(dynamic, 4)
        for (int b = 1; b <= grid->particle_blocks; b++)
            SK_PLAIN_EACH_CELL(cell, b)
        mix_cell(&m, cell);
    }
}
