/* Reading a system and the vectors of the conjugate gradients, a vector of cells at a time. linalg_kernels.h has the
 * form for one cell. */
#include "linalg/solver.h"

/* --- The caller's coefficients --- */

typedef struct row_coefficients {
    sk_row face[SELKIE_DIM], excess, inverse;
    sk_int_row unknown, unlike; /* unlike: values that no uniform block has */
    sk_int_row narrow;          /* a face between two unknowns is not 1 */
} row_coefficients;

#if SELKIE_DIM == 2
#define SK_ROW_FROM_LEFT 31, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14
#define SK_ROW_FROM_RIGHT 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16
#else
#define SK_ROW_FROM_LEFT 15, 0, 1, 2, 3, 4, 5, 6
#define SK_ROW_FROM_RIGHT 1, 2, 3, 4, 5, 6, 7, 8
#endif

SK_INLINE sk_row row_at(const float *field, int j, int k)
{
    return *(const sk_row *)(field + (j + SK_BLOCK_N * k) * SK_BLOCK_N);
}

/* The row before or after (j, k) along an axis, possibly from the block on that side. */
SK_INLINE sk_row row_beside(const float *own, const float *beside, int axis, int step, int j, int k)
{
    int at = (axis == 1 ? j : k) + step;
    const float *field = at < 0 || at >= SK_BLOCK_N ? beside : own;
    at &= SK_BLOCK_MASK;
    return axis == 1 ? row_at(field, at, k) : row_at(field, j, at);
}

SK_INLINE sk_row keep(sk_row value, sk_int_row mask)
{
    return (sk_row)((sk_int_row)value & mask);
}

/* A bit for each lane whose mask is set. */
SK_INLINE unsigned row_bits(sk_int_row mask)
{
#if SELKIE_DIM == 2
    return i8_bits(__builtin_shufflevector(mask, mask, 0, 1, 2, 3, 4, 5, 6, 7)) |
           i8_bits(__builtin_shufflevector(mask, mask, 8, 9, 10, 11, 12, 13, 14, 15)) << 8;
#else
    return i8_bits(mask);
#endif
}

SK_INLINE int any(sk_int_row mask)
{
    return row_bits(mask) != 0;
}

SK_INLINE void read_row(const sk_source *from, int j, int k, row_coefficients *row, sk_int_row flaw[3])
{
    const sk_row zero = {0}, least = SK_SMALLEST_DIAGONAL - zero;
    sk_row d = row_at(from->diagonal, j, k), sum = zero;
    sk_int_row unknown = d > least, unlike = ~unknown, narrow = {0};

    /* Only faces between two unknowns count. */
    for (int axis = 0; axis < SELKIE_DIM; ++axis) {
        sk_row face = row_at(from->face[axis], j, k), d_lower, d_upper, face_upper;
        flaw[0] |= ((sk_int_row)face & 0x7f800000) == 0x7f800000;
        flaw[1] |= face < zero;
        if (axis == 0) {
            d_lower = __builtin_shufflevector(d, row_at(from->diagonal_side[0], j, k), SK_ROW_FROM_LEFT);
            d_upper = __builtin_shufflevector(d, row_at(from->diagonal_side[1], j, k), SK_ROW_FROM_RIGHT);
            face_upper = __builtin_shufflevector(face, row_at(from->face_upper[0], j, k), SK_ROW_FROM_RIGHT);
        } else {
            d_lower = row_beside(from->diagonal, from->diagonal_side[2 * axis], axis, -1, j, k);
            d_upper = row_beside(from->diagonal, from->diagonal_side[2 * axis + 1], axis, 1, j, k);
            face_upper = row_beside(from->face[axis], from->face_upper[axis], axis, 1, j, k);
        }
        const sk_int_row joined = unknown & (d_lower > least), joined_upper = unknown & (d_upper > least);
        narrow |= (joined & (face != 1.0f - zero)) | (joined_upper & (face_upper != 1.0f - zero));
        face = keep(face, joined);
        face_upper = keep(face_upper, joined_upper);
        unlike |= (face != 1.0f - zero) | (face_upper != 1.0f - zero);
        row->face[axis] = face;
        sum += face + face_upper;
    }

    /* Excess is the part of the diagonal beyond its faces. Round-off counts as none. */
    sk_row excess = keep(d - sum, unknown);
    flaw[2] |= excess < -SK_DOMINANCE_ROUND_OFF * d;
    excess = keep(excess, excess > SK_EXCESS_ROUND_OFF * d);
    row->excess = excess;
    sk_row diagonal = sum + excess;
    row->inverse = keep(1.0f / (diagonal + keep(1.0f - zero, ~unknown)), unknown);
    row->unknown = unknown;
    row->unlike = unlike;
    row->narrow = narrow;
}

static int judge(const sk_int_row flaw[3])
{
    return (any(flaw[0]) ? SK_FLAW_NOT_FINITE : 0) | (any(flaw[1]) ? SK_FLAW_NEGATIVE : 0) |
           (any(flaw[2]) ? SK_FLAW_NOT_DOMINANT : 0);
}

/* Is the block uniform? Stops at the first row that is not. */
static int is_uniform(sk_poisson_solver *solver, const sk_poisson_system *system, int block, int *flaws)
{
    sk_source from;
    SK_DIM(sk_look_up_source)(solver, system, block, &from);
    sk_level *level = &solver->multigrid.level[0];
    sk_int_row flaw[3] = {{0}};
    for (int k = 0; k < SK_PLANES; ++k)
        for (int j = 0; j < SK_BLOCK_N; ++j) {
            row_coefficients row;
            read_row(&from, j, k, &row, flaw);
            if (j == 0 && k == 0) {
                level->excess[block] = row.excess[0];
                level->inverse[block] = row.inverse[0];
            }
            if (any(row.unlike | (row.excess != level->excess[block] - (sk_row){0})))
                return 0;
        }
    *flaws = judge(flaw);
    return 1;
}

SK_INLINE void set_row_bits(sk_cell_bits *bits, int j, int k, sk_int_row mask)
{
    int at = SK_BLOCK_N * (j + SK_BLOCK_N * k);
    bits->word[at / 64] |= (uint64_t)row_bits(mask) << (at % 64);
}

/* Fills the slot of a general block; returns its flaws. */
static int read_general(sk_poisson_solver *solver, const sk_poisson_system *system, int block, int *unknowns)
{
    sk_level *level = &solver->multigrid.level[0];
    sk_source from;
    SK_DIM(sk_look_up_source)(solver, system, block, &from);

    /* The block's slot of coefficients, without links yet. */
    int slot = level->slot[block];
    float *array[SK_COEFFICIENT_ARRAYS];
    for (int i = 0; i < SK_COEFFICIENT_ARRAYS; ++i)
        array[i] = level->coefficients + ((size_t)slot * SK_COEFFICIENT_ARRAYS + (size_t)i) * SK_BLOCK_CELLS;
    sk_links *links = &solver->links[slot];
    memset(links, 0, sizeof(*links));

    /* Coefficients and links, row by row. */
    sk_int_row flaw[3] = {{0}}, count = {0}, narrow = {0};
    for (int k = 0; k < SK_PLANES; ++k)
        for (int j = 0; j < SK_BLOCK_N; ++j) {
            row_coefficients row;
            if (!any(row_at(from.diagonal, j, k) > SK_SMALLEST_DIAGONAL - (sk_row){0})) {
                /* No unknowns: no coefficients and no links. Flaws matter only beside unknowns. */
                for (int i = 0; i < SK_COEFFICIENT_ARRAYS; ++i)
                    sk_split_row(array[i], j, k, (sk_row){0});
                continue;
            }
            read_row(&from, j, k, &row, flaw);
            for (int axis = 0; axis < SELKIE_DIM; ++axis) {
                sk_split_row(array[axis], j, k, row.face[axis]);
                set_row_bits(&links->face[axis], j, k, row.face[axis] > (sk_row){0});
            }
            sk_split_row(array[SK_COEFFICIENT_EXCESS], j, k, row.excess);
            sk_split_row(array[SK_COEFFICIENT_INVERSE], j, k, row.inverse);
            set_row_bits(&links->unknown, j, k, row.unknown);
            set_row_bits(&solver->open[block], j, k, row.excess > (sk_row){0});
            count -= row.unknown;
            narrow |= row.narrow;
        }

    level->joins[block] = !any(narrow);

    /* Count the unknowns and find the vectors that hold any. */
    *unknowns = 0;
    for (int i = 0; i < SK_BLOCK_N; ++i)
        *unknowns += count[i];
    level->excess[block] = level->inverse[block] = 0;
    /* A vector of both colours together is a run of cells in natural order. */
    level->active[block] = 0;
    for (int bit = 0; bit < SK_ACTIVE_BITS; ++bit) {
        int first = bit * 2 * SK_LANES;
        uint64_t run = links->unknown.word[first / 64] >> (first % 64) & ~0ULL >> (64 - 2 * SK_LANES);
        level->active[block] |= (sk_active)(run != 0) << bit;
    }
    return judge(flaw);
}

static float read_right_side(const sk_poisson_solver *solver, const sk_poisson_system *system, int block, float scale,
                             float *b)
{
    const sk_level *level = &solver->multigrid.level[0];
    const float *field = system->right_side + (size_t)solver->outside[block] * SK_BLOCK_CELLS;
    for (int k = 0; k < SK_PLANES; ++k)
        for (int j = 0; j < SK_BLOCK_N; ++j)
            sk_split_row(b, j, k, scale * row_at(field, j, k));
    /* Cells that are no unknowns may hold anything. */
    if (level->slot[block] != SK_SLOT_UNIFORM) {
        const float *inverse = sk_slot_array(level, block, SK_COEFFICIENT_INVERSE);
        for (int i = 0; i < SK_BLOCK_CELLS; i += SK_LANES) {
            is unknown = fs_load(inverse + i) > (fs){0};
            fs_store(b + i, (fs)((is)fs_load(b + i) & unknown));
        }
    }
    is largest = {0};
    for (int i = 0; i < SK_BLOCK_CELLS; i += SK_LANES) {
        is magnitude = (is)fs_load(b + i) & 0x7fffffff; /* non-negative floats are ordered like their bits */
        is larger = magnitude > largest;
        largest = (magnitude & larger) | (largest & ~larger);
    }
    int32_t bits = 0;
    for (int i = 0; i < SK_LANES; ++i)
        bits = largest[i] > bits ? largest[i] : bits;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* --- Conjugate gradients --- */

SK_INLINE double sum_lanes(fs value)
{
    double sum = 0;
    for (int i = 0; i < SK_LANES; ++i)
        sum += (double)value[i];
    return sum;
}

SK_INLINE double largest_lane(fs value)
{
    float largest = 0;
    for (int i = 0; i < SK_LANES; ++i)
        largest = value[i] > largest || value[i] != value[i] ? value[i] : largest;
    return largest;
}

/* Sum of squares, or the largest magnitude. */
static double norm_of(const float *r, selkie_residual_norm norm)
{
    fs all = {0};
    if (norm == SELKIE_NORM_MAX) {
        for (int i = 0; i < SK_BLOCK_CELLS; i += SK_LANES) {
            fs value = (fs)((is)fs_load(r + i) & 0x7fffffff);
            all = fs_select(~(value <= all), value, all); /* lets NaN through */
        }
        return largest_lane(all);
    }
    for (int i = 0; i < SK_BLOCK_CELLS; i += SK_LANES)
        all += fs_load(r + i) * fs_load(r + i);
    return sum_lanes(all);
}

static double sum_of(const float *field)
{
    double sum = 0;
    sk_double_vec lanes = {0};
    for (int i = 0; i < SK_BLOCK_CELLS; i += SK_LANES)
        lanes += __builtin_convertvector(fs_load(field + i), sk_double_vec);
    for (int i = 0; i < SK_LANES; ++i)
        sum += lanes[i];
    return sum;
}

static void scale_by(float *field, float by)
{
    for (int i = 0; i < SK_BLOCK_CELLS; i += SK_LANES)
        fs_store(field + i, by * fs_load(field + i));
}

static void subtract(float *field, float value)
{
    for (int i = 0; i < SK_BLOCK_CELLS; i += SK_LANES)
        fs_store(field + i, fs_load(field + i) - value);
}

/* Knuth's two-sum. */
static void fold(float *high, float *low)
{
    for (int i = 0; i < SK_BLOCK_CELLS; i += SK_LANES) {
        fs a = fs_load(high + i), c = fs_load(low + i), sum = a + c, part = sum - a;
        fs_store(low + i, (a - (sum - part)) + (c - part));
        fs_store(high + i, sum);
    }
}

SK_INLINE void turn_at(int offset, float *p, const float *z, float beta)
{
    fs_store(p + offset, fs_load(z + offset) + beta * fs_load(p + offset));
}

static void turn(float *p, const float *z, float beta, sk_active active)
{
    SK_EACH_OFFSET(active, turn_at, p, z, beta);
}

SK_INLINE void advance_at(int offset, const sk_poisson_solver *solver, size_t at, float alpha, fs *squares, fs *largest,
                          fs *low_squares)
{
    at += (size_t)offset;
    fs r = fs_load(solver->r + at) - alpha * fs_load(solver->z + at);
    fs low = fs_load(solver->low + at) + alpha * fs_load(solver->p + at);
    fs_store(solver->low + at, low);
    fs_store(solver->r + at, r);
    *squares += r * r;
    *low_squares += low * low;
    fs magnitude = (fs)((is)r & 0x7fffffff);
    *largest = fs_select(~(magnitude <= *largest), magnitude, *largest); /* lets NaN through */
}

static double advance(const sk_poisson_solver *solver, int block, float alpha, selkie_residual_norm norm,
                      double *low_squares)
{
    fs squares = {0}, largest = {0}, lows = {0};
    SK_EACH_OFFSET(solver->multigrid.level[0].active[block], advance_at, solver, (size_t)block * SK_BLOCK_CELLS, alpha,
                   &squares, &largest, &lows);
    *low_squares = sum_lanes(lows);
    return norm == SELKIE_NORM_MAX ? largest_lane(largest) : sum_lanes(squares);
}

static int write_back(const float *high, const float *low, float unscale, float *target)
{
    float sum[SK_BLOCK_CELLS] __attribute__((aligned(64)));
    sk_int_row wild = {0};
    for (int i = 0; i < SK_BLOCK_CELLS; i += SK_LANES)
        fs_store(sum + i, (fs_load(high + i) + fs_load(low + i)) * unscale);
    for (int k = 0; k < SK_PLANES; ++k)
        for (int j = 0; j < SK_BLOCK_N; ++j) {
            sk_row row = sk_joined_row(sum, j, k);
            wild |= ((sk_int_row)row & 0x7f800000) == 0x7f800000;
            *(sk_row *)(target + (j + SK_BLOCK_N * k) * SK_BLOCK_N) = row;
        }
    return !any(wild);
}

const sk_poisson_operations SK_DIM(sk_poisson_operations_tuned) = {
    .is_uniform = is_uniform,
    .read_general = read_general,
    .read_right_side = read_right_side,
    .scale = scale_by,
    .sum = sum_of,
    .subtract = subtract,
    .norm = norm_of,
    .fold = fold,
    .turn = turn,
    .advance = advance,
    .write = write_back,
};
