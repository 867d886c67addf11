/* Layout of particles in memory: records, arrays, or blocks of arrays.
 *
 * Three layouts of the same seven values (position, velocity, id) go through the passes of a step: a nearly sorted
 * permutation (the cell sort) and a pass that reads position and velocity and writes both (transfer and advection). All
 * three in one run, so that the ratios hold on a busy machine. Usage: bench_layout [particles]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/simd.h"
#include "base/timer.h"

enum { VALUES = 7, LANES = 8, RUNS = 7 };

typedef struct record {
    float value[8]; /* seven and one to spare: 32 bytes */
} record;

typedef struct block {
    float value[8][LANES];
} block;

static void *get(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!memory) {
        fprintf(stderr, "bench_layout: no memory\n");
        exit(1);
    }
    memset(memory, 0, bytes);
    return memory;
}

/* The order after a step: most particles keep their cell, 12.5 % move to a cell nearby. */
static void make_order(uint32_t *order, size_t count)
{
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    for (size_t i = 0; i + 4096 < count; i++)
        if (sk_random_float(1, i, 0) < 0.125f) {
            size_t j = i + (size_t)(sk_random_float(1, i, 1) * 4096.0f);
            uint32_t t = order[i];
            order[i] = order[j];
            order[j] = t;
        }
}

static double best(double a, double b)
{
    return a < b ? a : b;
}

int main(int argc, char **argv)
{
    size_t count = argc > 1 ? (size_t)atol(argv[1]) : 2000000;
    count = count / LANES * LANES;
    if (count < 8192) {
        fprintf(stderr, "bench_layout: %s particles are too few to measure; try 2000000\n", argv[1]);
        return 2;
    }
    uint32_t *order = get(count * sizeof *order);
    make_order(order, count);
    record *records = get(count * sizeof *records), *records_to = get(count * sizeof *records);
    float *arrays[VALUES], *arrays_to[VALUES];
    for (int v = 0; v < VALUES; v++)
        arrays[v] = get(count * sizeof(float)), arrays_to[v] = get(count * sizeof(float));
    block *blocks = get(count / LANES * sizeof *blocks), *blocks_to = get(count / LANES * sizeof *blocks);

    double permute[3] = {1e30, 1e30, 1e30}, pass[3] = {1e30, 1e30, 1e30};
    for (int run = 0; run < RUNS; run++) {
        double begin = sk_wall_ms();
        for (size_t i = 0; i < count; i++)
            records_to[i] = records[order[i]];
        permute[0] = best(permute[0], sk_wall_ms() - begin);

        begin = sk_wall_ms();
        for (int v = 0; v < VALUES; v++)
            for (size_t i = 0; i < count; i++)
                arrays_to[v][i] = arrays[v][order[i]];
        permute[1] = best(permute[1], sk_wall_ms() - begin);

        begin = sk_wall_ms();
        for (size_t i = 0; i < count; i++)
            for (int v = 0; v < VALUES; v++)
                blocks_to[i / LANES].value[v][i % LANES] = blocks[order[i] / LANES].value[v][order[i] % LANES];
        permute[2] = best(permute[2], sk_wall_ms() - begin);

        begin = sk_wall_ms();
        for (size_t i = 0; i < count; i += LANES) {
            f8 r[8];
            memcpy(r, records_to + i, sizeof r);
            f8_transpose(r);
            for (int d = 0; d < 3; d++) {
                r[3 + d] = 0.97f * r[3 + d] + 0.03f;
                r[d] += 0.01f * r[3 + d];
            }
            f8_transpose(r);
            memcpy(records_to + i, r, sizeof r);
        }
        pass[0] = best(pass[0], sk_wall_ms() - begin);

        begin = sk_wall_ms();
        for (size_t i = 0; i < count; i += LANES)
            for (int d = 0; d < 3; d++) {
                f8 v = 0.97f * f8_load(arrays_to[3 + d] + i) + 0.03f;
                f8_store(arrays_to[3 + d] + i, v);
                f8_store(arrays_to[d] + i, f8_load(arrays_to[d] + i) + 0.01f * v);
            }
        pass[1] = best(pass[1], sk_wall_ms() - begin);

        begin = sk_wall_ms();
        for (size_t b = 0; b < count / LANES; b++)
            for (int d = 0; d < 3; d++) {
                f8 v = 0.97f * f8_load(blocks_to[b].value[3 + d]) + 0.03f;
                f8_store(blocks_to[b].value[3 + d], v);
                f8_store(blocks_to[b].value[d], f8_load(blocks_to[b].value[d]) + 0.01f * v);
            }
        pass[2] = best(pass[2], sk_wall_ms() - begin);
    }
    static const char *const names[3] = {"records", "arrays", "blocks of arrays"};
    double scale = 1e6 / (double)count;
    printf("%zu particles, one thread, best of %d\n", count, RUNS);
    for (int l = 0; l < 3; l++)
        printf("%-18s permute %6.2f ns a particle   pass %6.2f ns   together %.2f of records\n", names[l],
               permute[l] * scale, pass[l] * scale, (permute[l] + pass[l]) / (permute[0] + pass[0]));
    free(order);
    free(records);
    free(records_to);
    for (int v = 0; v < VALUES; v++)
        free(arrays[v]), free(arrays_to[v]);
    free(blocks);
    free(blocks_to);
    return 0;
}
