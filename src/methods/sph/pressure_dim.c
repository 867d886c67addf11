/* The pressure of SPH, vectorised over neighbours and particles: right side, operator, steps of the solvers. solve.c
 * has the equations and the solvers. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "methods/sph/boundary.h"
#include "methods/sph/solve.h"
#include "methods/sph/sph_tile.h"

enum {
    SOLVER_ARRAYS = 5, /* four for vectors, one for values */
    AHEAD = 1024       /* bytes of the lists to prefetch */
};

/* shift_i = S_i u_i + sum_j u_j G_ij; 0 for a particle without pressure. `u` is the variable in the tile. */
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
            __builtin_prefetch(list + AHEAD + (size_t)k * SK_SPH_ENTRIES * sizeof(sk_sph_lean_entry));
            sum += gradient * f16_splat4(u + index[0], u + index[1], u + index[2], u + index[3]);
        }
        f4 shift = f4_load(sph->sum_gradient[i]) * own[i] + f16_sum4(sum);
        shift[3] = 0.0f; /* clear the fourth lane, which has summed up indices */
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
        __builtin_prefetch(list + AHEAD + (size_t)k * SK_SPH_ENTRIES * sizeof(sk_sph_lean_entry));
        sum += gradient * f16_load4(v[index[0]], v[index[1]], v[index[2]], v[index[3]]);
    }
    return f4_sum(f4_load(sph->sum_gradient[i]) * f4_load(own) - f16_sum4(sum));
}

/* --- The system --- */

/* The diagonal without neighbours that have no pressure (`moves` is 0 for those, in the tile). Needed only with liquid
 * boundaries. */
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

/* Right side, inverse diagonal and start of the particles of a block. */
static void prepare_block(sk_step *step, const sk_sph_system *system, tile_worker *w, int block, const int wide)
{
    sk_sph *sph = step->sph;
    const sk_particle *records = step->particles.records;
    float(*lanes)[4] = lanes_of(w, 0);
    make_tile(&step->grid, block, &w->tile);
    sk_particle_tile_load_record_lanes(&w->tile, records, 3, lanes);
    if (system->roles)
        for (int r = 0; r < w->tile.run_count; r++)
            for (uint32_t p = w->tile.runs[r].from, at = w->tile.runs[r].at; p < w->tile.runs[r].to; p++, at++)
                w->array[4][at] = records[p].flags & SK_PARTICLE_BOUNDARY ? 0.0f : 1.0f;
    for (uint32_t i = block_begin(&step->grid, block); i < block_end(&step->grid, block); i++) {
        const float own[4] = {records[i].velocity[0], records[i].velocity[1],
                              SELKIE_DIM == 3 ? records[i].velocity[2] : 0.0f, 0.0f};
        float flux = wide ? divergence(sph, own, lanes, i, 1) : divergence(sph, own, lanes, i, 0);
        flux -= sph->wall_flux[i] * system->spacing;
        sph->source[i] = sk_sph_source(system, sph->density[i], flux);
        float diagonal = sph->diagonal[i];
        if (system->roles)
            diagonal = records[i].flags & SK_PARTICLE_BOUNDARY ? 0.0f : diagonal_with_roles(sph, w->array[4], i, wide);
        sph->diagonal[i] = sk_sph_inverse_diagonal(system, diagonal);
        sph->variable[SK_SPH_Y][i] = sph->variable[SK_SPH_X][i] =
            sk_sph_start(system, sph->diagonal[i], sph->pressure[i], sph->density[i]);
    }
}

/* --- The solvers --- */

/* The residual in the stopping test. */
SK_VECTOR f8 counted(f8 residual, f8 q)
{
    return f8_select(q > 0.0f, f8_abs(residual), f8_max(residual, f8_splat(0.0f)));
}

/* Residuals of up to eight particles from i on; 0 if the inverse diagonal is 0. */
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

/* The particles of a block. */
typedef struct solver_block {
    const float (*shift)[4]; /* of the tile */
    uint32_t from, to;
    float omega;
    int first;
    sk_sph_solve_sums *sums;
} solver_block;

SK_VECTOR void jacobi_block(sk_sph *sph, const solver_block *block, const int wide)
{
    const uint32_t to = block->to;
    const float *q = sph->variable[SK_SPH_Y];
    float *next = sph->variable[SK_SPH_NEXT];
    d8 error = {0};
    for (uint32_t i = block->from; i < to; i += 8) {
        const uint32_t count = to - i < 8 ? to - i : 8;
        f8 inverse, residual = residuals_at(sph, block->shift, i, count, wide, &inverse), old = f8_load(q + i);
        error += d8_from_f8(counted(residual, old));
        f8 value = f8_max(old + block->omega * residual * inverse, f8_splat(0.0f));
        f8_store_first(next + i, f8_select(inverse > 0.0f, value, f8_splat(0.0f)), count);
    }
    *block->sums = (sk_sph_solve_sums){.error = d8_sum(error)};
}

SK_VECTOR void accelerated_block(sk_sph *sph, const solver_block *block, const int wide)
{
    const uint32_t to = block->to;
    const float *y = sph->variable[SK_SPH_Y], *x = sph->variable[SK_SPH_X], *before = sph->variable[SK_SPH_BEFORE];
    float *next = sph->variable[SK_SPH_NEXT], *old_residual = sph->variable[SK_SPH_RESIDUAL];
    const f8 zero = f8_splat(0.0f);
    d8 error = {0}, uphill = {0}, curvature = {0}, length = {0};
    for (uint32_t i = block->from; i < to; i += 8) {
        const uint32_t count = to - i < 8 ? to - i : 8;
        f8 inverse, residual = residuals_at(sph, block->shift, i, count, wide, &inverse), here = f8_load(y + i);
        const i8 moves = inverse > 0.0f;
        const f8 diagonal = f8_select(moves, 1.0f / inverse, zero);
        const f8 value = f8_select(moves, f8_max(here + block->omega * residual * inverse, zero), zero);
        error += d8_from_f8(counted(residual, here));
        /* f8_select, because values beyond the last particle are undefined */
        uphill += d8_from_f8(f8_select(moves, (here - value) * (value - f8_load(x + i)) * diagonal, zero));
        if (!block->first) {
            const f8 d = here - f8_load(before + i);
            curvature += d8_from_f8(f8_select(moves, d * (f8_load(old_residual + i) - residual), zero));
            length += d8_from_f8(f8_select(moves, d * d * diagonal, zero));
        }
        f8_store_first(old_residual + i, residual, count);
        f8_store_first(next + i, value, count);
    }
    *block->sums = (sk_sph_solve_sums){d8_sum(error), d8_sum(uphill), d8_sum(curvature), d8_sum(length)};
}

static sk_sph_solve_sums iterate(sk_step *step, const sk_sph_iteration *iteration, void *scratch)
{
    sk_sph *sph = step->sph;
    const sk_grid *grid = &step->grid;
#pragma omp parallel num_threads(step->threads)
    {
        unsigned long mode = sk_flush_denormals();
        tile_worker *w = worker_of(sph, scratch, omp_get_thread_num(), SOLVER_ARRAYS);

        /* The displacement of each particle by the pressures of its neighbours. */
#pragma omp for schedule(dynamic, 1)
        for (int block = 1; block <= grid->particle_blocks; block++) {
            make_tile(grid, block, &w->tile);
            sk_particle_tile_load_floats(&w->tile, sph->variable[SK_SPH_Y], w->array[4]);
            if (sph->block_wide[block])
                shifts_of_block(sph, sph->variable[SK_SPH_Y], w->array[4], block_begin(grid, block),
                                block_end(grid, block), 1);
            else
                shifts_of_block(sph, sph->variable[SK_SPH_Y], w->array[4], block_begin(grid, block),
                                block_end(grid, block), 0);
        }

        /* The response of rigid bodies. */
        if (sph->body_term)
#pragma omp single
            sk_sph_coupling_apply(step, sph->variable[SK_SPH_Y]);

#pragma omp for schedule(dynamic, 1)
        for (int block = 1; block <= grid->particle_blocks; block++) {
            /* Residuals and new pressures from the displacements of the neighbours. */
            make_tile(grid, block, &w->tile);
            sk_particle_tile_load_lanes(&w->tile, (const float(*)[4])sph->shift, lanes_of(w, 0));
            const solver_block here = {.shift = (const float(*)[4])lanes_of(w, 0),
                                       .from = block_begin(grid, block),
                                       .to = block_end(grid, block),
                                       .omega = iteration->omega,
                                       .first = iteration->first,
                                       .sums = &sph->block_sums[block].solve};
            if (iteration->accelerated && sph->block_wide[block])
                accelerated_block(sph, &here, 1);
            else if (iteration->accelerated)
                accelerated_block(sph, &here, 0);
            else if (sph->block_wide[block])
                jacobi_block(sph, &here, 1);
            else
                jacobi_block(sph, &here, 0);
        }
        sk_restore_denormals(mode);
    }
    return sk_sph_add_solve_sums(step);
}

selkie_code SK_DIM(sk_sph_pressure)(sk_step *step, selkie_error *error)
{
    sk_sph *sph = step->sph;
    sk_sph_system system;
    if (!sk_sph_system_begin(step, &system))
        return SELKIE_OK;
    SK_TRY(SK_DIM(sk_sph_coupling_begin)(step, error));
    void *scratch;
    SK_TRY(sk_step_scratch(step, worker_bytes(sph, SOLVER_ARRAYS) * (size_t)step->threads, "sph pressure", &scratch,
                           error));
#pragma omp parallel num_threads(step->threads)
    {
        unsigned long mode = sk_flush_denormals();
        tile_worker *w = worker_of(sph, scratch, omp_get_thread_num(), SOLVER_ARRAYS);
#pragma omp for schedule(dynamic, 1)
        for (int block = 1; block <= step->grid.particle_blocks; block++)
            prepare_block(step, &system, w, block, sph->block_wide[block]);
        sk_restore_denormals(mode);
    }
    SK_TRY(sk_sph_solve(step, iterate, scratch, error));
    sk_sph_system_end(step);
    return SELKIE_OK;
}
