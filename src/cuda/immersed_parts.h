/* Elastoplastic points beside liquids on the device. Private to src/cuda; for files compiled per dimension.
 *
 * The points stay among the particles: kernels of mpm (mpm_dim.cu) pass the liquid over, instead of working on a copy
 * of the points as the CPU does. The order of the points in a cell is the same. */
#ifndef SK_CUDA_IMMERSED_PARTS_H
#define SK_CUDA_IMMERSED_PARTS_H

#include "cuda/grid_parts.h"

struct immersed_frame;
SK_KERNEL sk_plain_cell find_immersed_cell(const struct immersed_frame *in, const int at[3]);
#define SK_IMMERSED_FIND(in, at) find_immersed_cell(in, at)

extern "C" {
#include "methods/elastoplastic/immersed.h"
}
#include "methods/elastoplastic/immersed_plain.h"

/* The cell with these coordinates: sk_plain_find. The frame has the table of places. */
SK_KERNEL sk_plain_cell find_immersed_cell(const immersed_frame *in, const int at[3])
{
    const sk_grid *grid = &in->step->grid;
    sk_plain_cell cell = {0, 0};
    int place = 0, stride = 1, local = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        if (at[d] < 0 || at[d] >= grid->blocks[d] * SK_BLOCK_N)
            return cell;
        place += (at[d] >> SK_BLOCK_LOG) * stride;
        stride *= grid->blocks[d];
        local |= (at[d] & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
    }
    cell.local = local;
    cell.slot = in->slots[place];
    return cell;
}

/* Launches of mpm for the points alone: velocities of the nodes; walls once more; velocities and attributes back. */
void SK_DIM(sk_cuda_launch_immersed)(sk_cuda *cuda, const sk_step *host, const immersed_frame *in);
void SK_DIM(sk_cuda_launch_touch)(sk_cuda *cuda, const sk_step *host);
void SK_DIM(sk_cuda_launch_take_immersed)(sk_cuda *cuda, const sk_step *host, const immersed_frame *in);
/* The sums of the laws, once the results of the step are here. */
void SK_DIM(sk_cuda_take_laws)(sk_step *step);

#endif
