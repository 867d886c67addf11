#include "methods/reduced/svd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"
#include "base/memory.h"
#include "selkie_config.h"

enum { FEW_COLUMNS = 24 };

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

#if SELKIE_HAVE_LAPACK
extern void dgesdd_(const char *job, const int *rows, const int *columns, double *a, const int *lda, double *s,
                    double *u, const int *ldu, double *vt, const int *ldvt, double *work, const int *size,
                    int *integers, int *info);

#define LAPACK(F) F(dgesdd_)
SK_LIBRARY_TABLE(lapack_functions, LAPACK);

static selkie_code load_lapack(lapack_functions *lapack)
{
#if SELKIE_LATE_LAPACK
    static const char *const names[] = {LAPACK(SK_LIBRARY_NAME)};
    return sk_library_load(SELKIE_LATE_LAPACK_FILE, SELKIE_LATE_LAPACK_FOLDER, names, sizeof *lapack, lapack, "bases",
                           NULL);
#else
    *lapack = (lapack_functions){LAPACK(SK_LIBRARY_ADDRESS)};
    return SELKIE_OK;
#endif
}

/* turned <- turned V, with V^T from LAPACK. */
static void turn_columns(double *turned, int rows, int columns, const double *vt, double *row)
{
    for (int n = 0; n < rows; n++) {
        for (int q = 0; q < columns; q++) {
            row[q] = 0.0;
            for (int p = 0; p < columns; p++)
                row[q] += turned[(long)p * rows + n] * vt[(long)p * columns + q];
        }
        for (int q = 0; q < columns; q++)
            turned[(long)q * rows + n] = row[q];
    }
}

/* By divide and conquer. Returns 0 if it fails; the matrix is as it was then. */
static int by_lapack(double *matrix, int rows, int columns, double *values, double *turned, int turned_rows)
{
    lapack_functions lapack;
    if (load_lapack(&lapack) != SELKIE_OK)
        return 0;
    const size_t n = (size_t)columns, size = (size_t)rows * n;
    int info = 1, length = -1, one = 1;
    double wanted = 0.0, *copy = sk_allocate(NULL, size * sizeof *copy),
           *vt = sk_allocate(NULL, (n * n + n) * sizeof *vt);
    int *integers = sk_allocate(NULL, 8 * n * sizeof *integers);
    lapack.dgesdd_("O", &rows, &columns, matrix, &rows, values, NULL, &one, vt, &columns, &wanted, &length, integers,
                   &info);
    length = (int)wanted;
    double *work = sk_allocate(NULL, (size_t)length * sizeof *work);
    if (copy && vt && integers && work && info == 0) {
        memcpy(copy, matrix, size * sizeof *copy);
        lapack.dgesdd_("O", &rows, &columns, copy, &rows, values, NULL, &one, vt, &columns, work, &length, integers,
                       &info);
    } else {
        info = 1;
    }
    if (info == 0) {
        for (int p = 0; p < columns; p++)
            for (int r = 0; r < rows; r++)
                matrix[(long)p * rows + r] = values[p] * copy[(long)p * rows + r];
        if (turned)
            turn_columns(turned, turned_rows, columns, vt, vt + n * n);
    }
    sk_release(NULL, copy);
    sk_release(NULL, vt);
    sk_release(NULL, integers);
    sk_release(NULL, work);
    return info == 0;
}
#else
static int by_lapack(double *matrix, int rows, int columns, double *values, double *turned, int turned_rows)
{
    (void)matrix, (void)rows, (void)columns, (void)values, (void)turned, (void)turned_rows;
    return 0;
}
#endif

void sk_svd_columns(double *matrix, int rows, int columns, double *values, double *turned, int turned_rows)
{
    enum { MOST_SWEEPS = 40 };
    double c, s;
    if (columns > FEW_COLUMNS && rows >= columns && by_lapack(matrix, rows, columns, values, turned, turned_rows))
        return;
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
