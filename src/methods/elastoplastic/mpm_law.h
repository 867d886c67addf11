/* Plastic flow and stress of a run of points, in lanes where they share a material. For files compiled per dimension.
 */
#ifndef SK_METHODS_MPM_LAW_H
#define SK_METHODS_MPM_LAW_H

#include "methods/elastoplastic/elastic_lanes.h"
#include "methods/elastoplastic/mpm_frame.h"

enum { SK_MPM_CHUNK = 128 }; /* points whose stress is found at once: it stays in the first cache */

/* Loads points p .. p + count - 1; the last one fills the lanes that are left. */
SK_LANES_INLINE void sk_mpm_load_group(const sk_mpm_points *points, uint32_t p, int count, sk_elastic_group *group)
{
    for (int l = 0; l < SK_LANES; l++) {
        const size_t at = p + (size_t)(l < count ? l : count - 1);
        const float *from = points->deformation + at * SK_MPM_MATRIX;
        for (int n = 0; n < SK_MPM_MATRIX; n++)
            group->deformation[n][l] = from[n];
        group->strain[l] = points->plastic_strain[at];
        group->volume[l] = points->plastic_volume[at];
    }
}

/* Stores the results of a group; `push` gets factor times stress. */
SK_LANES_INLINE void sk_mpm_store_group(const sk_mpm_points *points, const sk_elastic_material *material, uint32_t p,
                                        int count, float factor, const sk_elastic_group *group,
                                        float (*push)[SK_MPM_MATRIX])
{
    const int plastic = material->plasticity != SK_PLASTIC_NONE;
    for (int l = 0; l < count; l++) {
        for (int i = 0; i < SELKIE_DIM; i++)
            for (int j = 0; j < SELKIE_DIM; j++)
                push[l][SELKIE_DIM * i + j] = factor * group->stress[sk_entry(i, j)][l];
        points->stress[p + (uint32_t)l] = group->equivalent[l];
        if (!plastic)
            continue;
        float *to = points->deformation + (size_t)(p + (uint32_t)l) * SK_MPM_MATRIX;
        for (int n = 0; n < SK_MPM_MATRIX; n++)
            to[n] = group->deformation[n][l];
        points->plastic_strain[p + (uint32_t)l] = group->strain[l];
        points->plastic_volume[p + (uint32_t)l] = group->volume[l];
    }
}

/* One point of a group by the kernels. */
static __attribute__((noinline, unused)) void sk_mpm_single_law(const sk_mpm_giving *giving, uint32_t p,
                                                                sk_mpm_law_sums *sums, float push[SK_MPM_MATRIX])
{
    sk_mpm_gift gift;
    sk_mpm_make_gift(giving, p, sums, &gift);
    memcpy(push, gift.push, sizeof gift.push);
}

static inline __attribute__((unused)) void sk_mpm_group_law(const sk_mpm_giving *giving, uint32_t p, int count,
                                                            sk_mpm_law_sums *sums, float (*push)[SK_MPM_MATRIX])
{
    const sk_mpm_points *points = &giving->points;
    const sk_elastic_material *material = sk_mpm_material(giving->mpm, points, p);
    sk_elastic_group group;
    int same = 1;
    for (int l = 1; l < count; l++)
        same &= sk_mpm_material(giving->mpm, points, p + (uint32_t)l) == material;
    if (same)
        sk_mpm_load_group(points, p, count, &group);
    if (!same || !sk_lanes_law(material, giving->dt, &group)) {
        for (int l = 0; l < count; l++)
            sk_mpm_single_law(giving, p + (uint32_t)l, sums, push[l]);
        return;
    }
    const float factor = giving->kick * material->inverse_density / giving->cell_size;
    sk_mpm_store_group(points, material, p, count, factor, &group, push);
    for (int l = 0; l < count; l++) {
        sums->energy += group.energy[l];
        sums->work += group.work[l];
        sums->wave_speed = fmaxf(sums->wave_speed, group.wave_speed[l]);
    }
}

#endif
