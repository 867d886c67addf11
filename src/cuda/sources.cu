/* What happens to particles before the sort: forces that depend on their velocity, sources and drains. Of the latter,
 * what methods/sources/sources.c does with the particles that there are. New particles are few; the host makes them and
 * copies them behind the others. */
#include "cuda/device.h"

extern "C" {
#include "methods/particle_forces/particle_forces.h"
#include "methods/sources/sources.h"
}

/* A source or drain as kernels see it. */
typedef struct region {
    sk_cuda_shape shape;
    int dimension;
    double low[3], high[3]; /* m */
    double velocity[3];     /* m/s  of a stream */

    /* of a source that keeps its shape filled */
    int first[3], size[3], per_axis, sub_cells;
    uint32_t *held; /* particles of each sub-cell */
} region;

SK_DEVICE int is_in_bounds(const region *in, const float x[3])
{
    int inside = 1;
    for (int d = 0; d < in->dimension; d++)
        inside &= (double)x[d] >= in->low[d] && (double)x[d] <= in->high[d];
    return inside;
}

SK_DEVICE int is_in_shape(const region *in, const sk_particle *particle)
{
    const double x[3] = {particle->position[0], particle->position[1], particle->position[2]};
    return !(particle->flags & SK_PARTICLE_DEAD) && is_in_bounds(in, particle->position) &&
           sk_parts_distance(in->shape.parts, in->shape.count, x, -1.0, nullptr) < 0.0;
}

/* --- kernels --- */

/* The particles of a thread block: a range, so that their order is that of the blocks. */
SK_DEVICE void range_of_block(const sk_step *step, int64_t *first, int64_t *last)
{
    const int64_t count = step->particles.count, blocks = (int64_t)gridDim.x, b = (int64_t)blockIdx.x;
    *first = count * b / blocks;
    *last = count * (b + 1) / blocks;
}

/* Particles of each thread block inside the region, and all of them. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    count_region(const sk_step *step, const __grid_constant__ region in, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    int64_t first, last;
    int found = 0;
    range_of_block(step, &first, &last);
    for (int64_t p = first + threadIdx.x; p < last; p += blockDim.x)
        found += is_in_shape(&in, &step->particles.records[p]);
    found = sk_cuda_sum(found);
    if (threadIdx.x == 0)
        data->partial[blockIdx.x] = (double)found;
    if (!sk_cuda_is_last(&data->ticket[0]))
        return;
    double all = 0.0;
    for (int i = (int)threadIdx.x; i < (int)gridDim.x; i += (int)blockDim.x)
        all += data->partial[i];
    all = sk_cuda_sum(all);
    if (threadIdx.x == 0)
        data->results.inside = (int64_t)all;
}

/* Removes at most `wanted` of them, every n-th, and adds up their positions. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    drain_region(const sk_step *step, const __grid_constant__ region in, long long wanted, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const int blocks = (int)gridDim.x;
    const long long inside = data->results.inside;
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    int64_t first, last;
    double before = 0.0;
    for (int i = (int)threadIdx.x; i < (int)blockIdx.x; i += (int)blockDim.x)
        before += data->partial[i];
    long long seen = (long long)sk_cuda_sum(before);
    range_of_block(step, &first, &last);
    for (int64_t from = first; from < last; from += blockDim.x) {
        const int64_t p = from + threadIdx.x;
        sk_particle *particle = &step->particles.records[p < last ? p : first];
        const int is = p < last && is_in_shape(&in, particle);
        int total;
        const long long n = seen + sk_cuda_scan(is, &total);
        seen += total;
        if (!is || !(wanted >= inside || (n + 1) * wanted / inside > n * wanted / inside))
            continue;
        particle->flags |= SK_PARTICLE_DEAD;
        sums[3] += 1.0;
        for (int d = 0; d < 3; d++)
            sums[d] += (double)particle->position[d];
    }
    for (int n = 0; n < 4; n++) {
        const double sum = sk_cuda_sum(sums[n]);
        if (threadIdx.x == 0)
            data->partial[(1 + n) * blocks + (int)blockIdx.x] = sum;
    }
    if (!sk_cuda_is_last(&data->ticket[0]))
        return;
    for (int n = 0; n < 4; n++) {
        double sum = 0.0;
        for (int i = (int)threadIdx.x; i < blocks; i += (int)blockDim.x)
            sum += data->partial[(1 + n) * blocks + i];
        sum = sk_cuda_sum(sum);
        if (threadIdx.x == 0 && n < 3)
            data->results.drained.positions[n] += sum;
        if (threadIdx.x == 0 && n == 3)
            data->results.drained.count += (int64_t)sum;
    }
}

/* Particles of each sub-cell. */
static __global__ void survey_region(const sk_step *step, const __grid_constant__ region in)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    SK_CUDA_EACH(p, step->particles.count)
    {
        const sk_particle *particle = &step->particles.records[p];
        size_t cell = 0, stride = 1;
        int sub = 0, sub_stride = 1, inside = !(particle->flags & SK_PARTICLE_DEAD);
        for (int d = 0; inside && d < in.dimension; d++) {
            const double g = ((double)particle->position[d] - grid->low[d]) / grid->cell_size - in.first[d];
            inside = g >= 0.0 && g < in.size[d];
            const int i = inside ? (int)g : 0, s = (int)((g - i) * in.per_axis);
            cell += (size_t)i * stride;
            stride *= (size_t)in.size[d];
            sub += (s < in.per_axis ? s : in.per_axis - 1) * sub_stride;
            sub_stride *= in.per_axis;
        }
        if (inside)
            atomicAdd(&in.held[cell * (size_t)in.sub_cells + (size_t)sub], 1u);
    }
}

static __global__ void drive_region(const sk_step *step, const sk_cuda_constants *constants,
                                    const __grid_constant__ region in)
{
    SK_CUDA_WAIT();
    float *affine = constants->options.kind == SK_TRANSFER_APIC
                        ? (float *)(void *)step->particles.attributes[constants->affine].data
                        : nullptr;
    SK_CUDA_EACH(p, step->particles.count)
    {
        sk_particle *particle = &step->particles.records[p];
        if (!is_in_shape(&in, particle))
            continue;
        particle->flags |= SK_PARTICLE_DRIVEN;
        for (int d = 0; d < in.dimension; d++)
            particle->velocity[d] = (float)in.velocity[d];
        for (int n = 0; affine && n < 9; n++)
            affine[9 * p + n] = 0.0f;
    }
}

static __global__ void keep_region(const sk_step *step, const __grid_constant__ region in)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(p, step->particles.count)
    {
        sk_particle *particle = &step->particles.records[p];
        if (!(particle->flags & SK_PARTICLE_DRIVEN) || particle->flags & SK_PARTICLE_DEAD ||
            !is_in_bounds(&in, particle->position))
            continue;
        particle->flags &= ~(uint32_t)SK_PARTICLE_DRIVEN;
        for (int d = 0; d < in.dimension; d++)
            particle->velocity[d] = (float)in.velocity[d];
    }
}

static __global__ void end_drive(const sk_step *step)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(p, step->particles.count)
    step->particles.records[p].flags &= ~(uint32_t)SK_PARTICLE_DRIVEN;
}

static __global__ void force_particles(const sk_step *step, const sk_cuda_constants *constants,
                                       const __grid_constant__ sk_particle_forces forces)
{
    SK_CUDA_WAIT();
    float *affine = constants->options.kind == SK_TRANSFER_APIC
                        ? (float *)(void *)step->particles.attributes[constants->affine].data
                        : nullptr;
    SK_CUDA_EACH(p, step->particles.count)
    sk_particle_forces_apply(&forces, &step->particles.records[p], affine ? affine + 9 * p : nullptr);
}

/* --- the host's side --- */

static region region_of(const sk_step *step, const sk_source *source)
{
    const sk_sources *sources = step->sources;
    sk_cuda *cuda = step->cuda;
    region in;
    memset(&in, 0, sizeof in);
    in.shape = cuda->solids.source_shapes[source - sources->sources];
    in.dimension = step->dimension;
    in.per_axis = sources->per_axis;
    in.sub_cells = sources->sub_cells;
    memcpy(in.low, source->low, sizeof in.low);
    memcpy(in.high, source->high, sizeof in.high);
    memcpy(in.velocity, source->stream.velocity, sizeof in.velocity);
    memcpy(in.first, source->first, sizeof in.first);
    memcpy(in.size, source->size, sizeof in.size);
    return in;
}

static selkie_code launched(const char *what, selkie_error *error)
{
    SK_CUDA_TRY(cudaGetLastError(), what, error);
    return SELKIE_OK;
}

static selkie_code drain(sk_step *step, const sk_source *source, int64_t wanted, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const region in = region_of(step, source);
    SK_LAUNCH(cuda, count_region, SK_CUDA_SUMS, SK_CUDA_THREADS, &cuda->device->step, in, cuda->data);
    SK_LAUNCH(cuda, drain_region, SK_CUDA_SUMS, SK_CUDA_THREADS, &cuda->device->step, in, (long long)wanted,
              cuda->data);
    return launched("a drain", error);
}

static selkie_code count_inside(sk_step *step, const sk_source *source, int64_t *inside, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const region in = region_of(step, source);
    SK_LAUNCH(cuda, count_region, SK_CUDA_SUMS, SK_CUDA_THREADS, &cuda->device->step, in, cuda->data);
    SK_CUDA_TRY(
        cudaMemcpyAsync(inside, &cuda->data->results.inside, sizeof *inside, cudaMemcpyDeviceToHost, cuda->stream),
        "a source", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "a source", error);
    return launched("a source", error);
}

static selkie_code survey(sk_step *step, sk_source *source, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    region in = region_of(step, source);
    const size_t cells = (size_t)in.size[0] * (size_t)in.size[1] * (size_t)in.size[2];
    const size_t bytes = cells * (size_t)in.sub_cells * sizeof *in.held;
    SK_TRY(sk_cuda_take(cuda, &in.held, bytes, 1, error));
    SK_LAUNCH_SIMPLE(cuda, survey_region, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, in);
    SK_CUDA_TRY(cudaMemcpyAsync(source->held, in.held, bytes, cudaMemcpyDeviceToHost, cuda->stream), "a source", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "a source", error);
    sk_cuda_give(cuda, in.held, bytes);
    return launched("a source", error);
}

static selkie_code drive(sk_step *step, const sk_source *source, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const region in = region_of(step, source);
    SK_TRY(sk_sources_drive(step, source, error)); /* what the stream begins with is on the host still */
    SK_LAUNCH_SIMPLE(cuda, drive_region, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, &cuda->device->constants,
                     in);
    return launched("a source", error);
}

static selkie_code keep_driven(sk_step *step, const sk_source *source, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const region in = region_of(step, source);
    SK_LAUNCH_SIMPLE(cuda, keep_region, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, in);
    return launched("a source", error);
}

static selkie_code end_driving(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    SK_LAUNCH_SIMPLE(cuda, end_drive, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step);
    return launched("a source", error);
}

static const sk_sources_form on_device = {drain, count_inside, survey, drive, keep_driven, end_driving};

/* Copies what the host has appended to its empty store behind the particles of the device. */
static selkie_code send_new(sk_step *step, int64_t before, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_particles *particles = &step->particles;
    const int64_t fresh = particles->count;
    const size_t from = (size_t)cuda->device_count;
    particles->count = before + fresh;
    if (!fresh)
        return SELKIE_OK;
    SK_TRY(sk_cuda_reserve_particles(step, from + (size_t)fresh, error));
    SK_CUDA_TRY(cudaMemcpyAsync(cuda->records[cuda->current] + from, particles->records,
                                (size_t)fresh * sizeof(sk_particle), cudaMemcpyHostToDevice, cuda->stream),
                "new particles", error);
    for (int a = 0; a < particles->attribute_count; a++) {
        const size_t size = (size_t)particles->attributes[a].components;
        SK_CUDA_TRY(cudaMemcpyAsync(cuda->attributes[a][cuda->current] + from * size, particles->attributes[a].data,
                                    (size_t)fresh * size * sizeof(uint32_t), cudaMemcpyHostToDevice, cuda->stream),
                    "new particles", error);
    }
    cuda->device_count += fresh;
    cuda->began = 0; /* the number of particles has changed: the step is sent again */
    return SELKIE_OK;
}

/* Runs a part of the sources with an empty store on the host. */
static selkie_code run_part(sk_step *step,
                            selkie_code (*part)(sk_step *step, const sk_sources_form *form, selkie_error *error),
                            selkie_error *error)
{
    const int64_t before = step->particles.count;
    step->particles.count = 0;
    step->cuda->particles_here = step->cuda->has_keys = 0;
    const selkie_code code = part(step, &on_device, error);
    if (code != SELKIE_OK) {
        step->particles.count = before;
        return code;
    }
    return send_new(step, before, error);
}

selkie_code sk_cuda_particle_forces(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_particle_forces forces;
    if (!sk_particle_forces_of(step, &forces))
        return SELKIE_OK;
    if (step->sources)
        sk_sources_find_running(step); /* the solids of the step depend on it */
    if (!cuda->began)
        SK_TRY(sk_cuda_make_room(step, error));
    SK_TRY(sk_cuda_begin(step, error));
    SK_LAUNCH_SIMPLE(cuda, force_particles, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step,
                     &cuda->device->constants, forces);
    cuda->particles_here = 0;
    return launched("forces on particles", error);
}

selkie_code sk_cuda_sources(sk_step *step, selkie_error *error)
{
    sk_sources_find_running(step); /* the solids of the step depend on it */
    if (!step->cuda->began)
        SK_TRY(sk_cuda_make_room(step, error));
    SK_TRY(sk_cuda_begin(step, error));
    return run_part(step, sk_sources_run_with, error);
}

selkie_code sk_cuda_emit(sk_step *step, selkie_error *error)
{
    return run_part(step, sk_sources_emit_with, error);
}
