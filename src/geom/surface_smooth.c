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

static inline float least(float a, float b)
{
    return a < b ? a : b;
}

static inline float most(float a, float b)
{
    return a > b ? a : b;
}

/* From 0 at 0 to 1 at 1. */
static inline float smooth_step(float t)
{
    t = least(most(t, 0.0f), 1.0f);
    return t * t * (3.0f - 2.0f * t);
}

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

enum { ring_n = sk_node_n + 2, ring_count = ring_n * ring_n * ring_n };

typedef int32_t i4 __attribute__((vector_size(16)));

SK_VECTOR f4 f4_select(i4 mask, f4 yes, f4 no)
{
    return (f4)((mask & (i4)yes) | (~mask & (i4)no));
}

SK_VECTOR f4 f4_least(f4 a, f4 b)
{
    return f4_select(a < b, a, b);
}

SK_VECTOR f4 f4_most(f4 a, f4 b)
{
    return f4_select(a > b, a, b);
}

SK_VECTOR f4 f4_size(f4 a)
{
    return (f4)((i4)a & 0x7fffffff);
}

/* The Godunov update of four nodes from the least neighbours along each axis. */
SK_VECTOR f4 eikonal(f4 a, f4 b, f4 c)
{
    const f4 zero = (f4){0};
    f4 low = f4_least(a, f4_least(b, c)), high = f4_most(a, f4_most(b, c)), sum = a + b + c;
    f4 middle = sum - low - high, one = low + 1.0f, gap = low - middle;
    f4 two = 0.5f * (low + middle + f4_sqrt(f4_most(2.0f - gap * gap, zero)));
    f4 squares = low * low + middle * middle + high * high;
    f4 three = (sum + f4_sqrt(f4_most(sum * sum - 3.0f * (squares - 1.0f), zero))) * (1.0f / 3.0f);
    return f4_select(one <= middle, one, f4_select(two <= high, two, three));
}

/* Four nodes of a block with a ring around it, and their six neighbours. */
typedef struct star {
    f4 own, beside[6];
} star;

SK_VECTOR star load_star(const float *at)
{
    static const int step[3] = {1, ring_n, ring_n * ring_n};
    star s = {.own = f4_load(at)};
    for (int a = 0; a < 3; ++a) {
        s.beside[2 * a] = f4_load(at - step[a]);
        s.beside[2 * a + 1] = f4_load(at + step[a]);
    }
    return s;
}

/* All ones where the surface passes between a node and one of its neighbours. */
SK_VECTOR i4 star_crosses(const star *s)
{
    i4 differs = (i4){0};
    for (int n = 0; n < 6; ++n)
        differs |= (s->own < 0.0f) ^ (s->beside[n] < 0.0f);
    return differs;
}

SK_VECTOR f4 with_sign(f4 size, f4 of)
{
    return f4_select(of < 0.0f, -size, size);
}

/* Nodes next to the surface get phi over its slope there and keep it, so that the surface crosses the grid's edges at
 * the same places. The others start at the band's width. */
SK_VECTOR f4 distance_start(const star *s, float slope)
{
    const f4 two = {2.0f, 2.0f, 2.0f, 2.0f},
             band = {SK_SURFACE_BAND, SK_SURFACE_BAND, SK_SURFACE_BAND, SK_SURFACE_BAND};
    f4 size = f4_least(f4_size(s->own) * (1.0f / slope), two);
    return with_sign(f4_select(star_crosses(s), size, band), s->own);
}

SK_VECTOR f4 distance_next(const star *s)
{
    const f4 band = {SK_SURFACE_BAND, SK_SURFACE_BAND, SK_SURFACE_BAND, SK_SURFACE_BAND};
    f4 axis[3];
    for (int a = 0; a < 3; ++a)
        axis[a] = f4_least(f4_size(s->beside[2 * a]), f4_size(s->beside[2 * a + 1]));
    f4 size = f4_least(eikonal(axis[0], axis[1], axis[2]), band);
    return f4_select(star_crosses(s), s->own, with_sign(size, s->own));
}

/* One pass over the blocks near the surface, from grid->phi into grid->other. */
static void distance_pass(sk_surface_grid *grid, int start)
{
#pragma omp parallel for num_threads(grid->threads) schedule(dynamic, 16)
    for (size_t b = 0; b < grid->block_count; ++b) {
        float *to = grid->other + b * sk_node_count, ring[ring_count];
        if (!grid->near[b]) {
            memcpy(to, grid->phi + b * sk_node_count, sk_node_count * sizeof *to);
            if (grid->side[b] == SK_BLOCK_OUTSIDE)
                for (int i = 0; i < sk_node_count && start; ++i)
                    to[i] = SK_SURFACE_BAND;
            continue;
        }
        sk_surface_load(grid, grid->phi, b, 1, ring);
        for (int row = 0; row < sk_node_n * sk_node_n; ++row) {
            const float *at = ring + 1 + ring_n * (1 + (row & 7) + ring_n * (1 + (row >> 3)));
            for (int i = 0; i < sk_node_n; i += 4) {
                star s = load_star(at + i);
                f4_store(to + sk_node_n * row + i, start ? distance_start(&s, grid->kernel.slope) : distance_next(&s));
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
    /* More than 1 also undoes what the kernel's mean takes from curved surfaces; measured on balls. */
    const float bend = 1.35f, closing = 0.15f * grid->spacing;
    /* Differences up to the first are noise, from the second on they are shapes. The smooth surface has lost a sheet or
     * a drop where it lies below the sharp one: less is tolerated there. */
    const float low[2] = {0.30f * grid->spacing, 0.20f * grid->spacing};
    const float high[2] = {0.80f * grid->spacing, 0.50f * grid->spacing};
    for (int i = 0; i < sk_node_count; ++i) {
        float smooth = once[i] - bend * (twice[i] - once[i]), difference = phi[i] - smooth;
        const int lost = difference < 0.0f;
        const float t = smooth_step((fabsf(difference) - low[lost]) / (high[lost] - low[lost]));
        /* Closes air well inside the large-scale surface: it is a gap between particles, not a bubble. */
        phi[i] = least(smooth + (phi[i] - smooth) * t, smooth + closing);
    }
}

/* Takes the blurred surface where it is flat at large, and the one that is blurred twice where it is flatter still:
 * bumps of particles vanish in three blurs, so what the third one still changes is the curvature of a shape, the square
 * of the blur's width over the radius. It moves a ball by as much: the bound is a ball of 50 spacings, 100 for two
 * blurs.
 */
static void calm_block(const sk_surface_grid *grid, const filter_taps taps, float bound, size_t block)
{
    if (!grid->near[block])
        return;
    float *phi = grid->phi + block * sk_node_count, thrice[sk_node_count];
    const float *once = grid->other + block * sk_node_count, *twice = grid->spare + block * sk_node_count;
    blur_block(grid, grid->spare, taps, block, thrice);
    for (int i = 0; i < sk_node_count; ++i) {
        const float bend = fabsf(thrice[i] - twice[i]) / (0.25f * bound);
        const float flat = twice[i] + (once[i] - twice[i]) * smooth_step(bend - 2.0f);
        phi[i] = flat + (phi[i] - flat) * smooth_step(bend - 3.0f);
    }
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

/* Signs of the nodes in the container; those outside of it are air. */
static void sign_block(const sk_surface_grid *grid, size_t block, const float *phi)
{
    uint8_t in_container[3] = {0, 0, 0};
    for (int a = 0; a < 3; ++a)
        for (int i = 0; i < sk_node_n; ++i) {
            int node = grid->coordinates[block][a] * sk_node_n + i;
            in_container[a] |= (uint8_t)((node >= 1 && node <= grid->last[a]) << i);
        }
    for (int row = 0; row < sk_node_n * sk_node_n; ++row) {
        unsigned bits = 0;
        for (int i = 0; i < sk_node_n; ++i)
            bits |= (unsigned)(phi[sk_node_n * row + i] < 0.0f) << i;
        int counts = in_container[1] >> (row & 7) & in_container[2] >> (row >> 3) & 1;
        grid->signs[block][row] = counts ? (uint8_t)(bits & in_container[0]) : 0;
    }
}

void sk_surface_smooth(sk_surface_grid *grid, double smoothing)
{
    const size_t blocks = grid->block_count;
    for (int pass = 0; pass < 5; ++pass)
        distance_pass(grid, pass == 0);

    find_band(grid);

    /* A blur wider than the halo is applied repeatedly. */
    double sigma = 2.0 * smoothing * (double)grid->spacing;
    int rounds = 1;
    while (sigma / sqrt(rounds) > 2.2 && rounds < 6)
        ++rounds;
    filter_taps taps;
    gaussian_taps(sigma / sqrt(rounds), taps);
    for (int round = 0; round < rounds && sigma > 0.2; ++round) {
        blur_all(grid, grid->phi, taps, grid->other);
#pragma omp parallel for num_threads(grid->threads) schedule(dynamic, 16)
        for (size_t b = 0; b < blocks; ++b)
            blend_block(grid, grid->other, taps, b, grid->phi + b * sk_node_count);
    }
    /* What a blur changes grows with the square of its width. */
    for (int round = 0; round < rounds && sigma > 0.2; ++round)
        calm(grid, taps, 0.08f * (float)(smoothing * smoothing / rounds) * grid->spacing);
#pragma omp parallel for num_threads(grid->threads) schedule(static)
    for (size_t b = 0; b < blocks; ++b) {
        float *phi = grid->phi + b * sk_node_count;
        for (int i = 0; i < sk_node_count; ++i)
            phi[i] -= grid->offset;
        seal_block(grid, b, phi);
        sign_block(grid, b, phi);
    }
}
