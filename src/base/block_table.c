#include "base/block_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* The entry of a key, or the free entry where it belongs. */
static sk_block_entry *find_entry(const sk_block_table *table, uint64_t key)
{
    const uint64_t mask = ((uint64_t)1 << table->log) - 1u;
    uint64_t i = sk_block_home(key, table->log);
    while (table->entries[i].number && table->entries[i].key != key)
        i = (i + 1u) & mask;
    return &table->entries[i];
}

selkie_code sk_block_table_reserve(sk_block_table *table, sk_memory *memory, size_t count, selkie_error *error)
{
    sk_block_table larger = {NULL, SK_BLOCK_TABLE_LEAST_LOG, table->count};
    while ((size_t)1 << larger.log < 2 * count)
        larger.log++;
    if (table->entries && larger.log <= table->log)
        return SELKIE_OK;
    const size_t bytes = ((size_t)1 << larger.log) * sizeof *larger.entries;
    larger.entries = count > INT32_MAX / 2 ? NULL : sk_allocate_zeroed(memory, bytes);
    if (!larger.entries)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "the table of %zu blocks needs %.1f MiB, which are not available",
                       count, (double)bytes / 1048576.0);

    for (size_t i = 0; table->entries && i < (size_t)1 << table->log; i++)
        if (table->entries[i].number)
            *find_entry(&larger, table->entries[i].key) = table->entries[i];
    sk_release(memory, table->entries);
    *table = larger;
    return SELKIE_OK;
}

void sk_block_table_clear(sk_block_table *table)
{
    if (table->entries && table->count)
        memset(table->entries, 0, ((size_t)1 << table->log) * sizeof *table->entries);
    table->count = 0;
}

selkie_code sk_block_table_set(sk_block_table *table, sk_memory *memory, uint64_t key, int32_t number,
                               selkie_error *error)
{
    SK_TRY(sk_block_table_reserve(table, memory, (size_t)table->count + 1, error));
    sk_block_entry *entry = find_entry(table, key);
    table->count += !entry->number;
    entry->key = key;
    entry->number = number;
    return SELKIE_OK;
}

void sk_block_table_free(sk_block_table *table, sk_memory *memory)
{
    sk_release(memory, table->entries);
    memset(table, 0, sizeof *table);
}

static int compare_keys(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

void sk_block_sort_keys(uint64_t *keys, size_t count)
{
    size_t ascending = 1;
    while (ascending < count && keys[ascending - 1] <= keys[ascending])
        ascending++;
    if (ascending < count)
        qsort(keys, count, sizeof *keys, compare_keys);
}

selkie_code sk_block_list_add(sk_block_list *list, sk_memory *memory, uint64_t key, selkie_error *error)
{
    const size_t count = (size_t)list->table.count;
    SK_TRY(sk_reserve(memory, (void **)&list->keys, &list->capacity, count + 1, sizeof *list->keys, "list of blocks",
                      error));
    SK_TRY(sk_reserve(memory, (void **)&list->slots, &list->slot_capacity, count + 1, sizeof *list->slots,
                      "list of blocks", error));
    list->keys[count] = key;
    return sk_block_table_set(&list->table, memory, key, (int32_t)count + 1, error);
}

void sk_block_list_sort(sk_block_list *list)
{
    const size_t count = (size_t)list->table.count;
    sk_block_sort_keys(list->keys, count);
    for (size_t i = 0; i < count; i++)
        find_entry(&list->table, list->keys[i])->number = (int32_t)i + 1;
}

void sk_block_list_free(sk_block_list *list, sk_memory *memory)
{
    sk_block_table_free(&list->table, memory);
    sk_release(memory, list->keys);
    sk_release(memory, list->slots);
    memset(list, 0, sizeof *list);
}
