/* What the library uses of OpenMP; web/wasm/openmp.c has it. */
#ifndef SELKIE_WASM_OMP_H
#define SELKIE_WASM_OMP_H

int omp_get_max_threads(void);
int omp_get_num_threads(void);
int omp_get_thread_num(void);
int omp_get_num_procs(void);
void omp_set_num_threads(int threads);

#endif
