#define _GNU_SOURCE
#include "studio_field.h"

#include "selkie_config.h"

#if SELKIE_HAVE_JSON

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "scene/read.h"

enum { longest_side = 40, header_bytes = 16 }; /* points, bytes */

studio_blob *studio_field_blob(const selkie_world *world, studio_field_kind kind)
{
    const selkie_scene *scene = selkie_world_scene(world);
    const double *size = scene->domain.size, longest = fmax(size[0], size[1]);
    uint32_t header[4] = {0, kind, 0, 0};
    memcpy(header, "SKV1", 4);
    for (int d = 0; d < 2; d++)
        header[2 + d] = (uint32_t)fmax(2, round(longest_side * size[d] / longest));
    const size_t points = (size_t)header[2] * header[3];
    studio_blob *blob = studio_blob_create(header_bytes + 2 * sizeof(float) * points, 1);
    if (!blob)
        return NULL;

    /* At the middles of the cells of the lattice, x fastest. */
    memcpy(blob->bytes, header, sizeof header);
    for (size_t p = 0; p < points; p++) {
        const size_t i = p % header[2], j = p / header[2];
        const double at[3] = {scene->domain.origin[0] + size[0] * ((double)i + 0.5) / header[2],
                              scene->domain.origin[1] + size[1] * ((double)j + 0.5) / header[3], 0};
        double velocity[3] = {0};
        if (scene->domain.dimension == 2)
            selkie_world_velocity_at(world, at, velocity);
        const float shown[2] = {isfinite(velocity[0]) ? (float)velocity[0] : 0,
                                isfinite(velocity[1]) ? (float)velocity[1] : 0};
        memcpy(blob->bytes + header_bytes + p * sizeof shown, shown, sizeof shown);
    }
    return blob;
}

/* A world with little but the drawing, driven for a millisecond: the library makes the mode, and refuses what is
 * wrong. */
static selkie_code make_drawing(const studio_world *studio, const char *json, size_t length, selkie_world **world,
                                selkie_error *error)
{
    const selkie_domain_def *domain = &selkie_world_scene(studio->world)->domain;
    char *drawn = NULL, dye[256];
    if (asprintf(&drawn, "reduced.drawn=[%.*s]", (int)length, json) < 0)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "no memory");
    snprintf(dye, sizeof dye, "liquids=[{\"shape\":{\"type\":\"sphere\",\"center\":[%.9g,%.9g],\"radius\":%.9g}}]",
             domain->origin[0] + domain->size[0] / 2, domain->origin[1] + domain->size[1] / 2,
             fmin(domain->size[0], domain->size[1]) / 4);
    const char *const overrides[] = {
        "reduced.excite=[]",
        drawn,
        "reduced.excite=[{\"mode\":\"drawing\",\"strength\":1000,\"end\":0.001}]",
        "reduced.modes=16",
        "reduced.mean_flow=[0,0]",
        "joints=[]",
        "bodies=[]",
        "forces=[]",
        "probes=[]",
        "materials=[]",
        dye,
        "viscosity=0",
        "time.step=0.001",
    };
    const sk_scene_text source = {.text = studio->head,
                                  .length = studio->head_length,
                                  .name = "scene",
                                  .folder = studio->folder,
                                  .override_count = (int)(sizeof overrides / sizeof *overrides),
                                  .overrides = overrides};
    selkie_scene *scene = NULL;
    selkie_code code = sk_scene_parse(&source, &scene, error);
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = studio->threads;
    if (code == SELKIE_OK)
        code = selkie_world_create(scene, &options, world, error);
    selkie_scene_free(scene);
    free(drawn);
    return code;
}

selkie_code studio_drawing_blob(const studio_world *studio, const char *json, size_t length, studio_blob **blob,
                                selkie_error *error)
{
    selkie_world *world = NULL;
    *blob = NULL;
    if (selkie_world_scene(studio->world)->discretization != SELKIE_DISCRETIZATION_REDUCED)
        return sk_fail(error, SELKIE_ERROR_INPUT, "only reduced fluids have drawn modes");
    selkie_code code = make_drawing(studio, json, length, &world, error);
    if (code == SELKIE_OK)
        code = selkie_world_step(world, error);
    if (code == SELKIE_OK && !(*blob = studio_field_blob(world, STUDIO_FIELD_DRAWING)))
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "no memory");
    selkie_world_destroy(world);
    return code;
}

#endif
