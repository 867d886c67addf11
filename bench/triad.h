/* Memory bandwidth of this machine, for the lower bounds in the benches. */
#ifndef SK_BENCH_TRIAD_H
#define SK_BENCH_TRIAD_H

#include <stddef.h>
#include <stdlib.h>
#include "base/timer.h"

/* Bytes per second of a[i] = b[i] + s c[i] over arrays far larger than any cache; the fastest of a few. */
static double triad(int threads)
{
    size_t count = (size_t)48 << 20;
    float *a = malloc(count * sizeof *a), *b = malloc(count * sizeof *b), *c = malloc(count * sizeof *c);
    double best = 0.0;
    if (a && b && c) {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (size_t i = 0; i < count; i++)
            a[i] = 0.0f, b[i] = 1.0f, c[i] = 2.0f;
        for (int run = 0; run < 8; run++) {
            double begin = sk_wall_ms();
#pragma omp parallel for num_threads(threads) schedule(static)
            for (size_t i = 0; i < count; i++)
                a[i] = b[i] + 2.5f * c[i];
            double rate = 12.0 * (double)count / (sk_wall_ms() - begin) * 1e3;
            best = rate > best ? rate : best;
        }
    }
    free(a);
    free(b);
    free(c);
    return best;
}

#endif
