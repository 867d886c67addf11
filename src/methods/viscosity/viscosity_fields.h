/* What the viscosity phase measures before its solve. Private to viscosity/. For files compiled per dimension. */
#ifndef SK_METHODS_VISCOSITY_VISCOSITY_FIELDS_H
#define SK_METHODS_VISCOSITY_VISCOSITY_FIELDS_H

#include "base/dimension.h"
#include "methods/step.h"

typedef struct sk_viscous_fields {
    float strength;           /* viscosity x time / cell size^2, if there is one viscosity */
    float *own_log, *log;     /* its logarithm a cell, from the cell's particles and smoothed; NULL = one viscosity */
    float *share[SK_CORNERS]; /* liquid's share of each sub-cell, 0 to 1 */
    uint8_t *filled;          /* 1 = all sub-cells are full of liquid and no lower face is closed, 2 = all are empty */
    uint8_t *closed;          /* lower faces that solids close: bits by axis */
    float *mass[3], *normal, *bulk, *shear[3], *velocity[3];
    uint8_t *fixed[3];
    uint8_t *solved[3], *carried[3]; /* faces that stress acted on; faces that followed them */
} sk_viscous_fields;

/* A block's values and those of the cells around it. */
enum {
    SK_VISCOUS_TILE = SK_BLOCK_N + 2,
    SK_VISCOUS_TILE_VALUES = SK_VISCOUS_TILE * SK_VISCOUS_TILE * (SELKIE_DIM == 3 ? SK_VISCOUS_TILE : 1)
};
static const int sk_viscous_tile_step[3]
    __attribute__((unused)) = {1, SK_VISCOUS_TILE, SK_VISCOUS_TILE *SK_VISCOUS_TILE};

/* Place in a tile of cell c of its block. */
static inline __attribute__((unused)) int sk_viscous_tile_place(int c)
{
    int place = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        place += ((c >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK) + 1) * sk_viscous_tile_step[d];
    return place;
}

/* Finds `share`, `filled` and `closed` in a block; block 0 too. */
void SK_DIM(sk_viscous_measure)(const sk_step *step, const sk_viscous_fields *f, int block);

#endif
