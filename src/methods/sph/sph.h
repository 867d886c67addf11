/* Smoothed particle hydrodynamics: the state that hangs at step->sph, and the phases of a step.
 *
 * The grid's cells are as wide as a kernel's support (twice the particle spacing by default), so the cell sort that
 * every method runs is the neighbour search's first half. A step is
 *
 *   sort, solids        as everywhere
 *   boundary            walls, obstacles and bodies: where they and their boundary particles are, and how fast
 *   neighbours          lists with kernel gradients, density, diagonal of the pressure system
 *   forces              v += gravity, viscosity, surface tension, force fields
 *   (roles)             liquid boundaries and candidates: what they make of their velocities
 *   pressure            v += what keeps the density at rest density
 *   integrate           x += dt v
 *
 * Everything is written in displacements. With the density ratio D_i = sum_j w W_ij (w: the volume of a particle),
 * G_ij = w grad W_ij and S_i = sum_j G_ij (fluid and walls alike), a pressure variable q (m2) moves a particle by
 *   dx_i = -(S_i q_i + sum_j q_j G_ij),
 * which changes the density ratios by  -(A q)_i,  (A q)_i = S_i . acc_i - sum_j G_ij . acc_j,  acc = -dx. A = M^T M is
 * symmetric, its diagonal is |S_i|^2 + sum_j |G_ij|^2 (IISPH's a_ii, and 1/alpha of DFSPH), and the pressure of a
 * particle is p = q rho0 D^2 / (dt kick). Walls have no pressure of their own, so they are in S_i and cost nothing an
 * iteration; their velocities are in the predicted density.
 */
#ifndef SK_METHODS_SPH_SPH_H
#define SK_METHODS_SPH_SPH_H

#include "base/simd.h"
#include "methods/method.h"
#include "particles/cell_index_kernels.h"

extern const sk_method sk_method_sph;

enum { SK_SPH_VARIABLES = 5 };

/* One sample of the surface of an obstacle or a rigid body (Akinci et al. 2012). */
typedef struct sk_boundary_particle {
    float position[3]; /* m    */
    float volume;      /* m3   what it stands for in the density sum */
    float velocity[3]; /* m/s  at the end of the step */
    uint32_t body;     /*      whose it is: index into sk_sph_boundary.bodies */
} sk_boundary_particle;

/* What the fluid does to a body in a step. Phases add to force and torque (pressure, viscosity at no-slip walls); the
 * rest, and the zeros that they start from, are set by the owner. */
typedef struct sk_sph_body {
    int wants_force;                /*     forces on it are summed up */
    int responds;                   /*     pressure moves it */
    int no_slip;                    /*     viscosity drags along it */
    double center[3];               /* m   point that the torque is about */
    double response[36];            /*     m M^-1: a particle's mass over its masses and inertia, row-major */
    double force[3];                /* N   (2D: for a depth of one metre) */
    double torque[3];               /* N m */
    double sum[6], moved[6], trace; /* of the coupling in the pressure solve */
} sk_sph_body;

/* A closed side of the domain: a smooth sheet half a spacing behind it. */
typedef struct sk_sph_side {
    int axis;
    float sheet;   /* m    where it lies on the axis */
    float inward;  /*      1 or -1: where the liquid is */
    uint32_t part; /*      index into sk_sph_boundary.bodies */
} sk_sph_side;

/* The closed sides, and boundary particles sorted by the cells of the grid. The walls (boundary.c) fill all this in the
 * phase `boundary`; other phases read it and add to the bodies' sums. */
typedef struct sk_sph_boundary {
    int side_count;
    sk_sph_side sides[6];
    size_t count;
    sk_boundary_particle *particles;
    sk_cell_index index; /* of the particles; its table has the places of grid->table */
    int body_count;
    sk_sph_body *bodies;
} sk_sph_boundary;

/* How walls count in the density ratio: weight x shape(distance / reach) (sph_kernels.h). */
typedef struct sk_sph_wall_kernel {
    double reach;  /* m */
    double weight; /*    of points: for one that stands for the volume of a particle */
} sk_sph_wall_kernel;

typedef struct sk_sph_report {
    int iterations;         /* of the pressure solve */
    double predicted_error; /* mean of |density ratio - wanted| that it leaves, by its own prediction */
    int64_t boundaries;     /* particles that are solid, and have no pressure: errors are means over the others */
    double compression;     /* mean of max(D - 1, 0) at the start of the step: what the step before really left */
    double compression_max;
    double density_mean; /* mean D over particles whose kernel is not cut by the surface */
    int64_t pairs;
    int64_t list_bytes;
    int viscosity_iterations;  /* where it is implicit */
    double largest_eigenvalue; /* estimate for the diagonally scaled system */
} sk_sph_report;

/* Sums over the particles of a block, which are added up in the order of the blocks. */
typedef struct sk_sph_list_sums {
    double pairs, lines;                 /* of the lists */
    double compression, compression_max; /* of max(D - 1, 0) over liquid */
    double volume;                       /* of min(1, 1 / D) */
    double boundaries;                   /* particles */
} sk_sph_list_sums;

typedef struct sk_sph_solve_sums {
    double error;             /* of |residual| as it counts for the stop */
    double uphill;            /* of (y - next) (next - x) / diagonal: above 0 the momentum has gone too far */
    double curvature, length; /* d.A d and d.d / diagonal of d = y - before */
} sk_sph_solve_sums;

typedef union sk_sph_block_sums {
    sk_sph_list_sums lists;
    sk_sph_solve_sums solve;
    double product; /* of the viscosity solve */
    char line[64];  /* of the cache: threads do not share one */
} sk_sph_block_sums;

typedef struct sk_sph {
    sk_memory *memory;
    /* constants */
    double spacing;         /* m   between particles at rest */
    double support;         /* m   radius of the kernel = cell size */
    double volume;          /* m3  of a particle (2D: m2) */
    double kernel_scale;    /*     makes D = 1 on the lattice exactly */
    double correction_time; /* s   a step at the speed that the scene makes by itself, or a few of them: in this time an
                             * error of density is taken back. If it went in one step that a stray particle has made far
                             * shorter, the correction's speed would grow as the step shrinks, and make the next one
                             * shorter still */
    double rate;            /* 1/s that speed over the longest side of the domain: the scale of errors of divergence */
    double point_spacing;   /* m   between boundary particles */
    sk_sph_wall_kernel sheet, point;
    double edge, corner;     /*     what two and three sheets share, over the product of theirs (walls.h) */
    double lattice_diagonal; /*     a_ii spacing^2 on the lattice */
    sk_sph_boundary boundary;
    struct sk_sph_walls *walls; /* what stands behind it (boundary.c); NULL without any */
    size_t contact_count;       /* of parts that want forces, in the order of the particles */
    struct sk_sph_contact *contacts;
    float *body_term; /* [n] m: what bodies that give way take from the density, as source; NULL where none does */

    /* lists, particle i of the sorted store; how they are laid out: sph_tile.h */
    size_t particle_capacity, list_capacity;
    int64_t last_lines;  /*     of lists in the step before, 16 bytes each: room is made for them */
    int always_wide;     /*     for tests: the wide form of lists everywhere */
    size_t tile_room;    /*     floats of an array over the largest tile, and some */
    uint32_t *first;     /* [n] where the list begins, in units of 16 bytes */
    uint32_t *number;    /* [n] neighbours */
    uint8_t *block_wide; /* [particle_blocks + 1] the lists of the block are of the wide form */
    char *lists;
    float (*sum_gradient)[4]; /* [n] S_i, in units of 1 / spacing; the fourth is 0 */
    float (*shift)[4];        /* [n] acc of the solver, m; minus the displacement by the last solve; the fourth is 0 */
    float *density;           /* [n] D_i */
    float *diagonal;  /* [n] a_ii spacing^2; in the pressure phase its inverse, 0 for one that pressure does not move */
    float *wall_flux; /* [n] 1/s: sum_b G_ib . v_b, 0 away from boundary particles */
    float *source;    /* [n] right side */
    float *variable[SK_SPH_VARIABLES]; /* [n] q / spacing and what a solver needs beside it, m */
    float *pressure; /*     the attribute "pressure", Pa: found anew in each step, since the store may move it */
    size_t block_capacity, wide_capacity;
    sk_sph_block_sums *block_sums; /* [particle_blocks + 1] */
    sk_sph_report report;
    int compressed_steps; /* of a fixed length, in a row, that left far too high a density */
} sk_sph;

selkie_code sk_sph_create(sk_step *step, selkie_error *error);
void sk_sph_destroy(sk_step *step);
/* Room in the arrays for the particles that there are; finds the attribute anew. */
selkie_code sk_sph_reserve(sk_step *step, selkie_error *error);
/* Room for so many lines (16 bytes) of lists; content is not kept. */
selkie_code sk_sph_reserve_lists(sk_sph *sph, int64_t lines, selkie_error *error);
/* What particles around a point say of it, weighted by the kernel: pressure (Pa) for component -1, else a component of
 * the velocity (m/s). Without particles in reach: 0 and NaN. */
double sk_sph_at(const sk_step *step, const double at[3], int component);
/* Whether the scene's viscosity is too strong for an explicit step of this length. */
int sk_sph_viscosity_is_implicit(const sk_step *step);
/* sqrt(2 x mean pressure / density), m/s: how fast particles under pressure slip past each other. The pressure keeps
 * their density implicitly, but where they give way sideways its gradients act as explicit springs of the frequency
 * sqrt(p / rho) / spacing, which a step must resolve. In a column of depth H this is sqrt(g H). */
double sk_sph_pressure_speed(const sk_step *step);
/* Bytes a particle takes in the lists and arrays above, for plans. */
double sk_sph_bytes_per_particle(int dimension);

/* The phases, tuned and plain. sk_sph_forces calls sk_sph_viscosity where it is implicit. */
#define SK_SPH_PHASES(form)                                                                                            \
    selkie_code sk_sph_neighbours_##form(sk_step *step, selkie_error *error);                                          \
    selkie_code sk_sph_forces_##form(sk_step *step, selkie_error *error);                                              \
    selkie_code sk_sph_viscosity_##form(sk_step *step, selkie_error *error);                                           \
    selkie_code sk_sph_pressure_##form(sk_step *step, selkie_error *error);

SK_SPH_PHASES(2d)
SK_SPH_PHASES(3d)
SK_SPH_PHASES(plain_2d)
SK_SPH_PHASES(plain_3d)

/* Plain C already: one form for both backends. */
selkie_code sk_sph_integrate_2d(sk_step *step, selkie_error *error);
selkie_code sk_sph_integrate_3d(sk_step *step, selkie_error *error);

#endif
