/* Implicit density projection for one cell and one face. idp_dim.c has the forms for rows of cells. */
#ifndef SK_METHODS_IDP_IDP_KERNELS_H
#define SK_METHODS_IDP_IDP_KERNELS_H

#include <stdint.h>

#include "base/dimension.h"
#include "base/kernel.h"
#include "base/random.h"

/* Cells above this density need a second correction in a step, as do all cells beyond the bound. A higher limit loses
 * volume in the double dams; a lower one gains nothing. */
#define SK_IDP_NEEDY_DENSITY 1.1f

/* The share of the liquid that the bound may hide before the correction is repeated. Larger values lose volume for a
 * moment in the double dams when the fronts meet, and later in single steps that are not repeated while the steps
 * around them are. */
#define SK_IDP_HIDDEN_SHARE (SELKIE_DIM == 2 ? 3e-4 : 1e-4)

/* Width of the region around the cells of a second correction. Odd, since layers alternate between two masks. */
enum { SK_IDP_REGION_WIDTH = SELKIE_DIM == 2 ? 7 : 3 };

/* Bounds of a cell's error: density_min, density_max and evenness of the scene, and sk_idp_slack. */
typedef struct sk_idp_limits {
    float least, most, evenness, slack;
} sk_idp_limits;

/* Cells: a neighbour whose centre lies this deep below the surface is inside the liquid. */
#define SK_IDP_INSIDE 0.25f

/* The share of a lack of density that counts beside a neighbour behind an open face: none beside air, where the kernel
 * lacks particles, and all beside a cell inside the liquid. In between it grows with the neighbour's depth: where a
 * level lies at the centres of cells, noise makes them liquid or air in turn, and a share that jumped would move the
 * liquid below up and down for ever. There is no between (`jumps`) without depths, and in scenes with solids that
 * move: it would lower the level around a light soft box by 0.04 cells, and 0.1 % of the volume around clay. Nor is
 * there one in holes, which count as liquid. */
SK_KERNEL float sk_idp_lacking_share(int liquid, float depth, int jumps)
{
    if (!liquid)
        return 0.0f;
    return jumps || depth < 0.0f || depth > SK_IDP_INSIDE ? 1.0f : depth * (1.0f / SK_IDP_INSIDE);
}

/* The excess of density that cells beside air may keep. The pressure solve lays the surface through the particles, and
 * the kernel sees an even layer there as uneven: with no slack the one lifts what the other lowers, for ever. From
 * twice the slack on all of it counts. In 3D more than 0.01 costs volume and keeps waves of levels near half a cell
 * alive. There is none in scenes with solids that move, where another 0.1 % would be lost around clay. */
SK_KERNEL float sk_idp_slack(int moving_solids)
{
    return moving_solids ? 0.0f : SELKIE_DIM == 2 ? 0.1f : 0.01f;
}

SK_KERNEL float sk_idp_near_surface(float error, float lacking, float slack)
{
    const float beyond = 2.0f * (error - slack * (1.0f - lacking));
    const float excess = beyond < error ? beyond : error;
    return error < 0.0f ? lacking * error : excess > 0.0f ? excess : 0.0f;
}

/* Density over rest density minus 1, bounded. Solids (`blurred`, their share of the kernel) count as liquid. `lacking`
 * is the least sk_idp_lacking_share of the neighbours. `filled` is the number of particles over the number at rest; it
 * may contribute away from solids. */
SK_KERNEL float sk_idp_density_error(float density, float blurred, float filled, float lacking, sk_idp_limits limits)
{
    float total = density + blurred;
    if (limits.evenness > 0.0f && blurred == 0.0f)
        total += limits.evenness * (filled - density);
    total = total < limits.most ? total : limits.most;
    const float error = (total > limits.least ? total : limits.least) - 1.0f;
    return sk_idp_near_surface(error, lacking, limits.slack);
}

/* Density beyond the bound, which is missing from the right side, in 0.001 cells: integers, so that threads may add
 * them in any order. */
SK_KERNEL int64_t sk_idp_unseen(float total, float most)
{
    const float over = (total > most ? total - most : 0.0f) * 1e3f;
    return over < 1e12f ? (int64_t)over : 0;
}

/* Push through a closed face: the larger displacement of the solid cells beside it. */
SK_KERNEL float sk_idp_pushed_face(float below, float above)
{
    return __builtin_fabsf(above) > __builtin_fabsf(below) ? above : below;
}

/* Strength of the sharpening: see sharpened_descent in idp_dim.c. */
#define SK_IDP_SHARPNESS (SELKIE_DIM == 2 ? 2.0f / 3.0f : 1.5f)

/* The same from the sum of the differences between the descents beside a face and its own. */
SK_KERNEL float sk_idp_sharpened_by(float descent, float across)
{
    return descent - 0.25f * SK_IDP_SHARPNESS * across;
}

/* A displacement sharpened against the interpolation to particles: minus a multiple of the second differences across.
 * `own` is the difference of the potential at the face, `beside` the differences at the open faces across. */
SK_KERNEL float sk_idp_sharpened(float descent, float own, const float *beside, int count)
{
    float across = 0.0f;
    for (int n = 0; n < count; n++)
        across += beside[n] - own;
    return sk_idp_sharpened_by(descent, across);
}

/* The displacement of a face, cells; NaN = unknown. It is 0 at a closed face of the liquid, unless the solid behind
 * pushes (0 = no push). */
SK_KERNEL float sk_idp_displacement(float descent, int beside_liquid, int closed, float push, float farthest)
{
    if (closed && push != 0.0f)
        return push;
    if (!beside_liquid)
        return __builtin_nanf("");
    if (closed)
        return 0.0f;
    descent = descent < farthest ? descent : farthest;
    return descent > -farthest ? descent : -farthest;
}

/* The sub-cell of particle p of `count` in a cell with `room` sub-cells: an even distribution. */
SK_KERNEL int64_t sk_idp_sub_cell(int64_t p, int64_t count, int64_t room)
{
    return room >= count ? p * room / count : p % room;
}

/* New coordinate (m) of a particle near the centre of a sub-cell, along axis d of a cell with this lower corner (m). */
SK_KERNEL float sk_idp_spread_to(uint64_t seed, uint32_t id, int d, double corner, double cell_size, int64_t place,
                                 int64_t per_axis)
{
    const int64_t along = d == 0   ? place % per_axis
                          : d == 1 ? place / per_axis % per_axis
                                   : place / per_axis / per_axis;
    const float jitter = 0.5f * (sk_random_float(seed, id, (uint64_t)d + 16) - 0.5f);
    return (float)(corner + ((double)along + 0.5 + jitter) / (double)per_axis * cell_size);
}

#endif
