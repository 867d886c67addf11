/* The data of a phase: the state, the constants, and the results that it reports.
 *
 * A method is a list of phases. The world joins the lists of the methods that take part and times each phase. A phase
 * never calls another one.
 */
#ifndef SK_METHODS_STEP_H
#define SK_METHODS_STEP_H

#include <selkie/world.h>
#include "base/arena.h"
#include "base/backend.h"
#include "base/kernel.h"
#include "base/memory.h"
#include "grid/grid.h"
#include "grid/solids.h"
#include "grid/transfer.h"
#include "linalg/bounded.h"
#include "linalg/poisson.h"
#include "particles/store.h"

enum { SK_STEP_MAX_METHODS = 32 };
/* Sums over particles of different masses. */
typedef struct sk_mass_sums {
    double kinetic;          /* J */
    double mass;             /* kg */
    double moment[3];        /* kg m  mass times position, now */
    double moment_before[3]; /* kg m  and before the last step */
} sk_mass_sums;

struct sk_step;

/* The particles of a block after the advection moved them. They are still in the order of the last sort. */
typedef struct sk_moved_block {
    int slot;
    const sk_particle *records;
    int64_t count;
    float low[3], high[3]; /* m  box that contains them */
} sk_moved_block;

/* Something that sees the particles of each block after the advection moved them, while they are in the cache. It sees
 * each of them once; moves is then that of the particles. If they move again before the end of the step, moves differs
 * and what was seen does not count. */
typedef struct sk_watch {
    /* The grid is still that of the last sort. */
    selkie_code (*begin)(struct sk_watch *watch, const struct sk_step *step, selkie_error *error);
    void (*see)(struct sk_watch *watch, const struct sk_step *step, const sk_moved_block *block, int thread);
    uint64_t moves;
} sk_watch;

typedef struct sk_step {
    /* constants */
    const selkie_scene *scene; /* its gravity is that of the step: the mean in the moving frame (geom/frame.h) */
    int up_axis, up_sign;      /* the axis that is nearest to up at rest, and which way along it */
    sk_memory *memory;
    int threads;
    sk_backend backend;
    int needs; /* sk_needs of all methods together (method.h) */
    int dimension;
    int particles_per_cell;
    double density;       /* kg/m3 at rest, of the first material: the reference density */
    double particle_mass; /* kg (2D: for a depth of one metre), of the first material */
    /* [SK_TRANSFER_MATERIALS] density of each material over the reference density; NULL = one density. */
    const float *relative_density;
    /* [SK_TRANSFER_MATERIALS] not 0 = liquid; NULL = all particles are. */
    const uint8_t *liquid_mask;

    /* state */
    sk_particles particles;
    sk_grid grid;
    sk_solids solids;
    sk_poisson_solver *solver;
    sk_bounded_solver *bounded;         /* NULL unless incompressibility is unilateral */
    struct sk_sources *sources;         /* NULL if the scene has none */
    struct sk_sph *sph;                 /* NULL but for method sph */
    struct sk_liquid_boundary *objects; /* NULL if the scene has none */
    struct sk_rigid *rigid;             /* NULL without bodies */
    struct sk_soft *soft;               /* NULL without bodies of particles */
    struct sk_cuda *cuda;               /* NULL but for the backend cuda: src/cuda/cuda.h */
    double most_lightness;              /* of a face, where a method raises it; 0 = that of the lightest material */
    int is_dry;                         /* no particle is liquid: there is no pressure */
    const sk_poisson_modes *modes;      /* bodies in the pressure solve of this step; NULL without */
    struct sk_method_state {
        const struct sk_method *owner;
        void *state;
    } states[SK_STEP_MAX_METHODS]; /* private states of methods: sk_step_state */
    double time;                   /* s  at the start of the step */
    double dt;                     /* s  of this step */
    double end_time;               /* s  at its end: time + dt but for rounding, since steps end exactly on frames */
    double last_dt;                /* s  of the step before, 0 at the start */
    double start_speed;            /* m/s  of the fastest particle at the start of the step */
    double reflection;             /*    rho of this step, 0 = none: see flip/reflection_kernels.h */
    int viscous_push; /* first of the three fields of the normal impulse of viscosity (m/s, as POTENTIAL); 0 = none */
    int balance;  /* first of the three fields of the change by the pressure that balances gravity (m/s); 0 = none */
    int balanced; /* they hold that of this step, POTENTIAL its potential, and the solver the matrix */
    const sk_poisson_modes *balanced_modes; /* bodies in it */
    int viscous_iterations;                 /* of the last viscous solve on the grid */
    double viscous_residual; /* where a viscous solve stalled near its tolerance, the largest so far; 0 = none did */
    int tension_push;        /* first of the three fields of the impulse of surface tension on faces (m/s); 0 = none */
    int capillary;  /* unilateral: field of the pressure of surface tension (m/s, as POTENTIAL) in the cells at the
                     * border of the full ones; 0 = none */
    int full_cells; /* unilateral: field that is not negative in full cells; 0 = none */
    const float *surface_pressure; /* m2/s2  sph: of surface tension over the density, of each particle; NULL = none */
    int end_velocity; /* first of the three fields of the velocity at the end of the step; VELOCITY_X without reflection
                       */
    int before_walls; /* FLIP: first of the three fields of the particles' velocity on the faces of blocks with
                       * obstacles, before forces and pressure (m/s); 0 = none */
    int64_t step_count;
    int64_t emitted, drained; /* particles since the start */
    int64_t exchanged;        /* emitted - drained when the volume was measured */
    int has_expansion; /* SK_FIELD_POTENTIAL holds the flux (m/s) that must leave each cell, for the pressure solve */

    sk_arena arena; /* scratch; the world empties it after each phase */

    /* results of the last step */
    double kernel_volume;  /* cells: sum of min(density, 1 - solid share) */
    double counted_volume; /* cells: Eq. 19 of Kugelstadt et al. 2019 */
    int64_t occupied_cells;
    int64_t liquid_cells;
    sk_watch *watch; /* NULL = none */
    sk_particle_sums sums;
    sk_mass_sums mass_sums;     /* where relative_density is not NULL */
    double positions[3];        /* m  sum of the particles' positions now */
    double positions_before[3]; /* m  and before the last advection */
    sk_poisson_report pressure;
    double surface_volume; /* cells: inside the surface that the fill describes */

    /* results of the volume correction */
    sk_poisson_report density_report;
    double density_error_mean, density_error_max, density_error_std; /* of density over rest density, inner cells */
    int64_t redistributed, pushed_out;                               /* particles in the last step */
    int none_inside;                   /* no particle has the flag SK_PARTICLE_INSIDE; 0 also if that is not known */
    int density_passes, correct_again; /* corrections so far in this step; whether one more is needed */
    int sorts_later; /* a method sorts after the corrections of positions, which then need no sort of their own */

    /* unilateral incompressibility */
    sk_bounded_report unilateral, correction; /* of the pressure, and of the correction of density */
    int shifted;                              /* SHIFT_* holds a correction of this step */
    double overfull; /* largest density above the capacity, over rest density, before the correction */
} sk_step;

/* Whether the scene has solids that the liquid moves: bodies, or particles that are not liquid. */
SK_KERNEL int sk_step_has_moving_solids(const sk_step *step)
{
    return step->scene->body_count > 0 || step->liquid_mask != NULL;
}

/* The state of a method; NULL until it has set one. A method sets it once, in create, and releases it in destroy. */
static inline void *sk_step_state(const sk_step *step, const struct sk_method *owner)
{
    for (int m = 0; m < SK_STEP_MAX_METHODS; m++)
        if (step->states[m].owner == owner)
            return step->states[m].state;
    return NULL;
}

static inline void sk_step_set_state(sk_step *step, const struct sk_method *owner, void *state)
{
    int m = 0;
    while (m < SK_STEP_MAX_METHODS - 1 && step->states[m].owner && step->states[m].owner != owner)
        m++;
    step->states[m].owner = owner;
    step->states[m].state = state;
}

/* Mass (kg) of particle number p. */
SK_KERNEL double sk_step_mass(const sk_step *step, const sk_attribute *material, int64_t p)
{
    return step->relative_density && material
               ? step->particle_mass * step->relative_density[material->data[p] % SK_TRANSFER_MATERIALS]
               : step->particle_mass;
}

/* Gravity acts from the middle of one step to the middle of the next (leapfrog: v is half a step behind x). Free fall
 * is then exact at any step size. A reflected step applies its change 1 + reflection times, so that forces, viscosity
 * and pressure act for a shorter time. */
SK_KERNEL double sk_step_kick(const sk_step *step)
{
    return 0.5 * (step->last_dt + step->dt) / (1.0 + step->reflection);
}

/* At least `bytes` of memory for the phase until it returns. Not cleared. */
static inline selkie_code sk_step_scratch(sk_step *step, size_t bytes, const char *phase, void **memory,
                                          selkie_error *error)
{
    return sk_arena_take(&step->arena, bytes, phase, memory, error);
}

/* Do particles move less than about a cell in a time dt (s), by their last measured speeds? Fewer than 33 % of them
 * then leave their block, and a sort that moves only migrating particles is faster. */
static inline int sk_step_is_calm(const sk_step *step, double dt)
{
    const double speed2 = 2.0 * step->sums.kinetic / (double)(step->particles.count ? step->particles.count : 1);
    const double reach = 0.8 * step->grid.cell_size;
    return speed2 * dt * dt < reach * reach * step->dimension;
}

/* The scene may delay pressure and volume correction (pressure.start). */
SK_KERNEL int sk_step_has_pressure(const sk_step *step)
{
    return step->time >= step->scene->pressure.start - 1e-9 && !step->is_dry;
}

typedef selkie_code (*sk_phase_function)(sk_step *step, selkie_error *error);

typedef struct sk_phase {
    const char *name; /* a column of stats.csv */
    sk_phase_function run;
    int again_from;                    /* the phase to go back to if `again` returns nonzero; -1 = none */
    int (*again)(const sk_step *step); /* evaluated after the phase */
    int slot, flags;                   /* sk_slot, sk_phase_flag (method.h) */
} sk_phase;

/* Runs a phase and releases its scratch memory. */
static inline selkie_code sk_phase_run(const sk_phase *phase, sk_step *step, selkie_error *error)
{
    selkie_code code = phase->run(step, error);
    sk_arena_empty(&step->arena);
    return code;
}

#endif
