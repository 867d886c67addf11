/* Walls, obstacles and rigid bodies as volume-weighted boundary particles (Akinci et al. 2012), and their share in the
 * pressure solve.
 *
 * They lie half a particle spacing below each surface, where the next layer of a liquid that went on beyond it would
 * be, twice as close to each other as particles of liquid: liquid glides along a wall whose bumps are smaller than its
 * own. A boundary particle's volume is V_b = gamma / sum_k W_bk over its own kind (their Eq. 4, whose gamma is 1);
 * gamma makes V_b its share of a layer of liquid on a flat wall. What it counts in the density is not the kernel of the
 * liquid: sph.c says why. So liquid at rest on a lattice does not feel where it ends. Static ones stand as they are;
 * those of moving obstacles and bodies are moved at the start of each step and have the velocity that takes them to its
 * end.
 *
 * The closed sides of the domain are flat, and need no particles: a sheet's share in the density is a function of the
 * distance, and it is perfectly smooth.
 *
 * Parts are numbered: 0 the walls of the domain that liquid slides along, then the obstacles, the bodies, and at last
 * the walls that it sticks to.
 */
#ifndef SK_METHODS_SPH_BOUNDARY_H
#define SK_METHODS_SPH_BOUNDARY_H

#include "methods/sph/sph.h"

/* Samples all surfaces; step->rigid (may be NULL) is known by then. */
selkie_code sk_sph_boundary_init(sk_step *step, selkie_error *error);
void sk_sph_boundary_free(sk_sph *sph);
/* A phase: where the boundary particles are, sorted by cell, and how fast; forces start anew. */
selkie_code sk_sph_boundary_run(sk_step *step, selkie_error *error);
/* A phase: viscosity at no-slip surfaces. */
selkie_code sk_sph_friction_2d(sk_step *step, selkie_error *error);
selkie_code sk_sph_friction_3d(sk_step *step, selkie_error *error);
/* A phase: bodies take up what the liquid did and move. */
selkie_code sk_sph_bodies_run(sk_step *step, selkie_error *error);
/* Force (N) of the last step on "walls", or on the obstacle or body of this name, where a probe asks; 0 if there is no
 * such. */
int sk_sph_boundary_force(const sk_step *step, const char *on, double force[3]);
/* Particles that the sampling put into bodies are taken out. */
void sk_sph_boundary_clear_bodies(sk_step *step);

static inline int sk_sph_part_of_obstacle(int obstacle)
{
    return 1 + obstacle;
}
static inline int sk_sph_part_of_body(const sk_step *step, int body)
{
    return 1 + step->solids.obstacle_count + body;
}

/* --- Coupling: what the pressure does to parts that want to know, and what bodies answer ---
 * A body is no wall that moves as it was told: pressure moves it too, and that relieves the pressure. With
 * B_i = (sum_b G_ib, sum_b r_b x G_ib) over the body's boundary particles b around the particle i, the pressures q move
 * the body by  m M^-1 sum_j B_j q_j  (m: a particle's mass, M: the body's mass and inertia), and the density of i by
 * minus B_i times that: A gains  m B M^-1 B^T, symmetric as A is. Explicit coupling, which lets the body move only
 * after the solve, shakes once the water that moves along with a body is heavier than the body. */
typedef struct sk_sph_contact {
    uint32_t particle;
    uint32_t part;
    float gradient[6]; /* B_i times the spacing, as all gradients in the lists: 1, and m */
} sk_sph_contact;

/* Finds the contacts of parts that want forces and adds to the diagonal. */
selkie_code sk_sph_coupling_begin_2d(sk_step *step, selkie_error *error);
selkie_code sk_sph_coupling_begin_3d(sk_step *step, selkie_error *error);
/* body_term = m B M^-1 B^T q. On one thread. */
void sk_sph_coupling_apply(sk_step *step, const float *q);
/* Adds the forces that q means to the parts. */
void sk_sph_coupling_end(sk_step *step, const float *q);

#endif
