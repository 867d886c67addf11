/* Obstacles that whitewater does not enter. A least distance a cell says how far the next one is, so that few particles
 * ask for exact distances. Positions are relative to domain.origin. */
#ifndef SK_WHITEWATER_OBSTACLES_H
#define SK_WHITEWATER_OBSTACLES_H

#include <stddef.h>
#include <stdint.h>

#include <selkie/scene.h>
#include <selkie/status.h>

/* A point may lie in an obstacle; a path may cross a thin one. */
enum { SK_FOAM_MAY_BE_INSIDE = 1, SK_FOAM_MAY_CROSS = 2 };

/* Parts of a cell that distances are kept in, and that of cells without an obstacle near. */
enum { SK_FOAM_DISTANCE_PARTS = 32, SK_FOAM_FAR = 255 };

typedef struct sk_foam_obstacles {
    const selkie_obstacle_def *defs;
    int count, moving, placed;
    int finer;                   /* cells along one of the grid's */
    int cells[3];                /* of the distances: half those of the grid, or the same if obstacles move */
    double cell_size, origin[3]; /* m */
    float kept;                  /* cells  distance that is kept from a wall */
    float inverse;               /* 1/m, of a cell */
    float low[3], high[3];       /* m, box around the cells with an obstacle near */
    struct sk_shape **shapes;    /* [count] */
    struct sk_pose *poses;       /* [count] */
    uint8_t *thin;               /* [count] thinner than the path of a substep */
    int any_thin;
    uint8_t *distances; /* [cells] parts of a cell: at least as far from the cell's centre is the next obstacle */
} sk_foam_obstacles;

static inline size_t sk_foam_obstacles_cell(const sk_foam_obstacles *o, const int cell[3])
{
    return ((size_t)cell[2] * (size_t)o->cells[1] + (size_t)cell[1]) * (size_t)o->cells[0] + (size_t)cell[0];
}

/* What may happen to a particle that has moved from `before` to `x`: the distance to an obstacle changes by at most the
 * distance to the cell's centre. */
int sk_foam_obstacles_risks(const sk_foam_obstacles *o, const float before[3], const float x[3]);

/* NULL if the scene has none. Its array of obstacles must outlive them. */
selkie_code sk_foam_obstacles_create(const selkie_scene *scene, sk_foam_obstacles **obstacles, selkie_error *error);
void sk_foam_obstacles_destroy(sk_foam_obstacles *obstacles);
/* Poses at a time (s), and the distances around them. */
void sk_foam_obstacles_move(sk_foam_obstacles *obstacles, double time, int threads);
/* Keeps a particle that has moved from `before` out of the obstacles: it stops where it meets a wall, or goes to the
 * nearest side, and loses its velocity into the obstacle. `risks` are those of its path. Returns 0 if there is no way
 * out. */
int sk_foam_obstacles_keep_out(const sk_foam_obstacles *obstacles, int risks, const float before[3], float position[3],
                               float velocity[3]);

#endif
