/* The struct of a world: its state, its phases and its measurements. */
#ifndef SK_WORLD_WORLD_INTERNAL_H
#define SK_WORLD_WORLD_INTERNAL_H

#include <selkie/world.h>
#include "methods/method.h"
#include "world/probes.h"

struct selkie_world {
    sk_memory memory;
    selkie_scene *scene;    /* own copy */
    selkie_scene *relative; /* the same in coordinates relative to domain.origin: the scene of all phases */
    sk_step step;
    sk_method_list methods; /* those that take part, in the order of the list */
    const sk_method *chosen_methods[SK_STEP_MAX_METHODS];
    sk_probes probes;
    int phase_count;
    sk_phase phases[SELKIE_MAX_PHASES];
    selkie_statistics statistics;
    int64_t frame; /* last one reached */
    int at_frame;
    int failed;
    int *positions_shown; /* a caller may have written positions since the last step. Separate memory: reading a const
                             world sets it */
    char warning[512];    /* "" = none */
    double pressure_unit; /* Pa / (m/s): pressure over the potential of the last solve */

    /* measures of the start, cells */
    double start_kernel_volume, start_counted_volume, start_surface_volume;
    int64_t start_occupied_cells, start_particles;
};

/* All methods of this build; the methods of a list that take part in a scene; their combined needs (sk_needs). */
sk_method_list sk_all_methods(void);
sk_method_list sk_choose_methods(sk_method_list from, const selkie_scene *scene, const sk_method **chosen);
int sk_methods_need(sk_method_list list, const selkie_scene *scene);
uint64_t sk_methods_fields(sk_method_list list);
/* The phases of the world's methods, in the order of a step. */
selkie_code sk_world_compose(selkie_world *world, selkie_error *error);
/* Creates a world with the given methods; selkie_world_create passes all of them. */
selkie_code sk_world_create_of(sk_method_list methods, const selkie_scene *scene, const selkie_world_options *options,
                               selkie_world **out, selkie_error *error);
/* What puts the first particles into a world; NULL samples the liquids of the scene. */
typedef struct sk_filling {
    selkie_code (*fill)(sk_step *step, void *context, selkie_error *error);
    void *context;
} sk_filling;
selkie_code sk_world_create_with(sk_method_list methods, const selkie_scene *scene, const selkie_world_options *options,
                                 const sk_filling *filling, selkie_world **out, selkie_error *error);

/* Input of sk_world_sample. */
typedef struct sk_sampling {
    const selkie_scene *scene;
    const sk_grid *grid;
    const sk_solids *solids;
    int threads, particles_per_cell;
} sk_sampling;

/* Samples the liquids: counts the particles, and writes them if `particles` is not NULL. Works on blocks of cells, so
 * that its time is proportional to the surface of the shapes. `liquid_cells` receives the number of cells with liquid.
 */
selkie_code sk_world_sample(const sk_sampling *sampling, sk_particles *particles, int64_t *total, int64_t *liquid_cells,
                            selkie_error *error);

int sk_scene_particles_per_cell(const selkie_scene *scene);

/* Volume, speed and energy of the particles as they are, without a step. */
selkie_code sk_world_measure(selkie_world *world, selkie_error *error);
/* Brings the particles, or also the grid, from the GPU to the host, if they are not there. */
selkie_code sk_world_fetch(const selkie_world *world, int with_grid, selkie_error *error);
/* Fills world->statistics from what the phases found. */
void sk_world_collect_statistics(selkie_world *world, double step_ms);

/* Runs the methods' sums over particles outside of a step. */
selkie_code sk_methods_measure(selkie_world *world, selkie_error *error);

/* Acceleration (m/s2) of gravity that the step must resolve. */
double sk_world_gravity(const selkie_scene *scene);
/* Longest step (s) that follows the waves of the grid under an acceleration (m/s2). */
double sk_world_wave_step(const selkie_scene *scene, double cell_size, double acceleration);
/* The step's length and end time: steps end exactly on frames and on the end of the run. */
double sk_world_choose_step(const selkie_world *world, double *end_time, int *on_frame);
/* After a step: sets world->warning if its fixed length gives wrong densities. */
void sk_world_judge_step(selkie_world *world);

/* The state as named chunks, in place, for checkpoints (src/io/checkpoint.c). */
enum { SK_STATE_MAX_CHUNKS = 3 + SK_MAX_ATTRIBUTES + SK_STEP_MAX_METHODS };
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

/* 2: positions are relative to domain.origin. */
enum { SK_STATE_VERSION = 2 };

int sk_world_state(const selkie_world *world, sk_state_header *header, sk_state_chunk chunks[SK_STATE_MAX_CHUNKS]);
/* Checks everything before it changes anything. `file` is for messages. */
selkie_code sk_world_restore(selkie_world *world, int count, const sk_state_chunk *chunks, const char *file,
                             selkie_error *error);

/* A state that starts another scene (src/world/restart.c). */
typedef struct sk_state_source {
    int count;
    const sk_state_chunk *chunks;
    const char *file; /* for messages */
} sk_state_source;
selkie_code sk_world_create_from_state(const selkie_scene *scene, const selkie_world_options *options,
                                       const sk_state_source *source, selkie_restart_report *report,
                                       selkie_world **world, selkie_error *error);

#endif
