/* Gradients of isotropic stress, one neighbour at a time. correction_parts.h has the reason and the equations. */
#include <omp.h>

#include "methods/sph/plain_lists.h"
#include "methods/sph/correction_plain.h"

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
            const plain_list list = plain_list_of(block, i);
            const corrected_sums sums = correct_list(frame->sph, &list, i);
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
