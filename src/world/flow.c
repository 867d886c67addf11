#include "world/flow.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Index of the last place at or below x, from 0 to count - 1. */
static int find(const double *places, int count, double x)
{
    int low = 0, high = count;
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        if (places[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The different coordinates of a column, ascending. */
static int list_places(const sk_csv *table, int column, double *places)
{
    int count = 0;
    for (size_t r = 0; r < table->row_count; r++)
        places[r] = table->values[r * (size_t)table->column_count + (size_t)column];
    qsort(places, table->row_count, sizeof *places, compare);
    for (size_t r = 0; r < table->row_count; r++)
        if (count == 0 || places[r] != places[count - 1])
            places[count++] = places[r];
    return count;
}

/* Puts the rows of the table into the grid of its points; each point must be there once. */
static selkie_code fill(sk_flow *flow, const sk_csv *table, const int columns[6], const char *what, selkie_error *error)
{
    size_t points = 1;
    for (int d = 0; d < 3; d++) {
        flow->counts[d] = 1;
        if (d >= flow->dimension)
            continue;
        flow->places[d] = malloc(table->row_count * sizeof(double));
        if (!flow->places[d])
            return sk_fail(error, SELKIE_ERROR_MEMORY, "%s.flow.file: no memory", what);
        flow->counts[d] = list_places(table, columns[d], flow->places[d]);
        points *= (size_t)flow->counts[d]; /* at most row_count each; compared below */
    }
    if (points != table->row_count)
        return sk_fail(
            error, SELKIE_ERROR_FORMAT,
            "%s.flow.file: %zu points do not make a grid of %d x %d x %d: every point of it must be there once", what,
            table->row_count, flow->counts[0], flow->counts[1], flow->counts[2]);
    flow->values = malloc(points * 3 * sizeof *flow->values);
    if (!flow->values)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s.flow.file: no memory", what);
    for (size_t i = 0; i < 3 * points; i++)
        flow->values[i] = NAN;
    for (size_t r = 0; r < points; r++) {
        const double *row = table->values + r * (size_t)table->column_count;
        size_t place = 0;
        for (int d = flow->dimension - 1; d >= 0; d--)
            place = place * (size_t)flow->counts[d] + (size_t)find(flow->places[d], flow->counts[d], row[columns[d]]);
        for (int d = 0; d < 3; d++)
            flow->values[3 * place + (size_t)d] = d < flow->dimension ? row[columns[3 + d]] : 0.0;
    }
    for (size_t i = 0; i < 3 * points; i++)
        if (isnan(flow->values[i]))
            return sk_fail(error, SELKIE_ERROR_FORMAT, "%s.flow.file: some point is there twice", what);
    return SELKIE_OK;
}

static selkie_code read_grid(sk_flow *flow, const sk_csv *table, const char *what, selkie_error *error)
{
    static const char *const names[] = {"x", "y", "z", "u", "v", "w"};
    int columns[6];
    for (int c = 0; c < 6; c++) {
        columns[c] = sk_csv_column(table, names[c]);
        if (c % 3 < flow->dimension && columns[c] < 0)
            return sk_fail(error, SELKIE_ERROR_FORMAT, "%s.flow.file: has no column \"%s\"; it needs %s", what,
                           names[c], flow->dimension == 2 ? "x, y, u, v" : "x, y, z, u, v, w");
    }
    return fill(flow, table, columns, what, error);
}

selkie_code sk_flow_open(sk_flow *flow, const selkie_liquid_def *liquid, int dimension, const double origin[3],
                         const char *folder, const char *what, selkie_error *error)
{
    memset(flow, 0, sizeof *flow);
    flow->liquid = liquid;
    flow->dimension = dimension;
    memcpy(flow->origin, origin, sizeof flow->origin);
    if (liquid->flow.kind != SELKIE_FLOW_FILE)
        return SELKIE_OK;
    sk_csv table;
    char key[160];
    snprintf(key, sizeof key, "%s.flow.file: %s", what, liquid->flow.file);
    SK_TRY(sk_csv_read(folder, liquid->flow.file, key, &table, error));
    selkie_code code = read_grid(flow, &table, what, error);
    sk_csv_free(&table);
    return code;
}

void sk_flow_close(sk_flow *flow)
{
    for (int d = 0; d < 3; d++)
        free(flow->places[d]);
    free(flow->values);
    memset(flow, 0, sizeof *flow);
}

/* Multilinear between the points of the grid; outside, the nearest point of its boundary counts. */
static void add_from_grid(const sk_flow *flow, const double x[3], double v[3])
{
    int low[3] = {0, 0, 0};
    double share[3] = {0, 0, 0};
    for (int d = 0; d < flow->dimension; d++) {
        const double *places = flow->places[d], at = x[d] + flow->origin[d];
        const int last = flow->counts[d] - 1;
        low[d] = find(places, flow->counts[d], at);
        if (low[d] < last && at > places[0])
            share[d] = (at - places[low[d]]) / (places[low[d] + 1] - places[low[d]]);
    }
    for (int corner = 0; corner < 1 << flow->dimension; corner++) {
        double weight = 1.0;
        size_t place = 0;
        for (int d = flow->dimension - 1; d >= 0; d--) {
            const int up = corner >> d & 1;
            weight *= up ? share[d] : 1.0 - share[d];
            place = place * (size_t)flow->counts[d] + (size_t)(low[d] + (up && low[d] + 1 < flow->counts[d]));
        }
        for (int d = 0; d < 3; d++)
            v[d] += weight * flow->values[3 * place + (size_t)d];
    }
}

void sk_flow_add(const sk_flow *flow, const double x[3], double v[3])
{
    const selkie_flow_def *def = &flow->liquid->flow;
    if (def->kind == SELKIE_FLOW_TAYLOR_GREEN) {
        const double k = 2.0 * 3.14159265358979323846 / def->wavelength, *c = flow->liquid->center;
        const double a = k * (x[0] - c[0]), b = k * (x[1] - c[1]);
        const double along = flow->dimension == 3 ? cos(k * (x[2] - c[2])) : 1.0;
        v[0] += def->speed * sin(a) * cos(b) * along;
        v[1] -= def->speed * cos(a) * sin(b) * along;
    } else if (flow->values) {
        add_from_grid(flow, x, v);
    }
}
