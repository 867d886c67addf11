/* Singular values of a tall matrix. Few columns: one-sided Jacobi rotations, accurate to the last small value, and the
 * same bits everywhere. Many columns, as of snapshots: LAPACK where it is there. */
#ifndef SK_METHODS_REDUCED_SVD_H
#define SK_METHODS_REDUCED_SVD_H

/* Rotates the columns (each of `rows` values, one after the other) until they are orthogonal, and sorts them by their
 * length, the longest first. `values` receives the lengths: the singular values. The columns are then U S. `turned` may
 * be NULL, or `columns` further columns of `turned_rows` values that are rotated likewise. */
void sk_svd_columns(double *matrix, int rows, int columns, double *values, double *turned, int turned_rows);

#endif
