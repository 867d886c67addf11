/* Gradients of isotropic stress, four neighbours at a time. correction_parts.h has the reason and the equations. */
#include <omp.h>
#include <string.h>

#include "methods/sph/correction_parts.h"
#include "methods/sph/sph_tile.h"

enum { CORRECTION_ARRAYS = 12 }; /* three columns of four lanes */

/* Lane l of each group of four, in all its lanes. */
SK_VECTOR f16 spread_lane(f16 a, const int lane)
{
    return lane == 0   ? __builtin_shufflevector(a, a, 0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12)
           : lane == 1 ? __builtin_shufflevector(a, a, 1, 1, 1, 1, 5, 5, 5, 5, 9, 9, 9, 9, 13, 13, 13, 13)
                       : __builtin_shufflevector(a, a, 2, 2, 2, 2, 6, 6, 6, 6, 10, 10, 10, 10, 14, 14, 14, 14);
}

/* Writes entries 4 k to 4 k + 3 without their indices; returns the rounded values. */
SK_VECTOR f16 write_four(void *list, const int wide, uint32_t k, f16 value)
{
    if (wide) {
        sk_sph_wide_entry *entry = (sk_sph_wide_entry *)list + 4 * k;
        for (int e = 0; e < 4; e++)
            for (int d = 0; d < 3; d++)
                entry[e].gradient[d] = value[4 * e + d];
        return value;
    }
    sk_sph_lean_entry *entry = (sk_sph_lean_entry *)list + 4 * k;
    uint16_t halves[16];
    f8_to_halves(halves, __builtin_shufflevector(value, value, 0, 1, 2, 3, 4, 5, 6, 7));
    f8_to_halves(halves + 8, __builtin_shufflevector(value, value, 8, 9, 10, 11, 12, 13, 14, 15));
    for (int e = 0; e < 4; e++)
        memcpy(entry[e].gradient, halves + 4 * e, sizeof entry[e].gradient);
    return f16_from_halves(halves);
}

SK_VECTOR corrected_sums correct_list(sk_sph *sph, const tile_worker *w, uint32_t i, const int wide)
{
    char *list = sph->lists + (size_t)sph->first[i] * SK_SPH_LINE_BYTES;
    const uint32_t fours = four_count(sph, i);
    f16 own[SELKIE_DIM], before = {0}, after = {0}, squares = {0};
    for (int c = 0; c < SELKIE_DIM; c++)
        own[c] = f16_load4(sph->correction[c][i], sph->correction[c][i], sph->correction[c][i], sph->correction[c][i]);
    for (uint32_t k = 0; k < fours; k++) {
        uint32_t index[4];
        const f16 gradient = entries_at(list, wide, k, index);
        f16 sum = {0};
        for (int c = 0; c < SELKIE_DIM; c++) {
            const float(*column)[4] = (const float(*)[4])lanes_of(w, 4 * c);
            sum += spread_lane(gradient, c) *
                   (own[c] + f16_load4(column[index[0]], column[index[1]], column[index[2]], column[index[3]]));
        }
        const f16 rounded = write_four(list, wide, k, 0.5f * sum);
        before += gradient;
        after += rounded;
        squares += rounded * rounded;
    }
    const f4 old_sum = f16_sum4(before), new_sum = f16_sum4(after), square = f16_sum4(squares);
    return (corrected_sums){.before = {old_sum[0], old_sum[1], old_sum[2]},
                            .after = {new_sum[0], new_sum[1], new_sum[2]},
                            .squares = square[0] + square[1] + square[2]};
}

static void correct_block(const list_frame *frame, tile_worker *w, int block)
{
    const sk_step *step = frame->step;
    sk_sph *sph = frame->sph;
    const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    const int points = points_near_block(step, block), wide = sph->block_wide[block];
    near_walls walls = {0};
    make_tile(&step->grid, block, &w->tile);
    for (int c = 0; c < SELKIE_DIM; c++)
        sk_particle_tile_load_lanes(&w->tile, (const float(*)[4])sph->correction[c], lanes_of(w, 4 * c));
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        if (points && start[c] < start[c + 1])
            find_points_near_cell(step, block, c, &walls);
        for (uint32_t i = start[c]; i < start[c + 1]; i++) {
            const corrected_sums sums = wide ? correct_list(sph, w, i, 1) : correct_list(sph, w, i, 0);
            finish_correction(frame, &walls, i, &sums);
        }
    }
}

selkie_code SK_DIM(sk_sph_correct)(sk_step *step, selkie_error *error)
{
    sk_sph *sph = step->sph;
    if (!step->particles.count)
        return SELKIE_OK;
    const list_frame frame = make_list_frame(step);
    void *scratch;
    SK_TRY(sk_step_scratch(step, worker_bytes(sph, CORRECTION_ARRAYS) * (size_t)step->threads, "sph correction",
                           &scratch, error));
#pragma omp parallel num_threads(step->threads)
    {
        tile_worker *w = worker_of(sph, scratch, omp_get_thread_num(), CORRECTION_ARRAYS);
#pragma omp for schedule(dynamic, 1)
        for (int block = 1; block <= step->grid.particle_blocks; block++)
            correct_block(&frame, w, block);
    }
    return SELKIE_OK;
}
