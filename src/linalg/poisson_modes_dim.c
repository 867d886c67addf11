/* Rigid bodies in a Poisson system: A' = A + sum of W R W^T, a term of low rank.
 *
 * A light body makes its term large, and the multigrid cycle M knows only A. The space of the modes is therefore
 * deflated (Tang et al. 2009, A-DEF2): with E = W^T A' W,
 *
 *   z = M r + W E^-1 (W^T r - (A' W)^T M r),
 *
 * from a start with W^T r = 0. In the complement of W the term is small if it is large in W, so that iterations do not
 * grow with the lightness of bodies. E is dense for bodies that touch and zero between others.
 *
 * The modes live in few cells, and one thread computes with them.
 */
#include "linalg/solver.h"

#include <math.h>
#include "linalg/modes_kernels.h"

static size_t row_of(const sk_modes *modes, int body)
{
    return (size_t)body * (size_t)modes->rank;
}

/* --- W and its transpose --- */

/* sums = W^T x, from the values in the cells. */
static void gather(const sk_modes *modes, const double *values, const sk_mode_entry *from, const sk_mode_entry *to,
                   double *sums)
{
    for (const sk_mode_entry *entry = from; entry < to; ++entry)
        for (int k = 0; k < modes->rank; ++k)
            sums[row_of(modes, entry->body) + (size_t)k] += (double)entry->flux[k] * values[entry->cell];
}

static void gather_field(const sk_modes *modes, const float *x, double *sums)
{
    memset(sums, 0, row_of(modes, modes->body_count) * sizeof *sums);
    for (size_t c = 0; c < modes->cell_count; ++c)
        modes->at_cells[c] = (double)x[modes->cells[c].at];
    gather(modes, modes->at_cells, modes->entries, modes->entries + modes->entry_count, sums);
}

/* values += W velocity */
static void spread(const sk_modes *modes, const double *velocity, const sk_mode_entry *from, const sk_mode_entry *to,
                   double *values)
{
    for (const sk_mode_entry *entry = from; entry < to; ++entry)
        values[entry->cell] += sk_mode_flux(entry->flux, velocity + row_of(modes, entry->body), modes->rank);
}

/* x += factor W velocity */
static void spread_field(const sk_modes *modes, const double *velocity, double factor, float *x)
{
    memset(modes->at_cells, 0, modes->cell_count * sizeof *modes->at_cells);
    spread(modes, velocity, modes->entries, modes->entries + modes->entry_count, modes->at_cells);
    for (size_t c = 0; c < modes->cell_count; ++c)
        x[modes->cells[c].at] += (float)(factor * modes->at_cells[c]);
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
    gather_field(modes, x, modes->sums);
    for (int b = 0; b < modes->body_count; ++b)
        respond(modes, b, modes->sums, modes->moved);
    for (size_t i = 0; i < row_of(modes, modes->body_count); ++i)
        energy += modes->sums[i] * modes->moved[i];
    spread_field(modes, modes->moved, factor, y);
    return energy;
}

/* --- E --- */

static int size_of(const sk_modes *modes, const sk_mode_cluster *cluster)
{
    return cluster->body_count * modes->rank;
}

/* A' x in the cells of a cluster for x in its modes, then W^T of it: one column of E. `field` is 0 elsewhere. */
static void find_column(sk_modes *modes, int q, int body, int mode, float *field, double *column)
{
    const sk_mode_cluster *cluster = &modes->clusters[q];
    const sk_mode_entry *from = modes->entries + modes->entries_of[q], *to = modes->entries + modes->entries_of[q + 1];
    const int32_t *bodies = modes->bodies_of + cluster->first_body;
    for (int n = 0; n < cluster->body_count; ++n) {
        memset(modes->sums + row_of(modes, bodies[n]), 0, (size_t)modes->rank * sizeof(double));
        memset(modes->columns + row_of(modes, bodies[n]), 0, (size_t)modes->rank * sizeof(double));
    }

    /* The mode itself, and the motion of the bodies that it would cause. */
    for (const sk_mode_entry *entry = from; entry < to; ++entry)
        modes->at_cells[entry->cell] = 0.0;
    for (const sk_mode_entry *entry = from; entry < to; ++entry)
        if (entry->body == body) {
            field[modes->cells[entry->cell].at] = entry->flux[mode];
            modes->at_cells[entry->cell] = (double)entry->flux[mode];
        }
    gather(modes, modes->at_cells, from, to, modes->sums);
    for (int n = 0; n < cluster->body_count; ++n)
        respond(modes, bodies[n], modes->sums, modes->moved);

    /* A' times it, a cell at a time. */
    for (const sk_mode_entry *entry = from; entry < to; ++entry) {
        const sk_mode_cell *cell = &modes->cells[entry->cell];
        modes->at_cells[entry->cell] = sk_mode_row(field, cell->at, cell->beside, cell->face, cell->excess);
    }
    spread(modes, modes->moved, from, to, modes->at_cells);
    gather(modes, modes->at_cells, from, to, modes->columns);
    for (const sk_mode_entry *entry = from; entry < to; ++entry)
        if (entry->body == body)
            field[modes->cells[entry->cell].at] = 0.0f;
    for (int n = 0; n < cluster->body_count; ++n)
        memcpy(column + (size_t)n * (size_t)modes->rank, modes->columns + row_of(modes, bodies[n]),
               (size_t)modes->rank * sizeof(double));
}

/* Cholesky factor in place (lower half). Modes without flux of their own, such as the rotation of a disc, drop out:
 * their row becomes that of the identity with an infinite pivot, marked by 0. */
static void factorise(double *e, int n)
{
    for (int j = 0; j < n; ++j) {
        const double before = e[j * n + j];
        double pivot = before;
        for (int k = 0; k < j; ++k)
            pivot -= e[j * n + k] * e[j * n + k];
        const int drops = !(pivot > 1e-9 * before) || !(before > 0.0);
        e[j * n + j] = drops ? 0.0 : sqrt(pivot);
        for (int i = j + 1; i < n; ++i) {
            double sum = e[i * n + j];
            for (int k = 0; k < j; ++k)
                sum -= e[i * n + k] * e[j * n + k];
            e[i * n + j] = drops ? 0.0 : sum / e[j * n + j];
        }
    }
}

static void solve_factor(const double *e, int n, double *x)
{
    for (int i = 0; i < n; ++i) {
        for (int k = 0; k < i; ++k)
            x[i] -= e[i * n + k] * x[k];
        x[i] = e[i * n + i] > 0.0 ? x[i] / e[i * n + i] : 0.0;
    }
    for (int i = n - 1; i >= 0; --i) {
        for (int k = i + 1; k < n; ++k)
            x[i] -= e[k * n + i] * x[k];
        x[i] = e[i * n + i] > 0.0 ? x[i] / e[i * n + i] : 0.0;
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
    gather_field(modes, r, modes->sums);
    solve_modes(modes, modes->sums);
    spread_field(modes, modes->sums, 1.0, x);
}

double SK_DIM(sk_modes_deflate)(sk_modes *modes, const float *r, float *z)
{
    const size_t size = row_of(modes, modes->body_count);
    double *wanted = modes->sums + size, change = 0.0;

    /* W^T A' z. */
    gather_field(modes, z, modes->sums);
    for (int b = 0; b < modes->body_count; ++b)
        respond(modes, b, modes->sums, modes->moved);
    for (size_t c = 0; c < modes->cell_count; ++c) {
        const sk_mode_cell *cell = &modes->cells[c];
        modes->at_cells[c] = sk_mode_row(z, cell->at, cell->beside, cell->face, cell->excess);
    }
    spread(modes, modes->moved, modes->entries, modes->entries + modes->entry_count, modes->at_cells);
    memset(modes->moved, 0, size * sizeof(double));
    gather(modes, modes->at_cells, modes->entries, modes->entries + modes->entry_count, modes->moved);

    /* W^T r minus that, through E. */
    gather_field(modes, r, modes->sums);
    for (size_t i = 0; i < size; ++i)
        wanted[i] = modes->sums[i] - modes->moved[i];
    solve_modes(modes, wanted);
    for (size_t i = 0; i < size; ++i)
        change += modes->sums[i] * wanted[i];
    spread_field(modes, wanted, 1.0, z);
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

/* Bodies whose cells are the same or beside each other belong to one cluster. `owner` holds a body of each cell, plus
 * 1, and is 0 elsewhere; it becomes 0 again. */
static void find_clusters(sk_modes *modes, int32_t *owner)
{
    for (int b = 0; b < modes->body_count; ++b)
        modes->cluster_of[b] = b;
    for (size_t e = 0; e < modes->entry_count; ++e) {
        int32_t *own = &owner[modes->cells[modes->entries[e].cell].at];
        if (*own)
            join(modes->cluster_of, *own - 1, modes->entries[e].body);
        *own = modes->entries[e].body + 1;
    }
    for (size_t c = 0; c < modes->cell_count; ++c)
        for (int side = 0; side < SK_SIDES; ++side)
            if (owner[modes->cells[c].beside[side]])
                join(modes->cluster_of, owner[modes->cells[c].at] - 1, owner[modes->cells[c].beside[side]] - 1);
    for (size_t c = 0; c < modes->cell_count; ++c)
        owner[modes->cells[c].at] = 0;

    /* Number the clusters by their first body, and list their bodies. */
    modes->cluster_count = 0;
    for (int b = 0; b < modes->body_count; ++b) {
        const int root = root_of(modes->cluster_of, b);
        modes->place_of[b] = root == b ? modes->cluster_count++ : modes->place_of[root];
    }
    int listed = 0;
    size_t matrix = 0;
    for (int q = 0; q < modes->cluster_count; ++q) {
        sk_mode_cluster *cluster = &modes->clusters[q];
        *cluster = (sk_mode_cluster){0, listed, matrix};
        for (int b = 0; b < modes->body_count; ++b)
            if (modes->place_of[b] == q)
                modes->bodies_of[listed++] = b;
        cluster->body_count = listed - cluster->first_body;
        matrix += (size_t)size_of(modes, cluster) * (size_t)size_of(modes, cluster);
    }
    memcpy(modes->cluster_of, modes->place_of, (size_t)modes->body_count * sizeof *modes->cluster_of);
}

/* Sorts the entries by cluster; `spare` has room for them. */
static void sort_entries(sk_modes *modes, sk_mode_entry *spare)
{
    size_t *first = modes->entries_of;
    memcpy(spare, modes->entries, modes->entry_count * sizeof *spare);
    memset(first, 0, ((size_t)modes->cluster_count + 2) * sizeof *first);
    for (size_t e = 0; e < modes->entry_count; ++e)
        first[modes->cluster_of[spare[e].body] + 2]++;
    for (int q = 0; q < modes->cluster_count; ++q)
        first[q + 2] += first[q + 1];
    for (size_t e = 0; e < modes->entry_count; ++e)
        modes->entries[first[modes->cluster_of[spare[e].body] + 1]++] = spare[e];
}

static selkie_code reserve(sk_poisson_solver *solver, const sk_poisson_modes *given, selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    const size_t bodies = (size_t)given->body_count, rows = bodies * (size_t)given->rank, entries = given->entry_count;
    void **const arrays[9] = {
        (void **)&modes->cells,      (void **)&modes->entries, (void **)&modes->entries_of, (void **)&modes->clusters,
        (void **)&modes->cluster_of, (void **)&modes->sums,    (void **)&modes->at_cells,   NULL,
        (void **)&modes->columns};
    const size_t bytes[9] = {(entries + 1) * sizeof *modes->cells,         2 * (entries + 1) * sizeof *modes->entries,
                             (bodies + 2) * sizeof *modes->entries_of,     (bodies + 1) * sizeof *modes->clusters,
                             3 * (bodies + 1) * sizeof *modes->cluster_of, 3 * (rows + 1) * sizeof *modes->sums,
                             (entries + 1) * sizeof *modes->at_cells,      0,
                             (rows + 1) * sizeof *modes->columns};
    for (int i = 0; i < 9; ++i)
        if (arrays[i]) {
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
    const sk_level *level = &solver->multigrid.level[0];
    modes->body_count = 0;
    if (!given || !given->body_count || !given->entry_count)
        return SELKIE_OK;
    SK_TRY(reserve(solver, given, error));
    modes->rank = given->rank;
    modes->response = given->response;
    modes->cell_count = modes->entry_count = 0;

    /* The entries of unknowns. */
    for (size_t e = 0; e < given->entry_count; ++e) {
        const sk_poisson_mode_entry *entry = &given->entries[e];
        const int block = solver->inside[entry->cell / SK_BLOCK_CELLS], c = (int)(entry->cell % SK_BLOCK_CELLS);
        const int split = sk_split_index(c & SK_BLOCK_MASK, c >> SK_BLOCK_LOG & SK_BLOCK_MASK, c >> 2 * SK_BLOCK_LOG);
        if (!block || !sk_is_unknown(level, block, split))
            continue;
        if (!modes->cell_count ||
            modes->cells[modes->cell_count - 1].at != (size_t)block * SK_BLOCK_CELLS + (size_t)split)
            read_cell(solver, block, c, &modes->cells[modes->cell_count++]);
        sk_mode_entry *to = &modes->entries[modes->entry_count++];
        *to = (sk_mode_entry){.cell = (int32_t)modes->cell_count - 1, .body = entry->body};
        memcpy(to->flux, entry->flux, sizeof to->flux);
    }
    if (!modes->entry_count)
        return SELKIE_OK;
    modes->body_count = given->body_count;

    /* Clusters, with z as a map of owners, then E of each, with z as the field of a mode. */
    memset(solver->z, 0, ((size_t)level->block_count + 1) * SK_BLOCK_CELLS * sizeof(float));
    find_clusters(modes, (int32_t *)(void *)solver->z);
    sort_entries(modes, modes->entries + modes->entry_count);
    const sk_mode_cluster *last = &modes->clusters[modes->cluster_count - 1];
    const size_t values = last->matrix + (size_t)size_of(modes, last) * (size_t)size_of(modes, last);
    SK_TRY(SK_DIM(sk_scratch_reserve)(solver->memory, &modes->memory[7], values * sizeof(double), error));
    modes->factor = modes->memory[7].data;
    for (int q = 0; q < modes->cluster_count; ++q) {
        const sk_mode_cluster *cluster = &modes->clusters[q];
        const int n = size_of(modes, cluster);
        for (int i = 0; i < n; ++i)
            find_column(modes, q, modes->bodies_of[cluster->first_body + i / modes->rank], i % modes->rank, solver->z,
                        modes->factor + cluster->matrix + (size_t)i * (size_t)n);
        factorise(modes->factor + cluster->matrix, n);
    }
    return SELKIE_OK;
}

void SK_DIM(sk_modes_release)(sk_modes *modes, sk_memory *memory)
{
    for (int i = 0; i < 10; ++i)
        sk_release(memory, modes->memory[i].data);
    *modes = (sk_modes){0};
}
