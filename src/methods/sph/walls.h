/* What stands behind sk_sph_boundary; for boundary.c and coupling_dim.c. */
#ifndef SK_METHODS_SPH_WALLS_H
#define SK_METHODS_SPH_WALLS_H

#include "methods/sph/boundary.h"

typedef struct wall_part {
    size_t first, count;
    int obstacle, body; /* -1: none; both: the domain's walls */
    int moves, no_slip;
    int wants_force;    /* a probe asks */
} wall_part;

typedef struct sk_sph_walls {
    int part_count;
    wall_part *parts;
    sk_sph_body *bodies;            /* [part_count] */
    size_t count, local_capacity;   /* boundary particles, part after part */
    float (*local)[3];              /* m  as drawn */
    float *volume;
    sk_boundary_particle *unsorted, *sorted;
    uint32_t *places;               /* of the block in the grid's table; UINT32_MAX outside */
    uint16_t *cells;
    int32_t *table;
    uint32_t *cell_start;
    size_t cell_capacity;
    int moving, placed;

    sk_sph_contact *contacts;
    size_t contact_capacity;
    uint32_t *block_contacts;       /* [particle_blocks + 1] */
    size_t block_capacity;
    float *body_term;
    size_t term_capacity;
} sk_sph_walls;

#endif
