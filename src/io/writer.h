/* A thread that writes frames and checkpoints while the simulation goes on.
 *
 * A frame or checkpoint is copied when it is added, and written in the order of arrival. At most two wait; a third one
 * waits for the disk, so memory stays bounded. The files are the same as without the thread: written under another name
 * and renamed, so that a killed program leaves whole ones.
 *
 * The first error of the thread is returned by all later calls. Calls come from one thread.
 */
#ifndef SK_IO_WRITER_H
#define SK_IO_WRITER_H

#include <selkie/world.h>
#include "base/status.h"

typedef struct sk_writer sk_writer;

typedef enum sk_writer_kind { SK_WRITER_PARTICLES, SK_WRITER_SURFACE } sk_writer_kind;

/* A file of a frame; the format follows the ending. */
typedef struct sk_writer_file {
    sk_writer_kind kind;
    const char *path;
} sk_writer_file;

enum { SK_WRITER_MOST_FILES = 8 };

selkie_code sk_writer_create(sk_writer **writer, selkie_error *error);
/* The world as it is now, as these files. Without threads (sk_writer_create failed: NULL) they are written at once. */
selkie_code sk_writer_add(sk_writer *writer, const selkie_world *world, int count, const sk_writer_file *files,
                          selkie_error *error);
/* A checkpoint file. */
typedef struct sk_writer_checkpoint {
    const char *path, *folder; /* of the run: the frames before the checkpoint are on the disk when it is written */
    int64_t step;
    void (*then)(void *context, int64_t step); /* called by the thread when it is on the disk */
    void *context;
} sk_writer_checkpoint;

/* The world as it is now, as a checkpoint. If a file before it could not be written, it is not written either. Without
 * memory for a copy it is written at once, as it is where `writer` is NULL. */
selkie_code sk_writer_add_checkpoint(sk_writer *writer, const selkie_world *world, const sk_writer_checkpoint *file,
                                     selkie_error *error);
/* Returns when all files are in place. */
selkie_code sk_writer_wait(sk_writer *writer, selkie_error *error);
/* Waits, then ends the thread. NULL is fine. */
void sk_writer_destroy(sk_writer *writer);

#endif
