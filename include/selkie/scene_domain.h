/* Shapes, the domain, its sides, time and the motion of the frame: a part of selkie/scene.h, which says how scenes are
 * made. */
#ifndef SELKIE_SCENE_DOMAIN_H
#define SELKIE_SCENE_DOMAIN_H

typedef enum selkie_shape_kind {
    SELKIE_SHAPE_BOX,         /* min, max */
    SELKIE_SHAPE_SPHERE,      /* center, radius; a disc in 2D */
    SELKIE_SHAPE_CYLINDER,    /* from, to (ends of the axis), radius; a bar in 2D */
    SELKIE_SHAPE_HALF_SPACE,  /* point, normal; inside is the side away from the normal */
    SELKIE_SHAPE_WAVE,        /* below level + amplitude cos(wave_number . x + phase) */
    SELKIE_SHAPE_MESH,        /* file, then scale, rotate, translate */
    SELKIE_SHAPE_UNION,       /* children */
    SELKIE_SHAPE_HEIGHTFIELD, /* file, then scale, translate; the inside is below it */
    SELKIE_SHAPE_POLYGON,     /* points; 2D */
    SELKIE_SHAPE_PICTURE      /* file, min, max, threshold; 2D: what is dark in a picture */
} selkie_shape_kind;

/* A corner of a polygon. */
typedef struct selkie_point {
    double at[3]; /* m */
} selkie_point;

typedef struct selkie_shape selkie_shape;
struct selkie_shape {
    selkie_shape_kind kind;
    double min[3], max[3]; /* m    box; picture: the rectangle that it fills */
    double center[3];      /* m    sphere */
    double radius;         /* m    sphere, cylinder */
    double from[3], to[3]; /* m    cylinder */
    double point[3];       /* m    half space */
    double normal[3];      /*      half space; need not be of unit length */
    double level;          /* m    wave: height along the up direction (against gravity; y if none) */
    double amplitude;      /* m    wave */
    double wave_number[3]; /* 1/m  wave: angular, 2 pi / wavelength */
    double phase;          /* deg  wave */
    const char *file;      /*      mesh: OBJ, STL, PLY, glTF; height field: ESRI ASCII grid; picture: PNG, PGM, PPM */
    double scale[3];       /*      mesh, height field */
    double rotate[3];      /* deg  mesh: about x, then y, then z */
    double translate[3];   /* m    mesh, height field */
    int child_count;
    const selkie_shape *children; /*   union */
    int point_count;
    const selkie_point *points; /*     polygon: its corners, either way around */
    double threshold;           /*     picture: brightness, 0 to 1, below which a pixel is inside */
};

typedef enum selkie_wall { SELKIE_WALL_FREE_SLIP, SELKIE_WALL_NO_SLIP, SELKIE_WALL_OPEN } selkie_wall;

/* Axes, as a set of bits. */
typedef enum selkie_axes {
    SELKIE_AXES_NONE = 0,
    SELKIE_AXES_X = 1,
    SELKIE_AXES_Y = 2,
    SELKIE_AXES_XY = 3,
    SELKIE_AXES_Z = 4,
    SELKIE_AXES_XZ = 5,
    SELKIE_AXES_YZ = 6,
    SELKIE_AXES_XYZ = 7
} selkie_axes;

typedef struct selkie_domain_def {
    int dimension;             /*    2 or 3 */
    double origin[3];          /* m  lower corner */
    double size[3];            /* m  rounded up to whole cells; z unused in 2D */
    double cell_size;          /* m  or 0: taken from resolution */
    int resolution;            /*    cells along the longest side, used where cell_size is 0 */
    selkie_wall walls[6];      /*    x_min x_max y_min y_max z_min z_max */
    selkie_axes periodic;      /*    axes whose two sides are joined; their walls are not used */
    double slip_length[6];     /* m  of each no-slip side, Navier's; 0 = liquid sticks */
    double liquid_friction[6]; /*    of each free-slip side, Coulomb's, against liquid */
    double temperature[6];     /* K  of each closed side; 0 = insulated */
    double heat_exchange[6];   /* W/(m2 K) between a side of given temperature and the liquid; 0 = perfect contact */
} selkie_domain_def;

typedef struct selkie_time_def {
    double end;        /* s  */
    double fps;        /* 1/s frames per second */
    double step;       /* s  fixed step, 0 = by the CFL number */
    double cfl;        /*    cells (sph: particle spacings) that the fastest particle crosses in a step;
                             0 = 1.75 (flip), 2 (apic, pic), 1 (unilateral, or a full domain) or 0.4 (sph) */
    double min_step;   /* s  lower bound of steps by the CFL number, except before a frame */
    double max_step;   /* s  0 = 1 / fps */
    double reflection; /*  part of the pressure's net change of velocity that a step adds once more; 0 = none,
                             below 0 = 1 in a full domain, 0.8 elsewhere */
} selkie_time_def;

typedef struct selkie_keyframe {
    double time;         /* s   */
    double translate[3]; /* m   */
    double rotate[3];    /* deg about x, then y, then z, about the obstacle's center */
} selkie_keyframe;

/* A harmonic motion: amplitude x sin(2 pi time / period + phase), faded in smoothly over the time `ramp`. */
typedef struct selkie_oscillation {
    double translate[3]; /* m    amplitude */
    double rotate[3];    /* deg  amplitude; about x, then y, then z, through the center */
    double period;       /* s    */
    double phase;        /* deg  */
    double ramp;         /* s    0 = at full amplitude from the start */
} selkie_oscillation;

/* The motion of the domain: the scene is what moves along with it sees. */
typedef struct selkie_frame_def {
    double center[3];   /* m  point of the domain that it turns about */
    int keyframe_count; /*    joined by a smooth curve; at rest before the first and after the last */
    const selkie_keyframe *keyframes;
    int oscillation_count; /* added to the keyframes */
    const selkie_oscillation *oscillations;
    const char *motion_file; /* CSV of keyframes, in place of `keyframes` */
} selkie_frame_def;

typedef struct selkie_gravity_key {
    double time;       /* s    */
    double gravity[3]; /* m/s2 */
} selkie_gravity_key;

#endif
