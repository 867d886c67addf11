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
    size_t at[SK_LANES];
    const float *from[SK_LANES];
    for (int l = 0; l < SK_LANES; l++) {
        at[l] = p + (size_t)(l < count ? l : count - 1);
        from[l] = points->deformation + at[l] * SK_MPM_MATRIX;
    }
    for (int n = 0; n < SK_MPM_MATRIX; n++)
        group->deformation[n] = (f4){from[0][n], from[1][n], from[2][n], from[3][n]};
    const float *strain = points->plastic_strain, *volume = points->plastic_volume;
    group->strain = (f4){strain[at[0]], strain[at[1]], strain[at[2]], strain[at[3]]};
    group->volume = (f4){volume[at[0]], volume[at[1]], volume[at[2]], volume[at[3]]};
}

/* Stores the results of a group; `push` gets factor times stress. */
SK_LANES_INLINE void sk_mpm_store_group(const sk_mpm_points *points, const sk_elastic_material *material, uint32_t p,
                                        int count, float factor, const sk_elastic_group *group,
                                        float (*push)[SK_MPM_MATRIX])
{
    float stress[SK_SYMMETRIC][SK_LANES], deformation[SK_MPM_MATRIX][SK_LANES];
    for (int n = 0; n < SK_SYMMETRIC; n++) {
        const f4 scaled = factor * group->stress[n];
        memcpy(stress[n], &scaled, sizeof scaled);
    }
    for (int l = 0; l < count; l++)
        for (int i = 0; i < SELKIE_DIM; i++)
            for (int j = 0; j < SELKIE_DIM; j++)
                push[l][SELKIE_DIM * i + j] = stress[sk_entry(i, j)][l];
    memcpy(points->stress + p, &group->equivalent, (size_t)count * sizeof(float));
    if (material->plasticity == SK_PLASTIC_NONE)
        return;
    memcpy(points->plastic_strain + p, &group->strain, (size_t)count * sizeof(float));
    memcpy(points->plastic_volume + p, &group->volume, (size_t)count * sizeof(float));
    memcpy(deformation, group->deformation, sizeof deformation);
    for (int l = 0; l < count; l++) {
        float *to = points->deformation + (size_t)(p + (uint32_t)l) * SK_MPM_MATRIX;
        for (int n = 0; n < SK_MPM_MATRIX; n++)
            to[n] = deformation[n][l];
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
    float energy[SK_LANES], work[SK_LANES], speed[SK_LANES];
    memcpy(energy, &group.energy, sizeof energy);
    memcpy(work, &group.work, sizeof work);
    memcpy(speed, &group.wave_speed, sizeof speed);
    for (int l = 0; l < count; l++) {
        sums->energy += energy[l];
        sums->work += work[l];
        sums->wave_speed = speed[l] > sums->wave_speed ? speed[l] : sums->wave_speed;
    }
}

#endif
