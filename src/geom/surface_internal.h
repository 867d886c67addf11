/* Shared by the parts of the surface extraction: the sparse grid of nodes and the particles binned into its blocks.
 *
 * Lengths inside are in voxels, and coordinates are counted from `origin`, so that node (i,j,k) lies at (i,j,k). Node 1
 * of an axis is the first one in the container, node `last` the last one. Voxels are stretched by less than half of one
 * over the whole container, along each axis on its own, so that these two lie SK_SURFACE_WALL_GAP inside the walls. The
 * surface next to the wall is then sampled correctly, and its line along the wall is straight, without steps.
 *
 * Fields continue beyond a wall as mirror images about the outermost node: the level set meets the wall at a right
 * angle. Blocks exist inside the container only.
 */
#ifndef SK_GEOM_SURFACE_INTERNAL_H
#define SK_GEOM_SURFACE_INTERNAL_H

#include "base/simd.h"
#include "geom/surface.h"

enum {
    sk_node_log = 3,
    sk_node_n = 8,         /* nodes of a block along an axis */
    sk_node_count = 512,   /* nodes of a block */
    sk_most_halo = 4,      /* nodes around a block that a filter may see */
    sk_most_padded = 4096, /* (sk_node_n + 2 sk_most_halo)^3 */
    sk_middle = 13,        /* the block itself among its 27 neighbours */
    sk_sub_count = 64      /* cells of 2x2x2 voxels in a block, x fastest */
};

/* Half width of the band of distances, in voxels; beyond it they stay at this value. */
#define SK_SURFACE_BAND 4.0f
#define SK_SURFACE_WALL_GAP 0.04f

/* A block's nodes, with regard to the surface. */
typedef enum sk_block_side {
    SK_BLOCK_MIXED,
    SK_BLOCK_OUTSIDE, /* all nodes */
    SK_BLOCK_INSIDE   /* all nodes */
} sk_block_side;

/* A particle in its block: place in voxels, and its number among the caller's. */
typedef struct sk_surface_point {
    float x[3];      /* voxels */
    uint32_t source; /*        which particle of the caller's */
} sk_surface_point;

/* The kernel of the particles along an axis: a quadratic B-spline of the voxel size, widened by a filter on the nodes
 * to a deviation that belongs to the particle spacing. */
typedef struct sk_surface_kernel {
    int halo;      /*        nodes to each side of the filter */
    float taps[7]; /*        of the filter, [2 halo + 1] */
    float peak;    /*        value at 0, of the whole kernel along an axis */
    float depth;   /* voxels mean depth of the liquid, seen from its flat surface */
    float slope;   /*        of the level set at a flat surface */
} sk_surface_kernel;

typedef struct sk_surface_grid {
    double origin[3];   /* m      where node (0,0,0) lies */
    double voxel[3];    /* m      */
    int last[3];        /*        outermost nodes in the container; the others are nodes 1 */
    float wall_low[3];  /* voxels the container */
    float wall_high[3]; /* voxels */
    sk_surface_kernel kernel;
    float spacing;     /* voxels between particles at rest */
    float radius;      /* voxels of a particle among others */
    float drop_radius; /* voxels of a lone particle: enough to hold a node of the grid wherever it is */
    float cutoff;      /* voxels no liquid farther than this from every particle */
    float offset;      /* voxels the finished surface is moved outward, measured: see surface_field.c */
    int threads;
    int only_blocks; /* particles are not sorted by cell: all of a block belong to its first one, none is inside */

    size_t block_count;
    int32_t (*coordinates)[3]; /* of the blocks, in ascending order of z, y, x */
    int32_t (*neighbours)[27]; /* block indices, -1 where there is none; x fastest */

    size_t particle_count;
    sk_surface_point *points;                /* sorted by block and by cell in it */
    size_t *first;                           /* [block_count + 1] into the points */
    uint32_t (*sub_first)[sk_sub_count + 1]; /* of the cells of a block, from its first point */

    uint64_t *inside; /* a bit a cell: surely inside, all cells around it have particles */
    uint64_t *deep;   /* a bit a cell: its particles affect no node outside of `inside` */
    uint8_t *side;    /* sk_block_side of the blocks */
    uint8_t *near;    /* 1 = the surface is in the block or beside it */

    float *phi;   /* voxels [block_count][512] level set, negative inside */
    float *other; /* voxels the same size, for passes that cannot work in place */
    float *spare; /* voxels the same size, likewise */
    /* Signs of a finished level set: a byte a row of nodes, bits are nodes inside. */
    uint8_t (*signs)[sk_sub_count];
} sk_surface_grid;

/* A block with `halo` (1, 2 or 4) nodes around it, x fastest. Missing blocks read as air, beyond walls lie mirror
 * images. */
void sk_surface_load(const sk_surface_grid *grid, const float *field, size_t block, int halo, float *padded);

/* A wall that a block with a halo sees: where mirror images lie in its padded array. */
typedef struct sk_wall_image {
    int node;  /* of the wall, from the block's first node */
    int first; /* place of the wall's first node; the others lie at multiples of u and v from it */
    int u, v;
    int out;   /* one node outward */
    int steps; /* nodes that are images */
} sk_wall_image;

/* Returns 0 if the block does not see the wall. */
static inline int sk_surface_wall(const sk_surface_grid *grid, size_t block, int halo, int axis, int side,
                                  sk_wall_image *image)
{
    const int n = sk_node_n + 2 * halo, stride[3] = {1, n, n * n};
    const int node = (side ? grid->last[axis] : 1) - grid->coordinates[block][axis] * sk_node_n, place = node + halo;
    if (node < -halo || node >= sk_node_n + halo)
        return 0;
    const int room = side ? n - 1 - place : place, depth = n - 1 - room;
    *image = (sk_wall_image){.node = node,
                             .first = stride[axis] * place,
                             .u = stride[(axis + 1) % 3],
                             .v = stride[(axis + 2) % 3],
                             .out = side ? stride[axis] : -stride[axis],
                             .steps = room < depth ? room : depth};
    return 1;
}

/* Lengths and kernel for these options; the grid is empty yet (surface.c). */
selkie_code sk_surface_grid_init(sk_surface_grid *grid, const sk_surface_options *options, size_t particle_count,
                                 selkie_error *error);
void sk_surface_grid_free(sk_surface_grid *grid);
/* Grid, blocks and the smooth level set of these particles; the caller frees the grid in any case. */
selkie_code sk_surface_prepare(sk_surface_grid *grid, const sk_surface_particles *particles,
                               const sk_surface_options *options, selkie_error *error);

/* Sorts the particles into blocks (surface_bins.c). */
selkie_code sk_surface_bin(sk_surface_grid *grid, const sk_surface_particles *particles, selkie_error *error);

/* Sums over particles at the nodes (surface_sums.c). A node has four sums: of the weights and of three values times the
 * weights. Only blocks that are marked have them. */
typedef struct sk_surface_sums {
    int32_t *index; /* [block_count] block of sums, -1 = none */
    f4 *sums;       /* [marked blocks][512] weight first */
    float *squares; /* [marked blocks][512] of the values' squared lengths times the weights; NULL = none */
} sk_surface_sums;
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
