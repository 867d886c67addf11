/* The sampled distance to a mesh, one query at a time: see mesh_sample.c. Compiled by the C compiler and by nvcc. */
#ifndef SK_GEOM_MESH_SAMPLE_KERNELS_H
#define SK_GEOM_MESH_SAMPLE_KERNELS_H

#include "geom/mesh_kernels.h"

/* Cells and their corners along a side of a block, and its samples. */
enum { SK_SAMPLES_CELLS = 8, SK_SAMPLES_CORNERS = 9, SK_SAMPLES_BLOCK = 9 * 9 * 9 };

typedef struct sk_mesh_samples {
    double cell;    /* m  */
    double low[3];  /* m  */
    double high[3]; /* m  */
    int64_t blocks[3];
    float *centers;      /* m  [blocks] signed distance at the middle of a block */
    float *corners;      /* m  [blocks + 1 along each axis] */
    int32_t *samples_of; /*    [blocks] index of its samples, -1 if it has none */
    float *samples;      /* m  [sampled blocks][9][9][9], x first */
    int64_t sampled;
} sk_mesh_samples;

/* Trilinear interpolation in the cell whose lowest corner is values[0]; `gradient` (may be NULL) per step. */
SK_KERNEL double sk_samples_interpolate(const float *values, int64_t stride_y, int64_t stride_z, const double t[3],
                                        double gradient[3])
{
    double v[2][2][2]; /* [z][y][x] */
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 2; y++)
            for (int x = 0; x < 2; x++)
                v[z][y][x] = (double)values[z * stride_z + y * stride_y + x];
    double along_x[2][2], along_y[2], slope_x[2][2];
    for (int z = 0; z < 2; z++) {
        for (int y = 0; y < 2; y++) {
            slope_x[z][y] = v[z][y][1] - v[z][y][0];
            along_x[z][y] = v[z][y][0] + t[0] * slope_x[z][y];
        }
        along_y[z] = along_x[z][0] + t[1] * (along_x[z][1] - along_x[z][0]);
    }
    if (gradient) {
        double lower = slope_x[0][0] + t[1] * (slope_x[0][1] - slope_x[0][0]);
        double upper = slope_x[1][0] + t[1] * (slope_x[1][1] - slope_x[1][0]);
        gradient[0] = lower + t[2] * (upper - lower);
        lower = along_x[0][1] - along_x[0][0];
        upper = along_x[1][1] - along_x[1][0];
        gradient[1] = lower + t[2] * (upper - lower);
        gradient[2] = along_y[1] - along_y[0];
    }
    return along_y[0] + t[2] * (along_y[1] - along_y[0]);
}

/* Far from the surface: the distance is 1-Lipschitz, so each stored value nearby gives a lower bound. The largest one
 * is returned. */
SK_KERNEL double sk_samples_far_distance(const sk_mesh_samples *sample, const int64_t at[3], const double t[3],
                                         double gradient[3])
{
    int64_t row = sample->blocks[0] + 1, slab = row * (sample->blocks[1] + 1);
    const float *corner = sample->corners + at[0] + row * at[1] + slab * at[2];
    if (gradient)
        sk_samples_interpolate(corner, row, slab, t, gradient);
    double block_size = sample->cell * SK_SAMPLES_CELLS;
    float center = sample->centers[at[0] + sample->blocks[0] * (at[1] + sample->blocks[1] * at[2])];
    double away = 0.0;
    for (int i = 0; i < 3; i++)
        away += (t[i] - 0.5) * (t[i] - 0.5);
    double best = fabs((double)center) - block_size * sqrt(away);
    for (int c = 0; c < 8; c++) {
        int offset[3] = {c & 1, c >> 1 & 1, c >> 2};
        away = 0.0;
        for (int i = 0; i < 3; i++)
            away += (t[i] - offset[i]) * (t[i] - offset[i]);
        double value = fabs((double)corner[offset[0] + row * offset[1] + slab * offset[2]]);
        best = fmax(best, value - block_size * sqrt(away));
    }
    /* No surface crosses this block: its centre has the sign. */
    return signbit(center) ? -best : best;
}

SK_KERNEL double sk_samples_distance_within(const sk_mesh_samples *sample, const double x[3], double gradient[3])
{
    int64_t at[3];
    double t[3]; /* in the block, 0 to 1 */
    for (int i = 0; i < 3; i++) {
        double position = (x[i] - sample->low[i]) / (sample->cell * SK_SAMPLES_CELLS);
        double whole = fmin(fmax(floor(position), 0.0), (double)(sample->blocks[i] - 1));
        at[i] = (int64_t)whole;
        t[i] = fmin(fmax(position - whole, 0.0), 1.0);
    }
    int32_t index = sample->samples_of[at[0] + sample->blocks[0] * (at[1] + sample->blocks[1] * at[2])];
    if (index < 0)
        return sk_samples_far_distance(sample, at, t, gradient);
    int64_t cell[3];
    for (int i = 0; i < 3; i++) {
        double position = t[i] * SK_SAMPLES_CELLS;
        cell[i] = (int64_t)fmin(floor(position), (double)(SK_SAMPLES_CELLS - 1));
        t[i] = position - (double)cell[i];
    }
    const float *values = sample->samples + (int64_t)index * SK_SAMPLES_BLOCK + cell[0] +
                          SK_SAMPLES_CORNERS * (cell[1] + SK_SAMPLES_CORNERS * cell[2]);
    return sk_samples_interpolate(values, SK_SAMPLES_CORNERS, SK_SAMPLES_CORNERS * SK_SAMPLES_CORNERS, t, gradient);
}

/* `tree` is that of the mesh, `normal` may be NULL. */
SK_KERNEL double sk_samples_distance(const sk_mesh_samples *sample, const sk_mesh_tree *tree, const double x[3],
                                     double normal[3])
{
    double inner[3], beyond[3], gradient[3] = {0.0, 0.0, 0.0}, squared = 0.0;
    for (int i = 0; i < 3; i++) {
        inner[i] = fmin(fmax(x[i], sample->low[i]), sample->high[i]);
        beyond[i] = x[i] - inner[i];
        squared += beyond[i] * beyond[i];
    }

    /* Distance at the nearest point of the box. */
    double distance = sk_samples_distance_within(sample, inner, normal ? gradient : NULL);
    double slope =
        normal ? sqrt(gradient[0] * gradient[0] + gradient[1] * gradient[1] + gradient[2] * gradient[2]) : 1.0;
    if (normal) {
        /* On a ridge of the distance the interpolated slope may vanish. */
        if (!(slope > 0.0)) {
            sk_mesh_signed(tree, inner, gradient);
            slope = 1.0;
        }
        for (int i = 0; i < 3; i++)
            normal[i] = gradient[i] / slope;
    }

    if (squared > 0.0) {
        /* Outside the box, which is convex and holds the mesh: the segments from the point to the box and from there to
         * the mesh meet at 90 degrees or more. Pythagoras then gives a lower bound. */
        distance = fmax(distance, 0.0);
        if (normal) {
            double length = 0.0;
            for (int i = 0; i < 3; i++) {
                normal[i] = beyond[i] + distance * normal[i];
                length += normal[i] * normal[i];
            }
            length = sqrt(length);
            for (int i = 0; i < 3; i++)
                normal[i] = length > 0.0 ? normal[i] / length : i == 1;
        }
        distance = sqrt(squared + distance * distance);
    }
    return distance;
}

#endif
