/* Every kernel header, compiled for the GPU in one dimension (SELKIE_DIM is 2 or 3 on the command line).
 *
 * Static functions that nobody calls are parsed but never translated, so a construct that only the device compiler
 * refuses would go unseen. The kernel below takes the address of each of them, which makes nvcc translate them all.
 * selkie_kernel_list.h is written by compile_kernels.py: the includes, and KERNEL(name) for each function. */
#define SELKIE_KERNEL_INCLUDES
#include "selkie_kernel_list.h"
#undef SELKIE_KERNEL_INCLUDES

__global__ void take_every_address(void **table)
{
    int index = 0;
#define KERNEL(name) table[index++] = (void *)(name);
#include "selkie_kernel_list.h"
#undef KERNEL
    table[index] = nullptr;
}
