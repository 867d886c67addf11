/* One multigrid cycle over sparse blocks: the preconditioner of the conjugate gradients.
 *
 * The smoother takes the blocks in a checkerboard: all blocks of one colour,
 * which do not touch each other, then all of the other. In its visit a block does
 * two red-black Gauss-Seidel sweeps while it sits in the nearest cache, with the
 * neighbouring blocks held still. So the result does not depend on threads, and
 * one trip through memory does the smoothing of two. After the coarse correction
 * everything runs backwards (blocks of the second colour first, black cells
 * first), which makes the cycle its own transpose: conjugate gradients need that.
 *
 * Transfers are the simplest there are: a coarse cell is the sum of its children
 * (restriction) and gives them its value (prolongation). Plain aggregation
 * converges slowly because constant pieces make the coarse operator too stiff by
 * a factor of two; scaling the right side up by that factor (scaled aggregation,
 * Braess 1995; Stueben 2001) repairs it: restriction is 1/2 the sum of the 8
 * children in 3D and the sum of the 4 in 2D, with a full face 1 on every level.
 * A twentieth less than that was measured to be best.
 *
 * The level below the finest is visited twice (a W cycle): it has an eighth (2D: a
 * quarter) of the cells, and its errors cost iterations, that is work on the finest.
 * So is the next one, unless it is small: then a second visit was measured to save
 * nothing, as it does further down in any case. Levels too small to be shared run on
 * one thread while the others wait.
 *
 * A thorough cycle smooths the blocks of the finest level in two visits each: between
 * them neighbours tell each other what they have found, without which each has solved
 * for itself, and the jumps at their sides cost iterations. And where the coarse blocks
 * of a splash are as sparse as the fine ones and nearly as many, it visits them once:
 * a second visit would take more time than it saves.
 */
#include "linalg/stencil.h"

#include <sched.h>

enum { barrier_spins = 500 }; /* some tens of microseconds */

/* --- Gauss-Seidel --- */

SK_INLINE void relax_uniform_vector(int k, int v, int parity, int colour, const sk_around *x, float *own,
                                    const float *b, float inverse)
{
    sk_place at = sk_place_at(colour, k, v, parity);
    sk_store(own + at.here, inverse * (sk_load(b + at.here) + sk_sum_of_neighbours(x, at)));
}

/* Faces of 1, but some cells are held: their inverse is 0. */
SK_INLINE void relax_part_vector(int k, int v, int parity, int colour, const sk_around *x, float *own, const float *b,
                                 const float *inverse)
{
    sk_place at = sk_place_at(colour, k, v, parity);
    sk_store(own + at.here, sk_load(inverse + at.here) * (sk_load(b + at.here) + sk_sum_of_neighbours(x, at)));
}

SK_INLINE void relax_general_vector(int k, int v, int parity, int colour, const sk_around *x, float *own,
                                    const float *b, const sk_around *face, const float *inverse)
{
    sk_place at = sk_place_at(colour, k, v, parity);
    sk_vec sum = sk_load(b + at.here) + sk_weighted_sum_of_neighbours(x, face, at);
    sk_store(own + at.here, sk_load(inverse + at.here) * sum);
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

static __attribute__((noinline)) void relax_general(int colour, sk_active active, const sk_around *x, float *own,
                                                    const float *b, const sk_around *face, const float *inverse)
{
    if (colour == 0)
        SK_EACH_VECTOR(active, relax_general_vector, 0, x, own, b, face, inverse);
    else
        SK_EACH_VECTOR(active, relax_general_vector, 1, x, own, b, face, inverse);
}

SK_INLINE sk_part part_of(const sk_level *level, int block)
{
    return level->part ? (sk_part)level->part[block] : SK_PART_ALL;
}

/* Of cells in a block that is SK_PART_SOME. */
SK_INLINE sk_int_vec takes_part(const sk_level *level, int block, int offset)
{
    return sk_load(level->part_inverse + (size_t)block * SK_BLOCK_CELLS + offset) > (sk_vec){0};
}

void SK_DIM(sk_smooth_block)(const sk_level *level, int block, sk_sweep sweep)
{
    sk_part part = part_of(level, block);
    if (part == SK_PART_NONE)
        return;
    sk_around x;
    sk_look_around(level, level->x, block, &x);
    float *own = level->x + (size_t)block * SK_BLOCK_CELLS;
    const float *b = level->b + (size_t)block * SK_BLOCK_CELLS;
    if (sweep == SK_SWEEP_FORWARD_FROM_ZERO) {
        /* Nobody has a value yet but the blocks of the colour before; the first red sweep overwrites the red half. */
        memset(own + SK_HALF, 0, SK_HALF * sizeof(float));
        if (block < level->first[1])
            for (int side = 0; side < SK_SIDES; ++side)
                x.side[side] = level->x;
    }
    int first_colour = sweep == SK_SWEEP_BACKWARD;
    if (level->slot[block] == SK_SLOT_UNIFORM && part == SK_PART_ALL) {
        for (int half = 0; half < 4; ++half)
            relax_uniform((first_colour + half) & 1, &x, own, b, level->inverse[block]);
    } else if (level->slot[block] == SK_SLOT_UNIFORM) {
        const float *inverse = level->part_inverse + (size_t)block * SK_BLOCK_CELLS;
        for (int half = 0; half < 4; ++half)
            relax_part((first_colour + half) & 1, level->active[block], &x, own, b, inverse);
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

SK_INLINE void apply_uniform_vector(int k, int v, int parity, int colour, const sk_around *x, float excess, float *y)
{
    sk_place at = sk_place_at(colour, k, v, parity);
    sk_store(y + at.here, sk_apply_uniform_at(x, excess, at));
}

SK_INLINE void apply_general_vector(int k, int v, int parity, int colour, const sk_around *x, const sk_around *face,
                                    const float *excess, float *y)
{
    sk_place at = sk_place_at(colour, k, v, parity);
    sk_store(y + at.here, sk_apply_general_at(x, face, excess, at));
}

void SK_DIM(sk_multiply_block)(const sk_level *level, const float *field, int block, float *y)
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

SK_INLINE void dot_at(int offset, const float *a, const float *b, sk_vec *sum)
{
    sum[offset / SK_LANES & 1] += sk_load(a + offset) * sk_load(b + offset);
}

/* Lanes are summed in single precision over the vectors of a block, then in double. */
double SK_DIM(sk_dot_block)(const float *a, const float *b, sk_active active)
{
    sk_vec sum[2] = {{0}};
    SK_EACH_OFFSET(active, dot_at, a, b, sum);
    sk_double_vec lanes =
        __builtin_convertvector(sum[0], sk_double_vec) + __builtin_convertvector(sum[1], sk_double_vec);
    double total = 0;
    for (int i = 0; i < SK_LANES; ++i)
        total += lanes[i];
    return total;
}

double SK_DIM(sk_apply_block)(const sk_level *level, const float *x, int block, float *y)
{
    float *own = y + (size_t)block * SK_BLOCK_CELLS;
    SK_DIM(sk_multiply_block)(level, x, block, own);
    return SK_DIM(sk_dot_block)(x + (size_t)block * SK_BLOCK_CELLS, own, level->active[block]);
}

/* --- The residual in double --- */

SK_INLINE sk_double_vec widen(sk_vec value)
{
    return __builtin_convertvector(value, sk_double_vec);
}

/* Differences of high are taken in double. Those of low, a rounding error of high, need no more than single precision.
 */
SK_INLINE void residual_vector(int k, int v, int parity, int colour, const sk_around *high, const sk_around *low,
                               const sk_around *face, const float *excess, float uniform_excess, const float *b,
                               float *residual)
{
    sk_place at = sk_place_at(colour, k, v, parity);
    sk_double_vec here = widen(sk_load(high->own + at.here));
    sk_vec e = face ? sk_load(excess + at.here) : sk_splat(uniform_excess);
    sk_vec small = face ? sk_apply_general_at(low, face, excess, at) : sk_apply_uniform_at(low, uniform_excess, at);
    sk_double_vec sum = widen(sk_load(b + at.here)) - widen(small) - widen(e) * here;
#define SK_FLUX(where, coefficient)                                                                                    \
    sum -= face ? widen(coefficient) * (here - widen(where(high, at))) : here - widen(where(high, at))
    SK_FLUX(sk_left_of, sk_load(face[0].own + at.here));
    SK_FLUX(sk_right_of, sk_right_of(&face[0], at));
    SK_FLUX(sk_below, sk_load(face[1].own + at.here));
    SK_FLUX(sk_above, sk_above(&face[1], at));
#if SELKIE_DIM == 3
    SK_FLUX(sk_back_of, sk_load(face[2].own + at.here));
    SK_FLUX(sk_front_of, sk_front_of(&face[2], at));
#endif
#undef SK_FLUX
    sk_store(residual + at.here, __builtin_convertvector(sum, sk_vec));
}

void SK_DIM(sk_residual_block)(const sk_level *level, const float *high_field, const float *low_field, const float *b,
                               int block, float *residual)
{
    sk_around high, low;
    sk_look_around(level, high_field, block, &high);
    sk_look_around(level, low_field, block, &low);
    if (level->slot[block] == SK_SLOT_UNIFORM) {
        float excess = level->excess[block];
        SK_EACH_VECTOR_OF_ALL(residual_vector, 0, &high, &low, NULL, NULL, excess, b, residual);
        SK_EACH_VECTOR_OF_ALL(residual_vector, 1, &high, &low, NULL, NULL, excess, b, residual);
    } else {
        sk_around face[SELKIE_DIM];
        sk_look_around_faces(level, block, face);
        const float *excess = sk_slot_array(level, block, SK_COEFFICIENT_EXCESS);
        SK_EACH_VECTOR(level->active[block], residual_vector, 0, &high, &low, face, excess, 0.0f, b, residual);
        SK_EACH_VECTOR(level->active[block], residual_vector, 1, &high, &low, face, excess, 0.0f, b, residual);
    }
}

/* --- Between levels --- */

/* Where a fine block lies in its parent, in coarse cells. */
SK_INLINE void place_in_parent(const sk_level *fine, int block, int origin[3])
{
    for (int axis = 0; axis < 3; ++axis)
        origin[axis] = (fine->coordinates[block][axis] & 1) * SK_CHILD;
}

/* Planes of a block that one coarse plane stands for, and the coarse planes of a block. */
enum { planes_merged = SELKIE_DIM == 3 ? 2 : 1, coarse_planes = SK_PLANES / planes_merged };

/* b - A x summed over pairs of planes, then rows, then cells of a row (which is over colours). */
static void restrict_residual(const sk_level *fine, const sk_level *coarse, int block)
{
    float product[SK_BLOCK_CELLS] __attribute__((aligned(64)));
    float sums[coarse_planes * SK_PLANE_FLOATS] __attribute__((aligned(64)));
    sk_active active = fine->active[block];
    const float *b = fine->b + (size_t)block * SK_BLOCK_CELLS;
    sk_part part = part_of(fine, block);
    if (part != SK_PART_NONE) /* else nothing is active */
        SK_DIM(sk_multiply_block)(fine, fine->x, block, product);
    if (part == SK_PART_SOME) /* no residual where x is held */
        for (int i = 0; i < SK_BLOCK_CELLS; i += SK_LANES)
            sk_store(product + i, sk_select(takes_part(fine, block, i), sk_load(product + i), sk_load(b + i)));
    for (int plane = 0; plane < coarse_planes; ++plane)
        for (int v = 0; v < SK_PLANE_VECTORS; ++v) {
            sk_vec sum = {0};
            for (int k = plane * planes_merged; k < (plane + 1) * planes_merged; ++k)
                if (active >> (v + SK_PLANE_VECTORS * k) & 1) {
                    int red = k * SK_PLANE_FLOATS + v * SK_LANES, black = red + SK_HALF;
                    sum +=
                        (sk_load(b + red) - sk_load(product + red)) + (sk_load(b + black) - sk_load(product + black));
                }
            sk_store(sums + plane * SK_PLANE_FLOATS + v * SK_LANES, sum);
        }
    int origin[3];
    place_in_parent(fine, block, origin);
    float *target = coarse->b + (size_t)fine->parent[block] * SK_BLOCK_CELLS;
    const float scale = 0.95f * (SELKIE_DIM == 3 ? 0.5f : 1.0f);
    for (int plane = 0; plane < coarse_planes; ++plane)
        for (int j = 0; j < SK_BLOCK_N; j += 2) {
            const float *row = sums + plane * SK_PLANE_FLOATS + j * SK_ROW;
            sk_half_row sum = *(const sk_half_row *)row + *(const sk_half_row *)(row + SK_ROW);
            sk_split_half_row(target, origin[0] != 0, origin[1] + j / 2, origin[2] + plane, scale * sum);
        }
}

/* Cells that are no unknowns receive a value too if their vector has any; the sweeps that follow set it back to 0. */
static void prolong(const sk_level *fine, const sk_level *coarse, int block)
{
    float values[coarse_planes * SK_PLANE_FLOATS] __attribute__((aligned(64)));
    int origin[3];
    place_in_parent(fine, block, origin);
    const float *source = coarse->x + (size_t)fine->parent[block] * SK_BLOCK_CELLS;
    for (int plane = 0; plane < coarse_planes; ++plane)
        for (int j = 0; j < SK_BLOCK_N; j += 2) {
            float *row = values + plane * SK_PLANE_FLOATS + j * SK_ROW;
            *(sk_half_row *)row = *(sk_half_row *)(row + SK_ROW) =
                sk_joined_half_row(source, origin[0] != 0, origin[1] + j / 2, origin[2] + plane);
        }
    float *x = fine->x + (size_t)block * SK_BLOCK_CELLS;
    sk_part part = part_of(fine, block);
    for (sk_active bits = fine->active[block]; bits; bits &= bits - 1) {
        int bit = __builtin_ctzll(bits), k = bit / SK_PLANE_VECTORS, v = bit % SK_PLANE_VECTORS;
        sk_vec value = sk_load(values + k / planes_merged * SK_PLANE_FLOATS + v * SK_LANES);
        for (int at = bit * SK_LANES; at < SK_BLOCK_CELLS; at += SK_HALF) {
            sk_vec gift = part == SK_PART_SOME ? (sk_vec)((sk_int_vec)value & takes_part(fine, block, at)) : value;
            sk_store(x + at, sk_load(x + at) + gift);
        }
    }
}

/* --- The cycle --- */

void SK_DIM(sk_barrier_wait)(sk_barrier *barrier, int threads)
{
    int round = atomic_load_explicit(&barrier->round, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&barrier->arrived, 1, memory_order_acq_rel) == threads - 1) {
        atomic_store_explicit(&barrier->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&barrier->round, round + 1, memory_order_release);
        return;
    }
    for (int spins = 0; atomic_load_explicit(&barrier->round, memory_order_acquire) == round; ++spins) {
        if (spins > barrier_spins) {
            sched_yield();
            continue;
        }
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
    }
}

sk_share SK_DIM(sk_level_share)(const sk_level *level, sk_team team)
{
    sk_share share;
    for (int colour = 0; colour < 2; ++colour) {
        int bound[2] = {level->first[colour], level->first[colour + 1]}, cut[2] = {bound[0], bound[1]};
        int64_t from = level->work[bound[0]], all = level->work[bound[1]] - from;
        for (int end = 0; team.threads > 1 && end < 2; ++end) {
            int64_t wanted = from + all * (team.thread + end) / team.threads;
            int low = bound[0], high = bound[1];
            while (low < high) {
                int middle = (low + high) / 2;
                if (level->work[middle] < wanted)
                    low = middle + 1;
                else
                    high = middle;
            }
            cut[end] = low;
        }
        share.first[colour] = cut[0];
        share.last[colour] = cut[1];
    }
    return share;
}

static void solve_bottom(const sk_multigrid *multigrid, const sk_level *level)
{
    int count = multigrid->bottom_unknowns;
    float sum[SK_BOTTOM_UNKNOWNS] = {0};
    for (int j = 0; j < count; ++j) {
        float b = level->b[multigrid->bottom_cell[j]];
        for (int i = 0; i < SK_BOTTOM_UNKNOWNS; ++i)
            sum[i] += multigrid->bottom_inverse[j][i] * b;
    }
    for (int i = 0; i < count; ++i)
        level->x[multigrid->bottom_cell[i]] = sum[i];
}

/* A block's part of b.x, while it is at hand. */
SK_INLINE void take_dot(const sk_level *level, int block, double *partial)
{
    size_t at = (size_t)block * SK_BLOCK_CELLS;
    if (partial)
        partial[block] = SK_DIM(sk_dot_block)(level->b + at, level->x + at, level->active[block]);
}

/* Is a level worth a second visit from the one above it? */
static int is_worth_it(const sk_multigrid *multigrid, int depth, int careful)
{
    const int fine = multigrid->level[depth - 1].block_count, coarse = multigrid->level[depth].block_count;
    if (depth == multigrid->level_count - 1)
        return 0; /* solved exactly */
    const int sparse = multigrid->thorough && coarse > fine / 4;
    return careful || (!sparse && (depth == 1 || (depth == 2 && coarse >= SK_SMALL_LEVEL)));
}

/* A second visit to a coarse level makes B of it 2 B - B A B, with eigenvalues of 2 l - l^2. Where two parts of the
 * liquid hang together by faces that are hardly open, the mean of faces is half of what a coarse level needs, and each
 * level doubles what the one below it corrects: l is 0.95, 1.9, 3.6 and so on, until 2 l - l^2 is negative and B no
 * longer definite. With every level visited twice l stays between 0 and 2 at all of them, whatever the faces are; so a
 * cycle is careful when one that was not has failed. */
static void cycle(const sk_multigrid *multigrid, int depth, sk_team team, int careful, int from_zero, double *partial)
{
    const sk_level *level = &multigrid->level[depth];
    if (team.threads > 1 && level->block_count < SK_SMALL_LEVEL) {
        if (team.thread == 0)
            cycle(multigrid, depth, (sk_team){0, 1, NULL}, careful, from_zero, partial);
        sk_team_wait(team);
        return;
    }
    const sk_share share = SK_DIM(sk_level_share)(level, team);
    const int *first = share.first, *last = share.last;
    if (depth == multigrid->level_count - 1) {
        if (team.thread == 0) {
            solve_bottom(multigrid, level);
            for (int block = 1; block <= level->block_count; ++block)
                take_dot(level, block, partial);
        }
    } else {
        const sk_level *coarse = level + 1;
        sk_sweep sweep = from_zero ? SK_SWEEP_FORWARD_FROM_ZERO : SK_SWEEP_FORWARD;

        const int visits =
            depth == 0 && multigrid->thorough ? 2 : 1; /* to each block, on the way down and on the way up */

        /* Down. Blocks of the second colour know all their neighbours' values at once. */
        for (int visit = 1; visit <= visits; ++visit) {
            for (int block = first[0]; block < last[0]; ++block)
                SK_DIM(sk_smooth_block)(level, block, sweep);
            sk_team_wait(team);
            for (int block = first[1]; block < last[1]; ++block) {
                SK_DIM(sk_smooth_block)(level, block, sweep);
                if (visit == visits)
                    restrict_residual(level, coarse, block);
            }
            sk_team_wait(team);
            sweep = SK_SWEEP_FORWARD;
        }
        for (int block = first[0]; block < last[0]; ++block)
            restrict_residual(level, coarse, block);
        sk_team_wait(team);

        cycle(multigrid, depth + 1, team, careful, 1, NULL);
        if (is_worth_it(multigrid, depth + 1, careful))
            cycle(multigrid, depth + 1, team, careful, 0, NULL);

        /* Up, in reverse. */
        for (int block = first[0]; block < last[0]; ++block)
            prolong(level, coarse, block);
        sk_team_wait(team);
        for (int visit = visits; visit >= 1; --visit) {
            for (int block = first[1]; block < last[1]; ++block) {
                if (visit == visits)
                    prolong(level, coarse, block);
                SK_DIM(sk_smooth_block)(level, block, SK_SWEEP_BACKWARD);
                if (visit == 1)
                    take_dot(level, block, partial);
            }
            sk_team_wait(team);
            for (int block = first[0]; block < last[0]; ++block) {
                SK_DIM(sk_smooth_block)(level, block, SK_SWEEP_BACKWARD);
                if (visit == 1)
                    take_dot(level, block, partial);
            }
            if (visit > 1)
                sk_team_wait(team);
        }
    }
    sk_team_wait(team);
}

void SK_DIM(sk_multigrid_cycle)(const sk_multigrid *multigrid, int root, sk_team team, int careful, double *partial)
{
    cycle(multigrid, root, team, careful, 1, partial);
}
