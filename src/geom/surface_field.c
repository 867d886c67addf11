/* From particles to a smooth level set.
 *
 * Level set: phi(x) = |x - mean(x)| - radius, where mean(x) is the kernel-weighted mean of the particles around x (Zhu
 * and Bridson 2005, "Animating sand as a fluid", section 5). Weights are normalised, so clumps and gaps in the
 * particles do not move the surface, as they would with a density. Its known artefact, liquid half way between two
 * distant clusters, is removed: no liquid farther than `cutoff` from the nearest particle. The other one, holes between
 * clumps (the mean lies in one of the clumps), is closed by the weight: nodes with clearly more weight than at a flat
 * surface are liquid.
 *
 * Distance: phi saturates at -radius inside. Before smoothing it is turned into a true distance within 4 voxels of the
 * surface by Godunov's upwind scheme for |grad d| = 1 (Rouy and Tourin 1992), iterated in a block with its halo, which
 * holds all nodes that affect the block.
 *
 * Smoothing: the top of a pool at rest still shows the particles as bumps a fraction of their spacing high. A blur with
 * a kernel of vanishing second moment, 2 G - G*G (it leaves planes, spheres and long waves alone), gives the
 * large-scale surface; it replaces the sharp surface where the two differ by less than the particles resolve. Elsewhere
 * (drops, thin sheets, crests) the sharp one stays. Gaps well inside the large-scale surface are closed: splashes have
 * many, and each would look like a bubble.
 *
 * Offset: the calibration of the radius holds for infinitely many particles in the kernel and a flat surface. With few
 * particles and curved shapes the surface is about 0.05 spacings too low; the offset corrects this at the end.
 */
#include "geom/surface_internal.h"

#include <math.h>
#include <string.h>

/* --- Sums over particles --- */

/* A particle seen from a row of nodes. */
typedef struct splat {
    float x;        /* voxels    along the row, from its first node */
    float c;        /*           1 - (dy^2 + dz^2) / reach^2 */
    float scale;    /* 1/voxels2 1 / reach^2 */
    float value[3]; /*           to sum, times the weight */
} splat;

/* Adds a particle to the row of 8 nodes that begins at node `row`. */
static inline void splat_row(sk_node_sums *sums, int row, const splat *particle)
{
    float *restrict weight = sums->weight + row, *restrict nearest = sums->nearest + row;
    float *restrict v0 = sums->value[0] + row, *restrict v1 = sums->value[1] + row, *restrict v2 = sums->value[2] + row;
    const float x = particle->x, c = particle->c, scale = particle->scale;
    const float a = particle->value[0], b = particle->value[1], d = particle->value[2];
#pragma omp simd
    for (int i = 0; i < sk_node_n; ++i) {
        float dx = (float)i - x;
        float q = c - dx * dx * scale;
        nearest[i] = nearest[i] > q ? nearest[i] : q;
        q = q > 0.0f ? q : 0.0f;
        float w = q * q * q;
        weight[i] += w;
        v0[i] += w * a;
        v1[i] += w * b;
        v2[i] += w * d;
    }
}

void sk_surface_gather(const sk_surface_grid *grid, size_t block, const float *const values[3], const float offset[3],
                       sk_node_sums *sums)
{
    memset(sums->weight, 0, sizeof sums->weight);
    memset(sums->value, 0, sizeof sums->value);
    /* `nearest` holds the largest 1 - d^2/reach^2 until the end. */
    for (int i = 0; i < sk_node_count; ++i)
        sums->nearest[i] = -1.0f;
    const float reach = grid->reach, scale = 1.0f / (reach * reach), last = (float)(sk_node_n - 1);
    const float base[3] = {(float)(grid->coordinates[block][0] * sk_node_n),
                           (float)(grid->coordinates[block][1] * sk_node_n),
                           (float)(grid->coordinates[block][2] * sk_node_n)};

    /* Particles of the block and its neighbours, each to the rows in its reach. */
    for (int n = 0; n < 27; ++n) {
        int32_t from = grid->neighbours[block][n];
        if (from < 0)
            continue;
        for (size_t p = grid->first[from]; p < grid->first[from + 1]; ++p) {
            float x = grid->particle[0][p] - base[0];
            float y = grid->particle[1][p] - base[1];
            float z = grid->particle[2][p] - base[2];
            if (x <= -reach || y <= -reach || z <= -reach || x >= last + reach || y >= last + reach ||
                z >= last + reach)
                continue;
            splat particle = {.x = x,
                              .scale = scale,
                              .value = {values[0][p] - offset[0], values[1][p] - offset[1], values[2][p] - offset[2]}};
            int k_first = z > reach ? (int)ceilf(z - reach) : 0, j_first = y > reach ? (int)ceilf(y - reach) : 0;
            int k_last = z + reach < last ? (int)(z + reach) : sk_node_n - 1;
            int j_last = y + reach < last ? (int)(y + reach) : sk_node_n - 1;
            for (int k = k_first; k <= k_last; ++k)
                for (int j = j_first; j <= j_last; ++j) {
                    float dy = (float)j - y, dz = (float)k - z;
                    particle.c = 1.0f - (dy * dy + dz * dz) * scale;
                    if (particle.c > 0.0f)
                        splat_row(sums, sk_node_n * (j + sk_node_n * k), &particle);
                }
        }
    }

    for (int i = 0; i < sk_node_count; ++i)
        sums->nearest[i] = (1.0f - sums->nearest[i]) * reach * reach;
}

/* fminf and fmaxf of the C library treat NaNs, which prevents vectorisation. */
static inline float least(float a, float b)
{
    return a < b ? a : b;
}

static inline float most(float a, float b)
{
    return a > b ? a : b;
}

static inline float clamp(float x, float low, float high)
{
    return least(most(x, low), high);
}

static int deep_inside(const sk_surface_grid *grid, size_t block)
{
    for (int n = 0; n < 27; ++n) {
        int32_t neighbour = grid->neighbours[block][n];
        if (neighbour < 0 || !grid->full[neighbour])
            return 0;
    }
    return 1;
}

/* The weight at a flat surface is 5.1 and falls by 5 a spacing outward, in the bulk it is 10.2 (integrals of the kernel
 * over half and whole balls). A node with clearly more than 5.1 is inside, regardless of the mean of its particles. */
static const float crowd_inside = 5.6f, crowd_depth = 0.2f;

static void level_set_block(const sk_surface_grid *grid, size_t block, float *phi)
{
    if (deep_inside(grid, block)) {
        for (int i = 0; i < sk_node_count; ++i)
            phi[i] = -SK_SURFACE_BAND;
        return;
    }

    /* Weighted sums of positions at the nodes. */
    sk_node_sums sums;
    float base[3];
    const float *values[3];
    for (int a = 0; a < 3; ++a) {
        base[a] = (float)(grid->coordinates[block][a] * sk_node_n);
        values[a] = grid->particle[a];
    }
    sk_surface_gather(grid, block, values, base, &sums);

    /* Distance to the mean position, less the radius of a particle. */
    for (int i = 0; i < sk_node_count; ++i) {
        phi[i] = SK_SURFACE_BAND;
        if (!(sums.weight[i] > 1e-12f))
            continue;
        float x = (float)(i & 7) - sums.value[0][i] / sums.weight[i];
        float y = (float)(i >> 3 & 7) - sums.value[1][i] / sums.weight[i];
        float z = (float)(i >> 6) - sums.value[2][i] / sums.weight[i];
        /* A lone particle has a weight of 1 or less where its drop ends, a flat surface has 5, a thin sheet 4. */
        float lone = 1.0f - clamp((sums.weight[i] - 1.0f) * 0.5f, 0.0f, 1.0f);
        float radius = grid->radius + lone * (grid->drop_radius - grid->radius);
        float distance = most(sqrtf(x * x + y * y + z * z) - radius, sqrtf(sums.nearest[i]) - grid->cutoff);
        float crowd = (crowd_inside - sums.weight[i]) * crowd_depth * grid->spacing;
        phi[i] = least(least(distance, crowd), SK_SURFACE_BAND);
    }
}

/* --- Distance --- */

static int one_sided(const float *padded)
{
    float low = padded[0], high = padded[0];
    for (int i = 1; i < sk_padded_count; ++i) {
        low = padded[i] < low ? padded[i] : low;
        high = padded[i] > high ? padded[i] : high;
    }
    return low >= 0.0f ? 1 : high < 0.0f ? -1 : 0;
}

/* Seen from a flat surface, phi rises by this much a voxel: K(0) D(0) / N(0) with the kernel integrated over planes,
 * K(z) = (1 - z^2)^4, its integral N(0) = 128/315 and the depth of the mean D(0) = 0.246. */
static const float slope_at_surface = 0.606f;

/* Nodes next to the surface get phi over its slope there and keep it, so that the surface crosses the grid's edges at
 * the same places. The others start at the band's width. */
static void distance_start(const float *restrict phi, float *restrict distance, uint8_t *restrict fixed)
{
    const int step[3] = {1, sk_padded_n, sk_padded_n * sk_padded_n};
    for (int i = 0; i < sk_padded_count; ++i) {
        distance[i] = SK_SURFACE_BAND;
        fixed[i] = 1;
    }
    for (int k = 1; k < sk_padded_n - 1; ++k)
        for (int j = 1; j < sk_padded_n - 1; ++j)
            for (int i = 1; i < sk_padded_n - 1; ++i) {
                int n = i + sk_padded_n * (j + sk_padded_n * k);
                int inside = phi[n] < 0.0f, crossing = 0;
                for (int a = 0; a < 3; ++a)
                    crossing |= (phi[n - step[a]] < 0.0f) != inside || (phi[n + step[a]] < 0.0f) != inside;
                fixed[n] = (uint8_t)crossing;
                if (!crossing)
                    continue;
                distance[n] = least(fabsf(phi[n]) * (1.0f / slope_at_surface), 2.0f);
            }
}

/* The Godunov update of one node from the least neighbour along each axis. */
static inline float eikonal(float a, float b, float c)
{
    float low = least(a, least(b, c)), high = most(a, most(b, c)), middle = a + b + c - low - high;
    float one = low + 1.0f;
    float gap = low - middle, two = 0.5f * (low + middle + sqrtf(most(2.0f - gap * gap, 0.0f)));
    float sum = low + middle + high, squares = low * low + middle * middle + high * high;
    float three = (sum + sqrtf(most(sum * sum - 3.0f * (squares - 1.0f), 0.0f))) * (1.0f / 3.0f);
    return one <= middle ? one : two <= high ? two : three;
}

static void distance_pass(const float *restrict from, float *restrict to, const uint8_t *restrict fixed)
{
    const int sy = sk_padded_n, sz = sk_padded_n * sk_padded_n;
    for (int k = 1; k < sk_padded_n - 1; ++k)
        for (int j = 1; j < sk_padded_n - 1; ++j) {
            const int row = sy * j + sz * k;
#pragma omp simd
            for (int n = row + 1; n < row + sk_padded_n - 1; ++n) {
                float u = eikonal(least(from[n - 1], from[n + 1]), least(from[n - sy], from[n + sy]),
                                  least(from[n - sz], from[n + sz]));
                u = least(u, SK_SURFACE_BAND);
                to[n] = fixed[n] ? from[n] : u;
            }
        }
}

static void distance_block(const sk_surface_grid *grid, size_t block, float *result)
{
    float phi[sk_padded_count], first[sk_padded_count], second[sk_padded_count];
    uint8_t fixed[sk_padded_count];
    sk_surface_load(grid, grid->phi, block, phi);
    int side = one_sided(phi);
    if (side) {
        for (int i = 0; i < sk_node_count; ++i)
            result[i] = (float)side * SK_SURFACE_BAND;
        return;
    }
    distance_start(phi, first, fixed);
    memcpy(second, first, sizeof second);
    for (int pass = 0; pass < 2; ++pass) {
        distance_pass(first, second, fixed);
        distance_pass(second, first, fixed);
    }
    for (int k = 0; k < sk_node_n; ++k)
        for (int j = 0; j < sk_node_n; ++j)
            for (int i = 0; i < sk_node_n; ++i) {
                int n = i + sk_halo + sk_padded_n * (j + sk_halo + sk_padded_n * (k + sk_halo));
                result[i + sk_node_n * (j + sk_node_n * k)] = phi[n] < 0.0f ? -first[n] : first[n];
            }
}

/* --- Smoothing --- */

typedef float filter_taps[2 * sk_halo + 1];

static void gaussian_taps(double sigma, filter_taps taps)
{
    double sum = 0, value[2 * sk_halo + 1];
    for (int i = 0; i <= 2 * sk_halo; ++i)
        sum += value[i] = exp(-0.5 * (i - sk_halo) * (i - sk_halo) / (sigma * sigma));
    for (int i = 0; i <= 2 * sk_halo; ++i)
        taps[i] = (float)(value[i] / sum);
}

/* The separable filter: z, then y (both keep rows whole), then x. */
static void blur(const float *restrict padded, const filter_taps taps, float *restrict result)
{
    float pass_z[sk_node_n][sk_padded_n][sk_padded_n], pass_y[sk_padded_n];

    /* Along z. */
    for (int k = 0; k < sk_node_n; ++k)
        for (int j = 0; j < sk_padded_n; ++j) {
            float *row = pass_z[k][j];
            memset(row, 0, sizeof pass_z[k][j]);
            for (int t = 0; t <= 2 * sk_halo; ++t) {
                const float *from = padded + sk_padded_n * (j + sk_padded_n * (k + t));
#pragma omp simd
                for (int i = 0; i < sk_padded_n; ++i)
                    row[i] += taps[t] * from[i];
            }
        }

    /* Along y and x. */
    for (int k = 0; k < sk_node_n; ++k)
        for (int j = 0; j < sk_node_n; ++j) {
            memset(pass_y, 0, sizeof pass_y);
            for (int t = 0; t <= 2 * sk_halo; ++t) {
                const float *from = pass_z[k][j + t];
#pragma omp simd
                for (int i = 0; i < sk_padded_n; ++i)
                    pass_y[i] += taps[t] * from[i];
            }
            float *row = result + sk_node_n * (j + sk_node_n * k);
            for (int i = 0; i < sk_node_n; ++i) {
                float sum = 0.0f;
                for (int t = 0; t <= 2 * sk_halo; ++t)
                    sum += taps[t] * pass_y[i + t];
                row[i] = sum;
            }
        }
}

static void blur_block(const sk_surface_grid *grid, const float *field, const filter_taps taps, size_t block,
                       float *result)
{
    float padded[sk_padded_count];
    sk_surface_load(grid, field, block, padded);
    if (one_sided(padded)) {
        memcpy(result, field + block * sk_node_count, sk_node_count * sizeof *result);
        return;
    }
    blur(padded, taps, result);
}

/* Takes the blurred surface where it differs by less than the particles resolve, else the sharp one. */
static void blend_block(const sk_surface_grid *grid, const float *blurred, const filter_taps taps, size_t block,
                        float *phi)
{
    float padded[sk_padded_count], twice[sk_node_count];
    sk_surface_load(grid, blurred, block, padded);
    if (one_sided(padded))
        return;
    blur(padded, taps, twice);
    const float *once = blurred + block * sk_node_count;
    const float low = 0.30f * grid->spacing, high = 0.80f * grid->spacing, closing = 0.15f * grid->spacing;
    for (int i = 0; i < sk_node_count; ++i) {
        float smooth = 2.0f * once[i] - twice[i];
        float t = (fabsf(smooth - phi[i]) - low) / (high - low);
        t = clamp(t, 0.0f, 1.0f);
        t = t * t * (3.0f - 2.0f * t);
        /* Closes air well inside the large-scale surface: it is a gap between particles, not a bubble. */
        phi[i] = least(smooth + (phi[i] - smooth) * t, smooth + closing);
    }
}

/* A cell belongs to the block of its lowest node. A cell of a missing block makes no triangles, so none of its nodes
 * may be inside, or the mesh would have a hole. Active blocks reach far enough that this is rare. */
static void seal_block(const sk_surface_grid *grid, size_t block, float *phi)
{
    for (int n = 0; n < sk_middle; ++n) {
        int lower[3] = {n % 3 == 0, n / 3 % 3 == 0, n / 9 == 0};
        if (n % 3 == 2 || n / 3 % 3 == 2 || n / 9 == 2 || grid->neighbours[block][n] >= 0)
            continue;
        for (int k = 0; k < (lower[2] ? 1 : sk_node_n); ++k)
            for (int j = 0; j < (lower[1] ? 1 : sk_node_n); ++j)
                for (int i = 0; i < (lower[0] ? 1 : sk_node_n); ++i) {
                    float *node = phi + i + sk_node_n * (j + sk_node_n * k);
                    *node = most(*node, 0.01f);
                }
    }
}

static void swap_fields(sk_surface_grid *grid)
{
    float *field = grid->phi;
    grid->phi = grid->other;
    grid->other = field;
}

void sk_surface_level_set(sk_surface_grid *grid, double smoothing)
{
    const size_t blocks = grid->block_count;
#pragma omp parallel for num_threads(grid->threads) schedule(dynamic, 4)
    for (size_t b = 0; b < blocks; ++b)
        level_set_block(grid, b, grid->phi + b * sk_node_count);

#pragma omp parallel for num_threads(grid->threads) schedule(dynamic, 16)
    for (size_t b = 0; b < blocks; ++b)
        distance_block(grid, b, grid->other + b * sk_node_count);
    swap_fields(grid);

    /* A blur wider than the halo is applied repeatedly. */
    double sigma = 2.0 * smoothing * grid->spacing;
    int rounds = 1;
    while (sigma / sqrt(rounds) > 2.0 && rounds < 6)
        ++rounds;
    filter_taps taps;
    gaussian_taps(sigma / sqrt(rounds), taps);
    for (int round = 0; round < rounds && sigma > 0.2; ++round) {
#pragma omp parallel for num_threads(grid->threads) schedule(dynamic, 16)
        for (size_t b = 0; b < blocks; ++b)
            blur_block(grid, grid->phi, taps, b, grid->other + b * sk_node_count);
#pragma omp parallel for num_threads(grid->threads) schedule(dynamic, 16)
        for (size_t b = 0; b < blocks; ++b)
            blend_block(grid, grid->other, taps, b, grid->phi + b * sk_node_count);
    }
#pragma omp parallel for num_threads(grid->threads) schedule(static)
    for (size_t b = 0; b < blocks; ++b) {
        float *phi = grid->phi + b * sk_node_count;
        for (int i = 0; i < sk_node_count; ++i)
            phi[i] -= grid->offset;
        seal_block(grid, b, phi);
    }
}
