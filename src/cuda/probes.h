/* Sums over the particles of a world on the GPU, for probes. No type of CUDA leaves src/cuda. */
#ifndef SK_CUDA_PROBES_H
#define SK_CUDA_PROBES_H

#include "grid/columns_kernels.h"
#include "methods/step.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which sums: at the nodes of all columns, over height probes, and counts of particles in bins along an axis. */
typedef struct sk_cuda_wanted_sums {
    sk_column_frame frame;
    size_t node_count;         /* 0 = none */
    int probe_count;           /* of the scene; 0 = no heights */
    const float (*middles)[4]; /* [probes] place of a height probe in nodes, and 1; else 0 */
    int bin_count[3];          /* along each axis; 0 = none */
    float bin_scale;           /* 1/m */
} sk_cuda_wanted_sums;

/* The sums in memory of the world, valid up to the next call. */
typedef struct sk_cuda_added {
    const uint32_t *nodes, *heights; /* heights: [probes][length] */
    const uint32_t *bins[3];
} sk_cuda_added;

/* Adds up the particles that are on the device (sk_cuda_has_particles), and waits. */
selkie_code sk_cuda_add_up(sk_step *step, const sk_cuda_wanted_sums *wanted, sk_cuda_added *added, selkie_error *error);

#ifdef __cplusplus
}
#endif

#endif
