/* Faces in the air beside the surface, for rows of cells.
 *
 * A shore cell is an air cell with liquid behind one of its faces. The pressure acts on no face between a shore cell
 * and another cell without liquid. Such a face would fall freely in every step, although its particles rest on the
 * liquid below, and the particles would keep that velocity. So it changes like the faces of the liquid beside it: by
 * the mean of their pressure gradients, narrow faces in part (shore_plain.h). A velocity from the liquid would lose the
 * gradient, and with it angular momentum. Gravity alone, as friction, brings it nearer to the liquid's velocity.
 *
 * Slivers (grid/slivers.h) take the whole mean too, with or without liquid beside them.
 *
 * Cells are bits: those of a block are a few words, so that liquid, shore cells and shore faces are found by shifts.
 * The pressure's push is then computed once for each face beside the shore, and the shore faces take means of it.
 */
#include <math.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/beside.h"
#include "grid/cell_bits.h"
#include "grid/slivers_lanes.h"
#include "methods/flip/flip.h"
#include "methods/flip/shore_plain.h"
#include "methods/liquid_system.h"

typedef struct shore {
    sk_block_bits *liquid, *air, *cells; /* [blocks] liquid cells, air cells, shore cells */
    sk_block_bits *faces[SELKIE_DIM];    /* [blocks] shore faces: the lower ones of these cells */
    uint64_t *runs;                      /* [blocks] runs with shore faces */
    float *push[SELKIE_DIM]; /* [blocks][cells] m/s  change by pressure and tension; NaN where there is none */
    float *open[SELKIE_DIM]; /* [blocks][cells]      open fractions of the faces in runs where some acts */
} shore;

static selkie_code reserve(sk_step *step, shore *s, selkie_error *error)
{
    const size_t blocks = (size_t)step->grid.block_count;
    void *memory;
    SK_TRY(sk_step_scratch(step, blocks * ((3 + SELKIE_DIM) * sizeof(sk_block_bits) + sizeof *s->runs), "extrapolate",
                           &memory, error));
    sk_block_bits *bits = memory;
    s->liquid = bits;
    s->air = bits + blocks;
    s->cells = bits + 2 * blocks;
    for (int d = 0; d < SELKIE_DIM; d++)
        s->faces[d] = bits + (size_t)(3 + d) * blocks;
    s->runs = (uint64_t *)(void *)(bits + (3 + SELKIE_DIM) * blocks);
    SK_TRY(
        sk_step_scratch(step, 2 * blocks * SELKIE_DIM * SK_BLOCK_CELLS * sizeof(float), "extrapolate", &memory, error));
    for (int d = 0; d < SELKIE_DIM; d++) {
        s->push[d] = (float *)memory + (size_t)d * blocks * SK_BLOCK_CELLS;
        s->open[d] = (float *)memory + (size_t)(SELKIE_DIM + d) * blocks * SK_BLOCK_CELLS;
    }

    /* Absent blocks have no liquid, no shore and no push. */
    memset(&s->liquid[0], 0, sizeof *s->liquid);
    memset(&s->cells[0], 0, sizeof *s->cells);
    s->runs[0] = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            s->push[d][c] = __builtin_nanf("");
            s->open[d][c] = 0.0f;
        }
    return SELKIE_OK;
}

/* --- Bits --- */

/* Which of 64 cells are of a kind. */
static inline uint64_t cells_of_kind(const uint8_t *kinds, int kind)
{
#if defined(__AVX512BW__)
    const __m512i own = _mm512_and_si512(_mm512_loadu_si512(kinds), _mm512_set1_epi8(SK_CELL_KIND_MASK));
    return _mm512_cmpeq_epi8_mask(own, _mm512_set1_epi8((char)kind));
#else
    uint64_t bits = 0;
    for (int c = 0; c < 64; c += 8)
        bits |= (uint64_t)i8_bits((i8_from_bytes(kinds + c) & SK_CELL_KIND_MASK) == kind) << c;
    return bits;
#endif
}

static void find_kinds(const sk_grid *grid, const shore *s, int block)
{
    const uint8_t *kinds = grid->kinds + (size_t)block * SK_BLOCK_CELLS;
    for (int w = 0; w < SK_CELL_WORDS; w++) {
        s->liquid[block].words[w] = cells_of_kind(kinds + 64 * w, SK_CELL_LIQUID);
        s->air[block].words[w] = cells_of_kind(kinds + 64 * w, SK_CELL_AIR);
    }
}

static void find_shore_cells(const sk_grid *grid, const shore *s, int block)
{
    for (int w = 0; w < SK_CELL_WORDS; w++) {
        uint64_t beside = 0;
        for (int d = 0; d < SELKIE_DIM; d++)
            beside |=
                sk_bits_beside(grid, s->liquid, block, w, d, -1) | sk_bits_beside(grid, s->liquid, block, w, d, 1);
        s->cells[block].words[w] = s->air[block].words[w] & beside;
    }
}

/* The slivers across axis d among 64 cells of a block. */
static uint64_t find_slivers(const sk_step *step, int block, int d, int word)
{
    const sk_solids *solids = &step->solids;
    const float *fraction = solids->fraction[d] + (size_t)solids->block_slot[block] * SK_BLOCK_CELLS + 64 * word;
    uint64_t slivers = 0;
    for (int c = 0; c < 64; c += 8)
        slivers |= (uint64_t)i8_bits(sk_are_slivers(f8_load(fraction + c))) << c;
    return slivers;
}

/* Lower faces of a cell that is a shore cell, or lies above one, with no liquid on either side, and slivers. */
static void find_shore_faces(const sk_step *step, const shore *s, int block)
{
    const sk_grid *grid = &step->grid;
    const int has_bodies =
        step->solids.piece_count && step->solids.piece_first[block] < step->solids.piece_first[block + 1];
    s->runs[block] = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int w = 0; w < SK_CELL_WORDS; w++) {
            const uint64_t shores = s->cells[block].words[w] | sk_bits_beside(grid, s->cells, block, w, d, -1);
            const uint64_t liquid = s->liquid[block].words[w] | sk_bits_beside(grid, s->liquid, block, w, d, -1);
            const uint64_t slivers = has_bodies ? find_slivers(step, block, d, w) : 0;
            const uint64_t faces = (shores & ~liquid) | (all_slivers_keep(step) ? slivers : slivers & ~liquid);
            s->faces[d][block].words[w] = faces;
            s->runs[block] |= sk_runs_of_word(faces, w);
        }
}

/* --- Faces --- */

/* The push of the liquid's faces in the runs beside the shore. */
static void find_push(const sk_step *step, const shore *s, int block, liquid_view *view, float *potential)
{
    const sk_grid *grid = &step->grid;
    const uint64_t runs = sk_runs_around(grid, sk_whole_runs(s->runs, grid->block_count), block);
    if (!runs)
        return;
    sk_block_bits pushed[SELKIE_DIM]; /* faces with liquid beside them */
    uint64_t some = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int w = 0; w < SK_CELL_WORDS; w++) {
            pushed[d].words[w] = s->liquid[block].words[w] | sk_bits_beside(grid, s->liquid, block, w, d, -1);
            some |= sk_runs_of_word(pushed[d].words[w], w);
        }
    some &= runs;
    if (some) {
        const sk_tile_rows rows = sk_tile_rows_around(some);
        load_liquid_cells(step, block, &rows, view);
        sk_tile_load_rows(grid, grid->fields[SK_FIELD_POTENTIAL], block, &rows, potential);
    }

    const size_t base = (size_t)block * SK_BLOCK_CELLS, solid = (size_t)step->solids.block_slot[block] * SK_BLOCK_CELLS;
    const f8 none = f8_splat(__builtin_nanf(""));
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float *fraction = step->solids.fraction[d] + solid;
        float *push = s->push[d] + base;
        SK_EACH_RUN(c, runs & ~some)
        f8_store(push + c, none);
        SK_EACH_RUN(c, some)
        {
            f8 value = liquid_descent(view, potential, node_of(c), node_step[d]);
            if (step->relative_density)
                value *= f8_load(grid->fields[SK_FIELD_LIGHTNESS_X + d] + base + c);
            if (step->tension_push)
                value += f8_load(grid->fields[step->tension_push + d] + base + c);
            const i8 acts = i8_from_bits(sk_bits_of_run(&pushed[d], c)) & (f8_load(fraction + c) > 0.0f);
            f8_store(push + c, f8_select(acts, value, none));
            f8_store(s->open[d] + base + c, f8_load(fraction + c));
        }
    }
}

/* sk_shore_part for eight faces. */
SK_VECTOR f8 shore_parts(f8 liquid, f8 of_shore)
{
    return f8_select(liquid < of_shore, liquid / of_shore, f8_splat(1.0f));
}

/* Sums over the faces beside eight faces on which pressure acts, and their number. `open` is the open fraction of the
 * eight faces. */
typedef struct shore_sums {
    f8 change, velocity, end, count;
} shore_sums;

SK_VECTOR void add_beside(const sk_step *step, const shore *s, int block, int c, const int d, const int axis,
                          const int side, f8 open, shore_sums *sums)
{
    const sk_grid *grid = &step->grid;
    const f8 zero = f8_splat(0.0f), push = sk_values_beside(grid, s->push[d], block, c, axis, side);
    const i8 acts = push == push;
    if (!i8_any(acts))
        return;
    const f8 velocity = sk_values_beside(grid, grid->fields[SK_FIELD_VELOCITY_X + d], block, c, axis, side);
    const f8 end = sk_values_beside(grid, grid->fields[step->end_velocity + d], block, c, axis, side);
    const f8 part = shore_parts(sk_values_beside(grid, s->open[d], block, c, axis, side), open);
    sums->change += f8_select(acts, part * push, zero);
    sums->velocity += f8_select(acts, velocity, zero);
    sums->end += f8_select(acts, end, zero);
    sums->count += f8_select(acts, f8_splat(1.0f), zero);
}

/* sk_shore_hold for eight faces. */
SK_VECTOR f8 shore_hold(f8 velocity, f8 liquid, f8 most, float slow)
{
    const f8 way = liquid - velocity, part = 2.0f - f8_abs(way) / slow;
    const f8 held = most * f8_max(f8_min(part, f8_splat(1.0f)), f8_splat(0.0f));
    return f8_max(f8_min(way, held), -held);
}

/* shore_grip for eight faces. */
SK_VECTOR f8 shore_grips(const sk_step *step, const shore *s, int block, int c, const int d, f8 gained)
{
    f8 squares = f8_splat(0.0f);
    for (int e = 0; e < SELKIE_DIM; e++) {
        const float weight = (float)(fabs(step->scene->gravity[e]) * sk_step_kick(step));
        f8 push = gained;
        if (weight == 0.0f)
            continue;
        if (e != d) {
            const f8 own = f8_load(s->push[e] + (size_t)block * SK_BLOCK_CELLS + (size_t)c);
            const f8 before = sk_values_beside(&step->grid, s->push[e], block, c, d, -1);
            push = f8_select(own == own, f8_select(before == before, 0.5f * (own + before), own), before);
            push = f8_select(push == push, push, f8_splat(0.0f));
        }
        const f8 carried = f8_min(f8_abs(push), f8_splat(weight));
        squares += carried * carried;
    }
    return SK_SHORE_GRIP * f8_sqrt(squares);
}

/* move_shore_face for the shore faces of a run. */
SK_VECTOR void move_run(const sk_step *step, const shore *s, int block, int c, const int d)
{
    const sk_grid *grid = &step->grid;
    const size_t at = (size_t)block * SK_BLOCK_CELLS + (size_t)c;
    const size_t solid = (size_t)step->solids.block_slot[block] * SK_BLOCK_CELLS + (size_t)c;
    const f8 open = f8_load(step->solids.fraction[d] + solid);
    const i8 sliver = sk_are_slivers(open);
    const i8 moves = i8_from_bits(sk_bits_of_run(&s->faces[d][block], c)) & ((open > 0.0f) | sliver);
    if (!i8_any(moves))
        return;

    /* Means over the faces of the liquid. */
    shore_sums sum = {f8_splat(0.0f), f8_splat(0.0f), f8_splat(0.0f), f8_splat(0.0f)};
#pragma GCC unroll 3
    for (int axis = 0; axis < SELKIE_DIM; axis++) {
        add_beside(step, s, block, c, d, axis, -1, open, &sum);
        add_beside(step, s, block, c, d, axis, 1, open, &sum);
    }
    const f8 share = f8_select(sum.count > 0.0f, 1.0f / sum.count, f8_splat(0.0f));
    const f8 gained = share * sum.change;

    /* The part of the weight with which the liquid holds them. */
    const float whole = 1.0f + (float)step->reflection; /* of the step: reflection_kernels.h */
    const f8 most = f8_select(sliver, f8_splat(0.0f), shore_grips(step, s, block, c, d, gained));
    const float slow = shore_slow(step);

    float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d] + at, *change = grid->fields[SK_FIELD_CHANGE_X + d] + at,
          *end = grid->fields[step->end_velocity + d] + at;
    const f8 before = f8_load(velocity), change_before = f8_load(change), end_before = f8_load(end);
    const f8 later = end_before + whole * gained, held = shore_hold(later, share * sum.end, whole * most, slow);
    f8 after = before + gained;
    after += shore_hold(after, share * sum.velocity, most, slow);
    f8_store(change, f8_select(moves, change_before + (whole * gained + held), change_before));
    f8_store(velocity, f8_select(moves, after, before));
    if (flip_has_end(step))
        f8_store(end, f8_select(moves, later + held, end_before));
}

static void move_faces(const sk_step *step, const shore *s, int block)
{
    SK_EACH_RUN(c, s->runs[block])
    {
        move_run(step, s, block, c, 0);
        move_run(step, s, block, c, 1);
#if SELKIE_DIM == 3
        move_run(step, s, block, c, 2);
#endif
    }
}

selkie_code SK_DIM(sk_flip_move_shore)(sk_step *step, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    const int blocks = grid->block_count;
    shore s;
    SK_TRY(reserve(step, &s, error));
#pragma omp parallel num_threads(step->threads)
    {
        liquid_view view;
        float potential[SK_TILE_VALUES(1)];
#pragma omp for schedule(static)
        for (int b = 1; b < blocks; b++)
            find_kinds(grid, &s, b);
#pragma omp for schedule(static)
        for (int b = 1; b < blocks; b++)
            find_shore_cells(grid, &s, b);
#pragma omp for schedule(static)
        for (int b = 1; b < blocks; b++)
            find_shore_faces(step, &s, b);
#pragma omp for schedule(dynamic, 4)
        for (int b = 1; b < blocks; b++)
            find_push(step, &s, b, &view, potential);
#pragma omp for schedule(dynamic, 4)
        for (int b = 1; b < blocks; b++)
            move_faces(step, &s, b);
    }
    return SELKIE_OK;
}
