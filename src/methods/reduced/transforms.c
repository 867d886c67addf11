#include "methods/reduced/transforms.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

/* --- Functions along an axis --- */

int sk_reduced_first(int family)
{
    return family == SK_REDUCED_OPEN || family == SK_REDUCED_PERIODIC ? 0 : 1;
}

double sk_reduced_wave_number(const sk_reduced_spectrum *s, int d, int n)
{
    switch (s->family[d]) {
    case SK_REDUCED_PERIODIC:
        return 2.0 * ((n + 1) / 2) * PI / s->size[d];
    case SK_REDUCED_OPEN_LOW:
    case SK_REDUCED_OPEN_HIGH:
        return (n - 0.5) * PI / s->size[d];
    default:
        return n * PI / s->size[d];
    }
}

void sk_reduced_function(const sk_reduced_spectrum *s, int d, int n, double x, double *value, double *slope)
{
    const int family = s->family[d];
    const double angle = sk_reduced_wave_number(s, d, n) * x;
    const int is_sine =
        family == SK_REDUCED_CLOSED || family == SK_REDUCED_OPEN_HIGH || (family == SK_REDUCED_PERIODIC && n % 2 == 1);
    *value = is_sine ? sin(angle) : cos(angle);
    *slope = is_sine ? cos(angle) : -sin(angle);
}

/* --- Tables --- */

selkie_code sk_reduced_table_make(sk_reduced_table *table, const sk_reduced_spectrum *s, int d, int points, int nodes,
                                  selkie_error *error)
{
    const int waves = s->waves[d], first = sk_reduced_first(s->family[d]);
    const size_t bytes = (size_t)waves * (size_t)points * sizeof(double);
    double **arrays[4] = {&table->value, &table->slope, &table->value_turned, &table->slope_turned};
    table->points = points;
    for (int n = 0; n < 4; n++)
        if (!(*arrays[n] = sk_allocate(s->memory, bytes)))
            return sk_fail(error, SELKIE_ERROR_MEMORY, "reduced.modes: no memory for the transforms");

    for (int k = 0; k < waves; k++)
        for (int m = 0; m < points; m++) {
            const double x = nodes ? s->size[d] * m / (points - 1) : s->size[d] * (m + 0.5) / points;
            const size_t at = (size_t)k * (size_t)points + (size_t)m, turned = (size_t)m * (size_t)waves + (size_t)k;
            sk_reduced_function(s, d, k + first, x, &table->value[at], &table->slope[at]);
            /* The sine of a multiple of pi is 0 at a wall, not 1e-16. */
            if (s->family[d] == SK_REDUCED_CLOSED && nodes && (m == 0 || m == points - 1))
                table->value[at] = 0.0;
            table->value_turned[turned] = table->value[at];
            table->slope_turned[turned] = table->slope[at];
        }
    return SELKIE_OK;
}

void sk_reduced_table_free(sk_reduced_table *table, sk_memory *memory)
{
    sk_release(memory, table->value);
    sk_release(memory, table->slope);
    sk_release(memory, table->value_turned);
    sk_release(memory, table->slope_turned);
    memset(table, 0, sizeof *table);
}

/* --- Products --- */

enum { ROWS = 4, COLUMNS = 8 }; /* of a block that stays in registers */

/* A matrix: entry (i, k) of the left factor is at left[i * row + k * inner]. */
typedef struct product {
    const double *left, *right; /* right: [inner][columns] */
    size_t row, inner;
    double *to; /* [rows][columns] */
    int rows, sums, columns;
} product;

/* Explicit vectors: the compiler does not keep a block of plain sums in registers. */
typedef double lanes __attribute__((vector_size(COLUMNS / 4 * sizeof(double)), aligned(sizeof(double))));

static inline void multiply_block(const product *p, int first, int column)
{
    lanes sum[ROWS][4] = {{{0}}};
    const double *left = p->left + (size_t)first * p->row;
    const double *right = p->right + column;
    for (int k = 0; k < p->sums; k++) {
        const lanes *values = (const lanes *)(const void *)right;
        const lanes b0 = values[0], b1 = values[1], b2 = values[2], b3 = values[3];
        for (int i = 0; i < ROWS; i++) {
            const double a = left[(size_t)i * p->row];
            sum[i][0] += a * b0;
            sum[i][1] += a * b1;
            sum[i][2] += a * b2;
            sum[i][3] += a * b3;
        }
        left += p->inner;
        right += p->columns;
    }
    for (int i = 0; i < ROWS; i++)
        memcpy(p->to + (size_t)(first + i) * (size_t)p->columns + column, sum[i], sizeof sum[i]);
}

/* Blocks at the ends of rows and columns. */
static void multiply_rest(const product *p, int first, int column)
{
    const int rows = p->rows - first < ROWS ? p->rows - first : ROWS;
    const int columns = p->columns - column < COLUMNS ? p->columns - column : COLUMNS;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            double sum = 0.0;
            for (int k = 0; k < p->sums; k++)
                sum += p->left[(size_t)(first + i) * p->row + (size_t)k * p->inner] *
                       p->right[(size_t)k * (size_t)p->columns + (size_t)(column + j)];
            p->to[(size_t)(first + i) * (size_t)p->columns + (size_t)(column + j)] = sum;
        }
}

/* Each entry is one sum in a fixed order: the same bits on any threads. A thread takes a range of rows, and goes
 * through it for each block of columns: the block's columns of the right factor stay in the cache. */
static void multiply(const product *p, int threads)
{
    const double work = (double)p->rows * p->sums * p->columns;
    const int parts = work > 1e5 ? threads : 1, blocks = (p->rows + ROWS - 1) / ROWS;
#pragma omp parallel for num_threads(parts) schedule(static) if (parts > 1)
    for (int part = 0; part < parts; part++) {
        const int begin = blocks * part / parts * ROWS, end = blocks * (part + 1) / parts * ROWS;
        for (int column = 0; column < p->columns; column += COLUMNS)
            for (int first = begin; first < end && first < p->rows; first += ROWS) {
                if (p->rows - first >= ROWS && p->columns - column >= COLUMNS)
                    multiply_block(p, first, column);
                else
                    multiply_rest(p, first, column);
            }
    }
}

void sk_reduced_to_points(sk_reduced_spectrum *s, const sk_reduced_table table[2], const int kind[2], double *to,
                          int threads)
{
    const int k1 = s->waves[0], k2 = s->waves[1], nx = table[0].points, ny = table[1].points;
    const double *x = kind[0] ? table[0].slope : table[0].value, *y = kind[1] ? table[1].slope : table[1].value;
    multiply(&(product){s->coefficients, y, (size_t)k2, 1, s->half, k1, k2, ny}, threads);
    multiply(&(product){x, s->half, 1, (size_t)nx, to, nx, k1, ny}, threads);
}

void sk_reduced_to_waves(sk_reduced_spectrum *s, const sk_reduced_table table[2], const int kind[2], const double *from,
                         int threads)
{
    const int k1 = s->waves[0], k2 = s->waves[1], nx = table[0].points, ny = table[1].points;
    const double *x = kind[0] ? table[0].slope : table[0].value,
                 *y = kind[1] ? table[1].slope_turned : table[1].value_turned;
    multiply(&(product){x, from, (size_t)nx, 1, s->half, k1, nx, ny}, threads);
    multiply(&(product){s->half, y, (size_t)ny, 1, s->coefficients, k1, ny, k2}, threads);
}
