/* The rows of the field table (see fields.h). Order is the order in files and in the reference. */
#include "defs/fields.h"

#include <string.h>

#include "defs/rows.h"

/* --- Choices --- */

static const sk_enum_value wall_values[] = {
    {"free_slip", SELKIE_WALL_FREE_SLIP, "closed; liquid slides along it"},
    {"no_slip", SELKIE_WALL_NO_SLIP, "closed; liquid sticks to it"},
    {"open", SELKIE_WALL_OPEN, "liquid leaves through it and is gone"},
};
CHOICES(wall);

static const sk_enum_value solid_surface_values[] = {
    {"free_slip", SELKIE_WALL_FREE_SLIP, "liquid slides along it"},
    {"no_slip", SELKIE_WALL_NO_SLIP, "liquid sticks to it"},
};
CHOICES(solid_surface);

static const sk_enum_value shape_kind_values[] = {
    {"box", SELKIE_SHAPE_BOX, "with sides along the axes"},
    {"sphere", SELKIE_SHAPE_SPHERE, "a disc in 2D"},
    {"cylinder", SELKIE_SHAPE_CYLINDER, "with flat ends; a bar in 2D"},
    {"half_space", SELKIE_SHAPE_HALF_SPACE, "all that lies on the side of a plane away from its normal"},
    {"wave", SELKIE_SHAPE_WAVE, "all that lies below level + amplitude cos(wave_number . x + phase)"},
    {"mesh", SELKIE_SHAPE_MESH, "the inside of a triangle mesh: OBJ, STL, PLY, glTF"},
    {"union", SELKIE_SHAPE_UNION, "what lies in any of several shapes"},
    {"heightfield", SELKIE_SHAPE_HEIGHTFIELD, "all that lies below a table of heights: ESRI ASCII grid"},
};
CHOICES(shape_kind);

static const sk_enum_value arrangement_values[] = {
    {"jittered", SELKIE_ARRANGEMENT_JITTERED, "one in each sub-cell, at random"},
    {"lattice", SELKIE_ARRANGEMENT_LATTICE, "in the centres of the sub-cells"},
    {"auto", SELKIE_ARRANGEMENT_AUTO, "lattice where discretization is sph or mpm, jittered elsewhere"},
};
CHOICES(arrangement);

static const sk_enum_value discretization_values[] = {
    {"grid", SELKIE_DISCRETIZATION_GRID, "particles carry the liquid, a staggered grid its pressure"},
    {"sph", SELKIE_DISCRETIZATION_SPH,
     "smoothed particle hydrodynamics: no grid, particles push each other; a cell is a kernel's reach"},
    {"reduced", SELKIE_DISCRETIZATION_REDUCED,
     "2D: a sum of modes fills the box, particles are tracers (Gerszewski's dissertation, chapter 5)"},
    {"mpm", SELKIE_DISCRETIZATION_MPM,
     "elastoplastic points, whose forces act on a grid: the material point method; needs materials of kind "
     "elastoplastic"},
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

static const sk_enum_value idp_solids_values[] = {
    {"push_out", SELKIE_IDP_PUSH_OUT, "the projection pushes particles out of solids and makes room for them"},
    {"neumann", SELKIE_IDP_NEUMANN, "solids block the flow and do nothing else"},
    {"project", SELKIE_IDP_PROJECT, "particles in solids are set onto the surface"},
};
CHOICES(idp_solids);

static const sk_enum_value incompressibility_values[] = {
    {"bilateral", SELKIE_INCOMPRESSIBILITY_BILATERAL,
     "liquid neither compresses nor comes apart: pressure of any sign"},
    {"unilateral", SELKIE_INCOMPRESSIBILITY_UNILATERAL,
     "liquid does not compress but may come apart: pressure never pulls (Gerszewski's dissertation, chapter 3)"},
};
CHOICES(incompressibility);

static const sk_enum_value unilateral_solver_values[] = {
    {"active_set", SELKIE_UNILATERAL_ACTIVE_SET, "over the shared multigrid: fast"},
    {"mprgp", SELKIE_UNILATERAL_MPRGP, "Dostal's, with incomplete Cholesky: the source's, to compare with"},
};
CHOICES(unilateral_solver);

static const sk_enum_value prediction_values[] = {
    {"particles", SELKIE_PREDICTION_PARTICLES,
     "density at the predicted positions of the particles: free flight is exact"},
    {"flux", SELKIE_PREDICTION_FLUX,
     "density minus the divergence of the mass flux, as in the source, to compare with"},
};
CHOICES(prediction);

static const sk_enum_value flight_values[] = {
    {"own", SELKIE_FLIGHT_OWN, "straight on with the particle's own velocity"},
    {"grid", SELKIE_FLIGHT_GRID, "along the grid's velocity as everywhere else, as in the source"},
};
CHOICES(flight);

static const sk_enum_value advection_rule_values[] = {
    {"auto", SELKIE_RULE_AUTO, "trapezoidal with unilateral incompressibility, midpoint without"},
    {"midpoint", SELKIE_RULE_MIDPOINT, "one step with the velocity of its middle"},
    {"trapezoidal", SELKIE_RULE_TRAPEZOIDAL, "one step with the mean of the velocities at its ends: a little smoother"},
};
CHOICES(advection_rule);

static const sk_enum_value residual_norm_values[] = {
    {"relative", SELKIE_NORM_RELATIVE, "|r| / |b|, both in the 2-norm"},
    {"max", SELKIE_NORM_MAX, "largest |divergence| x step left in any cell"},
};
CHOICES(residual_norm);

static const sk_enum_value surface_condition_values[] = {
    {"ghost_fluid", SELKIE_SURFACE_GHOST_FLUID, "second order: pressure is zero at the sub-cell surface"},
    {"voxel", SELKIE_SURFACE_VOXEL, "first order: pressure is zero in the centres of air cells"},
};
CHOICES(surface_condition);

static const sk_enum_value integrator_values[] = {
    {"rk4", SELKIE_REDUCED_RK4, "Runge-Kutta of fourth order that keeps energy and enstrophy"},
    {"exponential", SELKIE_REDUCED_EXPONENTIAL,
     "Eq. 5.9 of the source, first order, to compare with; up to 256 modes of a closed box"},
};
CHOICES(integrator);

static const sk_enum_value periodic_values[] = {
    {"none", SELKIE_PERIODIC_NONE, "along no axis"},
    {"x", SELKIE_PERIODIC_X, "what leaves at x_max enters at x_min"},
    {"y", SELKIE_PERIODIC_Y, "likewise along y"},
    {"both", SELKIE_PERIODIC_BOTH, "along both axes"},
};
CHOICES(periodic);

static const sk_enum_value force_kind_values[] = {
    {"explosion", SELKIE_FORCE_EXPLOSION, "a push away from a point, once"},
    {"vortex", SELKIE_FORCE_VORTEX, "turns liquid about an axis, pulls it in and lifts it"},
    {"jet", SELKIE_FORCE_JET, "pushes the liquid in a cylinder along it"},
    {"uniform", SELKIE_FORCE_UNIFORM, "the same acceleration everywhere, for a while"},
    {"sponge", SELKIE_FORCE_SPONGE, "slows liquid down near a side of the domain: waves end there"},
};
CHOICES(force_kind);

static const sk_enum_value change_kind_values[] = {
    {"gravity", SELKIE_CHANGE_GRAVITY, "another gravity from now on; what is up stays"},
    {"force", SELKIE_CHANGE_FORCE, "adds a force, or replaces the one of its name"},
    {"obstacle", SELKIE_CHANGE_OBSTACLE, "adds an obstacle, or replaces the one of its name"},
    {"source", SELKIE_CHANGE_SOURCE, "adds a source, or replaces the one of its name"},
    {"drain", SELKIE_CHANGE_DRAIN, "adds a drain, or replaces the one of its name"},
    {"liquid", SELKIE_CHANGE_LIQUID, "adds liquid where there is room"},
    {"clear", SELKIE_CHANGE_CLEAR, "removes the liquid inside a shape"},
    {"move", SELKIE_CHANGE_MOVE, "moves an obstacle to a pose, within a time"},
    {"push", SELKIE_CHANGE_PUSH, "adds a velocity to that of a body"},
    {"remove", SELKIE_CHANGE_REMOVE, "removes an obstacle, force, source or drain"},
    {"step", SELKIE_CHANGE_STEP, "sets the length of the next step alone"},
};
CHOICES(change_kind);

static const sk_enum_value change_list_values[] = {
    {"obstacles", SELKIE_LIST_OBSTACLES, "obstacles"},
    {"forces", SELKIE_LIST_FORCES, "forces"},
    {"sources", SELKIE_LIST_SOURCES, "sources"},
    {"drains", SELKIE_LIST_DRAINS, "drains"},
};
CHOICES(change_list);

static const sk_enum_value side_values[] = {
    {"x_min", SELKIE_SIDE_X_MIN, "low end of x"}, {"x_max", SELKIE_SIDE_X_MAX, "high end of x"},
    {"y_min", SELKIE_SIDE_Y_MIN, "low end of y"}, {"y_max", SELKIE_SIDE_Y_MAX, "high end of y"},
    {"z_min", SELKIE_SIDE_Z_MIN, "low end of z"}, {"z_max", SELKIE_SIDE_Z_MAX, "high end of z"},
};
CHOICES(side);

static const sk_enum_value flow_kind_values[] = {
    {"none", SELKIE_FLOW_NONE, "no field"},
    {"taylor_green", SELKIE_FLOW_TAYLOR_GREEN,
     "u = speed sin(k x) cos(k y) cos(k z), v = -speed cos(k x) sin(k y) cos(k z), with k = 2 pi / wavelength, "
     "positions from the liquid's center; in 2D without z"},
    {"file", SELKIE_FLOW_FILE, "a table of velocities on a grid of points"},
};
CHOICES(flow_kind);

static const sk_enum_value falloff_values[] = {
    {"constant", SELKIE_FALLOFF_CONSTANT, "1: constant within the radius"},
    {"linear", SELKIE_FALLOFF_LINEAR, "1 - q"},
    {"smooth", SELKIE_FALLOFF_SMOOTH, "(1 - q^2)^2"},
};
CHOICES(falloff);

static const sk_enum_value object_fill_values[] = {
    {"volume", SELKIE_FILL_VOLUME, "particles everywhere inside"},
    {"surface", SELKIE_FILL_SURFACE, "a shell of particles below the surface"},
};
CHOICES(object_fill);

static const sk_enum_value easing_values[] = {
    {"none", SELKIE_EASING_NONE, "the same speed at any distance"},
    {"linear", SELKIE_EASING_LINEAR, "slower in proportion to the distance, down to 10 %"},
    {"smooth", SELKIE_EASING_SMOOTH, "slower along a smooth step, down to 10 %"},
};
CHOICES(easing);

static const sk_enum_value release_values[] = {
    {"instant", SELKIE_RELEASE_INSTANT, "all at once"},
    {"sweep", SELKIE_RELEASE_SWEEP, "from one end to the other, along release_direction"},
    {"random", SELKIE_RELEASE_RANDOM, "particle by particle"},
};
CHOICES(release);

static const sk_enum_value probe_kind_values[] = {
    {"height", SELKIE_PROBE_HEIGHT, "m; height of the liquid over a point, along the up direction"},
    {"pressure", SELKIE_PROBE_PRESSURE, "Pa; at a point"},
    {"velocity", SELKIE_PROBE_VELOCITY, "m/s; at a point, in the columns NAME_x, NAME_y and NAME_z"},
    {"front", SELKIE_PROBE_FRONT, "m; farthest liquid along an axis"},
    {"force", SELKIE_PROBE_FORCE,
     "N; of the liquid on walls, an obstacle or a body, in the columns NAME_x, NAME_y and NAME_z"},
    {"level", SELKIE_PROBE_LEVEL, "m; mean height of the liquid's surface over the floor of the domain, in an area"},
    {"torque", SELKIE_PROBE_TORQUE,
     "N m; of the liquid on walls, an obstacle or a body, about a point, in the columns NAME_x, NAME_y and NAME_z; in "
     "2D "
     "NAME_z alone"},
    {"temperature", SELKIE_PROBE_TEMPERATURE, "K; of the particles around a point"},
};
CHOICES(probe_kind);

static const sk_enum_value axis_values[] = {
    {"x", SELKIE_AXIS_X, "first axis"},
    {"y", SELKIE_AXIS_Y, "second axis"},
    {"z", SELKIE_AXIS_Z, "third axis; 3D only"},
};
CHOICES(axis);

static const sk_enum_value attribute_names_values[] = {
    {"selkie", SELKIE_NAMES_SELKIE, "velocity, id"},
    {"houdini", SELKIE_NAMES_HOUDINI, "v, pscale, id"},
    {"blender", SELKIE_NAMES_BLENDER, "velocity, id, in separate x, y and z components"},
};
CHOICES(attribute_names);

static const sk_enum_value up_axis_values[] = {
    {"scene", SELKIE_UP_SCENE, "axes of the scene"},
    {"y", SELKIE_UP_Y, "rotated so that y points up"},
    {"z", SELKIE_UP_Z, "rotated so that z points up, as in Blender"},
};
CHOICES(up_axis);

static const sk_enum_value surface_format_values[] = {
    {"none", SELKIE_SURFACE_FORMAT_NONE, "no surface"},
    {"ply", SELKIE_SURFACE_FORMAT_PLY, "binary PLY"},
    {"obj", SELKIE_SURFACE_FORMAT_OBJ, "Wavefront OBJ"},
};
CHOICES(surface_format);

static const sk_enum_value picture_style_values[] = {
    {"surface", SELKIE_STYLE_SURFACE, "the liquid's surface"},
    {"particles", SELKIE_STYLE_PARTICLES, "each particle as a small ball"},
};
CHOICES(picture_style);

static const sk_enum_value picture_color_values[] = {
    {"water", SELKIE_COLOR_WATER, "as water"},
    {"speed", SELKIE_COLOR_SPEED, "by speed"},
    {"density", SELKIE_COLOR_DENSITY, "by density"},
    {"role", SELKIE_COLOR_ROLE, "fluid blue, candidates yellow, boundaries green; style particles"},
    {"material", SELKIE_COLOR_MATERIAL,
     "by material, in the order of the table: blue, amber, green, red, ...; style particles"},
    {"temperature", SELKIE_COLOR_TEMPERATURE,
     "by temperature, from the lowest to the highest of the scene; solid parts are pale; style particles"},
    {"stress", SELKIE_COLOR_STRESS, "by equivalent stress, of elastoplastic points"},
    {"plastic_strain", SELKIE_COLOR_PLASTIC_STRAIN, "by plastic strain, of elastoplastic points"},
};
CHOICES(picture_color);

/* --- Shapes --- */

#define OF_BOX .variants = 1u << SELKIE_SHAPE_BOX
#define OF_SPHERE .variants = 1u << SELKIE_SHAPE_SPHERE
#define OF_CYLINDER .variants = 1u << SELKIE_SHAPE_CYLINDER
#define OF_ROUND .variants = 1u << SELKIE_SHAPE_SPHERE | 1u << SELKIE_SHAPE_CYLINDER
#define OF_HALF_SPACE .variants = 1u << SELKIE_SHAPE_HALF_SPACE
#define OF_WAVE .variants = 1u << SELKIE_SHAPE_WAVE
#define OF_MESH .variants = 1u << SELKIE_SHAPE_MESH
#define OF_FILE .variants = 1u << SELKIE_SHAPE_MESH | 1u << SELKIE_SHAPE_HEIGHTFIELD
#define OF_UNION .variants = 1u << SELKIE_SHAPE_UNION

static const sk_field shape_fields[] = {
    {TYPE(selkie_shape, shape_kind, SELKIE_SHAPE_BOX), .doc = "kind of shape"},
    {VECTOR(selkie_shape, min), .place = 1, OF_BOX, .unit = "m", .required = 1, .doc = "lower corner"},
    {VECTOR(selkie_shape, max), .place = 1, OF_BOX, .unit = "m", .required = 1, .initial = {1, 1, 1},
     .doc = "upper corner"},
    {VECTOR(selkie_shape, center), .place = 1, OF_SPHERE, .unit = "m", .required = 1, .doc = "centre"},
    {VECTOR(selkie_shape, from), .place = 1, OF_CYLINDER, .unit = "m", .required = 1, .doc = "one end of the axis"},
    {VECTOR(selkie_shape, to), .place = 1, OF_CYLINDER, .unit = "m", .required = 1, .initial = {0, 1, 0},
     .doc = "its other end"},
    {NUMBER(selkie_shape, radius, 0.5), ABOVE(0), OF_ROUND, .unit = "m", .required = 1, .doc = "radius"},
    {VECTOR(selkie_shape, point), .place = 1, OF_HALF_SPACE, .unit = "m", .required = 1, .doc = "a point of the plane"},
    {VECTOR(selkie_shape, normal), OF_HALF_SPACE, .initial = {0, 1, 0},
     .doc = "outward direction, of any length above 0"},
    {NUMBER(selkie_shape, level, 0), ANY, OF_WAVE, .unit = "m", .required = 1,
     .doc = "mean height, a coordinate along the up direction"},
    {NUMBER(selkie_shape, amplitude, 0), AT_LEAST(0), OF_WAVE, .unit = "m",
     .doc = "height of the crests above the mean"},
    {VECTOR(selkie_shape, wave_number), OF_WAVE, .unit = "rad/m", .doc = "2 pi / wavelength, along the crests' normal"},
    {NUMBER(selkie_shape, phase, 0), ANY, OF_WAVE, .unit = "deg", .doc = "phase at the point 0"},
    {ROW(selkie_shape, file, SK_FIELD_FILE), .text = "", OF_FILE, .required = 1,
     .doc = "file of the mesh or of the heights, relative to the scene file's folder"},
    {ROW(selkie_shape, scale, SK_FIELD_SCALE), ANY, OF_FILE, .initial = {1, 1, 1},
     .doc = "applied first: scale about the origin"},
    {ROW(selkie_shape, rotate, SK_FIELD_ROTATION), ANY, OF_MESH, .unit = "deg",
     .doc = "applied second: rotation about x, then y, then z"},
    {VECTOR(selkie_shape, translate), .place = 1, OF_FILE, .unit = "m", .doc = "applied last: translation"},
    {ARRAY(selkie_shape, "shapes", children, child_count, sk_shape_struct), OF_UNION, .required = 1,
     .doc = "its members"},
};
const sk_struct sk_shape_struct = {.name = "shape",
                                   .doc = "A region of space. Its type decides which keys it has.",
                                   .size = sizeof(selkie_shape),
                                   .field_count = COUNT(shape_fields),
                                   .fields = shape_fields,
                                   .variant = &shape_fields[0]};

/* --- Domain and time --- */

#define WALL(index, name, text)                                                                                        \
    .key = name, .type = SK_FIELD_ENUM, .offset = (index) * sizeof(selkie_wall), .choices = &wall,                     \
    .initial = {SELKIE_WALL_FREE_SLIP}, .doc = text

static const sk_field walls_fields[] = {
    {WALL(0, "x_min", "wall at the low end of x")},
    {WALL(1, "x_max", "wall at the high end of x")},
    {WALL(2, "y_min", "wall at the low end of y")},
    {WALL(3, "y_max", "wall at the high end of y")},
    {WALL(4, "z_min", "wall at the low end of z"), .dimension = 3},
    {WALL(5, "z_max", "wall at the high end of z"), .dimension = 3},
};
static const sk_struct walls_struct = {.name = "walls",
                                       .doc = "What happens at each side of the domain.",
                                       .size = 6 * sizeof(selkie_wall),
                                       .field_count = COUNT(walls_fields),
                                       .fields = walls_fields};

#define SIDE(index, name, most, what)                                                                                  \
    .key = name, .type = SK_FIELD_NUMBER, .offset = (index) * sizeof(double), BETWEEN(0, most), .doc = what

#define SIDES(most, unit_of, what)                                                                                     \
    {                                                                                                                  \
        {SIDE(0, "x_min", most, what " at the low end of x"), .unit = unit_of},                                        \
            {SIDE(1, "x_max", most, what " at the high end of x"), .unit = unit_of},                                   \
            {SIDE(2, "y_min", most, what " at the low end of y"), .unit = unit_of},                                    \
            {SIDE(3, "y_max", most, what " at the high end of y"), .unit = unit_of},                                   \
            {SIDE(4, "z_min", most, what " at the low end of z"), .unit = unit_of, .dimension = 3},                    \
        {                                                                                                              \
            SIDE(5, "z_max", most, what " at the high end of z"), .unit = unit_of, .dimension = 3                      \
        }                                                                                                              \
    }

static const sk_field slip_lengths_fields[] = SIDES(SK_LARGEST_NUMBER, "m", "slip length");
static const sk_struct slip_lengths_struct = {
    .name = "slip_lengths",
    .doc = "Distance behind each side at which liquid would be at rest (Navier's slip length).",
    .size = 6 * sizeof(double),
    .field_count = COUNT(slip_lengths_fields),
    .fields = slip_lengths_fields};

static const sk_field liquid_frictions_fields[] = SIDES(100, NULL, "friction");
static const sk_struct liquid_frictions_struct = {
    .name = "liquid_frictions",
    .doc = "Friction of liquid on each side over its pressure (Coulomb's law).",
    .size = 6 * sizeof(double),
    .field_count = COUNT(liquid_frictions_fields),
    .fields = liquid_frictions_fields};

static const sk_field side_temperatures_fields[] = SIDES(SK_LARGEST_NUMBER, "K", "temperature");
static const sk_struct side_temperatures_struct = {.name = "side_temperatures",
                                                   .doc = "Temperature of each closed side; 0 = insulated.",
                                                   .size = 6 * sizeof(double),
                                                   .field_count = COUNT(side_temperatures_fields),
                                                   .fields = side_temperatures_fields};

static const sk_field side_exchanges_fields[] = SIDES(SK_LARGEST_NUMBER, "W/(m2 K)", "heat exchange");
static const sk_struct side_exchanges_struct = {
    .name = "side_exchanges",
    .doc = "Heat that passes between each side of given temperature and the liquid beside it.",
    .size = 6 * sizeof(double),
    .field_count = COUNT(side_exchanges_fields),
    .fields = side_exchanges_fields};

static const sk_field domain_fields[] = {
    {INTEGER(selkie_domain_def, dimension, 3), BETWEEN(2, 3), .doc = "2 or 3"},
    {VECTOR(selkie_domain_def, origin), .unit = "m", .doc = "lower corner"},
    {ROW(selkie_domain_def, size, SK_FIELD_VECTOR), BETWEEN(0, SK_LARGEST_NUMBER), .unit = "m", .required = 1,
     .doc = "lengths of the sides, rounded up to whole cells"},
    {NUMBER(selkie_domain_def, cell_size, 0), AT_LEAST(0), .unit = "m", .doc = "side of a cell; 0 = from resolution"},
    {INTEGER(selkie_domain_def, resolution, 64), BETWEEN(1, SK_MAX_CELLS_PER_AXIS), .replaces = "cell_size",
     .doc = "cells along the longest side, used where cell_size is 0"},
    {STRUCT(selkie_domain_def, walls, walls_struct), .doc = "kind of each side"},
    {STRUCT(selkie_domain_def, slip_length, slip_lengths_struct),
     .doc = "of no_slip sides, in a viscous liquid: 0 = liquid sticks, the longer the more it slides"},
    {STRUCT(selkie_domain_def, liquid_friction, liquid_frictions_struct),
     .doc = "of free_slip sides: friction is at most this times the pressure; 0 = none"},
    {STRUCT(selkie_domain_def, temperature, side_temperatures_struct),
     .doc = "of closed sides, where heat is simulated; 0 = insulated"},
    {STRUCT(selkie_domain_def, heat_exchange, side_exchanges_struct),
     .doc = "of sides with a temperature: heat per area, time and difference; 0 = perfect contact"},
};
const sk_struct sk_domain_struct = {.name = "domain",
                                    .doc = "The box that everything happens in, and its grid of cubic cells.",
                                    .size = sizeof(selkie_domain_def),
                                    .field_count = COUNT(domain_fields),
                                    .fields = domain_fields};

static const sk_field time_fields[] = {
    {NUMBER(selkie_time_def, end, 5), BETWEEN(0, 1e6), .unit = "s", .doc = "end of the run"},
    {NUMBER(selkie_time_def, fps, 30), BETWEEN(0, 1e6), .low_open = 1, .unit = "1/s", .doc = "frames per second"},
    {NUMBER(selkie_time_def, step, 0), BETWEEN(0, 1e6), .unit = "s",
     .doc = "fixed step, which sph and mpm split where it is longer than the CFL number allows; 0 = by the CFL number"},
    {NUMBER(selkie_time_def, cfl, 0), BETWEEN(0, 1000), .replaces = "step",
     .doc = "cells that the fastest particle may cross in a step, used where step is 0; 0 = 2, or 1 where "
            "incompressibility is unilateral; for sph particle spacings, 0 = 0.4; for mpm cells that a pressure wave "
            "may cross, 0 = 0.4"},
    {NUMBER(selkie_time_def, min_step, 1e-6), BETWEEN(0, 1e6), .unit = "s",
     .doc = "lower bound of steps by the CFL number, except before a frame"},
    {NUMBER(selkie_time_def, max_step, 0), BETWEEN(0, 1e6), .unit = "s", .doc = "their upper bound; 0 = 1 / fps"},
    {NUMBER(selkie_time_def, reflection, 0.8), BETWEEN(0, 1),
     .doc = "discretization grid, incompressibility bilateral, volume none or idp: part of a step's change of "
            "velocity, projected at its "
            "middle, that is added once more, so that the flow keeps its energy; 0 = projection at the end"},
};
static const sk_struct time_struct = {.name = "time",
                                      .doc = "Steps are shortened to land exactly on the frames.",
                                      .size = sizeof(selkie_time_def),
                                      .field_count = COUNT(time_fields),
                                      .fields = time_fields};

/* --- Numerics --- */

static const sk_field particles_fields[] = {
    {INTEGER(selkie_particles_def, per_cell, 0), BETWEEN(0, 1000),
     .doc = "particles in a full cell; 0 = 8 in 3D; in 2D 9, or 4 where discretization is sph or mpm"},
    {ENUM(selkie_particles_def, arrangement, arrangement, SELKIE_ARRANGEMENT_AUTO), .doc = "layout at the start"},
    {NUMBER(selkie_particles_def, jitter, 0.5), BETWEEN(0, 1),
     .doc = "jittered particles: the part of a sub-cell, around its centre, that they may be in; 1 = all of it. More "
            "jitter starts "
            "less evenly, but leaves less of the lattice for the flow to fold into itself"},
};
static const sk_struct particles_struct = {.name = "particles",
                                           .doc = "Number and layout of particles.",
                                           .size = sizeof(selkie_particles_def),
                                           .field_count = COUNT(particles_fields),
                                           .fields = particles_fields};

static const sk_field pressure_fields[] = {
    {NUMBER(selkie_pressure_def, tolerance, 1e-4), BETWEEN(0, 1), .low_open = 1,
     .doc = "the solve ends when the residual is below this"},
    {ENUM(selkie_pressure_def, norm, residual_norm, SELKIE_NORM_RELATIVE), .doc = "how the residual is measured"},
    {INTEGER(selkie_pressure_def, max_iterations, 100), BETWEEN(1, 100000),
     .doc = "a solve that needs more stops the run with a message"},
    {ENUM(selkie_pressure_def, surface, surface_condition, SELKIE_SURFACE_GHOST_FLUID), .doc = "the free surface"},
    {NUMBER(selkie_pressure_def, start, 0), BETWEEN(0, 1e6), .unit = "s",
     .doc = "no pressure and no correction of volume before this time"},
};
static const sk_struct pressure_struct = {.name = "pressure",
                                          .doc = "The solve that keeps the liquid incompressible.",
                                          .size = sizeof(selkie_pressure_def),
                                          .field_count = COUNT(pressure_fields),
                                          .fields = pressure_fields};

static const sk_field idp_fields[] = {
    {NUMBER(selkie_idp_def, tolerance, 0), BETWEEN(0, 1), .doc = "of the density solve; 0 = pressure.tolerance"},
    {ENUM(selkie_idp_def, solids, idp_solids, SELKIE_IDP_PUSH_OUT), .doc = "what happens to particles inside solids"},
    {BOOL(selkie_idp_def, redistribute, 1), .doc = "spread the particles of cells above density_max"},
    {NUMBER(selkie_idp_def, density_min, 0.5), BETWEEN(0, 1),
     .doc = "lower bound of density over rest density in the correction"},
    {NUMBER(selkie_idp_def, density_max, 1.5), BETWEEN(1, 1000), .doc = "its upper bound"},
    {INTEGER(selkie_idp_def, passes, 4), BETWEEN(1, 100),
     .doc = "corrections in a step, at most; a further one is made around the places that need it, where more than "
            "0.03 % of the liquid (3D: 0.02 %) is beyond density_max"},
    {INTEGER(selkie_idp_def, settle, 0), BETWEEN(0, 10000), .doc = "corrections before the first step"},
    {NUMBER(selkie_idp_def, evenness, 0), BETWEEN(0, 0.5),
     .doc = "weight of the number of particles in a cell, beside the density, in what is corrected: 0.02 spreads them "
            "a little "
            "more evenly over the cells (Eq. 19 gains 0.001); much more moves liquid that is right as it is"},
};
static const sk_struct idp_struct = {.name = "idp",
                                     .doc = "Implicit density projection, used if volume is idp.",
                                     .size = sizeof(selkie_idp_def),
                                     .field_count = COUNT(idp_fields),
                                     .fields = idp_fields};

static const sk_field losasso_fields[] = {
    {NUMBER(selkie_losasso_def, averaging_time, 1), BETWEEN(0, 1e6), .low_open = 1, .unit = "s",
     .doc = "averaging time of the density error"},
};
static const sk_struct losasso_struct = {.name = "losasso",
                                         .doc = "Averaged density correction, used if volume is losasso.",
                                         .size = sizeof(selkie_losasso_def),
                                         .field_count = COUNT(losasso_fields),
                                         .fields = losasso_fields};

static const sk_field ando_fields[] = {
    {NUMBER(selkie_ando_def, stiffness, 50), BETWEEN(0, 1e6), .unit = "1/s",
     .doc = "speed at which overlaps are separated"},
    {NUMBER(selkie_ando_def, radius, 1.1), BETWEEN(0, 2), .low_open = 1,
     .doc = "distance under which particles push, in particle spacings"},
};
static const sk_struct ando_struct = {.name = "ando",
                                      .doc = "Weak springs, used if volume is ando.",
                                      .size = sizeof(selkie_ando_def),
                                      .field_count = COUNT(ando_fields),
                                      .fields = ando_fields};

static const sk_field sato_fields[] = {
    {NUMBER(selkie_sato_def, radius, 0.8), BETWEEN(0, 2), .low_open = 1,
     .doc = "least distance of two particles, in particle spacings"},
    {INTEGER(selkie_sato_def, iterations, 2), BETWEEN(1, 100), .doc = "sweeps over the constraints in a step"},
};
static const sk_struct sato_struct = {.name = "sato",
                                      .doc = "Distance constraints, used if volume is sato.",
                                      .size = sizeof(selkie_sato_def),
                                      .field_count = COUNT(sato_fields),
                                      .fields = sato_fields};

static const sk_field stroke_fields[] = {
    {VECTOR(selkie_stroke_def, from), .place = 1, .unit = "m", .required = 1, .doc = "where the stroke begins"},
    {VECTOR(selkie_stroke_def, to), .place = 1, .unit = "m", .required = 1, .initial = {1, 0, 0},
     .doc = "where it ends; the velocity points there"},
    {NUMBER(selkie_stroke_def, radius, 0.05), ABOVE(0), .unit = "m", .doc = "half its width: weight (1 - q^2)^2"},
    {NUMBER(selkie_stroke_def, speed, 1), ANY, .unit = "m/s", .doc = "on its line"},
};
const sk_struct sk_stroke_struct = {.name = "stroke",
                                    .doc = "Velocity along a line, as drawn with a brush.",
                                    .size = sizeof(selkie_stroke_def),
                                    .field_count = COUNT(stroke_fields),
                                    .fields = stroke_fields};

static const sk_field drawn_fields[] = {
    {STRING(selkie_drawn_def, name), .required = 1, .doc = "name for reduced.excite"},
    {ARRAY(selkie_drawn_def, "strokes", strokes, stroke_count, sk_stroke_struct), .required = 1,
     .doc = "the drawing; its divergence-free part is taken"},
    {NUMBER(selkie_drawn_def, time, 0), BETWEEN(0, 1000), .unit = "s", .doc = "how long the drawing moves"},
    {INTEGER(selkie_drawn_def, snapshots, 1), BETWEEN(1, 64),
     .doc = "number of fields, at even times from 0 to time; 1 = the last one"},
};
const sk_struct sk_drawn_struct = {.name = "drawn_mode",
                                   .doc = "A flow that is drawn and becomes a mode (Eq. 5.10).",
                                   .size = sizeof(selkie_drawn_def),
                                   .field_count = COUNT(drawn_fields),
                                   .fields = drawn_fields};

static const sk_field excite_fields[] = {
    {STRING(selkie_excite_def, mode), .required = 1, .doc = "name of a drawn mode"},
    {NUMBER(selkie_excite_def, strength, 1), ANY, .unit = "m/s2", .doc = "acceleration where the drawing is fastest"},
    {NUMBER(selkie_excite_def, start, 0), AT_LEAST(0), .unit = "s", .doc = "when it begins"},
    {NUMBER(selkie_excite_def, end, -1), ANY, .unit = "s", .doc = "when it stops; below 0 = never"},
};
const sk_struct sk_excite_struct = {.name = "excitation",
                                    .doc = "A drawn mode that is driven for a while.",
                                    .size = sizeof(selkie_excite_def),
                                    .field_count = COUNT(excite_fields),
                                    .fields = excite_fields};

static const sk_field reduced_fields[] = {
    {INTEGER(selkie_reduced_def, modes, 256), BETWEEN(1, 65536), .doc = "eigenfunctions with the smallest eigenvalues"},
    {ENUM(selkie_reduced_def, integrator, integrator, SELKIE_REDUCED_RK4), .doc = "how modes move"},
    {ENUM(selkie_reduced_def, periodic, periodic, SELKIE_PERIODIC_NONE), .doc = "axes along which the flow repeats"},
    {VECTOR(selkie_reduced_def, mean_flow), .in_plane = 1, .unit = "m/s",
     .doc = "at the start, along periodic axes; 0 along others"},
    {ARRAY(selkie_reduced_def, "drawn", drawn, drawn_count, sk_drawn_struct),
     .doc = "drawn modes, beside the eigenfunctions"},
    {NUMBER(selkie_reduced_def, cut, 0.001), BETWEEN(0, 1), .low_open = 1,
     .doc = "drawn fields with a singular value below this part of the largest are left out"},
    {ARRAY(selkie_reduced_def, "excite", excite, excite_count, sk_excite_struct), .doc = "drawn modes that are driven"},
    {NUMBER(selkie_reduced_def, panel_length, 0), AT_LEAST(0), .unit = "m",
     .doc = "about the length of the panels of bodies; 0 = a cell"},
    {NUMBER(selkie_reduced_def, feedback, 0.33), BETWEEN(0, 10),
     .doc = "part of a body's vortex sheet that stays in the liquid while it passes the body once"},
};
static const sk_struct reduced_struct = {.name = "reduced",
                                         .doc = "Parameters of discretization reduced.",
                                         .size = sizeof(selkie_reduced_def),
                                         .field_count = COUNT(reduced_fields),
                                         .fields = reduced_fields};

static const sk_field unilateral_fields[] = {
    {ENUM(selkie_unilateral_def, solver, unilateral_solver, SELKIE_UNILATERAL_ACTIVE_SET),
     .doc = "of the complementarity problems"},
    {NUMBER(selkie_unilateral_def, tolerance, 1e-4), BETWEEN(0, 1), .low_open = 1,
     .doc = "they end when the error of the complementarity is below this part of what there was to correct"},
    {INTEGER(selkie_unilateral_def, max_iterations, 1000), BETWEEN(1, 1000000),
     .doc = "a solve that needs more stops the run with a message"},
    {BOOL(selkie_unilateral_def, density_correction, 1),
     .doc = "also correct positions before particles move, where the density is too high"},
    {INTEGER(selkie_unilateral_def, density_passes, 3), BETWEEN(1, 10),
     .doc = "at most so many such corrections in a step; more than one only where some cell is far too dense"},
    {BOOL(selkie_unilateral_def, suction, 0), .doc = "let the pressure be negative away from the surface"},
    {NUMBER(selkie_unilateral_def, suction_depth, 3), BETWEEN(1, 1000), .unit = "cells",
     .doc = "how far from the surface; rounded up to whole cells"},
    {NUMBER(selkie_unilateral_def, suction_pressure, 101325), AT_LEAST(0), .unit = "Pa",
     .doc = "how far below zero the pressure may be there; an atmosphere is where water boils"},
    {NUMBER(selkie_unilateral_def, air_threshold, 0.1), BETWEEN(0, 0.9),
     .doc = "cells filled to less than this fraction are air"},
    {ENUM(selkie_unilateral_def, prediction, prediction, SELKIE_PREDICTION_PARTICLES),
     .doc = "how the density at the end of the step is predicted"},
    {ENUM(selkie_unilateral_def, flight, flight, SELKIE_FLIGHT_OWN),
     .doc = "how particles move where no pressure acts"},
    {BOOL(selkie_unilateral_def, clip_bisection, 1),
     .doc = "no effect, read for old scene files: paths of particles always end before obstacles"},
};
static const sk_struct unilateral_struct = {.name = "unilateral",
                                            .doc = "Used if incompressibility is unilateral.",
                                            .size = sizeof(selkie_unilateral_def),
                                            .field_count = COUNT(unilateral_fields),
                                            .fields = unilateral_fields};

static const sk_enum_value sph_solver_values[] = {
    {"accelerated", SELKIE_SPH_ACCELERATED,
     "projected gradient with Jacobi scaling and momentum: the fewest iterations"},
    {"iisph", SELKIE_SPH_IISPH, "relaxed Jacobi with clamping (Ihmsen et al. 2014)"},
};
CHOICES(sph_solver);

static const sk_enum_value sph_kernel_values[] = {
    {"cubic", SELKIE_SPH_CUBIC, "cubic spline (Monaghan 1992)"},
    {"wendland", SELKIE_SPH_WENDLAND, "Wendland's C2 function: particles never pair up"},
};
CHOICES(sph_kernel);

static const sk_enum_value sph_tension_values[] = {
    {"none", SELKIE_TENSION_NONE, "no surface tension"},
    {"becker", SELKIE_TENSION_BECKER, "attraction weighted by the kernel (Becker and Teschner 2007)"},
    {"akinci", SELKIE_TENSION_AKINCI, "cohesion and area minimisation (Akinci et al. 2013)"},
};
CHOICES(sph_tension);

static const sk_field sph_fields[] = {
    {ENUM(selkie_sph_def, solver, sph_solver, SELKIE_SPH_ACCELERATED), .doc = "solver of the pressure"},
    {ENUM(selkie_sph_def, kernel, sph_kernel, SELKIE_SPH_CUBIC),
     .doc = "kernel: weight of a neighbour by its distance"},
    {NUMBER(selkie_sph_def, density_error, 0.003), BETWEEN(0, 1), .low_open = 1,
     .doc = "mean error of density / rest density that a pressure solve may leave, by its own prediction"},
    {NUMBER(selkie_sph_def, divergence_error, 0.005), BETWEEN(0, 1000), .low_open = 1,
     .doc = "solver accelerated: mean |divergence| that velocities may keep, over the speed of a fall through the "
            "domain / its longest side"},
    {INTEGER(selkie_sph_def, min_iterations, 2), BETWEEN(0, 100000), .doc = "of a pressure solve, at least"},
    {INTEGER(selkie_sph_def, max_iterations, 200), BETWEEN(1, 100000),
     .doc = "a solve that needs more ends there; its error is in the statistics"},
    {NUMBER(selkie_sph_def, xsph, 0.02), BETWEEN(0, 1),
     .doc = "share of its neighbours' mean velocity that a particle takes up in the time of a step at the speed of a "
            "fall (XSPH): calms noise"},
    {ENUM(selkie_sph_def, surface_tension, sph_tension, SELKIE_TENSION_NONE), .doc = "model of surface tension"},
    {NUMBER(selkie_sph_def, tension, 0), AT_LEAST(0),
     .doc = "its coefficient: kappa of becker (1/s2, W times the particle volume), gamma of akinci (m4/(kg s2); 2D "
            "m3/(kg s2))"},
};
static const sk_struct sph_struct = {.name = "sph",
                                     .doc = "Smoothed particle hydrodynamics, used where discretization is sph.",
                                     .size = sizeof(selkie_sph_def),
                                     .field_count = COUNT(sph_fields),
                                     .fields = sph_fields};

static const sk_field advection_fields[] = {
    {INTEGER(selkie_advection_def, order, 2), BETWEEN(2, 3), .doc = "order of the Runge-Kutta scheme, 2 or 3"},
    {ENUM(selkie_advection_def, rule, advection_rule, SELKIE_RULE_AUTO), .doc = "which scheme of order 2"},
};
static const sk_struct advection_struct = {.name = "advection",
                                           .doc = "How particles follow the flow.",
                                           .size = sizeof(selkie_advection_def),
                                           .field_count = COUNT(advection_fields),
                                           .fields = advection_fields};

/* --- What is in the scene --- */

static const sk_enum_value material_kind_values[] = {
    {"liquid", SELKIE_MATERIAL_LIQUID, "flows"},
    {"rigid", SELKIE_MATERIAL_RIGID, "of bodies: keeps its shape"},
    {"soft", SELKIE_MATERIAL_SOFT, "of bodies: returns to its shape, by shape matching"},
    {"elastoplastic", SELKIE_MATERIAL_ELASTOPLASTIC, "rubber, clay, sand: discretization mpm"},
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
     .doc = "against air, if the scene has none of its own; discretization grid"},
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
    {NUMBER(selkie_material_def, thermal_expansion, 0), ANY, .unit = "1/K", .doc = "no effect yet"},
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

#define OF_TAYLOR_GREEN .variants = 1u << SELKIE_FLOW_TAYLOR_GREEN

static const sk_field flow_fields[] = {
    {TYPE(selkie_flow_def, flow_kind, SELKIE_FLOW_NONE), .doc = "kind of field"},
    {NUMBER(selkie_flow_def, speed, 1), ANY, OF_TAYLOR_GREEN, .unit = "m/s", .required = 1, .doc = "largest speed"},
    {NUMBER(selkie_flow_def, wavelength, 1), ABOVE(0), OF_TAYLOR_GREEN, .unit = "m", .required = 1,
     .doc = "length of two vortices"},
    {ROW(selkie_flow_def, file, SK_FIELD_FILE), .text = "", .variants = 1u << SELKIE_FLOW_FILE, .required = 1,
     .doc = "CSV with one line of names, x, y, z, u, v, w (2D: x, y, u, v), and a line for each point of a grid, in m "
            "and m/s; between points it is interpolated, outside the nearest point counts"},
};
static const sk_struct flow_struct = {.name = "flow",
                                      .doc = "A velocity field of a liquid at the start.",
                                      .size = sizeof(selkie_flow_def),
                                      .field_count = COUNT(flow_fields),
                                      .fields = flow_fields,
                                      .variant = &flow_fields[0]};

static const sk_field liquid_fields[] = {
    {STRING(selkie_liquid_def, name), .doc = "a label"},
    {STRUCT(selkie_liquid_def, shape, sk_shape_struct), .required = 1, .doc = "region at the start"},
    {STRING(selkie_liquid_def, material), .doc = "name of its material; may be left out where there is but one"},
    {NUMBER(selkie_liquid_def, density, 1000), DENSITY,
     .doc = "where the scene has no materials; the same for all its liquids"},
    {VECTOR(selkie_liquid_def, velocity), .unit = "m/s", .in_plane = 1,
     .doc = "at the start u = velocity + angular_velocity x (x - center) + velocity_gradient (x - center)"},
    {ROW(selkie_liquid_def, angular_velocity, SK_FIELD_ROTATION), ANY, .unit = "rad/s", .in_plane = 1,
     .doc = "turning at the start"},
    {ROW(selkie_liquid_def, velocity_gradient, SK_FIELD_MATRIX), ANY, .unit = "1/s",
     .doc = "stretching at the start: du_i/dx_j, row by row"},
    {VECTOR(selkie_liquid_def, center), .place = 1, .unit = "m",
     .doc = "point that angular_velocity and velocity_gradient leave at rest; origin of flow taylor_green"},
    {STRUCT(selkie_liquid_def, flow, flow_struct), .doc = "velocity field that is added at the start"},
    {INTEGER(selkie_liquid_def, count, 0), BETWEEN(0, 1e9),
     .doc = "exact number of particles, at random positions in the shape; 0 = by its cells"},
    {BOOL(selkie_liquid_def, fill_obstacles, 0), .doc = "put particles inside obstacles too"},
    {NUMBER(selkie_liquid_def, temperature, 293.15), ABOVE(0), .unit = "K",
     .doc = "at the start, where heat is simulated"},
};
const sk_struct sk_liquid_struct = {.name = "liquid",
                                    .doc = "Liquid that is there at the start.",
                                    .size = sizeof(selkie_liquid_def),
                                    .field_count = COUNT(liquid_fields),
                                    .fields = liquid_fields};

static const sk_field source_fields[] = {
    {STRING(selkie_source_def, name), .doc = "a label"},
    {STRUCT(selkie_source_def, shape, sk_shape_struct), .required = 1, .doc = "region that liquid comes from"},
    {STRING(selkie_source_def, material), .doc = "name of its material; may be left out where there is but one"},
    {VECTOR(selkie_source_def, velocity), .unit = "m/s", .in_plane = 1,
     .doc = "imposed on the liquid inside; without velocity and flow_rate the shape is kept filled to rest density"},
    {NUMBER(selkie_source_def, flow_rate, 0), AT_LEAST(0), .unit = "m3/s",
     .doc = "volume that it emits in a second, in 2D m2/s; the velocity then gives the direction alone, and without it "
            "the flow goes down; 0 = the velocity times the section across it"},
    {NUMBER(selkie_source_def, start, 0), AT_LEAST(0), .unit = "s", .doc = "when it begins"},
    {NUMBER(selkie_source_def, end, -1), ANY, .unit = "s", .doc = "when it stops; below 0 = never"},
    {NUMBER(selkie_source_def, temperature, 293.15), ABOVE(0), .unit = "K",
     .doc = "of the liquid that it emits, where heat is simulated"},
};
const sk_struct sk_source_struct = {.name = "source",
                                    .doc = "A region where liquid enters.",
                                    .size = sizeof(selkie_source_def),
                                    .field_count = COUNT(source_fields),
                                    .fields = source_fields};

static const sk_field drain_fields[] = {
    {STRING(selkie_drain_def, name), .doc = "a label"},
    {STRUCT(selkie_drain_def, shape, sk_shape_struct), .required = 1, .doc = "region where liquid is removed"},
    {NUMBER(selkie_drain_def, flow_rate, 0), AT_LEAST(0), .unit = "m3/s",
     .doc = "volume that it removes in a second as long as there is enough inside, in 2D m2/s; 0 = all liquid inside"},
    {NUMBER(selkie_drain_def, start, 0), AT_LEAST(0), .unit = "s", .doc = "when it begins"},
    {NUMBER(selkie_drain_def, end, -1), ANY, .unit = "s", .doc = "when it stops; below 0 = never"},
};
const sk_struct sk_drain_struct = {.name = "drain",
                                   .doc = "A region where liquid leaves.",
                                   .size = sizeof(selkie_drain_def),
                                   .field_count = COUNT(drain_fields),
                                   .fields = drain_fields};

static const sk_field keyframe_fields[] = {
    {NUMBER(selkie_keyframe, time, 0), ANY, .unit = "s", .required = 1, .doc = "when"},
    {VECTOR(selkie_keyframe, translate), .unit = "m", .in_plane = 1, .doc = "offset from the position of the shape"},
    {ROW(selkie_keyframe, rotate, SK_FIELD_ROTATION), ANY, .unit = "deg", .in_plane = 1,
     .doc = "rotation about x, then y, then z, through the obstacle's center"},
};
const sk_struct sk_keyframe_struct = {.name = "keyframe",
                                      .doc =
                                          "Where an obstacle is at a time; held before the first and after the last.",
                                      .size = sizeof(selkie_keyframe),
                                      .field_count = COUNT(keyframe_fields),
                                      .fields = keyframe_fields};

static const sk_field oscillation_fields[] = {
    {VECTOR(selkie_oscillation, translate), .unit = "m", .in_plane = 1, .doc = "amplitude of the translation"},
    {ROW(selkie_oscillation, rotate, SK_FIELD_ROTATION), ANY, .unit = "deg", .in_plane = 1,
     .doc = "amplitude of the rotation about x, then y, then z, through the center"},
    {NUMBER(selkie_oscillation, period, 1), ABOVE(0), .unit = "s", .required = 1, .doc = "time of one cycle"},
    {NUMBER(selkie_oscillation, phase, 0), ANY, .unit = "deg", .doc = "at time 0: amplitude x sin(phase)"},
    {NUMBER(selkie_oscillation, ramp, 0), AT_LEAST(0), .unit = "s",
     .doc = "time in which the amplitude grows smoothly from 0; 0 = full from the start"},
};
const sk_struct sk_oscillation_struct = {.name = "oscillation",
                                         .doc = "A harmonic motion: amplitude x sin(2 pi time / period + phase).",
                                         .size = sizeof(selkie_oscillation),
                                         .field_count = COUNT(oscillation_fields),
                                         .fields = oscillation_fields};

#define MOTION_FILE                                                                                                    \
    .text = "", .doc =                                                                                                 \
                    "CSV of keyframes: a line of names, time and some of x, y, z (m), rx, ry, rz (deg), then a line "  \
                    "for each keyframe; replaces keyframes"

static const sk_field frame_fields[] = {
    {VECTOR(selkie_frame_def, center), .place = 1, .unit = "m", .doc = "point of the domain that it turns about"},
    {ARRAY(selkie_frame_def, "keyframes", keyframes, keyframe_count, sk_keyframe_struct),
     .doc = "position of the domain over time, joined by a smooth curve"},
    {ARRAY(selkie_frame_def, "oscillations", oscillations, oscillation_count, sk_oscillation_struct),
     .doc = "harmonic motions, added to the keyframes: sway, heave, roll"},
    {ROW(selkie_frame_def, motion_file, SK_FIELD_FILE), MOTION_FILE},
};
static const sk_struct frame_struct = {
    .name = "frame",
    .doc =
        "Motion of the whole domain, with its walls, obstacles and probes. Positions and velocities of the scene are "
        "relative to the moving domain; the liquid feels the inertial forces: translation, Euler, centrifugal and "
        "Coriolis. Gravity is that of the frame at rest.",
    .size = sizeof(selkie_frame_def),
    .field_count = COUNT(frame_fields),
    .fields = frame_fields};

static const sk_field gravity_key_fields[] = {
    {NUMBER(selkie_gravity_key, time, 0), ANY, .unit = "s", .required = 1, .doc = "when"},
    {VECTOR(selkie_gravity_key, gravity), .unit = "m/s2", .in_plane = 1, .required = 1, .initial = {0, -9.81, 0},
     .doc = "acceleration at that time; linear between two times, held before the first and after the last"},
};
static const sk_struct gravity_key_struct = {.name = "gravity_key",
                                             .doc = "Gravity at a time.",
                                             .size = sizeof(selkie_gravity_key),
                                             .field_count = COUNT(gravity_key_fields),
                                             .fields = gravity_key_fields};

static const sk_field obstacle_fields[] = {
    {STRING(selkie_obstacle_def, name), .doc = "a label; probes of type force refer to it"},
    {STRUCT(selkie_obstacle_def, shape, sk_shape_struct), .required = 1, .doc = "region at the start"},
    {ENUM(selkie_obstacle_def, surface, solid_surface, SELKIE_WALL_FREE_SLIP), .doc = "motion of liquid along it"},
    {NUMBER(selkie_obstacle_def, slip_length, 0), AT_LEAST(0), .unit = "m",
     .doc = "of a no_slip surface in a viscous liquid: distance behind it at which liquid would move with it; 0 = it "
            "sticks"},
    {NUMBER(selkie_obstacle_def, liquid_friction, 0), BETWEEN(0, 100),
     .doc = "of a free_slip surface: friction of liquid is at most this times the pressure"},
    {VECTOR(selkie_obstacle_def, velocity), .unit = "m/s", .in_plane = 1, .doc = "constant motion; 0 = at rest"},
    {ROW(selkie_obstacle_def, angular_velocity, SK_FIELD_ROTATION), ANY, .unit = "rad/s", .in_plane = 1,
     .doc = "constant turning about center, which moves along"},
    {VECTOR(selkie_obstacle_def, center), .place = 1, .unit = "m", .doc = "point that it turns about"},
    {ARRAY(selkie_obstacle_def, "keyframes", keyframes, keyframe_count, sk_keyframe_struct),
     .doc = "motion by keyframes, instead of the constant one"},
    {ARRAY(selkie_obstacle_def, "oscillations", oscillations, oscillation_count, sk_oscillation_struct),
     .doc = "harmonic motions, added to the others: the paddle of a wave maker"},
    {ROW(selkie_obstacle_def, motion_file, SK_FIELD_FILE), MOTION_FILE},
    {NUMBER(selkie_obstacle_def, temperature, 0), AT_LEAST(0), .unit = "K",
     .doc = "of its surface, where heat is simulated; 0 = insulated"},
    {NUMBER(selkie_obstacle_def, heat_exchange, 0), AT_LEAST(0), .unit = "W/(m2 K)",
     .doc = "heat per area, time and difference between it and the liquid; 0 = perfect contact"},
    {ENUM(selkie_obstacle_def, look, sk_look, SELKIE_LOOK_PAINTED), .dimension = 3, .doc = "look in pictures"},
};
const sk_struct sk_obstacle_struct = {.name = "obstacle",
                                      .doc = "A solid, at rest or moving. It holds liquid at any thickness and speed: "
                                             "particles stop before its surface. The grid resolves the flow around "
                                             "walls of two cells or more. An open mesh whose holes have more than 2 % "
                                             "of its area is a sheet that holds liquid on both sides; one with smaller "
                                             "holes is a solid.",
                                      .size = sizeof(selkie_obstacle_def),
                                      .field_count = COUNT(obstacle_fields),
                                      .fields = obstacle_fields};

static const sk_field body_fields[] = {
    {STRING(selkie_body_def, name), .doc = "a label, written to bodies.csv"},
    {STRUCT(selkie_body_def, shape, sk_shape_struct), .required = 1, .doc = "region at the start; must be finite"},
    {NUMBER(selkie_body_def, density, 500), DENSITY, .doc = "it floats where this is below the liquid's"},
    {NUMBER(selkie_body_def, mass, 0), AT_LEAST(0), .unit = "kg",
     .doc = "instead of the density; 0 = from it; in 2D for a depth of one metre"},
    {ENUM(selkie_body_def, surface, solid_surface, SELKIE_WALL_FREE_SLIP), .doc = "motion of liquid along it"},
    {NUMBER(selkie_body_def, slip_length, 0), AT_LEAST(0), .unit = "m",
     .doc = "of a no_slip surface in a viscous liquid: distance behind it at which liquid would move with it; 0 = it "
            "sticks"},
    {NUMBER(selkie_body_def, liquid_friction, 0), BETWEEN(0, 100),
     .doc = "of a free_slip surface: friction of liquid is at most this times the pressure"},
    {VECTOR(selkie_body_def, velocity), .unit = "m/s", .in_plane = 1, .doc = "of its centre of mass at the start"},
    {ROW(selkie_body_def, angular_velocity, SK_FIELD_ROTATION), ANY, .unit = "rad/s", .in_plane = 1,
     .doc = "turning at the start"},
    {ROW(selkie_body_def, move, SK_FIELD_VECTOR), BETWEEN(0, 1), .initial = {1, 1, 1},
     .doc = "0 = held along this axis, 1 = free"},
    {ROW(selkie_body_def, turn, SK_FIELD_ROTATION), BETWEEN(0, 1), .initial = {1, 1, 1},
     .doc = "0 = does not turn about this axis, 1 = free"},
    {NUMBER(selkie_body_def, friction, 0.3), BETWEEN(0, 100),
     .doc = "against walls and obstacles; between two bodies the geometric mean"},
    {NUMBER(selkie_body_def, restitution, 0), BETWEEN(0, 1),
     .doc = "ratio of the speeds after and before a bounce; of two bodies the larger one"},
    {STRING(selkie_body_def, material),
     .doc = "name of a material of kind rigid or soft, whose particles fill the shape; without one the body is a rigid "
            "shape"},
};
const sk_struct sk_body_struct = {.name = "body",
                                  .doc = "A rigid body that moves freely: it falls, floats, sinks and collides.",
                                  .size = sizeof(selkie_body_def),
                                  .field_count = COUNT(body_fields),
                                  .fields = body_fields};

static const sk_field joint_fields[] = {
    {STRING(selkie_joint_def, name), .doc = "a label"},
    {STRING(selkie_joint_def, first), .required = 1, .doc = "name of a body"},
    {STRING(selkie_joint_def, second), .doc = "name of another body; none = fixed in space"},
    {VECTOR(selkie_joint_def, at), .place = 1, .unit = "m", .required = 1, .doc = "the hinge at the start"},
    {NUMBER(selkie_joint_def, swing, 0), BETWEEN(-170, 170), .unit = "deg",
     .doc = "amplitude of the angle that its motor follows, of the second body against the first, or of the first "
            "against space; faded in over a period"},
    {NUMBER(selkie_joint_def, period, 1), ABOVE(0), .unit = "s", .doc = "of the swing"},
    {NUMBER(selkie_joint_def, phase, 0), ANY, .unit = "deg", .doc = "of the swing"},
    {NUMBER(selkie_joint_def, spin, 0), ANY, .unit = "rad/s", .doc = "constant speed of the motor, without a swing"},
    {NUMBER(selkie_joint_def, torque, 0), AT_LEAST(0), .unit = "N m",
     .doc = "largest of the motor; 0 = as much as it takes"},
};
const sk_struct sk_joint_struct = {.name = "joint",
                                   .doc = "A hinge of a body, with a motor if it swings or spins; discretization "
                                          "reduced. Bodies that it joins do not collide with each other.",
                                   .size = sizeof(selkie_joint_def),
                                   .field_count = COUNT(joint_fields),
                                   .fields = joint_fields};

#define OF_EXPLOSION .variants = 1u << SELKIE_FORCE_EXPLOSION
#define OF_VORTEX .variants = 1u << SELKIE_FORCE_VORTEX
#define OF_JET .variants = 1u << SELKIE_FORCE_JET
#define OF_UNIFORM .variants = 1u << SELKIE_FORCE_UNIFORM
#define OF_LOCAL .variants = 1u << SELKIE_FORCE_EXPLOSION | 1u << SELKIE_FORCE_VORTEX | 1u << SELKIE_FORCE_JET
#define OF_SPONGE .variants = 1u << SELKIE_FORCE_SPONGE
#define OF_LASTING                                                                                                     \
    .variants =                                                                                                        \
        1u << SELKIE_FORCE_VORTEX | 1u << SELKIE_FORCE_JET | 1u << SELKIE_FORCE_UNIFORM | 1u << SELKIE_FORCE_SPONGE

static const sk_field force_fields[] = {
    {STRING(selkie_force_def, name), .doc = "a label"},
    {TYPE(selkie_force_def, force_kind, SELKIE_FORCE_EXPLOSION), .doc = "kind of force"},
    {VECTOR(selkie_force_def, center), .place = 1, OF_EXPLOSION, .unit = "m", .required = 1,
     .doc = "where it explodes"},
    {VECTOR(selkie_force_def, point), .place = 1, OF_VORTEX, .unit = "m", .required = 1, .doc = "a point of the axis"},
    {VECTOR(selkie_force_def, axis), OF_VORTEX, .initial = {0, 1, 0}, .dimension = 3,
     .doc = "direction of the axis, of any length but 0; liquid turns counterclockwise seen from its tip"},
    {VECTOR(selkie_force_def, from), .place = 1, OF_JET, .unit = "m", .required = 1,
     .doc = "the end of the axis where it begins"},
    {VECTOR(selkie_force_def, to), .place = 1, OF_JET, .unit = "m", .required = 1, .initial = {0, 1, 0},
     .doc = "the end that it pushes towards"},
    {NUMBER(selkie_force_def, radius, 0.5), ABOVE(0), OF_LOCAL, .unit = "m", .required = 1,
     .doc = "range from its centre or axis"},
    {ENUM(selkie_force_def, falloff, falloff, SELKIE_FALLOFF_SMOOTH), OF_LOCAL,
     .doc = "weight at q = distance / radius"},
    {NUMBER(selkie_force_def, speed, 0), ANY, OF_EXPLOSION, .unit = "m/s", .required = 1,
     .doc = "that it adds to the liquid, away from the centre, times the falloff; below 0 it sucks in"},
    {NUMBER(selkie_force_def, time, 0), BETWEEN(0, 1e6), OF_EXPLOSION, .unit = "s", .required = 1,
     .doc = "time of the explosion"},
    {NUMBER(selkie_force_def, spin, 0), ANY, OF_VORTEX, .unit = "rad/s2",
     .doc = "angular acceleration about the axis, times the falloff"},
    {NUMBER(selkie_force_def, pull, 0), ANY, OF_VORTEX, .unit = "m/s2",
     .doc = "acceleration towards the axis, times distance / radius times the falloff"},
    {NUMBER(selkie_force_def, lift, 0), ANY, OF_VORTEX, .unit = "m/s2", .dimension = 3,
     .doc = "acceleration along the axis, times the falloff"},
    {NUMBER(selkie_force_def, strength, 0), ANY, OF_JET, .unit = "m/s2", .required = 1,
     .doc = "acceleration along the axis, times the falloff"},
    {VECTOR(selkie_force_def, acceleration), OF_UNIFORM, .unit = "m/s2", .required = 1, .in_plane = 1,
     .doc = "of all liquid"},
    {ENUM(selkie_force_def, side, side, SELKIE_SIDE_X_MAX), OF_SPONGE, .required = 1,
     .doc = "side of the domain that absorbs waves"},
    {NUMBER(selkie_force_def, width, 1), ABOVE(0), OF_SPONGE, .unit = "m", .required = 1,
     .doc = "of the layer before the side; a wavelength or more"},
    {NUMBER(selkie_force_def, rate, 0), AT_LEAST(0), OF_SPONGE, .unit = "1/s",
     .doc = "damping at the side, it falls quadratically to 0 over the width; 0 = 2.5 sqrt(gravity / width)"},
    {NUMBER(selkie_force_def, start, 0), AT_LEAST(0), OF_LASTING, .unit = "s", .doc = "when it begins"},
    {NUMBER(selkie_force_def, end, -1), ANY, OF_LASTING, .unit = "s", .doc = "when it stops; below 0 = never"},
};
const sk_struct sk_force_struct = {.name = "force",
                                   .doc = "A field of force that acts on the liquid beside gravity. Its type decides "
                                          "which keys it has.",
                                   .size = sizeof(selkie_force_def),
                                   .field_count = COUNT(force_fields),
                                   .fields = force_fields,
                                   .variant = &force_fields[1]};

static const sk_field timeline_entry_fields[] = {
    {NUMBER(selkie_timeline_entry, assemble, 0), BETWEEN(0, 1e6), .unit = "s",
     .doc = "when liquid begins to gather; with start_solid the first one must be 0"},
    {NUMBER(selkie_timeline_entry, release, -1), ANY, .unit = "s",
     .doc = "when it becomes liquid again; below 0 = never"},
    {ENUM(selkie_timeline_entry, release_mode, release, SELKIE_RELEASE_INSTANT), .doc = "order of the release"},
    {NUMBER(selkie_timeline_entry, release_duration, 0), BETWEEN(0, 1e6), .unit = "s",
     .doc = "how long that takes; not with instant"},
    {VECTOR(selkie_timeline_entry, release_direction), .in_plane = 1, .initial = {0, -1, 0},
     .doc = "which way a sweep runs, in the object's own frame"},
};
const sk_struct sk_timeline_entry_struct = {.name = "timeline_entry",
                                            .doc = "One life of an object, from gathering to release.",
                                            .size = sizeof(selkie_timeline_entry),
                                            .field_count = COUNT(timeline_entry_fields),
                                            .fields = timeline_entry_fields};

static const sk_field object_fields[] = {
    {STRING(selkie_object_def, name), .doc = "a label"},
    {STRUCT(selkie_object_def, shape, sk_shape_struct), .required = 1, .doc = "target shape of the liquid"},
    {ENUM(selkie_object_def, fill, object_fill, SELKIE_FILL_VOLUME), .doc = "solid part of the shape"},
    {NUMBER(selkie_object_def, thickness, 0), AT_LEAST(0), .unit = "m",
     .doc = "fill surface: of the shell, rounded to whole particles; 0 = one"},
    {NUMBER(selkie_object_def, spacing, 1), BETWEEN(0.25, 2),
     .doc = "distance of its particles in particle spacings; below 1 they are too dense, to compare with"},
    {BOOL(selkie_object_def, start_solid, 0), .doc = "is there from the start, with particles of its own"},
    {NUMBER(selkie_object_def, alpha, 0.5), BETWEEN(0, 1), .low_open = 1,
     .doc = "share of the animation in a candidate's velocity; 1 costs most iterations"},
    {NUMBER(selkie_object_def, beta, 1), ABOVE(0), .unit = "m/s", .doc = "speed of candidates towards their places"},
    {ENUM(selkie_object_def, easing, easing, SELKIE_EASING_SMOOTH), .doc = "how they slow down near their places"},
    {NUMBER(selkie_object_def, easing_distance, 0), AT_LEAST(0), .unit = "m",
     .doc = "from where on; 0 = four particle spacings"},
    {NUMBER(selkie_object_def, arrival, 0.25), BETWEEN(0, 2), .low_open = 1,
     .doc = "distance at which a candidate becomes boundary, in particle spacings"},
    {ARRAY(selkie_object_def, "regions", regions, region_count, sk_shape_struct),
     .doc = "regions that candidates come from; empty = everywhere"},
    {VECTOR(selkie_object_def, center), .place = 1, .unit = "m", .doc = "point that it turns about"},
    {ARRAY(selkie_object_def, "keyframes", keyframes, keyframe_count, sk_keyframe_struct),
     .doc = "motion by keyframes"},
    {ARRAY(selkie_object_def, "timeline", timeline, timeline_count, sk_timeline_entry_struct),
     .doc = "when it gathers and when it is released; empty: with start_solid it stays for ever"},
};
const sk_struct sk_object_struct = {
    .name = "object",
    .doc = "Liquid that takes a shape, is solid for a while and becomes liquid again: discretization sph.",
    .size = sizeof(selkie_object_def),
    .field_count = COUNT(object_fields),
    .fields = object_fields};

#define OF_POINT_PROBE                                                                                                 \
    .variants = 1u << SELKIE_PROBE_HEIGHT | 1u << SELKIE_PROBE_PRESSURE | 1u << SELKIE_PROBE_VELOCITY |                \
                1u << SELKIE_PROBE_TORQUE | 1u << SELKIE_PROBE_TEMPERATURE
#define OF_FRONT_PROBE .variants = 1u << SELKIE_PROBE_FRONT
#define OF_FORCE_PROBE .variants = 1u << SELKIE_PROBE_FORCE | 1u << SELKIE_PROBE_TORQUE
#define OF_PRESSURE_PROBE .variants = 1u << SELKIE_PROBE_PRESSURE
#define OF_LEVEL_PROBE .variants = 1u << SELKIE_PROBE_LEVEL

static const sk_field probe_fields[] = {
    {STRING(selkie_probe_def, name), .required = 1, .doc = "name of its column: letters, digits and _"},
    {TYPE(selkie_probe_def, probe_kind, SELKIE_PROBE_HEIGHT), .doc = "kind of measurement"},
    {VECTOR(selkie_probe_def, at), .place = 1, .unit = "m", .required = 1, OF_POINT_PROBE,
     .doc = "point of the measurement; torque: the point that it is about"},
    {NUMBER(selkie_probe_def, radius, 0), AT_LEAST(0), OF_PRESSURE_PROBE, .unit = "m",
     .doc = "of a round gauge around the point, whose mean pressure is measured, in 2D half of a line; 0 = the point"},
    {VECTOR(selkie_probe_def, normal), OF_PRESSURE_PROBE, .in_plane = 1, .initial = {1, 0, 0},
     .doc = "direction across the gauge, of any length above 0"},
    {ENUM(selkie_probe_def, axis, axis, SELKIE_AXIS_X), OF_FRONT_PROBE, .doc = "along which axis"},
    {INTEGER(selkie_probe_def, direction, 1), BETWEEN(-1, 1), OF_FRONT_PROBE,
     .doc = "1 = towards its high end, -1 = its low end"},
    {ROW(selkie_probe_def, on, SK_FIELD_STRING), .text = "walls", OF_FORCE_PROBE,
     .doc = "name of an obstacle or body; walls = those of the domain"},
    {VECTOR(selkie_probe_def, min), .place = 1, .unit = "m", OF_LEVEL_PROBE,
     .doc = "lower corner of the area; its height does not matter"},
    {VECTOR(selkie_probe_def, max), .place = 1, .unit = "m", OF_LEVEL_PROBE,
     .doc = "upper corner; along an axis where min and max are 0 the area is as wide as the domain"},
};
const sk_struct sk_probe_struct = {.name = "probe",
                                   .doc = "A measurement, written to probes.csv after each step.",
                                   .size = sizeof(selkie_probe_def),
                                   .field_count = COUNT(probe_fields),
                                   .fields = probe_fields,
                                   .variant = &probe_fields[1]};

/* --- What comes out --- */

static const sk_field output_fields[] = {
    {BOOL(selkie_output_def, ply, 1), .doc = "particles as binary PLY"},
    {BOOL(selkie_output_def, vtp, 0), .doc = "particles as VTK XML (.vtp)"},
    {BOOL(selkie_output_def, skp, 0),
     .doc = "particles in compact files (.skp): positions to 1/1024 of a cell, half-precision velocities, compressed; "
            "`selkie convert` makes .ply and .vtp of them"},
    {INTEGER(selkie_output_def, every, 1), BETWEEN(1, 1000000), .doc = "write each n-th frame"},
    {ENUM(selkie_output_def, names, attribute_names, SELKIE_NAMES_SELKIE), .doc = "names of the particles' attributes"},
    {ENUM(selkie_output_def, up, up_axis, SELKIE_UP_SCENE), .doc = "up axis in the files"},
    {ENUM(selkie_output_def, surface, surface_format, SELKIE_SURFACE_FORMAT_NONE),
     .doc = "the liquid's surface as triangles; 3D only"},
    {NUMBER(selkie_output_def, checkpoint_interval, 60), AT_LEAST(0), .unit = "s",
     .doc = "wall time between checkpoints; 0 = only at the end"},
    {INTEGER(selkie_output_def, checkpoint_keep, 2), BETWEEN(1, 1000000), .doc = "number of checkpoints that are kept"},
};
static const sk_struct output_struct = {.name = "output",
                                        .doc = "Output of a run.",
                                        .size = sizeof(selkie_output_def),
                                        .field_count = COUNT(output_fields),
                                        .fields = output_fields};

static const sk_field render_fields[] = {
    {INTEGER(selkie_render_def, width, 1280), BETWEEN(16, 16384), .unit = "pixels", .doc = "of a picture"},
    {INTEGER(selkie_render_def, height, 0), BETWEEN(0, 16384), .unit = "pixels",
     .doc = "of a picture; 0 = follows the domain"},
    {ENUM(selkie_render_def, style, picture_style, SELKIE_STYLE_SURFACE), .doc = "style of the liquid"},
    {ENUM(selkie_render_def, color, picture_color, SELKIE_COLOR_WATER), .doc = "quantity shown by the colour"},
    {VECTOR(selkie_render_def, eye), .place = 1, .unit = "m", .dimension = 3,
     .doc = "position of the camera; eye = target: framed automatically"},
    {VECTOR(selkie_render_def, target), .place = 1, .unit = "m", .dimension = 3,
     .doc = "point in the middle of the picture"},
    {NUMBER(selkie_render_def, field_of_view, 40), BETWEEN(0, 180), .low_open = 1, .high_open = 1, .unit = "deg",
     .dimension = 3, .doc = "vertical field of view"},
    {ENUM(selkie_render_def, liquid, sk_liquid_look, SELKIE_LIQUID_LOOK_TINTED), .dimension = 3,
     .doc = "look of the liquid"},
    {ENUM(selkie_render_def, sky, sk_sky, SELKIE_SKY_STUDIO), .dimension = 3, .doc = "surroundings"},
    {ARRAY(selkie_render_def, "camera", camera, camera_count, sk_camera_struct), .dimension = 3,
     .doc = "camera over time, in place of eye, target and field_of_view"},
};
static const sk_struct render_struct = {.name = "render",
                                        .doc = "Pictures of the run.",
                                        .size = sizeof(selkie_render_def),
                                        .field_count = COUNT(render_fields),
                                        .fields = render_fields};

static const sk_field heat_fields[] = {
    {NUMBER(selkie_heat_def, air_temperature, 0), AT_LEAST(0), .unit = "K",
     .doc = "of the air over the free surface; 0 = no exchange with it"},
    {NUMBER(selkie_heat_def, air_exchange, 10), AT_LEAST(0), .unit = "W/(m2 K)",
     .doc = "heat per area, time and difference between air and surface"},
    {NUMBER(selkie_heat_def, tolerance, 1e-5), BETWEEN(0, 1), .low_open = 1,
     .doc = "the solve ends when the residual is below this part of the right side"},
};
static const sk_struct heat_struct = {.name = "heat",
                                      .doc = "Heat, simulated where the materials have a heat_capacity.",
                                      .size = sizeof(selkie_heat_def),
                                      .field_count = COUNT(heat_fields),
                                      .fields = heat_fields};

/* --- Changes while it runs --- */

#define OF(kind) .variants = 1u << SELKIE_CHANGE_##kind, .required = 1
#define OF_MOVE .variants = 1u << SELKIE_CHANGE_MOVE
#define OF_PUSH .variants = 1u << SELKIE_CHANGE_PUSH
#define OF_NAMED                                                                                                       \
    .variants = 1u << SELKIE_CHANGE_MOVE | 1u << SELKIE_CHANGE_PUSH | 1u << SELKIE_CHANGE_REMOVE, .required = 1

static const sk_field change_fields[] = {
    {INTEGER(selkie_change_def, step, 0), BETWEEN(0, 2e9), .required = 1,
     .doc = "it happens before the step of this number; 0 = the first"},
    {TYPE(selkie_change_def, change_kind, SELKIE_CHANGE_GRAVITY), .doc = "kind of change"},
    {ENUM(selkie_change_def, list, change_list, SELKIE_LIST_OBSTACLES), OF(REMOVE), .doc = "where the element is"},
    {STRING(selkie_change_def, name), OF_NAMED, .doc = "label of the element, or its number in the list"},
    {VECTOR(selkie_change_def, gravity), OF(GRAVITY), .unit = "m/s2", .in_plane = 1, .initial = {0, -9.81, 0},
     .doc = "acceleration"},
    {VECTOR(selkie_change_def, translate), OF_MOVE, .unit = "m", .in_plane = 1,
     .doc = "where the obstacle goes, from where it is drawn"},
    {ROW(selkie_change_def, rotate, SK_FIELD_ROTATION), ANY, OF_MOVE, .unit = "deg", .in_plane = 1,
     .doc = "likewise: about x, then y, then z, through the obstacle's center"},
    {NUMBER(selkie_change_def, duration, 0), ABOVE(0), OF(MOVE), .unit = "s", .doc = "the motion takes so long"},
    {VECTOR(selkie_change_def, velocity), OF_PUSH, .unit = "m/s", .in_plane = 1,
     .doc = "added to the velocity of the body's centre of mass"},
    {ROW(selkie_change_def, angular_velocity, SK_FIELD_ROTATION), ANY, OF_PUSH, .unit = "rad/s", .in_plane = 1,
     .doc = "added to the body's angular velocity"},
    {NUMBER(selkie_change_def, length, 0), BETWEEN(0, 1e3), .low_open = 1, OF(STEP), .unit = "s",
     .doc = "of the next step"},
    {STRUCT(selkie_change_def, force, sk_force_struct), OF(FORCE), .doc = "the force"},
    {STRUCT(selkie_change_def, obstacle, sk_obstacle_struct), OF(OBSTACLE), .doc = "the obstacle"},
    {STRUCT(selkie_change_def, source, sk_source_struct), OF(SOURCE), .doc = "the source"},
    {STRUCT(selkie_change_def, drain, sk_drain_struct), OF(DRAIN), .doc = "the drain"},
    {STRUCT(selkie_change_def, liquid, sk_liquid_struct), OF(LIQUID), .doc = "the liquid"},
    {STRUCT(selkie_change_def, shape, sk_shape_struct), OF(CLEAR), .doc = "where liquid goes"},
};
const sk_struct sk_change_struct = {.name = "change",
                                    .doc = "A change of the scene while it runs. A run that was steered by a program "
                                           "is replayed from the changes that it leaves.",
                                    .size = sizeof(selkie_change_def),
                                    .field_count = COUNT(change_fields),
                                    .fields = change_fields,
                                    .variant = &change_fields[1]};

/* --- The scene --- */

static const sk_enum_value splash_sampling_values[] = {
    {"hazard", SELKIE_SPLASH_HAZARD, "rates against one random threshold a particle: counts do not depend on the step"},
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
};
static const sk_struct sk_splash_struct = {.name = "splash",
                                           .doc = "How a model of splashes is used.",
                                           .size = sizeof(selkie_splash_def),
                                           .field_count = COUNT(splash_fields),
                                           .fields = splash_fields};

static const sk_field scene_fields[] = {
    {STRING(selkie_scene, title), .doc = "one line about the scene"},
    {STRUCT(selkie_scene, domain, sk_domain_struct), .required = 1, .doc = "the box that everything happens in"},
    {VECTOR(selkie_scene, gravity), .unit = "m/s2", .in_plane = 1, .initial = {0, -9.81, 0},
     .doc = "acceleration; up is against it (y without gravity)"},
    {ARRAY(selkie_scene, "gravity_over_time", gravity_keys, gravity_key_count, gravity_key_struct),
     .doc = "gravity that changes, in place of gravity, which still says what is up"},
    {STRUCT(selkie_scene, frame, frame_struct), .doc = "motion of the domain: sway, heave, roll"},
    {STRUCT(selkie_scene, time, time_struct), .doc = "end, frames, steps"},
    {ROW(selkie_scene, seed, SK_FIELD_SEED), .initial = {1},
     .doc = "of all random numbers: the same seed gives the same run"},
    {STRUCT(selkie_scene, particles, particles_struct), .doc = "number and layout of particles"},
    {ENUM(selkie_scene, discretization, discretization, SELKIE_DISCRETIZATION_GRID),
     .doc = "where the equations are solved"},
    {ENUM(selkie_scene, transfer, transfer, SELKIE_TRANSFER_FLIP),
     .doc = "discretization grid: how velocity goes from particles to the grid and back"},
    {ENUM(selkie_scene, backend, backend, SELKIE_BACKEND_TUNED), .doc = "form of the numerics"},
    {NUMBER(selkie_scene, flip_ratio, 0.97), BETWEEN(0, 1),
     .doc = "transfer flip: share of FLIP, the rest is PIC, while the fastest liquid crosses a cell; a step takes the "
            "power of its CFL number. Where a step is not reflected (time.reflection), the share in a step"},
    {ENUM(selkie_scene, volume, volume, SELKIE_VOLUME_AUTO), .doc = "how volume is kept over many steps"},
    {STRUCT(selkie_scene, idp, idp_struct), .doc = "parameters of volume idp"},
    {STRUCT(selkie_scene, losasso, losasso_struct), .doc = "parameters of volume losasso"},
    {STRUCT(selkie_scene, ando, ando_struct), .doc = "parameters of volume ando"},
    {STRUCT(selkie_scene, sato, sato_struct), .doc = "parameters of volume sato"},
    {STRUCT(selkie_scene, sph, sph_struct), .doc = "parameters of discretization sph"},
    {STRUCT(selkie_scene, reduced, reduced_struct), .doc = "parameters of discretization reduced"},
    {ENUM(selkie_scene, incompressibility, incompressibility, SELKIE_INCOMPRESSIBILITY_BILATERAL),
     .doc = "what the pressure may do"},
    {STRUCT(selkie_scene, unilateral, unilateral_struct), .doc = "parameters of incompressibility unilateral"},
    {STRUCT(selkie_scene, pressure, pressure_struct), .doc = "the pressure solve"},
    {STRUCT(selkie_scene, advection, advection_struct), .doc = "how particles move"},
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
    {STRUCT(selkie_scene, output, output_struct), .doc = "output of a run"},
    {STRUCT(selkie_scene, render, render_struct), .doc = "pictures"},
    {STRUCT(selkie_scene, mesh, sk_mesh_struct), .dimension = 3, .doc = "mesh of the liquid's surface"},
    {STRUCT(selkie_scene, whitewater, sk_whitewater_struct), .dimension = 3, .doc = "spray, foam and bubbles"},
    {STRUCT(selkie_scene, heat, heat_struct), .doc = "heat conduction, melting and freezing"},
    {ARRAY(selkie_scene, "changes", changes, change_count, sk_change_struct),
     .doc = "what changes while it runs, in the order of the steps"},
    {NUMBER(selkie_scene, surface_tension, 0), AT_LEAST(0), .unit = "N/m",
     .doc = "of all materials, discretization grid; water has 0.073"},
    {NUMBER(selkie_scene, contact_angle, 90), BETWEEN(0, 180), .unit = "deg",
     .doc = "of the surface at walls and obstacles, inside the liquid, where there is surface tension"},
    {STRING(selkie_scene, splashes),
     .doc = "discretization grid: model that makes droplets, \"default\" or a file of `selkie splash train`"},
    {STRUCT(selkie_scene, splash, sk_splash_struct), .doc = "parameters of splashes"},
};
const sk_struct sk_scene_struct = {.name = "scene",
                                   .doc = "A scene needs a domain with a size and at least one liquid or source.",
                                   .size = sizeof(selkie_scene),
                                   .field_count = COUNT(scene_fields),
                                   .fields = scene_fields};

const sk_field sk_method_field = {
    .key = "method", .type = SK_FIELD_ENUM, .choices = &method, .doc = "older word for discretization and transfer"};

/* --- Access --- */

/* Enumerations and ints are read and written through memcpy: the compiler chooses an enumeration's type. The assertion
 * below checks that its size is an int's. */
_Static_assert(sizeof(selkie_wall) == sizeof(int), "enumerations are stored as int");

int sk_field_int(const sk_field *field, const void *base)
{
    int value;
    memcpy(&value, sk_field_in(field, base), sizeof value);
    return value;
}

void sk_field_set_int(const sk_field *field, void *base, int value)
{
    memcpy(sk_field_at(field, base), &value, sizeof value);
}

uint64_t sk_field_seed(const sk_field *field, const void *base)
{
    uint64_t value;
    memcpy(&value, sk_field_in(field, base), sizeof value);
    return value;
}

const char *sk_field_string(const sk_field *field, const void *base)
{
    const char *value;
    memcpy(&value, sk_field_in(field, base), sizeof value);
    return value ? value : "";
}

int sk_field_components(const sk_field *field)
{
    switch (field->type) {
    case SK_FIELD_NUMBER:
        return 1;
    case SK_FIELD_VECTOR:
    case SK_FIELD_ROTATION:
    case SK_FIELD_SCALE:
        return 3;
    case SK_FIELD_MATRIX:
        return 9;
    default:
        return 0;
    }
}

const double *sk_field_numbers(const sk_field *field, const void *base)
{
    return sk_field_in(field, base);
}

int sk_field_count(const sk_field *field, const void *base)
{
    int count;
    memcpy(&count, (const char *)base + field->count_offset, sizeof count);
    return count;
}

const void *sk_field_elements(const sk_field *field, const void *base)
{
    const void *elements;
    memcpy(&elements, sk_field_in(field, base), sizeof elements);
    return elements;
}

const sk_field *sk_struct_find(const sk_struct *type, const char *key)
{
    for (int i = 0; i < type->field_count; i++)
        if (strcmp(type->fields[i].key, key) == 0)
            return &type->fields[i];
    return NULL;
}

int sk_field_in_variant(const sk_field *field, int value)
{
    return !field->variants || (value >= 0 && value < 32 && (field->variants >> value & 1));
}

int sk_struct_uses(const sk_struct *type, const sk_field *field, const void *base)
{
    return !type->variant || sk_field_in_variant(field, sk_field_int(type->variant, base));
}

const sk_enum_value *sk_enum_find(const sk_enum *choices, const char *name)
{
    for (int i = 0; i < choices->count; i++)
        if (strcmp(choices->values[i].name, name) == 0)
            return &choices->values[i];
    return NULL;
}

const char *sk_enum_name(const sk_enum *choices, int value)
{
    for (int i = 0; i < choices->count; i++)
        if (choices->values[i].value == value)
            return choices->values[i].name;
    return NULL;
}
