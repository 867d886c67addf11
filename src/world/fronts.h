/* Probes of fronts while particles move: the positions furthest ahead, as many as fill a cell. */
#ifndef SK_WORLD_FRONTS_H
#define SK_WORLD_FRONTS_H

#include "methods/step.h"

enum { sk_most_ahead = 64 };

/* The particles of one thread that are furthest ahead along a probe's axis. */
typedef struct sk_front {
    _Alignas(64) float ahead[sk_most_ahead]; /* m  positions times the direction, the largest one first */
    int count;
} sk_front;

/* Adds the particles of a block that are ahead of those known; keeps `enough` of them. */
void sk_front_see(sk_front *front, const selkie_probe_def *probe, int enough, const sk_moved_block *block);
/* Adds those of another thread. */
void sk_front_join(sk_front *front, const sk_front *other, int enough);

#endif
