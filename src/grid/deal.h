/* Work stealing over blocks. Each thread starts with a range of its own, about the same range in every phase of a
 * step. Data that another core has written is slow to read. A thread that finishes its range steals unstarted blocks
 * from the others, so that a busy core does not delay the step. */
#ifndef SK_GRID_DEAL_H
#define SK_GRID_DEAL_H

#include <omp.h>
#include "grid/grid.h"

enum {
    SK_DEAL_OWNERS = 64, /* threads with a range of their own; further threads only steal */
    SK_DEAL_PARTS = 2,   /* ranges of each thread: blocks with particles, and blocks around them */
    SK_DEAL_TAKEN = 2    /* blocks taken at a time */
};

typedef struct sk_stretch {
    _Alignas(64) int next; /* first number that is not taken; may run past the end */
    int end;
} sk_stretch;

typedef struct sk_deal {
    int owners, parts;
    sk_stretch stretches[SK_DEAL_PARTS * SK_DEAL_OWNERS];
} sk_deal;

static inline __attribute__((unused)) void sk_deal_begin(sk_deal *deal, int threads)
{
    deal->owners = threads < 1 ? 1 : threads < SK_DEAL_OWNERS ? threads : SK_DEAL_OWNERS;
    deal->parts = 0;
}

/* Adds one range a thread: cuts [first, end) into ranges of equal work. The numbers before n hold start[(n - first) *
 * stride] particles. A block counts as block_work particles. start = NULL: all numbers cost the same. */
static inline __attribute__((unused)) void sk_deal_add(sk_deal *deal, int first, int end, const uint32_t *start,
                                                       size_t stride)
{
    const uint64_t block_work = start ? 256 : 1;
    uint64_t work = (uint64_t)(end > first ? end - first : 0) * block_work;
    work += start && end > first ? start[(size_t)(end - first) * stride] - start[0] : 0;
    int at = first;
    for (int owner = 0; owner < deal->owners; owner++) {
        const uint64_t target = work * (uint64_t)(owner + 1) / (uint64_t)deal->owners;
        int last = end;
        for (int low = at; owner + 1 < deal->owners && low < last;) {
            const int middle = low + (last - low) / 2;
            uint64_t before = (uint64_t)(middle - first) * block_work;
            before += start ? start[(size_t)(middle - first) * stride] - start[0] : 0;
            if (before < target)
                low = middle + 1;
            else
                last = middle;
        }
        deal->stretches[deal->parts * deal->owners + owner] = (sk_stretch){at, last};
        at = last;
    }
    deal->parts++;
}

/* Slots 1 to particle_blocks. */
static inline __attribute__((unused)) void sk_deal_particle_blocks(sk_deal *deal, const sk_grid *grid, int threads)
{
    sk_deal_begin(deal, threads);
    sk_deal_add(deal, 1, grid->particle_blocks + 1, grid->cell_start, (size_t)grid->block_cells);
}

/* All slots but 0. */
static inline __attribute__((unused)) void sk_deal_blocks(sk_deal *deal, const sk_grid *grid, int threads)
{
    sk_deal_particle_blocks(deal, grid, threads);
    sk_deal_add(deal, grid->particle_blocks + 1, grid->block_count, NULL, 0);
}

/* The numbers from 0 to count - 1. */
static inline __attribute__((unused)) void sk_deal_numbers(sk_deal *deal, int count, int threads)
{
    sk_deal_begin(deal, threads);
    sk_deal_add(deal, 0, count, NULL, 0);
}

/* The numbers that a thread works on. */
typedef struct sk_hand {
    int turn; /* which range is next; the thread's own range comes first */
    int first, last;
} sk_hand;

static inline __attribute__((unused)) int sk_deal_take(sk_deal *deal, sk_hand *hand)
{
    for (; hand->turn < deal->parts * deal->owners; hand->turn++) {
        const int owner = (omp_get_thread_num() + hand->turn / deal->parts) % deal->owners;
        sk_stretch *stretch = &deal->stretches[hand->turn % deal->parts * deal->owners + owner];
        hand->first = __atomic_fetch_add(&stretch->next, SK_DEAL_TAKEN, __ATOMIC_RELAXED);
        hand->last = hand->first + SK_DEAL_TAKEN < stretch->end ? hand->first + SK_DEAL_TAKEN : stretch->end;
        if (hand->first < hand->last)
            return 1;
    }
    return 0;
}

/* Loops in a parallel region. All threads of the region share the numbers. There is no barrier at the end. */
#define SK_EACH_DEALT(number, deal)                                                                                    \
    for (sk_hand hand_##number = {0, 0, 0}; sk_deal_take(deal, &hand_##number);)                                       \
        for (int number = hand_##number.first; number < hand_##number.last; number++)

#endif
