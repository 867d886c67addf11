/* Momentum of particles into the surfaces of rigid bodies: see methods/rigid_liquid/contact_dim.c.
 *
 * The thread blocks of a body look through the particles of the places that it reaches and add up their contacts; the
 * last one adds up their sums, in a fixed order, and solves for the common velocity. A second launch gives it to the
 * particles. Bodies that touch each other take turns, in their order. */
#include "cuda/bodies_parts.h"
#include "cuda/solids_parts.h"

#include "methods/rigid_liquid/rigid_liquid_kernels.h"

extern "C" {
#include "rigid/rigid.h"
}

/* Has a particle a contact with a body? `normal` points outwards. */
static __device__ __noinline__ int touches(const sk_step *step, const sk_obstacle *body, const float x[3],
                                           float normal[3])
{
    const double gap = SK_SWEEP_GAP * step->grid.cell_size;
    const double point[3] = {(double)x[0], (double)x[1], SELKIE_DIM == 3 ? (double)x[2] : 0.0};
    double local[3], direction[3], world[3];
    for (int d = 0; d < SELKIE_DIM; d++)
        if (point[d] < body->swept_low[d] - 4.0 * gap || point[d] > body->swept_high[d] + 4.0 * gap)
            return 0;
    sk_pose_to_local(&body->end, point, local);
    if (SK_SWEEP_WITHIN(body, local, 3.0 * gap, direction) > 2.0 * gap)
        return 0;
    sk_pose_rotate(&body->end, direction, world);
    for (int d = 0; d < 3; d++)
        normal[d] = (float)world[d];
    return 1;
}

/* The particles of place number n of those that a body reaches. */
SK_DEVICE void particles_of_place(const sk_step *step, const sk_cuda_data *data, const sk_cuda_contact *contact, int n,
                                  uint32_t *first, uint32_t *last)
{
    const sk_grid *grid = &step->grid;
    const int i = contact->low[0] + n % contact->size[0], j = contact->low[1] + n / contact->size[0] % contact->size[1],
              k = contact->low[2] + n / contact->size[0] / contact->size[1];
    const int block = data->slot_of_place[i + grid->blocks[0] * (j + grid->blocks[1] * k)];
    *first = *last = 0;
    if (block < 1 || block > grid->particle_blocks)
        return;
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    *first = start[0];
    *last = start[SK_BLOCK_CELLS];
}

SK_DEVICE double mass_of(const sk_step *step, const sk_cuda_constants *constants, uint32_t p)
{
    return step->relative_density
               ? step->particle_mass *
                     (double)constants->relative_density[step->particles.attributes[constants->material].data[p] %
                                                         SK_TRANSFER_MATERIALS]
               : step->particle_mass;
}

/* The common velocity from the sums of all parts. By one thread. */
SK_DEVICE void meet(sk_cuda_contact *contact, const double *partial)
{
    double sums[SK_CUDA_CONTACT_SUMS], stiffness[6][6], change[6] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, momentum[6];
    for (int n = 0; n < SK_CUDA_CONTACT_SUMS; n++) {
        sums[n] = 0.0;
        for (int part = 0; part < SK_CUDA_CONTACT_PARTS; part++)
            sums[n] += partial[part * SK_CUDA_CONTACT_SUMS + n];
    }
    contact->found = sums[SK_CUDA_CONTACT_SUMS - 1] > 0.0;
    if (!contact->found)
        return;
    int next = 6;
    for (int i = 0; i < 6; i++)
        for (int j = i; j < 6; j++)
            stiffness[i][j] = stiffness[j][i] = sums[next++];
    sk_body_meet(contact->response, stiffness, sums, change, momentum);
    for (int k = 0; k < SK_BODY_MODES; k++) {
        contact->after[k] = contact->velocity[k] + change[k];
        contact->momentum[k] = momentum[k];
    }
}

/* SK_CUDA_CONTACT_PARTS thread blocks a body. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    sum_contacts(const sk_step *step, const sk_cuda_constants *constants, const sk_cuda_data *data,
                 sk_cuda_contact *contacts, double *partial)
{
    SK_CUDA_WAIT();
    const int number = (int)blockIdx.x / SK_CUDA_CONTACT_PARTS, part = (int)blockIdx.x % SK_CUDA_CONTACT_PARTS;
    sk_cuda_contact *contact = &contacts[number];
    const sk_obstacle *body = &step->solids.obstacles[contact->obstacle];
    const int places = contact->size[0] * contact->size[1] * contact->size[2];
    double sums[SK_CUDA_CONTACT_SUMS], modes[6] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    double *own = partial + (size_t)contact->body * SK_CUDA_CONTACT_PARTS * SK_CUDA_CONTACT_SUMS;
    for (int n = 0; n < SK_CUDA_CONTACT_SUMS; n++)
        sums[n] = 0.0;
    for (int n = part; n < places; n += SK_CUDA_CONTACT_PARTS) {
        uint32_t first, last;
        particles_of_place(step, data, contact, n, &first, &last);
        for (uint32_t p = first + threadIdx.x; p < last; p += blockDim.x) {
            const sk_particle particle = load_particle(&step->particles.records[p]);
            float normal[3];
            if (particle.flags & SK_PARTICLE_DEAD || !touches(step, body, particle.position, normal))
                continue;
            const double into = sk_body_approach(particle.position, particle.velocity, normal, contact->centre,
                                                 contact->velocity, modes);
            if (!(into < 0.0))
                continue;
            const double mass = mass_of(step, constants, p);
            int next = 6;
            for (int i = 0; i < 6; i++) {
                sums[i] += mass * modes[i] * into;
                for (int j = i; j < 6; j++)
                    sums[next++] += mass * modes[i] * modes[j];
            }
            sums[SK_CUDA_CONTACT_SUMS - 1] += 1.0;
        }
    }
    for (int n = 0; n < SK_CUDA_CONTACT_SUMS; n++) {
        const double sum = sk_cuda_sum(sums[n]);
        if (threadIdx.x == 0)
            own[part * SK_CUDA_CONTACT_SUMS + n] = sum;
    }
    if (sk_cuda_is_last_of(&contact->ticket, SK_CUDA_CONTACT_PARTS) && threadIdx.x == 0)
        meet(contact, own);
}

/* The particles take the new velocity along the normal. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    stop_at_bodies(const sk_step *step, const sk_cuda_data *data, const sk_cuda_contact *contacts)
{
    SK_CUDA_WAIT();
    const int number = (int)blockIdx.x / SK_CUDA_CONTACT_PARTS, part = (int)blockIdx.x % SK_CUDA_CONTACT_PARTS;
    const sk_cuda_contact *contact = &contacts[number];
    const sk_obstacle *body = &step->solids.obstacles[contact->obstacle];
    const int places = contact->found ? contact->size[0] * contact->size[1] * contact->size[2] : 0;
    double modes[6] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    for (int n = part; n < places; n += SK_CUDA_CONTACT_PARTS) {
        uint32_t first, last;
        particles_of_place(step, data, contact, n, &first, &last);
        for (uint32_t p = first + threadIdx.x; p < last; p += blockDim.x) {
            sk_particle particle = load_particle(&step->particles.records[p]);
            float normal[3];
            if (particle.flags & SK_PARTICLE_DEAD || !touches(step, body, particle.position, normal) ||
                !(sk_body_approach(particle.position, particle.velocity, normal, contact->centre, contact->velocity,
                                   modes) < 0.0))
                continue;
            const double left =
                sk_body_approach(particle.position, particle.velocity, normal, contact->centre, contact->after, modes);
            for (int d = 0; d < SELKIE_DIM; d++)
                particle.velocity[d] -= (float)(left * modes[d]);
            store_particle(&step->particles.records[p], particle);
        }
    }
}

/* The places whose particles can touch a body, as may_touch of contact_dim.c. */
static void find_places(const sk_step *step, const sk_obstacle *body, sk_cuda_contact *contact)
{
    const sk_grid *grid = &step->grid;
    const double h = grid->cell_size, reach = step->sums.max_speed * step->dt / h + 1.0;
    for (int d = 0; d < 3; d++) {
        contact->low[d] = 0;
        contact->size[d] = 1;
    }
    for (int d = 0; d < SELKIE_DIM; d++) {
        const double first = floor(((body->swept_low[d] - grid->corner[d]) / h - reach) / SK_BLOCK_N),
                     last = floor(((body->swept_high[d] - grid->corner[d]) / h + reach) / SK_BLOCK_N);
        const int low = first > 0.0 ? (int)fmin(first, (double)grid->blocks[d]) : 0,
                  high = last < (double)grid->blocks[d] ? (int)fmax(last, -1.0) : grid->blocks[d] - 1;
        contact->low[d] = low;
        contact->size[d] = high >= low ? high - low + 1 : 0;
    }
}

/* May a particle touch both bodies? */
static int are_close(const sk_step *step, const sk_obstacle *a, const sk_obstacle *b)
{
    const double gap = 8.0 * SK_SWEEP_GAP * step->grid.cell_size;
    int close = 1;
    for (int d = 0; d < SELKIE_DIM; d++)
        close &= a->swept_low[d] - gap < b->swept_high[d] && b->swept_low[d] - gap < a->swept_high[d];
    return close;
}

/* Bodies in turns: each after those before it that it may share particles with. `turn` has room for all bodies. Returns
 * the number of turns. */
static int take_turns(const sk_step *step, int *turn)
{
    const int count = step->rigid->body_count;
    const sk_obstacle *bodies = step->solids.obstacles + step->solids.obstacle_count - step->solids.body_count;
    int turns = 0;
    for (int b = 0; b < count; b++) {
        turn[b] = 0;
        for (int a = 0; a < b; a++)
            if (turn[a] >= turn[b] && are_close(step, &bodies[a], &bodies[b]))
                turn[b] = turn[a] + 1;
        turns = turn[b] + 1 > turns ? turn[b] + 1 : turns;
    }
    return turns;
}

static void fill_contact(const sk_step *step, int b, sk_cuda_contact *contact)
{
    const sk_rigid_liquid *state = (const sk_rigid_liquid *)sk_step_state(step, &sk_method_rigid_liquid);
    memset(contact, 0, sizeof *contact);
    contact->body = b;
    contact->obstacle = step->solids.obstacle_count - step->solids.body_count + b;
    memcpy(contact->centre, step->rigid->states[b].position, sizeof contact->centre);
    SK_DIM(sk_rigid_liquid_body_modes)(&step->rigid->states[b], contact->velocity);
    SK_DIM(sk_rigid_liquid_contact_response)(step, state, b, contact->response);
    find_places(step, &step->solids.obstacles[contact->obstacle], contact);
}

selkie_code SK_DIM(sk_cuda_contacts)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const int count = step->rigid->body_count;
    const size_t bytes = (size_t)count * sizeof(sk_cuda_contact);
    int *turn;
    SK_TRY(sk_cuda_take_bodies(step, error));
    SK_TRY(sk_step_scratch(step, (size_t)count * sizeof *turn, "body_contacts", (void **)&turn, error));
    SK_TRY(sk_cuda_stage(&cuda->bodies->contacts, bytes, error));
    sk_cuda_contact *here = (sk_cuda_contact *)(void *)cuda->bodies->contacts.here,
                    *there = (sk_cuda_contact *)(void *)cuda->bodies->contacts.there;

    /* In the order of the turns. The step on the device is that of the move: its bodies have their new poses. */
    const int turns = take_turns(step, turn);
    int listed = 0;
    for (int t = 0; t < turns; t++)
        for (int b = 0; b < count; b++)
            if (turn[b] == t)
                fill_contact(step, b, &here[listed++]);
    SK_CUDA_TRY(cudaMemcpyAsync(there, here, bytes, cudaMemcpyHostToDevice, cuda->stream), "contacts of bodies", error);
    for (int t = 0, first = 0; t < turns; t++) {
        int own = 0;
        for (int b = 0; b < count; b++)
            own += turn[b] == t;
        SK_LAUNCH_AFTER(cuda, sum_contacts, own * SK_CUDA_CONTACT_PARTS, SK_CUDA_THREADS, &cuda->device->step,
                        &cuda->device->constants, cuda->data, there + first, cuda->bodies->partial);
        SK_LAUNCH_AFTER(cuda, stop_at_bodies, own * SK_CUDA_CONTACT_PARTS, SK_CUDA_THREADS, &cuda->device->step,
                        cuda->data, there + first);
        first += own;
    }
    SK_CUDA_TRY(cudaMemcpyAsync(here, there, bytes, cudaMemcpyDeviceToHost, cuda->stream), "contacts of bodies", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "contacts of bodies", error);
    cuda->particles_here = 0;

    for (int n = 0; n < count; n++)
        if (here[n].found)
            SK_DIM(sk_rigid_liquid_take_contact)
    (&step->rigid->states[here[n].body], step->dt, here[n].after, here[n].momentum);
    return sk_rigid_place(step->rigid, "bodies", error);
}
