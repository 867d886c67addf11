/* Rigid bodies in the liquid on the device. Private to src/cuda.
 *
 * The host moves the bodies and computes their shares in the faces, as for obstacles. In each step it copies the rows
 * of the matrix in the blocks around them, lists their modes (linalg/poisson_modes_view.h) and sends the lists. The
 * device runs the solve with them, adds up the impulses on the bodies, and lets particles meet them. */
#ifndef SK_CUDA_BODIES_PARTS_H
#define SK_CUDA_BODIES_PARTS_H

#include "cuda/device.h"

extern "C" {
#include "linalg/poisson_modes_view.h"
#include "methods/rigid_liquid/rigid_liquid.h"
}

enum { SK_CUDA_CONTACT_SUMS = 28 }; /* momentum, the upper half of the stiffness, and the number of contacts */
#ifdef SK_CUDA_EMULATED
enum { SK_CUDA_CONTACT_PARTS = 2 };
#else
enum { SK_CUDA_CONTACT_PARTS = 32 }; /* thread blocks that look for the contacts of a body */
#endif

/* Values of the modes in cells: sk_modes_view_list. */
typedef struct sk_cuda_mode_list {
    uint32_t count;
    uint32_t *at, *next; /* [count] */
    int32_t *mover;      /* [count] */
    float4 *value;       /* [count] */
    uint32_t *first;     /* [movers + 1] */
} sk_cuda_mode_list;

/* The modes of a solve, in device memory: sk_modes_view. A row is a mode of a mover. */
typedef struct sk_cuda_modes {
    int mover_count, body_count;
    sk_cuda_mode_list flux, space;
    float4 *image;                                 /* [space.count] */
    double *response;                              /* [movers][9] */
    double *inverse, *coupling;                    /* [rows][rows] */
    double *column;                                /* [rows] sums of W over the cells */
    double *sums, *moved, *wanted, *right, *start; /* [rows] */
    float4 *of_space, *of_flux;                    /* [movers] velocities of the modes */
    /* Fluxes of all modes of a body, held ones as well, and the impulses on the bodies. */
    uint32_t *entry_first; /* [bodies + 1] */
    uint32_t *entry_at;    /* [entries] */
    float *entry_flux;     /* [entries][6] */
    double *impulse;       /* [bodies][6] */
    unsigned ticket;
} sk_cuda_modes;

/* The contact of the particles with a body. */
typedef struct sk_cuda_contact {
    int body, obstacle;
    int low[3], size[3]; /* places whose particles can touch it */
    double centre[3];    /* m */
    double velocity[6];  /* m/s, rad/s */
    double response[6][6];
    double after[6], momentum[6]; /* results */
    int found;
    unsigned ticket;
} sk_cuda_contact;

/* Memory here and there of the same size. */
typedef struct sk_cuda_staged {
    char *here; /* pinned */
    char *there;
    size_t bytes;
} sk_cuda_staged;

typedef struct sk_cuda_bodies {
    int in_solve; /* launches of a solve contain the bodies */
    sk_cuda_modes *modes, modes_shadow;
    sk_modes_view view;
    sk_memory *memory; /* of the view */
    sk_cuda_staged faces, rows, lists, contacts;
    double *partial; /* device: [bodies][SK_CUDA_CONTACT_PARTS][SK_CUDA_CONTACT_SUMS] */
    size_t partial_bytes;
} sk_cuda_bodies;

/* Bodies in viscous liquid: those that it sticks to, and the blocks of all of them beside obstacles. */
typedef struct sk_cuda_drag {
    sk_cuda_staged places; /* of the blocks near bodies, their slots, and whether a body reaches them */
    sk_cuda_staged faces;  /* inside the bodies, and what each of them gains */
    size_t count, gains;   /* faces, and where the gains begin */
    int32_t *owner[3];     /* device: [capacity][cells] body + 1 of a face; 0 = none */
    uint32_t *reached;     /* device: [capacity] bodies reach the block; NULL = there are no obstacles */
    uint32_t *piece_first; /* device: [capacity + 1] those before a block, for is_cut() */
} sk_cuda_drag;

/* Flux times q of each body after a solve, on the host. */
selkie_code sk_cuda_sum_modes_2d(sk_step *step, const double (**sums)[SK_POISSON_MODES], selkie_error *error);
selkie_code sk_cuda_sum_modes_3d(sk_step *step, const double (**sums)[SK_POISSON_MODES], selkie_error *error);
/* Room for as many bytes on both sides; what was there is lost. */
selkie_code sk_cuda_stage(sk_cuda_staged *staged, size_t bytes, selkie_error *error);
void sk_cuda_unstage(sk_cuda_staged *staged);
/* The state of the bodies, made when it is asked for first. */
selkie_code sk_cuda_take_bodies(sk_step *step, selkie_error *error);

/* The host's functions for bodies work on the places near them as if they were the grid. */
static inline sk_grid use_near_grid(sk_step *step)
{
    const sk_grid own = step->grid;
    step->grid = step->cuda->solids.near;
    return own;
}

#endif
