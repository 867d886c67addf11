#include "geom/cloud_field.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "geom/surface_internal.h"

struct sk_cloud_field {
    sk_surface_grid grid;
    sk_surface_sums sums;    /* a node: density, velocity */
    sk_surface_sums squares; /* a node: density, squared speed; only if asked for */
    int blocks[3];
    int32_t *table; /* [blocks] of the container: block of sums, -1 = none */
    float inverse[3];
};

/* Blocks of the whole container that a table may have: 256 MiB. */
static const double most_blocks = 1 << 26;

static selkie_code make_table(sk_cloud_field *f, selkie_error *error)
{
    double count = 1;
    for (int a = 0; a < 3; ++a) {
        f->blocks[a] = (f->grid.last[a] >> sk_node_log) + 1;
        f->inverse[a] = (float)(1.0 / f->grid.voxel[a]);
        count *= f->blocks[a];
    }
    f->table = count <= most_blocks ? sk_allocate(NULL, ((size_t)count + 1) * sizeof *f->table) : NULL;
    if (!f->table)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "field of particles: no memory for a table of %.0f blocks", count);
    memset(f->table, 0xff, (size_t)count * sizeof *f->table);
    for (size_t b = 0; b < f->grid.block_count; ++b) {
        const int32_t *c = f->grid.coordinates[b];
        f->table[c[0] + (size_t)f->blocks[0] * ((size_t)c[1] + (size_t)f->blocks[1] * (size_t)c[2])] = f->sums.index[b];
    }
    return SELKIE_OK;
}

/* Values of the points in their sorted order: velocity, or the squared speed. */
static void sort_values(const sk_surface_grid *grid, const sk_surface_particles *p, int squares, float (*sorted)[3])
{
#pragma omp parallel for num_threads(grid->threads) schedule(static)
    for (size_t i = 0; i < grid->particle_count; ++i) {
        const float *v = (const float *)((const char *)p->velocity + grid->points[i].source * p->velocity_stride);
        float u[3];
        for (int a = 0; a < 3; ++a)
            u[a] = isfinite(v[a]) ? v[a] : 0.0f;
        for (int a = 0; a < 3; ++a)
            sorted[i][a] = squares ? (a ? 0.0f : u[0] * u[0] + u[1] * u[1] + u[2] * u[2]) : u[a];
    }
}

/* Sums become means and a relative density. */
static void normalise(const sk_surface_grid *grid, sk_surface_sums *sums)
{
    const float bulk = grid->spacing * grid->spacing * grid->spacing;
#pragma omp parallel for num_threads(grid->threads) schedule(static)
    for (size_t b = 0; b < grid->block_count; ++b)
        for (int i = 0; i < sk_node_count && sums->index[b] >= 0; ++i) {
            f4 *node = &sums->sums[(size_t)sums->index[b] * sk_node_count + (size_t)i];
            const float weight = (*node)[0];
            *node = weight > 1e-7f ? *node / weight : (f4){0};
            (*node)[0] = weight * bulk;
        }
}

static selkie_code fill(sk_cloud_field *f, const sk_surface_particles *particles, int with_squares, selkie_error *error)
{
    sk_surface_grid *grid = &f->grid;
    SK_TRY(sk_surface_bin(grid, particles, error));
    /* All particles count here, those deep inside too. */
    memset(grid->deep, 0, grid->block_count * sizeof *grid->deep);
    uint8_t *all = sk_allocate(NULL, grid->block_count + 1);
    float(*values)[3] = sk_allocate(NULL, (grid->particle_count + 1) * sizeof *values);
    selkie_code code = SELKIE_OK;
    if (all && values) {
        memset(all, 1, grid->block_count);
        sort_values(grid, particles, 0, values);
        code = sk_surface_sum(grid, all, (const float(*)[3])values, &f->sums, error);
        if (!code && with_squares) {
            sort_values(grid, particles, 1, values);
            code = sk_surface_sum(grid, all, (const float(*)[3])values, &f->squares, error);
        }
    } else {
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "field of particles: no memory for %zu particles", particles->count);
    }
    sk_release(NULL, all);
    sk_release(NULL, values);
    SK_TRY(code);
    normalise(grid, &f->sums);
    if (with_squares)
        normalise(grid, &f->squares);
    return make_table(f, error);
}

selkie_code sk_cloud_field_create(const sk_surface_particles *particles, const sk_surface_options *options,
                                  int with_squares, sk_cloud_field **result, selkie_error *error)
{
    *result = NULL;
    sk_cloud_field *f = sk_allocate_zeroed(NULL, sizeof *f);
    if (!f)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "field of particles: no memory");
    selkie_code code = sk_surface_grid_init(&f->grid, options, particles->count, error);
    if (!code)
        code = fill(f, particles, with_squares, error);
    if (code) {
        sk_cloud_field_destroy(f);
        return code;
    }
    *result = f;
    return SELKIE_OK;
}

void sk_cloud_field_destroy(sk_cloud_field *f)
{
    if (!f)
        return;
    sk_surface_grid_free(&f->grid);
    sk_surface_sums_free(&f->sums);
    sk_surface_sums_free(&f->squares);
    sk_release(NULL, f->table);
    sk_release(NULL, f);
}

/* The eight nodes around a point: places in the sums (-1 = none) and weights. */
typedef struct corners {
    int64_t place[8];
    float weight[8];
} corners;

static void find_corners(const sk_cloud_field *f, const float x[3], corners *c)
{
    int base[3];
    float part[3];
    for (int a = 0; a < 3; ++a) {
        float at = (float)((double)x[a] - f->grid.origin[a]) * f->inverse[a];
        /* Beyond the walls as at the walls. */
        at = fminf(fmaxf(at, 1.0f), (float)f->grid.last[a] - 1e-3f);
        base[a] = (int)at;
        part[a] = at - (float)base[a];
    }
    for (int n = 0; n < 8; ++n) {
        const int node[3] = {base[0] + (n & 1), base[1] + (n >> 1 & 1), base[2] + (n >> 2)};
        const size_t block = (size_t)(node[0] >> sk_node_log) +
                             (size_t)f->blocks[0] * ((size_t)(node[1] >> sk_node_log) +
                                                     (size_t)f->blocks[1] * (size_t)(node[2] >> sk_node_log));
        const int32_t sums = f->table[block];
        const int local = (node[0] & 7) + sk_node_n * ((node[1] & 7) + sk_node_n * (node[2] & 7));
        c->place[n] = sums < 0 ? -1 : (int64_t)sums * sk_node_count + local;
        c->weight[n] = (n & 1 ? part[0] : 1.0f - part[0]) * (n >> 1 & 1 ? part[1] : 1.0f - part[1]) *
                       (n >> 2 ? part[2] : 1.0f - part[2]);
    }
}

void sk_cloud_field_sample(const sk_cloud_field *f, const float x[3], sk_cloud_sample *sample)
{
    corners c;
    find_corners(f, x, &c);
    f4 sum = {0};
    float square = 0.0f;
    for (int n = 0; n < 8; ++n) {
        if (c.place[n] < 0)
            continue;
        /* Means count by the density that they stand for. */
        f4 node = f->sums.sums[c.place[n]];
        const float weight = c.weight[n] * node[0];
        node[0] = 1.0f;
        sum += node * weight;
        if (f->squares.sums)
            square += f->squares.sums[c.place[n]][1] * weight;
    }
    const float inverse = sum[0] > 1e-7f ? 1.0f / sum[0] : 0.0f;
    sample->density = sum[0];
    for (int a = 0; a < 3; ++a)
        sample->velocity[a] = sum[a + 1] * inverse;
    sample->square = square * inverse;
}

float sk_cloud_field_density(const sk_cloud_field *f, const float x[3])
{
    corners c;
    find_corners(f, x, &c);
    float density = 0.0f;
    for (int n = 0; n < 8; ++n)
        if (c.place[n] >= 0)
            density += c.weight[n] * f->sums.sums[c.place[n]][0];
    return density;
}
