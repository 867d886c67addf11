/* The domain's flat walls as mirrors: what one cell beside them sees. The twin for tiles is in wall_mirror.h. */
#ifndef SK_METHODS_WALL_KERNELS_H
#define SK_METHODS_WALL_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"

/* Closed walls lie on the lower faces of these cells of the grid; far away where a side is open. */
typedef struct sk_flat_walls {
    int low[3], high[3];
} sk_flat_walls;

/* The step along an axis from a cell beside a wall to its mirror image; 0 where there is none. */
SK_KERNEL int sk_wall_image(const sk_flat_walls *walls, int d, int at)
{
    if (at == walls->low[d] || at == walls->high[d])
        return -1;
    return at == walls->low[d] - 1 || at == walls->high[d] - 1 ? 1 : 0;
}

/* The step from the first cell behind a wall to the cell before it; 0 for all other cells. */
SK_KERNEL int sk_wall_way_back(const sk_flat_walls *walls, int d, int at)
{
    return at == walls->low[d] - 1 ? 1 : at == walls->high[d] ? -1 : 0;
}

SK_KERNEL int sk_wall_is_behind(const sk_flat_walls *walls, const int at[3])
{
    int behind = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        behind |= at[d] < walls->low[d] || at[d] >= walls->high[d];
    return behind;
}

/* Is a cell farther behind a wall than the image of the first cell before it? */
SK_KERNEL int sk_wall_is_beyond_image(const sk_flat_walls *walls, const int at[3])
{
    int beyond = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        beyond |= at[d] < walls->low[d] - 1 || at[d] > walls->high[d];
    return beyond;
}

/* Sum of the values of a cell and its images. Bit d of an index is set for images across axis d; bit d of `images` says
 * whether there are any. */
SK_KERNEL float sk_wall_fold(float values[1 << SELKIE_DIM], int images)
{
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int n = 0; n < 1 << SELKIE_DIM; n++)
            if (images >> d & 1 && !(n >> d & 1) && (n & ~images) == 0)
                values[n] += values[n | 1 << d];
    return values[0];
}

#endif
