/* Scratch memory that grows and is released all at once.
 *
 * A phase takes pieces and never releases them; the world empties the arena after each phase. Pieces do not
 * move until then. The arena keeps its memory: new memory from the system would cost page faults. Not
 * thread-safe.
 */
#ifndef SK_BASE_ARENA_H
#define SK_BASE_ARENA_H

#include "base/memory.h"

typedef struct sk_arena {
    sk_memory *memory;
    struct sk_arena_chunk *chunks; /* the newest first */
    size_t used;                   /* bytes taken since the arena was empty */
} sk_arena;

void sk_arena_init(sk_arena *arena, sk_memory *memory);
void sk_arena_free(sk_arena *arena);
/* At least `bytes`, aligned to 64 bytes, not cleared. `what` is for the message. */
selkie_code sk_arena_take(sk_arena *arena, size_t bytes, const char *what, void **piece, selkie_error *error);
/* Releases all pieces. Several chunks become one, so that the next use needs only one. */
void sk_arena_empty(sk_arena *arena);

#endif
