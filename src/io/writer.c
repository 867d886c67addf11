#define _GNU_SOURCE /* gettid */
#include "io/writer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strided.h"
#include "base/threads.h"
#include "io/checkpoint.h"
#include "io/folder.h"
#include "io/output.h"
#include "io/particles_file.h"
#include "world/mesher.h"
#include "world/world_internal.h"

enum { waiting_frames = 2, copied_together = 4096, writer_priority = 10 };

/* A frame with copies of the world's arrays, or a checkpoint. */
typedef struct pending {
    sk_frame frame;
    selkie_scene scene; /* its values: the world may change what it points to */
    char names[SK_MAX_EXTRA_ATTRIBUTES][32];
    selkie_attribute_view extras[SK_MAX_EXTRA_ATTRIBUTES];
    void *arrays[3 + SK_MAX_EXTRA_ATTRIBUTES];
    int array_count;
    sk_world_copy *copy; /* of the arrays, which the GPU may still be writing; NULL = they are here */
    int on_device;       /* the world runs on the GPU, which makes its surfaces too */
    int file_count;
    sk_writer_kind kinds[SK_WRITER_MOST_FILES];
    char *paths[SK_WRITER_MOST_FILES];
    sk_checkpoint *checkpoint; /* NULL = a frame */
    char *folder;              /* of the frames before it */
    int64_t step;
    void (*then)(void *context, int64_t step);
    void *context;
} pending;

struct sk_writer {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pending *queue[waiting_frames]; /* the first one is being written */
    int count;
    int ends;
    sk_mesher *mesher;  /* of the thread; NULL = none yet */
    selkie_error error; /* the first one; no checkpoint may follow it */
};

/* --- Frames --- */

static void pending_free(pending *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->array_count; i++)
        sk_release(NULL, p->arrays[i]);
    sk_world_copy_free(p->copy);
    for (int i = 0; i < p->file_count; i++)
        free(p->paths[i]);
    sk_checkpoint_free(p->checkpoint);
    free(p->folder);
    sk_release(NULL, p);
}

/* A copy of an array, without gaps between the particles. */
static void *copy_array(pending *p, const void *data, size_t stride, size_t bytes, int64_t count, int threads)
{
    char *copy = sk_allocate(NULL, ((size_t)count + 1) * bytes);
    if (!copy)
        return NULL;
    p->arrays[p->array_count++] = copy;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t first = 0; first < count; first += copied_together) {
        const int64_t items = count - first < copied_together ? count - first : copied_together;
        sk_copy_strided(copy + (size_t)first * bytes, bytes, (const char *)data + (size_t)first * stride, stride, bytes,
                        items);
    }
    return copy;
}

static int copy_arrays(pending *p, int threads)
{
    sk_frame *f = &p->frame;
    const size_t vector = (size_t)f->dimension * sizeof(float);
    f->position = copy_array(p, f->position, f->position_stride, vector, f->count, threads);
    f->position_stride = vector;
    f->velocity = copy_array(p, f->velocity, f->velocity_stride, vector, f->count, threads);
    f->velocity_stride = vector;
    f->id = copy_array(p, f->id, f->id_stride, sizeof *f->id, f->count, threads);
    f->id_stride = sizeof *f->id;
    int complete = f->position && f->velocity && f->id;
    for (int e = 0; e < f->extra_count && complete; e++) {
        selkie_attribute_view *view = &p->extras[e];
        const size_t bytes = (size_t)view->components * 4;
        view->data = (void *)copy_array(p, view->data, view->stride, bytes, f->count, threads);
        view->stride = bytes;
        complete = view->data != NULL;
    }
    return complete;
}

/* Waits for the copy of the GPU and points the frame to it. */
static selkie_code await_arrays(pending *p, selkie_error *error)
{
    sk_particles particles;
    sk_frame *f = &p->frame;
    SK_TRY(sk_world_copy_take(p->copy, &particles, error));
    f->count = particles.count;
    f->position = particles.records->position;
    f->velocity = particles.records->velocity;
    f->id = &particles.records->id;
    f->position_stride = f->velocity_stride = f->id_stride = sizeof *particles.records;
    for (int e = 0; e < f->extra_count; e++) {
        const sk_attribute *attribute = sk_particles_find_attribute(&particles, p->extras[e].name);
        p->extras[e].data = attribute ? attribute->data : NULL;
    }
    return SELKIE_OK;
}

static selkie_code take_frame(const selkie_world *world, int count, const sk_writer_file *files, pending **result,
                              selkie_error *error)
{
    pending *p = sk_allocate_zeroed(NULL, sizeof *p);
    if (!p)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "output: no memory for a frame");
    selkie_code code = sk_world_copy_begin(world, &p->copy, error);
    if (!code)
        code = p->copy ? sk_world_frame_outline(world, &p->frame, p->extras, error)
                       : sk_world_frame(world, &p->frame, p->extras, error);
    p->scene = *selkie_world_scene(world);
    p->on_device = world->step.cuda != NULL;
    for (int e = 0; !code && e < p->frame.extra_count; e++) {
        snprintf(p->names[e], sizeof p->names[e], "%s", p->extras[e].name);
        p->extras[e].name = p->names[e];
    }
    int complete = !code && (p->copy || copy_arrays(p, world->step.threads));
    for (int i = 0; i < count && complete; i++) {
        p->kinds[i] = files[i].kind;
        p->paths[i] = strdup(files[i].path);
        complete = p->paths[i] != NULL;
        p->file_count++;
    }
    if (!code && !complete)
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "output: no memory for a copy of %lld particles",
                       (long long)p->frame.count);
    if (code) {
        pending_free(p);
        return code;
    }
    *result = p;
    return SELKIE_OK;
}

/* Surfaces are made by `mesher`; one is made for it where there is none and the world runs on the GPU. */
static selkie_code write_frame(pending *p, int threads, sk_mesher **mesher, selkie_error *error)
{
    if (p->copy)
        SK_TRY(await_arrays(p, error));
    for (int i = 0; i < p->file_count && p->on_device && !*mesher; i++)
        if (p->kinds[i] == SK_WRITER_SURFACE)
            SK_TRY(sk_mesher_create(SELKIE_BACKEND_CUDA, mesher, error));
    p->frame.mesher = *mesher;
    for (int i = 0; i < p->file_count; i++)
        SK_TRY(p->kinds[i] == SK_WRITER_SURFACE
                   ? sk_frame_write_surface(&p->frame, &p->scene, threads, p->paths[i], error)
                   : sk_particles_write(&p->frame, p->paths[i], error));
    return SELKIE_OK;
}

/* --- Checkpoints --- */

static selkie_code take_checkpoint(const selkie_world *world, const sk_writer_checkpoint *file, pending **result,
                                   selkie_error *error)
{
    pending *p = sk_allocate_zeroed(NULL, sizeof *p);
    if (!p || !(p->folder = strdup(file->folder))) {
        pending_free(p);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory", file->path);
    }
    p->step = file->step;
    p->then = file->then;
    p->context = file->context;
    const selkie_code code = sk_checkpoint_take(world, file->path, &p->checkpoint, error);
    if (code)
        pending_free(p);
    else
        *result = p;
    return code;
}

/* Frames are not flushed one by one, but a run resumes only behind frames that have reached the disk. */
static selkie_code write_checkpoint(pending *p, selkie_error *error)
{
    sk_folder_flush(p->folder);
    SK_TRY(sk_checkpoint_write(p->checkpoint, error));
    p->then(p->context, p->step);
    return SELKIE_OK;
}

/* --- The thread --- */

static void *run_writer(void *context)
{
    sk_writer *w = context;
    /* The simulation has the cores; one of them now and then is enough here. A loop of the simulation waits for the
     * slowest of its threads, so this one must not take a core from it: it writes in the pauses. A system that refuses
     * writes a little slower. */
    sk_threads_begin(1);
    (void)!setpriority(PRIO_PROCESS, (id_t)gettid(), writer_priority);
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->count && !w->ends)
            pthread_cond_wait(&w->changed, &w->lock);
        if (!w->count)
            break;
        pending *p = w->queue[0];
        const int failed = w->error.code != SELKIE_OK;
        pthread_mutex_unlock(&w->lock);
        selkie_error error = {0};
        selkie_code code = SELKIE_OK;
        if (!p->checkpoint)
            code = write_frame(p, 1, &w->mesher, &error);
        else if (!failed)
            code = write_checkpoint(p, &error);
        pending_free(p);

        pthread_mutex_lock(&w->lock);
        if (code && !w->error.code) {
            w->error = error;
            w->error.code = code;
        }
        memmove(w->queue, w->queue + 1, (waiting_frames - 1) * sizeof *w->queue);
        w->count--;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

selkie_code sk_writer_create(sk_writer **result, selkie_error *error)
{
    *result = NULL;
    sk_writer *w = sk_allocate_zeroed(NULL, sizeof *w);
    if (!w)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "output: no memory for a writer");
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    if (pthread_create(&w->thread, NULL, run_writer, w)) {
        sk_release(NULL, w);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "output: the system gives no thread for a writer");
    }
    *result = w;
    return SELKIE_OK;
}

/* With the lock held. */
static selkie_code first_error(const sk_writer *w, selkie_error *error)
{
    if (w->error.code && error)
        *error = w->error;
    return w->error.code;
}

/* Hands a frame or checkpoint to the thread. */
static selkie_code enqueue(sk_writer *w, pending *p, selkie_error *error)
{
    pthread_mutex_lock(&w->lock);
    while (w->count == waiting_frames)
        pthread_cond_wait(&w->changed, &w->lock);
    selkie_code code = first_error(w, error);
    if (!code)
        w->queue[w->count++] = p;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    if (code)
        pending_free(p);
    return code;
}

selkie_code sk_writer_add(sk_writer *w, const selkie_world *world, int count, const sk_writer_file *files,
                          selkie_error *error)
{
    pending *p = NULL;
    SK_TRY(take_frame(world, count, files, &p, error));
    if (!w) {
        const int before = sk_threads_begin(world->step.threads);
        sk_mesher *mesher = NULL;
        selkie_code code = sk_world_mesher(world, &mesher, error);
        if (!code)
            code = write_frame(p, world->step.threads, &mesher, error);
        pending_free(p);
        sk_threads_end(before);
        return code;
    }
    return enqueue(w, p, error);
}

selkie_code sk_writer_add_checkpoint(sk_writer *w, const selkie_world *world, const sk_writer_checkpoint *file,
                                     selkie_error *error)
{
    pending *p = NULL;
    if (!w) {
        sk_folder_flush(file->folder);
        SK_TRY(selkie_world_save(world, file->path, error));
        file->then(file->context, file->step);
        return SELKIE_OK;
    }
    const selkie_code code = take_checkpoint(world, file, &p, error);
    if (code == SELKIE_ERROR_MEMORY) {
        SK_TRY(sk_writer_wait(w, error));
        return sk_writer_add_checkpoint(NULL, world, file, error);
    }
    SK_TRY(code);
    return enqueue(w, p, error);
}

selkie_code sk_writer_wait(sk_writer *w, selkie_error *error)
{
    if (!w)
        return SELKIE_OK;
    pthread_mutex_lock(&w->lock);
    while (w->count)
        pthread_cond_wait(&w->changed, &w->lock);
    selkie_code code = first_error(w, error);
    pthread_mutex_unlock(&w->lock);
    return code;
}

void sk_writer_destroy(sk_writer *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->ends = 1;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    sk_mesher_destroy(w->mesher);
    sk_release(NULL, w);
}
