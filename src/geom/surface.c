/* Surface of a cloud of particles: the sparse grid and the order of the steps.
 *
 *   1. blocks of 8x8x8 nodes where a particle is near, particles sorted into them (here)
 *   2. level set from the particles, made a distance, smoothed (surface_field.c)
 *   3. triangles (surface_mesh.c)
 *
 * Walls: particles near a wall of the container get an image behind it, so that the level set meets the wall at a right
 * angle. The surface is then cut at the wall.
 *
 * Blocks are kept in the order of their coordinates, particles within a block in the caller's order, and each node
 * gathers from them in that order: the result does not depend on the number of threads.
 */
#include "geom/surface_internal.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* Blocks along an axis must fit into 21 bits of a key. */
enum { axis_bits = 21, blocks_per_axis_limit = 1 << 20 };

/* --- A set of block keys --- */

typedef struct block_set {
    uint64_t *keys;   /* key + 1; 0 is a free slot */
    int32_t *indices; /* filled in once the blocks are in order */
    size_t capacity;  /* a power of two */
    size_t count;
} block_set;

static uint64_t make_key(const int c[3])
{
    return (uint64_t)c[2] << (2 * axis_bits) | (uint64_t)c[1] << axis_bits | (uint64_t)c[0];
}

static size_t slot_of(const block_set *set, uint64_t key)
{
    uint64_t hash = key * 0x9e3779b97f4a7c15ULL;
    size_t slot = (size_t)(hash ^ hash >> 29) & (set->capacity - 1);
    while (set->keys[slot] && set->keys[slot] != key + 1)
        slot = (slot + 1) & (set->capacity - 1);
    return slot;
}

static int32_t find_block(const block_set *set, const int c[3])
{
    if (c[0] < 0 || c[1] < 0 || c[2] < 0 || c[0] >= blocks_per_axis_limit || c[1] >= blocks_per_axis_limit ||
        c[2] >= blocks_per_axis_limit)
        return -1;
    size_t slot = slot_of(set, make_key(c));
    return set->keys[slot] ? set->indices[slot] : -1;
}

static selkie_code set_resize(block_set *set, size_t capacity, selkie_error *error)
{
    uint64_t *keys = sk_allocate_zeroed(NULL, capacity * sizeof *keys);
    if (!keys)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory for the table of blocks (%.1f MiB)",
                       (double)capacity * sizeof *keys / 1048576.0);
    block_set grown = {keys, NULL, capacity, set->count};
    for (size_t i = 0; i < set->capacity; ++i)
        if (set->keys[i])
            keys[slot_of(&grown, set->keys[i] - 1)] = set->keys[i];
    sk_release(NULL, set->keys);
    *set = grown;
    return SELKIE_OK;
}

static selkie_code set_insert(block_set *set, const int c[3], selkie_error *error)
{
    if (2 * set->count + 2 > set->capacity)
        SK_TRY(set_resize(set, set->capacity ? 2 * set->capacity : 4096, error));
    size_t slot = slot_of(set, make_key(c));
    if (!set->keys[slot]) {
        set->keys[slot] = make_key(c) + 1;
        ++set->count;
    }
    return SELKIE_OK;
}

static int compare_keys(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* --- Particles in grid coordinates, with their images --- */

typedef struct cloud {
    float *x[3]; /* voxels */
    uint32_t *source;
    size_t count, real_count, capacity;
} cloud;

static void cloud_free(cloud *c)
{
    for (int a = 0; a < 3; ++a)
        sk_release(NULL, c->x[a]);
    sk_release(NULL, c->source);
}

static selkie_code cloud_reserve(cloud *c, size_t count, selkie_error *error)
{
    if (count <= c->capacity)
        return SELKIE_OK;
    size_t wanted = count + count / 4 + 64, capacity = c->capacity;
    for (int a = 0; a < 3; ++a) {
        capacity = c->capacity;
        SK_TRY(sk_reserve(NULL, (void **)&c->x[a], &capacity, wanted, sizeof(float), "surface: particles", error));
    }
    capacity = c->capacity;
    SK_TRY(sk_reserve(NULL, (void **)&c->source, &capacity, wanted, sizeof(uint32_t), "surface: particles", error));
    c->capacity = wanted;
    return SELKIE_OK;
}

/* Leaves out particles that are not finite or too far outside to touch the container. */
static selkie_code cloud_read(const sk_surface_grid *grid, size_t count, const float *position, size_t stride, cloud *c,
                              selkie_error *error)
{
    SK_TRY(cloud_reserve(c, count, error));
    for (size_t i = 0; i < count; ++i) {
        const float *p = (const float *)((const char *)position + i * stride);
        float x[3];
        int usable = 1;
        for (int a = 0; a < 3; ++a) {
            x[a] = (float)(((double)p[a] - grid->origin[a]) / grid->voxel[a]);
            usable &= x[a] > grid->wall_low[a] - grid->radius && x[a] < grid->wall_high[a] + grid->radius;
            x[a] = fminf(fmaxf(x[a], grid->wall_low[a]), grid->wall_high[a]);
        }
        if (!usable)
            continue;
        for (int a = 0; a < 3; ++a)
            c->x[a][c->count] = x[a];
        c->source[c->count++] = (uint32_t)i;
    }
    c->real_count = c->count;
    return SELKIE_OK;
}

/* One axis after the other, so that images near an edge are mirrored too. */
static selkie_code cloud_mirror(const sk_surface_grid *grid, cloud *c, selkie_error *error)
{
    for (int a = 0; a < 3; ++a) {
        size_t count = c->count;
        for (size_t i = 0; i < count; ++i)
            for (int side = 0; side < 2; ++side) {
                float wall = side ? grid->wall_high[a] : grid->wall_low[a];
                float image = 2 * wall - c->x[a][i];
                if (fabsf(image - wall) >= grid->mirror)
                    continue;
                SK_TRY(cloud_reserve(c, c->count + 1, error));
                for (int b = 0; b < 3; ++b)
                    c->x[b][c->count] = b == a ? image : c->x[b][i];
                c->source[c->count++] = c->source[i];
            }
    }
    return SELKIE_OK;
}

/* --- Blocks --- */

/* A real particle activates every block in which it can make liquid or affect the smoothing. An image activates only
 * its own block: its effect inside the container lies within reach of the particle that it mirrors. */
static selkie_code wake_blocks(const sk_surface_grid *grid, const cloud *c, block_set *set, selkie_error *error)
{
    float near = grid->cutoff + grid->spacing + 1.0f;
    int previous[6] = {-1, -1, -1, -1, -1, -1};
    for (size_t i = 0; i < c->count; ++i) {
        int range[6];
        float margin = i < c->real_count ? near : 0.0f;
        for (int a = 0; a < 3; ++a) {
            float x = c->x[a][i];
            range[a] = (int)fmaxf(x - margin, 0.0f) >> sk_node_log;
            range[3 + a] = (int)(x + margin) >> sk_node_log;
        }
        if (!memcmp(range, previous, sizeof range))
            continue;
        memcpy(previous, range, sizeof range);
        int b[3];
        for (b[2] = range[2]; b[2] <= range[5]; ++b[2])
            for (b[1] = range[1]; b[1] <= range[4]; ++b[1])
                for (b[0] = range[0]; b[0] <= range[3]; ++b[0])
                    SK_TRY(set_insert(set, b, error));
    }
    return SELKIE_OK;
}

static selkie_code order_blocks(sk_surface_grid *grid, block_set *set, selkie_error *error)
{
    size_t count = set->count;

    /* Arrays, all or none. */
    uint64_t *keys = sk_allocate(NULL, (count + 1) * sizeof *keys);
    set->indices = sk_allocate(NULL, (set->capacity + 1) * sizeof *set->indices);
    grid->coordinates = sk_allocate(NULL, (count + 1) * sizeof *grid->coordinates);
    grid->neighbours = sk_allocate(NULL, (count + 1) * sizeof *grid->neighbours);
    grid->first = sk_allocate_zeroed(NULL, (count + 2) * sizeof *grid->first);
    grid->full = sk_allocate_zeroed(NULL, count + 1);
    grid->phi = sk_allocate(NULL, (count + 1) * sk_node_count * sizeof(float));
    grid->other = sk_allocate(NULL, (count + 1) * sk_node_count * sizeof(float));
    if (!keys || !set->indices || !grid->coordinates || !grid->neighbours || !grid->first || !grid->full ||
        !grid->phi || !grid->other) {
        sk_release(NULL, keys);
        return sk_fail(error, SELKIE_ERROR_MEMORY,
                       "surface: no memory, %.1f MiB for %zu blocks; a larger voxel_size than %g m needs less",
                       (double)count * 2 * sk_node_count * sizeof(float) / 1048576.0, count, grid->voxel[0]);
    }

    /* Keys in ascending order are the blocks. */
    size_t n = 0;
    for (size_t i = 0; i < set->capacity; ++i)
        if (set->keys[i])
            keys[n++] = set->keys[i] - 1;
    qsort(keys, n, sizeof *keys, compare_keys);
    const uint64_t mask = ((uint64_t)1 << axis_bits) - 1;
    for (size_t i = 0; i < n; ++i) {
        set->indices[slot_of(set, keys[i])] = (int32_t)i;
        for (int a = 0; a < 3; ++a)
            grid->coordinates[i][a] = (int32_t)(keys[i] >> (a * axis_bits) & mask);
    }
    sk_release(NULL, keys);
    grid->block_count = n;
#pragma omp parallel for num_threads(grid->threads) schedule(static)
    for (size_t i = 0; i < n; ++i)
        for (int k = 0; k < 27; ++k) {
            int c[3] = {grid->coordinates[i][0] + k % 3 - 1, grid->coordinates[i][1] + k / 3 % 3 - 1,
                        grid->coordinates[i][2] + k / 9 - 1};
            grid->neighbours[i][k] = find_block(set, c);
        }
    return SELKIE_OK;
}

static selkie_code sort_particles(sk_surface_grid *grid, const cloud *c, const block_set *set, selkie_error *error)
{
    int32_t *block = sk_allocate(NULL, (c->count + 1) * sizeof *block);
    for (int a = 0; a < 3; ++a)
        grid->particle[a] = sk_allocate(NULL, (c->count + 1) * sizeof(float));
    grid->source = sk_allocate(NULL, (c->count + 1) * sizeof *grid->source);
    if (!block || !grid->particle[0] || !grid->particle[1] || !grid->particle[2] || !grid->source) {
        sk_release(NULL, block);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory, %.1f MiB to sort %zu particles",
                       (double)c->count * 20 / 1048576.0, c->count);
    }

    /* Find the block of each particle. */
#pragma omp parallel for num_threads(grid->threads) schedule(static)
    for (size_t i = 0; i < c->count; ++i) {
        int b[3];
        for (int a = 0; a < 3; ++a)
            b[a] = (int)c->x[a][i] >> sk_node_log;
        block[i] = find_block(set, b);
    }

    /* Counting sort by block. */
    size_t *first = grid->first;
    for (size_t i = 0; i < c->count; ++i)
        ++first[block[i] + 2];
    for (size_t b = 1; b <= grid->block_count + 1; ++b)
        first[b] += first[b - 1];
    for (size_t i = 0; i < c->count; ++i) {
        size_t to = first[block[i] + 1]++;
        for (int a = 0; a < 3; ++a)
            grid->particle[a][to] = c->x[a][i];
        grid->source[to] = c->source[i];
    }

    grid->particle_count = c->count;
    sk_release(NULL, block);
    return SELKIE_OK;
}

/* A block is full if each of its 64 cells of 2x2x2 voxels has a particle. */
static void mark_full(sk_surface_grid *grid)
{
#pragma omp parallel for num_threads(grid->threads) schedule(static)
    for (size_t b = 0; b < grid->block_count; ++b) {
        uint64_t seen = 0;
        for (size_t p = grid->first[b]; p < grid->first[b + 1]; ++p) {
            int x = (int)grid->particle[0][p] & 7, y = (int)grid->particle[1][p] & 7, z = (int)grid->particle[2][p] & 7;
            seen |= (uint64_t)1 << ((x >> 1) + 4 * (y >> 1) + 16 * (z >> 1));
        }
        grid->full[b] = seen == UINT64_MAX;
    }
}

void sk_surface_load(const sk_surface_grid *grid, const float *field, size_t block, float *padded)
{
    const float *blocks[27];
    for (int n = 0; n < 27; ++n) {
        int32_t index = grid->neighbours[block][n];
        blocks[n] = index < 0 ? NULL : field + (size_t)index * sk_node_count;
    }
    for (int k = 0; k < sk_padded_n; ++k)
        for (int j = 0; j < sk_padded_n; ++j) {
            int bj = (j + 4) >> 3, bk = (k + 4) >> 3;
            size_t row = (size_t)sk_node_n * (size_t)(((j + 4) & 7) + sk_node_n * ((k + 4) & 7));
            float *to = padded + sk_padded_n * (j + sk_padded_n * k);
            const float *const *from = blocks + 3 * bj + 9 * bk;
            for (int i = 0; i < 4; ++i)
                to[i] = from[0] ? from[0][row + 4 + (size_t)i] : SK_SURFACE_BAND;
            for (int i = 0; i < 8; ++i)
                to[4 + i] = from[1] ? from[1][row + (size_t)i] : SK_SURFACE_BAND;
            for (int i = 0; i < 4; ++i)
                to[12 + i] = from[2] ? from[2][row + (size_t)i] : SK_SURFACE_BAND;
        }
}

/* --- The whole --- */

static selkie_code check_options(size_t particle_count, const sk_surface_options *o, selkie_error *error)
{
    if (!(o->voxel_size > 0) || !isfinite(o->voxel_size))
        return sk_fail(error, SELKIE_ERROR_INPUT, "surface: voxel_size is %g m, must be above 0", o->voxel_size);
    if (!(o->particle_spacing > 0) || !isfinite(o->particle_spacing))
        return sk_fail(error, SELKIE_ERROR_INPUT, "surface: particle_spacing is %g m, must be above 0",
                       o->particle_spacing);
    double ratio = o->particle_spacing / o->voxel_size;
    if (ratio > 2.5 || ratio < 0.4)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "surface: voxel_size is %g m, must be between %g and %g m for particles %g m apart",
                       o->voxel_size, o->particle_spacing / 2.5, o->particle_spacing / 0.4, o->particle_spacing);
    for (int a = 0; a < 3; ++a) {
        double voxels = (o->high[a] - o->low[a]) / o->voxel_size;
        if (!(voxels > 0) || !(voxels < 8.0 * (blocks_per_axis_limit - 8)) || !isfinite(o->low[a]))
            return sk_fail(error, SELKIE_ERROR_INPUT,
                           "surface: the container reaches from %g to %g m along axis %d, must be more than 0 and less "
                           "than 8 million voxels",
                           o->low[a], o->high[a], a);
    }
    if (!(o->smoothing >= 0 && o->smoothing <= 1))
        return sk_fail(error, SELKIE_ERROR_INPUT, "surface: smoothing is %g, must be from 0 to 1", o->smoothing);
    if (particle_count > (size_t)UINT32_MAX)
        return sk_fail(error, SELKIE_ERROR_INPUT, "surface: %zu particles are more than a surface can be made of",
                       particle_count);
    return SELKIE_OK;
}

static void grid_free(sk_surface_grid *grid)
{
    sk_release(NULL, grid->coordinates);
    sk_release(NULL, grid->neighbours);
    for (int a = 0; a < 3; ++a)
        sk_release(NULL, grid->particle[a]);
    sk_release(NULL, grid->source);
    sk_release(NULL, grid->first);
    sk_release(NULL, grid->full);
    sk_release(NULL, grid->phi);
    sk_release(NULL, grid->other);
}

static selkie_code build_grid(sk_surface_grid *grid, size_t count, const float *position, size_t stride,
                              selkie_error *error)
{
    cloud c = {0};
    block_set set = {0};
    selkie_code code = set_resize(&set, 4096, error);
    if (!code)
        code = cloud_read(grid, count, position, stride, &c, error);
    if (!code)
        code = cloud_mirror(grid, &c, error);
    if (!code)
        code = wake_blocks(grid, &c, &set, error);
    if (!code)
        code = order_blocks(grid, &set, error);
    if (!code)
        code = sort_particles(grid, &c, &set, error);
    if (!code)
        mark_full(grid);
    sk_release(NULL, set.keys);
    sk_release(NULL, set.indices);
    cloud_free(&c);
    return code;
}

selkie_code sk_surface_extract(const sk_surface_particles *particles, const sk_surface_options *options, sk_mesh *mesh,
                               selkie_error *error)
{
    memset(mesh, 0, sizeof *mesh);
    SK_TRY(check_options(particles->count, options, error));

    /* Lengths in voxels. */
    sk_surface_grid grid = {0};
    grid.threads = options->threads > 0 ? options->threads : omp_get_max_threads();
    grid.spacing = (float)(options->particle_spacing / options->voxel_size);
    /* Seen from the flat surface of a half space of particles, the weighted mean of the particles within the kernel
     * lies 0.246 reach deep (by integration of (1 - q^2)^3 over the half ball). With the radius of a sphere that holds
     * one particle's volume, 0.620 spacing, a reach of 2.52 spacings therefore places both the flat surface and the
     * single drop correctly. */
    grid.radius = 0.620f * grid.spacing;
    grid.reach = grid.radius / 0.246f;
    grid.cutoff = 1.35f * grid.spacing;
    grid.offset = 0.05f * grid.spacing;
    grid.drop_radius = fmaxf(grid.radius, 0.88f);
    grid.mirror = grid.reach + (float)sk_halo;

    /* Place of the nodes between the walls. */
    for (int a = 0; a < 3; ++a) {
        double extent = options->high[a] - options->low[a], gap = (double)SK_SURFACE_WALL_GAP;
        double steps = fmax(floor(extent / options->voxel_size - 2 * gap + 0.5), 1);
        grid.voxel[a] = extent / (steps + 2 * gap);
        grid.origin[a] = options->low[a] - (2 * sk_node_n - gap) * grid.voxel[a];
        grid.wall_low[a] = 2 * sk_node_n - SK_SURFACE_WALL_GAP;
        grid.wall_high[a] = (float)(2 * sk_node_n + steps + gap);
    }

    /* Blocks, level set, triangles. */
    selkie_code code = build_grid(&grid, particles->count, particles->position, particles->position_stride, error);
    if (!code) {
        sk_surface_level_set(&grid, options->smoothing);
        code = sk_surface_triangulate(&grid, particles->velocity, particles->velocity_stride, options, mesh, error);
    }
    grid_free(&grid);
    if (code)
        sk_mesh_free(mesh);
    return code;
}
