/* Reduced fluids as a method: a sum of modes fills the box, and the particles are tracers (Gerszewski, ch. 5).
 *
 * The state is the coefficients of the modes and the positions of the tracers. A step adds the forces, moves the modes
 * and then the tracers, which follow the mean of the velocities at the start and the end of the step.
 */
#ifndef SK_METHODS_REDUCED_REDUCED_H
#define SK_METHODS_REDUCED_REDUCED_H

#include "methods/method.h"
#include "methods/reduced/reduced_kernels.h"
#include "methods/reduced/spectrum.h"
#include "methods/reduced/swim.h"

enum { SK_FLOW_NAME = 64 };

typedef struct sk_reduced {
    sk_reduced_spectrum spectrum;
    double *state;   /* [1 + modes] for checkpoints: the largest speed at a node (m/s), then the coefficients */
    double *r;       /* m2/s  the coefficients */
    double *node[2]; /* m/s   at the nodes of the cells, now */
    float *shown;    /* m/s   [node][2] now, */
    float *between;  /* m/s   [node][2] and the mean over the step */
    double largest;  /* 1/m   wave number of the shortest wave */
    sk_swim *swim;   /* NULL without bodies */
    /* Flows that scenes excite by name. */
    int flow_count;
    char (*names)[SK_FLOW_NAME];
    double *drawn; /* m2/s [flows][modes] coefficients, 1 m/s where they are fastest */
} sk_reduced;

extern const sk_method sk_method_reduced;

/* Whether reduced.periodic joins the sides along axis d. */
int sk_reduced_is_periodic(const selkie_scene *scene, int d);

/* Makes the basis of a scene (relative to domain.origin): closed form, mean flow, drawn modes, obstacles. */
selkie_code sk_reduced_make_basis(sk_reduced *reduced, const sk_step *step, selkie_error *error);
/* Makes room for the names and coefficients of flows. */
selkie_code sk_reduced_name_flows(sk_reduced *reduced, int count, sk_memory *memory, selkie_error *error);
/* CRC-32 of which nodes lie in obstacles; 0 without obstacles. */
uint32_t sk_reduced_obstacles(const sk_step *step);
/* Which inner nodes of the cells lie in obstacles: a byte each. */
void sk_reduced_mark_solids(const sk_step *step, unsigned char *solid);
/* Adds a mode by its stream function (m2/s) and its vorticity (1/s) at the inner nodes; NULL = lambda times the stream
 * function, as of eigenvectors. The vorticity is 0 in solids. */
void sk_reduced_add_stream(sk_reduced_spectrum *s, double lambda, const double *psi, const double *vorticity,
                           const unsigned char *solid);
/* Pairs of values at the nodes, such as `shown` and `between`, with the sides of the box. */
sk_reduced_view sk_reduced_view_of(const sk_reduced *reduced, const sk_step *step, const float *values);
/* The box of a scene. */
sk_reduced_box sk_reduced_box_of(const sk_step *step);
/* Input errors of the basis, without making all of it. */
selkie_code sk_reduced_check_basis(const sk_step *step, selkie_error *error);

#endif
