/* Rigid bodies in a Poisson system: A' = A + sum of W R W^T, a term of low rank.
 *
 * A light body makes its term large, and the multigrid cycle M knows only A. A space Z is therefore deflated (Tang et
 * al. 2009, A-DEF2): with E = Z^T A' Z,
 *
 *   z = M r + Z E^-1 (Z^T r - (A' Z)^T M r),
 *
 * from a start with Z^T r = 0. The best space is A^-1 W, the pressure around each moving body. It falls off within
 * about the size of the body. Z is A^-1 W on the cells within a few cells of the body, by some steps of conjugate
 * gradients. E is dense for bodies whose cells touch and zero between others.
 *
 * The modes live in few cells, and one thread computes with them.
 */
#include "linalg/solver.h"

#include <math.h>
#include "linalg/modes_kernels.h"

/* Cells around a body in which its modes are solved, steps of the solve, and the largest cluster: its factor costs the
 * cube of its bodies. */
enum { RINGS = 4, LOCAL_STEPS = 6, MOST_IN_CLUSTER = 16, MOST_CELLS_OF_BODY = 20000 };

static size_t row_of(const sk_modes *modes, int body)
{
    return (size_t)body * (size_t)modes->rank;
}

/* --- W and Z --- */

/* sums += values of the list times x, for a range of bodies. */
static void gather(const sk_modes *modes, const sk_mode_list *list, int from, int to, const float *x, double *sums)
{
    for (size_t e = list->first[from]; e < list->first[to]; ++e) {
        const sk_mode_entry *entry = &list->entries[e];
        const double value = (double)x[modes->cells[entry->cell].at];
        for (int k = 0; k < modes->rank; ++k)
            sums[row_of(modes, entry->body) + (size_t)k] += (double)entry->value[k] * value;
    }
}

static void gather_all(const sk_modes *modes, const sk_mode_list *list, const float *x, double *sums)
{
    memset(sums, 0, row_of(modes, modes->body_count) * sizeof *sums);
    gather(modes, list, 0, modes->body_count, x, sums);
}

/* x += factor times the list times the velocities of the modes. */
static void spread(const sk_modes *modes, const sk_mode_list *list, const double *velocity, double factor, float *x)
{
    for (size_t e = 0; e < list->count; ++e) {
        const sk_mode_entry *entry = &list->entries[e];
        x[modes->cells[entry->cell].at] +=
            (float)(factor * sk_mode_flux(entry->value, velocity + row_of(modes, entry->body), modes->rank));
    }
}

/* The same into values of the cells. */
static void spread_to_cells(const sk_modes *modes, const sk_mode_list *list, int from, int to, const double *velocity)
{
    for (size_t e = list->first[from]; e < list->first[to]; ++e) {
        const sk_mode_entry *entry = &list->entries[e];
        modes->at_cells[entry->cell] += sk_mode_flux(entry->value, velocity + row_of(modes, entry->body), modes->rank);
    }
}

static double row_at(const sk_modes *modes, size_t c, const float *x)
{
    const sk_mode_cell *cell = &modes->cells[c];
    return sk_mode_row(x, cell->at, cell->beside, cell->face, cell->excess);
}

/* moved = R sums of one body. */
static void respond(const sk_modes *modes, int body, const double *sums, double *moved)
{
    const size_t first = row_of(modes, body);
    for (int i = 0; i < modes->rank; ++i) {
        moved[first + (size_t)i] = 0.0;
        for (int j = 0; j < modes->rank; ++j)
            moved[first + (size_t)i] += modes->response[body][i][j] * sums[first + (size_t)j];
    }
}

double SK_DIM(sk_modes_apply)(sk_modes *modes, const float *x, float *y, double factor)
{
    double energy = 0.0;
    gather_all(modes, &modes->flux, x, modes->sums);
    for (int b = 0; b < modes->body_count; ++b)
        respond(modes, b, modes->sums, modes->moved);
    for (size_t i = 0; i < row_of(modes, modes->body_count); ++i)
        energy += modes->sums[i] * modes->moved[i];
    spread(modes, &modes->flux, modes->moved, factor, y);
    return energy;
}

/* --- E --- */

static int size_of(const sk_modes *modes, const sk_mode_cluster *cluster)
{
    return cluster->body_count * modes->rank;
}

/* One row of the lower half of E, up to the body's own modes: A' times a mode of Z in the cells of the bodies up to
 * this one, then Z^T of it. `field` is 0 elsewhere. */
static void find_column(sk_modes *modes, const sk_mode_cluster *cluster, int body, int mode, float *field,
                        double *column)
{
    const int32_t *bodies = modes->bodies_of + cluster->first_body;
    const sk_mode_list *space = &modes->space;
    int up_to = 0;
    while (up_to < cluster->body_count && bodies[up_to] <= body)
        up_to++;
    for (size_t e = space->first[body]; e < space->first[body + 1]; ++e)
        field[modes->cells[space->entries[e].cell].at] = space->entries[e].value[mode];

    /* The motion of the bodies that it causes. */
    for (int n = 0; n < cluster->body_count; ++n) {
        memset(modes->sums + row_of(modes, bodies[n]), 0, (size_t)modes->rank * sizeof(double));
        gather(modes, &modes->flux, bodies[n], bodies[n] + 1, field, modes->sums);
        respond(modes, bodies[n], modes->sums, modes->moved);
    }

    /* A' times the mode, a cell at a time. */
    for (int n = 0; n < up_to; ++n)
        for (size_t e = space->first[bodies[n]]; e < space->first[bodies[n] + 1]; ++e)
            modes->at_cells[space->entries[e].cell] = row_at(modes, (size_t)space->entries[e].cell, field);
    for (int n = 0; n < cluster->body_count; ++n)
        spread_to_cells(modes, &modes->flux, bodies[n], bodies[n] + 1, modes->moved);

    /* Z^T of it. */
    memset(column, 0, (size_t)size_of(modes, cluster) * sizeof *column);
    for (int n = 0; n < up_to; ++n)
        for (size_t e = space->first[bodies[n]]; e < space->first[bodies[n] + 1]; ++e)
            for (int k = 0; k < modes->rank; ++k)
                column[n * modes->rank + k] +=
                    (double)space->entries[e].value[k] * modes->at_cells[space->entries[e].cell];
    for (size_t e = space->first[body]; e < space->first[body + 1]; ++e)
        field[modes->cells[space->entries[e].cell].at] = 0.0f;
}

/* Cholesky factor in place (lower half). Modes without flux of their own, such as the rotation of a disc, drop out:
 * their row becomes that of the identity with an infinite pivot, marked by 0. */
static void factorise(double *e, int n)
{
    const size_t width = (size_t)n; /* squares of the number of rows of 7,800 bodies leave the range of an int */
    for (int j = 0; j < n; ++j) {
        double *own = e + (size_t)j * width;
        const double before = own[j];
        double pivot = before;
        for (int k = 0; k < j; ++k)
            pivot -= own[k] * own[k];
        const int drops = !(pivot > 1e-9 * before) || !(before > 0.0);
        own[j] = drops ? 0.0 : sqrt(pivot);
        for (int i = j + 1; i < n; ++i) {
            double *row = e + (size_t)i * width, sum = row[j];
            for (int k = 0; k < j; ++k)
                sum -= row[k] * own[k];
            row[j] = drops ? 0.0 : sum / own[j];
        }
    }
}

static void solve_factor(const double *e, int n, double *x)
{
    const size_t width = (size_t)n;
    for (int i = 0; i < n; ++i) {
        const double *row = e + (size_t)i * width;
        for (int k = 0; k < i; ++k)
            x[i] -= row[k] * x[k];
        x[i] = row[i] > 0.0 ? x[i] / row[i] : 0.0;
    }
    for (int i = n - 1; i >= 0; --i) {
        const double pivot = e[(size_t)i * width + (size_t)i];
        for (int k = i + 1; k < n; ++k)
            x[i] -= e[(size_t)k * width + (size_t)i] * x[k];
        x[i] = pivot > 0.0 ? x[i] / pivot : 0.0;
    }
}

/* x = E^-1 x, in the order of the bodies. */
static void solve_modes(sk_modes *modes, double *x)
{
    for (int q = 0; q < modes->cluster_count; ++q) {
        const sk_mode_cluster *cluster = &modes->clusters[q];
        const int n = size_of(modes, cluster);
        const size_t bytes = (size_t)modes->rank * sizeof(double);
        for (int b = 0; b < cluster->body_count; ++b)
            memcpy(modes->columns + b * modes->rank, x + row_of(modes, modes->bodies_of[cluster->first_body + b]),
                   bytes);
        solve_factor(modes->factor + cluster->matrix, n, modes->columns);
        for (int b = 0; b < cluster->body_count; ++b)
            memcpy(x + row_of(modes, modes->bodies_of[cluster->first_body + b]), modes->columns + b * modes->rank,
                   bytes);
    }
}

void SK_DIM(sk_modes_start)(sk_modes *modes, const float *r, float *x)
{
    gather_all(modes, &modes->space, r, modes->sums);
    solve_modes(modes, modes->sums);
    spread(modes, &modes->space, modes->sums, 1.0, x);
}

double SK_DIM(sk_modes_deflate)(sk_modes *modes, const float *r, float *z)
{
    const size_t size = row_of(modes, modes->body_count);
    double *wanted = modes->sums + size, change = 0.0;

    /* A' z in the cells. */
    gather_all(modes, &modes->flux, z, modes->sums);
    for (int b = 0; b < modes->body_count; ++b)
        respond(modes, b, modes->sums, modes->moved);
    for (size_t c = 0; c < modes->cell_count; ++c)
        modes->at_cells[c] = row_at(modes, c, z);
    spread_to_cells(modes, &modes->flux, 0, modes->body_count, modes->moved);

    /* Z^T r minus Z^T A' z, through E. */
    gather_all(modes, &modes->space, r, modes->sums);
    memcpy(wanted, modes->sums, size * sizeof *wanted);
    for (size_t e = 0; e < modes->space.count; ++e) {
        const sk_mode_entry *entry = &modes->space.entries[e];
        for (int k = 0; k < modes->rank; ++k)
            wanted[row_of(modes, entry->body) + (size_t)k] -= (double)entry->value[k] * modes->at_cells[entry->cell];
    }
    solve_modes(modes, wanted);
    for (size_t i = 0; i < size; ++i)
        change += modes->sums[i] * wanted[i];
    spread(modes, &modes->space, wanted, 1.0, z);
    return change;
}

/* --- Reading --- */

/* The row of A of an unknown of level 0. */
static void read_cell(const sk_poisson_solver *solver, int block, int c, sk_mode_cell *cell)
{
    const sk_level *level = &solver->multigrid.level[0];
    const int at[3] = {c & SK_BLOCK_MASK, c >> SK_BLOCK_LOG & SK_BLOCK_MASK, c >> 2 * SK_BLOCK_LOG};
    const int split = sk_split_index(at[0], at[1], at[2]);
    cell->at = (size_t)block * SK_BLOCK_CELLS + (size_t)split;
    cell->excess = sk_excess_at(level, block, split);
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
    }
}

static selkie_code add_cell(sk_poisson_solver *solver, int block, int c, selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    SK_TRY(sk_reserve(solver->memory, (void **)&modes->cells, &modes->cell_capacity, modes->cell_count + 1,
                      sizeof *modes->cells, "bodies", error));
    read_cell(solver, block, c, &modes->cells[modes->cell_count++]);
    return SELKIE_OK;
}

static selkie_code add_entry(sk_poisson_solver *solver, sk_mode_list *list, const sk_mode_entry *entry,
                             selkie_error *error)
{
    SK_TRY(sk_reserve(solver->memory, (void **)&list->entries, &list->capacity, list->count + 1, sizeof *list->entries,
                      "bodies", error));
    list->entries[list->count++] = *entry;
    return SELKIE_OK;
}

/* Natural index of a cell from its index in the split layout. */
static int natural_index(int split)
{
    const int colour = split / SK_HALF, row = split % SK_HALF / SK_ROW, lane = split % SK_ROW;
    const int j = row % SK_BLOCK_N, k = row / SK_BLOCK_N, i = 2 * lane + ((colour + j + k) & 1);
    return i + SK_BLOCK_N * (j + SK_BLOCK_N * k);
}

/* W in the order of the bodies, from entries in the order of the cells. `map` gets the number of each cell, plus 1. */
static selkie_code read_flux(sk_poisson_solver *solver, const sk_poisson_modes *given, int32_t *map,
                             selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    const sk_level *level = &solver->multigrid.level[0];
    sk_mode_list *flux = &modes->flux;
    const size_t bodies = (size_t)given->body_count;
    SK_TRY(sk_reserve(solver->memory, (void **)&flux->first, &flux->first_capacity, bodies + 2, sizeof *flux->first,
                      "bodies", error));
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
            int32_t *number = &map[(size_t)block * SK_BLOCK_CELLS + (size_t)split];
            if (!*number) {
                SK_TRY(add_cell(solver, block, c, error));
                *number = (int32_t)modes->cell_count;
            }
            sk_mode_entry *to = &flux->entries[flux->first[entry->body + 1]++];
            *to = (sk_mode_entry){.cell = *number - 1, .body = entry->body};
            memcpy(to->value, entry->flux, sizeof to->value);
        }
        if (pass == 1)
            break;
        for (size_t b = 0; b < bodies; ++b)
            flux->first[b + 2] += flux->first[b + 1];
        SK_TRY(sk_reserve(solver->memory, (void **)&flux->entries, &flux->capacity, flux->count + 1,
                          sizeof *flux->entries, "bodies", error));
    }
    return SELKIE_OK;
}

/* The cells within some rings around a body, into the list of Z; their values are those of W. `seen` has the body of
 * each cell that was listed last, plus 1. */
static selkie_code list_space(sk_poisson_solver *solver, int body, int rings, int32_t *map, selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    sk_mode_list *space = &modes->space;
    const size_t first = space->count;
    for (size_t e = modes->flux.first[body]; e < modes->flux.first[body + 1]; ++e) {
        SK_TRY(add_entry(solver, space, &modes->flux.entries[e], error));
        map[modes->cells[modes->flux.entries[e].cell].at] = -map[modes->cells[modes->flux.entries[e].cell].at];
    }

    /* Ring by ring; a negative number marks the cells of this body. */
    size_t begin = first;
    for (int ring = 0; ring < rings; ++ring) {
        const size_t end = space->count;
        for (size_t e = begin; e < end; ++e)
            for (int side = 0; side < SK_SIDES; ++side) {
                const sk_mode_cell cell = modes->cells[space->entries[e].cell];
                const size_t other = cell.beside[side];
                if (!(cell.face[side] > 0.0f) || map[other] < 0)
                    continue;
                if (!map[other]) {
                    SK_TRY(add_cell(solver, (int)(other / SK_BLOCK_CELLS), natural_index((int)(other % SK_BLOCK_CELLS)),
                                    error));
                    map[other] = (int32_t)modes->cell_count;
                }
                const sk_mode_entry entry = {.cell = map[other] - 1, .body = body};
                SK_TRY(add_entry(solver, space, &entry, error));
                map[other] = -map[other];
            }
        begin = end;
    }
    for (size_t e = first; e < space->count; ++e)
        map[modes->cells[space->entries[e].cell].at] = -map[modes->cells[space->entries[e].cell].at];
    return SELKIE_OK;
}

/* Solves A z = w for one mode in the cells of a body, approximately, with z = 0 around them. `field` is 0 elsewhere. */
static void solve_locally(sk_modes *modes, int body, int mode, float *field)
{
    sk_mode_entry *entries = modes->space.entries + modes->space.first[body];
    const size_t count = modes->space.first[body + 1] - modes->space.first[body];
    double *r = modes->at_cells, *x = r + count, *p = x + count, *q = p + count, rz = 0.0;
    for (size_t n = 0; n < count; ++n) {
        r[n] = (double)entries[n].value[mode];
        x[n] = p[n] = 0.0;
    }
    for (int step = 0; step < LOCAL_STEPS; ++step) {
        double before = rz, curvature = 0.0;
        rz = 0.0;
        for (size_t n = 0; n < count; ++n) {
            const sk_mode_cell *cell = &modes->cells[entries[n].cell];
            double diagonal = (double)cell->excess;
            for (int side = 0; side < SK_SIDES; ++side)
                diagonal += (double)cell->face[side];
            q[n] = diagonal > 0.0 ? r[n] / diagonal : 0.0;
            rz += r[n] * q[n];
        }
        if (!(rz > 0.0))
            break;
        for (size_t n = 0; n < count; ++n) {
            p[n] = q[n] + (step ? rz / before : 0.0) * p[n];
            field[modes->cells[entries[n].cell].at] = (float)p[n];
        }
        for (size_t n = 0; n < count; ++n) {
            q[n] = row_at(modes, (size_t)entries[n].cell, field);
            curvature += p[n] * q[n];
        }
        if (!(curvature > 0.0))
            break;
        for (size_t n = 0; n < count; ++n) {
            x[n] += rz / curvature * p[n];
            r[n] -= rz / curvature * q[n];
        }
    }
    for (size_t n = 0; n < count; ++n) {
        entries[n].value[mode] = (float)x[n];
        field[modes->cells[entries[n].cell].at] = 0.0f;
    }
}

static int root_of(int32_t *parent, int body)
{
    while (parent[body] != body)
        body = parent[body] = parent[parent[body]];
    return body;
}

static void join(int32_t *parent, int a, int b)
{
    a = root_of(parent, a);
    b = root_of(parent, b);
    parent[a > b ? a : b] = a > b ? b : a;
}

/* Bodies whose modes have cells in common or beside each other belong to one cluster. Returns the bodies of the
 * largest. `owner` holds a body of each cell, plus 1, and is 0 elsewhere; it becomes 0 again. */
static int find_clusters(sk_modes *modes, int32_t *owner)
{
    const sk_mode_list *space = &modes->space;
    for (int b = 0; b < modes->body_count; ++b)
        modes->cluster_of[b] = b;
    for (size_t e = 0; e < space->count; ++e) {
        int32_t *own = &owner[modes->cells[space->entries[e].cell].at];
        if (*own)
            join(modes->cluster_of, *own - 1, space->entries[e].body);
        *own = space->entries[e].body + 1;
    }
    for (size_t e = 0; e < space->count; ++e)
        for (int side = 0; side < SK_SIDES; ++side) {
            const int other = owner[modes->cells[space->entries[e].cell].beside[side]];
            if (other)
                join(modes->cluster_of, space->entries[e].body, other - 1);
        }
    for (size_t e = 0; e < space->count; ++e)
        owner[modes->cells[space->entries[e].cell].at] = 0;

    /* Number the clusters by their first body, and list their bodies. */
    modes->cluster_count = 0;
    for (int b = 0; b < modes->body_count; ++b) {
        const int root = root_of(modes->cluster_of, b);
        modes->place_of[b] = root == b ? modes->cluster_count++ : modes->place_of[root];
    }
    int listed = 0, largest = 0;
    size_t matrix = 0;
    for (int q = 0; q < modes->cluster_count; ++q) {
        sk_mode_cluster *cluster = &modes->clusters[q];
        *cluster = (sk_mode_cluster){0, listed, matrix};
        for (int b = 0; b < modes->body_count; ++b)
            if (modes->place_of[b] == q)
                modes->bodies_of[listed++] = b;
        cluster->body_count = listed - cluster->first_body;
        largest = cluster->body_count > largest ? cluster->body_count : largest;
        matrix += (size_t)size_of(modes, cluster) * (size_t)size_of(modes, cluster);
    }
    return largest;
}

/* The space Z, with fewer rings where clusters would become large. `map` numbers the cells; `clear` is a field of 0. */
static selkie_code find_space(sk_poisson_solver *solver, int32_t *map, float *clear, selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    sk_mode_list *space = &modes->space;
    SK_TRY(sk_reserve(solver->memory, (void **)&space->first, &space->first_capacity, (size_t)modes->body_count + 1,
                      sizeof *space->first, "bodies", error));
    int rings = RINGS;
    for (;; rings /= 2) {
        space->count = 0;
        for (int b = 0; b < modes->body_count; ++b) {
            const size_t own = modes->flux.first[b + 1] - modes->flux.first[b];
            space->first[b] = space->count;
            SK_TRY(list_space(solver, b, own * (size_t)(rings + 1) > MOST_CELLS_OF_BODY ? 0 : rings, map, error));
        }
        space->first[modes->body_count] = space->count;
        if (find_clusters(modes, (int32_t *)(void *)clear) <= MOST_IN_CLUSTER || !rings)
            break;
    }
    SK_TRY(sk_reserve(solver->memory, (void **)&modes->at_cells, &modes->at_cells_capacity, 5 * (modes->cell_count + 1),
                      sizeof *modes->at_cells, "bodies", error));
    for (int b = 0; rings && b < modes->body_count; ++b)
        for (int k = 0;
             space->first[b + 1] - space->first[b] > modes->flux.first[b + 1] - modes->flux.first[b] && k < modes->rank;
             ++k)
            solve_locally(modes, b, k, clear);
    return SELKIE_OK;
}

static selkie_code reserve(sk_poisson_solver *solver, const sk_poisson_modes *given, selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    const size_t bodies = (size_t)given->body_count, rows = bodies * (size_t)given->rank;
    void **const arrays[4] = {(void **)&modes->clusters, (void **)&modes->cluster_of, (void **)&modes->sums,
                              (void **)&modes->columns};
    const size_t bytes[4] = {(bodies + 1) * sizeof *modes->clusters, 3 * (bodies + 1) * sizeof *modes->cluster_of,
                             3 * (rows + 1) * sizeof *modes->sums, (rows + 1) * sizeof *modes->columns};
    for (int i = 0; i < 4; ++i) {
        SK_TRY(SK_DIM(sk_scratch_reserve)(solver->memory, &modes->memory[i], bytes[i], error));
        *arrays[i] = modes->memory[i].data;
    }
    modes->bodies_of = modes->cluster_of + bodies + 1;
    modes->place_of = modes->bodies_of + bodies + 1;
    modes->moved = modes->sums + 2 * rows; /* between them: room for a second vector of sums */
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_modes_read)(sk_poisson_solver *solver, const sk_poisson_system *system, selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    const sk_poisson_modes *given = system->modes;
    modes->body_count = 0;
    if (!given || !given->body_count || !given->entry_count)
        return SELKIE_OK;

    /* W, with z as a map of the cells and p as a field of 0. */
    const size_t cells = ((size_t)solver->multigrid.level[0].block_count + 1) * SK_BLOCK_CELLS;
    int32_t *map = (int32_t *)(void *)solver->z;
    memset(solver->z, 0, cells * sizeof(float));
    memset(solver->p, 0, cells * sizeof(float));
    SK_TRY(reserve(solver, given, error));
    modes->rank = given->rank;
    modes->response = given->response;
    SK_TRY(read_flux(solver, given, map, error));
    if (!modes->flux.count)
        return SELKIE_OK;
    modes->body_count = given->body_count;

    /* Z, its clusters, and E of each. */
    SK_TRY(find_space(solver, map, solver->p, error));
    const sk_mode_cluster *last = &modes->clusters[modes->cluster_count - 1];
    const size_t values = last->matrix + (size_t)size_of(modes, last) * (size_t)size_of(modes, last);
    SK_TRY(sk_reserve(solver->memory, (void **)&modes->factor, &modes->factor_capacity, values, sizeof(double),
                      "bodies", error));
    for (int q = 0; q < modes->cluster_count; ++q) {
        const sk_mode_cluster *cluster = &modes->clusters[q];
        const int n = size_of(modes, cluster);
        for (int i = 0; i < n; ++i)
            find_column(modes, cluster, modes->bodies_of[cluster->first_body + i / modes->rank], i % modes->rank,
                        solver->p, modes->factor + cluster->matrix + (size_t)i * (size_t)n);
        factorise(modes->factor + cluster->matrix, n);
    }
    return SELKIE_OK;
}

void SK_DIM(sk_modes_release)(sk_modes *modes, sk_memory *memory)
{
    for (int i = 0; i < 4; ++i)
        sk_release(memory, modes->memory[i].data);
    sk_release(memory, modes->cells);
    sk_release(memory, modes->flux.entries);
    sk_release(memory, modes->flux.first);
    sk_release(memory, modes->space.entries);
    sk_release(memory, modes->space.first);
    sk_release(memory, modes->factor);
    sk_release(memory, modes->at_cells);
    *modes = (sk_modes){0};
}
