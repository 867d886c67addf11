/* The implicit viscosity of SPH, eight neighbours at a time. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "methods/sph/sph_tile.h"
#include "methods/sph/viscosity_parts.h"

enum { POSITION = 0, VECTOR = 3, DENSITY = 6, VISCOSITY_ARRAYS = 7 };

/* (1 + c - dt nu L) applied to the direction at one particle. */
SK_VECTOR void apply_one(const viscous_system *s, const tile_worker *w, uint32_t i, const int wide, float result[3])
{
    const sk_sph *sph = s->step->sph;
    const sk_particle *own = &s->step->particles.records[i];
    const void *list = list_of(sph, i);
    f8 sum[3] = {f8_splat(0.0f), f8_splat(0.0f), f8_splat(0.0f)};
    for (uint32_t g = 0; g < group_count(sph, i); g++) {
        f8 gradient[3], r2 = f8_splat(0.0f), approach = f8_splat(0.0f);
        i8 index = group_at(list, wide, g, sph->number[i], gradient);
        for (int d = 0; d < SELKIE_DIM; d++) {
            f8 x = own->position[d] - f8_gather(w->array[POSITION + d], index);
            r2 += x * x;
            approach += x * (s->arrays.direction[d][i] - f8_gather(w->array[VECTOR + d], index));
        }
        f8 volume = 2.0f / (sph->density[i] + f8_gather(w->array[DENSITY], index));
        f8 share =
            volume * approach *
            (s->arrays.shape.near / (r2 + s->arrays.shape.softening) + s->arrays.shape.even + s->arrays.shape.far * r2);
        for (int d = 0; d < SELKIE_DIM; d++)
            sum[d] += share * gradient[d];
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        result[d] = (1.0f + s->arrays.drag[i]) * s->arrays.direction[d][i] - f8_sum(sum[d]);
}

static void apply_tuned(const viscous_system *s)
{
    sk_step *step = s->step;
    sk_sph *sph = step->sph;
    const sk_grid *grid = &step->grid;
#pragma omp parallel num_threads(step->threads)
    {
        tile_worker *w = worker_of(sph, s->scratch, omp_get_thread_num(), VISCOSITY_ARRAYS);
#pragma omp for schedule(dynamic, 1)
        for (int block = 1; block <= grid->particle_blocks; block++) {
            /* Copy the neighbours of the block into the tile. */
            make_tile(grid, block, &w->tile);
            sk_particle_tile_load_vectors(&w->tile, step->particles.records, 0, w->array + POSITION);
            for (int d = 0; d < SELKIE_DIM; d++)
                sk_particle_tile_load_floats(&w->tile, s->arrays.direction[d], w->array[VECTOR + d]);
            sk_particle_tile_load_floats(&w->tile, sph->density, w->array[DENSITY]);

            /* The product of each particle, and the block's share of direction . product. */
            double sum = 0.0;
            for (uint32_t i = block_begin(grid, block); i < block_end(grid, block); i++) {
                float result[3];
                int fixed = (step->particles.records[i].flags & SK_PARTICLE_BOUNDARY) != 0;
                if (sph->block_wide[block])
                    apply_one(s, w, i, 1, result);
                else
                    apply_one(s, w, i, 0, result);
                for (int d = 0; d < SELKIE_DIM; d++) {
                    s->arrays.product[d][i] = fixed ? 0.0f : result[d];
                    sum += (double)s->arrays.product[d][i] * s->arrays.direction[d][i];
                }
            }
            sph->block_sums[block].product = sum;
        }
    }
}

selkie_code SK_DIM(sk_sph_viscosity)(sk_step *step, selkie_error *error)
{
    viscous_system system = make_viscous_system(step);
    system.apply = apply_tuned;
    SK_TRY(sk_step_scratch(step, worker_bytes(step->sph, VISCOSITY_ARRAYS) * (size_t)step->threads, "sph viscosity",
                           &system.scratch, error));
    return solve_viscous_system(&system, error);
}
