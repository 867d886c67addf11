/* Walls, obstacles and rigid bodies as volume-weighted boundary particles (Akinci et al. 2012), and their share in the
 * pressure solve.
 *
 * Boundary particles lie half a particle spacing below each surface, where the next layer of liquid would be. Their
 * spacing is half that of the liquid, so that liquid slides along a wall smoothly. A boundary particle's volume is V_b
 * = gamma / sum_k W_bk over boundary particles of its own solid (their Eq. 4, with gamma 1). Here gamma makes V_b its
 * share of a layer of liquid on a flat wall. Its weight in the density is not the liquid's kernel: sph.c has the
 * reason. Liquid at rest on a lattice then has the rest density up to the wall. Static boundary particles are fixed.
 * Those of moving obstacles and bodies take their pose at the start of each step, and the velocity that moves them to
 * its end.
 *
 * The closed sides of the domain are flat and need no particles: a smooth sheet adds a density that depends on the
 * distance alone.
 *
 * Parts are numbered: 0 the free-slip walls of the domain, then the obstacles, the bodies, and last the no-slip walls.
 */
#ifndef SK_METHODS_SPH_BOUNDARY_H
#define SK_METHODS_SPH_BOUNDARY_H

#include "methods/sph/sph.h"

/* Samples all surfaces; step->rigid (may be NULL) must be set. */
selkie_code sk_sph_boundary_init(sk_step *step, selkie_error *error);
void sk_sph_boundary_free(sk_sph *sph);
/* A phase: positions and velocities of the boundary particles, sorted by cell; resets the forces. */
selkie_code sk_sph_boundary_run(sk_step *step, selkie_error *error);
/* Do boundary particles change their places from step to step? */
int sk_sph_boundary_moves(const sk_sph *sph);
/* A phase: viscosity at no-slip surfaces. */
selkie_code sk_sph_friction_2d(sk_step *step, selkie_error *error);
selkie_code sk_sph_friction_3d(sk_step *step, selkie_error *error);
/* A phase: bodies move under the forces of the liquid. */
selkie_code sk_sph_bodies_run(sk_step *step, selkie_error *error);
/* Force (N) of the last step on "walls", or on the obstacle or body of this name, if a probe measures it; returns 0 for
 * an unknown name. */
int sk_sph_boundary_force(const sk_step *step, const char *on, const double about[3], double force[3],
                          double torque[3]);
/* Removes particles that the sampling put into bodies. */
void sk_sph_boundary_clear_bodies(sk_step *step);

static inline int sk_sph_part_of_obstacle(int obstacle)
{
    return 1 + obstacle;
}
static inline int sk_sph_part_of_body(const sk_step *step, int body)
{
    return 1 + step->solids.obstacle_count + body;
}

/* --- Coupling: pressure forces on parts, and the response of bodies ---
 *
 * Pressure accelerates a body, and that motion relieves the pressure. With B_i = (sum_b G_ib, sum_b r_b x G_ib) over
 * the body's boundary particles b around the particle i, the pressures q move the body by  m M^-1 sum_j B_j q_j  (m: a
 * particle's mass, M: the body's mass and inertia). The density of i changes by minus B_i times that, so A gains m B
 * M^-1 B^T, symmetric as A is. Explicit coupling moves the body only after the solve. It is unstable if the added mass
 * of the water exceeds the mass of the body.
 */
typedef struct sk_sph_contact {
    uint32_t particle;
    uint32_t part;
    float gradient[6]; /* B_i times the spacing, as all gradients in the lists: 1, and m */
    float length;      /* sum of |G_ib| over the part's samples */
    float friction;    /* the same with the friction of each sample */
    float velocity[3]; /* m/s  the same with their velocities */
} sk_sph_contact;

/* Finds the contacts of parts with forces and adds to the diagonal. */
selkie_code sk_sph_coupling_begin_2d(sk_step *step, selkie_error *error);
selkie_code sk_sph_coupling_begin_3d(sk_step *step, selkie_error *error);
/* A particle touches too many parts of the walls. */
selkie_code sk_sph_crowded(const sk_step *step, selkie_error *error);
/* body_term = m B M^-1 B^T q. Serial. */
void sk_sph_coupling_apply(sk_step *step, const float *q);
/* Adds the forces of q to the parts. */
void sk_sph_coupling_end(sk_step *step, const float *q);

#endif
