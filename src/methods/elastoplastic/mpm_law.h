/* Plastic flow and stress of a group of points, in lanes where they share a material, and their move. For files
 * compiled per dimension. */
#ifndef SK_METHODS_MPM_LAW_H
#define SK_METHODS_MPM_LAW_H

#include "methods/elastoplastic/mpm_lanes.h"

typedef double sk_lane_doubles __attribute__((vector_size(32)));

SK_LANES_INLINE sk_lane_doubles sk_doubles(f4 a)
{
    return __builtin_convertvector(a, sk_lane_doubles);
}

SK_LANES_INLINE double sk_lane_sum(sk_lane_doubles a)
{
    return (a[0] + a[2]) + (a[1] + a[3]);
}

SK_LANES_INLINE float sk_lane_most(f4 a)
{
    return fmaxf(fmaxf(a[0], a[1]), fmaxf(a[2], a[3]));
}

/* --- Law --- */

/* Sums of a block, a point in each lane, and those of points that took the kernels. */
typedef struct sk_mpm_lane_sums {
    sk_lane_doubles energy, work;
    f4 wave_speed;
    sk_mpm_law_sums single;
} sk_mpm_lane_sums;

SK_LANES_INLINE sk_mpm_law_sums sk_mpm_total_sums(const sk_mpm_lane_sums *sums)
{
    return (sk_mpm_law_sums){sums->single.energy + sk_lane_sum(sums->energy),
                             sums->single.work + sk_lane_sum(sums->work),
                             fmaxf(sums->single.wave_speed, sk_lane_most(sums->wave_speed))};
}

/* Points of a group by the kernels. */
static __attribute__((noinline, unused)) void sk_mpm_single_laws(const sk_mpm_giving *giving, const sk_mpm_rows *rows,
                                                                 sk_mpm_law_sums *sums, f4 push[SK_SYMMETRIC], f4 *mass)
{
    *mass = sk_four(0.0f);
    for (int n = 0; n < SK_SYMMETRIC; n++)
        push[n] = sk_four(0.0f);
    for (int l = 0; l < rows->count; l++) {
        sk_mpm_gift gift;
        sk_mpm_make_gift(giving, (uint32_t)rows->at[l], sums, &gift);
        (*mass)[l] = gift.mass;
        for (int i = 0; i < SELKIE_DIM; i++)
            for (int j = i; j < SELKIE_DIM; j++)
                push[sk_entry(i, j)][l] = gift.push[SELKIE_DIM * i + j];
    }
}

/* Stores what the law changed. */
SK_LANES_INLINE void sk_mpm_store_group(const sk_mpm_points *points, const sk_elastic_material *material,
                                        const sk_mpm_rows *rows, const sk_mpm_rows *sources,
                                        const sk_elastic_group *group)
{
    sk_store_number(points->next.stress, rows, group->equivalent);
    sk_store_number(points->next.plastic_strain, rows, group->strain);
    sk_store_number(points->next.plastic_volume, rows, group->volume);
    if (material->plasticity != SK_PLASTIC_NONE)
        sk_store_matrices(points->now.deformation, sources, group->deformation);
}

/* Flow and stress of a group: `push` of sk_mpm_gift, symmetric, and the mass, zero in idle lanes. `sources` are the
 * rows of its attributes. */
static inline __attribute__((unused)) void sk_mpm_group_law(const sk_mpm_giving *giving, const sk_mpm_rows *rows,
                                                            const sk_mpm_rows *sources, sk_mpm_lane_sums *sums,
                                                            f4 push[SK_SYMMETRIC], f4 *mass)
{
    const sk_mpm_points *points = &giving->points;
    const sk_elastic_material *material = sk_mpm_material(giving->mpm, points, (uint32_t)rows->at[0]);
    sk_elastic_group group;
    int same = 1;
    for (int l = 1; points->material && l < rows->count; l++)
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
    const sk_lane_mask busy = sk_mpm_busy(rows);
    const f4 zero = sk_four(0.0f);
    sk_mpm_store_group(points, material, rows, sources, &group);
    for (int n = 0; n < SK_SYMMETRIC; n++)
        push[n] = factor * group.stress[n];
    *mass = sk_choose(busy, sk_four(material->relative_mass), zero);
    sums->energy += sk_doubles(sk_choose(busy, group.energy, zero));
    if (material->plasticity != SK_PLASTIC_NONE)
        sums->work += sk_doubles(sk_choose(busy, group.work, zero));
    sums->wave_speed = sk_larger(group.wave_speed, sums->wave_speed);
}

/* --- Move --- */

/* Sums of sk_point_move_sums, a point in each lane. */
typedef struct sk_lane_move_sums {
    sk_lane_doubles position[3], speed2;
    f4 fastest2;
    sk_lane_mask gone, bad; /* minus the number of points */
} sk_lane_move_sums;

SK_LANES_INLINE void sk_add_lane_sums(const sk_lane_move_sums *lanes, sk_point_move_sums *sums)
{
    for (int d = 0; d < SELKIE_DIM; d++)
        sums->position[d] += sk_lane_sum(lanes->position[d]);
    sums->kinetic += 0.5 * sk_lane_sum(lanes->speed2);
    sums->fastest2 = fmax(sums->fastest2, sk_lane_most(lanes->fastest2));
    for (int l = 0; l < SK_LANES; l++) {
        sums->gone -= lanes->gone[l];
        sums->bad -= lanes->bad[l];
    }
}

/* Points that may touch an obstacle, one at a time. */
static __attribute__((noinline, unused)) void sk_mpm_move_single(const sk_mpm_taking *taking, float clearance,
                                                                 const sk_mpm_rows *rows, sk_point_move_sums *sums)
{
    for (int l = 0; l < rows->count; l++)
        sk_move_point(&taking->moving, clearance, &taking->points.records[rows->at[l]], sums);
}

/* sk_move_point of a group. */
SK_LANES_INLINE void sk_mpm_move_group(const sk_mpm_taking *taking, int block, const sk_mpm_rows *rows,
                                       sk_mpm_records *records, sk_lane_move_sums *sums, sk_point_move_sums *single)
{
    const sk_point_moving *moving = &taking->moving;
    const sk_grid *grid = taking->grid;
    const f4 zero = sk_four(0.0f);
    f4 moved[3], speed2 = zero, travelled = zero;
    sk_lane_mask gone = {0, 0, 0, 0};
    for (int d = 0; d < SELKIE_DIM; d++) {
        const f4 velocity = records->column[3 + d], x = sk_scaled_add(moving->dt, velocity, records->column[d]);
        const f4 above = sk_choose(x < moving->low[d], sk_four(moving->low[d]), x);
        if (moving->low[d] == -INFINITY)
            gone |= x < (float)grid->low[d];
        if (moving->high[d] == INFINITY)
            gone |= x > (float)grid->high[d];
        moved[d] = sk_choose(above > moving->high[d], sk_four(moving->high[d]), above);
        speed2 = f4_multiply_add(velocity, velocity, speed2);
        travelled += sk_absolute(moved[d] - records->column[d]);
    }
    if (moving->step->solids.obstacle_count) {
        const float clearance = moving->step->solids.clearance[block];
        if (sk_any(~(travelled < clearance * (float)moving->step->solids.cell_size))) {
            sk_store_records(taking->points.records, rows, records);
            sk_mpm_move_single(taking, clearance, rows, single);
            return;
        }
    }

    /* Sums of the points that stay. */
    const sk_lane_mask busy = sk_mpm_busy(rows), dead = (sk_lane_mask)records->column[7] & SK_PARTICLE_DEAD;
    const sk_lane_mask stays = busy & ~(gone | (dead != 0));
    for (int d = 0; d < SELKIE_DIM; d++) {
        records->column[d] = moved[d];
        sums->position[d] += sk_doubles(sk_choose(stays, moved[d], zero));
    }
    records->column[7] = (f4)((sk_lane_mask)records->column[7] | (gone & SK_PARTICLE_DEAD));
    sums->gone += busy & ~stays;
    sums->bad += busy & ~(speed2 < 1e30f);
    speed2 = sk_choose(stays, speed2, zero);
    sums->speed2 += sk_doubles(speed2);
    sums->fastest2 = sk_larger(speed2, sums->fastest2);
    sk_store_records(taking->points.records, rows, records);
}

#endif
