/* What the plain forms of the transfers share: where particles are in their cells, and the nodes around a cell. For
 * files compiled per dimension. */
#ifndef SK_GRID_TRANSFER_PLAIN_H
#define SK_GRID_TRANSFER_PLAIN_H

#include "base/dimension.h"
#include "grid/plain.h"
#include "grid/transfer_kernels.h"

typedef struct sk_plain_frame {
    const sk_grid *grid;
    float corner[3];          /* m */
    float inverse, cell_size; /* 1/m, m */
} sk_plain_frame;

static inline __attribute__((unused)) sk_plain_frame sk_plain_frame_of(const sk_grid *grid)
{
    sk_plain_frame frame = {grid,
                            {(float)grid->corner[0], (float)grid->corner[1], (float)grid->corner[2]},
                            (float)(1.0 / grid->cell_size),
                            (float)grid->cell_size};
    return frame;
}

/* Where a position (m) is in the cell with the coordinates `at`. */
static inline __attribute__((unused)) void sk_plain_fractions(const sk_plain_frame *frame, const float position[3],
                                                              const int at[3], float fraction[3])
{
    for (int d = 0; d < SELKIE_DIM; d++)
        fraction[d] = sk_cell_fraction(position[d], frame->corner[d], frame->inverse, at[d]);
}

/* The nodes of component d that the particles of a cell weigh on: transfer_kernels.h has their order. */
static inline __attribute__((unused)) void sk_plain_load_nodes(const sk_grid *grid, const float *field,
                                                               sk_plain_cell cell, int d, float nodes[SK_AROUND])
{
    for (int n = 0; n < SK_AROUND; n++) {
        const int offset[3] = {n % 3 - (d != 0), n / 3 % 3 - (d != 1), SELKIE_DIM == 3 ? n / 9 - (d != 2) : 0};
        nodes[n] = field[sk_plain_index(sk_plain_beside(grid, cell, offset))];
    }
}

/* Likewise, with 0 for what is unknown. */
static inline __attribute__((unused)) void sk_plain_load_known(const sk_grid *grid, const float *field,
                                                               sk_plain_cell cell, int d, float nodes[SK_AROUND])
{
    sk_plain_load_nodes(grid, field, cell, d, nodes);
    for (int n = 0; n < SK_AROUND; n++)
        nodes[n] = sk_known_or_zero(nodes[n]);
}

#endif
