/* SPH in kernels: the neighbour lists and the functions of the plain form. Private to src/cuda; for files compiled per
 * dimension.
 *
 * The lists of 32 particles, a warp, lie beside each other: row k has their neighbours k, so that a warp reads whole
 * rows. An entry is the neighbour's number and its gradient in half precision, as in the lists of the CPU. */
#ifndef SK_CUDA_SPH_PARTS_H
#define SK_CUDA_SPH_PARTS_H

#include "cuda/device.h"

extern "C" {
#include "cuda/phases.h"
}
#include "cuda/grid_parts.h"
#include "cuda/solids_parts.h"
#include "cuda/sort_parts.h"
#include "methods/sph/sph_list_kernels.h"

#ifndef SK_CUDA_EMULATED
#include <cuda_fp16.h>
#endif

enum { GROUP = 32 };

typedef struct plain_list {
    uint32_t *index, *flat; /* of the first entry */
    uint16_t *deep;
    uint32_t count;
} plain_list;

SK_DEVICE plain_list list_of_particle(const sk_cuda_sph *lists, const sk_sph *sph, size_t i)
{
    const size_t at = (size_t)lists->row[i / GROUP] * GROUP + i % GROUP;
    const plain_list list = {lists->index + at, lists->flat + at, SELKIE_DIM == 3 ? lists->deep + at : nullptr,
                             sph->number[i]};
    return list;
}

SK_KERNEL float float_of_half(uint16_t half)
{
#ifdef SK_CUDA_EMULATED
    return sk_sph_float_from_half(half);
#else
    return __half2float(__ushort_as_half(half)); /* exact, as sk_sph_float_from_half is */
#endif
}

SK_KERNEL uint32_t neighbour_at(const plain_list *list, uint32_t k, float gradient[3])
{
    const size_t at = (size_t)k * GROUP;
    const uint32_t flat = list->flat[at];
    gradient[0] = float_of_half((uint16_t)(flat & 0xffffu));
    gradient[1] = float_of_half((uint16_t)(flat >> 16));
    gradient[2] = SELKIE_DIM == 3 ? float_of_half(list->deep[at]) : 0.0f;
    return list->index[at];
}

SK_KERNEL void set_gradient(const plain_list *list, uint32_t k, float gradient[3])
{
    uint16_t half[3];
    for (int d = 0; d < 3; d++) {
        half[d] = sk_sph_half_from_float(gradient[d]);
        gradient[d] = sk_sph_float_from_half(half[d]);
    }
    list->flat[(size_t)k * GROUP] = (uint32_t)half[0] | (uint32_t)half[1] << 16;
    if (SELKIE_DIM == 3)
        list->deep[(size_t)k * GROUP] = half[2];
}

#include "methods/sph/contact_plain.h"
#include "methods/sph/correction_plain.h"
#include "methods/sph/forces_plain.h"
#include "methods/sph/integrate_plain.h"
#include "methods/sph/lists_plain.h"
#include "methods/sph/pressure_plain.h"
#include "methods/sph/viscosity_plain.h"

SK_DEVICE list_frame frame_of_lists(sk_step *step, const sk_cuda_sph_constants *constants)
{
    list_frame frame;
    frame.step = step;
    frame.sph = step->sph;
    frame.constants = constants->lists;
    frame.points = constants->points;
    return frame;
}

/* What distances across joined sides need. */
SK_DEVICE sk_cell_index index_of_grid(const sk_grid *grid)
{
    sk_cell_index index;
    index.periodic = grid->periodic;
    for (int d = 0; d < 3; d++)
        index.period[d] = grid->period[d];
    return index;
}

/* The walls near a cell. */
SK_DEVICE void find_walls(const sk_step *step, sk_plain_cell cell, near_walls *walls)
{
    const sk_sph *sph = step->sph;
    walls->side_count = sk_sph_sides_near(sph, &step->grid, cell.slot, sph->sheet.reach, walls->sides);
    walls->range_count = 0;
    if (sph->boundary.count)
        find_points_near_cell(step, cell.slot, cell.local, walls);
}

#endif
