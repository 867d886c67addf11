/* Neighbour lists with kernel gradients, and the results of one pass over them: density ratio, sum of gradients,
 * diagonal of the pressure system.
 *
 * particles/neighbour_tile.h does the search. Kernel and gradient are evaluated eight at a time. Lists are written to
 * chunks of one long array. The position of a particle's list depends on the threads; its content and order do not.
 */
#include <omp.h>

#include "methods/sph/list_parts.h"
#include "methods/sph/sph_tile.h"

enum {
    CHUNK = 1 << 15, /* lines that a thread reserves at once */
    BEYOND = SK_SPH_ENTRIES * (int)sizeof(sk_sph_wide_entry) / SK_SPH_LINE_BYTES,
    WORKER_ARRAYS = 11
};

typedef struct worker { /* data of one thread */
    sk_lane_search search;
    near_walls walls;
    uint32_t next_line, end_line;
} worker;

typedef struct builder { /* data shared by all threads */
    list_frame frame;
    int64_t line_limit;
    int64_t next_chunk; /* atomic */
    int overflow;       /* atomic */
} builder;

SK_VECTOR f8 positive(f8 a)
{
    return f8_max(a, f8_splat(0.0f));
}

/* --- One particle --- */

/* slope(q) / q and w(q) of the kernel. */
SK_VECTOR void evaluate(int wendland, f8 q2, f8 *value, f8 *slope_over_q)
{
    f8 q = f8_sqrt(q2), a = positive(1.0f - q);
    if (wendland) {
        f8 a2 = a * a;
        *value = a2 * a2 * (4.0f * q + 1.0f);
        *slope_over_q = -20.0f * a2 * a;
    } else {
        f8 c = positive(0.5f - q);
        *value = 2.0f * a * a * a - 8.0f * c * c * c;
        *slope_over_q = (24.0f * c * c - 6.0f * a * a) / q;
    }
}

typedef struct lane_sums {
    f8 density, gradient[3], squares;
    f8 moment[SK_SPH_COMPONENTS]; /* minus that of sk_sph_sums, times the spacing */
} lane_sums;

SK_VECTOR void add_moments(f8 slope, const f8 d[3], f8 moment[SK_SPH_COMPONENTS])
{
    const f8 x = slope * d[0], y = slope * d[1];
    moment[SK_SPH_XX] += x * d[0];
    moment[SK_SPH_YY] += y * d[1];
    moment[SK_SPH_XY] += x * d[1];
    if (SELKIE_DIM == 3) {
        moment[SK_SPH_ZZ] += slope * d[2] * d[2];
        moment[SK_SPH_XZ] += x * d[2];
        moment[SK_SPH_YZ] += y * d[2];
    }
}

/* Writes eight entries of the lean form from their components. */
SK_VECTOR void write_lean(sk_sph_lean_entry *entry, const uint16_t component[4][8])
{
    typedef uint16_t shorts8 __attribute__((vector_size(16)));
    typedef uint16_t shorts16 __attribute__((vector_size(32)));
    shorts8 part[4];
    memcpy(part, component, sizeof part);
    const shorts16 xy = __builtin_shufflevector(part[0], part[1], 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    const shorts16 zi = __builtin_shufflevector(part[2], part[3], 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    const shorts16 low = __builtin_shufflevector(xy, zi, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23);
    const shorts16 high = __builtin_shufflevector(xy, zi, 8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30, 31);
    memcpy(entry, &low, sizeof low);
    memcpy(entry + 4, &high, sizeof high);
}

/* Writes the gradients of the accepted neighbours. The list has room for a multiple of eight; the next list overwrites
 * entries beyond its end. */
SK_VECTOR void write_list(const sk_sph_list_constants *constants, const sk_cloud *a, uint32_t n, void *list,
                          const int wide, lane_sums *total)
{
    typedef uint16_t shorts8 __attribute__((vector_size(16)));
    const f8 scale2 = f8_splat(constants->inverse_support * constants->inverse_support), zero = f8_splat(0.0f);
    for (uint32_t k = 0; k < n; k += 8) {
        i8 lanes = i8_first((int)(n - k)); /* lanes beyond the last neighbour are undefined */
        f8 d[3] = {f8_select(lanes, f8_load(a->x + k), zero), f8_select(lanes, f8_load(a->y + k), zero), zero};
        f8 r2 = d[0] * d[0] + d[1] * d[1];
        if (SELKIE_DIM == 3) {
            d[2] = f8_select(lanes, f8_load(a->z + k), zero);
            r2 += d[2] * d[2];
        }

        /* The kernel of eight neighbours; sums of density and moments. */
        f8 value, slope;
        /* Two particles at one place have no direction; d is 0, and so is their gradient. */
        evaluate(constants->wendland, f8_max(r2 * scale2, f8_splat(1e-12f)), &value, &slope);
        total->density += f8_select(lanes, value, zero);
        slope *= constants->slope;
        add_moments(slope, d, total->moment);

        /* Write the entries; sum the gradients as they are stored. */
        i8 index = sk_load_index(a->index + k) & lanes;
        if (wide) {
            sk_sph_wide_entry *entry = (sk_sph_wide_entry *)list + k;
            for (int e = 0; e < 3; e++) {
                f8 g = slope * d[e];
                total->gradient[e] += g;
                total->squares += g * g;
                for (int l = 0; l < 8; l++)
                    entry[l].gradient[e] = g[l];
            }
            for (int l = 0; l < 8; l++)
                entry[l].index = (uint32_t)index[l];
        } else {
            uint16_t component[4][8] = {{0}};
            for (int e = 0; e < SELKIE_DIM; e++) {
                f8_to_halves(component[e], slope * d[e]);
                f8 g = f8_from_halves(component[e]); /* the rounded value that readers see */
                total->gradient[e] += g;
                total->squares += g * g;
            }
            shorts8 shorts = __builtin_convertvector(index, shorts8);
            memcpy(component[3], &shorts, sizeof shorts);
            write_lean((sk_sph_lean_entry *)list + k, component);
        }
    }
}

/* --- The pass --- */

/* Reserves room for some lines, and a margin for writes beyond them; NULL if there is none left. */
static void *room(builder *b, worker *w, uint32_t lines)
{
    if ((uint64_t)w->next_line + lines + BEYOND > w->end_line) {
        int64_t wanted = lines + BEYOND > CHUNK ? lines + BEYOND : CHUNK;
        int64_t at = __atomic_fetch_add(&b->next_chunk, wanted, __ATOMIC_RELAXED);
        if (at + wanted > b->line_limit) {
            w->next_line = w->end_line = 0;
            return NULL;
        }
        w->next_line = (uint32_t)at;
        w->end_line = (uint32_t)(at + wanted);
    }
    return b->frame.sph->lists + (size_t)w->next_line * SK_SPH_LINE_BYTES;
}

/* The list of particle i, which is particle `self` of the tile, among the candidates of its cell. */
static void do_particle(builder *b, worker *w, uint32_t candidates, uint32_t self, uint32_t i, const int wide,
                        sk_sph_list_sums *block)
{
    sk_sph *sph = b->frame.sph;
    const sk_cloud *all = &w->search.all;
    const float x[3] = {all->x[self], all->y[self], SELKIE_DIM == 3 ? all->z[self] : 0.0f};
    const uint32_t n = sk_search_accept(&w->search, candidates, self, x), lines = sk_sph_list_lines(n, wide);
    void *list = room(b, w, lines);
    block->pairs += n;
    block->lines += lines;

    if (!list) {
        /* The pass continues to count, and is repeated with enough room. */
        __atomic_store_n(&b->overflow, 1, __ATOMIC_RELAXED);
        return;
    }

    /* Write the list and sum over its lanes. */
    lane_sums total;
    memset(&total, 0, sizeof total);
    if (wide)
        write_list(&b->frame.constants, &w->search.accepted, n, list, 1, &total);
    else
        write_list(&b->frame.constants, &w->search.accepted, n, list, 0, &total);
    sph->first[i] = w->next_line;
    sph->number[i] = n;
    w->next_line += lines;

    /* Add up the lanes, then the share of the walls. */
    sk_sph_sums sums = {.density = b->frame.constants.weight * (f8_sum(total.density) + 1.0f),
                        .gradient = {f8_sum(total.gradient[0]), f8_sum(total.gradient[1]),
                                     SELKIE_DIM == 3 ? f8_sum(total.gradient[2]) : 0.0f}};
    for (int m = 0; m < SK_SPH_COMPONENTS; m++)
        sums.moment[m] = -b->frame.constants.inverse_spacing * f8_sum(total.moment[m]);
    finish_particle(&b->frame, &w->walls, i, &sums, f8_sum(total.squares), block);
}

static void do_block(builder *b, worker *w, tile_worker *memory, int block)
{
    sk_step *step = b->frame.step;
    sk_sph *sph = b->frame.sph;
    sk_sph_list_sums *sums = &sph->block_sums[block].lists;
    memset(sums, 0, sizeof *sums);
    make_tile(&step->grid, block, &memory->tile);
    sk_particle_tile_load_vectors(&memory->tile, step->particles.records, 0, memory->array);
    const int wide = memory->tile.count > SK_SPH_LEAN_LIMIT || sph->always_wide;
    sph->block_wide[block] = (uint8_t)wide;
    const int points = points_near_block(step, block);
    w->walls.range_count = 0;
    w->walls.side_count = sk_sph_sides_near(sph, &step->grid, block, sph->sheet.reach, w->walls.sides);
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        const int cell = sk_particle_tile_cell(c);
        const uint32_t from = memory->tile.start[cell], to = memory->tile.start[cell + 1];
        if (from == to)
            continue;
        uint32_t i = step->grid.cell_start[(size_t)(block - 1) * SK_BLOCK_CELLS + (size_t)c];
        const sk_bounds own = sk_cloud_bounds(&w->search.all, from, to);
        const uint32_t candidates = sk_search_cull(&w->search, cell, &own);
        if (points)
            find_points_near_cell(step, block, c, &w->walls);
        for (uint32_t p = from; p < to; p++, i++)
            do_particle(b, w, candidates, p, i, wide, sums);
    }
}

static sk_cloud cloud_at(float *const arrays[4])
{
    return (sk_cloud){arrays[0], arrays[1], arrays[2], (uint32_t *)(void *)arrays[3]};
}

static void do_blocks(builder *b, void *scratch)
{
    sk_step *step = b->frame.step;
#pragma omp parallel num_threads(step->threads)
    {
        tile_worker *memory = worker_of(b->frame.sph, scratch, omp_get_thread_num(), WORKER_ARRAYS);
        worker w = {.search = {.tile = &memory->tile,
                               .radius2 = b->frame.constants.reach2,
                               .all = {memory->array[0], memory->array[1], memory->array[2], NULL},
                               .near = cloud_at(memory->array + 3),
                               .accepted = cloud_at(memory->array + 7)}};
#pragma omp for schedule(dynamic, 1)
        for (int block = 1; block <= step->grid.particle_blocks; block++)
            do_block(b, &w, memory, block);
    }
}

selkie_code SK_DIM(sk_sph_neighbours)(sk_step *step, selkie_error *error)
{
    sk_sph *sph = step->sph;
    SK_TRY(begin_lists(step, error));
    if (!step->particles.count)
        return SELKIE_OK;

    /* Estimate the room from the lists of the step before. */
    builder b = {.frame = make_list_frame(step)};
    void *scratch;
    SK_TRY(
        sk_step_scratch(step, worker_bytes(sph, WORKER_ARRAYS) * (size_t)step->threads, "sph lists", &scratch, error));
    int64_t lines =
        sph->last_lines ? sph->last_lines + sph->last_lines / 64 : step->particles.count * (SELKIE_DIM == 3 ? 17 : 9);

    /* Build the lists; if the room was too small, repeat with the counted size. */
    for (int attempt = 0; attempt < 2; attempt++) {
        SK_TRY(sk_sph_reserve_lists(sph, lines + (int64_t)(step->threads + 1) * CHUNK, error));
        b.line_limit = (int64_t)(sph->list_capacity / SK_SPH_LINE_BYTES);
        b.next_chunk = 0;
        b.overflow = 0;
        do_blocks(&b, scratch);
        const sk_sph_list_sums total = add_list_sums(sph, step->grid.particle_blocks);
        sph->last_lines = (int64_t)total.lines;
        /* A chunk may end with a gap that was too short for the next particle. */
        lines = sph->last_lines + sph->last_lines / 64;
        if (b.overflow)
            continue;
        report_lists(step, &total);
        return SELKIE_OK;
    }
    return sk_fail(error, SELKIE_ERROR_MEMORY, "sph: no memory for the neighbour lists");
}
