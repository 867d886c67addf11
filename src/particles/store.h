/* Particles: a packed record for what every step touches, and named attributes for what a method adds.
 *
 * The record is 32 bytes: the cell sort moves it as one vector, a transfer to the grid reads it front to back, and a
 * transfer from the grid turns eight of them into lanes with a few shuffles. Separate arrays of the same values were
 * slower to permute and no faster to read (docs/decisions/0007-particle-layout.md; `make bench` measures it again).
 *
 * Attributes are arrays of their own, permuted together with the records. Both live twice, because the sort writes
 * from one copy into the other.
 */
#ifndef SK_PARTICLES_STORE_H
#define SK_PARTICLES_STORE_H

#include <stdint.h>
#include "base/memory.h"
#include "base/status.h"

typedef struct sk_particle {
    float position[3]; /* m, world; z = 0 in 2D */
    float velocity[3]; /* m/s */
    uint32_t id;       /* unique in a run */
    uint32_t flags;    /* sk_particle_flag */
} sk_particle;

/* The record as eight floats, as vectors of lanes are made of it. */
static inline float *sk_particle_floats(const sk_particle *record)
{
    return (float *)(void *)record;
}

enum sk_particle_flag {
    SK_PARTICLE_DEAD = 1u,   /* removed by the next sort */
    SK_PARTICLE_INSIDE = 2u, /* in a solid, on its way out by the density projection */
    /* Roles in SPH with liquid boundaries (Cornelis et al. 2015); a fluid particle has neither. */
    SK_PARTICLE_CANDIDATE = 4u,
    SK_PARTICLE_BOUNDARY = 8u,
    SK_PARTICLE_FLYING = 16u /* no pressure acts near it: it goes straight on with its own velocity */
};

enum {
    SK_MAX_ATTRIBUTES = 16,
    SK_PARTICLES_BEYOND =
        16 /* so many records and attributes beyond the last may be read: there is something, whatever it is */
};

typedef struct sk_attribute {
    char name[32];
    int components; /* 4-byte values of a particle */
    int is_integer;
    uint32_t *data;  /* [capacity][components], floats or integers */
    uint32_t *spare; /* the sort's other half */
} sk_attribute;

typedef struct sk_particles {
    sk_memory *memory;
    int64_t count;
    size_t capacity;
    sk_particle *records;
    sk_particle *spare;
    float *carried; /* [3][count] m/s  the grid's velocity where the particles are now, NaN where it is unknown; NULL if
                     * nobody has sampled it since they last moved. Lives in the spare records. */
    int in_order;   /* they stand as the last cell sort left them, none added and none dropped, wherever they are now */
    uint64_t moves; /* how often positions have changed: sk_particles_moved */
    int attribute_count;
    sk_attribute attributes[SK_MAX_ATTRIBUTES];
    uint32_t next_id;
} sk_particles;

void sk_particles_init(sk_particles *particles, sk_memory *memory);
void sk_particles_free(sk_particles *particles);
/* Room for `count` particles; content is kept, new attribute values are zero. */
selkie_code sk_particles_reserve(sk_particles *particles, int64_t count, selkie_error *error);
/* Adds an attribute, or finds it if it exists. NULL if there is no room. */
sk_attribute *sk_particles_add_attribute(sk_particles *particles, const char *name, int components, int is_integer);
sk_attribute *sk_particles_find_attribute(const sk_particles *particles, const char *name);
/* Whoever changes positions, or the set of particles, says so here. What was found out about positions before (the
 * carried velocities, lists of migrating particles) no longer holds. */
static inline void sk_particles_moved(sk_particles *particles)
{
    particles->moves++;
    particles->carried = NULL;
}
/* Appends one particle with a fresh id; room must have been reserved. */
sk_particle *sk_particles_append(sk_particles *particles, const double position[3], const double velocity[3]);
/* Takes the dead ones out; the others keep their order. The sort does so too: this is for who cannot wait for it. */
void sk_particles_drop_dead(sk_particles *particles);
/* Memory for 3 floats a particle and more, until the next sort or change of their number. */
static inline float *sk_particles_scratch(const sk_particles *particles)
{
    return (float *)(void *)particles->spare;
}
/* Exchanges the two copies after a sort. */
void sk_particles_swap(sk_particles *particles);

#endif
