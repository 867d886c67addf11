/* The GPU backend as the world sees it. No type of CUDA leaves src/cuda.
 *
 * A phase of the step has a CUDA form if sk_cuda_phase finds one. The forms are lists of kernels; a kernel runs the
 * functions of the plain backend, one thread a cell or a particle. Particles and grid stay on the device from step to
 * step. sk_cuda_fetch_* copies them back where the host needs them: for frames, probes and checkpoints.
 *
 * A build without CUDA has the same functions (absent.c). They fail with a message that names the CPU backend.
 */
#ifndef SK_CUDA_CUDA_H
#define SK_CUDA_CUDA_H

#include "methods/step.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sk_cuda_info {
    char name[128];
    double memory, free;       /* bytes */
    int driver[2], runtime[2]; /* version: major, minor */
    int capability[2];
} sk_cuda_info;

/* Is the backend a part of this build? */
int sk_cuda_is_built(void);
/* The device that a world would use. Fails with one line where there is none. */
selkie_code sk_cuda_find(sk_cuda_info *info, selkie_error *error);
/* Can the device run the scene? Fails with one line that names what it cannot run. */
selkie_code sk_cuda_check(const selkie_scene *scene, selkie_error *error);
/* The CUDA form of a phase; NULL = none. */
sk_phase_function sk_cuda_phase(const char *method, const char *phase, int dimension);

/* Memory of a world on the device; step->cuda. Destroy accepts a step without. */
selkie_code sk_cuda_create(sk_step *step, selkie_error *error);
void sk_cuda_destroy(sk_step *step);
/* The host's particles have changed: the next phase copies them to the device. */
void sk_cuda_particles_changed(sk_step *step);
/* The end of a step: waits for the device and takes the results over. */
selkie_code sk_cuda_finish_step(sk_step *step, selkie_error *error);
/* Blocks of the grid in the last step, block 0 included. */
int sk_cuda_block_count(const sk_step *step);
/* Copies particles, and the blocks of the grid with their solids or also with all fields, to the host, unless they are
 * there. */
selkie_code sk_cuda_fetch_particles(sk_step *step, selkie_error *error);
selkie_code sk_cuda_fetch_grid(sk_step *step, int with_fields, selkie_error *error);

/* The vents of static obstacles (sk_solids.vents) to the host, and those of a checkpoint to the device. */
selkie_code sk_cuda_fetch_vents(sk_step *step, selkie_error *error);
selkie_code sk_cuda_send_vents(sk_step *step, selkie_error *error);

/* A copy of the particles as they are now, which goes on beside the steps that follow. */
typedef struct sk_cuda_copy sk_cuda_copy;
/* Begins it. `copy` is NULL where the host has the particles or there is no room: they are fetched then. */
selkie_code sk_cuda_copy_begin(sk_step *step, sk_cuda_copy **copy, selkie_error *error);
/* Waits for it, in any thread; the arrays of `particles` are those of the copy. */
selkie_code sk_cuda_copy_take(sk_cuda_copy *copy, sk_particles *particles, selkie_error *error);
void sk_cuda_copy_free(sk_cuda_copy *copy);

/* Reserves that many blocks of the grid from now on (0 = as many as the particles need). More are taken when needed. */
selkie_code sk_cuda_reserve_blocks(sk_step *step, int blocks, selkie_error *error);
/* Bytes that a world has taken on the device. */
size_t sk_cuda_bytes(const sk_step *step);
/* Times the kernels from now on, one by one, so that steps take longer; or whole graphs as they run. Entry n of the
 * times, and whether there is one. */
enum sk_cuda_timed { SK_CUDA_TIME_KERNELS, SK_CUDA_TIME_GRAPHS };
typedef struct sk_cuda_time {
    const char *kernel; /* or graph */
    double ms;          /* of all launches */
    int launches;
} sk_cuda_time;
void sk_cuda_start_profile(sk_step *step, enum sk_cuda_timed timed);
int sk_cuda_profile_entry(const sk_step *step, int n, sk_cuda_time *time);
/* Bytes a second of a = b + s c on long arrays, the bandwidth to compare kernels with; 0 without a device. */
double sk_cuda_triad(void);

#ifdef __cplusplus
}
#endif

#endif
