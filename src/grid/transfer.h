/* Transfers between particles and the staggered grid, trilinear weights (PIC, FLIP: Zhu and Bridson 2005; APIC: Jiang
 * et al. 2015).
 *
 * To the grid without scattering: the particles of a block are added up, those of a cell in their sorted order, in a
 * tile that belongs to the block and reaches one cell beyond it; then each block collects its own tile and the rims of
 * its neighbours' in a fixed order. No atomics, and no trace of the number of threads.
 *
 * Particles have one volume. Where materials differ in density, faces gather momentum by mass (sum of m w v over sum of
 * m w), and the density field, which counts volume, stays as it is. A mask leaves out the particles of some materials:
 * the density is then the volume fraction of the others.
 */
#ifndef SK_GRID_TRANSFER_H
#define SK_GRID_TRANSFER_H

#include "grid/grid.h"

typedef enum sk_transfer_kind { SK_TRANSFER_PIC, SK_TRANSFER_FLIP, SK_TRANSFER_APIC } sk_transfer_kind;

enum { SK_TRANSFER_MATERIALS = 256 }; /* length of tables by material */

typedef struct sk_transfer_options {
    sk_transfer_kind kind;
    float flip_ratio;
    float density_per_particle; /* 1 / particles per cell at rest */
    int threads;
    /* To the particles alone: cells with a value above 0 have particles that fly (SK_PARTICLE_FLYING), others none;
     * NULL = the particles' flags stay. */
    const float *flying;
    /* For the density alone: cells (of a slot by block) whose particles do not count; NULL = all count. */
    const uint8_t *left_out;
    const int32_t *left_out_slot;
    /* Of materials, by the attribute "material"; to the grid alone. */
    const float *relative_density; /* [SK_TRANSFER_MATERIALS] density over the reference density; NULL = one density */
    const uint8_t *material_mask;  /* [SK_TRANSFER_MATERIALS] not 0 = its particles count; NULL = all count */
    int only_changes; /* nothing but particles' positions has changed since the last time, and only as the grid's
                         `changes` say */
} sk_transfer_options;

typedef struct sk_particle_sums {
    double kinetic;   /* sum of |v|^2 / 2, (m/s)^2 */
    double max_speed; /* m/s */
    int64_t bad;      /* particles whose velocity is not finite */
} sk_particle_sums;

/* Fills VELOCITY_* (weighted mean of the particles, NaN where there are none), CHANGE_* (a copy of it) and DENSITY, and
 * FACE_DENSITY_* and LIGHTNESS_* where the grid has them. */
selkie_code sk_transfer_to_grid_2d(sk_grid *grid, const sk_particles *particles, const sk_transfer_options *options,
                                   selkie_error *error);
selkie_code sk_transfer_to_grid_3d(sk_grid *grid, const sk_particles *particles, const sk_transfer_options *options,
                                   selkie_error *error);

/* Fills DENSITY alone. */
selkie_code sk_transfer_density_2d(sk_grid *grid, const sk_particles *particles, const sk_transfer_options *options,
                                   selkie_error *error);
selkie_code sk_transfer_density_3d(sk_grid *grid, const sk_particles *particles, const sk_transfer_options *options,
                                   selkie_error *error);

/* Moves the particles by the three fields from `first` on, displacements in cells on the faces. Interpolated as
 * constant along the normal of the nearest face and linear across it: the derivative of the trilinear density, so that
 * a displacement changes the density as its divergence says. None leaves the box from low to high (m). Where the next
 * thing to happen is a sort after small moves, tell_leavers spares it to look for who left; room must have been
 * reserved. If `runs` is not NULL, only the particles in those of each block move. */
void sk_transfer_displace_2d(sk_grid *grid, sk_grid_field first, sk_particles *particles, const float low[3],
                             const float high[3], const uint64_t *runs, int tell_leavers, int threads);
void sk_transfer_displace_3d(sk_grid *grid, sk_grid_field first, sk_particles *particles, const float low[3],
                             const float high[3], const uint64_t *runs, int tell_leavers, int threads);

/* Particle velocities (and the attribute "affine") from VELOCITY_* and CHANGE_* (new minus old); sums over particles.
 */
selkie_code sk_transfer_to_particles_2d(sk_grid *grid, sk_particles *particles, const sk_transfer_options *options,
                                        sk_particle_sums *sums, selkie_error *error);
selkie_code sk_transfer_to_particles_3d(sk_grid *grid, sk_particles *particles, const sk_transfer_options *options,
                                        sk_particle_sums *sums, selkie_error *error);

#endif
