/* One list of checks for every method.
 *
 * A *method* is a row of the table in methods.c: how a scene is set for it, and what it does not pass today. A *check*
 * is a function that makes a scene, runs it and measures; the tables at the end of each family's file list them. A
 * *case* is one check of one method in one dimension with one length of step, named "check/2d/20ms".
 *
 * The quick half leaves out cases. It never shortens one, so that a case means the same in both halves.
 *
 * Scenes are built in the frame of the check: x along, y up, z deep, the lower corner of the domain at 0. The frame is
 * turned and moved when the world is made, so that a check can ask whether either shows.
 */
#ifndef SELKIE_CHECKS_H
#define SELKIE_CHECKS_H

#include <stdint.h>
#include <stdio.h>
#include <selkie/selkie.h>

#define GRAVITY 9.81 /* m/s2 */

typedef struct check_scene check_scene;

/* --- Methods --- */

/* Tolerances follow from how a method is made: on a grid or not, and what its forces keep exactly. CLASS_MIXED is
 * CLASS_GRID with the many steps of SPH. */
typedef enum method_class { CLASS_GRID, CLASS_UNILATERAL, CLASS_SPH, CLASS_MIXED } method_class;

typedef enum exception_kind {
    EXCEPTION_FAILS = 1, /* fails today; the program complains when it passes, or measures twice the figure listed */
    EXCEPTION_UNSTABLE,  /* near its bound: passes or fails with the machine's arithmetic; never counted */
    EXCEPTION_UNTRIED,   /* never run to its end so far; run by --long, never counted */
    EXCEPTION_NO_MEANING /* the method does not promise it, or cannot have such a scene; not run */
} exception_kind;

/* What a method does not pass. `cases` is a pattern as of fnmatch(3) over the names of cases; the first that matches
 * counts. A list ends with cases == NULL. A reason ends with the worst figure and the bound: "0.3 of 0.002". */
typedef struct exception {
    const char *cases;
    exception_kind kind;
    const char *reason;
} exception;

typedef struct method {
    const char *name;
    const char *about;           /* in the words of a user */
    void (*set)(check_scene *t); /* changes a finished scene so that this method runs it */
    method_class kind;
    int affine; /* particles carry motion that the energy statistics leave out */
    const exception *exceptions;
} method;

extern const method methods[];
extern const exception untried[]; /* of all methods, after their own lists */
extern const int method_count;

/* --- Checks --- */

/* One run of one case, and the worst of what it measured. */
typedef struct check_run {
    const method *method;
    int dimension;
    double step; /* s; 0 = default steps */

    int failed;        /* something could not be measured: `measure` says what */
    double value;      /* of the measure that is worst over its bound */
    double bound;      /* NaN or above the bound fails */
    double seconds;    /* s of CPU time */
    char measure[160]; /* what was measured, with its unit */
} check_run;

enum { STEP_DEFAULT = 1, STEP_1_MS = 2, STEP_5_MS = 4, STEP_10_MS = 8, STEP_20_MS = 16, STEP_LENGTHS = 5 };

typedef struct check {
    const char *name;
    const char *demands; /* one line, for --list and the manual */
    void (*run)(check_run *run);
    int steps[2];     /* lengths of step in 2D and 3D */
    int quick[2];     /* those of them in the quick half, on a grid */
    int quick_sph[2]; /* and for SPH and mixed methods, whose steps are many */
} check;

typedef struct family {
    const char *name;
    const check *checks;
    int count;
} family;

extern const family *const families[];
extern const int family_count;
extern const family rest_family, motion_family, solids_family, bits_family, running_family;

/* Records a measure; the one that is worst over its bound is kept. */
void run_measure(check_run *run, const char *measure, double value, double bound);
void run_fail(check_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- Scenes --- */

/* A scene with room for the arrays that it points to. Not to be moved once something was added. */
struct check_scene {
    selkie_scene scene;
    double origin[3]; /* m  where the frame's lower corner lies */
    int axis[3];      /*    the axis of the scene that the frame's x, y and z lie along */
    selkie_liquid_def liquids[4];
    selkie_obstacle_def obstacles[2];
    selkie_source_def sources[1];
    selkie_drain_def drains[1];
    selkie_object_def objects[2];
    selkie_body_def bodies[4];
    selkie_keyframe keyframes[2][3];
    selkie_material_def materials[2];
};

/* A closed tank of so many cells of CELL metres, gravity downwards. */
#define CELL (1.0 / 32)
void scene_tank(check_scene *t, const check_run *run, int x, int y, int z);
void scene_no_gravity(check_scene *t);
/* Lengths in cells from here on; z is ignored in 2D. */
selkie_shape shape_box(double x0, double y0, double z0, double x1, double y1, double z1);
selkie_shape shape_ball(double x, double y, double z, double radius);
/* Below the plane through (x, y) with the normal (nx, ny). */
selkie_shape shape_below(double x, double y, double nx, double ny);
selkie_liquid_def *scene_liquid(check_scene *t, selkie_shape shape);
selkie_obstacle_def *scene_obstacle(check_scene *t, selkie_shape shape);
selkie_source_def *scene_source(check_scene *t, selkie_shape shape);
selkie_drain_def *scene_drain(check_scene *t, selkie_shape shape);
void set3(double v[3], double x, double y, double z);

/* --- Worlds --- */

/* Sets the method, turns and moves the frame, makes the world. NULL after run_fail(). `t` can be used for one world. */
selkie_world *world_make(check_run *run, check_scene *t, int threads);
/* 0 after run_fail(). */
int world_step(check_run *run, selkie_world *world);
int world_run_until(check_run *run, selkie_world *world, double time);

/* Liquid particles (not those of solids), in the frame of the check. */
typedef struct particle_reader {
    int64_t count; /* of all particles */
    const check_scene *scene;
    selkie_attribute_view position, velocity, role;
    int has_role;
} particle_reader;

particle_reader reader_make(const selkie_world *world, const check_scene *t);
/* 0 for a particle that is part of a solid. Metres, metres a second. */
int reader_get(const particle_reader *reader, int64_t p, double x[3], double v[3]);

typedef struct particle_sums {
    int64_t count;                   /*       liquid particles */
    double position[3], velocity[3]; /* m, m/s: means */
    double kinetic;                  /* m2/s2 mean of v^2 / 2 */
    double angular[3];               /* m2/s  mean of (x - center) x v */
    double spread;                   /* m/s   largest distance of a velocity from the mean */
    int64_t not_finite;
} particle_sums;

particle_sums world_sums(const selkie_world *world, const check_scene *t, const double center[3]);
/* J: kinetic and potential energy by the statistics. */
double world_energy(const selkie_world *world);
/* kg: of all particles. */
double world_mass(const selkie_world *world);
/* All bits of all particles, in their order. */
uint64_t world_hash(const selkie_world *world);

/* --- Reports (report.c) --- */

typedef enum verdict {
    VERDICT_NOT_RUN,
    VERDICT_PASS,
    VERDICT_FAIL,
    VERDICT_KNOWN,      /* fails, and is listed */
    VERDICT_UNSTABLE,   /* listed as near its bound */
    VERDICT_UNTRIED,    /* listed as not tried before; its measure says what to list */
    VERDICT_NOW_PASSES, /* listed as a failure, but passes: the list is wrong */
    VERDICT_NO_MEANING
} verdict;

typedef struct check_case {
    const family *family;
    const check *check;
    int step_index;
    char name[64];
    const exception *listed; /* or NULL */
    check_run run;
    verdict verdict;
} check_case;

void report_case(const check_case *c, int done, int count);
void report_table(const check_case *cases, int count);
void report_markdown(const check_case *cases, int count);
/* Appends a finished case; reads results back into the cases that they belong to. */
void report_record(FILE *file, const check_case *c);
int report_read(const char *path, check_case *cases, int count);
verdict case_verdict(const check_case *c);
extern const double step_seconds[STEP_LENGTHS];
extern const char *const step_names[STEP_LENGTHS];

#endif
