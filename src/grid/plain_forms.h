/* The plain forms of the grid's operations on particles and fields. The named header of each documents it and its
 * tuned form. */
#ifndef SK_GRID_PLAIN_FORMS_H
#define SK_GRID_PLAIN_FORMS_H

#include "grid/extrapolate.h"
#include "grid/grid.h"
#include "grid/predict.h"
#include "grid/transfer.h"

#define SK_GRID_PLAIN_FORMS(dim)                                                                                       \
    /* grid.h: replaces both sorts. All blocks count as changed. */                                                    \
    selkie_code sk_grid_sort_plain_##dim(sk_grid *grid, sk_particles *particles, int threads, selkie_error *error);    \
    /* transfer.h. `only_changes` is ignored, and particles->carried stays unset. */                                   \
    selkie_code sk_transfer_to_grid_plain_##dim(sk_grid *grid, const sk_particles *particles,                          \
                                                const sk_transfer_options *options, selkie_error *error);              \
    selkie_code sk_transfer_density_plain_##dim(sk_grid *grid, const sk_particles *particles,                          \
                                                const sk_transfer_options *options, selkie_error *error);              \
    selkie_code sk_transfer_to_particles_plain_##dim(sk_grid *grid, sk_particles *particles,                           \
                                                     const sk_transfer_options *options, sk_particle_sums *sums,       \
                                                     selkie_error *error);                                             \
    /* Writes no list of migrating particles. */                                                                       \
    void sk_transfer_displace_plain_##dim(sk_grid *grid, sk_particles *particles, const sk_displacement *by);          \
    /* extrapolate.h */                                                                                                \
    void sk_extrapolate_plain_##dim(const sk_grid *grid, const sk_extrapolation *what);                                \
    /* predict.h. Fills all cells; `wanted` is ignored. */                                                             \
    selkie_code sk_predict_density_plain_##dim(sk_grid *grid, const sk_particles *particles,                           \
                                               const sk_predict_options *options, selkie_error *error);

SK_GRID_PLAIN_FORMS(2d)
SK_GRID_PLAIN_FORMS(3d)

#endif
