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
        phi[i] = inside >> sk_node_cell(i) & 1 ? -SK_SURFACE_BAND : sk_node_level(grid, block, i, filtered[i]);
        any_inside |= phi[i] < 0.0f;
        any_outside |= !(phi[i] < 0.0f);
    }
    grid->side[block] = any_inside && any_outside ? SK_BLOCK_MIXED : any_inside ? SK_BLOCK_INSIDE : SK_BLOCK_OUTSIDE;
}

/* Blocks beside which the side changes. */
static void mark_near(const sk_surface_grid *grid)
{
#pragma omp parallel for num_threads(grid->threads) schedule(static)
    for (size_t b = 0; b < grid->block_count; ++b)
        grid->near[b] = (uint8_t)sk_surface_is_near(grid, b);
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
