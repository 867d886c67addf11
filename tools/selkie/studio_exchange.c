#include "studio_exchange.h"

#include <stdlib.h>
#include <string.h>

studio_blob *studio_blob_create(size_t length, int is_binary)
{
    studio_blob *blob = malloc(sizeof *blob + length + 1);
    if (!blob)
        return NULL;
    atomic_init(&blob->holders, 1);
    blob->is_binary = is_binary;
    blob->number = 0;
    blob->length = length;
    return blob;
}

studio_blob *studio_blob_hold(studio_blob *blob)
{
    if (blob)
        atomic_fetch_add(&blob->holders, 1);
    return blob;
}

void studio_blob_release(studio_blob *blob)
{
    if (blob && atomic_fetch_sub(&blob->holders, 1) == 1)
        free(blob);
}

int studio_exchange_open(studio_exchange *exchange)
{
    memset(exchange, 0, sizeof *exchange);
    pthread_condattr_t attributes;
    if (pthread_mutex_init(&exchange->lock, NULL) || pthread_condattr_init(&attributes))
        return -1;
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    const int code = pthread_cond_init(&exchange->arrived, &attributes);
    pthread_condattr_destroy(&attributes);
    return code ? -1 : 0;
}

void studio_exchange_close(studio_exchange *exchange)
{
    for (int i = 0; i < exchange->command_count; i++)
        studio_message_free(&exchange->commands[i].message);
    for (int i = 0; i < exchange->reply_count; i++)
        studio_blob_release(exchange->replies[i].blob);
    for (int k = 0; k < STUDIO_KIND_COUNT; k++)
        studio_blob_release(exchange->latest[k]);
    pthread_cond_destroy(&exchange->arrived);
    pthread_mutex_destroy(&exchange->lock);
}

int studio_send(studio_exchange *exchange, uint32_t sender, studio_message *message)
{
    pthread_mutex_lock(&exchange->lock);
    const int full = exchange->command_count == STUDIO_QUEUE;
    if (!full) {
        exchange->commands[exchange->command_count++] = (studio_order){sender, *message};
        memset(message, 0, sizeof *message);
        pthread_cond_signal(&exchange->arrived);
    }
    pthread_mutex_unlock(&exchange->lock);
    if (full)
        studio_message_free(message);
    return full ? -1 : 0;
}

void studio_want_frame(studio_exchange *exchange)
{
    pthread_mutex_lock(&exchange->lock);
    exchange->frame_wanted = 1;
    pthread_cond_signal(&exchange->arrived);
    pthread_mutex_unlock(&exchange->lock);
}

void studio_quit(studio_exchange *exchange)
{
    pthread_mutex_lock(&exchange->lock);
    exchange->quit = 1;
    pthread_cond_signal(&exchange->arrived);
    pthread_mutex_unlock(&exchange->lock);
}

studio_blob *studio_latest(studio_exchange *exchange, studio_kind kind)
{
    pthread_mutex_lock(&exchange->lock);
    studio_blob *blob = studio_blob_hold(exchange->latest[kind]);
    pthread_mutex_unlock(&exchange->lock);
    return blob;
}

int studio_take_reply(studio_exchange *exchange, studio_reply *reply)
{
    pthread_mutex_lock(&exchange->lock);
    const int there = exchange->reply_count > 0;
    if (there) {
        *reply = exchange->replies[0];
        memmove(exchange->replies, exchange->replies + 1,
                (size_t)(--exchange->reply_count) * sizeof *exchange->replies);
    }
    pthread_mutex_unlock(&exchange->lock);
    return there;
}

void studio_publish(studio_exchange *exchange, studio_kind kind, studio_blob *blob)
{
    if (!blob)
        return;
    pthread_mutex_lock(&exchange->lock);
    studio_blob *old = exchange->latest[kind];
    exchange->latest[kind] = blob;
    if (kind == STUDIO_FRAME)
        exchange->frame_wanted = 0;
    pthread_mutex_unlock(&exchange->lock);
    studio_blob_release(old);
    exchange->wake(exchange->wake_context);
}

void studio_answer(studio_exchange *exchange, uint32_t receiver, studio_blob *blob)
{
    if (!blob)
        return;
    pthread_mutex_lock(&exchange->lock);
    const int full = exchange->reply_count == STUDIO_QUEUE;
    if (!full)
        exchange->replies[exchange->reply_count++] = (studio_reply){receiver, blob};
    pthread_mutex_unlock(&exchange->lock);
    if (full)
        studio_blob_release(blob);
    exchange->wake(exchange->wake_context);
}
