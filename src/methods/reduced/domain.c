#include "methods/reduced/domain.h"

#include <math.h>
#include <string.h>

#include "selkie_config.h"

#if SELKIE_HAVE_ARPACK
#include <arpack.h>

#include "base/library.h"

#define ARPACK(F) F(dsaupd_c) F(dseupd_c)
SK_LIBRARY_TABLE(arpack_functions, ARPACK);

static selkie_code load_arpack(arpack_functions *arpack, selkie_error *error)
{
#if SELKIE_LATE_ARPACK
    static const char *const names[] = {ARPACK(SK_LIBRARY_NAME)};
    return sk_library_load(SELKIE_LATE_ARPACK_FILE, SELKIE_LATE_ARPACK_FOLDER, names, sizeof *arpack, arpack,
                           "obstacles: discretization \"reduced\"", error);
#else
    (void)error;
    *arpack = (arpack_functions){ARPACK(SK_LIBRARY_ADDRESS)};
    return SELKIE_OK;
#endif
}
#endif

int sk_domain_available(void)
{
    return SELKIE_HAVE_ARPACK;
}

selkie_code sk_domain_missing(selkie_error *error)
{
    return sk_fail(error, SELKIE_ERROR_INPUT,
                   "obstacles: discretization \"reduced\" needs ARPACK for them (libarpack2-dev), and this build has "
                   "none");
}

/* --- Nodes --- */

/* Number of a node. The short axis is the fast one: the band is as narrow as possible. */
static int number_of(const sk_domain *d, int i, int j)
{
    return d->turned ? j * d->nodes[0] + i : i * d->nodes[1] + j;
}

/* The number of a node's neighbour, or -1 at a wall. */
static int neighbour(const sk_domain *d, int n, int side)
{
    const int fast = d->turned ? d->nodes[0] : d->nodes[1], row = n / fast, column = n % fast;
    switch (side) {
    case 0:
        return column > 0 ? n - 1 : -1;
    case 1:
        return column < fast - 1 ? n + 1 : -1;
    case 2:
        return row > 0 ? n - fast : -1;
    default:
        return n + fast < d->count ? n + fast : -1;
    }
}

/* Marks a connected solid. Returns whether it touches a wall. */
static int fill(sk_domain *d, int32_t *stack, int first, int32_t from, int32_t to)
{
    int depth = 0, touches = 0;
    stack[depth++] = first;
    d->kind[first] = to;
    while (depth) {
        const int n = stack[--depth];
        for (int side = 0; side < 4; side++) {
            const int m = neighbour(d, n, side);
            touches |= m < 0;
            if (m >= 0 && d->kind[m] == from) {
                d->kind[m] = to;
                stack[depth++] = m;
            }
        }
    }
    return touches;
}

static selkie_code find_islands(sk_domain *d, selkie_error *error)
{
    enum { UNKNOWN = -2 };
    int32_t *stack = sk_allocate(d->memory, (size_t)d->count * sizeof *stack);
    if (!stack)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "reduced: no memory for the domain");
    for (int n = 0; n < d->count; n++)
        if (d->kind[n] == UNKNOWN) {
            const int island = d->island_count + 1;
            if (fill(d, stack, n, UNKNOWN, island))
                fill(d, stack, n, island, -1);
            else
                d->island_count++;
        }
    sk_release(d->memory, stack);
    return SELKIE_OK;
}

/* --- Cholesky --- */

static double dot(const double *a, const double *b, int count)
{
    double sum[4] = {0, 0, 0, 0};
    int n = 0;
    for (; n + 4 <= count; n += 4)
        for (int j = 0; j < 4; j++)
            sum[j] += a[n + j] * b[n + j];
    for (; n < count; n++)
        sum[0] += a[n] * b[n];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Row n holds the columns n - band to n. */
static double *row_of(const sk_domain *d, int n)
{
    return d->factor + (size_t)n * (size_t)(d->band + 1);
}

static void factorise(sk_domain *d)
{
    const int band = d->band;
    for (int n = 0; n < d->count; n++) {
        double *row = row_of(d, n);
        memset(row, 0, (size_t)(band + 1) * sizeof *row);
        row[band] = d->kind[n] == 0 ? 4.0 : 1.0;
        for (int side = 0; side < 4 && d->kind[n] == 0; side++) {
            const int m = neighbour(d, n, side);
            if (m >= 0 && m < n && d->kind[m] == 0)
                row[band - (n - m)] = -1.0;
        }
        for (int m = n > band ? n - band : 0; m <= n; m++) {
            const double *other = row_of(d, m);
            const int first = n > band ? n - band : 0;
            const double sum =
                row[band - (n - m)] - dot(row + band - (n - first), other + band - (m - first), m - first);
            row[band - (n - m)] = m < n ? sum / other[band] : sqrt(sum);
        }
    }
}

static void solve_free(const sk_domain *d, const double *from, double *to)
{
    const int band = d->band;
    for (int n = 0; n < d->count; n++) {
        const double *row = row_of(d, n);
        const int length = n < band ? n : band;
        to[n] = d->kind[n] == 0 ? (from[n] - dot(row + band - length, to + n - length, length)) / row[band] : 0.0;
    }
    for (int n = d->count - 1; n >= 0; n--) {
        const double *row = row_of(d, n);
        const int length = n < band ? n : band;
        to[n] /= row[band];
        for (int m = 0; m < length; m++)
            to[n - length + m] -= row[band - length + m] * to[n];
    }
}

/* --- Islands --- */

/* Inverts a small symmetric positive matrix in place, by Gauss and Jordan. */
static void invert(double *a, int count)
{
    for (int p = 0; p < count; p++) {
        const double pivot = a[p * count + p];
        a[p * count + p] = 1.0;
        for (int j = 0; j < count; j++)
            a[p * count + j] /= pivot;
        for (int i = 0; i < count; i++) {
            const double factor = a[i * count + p];
            if (i == p)
                continue;
            a[i * count + p] = 0.0;
            for (int j = 0; j < count; j++)
                a[i * count + j] -= factor * a[p * count + j];
        }
    }
}

static selkie_code couple_islands(sk_domain *d, selkie_error *error)
{
    const size_t islands = (size_t)d->island_count, count = (size_t)d->count;
    d->edges = sk_allocate_zeroed(d->memory, (islands * count + 1) * sizeof(double));
    d->answers = sk_allocate_zeroed(d->memory, (islands * count + 1) * sizeof(double));
    d->coupling = sk_allocate_zeroed(d->memory, (islands * islands + 1) * sizeof(double));
    d->links = sk_allocate_zeroed(d->memory, (islands + 1) * sizeof(double));
    if (!d->edges || !d->answers || !d->coupling || !d->links)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "reduced: no memory for %d islands", d->island_count);
    for (int n = 0; n < d->count; n++)
        for (int side = 0; side < 4 && d->kind[n] == 0; side++) {
            const int m = neighbour(d, n, side);
            if (m >= 0 && d->kind[m] > 0) {
                d->edges[(size_t)(d->kind[m] - 1) * count + (size_t)n] += 1.0;
                d->links[d->kind[m] - 1] += 1.0;
            }
        }
    for (size_t s = 0; s < islands; s++)
        solve_free(d, d->edges + s * count, d->answers + s * count);
    for (size_t s = 0; s < islands; s++)
        for (size_t t = 0; t < islands; t++)
            d->coupling[s * islands + t] =
                (s == t ? d->links[s] : 0.0) - dot(d->edges + s * count, d->answers + t * count, d->count);
    invert(d->coupling, d->island_count);
    return SELKIE_OK;
}

/* Woodbury: each island adds its answer, as strong as the flow around it demands. */
void sk_domain_solve(const sk_domain *d, const double *from, double *to)
{
    solve_free(d, from, to);
    for (int s = 0; s < d->island_count; s++) {
        double strength = 0.0;
        for (int t = 0; t < d->island_count; t++)
            strength +=
                d->coupling[s * d->island_count + t] * dot(d->answers + (size_t)t * (size_t)d->count, from, d->count);
        for (int n = 0; n < d->count; n++)
            to[n] += strength * d->answers[(size_t)s * (size_t)d->count + (size_t)n];
    }
}

/* --- Eigenvectors --- */

#if SELKIE_HAVE_ARPACK
/* Lanczos iterations on the inverse: its largest eigenvalues are the inverses of the smallest ones. ARPACK keeps its
 * state in static memory, so one caller at a time. */
static int iterate(const sk_domain *d, const arpack_functions *arpack, int modes, int vectors, double *memory,
                   double *basis, double *values)
{
    const int count = d->count, work = vectors * (vectors + 8);
    double *residual = memory, *triple = memory + count, *local = triple + 3 * (size_t)count;
    a_int parameters[11] = {1, 0, 3000, 1, 0, 0, 1}, pointers[14] = {0}, ido = 0, info = 1;
    for (int n = 0; n < count; n++)
        residual[n] = d->kind[n] == 0 ? 1.0 + 0.5 * sin(12.9898 * n) : 0.0;
    for (;;) {
        arpack->dsaupd_c(&ido, "I", count, "LM", modes, 1e-13, residual, vectors, basis, count, parameters, pointers,
                         triple, local, work, &info);
        if (ido != 1 && ido != -1)
            break;
        sk_domain_solve(d, triple + pointers[0] - 1, triple + pointers[1] - 1);
    }
    if (info != 0)
        return (int)info;
    a_int *select = (a_int *)(void *)(local + work);
    arpack->dseupd_c(1, "A", select, values, basis, count, 0.0, "I", count, "LM", modes, 1e-13, residual, vectors,
                     basis, count, parameters, pointers, triple, local, work, &info);
    return (int)info;
}
#endif

void sk_domain_gather(const sk_domain *d, const double *grid, double *vector)
{
    for (int i = 0; i < d->nodes[0]; i++)
        for (int j = 0; j < d->nodes[1]; j++) {
            const int n = number_of(d, i, j);
            vector[n] = d->kind[n] == 0 ? grid[(size_t)i * (size_t)d->nodes[1] + (size_t)j] : 0.0;
        }
}

void sk_domain_spread(const sk_domain *d, const double *vector, double scale, int islands, double *grid)
{
    for (int i = 0; i < d->nodes[0]; i++)
        for (int j = 0; j < d->nodes[1]; j++) {
            const int n = number_of(d, i, j), island = d->kind[n] - 1;
            double value = d->kind[n] == 0 ? vector[n] : 0.0;
            if (island >= 0 && islands)
                value = dot(d->edges + (size_t)island * (size_t)d->count, vector, d->count) / d->links[island];
            grid[(size_t)i * (size_t)d->nodes[1] + (size_t)j] = scale * value;
        }
}

/* Values of the islands, unit energy, and a sign that does not depend on the library. */
static void finish_mode(const sk_domain *d, double lambda, const double *vector, double *psi)
{
    double square = 0.0, largest = 0.0;
    for (int n = 0; n < d->count; n++) {
        square += vector[n] * vector[n];
        largest = fabs(vector[n]) > fabs(largest) * (1.0 + 1e-6) ? vector[n] : largest;
    }
    const double scale = copysign(1.0 / sqrt(lambda * square), largest);
    sk_domain_spread(d, vector, scale, 1, psi);
}

selkie_code sk_domain_modes(const sk_domain *d, int modes, double *lambda, double *psi, selkie_error *error)
{
    int open = 0;
    for (int n = 0; n < d->count; n++)
        open += d->kind[n] == 0;
    if (2 * modes + 20 > open)
        return sk_fail(
            error, SELKIE_ERROR_INPUT,
            "reduced.modes: %d modes beside obstacles need at least %d open nodes, the domain has %d; choose "
            "a larger domain.resolution or fewer modes",
            modes, 2 * modes + 20, open);
#if SELKIE_HAVE_ARPACK
    arpack_functions arpack;
    SK_TRY(load_arpack(&arpack, error));
    const int vectors = 2 * modes + 20;
    const size_t count = (size_t)d->count, work = (size_t)vectors * (size_t)(vectors + 8) + 2 * (size_t)vectors;
    double *memory = sk_allocate_zeroed(d->memory, (4 * count + work) * sizeof(double));
    double *basis = sk_allocate_zeroed(d->memory, (size_t)vectors * count * sizeof(double));
    double *values = sk_allocate_zeroed(d->memory, (size_t)vectors * sizeof(double));
    int failure = -1;
    if (memory && basis && values) {
#pragma omp critical(sk_arpack)
        failure = iterate(d, &arpack, modes, vectors, memory, basis, values);
    }
    /* ARPACK sorts the eigenvalues of the inverse from the smallest on. */
    for (int k = 0; k < modes && failure == 0; k++) {
        lambda[k] = 1.0 / values[modes - 1 - k];
        finish_mode(d, lambda[k], basis + (size_t)(modes - 1 - k) * count,
                    psi + (size_t)k * (size_t)d->nodes[0] * (size_t)d->nodes[1]);
    }
    const int no_memory = !memory || !basis || !values;
    sk_release(d->memory, memory);
    sk_release(d->memory, basis);
    sk_release(d->memory, values);
    if (no_memory)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "reduced.modes: no memory for %d eigenvectors", modes);
    if (failure != 0)
        return sk_fail(error, SELKIE_ERROR_DIVERGED, "reduced.modes: ARPACK fails with code %d for %d modes", failure,
                       modes);
    return SELKIE_OK;
#else
    (void)lambda;
    (void)psi;
    (void)finish_mode;
    return sk_domain_missing(error);
#endif
}

/* --- Life --- */

selkie_code sk_domain_make(sk_domain *d, const int nodes[2], const unsigned char *solid, sk_memory *memory,
                           selkie_error *error)
{
    memset(d, 0, sizeof *d);
    d->memory = memory;
    d->nodes[0] = nodes[0];
    d->nodes[1] = nodes[1];
    d->turned = nodes[1] > nodes[0];
    d->count = nodes[0] * nodes[1];
    d->band = d->turned ? nodes[0] : nodes[1];
    d->kind = sk_allocate_zeroed(memory, ((size_t)d->count + 1) * sizeof *d->kind);
    d->factor = sk_allocate(memory, ((size_t)d->count + 1) * (size_t)(d->band + 1) * sizeof(double));
    if (!d->kind || !d->factor)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "reduced: no memory for a domain of %d x %d nodes", nodes[0],
                       nodes[1]);
    for (int i = 0; i < nodes[0]; i++)
        for (int j = 0; j < nodes[1]; j++)
            d->kind[number_of(d, i, j)] = solid[(size_t)i * (size_t)nodes[1] + (size_t)j] ? -2 : 0;
    SK_TRY(find_islands(d, error));
    factorise(d);
    return couple_islands(d, error);
}

void sk_domain_free(sk_domain *d)
{
    sk_release(d->memory, d->kind);
    sk_release(d->memory, d->factor);
    sk_release(d->memory, d->edges);
    sk_release(d->memory, d->answers);
    sk_release(d->memory, d->coupling);
    sk_release(d->memory, d->links);
    memset(d, 0, sizeof *d);
}
