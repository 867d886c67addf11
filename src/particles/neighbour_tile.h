/* Neighbour search, eight candidates at a time. For files compiled per dimension.
 *
 * A block and a halo of one cell are copied into a dense tile, x fastest. The candidates of a cell are then nine (2D:
 * three) contiguous runs. Candidates out of reach of the box around the cell's own particles are culled once per cell.
 * Each particle then tests the remaining ones. The cells of a tile are at least as wide as the search radius.
 *
 * Loops over pairs first copy the neighbours' values into arrays over the tile, which fit the L2 cache.
 */
#ifndef SK_PARTICLES_NEIGHBOUR_TILE_H
#define SK_PARTICLES_NEIGHBOUR_TILE_H

#include <string.h>

#include "base/simd.h"
#include "particles/neighbour_kernels.h"
#include "particles/store.h"

#define SK_TILE_INLINE static inline __attribute__((unused))

enum {
    SK_PARTICLE_TILE_N = SK_BLOCK_N + 2,
    SK_PARTICLE_TILE_NZ = SELKIE_DIM == 3 ? SK_PARTICLE_TILE_N : 1,
    SK_PARTICLE_TILE_CELLS = SK_PARTICLE_TILE_N * SK_PARTICLE_TILE_N * SK_PARTICLE_TILE_NZ,
    SK_PARTICLE_TILE_RUNS = 3 * SK_PARTICLE_TILE_N * SK_PARTICLE_TILE_NZ,
    SK_PARTICLE_TILE_ROWS = SELKIE_DIM == 3 ? 9 : 3 /* of three cells, around a cell */
};

typedef struct sk_particle_run {
    uint32_t from, to, at; /* particles [from, to) of the store start at `at` in the tile */
    int16_t block;         /* number of their block among those around, x fastest */
} sk_particle_run;

typedef struct sk_particle_tile {
    int run_count;
    uint32_t count;
    sk_particle_run runs[SK_PARTICLE_TILE_RUNS];
    uint32_t start[SK_PARTICLE_TILE_CELLS + 1]; /* first particle of each cell in the tile */
    int wraps;                                  /* a block around lies beyond a joined side */
    float shift[3][3];                          /* m  [axis][side: below, own, above] from such a block to its image */
} sk_particle_tile;

/* Where the blocks around a block lie beyond joined sides. */
SK_TILE_INLINE void sk_particle_tile_find_images(const sk_cell_index *index, int block, sk_particle_tile *tile)
{
    tile->wraps = 0;
    memset(tile->shift, 0, sizeof tile->shift);
    for (int d = 0; index->periodic && d < SELKIE_DIM; d++) {
        if (!(index->periodic >> d & 1))
            continue;
        if (index->coordinates[block][d] == 0)
            tile->shift[d][0] = -index->period[d];
        if (index->coordinates[block][d] == index->blocks[d] - 1)
            tile->shift[d][2] = index->period[d];
        tile->wraps |= tile->shift[d][0] != 0.0f || tile->shift[d][2] != 0.0f;
    }
}

/* The index must have neighbours. */
SK_TILE_INLINE void sk_particle_tile_make(const sk_cell_index *index, int block, sk_particle_tile *tile)
{
    uint32_t at = 0, *start = tile->start;
    tile->run_count = 0;
    sk_particle_tile_find_images(index, block, tile);

    /* Rows of cells. The outermost ones lie in neighbouring blocks. */
    for (int tz = 0; tz < SK_PARTICLE_TILE_NZ; tz++)
        for (int ty = 0; ty < SK_PARTICLE_TILE_N; ty++) {
            int by = ty == 0                        ? 0
                     : ty == SK_PARTICLE_TILE_N - 1 ? 2
                                                    : 1,
                bz = tz == 0                        ? 0
                     : tz == SK_PARTICLE_TILE_N - 1 ? 2
                                                    : 1;
            int row = SK_BLOCK_N * ((ty - 1) & SK_BLOCK_MASK) +
                      (SELKIE_DIM == 3 ? SK_BLOCK_N * SK_BLOCK_N * ((tz - 1) & SK_BLOCK_MASK) : 0);

            /* Along x: one cell of the lower neighbour, the whole row, one cell of the upper neighbour. */
            for (int bx = 0; bx < 3; bx++) {
                const int around = bx + 3 * by + (SELKIE_DIM == 3 ? 9 * bz : 0),
                          slot = index->neighbours[block][around];
                int first = bx == 0 ? SK_BLOCK_N - 1 : 0, count = bx == 1 ? SK_BLOCK_N : 1;
                if (slot < 1 || slot > index->block_count) {
                    for (int c = 0; c < count; c++)
                        *start++ = at;
                    continue;
                }

                /* Starts of the cells in the tile, and the run of particles that they hold. */
                const uint32_t *cell = index->cell_start + (size_t)(slot - 1) * SK_BLOCK_CELLS + row + first;
                for (int c = 0; c < count; c++)
                    *start++ = at + cell[c] - cell[0];
                if (cell[count] > cell[0])
                    tile->runs[tile->run_count++] = (sk_particle_run){cell[0], cell[count], at, (int16_t)around};
                at += cell[count] - cell[0];
            }
        }
    *start = at;
    tile->count = at;
}

/* Cell c of the block, in the tile. */
SK_TILE_INLINE int sk_particle_tile_cell(int c)
{
    return 1 + (c & SK_BLOCK_MASK) + SK_PARTICLE_TILE_N * (1 + (c >> SK_BLOCK_LOG & SK_BLOCK_MASK)) +
           (SELKIE_DIM == 3 ? SK_PARTICLE_TILE_N * SK_PARTICLE_TILE_N * (1 + (c >> (2 * SK_BLOCK_LOG))) : 0);
}

/* --- Arrays over the tile --- */

/* The image of a run's particles along axis d, m from where they are. */
SK_TILE_INLINE float sk_particle_run_shift(const sk_particle_tile *tile, const sk_particle_run *run, int d)
{
    static const int stride[3] = {1, 3, 9};
    return tile->shift[d][run->block / stride[d] % 3];
}

SK_TILE_INLINE void sk_particle_tile_load_floats(const sk_particle_tile *tile, const float *from, float *to)
{
    for (int r = 0; r < tile->run_count; r++) {
        const sk_particle_run *run = &tile->runs[r];
        memcpy(to + run->at, from + run->from, (size_t)(run->to - run->from) * sizeof *to);
    }
}

/* Copies positions or velocities: three (2D: two) values at `offset` floats into the records. */
static inline __attribute__((unused, always_inline)) void sk_particle_tile_load_vectors(const sk_particle_tile *tile,
                                                                                        const sk_particle *records,
                                                                                        const int offset,
                                                                                        float *const to[3])
{
    for (int r = 0; r < tile->run_count; r++) {
        const sk_particle_run *run = &tile->runs[r];
        const float *from = sk_particle_floats(records + run->from) + offset;
        for (uint32_t p = run->at; p < run->at + (run->to - run->from);
             p++, from += sizeof(sk_particle) / sizeof(float))
            for (int d = 0; d < SELKIE_DIM; d++)
                to[d][p] = from[d];
    }

    /* Positions beyond joined sides. */
    for (int r = 0; offset == 0 && tile->wraps && r < tile->run_count; r++) {
        const sk_particle_run *run = &tile->runs[r];
        for (int d = 0; d < SELKIE_DIM; d++)
            for (uint32_t p = run->at; p < run->at + (run->to - run->from); p++)
                to[d][p] += sk_particle_run_shift(tile, run, d);
    }
}

/* Copies vectors as four lanes, the last one 0, from arrays of vectors or from the records. */
SK_TILE_INLINE void sk_particle_tile_load_lanes(const sk_particle_tile *tile, const float (*from)[4], float (*to)[4])
{
    for (int r = 0; r < tile->run_count; r++) {
        const sk_particle_run *run = &tile->runs[r];
        memcpy(to + run->at, from + run->from, (size_t)(run->to - run->from) * sizeof *to);
    }
}

static inline __attribute__((unused, always_inline)) void
sk_particle_tile_load_record_lanes(const sk_particle_tile *tile, const sk_particle *records, const int offset,
                                   float (*to)[4])
{
    for (int r = 0; r < tile->run_count; r++) {
        const sk_particle_run *run = &tile->runs[r];
        const float *from = sk_particle_floats(records + run->from) + offset;
        for (uint32_t p = run->at; p < run->at + (run->to - run->from);
             p++, from += sizeof(sk_particle) / sizeof(float))
            for (int d = 0; d < 4; d++)
                to[p][d] = d < SELKIE_DIM ? from[d] : 0.0f;
    }

    /* Positions beyond joined sides. */
    for (int r = 0; offset == 0 && tile->wraps && r < tile->run_count; r++) {
        const sk_particle_run *run = &tile->runs[r];
        for (uint32_t p = run->at; p < run->at + (run->to - run->from); p++)
            for (int d = 0; d < SELKIE_DIM; d++)
                to[p][d] += sk_particle_run_shift(tile, run, d);
    }
}

/* --- The search --- */

/* Particles as lanes. All arrays have room for eight beyond the last. */
typedef struct sk_cloud {
    float *x, *y, *z;
    uint32_t *index; /* in the tile */
} sk_cloud;

typedef struct sk_lane_search {
    const sk_particle_tile *tile;
    float radius2;     /* m2 */
    sk_cloud all;      /* the tile's particles; without indices */
    sk_cloud near;     /* candidates of a cell */
    sk_cloud accepted; /* neighbours of a particle; x, y, z are differences */
} sk_lane_search;

typedef struct sk_bounds {
    float low[3], high[3];
} sk_bounds;

SK_TILE_INLINE sk_bounds sk_cloud_bounds(const sk_cloud *all, uint32_t from, uint32_t to)
{
    sk_bounds b = {{all->x[from], all->y[from], SELKIE_DIM == 3 ? all->z[from] : 0.0f}, {0, 0, 0}};
    memcpy(b.high, b.low, sizeof b.low);
    for (uint32_t p = from + 1; p < to; p++) {
        float x[3] = {all->x[p], all->y[p], SELKIE_DIM == 3 ? all->z[p] : 0.0f};
        for (int d = 0; d < SELKIE_DIM; d++) {
            b.low[d] = x[d] < b.low[d] ? x[d] : b.low[d];
            b.high[d] = x[d] > b.high[d] ? x[d] : b.high[d];
        }
    }
    return b;
}

SK_VECTOR f8 sk_outside(f8 x, float low, float high)
{
    return f8_max(f8_max(low - x, x - high), f8_splat(0.0f));
}

/* Appends those of eight lanes whose bit is set. */
SK_VECTOR uint32_t sk_cloud_append(const sk_cloud *to, uint32_t n, unsigned bits, f8 x, f8 y, f8 z, i8 index)
{
#if defined(__AVX512VL__)
    __mmask8 mask = (__mmask8)bits;
    _mm256_storeu_ps(to->x + n, _mm256_maskz_compress_ps(mask, (__m256)x));
    _mm256_storeu_ps(to->y + n, _mm256_maskz_compress_ps(mask, (__m256)y));
    if (SELKIE_DIM == 3)
        _mm256_storeu_ps(to->z + n, _mm256_maskz_compress_ps(mask, (__m256)z));
    _mm256_storeu_si256((__m256i *)(void *)(to->index + n), _mm256_maskz_compress_epi32(mask, (__m256i)index));
    return n + (uint32_t)__builtin_popcount(bits);
#else
    for (; bits; bits &= bits - 1, n++) {
        int l = __builtin_ctz(bits);
        to->x[n] = x[l];
        to->y[n] = y[l];
        if (SELKIE_DIM == 3)
            to->z[n] = z[l];
        to->index[n] = (uint32_t)index[l];
    }
    return n;
#endif
}

SK_VECTOR i8 sk_load_index(const uint32_t *from)
{
    i8 value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* Collects in search->near the particles of the cells around cell `cell` of the tile that may reach the box. Pads them
 * to a multiple of eight with far particles. Returns their number without the padding. */
SK_TILE_INLINE uint32_t sk_search_cull(const sk_lane_search *search, int cell, const sk_bounds *own)
{
    const sk_cloud *all = &search->all, *near = &search->near;
    const uint32_t *start = search->tile->start;
    uint32_t n = 0;

    /* Test the rows around the cell, three cells along x each. */
    for (int r = 0; r < SK_PARTICLE_TILE_ROWS; r++) {
        int row = cell + SK_PARTICLE_TILE_N * (r % 3 - 1) +
                  (SELKIE_DIM == 3 ? SK_PARTICLE_TILE_N * SK_PARTICLE_TILE_N * (r / 3 - 1) : 0);
        uint32_t from = start[row - 1], to = start[row + 2];
        for (uint32_t p = from; p < to; p += 8) {
            f8 x = f8_load(all->x + p), y = f8_load(all->y + p), z = f8_splat(0.0f);
            f8 dx = sk_outside(x, own->low[0], own->high[0]), dy = sk_outside(y, own->low[1], own->high[1]);
            f8 distance2 = dx * dx + dy * dy;
            if (SELKIE_DIM == 3) {
                z = f8_load(all->z + p);
                f8 dz = sk_outside(z, own->low[2], own->high[2]);
                distance2 += dz * dz;
            }

            /* Append the particles within the radius, without lanes beyond the row. */
            unsigned bits = i8_bits(distance2 < search->radius2);
            if (to - p < 8)
                bits &= (1u << (to - p)) - 1;
            n = sk_cloud_append(near, n, bits, x, y, z, (i8){0, 1, 2, 3, 4, 5, 6, 7} + (int32_t)p);
        }
    }

    /* Pad with far particles. */
    f8_store(near->x + n, f8_splat(1e18f));
    f8_store(near->y + n, f8_splat(0.0f));
    if (SELKIE_DIM == 3)
        f8_store(near->z + n, f8_splat(0.0f));
    memset(near->index + n, 0xff, 8 * sizeof(uint32_t));
    return n;
}

/* Collects in search->accepted the candidates in reach of particle `self` of the tile, at x: differences and indices.
 * Returns their number. */
SK_TILE_INLINE uint32_t sk_search_accept(const sk_lane_search *search, uint32_t candidates, uint32_t self,
                                         const float x[3])
{
    const sk_cloud *near = &search->near;
    uint32_t n = 0;
    for (uint32_t k = 0; k < candidates; k += 8) {
        f8 dx = x[0] - f8_load(near->x + k), dy = x[1] - f8_load(near->y + k), dz = f8_splat(0.0f);
        f8 distance2 = dx * dx + dy * dy;
        if (SELKIE_DIM == 3) {
            dz = x[2] - f8_load(near->z + k);
            distance2 += dz * dz;
        }
        i8 index = sk_load_index(near->index + k);
        n = sk_cloud_append(&search->accepted, n, i8_bits((distance2 < search->radius2) & (index != (int32_t)self)), dx,
                            dy, dz, index);
    }
    return n;
}

#endif
