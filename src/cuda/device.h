/* State of the GPU backend and helpers of its kernels. Private to src/cuda.
 *
 * Kernels read everything through two structs in device memory. `sk_step` is a copy of the host's step whose pointers
 * lead to device memory, so that functions of the plain backend work on it unchanged. The host copies it at the start
 * of each step; the sort then writes the counts of particles and blocks into it. `sk_cuda_data` holds what the host's
 * step has no member for. Launches depend on neither counts nor addresses: loops run over counts that are on the
 * device. So a phase is recorded once as a CUDA graph and launched in each step without waiting for the device.
 */
#ifndef SK_CUDA_DEVICE_H
#define SK_CUDA_DEVICE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SK_CUDA_EMULATED
#include SK_CUDA_EMULATED /* the header that imitates CUDA: tests/cuda/emulate.h */
#else
#include <cuda_runtime.h>
#endif

extern "C" {
#include "base/status.h"
#include "cuda/cuda.h"
#include "cuda/phases.h"
#include "grid/transfer.h"
#include "methods/heat/heat.h"
#include "methods/sph/boundary.h"
#include "methods/sph/solve.h"
#include "methods/step.h"
#include "methods/surface_tension/surface_tension.h"
}
#include "geom/parts_kernels.h"
#include "methods/flip/advect_kernels.h"
#include "methods/force_kernels.h"
#include "methods/sph/friction_plain.h"
#include "methods/sph/integrate_plain.h"
#include "methods/sph/viscous_arrays.h"

enum {
    SK_CUDA_LEVELS = 16,
    SK_CUDA_BOTTOM = 48,      /* unknowns of the coarsest level, which is solved exactly */
    SK_CUDA_TAIL_BLOCKS = 16, /* levels with at most so many places are smoothed by one thread block */
    SK_CUDA_HISTORY = 256,
    SK_CUDA_TICKETS = 16,
    SK_CUDA_SCRATCH = 9,
    SK_CUDA_TILE = 7 * 10 * 10 * 10, /* values of the nodes in and around a block */
    SK_CUDA_SPH_CROWD = 2048         /* particles in a cell: with more SPH cannot work */
};

/* A level of the multigrid cycle. Level 0 has the blocks of the grid, a coarse level numbers its own from 1, in an
 * arbitrary order. */
typedef struct sk_cuda_level {
    int blocks[3]; /* places along each axis */
    int joined[3]; /* as many along a periodic axis, 0 along others */
    int places;
    int capacity;   /* blocks with block 0, which is empty */
    int32_t *map;   /* [places] number of the block, 0 = none; not of level 0 */
    int32_t *place; /* [capacity] place of the block */
    int32_t *list;  /* [capacity] blocks of colour 0 from the front, of colour 1 from the end; with their form */
    int32_t (*neighbour)[6]; /* [capacity] 0 = none */
    int32_t *parent;         /* [capacity] index of the coarse cell that contains the block's first cell */
    float *face[3];          /* [capacity][cells] coefficient of the lower face */
    float *excess, *inverse; /* [capacity][cells] */
    float *x, *b;            /* [capacity][cells] */
    float *lower;            /* [capacity][cells] bounds of a lowered solve; NULL where there are none */
    uint8_t *open; /* [capacity][cells] open sides of a cell, and whether it is an unknown; NULL = numbers alone */
    uint8_t *form; /* [capacity] form of a block's rows, as in the list; of level 0 */
} sk_cuda_level;

/* What launches of an iteration ask for at their start. A record of 16 bytes is one load: each load takes as long as
 * the four half sweeps of a block. */
typedef struct alignas(16) sk_cuda_solve_state {
    int done;
    int check;  /* the residual is to be computed afresh */
    int twice;  /* bit for each level that is visited twice in a cycle */
    int bottom; /* the level that is solved exactly */
} sk_cuda_solve_state;
typedef struct alignas(16) sk_cuda_solve_turn {
    float beta;   /* share of the last direction in the next one */
    float alpha;  /* length of the step along it */
    float mean_z; /* of a cycle's result in a closed component, else 0 */
    int skip;     /* no step follows */
} sk_cuda_solve_turn;
/* What the next choice of a direction asks for. */
typedef struct alignas(16) sk_cuda_solve_memory {
    double rz;        /* of the last direction; 0 = the next one starts afresh */
    double curvature; /* p A p of the last direction */
} sk_cuda_solve_memory;

typedef struct sk_cuda_solver {
    int level_count; /* with memory */
    sk_cuda_level level[SK_CUDA_LEVELS];
    float *high, *low;          /* as in linalg/solver.h */
    float *p, *product, *image; /* the direction, A p, and A z of a cycle's result z */
    double *partial[3];         /* [capacity] sums of the blocks of the grid; 0 without unknowns */
    int32_t *active;            /* [capacity] unknowns of each block of the grid */

    /* of this solve, set before it */
    double tolerance;
    int norm, max_iterations;
    int bounded; /* the unknowns are at least 0: bounded_dim.cu */
    int lowered; /* or at least what is in LOWER of the grid, which is not above 0 */
    int idle;    /* there is nothing to solve; the solution is 0 */

    /* of this solve, written by the device */
    int block_count;              /* of the grid, with block 0 */
    int count[SK_CUDA_LEVELS][2]; /* blocks by colour */
    int unknowns[SK_CUDA_LEVELS], numbers[SK_CUDA_LEVELS];
    int bottom_unknowns;
    int32_t bottom_cell[SK_CUDA_BOTTOM];
    float bottom_inverse[SK_CUDA_BOTTOM][SK_CUDA_BOTTOM];
    int surface_cells; /* unknowns with an excess; without any the liquid is one closed component */
    float scale;
    double mean; /* of the right side in a closed component, else 0 */
    double norm_b, residual, computed, drifted;
    int iteration, careful, converged, broken;
    unsigned ticket;
    sk_cuda_solve_state state;
    sk_cuda_solve_turn turn;
    sk_cuda_solve_memory memory;
} sk_cuda_solver;

/* A solve under bounds. The unknowns of coarse levels are in `x`, their right sides in `b` of the levels of the solver
 * with all cells; `part` has the levels of the free cells of one of them, the root, with its residual in `b` and its
 * correction in `x`. */
typedef struct sk_cuda_bounded {
    sk_cuda_solver part; /* shares places, lists and neighbours with the other one */
    double *partial[2];  /* [places] sums of the blocks of a coarse level */
    double unit;         /* residuals are relative to this one */
    int exactly;         /* residuals are computed in double */
    int paired;          /* the solution is a pair of floats */
    int check;           /* the next residual must be computed in double */
    int balanced;        /* the liquid is one closed component without held cells: means are left out */
    int held;            /* cells, counted in a closed component */
    float mean_r, mean_z, length;
} sk_cuda_bounded;

/* Unilateral incompressibility on the device. */
typedef struct sk_cuda_unilateral {
    int shifted;      /* SHIFT_* holds a correction */
    int partly;       /* only wanted blocks take part */
    int wanted_count; /* blocks */
    uint32_t *wanted; /* [capacity] */
    float *excess;    /* [capacity] largest density above the room */
    float largest;    /* of all blocks */
} sk_cuda_unilateral;

/* Particles of liquid boundaries in a step: sk_liquid_boundary. */
typedef struct sk_cuda_role_counts {
    unsigned long long candidates, boundaries, arrived, released, assigned, exchanged, stopped;
} sk_cuda_role_counts;

/* Results of a step that the host reads. */
typedef struct sk_cuda_results {
    int64_t count; /* particles after the sort */
    int block_count, particle_blocks;
    int64_t lost;                           /* particles outside the grid */
    int overflow;                           /* blocks that had no room */
    double kinetic, fastest2, positions[3]; /* (m/s)^2, (m/s)^2, m */
    int64_t bad, gone;
    double kernel_volume, counted_volume, surface_volume;
    int64_t occupied, liquid;
    double error_absolute, error_squares, error_sum, error_largest;
    int64_t error_count;
    int64_t redistributed, unseen, needy, intruders;
    int64_t inside; /* particles inside a source or drain */
    struct {
        int64_t count;
        double positions[3]; /* m  their sum */
    } drained;               /* particles that drains have removed in this step */
    sk_mass_sums masses;
    struct {
        int rows;    /* of the neighbour lists */
        int fullest; /* particles of a cell with too many; 0 = none */
        int crowded; /* a particle touches too many parts of the walls */
        double pairs, compression, compression_max, boundaries;
        int iterations, diverged;
        double error, largest;                      /* of the solve: sk_sph_progress */
        int viscosity_iterations, viscosity_failed; /* of implicit viscosity */
        double pressure;                            /* sum over the particles, in whole units: sk_sph_whole_pressure */
    } sph;
    sk_cuda_role_counts roles;
    double elastic_energy, plastic_work, wave_speed; /* J/m3 times points, likewise, m/s */
    struct {
        int iterations, converged, broken, unknowns, twice;
        double residual;
    } pressure, density;
    struct {
        int iterations, converged, done, broken, unknowns;
        double residual, excess;
        int64_t free_cells;
    } bounded; /* of the last solve under bounds */
    struct {
        int iterations, converged, overflow, levels, unknowns, soft;
        int visits[2]; /* cycles of each pass */
        int blocks[4]; /* of the finest levels, the empty one included */
        double residual;
    } viscosity;
    struct {
        int iterations, converged, broken, unknowns, twice;
        int changed; /* cells that changed their phase in the last pass */
        double residual;
        double energy;               /* J */
        unsigned long long range[2]; /* K  coldest and warmest particle: the bits of two doubles */
    } heat;
} sk_cuda_results;

/* SPH: neighbour lists and the course of the solve. 32 particles have their lists beside each other. */
typedef struct sk_cuda_sph {
    uint32_t *row;          /* [particles / 32 + 1] first row of the lists of 32 particles */
    uint32_t *index, *flat; /* [rows][32] neighbour, and its gradient along x and y in half precision */
    uint16_t *deep;         /* [rows][32] along z */
    size_t capacity;        /* rows */
    sk_sph_progress progress;
    int done, diverged;
    struct {
        double scale, squares, goal; /* of |v*|^2, |residual|^2, and what it must come down to */
        double length, share;        /* of the next step along the direction, and of the direction after it */
        int iterations, done;
    } viscosity;
} sk_cuda_sph;

typedef struct sk_cuda_data {
    /* the sort */
    int places;                      /* blocks of the domain */
    int capacity;                    /* blocks with memory, block 0 included */
    int32_t *slot_of_place;          /* [places] */
    uint8_t *marked;                 /* [places] has particles; 0 between sorts */
    uint32_t *keys;                  /* [particles] cell counted over all places */
    uint32_t *ranks, *order;         /* [particles] */
    uint32_t *first_reach;           /* [places] first block and neighbour that reach an empty place */
    uint32_t *reach;                 /* [capacity] neighbours that a block's particles reach */
    uint32_t *wins;                  /* [capacity] those of them whose slot it names */
    int32_t *slots_won;              /* [capacity] first slot of these */
    uint32_t *cell_counts;           /* [capacity][cells] particles; 0 between sorts */
    uint32_t *block_first;           /* [capacity + 1] */
    int32_t *solid_slots;            /* [places] slot in the fields of the solids, 0 = open */
    uint8_t *kinds;                  /* [capacity][cells] */
    float *scratch[SK_CUDA_SCRATCH]; /* [capacity][cells] */
    double *partial;                 /* [8][most thread blocks] */
    float *tiles;                    /* [capacity][SK_CUDA_TILE] sums of a block's particles: gather_dim.cu; 3D only */
    void *mpm_materials, *mpm_gifts; /* sk_elastic_material, stored gifts [particles]; of mpm alone, as the next two */
    void *mpm_tiles;                 /* [capacity][SK_MPM_TILE] float4: momentum and mass of a block's points */
    float (*mpm_nodes)[4];           /* [capacity][cells] velocity (m/s) and mass */
    float *mpm_friction;             /* [obstacles] Coulomb's */
    unsigned ticket[SK_CUDA_TICKETS];
    unsigned overfull; /* cells in the list of the density projection, or blocks in that of the extrapolation */
    sk_cuda_unilateral unilateral;
    sk_cuda_sph sph;
    sk_cuda_results results;
} sk_cuda_data;

/* The primitives and meshes of a shape. */
typedef struct sk_cuda_shape {
    int count;
    const sk_shape_part *parts;
} sk_cuda_shape;

/* Constants of mpm. */
typedef struct sk_cuda_mpm {
    float dt, kick; /* s    of plastic flow, and of forces */
    float gain[3];  /* m/s  of gravity */
    int material;   /*      attribute; -1 = none */
    int attributes[5];
} sk_cuda_mpm;

/* Constants of a step that the host computes. */
typedef struct sk_cuda_constants {
    float gain[3]; /* m/s  of gravity */
    int affine;    /*      attribute of the matrices of APIC */
    int spare;     /*      field of unilateral incompressibility */
    int material;  /*      attribute of the materials */
    int body;      /*      attribute of the bodies of particles; -1 = none */
    int frozen_at; /*      attribute of the places of frozen particles; -1 = none */
    sk_transfer_options options;
    sk_displacement displacement;
    sk_advection advection; /* of the same size in 2D and 3D */
    float relative_density[SK_TRANSFER_MATERIALS];
    uint8_t liquid_mask[SK_TRANSFER_MATERIALS], solid_mask[SK_TRANSFER_MATERIALS];
    float obstacles_low[3], obstacles_high[3]; /* m    box around all obstacles during the step */
    sk_cuda_mpm mpm;
    struct {
        float strength;                    /*      viscosity x time / cell size^2, if there is one viscosity */
        int several;                       /*      there are several */
        float logs[SK_TRANSFER_MATERIALS]; /* their logarithms */
        int has_material;                  /* particles have one */
        float lowest, inverse;             /* K, 1/K  of tables over temperature: viscosity_logs */
    } viscosity;
    struct {
        double coldest, warmest; /* K    range of temperatures before new particles are known */
        double unit;             /* K/J  of sk_heat_solve */
        sk_heat_mixing mixing;
        int enthalpy, temperature; /* attributes */
        int liquid_fraction;       /* likewise; -1 = nothing melts */
    } heat;
    sk_tension tension;
    float contact_cosine; /* of the contact angle of the surface */
    int force_count;
    sk_force_field forces[SK_CUDA_MOST_FORCES]; /* of this step */
} sk_cuda_constants;

/* Those of SPH. */
typedef struct sk_cuda_sph_constants {
    sk_sph_list_constants lists;
    sk_sph_point_constants points;
    sk_sph_force_constants forces;
    sk_sph_system system;
    sk_sph_progress progress; /* before the first iteration */
    sk_sph_ending ending;
    sk_sph_bounds bounds;
    sk_sph_friction_frame friction;
    sk_sph_viscous_shape viscosity;
    int pair_forces; /*      there are forces between particles */
    int pressure;    /*      attribute */
    float gain[3];   /* m/s  of gravity */
} sk_cuda_sph_constants;

/* What the host sends at the start of a step. */
typedef struct sk_cuda_sent {
    sk_step step;
    selkie_scene scene;
    sk_cuda_constants constants;
    sk_sph sph;
    sk_cuda_sph_constants sph_constants;
} sk_cuda_sent;

/* Force and torque of SPH on a part of the walls, by their origin: friction of no-slip surfaces (in units of particle
 * mass / step), pressure (particle mass / step^2), Coulomb's friction (N, N m). */
enum { SK_CUDA_FORCE_OF_VISCOSITY, SK_CUDA_FORCE_OF_PRESSURE, SK_CUDA_FORCE_OF_RUBBING, SK_CUDA_PART_FORCES };

/* Kinds of solves. */
enum {
    SK_CUDA_PRESSURE,
    SK_CUDA_DENSITY,
    SK_CUDA_DENSITY_AGAIN,
    SK_CUDA_VISCOSITY,
    SK_CUDA_VISCOSITY_AGAIN,
    SK_CUDA_HEAT,
    SK_CUDA_SOLVES
};
enum { SK_CUDA_REMEMBERED = 3 };

enum { SK_CUDA_GRAPHS = 64, SK_CUDA_KERNELS = 192 };

#ifdef SK_CUDA_EMULATED
typedef int sk_cuda_graph, sk_cuda_condition;
#else
typedef cudaGraphExec_t sk_cuda_graph;
typedef cudaGraphConditionalHandle sk_cuda_condition;
#endif

/* Times of kernels or graphs. While kernels are timed, they run one by one and not in graphs. Times of graphs are read
 * at the end of a step. */
enum { SK_CUDA_TIMED_GRAPHS = 256 };
typedef struct sk_cuda_profile {
    enum sk_cuda_timed timed;
    int count;
    sk_cuda_time kernels[SK_CUDA_KERNELS];
#ifndef SK_CUDA_EMULATED
    cudaEvent_t begin[SK_CUDA_TIMED_GRAPHS], end[SK_CUDA_TIMED_GRAPHS];
    const char *graphs[SK_CUDA_TIMED_GRAPHS];
    int graph_count; /* in this step */
#endif
} sk_cuda_profile;

/* The solids: slots of the places, and what the device has of the obstacles. */
typedef struct sk_cuda_solids {
    int32_t *static_slots, *slots; /* [places] of static solids alone, and of this step */
    int32_t *list;                 /* [places] places near moving solids */
    uint8_t *listed;               /* [places] is in the list */
    int list_count;
    size_t capacity; /* slots of the device's arrays */
    sk_obstacle *obstacle_copies;
    sk_obstacle *obstacles;       /* device */
    uint64_t *bins;               /* device */
    sk_cuda_shape *shapes;        /* device: of obstacles, sources, drains and regions */
    sk_cuda_shape *source_shapes; /* host's copy: of sources and drains */
    int first_region;             /* the first shape of a region of liquid boundaries */
    int has_thin;                 /* an obstacle may have walls that the grid does not resolve: grid/barriers.h */
    sk_grid near;                 /* the places of the last update as a grid: coordinates, and with bodies faces */
    int near_capacity;
    int32_t *near_number; /* [places] blocks of that grid, 0 = none; NULL without bodies, 0 between uses */
} sk_cuda_solids;

typedef struct sk_cuda_pinned sk_cuda_pinned; /* frames.cu */
typedef struct sk_cuda_sums sk_cuda_sums;     /* probes.cu */

struct sk_cuda {
    cudaStream_t stream, body_stream;     /* the second one records bodies of repetitions */
    sk_cuda_sent *sent;                   /* pinned */
    sk_cuda_sent *device;                 /* the same on the device */
    sk_cuda_data *data;                   /* on the device */
    sk_cuda_solver *solver;               /* on the device */
    sk_cuda_bounded *bounded;             /* on the device; NULL but for unilateral incompressibility */
    struct sk_cuda_stress *stress;        /* on the device; NULL without viscosity on the grid */
    struct sk_cuda_stress *stress_shadow; /* the host's copy: addresses */
    struct sk_cuda_heat *heat;            /* on the device; NULL without heat */
    sk_cuda_data shadow;                  /* the host's copy: addresses */
    sk_cuda_solver solver_shadow, part_shadow;
    sk_cuda_results *results; /* pinned */
    void **allocations;
    int allocation_count, allocation_room;
    size_t bytes;
    struct {
        const char *name;
        sk_cuda_graph graph;
    } graphs[SK_CUDA_GRAPHS];
    int graph_count;
    sk_cuda_profile *profile;    /* NULL = none */
    sk_cuda_condition condition; /* of the repetition that is being recorded; 0 = none */

    sk_particle *records[2]; /* device; records[current] is valid */
    uint32_t *attributes[SK_MAX_ATTRIBUTES][2];
    int current;
    size_t particle_capacity;
    int expected_blocks;              /* of the grid; launches are as wide */
    int first_blocks;                 /* to reserve at the start; 0 = what the particles need */
    int64_t device_count;             /* particles on the device, dead ones included */
    int host_changed, particles_here; /* the host's copies are newer, or up to date */
    int grid_here;                    /* 1 = the host has its blocks, 2 = with their fields */
    int began;                        /* the step's constants are on the device */
    int has_keys;                     /* the last phase has found the places of the particles */
    int sorted_ahead;                 /* the sort after a density projection has been launched */
    cudaEvent_t results_here;         /* the results of the density projection have been copied */
    cudaStream_t copy_stream;         /* copies frames: frames.cu */
    void *stage;                      /* device: the particles of the last frame */
    size_t stage_bytes;
    sk_cuda_pinned *pinned;         /* memory of the host for frames; NULL = none yet */
    cudaEvent_t staged, stage_free; /* they are there, and have been copied on */
    struct {
        int iterations[SK_CUDA_REMEMBERED], twice[SK_CUDA_REMEMBERED];
    } last[SK_CUDA_SOLVES]; /* of the last solves of each kind, the latest first */
    sk_cuda_solids solids;
    sk_sph sph_shadow;       /* addresses of SPH's arrays on the device */
    float *surface_pressure; /* device: step->surface_pressure; NULL = none */
    int walls_sent;
    size_t wall_bytes[4]; /* of the boundary particles, their cells, the table of their blocks, and the parts */
    double (*part_forces)[SK_CUDA_PART_FORCES][6]; /* device: [parts]; NULL = no probe measures them */
    struct sk_cuda_roles *roles;         /* device: liquid boundaries; NULL = none. Not among the allocations */
    struct sk_object_frame *role_frames; /* the objects with the device's addresses */
    size_t role_bytes;
    sk_cuda_sums *sums; /* of probes; NULL = none yet. Not among the allocations */
    size_t sum_bytes;
    struct sk_cuda_drag *drag;         /* no-slip bodies in the viscous solve; NULL = none */
    struct sk_cuda_bodies *bodies;     /* rigid bodies in the liquid; NULL = none. Not among the allocations */
    struct sk_cuda_soft *soft;         /* bodies of particles; likewise */
    struct sk_cuda_splashes *splashes; /* likewise */
    struct sk_cuda_frozen *frozen;     /* likewise: frozen bodies */
    struct {                           /* device: elastoplastic points beside liquids */
        uint32_t *laws;                /* [particles] */
        float *grains;                 /* [capacity][cells] 1 = holds points of sand */
        uint8_t *blocks;               /* [capacity] holds points */
        float (*impulse)[3];           /* [capacity][cells] on the liquid */
    } immersed;
};

/* --- the host's side --- */

selkie_code sk_cuda_failed(int code, const char *what, selkie_error *error);
#define SK_CUDA_TRY(call, what, error)                                                                                 \
    do {                                                                                                               \
        int sk_cuda_code = (int)(call);                                                                                \
        if (sk_cuda_code != 0)                                                                                         \
            return sk_cuda_failed(sk_cuda_code, what, error);                                                          \
    } while (0)

/* Memory on the device; `address` is that of a pointer. Bytes taken are given back by their pointer. */
selkie_code sk_cuda_take(sk_cuda *cuda, void *address, size_t bytes, int zeroed, selkie_error *error);
void sk_cuda_give(sk_cuda *cuda, void *memory, size_t bytes);
/* The solids of all places, at the start and after the memory has changed; those of a step that begins; the device's
 * arrays in the step that is sent, from `arrays`. */
selkie_code sk_cuda_take_solids(sk_step *step, selkie_error *error);
selkie_code sk_cuda_move_solids(sk_step *step, selkie_error *error);
/* Moves the solids to their pose at the end of a step that runs. The slots of the blocks follow. */
selkie_code sk_cuda_end_solids(sk_step *step, selkie_error *error);
void sk_cuda_point_solids(const sk_step *step, const sk_solids *arrays);
/* The solids of the step in other places, which become the grid `near`: in their order, and all places near moving
 * solids among them. Then those that the host has changed there, to the device; a kernel looks up the slots. */
selkie_code sk_cuda_near_solids(sk_step *step, const int32_t *places, int count, selkie_error *error);
selkie_code sk_cuda_send_near_solids(sk_step *step, selkie_error *error);
void sk_cuda_release_solids(sk_cuda *cuda);
/* Velocities of solids that the host has changed in this step; with the poses of bodies at its end. */
selkie_code sk_cuda_send_velocities(sk_step *step, selkie_error *error);
selkie_code sk_cuda_send_ends(sk_step *step, selkie_error *error);
/* Gives back the memory of bodies. */
void sk_cuda_release_bodies(sk_cuda *cuda);
/* Bodies of particles, where the scene has some: their state, made when it is asked for first; the address of the
 * device's copy, into the step that is sent; the host has other points. */
selkie_code sk_cuda_take_soft(sk_step *step, selkie_error *error);
void sk_cuda_point_soft(sk_cuda *cuda);
void sk_cuda_soft_changed(sk_cuda *cuda);
void sk_cuda_release_soft(sk_cuda *cuda);
/* Splashes: does the step have droplets apart from the particles, or had some; bytes; gives back their memory. */
int sk_cuda_has_droplets(const sk_cuda *cuda);
size_t sk_cuda_splash_bytes(const sk_cuda *cuda);
void sk_cuda_release_splashes(sk_cuda *cuda);
/* Gives back the memory of frozen bodies. */
void sk_cuda_release_frozen(sk_cuda *cuda);
/* Gives back the memory of liquid boundaries. */
void sk_cuda_release_roles(sk_cuda *cuda);
/* Gives back the pinned memory that frames left, once all of them are written. */
void sk_cuda_release_frames(sk_cuda *cuda);
/* Gives back the memory of probes. */
void sk_cuda_release_sums(sk_cuda *cuda);
/* Makes room for more particles; those on the device stay. */
selkie_code sk_cuda_reserve_particles(sk_step *step, size_t count, selkie_error *error);
/* Makes room for the particles and blocks of a step that begins. */
selkie_code sk_cuda_make_room(sk_step *step, selkie_error *error);
/* Sends the step to the device if this has not happened in this step. */
selkie_code sk_cuda_begin(sk_step *step, selkie_error *error);
/* Runs a list of launches: records it as a graph the first time. `name` is a literal. */
typedef void (*sk_cuda_launches)(sk_cuda *cuda, const sk_step *step);
selkie_code sk_cuda_run(sk_step *step, const char *name, sk_cuda_launches launches, selkie_error *error);
/* Makes room for more blocks after a sort that had too few. The particles before it are still there. */
selkie_code sk_cuda_grow(sk_step *step, selkie_error *error);
/* Remembers how a solve of a kind went. The next one is launched with as many iterations and second visits as the last
 * ones needed: what it does not need costs little, what is missing runs in a loop that is slower. */
void sk_cuda_remember_solve(sk_cuda *cuda, int kind, int iterations, int twice);
/* The results of a density projection: asks for them, and waits for them. The sort that follows needs none. */
selkie_code sk_cuda_ask_results(sk_step *step, selkie_error *error);
selkie_code sk_cuda_await_results(sk_step *step, selkie_error *error);
/* Waits and copies the results. */
selkie_code sk_cuda_read_results(sk_step *step, selkie_error *error);
/* Takes the times of the graphs of a step that is over, and releases the profile. */
void sk_cuda_take_graph_times(sk_cuda *cuda);
void sk_cuda_end_profile(sk_cuda *cuda);
/* Launches repeat while the device asks for it, within sk_cuda_run. A kernel before them and the last of them set the
 * condition. `done` is the flag on the device that says the same, for runs without a graph. */
sk_cuda_condition sk_cuda_new_condition(sk_cuda *cuda);
void sk_cuda_repeat(sk_cuda *cuda, const sk_step *step, sk_cuda_launches body, const int *done);

/* --- launches ---
 *
 * A kernel may start before its predecessors in the graph are done. SK_CUDA_WAIT waits for them. The first thread block
 * of a kernel waits on all its paths, so that the kernel is not done before them; others may return if they have
 * nothing to do. Before the wait a kernel may only read what no kernel of the same graph writes: iterations of the
 * solver read the matrix. SK_LAUNCH_AFTER starts a kernel when all before it are done; those after it may read what
 * they wrote. */
#ifdef SK_CUDA_EMULATED
#define SK_CUDA_WAIT() ((void)0)
#define SK_CUDA_LET_NEXT_START() ((void)0)
#define SK_CUDA_TEAM_BARRIER(team, threads) __syncthreads()
#define SK_LAUNCH(cuda, kernel, blocks, threads, ...)                                                                  \
    ((void)(cuda), sk_emulate((blocks), (threads), [&] { kernel(__VA_ARGS__); }))
#define SK_LAUNCH_AFTER SK_LAUNCH
#define SK_LAUNCH_LARGE(cuda, kernel, blocks, threads, bytes, ...) SK_LAUNCH(cuda, kernel, blocks, threads, __VA_ARGS__)
#define SK_CUDA_LARGE_SHARED(type, name, count) static type name[count]
#define SK_LAUNCH_SIMPLE(cuda, kernel, blocks, threads, ...)                                                           \
    ((void)(cuda), sk_emulate_simple((blocks), (threads), [&] { kernel(__VA_ARGS__); }))
#else
#define SK_CUDA_LET_NEXT_START() cudaTriggerProgrammaticLaunchCompletion()
#define SK_CUDA_WAIT() (SK_CUDA_LET_NEXT_START(), cudaGridDependencySynchronize())
/* Waits for the other threads of a team, a part of a thread block. */
#define SK_CUDA_TEAM_BARRIER(team, threads) asm volatile("bar.sync %0, %1;" ::"r"((team) + 1), "r"(threads) : "memory")
void sk_cuda_profile_begin(sk_cuda *cuda);
void sk_cuda_profile_end(sk_cuda *cuda, const char *kernel);
static inline int sk_cuda_times_kernels(const sk_cuda *cuda)
{
    return cuda->profile && cuda->profile->timed == SK_CUDA_TIME_KERNELS;
}

template <typename... Parameters, typename... Arguments>
static inline void sk_cuda_launch(sk_cuda *cuda, const char *name, int overlaps, size_t bytes,
                                  void (*kernel)(Parameters...), int blocks, int threads, Arguments... arguments)
{
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute overlap = {};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim.x = (unsigned)blocks;
    config.blockDim.x = (unsigned)threads;
    config.stream = cuda->stream;
    config.dynamicSmemBytes = bytes;
    if (bytes)
        cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    config.attrs = &overlap;
    config.numAttrs = sk_cuda_times_kernels(cuda) || !overlaps ? 0 : 1;
    if (sk_cuda_times_kernels(cuda))
        sk_cuda_profile_begin(cuda);
    cudaLaunchKernelEx(&config, kernel, (Parameters)arguments...);
    if (sk_cuda_times_kernels(cuda))
        sk_cuda_profile_end(cuda, name);
}
#define SK_LAUNCH(cuda, kernel, blocks, threads, ...)                                                                  \
    sk_cuda_launch(cuda, #kernel, 1, 0, kernel, blocks, threads, __VA_ARGS__)
#define SK_LAUNCH_AFTER(cuda, kernel, blocks, threads, ...)                                                            \
    sk_cuda_launch(cuda, #kernel, 0, 0, kernel, blocks, threads, __VA_ARGS__)
/* With so many bytes of shared memory beyond what the kernel declares: its SK_CUDA_LARGE_SHARED. */
#define SK_LAUNCH_LARGE(cuda, kernel, blocks, threads, bytes, ...)                                                     \
    sk_cuda_launch(cuda, #kernel, 1, bytes, kernel, blocks, threads, __VA_ARGS__)
#define SK_CUDA_LARGE_SHARED(type, name, count) extern __shared__ type name[]
#define SK_LAUNCH_SIMPLE SK_LAUNCH
#endif

/* Repeats the launches of sk_cuda_repeat or ends them; the handle is 0 outside of a graph. */
#ifdef SK_CUDA_EMULATED
#define SK_CUDA_SET_CONDITION(handle, go) ((void)(go), (void)(handle))
#else
#define SK_CUDA_SET_CONDITION(handle, go) ((handle) ? cudaGraphSetConditional((handle), (go)) : (void)0)
#endif

/* --- the kernels' side --- */

#ifdef __CUDACC__
#define SK_DEVICE static __device__ __forceinline__
#else
#define SK_DEVICE static inline
#endif

#ifdef SK_CUDA_EMULATED
enum { SK_CUDA_WIDE = 8, SK_CUDA_THREADS = 32, SK_CUDA_ONE = 32, SK_CUDA_SUMS = 2 };
#else
/* Thread blocks of a launch over cells or particles, their threads, the threads of a launch of one thread block, and
 * thread blocks of a launch that adds up. */
enum { SK_CUDA_WIDE = 132 * 8, SK_CUDA_THREADS = 256, SK_CUDA_ONE = 1024, SK_CUDA_SUMS = 132 * 4 };
#endif

/* Loops over the cells of all blocks, one a thread. */
#define SK_CUDA_EACH_CELL(cell, step)                                                                                  \
    for (size_t cell##_at = SK_BLOCK_CELLS + blockIdx.x * (size_t)blockDim.x + threadIdx.x;                            \
         cell##_at < (size_t)(step)->grid.block_count * SK_BLOCK_CELLS; cell##_at += (size_t)gridDim.x * blockDim.x)   \
        if (sk_plain_cell cell = {(int)(cell##_at / SK_BLOCK_CELLS), (int)(cell##_at % SK_BLOCK_CELLS)}; true)

#define SK_CUDA_EACH_BLOCK(block, step)                                                                                \
    for (int block = 1 + (int)blockIdx.x; block < (step)->grid.block_count; block += (int)gridDim.x)

#define SK_CUDA_EACH(index, count)                                                                                     \
    for (size_t index = blockIdx.x * (size_t)blockDim.x + threadIdx.x; index < (size_t)(count);                        \
         index += (size_t)gridDim.x * blockDim.x)

/* Sum over the threads of a block, in a fixed order; every thread gets it. */
template <typename T> SK_DEVICE T sk_cuda_sum(T value)
{
    __shared__ T part[32];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, warps = ((int)blockDim.x + 31) / 32;
    for (int n = 16; n > 0; n /= 2)
        value += __shfl_xor_sync(~0u, value, n);
    __syncthreads();
    if (lane == 0)
        part[warp] = value;
    __syncthreads();
    T sum = part[0];
    for (int n = 1; n < warps; n++)
        sum += part[n];
    return sum;
}

/* Largest value of the threads of a block; NaN stays. */
SK_DEVICE double sk_cuda_largest_of(double a, double b)
{
    return a != a || a > b ? a : b;
}
SK_DEVICE double sk_cuda_largest(double value)
{
    __shared__ double part[32];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, warps = ((int)blockDim.x + 31) / 32;
    for (int n = 16; n > 0; n /= 2)
        value = sk_cuda_largest_of(value, __shfl_xor_sync(~0u, value, n));
    __syncthreads();
    if (lane == 0)
        part[warp] = value;
    __syncthreads();
    double largest = part[0];
    for (int n = 1; n < warps; n++)
        largest = sk_cuda_largest_of(largest, part[n]);
    return largest;
}

/* Sum of the values of the threads before this one; `total` gets the sum of all. */
SK_DEVICE int sk_cuda_scan(int value, int *total)
{
    __shared__ int part[32];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, warps = ((int)blockDim.x + 31) / 32;
    int sum = value;
    for (int n = 1; n < 32; n *= 2) {
        const int before = __shfl_up_sync(~0u, sum, n);
        sum += lane >= n ? before : 0;
    }
    __syncthreads();
    if (lane == 31)
        part[warp] = sum;
    __syncthreads();
    int before = 0, all = 0;
    for (int n = 0; n < warps; n++) {
        before += n < warp ? part[n] : 0;
        all += part[n];
    }
    __syncthreads();
    *total = all;
    return before + sum - value;
}

/* Is this the last of the first `blocks` thread blocks of the launch to come here? It then sees what the others have
 * written. */
SK_DEVICE bool sk_cuda_is_last_of(unsigned *ticket, unsigned blocks)
{
    __shared__ int last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(ticket, 1u) == blocks - 1;
        if (last)
            *ticket = 0;
    }
    __syncthreads();
    if (last)
        __threadfence();
    return last != 0;
}
SK_DEVICE bool sk_cuda_is_last(unsigned *ticket)
{
    return sk_cuda_is_last_of(ticket, gridDim.x);
}

#endif
