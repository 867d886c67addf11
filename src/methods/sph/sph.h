/* Smoothed particle hydrodynamics: the state at step->sph, and the phases of a step.
 *
 * The grid's cells are as wide as a kernel's support (twice the particle spacing by default), so the common cell sort
 * is the first half of the neighbour search. A step is
 *
 *   sort, solids        as in every method
 *   boundary            poses and velocities of walls, obstacles and bodies, and of their boundary particles
 *   neighbours          lists with kernel gradients, density, diagonal of the pressure system
 *   forces              v += gravity, viscosity, cohesion, force fields
 *   (roles)             velocities of liquid boundaries and candidates
 *   correct             gradients that make the stress of pressure isotropic, v += surface tension (correction_parts.h)
 *   pressure            v += the correction to rest density
 *   integrate           x += dt v
 *
 * All equations are in displacements. With the density ratio D_i = sum_j w W_ij (w: the volume of a particle), G_ij = w
 * grad W_ij and S_i = sum_j G_ij (fluid and walls alike), a pressure variable q (m2) moves a particle by
 *   dx_i = -(S_i q_i + sum_j q_j G_ij),
 * which changes the density ratios by  -(A q)_i,  (A q)_i = S_i . acc_i - sum_j G_ij . acc_j,  acc = -dx. A = M^T M is
 * symmetric. Its diagonal is |S_i|^2 + sum_j |G_ij|^2 (IISPH's a_ii, and 1/alpha of DFSPH). The pressure of a particle
 * is p = q rho0 D^2 / (dt kick). Walls have no pressure of their own: they are part of S_i and cost nothing per
 * iteration. Their velocities are part of the predicted density.
 */
#ifndef SK_METHODS_SPH_SPH_H
#define SK_METHODS_SPH_SPH_H

#include "methods/method.h"
#include "particles/cell_index_kernels.h"

extern const sk_method sk_method_sph;

enum { SK_SPH_VARIABLES = 5 };

/* One sample of the surface of an obstacle or a rigid body (Akinci et al. 2012). */
typedef struct sk_boundary_particle {
    float position[3]; /* m    */
    float volume;      /* m3   its volume in the density sum */
    float velocity[3]; /* m/s  at the end of the step */
    uint32_t body;     /*      index into sk_sph_boundary.bodies */
} sk_boundary_particle;

/* The effect of the fluid on a body in a step. Phases add to force and torque (pressure, viscosity at no-slip walls).
 * The owner resets them and sets the other fields. */
typedef struct sk_sph_body {
    int wants_force;                /*     forces on it are summed up */
    int responds;                   /*     pressure moves it */
    int no_slip;                    /*     viscosity drags along it */
    float grip;                     /*     part of that drag that its slip length leaves */
    float friction;                 /*     Coulomb's, of an obstacle or body */
    int rubs;                       /*     it has friction */
    double center[3];               /* m   point that the torque is about */
    double response[36];            /*     m M^-1: a particle's mass over its masses and inertia, row-major */
    double force[3];                /* N   (2D: for a depth of one metre) */
    double torque[3];               /* N m */
    double sum[6], moved[6], trace; /* of the coupling in the pressure solve */
} sk_sph_body;

/* A closed side of the domain: a smooth sheet half a spacing behind it. */
typedef struct sk_sph_side {
    int axis;
    float sheet;          /* m    its position on the axis */
    float inward;         /*      1 or -1: the direction of the liquid */
    uint32_t part;        /*      index into sk_sph_boundary.bodies */
    float grip, friction; /* as of a body */
} sk_sph_side;

/* The closed sides, and boundary particles sorted by the cells of the grid. boundary.c fills everything in the phase
 * `boundary`; other phases read it and add to the bodies' sums. */
typedef struct sk_sph_boundary {
    int side_count;
    sk_sph_side sides[6];
    size_t count;
    sk_boundary_particle *particles;
    sk_cell_index index; /* of the particles */
    int body_count;
    sk_sph_body *bodies;
} sk_sph_boundary;

/* Weight of walls in the density ratio: weight x shape(distance / reach) (sph_kernels.h). */
typedef struct sk_sph_wall_kernel {
    double reach;  /* m */
    double weight; /*    for points: weight of a point with the volume of a particle */
} sk_sph_wall_kernel;

typedef struct sk_sph_report {
    int iterations;         /* of the pressure solve */
    double predicted_error; /* mean of |density ratio - target| after the solve, by its own prediction */
    int64_t boundaries;     /* solid particles without pressure: errors are means over the others */
    double compression;     /* mean of max(D - 1, 0) at the start of the step: the actual result of the step before */
    double compression_max;
    double density_mean; /* mean D over particles whose kernel the surface does not cut */
    int64_t pairs;
    int64_t list_bytes;
    int viscosity_iterations;  /* if it is implicit */
    double largest_eigenvalue; /* estimate for the diagonally scaled system */
} sk_sph_report;

/* Sums over the particles of a block; blocks are added in their order. */
typedef struct sk_sph_list_sums {
    double pairs, lines;                 /* of the lists */
    double compression, compression_max; /* of max(D - 1, 0) over liquid */
    double volume;                       /* of min(1, 1 / D) */
    double boundaries;                   /* particles */
} sk_sph_list_sums;

typedef struct sk_sph_solve_sums {
    double error;             /* of |residual| as in the stopping test */
    double uphill;            /* of (y - next) (next - x) / diagonal: above 0 the momentum has overshot */
    double curvature, length; /* d.A d and d.d / diagonal of d = y - before */
} sk_sph_solve_sums;

typedef union sk_sph_block_sums {
    sk_sph_list_sums lists;
    sk_sph_solve_sums solve;
    double product; /* of the viscosity solve */
    char line[64];  /* of the cache: avoids false sharing between threads */
} sk_sph_block_sums;

typedef struct sk_sph {
    sk_memory *memory;
    /* constants */
    double spacing;         /* m   between particles at rest */
    double support;         /* m   radius of the kernel = cell size */
    double volume;          /* m3  of a particle (2D: m2) */
    double kernel_scale;    /*     makes D = 1 on the lattice exactly */
    double correction_time; /* s   one or a few steps at the natural speed of the scene: the time in which a density
                               error is corrected. A correction within one very short step would have a high speed, and
                               would make the next step shorter still */
    double rate;            /* 1/s natural speed over the longest side of the domain: the scale of divergence errors */
    double point_spacing;   /* m   between boundary particles */
    sk_sph_wall_kernel sheet, point;
    double edge, corner;     /*     overlap of two and three sheets, over the product of theirs (walls.h) */
    double lattice_diagonal; /*     a_ii spacing^2 on the lattice */
    double viscous[3];       /*     shape of the viscous pair force for a viscosity of 1 m2/s and 1 s: factors of
                                1 / (r^2 + softening), 1 and r^2 (1/m, 1/m3, 1/m5) */
    sk_sph_boundary boundary;
    struct sk_sph_walls *walls; /* private data of boundary.c; NULL without any walls */
    size_t contact_count;       /* of parts with forces, in the order of the particles */
    struct sk_sph_contact *contacts;
    float *body_term; /* [n] m: density relief by bodies that respond, as source; NULL if none does */

    /* lists of particle i of the sorted store; sph_tile.h has their layout */
    size_t particle_capacity, list_capacity;
    int64_t last_lines;  /*     of lists in the step before, 16 bytes each: the estimate for this step */
    int always_wide;     /*     for tests: the wide form of lists everywhere */
    size_t tile_room;    /*     floats of an array over the largest tile, with a margin */
    uint32_t *first;     /* [n] start of the list, in units of 16 bytes */
    uint32_t *number;    /* [n] neighbours */
    uint8_t *block_wide; /* [particle_blocks + 1] the lists of the block are of the wide form */
    char *lists;
    float (*sum_gradient)[4];  /* [n] S_i, in units of 1 / spacing; the fourth is 0 */
    float (*shift)[4];         /* [n] acc of the solver, m; minus the displacement by the last solve; the fourth is 0 */
    float (*correction[3])[4]; /* [n] columns of L_i (correction_parts.h), symmetric; the fourth is 0 */
    float *density;            /* [n] D_i */
    float *diagonal;  /* [n] a_ii spacing^2; in the pressure phase its inverse, 0 for a particle without pressure */
    float *wall_flux; /* [n] 1/s: sum_b G_ib . v_b, 0 away from boundary particles */
    float *source;    /* [n] right side */
    float *variable[SK_SPH_VARIABLES]; /* [n] q / spacing, and further variables of a solver, m */
    double
        pressure_sum; /* whole units (sk_sph_whole_pressure) of all particles that are on a device; negative: unknown */
    float *pressure;  /*     the attribute "pressure", Pa: looked up in each step, since the store may move it */
    size_t block_capacity, wide_capacity;
    sk_sph_block_sums *block_sums; /* [particle_blocks + 1] */
    sk_sph_report report;
    int compressed_steps; /* consecutive steps of a fixed length that left far too high a density */
} sk_sph;

/* Does the scene use Wendland's kernel? `auto` takes it in 3D: with the cubic spline particles at rest pair up there
 * and keep moving. In 2D the cubic spline conserves energy better. Liquid boundaries stop fast jets better with it. */
static inline int sk_sph_is_wendland(const selkie_scene *scene)
{
    return scene->sph.kernel == SELKIE_SPH_WENDLAND ||
           (scene->sph.kernel == SELKIE_SPH_KERNEL_AUTO && scene->domain.dimension == 3 && !scene->object_count);
}

selkie_code sk_sph_create(sk_step *step, selkie_error *error);
void sk_sph_destroy(sk_step *step);
/* Reserves the arrays for the current particles; looks up the attribute again. */
selkie_code sk_sph_reserve(sk_step *step, selkie_error *error);
/* Reserves some lines (16 bytes) of lists; does not keep the content. */
selkie_code sk_sph_reserve_lists(sk_sph *sph, int64_t lines, selkie_error *error);
/* Mean of the particles around a point, weighted by the kernel: pressure (Pa) for component -1, else a component of the
 * velocity (m/s). Without particles in reach: 0 and NaN. */
double sk_sph_at(const sk_step *step, const double at[3], int component);
/* Is the scene's viscosity too strong for an explicit step of this length? */
int sk_sph_viscosity_is_implicit(const sk_step *step);
/* Reports a solve of the implicit viscosity that has failed. */
selkie_code sk_sph_viscosity_failed(const sk_step *step, int iterations, selkie_error *error);
/* sqrt(2 x mean pressure / density), m/s, with the hydrostatic pressure before the first step: the speed at which
 * particles under pressure slip past each other. The pressure keeps their density implicitly. Sideways its gradients
 * act as explicit springs of the frequency sqrt(p / rho) / spacing, which a step must resolve. In a column of depth H
 * this is sqrt(g H). */
double sk_sph_pressure_speed(const sk_step *step);
/* The same for the pressure that surface tension makes, which is not known before the first step, m/s. */
double sk_sph_tension_speed(const sk_step *step);
/* The pressure, Pa, up to which the order that holds particles grows (sph_pair_kernels.h); infinite if no body moves.
 */
double sk_sph_order_pressure(const sk_step *step);
/* Bytes per particle of the lists and arrays above, for plans. */
double sk_sph_bytes_per_particle(int dimension);

/* The phases, tuned and plain. sk_sph_forces calls sk_sph_viscosity if it is implicit. */
#define SK_SPH_PHASES(form)                                                                                            \
    selkie_code sk_sph_neighbours_##form(sk_step *step, selkie_error *error);                                          \
    selkie_code sk_sph_forces_##form(sk_step *step, selkie_error *error);                                              \
    selkie_code sk_sph_viscosity_##form(sk_step *step, selkie_error *error);                                           \
    selkie_code sk_sph_correct_##form(sk_step *step, selkie_error *error);                                             \
    selkie_code sk_sph_pressure_##form(sk_step *step, selkie_error *error);

SK_SPH_PHASES(2d)
SK_SPH_PHASES(3d)
SK_SPH_PHASES(plain_2d)
SK_SPH_PHASES(plain_3d)

/* Coefficients of the forces between particles; returns 0 if there are none. */
struct sk_sph_force_constants;
int sk_sph_pair_forces_2d(const sk_step *step, struct sk_sph_force_constants *constants);
int sk_sph_pair_forces_3d(const sk_step *step, struct sk_sph_force_constants *constants);

/* Friction of no-slip walls: each particle's velocity changes by pull - drag v' (friction_dim.c). */
typedef struct sk_sph_friction_terms {
    float *drag;    /* [n] */
    float *pull[3]; /* [n] m/s */
} sk_sph_friction_terms;

/* Constants of this friction; do any walls have it? */
struct sk_sph_friction_frame;
void sk_sph_friction_frame_of_2d(const sk_step *step, struct sk_sph_friction_frame *frame);
void sk_sph_friction_frame_of_3d(const sk_step *step, struct sk_sph_friction_frame *frame);
int sk_sph_is_rough_2d(const sk_step *step);
int sk_sph_is_rough_3d(const sk_step *step);
/* The terms of all particles, for the viscosity solve. Returns 0 and leaves them as they are if no wall rubs. */
int sk_sph_friction_of_walls_2d(sk_step *step, const sk_sph_friction_terms *terms);
int sk_sph_friction_of_walls_3d(sk_step *step, const sk_sph_friction_terms *terms);

/* Coulomb's friction of walls, after the pressure solve. Plain C: one form serves both backends. */
selkie_code sk_sph_wall_friction_2d(sk_step *step, selkie_error *error);
selkie_code sk_sph_wall_friction_3d(sk_step *step, selkie_error *error);
/* Plain C: one form serves both backends. */
selkie_code sk_sph_integrate_2d(sk_step *step, selkie_error *error);
selkie_code sk_sph_integrate_3d(sk_step *step, selkie_error *error);

#endif
