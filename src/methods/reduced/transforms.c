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

/* Functions of even and odd number along these axes are even or odd about the middle. */
static int is_symmetric(const sk_reduced_spectrum *s, int d)
{
    return s->family[d] != SK_REDUCED_OPEN_LOW && s->family[d] != SK_REDUCED_OPEN_HIGH;
}

selkie_code sk_reduced_table_make(sk_reduced_table *table, const sk_reduced_spectrum *s, int d, int points, int nodes,
                                  selkie_error *error)
{
    const int waves = s->waves[d], first = sk_reduced_first(s->family[d]), even = (waves + 1) / 2;
    const size_t bytes = (size_t)waves * (size_t)points * sizeof(double);
    double **arrays[4] = {&table->value, &table->slope, &table->value_turned, &table->slope_turned};
    table->points = points;
    for (int n = 0; n < 4; n++)
        if (!(*arrays[n] = sk_allocate(s->memory, bytes)))
            return sk_fail(error, SELKIE_ERROR_MEMORY, "reduced.modes: no memory for the transforms");

    for (int k = 0; k < waves; k++)
        for (int m = 0; m < points; m++) {
            const double x = nodes ? s->size[d] * m / (points - 1) : s->size[d] * (m + 0.5) / points;
            const size_t at = (size_t)k * (size_t)points + (size_t)m;
            const size_t turned =
                k & 1 ? (size_t)points * (size_t)even + (size_t)m * (size_t)(waves - even) : (size_t)m * (size_t)even;
            sk_reduced_function(s, d, k + first, x, &table->value[at], &table->slope[at]);
            /* The sine of a multiple of pi is 0 at a wall, not 1e-16. */
            if (s->family[d] == SK_REDUCED_CLOSED && nodes && (m == 0 || m == points - 1))
                table->value[at] = 0.0;
            table->value_turned[turned + (size_t)(k / 2)] = table->value[at];
            table->slope_turned[turned + (size_t)(k / 2)] = table->slope[at];
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
    const double *left, *right; /* right: [sums] rows, `next` values apart */
    size_t row, inner, next;
    double *to; /* [rows], `width` values apart */
    size_t width;
    int rows, sums, columns;
} product;

/* Explicit vectors: the compiler does not keep a block of plain sums in registers. */
typedef double lanes __attribute__((vector_size(COLUMNS / 4 * sizeof(double)), aligned(sizeof(double))));

static inline __attribute__((always_inline)) void multiply_block(const product *p, int first, int column, int rows)
{
    lanes sum[ROWS][4] = {{{0}}};
    const double *left = p->left + (size_t)first * p->row;
    const double *right = p->right + column;
    for (int k = 0; k < p->sums; k++) {
        const lanes *values = (const lanes *)(const void *)right;
        const lanes b0 = values[0], b1 = values[1], b2 = values[2], b3 = values[3];
        for (int i = 0; i < rows; i++) {
            const double a = left[(size_t)i * p->row];
            sum[i][0] += a * b0;
            sum[i][1] += a * b1;
            sum[i][2] += a * b2;
            sum[i][3] += a * b3;
        }
        left += p->inner;
        right += p->next;
    }
    for (int i = 0; i < rows; i++)
        memcpy(p->to + (size_t)(first + i) * p->width + column, sum[i], sizeof sum[i]);
}

/* Matrices of few columns. */
static void multiply_narrow(const product *p, int first, int rows)
{
    for (int i = first; i < first + rows; i++)
        for (int j = 0; j < p->columns; j++) {
            double sum = 0.0;
            for (int k = 0; k < p->sums; k++)
                sum += p->left[(size_t)i * p->row + (size_t)k * p->inner] * p->right[(size_t)k * p->next + (size_t)j];
            p->to[(size_t)i * p->width + (size_t)j] = sum;
        }
}

/* Rows and columns of a block that reaches over the ends: fewer rows, and columns that were computed before. */
static void multiply_at(const product *p, int first, int column)
{
    const int rows = p->rows - first < ROWS ? p->rows - first : ROWS;
    const int at = column + COLUMNS <= p->columns ? column : p->columns - COLUMNS;
    switch (rows) {
    case 1:
        multiply_block(p, first, at, 1);
        break;
    case 2:
        multiply_block(p, first, at, 2);
        break;
    case 3:
        multiply_block(p, first, at, 3);
        break;
    default:
        multiply_block(p, first, at, ROWS);
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
        const int stop = end < p->rows ? end : p->rows;
        if (p->columns < COLUMNS && begin < stop)
            multiply_narrow(p, begin, stop - begin);
        for (int column = 0; column < p->columns && p->columns >= COLUMNS; column += COLUMNS)
            for (int first = begin; first < stop; first += ROWS)
                multiply_at(p, first, column);
    }
}

/* --- Along one axis ---
 *
 * With functions that are even or odd about the middle, the sums over waves of even and of odd number give both halves
 * of the points: e + o and sign (e - o). Half of the products are left. */

/* [rows][waves] to [rows][points]. */
static void along_rows(sk_reduced_spectrum *s, const sk_reduced_table *table, int slope, double *to, int threads)
{
    const int rows = s->waves[0], waves = s->waves[1], points = table->points, half = (points + 1) / 2;
    const size_t width = (size_t)points;
    const double *functions = slope ? table->slope : table->value, sign = slope ? -1.0 : 1.0;
    product p = {s->coefficients, functions, (size_t)waves, 1, width, to, width, rows, waves, points};
    if (!is_symmetric(s, 1)) {
        multiply(&p, threads);
        return;
    }
    p = (product){s->coefficients, functions, (size_t)waves, 2, 2 * width, to, width, rows, (waves + 1) / 2, half};
    multiply(&p, threads);
    p = (product){s->coefficients + 1, functions + points,
                  (size_t)waves,       2,
                  2 * width,           s->fold,
                  (size_t)half,        rows,
                  waves / 2,           half};
    multiply(&p, threads);
    for (int i = 0; i < rows; i++) {
        double *row = to + (size_t)i * width;
        const double *odd = s->fold + (size_t)i * (size_t)half;
        for (int m = 0; m < half; m++) {
            const double e = row[m], o = odd[m];
            row[points - 1 - m] = sign * (e - o);
            row[m] = e + o;
        }
    }
}

/* [waves][columns] to [points][columns]. */
static void along_columns(sk_reduced_spectrum *s, const sk_reduced_table *table, int slope, const double *from,
                          int columns, double *to, int threads)
{
    const int waves = s->waves[0], points = table->points, half = (points + 1) / 2;
    const size_t width = (size_t)columns, row = (size_t)points;
    const double *functions = slope ? table->slope : table->value, sign = slope ? -1.0 : 1.0;
    product p = {functions, from, 1, row, width, to, width, points, waves, columns};
    if (!is_symmetric(s, 0)) {
        multiply(&p, threads);
        return;
    }
    p = (product){functions, from, 1, 2 * row, 2 * width, to, width, half, (waves + 1) / 2, columns};
    multiply(&p, threads);
    p = (product){functions + points, from + columns, 1, 2 * row, 2 * width, s->fold, width, half, waves / 2, columns};
    multiply(&p, threads);
    for (int m = 0; m < half; m++) {
        double *low = to + (size_t)m * width, *high = to + (size_t)(points - 1 - m) * width;
        const double *odd = s->fold + (size_t)m * width;
        for (int j = 0; j < columns; j++) {
            const double e = low[j], o = odd[j];
            high[j] = sign * (e - o);
            low[j] = e + o;
        }
    }
}

/* [points][columns] to [waves][columns]. */
static void back_along_columns(sk_reduced_spectrum *s, const sk_reduced_table *table, int slope, const double *from,
                               int columns, int threads)
{
    const int waves = s->waves[0], points = table->points, half = (points + 1) / 2;
    const size_t width = (size_t)columns, row = (size_t)points;
    const double *functions = slope ? table->slope : table->value, sign = slope ? -1.0 : 1.0;
    product p = {functions, from, row, 1, width, s->half, width, waves, points, columns};
    if (!is_symmetric(s, 0)) {
        multiply(&p, threads);
        return;
    }
    double *even = s->fold, *odd = s->fold + (size_t)half * width;
    for (int m = 0; m < half; m++) {
        const double *low = from + (size_t)m * width, *high = from + (size_t)(points - 1 - m) * width;
        const double other = points - 1 - m == m ? 0.0 : sign;
        for (int j = 0; j < columns; j++) {
            even[(size_t)m * width + (size_t)j] = low[j] + other * high[j];
            odd[(size_t)m * width + (size_t)j] = low[j] - other * high[j];
        }
    }
    p = (product){functions, even, 2 * row, 1, width, s->half, 2 * width, (waves + 1) / 2, half, columns};
    multiply(&p, threads);
    p = (product){functions + points, odd, 2 * row, 1, width, s->half + columns, 2 * width, waves / 2, half, columns};
    multiply(&p, threads);
}

/* [rows][points] to [rows][waves]. */
static void back_along_rows(sk_reduced_spectrum *s, const sk_reduced_table *table, int slope, int threads)
{
    const int rows = s->waves[0], waves = s->waves[1], points = table->points, half = (points + 1) / 2;
    const int even = (waves + 1) / 2, folded = is_symmetric(s, 1), sums = folded ? half : points;
    const double *functions = slope ? table->slope_turned : table->value_turned, sign = slope ? -1.0 : 1.0;
    const size_t part = (size_t)rows * (size_t)sums;
    double *left[2] = {s->half, s->half}, *to = s->fold + (folded ? 2 * part : 0);
    for (int i = 0; i < rows && folded; i++)
        for (int m = 0; m < half; m++) {
            const double *row = s->half + (size_t)i * (size_t)points;
            const double low = row[m], high = points - 1 - m == m ? 0.0 : sign * row[points - 1 - m];
            s->fold[(size_t)i * (size_t)half + (size_t)m] = low + high;
            s->fold[part + (size_t)i * (size_t)half + (size_t)m] = low - high;
        }
    if (folded) {
        left[0] = s->fold;
        left[1] = s->fold + part;
    }
    for (int odd = 0; odd < 2; odd++) {
        const int count = odd ? waves - even : even;
        const double *right = functions + (odd ? (size_t)points * (size_t)even : 0);
        multiply(&(product){left[odd], right, (size_t)sums, 1, (size_t)count, to, (size_t)count, rows, sums, count},
                 threads);
        for (int i = 0; i < rows; i++)
            for (int w = 0; w < count; w++)
                s->coefficients[(size_t)i * (size_t)waves + (size_t)(2 * w + odd)] =
                    to[(size_t)i * (size_t)count + (size_t)w];
    }
}

void sk_reduced_to_points(sk_reduced_spectrum *s, const sk_reduced_table table[2], const int kind[2], double *to,
                          int threads)
{
    along_rows(s, &table[1], kind[1], s->half, threads);
    along_columns(s, &table[0], kind[0], s->half, table[1].points, to, threads);
}

void sk_reduced_to_waves(sk_reduced_spectrum *s, const sk_reduced_table table[2], const int kind[2], const double *from,
                         int threads)
{
    back_along_columns(s, &table[0], kind[0], from, table[1].points, threads);
    back_along_rows(s, &table[1], kind[1], threads);
}
