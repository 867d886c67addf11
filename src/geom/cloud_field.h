/* Density and velocity of a cloud of particles as fields that can be sampled anywhere.
 *
 * Particles give their weight and velocity to sparse nodes by quadratic B-splines (surface_sums.c); samples are linear
 * between nodes. Density is relative to that of the liquid at rest: 1 in the bulk, 0.5 at a flat surface. Walls mirror
 * the liquid.
 */
#ifndef SK_GEOM_CLOUD_FIELD_H
#define SK_GEOM_CLOUD_FIELD_H

#include "geom/surface.h"

typedef struct sk_cloud_field sk_cloud_field;

typedef struct sk_cloud_sample {
    float density;     /*     over that of the liquid at rest */
    float velocity[3]; /* m/s mean; 0 where there is no liquid */
    float square;      /* m2/s2 mean of the squared speed; only with `with_squares` */
} sk_cloud_sample;

/* Nodes are voxel_size apart. `with_squares` also keeps the mean square of the speed. */
selkie_code sk_cloud_field_create(const sk_surface_particles *particles, const sk_surface_options *options,
                                  int with_squares, sk_cloud_field **field, selkie_error *error);
void sk_cloud_field_destroy(sk_cloud_field *field);
/* At a point (m, in the coordinates of the particles). */
void sk_cloud_field_sample(const sk_cloud_field *field, const float x[3], sk_cloud_sample *sample);
float sk_cloud_field_density(const sk_cloud_field *field, const float x[3]);

#endif
