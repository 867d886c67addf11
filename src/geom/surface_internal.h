/* Shared by the parts of the surface extraction: the sparse grid of nodes and the particles binned into its blocks.
 *
 * Lengths inside are in voxels, and coordinates are counted from `origin`, so that node (i,j,k) lies at (i,j,k). Voxels
 * are stretched by less than half of one over the whole container, along each axis on its own, so that the outermost
 * nodes in it lie SK_SURFACE_WALL_GAP inside both walls. The surface next to the wall is then sampled correctly, and
 * its line along the wall is straight, without steps.
 */
#ifndef SK_GEOM_SURFACE_INTERNAL_H
#define SK_GEOM_SURFACE_INTERNAL_H

#include "geom/surface.h"

enum {
    sk_node_log = 3,
    sk_node_n = 8,          /* nodes of a block along an axis */
    sk_node_count = 512,    /* nodes of a block */
    sk_halo = 4,            /* nodes around a block that a filter may see */
    sk_padded_n = 16,       /* sk_node_n + 2 sk_halo */
    sk_padded_count = 4096, /* sk_padded_n^3 */
    sk_middle = 13          /* the block itself among its 27 neighbours */
};

/* Half width of the band of distances, in voxels; beyond it they stay at this value. */
#define SK_SURFACE_BAND 4.0f
#define SK_SURFACE_WALL_GAP 0.04f

typedef struct sk_surface_grid {
    double origin[3];   /* m      where node (0,0,0) lies */
    double voxel[3];    /* m      */
    float spacing;      /* voxels between particles at rest */
    float reach;        /* voxels radius of the kernel, below sk_node_n */
    float radius;       /* voxels of a particle among others */
    float drop_radius;  /* voxels of a lone particle: enough to hold a node of the grid wherever it is */
    float cutoff;       /* voxels no liquid farther than this from every particle */
    float offset;       /* voxels the finished surface is moved outward, measured: see surface_field.c */
    float mirror;       /* voxels depth of the images behind a wall: all that a node in the container sees */
    float wall_low[3];  /* voxels the container */
    float wall_high[3]; /* voxels */
    int threads;

    size_t block_count;
    int32_t (*coordinates)[3]; /* of the blocks, in ascending order of z, y, x */
    int32_t (*neighbours)[27]; /* block indices, -1 where there is none; x fastest */

    size_t particle_count; /* with the images behind the walls */
    float *particle[3];    /* voxels, sorted by block */
    uint32_t *source;      /*        which particle of the caller's */
    size_t *first;         /*        [block_count + 1] into the particles */
    uint8_t *full;         /*        a block without a gap */

    float *phi;   /* voxels [block_count][512] level set, negative inside */
    float *other; /* voxels the same size, for passes that cannot work in place */
} sk_surface_grid;

/* A block with its halo of 4, x fastest; missing blocks read as air. */
void sk_surface_load(const sk_surface_grid *grid, const float *field, size_t block, float *padded);

/* Weighted sums over the particles at the nodes of a block: weight and up to three values, which are given a particle
 * each in `values` (index by sorted particle) minus `offset`. `nearest` (may be NULL) gets squared distances. */
typedef struct sk_node_sums {
    float weight[sk_node_count];
    float value[3][sk_node_count];
    float nearest[sk_node_count];
} sk_node_sums;
void sk_surface_gather(const sk_surface_grid *grid, size_t block, const float *const values[3], const float offset[3],
                       sk_node_sums *sums);

/* Level set in grid->phi (surface_field.c), then triangles (surface_mesh.c). */
void sk_surface_level_set(sk_surface_grid *grid, double smoothing);
selkie_code sk_surface_triangulate(const sk_surface_grid *grid, const float *velocity, size_t velocity_stride,
                                   const sk_surface_options *options, sk_mesh *mesh, selkie_error *error);

#endif
