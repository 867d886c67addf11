/* Rigid bodies in a Poisson system, for a solver elsewhere: the lists of poisson_modes_dim.c in the caller's numbers of
 * cells. The caller's system may hold the blocks around the bodies alone. */
#ifndef SK_LINALG_POISSON_MODES_VIEW_H
#define SK_LINALG_POISSON_MODES_VIEW_H

#include <stddef.h>
#include <stdint.h>

#include "linalg/poisson.h"

/* The set bit in `next` of the first entry of a cell. */
#define SK_MODES_VIEW_FIRST 0x80000000u

typedef struct sk_modes_view_list {
    size_t count;
    uint32_t *cell;          /* [count] block * SK_BLOCK_CELLS + cell of the caller */
    const uint32_t *next;    /* [count] the next entry of the cell, in a circle */
    const int32_t *mover;    /* [count] */
    const float (*value)[4]; /* [count] three modes and a 0 */
    const size_t *first;     /* [movers + 1] */
} sk_modes_view_list;

/* A mover is three modes of a body: in 3D the translations of a body are one, its rotations the next. */
typedef struct sk_modes_view {
    int mover_count;                /* 0 = no body moves the liquid */
    const double (*response)[3][3]; /* [movers] */
    sk_modes_view_list flux, space; /* W, and the deflated space Z */
    const float (*image)[4];        /* [space.count] A Z */
    double *inverse;                /* [3 movers][3 movers] E^-1, E = Z^T (A + W R W^T) Z */
    double *coupling;               /* [3 movers][3 movers] W^T Z: row = mode of W */
    size_t capacity[4];             /* of what the view owns: cells, inverse, coupling */
} sk_modes_view;

/* `unknowns` are those of the whole system. The view is valid until the next solve of the solver. */
selkie_code sk_poisson_view_modes_2d(sk_poisson_solver *solver, const sk_poisson_system *system, int64_t unknowns,
                                     int threads, sk_modes_view *view, selkie_error *error);
selkie_code sk_poisson_view_modes_3d(sk_poisson_solver *solver, const sk_poisson_system *system, int64_t unknowns,
                                     int threads, sk_modes_view *view, selkie_error *error);
void sk_poisson_free_view(sk_memory *memory, sk_modes_view *view);

#endif
