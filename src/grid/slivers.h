/* Faces that bodies close although particles reach them.
 *
 * A body takes the share of a face's kernel that it covers, and closes the face if it would leave less than a few
 * percent (SK_BODY_SLIVER). No particle reaches a face whose kernel lies wholly in the body, but at such a sliver
 * particles have weights of up to 0.3. If it stopped them, as faces of obstacles do, they would lose momentum that the
 * body does not gain. So they keep their own velocity there, and it changes like that of the liquid beside the face.
 * The contact of the particles with the body stops them, and conserves momentum.
 *
 * The open fraction of a sliver, and of a face that bodies cover in full, is -0; particles reach only the former. Faces
 * beside a surface that holds liquid are no slivers.
 */
#ifndef SK_GRID_SLIVERS_H
#define SK_GRID_SLIVERS_H

#include "base/kernel.h"

/* Is a face of this open fraction a sliver? */
SK_KERNEL int sk_is_sliver(float fraction)
{
    return fraction == 0.0f && __builtin_copysignf(1.0f, fraction) < 0.0f;
}

#endif
