/* Particles: a packed record for the values of every step, and named attributes for values that a method adds.
 *
 * The record has 32 bytes. The cell sort moves it as one vector. A transfer to the grid reads it front to back, and a
 * transfer from the grid turns eight records into lanes with a few shuffles. docs/decisions/0007-particle-layout.md
 * compares it with separate arrays; `make bench` measures both.
 *
 * Attributes are arrays of their own, permuted together with the records. Records and attributes have two copies: the
 * sort reads one and writes the other.
 */
#ifndef SK_PARTICLES_STORE_H
#define SK_PARTICLES_STORE_H

#include <stdint.h>
#include "base/memory.h"
#include "base/status.h"

typedef struct sk_particle {
    float position[3]; /* m, relative to domain.origin; z = 0 in 2D */
    float velocity[3]; /* m/s */
    uint32_t id;       /* unique in a run */
    uint32_t flags;    /* sk_particle_flag */
} sk_particle;

/* The record as eight floats, for vectors of lanes. */
static inline float *sk_particle_floats(const sk_particle *record)
{
    return (float *)(void *)record;
}

enum sk_particle_flag {
    SK_PARTICLE_DEAD = 1u,   /* removed by the next sort */
    SK_PARTICLE_INSIDE = 2u, /* inside a solid; the density projection moves it out */
    /* Roles in SPH with liquid boundaries (Cornelis et al. 2015); a fluid particle has neither. */
    SK_PARTICLE_CANDIDATE = 4u,
    SK_PARTICLE_BOUNDARY = 8u,
    SK_PARTICLE_FLYING = 16u, /* no pressure acts near it: it moves with its own velocity */
    SK_PARTICLE_DRIVEN = 32u  /* inside a running source: it moves with the velocity of the source */
};

enum {
    SK_MAX_ATTRIBUTES = 16,
    SK_PARTICLES_BEYOND = 16 /* records and attributes beyond the last that may be read; their values are arbitrary */
};

typedef struct sk_attribute {
    char name[32];
    int components; /* 4-byte values of a particle */
    int is_integer;
    uint32_t *data;  /* [capacity][components], floats or integers */
    uint32_t *spare; /* the second copy, for the sort */
} sk_attribute;

typedef struct sk_particles {
    sk_memory *memory;
    int64_t count;
    size_t capacity;
    sk_particle *records;
    sk_particle *spare;
    float *carried; /* [3][count] m/s  the grid's velocity at the current positions, NaN if unknown; NULL if not sampled
                       since the last move. Stored in the spare records. */
    int in_order;   /* particles are in the order of the last cell sort, none dropped; positions may have changed. A few
                       may follow behind them: see sk_grid_sort_again */
    uint64_t moves; /* number of position changes: sk_particles_moved */
    int attribute_count;
    sk_attribute attributes[SK_MAX_ATTRIBUTES];
    uint32_t next_id;
} sk_particles;

void sk_particles_init(sk_particles *particles, sk_memory *memory);
void sk_particles_free(sk_particles *particles);
/* Reserves room for `count` particles. Content is kept, new attribute values are zero. */
selkie_code sk_particles_reserve(sk_particles *particles, int64_t count, selkie_error *error);
/* Adds an attribute, or finds an existing one. NULL if there is no room. */
sk_attribute *sk_particles_add_attribute(sk_particles *particles, const char *name, int components, int is_integer);
sk_attribute *sk_particles_find_attribute(const sk_particles *particles, const char *name);
/* Must be called after each change of positions or of the set of particles. It invalidates data derived from
 * positions: carried velocities and lists of migrating particles. */
static inline void sk_particles_moved(sk_particles *particles)
{
    particles->moves++;
    particles->carried = NULL;
}
/* Appends one particle with a fresh id; room must have been reserved. */
sk_particle *sk_particles_append(sk_particles *particles, const double position[3], const double velocity[3]);
/* Removes dead particles; the others keep their order. The sort does so too: this is for callers before the next sort.
 */
void sk_particles_drop_dead(sk_particles *particles);
void sk_particles_drop_dead_by(sk_particles *particles, int threads);
/* Scratch of at least 3 floats a particle, until the next sort or change of their number. */
static inline float *sk_particles_scratch(const sk_particles *particles)
{
    return (float *)(void *)particles->spare;
}
/* Exchanges the two copies after a sort. */
void sk_particles_swap(sk_particles *particles);

#endif
