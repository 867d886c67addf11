/* Elastoplastic materials: keys and checks. */
#include "base/status.h"
#include "defs/fields.h"
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
};
const sk_struct sk_elastoplastic_struct = {.name = "elastoplastic",
                                           .doc = "Law of a material of kind elastoplastic.",
                                           .size = sizeof(selkie_elastoplastic_def),
                                           .field_count = COUNT(fields),
                                           .fields = fields};

/* --- Checks --- */

#define FAIL(place, ...) (sk_path_key(where, place), sk_fail(error, SELKIE_ERROR_INPUT, __VA_ARGS__))

/* Which features of other methods mpm does not have. */
static selkie_code check_others(const selkie_scene *scene, sk_path *where, selkie_error *error)
{
    if (scene->incompressibility != SELKIE_INCOMPRESSIBILITY_BILATERAL)
        return FAIL("incompressibility", "\"unilateral\" needs a grid: discretization must be \"grid\"");
    if (selkie_scene_volume(scene) != SELKIE_VOLUME_NONE)
        return FAIL("volume", "is for the grid methods: must be \"none\" beside discretization \"mpm\"");
    if (scene->viscosity > 0.0)
        return FAIL("viscosity", "is of liquids: must be 0 beside discretization \"mpm\"; see flow_time");
    if (scene->dynamic_viscosity > 0.0)
        return FAIL("dynamic_viscosity", "is of liquids: must be 0 beside discretization \"mpm\"; see flow_time");
    if (scene->body_count)
        return FAIL("bodies", "discretization \"mpm\" moves none: use obstacles, or a stiff elastoplastic material");
    return SELKIE_OK;
}

static selkie_code check_law(const selkie_elastoplastic_def *def, sk_path *where, selkie_error *error)
{
    if (def->thickening > 0.0 && !(def->flow_time > 0.0))
        return FAIL("flow_time", "must be above 0 s with thickening, which multiplies it");
    return SELKIE_OK;
}

selkie_code sk_elastoplastic_check(const selkie_scene *scene, sk_path *where, selkie_error *error)
{
    const int is_mpm = scene->discretization == SELKIE_DISCRETIZATION_MPM;
    for (int m = 0; m < scene->material_count; m++) {
        const selkie_material_def *material = &scene->materials[m];
        const int elastoplastic = material->kind == SELKIE_MATERIAL_ELASTOPLASTIC;
        const size_t before = sk_path_key(where, "materials");
        sk_path_index(where, m);
        if (elastoplastic && !is_mpm)
            return FAIL("kind", "\"elastoplastic\" needs discretization \"mpm\"");
        if (!elastoplastic && is_mpm)
            return FAIL("kind", "must be \"elastoplastic\" with discretization \"mpm\"");
        if (elastoplastic) {
            const size_t law = sk_path_key(where, "elastoplastic");
            SK_TRY(check_law(&material->elastoplastic, where, error));
            sk_path_cut(where, law);
        }
        sk_path_cut(where, before);
    }
    if (!is_mpm)
        return SELKIE_OK;
    if (scene->material_count == 0)
        return FAIL("materials", "is empty: discretization \"mpm\" needs a material of kind \"elastoplastic\"");
    return check_others(scene, where, error);
}
