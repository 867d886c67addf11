/* Liquid boundaries (Cornelis, Ihmsen, Peer and Teschner 2015): liquid that takes the shape of a solid, is one for a
 * while, and becomes liquid again.
 *
 * There is one kind of particle in three roles. Fluid is what it always was. A candidate belongs to a sample of an
 * object and is led there while the pressure solve keeps its density; a boundary particle stands on its sample and
 * moves with the object. Samples lie on a grid of particle-sized cells (geom/voxels.h), so that a particle that becomes
 * fluid again is as far from its neighbours as fluid is, and no role change of any particle at any time makes pressure
 * out of nothing.
 *
 * What the paper leaves open: a filled shape closes its own way in, since the samples outside are reached first and
 * their particles then stand before those that belong farther in. Particles are alike, so a candidate that meets
 * another one's sample on its way exchanges samples with it where that makes the way shorter for both together (sum of
 * the squared distances): it stays there, and the other one goes on. The wall becomes a relay.
 *
 * Which sample a particle belongs to is its attribute "sample" (0: none; else 1 + number over all objects), and
 * everything else follows from that, from the flags and from the time: a resumed run goes on as if it had not been
 * interrupted.
 *
 * Three phases: "roles" before the sort (release, arrival, assignment), "animate" between forces and pressure (what
 * becomes of the velocities of candidates and boundary particles), "hold" after the particles have moved (what a step
 * that was too long has put into a solid cell goes back).
 */
#ifndef SK_METHODS_LIQUID_BOUNDARY_LIQUID_BOUNDARY_H
#define SK_METHODS_LIQUID_BOUNDARY_LIQUID_BOUNDARY_H

#include "geom/shape.h"
#include "geom/voxels.h"
#include "methods/method.h"

extern const sk_method sk_method_liquid_boundary;

enum { SK_ROLE_FLUID, SK_ROLE_CANDIDATE, SK_ROLE_BOUNDARY }; /* values of the attribute "role" */

typedef struct sk_object {
    const selkie_object_def *def;
    selkie_obstacle_def motion; /*   its keyframes, as poses want them */
    sk_voxels voxels;           /*   samples, in the object's own frame */
    uint32_t first;             /*   number of its first sample over all objects */
    sk_shape **regions;
    double *sweep;     /*   [timeline][2] least and largest coordinate of the samples along release_direction */
    sk_pose now, next; /*   at the start and at the end of the step */
    const selkie_timeline_entry *entry; /* the one that is running or being released; NULL: none yet */
    int gathers;                        /*   takes candidates */
    int64_t held;                       /*   samples that have a particle */
} sk_object;

typedef struct sk_liquid_boundary {
    sk_memory *memory;
    double spacing; /* m  between particles */
    int object_count;
    sk_object *objects;
    uint32_t sample_count;
    uint32_t
        *holder;    /*  [samples] 1 + index of the particle that belongs to one, 0: none; until particles are sorted */
    uint8_t *solid; /*  [samples] that particle is boundary */

    /* what the last step found */
    int64_t candidates, boundaries, vacant;
    int64_t arrived, released, assigned, exchanged, stopped; /* in this step */
} sk_liquid_boundary;

/* Samples of all objects; particles of those that are there from the start are appended, and liquid in their place
 * goes. The attributes "sample" and "role" are added. step->objects points to `boundary` from then on. */
selkie_code sk_liquid_boundary_init(sk_liquid_boundary *boundary, sk_step *step, selkie_error *error);
/* Whether there could be such objects: they hold particles, and neither their keyframes nor their start take them out
 * of the domain. Of the step, only constants, grid and solids are looked at. */
selkie_code sk_liquid_boundary_check(const sk_step *step, selkie_error *error);
void sk_liquid_boundary_free(sk_liquid_boundary *boundary);

/* Where a sample is (m) while its object has a pose. */
static inline void sk_object_sample(const sk_object *object, const sk_pose *pose, uint32_t n, double x[3])
{
    double local[3];
    for (int d = 0; d < 3; d++)
        local[d] = object->voxels.centers[n][d];
    sk_pose_to_world(pose, local, x);
}
/* Whether the object stays inside the closed sides of the domain, at its keyframes and on the ways between them, and
 * begins inside the domain if it is there from the start. */
selkie_code sk_object_check_motion(const sk_step *step, const sk_object *object, int index, selkie_error *error);

/* The phases. */
selkie_code sk_liquid_boundary_roles(sk_step *step, selkie_error *error);
selkie_code sk_liquid_boundary_animate(sk_step *step, selkie_error *error);
selkie_code sk_liquid_boundary_hold(sk_step *step, selkie_error *error);

/* Velocity (m/s) towards a target `offset` (m) away: beta, eased, and never farther than the target in a step (Eq. 4).
 */
void sk_candidate_velocity(const selkie_object_def *def, double spacing, double dt, const double offset[3],
                           double velocity[3]);

#endif
