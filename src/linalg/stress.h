/* Viscous stress with its free surface, over sparse blocks of staggered velocities. Finds the velocities u that
 * minimise
 *
 *   1/2 sum_f m_f (u_f - u*_f)^2 + sum_c n_c sum_d (D_d u_d)^2 + 1/2 sum_e s_e (D_b u_a + D_a u_b)^2
 *     + 1/2 sum_c b_c (div u)^2 - sum_c q_c div u
 *
 * over faces f, cells c and edges e. Differences D and div are undivided. The weights carry the viscosity, the time
 * step and the liquid's share of the cell, edge or face (Batty and Bridson 2008). Their minimum has no traction at the
 * free surface. A face of mass 0 is an unknown if stress acts on it. q is 0 in the first pass; each further pass lowers
 * it by b div u, which brings u closer to zero divergence (an augmented Lagrangian).
 *
 * Solver: conjugate gradients in double precision, with one V(2,2) cycle of a geometric multigrid in single precision,
 * or, for soft liquid, one to three symmetric sweeps. The smoother is Gauss-Seidel in two colours a component, so rows
 * of a colour are independent. Weights of coarse levels are means of the fine ones by the interpolation of the strain.
 * They vanish for rigid motions, as on the fine level.
 *
 * Fields are arrays [block_count][cells of a block]; block 0 is the shared empty block, zero everywhere. The lower face
 * across axis d of a cell has the cell's place, the edge across axes a and b the place of the cell above it along both.
 * Edges are numbered by the axis along them (2D: 2). */
#ifndef SK_LINALG_STRESS_H
#define SK_LINALG_STRESS_H

#include <stdint.h>
#include "base/arena.h"
#include "base/status.h"

typedef struct sk_stress_system {
    int block_count;
    const int32_t (*coordinates)[4]; /* [block_count] of the blocks */
    const int32_t (*neighbours)[27]; /* [block_count] slots of the 3^dim blocks around, x fastest; 0 = none */
    int32_t joined[3];    /* blocks along an axis whose first and last blocks are neighbours: 1 or even; 0 = none are */
    const float *mass[3]; /* m_f >= 0 */
    const float *normal;  /* n_c */
    const float *bulk;    /* b_c; NULL = 0 */
    const float *shear[3];   /* s_e, by the axis along the edge */
    const uint8_t *fixed[3]; /* 1 = the velocity of the face is given */
    const float *target[3];  /* u*; NaN = unknown, where the mass is 0 */
    float *velocity[3];      /* in: the start, and given velocities; out: u at the unknowns */
    float *push[3];          /* out: minus the normal stress of each cell along an axis; NULL = not wanted */
    uint8_t *solved[3];      /* out: 1 at the unknowns, else 0; NULL = not wanted */
} sk_stress_system;

typedef struct sk_stress_options {
    double tolerance;   /* |residual| / |right side| */
    int max_iterations; /* of a pass */
    int passes;         /* at least 1; more have an effect where bulk weights are given */
    int threads;
    sk_arena *arena; /* scratch; the caller empties it */
} sk_stress_options;

typedef struct sk_stress_report {
    int iterations; /* of the pass with the most */
    int converged;
    int levels;
    int sweeps; /* of an iteration without coarse levels; 0 = there are coarse levels */
    int64_t unknowns;
    double residual;
    double setup_ms, solve_ms;
} sk_stress_report;

/* A solve that does not converge is not an error here: see report->converged. It gives what it found in
 * max_iterations, and the start if it failed before the last pass. The same bits on any number of threads.
 */
selkie_code sk_stress_solve_2d(const sk_stress_system *system, const sk_stress_options *options,
                               sk_stress_report *report, selkie_error *error);
selkie_code sk_stress_solve_3d(const sk_stress_system *system, const sk_stress_options *options,
                               sk_stress_report *report, selkie_error *error);

#endif
