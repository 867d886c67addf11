/* The cells around rigid bodies in a Poisson system, and the deflated space in them: see poisson_modes_dim.c. */
#include "linalg/solver.h"

#include <math.h>

/* Steps of conjugate gradients for Z. Those beyond the rings keep to the inner cells. */
enum { LOCAL_STEPS = 6, WIDE = SK_MODES_WIDE };

/* --- Reading the cells --- */

/* The row of A of an unknown of level 0. */
static void read_cell(const sk_poisson_solver *solver, int block, int c, sk_mode_cell *cell)
{
    const sk_level *level = &solver->multigrid.level[0];
    const int at[3] = {c & SK_BLOCK_MASK, c >> SK_BLOCK_LOG & SK_BLOCK_MASK, c >> 2 * SK_BLOCK_LOG};
    const int split = sk_split_index(at[0], at[1], at[2]);
    cell->at = (size_t)block * SK_BLOCK_CELLS + (size_t)split;
    cell->diagonal = sk_excess_at(level, block, split);
    for (int side = 0; side < SK_SIDES; ++side) {
        const int axis = side / 2, upper = side & 1;
        int next[3] = {at[0], at[1], at[2]}, other = block;
        next[axis] += upper ? 1 : -1;
        if (next[axis] < 0 || next[axis] >= SK_BLOCK_N)
            other = level->neighbour[block][side];
        next[axis] &= SK_BLOCK_MASK;
        const int beside = sk_split_index(next[0], next[1], next[2]);
        cell->beside[side] = (size_t)other * SK_BLOCK_CELLS + (size_t)beside;
        cell->face[side] = upper ? sk_slot_array(level, other, axis)[beside] : sk_slot_array(level, block, axis)[split];
        cell->diagonal += cell->face[side];
    }
}

/* Natural index of a cell from its index in the split layout. */
int SK_DIM(sk_modes_natural_index)(int split)
{
    const int colour = split / SK_HALF, row = split % SK_HALF / SK_ROW, lane = split % SK_ROW;
    const int j = row % SK_BLOCK_N, k = row / SK_BLOCK_N, i = 2 * lane + ((colour + j + k) & 1);
    return i + SK_BLOCK_N * (j + SK_BLOCK_N * k);
}

/* The number of a cell, which is read at its first use. `map` has the numbers plus 1. Room must be reserved. */
static int32_t number_of(sk_poisson_solver *solver, size_t at, int32_t *map)
{
    sk_modes *modes = &solver->modes;
    if (!map[at]) {
        read_cell(solver, (int)(at / SK_BLOCK_CELLS), SK_DIM(sk_modes_natural_index)((int)(at % SK_BLOCK_CELLS)),
                  &modes->cells[modes->cell_count++]);
        map[at] = (int32_t)modes->cell_count;
    }
    return map[at] - 1;
}

static selkie_code reserve_list(sk_memory *memory, sk_mode_list *list, size_t count, selkie_error *error)
{
    const char *what = "bodies";
    SK_TRY(sk_reserve(memory, (void **)&list->cell, &list->capacity[0], count, sizeof *list->cell, what, error));
    SK_TRY(sk_reserve(memory, (void **)&list->body, &list->capacity[1], count, sizeof *list->body, what, error));
    SK_TRY(sk_reserve(memory, (void **)&list->values, &list->capacity[2], count, sizeof *list->values, what, error));
    SK_TRY(sk_reserve(memory, (void **)&list->by_cell, &list->capacity[4], count, sizeof *list->by_cell, what, error));
    SK_TRY(sk_reserve(memory, (void **)&list->at, &list->capacity[5], count, sizeof *list->at, what, error));
    return sk_reserve(memory, (void **)&list->order, &list->capacity[3], count, sizeof *list->order, what, error);
}

static selkie_code reserve_cells(sk_poisson_solver *solver, size_t more, selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    return sk_reserve(solver->memory, (void **)&modes->cells, &modes->cell_capacity, modes->cell_count + more,
                      sizeof *modes->cells, "bodies", error);
}

/* The entries of a list by cell; those of a cell follow the bodies. Cells up to `cell_count` have entries. */
selkie_code SK_DIM(sk_modes_order_by_cell)(sk_memory *memory, sk_mode_list *list, size_t cell_count,
                                           selkie_error *error)
{
    list->cell_count = cell_count;
    SK_TRY(sk_reserve(memory, (void **)&list->cell_first, &list->cell_first_capacity, cell_count + 2,
                      sizeof *list->cell_first, "bodies", error));
    memset(list->cell_first, 0, (cell_count + 2) * sizeof *list->cell_first);
    for (size_t e = 0; e < list->count; ++e)
        list->cell_first[list->cell[e] + 2]++;
    for (size_t c = 0; c < cell_count; ++c)
        list->cell_first[c + 2] += list->cell_first[c + 1];
    for (size_t e = 0; e < list->count; ++e)
        list->order[list->cell_first[list->cell[e] + 1]++] = (uint32_t)e;
    return SELKIE_OK;
}

/* W in the order of the bodies, from entries in the order of the cells. */
selkie_code SK_DIM(sk_modes_read_flux)(sk_poisson_solver *solver, const sk_poisson_modes *given, int32_t *map,
                                       selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    const sk_level *level = &solver->multigrid.level[0];
    sk_mode_list *flux = &modes->flux;
    const size_t bodies = (size_t)given->body_count;
    memset(flux->first, 0, (bodies + 2) * sizeof *flux->first);
    modes->cell_count = flux->count = 0;

    /* Two passes: count the entries of each body, then write them. */
    for (int pass = 0; pass < 2; ++pass) {
        for (size_t e = 0; e < given->entry_count; ++e) {
            const sk_poisson_mode_entry *entry = &given->entries[e];
            const int block = solver->inside[entry->cell / SK_BLOCK_CELLS], c = (int)(entry->cell % SK_BLOCK_CELLS);
            const int split =
                sk_split_index(c & SK_BLOCK_MASK, c >> SK_BLOCK_LOG & SK_BLOCK_MASK, c >> 2 * SK_BLOCK_LOG);
            if (!block || !sk_is_unknown(level, block, split))
                continue;
            if (pass == 0) {
                flux->first[entry->body + 2]++;
                flux->count++;
                continue;
            }
            const size_t to = flux->first[entry->body + 1]++;
            flux->cell[to] = number_of(solver, (size_t)block * SK_BLOCK_CELLS + (size_t)split, map);
            flux->body[to] = entry->body;
            flux->at[to] = (size_t)block * SK_BLOCK_CELLS + (size_t)split;
            for (int k = 0; k < WIDE; ++k)
                flux->values[to][k] = k < modes->rank && k < SK_POISSON_MODES ? entry->flux[k] : 0.0f;
        }
        if (pass == 1)
            break;
        for (size_t b = 0; b < bodies; ++b)
            flux->first[b + 2] += flux->first[b + 1];
        SK_TRY(reserve_list(solver->memory, flux, flux->count + 1, error));
        SK_TRY(reserve_cells(solver, flux->count + 1, error));
    }
    return SK_DIM(sk_modes_order_by_cell)(solver->memory, flux, modes->cell_count, error);
}

/* --- Z --- */

/* Lists the cells of a body: those of W, then ring by ring. `local` has the places of the cells in the list of this
 * body, plus 1, and is 0 again at the end. */
selkie_code SK_DIM(sk_modes_list_body)(sk_poisson_solver *solver, int body, int rings, int32_t *map, int32_t *local,
                                       selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    sk_mode_list *space = &modes->space;
    const size_t first = space->count, own = modes->flux.first[body + 1] - modes->flux.first[body];
    SK_TRY(reserve_list(solver->memory, space, first + own + 1, error));
    for (size_t n = 0; n < own; ++n) {
        const int32_t cell = modes->flux.cell[modes->flux.first[body] + n];
        local[modes->cells[cell].at] = (int32_t)n + 1;
        space->cell[space->count++] = cell;
    }

    /* The neighbours of a ring are the next one. */
    size_t begin = first;
    modes->rings[body].count = rings;
    for (int ring = 0; ring < rings; ++ring) {
        const size_t end = space->count, most = (end - begin) * SK_SIDES;
        modes->rings[body].end[ring] = end - first;
        SK_TRY(reserve_list(solver->memory, space, end + most + 1, error));
        SK_TRY(reserve_cells(solver, most + 1, error));
        for (size_t e = begin; e < end; ++e)
            for (int side = 0; side < SK_SIDES; ++side) {
                const sk_mode_cell *cell = &modes->cells[space->cell[e]];
                const size_t other = cell->beside[side];
                if (!(cell->face[side] > 0.0f) || local[other])
                    continue;
                space->cell[space->count] = number_of(solver, other, map);
                local[other] = (int32_t)(++space->count - first);
            }
        begin = end;
    }
    modes->rings[body].end[rings] = space->count - first;

    /* Places of the neighbours; cells outside the list are the last place, of zeros. */
    const int32_t none = (int32_t)(space->count - first);
    SK_TRY(sk_reserve(solver->memory, (void **)&modes->rows, &modes->row_capacity, space->count + 1,
                      sizeof *modes->rows, "bodies", error));
    for (size_t e = first; e < space->count; ++e) {
        const sk_mode_cell *cell = &modes->cells[space->cell[e]];
        space->body[e] = body;
        space->at[e] = cell->at;
        sk_mode_row *row = &modes->rows[e];
        row->diagonal = cell->diagonal;
        row->inverse = 1.0f / cell->diagonal;
        for (int side = 0; side < SK_SIDES; ++side) {
            const int32_t place = cell->face[side] > 0.0f ? local[cell->beside[side]] : 0;
            row->beside[side] = place ? place - 1 : none;
            row->face[side] = cell->face[side];
        }
    }
    for (size_t e = first; e < space->count; ++e)
        local[modes->cells[space->cell[e]].at] = 0;
    return SELKIE_OK;
}

/* The vectors of a solve for the modes of one body, by the places of its list. */
typedef struct local_solve {
    const sk_mode_row *rows;
    float (*x)[WIDE], (*r)[WIDE], (*p)[WIDE], (*q)[WIDE];
} local_solve;

/* p = r over the diagonal + turn p, in the first `count` cells. */
static void turn_direction(const local_solve *s, const sk_mode_vector turn, size_t count)
{
    for (size_t n = 0; n < count; ++n)
        sk_mode_store(s->rows[n].inverse * sk_mode_load(s->r[n]) + turn * sk_mode_load(s->p[n]), s->p[n]);
}

/* q = A p; returns p A p. */
static sk_mode_vector multiply_direction(const local_solve *s, size_t count)
{
    sk_mode_vector curvature = {0.0f};
    for (size_t n = 0; n < count; ++n) {
        const sk_mode_row *row = &s->rows[n];
        const float *around[SK_SIDES];
        for (int side = 0; side < SK_SIDES; ++side)
            around[side] = s->p[row->beside[side]];
        const sk_mode_vector p = sk_mode_load(s->p[n]), q = sk_mode_multiply(p, around, row->face, row->diagonal);
        curvature += p * q;
        sk_mode_store(q, s->q[n]);
    }
    return curvature;
}

/* x += along p, r -= along q. p is 0 beyond the cells that it has reached. Returns r D^-1 r in the cells that the next
 * step reaches. */
static sk_mode_vector advance_solution(const local_solve *s, const sk_mode_vector along, size_t count, size_t reached)
{
    sk_mode_vector sum = {0.0f};
    for (size_t n = 0; n < count; ++n) {
        const sk_mode_vector left = sk_mode_load(s->r[n]) - along * sk_mode_load(s->q[n]);
        sk_mode_store(sk_mode_load(s->x[n]) + along * sk_mode_load(s->p[n]), s->x[n]);
        sk_mode_store(left, s->r[n]);
        sum += (n < reached ? s->rows[n].inverse : 0.0f) * left * left;
    }
    return sum;
}

/* Solves A z = w for all modes of a body, approximately: Z, and A Z = w - r. `scratch` has 3 (entries + 1) vectors. */
void SK_DIM(sk_modes_solve)(sk_modes *modes, int body, float (*scratch)[SK_MODES_WIDE])
{
    const size_t first = modes->space.first[body], count = modes->space.first[body + 1] - first,
                 own = modes->flux.first[body + 1] - modes->flux.first[body];
    const float(*flux)[WIDE] = (const float(*)[WIDE])modes->flux.values + modes->flux.first[body];
    float(*image)[WIDE] = modes->image + first;
    sk_mode_vector turn = {0.0f}, rz = {0.0f}; /* rz: r D^-1 r */
    local_solve s = {.rows = modes->rows + first, .x = modes->space.values + first, .r = scratch};
    s.p = s.r + count + 1;
    s.q = s.p + count + 1;
    memset(scratch, 0, 3 * (count + 1) * sizeof *scratch);
    memset(s.x, 0, count * sizeof *s.x);
    memcpy(s.r, flux, own * sizeof *s.r);
    for (size_t n = 0; n < own; ++n)
        for (int k = 0; k < WIDE; ++k)
            rz[k] += s.rows[n].inverse * s.r[n][k] * s.r[n][k];

    /* Each step reaches one ring more; the last ring has residuals alone. */
    const sk_mode_rings *rings = &modes->rings[body];
    size_t reached = rings->end[0];
    for (int step = 0; step < LOCAL_STEPS; ++step) {
        const size_t next = rings->end[step < rings->count ? step + 1 : rings->count];
        turn_direction(&s, turn, reached);
        sk_mode_vector along = multiply_direction(&s, next);
        const sk_mode_vector before = rz;
        for (int k = 0; k < WIDE; ++k)
            along[k] = along[k] > 0.0f ? before[k] / along[k] : 0.0f;
        reached = rings->end[step + 1 < rings->count ? step + 1 : rings->count - 1];
        rz = advance_solution(&s, along, next, reached);
        for (int k = 0; k < WIDE; ++k)
            turn[k] = before[k] > 0.0f ? rz[k] / before[k] : 0.0f;
    }
    for (size_t n = 0; n < count; ++n)
        for (int k = 0; k < WIDE; ++k)
            image[n][k] = (n < own ? flux[n][k] : 0.0f) - s.r[n][k];
}
