/* Coarse levels out of level 0.
 *
 * A coarse cell stands for 2 x 2 (x 2) finer ones and is an unknown if any of them takes part. Rules that drop a coarse
 * cell because of air in it delete thin sheets and drops, and cost iterations. Each level is scaled so that a full face
 * is 1 again:
 *
 *   face    c_c = mean of the 4 (2D: 2) fine faces that make it up
 *   excess  e_c = sum over the children of s e / (1 + m e),  s = 1/2 (2D: 1)
 *   diagonal    = sum of the faces + e_c
 *
 * s is the theoretical factor of the restriction, so a mass term keeps its meaning on coarse levels. The denominator
 * softens the very stiff Dirichlet terms of ghost-fluid faces close to a cell's centre (e up to 20): their plain sum
 * would hold the whole coarse cell at zero. (m is relative to the largest face. A Dirichlet term that is softened below
 * the faces beside it makes a cycle indefinite.) The excess of a uniform block, the same in every cell, is a mass term
 * and is not softened.
 *
 * Coarsening ends at SK_BOTTOM_UNKNOWNS or fewer, whose inverse is stored.
 */
#include "linalg/multigrid.h"

#include <math.h>

/* The m above. Larger values suit splashes better, but make a W cycle indefinite in calm pools whose surface is one
 * cell into a coarse block. The solve then continues with careful cycles. */
static const float softness = 0.1f, softness_of_thorough = 0.15f;

enum { few_blocks = 64 }; /* not worth a second thread */

selkie_code SK_DIM(sk_scratch_reserve)(sk_memory *memory, sk_scratch *scratch, size_t bytes, selkie_error *error)
{
    if (bytes <= scratch->bytes)
        return SELKIE_OK;
    sk_release(memory, scratch->data);
    size_t generous = bytes + bytes / 8; /* reserve: a splash grows from step to step */
    scratch->data = sk_allocate(memory, generous);
    scratch->bytes = generous;
    if (!scratch->data) {
        scratch->data = sk_allocate(memory, bytes);
        scratch->bytes = bytes;
    }
    if (!scratch->data) {
        scratch->bytes = 0;
        return sk_fail(error, SELKIE_ERROR_MEMORY, "pressure solver: %.1f MiB more are needed and are not available",
                       (double)bytes / 1048576.0);
    }
    return SELKIE_OK;
}

/* Hands out consecutive pieces of a scratch, each aligned to a cache line. */
static void *take(char **at, size_t bytes)
{
    void *piece = *at;
    *at += (bytes + 63) / 64 * 64;
    return piece;
}

selkie_code SK_DIM(sk_level_allocate)(sk_multigrid *multigrid, int depth, int block_count, selkie_error *error)
{
    sk_level *level = &multigrid->level[depth];
    size_t blocks = (size_t)block_count + 2; /* block 0, and one past the last for sums */
    size_t bytes = blocks * (sizeof(*level->coordinates) + sizeof(*level->neighbour) + 4 * sizeof(int32_t) +
                             2 * sizeof(float) + sizeof(sk_active) + sizeof(uint8_t)) +
                   10 * 64;
    SK_TRY(SK_DIM(sk_scratch_reserve)(multigrid->memory, &level->index_memory, bytes, error));
    char *at = level->index_memory.data;
    level->block_count = block_count;
    level->coordinates = take(&at, blocks * sizeof(*level->coordinates));
    level->neighbour = take(&at, blocks * sizeof(*level->neighbour));
    level->parent = take(&at, blocks * sizeof(int32_t));
    level->morton = take(&at, blocks * sizeof(int32_t));
    level->slot = take(&at, blocks * sizeof(int32_t));
    level->work = take(&at, blocks * sizeof(int32_t));
    level->active = take(&at, blocks * sizeof(sk_active));
    level->excess = take(&at, blocks * sizeof(float));
    level->inverse = take(&at, blocks * sizeof(float));
    level->joins = take(&at, blocks * sizeof(uint8_t));
    memset(level->joins, 0, blocks * sizeof(uint8_t));
    memset(level->coordinates[0], 0, sizeof(level->coordinates[0]));
    memset(level->neighbour[0], 0, sizeof(level->neighbour[0]));
    level->parent[0] = 0;
    level->slot[0] = SK_SLOT_EMPTY;
    level->active[0] = 0;
    level->excess[0] = level->inverse[0] = 0;
    return SELKIE_OK;
}

void SK_DIM(sk_level_number)(sk_level *level, const int32_t (*coordinates)[4], int32_t *number)
{
    int next = 1;
    for (int colour = 0; colour < 2; ++colour) {
        level->first[colour] = next;
        for (int i = 0; i < level->block_count; ++i) {
            const int32_t *c = coordinates[i];
            if (((c[0] + c[1] + c[2]) & 1) != colour)
                continue;
            memcpy(level->coordinates[next], c, sizeof(level->coordinates[0]));
            level->morton[i] = next;
            number[i] = next++;
        }
    }
    level->first[2] = next;
}

/* Relative costs; a full general block is 20. */
void SK_DIM(sk_level_finish_work)(sk_level *level)
{
    level->work[0] = level->work[1] = 0;
    for (int block = 1; block <= level->block_count; ++block)
        level->work[block + 1] =
            level->work[block] + (level->slot[block] == SK_SLOT_UNIFORM
                                      ? 8
                                      : 4 + __builtin_popcountll(level->active[block]) * 16 / SK_ACTIVE_BITS);
}

/* --- Structure of the next level --- */

/* Does a fine block touch another one beyond a side of the domain, where their parents do not? */
static int is_cut(const sk_level *fine, const sk_level *coarse, int block, int side)
{
    const int axis = side / 2;
    return fine->joined[axis] && !coarse->joined[axis] &&
           fine->coordinates[block][axis] == (side & 1 ? fine->joined[axis] - 1 : 0);
}

/* Along a periodic axis of m cells, a chain without the joined face has 1/m of the stiffness of the ring for the change
 * from one end to the other. A cycle stays positive definite if a level is at least half as stiff as it should be, so
 * the faces of the chain get a factor of m / 2. Changes across the axis alone are not affected. */
void SK_DIM(sk_coarsen_with_sides)(const sk_multigrid *multigrid, const sk_level *fine, const sk_level *coarse,
                                   int block)
{
    multigrid->operations->coarsen(fine, coarse, block);
    for (int axis = 0; axis < SELKIE_DIM; ++axis) {
        if (!fine->joined[axis] || coarse->joined[axis])
            continue;
        const float stiffer = 0.25f * (float)(fine->joined[axis] * SK_BLOCK_N);
        float *face =
            coarse->coefficients +
            ((size_t)coarse->slot[fine->parent[block]] * SK_COEFFICIENT_ARRAYS + (size_t)axis) * SK_BLOCK_CELLS;
        int origin[3];
        sk_place_in_parent(fine, block, origin);
        for (int k = 0; k < (SELKIE_DIM == 3 ? SK_CHILD : 1); ++k)
            for (int j = 0; j < SK_CHILD; ++j)
                for (int i = 0; i < SK_CHILD; ++i) {
                    const int first = (axis == 0 ? i : axis == 1 ? j : k) == 0 && fine->coordinates[block][axis] == 0;
                    face[sk_split_index(origin[0] + i, origin[1] + j, origin[2] + k)] *= first ? 0.0f : stiffer;
                }
    }
}

static selkie_code lay_out(sk_multigrid *multigrid, int depth, selkie_error *error)
{
    sk_level *fine = &multigrid->level[depth], *coarse = fine + 1;
    /* Parents follow the curve in the order of their children. */
    int count = 0;
    for (int i = 0; i < fine->block_count; ++i) {
        const int32_t *c = fine->coordinates[fine->morton[i]];
        const int32_t *before = i ? fine->coordinates[fine->morton[i - 1]] : NULL;
        count += !before || c[0] >> 1 != before[0] >> 1 || c[1] >> 1 != before[1] >> 1 || c[2] >> 1 != before[2] >> 1;
    }
    SK_TRY(SK_DIM(sk_level_allocate)(multigrid, depth + 1, count, error));
    size_t cells = ((size_t)count + 1) * SK_BLOCK_CELLS;
    size_t coefficients = ((size_t)count + SK_SLOT_FIRST) * SK_COEFFICIENT_ARRAYS * SK_BLOCK_CELLS;
    SK_TRY(SK_DIM(sk_scratch_reserve)(multigrid->memory, &coarse->vector_memory, 2 * cells * sizeof(float), error));
    SK_TRY(SK_DIM(sk_scratch_reserve)(multigrid->memory, &coarse->coefficient_memory, coefficients * sizeof(float),
                                      error));
    coarse->x = coarse->vector_memory.data;
    coarse->b = coarse->x + cells;
    coarse->coefficients = coarse->coefficient_memory.data;
    coarse->softness = (multigrid->thorough ? softness_of_thorough : softness) / multigrid->largest_face;

    /* Neighbours are first stored as positions on the curve, in arrays that are filled later. */
    int32_t(*curve)[4] = (void *)coarse->neighbour; /* uses 16 of the 24 bytes that a block has there */
    int position = -1;
    for (int i = 0; i < fine->block_count; ++i) {
        int block = fine->morton[i];
        const int32_t *c = fine->coordinates[block];
        int32_t up[4] = {c[0] >> 1, c[1] >> 1, c[2] >> 1, 0};
        if (position < 0 || memcmp(curve[position], up, sizeof(up)) != 0)
            memcpy(curve[++position], up, sizeof(up));
        fine->parent[block] = position;
    }
    SK_DIM(sk_level_number)(coarse, (const int32_t(*)[4])curve, coarse->slot);
    for (int block = 1; block <= fine->block_count; ++block)
        fine->parent[block] = coarse->slot[fine->parent[block]];

    /* A periodic axis stays one while its blocks pair up, and blocks that touch differ in colour. Further down its
     * sides are closed: a coarse block would have to end in the middle. */
    for (int axis = 0; axis < 3; ++axis) {
        const int32_t half = fine->joined[axis] % 2 ? 0 : fine->joined[axis] / 2;
        coarse->joined[axis] = half == 1 || half % 2 == 0 ? half : 0;
    }

    /* A coarse block has a neighbour only if two of their children touch. */
    memset(coarse->neighbour, 0, ((size_t)count + 1) * sizeof(coarse->neighbour[0]));
    for (int block = 1; block <= fine->block_count; ++block)
        for (int side = 0; side < SK_SIDES; ++side)
            if (fine->neighbour[block][side] && (fine->coordinates[block][side / 2] & 1) == (side & 1) &&
                !is_cut(fine, coarse, block, side))
                coarse->neighbour[fine->parent[block]][side] = fine->parent[fine->neighbour[block][side]];
    for (int block = 0; block <= count; ++block)
        coarse->slot[block] = block == 0 ? SK_SLOT_EMPTY : SK_SLOT_FIRST + block - 1;
    return SELKIE_OK;
}

/* --- Coefficients of the next level --- */

static void coarsen_coefficients(sk_multigrid *multigrid, int depth, int threads)
{
    const sk_level *fine = &multigrid->level[depth];
    sk_level *coarse = &multigrid->level[depth + 1];
    (void)threads; /* in builds without OpenMP */
    const size_t slot_cells = SK_COEFFICIENT_ARRAYS * SK_BLOCK_CELLS;

    /* Slots equal block numbers here. The first two slots are those of the empty block and of uniform blocks. */
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && coarse->block_count > few_blocks)
    for (int block = 0; block <= coarse->block_count; ++block) {
        const size_t at = (size_t)block * SK_BLOCK_CELLS,
                     slot = (size_t)(block ? SK_SLOT_FIRST + block - 1 : SK_SLOT_EMPTY);
        memset(coarse->x + at, 0, SK_BLOCK_CELLS * sizeof(float));
        memset(coarse->b + at, 0, SK_BLOCK_CELLS * sizeof(float));
        memset(coarse->coefficients + slot * slot_cells, 0, slot_cells * sizeof(float));
    }

    /* All uniform blocks share one slot with faces of 1. */
    memset(coarse->coefficients + SK_SLOT_UNIFORM * slot_cells, 0, slot_cells * sizeof(float));
    for (size_t i = 0; i < SELKIE_DIM * SK_BLOCK_CELLS; ++i)
        coarse->coefficients[SK_SLOT_UNIFORM * slot_cells + i] = 1.0f;

#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && fine->block_count > few_blocks)
    for (int i = 0; i < fine->block_count; ++i)
        SK_DIM(sk_coarsen_with_sides)(multigrid, fine, coarse, fine->morton[i]);

    /* Other threads still read the block's faces, so its uniform flag is kept in the work array, which is free until
     * then. */
    int64_t unknowns = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : unknowns)                                 \
    if (threads > 1 && coarse->block_count > few_blocks)
    for (int i = 0; i < coarse->block_count; ++i) {
        int block = coarse->morton[i], count;
        coarse->work[block] = multigrid->operations->invert(coarse, block, &count);
        unknowns += count;
    }
    coarse->unknowns = unknowns;
    for (int block = 1; block <= coarse->block_count; ++block)
        if (coarse->work[block])
            coarse->slot[block] = SK_SLOT_UNIFORM;
    SK_DIM(sk_level_finish_work)(coarse);
}

selkie_code SK_DIM(sk_multigrid_coarsen)(sk_multigrid *multigrid, int threads, selkie_error *error)
{
    int depth = 0;
    while (multigrid->level[depth].unknowns > SK_BOTTOM_UNKNOWNS) {
        if (depth + 1 >= SK_MAX_LEVELS)
            return sk_fail(error, SELKIE_ERROR_INTERNAL, "pressure solver: more than %d levels", SK_MAX_LEVELS);
        SK_TRY(lay_out(multigrid, depth, error));
        coarsen_coefficients(multigrid, depth, threads);
        ++depth;
    }
    multigrid->level_count = depth + 1;
    SK_DIM(sk_multigrid_prepare_bottom)(multigrid);
    return SELKIE_OK;
}

void SK_DIM(sk_multigrid_release)(sk_multigrid *multigrid)
{
    for (int depth = 0; depth < SK_MAX_LEVELS; ++depth) {
        sk_level *level = &multigrid->level[depth];
        sk_scratch *scratch[3] = {&level->index_memory, &level->coefficient_memory, &level->vector_memory};
        for (int i = 0; i < 3; ++i) {
            sk_release(multigrid->memory, scratch[i]->data);
            *scratch[i] = (sk_scratch){NULL, 0};
        }
    }
}
