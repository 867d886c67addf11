/* Elastoplastic points beside liquids: the copies of the points, and their places. */
#include <math.h>
#include <string.h>

#include "defs/structs.h"
#include "methods/elastoplastic/immersed.h"
#include "methods/elastoplastic/mpm_frame.h"

#define SK_IMMERSED_FIND(in, at) sk_plain_find(&(in)->step->grid, at)
#include "methods/elastoplastic/immersed_frame.h"

/* The values of an attribute of floats; NULL = there is none. */
static float *floats_of(const sk_step *step, const char *name)
{
    const sk_attribute *attribute = sk_particles_find_attribute(&step->particles, name);
    return attribute ? (float *)(void *)attribute->data : NULL;
}

/* --- What plain functions need --- */

immersed_frame SK_DIM(sk_immersed_frame)(const sk_step *step)
{
    const selkie_scene *scene = step->scene;
    const sk_immersed *immersed = sk_immersed_of(step);
    const sk_mpm *mpm = sk_mpm_of(step);
    const sk_attribute *material = sk_particles_find_attribute(&step->particles, "material");
    immersed_frame in = {.step = step,
                         .f = sk_mixture_faces_of(&immersed->mixture, step),
                         .nodes = mpm->nodes,
                         .grains = immersed->grains,
                         .solid_density = step->grid.fields[immersed->mixture.solid_density],
                         .material = material ? material->data : NULL,
                         .temperature = floats_of(step, "temperature"),
                         .lightness = immersed->lightness,
                         .levels = mpm->levels};
    for (int m = 0; m < scene->material_count && m < SK_TRANSFER_MATERIALS; m++) {
        const selkie_elastoplastic_def *def = &scene->materials[m].elastoplastic;
        const int softens = def->softens_from > 0.0;
        in.laws[m] = (immersed_law){.friction = (float)def->liquid_friction,
                                    .from = (float)def->softens_from,
                                    .range = softens ? (float)(def->softens_to - def->softens_from) : 0.0f,
                                    .is_point = immersed->point_mask[m],
                                    .grains = def->plasticity == SELKIE_PLASTICITY_DRUCKER_PRAGER};
    }
    while (in.first_material < scene->material_count - 1 && !immersed->point_mask[in.first_material])
        in.first_material++;
    return in;
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
    const immersed_frame in = SK_DIM(sk_immersed_frame)(step);
    const float *kept = floats_of(step, "kept");
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t p = 0; p < step->particles.count; p++)
        if (immersed_is_point(&in, (size_t)p))
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

typedef struct collecting {
    const sk_step *step;
    sk_immersed *immersed;
    immersed_frame in;
    uint32_t *laws;
    copied list[COPIED];
} collecting;

static uint32_t count_block(const collecting *c, int block)
{
    const uint32_t *start = c->step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    uint32_t count = 0;
    for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS]; p++)
        count += immersed_is_point(&c->in, p) != 0;
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
            if (!immersed_is_point(&c->in, p))
                continue;
            immersed->sources[next] = p;
            immersed->own.records[next] = c->step->particles.records[p];
            c->laws[next] = immersed_law_of(&c->in, p);
            if (c->in.laws[immersed_material_of(&c->in, p)].grains)
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
    collecting c = {.step = step, .immersed = immersed, .in = SK_DIM(sk_immersed_frame)(step)};
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

selkie_code SK_DIM(sk_immersed_expel)(sk_step *step, selkie_error *error)
{
    (void)error;
    const immersed_frame in = SK_DIM(sk_immersed_frame)(step);
    int moved = 0;
#pragma omp parallel for num_threads(step->threads) schedule(static) reduction(| : moved)
    for (int64_t p = 0; p < step->particles.count; p++) {
        sk_particle *particle = &step->particles.records[p];
        if (immersed_is_point(&in, (size_t)p))
            particle->flags &= ~(uint32_t)SK_PARTICLE_FLYING;
        else if (!(particle->flags & SK_PARTICLE_DEAD))
            moved |= immersed_expel(&in, particle);
    }
    if (moved)
        sk_particles_moved(&step->particles);
    sk_immersed_of(step)->is_stepping = 0;
    return SELKIE_OK;
}
