/* Frozen regions: particles of less than half liquid move as rigid bodies.
 *
 * A body is a connected set of cells in which at least half of the particles are solid, with the solid particles in
 * them and beside them. It has no state of its own: mass, centre, velocity and angular velocity are those of its
 * particles, so that particles freeze on, melt off and bodies fall apart or join without a jump; mass, momentum and
 * angular momentum are kept. Bodies that touch join.
 *
 * In the pressure solve a body is as a rigid body of a shape (docs/decisions/0025-bodies-on-the-grid.md): it takes the
 * share phi of a face that its particles have there, and its motion is part of the system. Faces that it covers are
 * closed and move with it. Its particles then move rigidly. A body that touches a surface colder than its melting point
 * is held by it. Against other surfaces there are inelastic contacts.
 *
 * The density of the solid acts on its weight alone: particles keep their mass and volume.
 */
#ifndef SK_METHODS_HEAT_FROZEN_H
#define SK_METHODS_HEAT_FROZEN_H

#include "methods/method.h"

extern const sk_method sk_method_frozen;

enum {
    SK_FROZEN_LEAST_CELLS = 3,  /* smaller pieces flow with the liquid */
    SK_FROZEN_MOST_BODIES = 256 /* further pieces flow as well */
};

typedef struct sk_frozen_body {
    double mass, weight;    /* kg  the second with the density of the solid */
    double centre[3];       /* m */
    double low[3], high[3]; /* m  bounds of its particles at the start of the step */
    double velocity[3];     /* m/s  at the start of the step */
    double turning[3];      /* rad/s */
    double inverse_inertia[9];
    double solved[3], solved_turning[3]; /* m/s, rad/s  before, then after the pressure solve */
    double met[3], met_turning[3];       /* m/s, rad/s  what surfaces change of it before the solve */
    double final[3], final_turning[3];   /* m/s, rad/s  at the end of the step */
    int held;                            /* by a cold surface */
} sk_frozen_body;

/* Particles of one body that a thread takes at a time. Sums of spans are added in order, for the same bits on any
 * number of threads. */
typedef struct sk_frozen_span {
    int body;
    uint32_t begin, end; /* of `members` */
} sk_frozen_span;

enum { SK_FROZEN_SPAN = 2048 };

/* Bodies of the particles in a cell: one for all of them, or these. */
enum { SK_FROZEN_NONE = -1, SK_FROZEN_EMPTY = -2, SK_FROZEN_MIXED = -3 };

typedef struct sk_frozen {
    const sk_inlet none; /* makes the solids keep velocities */
    int body_count;
    sk_frozen_body bodies[SK_FROZEN_MOST_BODIES];
    int32_t *labels;   /* [blocks][cells] body of a cell, -1 = none */
    uint8_t *marked;   /* [blocks] has solid particles in it or beside it */
    uint8_t *shared;   /* [blocks] a body has a share in a lower face */
    float *share[3];   /* [blocks][cells] of a body in the lower faces */
    int16_t *owner[3]; /* [blocks][cells] the body */
    int32_t *queue;    /* cells of the search for bodies */
    size_t label_capacity, mark_capacity, shared_capacity, share_capacity[3], owner_capacity[3], queue_capacity;
    int64_t particle_count;
    int16_t *body_of;   /* [particles] body, -1 = none */
    float (*before)[3]; /* [particles] m  positions at the start of the step */
    int16_t *content;   /* [blocks][cells] bodies of the particles */
    uint32_t *members;  /* particles of bodies, by body, in order */
    uint8_t *touching;  /* [members] near a surface; scratch */
    sk_frozen_span *spans;
    uint32_t first_member[SK_FROZEN_MOST_BODIES + 1];
    int span_count;
    size_t body_of_capacity, before_capacity, content_capacity, member_capacity, touching_capacity, span_capacity;
    sk_poisson_modes modes;
    sk_poisson_mode_entry *entries;
    size_t entry_capacity;
    double (*response)[SK_POISSON_MODES][SK_POISSON_MODES]; /* [SK_FROZEN_MOST_BODIES] */
    int64_t solid_count;                                    /* particles of bodies after the last step */
    double lifted[3];                                       /* kg m  sum of (weight - mass) x position of them */
    int coupled;                                            /* bodies are in the pressure solve of this step */
} sk_frozen;

/* Is a particle solid? */
SK_KERNEL int sk_frozen_is_solid(const float *liquid_fraction, int64_t p)
{
    return liquid_fraction[p] < 0.5f;
}

/* Density of the solid over that of the liquid. */
static inline double sk_frozen_relative_weight(const selkie_material_def *material)
{
    return material->solid_density > 0.0 ? material->solid_density / material->density : 1.0;
}

/* Velocity of a body at a point (m), along axis d. */
SK_KERNEL double sk_frozen_velocity(const double velocity[3], const double turning[3], const double arm[3], int d)
{
    const int e = (d + 1) % 3, f = (d + 2) % 3;
    return velocity[d] + turning[e] * arm[f] - turning[f] * arm[e];
}

/* Position of a particle of a body after the step. */
static inline void sk_frozen_predict(const sk_frozen_body *body, const double velocity[3], const double rotation[9],
                                     double dt, const float before[3], int dimension, double x[3])
{
    double arm[3] = {0.0, 0.0, 0.0};
    for (int d = 0; d < dimension; d++)
        arm[d] = (double)before[d] - body->centre[d];
    for (int d = 0; d < 3; d++)
        x[d] = body->centre[d] + dt * velocity[d] + rotation[3 * d] * arm[0] + rotation[3 * d + 1] * arm[1] +
               rotation[3 * d + 2] * arm[2];
}

/* Contacts of a body with sides and obstacles: its velocity loses what points into them. Particles are at their
 * positions at the start of the step, or moved; those within `reach` (m) of a surface count. Adds the translation out
 * of the surfaces to `shift` if it is not NULL. */
typedef struct sk_frozen_contact {
    int body;
    double *velocity, *turning; /* [3] changed */
    double reach;               /* m */
    double *shift;              /* m [3] */
} sk_frozen_contact;

/* Parts of `push` and `move`, for a grid elsewhere: bodies take the impulses of the pressure, from flux times q of each
 * (`answer`); their particles move, whose store may hold those around them alone (`move_bodies`). */
#define SK_FROZEN_FUNCTIONS(dim)                                                                                       \
    selkie_code sk_frozen_hold_##dim(sk_step *step, selkie_error *error);                                              \
    selkie_code sk_frozen_find_##dim(sk_step *step, selkie_error *error);                                              \
    selkie_code sk_frozen_couple_##dim(sk_step *step, selkie_error *error);                                            \
    selkie_code sk_frozen_push_##dim(sk_step *step, selkie_error *error);                                              \
    selkie_code sk_frozen_move_##dim(sk_step *step, selkie_error *error);                                              \
    void sk_frozen_answer_##dim(sk_step *step, const double(*sums)[SK_POISSON_MODES]);                                 \
    selkie_code sk_frozen_move_bodies_##dim(sk_step *step, selkie_error *error);                                       \
    void sk_frozen_touch_##dim(const sk_step *step, const sk_frozen *frozen, const sk_frozen_contact *contact);

SK_FROZEN_FUNCTIONS(2d)
SK_FROZEN_FUNCTIONS(3d)

#endif
