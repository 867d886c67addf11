/* Samples fields at the particles of a row of cells along x, a batch at a time. The lanes are particles. All of them
 * use the same rows of nodes around the row of cells. In a row of nodes each lane looks up the two nodes beside it.
 * Batches are full even if cells hold few particles. For files compiled per dimension. */
#ifndef SK_GRID_LANES_H
#define SK_GRID_LANES_H

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/tile.h"

/* Keeps node values and their addresses out of registers before the loop over batches. The compiler would spill them.
 */
#define KEEP_IN_MEMORY(node) __asm__ __volatile__("" : "+r"(node) : : "memory")

/* Prefetches the records some batches ahead. The records are contiguous, but the hardware prefetcher stops at page
 * ends. */
static inline __attribute__((always_inline, unused)) void prefetch_ahead(const sk_particle *batch)
{
    enum { AHEAD_OF = 112 };
#pragma GCC unroll 8
    for (int i = 0; i < SK_WIDE; i += 2)
        __builtin_prefetch(batch + AHEAD_OF + i, 1);
}

/* Moves the positions of a batch that left through a joined side. Out of line and on a copy, so that the loops over
 * batches keep their registers where no axis is periodic. */
static __attribute__((noinline, cold, unused)) void sk_wrap_copies(const sk_grid *grid, fw x[3])
{
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int l = 0; grid->periodic >> d & 1 && l < SK_WIDE; l++)
            x[d][l] = sk_wrap_position(x[d][l], (float)grid->low[d], grid->last[d], grid->period[d]);
}

static inline __attribute__((always_inline, unused)) void sk_wrap_batch(const sk_grid *grid, fw x[3])
{
    fw copy[3];
#pragma GCC unroll 3
    for (int d = 0; d < SELKIE_DIM; d++)
        copy[d] = x[d];
    sk_wrap_copies(grid, copy);
#pragma GCC unroll 3
    for (int d = 0; d < SELKIE_DIM; d++)
        x[d] = copy[d];
}

/* Positions of a batch of particles in the row, and the weights of the nodes around them. */
typedef struct lane_weights {
    iw cell; /* cell in the block along x */
    iw face_column,
        centre_column; /* column of the node before the particle in a tile's row, for faces across x and for centres */
    fw face_way, centre_way;     /* distance from that node to the particle, cells */
    fw face[3][2], centre[3][3]; /* weights along y and z */
    fw slope[3][3];              /* derivative of the centred weights, 1/cell */
} lane_weights;

/* The current row of cells. */
typedef struct cell_row {
    int32_t first;   /* grid coordinate along x of the block's first cell */
    float across[3]; /* grid coordinates along y and z */
} cell_row;

/* The row of cells that holds cell c of a block. */
static inline cell_row row_of_cell(const sk_grid *grid, int block, int c)
{
    const int local[3] = {0, c >> SK_BLOCK_LOG & SK_BLOCK_MASK, c >> (2 * SK_BLOCK_LOG)};
    cell_row row = {.first = grid->coordinates[block][0] * SK_BLOCK_N};
    for (int d = 1; d < 3; d++)
        row.across[d] = (float)(grid->coordinates[block][d] * grid->extent[d] + local[d]);
    return row;
}

static inline __attribute__((always_inline)) void lanes_of(const fw *position, const float corner[3], float inverse,
                                                           const cell_row *row, const int slopes, lane_weights *w)
{
    fw place = (position[0] - fw_splat(corner[0])) * fw_splat(inverse);
    iw cell = iw_from_fw(place);
    fw fraction = place - fw_from_iw(cell), offset = fraction - 0.5f;
    iw below = offset < 0.0f; /* all ones: -1 */
    w->cell = cell - row->first;
    w->face_column = w->cell + SK_ROW_LEAD;
    w->centre_column = w->cell + SK_ROW_LEAD + below;
    w->face_way = fraction;
    w->centre_way = offset - fw_from_iw(below);
    for (int d = 1; d < SELKIE_DIM; d++) {
        fraction = (position[d] - fw_splat(corner[d])) * fw_splat(inverse) - fw_splat(row->across[d]);
        offset = fraction - 0.5f;
        w->face[d][0] = 1.0f - fraction;
        w->face[d][1] = fraction;
        w->centre[d][0] = fw_max(-offset, fw_splat(0.0f));
        w->centre[d][2] = fw_max(offset, fw_splat(0.0f));
        w->centre[d][1] = 1.0f - (w->centre[d][0] + w->centre[d][2]);
        if (slopes) {
            below = offset < 0.0f;
            w->slope[d][0] = fw_select(below, fw_splat(-1.0f), fw_splat(0.0f));
            w->slope[d][1] = fw_select(below, fw_splat(1.0f), fw_splat(-1.0f));
            w->slope[d][2] = fw_select(below, fw_splat(0.0f), fw_splat(1.0f));
        }
    }
}

/* Offset of the first row of nodes of component d around the row of cells (j, k). Planes of the tile are `plane`
 * apart. */
static inline int first_row(const int d, const int plane, int j, int k)
{
    return SK_ROW_PITCH * (j + (d == 1)) + (SELKIE_DIM == 3 ? plane * (k + (d == 2)) : 0);
}

/* Component d of a field at the particles. `rows` points at the first row of nodes. Planes are `plane_step` apart.
 * `gradient`, if not NULL, gets the derivatives per cell (APIC's C, Jiang et al. 2015: sum of u_i grad w_i). */
static inline __attribute__((always_inline)) fw sample_component(const int d, const float *rows, const int plane_step,
                                                                 const lane_weights *w, fw *gradient)
{
    const int ny = d == 1 ? 2 : 3, nz = SELKIE_DIM == 2 ? 1 : d == 2 ? 2 : 3;
    const iw column = d == 0 ? w->face_column : w->centre_column;
    const fw way = d == 0 ? w->face_way : w->centre_way;
    fw total = fw_splat(0.0f);

    /* Interpolate along x, then along y: one value per plane. */
#pragma GCC unroll 3
    for (int k = 0; k < nz; k++) {
        fw plane = fw_splat(0.0f), plane_x = fw_splat(0.0f), plane_y = fw_splat(0.0f);
#pragma GCC unroll 3
        for (int j = 0; j < ny; j++) {
            const float *row = rows + SK_ROW_PITCH * j + plane_step * k;
            const fw weight = d == 1 ? w->face[1][j] : w->centre[1][j];
            fw value, next;
            fw_look_up_pairs(row, SK_ROW_PITCH, column, &value, &next);
            const fw difference = next - value;
            value += way * difference;
            if (gradient)
                plane_x += weight * difference;
            plane += weight * value;
            if (gradient)
                plane_y += d == 1 ? (j ? value : -value) : w->slope[1][j] * value;
        }

        /* Interpolate the planes along z. */
        const fw weight = SELKIE_DIM == 2 ? fw_splat(1.0f)
                          : d == 2        ? w->face[SELKIE_DIM - 1][k]
                                          : w->centre[SELKIE_DIM - 1][k];
        total += SELKIE_DIM == 2 ? plane : weight * plane;
        if (gradient) {
            gradient[0] += weight * plane_x;
            gradient[1] += weight * plane_y;
            if (SELKIE_DIM == 3)
                gradient[SELKIE_DIM - 1] += d == 2 ? (k ? plane : -plane) : w->slope[SELKIE_DIM - 1][k] * plane;
        }
    }
    return total;
}

#endif
