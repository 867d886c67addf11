/* Reading the small tables of reference data in tests/data: lines of comma-separated numbers, # comments, one line of
 * column names. */
#ifndef SELKIE_TESTS_PHYSICS_TABLE_H
#define SELKIE_TESTS_PHYSICS_TABLE_H

#include "physics.h"

enum { TABLE_ROWS = 64, TABLE_COLUMNS = 4 };

typedef struct data_table {
    int rows;
    double value[TABLE_ROWS][TABLE_COLUMNS];
} data_table;

UNUSED_IS_FINE data_table read_table(const char *name, int columns)
{
    char path[1024], line[512];
    snprintf(path, sizeof path, "%s/%s", SELKIE_TEST_DATA, name);
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("%s: cannot be read", path);
    data_table t = {0};
    while (fgets(line, sizeof line, file) && t.rows < TABLE_ROWS) {
        char *at = line, *end;
        int c = 0;
        for (; c < columns; c++) {
            t.value[t.rows][c] = strtod(at, &end);
            if (end == at)
                break;
            at = end + (*end == ',');
        }
        t.rows += c == columns;
    }
    fclose(file);
    return t;
}

/* y at x, linear between the samples, whose x must rise; NaN outside. */
UNUSED_IS_FINE double interpolate(int count, const double *xs, const double *ys, double x)
{
    for (int n = 1; n < count; n++)
        if (xs[n - 1] <= x && x <= xs[n])
            return ys[n - 1] + (ys[n] - ys[n - 1]) * (x - xs[n - 1]) / (xs[n] - xs[n - 1]);
    return NAN;
}

#endif
