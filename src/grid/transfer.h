/* Transfers between particles and the staggered grid, trilinear weights (PIC, FLIP: Zhu and Bridson 2005; APIC: Jiang
 * et al. 2015).
 *
 * Particle-to-grid without scattering: each block sums its particles, those of a cell in their sorted order, in a tile
 * with a halo of one cell. Each block then adds its own tile and the halos of its neighbours' tiles in a fixed order.
 * This needs no atomics, and the result does not depend on the number of threads.
 *
 * All particles have the same volume. If materials differ in density, faces gather momentum by mass (sum of m w v over
 * sum of m w). The density field counts volume and does not change. A mask leaves out the particles of some materials:
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
    const float *velocity[3]; /* to the particles alone: fields to sample instead of VELOCITY_*; NULL = those */
    /* To the particles alone: sets SK_PARTICLE_FLYING in cells with a value above 0 and clears it in others; NULL =
     * flags stay. */
    const float *flying;
    /* For the density alone: cells whose particles do not count, with the slot of each block; NULL = all count. */
    const uint8_t *left_out;
    const int32_t *left_out_slot;
    /* Tables by the attribute "material"; to the grid alone. */
    const float *relative_density; /* [SK_TRANSFER_MATERIALS] density over the reference density; NULL = one density */
    const uint8_t *material_mask;  /* [SK_TRANSFER_MATERIALS] not 0 = its particles count; NULL = all count */
    /* To the grid alone, NULL = none: [blocks] gets 1 where particles that count reach a block and may get 0 elsewhere.
     * The fields of the others stay as they are. */
    uint8_t *reached_blocks;
    int only_changes; /* only positions have changed since the last transfer, and only in blocks that the grid's
                         `changes` mark */
} sk_transfer_options;

typedef struct sk_particle_sums {
    double kinetic;   /* sum of |v|^2 / 2, (m/s)^2 */
    double max_speed; /* m/s */
    int64_t bad;      /* particles whose velocity is not finite */
} sk_particle_sums;

/* Fills VELOCITY_* (weighted mean of the particles, NaN if there are none), CHANGE_* (a copy) and DENSITY. Fills
 * FACE_DENSITY_* and LIGHTNESS_* if the grid has them. */
selkie_code sk_transfer_to_grid_2d(sk_grid *grid, const sk_particles *particles, const sk_transfer_options *options,
                                   selkie_error *error);
selkie_code sk_transfer_to_grid_3d(sk_grid *grid, const sk_particles *particles, const sk_transfer_options *options,
                                   selkie_error *error);

/* Fills DENSITY alone. */
selkie_code sk_transfer_density_2d(sk_grid *grid, const sk_particles *particles, const sk_transfer_options *options,
                                   selkie_error *error);
selkie_code sk_transfer_density_3d(sk_grid *grid, const sk_particles *particles, const sk_transfer_options *options,
                                   selkie_error *error);

typedef struct sk_displacement {
    sk_grid_field first;   /* first of the fields: cells, on the faces */
    float low[3], high[3]; /* m    particles stay in this box */
    const uint64_t *runs;  /*      only particles in these runs of each block move; NULL = all */
    int wraps;             /*      move particles that leave through a joined side to the opposite one */
    int lists_leavers;     /*      write the list of migrating particles for a sort that follows at once; the list
                                   must have been reserved */
    const struct sk_solids *solids; /* obstacles that no displacement crosses (sk_sweep_places); NULL = none. The plain
                                       form ignores it */
    const uint32_t *places; /* [particles][3] bits of positions (m) that particles stay at, all 0 = it moves; NULL */
    const uint32_t *held;   /* [particles] not 0 = it stays where it is; NULL */
    int threads;
} sk_displacement;

/* Moves the particles by displacements on the faces. The interpolation is constant along the normal of the nearest face
 * and linear across it. It is the derivative of the trilinear density: a displacement changes the density by its
 * divergence. */
void sk_transfer_displace_2d(sk_grid *grid, sk_particles *particles, const sk_displacement *by);
void sk_transfer_displace_3d(sk_grid *grid, sk_particles *particles, const sk_displacement *by);

/* The field of component d that the particles sample for their new velocity. */
SK_KERNEL const float *sk_transfer_velocity(const sk_transfer_options *options, const sk_grid *grid, int d)
{
    return options->velocity[d] ? options->velocity[d] : grid->fields[SK_FIELD_VELOCITY_X + d];
}

/* Grid-to-particle: velocities (and the attribute "affine") from sk_transfer_velocity and CHANGE_* (new minus old);
 * sums over particles. */
selkie_code sk_transfer_to_particles_2d(sk_grid *grid, sk_particles *particles, const sk_transfer_options *options,
                                        sk_particle_sums *sums, selkie_error *error);
selkie_code sk_transfer_to_particles_3d(sk_grid *grid, sk_particles *particles, const sk_transfer_options *options,
                                        sk_particle_sums *sums, selkie_error *error);

#endif
