/* Masks of runs and the runs beside them: see runs.h. For files compiled per dimension, also by nvcc. */
#ifndef SK_GRID_RUN_MASKS_H
#define SK_GRID_RUN_MASKS_H

#include <stdint.h>
#include "base/dimension.h"
#include "base/kernel.h"
#include "grid/grid.h"

#define SK_ALL_RUNS (SELKIE_DIM == 3 ? ~UINT64_C(0) : UINT64_C(0xffffffff))

/* Masks of blocks: all runs, and the runs whose first (last) cell along x lies at the block's side and counts. A
 * caller without this detail passes the same array three times. */
typedef struct sk_run_masks {
    const uint64_t *any, *first, *last;
    int end; /* blocks from here on have no runs */
} sk_run_masks;

/* Runs at the lower and at the upper side of a block along x. */
#define SK_LOWER_RUNS (SELKIE_DIM == 3 ? SK_ALL_RUNS : UINT64_C(0x55555555))
#define SK_UPPER_RUNS (SELKIE_DIM == 3 ? SK_ALL_RUNS : UINT64_C(0xaaaaaaaa))

SK_KERNEL sk_run_masks sk_whole_runs(const uint64_t *runs, int end)
{
    const sk_run_masks masks = {runs, runs, runs, end};
    return masks;
}

/* The masks of a block and of its neighbours along x, merged. */
SK_KERNEL uint64_t sk_runs_beside(const sk_run_masks *masks, const int32_t around[3])
{
    uint64_t sum = around[0] < masks->end ? masks->last[around[0]] : 0;
    sum |= around[1] < masks->end ? masks->any[around[1]] : 0;
    sum |= around[2] < masks->end ? masks->first[around[2]] : 0;
#if SELKIE_DIM == 2
    sum |= (sum & 0x55555555u) << 1 | (sum & 0xaaaaaaaau) >> 1; /* a row has two runs */
#endif
    return sum;
}

/* Runs of a block next to a run of the masks, including the run itself; possibly more, never fewer. */
SK_KERNEL uint64_t sk_runs_around(const sk_grid *grid, const sk_run_masks masks, int block)
{
    const int32_t *around = grid->neighbours[block];
#if SELKIE_DIM == 2
    uint64_t own = sk_runs_beside(&masks, around + 3);
    own |= own << 2 | own >> 2 | sk_runs_beside(&masks, around) >> 30 | sk_runs_beside(&masks, around + 6) << 30;
    return own & SK_ALL_RUNS;
#else
    uint64_t plane[3];
    for (int z = 0; z < 3; z++) {
        uint64_t own = sk_runs_beside(&masks, around + 9 * z + 3);
        plane[z] = own | (own << 1 & UINT64_C(0xfefefefefefefefe)) | (own >> 1 & UINT64_C(0x7f7f7f7f7f7f7f7f)) |
                   (sk_runs_beside(&masks, around + 9 * z) >> 7 & UINT64_C(0x0101010101010101)) |
                   (sk_runs_beside(&masks, around + 9 * z + 6) << 7 & UINT64_C(0x8080808080808080));
    }
    return plane[1] | plane[1] << 8 | plane[1] >> 8 | plane[0] >> 56 | plane[2] << 56;
#endif
}

/* The same without x: runs with a run of the masks beside them along y, z or both. */
SK_KERNEL uint64_t sk_runs_across(const sk_grid *grid, const uint64_t *runs, int block)
{
    const int32_t *around = grid->neighbours[block];
#if SELKIE_DIM == 2
    const uint64_t own = runs[block];
    return (own | own << 2 | own >> 2 | runs[around[1]] >> 30 | runs[around[7]] << 30) & SK_ALL_RUNS;
#else
    uint64_t plane[3];
    for (int z = 0; z < 3; z++) {
        const uint64_t own = runs[around[9 * z + 4]];
        plane[z] = own | (own << 1 & UINT64_C(0xfefefefefefefefe)) | (own >> 1 & UINT64_C(0x7f7f7f7f7f7f7f7f)) |
                   (runs[around[9 * z + 1]] >> 7 & UINT64_C(0x0101010101010101)) |
                   (runs[around[9 * z + 7]] << 7 & UINT64_C(0x8080808080808080));
    }
    return plane[1] | plane[1] << 8 | plane[1] >> 8 | plane[0] >> 56 | plane[2] << 56;
#endif
}

#endif
