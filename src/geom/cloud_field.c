#include "geom/cloud_field.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "geom/surface_internal.h"

enum {
    wide_n = SK_CLOUD_SIDE + 2, /* nodes of a block and one to each side, for differences */
    wide_count = wide_n * wide_n * wide_n
};

/* Blocks of the whole container that a table may have: 256 MiB. */
static const double most_blocks = 1 << 26;
/* Nodes with less liquid have no velocity worth a difference. */
static const float least_density = 0.15f;

static selkie_code make_table(sk_cloud_field *f, const sk_surface_grid *grid, selkie_error *error)
{
    double count = 1;
    for (int a = 0; a < 3; ++a) {
        f->blocks[a] = (grid->last[a] >> sk_node_log) + 1;
        f->inverse[a] = (float)(1.0 / grid->voxel[a]);
        f->offset[a] = (float)(-grid->origin[a] / grid->voxel[a]);
        f->last[a] = (float)grid->last[a] - 1e-3f;
        count *= f->blocks[a];
    }
    f->table = count <= most_blocks ? sk_allocate(NULL, ((size_t)count + 1) * sizeof *f->table) : NULL;
    if (!f->table)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "field of particles: no memory for a table of %.0f blocks", count);
    f->block_count = grid->block_count + 1;
    for (size_t i = 0; i < (size_t)count; ++i)
        f->table[i] = (int32_t)grid->block_count;
    for (size_t b = 0; b < grid->block_count; ++b) {
        const int32_t *c = grid->coordinates[b];
        f->table[c[0] + (size_t)f->blocks[0] * ((size_t)c[1] + (size_t)f->blocks[1] * (size_t)c[2])] = (int32_t)b;
    }
    return SELKIE_OK;
}

/* --- Nodes of a block and around it --- */

/* Copies the sums or the squares of the nodes from -`before` to `before` + 8 of a block, `n` along an axis; those
 * beyond the walls are as at the walls. */
SK_VECTOR void gather(const sk_surface_grid *grid, const sk_surface_sums *sums, size_t block, const int n,
                      const int before, f4 *to, float *squares)
{
    int neighbour[3][wide_n], local[3][wide_n];
    size_t from[27];
    int exists[27];
    for (int k = 0; k < 27; ++k) {
        const int32_t other = grid->neighbours[block][k];
        exists[k] = other >= 0;
        from[k] = other >= 0 ? (size_t)other * sk_node_count : 0;
    }

    /* Block and place in it of each node, along each axis. */
    static const int stride[3] = {1, 3, 9}, step[3] = {1, sk_node_n, sk_node_n * sk_node_n};
    for (int a = 0; a < 3; ++a)
        for (int i = 0; i < n; ++i) {
            const int first = grid->coordinates[block][a] * sk_node_n;
            int node = first + i - before;
            node = node < 1 ? 1 : node > grid->last[a] ? grid->last[a] : node;
            const int side = node < first ? 0 : node < first + sk_node_n ? 1 : 2;
            neighbour[a][i] = side * stride[a];
            local[a][i] = (node & (sk_node_n - 1)) * step[a];
        }
    for (int k = 0, node = 0; k < n; ++k)
        for (int j = 0; j < n; ++j) {
            const int row = neighbour[1][j] + neighbour[2][k], place = local[1][j] + local[2][k];
            for (int i = 0; i < n; ++i, ++node) {
                const int other = row + neighbour[0][i];
                const size_t at = from[other] + (size_t)(place + local[0][i]);
                if (to)
                    to[node] = exists[other] ? sums->sums[at] : (f4){0};
                else
                    squares[node] = exists[other] ? sums->squares[at] : 0.0f;
            }
        }
}

static void gather_nodes(sk_cloud_field *f, const sk_surface_grid *grid, const sk_surface_sums *sums)
{
    const float bulk = grid->spacing * grid->spacing * grid->spacing;
    memset(f->nodes + grid->block_count * SK_CLOUD_NODES, 0, SK_CLOUD_NODES * sizeof *f->nodes);
#pragma omp parallel for num_threads(grid->threads) schedule(dynamic, 8)
    for (size_t b = 0; b < grid->block_count; ++b) {
        f4 *nodes = f->nodes + b * SK_CLOUD_NODES;
        gather(grid, sums, b, SK_CLOUD_SIDE, 0, nodes, NULL);
        for (int i = 0; i < SK_CLOUD_NODES; ++i)
            nodes[i] *= bulk;
    }
}

/* --- Contacts --- */

/* Spread and convergence of the velocities at a node. `at` and its neighbours have sums of weights, and mean
 * velocities; `square` is the mean of the squared speeds. */
SK_VECTOR float clash_at(const f4 *at, float square, const int *stride, float least)
{
    const f4 own = at[0] * at[0];
    float variance = square - (own[1] + own[2] + own[3]), divergence = 0.0f;
    for (int a = 0; a < 3; ++a) {
        const f4 low = at[-stride[a]], high = at[stride[a]];
        if (!(low[0] > least && high[0] > least))
            continue;
        const f4 change = 0.5f * (high - low), squares = change * change;
        divergence += change[a + 1];
        /* The variance between two nodes, on average over their distance. */
        variance += (squares[1] + squares[2] + squares[3]) / 6.0f;
    }
    const float spread = sqrtf(fmaxf(variance, 0.0f));
    return spread + fminf(fmaxf(-divergence, -spread), spread);
}

/* Bits of the cells between nodes that have a node with a bit. Rows of nodes have 9 bits, rows of cells 8. */
static void lively_cells(const uint16_t rows[SK_CLOUD_SIDE][SK_CLOUD_SIDE], uint64_t cells[SK_CLOUD_BLOCK_MASK + 1])
{
    for (int k = 0; k <= SK_CLOUD_BLOCK_MASK; ++k) {
        cells[k] = 0;
        for (int j = 0; j <= SK_CLOUD_BLOCK_MASK; ++j) {
            const unsigned nodes = (unsigned)(rows[k][j] | rows[k][j + 1] | rows[k + 1][j] | rows[k + 1][j + 1]);
            cells[k] |= (uint64_t)((nodes | nodes >> 1) & 0xff) << (j << SK_CLOUD_BLOCK_LOG);
        }
    }
}

static void find_contacts(const sk_cloud_field *f, const sk_surface_grid *grid, const sk_surface_sums *sums,
                          float contact_speed, size_t block)
{
    static const int stride[3] = {1, wide_n, wide_n * wide_n};
    const float bulk = grid->spacing * grid->spacing * grid->spacing, least = least_density / bulk;
    f4 wide[wide_count];
    float squares[SK_CLOUD_NODES];
    uint16_t rows[SK_CLOUD_SIDE][SK_CLOUD_SIDE] = {{0}};
    gather(grid, sums, block, wide_n, 1, wide, NULL);
    gather(grid, sums, block, SK_CLOUD_SIDE, 0, NULL, squares);
    /* Weights stay, velocities become means. */
    for (int i = 0; i < wide_count; ++i) {
        const float weight = wide[i][0], inverse = weight > 1e-7f ? 1.0f / weight : 0.0f;
        wide[i] *= (f4){1.0f, inverse, inverse, inverse};
    }

    /* Linear between nodes: a cell whose nodes are all below the bounds has no point above them. */
    const float normal = 0.999f * SK_CLOUD_LEAST_NORMAL, clash = 0.999f * SK_CLOUD_LEAST_CLASH * contact_speed;
    f4 *to = f->contacts + (size_t)f->touched[block] * SK_CLOUD_NODES;
    int node = 0;
    for (int k = 1; k <= SK_CLOUD_SIDE; ++k)
        for (int j = 1; j <= SK_CLOUD_SIDE; ++j)
            for (int i = 1; i <= SK_CLOUD_SIDE; ++i, ++node) {
                const f4 *at = wide + i + stride[1] * j + stride[2] * k;
                const float weight = at[0][0];
                f4 contact;
                for (int a = 0; a < 3; ++a)
                    contact[a] = at[-stride[a]][0] - at[stride[a]][0];
                contact[3] = weight > 1e-7f ? weight * clash_at(at, squares[node] / weight, stride, least) : 0.0f;
                contact *= bulk;
                to[node] = contact;
                const f4 square = contact * contact;
                rows[k - 1][j - 1] |= (uint16_t)((square[0] + square[1] + square[2] > normal * normal ||
                                                  contact[3] > clash * bulk * weight)
                                                 << (i - 1));
            }
    lively_cells((const uint16_t(*)[SK_CLOUD_SIDE])rows, f->lively[f->touched[block]]);
}

/* Blocks at or beside a marked one. */
static void widen_marks(const sk_surface_grid *grid, const uint8_t *marks, uint8_t *wider)
{
#pragma omp parallel for num_threads(grid->threads) schedule(static)
    for (size_t b = 0; b < grid->block_count; ++b) {
        wider[b] = 0;
        for (int n = 0; n < 27; ++n)
            wider[b] |= grid->neighbours[b][n] >= 0 && marks[grid->neighbours[b][n]];
    }
}

/* Marks the blocks with a point faster than `speed`. */
static void mark_fast(const sk_surface_grid *grid, const float (*velocity)[3], float speed, uint8_t *marks)
{
#pragma omp parallel for num_threads(grid->threads) schedule(static)
    for (size_t b = 0; b < grid->block_count; ++b) {
        float fastest = 0.0f;
        for (size_t i = grid->first[b]; i < grid->first[b + 1]; ++i) {
            const float *v = velocity[i];
            const float square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
            fastest = fastest > square ? fastest : square;
        }
        marks[b] = fastest > speed * speed;
    }
}

static selkie_code add_contacts(sk_cloud_field *f, const sk_surface_grid *grid, const sk_surface_sums *sums,
                                const uint8_t *marks, float contact_speed, selkie_error *error)
{
    size_t count = 0;
    f->touched = sk_allocate(NULL, f->block_count * sizeof *f->touched);
    for (size_t b = 0; b < f->block_count && f->touched; ++b)
        f->touched[b] = b < grid->block_count && marks[b] ? (int32_t)count++ : -1;
    f->contacts = sk_allocate(NULL, (count * SK_CLOUD_NODES + 1) * sizeof *f->contacts);
    f->lively = sk_allocate(NULL, (count + 1) * sizeof *f->lively);
    if (!f->touched || !f->contacts || !f->lively)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "field of particles: no memory for %zu blocks", count);
#pragma omp parallel for num_threads(grid->threads) schedule(dynamic, 8)
    for (size_t b = 0; b < grid->block_count; ++b)
        if (f->touched[b] >= 0)
            find_contacts(f, grid, sums, contact_speed, b);
    return SELKIE_OK;
}

/* --- The whole --- */

/* What is needed for a while only. */
typedef struct filling {
    sk_surface_grid grid;
    sk_surface_sums sums;
    float (*velocity)[3]; /* m/s of the points */
    uint8_t *marks, *wider;
} filling;

static selkie_code fill(sk_cloud_field *f, filling *w, const sk_surface_particles *particles, double contact_speed,
                        selkie_error *error)
{
    sk_surface_grid *grid = &w->grid;
    /* All particles count here, those deep inside too. */
    grid->only_blocks = 1;
    SK_TRY(sk_surface_bin(grid, particles, error));
    SK_TRY(make_table(f, grid, error));
    w->marks = sk_allocate(NULL, grid->block_count + 1);
    w->wider = sk_allocate(NULL, grid->block_count + 1);
    w->velocity = sk_allocate(NULL, (grid->particle_count + 1) * sizeof *w->velocity);
    f->nodes = sk_allocate(NULL, f->block_count * SK_CLOUD_NODES * sizeof *f->nodes);
    if (!w->marks || !w->wider || !w->velocity || !f->nodes)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "field of particles: no memory for %zu particles", particles->count);

    const float(*velocity)[3] = (const float(*)[3])w->velocity;
    memset(w->marks, 1, grid->block_count);
    sk_surface_sort_vectors(grid, particles->velocity, particles->velocity_stride, w->velocity);
    SK_TRY(
        (isfinite(contact_speed) ? sk_surface_sum_squares : sk_surface_sum)(grid, w->marks, velocity, &w->sums, error));
    gather_nodes(f, grid, &w->sums);
    if (!isfinite(contact_speed))
        return SELKIE_OK;

    /* A sample one and a half nodes from a fast point may lie in the next block. */
    mark_fast(grid, velocity, (float)contact_speed, w->marks);
    widen_marks(grid, w->marks, w->wider);
    return add_contacts(f, grid, &w->sums, w->wider, (float)contact_speed, error);
}

selkie_code sk_cloud_field_create(const sk_surface_particles *particles, const sk_surface_options *options,
                                  double contact_speed, sk_cloud_field **result, selkie_error *error)
{
    *result = NULL;
    sk_cloud_field *f = sk_allocate_zeroed(NULL, sizeof *f);
    if (!f)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "field of particles: no memory");
    filling w = {.marks = NULL};
    selkie_code code = sk_surface_grid_init(&w.grid, options, particles->count, error);
    if (!code)
        code = fill(f, &w, particles, contact_speed, error);
    sk_surface_grid_free(&w.grid);
    sk_surface_sums_free(&w.sums);
    sk_release(NULL, w.velocity);
    sk_release(NULL, w.marks);
    sk_release(NULL, w.wider);
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
    sk_release(NULL, f->table);
    sk_release(NULL, f->nodes);
    sk_release(NULL, f->touched);
    sk_release(NULL, f->contacts);
    sk_release(NULL, f->lively);
    sk_release(NULL, f);
}
