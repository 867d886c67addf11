/* Distances to solids sampled on a block, and the kernel shares that follow. For files compiled per dimension. */
#ifndef SK_GRID_SOLID_SAMPLES_H
#define SK_GRID_SOLID_SAMPLES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/grid_kernels.h"
#include "grid/solids.h"

/* Distances are sampled every half cell over the block and one cell around it. */
enum {
    NODES = 2 * (SK_BLOCK_N + 2) + 1,
    NODES_Z = SELKIE_DIM == 3 ? NODES : 1,
    SLICE = NODES * NODES,
    HALVES = NODES - 1, /* half cells along an axis */
    HALVES_Z = SELKIE_DIM == 3 ? HALVES : 1
};

/* Bodies close a face whose open part, over the part outside of obstacles, would be less than this. A sliver counts
 * little in the pressure solve, so that its liquid may become as fast as it has to, but its particles count in full.
 * See slivers.h. */
#define SK_BODY_SLIVER 0.05f

typedef struct samples {
    float distance[NODES_Z * SLICE];  /* cells */
    int16_t nearest[NODES_Z * SLICE]; /* obstacle, or -1 - side for a wall */
} samples;

/* Distance to the union of the walls: exact outside the solids, negative depth inside. `which`: also the nearest wall.
 */
static void sample_walls(const sk_solids *solids, const sk_grid *grid, const double corner[3], int which, samples *s)
{
    double h = grid->cell_size;
    double axis_distance[3][NODES];
    float along_x[NODES];
    int axis_side[3][NODES];

    /* Along each axis: distance to the nearer wall, in cells, and its side. */
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int i = 0; i < NODES; i++) {
            double x = corner[d] + (0.5 * i - 1.0) * h;
            double below = solids->walls[2 * d] == SELKIE_WALL_OPEN ? 1e9 : (x - solids->low[d]) / h;
            double above = solids->walls[2 * d + 1] == SELKIE_WALL_OPEN ? 1e9 : (solids->high[d] - x) / h;
            axis_distance[d][i] = below < above ? below : above;
            axis_side[d][i] = below < above ? 2 * d : 2 * d + 1;
        }

    /* At each node: the smallest distance of the axes. */
    for (int i = 0; i < NODES; i++)
        along_x[i] = (float)axis_distance[0][i];
    for (int k = 0; k < NODES_Z; k++)
        for (int j = 0; j < NODES; j++) {
            const int deeper = SELKIE_DIM == 3 && axis_distance[2][k] < axis_distance[1][j];
            const double across = deeper ? axis_distance[2][k] : axis_distance[1][j];
            float *distance = s->distance + NODES * (j + NODES * k);
            for (int i = 0; i < NODES; i++)
                distance[i] = along_x[i] < (float)across ? along_x[i] : (float)across;
            for (int i = 0; which && i < NODES; i++)
                s->nearest[i + NODES * (j + NODES * k)] =
                    (int16_t)(-1 - (across < axis_distance[0][i] ? axis_side[deeper ? 2 : 1][deeper ? k : j]
                                                                 : axis_side[0][i]));
        }
}

static __attribute__((unused)) void sample_obstacle(const sk_obstacle *obstacle, int index, const sk_grid *grid,
                                                    const double corner[3], samples *s)
{
    double h = grid->cell_size, points[SLICE * 3], distances[SLICE];
    for (int k = 0; k < NODES_Z; k++) {
        for (int j = 0; j < NODES; j++)
            for (int i = 0; i < NODES; i++) {
                double *x = points + 3 * (i + NODES * j);
                x[0] = corner[0] + (0.5 * i - 1.0) * h;
                x[1] = corner[1] + (0.5 * j - 1.0) * h;
                x[2] = SELKIE_DIM == 3 ? corner[2] + (0.5 * k - 1.0) * h : 0.0;
            }
        sk_shape_distances(obstacle->shape, obstacle->placed, SLICE, points, distances);
        for (int n = 0; n < SLICE; n++) {
            float distance = (float)(distances[n] / h);
            if (distance < s->distance[n + SLICE * k]) {
                s->distance[n + SLICE * k] = distance;
                s->nearest[n + SLICE * k] = (int16_t)index;
            }
        }
    }
}

/* Rounding must not open a face that lies in a wall. */
static void snap(samples *s)
{
    for (int n = 0; n < NODES_Z * SLICE; n++)
        s->distance[n] = fabsf(s->distance[n]) < 1e-4f ? 0.0f : s->distance[n];
}

/* Distances to one rigid body, cells. Far from its bounds they are those to the bounds, which are less. */
static __attribute__((unused)) void sample_body(const sk_obstacle *body, const sk_grid *grid, const double corner[3],
                                                samples *s)
{
    const double h = grid->cell_size, far = 2.5 * h;
    double points[SLICE * 3], distances[SLICE], outside2[3][NODES] = {{0.0}};
    int16_t asked[SLICE];

    /* Along each axis: the squared distance to the bounds. */
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int i = 0; i < NODES; i++) {
            const double x = corner[d] + (0.5 * i - 1.0) * h;
            const double out = fmax(0.0, fmax(body->low[d] - x, x - body->high[d]));
            outside2[d][i] = out * out;
        }
    for (int k = 0; k < NODES_Z; k++) {
        size_t count = 0;
        for (int n = 0; n < SLICE; n++) {
            const int i = n % NODES, j = n / NODES;
            const double to_bounds2 = outside2[0][i] + outside2[1][j] + (SELKIE_DIM == 3 ? outside2[2][k] : 0.0);
            if (to_bounds2 > far * far) {
                s->distance[n + SLICE * k] = (float)(sqrt(to_bounds2) / h);
                continue;
            }
            double *x = points + 3 * count;
            asked[count++] = (int16_t)n;
            x[0] = corner[0] + (0.5 * i - 1.0) * h;
            x[1] = corner[1] + (0.5 * j - 1.0) * h;
            x[2] = SELKIE_DIM == 3 ? corner[2] + (0.5 * k - 1.0) * h : 0.0;
        }
        sk_shape_distances(body->shape, body->placed, count, points, distances);
        for (size_t n = 0; n < count; n++)
            s->distance[asked[n] + SLICE * k] = (float)(distances[n] / h);
    }
    snap(s);
}

/* Half cells that a surface cuts, 64 at most: means of the distance, its slopes along the axes, and where the solid
 * part goes. */
enum { MOST_CUT = 64 };
typedef struct cut_halves {
    int count;
    float mean[MOST_CUT], slope[3][MOST_CUT];
    float *solid[MOST_CUT];
} cut_halves;

static inline double cube_above(double x)
{
    const double above = x > 0.0 ? x : 0.0; /* no branch, which could not be predicted */
    return above * above * above;
}

/* Part of a cube in which a linear function is positive, from its mean and its slope along each axis: the volume under
 * a plane (Scardovelli and Zaleski 2000, Eq. 1). The lower limit of the slopes avoids a division by zero; its error is
 * negligible. Without branches: a loop over it becomes vectors. */
static inline float open_cube(float mean, float slope_x, float slope_y, float slope_z)
{
    const double x = fabs((double)slope_x), y = fabs((double)slope_y), z = fabs((double)slope_z), steep = x + y + z,
                 sum = steep > 0.0 ? steep : 1.0;
    const double a = x / sum > 1e-4 ? x / sum : 1e-4, b = y / sum > 1e-4 ? y / sum : 1e-4,
                 c = z / sum > 1e-4 ? z / sum : 1e-4;
    const double level = 0.5 * (a + b + c) + (double)mean / sum;

    /* Sum over the corners of the cube, with alternating signs. */
    double volume = cube_above(level) - cube_above(level - a) - cube_above(level - b) + cube_above(level - a - b) -
                    cube_above(level - c) + cube_above(level - a - c) + cube_above(level - b - c) -
                    cube_above(level - a - b - c);
    volume /= 6.0 * a * b * c;
    volume = volume < 0.0 ? 0.0 : volume > 1.0 ? 1.0 : volume;
    return (float)(steep > 0.0 ? volume : mean > 0.0f ? 1.0 : 0.0);
}

/* Writes the solid parts of the cut half cells so far. The distance in them is taken as linear. */
static void fill_cut_halves(cut_halves *cut)
{
    float open[MOST_CUT];
#pragma omp simd
    for (int n = 0; n < cut->count; n++)
        open[n] = open_cube(cut->mean[n], cut->slope[0][n], cut->slope[1][n], cut->slope[2][n]);
    for (int n = 0; n < cut->count; n++)
        *cut->solid[n] = 1.0f - open[n];
    cut->count = 0;
}

/* Notes half cells that a surface cuts, a bit for each of eight. The lower corner of the first one is q. */
static inline void add_cut_halves(cut_halves *cut, unsigned some, const float *q, float *solid)
{
    if (SELKIE_DIM == 2) {
        for (; some; some &= some - 1) {
            const float *own = q + __builtin_ctz(some);
            solid[__builtin_ctz(some)] = 1.0f - sk_open_square(own[0], own[1], own[NODES + 1], own[NODES]);
        }
        return;
    }
    float mean[8], slope[3][8];
    f8 sum = f8_splat(0.0f), along[3] = {sum, sum, sum};
    for (int corner = 0; some && corner < 8; corner++) {
        const f8 value = f8_load(q + (corner & 1) + (corner >> 1 & 1) * NODES + (corner >> 2) * SLICE);
        sum += 0.125f * value;
        for (int axis = 0; axis < 3; axis++)
            along[axis] += (corner >> axis & 1 ? 0.25f : -0.25f) * value;
    }
    f8_store(mean, sum);
    for (int axis = 0; axis < 3; axis++)
        f8_store(slope[axis], along[axis]);
    for (; some; some &= some - 1) {
        const int lane = __builtin_ctz(some);
        cut->mean[cut->count] = mean[lane];
        for (int axis = 0; axis < 3; axis++)
            cut->slope[axis][cut->count] = slope[axis][lane];
        cut->solid[cut->count++] = solid + lane;
        if (cut->count == MOST_CUT)
            fill_cut_halves(cut);
    }
}

/* Solid part of each half cell. */
typedef struct solid_halves {
    float part[HALVES_Z][HALVES][HALVES];
} solid_halves;

/* Half cells, or cells, from `low` up to `high` along each axis. */
typedef struct block_range {
    int low[3], high[3];
} block_range;

static const block_range every_half = {{0, 0, 0}, {HALVES, HALVES, HALVES_Z}};
static const block_range every_cell = {{0, 0, 0}, {SK_BLOCK_N, SK_BLOCK_N, SK_BLOCK_NZ}};

/* Between two walls the distance has an edge. A mean over the corners would count the corner region as half solid. A
 * half cell whose corners are all open is therefore open. */
static void measure_halves(const float *distance, const block_range *range, solid_halves *solid)
{
    const i8 eight = {0, 1, 2, 3, 4, 5, 6, 7};
    cut_halves halves;
    halves.count = 0;
    for (int k = range->low[2]; k < range->high[2]; k++)
        for (int j = range->low[1]; j < range->high[1]; j++)
            for (int at = range->low[0]; at < range->high[0]; at += 8) {
                /* Eight from `at` on, or the last ones of the row. */
                const int i = at < HALVES - 8 ? at : HALVES - 8;
                const i8 lanes = eight + i, own = (lanes >= at) & (lanes < range->high[0]);
                const float *q = distance + i + NODES * (j + NODES * k);
                float *part = solid->part[k][j] + i;
                f8 least = f8_load(q), most = least;
                for (int corner = 1; corner < (SELKIE_DIM == 3 ? 8 : 4); corner++) {
                    const f8 value = f8_load(q + (corner & 1) + (corner >> 1 & 1) * NODES + (corner >> 2) * SLICE);
                    least = f8_min(least, value);
                    most = f8_max(most, value);
                }
                const f8 whole = f8_select((least >= 0.0f) & (most > 0.0f), f8_splat(0.0f), f8_splat(1.0f));
                f8_store(part, f8_select(own, whole, f8_load(part)));
                add_cut_halves(&halves, i8_bits(own & (least < 0.0f) & (most > 0.0f)), q, part);
            }
    fill_cut_halves(&halves);
}

static inline f8 f8_even(f8 a, f8 b)
{
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
}

static inline f8 f8_odd(f8 a, f8 b)
{
    return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
}

/* Share of a trilinear kernel that lies in the solid, for each cell of a range. The kernel is centred on the cell's
 * lower face across axis `face`, or on the cell if face = -1. The solid parts are filtered along each axis with the
 * exact integrals of the hat over half cells. A kernel centred on the cell begins half a cell later than one centred on
 * the face. Loops run over whole rows of cells, whose length is known: the half cells of a row must all have a value.
 */
static void blur(const solid_halves *solid, int face, const block_range *cells, float *blurred)
{
    static const float taps[4] = {0.125f, 0.375f, 0.375f, 0.125f};
    static const int flat = SELKIE_DIM == 2;
    const int first[3] = {face != 0, face != 1, face != 2};
    float rows[HALVES_Z][HALVES][SK_BLOCK_N];
    for (int k = flat ? 0 : 2 * cells->low[2] + first[2]; k < (flat ? 1 : 2 * cells->high[2] + 2 + first[2]); k++)
        for (int j = 2 * cells->low[1] + first[1]; j < 2 * cells->high[1] + 2 + first[1]; j++)
            for (int c = 0; c < SK_BLOCK_N; c += 8) {
                const float *q = solid->part[k][j] + 2 * c + first[0];
                const f8 a = f8_load(q), b = f8_load(q + 8), after_a = f8_load(q + 2), after_b = f8_load(q + 10);
                f8_store(rows[k][j] + c, (taps[0] * f8_even(a, b) + taps[3] * f8_odd(after_a, after_b)) +
                                             (taps[1] * f8_odd(a, b) + taps[2] * f8_even(after_a, after_b)));
            }
    const i8 eight = {0, 1, 2, 3, 4, 5, 6, 7};
    for (int k = cells->low[2]; k < cells->high[2]; k++)
        for (int j = cells->low[1]; j < cells->high[1]; j++)
            for (int c = 0; c < SK_BLOCK_N; c += 8) {
                float *to = blurred + c + SK_BLOCK_N * (j + SK_BLOCK_N * k);
                f8 total = f8_splat(0.0f);
                for (int z = 0; z < (flat ? 1 : 4); z++)
                    for (int y = 0; y < 4; y++)
                        total += (flat ? 1.0f : taps[z]) * taps[y] *
                                 f8_load(rows[flat ? 0 : 2 * k + first[2] + z][2 * j + first[1] + y] + c);
                const i8 own = (eight + c >= cells->low[0]) & (eight + c < cells->high[0]);
                f8_store(to, f8_select(own, total, f8_load(to)));
            }
}

/* --- places --- */

static void block_corner(const sk_grid *grid, const int32_t coordinates[4], double corner[3])
{
    for (int d = 0; d < 3; d++)
        corner[d] = grid->corner[d] + (double)coordinates[d] * grid->extent[d] * grid->cell_size;
}

static void centre_of_face(const double corner[3], double cell_size, int c, int d, double x[3])
{
    for (int e = 0; e < 3; e++)
        x[e] = e < SELKIE_DIM ? corner[e] + ((c >> e * SK_BLOCK_LOG & SK_BLOCK_MASK) + (e == d ? 0.0 : 0.5)) * cell_size
                              : 0.0;
}

#endif
