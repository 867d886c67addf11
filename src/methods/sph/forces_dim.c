/* Forces other than pressure: they change the velocities that the pressure then corrects. All forces between particles
 * are equal and opposite in each pair, so that they keep momentum.
 *
 *   gravity and the scene's force fields
 *   viscosity        a_i = 2 (d + 2) nu sum_j V_j (v_ij . x_ij) / (r^2 + 0.01 H^2) grad W_ij  (Monaghan 2005); implicit
 *                    (Weiler et al. 2018) where an explicit step would be too long for it: viscosity_dim.c
 *   xsph             v_i += xi sum_j V_j (v_j - v_i) W_ij  (Monaghan 1989)
 *   becker           a_i = -kappa sum_j (w W_ij) x_ij  (Becker and Teschner 2007)
 *   akinci           a_i = -gamma sum_j K_ij (m_j C_ij x_ij / r + (n_i - n_j)), n_i = H sum_j V_j grad W_ij,
 *                    K_ij = 2 / (D_i + D_j)  (Akinci et al. 2013)
 *
 * V_j is the particle volume over the mean density ratio of the two. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "defs/materials.h"
#include "methods/force_fields.h"
#include "methods/sph/sph_kernels.h"
#include "methods/sph/sph_tile.h"

enum {
    POSITION = 0,
    VELOCITY = 4,
    NORMAL = 8,
    FORCE_ARRAYS = 12
}; /* vectors of four lanes; a position's fourth is the density */

typedef struct pair_frame {
    sk_step *step;
    float kick; /* s */
    float spacing, inverse_support, weight;
    float viscosity;    /* coefficient of the viscous term times kick, m2 */
    float xsph, becker; /* becker: times kick, 1/s */
    float cohesion;     /* gamma m C's factor times kick, m/s */
    float curvature;    /* gamma times kick, m/s of a difference of normals */
    int wendland;
} pair_frame;

static int any_pair_force(const sk_step *step)
{
    const selkie_sph_def *def = &step->scene->sph;
    return sk_scene_viscosity(step->scene) > 0.0 || def->xsph > 0.0 ||
           (def->surface_tension != SELKIE_TENSION_NONE && def->tension > 0.0);
}

/* Normals that grow towards the surface and vanish inside: H sum_j V_j grad W_ij, into sph->shift. */
static void normals_of_block(const pair_frame *frame, tile_worker *w, int block)
{
    sk_step *step = frame->step;
    sk_sph *sph = step->sph;
    const int wide = sph->block_wide[block];
    const float scale = 1.0f / (frame->spacing * frame->inverse_support);
    make_tile(&step->grid, block, &w->tile);
    load_floats(&w->tile, sph->density, w->array[0]);
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
    if (frame->wendland)
        return a * a * a * a * (4.0f * q + 1.0f) * frame->weight;
    f8 b = f8_max(0.5f - q, f8_splat(0.0f));
    return (2.0f * a * a * a - 8.0f * b * b * b) * frame->weight;
}

SK_VECTOR f8 cohesion_of(f8 q)
{
    f8 product = f8_max(1.0f - q, f8_splat(0.0f)) * q, cube = product * product * product;
    return f8_select(q > 0.5f, cube, 2.0f * cube - 0.015625f);
}

/* The change of velocity of one particle by its neighbours. */
SK_VECTOR void pairs_of_particle(const pair_frame *frame, const tile_worker *w, uint32_t i, const int wide,
                                 f8 change[3])
{
    const sk_sph *sph = frame->step->sph;
    const sk_particle *own = &frame->step->particles.records[i];
    const void *list = list_of(sph, i);
    const float softening = 0.01f / (frame->inverse_support * frame->inverse_support);
    const uint32_t n = sph->number[i];
    for (uint32_t g = 0; g < group_count(sph, i); g++) {
        f8 gradient[3], x[4], v[4], normal[4], r2 = f8_splat(0.0f), approach = f8_splat(0.0f);
        i8 lanes = i8_first((int)(n - 8 * g)), index = wide ? group_at(list, 1, g, sph->number[i], gradient)
                                                            : group_at(list, 0, g, sph->number[i], gradient);
        gather_lanes(lanes_of(w, POSITION), index, x);
        gather_lanes(lanes_of(w, VELOCITY), index, v);
        if (frame->curvature > 0.0f)
            gather_lanes(lanes_of(w, NORMAL), index, normal);
        for (int d = 0; d < SELKIE_DIM; d++) {
            x[d] = own->position[d] - x[d];
            v[d] = own->velocity[d] - v[d];
            r2 += x[d] * x[d];
            approach += x[d] * v[d];
        }
        f8 volume = 2.0f / (sph->density[i] + x[3]); /* over the particle volume */
        f8 r = f8_sqrt(r2), q = r * frame->inverse_support, along_x = f8_splat(0.0f), along_v = f8_splat(0.0f),
           along_gradient = f8_splat(0.0f);
        if (frame->viscosity > 0.0f)
            along_gradient = frame->viscosity * volume * approach / (r2 + softening);
        if (frame->xsph > 0.0f)
            along_v = -frame->xsph * volume * kernel_value(frame, q);
        if (frame->becker > 0.0f)
            along_x = -frame->becker * kernel_value(frame, q);
        if (frame->cohesion > 0.0f)
            along_x -= frame->cohesion * volume * cohesion_of(q) / f8_max(r, f8_splat(1e-6f * frame->spacing));
        for (int d = 0; d < SELKIE_DIM; d++) {
            f8 sum = along_gradient * gradient[d] + along_x * x[d] + along_v * v[d];
            if (frame->curvature > 0.0f)
                sum -= frame->curvature * volume * (sph->shift[i][d] - normal[d]);
            change[d] += f8_select(lanes, sum, f8_splat(0.0f));
        }
    }
}

static void pairs_of_block(const pair_frame *frame, tile_worker *w, int block)
{
    sk_step *step = frame->step;
    sk_sph *sph = step->sph;
    make_tile(&step->grid, block, &w->tile);
    float(*position)[4] = lanes_of(w, POSITION);
    load_record_lanes(&w->tile, step->particles.records, 0, position);
    load_record_lanes(&w->tile, step->particles.records, 3, lanes_of(w, VELOCITY));
    for (int r = 0; r < w->tile.run_count; r++)
        for (uint32_t p = w->tile.runs[r].from, at = w->tile.runs[r].at; p < w->tile.runs[r].to; p++, at++)
            position[at][3] = sph->density[p];
    if (frame->curvature > 0.0f)
        load_lanes(&w->tile, sph->shift, lanes_of(w, NORMAL));
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

/* Forces between particles: their changes of velocity into sph->variable, then taken up by all at once. */
static selkie_code add_pair_forces(sk_step *step, selkie_error *error)
{
    sk_sph *sph = step->sph;
    const selkie_scene *scene = step->scene;
    const double kick = sk_step_kick(step), tension = scene->sph.tension;
    const int akinci = scene->sph.surface_tension == SELKIE_TENSION_AKINCI && tension > 0.0,
              wendland = scene->sph.kernel == SELKIE_SPH_WENDLAND;
    const double factor =
        wendland ? sk_sph_wendland_factor(SELKIE_DIM, sph->support) : sk_sph_cubic_factor(SELKIE_DIM, sph->support);
    pair_frame frame = {
        .step = step,
        .kick = (float)kick,
        .spacing = (float)sph->spacing,
        .wendland = wendland,
        .inverse_support = (float)(1.0 / sph->support),
        .weight = (float)(factor * sph->volume * sph->kernel_scale),
        .xsph = (float)fmin(scene->sph.xsph * (sph->correction_time > 0.0 ? kick / sph->correction_time : 1.0), 0.5)};
    if (!sk_sph_viscosity_is_implicit(step))
        frame.viscosity = (float)(2.0 * (SELKIE_DIM + 2) * sk_scene_viscosity(scene) * kick / sph->spacing);
    if (scene->sph.surface_tension == SELKIE_TENSION_BECKER)
        frame.becker = (float)(tension * kick);
    if (akinci) {
        frame.cohesion =
            (float)(tension * kick * step->particle_mass * sk_sph_cohesion_factor(SELKIE_DIM, sph->support));
        frame.curvature = (float)(tension * kick);
    }
    void *scratch;
    SK_TRY(
        sk_step_scratch(step, worker_bytes(sph, FORCE_ARRAYS) * (size_t)step->threads, "sph forces", &scratch, error));
#pragma omp parallel num_threads(step->threads)
    {
        unsigned long mode = sk_flush_denormals();
        tile_worker *w = worker_of(sph, scratch, omp_get_thread_num(), FORCE_ARRAYS);
        if (akinci) {
#pragma omp for schedule(dynamic, 1)
            for (int block = 1; block <= step->grid.particle_blocks; block++)
                normals_of_block(&frame, w, block);
        }
#pragma omp for schedule(dynamic, 1)
        for (int block = 1; block <= step->grid.particle_blocks; block++)
            pairs_of_block(&frame, w, block);
        sk_restore_denormals(mode);
    }
    sk_particle *records = step->particles.records;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t i = 0; i < step->particles.count; i++)
        if (!(records[i].flags & SK_PARTICLE_BOUNDARY))
            for (int d = 0; d < SELKIE_DIM; d++)
                records[i].velocity[d] += sph->variable[d][i];
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_sph_forces)(sk_step *step, selkie_error *error)
{
    if (!step->particles.count)
        return SELKIE_OK;
    if (any_pair_force(step))
        SK_TRY(add_pair_forces(step, error));
    const double kick = sk_step_kick(step);
    float change[3];
    for (int d = 0; d < 3; d++)
        change[d] = d < SELKIE_DIM ? (float)(kick * step->scene->gravity[d]) : 0.0f;
    sk_force_field *fields;
    SK_TRY(sk_step_scratch(step, (size_t)(step->scene->force_count + 1) * sizeof *fields, "forces", (void **)&fields,
                           error));
    const int field_count =
        step->scene->force_count ? sk_force_fields_in(step->scene, sk_step_force_window(step), fields) : 0;
    sk_particle *records = step->particles.records;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t i = 0; i < step->particles.count; i++) {
        if (records[i].flags & SK_PARTICLE_BOUNDARY)
            continue;
        float extra[3] = {0, 0, 0};
        if (field_count)
            sk_force_fields_velocity_change(fields, field_count, records[i].position, extra);
        for (int d = 0; d < SELKIE_DIM; d++)
            records[i].velocity[d] += change[d] + extra[d];
    }
    return sk_sph_viscosity_is_implicit(step) ? SK_DIM(sk_sph_viscosity)(step, error) : SELKIE_OK;
}
