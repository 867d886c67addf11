/* The pressure of SPH: q >= 0 with  A q >= b  and equality where q > 0; b is the density ratio above 1 that the particles
 * would have at the end of the step without pressure. Derivation and names: sph.h.
 *
 * Two solvers stand on the same two loops (q to shifts, shifts to A q):
 *   iisph        relaxed Jacobi with clamping (Ihmsen et al. 2014)
 *   accelerated  projected gradient with Jacobi scaling and Nesterov's momentum (Beck and Teboulle 2009), restarted where
 *                the momentum points uphill (O'Donoghue and Candes 2015); the step follows an estimate of the largest
 *                eigenvalue that is read off successive iterates
 *
 * Both stop when the mean over all particles of |b - A q| where q > 0, and of its positive part elsewhere, is below
 * sph.density_error. Counting only what is too dense would let a warm start that is too strong pass: energy would grow.
 */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "methods/sph/sph.h"

#define LEAST_DIAGONAL 0.1 /* of the lattice's */

enum { Y, X, NEXT, BEFORE, RESIDUAL }; /* variables; y is where the operator is applied, and the answer */

#define BLOCK_LOOP(grid, start, end)                                                                                    \
    const uint32_t start = (grid)->cell_start[(size_t)(block - 1) * SK_BLOCK_CELLS];                                    \
    const uint32_t end = (grid)->cell_start[(size_t)block * SK_BLOCK_CELLS];

SK_VECTOR uint32_t index_of(sk_sph_pair pair)
{
    uint32_t index;
    memcpy(&index, (const char *)&pair + 12, sizeof index);
    return index;
}

/* shift_i = S_i q_i + sum_j q_j G_ij; zero for one that pressure does not move. */
static void shifts_of_block(sk_sph *sph, const float *q, uint32_t from, uint32_t to)
{
    const sk_sph_pair *all = sph->pairs;
    for (uint32_t i = from; i < to; i++) {
        const sk_sph_pair *pair = all + sph->first[i], *end = pair + sph->number[i];
        f4 s = sph->sum_gradient[i];
        f4 a = s * q[i], b = {0, 0, 0, 0}, c = b, d = b;
        for (; pair + 4 <= end; pair += 4) {
            a += q[index_of(pair[0])] * pair[0];
            b += q[index_of(pair[1])] * pair[1];
            c += q[index_of(pair[2])] * pair[2];
            d += q[index_of(pair[3])] * pair[3];
        }
        for (; pair < end; pair++)
            a += q[index_of(*pair)] * *pair;
        a = ((a + b) + (c + d)) * s[3];
        a[3] = 0.0f;
        sph->shift[i] = a;
    }
}

/* (A q)_i = S_i . shift_i - sum_j G_ij . shift_j */
SK_VECTOR float apply_one(const sk_sph *sph, uint32_t i)
{
    const sk_sph_pair *pair = sph->pairs + sph->first[i], *end = pair + sph->number[i];
    const f4 *shift = sph->shift;
    f4 a = sph->sum_gradient[i] * shift[i], b = {0, 0, 0, 0}, c = b, d = b;
    for (; pair + 4 <= end; pair += 4) {
        a -= pair[0] * shift[index_of(pair[0])];
        b -= pair[1] * shift[index_of(pair[1])];
        c -= pair[2] * shift[index_of(pair[2])];
        d -= pair[3] * shift[index_of(pair[3])];
    }
    for (; pair < end; pair++)
        a -= *pair * shift[index_of(*pair)];
    a = (a + b) + (c + d);
    return (a[0] + a[1]) + a[2];
}

/* --- The system ------------------------------------------------------------------------------------------------------ */

/* The diagonal without the neighbours that pressure does not move: only needed where there are liquid boundaries. */
static float diagonal_with_roles(const sk_step *step, uint32_t i)
{
    const sk_sph *sph = step->sph;
    const sk_sph_pair *pair = sph->pairs + sph->first[i], *end = pair + sph->number[i];
    f4 s = sph->sum_gradient[i];
    float sum = s[0] * s[0] + s[1] * s[1] + s[2] * s[2];
    for (; pair < end; pair++)
        if (!(step->particles.records[index_of(*pair)].flags & SK_PARTICLE_BOUNDARY))
            sum += pair[0][0] * pair[0][0] + pair[0][1] * pair[0][1] + pair[0][2] * pair[0][2];
    return sum;
}

/* Right side, inverse diagonal and the start of one block. */
static void prepare_block(sk_step *step, uint32_t from, uint32_t to, float to_variable, int roles)
{
    sk_sph *sph = step->sph;
    const sk_particle *records = step->particles.records;
    const float correct = step->dt < sph->correction_time ? (float)(step->dt / sph->correction_time) : 1.0f;
    const float dt = (float)step->dt, least = (float)(LEAST_DIAGONAL * sph->lattice_diagonal);
    for (uint32_t i = from; i < to; i++) {
        const sk_sph_pair *pair = sph->pairs + sph->first[i], *end = pair + sph->number[i];
        f4 v = {records[i].velocity[0], records[i].velocity[1], records[i].velocity[2], 0.0f};
        f4 sum = sph->sum_gradient[i] * v, other = {0, 0, 0, 0};
        for (; pair < end; pair++) {
            const float *u = records[index_of(*pair)].velocity;
            f4 w = {u[0], u[1], u[2], 0.0f};
            other += *pair * w;
        }
        sum -= other;
        float flux = (sum[0] + sum[1]) + sum[2] - sph->wall_flux[i];
        float excess = sph->density[i] - 1.0f;
        sph->source[i] = (excess > 0.0f ? correct * excess : excess) + dt * flux;
        float diagonal = sph->diagonal[i];
        if (roles) {
            int fixed = (records[i].flags & SK_PARTICLE_BOUNDARY) != 0;
            diagonal = fixed ? 0.0f : diagonal_with_roles(step, i);
            sph->sum_gradient[i][3] = fixed ? 0.0f : 1.0f;
        }
        /* Particles that lie on top of each other have next to no gradient: a floor under the diagonal makes them take
         * small steps, and not endless ones. */
        sph->diagonal[i] = diagonal > 0.0f ? 1.0f / fmaxf(diagonal, least) : 0.0f;
        float start = sph->diagonal[i] > 0.0f ? sph->pressure[i] * to_variable / (sph->density[i] * sph->density[i]) : 0.0f;
        sph->variable[Y][i] = sph->variable[X][i] = start;
    }
}

static int any_role(const sk_step *step)
{
    int found = 0;
#pragma omp parallel for num_threads(step->threads) schedule(static) reduction(| : found)
    for (int64_t p = 0; p < step->particles.count; p++)
        found |= (step->particles.records[p].flags & SK_PARTICLE_BOUNDARY) != 0;
    return found;
}

/* --- The solvers ----------------------------------------------------------------------------------------------------- */

typedef struct iteration_sums {
    double error;               /* of |residual| as it counts for the stop */
    double uphill;              /* of (y - next) (next - x) / diagonal: above 0 the momentum has gone too far */
    double curvature, length;   /* d.A d and d.d / diagonal of d = y - before */
} iteration_sums;

/* What a residual counts in the stopping test. */
SK_VECTOR float counted(float residual, float q)
{
    return q > 0.0f ? fabsf(residual) : residual > 0.0f ? residual : 0.0f;
}

static void jacobi_block(sk_sph *sph, uint32_t from, uint32_t to, float omega, double *partial)
{
    float *q = sph->variable[Y], *next = sph->variable[NEXT];
    double error = 0.0;
    for (uint32_t i = from; i < to; i++) {
        float inverse = sph->diagonal[i];
        if (inverse == 0.0f) {
            next[i] = 0.0f;
            continue;
        }
        float residual = sph->source[i] - apply_one(sph, i), value = q[i] + omega * residual * inverse;
        error += counted(residual, q[i]);
        next[i] = value > 0.0f ? value : 0.0f;
    }
    partial[0] = error;
}

static void accelerated_block(sk_sph *sph, uint32_t from, uint32_t to, float omega, int first, double *partial)
{
    float *const y = sph->variable[Y], *const x = sph->variable[X], *const next = sph->variable[NEXT];
    float *const before = sph->variable[BEFORE], *const old_residual = sph->variable[RESIDUAL];
    double error = 0.0, uphill = 0.0, curvature = 0.0, length = 0.0;
    for (uint32_t i = from; i < to; i++) {
        float inverse = sph->diagonal[i];
        if (inverse == 0.0f) {
            next[i] = 0.0f;
            continue;
        }
        float residual = sph->source[i] - apply_one(sph, i), value = y[i] + omega * residual * inverse;
        value = value > 0.0f ? value : 0.0f;
        error += counted(residual, y[i]);
        float diagonal = 1.0f / inverse;
        uphill += (double)((y[i] - value) * (value - x[i]) * diagonal);
        if (!first) {
            float d = y[i] - before[i];
            curvature += (double)(d * (old_residual[i] - residual));
            length += (double)(d * d * diagonal);
        }
        old_residual[i] = residual;
        next[i] = value;
    }
    partial[0] = error;
    partial[1] = uphill;
    partial[2] = curvature;
    partial[3] = length;
}

static iteration_sums add_blocks(const sk_sph *sph, int blocks)
{
    iteration_sums s = {0, 0, 0, 0};
    for (int block = 1; block <= blocks; block++) {
        const double *partial = sph->block_sums + (size_t)block * 8;
        s.error += partial[0];
        s.uphill += partial[1];
        s.curvature += partial[2];
        s.length += partial[3];
    }
    return s;
}

/* One application of the operator to y, and the step of the solver into `next`. */
static iteration_sums iterate(sk_step *step, float omega, int accelerated, int first)
{
    sk_sph *sph = step->sph;
    const sk_grid *grid = &step->grid;
#pragma omp parallel num_threads(step->threads)
    {
        unsigned mode = sk_flush_denormals();
#pragma omp for schedule(dynamic, 1)
        for (int block = 1; block <= grid->particle_blocks; block++) {
            BLOCK_LOOP(grid, from, to)
            shifts_of_block(sph, sph->variable[Y], from, to);
        }
#pragma omp for schedule(dynamic, 1)
        for (int block = 1; block <= grid->particle_blocks; block++) {
            BLOCK_LOOP(grid, from, to)
            double *partial = sph->block_sums + (size_t)block * 8;
            memset(partial, 0, 8 * sizeof *partial);
            if (accelerated)
                accelerated_block(sph, from, to, omega, first, partial);
            else
                jacobi_block(sph, from, to, omega, partial);
        }
        sk_restore_denormals(mode);
    }
    return add_blocks(sph, grid->particle_blocks);
}

/* y goes from the new point on along the last change. */
static void extrapolate(sk_step *step, float momentum)
{
    sk_sph *sph = step->sph;
    float *restrict y = sph->variable[Y], *restrict x = sph->variable[X], *restrict next = sph->variable[NEXT],
          *restrict before = sph->variable[BEFORE];
    const int64_t count = step->particles.count;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t i = 0; i < count; i++) {
        before[i] = y[i];
        float value = next[i] + momentum * (next[i] - x[i]);
        y[i] = value > 0.0f ? value : 0.0f;
        x[i] = next[i];
    }
}

static selkie_code solve(sk_step *step, selkie_error *error)
{
    sk_sph *sph = step->sph;
    const selkie_sph_def *def = &step->scene->sph;
    const double count = (double)step->particles.count;
    const int accelerated = def->solver != SELKIE_SPH_IISPH;
    double theta = 1.0, largest = 2.5;
    sk_sph_report *report = &sph->report;
    for (report->iterations = 0;;) {
        float omega = accelerated ? (float)(1.0 / largest) : 0.5f;
        iteration_sums s = iterate(step, omega, accelerated, report->iterations == 0);
        report->predicted_error = s.error / count;
        if (!(report->predicted_error < 1e6))
            return sk_fail(error, SELKIE_ERROR_DIVERGED,
                           "step %lld at %g s: the pressure solve of SPH went astray after %d iterations; try a smaller "
                           "time.step or time.cfl", (long long)step->step_count + 1, step->time, report->iterations);
        if (report->iterations >= def->min_iterations && report->predicted_error <= def->density_error)
            return SELKIE_OK;
        if (report->iterations >= def->max_iterations)
            return SELKIE_OK; /* the statistics tell */
        report->iterations++;
        if (!accelerated) {
            float *swap = sph->variable[Y];
            sph->variable[Y] = sph->variable[NEXT];
            sph->variable[NEXT] = swap;
            continue;
        }
        if (s.length > 0.0 && s.curvature > largest * s.length)
            largest = 1.05 * s.curvature / s.length;
        report->largest_eigenvalue = largest;
        double following = s.uphill > 0.0 ? 1.0 : 0.5 * (1.0 + sqrt(1.0 + 4.0 * theta * theta));
        float momentum = s.uphill > 0.0 ? 0.0f : (float)((theta - 1.0) / following);
        theta = following;
        extrapolate(step, momentum);
    }
}

/* --- The phase ------------------------------------------------------------------------------------------------------- */

/* v takes up the displacement by pressure; the pressure is kept for the next step and for whoever looks. */
static void take_up(sk_step *step, float from_variable)
{
    sk_sph *sph = step->sph;
    const float inverse_dt = (float)(1.0 / step->dt);
    sk_particle *records = step->particles.records;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t i = 0; i < step->particles.count; i++) {
        for (int d = 0; d < SELKIE_DIM; d++)
            records[i].velocity[d] -= sph->shift[i][d] * inverse_dt;
        sph->pressure[i] = sph->variable[Y][i] * from_variable * sph->density[i] * sph->density[i];
    }
}

selkie_code SK_DIM(sk_sph_pressure)(sk_step *step, selkie_error *error)
{
    sk_sph *sph = step->sph;
    const sk_grid *grid = &step->grid;
    if (!step->particles.count || !(step->dt > 0.0) || !sk_step_has_pressure(step))
        return SELKIE_OK;
    double unit = step->dt * sk_step_kick(step) / step->density; /* m2/Pa at rest density */
    int roles = any_role(step);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int block = 1; block <= grid->particle_blocks; block++) {
        BLOCK_LOOP(grid, from, to)
        prepare_block(step, from, to, (float)unit, roles);
    }
    SK_TRY(solve(step, error));
    take_up(step, (float)(1.0 / unit));
    step->pressure.iterations = sph->report.iterations;
    step->pressure.residual = sph->report.predicted_error;
    return SELKIE_OK;
}
