/* Matrix products for batches of rows. Each element is a sum in a fixed order. */
#include <string.h>

#include "learn/network.h"

enum { ROWS = 4 };

/* Four rows at a time: a row of `right` is loaded once for them. */
static void product_rows(const float *left, const float *right, const float *bias, int rows, int inner, int columns,
                         float *result)
{
    for (int r = 0; r < rows; r++) {
        float *to = result + (size_t)r * (size_t)columns;
        if (bias)
            memcpy(to, bias, (size_t)columns * sizeof *to);
        else
            memset(to, 0, (size_t)columns * sizeof *to);
    }
    if (rows < ROWS) {
        for (int r = 0; r < rows; r++)
            for (int k = 0; k < inner; k++) {
                const float a = left[(size_t)r * (size_t)inner + (size_t)k],
                            *from = right + (size_t)k * (size_t)columns;
                float *to = result + (size_t)r * (size_t)columns;
                for (int c = 0; c < columns; c++)
                    to[c] += a * from[c];
            }
        return;
    }
    float *restrict t0 = result, *restrict t1 = t0 + columns, *restrict t2 = t1 + columns, *restrict t3 = t2 + columns;
    const float *l0 = left, *l1 = l0 + inner, *l2 = l1 + inner, *l3 = l2 + inner;
    for (int k = 0; k < inner; k++) {
        const float *restrict from = right + (size_t)k * (size_t)columns;
        const float a = l0[k], b = l1[k], c = l2[k], d = l3[k];
        for (int j = 0; j < columns; j++) {
            t0[j] += a * from[j];
            t1[j] += b * from[j];
            t2[j] += c * from[j];
            t3[j] += d * from[j];
        }
    }
}

void sk_learn_product(const float *left, const float *right, const float *bias, int rows, int inner, int columns,
                      float *result, int threads)
{
    const int groups = (rows + ROWS - 1) / ROWS;
    (void)threads;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && groups > 8)
    for (int g = 0; g < groups; g++) {
        const int first = ROWS * g, count = rows - first < ROWS ? rows - first : ROWS;
        product_rows(left + (size_t)first * (size_t)inner, right, bias, count, inner, columns,
                     result + (size_t)first * (size_t)columns);
    }
}
