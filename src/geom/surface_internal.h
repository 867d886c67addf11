/* Shared by the parts of the surface extraction. The sparse grid of nodes, the particles binned into its blocks and
 * what happens to one of them are in surface_plain.h. */
#ifndef SK_GEOM_SURFACE_INTERNAL_H
#define SK_GEOM_SURFACE_INTERNAL_H

#include "base/simd.h"
#include "geom/surface.h"
#include "geom/surface_mesh_plain.h"

/* A block with `halo` (1, 2 or 4) nodes around it, x fastest. Missing blocks read as air, beyond walls lie mirror
 * images. */
void sk_surface_load(const sk_surface_grid *grid, const float *field, size_t block, int halo, float *padded);

void sk_surface_grid_free(sk_surface_grid *grid);
/* Grid, blocks and the smooth level set of these particles; the caller frees the grid in any case. */
selkie_code sk_surface_prepare(sk_surface_grid *grid, const sk_surface_particles *particles,
                               const sk_surface_options *options, selkie_error *error);

/* Sorts the particles into blocks (surface_bins.c). */
selkie_code sk_surface_bin(sk_surface_grid *grid, const sk_surface_particles *particles, selkie_error *error);

/* Sums over particles at the nodes (surface_sums.c). */
void sk_surface_sums_free(sk_surface_sums *sums);
/* `values` are those of the points, or NULL for their places. `marked` is a byte a block. */
selkie_code sk_surface_sum(const sk_surface_grid *grid, const uint8_t *marked, const float (*values)[3],
                           sk_surface_sums *result, selkie_error *error);
/* The same, with the squares. */
selkie_code sk_surface_sum_squares(const sk_surface_grid *grid, const uint8_t *marked, const float (*values)[3],
                                   sk_surface_sums *result, selkie_error *error);
/* Vectors of the caller's particles in the order of the points; what is not a number becomes 0. */
void sk_surface_sort_vectors(const sk_surface_grid *grid, const float *vectors, size_t stride, float (*sorted)[3]);
/* Sums of up to three values over the particles at the nodes of all blocks, after the kernel's filter
 * (surface_values.c).
 */
selkie_code sk_surface_sum_values(const sk_surface_grid *grid, int count, const sk_surface_value *values,
                                  f4 (*sums)[sk_node_count], selkie_error *error);
/* Sums of a block after the kernel's filter; places count from the block's first node. */
void sk_surface_filter(const sk_surface_grid *grid, const sk_surface_sums *sums, int are_places, size_t block,
                       f4 result[sk_node_count]);

void sk_surface_kernel_init(sk_surface_kernel *kernel, float spacing);

/* Level set in grid->phi (surface_field.c, surface_smooth.c), then triangles (surface_mesh.c). */
selkie_code sk_surface_level_set(sk_surface_grid *grid, selkie_error *error);
void sk_surface_smooth(sk_surface_grid *grid, double smoothing);
selkie_code sk_surface_triangulate(const sk_surface_grid *grid, const float *velocity, size_t velocity_stride,
                                   const sk_surface_options *options, sk_mesh *mesh, selkie_error *error);

#endif
