/* The upper rows of a box of liquid with a level surface.
 *
 * Water at rest stays at rest only if its surface is even. A surface that is off by 0.03 cells in waves of four cells
 * moves at 1 % of sqrt(g H) for ever, and no force of a liquid without viscosity ends that. Particles have one
 * volume each, so a level inside a row of sub-cells leaves that row partly filled: whichever of its sub-cells have
 * particles, the surface has waves. So the particles of the last two cells share the row that is not full: their rows
 * are nearer to each other, and the particles of a row farther apart. */
#ifndef SK_WORLD_SAMPLE_LEVEL_H
#define SK_WORLD_SAMPLE_LEVEL_H

#include "world/world_internal.h"

typedef struct sk_level_rows {
    int rows;               /* 0 = the liquid has no such rows */
    int axis, along;        /* axis against gravity, and the one along the rows */
    int upwards;            /* is `axis` upwards? */
    double unit;            /* m   size of a sub-cell */
    double top;             /* m   the level */
    double low[3], high[3]; /* m  of the box, within the domain */
    int64_t first;          /* number of the lowest row, from the lower side of the domain as gravity sees it */
    double share;           /* of sub-cells in these rows that have particles */
} sk_level_rows;

/* The rows of liquid l of the sampled scene. `shapes` are those of all liquids. */
sk_level_rows sk_level_rows_of(const sk_sampling *sampling, sk_shape *const *shapes, int l, int per_axis);

/* Does the sub-cell (numbers along the axes, counted from the lower corner of the domain) belong to the rows? If so,
 * `has` tells whether it has a particle, and x (m) receives its place; `jitter` is in sub-cells along each axis. */
int sk_level_rows_place(const sk_level_rows *rows, const sk_grid *grid, uint64_t seed, const int64_t sub[3],
                        const double jitter[3], int *has, double x[3]);

#endif
