/* Strips of a soft stress system, and its fields: see stress_strips.h. */
#include <math.h>
#include <string.h>

#include "linalg/stress_strips.h"
#include "linalg/stress_tiles.h"

/* --- Places --- */

/* Slot of the block beside a block, by steps of -1 to 1 along each axis. */
static inline int slot_beside(const sk_stress_level *level, int block, int x, int y, int z)
{
    return level->neighbours[block][x + 1 + 3 * (y + 1) + (SELKIE_DIM == 3 ? 9 * (z + 1) : 0)];
}

/* Places the blocks of a strip from its first one on. Returns the end of the strip. `copies` [block][half]: see wrap.
 */
static int64_t place_strip(const sk_stress_strips *strips, int first, int64_t place, int32_t (*wrap)[2])
{
    int32_t count = 0, next = first;
    for (int b = first; b && (b != first || !count); b = slot_beside(strips->level, b, 1, 0, 0))
        count++;
    const int32_t stride = (count + 1) * SK_STRESS_GROUP;
    for (int32_t n = 0; n < count; n++, next = slot_beside(strips->level, next, 1, 0, 0)) {
        strips->start[next] = (int32_t)place + n * SK_STRESS_GROUP;
        strips->stride[next] = stride;
        wrap[next][0] = wrap[next][1] = 0;
        if (next == first && n == 0)
            wrap[next][0] = count * SK_STRESS_GROUP;
        if (n == count - 1)
            wrap[next][1] = -n * SK_STRESS_GROUP - 1;
    }
    /* The strip is no ring. */
    if (!slot_beside(strips->level, first, -1, 0, 0))
        for (int b = first; b; b = slot_beside(strips->level, b, 1, 0, 0))
            wrap[b][0] = wrap[b][1] = 0;
    return place + (int64_t)stride * SK_STRESS_ROWS;
}

/* Block 0 has one row of zeros for all of its rows. */
static selkie_code place_blocks(sk_stress_strips *strips, const sk_stress_options *options, int32_t (**wrap)[2],
                                selkie_error *error)
{
    const sk_stress_level *level = strips->level;
    int64_t place = 3 * SK_STRESS_GROUP;
    SK_STRESS_TAKE(options->arena, strips->start, level->block_count);
    SK_STRESS_TAKE(options->arena, strips->stride, level->block_count);
    SK_STRESS_TAKE(options->arena, strips->begin, level->block_count);
    SK_STRESS_TAKE(options->arena, *wrap, level->block_count);
    memset(strips->stride, 0, (size_t)level->block_count * sizeof *strips->stride);
    strips->start[0] = SK_STRESS_GROUP;
    strips->count = 0;
    for (int ring = 0; ring < 2; ring++)
        for (int b = 1; b < level->block_count; b++)
            if (!strips->stride[b] && (ring || !slot_beside(level, b, -1, 0, 0))) {
                strips->begin[strips->count++] = b;
                place = place_strip(strips, b, place, *wrap);
            }
    strips->plane = (size_t)place + SK_STRESS_GROUP;
    if (place > INT32_MAX / 2)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "viscosity: more than %d faces", INT32_MAX / 2);
    return SELKIE_OK;
}

/* The block after one of a strip; 0 = it is the last. */
static inline int next_in_strip(const sk_stress_strips *strips, int first, int block)
{
    const int next = slot_beside(strips->level, block, 1, 0, 0);
    return next == first ? 0 : next;
}

/* --- Segments --- */

/* The colour of a half row. */
static inline int colour_of_half(const int at[3], int a, int half)
{
    const int first[3] = {half, at[1], at[2]};
    return sk_stress_colour_at(first, a);
}

/* The list of a half row; -1 if it has no unknown. */
static inline int list_of(const sk_stress_bits *bits, const int at[3], int a, int half)
{
    const uint32_t mask = SK_STRESS_HALF << half;
    if (!(bits->unknown & mask))
        return -1;
    return sk_stress_list(colour_of_half(at, a, half), half, (bits->unknown & ~bits->own & mask) != mask);
}

/* Segments of a strip in each list: how many, then the place of the first one. */
typedef struct segment_counts {
    int32_t lists[SK_STRESS_LISTS];
} segment_counts;

static void count_segments(const sk_stress_strips *strips, int first, segment_counts *counts)
{
    memset(counts, 0, sizeof *counts);
    for (int b = first; b; b = next_in_strip(strips, first, b))
        for (int r = 0; r < SK_STRESS_ROWS; r++) {
            int at[3];
            sk_stress_cell(r * SK_BLOCK_N, at);
            for (int a = 0; a < SELKIE_DIM; a++)
                for (int half = 0; half < 2; half++) {
                    const int list = list_of(&strips->level->bits[b][a][r], at, a, half);
                    if (list >= 0)
                        counts->lists[list]++;
                }
        }
}

/* Places of the half rows around a row of a block. */
static void find_beside(const sk_stress_strips *strips, int block, const int at[3], sk_stress_segment *segment)
{
    for (int n = 0; n < SK_STRESS_BESIDE; n++) {
        const int y = at[1] + n % 3 - 1, z = SELKIE_DIM == 3 ? at[2] + n / 3 - 1 : 0;
        const int slot = slot_beside(strips->level, block, 0, y >> SK_BLOCK_LOG, z >> SK_BLOCK_LOG);
        const int row = (y & SK_BLOCK_MASK) + (SELKIE_DIM == 3 ? SK_BLOCK_N * (z & SK_BLOCK_MASK) : 0);
        segment->row[n] = (int32_t)sk_stress_row_place(strips, slot, row);
    }
}

/* The weights around a half row of faces across axis a, from a place of the tiles on. */
typedef struct lane_weights {
    lanes mass, normal[2], bulk[2], shear[SK_STRESS_ACROSS][2];
} lane_weights;

static lane_weights gather_lanes(const weight_tiles *tiles, const float *mass, int place, int a, int half)
{
    lane_weights w = {.mass = sk_stress_half_of(mass, half)};
    const int before = place - tile_step[a];
    w.normal[0] = sk_stress_half_of(tiles->normal[a] + before, half);
    w.normal[1] = sk_stress_half_of(tiles->normal[a] + place, half);
    if (tiles->bulk) {
        w.bulk[0] = sk_stress_half_of(tiles->bulk + before, half);
        w.bulk[1] = sk_stress_half_of(tiles->bulk + place, half);
    }
    for (int n = 0; n < SK_STRESS_ACROSS; n++) {
        const int b = sk_stress_axis(a, n);
        const float *shear = tiles->shear[sk_stress_edge(a, b)] + place;
        w.shear[n][0] = sk_stress_half_of(shear, half);
        w.shear[n][1] = sk_stress_half_of(shear + tile_step[b], half);
    }
    return w;
}

static inline void set_coefficient(sk_stress_segment_rows *rows, int m, int_lanes unknown, lanes value)
{
    *(lanes *)(void *)rows->coefficient[m] = sk_stress_lanes_where(unknown, value);
}

/* sk_stress_row() for a half row, in the same order of sums. */
static void make_segment_rows(const lane_weights *w, int_lanes unknown, sk_stress_segment_rows *rows,
                              sk_stress_segment_marks *marks)
{
    lanes diagonal = w->mass;
    for (int side = 0; side < 2; side++) {
        const lanes weight = 2.0f * w->normal[side] + w->bulk[side];
        set_coefficient(rows, side, unknown, -weight);
        diagonal += weight;
    }
    for (int n = 0; n < SK_STRESS_ACROSS; n++) {
        const int c = 2 + SK_STRESS_OTHER * n;
        const lanes before = w->shear[n][0], after = w->shear[n][1];
        set_coefficient(rows, c, unknown, -before);
        set_coefficient(rows, c + 1, unknown, -after);
        set_coefficient(rows, c + 2, unknown, before + w->bulk[1]);
        set_coefficient(rows, c + 3, unknown, -before - w->bulk[0]);
        set_coefficient(rows, c + 4, unknown, -after - w->bulk[1]);
        set_coefficient(rows, c + 5, unknown, after + w->bulk[0]);
        diagonal += before + after;
    }
    const lanes zero = {0.0f};
    const int_lanes massless = unknown & (w->mass <= zero);
    *(lanes *)(void *)rows->diagonal = sk_stress_lanes_where(unknown, diagonal);
    *(lanes *)(void *)rows->inverse = sk_stress_lanes_where(unknown, 1.0f / diagonal);
    const int_lanes loose = unknown & (diagonal > SK_STRESS_HELD * w->mass);
    memcpy(marks->massless, &massless, sizeof marks->massless);
    memcpy(marks->loose, &loose, sizeof marks->loose);
    marks->any_massless = marks->any_loose = 0;
    for (int n = 0; n < SK_STRESS_GROUP; n++) {
        marks->any_massless |= massless[n];
        marks->any_loose |= loose[n];
    }
}

/* Makes the segments of a row of a block. */
static void make_row(const sk_stress_strips *strips, const int32_t wrap[2], int block, int r, segment_counts *next)
{
    const sk_stress_level *level = strips->level;
    int at[3];
    sk_stress_segment segment;
    sk_stress_cell(r * SK_BLOCK_N, at);
    find_beside(strips, block, at, &segment);
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int half = 0; half < 2; half++) {
            const int list = list_of(&level->bits[block][a][r], at, a, half);
            if (list < 0)
                continue;
            segment.wrap = wrap[half];
            strips->segments[next->lists[list]] = segment;
            strips->place[a][half][(size_t)block * SK_STRESS_ROWS + (size_t)r] = next->lists[list]++;
        }
}

static void make_strip(const sk_stress_strips *strips, const int32_t (*wrap)[2], int first, segment_counts next)
{
    for (int r = 0; r < SK_STRESS_ROWS; r++)
        for (int b = first; b; b = next_in_strip(strips, first, b))
            make_row(strips, wrap[b], b, r, &next);
}

/* Makes the coefficients of a block's segments that have some of their own. */
static void make_coefficients(const sk_stress_strips *strips, int block)
{
    const sk_stress_level *level = strips->level;
    tile_rows tile;
    weight_tiles weights;
    int loaded = 0;
    for (int r = 0; r < SK_STRESS_ROWS; r++) {
        int at[3];
        sk_stress_cell(r * SK_BLOCK_N, at);
        for (int a = 0; a < SELKIE_DIM; a++)
            for (int half = 0; half < 2; half++) {
                const sk_stress_bits *bits = &level->bits[block][a][r];
                const int list = list_of(bits, at, a, half);
                if (list < 0 || !(list & 1))
                    continue;
                if (!loaded++) {
                    find_tile_rows(level->neighbours, block, &tile);
                    load_weights(level, &tile, &weights);
                }
                const float *mass = level->mass[a] + (size_t)block * SK_BLOCK_CELLS + (size_t)r * SK_BLOCK_N;
                const lane_weights w = gather_lanes(&weights, mass, tile_place(at), a, half);
                const int32_t place = strips->place[a][half][(size_t)block * SK_STRESS_ROWS + (size_t)r];
                const int32_t row = strips->first_rows[list] + place - strips->first[list];
                make_segment_rows(&w, sk_stress_lanes_in(bits->unknown, half), &strips->rows[row], &strips->marks[row]);
            }
    }
}

/* Places of the lists, and of each strip's segments in them. Returns the number of rows' coefficients. */
static int32_t order_segments(sk_stress_strips *strips, segment_counts *counts)
{
    int32_t total = 0, rows = 0;
    strips->chunk[0] = 0;
    for (int list = 0; list < SK_STRESS_LISTS; list++) {
        strips->first[list] = total;
        strips->first_rows[list] = rows;
        for (int n = 0; n < strips->count; n++) {
            const int32_t count = counts[n].lists[list];
            counts[n].lists[list] = total;
            total += count;
        }
        rows += list & 1 ? total - strips->first[list] : 0;
        strips->chunk[list + 1] =
            strips->chunk[list] + (total - strips->first[list] + SK_STRESS_SEGMENT_CHUNK - 1) / SK_STRESS_SEGMENT_CHUNK;
    }
    strips->first[SK_STRESS_LISTS] = total;
    return rows;
}

/* --- Rows that are held --- */

/* A segment with coefficients of its own. */
typedef struct own_segment {
    int a, half;
    const sk_stress_segment *place;
    const sk_stress_segment_rows *rows;
    const sk_stress_segment_marks *marks;
} own_segment;

/* The next one that has a loose row: begins with `list` 1 and n 0. Returns 0 after the last. */
static int next_loose(const sk_stress_strips *strips, int *list, int32_t *n, own_segment *found)
{
    for (; *list < SK_STRESS_LISTS; *list += 2, *n = 0)
        while (*n < strips->first[*list + 1] - strips->first[*list]) {
            const int32_t row = strips->first_rows[*list] + (*n)++;
            if (!strips->marks[row].any_loose)
                continue;
            *found = (own_segment){*list / 8, *list / 2 % 2, &strips->segments[strips->first[*list] + *n - 1],
                                   &strips->rows[row], &strips->marks[row]};
            return 1;
        }
    return 0;
}

/* Sets a value in a plane, and its copy beyond a joined side. */
static inline void set_lane(const own_segment *segment, float *plane, int n, float value)
{
    const int32_t row = segment->place->row[SK_STRESS_MIDDLE];
    plane[row + n] = value;
    if (segment->place->wrap && n == (segment->half ? SK_STRESS_GROUP - 1 : 0))
        plane[row + segment->place->wrap] = value;
}

/* The stress of a row on neighbours with a mark of 1. */
static float stress_on_held(const sk_stress_strips *strips, const own_segment *segment, int n, const float *held)
{
    float sum = 0.0f;
    for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
        const float *plane = held + (size_t)sk_stress_plane_of(segment->a, segment->half, m) * strips->plane;
        const int place = segment->place->row[sk_stress_beside_of(segment->a, m)] + n +
                          sk_stress_shift_of(segment->a, segment->half, m);
        sum += plane[place] == 1.0f ? fabsf(segment->rows->coefficient[m][n]) : 0.0f;
    }
    return sum;
}

/* Is each row held, by mass of its own or by rows beside it that are? The common motion of a few faces with hardly a
 * mass leaves hardly a residual, so sweeps do not find it: what the start has of it would go from step to step and
 * grow. Coarse levels find it. Beside a surface most rows without mass hang on rows that have some: half of their
 * stress acts there, at most two rows away. Rows with shared coefficients are held. */
static int find_held(const sk_stress_strips *strips, float *held)
{
    enum { STEPS = 2 };
    own_segment segment;
    int loose = 0;
    for (size_t i = 0; i < SK_STRESS_PLANES * strips->plane; i++)
        held[i] = 1.0f;
    for (int list = 1, n = 0; next_loose(strips, &list, &n, &segment);)
        for (int l = 0; l < SK_STRESS_GROUP; l++)
            if (segment.marks->loose[l]) {
                set_lane(&segment, held + (size_t)(2 * segment.a + segment.half) * strips->plane, l, 0.0f);
                loose = 1;
            }
    for (int step = 0; step < STEPS && loose; step++) {
        loose = 0;
        /* A mark of 2 holds others from the next step on: the order of the rows does not matter. */
        for (int mark = 2; mark >= 1; mark--)
            for (int list = 1, n = 0; next_loose(strips, &list, &n, &segment);)
                for (int l = 0; l < SK_STRESS_GROUP; l++) {
                    float *plane = held + (size_t)(2 * segment.a + segment.half) * strips->plane;
                    const float now = plane[segment.place->row[SK_STRESS_MIDDLE] + l];
                    if (mark == 1 && now == 2.0f)
                        set_lane(&segment, plane, l, 1.0f);
                    if (mark == 1 || now != 0.0f)
                        continue;
                    const int holds = stress_on_held(strips, &segment, l, held) >= 0.5f * segment.rows->diagonal[l];
                    set_lane(&segment, plane, l, holds ? 2.0f : 0.0f);
                    loose |= !holds;
                }
    }
    return !loose;
}

/* --- All of it --- */

static selkie_code take_vectors(sk_stress_strips *strips, const sk_stress_options *options, selkie_error *error)
{
    const size_t values = SK_STRESS_PLANES * strips->plane;
    const size_t faces = (size_t)strips->first[SK_STRESS_LISTS] * SK_STRESS_GROUP;
    SK_STRESS_TAKE(options->arena, strips->s, faces);
    SK_STRESS_TAKE(options->arena, strips->p, faces);
    SK_STRESS_TAKE(options->arena, strips->x, faces);
    SK_STRESS_TAKE(options->arena, strips->z, strips->sweeps > 1 ? faces : 1);
    SK_STRESS_TAKE(options->arena, strips->w, values);
    SK_STRESS_TAKE(options->arena, strips->v, values);
    SK_STRESS_TAKE(options->arena, strips->solution, values);
    SK_STRESS_TAKE(options->arena, strips->right, values);
    for (int n = 0; n < SK_STRESS_PARTIALS; n++)
        SK_STRESS_TAKE(options->arena, strips->partial[n], (size_t)strips->chunk[SK_STRESS_LISTS] + 1);
    return SELKIE_OK;
}

/* Neighbours are read from these: they are 0 where there is no unknown. */
static void clear_vectors(const sk_stress_strips *strips)
{
    const size_t values = SK_STRESS_PLANES * strips->plane;
    memset(strips->w, 0, values * sizeof *strips->w);
    memset(strips->v, 0, values * sizeof *strips->v);
    memset(strips->solution, 0, values * sizeof *strips->solution);
}

selkie_code SK_DIM(sk_stress_make_strips)(const sk_stress_level *level, const sk_stress_options *options,
                                          sk_stress_strips *strips, int *sweeps, selkie_error *error)
{
    int32_t(*wrap)[2];
    segment_counts *counts;
    strips->level = level;
    strips->sweeps = *sweeps;
    strips->has_ends = level->joined[0] > 0;
    SK_TRY(place_blocks(strips, options, &wrap, error));
    SK_STRESS_TAKE(options->arena, counts, strips->count);
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int half = 0; half < 2; half++)
            SK_STRESS_TAKE(options->arena, strips->place[a][half], (size_t)level->block_count * SK_STRESS_ROWS);
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 1)
    for (int n = 0; n < strips->count; n++)
        count_segments(strips, strips->begin[n], &counts[n]);
    const int32_t rows = order_segments(strips, counts);
    SK_STRESS_TAKE(options->arena, strips->segments, strips->first[SK_STRESS_LISTS]);
    SK_STRESS_TAKE(options->arena, strips->rows, rows);
    SK_STRESS_TAKE(options->arena, strips->marks, rows);
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 1)
    for (int n = 0; n < strips->count; n++)
        make_strip(strips, (const int32_t(*)[2])wrap, strips->begin[n], counts[n]);
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
    for (int b = 1; b < level->block_count; b++)
        make_coefficients(strips, b);
    SK_TRY(take_vectors(strips, options, error));
    int32_t loose = 0;
    for (int32_t n = 0; n < rows; n++)
        loose |= strips->marks[n].any_loose;
    *sweeps = !loose || find_held(strips, strips->w) ? *sweeps : 0;
    if (*sweeps)
        clear_vectors(strips);
    return SELKIE_OK;
}

/* --- Fields --- */

/* The right side and the start of a half row. Faces without mass have no velocity yet: see start_massless(). */
static inline __attribute__((always_inline)) void load_half(const sk_stress_strips *strips, size_t place,
                                                            int_lanes unknown, lanes mass, lanes target, lanes start)
{
    const lanes zero = {0.0f};
    const int_lanes has_mass = unknown & (mass > zero);
    const lanes weight = sk_stress_lanes_where(has_mass, mass);
    const lanes wanted = sk_stress_lanes_where(has_mass, target);
    const lanes first = sk_stress_lanes_where(has_mass & (start == start), start);
    *(double_lanes *)(void *)(strips->right + place) =
        __builtin_convertvector(weight, double_lanes) * __builtin_convertvector(wanted, double_lanes);
    *(double_lanes *)(void *)(strips->solution + place) = __builtin_convertvector(first, double_lanes);
}

/* Sum of coefficient x given velocity of the neighbours of a face. */
static double given_beside(const sk_stress_system *system, const sk_stress_level *level, int block, const int at[3],
                           int a)
{
    size_t places[SK_STRESS_NEIGHBOURS];
    sk_stress_weights w = {.mass = 0.0f};
    float coefficient[SK_STRESS_NEIGHBOURS];
    double sum = 0.0;
    for (int side = 0; side < 2; side++) {
        int cell[3] = {at[0], at[1], at[2]};
        cell[a] -= !side;
        const size_t place = sk_stress_place(level->neighbours, block, cell);
        w.normal[side] = system->normal[place];
        w.bulk[side] = system->bulk ? system->bulk[place] : 0.0f;
        for (int n = 0; n < SK_STRESS_ACROSS; n++) {
            int edge[3] = {at[0], at[1], at[2]};
            edge[sk_stress_axis(a, n)] += side;
            w.shear[n][side] =
                system->shear[sk_stress_edge(a, sk_stress_axis(a, n))][sk_stress_place(level->neighbours, block, edge)];
        }
    }
    sk_stress_row(&w, coefficient);
    sk_stress_places(level->neighbours, block, at, a, places);
    for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
        const int component = sk_stress_component(a, m);
        if (system->fixed[component][places[m]])
            sum += (double)coefficient[m] * (double)system->velocity[component][places[m]];
    }
    return sum;
}

/* The right side of the rows beside faces with a given velocity that are not at rest. */
static void load_given(const sk_stress_system *system, const sk_stress_strips *strips, int block)
{
    const sk_stress_level *level = strips->level;
    for (int r = 0; r < SK_STRESS_ROWS; r++) {
        const uint32_t around = sk_stress_given_around(level, block, r);
        int at[3];
        sk_stress_cell(r * SK_BLOCK_N, at);
        for (int a = 0; a < SELKIE_DIM; a++)
            for (uint32_t left = level->bits[block][a][r].unknown & around; left; left &= left - 1) {
                at[0] = sk_stress_lowest(left);
                strips->right[sk_stress_strip_place(strips, block, r, a, at[0])] -=
                    given_beside(system, level, block, at, a);
            }
    }
}

static void load_block(const sk_stress_system *system, const sk_stress_strips *strips, int block)
{
    const sk_stress_level *level = strips->level;
    for (int r = 0; r < SK_STRESS_ROWS; r++)
        for (int a = 0; a < SELKIE_DIM; a++) {
            const uint32_t unknown = level->bits[block][a][r].unknown;
            const size_t here = (size_t)block * SK_BLOCK_CELLS + (size_t)r * SK_BLOCK_N;
            for (int half = 0; half < 2; half++)
                if (unknown & SK_STRESS_HALF << half)
                    load_half(strips, sk_stress_strip_place(strips, block, r, a, half),
                              sk_stress_lanes_in(unknown, half), sk_stress_half_of(system->mass[a] + here, half),
                              sk_stress_half_of(system->target[a] + here, half),
                              sk_stress_half_of(system->velocity[a] + here, half));
        }
    if (level->near_moving[block])
        load_given(system, strips, block);
}

void SK_DIM(sk_stress_load_strips)(const sk_stress_system *system, const sk_stress_options *options,
                                   const sk_stress_strips *strips)
{
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
    for (int b = 1; b < strips->level->block_count; b++)
        load_block(system, strips, b);
    SK_DIM(sk_stress_start_massless)(strips);
}

static void store_block(const sk_stress_system *system, const sk_stress_strips *strips, int block)
{
    const i8 bit = {1, 2, 4, 8, 16, 32, 64, 128};
    for (int r = 0; r < SK_STRESS_ROWS; r++)
        for (int a = 0; a < SELKIE_DIM; a++) {
            const size_t here = (size_t)block * SK_BLOCK_CELLS + (size_t)r * SK_BLOCK_N;
            const uint32_t unknown = strips->level->bits[block][a][r].unknown;
            const double *even = strips->solution + sk_stress_strip_place(strips, block, r, a, 0);
            const double *odd = strips->solution + sk_stress_strip_place(strips, block, r, a, 1);
            float *velocity = system->velocity[a] + here, row[SK_BLOCK_N];
            if (unknown)
                sk_stress_join_halves(__builtin_convertvector(*(const double_lanes *)(const void *)even, lanes),
                                      __builtin_convertvector(*(const double_lanes *)(const void *)odd, lanes), row);
            for (int n = 0; n < SK_BLOCK_N; n += 8) {
                const i8 is_unknown = ((int32_t)(unknown >> n) & bit) != 0;
                if (unknown)
                    f8_store(velocity + n, f8_select(is_unknown, f8_load(row + n), f8_load(velocity + n)));
                if (system->solved[a])
                    i8_to_bytes(system->solved[a] + here + (size_t)n, is_unknown & 1);
            }
        }
}

void SK_DIM(sk_stress_store_strips)(const sk_stress_system *system, const sk_stress_options *options,
                                    const sk_stress_strips *strips)
{
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
    for (int b = 1; b < strips->level->block_count; b++)
        store_block(system, strips, b);
}

static void add_to_block(const sk_stress_strips *strips, const float *gain, int block)
{
    const sk_stress_level *level = strips->level;
    for (int r = 0; r < SK_STRESS_ROWS; r++)
        for (int a = 0; a < SELKIE_DIM; a++) {
            const uint32_t unknown = level->bits[block][a][r].unknown;
            float change[SK_BLOCK_N];
            if (!unknown)
                continue;
            sk_stress_gain_change(level, gain, block, r, a, change);
            for (int half = 0; half < 2; half++) {
                double *right = strips->right + sk_stress_strip_place(strips, block, r, a, half);
                if (unknown & SK_STRESS_HALF << half)
                    *(double_lanes *)(void *)right -= __builtin_convertvector(
                        sk_stress_lanes_where(sk_stress_lanes_in(unknown, half), sk_stress_half_of(change, half)),
                        double_lanes);
            }
        }
}

void SK_DIM(sk_stress_add_to_strips)(const sk_stress_options *options, const sk_stress_strips *strips,
                                     const float *gain)
{
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
    for (int b = 1; b < strips->level->block_count; b++)
        add_to_block(strips, gain, b);
}
