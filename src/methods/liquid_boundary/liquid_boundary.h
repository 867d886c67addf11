/* Liquid boundaries (Cornelis, Ihmsen, Peer and Teschner 2015): liquid that takes the shape of a solid, acts as a solid
 * for a while, and becomes liquid again.
 *
 * One kind of particle has three roles. A fluid particle is ordinary liquid. A candidate moves towards a sample of an
 * object while the pressure solve keeps its density. A boundary particle stays on its sample and moves with the object.
 * Samples lie on a grid of particle-sized cells (geom/voxels.h). A particle that becomes fluid again is then at the
 * usual distance from its neighbours, and no change of role creates pressure.
 *
 * One extension of the paper: a filled shape blocks its own interior, since particles reach the outer samples first and
 * then stand in the way. Particles are alike, so a candidate that meets the holder of another sample exchanges samples
 * with it if that reduces the sum of squared distances. The candidate stays there, and the other particle moves on
 * inwards.
 *
 * The attribute "sample" of a particle is its sample (0: none; else 1 + number over all objects). Everything else
 * follows from it, from the flags and from the time, so a resumed run has the same bits.
 *
 * Three phases: "roles" before the sort (release, arrival, assignment), "animate" between forces and pressure
 * (velocities of candidates and boundary particles), "hold" after the move (moves particles back that a too long step
 * has moved into a solid cell).
 */
#ifndef SK_METHODS_LIQUID_BOUNDARY_LIQUID_BOUNDARY_H
#define SK_METHODS_LIQUID_BOUNDARY_LIQUID_BOUNDARY_H

#include "geom/shape.h"
#include "geom/voxels.h"
#include "methods/liquid_boundary/roles_plain.h"
#include "methods/method.h"

extern const sk_method sk_method_liquid_boundary;

typedef struct sk_object {
    const selkie_object_def *def;
    selkie_obstacle_def motion; /*   its keyframes, in the form of an obstacle's */
    sk_voxels voxels;           /*   samples, in the object's own frame */
    uint32_t first;             /*   number of its first sample over all objects */
    sk_shape **regions;
    double *sweep; /*   [timeline][2] smallest and largest coordinate of the samples along release_direction */
    int gathers;   /*   takes candidates */
    int64_t held;  /*   samples with a particle */
} sk_object;

typedef struct sk_liquid_boundary {
    sk_memory *memory;
    double spacing; /* m  between particles */
    int object_count;
    sk_object *objects;
    sk_object_frame *frames; /*  [objects] in this step */
    uint32_t sample_count;
    uint32_t *holder; /*  [samples] 1 + index of the particle of a sample, 0: none; valid until particles are sorted */
    uint8_t *solid;   /*  [samples] that particle is boundary */

    /* results of the last step */
    int64_t candidates, boundaries;
    int64_t arrived, released, assigned, exchanged, stopped; /* in this step */
} sk_liquid_boundary;

/* Makes the samples of all objects. Appends the particles of objects that exist from the start, and removes liquid in
 * their place. Adds the attributes "sample" and "role". step->objects points to `boundary` from then on. */
selkie_code sk_liquid_boundary_init(sk_liquid_boundary *boundary, sk_step *step, selkie_error *error);
/* Checks that all objects hold particles, and that neither keyframes nor start move them out of the domain. Reads only
 * constants, grid and solids of the step. */
selkie_code sk_liquid_boundary_check(const sk_step *step, selkie_error *error);
void sk_liquid_boundary_free(sk_liquid_boundary *boundary);

/* Position (m) of a sample at a pose of its object. */
static inline void sk_object_sample(const sk_object *object, const sk_pose *pose, uint32_t n, double x[3])
{
    double local[3];
    for (int d = 0; d < 3; d++)
        local[d] = object->voxels.centers[n][d];
    sk_pose_to_world(pose, local, x);
}
/* Checks that the object stays inside the closed sides of the domain, at its keyframes and between them, and that it
 * begins inside the domain if it exists from the start. */
selkie_code sk_object_check_motion(const sk_step *step, const sk_object *object, int index, selkie_error *error);

/* Finds poses and releases of the objects in this step, and whether they take candidates. */
void sk_liquid_boundary_begin(sk_step *step);
/* The objects and the particles of the step as the functions of one particle see them. */
sk_roles sk_roles_of(const sk_step *step);
/* Does an object with `held` samples look for fluid in this step? */
int sk_object_searches(const sk_object *object, const sk_step *step);

/* The phases. */
selkie_code sk_liquid_boundary_roles(sk_step *step, selkie_error *error);
selkie_code sk_liquid_boundary_animate(sk_step *step, selkie_error *error);
selkie_code sk_liquid_boundary_hold(sk_step *step, selkie_error *error);

#endif
