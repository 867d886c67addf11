/* LU decomposition of a small dense matrix with partial pivoting. */
#ifndef SK_LINALG_DENSE_H
#define SK_LINALG_DENSE_H

/* Replaces the row-major matrix [n][n] by its factors; rows[n] receives the order of the rows. Returns 0 if it is
 * singular to rounding. */
int sk_lu_factor(int n, double *matrix, int *rows);
/* Solves in place: x holds the right side and receives the answer. `scratch` has n entries. */
void sk_lu_solve(int n, const double *factors, const int *rows, double *x, double *scratch);

#endif
