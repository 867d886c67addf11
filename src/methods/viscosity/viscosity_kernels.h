/* The liquid's share of cells, faces and edges, from eight sub-cells a cell (four in 2D), for the viscous stress. */
#ifndef SK_METHODS_VISCOSITY_VISCOSITY_KERNELS_H
#define SK_METHODS_VISCOSITY_VISCOSITY_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"

/* The value at the centre of sub-cell n of a cell, interpolated from the centres of the cells around it. Bit d of n is
 * set in the upper half along axis d. corner[m] is the value of the cell that lies towards the sub-cell along the axes
 * of the bits of m; corner[0] is the cell's own. */
SK_KERNEL float sk_viscous_sub_value(const float corner[SK_CORNERS])
{
    float sum = 0.0f;
    for (int m = 0; m < SK_CORNERS; m++) {
        float weight = 1.0f;
        for (int d = 0; d < SELKIE_DIM; d++)
            weight *= m >> d & 1 ? 0.25f : 0.75f;
        sum += weight * corner[m];
    }
    return sum;
}

/* Share of a sub-cell, half a cell wide, on the positive side of a flat surface `distance` cells from its centre. */
SK_KERNEL float sk_viscous_sub_share(float distance)
{
    const float share = 0.5f + 2.0f * distance;
    return share < 0.0f ? 0.0f : share > 1.0f ? 1.0f : share;
}

/* Share of a sub-cell that holds a particle, at least. Particles may lie just outside the surface. Without a share no
 * stress would act on their faces: they would fall off a thread one by one, and slide on a floor that holds the liquid.
 */
#define SK_VISCOUS_LEAST_SHARE 0.05f

/* Share of a face on a wall, at most a half, from which on the liquid touches the wall: its surface lies less than 3/8
 * of a cell before it. */
#define SK_VISCOUS_TOUCH 0.125f

/* Cells; a sub-cell that far from the surface is full or empty. */
#define SK_VISCOUS_FAR 0.251f

/* Passes of the solve, and bulk over shear viscosity. */
enum { SK_VISCOUS_PASSES = 2 };
#define SK_VISCOUS_BULK_SHARE 4.0f

/* The number of the cell that lies towards sub-cell n of a cell along the axes of the bits of m, among the 3^dim cells
 * around it, x fastest. */
SK_KERNEL int sk_viscous_towards(int n, int m)
{
    int around = 0;
    for (int d = SELKIE_DIM - 1; d >= 0; d--)
        around = 3 * around + (m >> d & 1 ? (n >> d & 1 ? 2 : 0) : 1);
    return around;
}

/* Shares of the sub-cells of a cell below the surface, from the depths of the cells around it. Solid cells have no
 * depth, NaN. Returns the least share. */
SK_KERNEL float sk_viscous_liquid_shares(const float depth[SK_NEIGHBOURS], float share[SK_CORNERS])
{
    float least = 1.0f;
    for (int n = 0; n < SK_CORNERS; n++) {
        float below[SK_CORNERS];
        for (int m = 0; m < SK_CORNERS; m++) {
            const float value = depth[sk_viscous_towards(n, m)];
            below[m] = value == value ? value : depth[SK_NEIGHBOURS / 2];
        }
        share[n] = sk_viscous_sub_share(sk_viscous_sub_value(below));
        least = share[n] < least ? share[n] : least;
    }
    return least;
}

/* Of these shares, those outside of obstacles, whose distances are in `outside` (NULL = none are near). `occupied` has
 * a bit for each sub-cell that holds a particle. */
SK_KERNEL void sk_viscous_open_shares(const float *outside, unsigned occupied, float share[SK_CORNERS])
{
    for (int n = 0; n < SK_CORNERS; n++) {
        float distance[SK_CORNERS], open = 1.0f;
        for (int m = 0; m < SK_CORNERS && outside; m++)
            distance[m] = outside[sk_viscous_towards(n, m)];
        if (outside)
            open = sk_viscous_sub_share(sk_viscous_sub_value(distance));
        const float least = occupied >> n & 1 ? SK_VISCOUS_LEAST_SHARE : 0.0f;
        share[n] = (share[n] > least ? share[n] : least) * open;
    }
}

/* A table of count + 1 logarithms at a place between 0 and count; constant beyond. */
SK_KERNEL float sk_viscous_law(const float *table, int count, float place)
{
    const float inside = place > 0.0f ? (place < (float)count ? place : (float)count) : 0.0f;
    const int n = inside < (float)count ? (int)inside : count - 1;
    return table[n] + (inside - (float)n) * (table[n + 1] - table[n]);
}

/* Weight of the shear at a wall over the viscosity. The velocity differs over theta h, half a cell, or over theta h + b
 * with a slip length b: the grip is theta h / (theta h + b). share is the liquid's share around the edge. Exact for
 * Couette flow. */
SK_KERNEL float sk_viscous_wall_weight(float share, float grip)
{
    const float theta = 0.5f;
    return share / (theta * theta) * grip;
}

/* Cells. Faces nearer to a surface that holds liquid, or behind it, count as that far before it: their part of the
 * liquid lies before the surface. */
#define SK_VISCOUS_NEAREST 0.1f

/* Least difference of the distances of two faces, a cell apart, beside a surface. */
#define SK_VISCOUS_SLOPE 0.2f

/* Cells. The faces around a cell that far from a surface are open or lie deep behind it. */
#define SK_VISCOUS_NEAR 1.8f

/* A surface across an axis: the difference of the distances of two cells along it, at least. */
#define SK_VISCOUS_ALIGNED 0.999f

/* Cells. A cube of a cell's size with its centre that deep in an obstacle is hardly open. */
#define SK_VISCOUS_DEEP 0.3f

/* The liquid's share of what an obstacle leaves open of a cube of a cell's size, `outside` cells from its centre. */
SK_KERNEL float sk_viscous_part_of_open(float share, float outside)
{
    const float open = outside > 0.5f ? 1.0f : outside < -SK_VISCOUS_DEEP ? 0.5f - SK_VISCOUS_DEEP : 0.5f + outside;
    return share < open ? share / open : 1.0f;
}

/* Weight of the shear between two faces, one cell apart, `outer` and `inner` cells from the surface of an obstacle,
 * over the viscosity: the velocity differs over their true distance, or that of the outer one to the surface if the
 * inner one is closed. A slip length (cells) puts the surface farther back. `part` is the liquid's share of the open
 * space. */
SK_KERNEL float sk_viscous_cut_weight(float part, float outer, float inner, int is_closed, float slip)
{
    const float from = outer + slip > SK_VISCOUS_NEAREST ? outer + slip : SK_VISCOUS_NEAREST;
    const float to = is_closed ? 0.0f : inner + slip > SK_VISCOUS_NEAREST ? inner + slip : SK_VISCOUS_NEAREST;
    return part * (outer - inner) / (from - to);
}

#endif
