/* Forces of the liquid on obstacles and walls, from the pressure and the velocity on the grid.
 *
 * A surface is a list of elements: points with an area and a normal, at most a cell apart. The force is the sum of
 * -p n A over the elements, and at no-slip surfaces of the shear stress density x viscosity x du_t/dn. The pressure at
 * an element comes from the liquid cells around it, each extended hydrostatically to the point, so that buoyancy is
 * exact at rest.
 */
#ifndef SK_WORLD_SURFACE_FORCE_H
#define SK_WORLD_SURFACE_FORCE_H

#include "methods/method.h"

typedef struct sk_surface_element {
    double at[3];   /* m, in the obstacle's own frame */
    double area[3]; /* m2 (2D: m) times the outward normal of the solid */
} sk_surface_element;

typedef struct sk_surface {
    int obstacle; /* -1 = walls of the domain */
    size_t count, capacity;
    sk_surface_element *elements;
} sk_surface;

/* The surface of an obstacle or, with NULL, "" or "walls", of the closed sides of the domain. A name that is neither
 * gives an empty surface. */
selkie_code sk_surface_init(sk_surface *surface, const sk_step *step, const char *on, selkie_error *error);
void sk_surface_free(sk_surface *surface, sk_memory *memory);
/* Force (N) and torque (N m) about a point (m), in 2D for a metre of depth; `kick` (s) of the last solve. */
void sk_surface_force(const sk_surface *surface, const sk_step *step, double kick, const double about[3],
                      double force[3], double torque[3]);

/* Pressure (Pa) at a point (m) from the liquid around it; 0 in air. With a normal, of any length, from the liquid on
 * its side alone. */
double sk_pressure_near(const sk_step *step, const double at[3], const double normal[3], double kick);
/* Velocity (m/s) of the grid along axis d at a point (m); NaN where no liquid is near. */
double sk_velocity_at(const sk_step *step, const double at[3], int d);
/* Density (kg/m3) of the liquid around the lower face of a cell across axis d. */
double sk_face_density(const sk_step *step, const int cell[3], int d);

#endif
