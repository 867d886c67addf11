#define _GNU_SOURCE
#include "base/csv.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t file_limit = (size_t)1 << 30; /* bytes */

/* The whole file as a string. */
static selkie_code load(const char *path, const char *what, char **text, selkie_error *error)
{
    FILE *file = fopen(path, "rb");
    size_t length = 0, capacity = 0;
    *text = NULL;
    if (!file)
        return sk_fail(error, SELKIE_ERROR_FILE, "%s: cannot be opened (%.300s): %s", what, path, strerror(errno));
    selkie_code code = SELKIE_OK;
    for (int more = 1; more && !code;) {
        if (length + 1 >= capacity) {
            capacity = capacity ? 2 * capacity : 65536;
            char *larger = capacity <= file_limit ? realloc(*text, capacity) : NULL;
            if (!larger) {
                code = sk_fail(error, SELKIE_ERROR_MEMORY, "%s: is too large (%.300s)", what, path);
                break;
            }
            *text = larger;
        }
        size_t got = fread(*text + length, 1, capacity - length - 1, file);
        length += got;
        more = got > 0;
    }
    if (!code && ferror(file))
        code = sk_fail(error, SELKIE_ERROR_FILE, "%s: cannot be read (%.300s)", what, path);
    fclose(file);
    if (code) {
        free(*text);
        *text = NULL;
        return code;
    }
    (*text)[length] = 0;
    return SELKIE_OK;
}

/* The next line that has something in it, without its end; NULL after the last. */
static char *next_line(char **at, int *number)
{
    while (**at) {
        char *line = *at, *end = line + strcspn(line, "\n");
        *at = *end ? end + 1 : end;
        *end = 0;
        ++*number;
        while (isspace((unsigned char)*line))
            line++;
        if (*line && *line != '#')
            return line;
    }
    return NULL;
}

static selkie_code read_names(char *line, const char *what, sk_csv *table, selkie_error *error)
{
    for (char *at = line; at;) {
        char *end = at + strcspn(at, ","), *next = *end ? end + 1 : NULL;
        while (isspace((unsigned char)*at))
            at++;
        while (end > at && isspace((unsigned char)end[-1]))
            end--;
        if (table->column_count == SK_CSV_MAX_COLUMNS || end == at || (size_t)(end - at) >= sizeof *table->names)
            return sk_fail(error, SELKIE_ERROR_FORMAT,
                           "%s: line 1 must have at most %d names of columns, separated by commas", what,
                           SK_CSV_MAX_COLUMNS);
        memcpy(table->names[table->column_count++], at, (size_t)(end - at));
        at = next;
    }
    return SELKIE_OK;
}

static selkie_code read_row(const char *line, int number, const char *what, locale_t plain, const sk_csv *table,
                            double *row, selkie_error *error)
{
    const char *start = line;
    for (int c = 0; c < table->column_count; c++) {
        char *end;
        row[c] = strtod_l(line, &end, plain);
        if (end == line || !isfinite(row[c]))
            return sk_fail(error, SELKIE_ERROR_FORMAT,
                           "%s: line %d: \"%.*s\" in the column \"%s\" must be a finite number", what, number,
                           (int)strcspn(line, ",\r"), line, table->names[c]);
        while (isspace((unsigned char)*end))
            end++;
        const int last = c + 1 == table->column_count;
        if (last ? *end != 0 : *end != ',')
            return sk_fail(error, SELKIE_ERROR_FORMAT,
                           "%s: line %d: \"%.40s\": a line must have %d numbers, separated by commas", what, number,
                           start, table->column_count);
        line = end + 1;
    }
    return SELKIE_OK;
}

static selkie_code parse(char *text, const char *what, sk_csv *table, selkie_error *error)
{
    int number = 0;
    size_t capacity = 0;
    /* Spreadsheets begin a file with a byte order mark. */
    char *at = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text, *line = next_line(&at, &number);
    if (!line || isdigit((unsigned char)*line) || *line == '-')
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: must begin with a line of names of columns", what);
    SK_TRY(read_names(line, what, table, error));
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", NULL);
    selkie_code code = SELKIE_OK;
    while (!code && (line = next_line(&at, &number))) {
        if (table->row_count == capacity) {
            capacity = capacity ? 2 * capacity : 1024;
            double *larger = realloc(table->values, capacity * (size_t)table->column_count * sizeof *larger);
            if (!larger) {
                code = sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for its numbers", what);
                break;
            }
            table->values = larger;
        }
        code = read_row(line, number, what, plain, table,
                        table->values + table->row_count++ * (size_t)table->column_count, error);
    }
    freelocale(plain);
    if (!code && !table->row_count)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: has no numbers: a line for each row must follow the names",
                       what);
    return code;
}

selkie_code sk_csv_read(const char *folder, const char *name, const char *what, sk_csv *table, selkie_error *error)
{
    char path[4096], *text;
    memset(table, 0, sizeof *table);
    const int relative = *name != '/' && folder && *folder;
    if (snprintf(path, sizeof path, "%s%s%s", relative ? folder : "", relative ? "/" : "", name) >= (int)sizeof path)
        return sk_fail(error, SELKIE_ERROR_FILE, "%s: the name of the file is too long", what);
    SK_TRY(load(path, what, &text, error));
    selkie_code code = parse(text, what, table, error);
    free(text);
    if (code)
        sk_csv_free(table);
    return code;
}

void sk_csv_free(sk_csv *table)
{
    free(table->values);
    memset(table, 0, sizeof *table);
}

int sk_csv_column(const sk_csv *table, const char *name)
{
    for (int c = 0; c < table->column_count; c++)
        if (strcmp(table->names[c], name) == 0)
            return c;
    return -1;
}
