/* The transfers of mpm, tuned: the components of a node are lanes, and all points of a cell share their nodes. */
#include "base/simd.h"
#include "methods/elastoplastic/mpm_law.h"

#define INLINE static inline __attribute__((always_inline))

enum { ROWS = SELKIE_DIM == 3 ? 9 : 3 }; /* of three nodes along x */

/* First node of a row in the tile, counted from the cell's first. */
INLINE int row_start(int row)
{
    return SK_MPM_TILE_N * (row % 3) + SK_MPM_TILE_N * SK_MPM_TILE_N * (row / 3);
}

/* --- Points to nodes --- */

/* A column of a matrix. */
INLINE f4 column(const float matrix[SK_MPM_MATRIX], int d)
{
    return (f4){matrix[d], matrix[SELKIE_DIM + d], SELKIE_DIM == 3 ? matrix[2 * SELKIE_DIM + d] : 0.0f, 0.0f};
}

/* Adds a point to the nodes of its cell: sk_mpm_give, a row of three nodes at a time. */
INLINE void give(const sk_mpm_giving *giving, uint32_t p, const float centre[3], const float push_matrix[SK_MPM_MATRIX],
                 f4 nodes[SK_MPM_NODES])
{
    const sk_mpm_points *points = &giving->points;
    const float *v = points->records[p].velocity, *affine = points->affine + (size_t)p * SK_MPM_MATRIX;
    const float mass = sk_mpm_material(giving->mpm, points, p)->relative_mass;
    float weight[3][3], rise[3][3], offset[3];
    f4 slope[3], push[3], base = {v[0], v[1], SELKIE_DIM == 3 ? v[2] : 0.0f, 1.0f};
    sk_mpm_offset(giving->grid, centre, points->records[p].position, offset);
    for (int d = 0; d < SELKIE_DIM; d++) {
        sk_mpm_weights(offset[d], weight[d], rise[d]);
        slope[d] = giving->cell_size * column(affine, d);
        push[d] = column(push_matrix, d);
        base = sk_scaled_add(-offset[d], slope[d], base);
    }
    for (int n = 0; n < 3; n++) {
        weight[0][n] *= mass;
        rise[0][n] *= mass;
    }
    for (int row = 0; row < ROWS; row++) {
        const int j = row % 3, k = row / 3;
        const float wz = SELKIE_DIM == 3 ? weight[SELKIE_DIM - 1][k] : 1.0f, share = weight[1][j] * wz;
        f4 value = j == 0 ? base - slope[1] : j == 1 ? base : base + slope[1];
        if (SELKIE_DIM == 3)
            value = k == 0 ? value - slope[SELKIE_DIM - 1] : k == 1 ? value : value + slope[SELKIE_DIM - 1];
        f4 middle = sk_scaled_add(-rise[1][j] * wz, push[1], share * value);
        if (SELKIE_DIM == 3)
            middle = sk_scaled_add(-weight[1][j] * rise[SELKIE_DIM - 1][k], push[SELKIE_DIM - 1], middle);
        const f4 along = share * slope[0], against = -share * push[0];
        f4 *to = nodes + 3 * row;
        to[0] = sk_scaled_add(rise[0][0], against, sk_scaled_add(weight[0][0], middle - along, to[0]));
        to[1] = sk_scaled_add(rise[0][1], against, sk_scaled_add(weight[0][1], middle, to[1]));
        to[2] = sk_scaled_add(rise[0][2], against, sk_scaled_add(weight[0][2], middle + along, to[2]));
    }
}

/* Stress of the points of a block, found in chunks ahead of the transfer. */
typedef struct chunk {
    uint32_t begin, end;
    float push[SK_MPM_CHUNK][SK_MPM_MATRIX];
} chunk;

static void fill_chunk(const sk_mpm_giving *giving, uint32_t begin, uint32_t end, sk_mpm_law_sums *sums, chunk *stress)
{
    stress->begin = begin;
    stress->end = end - begin < SK_MPM_CHUNK ? end : begin + SK_MPM_CHUNK;
    for (uint32_t p = begin; p < stress->end; p += SK_LANES) {
        const int count = stress->end - p < SK_LANES ? (int)(stress->end - p) : SK_LANES;
        sk_mpm_group_law(giving, p, count, sums, stress->push + (p - begin));
    }
}

static void give_block(const sk_mpm_giving *giving, int block)
{
    const uint32_t *start = giving->grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    float(*tile)[4] = giving->mpm->tiles + (size_t)(block - 1) * SK_MPM_TILE;
    sk_mpm_law_sums sums = {0};
    chunk stress = {.end = start[0]};
    memset(tile, 0, SK_MPM_TILE * sizeof *tile);
    for (int cell = 0; cell < SK_BLOCK_CELLS; cell++) {
        float centre[3], (*first)[4] = tile + sk_mpm_first_node(cell);
        f4 nodes[SK_MPM_NODES];
        if (start[cell] == start[cell + 1])
            continue;
        sk_mpm_centre(giving->grid, block, cell, centre);
        memset(nodes, 0, sizeof nodes);
        for (uint32_t p = start[cell]; p < start[cell + 1]; p++) {
            if (p == stress.end)
                fill_chunk(giving, p, start[SK_BLOCK_CELLS], &sums, &stress);
            give(giving, p, centre, stress.push[p - stress.begin], nodes);
        }
        for (int row = 0; row < ROWS; row++)
            for (int i = 0; i < 3; i++)
                *(f4 *)(void *)first[row_start(row) + i] += nodes[3 * row + i];
    }
    giving->sums[block] = sums;
}

selkie_code SK_DIM(sk_mpm_to_grid)(sk_step *step, selkie_error *error)
{
    sk_mpm_giving giving;
    SK_TRY(sk_mpm_begin_giving(step, &giving, error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int block = 1; block <= step->grid.particle_blocks; block++)
        give_block(&giving, block);
    sk_mpm_end_giving(step, &giving);
    return SELKIE_OK;
}

/* --- Nodes to points --- */

/* Copies the nodes of a block and its halo. */
static void load_tile(const sk_mpm_taking *taking, int block, f4 *tile)
{
    for (int tz = 0; tz < SK_MPM_TILE_NZ; tz++)
        for (int ty = 0; ty < SK_MPM_TILE_N; ty++) {
            const int y = ty - 1, z = SELKIE_DIM == 3 ? tz - 1 : 0;
            const int by = y < 0 ? 0 : y < SK_BLOCK_N ? 1 : 2, bz = z < 0 ? 0 : z < SK_BLOCK_N ? 1 : 2;
            const int beside = 3 * by + (SELKIE_DIM == 3 ? 9 * bz : 0);
            const int row = SK_BLOCK_N * ((y & SK_BLOCK_MASK) + SK_BLOCK_N * (z & SK_BLOCK_MASK));
            f4 *to = tile + SK_MPM_TILE_N * (ty + SK_MPM_TILE_N * tz);
            for (int bx = 0; bx < 3; bx++) {
                const int slot = taking->grid->neighbours[block][bx + beside];
                const float(*from)[4] =
                    (const float(*)[4])(taking->mpm->nodes + (size_t)slot * SK_BLOCK_CELLS + (size_t)row);
                const int first = bx == 0 ? SK_BLOCK_N - 1 : 0, count = bx == 1 ? SK_BLOCK_N : 1;
                memcpy(to, from + first, (size_t)count * sizeof *to);
                to += count;
            }
        }
}

/* What a point takes, columns of matrices as lanes. */
typedef struct taken {
    f4 velocity;    /* m/s */
    f4 slope[3];    /* m/s a cell, a quarter of the affine slope */
    f4 gradient[3]; /* m/s a cell */
} taken;

/* sk_mpm_take over all nodes of a point, a row of three nodes at a time. */
INLINE void take(const f4 nodes[SK_MPM_NODES], const float offset[3], taken *result)
{
    const f4 zero = {0, 0, 0, 0};
    float weight[3][3], rise[3][3];
    f4 velocity = zero, moment[3] = {zero, zero, zero}, gradient[3] = {zero, zero, zero};
    for (int d = 0; d < SELKIE_DIM; d++)
        sk_mpm_weights(offset[d], weight[d], rise[d]);
    for (int row = 0; row < ROWS; row++) {
        const int j = row % 3, k = row / 3;
        const float wz = SELKIE_DIM == 3 ? weight[SELKIE_DIM - 1][k] : 1.0f, share = weight[1][j] * wz;
        const f4 a = nodes[3 * row], b = nodes[3 * row + 1], c = nodes[3 * row + 2];
        const f4 low = weight[0][0] * a, high = weight[0][2] * c, sum = sk_scaled_add(weight[0][1], b, low + high);
        const f4 rising = sk_scaled_add(rise[0][0], a, sk_scaled_add(rise[0][1], b, rise[0][2] * c));
        const f4 part = share * sum;
        velocity += part;
        moment[0] = sk_scaled_add(share, high - low, moment[0]);
        moment[1] = j == 0 ? moment[1] - part : j == 1 ? moment[1] : moment[1] + part;
        gradient[0] = sk_scaled_add(share, rising, gradient[0]);
        gradient[1] = sk_scaled_add(rise[1][j] * wz, sum, gradient[1]);
        if (SELKIE_DIM == 3) {
            moment[2] = k == 0 ? moment[2] - part : k == 1 ? moment[2] : moment[2] + part;
            gradient[2] = sk_scaled_add(weight[1][j] * rise[SELKIE_DIM - 1][k], sum, gradient[2]);
        }
    }
    result->velocity = velocity;
    for (int d = 0; d < SELKIE_DIM; d++) {
        result->slope[d] = moment[d] - offset[d] * velocity;
        result->gradient[d] = gradient[d];
    }
}

static void take_cell(const sk_mpm_taking *taking, const float centre[3], uint32_t begin, uint32_t end, int block,
                      const f4 *first, sk_point_move_sums *sums)
{
    const sk_mpm_points *points = &taking->points;
    const float factor = 4.0f * taking->per_cell, clearance = taking->moving.step->solids.clearance[block];
    f4 nodes[SK_MPM_NODES];
    for (int row = 0; row < ROWS; row++)
        for (int i = 0; i < 3; i++)
            nodes[3 * row + i] = first[row_start(row) + i];
    for (uint32_t p = begin; p < end; p++) {
        sk_particle *record = &points->records[p];
        float *affine = points->affine + (size_t)p * SK_MPM_MATRIX, gradient[SK_MPM_MATRIX], offset[3];
        taken result;
        sk_mpm_offset(taking->grid, centre, record->position, offset);
        take(nodes, offset, &result);
        for (int i = 0; i < SELKIE_DIM; i++) {
            record->velocity[i] = result.velocity[i];
            for (int j = 0; j < SELKIE_DIM; j++) {
                affine[SELKIE_DIM * i + j] = factor * result.slope[j][i];
                gradient[SELKIE_DIM * i + j] = result.gradient[j][i];
            }
        }
        SK_DIM(sk_mpm_deform)
        (taking->moving.dt * taking->per_cell, gradient, points->deformation + (size_t)p * SK_MPM_MATRIX);
        sk_move_point(&taking->moving, clearance, record, sums);
    }
}

static void take_block(const sk_mpm_taking *taking, int block)
{
    const uint32_t *start = taking->grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    sk_point_move_sums sums = {0};
    f4 tile[SK_MPM_TILE];
    load_tile(taking, block, tile);
    for (int cell = 0; cell < SK_BLOCK_CELLS; cell++) {
        float centre[3];
        if (start[cell] == start[cell + 1])
            continue;
        sk_mpm_centre(taking->grid, block, cell, centre);
        take_cell(taking, centre, start[cell], start[cell + 1], block, tile + sk_mpm_first_node(cell), &sums);
    }
    taking->moving.sums[block] = sums;
}

selkie_code SK_DIM(sk_mpm_to_points)(sk_step *step, selkie_error *error)
{
    sk_mpm_taking taking;
    SK_TRY(sk_mpm_begin_taking(step, &taking, error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int block = 1; block <= step->grid.particle_blocks; block++)
        take_block(&taking, block);
    return sk_end_moving(step, &taking.moving, error);
}
