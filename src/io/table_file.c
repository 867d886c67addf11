#include "io/table_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "io/atomic_file.h"
#include "io/folder.h"
#include "io/number.h"

enum { max_columns = 4096 };

struct sk_table_writer {
    char *path;
    int descriptor;
    int column_count;
    char *line; /* room for one row */
};

static selkie_code fail(const char *path, const char *action, int reason, selkie_error *error)
{
    char buffer[128];
    return sk_fail(error, reason == ENOMEM ? SELKIE_ERROR_MEMORY : SELKIE_ERROR_FILE, "%s: cannot %s: %s", path, action,
                   sk_file_reason(reason, buffer, sizeof buffer));
}

/* --- The header --- */

/* The header line with its line end, to be freed; NULL if there is no memory. */
static char *header_line(int column_count, const char *const *names)
{
    size_t size = 2;
    for (int c = 0; c < column_count; c++)
        size += 2 * strlen(names[c]) + 3;
    char *line = malloc(size), *to = line;
    if (!line)
        return NULL;
    for (int c = 0; c < column_count; c++) {
        int quoted = strpbrk(names[c], ",\"\r\n") != NULL || names[c][0] == '#';
        if (c > 0)
            *to++ = ',';
        if (quoted)
            *to++ = '"';
        for (const char *from = names[c]; *from; from++) {
            if (*from == '"')
                *to++ = '"';
            *to++ = *from;
        }
        if (quoted)
            *to++ = '"';
    }
    *to++ = '\n';
    *to = '\0';
    return line;
}

/* One field at `text`: copies it without its quotes to `out` (if given) and returns where it ends: at a comma, a line
 * end or `limit`. NULL for a quote that never closes or is followed by something else. */
static const char *scan_field(const char *text, const char *limit, char *out)
{
    if (text < limit && *text == '"') {
        for (text++; text < limit; text++) {
            if (*text == '"' && text + 1 < limit && text[1] == '"')
                text++;
            else if (*text == '"')
                break;
            if (out)
                *out++ = *text;
        }
        if (text >= limit)
            return NULL;
        text++;
        if (text < limit && *text != ',' && *text != '\n' && *text != '\r')
            return NULL;
    } else {
        for (; text < limit && *text != ',' && *text != '\n' && *text != '\r'; text++)
            if (out)
                *out++ = *text;
    }
    if (out)
        *out = '\0';
    return text;
}

/* Past the line end at `text`, which is one or the limit. */
static const char *skip_line_end(const char *text, const char *limit)
{
    if (text < limit && *text == '\r')
        text++;
    if (text < limit && *text == '\n')
        text++;
    return text;
}

static const char *line_end(const char *text, const char *limit)
{
    const char *end = memchr(text, '\n', (size_t)(limit - text));
    return end ? end : limit;
}

/* --- Writing --- */

static selkie_code open_writer(const char *path, int column_count, sk_table_writer **result, selkie_error *error)
{
    sk_table_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return fail(path, "write", ENOMEM, error);
    writer->column_count = column_count;
    writer->path = strdup(path);
    writer->line = malloc((size_t)column_count * SK_NUMBER_LENGTH + 1);
    writer->descriptor = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (!writer->path || !writer->line || writer->descriptor < 0) {
        int reason = writer->descriptor < 0 ? errno : ENOMEM;
        if (writer->descriptor >= 0)
            close(writer->descriptor);
        free(writer->path);
        free(writer->line);
        free(writer);
        return fail(path, "write", reason, error);
    }
    *result = writer;
    return SELKIE_OK;
}

static selkie_code check_columns(const char *path, int column_count, selkie_error *error)
{
    if (column_count < 1 || column_count > max_columns)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: %d columns; a table has 1 to %d", path, column_count,
                       max_columns);
    return SELKIE_OK;
}

selkie_code sk_table_create(const char *path, int column_count, const char *const *names, sk_table_writer **writer,
                            selkie_error *error)
{
    *writer = NULL;
    SK_TRY(check_columns(path, column_count, error));
    char *header = header_line(column_count, names);
    if (!header)
        return fail(path, "write", ENOMEM, error);
    selkie_code code = sk_file_write(path, header, strlen(header), error);
    free(header);
    return code == SELKIE_OK ? open_writer(path, column_count, writer, error) : code;
}

/* Cuts off a row that was written in part, so that the file stays a table. */
static int write_line(int descriptor, const char *line, size_t bytes)
{
    off_t start = lseek(descriptor, 0, SEEK_END);
    size_t done = 0;
    while (done < bytes) {
        ssize_t written = write(descriptor, line + done, bytes - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            int reason = written < 0 ? errno : EIO;
            if (start >= 0 && done > 0)
                (void)!ftruncate(descriptor, start);
            return reason;
        }
        done += (size_t)written;
    }
    return 0;
}

selkie_code sk_table_row(sk_table_writer *writer, const double *values, selkie_error *error)
{
    sk_number_scope scope;
    SK_TRY(sk_number_begin(&scope, error));
    char *to = writer->line;
    for (int c = 0; c < writer->column_count; c++) {
        if (c > 0)
            *to++ = ',';
        to += sk_number_format(values[c], to);
    }
    *to++ = '\n';
    sk_number_end(&scope);
    int reason = write_line(writer->descriptor, writer->line, (size_t)(to - writer->line));
    return reason == 0 ? SELKIE_OK : fail(writer->path, "write", reason, error);
}

selkie_code sk_table_close(sk_table_writer **pointer, selkie_error *error)
{
    sk_table_writer *writer = *pointer;
    *pointer = NULL;
    if (!writer)
        return SELKIE_OK;
    int reason = fsync(writer->descriptor) != 0 && errno != EINVAL && errno != ENOTSUP ? errno : 0;
    if (close(writer->descriptor) != 0 && reason == 0)
        reason = errno;
    selkie_code code = reason == 0 ? SELKIE_OK : fail(writer->path, "write", reason, error);
    free(writer->path);
    free(writer->line);
    free(writer);
    return code;
}

/* --- Resuming --- */

/* The value of column `step_column` if the line text .. end is a row of `column_count` numbers; 0 if it is not. */
static int row_step(const char *text, const char *end, int column_count, int step_column, double *step)
{
    if (end > text && end[-1] == '\r')
        end--;
    for (int c = 0; c < column_count; c++) {
        const char *field_end = memchr(text, ',', (size_t)(end - text));
        if ((field_end != NULL) != (c + 1 < column_count))
            return 0;
        if (!field_end)
            field_end = end;
        double value = NAN;
        if (field_end > text && sk_number_parse(text, field_end, &value) != field_end)
            return 0;
        if (c == step_column)
            *step = value;
        text = field_end + 1;
    }
    return *step == *step;
}

/* A table on the disk that a run continues. */
typedef struct old_table {
    const char *path;
    const char *header; /* its first line, with the line end */
    int column_count;
    int step_column;   /* of these the one named "step" */
    int64_t last_step; /* rows beyond it are dropped */
    char *data;        /* [bytes] the file */
    size_t bytes;
} old_table;

/* Copies header and good rows to `kept` (as large as the table). A killed run or a power cut damages only the end. A
 * bad line before rows that are still needed is an error: another program has changed the table. */
static selkie_code keep_rows(const old_table *table, char *kept, size_t *kept_bytes, selkie_error *error)
{
    const char *limit = table->data + table->bytes;
    size_t length = strlen(table->header);
    memcpy(kept, table->data, length);
    int64_t line = 1, bad_line = 0;
    for (const char *text = table->data + length; text < limit;) {
        const char *end = line_end(text, limit);
        line++;
        double step = NAN;
        if (end == limit || !row_step(text, end, table->column_count, table->step_column, &step)) {
            bad_line = bad_line ? bad_line : line;
        } else if (step <= (double)table->last_step) {
            if (bad_line)
                return sk_fail(
                    error, SELKIE_ERROR_FORMAT,
                    "%s: line %lld is not a row of %d numbers, so the run cannot be resumed with this table; repair it "
                    "or move it away",
                    table->path, (long long)bad_line, table->column_count);
            memcpy(kept + length, text, (size_t)(end + 1 - text));
            length += (size_t)(end + 1 - text);
        }
        text = end + 1;
    }
    *kept_bytes = length;
    return SELKIE_OK;
}

/* Reads the file and writes it without the rows to drop. */
static selkie_code trim(old_table *table, selkie_error *error)
{
    char *kept = NULL;
    size_t kept_bytes = 0, header_bytes = strlen(table->header);
    SK_TRY(sk_file_read(table->path, &table->data, &table->bytes, error));
    const char *path = table->path, *header = table->header, *data = table->data;
    size_t bytes = table->bytes;
    selkie_code code = SELKIE_OK;
    if (bytes < header_bytes && memcmp(data, header, bytes) == 0) {
        code = sk_file_write(path, header, header_bytes, error); /* killed while the header was written */
    } else if (bytes < header_bytes || memcmp(data, header, header_bytes) != 0) {
        code = sk_fail(
            error, SELKIE_ERROR_FORMAT,
            "%s: its columns are not those of this run (%d columns from '%.*s'), so the run cannot be resumed with "
            "it; move it away",
            path, table->column_count, (int)(header_bytes - 1 < 40 ? header_bytes - 1 : 40), header);
    } else if (!(kept = malloc(bytes))) {
        code = fail(path, "read", ENOMEM, error);
    } else {
        code = keep_rows(table, kept, &kept_bytes, error);
        if (code == SELKIE_OK && kept_bytes != bytes)
            code = sk_file_write(path, kept, kept_bytes, error);
    }
    free(kept);
    sk_release(NULL, table->data);
    return code;
}

selkie_code sk_table_resume(const char *path, int column_count, const char *const *names, int64_t last_step,
                            sk_table_writer **writer, selkie_error *error)
{
    *writer = NULL;
    SK_TRY(check_columns(path, column_count, error));
    old_table table = {.path = path, .column_count = column_count, .step_column = -1, .last_step = last_step};
    for (int c = 0; c < column_count; c++)
        if (strcmp(names[c], "step") == 0)
            table.step_column = c;
    if (table.step_column < 0)
        return sk_fail(error, SELKIE_ERROR_INTERNAL, "%s: a table needs a column 'step' to be resumed", path);
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return sk_table_create(path, column_count, names, writer, error);

    /* Old rows are parsed and dropped in the number format of files. */
    char *header = header_line(column_count, names);
    if (!header)
        return fail(path, "write", ENOMEM, error);
    sk_number_scope scope;
    selkie_code code = sk_number_begin(&scope, error);
    if (code == SELKIE_OK) {
        table.header = header;
        code = trim(&table, error);
        sk_number_end(&scope);
    }
    free(header);
    return code == SELKIE_OK ? open_writer(path, column_count, writer, error) : code;
}

/* --- Reading --- */

static selkie_code read_names(const char **cursor, const char *limit, const char *name, sk_table *table,
                              selkie_error *error)
{
    const char *text = *cursor;
    /* A byte order mark, as spreadsheets write it. Comments and empty lines. */
    if (limit - text >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3;
    while (text < limit && (*text == '#' || *text == '\n' || *text == '\r'))
        text = skip_line_end(line_end(text, limit), limit);
    if (text >= limit)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: an empty table: no line of column names", name);

    /* The names, separated by commas. */
    table->names = calloc(max_columns, sizeof *table->names);
    if (!table->names)
        return fail(name, "read", ENOMEM, error);
    for (;;) {
        if (table->column_count == max_columns)
            return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: more than %d columns", name, max_columns);
        const char *end = scan_field(text, limit, NULL);
        if (!end)
            return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: column %d: its name has an open quote", name,
                           table->column_count + 1);
        char *copy = malloc((size_t)(end - text) + 1);
        if (!copy)
            return fail(name, "read", ENOMEM, error);
        scan_field(text, limit, copy);
        table->names[table->column_count++] = copy;
        text = end;
        if (text >= limit || *text != ',')
            break;
        text++;
    }
    *cursor = skip_line_end(text, limit);
    return SELKIE_OK;
}

static int is_data_line(const char *text, const char *end)
{
    return text < end && *text != '#' && *text != '\r';
}

/* Values of one line into row `row`; 0 if it is not complete (fields missing), -1 on an error. */
static int read_row(const char *text, const char *end, sk_table *table, int64_t row, int64_t line, const char *name,
                    selkie_error *error)
{
    const char *start = text;
    if (end > text && end[-1] == '\r')
        end--;
    for (int c = 0; c < table->column_count; c++) {
        while (text < end && (*text == ' ' || *text == '\t'))
            text++;

        /* The number; an empty field is NaN. */
        double value = NAN;
        const char *after = text;
        if (text < end && *text != ',') {
            after = sk_number_parse(text, end, &value);
            if (!after) {
                sk_fail(error, SELKIE_ERROR_FORMAT, "%s: line %lld: column '%.60s': '%.*s' is not a number", name,
                        (long long)line, table->names[c], (int)(end - text < 20 ? end - text : 20), text);
                return -1;
            }
        }
        while (after < end && (*after == ' ' || *after == '\t'))
            after++;
        table->columns[c][row] = value;

        /* A comma, or the end of the line after the last column. */
        int last = c + 1 == table->column_count;
        if (after < end && *after == ',' && !last) {
            text = after + 1;
            continue;
        }
        if (after == end && last)
            return 1;
        if (after == end)
            return 0;
        sk_fail(error, SELKIE_ERROR_FORMAT, "%s: line %lld: '%.*s' where %s was expected", name, (long long)line,
                (int)(end - start < 40 ? end - start : 40), start, last ? "the end of the line" : "a comma");
        return -1;
    }
    return 1;
}

static selkie_code read_rows(const char *text, const char *limit, int64_t line, const char *name, sk_table *table,
                             selkie_error *error)
{
    int64_t rows = 0;
    for (const char *at = text; at < limit; at = line_end(at, limit) + 1)
        rows += is_data_line(at, line_end(at, limit));
    table->columns = calloc((size_t)table->column_count, sizeof *table->columns);
    if (!table->columns)
        return fail(name, "read", ENOMEM, error);

    /* Memory in proportion to the file: a row takes at least one byte a column. Without this limit a file of empty
     * lines below thousands of names would need far more. */
    if (rows > 0 && (limit - text) / rows < table->column_count - 1)
        rows = (limit - text) / (table->column_count > 1 ? table->column_count - 1 : 1) + 1;
    for (int c = 0; c < table->column_count; c++)
        if (!(table->columns[c] = malloc((size_t)(rows > 0 ? rows : 1) * sizeof **table->columns)))
            return fail(name, "read", ENOMEM, error);

    /* Values, line by line. */
    for (const char *at = text; at < limit; line++) {
        const char *end = line_end(at, limit);
        if (is_data_line(at, end)) {
            if (table->row_count >= rows)
                return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: line %lld: fewer fields than the %d columns", name,
                               (long long)line, table->column_count);
            int complete = read_row(at, end, table, table->row_count, line, name, end == limit ? NULL : error);
            if (complete < 1 && end == limit)
                return SELKIE_OK; /* the row that a run is writing, or was when it was killed */
            if (complete < 0)
                return SELKIE_ERROR_FORMAT;
            if (complete == 0)
                return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: line %lld: fewer fields than the %d columns", name,
                               (long long)line, table->column_count);
            table->row_count++;
        }
        at = end + 1;
    }
    return SELKIE_OK;
}

selkie_code sk_table_parse(const char *data, size_t bytes, const char *name, sk_table **result, selkie_error *error)
{
    *result = NULL;
    sk_table *table = calloc(1, sizeof *table);
    if (!table)
        return fail(name, "read", ENOMEM, error);
    sk_number_scope scope;
    selkie_code code = sk_number_begin(&scope, error);
    if (code == SELKIE_OK) {
        const char *cursor = data;
        code = read_names(&cursor, data + bytes, name, table, error);
        int64_t line = 1;
        for (const char *at = data; at < cursor; at++)
            line += *at == '\n';
        if (code == SELKIE_OK)
            code = read_rows(cursor, data + bytes, line, name, table, error);
        sk_number_end(&scope);
    }
    if (code != SELKIE_OK) {
        sk_table_free(table);
        return code;
    }
    *result = table;
    return SELKIE_OK;
}

selkie_code sk_table_read(const char *path, sk_table **table, selkie_error *error)
{
    *table = NULL;
    char *data;
    size_t bytes;
    SK_TRY(sk_file_read(path, &data, &bytes, error));
    selkie_code code = sk_table_parse(data, bytes, path, table, error);
    sk_release(NULL, data);
    return code;
}

const double *sk_table_column(const sk_table *table, const char *name)
{
    for (int c = 0; c < table->column_count; c++)
        if (strcmp(table->names[c], name) == 0)
            return table->columns[c];
    return NULL;
}

void sk_table_free(sk_table *table)
{
    if (!table)
        return;
    for (int c = 0; c < table->column_count; c++) {
        free(table->names[c]);
        if (table->columns)
            free(table->columns[c]);
    }
    free(table->names);
    free(table->columns);
    free(table);
}
