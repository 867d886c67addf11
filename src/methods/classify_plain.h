/* The classification of one cell, for the plain form and the GPU: see classify_plain_dim.c. For files compiled per
 * dimension. */
#ifndef SK_METHODS_CLASSIFY_PLAIN_H
#define SK_METHODS_CLASSIFY_PLAIN_H

#include "grid/plain.h"
#include "methods/cell_kernels.h"
#include "methods/covered_cells.h"
#include "methods/vents_plain.h"
#include "methods/wall_plain.h"

typedef struct sk_cell_volumes {
    double kernel, counted, surface; /* cells */
    int64_t occupied, liquid;
} sk_cell_volumes;

/* The kernel volume of a cell for mirror walls: density behind a wall counts in the cell before it. */
SK_KERNEL float mirrored_volume(const sk_step *step, const sk_flat_walls *walls, sk_plain_cell cell)
{
    const sk_grid *grid = &step->grid;
    const int here[3] = {0, 0, 0};
    int at[3];
    sk_plain_coordinates(grid, cell, at);
    if (sk_wall_is_behind(walls, at))
        return 0.0f;
    sk_plain_cell images[1 << SELKIE_DIM];
    float room[1 << SELKIE_DIM];
    const int found = find_wall_images(grid, walls, cell, here, -1, images);
    for (int n = 0; n < 1 << SELKIE_DIM; n++)
        room[n] =
            (n & ~found) == 0 ? 1.0f - step->solids.blurred[sk_plain_solid_index(&step->solids, images[n])] : 0.0f;
    return sk_cell_volume(folded_value(grid, walls, grid->fields[SK_FIELD_DENSITY], cell, here, -1),
                          sk_wall_fold(room, found));
}

/* Fill, depth, occupation and solid flag of a cell; adds its volumes. The liquid flag needs the neighbours and follows
 * in sk_plain_kind. */
SK_KERNEL void sk_plain_measure_cell(const sk_step *step, const sk_flat_walls *walls, sk_plain_cell cell,
                                     sk_cell_volumes *volumes)
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    const int mirrored =
        solids->block_slot[cell.slot] && step->scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    const size_t here = sk_plain_index(cell), solid = sk_plain_solid_index(solids, cell);
    const float density = grid->fields[SK_FIELD_DENSITY][here], blurred = solids->blurred[solid];
    const float own = sk_cell_fill(density, blurred);
    const float fill = covered_near(step, cell.slot) && is_covered(step, cell) ? covered_fill(step, cell) : own;
    const float depth = sk_surface_depth(fill);
    const int open = !solids->closed[solid];
    uint32_t first, last;
    sk_plain_particles(grid, cell, &first, &last);

    grid->fields[SK_FIELD_FILL][here] = open ? fill : -1.0f;
    grid->fields[SK_FIELD_DEPTH][here] = open ? depth : -1.0f;
    grid->kinds[here] = (uint8_t)((open ? SK_CELL_AIR : SK_CELL_SOLID) | (last > first ? SK_CELL_OCCUPIED : 0));

    volumes->kernel +=
        (double)(mirrored ? mirrored_volume(step, walls, cell) : sk_cell_volume(density, 1.0f - blurred));
    volumes->surface += open ? (double)sk_cell_part_below(depth) : 0.0;
    volumes->counted += (double)sk_cell_counted((int)(last - first), 1.0f / (float)step->particles_per_cell);
    volumes->occupied += last > first;
}

SK_KERNEL int is_hole(const sk_step *step, sk_plain_cell cell)
{
    const sk_grid *grid = &step->grid;
    const float fill = grid->fields[SK_FIELD_FILL][sk_plain_index(cell)];
    int occupied[2 * SELKIE_DIM];
    float open[2 * SELKIE_DIM];
    if (!(fill > 0.0f))
        return 0;
    SK_KERNEL_UNROLL
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const sk_plain_cell other = sk_plain_next(grid, cell, side / 2, side % 2 ? 1 : -1);
        occupied[side] = grid->kinds[sk_plain_index(other)] & SK_CELL_OCCUPIED;
        open[side] = step->solids.fraction[side / 2][sk_plain_solid_index(&step->solids, side % 2 ? other : cell)];
    }
    return sk_cell_is_hole(fill, occupied, open);
}

/* The kind of a cell with its liquid flag. The caller stores it elsewhere, because neighbours are still read. */
SK_KERNEL int sk_plain_kind(const sk_step *step, sk_plain_cell cell)
{
    const sk_grid *grid = &step->grid;
    const int voxel = step->scene->pressure.surface == SELKIE_SURFACE_VOXEL;
    const int obstacles = !step->solids.plain[step->solids.block_slot[cell.slot]];
    const size_t here = sk_plain_index(cell);
    const int kind = grid->kinds[here], occupied = kind & SK_CELL_OCCUPIED;
    int liquid = (kind & SK_CELL_KIND_MASK) != SK_CELL_SOLID;
    const int cut = obstacles && step->solids.blurred[sk_plain_solid_index(&step->solids, cell)] > 0.0f;
    liquid = liquid && (sk_cell_is_liquid(voxel, occupied, cut, grid->fields[SK_FIELD_FILL][here]) ||
                        (!voxel && !vents_of(step, cell) && is_hole(step, cell)));
    return liquid ? SK_CELL_LIQUID | occupied : kind;
}

#endif
