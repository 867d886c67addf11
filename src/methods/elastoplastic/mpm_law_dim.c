/* Plastic flow and stress of points that follow each other, tuned: in lanes where they share a material. Groups do not
 * end with cells, so that lanes are full. */
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define SK_LANES_COUNT 16
#endif
#include "base/simd.h"
#include "methods/elastoplastic/mpm_lanes.h"

/* Sums of a block, a point in each lane, and those of points that took the kernels. */
typedef struct lane_sums {
    sk_lane_doubles energy, work;
    fl wave_square;
    sk_mpm_law_sums single;
} lane_sums;

static sk_mpm_law_sums total_of(const lane_sums *sums)
{
    return (sk_mpm_law_sums){sums->single.energy + sk_lane_sum(sums->energy),
                             sums->single.work + sk_lane_sum(sums->work),
                             fmaxf(sums->single.wave_speed, sqrtf(sk_lane_most(sums->wave_square)))};
}

/* Row of push and mass of each point of a group, where `rows` counts from the first. */
SK_LANES_INLINE void store_push(const fl push[SK_SYMMETRIC], fl mass, const sk_point_rows *rows, float *to)
{
    fl column[SK_MPM_PUSH];
    for (int n = 0; n < SK_MPM_PUSH; n++)
        column[n] = n < SK_SYMMETRIC ? push[n] : mass;
    for (int n = 0; n < SK_MPM_PUSH; n += 4)
        sk_store_columns(to, SK_MPM_PUSH, n, rows, SK_LANES_ADJOIN, column + n);
}

/* Points of a group by the kernels. */
static __attribute__((noinline)) void single_laws(const sk_mpm_giving *giving, const sk_point_rows *rows,
                                                  sk_mpm_law_sums *sums, float (*push)[SK_MPM_PUSH])
{
    for (int l = 0; l < SK_LANES; l++) {
        sk_mpm_gift gift;
        if (!(rows->points >> l & 1))
            continue;
        sk_mpm_make_gift(giving, (uint32_t)rows->at[l], sums, &gift);
        push[l][SK_MPM_PUSH - 1] = gift.mass;
        for (int i = 0; i < SELKIE_DIM; i++)
            for (int j = i; j < SELKIE_DIM; j++)
                push[l][sk_entry(i, j)] = gift.push[SELKIE_DIM * i + j];
    }
}

/* Stores what the law changed. */
SK_LANES_INLINE void store_group(const sk_mpm_points *points, const sk_elastic_material *material,
                                 const sk_point_rows *rows, const sk_point_rows *sources, const sk_elastic_group *group)
{
    sk_store_number(points->next.stress, rows, SK_LANES_ADJOIN, group->equivalent);
    sk_store_number(points->next.plastic_strain, rows, SK_LANES_ADJOIN, group->strain);
    sk_store_number(points->next.plastic_volume, rows, SK_LANES_ADJOIN, group->volume);
    if (material->plasticity != SK_PLASTIC_NONE)
        sk_store_matrices(points->now.deformation, sources, SK_LANES_ADJOIN, group->deformation);
}

/* Do the points of a group share a material? */
SK_LANES_INLINE int is_one_material(const sk_mpm_points *points, const sk_point_rows *rows)
{
    int same = 1;
    for (int l = 1; points->material && l < SK_LANES; l++)
        same &= points->material[rows->at[l]] == points->material[rows->at[0]];
    return same;
}

/* Points p, p + 1 .. before `end`. `push` is that of p. */
SK_LANES_INLINE void group_law(const sk_mpm_giving *giving, uint32_t p, uint32_t end, lane_sums *sums,
                               float (*push)[SK_MPM_PUSH])
{
    const sk_mpm_points *points = &giving->points;
    const sk_point_rows rows = sk_point_rows_of(p, end), sources = sk_mpm_sources(points, &rows);
    const sk_elastic_material *material = sk_mpm_material(giving->mpm, points, p);
    sk_elastic_group group;
    sk_mpm_fetch(points, points->now.deformation, p);
    sk_load_matrices(points->now.deformation, &sources, group.deformation);
    group.strain = sk_load_column(points->now.plastic_strain, 1, 0, &sources);
    group.volume = sk_load_column(points->now.plastic_volume, 1, 0, &sources);
    if (!is_one_material(points, &rows) || !sk_lanes_law(material, giving->dt, &group)) {
        single_laws(giving, &rows, &sums->single, push);
        return;
    }

    /* Idle lanes repeat the last point, and have no part in the sums. */
    const float factor = giving->kick * material->inverse_density / giving->cell_size;
    const sk_point_rows own = sk_point_rows_of(0, end - p);
    const fl zero = fl_splat(0.0f);
    store_group(points, material, &rows, &sources, &group);
    for (int n = 0; n < SK_SYMMETRIC; n++)
        group.stress[n] *= factor;
    store_push(group.stress, fl_splat(material->relative_mass), &own, push[0]);
    sums->energy += sk_doubles(sk_choose(rows.busy, group.energy, zero));
    if (material->plasticity != SK_PLASTIC_NONE)
        sums->work += sk_doubles(sk_choose(rows.busy, group.work, zero));
    sums->wave_square = sk_larger(group.wave_square, sums->wave_square);
}

void SK_DIM(sk_mpm_laws)(const sk_mpm_giving *giving, uint32_t begin, uint32_t end, sk_mpm_law_sums *sums,
                         float (*push)[SK_MPM_PUSH])
{
    lane_sums own = {0};
    for (uint32_t p = begin; p < end; p += SK_LANES)
        group_law(giving, p, end, &own, push + (p - begin));
    const sk_mpm_law_sums total = total_of(&own);
    sums->energy += total.energy;
    sums->work += total.work;
    sums->wave_speed = fmaxf(sums->wave_speed, total.wave_speed);
}
