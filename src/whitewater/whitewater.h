/* Spray, foam and bubbles of a liquid (Ihmsen, Akinci, Akinci and Teschner 2012, "Unified spray, foam and air bubbles
 * for particle-based fluids").
 *
 * Whitewater is made where liquid is fast and traps air or forms a crest, and is carried by the liquid without an
 * effect on it. It steps from frame to frame. A particle's kind follows from the density of the liquid around it.
 *
 * Random numbers depend on the seed of the scene, the frame and the particle: the same frames give the same whitewater
 * on any number of threads.
 */
#ifndef SK_WHITEWATER_WHITEWATER_H
#define SK_WHITEWATER_WHITEWATER_H

#include <selkie/scene.h>
#include "geom/surface.h"

typedef enum sk_whitewater_kind { SK_WHITEWATER_SPRAY, SK_WHITEWATER_FOAM, SK_WHITEWATER_BUBBLE } sk_whitewater_kind;

typedef struct sk_whitewater_particle {
    float position[3]; /* m   relative to domain.origin */
    float velocity[3]; /* m/s */
    uint32_t kind;     /*     sk_whitewater_kind */
    float age;         /* s   as foam, over its lifetime: it ends at 1 */
} sk_whitewater_particle;

typedef struct sk_whitewater {
    const selkie_scene *scene;
    int threads;
    size_t count, capacity;
    sk_whitewater_particle *particles;
    sk_whitewater_particle *other; /* for sorting */
    size_t other_capacity;
    uint32_t *keys; /* [count] for sorting */
    size_t key_capacity;
    double speed_min, speed_max; /* m/s */
    struct sk_foam_obstacles *obstacles;
} sk_whitewater;

/* Without particles yet. 3D only. */
selkie_code sk_whitewater_init(sk_whitewater *w, const selkie_scene *scene, int threads, selkie_error *error);
void sk_whitewater_free(sk_whitewater *w);

/* Moves the whitewater by `dt` (s) through the liquid of a frame at `time` (s), relative to domain.origin, then makes
 * new one. */
selkie_code sk_whitewater_step(sk_whitewater *w, const sk_surface_particles *liquid, int64_t frame, double time,
                               double dt, selkie_error *error);

#endif
