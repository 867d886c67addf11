/* Waiting for a word that another thread changes. */
#ifndef SELKIE_WASM_OPENMP_WAIT_H
#define SELKIE_WASM_OPENMP_WAIT_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

/* Who changes it skips the call into the browser where nobody sleeps. */
typedef struct event {
    _Atomic uint32_t value, sleepers;
} event;

#ifdef SELKIE_WEB_THREADS

#include <emscripten/threading.h>
#include <pthread.h>

static void sleep_while(event *event, uint32_t value)
{
    enum { nanoseconds = 100000000 };
    atomic_fetch_add(&event->sleepers, 1);
    while (atomic_load(&event->value) == value) {
        __builtin_wasm_memory_atomic_wait32((int *)(void *)&event->value, (int)value, nanoseconds);
        /* A thread may want something that only the first one can do in a browser, such as a line on the console. */
        if (emscripten_is_main_runtime_thread())
            emscripten_main_thread_process_queued_calls();
    }
    atomic_fetch_sub(&event->sleepers, 1);
}

static void set_event(event *event, uint32_t value)
{
    atomic_store(&event->value, value);
    if (atomic_load(&event->sleepers))
        __builtin_wasm_memory_atomic_notify((int *)(void *)&event->value, UINT32_MAX);
}

/* That of emscripten returns at once: threads that wait for each other would keep the cores from those they wait for.
 */
int sched_yield(void)
{
    enum { nanoseconds = 20000 };
    static int never;
    __builtin_wasm_memory_atomic_wait32(&never, 0, nanoseconds);
    return 0;
}

#else

/* The only thread waits for nobody. */
static void sleep_while(event *event, uint32_t value)
{
    (void)event, (void)value;
    abort();
}

static void set_event(event *event, uint32_t value)
{
    atomic_store(&event->value, value);
}

#endif

/* Returns once the value is another one. */
static void wait_while(event *event, uint32_t value)
{
    enum { spins = 4000 }; /* some 10 us: about as long as it takes to wake a thread */
    for (int i = 0; i < spins; i++)
        if (atomic_load(&event->value) != value)
            return;
    sleep_while(event, value);
}

#endif
