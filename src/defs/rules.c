/* Checks of several fields together. Each field is already within its own range. */
#include "defs/cut_plane.h"
#include "defs/soft.h"
#include "defs/structs.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "defs/heat.h"
#include "defs/materials.h"

typedef struct sk_rules {
    const selkie_scene *scene;
    sk_path *where;
    selkie_error *error;
} sk_rules;

/* Fails at a place below the current one; `place` may be "". */
__attribute__((format(printf, 3, 4))) static selkie_code fail_at(sk_rules *rules, const char *place, const char *format,
                                                                 ...)
{
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (*place)
        sk_path_key(rules->where, place);
    return sk_fail(rules->error, SELKIE_ERROR_INPUT, "%s", message);
}

static const char axis_letter[] = "xyz";

/* --- Domain, time, numerics --- */

static selkie_code check_domain(sk_rules *rules)
{
    const selkie_domain_def *domain = &rules->scene->domain;
    size_t before = sk_path_key(rules->where, "domain");
    for (int axis = 0; axis < domain->dimension; axis++)
        if (!(domain->size[axis] > 0))
            return fail_at(rules, "size", "%g m along %c: must be above 0", domain->size[axis], axis_letter[axis]);
    int cells[3];
    double h = selkie_scene_cells(rules->scene, cells);
    const double least = 1e-9;
    if (!(h >= least))
        return fail_at(rules, domain->cell_size > 0 ? "cell_size" : "size",
                       "makes cells of %g m: they must be at least %g m; lengths are in metres", h, least);
    for (int axis = 0; axis < domain->dimension; axis++)
        if (cells[axis] > SK_MAX_CELLS_PER_AXIS)
            return fail_at(rules, "cell_size", "%g m makes %.6g cells along %c: at most %d, so at least %g m", h,
                           domain->size[axis] / h, axis_letter[axis], SK_MAX_CELLS_PER_AXIS,
                           domain->size[axis] / SK_MAX_CELLS_PER_AXIS);
    sk_path_cut(rules->where, before);
    return SELKIE_OK;
}

static selkie_code check_time(sk_rules *rules)
{
    const selkie_time_def *time = &rules->scene->time;
    size_t before = sk_path_key(rules->where, "time");
    if (time->max_step > 0 && time->max_step < time->min_step)
        return fail_at(rules, "max_step", "%g s is below min_step, %g s", time->max_step, time->min_step);
    if (time->end * time->fps > 1e7)
        return fail_at(rules, "fps", "%g makes %.3g frames until %g s: at most 1e7", time->fps, time->end * time->fps,
                       time->end);
    const double most_steps = 1e10; /* years, even of the smallest scene */
    if (time->step > 0 && time->end / time->step > most_steps)
        return fail_at(rules, "step", "%g s makes %.3g steps until %g s: at most %g", time->step,
                       time->end / time->step, time->end, most_steps);
    if (time->max_step > 0 && time->end / time->max_step > most_steps)
        return fail_at(rules, "max_step", "%g s makes %.3g steps until %g s: at most %g", time->max_step,
                       time->end / time->max_step, time->end, most_steps);
    sk_path_cut(rules->where, before);
    return SELKIE_OK;
}

static selkie_code check_particles(sk_rules *rules)
{
    const selkie_particles_def *particles = &rules->scene->particles;
    int dimension = rules->scene->domain.dimension, sph = rules->scene->discretization == SELKIE_DISCRETIZATION_SPH;
    if (particles->per_cell == 0 || (particles->arrangement != SELKIE_ARRANGEMENT_LATTICE && !sph))
        return SELKIE_OK;
    if (sph && particles->per_cell < (dimension == 3 ? 8 : 4)) {
        sk_path_key(rules->where, "particles");
        return fail_at(rules, "per_cell",
                       "%d with discretization \"sph\": must be at least %d, or particles do not reach each other",
                       particles->per_cell, dimension == 3 ? 8 : 4);
    }
    int side = 1, full = 0, below = 1;
    for (;; side++) {
        full = dimension == 3 ? side * side * side : side * side;
        if (full >= particles->per_cell)
            break;
        below = full;
    }
    if (full == particles->per_cell)
        return SELKIE_OK;
    sk_path_key(rules->where, "particles");
    return fail_at(rules, "per_cell", "%d do not make a lattice: must be n^%d, such as %d or %d", particles->per_cell,
                   dimension, below, full);
}

/* The unilateral kind keeps volume by itself: pressure fills what is thin, and its own correction thins what is dense.
 */
static selkie_code check_unilateral(sk_rules *rules)
{
    const selkie_scene *scene = rules->scene;
    if (scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL &&
        scene->discretization == SELKIE_DISCRETIZATION_SPH)
        return fail_at(rules, "incompressibility", "\"unilateral\" needs a grid: discretization must be \"grid\"");
    if (scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL &&
        selkie_scene_volume(scene) != SELKIE_VOLUME_NONE)
        return fail_at(rules, "volume",
                       "is for incompressibility \"bilateral\": must be \"none\" beside \"unilateral\", which corrects "
                       "density by itself (unilateral.density_correction)");

    /* The source's form: its density errors become velocity, in 3D without bound. */
    if (scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL && scene->domain.dimension == 3 &&
        scene->unilateral.prediction == SELKIE_PREDICTION_FLUX && scene->unilateral.density_correction)
        return fail_at(rules, "unilateral.prediction",
                       "\"flux\" blows up in 3D beside unilateral.density_correction: use \"particles\", or set "
                       "density_correction to false");
    return SELKIE_OK;
}

/* SPH has no phases of the volume methods of the grid. */
static selkie_code check_sph(sk_rules *rules)
{
    if (rules->scene->discretization == SELKIE_DISCRETIZATION_SPH &&
        selkie_scene_volume(rules->scene) != SELKIE_VOLUME_NONE)
        return fail_at(
            rules, "volume",
            "is for the grid methods: must be \"none\" beside discretization \"sph\", which keeps density by itself");
    return SELKIE_OK;
}

/* --- Shapes --- */

static selkie_code check_corners(sk_rules *rules, const selkie_shape *shape)
{
    for (int axis = 0; axis < rules->scene->domain.dimension; axis++)
        if (!(shape->min[axis] < shape->max[axis]))
            return fail_at(rules, "max", "%g along %c is not above min, %g", shape->max[axis], axis_letter[axis],
                           shape->min[axis]);
    return SELKIE_OK;
}

static selkie_code check_shape(sk_rules *rules, const selkie_shape *shape)
{
    int dimension = rules->scene->domain.dimension;
    double length2 = 0;
    switch (shape->kind) {
    case SELKIE_SHAPE_BOX:
        return check_corners(rules, shape);
    case SELKIE_SHAPE_CYLINDER:
        for (int axis = 0; axis < dimension; axis++)
            length2 += (shape->to[axis] - shape->from[axis]) * (shape->to[axis] - shape->from[axis]);
        if (!(length2 > 0))
            return fail_at(rules, "to", "is the same point as from: the axis must have a length");
        break;
    case SELKIE_SHAPE_HALF_SPACE:
        for (int axis = 0; axis < dimension; axis++)
            length2 += shape->normal[axis] * shape->normal[axis];
        if (!(length2 > 0))
            return fail_at(rules, "normal", "has no length%s", dimension == 2 ? " in the plane of a 2D scene" : "");
        break;
    case SELKIE_SHAPE_MESH:
        if (!shape->file || !*shape->file)
            return fail_at(rules, "file", "is empty: must name an OBJ, STL, PLY or glTF file");
        for (int axis = 0; axis < dimension; axis++)
            if (shape->scale[axis] == 0)
                return fail_at(rules, "scale", "is 0 along %c: a mesh must keep some thickness", axis_letter[axis]);
        break;
    case SELKIE_SHAPE_HEIGHTFIELD:
        if (!shape->file || !*shape->file)
            return fail_at(rules, "file", "is empty: must name an ESRI ASCII grid (.asc)");
        for (int axis = 0; axis < 3; axis++)
            if (!(shape->scale[axis] > 0))
                return fail_at(rules, "scale", "is %g along %c: a height field's must be above 0", shape->scale[axis],
                               axis_letter[axis]);
        break;
    case SELKIE_SHAPE_POLYGON:
        if (dimension != 2)
            return fail_at(rules, "type", "\"polygon\" is for 2D scenes: must be another shape");
        if (shape->point_count < 3)
            return fail_at(rules, "points", "%d of them: a polygon must have at least 3", shape->point_count);
        break;
    case SELKIE_SHAPE_PICTURE:
        if (dimension != 2)
            return fail_at(rules, "type", "\"picture\" is for 2D scenes: must be another shape");
        if (!shape->file || !*shape->file)
            return fail_at(rules, "file", "is empty: must name a PNG, PGM or PPM file");
        return check_corners(rules, shape);
    case SELKIE_SHAPE_UNION: {
        size_t before = sk_path_key(rules->where, "shapes");
        if (shape->child_count == 0)
            return fail_at(rules, "", "is empty: a union needs at least one shape");
        for (int i = 0; i < shape->child_count; i++) {
            size_t inner = sk_path_index(rules->where, i);
            SK_TRY(check_shape(rules, &shape->children[i]));
            sk_path_cut(rules->where, inner);
        }
        sk_path_cut(rules->where, before);
        break;
    }
    default:
        break;
    }
    return SELKIE_OK;
}

static void grow(double low[3], double high[3], const double point[3], double margin)
{
    for (int axis = 0; axis < 3; axis++) {
        low[axis] = fmin(low[axis], point[axis] - margin);
        high[axis] = fmax(high[axis], point[axis] + margin);
    }
}

/* Adds a box around the shape; returns 0 where none is known without more work (meshes, half spaces, waves). */
static int bound_shape(const selkie_shape *shape, double low[3], double high[3])
{
    switch (shape->kind) {
    case SELKIE_SHAPE_BOX:
        grow(low, high, shape->min, 0);
        grow(low, high, shape->max, 0);
        return 1;
    case SELKIE_SHAPE_SPHERE:
        grow(low, high, shape->center, shape->radius);
        return 1;
    case SELKIE_SHAPE_CYLINDER:
        grow(low, high, shape->from, shape->radius);
        grow(low, high, shape->to, shape->radius);
        return 1;
    case SELKIE_SHAPE_UNION:
        for (int i = 0; i < shape->child_count; i++)
            if (!bound_shape(&shape->children[i], low, high))
                return 0;
        return 1;
    default:
        return 0;
    }
}

/* Liquid, sources and drains wholly outside the domain would have no effect. */
static selkie_code check_overlap(sk_rules *rules, const selkie_shape *shape)
{
    const selkie_domain_def *domain = &rules->scene->domain;
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    if (!bound_shape(shape, low, high))
        return SELKIE_OK;
    for (int axis = 0; axis < domain->dimension; axis++) {
        double from = domain->origin[axis], to = from + domain->size[axis];
        if (high[axis] <= from || low[axis] >= to)
            return fail_at(rules, "", "lies outside the domain: %c from %g to %g m, the domain from %g to %g m",
                           axis_letter[axis], low[axis], high[axis], from, to);
    }
    return SELKIE_OK;
}

static selkie_code check_placed_shape(sk_rules *rules, const selkie_shape *shape, int must_overlap)
{
    size_t before = sk_path_key(rules->where, "shape");
    SK_TRY(check_shape(rules, shape));
    if (must_overlap)
        SK_TRY(check_overlap(rules, shape));
    sk_path_cut(rules->where, before);
    return SELKIE_OK;
}

/* --- Liquids, sources, drains, obstacles --- */

static selkie_code check_liquid(sk_rules *rules, int i)
{
    const selkie_liquid_def *liquid = &rules->scene->liquids[i];
    SK_TRY(check_placed_shape(rules, &liquid->shape, 1));
    if (liquid->density != rules->scene->liquids[0].density)
        return fail_at(rules, "density", "%g kg/m3 differs from that of liquids[0], %g: one density for all liquids",
                       liquid->density, rules->scene->liquids[0].density);
    if (rules->scene->domain.dimension == 2) {
        static const int outside[] = {2, 5, 6, 7, 8};
        for (int k = 0; k < 5; k++)
            if (liquid->velocity_gradient[outside[k]] != 0)
                return fail_at(rules, "velocity_gradient", "%g in row %d, column %d leaves the plane: must be 0 in 2D",
                               liquid->velocity_gradient[outside[k]], outside[k] / 3 + 1, outside[k] % 3 + 1);
    }
    return SELKIE_OK;
}

static selkie_code check_interval(sk_rules *rules, double start, double end)
{
    if (end >= 0 && end <= start)
        return fail_at(rules, "end", "%g s is not after start, %g s; below 0 means never", end, start);
    return SELKIE_OK;
}

static selkie_code check_source(sk_rules *rules, int i)
{
    const selkie_source_def *source = &rules->scene->sources[i];
    SK_TRY(check_placed_shape(rules, &source->shape, 1));
    return check_interval(rules, source->start, source->end);
}

static selkie_code check_drain(sk_rules *rules, int i)
{
    const selkie_drain_def *drain = &rules->scene->drains[i];
    SK_TRY(check_placed_shape(rules, &drain->shape, 1));
    return check_interval(rules, drain->start, drain->end);
}

static selkie_code check_keyframes(sk_rules *rules, int count, const selkie_keyframe *keyframes)
{
    size_t before = sk_path_key(rules->where, "keyframes");
    for (int k = 1; k < count; k++)
        if (!(keyframes[k].time > keyframes[k - 1].time)) {
            sk_path_index(rules->where, k);
            return fail_at(rules, "time", "%g s is not after that of the keyframe before, %g s", keyframes[k].time,
                           keyframes[k - 1].time);
        }
    sk_path_cut(rules->where, before);
    return SELKIE_OK;
}

static selkie_code check_motion_file(sk_rules *rules, const char *file, int keyframe_count)
{
    if (file && *file && keyframe_count > 0)
        return fail_at(rules, "motion_file", "stands beside keyframes: give one of them");
    return SELKIE_OK;
}

static selkie_code check_obstacle(sk_rules *rules, int i)
{
    const selkie_obstacle_def *obstacle = &rules->scene->obstacles[i];
    SK_TRY(check_placed_shape(rules, &obstacle->shape, 0)); /* it may come in later */
    SK_TRY(check_motion_file(rules, obstacle->motion_file, obstacle->keyframe_count));
    if (obstacle->keyframe_count == 0)
        return SELKIE_OK;
    for (int axis = 0; axis < 3; axis++)
        if (obstacle->velocity[axis] != 0 || obstacle->angular_velocity[axis] != 0)
            return fail_at(rules, "keyframes", "stand beside a constant %s: give one of them",
                           obstacle->velocity[axis] != 0 ? "velocity" : "angular_velocity");
    return check_keyframes(rules, obstacle->keyframe_count, obstacle->keyframes);
}

/* --- Gravity and the frame --- */

static selkie_code check_frame(sk_rules *rules)
{
    const selkie_scene *scene = rules->scene;
    const selkie_frame_def *frame = &scene->frame;
    size_t before = sk_path_key(rules->where, "gravity_over_time");
    for (int k = 1; k < scene->gravity_key_count; k++)
        if (!(scene->gravity_keys[k].time > scene->gravity_keys[k - 1].time)) {
            sk_path_index(rules->where, k);
            return fail_at(rules, "time", "%g s is not after that of the entry before, %g s",
                           scene->gravity_keys[k].time, scene->gravity_keys[k - 1].time);
        }
    sk_path_cut(rules->where, before);

    sk_path_key(rules->where, "frame");
    int turns = frame->motion_file && *frame->motion_file; /* not read yet */
    for (int axis = 0; axis < 3; axis++) {
        for (int k = 0; k < frame->keyframe_count; k++)
            turns |= frame->keyframes[k].rotate[axis] != 0;
        for (int o = 0; o < frame->oscillation_count; o++)
            turns |= frame->oscillations[o].rotate[axis] != 0;
    }
    if (scene->body_count > 0 && turns)
        return fail_at(
            rules, "",
            "rigid bodies do not feel a frame that turns or has a motion_file so far: leave out the rotation "
            "or the bodies");
    SK_TRY(check_motion_file(rules, frame->motion_file, frame->keyframe_count));
    SK_TRY(check_keyframes(rules, frame->keyframe_count, frame->keyframes));
    sk_path_cut(rules->where, before);
    return SELKIE_OK;
}

/* --- Objects --- */

static selkie_code check_timeline(sk_rules *rules, const selkie_object_def *object)
{
    size_t before = sk_path_key(rules->where, "timeline");
    if (object->timeline_count == 0 && !object->start_solid)
        return fail_at(rules, "", "is empty: the object would never be there; give a time to assemble, or start_solid");
    for (int t = 0; t < object->timeline_count; t++) {
        const selkie_timeline_entry *entry = &object->timeline[t], *last = t ? entry - 1 : NULL;
        size_t inner = sk_path_index(rules->where, t);
        if (entry->release >= 0 && entry->release <= entry->assemble)
            return fail_at(rules, "release", "%g s is not after assemble, %g s; below 0 means never", entry->release,
                           entry->assemble);
        if (last && last->release < 0)
            return fail_at(rules, "assemble", "%g s comes after an entry that never ends (release %g)", entry->assemble,
                           last->release);
        if (last && entry->assemble < last->release + last->release_duration)
            return fail_at(rules, "assemble", "%g s comes before the entry before it is released, %g s",
                           entry->assemble, last->release + last->release_duration);
        if (t == 0 && object->start_solid && entry->assemble != 0)
            return fail_at(rules, "assemble", "%g s stands beside start_solid: must be 0, it is there already",
                           entry->assemble);
        const double *d = entry->release_direction;
        if (entry->release_mode == SELKIE_RELEASE_SWEEP && d[0] == 0 && d[1] == 0 && d[2] == 0)
            return fail_at(rules, "release_direction", "has no length: must say which way the sweep runs");
        sk_path_cut(rules->where, inner);
    }
    sk_path_cut(rules->where, before);
    return SELKIE_OK;
}

/* Whether a shape, or a part of it, is infinite. */
static int is_endless(const selkie_shape *shape)
{
    if (shape->kind == SELKIE_SHAPE_HALF_SPACE || shape->kind == SELKIE_SHAPE_WAVE ||
        shape->kind == SELKIE_SHAPE_HEIGHTFIELD)
        return 1;
    for (int i = 0; shape->kind == SELKIE_SHAPE_UNION && i < shape->child_count; i++)
        if (is_endless(&shape->children[i]))
            return 1;
    return 0;
}

static int same_name(const char *a, const char *b)
{
    return a && b && *a && strcmp(a, b) == 0;
}

static selkie_code check_body(sk_rules *rules, int i)
{
    const selkie_scene *scene = rules->scene;
    const selkie_body_def *body = &scene->bodies[i];
    selkie_body_def usual;
    selkie_body_defaults(&usual);
    SK_TRY(check_placed_shape(rules, &body->shape, 1));
    const int on_grid = scene->discretization == SELKIE_DISCRETIZATION_GRID;
    const selkie_volume volume = selkie_scene_volume(scene);
    const int unilateral = on_grid && scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    if (unilateral && sk_body_material(scene, i) < 0 && scene->unilateral.solver == SELKIE_UNILATERAL_MPRGP)
        return fail_at(rules, "", "unilateral.solver \"mprgp\" does not move bodies: use \"active_set\"");
    if (on_grid && volume != SELKIE_VOLUME_NONE && volume != SELKIE_VOLUME_IDP)
        return fail_at(rules, "", "only the volume methods none and idp move bodies: set \"volume\": \"idp\"");
    if (on_grid && body->surface == SELKIE_WALL_NO_SLIP && sk_body_material(scene, i) >= 0)
        return fail_at(rules, "surface", "a body of particles has no drag along it: must be \"free_slip\"");
    if (on_grid && body->surface == SELKIE_WALL_NO_SLIP && !(sk_scene_viscosity(scene) > 0.0))
        return fail_at(rules, "surface",
                       "liquid without viscosity sticks to no body: give it a \"viscosity\", or use "
                       "\"free_slip\"");
    if (is_endless(&body->shape))
        return fail_at(rules, "shape", "has no end: a body must be a box, sphere, cylinder, mesh, or a union of these");
    if (body->mass > 0 && body->density != usual.density)
        return fail_at(rules, "mass", "%g kg stands beside a density, %g kg/m3: give one of them", body->mass,
                       body->density);
    for (int k = 0; k < i; k++)
        if (same_name(body->name, scene->bodies[k].name))
            return fail_at(rules, "name", "\"%.64s\" is the name of bodies[%d] already: choose another one", body->name,
                           k);
    for (int k = 0; k < scene->obstacle_count; k++)
        if (same_name(body->name, scene->obstacles[k].name))
            return fail_at(rules, "name", "\"%.64s\" is the name of obstacles[%d] already: choose another one",
                           body->name, k);
    return SELKIE_OK;
}

static selkie_code check_object(sk_rules *rules, int i)
{
    const selkie_object_def *object = &rules->scene->objects[i];
    if (rules->scene->discretization != SELKIE_DISCRETIZATION_SPH)
        return fail_at(rules, "", "liquid solidifies with discretization sph only: set \"discretization\": \"sph\"");
    for (int k = 0; k < i; k++)
        if (same_name(object->name, rules->scene->objects[k].name))
            return fail_at(rules, "name", "\"%.64s\" is the name of objects[%d] already: choose another one",
                           object->name, k);
    SK_TRY(check_placed_shape(rules, &object->shape, 0)); /* keyframes may bring it in */
    for (int r = 0; r < object->region_count; r++) {
        size_t before = sk_path_key(rules->where, "regions");
        sk_path_index(rules->where, r);
        SK_TRY(check_shape(rules, &object->regions[r]));
        SK_TRY(check_overlap(rules, &object->regions[r]));
        sk_path_cut(rules->where, before);
    }
    SK_TRY(check_timeline(rules, object));
    return check_keyframes(rules, object->keyframe_count, object->keyframes);
}

/* --- Forces --- */

/* A ball or cylinder wholly outside the domain would have no effect. */
static selkie_code check_force_place(sk_rules *rules, const char *key, const double from[3], const double to[3],
                                     double radius)
{
    selkie_shape shape = {.kind = SELKIE_SHAPE_CYLINDER, .radius = radius};
    memcpy(shape.from, from, sizeof shape.from);
    memcpy(shape.to, to, sizeof shape.to);
    size_t before = sk_path_key(rules->where, key);
    SK_TRY(check_overlap(rules, &shape));
    sk_path_cut(rules->where, before);
    return SELKIE_OK;
}

static selkie_code check_force(sk_rules *rules, int i)
{
    const selkie_force_def *force = &rules->scene->forces[i];
    int dimension = rules->scene->domain.dimension;
    double length2 = 0;
    switch (force->kind) {
    case SELKIE_FORCE_EXPLOSION:
        return check_force_place(rules, "center", force->center, force->center, force->radius);
    case SELKIE_FORCE_VORTEX:
        for (int axis = 0; axis < 3; axis++)
            length2 += force->axis[axis] * force->axis[axis];
        if (dimension == 3 && !(length2 > 0))
            return fail_at(rules, "axis", "has no length: must point along the axis");
        break;
    case SELKIE_FORCE_JET:
        for (int axis = 0; axis < dimension; axis++)
            length2 += (force->to[axis] - force->from[axis]) * (force->to[axis] - force->from[axis]);
        if (!(length2 > 0))
            return fail_at(rules, "to", "is the same point as from: the axis must have a length");
        SK_TRY(check_force_place(rules, "from", force->from, force->to, force->radius));
        break;
    case SELKIE_FORCE_UNIFORM:
        break;
    case SELKIE_FORCE_SPONGE:
        if (dimension == 2 && force->side >= SELKIE_SIDE_Z_MIN)
            return fail_at(rules, "side", "\"z_min\" and \"z_max\" do not exist in 2D");
        if (force->width > rules->scene->domain.size[force->side / 2])
            return fail_at(rules, "width", "%g m is more than the domain has along %c, %g m", force->width,
                           axis_letter[force->side / 2], rules->scene->domain.size[force->side / 2]);
        break;
    }
    return check_interval(rules, force->start, force->end);
}

/* --- Probes --- */

static int is_column_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char all[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return *name && strchr(letters, *name) && strspn(name, all) == strlen(name) && strlen(name) <= 64;
}

/* The area of a level probe has some width in the domain. */
static selkie_code check_probe_area(sk_rules *rules, const selkie_probe_def *probe)
{
    const selkie_scene *scene = rules->scene;
    const int up_axis = sk_scene_up_axis(scene, NULL);
    for (int axis = 0; axis < scene->domain.dimension; axis++) {
        double from = scene->domain.origin[axis], to = from + scene->domain.size[axis];
        if (axis == up_axis || (probe->min[axis] == 0.0 && probe->max[axis] == 0.0))
            continue;
        if (!(probe->max[axis] > probe->min[axis]))
            return fail_at(rules, "max", "%g m along %c is not above min, %g m", probe->max[axis], axis_letter[axis],
                           probe->min[axis]);
        if (!(probe->max[axis] > from && probe->min[axis] < to))
            return fail_at(rules, "min",
                           "%g m along %c, up to %g m, is outside the domain: must be between %g and %g m",
                           probe->min[axis], axis_letter[axis], probe->max[axis], from, to);
    }
    return SELKIE_OK;
}

static selkie_code check_probe_place(sk_rules *rules, const selkie_probe_def *probe)
{
    const selkie_scene *scene = rules->scene;
    int dimension = scene->domain.dimension;
    if (probe->kind == SELKIE_PROBE_FRONT) {
        if (dimension == 2 && probe->axis == SELKIE_AXIS_Z)
            return fail_at(rules, "axis", "\"z\" does not exist in 2D: must be \"x\" or \"y\"");
        if (probe->direction != 1 && probe->direction != -1)
            return fail_at(rules, "direction", "%d: must be 1 or -1", probe->direction);
        return SELKIE_OK;
    }
    if (probe->kind == SELKIE_PROBE_FORCE || probe->kind == SELKIE_PROBE_TORQUE)
        return SELKIE_OK;
    const double *normal = probe->normal;
    if (probe->kind == SELKIE_PROBE_PRESSURE && probe->radius > 0 && normal[0] == 0 && normal[1] == 0 && normal[2] == 0)
        return fail_at(rules, "normal", "has no length: must point across the gauge");
    if (probe->kind == SELKIE_PROBE_LEVEL)
        return check_probe_area(rules, probe);
    double up[3];
    selkie_scene_up(scene, up);
    for (int axis = 0; axis < dimension; axis++) {
        if (probe->kind == SELKIE_PROBE_HEIGHT && fabs(up[axis]) > 0.5)
            continue; /* a height does not depend on the height of its point */
        double from = scene->domain.origin[axis], to = from + scene->domain.size[axis];
        if (probe->at[axis] < from || probe->at[axis] > to)
            return fail_at(rules, "at", "%g m along %c is outside the domain: must be between %g and %g m",
                           probe->at[axis], axis_letter[axis], from, to);
    }
    return SELKIE_OK;
}

/* Objects of a force probe. */
static int has_surface(const selkie_scene *scene, const char *name)
{
    if (!name || !*name || strcmp(name, "walls") == 0)
        return 1;
    for (int o = 0; o < scene->obstacle_count; o++)
        if (same_name(name, scene->obstacles[o].name))
            return 1;
    for (int b = 0; b < scene->body_count; b++)
        if (same_name(name, scene->bodies[b].name))
            return 1;
    return 0;
}

static selkie_code check_probe(sk_rules *rules, int i)
{
    const selkie_probe_def *probe = &rules->scene->probes[i];
    const char *name = probe->name ? probe->name : "";
    char quoted[96];
    if (!is_column_name(name))
        return fail_at(rules, "name",
                       "%s cannot head a column: must begin with a letter and have only letters, digits and _ (64 at "
                       "most)",
                       sk_quote(quoted, sizeof quoted, name));
    const int of_surface = probe->kind == SELKIE_PROBE_FORCE || probe->kind == SELKIE_PROBE_TORQUE;
    if (of_surface && !has_surface(rules->scene, probe->on))
        return fail_at(rules, "on", "no obstacle and no body is called %s: must be the name of one, or \"walls\"",
                       sk_quote(quoted, sizeof quoted, probe->on));
    return check_probe_place(rules, probe);
}

typedef struct sk_column {
    char name[80];
    int probe;
} sk_column;

static int compare_columns(const void *a, const void *b)
{
    const sk_column *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->probe > y->probe) - (x->probe < y->probe);
}

/* Names of columns must be unique, also against those that velocity probes make and those that every file has. */
static selkie_code check_columns(sk_rules *rules)
{
    const selkie_scene *scene = rules->scene;
    if (scene->probe_count == 0)
        return SELKIE_OK;
    sk_column *columns = malloc(((size_t)scene->probe_count * 4 + 2) * sizeof *columns);
    if (!columns)
        return sk_fail(rules->error, SELKIE_ERROR_MEMORY, "not enough memory to check %d probes", scene->probe_count);

    /* All columns: those of every file and those of the probes. */
    int count = 0, clash = -1;
    snprintf(columns[count].name, sizeof columns->name, "step");
    columns[count++].probe = -1;
    snprintf(columns[count].name, sizeof columns->name, "time");
    columns[count++].probe = -1;
    for (int i = 0; i < scene->probe_count; i++) {
        const selkie_probe_def *probe = &scene->probes[i];
        const int is_vector = probe->kind == SELKIE_PROBE_VELOCITY || probe->kind == SELKIE_PROBE_FORCE ||
                              probe->kind == SELKIE_PROBE_TORQUE;
        const int parts = is_vector ? 4 : 1; /* the bare name too: it would confuse */
        for (int k = 0; k < parts; k++) {
            snprintf(columns[count].name, sizeof columns->name, "%s%s%.1s", probe->name, k ? "_" : "",
                     k ? axis_letter + k - 1 : "");
            columns[count++].probe = i;
        }
    }

    /* Sorted, equal names are neighbours. */
    qsort(columns, (size_t)count, sizeof *columns, compare_columns);
    sk_column first = {0};
    for (int i = 1; i < count && clash < 0; i++)
        if (strcmp(columns[i].name, columns[i - 1].name) == 0) {
            clash = columns[i].probe;
            first = columns[i - 1];
        }

    free(columns);
    if (clash < 0)
        return SELKIE_OK;
    sk_path_key(rules->where, "probes");
    sk_path_index(rules->where, clash);
    if (first.probe < 0)
        return fail_at(rules, "name", "the column \"%s\" is there anyway: choose another name", first.name);
    return fail_at(rules, "name", "the column \"%s\" belongs to probes[%d] already: choose another name", first.name,
                   first.probe);
}

/* --- All together --- */

static selkie_code check_each(sk_rules *rules, const char *key, int count, selkie_code (*check)(sk_rules *, int))
{
    for (int i = 0; i < count; i++) {
        size_t before = sk_path_key(rules->where, key);
        sk_path_index(rules->where, i);
        SK_TRY(check(rules, i));
        sk_path_cut(rules->where, before);
    }
    return SELKIE_OK;
}

static selkie_code check_pictures(sk_rules *rules)
{
    const selkie_scene *scene = rules->scene;
    if (scene->domain.dimension == 2 && scene->output.surface != SELKIE_SURFACE_FORMAT_NONE) {
        sk_path_key(rules->where, "output");
        return fail_at(rules, "surface", "a surface is made in 3D only: must be \"none\" in 2D");
    }
    if (scene->render.height != 0 && scene->render.height < 16) {
        sk_path_key(rules->where, "render");
        return fail_at(rules, "height", "%d pixels: must be 0 (follows the domain) or at least 16",
                       scene->render.height);
    }
    double plane[4];
    if (scene->render.cut && scene->render.cut[0] && !sk_cut_plane(scene->render.cut, plane)) {
        sk_path_key(rules->where, "render");
        return fail_at(rules, "cut", "\"%.40s\": must be a plane such as \"z>0.4\" or \"x<1\"", scene->render.cut);
    }
    for (int k = 1; k < scene->render.camera_count; k++) {
        const selkie_camera_key *keys = scene->render.camera;
        if (keys[k].time > keys[k - 1].time)
            continue;
        sk_path_key(rules->where, "render");
        sk_path_key(rules->where, "camera");
        sk_path_index(rules->where, k);
        return fail_at(rules, "time", "%g s: must be above %g s, the time of the key before", keys[k].time,
                       keys[k - 1].time);
    }
    return SELKIE_OK;
}

selkie_code sk_scene_check_rules(const selkie_scene *scene, sk_path *where, selkie_error *error)
{
    sk_rules rules = {scene, where, error};
    sk_path_cut(where, 0);
    SK_TRY(check_domain(&rules));
    SK_TRY(check_time(&rules));
    SK_TRY(check_particles(&rules));
    SK_TRY(check_unilateral(&rules));
    SK_TRY(check_sph(&rules));
    SK_TRY(sk_reduced_check(scene, where, error));
    SK_TRY(sk_periodic_check(scene, where, error));
    SK_TRY(check_frame(&rules));
    /* Tracers are optional in reduced fluids: modes and bodies make a flow. */
    if (scene->liquid_count == 0 && scene->source_count == 0 && !sk_scene_particle_bodies(scene) &&
        scene->discretization != SELKIE_DISCRETIZATION_REDUCED)
        return fail_at(&rules, "liquids", "nothing will ever be wet: must have at least one liquid or source");
    SK_TRY(sk_materials_check(scene, where, error));
    SK_TRY(sk_heat_check(scene, where, error));
    SK_TRY(sk_elastoplastic_check(scene, where, error));
    SK_TRY(check_each(&rules, "liquids", scene->liquid_count, check_liquid));
    SK_TRY(check_each(&rules, "sources", scene->source_count, check_source));
    SK_TRY(check_each(&rules, "drains", scene->drain_count, check_drain));
    SK_TRY(check_each(&rules, "obstacles", scene->obstacle_count, check_obstacle));
    SK_TRY(check_each(&rules, "bodies", scene->body_count, check_body));
    SK_TRY(check_each(&rules, "forces", scene->force_count, check_force));
    SK_TRY(check_each(&rules, "objects", scene->object_count, check_object));
    SK_TRY(check_each(&rules, "probes", scene->probe_count, check_probe));
    SK_TRY(check_columns(&rules));
    SK_TRY(check_pictures(&rules));
    if (scene->splashes && *scene->splashes && scene->discretization != SELKIE_DISCRETIZATION_GRID)
        return fail_at(&rules, "splashes", "droplets leave the liquid of a grid: need discretization \"grid\"");
    return sk_changes_check(scene, where, error);
}
