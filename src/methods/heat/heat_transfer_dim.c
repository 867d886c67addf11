/* Heat from particles to cells and back, by the linear hat.
 *
 * Each block sums its particles in a tile with a halo of one cell; each block then adds its own tile and the halos of
 * its neighbours in a fixed order. Weights are single, sums double: the weights back are the same, so that energy is
 * kept to the rounding of doubles. A closed cell (inside a solid) takes no heat: its weight goes to the particle's own
 * cell.
 *
 * In 3D, for one material, the particles between the same eight nodes (a cube) are added as a vector, and the changes
 * of the 27 nodes around a cell go to eight of its particles at a time.
 */
#include <math.h>

#include "base/simd.h"
#include "grid/tile.h"
#include "grid/grid_kernels.h"
#include "grid/plain.h"
#include "methods/heat/heat_plain.h"

SK_TILE_LOADER(load_doubles, double)

/* A sum has a tile of its own. Rows of four nodes may end behind the last. */
enum { WIDTH = SK_TILE_N(1), TILE = SK_TILE_VALUES(1), PADDED = TILE + 8 };

static const int tile_step[3] = {1, WIDTH, WIDTH *WIDTH};

/* Constants of a block. */
typedef struct heat_block {
    float corner[3], inverse;
    int first[3]; /* grid coordinates of its first cell */
    int any_closed;
    uint8_t closed[TILE];
    uint8_t edge[TILE]; /* one of the nodes of a particle from here on is closed */
} heat_block;

/* Joins each byte with the next along an axis. */
static void join_bytes(const uint8_t *from, int along, uint8_t *to)
{
    for (int n = 0; n < TILE - along; n++)
        to[n] = from[n] | from[n + along];
}

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
    if (SELKIE_DIM == 3 && own->any_closed) {
        uint8_t along[TILE] = {0}, across[TILE] = {0};
        join_bytes(own->closed, 1, along);
        join_bytes(along, WIDTH, across);
        join_bytes(across, tile_step[2], own->edge);
    }
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
                    tile[v * PADDED + node[n]] += (double)weight[n] * values[v];
        }
}

#if SELKIE_DIM == 3
typedef double pair __attribute__((vector_size(16)));
typedef int32_t i4 __attribute__((vector_size(16)));
typedef int64_t l8 __attribute__((vector_size(64)));
typedef double d8_memory __attribute__((vector_size(64), aligned(8), may_alias));

/* Nodes around a cell; nodes and cubes of a plane; LEAD empty cubes lie on both sides of the latter. A cube has the
 * number of its first node. */
enum { NODES = 27, PLANE = WIDTH * WIDTH, CUBES = PLANE - WIDTH - 1, LEAD = WIDTH + 1, CUBES_PADDED = LEAD + PLANE };

/* Compilers convert wide vectors in pieces. */
static inline __attribute__((always_inline)) d8 widen(f8 a)
{
#if defined(__AVX512F__)
    return (d8)_mm512_cvtps_pd((__m256)a);
#else
    return d8_from_f8(a);
#endif
}

/* Grid coordinates of a cell of the block, and a fourth lane. */
static inline f4 coordinates_of(const heat_block *block, int c)
{
    return (f4){(float)(block->first[0] + sk_plain_along(c, 0)), (float)(block->first[1] + sk_plain_along(c, 1)),
                (float)(block->first[2] + sk_plain_along(c, 2)), 0.0f};
}

/* The eight weights of a particle in a cell. Returns its octant: a bit for each axis along which the particle lies
 * below the centre of the cell. weigh_batch() has the same bits: it must not round otherwise. */
static inline __attribute__((always_inline)) unsigned weigh_cube(f4 corner, f4 inverse, f4 cell, const float *position,
                                                                 f8 *weight)
{
    const f4 half = {-0.5f, -0.5f, -0.5f, 0.0f};
    const f4 centred = f4_multiply_add(f4_load(position) - corner, inverse, half);
    const i4 lower = centred < cell;
    const f4 above = centred - (cell + __builtin_convertvector(lower, f4)), below = 1.0f - above;
    const f8 both = __builtin_shufflevector(below, above, 0, 1, 2, 3, 4, 5, 6, 7);
    const f8 x = __builtin_shufflevector(both, both, 0, 4, 0, 4, 0, 4, 0, 4);
    const f8 y = __builtin_shufflevector(both, both, 1, 1, 5, 5, 1, 1, 5, 5);
    const f8 z = __builtin_shufflevector(both, both, 2, 2, 2, 2, 6, 6, 6, 6);
    *weight = x * y * z;
#if defined(__SSE__)
    return (unsigned)_mm_movemask_ps((__m128)lower) & 7u;
#else
    return (unsigned)((lower[0] & 1) | (lower[1] & 2) | (lower[2] & 4));
#endif
}

/* Sums of the particles between the same eight nodes: their weights, and weights times enthalpy. */
typedef struct cube_sums {
    d8 weight, enthalpy;
} cube_sums;

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
        tile[n] += capacity * sum[0];
        tile[PADDED + n] += capacity * sum[1];
    }
}

/* Adds the sums of a plane of cubes to the nodes below and above, and clears them. */
static void flush_plane(double capacity, cube_sums cubes[CUBES_PADDED], double *tile)
{
    flush_half(capacity, cubes + LEAD, 0, tile);
    flush_half(capacity, cubes + LEAD, 1, tile + PLANE);
    memset(cubes + LEAD, 0, CUBES * sizeof *cubes);
}

/* A particle of cell c beside a closed cell. */
static void add_beside_closed(const heat_block *own, int c, int base, f8 weight, double capacity, double enthalpy,
                              double *tile)
{
    for (int n = 0; n < SK_CORNERS; n++) {
        const int node = base + (n & 1) + WIDTH * (n >> 1 & 1) + PLANE * (n >> 2);
        const int to = own->closed[node] ? tile_index(c) : node;
        tile[to] += capacity * (double)weight[n];
        tile[PADDED + to] += capacity * (double)weight[n] * enthalpy;
    }
}

/* add_particles() for one material: capacities in the first part of the tile, enthalpies in the second. The cells of a
 * plane reach two planes of cubes, which the first cache holds. */
static void add_cubes(const sk_step *step, const sk_heat *heat, const sk_heat_attributes *a, int block,
                      const heat_block *own, double *tile)
{
    const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    const double capacity = heat->curves[0].capacity;
    const f4 corner = {own->corner[0], own->corner[1], own->corner[2], 0.0f};
    const f4 inverse = {own->inverse, own->inverse, own->inverse, 0.0f};
    cube_sums cubes[2][CUBES_PADDED];
    memset(cubes, 0, sizeof cubes);
    for (int k = 0; k < SK_BLOCK_N; k++) {
        cube_sums *octant[SK_CORNERS];
        int node[SK_CORNERS];
        for (int n = 0; n < SK_CORNERS; n++) {
            node[n] = -(n & 1) - WIDTH * (n >> 1 & 1) - PLANE * (n >> 2);
            octant[n] = &cubes[(k + (n < 4)) & 1][LEAD - (n & 1) - WIDTH * (n >> 1 & 1)];
        }
        for (int c = k * SK_BLOCK_N * SK_BLOCK_N; c < (k + 1) * SK_BLOCK_N * SK_BLOCK_N; c++) {
            const f4 cell = coordinates_of(own, c);
            const int here = tile_index(c), at = here - (k + 1) * PLANE;
            for (uint32_t p = start[c]; p < start[c + 1]; p++) {
                f8 weight;
                const double enthalpy = sk_heat_get(a, p);
                const unsigned n = weigh_cube(corner, inverse, cell, step->particles.records[p].position, &weight);
                if (__builtin_expect(own->edge[here + node[n]], 0)) {
                    add_beside_closed(own, c, here + node[n], weight, capacity, enthalpy, tile);
                    continue;
                }
                const d8 wide = widen(weight);
                octant[n][at].weight += wide;
                octant[n][at].enthalpy += wide * enthalpy;
            }
        }
        flush_plane(capacity, cubes[k & 1], tile + k * PLANE);
    }
    flush_plane(capacity, cubes[SK_BLOCK_N & 1], tile + SK_BLOCK_N * PLANE);
}
#endif

/* Sums of a block. The loops are compiled apart, so that the usual one has neither materials nor closed cells. */
static void sum_block(const sk_step *step, const sk_heat *heat, const sk_heat_attributes *a, int block, double *tile)
{
    heat_block own;
    begin_block(step, block, &own);
    memset(tile, 0, PADDED * (heat->several ? SK_HEAT_SUMS : SK_HEAT_TEMPERATURE) * sizeof *tile);
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

static inline void add_line(double *restrict to, const double *restrict from)
{
    for (int i = 0; i < SK_BLOCK_N; i++)
        to[i] += from[i];
}

/* Adds the tiles that reach into a block, in the order of the neighbours. */
static void add_tiles(const sk_step *step, int block, int sums, const double *tiles, double (*cells)[SK_BLOCK_CELLS])
{
    const sk_grid *grid = &step->grid;
    memset(cells, 0, (size_t)sums * sizeof *cells);
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        const int slot = grid->neighbours[block][n];
        if (slot < 1 || slot > grid->particle_blocks)
            continue;
        const heat_overlap x = overlap_of(n % 3 - 1), y = overlap_of(n / 3 % 3 - 1);
        const heat_overlap z = SELKIE_DIM == 3 ? overlap_of(n / 9 - 1) : (heat_overlap){0, 1, 0};
        for (int v = 0; v < sums; v++) {
            const double *tile = tiles + ((size_t)(slot - 1) * (size_t)sums + (size_t)v) * PADDED;
            for (int k = 0; k < z.count; k++)
                for (int j = 0; j < y.count; j++) {
                    const double *from = tile + x.at + WIDTH * (y.at + j + WIDTH * (z.at + k));
                    double *to = cells[v] + x.from + SK_BLOCK_N * (y.from + j + SK_BLOCK_N * (z.from + k));
                    if (x.count == 1)
                        *to += *from;
                    else
                        add_line(to, from);
                }
        }
    }
}

/* heat_finish_cell() for a block of one material that never melts: without branches, for vectors. */
static void finish_alike(const sk_heat *heat, const sk_heat_cells *cells, int block, double (*sums)[SK_BLOCK_CELLS])
{
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    const sk_heat_curve *curve = heat->curves;
    const double least = 1e-6 * heat->full_capacity, melting = curve->melting, resistance = curve->resistance;
    double *restrict capacities = cells->capacity + base, *restrict enthalpies = cells->enthalpy + base;
    double *restrict temperatures = cells->temperature + base, *restrict resistances = cells->resistance + base;
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        const double capacity = sums[SK_HEAT_CAPACITY][c];
        const double full = capacity > least ? 1.0 : 0.0, enthalpy = sums[SK_HEAT_ENTHALPY][c];
        const double mean = full * enthalpy / (capacity > least ? capacity : 1.0);
        capacities[c] = full * capacity;
        enthalpies[c] = mean;
        temperatures[c] = full * melting + mean;
        resistances[c] = full * resistance;
    }
    memset(cells->material + base, 0, SK_BLOCK_CELLS);
    memset(cells->phase + base, SK_HEAT_LIQUID, SK_BLOCK_CELLS);
}

static void finish_block(const sk_heat *heat, const sk_heat_cells *cells, int block, int sums,
                         double (*own)[SK_BLOCK_CELLS])
{
    if (!heat->several && !heat->melts) {
        finish_alike(heat, cells, block, own);
        return;
    }
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        double values[SK_HEAT_SUMS] = {0.0};
        for (int v = 0; v < sums; v++)
            values[v] = own[v][c];
        heat_finish_cell(heat, cells, (size_t)block * SK_BLOCK_CELLS + (size_t)c, values);
    }
}

selkie_code SK_DIM(sk_heat_gather)(sk_step *step, const sk_heat *heat, sk_heat_cells *cells, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    const sk_heat_attributes a = sk_heat_find_attributes(step);
    const int sums = heat->several ? SK_HEAT_SUMS : SK_HEAT_TEMPERATURE;
    const size_t tile = (size_t)(PADDED * sums);
    double *tiles;
    SK_TRY(sk_step_scratch(step, ((size_t)grid->particle_blocks + 1) * tile * sizeof *tiles, "heat", (void **)&tiles,
                           error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 1; b <= grid->particle_blocks; b++)
        sum_block(step, heat, &a, b, tiles + (size_t)(b - 1) * tile);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 1; b < grid->block_count; b++) {
        double own[SK_HEAT_SUMS][SK_BLOCK_CELLS];
        add_tiles(step, b, sums, tiles, own);
        cells->empty[b] = 1;
        for (int c = 0; c < SK_BLOCK_CELLS; c++)
            cells->empty[b] &= own[SK_HEAT_CAPACITY][c] == 0.0;
        finish_block(heat, cells, b, sums, own);
    }
    return SELKIE_OK;
}

/* --- To the particles --- */

/* Enthalpy of a particle after the change of the tile. */
static inline __attribute__((always_inline)) double changed(const heat_block *own, const float position[3], int cell,
                                                            const int closed, const double *change, double enthalpy)
{
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
            beyond && !heat_limit_cells(heat, &a, range, 1) ? SK_HEAT_BEYOND : 0;
    }
}

#if SELKIE_DIM == 3
/* The weights of weigh_cube() for eight particles of a cell, bit for bit: those of the three nodes along each axis, of
 * which one is 0. */
static inline __attribute__((always_inline)) void weigh_batch(const heat_block *block, f4 cell,
                                                              const sk_particle *particles, int count, f8 weight[3][3])
{
    f8 columns[4];
    f8_load_columns(sk_particle_floats(particles), count, columns);
#pragma GCC unroll 3
    for (int d = 0; d < 3; d++) {
        const f8 own = f8_splat(cell[d]), centred = f8_multiply_add(columns[d] - f8_splat(block->corner[d]),
                                                                    f8_splat(block->inverse), f8_splat(-0.5f));
        const i8 lower = centred < own;
        const f8 above = centred - (own + f8_from_i8(lower)), below = 1.0f - above;
        weight[d][0] = (f8)(lower & (i8)below);
        weight[d][1] = f8_select(lower, above, below);
        weight[d][2] = (f8)(~lower & (i8)above);
    }
}

/* Changes of a batch of particles from those of the nodes around their cell. */
static inline __attribute__((always_inline)) d8 change_batch(f8 weight[3][3], const double change[NODES])
{
    d8 sums[3] = {{0.0}, {0.0}, {0.0}};
#pragma GCC unroll 9
    for (int n = 0; n < 9; n++) {
        const f8 flat = weight[0][n % 3] * weight[1][n / 3];
#pragma GCC unroll 3
        for (int k = 0; k < 3; k++)
            sums[k] += widen(flat * weight[2][k]) * change[n + 9 * k];
    }
    return (sums[0] + sums[1]) + sums[2];
}

/* Changes of the nodes around a cell. Closed ones have that of the cell. */
static void load_changes(const heat_block *block, int c, const double *tile, double change[NODES])
{
    const int here = tile_index(c), first = here - 1 - WIDTH - PLANE;
    for (int k = 0; k < 3; k++)
        for (int j = 0; j < 3; j++)
            memcpy(change + 9 * k + 3 * j, tile + first + WIDTH * j + PLANE * k, 3 * sizeof *change);
    int any = 0;
    for (int n = 0; n < SK_CORNERS; n++)
        any |= block->edge[first + (n & 1) + WIDTH * (n >> 1 & 1) + PLANE * (n >> 2)];
    for (int n = 0; any && n < NODES; n++)
        if (block->closed[first + n % 3 + WIDTH * (n / 3 % 3) + PLANE * (n / 9)])
            change[n] = tile[here];
}

static inline __attribute__((always_inline)) d8 choose(l8 mask, d8 yes, d8 no)
{
    return (d8)((mask & (l8)yes) | (~mask & (l8)no));
}

/* Stores `stored` enthalpies and what follows from them. Returns whether a temperature is out of the range. */
static inline __attribute__((always_inline)) int set_batch(const sk_heat *heat, const sk_heat_attributes *a, size_t p,
                                                           const size_t stored, d8 enthalpy)
{
    const sk_heat_curve *curve = heat->curves;
    const d8 zero = {0.0}, one = {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0}, melting = curve->melting + zero;
    const l8 is_liquid = enthalpy > curve->latent, is_solid = enthalpy < 0.0;
    d8 temperature = choose(is_liquid, curve->melting + (enthalpy - curve->latent), melting);
    temperature = choose(is_solid, curve->melting + enthalpy * curve->solid_slope, temperature);
    const l8 beyond = (temperature > heat->warmest) | (temperature < heat->coldest);
    const f8 rounded = __builtin_convertvector(temperature, f8);
    memcpy(a->enthalpy + 2 * p, &enthalpy, stored * sizeof(double));
    memcpy(a->temperature + p, &rounded, stored * sizeof(float));
    if (a->liquid_fraction) {
        /* The one material melts. */
        d8 fraction = choose(is_liquid, one, enthalpy / curve->latent);
        fraction = choose(enthalpy > 0.0, fraction, zero);
        const f8 parts = __builtin_convertvector(fraction, f8);
        memcpy(a->liquid_fraction + p, &parts, stored * sizeof(float));
    }
    return i8_any(__builtin_convertvector(beyond, i8));
}

/* Gives the changes to `count` particles of a cell from p on. Where eight are loaded and stored, the further ones
 * belong to the next cells of the block: they keep what they have. Returns whether a temperature is out of the range.
 */
static inline __attribute__((always_inline)) int give_batch(const sk_heat *heat, const sk_heat_attributes *a, size_t p,
                                                            int count, const size_t stored, f8 weight[3][3],
                                                            const double change[NODES])
{
    d8 enthalpy = {0.0};
    memcpy(&enthalpy, a->enthalpy + 2 * p, stored * sizeof(double));
    const l8 own = (l8){0, 1, 2, 3, 4, 5, 6, 7} < count;
    enthalpy += (d8)(own & (l8)change_batch(weight, change));
    return set_batch(heat, a, p, stored, enthalpy);
}

/* give_changes() for one material. */
static void give_cells(const sk_step *step, const sk_heat *heat, const sk_heat_cells *cells, int block,
                       const heat_block *own, const double *tile)
{
    const sk_heat_attributes a = sk_heat_find_attributes(step);
    const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS, last = start[SK_BLOCK_CELLS];
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        double change[NODES];
        int beyond = 0;
        if (start[c] == start[c + 1])
            continue;
        load_changes(own, c, tile, change);
        for (uint32_t p = start[c]; p < start[c + 1]; p += 8) {
            const int count = start[c + 1] - p < 8 ? (int)(start[c + 1] - p) : 8;
            f8 weight[3][3];
            weigh_batch(own, coordinates_of(own, c), &step->particles.records[p], count, weight);
            beyond |= last - p >= 8 ? give_batch(heat, &a, p, count, 8, weight, change)
                                    : give_batch(heat, &a, p, count, (size_t)count, weight, change);
        }
        const uint32_t range[1][2] = {{start[c], start[c + 1]}};
        if (beyond && !heat_limit_cells(heat, &a, range, 1))
            cells->phase[(size_t)block * SK_BLOCK_CELLS + (size_t)c] = SK_HEAT_BEYOND;
    }
}
#endif

void SK_DIM(sk_heat_scatter_block)(const sk_step *step, const sk_heat *heat, const sk_heat_cells *cells, int block)
{
    double change[TILE];
    int any = 0;
    heat_block own;
    begin_block(step, block, &own);
    load_doubles(&step->grid, cells->change, block, 1, change);

    /* Far from all differences the change is the rounding of the means. */
    for (int n = 0; n < TILE; n++)
        any |= fabs(change[n]) > 1e-12;
    memset(cells->phase + (size_t)block * SK_BLOCK_CELLS, 0, SK_BLOCK_CELLS);
    if (!any)
        return;
#if SELKIE_DIM == 3
    if (!heat->several) {
        give_cells(step, heat, cells, block, &own, change);
        return;
    }
#endif
    if (own.any_closed)
        give_changes(step, heat, cells, block, 1, &own, change);
    else
        give_changes(step, heat, cells, block, 0, &own, change);
}
