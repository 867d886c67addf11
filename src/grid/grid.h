/* The sparse staggered grid.
 *
 * The domain, with a few cells of padding around it for walls, is cut into blocks of 8x8x8 cells (16x16 in 2D). A table
 * over all block places says which exist: those that hold particles and those that the kernels around these particles
 * reach. Everything else is stored by slot: slot 0 is the shared empty block that every absent neighbour points to,
 * slots 1 .. particle_blocks hold particles, the rest up to block_count are their surroundings. Slots are given anew in
 * each step, in the order of the table, so that they depend on where the particles are and on nothing else.
 *
 * A field is an array [block_count][cells of a block], x fastest. Velocities sit on the lower faces of the cells. A
 * velocity that no particle and no extrapolation reaches is NaN, in slot 0 as well: it says "unknown" without a mask.
 */
#ifndef SK_GRID_GRID_H
#define SK_GRID_GRID_H

#include <stdint.h>
#include "base/memory.h"
#include "base/status.h"
#include "particles/store.h"

/* Fields that several methods share, and those of methods that the grid's own code fills. A grid has those that its
 * methods declare (sk_grid_declare); fields.c says what each holds, where and for how long. A method with a field of
 * its own adds it by sk_grid_add_field and needs no row here. */
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
    SK_FIELD_LIMIT = 48, /* with those that methods add */

    /* Second names of memory whose first owner has no use for it at the time. */
    SK_FIELD_DISPLACEMENT_X = SK_FIELD_VELOCITY_X, /* cells  of positions, on lower faces; before to_grid */
    SK_FIELD_EXPANSION = SK_FIELD_POTENTIAL        /* m/s    flux that shall leave a cell; until the pressure solve */
} sk_grid_field;

#define SK_FIELD_BIT(field) (UINT64_C(1) << (field))
#define SK_FIELD_BITS(first, count) (((UINT64_C(1) << (count)) - 1) << (first))
#define SK_FIELDS_LIQUID SK_FIELD_BITS(SK_FIELD_VELOCITY_X, SK_FIELD_POTENTIAL + 1)

typedef enum sk_field_lifetime {
    SK_LIFETIME_STEP, /* holds from the phase that fills it to the end of the step, and for whoever looks between steps
                       */
    SK_LIFETIME_PHASE /* undefined as soon as the phase that fills it returns */
} sk_field_lifetime;

typedef struct sk_field_def {
    const char *name;
    const char *unit;
    int axis; /* of the faces it lives on; -1 = cell centres */
    sk_field_lifetime lifetime;
    float empty; /* where there is no block; NaN = unknown */
    const char *meaning;
} sk_field_def;

const sk_field_def *sk_field_info(int field);

typedef enum sk_cell_kind { SK_CELL_AIR, SK_CELL_LIQUID, SK_CELL_SOLID } sk_cell_kind;
enum { SK_CELL_KIND_MASK = 3, SK_CELL_OCCUPIED = 4 };

/* Which runs of a block have what. */
typedef enum sk_grid_runs {
    SK_RUNS_REACHED, /* a particle's kernel may reach them; elsewhere the density is zero and velocities are unknown */
    SK_RUNS_LIQUID,  /* a liquid cell */
    SK_RUNS_NEAR,    /* a liquid cell in them or next to them */
    /* While positions are corrected once more in a step, where that is needed alone: */
    SK_RUNS_CHOSEN,  /* their cells are unknowns: those that are too dense and those around them */
    SK_RUNS_MOVED,   /* their particles move: chosen ones and those around them */
    SK_RUNS_SCRATCH, /* of one phase at a time */
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
    uint64_t declared;                                   /*      fields that exist, by SK_FIELD_BIT */
    sk_field_def added[SK_FIELD_LIMIT - SK_FIELD_COUNT]; /* those that methods added */
    int added_count;
    int block_log; /*      3 in 3D, 4 in 2D */
    int extent[3]; /*      cells of a block along each axis */
    int block_cells;
    int cells[3];           /*      of the domain */
    int padding[3];         /*      cells before the domain's lower corner */
    int blocks[3];          /*      places in the table along each axis */
    double cell_size;       /* m    */
    double corner[3];       /* m    lower corner of grid cell (0,0,0): the domain's minus the padding */
    double low[3], high[3]; /* m    the domain */

    int32_t *table;      /*      [places] slot, 0 = absent */
    uint8_t *marks;      /*      [places] scratch of the sort */
    int block_count;     /*      with slot 0 */
    int particle_blocks; /*      slots 1 .. particle_blocks hold particles */
    size_t block_capacity;
    int32_t (*coordinates)[4];                /* [block_count] block coordinates, then the place in the table */
    int32_t (*neighbours)[SK_MAX_NEIGHBOURS]; /* [block_count] slots of the 3^dim blocks around, x fastest */
    int32_t (*faces)[6];                      /* [block_count] slots of the blocks -x +x -y +y -z +z */
    float *fields[SK_FIELD_LIMIT];            /* [block_count][block_cells] */
    uint8_t *kinds;                           /* [block_count][block_cells] sk_cell_kind | SK_CELL_OCCUPIED */
    uint8_t *block_flags;                     /* [block_count] sk_block_flag */
    uint8_t *changes;                         /* [block_count] sk_block_change, what the last sort has found */
    uint64_t *runs[SK_RUNS_COUNT];            /* [block_count] a bit for each eight cells along x: see runs.h */
    uint64_t *occupied;                       /*      [particle_blocks + 1] runs that hold particles */
    uint64_t *occupied_first,
        *occupied_last; /* those whose first or last cell does, at the block's lower and upper side along x */
    size_t occupied_capacity;

    uint32_t *cell_start; /* [particle_blocks * block_cells + 1] first particle of each cell; slot 1 first */
    size_t cell_start_capacity;

    /* scratch of the sort */
    uint32_t *keys;        /* [particles] place of the block */
    uint16_t *cell_keys;   /* [particles] cell in the block */
    uint32_t *order;       /* [particles] */
    uint16_t *order_cells; /* [particles] */
    size_t key_capacity, cell_key_capacity, order_capacity, order_cell_capacity;
    uint32_t *histogram;
    size_t histogram_capacity;
    uint32_t *arrivals;   /* particles that change blocks in a sort after small moves */
    uint32_t *next_start; /* what cell_start becomes then */
    size_t arrival_capacity, next_start_capacity;
    int32_t *leavers; /* [particle_blocks + 1] particles that left each block since the last sort: see leavers.h */
    size_t leaver_capacity;
    uint64_t leavers_at;   /*      particles->moves when the list was made; it holds while that is the same */
    const uint64_t *moved; /*      and in which runs of each block some moved at all; NULL = anywhere */
    float *tiles;          /* [particle_blocks] accumulation tiles of the transfer */
    size_t tile_capacity;
} sk_grid;

/* Does the list of migrating particles hold for the particles as they are now? */
static inline int sk_grid_leavers_known(const sk_grid *grid, const sk_particles *particles)
{
    return grid->leavers_at && grid->leavers_at == particles->moves;
}

/* Place of a grid cell's block in the table, and the cell's index in the block; -1 outside of the table. */
static inline int64_t sk_grid_place(const sk_grid *grid, const int cell[3], size_t *local)
{
    int64_t place = 0, stride = 1;
    *local = 0;
    for (int d = 0; d < grid->dimension; d++) {
        if (cell[d] < 0 || cell[d] >= grid->blocks[d] << grid->block_log)
            return -1;
        place += (int64_t)(cell[d] >> grid->block_log) * stride;
        stride *= grid->blocks[d];
        *local |= (size_t)(cell[d] & ((1 << grid->block_log) - 1)) << (d * grid->block_log);
    }
    return place;
}

/* Slot and index of a grid cell; slot 0 and index 0 if it does not exist. */
static inline size_t sk_grid_find_cell(const sk_grid *grid, const int cell[3], int *slot)
{
    size_t local;
    int64_t place = sk_grid_place(grid, cell, &local);
    *slot = place < 0 ? 0 : grid->table[place];
    return place < 0 ? 0 : local;
}

/* Since the sort before. What depends on particles alone need not be done again for a block without any. */
enum sk_block_change {
    SK_BLOCK_TOUCHED = 1, /* some of its particles moved, left or came */
    SK_BLOCK_NEAR = 2     /* that is so of it or one of its neighbours, or the block was not there */
};

enum sk_block_flag {
    SK_BLOCK_LIQUID = 1, /* has liquid cells */
    SK_BLOCK_KNOWN = 2,  /* has faces with a known velocity */
    SK_BLOCK_UNKNOWN = 4 /* has faces without */
};

selkie_code sk_grid_init(sk_grid *grid, int dimension, const int cells[3], const double low[3], double cell_size,
                         sk_memory *memory, selkie_error *error);
void sk_grid_free(sk_grid *grid);
/* Which fields the grid, which must be empty, has from now on: SK_FIELDS_LIQUID until then. */
selkie_code sk_grid_declare(sk_grid *grid, uint64_t fields, selkie_error *error);
/* Adds a field to an empty grid and returns its index in `fields`; -1 if there is no room. */
int sk_grid_add_field(sk_grid *grid, const sk_field_def *def, selkie_error *error);
/* Bytes of the tables that exist whatever the liquid does; to be asked before sk_grid_init. */
double sk_grid_table_bytes(int dimension, const int cells[3]);
/* Room to tell who left. */
selkie_code sk_grid_reserve_leavers(sk_grid *grid, selkie_error *error);
/* Room for the block fields. Content is not kept. */
selkie_code sk_grid_reserve_blocks(sk_grid *grid, size_t count, selkie_error *error);

/* Sorts the particles by block and cell (stable: ties keep their order, so the result does not depend on threads),
 * drops the dead ones, and gives the blocks their slots. Particles outside of the table's reach are an error. */
selkie_code sk_grid_sort_2d(sk_grid *grid, sk_particles *particles, int threads, selkie_error *error);
selkie_code sk_grid_sort_3d(sk_grid *grid, sk_particles *particles, int threads, selkie_error *error);

/* The same, to the same bits, for particles most of which are still in the block where the last sort found them: each
 * block sorts its own, and only those that left are dealt out. Falls back on the full sort where that will not do. */
selkie_code sk_grid_sort_again_2d(sk_grid *grid, sk_particles *particles, int threads, selkie_error *error);
selkie_code sk_grid_sort_again_3d(sk_grid *grid, sk_particles *particles, int threads, selkie_error *error);

#endif
