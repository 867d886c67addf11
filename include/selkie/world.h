/* The world: state that changes, and the step that changes it.
 *
 * A world is made from a scene, copies what it needs of it, and shares nothing with
 * other worlds: two worlds can run in two threads. One step is a list of named,
 * timed phases (selkie_world_phases). Results do not depend on the number of
 * threads.
 */
#ifndef SELKIE_WORLD_H
#define SELKIE_WORLD_H

#include <stddef.h>
#include <stdint.h>
#include <selkie/scene.h>
#include <selkie/statistics.h>
#include <selkie/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct selkie_world selkie_world;

typedef struct selkie_world_options {
    int threads;         /* 0 = all cores */
    size_t memory_limit; /* bytes the world may use; 0 = the memory of the machine */
    int with_backend;    /* use the backend below, not the scene's */
    selkie_backend backend;
} selkie_world_options;

SELKIE_API void selkie_world_options_defaults(selkie_world_options *options);

/* Memory and size of a scene, without a simulation. */
typedef struct selkie_plan {
    int cells[3];         /*      whole domain */
    double cell_size;     /* m    */
    int64_t particles;    /*      at the start, estimated by sampling the liquids' shapes */
    int64_t liquid_cells; /*      at the start */
    size_t memory_bytes;  /*      expected peak */
    double first_step;    /* s    */
    int64_t frames;       /*      */
    /* Those of bodies of particles, at the start. `particles` counts also the liquid that they displace. */
    int64_t body_particles;
} selkie_plan;

SELKIE_API selkie_code selkie_scene_plan(const selkie_scene *scene, const selkie_world_options *options,
                                         selkie_plan *plan, selkie_error *error);

SELKIE_API selkie_code selkie_world_create(const selkie_scene *scene, const selkie_world_options *options,
                                           selkie_world **world, selkie_error *error);
SELKIE_API void selkie_world_destroy(selkie_world *world);

/* Advances by one step: the scene's fixed step or the CFL number's, shortened
 * to land exactly on the next frame. After an error the world keeps the state
 * of before the step's last completed phase and must not be stepped again. */
SELKIE_API selkie_code selkie_world_step(selkie_world *world, selkie_error *error);

SELKIE_API double selkie_world_time(const selkie_world *world); /* s */
SELKIE_API int64_t selkie_world_step_count(const selkie_world *world);
SELKIE_API int64_t selkie_world_frame(const selkie_world *world); /* last frame reached; 0 at the start */
SELKIE_API int selkie_world_at_frame(const selkie_world *world);  /* the last step landed on a frame */
SELKIE_API int selkie_world_finished(const selkie_world *world);
SELKIE_API const selkie_scene *selkie_world_scene(const selkie_world *world);

/* --- Steering: changes between steps ---
 *
 * A world takes changes between two steps: gravity, forces, obstacles, sources, drains, liquid, pushes
 * (selkie_change_def in scene.h). It keeps a record. A world of the recorded scene, selkie_world_record(), makes the
 * same changes before the same steps and gives the same bits. A change that is refused leaves the world as it was. */
typedef struct selkie_change_report {
    int64_t added;   /* particles of liquid */
    int64_t removed; /* likewise */
} selkie_change_report;

/* Applies a change now; its `step` is ignored. `report` may be NULL. Changes of gravity and forces, motions of
 * obstacles that moved before, and pushes take microseconds. Others build the solids anew and take about as long as a
 * step. */
SELKIE_API selkie_code selkie_world_change(selkie_world *world, const selkie_change_def *change,
                                           selkie_change_report *report, selkie_error *error);
SELKIE_API selkie_code selkie_world_set_gravity(selkie_world *world, const double gravity[3], selkie_error *error);
/* The scene as it was given, with all changes so far in `changes`; valid until the next change. selkie_scene_save()
 * writes it as a file that `selkie run` replays. selkie_world_scene() is the scene as it is now. */
SELKIE_API const selkie_scene *selkie_world_record(const selkie_world *world);

/* One step of `seconds`, whatever the scene says, also past its end. */
SELKIE_API selkie_code selkie_world_step_for(selkie_world *world, double seconds, selkie_error *error);

/* Steps until a time, with callbacks. A callback that does not return 0 ends it, and so does selkie_world_cancel():
 * SELKIE_ERROR_INTERRUPTED, and the world can go on. */
typedef struct selkie_run_options {
    double until;                                           /* s  0 = the end of the scene */
    int (*after_step)(selkie_world *world, void *context);  /*    may be NULL */
    int (*after_frame)(selkie_world *world, void *context); /*    may be NULL; also at the start */
    void *context;
} selkie_run_options;
SELKIE_API selkie_code selkie_world_run(selkie_world *world, const selkie_run_options *options, selkie_error *error);
/* May be called from any thread: selkie_world_run() ends after the step that it is in. */
SELKIE_API void selkie_world_cancel(selkie_world *world);

/* A state in memory. A world that goes back to it continues bit for bit; changes since then are forgotten. */
typedef struct selkie_snapshot selkie_snapshot;
SELKIE_API selkie_code selkie_world_snapshot(const selkie_world *world, selkie_snapshot **snapshot,
                                             selkie_error *error);
SELKIE_API selkie_code selkie_world_go_back(selkie_world *world, const selkie_snapshot *snapshot, selkie_error *error);
SELKIE_API void selkie_snapshot_free(selkie_snapshot *snapshot);
/* Back to the start of the scene; changes by callers are forgotten. */
SELKIE_API selkie_code selkie_world_reset(selkie_world *world, selkie_error *error);

/* Particles, sorted by cell, without copying: component c of particle i of an
 * attribute is at ((const char *)data + i * stride)[c]. Valid until the next step. */
typedef enum selkie_attribute_type { SELKIE_FLOAT32, SELKIE_UINT32 } selkie_attribute_type;

typedef struct selkie_attribute_view {
    const char *name;
    selkie_attribute_type type;
    int components;
    size_t stride;    /* bytes from one particle to the next */
    void *data;       /* may be written between steps; positions must stay inside the domain */
    double origin[3]; /* add it to the values to get scene coordinates: domain.origin for "position", else 0 */
} selkie_attribute_view;

SELKIE_API int64_t selkie_world_particle_count(const selkie_world *world);
SELKIE_API int selkie_world_attribute_count(const selkie_world *world);
SELKIE_API selkie_code selkie_world_attribute(const selkie_world *world, int index, selkie_attribute_view *view);
/* "position" (m, relative to domain.origin: single precision would lose positions far from 0), "velocity" (m/s), "id",
 * and for APIC "affine" (1/s, 9 components) */
SELKIE_API selkie_code selkie_world_find_attribute(const selkie_world *world, const char *name,
                                                   selkie_attribute_view *view, selkie_error *error);
SELKIE_API double selkie_world_particle_mass(const selkie_world *world);
/* kg: the mass of a particle of a material, by its index in the scene's table; 0 if there is no such material. */
SELKIE_API double selkie_world_material_mass(const selkie_world *world, int material); /* kg */

/* Grid fields without copying, block by block. Cell (i,j,k) of the block b lies
 * at domain cell block_coordinates[b] * extent - padding + (i,j,k), and its
 * value at data[(b * cells_per_block) + i + extent[0] * (j + extent[1] * k)].
 * Velocities sit on the lower faces of the cells, the others in the centres.
 * Valid until the next step. */
typedef struct selkie_field_view {
    const char *name;
    int block_count;
    int extent[3];  /* cells of a block along each axis */
    int padding[3]; /* cells of the grid before the domain's lower corner */
    const int32_t (*block_coordinates)[4];
    const float *data;
    double scale; /* factor from the stored value to the unit below */
} selkie_field_view;

/* "velocity_x", "velocity_y", "velocity_z" (m/s; NaN where no liquid is near), "pressure" (Pa), "density" (of the
 * liquid over its rest density), "fill" (density over what the open part of the cell holds; -1 in solids) */
SELKIE_API selkie_code selkie_world_field(const selkie_world *world, const char *name, selkie_field_view *view,
                                          selkie_error *error);

/* Velocity (m/s) of the liquid at a point of the scene; NaN where there is none. */
SELKIE_API selkie_code selkie_world_velocity_at(const selkie_world *world, const double at[3], double velocity[3]);

/* Statistics of the last step. */
SELKIE_API const selkie_statistics *selkie_world_statistics(const selkie_world *world);
/* NULL, or one line that names a key whose value makes the results wrong without an error, and a better value. It stays
 * until the end. Today: a time.step that is too long for discretization sph. */
SELKIE_API const char *selkie_world_warning(const selkie_world *world);
SELKIE_API int selkie_world_phase_count(const selkie_world *world);
SELKIE_API const char *selkie_world_phase_name(const selkie_world *world, int phase);
SELKIE_API selkie_backend selkie_world_backend(const selkie_world *world);
SELKIE_API size_t selkie_world_memory(const selkie_world *world);      /* bytes in use */
SELKIE_API size_t selkie_world_memory_peak(const selkie_world *world); /* bytes, the most so far */

/* Probes of the scene, measured after the last step. */
SELKIE_API int selkie_world_probe_column_count(const selkie_world *world);
SELKIE_API const char *selkie_world_probe_column_name(const selkie_world *world, int column);
SELKIE_API double selkie_world_probe_value(const selkie_world *world, int column);

/* Rigid bodies of the scene, after the last step. */
typedef struct selkie_body_state {
    const char *name;
    double mass;                /* kg    (2D: for a depth of one metre) */
    double position[3];         /* m     of the centre of mass */
    double quaternion[4];       /*       w x y z: rotation from the drawn to the current orientation */
    double velocity[3];         /* m/s   of the centre of mass */
    double angular_velocity[3]; /* rad/s, world frame */
    double force[3];            /* N     of the liquid, mean over the last step */
    double torque[3];           /* N m   likewise, about the centre of mass */
} selkie_body_state;

SELKIE_API int selkie_world_body_count(const selkie_world *world);
SELKIE_API selkie_code selkie_world_body(const selkie_world *world, int index, selkie_body_state *state);

/* All of the state, with a checksum, written atomically (a file appears whole or not at all).
 * A loaded world continues bit for bit. Grid measurements are repeated; pressure and its probes
 * are valid after the next step. */
SELKIE_API selkie_code selkie_world_save(const selkie_world *world, const char *path, selkie_error *error);
SELKIE_API selkie_code selkie_world_load(selkie_world *world, const char *path, selkie_error *error);

/* What became of the particles of a checkpoint that starts another scene. */
typedef struct selkie_restart_report {
    int64_t in_checkpoint; /*   its particles */
    int64_t taken;         /*   particles of the new world */
    int64_t outside;       /*   dropped: outside the domain */
    int64_t inside_solids; /*   dropped: a cell or more deep in a solid */
    int64_t pushed_out;    /*   less deep: moved to its surface */
    int64_t no_room;       /*   new particles that found no place (resampled) */
    int resampled;         /*   the volume of a particle differs */
    double time;           /* s of the checkpoint */
    double cell_size;      /* m of the checkpoint */
} selkie_restart_report;

/* A world whose liquid comes from the checkpoint of another scene, and everything else from `scene`: domain, obstacles,
 * sources, forces, walls, method, resolution. The liquids of the scene are left out, and time starts at 0. Positions,
 * velocities and matching attributes are taken over; where the volume of a particle differs, the liquid is sampled
 * again. Dimension and discretization must be those of the checkpoint. `report` may be NULL. */
SELKIE_API selkie_code selkie_world_create_from(const selkie_scene *scene, const selkie_world_options *options,
                                                const char *path, selkie_restart_report *report, selkie_world **world,
                                                selkie_error *error);

#ifdef __cplusplus
}
#endif
#endif
