/* Faces in the air beside the surface, one at a time: see shore_dim.c. For files compiled per dimension. */
#ifndef SK_METHODS_FLIP_SHORE_PLAIN_H
#define SK_METHODS_FLIP_SHORE_PLAIN_H

#include "methods/flip/reflection.h"
#include "methods/liquid_plain.h"

/* Is the lower face of a cell across axis d in the air beside the surface? See shore_dim.c. */
SK_KERNEL int is_shore_face(const sk_grid *grid, sk_plain_cell cell, int d)
{
    int air[2], liquid[2], liquid_beside[2] = {0, 0};
    for (int n = 0; n < 2; n++) {
        const sk_plain_cell own = n ? sk_plain_next(grid, cell, d, -1) : cell;
        const int kind = grid->kinds[sk_plain_index(own)] & SK_CELL_KIND_MASK;
        air[n] = kind == SK_CELL_AIR;
        liquid[n] = kind == SK_CELL_LIQUID;
        if (liquid[n])
            return 0;
        for (int side = 0; side < 2 * SELKIE_DIM; side++)
            liquid_beside[n] |= liquid_cell_at(grid, sk_plain_next(grid, own, side / 2, side % 2 ? 1 : -1)).liquid;
    }
    return sk_liquid_is_shore(air, liquid, liquid_beside);
}

/* Means over the faces of a component beside a shore face on which pressure acts, m/s. */
typedef struct shore_means {
    float change;        /* by pressure and surface tension */
    float velocity, end; /* in the middle and at the end of a reflected step */
} shore_means;

SK_KERNEL shore_means shore_means_of(const sk_step *step, sk_plain_cell cell, int d)
{
    const sk_grid *grid = &step->grid;
    shore_means sum = {0.0f, 0.0f, 0.0f};
    int count = 0;
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const sk_plain_cell other = sk_plain_next(grid, cell, side / 2, side % 2 ? 1 : -1);
        const size_t at = sk_plain_index(other);
        int beside_liquid;
        if (!other.slot || !(open_fraction_at(step, other, d) > 0.0f))
            continue;
        const float descent = lightness_at(step, other, d) * gather_descent(step, other, d, &beside_liquid);
        const float push = step->tension_push ? grid->fields[step->tension_push + d][at] : 0.0f;
        sum.change += beside_liquid ? descent + push : 0.0f;
        sum.velocity += beside_liquid ? grid->fields[SK_FIELD_VELOCITY_X + d][at] : 0.0f;
        sum.end += beside_liquid ? grid->fields[step->end_velocity + d][at] : 0.0f;
        count += beside_liquid;
    }
    const float share = count ? 1.0f / (float)count : 0.0f;
    return (shore_means){share * sum.change, share * sum.velocity, share * sum.end};
}

/* The part of the weight with which the liquid holds what it carries. Larger parts bring a pool no nearer to rest. */
#define SK_SHORE_GRIP 0.1f

/* The change (m/s) that brings a shore face nearer to the liquid's velocity, at most `most`. */
SK_KERNEL float sk_shore_hold(float velocity, float liquid, float most)
{
    const float way = liquid - velocity;
    return way > most ? most : way < -most ? -most : way;
}

/* Moves a shore face by the change of the liquid, if it is open. No face reads what another one writes.
 *
 * Pressure carries the weight of the shore's particles but not their motion: without friction they would drift through
 * their cell without weight, into the liquid, from where the density correction lifts them, or away from it, and fall
 * from there. Both raise energy for ever. So the liquid holds them, by a part of the weight that it carries at this
 * face. Nothing is held in free fall and without gravity. */
SK_KERNEL void move_shore_face(const sk_step *step, sk_plain_cell cell, int d)
{
    if (!(open_fraction_at(step, cell, d) > 0.0f))
        return;
    const shore_means liquid = shore_means_of(step, cell, d);
    const float whole = 1.0f + (float)step->reflection; /* of the step: reflection_kernels.h */
    const float weight = (float)(__builtin_fabs(step->scene->gravity[d]) * sk_step_kick(step));
    const float carried = __builtin_fabsf(liquid.change);
    const float most = SK_SHORE_GRIP * (carried < weight ? carried : weight);

    float *velocity = step->grid.fields[SK_FIELD_VELOCITY_X + d] + sk_plain_index(cell);
    float *change = step->grid.fields[SK_FIELD_CHANGE_X + d] + sk_plain_index(cell);
    float *end = step->grid.fields[step->end_velocity + d] + sk_plain_index(cell);
    const float later = *end + whole * liquid.change;
    const float held = sk_shore_hold(later, liquid.end, whole * most);
    *change += whole * liquid.change + held;
    *velocity += liquid.change;
    *velocity += sk_shore_hold(*velocity, liquid.velocity, most);
    if (flip_has_end(step))
        *end = later + held;
}

/* Does the block have unknown faces, and known ones near them? */
SK_KERNEL int has_unknown_near_known(const sk_grid *grid, int block)
{
    int near = 0;
    for (int n = 0; n < SK_NEIGHBOURS; n++)
        near |= grid->block_flags[grid->neighbours[block][n]] & SK_BLOCK_KNOWN;
    return near && grid->block_flags[block] & SK_BLOCK_UNKNOWN;
}

#endif
