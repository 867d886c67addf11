#include "methods/reduced/svd.h"

#include <math.h>

static double product(const double *a, const double *b, int rows)
{
    double sum = 0.0;
    for (int n = 0; n < rows; n++)
        sum += a[n] * b[n];
    return sum;
}

static void rotate(double *a, double *b, int rows, double c, double s)
{
    for (int n = 0; n < rows; n++) {
        const double x = a[n], y = b[n];
        a[n] = c * x - s * y;
        b[n] = s * x + c * y;
    }
}

/* One rotation that makes two columns orthogonal. Returns 0 if they are. */
static int orthogonalise(double *a, double *b, int rows, double *c, double *s)
{
    const double aa = product(a, a, rows), bb = product(b, b, rows), ab = product(a, b, rows);
    if (!(fabs(ab) > 1e-15 * sqrt(aa * bb)))
        return 0;
    const double zeta = (bb - aa) / (2.0 * ab), t = copysign(1.0, zeta) / (fabs(zeta) + sqrt(1.0 + zeta * zeta));
    *c = 1.0 / sqrt(1.0 + t * t);
    *s = *c * t;
    rotate(a, b, rows, *c, *s);
    return 1;
}

static void swap(double *a, double *b, int rows)
{
    for (int n = 0; n < rows; n++) {
        const double x = a[n];
        a[n] = b[n];
        b[n] = x;
    }
}

void sk_svd_columns(double *matrix, int rows, int columns, double *values, double *turned, int turned_rows)
{
    enum { MOST_SWEEPS = 40 };
    double c, s;
    for (int sweep = 0, turns = 1; sweep < MOST_SWEEPS && turns; sweep++) {
        turns = 0;
        for (int p = 0; p < columns; p++)
            for (int q = p + 1; q < columns; q++) {
                double *a = matrix + (long)p * rows, *b = matrix + (long)q * rows;
                if (!orthogonalise(a, b, rows, &c, &s))
                    continue;
                turns++;
                if (turned)
                    rotate(turned + (long)p * turned_rows, turned + (long)q * turned_rows, turned_rows, c, s);
            }
    }

    /* Sort by length. */
    for (int p = 0; p < columns; p++)
        values[p] = sqrt(product(matrix + (long)p * rows, matrix + (long)p * rows, rows));
    for (int p = 0; p < columns; p++) {
        int longest = p;
        for (int q = p + 1; q < columns; q++)
            longest = values[q] > values[longest] ? q : longest;
        if (longest == p)
            continue;
        swap(&values[p], &values[longest], 1);
        swap(matrix + (long)p * rows, matrix + (long)longest * rows, rows);
        if (turned)
            swap(turned + (long)p * turned_rows, turned + (long)longest * turned_rows, turned_rows);
    }
}
