/* The container of Alembic files (Ogawa): a tree of groups with data at its leaves.
 *
 * The file begins with "Ogawa", a byte that says whether it is complete, a version and the place of the root group. A
 * group is the number of its children and their places, of eight bytes each; a child whose highest bit is set is data:
 * its size and its bytes. Children are written before their parents, so a file can grow while its data are made. All
 * numbers are little endian.
 */
#ifndef SK_IO_OGAWA_H
#define SK_IO_OGAWA_H

#include "io/atomic_file.h"

#define SK_OGAWA_EMPTY_DATA ((uint64_t)1 << 63)

/* Children of a group that is not written yet. */
typedef struct sk_ogawa_group {
    size_t count, capacity;
    uint64_t *children;
} sk_ogawa_group;

selkie_code sk_ogawa_begin(const char *path, sk_atomic_file **file, selkie_error *error);
/* Writes data in up to two pieces; `child` is for its group. No bytes at all: empty data. */
selkie_code sk_ogawa_data(sk_atomic_file *file, const void *first, size_t first_bytes, const void *second,
                          size_t second_bytes, uint64_t *child, selkie_error *error);
selkie_code sk_ogawa_add(sk_ogawa_group *group, uint64_t child, selkie_error *error);
/* Writes the group and releases its list. */
selkie_code sk_ogawa_group_end(sk_atomic_file *file, sk_ogawa_group *group, uint64_t *child, selkie_error *error);
void sk_ogawa_group_free(sk_ogawa_group *group);
/* Names the root and marks the file as complete. */
selkie_code sk_ogawa_end(sk_atomic_file *file, uint64_t root, selkie_error *error);

#endif
