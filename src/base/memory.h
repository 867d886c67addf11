/* Memory: 64-byte aligned and counted; every allocation may fail.
 *
 * A sk_memory counts the bytes of one world and refuses allocations beyond its limit: a
 * scene that is too large ends with a message, not by the out-of-memory killer. NULL: not
 * counted.
 */
#ifndef SK_BASE_MEMORY_H
#define SK_BASE_MEMORY_H

#include <stddef.h>
#include <selkie/status.h>

typedef struct sk_memory {
    size_t used;  /* bytes */
    size_t peak;  /* bytes */
    size_t limit; /* bytes, 0 = none */
} sk_memory;

/* NULL beyond the limit or if the system has no memory. The block is not cleared. */
void *sk_allocate(sk_memory *memory, size_t bytes);
void *sk_allocate_zeroed(sk_memory *memory, size_t bytes);
void sk_release(sk_memory *memory, void *block);

/* Makes room for `count` elements in *array and keeps its content. The capacity grows by
 * at least 50 %. */
selkie_code sk_reserve(sk_memory *memory, void **array, size_t *capacity, size_t count, size_t element_bytes,
                       const char *what, selkie_error *error);

/* Bytes that are available on this machine; 0 if unknown. */
size_t sk_memory_available(void);

#endif
