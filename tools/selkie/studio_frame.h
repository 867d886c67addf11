/* A world as the studio sends it: particles and poses of solids in a frame, shapes of solids in a blob of their own.
 *
 * Both are little-endian and described in docs/manual/studio.md. Lengths are in metres, relative to domain.origin.
 */
#ifndef SELKIE_TOOL_STUDIO_FRAME_H
#define SELKIE_TOOL_STUDIO_FRAME_H

#include <selkie/world.h>
#include "studio_exchange.h"

enum {
    STUDIO_FRAME_HEADER = 64, /* bytes */
    STUDIO_POSE = 12,         /* floats: three rows of a matrix 3 x 4 */
    STUDIO_MAX_SOLIDS = 4096,
    STUDIO_FRAME_MATERIALS = 1, /* flag: materials follow the speeds */
    STUDIO_FRAME_VELOCITIES = 2 /* flag: velocities come last */
};

typedef struct studio_solid {
    int is_body;
    double center[3]; /* m of a body, where it is drawn */
} studio_solid;

/* The solids of a scene as they are drawn: obstacles first, then bodies. */
typedef struct studio_solids {
    int count;
    studio_solid *items;
} studio_solids;

/* The shapes of all solids; NULL with an error. A solid that cannot be drawn has no points. Fills `solids` anew. */
studio_blob *studio_solids_blob(const selkie_scene *scene, uint32_t number, studio_solids *solids, selkie_error *error);
void studio_solids_free(studio_solids *solids);

typedef struct studio_frame_numbers {
    uint32_t frame, solids, scene; /* numbers of the blobs that belong together */
} studio_frame_numbers;

typedef struct studio_body_pose {
    double position[3]; /* m  of the centre of mass, in the scene */
    double quaternion[4];
} studio_body_pose;

/* What a frame shows: a world, or a file of a run. */
typedef struct studio_view {
    const selkie_scene *scene;
    double time, step; /* s, number */
    int64_t count;
    const float *position, *velocity; /* m relative to domain.origin, m/s; velocity may be NULL */
    size_t stride;                    /* bytes from one particle to the next, of both */
    const uint32_t *material;         /* NULL = one */
    double max_speed;                 /* m/s  of a byte of 255 */
    int moves;                        /* with velocities: a page draws what lies between two frames */
    void (*body)(void *context, int body, studio_body_pose *pose); /* leaves a pose that it does not know */
    void *context;
} studio_view;

/* The particles and the poses of the solids; NULL: no memory. */
studio_blob *studio_view_blob(const studio_view *view, const studio_solids *solids, studio_frame_numbers numbers);
studio_blob *studio_frame_blob(const selkie_world *world, const studio_solids *solids, studio_frame_numbers numbers,
                               int moves);
/* Of the positions and velocities of all particles. */
uint32_t studio_particles_checksum(const selkie_world *world);

#endif
