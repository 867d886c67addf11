/* Rows of the field table (fields.h): materials and heat. */
#include "defs/keys.h"

static const sk_enum_value material_kind_values[] = {
    {"liquid", SELKIE_MATERIAL_LIQUID, "flows"},
    {"rigid", SELKIE_MATERIAL_RIGID, "of bodies: keeps its shape"},
    {"soft", SELKIE_MATERIAL_SOFT, "of bodies: returns to its shape, by shape matching"},
    {"elastoplastic", SELKIE_MATERIAL_ELASTOPLASTIC,
     "rubber, clay, sand: discretization mpm, rest_shape, printed or additive; with grid it is mpm beside liquids"},
    {"granular", SELKIE_MATERIAL_GRANULAR, "not simulated yet"},
};
CHOICES(material_kind);

static const sk_field viscosity_point_fields[] = {
    {NUMBER(selkie_viscosity_point, temperature, 293.15), ABOVE(0), .unit = "K", .required = 1, .doc = "temperature"},
    {NUMBER(selkie_viscosity_point, viscosity, 1e-6), ABOVE(0), .unit = "m2/s", .required = 1,
     .doc = "kinematic viscosity at it"},
};
const sk_struct sk_viscosity_point_struct = {.name = "viscosity_point",
                                             .doc = "Viscosity at a temperature.",
                                             .size = sizeof(selkie_viscosity_point),
                                             .field_count = COUNT(viscosity_point_fields),
                                             .fields = viscosity_point_fields};
static const sk_enum_value soft_mode_values[] = {
    {"rigid", SELKIE_SOFT_RIGID, "the rest shape, turned"},
    {"linear", SELKIE_SOFT_LINEAR, "with stretch and shear"},
    {"quadratic", SELKIE_SOFT_QUADRATIC, "with bending and twist too"},
};
CHOICES(soft_mode);

static const sk_enum_value soft_scheme_values[] = {
    {"velocity", SELKIE_SOFT_VELOCITY, "goals act as forces before the transfer: momentum and angular momentum stay"},
    {"position", SELKIE_SOFT_POSITION,
     "goals move the particles after the pressure solve, velocities by Eq. 4 of Gao et al. 2017: for comparisons; a "
     "free body loses its spin"},
};
CHOICES(soft_scheme);

static const sk_field soft_fields[] = {
    {ENUM(selkie_soft_def, mode, soft_mode, SELKIE_SOFT_LINEAR), .doc = "the goal of its particles"},
    {NUMBER(selkie_soft_def, stiffness, 100), ABOVE(0), .unit = "rad/s",
     .doc = "frequency at which a deviation from the goal swings; at most about 1 / step acts"},
    {NUMBER(selkie_soft_def, deformation, 0.5), BETWEEN(0, 1),
     .doc = "share of the linear or quadratic map in the goal: 1 does not resist that deformation"},
    {NUMBER(selkie_soft_def, damping, 0.1), BETWEEN(0, 10), .doc = "of deformations, over the critical damping"},
    {NUMBER(selkie_soft_def, yield, 0), BETWEEN(0, 10), .doc = "stretch beyond which the rest shape flows; 0 = never"},
    {NUMBER(selkie_soft_def, creep, 10), AT_LEAST(0), .unit = "1/s", .doc = "rate of that flow"},
    {NUMBER(selkie_soft_def, max_flow, 1), BETWEEN(0, 10), .doc = "largest change of the rest shape by flow"},
    {INTEGER(selkie_soft_def, clusters, 1), BETWEEN(1, 64),
     .doc = "overlapping parts along the longest side, each with a goal of its own, for large deformations; 1 = none"},
    {ENUM(selkie_soft_def, scheme, soft_scheme, SELKIE_SOFT_VELOCITY), .doc = "how the goals act"},
};
static const sk_struct soft_struct = {.name = "soft",
                                      .doc = "A soft body by shape matching (Mueller et al. 2005).",
                                      .size = sizeof(selkie_soft_def),
                                      .field_count = COUNT(soft_fields),
                                      .fields = soft_fields};

static const sk_field material_fields[] = {
    {STRING(selkie_material_def, name), .required = 1, .doc = "unique; liquids and sources refer to it"},
    {ENUM(selkie_material_def, kind, material_kind, SELKIE_MATERIAL_LIQUID), .doc = "how it moves"},
    {NUMBER(selkie_material_def, density, 1000), DENSITY,
     .doc = "mass per volume; several densities need discretization grid and incompressibility bilateral"},
    {NUMBER(selkie_material_def, viscosity, 0), AT_LEAST(0), .unit = "m2/s",
     .doc = "kinematic viscosity, if the scene has none of its own; for sph the same for all materials so far"},
    {NUMBER(selkie_material_def, dynamic_viscosity, 0), AT_LEAST(0), .unit = "Pa s",
     .doc = "viscosity times density, in place of viscosity; honey has about 10"},
    {NUMBER(selkie_material_def, surface_tension, 0), AT_LEAST(0), .unit = "N/m",
     .doc = "against air, if the scene has none of its own; discretization grid and sph"},
    {NUMBER(selkie_material_def, heat_capacity, 0), AT_LEAST(0), .unit = "J/(kg K)",
     .doc = "of the liquid; heat is simulated where all materials have one (discretization grid); water has 4186"},
    {NUMBER(selkie_material_def, conductivity, 0), AT_LEAST(0), .unit = "W/(m K)",
     .doc = "of the liquid for heat; 0 = none; water has 0.6"},
    {NUMBER(selkie_material_def, melting_point, 0), AT_LEAST(0), .unit = "K",
     .doc = "temperature below which it is solid; 0 = it always flows"},
    {NUMBER(selkie_material_def, latent_heat, 0), AT_LEAST(0), .unit = "J/kg",
     .doc = "heat that melting takes; ice has 334000"},
    {NUMBER(selkie_material_def, solid_heat_capacity, 0), AT_LEAST(0), .unit = "J/(kg K)",
     .doc = "of the solid; 0 = heat_capacity"},
    {NUMBER(selkie_material_def, solid_conductivity, 0), AT_LEAST(0), .unit = "W/(m K)",
     .doc = "of the solid; 0 = conductivity"},
    {NUMBER(selkie_material_def, solid_density, 0), AT_LEAST(0), .unit = "kg/m3",
     .doc = "of the solid, for its buoyancy: volume and mass of a particle do not change; 0 = density"},
    {NUMBER(selkie_material_def, thermal_expansion, 0), BETWEEN(-0.1, 0.1), .unit = "1/K",
     .doc = "growth of the volume: liquid warmer than the mean rises (Boussinesq); water has 2.1e-4; needs heat"},
    {NUMBER(selkie_material_def, viscosity_temperature, 0), AT_LEAST(0), .unit = "K",
     .doc = "where the viscosity depends on temperature T: viscosity holds at this T0 and is multiplied by exp(B / (T "
            "- C) - B / (T0 - C)) elsewhere; 0 = constant"},
    {NUMBER(selkie_material_def, viscosity_activation, 0), ANY, .unit = "K", .doc = "B of this law"},
    {NUMBER(selkie_material_def, viscosity_offset, 0), ANY, .unit = "K",
     .doc = "C of this law (Vogel, Fulcher, Tammann); 0 = Arrhenius' law"},
    {ARRAY(selkie_material_def, "viscosity_table", viscosity_table, viscosity_point_count, sk_viscosity_point_struct),
     .doc = "viscosity over temperature by points, in place of viscosity and the law; its logarithm is linear between "
            "them and constant beyond"},
    {STRUCT(selkie_material_def, soft, soft_struct), .doc = "parameters of kind soft"},
    {STRUCT(selkie_material_def, elastoplastic, sk_elastoplastic_struct), .doc = "law of kind elastoplastic"},
};
const sk_struct sk_material_struct = {
    .name = "material",
    .doc =
        "A row of the table of materials. Without a table a scene has one material, with the density of its liquids.",
    .size = sizeof(selkie_material_def),
    .field_count = COUNT(material_fields),
    .fields = material_fields};

static const sk_field heat_fields[] = {
    {NUMBER(selkie_heat_def, air_temperature, 0), AT_LEAST(0), .unit = "K",
     .doc = "of the air over the free surface; 0 = no exchange with it"},
    {NUMBER(selkie_heat_def, air_exchange, 10), AT_LEAST(0), .unit = "W/(m2 K)",
     .doc = "heat per area, time and difference between air and surface"},
    {NUMBER(selkie_heat_def, tolerance, 1e-5), BETWEEN(0, 1), .low_open = 1,
     .doc = "the solve ends when the residual is below this part of the right side"},
};
const sk_struct sk_heat_struct = {.name = "heat",
                                  .doc = "Heat, simulated where the materials have a heat_capacity.",
                                  .size = sizeof(selkie_heat_def),
                                  .field_count = COUNT(heat_fields),
                                  .fields = heat_fields};
