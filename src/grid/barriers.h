/* Walls thinner than the grid resolves.
 *
 * Distances sampled every half cell miss a plate between two samples, and a cell on both sides of it belongs to one
 * side only. Each cell therefore has a stand: its centre or, if that lies less than a cell inside an obstacle (half a
 * cell in a rigid body, with bilateral pressure), the nearest place outside. A rigid body does not push it through a
 * wall. A wall between the stands of two cells closes the face between them. What the stand of a cell does not see
 * counts as solid in its kernel, and the particles there do not count in its density.
 *
 * Edges are no straight lines between samples either: by samples alone, a face in the end of a plate is open as a
 * whole. Faces at edges and at thin walls count the places that both stands see.
 */
#ifndef SK_GRID_BARRIERS_H
#define SK_GRID_BARRIERS_H

#include "base/dimension.h"
#include "grid/solids.h"
#include "grid/transfer.h"

enum { SK_BARRIER_N = SK_BLOCK_N + 2, SK_BARRIER_NZ = SELKIE_DIM == 3 ? SK_BARRIER_N : 1 };
enum { SK_BARRIER_CELLS = SK_BARRIER_N * SK_BARRIER_N * SK_BARRIER_NZ };

/* A block and one cell around it. The faces are the lower ones of the cells; those on the lower border are not set. */
typedef struct sk_barriers {
    float open[SELKIE_DIM][SK_BARRIER_CELLS];   /* part of the face that walls between the stands leave open */
    int16_t wall[SELKIE_DIM][SK_BARRIER_CELLS]; /* obstacle that closes it, -1 = none */
    uint8_t near[SK_BARRIER_CELLS];             /* a wall separates the cell from one beside it */
    sk_stand stands[SK_BARRIER_CELLS];
    int found;
} sk_barriers;

/* Index of a cell of the block. */
static inline int sk_barrier_index(int i, int j, int k)
{
    return i + 1 + SK_BARRIER_N * (j + 1 + (SELKIE_DIM == 3 ? SK_BARRIER_N * (k + 1) : 0));
}

/* Finds the faces that walls close. `corner`: lower corner of the block, m; `distances`: those of the cells' centres,
 * cells, of walls and obstacles. */
void SK_DIM(sk_barriers_find)(const sk_solids *solids, const double corner[3], const float distances[SK_BARRIER_CELLS],
                              sk_barriers *barriers);
/* Adds the faces that thin rigid bodies close, where obstacles, the first `fixed_count` of the solids, close none.
 * `distances`: also of bodies. The stands stay. */
void SK_DIM(sk_barriers_add_bodies)(const sk_solids *solids, const double corner[3],
                                    const float distances[SK_BARRIER_CELLS], int fixed_count, sk_barriers *barriers);
/* Can a wall reach into the kernel around the lower face of a cell across an axis? `near`: as in sk_barriers. */
int SK_DIM(sk_barriers_has_wall)(const uint8_t near[SK_BARRIER_CELLS], int cell, int axis);
/* Half cells of that kernel, four along each axis, a bit each: those that the stand of the cell on their side of the
 * face sees. */
uint64_t SK_DIM(sk_barriers_seen_halves)(const sk_solids *solids, const double corner[3], const sk_barriers *barriers,
                                         int cell, int axis);
/* Part of the lower face of a cell across an axis that is open and that the stands on both sides see, 0 to 1. Faces of
 * the block and the upper ones of its cells. */
float SK_DIM(sk_barriers_seen_face)(const sk_solids *solids, const double corner[3], const sk_barriers *barriers,
                                    int cell, int axis);
/* The share of the kernel around a place (m) that its stand does not see: solids, and what lies behind walls. */
float SK_DIM(sk_barriers_hidden_share)(const sk_solids *solids, const double centre[3]);
/* Unit normal of the obstacle nearest to the lower face of a cell across an axis. */
void SK_DIM(sk_barriers_normal)(const sk_solids *solids, const sk_grid *grid, int block, int cell, int axis,
                                float normal[3]);
/* The density (over rest density) of split cells, without the particles that their stands do not see. */
void SK_DIM(sk_barriers_recount)(const sk_solids *solids, sk_grid *grid, const sk_particles *particles,
                                 const sk_transfer_options *options);
/* Takes the particles that the stands of split cells do not see, where they are before the step, out of the predicted
 * density. */
void SK_DIM(sk_barriers_hide)(const sk_solids *solids, sk_grid *grid, const sk_particles *particles,
                              const sk_transfer_options *options);

#endif
