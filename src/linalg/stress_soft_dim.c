/* Conjugate gradients for a soft system of stresses: one whose rows have not much more stress than mass.
 *
 * Such a system needs no coarse levels. With A = D + L + U + R, the preconditioner is a symmetric sweep of successive
 * over-relaxation, (E + L) E^-1 (E + U) with E = D / omega. Eisenstat's form (SIAM J. Sci. Stat. Comput. 2, 1981) keeps
 * s = (E + L)^-1 r in place of the residual r. For a direction p, with w = (E + U)^-1 E p,
 *
 *   (E + L)^-1 A w = w + v,   v = (E + L)^-1 (E (p - (2 - omega) w) + R w),
 *
 * so an iteration takes two triangular solves, as much work as one sweep, and no product with A.
 *
 * Order of the rows: a component after the other, the faces of each along x, then y, then z. In this order a sweep
 * needs 0.55 to 0.6 of the iterations that it takes in the colours of the cycle (28 and 16, 45 and 24; see decision
 * 22). Rows depend on those before them along each axis, so vectors hold diagonals: a strip has the faces at x = s - n
 * in row n of eight rows. Its neighbours before along x and y are in the strip at s - 1. Faces that are no unknowns
 * have rows of zeros and keep the value 0.
 *
 * Large systems are cut into slabs, so that threads share the work. R has the stress between slabs and across joined
 * sides, which the preconditioner leaves out. Slabs do not depend on the number of threads.
 *
 * Vectors are in single precision. The caller finds the true residual in double precision, and starts again. */
#include <math.h>
#include <stdlib.h>

#include "base/simd.h"
#include "linalg/stress_sweeps.h"

/* Over-relaxation: 1.2 to 1.4 take the fewest iterations. */
#define OMEGA 1.3f

/* Unknowns of a slab, and slabs, at most. */
enum { SLAB = 32768, SLABS = 64 };

enum { LANES = SK_STRESS_LANES, BANDS = SK_BLOCK_CELLS / (SK_BLOCK_N * LANES) };

/* --- Neighbours of a face --- */

/* Is neighbour m of a face across axis a of its own component? */
static inline __attribute__((always_inline)) int is_own(int m)
{
    return m < 2 || (m - 2) % SK_STRESS_OTHER < 2;
}

/* The component of neighbour m, and its offset along axis d: as sk_stress_component() and sk_stress_offset(), resolved
 * where a loop is unrolled. */
static inline __attribute__((always_inline)) int component_of(int a, int m)
{
    return is_own(m) ? a : sk_stress_axis(a, (m - 2) / SK_STRESS_OTHER);
}

static inline __attribute__((always_inline)) int offset_along(int a, int m, int d)
{
    if (m < 2)
        return d != a ? 0 : m ? 1 : -1;
    const int n = (m - 2) % SK_STRESS_OTHER;
    if (d == a)
        return n == 3 || n == 5 ? -1 : 0;
    return d != sk_stress_axis(a, (m - 2) / SK_STRESS_OTHER) ? 0 : n == 0 ? -1 : n == 1 || n >= 4 ? 1 : 0;
}

/* Does neighbour m come before a face across axis a? Those of the own component lie along one axis. */
static inline __attribute__((always_inline)) int is_before(int a, int m)
{
    if (!is_own(m))
        return component_of(a, m) < a;
    return offset_along(a, m, 0) + offset_along(a, m, 1) + offset_along(a, m, 2) < 0;
}

/* Is neighbour m in the strip before or after that of a face across axis a, of the same component? */
static inline __attribute__((always_inline)) int is_chained(int a, int m)
{
    return is_own(m) && !offset_along(a, m, 2);
}

/* --- Runs of blocks --- */

/* Blocks side by side along x. Their strips follow each other in a table, by component, band of eight rows and s. */
typedef struct block_run {
    int32_t at[3];         /* of the first block */
    int32_t first, blocks; /* in `sequence` */
    int32_t base, width;   /* in the table: its first place, and strips of a band */
    int32_t slab, unknowns;
} block_run;

typedef struct layout {
    const sk_stress_level *level;
    sk_stress_strips *strips;
    const int32_t (*neighbours)[27]; /* as the level's, without those in other slabs and across joined sides */
    int32_t (*cut)[27];              /* the same, where there are such; else NULL */
    block_run *runs;
    int32_t run_count;
    int32_t *sequence, *run, *position; /* [blocks] blocks of the runs; run of a block; its place in it */
    int32_t *strip;                     /* [table] numbers; -1 = none */
    uint8_t *lanes, *uneven;            /* [table] bits of unknowns, and of those with coefficients of their own */
    int32_t values;                     /* of the table */
    int32_t *own_of_row;                /* [unknowns] places in own_row, where there are */
} layout;

/* The number of the block at an offset among those around. */
static inline int around_of(const int offset[3])
{
    return offset[0] + 1 + 3 * (offset[1] + 1) + (SELKIE_DIM == 3 ? 9 * (offset[2] + 1) : 0);
}

static selkie_code copy_neighbours(layout *l, const sk_stress_options *options, selkie_error *error)
{
    if (l->cut)
        return SELKIE_OK;
    SK_STRESS_TAKE(options->arena, l->cut, l->level->block_count);
    memcpy(l->cut, l->level->neighbours, (size_t)l->level->block_count * sizeof *l->cut);
    l->neighbours = (const int32_t(*)[27])l->cut;
    return SELKIE_OK;
}

/* Cuts the neighbours across joined sides. */
static selkie_code cut_sides(layout *l, const sk_stress_options *options, selkie_error *error)
{
    const sk_stress_level *level = l->level;
    if (!level->joined[0] && !level->joined[1] && !level->joined[2])
        return SELKIE_OK;
    SK_TRY(copy_neighbours(l, options, error));
    for (int b = 1; b < level->block_count; b++)
        for (int n = 0; n < SK_NEIGHBOURS; n++) {
            const int offset[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
            const int32_t other = l->cut[b][n];
            int beside = 1;
            for (int d = 0; d < SELKIE_DIM && other; d++)
                beside &= level->coordinates[other][d] == level->coordinates[b][d] + offset[d];
            l->cut[b][n] = beside ? other : 0;
        }
    return SELKIE_OK;
}

static int compare_runs(const void *one, const void *other)
{
    const block_run *a = one, *b = other;
    for (int d = SELKIE_DIM - 1; d >= 0; d--)
        if (a->at[d] != b->at[d])
            return a->at[d] < b->at[d] ? -1 : 1;
    return 0;
}

static int32_t unknowns_of(const sk_stress_level *level, int32_t block)
{
    int32_t count = 0;
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int r = 0; r < SK_STRESS_ROWS; r++)
            count += __builtin_popcount(level->bits[block][a][r].unknown);
    return count;
}

/* Finds the runs, in the order of the rows. Blocks without unknowns are in none. */
static void find_runs(layout *l)
{
    const sk_stress_level *level = l->level;
    int32_t count = 0, next = 0;
    for (int b = 0; b < level->block_count; b++)
        l->position[b] = b ? unknowns_of(level, b) : 0;
    for (int b = 0; b < level->block_count; b++)
        l->run[b] = l->position[b] ? 0 : -1;
    for (int b = 1; b < level->block_count; b++) {
        const int32_t *beside = l->neighbours[b];
        if (l->run[b] < 0 || l->run[beside[around_of((const int[3]){-1, 0, 0})]] >= 0)
            continue;
        block_run *run = &l->runs[count++];
        memcpy(run->at, level->coordinates[b], sizeof run->at);
        run->first = b;
    }
    qsort(l->runs, (size_t)count, sizeof *l->runs, compare_runs);
    l->run_count = count;
    l->values = 0;
    for (int32_t n = 0; n < count; n++) {
        block_run *run = &l->runs[n];
        const int32_t first = next;
        run->unknowns = 0;
        for (int32_t b = run->first; l->run[b] >= 0; b = l->neighbours[b][around_of((const int[3]){1, 0, 0})]) {
            run->unknowns += l->position[b];
            l->position[b] = next - first;
            l->run[b] = n;
            l->sequence[next++] = b;
        }
        run->first = first;
        run->blocks = next - first;
        run->width = run->blocks * SK_BLOCK_N + LANES - 1;
        run->base = l->values;
        l->values += SELKIE_DIM * BANDS * run->width;
    }
}

/* Deals the runs to slabs, and cuts the neighbours between them. */
static selkie_code find_slabs(layout *l, const sk_stress_options *options, selkie_error *error)
{
    const sk_stress_level *level = l->level;
    const int64_t wanted = (level->count + SLAB - 1) / SLAB, slabs = wanted < 1 ? 1 : wanted > SLABS ? SLABS : wanted;
    int64_t before = 0;
    for (int32_t n = 0; n < l->run_count; n++) {
        l->runs[n].slab = (int32_t)(before * slabs / (level->count + 1));
        before += l->runs[n].unknowns;
    }
    l->strips->slabs = (int32_t)slabs;
    if (slabs == 1)
        return SELKIE_OK;
    SK_TRY(copy_neighbours(l, options, error));
    for (int b = 1; b < level->block_count; b++)
        for (int n = 0; n < SK_NEIGHBOURS && l->run[b] >= 0; n++) {
            const int32_t other = l->cut[b][n];
            if (other && l->run[other] >= 0 && l->runs[l->run[other]].slab != l->runs[l->run[b]].slab)
                l->cut[b][n] = 0;
        }
    return SELKIE_OK;
}

/* --- Strips --- */

/* The place in the table of a block's component in band `band`, at its own x = 0 and lane 0. */
static inline int32_t table_place(const layout *l, int32_t block, int a, int band)
{
    const block_run *run = &l->runs[l->run[block]];
    return run->base + (a * BANDS + band) * run->width + l->position[block] * SK_BLOCK_N;
}

/* Finds the unknowns of a run's strips. */
static void find_lanes(const layout *l, const block_run *run)
{
    memset(l->lanes + run->base, 0, (size_t)(SELKIE_DIM * BANDS * run->width));
    memset(l->uneven + run->base, 0, (size_t)(SELKIE_DIM * BANDS * run->width));
    for (int32_t n = run->first; n < run->first + run->blocks; n++)
        for (int a = 0; a < SELKIE_DIM; a++)
            for (int r = 0; r < SK_STRESS_ROWS; r++) {
                const sk_stress_bits *bits = &l->level->bits[l->sequence[n]][a][r];
                const int32_t place = table_place(l, l->sequence[n], a, r / LANES) + r % LANES;
                const uint8_t bit = (uint8_t)(1u << r % LANES);
                for (int x = 0; x < SK_BLOCK_N; x++)
                    l->lanes[place + x] |= bits->unknown >> x & 1 ? bit : 0;
                for (uint32_t left = bits->uneven; left; left &= left - 1)
                    l->uneven[place + sk_stress_lowest(left)] |= bit;
            }
}

/* Numbers the strips in the order of the rows, slab by slab. */
static selkie_code number_strips(layout *l, const sk_stress_options *options, selkie_error *error)
{
    sk_stress_strips *strips = l->strips;
    int32_t begin = 0;
    strips->count = 0;
    strips->ratios = SELKIE_DIM;
    SK_STRESS_TAKE(options->arena, strips->first, strips->slabs);
    for (int32_t slab = 0; slab < strips->slabs; slab++) {
        int32_t end = begin;
        while (end < l->run_count && l->runs[end].slab == slab)
            end++;
        for (int a = 0; a < SELKIE_DIM; a++) {
            strips->first[slab][a] = strips->count;
            for (int32_t n = begin; n < end; n++) {
                const int32_t base = l->runs[n].base + a * BANDS * l->runs[n].width;
                for (int32_t place = base; place < base + BANDS * l->runs[n].width; place++)
                    l->strip[place] = l->lanes[place] ? strips->count++ : -1;
            }
        }
        strips->first[slab][SELKIE_DIM] = strips->count;
        begin = end;
    }
    return SELKIE_OK;
}

/* The strip of component a at s of a run, in a band that may be the first or last one of the runs beside it along the
 * axis across bands; -1 = there is none. Faces of the strip have x from `first` to `last`. */
static inline int32_t strip_at(const layout *l, const block_run *run, int a, int band, int32_t s, int32_t first,
                               int32_t last)
{
    const int side = band < 0 ? -1 : band >= BANDS;
    if (!side)
        return s < 0 || s >= run->width ? -1 : l->strip[run->base + (a * BANDS + band) * run->width + s];
    const int32_t ends[2] = {first, last};
    for (int n = 0; n < (first == last ? 1 : 2); n++) {
        /* The block at x beside the run, from the block of the run that is nearest to it. */
        const int32_t q = (ends[n] + SK_BLOCK_N) / SK_BLOCK_N - 1;
        const int32_t inside = q < 0 ? 0 : q >= run->blocks ? run->blocks - 1 : q;
        if (q < -1 || q > run->blocks)
            continue;
        const int32_t block = l->neighbours[l->sequence[run->first + inside]][around_of(
            (const int[3]){q - inside, SELKIE_DIM == 2 ? side : 0, SELKIE_DIM == 3 ? side : 0})];
        if (l->run[block] < 0)
            continue;
        const block_run *beside = &l->runs[l->run[block]];
        const int32_t at = s + (l->position[block] - q) * SK_BLOCK_N;
        if (at >= 0 && at < beside->width)
            return l->strip[beside->base + (a * BANDS + band - side * BANDS) * beside->width + at];
    }
    return -1;
}

/* The place in the vectors of the face at x of a run, in a row that may lie one before or after those of a band; that
 * of a face without an unknown is in the strip of zeros. */
static inline int32_t place_of_face(const layout *l, const block_run *run, int a, int band, int32_t x, int row)
{
    const int lane = row & (LANES - 1), side = row < 0 ? -1 : row >= LANES;
    int32_t strip = -1;
    if (SELKIE_DIM == 2 || !side) {
        strip = strip_at(l, run, a, band + side, x + lane, x, x);
    } else {
        /* In 3D the rows of a band are those of a block. */
        int at[3];
        const int32_t q = x < 0 ? 0 : x / SK_BLOCK_N < run->blocks ? x / SK_BLOCK_N : run->blocks - 1;
        const int below = band < 0, above = band >= BANDS;
        at[0] = x - q * SK_BLOCK_N;
        at[1] = row;
        at[2] = below ? -1 : above ? SK_BLOCK_N : band;
        const size_t cell = sk_stress_place(l->neighbours, l->sequence[run->first + q], at);
        const int32_t block = (int32_t)(cell / SK_BLOCK_CELLS), c = (int32_t)(cell % SK_BLOCK_CELLS);
        if (l->run[block] >= 0)
            strip = l->strip[table_place(l, block, a, c / SK_BLOCK_N / LANES) + lane + c % SK_BLOCK_N];
    }
    return (strip < 0 ? l->strips->count : strip) * LANES + lane;
}

/* The neighbours of a strip of component a. */
static inline __attribute__((always_inline)) void link_strip(const layout *l, const block_run *run, int a, int band,
                                                             int32_t s, sk_stress_strip *link)
{
    const uint32_t unknown = (uint32_t)link->lanes;
    const int32_t zeros = l->strips->count * LANES;
#pragma GCC unroll 16
    for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
        const int x = offset_along(a, m, 0), y = offset_along(a, m, 1), z = offset_along(a, m, 2);
        const int other = component_of(a, m), lane = y < 0 ? 0 : LANES - 1;
        if (!is_chained(a, m)) {
            const int32_t strip = strip_at(l, run, other, band + z, s + x + y, s + x - LANES + 1, s + x);
            link->column[m] = strip < 0 ? zeros : strip * LANES + y;
        }
        if (y)
            link->beyond[m] =
                unknown >> lane & 1 ? place_of_face(l, run, other, band + z, s - lane + x, lane + y) : zeros;
    }
}

/* The coefficients of a row over its diagonal, times omega. */
static const float *coefficients_of(const layout *l, int a, const sk_stress_bits *bits, int n, int32_t row)
{
    return bits->own >> n & 1 ? l->level->coefficient + (size_t)l->own_of_row[row] * SK_STRESS_NEIGHBOURS
                              : l->level->shared[a];
}

/* Places, diagonals and coefficients of a block's unknowns. */
static void fill_block(const layout *l, int32_t block)
{
    const sk_stress_level *level = l->level;
    const sk_stress_strips *strips = l->strips;
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int r = 0; r < SK_STRESS_ROWS; r++) {
            const sk_stress_bits *bits = &level->bits[block][a][r];
            const int32_t *index = level->index[a] + (size_t)block * SK_BLOCK_CELLS + (size_t)r * SK_BLOCK_N;
            const int lane = r % LANES;
            const int32_t *strip = l->strip + table_place(l, block, a, r / LANES) + lane;
            for (uint32_t left = bits->unknown; left; left &= left - 1) {
                const int n = sk_stress_lowest(left);
                const int32_t row = index[n], place = strip[n] * LANES + lane, ratio = strips->links[strip[n]].ratio;
                strips->place[row] = place;
                strips->diagonal[place] = level->diagonal[row];
                if (ratio < SELKIE_DIM)
                    continue;
                const float *from = coefficients_of(l, a, bits, n, row), by = OMEGA * level->inverse[row];
                for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++)
                    strips->ratio[ratio][m][lane] = from[m] * by;
            }
        }
}

static void fill_run(const layout *l, const block_run *run)
{
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int band = 0; band < BANDS; band++)
            for (int32_t s = 0; s < run->width; s++) {
                const int32_t place = run->base + (a * BANDS + band) * run->width + s;
                sk_stress_strip *link = &l->strips->links[l->strip[place]];
                if (l->strip[place] < 0)
                    continue;
                if (a == 0)
                    link_strip(l, run, 0, band, s, link);
                else if (a == 1)
                    link_strip(l, run, 1, band, s, link);
                else
                    link_strip(l, run, SELKIE_DIM - 1, band, s, link);
            }
    for (int32_t n = run->first; n < run->first + run->blocks; n++)
        fill_block(l, l->sequence[n]);
}

/* What is known of the strips before their neighbours. */
static void begin_strips(layout *l)
{
    sk_stress_strips *strips = l->strips;
    for (int32_t n = 0; n < l->run_count; n++)
        for (int band = 0; band < SELKIE_DIM * BANDS; band++) {
            const int32_t base = l->runs[n].base + band * l->runs[n].width;
            for (int32_t s = 0; s < l->runs[n].width; s++) {
                if (!l->lanes[base + s])
                    continue;
                strips->links[l->strip[base + s]] =
                    (sk_stress_strip){.lanes = l->lanes[base + s],
                                      .ratio = l->uneven[base + s] ? strips->ratios++ : band / BANDS,
                                      .before = s > 0 && l->lanes[base + s - 1],
                                      .after = s + 1 < l->runs[n].width && l->lanes[base + s + 1]};
            }
        }
}

/* --- Stress that the preconditioner leaves out --- */

/* Counts the cut neighbours of the unknowns of a run, and stores them if `to` is given. */
static int32_t find_seams(const layout *l, const block_run *run, sk_stress_seam *to)
{
    const sk_stress_level *level = l->level;
    int32_t count = 0;
    for (int32_t q = run->first; q < run->first + run->blocks; q++) {
        const int32_t block = l->sequence[q];
        if (!memcmp(l->neighbours[block], level->neighbours[block], SK_NEIGHBOURS * sizeof(int32_t)))
            continue;
        for (int a = 0; a < SELKIE_DIM; a++)
            for (int c = 0; c < SK_BLOCK_CELLS; c++) {
                const int32_t row = level->index[a][(size_t)block * SK_BLOCK_CELLS + (size_t)c];
                const sk_stress_bits *bits = &level->bits[block][a][c / SK_BLOCK_N];
                if (row == level->count)
                    continue;
                const float *from = coefficients_of(l, a, bits, c % SK_BLOCK_N, row);
                for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
                    int at[3];
                    sk_stress_cell(c, at);
                    for (int d = 0; d < SELKIE_DIM; d++)
                        at[d] += offset_along(a, m, d);
                    const size_t whole = sk_stress_place(level->neighbours, block, at);
                    const int32_t column = level->index[component_of(a, m)][whole];
                    if (whole == sk_stress_place(l->neighbours, block, at) || column == level->count)
                        continue;
                    if (to)
                        to[count] = (sk_stress_seam){l->strips->place[row], l->strips->place[column],
                                                     from[m] * OMEGA * level->inverse[row]};
                    count++;
                }
            }
    }
    return count;
}

static selkie_code make_seams(layout *l, const sk_stress_options *options, selkie_error *error)
{
    sk_stress_strips *strips = l->strips;
    int32_t *counts;
    SK_STRESS_TAKE(options->arena, strips->first_seam, strips->slabs + 1);
    memset(strips->first_seam, 0, (size_t)(strips->slabs + 1) * sizeof *strips->first_seam);
    strips->seams = NULL;
    if (!l->cut)
        return SELKIE_OK;
    memset(strips->across, 0, (size_t)strips->count * LANES * sizeof *strips->across);
    SK_STRESS_TAKE(options->arena, counts, l->run_count + 1);
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 1)
    for (int32_t n = 0; n < l->run_count; n++)
        counts[n] = find_seams(l, &l->runs[n], NULL);
    int32_t total = 0;
    for (int32_t n = 0; n < l->run_count; n++) {
        const int32_t count = counts[n];
        counts[n] = total;
        total += count;
        strips->first_seam[l->runs[n].slab + 1] = total;
    }
    for (int32_t slab = 0; slab < strips->slabs; slab++)
        if (strips->first_seam[slab + 1] < strips->first_seam[slab])
            strips->first_seam[slab + 1] = strips->first_seam[slab];
    SK_STRESS_TAKE(options->arena, strips->seams, total + 1);
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 1)
    for (int32_t n = 0; n < l->run_count; n++)
        find_seams(l, &l->runs[n], strips->seams + counts[n]);
    return SELKIE_OK;
}

/* --- The layout --- */

static selkie_code take_vectors(sk_stress_strips *strips, const sk_stress_options *options, selkie_error *error)
{
    /* A strip of zeros after the last, and one more on either side. */
    const size_t values = ((size_t)strips->count + 3) * LANES;
    float **taken[7] = {&strips->p, &strips->diagonal, &strips->across, &strips->s, &strips->w, &strips->v, &strips->x};
    for (int n = 0; n < 7; n++) {
        SK_STRESS_TAKE(options->arena, *taken[n], values);
        *taken[n] += LANES;
        memset(*taken[n] - LANES, 0, LANES * sizeof **taken[n]);
        memset(*taken[n] + (size_t)strips->count * LANES, 0, 2 * LANES * sizeof **taken[n]);
    }
    memset(strips->p, 0, (size_t)strips->count * LANES * sizeof *strips->p);
    memset(strips->diagonal, 0, (size_t)strips->count * LANES * sizeof *strips->diagonal);
    for (int n = 0; n < 2; n++)
        SK_STRESS_TAKE(options->arena, strips->partial[n], values / CHUNK + 1);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_stress_make_strips)(const sk_stress_level *level, const sk_stress_options *options,
                                          sk_stress_strips *strips, selkie_error *error)
{
    layout l = {.level = level, .strips = strips, .neighbours = level->neighbours};
    const int32_t own = level->colour[SK_STRESS_COLOURS - 1].own_last;
    SK_STRESS_TAKE(options->arena, l.runs, level->block_count);
    SK_STRESS_TAKE(options->arena, l.sequence, level->block_count);
    SK_STRESS_TAKE(options->arena, l.run, level->block_count);
    SK_STRESS_TAKE(options->arena, l.position, level->block_count);
    SK_TRY(cut_sides(&l, options, error));
    find_runs(&l);
    SK_TRY(find_slabs(&l, options, error));

    SK_STRESS_TAKE(options->arena, l.strip, l.values);
    SK_STRESS_TAKE(options->arena, l.lanes, l.values);
    SK_STRESS_TAKE(options->arena, l.uneven, l.values);
    SK_STRESS_TAKE(options->arena, l.own_of_row, level->count);
    SK_STRESS_TAKE(options->arena, strips->place, level->count);
    for (int32_t n = 0; n < own; n++)
        l.own_of_row[level->own_row[n]] = n;
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 1)
    for (int32_t n = 0; n < l.run_count; n++)
        find_lanes(&l, &l.runs[n]);
    SK_TRY(number_strips(&l, options, error));
    SK_STRESS_TAKE(options->arena, strips->links, strips->count);
    begin_strips(&l);
    SK_TRY(take_vectors(strips, options, error));

    SK_STRESS_TAKE(options->arena, strips->ratio, strips->ratios);
    memset(strips->ratio, 0, (size_t)strips->ratios * sizeof *strips->ratio);
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++)
            for (int n = 0; n < LANES; n++)
                strips->ratio[a][m][n] =
                    level->shared_diagonal[a] > 0.0f ? OMEGA / level->shared_diagonal[a] * level->shared[a][m] : 0.0f;
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 1)
    for (int32_t n = 0; n < l.run_count; n++)
        fill_run(&l, &l.runs[n]);
    return make_seams(&l, options, error);
}

/* --- Triangles --- */

/* Solves rows of a triangle: out = in - sum of ratio x neighbours of the triangle in `out`. The lower triangle takes
 * (2 - omega) less and `across` off. */
typedef struct triangle {
    const sk_stress_strips *strips;
    const float *in, *less;
    float *out;
} triangle;

static inline __attribute__((always_inline)) f8 lanes_at(const float *values, int32_t i)
{
    return f8_load(values + i);
}

/* The strips of a component in a slab. The value of the last strip stays in a register: the next needs it at once. */
static inline __attribute__((always_inline)) void solve_strips(const triangle *t, int32_t first, int32_t last, int a,
                                                               int lower)
{
    const sk_stress_strips *strips = t->strips;
    const float *in = t->in, *less = t->less, *across = strips->seams ? strips->across : NULL;
    float *out = t->out;
    const i8 none = {0}, is_first = {-1, 0, 0, 0, 0, 0, 0, 0}, is_last = {0, 0, 0, 0, 0, 0, 0, -1};
    const i8 bit = {1, 2, 4, 8, 16, 32, 64, 128}, up = {7, 0, 1, 2, 3, 4, 5, 6}, down = {1, 2, 3, 4, 5, 6, 7, 0};
    f8 previous = f8_splat(0.0f);
    for (int32_t n = first; n < last; n++) {
        const int32_t strip = lower ? n : last - 1 - (n - first), i = strip * LANES;
        const sk_stress_strip *link = &strips->links[strip];
        const float(*ratio)[LANES] = (const float(*)[LANES])strips->ratio[link->ratio];
        f8 rest = lanes_at(in, i);
        if (lower)
            rest -= (2.0f - OMEGA) * lanes_at(less, i);
        if (lower && across)
            rest += lanes_at(across, i);
#pragma GCC unroll 16
        for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
            const int y = offset_along(a, m, 1);
            if (is_before(a, m) != lower || is_chained(a, m))
                continue;
            f8 value = lanes_at(out, link->column[m]);
            if (y)
                value = f8_select(y < 0 ? is_first : is_last, f8_splat(out[link->beyond[m]]), value);
            rest -= lanes_at(ratio[m], 0) * value;
        }

        /* What the next strip waits for: the neighbour along x first, since the other has a shuffle before it. */
        const f8 near = f8_select((lower ? link->before : link->after) + none != 0, previous, f8_splat(0.0f));
#pragma GCC unroll 32
        for (int k = 0; k < 2 * SK_STRESS_NEIGHBOURS; k++) {
            const int m = k % SK_STRESS_NEIGHBOURS, y = offset_along(a, m, 1);
            if (is_before(a, m) != lower || !is_chained(a, m) || (y != 0) != k / SK_STRESS_NEIGHBOURS)
                continue;
            f8 value = near;
            if (y)
                value = f8_select(y < 0 ? is_first : is_last, f8_splat(out[link->beyond[m]]),
                                  __builtin_shuffle(near, y < 0 ? up : down));
            rest -= lanes_at(ratio[m], 0) * value;
        }
        previous = f8_select(((link->lanes + none) & bit) != 0, rest, f8_splat(0.0f));
        f8_store(out + i, previous);
    }
}

static void solve_slab_lower(const triangle *t, int32_t slab)
{
    const int32_t *first = t->strips->first[slab];
    solve_strips(t, first[0], first[1], 0, 1);
    solve_strips(t, first[1], first[2], 1, 1);
#if SELKIE_DIM == 3
    solve_strips(t, first[2], first[3], 2, 1);
#endif
}

static void solve_slab_upper(const triangle *t, int32_t slab)
{
    const int32_t *first = t->strips->first[slab];
#if SELKIE_DIM == 3
    solve_strips(t, first[2], first[3], 2, 0);
#endif
    solve_strips(t, first[1], first[2], 1, 0);
    solve_strips(t, first[0], first[1], 0, 0);
}

/* R w over E, for the rows of a slab. */
static void find_across(const sk_stress_strips *strips, int32_t slab)
{
    const sk_stress_seam *first = strips->seams + strips->first_seam[slab],
                         *last = strips->seams + strips->first_seam[slab + 1];
    for (const sk_stress_seam *seam = first; seam < last; seam++)
        strips->across[seam->row] = 0.0f;
    for (const sk_stress_seam *seam = first; seam < last; seam++)
        strips->across[seam->row] += seam->ratio * strips->w[seam->column];
}

/* A thread's slabs. */
static void solve_upper(const sk_stress_strips *strips, sk_team team)
{
    const share mine = share_of(0, strips->slabs, 1, team);
    const triangle upper = {strips, strips->p, NULL, strips->w};
    for (int32_t slab = mine.first; slab < mine.last; slab++)
        solve_slab_upper(&upper, slab);
    if (strips->seams)
        sk_team_wait(team);
}

static void solve_lower(const sk_stress_strips *strips, sk_team team)
{
    const share mine = share_of(0, strips->slabs, 1, team);
    const triangle lower = {strips, strips->p, strips->w, strips->v};
    for (int32_t slab = mine.first; slab < mine.last; slab++) {
        if (strips->seams)
            find_across(strips, slab);
        solve_slab_lower(&lower, slab);
    }
    sk_team_wait(team);
}

/* --- Conjugate gradients --- */

/* Values of the strips in chunk c of the vectors. */
static inline share values_of_chunk(const sk_stress_strips *strips, int32_t c)
{
    const int32_t count = strips->count * LANES, first = c * CHUNK;
    return (share){first, count - first < CHUNK ? count : first + CHUNK};
}

static inline int32_t chunks_of(const sk_stress_strips *strips)
{
    return (strips->count * LANES + CHUNK - 1) / CHUNK;
}

static double add_partial(const sk_stress_strips *strips, sk_team team, const double *partial)
{
    double total = 0.0;
    sk_team_wait(team);
    for (int32_t c = 0; c < chunks_of(strips); c++)
        total += partial[c];
    return total;
}

/* Sums over a chunk run in single precision over a few values, then in double precision. A sum of 16 chains waits less
 * than one of 8. */
enum { WIDE = 2 * CHAINS, RUN = 16 * WIDE };
typedef float floats __attribute__((vector_size(4 * WIDE), aligned(4), may_alias));
typedef float half_floats __attribute__((vector_size(4 * CHAINS)));

static inline __attribute__((always_inline)) chains double_of(floats sum)
{
    const half_floats low = __builtin_shufflevector(sum, sum, 0, 1, 2, 3, 4, 5, 6, 7);
    const half_floats high = __builtin_shufflevector(sum, sum, 8, 9, 10, 11, 12, 13, 14, 15);
    return __builtin_convertvector(low + high, chains);
}

static inline __attribute__((always_inline)) floats floats_at(const float *values, int32_t i)
{
    return *(const floats *)(const void *)(values + i);
}

/* The curvature along w, times omega: p D (w + v). */
static double find_curvature(const sk_stress_strips *v, share chunks, sk_team team)
{
    for (int32_t c = chunks.first; c < chunks.last; c++) {
        const share rows = values_of_chunk(v, c);
        chains sums = {0.0};
        int32_t i = rows.first;
        while (i + WIDE <= rows.last) {
            floats sum = {0.0f};
            for (const int32_t end = i + RUN; i < end && i + WIDE <= rows.last; i += WIDE)
                sum += floats_at(v->diagonal, i) * floats_at(v->p, i) * (floats_at(v->w, i) + floats_at(v->v, i));
            sums += double_of(sum);
        }
        double sum = add_chains(sums);
        for (; i < rows.last; i++)
            sum += (double)(v->diagonal[i] * v->p[i] * (v->w[i] + v->v[i]));
        v->partial[0][c] = sum;
    }
    return add_partial(v, team, v->partial[0]);
}

/* x += alpha w, s -= alpha (w + v). Returns s D s, omega times the square of the residual in the norm of the
 * preconditioner. */
static double step_along(const sk_stress_strips *v, share chunks, sk_team team, float alpha)
{
    for (int32_t c = chunks.first; c < chunks.last; c++) {
        const share rows = values_of_chunk(v, c);
        chains sums = {0.0};
        int32_t i = rows.first;
        while (i + WIDE <= rows.last) {
            floats sum = {0.0f};
            for (const int32_t end = i + RUN; i < end && i + WIDE <= rows.last; i += WIDE) {
                const floats w = floats_at(v->w, i), s = floats_at(v->s, i) - alpha * (w + floats_at(v->v, i));
                *(floats *)(void *)(v->x + i) += alpha * w;
                *(floats *)(void *)(v->s + i) = s;
                sum += floats_at(v->diagonal, i) * s * s;
            }
            sums += double_of(sum);
        }
        double sum = add_chains(sums);
        for (; i < rows.last; i++) {
            v->x[i] += alpha * v->w[i];
            v->s[i] -= alpha * (v->w[i] + v->v[i]);
            sum += (double)(v->diagonal[i] * v->s[i] * v->s[i]);
        }
        v->partial[1][c] = sum;
    }
    return add_partial(v, team, v->partial[1]);
}

/* p = s + beta p. */
static void turn(const sk_stress_strips *v, share chunks, sk_team team, float beta)
{
    for (int32_t c = chunks.first; c < chunks.last; c++) {
        const share rows = values_of_chunk(v, c);
        float *restrict p = v->p;
        const float *s = v->s;
        for (int32_t i = rows.first; i < rows.last; i++)
            p[i] = s[i] + beta * p[i];
    }
    sk_team_wait(team);
}

int SK_DIM(sk_stress_soften)(const solve_work *work, double scale, double reduction, int max_iterations)
{
    const sk_stress_level *level = &work->hierarchy->levels[0];
    const sk_stress_strips *v = &work->v->strips;
    const sk_team team = work->team;
    const share chunks = share_of(0, chunks_of(v), 1, team), rows = share_of(0, level->count, CHUNK, team);

    /* s = (E + L)^-1 r, from p = E^-1 r and w = 0. */
    for (int32_t c = chunks.first; c < chunks.last; c++) {
        const share values = values_of_chunk(v, c);
        memset(v->w + values.first, 0, (size_t)(values.last - values.first) * sizeof *v->w);
        memset(v->x + values.first, 0, (size_t)(values.last - values.first) * sizeof *v->x);
    }
    for (int32_t i = rows.first; i < rows.last; i++)
        v->p[v->place[i]] = OMEGA * level->inverse[i] * level->b[i];
    sk_team_wait(team);
    solve_lower(v, team);
    for (int32_t c = chunks.first; c < chunks.last; c++) {
        const share values = values_of_chunk(v, c);
        memcpy(v->s + values.first, v->v + values.first, (size_t)(values.last - values.first) * sizeof *v->s);
    }
    double energy = step_along(v, chunks, team, 0.0f);
    const double enough = reduction * reduction * energy;
    turn(v, chunks, team, 0.0f);

    int iteration = 0;
    while (iteration < max_iterations && energy > enough) {
        solve_upper(v, team);
        solve_lower(v, team);
        const double curvature = find_curvature(v, chunks, team), before = energy;
        if (!(curvature > 0.0) || !isfinite(curvature))
            break;
        energy = step_along(v, chunks, team, (float)(energy / curvature));
        turn(v, chunks, team, (float)(energy / before));
        iteration++;
    }
    for (int32_t i = rows.first; i < rows.last; i++)
        work->v->p[i] = scale * (double)v->x[v->place[i]];
    sk_team_wait(team);
    return iteration;
}
