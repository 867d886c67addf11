/* Droplets on the GPU: out of the particles, through the air and back, and new ones. What
 * methods/splashes/droplets.c does, a thread a droplet, and a thread block a new one. */
#include "cuda/solids_parts.h"
#include "cuda/sort_parts.h"
#include "cuda/splash_parts.h"

extern "C" {
#include "methods/sources/sources.h"
}

/* --- what flies --- */

typedef struct splash_world {
    const sk_step *step;
    const sk_cuda_constants *constants;
    const sk_cuda_data *data;
} splash_world;

/* sk_splash_stop. It is long, and compiled once. */
static __device__ __noinline__ int stop_droplet(const splash_world *world, const float from[3], float to[3],
                                                float *velocity)
{
    const sk_step *step = world->step;
    sk_swept_path path;
    sk_touch touch;
    float away[3] = {0.0f, 0.0f, 0.0f};
    if (!step->solids.obstacle_count)
        return 0;
    path.begin = 0.0, path.end = 1.0, path.deepest = INFINITY;
    for (int d = 0; d < 3; d++)
        path.from[d] = from[d];
    wrap_position(&step->grid, path.from);
    for (int d = 0; d < 3; d++) {
        away[d] = from[d] - path.from[d];
        path.to[d] = to[d] - away[d];
        path.low[d] = world->constants->displacement.low[d];
        path.high[d] = world->constants->displacement.high[d];
    }
    if (is_clear_of_obstacles(step, world->constants, world->data, path.from, path.to, 0))
        return 0;
    touch.obstacle = -1;
    if (!sweep_once(&step->solids, &path, &touch))
        return 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        to[d] = path.to[d] + away[d];
    if (velocity)
        sk_sweep_stop_velocity(&step->solids, &touch, path.to, velocity);
    return 1;
}

/* sk_grid_find_cell */
SK_DEVICE int find_cell(const splash_world *world, const int cell[3], size_t *local)
{
    const sk_grid *grid = &world->step->grid;
    int place = 0, stride = 1;
    *local = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int count = grid->blocks[d] << SK_BLOCK_LOG;
        int at = cell[d];
        if (at < 0 || at >= count) {
            if (!(grid->periodic >> d & 1))
                return 0;
            at = sk_wrap_index(at, count);
        }
        place += (at >> SK_BLOCK_LOG) * stride;
        stride *= grid->blocks[d];
        *local |= (size_t)(at & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
    }
    return world->data->slot_of_place[place];
}

SK_DEVICE int is_in_solid(const splash_world *world, const float position[3])
{
    const double x[3] = {position[0], position[1], position[2]};
    double normal[3];
    int obstacle;
    return world->step->solids.obstacle_count && distance_once(&world->step->solids, x, normal, &obstacle) < 0.0;
}

#define SK_SPLASH_FUNCTION SK_DEVICE
#define SK_SPLASH_WORLD const splash_world *
#define SK_SPLASH_STEP(world) ((world)->step)
#define SK_SPLASH_STOP(world, from, to, velocity) stop_droplet(world, from, to, velocity)
#define SK_SPLASH_FIND(world, cell, local) find_cell(world, cell, local)
#define SK_SPLASH_IN_SOLID(world, position) is_in_solid(world, position)
#define SK_SPLASH_WRAP(world, position) wrap_position(&(world)->step->grid, position)
#include "methods/splashes/splash_fly_plain.h"

static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    fly_droplets(const sk_step *step, const sk_cuda_constants *constants, const sk_cuda_data *data,
                 const __grid_constant__ sk_cuda_splash_arrays arrays, const __grid_constant__ sk_splash_flight flight)
{
    SK_CUDA_WAIT();
    const splash_world world = {step, constants, data};
    SK_CUDA_EACH(n, arrays.apart_count)
    {
        sk_particle droplet = load_particle(&arrays.apart[n]);
        float *age = (float *)(void *)&arrays.values[n * (size_t)arrays.words + (size_t)arrays.age_word];
        float now = *age;
        splash_fly_all(&world, &flight, &droplet, &now);
        store_particle(&arrays.apart[n], droplet);
        *age = now;
    }
}

SK_DEVICE double speed_squared(const float velocity[3])
{
    return (double)velocity[0] * velocity[0] + (double)velocity[1] * velocity[1] + (double)velocity[2] * velocity[2];
}

/* Sums over the droplets: the move has counted the liquid alone. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    sum_droplets(sk_cuda_data *data, const __grid_constant__ sk_cuda_splash_arrays arrays)
{
    SK_CUDA_WAIT();
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    SK_CUDA_EACH(n, arrays.apart_count)
    {
        const sk_particle droplet = load_particle(&arrays.apart[n]);
        sums[3] += 0.5 * speed_squared(droplet.velocity);
        for (int d = 0; d < SELKIE_DIM; d++)
            sums[d] += (double)droplet.position[d];
    }
    if (!sum_over_launch(data, sums, nullptr) || threadIdx.x)
        return;
    arrays.counts->kinetic = sums[3];
    for (int d = 0; d < 3; d++)
        arrays.counts->positions[d] = sums[d];
}

/* --- lists of marked ones, in their order --- */

/* Droplets among the particles; particles that leave; droplets that came back, among those apart. */
enum { OF_DROPLETS, OF_LEAVING, OF_RETURNED };

template <int KIND> SK_DEVICE int64_t count_of(const sk_step *step, const sk_cuda_splash_arrays *arrays)
{
    return KIND == OF_RETURNED ? arrays->apart_count : step->particles.count;
}

template <int KIND> SK_DEVICE int is_marked(const sk_step *step, const sk_cuda_splash_arrays *arrays, int64_t n)
{
    if (KIND == OF_LEAVING)
        return arrays->chosen[n] == SK_CUDA_LEAVES;
    const uint32_t *ages = KIND == OF_DROPLETS ? step->particles.attributes[arrays->age].data + n
                                               : arrays->values + n * arrays->words + arrays->age_word;
    const int has_age = *(const float *)(const void *)ages > 0.0f;
    return KIND == OF_DROPLETS ? has_age : !has_age;
}

/* The range of a thread block, so that the order is that of the blocks. */
SK_DEVICE void range_of_block(int64_t count, int64_t *first, int64_t *last)
{
    const int64_t blocks = (int64_t)gridDim.x, b = (int64_t)blockIdx.x;
    *first = count * b / blocks;
    *last = count * (b + 1) / blocks;
}

template <int KIND>
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    count_marked(const sk_step *step, const __grid_constant__ sk_cuda_splash_arrays arrays)
{
    SK_CUDA_WAIT();
    int64_t first, last;
    int found = 0;
    range_of_block(count_of<KIND>(step, &arrays), &first, &last);
    for (int64_t n = first + threadIdx.x; n < last; n += blockDim.x)
        found += is_marked<KIND>(step, &arrays, n);
    found = sk_cuda_sum(found);
    if (threadIdx.x == 0)
        arrays.shares[blockIdx.x] = (unsigned)found;
}

/* Marked ones before this thread block, and all of them. */
SK_DEVICE int64_t marked_before(const sk_cuda_splash_arrays *arrays, int64_t *all)
{
    double before = 0.0, sum = 0.0; /* whole numbers */
    for (int i = (int)threadIdx.x; i < (int)gridDim.x; i += (int)blockDim.x) {
        sum += (double)arrays->shares[i];
        before += i < (int)blockIdx.x ? (double)arrays->shares[i] : 0.0;
    }
    *all = (int64_t)sk_cuda_sum(sum);
    return (int64_t)sk_cuda_sum(before);
}

/* Calls `take` for all entries in their order, a thread each, with the number of marked ones before it. */
template <int KIND, typename Take>
SK_DEVICE void take_marked(const sk_step *step, const sk_cuda_splash_arrays *arrays, Take take)
{
    int64_t first, last, all, before = marked_before(arrays, &all);
    range_of_block(count_of<KIND>(step, arrays), &first, &last);
    for (int64_t from = first; from < last; from += blockDim.x) {
        const int64_t n = from + threadIdx.x;
        const int is = n < last && is_marked<KIND>(step, arrays, n);
        int total;
        const int64_t number = before + sk_cuda_scan(is, &total);
        before += total;
        if (n < last)
            take(n, is, number, all);
    }
}

/* Copies the attributes of a particle to or from a droplet. */
SK_DEVICE void copy_values(const sk_step *step, const sk_cuda_splash_arrays *arrays, int64_t p, int64_t droplet,
                           int to_droplet)
{
    uint32_t *values = arrays->values + droplet * arrays->words;
    for (int a = 0; a < step->particles.attribute_count; a++) {
        const sk_attribute *attribute = &step->particles.attributes[a];
        uint32_t *own = attribute->data + p * attribute->components;
        for (int k = 0; k < attribute->components; k++, values++)
            if (to_droplet)
                *values = own[k];
            else
                own[k] = *values;
    }
}

/* Droplets leave the store: the sort drops what is dead. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    take_droplets(const sk_step *step, const __grid_constant__ sk_cuda_splash_arrays arrays)
{
    SK_CUDA_WAIT();
    take_marked<OF_DROPLETS>(step, &arrays, [&](int64_t p, int is, int64_t number, int64_t) {
        if (!is || number >= arrays.apart_count)
            return;
        sk_particle *record = &step->particles.records[p];
        store_particle(&arrays.apart[number], load_particle(record));
        copy_values(step, &arrays, p, number, 1);
        record->flags |= SK_PARTICLE_DEAD;
    });
}

/* Behind the particles come those that are back, then those that fly on. The last thread block counts them in. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    put_back(sk_step *step, sk_cuda_data *data, const __grid_constant__ sk_cuda_splash_arrays arrays)
{
    SK_CUDA_WAIT();
    const int64_t base = step->particles.count;
    take_marked<OF_RETURNED>(step, &arrays, [&](int64_t n, int is, int64_t number, int64_t all) {
        const int64_t p = base + (is ? number : all + n - number);
        store_particle(&step->particles.records[p], load_particle(&arrays.apart[n]));
        copy_values(step, &arrays, p, n, 0);
        if (n == 0)
            arrays.counts->returned = (unsigned long long)all;
    });
    if (sk_cuda_is_last(&data->ticket[0]) && threadIdx.x == 0) {
        step->particles.count = base + arrays.apart_count;
        data->results.count = base + arrays.apart_count;
    }
}

/* --- new droplets --- */

/* The cell of a particle at the last sort: its number among the cells of all blocks. */
SK_DEVICE int64_t cell_at_sort(const sk_grid *grid, int64_t p)
{
    int64_t low = 0, high = (int64_t)grid->particle_blocks * SK_BLOCK_CELLS; /* starts of low <= p < that of high */
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if ((int64_t)grid->cell_start[middle] <= p)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    list_events(const sk_step *step, const __grid_constant__ sk_cuda_splash_arrays arrays)
{
    SK_CUDA_WAIT();
    take_marked<OF_LEAVING>(step, &arrays, [&](int64_t p, int is, int64_t number, int64_t) {
        if (!is || number >= arrays.event_count)
            return;
        const int64_t cell = cell_at_sort(&step->grid, p);
        sk_cuda_splash_event *event = &arrays.events[number];
        memset(event, 0, sizeof *event);
        event->particle = (uint32_t)p;
        event->id = step->particles.records[p].id;
        event->block = 1 + (int32_t)(cell / SK_BLOCK_CELLS);
        event->cell = (int32_t)(cell % SK_BLOCK_CELLS);
        for (int d = 0; d < SELKIE_DIM; d++)
            event->at[d] = step->grid.coordinates[event->block][d] * SK_BLOCK_N +
                           (event->cell >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK);
        event->key = sk_splash_cell_key(event->at);
    });
}

SK_DEVICE int is_recent(const sk_cuda_splash_arrays *arrays, uint64_t key)
{
    int64_t low = 0, high = arrays->recent_count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (arrays->recent[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low < arrays->recent_count && arrays->recent[low] == key;
}

enum { CELLS_AROUND = SELKIE_DIM == 3 ? 27 : 9 };

/* The particles of the cells around that of an event, in the order of the CPU. */
typedef struct around_event {
    uint32_t first[CELLS_AROUND], before[CELLS_AROUND + 1]; /* particle of each cell; particles of those before it */
} around_event;

/* By all threads of a thread block. */
SK_DEVICE void look_around(const splash_world *world, const sk_cuda_splash_event *event, around_event *around)
{
    const sk_grid *grid = &world->step->grid;
    const int n = (int)threadIdx.x;
    __syncthreads();
    if (n < CELLS_AROUND) {
        const int at[3] = {event->at[0] + n % 3 - 1, event->at[1] + n / 3 % 3 - 1,
                           SELKIE_DIM == 3 ? event->at[2] + n / 9 - 1 : 0};
        size_t local;
        const int slot = find_cell(world, at, &local);
        const int has = slot >= 1 && slot <= grid->particle_blocks;
        const uint32_t *start = grid->cell_start + (has ? (size_t)(slot - 1) * SK_BLOCK_CELLS + local : 0);
        around->first[n] = start[0];
        around->before[1 + n] = has ? start[1] - start[0] : 0;
    }
    __syncthreads();
    if (n == 0) {
        around->before[0] = 0;
        for (int c = 0; c < CELLS_AROUND; c++)
            around->before[c + 1] += around->before[c];
    }
    __syncthreads();
}

/* Particle n of those around, and its cell. */
SK_DEVICE uint32_t particle_around(const around_event *around, uint32_t n, int *cell)
{
    int c = 0;
    while (n >= around->before[c + 1])
        c++;
    *cell = c;
    return around->first[c] + (n - around->before[c]);
}

/* Does a particle take a part of the impulse? */
SK_DEVICE int receives(const sk_step *step, const sk_cuda_splash_arrays *arrays, uint32_t p)
{
    return !arrays->chosen[p] && !(step->particles.records[p].flags & SK_PARTICLE_DEAD) &&
           splash_is_melted(step, arrays, p);
}

/* Decides what becomes of each particle that leaves, and makes it a droplet. Nothing here depends on other events:
 * their particles are chosen, and no velocity but the own one is read. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    judge_events(const sk_step *step, const sk_cuda_constants *constants, const sk_cuda_data *data,
                 const __grid_constant__ sk_cuda_splash_arrays arrays)
{
    __shared__ around_event around;
    __shared__ double masses[SK_CUDA_THREADS];
    SK_CUDA_WAIT();
    const splash_world world = {step, constants, data};
    const sk_attribute *material = step->relative_density ? &step->particles.attributes[constants->material] : nullptr;
    for (int64_t e = (int64_t)blockIdx.x; e < arrays.event_count; e += gridDim.x) {
        sk_cuda_splash_event *event = &arrays.events[e];
        double receivers = 0.0; /* kg  in the order of the CPU */
        look_around(&world, event, &around);
        for (uint32_t first = 0; first < around.before[CELLS_AROUND]; first += blockDim.x) {
            const uint32_t n = first + threadIdx.x;
            int cell;
            double mass = 0.0;
            if (n < around.before[CELLS_AROUND]) {
                const uint32_t p = particle_around(&around, n, &cell);
                mass = receives(step, &arrays, p) ? sk_step_mass(step, material, (int64_t)p) : 0.0;
            }
            masses[threadIdx.x] = mass;
            __syncthreads();
            for (unsigned i = 0; threadIdx.x == 0 && i < blockDim.x; i++)
                receivers += masses[i];
            __syncthreads();
        }
        if (threadIdx.x)
            continue;
        sk_particle *particle = &step->particles.records[event->particle];
        const float *change = arrays.change[event->particle];
        const sk_particle before = *particle;
        float velocity[3];
        for (int d = 0; d < 3; d++)
            velocity[d] = before.velocity[d] + change[d];
        event->becomes = is_recent(&arrays, event->key) ? SK_CUDA_TOO_EARLY : SK_CUDA_REVERTED;
        if (event->becomes == SK_CUDA_TOO_EARLY || before.flags & (SK_PARTICLE_DEAD | SK_PARTICLE_DRIVEN) ||
            !(receivers > 0.0) ||
            (arrays.look_ahead && !splash_stays_in_air(&world, arrays.duration, &before, velocity)))
            continue;
        event->becomes = SK_CUDA_LEFT;
        event->kinetic = 0.5 * (speed_squared(velocity) - speed_squared(before.velocity));
        const double own = sk_step_mass(step, material, (int64_t)event->particle);
        for (int d = 0; d < 3; d++) {
            event->share[d] = (float)((double)change[d] * own / receivers);
            particle->velocity[d] = velocity[d];
        }
        *(float *)(void *)&step->particles.attributes[arrays.age].data[event->particle] = (float)step->dt;
    }
}

/* Cells from one to another along an axis, the shorter way between joined sides. */
SK_DEVICE int cells_apart(const sk_grid *grid, int d, int from, int to)
{
    const int count = grid->blocks[d] << SK_BLOCK_LOG;
    int apart = to - from;
    if (grid->periodic >> d & 1)
        apart += apart > count / 2 ? -count : apart < -(count / 2) ? count : 0;
    return apart;
}

/* The particles around new droplets lose the momentum that these gain: a thread block an event. A particle that several
 * events reach is that of the first one, which takes off the shares of all in their order. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    share_impulses(const sk_step *step, const sk_cuda_constants *constants, const sk_cuda_data *data,
                   const __grid_constant__ sk_cuda_splash_arrays arrays)
{
    enum { MOST_NEAR = SELKIE_DIM == 3 ? 125 : 25 }; /* an event in each cell */
    __shared__ around_event around;
    __shared__ int near[MOST_NEAR], offset[MOST_NEAR][3]; /* events, and the cells from their cell to this one's */
    SK_CUDA_WAIT();
    const splash_world world = {step, constants, data};
    const sk_grid *grid = &step->grid;
    for (int64_t e = (int64_t)blockIdx.x; e < arrays.event_count; e += gridDim.x) {
        sk_cuda_splash_event *event = &arrays.events[e];
        int near_count = 0;
        double gain = 0.0;
        if (event->becomes != SK_CUDA_LEFT)
            continue;
        look_around(&world, event, &around);
        for (int64_t first = 0; first < arrays.event_count; first += blockDim.x) {
            const int64_t f = first + threadIdx.x;
            int apart[3] = {0, 0, 0}, total, is = f < arrays.event_count && arrays.events[f].becomes == SK_CUDA_LEFT;
            for (int d = 0; is && d < SELKIE_DIM; d++) {
                apart[d] = cells_apart(grid, d, arrays.events[f].at[d], event->at[d]);
                is = apart[d] >= -2 && apart[d] <= 2;
            }
            const int number = near_count + sk_cuda_scan(is, &total);
            near_count += total;
            if (!is || number >= MOST_NEAR)
                continue;
            near[number] = (int)f;
            for (int d = 0; d < 3; d++)
                offset[number][d] = apart[d];
        }
        __syncthreads();
        for (uint32_t n = threadIdx.x; n < around.before[CELLS_AROUND]; n += blockDim.x) {
            int cell, is_own = -1;
            const uint32_t p = particle_around(&around, n, &cell);
            const int at[3] = {cell % 3 - 1, cell / 3 % 3 - 1, SELKIE_DIM == 3 ? cell / 9 - 1 : 0};
            if (!receives(step, &arrays, p))
                continue;
            float *velocity = step->particles.records[p].velocity;
            const double before = speed_squared(velocity);
            for (int f = 0; f < near_count && is_own != 0; f++) {
                int reaches = 1;
                for (int d = 0; d < SELKIE_DIM; d++)
                    reaches &= offset[f][d] + at[d] >= -1 && offset[f][d] + at[d] <= 1;
                if (reaches && is_own < 0)
                    is_own = near[f] == (int)e;
                for (int d = 0; reaches && is_own > 0 && d < 3; d++)
                    velocity[d] -= arrays.events[near[f]].share[d];
            }
            if (is_own > 0)
                gain += 0.5 * (speed_squared(velocity) - before);
        }
        gain = sk_cuda_sum(gain);
        if (threadIdx.x == 0)
            event->kinetic += gain;
    }
}

/* --- the phases --- */

static selkie_code send(sk_cuda *cuda, sk_cuda_staged *to, size_t bytes, selkie_error *error)
{
    SK_CUDA_TRY(cudaMemcpyAsync(to->there, to->here, bytes, cudaMemcpyHostToDevice, cuda->stream), "splashes", error);
    return SELKIE_OK;
}

static selkie_code fetch(sk_cuda *cuda, sk_cuda_staged *from, size_t bytes, selkie_error *error)
{
    if (bytes)
        SK_CUDA_TRY(cudaMemcpyAsync(from->here, from->there, bytes, cudaMemcpyDeviceToHost, cuda->stream), "splashes",
                    error);
    return SELKIE_OK;
}

/* Droplets among the particles before the step: as many as the last step left, unless others have changed them. */
static selkie_code count_droplets(sk_step *step, const sk_splashes *s, int64_t *count, selkie_error *error)
{
    *count = s->flying;
    if (s->counted && !step->cuda->host_changed)
        return SELKIE_OK;
    SK_TRY(sk_cuda_fetch_particles(step, error));
    const float *ages = (const float *)(const void *)sk_particles_find_attribute(&step->particles, SK_SPLASH_AGE)->data;
    *count = 0;
    for (int64_t p = 0; p < step->particles.count; p++)
        *count += ages[p] > 0.0f;
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_cuda_part_droplets)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const sk_splashes *s = (const sk_splashes *)sk_step_state(step, &sk_method_splashes);
    int64_t count;
    SK_TRY(count_droplets(step, s, &count, error));
    SK_TRY(sk_cuda_take_splashes(step, error));
    sk_cuda_splash_arrays *arrays = &cuda->splashes->arrays;
    arrays->apart_count = count;
    if (!count)
        return SELKIE_OK;
    if (step->sources)
        sk_sources_find_running(step); /* the solids of the step depend on it */
    if (!cuda->began)
        SK_TRY(sk_cuda_make_room(step, error));
    SK_TRY(sk_cuda_begin(step, error));
    SK_TRY(sk_cuda_reserve_apart(step, count, error));
    SK_LAUNCH(cuda, (count_marked<OF_DROPLETS>), SK_CUDA_SUMS, SK_CUDA_THREADS, &cuda->device->step, *arrays);
    SK_LAUNCH(cuda, take_droplets, SK_CUDA_SUMS, SK_CUDA_THREADS, &cuda->device->step, *arrays);
    SK_CUDA_TRY(cudaGetLastError(), "splashes", error);
    cuda->has_keys = cuda->particles_here = 0;
    return SELKIE_OK;
}

/* Particles leave the liquid. The step on the device is still that of the move. */
static selkie_code leave_liquid(sk_step *step, const sk_splashes *s, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_cuda_splashes *own = cuda->splashes;
    sk_cuda_splash_arrays *arrays = &own->arrays;
    const size_t keys = s->recent_count * sizeof *arrays->recent;
    const sk_step *there = &cuda->device->step;
    const sk_cuda_constants *constants = &cuda->device->constants;
    SK_TRY(sk_cuda_stage(&own->events, (size_t)arrays->event_count * sizeof *arrays->events, error));
    SK_TRY(sk_cuda_stage(&own->recent, keys + 1, error));
    uint64_t *recent = (uint64_t *)(void *)own->recent.here;
    for (size_t n = 0; n < s->recent_count; n++)
        recent[n] = s->recent[n].key;
    SK_TRY(send(cuda, &own->recent, keys, error));
    arrays->events = (sk_cuda_splash_event *)(void *)own->events.there;
    arrays->recent = (const uint64_t *)(const void *)own->recent.there;
    arrays->recent_count = (int64_t)s->recent_count;
    SK_LAUNCH(cuda, (count_marked<OF_LEAVING>), SK_CUDA_SUMS, SK_CUDA_THREADS, there, *arrays);
    SK_LAUNCH(cuda, list_events, SK_CUDA_SUMS, SK_CUDA_THREADS, there, *arrays);
    SK_LAUNCH(cuda, judge_events, SK_CUDA_SUMS, SK_CUDA_THREADS, there, constants, cuda->data, *arrays);
    SK_LAUNCH(cuda, share_impulses, SK_CUDA_SUMS, SK_CUDA_THREADS, there, constants, cuda->data, *arrays);
    return fetch(cuda, &own->events, (size_t)arrays->event_count * sizeof *arrays->events, error);
}

/* Droplets fly, and come behind the particles. */
static selkie_code fly(sk_step *step, const sk_splashes *s, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_cuda_splashes *own = cuda->splashes;
    sk_splash_flight flight = sk_splash_begin_flight(step, s);
    const size_t pairs = s->pair_count * sizeof *s->pairs;
    SK_TRY(sk_cuda_stage(&own->pairs, pairs + 1, error));
    if (pairs) {
        memcpy(own->pairs.here, s->pairs, pairs);
        SK_TRY(send(cuda, &own->pairs, pairs, error));
    }
    flight.pairs = (sk_splash_pair *)(void *)own->pairs.there;
    SK_LAUNCH_SIMPLE(cuda, fly_droplets, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, &cuda->device->constants,
                     cuda->data, own->arrays, flight);
    SK_LAUNCH(cuda, sum_droplets, SK_CUDA_SUMS, SK_CUDA_THREADS, cuda->data, own->arrays);
    return fetch(cuda, &own->pairs, pairs, error);
}

/* Droplets come behind the particles. */
static selkie_code append(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_cuda_splashes *own = cuda->splashes;
    SK_LAUNCH(cuda, (count_marked<OF_RETURNED>), SK_CUDA_SUMS, SK_CUDA_THREADS, &cuda->device->step, own->arrays);
    SK_LAUNCH(cuda, put_back, SK_CUDA_SUMS, SK_CUDA_THREADS, &cuda->device->step, cuda->data, own->arrays);
    cuda->device_count += own->arrays.apart_count;
    cuda->results->count += own->arrays.apart_count;
    step->particles.count += own->arrays.apart_count;
    cuda->has_keys = 0;
    return fetch(cuda, &own->counts, sizeof *own->arrays.counts, error);
}

/* The state of the host after a step: counts, cells and pairs. Returns the number of new droplets. */
static selkie_code take_events(sk_step *step, sk_splashes *s, int64_t *made, selkie_error *error)
{
    const sk_cuda_splashes *own = step->cuda->splashes;
    const sk_cuda_splash_event *events = (const sk_cuda_splash_event *)(const void *)own->events.here;
    *made = 0;
    for (int64_t e = 0; e < own->arrays.event_count; e++) {
        s->counts.reverted += events[e].becomes == SK_CUDA_REVERTED;
        if (events[e].becomes != SK_CUDA_LEFT)
            continue;
        step->sums.kinetic += events[e].kinetic;
        SK_TRY(sk_splash_note(step, s, events[e].id, events[e].key, error));
        ++*made;
    }
    return SELKIE_OK;
}

/* Makes sure that the droplets have room behind the particles: they had some before the step, unless the memory of the
 * particles was taken anew since. */
static selkie_code make_room(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const size_t count = (size_t)(cuda->device_count + cuda->splashes->arrays.apart_count);
    if (count <= cuda->particle_capacity)
        return SELKIE_OK;
    SK_TRY(sk_cuda_reserve_particles(step, count, error));
    cuda->began = 0; /* the step is sent again */
    SK_TRY(sk_cuda_begin(step, error));
    cuda->began = 0;
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_cuda_fly_droplets)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_splashes *s = (sk_splashes *)sk_step_state(step, &sk_method_splashes);
    sk_cuda_splashes *own = cuda->splashes;
    sk_cuda_splash_arrays *arrays = &own->arrays;
    int64_t made = 0, returned = 0;
    const sk_cuda_splash_counts *counts = (const sk_cuda_splash_counts *)(const void *)own->counts.here;
    arrays->event_count = (int64_t)counts->events; /* they came before the results of the move */
    s->counts.looks += (int64_t)counts->looks;
    s->counts.beyond += (int64_t)counts->beyond;
    sk_splash_tidy_cells(s, step->end_time);
    if (arrays->apart_count || arrays->event_count) {
        SK_TRY(make_room(step, error));
        if (arrays->apart_count)
            SK_TRY(fly(step, s, error));
        if (arrays->event_count)
            SK_TRY(leave_liquid(step, s, error));
        if (arrays->apart_count)
            SK_TRY(append(step, error));
        SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "splashes", error);
        SK_CUDA_TRY(cudaGetLastError(), "splashes", error);
        cuda->particles_here = 0;
        sk_particles_moved(&step->particles);
    }
    if (arrays->apart_count) {
        memcpy(s->pairs, own->pairs.here, s->pair_count * sizeof *s->pairs);
        returned = (int64_t)counts->returned;
        step->sums.kinetic += counts->kinetic;
        for (int d = 0; d < step->dimension; d++)
            step->positions[d] += counts->positions[d];
    }
    s->counts.returned += returned;
    sk_splash_end_pairs(s);
    SK_TRY(take_events(step, s, &made, error));
    sk_splash_sort_pairs(s);
    s->flying = made + arrays->apart_count - returned;
    s->counted = 1;
    return SELKIE_OK;
}
