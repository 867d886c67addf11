/* A hash table from the coordinates of a block to a number. Its memory follows the number of entries, not the size of
 * the domain. See block_table_kernels.h for its layout. */
#ifndef SK_BASE_BLOCK_TABLE_H
#define SK_BASE_BLOCK_TABLE_H

#include <stddef.h>
#include <selkie/status.h>

#include "base/block_table_kernels.h"
#include "base/memory.h"

/* Not the key of any block. */
#define SK_NO_BLOCK UINT64_MAX

/* Makes room for `count` entries and keeps those that exist. Call it once before the first search. */
selkie_code sk_block_table_reserve(sk_block_table *table, sk_memory *memory, size_t count, selkie_error *error);
/* Removes all entries and keeps the memory. */
void sk_block_table_clear(sk_block_table *table);
/* Sets the number of a block, not 0. */
selkie_code sk_block_table_set(sk_block_table *table, sk_memory *memory, uint64_t key, int32_t number,
                               selkie_error *error);
void sk_block_table_free(sk_block_table *table, sk_memory *memory);

/* Sorts keys in ascending order. */
void sk_block_sort_keys(uint64_t *keys, size_t count);

/* Blocks in the order in which they were first seen, numbered from 1. */
typedef struct sk_block_list {
    sk_block_table table; /* the number of each block */
    uint64_t *keys;       /* [table.count] keys[number - 1] */
    int32_t *slots;       /* [table.count] of the caller */
    size_t capacity, slot_capacity;
} sk_block_list;

/* Adds a block at the end. */
selkie_code sk_block_list_add(sk_block_list *list, sk_memory *memory, uint64_t key, selkie_error *error);
/* Sorts the keys and numbers the blocks anew, in that order. */
void sk_block_list_sort(sk_block_list *list);
void sk_block_list_free(sk_block_list *list, sk_memory *memory);

#endif
