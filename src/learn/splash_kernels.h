/* What the model of splashes sees: the flow around a candidate, one candidate at a time.
 *
 * Features of a cell, the same for all candidates in it: on a stencil of 3^d or 5^d cells around it, x fastest, the
 * velocity relative to the cell's own over sqrt(g h + sigma / (density h)) and the fill. Then B / (1 + B) with the Bond
 * number B = density g h^2 / sigma. Velocities may have a smaller stencil than the fill.
 *
 * Features of a candidate: its place in the cell, -0.5 to 0.5, the relative velocity there, and the fill there.
 *
 * The axes are the stencil's own: up is the second one; the others point to where the liquid thins out less, the
 * strongest first. So a mirrored or turned flow has the same features, and a model's answer is mirrored back.
 */
#ifndef SK_LEARN_SPLASH_KERNELS_H
#define SK_LEARN_SPLASH_KERNELS_H

#include "base/kernel.h"

enum {
    SK_SPLASH_REACH = 2,
    SK_SPLASH_POINTS = 125,
    SK_SPLASH_OWN = 7, /* at most, of a candidate */
    SK_SPLASH_FEATURES = 4 * SK_SPLASH_POINTS + 1 + SK_SPLASH_OWN
};

/* Number of the features of a cell, with stencils of these reaches, and of a candidate. */
SK_KERNEL int sk_splash_cell_count(int dimension, int reach, int velocity_reach)
{
    const int side = 2 * reach + 1, inner = 2 * velocity_reach + 1;
    return side * side * (dimension == 3 ? side : 1) + dimension * inner * inner * (dimension == 3 ? inner : 1) + 1;
}

SK_KERNEL int sk_splash_own_count(int dimension)
{
    return 2 * dimension + 1;
}

/* A dense array of cells: velocity at the centres and fill. Cells without liquid have no velocity of their own. */
typedef struct sk_splash_cells {
    const float *velocity[3]; /* m/s */
    const float *fill;        /* -1 in solids */
    int step[3];              /* of the arrays along x, y, z */
    int dimension;
} sk_splash_cells;

typedef struct sk_splash_options {
    int reach;           /* 1 or 2 cells, of the fill */
    int velocity_reach;  /* not larger */
    int up_axis;         /* of the scene */
    float up_sign;       /* 1 or -1 */
    float inverse_speed; /* s/m */
    float bond;          /* B / (1 + B) */
} sk_splash_options;

/* Axis n of the stencil is axis[n] of the scene times sign[n]. */
typedef struct sk_splash_frame {
    int axis[3];
    float sign[3];
} sk_splash_frame;

#define SK_SPLASH_DRY 0.05f /* fill below which a cell has no velocity of its own */

/* Weight of corner n of the cell between eight (2D: four) centres; *place its offset. */
SK_KERNEL float sk_splash_corner(const sk_splash_cells *cells, const float fraction[3], int n, int *place)
{
    float weight = 1.0f;
    *place = 0;
    for (int d = 0; d < cells->dimension; d++) {
        weight *= n >> d & 1 ? fraction[d] : 1.0f - fraction[d];
        *place += n >> d & 1 ? cells->step[d] : 0;
    }
    return weight;
}

/* Velocity at a point (m/s) over the corners with liquid, 0 if there is none. Returns the fill there. */
SK_KERNEL float sk_splash_at(const sk_splash_cells *cells, int corner, const float fraction[3], float velocity[3])
{
    float sum = 0.0f, fill = 0.0f;
    velocity[0] = velocity[1] = velocity[2] = 0.0f;
    for (int n = 0; n < 1 << cells->dimension; n++) {
        int offset;
        const float weight = sk_splash_corner(cells, fraction, n, &offset), there = cells->fill[corner + offset];
        const float wet = there > SK_SPLASH_DRY ? weight : 0.0f;
        fill += weight * (there < 1.0f ? there : 1.0f);
        for (int d = 0; d < cells->dimension; d++)
            velocity[d] += wet * cells->velocity[d][corner + offset];
        sum += wet;
    }
    const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;
    for (int d = 0; d < 3; d++)
        velocity[d] *= inverse;
    return fill;
}

/* Chooses the axes: the sign and order of those across `up` follow the sums of offset x fill over the stencil. */
SK_KERNEL void sk_splash_choose_frame(const sk_splash_cells *cells, const sk_splash_options *options, int place,
                                      sk_splash_frame *frame)
{
    float slope[3] = {0.0f, 0.0f, 0.0f};
    const int reach = options->reach, planes = cells->dimension == 3 ? reach : 0;
    for (int z = -planes; z <= planes; z++)
        for (int y = -reach; y <= reach; y++) {
            float sum = 0.0f;
            for (int x = -reach; x <= reach; x++) {
                const float fill = cells->fill[place + x * cells->step[0] + y * cells->step[1] + z * cells->step[2]];
                const float most = fill < 1.0f ? fill : 1.0f, wet = most > 0.0f ? most : 0.0f;
                slope[0] += (float)x * wet;
                sum += wet;
            }
            slope[1] += (float)y * sum;
            slope[2] += (float)z * sum;
        }
    const int up = options->up_axis;
    int across[2], count = 0;
    for (int d = 0; d < cells->dimension; d++)
        if (d != up && count < 2)
            across[count++] = d;
    if (count == 2 && __builtin_fabsf(slope[across[1]]) > __builtin_fabsf(slope[across[0]])) {
        const int swap = across[0];
        across[0] = across[1];
        across[1] = swap;
    }
    frame->axis[0] = across[0];
    frame->axis[1] = up;
    frame->axis[2] = count == 2 ? across[1] : 2;
    frame->sign[0] = slope[across[0]] < 0.0f ? -1.0f : 1.0f;
    frame->sign[1] = options->up_sign;
    frame->sign[2] = count == 2 && slope[across[1]] < 0.0f ? -1.0f : 1.0f;
}

/* Features of a cell and the axes they have. Returns their number. */
SK_KERNEL int sk_splash_cell_features(const sk_splash_cells *cells, const sk_splash_options *options, int place,
                                      sk_splash_frame *frame, float *features)
{
    const int reach = options->reach, inner = options->velocity_reach, dimension = cells->dimension;
    const int planes = dimension == 3 ? reach : 0;
    int step[3] = {0, 0, 0}, at = 0;
    const float *velocity[3] = {cells->velocity[0], cells->velocity[1], cells->velocity[2]};
    float own[3] = {0.0f, 0.0f, 0.0f}, factor[3] = {0.0f, 0.0f, 0.0f};
    sk_splash_choose_frame(cells, options, place, frame);
    for (int n = 0; n < dimension; n++) {
        step[n] = frame->sign[n] < 0.0f ? -cells->step[frame->axis[n]] : cells->step[frame->axis[n]];
        velocity[n] = cells->velocity[frame->axis[n]];
        own[n] = velocity[n][place];
        factor[n] = frame->sign[n] * options->inverse_speed;
    }
    for (int z = -planes; z <= planes; z++)
        for (int y = -reach; y <= reach; y++) {
            const int row = place + y * step[1] + z * step[2];
            const int near_row = y >= -inner && y <= inner && z >= -inner && z <= inner;
            for (int x = -reach; x <= reach; x++) {
                const int point = row + x * step[0];
                const float fill = cells->fill[point];
                for (int n = 0; n < dimension && near_row && x >= -inner && x <= inner; n++) {
                    const float relative = factor[n] * (velocity[n][point] - own[n]);
                    features[at++] = fill > SK_SPLASH_DRY ? relative : 0.0f;
                }
                features[at++] = fill < 1.0f ? fill : 1.0f;
            }
        }
    features[at++] = options->bond;
    return at;
}

/* Features of a candidate. It lies between the centres of the cell `corner` and those above it, at the given fractions;
 * `place` is its own cell, whose frame it shares. `velocity` (m/s, along the axes of the scene) is that of the flow
 * there. */
SK_KERNEL void sk_splash_own_features(const sk_splash_cells *cells, const sk_splash_options *options, int place,
                                      int corner, const float fraction[3], const sk_splash_frame *frame,
                                      float velocity[3], float *features)
{
    const int dimension = cells->dimension;
    const float fill = sk_splash_at(cells, corner, fraction, velocity);
    for (int n = 0; n < dimension; n++) {
        const int axis = frame->axis[n];
        const float relative = velocity[axis] - cells->velocity[axis][place];
        features[n] = frame->sign[n] * (fraction[axis] >= 0.5f ? fraction[axis] - 1.0f : fraction[axis]);
        features[dimension + n] = frame->sign[n] * options->inverse_speed * relative;
    }
    features[2 * dimension] = fill;
}

/* Does a cell with this fill count as air? Cells of solids (-1) do not. A cell that holds liquid is in the band at the
 * surface where it or one of the 3^d - 1 cells around it is air. */
SK_KERNEL int sk_splash_is_air(float fill)
{
    return fill >= 0.0f && fill < 0.5f;
}

#endif
