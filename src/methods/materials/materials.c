#include <string.h>

#include "defs/materials.h"
#include "methods/materials/materials.h"

/* --- The attribute --- */

/* Solids of particles have their own density, and their transfers choose particles by material, also where there is but
 * one. */
static int needs_attribute(const selkie_scene *scene)
{
    return scene->material_count > 1 || (scene->material_count > 0 && sk_scene_has_densities(scene));
}

static selkie_code add_attribute(sk_step *step, selkie_error *error)
{
    if (!sk_particles_add_attribute(&step->particles, "material", 1, 1))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "particles: no memory for the attribute \"material\"");
    return SELKIE_OK;
}

/* The sort keeps two copies. */
static double attribute_bytes(const selkie_scene *scene)
{
    (void)scene;
    return 2 * 4;
}

const sk_method sk_method_materials = {
    .name = "materials",
    .needs = SK_NEEDS_PARTICLES,
    .takes_part = needs_attribute,
    .create = add_attribute,
    .bytes_per_particle = attribute_bytes,
};

/* --- Densities --- */

typedef struct densities {
    float relative[SK_TRANSFER_MATERIALS]; /* density of a material over the reference density */
    double loaded_moment[3];               /* kg m  mass times position, from the last checkpoint */
    int is_loaded;
} densities;

static selkie_code create(sk_step *step, selkie_error *error)
{
    densities *own = sk_allocate_zeroed(step->memory, sizeof *own);
    if (!own)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "materials: no memory");
    for (int m = 0; m < SK_TRANSFER_MATERIALS; m++)
        own->relative[m] =
            m < step->scene->material_count ? (float)(step->scene->materials[m].density / step->density) : 1.0f;
    step->relative_density = own->relative;
    sk_step_set_state(step, &sk_method_densities, own);
    return SELKIE_OK;
}

static void destroy(sk_step *step)
{
    sk_release(step->memory, sk_step_state(step, &sk_method_densities));
    step->relative_density = NULL;
}

enum {
    SPAN = 16384
}; /* particles of a partial sum: spans are added in order, for the same bits on any number of threads */

/* Sums in local variables: in memory each particle would wait for the one before. In 2D positions and velocities along
 * z do not count. */
static void sum_span(const sk_step *step, const sk_attribute *material, int64_t begin, int64_t end, sk_mass_sums *sums)
{
    const sk_particle *records = step->particles.records;
    const double third = step->dimension == 3 ? 1.0 : 0.0;
    double kinetic = 0.0, total = 0.0, x = 0.0, y = 0.0, z = 0.0;
    for (int64_t p = begin; p < end; p++) {
        const sk_particle *particle = &records[p];
        if (particle->flags & SK_PARTICLE_DEAD)
            continue;
        const double mass = sk_step_mass(step, material, p);
        const double u = (double)particle->velocity[0], v = (double)particle->velocity[1];
        const double w = third * (double)particle->velocity[2];
        kinetic += 0.5 * mass * (u * u + v * v + w * w);
        total += mass;
        x += mass * (double)particle->position[0];
        y += mass * (double)particle->position[1];
        z += mass * third * (double)particle->position[2];
    }
    *sums = (sk_mass_sums){.kinetic = kinetic, .mass = total, .moment = {x, y, z}};
}

selkie_code sk_densities_weigh(sk_step *step, selkie_error *error)
{
    const sk_attribute *material = sk_particles_find_attribute(&step->particles, "material");
    const int64_t count = step->particles.count, spans = (count + SPAN - 1) / SPAN;
    sk_mass_sums *partial, total = {0};
    SK_TRY(sk_step_scratch(step, (size_t)(spans + 1) * sizeof *partial, "energy", (void **)&partial, error));
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t s = 0; s < spans; s++)
        sum_span(step, material, s * SPAN, (s + 1) * SPAN < count ? (s + 1) * SPAN : count, &partial[s]);
    for (int64_t s = 0; s < spans; s++) {
        total.kinetic += partial[s].kinetic;
        total.mass += partial[s].mass;
        for (int d = 0; d < 3; d++)
            total.moment[d] += partial[s].moment[d];
    }
    memcpy(total.moment_before, step->mass_sums.moment, sizeof total.moment_before);
    step->mass_sums = total;
    return SELKIE_OK;
}

/* Outside of a step there is no moment before. A loaded world takes the moment of its checkpoint: a sum over the loaded
 * particles has other partial sums where particles have left since, and other last bits. */
static selkie_code measure(sk_step *step, selkie_error *error)
{
    const densities *own = sk_step_state(step, &sk_method_densities);
    SK_TRY(sk_densities_weigh(step, error));
    if (own->is_loaded)
        memcpy(step->mass_sums.moment, own->loaded_moment, sizeof own->loaded_moment);
    memcpy(step->mass_sums.moment_before, step->mass_sums.moment, sizeof step->mass_sums.moment);
    return SELKIE_OK;
}

static sk_chunk_view state(const sk_step *step)
{
    return (sk_chunk_view){"densities", step->mass_sums.moment, sizeof step->mass_sums.moment};
}

static selkie_code restore(sk_step *step, const sk_chunk_view *chunk, const char *file, selkie_error *error)
{
    densities *own = sk_step_state(step, &sk_method_densities);
    if (chunk->bytes != sizeof own->loaded_moment)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: the moment of the masses has %llu bytes, not %zu", file,
                       (unsigned long long)chunk->bytes, sizeof own->loaded_moment);
    memcpy(own->loaded_moment, chunk->data, sizeof own->loaded_moment);
    own->is_loaded = 1;
    return SELKIE_OK;
}

/* Energies from each particle's own mass. */
static void statistics(const sk_step *step, selkie_statistics *s)
{
    const sk_mass_sums *sums = &step->mass_sums;
    s->kinetic_energy = sums->kinetic;
    s->potential_energy = 0.0;
    for (int d = 0; d < step->dimension; d++)
        s->potential_energy -= step->scene->gravity[d] *
                               (0.5 * (sums->moment_before[d] + sums->moment[d]) - sums->mass * step->grid.low[d]);
}

/* Its fields, and the masses in the transfer tiles. */
static double bytes_per_cell(const selkie_scene *scene)
{
    (void)scene;
    return 3 * 4 + 30;
}

const sk_method sk_method_densities = {
    .name = "densities",
    .needs = SK_NEEDS_PARTICLES | SK_NEEDS_GRID,
    .fields = SK_FIELD_BITS(SK_FIELD_LIGHTNESS_X, 3),
    .takes_part = sk_scene_has_densities,
    .create = create,
    .destroy = destroy,
    .phases = {{.name = "weigh", .slot = SK_SLOT_AFTER, .run = SK_ONE_FORM_ANY_DIMENSION(sk_densities_weigh)}},
    .measure = measure,
    .state = state,
    .restore = restore,
    .statistics = statistics,
    .bytes_per_cell = bytes_per_cell,
};
