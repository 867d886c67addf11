#include "world/mesher.h"

#include "cuda/cuda.h"
#include "cuda/surface.h"
#include "world/world_internal.h"

selkie_code sk_mesher_create(selkie_backend backend, sk_mesher **mesher, selkie_error *error)
{
    sk_cuda_info info;
    *mesher = NULL;
    if (backend != SELKIE_BACKEND_CUDA && backend != SELKIE_BACKEND_AUTO)
        return SELKIE_OK;
    if (backend == SELKIE_BACKEND_AUTO && sk_cuda_find(&info, NULL) != SELKIE_OK)
        return SELKIE_OK;
    const selkie_code code = sk_cuda_mesher_create(mesher, error);
    if (code) {
        sk_cuda_mesher_destroy(*mesher);
        *mesher = NULL;
    }
    return code;
}

void sk_mesher_destroy(sk_mesher *mesher)
{
    sk_cuda_mesher_destroy(mesher);
}

selkie_code sk_mesher_extract(sk_mesher *mesher, const sk_surface_particles *particles,
                              const sk_surface_options *options, sk_mesh *mesh, selkie_error *error)
{
    if (!mesher)
        return sk_surface_extract(particles, options, mesh, error);
    return sk_cuda_surface_extract(mesher, particles, options, mesh, error);
}

selkie_code sk_mesher_add_values(sk_mesher *mesher, const sk_surface_particles *particles,
                                 const sk_surface_options *options, int count, const sk_surface_value *values,
                                 sk_mesh *mesh, selkie_error *error)
{
    if (!mesher)
        return sk_surface_add_values(particles, options, count, values, mesh, error);
    return sk_cuda_surface_add_values(mesher, particles, options, count, values, mesh, error);
}

selkie_code sk_mesher_volume(sk_mesher *mesher, const sk_surface_particles *particles,
                             const sk_surface_options *options, int count, const sk_surface_value *values,
                             sk_volume *volume, selkie_error *error)
{
    if (!mesher)
        return sk_surface_volume(particles, options, count, values, volume, error);
    return sk_cuda_surface_volume(mesher, particles, options, count, values, volume, error);
}

selkie_code sk_world_mesher(const selkie_world *world, sk_mesher **mesher, selkie_error *error)
{
    selkie_world *own = (selkie_world *)world; /* its state stays as it is */
    if (world->step.cuda && !world->mesher)
        SK_TRY(sk_mesher_create(SELKIE_BACKEND_CUDA, &own->mesher, error));
    *mesher = world->mesher;
    return SELKIE_OK;
}

int sk_world_is_on_device(const selkie_world *world)
{
    return sk_cuda_has_particles(&world->step);
}

selkie_code sk_world_extract(const selkie_world *world, const sk_surface_options *options, sk_mesh *mesh,
                             selkie_error *error)
{
    sk_mesher *mesher;
    SK_TRY(sk_world_mesher(world, &mesher, error));
    return sk_cuda_surface_extract_here(mesher, &world->step, options, mesh, error);
}
