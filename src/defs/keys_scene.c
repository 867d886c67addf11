/* Rows of the field table (fields.h): the scene itself. */
#include "defs/keys.h"

static const sk_enum_value discretization_values[] = {
    {"grid", SELKIE_DISCRETIZATION_GRID, "particles carry the liquid, a staggered grid its pressure"},
    {"sph", SELKIE_DISCRETIZATION_SPH,
     "smoothed particle hydrodynamics: no grid, particles push each other; a cell is a kernel's reach"},
    {"reduced", SELKIE_DISCRETIZATION_REDUCED,
     "2D: a sum of modes fills the box, particles are tracers (Gerszewski's dissertation, chapter 5)"},
    {"mpm", SELKIE_DISCRETIZATION_MPM,
     "elastoplastic points, whose forces act on a grid: the material point method; needs materials of kind "
     "elastoplastic"},
    {"rest_shape", SELKIE_DISCRETIZATION_REST_SHAPE,
     "elastoplastic points with bonds to the neighbours that they have at rest: the most accurate for elastic bodies"},
    {"printed", SELKIE_DISCRETIZATION_PRINTED,
     "elastoplastic points whose deformation is composed from those of the steps (Gerszewski's dissertation, chapter "
     "4), to compare with"},
    {"additive", SELKIE_DISCRETIZATION_ADDITIVE,
     "elastoplastic points that add up the strains of the steps (his Fig. 4.8), to compare with"},
};
CHOICES(discretization);

static const sk_enum_value transfer_values[] = {
    {"pic", SELKIE_TRANSFER_PIC, "particle-in-cell: calm, loses detail"},
    {"flip", SELKIE_TRANSFER_FLIP, "fluid-implicit particle, blended with PIC by flip_ratio: lively"},
    {"apic", SELKIE_TRANSFER_APIC, "affine particle-in-cell: keeps angular momentum, little noise"},
};
CHOICES(transfer);

static const sk_enum_value method_values[] = {
    {"pic", SELKIE_METHOD_PIC, "discretization grid, transfer pic"},
    {"flip", SELKIE_METHOD_FLIP, "discretization grid, transfer flip"},
    {"apic", SELKIE_METHOD_APIC, "discretization grid, transfer apic"},
    {"sph", SELKIE_METHOD_SPH, "discretization sph"},
};
CHOICES(method);

static const sk_enum_value volume_values[] = {
    {"none", SELKIE_VOLUME_NONE, "no correction of volume"},
    {"idp", SELKIE_VOLUME_IDP, "implicit density projection (Kugelstadt et al. 2019): safe at large steps"},
    {"eq8", SELKIE_VOLUME_EQ8, "density error in the pressure solve (their Eq. 8), to compare with"},
    {"losasso", SELKIE_VOLUME_LOSASSO, "the same averaged over a time (Losasso et al. 2008), to compare with"},
    {"ando", SELKIE_VOLUME_ANDO, "weak springs between particles (Ando and Tsuruno 2011), to compare with"},
    {"sato", SELKIE_VOLUME_SATO, "distance constraints between particles (Sato et al. 2018), to compare with"},
    {"auto", SELKIE_VOLUME_AUTO, "idp on grids with bilateral incompressibility, none elsewhere"},
};
CHOICES(volume);

static const sk_enum_value backend_values[] = {
    {"tuned", SELKIE_BACKEND_TUNED, "vectorised: fast"},
    {"plain", SELKIE_BACKEND_PLAIN, "simple loops, several times slower: the reference that tuned is tested against"},
    {"cuda", SELKIE_BACKEND_CUDA, "an NVIDIA GPU; refused where there is none, or for what it cannot run yet"},
    {"auto", SELKIE_BACKEND_AUTO, "`cuda` where a GPU can run the scene, otherwise `tuned`"},
};
CHOICES(backend);

static const sk_enum_value incompressibility_values[] = {
    {"bilateral", SELKIE_INCOMPRESSIBILITY_BILATERAL,
     "liquid neither compresses nor comes apart: pressure of any sign"},
    {"unilateral", SELKIE_INCOMPRESSIBILITY_UNILATERAL,
     "liquid does not compress but may come apart: pressure never pulls (Gerszewski's dissertation, chapter 3)"},
};
CHOICES(incompressibility);

static const sk_enum_value splash_sampling_values[] = {
    {"hazard", SELKIE_SPLASH_HAZARD, "rates against random thresholds: counts do not depend on the step"},
    {"expectation", SELKIE_SPLASH_EXPECTATION,
     "Eq. 7 of Um et al. 2018: probabilities above a half within the duration"},
};
CHOICES(splash_sampling);

static const sk_field splash_fields[] = {
    {ENUM(selkie_splash_def, sampling, splash_sampling, SELKIE_SPLASH_HAZARD),
     .doc = "when a particle becomes a droplet"},
    {NUMBER(selkie_splash_def, rate, 1), AT_LEAST(0), .doc = "factor of the rates; 1 = as trained"},
    {NUMBER(selkie_splash_def, threshold, 0), BETWEEN(0, 1), .doc = "least probability within the model's duration"},
    {BOOL(selkie_splash_def, look_ahead, 1), .doc = "leave out droplets that would end in liquid or solids"},
    {BOOL(selkie_splash_def, mean_velocity, 0), .doc = "take the mean change of velocity, nothing random"},
    {NUMBER(selkie_splash_def, air_drag, 0), AT_LEAST(0), .unit = "1/m",
     .doc = "deceleration of a flying droplet over its squared speed"},
    {INTEGER(selkie_splash_def, pairs, 0), BETWEEN(0, 500),
     .doc = "pairs of droplets below a particle's size around each droplet, in frames/splash_NNNN.ply"},
};
static const sk_struct splash_struct = {.name = "splash",
                                        .doc = "How a model of splashes is used.",
                                        .size = sizeof(selkie_splash_def),
                                        .field_count = COUNT(splash_fields),
                                        .fields = splash_fields};

static const sk_field scene_fields[] = {
    {STRING(selkie_scene, title), .doc = "one line about the scene"},
    {STRUCT(selkie_scene, domain, sk_domain_struct), .required = 1, .doc = "the box that everything happens in"},
    {VECTOR(selkie_scene, gravity), .unit = "m/s2", .in_plane = 1, .initial = {0, -9.81, 0},
     .doc = "acceleration; up is against it (y without gravity)"},
    {ARRAY(selkie_scene, "gravity_over_time", gravity_keys, gravity_key_count, sk_gravity_key_struct),
     .doc = "gravity that changes, in place of gravity, which still says what is up"},
    {STRUCT(selkie_scene, frame, sk_frame_struct), .doc = "motion of the domain: sway, heave, roll"},
    {STRUCT(selkie_scene, time, sk_time_struct), .doc = "end, frames, steps"},
    {ROW(selkie_scene, seed, SK_FIELD_SEED), .initial = {1},
     .doc = "of all random numbers: the same seed gives the same run"},
    {STRUCT(selkie_scene, particles, sk_particles_struct), .doc = "number and layout of particles"},
    {ENUM(selkie_scene, discretization, discretization, SELKIE_DISCRETIZATION_GRID),
     .doc = "where the equations are solved"},
    {ENUM(selkie_scene, transfer, transfer, SELKIE_TRANSFER_FLIP),
     .doc = "discretization grid: how velocity goes from particles to the grid and back"},
    {ENUM(selkie_scene, backend, backend, SELKIE_BACKEND_TUNED), .doc = "form of the numerics"},
    {NUMBER(selkie_scene, flip_ratio, 0.97), BETWEEN(0, 1),
     .doc = "transfer flip: share of FLIP, the rest is PIC, while the fastest liquid crosses a cell; a step takes the "
            "power of its CFL number. Where a step is not reflected (time.reflection), the share in a step"},
    {ENUM(selkie_scene, volume, volume, SELKIE_VOLUME_AUTO), .doc = "how volume is kept over many steps"},
    {STRUCT(selkie_scene, idp, sk_idp_struct), .doc = "parameters of volume idp"},
    {STRUCT(selkie_scene, losasso, sk_losasso_struct), .doc = "parameters of volume losasso"},
    {STRUCT(selkie_scene, ando, sk_ando_struct), .doc = "parameters of volume ando"},
    {STRUCT(selkie_scene, sato, sk_sato_struct), .doc = "parameters of volume sato"},
    {STRUCT(selkie_scene, sph, sk_sph_struct), .doc = "parameters of discretization sph"},
    {STRUCT(selkie_scene, reduced, sk_reduced_struct), .doc = "parameters of discretization reduced"},
    {STRUCT(selkie_scene, points, sk_points_struct),
     .doc = "parameters of discretization rest_shape, printed and additive"},
    {ENUM(selkie_scene, incompressibility, incompressibility, SELKIE_INCOMPRESSIBILITY_BILATERAL),
     .doc = "what the pressure may do"},
    {STRUCT(selkie_scene, unilateral, sk_unilateral_struct), .doc = "parameters of incompressibility unilateral"},
    {STRUCT(selkie_scene, pressure, sk_pressure_struct), .doc = "the pressure solve"},
    {STRUCT(selkie_scene, advection, sk_advection_struct), .doc = "how particles move"},
    {NUMBER(selkie_scene, viscosity, 0), AT_LEAST(0), .unit = "m2/s",
     .doc = "kinematic viscosity of all materials; water has 1e-6"},
    {NUMBER(selkie_scene, dynamic_viscosity, 0), AT_LEAST(0), .unit = "Pa s",
     .doc = "viscosity times density, in place of viscosity; water has 1e-3"},
    {ARRAY(selkie_scene, "materials", materials, material_count, sk_material_struct),
     .doc = "what liquids are made of; at most 255"},
    {ARRAY(selkie_scene, "liquids", liquids, liquid_count, sk_liquid_struct), .doc = "liquid at the start"},
    {ARRAY(selkie_scene, "sources", sources, source_count, sk_source_struct), .doc = "regions where liquid enters"},
    {ARRAY(selkie_scene, "drains", drains, drain_count, sk_drain_struct), .doc = "regions where liquid leaves"},
    {ARRAY(selkie_scene, "obstacles", obstacles, obstacle_count, sk_obstacle_struct), .doc = "fixed or moving solids"},
    {ARRAY(selkie_scene, "bodies", bodies, body_count, sk_body_struct), .doc = "solids that float and sink"},
    {ARRAY(selkie_scene, "joints", joints, joint_count, sk_joint_struct), .doc = "hinges and motors of bodies"},
    {ARRAY(selkie_scene, "forces", forces, force_count, sk_force_struct), .doc = "explosions, vortices, jets"},
    {ARRAY(selkie_scene, "objects", objects, object_count, sk_object_struct),
     .doc = "liquid that solidifies, moves and dissolves"},
    {ARRAY(selkie_scene, "probes", probes, probe_count, sk_probe_struct), .doc = "measurements"},
    {STRUCT(selkie_scene, output, sk_output_struct), .doc = "output of a run"},
    {STRUCT(selkie_scene, render, sk_render_struct), .doc = "pictures"},
    {STRUCT(selkie_scene, mesh, sk_mesh_struct), .dimension = 3, .doc = "mesh of the liquid's surface"},
    {STRUCT(selkie_scene, whitewater, sk_whitewater_struct), .dimension = 3, .doc = "spray, foam and bubbles"},
    {STRUCT(selkie_scene, heat, sk_heat_struct), .doc = "heat conduction, melting and freezing"},
    {ARRAY(selkie_scene, "changes", changes, change_count, sk_change_struct),
     .doc = "what changes while it runs, in the order of the steps"},
    {NUMBER(selkie_scene, surface_tension, 0), AT_LEAST(0), .unit = "N/m",
     .doc = "of all materials, discretization grid and sph; water has 0.073"},
    {NUMBER(selkie_scene, contact_angle, 90), BETWEEN(0, 180), .unit = "deg",
     .doc = "of the surface at walls and obstacles, inside the liquid, where there is surface tension; for sph 90"},
    {STRING(selkie_scene, splashes),
     .doc = "discretization grid: model that makes droplets, \"default\" or a file of `selkie splash train`"},
    {STRUCT(selkie_scene, splash, splash_struct), .doc = "parameters of splashes"},
};
const sk_struct sk_scene_struct = {.name = "scene",
                                   .doc = "A scene needs a domain with a size and at least one liquid or source.",
                                   .size = sizeof(selkie_scene),
                                   .field_count = COUNT(scene_fields),
                                   .fields = scene_fields};

const sk_field sk_method_field = {
    .key = "method", .type = SK_FIELD_ENUM, .choices = &method, .doc = "older word for discretization and transfer"};
