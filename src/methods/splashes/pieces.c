/* Droplets below a particle's size: pairs around the droplets of a run, and what stops them and droplets. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "grid/sweep.h"
#include "methods/splashes/splash_step_kernels.h"
#include "methods/splashes/splashes.h"

/* --- What stops a droplet --- */

int sk_splash_stop(const sk_step *step, const float from[3], float to[3], float velocity[3])
{
    const sk_solids *solids = &step->solids;
    sk_touch touch = {.obstacle = -1};
    if (!solids->obstacle_count)
        return 0;

    /* Obstacles lie in the domain; a path may begin beyond a joined side. */
    sk_swept_path path = {.begin = 0.0, .end = 1.0, .deepest = INFINITY};
    sk_solids_bounds(solids, &step->grid, path.low, path.high);
    float away[3];
    memcpy(path.from, from, sizeof path.from);
    sk_grid_wrap(&step->grid, path.from);
    for (int d = 0; d < 3; d++) {
        away[d] = from[d] - path.from[d];
        path.to[d] = to[d] - away[d];
    }
    if (!sk_sweep(solids, &path, &touch))
        return 0;
    for (int d = 0; d < step->dimension; d++)
        to[d] = path.to[d] + away[d];
    if (velocity)
        sk_sweep_stop(solids, &touch, path.to, velocity);
    return 1;
}

/* Blocks far from the liquid have no cells that could tell. */
int sk_splash_in_solid(const sk_step *step, const float position[3])
{
    const double x[3] = {position[0], position[1], position[2]};
    double normal[3];
    int obstacle;
    return step->solids.obstacle_count && sk_solids_distance(&step->solids, x, normal, &obstacle) < 0.0;
}

/* --- Pairs --- */

/* Velocities relative to the droplet have the spread of the changes of velocity in training. */
selkie_code sk_splash_add_pairs(const sk_step *step, sk_splashes *s, uint32_t particle, selkie_error *error)
{
    static const float no_outputs[6]; /* mean 0, scale 1: the spread of all changes */
    const int pairs = step->scene->splash.pairs, up = step->up_axis, across = up == 0 ? 1 : 0;
    const int axes[3] = {across, up, 3 - across - up};                      /* of the model, in the scene */
    const uint64_t draw = 0x9a1e0000u + 1536u * (uint64_t)step->step_count; /* 3 for each of at most 500 pairs */
    SK_TRY(sk_reserve(step->memory, (void **)&s->pairs, &s->pair_capacity, s->pair_count + (size_t)pairs,
                      sizeof *s->pairs, "splashes", error));
    for (int n = 0; n < pairs; n++) {
        sk_splash_pair *pair = &s->pairs[s->pair_count++];
        float random[3], change[3];
        for (int k = 0; k < 3; k++)
            random[k] = sk_random_float(step->scene->seed, particle, draw + 3u * (uint64_t)n + (uint64_t)k);
        sk_splash_change(&s->model, no_outputs, random, change);
        *pair = (sk_splash_pair){.particle = particle, .id = SK_SPLASH_PIECES | (uint32_t)s->counts.pieces};
        for (int k = 0; k < step->dimension; k++)
            pair->velocity[axes[k]] = change[k] * s->speed;
        s->counts.pieces += 2;
    }
    return SELKIE_OK;
}

static int compare_pairs(const void *a, const void *b)
{
    const sk_splash_pair *x = a, *y = b;
    return x->particle != y->particle ? (x->particle > y->particle) - (x->particle < y->particle)
                                      : (x->id > y->id) - (x->id < y->id);
}

void sk_splash_sort_pairs(sk_splashes *s)
{
    if (s->pair_count)
        qsort(s->pairs, s->pair_count, sizeof *s->pairs, compare_pairs);
}

void sk_splash_end_pairs(sk_splashes *s)
{
    size_t kept = 0;
    for (size_t n = 0; n < s->pair_count; n++)
        if (s->pairs[n].flies) {
            s->pairs[kept] = s->pairs[n];
            s->pairs[kept++].flies = 0;
        }
    s->pair_count = kept;
}

size_t sk_splash_list_pieces(const sk_step *step, sk_splash_piece *pieces)
{
    const sk_splashes *s = sk_step_state(step, &sk_method_splashes);
    const float *ages = (float *)(void *)sk_particles_find_attribute(&step->particles, SK_SPLASH_AGE)->data;
    size_t count = 0;
    for (int64_t p = 0; p < step->particles.count && s->pair_count; p++) {
        const sk_particle *droplet = &step->particles.records[p];
        if (!(ages[p] > 0.0f))
            continue;
        for (size_t n = sk_splash_first_pair(s->pairs, s->pair_count, droplet->id);
             n < s->pair_count && s->pairs[n].particle == droplet->id; n++)
            for (int second = 0; second < 2; second++) {
                const float sign = second ? -1.0f : 1.0f;
                sk_splash_piece *piece = &pieces[count++];
                *piece =
                    (sk_splash_piece){.age = ages[p], .id = s->pairs[n].id + (uint32_t)second, .particle = droplet->id};
                for (int d = 0; d < 3; d++) {
                    piece->position[d] = droplet->position[d] + sign * s->pairs[n].offset[d];
                    piece->velocity[d] = droplet->velocity[d] + sign * s->pairs[n].velocity[d];
                }
                sk_grid_wrap(&step->grid, piece->position);
            }
    }
    return count;
}
