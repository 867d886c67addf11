/* Elastoplastic materials: keys and checks. */
#include <math.h>

#include "base/status.h"
#include "defs/fields.h"
#include "defs/materials.h"
#include "defs/structs.h"
#include "defs/text.h"

/* --- Keys --- */

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
#define MEMBER(name) .key = #name, .offset = offsetof(selkie_elastoplastic_def, name)
#define NUMBER(name, value) MEMBER(name), .type = SK_FIELD_NUMBER, .initial = {value}
#define BETWEEN(minimum, maximum) .low = (minimum), .high = (maximum)
#define AT_LEAST(minimum) BETWEEN(minimum, SK_LARGEST_NUMBER)

static const sk_enum_value law_values[] = {
    {"hencky", SELKIE_ELASTIC_HENCKY, "energy of the logarithms of the stretches"},
    {"corotated", SELKIE_ELASTIC_COROTATED, "fixed corotated: of the stretches and the change of volume"},
    {"linear", SELKIE_ELASTIC_LINEAR, "of the stretches (Gerszewski, Eq. 4.9)"},
    {"squared", SELKIE_ELASTIC_SQUARED, "of the squares of the stretches: stiffer the farther it stretches"},
};
static const sk_enum laws = {COUNT(law_values), law_values};

static const sk_enum_value plasticity_values[] = {
    {"none", SELKIE_PLASTICITY_NONE, "elastic: returns to its shape"},
    {"von_mises", SELKIE_PLASTICITY_VON_MISES, "metal, clay, dough: flows where stress is above a yield stress"},
    {"drucker_prager", SELKIE_PLASTICITY_DRUCKER_PRAGER, "sand: friction between grains, no tension"},
};
static const sk_enum plasticities = {COUNT(plasticity_values), plasticity_values};

static const sk_field fields[] = {
    {MEMBER(law), .type = SK_FIELD_ENUM, .choices = &laws, .initial = {SELKIE_ELASTIC_COROTATED},
     .doc = "energy over the deformation; drucker_prager always takes hencky"},
    {NUMBER(young, 1e5), AT_LEAST(0), .low_open = 1, .unit = "Pa", .doc = "modulus of elasticity"},
    {NUMBER(poisson, 0.3), BETWEEN(-1, 0.5), .low_open = 1, .high_open = 1,
     .doc = "Poisson's ratio; at 0.5 nothing could change its volume, and no explicit step is stable: take 0.45"},
    {MEMBER(plasticity), .type = SK_FIELD_ENUM, .choices = &plasticities, .initial = {SELKIE_PLASTICITY_NONE},
     .doc = "how it flows"},
    {NUMBER(yield, 0), AT_LEAST(0), .unit = "Pa", .doc = "von_mises: equivalent stress from which on it flows"},
    {NUMBER(hardening, 0), AT_LEAST(0), .unit = "Pa",
     .doc = "von_mises: growth of the yield stress with the plastic strain"},
    {NUMBER(flow_time, 0), AT_LEAST(0), .unit = "s",
     .doc = "von_mises: time in which stress above the yield stress decays; 0 = at once"},
    {NUMBER(thickening, 0), AT_LEAST(0), .unit = "Pa",
     .doc = "von_mises: flow_time is multiplied by stress over this, as of cornstarch; 0 = constant"},
    {MEMBER(keeps_volume), .type = SK_FIELD_BOOL, .initial = {1}, .low = 0, .high = 1,
     .doc = "von_mises: false = flow also relaxes changes of volume"},
    {NUMBER(friction_angle, 30), BETWEEN(0, 60), .unit = "deg", .doc = "drucker_prager: of the grains"},
    {NUMBER(cohesion, 0), AT_LEAST(0), .unit = "Pa", .doc = "drucker_prager: tension that it stands"},
    {NUMBER(tear, 0), AT_LEAST(0),
     .doc = "stretch less 1 at which a point tears; from then on it takes no tension; 0 = never"},
    {NUMBER(liquid_friction, 0), AT_LEAST(0),
     .doc = "discretization grid: Coulomb's coefficient of liquids that strike it; 0 = they slide along it"},
    {NUMBER(softens_from, 0), AT_LEAST(0), .unit = "K",
     .doc = "temperature from which on it softens, where a scene has heat (discretization grid); 0 = never"},
    {NUMBER(softens_to, 0), AT_LEAST(0), .unit = "K",
     .doc = "temperature at which it has softened; the logarithm of the stiffness is linear between the two"},
    {NUMBER(softened, 0.01), BETWEEN(0, 1), .low_open = 1,
     .doc = "stiffness against shear, yield stress, hardening and cohesion of the softened material, over those of the "
            "cold one; the stiffness against a change of volume stays"},
};
const sk_struct sk_elastoplastic_struct = {.name = "elastoplastic",
                                           .doc = "Law of a material of kind elastoplastic.",
                                           .size = sizeof(selkie_elastoplastic_def),
                                           .field_count = COUNT(fields),
                                           .fields = fields};

static const sk_field points_fields[] = {
    {.key = "zero_energy",
     .offset = offsetof(selkie_points_def, zero_energy),
     .type = SK_FIELD_NUMBER,
     .initial = {0.3},
     BETWEEN(0, 1),
     .doc = "rest_shape: stiffness, over Young's modulus, against modes that do not deform the points, as saw teeth"},
    {.key = "support",
     .offset = offsetof(selkie_points_def, support),
     .type = SK_FIELD_NUMBER,
     .initial = {2},
     BETWEEN(1.5, 4),
     .doc = "printed, additive: reach of the kernels, in particle spacings"},
    {.key = "neighbours",
     .offset = offsetof(selkie_points_def, neighbours),
     .type = SK_FIELD_INTEGER,
     .initial = {0},
     BETWEEN(0, 1000),
     .doc = "printed, additive: the nearest so many count, at least 6 (2D: 3); 0 = all in reach; the source has 30"},
    {.key = "viscosity",
     .offset = offsetof(selkie_points_def, viscosity),
     .type = SK_FIELD_NUMBER,
     .initial = {0.3},
     BETWEEN(0, 1),
     .doc = "printed, additive: share of its neighbours' velocity that a point takes while a pressure wave passes a "
            "spacing; without any they are unstable"},
    {.key = "pressure",
     .offset = offsetof(selkie_points_def, pressure),
     .type = SK_FIELD_BOOL,
     .initial = {0},
     .low = 0,
     .high = 1,
     .doc = "printed, additive: pressure of SPH beside the elastic forces"},
};
const sk_struct sk_points_struct = {.name = "points",
                                    .doc = "Elastoplastic points that push each other without a grid.",
                                    .size = sizeof(selkie_points_def),
                                    .field_count = COUNT(points_fields),
                                    .fields = points_fields};

double sk_scene_wave_speed(const selkie_scene *scene, int *material)
{
    double fastest = 0.0;
    for (int m = 0; m < scene->material_count; m++) {
        const selkie_elastoplastic_def *def = &scene->materials[m].elastoplastic;
        const double shear = def->young / (2.0 * (1.0 + def->poisson));
        const double lambda = 2.0 * shear * def->poisson / (1.0 - 2.0 * def->poisson);
        const double speed = sqrt((lambda + 2.0 * shear) / scene->materials[m].density);
        if (scene->materials[m].kind != SELKIE_MATERIAL_ELASTOPLASTIC || !(speed > fastest))
            continue;
        fastest = speed;
        if (material)
            *material = m;
    }
    return fastest;
}

/* --- Checks --- */

#define FAIL(place, ...) (sk_path_key(where, place), sk_fail(error, SELKIE_ERROR_INPUT, __VA_ARGS__))

static const char *form_of(const selkie_scene *scene)
{
    static const char *const names[] = {"mpm", "rest_shape", "printed", "additive"};
    return names[scene->discretization - SELKIE_DISCRETIZATION_MPM];
}

/* Which features of other methods elastoplastic points do not have. */
static selkie_code check_others(const selkie_scene *scene, sk_path *where, selkie_error *error)
{
    if (scene->incompressibility != SELKIE_INCOMPRESSIBILITY_BILATERAL)
        return FAIL("incompressibility", "\"unilateral\" needs a grid: discretization must be \"grid\"");
    if (selkie_scene_volume(scene) != SELKIE_VOLUME_NONE)
        return FAIL("volume", "is for the grid methods: must be \"none\" beside discretization \"%s\"", form_of(scene));
    if (scene->viscosity > 0.0)
        return FAIL("viscosity", "is of liquids: must be 0 beside discretization \"%s\"; see flow_time",
                    form_of(scene));
    if (scene->dynamic_viscosity > 0.0)
        return FAIL("dynamic_viscosity", "is of liquids: must be 0 beside discretization \"%s\"; see flow_time",
                    form_of(scene));
    if (scene->body_count)
        return FAIL("bodies", "discretization \"%s\" moves none: use obstacles, or a stiff elastoplastic material",
                    form_of(scene));
    return SELKIE_OK;
}

/* Bonds belong to the points of the start and to a lattice. */
static selkie_code check_rest_shape(const selkie_scene *scene, sk_path *where, selkie_error *error)
{
    if (scene->source_count)
        return FAIL("sources", "discretization \"rest_shape\" keeps the points of the start: use \"mpm\"");
    if (scene->drain_count)
        return FAIL("drains", "discretization \"rest_shape\" keeps the points of the start: use \"mpm\"");
    for (int n = 0; n < scene->change_count; n++)
        if (scene->changes[n].kind == SELKIE_CHANGE_LIQUID || scene->changes[n].kind == SELKIE_CHANGE_CLEAR) {
            sk_path_key(where, "changes");
            sk_path_index(where, n);
            return FAIL("type",
                        "\"%s\" with discretization \"rest_shape\", which keeps the points of the start: use "
                        "\"mpm\"",
                        scene->changes[n].kind == SELKIE_CHANGE_LIQUID ? "liquid" : "clear");
        }
    for (int side = 0; side < 2 * scene->domain.dimension; side++)
        if (scene->domain.walls[side] == SELKIE_WALL_OPEN)
            return FAIL("domain.walls", "\"open\" is not possible with discretization \"rest_shape\", which keeps the "
                                        "points of the start: use \"mpm\"");
    if (scene->particles.arrangement == SELKIE_ARRANGEMENT_JITTERED) {
        sk_path_key(where, "particles");
        return FAIL("arrangement", "must be \"lattice\" with discretization \"rest_shape\": bonds belong to a lattice");
    }
    return SELKIE_OK;
}

static selkie_code check_law(const selkie_elastoplastic_def *def, sk_path *where, selkie_error *error)
{
    if (def->thickening > 0.0 && !(def->flow_time > 0.0))
        return FAIL("flow_time", "must be above 0 s with thickening, which multiplies it");
    if (def->softens_to > 0.0 && !(def->softens_from > 0.0))
        return FAIL("softens_from", "is missing: softens_to, %g K, needs a temperature from which on it softens",
                    def->softens_to);
    if (def->softens_from > 0.0 && !(def->softens_to > def->softens_from))
        return FAIL("softens_to", "must be above softens_from, %g K", def->softens_from);
    return SELKIE_OK;
}

/* What elastoplastic points beside liquids do not know. */
static selkie_code check_immersed(const selkie_scene *scene, sk_path *where, selkie_error *error)
{
    const selkie_volume volume = selkie_scene_volume(scene);
    if (scene->incompressibility != SELKIE_INCOMPRESSIBILITY_BILATERAL)
        return FAIL("incompressibility", "must be \"bilateral\" beside a material of kind \"elastoplastic\"");
    if (volume != SELKIE_VOLUME_NONE && volume != SELKIE_VOLUME_IDP)
        return FAIL("volume", "must be \"idp\" or \"none\" beside a material of kind \"elastoplastic\"");
    if (scene->body_count)
        return FAIL("bodies", "are not possible beside a material of kind \"elastoplastic\": use obstacles, or a stiff "
                              "elastoplastic material");
    for (int m = 0; m < scene->material_count; m++)
        if (scene->materials[m].kind == SELKIE_MATERIAL_ELASTOPLASTIC && scene->materials[m].melting_point > 0.0) {
            sk_path_key(where, "materials");
            sk_path_index(where, m);
            return FAIL("melting_point", "is of liquids: must be 0; see elastoplastic.softens_from");
        }
    return SELKIE_OK;
}

selkie_code sk_elastoplastic_check(const selkie_scene *scene, sk_path *where, selkie_error *error)
{
    const int has_points = sk_scene_has_points(scene);
    for (int m = 0; m < scene->material_count; m++) {
        const selkie_material_def *material = &scene->materials[m];
        const int elastoplastic = material->kind == SELKIE_MATERIAL_ELASTOPLASTIC;
        const size_t before = sk_path_key(where, "materials");
        sk_path_index(where, m);
        if (elastoplastic && !has_points && scene->discretization != SELKIE_DISCRETIZATION_GRID)
            return FAIL("kind", "\"elastoplastic\" needs discretization \"mpm\" (or \"rest_shape\", \"printed\", "
                                "\"additive\"), or \"grid\" beside liquids");
        if (!elastoplastic && has_points)
            return FAIL("kind", "must be \"elastoplastic\" with discretization \"%s\"", form_of(scene));
        if (elastoplastic) {
            const size_t law = sk_path_key(where, "elastoplastic");
            SK_TRY(check_law(&material->elastoplastic, where, error));
            if (scene->discretization == SELKIE_DISCRETIZATION_REST_SHAPE &&
                material->elastoplastic.plasticity == SELKIE_PLASTICITY_DRUCKER_PRAGER)
                return FAIL("plasticity", "\"drucker_prager\": grains have no rest shape; use discretization \"mpm\"");
            sk_path_cut(where, law);
        }
        sk_path_cut(where, before);
    }
    if (!has_points)
        return sk_scene_has_immersed_points(scene) ? check_immersed(scene, where, error) : SELKIE_OK;
    if (scene->material_count == 0)
        return FAIL("materials", "is empty: discretization \"%s\" needs a material of kind \"elastoplastic\"",
                    form_of(scene));
    if (scene->discretization == SELKIE_DISCRETIZATION_REST_SHAPE)
        SK_TRY(check_rest_shape(scene, where, error));
    return check_others(scene, where, error);
}
