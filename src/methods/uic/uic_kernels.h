/* Unilateral incompressibility for one cell and one face: uic.h says what is solved. The twins for rows of cells are in
 * uic_system_dim.c, uic_correct_dim.c and uic_pressure_dim.c.
 *
 * Sides of a cell are numbered -x +x -y +y -z +z.
 */
#ifndef SK_METHODS_UIC_UIC_KERNELS_H
#define SK_METHODS_UIC_UIC_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"
#include "methods/wall_kernels.h"

/* More than this above the room is too dense; less is the rounding of sums over particles, and of their places. */
#define UIC_SLACK 1e-4f

/* A cell with less room than this is part of a solid: whether it takes part is asked of its neighbours
 * (mark_in_obstacles). */
#define UIC_LEAST_ROOM 0.1f

/* Faces whose kernel has less room than this are closed. */
#define UIC_LEAST_FACE 1e-3f

/* No particle is shifted farther than this in a step, cells. */
#define UIC_FARTHEST_SHIFT 0.5f

/* A face's flux of mass moves what mass it has; where it has next to none, this much. */
#define UIC_LEAST_SHIFTED_DENSITY 0.25f

/* The pressure on a face moves what mass it has; where it has less than this part of its room, that much. */
#define UIC_LEAST_PUSHED_DENSITY 0.1f

/* Particles move by the shifts of the faces around them, linear across, which smooths a shift that differs from cell to
 * cell to a third of its strength in 2D and a ninth in 3D. So it is lifted over its neighbours across by as much first,
 * as the implicit density projection does it (methods/idp/idp_dim.c has the factors). Only faces in the open count. */
#define UIC_SHARPNESS 1.5f

/* --- rooms --- */

/* Room of a cell whose kernel lies in solids by the share `blurred`. */
SK_KERNEL float sk_uic_cell_room(float blurred)
{
    return 1.0f - blurred > 0.0f ? 1.0f - blurred : 0.0f;
}

SK_KERNEL float sk_uic_face_room(float blurred)
{
    return 1.0f - blurred >= UIC_LEAST_FACE ? 1.0f - blurred : 0.0f;
}

/* Where there is nothing but flat walls every cell is open with its mirror image. */
SK_KERNEL float sk_uic_open_cell_room(const sk_flat_walls *walls, const int at[3])
{
    return sk_wall_is_beyond_image(walls, at) ? 0.0f : 1.0f;
}

SK_KERNEL float sk_uic_open_face_room(const sk_flat_walls *walls, int d, const int at[3])
{
    return at[d] <= walls->low[d] || at[d] >= walls->high[d] || sk_wall_is_beyond_image(walls, at) ? 0.0f : 1.0f;
}

/* --- rows --- */

/* Does a cell with enough room hold enough mass to take part? */
SK_KERNEL int sk_uic_takes_part(float room, float mass, float threshold)
{
    return room >= UIC_LEAST_ROOM && mass >= threshold * room;
}

/* The diagonal of a row, from the rooms of the faces. */
SK_KERNEL float sk_uic_diagonal(const float face[2 * SELKIE_DIM])
{
    float open = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        open += face[2 * d] + face[2 * d + 1];
    return open;
}

/* How much denser than its room a cell is. */
SK_KERNEL float sk_uic_excess(float target, float room)
{
    return target - room - UIC_SLACK;
}

/* --- shifts --- */

/* A flux of mass through a face, lifted over those beside it that are in the open. */
SK_KERNEL float sk_uic_sharpened_flux(float flux, const float *beside, int count)
{
    float across = 0.0f;
    for (int n = 0; n < count; n++)
        across += beside[n] - flux;
    return flux - 0.25f * UIC_SHARPNESS * across;
}

/* What particles around a face are shifted by, cells, on top of `before`. */
SK_KERNEL float sk_uic_shift_of_face(float flux, float density, float before)
{
    const float moved = flux / (density > UIC_LEAST_SHIFTED_DENSITY ? density : UIC_LEAST_SHIFTED_DENSITY) + before;
    const float least = moved < UIC_FARTHEST_SHIFT ? moved : UIC_FARTHEST_SHIFT;
    return least > -UIC_FARTHEST_SHIFT ? least : -UIC_FARTHEST_SHIFT;
}

/* Faces take the mean of what the cells beside them gained. */
SK_KERNEL float sk_uic_face_density(float density, float gained_above, float gained_below)
{
    if (!(density > 0.0f))
        return density;
    const float gained = density + 0.5f * (gained_above + gained_below);
    return gained > 0.1f * density ? gained : 0.1f * density;
}

/* --- pressure --- */

/* Liquid leaves the domain's walls but does not enter them; where pressure holds it against one it does neither. An
 * unknown velocity (NaN) stays so. */
SK_KERNEL float sk_uic_stopped_at_wall(float velocity, int upper, float pressure_before)
{
    const int enters = upper ? velocity > 0.0f : velocity < 0.0f;
    return velocity == velocity && (enters || pressure_before > 0.0f) ? 0.0f : velocity;
}

/* Velocity of a face after pressure has pushed the mass around it: potentials in m/s. */
SK_KERNEL float sk_uic_pushed(float velocity, float room, float density, float below, float above)
{
    float mass = UIC_LEAST_PUSHED_DENSITY * room;
    mass = mass > 1e-6f ? mass : 1e-6f;
    mass = density > mass ? density : mass;
    return velocity + room * (below - above) / mass;
}

/* Mass that flows through a face, density over rest density times m/s; unknown velocities (NaN) move nothing. */
SK_KERNEL float sk_uic_mass_flux(float density, float velocity)
{
    return density * (velocity == velocity ? velocity : 0.0f);
}

/* The surface: open cells less than half full. */
SK_KERNEL int sk_uic_is_surface(float fill)
{
    return fill >= 0.0f && fill < 0.5f;
}

#endif
