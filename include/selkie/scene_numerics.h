/* How a scene is computed: a part of selkie/scene.h, which says how scenes are made. */
#ifndef SELKIE_SCENE_NUMERICS_H
#define SELKIE_SCENE_NUMERICS_H

#include <selkie/scene_domain.h>

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

typedef enum selkie_discretization {
    SELKIE_DISCRETIZATION_GRID,       /* particles carry the liquid, a staggered grid its pressure */
    SELKIE_DISCRETIZATION_SPH,        /* smoothed particle hydrodynamics: no grid, neighbours are particles */
    SELKIE_DISCRETIZATION_REDUCED,    /* a sum of modes fills the box; particles are tracers (Gerszewski, chapter 5) */
    SELKIE_DISCRETIZATION_MPM,        /* elastoplastic points, whose forces act on a grid: the material point method */
    SELKIE_DISCRETIZATION_REST_SHAPE, /* elastoplastic points with bonds to the neighbours that they have at rest */
    SELKIE_DISCRETIZATION_PRINTED,    /* deformations from steps, one after the other (Gerszewski, chapter 4) */
    SELKIE_DISCRETIZATION_ADDITIVE    /* strains of steps, added up: to compare with (his Fig. 4.8) */
} selkie_discretization;

/* Elastoplastic points that push each other: discretization rest_shape, printed and additive. */
typedef struct selkie_points_def {
    double zero_energy; /*  rest_shape: stiffness against modes that the deformation does not see */
    double support;     /*  printed, additive: reach of the kernels, in particle spacings */
    int neighbours;     /*  printed, additive: how many of the nearest count; 0 = all in reach */
    double viscosity;   /*  printed, additive: share of the neighbours' velocity that a point takes while a pressure
                            wave passes a spacing */
    int pressure;       /*  printed, additive: pressure of SPH beside the elastic forces */
} selkie_points_def;

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
    int settle;      /*   corrections before the first step; -1: as the start needs */
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
    SELKIE_SPH_CUBIC,      /* cubic spline, Monaghan 1992 */
    SELKIE_SPH_WENDLAND,   /* Wendland's C2 function */
    SELKIE_SPH_KERNEL_AUTO /* cubic in 2D and with objects, else Wendland's */
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
    const char *picture; /*      a picture of velocities that fills the domain: red along x, green along y; "" = none */
    double picture_speed; /* m/s  of full red or green; half of it is rest */
    double time;          /* s    the drawing moves for so long before it is taken */
    int snapshots;        /*      fields that are taken at even times of that */
} selkie_drawn_def;

typedef struct selkie_excite_def {
    const char *mode;  /*      name of a drawn mode */
    double strength;   /* m/s2 acceleration where the drawing is fastest */
    double start, end; /* s    end < 0: never ends */
} selkie_excite_def;

/* Dye: a colour that moves along with the liquid and stays sharp. */
typedef struct selkie_dye_def {
    const char *name;
    selkie_shape shape; /*    what is inside is dyed at `start`, and what passes through it until `end` */
    double color[3];    /*    red, green, blue (sRGB), 0 to 1 */
    double start, end;  /* s  end <= start: once */
} selkie_dye_def;

/* How vortex sheets reach the modes. */
typedef enum selkie_feedback_way {
    SELKIE_FEEDBACK_PANELS,   /* integrals of the modes over the panels */
    SELKIE_FEEDBACK_QUADTREE, /* velocities on the cells through the source's quadtree, then projected */
    SELKIE_FEEDBACK_GRID      /* velocities on every cell, then projected: the source's naive form */
} selkie_feedback_way;

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
    selkie_feedback_way feedback_by;
    double feedback_error; /*    quadtree: largest error of a panel's velocity, over its strength */
    const char *basis;     /*    file of `selkie basis`; "" = the basis is made at the start */
    int dye_count;
    const selkie_dye_def
        *dye;       /*      in the order of `start` where several dye the same place at once, the last wins */
    int dye_pixels; /*      of pictures of the dye, along the side of a cell */
} selkie_reduced_def;

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

typedef enum selkie_splash_sampling {
    SELKIE_SPLASH_HAZARD,     /* rates against Exp(1) thresholds */
    SELKIE_SPLASH_EXPECTATION /* Eq. 7 of Um et al. 2018 */
} selkie_splash_sampling;

/* Options of a model of splashes (key "splashes"). */
typedef struct selkie_splash_def {
    selkie_splash_sampling sampling;
    int pairs;         /*     of droplets below a particle's size that are written around each droplet */
    double rate;       /*     factor of the rates; 1 = as trained */
    double threshold;  /*     least probability of a splash */
    int look_ahead;    /*     1 = leave out droplets that would end in liquid or solids */
    int mean_velocity; /*     1 = the mean change of velocity, nothing random */
    double air_drag;   /* 1/m deceleration of a flying droplet over its squared speed */
} selkie_splash_def;

#endif
