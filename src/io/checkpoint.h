/* The state of a world at one moment, to be written while the world takes further steps.
 *
 * Particles on a GPU are copied by its own stream; everything else is copied here. */
#ifndef SK_IO_CHECKPOINT_H
#define SK_IO_CHECKPOINT_H

#include <selkie/world.h>
#include "base/status.h"

typedef struct sk_checkpoint sk_checkpoint;

/* `path`: the file. The world may change as soon as this returns. */
selkie_code sk_checkpoint_take(const selkie_world *world, const char *path, sk_checkpoint **checkpoint,
                               selkie_error *error);
/* Writes the file that selkie_world_save would have written at that moment. Any thread may call it. */
selkie_code sk_checkpoint_write(sk_checkpoint *checkpoint, selkie_error *error);
/* NULL is fine. */
void sk_checkpoint_free(sk_checkpoint *checkpoint);

#endif
