/* Solids of particles in ray traced pictures: opaque, one surface a material. */
#include "render/trace.h"

#if SELKIE_HAVE_EMBREE

#include <string.h>

#include "base/memory.h"

selkie_code sk_trace_select(const sk_tracer *t, const sk_picture_particles *particles, int solid, sk_trace_cloud *cloud,
                            selkie_error *error)
{
    memset(cloud, 0, sizeof *cloud);
    cloud->position = sk_allocate(NULL, (particles->count + 1) * 12);
    cloud->velocity = particles->velocity ? sk_allocate(NULL, (particles->count + 1) * 12) : NULL;
    if (!cloud->position || (particles->velocity && !cloud->velocity)) {
        sk_trace_cloud_free(cloud);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "picture: no memory, %.1f MiB for %zu particles",
                       (double)particles->count * 24 / 1048576.0, particles->count);
    }
    for (size_t i = 0; i < particles->count; ++i) {
        const int own = sk_particle_solid(t->stage, particles, i);
        if (solid < 0 ? own >= 0 : own != solid)
            continue;
        memcpy(cloud->position + 3 * cloud->count, sk_particle_position(particles, i), 12);
        if (cloud->velocity)
            memcpy(cloud->velocity + 3 * cloud->count,
                   (const char *)particles->velocity + i * particles->velocity_stride, 12);
        cloud->count++;
    }
    return SELKIE_OK;
}

void sk_trace_cloud_free(sk_trace_cloud *cloud)
{
    sk_release(NULL, cloud->position);
    sk_release(NULL, cloud->velocity);
    memset(cloud, 0, sizeof *cloud);
}

selkie_code sk_trace_surface(const sk_tracer *t, const sk_trace_cloud *cloud, sk_mesh *mesh, selkie_error *error)
{
    sk_surface_options options;
    sk_surface_options_init(&options, t->stage->scene);
    options.threads = t->threads;
    const sk_surface_particles particles = {.count = cloud->count,
                                            .position = cloud->position,
                                            .position_stride = 12,
                                            .velocity = cloud->velocity,
                                            .velocity_stride = 12};
    return sk_surface_extract(&particles, &options, mesh, error);
}

/* Corners of a mesh's triangles, moved by `way` seconds. */
static void write_corners(const sk_mesh *mesh, float way, float *to)
{
    for (size_t c = 0; c < 3 * mesh->triangle_count; ++c)
        for (size_t a = 0; a < 3; ++a) {
            const size_t at = 3 * (size_t)mesh->triangles[c] + a;
            const float speed = mesh->velocities ? mesh->velocities[at] : 0.0f;
            to[3 * c + a] = mesh->positions[at] + (isfinite(speed) ? way * speed : 0.0f);
        }
}

/* Makes room for more triangles in an array with so many floats a triangle. */
static int grow(void **array, size_t each, size_t before, size_t after)
{
    void *larger = sk_allocate(NULL, (after + 1) * each * 4);
    if (!larger)
        return 0;
    if (before)
        memcpy(larger, *array, before * each * 4);
    sk_release(NULL, *array);
    *array = larger;
    return 1;
}

/* Appends a mesh to the solids. */
static selkie_code append(sk_tracer *t, const sk_mesh *mesh, int owner, double shutter, selkie_error *error)
{
    const size_t before = t->solid_triangles, after = before + mesh->triangle_count;
    int enough = grow((void **)&t->solid_points, 9, before, after) && grow((void **)&t->solid_owner, 1, before, after);
    for (int end = 0; enough && end < 2 && t->solid_moved[end]; ++end)
        enough = grow((void **)&t->solid_moved[end], 9, before, after);
    if (!enough)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "picture: no memory, %.1f MiB for the surfaces of points",
                       (double)after * 112 / 1048576.0);
    write_corners(mesh, 0.0f, t->solid_points + 9 * before);
    for (int end = 0; end < 2 && t->solid_moved[end]; ++end)
        write_corners(mesh, (end ? 0.5f : -0.5f) * (float)shutter, t->solid_moved[end] + 9 * before);
    for (size_t n = before; n < after; ++n)
        t->solid_owner[n] = owner;
    t->solid_triangles = after;
    return SELKIE_OK;
}

selkie_code sk_trace_add_points(sk_tracer *t, const sk_picture_particles *particles, double shutter,
                                selkie_error *error)
{
    const int count = sk_stage_solid_numbers(t->stage);
    selkie_code code = SELKIE_OK;
    for (int m = 0; code == SELKIE_OK && m < count; ++m) {
        sk_trace_cloud cloud;
        sk_mesh mesh = {0};
        if (m < count / 2 ? !sk_stage_is_solid_material(t->stage, (uint32_t)m) : !particles->liquid_fraction)
            continue;
        code = sk_trace_select(t, particles, m, &cloud, error);
        if (code == SELKIE_OK && cloud.count)
            code = sk_trace_surface(t, &cloud, &mesh, error);
        if (code == SELKIE_OK)
            code = append(t, &mesh, -1 - m, shutter, error);
        sk_mesh_free(&mesh);
        sk_trace_cloud_free(&cloud);
    }
    return code;
}

#endif
