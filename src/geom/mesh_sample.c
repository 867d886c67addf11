/* Layout: the box of the mesh, with a margin, is cut into blocks of 8x8x8 cells. Every block stores the signed distance
 * at its centre and, shared with its neighbours, at its corners. A block near the surface also stores samples at the
 * 9x9x9 corners of its cells. Samples on its faces are stored with each block, so that a query reads one block. Memory
 * is in proportion to the surface's area.
 *
 * Within a block every second corner along each axis is computed first. A corner between corners that are all far from
 * the surface takes their mean, which saves most of the distance queries.
 *
 * Why distances suffice for signs: if the distance of a point is larger than that to its neighbour, no surface passes
 * between them and both are on the same side. A closed mesh therefore needs the winding number only next to the
 * surface, where the chain of such neighbours breaks.
 */
#include "geom/mesh_sample.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/status.h"

enum {
    block_cells = SK_SAMPLES_CELLS,
    block_corners = SK_SAMPLES_CORNERS,
    block_samples = SK_SAMPLES_BLOCK,
    band_cells = 3, /* cells around the surface in which distances are interpolated from samples */
};

struct sk_mesh_sample {
    const sk_mesh_distance *mesh;
    sk_memory *memory;
    sk_mesh_samples grid;
};

/* --- Sampling a lattice --- */

typedef struct lattice {
    double origin[3], step; /* m */
    int64_t count[3];
} lattice;

/* Signed distance at a point. `beside`: the signed distance at a point `apart` (m) away, 0 if none is known; `hint`: a
 * piece near that point, and then the one nearest to this one. */
static double sample_point(const sk_mesh_distance *mesh, const double x[3], double beside, double apart, size_t *hint)
{
    double distance = sk_mesh_distance_unsigned(mesh, x, hint);
    /* A margin, since stored neighbours are rounded to single precision. */
    apart *= 1.0 + 1e-5;
    int same_side = beside != 0.0 && sk_mesh_distance_closed(mesh) && (distance > apart || fabs(beside) > apart);
    int inside = same_side ? beside < 0.0 : sk_mesh_distance_inside(mesh, x);
    return inside ? -distance : distance;
}

/* All of a lattice, rows over threads; rows are independent. */
static void sample_lattice(const sk_mesh_distance *mesh, const lattice *grid, float *values)
{
    int64_t rows = grid->count[1] * grid->count[2];
#pragma omp parallel for schedule(dynamic, 1)
    for (int64_t row = 0; row < rows; row++) {
        double x[3] = {0.0, grid->origin[1] + grid->step * (double)(row % grid->count[1]),
                       grid->origin[2] + grid->step * (double)(row / grid->count[1])};
        size_t hint = SIZE_MAX;
        double beside = 0.0;
        for (int64_t i = 0; i < grid->count[0]; i++) {
            x[0] = grid->origin[0] + grid->step * (double)i;
            beside = sample_point(mesh, x, beside, grid->step, &hint);
            values[row * grid->count[0] + i] = (float)beside;
        }
    }
}

/* --- Sampling a block --- */

enum { even_corners = block_corners / 2 + 1 };

typedef struct block_sampling {
    const sk_mesh_distance *mesh;
    double origin[3], cell; /* m */
    float *values;          /* [9][9][9] */
    size_t hints[even_corners * even_corners * even_corners];
} block_sampling;

static int sample_index(int i, int j, int k)
{
    return i + block_corners * (j + block_corners * k);
}

static size_t *hint_at(block_sampling *block, int i, int j, int k)
{
    return &block->hints[i / 2 + even_corners * (j / 2 + even_corners * (k / 2))];
}

/* The corners whose three numbers are even, each with its neighbour before it as a start. */
static void sample_even(block_sampling *block)
{
    for (int k = 0; k < block_corners; k += 2)
        for (int j = 0; j < block_corners; j += 2)
            for (int i = 0; i < block_corners; i += 2) {
                double x[3] = {block->origin[0] + block->cell * i, block->origin[1] + block->cell * j,
                               block->origin[2] + block->cell * k};
                int bi = i > 0 ? i - 2 : i, bj = i == 0 && j > 0 ? j - 2 : j,
                    bk = i == 0 && j == 0 && k > 0 ? k - 2 : k;
                int first = i == 0 && j == 0 && k == 0;
                size_t hint = first ? SIZE_MAX : *hint_at(block, bi, bj, bk);
                double beside = first ? 0.0 : (double)block->values[sample_index(bi, bj, bk)];
                block->values[sample_index(i, j, k)] =
                    (float)sample_point(block->mesh, x, beside, 2.0 * block->cell, &hint);
                *hint_at(block, i, j, k) = hint;
            }
}

/* Any other corner lies midway between two, four or eight even ones. If all of these are far from the surface, their
 * mean is accurate enough: the error is about cell^2 / distance, below 0.2 cells. The others are computed. */
static void sample_odd(block_sampling *block, int i, int j, int k)
{
    const int low[3] = {i & ~1, j & ~1, k & ~1}, high[3] = {(i + 1) & ~1, (j + 1) & ~1, (k + 1) & ~1};
    double sum = 0.0, least = INFINITY;
    for (int c = 0; c < 8; c++) {
        double value =
            (double)block
                ->values[sample_index(c & 1 ? high[0] : low[0], c & 2 ? high[1] : low[1], c & 4 ? high[2] : low[2])];
        sum += value;
        least = fmin(least, fabs(value));
    }
    /* Exact are the corners of all cells that the band touches: 3 cells and the diagonal of one. No surface passes
     * between even corners that are farther from it than from each other; across the hole of an open mesh their signs
     * may differ, and the mean is then small. */
    const double diagonal = 1.7321 * block->cell;
    if (least > 2.0 * diagonal && fabs(0.125 * sum) > band_cells * block->cell + diagonal) {
        block->values[sample_index(i, j, k)] = (float)(0.125 * sum);
        return;
    }
    double x[3] = {block->origin[0] + block->cell * i, block->origin[1] + block->cell * j,
                   block->origin[2] + block->cell * k};
    double apart = block->cell * sqrt((double)((i & 1) + (j & 1) + (k & 1)));
    size_t hint = *hint_at(block, low[0], low[1], low[2]);
    double beside = (double)block->values[sample_index(low[0], low[1], low[2])];
    block->values[sample_index(i, j, k)] = (float)sample_point(block->mesh, x, beside, apart, &hint);
}

static void sample_block(sk_mesh_sample *sample, int64_t index, float *values)
{
    const int64_t at[3] = {index % sample->grid.blocks[0], index / sample->grid.blocks[0] % sample->grid.blocks[1],
                           index / (sample->grid.blocks[0] * sample->grid.blocks[1])};
    block_sampling block = {.mesh = sample->mesh, .cell = sample->grid.cell, .values = values};
    for (int i = 0; i < 3; i++)
        block.origin[i] = sample->grid.low[i] + sample->grid.cell * (double)(at[i] * block_cells);
    sample_even(&block);
    for (int k = 0; k < block_corners; k++)
        for (int j = 0; j < block_corners; j++)
            for (int i = 0; i < block_corners; i++)
                if ((i | j | k) & 1)
                    sample_odd(&block, i, j, k);
}

/* --- Making --- */

static selkie_code no_memory(const char *name, double sample_size, double bytes, selkie_error *error)
{
    char text[32];
    return sk_fail(error, SELKIE_ERROR_MEMORY,
                   "%s: no memory for its distance sampled every %g m (%s more): use larger cells or a smaller mesh",
                   name, sample_size, sk_bytes_text(bytes, text));
}

static selkie_code lay_out(sk_mesh_sample *sample, const char *name, selkie_error *error)
{
    double low[3], high[3], block_size = sample->grid.cell * block_cells, total = 1.0, corners = 1.0;
    sk_mesh_distance_bounds(sample->mesh, low, high);
    for (int i = 0; i < 3; i++) {
        double margin = (band_cells + 1) * sample->grid.cell;
        double count = ceil((high[i] - low[i] + 2.0 * margin) / block_size);
        total *= count;
        corners *= count + 1.0;
        if (!(total < (double)INT32_MAX)) {
            double bytes = (high[0] - low[0] + block_size) * (high[1] - low[1] + block_size) *
                           (high[2] - low[2] + block_size) / (block_size * block_size * block_size) * 12.0;
            return no_memory(name, sample->grid.cell, bytes, error);
        }
        sample->grid.blocks[i] = (int64_t)count;
        double spare = 0.5 * (count * block_size - (high[i] - low[i]));
        sample->grid.low[i] = low[i] - spare;
        sample->grid.high[i] = sample->grid.low[i] + count * block_size;
    }
    sample->grid.centers = sk_allocate(sample->memory, (size_t)total * sizeof *sample->grid.centers);
    sample->grid.samples_of = sk_allocate(sample->memory, (size_t)total * sizeof *sample->grid.samples_of);
    sample->grid.corners = sk_allocate(sample->memory, (size_t)corners * sizeof *sample->grid.corners);
    if (!sample->grid.centers || !sample->grid.samples_of || !sample->grid.corners)
        return no_memory(name, sample->grid.cell, 8.0 * total + 4.0 * corners, error);
    return SELKIE_OK;
}

static selkie_code fill(sk_mesh_sample *sample, const char *name, selkie_error *error)
{
    /* Coarse: the middles and corners of the blocks. */
    double block_size = sample->grid.cell * block_cells;
    lattice centers = {.step = block_size}, corners = {.step = block_size};
    for (int i = 0; i < 3; i++) {
        centers.origin[i] = sample->grid.low[i] + 0.5 * block_size;
        centers.count[i] = sample->grid.blocks[i];
        corners.origin[i] = sample->grid.low[i];
        corners.count[i] = sample->grid.blocks[i] + 1;
    }
    sample_lattice(sample->mesh, &centers, sample->grid.centers);
    sample_lattice(sample->mesh, &corners, sample->grid.corners);

    /* Fine: where the band reaches into a block. Half a block's diagonal is 0.8660 of its size. */
    int64_t block_count = sample->grid.blocks[0] * sample->grid.blocks[1] * sample->grid.blocks[2];
    double reach = 0.86603 * block_size + band_cells * sample->grid.cell;
    for (int64_t block = 0; block < block_count; block++)
        sample->grid.samples_of[block] =
            fabs((double)sample->grid.centers[block]) <= reach ? (int32_t)sample->grid.sampled++ : -1;
    size_t bytes = (size_t)sample->grid.sampled * block_samples * sizeof *sample->grid.samples;
    sample->grid.samples = sk_allocate(sample->memory, bytes);
    if (!sample->grid.samples)
        return no_memory(name, sample->grid.cell, (double)bytes, error);
#pragma omp parallel for schedule(dynamic, 1)
    for (int64_t block = 0; block < block_count; block++)
        if (sample->grid.samples_of[block] >= 0)
            sample_block(sample, block, sample->grid.samples + (int64_t)sample->grid.samples_of[block] * block_samples);
    return SELKIE_OK;
}

selkie_code sk_mesh_sample_create(const sk_mesh_distance *mesh, double sample_size, const char *name, sk_memory *memory,
                                  sk_mesh_sample **sample_out, selkie_error *error)
{
    *sample_out = NULL;
    if (!(sample_size > 0.0) || !isfinite(sample_size))
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: a sample size of %g m must be finite and above 0", name,
                       sample_size);
    sk_mesh_sample *sample = sk_allocate_zeroed(memory, sizeof *sample);
    if (!sample)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory to sample its distance", name);
    sample->mesh = mesh;
    sample->memory = memory;
    sample->grid.cell = sample_size;
    selkie_code code = lay_out(sample, name, error);
    if (code == SELKIE_OK)
        code = fill(sample, name, error);
    if (code != SELKIE_OK) {
        sk_mesh_sample_destroy(sample);
        return code;
    }
    *sample_out = sample;
    return SELKIE_OK;
}

void sk_mesh_sample_destroy(sk_mesh_sample *sample)
{
    if (!sample)
        return;
    sk_release(sample->memory, sample->grid.centers);
    sk_release(sample->memory, sample->grid.corners);
    sk_release(sample->memory, sample->grid.samples_of);
    sk_release(sample->memory, sample->grid.samples);
    sk_release(sample->memory, sample);
}

/* --- Asking --- */

double sk_mesh_sample_distance(const sk_mesh_sample *sample, const double x[3], double normal[3])
{
    return sk_samples_distance(&sample->grid, sk_mesh_distance_tree(sample->mesh), x, normal);
}

const sk_mesh_samples *sk_mesh_sample_grid(const sk_mesh_sample *sample)
{
    return &sample->grid;
}
