/* Splashes on the device. Private to src/cuda.
 *
 * The networks look at the cells of the surface, a warp a cell, in the order of sums of the CPU (methods/splashes). The
 * particles that become droplets have a mark and the change of their velocity until the end of the step. Droplets are
 * apart from the other particles within a step, as on the CPU, in arrays of the device. The host keeps what is beside
 * the particles and in checkpoints: counts, the cells that have made a droplet, and pairs, which it sends where there
 * are some. */
#ifndef SK_CUDA_SPLASH_PARTS_H
#define SK_CUDA_SPLASH_PARTS_H

#include "cuda/bodies_parts.h"

extern "C" {
#include "methods/splashes/splashes.h"
}
#include "learn/splash_change_kernels.h"

/* A folded network. */
typedef struct sk_cuda_network {
    int layers, gelu, sizes[SK_NETWORK_LAYERS + 1];
    const float *weight[SK_NETWORK_LAYERS], *bias[SK_NETWORK_LAYERS]; /* device */
} sk_cuda_network;

typedef struct sk_cuda_splash_model {
    sk_cuda_network classifier, modifier;
    const float *largest; /* device: [cell_count] of |feature| in training */
    sk_splash_options options;
    int cell_count, normal, widest; /* features of a cell; the law; outputs of the widest layer */
    float spread[3], speed, calm_logit;
} sk_cuda_splash_model;

/* Marks of particles. */
enum { SK_CUDA_CHOSEN = 1, SK_CUDA_LEAVES = 2 }; /* of a window; the one of its cell that becomes a droplet */

/* What becomes of a particle that leaves. */
enum { SK_CUDA_REVERTED, SK_CUDA_LEFT, SK_CUDA_TOO_EARLY };
typedef struct sk_cuda_splash_event {
    uint64_t key; /* of its cell */
    uint32_t particle, id;
    int32_t block, cell, at[3]; /* its cell at the start of the step */
    int32_t becomes;
    float share[3]; /* m/s  that the particles around lose */
    uint32_t spare;
    double kinetic; /* m2/s2  change of the sum over the particles of the liquid by it */
} sk_cuda_splash_event;

/* Of a step. */
typedef struct sk_cuda_splash_counts {
    unsigned long long looks, beyond, events; /* at cells; beyond what was trained; particles that leave */
    unsigned long long returned;              /* droplets */
    double kinetic, positions[3];             /* m2/s2, m  sums over the droplets that were apart */
} sk_cuda_splash_counts;

/* What kernels write and read, beside the step. */
typedef struct sk_cuda_splash_arrays {
    uint8_t *chosen;                  /* [particles] marks */
    float (*change)[3];               /* [particles] m/s  of chosen ones */
    sk_particle *apart;               /* [apart_count] droplets */
    uint32_t *values;                 /* [apart_count][words] their attributes */
    int64_t apart_count;              /* droplets of the step */
    int words, age, age_word, window; /* age and window: attributes of particles, -1 = none; its place in the words */
    int liquid_fraction;              /* attribute of particles; -1 = nothing melts */
    unsigned *shares;                 /* [thread blocks] marked ones of each */
    sk_cuda_splash_event *events;     /* [event_count] in the order of the store */
    int64_t event_count;
    const uint64_t *recent; /* [recent_count] keys of cells that make no droplet yet, ascending */
    int64_t recent_count;
    sk_cuda_splash_counts *counts;
    float duration; /* s */
    int look_ahead;
} sk_cuda_splash_arrays;

/* Is a particle not frozen? */
SK_DEVICE int splash_is_melted(const sk_step *step, const sk_cuda_splash_arrays *arrays, uint32_t p)
{
    return arrays->liquid_fraction < 0 ||
           !(((const float *)(const void *)step->particles.attributes[arrays->liquid_fraction].data)[p] < 0.5f);
}

typedef struct sk_cuda_splashes {
    sk_cuda_splash_model model;
    float *parameters; /* device: those of both networks, and `largest` */
    sk_cuda_splash_arrays arrays;
    size_t particle_room, apart_room;
    sk_cuda_staged events, recent, pairs, counts;
} sk_cuda_splashes;

/* The state, made when it is asked for first; with room for as many droplets as are apart in this step, or for marks of
 * all particles. */
selkie_code sk_cuda_take_splashes(sk_step *step, selkie_error *error);
selkie_code sk_cuda_reserve_apart(sk_step *step, int64_t count, selkie_error *error);
selkie_code sk_cuda_reserve_chosen(sk_step *step, selkie_error *error);

#endif
