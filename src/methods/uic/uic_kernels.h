/* Unilateral incompressibility for one cell and one face; uic.h has the equations. The forms for rows of cells are in
 * uic_system_dim.c, uic_correct_dim.c and uic_pressure_dim.c.
 *
 * Sides of a cell are numbered -x +x -y +y -z +z.
 */
#ifndef SK_METHODS_UIC_UIC_KERNELS_H
#define SK_METHODS_UIC_UIC_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"
#include "methods/wall_kernels.h"

/* An excess above the room counts from this value on. Less is rounding of particle sums and positions. */
#define UIC_SLACK 1e-4f

/* A cell with less room belongs to a solid. It takes part only beside liquid (mark_in_obstacles). */
#define UIC_LEAST_ROOM 0.1f

/* A face with less room is closed. */
#define UIC_LEAST_FACE 1e-3f

/* The largest shift of a particle in a step, cells. */
#define UIC_FARTHEST_SHIFT 0.5f

/* The shift of a face is its mass flux over its density. This is the least density in that division. */
#define UIC_LEAST_SHIFTED_DENSITY 0.25f

/* The pressure accelerates the mass of a face. This is the least mass in that division, over the room of the face. */
#define UIC_LEAST_PUSHED_DENSITY 0.1f

/* Particles interpolate the shifts of the faces around them, linearly across the normal. This reduces a shift that
 * alternates from cell to cell to 33 % in 2D and 11 % in 3D. So shifts are sharpened across the normal first, as in the
 * implicit density projection (methods/idp/idp_dim.c has the factors). Only open faces count. */
#define UIC_SHARPNESS 1.5f

/* --- rooms --- */

/* Room of a cell; `blurred` is the share of its kernel inside solids. */
SK_KERNEL float sk_uic_cell_room(float blurred)
{
    return 1.0f - blurred > 0.0f ? 1.0f - blurred : 0.0f;
}

SK_KERNEL float sk_uic_face_room(float blurred)
{
    return 1.0f - blurred >= UIC_LEAST_FACE ? 1.0f - blurred : 0.0f;
}

/* Beside flat walls only, every cell is open together with its mirror image. */
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

/* Density of a cell above its room. */
SK_KERNEL float sk_uic_excess(float target, float room)
{
    return target - room - UIC_SLACK;
}

/* --- shifts --- */

/* The mass flux through a face, sharpened against the open faces beside it. */
SK_KERNEL float sk_uic_sharpened_flux(float flux, const float *beside, int count)
{
    float across = 0.0f;
    for (int n = 0; n < count; n++)
        across += beside[n] - flux;
    return flux - 0.25f * UIC_SHARPNESS * across;
}

/* Shift of the particles around a face, cells, added to `before`. */
SK_KERNEL float sk_uic_shift_of_face(float flux, float density, float before)
{
    const float moved = flux / (density > UIC_LEAST_SHIFTED_DENSITY ? density : UIC_LEAST_SHIFTED_DENSITY) + before;
    const float least = moved < UIC_FARTHEST_SHIFT ? moved : UIC_FARTHEST_SHIFT;
    return least > -UIC_FARTHEST_SHIFT ? least : -UIC_FARTHEST_SHIFT;
}

/* A face gains the mean density change of the two cells beside it. */
SK_KERNEL float sk_uic_face_density(float density, float gained_above, float gained_below)
{
    if (!(density > 0.0f))
        return density;
    const float gained = density + 0.5f * (gained_above + gained_below);
    return gained > 0.1f * density ? gained : 0.1f * density;
}

/* --- pressure --- */

/* Liquid may leave the domain's walls but not enter them. Under pressure it does neither. NaN (unknown) stays NaN. */
SK_KERNEL float sk_uic_stopped_at_wall(float velocity, int upper, float pressure_before)
{
    const int enters = upper ? velocity > 0.0f : velocity < 0.0f;
    return velocity == velocity && (enters || pressure_before > 0.0f) ? 0.0f : velocity;
}

/* Velocity of a face after the pressure has accelerated its mass; potentials in m/s. */
SK_KERNEL float sk_uic_pushed(float velocity, float room, float density, float below, float above)
{
    float mass = UIC_LEAST_PUSHED_DENSITY * room;
    mass = mass > 1e-6f ? mass : 1e-6f;
    mass = density > mass ? density : mass;
    return velocity + room * (below - above) / mass;
}

/* Mass flux through a face: density over rest density times m/s; an unknown velocity (NaN) gives 0. */
SK_KERNEL float sk_uic_mass_flux(float density, float velocity)
{
    return density * (velocity == velocity ? velocity : 0.0f);
}

/* Surface cells: open cells less than half full. */
SK_KERNEL int sk_uic_is_surface(float fill)
{
    return fill >= 0.0f && fill < 0.5f;
}

#endif
