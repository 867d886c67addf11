/* Further modes beside the eigenfunctions (Gerszewski, ch. 5.2): from drawings and from snapshots of runs.
 *
 * Fields live in the coefficients of a fine spectrum, whose first modes are those of the basis. The projection to it
 * makes them free of divergence, and deflation against the basis (Eq. 5.10) leaves out the first coefficients.
 */
#ifndef SK_METHODS_REDUCED_ENRICH_H
#define SK_METHODS_REDUCED_ENRICH_H

#include "methods/reduced/spectrum.h"

typedef struct sk_enrichment {
    sk_memory *memory;
    sk_reduced_spectrum fine;
    int columns, room; /* fields so far, and at most */
    double *fields;    /* [columns][fine.count] */
    double *weighted;
    double *values; /* singular values */
    int threads;
} sk_enrichment;

/* Modes of a fine spectrum: as many as the cells carry. */
int sk_reduced_fine_modes(const sk_reduced_box *box);

selkie_code sk_enrich_begin(sk_enrichment *e, const sk_reduced_box *box, int room, int threads, sk_memory *memory,
                            selkie_error *error);
void sk_enrich_end(sk_enrichment *e);
/* Takes a field by its fine coefficients, times `factor`. */
void sk_enrich_take(sk_enrichment *e, const double *r, double factor);
/* Eq. 5.10: singular vectors above `cut` of the largest value, at most `most` of them, deflated against the first
 * modes of `s`, and singular vectors of these above `cut`. A last rotation lets viscosity act on each mode alone. */
void sk_enrich_reduce(sk_enrichment *e, const sk_reduced_spectrum *s, double cut, int most);
/* Adds the modes to a basis that has room for them. */
void sk_enrich_add(sk_enrichment *e, sk_reduced_spectrum *s);
/* Coefficients of a fine field in the whole basis, whose last modes are those of the enrichment. */
void sk_enrich_express(const sk_enrichment *e, const sk_reduced_spectrum *s, const double *field, double *to);

#endif
