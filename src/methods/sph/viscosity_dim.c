/* Strong viscosity: (1 - dt nu L) v = v*, with the Laplacian of forces_dim.c, by conjugate gradients (Weiler et al.
 * 2018). All particles weigh the same, so the system is symmetric; it is positive definite, and each pair's forces are
 * equal and opposite, so that the solution keeps momentum to the tolerance of the solve. */
#include <math.h>
#include "defs/materials.h"
#include <omp.h>
#include <string.h>

#include "methods/sph/sph_tile.h"

enum { POSITION = 0, VECTOR = 3, DENSITY = 6, VISCOSITY_ARRAYS = 7, MOST_ITERATIONS = 200 };
#define TOLERANCE 1e-5 /* of |residual| over |v*| */

typedef struct viscous_system {
    sk_step *step;
    void *scratch;
    float coefficient; /* 2 (d + 2) nu dt / spacing, m */
    float softening;   /* m2 */
    float *residual[3], *direction[3], *product[3];
} viscous_system;

/* (1 - dt nu L) applied to the direction at one particle. */
SK_VECTOR void apply_one(const viscous_system *s, const tile_worker *w, uint32_t i, const int wide, float result[3])
{
    const sk_sph *sph = s->step->sph;
    const sk_particle *own = &s->step->particles.records[i];
    const void *list = list_of(sph, i);
    f8 sum[3] = {f8_splat(0.0f), f8_splat(0.0f), f8_splat(0.0f)};
    for (uint32_t g = 0; g < group_count(sph, i); g++) {
        f8 gradient[3], r2 = f8_splat(0.0f), approach = f8_splat(0.0f);
        i8 index = group_at(list, wide, g, sph->number[i], gradient);
        for (int d = 0; d < SELKIE_DIM; d++) {
            f8 x = own->position[d] - f8_gather(w->array[POSITION + d], index);
            r2 += x * x;
            approach += x * (s->direction[d][i] - f8_gather(w->array[VECTOR + d], index));
        }
        f8 volume = 2.0f / (sph->density[i] + f8_gather(w->array[DENSITY], index));
        f8 share = s->coefficient * volume * approach / (r2 + s->softening);
        for (int d = 0; d < SELKIE_DIM; d++)
            sum[d] += share * gradient[d];
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        result[d] = s->direction[d][i] - f8_sum(sum[d]);
}

/* product = A direction; returns direction . product. Particles with given velocities keep theirs: their rows are left
 * out. */
static double apply(const viscous_system *s)
{
    sk_step *step = s->step;
    sk_sph *sph = step->sph;
    const sk_grid *grid = &step->grid;
#pragma omp parallel num_threads(step->threads)
    {
        tile_worker *w = worker_of(sph, s->scratch, omp_get_thread_num(), VISCOSITY_ARRAYS);
#pragma omp for schedule(dynamic, 1)
        for (int block = 1; block <= grid->particle_blocks; block++) {
            make_tile(grid, block, &w->tile);
            load_vectors(&w->tile, step->particles.records, 0, w->array + POSITION);
            for (int d = 0; d < SELKIE_DIM; d++)
                load_floats(&w->tile, s->direction[d], w->array[VECTOR + d]);
            load_floats(&w->tile, sph->density, w->array[DENSITY]);
            double sum = 0.0;
            for (uint32_t i = block_begin(grid, block); i < block_end(grid, block); i++) {
                float result[3];
                int fixed = (step->particles.records[i].flags & SK_PARTICLE_BOUNDARY) != 0;
                if (sph->block_wide[block])
                    apply_one(s, w, i, 1, result);
                else
                    apply_one(s, w, i, 0, result);
                for (int d = 0; d < SELKIE_DIM; d++) {
                    s->product[d][i] = fixed ? 0.0f : result[d];
                    sum += (double)s->product[d][i] * s->direction[d][i];
                }
            }
            sph->block_sums[(size_t)block * 8] = sum;
        }
    }
    double total = 0.0;
    for (int block = 1; block <= grid->particle_blocks; block++)
        total += sph->block_sums[(size_t)block * 8];
    return total;
}

/* Sum of squares of the residual, in the order of the blocks; moves solution and residual along the direction first. */
static double advance(const viscous_system *s, double length)
{
    sk_step *step = s->step;
    const sk_grid *grid = &step->grid;
    double *sums = step->sph->block_sums;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int block = 1; block <= grid->particle_blocks; block++) {
        double sum = 0.0;
        for (uint32_t i = block_begin(grid, block); i < block_end(grid, block); i++)
            for (int d = 0; d < SELKIE_DIM; d++) {
                if (length != 0.0) {
                    step->particles.records[i].velocity[d] += (float)(length * s->direction[d][i]);
                    s->residual[d][i] -= (float)(length * s->product[d][i]);
                }
                sum += (double)s->residual[d][i] * s->residual[d][i];
            }
        sums[(size_t)block * 8] = sum;
    }
    double total = 0.0;
    for (int block = 1; block <= grid->particle_blocks; block++)
        total += sums[(size_t)block * 8];
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

selkie_code SK_DIM(sk_sph_viscosity)(sk_step *step, selkie_error *error)
{
    sk_sph *sph = step->sph;
    viscous_system s = {.step = step,
                        .coefficient = (float)(2.0 * (SELKIE_DIM + 2) * sk_scene_viscosity(step->scene) *
                                               sk_step_kick(step) / sph->spacing),
                        .softening = (float)(0.01 * sph->support * sph->support)};
    SK_TRY(sk_step_scratch(step, worker_bytes(sph, VISCOSITY_ARRAYS) * (size_t)step->threads, "sph viscosity",
                           &s.scratch, error));
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
    /* The first residual is v* - A v*, and v* itself the first guess. */
    double scale = 0.0;
    for (int64_t i = 0; i < step->particles.count; i++)
        for (int d = 0; d < SELKIE_DIM; d++) {
            s.direction[d][i] = step->particles.records[i].velocity[d];
            scale += (double)s.direction[d][i] * s.direction[d][i];
        }
    apply(&s);
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t i = 0; i < step->particles.count; i++) {
        int fixed = (step->particles.records[i].flags & SK_PARTICLE_BOUNDARY) != 0;
        for (int d = 0; d < SELKIE_DIM; d++) {
            float rest = fixed ? 0.0f : s.direction[d][i] - s.product[d][i];
            s.residual[d][i] = s.direction[d][i] = rest;
        }
    }
    double squares = advance(&s, 0.0), goal = TOLERANCE * TOLERANCE * scale;
    for (sph->report.viscosity_iterations = 0; squares > goal && sph->report.viscosity_iterations < MOST_ITERATIONS;
         sph->report.viscosity_iterations++) {
        double curvature = apply(&s);
        if (!(curvature > 0.0))
            break;
        double before = squares;
        squares = advance(&s, squares / curvature);
        turn(&s, squares / before);
    }
    if (!(squares <= 1e4 * goal) && squares > 0.0)
        return sk_fail(error, SELKIE_ERROR_DIVERGED,
                       "step %lld at %g s: the viscosity of SPH did not converge in %d iterations; use a "
                       "smaller time.step or viscosity",
                       (long long)step->step_count + 1, step->time, sph->report.viscosity_iterations);
    return SELKIE_OK;
}
