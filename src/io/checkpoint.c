/* Checkpoints: the world's state in a checked container. */
#include <string.h>

#include <selkie/world.h>
#include "base/threads.h"
#include "io/container.h"
#include "world/world_internal.h"

selkie_code selkie_world_save(const selkie_world *world, const char *path, selkie_error *error)
{
    sk_state_header header;
    sk_state_chunk state[SK_STATE_MAX_CHUNKS];
    sk_chunk chunks[SK_STATE_MAX_CHUNKS];
    SK_TRY(sk_world_fetch(world, 0, error));
    int count = sk_world_state(world, &header, state);
    for (int c = 0; c < count; c++) {
        memcpy(chunks[c].name, state[c].name, sizeof chunks[c].name);
        chunks[c].data = state[c].data;
        chunks[c].bytes = state[c].bytes;
    }
    int before = sk_threads_begin(world->step.threads);
    selkie_code code = sk_container_write(path, count, chunks, error);
    sk_threads_end(before);
    return code;
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
