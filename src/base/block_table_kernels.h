/* A hash table from the coordinates of a block to a number: reading it. Compiled by the C compiler and by nvcc.
 *
 * Linear probing in a table of 2^log entries, at most half full. An entry with the number 0 is free, so that 0 also
 * means "absent". Four blocks that are neighbours along x share a cache line: the two low bits of x choose the entry in
 * the line, a multiplicative hash of the other bits chooses the line. */
#ifndef SK_BASE_BLOCK_TABLE_KERNELS_H
#define SK_BASE_BLOCK_TABLE_KERNELS_H

#include <stdint.h>

#include "base/kernel.h"

typedef struct sk_block_entry {
    uint64_t key;
    int32_t number; /* 0 = free */
    int32_t unused;
} sk_block_entry;

typedef struct sk_block_table {
    sk_block_entry *entries; /* [2^log] */
    int log;
    int32_t count; /* taken entries */
} sk_block_table;

enum {
    SK_BLOCK_KEY_BITS = 21, /* of each coordinate */
    SK_BLOCK_TABLE_LEAST_LOG = 6
};

/* Ascending keys are blocks in the order of z, y, x, with x fastest. */
SK_KERNEL uint64_t sk_block_key(int x, int y, int z)
{
    return (uint64_t)(unsigned)x | (uint64_t)(unsigned)y << SK_BLOCK_KEY_BITS |
           (uint64_t)(unsigned)z << (2 * SK_BLOCK_KEY_BITS);
}

/* Coordinate of a key along an axis. */
SK_KERNEL int sk_block_coordinate(uint64_t key, int axis)
{
    return (int)(key >> (axis * SK_BLOCK_KEY_BITS) & ((1u << SK_BLOCK_KEY_BITS) - 1u));
}

/* The entry where the search of a key begins. */
SK_KERNEL uint64_t sk_block_home(uint64_t key, int log)
{
    uint64_t line = key >> 2;
    line ^= line >> 29;
    line *= 0x9e3779b97f4a7c15u; /* 2^64 over the golden ratio */
    return line >> (66 - log) << 2 | (key & 3u);
}

/* The number of a block, 0 if it is absent. */
SK_KERNEL int sk_block_find(const sk_block_table *table, uint64_t key)
{
    const uint64_t mask = ((uint64_t)1 << table->log) - 1u;
    for (uint64_t i = sk_block_home(key, table->log);; i = (i + 1u) & mask) {
        const sk_block_entry *entry = &table->entries[i];
        if (entry->key == key || entry->number == 0)
            return entry->key == key ? entry->number : 0;
    }
}

#endif
