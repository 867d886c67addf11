#include "base/crc.h"

enum { SLICES = 8 };

/* The tables are made anew: 2,048 entries take less time than a page of data, and there is no global state. */
static void make_tables(uint32_t table[SLICES][256])
{
    for (uint32_t n = 0; n < 256; n++) {
        uint32_t value = n;
        for (int bit = 0; bit < 8; bit++)
            value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
        table[0][n] = value;
    }
    for (int s = 1; s < SLICES; s++)
        for (int n = 0; n < 256; n++)
            table[s][n] = table[s - 1][n] >> 8 ^ table[0][table[s - 1][n] & 0xff];
}

/* Eight bytes at a time. */
uint32_t sk_crc32(const void *data, size_t bytes)
{
    uint32_t table[SLICES][256], crc = 0xffffffffu;
    const unsigned char *at = data;
    make_tables(table);
    for (; bytes >= SLICES; bytes -= SLICES, at += SLICES) {
        const uint32_t low =
            crc ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
        crc = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^ table[4][low >> 24] ^
              table[3][at[4]] ^ table[2][at[5]] ^ table[1][at[6]] ^ table[0][at[7]];
    }
    for (; bytes; bytes--, at++)
        crc = crc >> 8 ^ table[0][(crc ^ *at) & 0xff];
    return ~crc;
}
