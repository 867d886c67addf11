/* A solid material and liquid on one grid: a velocity of its own for each at every face, one pressure for both.
 *
 * Bodies of particles and elastoplastic points share these fields. Only what they do with them differs.
 */
#ifndef SK_METHODS_MIXTURE_H
#define SK_METHODS_MIXTURE_H

#include "methods/method.h"

/* Numbers of the grid's fields. */
typedef struct sk_mixture {
    int solid_velocity, solid_share, liquid_velocity, before, forced; /* first of three fields each */
    int solid_density;
} sk_mixture;

/* Names and meanings of the fields of the solid. */
typedef struct sk_mixture_names {
    const char *velocity[3], *share[3], *density;
    const char *velocity_meaning, *share_meaning, *density_meaning;
} sk_mixture_names;

/* The fields as arrays. */
typedef struct sk_mixture_faces {
    float *velocity[3], *change[3], *end[3], *lightness[3], *liquid_density[3];
    float *solid[3], *share[3], *liquid[3], *before[3], *forced[3];
} sk_mixture_faces;

typedef selkie_code (*sk_mixture_transfer)(sk_grid *grid, const sk_particles *particles,
                                           const sk_transfer_options *options, selkie_error *error);

/* Adds the fields to the grid. */
selkie_code sk_mixture_add_fields(sk_mixture *mixture, sk_step *step, const sk_mixture_names *names,
                                  selkie_error *error);

sk_mixture_faces sk_mixture_faces_of(const sk_mixture *mixture, const sk_step *step);

/* Velocity, volume and lightness of the materials in `mask`, by the transfer of the liquid with other fields. `before`
 * holds the lightness until the velocity before the pressure solve takes its place. `reached`, if not NULL, is that of
 * the transfer: other blocks keep their fields. */
selkie_code sk_mixture_gather(const sk_mixture *mixture, sk_step *step, const uint8_t *mask, uint8_t *reached,
                              sk_mixture_transfer transfer, selkie_error *error);

#endif
