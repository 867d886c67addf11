/* Memory and steps of a scene, estimated before anything is allocated. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/threads.h"
#include "methods/force_fields.h"
#include "defs/materials.h"
#include "defs/relative.h"
#include "defs/structs.h"
#include "methods/shape_matching/shape_matching.h"
#include "world/world_internal.h"

/* Bytes per particle and cell, rounded up; methods add their own. */
enum {
    PARTICLE_BYTES = 2 * (int)sizeof(sk_particle) + 12, /* two copies and the sort's keys */
    CELL_BYTES = 15 * 4 + 2 + 70 + 90                   /* fields, kinds, transfer tiles, solver */
};

static double bytes_per_cell(const selkie_scene *scene)
{
    const sk_method *chosen[SK_STEP_MAX_METHODS];
    sk_method_list methods = sk_choose_methods(sk_all_methods(), scene, chosen);
    double bytes = CELL_BYTES;
    for (int m = 0; m < methods.count; m++)
        bytes += methods.methods[m]->bytes_per_cell ? methods.methods[m]->bytes_per_cell(scene) : 0.0;
    return bytes;
}

static double bytes_per_particle(const selkie_scene *scene)
{
    const sk_method *chosen[SK_STEP_MAX_METHODS];
    sk_method_list methods = sk_choose_methods(sk_all_methods(), scene, chosen);
    double bytes = PARTICLE_BYTES;
    for (int m = 0; m < methods.count; m++)
        bytes += methods.methods[m]->bytes_per_particle ? methods.methods[m]->bytes_per_particle(scene) : 0.0;
    return bytes;
}

/* The length in the CFL condition, m. */
static double step_length(const selkie_scene *scene, double cell_size)
{
    const sk_method *chosen[SK_STEP_MAX_METHODS];
    sk_method_list methods = sk_choose_methods(sk_all_methods(), scene, chosen);
    double length = cell_size;
    for (int m = 0; m < methods.count; m++)
        length = methods.methods[m]->step_length ? methods.methods[m]->step_length(scene) : length;
    return length;
}

/* Refuses a scene that is far too large after a coarse estimate. Counting billions of particles would take minutes and
 * too much memory. Liquids thinner than the coarse cells are left to the count. */
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
    char needed[32], there[32];
    return sk_fail(error, SELKIE_ERROR_MEMORY,
                   "about %.2g particles in %d x %d x %d cells need about %s; %s are there; use larger cells "
                   "(domain.cell_size) or fewer particles (particles.per_cell)",
                   particles, plan->cells[0], plan->cells[1], plan->cells[2], sk_bytes_text(bytes, needed),
                   sk_bytes_text((double)limit, there));
}

/* Runs the checks of the methods, which a world would run at creation, and counts the particles of bodies. */
static selkie_code check_methods(const selkie_scene *scene, const sk_grid *grid, const sk_solids *solids, int threads,
                                 sk_memory *memory, int64_t *body_particles, selkie_error *error)
{
    const sk_method *chosen[SK_STEP_MAX_METHODS];
    sk_method_list methods = sk_choose_methods(sk_all_methods(), scene, chosen);
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
    step.particles_per_cell = sk_scene_particles_per_cell(scene);
    for (int m = 0; m < methods.count; m++)
        if (methods.methods[m]->check)
            SK_TRY(methods.methods[m]->check(&step, error));
    return scene->discretization == SELKIE_DISCRETIZATION_GRID ? sk_soft_count(&step, body_particles, error)
                                                               : SELKIE_OK;
}

/* The first step by the CFL number, from the speeds of the scene, s. */
static double first_step(const selkie_scene *scene, double cell_size)
{
    double speed = 0.0;
    for (int l = 0; l < scene->liquid_count; l++) {
        const double *v = scene->liquids[l].velocity;
        speed = fmax(speed, sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]));
    }
    double longest = 1.0 / scene->time.fps;
    if (scene->time.max_step > 0.0)
        longest = fmin(scene->time.max_step, longest);
    const sk_force_window window = {0.0, 0.5 * longest};
    double acceleration = sk_world_gravity(scene) + sk_force_fields_acceleration(scene, window);
    speed += sk_force_fields_speed(scene, window) + sqrt(acceleration * cell_size) + sk_scene_wave_speed(scene, NULL);
    double step = longest;
    if (scene->time.step > 0.0)
        step = scene->time.step;
    else if (speed > 0.0)
        step = fmin(selkie_scene_cfl(scene) * step_length(scene, cell_size) / speed,
                    sk_world_wave_step(scene, cell_size, acceleration));
    return fmin(step, longest);
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

    /* Refuse scenes whose coarse estimate exceeds the memory. */
    SK_TRY(refuse_hopeless(scene, options, plan, limit, error));

    /* Grid, solids and particle counts, without the particles. */
    selkie_scene *relative;
    SK_TRY(sk_scene_copy(scene, &relative, error));
    sk_scene_make_relative(relative);
    sk_memory memory = {0, 0, limit};
    sk_grid grid;
    sk_solids solids;
    memset(&solids, 0, sizeof solids);
    int before = sk_threads_begin(threads);
    selkie_code code =
        sk_grid_init(&grid, dimension, plan->cells, relative->domain.origin, plan->cell_size, &memory, error);
    if (code == SELKIE_OK)
        sk_grid_join_sides(&grid, (int)scene->domain.periodic);
    for (int d = 0; d < dimension; d++)
        grid.origin[d] = scene->domain.origin[d];
    if (code == SELKIE_OK)
        code = sk_solids_init(&solids, relative, &grid, &memory, error);
    if (code == SELKIE_OK)
        code =
            sk_world_sample(&(sk_sampling){relative, &grid, &solids, threads, sk_scene_particles_per_cell(scene), NULL},
                            NULL, &plan->particles, &plan->liquid_cells, error);
    if (code == SELKIE_OK)
        code = check_methods(relative, &grid, &solids, threads, &memory, &plan->body_particles, error);
    sk_threads_end(before);

    /* Memory, first step and frames. */
    if (code == SELKIE_OK) {
        double per_particle = bytes_per_particle(scene);
        /* Blocks extend beyond the liquid, and a splash needs more of them than the start. */
        const double filled =
            (double)plan->liquid_cells + (double)plan->body_particles / sk_scene_particles_per_cell(scene);
        const double active = 2.0 * filled + 64.0 * pow(filled, (dimension - 1.0) / dimension);
        plan->memory_bytes = memory.peak + (size_t)(per_particle * (double)(plan->particles + plan->body_particles) +
                                                    sizeof(sk_soft_point) * (double)plan->body_particles +
                                                    bytes_per_cell(scene) * active);
        plan->first_step = first_step(scene, plan->cell_size);
        plan->frames = (int64_t)floor(scene->time.end * scene->time.fps * (1 + 1e-12));
        if (limit && plan->memory_bytes > limit)
            code = sk_fail(
                error, SELKIE_ERROR_MEMORY,
                "%lld particles in %d x %d x %d cells need about %.1f GiB; %.1f GiB are there; use larger cells "
                "(domain.cell_size) or fewer particles (particles.per_cell)",
                (long long)(plan->particles + plan->body_particles), plan->cells[0], plan->cells[1], plan->cells[2],
                (double)plan->memory_bytes / 1073741824.0, (double)limit / 1073741824.0);
    }

    if (solids.memory)
        sk_solids_free(&solids);
    sk_grid_free(&grid);
    selkie_scene_free(relative);
    return code;
}
