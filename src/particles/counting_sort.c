#include "particles/counting_sort.h"

#include <string.h>

#include "base/memory.h"

enum { most_parts = 64 };

static void count_part(const sk_counting_sort *sort, size_t first, size_t end, size_t *places)
{
    for (size_t i = first; i < end; i++)
        if (sort->keys[i] != SK_NO_KEY)
            places[sort->keys[i]]++;
}

/* `bytes` is a constant where this is inlined, so that copies are a few instructions. */
static inline void write_part(const sk_counting_sort *sort, size_t first, size_t end, size_t *places, size_t bytes)
{
    const char *from = sort->from;
    char *to = sort->to;
    for (size_t i = first; i < end; i++)
        if (sort->keys[i] != SK_NO_KEY)
            memcpy(to + bytes * places[sort->keys[i]]++, from + bytes * i, bytes);
}

selkie_code sk_counting_sort_run(const sk_counting_sort *sort, size_t *sorted, selkie_error *error)
{
    const size_t count = sort->count, keys = sort->key_count,
                 parts = (size_t)(sort->threads < 1            ? 1
                                  : sort->threads < most_parts ? sort->threads
                                                               : most_parts);
    size_t *places = sk_allocate_zeroed(NULL, (parts * keys + 1) * sizeof *places), sum = 0;
    if (!places)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "no memory to sort %zu records", count);
#pragma omp parallel for num_threads((int)parts) schedule(static, 1)
    for (size_t part = 0; part < parts; part++)
        count_part(sort, count * part / parts, count * (part + 1) / parts, places + part * keys);

    /* First place of each key and part. */
    for (size_t key = 0; key < keys; key++)
        for (size_t part = 0; part < parts; part++) {
            const size_t here = places[part * keys + key];
            places[part * keys + key] = sum;
            sum += here;
        }
    *sorted = sum;

#pragma omp parallel for num_threads((int)parts) schedule(static, 1)
    for (size_t part = 0; part < parts; part++) {
        const size_t first = count * part / parts, end = count * (part + 1) / parts;
        if (sort->record_bytes == 16)
            write_part(sort, first, end, places + part * keys, 16);
        else if (sort->record_bytes == 32)
            write_part(sort, first, end, places + part * keys, 32);
        else
            write_part(sort, first, end, places + part * keys, sort->record_bytes);
    }
    sk_release(NULL, places);
    return SELKIE_OK;
}
