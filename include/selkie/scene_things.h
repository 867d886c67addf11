/* What is in a scene: liquids, sources, obstacles, bodies, forces, objects: a part of selkie/scene.h, which says how
 * scenes are made. */
#ifndef SELKIE_SCENE_THINGS_H
#define SELKIE_SCENE_THINGS_H

#include <selkie/scene_domain.h>

/* A velocity field that a liquid starts with, beside its uniform velocity, turning and stretching. */
typedef enum selkie_flow_kind {
    SELKIE_FLOW_NONE,
    SELKIE_FLOW_TAYLOR_GREEN, /* speed, wavelength: vortices around the liquid's center */
    SELKIE_FLOW_FILE          /* file: a table of velocities on a grid of points */
} selkie_flow_kind;

typedef struct selkie_flow_def {
    selkie_flow_kind kind;
    double speed;      /* m/s  taylor_green: the largest */
    double wavelength; /* m    taylor_green: two vortices along each axis */
    const char *file;  /*      file: CSV with the columns x y z u v w (2D: x y u v), in m and m/s */
} selkie_flow_def;

typedef struct selkie_liquid_def {
    const char *name;
    selkie_shape shape;
    const char *material; /*    of the scene's materials; "" = the only one */
    double density;       /* kg/m3 where the scene has no table of materials; one value for all liquids of a scene */
    double velocity[3];   /* m/s   u = velocity + angular_velocity x (x - center) + velocity_gradient (x - center) */
    double angular_velocity[3];  /* rad/s in 2D the third component turns */
    double velocity_gradient[9]; /* 1/s   row-major du_i/dx_j */
    double center[3];            /* m     of angular_velocity, velocity_gradient and flow */
    selkie_flow_def flow;        /*       added to these */
    int count;                   /*       exactly so many particles, at random places of the shape; 0 = by cells */
    int fill_obstacles;          /*       also where obstacles are */
    double temperature;          /* K     at the start */
} selkie_liquid_def;

typedef struct selkie_source_def {
    const char *name;
    selkie_shape shape;
    const char *material; /*    of the scene's materials; "" = the only one */
    double velocity[3];   /* m/s imposed on the liquid inside; 0 without a flow_rate: the shape is kept filled */
    double flow_rate;     /* m3/s (2D: m2/s) in place of the velocity's length; 0 = from the velocity */
    double start, end;    /* s   end < 0: never ends */
    double temperature;   /* K   of the liquid that it emits */
} selkie_source_def;

typedef struct selkie_drain_def {
    const char *name;
    selkie_shape shape;
    double flow_rate;  /* m3/s (2D: m2/s) that it removes at most; 0 = all liquid inside */
    double start, end; /* s  end < 0: never ends */
} selkie_drain_def;

/* What a solid looks like in 3D pictures. */
typedef enum selkie_look {
    SELKIE_LOOK_PAINTED,
    SELKIE_LOOK_STONE,
    SELKIE_LOOK_RUBBER,
    SELKIE_LOOK_METAL,
    SELKIE_LOOK_ICE,
    SELKIE_LOOK_GLASS
} selkie_look;

typedef struct selkie_obstacle_def {
    const char *name;
    selkie_shape shape;
    selkie_wall surface;        /*       free slip or no slip */
    double slip_length;         /* m     of a no-slip surface, Navier's; 0 = liquid sticks */
    double liquid_friction;     /*       of a free-slip surface, Coulomb's, against liquid */
    double velocity[3];         /* m/s   constant motion; 0 = static */
    double angular_velocity[3]; /* rad/s about center, which moves along */
    double center[3];           /* m     */
    int keyframe_count;         /*       keyframes replace the constant motion */
    const selkie_keyframe *keyframes;
    int oscillation_count; /*       added to these motions */
    const selkie_oscillation *oscillations;
    const char *motion_file; /*       CSV of keyframes, in place of `keyframes` */
    double temperature;      /* K     0 = insulated */
    double heat_exchange;    /* W/(m2 K) between it and the liquid; 0 = perfect contact */
    selkie_look look;        /*       in pictures */
} selkie_obstacle_def;

typedef struct selkie_body_def {
    const char *name;
    selkie_shape shape;         /*       where it is at the start */
    double density;             /* kg/m3 */
    double mass;                /* kg    0 = from the density; in 2D for a depth of one metre */
    selkie_wall surface;        /*       free slip or no slip */
    double slip_length;         /* m     of a no-slip surface, Navier's; 0 = liquid sticks */
    double liquid_friction;     /*       of a free-slip surface, Coulomb's, against liquid */
    double velocity[3];         /* m/s   of the centre of mass, at the start */
    double angular_velocity[3]; /* rad/s at the start */
    double move[3];             /*       0 = held along this axis, else free */
    double turn[3];             /*       0 = does not turn about this axis, else free */
    double friction;            /*       Coulomb's, against walls, obstacles and (geometric mean) other bodies */
    double restitution;         /*       share of the speed that a bounce gives back */
    const char *material;       /*       rigid or soft: the body is made of its particles; "" = a rigid shape */
    double temperature;         /* K     of its particles at the start, where heat is simulated; default 293.15 */
} selkie_body_def;

typedef enum selkie_force_kind {
    SELKIE_FORCE_EXPLOSION, /* center, radius, speed, time, falloff: a push away from a point, once */
    SELKIE_FORCE_VORTEX,    /* point, axis, radius, spin, pull, lift, falloff, start, end */
    SELKIE_FORCE_JET,       /* from, to, radius, strength, falloff, start, end: a push along a cylinder */
    SELKIE_FORCE_UNIFORM,   /* acceleration, start, end: the same everywhere */
    SELKIE_FORCE_SPONGE     /* side, width, rate, start, end: slows liquid down near a side, so that waves end there */
} selkie_force_kind;

typedef enum selkie_falloff { /* q = distance from the centre or axis over the radius; nothing from q = 1 on */
                              SELKIE_FALLOFF_CONSTANT, /* 1 */
                              SELKIE_FALLOFF_LINEAR,   /* 1 - q */
                              SELKIE_FALLOFF_SMOOTH    /* (1 - q^2)^2 */
} selkie_falloff;

typedef enum selkie_side {
    SELKIE_SIDE_X_MIN,
    SELKIE_SIDE_X_MAX,
    SELKIE_SIDE_Y_MIN,
    SELKIE_SIDE_Y_MAX,
    SELKIE_SIDE_Z_MIN,
    SELKIE_SIDE_Z_MAX
} selkie_side;

typedef struct selkie_force_def {
    const char *name;
    selkie_force_kind kind;
    double center[3];       /* m     explosion */
    double point[3];        /* m     vortex: a point of its axis */
    double axis[3];         /*       vortex: turns counterclockwise seen against it; z in 2D */
    double from[3], to[3];  /* m     jet: ends of the cylinder; it pushes from the first to the second */
    double radius;          /* m     explosion, vortex, jet */
    selkie_falloff falloff; /*       explosion, vortex, jet: w(r / radius) */
    double speed;           /* m/s   explosion: w times this away from the centre */
    double time;            /* s     explosion */
    double spin;            /* rad/s2 vortex: w times this is the angular acceleration */
    double pull;            /* m/s2  vortex: r / radius times w times this is the acceleration towards the axis */
    double lift;            /* m/s2  vortex: w times this is the acceleration along the axis, 3D only */
    double strength;        /* m/s2  jet: w times this is the acceleration along it */
    double acceleration[3]; /* m/s2  uniform */
    selkie_side side;       /*       sponge */
    double width;           /* m     sponge */
    double rate;            /* 1/s   sponge: damping at the side; 0 = 2.5 sqrt(gravity / width) */
    double start, end;      /* s     vortex, jet, uniform, sponge; end < 0: never ends */
} selkie_force_def;

/* Liquid that becomes a solid, moves and becomes liquid again: discretization sph, Cornelis et al. 2015. */
typedef enum selkie_object_fill {
    SELKIE_FILL_VOLUME, /* particles everywhere inside */
    SELKIE_FILL_SURFACE /* a shell below the surface */
} selkie_object_fill;

typedef enum selkie_easing { /* q = distance to the target over easing_distance, at most 1; the speed is beta times */
                             SELKIE_EASING_NONE,   /* 1 */
                             SELKIE_EASING_LINEAR, /* 0.1 + 0.9 q */
                             SELKIE_EASING_SMOOTH  /* 0.1 + 0.9 (3 q^2 - 2 q^3) */
} selkie_easing;

typedef enum selkie_release {
    SELKIE_RELEASE_INSTANT,
    SELKIE_RELEASE_SWEEP, /* one end first, along release_direction */
    SELKIE_RELEASE_RANDOM /* particle by particle */
} selkie_release;

typedef struct selkie_timeline_entry {
    double assemble; /* s  when liquid begins to gather */
    double release;  /* s  when it becomes liquid again; < 0: never */
    selkie_release release_mode;
    double release_duration;     /* s  sweep, random */
    double release_direction[3]; /*    sweep: the end that lies against it goes first; in the object's own frame */
} selkie_timeline_entry;

typedef struct selkie_object_def {
    const char *name;
    selkie_shape shape;
    selkie_object_fill fill;
    double thickness; /* m   surface: of the shell, rounded to whole particles; 0 = one */
    double spacing;   /*     of the samples, in particle spacings; below 1 they are too dense */
    int start_solid;  /*     is there from the start, beside the liquids */
    double alpha;     /*     share of the animation in a candidate's velocity (Eq. 5) */
    double beta;      /* m/s speed at which candidates are led (Eq. 4) */
    selkie_easing easing;
    double easing_distance; /* m   0 = four particle spacings */
    double arrival;         /*     a candidate has arrived at this distance, in particle spacings */
    int region_count;       /*     regions that candidates come from; none = everywhere */
    const selkie_shape *regions;
    double center[3]; /* m   */
    int keyframe_count;
    const selkie_keyframe *keyframes;
    int timeline_count;
    const selkie_timeline_entry *timeline;
} selkie_object_def;

/* A hinge between two bodies, or between a body and a fixed place, with a motor if it swings or spins. */
typedef struct selkie_joint_def {
    const char *name;
    const char *first, *second; /*     names of bodies; second "" = fixed in space */
    double at[3];               /* m   the hinge at the start */
    double swing;  /* deg amplitude of the second body's angle against the first (of the first, if fixed) */
    double period; /* s   of the swing */
    double phase;  /* deg */
    double spin;   /* rad/s constant speed of the motor; 0 = none */
    double torque; /* N m largest of the motor; 0 = as much as it takes */
} selkie_joint_def;

#endif
