/* A file of named chunks, used for checkpoints.
 *
 *   offset  bytes
 *        0      8  magic: 0x89 'S' 'L' 'K' '\r' '\n' 0x1a '\n' (as in PNG: it detects transfers that change line
 *                  ends or clear the eighth bit)
 *        8      4  byte order mark 0x01020304, in the order of the machine
 *       12      4  version of this layout, SK_CONTAINER_VERSION
 *       16      4  number of chunks
 *       20      4  CRC-32 of the header: these 32 bytes (this field 0) and the table
 *       24      8  size of the whole file, bytes
 *       32     48  a table row a chunk: char name[24] (zeros behind), uint64 offset, uint64 bytes, uint32 CRC-32 of the
 *                  data, uint32 zero
 *      ...         the chunks in the table's order, each at the next multiple of 64, zeros between
 *
 * A list of chunks has exactly one valid file. The reader computes and compares offsets, and checks that padding is
 * zero and that the size is the file's. So it finds every flipped bit, not only those in data.
 *
 * Numbers are in the byte order of the machine that wrote them. A machine of the other order refuses the file with a
 * message. To resume bit for bit needs the same kind of machine in any case.
 *
 * Checksums are computed in pieces on all threads and combined (zlib's crc32_combine); data is
 * written without a copy.
 */
#ifndef SK_IO_CONTAINER_H
#define SK_IO_CONTAINER_H

#include <stddef.h>
#include <stdint.h>
#include "base/status.h"

enum { SK_CONTAINER_VERSION = 1, SK_CONTAINER_MAX_CHUNKS = 4096 };

typedef struct sk_chunk {
    char name[24];    /* 1 to 23 characters, unique in a file */
    const void *data; /* read back: 64-byte aligned (sk_container_read), NULL if there are no bytes */
    uint64_t bytes;
} sk_chunk;

typedef struct sk_container sk_container;

/* Atomically: see io/atomic_file.h. */
selkie_code sk_container_write(const char *path, int count, const sk_chunk *chunks, selkie_error *error);

/* Verifies everything before it returns. SELKIE_ERROR_FILE: cannot be read. SELKIE_ERROR_FORMAT: is not a container, or
 * damaged, or of another version or byte order. */
selkie_code sk_container_read(const char *path, sk_container **container, selkie_error *error);

/* The same from memory; chunks point into `data`, which must outlive the container. `name` is for messages. */
selkie_code sk_container_parse(const void *data, size_t bytes, const char *name, sk_container **container,
                               selkie_error *error);

int sk_container_count(const sk_container *container);
const sk_chunk *sk_container_at(const sk_container *container, int index);
/* NULL if there is none of this name. */
const sk_chunk *sk_container_find(const sk_container *container, const char *name);
/* Releases the memory of one chunk early, after its content was copied (its data becomes NULL, bytes 0). */
void sk_container_drop(sk_container *container, const char *name);
/* Accepts NULL. */
void sk_container_close(sk_container *container);

/* CRC-32 (zlib's polynomial) of a large block, on all threads. */
uint32_t sk_checksum(const void *data, uint64_t bytes);

#endif
