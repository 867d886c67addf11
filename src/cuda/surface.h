/* Surfaces of particles on the GPU. No type of CUDA leaves src/cuda. */
#ifndef SK_CUDA_SURFACE_H
#define SK_CUDA_SURFACE_H

#include "geom/surface.h"
#include "methods/step.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Surfaces of particles on the device: the bits of sk_surface_extract (geom/surface.h). A mesher keeps its memory for
 * the next frame. It serves one thread at a time, and works beside the steps of a world. */
typedef struct sk_cuda_mesher sk_cuda_mesher;
/* `mesher` must be destroyed in any case; NULL is fine there. */
selkie_code sk_cuda_mesher_create(sk_cuda_mesher **mesher, selkie_error *error);
void sk_cuda_mesher_destroy(sk_cuda_mesher *mesher);
selkie_code sk_cuda_surface_extract(sk_cuda_mesher *mesher, const sk_surface_particles *particles,
                                    const sk_surface_options *options, sk_mesh *mesh, selkie_error *error);
/* Values at the vertices of such a mesh: the bits of sk_surface_add_values. */
selkie_code sk_cuda_surface_add_values(sk_cuda_mesher *mesher, const sk_surface_particles *particles,
                                       const sk_surface_options *options, int count, const sk_surface_value *values,
                                       sk_mesh *mesh, selkie_error *error);
/* The level set with means of values: the bits of sk_surface_volume. */
selkie_code sk_cuda_surface_volume(sk_cuda_mesher *mesher, const sk_surface_particles *particles,
                                   const sk_surface_options *options, int count, const sk_surface_value *values,
                                   sk_volume *volume, selkie_error *error);
/* The surface of the particles that a world has on the device, if it has them there. */
int sk_cuda_has_particles(const sk_step *step);
selkie_code sk_cuda_surface_extract_here(sk_cuda_mesher *mesher, const sk_step *step, const sk_surface_options *options,
                                         sk_mesh *mesh, selkie_error *error);
/* Bytes that it has taken on the device, and what times its kernels: sk_cuda_start_profile with a step of it. */
size_t sk_cuda_mesher_bytes(const sk_cuda_mesher *mesher);
struct sk_cuda *sk_cuda_mesher_launches(sk_cuda_mesher *mesher);

#ifdef __cplusplus
}
#endif

#endif
