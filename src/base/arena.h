/* Scratch memory that grows and is given back all at once.
 *
 * A phase takes what it needs and never releases it; the world empties the arena after each phase. Pieces stay where
 * they are until then. The memory itself is kept: asking the system anew in each phase costs page faults. Not for use
 * by several threads at once.
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
/* Everything taken goes back. Several chunks become one, so that the next phase of the kind needs one only. */
void sk_arena_empty(sk_arena *arena);

#endif
