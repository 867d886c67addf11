/* The vortex sheets of several bodies in a box (Gerszewski, ch. 5.3.2 and 5.3.3).
 *
 * Each body has its inverse (panels.h). Schwarz sweeps solve one body after the other against the sheets of the others
 * and all images of the walls, until the strengths stay. They use one matrix: the stream function at the middle of
 * panel i of the circulation of panel j, without the sheet of the own body, which the inverse contains.
 */
#ifndef SK_METHODS_REDUCED_COUPLING_H
#define SK_METHODS_REDUCED_COUPLING_H

#include "methods/reduced/images.h"
#include "methods/reduced/panels.h"

typedef struct sk_coupling {
    sk_memory *memory;
    int body_count;
    sk_panels *panels;  /* [bodies] in their frames */
    int *first;         /* [bodies + 1] number of the first panel of a body */
    int count;          /*     panels of all bodies */
    double (*place)[3]; /* m   [bodies] centre, and angle (rad) */

    sk_images images;
    sk_image_points points; /*     the middles */
    double (*middle)[2];    /* m   [count] in the box */
    double (*corner)[2];    /* m   [count] */
    double *own;            /* 1   free stream function between the panels of each body: [body][panels][panels] */
    size_t *own_first;      /*     [bodies] */
    double *matrix;         /*     [count][count] */

    double *wanted;      /* m2/s [count] what the sheets must add at the middles: -(psi_r - psi_o) */
    double *others;      /* m2/s [count] what other bodies and images add there */
    double *strength;    /* m/s  [count] */
    double *circulation; /* m2/s [count] strength x length */
    double *work;        /*      scratch */
    double *dense;       /*      [count + bodies]^2 */
    int *rows;
    int sweeps;    /*      of the last solve */
    double change; /* m/s  of a strength in its last sweep */
} sk_coupling;

/* Takes over the panels: they are freed with it. `closed`: walls at both ends of an axis, otherwise it is periodic. */
selkie_code sk_coupling_make(sk_coupling *coupling, int body_count, sk_panels *panels, const double size[2],
                             const int closed[2], sk_memory *memory, selkie_error *error);
void sk_coupling_free(sk_coupling *coupling);

/* Places a body: its centre (m) and angle (rad). */
void sk_coupling_place(sk_coupling *coupling, int body, const double center[2], double angle);
/* The matrix for the places. */
void sk_coupling_assemble(sk_coupling *coupling, int threads);
/* Strengths for `wanted`, by sweeps until no strength changes by more than `tolerance` of the largest. Sweeps that do
 * not converge are replaced by one solve of the whole system. */
void sk_coupling_solve(sk_coupling *coupling, double tolerance);
/* The same by one large system: the reference. Returns 0 if it is singular. */
int sk_coupling_solve_whole(sk_coupling *coupling);
/* Velocity (m/s) of all sheets and their nearest images at a point (m): slow, to compare with. */
void sk_coupling_velocity(const sk_coupling *coupling, const double x[2], int copies, double velocity[2]);

#endif
