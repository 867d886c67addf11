#include "world/sample_level.h"

#include <math.h>

#include "base/random.h"

enum {
    CELLS = 2,         /* depth of the rows below the one that is not full */
    LEAST_PER_AXIS = 3 /* two a cell are too few: their kernels see rows of other distances as uneven, and waves grow */
};

/* Particles of another box or shape beside or above would not fit to the rows. */
static int is_alone(const sk_sampling *sampling, sk_shape *const *shapes, int l, const sk_level_rows *rows)
{
    const double margin = sampling->grid->cell_size;
    for (int other = 0; other < sampling->scene->liquid_count; other++) {
        double low[3], high[3];
        int meets = 1;
        if (other == l || sampling->scene->liquids[other].count)
            continue;
        sk_shape_bounds(shapes[other], low, high);
        for (int d = 0; d < sampling->grid->dimension; d++)
            meets &= low[d] < rows->high[d] + margin && high[d] > rows->low[d] - margin;
        if (meets)
            return 0;
    }
    return 1;
}

/* The axis of gravity; -1 if it is along none. */
static int axis_of_gravity(const sk_sampling *sampling)
{
    const double *g = sampling->scene->gravity;
    int axis = -1, count = 0;
    for (int d = 0; d < 3; d++)
        if (g[d] != 0.0) {
            axis = d;
            count++;
        }
    return count == 1 && axis < sampling->grid->dimension ? axis : -1;
}

sk_level_rows sk_level_rows_of(const sk_sampling *sampling, sk_shape *const *shapes, int l, int per_axis)
{
    const sk_grid *grid = sampling->grid;
    const selkie_liquid_def *def = &sampling->scene->liquids[l];
    sk_level_rows rows = {.rows = 0, .axis = axis_of_gravity(sampling), .unit = grid->cell_size / per_axis};
    if (rows.axis < 0 || per_axis < LEAST_PER_AXIS || def->count || def->shape.kind != SELKIE_SHAPE_BOX)
        return rows;
    rows.along = rows.axis == 0 ? 1 : 0;
    rows.upwards = sampling->scene->gravity[rows.axis] < 0.0;
    sk_shape_bounds(shapes[l], rows.low, rows.high);
    for (int d = 0; d < grid->dimension; d++) {
        rows.low[d] = fmax(rows.low[d], grid->low[d]);
        rows.high[d] = fmin(rows.high[d], grid->high[d]);
        if (!(rows.low[d] < rows.high[d]))
            return rows;
    }

    /* Heights are counted in sub-cells from the side of the domain that gravity points to. A box that ends at the other
     * side has no surface. */
    const int up = rows.axis;
    const double depth = rows.high[up] - rows.low[up];
    const double height = (rows.upwards ? rows.high[up] - grid->low[up] : grid->high[up] - rows.low[up]) / rows.unit;
    const double room = (grid->high[up] - grid->low[up]) / rows.unit;
    const int count = CELLS * per_axis + 1;
    if (height > room - 0.5 || depth < (count + 1) * rows.unit || !is_alone(sampling, shapes, l, &rows))
        return rows;
    rows.top = rows.upwards ? rows.high[up] : rows.low[up];
    rows.first = (int64_t)ceil(height - 1e-6) - count; /* rounding is no row */
    rows.share = (height - (double)rows.first) / count;
    rows.rows = count;
    return rows;
}

int sk_level_rows_place(const sk_level_rows *rows, const sk_grid *grid, uint64_t seed, const int64_t sub[3],
                        const double jitter[3], int *has, double x[3])
{
    const int up = rows->axis, along = rows->along, across = 3 - up - along;
    const int64_t last = (int64_t)llround((grid->high[up] - grid->low[up]) / rows->unit) - 1;
    const int64_t row = (rows->upwards ? sub[up] : last - sub[up]) - rows->first;
    if (!rows->rows || row < 0 || row >= rows->rows)
        return 0;
    /* In 3D the sides across the rows may cut sub-cells. */
    const double side = grid->dimension == 3 ? grid->low[across] + (double)sub[across] * rows->unit : 0.0;
    if (grid->dimension == 3 &&
        (side < rows->low[across] - 1e-6 * rows->unit || side + rows->unit > rows->high[across] + 1e-6 * rows->unit))
        return 0;

    const double start = (rows->low[along] - grid->low[along]) / rows->unit;
    const double length = (rows->high[along] - rows->low[along]) / rows->unit;
    const int64_t begin = (int64_t)floor(start + 1e-6), cells = (int64_t)ceil(start + length - 1e-6) - begin;
    const int64_t own = sub[along] - begin;
    if (own < 0 || own >= cells)
        return 0;

    /* Numbers of particles are rounded so that neighbouring rows together have theirs, and spread over the row. Whole
     * numbers decide which sub-cells have one: none is lost by rounding. */
    const double number = (double)row + (double)rows->rows * (grid->dimension == 3 ? (double)sub[across] : 0.0);
    const double lot = sk_random_float(seed, 0, 23), wanted = rows->share * length;
    const int64_t count = (int64_t)(floor(wanted * (number + 1.0) + lot) - floor(wanted * number + lot));
    const int64_t k = own * count / cells;
    const double place = ((double)k + 0.5) * length / fmax((double)count, 1.0);
    *has = (own + 1) * count / cells > k;

    const double depth = ((double)(rows->rows - row) - 0.5 - jitter[up]) * rows->share * rows->unit;
    for (int d = 0; d < grid->dimension; d++)
        x[d] = grid->low[d] + ((double)sub[d] + 0.5 + jitter[d]) * rows->unit;
    x[along] = rows->low[along] + (place + jitter[along]) * rows->unit;
    x[up] = rows->upwards ? rows->top - depth : rows->top + depth;
    return 1;
}
