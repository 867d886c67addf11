/* What both forms of the phase `neighbours` have in common: constants, walls, and what is kept of a particle and of a
 * block. For files compiled per dimension. */
#ifndef SK_METHODS_SPH_LIST_PARTS_H
#define SK_METHODS_SPH_LIST_PARTS_H

#include <math.h>
#include <string.h>

#include "methods/sph/near_walls.h"
#include "methods/sph/sph_list_kernels.h"
#include "methods/sph/sph_pair_kernels.h"

enum { MOST_IN_CELL = 2048 }; /* a cell with more holds hundreds of times what it should */

typedef struct list_frame {
    sk_step *step;
    sk_sph *sph;
    sk_sph_list_constants constants;
    sk_sph_point_constants points;
} list_frame;

static list_frame make_list_frame(sk_step *step)
{
    sk_sph *sph = step->sph;
    const int wendland = step->scene->sph.kernel == SELKIE_SPH_WENDLAND;
    const double reach = sph->point.reach,
                 factor = sk_sph_kernel_factor(wendland, SELKIE_DIM, sph->support) * sph->volume * sph->kernel_scale;
    return (list_frame){.step = step,
                        .sph = sph,
                        .constants = {.reach2 = (float)(sph->support * sph->support),
                                      .inverse_support = (float)(1.0 / sph->support),
                                      .weight = (float)factor,
                                      .slope = (float)(factor * sph->spacing / (sph->support * sph->support)),
                                      .wendland = wendland},
                        .points = {.reach2 = (float)(reach * reach),
                                   .inverse_reach = (float)(1.0 / reach),
                                   .weight = (float)(sph->point.weight / sph->volume),
                                   .steepness = (float)(sph->spacing / reach),
                                   .inverse_spacing = (float)(1.0 / sph->spacing)}};
}

/* How many particles a block's tile may hold, at most over all blocks; 0 if a cell is hopelessly full. Counts the cells
 * that hold any on the way. */
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

/* Room in the arrays, and what the step reports of a world without particles. */
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

/* The walls' share is added to what the neighbours gave particle i (`squares`: of their gradients), and the particle's
 * values are stored. */
static inline void finish_particle(const list_frame *frame, const near_walls *walls, uint32_t i, sk_sph_sums *sums,
                                   float squares, sk_sph_list_sums *block)
{
    sk_sph *sph = frame->sph;
    const sk_particle *own = &frame->step->particles.records[i];
    for (int r = 0; r < walls->range_count; r++)
        for (uint32_t b = walls->ranges[r].from; b < walls->ranges[r].to; b++) {
            const sk_boundary_particle *wall = &sph->boundary.particles[b];
            SK_DIM(sk_sph_add_point)
            (&frame->points, own->position, wall->position, wall->velocity, wall->volume, sums);
        }
    if (walls->side_count) {
        float gradient[6];
        sums->density += sk_sph_add_sides(sph, walls->side_count, walls->sides, own->position, gradient);
        for (int s = 0; s < walls->side_count; s++)
            sums->gradient[walls->sides[s]->axis] += gradient[s];
    }
    float diagonal = squares;
    const float density = sums->density;
    for (int d = 0; d < SELKIE_DIM; d++) {
        sph->sum_gradient[i][d] = sums->gradient[d];
        diagonal += sums->gradient[d] * sums->gradient[d];
    }
    sph->density[i] = density;
    sph->diagonal[i] = diagonal;
    sph->wall_flux[i] = sums->wall_flux;
    /* A boundary particle of a liquid boundary has no density of its own to keep. */
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
