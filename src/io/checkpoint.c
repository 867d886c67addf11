/* Checkpoints: the world's state in a checked container. */
#include "io/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/threads.h"
#include "io/container.h"
#include "world/world_internal.h"

enum { copied_together = 1 << 20 }; /* bytes that a thread copies at a time */

struct sk_checkpoint {
    sk_state_header header;
    int count;
    sk_state_chunk state[SK_STATE_MAX_CHUNKS];
    void *memory;        /* of the chunks but the header */
    sk_world_copy *copy; /* of the particles, which the GPU may still be writing; NULL = they are in `memory` */
    char *path;
};

static selkie_code write_state(const char *path, int count, const sk_state_chunk *state, selkie_error *error)
{
    sk_chunk chunks[SK_STATE_MAX_CHUNKS];
    for (int c = 0; c < count; c++) {
        memcpy(chunks[c].name, state[c].name, sizeof chunks[c].name);
        chunks[c].data = state[c].data;
        chunks[c].bytes = state[c].bytes;
    }
    return sk_container_write(path, count, chunks, error);
}

selkie_code selkie_world_save(const selkie_world *world, const char *path, selkie_error *error)
{
    sk_state_header header;
    sk_state_chunk state[SK_STATE_MAX_CHUNKS];
    SK_TRY(sk_world_fetch(world, 0, error));
    const int count = sk_world_state(world, &header, state);
    const int before = sk_threads_begin(world->step.threads);
    const selkie_code code = write_state(path, count, state, error);
    sk_threads_end(before);
    return code;
}

/* --- Written later --- */

static void copy_bytes(char *to, const char *from, uint64_t bytes, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static)
    for (uint64_t first = 0; first < bytes; first += copied_together)
        memcpy(to + first, from + first, bytes - first < copied_together ? bytes - first : copied_together);
}

/* Copies the chunks from `first` on to memory of the checkpoint and points them to it. */
static selkie_code keep_chunks(sk_checkpoint *c, int first, int threads, selkie_error *error)
{
    uint64_t total = 0;
    for (int n = first; n < c->count; n++)
        total += (c->state[n].bytes + 63) / 64 * 64;
    c->memory = sk_allocate(NULL, (size_t)total + 64);
    if (!c->memory)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for a copy of %llu bytes", c->path,
                       (unsigned long long)total);
    char *to = c->memory;
    for (int n = first; n < c->count; n++) {
        if (c->state[n].bytes)
            copy_bytes(to, c->state[n].data, c->state[n].bytes, threads);
        c->state[n].data = to;
        to += (c->state[n].bytes + 63) / 64 * 64;
    }
    return SELKIE_OK;
}

static selkie_code take_state(const selkie_world *world, const char *path, sk_checkpoint *c, selkie_error *error)
{
    c->path = strdup(path);
    if (!c->path)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory", path);
    SK_TRY(sk_world_copy_begin(world, &c->copy, error));
    if (!c->copy)
        SK_TRY(sk_world_fetch(world, 0, error));
    c->count = sk_world_state(world, &c->header, c->state);
    const int particle_chunks = 1 + world->step.particles.attribute_count;
    return keep_chunks(c, SK_STATE_PARTICLES + (c->copy ? particle_chunks : 0), world->step.threads, error);
}

selkie_code sk_checkpoint_take(const selkie_world *world, const char *path, sk_checkpoint **result, selkie_error *error)
{
    sk_checkpoint *c = sk_allocate_zeroed(NULL, sizeof *c);
    *result = NULL;
    if (!c)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory", path);
    const selkie_code code = take_state(world, path, c, error);
    if (code)
        sk_checkpoint_free(c);
    else
        *result = c;
    return code;
}

selkie_code sk_checkpoint_write(sk_checkpoint *c, selkie_error *error)
{
    if (c->copy) {
        sk_particles particles;
        SK_TRY(sk_world_copy_take(c->copy, &particles, error));
        c->header.particle_count = particles.count;
        sk_state_of_particles(&particles, c->state + SK_STATE_PARTICLES);
    }
    return write_state(c->path, c->count, c->state, error);
}

void sk_checkpoint_free(sk_checkpoint *c)
{
    if (!c)
        return;
    sk_world_copy_free(c->copy);
    sk_release(NULL, c->memory);
    free(c->path);
    sk_release(NULL, c);
}

/* Reads a checkpoint; its chunks stay in the container. */
static selkie_code read_state(const char *path, int threads, sk_container **container,
                              sk_state_chunk state[SK_STATE_MAX_CHUNKS], int *chunk_count, selkie_error *error)
{
    int before = sk_threads_begin(threads);
    selkie_code code = sk_container_read(path, container, error);
    sk_threads_end(before);
    SK_TRY(code);
    int count = sk_container_count(*container);
    count = count < SK_STATE_MAX_CHUNKS ? count : SK_STATE_MAX_CHUNKS;
    for (int c = 0; c < count; c++) {
        const sk_chunk *chunk = sk_container_at(*container, c);
        memcpy(state[c].name, chunk->name, sizeof state[c].name);
        state[c].data = chunk->data;
        state[c].bytes = chunk->bytes;
    }
    *chunk_count = count;
    return SELKIE_OK;
}

selkie_code selkie_world_load(selkie_world *world, const char *path, selkie_error *error)
{
    sk_container *container;
    sk_state_chunk state[SK_STATE_MAX_CHUNKS];
    int count;
    SK_TRY(read_state(path, world->step.threads, &container, state, &count, error));
    selkie_code code = sk_world_restore(world, count, state, path, error);
    sk_container_close(container);
    return code;
}

selkie_code selkie_world_create_from(const selkie_scene *scene, const selkie_world_options *options, const char *path,
                                     selkie_restart_report *report, selkie_world **world, selkie_error *error)
{
    sk_container *container;
    sk_state_chunk state[SK_STATE_MAX_CHUNKS];
    sk_state_source source = {.chunks = state, .file = path};
    *world = NULL;
    SK_TRY(read_state(path, options ? options->threads : 0, &container, state, &source.count, error));
    selkie_code code = sk_world_create_from_state(scene, options, &source, report, world, error);
    sk_container_close(container);
    return code;
}
