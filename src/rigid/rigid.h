/* Rigid bodies that move freely: what they weigh, where they are, what pushes them.
 *
 * Contacts with walls, obstacles and each other, friction and the motion itself are the business of ODE (the Open
 * Dynamics Engine), which stays behind this header. A method gives what its liquid does as impulses and asks for poses
 * and velocities; it need not know that an engine exists.
 *
 * Velocities live half a step behind positions, as those of the particles do (sk_step_kick): free fall is exact at any
 * step size. All that changes is in sk_rigid_state; each step starts from it anew, so that a run goes on from a
 * checkpoint bit for bit. One thread does it all: bodies are few.
 */
#ifndef SK_RIGID_RIGID_H
#define SK_RIGID_RIGID_H

#include <selkie/scene.h>
#include "base/memory.h"
#include "geom/shape.h"
#include "grid/solids.h"

typedef struct sk_rigid_state {
    double position[3];         /* m    of the centre of mass */
    double quaternion[4];       /*      w x y z: from how it was drawn to how it lies now */
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
} sk_rigid_body;

typedef struct sk_rigid {
    sk_memory *memory;
    const selkie_scene *scene;
    const sk_solids *solids;
    int dimension;
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

/* What the liquid does to a body, N s, at a point of the world (m). */
void sk_rigid_add_impulse(sk_rigid *rigid, int body, const double impulse[3], const double at[3]);
/* Moves all bodies by `dt` (s) from `time` on: gravity, what the liquid gave, contacts. The impulses start anew. */
selkie_code sk_rigid_step(sk_rigid *rigid, double time, double dt, selkie_error *error);

/* What an impulse of 1 N s changes: inverse masses along the axes (1/kg), 0 where a body is held, and the inverse
 * inertia (1/(kg m2)) in the world frame, row-major, for the axes that it may turn about. */
void sk_rigid_response(const sk_rigid *rigid, int body, double inverse_mass[3], double inverse_inertia[9]);
/* Velocity and angular velocity that gravity alone gives it in the step that begins, of length dt. */
void sk_rigid_predict(const sk_rigid *rigid, int body, double dt, double velocity[3], double angular_velocity[3]);

/* The fastest point of it, m/s, or a little more. */
double sk_rigid_speed(const sk_rigid *rigid, int body);
/* States from a checkpoint; they are left as they were if the new ones make no sense. */
selkie_code sk_rigid_restore(sk_rigid *rigid, const sk_rigid_state *states, const char *file, selkie_error *error);
/* After the states were set from outside: poses follow. Fails on what is not finite. */
selkie_code sk_rigid_place(sk_rigid *rigid, const char *what, selkie_error *error);

/* --- The engine (rigid_ode.c) --- */

selkie_code sk_rigid_engine_create(sk_rigid *rigid, selkie_error *error);
void sk_rigid_engine_destroy(sk_rigid *rigid);
/* One step of the engine: velocities grow by gravity over `kick` (s), positions by the velocity over `dt`; `share` of
 * the impulses is used. */
selkie_code sk_rigid_engine_step(sk_rigid *rigid, double time, double kick, double dt, double share,
                                 selkie_error *error);

#endif
