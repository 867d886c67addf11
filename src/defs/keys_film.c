/* Rows of the field table for surfaces, whitewater and the look of pictures. */
#include "defs/rows.h"

/* --- Looks --- */

static const sk_enum_value look_values[] = {
    {"painted", SELKIE_LOOK_PAINTED, "a dull colour of its own"},
    {"stone", SELKIE_LOOK_STONE, "grey and dull"},
    {"rubber", SELKIE_LOOK_RUBBER, "black, with a soft shine"},
    {"metal", SELKIE_LOOK_METAL, "polished"},
    {"ice", SELKIE_LOOK_ICE, "milky blue, half transparent"},
    {"glass", SELKIE_LOOK_GLASS, "transparent: a cup shows its water"},
};
const sk_enum sk_look = {COUNT(look_values), look_values};

static const sk_enum_value liquid_look_values[] = {
    {"tinted", SELKIE_LIQUID_LOOK_TINTED, "water, tinted as if the domain were some metres deep, whatever its size"},
    {"water", SELKIE_LIQUID_LOOK_WATER, "water that absorbs light as pure water does"},
    {"milk", SELKIE_LIQUID_LOOK_MILK, "white"},
    {"honey", SELKIE_LIQUID_LOOK_HONEY, "amber"},
    {"oil", SELKIE_LIQUID_LOOK_OIL, "yellow and clear"},
};
const sk_enum sk_liquid_look = {COUNT(liquid_look_values), liquid_look_values};

static const sk_enum_value sky_values[] = {
    {"studio", SELKIE_SKY_STUDIO, "soft light and a bank of cloud behind the liquid"},
    {"day", SELKIE_SKY_DAY, "clear blue"},
    {"evening", SELKIE_SKY_EVENING, "a low sun and a warm horizon"},
    {"overcast", SELKIE_SKY_OVERCAST, "even grey, without a sun"},
};
const sk_enum sk_sky = {COUNT(sky_values), sky_values};

static const sk_field camera_fields[] = {
    {NUMBER(selkie_camera_key, time, 0), ANY, .required = 1, .unit = "s", .doc = "must increase from key to key"},
    {VECTOR(selkie_camera_key, eye), .place = 1, .unit = "m", .required = 1, .doc = "position of the camera"},
    {VECTOR(selkie_camera_key, target), .place = 1, .unit = "m", .required = 1,
     .doc = "point in the middle of the picture"},
    {NUMBER(selkie_camera_key, field_of_view, 40), BETWEEN(0, 180), .low_open = 1, .high_open = 1, .unit = "deg",
     .doc = "vertical field of view"},
};
const sk_struct sk_camera_struct = {.name = "camera",
                                    .doc = "The camera at a time. Between two keys it moves smoothly.",
                                    .size = sizeof(selkie_camera_key),
                                    .field_count = COUNT(camera_fields),
                                    .fields = camera_fields};

/* --- The surface --- */

static const sk_field mesh_fields[] = {
    {NUMBER(selkie_mesh_def, resolution, 2), BETWEEN(0.8, 4),
     .doc = "voxels a cell along an axis; 2 resolves the particles of a liquid with 8 in a cell"},
    {NUMBER(selkie_mesh_def, particle_radius, 0.62), BETWEEN(0.3, 2), .unit = "spacings",
     .doc = "of the drop of a lone particle; 0.62 holds the particle's volume. A drop never is smaller than a voxel"},
    {NUMBER(selkie_mesh_def, smoothing, 1), BETWEEN(0, 2),
     .doc = "0 = none, 1 = calm water is flat; it takes nothing from drops, sheets and crests"},
    {NUMBER(selkie_mesh_def, decimation, 0), BETWEEN(0, 1), .unit = "voxels",
     .doc = "fewer triangles where the surface is flat, in files: how far it may move; 0 = all triangles, 0.05 looks "
            "the same"},
    {BOOL(selkie_mesh_def, by_material, 0),
     .doc = "files: a mesh for each material, in a folder of its name; frozen liquid is a part of its own, as "
            "`water_frozen`"},
};
const sk_struct sk_mesh_struct = {.name = "mesh",
                                  .doc = "The mesh of the liquid's surface, in files and pictures.",
                                  .size = sizeof(selkie_mesh_def),
                                  .field_count = COUNT(mesh_fields),
                                  .fields = mesh_fields};

/* --- Whitewater --- */

static const sk_field whitewater_fields[] = {
    {BOOL(selkie_whitewater_def, enabled, 0),
     .doc = "make whitewater at the end of the run; `selkie whitewater` makes it at any time"},
    {NUMBER(selkie_whitewater_def, rate, 60), AT_LEAST(0), .unit = "1/s",
     .doc = "particles that a particle of liquid makes where all potentials are full"},
    {NUMBER(selkie_whitewater_def, trapped_air, 1), BETWEEN(0, 1000),
     .doc = "weight of air that colliding liquid traps"},
    {NUMBER(selkie_whitewater_def, wave_crest, 1), BETWEEN(0, 1000), .doc = "weight of breaking crests"},
    {NUMBER(selkie_whitewater_def, speed_min, 0), AT_LEAST(0), .unit = "m/s",
     .doc = "slower liquid makes none; 0 = 0.2 of the speed of a fall through the domain"},
    {NUMBER(selkie_whitewater_def, speed_max, 0), AT_LEAST(0), .unit = "m/s",
     .doc = "faster liquid has full potentials; 0 = 0.7 of the speed of a fall through the domain"},
    {NUMBER(selkie_whitewater_def, lifetime, 1.5), ABOVE(0), .unit = "s",
     .doc = "of foam on the surface, on average; spray and bubbles last until they become foam"},
    {NUMBER(selkie_whitewater_def, buoyancy, 2), BETWEEN(0, 1000), .doc = "of bubbles, times gravity"},
    {NUMBER(selkie_whitewater_def, drag, 20), AT_LEAST(0), .unit = "1/s",
     .doc = "of bubbles: how fast they take on the velocity of the liquid"},
    {INTEGER(selkie_whitewater_def, most, 2000000), BETWEEN(1, 100000000), .doc = "particles at a time"},
};
const sk_struct sk_whitewater_struct = {
    .name = "whitewater",
    .doc = "Spray, foam and bubbles (Ihmsen et al. 2012), carried by the liquid without an effect on it.",
    .size = sizeof(selkie_whitewater_def),
    .field_count = COUNT(whitewater_fields),
    .fields = whitewater_fields};
