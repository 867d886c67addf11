/* From particles to a level set.
 *
 * Level set: phi(x) = |x - mean(x)| - radius, where mean(x) is the kernel-weighted mean of the particles around x (Zhu
 * and Bridson 2005, "Animating sand as a fluid", section 5). Weights are normalised, so clumps and gaps in the
 * particles do not move the surface, as they would with a density. Its known artefact, liquid half way between two
 * distant clusters, is removed: no liquid farther than `cutoff` from the nearest particle. The other one, holes between
 * clumps (the mean lies in one of the clumps), is closed by the weight: nodes with clearly more weight than at a flat
 * surface are liquid.
 *
 * Nodes whose cell and the 26 cells around it hold particles are inside without a sum.
 */
#include "geom/surface_internal.h"

#include <math.h>
#include <string.h>

/* fminf and fmaxf of the C library treat NaNs, which prevents vectorisation. */
static inline float least(float a, float b)
{
    return a < b ? a : b;
}

static inline float most(float a, float b)
{
    return a > b ? a : b;
}

static inline float clamp(float x, float low, float high)
{
    return least(most(x, low), high);
}

/* Distance to the nearest particle, or `cutoff` plus something where none is within that. */
static float nearest_particle(const sk_surface_grid *grid, size_t block, const int node[3])
{
    float x[3], best = 4.0f * grid->cutoff * grid->cutoff;
    int low[3], high[3];
    for (int a = 0; a < 3; ++a) {
        x[a] = (float)(grid->coordinates[block][a] * sk_node_n + node[a]);
        low[a] = (int)floorf(((float)node[a] - grid->cutoff) * 0.5f);
        high[a] = (int)floorf(((float)node[a] + grid->cutoff) * 0.5f);
    }
    for (int k = low[2]; k <= high[2]; ++k)
        for (int j = low[1]; j <= high[1]; ++j)
            for (int i = low[0]; i <= high[0]; ++i) {
                int32_t from = grid->neighbours[block][(i + 4) / 4 + 3 * ((j + 4) / 4) + 9 * ((k + 4) / 4)];
                if (from < 0)
                    continue;
                const int cell = (i & 3) + 4 * (j & 3) + 16 * (k & 3);
                const uint32_t *first = grid->sub_first[from] + cell;
                for (size_t p = grid->first[from] + first[0]; p < grid->first[from] + first[1]; ++p) {
                    const float *at = grid->points[p].x;
                    float d[3] = {at[0] - x[0], at[1] - x[1], at[2] - x[2]};
                    best = least(best, d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
                }
            }
    return sqrtf(best);
}

/* Weights are relative to the bulk. That at a flat surface is 0.5 and falls by 0.5 a spacing outward. A node with
 * clearly more is inside, regardless of the mean of its particles. */
static const float crowd_inside = 0.55f, crowd_depth = 2.0f;
/* Only nodes with little weight can lie between distant clusters. */
static const float sparse_weight = 0.35f;

static float node_level(const sk_surface_grid *grid, size_t block, int index, f4 sum)
{
    const int node[3] = {index & 7, index >> 3 & 7, index >> 6};
    const float spacing = grid->spacing, peak = grid->kernel.peak * grid->kernel.peak * grid->kernel.peak;
    if (!(sum[0] > 1e-7f * peak))
        return SK_SURFACE_BAND;
    const float inverse = 1.0f / sum[0];
    const float x = (float)node[0] - sum[1] * inverse, y = (float)node[1] - sum[2] * inverse,
                z = (float)node[2] - sum[3] * inverse;

    /* A lone particle has at most the kernel's peak as its weight, a flat surface three times that. */
    const float lone = 1.0f - clamp((sum[0] / peak - 1.0f) * (1.0f / 1.2f), 0.0f, 1.0f);
    const float radius = grid->radius + lone * (grid->drop_radius - grid->radius);
    const float weight = sum[0] * spacing * spacing * spacing;
    float distance = sqrtf(x * x + y * y + z * z) - radius;
    if (weight < sparse_weight && distance < 0.0f)
        distance = most(distance, nearest_particle(grid, block, node) - grid->cutoff);
    const float crowd = (crowd_inside - weight) * crowd_depth * spacing;
    return least(least(distance, crowd), SK_SURFACE_BAND);
}

static void level_block(const sk_surface_grid *grid, const sk_surface_sums *sums, size_t block)
{
    float *phi = grid->phi + block * sk_node_count;
    const uint64_t inside = grid->inside[block];
    if (inside == ~(uint64_t)0 || sums->index[block] < 0) {
        for (int i = 0; i < sk_node_count; ++i)
            phi[i] = inside ? -SK_SURFACE_BAND : SK_SURFACE_BAND;
        grid->side[block] = inside ? SK_BLOCK_INSIDE : SK_BLOCK_OUTSIDE;
        return;
    }
    f4 filtered[sk_node_count];
    sk_surface_filter(grid, sums, 1, block, filtered);
    int any_inside = 0, any_outside = 0;
    for (int i = 0; i < sk_node_count; ++i) {
        const int cell = (i >> 1 & 3) + 4 * (i >> 4 & 3) + 16 * (i >> 7);
        phi[i] = inside >> cell & 1 ? -SK_SURFACE_BAND : node_level(grid, block, i, filtered[i]);
        any_inside |= phi[i] < 0.0f;
        any_outside |= !(phi[i] < 0.0f);
    }
    grid->side[block] = any_inside && any_outside ? SK_BLOCK_MIXED : any_inside ? SK_BLOCK_INSIDE : SK_BLOCK_OUTSIDE;
}

/* Blocks beside which the side changes. */
static void mark_near(const sk_surface_grid *grid)
{
#pragma omp parallel for num_threads(grid->threads) schedule(static)
    for (size_t b = 0; b < grid->block_count; ++b) {
        int near = grid->side[b] == SK_BLOCK_MIXED;
        for (int n = 0; n < 27 && !near; ++n) {
            int32_t other = grid->neighbours[b][n];
            if (other >= 0)
                near = grid->side[other] != grid->side[b];
        }
        grid->near[b] = (uint8_t)near;
    }
}

selkie_code sk_surface_level_set(sk_surface_grid *grid, selkie_error *error)
{
    sk_surface_sums sums;
    uint8_t *marked = sk_allocate(NULL, grid->block_count + 1);
    if (!marked)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory for %zu blocks", grid->block_count);
    for (size_t b = 0; b < grid->block_count; ++b)
        marked[b] = grid->deep[b] != ~(uint64_t)0;
    selkie_code code = sk_surface_sum(grid, marked, NULL, &sums, error);
    sk_release(NULL, marked);
    if (code)
        return code;
#pragma omp parallel for num_threads(grid->threads) schedule(dynamic, 8)
    for (size_t b = 0; b < grid->block_count; ++b)
        level_block(grid, &sums, b);
    sk_surface_sums_free(&sums);
    mark_near(grid);
    return SELKIE_OK;
}
