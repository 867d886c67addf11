/* What materials mean to a world: masses, and energies of particles that differ in mass. */
#include <math.h>
#include <string.h>

#include "defs/materials.h"
#include "world/world_internal.h"

selkie_code sk_world_add_materials(selkie_world *world, double cell_size, selkie_error *error)
{
    sk_step *step = &world->step;
    const selkie_scene *scene = world->scene;
    step->density = sk_scene_density(scene, 0);
    step->particle_mass = step->density * pow(cell_size, step->dimension) / step->particles_per_cell;
    if (scene->material_count < 2)
        return SELKIE_OK;
    if (!sk_particles_add_attribute(&step->particles, "material", 1, 1))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "particles: no memory for the attribute \"material\"");
    if (!sk_scene_has_densities(scene))
        return SELKIE_OK;
    for (int m = 0; m < SK_TRANSFER_MATERIALS; m++)
        world->relative_density[m] =
            m < scene->material_count ? (float)(scene->materials[m].density / step->density) : 1.0f;
    step->relative_density = world->relative_density;
    return sk_grid_add_lightness(&step->grid, error);
}

double selkie_world_material_mass(const selkie_world *world, int material)
{
    const int count = world->scene->material_count ? world->scene->material_count : 1;
    if (material < 0 || material >= count)
        return 0.0;
    return world->step.particle_mass * (sk_scene_density(world->scene, material) / world->step.density);
}

enum { SPAN = 16384 }; /* particles of a partial sum: spans are added in order, whatever the threads */

static void sum_span(const sk_step *step, const sk_attribute *material, int64_t begin, int64_t end, sk_mass_sums *sums)
{
    memset(sums, 0, sizeof *sums);
    for (int64_t p = begin; p < end; p++) {
        const sk_particle *particle = &step->particles.records[p];
        const double mass = sk_step_mass(step, material, p);
        double speed2 = 0.0;
        for (int d = 0; d < step->dimension; d++) {
            speed2 += (double)particle->velocity[d] * particle->velocity[d];
            sums->moment[d] += mass * particle->position[d];
        }
        sums->kinetic += 0.5 * mass * speed2;
        sums->mass += mass;
    }
}

selkie_code sk_world_sum_masses(selkie_world *world, selkie_error *error)
{
    sk_step *step = &world->step;
    if (!step->relative_density)
        return SELKIE_OK;
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
    memcpy(total.moment_before, step->mass_sums.moment_before, sizeof total.moment_before);
    step->mass_sums = total;
    return SELKIE_OK;
}

void sk_world_weigh_energies(selkie_world *world)
{
    const sk_step *step = &world->step;
    const sk_mass_sums *sums = &step->mass_sums;
    if (!step->relative_density)
        return;
    world->statistics.kinetic_energy = sums->kinetic;
    world->statistics.potential_energy = 0.0;
    for (int d = 0; d < step->dimension; d++)
        world->statistics.potential_energy -=
            step->scene->gravity[d] *
            (0.5 * (sums->moment_before[d] + sums->moment[d]) - sums->mass * step->grid.low[d]);
}
