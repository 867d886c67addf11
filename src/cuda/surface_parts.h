/* Surfaces of particles on the GPU: what its files share. Private to src/cuda.
 *
 * The steps are those of geom/surface.c, with the functions of geom/surface_plain.h: a thread has a particle, a node, a
 * row of cells or a vertex, and a thread block the nodes of a block. Kernels receive a copy of `sk_surface_grid` whose
 * pointers lead to device memory. Blocks have the numbers and particles the order that they have on the CPU, and every
 * sum has its order, so that the mesh has the same bits.
 *
 * Memory is kept for the next frame. The host waits for the numbers of blocks, of sums and of vertices, to make room.
 */
#ifndef SK_CUDA_SURFACE_PARTS_H
#define SK_CUDA_SURFACE_PARTS_H

#include "cuda/device.h"

extern "C" {
#include "cuda/surface.h"
}
#include "geom/surface_mesh_plain.h"

/* Memory on the device that grows; its content is lost then. */
typedef enum sk_cuda_room {
    SK_ROOM_RECORDS,    /* positions, or all of a particle, as they come from the host */
    SK_ROOM_VELOCITIES, /* where they are apart */
    SK_ROOM_PLACED,     /* [particles] points in the order of the caller */
    SK_ROOM_POINTS,     /* [particles] sorted */
    SK_ROOM_KEYS,       /* [particles] place of the block, NOWHERE = left out */
    SK_ROOM_RANKS,      /* [particles] among those of the cell, in an arbitrary order */
    SK_ROOM_ORDER,      /* [particles] numbers in that order */
    SK_ROOM_PLACES,     /* [places] cells with particles, flags of blocks, their numbers */
    SK_ROOM_BLOCKS,     /* what a block has but nodes */
    SK_ROOM_CELLS,      /* [blocks * 64 + 1] particles of the cells, then the first of each */
    SK_ROOM_NODES,      /* [3][blocks][512] level sets */
    SK_ROOM_TILES,      /* [blocks with particles][sk_local_count] sums of a block's own particles */
    SK_ROOM_SUMS,       /* [marked blocks][512] */
    SK_ROOM_MEANS,      /* [velocity blocks][3][512] */
    SK_ROOM_EDGES,      /* [blocks] sk_block_edges */
    SK_ROOM_MESH,       /* the mesh */
    SK_ROOM_VALUES,     /* [particles] of the three values below */
    SK_ROOM_VALUES_LAST = SK_ROOM_VALUES + 2,
    SK_ROOMS
} sk_cuda_room;

/* Numbers that the device counts and the host reads. */
typedef enum sk_cuda_total {
    SK_TOTAL_BLOCKS,
    SK_TOTAL_POINTS,
    SK_TOTAL_TILES,
    SK_TOTAL_SUMS,
    SK_TOTAL_VERTICES,
    SK_TOTAL_TRIANGLES,
    SK_TOTAL_VELOCITY_BLOCKS,
    SK_TOTAL_VELOCITY_SUMS,
    SK_TOTALS
} sk_cuda_total;

enum { SK_SURFACE_CHUNKS = 264 }; /* parts of an array that is added up */

/* Particles on the device, as the mesher reads them. */
typedef struct sk_cuda_cloud {
    size_t count;
    const char *position;   /* m    xyz */
    size_t position_stride; /* bytes */
    const char *velocity;   /* m/s  xyz; NULL = none */
    size_t velocity_stride; /* bytes */
    const char *flags;      /* sk_particle_flag, position_stride apart; NULL = all particles count */
} sk_cuda_cloud;

struct sk_cuda_mesher {
    sk_cuda cuda; /* its stream alone, and times of its kernels */
    struct {
        void *memory;
        size_t bytes;
    } rooms[SK_ROOMS];
    size_t bytes;                          /* of all rooms */
    unsigned long long *totals, *partial;  /* device: [SK_TOTALS], [SK_SURFACE_CHUNKS] */
    unsigned long long counted[SK_TOTALS]; /* the host's copy */
    sk_case_table *table;                  /* device */

    /* of a frame */
    sk_cuda_cloud cloud;
    sk_surface_grid grid; /* pointers are those of the device */
    int places[3];        /* blocks of the container along each axis */
    size_t place_count;
    uint32_t *flags;      /* [blocks] */
    int32_t *tile_index;  /* [blocks] -1 = none */
    int32_t *sum_index;   /* [blocks] likewise */
    int32_t *block_index; /* [blocks] of velocities, likewise */
    f4 *tiles, *sums;
    sk_block_edges *edges;
};

/* Makes room; `address` is that of a pointer. */
selkie_code sk_cuda_reserve(sk_cuda_mesher *m, sk_cuda_room room, size_t bytes, void *address, selkie_error *error);
/* Waits for the numbers. */
selkie_code sk_cuda_read_totals(sk_cuda_mesher *m, selkie_error *error);
/* Sums of the counts before each one, and the sum of all as a total. With `absent` an entry without a count is -1. */
void sk_cuda_number(sk_cuda_mesher *m, const uint32_t *counts, size_t n, int absent, int32_t *numbers,
                    sk_cuda_total total);

/* Begins a surface: checks the options, and copies the particles of the host to the device (surface.cu). */
selkie_code sk_cuda_surface_begin(sk_cuda_mesher *m, const sk_surface_particles *particles,
                                  const sk_surface_options *options, selkie_error *error);
/* Blocks and sorted particles (surface_bins.cu), the level set (surface_level.cu), triangles (surface_mesh.cu). */
selkie_code sk_cuda_surface_bin(sk_cuda_mesher *m, selkie_error *error);
selkie_code sk_cuda_surface_level(sk_cuda_mesher *m, double smoothing, selkie_error *error);
selkie_code sk_cuda_surface_mesh(sk_cuda_mesher *m, const sk_surface_options *options, sk_mesh *mesh,
                                 selkie_error *error);

/* Up to three values of the particles on the device; none = their places. */
typedef struct sk_cuda_values {
    int count;
    const char *data[3];
    size_t stride[3]; /* bytes */
    int is_whole[3];
} sk_cuda_values;
sk_cuda_values sk_cuda_velocity(const sk_cuda_cloud *cloud);

/* Numbers the blocks that have sums and tiles, and makes room for them. */
selkie_code sk_cuda_surface_room(sk_cuda_mesher *m, selkie_error *error);
/* Sums over particles at the nodes of the blocks that sum_index names. */
void sk_cuda_surface_sum(sk_cuda_mesher *m, const sk_cuda_values *values);
/* The sums of all blocks after the kernel's filter. */
void sk_cuda_surface_filter(sk_cuda_mesher *m, f4 *filtered);
/* Means of the velocities at the nodes of the blocks that block_index names. */
void sk_cuda_surface_mean(sk_cuda_mesher *m, float *means);

#ifdef SK_CUDA_EMULATED
enum { SK_SURFACE_THREADS = 32, SK_SURFACE_WIDE = 4 };
#else
enum { SK_SURFACE_THREADS = 128, SK_SURFACE_WIDE = 132 * 16 };
#endif

/* Where a node of a padded block lies that may be the image of another one behind a wall. */
typedef struct sk_cuda_image {
    int at[3];      /* from the block's first node */
    int seen[3][2]; /* the node is an image behind the lower, the upper wall of an axis */
    int wall[3][2]; /* that lies there */
} sk_cuda_image;

/* Does a block with nodes around it see a wall? Most do not. */
SK_DEVICE int sk_cuda_sees_wall(const sk_surface_grid *grid, size_t block, int halo)
{
    int any = 0;
    sk_wall_image wall;
    for (int n = 0; n < 6; ++n)
        any |= sk_surface_wall(grid, block, halo, n / 2, n % 2, &wall);
    return any;
}

/* As the mirror images that the CPU copies axis by axis: those of upper walls may be copies of those of lower ones. */
SK_DEVICE sk_cuda_image sk_cuda_find_image(const sk_surface_grid *grid, size_t block, int halo, int sees_wall,
                                           const int at[3])
{
    sk_cuda_image image;
    for (int a = 0; a < 3; ++a) {
        int p = at[a];
        for (int side = 1; side >= 0; --side) {
            sk_wall_image wall;
            image.seen[a][side] = 0;
            image.wall[a][side] = 0;
            if (!sees_wall || !sk_surface_wall(grid, block, halo, a, side, &wall))
                continue;
            const int beyond = side ? p - wall.node : wall.node - p;
            if (beyond < 1 || beyond > wall.steps)
                continue;
            p = side ? wall.node - beyond : wall.node + beyond;
            image.seen[a][side] = 1;
            image.wall[a][side] = wall.node;
        }
        image.at[a] = p;
    }
    return image;
}

/* Number of the neighbour that a node around a block lies in, and its index there. */
SK_DEVICE int sk_cuda_neighbour(const int at[3])
{
    return (at[0] + 8) / 8 + 3 * ((at[1] + 8) / 8) + 9 * ((at[2] + 8) / 8);
}
SK_DEVICE int sk_cuda_node(const int at[3])
{
    return (at[0] & 7) + sk_node_n * ((at[1] & 7) + sk_node_n * (at[2] & 7));
}

/* A block of a field with nodes around it, by all threads of a thread block; they must wait for each other. */
template <int HALO>
SK_DEVICE void sk_cuda_load_field(const sk_surface_grid *grid, const float *field, size_t block, float *padded)
{
    enum { N = sk_node_n + 2 * HALO };
    const int sees_wall = sk_cuda_sees_wall(grid, block, HALO);
    for (int t = (int)threadIdx.x; t < N * N * N; t += (int)blockDim.x) {
        const int at[3] = {t % N - HALO, t / N % N - HALO, t / (N * N) - HALO};
        const sk_cuda_image image = sk_cuda_find_image(grid, block, HALO, sees_wall, at);
        const int32_t from = grid->neighbours[block][sk_cuda_neighbour(image.at)];
        padded[t] = from < 0 ? SK_SURFACE_BAND : field[(size_t)from * sk_node_count + sk_cuda_node(image.at)];
    }
}

#endif
