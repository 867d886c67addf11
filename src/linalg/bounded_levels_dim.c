/* Memory of the active set method: the problem of each level, and the levels coarsened from free cells alone. */
#include "linalg/bounded_solver.h"

static void *take(char **at, size_t bytes)
{
    void *piece = *at;
    *at += (bytes + 63) / 64 * 64;
    return piece;
}

/* Fields of one level's problem, and of the level coarsened from free cells of a finer one. */
static selkie_code allocate_level(sk_bounded_solver *solver, int depth, int has_bounds, selkie_error *error)
{
    const sk_level *plain = &solver->poisson->multigrid.level[depth];
    sk_bound_level *bound = &solver->bound[depth];
    sk_level *coarse = &solver->coarse[depth];
    size_t blocks = (size_t)plain->block_count + 2, cells = ((size_t)plain->block_count + 1) * SK_BLOCK_CELLS;
    size_t coefficients = depth ? (blocks + SK_SLOT_FIRST) * SK_COEFFICIENT_ARRAYS * SK_BLOCK_CELLS : 0;
    size_t fields = 6 + (has_bounds ? 1 : 0) + (depth ? 2 : 0);
    size_t bytes = fields * cells * sizeof(float) + coefficients * sizeof(float) +
                   blocks * (2 + 2 * sizeof(sk_active) + sizeof(int32_t) + 2 * sizeof(float)) + 16 * 64;
    SK_TRY(SK_DIM(sk_scratch_reserve)(solver->memory, &bound->memory, bytes, error));

    /* Fields of the level's own problem. */
    char *at = bound->memory.data;
    float **field[6] = {&bound->high, &bound->low, &bound->f, &bound->r, &bound->z, &bound->part_inverse};
    for (int i = 0; i < 6; ++i)
        *field[i] = take(&at, cells * sizeof(float));
    bound->lower = has_bounds ? take(&at, cells * sizeof(float)) : NULL;
    bound->part = take(&at, blocks);
    bound->changed = take(&at, blocks);
    bound->active = take(&at, blocks * sizeof(sk_active));

    /* Below the finest level: coefficients for the free cells of a finer level, numbered as in the plain one. */
    if (depth == 0)
        return SELKIE_OK;
    *coarse = *plain;
    coarse->x = take(&at, cells * sizeof(float));
    coarse->b = take(&at, cells * sizeof(float));
    coarse->active = take(&at, blocks * sizeof(sk_active));
    coarse->slot = take(&at, blocks * sizeof(int32_t));
    coarse->excess = take(&at, blocks * sizeof(float));
    coarse->inverse = take(&at, blocks * sizeof(float));
    coarse->coefficients = take(&at, coefficients * sizeof(float));
    return SELKIE_OK;
}

/* Zeros fields that are not written otherwise. Each thread zeros its own blocks. */
void SK_DIM(sk_bounded_clear_level)(sk_bounded_solver *solver, int depth, sk_team team)
{
    const sk_level *plain = &solver->poisson->multigrid.level[depth];
    sk_bound_level *bound = &solver->bound[depth];
    sk_level *coarse = &solver->coarse[depth];
    sk_share share = SK_DIM(sk_level_share)(plain, team);
    share.first[0] -= team.thread == 0; /* block 0 */
    float *field[7] = {bound->high, bound->low, bound->r, bound->z, bound->part_inverse, bound->f, bound->lower};
    const size_t bytes = SK_BLOCK_CELLS * sizeof(float), slot_cells = SK_COEFFICIENT_ARRAYS * SK_BLOCK_CELLS;

    /* Own blocks start with values of 0, no free cells and a slot of their own. */
    SK_EACH_OWN_BLOCK(block, share)
    {
        const size_t at = (size_t)block * SK_BLOCK_CELLS;
        for (int i = 0; i < (bound->lower ? 7 : 6); ++i)
            if (depth > 0 || i < 5 || block == 0) /* the others are written in full */
                memset(field[i] + at, 0, bytes);
        bound->part[block] = SK_PART_NONE; /* as part_inverse says */
        bound->active[block] = 0;
        bound->changed[block] = SK_CELLS_NEW;
        if (depth > 0) {
            memset(coarse->x + at, 0, bytes);
            memset(coarse->b + at, 0, bytes);
            coarse->slot[block] = block ? SK_SLOT_FIRST + block - 1 : SK_SLOT_EMPTY;
            memset(coarse->coefficients + (size_t)coarse->slot[block] * slot_cells, 0, slot_cells * sizeof(float));
        }
    }

    /* Slots of the empty block and of uniform blocks. */
    if (depth > 0) {
        if (team.thread == 0) {
            coarse->active[0] = 0;
            coarse->excess[0] = coarse->inverse[0] = 0;
            memset(coarse->coefficients + SK_SLOT_UNIFORM * slot_cells, 0, slot_cells * sizeof(float));
            for (size_t i = 0; i < SELKIE_DIM * SK_BLOCK_CELLS; ++i)
                coarse->coefficients[SK_SLOT_UNIFORM * slot_cells + i] = 1.0f;
        }
    }

    /* Block 0 stands for missing neighbours. It counts as whole and never changes. */
    if (team.thread == 0) {
        bound->paired = 0;
        bound->changed[0] = 0;
        bound->part[0] = SK_PART_ALL;
    }
}

selkie_code SK_DIM(sk_bounded_set_up)(sk_bounded_solver *solver, const sk_bounded_system *system, int threads,
                                      selkie_error *error)
{
    sk_poisson_solver *poisson = solver->poisson;
    SK_TRY(SK_DIM(sk_poisson_read)(poisson, &system->poisson, threads, error));
    SK_TRY(SK_DIM(sk_pockets_find)(poisson, error));
    SK_TRY(SK_DIM(sk_multigrid_coarsen)(&poisson->multigrid, threads, error));
    for (int depth = 0; depth < poisson->multigrid.level_count; ++depth)
        SK_TRY(allocate_level(solver, depth, system->lower != NULL, error));
    size_t blocks = (size_t)poisson->multigrid.level[0].block_count + 2;
    size_t components = (size_t)poisson->pockets.component_count;
    SK_TRY(SK_DIM(sk_scratch_reserve)(solver->memory, &solver->partial_memory,
                                      blocks * (3 * sizeof(double) + 1) + components, error));
    for (int i = 0; i < 3; ++i)
        solver->partial[i] = (double *)solver->partial_memory.data + (size_t)i * blocks;
    solver->mark = (uint8_t *)(solver->partial[2] + blocks);
    solver->skip = solver->mark + blocks;
    solver->part.level_count = poisson->multigrid.level_count;
    return SELKIE_OK;
}
