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
#include <selkie/scene_domain.h>
#include <selkie/scene_materials.h>
#include <selkie/scene_numerics.h>
#include <selkie/scene_output.h>
#include <selkie/scene_things.h>
#include <selkie/status.h>

#ifdef __cplusplus
extern "C" {
#endif

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
    SELKIE_CHANGE_REMOVE,   /* list, name: an element goes */
    SELKIE_CHANGE_STEP,     /* length: of the next step alone */
    SELKIE_CHANGE_BODY,     /* body: a rigid shape, added or replaced */
    SELKIE_CHANGE_EXCITE,   /* excite: of a drawn mode of a reduced fluid, added or replaced */
    SELKIE_CHANGE_DYE       /* dye: of a reduced fluid, added; one of its name ends */
} selkie_change_kind;

typedef enum selkie_change_list {
    SELKIE_LIST_OBSTACLES,
    SELKIE_LIST_FORCES,
    SELKIE_LIST_SOURCES,
    SELKIE_LIST_DRAINS,
    SELKIE_LIST_BODIES
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
    selkie_body_def body;
    selkie_excite_def excite;
    selkie_dye_def dye;
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
    selkie_points_def points;
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
SELKIE_API void selkie_dye_defaults(selkie_dye_def *dye);
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
