/* What comes out: probes, files, meshes, pictures: a part of selkie/scene.h, which says how scenes are made. */
#ifndef SELKIE_SCENE_OUTPUT_H
#define SELKIE_SCENE_OUTPUT_H

#include <selkie/scene_domain.h>

typedef enum selkie_probe_kind {
    SELKIE_PROBE_HEIGHT,     /* m    height of the liquid over a point, along the up direction */
    SELKIE_PROBE_PRESSURE,   /* Pa   at a point */
    SELKIE_PROBE_VELOCITY,   /* m/s  at a point; three columns */
    SELKIE_PROBE_FRONT,      /* m    farthest liquid along an axis */
    SELKIE_PROBE_FORCE,      /* N    of the liquid on walls, an obstacle or a body; a column an axis */
    SELKIE_PROBE_LEVEL,      /* m    mean height of the liquid's surface over the floor of the domain, in an area */
    SELKIE_PROBE_TORQUE,     /* N m  like force, about a point; in 2D one column */
    SELKIE_PROBE_TEMPERATURE /* K  at a point */
} selkie_probe_kind;

typedef enum selkie_axis { SELKIE_AXIS_X, SELKIE_AXIS_Y, SELKIE_AXIS_Z } selkie_axis;

typedef struct selkie_probe_def {
    const char *name; /* column in probes.csv */
    selkie_probe_kind kind;
    double at[3];     /* m  torque: point that it is about */
    double radius;    /* m  pressure: of a round gauge, whose mean is taken; 0 = a point */
    double normal[3]; /*    pressure: across the gauge; in 2D it is a line */
    selkie_axis axis; /*    front */
    int direction;    /*    front: +1 or -1 along the axis */
    const char *on;   /*    force, torque: name of an obstacle or body; "walls" or "" = the walls of the domain */
    double min[3];    /* m  level: corners of the area; what they say along up does not matter, and along an axis where
                         both */
    double max[3];    /* m  are 0 it is as wide as the domain */
} selkie_probe_def;

typedef enum selkie_attribute_names {
    SELKIE_NAMES_SELKIE,  /* velocity, id */
    SELKIE_NAMES_HOUDINI, /* v, pscale, id */
    SELKIE_NAMES_BLENDER  /* velocity, id; separate x y z components */
} selkie_attribute_names;

typedef enum selkie_up_axis {
    SELKIE_UP_SCENE, /* as the scene has it */
    SELKIE_UP_Y,
    SELKIE_UP_Z /* Blender */
} selkie_up_axis;

typedef enum selkie_surface_format {
    SELKIE_SURFACE_FORMAT_NONE,
    SELKIE_SURFACE_FORMAT_PLY,
    SELKIE_SURFACE_FORMAT_OBJ
} selkie_surface_format;

typedef struct selkie_output_def {
    int ply;   /*   particles as binary PLY, 0 or 1 */
    int vtp;   /*   particles as VTK XML */
    int skp;   /*   particles in compact files */
    int every; /*   write each n-th frame */
    selkie_attribute_names names;
    selkie_up_axis up;
    selkie_surface_format surface;
    double checkpoint_interval; /* s of wall time between checkpoints; 0 = only at the end */
    int checkpoint_keep;        /*   how many to keep */
} selkie_output_def;

typedef enum selkie_picture_style {
    SELKIE_STYLE_SURFACE,
    SELKIE_STYLE_PARTICLES,
    /* 2D */
    SELKIE_STYLE_DYE,         /* every point has the colour of the nearest particle: sharp edges */
    SELKIE_STYLE_STREAMLINES, /* curves along the velocity */
    SELKIE_STYLE_LIC          /* noise smeared along the velocity: line integral convolution */
} selkie_picture_style;

typedef enum selkie_picture_color {
    SELKIE_COLOR_WATER,
    SELKIE_COLOR_SPEED,
    SELKIE_COLOR_DENSITY,
    SELKIE_COLOR_ROLE,
    SELKIE_COLOR_MATERIAL,
    SELKIE_COLOR_TEMPERATURE,
    SELKIE_COLOR_STRESS,
    SELKIE_COLOR_PLASTIC_STRAIN
} selkie_picture_color;

/* What the liquid looks like in 3D pictures. */
typedef enum selkie_liquid_look {
    SELKIE_LIQUID_LOOK_TINTED,
    SELKIE_LIQUID_LOOK_WATER,
    SELKIE_LIQUID_LOOK_MILK,
    SELKIE_LIQUID_LOOK_HONEY,
    SELKIE_LIQUID_LOOK_OIL
} selkie_liquid_look;

typedef enum selkie_sky { SELKIE_SKY_STUDIO, SELKIE_SKY_DAY, SELKIE_SKY_EVENING, SELKIE_SKY_OVERCAST } selkie_sky;

/* The camera at a time; between two keys it moves smoothly. */
typedef struct selkie_camera_key {
    double time;          /* s   */
    double eye[3];        /* m   */
    double target[3];     /* m   */
    double field_of_view; /* deg, vertical */
} selkie_camera_key;

typedef struct selkie_render_def {
    int width, height; /* pixels; height 0 = follows the domain */
    selkie_picture_style style;
    selkie_picture_color color;
    double eye[3];        /* m   eye == target: framed automatically */
    double target[3];     /* m   */
    double field_of_view; /* deg, vertical */
    selkie_liquid_look liquid;
    selkie_sky sky;
    const char *environment; /*     picture of the surroundings, equirectangular; "" = the sky alone */
    double shutter;          /*     exposure over the time between frames; 0 = no motion blur */
    const char *cut;         /*     plane of a cut-away view, as "z>0.4"; "" = none */
    int camera_count;        /*     keys replace eye, target and field_of_view */
    const selkie_camera_key *camera;
} selkie_render_def;

/* The mesh of the liquid's surface. */
typedef struct selkie_mesh_def {
    double resolution;      /* voxels a cell along an axis */
    double particle_radius; /* particle spacings; of the drop of a lone particle */
    double smoothing;       /* 0 = none, 1 = calm water is flat, 2 = strongest */
    double decimation;      /* voxels; how far flat parts may move to have fewer triangles in files, 0 = not at all */
    int by_material;        /* a mesh for each material, in a folder of its name */
} selkie_mesh_def;

/* Spray, foam and bubbles. */
typedef struct selkie_whitewater_def {
    int enabled;
    double rate;        /* 1/s  made by a particle of liquid with all potentials at 1 */
    double trapped_air; /*      weight of the potential */
    double wave_crest;  /*      weight of the potential */
    double speed_min;   /* m/s  below it nothing is made; 0 = from gravity and domain */
    double speed_max;   /* m/s  above it the potentials are full; 0 = from gravity and domain */
    double lifetime;    /* s    of foam */
    double buoyancy;    /*      of bubbles, over gravity */
    double drag;        /* 1/s  of bubbles against the liquid */
    int most;           /*      particles at a time */
} selkie_whitewater_def;

#endif
