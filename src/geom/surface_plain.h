/* The surface of a cloud of particles at one particle, node, cell or vertex, for the CPU and the GPU.
 *
 * Lengths are in voxels, and coordinates are counted from `origin`, so that node (i,j,k) lies at (i,j,k). Node 1 of an
 * axis is the first one in the container, node `last` the last one. Voxels are stretched by less than half of one over
 * the whole container, along each axis on its own, so that these two lie SK_SURFACE_WALL_GAP inside the walls. The
 * surface next to the wall is then sampled correctly, and its line along the wall is straight, without steps.
 *
 * Fields continue beyond a wall as mirror images about the outermost node: the level set meets the wall at a right
 * angle. Blocks exist inside the container only.
 *
 * The files that use this header are compiled without fused multiply-add, so that meshes of the CPU and of the GPU have
 * the same bits.
 */
#ifndef SK_GEOM_SURFACE_PLAIN_H
#define SK_GEOM_SURFACE_PLAIN_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "base/kernel.h"
#include "geom/surface.h"
#include "geom/surface_lanes.h"

enum {
    sk_node_log = 3,
    sk_node_n = 8,         /* nodes of a block along an axis */
    sk_node_count = 512,   /* nodes of a block */
    sk_most_halo = 4,      /* nodes around a block that a filter may see */
    sk_most_padded = 4096, /* (sk_node_n + 2 sk_most_halo)^3 */
    sk_middle = 13,        /* the block itself among its 27 neighbours */
    sk_sub_count = 64,     /* cells of 2x2x2 voxels in a block, x fastest */
    sk_local_n = 11,       /* nodes -1 to 9 of a block: all that its own particles reach */
    sk_local_count = sk_local_n * sk_local_n * sk_local_n,
    sk_ring_n = sk_node_n + 2, /* nodes of a block and those beside it */
    sk_ring_count = sk_ring_n * sk_ring_n * sk_ring_n,
    sk_most_filter_halo = 3,
    sk_vertex_halo = 2, /* nodes around a block that the gradients at its vertices see */
    sk_vertex_n = sk_node_n + 2 * sk_vertex_halo,
    sk_edge_words = 3 * sk_node_count / 64, /* bits of a block's edges: axis, then node */
    sk_most_case_triangles = 8
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

/* fminf and fmaxf of the C library treat NaNs, which prevents vectorisation. */
SK_KERNEL float sk_least(float a, float b)
{
    return a < b ? a : b;
}

SK_KERNEL float sk_most(float a, float b)
{
    return a > b ? a : b;
}

/* From 0 at 0 to 1 at 1. */
SK_KERNEL float sk_smooth_step(float t)
{
    t = sk_least(sk_most(t, 0.0f), 1.0f);
    return t * t * (3.0f - 2.0f * t);
}

/* --- Particles and blocks --- */

/* From metres to voxels, and where a particle can make liquid. */
typedef struct sk_surface_frame {
    double origin[3], inverse[3];
    float low[3], high[3], last[3]; /* voxels */
} sk_surface_frame;

SK_KERNEL sk_surface_frame sk_surface_frame_of(const sk_surface_grid *grid)
{
    sk_surface_frame frame;
    for (int a = 0; a < 3; ++a) {
        frame.origin[a] = grid->origin[a];
        frame.inverse[a] = 1.0 / grid->voxel[a];
        frame.low[a] = grid->wall_low[a] - grid->drop_radius;
        frame.high[a] = grid->wall_high[a] + grid->drop_radius;
        frame.last[a] = (float)grid->last[a];
    }
    return frame;
}

/* Place of a particle along an axis, moved into the container. Returns 0 if it is not finite or too far outside to
 * touch the container. */
SK_KERNEL int sk_surface_place(const sk_surface_frame *frame, int axis, float metres, float *x)
{
    const float at = (float)(((double)metres - frame->origin[axis]) * frame->inverse[axis]);
    const float above = at > 1.0f ? at : 1.0f; /* not a number: 1 */
    *x = above < frame->last[axis] ? above : frame->last[axis];
    return at > frame->low[axis] && at < frame->high[axis];
}

/* Cell of a particle in its block. */
SK_KERNEL int sk_surface_cell(const float x[3])
{
    const int i = (int)x[0] & 7, j = (int)x[1] & 7, k = (int)x[2] & 7;
    return (i >> 1) + 4 * (j >> 1) + 16 * (k >> 1);
}

/* Cells of the layers `from` to `to` along an axis. */
SK_KERNEL uint64_t sk_layer_bits(int axis, int from, int to)
{
    uint64_t bits = 0;
    for (int cell = 0; cell < sk_sub_count; ++cell) {
        const int layer = cell >> (2 * axis) & 3;
        if (layer >= from && layer <= to)
            bits |= (uint64_t)1 << cell;
    }
    return bits;
}

/* Cells from which a particle can make liquid in a neighbour block, or affect the smoothing there: those of the
 * neighbour below, of the block itself and of the neighbour above along an axis. */
typedef struct sk_surface_reach {
    uint64_t bits[3][3];
} sk_surface_reach;

SK_KERNEL sk_surface_reach sk_surface_reach_of(const sk_surface_grid *grid)
{
    sk_surface_reach reach;
    const float margin = grid->cutoff + grid->spacing + 1.0f;
    int layers = (int)ceilf(0.5f * margin);
    layers = layers < 4 ? layers : 4;
    for (int a = 0; a < 3; ++a) {
        reach.bits[a][0] = sk_layer_bits(a, 0, layers - 1);
        reach.bits[a][1] = ~(uint64_t)0;
        reach.bits[a][2] = sk_layer_bits(a, 4 - layers, 3);
    }
    return reach;
}

/* Does a block with these cells reach its neighbour number n? */
SK_KERNEL int sk_surface_reaches(const sk_surface_reach *reach, uint64_t occupied, int n)
{
    return (occupied & reach->bits[0][n % 3] & reach->bits[1][n / 3 % 3] & reach->bits[2][n / 9]) != 0;
}

/* Bits of the neighbour block seen from this one; beyond the walls all cells count as occupied. */
SK_KERNEL uint64_t sk_bits_beside(const sk_surface_grid *grid, const uint64_t *bits, size_t block, int axis, int side)
{
    const int stride = axis == 0 ? 1 : axis == 1 ? 3 : 9;
    const int32_t other = grid->neighbours[block][sk_middle + (side ? stride : -stride)];
    if (other >= 0)
        return bits[other];
    const int c = grid->coordinates[block][axis] + (side ? 1 : -1);
    return c < 0 || c > grid->last[axis] >> sk_node_log ? ~(uint64_t)0 : 0;
}

/* Keeps the cells of a block whose neighbours on both sides along an axis are in the set too. */
SK_KERNEL uint64_t sk_surface_erode(const sk_surface_grid *grid, int axis, const uint64_t *from, size_t block)
{
    const int shift = 1 << (2 * axis);
    const uint64_t low = sk_layer_bits(axis, 0, 0), high = sk_layer_bits(axis, 3, 3), own = from[block];
    const uint64_t before = (own << shift & ~low) | (sk_bits_beside(grid, from, block, axis, 0) >> (3 * shift) & low);
    const uint64_t after = (own >> shift & ~high) | (sk_bits_beside(grid, from, block, axis, 1) << (3 * shift) & high);
    return own & before & after;
}

/* Erosions after the first one, until only cells whose particles affect no node outside of `inside` are left. */
SK_KERNEL int sk_surface_erosions(const sk_surface_grid *grid)
{
    return (int)ceilf(0.5f * (1.5f + (float)grid->kernel.halo));
}

/* Cells beyond the last node of an axis. */
SK_KERNEL uint64_t sk_cells_beyond(const sk_surface_grid *grid, size_t block)
{
    uint64_t bits = 0;
    for (int a = 0; a < 3; ++a)
        for (int layer = 0; layer < 4; ++layer)
            if (grid->coordinates[block][a] * sk_node_n + 2 * layer >= grid->last[a])
                bits |= sk_layer_bits(a, layer, layer);
    return bits;
}

/* --- Walls --- */

/* A wall that a block with a halo sees: where mirror images lie in its padded array. */
typedef struct sk_wall_image {
    int node;  /* of the wall, from the block's first node */
    int first; /* place of the wall's first node; the others lie at multiples of u and v from it */
    int u, v;
    int out;   /* one node outward */
    int steps; /* nodes that are images */
} sk_wall_image;

/* Returns 0 if the block does not see the wall. */
SK_KERNEL int sk_surface_wall(const sk_surface_grid *grid, size_t block, int halo, int axis, int side,
                              sk_wall_image *image)
{
    const int n = sk_node_n + 2 * halo, stride[3] = {1, n, n * n};
    const int node = (side ? grid->last[axis] : 1) - grid->coordinates[block][axis] * sk_node_n, place = node + halo;
    if (node < -halo || node >= sk_node_n + halo)
        return 0;
    const int room = side ? n - 1 - place : place, depth = n - 1 - room;
    image->node = node;
    image->first = stride[axis] * place;
    image->u = stride[(axis + 1) % 3];
    image->v = stride[(axis + 2) % 3];
    image->out = side ? stride[axis] : -stride[axis];
    image->steps = room < depth ? room : depth;
    return 1;
}

/* The image of a sum behind a wall at `wall` voxels from the block's first node; values other than places stay. */
SK_KERNEL f4 sk_surface_mirrored(f4 sum, int axis, float wall, int are_places)
{
    if (are_places)
        sum[axis + 1] = 2.0f * wall * sum[0] - sum[axis + 1];
    return sum;
}

/* --- Sums over particles --- */

/* Sums at the nodes: of the weights and of three values times the weights. Only blocks that are marked have them. */
typedef struct sk_surface_sums {
    int32_t *index; /* [block_count] block of sums, -1 = none */
    f4 *sums;       /* [marked blocks][512] weight first */
    float *squares; /* [marked blocks][512] of the values' squared lengths times the weights; NULL = none */
} sk_surface_sums;

/* Weights of the nodes before, at and behind the nearest one, `offset` from it. Lanes are axes. */
SK_KERNEL void sk_surface_weights(sk_lane offset, sk_lane w[3])
{
    const sk_lane below = 0.5f - offset, above = 0.5f + offset;
    w[0] = 0.5f * below * below;
    w[1] = 0.75f - offset * offset;
    w[2] = 0.5f * above * above;
}

/* The wall of an axis and a side, counted from the first node of a block; returns 0 if its particles do not reach it.
 */
SK_KERNEL int sk_surface_fold_wall(const sk_surface_grid *grid, size_t block, int axis, int side, int *wall)
{
    *wall = (side ? grid->last[axis] : 1) - grid->coordinates[block][axis] * sk_node_n;
    return *wall >= 0 && *wall <= sk_node_n + 1;
}

/* Adds the images of the particles behind a wall to the local sums at one of its nodes, and at the node inward. */
SK_KERNEL void sk_surface_fold(f4 *at, int inward, int axis, int wall, int are_places)
{
    at[0] += sk_surface_mirrored(at[0], axis, (float)wall, are_places);
    if (wall <= sk_node_n)
        at[inward] += sk_surface_mirrored(at[-inward], axis, (float)wall, are_places);
}

/* The filter along a line of values that lie `stride` apart. */
SK_KERNEL f4 sk_surface_tap(const f4 *at, int stride, int halo, const float *taps)
{
    f4 sum = at[0] * taps[0];
    for (int t = 1; t <= 2 * halo; ++t)
        sum += at[t * stride] * taps[t];
    return sum;
}

/* --- Level set --- */

/* Distance to the nearest particle, or `cutoff` plus something where none is within that. */
SK_KERNEL float sk_nearest_particle(const sk_surface_grid *grid, size_t block, const int node[3])
{
    float x[3], best = 4.0f * grid->cutoff * grid->cutoff;
    int low[3], high[3];
    for (int a = 0; a < 3; ++a) {
        x[a] = (float)(grid->coordinates[block][a] * sk_node_n + node[a]);
        low[a] = (int)floorf(((float)node[a] - grid->cutoff) * 0.5f);
        high[a] = (int)floorf(((float)node[a] + grid->cutoff) * 0.5f);
    }
    for (int k = low[2]; k <= high[2]; ++k)
        for (int j = low[1]; j <= high[1]; ++j)
            for (int i = low[0]; i <= high[0]; ++i) {
                const int32_t from = grid->neighbours[block][(i + 4) / 4 + 3 * ((j + 4) / 4) + 9 * ((k + 4) / 4)];
                if (from < 0)
                    continue;
                const int cell = (i & 3) + 4 * (j & 3) + 16 * (k & 3);
                const uint32_t *first = grid->sub_first[from] + cell;
                for (size_t p = grid->first[from] + first[0]; p < grid->first[from] + first[1]; ++p) {
                    const float *at = grid->points[p].x;
                    const float d[3] = {at[0] - x[0], at[1] - x[1], at[2] - x[2]};
                    best = sk_least(best, d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
                }
            }
    return sqrtf(best);
}

/* The level set at a node, from its sums. Weights are relative to the bulk. That at a flat surface is 0.5 and falls by
 * 0.5 a spacing outward. */
SK_KERNEL float sk_node_level(const sk_surface_grid *grid, size_t block, int index, f4 sum)
{
    /* A node with clearly more weight than at a surface is inside, regardless of the mean of its particles. Only nodes
     * with little weight can lie between distant clusters. */
    const float crowd_inside = 0.55f, crowd_depth = 2.0f, sparse_weight = 0.35f;
    const int node[3] = {index & 7, index >> 3 & 7, index >> 6};
    const float spacing = grid->spacing, peak = grid->kernel.peak * grid->kernel.peak * grid->kernel.peak;
    if (!(sum[0] > 1e-7f * peak))
        return SK_SURFACE_BAND;
    const float inverse = 1.0f / sum[0];
    const float x = (float)node[0] - sum[1] * inverse, y = (float)node[1] - sum[2] * inverse,
                z = (float)node[2] - sum[3] * inverse;

    /* A lone particle has at most the kernel's peak as its weight, a flat surface three times that. */
    const float among = (sum[0] / peak - 1.0f) * (1.0f / 1.2f);
    const float lone = 1.0f - sk_least(sk_most(among, 0.0f), 1.0f);
    const float radius = grid->radius + lone * (grid->drop_radius - grid->radius);
    const float weight = sum[0] * spacing * spacing * spacing;
    float distance = sqrtf(x * x + y * y + z * z) - radius;
    if (weight < sparse_weight && distance < 0.0f)
        distance = sk_most(distance, sk_nearest_particle(grid, block, node) - grid->cutoff);
    const float crowd = (crowd_inside - weight) * crowd_depth * spacing;
    return sk_least(sk_least(distance, crowd), SK_SURFACE_BAND);
}

/* Cell of a node in its block. */
SK_KERNEL int sk_node_cell(int index)
{
    return (index >> 1 & 3) + 4 * (index >> 4 & 3) + 16 * (index >> 7);
}

/* Does the side of the surface change in a block or beside it? */
SK_KERNEL int sk_surface_is_near(const sk_surface_grid *grid, size_t block)
{
    int near = grid->side[block] == SK_BLOCK_MIXED;
    for (int n = 0; n < 27 && !near; ++n) {
        const int32_t other = grid->neighbours[block][n];
        if (other >= 0)
            near = grid->side[other] != grid->side[block];
    }
    return near;
}

/* --- Distance --- */

SK_KERNEL sk_lane sk_lane_least(sk_lane a, sk_lane b)
{
    return sk_lane_select(a < b, a, b);
}

SK_KERNEL sk_lane sk_lane_most(sk_lane a, sk_lane b)
{
    return sk_lane_select(a > b, a, b);
}

/* The Godunov update of nodes from the least neighbours along each axis. */
SK_KERNEL sk_lane sk_eikonal(sk_lane a, sk_lane b, sk_lane c)
{
    const sk_lane zero = sk_lane_of(0.0f);
    const sk_lane low = sk_lane_least(a, sk_lane_least(b, c)), high = sk_lane_most(a, sk_lane_most(b, c));
    const sk_lane sum = a + b + c, middle = sum - low - high, one = low + 1.0f, gap = low - middle;
    const sk_lane two = 0.5f * (low + middle + sk_lane_sqrt(sk_lane_most(2.0f - gap * gap, zero)));
    const sk_lane squares = low * low + middle * middle + high * high;
    const sk_lane three = (sum + sk_lane_sqrt(sk_lane_most(sum * sum - 3.0f * (squares - 1.0f), zero))) * (1.0f / 3.0f);
    return sk_lane_select(one <= middle, one, sk_lane_select(two <= high, two, three));
}

/* Nodes of a block with a ring around it, and their six neighbours. */
typedef struct sk_star {
    sk_lane own, beside[6];
} sk_star;

SK_KERNEL sk_star sk_star_load(const float *at)
{
    sk_star s;
    int step = 1;
    s.own = sk_lane_load(at);
    for (int a = 0; a < 3; ++a, step *= sk_ring_n) {
        s.beside[2 * a] = sk_lane_load(at - step);
        s.beside[2 * a + 1] = sk_lane_load(at + step);
    }
    return s;
}

/* Does the surface pass between a node and one of its neighbours? */
SK_KERNEL sk_lane_mask sk_star_crosses(const sk_star *s)
{
    sk_lane_mask differs = (s->own < 0.0f) ^ (s->beside[0] < 0.0f);
    for (int n = 1; n < 6; ++n)
        differs |= (s->own < 0.0f) ^ (s->beside[n] < 0.0f);
    return differs;
}

SK_KERNEL sk_lane sk_with_sign(sk_lane size, sk_lane of)
{
    return sk_lane_select(of < 0.0f, -size, size);
}

/* Nodes next to the surface get phi over its slope there and keep it, so that the surface crosses the grid's edges at
 * the same places. The others start at the band's width. */
SK_KERNEL sk_lane sk_distance_start(const sk_star *s, float slope)
{
    const sk_lane size = sk_lane_least(sk_lane_size(s->own) * (1.0f / slope), sk_lane_of(2.0f));
    return sk_with_sign(sk_lane_select(sk_star_crosses(s), size, sk_lane_of(SK_SURFACE_BAND)), s->own);
}

SK_KERNEL sk_lane sk_distance_next(const sk_star *s)
{
    sk_lane axis[3];
    for (int a = 0; a < 3; ++a)
        axis[a] = sk_lane_least(sk_lane_size(s->beside[2 * a]), sk_lane_size(s->beside[2 * a + 1]));
    const sk_lane size = sk_lane_least(sk_eikonal(axis[0], axis[1], axis[2]), sk_lane_of(SK_SURFACE_BAND));
    return sk_lane_select(sk_star_crosses(s), s->own, sk_with_sign(size, s->own));
}

/* --- Smoothing --- */

/* The blurred surface where it differs by less than the particles resolve, else the sharp one. */
SK_KERNEL float sk_surface_blend(float spacing, float phi, float once, float twice)
{
    /* More than 1 also undoes what the kernel's mean takes from curved surfaces; measured on balls. */
    const float bend = 1.35f, closing = 0.15f * spacing;
    /* Differences up to the first are noise, from the second on they are shapes. The smooth surface has lost a sheet or
     * a drop where it lies below the sharp one: less is tolerated there. */
    const float smooth = once - bend * (twice - once), difference = phi - smooth;
    const int lost = difference < 0.0f;
    const float low = lost ? 0.20f * spacing : 0.30f * spacing, high = lost ? 0.50f * spacing : 0.80f * spacing;
    const float t = sk_smooth_step((fabsf(difference) - low) / (high - low));
    /* Closes air well inside the large-scale surface: it is a gap between particles, not a bubble. */
    return sk_least(smooth + (phi - smooth) * t, smooth + closing);
}

/* The blurred surface where it is flat at large, and the one that is blurred twice where it is flatter still: bumps of
 * particles vanish in three blurs, so what the third one still changes is the curvature of a shape, the square of the
 * blur's width over the radius. It moves a ball by as much: the bound is a ball of 50 spacings, 100 for two blurs. */
SK_KERNEL float sk_surface_calm(float bound, float phi, float once, float twice, float thrice)
{
    const float bend = fabsf(thrice - twice) / (0.25f * bound);
    const float flat = twice + (once - twice) * sk_smooth_step(bend - 2.0f);
    return flat + (phi - flat) * sk_smooth_step(bend - 3.0f);
}

/* A cell belongs to the block of its lowest node. A cell of a missing block makes no triangles, so none of its nodes
 * may be inside, or the mesh would have a hole. Active blocks reach far enough that this is rare. Is the lower
 * neighbour number n (of sk_middle) missing? Then `lower` says along which axes only the first nodes are concerned. */
SK_KERNEL int sk_surface_seals(const sk_surface_grid *grid, size_t block, int n, int lower[3])
{
    const int d[3] = {n % 3, n / 3 % 3, n / 9};
    for (int a = 0; a < 3; ++a)
        lower[a] = d[a] == 0;
    return d[0] != 2 && d[1] != 2 && d[2] != 2 && grid->neighbours[block][n] < 0;
}

#define SK_SURFACE_SEALED 0.01f /* voxels: the least distance of such a node */

/* Signs of a row of nodes in the container; those outside of it are air. */
SK_KERNEL uint8_t sk_surface_sign_row(const sk_surface_grid *grid, size_t block, int row, const float *phi)
{
    const int32_t *c = grid->coordinates[block];
    const int j = c[1] * sk_node_n + (row & 7), k = c[2] * sk_node_n + (row >> 3);
    unsigned bits = 0;
    if (j < 1 || j > grid->last[1] || k < 1 || k > grid->last[2])
        return 0;
    for (int i = 0; i < sk_node_n; ++i) {
        const int node = c[0] * sk_node_n + i;
        bits |= (unsigned)(phi[sk_node_n * row + i] < 0.0f && node >= 1 && node <= grid->last[0]) << i;
    }
    return (uint8_t)bits;
}

/* --- Level sets as files --- */

/* The level set at a node (m): the container ends the liquid. */
SK_KERNEL float sk_closed_level(const sk_surface_grid *grid, size_t block, int i, float phi, float metre)
{
    const int node[3] = {i & 7, i >> 3 & 7, i >> 6};
    for (int a = 0; a < 3; ++a) {
        const float x = (float)(grid->coordinates[block][a] * sk_node_n + node[a]);
        phi = sk_most(phi, sk_most(grid->wall_low[a] - x, x - grid->wall_high[a]));
    }
    return metre * sk_least(sk_most(phi, -SK_SURFACE_BAND), SK_SURFACE_BAND);
}

/* A mean of particles' values at a node of a file; NaN where no particle is near. */
SK_KERNEL float sk_volume_mean(f4 sum, int value, int is_whole)
{
    if (!(sum[0] > 1e-4f))
        return NAN;
    const float mean = sum[value + 1] / sum[0];
    return is_whole ? roundf(mean) : mean;
}

#endif
