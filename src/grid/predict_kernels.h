/* The predicted density of one particle: see predict.h. Compiled by the C compiler and by nvcc.
 *
 * Weights are summed up as integers, so that the order of the particles does not matter: the GPU adds them in any order
 * and has the same bits as the plain form. */
#ifndef SK_GRID_PREDICT_KERNELS_H
#define SK_GRID_PREDICT_KERNELS_H

#include <stdint.h>

#include "base/dimension.h"
#include "base/kernel.h"
#include "grid/transfer_kernels.h"

enum { SK_PREDICT_REACH = 4 }; /* cells outside its block at which a particle still counts */

#define SK_FIXED_ONE 4194304.0f /* a weight of 1; a cell holds up to 1023 */

SK_KERNEL uint32_t sk_fixed_weight(float weight)
{
    return (uint32_t)(weight * SK_FIXED_ONE + 0.5f);
}

SK_KERNEL float sk_float_weight(uint32_t sum)
{
    return (float)sum * (1.0f / SK_FIXED_ONE);
}

/* Limits a coordinate (cells) to the outermost centres within the reach of a block whose first cell is `corner`. */
SK_KERNEL float sk_within_reach(float coordinate, int corner)
{
    const float first = (float)(corner - SK_PREDICT_REACH) + 0.5f;
    return sk_clamp(coordinate, first, first + (float)(SK_BLOCK_N + 2 * SK_PREDICT_REACH) - 1.001f);
}

#endif
