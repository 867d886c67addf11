/* Where surfaces of particles are made: by the CPU, or on the GPU with the same bits. */
#ifndef SK_WORLD_MESHER_H
#define SK_WORLD_MESHER_H

#include <selkie/world.h>
#include "geom/surface.h"

typedef struct sk_cuda_mesher sk_mesher; /* NULL = the CPU */

/* That of a backend: "cuda" needs a device, "auto" takes it where one is here. */
selkie_code sk_mesher_create(selkie_backend backend, sk_mesher **mesher, selkie_error *error);
void sk_mesher_destroy(sk_mesher *mesher);
selkie_code sk_mesher_extract(sk_mesher *mesher, const sk_surface_particles *particles,
                              const sk_surface_options *options, sk_mesh *mesh, selkie_error *error);
/* Values of the particles at the vertices: sk_surface_add_values. */
selkie_code sk_mesher_add_values(sk_mesher *mesher, const sk_surface_particles *particles,
                                 const sk_surface_options *options, int count, const sk_surface_value *values,
                                 sk_mesh *mesh, selkie_error *error);
/* The level set: sk_surface_volume. */
selkie_code sk_mesher_volume(sk_mesher *mesher, const sk_surface_particles *particles,
                             const sk_surface_options *options, int count, const sk_surface_value *values,
                             sk_volume *volume, selkie_error *error);

/* The mesher of a world, which keeps it; that of the CPU unless the world runs on the GPU. */
selkie_code sk_world_mesher(const selkie_world *world, sk_mesher **mesher, selkie_error *error);
/* Are the particles on a device, so that their surface can be made there? */
int sk_world_is_on_device(const selkie_world *world);
selkie_code sk_world_extract(const selkie_world *world, const sk_surface_options *options, sk_mesh *mesh,
                             selkie_error *error);

#endif
