/* What a scene would need, before anything is allocated for it. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "defs/materials.h"
#include "methods/force_fields.h"
#include "methods/liquid_boundary/liquid_boundary.h"
#include "methods/sph/sph.h"
#include "world/world_internal.h"

/* Bytes, measured with `make bench` and rounded up. */
enum {
    PARTICLE_BYTES = 2 * (int)sizeof(sk_particle) + 12, /* two copies and the sort's keys */
    AFFINE_BYTES = 2 * 36,
    CELL_BYTES = 15 * 4 + 2 + 70 + 90, /* fields, kinds, transfer tiles, solver */
    UNILATERAL_BYTES = 8 * 4 + 60,     /* its fields, its solver */
    LIGHTNESS_BYTES = 3 * 4 + 30       /* its fields, the masses in the transfer tiles */
};

static double bytes_per_cell(const selkie_scene *scene)
{
    return CELL_BYTES + (scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL ? UNILATERAL_BYTES : 0) +
           (sk_scene_has_densities(scene) ? LIGHTNESS_BYTES : 0);
}

static double bytes_per_particle(const selkie_scene *scene)
{
    if (scene->discretization == SELKIE_DISCRETIZATION_SPH)
        return PARTICLE_BYTES + sk_sph_bytes_per_particle(scene->domain.dimension);
    const int material = scene->material_count > 1 ? 2 * 4 : 0;
    return PARTICLE_BYTES + material + (scene->transfer == SELKIE_TRANSFER_APIC ? AFFINE_BYTES : 0);
}

/* A scene that is far too large is refused after a coarse look at it: to count billions of particles would take minutes
 * and more memory than there is. What the coarse look cannot tell (liquids thinner than its cells) is left to the
 * count. */
static selkie_code refuse_hopeless(const selkie_scene *scene, const selkie_world_options *options,
                                   const selkie_plan *plan, size_t limit, selkie_error *error)
{
    const double looked_at = 4e6, countable = 1e8; /* cells */
    double cells = (double)plan->cells[0] * plan->cells[1] * plan->cells[2];
    if (!limit || cells < countable)
        return SELKIE_OK;
    int dimension = scene->domain.dimension;
    double factor = pow(cells / looked_at, 1.0 / dimension);
    selkie_scene coarse = *scene;
    coarse.domain.cell_size = plan->cell_size * factor;
    selkie_plan rough;
    if (selkie_scene_plan(&coarse, options, &rough, NULL) != SELKIE_OK)
        return SELKIE_OK;
    double finer = pow(factor, dimension), particles = (double)rough.particles * finer;
    double bytes = particles * bytes_per_particle(scene) + bytes_per_cell(scene) * (double)rough.liquid_cells * finer;
    if (bytes < 1.2 * (double)limit)
        return SELKIE_OK;
    return sk_fail(
        error, SELKIE_ERROR_MEMORY,
        "about %.2g particles in %d x %d x %d cells need about %.0f GiB; %.1f GiB are there; use larger cells "
        "(domain.cell_size) or fewer particles (particles.per_cell)",
        particles, plan->cells[0], plan->cells[1], plan->cells[2], bytes / 1073741824.0, (double)limit / 1073741824.0);
}

/* What a world would refuse in the scene's objects. */
static selkie_code check_objects(const selkie_scene *scene, const sk_grid *grid, const sk_solids *solids, int threads,
                                 sk_memory *memory, selkie_error *error)
{
    sk_step step;
    memset(&step, 0, sizeof step);
    step.scene = scene;
    step.memory = memory;
    step.threads = threads;
    step.dimension = scene->domain.dimension;
    step.density = 1.0;
    step.particle_mass = pow(selkie_scene_spacing(scene), step.dimension);
    step.grid = *grid;
    step.solids = *solids;
    return sk_liquid_boundary_check(&step, error);
}

selkie_code selkie_scene_plan(const selkie_scene *scene, const selkie_world_options *options, selkie_plan *plan,
                              selkie_error *error)
{
    memset(plan, 0, sizeof *plan);
    SK_TRY(selkie_scene_check(scene, error));
    int threads = options && options->threads > 0 ? options->threads : omp_get_num_procs();
    plan->cell_size = selkie_scene_cells(scene, plan->cells);
    int dimension = scene->domain.dimension;
    size_t limit = options && options->memory_limit ? options->memory_limit : sk_memory_available();
    double table = sk_grid_table_bytes(dimension, plan->cells);
    if (limit && table > (double)limit)
        return sk_fail(error, SELKIE_ERROR_MEMORY,
                       "domain: %d x %d x %d cells need %.1f GiB for the table of blocks alone; %.1f GiB are there; "
                       "use larger cells",
                       plan->cells[0], plan->cells[1], plan->cells[2], table / 1073741824.0,
                       (double)limit / 1073741824.0);
    SK_TRY(refuse_hopeless(scene, options, plan, limit, error));
    sk_memory memory = {0, 0, limit};
    sk_grid grid;
    sk_solids solids;
    memset(&solids, 0, sizeof solids);
    selkie_code code =
        sk_grid_init(&grid, dimension, plan->cells, scene->domain.origin, plan->cell_size, &memory, error);
    if (code == SELKIE_OK)
        code = sk_solids_init(&solids, scene, &grid, &memory, error);
    if (code == SELKIE_OK)
        code = sk_world_sample(scene, &grid, &solids, threads, sk_scene_particles_per_cell(scene), NULL,
                               &plan->particles, &plan->liquid_cells, error);
    if (code == SELKIE_OK && scene->object_count)
        code = check_objects(scene, &grid, &solids, threads, &memory, error);
    if (code == SELKIE_OK) {
        double per_particle = bytes_per_particle(scene);
        /* Blocks reach beyond the liquid, and a splash takes more of them than the start. */
        double active =
            2.0 * (double)plan->liquid_cells + 64.0 * pow((double)plan->liquid_cells, (dimension - 1.0) / dimension);
        plan->memory_bytes =
            memory.peak + (size_t)(per_particle * (double)plan->particles + bytes_per_cell(scene) * active);
        double speed = 0.0;
        for (int l = 0; l < scene->liquid_count; l++) {
            const double *v = scene->liquids[l].velocity;
            speed = fmax(speed, sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]));
        }
        const double *g = scene->gravity;
        double longest =
            scene->time.max_step > 0.0 ? fmin(scene->time.max_step, 1.0 / scene->time.fps) : 1.0 / scene->time.fps;
        const sk_force_window window = {0.0, 0.5 * longest};
        double acceleration =
            sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]) + sk_force_fields_acceleration(scene, window);
        speed += sk_force_fields_speed(scene, window) + sqrt(acceleration * plan->cell_size);
        plan->first_step = scene->time.step > 0.0 ? scene->time.step
                           : speed > 0.0          ? selkie_scene_cfl(scene) * plan->cell_size / speed
                                                  : longest;
        plan->first_step = scene->time.step > 0.0 ? scene->time.step
                           : speed > 0.0
                               ? selkie_scene_cfl(scene) *
                                     (scene->discretization == SELKIE_DISCRETIZATION_SPH ? selkie_scene_spacing(scene)
                                                                                         : plan->cell_size) /
                                     speed
                               : longest;
        plan->first_step = fmin(plan->first_step, longest);
        plan->frames = (int64_t)floor(scene->time.end * scene->time.fps * (1 + 1e-12));
        if (limit && plan->memory_bytes > limit)
            code = sk_fail(
                error, SELKIE_ERROR_MEMORY,
                "%lld particles in %d x %d x %d cells need about %.1f GiB; %.1f GiB are there; use larger cells "
                "(domain.cell_size) or fewer particles (particles.per_cell)",
                (long long)plan->particles, plan->cells[0], plan->cells[1], plan->cells[2],
                (double)plan->memory_bytes / 1073741824.0, (double)limit / 1073741824.0);
    }
    if (solids.memory)
        sk_solids_free(&solids);
    sk_grid_free(&grid);
    return code;
}
