/* Two velocities of a face, of the liquid and of the solid: bodies of particles, or elastoplastic points. */
#ifndef SK_METHODS_PART_KERNELS_H
#define SK_METHODS_PART_KERNELS_H

#include "base/kernel.h"

/* Share of the bodies in a face, from the volumes of both by the kernel. */
SK_KERNEL float sk_solid_share(float solid, float liquid)
{
    return solid > 0.0f ? solid / (solid + liquid) : 0.0f;
}

/* The velocity that the pressure sees. An unknown velocity (NaN) has no share. */
SK_KERNEL float sk_mixed_velocity(float share, float solid, float liquid)
{
    if (!(share > 0.0f))
        return liquid;
    return liquid == liquid ? (1.0f - share) * liquid + share * solid : solid;
}

/* Reference density over density of a face. */
SK_KERNEL float sk_mixed_lightness(float share, float solid, float liquid)
{
    return (1.0f - share) * liquid + share * solid;
}

/* Change (m/s) of a part with a lightness of its own, from that of forces and that of the pressure on the mixture. */
SK_KERNEL float sk_parted_change(float forces, float pressure, float own, float mixed)
{
    return forces + pressure * (own / mixed);
}

#endif
