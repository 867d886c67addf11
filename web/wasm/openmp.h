/* Threads of the program without a server. */
#ifndef SELKIE_WASM_OPENMP_H
#define SELKIE_WASM_OPENMP_H

/* Says how many threads there are, the caller's among them: those of the page's pool. Before the first region. */
void web_threads_set(int threads);
/* The most threads that worked in one region so far. */
int web_threads_used(void);

#endif
