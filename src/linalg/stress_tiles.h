/* Weights around a block of the stress solver, so that neighbours are at constant offsets. Private to linalg/. For
 * files compiled per dimension. */
#ifndef SK_LINALG_STRESS_TILES_H
#define SK_LINALG_STRESS_TILES_H

#include <string.h>

#include "base/simd.h"
#include "linalg/stress_solver.h"

/* A block's values of a field and a halo of one cell, so that neighbours are at constant offsets. */
enum { TILE_N = SK_BLOCK_N + 2, TILE_NZ = SELKIE_DIM == 3 ? TILE_N : 1, TILE_VALUES = TILE_N * TILE_N * TILE_NZ };
static const int tile_step[3] = {1, TILE_N, TILE_N *TILE_N};

static inline __attribute__((unused)) int tile_place(const int at[3])
{
    int place = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        place += (at[d] + 1) * tile_step[d];
    return place;
}

/* Places in the fields of a block's tile, a row along x at a time: the cell before it, its first cell, and the cell
 * after it. */
enum { TILE_ROWS = TILE_N * TILE_NZ };
typedef struct tile_rows {
    size_t before[TILE_ROWS], first[TILE_ROWS], after[TILE_ROWS];
} tile_rows;

static inline __attribute__((unused)) void find_tile_rows(const int32_t (*neighbours)[27], int block, tile_rows *rows)
{
    int row = 0;
    for (int k = SELKIE_DIM == 3 ? -1 : 0; k < (SELKIE_DIM == 3 ? SK_BLOCK_N + 1 : 1); k++)
        for (int j = -1; j <= SK_BLOCK_N; j++, row++) {
            rows->before[row] = sk_stress_place(neighbours, block, (const int[3]){-1, j, k});
            rows->first[row] = sk_stress_place(neighbours, block, (const int[3]){0, j, k});
            rows->after[row] = sk_stress_place(neighbours, block, (const int[3]){SK_BLOCK_N, j, k});
        }
}

/* Copies values of four bytes. */
static inline __attribute__((unused)) void load_tile(const tile_rows *rows, const void *field, void *tile)
{
    const uint32_t *restrict values = field;
    uint32_t *restrict to = tile;
    for (int row = 0; row < TILE_ROWS; row++, to += TILE_N) {
        to[0] = values[rows->before[row]];
        memcpy(to + 1, values + rows->first[row], SK_BLOCK_N * sizeof *to);
        to[TILE_N - 1] = values[rows->after[row]];
    }
}

/* The weights of strains around a block. */
typedef struct weight_tiles {
    float values[7][TILE_VALUES];
    const float *normal[3], *bulk, *shear[3];
} weight_tiles;

static inline __attribute__((unused)) void load_weights(const sk_stress_level *level, const tile_rows *rows,
                                                        weight_tiles *tiles)
{
    int count = 0;
    tiles->bulk = NULL;
    for (int d = 0; d < SELKIE_DIM; d++) {
        tiles->normal[d] = d && level->normal[d] == level->normal[0] ? tiles->normal[0] : tiles->values[count];
        if (tiles->normal[d] == tiles->values[count])
            load_tile(rows, level->normal[d], tiles->values[count++]);
    }
    for (int edge = SELKIE_DIM == 3 ? 0 : 2; edge < 3; edge++) {
        tiles->shear[edge] = tiles->values[count];
        load_tile(rows, level->shear[edge], tiles->values[count++]);
    }
    if (level->bulk) {
        tiles->bulk = tiles->values[count];
        load_tile(rows, level->bulk, tiles->values[count]);
    }
}

/* The weights around a face at a place of the tiles. */
static inline __attribute__((unused)) void gather_weights(const weight_tiles *tiles, float mass, int place, int a,
                                                          sk_stress_weights *w)
{
    const int before = place - tile_step[a];
    w->mass = mass;
    w->normal[0] = tiles->normal[a][before];
    w->normal[1] = tiles->normal[a][place];
    w->bulk[0] = tiles->bulk ? tiles->bulk[before] : 0.0f;
    w->bulk[1] = tiles->bulk ? tiles->bulk[place] : 0.0f;
    for (int n = 0; n < SK_STRESS_ACROSS; n++) {
        const int b = sk_stress_axis(a, n);
        const float *shear = tiles->shear[sk_stress_edge(a, b)];
        w->shear[n][0] = shear[place];
        w->shear[n][1] = shear[place + tile_step[b]];
    }
}

#endif
