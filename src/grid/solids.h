/* Solids on the grid: closed domain walls and obstacles, static or moving.
 *
 * For each cell of a block near a solid it holds: the open fraction of the lower faces (variational pressure, Batty et
 * al. 2007); the share of the trilinear kernel around the centre that lies in solids ("blurred" fraction: Gerszewski
 * Eq. 3.13, and the mass of solids of Kugelstadt et al. 2019, sec. 3.2); optionally the same around the lower faces;
 * and the distance of the centre. All are computed from distances sampled every half cell. Values of static solids are
 * computed once, when liquid first comes near, and stored by place. Values near a moving obstacle are computed in each
 * step. Slot 0 is the shared open block.
 */
#ifndef SK_GRID_SOLIDS_H
#define SK_GRID_SOLIDS_H

#include <stdint.h>
#include <selkie/scene.h>
#include "base/memory.h"
#include "geom/shape.h"
#include "grid/grid.h"

/* The place of a cell among walls: its centre, or the nearest place outside. See grid/barriers.h. */
typedef struct sk_stand {
    double x[3]; /* m */
    int exists;  /*   not deep inside an obstacle */
} sk_stand;

/* Walls thinner than the grid resolves: see grid/barriers_dim.c. */
enum sk_barrier {
    SK_BARRIER_FACES = 7,  /* bit d: a thin wall closes the lower face across axis d */
    SK_BARRIER_NEAR = 8,   /* a wall separates the cell from one beside it */
    SK_BARRIER_SPLIT = 16, /* a wall hides a part of the cell's kernel */
    SK_BARRIER_THIN = 32   /* this bit shifted by d: no kernel around a face of the wall lies wholly inside it, and the
                            * lower face across axis d is closed in its place (blurred_face) */
};

typedef struct sk_obstacle {
    const selkie_obstacle_def *def; /* NULL for a rigid body */
    selkie_wall surface;
    double slip_length; /* m  of a no-slip surface */
    sk_shape *shape;
    int moves;
    const sk_pose *follows; /* a rigid body: the pose that it takes; NULL = the motion of `def` */
    int is_thick;           /* convex, and wide enough for the samples to resolve */
    int is_image;
    double image[3];        /* m  from the obstacle to its image */
    sk_pose pose;           /* now */
    const sk_pose *placed;  /* the pose, or NULL if the shape stays as defined */
    double low[3], high[3]; /* m  bounds now */
    double local_low[3], local_high[3];

    /* The motion of this step (sk_solids_step). */
    sk_pose start, end;
    double turn[3];                     /* rad  rotation vector from start to end */
    double swept_low[3], swept_high[3]; /* m    bounds of all poses between */
    double middle[3], reach;            /* m    a ball around all poses between */
    double ball_start[3], ball_way[3];  /* m    centre of a ball around it at the start, and its way to the end */
    double ball;                        /* m    its radius, with the bend of the way */
} sk_obstacle;

/* A region of liquid with an imposed velocity, such as a running source: its faces are closed and move with the
 * velocity, but it takes no room from the liquid. */
typedef struct sk_inlet {
    const sk_shape *shape;
    double low[3], high[3]; /* m    bounds of the shape */
    double velocity[3];     /* m/s  */
    int running;            /*      0 = open, without effect */
} sk_inlet;

/* The share of a rigid body in the faces of a block. */
typedef struct sk_body_piece {
    int32_t block, body;
    uint32_t share;          /* place of its shares */
    uint8_t low[3], high[3]; /* cells that can have a share in a lower face: low <= cell < high along each axis */
} sk_body_piece;

/* The vents of one cell, for checkpoints. Static obstacles alone have vents: their slots outlive the step. */
typedef struct sk_vent {
    uint64_t block; /* sk_block_key */
    uint32_t cell;  /* of the block */
    uint32_t sides; /* as in sk_solids.vents */
} sk_vent;

/* Slices of the domain along each axis. They tell which obstacles a path can meet. */
enum { SK_SOLID_BINS = 64 };

typedef struct sk_solids {
    sk_memory *memory;
    int dimension;
    double cell_size;
    double low[3], high[3]; /* m  domain */
    selkie_wall walls[6];
    int obstacle_count;
    sk_obstacle *obstacles;
    int moving_count;
    int body_count;                          /* the last obstacles are rigid bodies */
    int blur_faces;                          /* fill blurred_face; set before the first update */
    double slip_length[6], side_friction[6]; /* m, 1  of the sides */
    int has_grip, has_friction;              /* some surface has a slip length; some surface has friction */
    int inlet_count;
    sk_inlet *inlets; /* of the method that owns them; set before the first update */

    sk_block_table table; /* of the blocks that liquid has reached: 0 not computed yet, -1 open, else static slot */
    size_t static_count;  /* slots 1 .. static_count - 1 are static, the rest are moving */
    size_t slot_count;
    size_t capacity;
    int block_cells;
    float *fraction[3];     /* [slots][block_cells] open part of the lower face; -0 = a sliver (grid/slivers.h) */
    float *blurred;         /* [slots][block_cells] solid share of the kernel */
    float *blurred_face[3]; /* [slots][block_cells] solid share of the kernel around the lower face (1 - V_f) */
    float *distance;        /* [slots][block_cells] cells, of the centre; negative inside */
    float *velocity[3];     /* [slots][block_cells] m/s of the solid at the lower face; in moving slots alone */
    uint8_t *no_slip;       /* [slots][block_cells] liquid sticks to the nearest solid */
    float *grip;            /* [slots][block_cells] of the nearest solid: see sk_solids_grip; NULL = as no_slip says */
    float *friction;        /* [slots][block_cells] Coulomb's, of the nearest solid; NULL = none has any */
    uint8_t *closed;        /* [slots][block_cells] no face of the cell is open */
    uint8_t *covered;       /* [slots][block_cells] bit 0: rigid bodies take most of the kernel; bits 1 to 6: a thin
                             * wall is on the side -x +x -y +y -z +z of such a cell; NULL without bodies */
    uint8_t *barriers;      /* [slots][block_cells] sk_barrier bits of walls that the samples do not resolve */
    uint8_t *vents;         /* [slots][block_cells] bit per side: air has come between the liquid and the solid there */
    uint8_t *split;         /* [slots] some cell has SK_BARRIER_SPLIT */
    uint8_t *plain;         /* [slots] only free-slip walls of the domain are near */
    uint8_t *exact;         /* [slots] `distance` is at most the true one */
    int32_t *block_slot;    /* [grid blocks] */
    size_t block_capacity;
    float *clearance; /* [grid blocks] cells, at most the distance from the block to any obstacle during the step */
    size_t clearance_capacity;
    uint64_t *bins; /* [dimension][SK_SOLID_BINS][bin_words] bit o: obstacle o can be in that slice of the domain during
                       the step */
    size_t bin_words;
    double slices[3]; /* 1/m  slices of the domain for a length */
    float motion;     /* cells that the surface of an obstacle moves at most in the step */
    int32_t *work;    /* scratch: blocks to compute */
    size_t work_capacity;

    sk_vent *restored; /* [restored_count] vents of a checkpoint, for the blocks that are computed later */
    sk_vent *listed;   /* of sk_solids_list_vents */
    size_t restored_count, restored_capacity, listed_capacity;

    /* Rigid bodies: blurred fractions. A face's open fraction is what obstacles leave, less the bodies' shares. */
    size_t piece_count;
    sk_body_piece *pieces; /* sorted by block */
    uint32_t *piece_first; /* [grid blocks + 1] first piece of each block */
    float *piece_share[3]; /* [shares][block_cells] share of the lower face across an axis; set in the piece's cells */
    size_t piece_capacity, piece_first_capacity, share_capacity[3];

    /* Slots of moving obstacles that stay valid while no pose changes: a second update in a step computes new blocks
     * alone. */
    int settled;                 /* the poses are those of the last update */
    sk_block_table moving_table; /* of the blocks near moving obstacles: their slots */
    uint32_t *slot_share;        /* [slots] place of the shares of a slot's first piece; UINT32_MAX = no body is near */
    uint32_t share_count;
    size_t slot_share_capacity;
} sk_solids;

/* Lists the vents of all cells in `listed`, in the order of their blocks and cells. */
selkie_code sk_solids_list_vents(sk_solids *solids, size_t *count, selkie_error *error);
/* Replaces all vents by those of a list. `file` is named in the message. */
selkie_code sk_solids_restore_vents(sk_solids *solids, const sk_vent *vents, size_t count, const char *file,
                                    selkie_error *error);

selkie_code sk_solids_init(sk_solids *solids, const selkie_scene *scene, const sk_grid *grid, sk_memory *memory,
                           selkie_error *error);
void sk_solids_free(sk_solids *solids);
/* Adds a rigid body as the last obstacle. It takes the pose `follows`, which must outlive the solids. */
void sk_solids_add_body(sk_solids *solids, sk_shape *shape, const selkie_body_def *def, const sk_pose *follows);
/* Takes the present poses of the bodies as those at the end of the step. */
void sk_solids_end_bodies(sk_solids *solids);
/* Do rigid bodies cover a cell, so that its kernel sees too few particles? From the shares of the kernel in obstacles,
 * and in all solids. A cell that obstacles cover by themselves is as without bodies, until those take half of the rest.
 */
SK_KERNEL int sk_solids_cover(float obstacles, float all)
{
    return all > (obstacles > 0.5f ? 0.5f + 0.5f * obstacles : 0.5f);
}
/* A change of velocity of a body: of its centre of mass (m/s), and of its rotation (rad/s) about `centre` (m). */
typedef struct sk_velocity_change {
    double velocity[3], angular_velocity[3], centre[3];
} sk_velocity_change;
/* Changes the velocities of the bodies, [body_count], on the faces of the grid. */
void sk_solids_change_velocity_2d(sk_solids *solids, const sk_grid *grid, const sk_velocity_change *changes,
                                  int threads);
void sk_solids_change_velocity_3d(sk_solids *solids, const sk_grid *grid, const sk_velocity_change *changes,
                                  int threads);
/* Distances from the blocks to the obstacles, after motions have changed. */
void sk_solids_find_clearance_2d(sk_solids *solids, const sk_grid *grid, int threads);
void sk_solids_find_clearance_3d(sk_solids *solids, const sk_grid *grid, int threads);
/* Moves the obstacles to their poses at `time`. */
void sk_solids_move(sk_solids *solids, double time);
/* Sets the motion of the obstacles from one time to another; the pose stays. */
void sk_solids_step(sk_solids *solids, double start, double end);
/* The slice of the domain that holds a coordinate (m); slices at the ends hold what lies outside. Not a number: the
 * slice at the end that the caller asks for. */
SK_KERNEL int sk_solids_bin(const sk_solids *solids, int d, double x, int upper)
{
    const double slice = (x - solids->low[d]) * solids->slices[d];
    if (slice != slice)
        return upper ? SK_SOLID_BINS - 1 : 0;
    return slice < 0.0 ? 0 : slice < SK_SOLID_BINS ? (int)slice : SK_SOLID_BINS - 1;
}
/* Do the slots have velocities? */
SK_KERNEL int sk_solids_have_velocity(const sk_solids *solids)
{
    return solids->moving_count > 0 || solids->inlet_count > 0;
}
/* How much the solid nearest to a cell's centre holds liquid, from 0 (free slip) to 1 (no slip). A viscous liquid with
 * a slip length b shears over h/2 + b instead of the half cell h/2, so its grip is h/2 over that. */
SK_KERNEL float sk_solids_grip(const sk_solids *solids, size_t cell)
{
    return solids->no_slip[cell] ? 1.0f : solids->grip ? solids->grip[cell] : 0.0f;
}
/* Updates block_slot and the slots for the grid's blocks. */
selkie_code sk_solids_update_2d(sk_solids *solids, const sk_grid *grid, int threads, selkie_error *error);
selkie_code sk_solids_update_3d(sk_solids *solids, const sk_grid *grid, int threads, selkie_error *error);

/* Reserves `count` slots and keeps existing ones. */
selkie_code sk_solids_reserve_2d(sk_solids *solids, size_t count, selkie_error *error);
selkie_code sk_solids_reserve_3d(sk_solids *solids, size_t count, selkie_error *error);
/* The last part of an update: blocks that running inlets reach get slots of their own with the inlets' velocities. */
selkie_code sk_solids_impose_2d(sk_solids *solids, const sk_grid *grid, selkie_error *error);
selkie_code sk_solids_impose_3d(sk_solids *solids, const sk_grid *grid, selkie_error *error);

/* Gives a block a slot of its own, with the values of its present one, until the next update. */
selkie_code sk_solids_own_slot_2d(sk_solids *solids, int block, selkie_error *error);
selkie_code sk_solids_own_slot_3d(sk_solids *solids, int block, selkie_error *error);

/* Signed distance (m) to the nearest obstacle or closed wall, and its obstacle (-1 = a wall). */
double sk_solids_distance(const sk_solids *solids, const double x[3], double normal[3], int *obstacle);
/* The same for a caller that lists the obstacles whose bounds are within two cells of x, and perhaps more, ascending.
 */
double sk_solids_distance_among(const sk_solids *solids, const int32_t *among, int count, const double x[3],
                                double normal[3], int *obstacle);
/* Velocity of the solid surface nearest to a point, m/s. */
void sk_solids_velocity(const sk_solids *solids, int obstacle, const double x[3], double velocity[3]);
/* Can an obstacle be within one cell of a particle (m)? Fast, from the sampled distances. The slots must be up to
 * date. */
int sk_solids_near(const sk_solids *solids, const sk_grid *grid, const float x[3]);
/* Moves a particle (m) out of the obstacles along the normal of the nearest one. Repeats for corners between two. The
 * particle stays between low and high. Returns whether it was inside. */
int sk_solids_push_out(const sk_solids *solids, const float low[3], const float high[3], float x[3]);
/* The same, but a particle deeper than `deepest` (m) does not move. */
int sk_solids_push_out_shallow(const sk_solids *solids, const float low[3], const float high[3], double deepest,
                               float x[3]);

/* Range of positions within closed walls, with a small gap, so that no particle lies in the cell behind the wall. Open
 * sides are infinite. */
SK_KERNEL void sk_solids_bounds(const sk_solids *solids, const sk_grid *grid, float low[3], float high[3])
{
    const double gap = 1e-3 * grid->cell_size;
    for (int d = 0; d < 3; d++) {
        low[d] = solids->walls[2 * d] == SELKIE_WALL_OPEN ? -__builtin_inff() : (float)(grid->low[d] + gap);
        high[d] = solids->walls[2 * d + 1] == SELKIE_WALL_OPEN ? __builtin_inff() : (float)(grid->high[d] - gap);
    }
}

#endif
