/* Parts shared by both forms of the phase `neighbours`: constants, walls, and the sums of a particle and of a block.
 * For files compiled per dimension. */
#ifndef SK_METHODS_SPH_LIST_PARTS_H
#define SK_METHODS_SPH_LIST_PARTS_H

#include <math.h>
#include <string.h>

#include "methods/sph/lists_plain.h"
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
