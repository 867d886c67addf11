/* Threads of loops that do not name their number.
 *
 * Readers, writers and meshes use the OpenMP setting of the calling thread. A call on a world sets it to the world's
 * number and restores it. The setting belongs to the thread, so two worlds can run in two threads.
 */
#ifndef SK_BASE_THREADS_H
#define SK_BASE_THREADS_H

#include <omp.h>

/* Sets the number of threads (0 = unchanged) and returns the earlier one, for sk_threads_end(). */
static inline int sk_threads_begin(int threads)
{
    int before = omp_get_max_threads();
    if (threads > 0)
        omp_set_num_threads(threads);
    return before;
}

static inline void sk_threads_end(int before)
{
    omp_set_num_threads(before);
}

#endif
