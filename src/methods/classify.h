/* Classification of cells: phases that several methods put into their lists.
 *
 * sk_classify measures volumes as well; sk_classify_cells only finds the liquid before positions are corrected. The
 * plain forms are in classify_plain_dim.c.
 */
#ifndef SK_METHODS_CLASSIFY_H
#define SK_METHODS_CLASSIFY_H

#include "methods/step.h"

selkie_code sk_classify_2d(sk_step *step, selkie_error *error);
selkie_code sk_classify_3d(sk_step *step, selkie_error *error);
selkie_code sk_classify_cells_2d(sk_step *step, selkie_error *error);
selkie_code sk_classify_cells_3d(sk_step *step, selkie_error *error);
selkie_code sk_classify_plain_2d(sk_step *step, selkie_error *error);
selkie_code sk_classify_plain_3d(sk_step *step, selkie_error *error);
selkie_code sk_classify_cells_plain_2d(sk_step *step, selkie_error *error);
selkie_code sk_classify_cells_plain_3d(sk_step *step, selkie_error *error);

#endif
