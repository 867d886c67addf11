#include "base/arena.h"

#include <stdint.h>
#include <string.h>
#include "base/status.h"

enum { ALIGNMENT = 64 };

/* The header is as wide as the alignment, so that pieces are aligned. */
typedef struct sk_arena_chunk {
    struct sk_arena_chunk *next;
    size_t capacity, used; /* bytes behind the header */
} sk_arena_chunk;

void sk_arena_init(sk_arena *arena, sk_memory *memory)
{
    memset(arena, 0, sizeof *arena);
    arena->memory = memory;
}

static void release_chunks(sk_arena *arena)
{
    while (arena->chunks) {
        sk_arena_chunk *next = arena->chunks->next;
        sk_release(arena->memory, arena->chunks);
        arena->chunks = next;
    }
}

void sk_arena_free(sk_arena *arena)
{
    release_chunks(arena);
    arena->used = 0;
}

static int add_chunk(sk_arena *arena, size_t capacity)
{
    sk_arena_chunk *chunk = sk_allocate(arena->memory, ALIGNMENT + capacity);
    if (!chunk)
        return 0;
    *chunk = (sk_arena_chunk){arena->chunks, capacity, 0};
    arena->chunks = chunk;
    return 1;
}

selkie_code sk_arena_take(sk_arena *arena, size_t bytes, const char *what, void **piece, selkie_error *error)
{
    *piece = NULL;
    if (bytes > SIZE_MAX / 2)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for %zu bytes", what, bytes);
    const size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!arena->chunks || arena->chunks->capacity - arena->chunks->used < rounded) {
        /* Releases an empty chunk that is too small. */
        if (!arena->used)
            release_chunks(arena);
        if (!add_chunk(arena, rounded + rounded / 4))
            return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for %zu bytes", what, bytes);
    }
    *piece = (char *)arena->chunks + ALIGNMENT + arena->chunks->used;
    arena->chunks->used += rounded;
    arena->used += rounded;
    return SELKIE_OK;
}

void sk_arena_empty(sk_arena *arena)
{
    if (arena->chunks && arena->chunks->next) {
        const size_t all = arena->used;
        release_chunks(arena);
        add_chunk(arena, all + all / 8); /* room to grow; if that fails, the next phase tries again */
    }
    if (arena->chunks)
        arena->chunks->used = 0;
    arena->used = 0;
}
