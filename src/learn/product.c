/* Matrix products for batches of rows. Each element is a sum in a fixed order. */
#include "base/simd.h"
#include "learn/network.h"

enum { ROWS = 4, COLUMNS = 16 };

/* Sixteen columns of `rows` rows, in registers. `rows` is a compile-time constant. */
static inline __attribute__((always_inline)) void product_tile(const float *left, const float *right, const float *bias,
                                                               const int rows, int inner, int columns, float *result)
{
    f8 sums[ROWS][2];
    for (int r = 0; r < rows; r++)
        for (int n = 0; n < 2; n++)
            sums[r][n] = bias ? f8_load(bias + 8 * n) : f8_splat(0.0f);
    for (int k = 0; k < inner; k++) {
        const f8 first = f8_load(right + (size_t)k * (size_t)columns),
                 second = f8_load(right + (size_t)k * (size_t)columns + 8);
        for (int r = 0; r < rows; r++) {
            const float a = left[(size_t)r * (size_t)inner + (size_t)k];
            sums[r][0] += a * first;
            sums[r][1] += a * second;
        }
    }
    for (int r = 0; r < rows; r++)
        for (int n = 0; n < 2; n++)
            f8_store(result + (size_t)r * (size_t)columns + 8 * n, sums[r][n]);
}

static void product_rows(const float *left, const float *right, const float *bias, int rows, int inner, int columns,
                         float *result)
{
    int c = 0;
    for (; c + COLUMNS <= columns; c += COLUMNS) {
        const float *start = bias ? bias + c : NULL;
        if (rows == ROWS)
            product_tile(left, right + c, start, ROWS, inner, columns, result + c);
        else
            for (int r = 0; r < rows; r++)
                product_tile(left + (size_t)r * (size_t)inner, right + c, start, 1, inner, columns,
                             result + (size_t)r * (size_t)columns + c);
    }
    for (; c < columns; c++) {
        float sums[ROWS];
        for (int r = 0; r < rows; r++)
            sums[r] = bias ? bias[c] : 0.0f;
        for (int k = 0; k < inner; k++) {
            const float b = right[(size_t)k * (size_t)columns + (size_t)c];
            for (int r = 0; r < rows; r++) /* rows together: their sums do not wait for each other */
                sums[r] += left[(size_t)r * (size_t)inner + (size_t)k] * b;
        }
        for (int r = 0; r < rows; r++)
            result[(size_t)r * (size_t)columns + (size_t)c] = sums[r];
    }
}

static void product_groups(const float *left, const float *right, const float *bias, int rows, int inner, int columns,
                           float *result, int g)
{
    const int first = ROWS * g, count = rows - first < ROWS ? rows - first : ROWS;
    product_rows(left + (size_t)first * (size_t)inner, right, bias, count, inner, columns,
                 result + (size_t)first * (size_t)columns);
}

void sk_learn_product(const float *left, const float *right, const float *bias, int rows, int inner, int columns,
                      float *result, int threads)
{
    const int groups = (rows + ROWS - 1) / ROWS;
    if (threads <= 1 || groups <= 8) { /* no parallel region: it costs as much as a small product */
        for (int g = 0; g < groups; g++)
            product_groups(left, right, bias, rows, inner, columns, result, g);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int g = 0; g < groups; g++)
        product_groups(left, right, bias, rows, inner, columns, result, g);
}
