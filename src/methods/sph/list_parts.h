/* Parts shared by both forms of the phase `neighbours`: constants, walls, and the sums of a particle and of a block.
 * For files compiled per dimension. */
#ifndef SK_METHODS_SPH_LIST_PARTS_H
#define SK_METHODS_SPH_LIST_PARTS_H

#include <math.h>
#include <string.h>

#include "methods/sph/list_frame.h"
#include "methods/sph/sph_list_kernels.h"

enum { MOST_IN_CELL = 2048 }; /* hundreds of times the number at rest */

/* The largest number of particles in a block's tile; 0 if a cell is hopelessly full. Also counts the occupied cells. */
static uint32_t largest_tile(const sk_grid *grid, int64_t *occupied)
{
    uint32_t largest = 0;
    *occupied = 0;
    for (int b = 1; b <= grid->particle_blocks; b++) {
        const uint32_t *start = grid->cell_start + (size_t)(b - 1) * SK_BLOCK_CELLS;
        uint32_t total = 0;
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            if (start[c + 1] - start[c] > MOST_IN_CELL)
                return 0;
            *occupied += start[c + 1] > start[c];
        }
        for (int n = 0; n < SK_NEIGHBOURS; n++) {
            int slot = grid->neighbours[b][n];
            if (slot >= 1 && slot <= grid->particle_blocks) {
                const uint32_t *other = grid->cell_start + (size_t)(slot - 1) * SK_BLOCK_CELLS;
                total += other[SK_BLOCK_CELLS] - other[0];
            }
        }
        largest = total > largest ? total : largest;
    }
    return largest + 16;
}

/* Reserves the arrays, and reports the values of a world without particles. */
static selkie_code begin_lists(sk_step *step, selkie_error *error)
{
    sk_sph *sph = step->sph;
    SK_TRY(sk_sph_reserve(step, error));
    memset(&sph->report, 0, sizeof sph->report);
    step->exchanged = step->emitted - step->drained;
    step->kernel_volume = step->counted_volume = step->surface_volume = 0.0;
    step->occupied_cells = 0;
    if (!step->particles.count)
        return SELKIE_OK;
    sph->tile_room = (largest_tile(&step->grid, &step->occupied_cells) + 31) & ~(size_t)15;
    if (sph->tile_room < 32)
        return sk_fail(
            error, SELKIE_ERROR_DIVERGED,
            "step %lld at %g s: a cell holds more than %d particles; SPH cannot work with that: the simulation blew "
            "up, or liquids overlap; try a smaller time.step or time.cfl",
            (long long)step->step_count + 1, step->time, MOST_IN_CELL);
    return SELKIE_OK;
}

/* Adds the walls' share to the neighbour sums of particle i and stores its values. `squares`: sum of the squared
 * gradients. */
static inline void finish_particle(const list_frame *frame, const near_walls *walls, uint32_t i, sk_sph_sums *sums,
                                   float squares, sk_sph_list_sums *block)
{
    sk_sph *sph = frame->sph;
    const sk_particle *own = &frame->step->particles.records[i];

    /* The walls' share: boundary particles, then the flat sides of the domain. */
    for (int r = 0; r < walls->range_count; r++)
        for (uint32_t b = walls->ranges[r].from; b < walls->ranges[r].to; b++) {
            const sk_boundary_particle *wall = &sph->boundary.particles[b];
            SK_DIM(sk_sph_add_point)
            (&frame->points, own->position, wall->position, wall->velocity, wall->volume, sums);
        }
    if (walls->side_count) {
        float gradient[6];
        sums->density += sk_sph_add_sides(sph, walls->side_count, walls->sides, own->position, gradient);
        for (int s = 0; s < walls->side_count; s++) {
            const sk_sph_side *side = walls->sides[s];
            sums->gradient[side->axis] += gradient[s];
            /* The sheet lies half a spacing behind the wall. */
            const float beyond = side->sheet + 0.5f * side->inward * (float)sph->spacing - own->position[side->axis];
            sums->moment[SK_SPH_XX + side->axis] += gradient[s] * beyond * frame->points.inverse_spacing;
        }
    }

    /* The gradient correction, and the diagonal of the pressure system. */
    float diagonal = squares, column[3][3];
    const float density = sums->density;
    SK_DIM(sk_sph_make_correction)(sums->moment, density, column);
    for (int c = 0; c < 3; c++)
        memcpy(sph->correction[c][i], column[c], sizeof column[c]); /* the fourth stays 0 */
    for (int d = 0; d < SELKIE_DIM; d++) {
        sph->sum_gradient[i][d] = sums->gradient[d];
        diagonal += sums->gradient[d] * sums->gradient[d];
    }
    sph->density[i] = density;
    sph->diagonal[i] = diagonal;
    sph->wall_flux[i] = sums->wall_flux;

    /* A boundary particle of a liquid boundary has no density equation. */
    if (own->flags & SK_PARTICLE_BOUNDARY) {
        block->boundaries += 1.0;
    } else {
        block->compression += density > 1.0f ? (double)density - 1.0 : 0.0;
        block->compression_max = fmax(block->compression_max, (double)density - 1.0);
    }
    block->volume += density < 1.0f ? 1.0 : 1.0 / density;
}

static sk_sph_list_sums add_list_sums(const sk_sph *sph, int blocks)
{
    sk_sph_list_sums total = {0};
    for (int b = 1; b <= blocks; b++) {
        const sk_sph_list_sums *block = &sph->block_sums[b].lists;
        total.pairs += block->pairs;
        total.lines += block->lines;
        total.compression += block->compression;
        total.compression_max = fmax(total.compression_max, block->compression_max);
        total.volume += block->volume;
        total.boundaries += block->boundaries;
    }
    return total;
}

static void report_lists(sk_step *step, const sk_sph_list_sums *total)
{
    sk_sph_report *report = &step->sph->report;
    report->pairs = (int64_t)total->pairs;
    report->list_bytes = (int64_t)total->lines * SK_SPH_LINE_BYTES;
    report->boundaries = (int64_t)total->boundaries;
    report->compression = total->compression / fmax((double)(step->particles.count - report->boundaries), 1.0);
    report->compression_max = total->compression_max;
    step->kernel_volume = step->counted_volume = step->surface_volume = total->volume / step->particles_per_cell;
}

#endif
