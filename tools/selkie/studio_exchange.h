/* Between the two threads of the studio. The server puts commands in, the simulation puts blobs out.
 *
 * Of scene, solids, state and frame only the latest exists here: a reader that is slow misses some, and nothing queues.
 * Replies are for one reader and are kept until the server takes them. A blob is counted by its holders, so the memory
 * is bounded by the number of connections.
 */
#ifndef SELKIE_TOOL_STUDIO_EXCHANGE_H
#define SELKIE_TOOL_STUDIO_EXCHANGE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include "studio_message.h"

typedef struct studio_blob {
    atomic_int holders;
    int is_binary;
    uint32_t number; /* of its kind, from 1 */
    size_t length;
    unsigned char bytes[];
} studio_blob;

studio_blob *studio_blob_create(size_t length, int is_binary); /* NULL: no memory */
studio_blob *studio_blob_hold(studio_blob *blob);              /* may be NULL */
void studio_blob_release(studio_blob *blob);                   /* may be NULL */

typedef enum studio_kind { STUDIO_SCENE, STUDIO_SOLIDS, STUDIO_STATE, STUDIO_FRAME, STUDIO_KIND_COUNT } studio_kind;

typedef struct studio_order {
    uint32_t sender; /* number of a connection */
    studio_message message;
} studio_order;

typedef struct studio_reply {
    uint32_t receiver; /* number of a connection */
    studio_blob *blob;
} studio_reply;

enum { STUDIO_QUEUE = 64 };

typedef struct studio_exchange {
    pthread_mutex_t lock;
    pthread_cond_t arrived; /* a command, a wish for a frame, the end */
    studio_order commands[STUDIO_QUEUE];
    int command_count;
    studio_reply replies[STUDIO_QUEUE];
    int reply_count;
    studio_blob *latest[STUDIO_KIND_COUNT];
    int frame_wanted; /* a reader waits for a frame */
    int quit;
    void (*wake)(void *context); /* tells the server that something new is here; from any thread */
    void *wake_context;
} studio_exchange;

int studio_exchange_open(studio_exchange *exchange);
void studio_exchange_close(studio_exchange *exchange);

/* For the server. studio_send() takes over the message; -1 if the queue is full. */
int studio_send(studio_exchange *exchange, uint32_t sender, studio_message *message);
void studio_want_frame(studio_exchange *exchange);
void studio_quit(studio_exchange *exchange);
studio_blob *studio_latest(studio_exchange *exchange, studio_kind kind); /* held for the caller; may be NULL */
int studio_take_reply(studio_exchange *exchange, studio_reply *reply);   /* 0: there is none */

/* For the simulation. Both take over the blob. */
void studio_publish(studio_exchange *exchange, studio_kind kind, studio_blob *blob);
void studio_answer(studio_exchange *exchange, uint32_t receiver, studio_blob *blob);

#endif
