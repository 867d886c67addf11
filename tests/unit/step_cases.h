/* Worlds for the tests of single phases: made by the public way in, then taken apart. */
#ifndef SK_TESTS_STEP_CASES_H
#define SK_TESTS_STEP_CASES_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "methods/flip/flip.h"
#include "world/world_internal.h"

typedef struct step_case {
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_obstacle_def obstacles[3];
    selkie_world *world;
    sk_step *step;
} step_case;

/* A tank of cells of `cell_size`, nothing in it yet. */
static inline void case_begin(step_case *c, int dimension, int nx, int ny, int nz, double cell_size)
{
    memset(c, 0, sizeof *c);
    selkie_scene_defaults(&c->scene);
    c->scene.volume = SELKIE_VOLUME_NONE;
    const int cells[3] = {nx, ny, nz};
    c->scene.domain.dimension = dimension;
    c->scene.domain.cell_size = cell_size;
    for (int d = 0; d < 3; d++) {
        c->scene.domain.origin[d] = 0.0;
        c->scene.domain.size[d] = d < dimension ? cells[d] * cell_size : cell_size;
    }
    c->scene.gravity[0] = c->scene.gravity[2] = 0.0;
    c->scene.gravity[1] = -9.81;
    c->scene.liquids = c->liquids;
    c->scene.obstacles = c->obstacles;
    for (int n = 0; n < 2; n++)
        selkie_liquid_defaults(&c->liquids[n]);
    for (int n = 0; n < 3; n++)
        selkie_obstacle_defaults(&c->obstacles[n]);
}

/* Corners in cells. */
static inline void case_box(const step_case *c, selkie_shape *shape, double x0, double y0, double z0, double x1,
                            double y1, double z1)
{
    const double low[3] = {x0, y0, z0}, high[3] = {x1, y1, z1}, h = c->scene.domain.cell_size;
    selkie_shape_defaults(shape, SELKIE_SHAPE_BOX);
    for (int d = 0; d < 3; d++) {
        shape->min[d] = low[d] * h;
        shape->max[d] = high[d] * h;
    }
}

static inline void case_ball(const step_case *c, selkie_shape *shape, double x, double y, double z, double radius)
{
    const double h = c->scene.domain.cell_size, at[3] = {x * h, y * h, z * h};
    selkie_shape_defaults(shape, SELKIE_SHAPE_SPHERE);
    memcpy(shape->center, at, sizeof at);
    shape->radius = radius * h;
}

/* The two halves of the phase that moves particles, for tests of either. */
static inline void case_split_move(step_case *c)
{
    const int flat = c->scene.domain.dimension == 2;
    for (int p = 0; p < c->world->phase_count; p++)
        if (strcmp(c->world->phases[p].name, "move") == 0) {
            c->world->phases[p] = (sk_phase){.name = "to_particles",
                                             .run = flat ? sk_flip_to_particles_2d : sk_flip_to_particles_3d,
                                             .again_from = -1};
            c->world->phases[p + 1] =
                (sk_phase){.name = "advect", .run = flat ? sk_flip_advect_2d : sk_flip_advect_3d, .again_from = -1};
            c->world->phase_count = p + 2;
        }
}

static inline void case_create(step_case *c, int threads, double dt)
{
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = threads;
    selkie_error error = {0};
    if (selkie_world_create(&c->scene, &options, &c->world, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    c->step = &c->world->step;
    c->step->dt = c->step->last_dt = dt;
    case_split_move(c);
}

static inline void case_end(step_case *c)
{
    selkie_world_destroy(c->world);
    c->world = NULL;
}

static inline selkie_code case_run(step_case *c, const char *phase, selkie_error *error)
{
    for (int p = 0; p < c->world->phase_count; p++)
        if (strcmp(c->world->phases[p].name, phase) == 0)
            return sk_phase_run(&c->world->phases[p], c->step, error);
    fail_msg("there is no phase %s", phase);
    return SELKIE_ERROR_INTERNAL;
}

/* All phases from the first up to the named one, which is run as well. */
static inline void case_run_through(step_case *c, const char *last)
{
    selkie_error error = {0};
    for (int p = 0; p < c->world->phase_count; p++) {
        if (sk_phase_run(&c->world->phases[p], c->step, &error) != SELKIE_OK)
            fail_msg("%s: %s", c->world->phases[p].name, error.message);
        if (strcmp(c->world->phases[p].name, last) == 0)
            return;
    }
    fail_msg("there is no phase %s", last);
}

/* Index of a cell of the domain in the grid's fields; 0 (in the empty block) where there is no block. */
static inline size_t case_cell(const step_case *c, const int cell[3])
{
    const sk_grid *grid = &c->step->grid;
    const int at[3] = {cell[0] + grid->padding[0], cell[1] + grid->padding[1], cell[2] + grid->padding[2]};
    int slot;
    const size_t local = sk_grid_find_cell(grid, at, &slot);
    return slot ? (size_t)slot * (size_t)grid->block_cells + local : 0;
}

/* The same in the fields of the solids. */
static inline size_t case_solid_cell(const step_case *c, size_t index)
{
    size_t cells = (size_t)c->step->grid.block_cells;
    return (size_t)c->step->solids.block_slot[index / cells] * cells + index % cells;
}

#define FOR_DOMAIN(c)                                                                                                  \
    for (int k = 0; k < ((c)->step->dimension == 3 ? (c)->step->grid.cells[2] : 1); k++)                               \
        for (int j = 0; j < (c)->step->grid.cells[1]; j++)                                                             \
            for (int i = 0; i < (c)->step->grid.cells[0]; i++)

#endif
