#include "world/deep_cells.h"

#include <string.h>

#include "base/simd.h"

enum { block_side = 8, reach = 3 /* cells */ };

/* The lowest bit of each byte. */
static const uint64_t lowest = UINT64_C(0x0101010101010101);

/* Cells of a block along axis d that lie behind a wall of the domain, as eight bits. */
static unsigned behind_walls(const sk_grid *grid, int d, int block)
{
    unsigned bits = 0;
    for (int l = 0; l < block_side && !(grid->periodic >> d & 1); l++) {
        const int cell = block * block_side + l - grid->padding[d];
        bits |= (unsigned)(cell < 0 || cell >= grid->cells[d]) << l;
    }
    return bits;
}

/* The same as a plane of the block. */
static uint64_t plane_behind_walls(const sk_grid *grid, const int32_t block[3], int z)
{
    if (behind_walls(grid, 2, block[2]) >> z & 1)
        return ~UINT64_C(0);
    uint64_t plane = behind_walls(grid, 0, block[0]) * lowest;
    const unsigned rows = behind_walls(grid, 1, block[1]);
    for (int y = 0; y < block_side; y++)
        plane |= rows >> y & 1 ? UINT64_C(0xff) << 8 * y : 0;
    return plane;
}

/* A plane of the block beside another one. Blocks without particles are full behind walls only. */
static uint64_t plane_beside(const sk_grid *grid, const sk_block_words *bits, int slot, int d, int side, int z)
{
    const int other = grid->faces[slot][2 * d + (side > 0)];
    if (other >= 1 && other <= grid->particle_blocks)
        return bits[other].words[z];
    int32_t block[3] = {grid->coordinates[slot][0], grid->coordinates[slot][1], grid->coordinates[slot][2]};
    block[d] += side;
    return plane_behind_walls(grid, block, z);
}

/* Cells of a block that are at least half full, or behind walls. */
static void find_full(const sk_step *step, int slot, sk_block_words *full)
{
    const sk_grid *grid = &step->grid;
    const uint32_t *start = grid->cell_start + (size_t)(slot - 1) * (size_t)grid->block_cells;
    const int half = (step->particles_per_cell + 1) / 2;
    for (int z = 0; z < block_side; z++, start += 64) {
        uint64_t plane = plane_behind_walls(grid, grid->coordinates[slot], z);
        for (int c = 0; c < 64; c += SK_WIDE) {
            iw first, end;
            memcpy(&first, start + c, sizeof first);
            memcpy(&end, start + c + 1, sizeof end);
            plane |= (uint64_t)iw_bits(end - first >= half) << c;
        }
        full->words[z] = plane;
    }
}

/* Cells that have all cells within reach along an axis. */
static void erode_block(const sk_grid *grid, const sk_block_words *bits, int slot, int d, sk_block_words *result)
{
    for (int z = 0; z < block_side; z++) {
        const uint64_t own = bits[slot].words[z];
        uint64_t all = own;
        const uint64_t before = d < 2 && own ? plane_beside(grid, bits, slot, d, -1, z) : 0,
                       behind = d < 2 && own ? plane_beside(grid, bits, slot, d, 1, z) : 0;
        for (int k = 1; k <= reach && all; k++) {
            if (d == 0) {
                const uint64_t low = lowest * ((1u << k) - 1);
                all &= (own << k & ~low) | (before >> (8 - k) & low);
                all &= (own >> k & ~(low << (8 - k))) | (behind & low) << (8 - k);
            } else if (d == 1) {
                all &= own << 8 * k | before >> (64 - 8 * k);
                all &= own >> 8 * k | behind << (64 - 8 * k);
            } else {
                const int down = z - k, up = z + k;
                all &= down >= 0 ? bits[slot].words[down] : plane_beside(grid, bits, slot, d, -1, down + block_side);
                all &= up < block_side ? bits[slot].words[up] : plane_beside(grid, bits, slot, d, 1, up - block_side);
            }
        }
        result->words[z] = all;
    }
}

selkie_code sk_deep_cells_find(sk_deep_cells *deep, const sk_step *step, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    if (grid->dimension != 3)
        return SELKIE_OK;
    const int blocks = grid->particle_blocks;
    SK_TRY(sk_reserve(step->memory, (void **)&deep->bits, &deep->capacity, (size_t)blocks + 1, sizeof *deep->bits,
                      "probes", error));
    SK_TRY(sk_reserve(step->memory, (void **)&deep->room, &deep->room_capacity, (size_t)blocks + 1, sizeof *deep->room,
                      "probes", error));

    /* Along one axis after the other: the last result lies in `bits`. */
    sk_block_words *from = deep->room, *to = deep->bits;
#pragma omp parallel num_threads(step->threads)
    {
#pragma omp for schedule(static)
        for (int slot = 1; slot <= blocks; slot++)
            find_full(step, slot, &from[slot]);
#pragma omp for schedule(static)
        for (int slot = 1; slot <= blocks; slot++)
            erode_block(grid, from, slot, 1, &to[slot]);
#pragma omp for schedule(static)
        for (int slot = 1; slot <= blocks; slot++)
            erode_block(grid, to, slot, 2, &from[slot]);
#pragma omp for schedule(static)
        for (int slot = 1; slot <= blocks; slot++)
            erode_block(grid, from, slot, 0, &to[slot]);
    }
    return SELKIE_OK;
}

void sk_deep_cells_free(sk_deep_cells *deep, sk_memory *memory)
{
    sk_release(memory, deep->bits);
    sk_release(memory, deep->room);
    memset(deep, 0, sizeof *deep);
}

uint64_t sk_deep_rows(const sk_deep_cells *deep, int slot)
{
    uint64_t rows = 0;
    for (int z = 0; z < block_side; z++)
        for (int y = 0; y < block_side && deep->bits[slot].words[z]; y++)
            rows |= (uint64_t)((deep->bits[slot].words[z] >> 8 * y & 0xff) == 0xff) << (8 * z + y);
    return rows;
}
