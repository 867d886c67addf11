/* Sums over the particles at the nodes of the blocks.
 *
 * A particle gives its weight and values to the 3x3x3 nodes around it by quadratic B-splines. A separable filter on the
 * nodes then widens the kernel. The two together cost a few dozen operations a particle and a node; summing over the
 * whole kernel at once costs several hundred.
 *
 * Blocks add up their own particles in a local array that reaches over their sides and add it to the sums of the blocks
 * around them. Blocks of the same parity along all axes do not meet, so eight rounds need no locks and the order of the
 * sums is fixed.
 *
 * Walls: the mirror images of particles give the mirrored weights. What a particle gives to the node behind the
 * outermost one is folded back, the outermost one gets everything twice.
 */
#include "geom/surface_internal.h"

#include <math.h>
#include <string.h>

/* --- The kernel --- */

static double spline(double x)
{
    x = fabs(x);
    return x < 0.5 ? 0.75 - x * x : x < 1.5 ? 0.5 * (1.5 - x) * (1.5 - x) : 0.0;
}

/* Taps of a Gaussian with the given variance on the nodes. */
static void gaussian_taps(double variance, int halo, float *taps)
{
    double low = 0.05, high = 4.0, value[7];
    for (int round = 0; round < 60; ++round) {
        double sigma = 0.5 * (low + high), sum = 0, square = 0;
        for (int i = -halo; i <= halo; ++i) {
            value[i + halo] = exp(-0.5 * i * i / (sigma * sigma));
            sum += value[i + halo];
            square += i * i * value[i + halo];
        }
        for (int i = 0; i <= 2 * halo; ++i)
            taps[i] = (float)(value[i] / sum);
        *(square < variance * sum ? &low : &high) = sigma;
    }
}

void sk_surface_kernel_init(sk_surface_kernel *kernel, float spacing)
{
    /* A deviation of 0.76 spacings averages over about ten particles and keeps sheets of one particle. */
    const double spline_variance = 0.25, variance = 0.7 * (double)spacing * (double)spacing - spline_variance;
    kernel->halo = variance < 0.02 ? 0 : variance < 0.5 ? 1 : variance < 1.2 ? 2 : 3;
    kernel->taps[0] = 1.0f;
    if (kernel->halo)
        gaussian_taps(variance, kernel->halo, kernel->taps);

    /* Moments of the half of it that sees liquid. */
    double depth = 0.0, peak = 0.0;
    const double step = 1.0 / 256;
    for (int i = -kernel->halo; i <= kernel->halo; ++i) {
        double tap = (double)kernel->taps[i + kernel->halo];
        peak += tap * spline(i);
        for (double x = 0.5 * step; x < 1.5 + kernel->halo; x += step)
            depth += 2.0 * step * x * tap * spline(x - i);
    }
    kernel->peak = (float)peak;
    kernel->depth = (float)depth;
    kernel->slope = (float)(peak * depth / 0.5);
}

/* --- From particles to nodes --- */

/* Sums at the nodes that the particles of a block reach. */
typedef struct local_sums {
    f4 sums[sk_local_count];
    f4 triples[sk_local_count]; /* squares of the particles that begin at a node, for it and the next two along x */
    float squares[sk_local_count];
} local_sums;

/* Adds a particle, given from the block's first node, to the local sums. */
SK_VECTOR void add_particle(local_sums *local, const float x[3], f4 value, const int with_squares)
{
    /* Weights of the three axes at once; the local array begins at node -1. */
    const f4 at = {x[0], x[1], x[2], 0.0f};
    const i4 base = __builtin_convertvector(at + 0.5f, i4);
    f4 w[3];
    sk_surface_weights(at - __builtin_convertvector(base, f4), w);
    const int corner = base[0] + sk_local_n * (base[1] + sk_local_n * base[2]);
    const f4 squares = value * value;
    const f4 along = (squares[1] + squares[2] + squares[3]) * (f4){w[0][0], w[1][0], w[2][0], 0.0f};
    const f4 parts[3] = {value * w[0][0], value * w[1][0], value * w[2][0]};
    for (int k = 0; k < 3; ++k)
        for (int j = 0; j < 3; ++j) {
            const int place = corner + sk_local_n * (j + sk_local_n * k);
            const float weight = w[j][1] * w[k][2];
            f4 *row = local->sums + place;
            row[0] += parts[0] * weight;
            row[1] += parts[1] * weight;
            row[2] += parts[2] * weight;
            if (with_squares)
                local->triples[place] += along * weight;
        }
}

/* The squares at the nodes. Particles begin at most two nodes before the end of a row. */
static void join_triples(local_sums *local)
{
    f4 last = {0}, before_last = {0};
    for (int n = 0; n < sk_local_count; ++n) {
        const f4 triple = local->triples[n];
        local->squares[n] = triple[0] + last[1] + before_last[2];
        before_last = last;
        last = triple;
    }
}

/* Adds the images of the particles behind the walls to local sums. */
static void fold_walls(const sk_surface_grid *grid, size_t block, int are_places, int with_squares, local_sums *local)
{
    static const int stride[3] = {1, sk_local_n, sk_local_n * sk_local_n};
    for (int a = 0; a < 3; ++a) {
        const int u = stride[(a + 1) % 3], v = stride[(a + 2) % 3], s = stride[a];
        for (int side = 0; side < 2; ++side) {
            int wall;
            if (!sk_surface_fold_wall(grid, block, a, side, &wall))
                continue;
            const int inward = side ? -s : s;
            for (int j = 0; j < sk_local_n; ++j)
                for (int i = 0; i < sk_local_n; ++i) {
                    const int place = u * i + v * j + s * (wall + 1);
                    sk_surface_fold(local->sums + place, inward, a, wall, are_places);
                    float *square = local->squares + place;
                    if (with_squares) {
                        square[0] *= 2.0f;
                        square[inward] += wall <= sk_node_n ? square[-inward] : 0.0f;
                    }
                }
        }
    }
}

/* Adds the local sums of a block to those of the blocks that it reaches. Inlined for each kind of sums. */
SK_VECTOR void add_local(const sk_surface_grid *grid, size_t block, const int are_places, const int with_squares,
                         const local_sums *local, sk_surface_sums *result)
{
    static const int first[3] = {-1, 0, sk_node_n}, last[3] = {0, sk_node_n, sk_node_n + 2};
    for (int n = 0; n < 27; ++n) {
        int32_t other = grid->neighbours[block][n];
        if (other < 0 || result->index[other] < 0)
            continue;
        const int d[3] = {n % 3, n / 3 % 3, n / 9};
        f4 shift = {0.0f, (float)(sk_node_n * (1 - d[0])), (float)(sk_node_n * (1 - d[1])),
                    (float)(sk_node_n * (1 - d[2]))};
        const size_t start = (size_t)result->index[other] * sk_node_count;
        for (int k = first[d[2]]; k < last[d[2]]; ++k)
            for (int j = first[d[1]]; j < last[d[1]]; ++j)
                for (int i = first[d[0]]; i < last[d[0]]; ++i) {
                    const int from = i + 1 + sk_local_n * (j + 1 + sk_local_n * (k + 1));
                    const size_t to = start + (size_t)((i & 7) + sk_node_n * ((j & 7) + sk_node_n * (k & 7)));
                    f4 sum = local->sums[from];
                    if (are_places)
                        sum += sum[0] * shift;
                    result->sums[to] += sum;
                    if (with_squares)
                        result->squares[to] += local->squares[from];
                }
    }
}

static int reaches_marked(const sk_surface_grid *grid, size_t block, const sk_surface_sums *result)
{
    for (int n = 0; n < 27; ++n) {
        int32_t other = grid->neighbours[block][n];
        if (other >= 0 && result->index[other] >= 0)
            return 1;
    }
    return 0;
}

/* Inlined with and without squares. */
SK_VECTOR void add_particles(const sk_surface_grid *grid, size_t block, const float (*values)[3],
                             const int with_squares, local_sums *local)
{
    float base[3];
    for (int a = 0; a < 3; ++a)
        base[a] = (float)(grid->coordinates[block][a] * sk_node_n);
    for (int cell = 0; cell < sk_sub_count; ++cell) {
        if (grid->deep[block] >> cell & 1)
            continue;
        const size_t first = grid->first[block] + grid->sub_first[block][cell];
        const size_t last = grid->first[block] + grid->sub_first[block][cell + 1];
        for (size_t p = first; p < last; ++p) {
            const sk_surface_point *point = &grid->points[p];
            const float x[3] = {point->x[0] - base[0], point->x[1] - base[1], point->x[2] - base[2]};
            const float *value = values ? values[p] : x;
            add_particle(local, x, (f4){1.0f, value[0], value[1], value[2]}, with_squares);
        }
    }
}

static void sum_block(const sk_surface_grid *grid, size_t block, const float (*values)[3], sk_surface_sums *result)
{
    if (grid->first[block] == grid->first[block + 1] || grid->deep[block] == ~(uint64_t)0 ||
        !reaches_marked(grid, block, result))
        return;
    local_sums local;
    memset(local.sums, 0, sizeof local.sums);
    if (result->squares) {
        memset(local.triples, 0, sizeof local.triples);
        add_particles(grid, block, values, 1, &local);
        join_triples(&local);
    } else {
        add_particles(grid, block, values, 0, &local);
    }
    fold_walls(grid, block, !values, result->squares != NULL, &local);
    if (!values)
        add_local(grid, block, 1, 0, &local, result);
    else if (result->squares)
        add_local(grid, block, 0, 1, &local, result);
    else
        add_local(grid, block, 0, 0, &local, result);
}

static selkie_code make_sums(const sk_surface_grid *grid, const uint8_t *marked, int with_squares,
                             sk_surface_sums *result, selkie_error *error)
{
    size_t count = 0;
    memset(result, 0, sizeof *result);
    result->index = sk_allocate(NULL, (grid->block_count + 1) * sizeof *result->index);
    for (size_t b = 0; b < grid->block_count && result->index; ++b)
        result->index[b] = marked[b] ? (int32_t)count++ : -1;
    result->sums = sk_allocate(NULL, (count + 1) * sk_node_count * sizeof *result->sums);
    if (with_squares)
        result->squares = sk_allocate(NULL, (count + 1) * sk_node_count * sizeof *result->squares);
    if (!result->index || !result->sums || (with_squares && !result->squares)) {
        sk_surface_sums_free(result);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory, %.1f MiB for sums over particles",
                       (double)count * sk_node_count * sizeof(f4) / 1048576.0);
    }
#pragma omp parallel for num_threads(grid->threads) schedule(static)
    for (size_t i = 0; i < count; ++i) {
        memset(result->sums + i * sk_node_count, 0, sk_node_count * sizeof *result->sums);
        if (with_squares)
            memset(result->squares + i * sk_node_count, 0, sk_node_count * sizeof *result->squares);
    }
    return SELKIE_OK;
}

static void sum_blocks(const sk_surface_grid *grid, const float (*values)[3], sk_surface_sums *result)
{
    for (int parity = 0; parity < 8; ++parity) {
#pragma omp parallel for num_threads(grid->threads) schedule(dynamic, 16)
        for (size_t b = 0; b < grid->block_count; ++b) {
            const int32_t *c = grid->coordinates[b];
            if ((c[0] & 1) + 2 * (c[1] & 1) + 4 * (c[2] & 1) == parity)
                sum_block(grid, b, values, result);
        }
    }
}

selkie_code sk_surface_sum(const sk_surface_grid *grid, const uint8_t *marked, const float (*values)[3],
                           sk_surface_sums *result, selkie_error *error)
{
    SK_TRY(make_sums(grid, marked, 0, result, error));
    sum_blocks(grid, values, result);
    return SELKIE_OK;
}

selkie_code sk_surface_sum_squares(const sk_surface_grid *grid, const uint8_t *marked, const float (*values)[3],
                                   sk_surface_sums *result, selkie_error *error)
{
    SK_TRY(make_sums(grid, marked, 1, result, error));
    sum_blocks(grid, values, result);
    return SELKIE_OK;
}

void sk_surface_sums_free(sk_surface_sums *sums)
{
    sk_release(NULL, sums->index);
    sk_release(NULL, sums->sums);
    sk_release(NULL, sums->squares);
    memset(sums, 0, sizeof *sums);
}

/* --- The filter on the nodes --- */

enum { most_filter_n = sk_node_n + 2 * sk_most_filter_halo };

/* Mirror images behind the walls that a block with a halo sees. */
static void mirror_sums(const sk_surface_grid *grid, int are_places, size_t block, int halo, f4 *padded)
{
    const int n = sk_node_n + 2 * halo;
    for (int a = 0; a < 3; ++a)
        for (int side = 0; side < 2; ++side) {
            sk_wall_image wall;
            if (!sk_surface_wall(grid, block, halo, a, side, &wall))
                continue;
            for (int out = wall.out, step = 1; step <= wall.steps; ++step, out += wall.out)
                for (int j = 0; j < n; ++j)
                    for (int i = 0; i < n; ++i) {
                        f4 *at = padded + wall.u * i + wall.v * j + wall.first;
                        at[out] = sk_surface_mirrored(at[-out], a, (float)wall.node, are_places);
                    }
        }
}

SK_VECTOR void load_sums(const sk_surface_grid *grid, const sk_surface_sums *sums, int are_places, size_t block,
                         const int halo, f4 *padded)
{
    const int n = sk_node_n + 2 * halo, start[3] = {-halo, 0, sk_node_n}, end[3] = {0, sk_node_n, sk_node_n + halo};
    static const f4 nothing[sk_node_count];
    for (int b = 0; b < 27; ++b) {
        const int d[3] = {b % 3, b / 3 % 3, b / 9};
        const int32_t other = grid->neighbours[block][b];
        const f4 *from =
            other >= 0 && sums->index[other] >= 0 ? sums->sums + (size_t)sums->index[other] * sk_node_count : nothing;
        f4 shift = {0.0f, (float)(sk_node_n * (d[0] - 1)), (float)(sk_node_n * (d[1] - 1)),
                    (float)(sk_node_n * (d[2] - 1))};
        if (!are_places)
            shift = (f4){0};
        for (int k = start[d[2]]; k < end[d[2]]; ++k)
            for (int j = start[d[1]]; j < end[d[1]]; ++j) {
                f4 *row = padded + halo + n * (j + halo + n * (k + halo));
                const f4 *source = from + sk_node_n * ((j & 7) + sk_node_n * (k & 7));
                for (int i = start[d[0]]; i < end[d[0]]; ++i)
                    row[i] = source[i & 7] + source[i & 7][0] * shift;
            }
    }
    mirror_sums(grid, are_places, block, halo, padded);
}

/* One axis of the filter: `rows` results of `width` sums each, whose sources lie `stride` apart. */
SK_VECTOR void filter_rows(const f4 *restrict from, f4 *restrict to, int rows, int width, int stride, const int halo,
                           const float *taps)
{
    for (int r = 0; r < rows; ++r)
        for (int i = 0; i < width; ++i)
            to[r * width + i] = sk_surface_tap(from + r * stride + i, stride, halo, taps);
}

/* Inlined for each halo, so that all loops have fixed lengths. */
SK_VECTOR void filter_block(const sk_surface_grid *grid, const sk_surface_sums *sums, int are_places, size_t block,
                            const int halo, f4 *result)
{
    const int n = sk_node_n + 2 * halo;
    const float *taps = grid->kernel.taps;
    f4 padded[most_filter_n * most_filter_n * most_filter_n];
    f4 along_z[most_filter_n * most_filter_n], along_y[most_filter_n * sk_node_n];
    load_sums(grid, sums, are_places, block, halo, padded);
    for (int k = 0; k < sk_node_n; ++k) {
        filter_rows(padded + k * n * n, along_z, 1, n * n, n * n, halo, taps);
        filter_rows(along_z, along_y, sk_node_n, n, n, halo, taps);
        for (int j = 0; j < sk_node_n; ++j)
            filter_rows(along_y + j * n, result + sk_node_n * (j + sk_node_n * k), sk_node_n, 1, 1, halo, taps);
    }
}

void sk_surface_filter(const sk_surface_grid *grid, const sk_surface_sums *sums, int are_places, size_t block,
                       f4 result[sk_node_count])
{
    switch (grid->kernel.halo) {
    case 0:
        filter_block(grid, sums, are_places, block, 0, result);
        break;
    case 1:
        filter_block(grid, sums, are_places, block, 1, result);
        break;
    case 2:
        filter_block(grid, sums, are_places, block, 2, result);
        break;
    default:
        filter_block(grid, sums, are_places, block, sk_most_filter_halo, result);
    }
}

void sk_surface_sort_vectors(const sk_surface_grid *grid, const float *vectors, size_t stride, float (*sorted)[3])
{
#pragma omp parallel for num_threads(grid->threads) schedule(static)
    for (size_t p = 0; p < grid->particle_count; ++p) {
        const float *v = (const float *)((const char *)vectors + grid->points[p].source * stride);
        for (int a = 0; a < 3; ++a)
            sorted[p][a] = isfinite(v[a]) ? v[a] : 0.0f;
    }
}
