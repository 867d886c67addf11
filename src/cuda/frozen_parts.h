/* Frozen bodies on the device. Private to src/cuda.
 *
 * The host finds and moves the bodies by the functions of the CPU (methods/heat/frozen.h). It gets the particles of the
 * blocks with solid ones and of those around them, in the order of the device, and works on them as if they were those
 * of the world. The solids of these blocks are computed as near moving obstacles, and sent with the shares of the
 * bodies. Back come the particles of the bodies alone. */
#ifndef SK_CUDA_FROZEN_PARTS_H
#define SK_CUDA_FROZEN_PARTS_H

#include "cuda/bodies_parts.h"

extern "C" {
#include "methods/heat/frozen.h"
}

/* What the host asks each block for. */
typedef struct sk_cuda_frozen_mark {
    int32_t place;        /* among those of the domain */
    uint32_t first, last; /* particles */
    int32_t is_solid;     /* some of them is */
} sk_cuda_frozen_mark;

/* A block near solid particles. */
typedef struct sk_cuda_frozen_block {
    int32_t slot;   /* on the device, 0 = none */
    uint32_t first; /* its first particle here */
} sk_cuda_frozen_block;

/* Where the arrays lie in staged memory. What goes down comes first. */
typedef struct sk_cuda_frozen_places {
    size_t records, liquid_fraction, material, starts, kinds, down; /* `down`: bytes */
    size_t affine, frozen_at, blocks;
} sk_cuda_frozen_places;

typedef struct sk_cuda_frozen {
    sk_grid grid;           /* the blocks, in the order of the device; then places near moving solids */
    sk_particles particles; /* in staged memory */
    int32_t *places;        /* [places of the domain] of these blocks */
    uint8_t *near;          /* [places of the domain] is one of them; 0 between steps */
    uint32_t *origin;       /* [particles] number on the device */
    size_t origin_room;     /* particles */
    int block_room;         /* of the grid's arrays */
    int64_t sorted;         /* particles of this step's sort; droplets in flight come back behind them */
    int near_count;         /* blocks near solid particles, without block 0 */
    int liquid_fraction, material, affine, frozen_at; /* attributes of the world's particles; -1 = none */
    sk_cuda_frozen_places at;
    sk_cuda_staged marks;   /* sk_cuda_frozen_mark of each block; then a flag */
    sk_cuda_staged packed;  /* sk_cuda_frozen_places */
    sk_cuda_staged members; /* numbers on the device, records, affine */
    sk_cuda_staged faces;   /* bodies, then the owner of each face */
} sk_cuda_frozen;

/* The state, made when it is asked for first. */
selkie_code sk_cuda_take_frozen(sk_step *step, selkie_error *error);
/* Room for as many blocks of the grid, block 0 included, and for as many particles. */
selkie_code sk_cuda_reserve_frozen(sk_step *step, int blocks, size_t particles, selkie_error *error);

#endif
