#define _GNU_SOURCE
#include "base/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/status.h"

/* The size of a block is stored in the 64 bytes before it. */
enum { header_bytes = 64, huge_page_bytes = 2 << 20 };

void *sk_allocate(sk_memory *memory, size_t bytes)
{
    if (bytes > SIZE_MAX - 2 * (size_t)huge_page_bytes)
        return NULL;
    size_t total = (bytes + header_bytes + 63) / 64 * 64;
    /* Large blocks use huge pages: loops over the blocks of a big grid would miss the TLB with small ones. */
    size_t alignment = total >= 4 * (size_t)huge_page_bytes ? huge_page_bytes : 64;
    if (alignment == huge_page_bytes)
        total = (total + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes;
    if (memory && memory->limit && (total > memory->limit || memory->used > memory->limit - total))
        return NULL;
    char *block = aligned_alloc(alignment, total);
    if (!block)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (alignment == huge_page_bytes)
        madvise(block, total, MADV_HUGEPAGE);
#endif
    *(size_t *)block = total;
    if (memory) {
        memory->used += total;
        if (memory->used > memory->peak)
            memory->peak = memory->used;
    }
    return block + header_bytes;
}

void *sk_allocate_zeroed(sk_memory *memory, size_t bytes)
{
    void *block = sk_allocate(memory, bytes);
    if (block)
        memset(block, 0, bytes);
    return block;
}

void sk_release(sk_memory *memory, void *block)
{
    if (!block)
        return;
    char *start = (char *)block - header_bytes;
    if (memory)
        memory->used -= *(size_t *)start;
    free(start);
}

selkie_code sk_reserve(sk_memory *memory, void **array, size_t *capacity, size_t count, size_t element_bytes,
                       const char *what, selkie_error *error)
{
    if (count <= *capacity)
        return SELKIE_OK;
    size_t grown = *capacity + *capacity / 2;
    if (grown < count)
        grown = count;
    if (grown < 64)
        grown = 64;
    void *fresh = grown > SIZE_MAX / element_bytes ? NULL : sk_allocate(memory, grown * element_bytes);
    if (!fresh && grown > count) {
        grown = count;
        fresh = grown > SIZE_MAX / element_bytes ? NULL : sk_allocate(memory, grown * element_bytes);
    }
    if (!fresh)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory, %.1f MiB more are needed", what,
                       (double)count * (double)element_bytes / 1048576.0);
    if (*array)
        memcpy(fresh, *array, *capacity * element_bytes);
    sk_release(memory, *array);
    *array = fresh;
    *capacity = grown;
    return SELKIE_OK;
}

/* A number in a file of the control group; 0 if there is none ("max": no limit). */
static unsigned long long group_bytes(const char *path)
{
    FILE *file = fopen(path, "r");
    unsigned long long bytes = 0;
    if (file) {
        if (fscanf(file, "%llu", &bytes) != 1)
            bytes = 0;
        fclose(file);
    }
    return bytes;
}

size_t sk_memory_available(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    if (!file)
        return 0;
    char line[256];
    unsigned long long kibibytes = 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu kB", &kibibytes) == 1)
            break;
    fclose(file);
    size_t available = (size_t)kibibytes * 1024;
    /* In a container the limit of the control group applies. */
    unsigned long long most = group_bytes("/sys/fs/cgroup/memory.max"),
                       used = group_bytes("/sys/fs/cgroup/memory.current");
    if (most && most - (used < most ? used : most) < available)
        available = (size_t)(most - (used < most ? used : most));
    return available;
}
