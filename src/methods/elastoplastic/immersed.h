/* Elastoplastic points beside the liquid of the grid methods: clay in water, dough in honey.
 *
 * Points of materials of kind elastoplastic move by the material point method (mpm.h), liquids by FLIP. Both have
 * velocities of their own, and one pressure keeps the mixture free of divergence (Boyd and Bridson 2012), as for bodies
 * of particles (shape_matching.h). A step:
 *
 *   keep       points remember where they are: the density projection moves all particles
 *   place      points go back to these places
 *   mix        points alone are copied in the order of cells, and mpm's to_grid and nodes run on the copy. Faces take
 *              the velocity of the nodes beside them by mass; phi is the share of the points in the volume. The
 * pressure sees (1 - phi) u_l + phi u_s with the lightness (1 - phi) / density_l + phi / density_s remember   the
 * mixture before the pressure solve part       each velocity takes its own change. Then nodes with both meet: liquid
 * that moves into the points and the points take a common velocity along the normal, with Coulomb friction across it
 *   to_points  mpm's own; the move of the liquid then moves the points too, straight
 *   expel      liquid inside the points goes back to their surface
 *
 * Inside sand the pressure of the liquid must not carry the weight of the grains, whose friction needs it. Faces there
 * are eased: the pressure moves an imaginary flow through the grains rather than the grains.
 */
#ifndef SK_METHODS_IMMERSED_H
#define SK_METHODS_IMMERSED_H

#include "methods/method.h"
#include "methods/mixture.h"

extern const sk_method sk_method_immersed;

typedef struct sk_immersed {
    uint8_t liquid_mask[SK_TRANSFER_MATERIALS], point_mask[SK_TRANSFER_MATERIALS];
    sk_mixture mixture;
    float lightness;   /* of the first material of points */
    sk_particles own;  /* the points, in the order of cells */
    uint32_t *sources; /* [own] index of the particle */
    uint32_t *cell_start;
    float *grains; /* [cells] 1 = holds points of sand */
    size_t source_capacity, start_capacity, grain_capacity;
    int is_stepping; /* between keep and expel; other runs of the phases only measure */
} sk_immersed;

static inline sk_immersed *sk_immersed_of(const sk_step *step)
{
    return (sk_immersed *)sk_step_state(step, &sk_method_immersed);
}

#define SK_IMMERSED_PHASES(dim)                                                                                        \
    selkie_code sk_immersed_keep_##dim(sk_step *step, selkie_error *error);                                            \
    selkie_code sk_immersed_place_##dim(sk_step *step, selkie_error *error);                                           \
    selkie_code sk_immersed_mix_##dim(sk_step *step, selkie_error *error);                                             \
    selkie_code sk_immersed_mix_plain_##dim(sk_step *step, selkie_error *error);                                       \
    selkie_code sk_immersed_remember_##dim(sk_step *step, selkie_error *error);                                        \
    selkie_code sk_immersed_part_##dim(sk_step *step, selkie_error *error);                                            \
    selkie_code sk_immersed_to_points_##dim(sk_step *step, selkie_error *error);                                       \
    selkie_code sk_immersed_to_points_plain_##dim(sk_step *step, selkie_error *error);                                 \
    selkie_code sk_immersed_expel_##dim(sk_step *step, selkie_error *error);                                           \
    /* Copies the points in the order of cells. */                                                                     \
    selkie_code sk_immersed_collect_##dim(sk_step *step, selkie_error *error);

SK_IMMERSED_PHASES(2d)
SK_IMMERSED_PHASES(3d)

#endif
