/* Rows of the field table (fields.h): reduced fluids. */
#include "defs/keys.h"

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

static const sk_enum_value feedback_way_values[] = {
    {"panels", SELKIE_FEEDBACK_PANELS, "integrals of the modes over the panels: exact, without a grid"},
    {"quadtree", SELKIE_FEEDBACK_QUADTREE, "the source's quadtree over the cells, to compare with"},
    {"grid", SELKIE_FEEDBACK_GRID, "every panel at every cell, the source's naive form, to compare with"},
};
CHOICES(feedback_way);

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
    {ARRAY(selkie_drawn_def, "strokes", strokes, stroke_count, sk_stroke_struct),
     .doc = "the drawing; its divergence-free part is taken"},
    {ROW(selkie_drawn_def, picture, SK_FIELD_FILE), .text = "",
     .doc = "picture of velocities that fills the domain (PNG, PPM): red along x, green along y, half bright = 0; "
            "strokes add to it"},
    {NUMBER(selkie_drawn_def, picture_speed, 1), ANY, .unit = "m/s", .doc = "velocity of full red and green"},
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

static const sk_field dye_fields[] = {
    {STRING(selkie_dye_def, name), .doc = "a label"},
    {STRUCT(selkie_dye_def, shape, sk_shape_struct), .required = 1, .doc = "what is inside is dyed"},
    {ROW(selkie_dye_def, color, SK_FIELD_VECTOR), BETWEEN(0, 1), .initial = {0.78, 0.13, 0.16}, .whole = 1,
     .doc = "red, green and blue"},
    {NUMBER(selkie_dye_def, start, 0), AT_LEAST(0), .unit = "s", .doc = "when it dyes what is inside"},
    {NUMBER(selkie_dye_def, end, 0), ANY, .unit = "s",
     .doc = "until then it also dyes what passes through; not after start = once"},
};
const sk_struct sk_dye_struct = {.name = "dye",
                                 .doc = "A colour that moves along with a reduced fluid and stays sharp.",
                                 .size = sizeof(selkie_dye_def),
                                 .field_count = COUNT(dye_fields),
                                 .fields = dye_fields};

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
    {ENUM(selkie_reduced_def, feedback_by, feedback_way, SELKIE_FEEDBACK_PANELS), .doc = "how sheets reach the modes"},
    {NUMBER(selkie_reduced_def, feedback_error, 0.01), BETWEEN(0, 1),
     .doc = "quadtree: error of a panel's velocity below which a node is not divided, over the strength of the panel"},
    {ROW(selkie_reduced_def, basis, SK_FIELD_FILE), .text = "",
     .doc = "file of modes that `selkie basis` made for this domain; replaces modes and drawn"},
    {ARRAY(selkie_reduced_def, "dye", dye, dye_count, sk_dye_struct),
     .doc =
         "colours that move along and stay sharp, at most 250; where several dye a place at once, the last one counts"},
    {INTEGER(selkie_reduced_def, dye_pixels, 6), BETWEEN(1, 32),
     .doc = "pixels of the dye along the side of a cell, in its pictures and in what it remembers"},
};
const sk_struct sk_reduced_struct = {.name = "reduced",
                                     .doc = "Parameters of discretization reduced.",
                                     .size = sizeof(selkie_reduced_def),
                                     .field_count = COUNT(reduced_fields),
                                     .fields = reduced_fields};
