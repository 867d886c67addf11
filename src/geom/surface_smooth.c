/* From the level set of the particles to a smooth one.
 *
 * Distance: phi saturates at -radius inside. Before smoothing it is turned into a true distance within 4 voxels of the
 * surface by Godunov's upwind scheme for |grad d| = 1 (Rouy and Tourin 1992).
 *
 * Smoothing: the top of a pool at rest still shows the particles as bumps a fraction of their spacing high. A blur with
 * a kernel of vanishing second moment, 2 G - G*G (it leaves planes, spheres and long waves alone), gives the
 * large-scale surface; it replaces the sharp surface where the two differ by less than the particles resolve. Elsewhere
 * (drops, thin sheets, crests) the sharp one stays. Gaps well inside the large-scale surface are closed: splashes have
 * many, and each would look like a bubble.
 *
 * Calm water: where the surface is flat over some ten spacings, a plain blur follows. It flattens what a level between
 * two layers of particles leaves, and moves a flat surface by nothing but a small offset.
 *
 * Offset: the calibration of the radius holds for infinitely many particles in the kernel and a flat surface. With few
 * particles and curved shapes the surface is a little too low; the offset corrects this at the end.
 */
#include "geom/surface_internal.h"

#include <math.h>
#include <string.h>

/* --- Blocks with a halo --- */

/* Mirror images behind the walls that a block with a halo sees. */
static void mirror_walls(const sk_surface_grid *grid, size_t block, int halo, float *padded)
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
                        float *at = padded + wall.u * i + wall.v * j + wall.first;
                        at[out] = at[-out];
                    }
        }
}

/* Inlined for each halo in use, so that the short copies have fixed lengths. */
SK_VECTOR void load_padded(const sk_surface_grid *grid, const float *field, size_t block, const int halo, float *padded)
{
    static const float air[sk_node_count] = {[0 ... sk_node_count - 1] = SK_SURFACE_BAND};
    const int n = sk_node_n + 2 * halo;
    const float *blocks[27];
    for (int b = 0; b < 27; ++b) {
        const int32_t other = grid->neighbours[block][b];
        blocks[b] = other < 0 ? air : field + (size_t)other * sk_node_count;
    }
    for (int k = -halo; k < sk_node_n + halo; ++k)
        for (int j = -halo; j < sk_node_n + halo; ++j) {
            const float *const *from = blocks + 3 * ((j + 8) >> 3) + 9 * ((k + 8) >> 3);
            const int row = sk_node_n * ((j & 7) + sk_node_n * (k & 7));
            float *to = padded + n * (j + halo + n * (k + halo));
            memcpy(to, from[0] + row + sk_node_n - halo, (size_t)halo * sizeof *to);
            memcpy(to + halo, from[1] + row, sk_node_n * sizeof *to);
            memcpy(to + halo + sk_node_n, from[2] + row, (size_t)halo * sizeof *to);
        }
    mirror_walls(grid, block, halo, padded);
}

void sk_surface_load(const sk_surface_grid *grid, const float *field, size_t block, int halo, float *padded)
{
    if (halo == 1)
        load_padded(grid, field, block, 1, padded);
    else if (halo == 2)
        load_padded(grid, field, block, 2, padded);
    else
        load_padded(grid, field, block, sk_most_halo, padded);
}

/* --- Distance --- */

/* One pass over the blocks near the surface, from grid->phi into grid->other. */
static void distance_pass(sk_surface_grid *grid, int start)
{
#pragma omp parallel for num_threads(grid->threads) schedule(dynamic, 16)
    for (size_t b = 0; b < grid->block_count; ++b) {
        float *to = grid->other + b * sk_node_count, ring[sk_ring_count];
        if (!grid->near[b]) {
            memcpy(to, grid->phi + b * sk_node_count, sk_node_count * sizeof *to);
            if (grid->side[b] == SK_BLOCK_OUTSIDE)
                for (int i = 0; i < sk_node_count && start; ++i)
                    to[i] = SK_SURFACE_BAND;
            continue;
        }
        sk_surface_load(grid, grid->phi, b, 1, ring);
        for (int row = 0; row < sk_node_n * sk_node_n; ++row) {
            const float *at = ring + 1 + sk_ring_n * (1 + (row & 7) + sk_ring_n * (1 + (row >> 3)));
            for (int i = 0; i < sk_node_n; i += 4) {
                const sk_star s = sk_star_load(at + i);
                f4_store(to + sk_node_n * row + i,
                         start ? sk_distance_start(&s, grid->kernel.slope) : sk_distance_next(&s));
            }
        }
    }
    float *field = grid->phi;
    grid->phi = grid->other;
    grid->other = field;
}

/* From here on only blocks with a node in the band count as near. */
static void find_band(const sk_surface_grid *grid)
{
#pragma omp parallel for num_threads(grid->threads) schedule(static)
    for (size_t b = 0; b < grid->block_count; ++b) {
        const float *phi = grid->phi + b * sk_node_count;
        int near = 0;
        for (int i = 0; i < sk_node_count && grid->near[b]; ++i)
            near |= fabsf(phi[i]) < SK_SURFACE_BAND;
        grid->near[b] = (uint8_t)near;
    }
}

/* --- Smoothing --- */

enum { blur_n = sk_node_n + 2 * sk_most_halo };

typedef float filter_taps[2 * sk_most_halo + 1];

static void gaussian_taps(double sigma, filter_taps taps)
{
    double sum = 0, value[2 * sk_most_halo + 1];
    for (int i = 0; i <= 2 * sk_most_halo; ++i)
        sum += value[i] = exp(-0.5 * (i - sk_most_halo) * (i - sk_most_halo) / (sigma * sigma));
    for (int i = 0; i <= 2 * sk_most_halo; ++i)
        taps[i] = (float)(value[i] / sum);
}

/* The separable filter: z, then y (both keep rows whole), then x. */
static void blur(const float *restrict padded, const filter_taps taps, float *restrict result)
{
    float pass_z[blur_n][blur_n];
    for (int k = 0; k < sk_node_n; ++k) {
        /* Along z. */
        for (int j = 0; j < blur_n; ++j)
            for (int i = 0; i < blur_n; i += 4) {
                const float *from = padded + i + blur_n * (j + blur_n * k);
                f4 sum = f4_load(from) * taps[0];
                for (int t = 1; t <= 2 * sk_most_halo; ++t)
                    sum += f4_load(from + blur_n * blur_n * t) * taps[t];
                f4_store(&pass_z[j][i], sum);
            }

        /* Along y and x. */
        for (int j = 0; j < sk_node_n; ++j) {
            float pass_y[blur_n], *row = result + sk_node_n * (j + sk_node_n * k);
            for (int i = 0; i < blur_n; i += 4) {
                f4 sum = f4_load(&pass_z[j][i]) * taps[0];
                for (int t = 1; t <= 2 * sk_most_halo; ++t)
                    sum += f4_load(&pass_z[j + t][i]) * taps[t];
                f4_store(&pass_y[i], sum);
            }
            for (int i = 0; i < sk_node_n; i += 4) {
                f4 sum = f4_load(&pass_y[i]) * taps[0];
                for (int t = 1; t <= 2 * sk_most_halo; ++t)
                    sum += f4_load(&pass_y[i + t]) * taps[t];
                f4_store(&row[i], sum);
            }
        }
    }
}

static void blur_block(const sk_surface_grid *grid, const float *field, const filter_taps taps, size_t block,
                       float *result)
{
    if (!grid->near[block]) {
        memcpy(result, field + block * sk_node_count, sk_node_count * sizeof *result);
        return;
    }
    float padded[sk_most_padded];
    sk_surface_load(grid, field, block, sk_most_halo, padded);
    blur(padded, taps, result);
}

static void blur_all(const sk_surface_grid *grid, const float *field, const filter_taps taps, float *result)
{
#pragma omp parallel for num_threads(grid->threads) schedule(dynamic, 16)
    for (size_t b = 0; b < grid->block_count; ++b)
        blur_block(grid, field, taps, b, result + b * sk_node_count);
}

/* Takes the blurred surface where it differs by less than the particles resolve, else the sharp one. */
static void blend_block(const sk_surface_grid *grid, const float *blurred, const filter_taps taps, size_t block,
                        float *phi)
{
    if (!grid->near[block])
        return;
    float padded[sk_most_padded], twice[sk_node_count];
    sk_surface_load(grid, blurred, block, sk_most_halo, padded);
    blur(padded, taps, twice);
    const float *once = blurred + block * sk_node_count;
    for (int i = 0; i < sk_node_count; ++i)
        phi[i] = sk_surface_blend(grid->spacing, phi[i], once[i], twice[i]);
}

static void calm_block(const sk_surface_grid *grid, const filter_taps taps, float bound, size_t block)
{
    if (!grid->near[block])
        return;
    float *phi = grid->phi + block * sk_node_count, thrice[sk_node_count];
    const float *once = grid->other + block * sk_node_count, *twice = grid->spare + block * sk_node_count;
    blur_block(grid, grid->spare, taps, block, thrice);
    for (int i = 0; i < sk_node_count; ++i)
        phi[i] = sk_surface_calm(bound, phi[i], once[i], twice[i], thrice[i]);
}

static void calm(sk_surface_grid *grid, const filter_taps taps, float bound)
{
    const size_t blocks = grid->block_count;
    blur_all(grid, grid->phi, taps, grid->other);
    blur_all(grid, grid->other, taps, grid->spare);
#pragma omp parallel for num_threads(grid->threads) schedule(dynamic, 16)
    for (size_t b = 0; b < blocks; ++b)
        calm_block(grid, taps, bound, b);
}

/* --- The finished level set --- */

static void seal_block(const sk_surface_grid *grid, size_t block, float *phi)
{
    for (int n = 0; n < sk_middle; ++n) {
        int lower[3];
        if (!sk_surface_seals(grid, block, n, lower))
            continue;
        for (int k = 0; k < (lower[2] ? 1 : sk_node_n); ++k)
            for (int j = 0; j < (lower[1] ? 1 : sk_node_n); ++j)
                for (int i = 0; i < (lower[0] ? 1 : sk_node_n); ++i) {
                    float *node = phi + i + sk_node_n * (j + sk_node_n * k);
                    *node = sk_most(*node, SK_SURFACE_SEALED);
                }
    }
}

sk_surface_blur sk_surface_blur_of(const sk_surface_grid *grid, double smoothing)
{
    /* A blur wider than the halo is applied repeatedly. */
    const double sigma = 2.0 * smoothing * (double)grid->spacing;
    sk_surface_blur blur_with = {.rounds = 1};
    while (sigma / sqrt(blur_with.rounds) > 2.2 && blur_with.rounds < 6)
        ++blur_with.rounds;
    gaussian_taps(sigma / sqrt(blur_with.rounds), blur_with.taps);
    /* What a blur changes grows with the square of its width. */
    blur_with.bound = 0.08f * (float)(smoothing * smoothing / blur_with.rounds) * grid->spacing;
    if (!(sigma > 0.2))
        blur_with.rounds = 0;
    return blur_with;
}

void sk_surface_smooth(sk_surface_grid *grid, double smoothing)
{
    const size_t blocks = grid->block_count;
    for (int pass = 0; pass < 5; ++pass)
        distance_pass(grid, pass == 0);

    find_band(grid);

    const sk_surface_blur with = sk_surface_blur_of(grid, smoothing);
    for (int round = 0; round < with.rounds; ++round) {
        blur_all(grid, grid->phi, with.taps, grid->other);
#pragma omp parallel for num_threads(grid->threads) schedule(dynamic, 16)
        for (size_t b = 0; b < blocks; ++b)
            blend_block(grid, grid->other, with.taps, b, grid->phi + b * sk_node_count);
    }
    for (int round = 0; round < with.rounds; ++round)
        calm(grid, with.taps, with.bound);
#pragma omp parallel for num_threads(grid->threads) schedule(static)
    for (size_t b = 0; b < blocks; ++b) {
        float *phi = grid->phi + b * sk_node_count;
        for (int i = 0; i < sk_node_count; ++i)
            phi[i] -= grid->offset;
        seal_block(grid, b, phi);
        for (int row = 0; row < sk_node_n * sk_node_n; ++row)
            grid->signs[b][row] = sk_surface_sign_row(grid, b, row, phi);
    }
}
