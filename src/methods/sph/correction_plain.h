/* The corrected gradients of one particle, for the plain form and the GPU. correction_parts.h has the reason and the
 * equations. For files compiled per dimension.
 *
 * The file that includes this one has defined `plain_list` and neighbour_at as for pressure_plain.h, and set_gradient,
 * which replaces the gradient of a neighbour and rounds it.
 */
#ifndef SK_METHODS_SPH_CORRECTION_PLAIN_H
#define SK_METHODS_SPH_CORRECTION_PLAIN_H

#include "methods/sph/correction_parts.h"

SK_KERNEL corrected_sums correct_list(const sk_sph *sph, const plain_list *list, uint32_t i)
{
    const float *const own[3] = {sph->correction[0][i], sph->correction[1][i], sph->correction[2][i]};
    corrected_sums sums = {{0, 0, 0}, {0, 0, 0}, 0.0f};
    for (uint32_t k = 0; k < list->count; k++) {
        float gradient[3], corrected[3];
        const uint32_t j = neighbour_at(list, k, gradient);
        const float *const other[3] = {sph->correction[0][j], sph->correction[1][j], sph->correction[2][j]};
        SK_DIM(sk_sph_correct_gradient)(own, other, gradient, corrected);
        set_gradient(list, k, corrected);
        SK_DIM(sk_sph_add_scaled)(1.0f, gradient, sums.before);
        SK_DIM(sk_sph_add_scaled)(1.0f, corrected, sums.after);
        sums.squares += SK_DIM(sk_sph_dot)(corrected, corrected);
    }
    return sums;
}

#endif
