/* Memory of splashes on the device: see splash_parts.h. */
#include "cuda/splash_parts.h"

static selkie_code renew(void *address, size_t bytes, selkie_error *error)
{
    void **at = (void **)address;
    if (*at)
        cudaFree(*at);
    *at = NULL;
    SK_CUDA_TRY(cudaMalloc(at, bytes), "splashes", error);
    return SELKIE_OK;
}

/* The layers of a network whose parameters are at an address of the device. */
static sk_cuda_network network_at(const sk_network *network, const float *parameters, int *widest)
{
    sk_cuda_network there;
    memset(&there, 0, sizeof there);
    there.layers = network->def.layer_count;
    there.gelu = network->def.activation == SK_ACTIVATION_GELU;
    memcpy(there.sizes, network->def.sizes, sizeof there.sizes);
    for (int l = 0; l < there.layers; l++) {
        there.weight[l] = parameters + network->layers[l].weight;
        there.bias[l] = parameters + network->layers[l].bias;
        *widest = network->layers[l].outputs > *widest ? network->layers[l].outputs : *widest;
    }
    return there;
}

static selkie_code take_model(sk_cuda *cuda, const sk_splashes *s, sk_cuda_splashes *own, selkie_error *error)
{
    const sk_network *networks[2] = {s->model.classifier, s->model.modifier};
    const size_t counts[2] = {networks[0]->parameter_count, networks[1]->parameter_count};
    sk_cuda_splash_model *model = &own->model;
    SK_CUDA_TRY(cudaMalloc((void **)&own->parameters, (counts[0] + counts[1] + SK_SPLASH_FEATURES) * sizeof(float)),
                "splashes", error);
    float *const at[3] = {own->parameters, own->parameters + counts[0], own->parameters + counts[0] + counts[1]};
    for (int n = 0; n < 2; n++)
        SK_CUDA_TRY(cudaMemcpyAsync(at[n], networks[n]->parameters, counts[n] * sizeof(float), cudaMemcpyHostToDevice,
                                    cuda->stream),
                    "splashes", error);
    SK_CUDA_TRY(cudaMemcpyAsync(at[2], s->model.largest, sizeof s->model.largest, cudaMemcpyHostToDevice, cuda->stream),
                "splashes", error);
    model->classifier = network_at(networks[0], at[0], &model->widest);
    model->modifier = network_at(networks[1], at[1], &model->widest);
    model->largest = at[2];
    model->options = s->options;
    model->cell_count = s->model.cell_count;
    model->normal = s->model.law == SK_SPLASH_NORMAL;
    memcpy(model->spread, s->model.spread, sizeof model->spread);
    model->speed = s->speed;
    model->calm_logit = s->calm_logit;
    return SELKIE_OK;
}

/* The attributes of particles. */
static void find_attributes(const sk_step *step, sk_cuda_splash_arrays *arrays)
{
    arrays->age = arrays->window = arrays->liquid_fraction = -1;
    for (int a = 0; a < step->particles.attribute_count; a++) {
        const sk_attribute *attribute = &step->particles.attributes[a];
        if (strcmp(attribute->name, SK_SPLASH_AGE) == 0) {
            arrays->age = a;
            arrays->age_word = arrays->words;
        }
        if (strcmp(attribute->name, SK_SPLASH_WINDOW) == 0)
            arrays->window = a;
        if (strcmp(attribute->name, "liquid_fraction") == 0)
            arrays->liquid_fraction = a;
        arrays->words += attribute->components;
    }
}

selkie_code sk_cuda_take_splashes(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const sk_splashes *s = (const sk_splashes *)sk_step_state(step, &sk_method_splashes);
    if (cuda->splashes)
        return SELKIE_OK;
    sk_cuda_splashes *own = cuda->splashes = (sk_cuda_splashes *)calloc(1, sizeof *own);
    if (!own)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "GPU: no memory for splashes");
    find_attributes(step, &own->arrays);
    own->arrays.duration = (float)s->model.duration;
    own->arrays.look_ahead = step->scene->splash.look_ahead;
    SK_TRY(take_model(cuda, s, own, error));
    SK_TRY(sk_cuda_stage(&own->counts, sizeof *own->arrays.counts, error));
    own->arrays.counts = (sk_cuda_splash_counts *)(void *)own->counts.there;
    SK_CUDA_TRY(cudaMalloc((void **)&own->arrays.shares, SK_CUDA_SUMS * sizeof *own->arrays.shares), "splashes", error);
    return SELKIE_OK;
}

selkie_code sk_cuda_reserve_apart(sk_step *step, int64_t count, selkie_error *error)
{
    sk_cuda_splashes *own = step->cuda->splashes;
    const size_t room = (size_t)(count + count / 2 + 1024);
    if ((size_t)count <= own->apart_room)
        return SELKIE_OK;
    own->apart_room = 0;
    SK_CUDA_TRY(cudaStreamSynchronize(step->cuda->stream), "splashes", error);
    SK_TRY(renew(&own->arrays.apart, room * sizeof *own->arrays.apart, error));
    SK_TRY(renew(&own->arrays.values, room * (size_t)own->arrays.words * sizeof *own->arrays.values, error));
    own->apart_room = room;
    return SELKIE_OK;
}

selkie_code sk_cuda_reserve_chosen(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_cuda_splashes *own = cuda->splashes;
    const size_t room = cuda->particle_capacity;
    if (room <= own->particle_room)
        return SELKIE_OK;
    own->particle_room = 0;
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "splashes", error);
    SK_TRY(renew(&own->arrays.chosen, room, error));
    SK_TRY(renew(&own->arrays.change, room * sizeof *own->arrays.change, error));
    own->particle_room = room;
    return SELKIE_OK;
}

int sk_cuda_has_droplets(const sk_cuda *cuda)
{
    return cuda->splashes && cuda->splashes->arrays.apart_count > 0;
}

size_t sk_cuda_splash_bytes(const sk_cuda *cuda)
{
    const sk_cuda_splashes *own = cuda->splashes;
    if (!own)
        return 0;
    return own->particle_room * (1 + sizeof *own->arrays.change) +
           own->apart_room * (sizeof *own->arrays.apart + (size_t)own->arrays.words * sizeof *own->arrays.values) +
           own->events.bytes + own->recent.bytes + own->pairs.bytes;
}

void sk_cuda_release_splashes(sk_cuda *cuda)
{
    sk_cuda_splashes *own = cuda->splashes;
    if (!own)
        return;
    void *const all[] = {own->parameters,   own->arrays.chosen, own->arrays.change,
                         own->arrays.apart, own->arrays.values, own->arrays.shares};
    for (size_t n = 0; n < sizeof all / sizeof *all; n++)
        if (all[n])
            cudaFree(all[n]);
    sk_cuda_unstage(&own->events);
    sk_cuda_unstage(&own->recent);
    sk_cuda_unstage(&own->pairs);
    sk_cuda_unstage(&own->counts);
    free(own);
    cuda->splashes = NULL;
}
