/* Heat of one particle, cell and face: enthalpy, temperature, liquid fraction and conductance.
 *
 * Enthalpy is divided by the heat capacity of the liquid, so that it is a temperature difference (K): 0 is the solid at
 * its melting point, `latent` the liquid at it. A material that never melts has latent 0 and one slope; its reference
 * is 273.15 K.
 */
#ifndef SK_METHODS_HEAT_HEAT_KERNELS_H
#define SK_METHODS_HEAT_HEAT_KERNELS_H

#include "base/kernel.h"

/* The curve of a material. */
typedef struct sk_heat_curve {
    double melting;     /* K        temperature at enthalpy 0 */
    double latent;      /* K        latent heat over the heat capacity of the liquid */
    double solid_slope; /*          heat capacity of the liquid over that of the solid */
    double capacity;    /* J/K      of a particle, as liquid */
    double resistance;  /* m K / W  of the liquid: one over its conductivity; 0 = no conduction */
    double solid_resistance;
    double expansion; /* 1/K      of the liquid */
    int melts;
} sk_heat_curve;

/* Phases of a cell. A mixed cell holds several materials and has no melting range of its own. */
enum { SK_HEAT_SOLID, SK_HEAT_MUSHY, SK_HEAT_LIQUID, SK_HEAT_MIXED };

/* K */
SK_KERNEL double sk_heat_temperature(const sk_heat_curve *curve, double enthalpy)
{
    if (enthalpy < 0.0)
        return curve->melting + enthalpy * curve->solid_slope;
    return enthalpy > curve->latent ? curve->melting + (enthalpy - curve->latent) : curve->melting;
}

/* The inverse; at the melting point the material is solid. */
SK_KERNEL double sk_heat_enthalpy(const sk_heat_curve *curve, double temperature)
{
    const double above = temperature - curve->melting;
    return above > 0.0 ? above + curve->latent : above / curve->solid_slope;
}

/* Least and largest enthalpy at the temperatures of a range. */
SK_KERNEL double sk_heat_least(const sk_heat_curve *curve, double coldest)
{
    const double above = coldest - curve->melting;
    return above > 0.0 ? above + curve->latent : above / curve->solid_slope;
}

SK_KERNEL double sk_heat_most(const sk_heat_curve *curve, double warmest)
{
    const double above = warmest - curve->melting;
    return above < 0.0 ? above / curve->solid_slope : above + curve->latent;
}

/* 0 = solid, 1 = liquid. */
SK_KERNEL double sk_heat_liquid_fraction(const sk_heat_curve *curve, double enthalpy)
{
    if (!curve->melts || enthalpy > curve->latent)
        return 1.0;
    return enthalpy > 0.0 ? enthalpy / curve->latent : 0.0;
}

/* m K / W. In the melting range the sign is negative: on its way to the melting front inside the cell, heat passes the
 * phase that lies on the side it comes from (sk_heat_face). */
SK_KERNEL double sk_heat_resistance(const sk_heat_curve *curve, double enthalpy)
{
    const double liquid = sk_heat_liquid_fraction(curve, enthalpy);
    double mean = liquid * curve->resistance + (1.0 - liquid) * curve->solid_resistance;
    /* One phase insulates: the other is what heat may pass. */
    if (curve->resistance == 0.0 || curve->solid_resistance == 0.0)
        mean = liquid == 1.0                     ? curve->resistance
               : liquid == 0.0 && enthalpy < 0.0 ? curve->solid_resistance
                                                 : curve->resistance + curve->solid_resistance;
    return curve->melts && enthalpy >= 0.0 && enthalpy <= curve->latent ? -mean : mean;
}

/* Resistance of a particle in a cell of several materials, for the mean of the cell: layers lie one behind the other.
 * An insulator's is as good as infinite. */
SK_KERNEL double sk_heat_layer(double resistance, double least_resistance)
{
    const double own = __builtin_fabs(resistance);
    return own > 0.0 ? own : 1e30 * least_resistance;
}

/* Back from the mean of a cell: 0 = no conduction. */
SK_KERNEL double sk_heat_layers(double mean, double least_resistance)
{
    return mean < 1e15 * least_resistance ? mean : 0.0;
}

/* m2/s: diffusivity by the resistance and the volume (m3; m2 in 2D) of a particle; 0 = no conduction. */
SK_KERNEL double sk_heat_diffusivity(const sk_heat_curve *curve, double resistance, double volume)
{
    return resistance != 0.0 ? volume / (__builtin_fabs(resistance) * curve->capacity) : 0.0;
}

SK_KERNEL int sk_heat_phase(const sk_heat_curve *curve, double enthalpy)
{
    if (enthalpy < 0.0)
        return SK_HEAT_SOLID;
    return enthalpy > curve->latent || !curve->melts ? SK_HEAT_LIQUID : SK_HEAT_MUSHY;
}

/* Slope of temperature over enthalpy in a phase. */
SK_KERNEL double sk_heat_slope(const sk_heat_curve *curve, int phase)
{
    return phase == SK_HEAT_SOLID ? curve->solid_slope : 1.0;
}

/* The phase for the next pass: a mushy cell whose enthalpy left the melting range is solid or liquid, and a cell whose
 * temperature crossed the melting point is mushy. */
SK_KERNEL int sk_heat_next_phase(const sk_heat_curve *curve, int phase, double enthalpy, double temperature)
{
    if (phase == SK_HEAT_MIXED || !curve->melts)
        return phase;
    if (phase == SK_HEAT_MUSHY)
        return enthalpy < 0.0 ? SK_HEAT_SOLID : enthalpy > curve->latent ? SK_HEAT_LIQUID : SK_HEAT_MUSHY;
    if (phase == SK_HEAT_SOLID)
        return temperature > curve->melting ? SK_HEAT_MUSHY : SK_HEAT_SOLID;
    return temperature < curve->melting ? SK_HEAT_MUSHY : SK_HEAT_LIQUID;
}

/* Position of a particle between cell centres along an axis: the cell below, and the weight of the one above. */
SK_KERNEL int sk_heat_place(float coordinate, float *weight)
{
    const float centred = coordinate - 0.5f, low = __builtin_floorf(centred);
    *weight = centred - low;
    return (int)low;
}

/* How far a cell conducts, from its share of the mass of a full cell. Half a cell of liquid fills a face beside it;
 * noise of the particles' density has no effect. */
SK_KERNEL float sk_heat_filled(float share)
{
    const float filled = 2.0f * share;
    return filled < 1.0f ? filled : 1.0f;
}

/* Coefficient of the face between two cells over that of the best conductor. */
SK_KERNEL float sk_heat_face(float open, float filled_below, float filled_above, double below, double above,
                             double least_resistance)
{
    const float filled = filled_below < filled_above ? filled_below : filled_above;
    if (below == 0.0 || above == 0.0) /* an insulator */
        return 0.0f;
    /* A cell in the melting range is as its neighbour; between two of them there is no difference of temperature. */
    const double a = below > 0.0 ? below : above > 0.0 ? above : -below;
    const double b = above > 0.0 ? above : below > 0.0 ? below : -above;
    return a > 0.0 && b > 0.0 ? open * filled * (float)(2.0 * least_resistance / (a + b)) : 0.0f;
}

/* Coefficient of a surface at a distance (cells) from the centre of a cell, with a heat exchange (W/(m2 K); 0 = perfect
 * contact) behind it. Conduction over the distance and the exchange act one behind the other. */
SK_KERNEL double sk_heat_contact(double area, double distance, double resistance, double exchange, double cell_size,
                                 double least_resistance)
{
    if (!(resistance > 0.0))
        return 0.0;
    const double inside = distance * resistance / least_resistance;
    const double behind = exchange > 0.0 ? 1.0 / (exchange * cell_size * least_resistance) : 0.0;
    return area / (inside + behind);
}

/* Area of the free surface in a cell, in faces of a cell, from how far it and its neighbours are filled. The sum over
 * the cells across a flat surface is 1. */
SK_KERNEL float sk_heat_free_area(float filled, const float *beside, int dimension)
{
    float area2 = 0.0f;
    for (int d = 0; d < dimension; d++) {
        const float below = filled - beside[2 * d], above = filled - beside[2 * d + 1];
        const float along = (below > 0.0f ? below : 0.0f) + (above > 0.0f ? above : 0.0f);
        area2 += along * along;
    }
    return __builtin_sqrtf(area2);
}

/* Loss of weight at a face by thermal expansion, over the weight, from those of the cells beside it. A cell without
 * heat (NaN) does not count. */
SK_KERNEL float sk_heat_face_lightness(float below, float above)
{
    if (below != below)
        return above == above ? above : 0.0f;
    return above == above ? 0.5f * (below + above) : below;
}

#endif
