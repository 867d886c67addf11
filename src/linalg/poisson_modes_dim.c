/* Rigid bodies in a Poisson system: A' = A + sum of W R W^T, a term of low rank.
 *
 * A light body makes its term large, and the multigrid cycle M knows only A. A space Z is therefore deflated (Tang et
 * al. 2009, A-DEF2): with E = Z^T A' Z,
 *
 *   z = M r + Z E^-1 (Z^T r - (A' Z)^T M r),
 *
 * from a start with Z^T r = 0. The best space is A^-1 W, the pressure around each moving body: A' and A agree on what
 * is left. Z is the result of a few Chebyshev steps for A Z = W in the cells around the body. E couples bodies whose
 * cells meet. Its rows are ordered along the longest axis of the bodies, and its factor keeps an envelope.
 *
 * Sums run over a body or over a cell in a fixed order: the same bits on any number of threads.
 */
#include "linalg/solver.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include "linalg/mode_lanes.h"

/* Rings of cells around W for A Z; Z itself ends one ring earlier. Bodies of more entries have one. Work of the factor
 * (multiplications) above which there are fewer. */
enum { RINGS = SELKIE_DIM == 3 ? 4 : 6, MOST_ENTRIES = 60000, WIDE = SK_MODES_WIDE, RANK = SK_MODES_RANK };
#define MOST_WORK 4e7
_Static_assert((int)RINGS <= (int)SK_MODES_RINGS, "the rings of a body have no room");

static size_t row_of(int body)
{
    return (size_t)body * RANK;
}

/* --- W --- */

/* The shares of threads: bodies of about the same number of entries. */
static int first_body(const sk_modes *modes, int thread, int threads)
{
    const size_t goal = modes->space.count * (size_t)thread / (size_t)threads;
    int body = 0;
    while (body < modes->body_count && modes->space.first[body] < goal)
        body++;
    return thread == threads ? modes->body_count : body;
}

/* Velocities of the modes in single precision, for products. */
static void round_modes(const sk_modes *modes, const double *from, int first, int last)
{
    for (int b = first; b < last; ++b)
        for (int k = 0; k < WIDE; ++k)
            modes->rounded[b][k] = k < RANK ? (float)from[row_of(b) + (size_t)k] : 0.0f;
}

/* moved = R sums of one body. */
static void respond(const sk_modes *modes, int body, const double *sums, double *moved)
{
    for (int i = 0; i < RANK; ++i) {
        moved[i] = 0.0;
        for (int j = 0; j < RANK; ++j)
            moved[i] += modes->response[body][i][j] * sums[j];
    }
}

/* The motion of a body under x. */
static void move_body(sk_modes *modes, int body, const float *x)
{
    double *sums = modes->sums + row_of(body);
    SK_DIM(sk_modes_gather)(&modes->flux_runs, body, x, sums);
    respond(modes, body, sums, modes->moved + row_of(body));
}

/* x += factor times W, Z or A Z times the rounded velocities. */
static void spread(const sk_modes *modes, const sk_mode_runs *runs, int is_image, sk_team team, float factor, float *x)
{
    SK_DIM(sk_modes_spread)(runs, is_image, (const float(*)[WIDE])modes->rounded, team, factor, x);
}

double SK_DIM(sk_modes_apply)(sk_modes *modes, sk_team team, const float *x, float *y, double factor)
{
    double energy = 0.0;
    const int first = first_body(modes, team.thread, team.threads),
              last = first_body(modes, team.thread + 1, team.threads);
    for (int b = first; b < last; ++b)
        move_body(modes, b, x);
    round_modes(modes, modes->moved, first, last);
    sk_team_wait(team);
    for (size_t i = 0; i < row_of(modes->body_count); ++i)
        energy += modes->sums[i] * modes->moved[i];
    spread(modes, &modes->flux_runs, 0, team, (float)factor, y);
    sk_team_wait(team);
    return energy;
}

/* --- E --- */

/* Sum of products; four partial sums keep the pipeline full. */
static double dot(const double *a, const double *b, size_t n)
{
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    size_t k = 0;
    for (; k + 4 <= n; k += 4)
        for (int i = 0; i < 4; ++i)
            sum[i] += a[k + (size_t)i] * b[k + (size_t)i];
    for (; k < n; ++k)
        sum[0] += a[k] * b[k];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Cholesky factor in place, within the envelope. Modes without flux of their own, such as the rotation of a disc, drop
 * out: their row becomes that of the identity with an infinite pivot, marked by 0. */
static void factorise(const sk_modes *modes)
{
    const size_t n = row_of(modes->body_count);
    for (size_t i = 0; i < n; ++i) {
        const size_t first = modes->row_first[i];
        double *own = modes->factor + modes->row_start[i];
        for (size_t j = first; j < i; ++j) {
            const size_t other = modes->row_first[j], from = other > first ? other : first;
            const double *row = modes->factor + modes->row_start[j], pivot = row[j - other];
            const double sum = own[j - first] - dot(own + (from - first), row + (from - other), j - from);
            own[j - first] = pivot > 0.0 ? sum / pivot : 0.0;
        }
        const double before = own[i - first], pivot = before - dot(own, own, i - first);
        own[i - first] = !(pivot > 1e-9 * before) || !(before > 0.0) ? 0.0 : sqrt(pivot);
    }
}

/* x = E^-1 x, in the order of the rows. */
static void solve_factor(const sk_modes *modes, double *x)
{
    const size_t n = row_of(modes->body_count);
    for (size_t i = 0; i < n; ++i) {
        const size_t first = modes->row_first[i];
        const double *row = modes->factor + modes->row_start[i], pivot = row[i - first];
        x[i] = pivot > 0.0 ? (x[i] - dot(row, x + first, i - first)) / pivot : 0.0;
    }
    for (size_t i = n; i-- > 0;) {
        const size_t first = modes->row_first[i];
        const double *row = modes->factor + modes->row_start[i], pivot = row[i - first];
        x[i] = pivot > 0.0 ? x[i] / pivot : 0.0;
        for (size_t j = first; j < i; ++j)
            x[j] -= row[j - first] * x[i];
    }
}

/* From the order of the rows to that of the bodies. */
static void reorder(const sk_modes *modes, const double *from, double *to)
{
    for (int n = 0; n < modes->body_count; ++n)
        memcpy(to + row_of(modes->body_at[n]), from + row_of(n), RANK * sizeof *to);
}

/* x = E^-1 x, in the order of the bodies. */
static void solve_modes(const sk_modes *modes, double *x)
{
    for (int n = 0; n < modes->body_count; ++n)
        memcpy(modes->ordered + row_of(n), x + row_of(modes->body_at[n]), RANK * sizeof *x);
    solve_factor(modes, modes->ordered);
    reorder(modes, modes->ordered, x);
}

void SK_DIM(sk_modes_invert)(const sk_modes *modes, double *inverse, int threads)
{
    const size_t n = row_of(modes->body_count);
    memset(inverse, 0, n * n * sizeof *inverse);
    (void)threads; /* in builds without OpenMP */
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1) if (threads > 1 && n > 32)
    for (int b = 0; b < modes->body_count; ++b)
        for (int k = 0; k < RANK && modes->space.first[b] < modes->space.first[b + 1]; ++k) {
            double *row = inverse + (row_of(b) + (size_t)k) * n;
            row[row_of(modes->place_of[b]) + (size_t)k] = 1.0;
            solve_factor(modes, row);
        }
    for (size_t i = 0; i < n; ++i) {
        memcpy(modes->ordered, inverse + i * n, n * sizeof *inverse);
        reorder(modes, modes->ordered, inverse + i * n);
    }
}

/* Spreads Z times the solution; the caller has gathered `wanted`. */
static void correct(sk_modes *modes, sk_team team, float *x)
{
    sk_team_wait(team);
    if (team.thread == 0) {
        solve_modes(modes, modes->wanted);
        round_modes(modes, modes->wanted, 0, modes->body_count);
    }
    sk_team_wait(team);
    spread(modes, &modes->space_runs, 0, team, 1.0f, x);
}

/* The motion of a body under Z times the modes `wanted`. */
static void move_by_space(sk_modes *modes, int body)
{
    double sums[WIDE] = {0.0};
    for (size_t m = modes->mover_first[body]; m < modes->mover_first[body + 1]; ++m) {
        const sk_mode_pair *pair = &modes->pairs[modes->by_mover[m]];
        const double *wanted = modes->wanted + row_of(pair->body);
        for (int i = 0; i < RANK; ++i)
            for (int j = 0; j < RANK; ++j)
                sums[i] += pair->flux[i][j] * wanted[j];
    }
    respond(modes, body, sums, modes->moved + row_of(body));
}

void SK_DIM(sk_modes_start)(sk_modes *modes, sk_team team, float *r, float *x)
{
    const int first = first_body(modes, team.thread, team.threads),
              last = first_body(modes, team.thread + 1, team.threads);
    for (int b = first; b < last; ++b)
        SK_DIM(sk_modes_gather)(&modes->space_runs, b, r, modes->wanted + row_of(b));
    correct(modes, team, x);

    /* r -= A' Z: A Z is known, and the bodies move by the pairs. */
    spread(modes, &modes->space_runs, 1, team, -1.0f, r);
    for (int b = first; b < last; ++b)
        move_by_space(modes, b);
    sk_team_wait(team);
    round_modes(modes, modes->moved, first, last);
    sk_team_wait(team);
    spread(modes, &modes->flux_runs, 0, team, -1.0f, r);
    sk_team_wait(team);
}

double SK_DIM(sk_modes_deflate)(sk_modes *modes, sk_team team, const float *r, float *z)
{
    double change = 0.0, image[RANK];
    const int first = first_body(modes, team.thread, team.threads),
              last = first_body(modes, team.thread + 1, team.threads);

    /* Z^T r - (A Z)^T z, and the motion of the bodies under z. */
    for (int b = first; b < last; ++b) {
        double *own = modes->residual + row_of(b);
        SK_DIM(sk_modes_gather_both)(&modes->space_runs, b, r, z, own, image);
        move_body(modes, b, z);
        for (int k = 0; k < RANK; ++k)
            modes->wanted[row_of(b) + (size_t)k] = own[k] - image[k];
    }
    sk_team_wait(team);

    /* The part of A' that the motion of the bodies makes: (W^T Z)^T R W^T z. */
    for (int b = first; b < last; ++b)
        for (size_t n = modes->pair_first[b]; n < modes->pair_first[b + 1]; ++n)
            for (int i = 0; i < RANK; ++i)
                for (int j = 0; j < RANK; ++j)
                    modes->wanted[row_of(b) + (size_t)j] -=
                        modes->pairs[n].flux[i][j] * modes->moved[row_of(modes->pairs[n].mover) + (size_t)i];
    correct(modes, team, z);
    for (size_t i = 0; i < row_of(modes->body_count); ++i)
        change += modes->residual[i] * modes->wanted[i];
    sk_team_wait(team);
    return change;
}

/* --- Order and envelope of E --- */

typedef struct body_place {
    int64_t along;
    int32_t body;
} body_place;

static int compare_places(const void *a, const void *b)
{
    const body_place *p = a, *q = b;
    return p->along != q->along ? (p->along > q->along ? 1 : -1) : (p->body > q->body) - (p->body < q->body);
}

/* Orders the bodies along the axis on which their cells spread most. `scratch` has room for the bodies. */
static void order_bodies(sk_poisson_solver *solver, body_place *scratch)
{
    sk_modes *modes = &solver->modes;
    const sk_level *level = &solver->multigrid.level[0];
    int axis = 0;
    int64_t widest = -1;
    for (int d = 0; d < SELKIE_DIM; ++d) {
        int64_t low = INT64_MAX, high = INT64_MIN;
        for (size_t e = 0; e < modes->flux.count; ++e) {
            const int64_t at = level->coordinates[modes->flux.at[e] / SK_BLOCK_CELLS][d];
            low = at < low ? at : low;
            high = at > high ? at : high;
        }
        if (high - low > widest) {
            widest = high - low;
            axis = d;
        }
    }
    for (int b = 0; b < modes->body_count; ++b) {
        scratch[b] = (body_place){0, b};
        if (modes->flux.first[b] == modes->flux.first[b + 1])
            continue;
        const size_t at = modes->flux.at[modes->flux.first[b]];
        scratch[b].along =
            (int64_t)level->coordinates[at / SK_BLOCK_CELLS][axis] * SK_BLOCK_N +
            (SK_DIM(sk_modes_natural_index)((int)(at % SK_BLOCK_CELLS)) >> axis * SK_BLOCK_LOG & SK_BLOCK_MASK);
    }
    qsort(scratch, (size_t)modes->body_count, sizeof *scratch, compare_places);
    for (int n = 0; n < modes->body_count; ++n) {
        modes->body_at[n] = scratch[n].body;
        modes->place_of[scratch[n].body] = n;
    }
}

/* The entry of W after n in the cell whose first one is `first`; -1 = none. */
static inline int32_t next_meeting(const sk_modes *modes, int32_t first, int32_t n)
{
    const int32_t next = (int32_t)(modes->flux.next[n] & ~SK_MODE_FIRST);
    return next == first ? -1 : next;
}

/* Bodies whose W lies in the cells of a body's Z, in the order in which they are met. `mark` is at least 0 elsewhere.
 */
static selkie_code list_pairs(sk_poisson_solver *solver, int32_t *mark, selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    size_t count = 0;
    for (int b = 0; b < modes->body_count; ++b)
        mark[b] = -1;
    for (int b = 0; b < modes->body_count; ++b) {
        modes->pair_first[b] = count;
        for (size_t e = modes->space.first[b]; e < modes->space.first[b + 1]; ++e) {
            for (int32_t n = modes->meets[e]; n >= 0; n = next_meeting(modes, modes->meets[e], n)) {
                const int32_t mover = modes->flux.body[n];
                if (mark[mover] == b)
                    continue;
                mark[mover] = b;
                SK_TRY(sk_reserve(solver->memory, (void **)&modes->pairs, &modes->pair_capacity, count + 1,
                                  sizeof *modes->pairs, "bodies", error));
                modes->pairs[count++].mover = mover;
            }
        }
    }
    modes->pair_first[modes->body_count] = count;
    return SELKIE_OK;
}

/* The first body that each one meets in E, in the order of the rows: by common cells, or by a third body that both
 * move. `least_of_cell` has room for the cells. Returns the work of the factor. */
static double find_envelope(sk_modes *modes, int32_t *least_of_cell)
{
    double work = 0.0;
    int32_t *first = modes->first_at, *least_of_mover = modes->least_at;
    for (int b = 0; b < modes->body_count; ++b) {
        first[b] = modes->place_of[b];
        least_of_mover[b] = modes->body_count;
    }
    const sk_mode_list *space = &modes->space;
    for (size_t e = 0; e < space->count; ++e)
        least_of_cell[space->at[e]] = INT32_MAX;
    for (int pass = 0; pass < 2; ++pass)
        for (int b = 0; b < modes->body_count; ++b) {
            const int32_t place = modes->place_of[b];
            int32_t own = first[b];
            for (size_t e = space->first[b]; e < space->first[b + 1]; ++e) {
                int32_t *least = &least_of_cell[space->at[e]];
                if (pass == 0)
                    *least = place < *least ? place : *least;
                else
                    own = *least < own ? *least : own;
            }
            first[b] = own;
        }
    for (int pass = 0; pass < 2; ++pass)
        for (int b = 0; b < modes->body_count; ++b)
            for (size_t n = modes->pair_first[b]; n < modes->pair_first[b + 1]; ++n) {
                int32_t *least = &least_of_mover[modes->pairs[n].mover];
                if (pass == 0)
                    *least = modes->place_of[b] < *least ? modes->place_of[b] : *least;
                else
                    first[b] = *least < first[b] ? *least : first[b];
            }
    for (int b = 0; b < modes->body_count; ++b) {
        const double width = (double)(modes->place_of[b] - first[b] + 1) * RANK;
        work += width * width * RANK;
    }
    return work;
}

static selkie_code reserve_factor(sk_poisson_solver *solver, selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    size_t total = 0;
    for (int n = 0; n < modes->body_count; ++n)
        for (int k = 0; k < RANK; ++k) {
            const size_t row = row_of(n) + (size_t)k;
            modes->row_first[row] = row_of(modes->first_at[modes->body_at[n]]);
            modes->row_start[row] = total;
            total += row_of(n + 1) - modes->row_first[row];
        }
    return sk_reserve(solver->memory, (void **)&modes->factor, &modes->factor_capacity, total + 1, sizeof(double),
                      "bodies", error);
}

/* --- Values of E --- */

/* Sums of products of modes, in single precision: a body has about a thousand of them. */
typedef float mode_block[WIDE][WIDE];

/* W^T Z of the bodies that a body moves. `number` and `blocks` have room for all bodies. */
static void find_pairs(sk_modes *modes, int body, uint32_t *number, mode_block *blocks)
{
    const size_t first_pair = modes->pair_first[body], count = modes->pair_first[body + 1] - first_pair;
    memset(blocks, 0, count * sizeof *blocks);
    for (size_t n = 0; n < count; ++n)
        number[modes->pairs[first_pair + n].mover] = (uint32_t)n;
    for (size_t e = modes->space.first[body]; e < modes->space.first[body + 1]; ++e) {
        for (int32_t n = modes->meets[e]; n >= 0; n = next_meeting(modes, modes->meets[e], n))
            sk_mode_add_product(modes->flux.values[n], modes->space.values[e], blocks[number[modes->flux.body[n]]]);
    }
    for (size_t n = 0; n < count; ++n)
        for (int i = 0; i < WIDE; ++i)
            for (int j = 0; j < WIDE; ++j)
                modes->pairs[first_pair + n].flux[i][j] = (double)blocks[n][i][j];
}

/* Adds a block of modes to the rows of a body. */
static void add_block(const sk_modes *modes, int body, int other, double block[WIDE][WIDE])
{
    for (int i = 0; i < RANK; ++i) {
        const size_t row = row_of(modes->place_of[body]) + (size_t)i;
        double *to = modes->factor + modes->row_start[row] + row_of(modes->place_of[other]) - modes->row_first[row];
        for (int j = 0; j < RANK; ++j)
            to[j] += block[i][j];
    }
}

/* Z^T A Z of a body with the bodies before it. Z ends one ring before A Z. */
static void find_products(const sk_modes *modes, int body, mode_block *sums)
{
    const int place = modes->place_of[body], first = modes->first_at[body];
    const size_t begin = modes->space.first[body], end = begin + modes->rings[body].end[modes->rings[body].count - 1];
    sk_mode_vector own[SK_MODES_RANK] = {{0.0f}};
    memset(sums, 0, (size_t)(place - first + 1) * sizeof *sums);
    for (size_t e = begin; e < end; ++e) {
        const sk_mode_vector value = sk_mode_load(modes->space.values[e]), image = sk_mode_load(modes->image[e]);
        for (int i = 0; i < SK_MODES_RANK; ++i)
            own[i] += value[i] * image;
    }
    for (int i = 0; i < SK_MODES_RANK; ++i)
        sk_mode_store(own[i], sums[place - first][i]);
    const sk_mode_list *space = &modes->space;
    for (size_t e = begin; e < end; ++e)
        for (uint32_t n = space->next[e] & ~SK_MODE_FIRST; n != e; n = space->next[n] & ~SK_MODE_FIRST) {
            const int other = modes->place_of[space->body[n]];
            if (other < place)
                sk_mode_add_product(space->values[e], modes->image[n], sums[other - first]);
        }
}

/* The rows of a body: Z^T A Z, then the motion of the bodies that both move. `blocks` and `sums` have room for all
 * bodies. */
static void find_rows(sk_modes *modes, int body, double (*blocks)[WIDE][WIDE], mode_block *sums)
{
    const int place = modes->place_of[body], first = modes->first_at[body];
    find_products(modes, body, sums);
    for (int n = 0; n <= place - first; ++n)
        for (int i = 0; i < WIDE; ++i)
            for (int j = 0; j < WIDE; ++j)
                blocks[n][i][j] = (double)sums[n][i][j];
    for (size_t n = modes->pair_first[body]; n < modes->pair_first[body + 1]; ++n) {
        const sk_mode_pair *own = &modes->pairs[n];
        double answer[WIDE][WIDE] = {{0.0}}; /* R W^T Z */
        for (int i = 0; i < RANK; ++i)
            for (int k = 0; k < RANK; ++k)
                for (int j = 0; j < RANK; ++j)
                    answer[i][j] += modes->response[own->mover][i][k] * own->flux[k][j];
        for (size_t m = modes->mover_first[own->mover]; m < modes->mover_first[own->mover + 1]; ++m) {
            const sk_mode_pair *pair = &modes->pairs[modes->by_mover[m]];
            const int other = modes->place_of[pair->body];
            if (other > place)
                continue;
            for (int k = 0; k < RANK; ++k)
                for (int i = 0; i < RANK; ++i)
                    for (int j = 0; j < RANK; ++j)
                        blocks[other - first][i][j] += answer[k][i] * pair->flux[k][j];
        }
    }
    for (int other = first; other <= place; ++other)
        add_block(modes, body, modes->body_at[other], blocks[other - first]);
}

/* The pairs by the body that moves. */
static selkie_code order_pairs(sk_poisson_solver *solver, selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    const size_t count = modes->pair_first[modes->body_count];
    SK_TRY(sk_reserve(solver->memory, (void **)&modes->by_mover, &modes->by_mover_capacity, count + 1,
                      sizeof *modes->by_mover, "bodies", error));
    memset(modes->mover_first, 0, ((size_t)modes->body_count + 2) * sizeof *modes->mover_first);
    for (int b = 0; b < modes->body_count; ++b)
        for (size_t n = modes->pair_first[b]; n < modes->pair_first[b + 1]; ++n) {
            modes->pairs[n].body = b;
            modes->mover_first[modes->pairs[n].mover + 2]++;
        }
    for (int b = 0; b < modes->body_count; ++b)
        modes->mover_first[b + 2] += modes->mover_first[b + 1];
    for (size_t n = 0; n < count; ++n)
        modes->by_mover[modes->mover_first[modes->pairs[n].mover + 1]++] = (uint32_t)n;
    return SELKIE_OK;
}

/* --- Reading --- */

/* The entries of W in the cells of Z. `map` is that of W. */
static selkie_code find_meets(sk_poisson_solver *solver, const uint32_t *map, int threads, selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    SK_TRY(sk_reserve(solver->memory, (void **)&modes->meets, &modes->meets_capacity, modes->space.count + 1,
                      sizeof *modes->meets, "bodies", error));
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (size_t e = 0; e < modes->space.count; ++e)
        modes->meets[e] = (int32_t)map[modes->space.at[e]] - 1;
    return SELKIE_OK;
}

/* Bodies that take a small part of the liquid feel each other less: a ring less is enough. */
static int rings_around(const sk_poisson_solver *solver)
{
    enum { SMALL_PART = 8 };
    const int64_t cells = (int64_t)solver->modes.flux.count / solver->modes.parts_of_body;
    const int few = cells * SMALL_PART < solver->modes.all_unknowns;
    return few ? RINGS - 1 : RINGS;
}

/* Lists the cells of all bodies, with fewer rings where the factor would cost too much. */
static selkie_code find_space(sk_poisson_solver *solver, const uint32_t *flux_map, int threads, selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    sk_mode_list *space = &modes->space;
    order_bodies(solver, (body_place *)(void *)modes->wanted);
    for (int rings = rings_around(solver);; --rings) {
        SK_TRY(SK_DIM(sk_modes_list_bodies)(solver, rings, MOST_ENTRIES, threads, error));
        SK_DIM(sk_modes_link_cells)(solver, space, (uint32_t *)(void *)solver->p, threads);
        SK_TRY(find_meets(solver, flux_map, threads, error));
        SK_TRY(list_pairs(solver, modes->first_at, error));
        if (find_envelope(modes, (int32_t *)(void *)solver->r) < MOST_WORK || rings == 1)
            break;
    }
    SK_TRY(sk_reserve(solver->memory, (void **)&modes->image, &modes->image_capacity, space->count + 1,
                      sizeof *modes->image, "bodies", error));
    SK_TRY(order_pairs(solver, error));
    return reserve_factor(solver, error);
}

static selkie_code reserve(sk_poisson_solver *solver, const sk_poisson_modes *given, selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    const size_t bodies = (size_t)(given->body_count * modes->parts_of_body), rows = bodies * RANK;
    struct {
        void **array;
        size_t bytes;
    } const parts[] = {
        {(void **)&modes->sums, (rows + 1) * sizeof(double)},
        {(void **)&modes->moved, (rows + 1) * sizeof(double)},
        {(void **)&modes->wanted, (rows + 2 * bodies + 2) * sizeof(double)}, /* also the places of the bodies */
        {(void **)&modes->residual, (rows + 1) * sizeof(double)},
        {(void **)&modes->ordered, (rows + 1) * sizeof(double)},
        {(void **)&modes->row_first, (rows + 1) * sizeof(size_t)},
        {(void **)&modes->row_start, (rows + 1) * sizeof(size_t)},
        {(void **)&modes->flux.first, (bodies + 2) * sizeof(size_t)},
        {(void **)&modes->space.first, (bodies + 2) * sizeof(size_t)},
        {(void **)&modes->pair_first, (bodies + 2) * sizeof(size_t)},
        {(void **)&modes->mover_first, (bodies + 2) * sizeof(size_t)},
        {(void **)&modes->rings, (bodies + 1) * sizeof *modes->rings},
        {(void **)&modes->rows, (bodies + 1) * sizeof *modes->rows},
        {(void **)&modes->rounded, (bodies + 1) * sizeof *modes->rounded},
        {(void **)&modes->response, (bodies + 1) * sizeof *modes->response},
        {(void **)&modes->body_at, (bodies + 1) * sizeof(int32_t)},
        {(void **)&modes->place_of, (bodies + 1) * sizeof(int32_t)},
        {(void **)&modes->first_at, (bodies + 1) * sizeof(int32_t)},
        {(void **)&modes->least_at, (bodies + 1) * sizeof(int32_t)},
    };
    enum { PARTS = sizeof parts / sizeof *parts };
    size_t total = 0;
    for (int i = 0; i < PARTS; ++i)
        total += (parts[i].bytes + 63) / 64 * 64;
    SK_TRY(SK_DIM(sk_scratch_reserve)(solver->memory, &modes->memory, total, error));
    char *next = modes->memory.data;
    for (int i = 0; i < PARTS; ++i) {
        *parts[i].array = next;
        next += (parts[i].bytes + 63) / 64 * 64;
    }
    return SELKIE_OK;
}

/* Z of every body, then E. */
static selkie_code fill(sk_poisson_solver *solver, int threads, selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    size_t entries = 0;
    for (int b = 0; b < modes->body_count; ++b) {
        const size_t own = modes->space.first[b + 1] - modes->space.first[b];
        entries = own > entries ? own : entries;
    }
    const size_t vectors = 3 * (entries + 1) * WIDE * sizeof(float),
                 blocks = ((size_t)modes->body_count + 1) * WIDE * WIDE * sizeof(double),
                 sums = ((size_t)modes->body_count + 1) * sizeof(mode_block),
                 room = ((vectors > blocks + sums ? vectors : blocks + sums) + 63) / 64 * 64;
    SK_TRY(SK_DIM(sk_scratch_reserve)(solver->memory, &modes->thread_memory, (size_t)threads * room, error));
    char *scratch = modes->thread_memory.data;
    memset(modes->factor, 0,
           (modes->row_start[row_of(modes->body_count) - 1] + row_of(modes->body_count) -
            modes->row_first[row_of(modes->body_count) - 1]) *
               sizeof *modes->factor);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        const int thread = omp_get_thread_num();
        void *own = scratch + (size_t)thread * room, *behind = scratch + (size_t)thread * room + blocks;
#pragma omp for schedule(dynamic, 1)
        for (int b = 0; b < modes->body_count; ++b)
            SK_DIM(sk_modes_solve)(modes, b, own);
#pragma omp for schedule(dynamic, 1)
        for (int b = 0; b < modes->body_count; ++b)
            find_pairs(modes, b, own, behind);
#pragma omp for schedule(dynamic, 1)
        for (int b = 0; b < modes->body_count; ++b)
            find_rows(modes, b, own, behind);
    }
    factorise(modes);
    return SELKIE_OK;
}

/* R of each mover. */
static void read_response(sk_modes *modes, const sk_poisson_modes *given)
{
    for (int b = 0; b < given->body_count * modes->parts_of_body; ++b) {
        const int first = b % modes->parts_of_body * RANK;
        for (int i = 0; i < RANK; ++i)
            for (int j = 0; j < RANK; ++j) {
                const int row = first + i, column = first + j;
                modes->response[b][i][j] = row < given->rank && column < given->rank
                                               ? given->response[b / modes->parts_of_body][row][column]
                                               : 0.0;
            }
    }
}

selkie_code SK_DIM(sk_modes_read)(sk_poisson_solver *solver, const sk_poisson_system *system, int threads,
                                  selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    const sk_poisson_modes *given = system->modes;
    modes->body_count = 0;
    if (!given || !given->body_count || !given->entry_count)
        return SELKIE_OK;

    /* W and Z; z is a map of the cells of W, p one of those of Z. */
    uint32_t *flux_map = (uint32_t *)(void *)solver->z;
    modes->parts_of_body = (given->rank + RANK - 1) / RANK;
    SK_TRY(reserve(solver, given, error));
    read_response(modes, given);
    SK_TRY(SK_DIM(sk_modes_read_flux)(solver, given, error));
    if (!modes->flux.count)
        return SELKIE_OK;
    SK_DIM(sk_modes_link_cells)(solver, &modes->flux, flux_map, threads);
    modes->body_count = given->body_count * modes->parts_of_body;
    SK_TRY(find_space(solver, flux_map, threads, error));
    return fill(solver, threads, error);
}

selkie_code SK_DIM(sk_modes_prepare)(sk_poisson_solver *solver, int threads, selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    if (!modes->body_count)
        return SELKIE_OK;
    SK_TRY(SK_DIM(sk_modes_make_runs)(solver, &modes->flux, NULL, &modes->flux_runs, threads, error));
    return SK_DIM(sk_modes_make_runs)(solver, &modes->space, (const float(*)[WIDE])modes->image, &modes->space_runs,
                                      threads, error);
}

void SK_DIM(sk_modes_release)(sk_modes *modes, sk_memory *memory)
{
    SK_DIM(sk_modes_release_lists)(modes, memory);
    SK_DIM(sk_modes_release_runs)(&modes->flux_runs, memory);
    SK_DIM(sk_modes_release_runs)(&modes->space_runs, memory);
    sk_release(memory, modes->memory.data);
    sk_release(memory, modes->thread_memory.data);
    sk_release(memory, modes->meets);
    sk_release(memory, modes->image);
    sk_release(memory, modes->pairs);
    sk_release(memory, modes->by_mover);
    sk_release(memory, modes->factor);
    *modes = (sk_modes){0};
}
