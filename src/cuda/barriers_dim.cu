/* The density of cells beside walls thinner than the grid resolves: grid/barriers_plain.h, a thread a cell. */
#include "cuda/device.h"

extern "C" {
#include "cuda/phases.h"
}
#include "cuda/grid_parts.h"
#include "cuda/solids_parts.h"
#include "grid/barriers_plain.h"

static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    split_density(const sk_step *step, const sk_cuda_constants *constants, int field, int hidden, int of_liquid)
{
    SK_CUDA_WAIT();
    const uint8_t *mask = of_liquid ? constants->options.material_mask : nullptr;
    const sk_solids *solids = &step->solids;
    const counted_particles counted = {step->particles.records,
                                       mask ? step->particles.attributes[constants->material].data : nullptr, mask,
                                       constants->options.density_per_particle};
    SK_CUDA_EACH_BLOCK(block, step)
    {
        if (!solids->split[solids->block_slot[block]])
            continue;
        for (int c = (int)threadIdx.x; c < SK_BLOCK_CELLS; c += (int)blockDim.x) {
            const sk_plain_cell cell = {block, c};
            split_cell(solids, &step->grid, cell, &counted, step->grid.fields[field], hidden);
        }
    }
}

void SK_DIM(sk_cuda_launch_split)(sk_cuda *cuda, int field, int hidden, int of_liquid)
{
    if (cuda->solids.has_thin)
        SK_LAUNCH(cuda, split_density, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, &cuda->device->constants,
                  field, hidden, of_liquid);
}
