/* Memory of bodies of particles on the device: see soft_parts.h. */
#include "cuda/soft_parts.h"

/* The store and the grid of the records of bodies. */
static selkie_code take_store(sk_step *step, sk_cuda_soft *own, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    sk_particles_init(&own->particles, step->memory);
    sk_particles_init(&own->liquid, step->memory);
    if (!sk_particles_add_attribute(&own->particles, "body", 1, 1) ||
        !sk_particles_add_attribute(&own->liquid, "material", 1, 1))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "GPU: no memory for the bodies");
    SK_TRY(sk_particles_reserve(&own->particles, (int64_t)step->soft->point_count + 1, error));
    SK_TRY(sk_grid_init(&own->grid, step->dimension, grid->cells, grid->low, grid->cell_size, step->memory, error));
    return sk_grid_declare(&own->grid, 0, error);
}

/* The parts of sk_soft that kernels read. */
static selkie_code take_points(sk_cuda *cuda, const sk_soft *soft, sk_cuda_soft *own, selkie_error *error)
{
    const size_t points = (size_t)soft->point_count + 1, bodies = (size_t)soft->body_count + 1;
    sk_soft *shadow = &own->shadow;
    *shadow = *soft;
    shadow->points = nullptr; /* what the device does not have yet must not be given back */
    shadow->record = nullptr;
    shadow->surfaces = nullptr;
    shadow->bodies = nullptr;
    shadow->states = nullptr;
    SK_CUDA_TRY(cudaMalloc((void **)&own->there, sizeof *own->there), "the bodies", error);
    SK_CUDA_TRY(cudaMalloc((void **)&shadow->points, points * sizeof *shadow->points), "the bodies", error);
    SK_CUDA_TRY(cudaMalloc((void **)&shadow->record, points * sizeof *shadow->record), "the bodies", error);
    SK_CUDA_TRY(cudaMalloc((void **)&shadow->surfaces, points * sizeof *shadow->surfaces), "the bodies", error);
    SK_CUDA_TRY(cudaMalloc((void **)&shadow->bodies, bodies * sizeof *shadow->bodies), "the bodies", error);
    SK_CUDA_TRY(cudaMalloc((void **)&shadow->states, bodies * sizeof *shadow->states), "the bodies", error);
    SK_CUDA_TRY(cudaMemsetAsync(shadow->points, 0, points * sizeof *shadow->points, cuda->stream), "the bodies", error);
    SK_CUDA_TRY(cudaMemcpyAsync(shadow->surfaces, soft->surfaces, soft->point_count * sizeof *soft->surfaces,
                                cudaMemcpyHostToDevice, cuda->stream),
                "the bodies", error);
    SK_CUDA_TRY(cudaMemcpyAsync(shadow->bodies, soft->bodies, (size_t)soft->body_count * sizeof *soft->bodies,
                                cudaMemcpyHostToDevice, cuda->stream),
                "the bodies", error);
    return SELKIE_OK;
}

selkie_code sk_cuda_take_soft(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    if (cuda->soft || !step->soft)
        return SELKIE_OK;
    sk_cuda_soft *own = cuda->soft = (sk_cuda_soft *)calloc(1, sizeof *own);
    if (!own)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "GPU: no memory for the bodies");
    own->is_stale = 1;
    for (int a = 0; a < step->particles.attribute_count; a++)
        if (strcmp(step->particles.attributes[a].name, "body") == 0)
            own->body = a;
    SK_TRY(take_store(step, own, error));
    SK_TRY(take_points(cuda, step->soft, own, error));
    const size_t points = (size_t)step->soft->point_count + 1, floats = points * 3 * sizeof(float);
    SK_TRY(sk_cuda_stage(&own->values, points * 3 * sizeof(double), error));
    SK_TRY(sk_cuda_stage(&own->changes, floats + (size_t)step->soft->wet_count, error));
    SK_CUDA_TRY(cudaMemsetAsync(own->values.there, 0, own->values.bytes, cuda->stream), "the bodies", error);
    SK_CUDA_TRY(cudaMemsetAsync(own->changes.there, 0, own->changes.bytes, cuda->stream), "the bodies", error);
    return SELKIE_OK;
}

static selkie_code retake(sk_cuda *cuda, void *address, size_t bytes, selkie_error *error)
{
    void **at = (void **)address;
    if (*at)
        cudaFree(*at);
    *at = NULL;
    SK_CUDA_TRY(cudaMalloc(at, bytes), "the bodies", error);
    SK_CUDA_TRY(cudaMemsetAsync(*at, 0, bytes, cuda->stream), "the bodies", error);
    return SELKIE_OK;
}

selkie_code sk_cuda_reserve_soft(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_cuda_soft *own = cuda->soft;
    const size_t blocks = (size_t)cuda->shadow.capacity, cells = blocks * (size_t)step->grid.block_cells;
    sk_cuda_soft_marks *marks = &own->marks;
    const int changed = cuda->particle_capacity > own->from_count;
    if (blocks > own->mark_blocks) {
        SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "the bodies", error);
        SK_TRY(retake(cuda, &marks->crowded, cells, error));
        SK_TRY(retake(cuda, &marks->near, cells, error));
        SK_TRY(retake(cuda, &marks->mixed, cells, error));
        SK_TRY(retake(cuda, &marks->crowded_blocks, blocks, error));
        SK_TRY(retake(cuda, &marks->near_blocks, blocks, error));
        SK_TRY(retake(cuda, &marks->mixed_blocks, blocks, error));
        SK_TRY(retake(cuda, &marks->shared, blocks, error));
        own->mark_blocks = blocks;
    }
    if (cuda->particle_capacity > own->from_count) {
        SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "the bodies", error);
        SK_TRY(retake(cuda, &own->shadow.from, cuda->particle_capacity * sizeof *own->shadow.from, error));
        own->from_count = cuda->particle_capacity;
    }

    if (own->shadow.crowded == marks->crowded && own->shadow.first_id == step->soft->first_id && !changed)
        return SELKIE_OK;

    /* The copy has the addresses and the number of the first particle, and nothing else that changes. */
    own->shadow.first_id = step->soft->first_id;
    own->shadow.crowded = marks->crowded;
    own->shadow.crowded_blocks = marks->crowded_blocks;
    SK_CUDA_TRY(cudaMemcpyAsync(own->there, &own->shadow, sizeof own->shadow, cudaMemcpyHostToDevice, cuda->stream),
                "the bodies", error);
    return SELKIE_OK;
}

void sk_cuda_soft_changed(sk_cuda *cuda)
{
    if (cuda->soft)
        cuda->soft->is_stale = 1;
}

void sk_cuda_point_soft(sk_cuda *cuda)
{
    cuda->sent->step.soft = cuda->soft ? cuda->soft->there : NULL;
}

void sk_cuda_release_soft(sk_cuda *cuda)
{
    sk_cuda_soft *own = cuda->soft;
    if (!own)
        return;
    void *const all[] = {own->there,
                         own->shadow.points,
                         own->shadow.record,
                         own->shadow.surfaces,
                         own->shadow.bodies,
                         own->shadow.states,
                         own->shadow.from,
                         own->marks.crowded,
                         own->marks.near,
                         own->marks.mixed,
                         own->marks.crowded_blocks,
                         own->marks.near_blocks,
                         own->marks.mixed_blocks,
                         own->marks.shared};
    for (size_t n = 0; n < sizeof all / sizeof *all; n++)
        if (all[n])
            cudaFree(all[n]);
    sk_cuda_unstage(&own->found);
    sk_cuda_unstage(&own->values);
    sk_cuda_unstage(&own->changes);
    if (own->particles.memory)
        sk_particles_free(&own->particles);
    if (own->liquid.memory)
        sk_particles_free(&own->liquid);
    if (own->grid.memory)
        sk_grid_free(&own->grid);
    free(own);
    cuda->soft = NULL;
}
