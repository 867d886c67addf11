/* The part of OpenMP's runtime that clang's code calls (names and types of LLVM's libomp), over threads of emscripten,
 * which comes without one.
 *
 * One team of threads waits for parallel regions; a region inside another one has one thread. Dynamic loops give out
 * chunks by a counter. Tasks run at once in the thread that meets them. Without SELKIE_WEB_THREADS every region has one
 * thread, and the program needs no shared memory.
 */
#include "openmp.h"

#include <omp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>

#include "openmp_call.h"
#include "openmp_wait.h"

enum {
    LOOPS_AHEAD = 4, /* dynamic loops without a barrier that a thread can be ahead of the slowest one */
    MOST_THREADS = 64,
    DEEPEST = 8 /* regions of one thread inside each other */
};

#ifdef SELKIE_WEB_THREADS
#define PER_THREAD _Thread_local
#else
#define PER_THREAD /* memory that is not shared has no place for such variables */
#endif

/* A dynamic loop. This place is for loop `number` of the region, and then for number + LOOPS_AHEAD. */
typedef struct loop {
    event number;
    _Atomic uint64_t next; /* chunk that no thread has taken */
    _Atomic int left;      /* threads that found nothing more */
} loop;

typedef struct team {
    int size;
    region code;
    int argument_count;
    void *arguments[REGION_ARGUMENTS];
    loop loops[LOOPS_AHEAD];
    _Atomic uint32_t singles; /* that a thread has taken */
    _Atomic int arrived;      /* at the barrier */
    event barriers;           /* passed */
    _Atomic int working;      /* threads beside the first that have not finished */
    event done;               /* regions */
} team;

/* Where a thread is. */
typedef struct place {
    team *team; /* NULL: in no region, or in one that has this thread alone */
    int is_inside, number;
    uint32_t loops, singles;      /* that it has met in the region */
    uint64_t count, chunk, taken; /* iterations of the dynamic loop, of a chunk; that a thread alone has taken */
    int64_t first, step;          /* values of its variable */
} place;

static PER_THREAD place here, outer[DEEPEST];
static PER_THREAD int depth, next_threads, usual_threads; /* 0: not chosen */
static team everyone;
static event orders[MOST_THREADS]; /* regions that each thread is to work in */
static _Atomic int started = 1;
static int available = 1, most_used = 1;

/* --- Threads --- */

static void work(team *team, int number)
{
    here = (place){.team = team->size > 1 ? team : NULL, .is_inside = 1, .number = number};
    call_region(team->code, number, team->argument_count, team->arguments);
}

#ifdef SELKIE_WEB_THREADS

static void *wait_for_work(void *context)
{
    const int number = (int)(intptr_t)context;
    atomic_fetch_add(&started, 1);
    for (uint32_t seen = 0;; seen++) {
        wait_while(&orders[number], seen);
        work(&everyone, number);
        if (atomic_fetch_sub(&everyone.working, 1) == 1)
            set_event(&everyone.done, everyone.done.value + 1);
    }
    return NULL;
}

void web_threads_start(int threads)
{
    enum { stack_bytes = 2 << 20 };
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    for (int number = 1; number < threads && number < MOST_THREADS; number++)
        if (pthread_create(&thread, &attributes, wait_for_work, (void *)(intptr_t)number))
            break;
    pthread_attr_destroy(&attributes);
}

#else

void web_threads_start(int threads)
{
    (void)threads;
}

#endif

int web_threads_started(void)
{
    return atomic_load(&started);
}

void web_threads_use(int threads)
{
    const int most = web_threads_started();
    available = threads < 1 ? 1 : threads > most ? most : threads;
}

int web_threads_used(void)
{
    return most_used;
}

int omp_get_num_procs(void)
{
    return available;
}

int omp_get_max_threads(void)
{
    return usual_threads ? usual_threads : available;
}

void omp_set_num_threads(int threads)
{
    usual_threads = threads > 0 ? threads : 1;
}

int omp_get_thread_num(void)
{
    return here.number;
}

int omp_get_num_threads(void)
{
    return here.team ? here.team->size : 1;
}

/* --- Regions --- */

/* Makes the team ready for a region. */
static void gather(team *team, int size)
{
    team->size = size;
    atomic_store(&team->singles, 0);
    atomic_store(&team->working, size - 1);
    for (uint32_t i = 0; i < LOOPS_AHEAD; i++) {
        atomic_store(&team->loops[i].number.value, i);
        atomic_store(&team->loops[i].next, 0);
        atomic_store(&team->loops[i].left, 0);
    }
}

static int threads_of_region(void)
{
    int threads = next_threads ? next_threads : omp_get_max_threads();
    next_threads = 0;
    if (here.is_inside || threads <= 1)
        return 1;
    return threads < available ? threads : available;
}

void __kmpc_fork_call(void *location, int count, region code, ...)
{
    (void)location;
    const place before = here;
    const int size = threads_of_region();
    team alone = {.size = 1}, *team = size > 1 ? &everyone : &alone;
    if (count > REGION_ARGUMENTS)
        abort();
    team->code = code;
    team->argument_count = count;
    va_list list;
    va_start(list, code);
    for (int i = 0; i < count; i++)
        team->arguments[i] = va_arg(list, void *);
    va_end(list);

    if (size > 1) {
        const uint32_t done = everyone.done.value;
        most_used = size > most_used ? size : most_used;
        gather(team, size);
        for (int i = 1; i < size; i++)
            set_event(&orders[i], orders[i].value + 1);
        work(team, 0);
        wait_while(&everyone.done, done);
    } else
        work(team, 0);
    here = before;
}

void __kmpc_push_num_threads(void *location, int thread, int threads)
{
    (void)location, (void)thread;
    next_threads = threads;
}

void __kmpc_serialized_parallel(void *location, int thread)
{
    (void)location, (void)thread;
    if (depth == DEEPEST)
        abort();
    next_threads = 0;
    outer[depth++] = here;
    here = (place){.is_inside = 1};
}

void __kmpc_end_serialized_parallel(void *location, int thread)
{
    (void)location, (void)thread;
    here = outer[--depth];
}

int __kmpc_global_thread_num(void *location)
{
    (void)location;
    return here.number;
}

/* --- Meeting --- */

void __kmpc_barrier(void *location, int thread)
{
    (void)location, (void)thread;
    team *team = here.team;
    if (!team)
        return;
    const uint32_t passed = atomic_load(&team->barriers.value);
    if (atomic_fetch_add(&team->arrived, 1) + 1 == team->size) {
        atomic_store(&team->arrived, 0);
        set_event(&team->barriers, passed + 1);
    } else
        wait_while(&team->barriers, passed);
}

/* 1 for the thread that comes first. */
int __kmpc_single(void *location, int thread)
{
    (void)location, (void)thread;
    uint32_t met = here.singles++;
    return !here.team || atomic_compare_exchange_strong(&here.team->singles, &met, met + 1);
}

void __kmpc_end_single(void *location, int thread)
{
    (void)location, (void)thread;
}

int __kmpc_master(void *location, int thread)
{
    (void)location, (void)thread;
    return here.number == 0;
}

void __kmpc_end_master(void *location, int thread)
{
    (void)location, (void)thread;
}

/* One lock for all critical sections and reductions: those of this program are short. Value 0 = open. The objects name
 * a lock for each kind, as common symbols, which WebAssembly does not have. */
static event closed;
int lock_of_reductions[8] __asm__(".gomp_critical_user_.reduction.var");
int lock_of_sections[8] __asm__(".gomp_critical_user_.var");

void __kmpc_critical(void *location, int thread, void *name)
{
    (void)location, (void)thread, (void)name;
    for (uint32_t open = 0; !atomic_compare_exchange_strong(&closed.value, &open, 1); open = 0)
        wait_while(&closed, 1);
}

void __kmpc_end_critical(void *location, int thread, void *name)
{
    (void)location, (void)thread, (void)name;
    set_event(&closed, 0);
}

/* Each thread adds its part (1), in any order: reductions of this program are of integers, or the least and largest. */
int __kmpc_reduce_nowait(void *location, int thread, int count, size_t size, void *data, void (*add)(void *, void *),
                         void *name)
{
    (void)count, (void)size, (void)data, (void)add;
    __kmpc_critical(location, thread, name);
    return 1;
}

void __kmpc_end_reduce_nowait(void *location, int thread, void *name)
{
    __kmpc_end_critical(location, thread, name);
}

int __kmpc_reduce(void *location, int thread, int count, size_t size, void *data, void (*add)(void *, void *),
                  void *name)
{
    return __kmpc_reduce_nowait(location, thread, count, size, data, add, name);
}

void __kmpc_end_reduce(void *location, int thread, void *name)
{
    __kmpc_end_critical(location, thread, name);
    __kmpc_barrier(location, thread);
}

/* --- Static loops: `last` is inclusive --- */

enum { STATIC_CHUNKED = 33 };

void __kmpc_for_static_fini(void *location, int thread)
{
    (void)location, (void)thread;
}

/* Threads share the iterations in stretches whose lengths differ by one at most, or take chunks in turn. */
#define STATIC_LOOP(suffix, type, signed_type)                                                                         \
    void __kmpc_for_static_init_##suffix(void *location, int thread, int schedule, int *is_last, type *first,          \
                                         type *last, signed_type *stride, signed_type step, signed_type chunk)         \
    {                                                                                                                  \
        (void)location, (void)thread;                                                                                  \
        const uint64_t count = iterations((int64_t)*first, (int64_t)*last, (int64_t)step);                             \
        const uint64_t threads = (uint64_t)omp_get_num_threads(), me = (uint64_t)here.number;                          \
        uint64_t begin, length;                                                                                        \
        if (schedule == STATIC_CHUNKED) {                                                                              \
            length = chunk > 0 ? (uint64_t)chunk : 1;                                                                  \
            begin = me * length;                                                                                       \
            *stride = (signed_type)((int64_t)(length * threads) * step);                                               \
            *is_last = count > 0 && (count - 1) / length % threads == me;                                              \
        } else {                                                                                                       \
            const uint64_t more = count % threads;                                                                     \
            length = count / threads + (me < more);                                                                    \
            begin = count / threads * me + (me < more ? me : more);                                                    \
            *stride = (signed_type)count;                                                                              \
            *is_last = length > 0 && begin + length == count;                                                          \
        }                                                                                                              \
        if (length > 0) {                                                                                              \
            *first = (type)((int64_t)*first + (int64_t)begin * step);                                                  \
            *last = (type)((int64_t)*first + ((int64_t)length - 1) * step);                                            \
        } else                                                                                                         \
            *first = (type)((int64_t)*last + step); /* -1 would be large without a sign */                             \
    }

static uint64_t iterations(int64_t first, int64_t last, int64_t step)
{
    if (step > 0)
        return last < first ? 0 : (uint64_t)(last - first) / (uint64_t)step + 1;
    return first < last ? 0 : (uint64_t)(first - last) / (uint64_t)-step + 1;
}

STATIC_LOOP(4, int32_t, int32_t)
STATIC_LOOP(4u, uint32_t, int32_t)
STATIC_LOOP(8, int64_t, int64_t)
STATIC_LOOP(8u, uint64_t, int64_t)

/* --- Dynamic loops --- */

static void begin_dynamic(int64_t first, int64_t last, int64_t step, int64_t chunk)
{
    here.count = iterations(first, last, step);
    here.chunk = chunk > 0 ? (uint64_t)chunk : 1;
    here.first = first;
    here.step = step;
    here.taken = 0;
    here.loops++;
    if (here.team) {
        /* The place is free once all threads have left the loop that had it. */
        event *number = &here.team->loops[(here.loops - 1) % LOOPS_AHEAD].number;
        for (uint32_t old; (old = atomic_load(&number->value)) != here.loops - 1;)
            wait_while(number, old);
    }
}

/* The next stretch of iterations begin .. end - 1; 0: there are none. */
static int take_dynamic(uint64_t *begin, uint64_t *end)
{
    if (!here.team) {
        *begin = here.taken;
        *end = here.taken = here.count;
        return *begin < *end;
    }
    loop *loop = &here.team->loops[(here.loops - 1) % LOOPS_AHEAD];
    *begin = atomic_fetch_add(&loop->next, 1) * here.chunk;
    *end = *begin + here.chunk < here.count ? *begin + here.chunk : here.count;
    if (*begin < here.count)
        return 1;
    if (atomic_fetch_add(&loop->left, 1) + 1 == here.team->size) {
        atomic_store(&loop->next, 0);
        atomic_store(&loop->left, 0);
        set_event(&loop->number, here.loops - 1 + LOOPS_AHEAD);
    }
    return 0;
}

#define DYNAMIC_LOOP(suffix, type, signed_type)                                                                        \
    void __kmpc_dispatch_init_##suffix(void *location, int thread, int schedule, type first, type last,                \
                                       signed_type step, signed_type chunk)                                            \
    {                                                                                                                  \
        (void)location, (void)thread, (void)schedule;                                                                  \
        begin_dynamic((int64_t)first, (int64_t)last, (int64_t)step, (int64_t)chunk);                                   \
    }                                                                                                                  \
    int __kmpc_dispatch_next_##suffix(void *location, int thread, int *is_last, type *first, type *last,               \
                                      signed_type *step)                                                               \
    {                                                                                                                  \
        (void)location, (void)thread;                                                                                  \
        uint64_t begin, end;                                                                                           \
        if (!take_dynamic(&begin, &end))                                                                               \
            return 0;                                                                                                  \
        *first = (type)(here.first + (int64_t)begin * here.step);                                                      \
        *last = (type)(here.first + (int64_t)(end - 1) * here.step);                                                   \
        *step = (signed_type)here.step;                                                                                \
        if (is_last)                                                                                                   \
            *is_last = end == here.count;                                                                              \
        return 1;                                                                                                      \
    }                                                                                                                  \
    void __kmpc_dispatch_fini_##suffix(void *location, int thread)                                                     \
    {                                                                                                                  \
        (void)location, (void)thread;                                                                                  \
    }

DYNAMIC_LOOP(4, int32_t, int32_t)
DYNAMIC_LOOP(4u, uint32_t, int32_t)
DYNAMIC_LOOP(8, int64_t, int64_t)
DYNAMIC_LOOP(8u, uint64_t, int64_t)

/* --- Tasks: run where they are met --- */

typedef struct task {
    void *shared;
    int (*code)(int thread, struct task *task);
} task;

task *__kmpc_omp_task_alloc(void *location, int thread, int flags, size_t size, size_t shared_size,
                            int (*code)(int, task *))
{
    (void)location, (void)thread, (void)flags;
    const size_t own = (size + 15) / 16 * 16;
    task *made = calloc(1, own + shared_size);
    if (!made)
        abort();
    made->shared = (char *)made + own;
    made->code = code;
    return made;
}

int __kmpc_omp_task(void *location, int thread, task *task)
{
    (void)location;
    task->code(thread, task);
    free(task);
    return 0;
}

void __kmpc_omp_task_begin_if0(void *location, int thread, task *task)
{
    (void)location, (void)thread, (void)task;
}

void __kmpc_omp_task_complete_if0(void *location, int thread, task *task)
{
    (void)location, (void)thread;
    free(task);
}

int __kmpc_omp_taskwait(void *location, int thread)
{
    (void)location, (void)thread;
    return 0;
}
