/* Fields at the particles of one cell, a batch at a time: the lanes are particles, and the cell's nodes are read once for all
 * of them. For files compiled per dimension. */
#ifndef SK_GRID_LANES_H
#define SK_GRID_LANES_H

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/tile.h"

/* Most cells are one batch: nodes are to be read where they are used, not spread over registers before the loop, nor their
 * addresses, which the compiler would spill again. */
#define KEEP_IN_MEMORY(node) __asm__ __volatile__("" : "+r"(node) : : "memory")

/* Weights of the nodes around the cell. */
typedef struct lane_weights {
    fw face[3][2], centre[3][3];
    fw slope[3][3]; /* derivative of the centred weights, 1/cell */
} lane_weights;

/* Component d of a field at the particles of one cell; `tile` points at the cell's first node. */
static inline __attribute__((always_inline)) fw sample_component(const int d, const float *tile, const lane_weights *w)
{
    enum { N1 = SK_TILE_N(1) };
    const int nx = d == 0 ? 2 : 3, ny = d == 1 ? 2 : 3, nz = SELKIE_DIM == 2 ? 1 : d == 2 ? 2 : 3;
    fw total = fw_splat(0.0f);
#pragma GCC unroll 3
    for (int k = 0; k < nz; k++) {
        fw plane = fw_splat(0.0f);
#pragma GCC unroll 3
        for (int j = 0; j < ny; j++) {
            fw row = fw_splat(0.0f);
#pragma GCC unroll 3
            for (int i = 0; i < nx; i++)
                row += (d == 0 ? w->face[0][i] : w->centre[0][i]) * tile[i + N1 * (j + N1 * k)];
            plane += (d == 1 ? w->face[1][j] : w->centre[1][j]) * row;
        }
        total += SELKIE_DIM == 2 ? plane : (d == 2 ? w->face[2][k] : w->centre[2][k]) * plane;
    }
    return total;
}

static inline __attribute__((always_inline)) void lanes_of(const fw *position, const float corner[3], float inverse,
                                                           const float cell[3], const int slopes, lane_weights *w)
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        fw fraction = (position[d] - fw_splat(corner[d])) * fw_splat(inverse) - fw_splat(cell[d]);
        fw offset = fraction - 0.5f;
        w->face[d][0] = 1.0f - fraction;
        w->face[d][1] = fraction;
        w->centre[d][0] = fw_max(-offset, fw_splat(0.0f));
        w->centre[d][2] = fw_max(offset, fw_splat(0.0f));
        w->centre[d][1] = 1.0f - (w->centre[d][0] + w->centre[d][2]);
        if (slopes) {
            iw below = offset < 0.0f;
            w->slope[d][0] = fw_select(below, fw_splat(-1.0f), fw_splat(0.0f));
            w->slope[d][1] = fw_select(below, fw_splat(1.0f), fw_splat(-1.0f));
            w->slope[d][2] = fw_select(below, fw_splat(0.0f), fw_splat(1.0f));
        }
    }
}

/* First node of component d around a cell: one lower along every axis but its own. */
static inline int first_of(const int d, int node)
{
    enum { N1 = SK_TILE_N(1), NODE_Z = SELKIE_DIM == 3 ? N1 * N1 : 0 };
    return node - 1 - N1 - NODE_Z + (d == 0 ? 1 : d == 1 ? N1 : N1 * N1);
}

#endif
