/* What the active set method does to one block: projected sweeps, residuals, who is free. */
#include "linalg/bounded_solver.h"
#include "linalg/stencil.h"

SK_INLINE sk_vec larger(sk_vec a, sk_vec b)
{
    return sk_select(a > b, a, b);
}

SK_INLINE const float *bound_of(const sk_bound_level *bound, int block)
{
    static const float zeros[SK_BLOCK_CELLS] __attribute__((aligned(64)));
    return bound->lower ? bound->lower + (size_t)block * SK_BLOCK_CELLS : zeros;
}

/* --- Projected Gauss-Seidel ----------------------------------------------------------------------------------------
 */

SK_INLINE void project_uniform_vector(int k, int v, int parity, int colour, const sk_around *x, float *own,
                                      const float *b, const float *bound, float inverse)
{
    sk_place at = sk_place_at(colour, k, v, parity);
    sk_vec value = inverse * (sk_load(b + at.here) + sk_sum_of_neighbours(x, at));
    sk_store(own + at.here, larger(value, sk_load(bound + at.here)));
}

SK_INLINE void project_general_vector(int k, int v, int parity, int colour, const sk_around *x, float *own,
                                      const float *b, const float *bound, const sk_around *face, const float *inverse)
{
    sk_place at = sk_place_at(colour, k, v, parity);
    sk_vec value = sk_load(inverse + at.here) * (sk_load(b + at.here) + sk_weighted_sum_of_neighbours(x, face, at));
    sk_store(own + at.here, larger(value, sk_load(bound + at.here)));
}

static __attribute__((noinline)) void project_uniform(int colour, const sk_around *x, float *own, const float *b,
                                                      const float *bound, float inverse)
{
    if (colour == 0)
        SK_EACH_VECTOR_OF_ALL(project_uniform_vector, 0, x, own, b, bound, inverse);
    else
        SK_EACH_VECTOR_OF_ALL(project_uniform_vector, 1, x, own, b, bound, inverse);
}

static __attribute__((noinline)) void project_general(int colour, sk_active active, const sk_around *x, float *own,
                                                      const float *b, const float *bound, const sk_around *face,
                                                      const float *inverse)
{
    if (colour == 0)
        SK_EACH_VECTOR(active, project_general_vector, 0, x, own, b, bound, face, inverse);
    else
        SK_EACH_VECTOR(active, project_general_vector, 1, x, own, b, bound, face, inverse);
}

void SK_DIM(sk_project_block)(const sk_level *level, float *field, const float *rhs, const float *bound, int block)
{
    sk_around x;
    sk_look_around(level, field, block, &x);
    float *own = field + (size_t)block * SK_BLOCK_CELLS;
    if (level->slot[block] == SK_SLOT_UNIFORM) {
        for (int half = 0; half < 4; ++half)
            project_uniform(half & 1, &x, own, rhs, bound, level->inverse[block]);
    } else {
        sk_around face[SELKIE_DIM];
        sk_look_around_faces(level, block, face);
        const float *inverse = sk_slot_array(level, block, SK_COEFFICIENT_INVERSE);
        for (int half = 0; half < 4; ++half)
            project_general(half & 1, level->active[block], &x, own, rhs, bound, face, inverse);
    }
}

/* --- Residual and free cells ---------------------------------------------------------------------------------------
 */

/* One block of what judge_at needs. */
typedef struct judged {
    const float *high, *low, *r, *lower, *inverse;
    float uniform_inverse;
    float *part_inverse;
    sk_vec squares, largest;
    sk_int_vec changed, held;
} judged;

SK_INLINE void judge_at(int offset, judged *j)
{
    const sk_vec zero = {0};
    sk_vec r = sk_load(j->r + offset);
    sk_vec inverse = j->inverse ? sk_load(j->inverse + offset) : sk_splat(j->uniform_inverse);
    sk_vec gap = (sk_load(j->high + offset) - sk_load(j->lower + offset)) + sk_load(j->low + offset);
    sk_int_vec unknown = inverse > zero, is_free = ((gap > zero) | (r > zero)) & unknown;
    sk_vec distance = gap / sk_select(unknown, inverse, sk_splat(1.0f));
    sk_vec natural = (sk_vec)((sk_int_vec)sk_select(distance < -r, distance, r) & unknown);
    sk_vec part = (sk_vec)((sk_int_vec)inverse & is_free);
    j->changed |= part != sk_load(j->part_inverse + offset);
    j->held |= unknown & ~is_free;
    sk_store(j->part_inverse + offset, part);
    j->squares += natural * natural;
    sk_vec magnitude = (sk_vec)((sk_int_vec)natural & 0x7fffffff);
    j->largest = sk_select(~(magnitude <= j->largest), magnitude, j->largest); /* lets NaN through */
}

SK_INLINE int any_lane(sk_int_vec mask)
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
        active |= (sk_active)any_lane((sk_int_vec)sk_load(part_inverse + bit * SK_LANES) |
                                      (sk_int_vec)sk_load(part_inverse + SK_HALF + bit * SK_LANES))
                  << bit;
    return active;
}

double SK_DIM(sk_judge_block)(const sk_level *level, const sk_bound_level *bound, int block, selkie_residual_norm norm)
{
    size_t at = (size_t)block * SK_BLOCK_CELLS;
    int uniform = level->slot[block] == SK_SLOT_UNIFORM;
    SK_DIM(sk_residual_block)(level, bound->high, bound->low, bound->f + at, block, bound->r + at);
    judged j = {.high = bound->high + at,
                .low = bound->low + at,
                .r = bound->r + at,
                .lower = bound_of(bound, block),
                .inverse = uniform ? NULL : sk_slot_array(level, block, SK_COEFFICIENT_INVERSE),
                .uniform_inverse = level->inverse[block],
                .part_inverse = bound->part_inverse + at};
    SK_EACH_OFFSET(level->active[block], judge_at, &j);
    if (any_lane(j.changed)) {
        bound->changed[block] = 1;
        int held = any_lane(j.held);
        bound->active[block] = held ? active_of(bound->part_inverse + at) : level->active[block];
        bound->part[block] = !held ? SK_PART_ALL : bound->active[block] ? SK_PART_SOME : SK_PART_NONE;
    }
    if (bound->part[block] != SK_PART_ALL) /* where x is held, z must be 0 */
        memset(bound->z + at, 0, SK_BLOCK_CELLS * sizeof(float));
    double result = 0;
    for (int i = 0; i < SK_LANES; ++i)
        if (norm == SELKIE_NORM_MAX)
            result = !((double)j.largest[i] <= result) ? (double)j.largest[i] : result;
        else
            result += (double)j.squares[i];
    return result;
}

/* --- Corrections ---------------------------------------------------------------------------------------------------
 */

SK_INLINE void clip_at(int offset, const float *high, const float *low, const float *lower, float *z, float scale)
{
    sk_vec gap = (sk_load(high + offset) - sk_load(lower + offset)) + sk_load(low + offset);
    sk_store(z + offset, larger(scale * sk_load(z + offset), -gap));
}

void SK_DIM(sk_clip_block)(const sk_level *level, const sk_bound_level *bound, int block, float scale)
{
    size_t at = (size_t)block * SK_BLOCK_CELLS;
    SK_EACH_OFFSET(level->active[block], clip_at, bound->high + at, bound->low + at, bound_of(bound, block),
                   bound->z + at, scale);
}

SK_INLINE void room_at(int offset, const float *high, const float *low, const float *lower, float *room)
{
    sk_store(room + offset, -((sk_load(high + offset) - sk_load(lower + offset)) + sk_load(low + offset)));
}

/* x += z, and where z takes all the room there is, x = lower to the bit. Two-sum keeps in low what high cannot hold. */
SK_INLINE void advance_at(int offset, float *high, float *low, const float *lower, const float *room, const float *z)
{
    sk_vec step = sk_load(z + offset), a = sk_load(high + offset), b = sk_load(low + offset) + step;
    sk_int_vec landed = step <= sk_load(room + offset);
    sk_vec sum = a + b, part = sum - a, rest = (a - (sum - part)) + (b - part);
    sk_store(high + offset, sk_select(landed, sk_load(lower + offset), sum));
    sk_store(low + offset, (sk_vec)((sk_int_vec)rest & ~landed));
}

void SK_DIM(sk_correct_block)(const sk_level *level, const sk_bound_level *bound, int block)
{
    float room[SK_BLOCK_CELLS] __attribute__((aligned(64))) = {0};
    size_t at = (size_t)block * SK_BLOCK_CELLS;
    sk_active active = level->active[block];
    const float *lower = bound_of(bound, block);
    SK_EACH_OFFSET(active, room_at, bound->high + at, bound->low + at, lower, room);
    SK_DIM(sk_project_block)(level, bound->z, bound->r + at, room, block);
    SK_EACH_OFFSET(active, advance_at, bound->high + at, bound->low + at, lower, room, bound->z + at);
}
