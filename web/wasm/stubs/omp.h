/* OpenMP on one thread: emscripten has no runtime of it, and the pragmas are left out. */
#ifndef SELKIE_WASM_OMP_H
#define SELKIE_WASM_OMP_H

static inline int omp_get_max_threads(void)
{
    return 1;
}
static inline int omp_get_num_threads(void)
{
    return 1;
}
static inline int omp_get_thread_num(void)
{
    return 0;
}
static inline int omp_get_num_procs(void)
{
    return 1;
}
static inline void omp_set_num_threads(int threads)
{
    (void)threads;
}

#endif
