/* A block and one cell around it as one dense piece, x fastest, and the lists of neighbours that point into it. For files
 * compiled per dimension.
 *
 * A loop over the particles of a block first copies what it needs of their neighbours into tile arrays (32 KB each, which
 * the caches hold), and then walks the lists. So an index takes 16 bits, and a list entry 8 bytes: the index, and the
 * gradient in half precision times the particle spacing. Rounding is symmetric (G_ji = -G_ij to the bit), sums are made
 * of the rounded gradients, and so the operator stays symmetric and momentum is kept; what is lost is 1/2000 of a
 * gradient's length. Where a tile holds more than 65536 particles, entries take 32-bit indices and floats instead.
 */
#ifndef SK_METHODS_SPH_SPH_TILE_H
#define SK_METHODS_SPH_SPH_TILE_H

#include <string.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "methods/sph/sph.h"

enum {
    TILE_N = SK_BLOCK_N + 2,
    TILE_CELLS = TILE_N * TILE_N * (SELKIE_DIM == 3 ? TILE_N : 1),
    TILE_RUNS = 3 * TILE_N * (SELKIE_DIM == 3 ? TILE_N : 1),
    LINE_BYTES = 16 /* the unit of sph->first */
};

/* Eight neighbours; a list is as many groups as it needs, and the last one is filled up with gradients of zero. */
typedef struct lean_group {
    uint16_t index[8];
    uint16_t gradient[SELKIE_DIM][8];
} lean_group;

typedef struct wide_group {
    uint32_t index[8];
    float gradient[SELKIE_DIM][8];
} wide_group;

typedef struct tile_run {
    uint32_t from, to, at; /* particles [from, to) of the store lie from `at` on in the tile */
} tile_run;

typedef struct sph_tile {
    int run_count;
    uint32_t count;
    tile_run runs[TILE_RUNS];
    uint32_t start[TILE_CELLS + 1]; /* first particle of each cell in the tile */
} sph_tile;

static inline __attribute__((unused)) void make_tile(const sk_grid *grid, int block, sph_tile *tile)
{
    uint32_t at = 0, *start = tile->start;
    tile->run_count = 0;
    for (int tz = 0; tz < (SELKIE_DIM == 3 ? TILE_N : 1); tz++)
        for (int ty = 0; ty < TILE_N; ty++) {
            int by = ty == 0 ? 0 : ty == TILE_N - 1 ? 2 : 1, bz = tz == 0 ? 0 : tz == TILE_N - 1 ? 2 : 1;
            int row = SK_BLOCK_N * ((ty - 1) & SK_BLOCK_MASK) +
                      (SELKIE_DIM == 3 ? SK_BLOCK_N * SK_BLOCK_N * ((tz - 1) & SK_BLOCK_MASK) : 0);
            for (int bx = 0; bx < 3; bx++) {
                int slot = grid->neighbours[block][bx + 3 * by + (SELKIE_DIM == 3 ? 9 * bz : 0)];
                int first = bx == 0 ? SK_BLOCK_N - 1 : 0, count = bx == 1 ? SK_BLOCK_N : 1;
                if (slot < 1 || slot > grid->particle_blocks) {
                    for (int c = 0; c < count; c++)
                        *start++ = at;
                    continue;
                }
                const uint32_t *cell = grid->cell_start + (size_t)(slot - 1) * SK_BLOCK_CELLS + row + first;
                for (int c = 0; c < count; c++)
                    *start++ = at + cell[c] - cell[0];
                if (cell[count] > cell[0])
                    tile->runs[tile->run_count++] = (tile_run){cell[0], cell[count], at};
                at += cell[count] - cell[0];
            }
        }
    *start = at;
    tile->count = at;
}

static inline __attribute__((unused)) void load_floats(const sph_tile *tile, const float *from, float *to)
{
    for (int r = 0; r < tile->run_count; r++) {
        const tile_run *run = &tile->runs[r];
        memcpy(to + run->at, from + run->from, (size_t)(run->to - run->from) * sizeof *to);
    }
}

/* Positions or velocities: three (2D: two) values at `offset` floats into the records. */
static inline __attribute__((unused, always_inline)) void load_vectors(const sph_tile *tile, const sk_particle *records, const int offset,
                                                                       float *const to[3])
{
    for (int r = 0; r < tile->run_count; r++) {
        const tile_run *run = &tile->runs[r];
        const float *from = (const float *)(const void *)(records + run->from) + offset;
        for (uint32_t p = run->at; p < run->at + (run->to - run->from); p++, from += sizeof(sk_particle) / sizeof(float))
            for (int d = 0; d < SELKIE_DIM; d++)
                to[d][p] = from[d];
    }
}

/* --- Walking a list -------------------------------------------------------------------------------------------------- */

SK_VECTOR const void *list_of(const sk_sph *sph, uint32_t i)
{
    return sph->lists + (size_t)sph->first[i] * LINE_BYTES;
}

/* Group g of a list: indices into the tile and gradients in units of 1 / spacing. */
SK_VECTOR i8 group_at(const void *list, const int wide, uint32_t g, f8 gradient[3])
{
    if (wide) {
        const wide_group *group = (const wide_group *)list + g;
        i8 index;
        memcpy(&index, group->index, sizeof index);
        for (int d = 0; d < SELKIE_DIM; d++)
            gradient[d] = f8_load(group->gradient[d]);
        return index;
    }
    const lean_group *group = (const lean_group *)list + g;
    for (int d = 0; d < SELKIE_DIM; d++)
        gradient[d] = f8_from_halves(group->gradient[d]);
    return i8_from_shorts(group->index);
}

SK_VECTOR uint32_t group_count(const sk_sph *sph, uint32_t i)
{
    return (sph->number[i] + 7) / 8;
}

/* First and last + 1 particle of a block. */
SK_VECTOR uint32_t block_begin(const sk_grid *grid, int block)
{
    return grid->cell_start[(size_t)(block - 1) * SK_BLOCK_CELLS];
}

SK_VECTOR uint32_t block_end(const sk_grid *grid, int block)
{
    return grid->cell_start[(size_t)block * SK_BLOCK_CELLS];
}

/* Scratch of a thread: a tile and `arrays` arrays over it. */
typedef struct tile_worker {
    sph_tile tile;
    float *array[12];
} tile_worker;

static inline __attribute__((unused)) size_t worker_bytes(const sk_sph *sph, int arrays)
{
    return ((sizeof(tile_worker) + 63) & ~(size_t)63) + (size_t)arrays * sph->tile_room * sizeof(float);
}

static inline __attribute__((unused)) tile_worker *worker_of(const sk_sph *sph, void *scratch, int thread, int arrays)
{
    char *mine = (char *)scratch + worker_bytes(sph, arrays) * (size_t)thread;
    tile_worker *worker = (tile_worker *)(void *)mine;
    mine += (sizeof *worker + 63) & ~(size_t)63;
    for (int a = 0; a < arrays; a++)
        worker->array[a] = (float *)(void *)mine + (size_t)a * sph->tile_room;
    return worker;
}

#endif
