/* Tables of numbers in text files: one line of names, then a line of numbers for each row, separated by commas. */
#ifndef SK_BASE_CSV_H
#define SK_BASE_CSV_H

#include <stddef.h>
#include "base/status.h"

enum { SK_CSV_MAX_COLUMNS = 32 };

typedef struct sk_csv {
    int column_count;
    char names[SK_CSV_MAX_COLUMNS][32];
    size_t row_count;
    double *values; /* [row_count][column_count] */
} sk_csv;

/* Reads a table. `folder` (may be NULL) is where a relative `name` starts. Empty lines and lines that begin with # are
 * skipped. Messages begin with `what`, which names the key and the file. */
selkie_code sk_csv_read(const char *folder, const char *name, const char *what, sk_csv *table, selkie_error *error);
void sk_csv_free(sk_csv *table);
/* The column with this name; -1 = none. */
int sk_csv_column(const sk_csv *table, const char *name);

#endif
