/* Faces in the air beside the surface, for rows of cells.
 *
 * A shore cell is an air cell with liquid behind one of its faces. The pressure acts on no face between a shore cell
 * and another cell without liquid. Such a face would fall freely in every step, although its particles rest on the
 * liquid below, and the particles would keep that velocity. So it changes like the faces of the liquid beside it: by
 * the mean of their pressure gradients (shore_plain.h). A velocity from the liquid would lose the gradient, and with it
 * angular momentum. Gravity alone brings it nearer to the liquid's velocity. For files compiled per dimension.
 */
#ifndef SK_METHODS_FLIP_SHORE_H
#define SK_METHODS_FLIP_SHORE_H

#include "base/simd.h"
#include "methods/cells.h"
#include "methods/flip/shore_plain.h"

enum { SHORE_LIQUID = 1, SHORE_AIR = 2 }; /* a liquid cell; a shore cell */

/* Is there liquid in the block or in one of its neighbours? Other threads may write other bits of the flags. */
static inline int shore_is_near(const sk_grid *grid, int block)
{
    int near = 0;
    for (int n = 0; n < SK_NEIGHBOURS; n++)
        near |= __atomic_load_n(&grid->block_flags[grid->neighbours[block][n]], __ATOMIC_RELAXED);
    return near & SK_BLOCK_LIQUID;
}

/* Finds liquid and shore cells in a block and one cell around it. Returns whether there are shore cells. */
static inline int load_shore(const sk_grid *grid, int block, uint8_t states[SK_TILE_VALUES(1)])
{
    enum { N2 = SK_TILE_N(2), DEPTH = SK_TILE_NZ(1) };
    static const int steps[3] = {1, N2, N2 * N2};
    uint8_t kinds[SK_TILE_VALUES(2)], found = 0;
    sk_tile_load_bytes(grid, grid->kinds, block, 2, kinds);
    for (int n = 0; n < SK_TILE_VALUES(2); n++)
        kinds[n] &= SK_CELL_KIND_MASK;
    for (int k = 0; k < DEPTH; k++)
        for (int j = 0; j < N1; j++) {
            const uint8_t *own = kinds + 1 + N2 * (j + 1 + (SELKIE_DIM == 3 ? N2 * (k + 1) : 0));
            uint8_t *row = states + N1 * (j + N1 * k);
            for (int i = 0; i < N1; i++) {
                uint8_t beside = 0;
                for (int d = 0; d < SELKIE_DIM; d++)
                    beside |= (own[i - steps[d]] == SK_CELL_LIQUID) | (own[i + steps[d]] == SK_CELL_LIQUID);
                const uint8_t shore = (uint8_t)(beside & (own[i] == SK_CELL_AIR));
                row[i] = (uint8_t)((own[i] == SK_CELL_LIQUID ? SHORE_LIQUID : 0) | (shore ? SHORE_AIR : 0));
                found |= shore;
            }
        }
    return found;
}

/* Lower faces across axis d of eight cells that have a shore cell and no liquid beside them. */
SK_VECTOR i8 shore_faces(const uint8_t *states, int node, int d)
{
    return (i8_from_bytes(states + node) | i8_from_bytes(states + node - node_step[d])) == SHORE_AIR;
}

/* Adds the change by pressure to these faces of a block. */
static inline void move_shore_faces(const sk_step *step, int block)
{
    uint8_t states[SK_TILE_VALUES(1)];
    if (!shore_is_near(&step->grid, block) || !load_shore(&step->grid, block, states))
        return;
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
            unsigned shore = i8_bits(shore_faces(states, node_of(c), d));
            for (; shore; shore &= shore - 1)
                move_shore_face(step, (sk_plain_cell){block, c + __builtin_ctz(shore)}, d);
        }
}

#endif
