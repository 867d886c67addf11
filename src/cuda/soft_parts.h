/* Bodies of particles on the device. Private to src/cuda.
 *
 * The host has the points (methods/shape_matching): goals, contacts, and the motion that fits what the grid gives them,
 * by the functions of the CPU. It keeps a store and a grid of the records of bodies alone, on which these functions
 * work as if it were that of the world. The device has the records among the liquid, and the faces that both share. It
 * gets velocities for the mixture, and positions and velocities for the paths; it gives back the change of each point,
 * where its record stopped, and the liquid inside bodies. */
#ifndef SK_CUDA_SOFT_PARTS_H
#define SK_CUDA_SOFT_PARTS_H

#include "cuda/bodies_parts.h"

extern "C" {
#include "methods/shape_matching/inside_plain.h"
}

/* A liquid particle inside a body. On the host `inside.particle` is its place in the list. */
typedef struct sk_cuda_soft_found {
    sk_soft_inside inside;
    sk_particle record;
    uint32_t material, particle;
} sk_cuda_soft_found;

/* At the head of the list. */
typedef struct sk_cuda_soft_counts {
    unsigned long long left; /* points that are still particles of a body */
    unsigned long long found;
} sk_cuda_soft_counts;

/* Marks of cells and of blocks on the device. */
typedef struct sk_cuda_soft_marks {
    uint8_t *crowded, *near;               /* [blocks][cells] has points; has some in it or beside it */
    uint8_t *mixed;                        /* [blocks][cells] liquid and bodies share a lower face */
    uint8_t *crowded_blocks, *near_blocks; /* [blocks] a cell of it has the mark */
    uint8_t *mixed_blocks, *shared;        /* [blocks] likewise; bodies have a share in a face */
} sk_cuda_soft_marks;

typedef struct sk_cuda_soft {
    sk_soft *there, shadow; /* the device's copy, and the addresses in it */
    sk_particles particles; /* the records of bodies, and their grid; their order is that of the last sort */
    sk_grid grid;
    sk_particles liquid; /* the liquid inside bodies while it meets them */
    int is_stale;        /* the store is not that of the points */
    int points_there;    /* the device has the positions of the points */
    int body;            /* attribute of the particles */
    sk_cuda_soft_marks marks;
    size_t mark_blocks, from_count; /* with room */
    sk_cuda_staged found;           /* sk_cuda_soft_counts and the list */
    size_t found_room;
    sk_cuda_staged values;  /* [points][3] m or m/s, floats or doubles */
    sk_cuda_staged changes; /* [points][3] m/s, then `wet` of each body */
} sk_cuda_soft;

/* Room for the marks of the blocks and the places of the particles that there is memory for. */
selkie_code sk_cuda_reserve_soft(sk_step *step, selkie_error *error);

#endif
