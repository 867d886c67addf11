/* Splashes by a trained model (Um et al. 2018) in any grid method.
 *
 * After the projection the model gives each particle near the surface the probability that it becomes a droplet within
 * the model's duration. Its hazard is -ln(1 - p) dt / duration; beyond a threshold drawn from Exp(1) it becomes a
 * droplet. So counts do not depend on the step. A cell makes at most one droplet within the
 * duration: a droplet of the training runs holds many particles. The droplet's change of velocity comes from
 * the model too, and the particles around it take the opposite impulse.
 *
 * Droplets fly by themselves: they have an age in the attribute "splash" and are apart from the others within a step.
 * At its end new ones are where they were in the store, and the others are its last particles: nothing else moves, so
 * that the next cell sort needs no full pass. A droplet that meets liquid or a solid becomes an ordinary particle
 * again. No particle is made or lost.
 */
#ifndef SK_METHODS_SPLASHES_SPLASHES_H
#define SK_METHODS_SPLASHES_SPLASHES_H

#include "learn/splash_model.h"
#include "methods/method.h"
#include "methods/splashes/splash_find_kernels.h"

extern const sk_method sk_method_splashes;

/* A particle that becomes a droplet at the end of the step. */
typedef struct sk_splash_event {
    int64_t particle;
    int32_t block, cell; /* its cell at the start of the step */
    float change[3];     /* m/s */
} sk_splash_event;

/* Two droplets below a particle's size around a droplet (splash.pairs), on opposite sides of it: its particle is their
 * centre of mass, so that mass and momentum stay those of the run. They are for files alone. */
typedef struct sk_splash_pair {
    uint32_t particle, id; /* id of the droplet's particle; of the one, the other has the next. From SK_SPLASH_PIECES */
    uint32_t flies;        /* scratch of a step: the droplet flies on, and nothing has stopped the pair */
    float offset[3];       /* m    from the particle to the one, less that to the other */
    float velocity[3];     /* m/s  relative to the particle */
} sk_splash_pair;
#define SK_SPLASH_PIECES 0x80000000u /* ids of particles are smaller */

/* The first of the pairs (by the droplet's particle) of a particle, or where it would be. */
SK_KERNEL size_t sk_splash_first_pair(const sk_splash_pair *pairs, size_t count, uint32_t particle)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (pairs[middle].particle < particle)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* What the flight of droplets in a step depends on. */
typedef struct sk_splash_flight {
    float dt, duration;     /* s    of the step; of the model */
    float gain[3];          /* m/s  of gravity */
    float drag, piece_drag; /* 1/m  of a droplet, and of those below a particle's size */
    sk_splash_pair *pairs;  /* [pair_count] by the droplet's particle */
    size_t pair_count;
} sk_splash_flight;

/* Key of a cell of the grid. */
SK_KERNEL uint64_t sk_splash_cell_key(const int cell[3])
{
    uint64_t key = 0;
    for (int d = 0; d < 3; d++)
        key = key << 21 | ((uint64_t)(int64_t)cell[d] & 0x1fffff);
    return key;
}

typedef struct sk_splashes {
    sk_splash_model model;
    sk_splash_options options;
    float speed;           /* m/s  that scales velocities */
    int every;             /*      steps: blocks take turns, and count so many steps at once. 1 where steps are long */
    sk_splash_looks looks; /* of the step */
    float calm_logit;      /*      expectation: cells whose outermost particle is below it are left out */

    /* Droplets while they are apart: records, then attributes, of each. */
    char *apart;
    size_t apart_count, apart_capacity, apart_bytes;

    /* The store at the end of the last step. */
    struct sk_splash_new {
        int64_t particle;
        int block;
    } * fresh; /* [fresh_count] new droplets, in the order of the store */
    size_t fresh_count, fresh_capacity;
    int64_t count_after;
    uint64_t moves_after;
    int were_in_order;

    sk_splash_event *events;
    size_t event_count, event_capacity;
    const uint32_t *material;     /* [particles] of the phase; NULL = all materials are liquids */
    const float *liquid_fraction; /* [particles] likewise; NULL = none freezes */
    uint8_t *chosen;              /* [particles] of this step */
    uint8_t *marked;              /* [blocks] 1: has chosen ones */
    size_t marked_capacity;
    float (*change)[3];
    size_t chosen_capacity, change_capacity;

    struct sk_splash_counts {
        int64_t made, reverted, returned;
        int64_t looks, beyond; /* at cells; at cells with features beyond those of training */
        int64_t pieces;        /* droplets below a particle's size */
        int64_t recent, pairs; /* number of those in a checkpoint */
    } counts;                  /* since the start, in checkpoints */

    /* Cells that have made a droplet within the last duration, by key, in checkpoints: they make no other. */
    struct sk_splash_cell {
        uint64_t key;
        double until; /* s */
    } * recent;
    size_t recent_count, recent_capacity;
    sk_splash_pair *pairs; /* [pair_count] by the droplet's particle, in checkpoints */
    size_t pair_count, pair_capacity;
    char *saved; /* counts, recent cells and pairs in one piece */
    size_t saved_capacity;
    int64_t flying; /* with new ones */
    int counted;    /* `flying` is that of the particles; not so after a checkpoint */
} sk_splashes;

/* Sets the attributes that say which particles are liquid, for the functions below. */
static inline void sk_splash_find_attributes(const sk_step *step, sk_splashes *s)
{
    const sk_attribute *material = sk_particles_find_attribute(&step->particles, "material");
    const sk_attribute *fraction = sk_particles_find_attribute(&step->particles, "liquid_fraction");
    s->material = step->liquid_mask && material ? material->data : NULL;
    s->liquid_fraction = fraction ? (const float *)(const void *)fraction->data : NULL;
}

/* Is a particle liquid? Those of bodies, frozen ones and elastoplastic points neither leave nor take an impulse. */
static inline int sk_splash_is_liquid(const sk_step *step, const sk_splashes *s, int64_t p)
{
    return !(s->material && !step->liquid_mask[s->material[p] % SK_TRANSFER_MATERIALS]) &&
           !(s->liquid_fraction && s->liquid_fraction[p] < 0.5f);
}

/* How often a cell is looked at, and what a look in this step depends on. */
void sk_splash_begin_looks(const sk_step *step, sk_splashes *s);
/* Does a source drive a particle with these flags, or is it no longer there? It makes no splash. */
SK_KERNEL int sk_splash_is_driven(uint32_t flags)
{
    return (flags & ~(uint32_t)(SK_PARTICLE_INSIDE | SK_PARTICLE_FLYING)) != 0;
}
/* Marks the particles that become droplets, with their changes of velocity. */
selkie_code sk_splash_find_2d(sk_step *step, selkie_error *error);
selkie_code sk_splash_find_3d(sk_step *step, selkie_error *error);
/* Takes the droplets out of the particles; moves them and puts them back. */
selkie_code sk_splash_part(sk_step *step, selkie_error *error);
selkie_code sk_splash_fly(sk_step *step, selkie_error *error);

/* Parts of the flight. What it depends on; cells whose time is over are forgotten, and the others in order; a droplet
 * has been made of a particle (by id) in a cell (by key). */
sk_splash_flight sk_splash_begin_flight(const sk_step *step, const sk_splashes *s);
void sk_splash_tidy_cells(sk_splashes *s, double time);
selkie_code sk_splash_note(const sk_step *step, sk_splashes *s, uint32_t particle, uint64_t key, selkie_error *error);

/* Does a solid stop a path between two points (m)? If so, `to` becomes the place where it ends, and `velocity` (m/s;
 * may be NULL) loses its part into the solid. */
int sk_splash_stop(const sk_step *step, const float from[3], float to[3], float velocity[3]);
int sk_splash_in_solid(const sk_step *step, const float position[3]);

/* Pairs: makes those of a new droplet (by id); removes those that have ended or whose droplet has; brings them in
 * order. */
selkie_code sk_splash_add_pairs(const sk_step *step, sk_splashes *s, uint32_t particle, selkie_error *error);
void sk_splash_end_pairs(sk_splashes *s);
void sk_splash_sort_pairs(sk_splashes *s);

/* A droplet below a particle's size, for files. */
typedef struct sk_splash_piece {
    float position[3], velocity[3], age; /* m, m/s, s */
    uint32_t id, particle;               /* of its own; of the droplet's particle */
} sk_splash_piece;
/* Those of the droplets now; room for 2 x pair_count. Returns their number. */
size_t sk_splash_list_pieces(const sk_step *step, sk_splash_piece *pieces);

/* Attributes: seconds in flight, 0 in the liquid; for splash.sampling expectation, the sum of Eq. 7 and the part of the
 * duration that it covers. */
#define SK_SPLASH_AGE "splash"
#define SK_SPLASH_WINDOW "splash_window"

#endif
