/* Liquid boundaries on the GPU: roles, and the velocities of candidates and boundary particles. Results are those of
 * the CPU, particle for particle; it works in a fixed order in two places.
 *
 * Exchange. Candidates exchange samples one after the other, in the order of the particles. What one of them does
 * depends on its own sample and on the holder of the sample ahead of it. So each candidate first finds out, all at
 * once, whether it would exchange. One thread then visits those that would, in their order. After an exchange it adds
 * those whose answer may have changed and whose turn is still to come: the other particle, and the candidates that look
 * at one of the two samples. Marks are bits, with bits over 32 and 1024 of them, so that the next one is found at once.
 *
 * Assignment. Vacant samples take their nearest fluid particle one after the other. The same result has no order: every
 * sample asks its nearest particle, a particle prefers the sample with the lowest number, and a sample that loses its
 * particle asks the next nearest one that no lower number has (Gale and Shapley 1962; the preferences of all particles
 * are equal, so there is one stable result). The particles lie in the order of the last sort: boxes around eight of
 * them, around four boxes and so on make a tree to search. */
#include "cuda/roles_parts.h"

extern "C" {
#include "methods/liquid_boundary/liquid_boundary.h"
}

/* --- Release and arrival --- */

static __global__ void begin_roles(const sk_step *step, sk_cuda_roles *there, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(n, there->all.sample_count)
    {
        there->all.holder[n] = there->looking[n] = 0;
        there->all.solid[n] = 0;
    }
    SK_CUDA_EACH(o, there->all.object_count)
    there->held[o] = 0;
    SK_CUDA_EACH(w, (size_t)step->particles.count / 31 + 4) /* all marks */
    data->ranks[w] = 0;
    if (blockIdx.x == 0 && threadIdx.x == 0)
        memset(&there->counts, 0, sizeof there->counts);
}

/* Adds the counts of a thread block. */
SK_DEVICE void add_count(unsigned long long *to, int value)
{
    value = sk_cuda_sum(value);
    if (threadIdx.x == 0 && value)
        atomicAdd(to, (unsigned long long)value);
}

static __global__ void __launch_bounds__(SK_CUDA_THREADS) update_roles(const sk_step *step, sk_cuda_roles *there)
{
    SK_CUDA_WAIT();
    const sk_roles all = roles_in_step(step, there);
    role_change change = {0, 0};
    int candidates = 0, boundaries = 0;
    SK_CUDA_EACH(p, step->particles.count)
    {
        if (!(all.samples[p] | all.roles[p]) || all.records[p].flags & SK_PARTICLE_DEAD)
            continue;
        const uint32_t sample = update_role(&all, p, &change);
        if (!sample)
            continue;
        all.holder[sample - 1] = (uint32_t)p + 1;
        all.solid[sample - 1] = all.roles[p] == SK_ROLE_BOUNDARY;
        candidates += all.roles[p] == SK_ROLE_CANDIDATE;
        boundaries += all.roles[p] == SK_ROLE_BOUNDARY;
    }
    add_count(&there->counts.released, change.released);
    add_count(&there->counts.arrived, change.arrived);
    add_count(&there->counts.candidates, candidates);
    add_count(&there->counts.boundaries, boundaries);
}

/* --- Exchange --- */

/* Marks of particles: a bit each, a bit for each word of these, a bit for each word of those. */
typedef struct mark_words {
    uint32_t *words[3];
    size_t count[3];
} mark_words;

SK_DEVICE mark_words marks_of(const sk_step *step, const sk_cuda_data *data)
{
    mark_words marks;
    size_t count = (size_t)step->particles.count;
    uint32_t *at = data->ranks; /* the sort needs them later */
    for (int level = 0; level < 3; level++) {
        count = (count + 31) / 32;
        marks.words[level] = at;
        marks.count[level] = count;
        at += count;
    }
    return marks;
}

SK_DEVICE void mark_particle(const mark_words *marks, size_t p)
{
    for (int level = 0; level < 3; level++, p /= 32)
        atomicOr(&marks->words[level][p / 32], 1u << p % 32);
}

/* The lowest bit that is set. */
SK_DEVICE size_t lowest_bit(uint32_t word)
{
    return (size_t)__popc((word & (~word + 1u)) - 1u);
}

/* Marks the candidates that would exchange samples now, and lists those that look at a sample. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    look_ahead(const sk_step *step, sk_cuda_roles *there, const sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_roles all = roles_in_step(step, there);
    const mark_words marks = marks_of(step, data);
    if (!there->counts.candidates)
        return;
    SK_CUDA_EACH(p, step->particles.count)
    {
        const uint32_t ahead = is_on_its_way(&all, p) ? sample_ahead(&all, p) : 0;
        if (!ahead)
            continue;
        data->order[p] = atomicExch(&there->looking[ahead - 1], (uint32_t)p + 1);
        if (exchange_is_shorter(&all, p, ahead))
            mark_particle(&marks, p);
    }
}

/* The turn of a candidate. */
SK_DEVICE void take_turn(const sk_roles *all, sk_cuda_roles *there, const mark_words *marks, const uint32_t *next,
                         size_t p)
{
    const uint32_t ahead = is_on_its_way(all, p) ? sample_ahead(all, p) : 0;
    if (!ahead || !exchange_is_shorter(all, p, ahead))
        return;
    const uint32_t both[2] = {all->samples[p], ahead};
    const size_t other = (size_t)all->holder[ahead - 1] - 1;
    exchange_samples_of(all, p, ahead);
    there->counts.exchanged++;
    if (other > p)
        mark_particle(marks, other);
    for (int n = 0; n < 2; n++)
        for (uint32_t c = there->looking[both[n] - 1]; c; c = next[c - 1])
            if (c - 1 > p)
                mark_particle(marks, c - 1);
}

/* Exchanges samples, by one thread in the order of the particles. Marks are added behind the one that has its turn. */
static __global__ void exchange_samples(const sk_step *step, sk_cuda_roles *there, const sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_roles all = roles_in_step(step, there);
    const mark_words marks = marks_of(step, data);
    if (!there->counts.candidates)
        return;
    for (size_t top = 0; top < marks.count[2]; top++)
        while (marks.words[2][top]) {
            const size_t middle = 32 * top + lowest_bit(marks.words[2][top]);
            while (marks.words[1][middle]) {
                const size_t word = 32 * middle + lowest_bit(marks.words[1][middle]);
                while (marks.words[0][word]) {
                    const size_t bit = lowest_bit(marks.words[0][word]);
                    marks.words[0][word] &= ~(1u << bit);
                    take_turn(&all, there, &marks, data->order, 32 * word + bit);
                }
                marks.words[1][middle] &= ~(1u << word % 32);
            }
            marks.words[2][top] &= ~(1u << middle % 32);
        }
}

/* Samples of each object with a particle. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS) count_held(sk_cuda_roles *there)
{
    SK_CUDA_WAIT();
    for (int o = 0; o < there->all.object_count; o++) {
        const sk_object_frame *object = &there->all.objects[o];
        int held = 0;
        SK_CUDA_EACH(n, object->voxels.count)
        held += there->all.holder[object->first + n] != 0;
        add_count(&there->held[o], held);
    }
}

/* --- Assignment --- */

enum {
    LEAF = 8,         /* particles of a leaf */
    BRANCHES = 4,     /* boxes of a box */
    TREE_LEVELS = 16, /* at most: 4^14 leaves */
    AT_ONCE = 4096,   /* samples that ask together: fewer lose their particles again */
    STACK = 3 * TREE_LEVELS + 1
};

static const uint32_t nobody = UINT32_MAX; /* has this particle; 0: it is not to be had */

typedef struct tree_box {
    float low[3], high[3]; /* m */
    uint32_t most;         /* the largest owner of its particles, or more */
    uint32_t unused;
} tree_box;

typedef struct fluid_tree {
    int levels;
    size_t particles, count[TREE_LEVELS];
    tree_box *boxes[TREE_LEVELS]; /* leaves first */
    uint32_t *owner;              /* [particles] 1 + the sample of the object that has it */
} fluid_tree;

SK_DEVICE int is_in_regions(const sk_cuda_shape *regions, int count, const float position[3])
{
    const double x[3] = {(double)position[0], (double)position[1], (double)position[2]};
    for (int r = 0; r < count; r++)
        if (sk_parts_distance(regions[r].parts, regions[r].count, x, -1.0, nullptr) < 0.0)
            return 1;
    return count == 0;
}

SK_DEVICE void empty_box(tree_box *box)
{
    for (int d = 0; d < 3; d++) {
        box->low[d] = INFINITY;
        box->high[d] = -INFINITY;
    }
    box->most = 0;
}

/* Fluid that may become a candidate, and the boxes of the leaves. */
static __global__ void find_fluid(const sk_step *step, const sk_cuda_roles *there, const sk_cuda_shape *regions,
                                  int region_count, const __grid_constant__ fluid_tree tree)
{
    SK_CUDA_WAIT();
    const sk_roles all = roles_in_step(step, there);
    SK_CUDA_EACH(leaf, tree.count[0])
    {
        tree_box box;
        empty_box(&box);
        for (size_t p = LEAF * leaf; p < LEAF * (leaf + 1) && p < tree.particles; p++) {
            const sk_particle *particle = &all.records[p];
            const int wanted = all.roles[p] == SK_ROLE_FLUID && !(particle->flags & SK_PARTICLE_DEAD) &&
                               is_in_regions(regions, region_count, particle->position);
            tree.owner[p] = wanted ? nobody : 0;
            for (int d = 0; wanted && d < 3; d++) {
                box.low[d] = fminf(box.low[d], particle->position[d]);
                box.high[d] = fmaxf(box.high[d], particle->position[d]);
            }
            box.most = wanted ? nobody : box.most;
        }
        tree.boxes[0][leaf] = box;
    }
}

/* The boxes of a level around those of the level below. */
static __global__ void join_boxes(int level, const __grid_constant__ fluid_tree tree)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(n, tree.count[level])
    {
        tree_box box;
        empty_box(&box);
        for (size_t m = BRANCHES * n; m < BRANCHES * (n + 1) && m < tree.count[level - 1]; m++) {
            const tree_box *below = &tree.boxes[level - 1][m];
            for (int d = 0; d < 3; d++) {
                box.low[d] = fminf(box.low[d], below->low[d]);
                box.high[d] = fmaxf(box.high[d], below->high[d]);
            }
            box.most = below->most > box.most ? below->most : box.most;
        }
        tree.boxes[level][n] = box;
    }
}

/* What other threads write while this one reads. Owners only become lower, so that an old value is too large. */
SK_DEVICE uint32_t latest(const uint32_t *value)
{
    return *(const volatile uint32_t *)value;
}

/* Squared distances (m2) that round as those of particles/kd_tree.c: a box is never farther than a point in it. */
SK_DEVICE float distance2_of_box(const tree_box *box, const float x[3])
{
    float sum = 0.0f;
    for (int d = 0; d < 3; d++) {
        const float below = box->low[d] - x[d], above = x[d] - box->high[d];
        float off = below > above ? below : above;
        off = off > 0.0f ? off : 0.0f;
        sum += off * off;
    }
    return sum;
}

SK_DEVICE float distance2_of_point(const float point[3], const float x[3])
{
    float sum = 0.0f;
    for (int d = 0; d < 3; d++) {
        const float off = point[d] - x[d];
        sum += off * off;
    }
    return sum;
}

/* A box to look into. */
typedef struct tree_visit {
    float distance2;
    int level;
    size_t box;
} tree_visit;

typedef struct nearest_fluid {
    size_t particle; /* SIZE_MAX: none */
    float distance2; /* m2 */
    uint32_t id;
} nearest_fluid;

/* The boxes of a box that may have something nearer, the nearest on top. */
SK_DEVICE int push_boxes(const fluid_tree *tree, const tree_visit *visit, uint32_t number, const float x[3],
                         const nearest_fluid *best, tree_visit stack[STACK], int depth)
{
    const int level = visit->level - 1, bottom = depth;
    for (size_t n = BRANCHES * visit->box; n < BRANCHES * (visit->box + 1) && n < tree->count[level]; n++) {
        const tree_box *box = &tree->boxes[level][n];
        if (latest(&box->most) <= number)
            continue;
        const float distance2 = distance2_of_box(box, x);
        if (distance2 > best->distance2)
            continue;
        int at = depth++;
        for (; at > bottom && stack[at - 1].distance2 < distance2; at--)
            stack[at] = stack[at - 1];
        stack[at].distance2 = distance2;
        stack[at].level = level;
        stack[at].box = n;
    }
    return depth;
}

/* The nearest particle that no sample below `number` has. The smallest id wins among equally near ones. */
SK_DEVICE nearest_fluid find_nearest(const fluid_tree *tree, const sk_particle *records, uint32_t number,
                                     const float x[3])
{
    tree_visit stack[STACK];
    nearest_fluid best = {SIZE_MAX, INFINITY, UINT32_MAX};
    int depth = 1;
    stack[0].distance2 = 0.0f;
    stack[0].level = tree->levels - 1;
    stack[0].box = 0;
    while (depth) {
        const tree_visit visit = stack[--depth];
        if (visit.distance2 > best.distance2)
            continue;
        if (visit.level) {
            depth = push_boxes(tree, &visit, number, x, &best, stack, depth);
            continue;
        }
        for (size_t p = LEAF * visit.box; p < LEAF * (visit.box + 1) && p < tree->particles; p++) {
            if (latest(&tree->owner[p]) <= number)
                continue;
            const float distance2 = distance2_of_point(records[p].position, x);
            if (distance2 < best.distance2 ||
                (distance2 == best.distance2 && (best.particle == SIZE_MAX || records[p].id < best.id))) {
                best.particle = p;
                best.distance2 = distance2;
                best.id = records[p].id;
            }
        }
    }
    return best;
}

/* The boxes around a particle with a new owner. Threads that do this at once may leave a value too large. */
SK_DEVICE void lower_boxes(const fluid_tree *tree, size_t p)
{
    size_t n = p / LEAF;
    for (int level = 0; level < tree->levels; level++, n /= BRANCHES) {
        uint32_t most = 0;
        const size_t children = level ? BRANCHES : LEAF, all = level ? tree->count[level - 1] : tree->particles;
        for (size_t m = children * n; m < children * (n + 1) && m < all; m++) {
            const uint32_t below = latest(level ? &tree->boxes[level - 1][m].most : &tree->owner[m]);
            most = below > most ? below : most;
        }
        if (most == latest(&tree->boxes[level][n].most))
            return;
        *(volatile uint32_t *)&tree->boxes[level][n].most = most;
    }
}

/* Vacant samples from number `first` on ask for particles. A sample that loses its particle goes on in the thread of
 * the one that took it. */
static __global__ void ask_for_fluid(const sk_step *step, const sk_cuda_roles *there, int o, uint32_t first,
                                     const __grid_constant__ fluid_tree tree)
{
    SK_CUDA_WAIT();
    const sk_roles all = roles_in_step(step, there);
    const sk_object_frame *object = &all.objects[o];
    SK_CUDA_EACH(i, AT_ONCE)
    {
        uint32_t number = first + (uint32_t)i + 1;
        if (number > object->voxels.count || all.holder[object->first + number - 1])
            continue;
        while (number != nobody) {
            double target[3];
            sample_position(object, &object->now, number - 1, target);
            const float x[3] = {(float)target[0], (float)target[1], all.dimension == 3 ? (float)target[2] : 0.0f};
            const nearest_fluid found = find_nearest(&tree, all.records, number, x);
            if (found.particle == SIZE_MAX)
                break; /* there is no more */
            const uint32_t before = atomicMin(&tree.owner[found.particle], number);
            if (before < number)
                continue; /* another one was here meanwhile */
            lower_boxes(&tree, found.particle);
            number = before;
        }
    }
}

static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    assign_fluid(const sk_step *step, sk_cuda_roles *there, int o, const __grid_constant__ fluid_tree tree)
{
    SK_CUDA_WAIT();
    const sk_roles all = roles_in_step(step, there);
    const uint32_t first = all.objects[o].first;
    int assigned = 0;
    SK_CUDA_EACH(p, tree.particles)
    {
        const uint32_t owner = tree.owner[p];
        if (owner == 0 || owner == nobody)
            continue;
        set_role(&all, p, first + owner, SK_ROLE_CANDIDATE);
        all.holder[first + owner - 1] = (uint32_t)p + 1;
        assigned++;
    }
    add_count(&there->counts.assigned, assigned);
    add_count(&there->counts.candidates, assigned);
}

/* --- Velocities --- */

static __global__ void __launch_bounds__(SK_CUDA_THREADS) animate(const sk_step *step, const sk_cuda_roles *there)
{
    SK_CUDA_WAIT();
    const sk_roles all = roles_in_step(step, there);
    SK_CUDA_EACH(p, step->particles.count)
    animate_particle(&all, p);
}

/* --- the host's side --- */

/* A part of one piece of memory; NULL before there is one. */
static void *take_part(char *memory, size_t *at, size_t bytes)
{
    void *part = memory ? memory + *at : NULL;
    *at += (bytes + 255) / 256 * 256;
    return part;
}

/* Addresses of the arrays in a piece of memory. Returns the bytes of all. */
static size_t lay_out(const sk_liquid_boundary *boundary, sk_cuda_roles *roles, sk_object_frame *frames, char *memory)
{
    const size_t samples = (size_t)boundary->sample_count + 1, objects = (size_t)boundary->object_count;
    size_t at = 0;
    take_part(memory, &at, sizeof *roles);
    roles->all.objects = (const sk_object_frame *)take_part(memory, &at, objects * sizeof *frames);
    roles->all.holder = (uint32_t *)take_part(memory, &at, samples * sizeof(uint32_t));
    roles->looking = (uint32_t *)take_part(memory, &at, samples * sizeof(uint32_t));
    roles->all.solid = (uint8_t *)take_part(memory, &at, samples);
    roles->held = (unsigned long long *)take_part(memory, &at, objects * sizeof *roles->held);
    for (size_t o = 0; o < objects; o++) {
        const sk_voxels *voxels = &boundary->objects[o].voxels;
        const size_t cells = (size_t)voxels->cells[0] * (size_t)voxels->cells[1] * (size_t)voxels->cells[2];
        frames[o].voxels.centers = (float(*)[3])take_part(memory, &at, voxels->count * sizeof *voxels->centers);
        frames[o].voxels.places = (int32_t *)take_part(memory, &at, cells * sizeof *voxels->places);
    }
    return at;
}

static int attribute_of(const sk_particles *particles, const char *name)
{
    int a = 0;
    while (a < particles->attribute_count - 1 && strcmp(particles->attributes[a].name, name) != 0)
        a++;
    return a;
}

/* Takes the memory, and sends what does not change: the samples of the objects. */
static selkie_code take_roles(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const sk_liquid_boundary *boundary = step->objects;
    sk_cuda_roles roles;
    memset(&roles, 0, sizeof roles);
    cuda->role_frames = (sk_object_frame *)calloc((size_t)boundary->object_count, sizeof *cuda->role_frames);
    if (!cuda->role_frames)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "objects: no memory");
    const size_t bytes = lay_out(boundary, &roles, cuda->role_frames, NULL);
    SK_CUDA_TRY(cudaMalloc((void **)&cuda->roles, bytes), "the samples of objects", error);
    cuda->role_bytes = bytes;
    lay_out(boundary, &roles, cuda->role_frames, (char *)cuda->roles);
    roles.all.object_count = boundary->object_count;
    roles.all.dimension = step->dimension;
    roles.all.sample_count = boundary->sample_count;
    roles.sample = attribute_of(&step->particles, "sample");
    roles.role = attribute_of(&step->particles, "role");
    SK_CUDA_TRY(cudaMemcpyAsync(cuda->roles, &roles, sizeof roles, cudaMemcpyHostToDevice, cuda->stream),
                "the samples of objects", error);
    for (int o = 0; o < boundary->object_count; o++) {
        const sk_voxels *from = &boundary->objects[o].voxels, *to = &cuda->role_frames[o].voxels;
        const size_t cells = (size_t)from->cells[0] * (size_t)from->cells[1] * (size_t)from->cells[2];
        SK_CUDA_TRY(cudaMemcpyAsync(to->centers, from->centers, from->count * sizeof *from->centers,
                                    cudaMemcpyHostToDevice, cuda->stream),
                    "the samples of objects", error);
        SK_CUDA_TRY(cudaMemcpyAsync(to->places, from->places, cells * sizeof *from->places, cudaMemcpyHostToDevice,
                                    cuda->stream),
                    "the samples of objects", error);
    }
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "the samples of objects", error);
    return SELKIE_OK;
}

void sk_cuda_release_roles(sk_cuda *cuda)
{
    if (cuda->roles)
        cudaFree(cuda->roles);
    free(cuda->role_frames);
    cuda->roles = NULL;
    cuda->role_frames = NULL;
    cuda->role_bytes = 0;
}

/* Sends poses and releases of this step. */
static selkie_code send_frames(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const sk_liquid_boundary *boundary = step->objects;
    sk_cuda_roles roles;
    lay_out(boundary, &roles, cuda->role_frames, (char *)cuda->roles);
    for (int o = 0; o < boundary->object_count; o++) {
        const sk_voxels there = cuda->role_frames[o].voxels;
        cuda->role_frames[o] = boundary->frames[o];
        cuda->role_frames[o].voxels.centers = there.centers;
        cuda->role_frames[o].voxels.places = there.places;
    }
    SK_CUDA_TRY(cudaMemcpyAsync((void *)roles.all.objects, cuda->role_frames,
                                (size_t)boundary->object_count * sizeof *cuda->role_frames, cudaMemcpyHostToDevice,
                                cuda->stream),
                "the objects", error);
    return SELKIE_OK;
}

static void launch_roles(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    (void)host;
    SK_LAUNCH_SIMPLE(cuda, begin_roles, SK_CUDA_WIDE / 4, SK_CUDA_THREADS, step, cuda->roles, cuda->data);
    SK_LAUNCH(cuda, update_roles, SK_CUDA_SUMS, SK_CUDA_THREADS, step, cuda->roles);
    SK_LAUNCH_SIMPLE(cuda, look_ahead, SK_CUDA_WIDE, SK_CUDA_THREADS, step, cuda->roles, cuda->data);
    SK_LAUNCH_SIMPLE(cuda, exchange_samples, 1, 1, step, cuda->roles, cuda->data);
    SK_LAUNCH(cuda, count_held, SK_CUDA_SUMS / 2, SK_CUDA_THREADS, cuda->roles);
}

/* Lays out the tree over the particles. Returns its bytes. */
static size_t plan_tree(const sk_cuda *cuda, fluid_tree *tree)
{
    size_t count = ((size_t)cuda->device_count + LEAF - 1) / LEAF, all = 0;
    memset(tree, 0, sizeof *tree);
    tree->particles = (size_t)cuda->device_count;
    tree->owner = cuda->shadow.ranks; /* free until the sort */
    for (;; count = (count + BRANCHES - 1) / BRANCHES) {
        tree->count[tree->levels++] = count;
        all += count;
        if (count <= 1 || tree->levels == TREE_LEVELS)
            return all * sizeof(tree_box);
    }
}

/* Every vacant sample of an object takes the nearest remaining fluid particle. */
static selkie_code assign(sk_step *step, int o, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const sk_object *object = &step->objects->objects[o];
    const sk_step *there = &cuda->device->step;
    const sk_cuda_shape *regions = cuda->solids.shapes + cuda->solids.first_region;
    for (int before = 0; before < o; before++)
        regions += step->objects->objects[before].def->region_count;
    fluid_tree tree;
    tree_box *boxes;
    const size_t bytes = plan_tree(cuda, &tree);
    if (!tree.particles)
        return SELKIE_OK;
    SK_TRY(sk_cuda_take(cuda, &boxes, bytes, 0, error));
    tree.boxes[0] = boxes;
    for (int level = 1; level < tree.levels; level++)
        tree.boxes[level] = tree.boxes[level - 1] + tree.count[level - 1];
    SK_LAUNCH_SIMPLE(cuda, find_fluid, SK_CUDA_WIDE, SK_CUDA_THREADS, there, cuda->roles, regions,
                     object->def->region_count, tree);
    for (int level = 1; level < tree.levels; level++)
        SK_LAUNCH_SIMPLE(cuda, join_boxes, SK_CUDA_WIDE, SK_CUDA_THREADS, level, tree);
    for (size_t first = 0; first < object->voxels.count; first += AT_ONCE)
        SK_LAUNCH_SIMPLE(cuda, ask_for_fluid, AT_ONCE / 32, 32, there, cuda->roles, o, (uint32_t)first, tree);
    SK_LAUNCH(cuda, assign_fluid, SK_CUDA_SUMS, SK_CUDA_THREADS, there, cuda->roles, o, tree);
    SK_CUDA_TRY(cudaGetLastError(), "the search for candidates", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "the search for candidates", error);
    sk_cuda_give(cuda, boxes, bytes);
    return SELKIE_OK;
}

/* Objects with vacant samples look for fluid. Whether they do depends on the particles: the host waits while an object
 * gathers. */
static selkie_code search(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_liquid_boundary *boundary = step->objects;
    sk_cuda_roles roles;
    int gathers = 0;
    lay_out(boundary, &roles, cuda->role_frames, (char *)cuda->roles);
    for (int o = 0; o < boundary->object_count; o++)
        gathers |= boundary->objects[o].gathers;
    for (int o = 0; gathers && o < boundary->object_count; o++) {
        unsigned long long held = 0;
        SK_CUDA_TRY(cudaMemcpyAsync(&held, roles.held + o, sizeof held, cudaMemcpyDeviceToHost, cuda->stream),
                    "the objects", error);
        SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "the objects", error);
        boundary->objects[o].held = (int64_t)held;
        if (sk_object_searches(&boundary->objects[o], step))
            SK_TRY(assign(step, o, error));
    }
    return SELKIE_OK;
}

selkie_code sk_cuda_roles_of_particles(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    if (!cuda->began)
        SK_TRY(sk_cuda_make_room(step, error));
    SK_TRY(sk_cuda_begin(step, error));
    if (!cuda->roles)
        SK_TRY(take_roles(step, error));
    sk_liquid_boundary_begin(step);
    SK_TRY(send_frames(step, error));
    SK_TRY(sk_cuda_run(step, "roles", launch_roles, error));
    cuda->particles_here = 0;
    return search(step, error);
}

static void launch_animate(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_LAUNCH_SIMPLE(cuda, animate, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, cuda->roles);
}

selkie_code sk_cuda_animate(sk_step *step, selkie_error *error)
{
    return sk_cuda_run(step, "animate", launch_animate, error);
}
