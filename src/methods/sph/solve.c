/* The pressure of SPH: q >= 0 with  A q >= b  and equality where q > 0. b is the density ratio above 1 at the end of
 * the step without pressure. sph.h has the derivation and the names.
 *
 * Two solvers use the same two loops (q to shifts, shifts to A q).
 *
 * iisph: relaxed Jacobi with clamping, from half of the last pressure (Ihmsen et al. 2014). b contains the whole
 * density error, and the solve ends at sph.density_error.
 *
 * accelerated: projected gradients with Jacobi scaling and Nesterov's momentum (Beck and Teboulle 2009), from the full
 * last pressure. It restarts if the momentum points uphill (O'Donoghue and Candes 2015). The step length follows an
 * estimate of the largest eigenvalue from successive iterates.
 *
 * A full warm start needs care. Let the iterations of a step resolve the share c of a mode, and b contain the share
 * beta of the density error e. Then  e''' + c e'' + c e' + c beta e = 0  (' = per step), which grows unless beta < c: a
 * solve that stops early pumps energy into long waves. So the accelerated solver
 *   - also stops by the rate of change of density that it leaves (sph.divergence_error), not only by the error: in a
 *     column of 1 m, 0.1 % in a step of 2 ms is 0.5 m/s at the top;
 *   - corrects an error over a time, not over a step: correcting a long step's error in a short one would add speed;
 *   - treats a particle as full although noise has put it slightly below rest density (sk_sph_allowed).
 *
 * The residual of a particle is |b - A q| where q > 0, and the positive part of b - A q elsewhere. A solve stops when
 * its mean over all particles but solid ones is below the tolerance. A test of positive residuals alone would accept a
 * start with too much pressure.
 */
#include "methods/sph/solve.h"

#include <math.h>
#include <string.h>

#include "methods/sph/boundary.h"

#define LEAST_DIAGONAL 0.1   /* over the lattice's */
#define CORRECTION_STEPS 2.0 /* natural steps over which a density error is corrected */

static int is_accelerated(const sk_step *step)
{
    return step->scene->sph.solver == SELKIE_SPH_ACCELERATED;
}

/* m/Pa: the variable is q / spacing, and q = dt kick p / (rho0 D^2). */
static double variable_of_pressure(const sk_step *step)
{
    return step->dt * sk_step_kick(step) / (step->density * step->sph->spacing);
}

int sk_sph_system_begin(sk_step *step, sk_sph_system *system)
{
    const sk_sph *sph = step->sph;
    const int accelerated = is_accelerated(step);
    memset(&step->pressure, 0, sizeof step->pressure);
    if (!step->particles.count || !(step->dt > 0.0) || !sk_step_has_pressure(step))
        return 0;
    const double over = (accelerated ? CORRECTION_STEPS : 1.0) * sph->correction_time;
    *system = (sk_sph_system){.dt = (float)step->dt,
                              .unit = (float)variable_of_pressure(step),
                              .spacing = (float)sph->spacing,
                              .correct = step->dt < over ? (float)(step->dt / over) : 1.0f,
                              .lenient = !accelerated,
                              .warm = accelerated ? 1.0f : 0.5f,
                              .least = (float)(LEAST_DIAGONAL * sph->lattice_diagonal),
                              .roles = sph->report.boundaries > 0};
    return 1;
}

sk_sph_solve_sums sk_sph_add_solve_sums(const sk_step *step)
{
    sk_sph_solve_sums total = {0, 0, 0, 0};
    for (int block = 1; block <= step->grid.particle_blocks; block++) {
        const sk_sph_solve_sums *sums = &step->sph->block_sums[block].solve;
        total.error += sums->error;
        total.uphill += sums->uphill;
        total.curvature += sums->curvature;
        total.length += sums->length;
    }
    return total;
}

/* Moves y from the new point along the last change. */
static void extrapolate(sk_step *step, float momentum)
{
    sk_sph *sph = step->sph;
    float *restrict y = sph->variable[SK_SPH_Y], *restrict x = sph->variable[SK_SPH_X],
                    *restrict next = sph->variable[SK_SPH_NEXT], *restrict before = sph->variable[SK_SPH_BEFORE];
    const int64_t count = step->particles.count;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t i = 0; i < count; i++)
        sk_sph_extrapolate(next[i], momentum, &y[i], &x[i], &before[i]);
}

/* Mean density error that a solve may leave. */
static double error_to_stop_at(const sk_step *step)
{
    const selkie_sph_def *def = &step->scene->sph;
    const double rate = step->sph->rate;
    return is_accelerated(step) && rate > 0.0 ? fmin(def->density_error, def->divergence_error * rate * step->dt)
                                              : def->density_error;
}

sk_sph_progress sk_sph_begin_solve(const sk_step *step)
{
    const sk_sph *sph = step->sph;
    /* Solid particles have no equation and must not dilute the mean. */
    const double count = fmax((double)(step->particles.count - sph->report.boundaries), 1.0);
    return (sk_sph_progress){.accelerated = is_accelerated(step),
                             .least = step->scene->sph.min_iterations,
                             .most = step->scene->sph.max_iterations,
                             .enough = error_to_stop_at(step),
                             .unit = count * sph->spacing,
                             .theta = 1.0,
                             .largest = 2.5};
}

selkie_code sk_sph_diverged(const sk_step *step, int iterations, selkie_error *error)
{
    return sk_fail(error, SELKIE_ERROR_DIVERGED,
                   "step %lld at %g s: the pressure solve of SPH diverged after %d iterations; try a smaller "
                   "time.step or time.cfl",
                   (long long)step->step_count + 1, step->time, iterations);
}

selkie_code sk_sph_solve(sk_step *step, sk_sph_iterate iterate, void *scratch, selkie_error *error)
{
    sk_sph *sph = step->sph;
    sk_sph_report *report = &sph->report;
    sk_sph_progress progress = sk_sph_begin_solve(step);
    for (;;) {
        /* Apply the operator, and test whether to stop. */
        const sk_sph_iteration iteration = sk_sph_next_iteration(&progress);
        const sk_sph_solve_sums sums = iterate(step, &iteration, scratch);
        const int verdict = sk_sph_judge(&progress, &sums);
        report->iterations = progress.iterations;
        report->predicted_error = progress.error;
        if (verdict == SK_SPH_DIVERGES)
            return sk_sph_diverged(step, progress.iterations, error);
        if (verdict == SK_SPH_ENDS)
            return SELKIE_OK; /* the statistics report the remaining error */

        /* iisph: the new point replaces the old one. */
        if (!progress.accelerated) {
            float *swap = sph->variable[SK_SPH_Y];
            sph->variable[SK_SPH_Y] = sph->variable[SK_SPH_NEXT];
            sph->variable[SK_SPH_NEXT] = swap;
            continue;
        }
        report->largest_eigenvalue = progress.largest;
        extrapolate(step, progress.momentum);
    }
}

sk_sph_ending sk_sph_ending_of(const sk_step *step)
{
    return (sk_sph_ending){(float)(1.0 / step->dt), (float)(1.0 / variable_of_pressure(step)), step->dimension};
}

void sk_sph_system_end(sk_step *step)
{
    sk_sph *sph = step->sph;
    const sk_sph_ending ending = sk_sph_ending_of(step);
    sk_particle *records = step->particles.records;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t i = 0; i < step->particles.count; i++)
        sph->pressure[i] = sk_sph_end_particle(&ending, sph->shift[i], sph->variable[SK_SPH_Y][i], sph->density[i],
                                               records[i].velocity);
    if (sph->contact_count)
        sk_sph_coupling_end(step, sph->variable[SK_SPH_Y]);
    step->pressure.iterations = sph->report.iterations;
    step->pressure.residual = sph->report.predicted_error;
}
