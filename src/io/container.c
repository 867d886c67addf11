#include "io/container.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/memory.h"
#include "io/atomic_file.h"

/* Pieces are small enough to stay in the cache between checksum and write, and large enough that combining their
 * checksums costs little. */
enum { alignment = 64, piece_bytes = 4 << 20 };

static const unsigned char magic_bytes[8] = {0x89, 'S', 'L', 'K', '\r', '\n', 0x1a, '\n'};
static const uint32_t byte_order_mark = 0x01020304;

typedef struct file_header {
    unsigned char magic[8];
    uint32_t byte_order;
    uint32_t version;
    uint32_t chunk_count;
    uint32_t checksum;
    uint64_t file_bytes;
} file_header;

typedef struct table_row {
    char name[24];
    uint64_t offset;
    uint64_t bytes;
    uint32_t checksum;
    uint32_t zero;
} table_row;

_Static_assert(sizeof(file_header) == 32 && sizeof(table_row) == 48, "the layout on disk has no gaps");

struct sk_container {
    int count;
    int owns_data; /* each chunk's data is an allocation of its own */
    table_row *rows;
    sk_chunk *chunks;
};

static uint64_t align_up(uint64_t offset)
{
    return (offset + alignment - 1) / alignment * alignment;
}

static uint32_t header_checksum(const file_header *header, const table_row *rows)
{
    file_header bare = *header;
    bare.checksum = 0;
    uLong checksum = crc32(0, (const Bytef *)&bare, sizeof bare);
    if (header->chunk_count > 0) /* for a NULL buffer zlib returns the start value */
        checksum = crc32(checksum, (const Bytef *)rows, (uInt)(header->chunk_count * sizeof *rows));
    return (uint32_t)checksum;
}

/* --- Pieces --- */

/* A part of a chunk. Threads share one list of pieces, so chunks of any size balance. */
typedef struct piece {
    int chunk;
    uint32_t checksum;
    uint64_t start; /* bytes into the chunk */
    size_t bytes;
} piece;

static piece *cut_pieces(int count, const uint64_t *sizes, int64_t *piece_count)
{
    int64_t total = 0;
    for (int c = 0; c < count; c++)
        total += (int64_t)((sizes[c] + piece_bytes - 1) / piece_bytes);
    piece *pieces = malloc((size_t)(total > 0 ? total : 1) * sizeof *pieces);
    if (!pieces)
        return NULL;
    int64_t next = 0;
    for (int c = 0; c < count; c++)
        for (uint64_t start = 0; start < sizes[c]; start += piece_bytes) {
            uint64_t left = sizes[c] - start;
            pieces[next++] = (piece){c, 0, start, (size_t)(left < piece_bytes ? left : piece_bytes)};
        }
    *piece_count = total;
    return pieces;
}

/* The checksum of each chunk from those of its pieces, which lie in order. */
static void combine_pieces(int count, uint32_t *checksums, const piece *pieces, int64_t piece_count)
{
    for (int c = 0; c < count; c++)
        checksums[c] = (uint32_t)crc32(0, Z_NULL, 0);
    for (int64_t p = 0; p < piece_count; p++)
        checksums[pieces[p].chunk] =
            (uint32_t)crc32_combine(checksums[pieces[p].chunk], pieces[p].checksum, (z_off_t)pieces[p].bytes);
}

static uint32_t piece_checksum(const void *data, size_t bytes)
{
    return (uint32_t)crc32(crc32(0, Z_NULL, 0), data, (uInt)bytes);
}

uint32_t sk_checksum(const void *data, uint64_t bytes)
{
    int64_t piece_count = (int64_t)((bytes + piece_bytes - 1) / piece_bytes);
    uint32_t result = (uint32_t)crc32(0, Z_NULL, 0);
    /* Rounds of a fixed number of pieces need no memory and give the same result on any number of threads. */
    enum { round_pieces = 256 };
    uint32_t sums[round_pieces];
    for (int64_t first = 0; first < piece_count; first += round_pieces) {
        int64_t in_round = piece_count - first < round_pieces ? piece_count - first : round_pieces;
#pragma omp parallel for schedule(dynamic, 1) if (in_round > 1)
        for (int64_t p = 0; p < in_round; p++) {
            uint64_t start = (uint64_t)(first + p) * piece_bytes;
            uint64_t left = bytes - start;
            sums[p] = piece_checksum((const char *)data + start, (size_t)(left < piece_bytes ? left : piece_bytes));
        }
        for (int64_t p = 0; p < in_round; p++) {
            uint64_t left = bytes - (uint64_t)(first + p) * piece_bytes;
            result = (uint32_t)crc32_combine(result, sums[p], (z_off_t)(left < piece_bytes ? left : piece_bytes));
        }
    }
    return result;
}

/* --- Writing --- */

static selkie_code check_names(const char *path, int count, const sk_chunk *chunks, selkie_error *error)
{
    if (count < 0 || count > SK_CONTAINER_MAX_CHUNKS)
        return sk_fail(error, SELKIE_ERROR_INTERNAL, "%s: %d chunks; 0 to %d can be written", path, count,
                       SK_CONTAINER_MAX_CHUNKS);
    for (int c = 0; c < count; c++) {
        size_t length = strnlen(chunks[c].name, sizeof chunks[c].name);
        if (length == 0 || length == sizeof chunks[c].name)
            return sk_fail(error, SELKIE_ERROR_INTERNAL, "%s: chunk %d: its name must have 1 to 23 characters", path,
                           c);
        if (chunks[c].bytes > 0 && !chunks[c].data)
            return sk_fail(error, SELKIE_ERROR_INTERNAL, "%s: chunk '%s' has no data", path, chunks[c].name);
        for (int other = 0; other < c; other++)
            if (strcmp(chunks[c].name, chunks[other].name) == 0)
                return sk_fail(error, SELKIE_ERROR_INTERNAL, "%s: two chunks named '%s'", path, chunks[c].name);
    }
    return SELKIE_OK;
}

/* Checksums and writes every piece; returns 0 or the errno of a piece that failed. */
static int write_pieces(sk_atomic_file *file, const sk_chunk *chunks, const table_row *rows, piece *pieces,
                        int64_t piece_count)
{
    int reason = 0;
#pragma omp parallel for schedule(dynamic, 1) if (piece_count > 1)
    for (int64_t p = 0; p < piece_count; p++) {
        int seen;
#pragma omp atomic read
        seen = reason;
        if (seen != 0)
            continue;
        const char *data = (const char *)chunks[pieces[p].chunk].data + pieces[p].start;
        pieces[p].checksum = piece_checksum(data, pieces[p].bytes);
        int failed = sk_atomic_write_at(file, rows[pieces[p].chunk].offset + pieces[p].start, data, pieces[p].bytes);
        if (failed != 0) {
#pragma omp atomic write
            reason = failed;
        }
    }
    return reason;
}

/* A file in the making. */
typedef struct writing {
    const sk_chunk *chunks; /* [count] */
    file_header header;
    table_row *rows;     /* [count] */
    uint32_t *checksums; /* [count] */
    piece *pieces;       /* [piece_count] */
    int64_t piece_count;
} writing;

/* Padding is not written: a gap in a file reads as zeros. */
static selkie_code write_all(sk_atomic_file *file, writing *w, selkie_error *error)
{
    file_header *header = &w->header;
    table_row *rows = w->rows;
    int count = (int)header->chunk_count;

    /* Data first: the table holds its checksums. */
    int reason = write_pieces(file, w->chunks, rows, w->pieces, w->piece_count);
    if (reason != 0)
        return sk_atomic_fail(file, reason, error);
    combine_pieces(count, w->checksums, w->pieces, w->piece_count);
    for (int c = 0; c < count; c++)
        rows[c].checksum = w->checksums[c];
    header->checksum = header_checksum(header, rows);
    SK_TRY(sk_atomic_write(file, header, sizeof *header, error));
    SK_TRY(sk_atomic_write(file, rows, (size_t)count * sizeof *rows, error));

    /* Empty chunks at the end may leave padding that no write has reached. */
    uint64_t reached = sk_atomic_position(file);
    for (int c = 0; c < count; c++)
        reached = rows[c].bytes > 0 ? rows[c].offset + rows[c].bytes : reached;
    if (reached < header->file_bytes) {
        reason = sk_atomic_write_at(file, header->file_bytes - 1, "", 1);
        if (reason != 0)
            return sk_atomic_fail(file, reason, error);
    }
    return SELKIE_OK;
}

selkie_code sk_container_write(const char *path, int count, const sk_chunk *chunks, selkie_error *error)
{
    SK_TRY(check_names(path, count, chunks, error));
    writing w = {
        .chunks = chunks,
        .header = {.byte_order = byte_order_mark, .version = SK_CONTAINER_VERSION, .chunk_count = (uint32_t)count},
        .rows = calloc((size_t)count + 1, sizeof *w.rows),
        .checksums = calloc((size_t)count + 1, sizeof *w.checksums)};
    uint64_t *sizes = calloc((size_t)count + 1, sizeof *sizes);

    /* Place of each chunk. */
    memcpy(w.header.magic, magic_bytes, sizeof w.header.magic);
    w.header.file_bytes = sizeof w.header + (uint64_t)count * sizeof *w.rows;
    for (int c = 0; w.rows && sizes && c < count; c++) {
        memcpy(w.rows[c].name, chunks[c].name, strlen(chunks[c].name));
        w.rows[c].offset = align_up(w.header.file_bytes);
        w.rows[c].bytes = sizes[c] = chunks[c].bytes;
        w.header.file_bytes = w.rows[c].offset + w.rows[c].bytes;
    }
    if (w.rows && sizes)
        w.pieces = cut_pieces(count, sizes, &w.piece_count);

    /* The file. */
    selkie_code code;
    if (!w.rows || !sizes || !w.checksums || !w.pieces) {
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "%s: cannot write: out of memory", path);
    } else {
        sk_atomic_file *file;
        code = sk_atomic_open(path, w.header.file_bytes, &file, error);
        if (code == SELKIE_OK) {
            code = write_all(file, &w, error);
            code = sk_atomic_finish(&file, code, error);
        }
    }
    free(w.rows);
    free(sizes);
    free(w.checksums);
    free(w.pieces);
    return code;
}

/* --- Reading --- */

/* The source of the bytes: a file, or memory. */
typedef struct source {
    const char *name;
    const char *memory; /* NULL: a file */
    int descriptor;
    uint64_t bytes;
} source;

/* 0, an errno, or -1 if the file ends too early. */
static int read_at(const source *from, uint64_t offset, void *data, size_t bytes)
{
    if (offset > from->bytes || bytes > from->bytes - offset)
        return -1;
    if (from->memory) {
        if (bytes > 0)
            memcpy(data, from->memory + offset, bytes);
        return 0;
    }
    char *to = data;
    while (bytes > 0) {
        ssize_t got = pread(from->descriptor, to, bytes, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno;
        if (got == 0)
            return -1;
        to += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return 0;
}

static selkie_code fail_read(const source *from, int reason, selkie_error *error)
{
    char buffer[128];
    if (reason < 0)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: damaged: it ends too early, at %llu bytes", from->name,
                       (unsigned long long)from->bytes);
    return sk_fail(error, SELKIE_ERROR_FILE, "%s: cannot read: %s", from->name,
                   sk_file_reason(reason, buffer, sizeof buffer));
}

static selkie_code read_header(const source *from, file_header *header, selkie_error *error)
{
    int reason = from->bytes < sizeof *header ? -1 : read_at(from, 0, header, sizeof *header);
    if (reason != 0)
        return fail_read(from, reason, error);
    if (memcmp(header->magic, magic_bytes, sizeof magic_bytes) != 0)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: not a checkpoint of Selkie (wrong first bytes)", from->name);
    if (header->byte_order != byte_order_mark)
        return sk_fail(error, SELKIE_ERROR_FORMAT,
                       "%s: damaged, or written on a machine of the other byte order; resume it there", from->name);
    if (header->version != SK_CONTAINER_VERSION)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: container version %u, but this build reads version %d",
                       from->name, header->version, SK_CONTAINER_VERSION);
    if (header->file_bytes != from->bytes)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: damaged: %llu bytes long, but its header says %llu", from->name,
                       (unsigned long long)from->bytes, (unsigned long long)header->file_bytes);
    if (header->chunk_count > SK_CONTAINER_MAX_CHUNKS ||
        header->chunk_count > (from->bytes - sizeof *header) / sizeof(table_row))
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: damaged: a table of %u chunks", from->name,
                       header->chunk_count);
    return SELKIE_OK;
}

static int zeros_between(const source *from, uint64_t start, uint64_t end)
{
    char gap[alignment];
    if (end < start || end - start >= alignment || read_at(from, start, gap, (size_t)(end - start)) != 0)
        return 0;
    for (uint64_t i = 0; i < end - start; i++)
        if (gap[i] != 0)
            return 0;
    return 1;
}

/* Names, places and padding; after this every row can be trusted. */
static selkie_code check_table(const source *from, const file_header *header, const table_row *rows,
                               selkie_error *error)
{
    if (header_checksum(header, rows) != header->checksum)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: damaged: the checksum of its header is wrong", from->name);
    uint64_t end = sizeof *header + (uint64_t)header->chunk_count * sizeof *rows;
    for (uint32_t c = 0; c < header->chunk_count; c++) {
        const table_row *row = &rows[c];
        size_t length = strnlen(row->name, sizeof row->name);
        int name_is_good = length > 0 && length < sizeof row->name;
        for (size_t i = length; i < sizeof row->name; i++)
            name_is_good = name_is_good && row->name[i] == 0;
        for (uint32_t other = 0; other < c && name_is_good; other++)
            name_is_good = strcmp(row->name, rows[other].name) != 0;
        if (!name_is_good)
            return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: damaged: the name of chunk %u", from->name, c);
        if (row->zero != 0 || row->offset != align_up(end) || row->offset > from->bytes ||
            row->bytes > from->bytes - row->offset || !zeros_between(from, end, row->offset))
            return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: damaged: the place of chunk '%s'", from->name, row->name);
        end = row->offset + row->bytes;
    }
    if (end != from->bytes)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: damaged: %llu bytes behind the last chunk", from->name,
                       (unsigned long long)(from->bytes - end));
    return SELKIE_OK;
}

static selkie_code check_sums(const source *from, const sk_container *container, const uint32_t *checksums,
                              selkie_error *error)
{
    for (int c = 0; c < container->count; c++)
        if (checksums[c] != container->rows[c].checksum)
            return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: damaged: the checksum of chunk '%s' is wrong", from->name,
                           container->rows[c].name);
    return SELKIE_OK;
}

/* Reads (or finds in memory) and checksums all data, piece by piece on all threads. */
static selkie_code load_data(const source *from, sk_container *container, selkie_error *error)
{
    int count = container->count;

    /* Memory of the chunks. */
    for (int c = 0; c < count; c++) {
        sk_chunk *chunk = &container->chunks[c];
        memcpy(chunk->name, container->rows[c].name, sizeof chunk->name);
        chunk->bytes = container->rows[c].bytes;
        if (chunk->bytes == 0)
            continue;
        chunk->data = from->memory               ? from->memory + container->rows[c].offset
                      : chunk->bytes <= SIZE_MAX ? sk_allocate(NULL, (size_t)chunk->bytes)
                                                 : NULL;
        if (!chunk->data)
            return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory, %.1f MiB to read chunk '%s'", from->name,
                           (double)chunk->bytes / 1048576.0, chunk->name);
    }

    /* Pieces. */
    uint64_t *sizes = calloc((size_t)count + 1, sizeof *sizes);
    uint32_t *checksums = calloc((size_t)count + 1, sizeof *checksums);
    piece *pieces = NULL;
    int64_t piece_count = 0;
    for (int c = 0; sizes && c < count; c++)
        sizes[c] = container->chunks[c].bytes;
    if (sizes && checksums)
        pieces = cut_pieces(count, sizes, &piece_count);

    /* Data and checksums. */
    selkie_code code = SELKIE_OK;
    if (!pieces) {
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "%s: cannot read: out of memory", from->name);
    } else {
        int reason = 0;
#pragma omp parallel for schedule(dynamic, 1) if (piece_count > 1)
        for (int64_t p = 0; p < piece_count; p++) {
            char *data = (char *)container->chunks[pieces[p].chunk].data + pieces[p].start;
            uint64_t offset = container->rows[pieces[p].chunk].offset + pieces[p].start;
            int failed = from->memory ? 0 : read_at(from, offset, data, pieces[p].bytes);
            if (failed == 0) {
                pieces[p].checksum = piece_checksum(data, pieces[p].bytes);
            } else {
#pragma omp atomic write
                reason = failed;
            }
        }
        if (reason != 0) {
            code = fail_read(from, reason, error);
        } else {
            combine_pieces(count, checksums, pieces, piece_count);
            code = check_sums(from, container, checksums, error);
        }
    }
    free(sizes);
    free(checksums);
    free(pieces);
    return code;
}

static selkie_code load(const source *from, sk_container **result, selkie_error *error)
{
    file_header header;
    SK_TRY(read_header(from, &header, error));
    sk_container *container = calloc(1, sizeof *container);
    if (container) {
        container->rows = calloc((size_t)header.chunk_count + 1, sizeof *container->rows);
        container->chunks = calloc((size_t)header.chunk_count + 1, sizeof *container->chunks);
    }
    if (!container || !container->rows || !container->chunks) {
        sk_container_close(container);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: cannot read: out of memory", from->name);
    }
    container->count = (int)header.chunk_count;
    container->owns_data = !from->memory;
    int reason = read_at(from, sizeof header, container->rows, header.chunk_count * sizeof *container->rows);
    selkie_code code = reason != 0 ? fail_read(from, reason, error) : SELKIE_OK;
    if (code == SELKIE_OK)
        code = check_table(from, &header, container->rows, error);
    if (code == SELKIE_OK)
        code = load_data(from, container, error);
    if (code != SELKIE_OK) {
        sk_container_close(container);
        return code;
    }
    *result = container;
    return SELKIE_OK;
}

selkie_code sk_container_parse(const void *data, size_t bytes, const char *name, sk_container **container,
                               selkie_error *error)
{
    *container = NULL;
    source from = {name, bytes > 0 ? data : "", -1, bytes};
    return load(&from, container, error);
}

selkie_code sk_container_read(const char *path, sk_container **container, selkie_error *error)
{
    *container = NULL;
    source from = {path, NULL, open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), 0};
    if (from.descriptor < 0)
        return fail_read(&from, errno, error);
    struct stat status;
    selkie_code code;
    if (fstat(from.descriptor, &status) != 0) {
        code = fail_read(&from, errno, error);
    } else if (!S_ISREG(status.st_mode)) {
        code = sk_fail(error, SELKIE_ERROR_FILE, "%s: cannot read: it is not a plain file", path);
    } else {
        from.bytes = (uint64_t)status.st_size;
        code = load(&from, container, error);
    }
    close(from.descriptor);
    return code;
}

int sk_container_count(const sk_container *container)
{
    return container->count;
}

const sk_chunk *sk_container_at(const sk_container *container, int index)
{
    return index >= 0 && index < container->count ? &container->chunks[index] : NULL;
}

const sk_chunk *sk_container_find(const sk_container *container, const char *name)
{
    for (int c = 0; c < container->count; c++)
        if (strcmp(container->chunks[c].name, name) == 0)
            return &container->chunks[c];
    return NULL;
}

static void drop_data(sk_container *container, sk_chunk *chunk)
{
    if (container->owns_data)
        sk_release(NULL, (void *)chunk->data);
    chunk->data = NULL;
    chunk->bytes = 0;
}

void sk_container_drop(sk_container *container, const char *name)
{
    for (int c = 0; c < container->count; c++)
        if (strcmp(container->chunks[c].name, name) == 0)
            drop_data(container, &container->chunks[c]);
}

void sk_container_close(sk_container *container)
{
    if (!container)
        return;
    for (int c = 0; c < container->count; c++)
        drop_data(container, &container->chunks[c]);
    free(container->rows);
    free(container->chunks);
    free(container);
}
