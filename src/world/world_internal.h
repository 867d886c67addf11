/* The world's own struct: composition of the state, the phases, and what was measured. */
#ifndef SK_WORLD_WORLD_INTERNAL_H
#define SK_WORLD_WORLD_INTERNAL_H

#include <selkie/world.h>
#include "methods/liquid_boundary/liquid_boundary.h"
#include "methods/sources/sources.h"
#include "methods/step.h"
#include "rigid/rigid.h"
#include "world/probes.h"

struct selkie_world {
    sk_memory memory;
    selkie_scene *scene; /* own copy */
    sk_step step;
    sk_sources sources;
    sk_liquid_boundary objects;
    sk_rigid rigid; /* empty without bodies */
    sk_probes probes;
    int phase_count;
    sk_phase phases[SELKIE_MAX_PHASES];
    selkie_statistics statistics;
    int64_t frame; /* last one reached */
    int at_frame;
    int failed;
    int compressed_steps; /* of SPH with a fixed step: so many in a row have left far too high a density */
    char warning[512];    /* "" = none */
    float relative_density[SK_TRANSFER_MATERIALS]; /* step.relative_density points here where densities differ */
    double pressure_unit;                          /* Pa / (m/s): what makes a pressure of the last solve's potential */

    /* measures of the start, cells */
    double start_kernel_volume, start_counted_volume, start_surface_volume;
    int64_t start_occupied_cells, start_particles;
};

/* Liquids to particles: how many, and then the particles themselves. One block of cells at a time, so that the work
 * goes with the surface of the shapes. `report` gets the number of each liquid. */
selkie_code sk_world_sample(const selkie_scene *scene, const sk_grid *grid, const sk_solids *solids, int threads,
                            int particles_per_cell, sk_particles *particles, int64_t *total, int64_t *liquid_cells,
                            selkie_error *error);

int sk_scene_particles_per_cell(const selkie_scene *scene);

/* Volume, speed and energy of the particles as they are, without a step. */
selkie_code sk_world_measure(selkie_world *world, selkie_error *error);
/* Fills world->statistics from what the phases found. */
void sk_world_collect_statistics(selkie_world *world, double step_ms);

/* --- Materials (materials.c) --- */

/* Reference density, particle mass and what the grid and the particles need for the scene's materials. */
selkie_code sk_world_add_materials(selkie_world *world, double cell_size, selkie_error *error);
/* Sums of mass, moment and energy over particles of different masses; nothing where they have one. */
selkie_code sk_world_sum_masses(selkie_world *world, selkie_error *error);
/* Energies by each particle's own mass, into the statistics; nothing where particles have one. */
void sk_world_weigh_energies(selkie_world *world);

/* The step's length, and where it ends: steps land exactly on frames and on the end. */
double sk_world_choose_step(const selkie_world *world, double *end_time, int *on_frame);
/* After a step: sets world->warning if its fixed length makes nonsense of the density. */
void sk_world_judge_step(selkie_world *world);

/* The state as named chunks, in place, for checkpoints (src/io/checkpoint.c). */
enum { SK_STATE_MAX_CHUNKS = 3 + SK_MAX_ATTRIBUTES };
typedef struct sk_state_chunk {
    char name[24];
    const void *data;
    uint64_t bytes;
} sk_state_chunk;

typedef struct sk_state_header {
    uint32_t version;
    uint32_t dimension;
    int32_t cells[3];
    int32_t particles_per_cell;
    double cell_size, time, last_dt, max_speed, positions[3];
    int64_t step_count, frame, particle_count, emitted, drained;
    double start_kernel_volume, start_counted_volume, start_surface_volume;
    int64_t start_occupied_cells, start_particles;
    uint32_t next_id, at_frame;
} sk_state_header;

enum { SK_STATE_VERSION = 1 };

int sk_world_state(const selkie_world *world, sk_state_header *header, sk_state_chunk chunks[SK_STATE_MAX_CHUNKS]);
/* Checks everything before it changes anything. `file` is for messages. */
selkie_code sk_world_restore(selkie_world *world, int count, const sk_state_chunk *chunks, const char *file,
                             selkie_error *error);

#endif
