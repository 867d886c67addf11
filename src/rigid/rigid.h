/* Rigid bodies that move freely: masses, states, impulses.
 *
 * ODE (the Open Dynamics Engine) computes contacts with walls, obstacles and other bodies, friction and
 * motion. Only rigid_ode.c includes it. A method adds the liquid's impulses and reads poses and
 * velocities.
 *
 * Velocities are half a step behind positions, like those of the particles (sk_step_kick): free fall is
 * exact at any step size. sk_rigid_state is the whole state, and each step starts from it, so a run
 * resumes from a checkpoint bit for bit. One thread does the work: bodies are few.
 */
#ifndef SK_RIGID_RIGID_H
#define SK_RIGID_RIGID_H

#include <selkie/scene.h>
#include "base/memory.h"
#include "geom/shape.h"
#include "grid/solids.h"

typedef struct sk_rigid_state {
    double position[3];         /* m    of the centre of mass */
    double quaternion[4];       /*      w x y z: rotation from the drawn to the current orientation */
    double velocity[3];         /* m/s  of the centre of mass */
    double angular_velocity[3]; /* rad/s, world frame */
    double force[3];            /* N    of the liquid, mean over the last step (2D: for a metre of depth) */
    double torque[3];           /* N m  likewise, about the centre of mass */
    double last_substep;        /* s    of the engine, 0 at the start; the same for all */
} sk_rigid_state;

typedef struct sk_rigid_body {
    const selkie_body_def *def;
    sk_shape *shape;           /* as drawn */
    double mass;               /* kg (2D: for a depth of one metre) */
    double volume;             /* m3 (2D: m2) */
    double center[3];          /* m  of mass, as drawn */
    double inertia[9];         /* kg m2 about it, as drawn, row-major */
    sk_pose pose;              /* now; in a shape's questions */
    double impulse[3];         /* N s   given by the liquid since the last step */
    double angular_impulse[3]; /* N m s about the centre of mass */
    double drag[3];         /* N s   of the viscous stress of a grid method before its pressure solve (sk_step_kick) */
    double angular_drag[3]; /* N m s likewise */
    double held_up[3];      /* m/s   change by the pressure that balances gravity while viscosity acts */
    double held_turning[3]; /* rad/s likewise */
    double added_mass;      /* kg    of liquid that impulses and contacts move along with it; gravity does not act */
    double added_inertia;   /* kg m2 likewise, 2D */
} sk_rigid_body;

typedef struct sk_rigid {
    sk_memory *memory;
    const selkie_scene *scene;
    const sk_solids *solids;
    int dimension;
    int obstacle_count; /* of the scene: the solids of a grid method contain the bodies as well */
    int kicks_at_once;  /* gravity and impulses act at the start of a step, as on the particles of the grid methods;
                           otherwise they are spread over the substeps of the engine */
    double recovery;    /* part of an overlap that a substep of the engine removes */
    int body_count;
    sk_rigid_body *bodies;
    sk_rigid_state *states; /* [body_count] */
    struct sk_rigid_engine *engine;
} sk_rigid;

/* 1 if this build has the engine. */
int sk_rigid_available(void);
/* The scene's bodies among the walls and obstacles of `solids`; all three must outlive it. */
selkie_code sk_rigid_init(sk_rigid *rigid, const selkie_scene *scene, const sk_solids *solids, sk_memory *memory,
                          selkie_error *error);
void sk_rigid_free(sk_rigid *rigid);

/* Gives a body of a 2D scene an added mass (kg) and an added moment of inertia (kg m2). */
void sk_rigid_add_mass(sk_rigid *rigid, int body, double mass, double inertia);
/* Adds an impulse of the liquid (N s) to a body, at a point of the world (m). */
void sk_rigid_add_impulse(sk_rigid *rigid, int body, const double impulse[3], const double at[3]);
/* Moves all bodies by `dt` (s) from `time` on: gravity, the liquid's impulses, contacts. Then clears the impulses,
 * which acted for `impulse_time` (s). */
selkie_code sk_rigid_step(sk_rigid *rigid, double time, double dt, double impulse_time, selkie_error *error);

/* Response to an impulse of 1 N s: inverse masses along the axes (1/kg), 0 along held axes, and the inverse inertia
 * (1/(kg m2)) in the world frame, row-major, for the free axes of rotation. */
void sk_rigid_response(const sk_rigid *rigid, int body, double inverse_mass[3], double inverse_inertia[9]);
/* The change of velocity (m/s) and angular velocity (rad/s) by a body's drag. */
void sk_rigid_drag_change(const sk_rigid *rigid, int body, double velocity[3], double angular_velocity[3]);
/* Velocity and angular velocity after this step of length dt under gravity alone. */
void sk_rigid_predict(const sk_rigid *rigid, int body, double dt, double velocity[3], double angular_velocity[3]);

/* An upper bound of the speed of its points, m/s. */
double sk_rigid_speed(const sk_rigid *rigid, int body);
/* States from a checkpoint; invalid ones are refused and change nothing. */
selkie_code sk_rigid_restore(sk_rigid *rigid, const sk_rigid_state *states, const char *file, selkie_error *error);
/* Updates the poses after the states were set. Fails if a state is not finite. */
selkie_code sk_rigid_place(sk_rigid *rigid, const char *what, selkie_error *error);

/* --- The engine (rigid_ode.c) --- */

selkie_code sk_rigid_engine_create(sk_rigid *rigid, selkie_error *error);
void sk_rigid_engine_destroy(sk_rigid *rigid);
/* The mass of a body has changed. */
void sk_rigid_engine_weigh(sk_rigid *rigid, int body);
/* One step of the engine: velocities grow by gravity over `kick` (s), positions by the velocity over `dt`; `share` of
 * the impulses is applied. */
selkie_code sk_rigid_engine_step(sk_rigid *rigid, double time, double kick, double dt, double share,
                                 selkie_error *error);

#endif
