/* Rigid bodies in a reduced fluid (Gerszewski, ch. 5.3).
 *
 * A body has a vortex sheet on its surface that makes the modes flow around it. A step:
 *
 *   forces  part of the sheets goes to the modes: 1 - exp(-step x rate), rate = feedback x mean slip / diameter. The
 *           source adds all of it in each step, so that the flow depends on the step.
 *   bodies  forces on the bodies, then the rigid body engine;
 *   sheets  new sheets for the new places and velocities.
 *
 * The pressure of the source (Eqs. 5.20 and 5.21) has no resultant in a uniform stream. The force here has three parts:
 * drag of the panels, density/2 |w| w along the normal with w the normal velocity of the liquid past the panel without
 * the body's own sheet; Archimedes; and the inertia of the liquid, with the added mass on the side of the unknowns.
 */
#ifndef SK_METHODS_REDUCED_SWIM_H
#define SK_METHODS_REDUCED_SWIM_H

#include "methods/method.h"
#include "methods/reduced/coupling.h"
#include "methods/reduced/points.h"
#include "methods/reduced/quadtree.h"

struct sk_pose;

/* Lengths of the split between cores and panels. */
typedef struct sk_near_scale {
    double h[2];  /* m  cells */
    double core;  /* m  radius of a Gaussian core */
    double reach; /* m  beyond, a core is a point */
    double bin;   /* m  side of a bin */
    double shell; /* m  tracers nearer to a body see the panels themselves */
} sk_near_scale;

/* One panel, or a mirror image of it. */
typedef struct sk_swim_piece {
    double begin[2], tangent[2]; /* m */
    double length, strength;     /* m, m/s */
    double at[3][2];             /* m     begin, middle and end, */
    double circulation[3];       /* m2/s  with Simpson's weights */
} sk_swim_piece;

/* The flow at one time, for tracers beside bodies: cells do not resolve what panels do there. */
typedef struct sk_swim_flow {
    float *smooth;         /* m/s  [node][2] modes and cores of the sheets */
    sk_swim_piece *pieces; /*      panels and near images, */
    int piece_count;       /*      */
    int *first, *items;    /*      by square bins */
    double (*motion)[6];   /*      [bodies] centre (m), angle (rad), velocity (m/s), spin (rad/s) */
    struct sk_pose *poses; /*      [bodies] */
    unsigned char *near;   /*      [cells] a body is near */
} sk_swim_flow;

typedef struct sk_swim {
    sk_coupling coupling;
    sk_reduced_spectrum fine; /*      as fine as the cells: shows the sheets */
    double *sheet;            /* m2/s [fine modes] */
    sk_mode_points points;    /*      middles, then corners */
    sk_mode_points shown;     /*      the same in the fine spectrum */
    sk_mode_points moved;     /*      middles that moved along with the liquid */
    double *stream;           /* m2/s [2 count] of the modes at the points, before they move */
    double *later;            /* m2/s [count] at the moved middles, after */
    double (*flow)[2];        /* m/s  [bodies] mean of the modes over the body, before */
    double *circulation;      /* m2/s [2 count] at the points */
    sk_quadtree *tree;        /*      NULL where the panels feed back by integrals */
    sk_swim_flow flows[2];    /*      before and after the step; */
    int now;                  /*      the later one */
    int bins[2];
    int most_pieces, most_items;
    sk_near_scale scale;
} sk_swim;

selkie_code sk_swim_make(sk_swim *swim, const sk_step *step, const sk_reduced_spectrum *s, selkie_error *error);
void sk_swim_free(sk_swim *swim, sk_memory *memory);
/* Input errors of the bodies. */
selkie_code sk_swim_check(const sk_step *step, const sk_reduced_box *box, selkie_error *error);

/* Sheets for the poses of the bodies and the modes r. */
void sk_swim_solve(sk_swim *swim, const sk_step *step, sk_reduced_spectrum *s, const double *r);
/* The circulation of the sheets at middles and corners. */
void sk_swim_spread(sk_swim *swim);
/* Adds the part of the sheets that the liquid keeps in a step to the modes. */
void sk_swim_feed_back(sk_swim *swim, const sk_step *step, sk_reduced_spectrum *s, double *r);
/* Keeps the modes at the bodies before they move. */
void sk_swim_remember(sk_swim *swim, const sk_step *step, sk_reduced_spectrum *s, const double *r);
/* Forces on the bodies, and their motion. */
selkie_code sk_swim_move(sk_swim *swim, sk_step *step, sk_reduced_spectrum *s, const double *r, selkie_error *error);
/* Adds the velocity of the sheets to that of the modes at the nodes of the cells (m/s). Nodes inside bodies receive the
 * velocity of the body. */
void sk_swim_show(sk_swim *swim, const sk_step *step, double *const nodes[2]);

/* --- Tracers beside bodies: swim_near.c --- */

selkie_code sk_swim_near_make(sk_swim *swim, const sk_step *step, selkie_error *error);
void sk_swim_near_free(sk_swim *swim, sk_memory *memory);
/* Begins the flow at a new time; the last one becomes the one before. */
sk_swim_flow *sk_swim_near_begin(sk_swim *swim);
void sk_swim_near_add(sk_swim *swim, const sk_swim_piece *piece);
/* Sorts the pieces into bins and marks the cells at bodies. */
void sk_swim_near_end(sk_swim *swim, const sk_step *step);
/* What the cores lack of a piece at a point: the panel itself less its three cores, m/s. */
void sk_swim_lacking(const sk_swim_piece *piece, double core, const double x[2], double velocity[2]);
/* The body in whose shell a point is at the start (`after` = 0) or the end of the step, the nearest one; -1 if there is
 * none. Its distance (m, below 0 inside) and outward normal, unless they are NULL. */
int sk_swim_near_body(const sk_swim *swim, const sk_step *step, int after, const double x[2], double normal[3],
                      double *gap);
/* Where a tracer beside a body goes in the step, and its mean velocity (m/s). It moves in the frame of the body,
 * between the flows before and after, each with its own panels: no flow crosses the surface there at any time. */
void sk_swim_carry(const sk_swim *swim, int body, double dt, double x[2], double velocity[2]);
/* Where what is beside a body at the end of the step was at its start. */
void sk_swim_carry_back(const sk_swim *swim, int body, double dt, double x[2]);

#endif
