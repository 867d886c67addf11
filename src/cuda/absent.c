/* The GPU backend of a build without CUDA: every call that would need it fails with one line. */
#include "cuda/cuda.h"
#include "cuda/probes.h"
#include "cuda/surface.h"
#include "selkie_config.h"

#if !SELKIE_HAVE_CUDA

static selkie_code absent(selkie_error *error)
{
    return sk_fail(error, SELKIE_ERROR_INPUT,
                   "backend: \"cuda\" is not in this build (nvcc was not found, or SELKIE_CUDA is off); use \"tuned\"");
}

int sk_cuda_is_built(void)
{
    return 0;
}

selkie_code sk_cuda_find(sk_cuda_info *info, selkie_error *error)
{
    (void)info;
    return absent(error);
}

selkie_code sk_cuda_check(const selkie_scene *scene, selkie_error *error)
{
    (void)scene;
    return absent(error);
}

sk_phase_function sk_cuda_phase(const char *method, const char *phase, int dimension)
{
    (void)method, (void)phase, (void)dimension;
    return NULL;
}

selkie_code sk_cuda_create(sk_step *step, selkie_error *error)
{
    (void)step;
    return absent(error);
}

void sk_cuda_destroy(sk_step *step)
{
    (void)step;
}

void sk_cuda_particles_changed(sk_step *step)
{
    (void)step;
}

selkie_code sk_cuda_finish_step(sk_step *step, selkie_error *error)
{
    (void)step, (void)error;
    return SELKIE_OK;
}

int sk_cuda_block_count(const sk_step *step)
{
    return step->grid.block_count;
}

selkie_code sk_cuda_fetch_particles(sk_step *step, selkie_error *error)
{
    (void)step, (void)error;
    return SELKIE_OK;
}

selkie_code sk_cuda_fetch_grid(sk_step *step, int with_fields, selkie_error *error)
{
    (void)with_fields, (void)step, (void)error;
    return SELKIE_OK;
}

selkie_code sk_cuda_fetch_vents(sk_step *step, selkie_error *error)
{
    (void)step, (void)error;
    return SELKIE_OK;
}

selkie_code sk_cuda_send_vents(sk_step *step, selkie_error *error)
{
    (void)step, (void)error;
    return SELKIE_OK;
}

selkie_code sk_cuda_copy_begin(sk_step *step, sk_cuda_copy **copy, selkie_error *error)
{
    (void)step, (void)error;
    *copy = NULL;
    return SELKIE_OK;
}

selkie_code sk_cuda_copy_take(sk_cuda_copy *copy, sk_particles *particles, selkie_error *error)
{
    (void)copy, (void)particles, (void)error;
    return SELKIE_OK;
}

void sk_cuda_copy_free(sk_cuda_copy *copy)
{
    (void)copy;
}

selkie_code sk_cuda_mesher_create(sk_cuda_mesher **mesher, selkie_error *error)
{
    *mesher = NULL;
    return absent(error);
}

void sk_cuda_mesher_destroy(sk_cuda_mesher *mesher)
{
    (void)mesher;
}

selkie_code sk_cuda_surface_extract(sk_cuda_mesher *mesher, const sk_surface_particles *particles,
                                    const sk_surface_options *options, sk_mesh *mesh, selkie_error *error)
{
    (void)mesher, (void)particles, (void)options, (void)mesh;
    return absent(error);
}

selkie_code sk_cuda_surface_add_values(sk_cuda_mesher *mesher, const sk_surface_particles *particles,
                                       const sk_surface_options *options, int count, const sk_surface_value *values,
                                       sk_mesh *mesh, selkie_error *error)
{
    (void)mesher, (void)particles, (void)options, (void)count, (void)values, (void)mesh;
    return absent(error);
}

selkie_code sk_cuda_surface_volume(sk_cuda_mesher *mesher, const sk_surface_particles *particles,
                                   const sk_surface_options *options, int count, const sk_surface_value *values,
                                   sk_volume *volume, selkie_error *error)
{
    (void)mesher, (void)particles, (void)options, (void)count, (void)values, (void)volume;
    return absent(error);
}

int sk_cuda_has_particles(const sk_step *step)
{
    (void)step;
    return 0;
}

selkie_code sk_cuda_surface_extract_here(sk_cuda_mesher *mesher, const sk_step *step, const sk_surface_options *options,
                                         sk_mesh *mesh, selkie_error *error)
{
    (void)mesher, (void)step, (void)options, (void)mesh;
    return absent(error);
}

selkie_code sk_cuda_add_up(sk_step *step, const sk_cuda_wanted_sums *wanted, sk_cuda_added *added, selkie_error *error)
{
    (void)step, (void)wanted, (void)added;
    return absent(error);
}

size_t sk_cuda_mesher_bytes(const sk_cuda_mesher *mesher)
{
    (void)mesher;
    return 0;
}

struct sk_cuda *sk_cuda_mesher_launches(sk_cuda_mesher *mesher)
{
    (void)mesher;
    return NULL;
}

selkie_code sk_cuda_reserve_blocks(sk_step *step, int blocks, selkie_error *error)
{
    (void)step, (void)blocks, (void)error;
    return SELKIE_OK;
}

size_t sk_cuda_bytes(const sk_step *step)
{
    (void)step;
    return 0;
}

void sk_cuda_start_profile(sk_step *step, enum sk_cuda_timed timed)
{
    (void)step, (void)timed;
}

double sk_cuda_triad(void)
{
    return 0.0;
}

int sk_cuda_profile_entry(const sk_step *step, int n, sk_cuda_time *time)
{
    (void)step, (void)n, (void)time;
    return 0;
}

#endif
