/* Bodies of particles in the liquid of the grid methods: shape matching (Mueller et al. 2005) with FLIP (Gao et al.
 * 2017).
 *
 * A body is a shape filled with particles of a material of kind rigid or soft. Its particles are records like those of
 * the liquid, for the grid, for pictures and files. Their true positions and velocities are the points here, in double
 * precision. A step:
 *
 *   match    v += alpha (goal - x) / dt, alpha = 4 sin^2(stiffness dt / 2): momentum and angular momentum stay
 *   place    the records take position and velocity of the points, after the density projection moved the liquid
 *   mix      two velocities a face: of the liquid u_l, of the bodies u_s, with phi the share of the bodies in the
 *            particles around the face. The pressure sees (1 - phi) u_l + phi u_s and moves it by the lightness
 *            (1 - phi) / density_l + phi / density_s (two velocities, one constraint: Boyd and Bridson 2012)
 *   part     after the pressure each velocity takes its own change; bodies take theirs to the points
 *   follow   x += dt v
 *
 * A body without liquid near it feels no pressure: the grid cannot change its angular momentum.
 */
#ifndef SK_METHODS_SHAPE_MATCHING_H
#define SK_METHODS_SHAPE_MATCHING_H

#include "geom/shape.h"
#include "methods/method.h"
#include "methods/mixture.h"

extern const sk_method sk_method_shape_matching;

/* A particle of a body. */
typedef struct sk_soft_point {
    double position[3]; /* m */
    double velocity[3]; /* m/s */
    double rest[3];     /* m  in the shape as drawn */
} sk_soft_point;

typedef struct sk_soft_state {
    double flow[9];             /*       change of the rest shape by plastic flow, of the whole body */
    double position[3];         /* m     of the centre of mass */
    double rotation[9];         /*       from the drawn to the current orientation, row-major */
    double velocity[3];         /* m/s   of the centre of mass */
    double angular_velocity[3]; /* rad/s */
    double force[3];            /* N     of the liquid, mean over the last step (2D: for a metre of depth) */
    double torque[3];           /* N m   likewise, about the centre of mass */
} sk_soft_state;

/* Some particles of a body that share a goal: all of them, or a cluster. */
typedef struct sk_soft_region {
    int body;
    int is_frame;            /* of a body with clusters: gives its orientation, but pulls nothing */
    uint32_t first, count;   /* of `members`, or of the points of the body */
    const uint32_t *members; /* points; NULL = first .. first + count - 1 */
    double flow[9];          /* change of the rest shape by plastic flow */
    double centre[3];        /* m  of the rest shape */
    double middle[9];        /* means of the quadratic columns */
    double inverse[81];      /* of the moments of the columns over the mass, row-major */
    int columns;             /* of the map that its rest shape supports */
    int is_ready;            /* the moments are those of the rest shape */
} sk_soft_region;

/* Sums over the points of a body that are left, about the position of its state. They hold from `place` to `follow`. */
typedef struct sk_soft_moments {
    double count;
    double first[3];  /* m */
    double second[6]; /* m2  xx xy xz yy yz zz */
} sk_soft_moments;

typedef struct sk_soft_body {
    int number; /* in the scene */
    int material;
    const selkie_body_def *def;
    selkie_soft_def soft;
    sk_shape *shape;        /* as drawn; NULL once the points are made */
    uint32_t first, count;  /* points */
    double mass;            /* kg of a particle */
    int is_wet;             /* liquid touches it in this step */
    double low[3], high[3]; /* m  bounds of its points */
    sk_soft_moments moments;
    uint32_t first_outer, outer_count; /* of `outer` */
} sk_soft_body;

/* Points of one body that a thread takes at a time. Sums of spans are added in order, for the same bits on any number
 * of threads. */
typedef struct sk_soft_span {
    int body;
    uint32_t begin, end;
} sk_soft_span;

enum { SK_SOFT_SPAN = 2048 };

/* Largest stiffness times step that acts: 60 degrees of the swing. */
#define SK_SOFT_ANGLE 1.0471975511965976

typedef struct sk_soft {
    int body_count, region_count;
    uint32_t point_count, first_id; /* point k is the particle with the id first_id + k */
    sk_soft_body *bodies;
    sk_soft_region *regions;
    uint32_t *members;
    float *shares;        /* [points] 1 / clusters that hold it */
    float (*surfaces)[4]; /* [points] normal of the surface nearest at rest, and its distance (m) */
    uint32_t *outer;      /* points of the first layer below a surface, by body */
    sk_soft_span *spans;  /* [span_count] all points, by body */
    int span_count;
    double spacing;          /* m  of points at rest */
    uint8_t *crowded;        /* [cells] holds points; scratch */
    uint8_t *crowded_blocks; /* [blocks] likewise */
    double (*late)[3];       /* [points] m/s  change of the velocity after the move by Eq. 4; NULL = no body has it */
    uint8_t *wet;            /* [bodies of the scene + 1] liquid touches body n - 1 in this step */
    int wet_count;
    float (*from)[3]; /* [particles] m  before the move */
    uint8_t *shared;  /* [blocks] bodies have a share in a face, since `mix` */
    void *tasks;      /* of the search for contacts; scratch */
    size_t from_capacity, shared_capacity, task_capacity;
    const uint32_t *owner; /* [particles] body counted from 1 */
    int64_t *record;       /* [points] index of the record since the last sort, -1 = gone */
    uint8_t liquid_mask[SK_TRANSFER_MATERIALS], solid_mask[SK_TRANSFER_MATERIALS];
    sk_mixture mixture;
    int is_placed;   /* the records are at their points since the last `follow`, and `sort` needs no other */
    int is_stepping; /* between match and follow; other runs of the phases only measure */
    int64_t left;    /* points that are still particles of a body */

    /* The state for checkpoints, one piece of memory. */
    void *state;
    uint64_t state_bytes;
    sk_soft_state *states; /* [body_count] */
    double (*flows)[9];    /* [region_count] */
    sk_soft_point *points; /* [point_count] */
    double *number;        /* first_id: a world that is built anew of a changed scene counts other particles */
} sk_soft;

/* The particles that the bodies of a scene will have, from a step with a grid and without particles. */
selkie_code sk_soft_count(const sk_step *step, int64_t *count, selkie_error *error);

/* The regions of all bodies, from their records at the start. */
selkie_code sk_soft_make_regions(sk_step *step, const sk_particle *records, selkie_error *error);

/* Where the records are on a device: copies of their velocities and places, and of the points, by
 * the number of the point. */
void sk_soft_give_velocities(const sk_step *step, float (*velocities)[3]);
void sk_soft_take_places(sk_step *step, const float (*places)[3]);
void sk_soft_give_points(const sk_step *step, int of_velocity, double (*values)[3]);
void sk_soft_take_changes(const sk_step *step, const float (*from)[3], double *changes);

struct soft_response;
struct sk_soft_inside;

static inline int sk_soft_is_unilateral(const sk_step *step)
{
    return step->scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL;
}

/* All particles are those of bodies, which the grid has nothing to tell. Rigid shapes feel them by the pressure. */
static inline int sk_soft_is_dry(const sk_step *step)
{
    return step->soft->left == step->particles.count && !sk_soft_is_unilateral(step) && !step->rigid;
}

/* Does nothing but `follow` move the records of dry bodies? */
int sk_soft_keeps_records(const sk_step *step);

#define SK_SOFT_PHASES(dim)                                                                                            \
    selkie_code sk_soft_match_##dim(sk_step *step, selkie_error *error);                                               \
    selkie_code sk_soft_match_plain_##dim(sk_step *step, selkie_error *error);                                         \
    selkie_code sk_soft_match_late_##dim(sk_step *step, selkie_error *error);                                          \
    selkie_code sk_soft_stop_##dim(sk_step *step, uint8_t *touched, selkie_error *error);                              \
    selkie_code sk_soft_place_##dim(sk_step *step, selkie_error *error);                                               \
    selkie_code sk_soft_sort_##dim(sk_step *step, selkie_error *error);                                                \
    selkie_code sk_soft_sort_plain_##dim(sk_step *step, selkie_error *error);                                          \
    selkie_code sk_soft_mix_##dim(sk_step *step, selkie_error *error);                                                 \
    selkie_code sk_soft_mix_plain_##dim(sk_step *step, selkie_error *error);                                           \
    selkie_code sk_soft_remember_##dim(sk_step *step, selkie_error *error);                                            \
    selkie_code sk_soft_part_##dim(sk_step *step, selkie_error *error);                                                \
    selkie_code sk_soft_meet_##dim(sk_step *step, selkie_error *error);                                                \
    /* `touched` [blocks]: marks those with a particle that was moved. */                                              \
    selkie_code sk_soft_push_out_##dim(sk_step *step, uint8_t *touched, selkie_error *error);                          \
    /* Its contacts and ways for a list of liquid particles in bodies, in the order of the particles. */               \
    void sk_soft_return_##dim(sk_step *step, const struct sk_soft_inside *list, size_t count);                         \
    /* The answers of the bodies to their contacts, with `ahead` (m/s) added to all velocities; NULL = no contact. */  \
    selkie_code sk_soft_find_answers_##dim(sk_step *step, const double ahead[3], struct soft_response **answers,       \
                                           selkie_error *error);                                                       \
    /* The records of bodies go back to their points, whose moments and bounds are found. `moved`: was a record        \
     * elsewhere? NULL = not asked. */                                                                                 \
    selkie_code sk_soft_measure_##dim(sk_step *step, int *moved, selkie_error *error);                                 \
    selkie_code sk_soft_lead_##dim(sk_step *step, selkie_error *error);                                                \
    selkie_code sk_soft_follow_##dim(sk_step *step, selkie_error *error);                                              \
    void sk_soft_prepare_##dim(const sk_soft *soft, sk_soft_region *region);                                           \
    /* Adds gravity and the motion of each region that fits `changes` (m/s a point, xyz) best to the velocities:       \
     * a rigid one, or a linear one for soft bodies. Momentum and angular momentum of the changes stay. Dry bodies     \
     * take no change. */                                                                                              \
    selkie_code sk_soft_spread_##dim(sk_step *step, const double *changes, selkie_error *error);                       \
    /* Finds the record of each point since the last sort. */                                                          \
    void sk_soft_find_records_##dim(sk_step *step);                                                                    \
    selkie_code sk_soft_foresee_##dim(sk_step *step, selkie_error *error);                                             \
    /* The points move, and centre and velocity of their bodies follow. `strays` is set if a record changes its cell   \
     * when it takes the place of its point. */                                                                        \
    selkie_code sk_soft_move_points_##dim(sk_step *step, int *strays, selkie_error *error);

SK_SOFT_PHASES(2d)
SK_SOFT_PHASES(3d)

#endif
