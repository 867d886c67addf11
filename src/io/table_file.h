/* Tables of numbers as CSV: stats.csv and probes.csv.
 *
 * A row goes to the file in one write as soon as it is complete: a program that follows a run reads whole lines, and a
 * killed run loses at most one row. A row that does not fit on the disk is removed again.
 *
 * Whole numbers are written in full, others with nine digits, "nan" and "inf" as such; a column name with a comma, a
 * quote or a line end is quoted (RFC 4180).
 */
#ifndef SK_IO_TABLE_FILE_H
#define SK_IO_TABLE_FILE_H

#include <stddef.h>
#include <stdint.h>
#include "base/status.h"

typedef struct sk_table_writer sk_table_writer;

/* Starts a table with its header; replaces what was there, atomically. */
selkie_code sk_table_create(const char *path, int column_count, const char *const *names, sk_table_writer **writer,
                            selkie_error *error);

/* Continues a table from a checkpoint: rows whose column "step" is beyond `last_step`, and a last line without its
 * end, are dropped (the rest is rewritten atomically); a missing table is started. The header must be the same. */
selkie_code sk_table_resume(const char *path, int column_count, const char *const *names, int64_t last_step,
                            sk_table_writer **writer, selkie_error *error);

/* One value a column. */
selkie_code sk_table_row(sk_table_writer *writer, const double *values, selkie_error *error);

/* Flushes the table to the disk; *writer becomes NULL in any case. Accepts NULL. */
selkie_code sk_table_close(sk_table_writer **writer, selkie_error *error);

typedef struct sk_table {
    int column_count;
    char **names; /* [column_count] */
    int64_t row_count;
    double **columns; /* [column_count][row_count]; an empty field is NaN */
} sk_table;

/* Empty lines and lines that start with # are skipped; a last line that is not complete is dropped. */
selkie_code sk_table_read(const char *path, sk_table **table, selkie_error *error);
/* The same from memory; data[bytes] must be readable and '\0'. `name` is for messages. */
selkie_code sk_table_parse(const char *data, size_t bytes, const char *name, sk_table **table, selkie_error *error);
/* NULL if there is none of this name. */
const double *sk_table_column(const sk_table *table, const char *name);
void sk_table_free(sk_table *table);

#endif
