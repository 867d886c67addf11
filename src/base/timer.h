#ifndef SK_BASE_TIMER_H
#define SK_BASE_TIMER_H

#include <time.h>

/* Wall time in milliseconds from an arbitrary start. */
static inline double sk_wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

#endif
