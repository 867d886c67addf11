/* Cost of a 3x3 decomposition: the kernels one matrix at a time, the batches over lanes, in ns a matrix and as a ratio,
 * all in one run on one thread; then doubles, which have no lanes. Usage: bench_small_dense [matrices] */
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/timer.h"
#include "linalg/small_dense.h"
#include "linalg/small_dense_kernels.h"

enum { RUNS = 200 };

typedef struct arrays {
    size_t count;
    float *a, *triangles, *u, *values, *v; /* count x 9, 6, 9, 6, 9 */
    double *wide_a, *wide_u, *wide_values, *wide_v;
} arrays;

typedef void run(const arrays *x);

static void svd_kernel(const arrays *x)
{
    for (size_t i = 0; i < x->count; i++)
        sk_svd_3d(x->a + 9 * i, x->u + 9 * i, x->values + 3 * i, x->v + 9 * i);
}

static void svd_lanes(const arrays *x)
{
    sk_svd_batch_3d(x->count, x->a, x->u, x->values, x->v, SK_SVD_ROTATIONS, 1);
}

static void svd_double(const arrays *x)
{
    sk_svd_batch_double_3d(x->count, x->wide_a, x->wide_u, x->wide_values, x->wide_v, SK_SVD_ROTATIONS, 1);
}

static void polar_kernel(const arrays *x)
{
    for (size_t i = 0; i < x->count; i++)
        sk_polar_3d(x->a + 9 * i, x->u + 9 * i, x->values + 6 * i);
}

static void polar_lanes(const arrays *x)
{
    sk_polar_batch_3d(x->count, x->a, x->u, x->values, 1);
}

static void polar_double(const arrays *x)
{
    sk_polar_batch_double_3d(x->count, x->wide_a, x->wide_u, x->wide_values, 1);
}

static void eigen_kernel(const arrays *x)
{
    for (size_t i = 0; i < x->count; i++)
        sk_eigen_3d(x->triangles + 6 * i, x->values + 3 * i, x->v + 9 * i);
}

static void eigen_lanes(const arrays *x)
{
    sk_eigen_batch_3d(x->count, x->triangles, x->values, x->v, 1);
}

static void eigen_double(const arrays *x)
{
    sk_eigen_batch_double_3d(x->count, x->wide_a, x->wide_values, x->wide_v, 1);
}

static const struct {
    const char *name;
    run *kernel, *lanes, *wide;
} benches[] = {{"svd", svd_kernel, svd_lanes, svd_double},
               {"polar", polar_kernel, polar_lanes, polar_double},
               {"eigen", eigen_kernel, eigen_lanes, eigen_double}};

/* Keeps the least time in ns a matrix. */
static void measure(run *what, const arrays *x, double *least)
{
    double begin = sk_wall_ms();
    what(x);
    double ns = (sk_wall_ms() - begin) * 1e6 / (double)x->count;
    if (*least == 0 || ns < *least)
        *least = ns;
}

static void *get(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory) {
        fprintf(stderr, "bench_small_dense: no memory for %zu numbers; try fewer matrices\n", count);
        exit(1);
    }
    return memory;
}

int main(int argc, char **argv)
{
    const long wanted = argc > 1 ? atol(argv[1]) : 2000;
    if (wanted < 1) {
        fprintf(stderr, "bench_small_dense: %s matrices are too few to measure; try 2000\n", argv[1]);
        return 2;
    }
    const size_t count = (size_t)wanted, numbers = 9 * count;
    arrays x = {.count = count};
    float **const floats[5] = {&x.a, &x.triangles, &x.u, &x.values, &x.v};
    double **const doubles[4] = {&x.wide_a, &x.wide_u, &x.wide_values, &x.wide_v};
    for (int i = 0; i < 5; i++)
        *floats[i] = get(numbers, sizeof(float));
    for (int i = 0; i < 4; i++)
        *doubles[i] = get(numbers, sizeof(double));
    for (size_t i = 0; i < numbers; i++)
        x.wide_a[i] = (double)(x.a[i] = x.triangles[i] = 2.0f * sk_random_float(1, i, 0) - 1.0f);

    for (size_t b = 0; b < sizeof benches / sizeof *benches; b++) {
        double kernel = 0, lanes = 0, wide = 0;
        for (int i = 0; i < RUNS; i++) {
            measure(benches[b].kernel, &x, &kernel);
            measure(benches[b].lanes, &x, &lanes);
            measure(benches[b].wide, &x, &wide);
        }
        printf("%-5s 3x3 | kernel %6.1f ns a matrix | lanes %6.1f ns, %.2f times faster | double %6.1f ns\n",
               benches[b].name, kernel, lanes, kernel / lanes, wide);
    }
    for (int i = 0; i < 5; i++)
        free(*floats[i]);
    for (int i = 0; i < 4; i++)
        free(*doubles[i]);
    return 0;
}
