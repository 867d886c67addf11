/* Rigid bodies in viscous liquid: their change by the pressure that balances gravity, and the drag of those with a
 * no-slip surface. The host lists the faces inside them; the device makes these unknowns of its solve and returns what
 * they gain. */
#include "cuda/bodies_parts.h"
#include "cuda/grid_parts.h"

extern "C" {
#include "cuda/phases.h"
#include "methods/balance.h"
#include "methods/viscosity/viscosity_bodies.h"
#include "rigid/rigid.h"
}
#include "methods/viscosity/viscosity_bodies_plain.h"

#include "cuda/stress_parts.h"

/* --- gravity in balance --- */

selkie_code SK_DIM(sk_cuda_hold_bodies)(sk_step *step, double sign, selkie_error *error)
{
    const double(*sums)[SK_POISSON_MODES];
    if (!step->rigid || !step->rigid->body_count)
        return SELKIE_OK;
    if (sign > 0.0) {
        SK_TRY(SK_DIM(sk_cuda_sum_modes)(step, &sums, error));
        SK_DIM(sk_balance_find_held)(step, sums);
    }
    const sk_grid own = use_near_grid(step);
    const selkie_code code = SK_DIM(sk_balance_hold_bodies)(step, sign, error);
    step->grid = own;
    SK_TRY(code);
    return sk_cuda_send_velocities(step, error);
}

selkie_code SK_DIM(sk_cuda_drag)(sk_step *step, selkie_error *error)
{
    const sk_grid own = use_near_grid(step);
    const selkie_code code = SK_DIM(sk_rigid_liquid_drag)(step, error);
    step->grid = own;
    SK_TRY(code);
    return sk_cuda_send_velocities(step, error);
}

/* --- no-slip bodies in the viscous solve --- */

typedef struct face_owners {
    int32_t *of[SELKIE_DIM];
} face_owners;

static __global__ void find_slots(const sk_cuda_data *data, const int32_t *places, int count, int32_t *slots)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(i, count)
    slots[i] = i ? data->slot_of_place[places[i]] : 0;
}

static __global__ void forget_owners(const sk_step *step, const __grid_constant__ face_owners owners)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(i, (size_t)step->grid.block_count * SK_BLOCK_CELLS)
    for (int d = 0; d < SELKIE_DIM; d++)
        owners.of[d][i] = 0;
}

/* Closes faces to the liquid: before its weights are measured. Four cells share a word. */
static __global__ void close_faces(const sk_step *step, const sk_cuda_stress *stress, sk_viscous_body_face *faces,
                                   int count, const __grid_constant__ face_owners owners)
{
    SK_CUDA_WAIT();
    const sk_viscous_fields &f = stress->fields;
    SK_CUDA_EACH(n, count)
    {
        sk_viscous_body_face *face = &faces[n];
        owners.of[face->axis][face->place] = face->body + 1;
        atomicOr((unsigned *)(void *)f.closed + face->place / 4, 1u << face->axis << 8 * (face->place % 4));
        take_body_face(step, &f, step->balance && sk_step_has_pressure(step), face);
    }
}

static __global__ void join_faces(const sk_step *step, const sk_cuda_constants *constants, const sk_cuda_stress *stress,
                                  const sk_viscous_body_face *faces, int count,
                                  const __grid_constant__ face_owners owners)
{
    SK_CUDA_WAIT();
    const sk_viscous_fields &f = stress->fields;
    SK_CUDA_EACH(n, count)
    join_body_face(step, &f, owners.of, constants->viscosity.strength, &faces[n]);
}

static __global__ void leave_faces(const sk_step *step, const sk_cuda_stress *stress, const sk_viscous_body_face *faces,
                                   int count, double *gains)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(n, count)
    gains[n] = leave_body_face(step, &stress->fields, &faces[n]);
}

static face_owners owners_of(const sk_cuda *cuda)
{
    face_owners owners;
    for (int d = 0; d < SELKIE_DIM; d++)
        owners.of[d] = cuda->drag->owner[d];
    return owners;
}

static __global__ void forget_reached(uint32_t *reached, int count)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(i, count)
    reached[i] = 0;
}

static __global__ void mark_reached(const int32_t *slots, const int32_t *has, int count, uint32_t *reached)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(i, count)
    if (has[i] && slots[i])
        reached[slots[i]] = 1;
}

/* Reached blocks before each. One thread block. */
static __global__ void __launch_bounds__(SK_CUDA_ONE)
    count_reached(const sk_step *step, const uint32_t *reached, uint32_t *first)
{
    SK_CUDA_WAIT();
    const int blocks = step->grid.block_count;
    int before = 0;
    for (int from = 0; from <= blocks; from += (int)blockDim.x) {
        const int i = from + (int)threadIdx.x;
        int total;
        const int number = before + sk_cuda_scan(i < blocks ? (int)reached[i] : 0, &total);
        if (i <= blocks)
            first[i] = (uint32_t)number;
        before += total;
    }
}

/* The slots of the blocks near bodies. */
static selkie_code fetch_slots(sk_step *step, const int32_t **slots, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_cuda_staged *staged = &cuda->drag->places;
    const sk_grid *near = &cuda->solids.near;
    const size_t blocks = (size_t)near->block_count, bytes = blocks * sizeof(int32_t);
    SK_TRY(sk_cuda_stage(staged, 3 * bytes, error));
    int32_t *here = (int32_t *)(void *)staged->here, *there = (int32_t *)(void *)staged->there;
    here[0] = 0;
    for (int b = 1; b < near->block_count; b++) {
        const int32_t *at = near->coordinates[b];
        here[b] = at[0] + near->blocks[0] * (at[1] + near->blocks[1] * at[2]);
    }
    SK_CUDA_TRY(cudaMemcpyAsync(there, here, bytes, cudaMemcpyHostToDevice, cuda->stream), "a copy of the bodies",
                error);
    SK_LAUNCH_AFTER(cuda, find_slots, SK_CUDA_WIDE / 8, SK_CUDA_THREADS, cuda->data, there, near->block_count,
                    there + blocks);
    SK_CUDA_TRY(cudaMemcpyAsync(here + blocks, there + blocks, bytes, cudaMemcpyDeviceToHost, cuda->stream),
                "a copy of the bodies", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "a copy of the bodies", error);
    *slots = here + blocks;
    return SELKIE_OK;
}

/* Which blocks bodies reach: an obstacle cuts no faces there. */
static selkie_code send_reached(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const sk_cuda_drag *drag = cuda->drag;
    const sk_grid *near = &cuda->solids.near;
    const size_t blocks = (size_t)near->block_count;
    int32_t *here = (int32_t *)(void *)drag->places.here + 2 * blocks,
            *there = (int32_t *)(void *)drag->places.there + 2 * blocks;
    for (int b = 0; b < near->block_count; b++)
        here[b] = b && step->solids.piece_first[b] != step->solids.piece_first[b + 1];
    SK_CUDA_TRY(cudaMemcpyAsync(there, here, blocks * sizeof *here, cudaMemcpyHostToDevice, cuda->stream),
                "a copy of the bodies", error);
    SK_LAUNCH_SIMPLE(cuda, forget_reached, SK_CUDA_WIDE / 8, SK_CUDA_THREADS, drag->reached, cuda->shadow.capacity);
    SK_LAUNCH_SIMPLE(cuda, mark_reached, SK_CUDA_WIDE / 8, SK_CUDA_THREADS, (const int32_t *)there - blocks,
                     (const int32_t *)there, near->block_count, drag->reached);
    SK_LAUNCH(cuda, count_reached, 1, SK_CUDA_ONE, &cuda->device->step, (const uint32_t *)drag->reached,
              drag->piece_first);
    return SELKIE_OK;
}

/* Drops faces in blocks that the device has not, and numbers the others as it does. */
static void number_faces(sk_viscous_bodies *bodies, const int32_t *slots)
{
    size_t count = 0;
    for (size_t n = 0; n < bodies->count; n++) {
        sk_viscous_body_face face = bodies->faces[n];
        const int32_t slot = slots[face.place / SK_BLOCK_CELLS];
        face.place = (size_t)slot * SK_BLOCK_CELLS + face.place % SK_BLOCK_CELLS;
        if (slot)
            bodies->faces[count++] = face;
    }
    bodies->count = count;
}

selkie_code SK_DIM(sk_cuda_close_bodies)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_cuda_drag *drag = cuda->drag;
    sk_cuda_staged *staged = &drag->faces;
    sk_viscous_bodies bodies;
    const int32_t *slots;
    const sk_grid own = use_near_grid(step);
    const selkie_code code = SK_DIM(sk_viscous_list_bodies)(step, &bodies, error);
    step->grid = own;
    SK_TRY(code);
    drag->count = 0;
    if (!bodies.count && !drag->reached)
        return SELKIE_OK;
    SK_TRY(fetch_slots(step, &slots, error));
    if (drag->reached)
        SK_TRY(send_reached(step, error));
    if (!bodies.count)
        return SELKIE_OK;
    number_faces(&bodies, slots);
    SK_TRY(SK_DIM(sk_viscous_weigh_bodies)(step, &bodies, error));
    const size_t bytes = bodies.count * sizeof *bodies.faces;
    drag->count = bodies.count;
    drag->gains = (bytes + 15) / 16 * 16;
    SK_TRY(sk_cuda_stage(staged, drag->gains + bodies.count * sizeof(double), error));
    if (!bodies.count)
        return SELKIE_OK;
    memcpy(staged->here, bodies.faces, bytes);
    SK_CUDA_TRY(cudaMemcpyAsync(staged->there, staged->here, bytes, cudaMemcpyHostToDevice, cuda->stream),
                "a copy of the bodies", error);
    const face_owners owners = owners_of(cuda);
    SK_LAUNCH_SIMPLE(cuda, forget_owners, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, owners);
    SK_LAUNCH_SIMPLE(cuda, close_faces, SK_CUDA_WIDE / 2, SK_CUDA_THREADS, &cuda->device->step, cuda->stress,
                     (sk_viscous_body_face *)(void *)staged->there, (int)drag->count, owners);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_cuda_join_bodies)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const sk_cuda_drag *drag = cuda->drag;
    (void)error;
    if (drag->count)
        SK_LAUNCH_SIMPLE(cuda, join_faces, SK_CUDA_WIDE / 2, SK_CUDA_THREADS, &cuda->device->step,
                         &cuda->device->constants, cuda->stress,
                         (const sk_viscous_body_face *)(const void *)drag->faces.there, (int)drag->count,
                         owners_of(cuda));
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_cuda_give_drag)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const sk_cuda_drag *drag = cuda->drag;
    const sk_cuda_staged *staged = &drag->faces;
    if (!drag->count)
        return SELKIE_OK;
    SK_LAUNCH_AFTER(cuda, leave_faces, SK_CUDA_WIDE / 2, SK_CUDA_THREADS, &cuda->device->step, cuda->stress,
                    (const sk_viscous_body_face *)(const void *)staged->there, (int)drag->count,
                    (double *)(void *)(staged->there + drag->gains));
    SK_CUDA_TRY(cudaMemcpyAsync(staged->here + drag->gains, staged->there + drag->gains, drag->count * sizeof(double),
                                cudaMemcpyDeviceToHost, cuda->stream),
                "the drag of the bodies", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "the drag of the bodies", error);
    sk_viscous_bodies bodies;
    memset(&bodies, 0, sizeof bodies);
    bodies.faces = (sk_viscous_body_face *)(void *)staged->here;
    bodies.count = drag->count;
    SK_DIM(sk_viscous_drag_bodies)(step, &bodies, (const double *)(const void *)(staged->here + drag->gains));
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_cuda_take_viscous_bodies)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const size_t blocks = (size_t)cuda->shadow.capacity;
    const int among = step->scene->body_count && step->scene->obstacle_count;
    int sticks = 0;
    for (int b = 0; b < step->scene->body_count; b++)
        sticks |= step->scene->bodies[b].surface == SELKIE_WALL_NO_SLIP;
    if (!sticks && !among)
        return SELKIE_OK;
    if (!cuda->drag)
        cuda->drag = (sk_cuda_drag *)calloc(1, sizeof *cuda->drag);
    if (!cuda->drag)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "GPU: no memory for the bodies");
    for (int d = 0; sticks && d < SELKIE_DIM; d++)
        SK_TRY(sk_cuda_take(cuda, &cuda->drag->owner[d], blocks * SK_BLOCK_CELLS * sizeof(int32_t), 0, error));
    if (!among)
        return SELKIE_OK;
    SK_TRY(sk_cuda_take(cuda, &cuda->drag->reached, blocks * sizeof(uint32_t), 1, error));
    return sk_cuda_take(cuda, &cuda->drag->piece_first, (blocks + 1) * sizeof(uint32_t), 1, error);
}
