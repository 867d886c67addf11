/* The sparse staggered grid.
 *
 * The domain has a few cells of padding around it for walls. It is cut into blocks of 8x8x8 cells (16x16 in 2D).
 * Blocks exist if they hold particles or if the kernels of particles reach them. A hash table holds the slot of each,
 * so that memory follows the liquid, not the domain. All other arrays are indexed by slot. Slot 0 is the shared empty
 * block and stands for every absent neighbour. Slots 1 .. particle_blocks hold particles. The rest up to block_count
 * are the blocks around them. Each step assigns slots anew, in the order of the blocks along z, y and x, so that they
 * depend on the particles' positions alone.
 *
 * A field is an array [block_count][cells of a block], x fastest. Velocities sit on the lower faces of the cells. NaN
 * marks an unknown velocity, one that no particle and no extrapolation reaches. Slot 0 is unknown too.
 */
#ifndef SK_GRID_GRID_H
#define SK_GRID_GRID_H

#include <stdint.h>
#include "base/block_table.h"
#include "base/memory.h"
#include "base/status.h"
#include "grid/wrap_kernels.h"
#include "particles/store.h"

/* Fields that several methods share, and fields of methods that code in grid/ fills. A grid has the fields that its
 * methods declare (sk_grid_declare). fields.c describes each field and its lifetime. A method adds a field of its own
 * by sk_grid_add_field and needs no row here. */
typedef enum sk_grid_field {
    SK_FIELD_VELOCITY_X,
    SK_FIELD_VELOCITY_Y,
    SK_FIELD_VELOCITY_Z,
    SK_FIELD_CHANGE_X,
    SK_FIELD_CHANGE_Y,
    SK_FIELD_CHANGE_Z,
    SK_FIELD_FACE_X,
    SK_FIELD_FACE_Y,
    SK_FIELD_FACE_Z,
    SK_FIELD_DENSITY,
    SK_FIELD_FILL,
    SK_FIELD_DEPTH,
    SK_FIELD_DIAGONAL,
    SK_FIELD_RIGHT_SIDE,
    SK_FIELD_POTENTIAL,
    SK_FIELD_FACE_DENSITY_X,
    SK_FIELD_FACE_DENSITY_Y,
    SK_FIELD_FACE_DENSITY_Z,
    SK_FIELD_SHIFT_X,
    SK_FIELD_SHIFT_Y,
    SK_FIELD_SHIFT_Z,
    SK_FIELD_PREDICTED,
    SK_FIELD_LOWER,
    SK_FIELD_LIGHTNESS_X,
    SK_FIELD_LIGHTNESS_Y,
    SK_FIELD_LIGHTNESS_Z,
    SK_FIELD_COUNT,
    SK_FIELD_LIMIT = 64, /* with added fields: the bits of `declared` */

    /* Aliases of memory whose first owner does not use it at the time. */
    SK_FIELD_DISPLACEMENT_X = SK_FIELD_VELOCITY_X, /* cells  displacement on lower faces; before to_grid */
    SK_FIELD_EXPANSION = SK_FIELD_POTENTIAL        /* m/s    target flux out of a cell; until the pressure solve */
} sk_grid_field;

#define SK_FIELD_BIT(field) (UINT64_C(1) << (field))
#define SK_FIELD_BITS(first, count) (((UINT64_C(1) << (count)) - 1) << (first))
#define SK_FIELDS_LIQUID SK_FIELD_BITS(SK_FIELD_VELOCITY_X, SK_FIELD_POTENTIAL + 1)

typedef enum sk_field_lifetime {
    SK_LIFETIME_STEP, /* valid from the phase that fills it to the end of the step, and between steps */
    SK_LIFETIME_PHASE /* undefined after the phase that fills it */
} sk_field_lifetime;

typedef struct sk_field_def {
    const char *name;
    const char *unit;
    int axis; /* axis of its faces; -1 = cell centres */
    sk_field_lifetime lifetime;
    float empty; /* value without a block; NaN = unknown */
    const char *meaning;
} sk_field_def;

const sk_field_def *sk_field_info(int field);

typedef enum sk_cell_kind { SK_CELL_AIR, SK_CELL_LIQUID, SK_CELL_SOLID } sk_cell_kind;
enum { SK_CELL_KIND_MASK = 3, SK_CELL_OCCUPIED = 4 };

/* Masks of runs in a block. */
typedef enum sk_grid_runs {
    SK_RUNS_REACHED, /* a particle's kernel may reach them; elsewhere density is zero and velocity unknown */
    SK_RUNS_LIQUID,  /* a liquid cell */
    SK_RUNS_NEAR,    /* runs with a liquid cell in them or next to them */
    /* Masks of a repeated position correction, which treats a part of the grid: */
    SK_RUNS_CHOSEN,  /* runs with unknowns: cells that are too dense and cells around them */
    SK_RUNS_MOVED,   /* runs whose particles move: chosen runs and runs around them */
    SK_RUNS_SCRATCH, /* scratch of one phase at a time */
    SK_RUNS_SCRATCH_2,
    SK_RUNS_SCRATCH_3,
    SK_RUNS_SCRATCH_4,
    SK_RUNS_SCRATCH_5,
    SK_RUNS_COUNT
} sk_grid_runs;

enum { SK_GRID_PADDING = 4, SK_MAX_NEIGHBOURS = 27 };

typedef struct sk_grid {
    sk_memory *memory;
    int dimension;
    uint64_t declared;                                   /* fields that exist, by SK_FIELD_BIT */
    sk_field_def added[SK_FIELD_LIMIT - SK_FIELD_COUNT]; /* fields that methods added */
    int added_count;
    int block_log; /*      3 in 3D, 4 in 2D */
    int extent[3]; /* cells of a block along each axis */
    int block_cells;
    int cells[3];           /*      of the domain */
    int padding[3];         /*      cells before the domain's lower corner */
    int blocks[3];          /*      of the domain with its padding */
    double cell_size;       /* m    */
    double corner[3];       /* m    lower corner of grid cell (0,0,0): the domain's minus the padding */
    double low[3], high[3]; /* m    the domain */
    int periodic;           /*      bit d: the two sides across axis d are joined; no padding there */
    float period[3];        /* m    length of a periodic axis */
    float last[3];          /* m    the largest position of a particle along a periodic axis */
    double origin[3]; /* m    of these coordinates in the scene: 0 unless a world sets it; for messages and output */

    sk_block_table table; /*      slot of each block, 0 = absent */
    int block_count;      /*      with slot 0 */
    int particle_blocks;  /*      slots 1 .. particle_blocks hold particles */
    size_t block_capacity;
    int32_t (*coordinates)[4];                /* [block_count] block coordinates; the fourth is 0 */
    int32_t (*neighbours)[SK_MAX_NEIGHBOURS]; /* [block_count] slots of the 3^dim blocks around, x fastest */
    int32_t (*faces)[6];                      /* [block_count] slots of the blocks -x +x -y +y -z +z */
    float *fields[SK_FIELD_LIMIT];            /* [block_count][block_cells] */
    float *field_room;                        /* all of them, in one piece, so that it has huge pages */
    uint8_t *kinds;                           /* [block_count][block_cells] sk_cell_kind | SK_CELL_OCCUPIED */
    uint8_t *block_flags;                     /* [block_count] sk_block_flag */
    uint8_t *changes;                         /* [block_count] sk_block_change, set by the last sort */
    uint64_t *runs[SK_RUNS_COUNT];            /* [block_count] a bit for each eight cells along x: see runs.h */
    uint64_t *occupied;                       /*      [particle_blocks + 1] runs that hold particles */
    uint64_t *occupied_first, *occupied_last; /* runs whose first (last) cell lies at the block's lower (upper) side
                                                 along x and holds particles */
    size_t occupied_capacity;

    uint32_t *cell_start; /* [particle_blocks * block_cells + 1] first particle of each cell; slot 1 first */
    size_t cell_start_capacity;

    /* scratch of the sort */
    sk_block_list *lists; /* [list_count] blocks of each chunk of particles */
    int list_count;
    uint64_t *sorted_blocks; /* keys of blocks in ascending order */
    size_t sorted_capacity;
    uint32_t *keys;        /* [particles] number of the block in its chunk's list, then its slot */
    uint16_t *cell_keys;   /* [particles] cell in the block */
    uint32_t *order;       /* [particles] */
    uint16_t *order_cells; /* [particles] */
    size_t key_capacity, cell_key_capacity, order_capacity, order_cell_capacity;
    uint32_t *histogram;
    size_t histogram_capacity;
    uint32_t *arrivals;   /* migrating particles of a sort after small moves */
    uint32_t *next_start; /* the new cell_start of such a sort */
    size_t arrival_capacity, next_start_capacity;
    int32_t *leavers; /* [particle_blocks + 1] migrating particles of each block since the last sort: see leavers.h */
    size_t leaver_capacity;
    uint64_t leavers_at;   /* particles->moves when the list was made; the list is valid while the two are equal */
    const uint64_t *moved; /* runs of each block with moved particles; NULL = any run */
    float *tiles;          /* [particle_blocks] accumulation tiles of the transfer */
    size_t tile_capacity;
} sk_grid;

/* Is the list of migrating particles valid for the current positions? */
static inline int sk_grid_leavers_known(const sk_grid *grid, const sk_particles *particles)
{
    return grid->leavers_at && grid->leavers_at == particles->moves;
}

/* Blocks along an axis whose sides are joined; 0 along others. */
static inline int32_t sk_grid_joined(const sk_grid *grid, int d)
{
    return grid->periodic >> d & 1 ? grid->blocks[d] : 0;
}

/* Key of a grid cell's block, and the cell's index in the block; SK_NO_BLOCK outside the grid. */
static inline uint64_t sk_grid_place(const sk_grid *grid, const int cell[3], size_t *local)
{
    int block[3] = {0, 0, 0};
    *local = 0;
    for (int d = 0; d < grid->dimension; d++) {
        const int count = grid->blocks[d] << grid->block_log;
        int at = cell[d];
        if (at < 0 || at >= count) {
            if (!(grid->periodic >> d & 1))
                return SK_NO_BLOCK;
            at = sk_wrap_index(at, count);
        }
        block[d] = at >> grid->block_log;
        *local |= (size_t)(at & ((1 << grid->block_log) - 1)) << (d * grid->block_log);
    }
    return sk_block_key(block[0], block[1], block[2]);
}

/* Slot and index of a grid cell; slot 0 and index 0 if it does not exist. */
static inline size_t sk_grid_find_cell(const sk_grid *grid, const int cell[3], int *slot)
{
    size_t local;
    const uint64_t place = sk_grid_place(grid, cell, &local);
    *slot = place == SK_NO_BLOCK ? 0 : sk_block_find(&grid->table, place);
    return place == SK_NO_BLOCK ? 0 : local;
}

/* Moves a position (m) that left through a joined side back into the domain. */
static inline void sk_grid_wrap(const sk_grid *grid, float x[3])
{
    for (int d = 0; grid->periodic && d < grid->dimension; d++)
        if (grid->periodic >> d & 1)
            x[d] = sk_wrap_position(x[d], (float)grid->low[d], grid->last[d], grid->period[d]);
}

/* The same for all particles. */
void sk_grid_wrap_particles(const sk_grid *grid, sk_particles *particles, int threads);

/* Changes since the sort before. Results that depend on particles alone stay valid in blocks without changes. */
enum sk_block_change {
    SK_BLOCK_TOUCHED = 1, /* some of its particles moved, left or arrived */
    SK_BLOCK_NEAR = 2     /* the block or a neighbour is touched, or the block is new */
};

enum sk_block_flag {
    SK_BLOCK_LIQUID = 1, /* has liquid cells */
    SK_BLOCK_KNOWN = 2,  /* has faces with a known velocity */
    SK_BLOCK_UNKNOWN = 4 /* has faces without */
};

selkie_code sk_grid_init(sk_grid *grid, int dimension, const int cells[3], const double low[3], double cell_size,
                         sk_memory *memory, selkie_error *error);
/* Joins the two sides of some axes (bit d: axis d) of an empty grid. Along them the domain must be one block wide or an
 * even number of blocks. */
void sk_grid_join_sides(sk_grid *grid, int axes);
void sk_grid_free(sk_grid *grid);
/* Declares the fields of an empty grid. The default is SK_FIELDS_LIQUID. */
selkie_code sk_grid_declare(sk_grid *grid, uint64_t fields, selkie_error *error);
/* Adds a field to an empty grid. Returns its index in `fields`, or -1 if there is no room. */
int sk_grid_add_field(sk_grid *grid, const sk_field_def *def, selkie_error *error);
/* Reserves the lists of migrating particles. */
selkie_code sk_grid_reserve_leavers(sk_grid *grid, selkie_error *error);
/* Reserves the block fields. Content is lost. */
selkie_code sk_grid_reserve_blocks(sk_grid *grid, size_t count, selkie_error *error);

/* Sorts the particles by block and cell, drops dead particles and assigns slots to blocks. The sort is stable, so that
 * the result does not depend on threads. Particles outside the grid are an error. */
selkie_code sk_grid_sort_2d(sk_grid *grid, sk_particles *particles, int threads, selkie_error *error);
selkie_code sk_grid_sort_3d(sk_grid *grid, sk_particles *particles, int threads, selkie_error *error);

/* The same sort with the same bits, fast if most particles are still in their block of the last sort. Each block sorts
 * its own particles, and only migrating particles are moved between blocks. New particles may follow behind those of
 * the last sort. Falls back on the full sort otherwise. */
selkie_code sk_grid_sort_again_2d(sk_grid *grid, sk_particles *particles, int threads, selkie_error *error);
selkie_code sk_grid_sort_again_3d(sk_grid *grid, sk_particles *particles, int threads, selkie_error *error);

/* Lists the migrating particles of a block again, after some of them moved. The lists must be known; the caller keeps
 * them so (`leavers_at`). */
void sk_grid_list_again_2d(sk_grid *grid, const sk_particles *particles, int block);
void sk_grid_list_again_3d(sk_grid *grid, const sk_particles *particles, int block);

/* Lists a dead particle of a block, so that such a sort drops it. The lists of migrating particles must be known. */
void sk_grid_drop_listed_2d(sk_grid *grid, int block, uint32_t particle);
void sk_grid_drop_listed_3d(sk_grid *grid, int block, uint32_t particle);

#endif
