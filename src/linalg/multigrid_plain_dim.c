/* The arithmetic of a level, one cell at a time: loops over the functions of linalg_kernels.h. The reference for
 * multigrid_tuned_dim.c and multigrid_coarsen_tuned_dim.c. */
#include "linalg/tile.h"

/* Two Gauss-Seidel sweeps inside the block: red cells ((i + j + k) even), black cells, and both again. Backward sweeps
 * begin with black cells. Neighbouring blocks do not change. */
static void smooth(const sk_level *level, int block, sk_sweep sweep)
{
    sk_tile x, face[SELKIE_DIM];
    sk_around around;
    float *own = level->x + (size_t)block * SK_BLOCK_CELLS;
    const float *b = level->b + (size_t)block * SK_BLOCK_CELLS;
    sk_look_around(level, level->x, block, &around);
    if (sweep == SK_SWEEP_FORWARD_FROM_ZERO) {
        /* Only the blocks of the first colour have values yet; block 0 is all zeros. */
        around.own = level->x;
        if (block < level->first[1])
            for (int side = 0; side < SK_SIDES; ++side)
                around.side[side] = level->x;
    }
    sk_tile_read(&x, &around);
    sk_tile_read_faces(face, level, block);

    for (int half = 0; half < 4; ++half) {
        int colour = (half + (sweep == SK_SWEEP_BACKWARD)) & 1;
        for (int side = 0; side < SK_SIDES; ++side)
            if (level->neighbour[block][side] == block) /* across a periodic axis of one block: itself */
                sk_tile_wrap_halo(&x, side);
        for (int k = 0; k < SK_PLANES; ++k)
            for (int j = 0; j < SK_BLOCK_N; ++j)
                for (int i = (colour + j + k) & 1; i < SK_BLOCK_N; i += 2) {
                    int at = sk_tile_index(i, j, k), index = sk_split_index(i, j, k);
                    x.cell[at] = sk_relax_cell(&x, face, b[index], sk_inverse_at(level, block, index), at);
                }
    }
    sk_tile_write(&x, own);
}

static void multiply(const sk_level *level, const float *field, int block, float *y)
{
    sk_tile x, face[SELKIE_DIM];
    sk_tile_read_field(&x, level, field, block);
    sk_tile_read_faces(face, level, block);
    SK_EACH_CELL(i, j, k)
    {
        int index = sk_split_index(i, j, k);
        y[index] = sk_apply_cell(&x, face, sk_excess_at(level, block, index), sk_tile_index(i, j, k));
    }
}

static double dot(const float *a, const float *b, sk_active active)
{
    (void)active; /* zeros elsewhere */
    double sum = 0;
    for (int i = 0; i < SK_BLOCK_CELLS; ++i)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static void residual(const sk_level *level, const float *high_field, const float *low_field, const float *b, int block,
                     float *r)
{
    sk_tile high, low, face[SELKIE_DIM];
    sk_tile_read_field(&high, level, high_field, block);
    sk_tile_read_field(&low, level, low_field, block);
    sk_tile_read_faces(face, level, block);
    SK_EACH_CELL(i, j, k)
    {
        int index = sk_split_index(i, j, k);
        r[index] =
            sk_residual_cell(&high, &low, face, sk_excess_at(level, block, index), b[index], sk_tile_index(i, j, k));
    }
}

/* --- Between levels --- */

static void restrict_residual(const sk_level *fine, const sk_level *coarse, int block)
{
    sk_tile x, face[SELKIE_DIM], left;
    const float *b = fine->b + (size_t)block * SK_BLOCK_CELLS;
    sk_tile_read_field(&x, fine, fine->x, block);
    sk_tile_read_faces(face, fine, block);
    SK_EACH_CELL(i, j, k)
    {
        int at = sk_tile_index(i, j, k), index = sk_split_index(i, j, k);
        float product = sk_apply_cell(&x, face, sk_excess_at(fine, block, index), at);
        left.cell[at] = sk_inverse_at(fine, block, index) > 0 ? b[index] - product : 0;
    }

    int origin[3];
    sk_place_in_parent(fine, block, origin);
    float *target = coarse->b + (size_t)fine->parent[block] * SK_BLOCK_CELLS;
    SK_EACH_FIRST_CHILD(i, j, k)
    target[sk_parent_index(origin, i, j, k)] =
        SK_CORRECTION_SCALE * SK_RESTRICTION_SCALE * sk_sum_of_children(&left, sk_tile_index(i, j, k));
}

static void prolong(const sk_level *fine, const sk_level *coarse, int block)
{
    int origin[3];
    sk_place_in_parent(fine, block, origin);
    const float *source = coarse->x + (size_t)fine->parent[block] * SK_BLOCK_CELLS;
    float *x = fine->x + (size_t)block * SK_BLOCK_CELLS;
    SK_EACH_CELL(i, j, k)
    {
        int index = sk_split_index(i, j, k);
        if (sk_inverse_at(fine, block, index) > 0)
            x[index] += source[sk_parent_index(origin, i, j, k)];
    }
}

/* Faces and excess of a block for the unknowns that take part. */
static void coefficients_of_part(const sk_level *level, int block, sk_tile part[SELKIE_DIM], sk_tile *excess)
{
    sk_tile inverse, face[SELKIE_DIM];
    sk_tile_read_field(&inverse, level, level->part_inverse, block);
    sk_tile_read_faces(face, level, block);
    SK_EACH_CELL(i, j, k)
    {
        int at = sk_tile_index(i, j, k), index = sk_split_index(i, j, k);
        for (int axis = 0; axis < SELKIE_DIM; ++axis)
            part[axis].cell[at] = sk_face_of_part(face, &inverse, axis, at);
        excess->cell[at] = sk_excess_of_part(face, &inverse, sk_excess_at(level, block, index), at);
    }
}

static void coarsen(const sk_level *fine, const sk_level *coarse, int block)
{
    int origin[3], whole = SK_DIM(sk_level_is_whole)(fine, block);
    int uniform = whole && fine->slot[block] == SK_SLOT_UNIFORM;
    float *target[SELKIE_DIM + 1];
    for (int array = 0; array <= SELKIE_DIM; ++array)
        target[array] =
            coarse->coefficients +
            ((size_t)coarse->slot[fine->parent[block]] * SK_COEFFICIENT_ARRAYS + (size_t)array) * SK_BLOCK_CELLS;
    sk_place_in_parent(fine, block, origin);

    sk_tile face[SELKIE_DIM], excess;
    if (whole) {
        sk_tile_read_faces(face, fine, block);
        SK_EACH_CELL(i, j, k)
        excess.cell[sk_tile_index(i, j, k)] = sk_excess_at(fine, block, sk_split_index(i, j, k));
    } else {
        coefficients_of_part(fine, block, face, &excess);
    }

    SK_EACH_FIRST_CHILD(i, j, k)
    {
        int at = sk_tile_index(i, j, k), parent = sk_parent_index(origin, i, j, k);
        for (int axis = 0; axis < SELKIE_DIM; ++axis)
            target[axis][parent] = sk_coarse_face(face, axis, at);
        /* The excess of a uniform block is a mass term, which is not softened. */
        target[SELKIE_DIM][parent] = sk_coarse_excess(&excess, uniform ? 0.0f : coarse->softness, at);
    }
}

static int invert(const sk_level *level, int block, int *unknowns)
{
    sk_tile face[SELKIE_DIM];
    float *own = level->coefficients + (size_t)level->slot[block] * SK_COEFFICIENT_ARRAYS * SK_BLOCK_CELLS;
    const float *excess = own + SK_COEFFICIENT_EXCESS * SK_BLOCK_CELLS;
    float *inverse = own + SK_COEFFICIENT_INVERSE * SK_BLOCK_CELLS;
    int uniform = 1;
    *unknowns = 0;
    sk_tile_read_faces(face, level, block);
    SK_EACH_CELL(i, j, k)
    {
        int at = sk_tile_index(i, j, k), index = sk_split_index(i, j, k);
        inverse[index] = sk_inverse_diagonal(face, excess[index], at);
        uniform &= sk_has_full_faces(face, at) && excess[index] == excess[0];
        *unknowns += inverse[index] > 0;
    }
    level->active[block] = SK_ALL_ACTIVE;
    level->excess[block] = excess[0];
    level->inverse[block] = inverse[0];
    return uniform;
}

const sk_level_operations SK_DIM(sk_level_operations_plain) = {
    .smooth = smooth,
    .multiply = multiply,
    .dot = dot,
    .residual = residual,
    .restrict_residual = restrict_residual,
    .prolong = prolong,
    .coarsen = coarsen,
    .invert = invert,
};
