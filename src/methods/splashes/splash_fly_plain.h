/* Droplets in the air and on their way there, for the CPU and the GPU.
 *
 * The includer defines SK_SPLASH_FUNCTION, how the functions are declared; SK_SPLASH_WORLD, what they need beside the
 * droplet; SK_SPLASH_STEP(world), the step;
 * SK_SPLASH_STOP(world, from, to, velocity) as sk_splash_stop; SK_SPLASH_FIND(world, cell, local), the slot of a cell's
 * block (0 = none) and its index there; SK_SPLASH_IN_SOLID(world, position) as sk_splash_in_solid; and
 * SK_SPLASH_WRAP(world, position) as sk_grid_wrap. */
#ifndef SK_METHODS_SPLASHES_SPLASH_FLY_PLAIN_H
#define SK_METHODS_SPLASHES_SPLASH_FLY_PLAIN_H

#include <math.h>
#include <string.h>

#include "methods/splashes/splashes.h"

SK_SPLASH_FUNCTION int splash_in_domain(const sk_grid *grid, const float position[3])
{
    int inside = 1;
    for (int d = 0; d < grid->dimension; d++)
        inside &=
            (grid->periodic >> d & 1) || ((double)position[d] > grid->low[d] && (double)position[d] < grid->high[d]);
    return inside;
}

/* Is a place in the domain, and not in liquid? */
SK_SPLASH_FUNCTION int splash_in_air(SK_SPLASH_WORLD world, const float position[3])
{
    const sk_grid *grid = &SK_SPLASH_STEP(world)->grid;
    int cell[3] = {0, 0, 0};
    size_t local = 0;
    if (!splash_in_domain(grid, position))
        return 0;
    for (int d = 0; d < grid->dimension; d++)
        cell[d] = (int)floor(((double)position[d] - grid->corner[d]) / grid->cell_size);
    const int slot = SK_SPLASH_FIND(world, cell, &local);
    return !slot || (grid->kinds[(size_t)slot * (size_t)grid->block_cells + local] & SK_CELL_KIND_MASK) == SK_CELL_AIR;
}

/* Would a droplet be in the air at the end of the model's duration (s)? */
SK_SPLASH_FUNCTION int splash_stays_in_air(SK_SPLASH_WORLD world, float duration, const sk_particle *from,
                                           const float velocity[3])
{
    const sk_step *step = SK_SPLASH_STEP(world);
    float position[3];
    for (int d = 0; d < 3; d++)
        position[d] = from->position[d] + duration * (velocity[d] + 0.5f * duration * (float)step->scene->gravity[d]);
    SK_SPLASH_WRAP(world, position);
    return splash_in_air(world, position) && !SK_SPLASH_IN_SOLID(world, position);
}

/* Moves one of a pair, on the side `sign`. Does it fly on? */
SK_SPLASH_FUNCTION int splash_piece_flies(SK_SPLASH_WORLD world, const sk_splash_flight *flight,
                                          const sk_particle *droplet, const float from[3], const float before[3],
                                          const sk_splash_pair *pair, float sign, float age)
{
    float begin[3], end[3];
    for (int d = 0; d < 3; d++) {
        begin[d] = from[d] + sign * before[d];
        end[d] = begin[d] + flight->dt * (droplet->velocity[d] + sign * pair->velocity[d]);
    }
    if (SK_SPLASH_STOP(world, begin, end, NULL))
        return 0;
    SK_SPLASH_WRAP(world, end);
    return splash_in_domain(&SK_SPLASH_STEP(world)->grid, end) && (age < flight->duration || splash_in_air(world, end));
}

/* The pair moves with its droplet, and apart by its own velocity. The air slows that velocity by the mean of both
 * squared speeds, the same for both, so that the droplet stays in the middle. A pair ends when one of it does. */
SK_SPLASH_FUNCTION void splash_fly_pairs(SK_SPLASH_WORLD world, const sk_splash_flight *flight,
                                         const sk_particle *droplet, const float from[3], float age)
{
    const float dt = flight->dt;
    for (size_t n = sk_splash_first_pair(flight->pairs, flight->pair_count, droplet->id);
         n < flight->pair_count && flight->pairs[n].particle == droplet->id; n++) {
        sk_splash_pair *pair = &flight->pairs[n];
        float before[3], square = 0.0f;
        memcpy(before, pair->offset, sizeof before);
        for (int d = 0; d < 3; d++)
            square += droplet->velocity[d] * droplet->velocity[d] + pair->velocity[d] * pair->velocity[d];
        for (int d = 0; d < 3; d++) {
            pair->velocity[d] /= 1.0f + flight->piece_drag * __builtin_sqrtf(square) * dt;
            pair->offset[d] += dt * pair->velocity[d];
        }
        pair->flies = (uint32_t)(splash_piece_flies(world, flight, droplet, from, before, pair, 1.0f, age) &&
                                 splash_piece_flies(world, flight, droplet, from, before, pair, -1.0f, age));
    }
}

/* Moves a droplet. Returns 0 if it comes back to the liquid: at a solid, at the end of the domain, or in liquid once it
 * is as old as the model's duration. */
SK_SPLASH_FUNCTION int splash_fly(SK_SPLASH_WORLD world, const sk_splash_flight *flight, sk_particle *droplet,
                                  float *age)
{
    const sk_step *step = SK_SPLASH_STEP(world);
    float position[3];
    sk_splash_accelerate(droplet->velocity, flight->gain, flight->drag, flight->dt);
    for (int d = 0; d < 3; d++)
        position[d] = droplet->position[d] + (d < step->dimension ? flight->dt * droplet->velocity[d] : 0.0f);
    *age += flight->dt;
    const int stopped = SK_SPLASH_STOP(world, droplet->position, position, droplet->velocity);
    SK_SPLASH_WRAP(world, position);
    if (!splash_in_domain(&step->grid, position))
        return 0;
    memcpy(droplet->position, position, sizeof position);
    return !stopped && (*age < flight->duration || splash_in_air(world, position));
}

/* A droplet and the pairs around it. Its age becomes 0 where it comes back. Returns whether it flies on. */
SK_SPLASH_FUNCTION int splash_fly_all(SK_SPLASH_WORLD world, const sk_splash_flight *flight, sk_particle *droplet,
                                      float *age)
{
    float from[3];
    memcpy(from, droplet->position, sizeof from);
    const int flies = splash_fly(world, flight, droplet, age);
    if (flies)
        splash_fly_pairs(world, flight, droplet, from, *age);
    else
        *age = 0.0f;
    return flies;
}

#endif
