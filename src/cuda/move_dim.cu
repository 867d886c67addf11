/* Velocities to the particles, and their paths: the plain forms of to_particles and advect, a thread a particle. */
#include "cuda/device.h"

#include "methods/flip/advect_frame.h"
#include "methods/flip/transfer_options.h"
#include "methods/flip/wall_layer_plain.h"

extern "C" {
#include "cuda/phases.h"
#include "methods/force_fields.h"
#include "methods/uic/uic.h"
}
#include "cuda/grid_parts.h"
#include "cuda/solids_parts.h"
#include "cuda/sort_parts.h"

enum {
    N = SK_BLOCK_N,
    NEAR_SIDE = SK_NEAR_TILE, /* cells of a tile with a halo of one cell */
    NEAR = SELKIE_DIM == 3 ? NEAR_SIDE * NEAR_SIDE * NEAR_SIDE : NEAR_SIDE * NEAR_SIDE,
    WARPS = SK_CUDA_THREADS / 32
};

/* Particles that move farther than this in a step, in cells, get the wide tile. It takes longer to load. */
#define FAST_PARTICLES 1.5

/* Thread blocks of a move without obstacles that share a multiprocessor. */
enum { MOVE_SHARE = 2 };

/* What particles move among. */
enum { NOTHING, OBSTACLES, JOINED_SIDES, OBSTACLES_AND_SIDES = OBSTACLES | JOINED_SIDES };

/* Parts of a move: new velocities, and the paths. A shift of unilateral incompressibility comes between them. */
enum { GIVES = 1, TRAVELS = 2, WHOLE = GIVES | TRAVELS };

/* The fields that the particles of a block sample, in shared memory. */
template <sk_tile_side SIDE> struct move_tiles {
    enum { CELLS = SELKIE_DIM == 3 ? SIDE * SIDE * SIDE : SIDE * SIDE };
    float mixed[SELKIE_DIM * NEAR];     /* what the velocities of particles sample */
    float end[SELKIE_DIM * NEAR];       /* velocity at the end of a reflected step, at the start of a path */
    float velocity[SELKIE_DIM * CELLS]; /* along the paths */
    uint32_t missed[WARPS][2 * 32];     /* particles of each warp for which the tiles do not suffice */
};

/* Index in the fields of cell n of a tile with a side and a halo. */
SK_DEVICE size_t cell_of_tile(const int32_t slots[SK_NEIGHBOURS], int n, int side, int halo)
{
    const int at[3] = {n % side - halo, n / side % side - halo, SELKIE_DIM == 3 ? n / side / side - halo : 0};
    return index_around(slots, at);
}

/* By all threads of a thread block, before a barrier. */
template <int PARTS, sk_tile_side SIDE>
SK_DEVICE void load_tiles(const sk_step *step, const sk_transfer_options *options, int block, move_tiles<SIDE> *tiles)
{
    enum { FAR = move_tiles<SIDE>::CELLS, HALO = (SIDE - N) / 2 };
    const sk_grid *grid = &step->grid;
    const int flip = options->kind == SK_TRANSFER_FLIP;
    __shared__ int32_t slots[SK_NEIGHBOURS];
    load_slots_around(grid, block, slots);
    const float *end[SELKIE_DIM], *change[SELKIE_DIM], *velocity[SELKIE_DIM];
    for (int d = 0; d < SELKIE_DIM; d++) {
        end[d] = grid->fields[step->end_velocity + d];
        change[d] = grid->fields[SK_FIELD_CHANGE_X + d];
        velocity[d] = grid->fields[SK_FIELD_VELOCITY_X + d];
    }
    for (int n = (int)threadIdx.x; n < NEAR; n += (int)blockDim.x) {
        const size_t at = cell_of_tile(slots, n, NEAR_SIDE, 1);
        for (int d = 0; d < SELKIE_DIM; d++) {
            SK_CUDA_COPY(tiles->end + d * NEAR + n, end[d] + at);
            if (PARTS & GIVES && flip)
                SK_CUDA_COPY(tiles->mixed + d * NEAR + n, change[d] + at);
        }
    }
    for (int n = (int)threadIdx.x; PARTS & TRAVELS && n < FAR; n += (int)blockDim.x) {
        const size_t at = cell_of_tile(slots, n, SIDE, HALO);
        for (int d = 0; d < SELKIE_DIM; d++)
            SK_CUDA_COPY(tiles->velocity + d * FAR + n, velocity[d] + at);
    }
    SK_CUDA_COPIES_HERE();
    for (int n = (int)threadIdx.x; PARTS & GIVES && n < NEAR; n += (int)blockDim.x)
        for (int d = 0; d < SELKIE_DIM; d++) {
            float *mixed = tiles->mixed + d * NEAR + n;
            const float own = tiles->end[d * NEAR + n];
            *mixed = flip ? sk_flip_mix(own, *mixed, options->flip_ratio) : sk_known_or_zero(own);
        }
}

/* The new velocity of a particle, and its matrix for APIC. `corner` is the first cell of its block. Returns the squared
 * speed. */
SK_DEVICE float give_velocity(const sk_transfer_options *options, const sk_plain_frame *frame, const float *mixed,
                              const int corner[3], sk_particle *particle, float *affine)
{
    float fraction[3] = {0.0f, 0.0f, 0.0f}, speed2 = 0.0f;
    int at[3] = {0, 0, 0};
    for (int d = 0; d < SELKIE_DIM; d++)
        at[d] = (int)sk_cell_coordinate(particle->position[d], frame->corner[d], frame->inverse);
    sk_plain_fractions(frame, particle->position, at, fraction);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const node_span span = span_of(d, fraction);
        const float *nodes_of_d = mixed + d * NEAR;
        int first = 0, pitch = 1;
        for (int e = 0; e < SELKIE_DIM; e++) {
            first += (at[e] - corner[e] + 1 + span.first[e] - (e != d)) * pitch;
            pitch *= NEAR_SIDE;
        }
        float nodes[SK_CORNERS], sum = 0.0f;
        for (int n = 0; n < SK_CORNERS; n++) {
            nodes[n] = nodes_of_d[first + (n & 1) + NEAR_SIDE * ((n >> 1 & 1) + NEAR_SIDE * (n >> 2))];
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

/* Does a particle of a block fly? `flying` is a field. */
SK_DEVICE uint32_t flags_in_flight(const sk_plain_frame *frame, const float *flying, int block, const int corner[3],
                                   const sk_particle *particle)
{
    sk_plain_cell cell = {block, 0};
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int at = (int)sk_cell_coordinate(particle->position[d], frame->corner[d], frame->inverse) - corner[d];
        cell.local |= at << (d * SK_BLOCK_LOG);
    }
    return (particle->flags & ~(uint32_t)SK_PARTICLE_FLYING) |
           (flying[sk_plain_index(cell)] > 0.0f ? (uint32_t)SK_PARTICLE_FLYING : 0);
}

/* The obstacles on the path of a particle: as in advect_plain_dim.c. */
typedef struct obstacles_met {
    const sk_step *step;
    const sk_cuda_constants *constants;
    const sk_cuda_data *data;
    int stays_inside; /* left inside an obstacle by the density projection */
    sk_touch touch;   /* the last one */
} obstacles_met;

SK_DEVICE int sweep_path(void *obstacles, const float from[3], float to[3], double begin, double end)
{
    obstacles_met *met = (obstacles_met *)obstacles;
    const sk_advection *a = &met->constants->advection;
    const sk_grid *grid = &met->step->grid;
    sk_swept_path path;
    sk_touch touch;
    float away[3] = {0.0f, 0.0f, 0.0f};
    path.begin = begin, path.end = end;
    path.deepest = met->stays_inside ? 0.0 : INFINITY;
    for (int d = 0; d < 3; d++) {
        path.from[d] = d < SELKIE_DIM ? from[d] : 0.0f;
        path.to[d] = d < SELKIE_DIM ? to[d] : 0.0f;
        path.low[d] = a->low[d];
        path.high[d] = a->high[d];
        if (!(grid->periodic >> d & 1))
            continue;
        /* Obstacles lie in the domain; a path may have left it through a joined side. */
        away[d] = grid->period[d] * floorf((from[d] - (float)grid->low[d]) / grid->period[d]);
        path.from[d] -= away[d];
        path.to[d] -= away[d];
    }
    if (is_clear_of_obstacles(met->step, met->constants, met->data, path.from, path.to, met->stays_inside))
        return 0;
    if (!sweep_once(&met->step->solids, &path, &touch))
        return 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        to[d] = path.to[d] + away[d];
    met->touch = touch;
    return 1;
}

/* Moves a particle through the step. Returns whether it left the domain. `missed`, if it is not NULL, gets 1 where the
 * tiles do not suffice: the particle is then as before. */
template <int AMONG, sk_tile_side SIDE>
SK_DEVICE int travel(const sk_step *step, const sk_cuda_constants *constants, const sk_cuda_data *data,
                     const sk_advection *a, sk_particle *particle, int *missed)
{
    obstacles_met met = {step, constants, data, (particle->flags & SK_PARTICLE_INSIDE) != 0, {-1, {0.0f, 0.0f, 0.0f}}};
    sk_traveller traveller = {
        {0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f}, (particle->flags & SK_PARTICLE_FLYING) != 0, missed, SIDE};
    for (int d = 0; d < SELKIE_DIM; d++) {
        traveller.x[d] = particle->position[d];
        traveller.own[d] = particle->velocity[d];
    }
    const int gone = sk_travel(a, &traveller, AMONG & OBSTACLES ? sweep_path : nullptr, &met);
    if (missed && *missed)
        return 0;
    if (AMONG & JOINED_SIDES)
        wrap_position(&step->grid, traveller.x);
    for (int d = 0; d < SELKIE_DIM; d++)
        particle->position[d] = traveller.x[d];
    particle->flags |= gone ? (uint32_t)SK_PARTICLE_DEAD : 0;
    if (AMONG & OBSTACLES && !gone)
        sk_sweep_stop_velocity(&step->solids, &met.touch, particle->position, particle->velocity);
    return gone;
}

/* The same for those that leave the tiles or come to unknown velocities. It is called: with its calls in the loop over
 * the particles fewer threads would fit on a multiprocessor. */
template <int AMONG, sk_tile_side SIDE>
static __device__ __noinline__ int travel_far(const sk_step *step, const sk_advection *a, sk_particle *particle)
{
    return travel<AMONG, SIDE>(step, nullptr, nullptr, a, particle, nullptr);
}

/* What a thread's particles add to the sums of the launch. */
typedef struct move_sums {
    double kinetic, position[3];
    float fastest2;
    int bad, left;
} move_sums;

SK_DEVICE void add_arrival(const sk_particle *particle, int gone, move_sums *sums)
{
    for (int d = 0; d < SELKIE_DIM; d++)
        sums->position[d] += gone ? 0.0 : (double)particle->position[d];
    sums->left += gone;
}

/* Appends the particles of a warp that missed to its list, which has `count`. Returns their new number. */
SK_DEVICE int list_missed(int missed, uint32_t p, uint32_t *list, int count)
{
    const unsigned all = __ballot_sync(~0u, missed), before = all & ((1u << threadIdx.x % 32) - 1u);
    if (missed)
        list[count + __popc(before)] = p;
    __syncwarp();
    return count + __popc(all);
}

/* Moves such a particle. Returns whether it stays in its block. */
template <int AMONG, sk_tile_side SIDE>
SK_DEVICE int move_missed(const sk_step *step, sk_cuda_data *data, const sk_advection *a, uint32_t p, int own_place,
                          move_sums *sums)
{
    sk_particle *record = &step->particles.records[p], particle = load_particle(record);
    const int gone = travel_far<AMONG, SIDE>(step, a, &particle);
    store_particle(record, particle);
    add_arrival(&particle, gone, sums);
    return find_key(a->corner, a->inverse, a->velocity.blocks, data, p, particle.position, gone, own_place);
}

/* Particles among obstacles move again after this: their keys are those of the sort. */
template <int AMONG, int PARTS, sk_tile_side SIDE>
static __global__ void __launch_bounds__(SK_CUDA_THREADS, AMONG &OBSTACLES ? 1 : MOVE_SHARE)
    move(const sk_step *step, const sk_cuda_constants *constants, sk_cuda_data *data)
{
    SK_CUDA_LARGE_SHARED(float, all_tiles, sizeof(move_tiles<SIDE>) / sizeof(float));
    move_tiles<SIDE> &tiles = *(move_tiles<SIDE> *)(void *)all_tiles;
    __shared__ sk_advection a; /* too large for registers */
    __shared__ int own_place;
    enum { HALO = (SIDE - N) / 2, LISTS = PARTS & TRAVELS && !(AMONG & OBSTACLES) && SIDE == SK_WIDE_TILE };
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const sk_plain_frame frame = frame_of_grid(grid);
    const sk_transfer_options options = constants->options;
    float *affine = affine_of(step, constants);
    sk_particle *const records = step->particles.records;
    move_sums sums = {0.0, {0.0, 0.0, 0.0}, 0.0f, 0, 0};
    const int parts = parts_of_blocks(grid), items = grid->particle_blocks * parts;
    const unsigned lane = threadIdx.x % 32;
    uint32_t *missed_ones = tiles.missed[threadIdx.x / 32];
    if (threadIdx.x == 0) {
        a = constants->advection;
        a.velocity.tile = tiles.velocity;
        a.end.tile = tiles.end;
    }
    for (int item = (int)blockIdx.x; item < items; item += (int)gridDim.x) {
        const int block = 1 + item / parts;
        uint32_t first, last;
        int corner[3] = {0, 0, 0};
        particles_of_part(grid, block, item % parts, parts, &first, &last);
        if (first == last)
            continue;
        for (int d = 0; d < SELKIE_DIM; d++)
            corner[d] = grid->coordinates[block][d] * N;
        __syncthreads();
        if (threadIdx.x < SELKIE_DIM) {
            a.velocity.tile_first[threadIdx.x] = grid->coordinates[block][threadIdx.x] * N - HALO;
            a.end.tile_first[threadIdx.x] = grid->coordinates[block][threadIdx.x] * N - 1;
        }
        if (threadIdx.x == 0)
            own_place = grid->coordinates[block][0] +
                        grid->blocks[0] * (grid->coordinates[block][1] + grid->blocks[1] * grid->coordinates[block][2]);
        if (threadIdx.x == 0)
            ask_for_particles(records, first, first + 2 * blockDim.x, last);
        load_tiles<PARTS, SIDE>(step, &options, block, &tiles);
        __syncthreads();
        int stay = 0, waiting = 0;
        /* With lists, all threads of a warp stay. */
        for (uint32_t p = first + threadIdx.x; (LISTS ? p - lane : p) < last; p += blockDim.x) {
            int missed = 0, gone = 0;
            if (!LISTS || p < last) {
                sk_particle particle = load_particle(&records[p]);
                if (threadIdx.x == 0)
                    ask_for_particles(records, p + 2 * blockDim.x, p + 3 * blockDim.x, last);
                if (PARTS & GIVES) {
                    const float speed2 = give_velocity(&options, &frame, tiles.mixed, corner, &particle,
                                                       affine ? affine + 9 * (size_t)p : nullptr);
                    sums.fastest2 = speed2 > sums.fastest2 ? speed2 : sums.fastest2;
                    sums.kinetic += 0.5 * (double)speed2;
                    sums.bad += !(speed2 < 1e30f);
                    if (options.flying)
                        particle.flags = flags_in_flight(&frame, options.flying, block, corner, &particle);
                }
                if (PARTS & TRAVELS)
                    gone = travel<AMONG, SIDE>(step, constants, data, &a, &particle,
                                               AMONG & OBSTACLES ? nullptr : &missed);
                if (PARTS & TRAVELS && !LISTS && missed) {
                    sk_particle far = particle;
                    gone = travel_far<AMONG & JOINED_SIDES, SIDE>(step, &a, &far);
                    particle = far;
                    missed = 0;
                }
                store_particle(&records[p], particle);
                if (PARTS & TRAVELS && !missed) {
                    add_arrival(&particle, gone, &sums);
                    if (!(AMONG & OBSTACLES))
                        stay |= find_key(a.corner, a.inverse, a.velocity.blocks, data, p, particle.position, gone,
                                         own_place);
                }
            }
            if (!LISTS)
                continue;

            /* A warp waits for its slowest thread: those that missed move 32 at a time, the rest at the end. */
            waiting = list_missed(missed, p, missed_ones, waiting);
            const int is_end = p - lane + blockDim.x >= last;
            while (waiting >= 32 || (is_end && waiting)) {
                const int taken = waiting < 32 ? waiting : 32;
                waiting -= taken;
                if ((int)lane < taken)
                    stay |= move_missed<AMONG & JOINED_SIDES, SIDE>(step, data, &a, missed_ones[waiting + (int)lane],
                                                                    own_place, &sums);
                __syncwarp();
            }
        }
        if (stay && !data->marked[own_place])
            data->marked[own_place] = 1;
    }

    /* Sums in a fixed order. */
    double total[6] = {sums.kinetic,     sums.position[0], sums.position[1],
                       sums.position[2], (double)sums.bad, (double)sums.left};
    double fastest = sums.fastest2;
    if (!sum_over_launch(data, total, &fastest))
        return;
    if (threadIdx.x == 0 && PARTS & GIVES) {
        data->results.kinetic = total[0];
        data->results.bad = (int64_t)total[4];
        data->results.fastest2 = fastest;
    }
    if (threadIdx.x == 0 && PARTS & TRAVELS) {
        for (int d = 0; d < 3; d++)
            data->results.positions[d] = total[1 + d];
        data->results.gone = (int64_t)total[5];
    }
}

/* Particles beside no-slip walls, after the move, and the sums of all. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    limit_particles(const sk_step *step, const sk_cuda_constants *constants, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const sk_advection *a = &constants->advection;
    const int parts = parts_of_blocks(grid), items = grid->particle_blocks * parts;
    double total[1] = {0.0}, fastest = 0.0; /* kinetic energy */
    for (int item = (int)blockIdx.x; item < items; item += (int)gridDim.x) {
        const int block = 1 + item / parts;
        uint32_t first, last;
        particles_of_part(grid, block, item % parts, parts, &first, &last);
        for (uint32_t p = first + threadIdx.x; p < last; p += blockDim.x) {
            sk_particle particle = load_particle(&step->particles.records[p]);
            double speed2 = 0.0;
            if (step->solids.block_slot[block]) {
                limit_particle(step, &a->end, a->corner, a->inverse, &particle);
                store_particle(&step->particles.records[p], particle);
            }
            for (int d = 0; d < SELKIE_DIM; d++)
                speed2 += (double)particle.velocity[d] * (double)particle.velocity[d];
            total[0] += 0.5 * speed2;
            fastest = speed2 > fastest ? speed2 : fastest;
        }
    }
    if (sum_over_launch(data, total, &fastest) && threadIdx.x == 0) {
        data->results.kinetic = total[0];
        data->results.fastest2 = fastest;
    }
}

static void launch_wall_layer(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_LAUNCH(cuda, limit_particles, SK_CUDA_SUMS, SK_CUDA_THREADS, &cuda->device->step, &cuda->device->constants,
              cuda->data);
}

selkie_code SK_DIM(sk_cuda_wall_layer)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    SK_TRY(sk_cuda_run(step, "wall_layer", launch_wall_layer, error));
    SK_CUDA_TRY(cudaMemcpyAsync(cuda->results, &cuda->data->results, sizeof *cuda->results, cudaMemcpyDeviceToHost,
                                cuda->stream),
                "the wall layer", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "the wall layer", error);
    cuda->began = cuda->particles_here = 0; /* the step is over */
    step->sums.kinetic = cuda->results->kinetic;
    step->sums.max_speed = sqrt(cuda->results->fastest2);
    return SELKIE_OK;
}

/* Sums by mass over the particles: sk_densities_weigh. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    weigh_masses(const sk_step *step, const sk_cuda_constants *constants, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const uint32_t *material = step->particles.attributes[constants->material].data;
    double sums[5] = {0.0, 0.0, 0.0, 0.0, 0.0}; /* kinetic energy, mass, moment */
    SK_CUDA_EACH(p, step->particles.count)
    {
        const sk_particle particle = load_particle(&step->particles.records[p]);
        if (particle.flags & SK_PARTICLE_DEAD)
            continue;
        const double mass =
            step->particle_mass * (double)constants->relative_density[material[p] % SK_TRANSFER_MATERIALS];
        double speed2 = 0.0;
        for (int d = 0; d < SELKIE_DIM; d++) {
            speed2 += (double)particle.velocity[d] * (double)particle.velocity[d];
            sums[2 + d] += mass * (double)particle.position[d];
        }
        sums[0] += 0.5 * mass * speed2;
        sums[1] += mass;
    }
    if (sum_over_launch(data, sums, nullptr) && threadIdx.x == 0) {
        data->results.masses.kinetic = sums[0];
        data->results.masses.mass = sums[1];
        for (int d = 0; d < 3; d++)
            data->results.masses.moment[d] = sums[2 + d];
    }
}

static void launch_masses(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_LAUNCH(cuda, weigh_masses, SK_CUDA_SUMS, SK_CUDA_THREADS, &cuda->device->step, &cuda->device->constants,
              cuda->data);
}

selkie_code SK_DIM(sk_cuda_masses)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_mass_sums sums;
    SK_TRY(sk_cuda_run(step, "masses", launch_masses, error));
    SK_CUDA_TRY(cudaMemcpyAsync(&sums, &cuda->data->results.masses, sizeof sums, cudaMemcpyDeviceToHost, cuda->stream),
                "the sums of the masses", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "the sums of the masses", error);
    cuda->began = 0; /* the step is over */
    memcpy(sums.moment_before, step->mass_sums.moment, sizeof sums.moment_before);
    step->mass_sums = sums;
    return SELKIE_OK;
}

template <int AMONG, int PARTS, sk_tile_side SIDE> static void launch_parts(sk_cuda *cuda)
{
    SK_LAUNCH_LARGE(cuda, (move<AMONG, PARTS, SIDE>), SK_CUDA_SUMS * 2, SK_CUDA_THREADS, sizeof(move_tiles<SIDE>),
                    &cuda->device->step, &cuda->device->constants, cuda->data);
}

template <int PARTS, sk_tile_side SIDE> static void launch_move(sk_cuda *cuda, const sk_step *host)
{
    if (host->solids.obstacle_count && host->grid.periodic)
        launch_parts<OBSTACLES_AND_SIDES, PARTS, SK_FAR_TILE>(cuda);
    else if (host->solids.obstacle_count)
        launch_parts<OBSTACLES, PARTS, SK_FAR_TILE>(cuda);
    else if (host->grid.periodic)
        launch_parts<JOINED_SIDES, PARTS, SIDE>(cuda);
    else
        launch_parts<NOTHING, PARTS, SIDE>(cuda);
}

/* Did particles cross several cells a step of this length, at the speed at its start? */
static int is_fast(const sk_step *step)
{
    return step->sums.max_speed * step->dt > FAST_PARTICLES * step->grid.cell_size;
}

/* After the paths. */
static selkie_code finish_move(sk_step *step, selkie_error *error)
{
    sk_particles_moved(&step->particles);
    step->cuda->particles_here = 0;
    step->cuda->has_keys = step->solids.obstacle_count == 0;
    return sk_cuda_finish_step(step, error);
}

selkie_code SK_DIM(sk_cuda_move)(sk_step *step, selkie_error *error)
{
    SK_TRY(is_fast(step) ? sk_cuda_run(step, "move of fast particles", launch_move<WHOLE, SK_WIDE_TILE>, error)
                         : sk_cuda_run(step, "move", launch_move<WHOLE, SK_FAR_TILE>, error));
    return finish_move(step, error);
}

static void launch_give(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    launch_parts<NOTHING, GIVES, SK_NEAR_TILE>(cuda);
}

selkie_code SK_DIM(sk_cuda_to_particles)(sk_step *step, selkie_error *error)
{
    step->cuda->particles_here = 0;
    return sk_cuda_run(step, "to_particles", launch_give, error);
}

selkie_code SK_DIM(sk_cuda_advect)(sk_step *step, selkie_error *error)
{
    SK_TRY(is_fast(step) ? sk_cuda_run(step, "advect of fast particles", launch_move<TRAVELS, SK_WIDE_TILE>, error)
                         : sk_cuda_run(step, "advect", launch_move<TRAVELS, SK_FAR_TILE>, error));
    return finish_move(step, error);
}

void SK_DIM(sk_cuda_fill_constants)(const sk_step *step, sk_cuda_sent *sent)
{
    sk_cuda_constants *constants = &sent->constants;
    const sk_cuda *cuda = step->cuda;
    for (int d = 0; d < 3; d++)
        constants->gain[d] = flip_gravity_gain(step, d);
    constants->force_count = 0;
    if (sk_force_fields_most(step->scene)) { /* sk_cuda_check has refused scenes with more than fit */
        constants->force_count = sk_force_fields_in(step->scene, sk_step_force_window(step), constants->forces);
        sk_force_fields_scale(constants->forces, constants->force_count, 1.0 / (1.0 + step->reflection));
    }
    constants->options = flip_transfer_options(step);
    constants->options.relative_density = sent->step.relative_density; /* on the device */
    const sk_uic_state *unilateral = (const sk_uic_state *)sk_step_state(step, &sk_method_uic);
    constants->spare = unilateral ? unilateral->spare : 0;
    if (constants->options.flying)
        constants->options.flying = sent->step.grid.fields[SK_FIELD_PREDICTED];
    const sk_tension *tension = (const sk_tension *)sk_step_state(step, &sk_method_surface_tension);
    if (tension)
        constants->tension = *tension;
    constants->contact_cosine = (float)cos(step->scene->contact_angle * (M_PI / 180.0));
    constants->options.material_mask = sent->step.liquid_mask; /* likewise */
    constants->affine = constants->material = 0;
    constants->body = constants->frozen_at = -1;
    for (int a = 0; a < step->particles.attribute_count; a++) {
        if (strcmp(step->particles.attributes[a].name, "affine") == 0)
            constants->affine = a;
        if (strcmp(step->particles.attributes[a].name, "material") == 0)
            constants->material = a;
        if (strcmp(step->particles.attributes[a].name, "body") == 0)
            constants->body = a;
        if (strcmp(step->particles.attributes[a].name, "frozen_at") == 0)
            constants->frozen_at = a;
    }

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
