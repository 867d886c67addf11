/* The cells around rigid bodies in a Poisson system, and the deflated space in them: see poisson_modes_dim.c. */
#include "linalg/solver.h"

#include <math.h>

/* Steps for Z. Those beyond the rings keep to the inner cells. */
enum { LOCAL_STEPS = SELKIE_DIM == 3 ? 7 : 8, WIDE = SK_MODES_WIDE, RANK = SK_MODES_RANK };

/* Eigenvalues of D^-1 A, with D the diagonal of A, that these steps damp. */
#define LOWEST 0.05f
#define HIGHEST 2.0f

/* Movers that change the system by less than this part are left to the multigrid cycle. */
static const double weak_part = 0.15;

/* --- Reading the cells --- */

/* Natural index of a cell from its index in the split layout. */
int SK_DIM(sk_modes_natural_index)(int split)
{
    const int colour = split / SK_HALF, row = split % SK_HALF / SK_ROW, lane = split % SK_ROW;
    const int j = row % SK_BLOCK_N, k = row / SK_BLOCK_N, i = 2 * lane + ((colour + j + k) & 1);
    return i + SK_BLOCK_N * (j + SK_BLOCK_N * k);
}

/* The cells beside each cell of a block, both by their index in the split layout; below 0: -1 minus that index, in the
 * next block. */
typedef struct beside_table {
    int16_t cell[SK_BLOCK_CELLS][SK_SIDES];
} beside_table;

static void fill_table(beside_table *table)
{
    for (int split = 0; split < SK_BLOCK_CELLS; ++split) {
        const int c = SK_DIM(sk_modes_natural_index)(split);
        const int place[3] = {c & SK_BLOCK_MASK, c >> SK_BLOCK_LOG & SK_BLOCK_MASK, c >> 2 * SK_BLOCK_LOG};
        for (int side = 0; side < SK_SIDES; ++side) {
            int next[3] = {place[0], place[1], place[2]};
            next[side / 2] += side & 1 ? 1 : -1;
            const int leaves = next[side / 2] < 0 || next[side / 2] >= SK_BLOCK_N;
            next[side / 2] &= SK_BLOCK_MASK;
            const int there = sk_split_index(next[0], next[1], next[2]);
            table->cell[split][side] = (int16_t)(leaves ? -1 - there : there);
        }
    }
}

/* The row of A of an unknown of level 0. Its cells beside it are indices in the fields. */
static inline void read_cell(const sk_level *level, const beside_table *table, uint32_t at, sk_mode_row *row)
{
    const int block = (int)(at / SK_BLOCK_CELLS), split = (int)(at % SK_BLOCK_CELLS);
    const int16_t *cells = table->cell[split];
    const float *own = sk_slot_array(level, block, 0);
    float diagonal = sk_excess_at(level, block, split);
    for (int side = 0; side < SK_SIDES; ++side) {
        const int axis = side / 2, upper = side & 1, cell = cells[side];
        int other = block, there = cell;
        float face = own[axis * SK_BLOCK_CELLS + (upper && cell >= 0 ? cell : split)];
        if (cell < 0) { /* one cell of eight, of four or two in corners */
            other = level->neighbour[block][side];
            there = -1 - cell;
            face = upper ? sk_slot_array(level, other, axis)[there] : face;
        }
        row->beside[side] = (int32_t)((uint32_t)other * SK_BLOCK_CELLS + (uint32_t)there);
        row->face[side] = face;
        diagonal += face;
    }
    row->diagonal = diagonal;
    row->inverse = 1.0f / diagonal;
}

static selkie_code reserve_list(sk_memory *memory, sk_mode_list *list, size_t count, selkie_error *error)
{
    const char *what = "bodies";
    SK_TRY(sk_reserve(memory, (void **)&list->body, &list->capacity[0], count, sizeof *list->body, what, error));
    SK_TRY(sk_reserve(memory, (void **)&list->values, &list->capacity[1], count, sizeof *list->values, what, error));
    SK_TRY(sk_reserve(memory, (void **)&list->at, &list->capacity[2], count, sizeof *list->at, what, error));
    return sk_reserve(memory, (void **)&list->next, &list->capacity[3], count, sizeof *list->next, what, error);
}

/* Each thread links the cells of its own blocks. */
void SK_DIM(sk_modes_link_cells)(const sk_poisson_solver *solver, sk_mode_list *list, uint32_t *map, int threads)
{
    const size_t cells = ((size_t)solver->multigrid.level[0].block_count + 1) * SK_BLOCK_CELLS;
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
    for (int t = 0; t < threads; ++t) {
        const size_t begin = cells * (size_t)t / (size_t)threads, end = cells * ((size_t)t + 1) / (size_t)threads;
        memset(map + begin, 0, (end - begin) * sizeof *map);
        for (size_t e = 0; e < list->count; ++e) {
            const size_t at = list->at[e];
            if (at < begin || at >= end)
                continue;
            const uint32_t known = map[at], own = (uint32_t)e;
            if (!known) {
                map[at] = own + 1;
                list->next[e] = own | SK_MODE_FIRST;
            } else {
                list->next[e] = list->next[known - 1] & ~SK_MODE_FIRST;
                list->next[known - 1] = own | SK_MODE_FIRST;
            }
        }
    }
}

/* A mover that cannot move has no part in the system. */
static int can_move(const sk_modes *modes, int body)
{
    int can = 0;
    for (int i = 0; i < RANK; ++i)
        can |= modes->response[body][i][i] > 0.0;
    return can;
}

/* The unknown of an entry in the fields of level 0; 0 = none. */
static uint32_t unknown_of(const sk_poisson_solver *solver, const sk_poisson_mode_entry *entry)
{
    const int block = solver->inside[entry->cell / SK_BLOCK_CELLS], c = (int)(entry->cell % SK_BLOCK_CELLS);
    const int split = sk_split_index(c & SK_BLOCK_MASK, c >> SK_BLOCK_LOG & SK_BLOCK_MASK, c >> 2 * SK_BLOCK_LOG);
    return block && sk_is_unknown(&solver->multigrid.level[0], block, split)
               ? (uint32_t)block * SK_BLOCK_CELLS + (uint32_t)split
               : 0;
}

/* W in the order of the movers, from entries in the order of the cells. */
selkie_code SK_DIM(sk_modes_read_flux)(sk_poisson_solver *solver, const sk_poisson_modes *given, selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    sk_mode_list *flux = &modes->flux;
    const int parts = modes->parts_of_body;
    const size_t movers = (size_t)(given->body_count * parts);
    memset(flux->first, 0, (movers + 2) * sizeof *flux->first);

    /* Two passes: count the entries of each mover, then write them. */
    for (int pass = 0; pass < 2; ++pass) {
        for (size_t e = 0; e < given->entry_count; ++e) {
            const sk_poisson_mode_entry *entry = &given->entries[e];
            const uint32_t at = unknown_of(solver, entry);
            for (int part = 0; at && part < parts; ++part) {
                const int mover = entry->body * parts + part;
                if (!can_move(modes, mover))
                    continue;
                if (pass == 0) {
                    flux->first[mover + 2]++;
                    continue;
                }
                const size_t to = flux->first[mover + 1]++;
                flux->body[to] = mover;
                flux->at[to] = at;
                for (int k = 0; k < WIDE; ++k) {
                    const int mode = part * RANK + k;
                    flux->values[to][k] = k < RANK && mode < given->rank ? entry->flux[mode] : 0.0f;
                }
            }
        }
        if (pass == 1)
            break;
        for (size_t m = 0; m < movers; ++m)
            flux->first[m + 2] += flux->first[m + 1];
        flux->count = flux->first[movers + 1];
        SK_TRY(reserve_list(solver->memory, flux, flux->count + 1, error));
    }
    return SELKIE_OK;
}

/* --- The cells of Z --- */

/* Room for the cells of a part. Threads take turns: the memory of the solver counts its bytes. */
static selkie_code reserve_part(sk_memory *memory, sk_mode_part *part, size_t count, size_t table, selkie_error *error)
{
    selkie_code code = SELKIE_OK;
    if (count <= part->at_capacity && count <= part->row_capacity && count <= part->place_capacity &&
        table <= part->table_capacity)
        return SELKIE_OK;
#pragma omp critical(sk_modes_reserve)
    {
        code = sk_reserve(memory, (void **)&part->at, &part->at_capacity, count, sizeof *part->at, "bodies", error);
        if (code == SELKIE_OK)
            code = sk_reserve(memory, (void **)&part->rows, &part->row_capacity, count, sizeof *part->rows, "bodies",
                              error);
        if (code == SELKIE_OK)
            code = sk_reserve(memory, (void **)&part->place, &part->place_capacity, count, sizeof *part->place,
                              "bodies", error);
        if (code == SELKIE_OK)
            code = sk_reserve(memory, (void **)&part->table, &part->table_capacity, table, sizeof *part->table,
                              "bodies", error);
    }
    return code;
}

/* Coordinates of a cell in the whole grid. */
static void find_coordinates(const sk_level *level, size_t at, int32_t cell[3])
{
    const int c = SK_DIM(sk_modes_natural_index)((int)(at % SK_BLOCK_CELLS));
    const int32_t *block = level->coordinates[at / SK_BLOCK_CELLS];
    cell[0] = block[0] * SK_BLOCK_N + (c & SK_BLOCK_MASK);
    cell[1] = block[1] * SK_BLOCK_N + (c >> SK_BLOCK_LOG & SK_BLOCK_MASK);
    cell[2] = SELKIE_DIM == 3 ? block[2] * SK_BLOCK_N + (c >> 2 * SK_BLOCK_LOG) : 0;
}

/* The box of cells that a list can reach, and steps from a place in it to those beside it. A list across joined sides
 * of the domain, or of a very large body, has no box. */
typedef struct list_box {
    int32_t low[3];
    size_t size[3], volume; /* volume 0 = none: a hash of the cells */
    int64_t step[SK_SIDES];
} list_box;

static list_box find_box(const sk_level *level, const uint32_t *at, size_t count, int rings)
{
    enum { MOST_VOLUME = 1 << 20 };
    list_box box = {.low = {INT32_MAX, INT32_MAX, INT32_MAX}, .volume = 1};
    int32_t high[3] = {INT32_MIN, INT32_MIN, INT32_MIN}, cell[3];
    for (size_t n = 0; n < count; ++n) {
        find_coordinates(level, at[n], cell);
        for (int d = 0; d < 3; ++d) {
            box.low[d] = cell[d] < box.low[d] ? cell[d] : box.low[d];
            high[d] = cell[d] > high[d] ? cell[d] : high[d];
        }
    }
    int joined = 0;
    for (int d = 0; d < 3; ++d) {
        const int32_t around = d < SELKIE_DIM ? rings + 1 : 0;
        box.size[d] = (size_t)((int64_t)high[d] - box.low[d] + 2 * around + 1);
        box.low[d] -= around;
        joined |= d < SELKIE_DIM && level->joined[d];
        if (d < SELKIE_DIM) {
            box.step[2 * d + 1] = (int64_t)box.volume;
            box.step[2 * d] = -box.step[2 * d + 1];
        }
        box.volume = box.volume && box.size[d] <= MOST_VOLUME / box.volume ? box.volume * box.size[d] : 0;
    }
    box.volume = joined || !count ? 0 : box.volume;
    return box;
}

static uint32_t place_in_box(const list_box *box, const sk_level *level, size_t at)
{
    int32_t cell[3];
    if (!box->volume)
        return 0;
    find_coordinates(level, at, cell);
    return (uint32_t)((size_t)(cell[0] - box->low[0]) +
                      box->size[0] *
                          ((size_t)(cell[1] - box->low[1]) + box->size[1] * (size_t)(cell[2] - box->low[2])));
}

/* The place of a cell in the list plus 1, or where it is to be written: at `place` in the box, or by a hash. */
static inline uint32_t *slot_of(const sk_mode_part *part, const list_box *box, size_t first, uint32_t at,
                                uint32_t place)
{
    if (box->volume)
        return &part->table[place];
    const size_t mask = part->table_size - 1;
    size_t slot = ((size_t)at * (size_t)2654435769u >> 8) & mask;
    while (part->table[slot] && part->at[first + part->table[slot] - 1] != at)
        slot = (slot + 1) & mask;
    return &part->table[slot];
}

/* A table of the box, or one that is at most half full with `cells`, with the cells from `first` on in it. */
static selkie_code size_table(sk_memory *memory, sk_mode_part *part, const list_box *box, size_t first, size_t cells,
                              selkie_error *error)
{
    size_t size = part->table_size < 64 ? 64 : part->table_size;
    while (!box->volume && size < 2 * cells)
        size *= 2;
    size = box->volume ? box->volume : size;
    if (size == part->table_size)
        return SELKIE_OK;
    SK_TRY(reserve_part(memory, part, part->count, size, error));
    memset(part->table, 0, size * sizeof *part->table);
    part->table_size = size;
    for (size_t e = first; e < part->count; ++e)
        *slot_of(part, box, first, part->at[e], part->place[e]) = (uint32_t)(e - first) + 1;
    return SELKIE_OK;
}

/* The cells beside those of a list from `begin` up to `end`. New ones join the list if it `grows`; it has room for all
 * of them. No branches: they could not be predicted. The counters are local, since a compiler must assume that a store
 * changes those of the part. The rows have the cells beside them by their indices in the fields. */
static inline __attribute__((always_inline)) void link_ring(const list_box *box, int has_box, size_t first,
                                                            size_t begin, size_t end, int grows, sk_mode_part *part)
{
    const sk_mode_part own = *part;
    int64_t step[SK_SIDES];
    size_t count = own.count;
    memcpy(step, box->step, sizeof step);
    for (size_t e = begin; e < end; ++e) {
        sk_mode_row *row = &own.rows[e];
        const uint32_t here = own.at[e], place_here = own.place[e];
        for (int side = 0; side < SK_SIDES; ++side) {
            const int is_open = row->face[side] > 0.0f;
            const uint32_t place = is_open ? (uint32_t)((int64_t)place_here + step[side]) : place_here,
                           beside = is_open ? (uint32_t)row->beside[side] : here;
            uint32_t *slot = has_box ? &own.table[place] : slot_of(&own, box, first, beside, place);
            const uint32_t found = *slot, fresh = (uint32_t)(!found && grows);
            own.at[count] = beside;
            own.place[count] = place;
            count += fresh;
            const uint32_t number = fresh ? (uint32_t)(count - first) : found;
            *slot = number;
            row->beside[side] = is_open ? (int32_t)number - 1 : -1;
        }
    }
    part->count = count;
}

/* The rows of the cells of a list from `begin` up to `end`, and the cells beside them. */
static void list_ring(const sk_level *level, const beside_table *table, const list_box *box, size_t first, size_t begin,
                      size_t end, int grows, sk_mode_part *part)
{
    for (size_t e = begin; e < end; ++e)
        read_cell(level, table, part->at[e], &part->rows[e]);
    if (box->volume)
        link_ring(box, 1, first, begin, end, grows, part);
    else
        link_ring(box, 0, first, begin, end, grows, part);
}

/* How much a mover changes the system: the trace of R W^T D^-1 W, with D the diagonal of A. `rows` are those of W. */
static double strength_of(const sk_modes *modes, int body, const sk_mode_row *rows)
{
    double sums[RANK][RANK] = {{0.0}}, trace = 0.0;
    for (size_t e = modes->flux.first[body]; e < modes->flux.first[body + 1]; ++e) {
        const float *w = modes->flux.values[e], inverse = rows[e - modes->flux.first[body]].inverse;
        for (int i = 0; i < RANK; ++i)
            for (int j = 0; j < RANK; ++j)
                sums[i][j] += (double)(inverse * w[i] * w[j]);
    }
    for (int i = 0; i < RANK; ++i)
        for (int j = 0; j < RANK; ++j)
            trace += modes->response[body][i][j] * sums[j][i];
    return trace;
}

/* Lists the cells of a mover: those of W, then ring by ring, and their rows. */
static selkie_code list_body(sk_poisson_solver *solver, const beside_table *table, int body, int rings,
                             sk_mode_part *part, selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    const sk_level *level = &solver->multigrid.level[0];
    const size_t first = part->count, own = modes->flux.first[body + 1] - modes->flux.first[body];
    const uint32_t *flux_at = modes->flux.at + modes->flux.first[body];
    const list_box box = find_box(level, flux_at, own, rings);
    SK_TRY(reserve_part(solver->memory, part, first + own + 1, 0, error));
    for (size_t n = 0; n < own; ++n) {
        part->at[part->count] = flux_at[n];
        part->place[part->count++] = place_in_box(&box, level, flux_at[n]);
    }
    part->table_size = 0;
    SK_TRY(size_table(solver->memory, part, &box, first, own * (size_t)(rings + 2), error));

    /* The neighbours of a ring are the next one. The last ring adds none. */
    size_t begin = first;
    modes->rings[body].count = rings;
    for (int ring = 0; ring <= rings; ++ring) {
        const size_t end = part->count, most = ring < rings ? (end - begin) * SK_SIDES : 0;
        modes->rings[body].end[ring] = end - first;
        SK_TRY(reserve_part(solver->memory, part, end + most + 1, 0, error));
        SK_TRY(size_table(solver->memory, part, &box, first, end - first + most, error));
        list_ring(level, table, &box, first, begin, end, ring < rings, part);
        begin = end;
    }
    return SELKIE_OK;
}

/* Rings around a body with `own` entries of W, at most `rings`: one around very large bodies, and fewer around small
 * ones in 2D, where the pressure of a moving body reaches about as far as the body is wide. */
static int rings_of_body(size_t own, int rings, size_t most_entries)
{
    enum { ENTRIES_OF_RING = 10, FEWEST = 3 };
    if (own * (size_t)(rings + 1) > most_entries)
        return 1;
    const size_t by_size = (own + ENTRIES_OF_RING / 2) / ENTRIES_OF_RING;
    const int few = by_size < FEWEST ? FEWEST : by_size < (size_t)rings ? (int)by_size : rings;
    return SELKIE_DIM == 2 && few < rings ? few : rings;
}

/* Lists the cells around the movers of a body, which are the same, for those that are to be deflated. */
static selkie_code list_movers(sk_poisson_solver *solver, const beside_table *table, int first_mover, int rings,
                               size_t most_entries, sk_mode_part *part, selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    const size_t from = part->count;
    int listed = -1, any = 0;
    for (int m = first_mover; m < first_mover + modes->parts_of_body; ++m) {
        const size_t own = modes->flux.first[m + 1] - modes->flux.first[m];
        if (own && listed < 0) {
            SK_TRY(list_body(solver, table, m, rings_of_body(own, rings, most_entries), part, error));
            listed = m;
        }
        const int weak = !own || strength_of(modes, m, part->rows + from) < weak_part;
        if (!weak)
            modes->rings[m] = modes->rings[listed];
        modes->rings[m].from = from;
        modes->rings[m].is_weak = weak;
        any |= !weak;
    }
    for (int m = first_mover; m < first_mover + modes->parts_of_body; ++m)
        if (modes->rings[m].is_weak)
            modes->rings[m] = (sk_mode_rings){.count = 1, .from = from};
    part->count = any ? part->count : from;
    return SELKIE_OK;
}

/* The first mover of a part, which is the first of a body: about the same number of entries of W in each. */
static int part_of(const sk_modes *modes, int part, int parts)
{
    const size_t goal = modes->flux.count * (size_t)part / (size_t)parts;
    int body = 0;
    while (body < modes->body_count && modes->flux.first[body] < goal)
        body += modes->parts_of_body;
    return part == parts ? modes->body_count : body;
}

/* Copies the lists of a part behind those of the parts before. */
static void take_part(sk_modes *modes, const sk_mode_part *part, int first_body, int last_body)
{
    sk_mode_list *space = &modes->space;
    for (int b = first_body; b < last_body; ++b) {
        const size_t first = space->first[b], count = space->first[b + 1] - first, from = modes->rings[b].from;
        modes->rows[b] = part->rows + from;
        memcpy(space->at + first, part->at + from, count * sizeof *part->at);
        for (size_t e = first; e < first + count; ++e)
            space->body[e] = b;
    }
}

selkie_code SK_DIM(sk_modes_list_bodies)(sk_poisson_solver *solver, int rings, size_t most_entries, int threads,
                                         selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    sk_mode_list *space = &modes->space;
    const size_t before = modes->part_capacity;
    selkie_code result = SELKIE_OK;
    beside_table table;
    fill_table(&table);
    SK_TRY(sk_reserve(solver->memory, (void **)&modes->parts, &modes->part_capacity, (size_t)threads,
                      sizeof *modes->parts, "bodies", error));
    for (size_t t = before; t < modes->part_capacity; ++t)
        modes->parts[t] = (sk_mode_part){0};
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
    for (int t = 0; t < threads; ++t) {
        selkie_code code = SELKIE_OK;
        selkie_error own_error = {0};
        modes->parts[t].count = 0;
        for (int b = part_of(modes, t, threads); b < part_of(modes, t + 1, threads) && code == SELKIE_OK;
             b += modes->parts_of_body)
            code = list_movers(solver, &table, b, rings, most_entries, &modes->parts[t], &own_error);
        if (code == SELKIE_OK)
            continue;
#pragma omp critical(sk_modes_reserve)
        {
            result = code;
            *error = own_error;
        }
    }
    if (result != SELKIE_OK)
        return result;

    /* All lists in the order of the bodies. */
    space->first[0] = 0;
    for (int b = 0; b < modes->body_count; ++b)
        space->first[b + 1] = space->first[b] + modes->rings[b].end[modes->rings[b].count];
    space->count = space->first[modes->body_count];
    SK_TRY(reserve_list(solver->memory, space, space->count + 1, error));
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
    for (int t = 0; t < threads; ++t)
        take_part(modes, &modes->parts[t], part_of(modes, t, threads), part_of(modes, t + 1, threads));
    return SELKIE_OK;
}

void SK_DIM(sk_modes_release_lists)(sk_modes *modes, sk_memory *memory)
{
    for (int i = 0; i < 2; ++i) {
        sk_mode_list *list = i ? &modes->space : &modes->flux;
        sk_release(memory, list->body);
        sk_release(memory, list->values);
        sk_release(memory, list->at);
        sk_release(memory, list->next);
    }
    for (size_t t = 0; t < modes->part_capacity; ++t) {
        sk_release(memory, modes->parts[t].at);
        sk_release(memory, modes->parts[t].rows);
        sk_release(memory, modes->parts[t].place);
        sk_release(memory, modes->parts[t].table);
    }
    sk_release(memory, modes->parts);
}

/* --- Z --- */

/* (A x) of a cell for all modes of a body. */
static inline sk_mode_vector multiply_cell(const sk_mode_row *row, float (*x)[WIDE], size_t n)
{
    const float *around[SK_SIDES];
    for (int side = 0; side < SK_SIDES; ++side)
        around[side] = x[row->beside[side]];
    return sk_mode_multiply(sk_mode_load(x[n]), around, row->face, row->diagonal);
}

/* The vectors of a solve for the modes of one body, by the places of its list. */
typedef struct local_solve {
    const sk_mode_row *rows;
    const float (*flux)[WIDE]; /* of the first `own` cells, 0 in the others */
    size_t own;
    float (*x)[WIDE], (*next)[WIDE], (*way)[WIDE];
} local_solve;

/* One step of the Chebyshev iteration in the first `count` cells: way = again way + more D^-1 (w - A x), next = x +
 * way.
 */
static void take_step(const local_solve *s, float again, float more, size_t count)
{
    for (size_t n = 0; n < count; ++n) {
        const sk_mode_vector x = sk_mode_load(s->x[n]), image = multiply_cell(&s->rows[n], s->x, n);
        const sk_mode_vector left = n < s->own ? sk_mode_load(s->flux[n]) - image : -image;
        const sk_mode_vector way = again * sk_mode_load(s->way[n]) + more * s->rows[n].inverse * left;
        sk_mode_store(way, s->way[n]);
        sk_mode_store(x + way, s->next[n]);
    }
}

/* Solves A z = w for all modes of a body, approximately: Z and A Z. Chebyshev steps need no sums: one pass a step,
 * where conjugate gradients have three. `scratch` has 3 (entries + 1) vectors. */
void SK_DIM(sk_modes_solve)(sk_modes *modes, int body, float (*scratch)[SK_MODES_WIDE])
{
    const size_t first = modes->space.first[body], count = modes->space.first[body + 1] - first;
    if (!count)
        return;
    local_solve s = {.rows = modes->rows[body],
                     .flux = (const float(*)[WIDE])modes->flux.values + modes->flux.first[body],
                     .own = modes->flux.first[body + 1] - modes->flux.first[body]};
    s.x = scratch + 1; /* x[-1] = 0: the cells outside the list */
    s.next = s.x + count + 1;
    s.way = s.next + count;
    memset(scratch, 0, 3 * (count + 1) * sizeof *scratch);

    /* The eigenvalues of D^-1 A lie below 2. */
    const float middle = 0.5f * (HIGHEST + LOWEST), half = 0.5f * (HIGHEST - LOWEST), ratio = middle / half;
    float factor = 1.0f / ratio;
    for (size_t n = 0; n < s.own; ++n) {
        const sk_mode_vector start = s.rows[n].inverse / middle * sk_mode_load(s.flux[n]);
        sk_mode_store(start, s.way[n]);
        sk_mode_store(start, s.x[n]);
    }

    /* Each step reaches one ring more; the last ring has values of A Z alone. */
    const sk_mode_rings *rings = &modes->rings[body];
    for (int step = 1; step < LOCAL_STEPS; ++step) {
        const float before = factor;
        factor = 1.0f / (2.0f * ratio - before);
        take_step(&s, factor * before, 2.0f * factor / half, rings->end[step < rings->count ? step : rings->count - 1]);
        float(*swap)[WIDE] = s.x;
        s.x = s.next;
        s.next = swap;
    }
    memcpy(modes->space.values + first, s.x, count * sizeof *s.x);
    for (size_t n = 0; n < count; ++n)
        sk_mode_store(multiply_cell(&s.rows[n], s.x, n), modes->image[first + n]);
}
