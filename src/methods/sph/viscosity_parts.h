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
#include "methods/sph/viscous_arrays.h"

typedef struct viscous_system {
    sk_step *step;
    void *scratch;
    viscous_arrays arrays;
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
            sum += advance_viscosity_at(&s->arrays, length, step->particles.records[i].velocity, i);
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
        turn_viscosity_at(&s->arrays, share, (size_t)i);
}

static viscous_system make_viscous_system(sk_step *step)
{
    const sk_sph *sph = step->sph;
    return (viscous_system){
        .step = step,
        .arrays = viscous_arrays_of(
            sph,
            sk_sph_viscous_shape_of(sph->viscous, sk_scene_viscosity(step->scene) * sk_step_kick(step), sph->support))};
}

/* Sets the walls' drag c, and the residual to their pull c u. */
static void find_friction(const viscous_system *system)
{
    const viscous_arrays *s = &system->arrays;
    const sk_sph_friction_terms terms = {s->drag, {s->residual[0], s->residual[1], s->residual[2]}};
    if (SK_DIM(sk_sph_friction_of_walls)(system->step, &terms))
        return;
    const size_t bytes = (size_t)system->step->particles.count * sizeof *s->drag;
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
        scale += begin_viscosity_at(&s->arrays, step->particles.records[i].velocity, (size_t)i);
    apply(s);
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t i = 0; i < step->particles.count; i++)
        first_residual_at(&s->arrays, (step->particles.records[i].flags & SK_PARTICLE_BOUNDARY) != 0, (size_t)i);

    /* Conjugate gradients. */
    double squares = advance(s, 0.0), goal = SK_SPH_VISCOUS_TOLERANCE * SK_SPH_VISCOUS_TOLERANCE * scale;
    for (sph->report.viscosity_iterations = 0;
         squares > goal && sph->report.viscosity_iterations < SK_SPH_MOST_VISCOUS_ITERATIONS;
         sph->report.viscosity_iterations++) {
        double curvature = apply(s);
        if (!(curvature > 0.0))
            break;
        double before = squares;
        squares = advance(s, squares / curvature);
        turn(s, squares / before);
    }

    if (!(squares <= 1e4 * goal) && squares > 0.0)
        return sk_sph_viscosity_failed(step, sph->report.viscosity_iterations, error);
    return SELKIE_OK;
}

#endif
