/* The signed distance to a mesh, sampled once on a sparse grid, then interpolated.
 *
 * Within three sample sizes of the surface the result is the trilinear interpolation of exact distances. Farther away
 * it has the right sign, is above about three sample sizes, and is a lower bound of the true distance, up to a fraction
 * of a sample size. */
#ifndef SK_GEOM_MESH_SAMPLE_H
#define SK_GEOM_MESH_SAMPLE_H

#include "base/memory.h"
#include "geom/mesh_distance.h"
#include "geom/mesh_sample_kernels.h"

typedef struct sk_mesh_sample sk_mesh_sample;

/* `mesh` is 3D, is referenced and must outlive the samples. `sample_size` in m. Uses all OpenMP threads; the result
 * does not depend on their number. */
selkie_code sk_mesh_sample_create(const sk_mesh_distance *mesh, double sample_size, const char *name, sk_memory *memory,
                                  sk_mesh_sample **sample, selkie_error *error);
void sk_mesh_sample_destroy(sk_mesh_sample *sample);
/* `normal` may be NULL; it is the direction of the interpolated gradient. */
double sk_mesh_sample_distance(const sk_mesh_sample *sample, const double x[3], double normal[3]);
/* What queries read, for kernels. */
const sk_mesh_samples *sk_mesh_sample_grid(const sk_mesh_sample *sample);

#endif
