/* Memory of frozen bodies on the device: see frozen_parts.h. */
#include "cuda/frozen_parts.h"

static selkie_code take_array(void *address, size_t bytes, selkie_error *error)
{
    void **at = (void **)address;
    free(*at);
    *at = calloc(1, bytes ? bytes : 1);
    return *at ? SELKIE_OK : sk_fail(error, SELKIE_ERROR_MEMORY, "GPU: no memory for the frozen bodies");
}

static int find_attribute(const sk_step *step, const char *name)
{
    for (int a = 0; a < step->particles.attribute_count; a++)
        if (strcmp(step->particles.attributes[a].name, name) == 0)
            return a;
    return -1;
}

selkie_code sk_cuda_take_frozen(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    if (!cuda->frozen)
        cuda->frozen = (sk_cuda_frozen *)calloc(1, sizeof *cuda->frozen);
    sk_cuda_frozen *own = cuda->frozen;
    if (!own)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "GPU: no memory for the frozen bodies");
    own->liquid_fraction = find_attribute(step, "liquid_fraction");
    own->material = find_attribute(step, "material");
    own->affine = find_attribute(step, "affine");
    own->frozen_at = find_attribute(step, "frozen_at");
    if (own->places)
        return SELKIE_OK;
    const size_t places = (size_t)cuda->shadow.places + 1;
    SK_TRY(take_array(&own->places, places * sizeof *own->places, error));
    return take_array(&own->near, places, error);
}

selkie_code sk_cuda_reserve_frozen(sk_step *step, int blocks, size_t particles, selkie_error *error)
{
    sk_cuda_frozen *own = step->cuda->frozen;
    if (blocks > own->block_room) {
        const size_t room = (size_t)blocks + (size_t)blocks / 4, cells = room * (size_t)step->grid.block_cells;
        own->block_room = 0;
        SK_TRY(take_array(&own->grid.neighbours, room * sizeof *own->grid.neighbours, error));
        SK_TRY(take_array(&own->grid.kinds, cells, error));
        SK_TRY(take_array(&own->grid.cell_start, (cells + 1) * sizeof *own->grid.cell_start, error));
        own->block_room = (int)room;
    }
    if (particles > own->origin_room) {
        const size_t room = particles + particles / 4;
        own->origin_room = 0;
        SK_TRY(take_array(&own->origin, room * sizeof *own->origin, error));
        own->origin_room = room;
    }
    return SELKIE_OK;
}

void sk_cuda_release_frozen(sk_cuda *cuda)
{
    sk_cuda_frozen *own = cuda->frozen;
    if (!own)
        return;
    free(own->places);
    free(own->near);
    free(own->origin);
    free(own->grid.neighbours);
    free(own->grid.kinds);
    free(own->grid.cell_start);
    sk_cuda_unstage(&own->marks);
    sk_cuda_unstage(&own->packed);
    sk_cuda_unstage(&own->members);
    sk_cuda_unstage(&own->faces);
    free(own);
    cuda->frozen = NULL;
}
