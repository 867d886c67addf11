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
splash_sampler *splash_sampler_open(const selkie_scene *scene, int ratio, double keep, uint64_t seed);
/* At each frame: labels the candidates of the frame before, and takes the candidates of this one. Returns 0 without
 * memory. */
int splash_sampler_frame(splash_sampler *sampler, const selkie_world *world, splash_samples *samples);

/* Particles of a frame, relative to the scene's origin; ids may be NULL: the numbers count. */
typedef struct splash_particles {
    int64_t count;
    const float *position, *velocity; /* [count][3] */
    const uint32_t *id;
    double time; /* s */
} splash_particles;

/* A particle near the surface of a frame. */
typedef struct splash_candidate {
    int64_t particle;
    uint32_t id;
    int cell;                       /* an index below splash_sampler_cells() */
    float position[3], velocity[3]; /* m, m/s of the coarse flow */
    sk_splash_frame frame;
} splash_candidate;

/* Takes smaller stencils, those of a model. */
void splash_sampler_use(splash_sampler *sampler, int reach, int velocity_reach);
/* Takes the fields of a frame, and the candidates in it with their features, one row each. The arrays last until the
 * next call. Returns 0 without memory. */
int splash_sampler_search(splash_sampler *sampler, const splash_particles *particles, int64_t *count,
                          const splash_candidate **candidates, const float **features, int *feature_count);
size_t splash_sampler_cells(const splash_sampler *sampler);
/* Speed (m/s) that scales velocities. */
double splash_sampler_speed(const splash_sampler *sampler);
/* Fill of the frame at a position; -1 outside the domain. */
float splash_sampler_fill(const splash_sampler *sampler, const float position[3]);
/* Moves a position beyond joined sides into the domain. */
void splash_sampler_wrap(const splash_sampler *sampler, float position[3]);
/* Is a position inside an obstacle at the time of the last frame? */
int splash_sampler_in_solid(const splash_sampler *sampler, const float position[3]);
void splash_sampler_close(splash_sampler *sampler);
void splash_samples_free(splash_samples *samples);

#endif
