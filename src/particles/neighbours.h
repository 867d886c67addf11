/* Neighbour search: which particles are near a cell, near a point, near each other.
 *
 * Particles stand in the order of their cells. A cell index says where those of each cell are. Candidates are the
 * particles of the cells around one; a test of the distance keeps the near ones. Answers come in a fixed order: cell
 * after cell, x fastest, and in a cell as the particles stand. They do not depend on threads.
 *
 *   sk_cells_around           the candidates of a cell, for callers with a test of their own
 *   sk_neighbours_within      the particles near one point
 *   sk_neighbour_lists_build  a list for every particle
 *
 * neighbour_tile.h is the vectorised form of the search: the same candidates in the same order, eight at a time.
 *
 * The cells are those of the last sort. Particles that moved since then still find each other if the two together moved
 * less than reach x cell size - radius.
 */
#ifndef SK_PARTICLES_NEIGHBOURS_H
#define SK_PARTICLES_NEIGHBOURS_H

#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "particles/cell_index_kernels.h"
#include "particles/store.h"

/* The points of the cells that are at most `reach` cells from `cell` along each axis, without empty ones. Returns how
 * many ranges; there is room for (2 reach + 1)^dimension. */
int sk_cells_around_2d(const sk_cell_index *index, const int cell[3], int reach, sk_cell_range *ranges);
int sk_cells_around_3d(const sk_cell_index *index, const int cell[3], int reach, sk_cell_range *ranges);

typedef struct sk_neighbour_search {
    const sk_cell_index *index;
    const sk_particle *records;
    float radius2;  /* m2  neighbours are closer than the square root of this */
    int reach;      /*     cells around a particle's own that are searched */
    uint32_t group; /*     particles of a cell with the same rank / group see each other; 0: all do. A limit of the work
                     *     where far too many particles are in a cell; the relation stays symmetric */
} sk_neighbour_search;

/* The place of one point in a search. */
typedef struct sk_neighbour_place {
    const sk_cell_range *ranges; /* of the cells around its own: sk_cells_around */
    int range_count;
    const float *position; /* m */
    uint32_t self;         /*   particle that is not its own neighbour; UINT32_MAX: none */
    uint32_t rank;         /*   of the particle in its cell; 0 for a point */
} sk_neighbour_place;

/* Returns how many particles are near; `found` (may be NULL) gets their numbers. */
uint32_t sk_neighbours_within_2d(const sk_neighbour_search *search, const sk_neighbour_place *place, uint32_t *found);
uint32_t sk_neighbours_within_3d(const sk_neighbour_search *search, const sk_neighbour_place *place, uint32_t *found);

/* The neighbours of every particle, one list after the other. */
typedef struct sk_neighbour_lists {
    sk_memory *memory;
    uint64_t *first;      /* [particles + 1] where the list of each begins in `neighbours` */
    uint32_t *neighbours; /* [first[particles]] numbers of particles */
    size_t first_capacity, neighbour_capacity;
} sk_neighbour_lists;

/* The index must have coordinates. Memory is kept from one call to the next. */
selkie_code sk_neighbour_lists_build_2d(sk_neighbour_lists *lists, const sk_neighbour_search *search, int threads,
                                        selkie_error *error);
selkie_code sk_neighbour_lists_build_3d(sk_neighbour_lists *lists, const sk_neighbour_search *search, int threads,
                                        selkie_error *error);
void sk_neighbour_lists_free(sk_neighbour_lists *lists);

#endif
