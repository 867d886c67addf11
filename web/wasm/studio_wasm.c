/* The studio inside a web worker: the simulation of the server, without a thread of its own and without sockets.
 *
 * The worker gives messages of the page to studio_wasm_message(), turns to studio_wasm_turn(), and passes on what
 * studio_wasm_next() has. The formats are those of the server (docs/manual/studio.md).
 */
#include <emscripten.h>
#include <stdlib.h>
#include <string.h>

#include "defs/describe.h"
#include "openmp.h"
#include "studio_exchange.h"
#include "studio_simulation.h"
#include "studio_text.h"

static studio_exchange exchange;
static studio_simulation *simulation;
static known_scenes scenes;
static uint32_t sent[STUDIO_KIND_COUNT], sent_frames, seen_frames;
static studio_blob *out;

enum { frames_ahead = 2, page = 1 };

static void stay(void *context)
{
    (void)context;
}

/* Starts threads, the caller's among them; the caller must return to its browser until they are there. */
EMSCRIPTEN_KEEPALIVE void studio_wasm_start(int threads)
{
    web_threads_start(threads);
}

EMSCRIPTEN_KEEPALIVE int studio_wasm_started(void)
{
    return web_threads_started();
}

/* `threads`: as many as have started, or 1. */
EMSCRIPTEN_KEEPALIVE int studio_wasm_open(int threads)
{
    if (studio_exchange_open(&exchange))
        return -1;
    exchange.wake = stay;
    web_threads_use(threads);
    simulation = studio_simulation_open(&exchange, &(studio_simulation_options){.scenes = &scenes, .threads = threads});
    return simulation ? 0 : -1;
}

/* How many threads have worked together so far. */
EMSCRIPTEN_KEEPALIVE int studio_wasm_threads(void)
{
    return web_threads_used();
}

/* A checksum of the particles: the same for the same bits. */
EMSCRIPTEN_KEEPALIVE unsigned studio_wasm_checksum(void)
{
    return studio_simulation_checksum(simulation);
}

/* Adds a scene that the page may open: its name, and the file in the memory of this program. */
EMSCRIPTEN_KEEPALIVE int studio_wasm_add_scene(const char *name, const char *path)
{
    for (size_t i = 0; i < scenes.count; i++)
        if (strcmp(scenes.items[i].name, name) == 0)
            return 0;
    known_scene *longer = realloc(scenes.items, (scenes.count + 1) * sizeof *longer);
    if (!longer)
        return -1;
    scenes.items = longer;
    char *own = strdup(name), *file = strdup(path);
    if (!own || !file) {
        free(own);
        free(file);
        return -1;
    }
    scenes.items[scenes.count++] = (known_scene){file, own, own};
    return 0;
}

/* `text` has a '\0' at its end. */
EMSCRIPTEN_KEEPALIVE void studio_wasm_message(const char *text, size_t length)
{
    studio_message message;
    char problem[256];
    if (studio_message_parse(text, length, &message, problem, sizeof problem)) {
        studio_answer(&exchange, page, studio_problem("message", problem));
        return;
    }
    if (message.verb == STUDIO_SEEN)
        seen_frames += sent_frames != seen_frames;
    else if (message.verb != STUDIO_CONTROL)
        studio_send(&exchange, page, &message);
    studio_message_free(&message);
}

/* One turn. Returns the seconds until the next one is due; -1: after a message. */
EMSCRIPTEN_KEEPALIVE double studio_wasm_turn(void)
{
    exchange.frame_wanted = sent_frames - seen_frames < frames_ahead;
    return studio_simulation_turn(simulation);
}

/* The next blob for the page, as the server chooses it; NULL: nothing. Valid until the next call. */
EMSCRIPTEN_KEEPALIVE const unsigned char *studio_wasm_next(void)
{
    studio_reply reply;
    studio_blob_release(out);
    out = NULL;
    if (studio_take_reply(&exchange, &reply)) {
        out = reply.blob;
        return out->bytes;
    }
    for (int kind = 0; kind < STUDIO_KIND_COUNT; kind++) {
        if (kind == STUDIO_FRAME && sent_frames - seen_frames >= frames_ahead)
            continue;
        studio_blob *blob = studio_latest(&exchange, (studio_kind)kind);
        if (blob && blob->number != sent[kind]) {
            sent[kind] = blob->number;
            sent_frames += kind == STUDIO_FRAME;
            out = blob;
            return out->bytes;
        }
        studio_blob_release(blob);
    }
    return NULL;
}

EMSCRIPTEN_KEEPALIVE size_t studio_wasm_length(void)
{
    return out ? out->length : 0;
}

EMSCRIPTEN_KEEPALIVE int studio_wasm_is_binary(void)
{
    return out ? out->is_binary : 0;
}

/* The schema of scene files; the caller frees it. */
EMSCRIPTEN_KEEPALIVE char *studio_wasm_schema(void)
{
    char *schema = NULL;
    size_t length;
    FILE *stream = open_memstream(&schema, &length);
    if (!stream)
        return NULL;
    sk_scene_schema_write(stream);
    fclose(stream);
    return schema;
}
