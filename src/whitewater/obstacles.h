/* Obstacles that whitewater does not enter. A mark a cell says whether one may be near, so that few particles ask for
 * distances. Positions are relative to domain.origin. */
#ifndef SK_WHITEWATER_OBSTACLES_H
#define SK_WHITEWATER_OBSTACLES_H

#include <stddef.h>
#include <stdint.h>

#include <selkie/scene.h>
#include <selkie/status.h>

/* Marks of a cell: points of it may lie in an obstacle; paths from it may cross a thin one. */
enum { SK_FOAM_MAY_BE_INSIDE = 1, SK_FOAM_MAY_CROSS = 2 };

typedef struct sk_foam_obstacles {
    const selkie_obstacle_def *defs;
    int count, moving, placed;
    int cells[3];
    double cell_size, origin[3]; /* m */
    float inverse;               /* 1/m, of a cell */
    float low[3], high[3];       /* m, box around the cells with a mark */
    struct sk_shape **shapes;    /* [count] */
    struct sk_pose *poses;       /* [count] */
    uint8_t *thin;               /* [count] thinner than the path of a substep */
    uint8_t *marks;              /* [cells] */
} sk_foam_obstacles;

/* The mark of a position in the domain. */
static inline int sk_foam_obstacles_mark(const sk_foam_obstacles *o, const float x[3])
{
    int cell[3], within = 1;
    for (int a = 0; a < 3; a++)
        within &= (x[a] >= o->low[a]) & (x[a] <= o->high[a]);
    if (!within)
        return 0;
    for (int a = 0; a < 3; a++) {
        cell[a] = (int)(x[a] * o->inverse);
        cell[a] = cell[a] < 0 ? 0 : cell[a] < o->cells[a] ? cell[a] : o->cells[a] - 1;
    }
    return o->marks[((size_t)cell[2] * (size_t)o->cells[1] + (size_t)cell[1]) * (size_t)o->cells[0] + (size_t)cell[0]];
}

/* NULL if the scene has none. Its array of obstacles must outlive them. */
selkie_code sk_foam_obstacles_create(const selkie_scene *scene, sk_foam_obstacles **obstacles, selkie_error *error);
void sk_foam_obstacles_destroy(sk_foam_obstacles *obstacles);
/* Poses at a time (s), and the marks around them. */
void sk_foam_obstacles_move(sk_foam_obstacles *obstacles, double time, int threads);
/* Keeps a particle that has moved from `before` out of the obstacles: it stops where it meets a wall, or goes to the
 * nearest side, and loses its velocity into the obstacle. `marks` are those of both places together. Returns 0 if there
 * is no way out. */
int sk_foam_obstacles_keep_out(const sk_foam_obstacles *obstacles, int marks, const float before[3], float position[3],
                               float velocity[3]);

#endif
