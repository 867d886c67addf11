/* Forces between particles, eight neighbours at a time. force_parts.h lists the forces. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "methods/sph/force_parts.h"
#include "methods/sph/sph_tile.h"

enum {
    POSITION = 0,
    VELOCITY = 4,
    NORMAL = 8,
    FORCE_ARRAYS = 12
}; /* vectors of four lanes; the fourth lane of a position is the density, that of a velocity sk_sph_calm */

typedef struct pair_frame {
    sk_step *step;
    sk_cell_index index;
    sk_sph_force_constants constants;
} pair_frame;

/* Normals: H sum_j V_j grad W_ij, into sph->shift. They are large near the surface and vanish inside. */
static void normals_of_block(const pair_frame *frame, tile_worker *w, int block)
{
    sk_step *step = frame->step;
    sk_sph *sph = step->sph;
    const int wide = sph->block_wide[block];
    const float scale = 1.0f / (frame->constants.spacing * frame->constants.inverse_support);
    sk_particle_tile_make(&frame->index, block, &w->tile);
    sk_particle_tile_load_floats(&w->tile, sph->density, w->array[0]);
    for (uint32_t i = block_begin(&step->grid, block); i < block_end(&step->grid, block); i++) {
        const void *list = list_of(sph, i);
        f8 sum[3] = {f8_splat(0.0f), f8_splat(0.0f), f8_splat(0.0f)}, gradient[3];
        for (uint32_t g = 0; g < group_count(sph, i); g++) {
            i8 index =
                wide ? group_at(list, 1, g, sph->number[i], gradient) : group_at(list, 0, g, sph->number[i], gradient);
            f8 volume = 1.0f / f8_gather(w->array[0], index);
            for (int d = 0; d < SELKIE_DIM; d++)
                sum[d] += volume * gradient[d];
        }
        for (int d = 0; d < SELKIE_DIM; d++)
            sph->shift[i][d] = scale * f8_sum(sum[d]);
    }
}

SK_VECTOR f8 kernel_value(const pair_frame *frame, f8 q)
{
    f8 a = f8_max(1.0f - q, f8_splat(0.0f));
    if (frame->constants.wendland)
        return a * a * a * a * (4.0f * q + 1.0f) * frame->constants.weight;
    f8 b = f8_max(0.5f - q, f8_splat(0.0f));
    return (2.0f * a * a * a - 8.0f * b * b * b) * frame->constants.weight;
}

SK_VECTOR f8 cohesion_of(f8 q)
{
    f8 product = f8_max(1.0f - q, f8_splat(0.0f)) * q, cube = product * product * product;
    return f8_select(q > 0.5f, cube, 2.0f * cube - 0.015625f);
}

/* sk_sph_calmed for eight pairs. */
SK_VECTOR f8 calmed(const pair_frame *frame, f8 calm, f8 speed2)
{
    const sk_sph_force_constants *constants = &frame->constants;
    return constants->xsph + constants->calming * calm * f8_max(1.0f - speed2 * constants->calm_speed, f8_splat(0.0f));
}

/* sk_sph_filter_weight for eight pairs. */
SK_VECTOR f8 filter_weight(const pair_frame *frame, f8 speed2)
{
    return f8_max(1.0f - speed2 * frame->constants.calm_speed, f8_splat(0.0f));
}

/* How much slower than the mean of its neighbours a particle is, for the filter, into sph->shift. */
SK_VECTOR void lag_of_particle(const pair_frame *frame, const tile_worker *w, uint32_t i, const int wide)
{
    const sk_sph *sph = frame->step->sph;
    const sk_particle *own = &frame->step->particles.records[i];
    const void *list = list_of(sph, i);
    const uint32_t n = sph->number[i];
    f8 lag[3] = {f8_splat(0.0f), f8_splat(0.0f), f8_splat(0.0f)};
    for (uint32_t g = 0; g < group_count(sph, i); g++) {
        f8 gradient[3], x[4], v[4], r2 = f8_splat(0.0f), speed2 = r2;
        const i8 lanes = i8_first((int)(n - 8 * g)),
                 index = wide ? group_at(list, 1, g, n, gradient) : group_at(list, 0, g, n, gradient);
        gather_lanes(lanes_of(w, POSITION), index, x);
        gather_lanes(lanes_of(w, VELOCITY), index, v);
        for (int d = 0; d < SELKIE_DIM; d++) {
            const f8 way = own->position[d] - x[d];
            v[d] = v[d] - own->velocity[d];
            r2 += way * way;
            speed2 += v[d] * v[d];
        }
        const f8 q = f8_sqrt(r2) * frame->constants.inverse_support,
                 weight = filter_weight(frame, speed2) * kernel_value(frame, q) * 2.0f / (sph->density[i] + x[3]);
        for (int d = 0; d < SELKIE_DIM; d++)
            lag[d] += f8_select(lanes, weight * v[d], f8_splat(0.0f));
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        sph->shift[i][d] = f8_sum(lag[d]);
}

/* The velocity change of one particle by its neighbours. */
SK_VECTOR void pairs_of_particle(const pair_frame *frame, const tile_worker *w, uint32_t i, const int wide,
                                 f8 change[3])
{
    const sk_sph *sph = frame->step->sph;
    const sk_particle *own = &frame->step->particles.records[i];
    const void *list = list_of(sph, i);
    const sk_sph_viscous_shape *shape = &frame->constants.viscosity;
    const uint32_t n = sph->number[i];
    const float calm = sk_sph_calm(&frame->constants, sph->pressure[i]);
    for (uint32_t g = 0; g < group_count(sph, i); g++) {
        f8 gradient[3], x[4], v[4], normal[4], r2 = f8_splat(0.0f), approach = r2, speed2 = r2;
        i8 lanes = i8_first((int)(n - 8 * g)), index = wide ? group_at(list, 1, g, sph->number[i], gradient)
                                                            : group_at(list, 0, g, sph->number[i], gradient);

        /* Differences of position and velocity to eight neighbours. */
        gather_lanes(lanes_of(w, POSITION), index, x);
        gather_lanes(lanes_of(w, VELOCITY), index, v);
        if (sk_sph_needs_normals(&frame->constants))
            gather_lanes(lanes_of(w, NORMAL), index, normal);
        for (int d = 0; d < SELKIE_DIM; d++) {
            x[d] = own->position[d] - x[d];
            v[d] = own->velocity[d] - v[d];
            r2 += x[d] * x[d];
            approach += x[d] * v[d];
            speed2 += v[d] * v[d];
        }

        /* Coefficients of the active terms along the gradient, x and v. */
        f8 volume = 2.0f / (sph->density[i] + x[3]); /* over the particle volume */
        f8 r = f8_sqrt(r2), q = r * frame->constants.inverse_support, along_x = f8_splat(0.0f),
           along_v = f8_splat(0.0f), along_gradient = f8_splat(0.0f), filter = f8_splat(0.0f);
        if (frame->constants.viscous)
            along_gradient =
                volume * approach * (shape->near / (r2 + shape->softening) + shape->even + shape->far * r2);
        if (frame->constants.xsph + frame->constants.calming > 0.0f)
            along_v = -calmed(frame, f8_min(f8_splat(calm), v[3]), speed2) * volume * kernel_value(frame, q);
        if (frame->constants.filter > 0.0f)
            filter = frame->constants.filter * filter_weight(frame, speed2) * volume * kernel_value(frame, q);
        if (frame->constants.becker > 0.0f)
            along_x = -frame->constants.becker * kernel_value(frame, q);
        if (frame->constants.cohesion > 0.0f)
            along_x -= frame->constants.cohesion * volume * cohesion_of(q) /
                       f8_max(r, f8_splat(1e-6f * frame->constants.spacing));

        /* Add the terms of the valid lanes. */
        for (int d = 0; d < SELKIE_DIM; d++) {
            f8 sum = along_gradient * gradient[d] + along_x * x[d] + along_v * v[d];
            if (frame->constants.curvature > 0.0f)
                sum -= frame->constants.curvature * volume * (sph->shift[i][d] - normal[d]);
            if (frame->constants.filter > 0.0f)
                sum += filter * (sph->shift[i][d] - normal[d]);
            change[d] += f8_select(lanes, sum, f8_splat(0.0f));
        }
    }
}

/* Positions and velocities with the fourth lanes as in FORCE_ARRAYS. */
static void load_pairs(const pair_frame *frame, tile_worker *w, int block)
{
    sk_step *step = frame->step;
    sk_sph *sph = step->sph;
    sk_particle_tile_make(&frame->index, block, &w->tile);
    float(*position)[4] = lanes_of(w, POSITION), (*velocity)[4] = lanes_of(w, VELOCITY);
    sk_particle_tile_load_record_lanes(&w->tile, step->particles.records, 0, position);
    sk_particle_tile_load_record_lanes(&w->tile, step->particles.records, 3, velocity);
    for (int r = 0; r < w->tile.run_count; r++)
        for (uint32_t p = w->tile.runs[r].from, at = w->tile.runs[r].at; p < w->tile.runs[r].to; p++, at++) {
            position[at][3] = sph->density[p];
            velocity[at][3] = sk_sph_calm(&frame->constants, sph->pressure[p]);
        }
}

static void lags_of_block(const pair_frame *frame, tile_worker *w, int block)
{
    load_pairs(frame, w, block);
    for (uint32_t i = block_begin(&frame->step->grid, block); i < block_end(&frame->step->grid, block); i++)
        if (frame->step->sph->block_wide[block])
            lag_of_particle(frame, w, i, 1);
        else
            lag_of_particle(frame, w, i, 0);
}

static void pairs_of_block(const pair_frame *frame, tile_worker *w, int block)
{
    sk_step *step = frame->step;
    sk_sph *sph = step->sph;
    load_pairs(frame, w, block);
    if (sk_sph_needs_normals(&frame->constants))
        sk_particle_tile_load_lanes(&w->tile, sph->shift, lanes_of(w, NORMAL));
    for (uint32_t i = block_begin(&step->grid, block); i < block_end(&step->grid, block); i++) {
        f8 change[3] = {f8_splat(0.0f), f8_splat(0.0f), f8_splat(0.0f)};
        if (sph->block_wide[block])
            pairs_of_particle(frame, w, i, 1, change);
        else
            pairs_of_particle(frame, w, i, 0, change);
        for (int d = 0; d < SELKIE_DIM; d++)
            sph->variable[d][i] = f8_sum(change[d]);
    }
}

/* Computes all velocity changes into sph->variable, then adds them at once. */
static selkie_code add_pair_forces(sk_step *step, selkie_error *error)
{
    sk_sph *sph = step->sph;
    const pair_frame frame = {
        .step = step, .index = sk_grid_cell_index(&step->grid), .constants = make_force_constants(step)};
    void *scratch;
    SK_TRY(
        sk_step_scratch(step, worker_bytes(sph, FORCE_ARRAYS) * (size_t)step->threads, "sph forces", &scratch, error));
#pragma omp parallel num_threads(step->threads)
    {
        unsigned long mode = sk_flush_denormals();
        tile_worker *w = worker_of(sph, scratch, omp_get_thread_num(), FORCE_ARRAYS);
        if (sk_sph_needs_normals(&frame.constants)) {
#pragma omp for schedule(dynamic, 1)
            for (int block = 1; block <= step->grid.particle_blocks; block++)
                if (frame.constants.filter > 0.0f)
                    lags_of_block(&frame, w, block);
                else
                    normals_of_block(&frame, w, block);
        }
#pragma omp for schedule(dynamic, 1)
        for (int block = 1; block <= step->grid.particle_blocks; block++)
            pairs_of_block(&frame, w, block);
        sk_restore_denormals(mode);
    }
    take_up_changes(step);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_sph_forces)(sk_step *step, selkie_error *error)
{
    if (!step->particles.count)
        return SELKIE_OK;
    if (any_pair_force(step))
        SK_TRY(add_pair_forces(step, error));
    SK_TRY(add_outer_forces(step, error));
    return sk_sph_viscosity_is_implicit(step) ? SK_DIM(sk_sph_viscosity)(step, error) : SELKIE_OK;
}
