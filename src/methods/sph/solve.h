/* The pressure solve of SPH, for both forms of its operator: pressure_dim.c eight particles at a time,
 * pressure_plain_dim.c one at a time. */
#ifndef SK_METHODS_SPH_SOLVE_H
#define SK_METHODS_SPH_SOLVE_H

#include <math.h>

#include "methods/sph/sph.h"
#include "methods/sph/sph_kernels.h"

/* sk_sph.variable: y is the argument of the operator, and the solution. */
enum { SK_SPH_Y, SK_SPH_X, SK_SPH_NEXT, SK_SPH_BEFORE, SK_SPH_RESIDUAL };

typedef struct sk_sph_iteration {
    int accelerated;
    int first;   /* there is no iterate before */
    float omega; /* relaxation factor */
} sk_sph_iteration;

/* The course of a solve. */
typedef struct sk_sph_progress {
    /* fixed */
    int accelerated;
    int least, most; /* iterations */
    double enough;   /* mean density error that may remain */
    double unit;     /* m: particles that have an equation times the spacing */
    /* changing */
    int iterations;
    double error;          /* mean density error by the solve's own prediction */
    double theta, largest; /* of the momentum; largest eigenvalue, an estimate */
    float momentum;        /* of the extrapolation that comes next */
} sk_sph_progress;

enum sk_sph_verdict { SK_SPH_GOES_ON, SK_SPH_ENDS, SK_SPH_DIVERGES };

SK_KERNEL sk_sph_iteration sk_sph_next_iteration(const sk_sph_progress *progress)
{
    const sk_sph_iteration iteration = {progress->accelerated, progress->iterations == 0,
                                        progress->accelerated ? (float)(1.0 / progress->largest) : 0.5f};
    return iteration;
}

/* After an application of the operator: does the solve go on? Counts the iteration and finds its momentum if so. */
SK_KERNEL int sk_sph_judge(sk_sph_progress *progress, const sk_sph_solve_sums *sums)
{
    progress->error = sums->error / progress->unit;
    if (!(progress->error < 1e6))
        return SK_SPH_DIVERGES;
    if ((progress->iterations >= progress->least && progress->error <= progress->enough) ||
        progress->iterations >= progress->most)
        return SK_SPH_ENDS;
    progress->iterations++;
    if (!progress->accelerated)
        return SK_SPH_GOES_ON;
    if (sums->length > 0.0 && sums->curvature > progress->largest * sums->length)
        progress->largest = 1.05 * sums->curvature / sums->length;
    const double following =
        sums->uphill > 0.0 ? 1.0 : 0.5 * (1.0 + sqrt(1.0 + 4.0 * progress->theta * progress->theta));
    progress->momentum = sums->uphill > 0.0 ? 0.0f : (float)((progress->theta - 1.0) / following);
    progress->theta = following;
    return SK_SPH_GOES_ON;
}

/* Moves y of a particle from the new point along the last change. */
SK_KERNEL void sk_sph_extrapolate(float next, float momentum, float *y, float *x, float *before)
{
    const float value = next + momentum * (next - *x);
    *before = *y;
    *y = value > 0.0f ? value : 0.0f;
    *x = next;
}

/* Adds the displacement of a particle to its velocity, and finds its pressure (Pa). */
typedef struct sk_sph_ending {
    float inverse_dt;    /* 1/s */
    float from_variable; /* Pa/m */
    int dimension;
} sk_sph_ending;

SK_KERNEL float sk_sph_end_particle(const sk_sph_ending *ending, const float shift[4], float y, float density,
                                    float velocity[3])
{
    for (int d = 0; d < ending->dimension; d++)
        velocity[d] -= shift[d] * ending->inverse_dt;
    return y * ending->from_variable * density * density;
}

/* Applies the operator to y, and writes the solver's step into `next`. */
typedef sk_sph_solve_sums (*sk_sph_iterate)(sk_step *step, const sk_sph_iteration *iteration, void *scratch);

/* The constants of this step's system; returns 0 if there is nothing to solve. */
int sk_sph_system_begin(sk_step *step, sk_sph_system *system);
/* A solve before its first iteration, and constants of its end. */
sk_sph_progress sk_sph_begin_solve(const sk_step *step);
sk_sph_ending sk_sph_ending_of(const sk_step *step);
/* Reports a solve that has diverged. */
selkie_code sk_sph_diverged(const sk_step *step, int iterations, selkie_error *error);
/* Needs right side, inverse diagonal and start. */
selkie_code sk_sph_solve(sk_step *step, sk_sph_iterate iterate, void *scratch, selkie_error *error);
/* Adds the displacement to the velocities; updates pressures, forces on parts and the report. */
void sk_sph_system_end(sk_step *step);

/* The sums of all blocks, in block order. */
sk_sph_solve_sums sk_sph_add_solve_sums(const sk_step *step);

#endif
