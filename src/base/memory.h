/* Memory: 64-byte aligned, counted, and never assumed to be there.
 *
 * A sk_memory counts what one world uses and refuses what would go over its
 * limit, so that a scene that is too large ends in a message and not in the
 * kernel's out-of-memory killer. Pass NULL where nothing needs counting.
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

/* NULL if the limit or the machine says no. The block is not cleared. */
void *sk_allocate(sk_memory *memory, size_t bytes);
void *sk_allocate_zeroed(sk_memory *memory, size_t bytes);
void sk_release(sk_memory *memory, void *block);

/* Makes room for `count` elements in *array, keeping its content; grows by half
 * again at least. */
selkie_code sk_reserve(sk_memory *memory, void **array, size_t *capacity, size_t count, size_t element_bytes,
                       const char *what, selkie_error *error);

/* What this machine could still give, bytes; 0 if unknown. */
size_t sk_memory_available(void);

#endif
