/* Elastoplastic points and liquid on the grid: two velocities a face, one pressure. */
#include <math.h>
#include <string.h>

#include "grid/plain_forms.h"
#include "grid/transfer_plain.h"
#include "methods/elastoplastic/immersed.h"
#include "methods/elastoplastic/mpm_frame.h"

#define SK_IMMERSED_FIND(in, at) sk_plain_find(&(in)->step->grid, at)
#include "methods/elastoplastic/immersed_frame.h"

/* --- The mixture --- */

/* Stress, forces and walls of the points, at the nodes. Force fields act on the mixture. */
static selkie_code fill_nodes(sk_step *step, sk_phase_function to_grid, selkie_error *error)
{
    sk_immersed *immersed = sk_immersed_of(step);
    SK_TRY(SK_DIM(sk_immersed_collect)(step, error));
    selkie_scene scene = *step->scene;
    scene.force_count = 0;
    memset(&scene.frame, 0, sizeof scene.frame);
    sk_step view = *step;
    view.scene = &scene;
    view.particles = immersed->own;
    view.grid.cell_start = immersed->cell_start;
    selkie_code code = to_grid(&view, error);
    if (code == SELKIE_OK)
        code = SK_DIM(sk_mpm_nodes)(&view, error);
    immersed->own = view.particles;
    step->arena = view.arena;
    return code;
}

/* Are there points in a block or beside it? Nodes elsewhere have no mass. */
static int is_near(const sk_step *step, int block)
{
    const sk_immersed *immersed = sk_immersed_of(step);
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        const int other = step->grid.neighbours[block][n];
        if (other < 1 || other > step->grid.particle_blocks)
            continue;
        const uint32_t *start = immersed->cell_start + (size_t)(other - 1) * SK_BLOCK_CELLS;
        if (start[SK_BLOCK_CELLS] > start[0])
            return 1;
    }
    return 0;
}

static selkie_code mix(sk_step *step, sk_mixture_transfer transfer, sk_phase_function to_grid, selkie_error *error)
{
    const sk_immersed *immersed = sk_immersed_of(step);
    SK_TRY(sk_mixture_gather(&immersed->mixture, step, immersed->point_mask, NULL, transfer, error));
    if (immersed->is_stepping)
        SK_TRY(fill_nodes(step, to_grid, error));
    const immersed_frame in = SK_DIM(sk_immersed_frame)(step);
    float *density = step->grid.fields[SK_FIELD_DENSITY];
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b < step->grid.block_count; b++) {
        const int mixes = immersed->is_stepping && is_near(step, b);
        for (int d = 0; d < SELKIE_DIM && immersed->is_stepping && !mixes; d++)
            memset(in.f.share[d] + (size_t)b * SK_BLOCK_CELLS, 0, SK_BLOCK_CELLS * sizeof(float));
        SK_PLAIN_EACH_CELL(cell, b)
        {
            density[sk_plain_index(cell)] += in.solid_density[sk_plain_index(cell)];
            if (mixes)
                immersed_mix_cell(&in, cell);
        }
    }
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_immersed_mix)(sk_step *step, selkie_error *error)
{
    return mix(step, SK_DIM(sk_transfer_to_grid), SK_DIM(sk_mpm_to_grid), error);
}

selkie_code SK_DIM(sk_immersed_mix_plain)(sk_step *step, selkie_error *error)
{
    return mix(step, SK_DIM(sk_transfer_to_grid_plain), SK_DIM(sk_mpm_to_grid_plain), error);
}

/* The velocity before the pressure solve, and the change by forces. */
selkie_code SK_DIM(sk_immersed_remember)(sk_step *step, selkie_error *error)
{
    (void)error;
    const immersed_frame in = SK_DIM(sk_immersed_frame)(step);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b < step->grid.block_count; b++) {
        if (!is_near(step, b))
            continue;
        SK_PLAIN_EACH_CELL(cell, b)
        immersed_remember_cell(&in, cell);
    }
    return SELKIE_OK;
}

/* --- After the pressure --- */

selkie_code SK_DIM(sk_immersed_part)(sk_step *step, selkie_error *error)
{
    const immersed_frame in = SK_DIM(sk_immersed_frame)(step);
    sk_grid *grid = &step->grid;
    float(*impulse)[3];
    SK_TRY(sk_step_scratch(step, (size_t)grid->block_count * SK_BLOCK_CELLS * sizeof *impulse, "part",
                           (void **)&impulse, error));
    memset(impulse, 0, SK_BLOCK_CELLS * sizeof *impulse);
    for (int d = 0; d < SELKIE_DIM; d++)
        memset(in.f.before[d], 0, SK_BLOCK_CELLS * sizeof(float));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b < grid->block_count; b++) {
        int unknown = 0;
        if (!is_near(step, b)) {
            memset(impulse + (size_t)b * SK_BLOCK_CELLS, 0, SK_BLOCK_CELLS * sizeof *impulse);
            continue;
        }
        SK_PLAIN_EACH_CELL(cell, b)
        for (int d = 0; d < SELKIE_DIM; d++)
            unknown |= immersed_part_face(&in, cell, d);
        if (unknown)
            grid->block_flags[b] |= SK_BLOCK_UNKNOWN;
    }

    /* Nodes take their changes and meet the liquid, then faces take the impulses of the nodes. */
    for (int pass = 0; pass < 3; pass++) {
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
        for (int b = 1; b < grid->block_count; b++) {
            if (!is_near(step, b))
                continue;
            SK_PLAIN_EACH_CELL(cell, b)
            {
                if (pass == 0)
                    immersed_push_node(&in, cell);
                else if (pass == 1)
                    immersed_meet_node(&in, cell, impulse[sk_plain_index(cell)]);
                else
                    immersed_push_face(&in, (const float(*)[3])impulse, cell);
            }
        }
    }
    SK_DIM(sk_mpm_touch)(step);
    return SELKIE_OK;
}
