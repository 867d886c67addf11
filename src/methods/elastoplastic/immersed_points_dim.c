/* Elastoplastic points beside liquids: the copies of the points, and their places. */
#include <math.h>
#include <string.h>

#include "defs/structs.h"
#include "methods/elastoplastic/immersed.h"
#include "methods/elastoplastic/immersed_kernels.h"
#include "methods/elastoplastic/mpm_frame.h"

static const uint32_t *materials_of(const sk_step *step)
{
    const sk_attribute *material = sk_particles_find_attribute(&step->particles, "material");
    return material ? material->data : NULL;
}

/* The values of an attribute of floats; NULL = there is none. */
static float *floats_of(const sk_step *step, const char *name)
{
    const sk_attribute *attribute = sk_particles_find_attribute(&step->particles, name);
    return attribute ? (float *)(void *)attribute->data : NULL;
}

static int is_point(const sk_immersed *immersed, const uint32_t *material, int64_t p)
{
    return immersed->point_mask[(material ? material[p] : 0) % SK_TRANSFER_MATERIALS];
}

/* --- Places --- */

selkie_code SK_DIM(sk_immersed_keep)(sk_step *step, selkie_error *error)
{
    (void)error;
    float *kept = floats_of(step, "kept");
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t p = 0; p < step->particles.count; p++)
        memcpy(kept + 3 * p, step->particles.records[p].position, 3 * sizeof *kept);
    sk_immersed_of(step)->is_stepping = 1;
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_immersed_place)(sk_step *step, selkie_error *error)
{
    (void)error;
    const sk_immersed *immersed = sk_immersed_of(step);
    const uint32_t *material = materials_of(step);
    const float *kept = floats_of(step, "kept");
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t p = 0; p < step->particles.count; p++)
        if (is_point(immersed, material, p))
            memcpy(step->particles.records[p].position, kept + 3 * p, 3 * sizeof *kept);
    sk_particles_moved(&step->particles);
    return SELKIE_OK;
}

/* --- Copies --- */

/* An attribute of the particles and its copy. */
typedef struct copied {
    uint32_t *particles, *points;
    size_t components;
} copied;

enum { COPIED = 5 };

static void find_copied(const sk_step *step, const sk_immersed *immersed, copied list[COPIED])
{
    static const char *const names[COPIED] = {"deformation", "velocity_gradient", "plastic_strain", "plastic_volume",
                                              "stress"};
    for (int n = 0; n < COPIED; n++) {
        const sk_attribute *from = sk_particles_find_attribute(&step->particles, names[n]);
        list[n] =
            (copied){from->data, sk_particles_find_attribute(&immersed->own, names[n])->data, (size_t)from->components};
    }
}

/* Law of a point in mpm's table: its material, and the level of its temperature. */
static uint32_t law_of(const sk_step *step, uint32_t material, const float *temperature, uint32_t p)
{
    const sk_mpm *mpm = sk_mpm_of(step);
    const selkie_elastoplastic_def *def = &step->scene->materials[material].elastoplastic;
    if (mpm->levels == 1 || !temperature || !(def->softens_from > 0.0))
        return material * (uint32_t)mpm->levels;
    const float at = (temperature[p] - (float)def->softens_from) / (float)(def->softens_to - def->softens_from);
    const float level = fminf(fmaxf(at, 0.0f), 1.0f) * (float)(mpm->levels - 1);
    return material * (uint32_t)mpm->levels + (uint32_t)lrintf(level);
}

typedef struct collecting {
    const sk_step *step;
    sk_immersed *immersed;
    const uint32_t *material;
    const float *temperature;
    uint32_t *laws;
    copied list[COPIED];
} collecting;

static uint32_t count_block(const collecting *c, int block)
{
    const uint32_t *start = c->step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    uint32_t count = 0;
    for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS]; p++)
        count += is_point(c->immersed, c->material, p) != 0;
    return count;
}

/* Copies the points of a block; `next` is the place of the first. */
static void copy_block(const collecting *c, int block, uint32_t next)
{
    sk_immersed *immersed = c->immersed;
    const size_t base = (size_t)(block - 1) * SK_BLOCK_CELLS;
    const uint32_t *start = c->step->grid.cell_start + base;
    for (int cell = 0; cell < SK_BLOCK_CELLS; cell++) {
        float *grains = &immersed->grains[base + SK_BLOCK_CELLS + (size_t)cell];
        immersed->cell_start[base + (size_t)cell] = next;
        *grains = 0.0f;
        for (uint32_t p = start[cell]; p < start[cell + 1]; p++) {
            if (!is_point(immersed, c->material, p))
                continue;
            const uint32_t m = c->material ? c->material[p] : 0;
            immersed->sources[next] = p;
            immersed->own.records[next] = c->step->particles.records[p];
            c->laws[next] = law_of(c->step, m, c->temperature, p);
            if (c->step->scene->materials[m].elastoplastic.plasticity == SELKIE_PLASTICITY_DRUCKER_PRAGER)
                *grains = 1.0f;
            for (int n = 0; n < COPIED; n++)
                memcpy(c->list[n].points + next * c->list[n].components,
                       c->list[n].particles + p * c->list[n].components, c->list[n].components * sizeof(uint32_t));
            next++;
        }
    }
}

selkie_code SK_DIM(sk_immersed_collect)(sk_step *step, selkie_error *error)
{
    sk_immersed *immersed = sk_immersed_of(step);
    const int blocks = step->grid.particle_blocks;
    const size_t cells = (size_t)blocks * SK_BLOCK_CELLS, all = (size_t)step->grid.block_count * SK_BLOCK_CELLS;
    uint32_t *first;
    collecting c = {.step = step,
                    .immersed = immersed,
                    .material = materials_of(step),
                    .temperature = floats_of(step, "temperature")};
    SK_TRY(sk_step_scratch(step, ((size_t)blocks + 2) * sizeof *first, "mix", (void **)&first, error));
    SK_TRY(sk_reserve(step->memory, (void **)&immersed->cell_start, &immersed->start_capacity, cells + 1,
                      sizeof *immersed->cell_start, "points", error));
    SK_TRY(sk_reserve(step->memory, (void **)&immersed->grains, &immersed->grain_capacity, all,
                      sizeof *immersed->grains, "points", error));

    /* Count, then copy. */
    first[1] = 0;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b <= blocks; b++)
        first[b + 1] = count_block(&c, b);
    for (int b = 1; b <= blocks; b++)
        first[b + 1] += first[b];
    const uint32_t count = first[blocks + 1];
    SK_TRY(sk_reserve(step->memory, (void **)&immersed->sources, &immersed->source_capacity, (size_t)count + 1,
                      sizeof *immersed->sources, "points", error));
    SK_TRY(sk_particles_reserve(&immersed->own, (int64_t)count, error));
    immersed->own.count = count;
    c.laws = sk_particles_find_attribute(&immersed->own, "material")->data;
    find_copied(step, immersed, c.list);
    memset(immersed->grains, 0, SK_BLOCK_CELLS * sizeof *immersed->grains);
    memset(immersed->grains + (size_t)(blocks + 1) * SK_BLOCK_CELLS, 0,
           (all - (size_t)(blocks + 1) * SK_BLOCK_CELLS) * sizeof *immersed->grains);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b <= blocks; b++)
        copy_block(&c, b, first[b]);
    immersed->cell_start[cells] = count;
    return SELKIE_OK;
}

/* --- Back to the points --- */

/* Velocities and attributes of the copies go back. The move of the liquid moves the points straight. */
static void give_back(sk_step *step, const sk_immersed *immersed)
{
    copied list[COPIED];
    find_copied(step, immersed, list);
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t n = 0; n < immersed->own.count; n++) {
        const uint32_t p = immersed->sources[n];
        sk_particle *record = &step->particles.records[p];
        memcpy(record->velocity, immersed->own.records[n].velocity, sizeof record->velocity);
        record->flags |= SK_PARTICLE_FLYING;
        for (int k = 0; k < COPIED; k++)
            memcpy(list[k].particles + p * list[k].components, list[k].points + (size_t)n * list[k].components,
                   list[k].components * sizeof(uint32_t));
    }
}

static selkie_code to_points(sk_step *step, sk_phase_function run, selkie_error *error)
{
    sk_immersed *immersed = sk_immersed_of(step);
    sk_step view = *step;
    view.particles = immersed->own;
    view.grid.cell_start = immersed->cell_start;
    const selkie_code code = run(&view, error);
    immersed->own = view.particles;
    step->arena = view.arena;
    if (code == SELKIE_OK)
        give_back(step, immersed);
    return code;
}

selkie_code SK_DIM(sk_immersed_to_points)(sk_step *step, selkie_error *error)
{
    return to_points(step, SK_DIM(sk_mpm_to_points), error);
}

selkie_code SK_DIM(sk_immersed_to_points_plain)(sk_step *step, selkie_error *error)
{
    return to_points(step, SK_DIM(sk_mpm_to_points_plain), error);
}

/* --- Liquid inside the points --- */

/* Volume of the points around a place (m) over that of a full cell, its gradient (per cell), and their velocity. */
static float volume_at(const sk_step *step, const float x[3], float slope[3], float velocity[3])
{
    const sk_grid *grid = &step->grid;
    const sk_mpm *mpm = sk_mpm_of(step);
    const float *density = grid->fields[sk_immersed_of(step)->mixture.solid_density];
    float offset[3] = {0.0f, 0.0f, 0.0f}, weight[3][3], rise[3][3], volume = 0.0f, mass = 0.0f;
    int at[3] = {0, 0, 0};
    memset(slope, 0, 3 * sizeof *slope);
    memset(velocity, 0, 3 * sizeof *velocity);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const double place = ((double)x[d] - grid->corner[d]) / grid->cell_size;
        at[d] = (int)floor(place);
        offset[d] = (float)(place - at[d]) - 0.5f;
        sk_mpm_weights(offset[d], weight[d], rise[d]);
    }
    const sk_plain_cell cell = sk_plain_find(grid, at);
    if (!cell.slot)
        return 0.0f;
    for (int n = 0; n < SK_MPM_NODES; n++) {
        const int beside[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
        sk_mpm_sight sight;
        const size_t other = sk_plain_index(sk_plain_beside(grid, cell, beside));
        const float *node = mpm->nodes[other];
        if (!(node[3] > 0.0f))
            continue;
        SK_DIM(sk_mpm_see)(n, (const float(*)[3])weight, (const float(*)[3])rise, offset, &sight);
        volume += sight.weight * density[other];
        mass += sight.weight * node[3];
        for (int d = 0; d < SELKIE_DIM; d++) {
            slope[d] += sight.rise[d] * density[other];
            velocity[d] += sight.weight * node[3] * node[d];
        }
    }
    for (int d = 0; d < SELKIE_DIM && mass > 0.0f; d++)
        velocity[d] /= mass;
    return volume;
}

/* Moves a liquid particle that lies inside the points towards their surface, where the volume is a half. */
static int expel(const sk_step *step, sk_particle *particle)
{
    const float h = (float)step->grid.cell_size;
    float slope[3], velocity[3], x[3] = {0.0f, 0.0f, 0.0f}, steep2 = 0.0f;
    if (!(volume_at(step, particle->position, slope, velocity) > 0.0f))
        return 0;
    for (int d = 0; d < SELKIE_DIM; d++) /* where the nodes were before the move */
        x[d] = particle->position[d] - (float)step->dt * velocity[d];
    const float inside = volume_at(step, x, slope, velocity) - 0.5f;
    for (int d = 0; d < SELKIE_DIM; d++)
        steep2 += slope[d] * slope[d];
    if (!(inside > 0.0f) || !(steep2 > 1e-4f))
        return 0;
    const float way = fminf(inside / sqrtf(steep2), 0.3f) * h / sqrtf(steep2), gap = 1e-3f * h;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float to = particle->position[d] - way * slope[d];
        particle->position[d] = fminf(fmaxf(to, (float)step->grid.low[d] + gap), (float)step->grid.high[d] - gap);
    }
    return 1;
}

selkie_code SK_DIM(sk_immersed_expel)(sk_step *step, selkie_error *error)
{
    (void)error;
    sk_immersed *immersed = sk_immersed_of(step);
    const uint32_t *material = materials_of(step);
    int moved = 0;
#pragma omp parallel for num_threads(step->threads) schedule(static) reduction(| : moved)
    for (int64_t p = 0; p < step->particles.count; p++) {
        sk_particle *particle = &step->particles.records[p];
        if (is_point(immersed, material, p))
            particle->flags &= ~(uint32_t)SK_PARTICLE_FLYING;
        else if (!(particle->flags & SK_PARTICLE_DEAD))
            moved |= expel(step, particle);
    }
    if (moved)
        sk_particles_moved(&step->particles);
    immersed->is_stepping = 0;
    return SELKIE_OK;
}
