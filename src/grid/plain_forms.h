/* The plain forms of what the grid does with particles and fields. Beside each stands the header with its tuned twin,
 * which says what it does. */
#ifndef SK_GRID_PLAIN_FORMS_H
#define SK_GRID_PLAIN_FORMS_H

#include "grid/extrapolate.h"
#include "grid/grid.h"
#include "grid/predict.h"
#include "grid/transfer.h"

#define SK_GRID_PLAIN_FORMS(dim)                                                                                       \
    /* grid.h: of both sorts. All blocks count as changed. */                                                          \
    selkie_code sk_grid_sort_plain_##dim(sk_grid *grid, sk_particles *particles, int threads, selkie_error *error);    \
    /* transfer.h. `only_changes` is not looked at, and particles->carried is left unset. */                           \
    selkie_code sk_transfer_to_grid_plain_##dim(sk_grid *grid, const sk_particles *particles,                          \
                                                const sk_transfer_options *options, selkie_error *error);              \
    selkie_code sk_transfer_density_plain_##dim(sk_grid *grid, const sk_particles *particles,                          \
                                                const sk_transfer_options *options, selkie_error *error);              \
    selkie_code sk_transfer_to_particles_plain_##dim(sk_grid *grid, sk_particles *particles,                           \
                                                     const sk_transfer_options *options, sk_particle_sums *sums,       \
                                                     selkie_error *error);                                             \
    /* The next sort finds by itself who left. */                                                                      \
    void sk_transfer_displace_plain_##dim(sk_grid *grid, sk_grid_field first, sk_particles *particles,                 \
                                          const float low[3], const float high[3], const uint64_t *runs, int threads); \
    /* extrapolate.h */                                                                                                \
    void sk_extrapolate_plain_##dim(const sk_grid *grid, float *const *fields, float *const *scratch, int field_count, \
                                    const int32_t *blocks, int count, const uint64_t *wanted, int layers,              \
                                    int threads);                                                                      \
    /* predict.h. All cells are filled, whatever is wanted. */                                                         \
    selkie_code sk_predict_density_plain_##dim(sk_grid *grid, const sk_particles *particles,                           \
                                               const sk_predict_options *options, selkie_error *error);

SK_GRID_PLAIN_FORMS(2d)
SK_GRID_PLAIN_FORMS(3d)

#endif
