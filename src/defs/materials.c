#include "defs/materials.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "defs/fields.h"
#include "defs/heat.h"
#include "defs/soft.h"
#include "defs/structs.h"

int sk_scene_find_material(const selkie_scene *scene, const char *name)
{
    if (!name || !*name)
        return 0;
    for (int m = 0; m < scene->material_count; m++)
        if (scene->materials[m].name && strcmp(scene->materials[m].name, name) == 0)
            return m;
    return -1;
}

double sk_scene_density(const selkie_scene *scene, int material)
{
    if (scene->material_count)
        return scene->materials[material].density;
    return scene->liquid_count ? scene->liquids[0].density : 1000.0;
}

/* The first material of another density than the first one's; 0 = none. */
static int other_density(const selkie_scene *scene)
{
    for (int m = 1; m < scene->material_count; m++)
        if (scene->materials[m].density != scene->materials[0].density)
            return m;
    return 0;
}

int sk_scene_has_densities(const selkie_scene *scene)
{
    return other_density(scene) || sk_scene_particle_bodies(scene) || sk_scene_has_immersed_points(scene);
}

double sk_scene_viscosity_of(const selkie_scene *scene, int material)
{
    double kinematic = scene->viscosity, dynamic = scene->dynamic_viscosity;
    if (scene->material_count && !(kinematic > 0.0) && !(dynamic > 0.0)) {
        kinematic = scene->materials[material].viscosity;
        dynamic = scene->materials[material].dynamic_viscosity;
        for (int n = 0; n < scene->materials[material].viscosity_point_count; n++)
            kinematic = fmax(kinematic, scene->materials[material].viscosity_table[n].viscosity);
    }
    return dynamic > 0.0 ? dynamic / sk_scene_density(scene, material) : kinematic;
}

double sk_scene_viscosity(const selkie_scene *scene)
{
    double largest = sk_scene_viscosity_of(scene, 0);
    for (int m = 1; m < scene->material_count; m++)
        largest = fmax(largest, sk_scene_viscosity_of(scene, m));
    return largest;
}

double sk_scene_surface_tension_of(const selkie_scene *scene, int material)
{
    return scene->surface_tension > 0.0 || !scene->material_count ? scene->surface_tension
                                                                  : scene->materials[material].surface_tension;
}

double sk_scene_surface_tension(const selkie_scene *scene)
{
    double largest = sk_scene_surface_tension_of(scene, 0);
    for (int m = 1; m < scene->material_count; m++)
        largest = fmax(largest, sk_scene_surface_tension_of(scene, m));
    return largest;
}

int sk_scene_has_viscosities(const selkie_scene *scene)
{
    for (int m = 1; m < scene->material_count; m++)
        if (sk_scene_viscosity_of(scene, m) != sk_scene_viscosity_of(scene, 0))
            return 1;
    return 0;
}

/* --- Checks --- */

/* Fails at KEY[index].place; index -1 = none, place "" = none. */
__attribute__((format(printf, 6, 7))) static selkie_code
fail_at(sk_path *where, const char *key, int index, const char *place, selkie_error *error, const char *format, ...)
{
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    sk_path_key(where, key);
    if (index >= 0)
        sk_path_index(where, index);
    if (*place)
        sk_path_key(where, place);
    return sk_fail(error, SELKIE_ERROR_INPUT, "%s", message);
}

/* "\"water\", \"oil\"": as many as fit. */
static void list_names(const selkie_scene *scene, char *buffer, size_t size)
{
    size_t used = 0;
    buffer[0] = 0;
    for (int m = 0; m < scene->material_count && used < size; m++) {
        char quoted[64];
        int written = snprintf(buffer + used, size - used, "%s%s", m ? ", " : "",
                               sk_quote(quoted, sizeof quoted, scene->materials[m].name));
        used += written > 0 ? (size_t)written : 0;
    }
}

/* Does a liquid or source name a material that there is? */
static selkie_code check_name(const selkie_scene *scene, const char *key, int index, const char *name, sk_path *where,
                              selkie_error *error)
{
    char quoted[96], names[256];
    list_names(scene, names, sizeof names);
    const int empty = !name || !*name;
    if (empty && scene->material_count > 1)
        return fail_at(where, key, index, "material", error, "is missing: must be one of %s", names);
    if (empty || sk_scene_find_material(scene, name) >= 0)
        return SELKIE_OK;
    if (scene->material_count == 0)
        return fail_at(where, key, index, "material", error, "%s is not known: the scene has no materials",
                       sk_quote(quoted, sizeof quoted, name));
    return fail_at(where, key, index, "material", error, "%s is not known: must be one of %s",
                   sk_quote(quoted, sizeof quoted, name), names);
}

/* One viscosity a material: its own or the scene's, kinematic or dynamic. */
static selkie_code check_viscosity(const selkie_scene *scene, int m, sk_path *where, selkie_error *error)
{
    const selkie_material_def *material = &scene->materials[m];
    const char *key = material->dynamic_viscosity > 0.0 ? "dynamic_viscosity" : "viscosity";
    if (material->viscosity > 0.0 && material->dynamic_viscosity > 0.0)
        return fail_at(where, "materials", m, key, error,
                       "%g Pa s stands beside a viscosity, %g m2/s: give one of them", material->dynamic_viscosity,
                       material->viscosity);
    const double own = sk_scene_viscosity_of(scene, m), first = sk_scene_viscosity_of(scene, 0);
    if (own != first && scene->discretization == SELKIE_DISCRETIZATION_SPH)
        return fail_at(
            where, "materials", m, key, error,
            "%g m2/s differs from that of materials[0], %g: discretization \"sph\" takes one viscosity so far", own,
            first);
    const int dynamic = scene->dynamic_viscosity > 0.0;
    if ((material->viscosity > 0.0 || material->dynamic_viscosity > 0.0) && (scene->viscosity > 0.0 || dynamic))
        return fail_at(where, "materials", m, key, error, "%g %s stands beside the scene's %s, %g: give one of them",
                       material->dynamic_viscosity > 0.0 ? material->dynamic_viscosity : material->viscosity,
                       material->dynamic_viscosity > 0.0 ? "Pa s" : "m2/s", dynamic ? "dynamic_viscosity" : "viscosity",
                       dynamic ? scene->dynamic_viscosity : scene->viscosity);
    return SELKIE_OK;
}

/* One surface tension a material: its own or the scene's. */
static selkie_code check_tension(const selkie_scene *scene, sk_path *where, selkie_error *error)
{
    const int sph = scene->discretization == SELKIE_DISCRETIZATION_SPH;
    if (scene->surface_tension > 0.0 && scene->discretization != SELKIE_DISCRETIZATION_GRID && !sph)
        return fail_at(where, "surface_tension", -1, "", error, "%g N/m is for discretization \"grid\" and \"sph\"",
                       scene->surface_tension);
    if (sph && sk_scene_surface_tension(scene) > 0.0 && scene->sph.surface_tension != SELKIE_TENSION_NONE)
        return fail_at(where, "sph", -1, "surface_tension", error,
                       "stands beside a surface tension of %g N/m: must be \"none\", or that 0",
                       sk_scene_surface_tension(scene));
    if (sph && sk_scene_surface_tension(scene) > 0.0 && scene->contact_angle != 90.0)
        return fail_at(where, "contact_angle", -1, "", error, "%g degrees: with discretization \"sph\" it must be 90",
                       scene->contact_angle);
    for (int m = 0; m < scene->material_count; m++)
        if (scene->materials[m].surface_tension > 0.0 && scene->surface_tension > 0.0)
            return fail_at(where, "materials", m, "surface_tension", error,
                           "%g N/m stands beside the scene's surface_tension, %g: give one of them",
                           scene->materials[m].surface_tension, scene->surface_tension);
    return SELKIE_OK;
}

static selkie_code check_material(const selkie_scene *scene, int m, sk_path *where, selkie_error *error)
{
    const selkie_material_def *material = &scene->materials[m];
    char quoted[96];
    if (!material->name || !*material->name)
        return fail_at(where, "materials", m, "name", error, "is empty: liquids and sources name their material");
    const int first = sk_scene_find_material(scene, material->name);
    if (first < m)
        return fail_at(where, "materials", m, "name", error, "%s is the name of materials[%d] already: choose another",
                       sk_quote(quoted, sizeof quoted, material->name), first);
    if (material->kind == SELKIE_MATERIAL_GRANULAR)
        return fail_at(
            where, "materials", m, "kind", error,
            "\"%s\" is not simulated yet: must be \"liquid\", \"elastoplastic\", or \"rigid\" or \"soft\" for bodies",
            sk_enum_name(sk_struct_find(&sk_material_struct, "kind")->choices, (int)material->kind));
    return check_viscosity(scene, m, where, error);
}

/* Several densities: what has no face densities yet. */
static selkie_code check_densities(const selkie_scene *scene, sk_path *where, selkie_error *error)
{
    const int unilateral = scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    int other = 1;
    while (other < scene->material_count && ((unilateral && sk_material_is_solid(scene, other)) ||
                                             scene->materials[other].density == scene->materials[0].density))
        other++;
    if (other >= scene->material_count || /* elastoplastic points: sk_elastoplastic_check says more */
        sk_scene_wave_speed(scene, NULL) > 0.0)
        return SELKIE_OK;
    const char *what = scene->discretization == SELKIE_DISCRETIZATION_SPH ? "discretization \"sph\"" : NULL;
    if (unilateral)
        what = "incompressibility \"unilateral\"";
    if (!what)
        return SELKIE_OK;
    return fail_at(where, "materials", other, "density", error,
                   "%g kg/m3 differs from that of materials[0], %g: %s takes one density so far",
                   scene->materials[other].density, scene->materials[0].density, what);
}

selkie_code sk_materials_check(const selkie_scene *scene, sk_path *where, selkie_error *error)
{
    if (scene->material_count > SK_MAX_MATERIALS)
        return fail_at(where, "materials", -1, "", error, "%d materials are too many: at most %d",
                       scene->material_count, SK_MAX_MATERIALS);
    if (scene->viscosity > 0.0 && scene->dynamic_viscosity > 0.0)
        return fail_at(where, "dynamic_viscosity", -1, "", error,
                       "%g Pa s stands beside a viscosity, %g m2/s: give one of them", scene->dynamic_viscosity,
                       scene->viscosity);
    SK_TRY(check_tension(scene, where, error));
    for (int m = 0; m < scene->material_count; m++)
        SK_TRY(check_material(scene, m, where, error));
    selkie_liquid_def usual;
    selkie_liquid_defaults(&usual);
    for (int l = 0; l < scene->liquid_count; l++) {
        const selkie_liquid_def *liquid = &scene->liquids[l];
        SK_TRY(check_name(scene, "liquids", l, liquid->material, where, error));
        if (scene->material_count && liquid->density != usual.density)
            return fail_at(where, "liquids", l, "density", error,
                           "%g kg/m3 stands beside a table of materials: the density belongs there", liquid->density);
    }
    for (int s = 0; s < scene->source_count; s++)
        SK_TRY(check_name(scene, "sources", s, scene->sources[s].material, where, error));
    SK_TRY(sk_soft_check(scene, where, error));
    return check_densities(scene, where, error);
}

/* --- Notes --- */

/* Why a surface's slip length or friction has no effect; NULL = it has, or there is none. */
static const char *idle_friction(const selkie_scene *scene, selkie_wall surface, double slip_length, double friction)
{
    if (!(slip_length > 0.0) && !(friction > 0.0))
        return NULL;
    if (scene->discretization == SELKIE_DISCRETIZATION_REDUCED)
        return "has no effect with discretization reduced, whose walls are free_slip";
    if (sk_scene_has_points(scene) && slip_length > 0.0)
        return "has no effect on elastoplastic points";
    if (slip_length > 0.0 && surface != SELKIE_WALL_NO_SLIP)
        return "has an effect at no_slip surfaces only";
    if (slip_length > 0.0 && !(sk_scene_viscosity(scene) > 0.0))
        return "has no effect without viscosity";
    return friction > 0.0 && surface != SELKIE_WALL_FREE_SLIP ? "has an effect at free_slip surfaces only" : NULL;
}

/* Notes on friction at bodies. */
static int body_friction_note(const selkie_scene *scene, int *index, char *buffer, size_t size)
{
    for (int n = 0; n < 2 * scene->body_count; n++) {
        const int slips = n % 2 == 0;
        const selkie_body_def *body = &scene->bodies[n / 2];
        const double value = slips ? body->slip_length : body->liquid_friction;
        const char *why = sk_scene_has_points(scene) && value > 0.0 && !slips
                              ? "has no effect on elastoplastic points"
                              : idle_friction(scene, body->surface, slips ? value : 0.0, slips ? 0.0 : value);
        if (!why || (*index)-- != 0)
            continue;
        snprintf(buffer, size, "bodies[%d].%s: %s", n / 2, slips ? "slip_length" : "liquid_friction", why);
        return 1;
    }
    return 0;
}

/* Notes on friction at the sides of the domain, at obstacles and at bodies. */
static int friction_note(const selkie_scene *scene, int *index, char *buffer, size_t size)
{
    static const char *const sides[6] = {"x_min", "x_max", "y_min", "y_max", "z_min", "z_max"};
    const selkie_domain_def *domain = &scene->domain;
    for (int n = 0; n < 12 + 2 * scene->obstacle_count; n++) {
        const int slips = n % 2 == 0, s = n / 2, o = s - 6;
        const selkie_obstacle_def *obstacle = o < 0 ? NULL : &scene->obstacles[o];
        const char *why = idle_friction(scene, obstacle ? obstacle->surface : domain->walls[s],
                                        !slips     ? 0.0
                                        : obstacle ? obstacle->slip_length
                                                   : domain->slip_length[s],
                                        slips      ? 0.0
                                        : obstacle ? obstacle->liquid_friction
                                                   : domain->liquid_friction[s]);
        const char *key = slips ? "slip_length" : "liquid_friction";
        if (!why || (*index)-- != 0)
            continue;
        if (obstacle)
            snprintf(buffer, size, "obstacles[%d].%s: %s", o, key, why);
        else
            snprintf(buffer, size, "domain.%s.%s: %s", key, sides[s], why);
        return 1;
    }
    return body_friction_note(scene, index, buffer, size);
}

/* Notes on the steps of elastoplastic points. */
static int stiffness_note(const selkie_scene *scene, int *index, char *buffer, size_t size)
{
    enum { MANY = 1000 };
    int material = 0, cells[3];
    const double speed = sk_scene_wave_speed(scene, &material);
    if (!(speed > 0.0))
        return 0;
    const double step = selkie_scene_cfl(scene) * selkie_scene_cells(scene, cells) / speed;
    const double count = 1.0 / (scene->time.fps * step);
    if (count > MANY && (*index)-- == 0) {
        snprintf(buffer, size,
                 "materials[%d].elastoplastic.young: pressure waves of %.3g m/s allow steps of %.2g s, %.3g a frame; a "
                 "softer material often looks the same",
                 material, speed, step, count);
        return 1;
    }
    return 0;
}

/* Notes on keys of bodies of particles that a liquid has. */
static int soft_note(const selkie_scene *scene, int *index, char *buffer, size_t size)
{
    selkie_material_def usual;
    selkie_material_defaults(&usual);
    for (int m = 0; m < scene->material_count; m++) {
        const selkie_soft_def *soft = &scene->materials[m].soft, *none = &usual.soft;
        const int given =
            soft->mode != none->mode || soft->stiffness != none->stiffness || soft->deformation != none->deformation ||
            soft->damping != none->damping || soft->yield != none->yield || soft->creep != none->creep ||
            soft->max_flow != none->max_flow || soft->clusters != none->clusters || soft->scheme != none->scheme;
        if (!given || scene->materials[m].kind != SELKIE_MATERIAL_LIQUID || (*index)-- != 0)
            continue;
        snprintf(buffer, size, "materials[%d].soft: has no effect on a liquid: kind \"soft\" makes bodies of it", m);
        return 1;
    }
    return 0;
}

/* Notes on elastoplastic points. */
static int points_note(const selkie_scene *scene, int *index, char *buffer, size_t size)
{
    const int least = scene->domain.dimension == 3 ? 6 : 3, has_heat = sk_scene_has_heat(scene);
    selkie_scene usual;
    if (stiffness_note(scene, index, buffer, size))
        return 1;
    selkie_scene_defaults(&usual);
    if (sk_scene_wave_speed(scene, NULL) > 0.0 && scene->time.reflection != usual.time.reflection && (*index)-- == 0) {
        snprintf(buffer, size,
                 "time.reflection: has no effect with elastoplastic points, whose steps are not reflected");
        return 1;
    }
    for (int m = 0; m < scene->material_count; m++)
        if (scene->materials[m].elastoplastic.softens_from > 0.0 && !has_heat && (*index)-- == 0) {
            snprintf(buffer, size, "materials[%d].elastoplastic.softens_from: has no effect: heat is not simulated", m);
            return 1;
        }
    if (scene->discretization != SELKIE_DISCRETIZATION_PRINTED &&
        scene->discretization != SELKIE_DISCRETIZATION_ADDITIVE)
        return 0;
    if (scene->points.neighbours > 0 && scene->points.neighbours < least && (*index)-- == 0) {
        snprintf(buffer, size, "points.neighbours: %d are too few to fit a deformation: %d count",
                 scene->points.neighbours, least);
        return 1;
    }
    if (!(scene->points.viscosity > 0.0) && (*index)-- == 0) {
        snprintf(buffer, size, "points.viscosity: without any these points are unstable; the usual is 0.3");
        return 1;
    }
    return 0;
}

/* Notes on open sides, and sponges, where domain.periodic joins two sides. */
static int seam_note(const selkie_scene *scene, int *index, char *buffer, size_t size)
{
    static const char *const sides[6] = {"x_min", "x_max", "y_min", "y_max", "z_min", "z_max"};
    for (int side = 0; side < 2 * scene->domain.dimension; side++)
        if (scene->domain.periodic >> (side / 2) & 1 && scene->domain.walls[side] == SELKIE_WALL_OPEN &&
            (*index)-- == 0) {
            snprintf(buffer, size, "domain.walls.%s: \"open\" has no effect: domain.periodic joins that side",
                     sides[side]);
            return 1;
        }
    for (int f = 0; f < scene->force_count; f++)
        if (scene->forces[f].kind == SELKIE_FORCE_SPONGE &&
            scene->domain.periodic >> ((int)scene->forces[f].side / 2) & 1 && (*index)-- == 0) {
            snprintf(
                buffer, size,
                "forces[%d].side: domain.periodic joins \"%s\" to the opposite side: the sponge takes up waves on one "
                "side of the seam",
                f, sides[(int)scene->forces[f].side]);
            return 1;
        }
    return 0;
}

/* A key, and whether the scene gives it. */
typedef struct given_key {
    const char *key;
    int given;
} given_key;

/* The note of number `index` on those of some keys of a part of the scene that are given without effect. */
static int idle_note(const char *part, const given_key *rows, size_t count, const char *why, int *index, char *buffer,
                     size_t size)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].given && (*index)-- == 0) {
            snprintf(buffer, size, "%s.%s: %s", part, rows[i].key, why);
            return 1;
        }
    return 0;
}

/* Keys of pictures and surfaces that 2D does not use. */
static int picture_note(const selkie_scene *scene, int *index, char *buffer, size_t size)
{
    const selkie_render_def *r = &scene->render;
    const given_key rows[] = {{"cut", r->cut && r->cut[0]},
                              {"shutter", r->shutter > 0.0},
                              {"environment", r->environment && r->environment[0]},
                              {"camera", r->camera_count > 0}};
    const given_key mesh[] = {{"by_material", scene->mesh.by_material}};
    return scene->domain.dimension == 2 &&
           (idle_note("render", rows, sizeof rows / sizeof *rows, "has no effect in 2D", index, buffer, size) ||
            idle_note("mesh", mesh, sizeof mesh / sizeof *mesh, "has no effect in 2D", index, buffer, size));
}

/* Keys of the density projection that other scenes do not use. */
static int projection_note(const selkie_scene *scene, int *index, char *buffer, size_t size)
{
    const given_key rows[] = {{"settle", scene->idp.settle > 0}, {"evenness", scene->idp.evenness > 0.0}};
    const int projects =
        scene->discretization == SELKIE_DISCRETIZATION_GRID && selkie_scene_volume(scene) == SELKIE_VOLUME_IDP;
    return !projects && idle_note("idp", rows, sizeof rows / sizeof *rows, "has an effect with volume idp only", index,
                                  buffer, size);
}

/* Notes on what only reduced fluids have. */
static int reduced_note(const selkie_scene *scene, int *index, char *buffer, size_t size)
{
    const selkie_reduced_def *r = &scene->reduced;
    const given_key rows[] = {
        {"dye", r->dye_count > 0}, {"drawn", r->drawn_count > 0}, {"excite", r->excite_count > 0}};
    return scene->discretization != SELKIE_DISCRETIZATION_REDUCED &&
           idle_note("reduced", rows, sizeof rows / sizeof *rows, "has an effect with discretization reduced only",
                     index, buffer, size);
}

/* Keys of splashes without a model (`selkie splash add` reads the other two), and steps that a model keeps shorter. */
static int splash_note(const selkie_scene *scene, int *index, char *buffer, size_t size)
{
    const selkie_splash_def *s = &scene->splash;
    const given_key rows[] = {{"sampling", s->sampling != SELKIE_SPLASH_HAZARD},
                              {"rate", s->rate != 1.0},
                              {"threshold", s->threshold > 0.0},
                              {"look_ahead", !s->look_ahead},
                              {"pairs", s->pairs > 0}};
    if (!(scene->splashes && scene->splashes[0]))
        return idle_note("splash", rows, sizeof rows / sizeof *rows, "has no effect without \"splashes\"", index,
                         buffer, size);
    const int shorter = scene->discretization == SELKIE_DISCRETIZATION_GRID && !(scene->time.step > 0.0) &&
                        selkie_scene_cfl(scene) > SK_SPLASH_MOST_CELLS;
    if (!shorter || (*index)-- != 0)
        return 0;
    snprintf(buffer, size, "time.cfl: %g, but \"splashes\" keep steps below %g cells", selkie_scene_cfl(scene),
             SK_SPLASH_MOST_CELLS);
    return 1;
}

static int tension_note(const selkie_scene *scene, int *index, char *buffer, size_t size)
{
    if (scene->contact_angle == 90.0 || sk_scene_surface_tension(scene) > 0.0 || (*index)-- != 0)
        return 0;
    snprintf(buffer, size, "contact_angle: has no effect without \"surface_tension\"");
    return 1;
}

int sk_scene_note(const selkie_scene *scene, int index, char *buffer, size_t size)
{
    const int sph = scene->discretization == SELKIE_DISCRETIZATION_SPH, heat = sk_scene_has_heat(scene);
    if (sph && scene->transfer != SELKIE_TRANSFER_FLIP && index-- == 0) {
        snprintf(buffer, size, "transfer: has no effect with discretization sph");
        return 1;
    }
    if (friction_note(scene, &index, buffer, size) || points_note(scene, &index, buffer, size) ||
        soft_note(scene, &index, buffer, size) || seam_note(scene, &index, buffer, size) ||
        reduced_note(scene, &index, buffer, size) || picture_note(scene, &index, buffer, size) ||
        splash_note(scene, &index, buffer, size) || projection_note(scene, &index, buffer, size) ||
        tension_note(scene, &index, buffer, size))
        return 1;
    for (int m = 0; m < scene->material_count; m++) {
        const selkie_material_def *material = &scene->materials[m];
        const struct {
            const char *key;
            double value;
            const char *why;
        } rows[] = {
            {"surface_tension",
             scene->discretization == SELKIE_DISCRETIZATION_GRID || scene->discretization == SELKIE_DISCRETIZATION_SPH
                 ? 0.0
                 : material->surface_tension,
             "has an effect with discretization grid and sph only"},
            {"thermal_expansion", heat ? 0.0 : material->thermal_expansion, "has no effect: heat is not simulated"},
            {"heat_capacity", heat ? 0.0 : material->heat_capacity, "has an effect with discretization grid only"},
            {"conductivity", heat ? 0.0 : material->conductivity, "has no effect: heat is not simulated"},
            {"melting_point", heat ? 0.0 : material->melting_point, "has no effect: heat is not simulated"},
            {"viscosity_temperature", heat ? 0.0 : material->viscosity_temperature,
             "has no effect: heat is not simulated"},
        };
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            if (rows[r].value != 0.0 && index-- == 0) {
                snprintf(buffer, size, "materials[%d].%s: %s", m, rows[r].key, rows[r].why);
                return 1;
            }
    }
    return 0;
}
