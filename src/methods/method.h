/* A method: everything that the world needs to run it, in one const struct.
 *
 * The world holds a list of descriptors (src/world/methods.c). It calls takes_part of each, creates the methods that
 * take part, sorts their phases by slot, and runs them. It names no method outside that list.
 *
 * Order of a step: by slot; within a slot by the order of the list of methods; within a method by the order of its
 * table. A phase marked SK_PHASE_REPLACES takes the place of the phase of its name in its slot.
 */
#ifndef SK_METHODS_METHOD_H
#define SK_METHODS_METHOD_H

#include "base/backend.h"
#include "methods/force_fields.h"
#include "methods/step.h"

typedef enum sk_slot {
    SK_SLOT_EXCHANGE,     /* particles come, go and change roles */
    SK_SLOT_SORT,         /* particles into the order of their cells, blocks of the grid */
    SK_SLOT_SOLIDS,       /* pose and velocity of obstacles, open fractions */
    SK_SLOT_POSITIONS,    /* corrections of positions */
    SK_SLOT_TO_GRID,      /* particles to faces; neighbour lists */
    SK_SLOT_CLASSIFY,     /* liquid, air and solid cells */
    SK_SLOT_CONSTRAIN,    /* after the classification and before the forces */
    SK_SLOT_FORCES,       /* gravity and force fields */
    SK_SLOT_VISCOSITY,    /* viscous stress, friction */
    SK_SLOT_TARGET,       /* target of the pressure solve: divergence, predicted density, prescribed motion */
    SK_SLOT_PRESSURE,     /* incompressibility */
    SK_SLOT_BODIES,       /* rigid bodies move under the forces of the liquid */
    SK_SLOT_EXTRAPOLATE,  /* velocities into the air and solids beside the liquid */
    SK_SLOT_TO_PARTICLES, /* velocities from faces to particles */
    SK_SLOT_SHIFT,        /* displacements before the move */
    SK_SLOT_MOVE,         /* positions follow velocities */
    SK_SLOT_AFTER,        /* corrections and sums at the end of a step */
    SK_SLOT_COUNT
} sk_slot;

/* The resources of a method. A world has the union of its methods' needs, and nothing else. */
enum sk_needs {
    SK_NEEDS_PARTICLES = 1,
    SK_NEEDS_GRID = 2,
    SK_NEEDS_SPLIT_MOVE = 4 /* velocities reach particles in a phase of their own, before positions change */
};

/* When the world runs phases outside of a step. */
enum sk_phase_flag {
    SK_PHASE_CORRECTS = 1, /* changes positions: skipped when the world only measures, run when it settles a start */
    SK_PHASE_REPLACES = 2  /* replaces the phase of its name in its slot */
};

enum { SK_METHOD_MAX_PHASES = 16 };

typedef struct sk_phase_def {
    const char *name; /* a column of stats.csv, NAME_ms */
    sk_slot slot;
    int flags;                                  /* sk_phase_flag */
    sk_phase_function run[SK_BACKEND_COUNT][2]; /* [backend][dimension - 2] */
    int (*when)(const sk_step *step);           /* NULL = always; evaluated once, when the world is made */
    int (*again)(const sk_step *step);          /* NULL = never; evaluated after the phase: go back to `again_from`? */
    const char *again_from;                     /* a phase of the same method */
} sk_phase_def;

/* A piece of state for checkpoints. */
typedef struct sk_chunk_view {
    const char *name; /* at most 23 characters; NULL = none */
    const void *data;
    uint64_t bytes;
} sk_chunk_view;

/* Limits of the time step: dt = cfl x length / (speed + extra). A method raises or lowers its entries. */
typedef struct sk_step_limits {
    double length; /* m    the cell size, or a method's own */
    double speed;  /* m/s  the fastest thing that moves */
    double extra;  /* m/s  added to it */
    double waves;  /* m/s  that the step resolves beside these: the larger of the two counts */
    double step; /* s    longest step that resolves what the method moves, not below a quarter of the longest allowed; 0
                    = any */
} sk_step_limits;

typedef struct sk_method {
    const char *name;
    int needs;                                    /* sk_needs */
    uint64_t fields;                              /* of the grid, by SK_FIELD_BIT */
    int (*takes_part)(const selkie_scene *scene); /* NULL = wherever there are particles */
    int (*also_needs)(const selkie_scene *scene); /* sk_needs that depend on the scene; NULL = none */

    /* Life cycle. create runs before the liquids are sampled, populate after; destroy undoes both, also after a
     * failure. Each may be NULL. check reports the input errors of create and populate, with grid and solids but
     * without particles. */
    selkie_code (*check)(const sk_step *step, selkie_error *error);
    selkie_code (*create)(sk_step *step, selkie_error *error);
    selkie_code (*populate)(sk_step *step, selkie_error *error);
    void (*destroy)(sk_step *step);

    /* The step. begin runs before the first phase, and before each round of settling the start. */
    void (*begin)(sk_step *step);
    sk_phase_def phases[SK_METHOD_MAX_PHASES];       /* up to the first without a name */
    int (*settle_rounds)(const selkie_scene *scene); /* of the phases up to POSITIONS before the first step */
    /* Steps of dt (s) without gravity, from rest to rest, before the first one of a new world, until no particle moves
     * by more than `still` (m); 0 = none. */
    int (*relax_rounds)(const sk_step *step, double *dt, double *still);
    int keeps_rest_volume; /* volume_ratio compares with the volume at rest, not at the start */
    void (*limit_step)(const sk_step *step, sk_step_limits *limits);
    /* After a step of a fixed length (time.step): was it too long? If so, writes a reason for the warning. */
    int (*step_too_long)(sk_step *step, const selkie_statistics *statistics, char *reason, size_t size);

    /* After each step until there is one: a warning, one line that names a key? Returns whether it wrote one. */
    int (*warn)(const sk_step *step, char *text, size_t size);

    selkie_code (*measure)(sk_step *step, selkie_error *error); /* sums over particles, outside of a step */

    /* State and values for checkpoints, statistics and probes. */
    sk_chunk_view (*state)(const sk_step *step); /* beyond particles, for checkpoints */
    selkie_code (*restore)(sk_step *step, const sk_chunk_view *chunk, const char *file, selkie_error *error);
    void (*statistics)(const sk_step *step, selkie_statistics *statistics); /* fills its columns */
    /* Pressure (component -1, Pa) or velocity (m/s) at a point (m), for methods that do not keep them on the grid. */
    double (*value_at)(const sk_step *step, const double at[3], int component);
    /* The picture of a field that moves along, [height][width][3] in sRGB, top row first. Without pixels: its width and
     * height alone, 0 where there is none. */
    void (*paint)(const sk_step *step, int size[2], uint8_t *pixels);
    /* Force of the liquid (N) on "walls", an obstacle or a body, and its torque (N m) about a point (m); returns 0 for
     * a name that it does not measure. */
    int (*force_on)(const sk_step *step, const char *name, const double about[3], double force[3], double torque[3]);

    /* The plan. */
    double (*bytes_per_particle)(const selkie_scene *scene);
    double (*bytes_per_cell)(const selkie_scene *scene);
    double (*step_length)(const selkie_scene *scene); /* m  limits->length, from the scene alone */
} sk_method;

typedef struct sk_method_list {
    int count;
    const sk_method *const *methods;
} sk_method_list;

/* Values of an entry's `run`: both forms; the tuned form only; one form in plain C that serves both. */
#define SK_FORMS(tuned, plain)                                                                                         \
    {                                                                                                                  \
        [SK_BACKEND_TUNED] = {tuned##_2d, tuned##_3d}, [SK_BACKEND_PLAIN] = { plain##_2d, plain##_3d }                 \
    }
#define SK_TUNED_ONLY(function)                                                                                        \
    {                                                                                                                  \
        [SK_BACKEND_TUNED] = { function##_2d, function##_3d }                                                          \
    }
#define SK_ONE_FORM(function)                                                                                          \
    {                                                                                                                  \
        [SK_BACKEND_TUNED] = {function##_2d, function##_3d}, [SK_BACKEND_PLAIN] = { function##_2d, function##_3d }     \
    }
#define SK_ONE_FORM_ANY_DIMENSION(function)                                                                            \
    {                                                                                                                  \
        [SK_BACKEND_TUNED] = {function, function}, [SK_BACKEND_PLAIN] = { function, function }                         \
    }

#endif
