/* Gradients of isotropic stress, one neighbour at a time. correction_parts.h has the reason and the equations. */
#include <omp.h>

#include "methods/sph/correction_parts.h"
#include "methods/sph/plain_lists.h"

static corrected_sums correct_list(sk_sph *sph, const plain_block *block, uint32_t i)
{
    char *list = sph->lists + (size_t)sph->first[i] * SK_SPH_LINE_BYTES;
    const float *const own[3] = {sph->correction[0][i], sph->correction[1][i], sph->correction[2][i]};
    corrected_sums sums = {.squares = 0.0f};
    for (uint32_t k = 0; k < sph->number[i]; k++) {
        float gradient[3], corrected[3];
        const uint32_t index = sk_sph_read_entry(list, block->wide, k, gradient), j = block->numbers[index];
        const float *const other[3] = {sph->correction[0][j], sph->correction[1][j], sph->correction[2][j]};
        SK_DIM(sk_sph_correct_gradient)(own, other, gradient, corrected);
        sk_sph_write_entry(list, block->wide, k, corrected, index);
        SK_DIM(sk_sph_add_scaled)(1.0f, gradient, sums.before);
        SK_DIM(sk_sph_add_scaled)(1.0f, corrected, sums.after);
        sums.squares += SK_DIM(sk_sph_dot)(corrected, corrected);
    }
    return sums;
}

static void correct_block(const list_frame *frame, const plain_block *block, int number)
{
    const sk_step *step = frame->step;
    const uint32_t *start = step->grid.cell_start + (size_t)(number - 1) * SK_BLOCK_CELLS;
    const int points = points_near_block(step, number);
    near_walls walls = {0};
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        if (points && start[c] < start[c + 1])
            find_points_near_cell(step, number, c, &walls);
        for (uint32_t i = start[c]; i < start[c + 1]; i++) {
            const corrected_sums sums = correct_list(frame->sph, block, i);
            finish_correction(frame, &walls, i, &sums);
        }
    }
}

selkie_code SK_DIM(sk_sph_correct_plain)(sk_step *step, selkie_error *error)
{
    if (!step->particles.count)
        return SELKIE_OK;
    const list_frame frame = make_list_frame(step);
    void *scratch;
    SK_TRY(reserve_plain(step, &scratch, error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int b = 1; b <= step->grid.particle_blocks; b++) {
        const plain_block block = open_block(step, scratch, omp_get_thread_num(), b);
        correct_block(&frame, &block, b);
    }
    return SELKIE_OK;
}
