/* Heat from particles to cells and back, by the linear hat.
 *
 * Each block sums its particles in a tile with a halo of one cell; each block then adds its own tile and the halos of
 * its neighbours in a fixed order. Weights are single, sums double: the weights back are the same, so that energy is
 * kept to the rounding of doubles. A closed cell (inside a solid) takes no heat: its weight goes to the particle's own
 * cell.
 */
#include <math.h>

#include "base/simd.h"
#include "grid/tile.h"
#include "grid/grid_kernels.h"
#include "grid/plain.h"
#include "methods/heat/heat.h"

SK_TILE_LOADER(load_doubles, double)

enum { WIDTH = SK_TILE_N(1), TILE = SK_TILE_VALUES(1) };

static const int tile_step[3] = {1, WIDTH, WIDTH *WIDTH};

/* Constants of a block. */
typedef struct heat_block {
    float corner[3], inverse;
    int first[3]; /* grid coordinates of its first cell */
    int any_closed;
    uint8_t closed[TILE];
    uint8_t edge[TILE]; /* one of the nodes of a particle from here on is closed */
} heat_block;

static void begin_block(const sk_step *step, int block, heat_block *own)
{
    const sk_grid *grid = &step->grid;
    own->inverse = (float)(1.0 / grid->cell_size);
    own->any_closed = 0;
    for (int d = 0; d < 3; d++) {
        own->corner[d] = (float)grid->corner[d];
        own->first[d] = d < SELKIE_DIM ? grid->coordinates[block][d] * SK_BLOCK_N : 0;
    }
    sk_tile_load_mapped_bytes(grid, step->solids.block_slot, step->solids.closed, block, 1, own->closed);
    for (int n = 0; n < TILE; n++)
        own->any_closed |= own->closed[n];
    memset(own->edge, 0, sizeof own->edge);
    for (int n = 0; own->any_closed && n < TILE - tile_step[0] - tile_step[1] - (SELKIE_DIM == 3 ? tile_step[2] : 0);
         n++)
        for (int c = 0; c < SK_CORNERS; c++)
            own->edge[n] |= own->closed[n + (c & 1) + (c >> 1 & 1) * tile_step[1] + (c >> 2) * tile_step[2]];
}

/* Tile nodes and weights of a particle. Closed nodes are replaced by the particle's own cell. */
static inline __attribute__((always_inline)) void find_nodes(const heat_block *block, const float position[3], int own,
                                                             const int closed, int node[SK_CORNERS],
                                                             float weight[SK_CORNERS])
{
    int base = 0;
    float above[SELKIE_DIM];
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int low = sk_heat_place(sk_cell_coordinate(position[d], block->corner[d], block->inverse), &above[d]);
        base += (low - block->first[d] + 1) * tile_step[d];
    }
    for (int c = 0; c < SK_CORNERS; c++) {
        weight[c] = 1.0f;
        node[c] = base;
        for (int d = 0; d < SELKIE_DIM; d++) {
            weight[c] *= c >> d & 1 ? above[d] : 1.0f - above[d];
            node[c] += c >> d & 1 ? tile_step[d] : 0;
        }
    }
    for (int c = 0; closed && c < SK_CORNERS; c++)
        node[c] = block->closed[node[c]] ? own : node[c];
}

static int tile_index(int cell)
{
    return SK_TILE_ORIGIN(1) + sk_plain_along(cell, 0) + WIDTH * sk_plain_along(cell, 1) +
           (SELKIE_DIM == 3 ? WIDTH * WIDTH * sk_plain_along(cell, 2) : 0);
}

/* --- To the cells --- */

static inline __attribute__((always_inline)) void add_particles(const sk_step *step, const sk_heat *heat,
                                                                const sk_heat_attributes *a, int block,
                                                                const int several, const int closed,
                                                                const heat_block *own, double *tile)
{
    const int sums = several ? SK_HEAT_SUMS : SK_HEAT_TEMPERATURE;
    const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    for (int c = 0; c < SK_BLOCK_CELLS; c++)
        for (uint32_t p = start[c]; p < start[c + 1]; p++) {
            double values[SK_HEAT_SUMS];
            int node[SK_CORNERS];
            float weight[SK_CORNERS];
            sk_heat_values(heat, a, p, several, values);
            find_nodes(own, step->particles.records[p].position, tile_index(c), closed, node, weight);
            for (int n = 0; n < SK_CORNERS; n++)
                for (int v = 0; v < sums; v++)
                    tile[node[n] * sums + v] += (double)weight[n] * values[v];
        }
}

#if SELKIE_DIM == 3
typedef double pair __attribute__((vector_size(16)));
typedef double pair_memory __attribute__((vector_size(16), aligned(8), may_alias));
typedef float quad __attribute__((vector_size(16)));

/* Offsets of the rows of a particle: two nodes along x each. */
static const int rows[4] = {0, WIDTH, WIDTH *WIDTH, WIDTH *WIDTH + WIDTH};

/* The weights of find_nodes() bit for bit, a row at a time. Returns the first node. */
static inline __attribute__((always_inline)) int find_rows(const heat_block *block, const float position[3],
                                                           pair weight[4])
{
    int base = 0;
    float above[3];
    for (int d = 0; d < 3; d++) {
        const int low = sk_heat_place(sk_cell_coordinate(position[d], block->corner[d], block->inverse), &above[d]);
        base += (low - block->first[d] + 1) * tile_step[d];
    }
    const float x[2] = {1.0f - above[0], above[0]}, y[2] = {1.0f - above[1], above[1]};
    const quad flat = (quad){x[0], x[1], x[0], x[1]} * (quad){y[0], y[0], y[1], y[1]};
    const quad low = flat * (1.0f - above[2]), high = flat * above[2];
    weight[0] = (pair){(double)low[0], (double)low[1]};
    weight[1] = (pair){(double)low[2], (double)low[3]};
    weight[2] = (pair){(double)high[0], (double)high[1]};
    weight[3] = (pair){(double)high[2], (double)high[3]};
    return base;
}

/* The eight weights of find_nodes(), bit for bit. Returns the first node. */
static inline __attribute__((always_inline)) int find_cube(const heat_block *block, const float position[3], f8 *weight)
{
    int base = 0;
    float above[3];
    for (int d = 0; d < 3; d++) {
        const int low = sk_heat_place(sk_cell_coordinate(position[d], block->corner[d], block->inverse), &above[d]);
        base += (low - block->first[d] + 1) * tile_step[d];
    }
    const float x = 1.0f - above[0], y = 1.0f - above[1], z = 1.0f - above[2];
    const f8 along_x = {x, above[0], x, above[0], x, above[0], x, above[0]},
             along_y = {y, y, above[1], above[1], y, y, above[1], above[1]},
             along_z = {z, z, z, z, above[2], above[2], above[2], above[2]};
    *weight = along_x * along_y * along_z;
    return base;
}

/* Sums of the particles between the same eight nodes: their weights, and weights times enthalpy. */
typedef struct cube_sums {
    d8 weight, enthalpy;
} cube_sums;

/* A plane of nodes and a plane of cubes; LEAD empty cubes lie on both sides of the latter. */
enum { PLANE = WIDTH * WIDTH, CUBES = PLANE - WIDTH - 1, LEAD = WIDTH + 1, PADDED = LEAD + PLANE };

/* Adds the sums of a plane of cubes to a plane of nodes, from their lower or their upper corners. Nodes take the sums
 * of the cubes around them: a cube that adds to its nodes would wait for the stores of the one before. */
static inline __attribute__((always_inline)) void flush_half(double capacity, const cube_sums *cubes, const int upper,
                                                             double *tile)
{
    for (int n = 0; n < PLANE; n++) {
        pair sum = {0.0, 0.0};
        for (int c = 0; c < 4; c++) {
            const cube_sums *from = &cubes[n - (c & 1) - WIDTH * (c >> 1)];
            sum += (pair){from->weight[c + 4 * upper], from->enthalpy[c + 4 * upper]};
        }
        *(pair_memory *)(tile + 2 * n) += capacity * sum;
    }
}

/* Adds the sums of a plane of cubes to the nodes below and above, and clears them. */
static void flush_plane(double capacity, cube_sums cubes[PADDED], double *tile)
{
    flush_half(capacity, cubes + LEAD, 0, tile);
    flush_half(capacity, cubes + LEAD, 1, tile + 2 * PLANE);
    memset(cubes + LEAD, 0, CUBES * sizeof *cubes);
}

/* A particle of cell c beside a closed cell. */
static void add_beside_closed(const heat_block *own, int c, int base, f8 weight, double capacity, double enthalpy,
                              double *tile)
{
    for (int n = 0; n < SK_CORNERS; n++) {
        const int node = base + (n & 1) + rows[n >> 1], to = own->closed[node] ? tile_index(c) : node;
        tile[2 * to] += capacity * (double)weight[n];
        tile[2 * to + 1] += capacity * (double)weight[n] * enthalpy;
    }
}

/* add_particles() for one material. Particles between the same nodes are added as a vector; then the sums go to the
 * nodes. The cells of a plane reach two planes of cubes, which the first cache holds. */
static void add_cubes(const sk_step *step, const sk_heat *heat, const sk_heat_attributes *a, int block,
                      const heat_block *own, double *tile)
{
    const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    const double capacity = heat->curves[0].capacity;
    cube_sums cubes[2][PADDED];
    memset(cubes, 0, sizeof cubes);
    for (int k = 0; k < SK_BLOCK_N; k++) {
        for (int c = k * SK_BLOCK_N * SK_BLOCK_N; c < (k + 1) * SK_BLOCK_N * SK_BLOCK_N; c++)
            for (uint32_t p = start[c]; p < start[c + 1]; p++) {
                f8 weight;
                const double enthalpy = sk_heat_get(a, p);
                const int base = find_cube(own, step->particles.records[p].position, &weight);
                const int upper = base >= (k + 1) * PLANE, at = base - (k + upper) * PLANE;
                if (__builtin_expect(own->edge[base] || at < 0 || at >= CUBES, 0)) {
                    add_beside_closed(own, c, base, weight, capacity, enthalpy, tile);
                    continue;
                }
                const d8 wide = __builtin_convertvector(weight, d8);
                cube_sums *to = &cubes[(k + upper) & 1][LEAD + at];
                to->weight += wide;
                to->enthalpy += wide * enthalpy;
            }
        flush_plane(capacity, cubes[k & 1], tile + 2 * k * PLANE);
    }
    flush_plane(capacity, cubes[SK_BLOCK_N & 1], tile + 2 * SK_BLOCK_N * PLANE);
}
#endif

/* Sums of a block. The loops are compiled apart, so that the usual one has neither materials nor closed cells. */
static void sum_block(const sk_step *step, const sk_heat *heat, const sk_heat_attributes *a, int block, double *tile)
{
    heat_block own;
    begin_block(step, block, &own);
    memset(tile, 0, TILE * (heat->several ? SK_HEAT_SUMS : SK_HEAT_TEMPERATURE) * sizeof *tile);
    if (heat->several)
        add_particles(step, heat, a, block, 1, 1, &own, tile);
#if SELKIE_DIM == 3
    else
        add_cubes(step, heat, a, block, &own, tile);
#else
    else if (own.any_closed)
        add_particles(step, heat, a, block, 0, 1, &own, tile);
    else
        add_particles(step, heat, a, block, 0, 0, &own, tile);
#endif
}

/* Cells [from, from + count) along an axis that the tile of the neighbour on `side` reaches, from its cell `at`. */
typedef struct heat_overlap {
    int from, count, at;
} heat_overlap;

static heat_overlap overlap_of(int side)
{
    const heat_overlap overlap = {side > 0 ? SK_BLOCK_N - 1 : 0, side ? 1 : SK_BLOCK_N,
                                  side > 0   ? 0
                                  : side < 0 ? SK_BLOCK_N + 1
                                             : 1};
    return overlap;
}

/* Adds the tiles that reach into a block, in the order of the neighbours. */
static void add_tiles(const sk_step *step, int block, int sums, const double *tiles, double *cells)
{
    const sk_grid *grid = &step->grid;
    memset(cells, 0, (size_t)(SK_BLOCK_CELLS * sums) * sizeof *cells);
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        const int slot = grid->neighbours[block][n];
        if (slot < 1 || slot > grid->particle_blocks)
            continue;
        const double *tile = tiles + (size_t)(slot - 1) * (size_t)(TILE * sums);
        const heat_overlap x = overlap_of(n % 3 - 1), y = overlap_of(n / 3 % 3 - 1);
        const heat_overlap z = SELKIE_DIM == 3 ? overlap_of(n / 9 - 1) : (heat_overlap){0, 1, 0};
        for (int k = 0; k < z.count; k++)
            for (int j = 0; j < y.count; j++) {
                const double *from = tile + sums * (x.at + WIDTH * (y.at + j + WIDTH * (z.at + k)));
                double *to = cells + sums * (x.from + SK_BLOCK_N * (y.from + j + SK_BLOCK_N * (z.from + k)));
                for (int v = 0; v < x.count * sums; v++)
                    to[v] += from[v];
            }
    }
}

selkie_code SK_DIM(sk_heat_gather)(sk_step *step, const sk_heat *heat, sk_heat_cells *cells, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    const sk_heat_attributes a = sk_heat_find_attributes(step);
    const int sums = heat->several ? SK_HEAT_SUMS : SK_HEAT_TEMPERATURE;
    const size_t tile = (size_t)(TILE * sums);
    double *tiles;
    SK_TRY(sk_step_scratch(step, ((size_t)grid->particle_blocks + 1) * tile * sizeof *tiles, "heat", (void **)&tiles,
                           error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 1; b <= grid->particle_blocks; b++)
        sum_block(step, heat, &a, b, tiles + (size_t)(b - 1) * tile);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 1; b < grid->block_count; b++) {
        double own[SK_BLOCK_CELLS * SK_HEAT_SUMS];
        add_tiles(step, b, sums, tiles, own);
        cells->empty[b] = 1;
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            cells->empty[b] &= own[c * sums] == 0.0;
            sk_heat_finish_cell(heat, cells, (size_t)b * SK_BLOCK_CELLS + (size_t)c, own + c * sums);
        }
    }
    return SELKIE_OK;
}

/* --- To the particles --- */

/* Enthalpy of a particle after the change of the tile. */
static inline __attribute__((always_inline)) double changed(const heat_block *own, const float position[3], int cell,
                                                            const int closed, const double *change, double enthalpy)
{
#if SELKIE_DIM == 3
    pair row[4], both = {enthalpy, 0.0};
    const int base = find_rows(own, position, row);
    for (int r = 0; r < 4 && !own->edge[base]; r++)
        both += row[r] * *(const pair_memory *)(change + base + rows[r]);
    if (!own->edge[base])
        return both[0] + both[1];
#endif
    int node[SK_CORNERS];
    float weight[SK_CORNERS];
    double sums[2] = {enthalpy, 0.0};
    find_nodes(own, position, tile_index(cell), closed, node, weight);
    for (int n = 0; n < SK_CORNERS; n++)
        sums[n & 1] += (double)weight[n] * change[node[n]];
    return sums[0] + sums[1];
}

/* Gives the changes of the tile to the particles of a block. */
static inline __attribute__((always_inline)) void give_changes(const sk_step *step, const sk_heat *heat,
                                                               const sk_heat_cells *cells, int block, const int closed,
                                                               const heat_block *own, const double *change)
{
    const sk_heat_attributes a = sk_heat_find_attributes(step);
    const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        int beyond = 0;
        for (uint32_t p = start[c]; p < start[c + 1]; p++) {
            const sk_heat_curve *curve = sk_heat_curve_of(heat, &a, p);
            const double enthalpy =
                changed(own, step->particles.records[p].position, c, closed, change, sk_heat_get(&a, p));
            const double temperature = sk_heat_set(&a, curve, p, enthalpy);
            beyond |= temperature > heat->warmest || temperature < heat->coldest;
        }
        const uint32_t range[1][2] = {{start[c], start[c + 1]}};
        cells->phase[(size_t)block * SK_BLOCK_CELLS + (size_t)c] =
            beyond && !sk_heat_limit_cells(heat, &a, range, 1) ? SK_HEAT_BEYOND : 0;
    }
}

void SK_DIM(sk_heat_scatter_block)(const sk_step *step, const sk_heat *heat, const sk_heat_cells *cells, int block)
{
    double change[TILE], most = 0.0;
    heat_block own;
    begin_block(step, block, &own);
    load_doubles(&step->grid, cells->change, block, 1, change);

    /* Far from all differences the change is the rounding of the means. */
    for (int n = 0; n < TILE; n++)
        most = fabs(change[n]) > most ? fabs(change[n]) : most;
    memset(cells->phase + (size_t)block * SK_BLOCK_CELLS, 0, SK_BLOCK_CELLS);
    if (!(most > 1e-12))
        return;
    if (own.any_closed)
        give_changes(step, heat, cells, block, 1, &own, change);
    else
        give_changes(step, heat, cells, block, 0, &own, change);
}
