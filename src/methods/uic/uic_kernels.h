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

/* The pressure accelerates the mass of a face. This is the least mass in that division, over the room of the face, if
 * rows bound the density (`prediction: flux`). Momentum is lost on lighter faces. */
#define UIC_LEAST_PUSHED_DENSITY 0.1f

/* The same if rows of full cells bound the flow. Their velocities are bounded then, and the division may be exact. */
#define UIC_LEAST_FLOWING_DENSITY 1e-3f

/* A cell with this share of its room is full: the level is then a tenth of a cell above its lower face. Less carries so
 * little that its fall does not show. With 0.5, a level just below the centres of cells has a layer of particles
 * without support, which stirs. From 0.12 on down, single particles on the surface slide about. Counts where there is
 * no level: beside obstacles, with surface tension, and away from packed liquid. */
#define UIC_FULL 0.18f

/* A cell that the level lies in is full from this height of the level above its face on, cells. The pressure in it is
 * half the square of the height, so nothing jumps as a cell becomes full; at a height of 0.1 a pool of which some cells
 * are full and others not circulates. The height is even at rest, where the fill of a cell is noise. */
#define UIC_LEAST_LEVEL 0.01f

/* A cell with less of its room filled holds no level: a tenth of a cell below its face is 0.08. */
#define UIC_LEAST_LEVEL_FILL 0.05f

/* The same without gravity: there is no level, and lighter cells at the border of a spinning disc cost it a part of its
 * spin. */
#define UIC_FULL_WITHOUT_GRAVITY 0.25f

/* Liquid is packed from this share of its room on; the density of a packed arrangement varies by less. A full cell
 * beside packed ones has no spare room. */
#define UIC_PACKED 0.85f

/* Flow into a full cell counts from this share of a cell on. Less is rounding of velocities. Each full cell gains as
 * much in a step, so a level sinks. Calm liquid keeps small excesses beside obstacles, so the density correction does
 * not stop that: calm cells that are denser than their room by UIC_SETTLED gain a tenth. Nothing at all would be
 * pressure in flight. */
#define UIC_FLOW_SLACK 1e-6f
#define UIC_SETTLED 0.002f
#define UIC_SETTLED_SLACK 0.1f

/* Cells beside an obstacle that lack liquid (UIC_PACKED) although all open cells around them have this share of theirs
 * hold a gap at the obstacle. They gain this share of what they lack in a step. Flow alone never fills a gap: blurred
 * obstacles let flow pass where particles cannot. */
#define UIC_SUBMERGED 0.8f
#define UIC_REFILL 0.02f

/* Faces take the mean velocity of the particles around them, whose centre is off the face's. In a rotation the flow is
 * then off by the angle times that offset (cells) and the room of the face; lattices need 0.02. Calm liquid has no such
 * allowance: what it lets into the eddies of a wave, the density correction would lift again, and the wave would grow.
 */
#define UIC_CENTRE_OFFSET 0.03f

/* Density noise of liquid that arrives in a cell that is not full, over rest density. The correction evens it out. */
#define UIC_ARRIVING_SLACK 0.1f

/* The density correction lets calm liquid beside the surface keep this excess; from twice of it on all of it counts.
 * Particles that waves carry through the upper cells make such an excess in each step, and the correction only ever
 * lifts: water at rest would gain motion by it for ever. */
#define UIC_KEPT_EXCESS 0.1f

/* The same in scenes with obstacles, everywhere: the noise of particles, most of it beside obstacles, where few
 * particles fill a kernel. */
#define UIC_KEPT_INSIDE 0.02f

/* Liquid as fast as this times sqrt(gravity x cell) keeps no excess. */
#define UIC_CALM 0.2f

/* A cell is beside the surface if one of the cells around it has less of its room filled. */
#define UIC_SURFACE_FILL 0.5f

/* Room of a face without mass (over the cell): up to EVEN it is noise and the face counts as full in the solve, from
 * UNEVEN on the face has its real mass. */
#define UIC_EVEN 0.4f
#define UIC_UNEVEN 0.7f

/* Faces with less room are beside an obstacle, where few particles fill a kernel: their masses say nothing of a level.
 */
#define UIC_OPEN 0.9f

/* Light faces: the solve takes up to twice the mass below this share of the room, since few particles carry it. */
#define UIC_LIGHT 0.1f

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

/* --- excess that stays --- */

/* Change of velocity by gravity (m/s2) in a time (s), m/s. */
SK_KERNEL float sk_uic_gain(const double gravity[3], double kick)
{
    const double g2 = gravity[0] * gravity[0] + gravity[1] * gravity[1] + gravity[2] * gravity[2];
    return (float)(__builtin_sqrt(g2) * kick);
}

SK_KERNEL int sk_uic_has_gravity(const double gravity[3])
{
    return gravity[0] != 0.0 || gravity[1] != 0.0 || gravity[2] != 0.0;
}

/* The speed (m/s) from which on liquid keeps no excess. `gravity` m/s2, h: m. */
SK_KERNEL float sk_uic_calm_speed(const double gravity[3], double h)
{
    return (float)(UIC_CALM * __builtin_sqrt((double)sk_uic_gain(gravity, 1.0) * h));
}

/* The excess that the density correction removes. `emptiest` is the least fill in and around the cell, `speed` the
 * largest of its faces, `calm` the speed above. */
SK_KERNEL float sk_uic_removed_excess(float excess, float emptiest, float speed, float calm, int has_solids)
{
    const float most = has_solids ? UIC_KEPT_INSIDE : emptiest < UIC_SURFACE_FILL ? UIC_KEPT_EXCESS : 0.0f;
    const float kept = speed < calm ? most * (1.0f - speed / calm) : 0.0f;
    const float beyond = 2.0f * (excess - kept);
    return excess > 0.0f && beyond < excess ? beyond : excess;
}

/* How much of the allowance for rotations counts, by the largest speed of a cell's faces. */
SK_KERNEL float sk_uic_allowance(float speed, float calm)
{
    return speed <= calm && calm > 0.0f ? 0.0f : speed < 2.0f * calm ? speed / calm - 1.0f : 1.0f;
}

/* --- full cells --- */

/* Do levels say how heavy the faces at the surface are? Particles of bodies have masses too, which say nothing of a
 * level: floating boxes lay 0.04 cells too high. */
SK_KERNEL int sk_uic_has_levels(const double gravity[3], int has_soft_bodies)
{
    return sk_uic_has_gravity(gravity) && !has_soft_bodies;
}

/* Do they say which cells are full, too? Surface tension acts at the border of the full cells: at the faces of a level
 * of 0.01 cells it would drive next to no mass. */
SK_KERNEL int sk_uic_fills_by_levels(const double gravity[3], int has_soft_bodies, int has_tension)
{
    return sk_uic_has_levels(gravity, has_soft_bodies) && !has_tension;
}

/* The share of its room from which on a cell is full. */
SK_KERNEL float sk_uic_full(int has_gravity)
{
    return has_gravity ? UIC_FULL : UIC_FULL_WITHOUT_GRAVITY;
}

/* Density that a cell may gain before pressure resists; -1 in cells that are not full. `densest` is the largest fill in
 * and around the cell. Spray, which is loose everywhere, has room left; the surface of packed liquid has none. */
SK_KERNEL float sk_uic_spare(float fill, float densest, float room, float full)
{
    const float spare = (UIC_PACKED - densest) * room;
    return fill < full ? -1.0f : spare > 0.0f ? spare : 0.0f;
}

/* Height of the level above a face, cells, from the masses of that face and of the next one above over their rooms.
 * Below a full next face only that one counts: the mass of the last one is the noise of packed liquid then. */
SK_KERNEL float sk_uic_height(float last, float next)
{
    const float share = 2.0f * (next > 0.0f ? next : 0.0f);
    float plain = last + next - 0.5f;
    plain = plain > 1.0f ? 1.0f : plain > 0.0f ? plain : 0.0f;
    return share * __builtin_sqrtf(share) + (1.0f - share) * plain;
}

/* May the level lie in a cell? */
SK_KERNEL int sk_uic_may_hold_level(float fill, float room)
{
    return room >= UIC_OPEN && fill >= UIC_LEAST_LEVEL_FILL && fill < 0.5f;
}

/* Is such a cell full? `rooms` and `masses` are those of its face towards the liquid and of the face opposite, `below`
 * is the fill of the cell that the liquid is in. 1 = full, 0 = not yet, -1 = no level lies between these faces. */
SK_KERNEL int sk_uic_level_fills(const float rooms[2], const float masses[2], float below)
{
    if (rooms[0] < UIC_OPEN || rooms[1] < UIC_OPEN || below < 0.5f)
        return -1;
    const float last = masses[0] / rooms[0], next = masses[1] / rooms[1];
    if (last < 0.5f || next >= 0.5f)
        return -1;
    return sk_uic_height(last, next) > UIC_LEAST_LEVEL;
}

/* The same for a cell beside an obstacle that lacks liquid; `emptiest` is the least fill of the open cells around. */
SK_KERNEL int sk_uic_is_gap(float fill, float room, float densest, float emptiest)
{
    return room < 0.99f && fill < UIC_PACKED && densest > UIC_PACKED && emptiest > UIC_SUBMERGED;
}

SK_KERNEL float sk_uic_spare_of_gap(float fill, float room)
{
    return UIC_REFILL * (UIC_PACKED - fill) * room;
}

/* Cells that an obstacle leaves almost no room are full beside full cells. */
SK_KERNEL float sk_uic_spare_in_obstacle(float densest, float full)
{
    return densest >= full ? 0.0f : -1.0f;
}

/* Mean slope of a velocity across its direction, at a cell: `own` are the velocities of the two faces, `beside` those
 * of the faces beside each of them (lower, upper). Unknown velocities (NaN) do not count. Times a cell. */
SK_KERNEL float sk_uic_slope(const float own[2], const float beside[4])
{
    float sum = 0.0f, count = 0.0f;
    for (int n = 0; n < 4; n++) {
        const float change = n % 2 ? beside[n] - own[n / 2] : own[n / 2] - beside[n];
        sum += change == change ? change : 0.0f;
        count += change == change ? 1.0f : 0.0f;
    }
    return sum / (count > 1.0f ? count : 1.0f);
}

/* Volume flux into a cell between two faces; a face of unknown velocity moves like the other. Solids fill the rest of
 * the faces and move with their own velocity. */
SK_KERNEL float sk_uic_inflow(const float velocity[2], const float room[2], const float solid[2])
{
    const float low = velocity[0] == velocity[0] ? velocity[0] : velocity[1] == velocity[1] ? velocity[1] : 0.0f;
    const float high = velocity[1] == velocity[1] ? velocity[1] : low;
    return room[0] * low - room[1] * high + (1.0f - room[0]) * solid[0] - (1.0f - room[1]) * solid[1];
}

/* The largest room of a cell's faces, which a rotation may have flow through. */
SK_KERNEL float sk_uic_widest(const float rooms[2 * SELKIE_DIM])
{
    float widest = 0.0f;
    for (int side = 0; side < 2 * SELKIE_DIM; side++)
        widest = rooms[side] > widest ? rooms[side] : widest;
    return widest;
}

/* The flow into a full cell that does not count. `excess` is its density above its room, `allowance` that of its speed.
 */
SK_KERNEL float sk_uic_flow_slack(float excess, float room, float allowance)
{
    const float settled = UIC_SETTLED * (room > UIC_LEAST_ROOM ? room : UIC_LEAST_ROOM);
    const float share = excess > 0.0f ? (excess < settled ? excess / settled : 1.0f) : 0.0f;
    return UIC_FLOW_SLACK * (1.0f - (1.0f - UIC_SETTLED_SLACK) * share * (1.0f - allowance));
}

/* Volume that a full cell gains in the step, above its spare room. `turning` is the sum of the absolute components of
 * the vorticity, times the widest room and the allowance; `scale` is dt over the cell size. */
SK_KERNEL float sk_uic_flow_excess(float inflow, float turning, float spare, float scale, float slack)
{
    return scale * (inflow - UIC_CENTRE_OFFSET * turning) - spare - slack;
}

/* Mass of a face, over rest density. */
SK_KERNEL float sk_uic_real_mass(float room, float density)
{
    float mass = UIC_LEAST_FLOWING_DENSITY * room;
    mass = mass > 1e-6f ? mass : 1e-6f;
    return density > mass ? density : mass;
}

/* Mass of a face in the solve. Between two full cells it is that of the room: with the real mass the noise of the
 * density is buoyancy, and liquid at rest stirs. At most 1.7 times the real mass in open space, 2 times if light. */
SK_KERNEL float sk_uic_solved_mass(float room, float mass, int full)
{
    float even = (UIC_UNEVEN - (room - mass)) * (1.0f / (UIC_UNEVEN - UIC_EVEN));
    even = even > 1.0f ? 1.0f : even < 0.0f ? 0.0f : even;
    const float doubled = UIC_LIGHT * room < 2.0f * mass ? UIC_LIGHT * room : 2.0f * mass;
    return full && room > 0.0f ? mass + even * (room - mass) : mass > doubled ? mass : doubled;
}

/* Mass in the solve of a face next to the surface, from the masses of the faces below, at and above it along its axis;
 * -1 where the face is not there. Above the last face that is at least half full, the level lies by a share of a cell,
 * `a`. Both faces at the level follow from it: 1/2 + a - a^2 / 2 and a^2 / 2, which is what water up to there gives
 * them. So pressure grows with the level as it should. If each had a mass of its own, even pressure in one row of cells
 * would be uneven in the other, and single particles would stir liquid at rest. */
SK_KERNEL float sk_uic_surface_mass(const float room[3], const float mass[3], int full_low, int full_high)
{
    if (room[0] < UIC_OPEN || room[1] < UIC_OPEN || room[2] < UIC_OPEN)
        return -1.0f;
    const float low = mass[0] / room[0], own = mass[1] / room[1], high = mass[2] / room[2];
    const int is_last = own >= 0.5f;
    if ((low >= 0.5f) == (high >= 0.5f) || !(is_last ? full_low && full_high : full_low || full_high))
        return -1.0f;
    const float last = is_last ? own : low >= 0.5f ? low : high, next = is_last ? (low >= 0.5f ? high : low) : own;
    const float a = sk_uic_height(last, next);
    const float part = is_last ? 0.5f + a - 0.5f * a * a : 0.5f * a * a;
    return room[1] * (part > UIC_LEAST_FLOWING_DENSITY ? part : UIC_LEAST_FLOWING_DENSITY);
}

/* Coefficient of a face: the flow through its room that a unit of pressure drives. */
SK_KERNEL float sk_uic_coefficient(float room, float solved_mass)
{
    return room * room / solved_mass;
}

/* Change of a face's velocity by an impulse. The solve takes `solved` for its mass. Momentum is kept with the real one,
 * as long as that is at least half of it. A change of at most `gain`, that of gravity in the step, stays as solved:
 * liquid at rest is in balance then, and only gravity acts on the room instead of the mass. */
SK_KERNEL float sk_uic_flow_change(float impulse, float mass, float solved, float gain)
{
    const float change = impulse / solved, held = change > gain ? gain : change < -gain ? -gain : change;
    return held + (impulse - held * solved) / (mass > 0.5f * solved ? mass : 0.5f * solved);
}

/* --- surface tension --- */

/* Pressure of surface tension on a face at the border of the full cells, towards the upper side: the pressure outside
 * is that of the curved surface in place of 0. `low` and `high` are the pressures in the cells below and above the
 * face, 0 if unknown. */
SK_KERNEL float sk_uic_capillary(int full_low, int full_high, float low, float high)
{
    const float known = low == 0.0f ? high : high == 0.0f ? low : 0.5f * (low + high);
    return full_low == full_high ? 0.0f : full_high ? known : -known;
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
