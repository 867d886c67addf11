/* Samples for the model of splashes from the particles of a running simulation. */
#ifndef SELKIE_TOOL_SPLASH_SAMPLES_H
#define SELKIE_TOOL_SPLASH_SAMPLES_H

#include <stdint.h>
#include <selkie/selkie.h>

#include "learn/splash_kernels.h"

/* Samples of one run. */
typedef struct splash_samples {
    int dimension, feature_count;
    int64_t count, splashes;
    size_t capacity;
    float *features, *change, *weight;
    uint8_t *label;
} splash_samples;

typedef struct splash_sampler splash_sampler;

/* `ratio`: coarse cell over the cell of the world; `keep`: share of the samples without a splash that are kept. */
splash_sampler *splash_sampler_open(const selkie_world *world, int ratio, double keep, uint64_t seed);
/* At each frame: labels the candidates of the frame before, and takes the candidates of this one. Returns 0 without
 * memory. */
int splash_sampler_frame(splash_sampler *sampler, const selkie_world *world, splash_samples *samples);
void splash_sampler_close(splash_sampler *sampler);
void splash_samples_free(splash_samples *samples);

#endif
