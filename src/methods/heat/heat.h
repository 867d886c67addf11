/* Heat: conduction, exchange with surfaces and air, melting and freezing, on the grid of the liquid.
 *
 * A particle carries its enthalpy. Each step spreads it to cells by the linear hat, solves the implicit heat equation
 * there, and gives the change back to the particles by the same weights. The change of a cell follows from the fluxes
 * through its faces, so that energy is kept to rounding whatever the solver leaves. Cells in the melting range are held
 * at the melting point while the others are solved; passes repeat until the set of these cells stands still.
 *
 * Attributes: "temperature" (K), "enthalpy" (the bits of a double, K; 0 = take it from the temperature), and
 * "liquid_fraction" if some material melts. Sampling and sources write the temperature alone.
 */
#ifndef SK_METHODS_HEAT_HEAT_H
#define SK_METHODS_HEAT_HEAT_H

#include <string.h>
#include "methods/heat/heat_kernels.h"
#include "methods/method.h"

extern const sk_method sk_method_heat;

typedef struct sk_heat_sums {
    double energy;           /* J */
    double coldest, warmest; /* K */
} sk_heat_sums;

typedef struct sk_heat {
    sk_heat_curve curves[SK_TRANSFER_MATERIALS];
    double full_capacity;    /* J/K      of a full cell of the lightest material */
    int several;             /* materials differ in their curves */
    int melts;               /* some material melts */
    int lightness;           /* field of the loss of weight by expansion; -1 = nothing expands */
    double coldest, warmest; /* K  range that the particles keep to in this step */
    double least_resistance; /* m K / W  of the best conductor; 0 = nothing conducts */
    sk_heat_sums sums;
    sk_poisson_report report; /* of the last pass */
    int passes;
} sk_heat;

/* The attributes of the particles. */
typedef struct sk_heat_attributes {
    uint32_t *enthalpy; /* [2 count] */
    float *temperature;
    float *liquid_fraction;   /* NULL = nothing melts */
    const uint32_t *material; /* NULL = one material */
} sk_heat_attributes;

sk_heat_attributes sk_heat_find_attributes(const sk_step *step);

SK_KERNEL double sk_heat_get(const sk_heat_attributes *a, int64_t p)
{
    double value;
    memcpy(&value, a->enthalpy + 2 * p, sizeof value);
    return value;
}

SK_KERNEL const sk_heat_curve *sk_heat_curve_of(const sk_heat *heat, const sk_heat_attributes *a, int64_t p)
{
    return &heat->curves[a->material ? a->material[p] % SK_TRANSFER_MATERIALS : 0];
}

/* Stores an enthalpy and what follows from it. */
SK_KERNEL double sk_heat_set(const sk_heat_attributes *a, const sk_heat_curve *curve, int64_t p, double enthalpy)
{
    const double temperature = sk_heat_temperature(curve, enthalpy);
    memcpy(a->enthalpy + 2 * p, &enthalpy, sizeof enthalpy);
    a->temperature[p] = (float)temperature;
    if (a->liquid_fraction)
        a->liquid_fraction[p] = (float)sk_heat_liquid_fraction(curve, enthalpy);
    return temperature;
}

/* The enthalpy of a new particle, from its temperature. Returns whether it is new. */
SK_KERNEL int sk_heat_begin(const sk_heat *heat, const sk_heat_attributes *a, int64_t p)
{
    if (a->enthalpy[2 * p] || a->enthalpy[2 * p + 1])
        return 0;
    const sk_heat_curve *curve = sk_heat_curve_of(heat, a, p);
    sk_heat_set(a, curve, p, sk_heat_enthalpy(curve, (double)a->temperature[p]));
    return 1;
}

/* Does some particle of a range have no enthalpy yet? */
int sk_heat_any_new(const sk_heat_attributes *a, int64_t begin, int64_t end);

SK_KERNEL void sk_heat_sums_add(sk_heat_sums *sums, const sk_heat_sums *more)
{
    sums->energy += more->energy;
    sums->coldest = more->coldest < sums->coldest ? more->coldest : sums->coldest;
    sums->warmest = more->warmest > sums->warmest ? more->warmest : sums->warmest;
}

/* Sums of a cell over the particles around it, with the weights of the linear hat. One material needs the first two. */
enum {
    SK_HEAT_CAPACITY,    /* J/K */
    SK_HEAT_ENTHALPY,    /* J    capacity x enthalpy */
    SK_HEAT_TEMPERATURE, /* J    capacity x temperature */
    SK_HEAT_RESISTANCE,  /*      capacity x resistance */
    SK_HEAT_MATERIAL,    /* J/K  capacity x material */
    SK_HEAT_MATERIAL_2,  /* J/K  capacity x material^2 */
    SK_HEAT_SUMS
};

enum { SK_HEAT_BEYOND = 255 };

/* Heat of the cells. Arrays cover all blocks, with the empty block 0. */
typedef struct sk_heat_cells {
    double *capacity;    /* J/K    0 = no unknown */
    double *enthalpy;    /* K      at the start of the step */
    double *change;      /* K      of the enthalpy in this step */
    double *temperature; /* K      at the start of the step; melting point where the pass holds it there */
    double *resistance;  /* m K/W  */
    double *supply;      /* K      sum of coefficient x temperature of surfaces and air */
    float *outside;      /*        sum of these coefficients */
    float *filled;       /*        sk_heat_filled */
    float *face[3], *diagonal, *right, *solution, *other;
    uint8_t *material;
    uint8_t *empty; /* [blocks] no cell has heat: all arrays are 0 there */
    uint8_t *phase; /*        of this pass; after the solve SK_HEAT_BEYOND where sk_heat_limit_cells had no room */
} sk_heat_cells;

/* The solve of a step. */
typedef struct sk_heat_solve {
    sk_step *step;
    sk_heat *heat;
    sk_heat_cells cells;
    double unit;                  /* K/J  capacity in units of a full face: least resistance / (dt h^(d - 2)) */
    const double (*obstacles)[2]; /* K, W/(m2 K)  temperature and exchange of each; NULL = none has a temperature */
    int is_alike;                 /* one material that never melts */
} sk_heat_solve;

/* Where a row has a larger part that belongs to neighbours, sweeps take more time than the solver. */
#define SK_HEAT_MOST_SHARE 0.35

/* Does an obstacle have a temperature? Writes temperature and heat exchange of all unless `own` is NULL. */
int sk_heat_warm_obstacles(const sk_step *step, double (*own)[2]);

/* The end of a solve: fails if it did not converge. */
selkie_code sk_heat_judge(const sk_step *step, const sk_poisson_report *report, selkie_error *error);

/* Values of a particle for its cells. */
SK_KERNEL void sk_heat_values(const sk_heat *heat, const sk_heat_attributes *a, int64_t p, int several,
                              double values[SK_HEAT_SUMS])
{
    const sk_heat_curve *curve = several ? sk_heat_curve_of(heat, a, p) : heat->curves;
    const double enthalpy = sk_heat_get(a, p), material = several ? a->material[p] % SK_TRANSFER_MATERIALS : 0.0;
    values[SK_HEAT_CAPACITY] = curve->capacity;
    values[SK_HEAT_ENTHALPY] = curve->capacity * enthalpy;
    if (!several)
        return;
    values[SK_HEAT_TEMPERATURE] = curve->capacity * sk_heat_temperature(curve, enthalpy);
    values[SK_HEAT_RESISTANCE] =
        curve->capacity * sk_heat_layer(sk_heat_resistance(curve, enthalpy), heat->least_resistance);
    values[SK_HEAT_MATERIAL] = curve->capacity * material;
    values[SK_HEAT_MATERIAL_2] = curve->capacity * material * material;
}

/* Fills capacity, enthalpy, temperature, resistance and material from the particles; and gives changes back. */
selkie_code sk_heat_gather_2d(sk_step *step, const sk_heat *heat, sk_heat_cells *cells, selkie_error *error);
selkie_code sk_heat_gather_3d(sk_step *step, const sk_heat *heat, sk_heat_cells *cells, selkie_error *error);
selkie_code sk_heat_gather_plain_2d(sk_step *step, const sk_heat *heat, sk_heat_cells *cells, selkie_error *error);
selkie_code sk_heat_gather_plain_3d(sk_step *step, const sk_heat *heat, sk_heat_cells *cells, selkie_error *error);
void sk_heat_scatter_block_2d(const sk_step *step, const sk_heat *heat, const sk_heat_cells *cells, int block);
void sk_heat_scatter_block_3d(const sk_step *step, const sk_heat *heat, const sk_heat_cells *cells, int block);
void sk_heat_scatter_plain_2d(const sk_step *step, const sk_heat *heat, const sk_heat_cells *cells, int block);
void sk_heat_scatter_plain_3d(const sk_step *step, const sk_heat *heat, const sk_heat_cells *cells, int block);

/* Temperatures of the particles of each cell, K. Arrays cover all blocks. */
typedef struct sk_heat_ranges {
    double *mean; /* NaN = no particles */
    double *coldest, *warmest;
} sk_heat_ranges;

/* What mixing within cells takes from the step (heat_mix_dim.c). */
typedef struct sk_heat_mixing {
    double volume; /* m3    of a particle (m2 in 2D) */
    double most;   /* m2/s  largest diffusivity of all materials */
    double ticks;  /*       of this step, SK_HEAT_TICKS in a time constant; 0 = nothing is mixed */
} sk_heat_mixing;

enum { SK_HEAT_TICKS = 4 };

/* Evens out temperatures within each cell (heat_mix_dim.c): how often in this step, the ranges of a block, and the
 * mixing once all of them are there. */
sk_heat_mixing sk_heat_find_mixing(const sk_step *step, const sk_heat *heat);
void sk_heat_measure_block_2d(const sk_step *step, const sk_heat *heat, const sk_heat_ranges *ranges, int block);
void sk_heat_measure_block_3d(const sk_step *step, const sk_heat *heat, const sk_heat_ranges *ranges, int block);
void sk_heat_mix_2d(const sk_step *step, const sk_heat *heat, const sk_heat_ranges *ranges,
                    const sk_heat_mixing *mixing);
void sk_heat_mix_3d(const sk_step *step, const sk_heat *heat, const sk_heat_ranges *ranges,
                    const sk_heat_mixing *mixing);

/* The phase "expansion": buoyancy by thermal expansion on the faces, from the field that "heat" left. */
selkie_code sk_heat_expand_2d(sk_step *step, selkie_error *error);
selkie_code sk_heat_expand_3d(sk_step *step, selkie_error *error);

/* The phase "heat". */
selkie_code sk_heat_step_2d(sk_step *step, selkie_error *error);
selkie_code sk_heat_step_3d(sk_step *step, selkie_error *error);
selkie_code sk_heat_step_plain_2d(sk_step *step, selkie_error *error);
selkie_code sk_heat_step_plain_3d(sk_step *step, selkie_error *error);

#endif
