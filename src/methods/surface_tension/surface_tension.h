/* Surface tension on the grid: the ghost fluid jump of the pressure at the surface.
 *
 * The pressure at the surface is sigma kappa in place of 0. A face between liquid and air then changes by
 * (q_i - q_s) / theta, with q = p t / (density h) of the pressure solve (liquid_system.h). The phase adds the part of
 * q_s to the velocity of these faces before the solve, which leaves matrix and projection as they are.
 *
 * The curvature comes from the fill of the cells, blurred by a binomial kernel and turned into a distance, by a
 * quadratic fit over 3^d cells.
 *
 * Beside unilateral incompressibility the surface is the border of the full cells. There the phase leaves the pressure
 * sigma kappa in the cells at this border (step->capillary), and the complementarity problem takes it as the pressure
 * outside.
 *
 * SPH has no faces. There the phase leaves the pressure sigma kappa at each particle near the surface, and SPH's forces
 * apply it (step->surface_pressure).
 */
#ifndef SK_METHODS_SURFACE_TENSION_SURFACE_TENSION_H
#define SK_METHODS_SURFACE_TENSION_SURFACE_TENSION_H

#include "methods/method.h"

extern const sk_method sk_method_surface_tension;

typedef struct sk_tension {
    int curvature;                      /*      field: of the surface nearest to a cell, per cell size */
    int has_materials;                  /*      do the materials differ in surface tension? */
    float sigma[SK_TRANSFER_MATERIALS]; /* N/m  of each material */
    float *pressure;                    /* m2/s2  sph, of each particle: sigma kappa over the density */
    size_t pressure_capacity;
} sk_tension;

/* Fills the field of the curvature in the cells beside the surface. */
void sk_tension_curvatures_2d(sk_step *step, int field);
void sk_tension_curvatures_3d(sk_step *step, int field);
selkie_code sk_tension_2d(sk_step *step, selkie_error *error);
selkie_code sk_tension_3d(sk_step *step, selkie_error *error);
/* The phase beside unilateral incompressibility. */
selkie_code sk_tension_of_cells_2d(sk_step *step, selkie_error *error);
selkie_code sk_tension_of_cells_3d(sk_step *step, selkie_error *error);
/* The phase of SPH (tension_of_particles_dim.c). */
selkie_code sk_tension_of_particles_2d(sk_step *step, selkie_error *error);
selkie_code sk_tension_of_particles_3d(sk_step *step, selkie_error *error);

#endif
