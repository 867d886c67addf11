/* Errors of density over rest density, over inner cells: liquid, and without an open face to anything else. */
#ifndef SK_METHODS_DENSITY_ERRORS_H
#define SK_METHODS_DENSITY_ERRORS_H

#include <math.h>

#include "methods/step.h"

typedef struct density_errors {
    double absolute, squares, sum, largest;
    int64_t count;
} density_errors;

/* Adds up those of the blocks, [block_count], in their order. */
static inline __attribute__((unused)) void report_density_errors(sk_step *step, const density_errors *errors)
{
    density_errors total = {0, 0, 0, 0, 0};
    for (int b = 1; b < step->grid.block_count; b++) {
        total.absolute += errors[b].absolute;
        total.squares += errors[b].squares;
        total.sum += errors[b].sum;
        total.largest = fmax(total.largest, errors[b].largest);
        total.count += errors[b].count;
    }
    double n = total.count ? (double)total.count : 1.0, mean = total.sum / n;
    step->density_error_mean = total.absolute / n;
    step->density_error_max = total.largest;
    step->density_error_std = sqrt(fmax(total.squares / n - mean * mean, 0.0));
}

#endif
