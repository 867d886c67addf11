/* Paths of particles among obstacles: nothing passes through a surface, however thin or fast it is.
 *
 * A path is tested in the frame of each obstacle, from its pose at one share of the step to its pose at another. The
 * particle stops a small gap before the first surface that it would cross and slides along it for the rest of the path.
 * An obstacle that moves therefore carries the particles that it meets. The test is exact for every shape: sampled
 * distances only reject particles that are far from all obstacles.
 *
 * The surface decides, not the nearest side. A plate of any thickness, even of none, keeps its two sides apart.
 */
#ifndef SK_GRID_SWEEP_H
#define SK_GRID_SWEEP_H

#include <math.h>

#include "grid/grid_kernels.h"
#include "grid/solids.h"

/* Gap between particles and surfaces, cells. */
#define SK_SWEEP_GAP 1e-3

/* A straight path of a particle during a part of the step. */
typedef struct sk_swept_path {
    float from[3], to[3];  /* m */
    double begin, end;     /* shares of the step; both 0: a correction of positions at its start */
    float low[3], high[3]; /* m  bounds of the particles */
    double deepest;        /* m  a particle that was inside before is pushed out only from this depth or less */
} sk_swept_path;

/* The surface that a particle met last. */
typedef struct sk_touch {
    int obstacle;    /* -1 = none */
    float normal[3]; /* world frame, towards the particle */
} sk_touch;

/* Moves `to` back to where the path can end. `from` lies outside the obstacles, or the particle may leave them. Returns
 * whether a surface stopped the particle or pushed it. */
int sk_sweep(const sk_solids *solids, sk_swept_path *path, sk_touch *touch);
/* Removes the velocity (m/s) into the surface that was met, at the end of the path. Rigid bodies take up the momentum
 * themselves: nothing changes there. */
void sk_sweep_stop(const sk_solids *solids, const sk_touch *touch, const float x[3], float velocity[3]);
/* For displacements of all particles at the start of the step: keep_places stores the positions (in the spare records)
 * of particles that can meet an obstacle within `reach` cells, sweep_places then tests the paths from there. Particles
 * flagged SK_PARTICLE_INSIDE are pushed out only from half a cell; the flag is cleared when they are out. */
void sk_sweep_keep_places(const sk_solids *solids, const sk_grid *grid, sk_particles *particles, float reach,
                          int threads);
void sk_sweep_places(const sk_solids *solids, const sk_grid *grid, sk_particles *particles, float reach, int threads);
/* The same for one particle; `path` has the bounds. */
void sk_sweep_displaced_particle(const sk_solids *solids, sk_swept_path *path, const float before[3],
                                 sk_particle *particle);
/* One displacement from `from` to `to`, from the start of the step to the share `end` of it. Returns whether an
 * obstacle changed its end. */
int sk_sweep_displacement(const sk_solids *solids, const float low[3], const float high[3], const float from[3],
                          float to[3], double end);

/* Is every surface farther than `reach` cells from the particles of a block, during the whole step? */
static inline int sk_sweep_is_clear(const sk_solids *solids, int block, float reach)
{
    return solids->clearance[block] > reach;
}

/* Obstacles farther than this from a block (cells) are not in the sampled distances of its cells. */
#define SK_SWEEP_SAMPLED 2.0f

/* The most that a sampled distance in a slot may be wrong, in cells: round-off for exact samples, and half a cell for
 * those of meshes. */
SK_KERNEL float sk_sweep_sample_error(const sk_solids *solids, size_t slot)
{
    return solids->exact[slot] ? 0.02f : 0.53f;
}

/* The same for particles of one cell, at most `off` cells from its centre, by its sampled distance. In blocks without
 * an obstacle nearby the distance is that of the walls. */
SK_KERNEL int sk_sweep_is_place_clear(const sk_solids *solids, int block, int cell, float off, float reach)
{
    const int32_t slot = solids->block_slot[block];
    const float distance = solids->plain[slot]
                               ? SK_SWEEP_SAMPLED
                               : solids->distance[(size_t)slot * (size_t)solids->block_cells + (size_t)cell];
    const float least = reach + solids->motion + sk_sweep_sample_error(solids, (size_t)slot);
    return (distance < 0.0f ? -distance : distance) - off > least && SK_SWEEP_SAMPLED > least;
}

/* Is every surface farther from the path of a particle of a cell than its length? */
SK_KERNEL int sk_sweep_is_path_clear(const sk_solids *solids, const sk_grid *grid, int block, int cell,
                                     const float from[3], const float to[3])
{
    const float inverse = (float)(1.0 / grid->cell_size);
    float off = 0.0f, length = 0.0f;
    for (int d = 0; d < solids->dimension; d++) {
        const float place = (from[d] - (float)grid->corner[d]) * inverse, part = place - floorf(place) - 0.5f;
        off += part * part;
        length += fabsf(to[d] - from[d]) * inverse;
    }
    return sk_sweep_is_place_clear(solids, block, cell, sqrtf(off), length);
}

#endif
