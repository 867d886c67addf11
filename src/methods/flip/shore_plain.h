/* Faces in the air beside the surface, one at a time: see shore_dim.c. For files compiled per dimension. */
#ifndef SK_METHODS_FLIP_SHORE_PLAIN_H
#define SK_METHODS_FLIP_SHORE_PLAIN_H

#include "methods/flip/reflection.h"
#include "methods/flip/sliver_plain.h"
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

/* Does the lower face of a cell across axis d change like the liquid beside it? */
SK_KERNEL int follows_shore(const sk_step *step, sk_plain_cell cell, int d)
{
    return keeps_velocity(step, cell, d) || is_shore_face(&step->grid, cell, d);
}

/* The change of the lower face of a cell across axis d by pressure and surface tension, m/s; NaN where none acts. */
SK_KERNEL float shore_push_at(const sk_step *step, sk_plain_cell cell, int d)
{
    int beside_liquid;
    if (!cell.slot || !(open_fraction_at(step, cell, d) > 0.0f))
        return __builtin_nanf("");
    const float descent = lightness_at(step, cell, d) * gather_descent(step, cell, d, &beside_liquid);
    const float push = step->tension_push ? step->grid.fields[step->tension_push + d][sk_plain_index(cell)] : 0.0f;
    return beside_liquid ? descent + push : __builtin_nanf("");
}

/* The part of the push at a liquid face that a shore face takes, by their open fractions. The push at a face that a
 * solid nearly closes may be large, since its flux is small and counts little in the solve. A wider face beside it has
 * more liquid: with the whole push it would gain an impulse that no pressure has given. */
SK_KERNEL float sk_shore_part(float liquid, float shore)
{
    return liquid < shore ? liquid / shore : 1.0f;
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
        const float push = shore_push_at(step, other, d);
        if (push != push)
            continue;
        sum.change += sk_shore_part(open_fraction_at(step, other, d), open_fraction_at(step, cell, d)) * push;
        sum.velocity += grid->fields[SK_FIELD_VELOCITY_X + d][sk_plain_index(other)];
        sum.end += grid->fields[step->end_velocity + d][sk_plain_index(other)];
        count++;
    }
    const float share = count ? 1.0f / (float)count : 0.0f;
    return (shore_means){share * sum.change, share * sum.velocity, share * sum.end};
}

/* The part of the weight with which the liquid holds what it carries. 0.1 costs a dam break 0.5 % of its energy. */
#define SK_SHORE_GRIP 0.05f

/* Up to this part of sqrt(g h) a difference of velocity is held, from twice that on it is not: in a splash the shore's
 * motion is its own. */
#define SK_SHORE_SLOW 0.1f

/* m/s: that part of sqrt(g h). */
SK_KERNEL float shore_slow(const sk_step *step)
{
    const double *g = step->scene->gravity;
    const float square = (float)(__builtin_sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]) * step->grid.cell_size);
    return SK_SHORE_SLOW * __builtin_sqrtf(square) + 1e-30f; /* nothing is held without gravity */
}

/* Weight along axis e that the liquid carries at a shore face, m/s a step: at most `weight`. */
SK_KERNEL float sk_shore_carried(float push, float weight)
{
    const float length = __builtin_fabsf(push);
    return length < weight ? length : weight;
}

/* m/s: the largest change with which the liquid holds the lower face of a cell across axis d. `change` is the mean push
 * of the liquid at the face. What lies on the liquid rubs on it: the weight along another axis counts for this face as
 * far as the liquid carries the two cells beside it. */
SK_KERNEL float shore_grip(const sk_step *step, sk_plain_cell cell, int d, float change)
{
    float squares = 0.0f;
    for (int e = 0; e < SELKIE_DIM; e++) {
        const float weight = (float)(__builtin_fabs(step->scene->gravity[e]) * sk_step_kick(step));
        float push = change;
        if (weight == 0.0f)
            continue;
        if (e != d) {
            const float own = shore_push_at(step, cell, e);
            const float before = shore_push_at(step, sk_plain_next(&step->grid, cell, d, -1), e);
            push = own != own ? before : before != before ? own : 0.5f * (own + before);
            push = push != push ? 0.0f : push;
        }
        const float carried = sk_shore_carried(push, weight);
        squares += carried * carried;
    }
    return SK_SHORE_GRIP * __builtin_sqrtf(squares);
}

/* The change (m/s) that brings a shore face nearer to the liquid's velocity, at most `most`. */
SK_KERNEL float sk_shore_hold(float velocity, float liquid, float most, float slow)
{
    const float way = liquid - velocity, part = 2.0f - __builtin_fabsf(way) / slow;
    most *= part > 1.0f ? 1.0f : part > 0.0f ? part : 0.0f;
    return way > most ? most : way < -most ? -most : way;
}

/* Moves a shore face by the change of the liquid, if it is open or a sliver. No face reads what another one writes.
 *
 * Pressure carries the weight of the shore's particles but not their motion: without friction they would drift through
 * their cell without weight, into the liquid, from where the density correction lifts them, or away from it, and fall
 * from there. Both raise energy for ever. So the liquid holds them, by a part of the weight that it carries there,
 * along the surface as well. Nothing is held in free fall and without gravity, or at slivers. */
SK_KERNEL void move_shore_face(const sk_step *step, sk_plain_cell cell, int d)
{
    const float open = open_fraction_at(step, cell, d);
    const int sliver = sk_is_sliver(open);
    if (!(open > 0.0f) && !sliver)
        return;
    const shore_means liquid = shore_means_of(step, cell, d);
    const float whole = 1.0f + (float)step->reflection; /* of the step: reflection_kernels.h */
    const float most = sliver ? 0.0f : shore_grip(step, cell, d, liquid.change), slow = shore_slow(step);

    float *velocity = step->grid.fields[SK_FIELD_VELOCITY_X + d] + sk_plain_index(cell);
    float *change = step->grid.fields[SK_FIELD_CHANGE_X + d] + sk_plain_index(cell);
    float *end = step->grid.fields[step->end_velocity + d] + sk_plain_index(cell);
    const float later = *end + whole * liquid.change;
    const float held = sk_shore_hold(later, liquid.end, whole * most, slow);
    *change += whole * liquid.change + held;
    *velocity += liquid.change;
    *velocity += sk_shore_hold(*velocity, liquid.velocity, most, slow);
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
