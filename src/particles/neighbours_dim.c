#include "particles/neighbours.h"

#include <omp.h>
#include <string.h>

#include "particles/neighbour_kernels.h"

int SK_DIM(sk_cells_around)(const sk_cell_index *index, const int cell[3], int reach, sk_cell_range *ranges)
{
    return SK_DIM(sk_ranges_around)(index, cell, reach, ranges);
}

uint32_t SK_DIM(sk_neighbours_within)(const sk_neighbour_search *search, const sk_neighbour_place *place,
                                      uint32_t *found)
{
    uint32_t count = 0;
    const uint32_t skipped = search->group ? place->rank / search->group * search->group : 0;
    for (int r = 0; r < place->range_count; r++) {
        uint32_t from = place->ranges[r].from, to = place->ranges[r].to;
        if (skipped >= to - from)
            continue;
        from += skipped;
        to = search->group && to - from > search->group ? from + search->group : to;
        for (uint32_t j = from; j < to; j++) {
            float difference[3];
            if (j == place->self ||
                !(SK_DIM(sk_image_difference)(search->index, place->position, search->records[j].position, difference) <
                  search->radius2))
                continue;
            if (found)
                found[count] = j;
            count++;
        }
    }
    return count;
}

/* The lists of a block's particles: writes their lengths into first[i + 1], or their content. */
static void lists_of_block(const sk_neighbour_lists *lists, const sk_neighbour_search *search, int block,
                           sk_cell_range *ranges, int write)
{
    const sk_cell_index *index = search->index;
    const uint32_t *start = index->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        if (start[c] == start[c + 1])
            continue;
        int cell[3] = {0, 0, 0};
        for (int d = 0; d < SELKIE_DIM; d++)
            cell[d] = index->coordinates[block][d] * SK_BLOCK_N + (c >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK);
        sk_neighbour_place place = {.ranges = ranges};
        place.range_count = SK_DIM(sk_cells_around)(index, cell, search->reach, ranges);
        for (uint32_t i = start[c]; i < start[c + 1]; i++) {
            place.position = search->records[i].position;
            place.self = i;
            place.rank = i - start[c];
            if (write)
                SK_DIM(sk_neighbours_within)(search, &place, lists->neighbours + lists->first[i]);
            else
                lists->first[i + 1] = SK_DIM(sk_neighbours_within)(search, &place, NULL);
        }
    }
}

selkie_code SK_DIM(sk_neighbour_lists_build)(sk_neighbour_lists *lists, const sk_neighbour_search *search, int threads,
                                             selkie_error *error)
{
    const sk_cell_index *index = search->index;
    const size_t count = index->cell_start[(size_t)index->block_count * SK_BLOCK_CELLS];
    size_t width = 2 * (size_t)search->reach + 1, cells = width * width * (SELKIE_DIM == 3 ? width : 1);
    SK_TRY(sk_reserve(lists->memory, (void **)&lists->first, &lists->first_capacity, count + 1, sizeof *lists->first,
                      "lists of neighbours", error));
    sk_cell_range *ranges = sk_allocate(lists->memory, cells * (size_t)threads * sizeof *ranges);
    if (!ranges)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "lists of neighbours: no memory for %zu cells", cells);

    /* The first pass counts, the second writes. */
    selkie_code code = SELKIE_OK;
    lists->first[0] = 0;
    for (int pass = 0; pass < 2 && code == SELKIE_OK; pass++) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
        for (int block = 1; block <= index->block_count; block++)
            lists_of_block(lists, search, block, ranges + cells * (size_t)omp_get_thread_num(), pass);
        for (size_t i = 0; pass == 0 && i < count; i++)
            lists->first[i + 1] += lists->first[i];
        if (pass == 0)
            code = sk_reserve(lists->memory, (void **)&lists->neighbours, &lists->neighbour_capacity,
                              (size_t)lists->first[count] + 1, sizeof *lists->neighbours, "lists of neighbours", error);
    }
    sk_release(lists->memory, ranges);
    return code;
}

#if SELKIE_DIM == 3 /* the same in both dimensions: compiled once */
void sk_neighbour_lists_free(sk_neighbour_lists *lists)
{
    sk_release(lists->memory, lists->first);
    sk_release(lists->memory, lists->neighbours);
    memset(lists, 0, sizeof *lists);
}
#endif
