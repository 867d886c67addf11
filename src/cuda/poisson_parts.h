/* Parts that the files of the GPU solver share. Private to src/cuda; for files compiled per dimension. */
#ifndef SK_CUDA_POISSON_PARTS_H
#define SK_CUDA_POISSON_PARTS_H

#include "cuda/device.h"
#include "linalg/linalg_kernels.h"

enum { CELLS = SK_BLOCK_CELLS, N = SK_BLOCK_N, PAIRS = CELLS / 2, SIDES = 2 * SELKIE_DIM, LAYER = CELLS / N };

#ifdef SK_CUDA_EMULATED
enum { LAUNCH_BLOCKS = 2 };
#define SET_CONDITION(go) ((void)(go), (void)handle)
#else
enum { LAUNCH_BLOCKS = 132 * 8 };
/* Repeats the iteration or ends it; 0 = it is not part of a graph. */
#define SET_CONDITION(go) (handle ? cudaGraphSetConditional(handle, (go)) : (void)0)
#endif

SK_DEVICE int cell_index(int i, int j, int k)
{
    return i + N * (j + N * k);
}

SK_DEVICE int blocks_of(const sk_cuda_solver *solver, int depth)
{
    return solver->count[depth][0] + solver->count[depth][1];
}

static inline int launch_width(const sk_cuda *cuda, int depth)
{
    const int places = cuda->solver_shadow.level[depth].places;
    return depth == 0 || places / 2 + 1 > LAUNCH_BLOCKS ? LAUNCH_BLOCKS : places / 2 + 1;
}

#endif
