/* Closed components: connected sets of unknowns without any excess.
 *
 * On such a set the null space of A is the constants. The right side must sum to zero there, and so must the result of
 * the preconditioner, or the iteration drifts. There is nearly always none, so the proof must be cheap. It is a flood
 * with one bit a cell: from all cells with an excess through all open faces, a plane of 64 cells at a time, block by
 * block through a queue. Cells that the flood does not reach are closed. Their components are then flooded one by one.
 * The result does not depend on the order of the blocks.
 */
#include "linalg/solver.h"

#include <stdlib.h>

/* The first cell of each row, the first row of a plane (2D: of a word). */
#if SELKIE_DIM == 3
static const uint64_t first_column = 0x0101010101010101ULL, first_row = 0xffULL;
enum { row_shift = 8, last_column_shift = 7, last_row_shift = 56 };
#else
static const uint64_t first_column = 0x0001000100010001ULL, first_row = 0xffffULL;
enum { row_shift = 16, last_column_shift = 15, last_row_shift = 48 };
#endif

typedef struct flood {
    const sk_poisson_solver *solver;
    sk_cell_bits *wet; /* [block_count + 1] */
    int32_t *queue;    /* ring of block_count + 1 */
    uint8_t *queued;   /* [block_count + 1] */
    int head, waiting;
    int32_t *touched; /* blocks in the order the flood reached them; NULL if not needed */
    int touched_count;
    uint8_t *was_touched;
} flood;

static void enqueue(flood *state, int block)
{
    int ring = state->solver->multigrid.level[0].block_count + 1;
    if (!state->queued[block]) {
        state->queued[block] = 1;
        state->queue[(state->head + state->waiting++) % ring] = block;
    }
    if (state->touched && !state->was_touched[block]) {
        state->was_touched[block] = 1;
        state->touched[state->touched_count++] = block;
    }
}

/* Along x and y inside one word. */
SK_INLINE uint64_t spread_in_word(uint64_t wet, uint64_t face_x, uint64_t face_y)
{
    uint64_t before;
    face_x &= ~first_column;
    face_y &= ~first_row;
    do {
        before = wet;
        wet |= (wet << 1 & face_x) | (wet & face_x) >> 1;
        wet |= (wet << row_shift & face_y) | (wet & face_y) >> row_shift;
    } while (wet != before);
    return wet;
}

/* Spreads word w - 1 into word w (up) and back: along z in 3D, across the seam along y in 2D. */
SK_INLINE uint64_t from_below(const uint64_t *wet, const sk_links *links, int w)
{
#if SELKIE_DIM == 3
    return wet[w - 1] & links->face[2].word[w];
#else
    return wet[w - 1] >> last_row_shift & first_row & links->face[1].word[w];
#endif
}

SK_INLINE uint64_t from_above(const uint64_t *wet, const sk_links *links, int w)
{
#if SELKIE_DIM == 3
    return wet[w + 1] & links->face[2].word[w + 1];
#else
    return (wet[w + 1] & first_row & links->face[1].word[w + 1]) << last_row_shift;
#endif
}

static void spread_in_block(sk_cell_bits *bits, const sk_links *links)
{
    uint64_t *wet = bits->word;
    int changed;
    do {
        changed = 0;
        for (int pass = 0; pass < 2; ++pass)
            for (int n = 0; n < SK_BLOCK_WORDS; ++n) {
                int w = pass ? SK_BLOCK_WORDS - 1 - n : n;
                uint64_t now = wet[w];
                if (w > 0)
                    now |= from_below(wet, links, w);
                if (w < SK_BLOCK_WORDS - 1)
                    now |= from_above(wet, links, w);
                now = spread_in_word(now, links->face[0].word[w], links->face[1].word[w]);
                changed |= now != wet[w];
                wet[w] = now;
            }
    } while (changed);
}

/* Floods the cells of the block on one side that are connected to flooded cells here. */
static void cross(flood *state, int block, int side)
{
    const sk_level *level = &state->solver->multigrid.level[0];
    int other = level->neighbour[block][side];
    if (!other)
        return;

    const uint64_t *wet = state->wet[block].word;
    uint64_t *there = state->wet[other].word, fresh = 0;
    int axis = side / 2, upper = side & 1;
    /* The upper block stores the faces between two blocks. */
    const uint64_t *face = state->solver->links[level->slot[upper ? other : block]].face[axis].word;

    /* Pass flooded cells through open faces, a word at a time. */
    for (int w = 0; w < SK_BLOCK_WORDS; ++w) {
        int target = w;
        uint64_t gift = 0;
        if (axis == 0) {
            gift = upper ? wet[w] >> last_column_shift & first_column & face[w]
                         : (wet[w] & first_column & face[w]) << last_column_shift;
#if SELKIE_DIM == 3
        } else if (axis == 1) {
            gift = upper ? wet[w] >> last_row_shift & first_row & face[w]
                         : (wet[w] & first_row & face[w]) << last_row_shift;
        } else if (w == (upper ? SK_BLOCK_WORDS - 1 : 0)) {
            target = SK_BLOCK_WORDS - 1 - w;
            gift = wet[w] & face[0];
#else
        } else if (w == (upper ? SK_BLOCK_WORDS - 1 : 0)) {
            target = SK_BLOCK_WORDS - 1 - w;
            gift = upper ? wet[w] >> last_row_shift & first_row & face[0]
                         : (wet[w] & first_row & face[0]) << last_row_shift;
#endif
        }
        fresh |= gift & ~there[target];
        there[target] |= gift;
    }
    if (fresh)
        enqueue(state, other);
}

static void run_flood(flood *state)
{
    const sk_level *level = &state->solver->multigrid.level[0];
    int ring = level->block_count + 1;
    while (state->waiting > 0) {
        int block = state->queue[state->head];
        state->head = (state->head + 1) % ring;
        --state->waiting;
        state->queued[block] = 0;
        if (level->slot[block] == SK_SLOT_UNIFORM)
            memset(&state->wet[block], 0xff, sizeof(state->wet[block]));
        else
            spread_in_block(&state->wet[block], &state->solver->links[level->slot[block]]);
        for (int side = 0; side < SK_SIDES; ++side)
            cross(state, block, side);
    }
}

static int compare_blocks(const void *left, const void *right)
{
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

static selkie_code reserve(sk_poisson_solver *solver, void **array, size_t *capacity, size_t count, size_t bytes,
                           selkie_error *error)
{
    return sk_reserve(solver->memory, array, capacity, count, bytes, "pressure solver: closed pockets", error);
}

/* Stores one component: the bits of its blocks, which are then done. */
static selkie_code record_component(sk_poisson_solver *solver, flood *state, selkie_error *error)
{
    sk_pockets *pockets = &solver->pockets;
    int component = pockets->component_count;
    SK_TRY(reserve(solver, (void **)&pockets->cells_of, &pockets->cells_of_capacity, (size_t)component + 1,
                   sizeof(size_t), error));
    pockets->cells_of[component] = 0;

    /* Blocks in ascending order: the result does not depend on the order of the flood. */
    qsort(state->touched, (size_t)state->touched_count, sizeof(int32_t), compare_blocks);
    for (int n = 0; n < state->touched_count; ++n) {
        int block = state->touched[n];
        uint64_t *wet = state->wet[block].word;
        int count = 0;
        for (int w = 0; w < SK_BLOCK_WORDS; ++w)
            count += __builtin_popcountll(wet[w]);
        SK_TRY(reserve(solver, (void **)&pockets->piece, &pockets->piece_capacity, pockets->piece_count + 1,
                       sizeof(sk_pocket_piece), error));
        sk_pocket_piece *piece = &pockets->piece[pockets->piece_count++];
        *piece = (sk_pocket_piece){block, component, -1, count};

        /* A block that is closed in part lists its closed cells. */
        if (count < SK_BLOCK_CELLS) {
            SK_TRY(reserve(solver, (void **)&pockets->cell, &pockets->cell_capacity,
                           pockets->cell_count + (size_t)count, sizeof(uint16_t), error));
            piece->first = (int32_t)pockets->cell_count;
            for (int cell = 0; cell < SK_BLOCK_CELLS; ++cell)
                if (wet[cell / 64] >> (cell % 64) & 1)
                    pockets->cell[pockets->cell_count++] = (uint16_t)sk_split_index(
                        cell % SK_BLOCK_N, cell / SK_BLOCK_N % SK_BLOCK_N, cell / (SK_BLOCK_N * SK_BLOCK_N));
        }

        /* Its cells are done. Reset the flood in this block. */
        pockets->cells_of[component] += (size_t)count;
        for (int w = 0; w < SK_BLOCK_WORDS; ++w) {
            solver->open[block].word[w] |= wet[w];
            wet[w] = 0;
        }
        state->was_touched[block] = 0;
    }
    state->touched_count = 0;
    pockets->component_count++;
    return SELKIE_OK;
}

/* Floods every component that the first flood did not reach. */
static selkie_code find_components(sk_poisson_solver *solver, flood *state, selkie_error *error)
{
    const sk_level *level = &solver->multigrid.level[0];
    memset(state->wet, 0, ((size_t)level->block_count + 1) * sizeof(sk_cell_bits));
    for (int block = 1; block <= level->block_count; ++block)
        for (int w = 0; w < SK_BLOCK_WORDS; ++w) {
            uint64_t dry;
            while ((dry = solver->links[level->slot[block]].unknown.word[w] & ~solver->open[block].word[w])) {
                state->wet[block].word[w] = dry & -dry;
                enqueue(state, block);
                run_flood(state);
                SK_TRY(record_component(solver, state, error));
            }
        }
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_pockets_find)(sk_poisson_solver *solver, selkie_error *error)
{
    const sk_level *level = &solver->multigrid.level[0];
    sk_pockets *pockets = &solver->pockets;
    pockets->component_count = 0;
    pockets->piece_count = pockets->cell_count = 0;
    size_t blocks = (size_t)level->block_count + 1;
    SK_TRY(SK_DIM(sk_scratch_reserve)(solver->memory, &pockets->flood_memory,
                                      blocks * (sizeof(sk_cell_bits) + 2 * sizeof(int32_t) + 2), error));
    sk_cell_bits *spare = pockets->flood_memory.data;
    flood state = {.solver = solver, .wet = solver->open};
    state.queue = (int32_t *)(spare + blocks);
    int32_t *touched = state.queue + blocks;
    state.queued = (uint8_t *)(touched + blocks);
    state.was_touched = state.queued + blocks;
    memset(state.queued, 0, 2 * blocks);

    /* The proof that there is none, which nearly always succeeds. */
    for (int block = 1; block <= level->block_count; ++block) {
        uint64_t seeds = 0;
        for (int w = 0; w < SK_BLOCK_WORDS; ++w)
            seeds |= solver->open[block].word[w];
        if (seeds)
            enqueue(&state, block);
    }
    run_flood(&state);
    state.wet = spare;
    state.touched = touched;
    SK_TRY(find_components(solver, &state, error));
    SK_TRY(
        reserve(solver, (void **)&pockets->sum, &pockets->sum_capacity, pockets->piece_count, sizeof(double), error));
    return reserve(solver, (void **)&pockets->mean, &pockets->mean_capacity, (size_t)pockets->component_count,
                   sizeof(double), error);
}

static double piece_sum(const sk_pockets *pockets, const sk_pocket_piece *piece, const float *block)
{
    double sum = 0;
    if (piece->first < 0)
        return pockets->operations->sum(block);
    for (int i = 0; i < piece->count; ++i)
        sum += block[pockets->cell[piece->first + i]];
    return sum;
}

void SK_DIM(sk_pockets_balance)(sk_pockets *pockets, sk_team team, float *field)
{
    if (pockets->component_count == 0)
        return;

    /* Sum of each piece. */
    size_t share[2];
    for (int end = 0; end < 2; ++end)
        share[end] = pockets->piece_count * (size_t)(team.thread + end) / (size_t)team.threads;
    for (size_t n = share[0]; n < share[1]; ++n) {
        const sk_pocket_piece *piece = &pockets->piece[n];
        pockets->sum[n] = piece_sum(pockets, piece, field + (size_t)piece->block * SK_BLOCK_CELLS);
    }
    sk_team_wait(team);

    /* Mean of each component, summed in a fixed order. */
    if (team.thread == 0) {
        memset(pockets->mean, 0, (size_t)pockets->component_count * sizeof(double));
        for (size_t n = 0; n < pockets->piece_count; ++n)
            pockets->mean[pockets->piece[n].component] += pockets->sum[n];
        for (int component = 0; component < pockets->component_count; ++component)
            pockets->mean[component] /= (double)pockets->cells_of[component];
    }
    sk_team_wait(team);

    /* Subtract the mean. */
    for (size_t n = share[0]; n < share[1]; ++n) {
        const sk_pocket_piece *piece = &pockets->piece[n];
        if (pockets->skip && pockets->skip[piece->component])
            continue;
        float *block = field + (size_t)piece->block * SK_BLOCK_CELLS;
        float mean = (float)pockets->mean[piece->component];
        if (piece->first < 0)
            pockets->operations->subtract(block, mean);
        else
            for (int i = 0; i < piece->count; ++i)
                block[pockets->cell[piece->first + i]] -= mean;
    }
    sk_team_wait(team);
}

void SK_DIM(sk_pockets_release)(sk_pockets *pockets, sk_memory *memory)
{
    sk_release(memory, pockets->piece);
    sk_release(memory, pockets->cell);
    sk_release(memory, pockets->sum);
    sk_release(memory, pockets->mean);
    sk_release(memory, pockets->cells_of);
    sk_release(memory, pockets->flood_memory.data);
    *pockets = (sk_pockets){0};
}
