/* A stable sort of records by small keys, in parts that threads count and write: the result does not depend on the
 * number of threads. */
#ifndef SK_PARTICLES_COUNTING_SORT_H
#define SK_PARTICLES_COUNTING_SORT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Records with this key are left out. */
#define SK_NO_KEY UINT32_MAX

typedef struct sk_counting_sort {
    size_t count, key_count;
    const uint32_t *keys; /* [count] below key_count, or SK_NO_KEY */
    size_t record_bytes;
    const void *from; /* [count] records */
    void *to;         /* another array */
    int threads;
} sk_counting_sort;

/* `sorted` receives the number of records that were not left out. */
selkie_code sk_counting_sort_run(const sk_counting_sort *sort, size_t *sorted, selkie_error *error);

#endif
