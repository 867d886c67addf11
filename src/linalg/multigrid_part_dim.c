/* Levels with held unknowns, and the levels below them.
 *
 * For a correction, a held unknown is a Dirichlet boundary with value zero. On the level itself that needs no change
 * of coefficients. The next coarser level is made from the faces and excess of the unknowns that take part: a face
 * towards a held unknown counts as excess. If unknowns are held or released, only the parents of changed blocks are
 * coarsened again.
 */
#include "linalg/multigrid.h"

/* Do all unknowns of the block and of its neighbours take part? */
int SK_DIM(sk_level_is_whole)(const sk_level *level, int block)
{
    if (!level->part)
        return 1;
    int whole = level->part[block] == SK_PART_ALL;
    for (int side = 0; side < SK_SIDES; ++side)
        whole &= level->part[level->neighbour[block][side]] == SK_PART_ALL;
    return whole;
}

/* --- Again, where something changed --- */

static void mark_blocks(const sk_level *fine, sk_team team, const uint8_t *changed, uint8_t *mark)
{
    const sk_share share = SK_DIM(sk_level_share)(fine, team);
    SK_EACH_OWN_BLOCK(block, share)
    if (changed[block]) /* several children may write it at once */
        __atomic_store_n(&mark[fine->parent[block]], 1, __ATOMIC_RELAXED);
    sk_team_wait(team);
}

/* The root level passes on its own changes and those of the neighbours, since faces between them change too. */
static void spread_changes(const sk_level *root, sk_team team, uint8_t *changed, uint8_t *spread)
{
    const sk_share share = SK_DIM(sk_level_share)(root, team);
    SK_EACH_OWN_BLOCK(block, share)
    {
        spread[block] = changed[block];
        for (int side = 0; side < SK_SIDES; ++side) /* block 0 never changes */
            spread[block] |= changed[root->neighbour[block][side]];
    }
    sk_team_wait(team);
    SK_EACH_OWN_BLOCK(block, share)
    changed[block] = spread[block];
    sk_team_wait(team);
}

/* The faces of a changed block are also in the diagonals of its lower neighbours. */
static int is_near_change(const sk_level *level, const uint8_t *changed, int block)
{
    int near = changed[block] & 1;
    for (int axis = 0; axis < SELKIE_DIM; ++axis)
        near |= __atomic_load_n(&changed[level->neighbour[block][2 * axis + 1]], __ATOMIC_RELAXED) & 1;
    return near;
}

/* Coarsens one level from the one above it, only blocks with changed children. */
static void recoarsen_level(const sk_multigrid *multigrid, int depth, sk_team team, const uint8_t *changed,
                            uint8_t *coarse_changed)
{
    const sk_level *fine = &multigrid->level[depth], *coarse = fine + 1;
    const sk_share children = SK_DIM(sk_level_share)(fine, team), share = SK_DIM(sk_level_share)(coarse, team);

    /* Mark blocks with changed children. These and their lower neighbours need a slot of their own. */
    SK_EACH_OWN_BLOCK(block, share)
    coarse_changed[block] = 0;
    if (team.thread == 0)
        coarse_changed[0] = 0;
    sk_team_wait(team);
    mark_blocks(fine, team, changed, coarse_changed);
    SK_EACH_OWN_BLOCK(block, share)
    if (is_near_change(coarse, coarse_changed, block))
        coarse->slot[block] = SK_SLOT_FIRST + block - 1;
    sk_team_wait(team);

    /* Faces and excess from the changed children. */
    SK_EACH_OWN_BLOCK(block, children)
    if (changed[block])
        SK_DIM(sk_coarsen_with_sides)(multigrid, fine, coarse, block);
    sk_team_wait(team);

    /* Diagonals. Slots change only after all threads have read them. */
    SK_EACH_OWN_BLOCK(block, share)
    {
        int count; /* second bit: the block is uniform */
        if (is_near_change(coarse, coarse_changed, block) && multigrid->operations->invert(coarse, block, &count))
            __atomic_fetch_or(&coarse_changed[block], 2, __ATOMIC_RELAXED);
    }
    sk_team_wait(team);
    SK_EACH_OWN_BLOCK(block, share)
    {
        if (coarse_changed[block] & 2)
            coarse->slot[block] = SK_SLOT_UNIFORM;
        coarse_changed[block] &= 1;
    }
    sk_team_wait(team);
}

void SK_DIM(sk_multigrid_recoarsen)(sk_multigrid *multigrid, int root, sk_team team, uint8_t *const changed[],
                                    uint8_t *mark)
{
    sk_team alone = {0, 1, NULL};
    int depth = root, bottom = multigrid->level_count - 1;
    if (depth < bottom && multigrid->level[depth].block_count >= SK_SMALL_LEVEL)
        spread_changes(&multigrid->level[depth], team, changed[depth], mark);
    else if (depth < bottom && team.thread == 0)
        spread_changes(&multigrid->level[depth], alone, changed[depth], mark);
    for (; depth < bottom && multigrid->level[depth].block_count >= SK_SMALL_LEVEL; ++depth)
        recoarsen_level(multigrid, depth, team, changed[depth], changed[depth + 1]);
    if (team.thread == 0) {
        for (; depth < bottom; ++depth)
            recoarsen_level(multigrid, depth, alone, changed[depth], changed[depth + 1]);
        SK_DIM(sk_multigrid_prepare_bottom)(multigrid);
    }
    sk_team_wait(team);
}
