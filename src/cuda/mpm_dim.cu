/* The material point method on the GPU: the functions of its plain form, a thread a point or a node.
 *
 * A kernel computes what each point gives: its stress is costly, and 27 nodes read it. Then each node of a block's tile
 * adds up the points that reach it, in the order of the plain form: cells of the block, points of a cell. The nodes of
 * the grid add up the tiles that hold them, in the order of the blocks. The laws take logarithms and exponentials of
 * the device, which differ from the host's in the last bit.
 */
#include "cuda/device.h"

#include "methods/elastoplastic/mpm_plain.h"
#include "methods/elastoplastic/point_move_plain.h"

extern "C" {
#include "cuda/phases.h"
#include "defs/structs.h"
#include "methods/elastoplastic/mpm.h"
#include "methods/force_fields.h"
}
#include "cuda/grid_parts.h"
#include "cuda/solids_parts.h"
#include "cuda/immersed_parts.h"
#include "cuda/sort_parts.h"

/* Beside liquids the particles are points and liquid: kernels with IMMERSED pass the liquid over. */

/* What a point gives, in few loads. */
typedef union stored_gift {
    sk_mpm_gift gift;
    float4 parts[(sizeof(sk_mpm_gift) + sizeof(float4) - 1) / sizeof(float4)];
} stored_gift;
enum { GIFT_PARTS = sizeof(stored_gift) / sizeof(float4) };

SK_DEVICE sk_mpm_points points_of(const sk_step *step, const sk_cuda_mpm *mpm)
{
    sk_mpm_points points;
    const sk_attribute *attributes = step->particles.attributes;
    float *own[SK_MPM_OWN];
    for (int n = 0; n < SK_MPM_OWN; n++)
        own[n] = (float *)(void *)attributes[mpm->attributes[n]].data;
    points.records = step->particles.records;
    points.material = mpm->material >= 0 ? attributes[mpm->material].data : nullptr;
    points.order = nullptr;
    points.now.deformation = own[0], points.now.affine = own[1];
    points.now.plastic_strain = own[2], points.now.plastic_volume = own[3], points.now.stress = own[4];
    points.next = points.now;
    return points;
}

/* --- to_grid --- */

/* What each point gives, and the sums of the laws. */
template <bool IMMERSED>
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    make_gifts(const sk_step *step, const sk_cuda_constants *constants, sk_cuda_data *data,
               const __grid_constant__ immersed_frame in)
{
    SK_CUDA_WAIT();
    const sk_cuda_mpm *mpm = &constants->mpm;
    sk_mpm_law_sums sums = {0.0, 0.0, 0.0f};
    sk_mpm_giving giving;
    giving.grid = &step->grid;
    giving.mpm = nullptr;
    giving.materials = (const sk_elastic_material *)data->mpm_materials;
    giving.points = points_of(step, mpm);
    giving.dt = mpm->dt, giving.kick = mpm->kick, giving.cell_size = (float)step->grid.cell_size;
    giving.sums = nullptr;
    if (IMMERSED)
        giving.points.material = in.law;
    SK_CUDA_EACH(p, step->particles.count)
    {
        if (IMMERSED && !immersed_is_point(&in, p))
            continue;
        if (IMMERSED)
            in.law[p] = immersed_law_of(&in, p);
        stored_gift own;
        stored_gift *to = (stored_gift *)data->mpm_gifts + p;
        sk_mpm_make_gift(&giving, (uint32_t)p, &sums, &own.gift);
#pragma unroll
        for (int n = 0; n < GIFT_PARTS; n++)
            to->parts[n] = own.parts[n];
    }

    double total[2] = {sums.energy, sums.work}, most = (double)sums.wave_speed;
    if (sum_over_launch(data, total, &most) && threadIdx.x == 0) {
        data->results.elastic_energy = total[0];
        data->results.plastic_work = total[1];
        data->results.wave_speed = most;
    }
}

/* The nodes of the tiles: a block and a halo of one. */
template <bool IMMERSED>
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    fill_tiles(const sk_step *step, sk_cuda_data *data, const __grid_constant__ immersed_frame in)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const stored_gift *gifts = (const stored_gift *)data->mpm_gifts;
    SK_CUDA_EACH(i, (size_t)grid->particle_blocks * SK_MPM_TILE)
    {
        const int block = 1 + (int)(i / SK_MPM_TILE), t = (int)(i % SK_MPM_TILE);
        const int at[3] = {t % SK_MPM_TILE_N, t / SK_MPM_TILE_N % SK_MPM_TILE_N, t / SK_MPM_TILE_N / SK_MPM_TILE_N};
        int first[3] = {0, 0, 0}, last[3] = {0, 0, 0}; /* cells whose points reach the node */
        for (int d = 0; d < SELKIE_DIM; d++) {
            first[d] = at[d] < 2 ? 0 : at[d] - 2;
            last[d] = at[d] < SK_BLOCK_N ? at[d] : SK_BLOCK_N - 1;
        }
        float node[4] = {0.0f, 0.0f, 0.0f, 0.0f}, centre[3];
        const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
        for (int z = first[2]; z <= last[2]; z++)
            for (int y = first[1]; y <= last[1]; y++)
                for (int x = first[0]; x <= last[0]; x++) {
                    const int cell = x + SK_BLOCK_N * (y + SK_BLOCK_N * z);
                    const int reached[3] = {at[0] - x, at[1] - y, at[2] - z};
                    sk_mpm_centre(grid, block, cell, centre);
                    for (uint32_t p = start[cell]; p < start[cell + 1]; p++) {
                        const float4 place = *(const float4 *)(const void *)&step->particles.records[p];
                        const float position[3] = {place.x, place.y, place.z};
                        stored_gift own;
                        if (IMMERSED && !immersed_is_point(&in, p))
                            continue;
#pragma unroll
                        for (int part = 0; part < GIFT_PARTS; part++)
                            own.parts[part] = gifts[p].parts[part];
                        sk_mpm_give_node(grid, &own.gift, centre, position, reached, node);
                    }
                }
        float4 value;
        value.x = node[0], value.y = node[1], value.z = node[2], value.w = node[3];
        ((float4 *)data->mpm_tiles)[i] = value;
    }
}

static void launch_to_grid(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const immersed_frame none = {};
    (void)host;
    SK_LAUNCH(cuda, make_gifts<false>, SK_CUDA_SUMS, SK_CUDA_THREADS, step, &cuda->device->constants, cuda->data, none);
    SK_LAUNCH_SIMPLE(cuda, fill_tiles<false>, SK_CUDA_WIDE * 4, SK_CUDA_THREADS, step, cuda->data, none);
}

selkie_code SK_DIM(sk_cuda_mpm_to_grid)(sk_step *step, selkie_error *error)
{
    return sk_cuda_run(step, "mpm_to_grid", launch_to_grid, error);
}

/* --- nodes --- */

/* Sum of the tiles that hold a node. */
SK_DEVICE void add_tiles(const sk_grid *grid, const float4 *tiles, sk_plain_cell cell, float node[4])
{
    node[0] = node[1] = node[2] = node[3] = 0.0f;
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        const int side[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
        int inside = 1, at = 0, pitch = 1;
        for (int d = 0; d < SELKIE_DIM; d++) {
            const int along = sk_plain_along(cell.local, d) + 1 - side[d] * SK_BLOCK_N; /* in the tile of the other */
            inside &= along >= 0 && along < SK_MPM_TILE_N;
            at += along * pitch;
            pitch *= SK_MPM_TILE_N;
        }
        const int slot = inside ? grid->neighbours[cell.slot][n] : 0;
        if (slot < 1 || slot > grid->particle_blocks)
            continue;
        const float4 value = tiles[(size_t)(slot - 1) * SK_MPM_TILE + (size_t)at];
        node[0] += value.x, node[1] += value.y, node[2] += value.z, node[3] += value.w;
    }
}

/* The obstacle that a node lies in: touch_obstacle of mpm_nodes_dim.c. */
SK_DEVICE void touch_obstacle(const sk_step *step, const float *friction, const int at[3], float velocity[4])
{
    const sk_solids *solids = &step->solids;
    double x[3] = {0.0, 0.0, 0.0}, normal[3], moves[3];
    int o;
    for (int d = 0; d < SELKIE_DIM; d++)
        x[d] = step->grid.corner[d] + (at[d] + 0.5) * step->grid.cell_size;
    if (!(distance_once(solids, x, normal, &o) < 0.0) || o < 0)
        return;
    velocity_of_solids(solids, o, x, moves);
    sk_solid_contact contact = {
        {0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f}, friction[o], solids->obstacles[o].surface == SELKIE_WALL_NO_SLIP};
    for (int d = 0; d < SELKIE_DIM; d++) {
        contact.normal[d] = (float)normal[d];
        contact.velocity[d] = (float)moves[d];
    }
    sk_solid_touch(&contact, SELKIE_DIM, velocity);
}

/* Beside liquids force fields act on the mixture, and the classification measures the volume. */
template <bool AMONG_OBSTACLES, bool IMMERSED>
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    find_velocities(const sk_step *step, const sk_cuda_constants *constants, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const float full = (float)step->particles_per_cell;
    double volume = 0.0;
    SK_CUDA_EACH_CELL(cell, step)
    {
        float node[4];
        int at[3];
        add_tiles(grid, (const float4 *)data->mpm_tiles, cell, node);
        if (node[3] > 0.0f) {
            volume += node[3] < full ? node[3] : full;
            sk_plain_coordinates(grid, cell, at);
            sk_mpm_node_velocity(grid, constants->mpm.gain, constants->forces, IMMERSED ? 0 : constants->force_count,
                                 at, node);
            if (AMONG_OBSTACLES && step->solids.block_slot[cell.slot] > 0 &&
                step->solids.distance[sk_plain_solid_index(&step->solids, cell)] < 0.0f)
                touch_obstacle(step, data->mpm_friction, at, node);
        }
        float4 value;
        value.x = node[0], value.y = node[1], value.z = node[2], value.w = node[3];
        ((float4 *)data->mpm_nodes)[sk_plain_index(cell)] = value;
    }
    double total[1] = {volume};
    if (IMMERSED)
        return;
    if (sum_over_launch(data, total, nullptr) && threadIdx.x == 0)
        data->results.kernel_volume = data->results.counted_volume = data->results.surface_volume =
            total[0] / (double)full;
}

static __global__ void touch_sides(const sk_step *step, sk_cuda_data *data, int side)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH_CELL(cell, step)
    sk_mpm_touch_side(&step->grid, &step->solids, side, cell, data->mpm_nodes);
}

/* What obstacles do to the velocities of the nodes once more. */
static __global__ void touch_obstacles(const sk_step *step, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH_CELL(cell, step)
    {
        float *node = data->mpm_nodes[sk_plain_index(cell)];
        int at[3];
        sk_plain_coordinates(&step->grid, cell, at);
        if (node[3] > 0.0f && step->solids.block_slot[cell.slot] > 0 &&
            step->solids.distance[sk_plain_solid_index(&step->solids, cell)] < 0.0f)
            touch_obstacle(step, data->mpm_friction, at, node);
    }
}

static void launch_sides(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    /* Sides take their turn, so that nodes in corners have one order. */
    for (int side = 0; side < 2 * SELKIE_DIM; side++)
        if (host->solids.walls[side] != SELKIE_WALL_OPEN)
            SK_LAUNCH_SIMPLE(cuda, touch_sides, SK_CUDA_WIDE, SK_CUDA_THREADS, step, cuda->data, side);
}

static void launch_nodes(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_constants *constants = &cuda->device->constants;
    if (host->solids.obstacle_count)
        SK_LAUNCH(cuda, (find_velocities<true, false>), SK_CUDA_SUMS, SK_CUDA_THREADS, step, constants, cuda->data);
    else
        SK_LAUNCH(cuda, (find_velocities<false, false>), SK_CUDA_SUMS, SK_CUDA_THREADS, step, constants, cuda->data);
    launch_sides(cuda, host);
}

void SK_DIM(sk_cuda_launch_immersed)(sk_cuda *cuda, const sk_step *host, const immersed_frame *in)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_constants *constants = &cuda->device->constants;
    SK_LAUNCH(cuda, make_gifts<true>, SK_CUDA_SUMS, SK_CUDA_THREADS, step, constants, cuda->data, *in);
    SK_LAUNCH_SIMPLE(cuda, fill_tiles<true>, SK_CUDA_WIDE * 4, SK_CUDA_THREADS, step, cuda->data, *in);
    if (host->solids.obstacle_count)
        SK_LAUNCH(cuda, (find_velocities<true, true>), SK_CUDA_SUMS, SK_CUDA_THREADS, step, constants, cuda->data);
    else
        SK_LAUNCH(cuda, (find_velocities<false, true>), SK_CUDA_SUMS, SK_CUDA_THREADS, step, constants, cuda->data);
    launch_sides(cuda, host);
}

void SK_DIM(sk_cuda_launch_touch)(sk_cuda *cuda, const sk_step *host)
{
    if (host->solids.obstacle_count)
        SK_LAUNCH_SIMPLE(cuda, touch_obstacles, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, cuda->data);
    launch_sides(cuda, host);
}

selkie_code SK_DIM(sk_cuda_mpm_nodes)(sk_step *step, selkie_error *error)
{
    return sk_cuda_run(step, "mpm_nodes", launch_nodes, error);
}

/* --- to_points --- */

template <bool AMONG_OBSTACLES>
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    take_points(const sk_step *step, const sk_cuda_constants *constants, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const sk_plain_frame frame = frame_of_grid(grid);
    const sk_mpm_points points = points_of(step, &constants->mpm);
    const sorted_grid sorted = grid_to_sort(grid);
    const float dt = (float)step->dt, per_cell = (float)(1.0 / grid->cell_size);
    sk_point_move_sums sums = {{0.0, 0.0, 0.0}, 0.0, 0.0, 0, 0};
    SK_CUDA_EACH(p, step->particles.count)
    {
        sk_particle *point = &points.records[p];
        const float from[3] = {point->position[0], point->position[1], point->position[2]};
        int at[3];
        const sk_plain_cell cell = cell_of_particle(grid, data, &frame, from, at);
        sk_mpm_take_point(grid, (const float(*)[4])data->mpm_nodes, &points, (uint32_t)p, cell, dt, per_cell);
        sk_advance_point(grid, constants->displacement.low, constants->displacement.high, dt, point);
        if (AMONG_OBSTACLES && !(point->flags & SK_PARTICLE_DEAD))
            sweep_moved(step, constants, data, constants->displacement.low, constants->displacement.high, from, point);
        sk_add_moved_point(point, &sums);
        mark_place(&sorted, data, (uint32_t)p, point->position, (point->flags & SK_PARTICLE_DEAD) != 0);
    }

    /* Sums in a fixed order. */
    double total[6] = {sums.kinetic,     sums.position[0], sums.position[1],
                       sums.position[2], (double)sums.bad, (double)sums.gone};
    double largest = sums.fastest2;
    if (sum_over_launch(data, total, &largest) && threadIdx.x == 0) {
        data->results.kinetic = total[0];
        for (int d = 0; d < 3; d++)
            data->results.positions[d] = total[1 + d];
        data->results.bad = (int64_t)total[4];
        data->results.gone = (int64_t)total[5];
        data->results.fastest2 = largest;
    }
}

/* Velocities and attributes of the points alone: the move of the liquid moves them straight. */
template <bool AMONG_OBSTACLES>
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    take_immersed(const sk_step *step, const sk_cuda_constants *constants, sk_cuda_data *data,
                  const __grid_constant__ immersed_frame in)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const sk_plain_frame frame = frame_of_grid(grid);
    const sk_mpm_points points = points_of(step, &constants->mpm);
    const float dt = (float)step->dt, per_cell = (float)(1.0 / grid->cell_size);
    SK_CUDA_EACH(p, step->particles.count)
    {
        sk_particle *point = &points.records[p];
        if (!immersed_is_point(&in, p))
            continue;
        int at[3];
        const sk_plain_cell cell = cell_of_particle(grid, data, &frame, point->position, at);
        sk_mpm_take_point(grid, (const float(*)[4])data->mpm_nodes, &points, (uint32_t)p, cell, dt, per_cell);
        sk_particle moved = *point; /* what its move makes of the velocity */
        sk_advance_point(grid, constants->displacement.low, constants->displacement.high, dt, &moved);
        if (AMONG_OBSTACLES && !(moved.flags & SK_PARTICLE_DEAD))
            sweep_moved(step, constants, data, constants->displacement.low, constants->displacement.high,
                        point->position, &moved);
        for (int d = 0; d < SELKIE_DIM; d++)
            point->velocity[d] = moved.velocity[d];
        point->flags |= SK_PARTICLE_FLYING;
    }
}

void SK_DIM(sk_cuda_launch_take_immersed)(sk_cuda *cuda, const sk_step *host, const immersed_frame *in)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_constants *constants = &cuda->device->constants;
    if (host->solids.obstacle_count)
        SK_LAUNCH(cuda, take_immersed<true>, SK_CUDA_SUMS * 2, SK_CUDA_THREADS, step, constants, cuda->data, *in);
    else
        SK_LAUNCH(cuda, take_immersed<false>, SK_CUDA_SUMS * 2, SK_CUDA_THREADS, step, constants, cuda->data, *in);
}

static void launch_to_points(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_constants *constants = &cuda->device->constants;
    if (host->solids.obstacle_count)
        SK_LAUNCH(cuda, take_points<true>, SK_CUDA_SUMS * 2, SK_CUDA_THREADS, step, constants, cuda->data);
    else
        SK_LAUNCH(cuda, take_points<false>, SK_CUDA_SUMS * 2, SK_CUDA_THREADS, step, constants, cuda->data);
}

selkie_code SK_DIM(sk_cuda_mpm_to_points)(sk_step *step, selkie_error *error)
{
    SK_TRY(sk_cuda_run(step, "mpm_to_points", launch_to_points, error));
    sk_particles_moved(&step->particles);
    step->cuda->particles_here = 0;
    step->cuda->has_keys = 1;
    SK_TRY(sk_cuda_finish_step(step, error));
    SK_DIM(sk_cuda_take_laws)(step);
    return SELKIE_OK;
}

void SK_DIM(sk_cuda_take_laws)(sk_step *step)
{
    sk_mpm_saved *saved = &sk_mpm_of(step)->saved;
    const sk_cuda_results *results = step->cuda->results;
    const double volume = pow(step->grid.cell_size, SELKIE_DIM) / step->particles_per_cell;
    saved->elastic_energy = volume * results->elastic_energy;
    saved->plastic_work += volume * results->plastic_work;
    saved->wave_speed = results->wave_speed;
}

/* --- memory and constants --- */

selkie_code SK_DIM(sk_cuda_take_mpm)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const sk_mpm *mpm = sk_mpm_of(step);
    const size_t laws = (size_t)(mpm->material_count * mpm->levels) * sizeof(sk_elastic_material);
    const size_t blocks = (size_t)cuda->shadow.capacity;
    SK_TRY(sk_cuda_take(cuda, &cuda->shadow.mpm_materials, laws, 0, error));
    SK_CUDA_TRY(cudaMemcpyAsync(cuda->shadow.mpm_materials, mpm->materials, laws, cudaMemcpyHostToDevice, cuda->stream),
                "the materials", error);
    SK_TRY(
        sk_cuda_take(cuda, &cuda->shadow.mpm_friction, (size_t)step->solids.obstacle_count * sizeof(float), 0, error));
    for (int o = 0; o < step->solids.obstacle_count; o++) {
        const sk_obstacle *obstacle = &step->solids.obstacles[o];
        const float friction = obstacle->def ? (float)obstacle->def->liquid_friction : 0.0f;
        SK_CUDA_TRY(cudaMemcpyAsync(cuda->shadow.mpm_friction + o, &friction, sizeof friction, cudaMemcpyHostToDevice,
                                    cuda->stream),
                    "the obstacles", error);
    }
    SK_TRY(sk_cuda_take(cuda, &cuda->shadow.mpm_gifts, cuda->particle_capacity * sizeof(stored_gift), 0, error));
    if (sk_scene_has_immersed_points(step->scene)) {
        SK_TRY(sk_cuda_take(cuda, &cuda->immersed.laws, cuda->particle_capacity * sizeof(uint32_t), 0, error));
        SK_TRY(sk_cuda_take(cuda, &cuda->immersed.grains, blocks * SK_BLOCK_CELLS * sizeof(float), 1, error));
        SK_TRY(sk_cuda_take(cuda, &cuda->immersed.blocks, blocks, 1, error));
        SK_TRY(sk_cuda_take(cuda, &cuda->immersed.impulse, blocks * SK_BLOCK_CELLS * 3 * sizeof(float), 1, error));
    }
    SK_TRY(sk_cuda_take(cuda, &cuda->shadow.mpm_tiles, blocks * SK_MPM_TILE * sizeof(float4), 0, error));
    return sk_cuda_take(cuda, &cuda->shadow.mpm_nodes, blocks * SK_BLOCK_CELLS * sizeof(float4), 1, error);
}

selkie_code SK_DIM(sk_cuda_grow_mpm)(sk_step *step, size_t before, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_cuda_give(cuda, cuda->shadow.mpm_gifts, before * sizeof(stored_gift));
    SK_TRY(sk_cuda_take(cuda, &cuda->shadow.mpm_gifts, cuda->particle_capacity * sizeof(stored_gift), 0, error));
    SK_CUDA_TRY(cudaMemcpyAsync(&cuda->data->mpm_gifts, &cuda->shadow.mpm_gifts, sizeof cuda->shadow.mpm_gifts,
                                cudaMemcpyHostToDevice, cuda->stream),
                "the particles", error);
    if (!sk_scene_has_immersed_points(step->scene))
        return SELKIE_OK;
    sk_cuda_give(cuda, cuda->immersed.laws, before * sizeof(uint32_t));
    SK_TRY(sk_cuda_take(cuda, &cuda->immersed.laws, cuda->particle_capacity * sizeof(uint32_t), 0, error));
    return SELKIE_OK;
}

void SK_DIM(sk_cuda_fill_mpm)(const sk_step *step, sk_cuda_constants *constants)
{
    if (step->scene->discretization == SELKIE_DISCRETIZATION_MPM)
        constants->options.kind = SK_TRANSFER_FLIP; /* points have no matrices of APIC that streams could set to 0 */
    sk_cuda_mpm *to = &constants->mpm;
    to->dt = (float)step->last_dt;
    to->kick = (float)sk_step_kick(step);
    to->material = -1;
    for (int d = 0; d < 3; d++)
        to->gain[d] = d < SELKIE_DIM ? (float)(sk_step_kick(step) * step->scene->gravity[d]) : 0.0f;
    for (int a = 0; a < step->particles.attribute_count; a++) {
        const char *name = step->particles.attributes[a].name;
        to->material = strcmp(name, "material") == 0 ? a : to->material;
        for (int n = 0; n < SK_MPM_OWN; n++)
            to->attributes[n] = strcmp(name, sk_mpm_own[n]) == 0 ? a : to->attributes[n];
    }
}
