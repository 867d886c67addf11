/* Plastic flow and stress of a group of points, in lanes where they share a material. For files compiled per
 * dimension. */
#ifndef SK_METHODS_MPM_LAW_H
#define SK_METHODS_MPM_LAW_H

#include "methods/elastoplastic/mpm_lanes.h"

/* Sums of a block, a point in each lane, and those of points that took the kernels. */
typedef struct sk_mpm_lane_sums {
    sk_lane_doubles energy, work;
    fl wave_square;
    sk_mpm_law_sums single;
} sk_mpm_lane_sums;

SK_LANES_INLINE sk_mpm_law_sums sk_mpm_total_sums(const sk_mpm_lane_sums *sums)
{
    return (sk_mpm_law_sums){sums->single.energy + sk_lane_sum(sums->energy),
                             sums->single.work + sk_lane_sum(sums->work),
                             fmaxf(sums->single.wave_speed, sqrtf(sk_lane_most(sums->wave_square)))};
}

/* Points of a group by the kernels. */
static __attribute__((noinline, unused)) void sk_mpm_single_laws(const sk_mpm_giving *giving, const sk_point_rows *rows,
                                                                 sk_mpm_law_sums *sums, fl push[SK_SYMMETRIC], fl *mass)
{
    *mass = fl_splat(0.0f);
    for (int n = 0; n < SK_SYMMETRIC; n++)
        push[n] = fl_splat(0.0f);
    for (int l = 0; l < SK_LANES; l++) {
        sk_mpm_gift gift;
        if (!(rows->points >> l & 1))
            continue;
        sk_mpm_make_gift(giving, (uint32_t)rows->at[l], sums, &gift);
        (*mass)[l] = gift.mass;
        for (int i = 0; i < SELKIE_DIM; i++)
            for (int j = i; j < SELKIE_DIM; j++)
                push[sk_entry(i, j)][l] = gift.push[SELKIE_DIM * i + j];
    }
}

/* Stores what the law changed. */
SK_LANES_INLINE void sk_mpm_store_group(const sk_mpm_points *points, const sk_elastic_material *material,
                                        const sk_point_rows *rows, const sk_point_rows *sources, sk_lane_kind kind,
                                        const sk_elastic_group *group)
{
    sk_store_number(points->next.stress, rows, kind, group->equivalent);
    sk_store_number(points->next.plastic_strain, rows, kind, group->strain);
    sk_store_number(points->next.plastic_volume, rows, kind, group->volume);
    if (material->plasticity != SK_PLASTIC_NONE)
        sk_store_matrices(points->now.deformation, sources, kind, group->deformation);
}

/* Flow and stress of a group: `push` of sk_mpm_gift, symmetric, and the mass, zero in idle lanes. `sources` are the
 * rows of its attributes. */
SK_LANES_INLINE void sk_mpm_group_law(const sk_mpm_giving *giving, const sk_point_rows *rows,
                                      const sk_point_rows *sources, sk_lane_kind kind, sk_mpm_lane_sums *sums,
                                      fl push[SK_SYMMETRIC], fl *mass)
{
    const sk_mpm_points *points = &giving->points;
    const sk_elastic_material *material = sk_mpm_material(giving->mpm, points, (uint32_t)rows->at[0]);
    sk_elastic_group group;
    int same = 1;
    for (int l = 0; points->material && l < SK_LANES; l++)
        same &= sk_mpm_material(giving->mpm, points, (uint32_t)rows->at[l]) == material;
    if (same) {
        sk_load_matrices(points->now.deformation, sources, group.deformation);
        group.strain = sk_load_column(points->now.plastic_strain, 1, 0, sources);
        group.volume = sk_load_column(points->now.plastic_volume, 1, 0, sources);
    }
    if (!same || !sk_lanes_law(material, giving->dt, &group)) {
        sk_mpm_single_laws(giving, rows, &sums->single, push, mass);
        return;
    }

    /* Idle lanes repeat the last point: they have no mass and no part in the sums. */
    const float factor = giving->kick * material->inverse_density / giving->cell_size;
    const sk_lane_mask busy = rows->busy;
    const fl zero = fl_splat(0.0f);
    sk_mpm_store_group(points, material, rows, sources, kind, &group);
    for (int n = 0; n < SK_SYMMETRIC; n++)
        push[n] = factor * group.stress[n];
    *mass = sk_choose(busy, fl_splat(material->relative_mass), zero);
    sums->energy += sk_doubles(sk_choose(busy, group.energy, zero));
    if (material->plasticity != SK_PLASTIC_NONE)
        sums->work += sk_doubles(sk_choose(busy, group.work, zero));
    sums->wave_square = sk_larger(group.wave_square, sums->wave_square);
}

#endif
