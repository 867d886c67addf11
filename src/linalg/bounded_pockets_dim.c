/* Closed components under bounds.
 *
 * Without a Dirichlet face A has the constants of the component as null space.
 * Under bounds that matters only while all of its cells are free:
 *
 * - If the right side sums to less than 0, some cell must end on its bound. While none is, steps leave out the mean of
 * the residual. After each step the component is lowered until a cell meets its bound, which changes no residual. The
 * residual is then below 0 everywhere, so the cell stays on its bound and the system is regular.
 * - If it sums to more than 0, or no cell has a bound and it does not sum to 0, there
 *   is no solution. The mean is subtracted from the right side, and lowering finds
 *   the least of the solutions.
 */
#include "linalg/bounded_solver.h"

#include <math.h>

/* Cell n of a piece, as an index into a field. */
SK_INLINE size_t cell_at(const sk_pockets *pockets, const sk_pocket_piece *piece, int n)
{
    return (size_t)piece->block * SK_BLOCK_CELLS + (size_t)(piece->first < 0 ? n : pockets->cell[piece->first + n]);
}

SK_INLINE void share_of(const sk_pockets *pockets, sk_team team, size_t share[2])
{
    for (int end = 0; end < 2; ++end)
        share[end] = pockets->piece_count * (size_t)(team.thread + end) / (size_t)team.threads;
}

/* Distance of a cell from its bound. */
SK_INLINE float gap_of(const sk_bound_level *bound, size_t cell)
{
    return sk_bound_gap(bound->high[cell], bound->low[cell], bound->lower ? bound->lower[cell] : 0);
}

void SK_DIM(sk_bounded_pockets_start)(sk_bounded_solver *solver, sk_team team, int *overfull)
{
    sk_pockets *pockets = &solver->poisson->pockets;
    const sk_bound_level *bound = &solver->bound[0];
    if (pockets->component_count == 0)
        return;

    /* One thread sums the right side of each component and looks for bounds. */
    if (team.thread == 0) {
        memset(pockets->mean, 0, (size_t)pockets->component_count * sizeof(double));
        memset(solver->skip, 0, (size_t)pockets->component_count);
        for (size_t p = 0; p < pockets->piece_count; ++p) {
            const sk_pocket_piece *piece = &pockets->piece[p];
            for (int n = 0; n < piece->count; ++n) {
                size_t cell = cell_at(pockets, piece, n);
                pockets->mean[piece->component] += (double)bound->f[cell];
                solver->skip[piece->component] |= !bound->lower || bound->lower[cell] > -INFINITY;
            }
        }

        /* A sum above 0 has no solution. Without bounds, a sum below 0 has none either. */
        *overfull = 0;
        for (int component = 0; component < pockets->component_count; ++component) {
            double sum = pockets->mean[component];
            int bounded = solver->skip[component];
            solver->skip[component] = !(sum > 0 || (!bounded && sum < 0));
            *overfull += !solver->skip[component];
        }
        pockets->skip = solver->skip;
    }

    /* All threads subtract the means of these components. */
    sk_team_wait(team);
    SK_DIM(sk_pockets_balance)(pockets, team, bound->f);
}

void SK_DIM(sk_bounded_pockets_classify)(sk_bounded_solver *solver, sk_team team)
{
    const sk_pockets *pockets = &solver->poisson->pockets;
    if (pockets->component_count == 0)
        return;
    size_t share[2];
    share_of(pockets, team, share);
    if (team.thread == 0)
        memset(solver->skip, 0, (size_t)pockets->component_count);
    sk_team_wait(team);
    for (size_t p = share[0]; p < share[1]; ++p) {
        const sk_pocket_piece *piece = &pockets->piece[p];
        int held = 0;
        for (int n = 0; n < piece->count && !held; ++n)
            held = !(solver->bound[0].part_inverse[cell_at(pockets, piece, n)] > 0);
        if (held)
            __atomic_store_n(&solver->skip[piece->component], 1, __ATOMIC_RELAXED);
    }
    sk_team_wait(team);
}

void SK_DIM(sk_bounded_pockets_lower)(sk_bounded_solver *solver, sk_team team)
{
    sk_pockets *pockets = &solver->poisson->pockets;
    sk_bound_level *bound = &solver->bound[0];
    if (pockets->component_count == 0)
        return;

    /* Smallest gap to the bounds in each piece. */
    size_t share[2];
    share_of(pockets, team, share);
    for (size_t p = share[0]; p < share[1]; ++p) {
        float least = INFINITY;
        for (int n = 0; n < pockets->piece[p].count && !solver->skip[pockets->piece[p].component]; ++n) {
            float gap = gap_of(bound, cell_at(pockets, &pockets->piece[p], n));
            least = gap < least ? gap : least;
        }
        pockets->sum[p] = (double)least;
    }
    sk_team_wait(team);

    /* Smallest gap of each component. */
    if (team.thread == 0) {
        for (int component = 0; component < pockets->component_count; ++component)
            pockets->mean[component] = INFINITY;
        for (size_t p = 0; p < pockets->piece_count; ++p)
            pockets->mean[pockets->piece[p].component] =
                fmin(pockets->mean[pockets->piece[p].component], pockets->sum[p]);
    }
    sk_team_wait(team);

    /* Lower each component by its gap. A cell that meets its bound equals it to the bit. */
    for (size_t p = share[0]; p < share[1]; ++p) {
        const sk_pocket_piece *piece = &pockets->piece[p];
        float least = (float)pockets->mean[piece->component];
        for (int n = 0; n < piece->count && least > 0 && least < INFINITY; ++n) {
            size_t cell = cell_at(pockets, piece, n);
            if (gap_of(bound, cell) <= least) {
                bound->high[cell] = bound->lower ? bound->lower[cell] : 0;
                bound->low[cell] = 0;
            } else {
                double x = (double)bound->high[cell] + (double)bound->low[cell] - (double)least;
                bound->high[cell] = (float)x;
                bound->low[cell] = bound->paired ? (float)(x - (double)bound->high[cell]) : 0;
            }
        }
    }
    sk_team_wait(team);
}
