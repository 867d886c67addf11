#include <selkie/output.h>

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "defs/heat.h"
#include "base/status.h"
#include "base/threads.h"
#include "defs/relative.h"
#include "defs/structs.h"
#include "render/picture.h"
#include "world/world_internal.h"

/* The dye of a world; without pixels where it has none. */
static selkie_code paint_dye(const selkie_world *world, sk_image *image, selkie_error *error)
{
    memset(image, 0, sizeof *image);
    for (int m = 0; m < world->methods.count; m++) {
        const sk_method *method = world->methods.methods[m];
        int size[2] = {0, 0};
        if (method->paint)
            method->paint(&world->step, size, NULL);
        if (size[0] > 0 && size[1] > 0) {
            SK_TRY(sk_image_create(image, size[0], size[1], error));
            method->paint(&world->step, size, image->pixels);
            return SELKIE_OK;
        }
    }
    return SELKIE_OK;
}

/* The particles as pictures take them, with the attributes that the world has. */
static selkie_code find_particles(const selkie_world *world, const selkie_scene *scene, sk_picture_particles *particles,
                                  double origin[3], selkie_error *error)
{
    selkie_attribute_view position, velocity, other, strain;
    SK_TRY(selkie_world_find_attribute(world, "position", &position, error));
    SK_TRY(selkie_world_find_attribute(world, "velocity", &velocity, error));
    memcpy(origin, position.origin, sizeof position.origin);
    *particles = (sk_picture_particles){.count = (size_t)selkie_world_particle_count(world),
                                        .position = position.data,
                                        .position_stride = position.stride,
                                        .velocity = velocity.data,
                                        .velocity_stride = velocity.stride};
    if (selkie_world_find_attribute(world, "role", &other, NULL) == SELKIE_OK && other.type == SELKIE_UINT32 &&
        other.components == 1) {
        particles->role = other.data;
        particles->role_stride = other.stride;
    }
    if (selkie_world_find_attribute(world, "material", &other, NULL) == SELKIE_OK) {
        particles->material = other.data;
        particles->material_stride = other.stride;
    }
    if (selkie_world_find_attribute(world, "stress", &other, NULL) == SELKIE_OK &&
        selkie_world_find_attribute(world, "plastic_strain", &strain, NULL) == SELKIE_OK) {
        particles->stress = other.data;
        particles->stress_stride = other.stride;
        particles->plastic_strain = strain.data;
        particles->plastic_strain_stride = strain.stride;
    }

    /* Heat. */
    double coldest, warmest;
    if (selkie_world_find_attribute(world, "temperature", &other, NULL) == SELKIE_OK)
        particles->temperature = other.data;
    if (selkie_world_find_attribute(world, "liquid_fraction", &other, NULL) == SELKIE_OK)
        particles->liquid_fraction = other.data;
    sk_scene_temperatures(scene, &coldest, &warmest);
    particles->coldest = (float)coldest;
    particles->warmest = (float)warmest;
    return SELKIE_OK;
}

/* Draws in coordinates relative to domain.origin, as the world's particles are. */
static selkie_code draw(const selkie_world *world, const selkie_scene *scene, sk_image *image, selkie_error *error)
{
    sk_picture_particles particles;
    double origin[3];
    SK_TRY(find_particles(world, scene, &particles, origin, error));
    sk_stage *stage;
    SK_TRY(sk_stage_create(scene, &stage, error));

    /* Options and bodies. */
    sk_picture_options options;
    sk_picture_options_defaults(scene, &options);
    sk_picture_cut(scene->render.cut, origin, &options);
    options.time = selkie_world_time(world);
    options.threads = world->options.threads;
    options.body_count = selkie_world_body_count(world);
    sk_picture_body *bodies = sk_allocate_zeroed(NULL, ((size_t)options.body_count + 1) * sizeof *bodies);
    if (!bodies) {
        sk_stage_destroy(stage);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "picture: no memory for %d bodies", options.body_count);
    }
    for (int b = 0; b < options.body_count; b++) {
        selkie_body_state state;
        selkie_world_body(world, b, &state);
        for (int d = 0; d < 3; d++)
            bodies[b].position[d] = state.position[d] - origin[d];
        memcpy(bodies[b].quaternion, state.quaternion, sizeof state.quaternion);
    }
    options.bodies = bodies;

    /* The picture. */
    sk_image dye = {0};
    selkie_code code = options.style == SELKIE_STYLE_DYE ? paint_dye(world, &dye, error) : SELKIE_OK;
    options.dye = dye.pixels ? &dye : NULL;
    if (code == SELKIE_OK)
        code = sk_picture_draw(stage, &particles, &options, image, error);
    sk_image_free(&dye);
    sk_release(NULL, bodies);
    sk_stage_destroy(stage);
    return code;
}

static selkie_code draw_world(const selkie_world *world, sk_image *image, selkie_error *error)
{
    selkie_scene *scene;
    SK_TRY(sk_scene_copy(selkie_world_scene(world), &scene, error));
    sk_scene_make_relative(scene);
    const selkie_code code = draw(world, scene, image, error);
    selkie_scene_free(scene);
    return code;
}

selkie_code selkie_write_picture(const selkie_world *world, const char *path, selkie_error *error)
{
    sk_image image;
    SK_TRY(draw_world(world, &image, error));
    const int before = sk_threads_begin(world->options.threads);
    const selkie_code code = sk_image_write_png(&image, path, error);
    sk_threads_end(before);
    sk_image_free(&image);
    return code;
}

selkie_code selkie_world_picture(const selkie_world *world, selkie_picture *picture, selkie_error *error)
{
    sk_image image;
    memset(picture, 0, sizeof *picture);
    SK_TRY(draw_world(world, &image, error));
    *picture = (selkie_picture){image.width, image.height, image.pixels};
    return SELKIE_OK;
}

static selkie_code need_dye(const selkie_world *world, sk_image *image, selkie_error *error)
{
    SK_TRY(paint_dye(world, image, error));
    return image->pixels ? SELKIE_OK
                         : sk_fail(error, SELKIE_ERROR_INPUT, "reduced.dye: the scene has none, or no dye has begun");
}

selkie_code selkie_world_dye(const selkie_world *world, selkie_picture *picture, selkie_error *error)
{
    sk_image image;
    memset(picture, 0, sizeof *picture);
    SK_TRY(need_dye(world, &image, error));
    *picture = (selkie_picture){image.width, image.height, image.pixels};
    return SELKIE_OK;
}

selkie_code selkie_write_dye(const selkie_world *world, const char *path, selkie_error *error)
{
    sk_image image;
    SK_TRY(need_dye(world, &image, error));
    const selkie_code code = sk_image_write_png(&image, path, error);
    sk_image_free(&image);
    return code;
}

void selkie_picture_free(selkie_picture *picture)
{
    sk_image image = {picture->width, picture->height, picture->pixels};
    sk_image_free(&image);
    memset(picture, 0, sizeof *picture);
}
