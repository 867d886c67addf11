/* The plain form of the density projection. idp_dim.c and idp_parts_dim.c explain its parts. */
#include <math.h>

#include "grid/barriers.h"
#include "grid/plain_forms.h"
#include "methods/idp/idp.h"
#include "methods/idp/idp_parts.h"
#include "methods/idp/idp_plain.h"

selkie_code SK_DIM(sk_idp_density_plain)(sk_step *step, selkie_error *error)
{
    /* Solids count as liquid, so particles inside them would count twice; the push-out moves them. */
    const sk_transfer_options options = {.density_per_particle = 1.0f / (float)step->particles_per_cell,
                                         .threads = step->threads,
                                         .left_out = step->solids.closed,
                                         .left_out_slot = step->solids.block_slot};
    SK_TRY(SK_DIM(sk_transfer_density_plain)(&step->grid, &step->particles, &options, error));
    if (step->solids.obstacle_count)
        SK_DIM(sk_barriers_recount)(&step->solids, &step->grid, &step->particles, &options);
    return SELKIE_OK;
}

static int64_t spread_block(const sk_step *step, sk_particle *records, int block)
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    /* Does a solid cut the cell? A wall along a face does not. */
    const double whole = solids->plain[solids->block_slot[block]] ? 0.45 : 0.5 * sqrt((double)SELKIE_DIM);
    int64_t moved = 0;
    SK_PLAIN_EACH_CELL(cell, block)
    {
        const size_t solid = sk_plain_solid_index(solids, cell);
        uint32_t first, last;
        sk_plain_particles(grid, cell, &first, &last);
        if (!((double)total_density(step, cell) > step->scene->idp.density_max) ||
            (int64_t)(last - first) <= step->particles_per_cell || solids->closed[solid])
            continue;
        int at[3];
        double corner[3];
        sk_plain_coordinates(grid, cell, at);
        for (int d = 0; d < 3; d++)
            corner[d] = grid->corner[d] + at[d] * grid->cell_size;
        moved += SK_DIM(sk_idp_spread_cell)(step, records + first, last - first, corner,
                                            solids->distance[solid] < (float)whole);
    }
    return moved;
}

/* Further corrections take whole runs. */
static uint64_t needy_runs(const sk_step *step, int block)
{
    uint64_t needy = 0;
    SK_PLAIN_EACH_CELL(cell, block)
    if (is_needy(step, cell))
        needy |= UINT64_C(1) << (cell.local / 8);
    return needy;
}

static int64_t build_block(const sk_step *step, int block, int local, int pushing)
{
    int64_t unseen = 0;
    SK_PLAIN_EACH_CELL(cell, block)
    build_idp_row(step, cell, local, pushing, &unseen);
    return unseen;
}

static void displacements_of_block(const sk_step *step, int block, int local, int pushing)
{
    SK_PLAIN_EACH_CELL(cell, block)
    displace_faces(step, cell, local, pushing);
}

selkie_code SK_DIM(sk_idp_correct_plain)(sk_step *step, selkie_error *error)
{
    static const sk_idp_form plain = {.spread = spread_block,
                                      .needy_runs = needy_runs,
                                      .build = build_block,
                                      .displacements = displacements_of_block,
                                      .extrapolate = SK_DIM(sk_extrapolate_plain),
                                      .displace = SK_DIM(sk_transfer_displace_plain)};
    return SK_DIM(sk_idp_correct_with)(step, &plain, error);
}
