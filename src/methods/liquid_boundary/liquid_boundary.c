#include "methods/liquid_boundary/liquid_boundary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "particles/kd_tree.h"

/* Vacant samples search for a particle again after this many steps; fluid may have come near since. */
enum { SEARCH_EVERY = 16 };

static const double soon = 1e-9; /* s  a time this close counts as reached */

/* --- Making and freeing --- */

/* Finds both ends of the object along each sweep direction. */
static selkie_code measure_sweeps(sk_liquid_boundary *boundary, sk_object *object, selkie_error *error)
{
    const selkie_object_def *def = object->def;
    object->sweep = sk_allocate(boundary->memory, ((size_t)def->timeline_count + 1) * 2 * sizeof *object->sweep);
    if (!object->sweep)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "objects: no memory");
    for (int t = 0; t < def->timeline_count; t++) {
        double *ends = object->sweep + 2 * t;
        const double *direction = def->timeline[t].release_direction;
        ends[0] = INFINITY;
        ends[1] = -INFINITY;
        for (size_t n = 0; n < object->voxels.count; n++) {
            const float *x = object->voxels.centers[n];
            double along = x[0] * direction[0] + x[1] * direction[1] + x[2] * direction[2];
            ends[0] = fmin(ends[0], along);
            ends[1] = fmax(ends[1], along);
        }
    }
    return SELKIE_OK;
}

static selkie_code make_object(sk_liquid_boundary *boundary, const sk_step *step, int index, selkie_error *error)
{
    const selkie_scene *scene = step->scene;
    sk_object *object = &boundary->objects[index];
    const selkie_object_def *def = object->def = &scene->objects[index];
    object->motion = (selkie_obstacle_def){.keyframe_count = def->keyframe_count, .keyframes = def->keyframes};
    memcpy(object->motion.center, def->center, sizeof def->center);

    /* Samples on the voxels of the shape. */
    double up[3], cell = def->spacing * boundary->spacing;
    selkie_scene_up(scene, up);
    char what[64];
    snprintf(what, sizeof what, "objects[%d].shape", index);
    sk_shape *shape;
    sk_shape_options options = {.dimension = step->dimension,
                                .up = up,
                                .folder = scene->folder,
                                .sample_size = 0.5 * cell,
                                .what = what,
                                .memory = boundary->memory};
    SK_TRY(sk_shape_create(&def->shape, &options, &shape, error));
    int layers = def->fill == SELKIE_FILL_VOLUME ? 0 : (int)fmax(1.0, fmin(nearbyint(def->thickness / cell), 254.0));
    const sk_voxels_options voxels = {.cell = cell,
                                      .layers = layers,
                                      .low = step->grid.low,
                                      .high = step->grid.high,
                                      .threads = step->threads,
                                      .what = what,
                                      .memory = boundary->memory};
    selkie_code code = sk_voxels_create(shape, &voxels, &object->voxels, error);
    sk_shape_destroy(shape);
    SK_TRY(code);

    if (!object->voxels.count)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: holds no particle: it is smaller than their spacing of %g m",
                       what, cell);
    if (object->voxels.count + boundary->sample_count > UINT32_MAX / 2)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: %zu particles; at most %u for all objects", what,
                       object->voxels.count, UINT32_MAX / 2);
    object->first = boundary->sample_count;
    boundary->sample_count += (uint32_t)object->voxels.count;
    SK_TRY(measure_sweeps(boundary, object, error));

    /* Shapes of the regions. */
    object->regions = sk_allocate_zeroed(boundary->memory, ((size_t)def->region_count + 1) * sizeof *object->regions);
    if (!object->regions)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "objects: no memory");
    options.sample_size = boundary->spacing;
    for (int r = 0; r < def->region_count; r++) {
        snprintf(what, sizeof what, "objects[%d].regions[%d]", index, r);
        SK_TRY(sk_shape_create(&def->regions[r], &options, &object->regions[r], error));
    }
    return SELKIE_OK;
}

/* Liquid closer to a sample than this, in particle spacings, is removed. */
#define LEAST_GAP 0.8

/* Is a point in the object's frame too close to one of its samples? */
static int is_occupied(const sk_object *object, double gap, const double local[3])
{
    const sk_voxels *voxels = &object->voxels;
    int reach = (int)ceil(gap / voxels->cell), last = voxels->dimension == 3 ? reach : 0;
    for (int k = -last; k <= last; k++)
        for (int j = -reach; j <= reach; j++)
            for (int i = -reach; i <= reach; i++) {
                double x[3] = {local[0] + i * voxels->cell, local[1] + j * voxels->cell, local[2] + k * voxels->cell};
                int32_t place = sk_voxels_at(voxels, x);
                if (place < 0)
                    continue;
                double distance2 = 0.0;
                for (int d = 0; d < voxels->dimension; d++)
                    distance2 += (voxels->centers[place][d] - local[d]) * (voxels->centers[place][d] - local[d]);
                if (distance2 < gap * gap)
                    return 1;
            }
    return 0;
}

static void set_role(sk_particles *particles, int64_t p, uint32_t sample, int role)
{
    uint32_t *samples = sk_particles_find_attribute(particles, "sample")->data;
    uint32_t *roles = sk_particles_find_attribute(particles, "role")->data;
    sk_particle *particle = &particles->records[p];
    samples[p] = sample;
    roles[p] = (uint32_t)role;
    particle->flags &= ~(uint32_t)(SK_PARTICLE_CANDIDATE | SK_PARTICLE_BOUNDARY);
    particle->flags |= role == SK_ROLE_BOUNDARY    ? SK_PARTICLE_BOUNDARY
                       : role == SK_ROLE_CANDIDATE ? SK_PARTICLE_CANDIDATE
                                                   : 0u;
}

/* Places the particles of an object that exists from the start. */
static selkie_code place_object(sk_object *object, double spacing, sk_step *step, selkie_error *error)
{
    sk_particles *particles = &step->particles;
    sk_pose pose;
    sk_pose_at(&object->motion, step->time, &pose);
    const double gap = LEAST_GAP * spacing;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t p = 0; p < particles->count; p++) {
        sk_particle *particle = &particles->records[p];
        double x[3] = {particle->position[0], particle->position[1], particle->position[2]}, local[3];
        sk_pose_to_local(&pose, x, local);
        if (!(particle->flags & SK_PARTICLE_BOUNDARY) && is_occupied(object, gap, local))
            particle->flags |= SK_PARTICLE_DEAD;
    }
    sk_particles_drop_dead(particles);
    SK_TRY(sk_particles_reserve(particles, particles->count + (int64_t)object->voxels.count, error));
    for (uint32_t n = 0; n < object->voxels.count; n++) {
        double x[3], v[3];
        sk_object_sample(object, &pose, n, x);
        sk_pose_velocity(&pose, x, v);
        if (step->dimension == 2)
            x[2] = v[2] = 0.0;
        sk_particles_append(particles, x, v);
        set_role(particles, particles->count - 1, object->first + n + 1, SK_ROLE_BOUNDARY);
    }
    return SELKIE_OK;
}

/* Makes the samples of all objects, and checks that the objects stay inside the domain. */
static selkie_code make_objects(sk_liquid_boundary *boundary, const sk_step *step, selkie_error *error)
{
    memset(boundary, 0, sizeof *boundary);
    boundary->memory = step->memory;
    boundary->spacing = pow(step->particle_mass / step->density, 1.0 / step->dimension);
    boundary->objects =
        sk_allocate_zeroed(step->memory, ((size_t)step->scene->object_count + 1) * sizeof *boundary->objects);
    if (!boundary->objects)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "objects: no memory");
    boundary->object_count = step->scene->object_count;
    for (int o = 0; o < boundary->object_count; o++) {
        SK_TRY(make_object(boundary, step, o, error));
        SK_TRY(sk_object_check_motion(step, &boundary->objects[o], o, error));
    }
    return SELKIE_OK;
}

selkie_code sk_liquid_boundary_check(const sk_step *step, selkie_error *error)
{
    sk_liquid_boundary boundary;
    selkie_code code = make_objects(&boundary, step, error);
    sk_liquid_boundary_free(&boundary);
    return code;
}

selkie_code sk_liquid_boundary_init(sk_liquid_boundary *boundary, sk_step *step, selkie_error *error)
{
    SK_TRY(make_objects(boundary, step, error));
    if (!sk_particles_add_attribute(&step->particles, "sample", 1, 1) ||
        !sk_particles_add_attribute(&step->particles, "role", 1, 1))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "objects: no memory for the particles' roles");
    boundary->holder =
        sk_allocate_zeroed(step->memory, ((size_t)boundary->sample_count + 1) * sizeof *boundary->holder);
    boundary->solid = sk_allocate_zeroed(step->memory, (size_t)boundary->sample_count + 1);
    if (!boundary->holder || !boundary->solid)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "objects: no memory for %u samples", boundary->sample_count);
    for (int o = 0; o < boundary->object_count; o++)
        if (boundary->objects[o].def->start_solid)
            SK_TRY(place_object(&boundary->objects[o], boundary->spacing, step, error));
    return SELKIE_OK;
}

void sk_liquid_boundary_free(sk_liquid_boundary *boundary)
{
    for (int o = 0; boundary->objects && o < boundary->object_count; o++) {
        sk_object *object = &boundary->objects[o];
        if (object->voxels.memory)
            sk_voxels_free(&object->voxels);
        for (int r = 0; object->regions && r < object->def->region_count; r++)
            if (object->regions[r])
                sk_shape_destroy(object->regions[r]);
        sk_release(boundary->memory, object->regions);
        sk_release(boundary->memory, object->sweep);
    }
    sk_release(boundary->memory, boundary->objects);
    sk_release(boundary->memory, boundary->holder);
    sk_release(boundary->memory, boundary->solid);
    memset(boundary, 0, sizeof *boundary);
}

/* --- Roles: release, arrival --- */

/* Finds the current entry of the timeline, and whether it takes candidates. */
static void look_up_entry(sk_object *object, double time)
{
    const selkie_object_def *def = object->def;
    object->entry = NULL;
    object->gathers = 0;
    for (int t = 0; t < def->timeline_count && def->timeline[t].assemble <= time + soon; t++) {
        object->entry = &def->timeline[t];
        object->gathers = object->entry->release < 0.0 || time + soon < object->entry->release;
    }
}

/* Does a sample release its particle at this time? */
static int is_released(const sk_object *object, uint32_t n, double time)
{
    const selkie_timeline_entry *entry = object->entry;
    if (!entry) /* an object from the start without a timeline stays; any other has no particles yet */
        return !object->def->start_solid;
    if (object->gathers)
        return 0;
    if (entry->release_mode == SELKIE_RELEASE_INSTANT || !(entry->release_duration > 0.0))
        return 1;
    double order = sk_random_float(0x72656c65617365ULL, n, 0);
    if (entry->release_mode == SELKIE_RELEASE_SWEEP) {
        const double *ends = object->sweep + 2 * (entry - object->def->timeline), *d = entry->release_direction;
        const float *x = object->voxels.centers[n];
        double along = x[0] * d[0] + x[1] * d[1] + x[2] * d[2];
        order = ends[1] > ends[0] ? (along - ends[0]) / (ends[1] - ends[0]) : 0.0;
    }
    return time + soon >= entry->release + order * entry->release_duration;
}

static sk_object *object_of(const sk_liquid_boundary *boundary, uint32_t sample)
{
    int o = boundary->object_count - 1;
    while (o > 0 && sample - 1 < boundary->objects[o].first)
        o--;
    return &boundary->objects[o];
}

/* Updates a particle that belongs to a sample. Returns the sample's number if the particle keeps it, else 0. */
static uint32_t update_role(const sk_liquid_boundary *boundary, sk_step *step, int64_t p, uint32_t *samples,
                            uint32_t *roles, int64_t *released, int64_t *arrived)
{
    sk_particle *particle = &step->particles.records[p];
    uint32_t sample = samples[p];
    if (sample > boundary->sample_count) /* an invalid checkpoint */
        sample = 0;
    const sk_object *object = sample ? object_of(boundary, sample) : NULL;
    uint32_t n = sample ? sample - 1 - object->first : 0;
    double x[3] = {particle->position[0], particle->position[1], particle->position[2]};

    /* A particle without a sample, or with a released one, becomes fluid. */
    if (!sample || is_released(object, n, step->time)) {
        if (particle->flags & SK_PARTICLE_BOUNDARY && sample) {
            /* It leaves with the velocity of the solid. */
            double v[3];
            sk_pose_velocity(&object->now, x, v);
            for (int d = 0; d < step->dimension; d++)
                particle->velocity[d] = (float)v[d];
        }
        set_role(&step->particles, p, 0, SK_ROLE_FLUID);
        ++*released;
        return 0;
    }

    /* A candidate near its sample becomes a boundary particle. */
    if (roles[p] == SK_ROLE_CANDIDATE) {
        double target[3], distance2 = 0.0, near = object->def->arrival * boundary->spacing;
        sk_object_sample(object, &object->now, n, target);
        for (int d = 0; d < step->dimension; d++)
            distance2 += (target[d] - x[d]) * (target[d] - x[d]);
        if (distance2 <= near * near) {
            set_role(&step->particles, p, sample, SK_ROLE_BOUNDARY);
            ++*arrived;
        }
    }
    return sample;
}

static void update_roles(sk_liquid_boundary *boundary, sk_step *step)
{
    sk_particles *particles = &step->particles;
    uint32_t *samples = sk_particles_find_attribute(particles, "sample")->data;
    uint32_t *roles = sk_particles_find_attribute(particles, "role")->data;
    int64_t released = 0, arrived = 0, candidates = 0, boundaries = 0;
    memset(boundary->holder, 0, boundary->sample_count * sizeof *boundary->holder);
    memset(boundary->solid, 0, boundary->sample_count);
#pragma omp parallel for num_threads(step->threads) schedule(static)                                                   \
    reduction(+ : released, arrived, candidates, boundaries)
    for (int64_t p = 0; p < particles->count; p++) {
        if (!(samples[p] | roles[p]) || particles->records[p].flags & SK_PARTICLE_DEAD)
            continue;
        uint32_t sample = update_role(boundary, step, p, samples, roles, &released, &arrived);
        if (!sample)
            continue;
        boundary->holder[sample - 1] = (uint32_t)p + 1; /* each sample has one holder */
        boundary->solid[sample - 1] = roles[p] == SK_ROLE_BOUNDARY;
        candidates += roles[p] == SK_ROLE_CANDIDATE;
        boundaries += roles[p] == SK_ROLE_BOUNDARY;
    }
    boundary->released = released;
    boundary->arrived = arrived;
    boundary->candidates = candidates;
    boundary->boundaries = boundaries;
}

/* --- Roles: exchange --- */

static double distance2(const double a[3], const double b[3])
{
    return (a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2]);
}

static void local_position(const sk_object *object, const sk_step *step, int64_t p, double local[3])
{
    const float *x = step->particles.records[p].position;
    const double world[3] = {x[0], x[1], x[2]};
    sk_pose_to_local(&object->now, world, local);
}

static void local_sample(const sk_object *object, uint32_t n, double local[3])
{
    for (int d = 0; d < 3; d++)
        local[d] = object->voxels.centers[n][d];
}

/* Looks one cell ahead of a candidate. If the particle of the sample there is closer to the candidate's own sample, the
 * two exchange samples. */
static void exchange_ahead(sk_liquid_boundary *boundary, sk_object *object, sk_step *step, int64_t p, uint32_t *samples)
{
    double x[3], own[3], ahead[3], other[3], y[3];
    uint32_t n = samples[p] - 1 - object->first;
    local_position(object, step, p, x);
    local_sample(object, n, own);
    double way2 = distance2(x, own), cell = object->voxels.cell;
    if (way2 <= cell * cell)
        return; /* it has nearly arrived */
    for (int d = 0; d < 3; d++)
        ahead[d] = x[d] + (own[d] - x[d]) * cell / sqrt(way2);
    int32_t m = sk_voxels_at(&object->voxels, ahead);
    uint32_t holder = m < 0 || (uint32_t)m == n ? 0 : boundary->holder[object->first + (uint32_t)m];
    if (!holder)
        return;
    int64_t q = (int64_t)holder - 1;
    local_position(object, step, q, y);
    local_sample(object, (uint32_t)m, other);
    if (!(distance2(x, other) + distance2(y, own) < way2 + distance2(y, other)))
        return;
    set_role(&step->particles, p, object->first + (uint32_t)m + 1, SK_ROLE_CANDIDATE);
    set_role(&step->particles, q, object->first + n + 1, SK_ROLE_CANDIDATE);
    boundary->holder[object->first + (uint32_t)m] = (uint32_t)p + 1;
    boundary->holder[object->first + n] = (uint32_t)q + 1;
    boundary->solid[object->first + (uint32_t)m] = boundary->solid[object->first + n] = 0;
    boundary->exchanged++;
}

/* Serial, in the order of the particles, so the result does not depend on threads. */
static void exchange_samples(sk_liquid_boundary *boundary, sk_step *step)
{
    sk_particles *particles = &step->particles;
    uint32_t *samples = sk_particles_find_attribute(particles, "sample")->data;
    boundary->exchanged = 0;
    for (int64_t p = 0; boundary->candidates && p < particles->count; p++)
        if (samples[p] &&
            (particles->records[p].flags & (SK_PARTICLE_CANDIDATE | SK_PARTICLE_DEAD)) == SK_PARTICLE_CANDIDATE)
            exchange_ahead(boundary, object_of(boundary, samples[p]), step, p, samples);
}

/* --- Roles: assignment --- */

static int in_regions(const sk_object *object, const float position[3])
{
    const double x[3] = {position[0], position[1], position[2]};
    for (int r = 0; r < object->def->region_count; r++)
        if (sk_shape_inside(object->regions[r], x))
            return 1;
    return object->def->region_count == 0;
}

/* Collects fluid that may become a candidate, as points of a tree. Their order does not matter. */
static selkie_code collect_fluid(const sk_object *object, const sk_step *step, sk_kd_point **points, size_t *count,
                                 selkie_error *error)
{
    const sk_particles *particles = &step->particles;
    const uint32_t *roles = sk_particles_find_attribute(particles, "role")->data;
    uint8_t *wanted = sk_allocate(step->memory, (size_t)particles->count + 1);
    *count = 0;
    *points = NULL;
    if (!wanted)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "objects: no memory to look for candidates");

    /* Mark the fluid inside the regions. */
    int64_t found = 0;
#pragma omp parallel for num_threads(step->threads) schedule(static) reduction(+ : found)
    for (int64_t p = 0; p < particles->count; p++) {
        const sk_particle *particle = &particles->records[p];
        wanted[p] = roles[p] == SK_ROLE_FLUID && !(particle->flags & SK_PARTICLE_DEAD) &&
                    in_regions(object, particle->position);
        found += wanted[p];
    }

    /* Copy the marked particles. */
    *points = sk_allocate(step->memory, ((size_t)found + 1) * sizeof **points);
    for (int64_t p = 0; *points && p < particles->count; p++)
        if (wanted[p]) {
            sk_kd_point *point = &(*points)[(*count)++];
            memcpy(point->position, particles->records[p].position, sizeof point->position);
            point->id = particles->records[p].id;
            point->index = (uint32_t)p;
        }
    sk_release(step->memory, wanted);
    if (!*points)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "objects: no memory to look for candidates among %lld particles",
                       (long long)found);
    return SELKIE_OK;
}

/* Every vacant sample takes the nearest remaining fluid particle (Section 3.1). */
static selkie_code assign(sk_liquid_boundary *boundary, sk_object *object, sk_step *step, selkie_error *error)
{
    sk_kd_point *points;
    size_t count;
    SK_TRY(collect_fluid(object, step, &points, &count, error));
    sk_kd_tree *tree;
    selkie_code code = sk_kd_tree_create(count, points, step->threads, "objects", step->memory, &tree, error);
    sk_release(step->memory, points);
    SK_TRY(code);
    for (uint32_t n = 0; n < object->voxels.count && sk_kd_tree_count(tree); n++) {
        if (boundary->holder[object->first + n])
            continue;
        double target[3];
        sk_object_sample(object, &object->now, n, target);
        const float x[3] = {(float)target[0], (float)target[1], step->dimension == 3 ? (float)target[2] : 0.0f};
        sk_kd_point nearest;
        sk_kd_tree_take(tree, x, &nearest);
        set_role(&step->particles, nearest.index, object->first + n + 1, SK_ROLE_CANDIDATE);
        boundary->holder[object->first + n] = nearest.index + 1;
        boundary->assigned++;
        boundary->candidates++;
        object->held++;
    }
    sk_kd_tree_destroy(tree);
    return SELKIE_OK;
}

selkie_code sk_liquid_boundary_roles(sk_step *step, selkie_error *error)
{
    sk_liquid_boundary *boundary = step->objects;
    for (int o = 0; o < boundary->object_count; o++) {
        sk_object *object = &boundary->objects[o];
        sk_pose_at(&object->motion, step->time, &object->now);
        sk_pose_at(&object->motion, step->time + step->dt, &object->next);
        look_up_entry(object, step->time);
    }
    update_roles(boundary, step);
    exchange_samples(boundary, step);
    boundary->assigned = boundary->vacant = 0;
    for (int o = 0; o < boundary->object_count; o++) {
        sk_object *object = &boundary->objects[o];
        object->held = 0;
        for (size_t n = 0; n < object->voxels.count; n++)
            object->held += boundary->holder[object->first + n] != 0;
        int64_t vacant = (int64_t)object->voxels.count - object->held;
        if (object->gathers && vacant && (object->held == 0 || step->step_count % SEARCH_EVERY == 0))
            SK_TRY(assign(boundary, object, step, error));
        if (object->gathers)
            boundary->vacant += (int64_t)object->voxels.count - object->held;
    }
    return SELKIE_OK;
}

/* --- Velocities --- */

void sk_candidate_velocity(const selkie_object_def *def, double spacing, double dt, const double offset[3],
                           double velocity[3])
{
    double distance = sqrt(offset[0] * offset[0] + offset[1] * offset[1] + offset[2] * offset[2]);
    double range = def->easing_distance > 0.0 ? def->easing_distance : 4.0 * spacing;
    double q = fmin(distance / range, 1.0), speed = def->beta;
    if (def->easing == SELKIE_EASING_LINEAR)
        speed *= 0.1 + 0.9 * q;
    else if (def->easing == SELKIE_EASING_SMOOTH)
        speed *= 0.1 + 0.9 * q * q * (3.0 - 2.0 * q);
    if (dt > 0.0)
        speed = fmin(speed, distance / dt);
    for (int d = 0; d < 3; d++)
        velocity[d] = distance > 0.0 ? speed * offset[d] / distance : 0.0;
}

/* Eq. 5, without the part of the old velocity that would carry the candidate past its target in this step. The
 * animation is relative to the object; otherwise an object faster than the eased speed would leave its candidates
 * behind. */
static void lead_candidate(const sk_liquid_boundary *boundary, const sk_object *object, const sk_step *step,
                           const double offset[3], const double x[3], sk_particle *particle)
{
    double target[3], rigid[3], way[3] = {0, 0, 0}, animated[3], along = 0.0, distance = 0.0;
    for (int d = 0; d < 3; d++)
        target[d] = x[d] + offset[d];
    sk_pose_velocity(&object->next, target, rigid);
    for (int d = 0; d < step->dimension; d++) {
        way[d] = offset[d] - step->dt * rigid[d];
        distance += way[d] * way[d];
    }
    distance = sqrt(distance);
    sk_candidate_velocity(object->def, boundary->spacing, step->dt, way, animated);
    double alpha = object->def->alpha, blended[3] = {0, 0, 0};
    for (int d = 0; d < step->dimension; d++) {
        blended[d] = (1.0 - alpha) * particle->velocity[d] + alpha * (rigid[d] + animated[d]);
        along += distance > 0.0 ? (blended[d] - rigid[d]) * way[d] / distance : 0.0;
    }
    double excess = step->dt > 0.0 ? along - distance / step->dt : 0.0;
    for (int d = 0; d < step->dimension; d++) {
        if (excess > 0.0 && distance > 0.0)
            blended[d] -= excess * way[d] / distance;
        particle->velocity[d] = (float)blended[d];
    }
}

/* Moves a boundary particle to the position of its sample at the end of the step. The distance left at its arrival is
 * closed at the speed of the animation, not at once. */
static void carry_boundary(const sk_liquid_boundary *boundary, const sk_object *object, const sk_step *step,
                           const double offset[3], const double x[3], sk_particle *particle)
{
    double at[3] = {x[0], x[1], x[2]}, solid[3], rest[3] = {0, 0, 0}, length = 0.0;
    for (int d = 0; d < step->dimension; d++)
        solid[d] = step->dt > 0.0 ? offset[d] / step->dt : 0.0;
    double rigid[3] = {0, 0, 0};
    sk_pose_velocity(&object->now, at, rigid);
    for (int d = 0; d < step->dimension; d++) {
        rest[d] = solid[d] - rigid[d];
        length += rest[d] * rest[d];
    }
    length = sqrt(length);
    /* The chord of a turn differs from its tangent by less than this if the steps are short. */
    double way[3] = {rest[0] * step->dt, rest[1] * step->dt, rest[2] * step->dt}, eased[3];
    sk_candidate_velocity(object->def, boundary->spacing, step->dt, way, eased);
    double most = sqrt(eased[0] * eased[0] + eased[1] * eased[1] + eased[2] * eased[2]);
    double share = length > most ? most / length : 1.0;
    for (int d = 0; d < step->dimension; d++)
        particle->velocity[d] = (float)(rigid[d] + share * rest[d]);
}

selkie_code sk_liquid_boundary_animate(sk_step *step, selkie_error *error)
{
    (void)error;
    const sk_liquid_boundary *boundary = step->objects;
    sk_particles *particles = &step->particles;
    const uint32_t *samples = sk_particles_find_attribute(particles, "sample")->data;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t p = 0; p < particles->count; p++) {
        sk_particle *particle = &particles->records[p];
        if (!samples[p] || !(particle->flags & (SK_PARTICLE_CANDIDATE | SK_PARTICLE_BOUNDARY)))
            continue;
        const sk_object *object = object_of(boundary, samples[p]);
        double x[3] = {particle->position[0], particle->position[1], particle->position[2]}, target[3], offset[3];
        sk_object_sample(object, &object->next, samples[p] - 1 - object->first, target);
        for (int d = 0; d < 3; d++)
            offset[d] = d < step->dimension ? target[d] - x[d] : 0.0;
        if (particle->flags & SK_PARTICLE_BOUNDARY)
            carry_boundary(boundary, object, step, offset, x, particle);
        else
            lead_candidate(boundary, object, step, offset, x, particle);
    }
    return SELKIE_OK;
}
