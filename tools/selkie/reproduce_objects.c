/* Measurements of runs with objects: fluid in their walls, fluid that passed through, and energy gained at their
 * release. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "geom/shape.h"
#include "io/folder.h"
#include "io/particles_file.h"
#include "methods/force_fields.h"
#include "reproduce.h"

/* Position of a particle in the previous frame, in the object's own frame. */
typedef struct last_place {
    float x[3];
    int known; /* it has been outside and fluid in some frame */
} last_place;

typedef struct leak_search {
    sk_shape *shape;
    selkie_obstacle_def motion;
    double depth;           /* m  particles less deep in the wall only touch it */
    double low[3], high[3]; /* m  of the shape */
    double up[3], rim;      /* m  particles above this height may have passed over it */
    last_place *places;     /*    [place_count] by id */
    size_t place_count;
    object_leaks leaks;
} leak_search;

/* Whether the segment between two points outside crosses the wall. */
static int way_is_through(const leak_search *search, const float from[3], const double to[3])
{
    double length2 = 0.0, high_from = 0.0, high_to = 0.0;
    for (int d = 0; d < 3; d++) {
        if (fmax(from[d], to[d]) < search->low[d] || fmin(from[d], to[d]) > search->high[d])
            return 0;
        length2 += (to[d] - from[d]) * (to[d] - from[d]);
        high_from += from[d] * search->up[d];
        high_to += to[d] * search->up[d];
    }
    if (fmax(high_from, high_to) > search->rim)
        return 0;
    int pieces = (int)fmin(ceil(sqrt(length2) / search->depth), 1e4);
    for (int n = 1; n < pieces; n++) {
        double at[3];
        for (int d = 0; d < 3; d++)
            at[d] = from[d] + (to[d] - from[d]) * n / pieces;
        if (sk_shape_distance(search->shape, at) < -search->depth)
            return 1;
    }
    return 0;
}

static int make_places(leak_search *search, const sk_particles_data *data)
{
    size_t count = 0;
    for (int64_t p = 0; data->id && p < data->count; p++)
        count = data->id[p] >= count ? (size_t)data->id[p] + 1 : count;
    if (count <= search->place_count)
        return 1;
    last_place *places = realloc(search->places, count * sizeof *places);
    if (!places)
        return 0;
    memset(places + search->place_count, 0, (count - search->place_count) * sizeof *places);
    search->places = places;
    search->place_count = count;
    return 1;
}

/* One frame. */
static void search_frame(void *context, const sk_particles_data *data, double time)
{
    leak_search *search = context;
    object_leaks *leaks = &search->leaks;

    /* Room for all particles, and the pose of the object in this frame. */
    if (!make_places(search, data))
        return;
    sk_pose pose;
    sk_pose_at(&search->motion, time, &pose);

    /* Count free particles inside the wall, and paths that cross it. */
    long inside = 0;
    for (int64_t p = 0; p < data->count; p++) {
        const double x[3] = {data->position[3 * p], data->position[3 * p + 1], data->position[3 * p + 2]};
        if (data->role && data->role[p] != 0)
            continue;
        double local[3];
        sk_pose_to_local(&pose, x, local);
        int is_inside = sk_shape_distance(search->shape, local) < -search->depth;
        inside += is_inside;
        last_place *place = data->id ? &search->places[data->id[p]] : NULL;
        if (!place || is_inside)
            continue; /* the path of a particle inside continues in later frames */
        if (place->known)
            leaks->through += way_is_through(search, place->x, local);
        for (int d = 0; d < 3; d++)
            place->x[d] = (float)local[d];
        place->known = 1;
    }

    leaks->inside = inside > leaks->inside ? inside : leaks->inside;
    leaks->frames++;
}

static int begin_search(leak_search *search, const selkie_scene *scene, int object, double depth, double margin)
{
    const selkie_object_def *def = &scene->objects[object];
    search->motion = (selkie_obstacle_def){.keyframe_count = def->keyframe_count, .keyframes = def->keyframes};
    memcpy(search->motion.center, def->center, sizeof def->center);
    search->depth = depth;
    selkie_scene_up(scene, search->up);
    const sk_shape_options options = {.dimension = scene->domain.dimension,
                                      .up = search->up,
                                      .folder = scene->folder,
                                      .sample_size = depth,
                                      .what = "object"};
    if (sk_shape_create(&def->shape, &options, &search->shape, NULL) != SELKIE_OK)
        return 0;
    sk_shape_bounds(search->shape, search->low, search->high);
    search->rim = -margin;
    for (int d = 0; d < 3; d++)
        search->rim += fmax(search->up[d] * search->low[d], search->up[d] * search->high[d]);
    return 1;
}

/* Calls `look` for every frame between two times (s), in their order. */
static void for_each_frame(const run_results *results, double from, double to,
                           void (*look)(void *context, const sk_particles_data *data, double time), void *context)
{
    char *folder = NULL;
    sk_file_list list = {0};
    if (asprintf(&folder, "%s/" SK_FRAMES_FOLDER, results->folder) >= 0)
        (void)sk_folder_list_frames(folder, &list, NULL);
    for (size_t i = 0; i < list.count; i++) {
        double time = (double)list.files[i].number / results->scene->time.fps;
        sk_particles_data *data = NULL;
        if (time < from - 1e-6 || time > to + 1e-6 || sk_particles_read(list.files[i].path, &data, NULL) != SELKIE_OK)
            continue;
        sk_particles_turn_back(data);
        look(context, data, time);
        sk_particles_data_free(data);
    }
    sk_file_list_free(&list);
    free(folder);
}

object_leaks leaks_of_object(const run_results *results, int object, double from, double to, double depth,
                             double margin)
{
    leak_search search;
    memset(&search, 0, sizeof search);
    if (!results->scene || object >= results->scene->object_count ||
        !begin_search(&search, results->scene, object, depth, margin))
        return search.leaks;
    for_each_frame(results, from, to, search_frame, &search);
    free(search.places);
    sk_shape_destroy(search.shape);
    return search.leaks;
}

/* --- Energy --- */

typedef struct energy_search {
    const selkie_scene *scene;
    double mass;              /* kg  of a particle */
    double time, power, work; /* s, W, J: the frame before; since the first */
    energy_budget budget;
} energy_search;

/* One frame: the forces' work since the one before by the trapezoidal rule. */
static void add_frame(void *context, const sk_particles_data *data, double time)
{
    energy_search *search = context;
    const selkie_scene *scene = search->scene;
    sk_force_field *fields = calloc((size_t)scene->force_count + 1, sizeof *fields);
    if (!fields || !data->velocity) {
        free(fields);
        return;
    }
    /* Rate of change by the forces, over a short time. */
    const double moment = 1e-6;
    const int count = sk_force_fields_in(scene, (sk_force_window){time, time + moment}, fields);

    double energy = 0.0, power = 0.0;
    for (int64_t p = 0; p < data->count; p++) {
        const float *x = data->position + 3 * p, *v = data->velocity + 3 * p;
        float change[3] = {0, 0, 0};
        sk_force_fields_velocity_change(fields, count, x, change);
        for (int d = 0; d < 3; d++) {
            energy += search->mass *
                      (0.5 * (double)v[d] * v[d] - scene->gravity[d] * ((double)x[d] - scene->domain.origin[d]));
            power += search->mass * change[d] / moment * v[d];
        }
    }
    free(fields);

    /* Work by the trapezoidal rule, then the excess of energy. */
    energy_budget *budget = &search->budget;
    if (!budget->frames++) {
        budget->start = energy;
        budget->excess = 0.0;
    } else {
        search->work += 0.5 * (time - search->time) * (power + search->power);
    }
    budget->end = energy;
    budget->work = search->work;
    budget->excess = fmax(budget->excess, energy - budget->start - search->work);
    search->time = time;
    search->power = power;
}

energy_budget energy_of_run(const run_results *results, double from, double to)
{
    energy_search search = {.scene = results->scene, .budget = {0, NAN, NAN, NAN, NAN}};
    if (!results->scene)
        return search.budget;
    const selkie_scene *scene = results->scene;
    search.mass = (scene->liquid_count ? scene->liquids[0].density : 1000.0) *
                  pow(selkie_scene_spacing(scene), scene->domain.dimension);
    for_each_frame(results, from, to, add_frame, &search);
    return search.budget;
}

/* Its energy E = v^2/2 + g y, y from the floor, is changed by the vortex alone: dE/dt = a.v <= |a| sqrt(2 E), so that
 * sqrt(2 E) grows by |a| at most, and v <= sqrt(2 E). It starts with the energy of the highest liquid, the tap's.
 * Pressure moves energy between particles and adds none. */
double fastest_of_gravity_and_vortex(const selkie_scene *scene)
{
    if (!scene || !scene->source_count || !scene->force_count || scene->sources[0].shape.kind != SELKIE_SHAPE_CYLINDER)
        return NAN;
    const selkie_source_def *tap = &scene->sources[0];
    const selkie_force_def *vortex = &scene->forces[0];
    double energy = 0.0, height = fmax(tap->shape.from[1], tap->shape.to[1]) - scene->domain.origin[1],
           acceleration = 0.0;
    for (int d = 0; d < 3; d++)
        energy += 0.5 * tap->velocity[d] * tap->velocity[d];
    energy -= scene->gravity[1] * height;
    for (int n = 0; n <= 1000; n++) { /* radii from the axis, falloff (1 - q^2)^2 */
        double q = 1e-3 * n, around = vortex->spin * vortex->radius * q, inward = vortex->pull * q;
        acceleration = fmax(acceleration, (1.0 - q * q) * (1.0 - q * q) *
                                              sqrt(around * around + inward * inward + vortex->lift * vortex->lift));
    }
    return sqrt(2.0 * energy) + acceleration * (vortex->end - vortex->start);
}
