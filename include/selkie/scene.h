/* Scene definitions: the input of a simulation, as plain structs.
 *
 * Fill one with selkie_scene_defaults(), change what you need, check it with
 * selkie_scene_check() and make a world of it (selkie/world.h), or read one
 * from a JSON file with selkie_scene_load(). Metres, seconds, kilograms
 * throughout; angles in degrees in files and here, because people write them.
 *
 * Arrays and strings belong to the caller. A scene from selkie_scene_load()
 * owns what it points to and is released with selkie_scene_free().
 */
#ifndef SELKIE_SCENE_H
#define SELKIE_SCENE_H

#include <stdint.h>
#include <selkie/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum selkie_shape_kind {
    SELKIE_SHAPE_BOX,        /* min, max */
    SELKIE_SHAPE_SPHERE,     /* center, radius; a disc in 2D */
    SELKIE_SHAPE_CYLINDER,   /* from, to (ends of the axis), radius; a bar in 2D */
    SELKIE_SHAPE_HALF_SPACE, /* point, normal; inside is the side away from the normal */
    SELKIE_SHAPE_WAVE,       /* below level + amplitude cos(wave_number . x + phase) */
    SELKIE_SHAPE_MESH,       /* file, then scale, rotate, translate */
    SELKIE_SHAPE_UNION,      /* children */
    SELKIE_SHAPE_HEIGHTFIELD /* file, then scale, translate; the inside is below it */
} selkie_shape_kind;

typedef struct selkie_shape selkie_shape;
struct selkie_shape {
    selkie_shape_kind kind;
    double min[3], max[3]; /* m    box */
    double center[3];      /* m    sphere */
    double radius;         /* m    sphere, cylinder */
    double from[3], to[3]; /* m    cylinder */
    double point[3];       /* m    half space */
    double normal[3];      /*      half space; need not be of unit length */
    double level;          /* m    wave: height along the up direction (against gravity; y if none) */
    double amplitude;      /* m    wave */
    double wave_number[3]; /* 1/m  wave: angular, 2 pi / wavelength */
    double phase;          /* deg  wave */
    const char *file;      /*      mesh: OBJ, STL, PLY, glTF; height field: ESRI ASCII grid */
    double scale[3];       /*      mesh, height field */
    double rotate[3];      /* deg  mesh: about x, then y, then z */
    double translate[3];   /* m    mesh, height field */
    int child_count;
    const selkie_shape *children; /*   union */
};

typedef enum selkie_wall { SELKIE_WALL_FREE_SLIP, SELKIE_WALL_NO_SLIP, SELKIE_WALL_OPEN } selkie_wall;

typedef struct selkie_domain_def {
    int dimension;             /*    2 or 3 */
    double origin[3];          /* m  lower corner */
    double size[3];            /* m  rounded up to whole cells; z unused in 2D */
    double cell_size;          /* m  or 0: taken from resolution */
    int resolution;            /*    cells along the longest side, used where cell_size is 0 */
    selkie_wall walls[6];      /*    x_min x_max y_min y_max z_min z_max */
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
                             0 = 3, or 6 where volume is idp, or 0.4 for sph */
    double min_step;   /* s  lower bound of steps by the CFL number, except before a frame */
    double max_step;   /* s  0 = 1 / fps */
    double reflection; /*  part of the pressure's net change of velocity that a step adds once more; 0 = none */
} selkie_time_def;

typedef enum selkie_arrangement {
    SELKIE_ARRANGEMENT_JITTERED, /* one in each sub-cell, at random */
    SELKIE_ARRANGEMENT_LATTICE,  /* in the centres of the sub-cells */
    SELKIE_ARRANGEMENT_AUTO      /* lattice for sph, jittered for the others */
} selkie_arrangement;

typedef struct selkie_particles_def {
    int per_cell; /* 0 = 8 in 3D; in 2D 9, or 4 for sph */
    selkie_arrangement arrangement;
    double jitter; /* jittered ones: part of a sub-cell that a particle may be in, around its centre */
} selkie_particles_def;

typedef enum selkie_material_kind {
    SELKIE_MATERIAL_LIQUID,
    SELKIE_MATERIAL_RIGID,         /* of bodies: particles that keep their shape */
    SELKIE_MATERIAL_SOFT,          /* of bodies: particles that return to their shape, see selkie_soft_def */
    SELKIE_MATERIAL_ELASTOPLASTIC, /* discretization mpm */
    SELKIE_MATERIAL_GRANULAR       /* refused so far */
} selkie_material_kind;

/* A point of a viscosity that depends on temperature. */
typedef struct selkie_viscosity_point {
    double temperature; /* K    */
    double viscosity;   /* m2/s */
} selkie_viscosity_point;

/* The goal that shape matching (Mueller et al. 2005) gives each particle of a soft body. */
typedef enum selkie_soft_mode {
    SELKIE_SOFT_RIGID,    /* the rest shape, turned */
    SELKIE_SOFT_LINEAR,   /* a mix with its best linear map: stretch and shear */
    SELKIE_SOFT_QUADRATIC /* a mix with its best quadratic map: twist and bending too */
} selkie_soft_mode;

typedef struct selkie_soft_def {
    selkie_soft_mode mode;
    double stiffness;   /* rad/s  frequency at which a deviation from the goal swings */
    double deformation; /*        share of the linear or quadratic map in the goal, 0 to 1 */
    double damping;     /*        of deformations, over the critical damping */
    double yield;       /*        stretch beyond which the rest shape flows; 0 = never */
    double creep;       /* 1/s    rate of that flow */
    double max_flow;    /*        largest change of the rest shape by flow */
    int clusters;       /*        overlapping parts along the longest side, each with a goal of its own; 1 = the body */
} selkie_soft_def;

/* Energy of an elastic solid over its principal stretches s. In 2D the third stretch is 1 (plane strain). */
typedef enum selkie_elastic_law {
    SELKIE_ELASTIC_HENCKY,    /* quadratic in log s (St. Venant-Kirchhoff with Hencky's strain) */
    SELKIE_ELASTIC_COROTATED, /* quadratic in s - 1 and in the change of volume (fixed corotated) */
    SELKIE_ELASTIC_LINEAR,    /* quadratic in s - 1 (Gerszewski, Eq. 4.9) */
    SELKIE_ELASTIC_SQUARED    /* quadratic in (s^2 - 1)/2: stiffer the farther it stretches */
} selkie_elastic_law;

typedef enum selkie_plasticity {
    SELKIE_PLASTICITY_NONE,
    SELKIE_PLASTICITY_VON_MISES,     /* metal, clay, dough: flows where shear stress is above a yield stress */
    SELKIE_PLASTICITY_DRUCKER_PRAGER /* sand: shear stress up to friction times pressure, no tension */
} selkie_plasticity;

typedef struct selkie_elastoplastic_def {
    selkie_elastic_law law;
    double young;   /* Pa   modulus of elasticity */
    double poisson; /*      ratio, below 0.5 */
    selkie_plasticity plasticity;
    double yield;          /* Pa   von_mises: equivalent stress from which on it flows */
    double hardening;      /* Pa   von_mises: growth of the yield stress with the plastic strain */
    double flow_time;      /* s    von_mises: time in which stress above the yield stress decays; 0 = at once */
    double thickening;     /* Pa   von_mises: flow_time is longer by stress / this, as of cornstarch; 0 = constant */
    int keeps_volume;      /*      von_mises: 0 = flow also relaxes changes of volume */
    double friction_angle; /* deg  drucker_prager */
    double cohesion;       /* Pa   drucker_prager: tension that it stands */
    double tear;           /*      stretch - 1 at which it tears and takes no more tension; 0 = never */
} selkie_elastoplastic_def;

/* A row of the scene's table of materials. A particle carries the row's index as its attribute "material", where the
 * table has more than one row. 0 = not given, but for the density. */
typedef struct selkie_material_def {
    const char *name; /*          unique; liquids and sources name their material by it */
    selkie_material_kind kind;
    double density;           /* kg/m3 */
    double viscosity;         /* m2/s     kinematic; for sph the same for all materials of a scene so far */
    double dynamic_viscosity; /* Pa s     in its place: viscosity times density */
    double surface_tension;   /* N/m      against air, on grids; none between two liquids */
    double heat_capacity;     /* J/(kg K) of the liquid; heat is simulated where it is given */
    double conductivity;      /* W/(m K)  of the liquid */
    double melting_point;     /* K        0 = never solid */
    double latent_heat;       /* J/kg     of melting */
    double solid_heat_capacity, solid_conductivity; /* J/(kg K), W/(m K)  of the solid; 0 = as the liquid */
    double solid_density;                           /* kg/m3  of the solid: it floats if lighter; 0 = as the liquid */
    double thermal_expansion;                       /* 1/K    no effect yet */
    double viscosity_temperature; /* K  at which `viscosity` holds, where it depends on temperature; 0 = constant */
    double viscosity_activation;  /* K  B of viscosity ~ exp(B / (T - C)) */
    double viscosity_offset;      /* K  C */
    int viscosity_point_count;
    const selkie_viscosity_point *viscosity_table; /* in place of the law, log-linear between the points */
    selkie_soft_def soft;                          /* of kind soft */
    selkie_elastoplastic_def elastoplastic;        /* of kind elastoplastic */
} selkie_material_def;

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

typedef enum selkie_discretization {
    SELKIE_DISCRETIZATION_GRID,    /* particles carry the liquid, a staggered grid its pressure */
    SELKIE_DISCRETIZATION_SPH,     /* smoothed particle hydrodynamics: no grid, neighbours are particles */
    SELKIE_DISCRETIZATION_REDUCED, /* a sum of modes fills the box; particles are tracers (Gerszewski, chapter 5) */
    SELKIE_DISCRETIZATION_MPM      /* elastoplastic points, whose forces act on a grid: the material point method */
} selkie_discretization;

typedef enum selkie_transfer { /* of velocity between particles and grid; discretization grid */
                               SELKIE_TRANSFER_PIC,
                               SELKIE_TRANSFER_FLIP,
                               SELKIE_TRANSFER_APIC
} selkie_transfer;

/* Discretization and transfer in one word, as older programs and files have it: see selkie_scene_set_method(). */
typedef enum selkie_method {
    SELKIE_METHOD_PIC,
    SELKIE_METHOD_FLIP,
    SELKIE_METHOD_APIC,
    SELKIE_METHOD_SPH
} selkie_method;

typedef enum selkie_volume {
    SELKIE_VOLUME_NONE,
    SELKIE_VOLUME_IDP,     /* implicit density projection, Kugelstadt et al. 2019 */
    SELKIE_VOLUME_EQ8,     /* the density error in the pressure's right side (their Eq. 8) */
    SELKIE_VOLUME_LOSASSO, /* the same, averaged over a time, Losasso et al. 2008 */
    SELKIE_VOLUME_ANDO,    /* weak springs between particles, Ando and Tsuruno 2011 */
    SELKIE_VOLUME_SATO,    /* distance constraints between particles, Sato et al. 2018 */
    SELKIE_VOLUME_AUTO     /* idp on grids with bilateral incompressibility, else none */
} selkie_volume;

typedef enum selkie_idp_solids {
    SELKIE_IDP_PUSH_OUT, /* particles inside solids are pushed out by the projection (Eqs. 13-18) */
    SELKIE_IDP_NEUMANN,  /* solids let nothing through, and that is all */
    SELKIE_IDP_PROJECT   /* particles are set onto the surface, as plain FLIP does */
} selkie_idp_solids;

typedef struct selkie_idp_def {
    double tolerance; /*   of the density solve; 0 = pressure.tolerance */
    selkie_idp_solids solids;
    int redistribute;   /*   spread the particles of cells above density_max */
    double density_min; /*   bounds of density over rest density on the right side */
    double density_max;
    int passes;      /*   corrections in a step, at most: more than one only where liquid is badly squeezed */
    int settle;      /*   corrections before the first step */
    double evenness; /*   weight of the number of particles in a cell beside the density of the kernel */
} selkie_idp_def;

typedef struct selkie_losasso_def {
    double averaging_time; /* s */
} selkie_losasso_def;

typedef struct selkie_ando_def {
    double stiffness; /* 1/s  how fast an overlap is pushed apart */
    double radius;    /*      of the spring, in particle spacings */
} selkie_ando_def;

typedef struct selkie_sato_def {
    double radius; /*  least distance, in particle spacings */
    int iterations;
} selkie_sato_def;

typedef enum selkie_sph_solver {
    SELKIE_SPH_ACCELERATED, /* projected gradient with momentum */
    SELKIE_SPH_IISPH        /* relaxed Jacobi, Ihmsen et al. 2014 */
} selkie_sph_solver;

typedef enum selkie_sph_kernel {
    SELKIE_SPH_CUBIC,   /* cubic spline, Monaghan 1992 */
    SELKIE_SPH_WENDLAND /* Wendland's C2 function */
} selkie_sph_kernel;

typedef enum selkie_sph_tension {
    SELKIE_TENSION_NONE,
    SELKIE_TENSION_BECKER, /* Becker and Teschner 2007 */
    SELKIE_TENSION_AKINCI  /* Akinci et al. 2013 */
} selkie_sph_tension;

typedef struct selkie_sph_def {
    selkie_sph_solver solver;
    selkie_sph_kernel kernel;
    double density_error;    /*     mean of |density / rest density - 1| that a solve may leave */
    double divergence_error; /*     accelerated: mean |divergence| that a solve may leave, over natural speed / longest
                                side */
    int min_iterations;
    int max_iterations; /*     a solve that needs more ends there; see the statistics */
    double xsph;        /*     share of the neighbours' mean velocity that a particle takes up in a step */
    selkie_sph_tension surface_tension;
    double tension; /*     coefficient: kappa of becker, 1/s2; gamma of akinci, m4/(kg s2) */
} selkie_sph_def;

typedef enum selkie_reduced_integrator {
    SELKIE_REDUCED_RK4,        /* fourth order, keeps energy and enstrophy */
    SELKIE_REDUCED_EXPONENTIAL /* Eq. 5.9 of the source: first order, to compare with */
} selkie_reduced_integrator;

typedef enum selkie_periodic {
    SELKIE_PERIODIC_NONE,
    SELKIE_PERIODIC_X,
    SELKIE_PERIODIC_Y,
    SELKIE_PERIODIC_BOTH
} selkie_periodic;

/* A stroke of a drawn mode: velocity along a line, that falls off smoothly across it. */
typedef struct selkie_stroke_def {
    double from[3], to[3]; /* m    */
    double radius;         /* m    */
    double speed;          /* m/s  on the line; the ratio of strokes matters */
} selkie_stroke_def;

typedef struct selkie_drawn_def {
    const char *name;
    int stroke_count;
    const selkie_stroke_def *strokes;
    double time;   /* s    the drawing moves for so long before it is taken */
    int snapshots; /*      fields that are taken at even times of that */
} selkie_drawn_def;

typedef struct selkie_excite_def {
    const char *mode;  /*      name of a drawn mode */
    double strength;   /* m/s2 acceleration where the drawing is fastest */
    double start, end; /* s    end < 0: never ends */
} selkie_excite_def;

typedef struct selkie_reduced_def {
    int modes; /*      eigenfunctions with the smallest eigenvalues */
    selkie_reduced_integrator integrator;
    selkie_periodic periodic; /*      axes along which the flow repeats */
    double mean_flow[3];      /* m/s  at the start, along periodic axes */
    int drawn_count;
    const selkie_drawn_def *drawn; /*      drawn modes, beside the eigenfunctions */
    double cut;                    /*      drawn fields with a singular value below this part of the largest go */
    int excite_count;
    const selkie_excite_def *excite;
    double panel_length; /* m    of the vortex panels of bodies, about; 0 = a cell */
    double feedback;     /*      part of a body's vortex sheet that stays in the liquid while it passes the body once */
} selkie_reduced_def;

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

/* The form of the numerics: `tuned` is vectorised, `plain` is the simple form that it is tested against, `cuda` runs on
 * a GPU, `auto` takes the GPU if there is one that can run the scene and is `tuned` otherwise. */
typedef enum selkie_backend {
    SELKIE_BACKEND_TUNED,
    SELKIE_BACKEND_PLAIN,
    SELKIE_BACKEND_CUDA,
    SELKIE_BACKEND_AUTO
} selkie_backend;

typedef enum selkie_incompressibility {
    SELKIE_INCOMPRESSIBILITY_BILATERAL,
    SELKIE_INCOMPRESSIBILITY_UNILATERAL /* Gerszewski's dissertation, chapter 3 */
} selkie_incompressibility;

typedef enum selkie_unilateral_solver {
    SELKIE_UNILATERAL_ACTIVE_SET, /* over the shared multigrid */
    SELKIE_UNILATERAL_MPRGP       /* Dostal's, with incomplete Cholesky: the source's, for reference */
} selkie_unilateral_solver;

typedef enum selkie_unilateral_prediction {
    SELKIE_PREDICTION_PARTICLES, /* the density of the particles where they would be without pressure */
    SELKIE_PREDICTION_FLUX /* density minus step times divergence of face density x velocity, as the source has it */
} selkie_unilateral_prediction;

typedef enum selkie_unilateral_flight {
    SELKIE_FLIGHT_OWN, /* without pressure a particle keeps its own velocity */
    SELKIE_FLIGHT_GRID /* it follows the grid's velocity there too, as in the source */
} selkie_unilateral_flight;

typedef struct selkie_unilateral_def {
    selkie_unilateral_solver solver;
    double tolerance; /*       of the complementarity, over the missing free space */
    int max_iterations;
    int density_correction;  /*       positions are corrected where the density is above what fits */
    int density_passes;      /*       at most so many corrections in a step, more than one where far too dense */
    int suction;             /*       pressure may be negative away from the surface */
    double suction_depth;    /* cells from the surface from which on it may */
    double suction_pressure; /* Pa    how far below zero */
    double air_threshold;    /*       cells with less of the mass that fits are air */
    selkie_unilateral_prediction prediction;
    selkie_unilateral_flight flight;
    int clip_bisection; /*       particles that stepping along the gradient leaves in an obstacle are brought back on
                           their path */
} selkie_unilateral_def;

typedef enum selkie_surface_condition {
    SELKIE_SURFACE_GHOST_FLUID, /* second order: pressure zero at the sub-cell surface */
    SELKIE_SURFACE_VOXEL        /* first order: pressure zero in the centres of air cells */
} selkie_surface_condition;

typedef enum selkie_residual_norm {
    SELKIE_NORM_RELATIVE, /* |r|_2 / |b|_2 */
    SELKIE_NORM_MAX       /* largest |divergence| x dt left in any cell */
} selkie_residual_norm;

typedef struct selkie_pressure_def {
    double tolerance;
    selkie_residual_norm norm;
    int max_iterations;
    selkie_surface_condition surface;
    double start; /* s  no pressure (and no correction of volume) before this time */
} selkie_pressure_def;

typedef enum selkie_advection_rule {
    SELKIE_RULE_AUTO, /* trapezoidal with unilateral incompressibility, midpoint without */
    SELKIE_RULE_MIDPOINT,
    SELKIE_RULE_TRAPEZOIDAL
} selkie_advection_rule;

typedef struct selkie_advection_def {
    int order;                  /* 2 or 3: Runge-Kutta */
    selkie_advection_rule rule; /* of order 2 */
} selkie_advection_def;

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

typedef enum selkie_picture_style { SELKIE_STYLE_SURFACE, SELKIE_STYLE_PARTICLES } selkie_picture_style;

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
    int camera_count; /*     keys replace eye, target and field_of_view */
    const selkie_camera_key *camera;
} selkie_render_def;

typedef enum selkie_splash_sampling {
    SELKIE_SPLASH_HAZARD,     /* rates against one Exp(1) threshold a particle */
    SELKIE_SPLASH_EXPECTATION /* Eq. 7 of Um et al. 2018 */
} selkie_splash_sampling;

/* Options of a model of splashes (key "splashes"). */
typedef struct selkie_splash_def {
    selkie_splash_sampling sampling;
    double rate;       /*     factor of the rates; 1 = as trained */
    double threshold;  /*     least probability of a splash */
    int look_ahead;    /*     1 = leave out droplets that would end in liquid or solids */
    int mean_velocity; /*     1 = the mean change of velocity, nothing random */
    double air_drag;   /* 1/m deceleration of a flying droplet over its squared speed */
} selkie_splash_def;

/* The mesh of the liquid's surface. */
typedef struct selkie_mesh_def {
    double resolution;      /* voxels a cell along an axis */
    double particle_radius; /* particle spacings; of the drop of a lone particle */
    double smoothing;       /* 0 = none, 1 = calm water is flat, 2 = strongest */
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

/* Heat: simulated where materials have a heat capacity. */
typedef struct selkie_heat_def {
    double air_temperature; /* K         0 = no exchange with the air */
    double air_exchange;    /* W/(m2 K)  between air and free surface */
    double tolerance;       /*           of the solve, relative */
} selkie_heat_def;

/* A change of a scene while it runs, before the step of a number. An element with a name replaces the one of that name,
 * and is added where there is none. */
typedef enum selkie_change_kind {
    SELKIE_CHANGE_GRAVITY,  /* gravity: from now on; what is up stays */
    SELKIE_CHANGE_FORCE,    /* force: added or replaced */
    SELKIE_CHANGE_OBSTACLE, /* obstacle: added or replaced */
    SELKIE_CHANGE_SOURCE,   /* source: added or replaced */
    SELKIE_CHANGE_DRAIN,    /* drain: added or replaced */
    SELKIE_CHANGE_LIQUID,   /* liquid: added where there is room */
    SELKIE_CHANGE_CLEAR,    /* shape: the liquid inside goes */
    SELKIE_CHANGE_MOVE,     /* name, translate, rotate, duration: an obstacle moves to a pose */
    SELKIE_CHANGE_PUSH,     /* name, velocity, angular_velocity: added to those of a body */
    SELKIE_CHANGE_REMOVE,   /* list, name: an obstacle, force, source or drain goes */
    SELKIE_CHANGE_STEP      /* length: of the next step alone */
} selkie_change_kind;

typedef enum selkie_change_list {
    SELKIE_LIST_OBSTACLES,
    SELKIE_LIST_FORCES,
    SELKIE_LIST_SOURCES,
    SELKIE_LIST_DRAINS
} selkie_change_list;

typedef struct selkie_change_def {
    int step; /*       it happens before the step of this number; 0 = the first */
    selkie_change_kind kind;
    selkie_change_list list;    /*       remove */
    const char *name;           /*       move, push, remove: label of the element, or its number in the list */
    double gravity[3];          /* m/s2  */
    double translate[3];        /* m     move: from where the obstacle is drawn */
    double rotate[3];           /* deg   move: likewise, about x, then y, then z, through the obstacle's center */
    double duration;            /* s     move: it takes so long */
    double velocity[3];         /* m/s   push */
    double angular_velocity[3]; /* rad/s push */
    double length;              /* s     step */
    selkie_force_def force;
    selkie_obstacle_def obstacle;
    selkie_source_def source;
    selkie_drain_def drain;
    selkie_liquid_def liquid;
    selkie_shape shape; /* clear */
} selkie_change_def;

typedef struct selkie_scene {
    const char *title;
    const char *folder; /* start of relative file names; NULL = working directory */
    selkie_domain_def domain;
    double gravity[3]; /* m/s2 */
    int gravity_key_count;
    const selkie_gravity_key *gravity_keys; /* gravity over time, in place of `gravity`, which still says what is up */
    selkie_frame_def frame;                 /* motion of the domain */
    selkie_time_def time;
    uint64_t seed;
    selkie_particles_def particles;
    selkie_discretization discretization;
    selkie_transfer transfer;
    selkie_backend backend;
    double flip_ratio; /* share of FLIP against PIC; 0.97 is mostly FLIP */
    selkie_volume volume;
    selkie_idp_def idp;
    selkie_losasso_def losasso;
    selkie_ando_def ando;
    selkie_sato_def sato;
    selkie_sph_def sph;
    selkie_reduced_def reduced;
    selkie_incompressibility incompressibility;
    selkie_unilateral_def unilateral;
    selkie_pressure_def pressure;
    selkie_advection_def advection;
    double viscosity;         /* m2/s kinematic */
    double dynamic_viscosity; /* Pa s in its place: viscosity times density */
    int material_count;
    const selkie_material_def *materials; /* none = one material with the liquids' density */
    int liquid_count;
    const selkie_liquid_def *liquids;
    int source_count;
    const selkie_source_def *sources;
    int drain_count;
    const selkie_drain_def *drains;
    int obstacle_count;
    const selkie_obstacle_def *obstacles;
    int body_count;
    const selkie_body_def *bodies;
    int force_count;
    const selkie_force_def *forces;
    int object_count;
    const selkie_object_def *objects;
    int probe_count;
    const selkie_probe_def *probes;
    selkie_output_def output;
    selkie_render_def render;
    selkie_mesh_def mesh;
    selkie_whitewater_def whitewater;
    selkie_heat_def heat;
    int change_count;
    const selkie_change_def *changes; /* while it runs, in the order of their steps */
    double surface_tension;           /* N/m of all materials, on grids */
    double contact_angle;             /* deg of the surface at walls and obstacles, inside the liquid */
    int joint_count;
    const selkie_joint_def *joints; /* hinges of bodies, discretization reduced */
    const char *splashes;           /* model of splashes: "" = none, "default", or a file */
    selkie_splash_def splash;
    void *owned; /* set by selkie_scene_load(); leave it alone */
} selkie_scene;

/* Defaults for every field; also for the elements of the arrays. */
SELKIE_API void selkie_scene_defaults(selkie_scene *scene);
SELKIE_API void selkie_shape_defaults(selkie_shape *shape, selkie_shape_kind kind);
SELKIE_API void selkie_material_defaults(selkie_material_def *material);
SELKIE_API void selkie_viscosity_point_defaults(selkie_viscosity_point *point);
SELKIE_API void selkie_liquid_defaults(selkie_liquid_def *liquid);
SELKIE_API void selkie_source_defaults(selkie_source_def *source);
SELKIE_API void selkie_drain_defaults(selkie_drain_def *drain);
SELKIE_API void selkie_obstacle_defaults(selkie_obstacle_def *obstacle);
SELKIE_API void selkie_oscillation_defaults(selkie_oscillation *oscillation);
SELKIE_API void selkie_body_defaults(selkie_body_def *body);
SELKIE_API void selkie_joint_defaults(selkie_joint_def *joint);
SELKIE_API void selkie_force_defaults(selkie_force_def *force, selkie_force_kind kind);
SELKIE_API void selkie_object_defaults(selkie_object_def *object);
SELKIE_API void selkie_timeline_entry_defaults(selkie_timeline_entry *entry);
SELKIE_API void selkie_probe_defaults(selkie_probe_def *probe);
SELKIE_API void selkie_stroke_defaults(selkie_stroke_def *stroke);
SELKIE_API void selkie_drawn_defaults(selkie_drawn_def *drawn);
SELKIE_API void selkie_excite_defaults(selkie_excite_def *excite);
SELKIE_API void selkie_change_defaults(selkie_change_def *change, selkie_change_kind kind);

/* Sets discretization and transfer: a grid with the method's transfer, or SPH, which leaves the transfer as it is. */
SELKIE_API void selkie_scene_set_method(selkie_scene *scene, selkie_method method);

/* Names the first bad field, its value and what would be right. Looks at values only, not at files. */
SELKIE_API selkie_code selkie_scene_check(const selkie_scene *scene, selkie_error *error);

/* Reads a scene file. `overrides` are "path.to.key=VALUE" strings, as of `selkie run --set`. */
SELKIE_API selkie_code selkie_scene_load(const char *path, int override_count, const char *const *overrides,
                                         selkie_scene **scene, selkie_error *error);
/* Writes the scene with all defaults filled in, runnable as it is. */
SELKIE_API selkie_code selkie_scene_save(const selkie_scene *scene, const char *path, selkie_error *error);
SELKIE_API void selkie_scene_free(selkie_scene *scene);

/* The number of whole cells along each axis (1 along z in 2D) and their size. */
SELKIE_API double selkie_scene_cells(const selkie_scene *scene, int cells[3]);
/* time.cfl, or its default if it is 0: the density projection makes large steps safe, the unilateral kind needs smaller
 * ones. For sph it counts particle spacings, for the others cells. */
SELKIE_API double selkie_scene_cfl(const selkie_scene *scene);
/* How volume is kept: SELKIE_VOLUME_AUTO resolved. */
SELKIE_API selkie_volume selkie_scene_volume(const selkie_scene *scene);
/* particles.per_cell, or its default if it is 0. */
SELKIE_API int selkie_scene_particles_per_cell(const selkie_scene *scene);
/* m: distance of neighbouring particles at rest. */
SELKIE_API double selkie_scene_spacing(const selkie_scene *scene);
/* Unit vector against gravity; y if there is none. */
SELKIE_API void selkie_scene_up(const selkie_scene *scene, double up[3]);

#ifdef __cplusplus
}
#endif
#endif
