/* The liquid's surface over a point of the floor, and its mean over an area, for probes of type height and level.
 *
 * Both fill columns of cells along the up direction with the current particles, by the trilinear kernel. They follow
 * the fill from below up to the first crossing of 0.5.
 *
 * Nodes are cell centres, with one more before and one behind the domain. A particle lies in an interval between nodes:
 * the row (its nodes before it along both axes across up) and the node below it. It adds to eight sums of its interval,
 * four columns times two nodes; those of a tile of intervals are then added to the nodes. Sums are whole numbers, parts
 * of a particle: they do not depend on the order of the particles or on the threads.
 */
#ifndef SK_WORLD_COLUMNS_H
#define SK_WORLD_COLUMNS_H

#include "grid/columns_kernels.h"
#include "methods/step.h"
#include "world/deep_cells.h"

/* Intervals of a row that are marked, joined and cleared together. */
enum { sk_column_group = 16, sk_several_probes = 255 };

enum { sk_most_column_parts = 8, sk_tile_intervals = 11 };

/* Sums of a block's particles, near each other in memory, before they are added to those of the nodes. All 0 between
 * calls. */
typedef struct sk_column_tile {
    /* [planes][rows][intervals] of two columns, below and then above: a plane has those of the intervals before it too
     */
    _Alignas(64) uint32_t sums[(sk_tile_intervals + 1) * sk_tile_intervals * sk_tile_intervals][4];
    uint8_t used[sk_tile_intervals * sk_tile_intervals]; /* has the row particles? */
    uint8_t near[sk_tile_intervals * sk_tile_intervals]; /* as sk_columns.near */
    int from[3];                                         /* its first interval in the slab */
    int open;                                            /* does it hold any? */
} sk_column_tile;

typedef struct sk_columns {
    sk_memory *memory;
    sk_deep_cells deep;            /* cells surely inside the liquid; none if no level is measured */
    int height_count, level_count; /* probes of these types */
    int axis[2]; /* across up: the longer axis of the domain, along which slabs follow each other, and the other one; -1
                    in 2D */
    int parts;   /* threads that add particles, each to sums of its own; 0 = no probe of these types */
    size_t length; /* nodes of a column, a multiple of a group */
    float *walks;  /* [threads][length] fill of a column */

    uint8_t *near; /* [cells along axis[0] + 1][rows][groups of a row, 1 without levels] the height probe within a cell
                      of a row, counted from 1; 0 = none */
    float (*middles)[4]; /* [probes] place of a height probe in nodes, and 1; else 0 */
    size_t height_room;  /* sums of a part */
    uint32_t *heights;   /* [parts][probes][length] parts of particles around each height probe */

    int rows;              /* of a plane */
    int thickness;         /* planes of a slab along axis[0] */
    size_t room;           /* nodes of a slab */
    uint32_t *rooms;       /* [parts][room] parts of particles at the nodes */
    uint8_t *touched;      /* [parts][room / group] do its nodes hold any? If not, its sums are not set. All 0 between
                              measurements */
    sk_column_tile *tiles; /* [parts] */
    double *sums;          /* [probes][planes][2] heights (m) times covered shares, and the sum of these shares */
    double *levels;        /* [probes] m */

    /* Sums that the device has made: as `rooms` and `heights` of one part, of all planes. NULL = there are none. */
    const uint32_t *added_nodes, *added_heights;
} sk_columns;

/* Columns whose sums are kept at a time: some planes of cells along axis[0], with one more on each side. */
typedef struct sk_slab {
    int from, to; /* planes that are measured */
} sk_slab;

/* Allocates memory if the scene has a probe of these types. */
selkie_code sk_columns_init(sk_columns *columns, const sk_step *step, selkie_error *error);
void sk_columns_free(sk_columns *columns);
/* Can particles be added block by block as they move? Not if the sums have no room for all of them at a time. */
int sk_columns_can_watch(const sk_columns *columns, const sk_step *step);
/* Before the particles move: forgets all sums, and finds the cells that lie surely inside the liquid. */
selkie_code sk_columns_begin(sk_columns *columns, const sk_step *step, selkie_error *error);
void sk_columns_see(sk_columns *columns, const sk_step *step, const sk_moved_block *block, int part);
/* Adds the current particles to the columns of all probes, in one pass, and measures the levels: the mean height (m) of
 * the liquid's surface over the floor of the domain, in each probe's area; NaN if obstacles cover all of it. */
/* If `seen`, the particles were shown to sk_columns_see. */
void sk_columns_fill(sk_columns *columns, const sk_step *step, int seen);
/* Nodes of all columns whose sums are needed, and where they are. */
size_t sk_columns_nodes(const sk_columns *columns, const sk_step *step);
sk_column_frame sk_columns_frame(const sk_columns *columns, const sk_step *step);
/* The height (m) of the liquid above a probe, from its filled column. */
double sk_column_height(const sk_columns *columns, const sk_step *step, int probe);

/* The parts of that pass. Adds particles to the sums of a part. */
void sk_columns_scan(const sk_columns *columns, const sk_step *step, const sk_slab *slab, int part,
                     const sk_particle *records, int64_t count);
/* Adds the particles of a block that moved. Cells surely inside the liquid before the move count as full where their
 * first particle is now. */
void sk_columns_scan_block(const sk_columns *columns, const sk_step *step, int part, const sk_moved_block *block);
/* Adds the sums of the other parts to those of the first one, of a row. */
void sk_columns_join(const sk_columns *columns, int row);
/* The fill at the nodes of a column: sums times `part`. If `stops`, groups behind one with four empty nodes in a row
 * are not read or set. */
void sk_columns_read(const sk_columns *columns, int row, int stops, float part, float *fill);
/* The first node from `first` on that is less than half full as the next one is; `end` if there is none before it. The
 * node `end` - 1 has no next one. */
int sk_columns_find_thin(const float *fill, int first, int end);

#endif
