#include "defs/soft.h"

#include "base/status.h"
#include "defs/materials.h"
#include "defs/structs.h"

int sk_material_is_solid(const selkie_scene *scene, int material)
{
    if (material < 0 || material >= scene->material_count)
        return 0;
    const selkie_material_kind kind = scene->materials[material].kind;
    return kind == SELKIE_MATERIAL_RIGID || kind == SELKIE_MATERIAL_SOFT;
}

int sk_body_material(const selkie_scene *scene, int body)
{
    const char *name = scene->bodies[body].material;
    return name && *name ? sk_scene_find_material(scene, name) : -1;
}

int sk_scene_particle_bodies(const selkie_scene *scene)
{
    int count = 0;
    for (int b = 0; b < scene->body_count; b++)
        count += sk_body_material(scene, b) >= 0;
    return count;
}

int sk_body_number(const selkie_scene *scene, int body)
{
    int number = 0;
    for (int b = 0; b < body; b++)
        number += (sk_body_material(scene, b) >= 0) == (sk_body_material(scene, body) >= 0);
    return number;
}

int sk_rigid_shape(const selkie_scene *scene, int number)
{
    int body = 0;
    while (sk_body_material(scene, body) >= 0 || number-- > 0)
        body++;
    return body;
}

#define FAIL(place, ...) (sk_path_key(where, place), sk_fail(error, SELKIE_ERROR_INPUT, __VA_ARGS__))

/* A body of particles. */
static selkie_code check_body(const selkie_scene *scene, int b, sk_path *where, selkie_error *error)
{
    const selkie_body_def *body = &scene->bodies[b];
    char quoted[96];
    selkie_body_def usual;
    selkie_body_defaults(&usual);
    if (!body->material || !*body->material)
        return SELKIE_OK;
    const size_t before = sk_path_key(where, "bodies");
    sk_path_index(where, b);
    const int material = sk_body_material(scene, b);
    if (material < 0)
        return FAIL("material", "%s is not known: must be the name of a material of kind \"rigid\" or \"soft\"",
                    sk_quote(quoted, sizeof quoted, body->material));
    if (!sk_material_is_solid(scene, material))
        return FAIL("material", "%s is a liquid: must be of kind \"rigid\" or \"soft\"",
                    sk_quote(quoted, sizeof quoted, body->material));
    if (scene->discretization != SELKIE_DISCRETIZATION_GRID)
        return FAIL("material", "only discretization \"grid\" moves bodies of particles: leave it out");
    if (body->density != usual.density || body->mass > 0.0)
        return FAIL(body->mass > 0.0 ? "mass" : "density", "stands beside a material: the density belongs there");
    for (int d = 0; d < 3; d++)
        if (body->move[d] == 0.0 || body->turn[d] == 0.0)
            return FAIL(body->move[d] == 0.0 ? "move" : "turn",
                        "a body of particles cannot be held: leave it out, or leave out the material");
    sk_path_cut(where, before);
    return SELKIE_OK;
}

/* Liquid of a material of bodies is an error. */
static selkie_code check_liquid(const selkie_scene *scene, const char *list, int index, const char *name,
                                sk_path *where, selkie_error *error)
{
    char quoted[96];
    if (!name || !*name || !sk_material_is_solid(scene, sk_scene_find_material(scene, name)))
        return SELKIE_OK;
    sk_path_key(where, list);
    sk_path_index(where, index);
    return FAIL("material", "%s is of kind \"rigid\" or \"soft\": bodies alone are made of it",
                sk_quote(quoted, sizeof quoted, name));
}

selkie_code sk_soft_check(const selkie_scene *scene, sk_path *where, selkie_error *error)
{
    if (sk_material_is_solid(scene, 0)) {
        sk_path_key(where, "materials");
        sk_path_index(where, 0);
        return FAIL("kind", "the first material must be a liquid: its density is the reference");
    }
    for (int l = 0; l < scene->liquid_count; l++)
        SK_TRY(check_liquid(scene, "liquids", l, scene->liquids[l].material, where, error));
    for (int s = 0; s < scene->source_count; s++)
        SK_TRY(check_liquid(scene, "sources", s, scene->sources[s].material, where, error));
    for (int b = 0; b < scene->body_count; b++)
        SK_TRY(check_body(scene, b, where, error));
    return SELKIE_OK;
}
