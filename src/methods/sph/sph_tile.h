/* Neighbour lists that point into a tile (particles/neighbour_tile.h), and loops over them. For files compiled per
 * dimension.
 *
 * A loop over the particles of a block first copies the values of their neighbours into tile arrays and then reads the
 * lists. So an index takes 16 bits, and a list entry 8 bytes: the gradient in half precision times the particle
 * spacing, and the index. Rounding is symmetric (G_ji = -G_ij to the bit), and sums use the rounded gradients. The
 * operator therefore stays symmetric, and momentum is conserved. The rounding error is 0.05 % of a gradient's length.
 * If a tile holds more than SK_SPH_LEAN_LIMIT particles, entries have floats and 32-bit indices instead.
 *
 * The loops of the pressure solve read four entries at a time as sixteen lanes, x y z index and so on. A neighbour's
 * vector is then one load of four lanes instead of three gathered components. The fourth lane is multiplied by 0; an
 * index below the limit is a finite number in half precision.
 */
#ifndef SK_METHODS_SPH_SPH_TILE_H
#define SK_METHODS_SPH_SPH_TILE_H

#include <string.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "particles/cell_index.h"
#include "methods/sph/sph.h"
#include "methods/sph/sph_list_kernels.h"
#include "particles/neighbour_tile.h"

static inline __attribute__((unused)) void make_tile(const sk_grid *grid, int block, sk_particle_tile *tile)
{
    const sk_cell_index index = sk_grid_cell_index(grid);
    sk_particle_tile_make(&index, block, tile);
}

/* --- Walking a list --- */

SK_VECTOR const void *list_of(const sk_sph *sph, uint32_t i)
{
    return sph->lists + (size_t)sph->first[i] * SK_SPH_LINE_BYTES;
}

/* Entries 4 k to 4 k + 3 of a list: their indices into the tile, and the lanes described above. */
SK_VECTOR f16 entries_at(const void *list, const int wide, uint32_t k, uint32_t index[4])
{
    f16 value;
    if (wide) {
        const sk_sph_wide_entry *entry = (const sk_sph_wide_entry *)list + 4 * k;
        for (int e = 0; e < 4; e++)
            index[e] = entry[e].index;
        memcpy(&value, entry, sizeof value);
        return value;
    }
    const sk_sph_lean_entry *entry = (const sk_sph_lean_entry *)list + 4 * k;
    for (int e = 0; e < 4; e++)
        index[e] = entry[e].index;
    return f16_from_halves(entry->gradient);
}

/* Number of groups of four entries. */
SK_VECTOR uint32_t four_count(const sk_sph *sph, uint32_t i)
{
    return (sph->number[i] + SK_SPH_ENTRIES - 1) / SK_SPH_ENTRIES;
}

/* Eight entries from 8 g on, as indices and components. Entries beyond the last one are particle 0 with a zero
 * gradient. */
SK_VECTOR i8 group_at(const void *list, const int wide, uint32_t g, uint32_t count, f8 gradient[3])
{
    const i8 lanes = i8_first((int)(count - 8 * g));
    i8 index = i8_splat(0);

    /* Transpose eight entries into components: floats, or half precision and 16-bit indices. */
    if (wide) {
        float component[3][8];
        const sk_sph_wide_entry *entry = (const sk_sph_wide_entry *)list + 8 * g;
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
        memcpy(&all, (const sk_sph_lean_entry *)list + 8 * g, sizeof all);
        const shorts8 part[4] = {__builtin_shufflevector(all, all, 0, 4, 8, 12, 16, 20, 24, 28),
                                 __builtin_shufflevector(all, all, 1, 5, 9, 13, 17, 21, 25, 29),
                                 __builtin_shufflevector(all, all, 2, 6, 10, 14, 18, 22, 26, 30),
                                 __builtin_shufflevector(all, all, 3, 7, 11, 15, 19, 23, 27, 31)};
        for (int d = 0; d < SELKIE_DIM; d++)
            gradient[d] = f8_from_halves((const uint16_t *)&part[d]);
        index = i8_from_shorts((const uint16_t *)&part[3]);
    }

    /* Clear the lanes beyond the last entry. */
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

/* First particle of a block, and one past its last. */
SK_VECTOR uint32_t block_begin(const sk_grid *grid, int block)
{
    return grid->cell_start[(size_t)(block - 1) * SK_BLOCK_CELLS];
}

SK_VECTOR uint32_t block_end(const sk_grid *grid, int block)
{
    return grid->cell_start[(size_t)block * SK_BLOCK_CELLS];
}

/* Scratch of a thread: a tile and `arrays` arrays over it, one after the other. */
typedef struct tile_worker {
    sk_particle_tile tile;
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
