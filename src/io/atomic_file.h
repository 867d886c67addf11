/* Files that appear whole or not at all.
 *
 * A sk_atomic_file is written as PATH.part beside its final place and replaces PATH only after all data has reached the
 * disk: write, fsync, rename, fsync of the folder. Until then an older file stays untouched. A failure (full disk, size
 * limit, no permission, missing folder) removes the .part and returns one message.
 *
 * The name of the temporary is fixed and guarded by a lock, not random: after a kill -9 the next write of the same file
 * reuses the stale .part, so that a run that is killed repeatedly does not fill the disk with partial checkpoints.
 *
 * A device or a pipe cannot be replaced and is written to directly.
 */
#ifndef SK_IO_ATOMIC_FILE_H
#define SK_IO_ATOMIC_FILE_H

#include <stddef.h>
#include <stdint.h>
#include "base/status.h"

typedef struct sk_atomic_file sk_atomic_file;

/* `expected_bytes` (0 = unknown) are reserved at once, so that a full disk is an error before the work. */
selkie_code sk_atomic_open(const char *path, uint64_t expected_bytes, sk_atomic_file **file, selkie_error *error);

/* Appends. */
selkie_code sk_atomic_write(sk_atomic_file *file, const void *data, size_t bytes, selkie_error *error);
selkie_code sk_atomic_print(sk_atomic_file *file, selkie_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Bytes appended so far. */
uint64_t sk_atomic_position(const sk_atomic_file *file);

/* Writes at an offset; may be called by several threads at once. 0 or an errno (for sk_atomic_fail). A pipe can only be
 * written in order: there anything but the next offset is ESPIPE. Does not move sk_atomic_position for files. */
int sk_atomic_write_at(sk_atomic_file *file, uint64_t offset, const void *data, size_t bytes);
selkie_code sk_atomic_fail(const sk_atomic_file *file, int reason, selkie_error *error);

/* Appends `count` records of `record_bytes` each that `fill` makes, a batch a thread, written in parallel. `fill` turns
 * the records first .. first + count - 1 into count * record_bytes bytes at `out`. */
typedef void (*sk_record_fill)(const void *context, int64_t first, int64_t count, unsigned char *out);
selkie_code sk_atomic_write_records(sk_atomic_file *file, int64_t count, size_t record_bytes, sk_record_fill fill,
                                    const void *context, selkie_error *error);

/* The file is put in its place without waiting for the disk: for frames, which a resumed run can write again. After a
 * power failure such a file may be empty; a killed program leaves it whole. */
void sk_atomic_no_flush(sk_atomic_file *file);

/* Puts the file in its place. *file becomes NULL in any case; on failure nothing is left behind. */
selkie_code sk_atomic_commit(sk_atomic_file **file, selkie_error *error);
/* Removes the temporary file. Accepts NULL. */
void sk_atomic_abandon(sk_atomic_file **file);
/* Commits if `so_far` is SELKIE_OK, else abandons; returns the first failure. */
selkie_code sk_atomic_finish(sk_atomic_file **file, selkie_code so_far, selkie_error *error);

/* A whole file from memory, and back. Text read back has a '\0' behind its last byte; sk_release(NULL, data) it. */
selkie_code sk_file_write(const char *path, const void *data, size_t bytes, selkie_error *error);
selkie_code sk_file_read(const char *path, char **data, size_t *bytes, selkie_error *error);

/* Text for an errno, independent of the locale: "the disk is full". `buffer` holds the text of other numbers. */
const char *sk_file_reason(int reason, char *buffer, size_t size);

#endif
