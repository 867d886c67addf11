/* Shapes: checked once at creation, then queried many times.
 *
 * A primitive is reduced at creation to a middle, half sizes and unit axes, with the third coordinate zero in 2D, so
 * that one formula serves both dimensions: a 2D bar is the 3D cylinder seen in its plane, a disc the sphere. Values
 * that would make a query fail (zero axes, negative sizes, infinities) are refused here with a message.
 */
#include "geom/shape_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "geom/mesh_import.h"

enum { union_depth_limit = 64 };

/* --- Making --- */

static int all_finite(const double *values, int count)
{
    for (int i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return 0;
    return 1;
}

static selkie_code need_finite(const double v[3], int dimension, const char *what, const char *key, selkie_error *error)
{
    if (all_finite(v, dimension))
        return SELKIE_OK;
    return sk_fail(error, SELKIE_ERROR_INPUT, "%s.%s: [%g, %g, %g] must be finite numbers (m)", what, key, v[0], v[1],
                   v[2]);
}

static selkie_code need_positive(double value, const char *what, const char *key, selkie_error *error)
{
    if (isfinite(value) && value > 0.0)
        return SELKIE_OK;
    return sk_fail(error, SELKIE_ERROR_INPUT, "%s.%s: %g must be a finite length above 0 (m)", what, key, value);
}

/* A unit vector across a unit vector; in the plane in 2D. */
static void across(const double axis[3], int dimension, double side[3])
{
    if (dimension == 2) {
        side[0] = -axis[1];
        side[1] = axis[0];
        side[2] = 0.0;
        return;
    }
    int least = 0;
    for (int i = 1; i < 3; i++)
        if (fabs(axis[i]) < fabs(axis[least]))
            least = i;
    for (int i = 0; i < 3; i++)
        side[i] = (i == least ? 1.0 : 0.0) - axis[least] * axis[i];
    sk_normalise(side);
}

static selkie_code make_box(const selkie_shape *def, const char *what, sk_shape *shape, selkie_error *error)
{
    SK_TRY(need_finite(def->min, shape->dimension, what, "min", error));
    SK_TRY(need_finite(def->max, shape->dimension, what, "max", error));
    for (int i = 0; i < shape->dimension; i++) {
        if (def->max[i] < def->min[i])
            return sk_fail(error, SELKIE_ERROR_INPUT, "%s.max: %g along %c is below min %g: a box needs max >= min",
                           what, def->max[i], "xyz"[i], def -> min[i]);
        shape->center[i] = 0.5 * def->min[i] + 0.5 * def->max[i];
        shape->half[i] = 0.5 * def->max[i] - 0.5 * def->min[i];
    }
    return SELKIE_OK;
}

static selkie_code make_sphere(const selkie_shape *def, const char *what, sk_shape *shape, selkie_error *error)
{
    SK_TRY(need_finite(def->center, shape->dimension, what, "center", error));
    SK_TRY(need_positive(def->radius, what, "radius", error));
    memcpy(shape->center, def->center, sizeof(double) * shape->dimension);
    shape->radius = def->radius;
    return SELKIE_OK;
}

static selkie_code make_cylinder(const selkie_shape *def, const char *what, sk_shape *shape, selkie_error *error)
{
    SK_TRY(need_finite(def->from, shape->dimension, what, "from", error));
    SK_TRY(need_finite(def->to, shape->dimension, what, "to", error));
    SK_TRY(need_positive(def->radius, what, "radius", error));
    for (int i = 0; i < shape->dimension; i++) {
        shape->center[i] = 0.5 * def->from[i] + 0.5 * def->to[i];
        shape->axis[i] = 0.5 * def->to[i] - 0.5 * def->from[i];
    }
    shape->half_length = sk_normalise(shape->axis);
    if (!(shape->half_length > 0.0))
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "%s.to: [%g, %g, %g] is the same point as from: a cylinder's axis needs a length", what,
                       def->to[0], def->to[1], def->to[2]);
    across(shape->axis, shape->dimension, shape->side);
    shape->radius = def->radius;
    return SELKIE_OK;
}

static selkie_code make_half_space(const selkie_shape *def, const char *what, sk_shape *shape, selkie_error *error)
{
    SK_TRY(need_finite(def->point, shape->dimension, what, "point", error));
    SK_TRY(need_finite(def->normal, shape->dimension, what, "normal", error));
    memcpy(shape->center, def->point, sizeof(double) * shape->dimension);
    memcpy(shape->axis, def->normal, sizeof(double) * shape->dimension);
    if (!(sk_normalise(shape->axis) > 0.0))
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s.normal: [%g, %g, %g] has no direction%s", what, def->normal[0],
                       def->normal[1], def->normal[2], shape->dimension == 2 ? " in the x-y plane" : "");
    across(shape->axis, shape->dimension, shape->side);
    return SELKIE_OK;
}

static selkie_code make_wave(const selkie_shape *def, const double up[3], const char *what, sk_shape *shape,
                             selkie_error *error)
{
    const double numbers[3] = {def->level, def->amplitude, def->phase};
    static const char *const keys[3] = {"level", "amplitude", "phase"};
    for (int i = 0; i < 3; i++)
        if (!isfinite(numbers[i]))
            return sk_fail(error, SELKIE_ERROR_INPUT, "%s.%s: %g must be a finite number", what, keys[i], numbers[i]);
    SK_TRY(need_finite(def->wave_number, shape->dimension, what, "wave_number", error));
    static const double upward_y[3] = {0.0, 1.0, 0.0};
    memcpy(shape->axis, up ? up : upward_y, sizeof(double) * shape->dimension);
    if (!(sk_normalise(shape->axis) > 0.0))
        memcpy(shape->axis, upward_y, sizeof upward_y);

    /* A wave travels across the up direction: the component of the wave number along it is removed. */
    memcpy(shape->side, def->wave_number, sizeof(double) * shape->dimension);
    double along_up = sk_dot(shape->side, shape->axis);
    for (int i = 0; i < 3; i++)
        shape->side[i] -= along_up * shape->axis[i];
    shape->wave_number = sk_normalise(shape->side);
    shape->level = def->level;
    shape->amplitude = def->amplitude;
    shape->phase = def->phase * 0.017453292519943295769;
    if (!(shape->wave_number > 0.0) || shape->amplitude == 0.0) {
        shape->level += shape->amplitude * cos(shape->phase);
        shape->amplitude = shape->wave_number = shape->phase = 0.0;
        across(shape->axis, shape->dimension, shape->side);
    }
    return SELKIE_OK;
}

typedef struct making {
    const sk_shape_options *options;
    int depth; /* of nested unions */
} making;

/* The path as it is opened. */
static selkie_code mesh_path(const selkie_shape *def, const char *folder, const char *what, char *path, size_t size,
                             selkie_error *error)
{
    if (!def->file || !def->file[0])
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s.file: needs the name of a file", what);
    int within = folder && folder[0] && def->file[0] != '/';
    int length = snprintf(path, size, "%s%s%s", within ? folder : "", within ? "/" : "", def->file);
    if (length < 0 || (size_t)length >= size)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s.file: %.200s...: the path is longer than %zu bytes", what,
                       def->file, size - 1);
    return SELKIE_OK;
}

/* Only the first warning is kept. */
static void warn_of_open_edges(const sk_solid_mesh *mesh, const char *file, char *warning)
{
    if (!warning || warning[0] || mesh->open_edges == 0)
        return;
    const char *slash = strrchr(file, '/');
    snprintf(warning, 256, "%.120s: %zu open edge%s, not closed: inside is decided by winding number, look for holes",
             slash ? slash + 1 : file, mesh->open_edges, mesh->open_edges == 1 ? "" : "s");
}

/* A closed mesh without a volume has no inside: two layers of the same triangles. Its thickness is volume over area,
 * here below the rounding of the file's coordinates. */
static selkie_code refuse_without_volume(const sk_solid_mesh *mesh, const char *name, selkie_error *error)
{
    if (mesh->open_edges > 0)
        return SELKIE_OK;
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY}, length = 0.0;
    for (size_t v = 0; v < mesh->vertex_count; v++)
        for (int i = 0; i < 3; i++) {
            low[i] = fmin(low[i], mesh->vertices[v][i]);
            high[i] = fmax(high[i], mesh->vertices[v][i]);
            length = fmax(length, high[i] - low[i]);
        }
    double volume = sk_solid_mesh_volume(mesh);
    if (fabs(volume) > 1e-7 * length * length * length)
        return SELKIE_OK;
    return sk_fail(error, SELKIE_ERROR_INPUT,
                   "%s: is closed but flat: its volume is %.3g m3 at a length of %.3g m, so nothing is inside it; give "
                   "it a thickness",
                   name, volume, length);
}

/* Pieces of the mesh for its distance: triangles, or in 2D the segments of its outline. */
static selkie_code mesh_pieces(const sk_solid_mesh *solid, const char *name, sk_shape *shape, selkie_error *error)
{
    size_t count = solid->triangle_count;
    double(*corners)[3] = NULL;
    if (shape->dimension == 2) {
        double(*segments)[2][3];
        SK_TRY(sk_solid_mesh_outline(solid, name, shape->memory, &count, &segments, error));
        corners = (double(*)[3])segments;
    } else {
        corners = sk_allocate(shape->memory, 3 * count * sizeof *corners);
        if (!corners)
            return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for %zu triangles", name, count);
        for (size_t i = 0; i < 3 * count; i++)
            memcpy(corners[i], solid->vertices[solid->triangles[i / 3][i % 3]], sizeof corners[i]);
    }
    const sk_mesh_pieces pieces = {.dimension = shape->dimension,
                                   .count = count,
                                   .corners = (const double(*)[3])corners,
                                   .closed = solid->open_edges == 0,
                                   .name = name};
    selkie_code code = sk_mesh_distance_create(&pieces, shape->memory, &shape->mesh, error);
    sk_release(shape->memory, corners);
    return code;
}

static selkie_code make_mesh(const selkie_shape *def, const char *what, making *context, sk_shape *shape,
                             selkie_error *error)
{
    char path[4096], name[600];
    SK_TRY(mesh_path(def, context->options->folder, what, path, sizeof path, error));
    snprintf(name, sizeof name, "%.200s.file: %.380s", what, path);
    sk_mesh_placement placement;
    memcpy(placement.scale, def->scale, sizeof placement.scale);
    memcpy(placement.rotate, def->rotate, sizeof placement.rotate);
    memcpy(placement.translate, def->translate, sizeof placement.translate);
    sk_solid_mesh solid;
    SK_TRY(sk_solid_mesh_import(path, &placement, what, shape->memory, &solid, error));
    selkie_code code = shape->dimension == 3 ? refuse_without_volume(&solid, name, error) : SELKIE_OK;
    if (code == SELKIE_OK)
        code = mesh_pieces(&solid, name, shape, error);
    /* A flat mesh in 2D is open by nature. */
    const int outlined = shape->dimension == 2 && sk_solid_mesh_is_flat(&solid);
    if (code == SELKIE_OK && !outlined && context->options->sheets)
        code = sk_solid_mesh_is_sheet(&solid, name, &shape->sheet, error);
    if (code == SELKIE_OK && !outlined)
        warn_of_open_edges(&solid, path, context->options->warning);
    sk_solid_mesh_release(&solid);
    /* Outlines have few pieces; their queries need no samples. */
    if (code == SELKIE_OK && context->options->sample_size > 0.0 && shape->dimension == 3)
        code = sk_mesh_sample_create(shape->mesh, context->options->sample_size, name, shape->memory, &shape->sample,
                                     error);
    return code;
}

static selkie_code make_heightfield(const selkie_shape *def, const char *what, making *context, sk_shape *shape,
                                    selkie_error *error)
{
    char path[4096], name[600];
    SK_TRY(mesh_path(def, context->options->folder, what, path, sizeof path, error));
    snprintf(name, sizeof name, "%.200s.file: %.380s", what, path);
    /* Exact within the distance that cells near the surface use; sample_size is half a cell or less. */
    sk_heightfield_def field = {.path = path,
                                .name = name,
                                .dimension = shape->dimension,
                                .up = {0.0, 1.0, 0.0},
                                .reach = 5.0 * context->options->sample_size};
    if (context->options->up)
        memcpy(field.up, context->options->up, sizeof field.up);
    memcpy(field.scale, def->scale, sizeof field.scale);
    memcpy(field.translate, def->translate, sizeof field.translate);
    return sk_heightfield_create(&field, shape->memory, &shape->heightfield, error);
}

static selkie_code make_shape(const selkie_shape *def, const char *what, making *context, sk_shape **shape,
                              selkie_error *error);

static selkie_code make_union(const selkie_shape *def, const char *what, making *context, sk_shape *shape,
                              selkie_error *error)
{
    if (def->child_count <= 0 || !def->children)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s.shapes: a union needs at least one shape", what);
    if (context->depth >= union_depth_limit)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s.shapes: unions nested more than %d deep", what,
                       union_depth_limit);
    shape->children = sk_allocate_zeroed(shape->memory, sizeof(sk_shape *) * (size_t)def->child_count);
    if (!shape->children)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s.shapes: no memory for %d shapes", what, def->child_count);
    context->depth++;
    for (int i = 0; i < def->child_count; i++) {
        char child_name[256];
        snprintf(child_name, sizeof child_name, "%.200s.shapes[%d]", what, i);
        SK_TRY(make_shape(&def->children[i], child_name, context, &shape->children[i], error));
        shape->child_count = i + 1;
    }
    context->depth--;
    return SELKIE_OK;
}

static selkie_code make_shape(const selkie_shape *def, const char *what, making *context, sk_shape **shape_out,
                              selkie_error *error)
{
    *shape_out = NULL;
    sk_shape *shape = sk_allocate_zeroed(context->options->memory, sizeof *shape);
    if (!shape)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for a shape", what);
    shape->kind = def->kind;
    shape->dimension = context->options->dimension;
    shape->memory = context->options->memory;

    selkie_code code;
    switch (def->kind) {
    case SELKIE_SHAPE_BOX:
        code = make_box(def, what, shape, error);
        break;
    case SELKIE_SHAPE_SPHERE:
        code = make_sphere(def, what, shape, error);
        break;
    case SELKIE_SHAPE_CYLINDER:
        code = make_cylinder(def, what, shape, error);
        break;
    case SELKIE_SHAPE_HALF_SPACE:
        code = make_half_space(def, what, shape, error);
        break;
    case SELKIE_SHAPE_WAVE:
        code = make_wave(def, context->options->up, what, shape, error);
        break;
    case SELKIE_SHAPE_MESH:
        code = make_mesh(def, what, context, shape, error);
        break;
    case SELKIE_SHAPE_HEIGHTFIELD:
        code = make_heightfield(def, what, context, shape, error);
        break;
    case SELKIE_SHAPE_UNION:
        code = make_union(def, what, context, shape, error);
        break;
    case SELKIE_SHAPE_POLYGON:
        code = sk_shape_make_polygon(def, what, shape, error);
        break;
    case SELKIE_SHAPE_PICTURE:
        code = sk_shape_make_picture(def, context->options->folder, what, shape, error);
        break;
    default:
        code = sk_fail(error, SELKIE_ERROR_INPUT, "%s: %d is no kind of shape", what, (int)def->kind);
    }

    if (code != SELKIE_OK) {
        sk_shape_destroy(shape);
        return code;
    }
    *shape_out = shape;
    return SELKIE_OK;
}

selkie_code sk_shape_create(const selkie_shape *def, const sk_shape_options *options, sk_shape **shape,
                            selkie_error *error)
{
    *shape = NULL;
    if (options->warning)
        options->warning[0] = 0;
    if (options->dimension != 2 && options->dimension != 3)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: dimension %d must be 2 or 3", options->what, options->dimension);
    making context = {options, 0};
    return make_shape(def, options->what, &context, shape, error);
}

void sk_shape_destroy(sk_shape *shape)
{
    if (!shape)
        return;
    for (int i = 0; i < shape->child_count; i++)
        sk_shape_destroy(shape->children[i]);
    sk_release(shape->memory, shape->children);
    sk_heightfield_destroy(shape->heightfield);
    sk_mesh_sample_destroy(shape->sample);
    sk_mesh_distance_destroy(shape->mesh);
    sk_release(shape->memory, shape);
}

/* --- Asking ---
 * `x` has a zero third coordinate in 2D; `normal` may be NULL. */

static sk_wave wave_of(const sk_shape *shape)
{
    sk_wave wave = {
        .level = shape->level, .amplitude = shape->amplitude, .wave_number = shape->wave_number, .phase = shape->phase};
    memcpy(wave.axis, shape->axis, sizeof wave.axis);
    memcpy(wave.side, shape->side, sizeof wave.side);
    return wave;
}

static double wave_distance(const sk_shape *shape, const double x[3], double normal[3])
{
    const sk_wave wave = wave_of(shape);
    return sk_wave_distance(&wave, x, normal);
}

sk_mesh_solid sk_shape_mesh_solid(const sk_shape *shape)
{
    const sk_mesh_solid solid = {.tree = sk_mesh_distance_tree(shape->mesh),
                                 .samples = shape->sample ? sk_mesh_sample_grid(shape->sample) : NULL,
                                 .sheet = shape->sheet};
    return solid;
}

static double mesh_distance(const sk_shape *shape, const double x[3], double normal[3])
{
    const sk_mesh_solid solid = sk_shape_mesh_solid(shape);
    return sk_mesh_solid_distance(&solid, x, normal);
}

static double distance_in_plane(const sk_shape *shape, const double x[3], double normal[3])
{
    const double offset[3] = {x[0] - shape->center[0], x[1] - shape->center[1], x[2] - shape->center[2]};

    /* Every kind but a union has a function of its own. */
    switch (shape->kind) {
    case SELKIE_SHAPE_BOX:
        return sk_box_distance(shape->half, shape->dimension, offset, normal);
    case SELKIE_SHAPE_SPHERE:
        return sk_sphere_distance(shape->radius, offset, normal);
    case SELKIE_SHAPE_CYLINDER:
        return sk_cylinder_distance(shape->axis, shape->side, shape->radius, shape->half_length, offset, normal);
    case SELKIE_SHAPE_HALF_SPACE:
        return sk_half_space_distance(shape->axis, offset, normal);
    case SELKIE_SHAPE_WAVE:
        return wave_distance(shape, x, normal);
    case SELKIE_SHAPE_MESH:
        return mesh_distance(shape, x, normal);
    case SELKIE_SHAPE_HEIGHTFIELD:
        return sk_heightfield_distance(shape->heightfield, x, normal);
    case SELKIE_SHAPE_POLYGON: /* meshes by now */
    case SELKIE_SHAPE_PICTURE:
    case SELKIE_SHAPE_UNION:
        break;
    }

    /* A union: the smallest distance of its members. */
    double least = INFINITY, candidate[3];
    for (int i = 0; i < shape->child_count; i++) {
        double distance = distance_in_plane(shape->children[i], x, normal ? candidate : NULL);
        if (i == 0 || distance < least) {
            least = distance;
            if (normal)
                memcpy(normal, candidate, sizeof candidate);
        }
    }
    return least;
}

double sk_shape_distance_normal(const sk_shape *shape, const double x[3], double normal[3])
{
    double point[3] = {x[0], x[1], shape->dimension == 3 ? x[2] : 0.0};
    return distance_in_plane(shape, point, normal);
}

double sk_shape_distance(const sk_shape *shape, const double x[3])
{
    return sk_shape_distance_normal(shape, x, NULL);
}

int sk_shape_inside(const sk_shape *shape, const double x[3])
{
    if (shape->kind == SELKIE_SHAPE_HEIGHTFIELD) {
        double point[3] = {x[0], x[1], shape->dimension == 3 ? x[2] : 0.0};
        return sk_heightfield_inside(shape->heightfield, point);
    }
    for (int i = 0; i < shape->child_count; i++)
        if (sk_shape_inside(shape->children[i], x))
            return 1;
    return shape->kind != SELKIE_SHAPE_UNION && sk_shape_distance(shape, x) < 0.0;
}

int sk_shape_parts(const sk_shape *shape, sk_shape_part *parts, int most)
{
    int found = 0;
    for (int i = 0; i < shape->child_count; i++) {
        const int more = sk_shape_parts(shape->children[i], parts + found, most - found);
        if (!more)
            return 0;
        found += more;
    }
    if (shape->kind == SELKIE_SHAPE_UNION || most < 1)
        return found;

    /* One part: polygons and pictures are meshes by now. */
    sk_shape_part part = {.dimension = shape->dimension, .radius = shape->radius, .half_length = shape->half_length};
    if (shape->kind == SELKIE_SHAPE_BOX)
        part.kind = SK_PART_BOX;
    else if (shape->kind == SELKIE_SHAPE_SPHERE)
        part.kind = SK_PART_SPHERE;
    else if (shape->kind == SELKIE_SHAPE_CYLINDER)
        part.kind = SK_PART_CYLINDER;
    else if (shape->kind == SELKIE_SHAPE_HALF_SPACE)
        part.kind = SK_PART_HALF_SPACE;
    else if (shape->kind == SELKIE_SHAPE_MESH)
        part.kind = SK_PART_MESH;
    else if (shape->kind == SELKIE_SHAPE_WAVE)
        part.kind = SK_PART_WAVE;
    else
        part.kind = SK_PART_GROUND;
    if (part.kind == SK_PART_MESH)
        part.mesh = sk_shape_mesh_solid(shape);
    else if (part.kind == SK_PART_WAVE)
        part.wave = wave_of(shape);
    else if (part.kind == SK_PART_GROUND)
        part.ground = sk_heightfield_ground(shape->heightfield);
    memcpy(part.center, shape->center, sizeof part.center);
    memcpy(part.half, shape->half, sizeof part.half);
    memcpy(part.axis, shape->axis, sizeof part.axis);
    memcpy(part.side, shape->side, sizeof part.side);
    parts[0] = part;
    return 1;
}

double sk_obstacle_distance(const sk_shape *shape, const sk_pose *pose_or_null, const double world[3],
                            double normal_world[3])
{
    if (!pose_or_null)
        return sk_shape_distance_normal(shape, world, normal_world);
    double local[3];
    sk_pose_to_local(pose_or_null, world, local);
    double distance = sk_shape_distance_normal(shape, local, normal_world);
    if (normal_world)
        sk_pose_rotate(pose_or_null, normal_world, normal_world);
    return distance;
}

/* A sphere needs its centre alone, and the loop has lanes. */
static void sphere_distances(const sk_shape *shape, const sk_pose *pose_or_null, size_t count, const double *points_xyz,
                             double *distances)
{
    double centre[3] = {shape->center[0], shape->center[1], shape->center[2]};
    if (pose_or_null)
        sk_pose_to_world(pose_or_null, shape->center, centre);
    for (size_t i = 0; i < count; i++) {
        const double *x = points_xyz + 3 * i;
        const double offset[3] = {x[0] - centre[0], x[1] - centre[1], shape->dimension == 3 ? x[2] - centre[2] : 0.0};
        distances[i] = sk_sphere_distance(shape->radius, offset, NULL);
    }
}

void sk_shape_distances(const sk_shape *shape, const sk_pose *pose_or_null, size_t count, const double *points_xyz,
                        double *distances)
{
    if (shape->kind == SELKIE_SHAPE_SPHERE) {
        sphere_distances(shape, pose_or_null, count, points_xyz, distances);
        return;
    }
    for (size_t i = 0; i < count; i++)
        distances[i] = sk_obstacle_distance(shape, pose_or_null, points_xyz + 3 * i, NULL);
}

/* --- Bounds --- */

static void half_space_bounds(const sk_shape *shape, double low[3], double high[3])
{
    /* Bounded only along an axis that the normal is parallel to. */
    for (int i = 0; i < shape->dimension; i++) {
        low[i] = shape->axis[i] == -1.0 ? shape->center[i] : -INFINITY;
        high[i] = shape->axis[i] == 1.0 ? shape->center[i] : INFINITY;
    }
}

static void wave_bounds(const sk_shape *shape, double low[3], double high[3])
{
    double crest = shape->level + fabs(shape->amplitude);
    for (int i = 0; i < shape->dimension; i++) {
        low[i] = shape->axis[i] == -1.0 ? -crest : -INFINITY;
        high[i] = shape->axis[i] == 1.0 ? crest : INFINITY;
    }
}

void sk_shape_bounds(const sk_shape *shape, double low[3], double high[3])
{
    low[2] = high[2] = 0.0;
    double child_low[3], child_high[3];
    switch (shape->kind) {
    case SELKIE_SHAPE_BOX:
    case SELKIE_SHAPE_SPHERE:
    case SELKIE_SHAPE_CYLINDER:
        for (int i = 0; i < shape->dimension; i++) {
            double reach = shape->kind == SELKIE_SHAPE_BOX ? shape->half[i] : shape->radius;
            /* A disc across the axis reaches radius * sin(angle between the axis and the coordinate). */
            if (shape->kind == SELKIE_SHAPE_CYLINDER)
                reach = shape->half_length * fabs(shape->axis[i]) +
                        shape->radius * sqrt(fmax(0.0, 1.0 - shape->axis[i] * shape->axis[i]));
            low[i] = shape->center[i] - reach;
            high[i] = shape->center[i] + reach;
        }
        break;
    case SELKIE_SHAPE_HALF_SPACE:
        half_space_bounds(shape, low, high);
        break;
    case SELKIE_SHAPE_WAVE:
        wave_bounds(shape, low, high);
        break;
    case SELKIE_SHAPE_MESH:
        sk_mesh_distance_bounds(shape->mesh, low, high);
        break;
    case SELKIE_SHAPE_HEIGHTFIELD:
        sk_heightfield_bounds(shape->heightfield, low, high);
        break;
    case SELKIE_SHAPE_UNION:
        for (int i = 0; i < shape->child_count; i++) {
            sk_shape_bounds(shape->children[i], child_low, child_high);
            for (int axis = 0; axis < 3; axis++) {
                low[axis] = i ? fmin(low[axis], child_low[axis]) : child_low[axis];
                high[axis] = i ? fmax(high[axis], child_high[axis]) : child_high[axis];
            }
        }
        break;
    case SELKIE_SHAPE_POLYGON: /* meshes by now */
    case SELKIE_SHAPE_PICTURE:
        break;
    }
}

double sk_shape_ball(const sk_shape *shape, double middle[3])
{
    double low[3], high[3], size2 = 0.0;
    if (shape->kind == SELKIE_SHAPE_SPHERE) {
        memcpy(middle, shape->center, 3 * sizeof *middle);
        return shape->radius;
    }
    sk_shape_bounds(shape, low, high);
    for (int d = 0; d < 3; d++) {
        const int is_flat = d >= shape->dimension;
        const double half = is_flat ? 0.0 : 0.5 * (high[d] - low[d]);
        middle[d] = is_flat ? 0.0 : low[d] + half;
        size2 += half * half;
    }
    return size2 < INFINITY ? sqrt(size2) : INFINITY;
}
