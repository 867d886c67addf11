/* The arithmetic of a level, a vector of cells at a time: smoother, operator, residual in double, transfers.
 * linalg_kernels.h has the form for one cell. */
#include "linalg/stencil.h"

/* --- Gauss-Seidel --- */

SK_INLINE void relax_uniform_vector(sk_place at, const sk_around *x, float *own, const float *b, float inverse)
{
    fs_store(own + at.here, inverse * (fs_load(b + at.here) + sk_sum_of_neighbours(x, at)));
}

/* Faces are 1, but some cells are held: their inverse is 0. */
SK_INLINE void relax_part_vector(sk_place at, const sk_around *x, float *own, const float *b, const float *inverse)
{
    fs_store(own + at.here, fs_load(inverse + at.here) * (fs_load(b + at.here) + sk_sum_of_neighbours(x, at)));
}

/* The same as the general form below, with its bits, if its faces are 1 between unknowns: x is 0 in other cells. */
SK_INLINE void relax_joined_vector(sk_place at, const sk_around *x, float *own, const float *b, const float *inverse)
{
    fs sum_x = sk_left_of(x, at) + sk_right_of(x, at), sum_y = sk_below(x, at) + sk_above(x, at);
#if SELKIE_DIM == 3
    sum_x += sk_back_of(x, at);
    sum_y += sk_front_of(x, at);
#endif
    fs_store(own + at.here, fs_load(inverse + at.here) * (fs_load(b + at.here) + (sum_x + sum_y)));
}

SK_INLINE void relax_general_vector(sk_place at, const sk_around *x, float *own, const float *b, const sk_around *face,
                                    const float *inverse)
{
    fs sum = fs_load(b + at.here) + sk_weighted_sum_of_neighbours(x, face, at);
    fs_store(own + at.here, fs_load(inverse + at.here) * sum);
}

static __attribute__((noinline)) void relax_uniform(int colour, const sk_around *x, float *own, const float *b,
                                                    float inverse)
{
    if (colour == 0)
        SK_EACH_VECTOR_OF_ALL(relax_uniform_vector, 0, x, own, b, inverse);
    else
        SK_EACH_VECTOR_OF_ALL(relax_uniform_vector, 1, x, own, b, inverse);
}

static __attribute__((noinline)) void relax_part(int colour, sk_active active, const sk_around *x, float *own,
                                                 const float *b, const float *inverse)
{
    if (colour == 0)
        SK_EACH_VECTOR(active, relax_part_vector, 0, x, own, b, inverse);
    else
        SK_EACH_VECTOR(active, relax_part_vector, 1, x, own, b, inverse);
}

static __attribute__((noinline)) void relax_joined(int colour, sk_active active, const sk_around *x, float *own,
                                                   const float *b, const float *inverse)
{
    if (colour == 0)
        SK_EACH_VECTOR(active, relax_joined_vector, 0, x, own, b, inverse);
    else
        SK_EACH_VECTOR(active, relax_joined_vector, 1, x, own, b, inverse);
}

static __attribute__((noinline)) void relax_general(int colour, sk_active active, const sk_around *x, float *own,
                                                    const float *b, const sk_around *face, const float *inverse)
{
    if (colour == 0)
        SK_EACH_VECTOR(active, relax_general_vector, 0, x, own, b, face, inverse);
    else
        SK_EACH_VECTOR(active, relax_general_vector, 1, x, own, b, face, inverse);
}

/* For cells in a block that is SK_PART_SOME. */
SK_INLINE is takes_part(const sk_level *level, int block, int offset)
{
    return fs_load(level->part_inverse + (size_t)block * SK_BLOCK_CELLS + offset) > (fs){0};
}

static void smooth(const sk_level *level, int block, sk_sweep sweep)
{
    sk_part part = sk_part_of(level, block);
    if (part == SK_PART_NONE)
        return;

    /* Values in the block and around it. */
    sk_around x;
    sk_look_around(level, level->x, block, &x);
    float *own = level->x + (size_t)block * SK_BLOCK_CELLS;
    const float *b = level->b + (size_t)block * SK_BLOCK_CELLS;
    if (sweep == SK_SWEEP_FORWARD_FROM_ZERO) {
        /* Only the blocks of the previous colour have values yet. The first red sweep overwrites the red half. */
        memset(own + SK_HALF, 0, SK_HALF * sizeof(float));
        if (block < level->first[1])
            for (int side = 0; side < SK_SIDES; ++side)
                if (level->neighbour[block][side] != block) /* across a periodic axis of one block: itself */
                    x.side[side] = level->x;
    }

    /* Two red and two black half sweeps, in the fastest form that fits the block. */
    int first_colour = sweep == SK_SWEEP_BACKWARD;
    if (level->slot[block] == SK_SLOT_UNIFORM && part == SK_PART_ALL) {
        for (int half = 0; half < 4; ++half)
            relax_uniform((first_colour + half) & 1, &x, own, b, level->inverse[block]);
    } else if (level->slot[block] == SK_SLOT_UNIFORM) {
        const float *inverse = level->part_inverse + (size_t)block * SK_BLOCK_CELLS;
        for (int half = 0; half < 4; ++half)
            relax_part((first_colour + half) & 1, level->active[block], &x, own, b, inverse);
    } else if (level->joins[block] && !level->part) {
        const float *inverse = sk_slot_array(level, block, SK_COEFFICIENT_INVERSE);
        for (int half = 0; half < 4; ++half)
            relax_joined((first_colour + half) & 1, level->active[block], &x, own, b, inverse);
    } else {
        sk_around face[SELKIE_DIM];
        sk_look_around_faces(level, block, face);
        const float *inverse = part == SK_PART_ALL ? sk_slot_array(level, block, SK_COEFFICIENT_INVERSE)
                                                   : level->part_inverse + (size_t)block * SK_BLOCK_CELLS;
        for (int half = 0; half < 4; ++half)
            relax_general((first_colour + half) & 1, level->active[block], &x, own, b, face, inverse);
    }
}

/* --- The operator --- */

SK_INLINE void apply_uniform_vector(sk_place at, const sk_around *x, float excess, float *y)
{
    fs_store(y + at.here, sk_apply_uniform_at(x, excess, at));
}

SK_INLINE void apply_general_vector(sk_place at, const sk_around *x, const sk_around *face, const float *excess,
                                    float *y)
{
    fs_store(y + at.here, sk_apply_general_at(x, face, excess, at));
}

static void multiply(const sk_level *level, const float *field, int block, float *y)
{
    sk_around x;
    sk_look_around(level, field, block, &x);
    if (level->slot[block] == SK_SLOT_UNIFORM) {
        float excess = level->excess[block];
        SK_EACH_VECTOR_OF_ALL(apply_uniform_vector, 0, &x, excess, y);
        SK_EACH_VECTOR_OF_ALL(apply_uniform_vector, 1, &x, excess, y);
    } else {
        sk_around face[SELKIE_DIM];
        sk_look_around_faces(level, block, face);
        const float *excess = sk_slot_array(level, block, SK_COEFFICIENT_EXCESS);
        SK_EACH_VECTOR(level->active[block], apply_general_vector, 0, &x, face, excess, y);
        SK_EACH_VECTOR(level->active[block], apply_general_vector, 1, &x, face, excess, y);
    }
}

SK_INLINE void dot_at(int offset, const float *a, const float *b, fs *sum)
{
    sum[offset / SK_LANES & 1] += fs_load(a + offset) * fs_load(b + offset);
}

/* Lanes are summed in single precision over the vectors of a block, then in double. */
static double dot(const float *a, const float *b, sk_active active)
{
    fs sum[2] = {{0}};
    SK_EACH_OFFSET(active, dot_at, a, b, sum);
    sk_double_vec lanes =
        __builtin_convertvector(sum[0], sk_double_vec) + __builtin_convertvector(sum[1], sk_double_vec);
    double total = 0;
    for (int i = 0; i < SK_LANES; ++i)
        total += lanes[i];
    return total;
}

/* --- The residual in double --- */

SK_INLINE sk_double_vec widen(fs value)
{
    return __builtin_convertvector(value, sk_double_vec);
}

/* Differences of high are taken in double. low is a rounding error of high; single precision suffices for its
 * differences. */
SK_INLINE void residual_vector(sk_place at, const sk_around *high, const sk_around *low, const sk_row_coefficients a,
                               const float *b, float *residual)
{
    sk_double_vec here = widen(fs_load(high->own + at.here));
    fs e = a.face ? fs_load(a.excess + at.here) : fs_splat(a.uniform_excess);
    fs small = a.face ? sk_apply_general_at(low, a.face, a.excess, at) : sk_apply_uniform_at(low, a.uniform_excess, at);
    sk_double_vec sum = widen(fs_load(b + at.here)) - widen(small) - widen(e) * here;
#define SK_FLUX(where, coefficient)                                                                                    \
    sum -= a.face ? widen(coefficient) * (here - widen(where(high, at))) : here - widen(where(high, at))
    SK_FLUX(sk_left_of, fs_load(a.face[0].own + at.here));
    SK_FLUX(sk_right_of, sk_right_of(&a.face[0], at));
    SK_FLUX(sk_below, fs_load(a.face[1].own + at.here));
    SK_FLUX(sk_above, sk_above(&a.face[1], at));
#if SELKIE_DIM == 3
    SK_FLUX(sk_back_of, fs_load(a.face[2].own + at.here));
    SK_FLUX(sk_front_of, sk_front_of(&a.face[2], at));
#endif
#undef SK_FLUX
    fs_store(residual + at.here, __builtin_convertvector(sum, fs));
}

void SK_DIM(sk_residual_block)(const sk_level *level, const float *high_field, const float *low_field, const float *b,
                               int block, float *residual)
{
    sk_around high, low;
    sk_look_around(level, high_field, block, &high);
    sk_look_around(level, low_field, block, &low);
    if (level->slot[block] == SK_SLOT_UNIFORM) {
        const sk_row_coefficients uniform = {NULL, NULL, level->excess[block]};
        SK_EACH_VECTOR_OF_ALL(residual_vector, 0, &high, &low, uniform, b, residual);
        SK_EACH_VECTOR_OF_ALL(residual_vector, 1, &high, &low, uniform, b, residual);
    } else {
        sk_around face[SELKIE_DIM];
        sk_look_around_faces(level, block, face);
        const sk_row_coefficients general = {face, sk_slot_array(level, block, SK_COEFFICIENT_EXCESS), 0.0f};
        SK_EACH_VECTOR(level->active[block], residual_vector, 0, &high, &low, general, b, residual);
        SK_EACH_VECTOR(level->active[block], residual_vector, 1, &high, &low, general, b, residual);
    }
}

/* --- Between levels --- */

/* Fine planes of one coarse plane, and coarse planes of a block. */
enum { planes_merged = SELKIE_DIM == 3 ? 2 : 1, coarse_planes = SK_PLANES / planes_merged };

/* b - A x summed over pairs of planes, then rows, then cells of a row (that is over colours). */
static void restrict_residual(const sk_level *fine, const sk_level *coarse, int block)
{
    float product[SK_BLOCK_CELLS] __attribute__((aligned(64)));
    float sums[coarse_planes * SK_PLANE_FLOATS] __attribute__((aligned(64)));

    /* A x of the unknowns that take part. */
    sk_active active = fine->active[block];
    const float *b = fine->b + (size_t)block * SK_BLOCK_CELLS;
    sk_part part = sk_part_of(fine, block);
    if (part != SK_PART_NONE) /* otherwise nothing is active */
        multiply(fine, fine->x, block, product);
    if (part == SK_PART_SOME) /* held cells have no residual */
        for (int i = 0; i < SK_BLOCK_CELLS; i += SK_LANES)
            fs_store(product + i, fs_select(takes_part(fine, block, i), fs_load(product + i), fs_load(b + i)));

    /* Residual, summed over pairs of planes and over colours. */
    for (int plane = 0; plane < coarse_planes; ++plane)
        for (int v = 0; v < SK_PLANE_VECTORS; ++v) {
            fs sum = {0};
            for (int k = plane * planes_merged; k < (plane + 1) * planes_merged; ++k)
                if (active >> (v + SK_PLANE_VECTORS * k) & 1) {
                    int red = k * SK_PLANE_FLOATS + v * SK_LANES, black = red + SK_HALF;
                    sum +=
                        (fs_load(b + red) - fs_load(product + red)) + (fs_load(b + black) - fs_load(product + black));
                }
            fs_store(sums + plane * SK_PLANE_FLOATS + v * SK_LANES, sum);
        }

    /* Sum pairs of rows into the right side of the parent. */
    int origin[3];
    sk_place_in_parent(fine, block, origin);
    float *target = coarse->b + (size_t)fine->parent[block] * SK_BLOCK_CELLS;
    const float scale = SK_CORRECTION_SCALE * SK_RESTRICTION_SCALE;
    for (int plane = 0; plane < coarse_planes; ++plane)
        for (int j = 0; j < SK_BLOCK_N; j += 2) {
            const float *row = sums + plane * SK_PLANE_FLOATS + j * SK_ROW;
            sk_half_row sum = *(const sk_half_row *)row + *(const sk_half_row *)(row + SK_ROW);
            sk_split_half_row(target, origin[0] != 0, origin[1] + j / 2, origin[2] + plane, scale * sum);
        }
}

/* Cells that are no unknowns stay 0: sweeps over blocks with faces of 1 between unknowns read them. */
static void prolong(const sk_level *fine, const sk_level *coarse, int block)
{
    float values[coarse_planes * SK_PLANE_FLOATS] __attribute__((aligned(64)));
    int origin[3];
    sk_place_in_parent(fine, block, origin);
    const float *source = coarse->x + (size_t)fine->parent[block] * SK_BLOCK_CELLS;
    for (int plane = 0; plane < coarse_planes; ++plane)
        for (int j = 0; j < SK_BLOCK_N; j += 2) {
            float *row = values + plane * SK_PLANE_FLOATS + j * SK_ROW;
            *(sk_half_row *)row = *(sk_half_row *)(row + SK_ROW) =
                sk_joined_half_row(source, origin[0] != 0, origin[1] + j / 2, origin[2] + plane);
        }
    float *x = fine->x + (size_t)block * SK_BLOCK_CELLS;
    const int all = fine->slot[block] == SK_SLOT_UNIFORM && sk_part_of(fine, block) == SK_PART_ALL;
    const float *inverse = sk_part_of(fine, block) == SK_PART_ALL ? sk_slot_array(fine, block, SK_COEFFICIENT_INVERSE)
                                                                  : fine->part_inverse + (size_t)block * SK_BLOCK_CELLS;
    for (sk_active bits = fine->active[block]; bits; bits &= bits - 1) {
        int bit = __builtin_ctzll(bits), k = bit / SK_PLANE_VECTORS, v = bit % SK_PLANE_VECTORS;
        fs value = fs_load(values + k / planes_merged * SK_PLANE_FLOATS + v * SK_LANES);
        for (int at = bit * SK_LANES; at < SK_BLOCK_CELLS; at += SK_HALF) {
            fs gift = all ? value : (fs)((is)value & (fs_load(inverse + at) > (fs){0}));
            fs_store(x + at, fs_load(x + at) + gift);
        }
    }
}

const sk_level_operations SK_DIM(sk_level_operations_tuned) = {
    .smooth = smooth,
    .multiply = multiply,
    .dot = dot,
    .residual = SK_DIM(sk_residual_block),
    .restrict_residual = restrict_residual,
    .prolong = prolong,
    .coarsen = SK_DIM(sk_coarsen_block),
    .invert = SK_DIM(sk_invert_block),
};
