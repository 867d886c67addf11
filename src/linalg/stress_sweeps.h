/* Loops over the rows of a level of the stress solver, and sums over them. Private to linalg/. For files compiled per
 * dimension. */
#ifndef SK_LINALG_STRESS_SWEEPS_H
#define SK_LINALG_STRESS_SWEEPS_H

#include "linalg/multigrid.h"
#include "linalg/stress_solver.h"

enum { CHUNK = 4096 };         /* unknowns of a partial sum */
enum { SK_STRESS_FEW = 8192 }; /* rows of a level for which one thread is fastest */

/* The share of a thread in [first, last), in whole units. */
typedef struct share {
    int32_t first, last;
} share;

static inline __attribute__((unused)) share share_of(int32_t first, int32_t last, int32_t unit, sk_team team)
{
    const int64_t units = (last - first + unit - 1) / unit;
    const int64_t begin = first + units * team.thread / team.threads * unit;
    const int64_t end = first + units * (team.thread + 1) / team.threads * unit;
    return (share){(int32_t)begin, (int32_t)(end < last ? end : last)};
}

/* --- Rows --- */

/* The values of a group. */
typedef float lanes __attribute__((vector_size(4 * SK_STRESS_GROUP), aligned(4), may_alias));

/* The rows of a colour with their shared coefficients, copied so that a loop keeps them in registers. */
typedef struct colour_rows {
    sk_stress_colour colour;
    int across_x;
    float shared[SK_STRESS_NEIGHBOURS], diagonal;
} colour_rows;

static inline __attribute__((unused)) colour_rows rows_of_colour(const sk_stress_level *level, int k)
{
    const int a = k / 2;
    colour_rows rows = {level->colour[k], a == 0, {0.0f}, level->shared_diagonal[a]};
    memcpy(rows.shared, level->shared[a], sizeof rows.shared);
    return rows;
}

/* Columns of a single, and of the group that begins with a row. */
static inline __attribute__((unused)) const int32_t *single_columns(const sk_stress_level *level,
                                                                    const sk_stress_colour *colour, int32_t row)
{
    return level->column + (size_t)(row - colour->singles + colour->columns) * SK_STRESS_NEIGHBOURS;
}

static inline __attribute__((unused)) const int32_t *group_columns(const sk_stress_level *level,
                                                                   const sk_stress_colour *colour, int32_t row)
{
    return level->group_column +
           (size_t)(colour->groups + (row - colour->first) / SK_STRESS_GROUP) * SK_STRESS_GROUP_COLUMNS;
}

/* A thread's rows of a colour: groups with an even and an odd first x, singles; places in `own_row` of the uneven rows
 * in its groups, which must follow the groups, and of others. */
typedef struct colour_share {
    share groups[2], singles, own[3];
} colour_share;

/* The uneven rows of a colour with numbers in [first, last). */
static inline __attribute__((unused)) share own_between(const sk_stress_level *level, const sk_stress_colour *colour,
                                                        int32_t first, int32_t last)
{
    const int32_t ends[2] = {first, last};
    int32_t found[2];
    for (int n = 0; n < 2; n++) {
        int32_t low = colour->own_first, high = colour->own_last;
        while (low < high) {
            const int32_t middle = low + (high - low) / 2;
            if (level->own_row[middle] < ends[n])
                low = middle + 1;
            else
                high = middle;
        }
        found[n] = low;
    }
    return (share){found[0], found[1]};
}

static inline __attribute__((unused)) colour_share share_colour(const sk_stress_level *level,
                                                                const sk_stress_colour *colour, sk_team team)
{
    colour_share mine = {.groups = {share_of(colour->first, colour->odd_groups, SK_STRESS_GROUP, team),
                                    share_of(colour->odd_groups, colour->singles, SK_STRESS_GROUP, team)},
                         .singles = share_of(colour->singles, colour->uneven, 1, team)};
    mine.own[2] = (share){colour->own_first, colour->own_last};
    if (team.threads == 1)
        return mine;
    for (int odd = 0; odd < 2; odd++)
        mine.own[odd] = own_between(level, colour, mine.groups[odd].first, mine.groups[odd].last);
    const share rest = own_between(level, colour, colour->uneven, colour->last);
    mine.own[2] = share_of(rest.first, rest.last, 1, team);
    return mine;
}

/* --- Sums --- */

typedef struct vectors {
    double *x, *r, *p, *q; /* [count + 1]; the last stays 0, and a value before the first */
    double *right;         /* [count + 1] the right side */
    double *partial[4];    /* sums of chunks; several, so that a thread may begin one while others read the last */
} vectors;

/* What a thread does in a solve. */
typedef struct solve_work {
    const sk_stress_hierarchy *hierarchy;
    const vectors *v;
    sk_team team;
    share chunks; /* of this thread */
} solve_work;

static inline __attribute__((unused)) share rows_of_chunk(const solve_work *w, int32_t chunk)
{
    const int32_t count = w->hierarchy->levels[0].count, first = chunk * CHUNK;
    return (share){first, count - first < CHUNK ? count : first + CHUNK};
}

/* The total of the chunks' sums, the same in each thread. */
static inline __attribute__((unused)) double add_chunks(const solve_work *w, const double *partial)
{
    const int32_t chunks = (w->hierarchy->levels[0].count + CHUNK - 1) / CHUNK;
    double total = 0.0;
    sk_team_wait(w->team);
    for (int32_t c = 0; c < chunks; c++)
        total += partial[c];
    return total;
}

/* Sums of a chunk run in this many chains: one would wait for each sum. */
enum { CHAINS = 8 };
typedef double chains __attribute__((vector_size(8 * CHAINS), aligned(8), may_alias));

static inline __attribute__((unused)) double add_chains(chains sum)
{
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

static inline __attribute__((unused)) chains chains_at(const double *values, int32_t i)
{
    return *(const chains *)(const void *)(values + i);
}

/* A symmetric V cycle from level `at` on, for A x = b from x = 0. */
void SK_DIM(sk_stress_cycle)(const sk_stress_hierarchy *hierarchy, int at, sk_team team);

#endif
