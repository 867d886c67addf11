/* The active set method on one block, a vector of cells at a time: projected sweeps, residuals, free cells.
 * linalg_kernels.h has the form for one cell. */
#include "linalg/bounded_solver.h"
#include "linalg/stencil.h"

SK_INLINE fs larger(fs a, fs b)
{
    return fs_select(a > b, a, b);
}

/* Read in place of fields that are 0 everywhere. */
static const float zeros[SK_BLOCK_CELLS] __attribute__((aligned(64)));

SK_INLINE const float *bound_of(const sk_bound_level *bound, int block)
{
    return bound->lower ? bound->lower + (size_t)block * SK_BLOCK_CELLS : zeros;
}

SK_INLINE const float *low_of(const sk_bound_level *bound, int block)
{
    return bound->paired ? bound->low + (size_t)block * SK_BLOCK_CELLS : zeros;
}

/* --- Projected Gauss-Seidel --- */

SK_INLINE void project_uniform_vector(sk_place at, const sk_around *x, float *own, const float *b, const float *bound,
                                      float inverse)
{
    fs value = inverse * (fs_load(b + at.here) + sk_sum_of_neighbours(x, at));
    fs_store(own + at.here, larger(value, fs_load(bound + at.here)));
}

SK_INLINE void project_general_vector(sk_place at, const sk_around *x, float *own, const float *b, const float *bound,
                                      const sk_around *face, const float *inverse)
{
    fs value = fs_load(inverse + at.here) * (fs_load(b + at.here) + sk_weighted_sum_of_neighbours(x, face, at));
    fs_store(own + at.here, larger(value, fs_load(bound + at.here)));
}

static __attribute__((noinline)) void project_uniform(int colour, const sk_around *x, float *own, const float *b,
                                                      const float *bound, float inverse)
{
    if (colour == 0)
        SK_EACH_VECTOR_OF_ALL(project_uniform_vector, 0, x, own, b, bound, inverse);
    else
        SK_EACH_VECTOR_OF_ALL(project_uniform_vector, 1, x, own, b, bound, inverse);
}

/* The rows of a block with coefficients of their own. */
typedef struct general_rows {
    const float *b, *bound, *inverse;
    sk_around face[SELKIE_DIM];
} general_rows;

static __attribute__((noinline)) void project_general(int colour, sk_active active, const sk_around *x, float *own,
                                                      const general_rows *rows)
{
    if (colour == 0)
        SK_EACH_VECTOR(active, project_general_vector, 0, x, own, rows->b, rows->bound, rows->face, rows->inverse);
    else
        SK_EACH_VECTOR(active, project_general_vector, 1, x, own, rows->b, rows->bound, rows->face, rows->inverse);
}

static void project(const sk_level *level, float *field, const float *rhs, const float *bound, int block)
{
    sk_around x;
    sk_look_around(level, field, block, &x);
    float *own = field + (size_t)block * SK_BLOCK_CELLS;
    if (level->slot[block] == SK_SLOT_UNIFORM) {
        for (int half = 0; half < 4; ++half)
            project_uniform(half & 1, &x, own, rhs, bound, level->inverse[block]);
    } else {
        general_rows rows = {.b = rhs, .bound = bound, .inverse = sk_slot_array(level, block, SK_COEFFICIENT_INVERSE)};
        sk_look_around_faces(level, block, rows.face);
        for (int half = 0; half < 4; ++half)
            project_general(half & 1, level->active[block], &x, own, &rows);
    }
}

/* --- Residual and free cells --- */

/* f - A (high + low) in single precision. Differences of neighbours are small and nearly exact, whatever the size of
 * high. Only the differences suffer a rounding error, x does not. */
SK_INLINE void quick_vector(sk_place at, const sk_around *high, const sk_around *low, const sk_row_coefficients a,
                            const float *f, float *r)
{
    fs h = fs_load(high->own + at.here), l = {0}, sum = {0}, other = {0};
    if (low)
        l = fs_load(low->own + at.here);
#define SK_FLUX(where, coefficient, into)                                                                              \
    do {                                                                                                               \
        fs difference = h - where(high, at);                                                                           \
        if (low)                                                                                                       \
            difference += l - where(low, at);                                                                          \
        into += difference * (a.face ? coefficient : fs_splat(1.0f));                                                  \
    } while (0)
    SK_FLUX(sk_left_of, fs_load(a.face[0].own + at.here), sum);
    SK_FLUX(sk_right_of, sk_right_of(&a.face[0], at), other);
    SK_FLUX(sk_below, fs_load(a.face[1].own + at.here), sum);
    SK_FLUX(sk_above, sk_above(&a.face[1], at), other);
#if SELKIE_DIM == 3
    SK_FLUX(sk_back_of, fs_load(a.face[2].own + at.here), sum);
    SK_FLUX(sk_front_of, sk_front_of(&a.face[2], at), other);
#endif
#undef SK_FLUX
    fs e = a.face ? fs_load(a.excess + at.here) : fs_splat(a.uniform_excess);
    fs_store(r + at.here, (fs_load(f + at.here) - e * (h + l)) - (sum + other));
}

SK_INLINE void quick_residual_of(const sk_level *level, const sk_around *high, const sk_around *low, int block,
                                 const float *f, float *r)
{
    if (level->slot[block] == SK_SLOT_UNIFORM) {
        const sk_row_coefficients uniform = {NULL, NULL, level->excess[block]};
        SK_EACH_VECTOR_OF_ALL(quick_vector, 0, high, low, uniform, f, r);
        SK_EACH_VECTOR_OF_ALL(quick_vector, 1, high, low, uniform, f, r);
    } else {
        sk_around face[SELKIE_DIM];
        sk_look_around_faces(level, block, face);
        const sk_row_coefficients general = {face, sk_slot_array(level, block, SK_COEFFICIENT_EXCESS), 0.0f};
        SK_EACH_VECTOR(level->active[block], quick_vector, 0, high, low, general, f, r);
        SK_EACH_VECTOR(level->active[block], quick_vector, 1, high, low, general, f, r);
    }
}

static void quick_residual(const sk_level *level, const sk_bound_level *bound, int block, float *r)
{
    const float *f = bound->f + (size_t)block * SK_BLOCK_CELLS;
    sk_around high, low;
    sk_look_around(level, bound->high, block, &high);
    if (bound->paired) {
        sk_look_around(level, bound->low, block, &low);
        quick_residual_of(level, &high, &low, block, f, r);
    } else {
        quick_residual_of(level, &high, NULL, block, f, r);
    }
}

/* One block for judge_at. */
typedef struct judged {
    const float *high, *low, *r, *lower, *inverse;
    float uniform_inverse, uniform_diagonal;
    float *part_inverse;
    fs squares, largest, size;
    is caught, released, held;
} judged;

SK_INLINE void judge_at(int offset, judged *j, int uniform)
{
    const fs zero = {0};
    fs r = fs_load(j->r + offset);
    fs inverse = uniform ? fs_splat(j->uniform_inverse) : fs_load(j->inverse + offset);
    fs high = fs_load(j->high + offset);
    fs gap = (high - fs_load(j->lower + offset)) + fs_load(j->low + offset);
    is unknown = inverse > zero, is_free = ((gap > zero) | (r > zero)) & unknown;
    fs distance = uniform ? gap * fs_splat(j->uniform_diagonal) : gap / fs_select(unknown, inverse, fs_splat(1.0f));
    fs natural = (fs)((is)fs_select(distance < -r, distance, r) & unknown); /* up to its sign */
    j->size += high * high;
    fs part = (fs)((is)inverse & is_free);
    is was_free = fs_load(j->part_inverse + offset) > zero;
    j->caught |= was_free & ~is_free;
    j->released |= is_free & ~was_free;
    j->held |= unknown & ~is_free;
    fs_store(j->part_inverse + offset, part);
    j->squares += natural * natural;
    fs magnitude = (fs)((is)natural & 0x7fffffff);
    j->largest = fs_select(~(magnitude <= j->largest), magnitude, j->largest); /* lets NaN through */
}

SK_INLINE int any_lane(is mask)
{
    int32_t found = 0;
    for (int i = 0; i < SK_LANES; ++i)
        found |= mask[i];
    return found != 0;
}

/* Vectors with free cells. */
static sk_active active_of(const float *part_inverse)
{
    sk_active active = 0;
    for (int bit = 0; bit < SK_ACTIVE_BITS; ++bit)
        active |= (sk_active)any_lane((is)fs_load(part_inverse + bit * SK_LANES) |
                                      (is)fs_load(part_inverse + SK_HALF + bit * SK_LANES))
                  << bit;
    return active;
}

static double judge(const sk_level *level, const sk_bound_level *bound, int block, selkie_residual_norm norm,
                    int exactly, double *size)
{
    size_t at = (size_t)block * SK_BLOCK_CELLS;
    int uniform = level->slot[block] == SK_SLOT_UNIFORM;
    if (exactly)
        SK_DIM(sk_residual_block)(level, bound->high, bound->low, bound->f + at, block, bound->r + at);
    else
        quick_residual(level, bound, block, bound->r + at);

    /* Find the cells that are caught or released, and the natural residual, vector by vector. */
    judged j = {.high = bound->high + at,
                .low = low_of(bound, block),
                .r = bound->r + at,
                .lower = bound_of(bound, block),
                .inverse = uniform ? NULL : sk_slot_array(level, block, SK_COEFFICIENT_INVERSE),
                .uniform_inverse = level->inverse[block],
                .uniform_diagonal = uniform ? 1.0f / level->inverse[block] : 0,
                .part_inverse = bound->part_inverse + at};
    if (uniform)
        for (int offset = 0; offset < SK_BLOCK_CELLS; offset += SK_LANES)
            judge_at(offset, &j, 1);
    else
        SK_EACH_OFFSET(level->active[block], judge_at, &j, 0);

    /* Note which part of the block is free if that changed. */
    if (any_lane(j.caught | j.released)) {
        bound->changed[block] |=
            (uint8_t)((any_lane(j.caught) ? SK_CELLS_CAUGHT : 0) | (any_lane(j.released) ? SK_CELLS_RELEASED : 0));
        int held = any_lane(j.held);
        bound->active[block] = held ? active_of(bound->part_inverse + at) : level->active[block];
        bound->part[block] = !held ? SK_PART_ALL : bound->active[block] ? SK_PART_SOME : SK_PART_NONE;
    }
    if (bound->part[block] != SK_PART_ALL) /* z must be 0 in held cells */
        memset(bound->z + at, 0, SK_BLOCK_CELLS * sizeof(float));

    /* Sum over the lanes in a fixed order. */
    double result = 0;
    *size = 0;
    for (int i = 0; i < SK_LANES; ++i)
        *size += (double)j.size[i];
    for (int i = 0; i < SK_LANES; ++i)
        if (norm == SELKIE_NORM_MAX)
            result = !((double)j.largest[i] <= result) ? (double)j.largest[i] : result;
        else
            result += (double)j.squares[i];
    return result;
}

/* --- Corrections --- */

SK_INLINE void clip_at(int offset, const float *high, const float *low, const float *lower, float *z, float scale)
{
    fs gap = (fs_load(high + offset) - fs_load(lower + offset)) + fs_load(low + offset);
    fs_store(z + offset, larger(scale * fs_load(z + offset), -gap));
}

static void clip(const sk_level *level, const sk_bound_level *bound, int block, float scale)
{
    size_t at = (size_t)block * SK_BLOCK_CELLS;
    SK_EACH_OFFSET(level->active[block], clip_at, bound->high + at, low_of(bound, block), bound_of(bound, block),
                   bound->z + at, scale);
}

SK_INLINE void room_at(int offset, const float *high, const float *low, const float *lower, float *room)
{
    fs_store(room + offset, -((fs_load(high + offset) - fs_load(lower + offset)) + fs_load(low + offset)));
}

/* x += z. If z reaches the bound, x = lower to the bit. */
SK_INLINE void advance_at(int offset, float *high, const float *lower, const float *room, const float *z)
{
    fs step = fs_load(z + offset), sum = fs_load(high + offset) + step;
    fs_store(high + offset, fs_select(step <= fs_load(room + offset), fs_load(lower + offset), sum));
}

/* The same with two-sum: low keeps the rounding error of high. */
SK_INLINE void advance_pair_at(int offset, float *high, float *low, const float *lower, const float *room,
                               const float *z)
{
    fs step = fs_load(z + offset), a = fs_load(high + offset), b = fs_load(low + offset) + step;
    is landed = step <= fs_load(room + offset);
    fs sum = a + b, part = sum - a, rest = (a - (sum - part)) + (b - part);
    fs_store(high + offset, fs_select(landed, fs_load(lower + offset), sum));
    fs_store(low + offset, (fs)((is)rest & ~landed));
}

static void correct(const sk_level *level, const sk_bound_level *bound, int block, int advance)
{
    float room[SK_BLOCK_CELLS] __attribute__((aligned(64)));
    size_t at = (size_t)block * SK_BLOCK_CELLS;
    sk_active active = level->active[block];
    const float *lower = bound_of(bound, block);
    if (active != SK_ALL_ACTIVE)
        memset(room, 0, sizeof(room)); /* silences a compiler warning; the value is not used */
    SK_EACH_OFFSET(active, room_at, bound->high + at, low_of(bound, block), lower, room);
    project(level, bound->z, bound->r + at, room, block);
    if (!advance)
        return;
    if (bound->paired)
        SK_EACH_OFFSET(active, advance_pair_at, bound->high + at, bound->low + at, lower, room, bound->z + at);
    else
        SK_EACH_OFFSET(active, advance_at, bound->high + at, lower, room, bound->z + at);
}

/* --- Start and end --- */

static void start(const sk_bound_level *bound, int block)
{
    float *x = bound->high + (size_t)block * SK_BLOCK_CELLS;
    const float *lower = bound_of(bound, block);
    const fs zero = {0};
    for (int i = 0; i < SK_BLOCK_CELLS; i += SK_LANES) {
        fs value = fs_load(x + i), least = fs_load(lower + i);
        is usable = (value > least) & (((is)value & 0x7f800000) != 0x7f800000);
        fs_store(x + i, fs_select(usable, value, fs_select(least > zero, least, zero)));
    }
}

static double push(const float *f)
{
    fs squares = {0};
    for (int i = 0; i < SK_BLOCK_CELLS; i += SK_LANES) {
        fs pushed = (fs)((is)fs_load(f + i) & (fs_load(f + i) > (fs){0}));
        squares += pushed * pushed;
    }
    double sum = 0;
    for (int i = 0; i < SK_LANES; ++i)
        sum += (double)squares[i];
    return sum;
}

static int count_above(const sk_bound_level *bound, int block)
{
    size_t at = (size_t)block * SK_BLOCK_CELLS;
    const float *lower = bound_of(bound, block);
    is above = {0};
    for (int i = 0; i < SK_BLOCK_CELLS; i += SK_LANES)
        above -= (fs_load(bound->high + at + i) - fs_load(lower + i)) + fs_load(bound->low + at + i) > (fs){0};
    int count = 0;
    for (int i = 0; i < SK_LANES; ++i)
        count += above[i];
    return count;
}

const sk_bounded_operations SK_DIM(sk_bounded_operations_tuned) = {
    .start = start,
    .push = push,
    .project = project,
    .judge = judge,
    .clip = clip,
    .correct = correct,
    .restrict_problem = SK_DIM(sk_restrict_problem),
    .interpolate = SK_DIM(sk_interpolate_block),
    .count_above = count_above,
};
