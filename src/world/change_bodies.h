/* Rigid bodies that come and go while a world runs. */
#ifndef SK_WORLD_CHANGE_BODIES_H
#define SK_WORLD_CHANGE_BODIES_H

#include "rigid/rigid.h"
#include "world/world_internal.h"

/* States of the rigid shapes of a scene, in their order; free(states). */
typedef struct sk_body_chunk {
    int count;
    sk_rigid_state *states;
} sk_body_chunk;

/* Does it add, replace or remove a body? */
int sk_change_is_of_bodies(const selkie_change_def *change);
/* The states of the bodies after such a change, in the coordinates of the world. A new body starts as it is drawn, one
 * that takes the place of another too; the others go on. */
selkie_code sk_change_body_states(const selkie_world *world, const selkie_change_def *change, sk_body_chunk *chunk,
                                  selkie_error *error);

#endif
