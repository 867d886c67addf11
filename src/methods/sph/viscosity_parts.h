/* The viscosity solve of SPH, for both forms of its operator. For files compiled per dimension.
 *
 * Strong viscosity: (1 + c - dt nu L) v = v* + c u, with the Laplacian of forces_dim.c and the friction c of no-slip
 * walls of velocity u (friction_dim.c), by conjugate gradients (Weiler et al. 2018). All particles have the same mass,
 * so the system is symmetric and positive definite. The forces of each pair are equal and opposite, so momentum is
 * conserved to the tolerance of the solve.
 */
#ifndef SK_METHODS_SPH_VISCOSITY_PARTS_H
#define SK_METHODS_SPH_VISCOSITY_PARTS_H

#include <string.h>

#include "defs/materials.h"
#include "base/dimension.h"
#include "methods/sph/sph.h"
#include "methods/sph/sph_pair_kernels.h"

enum { MOST_ITERATIONS = 200 };
#define TOLERANCE 1e-5 /* of |residual| over |v*| */

typedef struct viscous_system {
    sk_step *step;
    void *scratch;
    sk_sph_viscous_shape shape;
    float *residual[3], *direction[3], *product[3];
    float *drag; /* of no-slip walls */
    /* product = A direction, with direction . product of each block in block_sums. Particles with prescribed velocities
     * have no row: their product is 0. */
    void (*apply)(const struct viscous_system *system);
} viscous_system;

static double apply(const viscous_system *s)
{
    double total = 0.0;
    s->apply(s);
    for (int block = 1; block <= s->step->grid.particle_blocks; block++)
        total += s->step->sph->block_sums[block].product;
    return total;
}

/* Moves solution and residual along the direction. Returns the sum of squares of the residual, in block order. */
static double advance(const viscous_system *s, double length)
{
    sk_step *step = s->step;
    const sk_grid *grid = &step->grid;
    sk_sph_block_sums *sums = step->sph->block_sums;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int block = 1; block <= grid->particle_blocks; block++) {
        double sum = 0.0;
        const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
        for (uint32_t i = start[0]; i < start[SK_BLOCK_CELLS]; i++)
            for (int d = 0; d < SELKIE_DIM; d++) {
                if (length != 0.0) {
                    step->particles.records[i].velocity[d] += (float)(length * s->direction[d][i]);
                    s->residual[d][i] -= (float)(length * s->product[d][i]);
                }
                sum += (double)s->residual[d][i] * s->residual[d][i];
            }
        sums[block].product = sum;
    }
    double total = 0.0;
    for (int block = 1; block <= grid->particle_blocks; block++)
        total += sums[block].product;
    return total;
}

static void turn(const viscous_system *s, double share)
{
    const int64_t count = s->step->particles.count;
#pragma omp parallel for num_threads(s->step->threads) schedule(static)
    for (int64_t i = 0; i < count; i++)
        for (int d = 0; d < SELKIE_DIM; d++)
            s->direction[d][i] = s->residual[d][i] + (float)share * s->direction[d][i];
}

static viscous_system make_viscous_system(sk_step *step)
{
    sk_sph *sph = step->sph;
    viscous_system s = {.step = step,
                        .shape = sk_sph_viscous_shape_of(
                            sph->viscous, sk_scene_viscosity(step->scene) * sk_step_kick(step), sph->support)};
    float *const shift = sph->shift[0];
    const size_t count = sph->particle_capacity;
    float *const free_arrays[9] = {shift,
                                   shift + count,
                                   shift + 2 * count,
                                   sph->variable[0],
                                   sph->variable[1],
                                   sph->variable[2],
                                   sph->variable[3],
                                   sph->variable[4],
                                   sph->source};
    for (int d = 0; d < 3; d++) {
        s.residual[d] = free_arrays[d];
        s.direction[d] = free_arrays[3 + d];
        s.product[d] = free_arrays[6 + d];
    }
    s.drag = shift + 3 * count;
    return s;
}

/* Sets the walls' drag c, and the residual to their pull c u. */
static void find_friction(const viscous_system *s)
{
    const sk_sph_friction_terms terms = {s->drag, {s->residual[0], s->residual[1], s->residual[2]}};
    if (SK_DIM(sk_sph_friction_of_walls)(s->step, &terms))
        return;
    const size_t bytes = (size_t)s->step->particles.count * sizeof *s->drag;
    memset(s->drag, 0, bytes);
    for (int d = 0; d < SELKIE_DIM; d++)
        memset(s->residual[d], 0, bytes);
}

static selkie_code solve_viscous_system(const viscous_system *s, selkie_error *error)
{
    sk_step *step = s->step;
    sk_sph *sph = step->sph;

    /* The first guess is v*, the first residual v* + c u - A v*. */
    double scale = 0.0;
    find_friction(s);
    for (int64_t i = 0; i < step->particles.count; i++)
        for (int d = 0; d < SELKIE_DIM; d++) {
            s->direction[d][i] = step->particles.records[i].velocity[d];
            const double right = (double)s->direction[d][i] + s->residual[d][i];
            scale += right * right;
        }
    apply(s);
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t i = 0; i < step->particles.count; i++) {
        int fixed = (step->particles.records[i].flags & SK_PARTICLE_BOUNDARY) != 0;
        for (int d = 0; d < SELKIE_DIM; d++) {
            float rest = fixed ? 0.0f : s->direction[d][i] + s->residual[d][i] - s->product[d][i];
            s->residual[d][i] = s->direction[d][i] = rest;
        }
    }

    /* Conjugate gradients. */
    double squares = advance(s, 0.0), goal = TOLERANCE * TOLERANCE * scale;
    for (sph->report.viscosity_iterations = 0; squares > goal && sph->report.viscosity_iterations < MOST_ITERATIONS;
         sph->report.viscosity_iterations++) {
        double curvature = apply(s);
        if (!(curvature > 0.0))
            break;
        double before = squares;
        squares = advance(s, squares / curvature);
        turn(s, squares / before);
    }

    if (!(squares <= 1e4 * goal) && squares > 0.0)
        return sk_fail(error, SELKIE_ERROR_DIVERGED,
                       "step %lld at %g s: the viscosity of SPH did not converge in %d iterations; use a "
                       "smaller time.step or viscosity",
                       (long long)step->step_count + 1, step->time, sph->report.viscosity_iterations);
    return SELKIE_OK;
}

#endif
