/* Implicit viscosity: the velocities that minimise kinetic energy of the change plus viscous work (linalg/stress.h).
 *
 * The liquid's share of a cell, face or edge is the mean of the sub-cells in the cube of a cell's size around it. Faces
 * that no particle reaches have mass 0 and take part where stress acts on them: extrapolated velocities would change
 * the damping of waves by 20 %. Closed faces have the velocity of the solid. Shear at a no-slip wall acts over half a
 * cell and the slip length; at a free-slip wall there is none.
 *
 * The pressure solve follows and would undo half of the bending stiffness of a thin sheet, since each solve ignores the
 * stress of the other. A bulk viscosity of four times the shear viscosity and a second pass with the remaining
 * divergence as its source keep the velocities nearly free of divergence (an augmented Lagrangian).
 */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "defs/heat.h"
#include "defs/materials.h"
#include "grid/plain.h"
#include "linalg/stress.h"
#include "linalg/stress_kernels.h"
#include "methods/viscosity/viscosity.h"
#include "methods/viscosity/viscosity_bodies.h"
#include "methods/viscosity/viscosity_plain.h"

/* --- Shares of faces and edges --- */

/* A block's shares, filled cells and closed faces, with the cells before it along each axis. */
typedef struct share_tiles {
    float share[SK_CORNERS][SK_VISCOUS_TILE_VALUES];
    int32_t closed[SK_VISCOUS_TILE_VALUES];
} share_tiles;

/* Places in the fields of the cells of a block's tile, a row at a time: the cell before the row, and its first cell. */
typedef struct tile_row {
    size_t before, first;
    int place; /* of the first cell in the tile */
} tile_row;

enum { LOWER_ROWS = (SK_BLOCK_N + 1) * (SELKIE_DIM == 3 ? SK_BLOCK_N + 1 : 1) };

static void find_tile_rows(const sk_grid *grid, int block, tile_row rows[LOWER_ROWS])
{
    const sk_plain_cell corner = {block, 0};
    for (int k = SELKIE_DIM == 3 ? -1 : 0; k < (SELKIE_DIM == 3 ? SK_BLOCK_N : 1); k++)
        for (int j = -1; j < SK_BLOCK_N; j++, rows++) {
            rows->before = sk_plain_index(sk_plain_beside(grid, corner, (const int[3]){-1, j, k}));
            rows->first = sk_plain_index(sk_plain_beside(grid, corner, (const int[3]){0, j, k}));
            rows->place = 1 + SK_VISCOUS_TILE * (j + 1) + (SELKIE_DIM == 3 ? sk_viscous_tile_step[2] * (k + 1) : 0);
        }
}

static void load_shares(const sk_viscous_fields *f, const tile_row rows[LOWER_ROWS], share_tiles *tiles)
{
    for (const tile_row *row = rows; row < rows + LOWER_ROWS; row++) {
        for (int n = 0; n < SK_CORNERS; n++) {
            tiles->share[n][row->place - 1] = f->share[n][row->before];
            memcpy(tiles->share[n] + row->place, f->share[n] + row->first, SK_BLOCK_N * sizeof(float));
        }
        tiles->closed[row->place - 1] = f->closed[row->before];
        for (int i = 0; i < SK_BLOCK_N; i++)
            tiles->closed[row->place + i] = f->closed[row->first + (size_t)i];
    }
}

/* What is common to each cell of a block and those before it along all axes. Returns what is common to the block. */
static int find_common(const sk_viscous_fields *f, const tile_row rows[LOWER_ROWS], uint8_t common[SK_BLOCK_CELLS])
{
    uint8_t tile[SK_VISCOUS_TILE_VALUES], all = 0xff;
    for (const tile_row *row = rows; row < rows + LOWER_ROWS; row++) {
        tile[row->place - 1] = f->filled[row->before];
        memcpy(tile + row->place, f->filled + row->first, SK_BLOCK_N);
    }
    for (int c = 0; c < SK_BLOCK_CELLS; c += SK_BLOCK_N) {
        uint8_t row[SK_BLOCK_N];
        memset(row, 0xff, sizeof row);
        for (int n = 0; n < SK_CORNERS; n++) {
            int place = sk_viscous_tile_place(c);
            for (int d = 0; d < SELKIE_DIM; d++)
                place -= n >> d & 1 ? sk_viscous_tile_step[d] : 0;
            for (int i = 0; i < SK_BLOCK_N; i++)
                row[i] &= tile[place + i];
        }
        for (int i = 0; i < SK_BLOCK_N; i++) {
            common[c + i] = row[i];
            all &= row[i];
        }
    }
    return all;
}

/* Means of the sub-cells around the lower faces (axes has one bit) or edges (two bits) of a row of cells from a place
 * of the tiles on, or in the cells (none). Below a face lies the upper half of the cell before it. */
static inline __attribute__((always_inline)) void take_shares(const share_tiles *tiles, int place, int axes,
                                                              float shares[SK_BLOCK_N])
{
    for (int i = 0; i < SK_BLOCK_N; i++)
        shares[i] = 0.0f;
    for (int n = 0; n < SK_CORNERS; n++) {
        int other = place;
        for (int d = 0; d < SELKIE_DIM; d++)
            other -= axes >> d & 1 && n >> d & 1 ? sk_viscous_tile_step[d] : 0;
        for (int i = 0; i < SK_BLOCK_N; i++)
            shares[i] += tiles->share[n][other + i] * (1.0f / SK_CORNERS);
    }
}

/* Around a block that an obstacle cuts: distances from the solids in cells, and closed faces. */
typedef struct cut_tiles {
    float outside[SK_VISCOUS_TILE_VALUES];
    int32_t closed[SK_VISCOUS_TILE_VALUES];
} cut_tiles;

static void load_cut(const sk_step *step, const sk_viscous_fields *f, int block, cut_tiles *tiles)
{
    const sk_plain_cell corner = {block, 0};
    int place = 0;
    for (int k = SELKIE_DIM == 3 ? -1 : 0; k <= (SELKIE_DIM == 3 ? SK_BLOCK_N : 0); k++)
        for (int j = -1; j <= SK_BLOCK_N; j++, place += SK_VISCOUS_TILE)
            for (int part = 0; part < 3; part++) {
                const int at = part == 0 ? -1 : part == 1 ? 0 : SK_BLOCK_N, count = part == 1 ? SK_BLOCK_N : 1;
                const sk_plain_cell cell = sk_plain_beside(&step->grid, corner, (const int[3]){at, j, k});
                const float *outside = step->solids.distance + sk_plain_solid_index(&step->solids, cell);
                const uint8_t *closed = f->closed + sk_plain_index(cell);
                for (int i = 0; i < count; i++) {
                    tiles->outside[place + 1 + at + i] = outside[i];
                    tiles->closed[place + 1 + at + i] = closed[i];
                }
            }
}

/* Cells of a row beside which an obstacle may cut faces, one bit each. `common`: cells all around are full or empty. */
static uint32_t find_near(const cut_tiles *tiles, int place, const uint8_t common[SK_BLOCK_N])
{
    uint32_t near = 0;
    for (int i = 0; i < SK_BLOCK_N; i++)
        near |= (uint32_t)(!common[i] && fabsf(tiles->outside[place + i]) < SK_VISCOUS_NEAR) << i;
    return near;
}

/* Of a row of differences between two faces across axis d, those that an obstacle may change (raise_weights): one face
 * is closed, or both are open and one is near its surface. The faces belong to the cells from `first` and `second` on.
 */
static inline void find_cut(const cut_tiles *tiles, int first, int second, int d, int32_t cut[SK_BLOCK_N])
{
    const int stride = sk_viscous_tile_step[d];
    for (int i = 0; i < SK_BLOCK_N; i++) {
        const float one = 0.5f * (tiles->outside[first + i] + tiles->outside[first + i - stride]);
        const float other = 0.5f * (tiles->outside[second + i] + tiles->outside[second + i - stride]);
        const int32_t closed = tiles->closed[first + i] >> d & 1, other_closed = tiles->closed[second + i] >> d & 1;
        const int32_t near = (one < SK_VISCOUS_NEAREST) | (other < SK_VISCOUS_NEAREST);
        cut[i] |= (closed ^ other_closed) | (near & ~closed & ~other_closed & 1);
    }
}

static uint32_t bits_of(const int32_t cut[SK_BLOCK_N])
{
    uint32_t bits = 0;
    for (int i = 0; i < SK_BLOCK_N; i++)
        bits |= (uint32_t)(cut[i] != 0) << i;
    return bits;
}

/* Weights of the shear of a row of cells, over viscosity and density. A wall ends at an edge if one of the faces beside
 * it is closed and the next one is open. `near`: cells beside an obstacle. */
static void take_shears(const sk_step *step, const sk_viscous_fields *f, const share_tiles *tiles, const cut_tiles *cut,
                        sk_plain_cell first, uint32_t near, int a, int b, float shears[SK_BLOCK_N])
{
    const int place = sk_viscous_tile_place(first.local);
    const int32_t *closed = tiles->closed + place;
    const int32_t *before_a = closed - sk_viscous_tile_step[a], *before_b = closed - sk_viscous_tile_step[b];
    int32_t wall[SK_BLOCK_N], any = 0;
    take_shares(tiles, place, 1 << a | 1 << b, shears);
    for (int i = 0; i < SK_BLOCK_N; i++) {
        wall[i] = ((closed[i] ^ before_b[i]) >> a | (closed[i] ^ before_a[i]) >> b) & (shears[i] != 0.0f);
        any |= wall[i];
    }
    for (int i = 0; i < SK_BLOCK_N && any; i++)
        if (wall[i] && !(near >> i & 1))
            shears[i] = wall_weight(step, (sk_plain_cell){first.slot, first.local + i}, a, b, shears[i]);
    if (!near)
        return;
    int32_t is_cut[SK_BLOCK_N] = {0};
    find_cut(cut, place - sk_viscous_tile_step[b], place, a, is_cut);
    find_cut(cut, place - sk_viscous_tile_step[a], place, b, is_cut);
    for (uint32_t left = near & bits_of(is_cut); left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        shears[i] = cut_shear(step, f, (sk_plain_cell){first.slot, first.local + i}, a, b, shears[i]);
    }
}

/* Weights of the normal strains and the divergence of a row of cells. */
static void take_normals(const sk_step *step, const sk_viscous_fields *f, const cut_tiles *cut, sk_plain_cell first,
                         uint32_t near, float cells[SK_BLOCK_N], float bulks[SK_BLOCK_N])
{
    memcpy(bulks, cells, SK_BLOCK_N * sizeof *bulks);
    if (!near)
        return;
    const int place = sk_viscous_tile_place(first.local);
    int32_t is_cut[SK_BLOCK_N] = {0};
    for (int d = 0; d < SELKIE_DIM; d++)
        find_cut(cut, place, place + sk_viscous_tile_step[d], d, is_cut);
    for (uint32_t left = near & bits_of(is_cut); left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        cells[i] = cut_normal(step, f, (sk_plain_cell){first.slot, first.local + i}, cells[i], &bulks[i]);
    }
}

/* --- Several viscosities --- */

static selkie_code measure_viscosity(sk_step *step, sk_viscous_fields *f, double scale, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    const sk_attribute *material = sk_particles_find_attribute(&step->particles, "material");
    const sk_attribute *temperature = sk_particles_find_attribute(&step->particles, "temperature");
    const int has_law = temperature && sk_scene_has_viscosity_law(step->scene);
    if (!has_law && (!sk_scene_has_viscosities(step->scene) || !material))
        return SELKIE_OK;
    const size_t bytes = (size_t)grid->block_count * SK_BLOCK_CELLS * sizeof(float);
    SK_TRY(sk_step_scratch(step, bytes, "viscosity", (void **)&f->own_log, error));
    SK_TRY(sk_step_scratch(step, bytes, "viscosity", (void **)&f->log, error));

    viscosity_logs logs = {.material = material ? material->data : NULL,
                           .temperature = temperature ? (const float *)(const void *)temperature->data : NULL};
    const double largest = sk_scene_viscosity(step->scene);
    for (int m = 0; m < step->scene->material_count && m < SK_TRANSFER_MATERIALS; m++)
        logs.of[m] = sk_viscosity_log(sk_scene_viscosity_of(step->scene, m), largest, scale);
    if (has_law) {
        const size_t laws = (size_t)step->scene->material_count * sizeof *logs.law;
        SK_TRY(sk_step_scratch(step, laws, "viscosity", (void **)&logs.law, error));
        sk_viscosity_laws(step->scene, scale, logs.law, &logs.lowest, &logs.inverse);
    }
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 0; b < grid->block_count; b++)
        SK_PLAIN_EACH_CELL(cell, b)
    f->own_log[sk_plain_index(cell)] = own_log_of(step, cell, &logs);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 0; b < grid->block_count; b++)
        SK_PLAIN_EACH_CELL(cell, b)
    f->log[sk_plain_index(cell)] = b ? smooth_log(grid, f->own_log, cell) : __builtin_nanf("");
    return SELKIE_OK;
}

/* Bits of a row of bytes that have one of the bits of a mask. */
static inline uint32_t bits_with(const uint8_t *bytes, int32_t mask, int32_t wanted)
{
    uint32_t bits = 0;
    for (int i = 0; i < SK_BLOCK_N; i += 8)
        bits |= i8_bits((i8_from_bytes(bytes + i) & mask) == wanted) << i;
    return bits;
}

/* Of a row of closed faces across axis d, those whose velocity is given: see wall_holds(). */
static uint32_t find_fixed(const sk_step *step, const sk_viscous_fields *f, sk_plain_cell first, int d,
                           const float share[SK_BLOCK_N])
{
    const sk_grid *grid = &step->grid;
    const uint32_t shut = bits_with(f->closed + sk_plain_index(first), 1 << d, 1 << d);
    if (!shut || step->solids.body_count)
        return shut;
    const uint8_t *before = grid->kinds + sk_plain_index(sk_plain_next(grid, first, d, -1));
    const uint32_t solid = bits_with(grid->kinds + sk_plain_index(first), SK_CELL_KIND_MASK, SK_CELL_SOLID);
    const uint32_t solid_before = d == 0 ? solid << 1 | ((*before & SK_CELL_KIND_MASK) == SK_CELL_SOLID)
                                         : bits_with(before, SK_CELL_KIND_MASK, SK_CELL_SOLID);
    uint32_t fixed = solid & solid_before;
    for (int i = 0; i < SK_BLOCK_N; i += 8)
        fixed |= i8_bits(f8_load(share + i) >= SK_VISCOUS_TOUCH) << i;
    fixed &= shut;
    for (uint32_t left = is_cut(step, first.slot) ? shut & ~fixed : 0; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        fixed |= (uint32_t)wall_holds(step, f, (sk_plain_cell){first.slot, first.local + i}, d, share[i]) << i;
    }
    return fixed;
}

/* Velocities of a row of faces and their masses, from their shares. */
static void weigh_faces(const sk_step *step, const sk_viscous_fields *f, sk_plain_cell first, int d,
                        const float share[SK_BLOCK_N])
{
    const size_t here = sk_plain_index(first), solid = sk_plain_solid_index(&step->solids, first);
    const float *velocity = step->grid.fields[SK_FIELD_VELOCITY_X + d] + here;
    const float *given = sk_solids_have_velocity(&step->solids) ? step->solids.velocity[d] + solid : NULL;
    const uint8_t *closed = f->closed + here;
    const uint32_t held = find_fixed(step, f, first, d, share);
    const i8 bit = {1, 2, 4, 8, 16, 32, 64, 128};
    for (int i = 0; i < SK_BLOCK_N; i += 8) {
        const i8 is_fixed = ((int32_t)(held >> i) & bit) != 0, is_closed = (i8_from_bytes(closed + i) >> d & 1) != 0;
        const f8 known = f8_load(velocity + i), rest = given ? f8_load(given + i) : f8_splat(0.0f);
        i8_to_bytes(f->fixed[d] + here + i, is_fixed & 1);
        f8_store(f->velocity[d] + here + i, f8_select(is_fixed, rest, known));
        f8_store(f->mass[d] + here + i, f8_select(is_closed | (known != known), f8_splat(0.0f), f8_load(share + i)));
    }
}

/* Weights of strains of a row of cells, from their shares: shear by the axis along the edge. */
static void weigh_strains(const sk_viscous_fields *f, size_t here, const float cell[SK_BLOCK_N],
                          const float whole[SK_BLOCK_N], const float shear[3][SK_BLOCK_N])
{
    const float unit = f->log ? 1.0f : f->strength;
    for (int i = 0; i < SK_BLOCK_N; i += 8) {
        f8_store(f->normal + here + i, unit * f8_load(cell + i));
        f8_store(f->bulk + here + i, SK_VISCOUS_BULK_SHARE * unit * f8_load(whole + i));
        for (int edge = SELKIE_DIM == 3 ? 0 : 2; edge < 3; edge++)
            f8_store(f->shear[edge] + here + i, unit * f8_load(shear[edge] + i));
    }
}

/* What is common to each cell of a row and those before it: bits of `filled`. */
static inline uint8_t common_to_row(const uint8_t common[SK_BLOCK_N])
{
    uint64_t words[SK_BLOCK_N / 8], all;
    memcpy(words, common, sizeof words);
    all = words[0];
    for (int n = 1; n < SK_BLOCK_N / 8; n++)
        all &= words[n];
    all &= all >> 32;
    all &= all >> 16;
    return (uint8_t)(all & all >> 8);
}

/* Shares of cells, faces and edges of a row. */
typedef struct row_shares {
    float cells[SK_BLOCK_N], bulks[SK_BLOCK_N], faces[SELKIE_DIM][SK_BLOCK_N], shears[3][SK_BLOCK_N];
} row_shares;

static void fill_shares(row_shares *shares, float value)
{
    float *values = shares->cells;
    _Static_assert(sizeof *shares % sizeof(float) == 0, "nothing but floats");
    for (size_t n = 0; n < sizeof *shares / sizeof(float); n++)
        values[n] = value;
}

/* Weights and velocities of a block. Most blocks, and most rows of the others, are inside the liquid or empty. */
static void weigh_block(const sk_step *step, const sk_viscous_fields *f, int block)
{
    tile_row rows[LOWER_ROWS];
    share_tiles tiles;
    cut_tiles solid;
    uint8_t common[SK_BLOCK_CELLS], filled = 0;
    row_shares shares;
    find_tile_rows(&step->grid, block, rows);
    const int all = find_common(f, rows, common), cut = !all && is_cut(step, block);
    if (!all)
        load_shares(f, rows, &tiles);
    if (cut)
        load_cut(step, f, block, &solid);
    for (int c = 0; c < SK_BLOCK_CELLS; c += SK_BLOCK_N) {
        const sk_plain_cell first = {block, c};
        const int place = sk_viscous_tile_place(c);
        const uint8_t even = common_to_row(common + c);
        if (even && even != filled)
            fill_shares(&shares, even == 1 ? 1.0f : 0.0f);
        filled = even;
        if (!even) {
            const uint32_t near = cut ? find_near(&solid, place, common + c) : 0;
            take_shares(&tiles, place, 0, shares.cells);
            take_normals(step, f, &solid, first, near, shares.cells, shares.bulks);
            for (int a = 0; a < SELKIE_DIM; a++) {
                take_shares(&tiles, place, 1 << a, shares.faces[a]);
                for (int b = a + 1; b < SELKIE_DIM; b++)
                    take_shears(step, f, &tiles, &solid, first, near, a, b, shares.shears[sk_stress_edge(a, b)]);
            }
        }
        for (int a = 0; a < SELKIE_DIM; a++)
            weigh_faces(step, f, first, a, shares.faces[a]);
        weigh_strains(f, sk_plain_index(first), shares.cells, shares.bulks, (const float(*)[SK_BLOCK_N])shares.shears);
    }
    if (!f->log && !step->relative_density)
        return;
    SK_PLAIN_EACH_CELL(cell, block)
    if (common[cell.local] != 2)
        weigh_liquids(step, f, cell);
}

static void carry_block(const sk_step *step, const sk_viscous_fields *f, int block, int layer)
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        const size_t base = (size_t)block * SK_BLOCK_CELLS;
        if (layer == 0)
            memset(f->carried[d] + base, 0, SK_BLOCK_CELLS);
        for (int c = 0; c < SK_BLOCK_CELLS; c += SK_BLOCK_N) {
            const float *before = step->grid.fields[SK_FIELD_VELOCITY_X + d] + base + (size_t)c;
            const uint8_t *solved = f->solved[d] + base + (size_t)c, *fixed = f->fixed[d] + base + (size_t)c;
            const uint8_t *carried = f->carried[d] + base + (size_t)c;
            uint32_t free = 0;
            for (int i = 0; i < SK_BLOCK_N; i += 8) {
                const i8 done = i8_from_bytes(solved + i) | i8_from_bytes(fixed + i) | i8_from_bytes(carried + i);
                free |= i8_bits((done == 0) & (f8_load(before + i) == f8_load(before + i))) << i;
            }
            for (; free; free &= free - 1)
                carry_face(step, f, (sk_plain_cell){block, c + __builtin_ctz(free)}, d, layer);
        }
    }
}

static void store_block(const sk_step *step, const sk_viscous_fields *f, int block)
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        const size_t base = (size_t)block * SK_BLOCK_CELLS;
        float *velocity = step->grid.fields[SK_FIELD_VELOCITY_X + d] + base;
        const float *found = f->velocity[d] + base;
        const uint8_t *fixed = f->fixed[d] + base;
        for (int n = 0; n < SK_BLOCK_CELLS; n += 8) {
            const f8 before = f8_load(velocity + n);
            const i8 known = (before == before) & (i8_from_bytes(fixed + n) == 0);
            f8_store(velocity + n, f8_select(known, f8_load(found + n), before));
        }
    }
}

/* Scratch for all fields, with the empty block 0. */
static selkie_code take_fields(sk_step *step, sk_viscous_fields *f, selkie_error *error)
{
    const size_t values = (size_t)step->grid.block_count * SK_BLOCK_CELLS;
    float **floats[11] = {&f->normal, &f->bulk};
    int count = 2;
    for (int d = 0; d < SELKIE_DIM; d++) {
        floats[count++] = &f->mass[d];
        floats[count++] = &f->velocity[d];
        uint8_t **bytes[3] = {&f->fixed[d], &f->solved[d], &f->carried[d]};
        for (int n = 0; n < 3; n++) {
            SK_TRY(sk_step_scratch(step, values, "viscosity", (void **)bytes[n], error));
            memset(*bytes[n], 0, SK_BLOCK_CELLS);
        }
    }
    for (int edge = SELKIE_DIM == 3 ? 0 : 2; edge < 3; edge++)
        floats[count++] = &f->shear[edge];
    for (int n = 0; n < count; n++) {
        SK_TRY(sk_step_scratch(step, values * sizeof(float), "viscosity", (void **)floats[n], error));
        memset(*floats[n], 0, SK_BLOCK_CELLS * sizeof(float));
    }
    for (int n = 0; n < SK_CORNERS; n++) {
        SK_TRY(sk_step_scratch(step, values * sizeof(float), "viscosity", (void **)&f->share[n], error));
        memset(f->share[n], 0, SK_BLOCK_CELLS * sizeof(float));
    }
    SK_TRY(sk_step_scratch(step, values, "viscosity", (void **)&f->closed, error));
    SK_TRY(sk_step_scratch(step, values, "viscosity", (void **)&f->filled, error));
    memset(f->filled, 2, SK_BLOCK_CELLS);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_viscosity)(sk_step *step, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    sk_viscous_fields f = {.log = NULL};
    SK_TRY(take_fields(step, &f, error));
    const double scale = sk_step_kick(step) / (grid->cell_size * grid->cell_size);
    f.strength = (float)(sk_scene_viscosity(step->scene) * scale);
    SK_TRY(measure_viscosity(step, &f, scale, error));

    /* Shares of the sub-cells, then the weights, which read those of the cells around. */
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 0; b < grid->block_count; b++)
        SK_DIM(sk_viscous_measure)(step, &f, b);
    sk_viscous_bodies bodies;
    SK_TRY(SK_DIM(sk_viscous_add_bodies)(step, &f, &bodies, error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 1; b < grid->block_count; b++)
        weigh_block(step, &f, b);
    SK_DIM(sk_viscous_join_bodies)(step, &f, &bodies);

    sk_stress_system system = {.block_count = grid->block_count,
                               .coordinates = (const int32_t(*)[4])grid->coordinates,
                               .joined = {sk_grid_joined(grid, 0), sk_grid_joined(grid, 1), sk_grid_joined(grid, 2)},
                               .neighbours = (const int32_t(*)[SK_MAX_NEIGHBOURS])grid->neighbours,
                               .normal = f.normal,
                               .bulk = f.bulk};
    for (int d = 0; d < 3; d++) {
        system.mass[d] = f.mass[d];
        system.shear[d] = f.shear[d];
        system.fixed[d] = f.fixed[d];
        system.target[d] = grid->fields[SK_FIELD_VELOCITY_X + d];
        system.velocity[d] = f.velocity[d];
        system.solved[d] = f.solved[d];
        system.push[d] = step->viscous_push && d < SELKIE_DIM ? grid->fields[step->viscous_push + d] : NULL;
    }
    const sk_stress_options options = {.tolerance = SK_VISCOUS_TOLERANCE,
                                       .max_iterations = step->scene->pressure.max_iterations,
                                       .passes = SK_VISCOUS_PASSES,
                                       .threads = step->threads,
                                       .arena = &step->arena};
    sk_stress_report report;
    SK_TRY(SK_DIM(sk_stress_solve)(&system, &options, &report, error));
    SK_TRY(sk_viscosity_report(step, &report, error));
    for (int layer = 0; layer < 2; layer++) {
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
        for (int b = 1; b < grid->block_count; b++)
            carry_block(step, &f, b, layer);
    }
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b < grid->block_count; b++)
        store_block(step, &f, b);
    return SK_DIM(sk_viscous_take_bodies)(step, &f, &bodies, error);
}
