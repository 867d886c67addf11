/* The neighbour lists, one entry at a time, for the plain phases. For files compiled per dimension.
 *
 * Entries point into the tile of their block; a table gives the particle's number in the store. Plain phases read the
 * lists of either form of the phase `neighbours`.
 */
#ifndef SK_METHODS_SPH_PLAIN_LISTS_H
#define SK_METHODS_SPH_PLAIN_LISTS_H

#include "methods/sph/sph_list_kernels.h"
#include "methods/sph/sph_tile.h"

/* A block's particles, and the number in the store of each particle of its tile. */
typedef struct plain_block {
    const sk_sph *sph;
    int wide;
    uint32_t from, to;
    const uint32_t *numbers;
    sk_cell_index index;
} plain_block;

enum { PLAIN_ARRAYS = 1 };

static inline selkie_code reserve_plain(sk_step *step, void **scratch, selkie_error *error)
{
    return sk_step_scratch(step, worker_bytes(step->sph, PLAIN_ARRAYS) * (size_t)step->threads, "sph, plain", scratch,
                           error);
}

static inline plain_block open_block(const sk_step *step, void *scratch, int thread, int block)
{
    tile_worker *worker = worker_of(step->sph, scratch, thread, PLAIN_ARRAYS);
    uint32_t *numbers = (uint32_t *)(void *)worker->array[0];
    make_tile(&step->grid, block, &worker->tile);
    for (int r = 0; r < worker->tile.run_count; r++) {
        const sk_particle_run *run = &worker->tile.runs[r];
        for (uint32_t p = run->from; p < run->to; p++)
            numbers[run->at + (p - run->from)] = p;
    }
    return (plain_block){.sph = step->sph,
                         .wide = step->sph->block_wide[block],
                         .from = block_begin(&step->grid, block),
                         .to = block_end(&step->grid, block),
                         .numbers = numbers,
                         .index = sk_grid_cell_index(&step->grid)};
}

/* The list of one particle. */
typedef struct plain_list {
    const plain_block *block;
    char *entries;
    uint32_t count;
} plain_list;

static inline plain_list plain_list_of(const plain_block *block, uint32_t i)
{
    const sk_sph *sph = block->sph;
    return (plain_list){block, sph->lists + (size_t)sph->first[i] * SK_SPH_LINE_BYTES, sph->number[i]};
}

/* Neighbour k, with its gradient. */
SK_KERNEL uint32_t neighbour_at(const plain_list *list, uint32_t k, float gradient[3])
{
    return list->block->numbers[sk_sph_read_entry(list->entries, list->block->wide, k, gradient)];
}

/* Replaces the gradient of neighbour k, and rounds it to the stored value. */
SK_KERNEL void set_gradient(const plain_list *list, uint32_t k, float gradient[3])
{
    float before[3];
    const uint32_t index = sk_sph_read_entry(list->entries, list->block->wide, k, before);
    sk_sph_write_entry(list->entries, list->block->wide, k, gradient, index);
}

#endif
