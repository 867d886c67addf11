/* The lists of bodies for a solver elsewhere: see poisson_modes_view.h. */
#include "linalg/poisson_modes_view.h"

#include <string.h>
#include "linalg/solver.h"

_Static_assert(SK_MODES_VIEW_FIRST == SK_MODE_FIRST && SK_MODES_WIDE == 4 && SK_MODES_RANK == 3,
               "the view shows the lists as they are");

/* The caller's number of a cell of level 0. */
static uint32_t cell_outside(const sk_poisson_solver *solver, uint32_t at)
{
    const uint32_t block = (uint32_t)solver->outside[at / SK_BLOCK_CELLS];
    return block * SK_BLOCK_CELLS + (uint32_t)SK_DIM(sk_modes_natural_index)((int)(at % SK_BLOCK_CELLS));
}

static selkie_code show_list(const sk_poisson_solver *solver, const sk_mode_list *list, sk_modes_view_list *to,
                             size_t *capacity, selkie_error *error)
{
    to->count = list->count;
    to->next = list->next;
    to->mover = list->body;
    to->value = (const float(*)[4])list->values;
    to->first = list->first;
    SK_TRY(
        sk_reserve(solver->memory, (void **)&to->cell, capacity, list->count + 1, sizeof *to->cell, "bodies", error));
    for (size_t e = 0; e < list->count; ++e)
        to->cell[e] = cell_outside(solver, list->at[e]);
    return SELKIE_OK;
}

/* W^T Z from the pairs of bodies. */
static void show_coupling(const sk_modes *modes, double *coupling)
{
    const size_t rows = (size_t)modes->body_count * SK_MODES_RANK;
    memset(coupling, 0, rows * rows * sizeof *coupling);
    for (size_t n = 0; n < modes->pair_first[modes->body_count]; ++n) {
        const sk_mode_pair *pair = &modes->pairs[n];
        for (int i = 0; i < SK_MODES_RANK; ++i)
            for (int j = 0; j < SK_MODES_RANK; ++j)
                coupling[((size_t)pair->mover * SK_MODES_RANK + (size_t)i) * rows + (size_t)pair->body * SK_MODES_RANK +
                         (size_t)j] = pair->flux[i][j];
    }
}

selkie_code SK_DIM(sk_poisson_view_modes)(sk_poisson_solver *solver, const sk_poisson_system *system, int64_t unknowns,
                                          int threads, sk_modes_view *view, selkie_error *error)
{
    sk_modes *modes = &solver->modes;
    view->mover_count = 0;
    SK_TRY(SK_DIM(sk_poisson_read_bodies)(solver, system, unknowns, threads, error));
    if (!modes->body_count)
        return SELKIE_OK;
    const size_t rows = (size_t)modes->body_count * SK_MODES_RANK;
    SK_TRY(show_list(solver, &modes->flux, &view->flux, &view->capacity[0], error));
    SK_TRY(show_list(solver, &modes->space, &view->space, &view->capacity[1], error));
    SK_TRY(sk_reserve(solver->memory, (void **)&view->inverse, &view->capacity[2], rows * rows, sizeof(double),
                      "bodies", error));
    SK_TRY(sk_reserve(solver->memory, (void **)&view->coupling, &view->capacity[3], rows * rows, sizeof(double),
                      "bodies", error));
    show_coupling(modes, view->coupling);
    SK_DIM(sk_modes_invert)(modes, view->inverse, threads);
    view->response = (const double(*)[3][3])modes->response;
    view->image = (const float(*)[4])modes->image;
    view->mover_count = modes->body_count;
    return SELKIE_OK;
}
