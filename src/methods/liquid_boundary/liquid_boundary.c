#include "methods/liquid_boundary/liquid_boundary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "particles/kd_tree.h"

/* Vacant samples search for a particle again after this many steps; fluid may have come near since. */
enum { SEARCH_EVERY = 16 };

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

sk_roles sk_roles_of(const sk_step *step)
{
    const sk_liquid_boundary *boundary = step->objects;
    return (sk_roles){.objects = boundary->frames,
                      .object_count = boundary->object_count,
                      .dimension = step->dimension,
                      .sample_count = boundary->sample_count,
                      .holder = boundary->holder,
                      .solid = boundary->solid,
                      .late = step->time + SK_ROLES_SOON,
                      .dt = step->dt,
                      .records = step->particles.records,
                      .samples = sk_particles_find_attribute(&step->particles, "sample")->data,
                      .roles = sk_particles_find_attribute(&step->particles, "role")->data};
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
    const sk_roles roles = sk_roles_of(step);
    for (uint32_t n = 0; n < object->voxels.count; n++) {
        double x[3], v[3];
        sk_object_sample(object, &pose, n, x);
        sk_pose_velocity(&pose, x, v);
        if (step->dimension == 2)
            x[2] = v[2] = 0.0;
        sk_particles_append(particles, x, v);
        set_role(&roles, (size_t)particles->count - 1, object->first + n + 1, SK_ROLE_BOUNDARY);
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
    boundary->frames =
        sk_allocate_zeroed(step->memory, ((size_t)step->scene->object_count + 1) * sizeof *boundary->frames);
    if (!boundary->objects || !boundary->frames)
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
    sk_release(boundary->memory, boundary->frames);
    sk_release(boundary->memory, boundary->holder);
    sk_release(boundary->memory, boundary->solid);
    memset(boundary, 0, sizeof *boundary);
}

/* --- Roles: release, arrival --- */

/* The entry of the timeline that runs or is being released at a time (s), and whether the object takes candidates.
 * NULL: none yet. */
static const selkie_timeline_entry *look_up_entry(sk_object *object, double time)
{
    const selkie_object_def *def = object->def;
    const selkie_timeline_entry *entry = NULL;
    object->gathers = 0;
    for (int t = 0; t < def->timeline_count && def->timeline[t].assemble <= time + SK_ROLES_SOON; t++) {
        entry = &def->timeline[t];
        object->gathers = entry->release < 0.0 || time + SK_ROLES_SOON < entry->release;
    }
    return entry;
}

/* How an object releases its particles at a time (s). */
static void look_up_release(sk_object *object, double time, sk_object_frame *frame)
{
    const selkie_timeline_entry *entry = look_up_entry(object, time);
    if (!entry) /* an object from the start without a timeline stays; any other has no particles yet */
        frame->release = object->def->start_solid ? SK_OBJECT_KEEPS : SK_OBJECT_RELEASES;
    else if (object->gathers)
        frame->release = SK_OBJECT_KEEPS;
    else if (entry->release_mode == SELKIE_RELEASE_INSTANT || !(entry->release_duration > 0.0))
        frame->release = SK_OBJECT_RELEASES;
    else
        frame->release = entry->release_mode == SELKIE_RELEASE_SWEEP ? SK_OBJECT_SWEEPS : SK_OBJECT_SCATTERS;
    if (!entry)
        return;
    frame->begin = entry->release;
    frame->duration = entry->release_duration;
    memcpy(frame->direction, entry->release_direction, sizeof frame->direction);
    memcpy(frame->ends, object->sweep + 2 * (entry - object->def->timeline), sizeof frame->ends);
}

void sk_liquid_boundary_begin(sk_step *step)
{
    const sk_liquid_boundary *boundary = step->objects;
    for (int o = 0; o < boundary->object_count; o++) {
        sk_object *object = &boundary->objects[o];
        const selkie_object_def *def = object->def;
        boundary->frames[o] = (sk_object_frame){.voxels = object->voxels,
                                                .first = object->first,
                                                .easing = def->easing,
                                                .alpha = def->alpha,
                                                .beta = def->beta,
                                                .easing_distance = def->easing_distance > 0.0 ? def->easing_distance
                                                                                              : 4.0 * boundary->spacing,
                                                .arrival = def->arrival * boundary->spacing};
        sk_pose_at(&object->motion, step->time, &boundary->frames[o].now);
        sk_pose_at(&object->motion, step->time + step->dt, &boundary->frames[o].next);
        look_up_release(object, step->time, &boundary->frames[o]);
    }
}

static void update_roles(sk_liquid_boundary *boundary, sk_step *step)
{
    const sk_roles all = sk_roles_of(step);
    int64_t released = 0, arrived = 0, candidates = 0, boundaries = 0;
    memset(boundary->holder, 0, boundary->sample_count * sizeof *boundary->holder);
    memset(boundary->solid, 0, boundary->sample_count);
#pragma omp parallel for num_threads(step->threads) schedule(static)                                                   \
    reduction(+ : released, arrived, candidates, boundaries)
    for (int64_t p = 0; p < step->particles.count; p++) {
        if (!(all.samples[p] | all.roles[p]) || all.records[p].flags & SK_PARTICLE_DEAD)
            continue;
        role_change change = {0, 0};
        const uint32_t sample = update_role(&all, (size_t)p, &change);
        released += change.released;
        arrived += change.arrived;
        if (!sample)
            continue;
        boundary->holder[sample - 1] = (uint32_t)p + 1; /* each sample has one holder */
        boundary->solid[sample - 1] = all.roles[p] == SK_ROLE_BOUNDARY;
        candidates += all.roles[p] == SK_ROLE_CANDIDATE;
        boundaries += all.roles[p] == SK_ROLE_BOUNDARY;
    }
    boundary->released = released;
    boundary->arrived = arrived;
    boundary->candidates = candidates;
    boundary->boundaries = boundaries;
}

/* Looks one cell ahead of each candidate. If the particle of the sample there is closer to the candidate's own sample,
 * the two exchange samples. Serial, in the order of the particles, so the result does not depend on threads. */
static void exchange_samples(sk_liquid_boundary *boundary, sk_step *step)
{
    const sk_roles all = sk_roles_of(step);
    boundary->exchanged = 0;
    for (int64_t p = 0; boundary->candidates && p < step->particles.count; p++) {
        const uint32_t ahead = is_on_its_way(&all, (size_t)p) ? sample_ahead(&all, (size_t)p) : 0;
        if (!ahead || !exchange_is_shorter(&all, (size_t)p, ahead))
            continue;
        exchange_samples_of(&all, (size_t)p, ahead);
        boundary->exchanged++;
    }
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
    const sk_roles all = sk_roles_of(step);
    const sk_pose *now = &boundary->frames[object - boundary->objects].now;
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
        sk_object_sample(object, now, n, target);
        const float x[3] = {(float)target[0], (float)target[1], step->dimension == 3 ? (float)target[2] : 0.0f};
        sk_kd_point nearest;
        sk_kd_tree_take(tree, x, &nearest);
        set_role(&all, nearest.index, object->first + n + 1, SK_ROLE_CANDIDATE);
        boundary->holder[object->first + n] = nearest.index + 1;
        boundary->assigned++;
        boundary->candidates++;
        object->held++;
    }
    sk_kd_tree_destroy(tree);
    return SELKIE_OK;
}

int sk_object_searches(const sk_object *object, const sk_step *step)
{
    return object->gathers && object->held < (int64_t)object->voxels.count &&
           (object->held == 0 || step->step_count % SEARCH_EVERY == 0);
}

selkie_code sk_liquid_boundary_roles(sk_step *step, selkie_error *error)
{
    sk_liquid_boundary *boundary = step->objects;
    sk_liquid_boundary_begin(step);
    update_roles(boundary, step);
    exchange_samples(boundary, step);
    boundary->assigned = 0;
    for (int o = 0; o < boundary->object_count; o++) {
        sk_object *object = &boundary->objects[o];
        object->held = 0;
        for (size_t n = 0; n < object->voxels.count; n++)
            object->held += boundary->holder[object->first + n] != 0;
        if (sk_object_searches(object, step))
            SK_TRY(assign(boundary, object, step, error));
    }
    return SELKIE_OK;
}

/* --- Velocities --- */

selkie_code sk_liquid_boundary_animate(sk_step *step, selkie_error *error)
{
    (void)error;
    const sk_roles all = sk_roles_of(step);
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t p = 0; p < step->particles.count; p++)
        animate_particle(&all, (size_t)p);
    return SELKIE_OK;
}
