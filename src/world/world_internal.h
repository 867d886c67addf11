/* The struct of a world: its state, its phases and its measurements. */
#ifndef SK_WORLD_WORLD_INTERNAL_H
#define SK_WORLD_WORLD_INTERNAL_H

#include <stdatomic.h>
#include <selkie/world.h>
#include "defs/structs.h"
#include "methods/method.h"
#include "world/probes.h"

/* Changes of a scene while it runs: those of the scene and those that callers made, in the order of their steps. */
typedef struct sk_change_log {
    sk_pool *pool; /* of what the changes point to */
    selkie_change_def *changes;
    double *times;     /* s  when each happened; of the first `applied` */
    uint8_t *is_given; /*    from the scene, not from a caller */
    int count, capacity, applied;
} sk_change_log;

struct selkie_world {
    sk_memory memory;
    selkie_world_options options;
    selkie_scene *original; /* as the caller gave it */
    selkie_scene *scene; /* with the changes so far, and none to come. Its address stays; the pool in `owned` has what
                            it points to */
    selkie_scene *relative; /* the same in coordinates relative to domain.origin: the scene of all phases */
    sk_step step;
    sk_method_list available;
    sk_method_list methods; /* those that take part, in the order of the list */
    const sk_method *chosen_methods[SK_STEP_MAX_METHODS];
    sk_probes probes;
    int phase_count;
    sk_phase phases[SELKIE_MAX_PHASES];
    selkie_statistics statistics;
    int64_t frame; /* last one reached */
    int at_frame;
    int failed;
    atomic_int cancelled;
    sk_change_log log;
    selkie_scene recorded; /* for selkie_world_record(): `original` with the log's changes */
    int64_t *change_state; /* chunk of the checkpoint */
    double set_length;     /* s  of the next step; 0 = as the scene says */
    int *positions_shown;  /* a caller may have written positions since the last step. Separate memory: reading a const
                              world sets it */
    struct sk_cuda_mesher *mesher; /* mesher.h; NULL = none yet */
    char warning[512];             /* "" = none */
    double pressure_unit;          /* Pa / (m/s): pressure over the potential of the last solve */

    /* measures of the start, cells */
    double start_kernel_volume, start_counted_volume, start_surface_volume;
    int64_t start_occupied_cells, start_particles;
};

/* All methods of this build; the methods of a list that take part in a scene; their combined needs (sk_needs). */
sk_method_list sk_all_methods(void);
sk_method_list sk_choose_methods(sk_method_list from, const selkie_scene *scene, const sk_method **chosen);
int sk_methods_need(sk_method_list list, const selkie_scene *scene);
uint64_t sk_methods_fields(sk_method_list list);
/* Can a GPU that is here run the scene? Fails with one line that says why not. */
selkie_code sk_methods_check_gpu(const selkie_scene *scene, selkie_error *error);
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

/* The state as named chunks, in place, for checkpoints (src/io/checkpoint.c). */
enum { SK_STATE_MAX_CHUNKS = 5 + SK_MAX_ATTRIBUTES + SK_STEP_MAX_METHODS };
typedef struct sk_state_chunk {
    char name[24];
    const void *data;
    uint64_t bytes;
} sk_state_chunk;

/* Releases everything but the world itself, its scenes and its log. */
void sk_world_empty(selkie_world *world);
/* Builds an empty world of its scene. */
selkie_code sk_world_build(selkie_world *world, const sk_filling *filling, selkie_error *error);
/* Builds the world anew of another scene, which it takes over, and gives it a state, if there is one. If that fails,
 * the world is as before. */
selkie_code sk_world_rebuild(selkie_world *world, selkie_scene *scene, int count, const sk_state_chunk *chunks,
                             const char *file, selkie_error *error);

/* Changes while it runs (changes.c). */
selkie_code sk_changes_init(selkie_world *world, selkie_error *error);
void sk_changes_free(selkie_world *world);
/* Leaves the first change of sources or drains in a scene, and no other: a run has their phases, and so the columns of
 * their times, from its start. */
void sk_changes_leave_out(selkie_scene *scene);
/* Applies the changes that are due before the next step. */
selkie_code sk_changes_due(selkie_world *world, selkie_error *error);
/* The state of the changes for a checkpoint: their number and times; 0 bytes without any. */
sk_chunk_view sk_changes_state(const selkie_world *world);
/* Brings the scene to what it was when a chunk was written. A world without changes ignores a missing chunk. */
selkie_code sk_changes_restore(selkie_world *world, int count, const sk_state_chunk *chunks, const char *file,
                               int *rebuilt, selkie_error *error);
/* Adds liquid where there is room; removes the liquid inside a shape. Both in the scene's relative coordinates. */
selkie_code sk_world_add_liquid(selkie_world *world, const selkie_liquid_def *liquid, int64_t *added,
                                selkie_error *error);
selkie_code sk_world_clear_liquid(selkie_world *world, const selkie_shape *shape, int64_t *removed,
                                  selkie_error *error);

/* Points to which sampled places must be near. */
typedef struct sk_sampling_near {
    int64_t count;
    const float (*points)[3];                               /* m */
    double radius;                                          /* m */
    int (*is_near)(const void *context, const double x[3]); /* is a place (m) near a point? Any thread may ask. */
    const void *context;
} sk_sampling_near;

/* Input of sk_world_sample. */
typedef struct sk_sampling {
    const selkie_scene *scene;
    const sk_grid *grid;
    const sk_solids *solids;
    int threads, particles_per_cell;
    /* Only places near these points; NULL = everywhere. */
    const struct sk_sampling_near *near;
} sk_sampling;

/* Samples the liquids: counts the particles, and writes them if `particles` is not NULL. Works on blocks of cells, so
 * that its time is proportional to the surface of the shapes. `liquid_cells` receives the number of cells with liquid.
 */
selkie_code sk_world_sample(const sk_sampling *sampling, sk_particles *particles, int64_t *total, int64_t *liquid_cells,
                            selkie_error *error);

int sk_scene_particles_per_cell(const selkie_scene *scene);

/* Volume, speed and energy of the particles as they are, without a step. */
selkie_code sk_world_measure(selkie_world *world, selkie_error *error);
/* As selkie_world_attribute, but nothing is brought from the GPU: the data may be old. */
selkie_code sk_world_outline_attribute(const selkie_world *world, int index, selkie_attribute_view *view);
/* Brings the particles, or also the grid, from the GPU to the host, if they are not there. */
selkie_code sk_world_fetch(const selkie_world *world, int with_grid, selkie_error *error);
/* A copy of the particles of a world on the GPU, which goes on while it takes further steps; `copy` is NULL where they
 * are here or must be fetched. Its arrays are there after sk_world_copy_take, which any thread may call. */
typedef struct sk_cuda_copy sk_world_copy;
selkie_code sk_world_copy_begin(const selkie_world *world, sk_world_copy **copy, selkie_error *error);
selkie_code sk_world_copy_take(sk_world_copy *copy, sk_particles *particles, selkie_error *error);
void sk_world_copy_free(sk_world_copy *copy);
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
/* After a step: counts the frames that it passed. */
void sk_world_count_frames(selkie_world *world, int on_frame);
/* After a step: sets world->warning if its fixed length gives wrong densities. */
void sk_world_judge_step(selkie_world *world);

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

enum { SK_STATE_HEADER, SK_STATE_PARTICLES }; /* the first chunks; attributes follow the particles */
/* Where the particles are on the GPU alone, their chunks have the right sizes and point to old data. */
int sk_world_state(const selkie_world *world, sk_state_header *header, sk_state_chunk chunks[SK_STATE_MAX_CHUNKS]);
/* The chunks of particles and attributes; returns their number. */
int sk_state_of_particles(const sk_particles *particles, sk_state_chunk *chunks);
/* Checks everything before it changes anything. `file` is for messages. */
selkie_code sk_world_restore(selkie_world *world, int count, const sk_state_chunk *chunks, const char *file,
                             selkie_error *error);

/* The same for a world whose scene has the changes of the state already. */
selkie_code sk_world_restore_state(selkie_world *world, int count, const sk_state_chunk *chunks, const char *file,
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
