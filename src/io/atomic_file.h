/* Files that appear whole or not at all.
 *
 * A sk_atomic_file is written as PATH.part beside its final place and takes the place of PATH only when everything has
 * reached the disk: write, fsync, rename, fsync of the folder. Until then what was there before stays untouched, and a
 * failure (full disk, size limit, no permission, a folder that is missing) removes the .part and leaves one message.
 *
 * The name of the temporary is fixed and guarded by a lock, not random: after a kill -9 the next write of the same file
 * reuses the stale .part, so that a run that dies over and over does not fill the disk with half checkpoints.
 *
 * Where PATH is something that cannot be renamed over (a device, a pipe), it is written to directly.
 */
#ifndef SK_IO_ATOMIC_FILE_H
#define SK_IO_ATOMIC_FILE_H

#include <stddef.h>
#include <stdint.h>
#include "base/status.h"

typedef struct sk_atomic_file sk_atomic_file;

/* `expected_bytes` (0 = unknown) are set aside at once, so that a disk that is too full says so before the work. */
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

/* Puts the file in its place. *file becomes NULL in any case; on failure nothing is left behind. */
selkie_code sk_atomic_commit(sk_atomic_file **file, selkie_error *error);
/* Gives up: removes what was written. Fine with NULL. */
void sk_atomic_abandon(sk_atomic_file **file);
/* commit where `so_far` is SELKIE_OK, else abandon; returns the first failure. */
selkie_code sk_atomic_finish(sk_atomic_file **file, selkie_code so_far, selkie_error *error);

/* A whole file from memory, and back. Text read back has a '\0' behind its last byte; sk_release(NULL, data) it. */
selkie_code sk_file_write(const char *path, const void *data, size_t bytes, selkie_error *error);
selkie_code sk_file_read(const char *path, char **data, size_t *bytes, selkie_error *error);

/* Plain words for an errno, without the locale: "the disk is full". `buffer` is used where there are none. */
const char *sk_file_reason(int reason, char *buffer, size_t size);

#endif
