#include "linalg/dense.h"

#include <math.h>
#include <stddef.h>

static void swap_rows(int n, double *a, double *b)
{
    for (int k = 0; k < n; k++) {
        const double x = a[k];
        a[k] = b[k];
        b[k] = x;
    }
}

int sk_lu_factor(int n, double *matrix, int *rows)
{
    const size_t width = (size_t)n;
    double largest = 0.0;
    for (size_t k = 0; k < width * width; k++)
        largest = fmax(largest, fabs(matrix[k]));
    for (int i = 0; i < n; i++)
        rows[i] = i;

    for (int c = 0; c < n; c++) {
        int pivot = c;
        for (int i = c + 1; i < n; i++)
            if (fabs(matrix[(size_t)i * width + (size_t)c]) > fabs(matrix[(size_t)pivot * width + (size_t)c]))
                pivot = i;
        double *top = matrix + (size_t)c * width, *other = matrix + (size_t)pivot * width;
        if (!(fabs(other[c]) > 1e-14 * largest))
            return 0;
        if (pivot != c) {
            const int row = rows[c];
            swap_rows(n, top, other);
            rows[c] = rows[pivot];
            rows[pivot] = row;
        }
        for (int i = c + 1; i < n; i++) {
            double *row = matrix + (size_t)i * width;
            const double factor = row[c] /= top[c];
            for (int k = c + 1; k < n; k++)
                row[k] -= factor * top[k];
        }
    }
    return 1;
}

void sk_lu_solve(int n, const double *factors, const int *rows, double *x, double *scratch)
{
    const size_t width = (size_t)n;
    for (int i = 0; i < n; i++) {
        double sum = x[rows[i]];
        for (int k = 0; k < i; k++)
            sum -= factors[(size_t)i * width + (size_t)k] * scratch[k];
        scratch[i] = sum;
    }
    for (int i = n - 1; i >= 0; i--) {
        double sum = scratch[i];
        for (int k = i + 1; k < n; k++)
            sum -= factors[(size_t)i * width + (size_t)k] * x[k];
        x[i] = sum / factors[(size_t)i * width + (size_t)i];
    }
}
