/* Threads of the program without a server. */
#ifndef SELKIE_WASM_OPENMP_H
#define SELKIE_WASM_OPENMP_H

/* Starts threads, the caller's among them, out of the page's pool. A browser may start them only once the caller has
 * returned: regions have one thread until web_threads_use(). */
void web_threads_start(int threads);
/* How many threads, the caller's among them, have started. */
int web_threads_started(void);
/* How many regions may have from now on, not more than have started. */
void web_threads_use(int threads);
/* The most threads that worked in one region so far. */
int web_threads_used(void);

#endif
