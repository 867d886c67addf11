/* The phases of printed and additive: neighbours, stress, forces, deformation, move. They are the reference of the
 * source and have one form, a point and a pair at a time. */
#include "methods/elastoplastic/fitted.h"

#include <math.h>
#include <string.h>

#include "base/status.h"
#include "methods/elastoplastic/elastic_kernels.h"
#include "methods/elastoplastic/fitted_kernels.h"
#include "methods/elastoplastic/point_contact.h"
#include "methods/elastoplastic/point_move.h"
#include "methods/elastoplastic/rest_kernels.h"
#include "particles/cell_index.h"
#include "particles/neighbour_kernels.h"

typedef struct fit_frame {
    sk_step *step;
    sk_fitted *fitted;
    sk_particle *records;
    const uint32_t *material; /* NULL = all of the first */
    float *deformation, *strain, *volume, *stress;
    float support; /* m */
} fit_frame;

static float *attribute(const sk_step *step, const char *name)
{
    const sk_attribute *found = sk_particles_find_attribute(&step->particles, name);
    return found ? (float *)(void *)found->data : NULL;
}

static fit_frame make_frame(sk_step *step)
{
    const sk_attribute *material = sk_particles_find_attribute(&step->particles, "material");
    return (fit_frame){.step = step,
                       .fitted = sk_fitted_of(step),
                       .records = step->particles.records,
                       .material = material ? material->data : NULL,
                       .deformation = attribute(step, "deformation"),
                       .strain = attribute(step, "plastic_strain"),
                       .volume = attribute(step, "plastic_volume"),
                       .stress = attribute(step, "stress"),
                       .support = (float)sk_fitted_of(step)->support};
}

static int material_of(const fit_frame *frame, uint32_t p)
{
    return frame->material ? (int)frame->material[p] : 0;
}

/* The next neighbour of a point that counts, of its own material; `k` runs over its list. Returns 0 at the end. */
static int next_neighbour(const fit_frame *frame, uint32_t p, uint64_t *k, uint32_t *q, float toward[3])
{
    const sk_fitted *fitted = frame->fitted;
    for (; *k < fitted->lists.first[p + 1]; (*k)++) {
        *q = fitted->lists.neighbours[*k];
        const float squared = SK_DIM(sk_difference)(frame->records[*q].position, frame->records[p].position, toward);
        if (material_of(frame, *q) == material_of(frame, p) &&
            (squared <= fitted->cut[p] || squared <= fitted->cut[*q])) {
            (*k)++;
            return 1;
        }
    }
    return 0;
}

/* --- Neighbours --- */

/* Squared distance of the farthest of the nearest neighbours; infinite if all count. */
static float cut_of(const fit_frame *frame, uint32_t p, int most)
{
    const sk_neighbour_lists *lists = &frame->fitted->lists;
    const uint64_t count = lists->first[p + 1] - lists->first[p];
    float nearest[1001], away[3];
    int kept = 0;
    if (most == 0 || count <= (uint64_t)most)
        return INFINITY;
    for (uint64_t k = lists->first[p]; k < lists->first[p + 1]; k++) {
        const float squared =
            SK_DIM(sk_difference)(frame->records[lists->neighbours[k]].position, frame->records[p].position, away);
        int at = kept < most ? kept++ : most;
        for (; at > 0 && nearest[at - 1] > squared; at--)
            nearest[at] = nearest[at - 1];
        nearest[at] = squared;
    }
    return nearest[most - 1];
}

selkie_code SK_DIM(sk_fitted_neighbours)(sk_step *step, selkie_error *error)
{
    sk_fitted *fitted = sk_fitted_of(step);
    const sk_cell_index index = sk_grid_cell_index(&step->grid);
    const sk_neighbour_search search = {.index = &index,
                                        .records = step->particles.records,
                                        .radius2 = (float)(fitted->support * fitted->support),
                                        .reach = (int)ceil(fitted->support / step->grid.cell_size - 1e-9)};
    const size_t count = (size_t)step->particles.count + 1;
    const fit_frame frame = make_frame(step);
    const int asked = step->scene->points.neighbours,
              most = asked > 0 && asked < SK_FITTED_LEAST ? SK_FITTED_LEAST : asked;
    SK_TRY(SK_DIM(sk_neighbour_lists_build)(&fitted->lists, &search, step->threads, error));
    SK_TRY(sk_reserve(step->memory, (void **)&fitted->cut, &fitted->cut_capacity, count, sizeof(float), "neighbours",
                      error));
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t p = 0; p < step->particles.count; p++)
        fitted->cut[p] = cut_of(&frame, (uint32_t)p, most);
    return SELKIE_OK;
}

/* --- Stress --- */

typedef struct law_sums {
    double energy, work; /* J/m3 */
    float wave_speed;
} law_sums;

/* A pair as point p sees it at rest. */
static void rest_of(const fit_frame *frame, uint32_t p, const float toward[3], float x[3])
{
    if (frame->fitted->is_additive)
        memcpy(x, toward, 3 * sizeof *x);
    else
        SK_DIM(sk_fitted_apply)(frame->fitted->back + (size_t)p * SK_FITTED_MATRIX, toward, x);
}

/* P K^-1 over the density; 0 for points with too few neighbours. */
static void make_push(const fit_frame *frame, uint32_t p, const float piola[SK_FITTED_MATRIX], float inverse_density)
{
    float moments[SK_FITTED_MATRIX] = {0}, inverse[SK_FITTED_MATRIX], toward[3], x[3], gradient[3];
    float *push = frame->fitted->push + (size_t)p * SK_FITTED_MATRIX, density = 0.0f;
    uint64_t k = frame->fitted->lists.first[p];
    uint32_t q;
    int count = 0;
    while (next_neighbour(frame, p, &k, &q, toward)) {
        rest_of(frame, p, toward, x);
        SK_DIM(sk_fitted_gradient)(x, frame->support, gradient);
        SK_DIM(sk_fitted_add)(1.0f, gradient, x, moments);
        float squares = 0.0f;
        for (int d = 0; d < SELKIE_DIM; d++)
            squares += toward[d] * toward[d];
        density += sk_fitted_weight(squares, frame->support);
        count++;
    }
    memset(push, 0, SK_FITTED_MATRIX * sizeof *push);
    if (count >= SK_FITTED_LEAST && SK_DIM(sk_fitted_inverse)(moments, inverse) > 0.0f)
        SK_DIM(sk_fitted_product)(piola, inverse, push);
    for (int n = 0; n < SK_FITTED_MATRIX; n++)
        push[n] *= inverse_density;
    const float squeezed = density / (float)frame->fitted->full - 1.0f;
    frame->fitted->extra[p] = squeezed > 0.0f ? squeezed : 0.0f;
}

static void stress_of_point(const fit_frame *frame, uint32_t p, law_sums *sums)
{
    const sk_elastic_material *material = &frame->fitted->materials[material_of(frame, p)];
    float *deformation = frame->deformation + (size_t)p * SK_FITTED_MATRIX, f[SK_FITTED_MATRIX],
          piola[SK_FITTED_MATRIX];
    float *back = frame->fitted->back + (size_t)p * SK_FITTED_MATRIX;
    sk_plastic_state state = {frame->strain[p], frame->volume[p]};
    sk_elastic_result result;
    SK_DIM(sk_elastic_point)(material, (float)frame->step->last_dt, deformation, &state, &result);
    frame->strain[p] = state.strain;
    frame->volume[p] = state.volume;
    frame->stress[p] = result.equivalent;
    sums->energy += result.energy;
    sums->work += result.work;
    sums->wave_speed = fmaxf(sums->wave_speed, result.wave_speed);

    /* First Piola stress: Kirchhoff's times F^-T. */
    for (int n = 0; n < SK_FITTED_MATRIX; n++)
        f[n] = deformation[n] + (n % (SELKIE_DIM + 1) == 0 ? 1.0f : 0.0f);
    SK_DIM(sk_rest_inverse)(f, back);
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = 0; j < SELKIE_DIM; j++) {
            float sum = 0.0f;
            for (int k = 0; k < SELKIE_DIM; k++)
                sum += result.stress[SELKIE_DIM * i + k] * back[SELKIE_DIM * j + k];
            piola[SELKIE_DIM * i + j] = sum;
        }
    make_push(frame, p, piola, material->inverse_density);
}

static selkie_code reserve(sk_step *step, sk_fitted *fitted, selkie_error *error)
{
    const size_t count = (size_t)step->particles.count + 1;
    struct {
        float **array;
        size_t *capacity, each;
    } arrays[] = {{&fitted->push, &fitted->push_capacity, SK_FITTED_MATRIX},
                  {&fitted->back, &fitted->back_capacity, SK_FITTED_MATRIX},
                  {&fitted->extra, &fitted->extra_capacity, 1},
                  {&fitted->change, &fitted->change_capacity, 3}};
    for (size_t n = 0; n < sizeof arrays / sizeof *arrays; n++)
        SK_TRY(sk_reserve(step->memory, (void **)arrays[n].array, arrays[n].capacity, count * arrays[n].each,
                          sizeof(float), "points", error));
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_fitted_stress)(sk_step *step, selkie_error *error)
{
    const fit_frame frame = make_frame(step);
    sk_elastic_saved *saved = &frame.fitted->saved;
    const double volume = pow(step->grid.cell_size, SELKIE_DIM) / step->particles_per_cell;
    law_sums *sums;
    SK_TRY(reserve(step, frame.fitted, error));
    SK_TRY(sk_step_scratch(step, ((size_t)step->grid.particle_blocks + 1) * sizeof *sums, "stress", (void **)&sums,
                           error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int block = 1; block <= step->grid.particle_blocks; block++) {
        const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
        sums[block] = (law_sums){0};
        for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS]; p++)
            stress_of_point(&frame, p, &sums[block]);
    }
    saved->elastic_energy = saved->wave_speed = 0.0;
    for (int block = 1; block <= step->grid.particle_blocks; block++) {
        saved->elastic_energy += volume * sums[block].energy;
        saved->plastic_work += volume * sums[block].work;
        saved->wave_speed = fmax(saved->wave_speed, sums[block].wave_speed);
    }
    return SELKIE_OK;
}

/* --- Forces --- */

/* What point p gives to a pair: P K^-1 d, over the density. */
static void gift_of(const fit_frame *frame, uint32_t p, const float toward[3], float gift[3])
{
    float x[3], gradient[3];
    rest_of(frame, p, toward, x);
    SK_DIM(sk_fitted_gradient)(x, frame->support, gradient);
    SK_DIM(sk_fitted_apply)(frame->fitted->push + (size_t)p * SK_FITTED_MATRIX, gradient, gift);
}

/* Elastic forces, pressure and viscosity of the pairs of one material. */
static void add_pairs(const fit_frame *frame, uint32_t p, float acceleration[3])
{
    const sk_fitted *fitted = frame->fitted;
    const sk_elastic_material *material = &fitted->materials[material_of(frame, p)];
    const selkie_points_def *def = &frame->step->scene->points;
    const float bulk = def->pressure ? (material->lambda + 2.0f * material->mu) * material->inverse_density : 0.0f;
    const float rate = (float)(def->viscosity * material->wave_speed / fitted->spacing);
    float toward[3], away[3] = {0, 0, 0}, own[3], other[3], velocity[3];
    uint64_t k = fitted->lists.first[p];
    uint32_t q;
    while (next_neighbour(frame, p, &k, &q, toward)) {
        float squares = 0.0f;
        for (int d = 0; d < SELKIE_DIM; d++) {
            away[d] = -toward[d];
            velocity[d] = frame->records[p].velocity[d] - frame->records[q].velocity[d];
            squares += toward[d] * toward[d];
        }
        gift_of(frame, p, toward, own);
        gift_of(frame, q, away, other);
        const float weight = sk_fitted_weight(squares, frame->support),
                    cube = 1.0f - squares / (frame->support * frame->support);
        const float slope = 6.0f * cube * cube / (frame->support * frame->support * (float)fitted->full);
        const float push = bulk * (fitted->extra[p] + fitted->extra[q]) * slope;
        for (int d = 0; d < SELKIE_DIM; d++)
            acceleration[d] += own[d] - other[d] + push * away[d];
        SK_DIM(sk_fitted_viscosity)(rate * weight, away, velocity, acceleration);
    }
}

/* Points of other materials push each other when they come closer than a spacing. */
static void add_contacts(const fit_frame *frame, uint32_t p, float acceleration[3])
{
    const sk_fitted *fitted = frame->fitted;
    const sk_elastic_material *own = &fitted->materials[material_of(frame, p)];
    const float spacing = (float)fitted->spacing;
    for (uint64_t k = fitted->lists.first[p]; k < fitted->lists.first[p + 1]; k++) {
        const uint32_t q = fitted->lists.neighbours[k];
        const sk_elastic_material *other = &fitted->materials[material_of(frame, q)];
        float away[3];
        if (own == other)
            continue;
        SK_DIM(sk_difference)(frame->records[p].position, frame->records[q].position, away);
        const float modulus = fminf(own->lambda + 2.0f * own->mu, other->lambda + 2.0f * other->mu);
        SK_DIM(sk_rest_contact)(modulus * own->inverse_density / (spacing * spacing), spacing, away, acceleration);
    }
}

selkie_code SK_DIM(sk_fitted_forces)(sk_step *step, selkie_error *error)
{
    const fit_frame frame = make_frame(step);
    (void)error;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 256)
    for (int64_t p = 0; p < step->particles.count; p++) {
        float *acceleration = frame.fitted->change + 3 * p;
        memset(acceleration, 0, 3 * sizeof *acceleration);
        add_pairs(&frame, (uint32_t)p, acceleration);
        if (frame.fitted->material_count > 1)
            add_contacts(&frame, (uint32_t)p, acceleration);
    }
    return SELKIE_OK;
}

/* --- Deformation --- */

static void deform_point(const fit_frame *frame, uint32_t p)
{
    float moments[SK_FITTED_MATRIX] = {0}, motion[SK_FITTED_MATRIX] = {0}, inverse[SK_FITTED_MATRIX];
    float change[SK_FITTED_MATRIX], toward[3], velocity[3];
    float *deformation = frame->deformation + (size_t)p * SK_FITTED_MATRIX;
    uint64_t k = frame->fitted->lists.first[p];
    uint32_t q;
    int count = 0;
    while (next_neighbour(frame, p, &k, &q, toward)) {
        float squares = 0.0f;
        for (int d = 0; d < SELKIE_DIM; d++) {
            squares += toward[d] * toward[d];
            velocity[d] = frame->records[q].velocity[d] - frame->records[p].velocity[d];
        }
        const float weight = sk_fitted_weight(squares, frame->support);
        SK_DIM(sk_fitted_add)(weight, toward, toward, moments);
        SK_DIM(sk_fitted_add)(weight, velocity, toward, motion);
        count++;
    }
    if (count < SK_FITTED_LEAST || SK_DIM(sk_fitted_inverse)(moments, inverse) == 0.0f)
        return;
    SK_DIM(sk_fitted_product)(motion, inverse, change);
    for (int n = 0; n < SK_FITTED_MATRIX; n++)
        change[n] *= (float)frame->step->dt;
    if (!SK_DIM(sk_fitted_is_likely)(change))
        return;
    if (frame->fitted->is_additive)
        SK_DIM(sk_fitted_accumulate)(change, deformation);
    else
        SK_DIM(sk_fitted_compose)(change, deformation);
}

selkie_code SK_DIM(sk_fitted_deform)(sk_step *step, selkie_error *error)
{
    const fit_frame frame = make_frame(step);
    sk_point_kick kick;
    SK_TRY(sk_begin_kick(step, 0.5 * frame.fitted->spacing, &kick, error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int block = 1; block <= step->grid.particle_blocks; block++) {
        const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
        const int near_wall = sk_is_near_wall(&kick, block);
        for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS]; p++)
            sk_kick_point(&kick, block, near_wall, frame.fitted->change + 3 * (size_t)p, &frame.records[p]);
    }
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 256)
    for (int64_t p = 0; p < step->particles.count; p++)
        deform_point(&frame, (uint32_t)p);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_fitted_move)(sk_step *step, selkie_error *error)
{
    sk_point_moving moving;
    SK_TRY(sk_begin_moving(step, &moving, error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int block = 1; block <= step->grid.particle_blocks; block++) {
        const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
        sk_point_move_sums sums = {0};
        for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS]; p++)
            sk_move_point(&moving, step->solids.clearance[block], &step->particles.records[p], &sums);
        moving.sums[block] = sums;
    }
    step->kernel_volume = (double)step->particles.count / step->particles_per_cell;
    step->counted_volume = step->surface_volume = step->kernel_volume;
    return sk_end_moving(step, &moving, error);
}
