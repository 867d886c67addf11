/* One solver, many right-hand sides: A x = b over sparse blocks of cells.
 *
 *   (A x)_i = diagonal_i x_i - sum over the faces f of i of face_f x_(neighbour across f)
 *
 * Symmetric, positive semi-definite and diagonally dominant:
 * diagonal_i >= sum of face_f, the excess stands for Dirichlet neighbours (air across a ghost-fluid face) or a mass
 * term (heat, viscosity). A cell with diagonal 0 is no unknown: its x becomes 0 and its faces are ignored. They are not
 * read if a whole row of a block has no unknowns. The system is scaled so that a full face between two unknowns is 1.
 * If faces differ (densities), most of them should be 1: blocks of full faces store no coefficients.
 *
 * Fields are arrays of block_count * SK_BLOCK_CELLS values, cell (i,j,k) of
 * block b at b * SK_BLOCK_CELLS + i + SK_BLOCK_N * (j + SK_BLOCK_N * k). The
 * face of a cell is the one on its lower side; that of its upper side is stored
 * with the next cell. Block 0 is the shared empty block: everything in it is 0
 * and no unknown; absent neighbours are 0.
 */
#ifndef SK_LINALG_POISSON_H
#define SK_LINALG_POISSON_H

#include <stdint.h>
#include <selkie/scene.h>
#include "base/backend.h"
#include "base/memory.h"
#include "base/status.h"

/* Rigid bodies in the system: A + sum over bodies of W R W^T. Column k of W is the flux out of each cell when the body
 * moves with its k-th mode; R is the velocity of the modes after a unit of impulse. */
enum { SK_POISSON_MODES = 6 };
typedef struct sk_poisson_mode_entry {
    int64_t cell; /* block * SK_BLOCK_CELLS + cell; entries ascend by block, those of a cell by body, those of a body by
                     cell */
    int32_t body;
    float flux[SK_POISSON_MODES];
} sk_poisson_mode_entry;
typedef struct sk_poisson_modes {
    int body_count;
    int rank; /* modes of a body: 3 in 2D, 6 in 3D */
    size_t entry_count;
    const sk_poisson_mode_entry *entries;
    const double (*response)[SK_POISSON_MODES][SK_POISSON_MODES]; /* [body_count] R, symmetric;
                                         in 3D the first three modes do not answer to the others */
    const double (
        *velocity)[SK_POISSON_MODES]; /* [body_count] m/s before the solve, for callers; rotations at a cell */
} sk_poisson_modes;

typedef struct sk_poisson_system {
    int block_count;                 /* includes the empty block 0 */
    const int32_t (*coordinates)[4]; /* [block_count] block coordinates x y z (z = 0 in 2D), >= 0; fourth unused */
    const int32_t (*faces)[6];       /* [block_count] neighbour blocks -x +x -y +y -z +z, 0 = none */
    int32_t joined[3];    /* blocks along an axis whose first and last blocks are neighbours: 1 or even; 0 = none are */
    const float *face[3]; /* coefficient of the lower face along x, y, z (2D: two) */
    const float *diagonal;
    const float *right_side;
    float *solution;               /* out; in: the start if warm_start */
    const sk_poisson_modes *modes; /* NULL = none */
} sk_poisson_system;

typedef struct sk_poisson_options {
    double tolerance;
    selkie_residual_norm norm; /* relative: |r|_2/|b|_2; max: max |r| <= tolerance */
    int max_iterations;
    int warm_start;
    int same_matrix; /* it and the bodies are those of the solver's last solve, which set everything up */
    int threads;
    sk_backend backend;
    /* Upper bound of the face coefficients if they may exceed 1; 0 = 1. */
    double largest_face;
} sk_poisson_options;

#define SK_POISSON_MAX_HISTORY 256
typedef struct sk_poisson_report {
    int iterations;
    int converged;
    double residual; /* of b - A x, in the requested norm; from the recurrence if rounding is negligible */
    int64_t unknowns;
    int closed_components; /* components without a Dirichlet face, whose mean was subtracted */
    int history_count;
    double history[SK_POISSON_MAX_HISTORY]; /* residual of the recurrence after each iteration */
    double setup_ms, solve_ms;
} sk_poisson_report;

/* Scratch that lives from solve to solve (levels, vectors), so that a step allocates nothing. */
typedef struct sk_poisson_solver sk_poisson_solver;

sk_poisson_solver *sk_poisson_create_2d(sk_memory *memory);
sk_poisson_solver *sk_poisson_create_3d(sk_memory *memory);
void sk_poisson_destroy_2d(sk_poisson_solver *solver);
void sk_poisson_destroy_3d(sk_poisson_solver *solver);

/* A solve that does not converge is not an error here: see report->converged. Out of memory and NaN in the input are
 * errors. The same bits on any number of threads. */
selkie_code sk_poisson_solve_2d(sk_poisson_solver *solver, const sk_poisson_system *system,
                                const sk_poisson_options *options, sk_poisson_report *report, selkie_error *error);
selkie_code sk_poisson_solve_3d(sk_poisson_solver *solver, const sk_poisson_system *system,
                                const sk_poisson_options *options, sk_poisson_report *report, selkie_error *error);

#endif
