/* Velocities to the particles, and their paths: the plain forms of to_particles and advect, a thread a particle. */
#include "cuda/device.h"

#include "methods/flip/advect_frame.h"
#include "methods/flip/transfer_options.h"

extern "C" {
#include "cuda/phases.h"
}
#include "cuda/grid_parts.h"

/* The new velocity of a particle, and its matrix for APIC. Returns the squared speed. */
SK_DEVICE float give_velocity(const sk_step *step, const sk_cuda_constants *constants, const sk_cuda_data *data,
                              const sk_plain_frame *frame, sk_particle *particle, float *affine)
{
    const sk_grid *grid = &step->grid;
    const sk_transfer_options *options = &constants->options;
    float fraction[3] = {0.0f, 0.0f, 0.0f}, speed2 = 0.0f;
    int at[3];
    const sk_plain_cell cell = cell_of_particle(grid, data, frame, particle->position, at);
    sk_plain_fractions(frame, particle->position, at, fraction);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const node_span span = span_of(d, fraction);
        const float *velocity = grid->fields[step->end_velocity + d], *change = grid->fields[SK_FIELD_CHANGE_X + d];
        float nodes[SK_CORNERS], sum = 0.0f;
        for (int n = 0; n < SK_CORNERS; n++) {
            const size_t node = node_of_span(grid, cell, d, &span, n);
            nodes[n] = options->kind == SK_TRANSFER_FLIP
                           ? sk_flip_mix(velocity[node], change[node], options->flip_ratio)
                           : sk_known_or_zero(velocity[node]);
            sum += corner_weight(span.weights, n) * nodes[n];
        }
        const float kept = options->kind == SK_TRANSFER_FLIP ? options->flip_ratio * particle->velocity[d] : 0.0f;
        particle->velocity[d] = kept + sum;
        speed2 += particle->velocity[d] * particle->velocity[d];
        if (!affine)
            continue;

        /* The gradient: slopes of -1 and 1 along one axis. */
        for (int axis = 0; axis < SELKIE_DIM; axis++) {
            float along[3][2], gradient = 0.0f;
            for (int e = 0; e < SELKIE_DIM; e++)
                for (int i = 0; i < 2; i++)
                    along[e][i] = e == axis ? (i ? 1.0f : -1.0f) : span.weights[e][i];
            for (int n = 0; n < SK_CORNERS; n++)
                gradient += corner_weight(along, n) * nodes[n];
            affine[3 * d + axis] = gradient * frame->inverse;
        }
    }
    return speed2;
}

static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    move(const sk_step *step, const sk_cuda_constants *constants, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_plain_frame frame = frame_of_grid(&step->grid);
    const sk_advection *a = &constants->advection;
    float *affine = affine_of(step, constants);
    double kinetic = 0.0, fastest = 0.0, position[3] = {0.0, 0.0, 0.0}, bad = 0.0, left = 0.0;
    SK_CUDA_EACH(p, step->particles.count)
    {
        sk_particle particle = step->particles.records[p];
        const float speed2 = give_velocity(step, constants, data, &frame, &particle, affine ? affine + 9 * p : nullptr);
        fastest = (double)speed2 > fastest ? (double)speed2 : fastest;
        kinetic += 0.5 * (double)speed2;
        bad += !(speed2 < 1e30f);

        sk_traveller traveller = {{0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f}, (particle.flags & SK_PARTICLE_FLYING) != 0};
        for (int d = 0; d < SELKIE_DIM; d++) {
            traveller.x[d] = particle.position[d];
            traveller.own[d] = particle.velocity[d];
        }
        const int gone = sk_travel(a, &traveller, nullptr, nullptr);
        for (int d = 0; d < SELKIE_DIM; d++) {
            particle.position[d] = traveller.x[d];
            position[d] += gone ? 0.0 : (double)traveller.x[d];
        }
        particle.flags |= gone ? (uint32_t)SK_PARTICLE_DEAD : 0;
        left += gone;
        step->particles.records[p] = particle;
    }

    /* Sums in a fixed order. */
    const int count = (int)gridDim.x;
    const double sums[6] = {sk_cuda_sum(kinetic),     sk_cuda_sum(position[0]), sk_cuda_sum(position[1]),
                            sk_cuda_sum(position[2]), sk_cuda_sum(bad),         sk_cuda_sum(left)};
    const double most = sk_cuda_largest(fastest);
    if (threadIdx.x == 0) {
        for (int n = 0; n < 6; n++)
            data->partial[n * count + (int)blockIdx.x] = sums[n];
        data->partial[6 * count + (int)blockIdx.x] = most;
    }
    if (!sk_cuda_is_last(&data->ticket[0]))
        return;
    double total[6], largest = 0.0;
    for (int n = 0; n < 6; n++)
        total[n] = sum_of_partials(data->partial + n * count, count);
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        largest = fmax(largest, data->partial[6 * count + i]);
    largest = sk_cuda_largest(largest);
    if (threadIdx.x == 0) {
        data->results.kinetic = total[0];
        for (int d = 0; d < 3; d++)
            data->results.positions[d] = total[1 + d];
        data->results.bad = (int64_t)total[4];
        data->results.gone = (int64_t)total[5];
        data->results.fastest2 = largest;
    }
}

static void launch_move(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_LAUNCH(cuda, move, SK_CUDA_SUMS * 2, SK_CUDA_THREADS, &cuda->device->step, &cuda->device->constants, cuda->data);
}

selkie_code SK_DIM(sk_cuda_move)(sk_step *step, selkie_error *error)
{
    SK_TRY(sk_cuda_run(step, "move", launch_move, error));
    sk_particles_moved(&step->particles);
    step->cuda->particles_here = 0;
    return sk_cuda_finish_step(step, error);
}

void SK_DIM(sk_cuda_fill_constants)(const sk_step *step, sk_cuda_sent *sent)
{
    sk_cuda_constants *constants = &sent->constants;
    const sk_cuda *cuda = step->cuda;
    for (int d = 0; d < 3; d++)
        constants->gain[d] = flip_gravity_gain(step, d);
    constants->options = flip_transfer_options(step);
    constants->affine = 0;
    for (int a = 0; a < step->particles.attribute_count; a++)
        if (strcmp(step->particles.attributes[a].name, "affine") == 0)
            constants->affine = a;

    /* The advection samples the device's fields, through the table of places. */
    const advect_frame frame = frame_of(step);
    constants->advection = advection_of(&frame);
    for (int d = 0; d < 3; d++) {
        constants->advection.velocity.component[d] = sent->step.grid.fields[SK_FIELD_VELOCITY_X + d];
        constants->advection.end.component[d] = sent->step.grid.fields[step->end_velocity + d];
    }
    constants->advection.velocity.slots = constants->advection.end.slots = cuda->shadow.slot_of_place;

    /* Displacements of the density correction. */
    constants->displacement.first = SK_FIELD_VELOCITY_X;
    sk_solids_bounds(&step->solids, &step->grid, constants->displacement.low, constants->displacement.high);
}
