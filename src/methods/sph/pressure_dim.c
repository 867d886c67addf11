/* The pressure of SPH: q >= 0 with  A q >= b  and equality where q > 0; b is the density ratio above 1 that the
 * particles would have at the end of the step without pressure. Derivation and names: sph.h.
 *
 * Two solvers stand on the same two loops (q to shifts, shifts to A q):
 *
 *   iisph        relaxed Jacobi with clamping, from half of the last pressure (Ihmsen et al. 2014); b takes back the
 * whole error of density, and the solve ends at sph.density_error accelerated  projected gradients with Jacobi scaling
 * and Nesterov's momentum (Beck and Teboulle 2009), restarted where the momentum points uphill (O'Donoghue and Candes
 * 2015), from all of the last pressure; the step follows an estimate of the largest eigenvalue that is read off
 * successive iterates
 *
 * A full warm start needs care. Let the iterations of a step resolve a mode to the share c, and b hold the share beta
 * of the error of density e. Then  e''' + c e'' + c e' + c beta e = 0  (' = a step), which grows unless beta < c: a
 * solve that is stopped early pumps energy into long waves. So the accelerated solver
 *   - ends by the rate of change of density that it leaves (sph.divergence_error), not only by the error: in a column
 * of a metre, 0.1 % in a step of 2 ms is half a metre a second at the top;
 *   - takes an error back over a time, not over a step, or the correction of a long step's error in a short one adds
 * speed;
 *   - counts a particle as full although noise has put it a little below rest density (allowed() below).
 *
 * A solve stops when the mean over all particles but solid ones of |b - A q| where q > 0, and of its positive part
 * elsewhere, is below what is asked for. Counting only what is too dense would let a start that is too strong pass.
 */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "methods/sph/boundary.h"
#include "methods/sph/sph_tile.h"

#define LEAST_DIAGONAL 0.1   /* of the lattice's */
#define FULL 0.95f           /* density ratio */
#define CLOSED 0.1f          /* share of a gap */
#define CORRECTION_STEPS 6.0 /* natural steps over which an error of density is taken back */

enum {
    SOLVER_ARRAYS = 5, /* four for vectors, one for values */
    AHEAD = 1024       /* bytes of the lists that are asked for before they are needed */
};
enum { Y, X, NEXT, BEFORE, RESIDUAL }; /* variables; y is where the operator is applied, and the answer */

/* shift_i = S_i u_i + sum_j u_j G_ij; zero for one that pressure does not move. `u` is the variable in the tile. */
SK_VECTOR void shifts_of_block(sk_sph *sph, const float *restrict own, const float *restrict u, uint32_t from,
                               uint32_t to, const int wide)
{
    for (uint32_t i = from; i < to; i++) {
        const char *list = list_of(sph, i);
        const uint32_t fours = four_count(sph, i);
        f16 sum = {0};
        for (uint32_t k = 0; k < fours; k++) {
            uint32_t index[4];
            f16 gradient = entries_at(list, wide, k, index);
            __builtin_prefetch(list + AHEAD + (size_t)k * ENTRIES * sizeof(lean_entry));
            sum += gradient * f16_splat4(u + index[0], u + index[1], u + index[2], u + index[3]);
        }
        f4 shift = f4_load(sph->sum_gradient[i]) * own[i] + f16_sum4(sum);
        shift[3] = 0.0f; /* indices have been added up there */
        f4_store(sph->shift[i], sph->diagonal[i] > 0.0f ? shift : (f4){0});
    }
}

/* S_i . v_i - sum_j G_ij . v_j, for the shifts (A u) or the velocities (their divergence). The fourth lanes are 0. */
SK_VECTOR float divergence(const sk_sph *sph, const float own[4], const float (*v)[4], uint32_t i, const int wide)
{
    const char *list = list_of(sph, i);
    const uint32_t fours = four_count(sph, i);
    f16 sum = {0};
    for (uint32_t k = 0; k < fours; k++) {
        uint32_t index[4];
        f16 gradient = entries_at(list, wide, k, index);
        __builtin_prefetch(list + AHEAD + (size_t)k * ENTRIES * sizeof(lean_entry));
        sum += gradient * f16_load4(v[index[0]], v[index[1]], v[index[2]], v[index[3]]);
    }
    return f4_sum(f4_load(sph->sum_gradient[i]) * f4_load(own) - f16_sum4(sum));
}

/* --- The system --- */

/* The diagonal without the neighbours that pressure does not move (`moves` is 0 for those, in the tile): only needed
 * where there are liquid boundaries. */
static float diagonal_with_roles(const sk_sph *sph, const float *moves, uint32_t i, int wide)
{
    const void *list = list_of(sph, i);
    f8 sum = f8_splat(0.0f), gradient[3];
    for (uint32_t g = 0; g < group_count(sph, i); g++) {
        i8 index = group_at(list, wide, g, sph->number[i], gradient);
        f8 square = gradient[0] * gradient[0] + gradient[1] * gradient[1];
        if (SELKIE_DIM == 3)
            square += gradient[2] * gradient[2];
        sum += square * f8_gather(moves, index);
    }
    float result = f8_sum(sum);
    for (int d = 0; d < SELKIE_DIM; d++)
        result += sph->sum_gradient[i][d] * sph->sum_gradient[i][d];
    return result;
}

/* How much denser (ratio) the velocities of a step may make a particle of density ratio D. Below FULL there is air in
 * its reach, and it may fill up. Above, it counts as full although it is not: noise puts half of all particles below 1,
 * and if these let go of what lies on them, the liquid would begin to fall. What is missing to 1 may be closed a little
 * in each step. */
SK_VECTOR float allowed(float density)
{
    return density >= 1.0f   ? 0.0f
           : density >= FULL ? CLOSED * (1.0f - density)
                             : CLOSED * (1.0f - FULL) + (FULL - density);
}

typedef struct system_frame {
    float dt, correct; /* s; share of the error of density that the velocities take back in this step */
    int lenient;       /* whatever is below rest density may fill up in one step */
    float warm;        /* share of the last pressure that the solve starts from */
    float least;       /* diagonal */
    float unit;        /* m/Pa: variable of a pressure at rest density */
    float spacing;     /* m */
    int roles;         /* there are liquid boundaries */
} system_frame;

/* Right side (m: the density ratio's excess times the spacing), inverse diagonal and start of the particles of a block.
 */
static void prepare_block(sk_step *step, const system_frame *frame, tile_worker *w, int block, const int wide)
{
    sk_sph *sph = step->sph;
    const sk_particle *records = step->particles.records;
    float(*lanes)[4] = lanes_of(w, 0);
    make_tile(&step->grid, block, &w->tile);
    load_record_lanes(&w->tile, records, 3, lanes);
    if (frame->roles)
        for (int r = 0; r < w->tile.run_count; r++)
            for (uint32_t p = w->tile.runs[r].from, at = w->tile.runs[r].at; p < w->tile.runs[r].to; p++, at++)
                w->array[4][at] = records[p].flags & SK_PARTICLE_BOUNDARY ? 0.0f : 1.0f;
    for (uint32_t i = block_begin(&step->grid, block); i < block_end(&step->grid, block); i++) {
        const float own[4] = {records[i].velocity[0], records[i].velocity[1],
                              SELKIE_DIM == 3 ? records[i].velocity[2] : 0.0f, 0.0f};
        float flux = wide ? divergence(sph, own, lanes, i, 1) : divergence(sph, own, lanes, i, 0);
        flux -= sph->wall_flux[i] * frame->spacing;
        float excess = sph->density[i] - 1.0f;
        if (excess > 0.0f)
            excess *= frame->correct;
        else if (!frame->lenient)
            excess = -allowed(sph->density[i]);
        sph->source[i] = excess * frame->spacing + frame->dt * flux;
        float diagonal = sph->diagonal[i];
        if (frame->roles)
            diagonal = records[i].flags & SK_PARTICLE_BOUNDARY ? 0.0f : diagonal_with_roles(sph, w->array[4], i, wide);
        /* Particles that lie on top of each other have next to no gradient: a floor under the diagonal makes them take
         * small steps, and not endless ones. */
        sph->diagonal[i] = diagonal > 0.0f ? 1.0f / fmaxf(diagonal, frame->least) : 0.0f;
        float start = sph->diagonal[i] > 0.0f
                          ? frame->warm * sph->pressure[i] * frame->unit / (sph->density[i] * sph->density[i])
                          : 0.0f;
        sph->variable[Y][i] = sph->variable[X][i] = start;
    }
}

/* --- The solvers --- */

typedef struct iteration_sums {
    double error;             /* of |residual| as it counts for the stop */
    double uphill;            /* of (y - next) (next - x) / diagonal: above 0 the momentum has gone too far */
    double curvature, length; /* d.A d and d.d / diagonal of d = y - before */
} iteration_sums;

/* What a residual counts in the stopping test. */
SK_VECTOR f8 counted(f8 residual, f8 q)
{
    return f8_select(q > 0.0f, f8_abs(residual), f8_max(residual, f8_splat(0.0f)));
}

/* Residuals of up to eight particles from i on; 0 where the inverse diagonal is. */
SK_VECTOR f8 residuals_at(const sk_sph *sph, const float (*shift)[4], uint32_t i, uint32_t count, const int wide,
                          f8 *inverse)
{
    f8 applied = f8_splat(0.0f);
    for (uint32_t l = 0; l < count; l++)
        applied[l] = divergence(sph, sph->shift[i + l], shift, i + l, wide);
    *inverse = f8_select(i8_first((int)count), f8_load(sph->diagonal + i), f8_splat(0.0f));
    f8 residual = f8_load(sph->source + i) - applied;
    if (sph->body_term)
        residual -= f8_load(sph->body_term + i);
    return f8_select(*inverse > 0.0f, residual, f8_splat(0.0f));
}

SK_VECTOR void jacobi_block(sk_sph *sph, const float (*shift)[4], uint32_t from, uint32_t to, float omega,
                            const int wide, double *partial)
{
    const float *q = sph->variable[Y];
    float *next = sph->variable[NEXT];
    d8 error = {0};
    for (uint32_t i = from; i < to; i += 8) {
        const uint32_t count = to - i < 8 ? to - i : 8;
        f8 inverse, residual = residuals_at(sph, shift, i, count, wide, &inverse), old = f8_load(q + i);
        error += d8_from_f8(counted(residual, old));
        f8 value = f8_max(old + omega * residual * inverse, f8_splat(0.0f));
        f8_store_first(next + i, f8_select(inverse > 0.0f, value, f8_splat(0.0f)), count);
    }
    partial[0] = d8_sum(error);
}

SK_VECTOR void accelerated_block(sk_sph *sph, const float (*shift)[4], uint32_t from, uint32_t to, float omega,
                                 int first, const int wide, double *partial)
{
    const float *y = sph->variable[Y], *x = sph->variable[X], *before = sph->variable[BEFORE];
    float *next = sph->variable[NEXT], *old_residual = sph->variable[RESIDUAL];
    const f8 zero = f8_splat(0.0f);
    d8 error = {0}, uphill = {0}, curvature = {0}, length = {0};
    for (uint32_t i = from; i < to; i += 8) {
        const uint32_t count = to - i < 8 ? to - i : 8;
        f8 inverse, residual = residuals_at(sph, shift, i, count, wide, &inverse), here = f8_load(y + i);
        const i8 moves = inverse > 0.0f;
        const f8 diagonal = f8_select(moves, 1.0f / inverse, zero);
        const f8 value = f8_select(moves, f8_max(here + omega * residual * inverse, zero), zero);
        error += d8_from_f8(counted(residual, here));
        /* f8_select: beyond the last particle lies anything */
        uphill += d8_from_f8(f8_select(moves, (here - value) * (value - f8_load(x + i)) * diagonal, zero));
        if (!first) {
            const f8 d = here - f8_load(before + i);
            curvature += d8_from_f8(f8_select(moves, d * (f8_load(old_residual + i) - residual), zero));
            length += d8_from_f8(f8_select(moves, d * d * diagonal, zero));
        }
        f8_store_first(old_residual + i, residual, count);
        f8_store_first(next + i, value, count);
    }
    partial[0] = d8_sum(error);
    partial[1] = d8_sum(uphill);
    partial[2] = d8_sum(curvature);
    partial[3] = d8_sum(length);
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
static iteration_sums iterate(sk_step *step, void *scratch, float omega, int accelerated, int first)
{
    sk_sph *sph = step->sph;
    const sk_grid *grid = &step->grid;
#pragma omp parallel num_threads(step->threads)
    {
        unsigned long mode = sk_flush_denormals();
        tile_worker *w = worker_of(sph, scratch, omp_get_thread_num(), SOLVER_ARRAYS);
#pragma omp for schedule(dynamic, 1)
        for (int block = 1; block <= grid->particle_blocks; block++) {
            make_tile(grid, block, &w->tile);
            load_floats(&w->tile, sph->variable[Y], w->array[4]);
            if (sph->block_wide[block])
                shifts_of_block(sph, sph->variable[Y], w->array[4], block_begin(grid, block), block_end(grid, block),
                                1);
            else
                shifts_of_block(sph, sph->variable[Y], w->array[4], block_begin(grid, block), block_end(grid, block),
                                0);
        }
        if (sph->body_term)
#pragma omp single
            sk_sph_coupling_apply(step, sph->variable[Y]);
#pragma omp for schedule(dynamic, 1)
        for (int block = 1; block <= grid->particle_blocks; block++) {
            double *partial = sph->block_sums + (size_t)block * 8;
            const uint32_t from = block_begin(grid, block), to = block_end(grid, block);
            memset(partial, 0, 8 * sizeof *partial);
            make_tile(grid, block, &w->tile);
            float(*shift)[4] = lanes_of(w, 0);
            load_lanes(&w->tile, sph->shift, shift);
            if (accelerated && sph->block_wide[block])
                accelerated_block(sph, shift, from, to, omega, first, 1, partial);
            else if (accelerated)
                accelerated_block(sph, shift, from, to, omega, first, 0, partial);
            else if (sph->block_wide[block])
                jacobi_block(sph, shift, from, to, omega, 1, partial);
            else
                jacobi_block(sph, shift, from, to, omega, 0, partial);
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

typedef struct solve_options {
    int accelerated, least, most;
    double error; /* mean density error to stop at */
} solve_options;

static selkie_code solve(sk_step *step, void *scratch, const solve_options *options, selkie_error *error)
{
    sk_sph *sph = step->sph;
    /* Solid particles have no equation: they must not dilute the mean. */
    const double count = fmax((double)(step->particles.count - sph->report.boundaries), 1.0);
    double theta = 1.0, largest = 2.5;
    sk_sph_report *report = &sph->report;
    for (report->iterations = 0;;) {
        float omega = options->accelerated ? (float)(1.0 / largest) : 0.5f;
        iteration_sums s = iterate(step, scratch, omega, options->accelerated, report->iterations == 0);
        report->predicted_error = s.error / (count * sph->spacing);
        if (!(report->predicted_error < 1e6))
            return sk_fail(
                error, SELKIE_ERROR_DIVERGED,
                "step %lld at %g s: the pressure solve of SPH went astray after %d iterations; try a smaller "
                "time.step or time.cfl",
                (long long)step->step_count + 1, step->time, report->iterations);
        if ((report->iterations >= options->least && report->predicted_error <= options->error) ||
            report->iterations >= options->most)
            return SELKIE_OK; /* what it left is in the statistics */
        report->iterations++;
        if (!options->accelerated) {
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

/* --- The phase --- */

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
    const selkie_sph_def *def = &step->scene->sph;
    const int accelerated = def->solver == SELKIE_SPH_ACCELERATED;
    memset(&step->pressure, 0, sizeof step->pressure);
    if (!step->particles.count || !(step->dt > 0.0) || !sk_step_has_pressure(step))
        return SELKIE_OK;
    /* The variable is q / spacing, and q = dt kick p / (rho0 D^2). */
    const double unit = step->dt * sk_step_kick(step) / (step->density * sph->spacing);
    const double over = (accelerated ? CORRECTION_STEPS : 1.0) * sph->correction_time;
    const system_frame frame = {.dt = (float)step->dt,
                                .unit = (float)unit,
                                .spacing = (float)sph->spacing,
                                .correct = step->dt < over ? (float)(step->dt / over) : 1.0f,
                                .lenient = !accelerated,
                                .warm = accelerated ? 1.0f : 0.5f,
                                .least = (float)(LEAST_DIAGONAL * sph->lattice_diagonal),
                                .roles = sph->report.boundaries > 0};
    SK_TRY(SK_DIM(sk_sph_coupling_begin)(step, error));
    void *scratch;
    SK_TRY(sk_step_scratch(step, worker_bytes(sph, SOLVER_ARRAYS) * (size_t)step->threads, "sph pressure", &scratch,
                           error));
#pragma omp parallel num_threads(step->threads)
    {
        unsigned long mode = sk_flush_denormals();
        tile_worker *w = worker_of(sph, scratch, omp_get_thread_num(), SOLVER_ARRAYS);
#pragma omp for schedule(dynamic, 1)
        for (int block = 1; block <= grid->particle_blocks; block++)
            prepare_block(step, &frame, w, block, sph->block_wide[block]);
        sk_restore_denormals(mode);
    }
    solve_options options = {accelerated, def->min_iterations, def->max_iterations, def->density_error};
    if (accelerated && sph->rate > 0.0)
        options.error = fmin(options.error, def->divergence_error * sph->rate * step->dt);
    SK_TRY(solve(step, scratch, &options, error));
    take_up(step, (float)(1.0 / unit));
    if (sph->contact_count)
        sk_sph_coupling_end(step, sph->variable[Y]);
    step->pressure.iterations = sph->report.iterations;
    step->pressure.residual = sph->report.predicted_error;
    return SELKIE_OK;
}
