/* A block and one cell around it as one dense piece, x fastest, and the lists of neighbours that point into it. For
 * files compiled per dimension.
 *
 * A loop over the particles of a block first copies what it needs of their neighbours into tile arrays, which the
 * caches hold, and then walks the lists. So an index takes 16 bits, and a list entry 8 bytes: the gradient in half
 * precision times the particle spacing, and the index. Rounding is symmetric (G_ji = -G_ij to the bit), sums are made
 * of the rounded gradients, and so the operator stays symmetric and momentum is kept; what is lost is 1/2000 of a
 * gradient's length. Where a tile holds more than LEAN_LIMIT particles, entries take floats and 32-bit indices instead.
 *
 * The loops of the pressure solve take four entries at a time as sixteen lanes, x y z index and so on: a neighbour's
 * vector is one load of four lanes, where gathering it component by component would be three. The fourth lane is
 * multiplied by zero; an index below LEAN_LIMIT is a finite number of half precision.
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

enum {
    LEAN_LIMIT = 0x7c00, /* particles in a tile: from here on the bits would be infinities */
    ENTRIES = 4          /* a list is a multiple of these, filled up with gradients of zero */
};

typedef struct lean_entry {
    uint16_t gradient[3], index;
} lean_entry;

typedef struct wide_entry {
    float gradient[3];
    uint32_t index;
} wide_entry;

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
static inline __attribute__((unused, always_inline)) void load_vectors(const sph_tile *tile, const sk_particle *records,
                                                                       const int offset, float *const to[3])
{
    for (int r = 0; r < tile->run_count; r++) {
        const tile_run *run = &tile->runs[r];
        const float *from = (const float *)(const void *)(records + run->from) + offset;
        for (uint32_t p = run->at; p < run->at + (run->to - run->from);
             p++, from += sizeof(sk_particle) / sizeof(float))
            for (int d = 0; d < SELKIE_DIM; d++)
                to[d][p] = from[d];
    }
}

/* Vectors as four lanes, the last one 0: of arrays of them, or of the records as above. */
static inline __attribute__((unused)) void load_lanes(const sph_tile *tile, const float (*from)[4], float (*to)[4])
{
    for (int r = 0; r < tile->run_count; r++) {
        const tile_run *run = &tile->runs[r];
        memcpy(to + run->at, from + run->from, (size_t)(run->to - run->from) * sizeof *to);
    }
}

static inline __attribute__((unused, always_inline)) void
load_record_lanes(const sph_tile *tile, const sk_particle *records, const int offset, float (*to)[4])
{
    for (int r = 0; r < tile->run_count; r++) {
        const tile_run *run = &tile->runs[r];
        const float *from = (const float *)(const void *)(records + run->from) + offset;
        for (uint32_t p = run->at; p < run->at + (run->to - run->from);
             p++, from += sizeof(sk_particle) / sizeof(float))
            for (int d = 0; d < 4; d++)
                to[p][d] = d < SELKIE_DIM ? from[d] : 0.0f;
    }
}

/* --- Walking a list --- */

SK_VECTOR const void *list_of(const sk_sph *sph, uint32_t i)
{
    return sph->lists + (size_t)sph->first[i] * LINE_BYTES;
}

/* Entries 4 k to 4 k + 3 of a list: their indices into the tile, and the lanes described above. */
SK_VECTOR f16 entries_at(const void *list, const int wide, uint32_t k, uint32_t index[4])
{
    f16 value;
    if (wide) {
        const wide_entry *entry = (const wide_entry *)list + 4 * k;
        for (int e = 0; e < 4; e++)
            index[e] = entry[e].index;
        memcpy(&value, entry, sizeof value);
        return value;
    }
    const lean_entry *entry = (const lean_entry *)list + 4 * k;
    for (int e = 0; e < 4; e++)
        index[e] = entry[e].index;
    return f16_from_halves(entry->gradient);
}

/* How many times four entries. */
SK_VECTOR uint32_t four_count(const sk_sph *sph, uint32_t i)
{
    return (sph->number[i] + ENTRIES - 1) / ENTRIES;
}

/* Eight entries from 8 g on, as indices and components; those beyond the last one are the zeroth particle with a
 * gradient of zero. */
SK_VECTOR i8 group_at(const void *list, const int wide, uint32_t g, uint32_t count, f8 gradient[3])
{
    const i8 lanes = i8_first((int)(count - 8 * g));
    i8 index = i8_splat(0);
    if (wide) {
        float component[3][8];
        const wide_entry *entry = (const wide_entry *)list + 8 * g;
        for (int l = 0; l < 8; l++) {
            index[l] = (int32_t)entry[l].index;
            for (int d = 0; d < SELKIE_DIM; d++)
                component[d][l] = entry[l].gradient[d];
        }
        for (int d = 0; d < SELKIE_DIM; d++)
            gradient[d] = f8_load(component[d]);
    } else {
        typedef uint16_t shorts8 __attribute__((vector_size(16)));
        typedef uint16_t shorts32 __attribute__((vector_size(64)));
        shorts32 all;
        memcpy(&all, (const lean_entry *)list + 8 * g, sizeof all);
        const shorts8 part[4] = {__builtin_shufflevector(all, all, 0, 4, 8, 12, 16, 20, 24, 28),
                                 __builtin_shufflevector(all, all, 1, 5, 9, 13, 17, 21, 25, 29),
                                 __builtin_shufflevector(all, all, 2, 6, 10, 14, 18, 22, 26, 30),
                                 __builtin_shufflevector(all, all, 3, 7, 11, 15, 19, 23, 27, 31)};
        for (int d = 0; d < SELKIE_DIM; d++)
            gradient[d] = f8_from_halves((const uint16_t *)&part[d]);
        index = i8_from_shorts((const uint16_t *)&part[3]);
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        gradient[d] = f8_select(lanes, gradient[d], f8_splat(0.0f));
    return index & lanes;
}

/* The vectors of eight particles of a tile, by components. */
SK_VECTOR void gather_lanes(const float (*from)[4], i8 index, f8 to[4])
{
    const f16 a = f16_load4(from[index[0]], from[index[1]], from[index[2]], from[index[3]]);
    const f16 b = f16_load4(from[index[4]], from[index[5]], from[index[6]], from[index[7]]);
    to[0] = __builtin_shufflevector(a, b, 0, 4, 8, 12, 16, 20, 24, 28);
    to[1] = __builtin_shufflevector(a, b, 1, 5, 9, 13, 17, 21, 25, 29);
    to[2] = __builtin_shufflevector(a, b, 2, 6, 10, 14, 18, 22, 26, 30);
    to[3] = __builtin_shufflevector(a, b, 3, 7, 11, 15, 19, 23, 27, 31);
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

/* Scratch of a thread: a tile and `arrays` arrays over it, one behind the other. */
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

/* Four arrays from the given one on, as vectors of four lanes. */
static inline __attribute__((unused)) float (*lanes_of(const tile_worker *worker, int array))[4]
{
    return (float(*)[4])(void *)worker->array[array];
}

#endif
