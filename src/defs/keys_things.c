/* Rows of the field table (fields.h): what is in a scene: liquids, sources, obstacles, bodies, forces, objects. */
#include "defs/keys.h"

static const sk_enum_value solid_surface_values[] = {
    {"free_slip", SELKIE_WALL_FREE_SLIP, "liquid slides along it"},
    {"no_slip", SELKIE_WALL_NO_SLIP, "liquid sticks to it"},
};
CHOICES(solid_surface);

static const sk_enum_value force_kind_values[] = {
    {"explosion", SELKIE_FORCE_EXPLOSION, "a push away from a point, once"},
    {"vortex", SELKIE_FORCE_VORTEX, "turns liquid about an axis, pulls it in and lifts it"},
    {"jet", SELKIE_FORCE_JET, "pushes the liquid in a cylinder along it"},
    {"uniform", SELKIE_FORCE_UNIFORM, "the same acceleration everywhere, for a while"},
    {"sponge", SELKIE_FORCE_SPONGE, "slows liquid down near a side of the domain: waves end there"},
};
CHOICES(force_kind);

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
    {NUMBER(selkie_body_def, temperature, 293.15), ABOVE(0), .unit = "K",
     .doc = "of its particles at the start, where heat is simulated"},
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
