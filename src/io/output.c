/* The public writers: a world's particles and surface, through the public interface of a world. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <selkie/output.h>

#include "base/status.h"
#include "base/threads.h"
#include "geom/mesh_decimate.h"
#include "geom/surface.h"
#include "io/folder.h"
#include "io/frame_parts.h"
#include "io/mesh_file.h"
#include "io/output.h"
#include "io/particles_file.h"
#include "io/vdb_file.h"
#include "world/mesher.h"
#include "world/world_internal.h"

/* m: distance of neighbours at rest */
static double particle_spacing(const selkie_scene *scene, double cell_size)
{
    return cell_size / pow(selkie_scene_particles_per_cell(scene), 1.0 / scene->domain.dimension);
}

static selkie_code find_typed(const selkie_world *world, const char *name, selkie_attribute_type type, int components,
                              selkie_attribute_view *view, selkie_error *error)
{
    memset(view, 0, sizeof *view);
    for (int a = 0; a < selkie_world_attribute_count(world); a++)
        if (sk_world_outline_attribute(world, a, view) == SELKIE_OK && strcmp(view->name, name) == 0)
            break;
    if (!view->name || strcmp(view->name, name) != 0)
        return sk_fail(error, SELKIE_ERROR_INTERNAL, "a world has no attribute '%s'", name);
    if (view->type != type || view->components < components)
        return sk_fail(error, SELKIE_ERROR_INTERNAL,
                       "attribute '%s' has type %d and %d components; %d and %d are expected", name, (int)view->type,
                       view->components, (int)type, components);
    return SELKIE_OK;
}

/* Attributes that methods have added. Matrices (APIC's affine, deformation gradients) and bits of doubles (enthalpy)
 * are left out: they are state between steps, would double the file, and no target program reads them. */
static int is_extra(const selkie_attribute_view *view)
{
    static const char *const own[] = {"position",    "velocity",          "id",  "enthalpy", "frozen_at",
                                      "deformation", "velocity_gradient", "kept"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(view->name, own[i]) == 0)
            return 0;
    return view->components <= 4;
}

static selkie_code find_extras(const selkie_world *world, selkie_attribute_view extras[SK_MAX_EXTRA_ATTRIBUTES],
                               int *count, selkie_error *error)
{
    *count = 0;
    for (int i = 0; i < selkie_world_attribute_count(world); i++) {
        selkie_attribute_view view;
        if (sk_world_outline_attribute(world, i, &view) != SELKIE_OK)
            return sk_fail(error, SELKIE_ERROR_INTERNAL, "attribute %d of %d cannot be looked at", i,
                           selkie_world_attribute_count(world));
        if (!is_extra(&view))
            continue;
        if (*count == SK_MAX_EXTRA_ATTRIBUTES)
            return sk_fail(error, SELKIE_ERROR_UNSUPPORTED,
                           "attribute '%s': at most %d can be written beside position, velocity "
                           "and id",
                           view.name, SK_MAX_EXTRA_ATTRIBUTES);
        extras[(*count)++] = view;
    }
    return SELKIE_OK;
}

selkie_code sk_world_frame(const selkie_world *world, sk_frame *frame,
                           selkie_attribute_view extras[SK_MAX_EXTRA_ATTRIBUTES], selkie_error *error)
{
    SK_TRY(sk_world_fetch(world, 0, error));
    return sk_world_frame_outline(world, frame, extras, error);
}

selkie_code sk_world_frame_outline(const selkie_world *world, sk_frame *frame,
                                   selkie_attribute_view extras[SK_MAX_EXTRA_ATTRIBUTES], selkie_error *error)
{
    const selkie_scene *scene = selkie_world_scene(world);
    int cells[3], dimension = scene->domain.dimension, extra_count;
    double cell_size = selkie_scene_cells(scene, cells);
    selkie_attribute_view position, velocity, id;

    /* Find the arrays of the world. */
    SK_TRY(find_typed(world, "position", SELKIE_FLOAT32, dimension, &position, error));
    SK_TRY(find_typed(world, "velocity", SELKIE_FLOAT32, dimension, &velocity, error));
    SK_TRY(find_typed(world, "id", SELKIE_UINT32, 1, &id, error));
    SK_TRY(find_extras(world, extras, &extra_count, error));

    /* A world without particles has no arrays. Its files have the same columns as the others. */
    static const uint32_t nothing[3];
    *frame = (sk_frame){
        .dimension = dimension,
        .time = selkie_world_time(world),
        .count = selkie_world_particle_count(world),
        .position = position.data,
        .position_stride = position.stride,
        .velocity = velocity.data ? velocity.data : (const void *)nothing,
        .velocity_stride = velocity.stride,
        .id = id.data ? id.data : (const void *)nothing,
        .id_stride = id.stride,
        .particle_radius = 0.5 * particle_spacing(scene, cell_size),
        .cell_size = cell_size,
        .names = scene->output.names,
        .up = scene->output.up,
        .extra_count = extra_count,
        .extra = extras,
    };
    memcpy(frame->origin, position.origin, sizeof frame->origin);
    selkie_scene_up(scene, frame->scene_up);
    return SELKIE_OK;
}

selkie_code selkie_write_particles(const selkie_world *world, const char *path, selkie_error *error)
{
    sk_frame frame;
    selkie_attribute_view extras[SK_MAX_EXTRA_ATTRIBUTES];
    SK_TRY(sk_world_frame(world, &frame, extras, error));

    /* Write with as many threads as the world steps with. */
    int before = sk_threads_begin(world->step.threads);
    selkie_code code = sk_particles_write(&frame, path, error);
    sk_threads_end(before);
    return code;
}

/* Particles and options of a frame, relative to its origin. */
static selkie_code prepare_surface(const sk_frame *frame, const selkie_scene *scene, int threads,
                                   sk_surface_particles *particles, sk_surface_options *options, selkie_error *error)
{
    if (frame->dimension != 3)
        return sk_fail(error, SELKIE_ERROR_INPUT, "a surface needs a world with domain.dimension 3; this one has %d",
                       frame->dimension);
    sk_surface_options_init(options, scene);
    options->threads = threads;
    for (int k = 0; k < 3; k++) {
        options->low[k] -= frame->origin[k];
        options->high[k] -= frame->origin[k];
    }
    *particles = (sk_surface_particles){.count = (size_t)frame->count,
                                        .position = frame->position,
                                        .position_stride = frame->position_stride,
                                        .velocity = frame->velocity,
                                        .velocity_stride = frame->velocity_stride};
    return SELKIE_OK;
}

selkie_code sk_frame_surface(const sk_frame *frame, const selkie_scene *scene, int threads, sk_mesh *mesh,
                             sk_mesh_frame *surface, selkie_error *error)
{
    sk_surface_options options;
    sk_surface_particles particles;
    SK_TRY(prepare_surface(frame, scene, threads, &particles, &options, error));
    SK_TRY(frame->here ? sk_world_extract(frame->here, &options, mesh, error)
                       : sk_mesher_extract(frame->mesher, &particles, &options, mesh, error));
    const selkie_code decimated = sk_mesh_decimate(mesh, scene->mesh.decimation * options.voxel_size, error);
    if (decimated) {
        sk_mesh_free(mesh);
        return decimated;
    }
    *surface = (sk_mesh_frame){.mesh = mesh,
                               .time = frame->time,
                               .names = frame->names,
                               .up = frame->up,
                               .detail = 0.5 * options.particle_spacing};
    memcpy(surface->origin, frame->origin, sizeof surface->origin);
    memcpy(surface->scene_up, frame->scene_up, sizeof surface->scene_up);
    return SELKIE_OK;
}

/* Attributes of one component. */
static int list_values(const sk_frame *frame, sk_surface_value values[SK_MAX_EXTRA_ATTRIBUTES])
{
    int count = 0;
    for (int e = 0; e < frame->extra_count && count < SK_MESH_MOST_VALUES - 3; e++)
        if (frame->extra[e].components == 1)
            values[count++] = (sk_surface_value){frame->extra[e].name, frame->extra[e].data, frame->extra[e].stride,
                                                 frame->extra[e].type == SELKIE_UINT32};
    return count;
}

selkie_code sk_frame_add_values(const sk_frame *frame, const selkie_scene *scene, int threads, sk_mesh *mesh,
                                selkie_error *error)
{
    sk_surface_options options;
    sk_surface_particles particles;
    sk_surface_value values[SK_MAX_EXTRA_ATTRIBUTES];
    SK_TRY(prepare_surface(frame, scene, threads, &particles, &options, error));
    const int count = list_values(frame, values);
    SK_TRY(sk_mesher_add_values(frame->mesher, &particles, &options, count, values, mesh, error));

    /* The vorticity is a vector: it turns with the axes of the file. */
    const sk_up_turn turn = sk_up_turn_make(frame->up, frame->scene_up);
    sk_mesh_value *spin = mesh->values + mesh->value_count - 3;
    for (size_t i = 0; i < mesh->vertex_count && frame->velocity; i++) {
        const float own[3] = {spin[0].data[i], spin[1].data[i], spin[2].data[i]};
        float turned[3];
        sk_up_turn_apply(&turn, own, turned);
        for (int k = 0; k < 3; k++)
            spin[k].data[i] = turned[k];
    }
    return SELKIE_OK;
}

selkie_code sk_frame_write_volume(const sk_frame *frame, const selkie_scene *scene, int threads, int with_values,
                                  const char *path, selkie_error *error)
{
    sk_surface_options options;
    sk_surface_particles particles;
    sk_surface_value values[SK_MAX_EXTRA_ATTRIBUTES];
    sk_volume volume = {0};
    SK_TRY(prepare_surface(frame, scene, threads, &particles, &options, error));
    const int count = with_values ? list_values(frame, values) : 0;
    SK_TRY(sk_mesher_volume(frame->mesher, &particles, &options, count, values, &volume, error));
    sk_volume_frame file = {
        .volume = &volume, .time = frame->time, .turn = sk_up_turn_make(frame->up, frame->scene_up)};
    memcpy(file.origin, frame->origin, sizeof file.origin);
    const selkie_code code = sk_volume_write_vdb(&file, path, error);
    sk_volume_free(&volume);
    return code;
}

/* `path` in the folder of a part, which is made. */
static selkie_code part_path(const char *path, const char *name, char *to, size_t size, selkie_error *error)
{
    const char *file = strrchr(path, '/');
    const int folder = file ? (int)(file + 1 - path) : 0;
    if (snprintf(to, size, "%.*s%s", folder, path, name) >= (int)size)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: the name is too long", path);
    SK_TRY(sk_folder_make(to, error));
    if (snprintf(to, size, "%.*s%s/%s", folder, path, name, path + folder) >= (int)size)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: the name is too long", path);
    return SELKIE_OK;
}

/* A surface for each material of the scene. */
static selkie_code write_parts(const sk_frame *frame, const selkie_scene *scene, int threads, const char *path,
                               selkie_error *error)
{
    sk_frame_part parts[SK_MOST_PARTS];
    selkie_scene one = *scene;
    const int count = sk_scene_parts(scene, parts);
    one.mesh.by_material = 0;
    for (int n = 0; n < count; n++) {
        char place[4096];
        sk_frame taken;
        selkie_attribute_view extras[SK_MAX_EXTRA_ATTRIBUTES];
        SK_TRY(part_path(path, parts[n].name, place, sizeof place, error));
        SK_TRY(sk_frame_take_part(frame, &parts[n], &taken, extras, error));
        const selkie_code code = sk_frame_write_surface(&taken, &one, threads, place, error);
        sk_frame_part_free(&taken);
        SK_TRY(code);
    }
    return SELKIE_OK;
}

selkie_code sk_frame_write_surface(const sk_frame *frame, const selkie_scene *scene, int threads, const char *path,
                                   selkie_error *error)
{
    const size_t length = strlen(path);
    if (frame->dimension != 3)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "%s: a surface needs a world with domain.dimension 3; this one has %d", path, frame->dimension);
    if (scene->mesh.by_material)
        return write_parts(frame, scene, threads, path, error);
    if (length > 4 && strcmp(path + length - 4, ".vdb") == 0)
        return sk_frame_write_volume(frame, scene, threads, 0, path, error);

    /* Surface and file. */
    sk_mesh mesh = {0};
    sk_mesh_frame surface;
    SK_TRY(sk_frame_surface(frame, scene, threads, &mesh, &surface, error));
    int before = sk_threads_begin(threads);
    selkie_code code = sk_mesh_write(&surface, path, error);
    sk_threads_end(before);
    sk_mesh_free(&mesh);
    return code;
}

/* A frame for its surface alone, which needs no arrays where the particles are on a device. */
static selkie_code surface_frame(const selkie_world *world, sk_frame *frame,
                                 selkie_attribute_view extras[SK_MAX_EXTRA_ATTRIBUTES], selkie_error *error)
{
    if (!sk_world_is_on_device(world)) {
        SK_TRY(sk_world_frame(world, frame, extras, error));
        return sk_world_mesher(world, &frame->mesher, error);
    }
    SK_TRY(sk_world_frame_outline(world, frame, extras, error));
    frame->here = world;
    return SELKIE_OK;
}

/* Does the mesh need the arrays of the particles on the host? */
static int needs_arrays(const selkie_scene *scene, const char *path)
{
    const size_t length = strlen(path);
    return scene->mesh.by_material || (length > 4 && strcmp(path + length - 4, ".vdb") == 0);
}

selkie_code selkie_write_surface(const selkie_world *world, const char *path, selkie_error *error)
{
    sk_frame frame;
    selkie_attribute_view extras[SK_MAX_EXTRA_ATTRIBUTES];
    if (needs_arrays(selkie_world_scene(world), path)) {
        SK_TRY(sk_world_frame(world, &frame, extras, error));
        SK_TRY(sk_world_mesher(world, &frame.mesher, error));
    } else {
        SK_TRY(surface_frame(world, &frame, extras, error));
    }
    return sk_frame_write_surface(&frame, selkie_world_scene(world), world->step.threads, path, error);
}

selkie_code selkie_world_surface(const selkie_world *world, selkie_surface *surface, selkie_error *error)
{
    sk_frame frame;
    selkie_attribute_view extras[SK_MAX_EXTRA_ATTRIBUTES];
    sk_mesh mesh = {0};
    sk_mesh_frame file;
    memset(surface, 0, sizeof *surface);
    SK_TRY(surface_frame(world, &frame, extras, error));
    SK_TRY(sk_frame_surface(&frame, selkie_world_scene(world), world->step.threads, &mesh, &file, error));
    *surface = (selkie_surface){.vertex_count = (int64_t)mesh.vertex_count,
                                .positions = mesh.positions,
                                .normals = mesh.normals,
                                .velocities = mesh.velocities,
                                .triangle_count = (int64_t)mesh.triangle_count,
                                .triangles = mesh.triangles};
    memcpy(surface->origin, frame.origin, sizeof surface->origin);
    return SELKIE_OK;
}

void selkie_surface_free(selkie_surface *surface)
{
    sk_mesh mesh = {.positions = surface->positions,
                    .normals = surface->normals,
                    .velocities = surface->velocities,
                    .triangles = surface->triangles};
    sk_mesh_free(&mesh);
    memset(surface, 0, sizeof *surface);
}
