/* Products with tables of functions: from coefficients of waves to values at points and back. */
#ifndef SK_METHODS_REDUCED_TRANSFORMS_H
#define SK_METHODS_REDUCED_TRANSFORMS_H

#include "methods/reduced/spectrum.h"

enum { SK_REDUCED_VALUE, SK_REDUCED_SLOPE };

selkie_code sk_reduced_table_make(sk_reduced_table *table, const sk_reduced_spectrum *s, int d, int points, int nodes,
                                  selkie_error *error);
void sk_reduced_table_free(sk_reduced_table *table, sk_memory *memory);

/* to[m][n] = sum over waves of X(m) s->coefficients Y(n). `kind` says value or slope along each axis. */
void sk_reduced_to_points(sk_reduced_spectrum *s, const sk_reduced_table table[2], const int kind[2], double *to,
                          int threads);
/* s->coefficients = sum over points of X(m) from[m][n] Y(n). */
void sk_reduced_to_waves(sk_reduced_spectrum *s, const sk_reduced_table table[2], const int kind[2], const double *from,
                         int threads);

#endif
